"""Fluid paths on the product of loads and probes, and how far simulated trajectories are from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from dchoices import starts, validation
from dchoices.statistics import total_variation
from dchoices.theory.closed_forms import queue_bound
from dchoices.theory.fluid import fluid_path
from dchoices.variables import describe
from dchoices.wording import show


def fluid_paths(
    lam: float | Sequence[float],
    d: int | Sequence[int],
    t: Any,
    start: Any = "empty",
    policy: str = "sq-memory",
) -> xr.Dataset:
    """Solve the fluid model on the product of lists of loads and probes.

    Parameters
    ----------
    lam, d : scalar or list
        Loads in (0, 1), probes per job >= 1.
    t, start, policy
        As for `fluid_path`.

    Returns
    -------
    xarray.Dataset
        ``occupancy`` (d, λ, t, queue_length), padded with zeros to a common length.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    return _on_product(lam, d, t, start, policy, occupancy="occupancy")


def fluid_dispatch(lam: float | Sequence[float], d: int | Sequence[int], t: Any, start: Any = "empty") -> xr.Dataset:
    """Return where the jobs of SQ(d) with memory go along fluid paths, on the product of loads and probes.

    Parameters
    ----------
    lam, d : scalar or list
        Loads in (0, 1), probes per job >= 1.
    t, start
        As for `fluid_path`.

    Returns
    -------
    xarray.Dataset
        ``fluid_dispatch`` (d, λ, t, queue_length), the fraction R_j of jobs sent to observation j, padded with zeros to
        a common length, and ``mode`` (d, λ, t), the lowest observation k with mass.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    return _on_product(lam, d, t, start, "sq-memory", fluid_dispatch="dispatch", mode="mode")


def _on_product(lam: Any, d: Any, t: Any, start: Any, policy: str, **outputs: str) -> xr.Dataset:
    """Return outputs of `fluid_path`, by their new names, on (d, λ, t) and, padded with zeros, queue_length."""
    loads = validation.several("lam", lam, validation.load)
    ds = validation.several("d", d, validation.probes)
    grid = validation.time_grid(t)
    validation.points("lam and d", len(ds) * len(loads), validation.PATH)
    levels = 2 + max(starts.levels(start), queue_bound(max(loads), min(ds)))
    validation.numbers("lam, d and t", len(ds) * len(loads) * grid.size * levels**2)
    paths = [[fluid_path(x, probes, grid, start, policy) for x in loads] for probes in ds]
    levels = max(path.sizes["queue_length"] for row in paths for path in row)

    def values(output: str) -> tuple[tuple[str, ...], np.ndarray]:
        arrays = [[path[output].values for path in row] for row in paths]
        padded = [[np.pad(x, [(0, 0), (0, levels - x.shape[-1])][: x.ndim]) for x in row] for row in arrays]
        return ("d", "λ", "t", "queue_length")[: 2 + arrays[0][0].ndim], np.array(padded)

    coords = {"d": ds, "λ": loads, "t": grid, "queue_length": np.arange(levels)}
    return describe(xr.Dataset({name: values(output) for name, output in outputs.items()}, coords))


def sup_distance(simulated: xr.Dataset, fluid: xr.Dataset) -> xr.DataArray:
    """Return sup_t ½ Σ_i |p_i^N(t) - p_i(t)| on (replicate, N, d, λ).

    Parameters
    ----------
    simulated : xarray.Dataset
        From `simulate`.
    fluid : xarray.Dataset
        From `fluid_paths`, on as many d and λ and the same times; its d may differ, which is how a control is made.

    Raises
    ------
    ValueError
        If the two are not on the same loads and times.
    """
    dims = {"replicate", "N", "d", "λ", "t", "queue_length"}
    for name, dataset, needed in (("simulated", simulated, dims), ("fluid", fluid, dims - {"replicate", "N"})):
        there = set(dataset["occupancy"].dims) if isinstance(dataset, xr.Dataset) and "occupancy" in dataset else set()
        if there != needed or not all(dim in dataset.indexes for dim in needed):
            raise ValueError(
                f"{name} = {show(dataset)}: must be a dataset with occupancy on {', '.join(sorted(needed))}"
            )
    for dim in ("λ", "t"):
        if not simulated.indexes[dim].equals(fluid.indexes[dim]):
            raise ValueError(f"{dim}: simulation and fluid path must share it")
    if simulated.sizes["d"] != fluid.sizes["d"]:
        raise ValueError(f"d: {simulated.sizes['d']} values simulated, {fluid.sizes['d']} fluid paths, must be as many")
    fluid = fluid.transpose("d", "λ", "t", "queue_length")
    occupancy = simulated.occupancy.transpose("replicate", "N", "d", "λ", "t", "queue_length")
    distance = total_variation(occupancy.values, fluid.occupancy.values[None, None]).max(axis=-1)
    return xr.DataArray(
        distance,
        dims=("replicate", "N", "d", "λ"),
        coords={k: simulated[k] for k in ("replicate", "N", "d", "λ")},
    )
