"""Heavy traffic: how response times grow as λ tends to 1, at fixed points, with memory and without."""

from __future__ import annotations

import itertools
import math
from functools import cache

from dchoices.theory.closed_forms import fixed_point, queue_bound, sq_mean_response_time, switch_load

# Fixed points are followed up to this load; the last whole period between steps of the bound stands for the limit.
HEAVIEST = 0.99999


@cache  # asked for the same loads by claims and figures
def limit_response(policy: str, lam: float, d: int) -> float:
    """Return the mean response time of SQ(d) in the fluid limit; `policy` is "sq-memory" or "sq"."""
    if policy == "sq":
        return sq_mean_response_time(lam, d)
    return float(fixed_point(lam, d).mean_response_time)


def periods(d: int) -> list[tuple[float, float]]:
    """Return the pairs of loads up to `HEAVIEST` between which the bound goes through one whole level.

    They are successive loads > 0 at which the argument of the bound is an integer, the threshold 1 - 1/d the first.
    """
    steps = [switch_load(level, d) for level in range(1, queue_bound(HEAVIEST, d))]
    return list(itertools.pairwise(step for step in steps if step > 0))


def slope(policy: str, d: int, period: tuple[float, float]) -> float:
    """Return the slope of the mean response time against log(1/(1-λ)) over a period.

    As λ -> 1 it tends to 1/log(1+d) with memory, to 1/log d without for d >= 2 (derived from the model). Between the
    steps of the bound R is no straight line, so that only whole periods show it.
    """
    low, high = period
    rise = limit_response(policy, high, d) - limit_response(policy, low, d)
    return rise / (math.log1p(-low) - math.log1p(-high))
