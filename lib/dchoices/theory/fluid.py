"""The fluid model as a hybrid system: smooth inside a mode, switching at located events.

The mode k is the lowest observation with mass. It goes up when that class is empty and S_{k+1} <= 1, down when S_k
reaches 1 (S_k = d Σ_{i<k} (k-i) p_i, the share of the flow that queues just found below k absorb).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import xarray as xr
from scipy.integrate import LSODA, OdeSolver, Radau, solve_ivp
from scipy.optimize import brentq

from dchoices import registry, starts, validation
from dchoices.kernels.drift import memory_drift, memoryless_drift, waiting_jobs
from dchoices.theory.closed_forms import queue_bound
from dchoices.variables import describe

# "y_j > 0" means y_j above this; k goes down only when S_k exceeds 1 by as much, so that rounding cannot make the
# mode chatter where S_k -> 1, as it does at an integer argument of the bound.
NEGLIGIBLE = 1e-12
TOLERANCES = {"rtol": 1e-9, "atol": 1e-12}
MAX_SWITCHES = 100  # far above what any start needs; a chattering integration is an error, not a result
MEMORYLESS_LEVELS = 32  # to begin with; doubled until the last one stays negligible


def _pad(x: np.ndarray, levels: int) -> np.ndarray:
    return np.pad(x, (0, max(0, levels - len(x))))


def _can_rise(x: np.ndarray, k: int, d: int) -> float:
    """Return a number that is positive while the mode stays at k: class k has mass, or its inflow beats dispatch."""
    return max(x[:, k].sum() - NEGLIGIBLE, d * waiting_jobs(x, k + 1) - 1)


def _rise(x: np.ndarray, k: int) -> tuple[np.ndarray, int]:
    """Go to mode k+1; what is left of class k, a rounding error, goes where dispatch would send it."""
    x = _pad(x, k + 3)
    x[1 : k + 2, k + 1] += x[: k + 1, k]
    x[:, k] = 0.0
    return x, k + 1


def _integrate_mode(
    x: np.ndarray, k: int, d: int, lam: float, begin: float, times: np.ndarray
) -> tuple[np.ndarray, float, np.ndarray, int]:
    """Integrate inside mode k from `begin` to the next switch or the last of `times`.

    Returns the states at those `times` that were reached, the time and state at the end, and the change of k there.
    Steps are taken one by one: at a switch both event functions are zero up to rounding, where the sign test of
    `solve_ivp` fails.
    """
    shape, drift = x.shape, np.empty(x.shape)

    def rhs(_: float, flat: np.ndarray) -> np.ndarray:
        memory_drift(flat.reshape(shape), k, d, lam, NEGLIGIBLE, drift)
        return drift.ravel().copy()

    switches = {
        +1: lambda flat: _can_rise(flat.reshape(shape), k, d),
        -1: lambda flat: 1 + NEGLIGIBLE - d * waiting_jobs(flat.reshape(shape), k) if k else 1.0,
    }
    solver: OdeSolver = LSODA(rhs, begin, x.ravel(), times[-1], **TOLERANCES)
    reached: list[np.ndarray] = []
    change, end, flat = 0, begin, x.ravel()
    while not change and end < times[-1]:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "lsoda:")  # it is dealt with on the next lines
            failure = solver.step()
        if failure and isinstance(solver, LSODA):
            # Close to the emptying of a class, where λR_k/y_k grows without bound, LSODA can give up; Radau is slower.
            solver = Radau(rhs, end, flat, times[-1], **TOLERANCES)
            continue
        if failure:
            raise RuntimeError(f"fluid path at λ = {lam}, d = {d}, t = {end}: {failure}")
        path, begin, end, flat = solver.dense_output(), end, solver.t, solver.y.copy()
        for direction, positive in switches.items():
            if positive(path(end)) <= 0:
                change = direction
                if positive(path(begin)) > 0:
                    end = brentq(lambda t: positive(path(t)), begin, end, xtol=1e-14)  # noqa: B023
                else:
                    end = begin
        passed = times[len(reached) :]
        reached.extend(path(t).reshape(shape) for t in passed[passed <= end])
    return np.array(reached), end, path(end).reshape(shape).copy(), change


def _memory_path(
    start: np.ndarray, d: int, lam: float, grid: np.ndarray
) -> tuple[np.ndarray, np.ndarray, list[tuple[float, int]]]:
    """Return the states float64[t, i, j], the modes int[t] and the switches (time, new mode) of a path."""
    x, k = _pad(start, max(len(start), queue_bound(lam, d)) + 2), 0
    while _can_rise(x, k, d) <= 0:
        x, k = _rise(x, k)
    first = grid[grid == 0]
    time, states, modes, switches = 0.0, [x] * first.size, [k] * first.size, []
    while len(modes) < grid.size:
        reached, time, x, change = _integrate_mode(x, k, d, lam, time, grid[len(modes) :])
        states.extend(reached)
        modes.extend([k] * len(reached))
        if change > 0:
            x, k = _rise(x, k)
        else:
            k += change
        if change:
            switches.append((time, k))
        if len(switches) > MAX_SWITCHES:
            raise RuntimeError(f"fluid path at λ = {lam}, d = {d}: more than {MAX_SWITCHES} switches by t = {time}")
    levels = max(len(state) for state in states)
    return np.stack([_pad(state, levels) for state in states]), np.array(modes), switches


def _memory_dispatch(states: np.ndarray, modes: np.ndarray, d: int) -> np.ndarray:
    """Return R_j = S_{j+1} - S_j for j < k and R_k = 1 - S_k, float64[t, j]."""
    absorbed = np.array([[d * waiting_jobs(x, j) for j in range(len(x) + 1)] for x in states])
    dispatch = np.diff(absorbed, axis=1)
    for row, k in enumerate(modes):
        dispatch[row, k], dispatch[row, k + 1 :] = 1 - absorbed[row, k], 0.0
    return dispatch


def _memoryless_path(start: np.ndarray, d: int, lam: float, grid: np.ndarray) -> np.ndarray:
    """Return the occupancy float64[t, i] of SQ(d), on as many levels as it needs."""
    levels = max(MEMORYLESS_LEVELS, len(start))
    while True:
        drift = np.empty(levels)

        def rhs(_: float, s: np.ndarray, drift: np.ndarray = drift) -> np.ndarray:
            memoryless_drift(s, d, lam, drift)
            return drift.copy()

        tail = np.zeros(levels)
        tail[: len(start) - 1] = start[::-1].cumsum()[::-1][1:]
        solution = solve_ivp(rhs, (0.0, grid[-1] or 1.0), tail, "LSODA", grid, lband=1, uband=1, **TOLERANCES)
        if not solution.success:
            raise RuntimeError(f"fluid path of SQ(d) at λ = {lam}, d = {d}: {solution.message}")
        if solution.y[-1].max() <= NEGLIGIBLE:
            break
        levels *= 2
    tails = np.vstack([np.ones(grid.size), solution.y, np.zeros(grid.size)])
    return -np.diff(tails, axis=0).T


def fluid_path(lam: float, d: int, t: Any, start: Any = "empty", policy: str = "sq-memory") -> xr.Dataset:
    """Solve the fluid model on a time grid.

    Parameters
    ----------
    lam : float
        Load λ in (0, 1).
    d : int
        Probes per job, >= 1.
    t : float64[T]
        Times in mean service times, >= 0 and increasing.
    start : {"empty", "fixed-point"} or array_like
        Initial fractions X[i, j] at time 0.
    policy : {"sq-memory", "sq"}
        Dispatching policy.

    Returns
    -------
    xarray.Dataset
        ``occupancy`` (t, queue_length); with memory also ``state`` (t, i, j), ``dispatch`` (t, j), the fraction of
        jobs sent to observation j, and ``mode`` (t), the lowest observation with mass. Switches are in the
        attributes ``switch_times`` and ``switch_modes``. Absolute error about 1e-8.

    Raises
    ------
    ValueError
        If an argument is out of range.
    RuntimeError
        If the integration fails.
    """
    lam, d, grid = validation.load(lam), validation.probes(d), validation.time_grid(t)
    initial = starts.fractions(start, registry.get(policy), lam, d)
    attrs: dict[str, Any] = {"lam": lam, "d": d, "policy": policy, "start": starts.label(start)}
    if policy == "sq":
        occupancy = _memoryless_path(initial, d, lam, grid)
        path = xr.Dataset(
            {"occupancy": (("t", "queue_length"), occupancy)},
            coords={"t": grid, "queue_length": np.arange(occupancy.shape[1])},
            attrs=attrs,
        )
        return describe(path)
    states, modes, switches = _memory_path(initial, d, lam, grid)
    levels = np.arange(states.shape[1])
    path = xr.Dataset(
        {
            "occupancy": (("t", "queue_length"), states.sum(axis=2)),
            "state": (("t", "i", "j"), states),
            "dispatch": (("t", "j"), _memory_dispatch(states, modes, d)),
            "mode": ("t", modes),
        },
        coords={"t": grid, "queue_length": levels, "i": levels, "j": levels},
        attrs={
            **attrs,
            "switch_times": [time for time, _ in switches],
            "switch_modes": [k for _, k in switches],
        },
    )
    return describe(path)
