"""The claim about delay and messages: a constant number of probes is enough."""

from __future__ import annotations

from collections.abc import Iterator

import xarray as xr

from dchoices import registry, statistics
from dchoices.claims.engine import CLAIM, Cell, Data, claim, missed, missing, where
from dchoices.claims.selection import REVIEW
from dchoices.constant_d import LARGEST, MANY_PROBES, enough_servers, tolerated
from dchoices.theory.closed_forms import fewest_probes


def shown_at(lam: float) -> bool:
    """Tell whether SQ(⌈log N⌉) uses more messages than the constant d; at heavier loads its d is still the smaller."""
    return fewest_probes(lam) < MANY_PROBES


def _delay(runs: xr.Dataset, policy: str, N: int, lam: float, factor: float) -> tuple[float, float]:
    """Return R - 1 and its half-width, with what jobs so rare that none was seen may add to it."""
    point = runs.sel({"policy": policy, "N": N, "λ": lam})
    half_width = factor * float(point.mean_response_time_ci95) + missed(point, int(runs.attrs["replicates"]))
    return float(point.mean_response_time) - 1, half_width


@claim(
    id="P8",
    statement="A constant d is enough: with memory and d = ⌊1/(1-λ)⌋ + 1, R - 1 is at most ε for all N from some N_0 "
    "on at 2d messages per job, where memoryless SQ(⌈log N⌉) is still above ε at more messages. Here ε is half of what "
    f"the latter leaves in the limit at N = 10^6, and d < {MANY_PROBES}.",
    source="constant d in place of d(N), " + REVIEW + "; ε and N_0 derived from the model",
    quantity="R - 1 over ε: with memory at every N >= N_0 of the ladder; beside it that of SQ(⌈log N⌉) at N = 10^6, "
    "about 2 by the choice of ε",
    tolerance_reason="ε is half of what SQ(⌈log N⌉) misses in the limit at N = 10^6; N_0 is where the stock of known "
    "idle servers, taken as normal, is empty for a share ε of the time; loads at which SQ(⌈log N⌉) uses more messages, "
    f"which are those with d < {MANY_PROBES}",
    controls={"sq": "the same constant d without memory"},
    dataset="constant_d",
    figure="fig-messages",
)
def constant_d(data: Data, model: str) -> Iterator[Cell]:
    """The ladder of N with memory from N_0 on, and its top for SQ(⌈log N⌉), at every load that can show it."""
    runs = data["constant_d"]
    loads = [lam for lam in runs["λ"].values.tolist() if shown_at(lam)]
    ours = {lam: registry.label("sq-memory" if model == CLAIM else "sq", fewest_probes(lam)) for lam in loads}
    there = set(runs.policy.values.tolist())
    loads = [lam for lam in loads if {ours[lam], "sq-log"} <= there]
    if not loads or runs.N.max() < LARGEST:
        yield missing(f"loads with d = ⌊1/(1-λ)⌋ + 1 < {MANY_PROBES} beside SQ(⌈log N⌉), N to {LARGEST}")
        return
    places = [(N, lam) for lam in loads for N in runs.N.values.tolist() if enough_servers(lam) <= N]
    factor = statistics.widening(int(runs.attrs["replicates"]), len(places) + len(loads))
    for N, lam in places:
        value, half_width = _delay(runs, ours[lam], N, lam, factor)
        at = "(R-1)/ε, " + where({"N": N, "d": fewest_probes(lam), "λ": lam})
        yield Cell(at, value / tolerated(lam), half_width / tolerated(lam), high=1.0)
    for lam in loads:
        value, half_width = _delay(runs, "sq-log", LARGEST, lam, factor)
        at = "(R-1)/ε of SQ(⌈log N⌉), " + where({"N": LARGEST, "λ": lam})
        yield Cell(at, value / tolerated(lam), half_width / tolerated(lam), low=1.0, beside=True)
