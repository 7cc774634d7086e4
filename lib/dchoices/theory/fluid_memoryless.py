"""Fluid models of the policies without memory: SQ(d), JSQ and JIQ.

A policy is the fraction r_i(p) of jobs that it sends to queues of length i:

    p_i' = p_{i+1} - p_i [i >= 1] + λ (r_{i-1} - r_i),

integrated as tails s_i = p_i + p_{i+1} + …, s_i' = λ r_{i-1} - p_i. SQ(d) is smooth (Mitzenmacher; Vvedenskaya et
al.). JSQ and JIQ are hybrid systems, as the model with memory is: the mode k is the lowest queue length with mass (for
JIQ 0 or 1). A server that falls from level k to the empty one below is sent a job at once, while p_k <= λ. The mode
goes up when level k is empty and p_{k+1} <= λ, down when p_k exceeds λ.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.integrate import solve_ivp

from dchoices import validation
from dchoices.theory.fluid_result import FluidPath

FIRST_LEVELS = 32  # doubled until the last one stays negligible
MOST_LEVELS = 500  # that a path may come to: the cost grows with their square or more
NEGLIGIBLE = 1e-12  # "p_k > 0" means above this, "p_k > λ" by more than this
MAX_SWITCHES = 1000

Dispatch = Callable[[np.ndarray, int, float, int], np.ndarray]  # (p, mode, λ, d) -> r


def _shortest_of_d(p: np.ndarray, mode: int, lam: float, d: int) -> np.ndarray:
    return -np.diff(np.append(p[::-1].cumsum()[::-1], 0.0) ** d)


def _join_shortest(p: np.ndarray, k: int, lam: float, d: int) -> np.ndarray:
    r = np.zeros_like(p)
    r[k] = 1.0
    if k:
        r[k - 1 : k + 1] = p[k] / lam, 1 - p[k] / lam
    return r


def _join_idle(p: np.ndarray, k: int, lam: float, d: int) -> np.ndarray:
    if k == 0:
        return _join_shortest(p, 0, lam, d)
    r = (1 - p[1] / lam) * p
    r[0] = p[1] / lam
    return r


Event = Callable[[float, np.ndarray], float]

# By policy: the fractions, and the highest mode.
MODELS: dict[str, tuple[Dispatch, int]] = {
    "sq": (_shortest_of_d, 0),
    "jsq": (_join_shortest, 10**9),
    "jiq": (_join_idle, 1),
}


def memoryless_path(
    policy: str, start: np.ndarray, d: int, lam: float, grid: np.ndarray, tolerance: float
) -> FluidPath:
    """Return the path of a policy from the fractions start[i] on the time grid.

    Raises
    ------
    ValueError
        If the path comes to too many levels.
    RuntimeError
        If the integration fails or switches without end.
    """
    # With one probe queues grow as those of M/M/1: at the most by the square root of the time, and as far as they are
    # in equilibrium.
    growth = min(8 * math.sqrt(2 * grid[-1]), math.log(NEGLIGIBLE) / math.log(lam)) if d == 1 and policy == "sq" else 0
    if (reached := len(start) + growth) > MOST_LEVELS:
        raise ValueError(
            f"lam = {lam!r}, start and t: the path comes to about {reached:.0f} queue lengths, must be at most "
            f"{MOST_LEVELS}"
        )
    validation.numbers("t", 3 * grid.size * (FIRST_LEVELS + 2 * reached))
    levels = max(FIRST_LEVELS, len(start) + 2)
    while True:
        path = _path(policy, np.pad(start, (0, levels - len(start))), d, lam, grid, tolerance)
        if path.occupancy[:, -1].max() <= NEGLIGIBLE:
            return path
        levels *= 2


def _path(policy: str, p: np.ndarray, d: int, lam: float, grid: np.ndarray, tolerance: float) -> FluidPath:
    dispatch, highest = MODELS[policy]
    k = min(int(np.flatnonzero(p > NEGLIGIBLE)[0]), highest)
    if k and p[k] > lam:
        k -= 1
    time, tail, steps = 0.0, p[::-1].cumsum()[::-1][1:], 0
    parts: list[np.ndarray] = []
    modes: list[int] = []
    switches: list[tuple[float, int]] = []
    while len(modes) < grid.size:
        left = grid[len(modes) :]
        rise, fall = _switches(k, lam, highest)
        end = left[-1] if left[-1] > time else time + 1.0  # solve_ivp returns nothing for an interval of length zero
        solution = solve_ivp(
            lambda _, s, k=k: lam * dispatch(_pmf(s), k, lam, d)[:-1] - _pmf(s)[1:],
            (time, end), tail, "LSODA", left, events=(rise, fall), rtol=tolerance / 10, atol=tolerance / 1e4,
        )  # fmt: skip
        if not solution.success or len(switches) == MAX_SWITCHES:
            raise RuntimeError(f"fluid path of {policy} at λ = {lam}, d = {d}, t = {time}: {solution.message}")
        parts.append(np.reshape(solution.y, (tail.size, -1)).T)  # an empty list if no time was reached
        modes += [k] * np.size(solution.t)
        steps += solution.nfev
        for change, times, states in zip((1, -1), solution.t_events, solution.y_events, strict=True):
            if times.size:
                k, time, tail = k + change, float(times[0]), states[0]
                switches.append((time, k))
    occupancy = _pmf(np.concatenate(parts))
    sent = np.array([dispatch(row, mode, lam, d) for row, mode in zip(occupancy, modes, strict=True)])
    return FluidPath(occupancy, sent, sent, np.array(modes), switches, steps)


def _pmf(tail: np.ndarray) -> np.ndarray:
    """Return p_i = s_i - s_{i+1} with s_0 = 1."""
    return 0.0 - np.diff(tail, axis=-1, prepend=1.0, append=0.0)  # no minus zeros


def _switches(k: int, lam: float, highest: int) -> tuple[Event, Event]:
    """Return the events, which fall through zero, of the mode going up and down."""

    def rise(_: float, s: np.ndarray) -> float:
        p = _pmf(s)
        return max(p[k] - NEGLIGIBLE, p[k + 1] - lam) if k < highest else 1.0

    def fall(_: float, s: np.ndarray) -> float:
        return lam + NEGLIGIBLE - _pmf(s)[k] if k else 1.0

    for event in (rise, fall):
        event.terminal, event.direction = True, -1.0  # type: ignore[attr-defined]
    return rise, fall
