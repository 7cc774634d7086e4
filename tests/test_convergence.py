"""The distance between simulated trajectories and fluid paths."""

import dchoices as dc
import numpy as np
import pytest
import xarray as xr


def simulated(occupancy):
    """One replicate, N, d and λ; occupancy on (t, queue_length)."""
    values = np.array(occupancy)[None, None, None, None]
    coords = {"replicate": [0], "N": [10], "d": [2], "λ": [0.5], "t": [0.0, 1.0, 2.0], "queue_length": [0, 1]}
    return xr.Dataset({"occupancy": (tuple(coords), values)}, coords=coords)


def fluid(occupancy, d=(2,), t=(0.0, 1.0, 2.0)):
    coords = {"d": list(d), "λ": [0.5], "t": list(t), "queue_length": [0, 1]}
    values = np.broadcast_to(np.array(occupancy)[None, None], (len(d), 1, 3, 2))
    return xr.Dataset({"occupancy": (tuple(coords), values)}, coords=coords)


def test_it_is_the_largest_total_variation_over_time():
    path = [[1.0, 0.0], [0.5, 0.5], [0.4, 0.6]]
    run = [[1.0, 0.0], [0.2, 0.8], [0.35, 0.65]]
    assert dc.sup_distance(simulated(run), fluid(path)).item() == pytest.approx(0.3)
    assert dc.sup_distance(simulated(path), fluid(path)).item() == 0


def test_axes_are_matched_by_name_and_mismatches_are_refused():
    path = [[1.0, 0.0], [0.5, 0.5], [0.4, 0.6]]
    turned = fluid(path).transpose("queue_length", "t", "λ", "d")
    assert dc.sup_distance(simulated(path), turned).item() == 0
    with pytest.raises(ValueError, match=r"^t:"):
        dc.sup_distance(simulated(path), fluid(path, t=(0.0, 1.0, 3.0)))
    with pytest.raises(ValueError, match=r"^d:"):
        dc.sup_distance(simulated(path), fluid(path, d=(2, 3)))


def test_fluid_paths_stack_single_paths():
    grid = [0.0, 1.0, 4.0]
    paths = dc.fluid_paths([0.4, 0.9], [1, 2], grid, start="stale-2")
    for d in (1, 2):
        for lam in (0.4, 0.9):
            single = dc.fluid_path(lam, d, grid, start="stale-2")
            assert dc.total_variation(paths.occupancy.sel(d=d, λ=lam).values, single.occupancy.values).max() == 0
