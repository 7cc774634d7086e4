"""Closed forms of the fluid model: threshold, bound and fixed points (model of arXiv:1802.06566)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import xarray as xr
from scipy.optimize import brentq

from dchoices import validation
from dchoices.capacity import LAST_SWITCH
from dchoices.service import ServiceLaw, as_law
from dchoices.variables import describe
from dchoices.wording import show

# λ is a double: the switch of the bound nearest to it, or a rounded expression for that switch such as 1 - 1/d,
# lies within this many units in the last place, and counts as the switch itself.
SWITCH_ULPS = 2
MOST_ULPS = 1000
MOST_LEVELS = 10**6  # of a memoryless fixed point; M/M/1 has 37/(1-λ)
# The Laplace transforms of service laws are known to this relative error, some by quadrature. Closer to a step of the
# bound, in units of 1-λ, a load counts as at it.
STEP_GUARD = 1e-11
# Mass of the memoryless fixed point left beyond the last stored level.
TAIL_MASS = 1e-16


def optimality_threshold(d: int) -> float:
    """Return 1 - 1/d, the load below which every job finds an idle server as N grows (arXiv:1802.06566, Th. 2).

    Raises
    ------
    ValueError
        If d is no integer >= 1.
    """
    return 1 - 1 / validation.probes(d)


def fewest_probes(lam: float) -> int:
    """Return ⌊1/(1-λ)⌋ + 1, the least d with λ < 1 - 1/d, with which every job finds an idle server as N grows.

    Decided in rational arithmetic. A load within `SWITCH_ULPS` of a threshold counts as at it: so it is 6 at λ = 0.8,
    and 4 at λ = 2/3, though the double 2/3 is below it.

    Raises
    ------
    ValueError
        If the load is out of range.
    """
    lam = validation.load(lam)
    return math.floor(1 / (1 - Fraction(lam) - SWITCH_ULPS * Fraction(math.ulp(lam)))) + 1


def queue_bound(lam: float, d: int, service: str | ServiceLaw = "exponential", ulps: int = SWITCH_ULPS) -> int:
    """Return Q(λ, d) = ⌈-log(1-λ) / log(λd+1)⌉, the largest queue length with mass at the fluid fixed point.

    Decided in integers as the least Q with (1-λ)(1+λd)^Q >= 1, so no rounding of logarithms matters. A load within
    `ulps` units in the last place of a switch (an integer argument) counts as at the switch, where the bound is the
    lower integer: ``queue_bound(1 - 1/3, 3)`` is 1 though the double 1 - 1/3 exceeds 2/3.

    For another service law it is a heuristic: the least Q with Σ_{i<Q} φ^-i >= 1/(d(1-λ)), where φ = E[exp(-λdS)] is
    the probability that a server is not probed while it serves a job. So it is 1 up to λ = 1 - 1/d for every law,
    smallest for the deterministic one, and at most ⌈1/(d(1-λ))⌉.

    Parameters
    ----------
    lam : float
        Load λ in (0, 1).
    d : int
        Probes per job, >= 1.
    service : str or ServiceLaw
        "exponential", "deterministic", a law from `service_law`, or its label.
    ulps : int
        At most 1000; 0: the bound at the double `lam` itself.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    lam, d, law = validation.load(lam), validation.probes(d), as_law(service)
    if law.name != "exponential":
        return _bound_of_law(lam, d, law)
    ulps = validation.integer("ulps", ulps, 0, MOST_ULPS)
    # Near a switch the product falls as λ grows, so the most favourable λ within the ulps is the lowest: a/b.
    a, b = (Fraction(lam) - ulps * Fraction(math.ulp(lam))).as_integer_ratio()
    level = max(1, math.floor(-math.log1p(-lam) / math.log1p(lam * d)) - 1)
    product, one = (b - a) * (b + a * d) ** level, b ** (level + 1)
    while product < one:
        level, product, one = level + 1, product * (b + a * d), one * b
    return level


