"""Whether a run is whole, and that of the reference: on two small datasets; and the reference that is committed."""

import json
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray as xr
from dchoices import datasets
from dchoices.variables import tolerance
from dchoices.workflow import config, verify

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "data" / "reference" / "smoke"

STATIONARY = xr.Dataset(
    {
        "occupancy": (("policy", "N", "queue_length"), [[[0.25, 0.75], [0.5, 0.5]], [[1.0, 0.0], [0.125, 0.875]]]),
        "mean_response_time": (("policy", "N"), [[1.5, 20.0], [1.0, 3.0]]),
        "max_queue": (("policy", "N"), [[1, 2], [3, 4]]),
    },
    coords={"policy": ["sq", "sq-memory"], "N": [10, 100], "queue_length": [0, 1]},
    attrs={"parameters": json.dumps({"N": [10, 100], "seed": 1})},
)
FLUID = xr.Dataset(
    {"occupancy": (("t", "queue_length"), [[1.0, 0.0], [0.5, 0.5]])},
    coords={"t": [0.0, 1.0], "queue_length": [0, 1]},
    attrs={"parameters": json.dumps({"lam": [0.5]})},
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run, and a reference made from it."""
    folder = tmp_path_factory.mktemp("made")
    run = folder / "data" / "made_up"
    datasets.write(STATIONARY, run / "stationary.nc")
    datasets.write(FLUID, run / "fluid.nc")
    (run / "runs" / "stationary").mkdir(parents=True)
    shutil.copy(run / "stationary.nc", run / "runs" / "stationary" / "all.nc")
    assert verify.main([str(run), str(folder / "reference"), "--update"]) == 0
    return folder


@pytest.fixture
def run(made, tmp_path):
    """A copy of both, to be changed."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path / "data" / "made_up"


def checked(run, capsys, reference=True):
    capsys.readouterr()
    code = verify.main([str(run), *([str(run.parents[1] / "reference")] if reference else [])])
    return code, "".join(capsys.readouterr())


def replace(run, name, change):
    """Write a changed dataset, with a hash of its own."""
    dataset = datasets.read(run / f"{name}.nc").copy(deep=True)
    datasets.write(change(dataset) or dataset, run / f"{name}.nc")


def put(name, place, value):
    return lambda dataset: dataset[name].values.__setitem__(place, value)


def test_the_same_run_is_the_same(run, capsys):
    code, told = checked(run, capsys)
    assert code == 0
    assert "the same as in" in told
    assert checked(run, capsys, reference=False)[0] == 0


AT = "policy = sq-memory, N = 10"


@pytest.mark.parametrize(
    ("name", "change", "line"),
    [
        (
            "stationary",
            put("occupancy", (0, 1, 1), np.nextafter(0.5, 1)),
            "occupancy at policy = sq, N = 100, queue_length = 1: 0.5000000000000001, in the reference 0.5",
        ),
        (
            "stationary",
            put("occupancy", (1, 0), [-0.0, 1.0]),
            f"occupancy at {AT}, queue_length = 0: -0.0, in the reference 1.0, and 1 more of its entries differ",
        ),
        ("stationary", put("occupancy", (1, 0, 1), -0.0), f"occupancy at {AT}, queue_length = 1: -0.0, in the refer"),
        ("stationary", put("max_queue", (1, 0), 4), f"max_queue at {AT}: 4, in the reference 3"),
        ("stationary", put("mean_response_time", (1, 0), 1 + 2e-9), f"mean_response_time at {AT}: 1.000000002, in"),
        ("stationary", lambda ds: ds.drop_vars("max_queue"), "max_queue is missing"),
        ("stationary", lambda ds: ds.assign(warm_up=("N", [1.0, 1.0])), "warm_up is not in the reference"),
        ("stationary", lambda ds: ds.isel(N=[0]), "N is int64 on {'N': 1}, in the reference int64 on {'N': 2}"),
        (
            "stationary",
            lambda ds: ds.assign(max_queue=ds.max_queue.astype(np.int32)),
            "max_queue is int32 on {'policy': 2, 'N': 2}, ",
        ),
        ("stationary", lambda ds: ds.assign_coords(policy=["sq", "jsq"]), "policy at policy = jsq: jsq, in the refer"),
        (
            "stationary",
            lambda ds: ds.assign_attrs(parameters='{"N": [10, 100], "seed": 2}'),
            "parameter seed = 2, in the reference 1",
        ),
        ("fluid", put("occupancy", (1, 0), 0.5 + 2e-9), "occupancy at t = 1.0, queue_length = 0: 0.500000002, in the"),
    ],
)
def test_the_first_difference_is_shown(run, capsys, name, change, line):
    replace(run, name, change)
    code, told = checked(run, capsys)
    assert code == 1
    assert told.startswith(f"{run / name}.nc: {line}")
    assert checked(run, capsys, reference=False)[0] == 0  # its own hash is right


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("stationary", put("mean_response_time", (0, 1), 20 + 1e-8)),  # relative
        ("fluid", put("occupancy", (0, 1), 1e-10)),  # the fluid model counts nothing
        ("stationary", lambda ds: ds.assign_attrs(commit="other")),
    ],
)
def test_what_processors_may_differ_by_is_the_same(run, capsys, name, change):
    replace(run, name, change)
    assert checked(run, capsys)[0] == 0


