"""Fluid paths: the limit of the occupancy as N grows, under any policy that has one."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from dchoices import registry, starts, validation
from dchoices.theory.closed_forms import queue_bound
from dchoices.theory.fluid_memory import memory_path
from dchoices.theory.fluid_memoryless import memoryless_path
from dchoices.variables import describe
from dchoices.wording import show

# Below, the thresholds that say what counts as empty (1e-12) and as thin (1e-10) are no longer small.
FINEST, COARSEST = 1e-10, 1e-3
MOST_LEVELS = 100  # a path costs their square
LONGEST = 1e5  # mean service times; see LONG_STEP in `dchoices.kernels.hybrid`


def fluid_path(
    lam: float, d: int, t: Any, start: Any = "empty", policy: str = "sq-memory", tolerance: float = 1e-8
) -> xr.Dataset:
    """Solve the fluid model on a time grid.

    Parameters
    ----------
    lam : float
        Load λ in (0, 1).
    d : int
        Probes per job, >= 1; 0 for a policy without a d.
    t : float64[T]
        Times in mean service times, >= 0, increasing, at most 10^5.
    start : {"empty", "fixed-point"} or array_like
        Initial fractions X[i, j] at time 0, or another name that `simulate` knows.
    policy : str
        One of `policies` with a fixed number of probes that is not a user's. Probing with and without replacement have
        one limit.
    tolerance : float
        Absolute error aimed at in every output, in [1e-10, 1e-3].

    Returns
    -------
    xarray.Dataset
        ``occupancy`` (t, queue_length); the fractions of jobs ``dispatch`` (t, j) by the observation of their server
        (without memory: its true queue), ``dispatch_by_queue`` (t, queue_length) and ``dispatch_to_idle`` (t);
        ``mean_response_time`` (t) of a job that arrives then, Σ (i+1)·(share sent to queue i); ``mode`` (t), the lowest
        observation, or queue, with mass. With memory also ``state`` (t, i, j). In the attributes the switches
        ``switch_times`` and ``switch_modes``, and ``steps``, what the integration took.

    Raises
    ------
    ValueError
        If an argument is out of range.
    RuntimeError
        If the integration makes no progress.
    """
    lam, grid = validation.load(lam), validation.time_grid(t)
    chosen = registry.get(policy)
    if not chosen.fluid:
        known = [name for name in registry.policies() if registry.get(name).fluid]
        raise ValueError(f"policy = {show(policy)}: has no fluid model, must be one of {', '.join(known)}")
    [d] = registry.numbers_of_probes([chosen], [validation.MAX_SERVERS], validation.integer("d", d, 0))
    if grid[-1] > LONGEST:
        raise ValueError(f"t = {grid[-1]:g}: must be at most {LONGEST:g}")
    if not FINEST <= (precision := validation.real(tolerance)) <= COARSEST:
        raise ValueError(f"tolerance = {show(tolerance)}: must be from {FINEST:g} to {COARSEST:g}")
    probes = d if chosen.takes_d else chosen.probes(1, d)
    initial = starts.fractions(start, chosen, lam, probes)
    if chosen.memory:
        if len(initial) > MOST_LEVELS:
            raise ValueError(
                f"start with {len(initial)} levels: must be at most {MOST_LEVELS} for a fluid path, whose cost "
                "grows with their square"
            )
        validation.numbers("t", grid.size * (2 + max(len(initial), queue_bound(lam, probes))) ** 2)
        path = memory_path(initial, probes, lam, grid, precision)
    else:
        path = memoryless_path(chosen.fluid, initial, probes, lam, grid, precision)
    levels = np.arange(path.occupancy.shape[1])
    by_level = {"t": grid, "queue_length": levels, "j": levels}
    outputs: dict[str, Any] = {
        "occupancy": (("t", "queue_length"), path.occupancy),
        "dispatch": (("t", "j"), path.by_observation),
        "dispatch_by_queue": (("t", "queue_length"), path.by_queue),
        "dispatch_to_idle": ("t", path.by_queue[:, 0]),
        "mean_response_time": ("t", path.by_queue @ (levels + 1.0)),
        "mode": ("t", path.modes),
    }
    if path.states is not None:
        outputs["state"], by_level["i"] = (("t", "i", "j"), path.states), levels
    attrs = {
        "lam": lam,
        "d": d,
        "policy": policy,
        "start": starts.label(start),
        "tolerance": precision,
        "switch_times": [time for time, _ in path.switches],
        "switch_modes": [k for _, k in path.switches],
        "steps": path.steps,
    }
    return describe(xr.Dataset(outputs, coords=by_level, attrs=attrs))