def _bound_of_law(lam: float, d: int, law: ServiceLaw) -> int:
    """Return the least Q with φ^(Q-1) <= d(1-λ) Σ_{i<Q} φ^i.

    At the load where the level changes every server is topped up to Q jobs whenever it is probed. Then a service
    leaves one job less than before if there was no probe, with probability φ, else Q-1, and a share
    u_0 = φ^(Q-1) / Σ_{i<Q} φ^i of services leaves the server idle, for 1/(λd) on average, until it is found. The share
    of idle servers is 1-λ, so that u_0 = d(1-λ). No φ is divided by: it may underflow.
    """
    unprobed = law.laplace(lam * d)
    share = d * (1 - (lam - SWITCH_ULPS * math.ulp(lam))) * (1 + STEP_GUARD)
    level, power, total = 1, 1.0, 1.0
    while power > share * total:
        power *= unprobed
        total += power
        level += 1
    return level


def switch_load(level: int, d: int) -> float:
    """Return the load λ at which the bound steps from `level` to `level` + 1: (1-λ)(1+λd)^level = 1.

    For level 1 it is the threshold 1 - 1/d; for d = 1 that is 0.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    level, d = validation.integer("level", level, 1), validation.probes(d)
    if level > -math.log(LAST_SWITCH) / math.log1p(d):
        raise ValueError(
            f"level = {show(level)}: the bound steps at 1-λ of about {d + 1}^-level at d = {d}, must be at least "
            f"{LAST_SWITCH:g}"
        )
    peak = max(0.0, (level * d - 1) / (d * (level + 1)))  # where the product is largest; it falls from there
    if level * d == 1:
        return 0.0
    return brentq(lambda lam: math.log1p(-lam) + level * math.log1p(lam * d), peak, 1 - 1e-16, xtol=1e-16)


def distance_to_switch(lam: float, d: int) -> float:
    """Return the distance from λ to the nearest load at which the bound steps.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    bound = queue_bound(lam, d)
    return min(abs(lam - switch_load(level, d)) for level in {max(1, bound - 1), bound})


def _level_state(u: float, k: int, delta: float) -> np.ndarray:
    """Solve the steady state with observations k and k+1 for θ/(1+θ) = u (derived from the model).

    a_i (observation k) is kept as (1-u)·â_i, which stays finite as θ -> ∞, where all servers have observation k+1.
    """
    scaled = np.ones(k + 1)
    for i in range(k - 1, -1, -1):
        scaled[i] = scaled[i + 1] * (1 - u) / (((i >= 1) + delta) * (1 - u) + u)
    upper = np.empty(k + 2)
    upper[k + 1] = u * scaled[k]
    for i in range(k, -1, -1):
        upper[i] = (upper[i + 1] + (u * scaled[i - 1] if i else 0.0)) / ((i >= 1) + delta)
    state = np.zeros((k + 2, k + 2))
    state[: k + 1, k] = (1 - u) * scaled
    state[:, k + 1] = upper
    return state / state.sum()


def _idle(u: float, k: int, delta: float) -> float:
    return float(_level_state(u, k, delta)[0].sum())


def fixed_point_state(lam: float, d: float) -> np.ndarray:
    """Return the fluid fixed point x[i, j] of SQ(d) with memory as float64[Q+1, Q+1]; its equations hold for real d.

    Below the threshold it is explicit; else p_0 = 1-λ has one root over the levels k = 0, 1, … and θ in [0, ∞],
    found level by level without the formula of `queue_bound`.
    """
    if (1 - lam) * d > 1 + SWITCH_ULPS * d * math.ulp(lam):
        return np.array([[1 - lam - 1 / d, 1 / d], [0.0, lam]])
    delta, k = lam * d, 0
    # The slack is the rounding of p_0 itself: at a switch the root is θ = ∞, reached to a few units in the last place.
    slack = 1 + 4 * SWITCH_ULPS * math.ulp(1.0) * (1 + d + lam / (1 - lam))
    while _idle(1.0, k, delta) > (1 - lam) * slack:
        k += 1
    if _idle(1.0, k, delta) >= (1 - lam) * (2 - slack):
        return _level_state(1.0, k, delta)
    u = brentq(lambda u: _idle(u, k, delta) / (1 - lam) - 1, 0.0, 1.0, xtol=1e-16, rtol=4 * math.ulp(1.0))
    return _level_state(u, k, delta)


