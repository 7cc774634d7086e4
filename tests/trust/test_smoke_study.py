"""The whole way once, at tiny sizes and without a network: what a run leaves is what the README promises."""

import json
import subprocess
import sys

import pytest
import xarray as xr
from whole_runs import ATTEMPT, BLOCKED_SOCKETS, snakemake

pytestmark = pytest.mark.trust

LOCAL = """
import socket
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname()).close()
one, other = socket.socketpair()
print("reached")
"""


@pytest.fixture(scope="module")
def study(offline_study):
    return offline_study.folder


def test_trajectories_are_complete(study):
    with xr.open_dataset(study / "data/smoke/trajectories.nc") as ds:
        ds.load()
    assert {"N", "d", "λ", "t", "queue_length"} <= set(ds.dims)
    assert ds.sup_distance.dims == ("replicate", "N", "d", "λ")
    for name in ds.variables:
        assert not ds[name].isnull().any(), name
        assert ds[name].attrs["units"], name
        assert ds[name].attrs["description"], name
    assert ds.occupancy.sum("queue_length").values == pytest.approx(1, abs=1e-12)
    for attribute in ("commit", "parameters", "seed", "versions", "content_hash", "notebook", "title"):
        assert attribute in ds.attrs


def test_fluid_is_on_the_grid_of_the_trajectories(study):
    with (
        xr.open_dataset(study / "data/smoke/trajectories.nc") as ours,
        xr.open_dataset(study / "data/smoke/fluid.nc") as fluid,
    ):
        for dim in ("d", "λ", "t"):
            assert ours.indexes[dim].equals(fluid.indexes[dim])


def test_policies_stand_side_by_side(study):
    with xr.open_dataset(study / "data/smoke/policies.nc") as ds:
        ds.load()
    assert dict(zip(ds.policy.values, ds.probes.values, strict=True)) == {
        "jiq": 0, "jsq": 0, "random": 0, "sq": 2, "sq-half": 2, "sq-log": 0, "sq-memory": 2, "sq-sqrt": 0
    }  # fmt: skip
    assert ds.mean_response_time.dims == ("policy", "N", "λ")
    for name in ds.variables:
        assert not ds[name].isnull().any(), name
        assert ds[name].attrs["units"], name


def test_every_claim_is_recorded_and_every_control_is_refused(study):
    records = json.loads((study / "data/smoke/claims.json").read_text())
    keys = {
        "id",
        "statement",
        "source",
        "measured",
        "ci95",
        "tolerance",
        "verdict",
        "control",
        "control_verdict",
        "evidence",
    }
    for record in records:
        assert keys <= set(record)
        assert record["verdict"] in ("pass", "inconclusive"), record["id"]
        assert record["control_verdict"] == "fail", record["id"]


def test_the_report_is_there_and_a_second_run_does_nothing(study):
    for name in ("report.html", "report.pdf", "claims.md", "main-figure.svg"):
        assert (study / "report/build/smoke" / name).stat().st_size > 500
    assert not list(study.glob("data/**/*.tmp"))
    again = snakemake(study)
    assert again.returncode == 0
    assert "Nothing to be done" in again.stdout


def python(code):
    """Run code where Python's sockets are blocked."""
    environment = {"PYTHONPATH": BLOCKED_SOCKETS}
    return subprocess.run([sys.executable, "-W", "ignore", "-c", code], env=environment, capture_output=True, text=True)


def test_the_study_could_reach_nobody_and_needed_nobody(offline_study):
    refusal = {"namespace": "Network is unreachable", "sockets": "no network"}[offline_study.means]
    assert refusal in offline_study.attempt.stderr
    assert (offline_study.folder / "report/build/smoke/report.pdf").exists()


def test_blocked_sockets_reach_this_machine_only():
    """What stands in for a namespace, where that is not permitted."""
    assert "PermissionError: no network" in python(ATTEMPT).stderr
    assert python(LOCAL).stdout == "reached\n"
