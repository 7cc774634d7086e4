"""Service times of unit mean, drawn in a kernel by inversion or as sums and mixtures of exponential times."""

import math

from dchoices.kernels.codes import DETERMINISTIC, ERLANG, HYPEREXPONENTIAL, PARETO, WEIBULL
from dchoices.kernels.jit import kernel
from dchoices.kernels.sfc64 import uniform


@kernel
def exponential(rng):
    """Return an exponential time of mean 1."""
    return -math.log(1.0 - uniform(rng))  # the uniform is below 1, never 1


@kernel
def draw(law, rng):
    """Return a service time of mean 1.

    Parameters
    ----------
    law : (int, float, float, float)
        One of `codes`, and its constants as `dchoices.service` works them out: stages and mean of a stage (Erlang);
        probability of the first phase and the means of both (hyperexponential); scale and exponent (Weibull, Pareto).
    rng : uint64[4]
        SFC64 state; updated.
    """
    code, first, second, third = law
    if code == DETERMINISTIC:
        return 1.0
    if code == PARETO:
        return first * (1.0 - uniform(rng)) ** second
    time = exponential(rng)
    if code == ERLANG:
        for _ in range(int(first) - 1):
            time += exponential(rng)
        return second * time
    if code == HYPEREXPONENTIAL:
        return time * (second if uniform(rng) < first else third)
    if code == WEIBULL:
        return first * time**second
    return time


@kernel
def fill(law, rng, out):
    """Fill `out` (float64) with service times."""
    for index in range(out.size):
        out[index] = draw(law, rng)
