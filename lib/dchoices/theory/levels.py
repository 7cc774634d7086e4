"""The longest queue at the fluid fixed point, decided from its equations, beside the formula that bounds it.

With observations k and k+1 the fixed point has p_0 = 1-λ for one θ in [0, ∞] (model of arXiv:1802.06566). p_0 falls in
θ, and at either end all servers have one observation: k at θ = 0, k+1 at θ = ∞. So the longest queue is the least level
Q at which p_0, with all servers at observation Q, is at most 1-λ. `longest_queues` does not know the bound's formula.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import xarray as xr

from dchoices import validation
from dchoices.theory.closed_forms import queue_bound, switch_load
from dchoices.variables import describe

# Relative error of `idle_share` over 1-λ in floating point, in units of 2^-53 and per level and one more. All terms are
# positive, so errors add up and do not cancel: with L levels b_0 takes 3 L roundings (δ, 1 + δ and the quotient, each
# time), the sum L more than each of its terms, and the last quotients and 1-λ three; 7 L + 3 in all.
ROUNDINGS = 8


def idle_share(lam: Any, d: Any, level: int) -> Any:
    """Return p_0 of the steady state in which every server has observation `level`.

    From b_level = 1 down, b_i = b_{i+1} / ([i>=1] + δ) with δ = λd; then p_0 = b_0 / Σ b.

    Parameters
    ----------
    lam, d : float64[P] or Fraction
        Loads and probes. Fractions give the exact value.
    level : int
        The observation, >= 0.
    """
    delta = lam * d
    b = total = lam / lam
    for i in range(level - 1, -1, -1):
        b = b / ((i >= 1) + delta)
        total = total + b
    return b / total


def longest_queues(lam: np.ndarray, d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the longest queue with mass at the fixed point, and whether it took rational arithmetic to decide it.

    In floating point with a bound on its rounding (`ROUNDINGS`); where that does not decide whether p_0 exceeds 1-λ, in
    fractions, as a double is one.

    Parameters
    ----------
    lam : float64[P]
        Loads in (0, 1).
    d : int64[P]
        Probes per job, >= 1.

    Returns
    -------
    level : int64[P]
    exact : bool[P]
    """
    levels, exact = np.zeros(lam.size, dtype=np.int64), np.zeros(lam.size, dtype=bool)
    left, level = np.arange(lam.size), 0
    while left.size:
        level += 1
        ratio = idle_share(lam[left], d[left], level) / (1 - lam[left])
        reached = ratio <= 1
        for p in np.flatnonzero(np.abs(ratio - 1) <= ROUNDINGS * (level + 1) * 2.0**-53):
            load, probes = Fraction(float(lam[left[p]])), Fraction(int(d[left[p]]))
            reached[p] = idle_share(load, probes, level) <= 1 - load
            exact[left[p]] = True
        levels[left[reached]] = level
        left = left[~reached]
    return levels, exact


def loads_around_switch(level: int, d: int) -> list[float]:
    """Return three neighbouring doubles: the last two loads at which the bound is `level`, and the next one.

    The bound steps from `level` to `level` + 1 between the second, which is the switch itself if that is a double, and
    the third.

    Raises
    ------
    ValueError
        If an argument is out of range, or the bound is never `level` (1 for d = 1).
    """
    last = switch_load(level, d)
    if last == 0:
        raise ValueError(f"level = {level}: must be at least 2 for d = 1")
    if last >= validation.LOADS[1]:
        raise ValueError(
            f"level = {level}: the bound steps at 1-λ = {1 - last:.1e} at d = {d}, must be more than 1e-12"
        )
    while queue_bound(last, d, ulps=0) > level:
        last = math.nextafter(last, 0)
    while queue_bound(math.nextafter(last, 1), d, ulps=0) == level:
        last = math.nextafter(last, 1)
    return [math.nextafter(last, 0), last, math.nextafter(last, 1)]


def bound_grid(lam: float | Sequence[float] | np.ndarray, d: int | Sequence[int]) -> xr.Dataset:
    """Return the longest queue at the fluid fixed point beside the formula, on the product of loads and probes.

    Both are decided for the very doubles of `lam`, with no slack at the steps of the bound.

    Parameters
    ----------
    lam : float64[Λ]
        Loads in (0, 1).
    d : int[D]
        Probes per job, >= 1.

    Returns
    -------
    xarray.Dataset
        On (d, λ): ``level``, the largest queue length with mass, found without the formula; ``decided_exactly``, 1
        where that took rational arithmetic; and ``bound``, the formula Q(λ, d) in integers.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    loads, ds = validation.several("lam", lam, validation.load), validation.several("d", d, validation.probes)
    validation.points("lam and d", len(loads) * len(ds))
    shape = (len(ds), len(loads))
    level, exact = longest_queues(np.tile(loads, len(ds)), np.repeat(ds, len(loads)))
    bound = np.array([queue_bound(x, probes, ulps=0) for probes in ds for x in loads])
    found = {"level": level, "decided_exactly": exact.astype(np.int8), "bound": bound}
    variables = {name: (("d", "λ"), values.reshape(shape)) for name, values in found.items()}
    return describe(xr.Dataset(variables, coords={"d": ds, "λ": loads}))
