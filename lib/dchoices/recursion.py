"""Where jobs go, by observation: the terms of the recursion on windows of simulated paths.

The fraction y_j of servers observed at j changes as the d probed servers are seen anew and as the job is sent:
y_j' = λ (d (p_j - y_j) + R_{j-1} - R_j), with R_{-1} = 0. Below k, the lowest observation with mass, y_j = 0, and so
R_j - R_{j-1} = d p_j.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from dchoices.theory.closed_forms import fixed_point

# Distance from a switch of the mode, in units of N^(-1/3): there the servers known below k are a queue close to
# critical, which clears on that scale of time. Five units away they are of order N^(-2/3) of all servers.
MARGIN = 5.0
# Mean service times that a window lasts at least: in less, few servers are found at the lower levels.
SHORTEST = 0.5
# Levels with a smaller fraction of the servers are left out: few jobs go there.
LEAST = 0.01


@dataclass(frozen=True)
class Window:
    """The part of simulated paths in which the fluid path has one lowest observation with mass.

    Attributes
    ----------
    place : dict
        Its start, N, d and λ.
    k : int
        The lowest observation with mass.
    levels : list of int
        The j from 1 to k - 1 at which the fluid path holds at least `LEAST` of the servers.
    inside : bool[T - 1]
        The intervals (t[n], t[n+1]] that make it up.
    steps, shares : float64[R, L]
        R_j - R_{j-1} and the time average of p_j, of each replicate.
    """

    place: dict[str, Any]
    k: int
    levels: list[int]
    inside: np.ndarray
    steps: np.ndarray
    shares: np.ndarray


def well_inside(mode: np.ndarray, t: np.ndarray, k: int, N: int) -> np.ndarray:
    """Return which intervals (t[n], t[n+1]] lie in mode k and at least `MARGIN` N^(-1/3) from every switch.

    Parameters
    ----------
    mode : int64[T]
        Lowest observation with mass on the time grid.
    t : float64[T]
        Times in mean service times, increasing.
    k, N : int
        The mode wanted; servers.

    Returns
    -------
    bool[T - 1]
    """
    margin = MARGIN * N ** (-1 / 3)
    switch = np.flatnonzero(np.diff(mode))  # it lies between this time and the next
    before, after = t[1:, None] + margin <= t[switch], t[:-1, None] - margin >= t[switch + 1]
    return (mode[1:] == k) & (before | after).all(axis=1)


def recursion_terms(
    sent: np.ndarray, occupancy: np.ndarray, t: np.ndarray, window: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return R_j - R_{j-1} and the time average of p_j over a window, of each replicate.

    The integral of p_j is trapezoidal: on a grid of step h it misses h²/12 times the change of p_j' over the window.

    Parameters
    ----------
    sent : int64[R, T, L]
        Jobs sent to observation j since the time before.
    occupancy : float64[R, T, L]
        Fraction p_j of servers with j jobs.
    t : float64[T]
        Times in mean service times, increasing.
    window : bool[T - 1]
        The intervals (t[n], t[n+1]] that make up the window, not all False.

    Returns
    -------
    steps, shares : float64[R, L]
    """
    jobs = sent[:, 1:][:, window].sum(axis=1)
    steps = np.diff(jobs / np.maximum(jobs.sum(axis=1, keepdims=True), 1), axis=1, prepend=0.0)
    means = (occupancy[:, 1:] + occupancy[:, :-1])[:, window] / 2
    return steps, np.average(means, axis=1, weights=np.diff(t)[window])


def windows(runs: xr.Dataset, policy: str) -> Iterator[Window]:
    """Yield the windows of a policy at the largest N that last `SHORTEST` or longer and have a level to look at.

    Parameters
    ----------
    runs : xarray.Dataset
        ``sent_by_observation`` and ``occupancy`` on (replicate, start, policy, N, d, λ, t, queue_length), and the
        variables of `dchoices.fluid_dispatch` for every start.
    policy : str
        Windows are those of the fluid path with memory, whatever the policy.
    """
    N, t = int(runs.N.max()), runs.t.values
    axes = ("start", "d", "λ")
    for start, d, lam in itertools.product(*(runs[axis].values.tolist() for axis in axes)):
        place = {"start": start, "N": N, "d": d, "λ": lam}
        run = runs.sel(place | {"policy": policy}).transpose("replicate", "t", "queue_length")
        rise = np.diff(run.fluid_dispatch, axis=1, prepend=0.0)
        for k in np.unique(run["mode"].values).tolist():
            inside = well_inside(run["mode"].values, t, k, N)
            if np.diff(t)[inside].sum() < SHORTEST:
                continue
            limit = rise[1:][inside].mean(axis=0) / d  # of p_j
            if levels := [j for j in range(1, k) if limit[j] >= LEAST]:
                terms = recursion_terms(run.sent_by_observation.values, run.occupancy.values, t, inside)
                yield Window(place, k, levels, inside, *terms)


def steady_levels(lam: float, d: int) -> tuple[int, list[int]]:
    """Return k at the fixed point, and the j >= 1 at which it holds at least `LEAST` of the servers."""
    pmf = fixed_point(lam, d).queue_length_pmf.values
    return len(pmf) - 2, [j for j in range(1, len(pmf)) if pmf[j] >= LEAST]
