"""Files: the registry is kept, damage is found, merges refuse what does not fit."""

import json
import sys

import h5py
import numpy as np
import pytest
import xarray as xr
from dchoices import datasets


def sample(d=(2,), levels=3):
    values = np.zeros((len(d), 2, 2, levels))
    values[..., 0] = 0.25
    values[..., 1] = 0.75
    return xr.Dataset(
        {"occupancy": (("d", "λ", "t", "queue_length"), values)},
        coords={"d": list(d), "λ": [0.1 + 0.2, 0.9], "t": [0.0, 1.0], "queue_length": np.arange(levels)},
        attrs={"title": "test"},
    )


def test_round_trip_keeps_values_and_describes_everything(tmp_path):
    datasets.write(sample(), tmp_path / "a" / "x.nc", {"commit": "abc"})
    back = datasets.read(tmp_path / "a" / "x.nc")
    xr.testing.assert_equal(back, sample())
    assert back.attrs["commit"] == "abc"
    assert all(back[name].attrs["units"] and back[name].attrs["description"] for name in back.variables)
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["x.nc"]


def test_content_hash_ignores_attributes_and_sees_values_names_and_types():
    base = sample()
    digest = datasets.content_hash(base)
    assert datasets.content_hash(base.assign_attrs(title="other")) == digest
    changed = base.copy(deep=True)
    changed.occupancy[0, 0, 0, 0] = np.nextafter(0.25, 1)
    assert datasets.content_hash(changed) != digest
    assert datasets.content_hash(base.astype(np.float32)) != digest
    assert datasets.content_hash(base.rename(occupancy="occupancy_tail")) != digest


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda ds: ds.rename(occupancy="guess"), "'guess' is not registered"),
        (lambda ds: ds.transpose("t", "λ", "d", "queue_length"), "has dimensions"),
        (lambda ds: ds.where(ds["λ"] < 0.5), "NaN"),
        (lambda ds: ds.drop_vars("λ"), "'λ' is not registered or has no coordinate"),
        (lambda ds: ds.assign_coords({"λ": [0.5, 0.5]}), "holds a value twice"),
    ],
)
def test_what_does_not_fit_the_registry_is_not_written(tmp_path, change, message):
    with pytest.raises(datasets.DatasetError, match=message):
        datasets.write(change(sample()), tmp_path / "x.nc")
    assert not list(tmp_path.iterdir())


def ladder(absent=None):
    """Distances of three replicates, but for what `absent` tells of (replicate, N)."""
    values = np.full((3, 2, 1, 2), 0.5)
    coords = {"replicate": [0, 1, 2], "N": [10, 100], "d": [2], "λ": [0.4, 0.9]}
    ds = xr.Dataset({"sup_distance": (tuple(coords), values)}, coords=coords)
    return ds if absent is None else ds.where(~absent(ds))


def test_an_n_may_have_fewer_replicates_than_others(tmp_path):
    few = ladder(lambda ds: (ds.N == 100) & (ds.replicate > 1))
    datasets.write(few, tmp_path / "x.nc")
    xr.testing.assert_equal(datasets.read(tmp_path / "x.nc"), few)


@pytest.mark.parametrize(
    "absent",
    [
        lambda ds: (ds.N == 100) & (ds.replicate == 1),
        lambda ds: (ds.N == 100) & (ds.replicate >= 0),
        lambda ds: (ds.N == 100) & (ds.replicate > 1) & (ds["λ"] > 0.5),
    ],
    ids=["one in between", "all of an N", "part of a replicate"],
)
def test_other_gaps_among_replicates_are_refused(tmp_path, absent):
    with pytest.raises(datasets.DatasetError, match="NaN"):
        datasets.write(ladder(absent), tmp_path / "x.nc")