def test_it_tells_how_much_more_differs(run, capsys):
    replace(run, "stationary", lambda ds: ds + 1)
    replace(run, "fluid", lambda ds: ds * 0.5)
    code, told = checked(run, capsys)
    first, more = told.splitlines()
    assert code == 1
    assert "fluid.nc: occupancy at t = 0.0, queue_length = 0: 0.5, in the reference 1.0, and 2 more of its" in first
    assert more == "3 more variables or datasets differ, in stationary"


def test_a_missing_and_an_additional_dataset_are_named(run, capsys):
    (run / "fluid.nc").rename(run / "portrait.nc")
    code, told = checked(run, capsys)
    assert code == 1
    assert "portrait.nc: is not in the reference" in told
    assert "1 more variables or datasets differ, in fluid" in told


@pytest.mark.parametrize("name", ["fluid.nc", "runs/stationary/all.nc"])
@pytest.mark.parametrize(
    "damage",
    [lambda whole: whole[: len(whole) // 2], lambda whole: b""],
)
def test_a_damaged_file_is_named_first(run, capsys, name, damage):
    replace(run, "stationary", put("max_queue", (1, 0), 4))
    path = run / name
    path.write_bytes(damage(path.read_bytes()))
    code, told = checked(run, capsys)
    assert code == 1
    assert told.startswith(f"{path}: ")
    assert "reference" not in told


def test_a_changed_value_under_the_old_hash_is_damage(run, capsys):
    wrong = FLUID.assign(occupancy=FLUID.occupancy[::-1].variable)
    wrong.attrs["content_hash"] = datasets.content_hash(FLUID)
    wrong.to_netcdf(run / "fluid.nc", engine="h5netcdf")
    code, told = checked(run, capsys, reference=False)
    assert code == 1
    assert "fluid.nc: contents do not match their hash" in told


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda reference: shutil.rmtree(reference), "hashes.json: cannot be read"),
        (lambda reference: (reference / "hashes.json").write_text("{"), "hashes.json: cannot be read"),
        (lambda reference: (reference / "fluid.nc").unlink(), "fluid.nc"),
        (lambda reference: (reference / "fluid.nc").write_bytes(b""), "fluid.nc: cannot be read"),
        (
            lambda reference: datasets.write(STATIONARY + 1, reference / "stationary.nc"),
            "is not what hashes.json is of",
        ),
    ],
)
def test_a_reference_that_is_no_good_is_told_from_a_difference(run, capsys, spoil, message):
    spoil(run.parents[1] / "reference")
    code, told = checked(run, capsys)
    assert code == 2
    assert message in told


def test_a_folder_without_datasets_is_refused(tmp_path, capsys):
    assert verify.main([str(tmp_path)]) == 2
    assert "holds no dataset" in capsys.readouterr().err


def test_update_writes_only_what_differs(run):
    reference = run.parents[1] / "reference"
    before = {path.name: path.stat().st_mtime_ns for path in reference.glob("*.nc")}
    replace(run, "stationary", put("max_queue", (1, 0), 4))
    (run / "fluid.nc").rename(run / "portrait.nc")
    assert verify.main([str(run), str(reference), "--update"]) == 0
    after = {path.name: path.stat().st_mtime_ns for path in reference.glob("*.nc")}
    assert set(after) == {"stationary.nc", "portrait.nc"}
    assert after["stationary.nc"] != before["stationary.nc"]
    assert verify.main([str(run), str(reference), "--update"]) == 0
    assert after == {path.name: path.stat().st_mtime_ns for path in reference.glob("*.nc")}


def test_the_committed_reference_is_of_the_smoke_profile():
    """Whoever edits the profile is told before the whole run is."""
    plan = config.make_plan(config.read(ROOT / "config/smoke.yaml"))
    hashes = json.loads((REFERENCE / verify.HASHES).read_text())
    assert set(hashes) == set(plan.studies) == {path.stem for path in REFERENCE.glob("*.nc")}
    assert sum(path.stat().st_size for path in REFERENCE.iterdir()) < 1e6
    for study in plan.studies:
        with h5py.File(REFERENCE / f"{study}.nc") as file:
            kept = json.loads(file.attrs["parameters"])
        part, *others = plan.parts(study)
        if not others:
            given = plan.jobs[f"{study}/{part}"].parameters
            assert kept == {name: given[name] for name in kept}, study


@pytest.mark.parametrize(("study", "counted"), [("recursion", 3), ("fluid", 0), ("service", 0)])
def test_the_committed_values_are_those_of_the_hashes(study, counted):
    hashes = json.loads((REFERENCE / verify.HASHES).read_text())
    assert verify.hashes_of_counted(datasets.read(REFERENCE / f"{study}.nc")) == hashes[study]
    assert len(hashes[study]) == counted


def test_rates_read_off_the_end_of_a_path_are_known_to_a_thousandth():
    assert tolerance(FLUID, "relaxation_rate") == 1e-3
    assert tolerance(FLUID, "distance_left") == tolerance(FLUID, "occupancy") == 1e-9
    assert tolerance(STATIONARY, "occupancy") == 0
    assert tolerance(STATIONARY.expand_dims(service=["deterministic"]), "occupancy") == 1e-9
