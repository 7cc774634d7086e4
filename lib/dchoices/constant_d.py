"""A constant number of probes with memory beside one that grows with N: how much delay is too much, and where."""

from __future__ import annotations

import math

from scipy import special

from dchoices.theory.closed_forms import fewest_probes, optimality_threshold, sq_mean_response_time
from dchoices.theory.fluctuations import fluctuations_below_threshold

# The N at which SQ(⌈log N⌉) is looked at, and its probes there.
LARGEST = 10**6
MANY_PROBES = math.ceil(math.log(LARGEST))
# Half of what SQ(⌈log N⌉) misses there in the limit: both sides of the claim have as far to go.
HALF = 0.5


def tolerated(lam: float) -> float:
    """Return ε: half of R - 1 for SQ(⌈log N⌉) at N = 10^6 in the limit, which is λ^14 and a little more."""
    return HALF * (sq_mean_response_time(lam, MANY_PROBES) - 1)


def enough_servers(lam: float) -> float:
    """Return N_0: with more servers the dispatcher with memory is out of known idle ones for a share ε of the time.

    Their number is normal about N(1-1/d-λ), with the variance of `fluctuations_below_threshold` (derived from the
    model). A job that finds none waits for about one service at most.
    """
    d = fewest_probes(lam)
    sigma = math.sqrt(fluctuations_below_threshold(lam, d)[1])
    return float(special.ndtri(tolerated(lam)) * sigma / (optimality_threshold(d) - lam)) ** 2
