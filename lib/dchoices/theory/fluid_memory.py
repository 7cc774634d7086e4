"""The fluid model of SQ(d) with memory: smooth inside a mode, switching at located events.

The mode k is the lowest observation with mass. It goes up when that class is empty and S_{k+1} <= 1, down when S_k
exceeds 1 (S_k = d Σ_{i<k} (k-i) p_i, the share of the flow that queues just found below k absorb). The integration
inside a mode is in `dchoices.kernels.hybrid`.
"""

from __future__ import annotations

import numpy as np

from dchoices.kernels import hybrid
from dchoices.theory.closed_forms import queue_bound
from dchoices.theory.fluid_result import FluidPath

# Some ten are what a start needs. Where S_k -> 1 from below, at an integer argument of the bound, the error of long
# steps makes one in about a hundred mean service times, which does no harm; more is an error, not a result.
MAX_SWITCHES = 10_000
# Error allowed in a step, in units of that of the path: slow relaxation near λ = 1 adds up thousands of steps.
STEP_TOLERANCE = 1e-4


def _with_levels(x: np.ndarray, levels: int) -> np.ndarray:
    """Return x[..., i, j], or [..., j], with at least so many levels."""
    return np.pad(x, [(0, 0)] * (x.ndim - 2) + [(0, max(0, levels - x.shape[-1]))] * 2)


def _rise(x: np.ndarray, k: int) -> tuple[np.ndarray, int]:
    """Go to mode k+1; what is left of class k, a rounding error, goes where dispatch would send it."""
    x = _with_levels(x, k + 3)  # dispatch from class k+1 needs class k+2
    x[1 : k + 2, k + 1] += x[: k + 1, k]
    x[:, k] = 0.0
    return x, k + 1


def _first_mode(x: np.ndarray, d: int) -> tuple[np.ndarray, int]:
    """Go up from mode 0 to the first that does not go up at once."""
    k = 0
    while hybrid.room(x, k, d, False)[0] <= 0:
        x, k = _rise(x, k)
    return x, k


def memory_path(start: np.ndarray, d: int, lam: float, grid: np.ndarray, tolerance: float) -> FluidPath:
    """Return the path from the fractions start[i, j] on the time grid.

    Raises
    ------
    RuntimeError
        If the integration makes no progress, or switches without end.
    """
    x, k = _first_mode(_with_levels(start, max(len(start), queue_bound(lam, d)) + 1), d)
    time, steps = 0.0, 0
    parts: list[np.ndarray] = []
    modes: list[int] = []
    switches: list[tuple[float, int]] = []
    while len(modes) < grid.size:
        states = np.empty((grid.size - len(modes), *x.shape))
        end, time, reached, taken = hybrid.integrate_mode(
            x, k, d, lam, time, grid[len(modes) :], tolerance * STEP_TOLERANCE, states
        )
        parts.append(states[:reached])
        modes += [k] * reached
        steps += taken
        # Steps are counted for each call: one that reached a time goes on in another.
        if (end == hybrid.STALLED and not reached) or len(switches) == MAX_SWITCHES:
            raise RuntimeError(
                f"fluid path at λ = {lam}, d = {d}: stopped at t = {time} in mode {k} after {steps} steps "
                f"and {len(switches)} switches"
            )
        if end == hybrid.RISE:
            x, k = _rise(x, k)
        elif end == hybrid.FALL:
            k -= 1
        if end in (hybrid.RISE, hybrid.FALL):
            switches.append((time, k))
    levels = max(part.shape[1] for part in parts)
    states = np.concatenate([_with_levels(part, levels) for part in parts])
    by_observation, by_queue = np.empty((2, grid.size, levels))
    for x, k, observed, queued in zip(states, modes, by_observation, by_queue, strict=True):
        hybrid.dispatch_fractions(x, k, d, lam, observed, queued)
    return FluidPath(states.sum(axis=2), by_queue, by_observation, np.array(modes), switches, steps, states)