def sq_queue_length_pmf(lam: float, d: int) -> np.ndarray:
    """Return the memoryless SQ(d) fixed point p_i = s_i - s_{i+1}, s_i = λ^((d^i-1)/(d-1)) (λ^i for d = 1).

    Levels are kept until s_i < `TAIL_MASS`; the rest is added to the last one. (Mitzenmacher; Vvedenskaya et al.)

    Raises
    ------
    ValueError
        If there are more than `MOST_LEVELS`, as for d = 1 and a load close to 1.
    """
    if d == 1 and (levels := math.log(TAIL_MASS) / math.log(lam)) > MOST_LEVELS:
        raise ValueError(
            f"lam = {lam!r}: with one probe and no memory it takes about {levels:.1e} queue lengths, must be at most "
            f"{MOST_LEVELS:.0e}"
        )
    tail = [1.0]
    exponent = 1.0
    while (mass := lam**exponent) >= TAIL_MASS:
        tail.append(mass)
        exponent = d * exponent + 1
    return -np.diff([*tail, 0.0])


def sq_mean_response_time(lam: float, d: int) -> float:
    """Return the mean response time of memoryless SQ(d) in the fluid limit, Σ_{i>=1} s_i / λ by Little's law."""
    if d == 1:  # M/M/1, whose levels are many
        return 1 / (1 - lam)
    pmf = sq_queue_length_pmf(lam, d)
    return float(pmf @ np.arange(len(pmf)) / lam)


def fixed_point(lam: float, d: int) -> xr.Dataset:
    """Return the fluid fixed point of SQ(d) with memory.

    Parameters
    ----------
    lam : float
        Load λ in (0, 1).
    d : int
        Probes per job, >= 1.

    Returns
    -------
    xarray.Dataset
        ``state`` (i, j), ``queue_length_pmf`` (i), ``mean_response_time`` (by Little, mean service times),
        ``dispatch`` (j), the fraction of jobs sent to observation j, R_j = d Σ_{i<=j} p_i below the lowest
        observation k and 1 - S_k at k, and ``dispatch_to_idle``, the fraction p_1/λ that finds an idle server.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    lam, d = validation.load(lam), validation.probes(d)
    state = fixed_point_state(lam, d)
    pmf = state.sum(axis=1)
    levels = np.arange(len(state))
    k = len(state) - 2  # the lowest observation in use, Q - 1
    dispatch = np.zeros(len(state))
    dispatch[:k] = d * np.cumsum(pmf)[:k]
    dispatch[k] = 1 - dispatch.sum()
    return describe(
        xr.Dataset(
            {
                "state": (("i", "j"), state),
                "queue_length_pmf": ("i", pmf),
                "mean_response_time": ((), float(levels @ pmf) / lam),
                "dispatch": ("j", dispatch),
                "dispatch_to_idle": ((), float(pmf[1]) / lam),
            },
            coords={"i": levels, "j": levels},
            attrs={"lam": lam, "d": d, "policy": "sq-memory"},
        )
    )


def fixed_point_grid(lam: float | Sequence[float] | np.ndarray, d: int | Sequence[int]) -> xr.Dataset:
    """Return the fluid fixed points of SQ(d) with memory on the product of loads and probes.

    Parameters
    ----------
    lam : float64[Λ]
        Loads in (0, 1).
    d : int[D]
        Probes per job, >= 1.

    Returns
    -------
    xarray.Dataset
        On (d, λ): ``queue_length_pmf`` (queue_length), ``mean_response_time``, ``dispatch_to_idle``,
        ``dispatch_to_observation_zero``.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    loads, ds = validation.several("lam", lam, validation.load), validation.several("d", d, validation.probes)
    validation.points("lam and d", len(loads) * len(ds), validation.PATH)
    points = [[fixed_point(x, probes) for x in loads] for probes in ds]
    levels = max(point.sizes["i"] for row in points for point in row)

    def collect(value: Callable[[xr.Dataset], Any]) -> np.ndarray:
        return np.array([[value(point) for point in row] for row in points])

    return describe(
        xr.Dataset(
            {
                "queue_length_pmf": (
                    ("d", "λ", "queue_length"),
                    collect(lambda point: np.pad(point.queue_length_pmf.values, (0, levels - point.sizes["i"]))),
                ),
                "mean_response_time": (("d", "λ"), collect(lambda point: point.mean_response_time.item())),
                "dispatch_to_idle": (("d", "λ"), collect(lambda point: point.dispatch_to_idle.item())),
                "dispatch_to_observation_zero": (("d", "λ"), collect(lambda point: point.dispatch.values[0])),
            },
            coords={"d": ds, "λ": loads, "queue_length": np.arange(levels)},
        )
    )
