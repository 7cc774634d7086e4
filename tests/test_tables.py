"""Datasets as tables: every number reads back, with its units, and what does not fit is named in one line."""

import json

import dchoices as dc
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from dchoices import datasets, tables
from dchoices.variables import describe
from pyarrow import parquet

LOADS = [0.1 + 0.2, 2 / 3, 0.9]


def sample():
    """Two policies, a ladder of N with fewer replicates at the largest, and a variable by policy alone."""
    rng = np.random.default_rng(1)
    dims = {"policy": ["sq", "sq-memory"], "N": [100, 10**10], "d": [2], "λ": LOADS}
    distance = rng.random((3, 2, 1, 3))
    distance[2, 1] = np.nan
    ds = xr.Dataset(
        {
            "mean_response_time": (tuple(dims), 1 + rng.random((2, 2, 1, 3))),
            "mean_response_time_ci95": (tuple(dims), rng.random((2, 2, 1, 3))),
            "probes": ("policy", [2, 2]),
            "occupancy": ((*dims, "queue_length"), rng.random((2, 2, 1, 3, 4))),
            "sup_distance": (("replicate", "N", "d", "λ"), distance),
        },
        {**dims, "queue_length": np.arange(4), "replicate": np.arange(3)},
        {"title": "made up", "events": np.int64(7), "parameters": '{"λ": 1}'},
    )
    return describe(ds)


def read(path):
    """Return a table as pandas reads it."""
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path, float_precision="round_trip")


@pytest.mark.parametrize("suffix", tables.SUFFIXES)
def test_values_and_order_read_back_exactly(tmp_path, suffix):
    ds, path = sample(), tmp_path / f"out{suffix}"
    dc.to_table(ds, path, ["occupancy", "mean_response_time", "probes"])
    frame = read(path)
    assert list(frame) == ["policy", "N", "d", "λ", "queue_length", "occupancy", "mean_response_time", "probes"]
    assert len(frame) == ds.occupancy.size
    back = frame.set_index(["policy", "N", "d", "λ", "queue_length"]).to_xarray()
    xr.testing.assert_equal(back.occupancy, ds.occupancy.drop_attrs())
    xr.testing.assert_equal(back.mean_response_time.isel(queue_length=2, drop=True), ds.mean_response_time)
    assert frame.N.dtype == frame.probes.dtype == np.int64
    assert frame["λ"].unique().tolist() == LOADS


@pytest.mark.parametrize("suffix", tables.SUFFIXES)
def test_replicates_that_an_n_does_not_have_are_no_rows(tmp_path, suffix):
    path = tmp_path / f"out{suffix}"
    dc.to_table(sample(), path, "sup_distance")
    counts = read(path).groupby("N").replicate.max()
    assert counts.tolist() == [2, 1]


def test_a_point_keeps_its_coordinates_and_a_state_is_one_row(tmp_path):
    dc.to_table(sample().sel(N=100, d=2), tmp_path / "x.csv", ["mean_response_time"])
    frame = read(tmp_path / "x.csv")
    assert frame.N.unique().tolist() == [100]
    assert len(frame) == 6
    fixed = dc.fixed_point(0.9, 2)
    dc.to_table(fixed, tmp_path / "y.csv", ["mean_response_time", "dispatch_to_idle"])
    assert read(tmp_path / "y.csv").mean_response_time.tolist() == [float(fixed.mean_response_time)]


def test_parquet_keeps_units_and_descriptions_with_the_columns(tmp_path):
    dc.to_table(sample(), tmp_path / "x.parquet", "mean_response_time")
    schema = parquet.read_schema(tmp_path / "x.parquet")
    for name in ("policy", "N", "d", "λ", "mean_response_time"):
        said = {key.decode(): value.decode() for key, value in schema.field(name).metadata.items()}
        assert {"units", "description"} <= set(said), name
        assert said["units"] == sample()[name].attrs["units"]
    assert schema.metadata[b"title"] == b"made up"
    assert json.loads(schema.metadata[b"parameters"]) == {"λ": 1}


def test_csv_has_them_beside_it_by_the_recommendation_for_tabular_data(tmp_path):
    dc.to_table(sample(), tmp_path / "x.csv", "mean_response_time")
    said = json.loads((tmp_path / "x.csv-metadata.json").read_text("utf-8"))
    assert (said["@context"], said["url"], said["dc:title"]) == (tables.CSVW, "x.csv", "made up")
    assert {"events": 7} in said["notes"]
    columns = said["tableSchema"]["columns"]
    assert [column["titles"] for column in columns] == list(read(tmp_path / "x.csv"))
    assert [column["datatype"] for column in columns] == ["string", "integer", "integer", "double", "double"]
    assert columns[3]["name"] == "%CE%BB"  # a name there is a variable of a URI template
    assert columns[4]["schema:unitText"] == "mean service times"
    assert all(column["dc:description"] for column in columns)


@pytest.mark.parametrize(
    ("path", "variables", "message"),
    [
        ("x.xlsx", "probes", "path = 'x.xlsx': must end in .csv or .parquet"),
        ("folder.csv", "probes", "is a folder, must be a file"),
        ("x.csv", "respons", "variables: 'respons' is not in the dataset, must be one of mean_response_time, "),
        ("x.csv", ["probes", "probes"], "probes is named twice"),
        ("x.csv", [], "variables: none is named, must be one or more of mean_response_time, "),
        ("x.csv", None, "must have the dimensions of one of them, name some that do: mean_response_time, mean_response_"
         "time_ci95 by policy, N, d, λ; probes by policy; occupancy by policy, N, d, λ, queue_length; sup_distance by"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_and_nothing_is_written(tmp_path, monkeypatch, path, variables, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ValueError, match=r"^(path|variables)\b") as caught:
        dc.to_table(sample(), path, variables)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert [file.name for file in tmp_path.iterdir()] == ["folder.csv"]


@pytest.mark.parametrize("suffix", tables.SUFFIXES)
def test_a_table_that_fails_leaves_the_old_one(tmp_path, monkeypatch, suffix):
    path = tmp_path / f"x{suffix}"
    dc.to_table(sample(), path, "probes")
    before = path.read_bytes()

    def write_half(frame, file, **options):
        file.write_text("half")
        raise OSError("No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", write_half)
    monkeypatch.setattr(parquet, "write_table", write_half)
    with pytest.raises(OSError, match="No space"):
        dc.to_table(sample(), path, "mean_response_time")
    assert path.read_bytes() == before
    assert not list(tmp_path.glob(".*"))


def test_command_line(tmp_path, capsys):
    source, target = str(tmp_path / "x.nc"), tmp_path / "x.parquet"
    datasets.write(sample()[["mean_response_time", "probes"]], source)
    assert tables.main([source, str(target)]) == 0
    assert len(read(target)) == 12
    assert tables.main([str(tmp_path / "no.nc"), str(target)]) == 1
    assert tables.main([source, str(target), "none"]) == 1
    assert tables.main([source, "x.txt"]) == 1
    assert capsys.readouterr().err.count("\n") == 3
    assert tables.main([source]) == 2