def test_damage_is_found(tmp_path):
    path = tmp_path / "x.nc"
    datasets.write(sample(), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(datasets.DatasetError, match=r"x\.nc"):
        datasets.read(path)
    other = sample()
    other.occupancy[:] = 0.5
    other.attrs["content_hash"] = datasets.content_hash(sample())
    other.to_netcdf(path, engine="h5netcdf")
    with pytest.raises(datasets.DatasetError, match="do not match their hash"):
        datasets.read(path)


def test_merge_joins_along_the_one_differing_dimension(tmp_path):
    datasets.write(
        sample((3,), levels=5), tmp_path / "3.nc", {"seed": 1, "part": "a", "parameters": '{"d": [3], "t_end": 1}'}
    )
    datasets.write(
        sample((1, 2)), tmp_path / "12.nc", {"seed": 1, "part": "b", "parameters": '{"d": [1, 2], "t_end": 1}'}
    )
    merged = datasets.merge([tmp_path / "3.nc", tmp_path / "12.nc"])
    assert merged.d.values.tolist() == [1, 2, 3]
    assert merged.sizes["queue_length"] == 5
    assert merged.occupancy.sum("queue_length").values == pytest.approx(1)
    assert merged.attrs["seed"] == 1
    assert "part" not in merged.attrs
    assert merged.attrs["parameters"] == '{"d": [3, 1, 2], "t_end": 1}'


def test_merge_refuses_repeats_and_mismatches(tmp_path):
    datasets.write(sample((1, 2)), tmp_path / "a.nc")
    datasets.write(sample((2, 3)), tmp_path / "b.nc")
    with pytest.raises(datasets.DatasetError, match="holds a value twice"):
        datasets.merge([tmp_path / "a.nc", tmp_path / "b.nc"])
    # 0.1 + 0.2 against 0.3: near is not equal, and an outer join would fill with NaN.
    datasets.write(sample((3,)).assign_coords({"λ": [0.3, 0.9]}), tmp_path / "c.nc")
    with pytest.raises(datasets.DatasetError, match="along one dimension, or in all combinations along several"):
        datasets.merge([tmp_path / "a.nc", tmp_path / "c.nc"])
    with pytest.raises(datasets.DatasetError, match="the same coordinates"):
        datasets.merge([tmp_path / "a.nc", tmp_path / "a.nc"])


def grid(d, lam, levels=3):
    """A dataset at some d and λ, with values that tell where they belong."""
    ds = sample(d, levels=levels).isel(λ=[0] * len(lam)).assign_coords(λ=lam)
    return ds.assign(occupancy=ds.occupancy * 0 + 10 * ds.d + ds["λ"])


def test_merge_joins_along_several_dimensions_whatever_the_order(tmp_path):
    parts = [((2,), [0.9], 5), ((1,), [0.3, 0.5], 3), ((2,), [0.3, 0.5], 4), ((1,), [0.9], 2)]
    for k, (d, lam, levels) in enumerate(parts):
        attrs = {"parameters": json.dumps({"d": d, "lam": lam}), "events": 1, "peak_memory_mb": 10 * d[0]}
        datasets.write(grid(d, lam, levels), tmp_path / f"{k}.nc", attrs)
    merged = datasets.merge([tmp_path / f"{k}.nc" for k in range(4)])
    whole = grid((1, 2), [0.3, 0.5, 0.9], 5)
    xr.testing.assert_equal(merged.isel(queue_length=[0, 1]), whole.isel(queue_length=[0, 1]))
    assert merged.sizes["queue_length"] == 5
    assert merged.attrs["events"] == 4
    assert merged.attrs["peak_memory_mb"] == 20
    assert json.loads(merged.attrs["parameters"]) == {"d": [2, 1], "lam": [0.9, 0.3, 0.5]}
    for some in ([0, 1, 2], [0, 1]):
        with pytest.raises(datasets.DatasetError, match="in all combinations along several, differ along d, λ"):
            datasets.merge([tmp_path / f"{k}.nc" for k in some])
    with pytest.raises(datasets.DatasetError, match="holds a value twice"):
        datasets.merge([tmp_path / f"{k}.nc" for k in (0, 1, 2, 3) * 2])


def test_a_dataset_opens_lazily_and_a_case_reads_what_it_holds(tmp_path, monkeypatch):
    """As the README has it, without dask: the file may be larger than memory."""
    loads, dims = [0.3, 2 / 3, 0.9], ("N", "d", "λ", "t", "queue_length")
    coords = {"N": [100, 1000], "d": [1, 2], "λ": loads, "t": np.arange(50.0), "queue_length": np.arange(30)}
    values = np.random.default_rng(1).random([len(coords[dim]) for dim in dims])
    datasets.write(
        xr.Dataset({"occupancy": (dims, values), "occupancy_std": (dims, values)}, coords), tmp_path / "x.nc"
    )
    read = []
    original = h5py.Dataset.__getitem__

    def counted(variable, *key, **options):
        found = original(variable, *key, **options)
        read.append((variable.name.strip("/"), np.size(found)))
        return found

    monkeypatch.setattr(h5py.Dataset, "__getitem__", counted)
    monkeypatch.setitem(sys.modules, "dask", None)
    with xr.open_dataset(tmp_path / "x.nc") as ds:
        case = ds.sel(N=1000, d=2, λ=0.9)
        assert {name for name, _ in read} <= set(dims), "values are read before they are asked for"
        np.testing.assert_array_equal(case.occupancy.values, values[1, 1, 2])
        assert [entry for entry in read if entry[0] not in dims] == [("occupancy", 50 * 30)]
        for k, lam in enumerate(loads):  # as Python prints it
            assert ds.occupancy.sel(N=100, d=1, λ=float(repr(lam)), t=0, queue_length=0) == values[0, 0, k, 0, 0]


def test_command_line(tmp_path, capsys):
    datasets.write(sample((1,)), tmp_path / "a.nc")
    datasets.write(sample((2,)), tmp_path / "b.nc")
    assert datasets.main([str(tmp_path / name) for name in ("out.nc", "a.nc", "b.nc")]) == 0
    assert datasets.read(tmp_path / "out.nc").d.values.tolist() == [1, 2]
    assert datasets.main([str(tmp_path / "out2.nc"), str(tmp_path / "none.nc")]) == 1
    assert "none.nc" in capsys.readouterr().err
    assert datasets.main(["only"]) == 2
