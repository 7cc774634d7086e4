"""A sweep, a claim and a policy of one's own, by the letter of the README and the pages of docs/, in a clone."""

import json
import re

import dchoices as dc
import nbformat
import numpy as np
import pypdf
import pytest
import xarray as xr
import yaml
from dchoices import datasets
from pages import ROOT, blocks, run_shell
from whole_runs import clone_project

pytestmark = pytest.mark.slow

SWEEP = yaml.safe_load((ROOT / "config" / "sweep-example.yaml").read_text("utf-8"))
EVENTS_WITHIN = 0.1  # relative error of the estimate: shown with two digits, of a number that is random
JOB = re.compile(r"^(stationary|fixed_points) +(\S+) +(\S+) +[0-9]+ s$", re.MULTILINE)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return clone_project(tmp_path_factory.mktemp("own") / "project")


@pytest.fixture(scope="module")
def sweep(project):
    """What the two commands of the README printed: the plan, and the run."""
    (commands,) = [block for block in blocks("README.md", "sh") if "make plan" in block]
    plan, run = commands.splitlines()
    return run_shell(plan, project), run_shell(run, project)


@pytest.fixture(scope="module")
def data(sweep, project):
    return project / "data" / "sweep-example"


@pytest.fixture(scope="module")
def report(sweep, project):
    return project / "report" / "build" / "sweep-example"


def test_the_plan_is_what_the_run_then_takes(sweep, data):
    jobs = {(study, part): events for study, part, events in JOB.findall(sweep[0])}
    assert set(jobs) == {
        *(("stationary", f"d={d}") for d in SWEEP["studies"]["stationary"]["d"]),
        ("fixed_points", "all"),
    }
    for (study, part), told in jobs.items():
        simulated = datasets.read(data / "runs" / study / f"{part}.nc").attrs["events"]
        assert simulated == pytest.approx(0 if told == "-" else float(told), rel=EVENTS_WITHIN), part
    assert {job[:3] for job in JOB.findall(sweep[1])} == {(*job, events) for job, events in jobs.items()}
    assert sweep[1].index("together") < sweep[1].index("Running stationary")


def test_the_merged_dataset_is_on_the_grid_that_was_asked_for(data):
    given = SWEEP["studies"]["stationary"]
    with xr.open_dataset(data / "stationary.nc") as ds:
        assert (ds.N.values.tolist(), ds.d.values.tolist(), ds["λ"].values.tolist()) == tuple(
            given[name] for name in ("N", "d", "lam")
        )
        for lam in given["lam"]:
            assert 0 < ds.dispatch_to_idle.sel(policy="sq-memory", N=1000, d=2, λ=lam) <= 1
        limit = dc.fixed_point(0.83, 3).mean_response_time
        found = ds.sel(policy="sq-memory", N=20_000, d=3, λ=0.83)
        np.testing.assert_allclose(found.mean_response_time, limit, atol=0.02)
    assert not (data / "trajectories.nc").exists()


def test_claims_are_checked_where_there_are_data_and_the_others_say_what_they_lack(data, report):
    records = {record["id"]: record for record in json.loads((data / "claims.json").read_text("utf-8"))}
    decided = {name for name, record in records.items() if record["verdict"] == "pass"}
    assert decided == {"P2", "P3", "P5"}
    assert all(records[name]["control_verdict"] == "fail" for name in decided)
    assert records["P6"]["at"] == "no data: the study recursion"
    assert all(record["verdict"] == "inconclusive" for name, record in records.items() if name not in decided)
    text = (report / "claims.md").read_text("utf-8")
    assert text.startswith("3 of 3 claims pass, 0 fail, 0 are inconclusive; 3 of 3 controls fail")
    assert "P6: the study recursion" in text
    assert "P1" not in text.split("Not checked")[0]


def test_there_is_a_short_report(report):
    assert {path.name for path in report.iterdir()} == {"report.html", "report.pdf", "claims.md"}
    page = (report / "report.html").read_text("utf-8")
    figures = re.findall(r'<figure id="([^"]*)"', page)
    assert figures == ["fig-idle", "fig-fixed-points", "fig-memory", "fig-lookup"]
    assert re.findall(r'id="claim-([^"]*)"', page) == ["P2", "P3", "P5"]
    assert "λ 0.4, 0.44, 0.46" in page
    assert "not checked in this profile" not in page
    paper = " ".join(" ".join(page.extract_text().split()) for page in pypdf.PdfReader(report / "report.pdf").pages)
    assert paper.startswith("sweep-example A few studies"), "no figure floats above the title"
    assert "Of the 3 claims that can be checked on these data, 3 pass" in paper
    assert "P6: the study recursion" in paper


def test_a_claim_of_ones_own_needs_one_function_and_no_simulation(sweep, data, report, project):
    (claim,) = blocks("docs/claim.md")
    place = re.match(r"# at the end of (\S+)\n", claim)[1]
    with (project / place).open("a", encoding="utf-8") as module:
        module.write(f"\n\n{claim}")
    before = {path: path.stat().st_mtime_ns for path in data.glob("runs/*/*.nc")}
    (commands,) = blocks("docs/claim.md", "sh")
    shown = run_shell(commands, project).splitlines()[-1]
    assert {path: path.stat().st_mtime_ns for path in data.glob("runs/*/*.nc")} == before
    assert shown.startswith("| N9 (new) | With memory the mean number of jobs")
    assert "| ✓ pass |" in shown
    assert shown.endswith("| ✓ fails, as it must |")
    assert 'id="claim-N9"' in (report / "report.html").read_text("utf-8")


def test_a_policy_of_ones_own_goes_from_a_function_to_the_report(project):
    registered, _, reading = blocks("docs/policy.md")
    path = project / "notebooks" / "policies.ipynb"
    notebook = nbformat.read(path, as_version=4)
    example = next(k for k, cell in enumerate(notebook.cells) if "register_policy" in cell.source)
    notebook.cells.insert(example + 1, nbformat.v4.new_code_cell(registered))
    nbformat.write(notebook, path)
    (configuration,) = blocks("docs/policy.md", "yaml")
    (project / re.match(r"# (\S+)\n", configuration)[1]).write_text(configuration, "utf-8")
    (commands,) = blocks("docs/policy.md", "sh")
    run_shell(commands, project)
    opening, last = reading.replace("data/mine", str(project / "data/mine")).strip().rsplit("\n", 1)
    names = {}
    exec(opening, names)
    response = float(eval(last, names))
    others = names["ds"].mean_response_time.sel(N=1000, λ=0.9)
    assert others.sel(policy="sq") < response < others.sel(policy="random")
    assert "<td>threshold(2)</td>" in (project / "report" / "build" / "mine" / "report.html").read_text("utf-8")
