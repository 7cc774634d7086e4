"""The conjecture about fluctuations below the threshold."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dchoices import statistics
from dchoices.claims.engine import Cell, Data, claim, missing, where
from dchoices.theory.closed_forms import optimality_threshold
from dchoices.theory.fluctuations import fluctuations_below_threshold

# Relative error allowed to a variance. The controls are off by 15 % or more, and by 4 % (d = 5) to 78 % (d = 2).
RELATIVE = 0.05
# With as many servers as this, that probes may hit a server twice changes the variance by less than 0.1 %: the moments
# of the chain close, as long as a server is known to be idle.
ENOUGH_SERVERS = 1000
# The known idle servers must be so many standard deviations from none: below, their edge at 0 is felt.
AWAY_FROM_EMPTY = 5.0


def _limits(model: str, lam: float, d: int) -> tuple[float, float]:
    """Return the two limits of the claim or of a control."""
    busy, known_idle = fluctuations_below_threshold(lam, d, 1.0 if model == "Poisson" else None)
    return lam * (1 - lam) if model == "independent" else busy, known_idle


def far_from_empty(N: int, lam: float, d: int) -> bool:
    """Tell whether the known idle servers are many enough for their number to be Gaussian."""
    room = optimality_threshold(d) - lam
    return room > 0 and math.sqrt(N) * room >= AWAY_FROM_EMPTY * math.sqrt(fluctuations_below_threshold(lam, d)[1])


@claim(
    id="N1",
    statement="Fluctuations below the threshold: N times the stationary variance of the share of busy servers tends to "
    "λ, and that of the share of known idle servers to λ + (3 - 1/d)/(2d) - (2δ + 1)/(d(1 + δ)), with δ = λd.",
    source="conjecture, derived from the model",
    heuristic="While some server is known to be idle every job finds one, so that the busy servers are an M/M/∞ queue. "
    "The idle servers still remembered as busy gain one at a departure, and at an arrival lose those that its probes "
    "find, a binomial number with mean 1 and variance 1 - 1/d. Near the fixed point both numbers follow linear "
    "dynamics with noise, and their covariance solves a Lyapunov equation.",
    quantity="N times the stationary variance over its limit, of busy and of known idle servers",
    tolerance_reason="5 %: a third of the least by which independent servers are off, λ = 0.15, and under half of what "
    "a Poisson number of finds is off by for d = 2 and 3; finite N changes less than 0.1 % at N = 1000",
    controls={
        "independent": "independent servers, with variance λ(1-λ)",
        "Poisson": "probes find a Poisson number of the servers in question, with variance 1 for 1 - 1/d",
    },
    dataset="fluctuations",
    figure="fig-fluctuations",
)
def gaussian_fluctuations(data: Data, model: str) -> Iterator[Cell]:
    """Both variances at the largest N, where the known idle servers are far from running out."""
    ds = data["fluctuations"]
    N = int(ds.N.max())
    pairs = [(d, lam) for d in ds.d.values.tolist() for lam in ds["λ"].values.tolist()]
    places = [{"N": N, "d": d, "λ": lam} for d, lam in pairs if N >= ENOUGH_SERVERS and far_from_empty(N, lam, d)]
    if not places:
        yield missing("loads below the threshold with enough known idle servers")
    factor = statistics.widening(int(ds.attrs["replicates"]), max(1, 2 * len(places)))
    for place in places:
        limits = _limits(model, place["λ"], place["d"])
        for name, limit in zip(("busy", "known_idle"), limits, strict=True):
            value, width = (float(ds[f"n_var_{name}{end}"].sel(place)) / limit for end in ("", "_ci95"))
            at = f"N times the variance of {name.replace('_', ' ')} servers over its limit, {where(place)}"
            yield Cell(at, value, width * factor, 1 - RELATIVE, 1 + RELATIVE)
