"""The phase portrait of the fluid model: where paths go, in the plane of a few totals of their state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from dchoices import validation
from dchoices.theory.fluid import fluid_path
from dchoices.variables import describe
from dchoices.wording import show


def phase_portrait(
    lam: float | Sequence[float], d: int | Sequence[int], t: Any, starts: Mapping[str, Any]
) -> xr.Dataset:
    """Solve the fluid model with memory from several starts and keep what a plane can show of the state.

    Parameters
    ----------
    lam, d : scalar or list
        Loads in (0, 1), probes per job >= 1.
    t : float64[T]
        As for `fluid_path`.
    starts : mapping of str
        Each start, as for `fluid_path`, under its name.

    Returns
    -------
    xarray.Dataset
        On (start, d, λ, t): ``busy_share`` 1 - p_0, ``waiting_jobs`` Σ_{i>=1} (i-1) p_i per server, ``known_idle`` y_0
        and ``mode``.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    loads, ds = validation.several("lam", lam, validation.load), validation.several("d", d, validation.probes)
    grid = validation.time_grid(t)
    validation.mapping("starts", starts, "name to a start")
    if not all(isinstance(name, str) for name in starts):
        raise ValueError(f"starts = {show(starts)}: must have names as keys")
    validation.points("starts, lam, d and t", len(starts) * len(ds) * len(loads) * (grid.size + validation.PATH))
    shape = (len(starts), len(ds), len(loads), grid.size)
    busy, waiting, known = np.empty((3, *shape))
    mode = np.empty(shape, np.int64)
    for a, start in enumerate(starts.values()):
        for b, probes in enumerate(ds):
            for c, load in enumerate(loads):
                path = fluid_path(load, probes, grid, start)
                occupancy = path.occupancy.values
                busy[a, b, c] = 1 - occupancy[:, 0]
                waiting[a, b, c] = occupancy[:, 2:] @ np.arange(1, occupancy.shape[1] - 1)
                known[a, b, c] = path.state.values[:, 0, 0]
                mode[a, b, c] = path["mode"]
    dims = ("start", "d", "λ", "t")
    variables = {"busy_share": busy, "waiting_jobs": waiting, "known_idle": known, "mode": mode}
    return describe(
        xr.Dataset(
            {name: (dims, values) for name, values in variables.items()},
            coords={"start": list(starts), "d": ds, "λ": loads, "t": grid},
        )
    )
