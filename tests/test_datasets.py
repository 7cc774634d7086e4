"""Files: the registry is kept, damage is found, merges refuse what does not fit."""

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
    with pytest.raises(datasets.DatasetError, match="exactly one dimension"):
        datasets.merge([tmp_path / "a.nc", tmp_path / "c.nc"])


def test_command_line(tmp_path, capsys):
    datasets.write(sample((1,)), tmp_path / "a.nc")
    datasets.write(sample((2,)), tmp_path / "b.nc")
    assert datasets.main([str(tmp_path / name) for name in ("out.nc", "a.nc", "b.nc")]) == 0
    assert datasets.read(tmp_path / "out.nc").d.values.tolist() == [1, 2]
    assert datasets.main([str(tmp_path / "out2.nc"), str(tmp_path / "none.nc")]) == 1
    assert "none.nc" in capsys.readouterr().err
    assert datasets.main(["only"]) == 2
