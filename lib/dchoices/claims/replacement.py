"""The conjecture about probing with and without replacement."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import xarray as xr

from dchoices import statistics
from dchoices.claims.engine import Cell, Data, claim, missing, where
from dchoices.exponents import Ladder
from dchoices.theory.closed_forms import distance_to_switch
from dchoices.theory.replacement import replacement_limit

# Part of the limit by which N times the difference may miss it: 0.4 of the half by which it is off at the least if the
# limits of the policies with memory and without are exchanged.
RELATIVE = 0.2
# Half of the way to the exponent of the control, -1/2.
EXPONENT_ROOM = 0.25
# A system of N servers sees loads within about 1/√N as one; a step of the bound, and the threshold, must be this many
# times farther. There the derivative of the limit jumps.
AWAY_FROM_SWITCH = 2.0
OTHER = {"sq-memory": "sq", "sq": "sq-memory"}


def far(policy: str, N: int, lam: float, d: int) -> bool:
    """Tell whether N servers, with memory, tell λ from every step of the bound."""
    return policy == "sq" or math.sqrt(N) * distance_to_switch(lam, d) >= AWAY_FROM_SWITCH


def exponent(N: np.ndarray, value: np.ndarray, error: np.ndarray) -> tuple[float, float]:
    """Return the slope of the log of the difference against log N, and its standard error; no finite one below 0.

    Parameters
    ----------
    N : int64[K]
        Servers, at least two numbers.
    value, error : float64[K]
        N times the difference, in any unit, and its standard error, which is small: to first order.
    """
    if (value <= 0).any():
        return 0.0, math.inf
    slope, its_error = Ladder(N, value, error).exponent()
    return slope - 1, its_error


def _standard_error(point: xr.Dataset, replicates: int) -> np.ndarray:
    return point.n_replacement_ci95.values * statistics.widening(replicates, 1) / statistics.student(replicates - 1, 1)


def _limit(model: str, policy: str, lam: float, d: int) -> float:
    """Return the limit of the claim or of a control."""
    limit = replacement_limit(lam, d, OTHER[policy] if model == "exchanged" else policy)
    return -limit if model == "sign" else limit


@claim(
    id="N8",
    statement="With and without replacement: probing with replacement adds c/N to the mean response time. Away from "
    "the steps of the bound c is -d(d-1)/2 ∂R/∂d at the fixed point with memory, which is 0 below the threshold; "
    "without memory it is Σ u_i / λ.",
    source="conjecture, derived from the model",
    heuristic="With replacement d probes hit d - d(d-1)/(2N) + … different servers. With memory the fluid model knows "
    "the probes by their mean number only, and has a fixed point for every real d: so fewer probes cost what a smaller "
    "d does. Without memory all probes hit servers with i jobs or more with a probability that is greater by "
    "d(d-1)/2 s_i^(d-1) (1 - s_i)/N with replacement, which shifts the fixed point by u_i/N to first order. "
    "Fluctuations change R by 1/N too, but alike with replacement and without.",
    quantity="N times the difference over its limit (below the threshold over that of memoryless SQ(d)) at the largest "
    "N, and the exponent of N in the difference",
    tolerance_reason="a fifth of the limit: 0.4 of the half by which it is off if the limits with and without memory "
    "are exchanged; exponent within 0.25 of -1, half of the way to -1/2",
    controls={
        "sign": "the opposite sign, a fault of public simulators",
        "exchanged": "with memory the limit without it, and the reverse",
        "root": "a difference of order N^(-1/2)",
    },
    dataset="replacement",
    figure="fig-replacement",
)
def replacement(data: Data, model: str) -> Iterator[Cell]:
    """The difference at the largest N and its exponent, where that N tells the load from every step of the bound."""
    ds = data["replacement"].sortby("N")
    replicates, N = int(ds.attrs["replicates"]), int(ds.N.max())
    axes = (ds[axis].values.tolist() for axis in ("policy", "d", "λ"))
    places = [place for place in itertools.product(*axes) if place[1] >= 2 and far(place[0], N, place[2], place[1])]
    if {place[0] for place in places} != set(OTHER) or ds.sizes["N"] < 2:
        yield missing("several N, and loads away from the steps of the bound, with memory and without")
    errors = statistics.student(replicates - 1, max(1, 2 * len(places)))
    for policy, d, lam in places:
        point = ds.sel(policy=policy, d=d, λ=lam)
        limit = replacement_limit(lam, d, policy)
        scale = limit or replacement_limit(lam, d, "sq")
        middle = _limit(model, policy, lam, d) / scale
        value, error = point.n_replacement.values / scale, _standard_error(point, replicates) / scale
        width = (
            error[-1] * errors
            + N * statistics.unseen(replicates, lam, N, ds.attrs["t_end"] - ds.attrs["warm_up"]) / scale
        )
        at = where({"policy": policy, "d": d, "λ": lam})
        yield Cell(f"difference at N = {N}, {at}", value[-1], width, middle - RELATIVE, middle + RELATIVE)
        if limit and point.sizes["N"] > 1:
            found, its_error = exponent(point.N.values, value, error)
            middle = -0.5 if model == "root" else -1.0
            yield Cell(f"exponent, {at}", found, its_error * errors, middle - EXPONENT_ROOM, middle + EXPONENT_ROOM)
