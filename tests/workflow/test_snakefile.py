"""What runs again after which edit: the real Snakefile and sources in a copy, where every step is a stand-in."""

import json
import os
import re

import pytest
import yaml
from whole_runs import SMOKE, SOURCES, copy_project, snakemake

pytestmark = pytest.mark.slow

# Python loads this module at its start. It plays the steps of the workflow: each only writes its files.
STAND_IN = """
import os, pathlib, sys
given = sys.orig_argv[2:] or [""]
reports = ("report.html", "report.pdf", "claims.md", "main-figure.svg")
outputs = {
    "dchoices.workflow.run_notebook": given[3:4],
    "dchoices.datasets": given[1:2],
    "dchoices.claims": given[2:3],
    "dchoices.report": [f"{given[-1]}/{name}" for name in reports],
    "dchoices.workflow.verdict": given[2:3],
}.get(given[0])
if outputs:
    for output in outputs:
        pathlib.Path(output).write_text(output)
    os._exit(0)
"""

COMPARED = {"policies", "heavy_traffic", "constant_d"}
SIMULATIONS = {
    "trajectories",
    "ladder",
    "stationary",
    "recursion",
    "concentration",
    "service",
    "finite_size",
} | COMPARED
SIMULATIONS |= {"fluctuations", "replacement"}
CLAIMS = {"Checking the claims"}
REPORT = {"Writing the report", "The verdict"}
MESSAGE = re.compile(
    r"^Job \d+: ((Running|Parameters of|Merging) \w+|Checking the claims|Writing the report|The verdict)"
)


def workflow(folder, *arguments):
    return snakemake(folder, "--no-hooks", *arguments, PYTHONPATH=str(folder / "stand-in"))


def planned(folder):
    """Return the messages of the jobs that a run would execute."""
    ran = workflow(folder, "--dry-run")
    assert ran.returncode == 0, ran.stdout
    found = {match[1] for line in ran.stdout.splitlines() if (match := MESSAGE.match(line))}
    assert found or "Nothing to be done" in ran.stdout
    return found


def after(*studies):
    """Return the messages that follow when the runs of some studies are made again."""
    steps = {f"{verb} {study}" for verb in ("Running", "Merging") for study in studies}
    return steps | CLAIMS | REPORT


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A copy of the project where everything was made."""
    folder = copy_project(tmp_path_factory.mktemp("project"))
    (folder / "stand-in").mkdir()
    (folder / "stand-in" / "sitecustomize.py").write_text(STAND_IN)
    ran = workflow(folder)
    assert ran.returncode == 0, ran.stdout
    return folder


@pytest.fixture
def project(finished):
    """The finished project; what a test edits is put back."""
    sources = [path for name in SOURCES for path in sorted((finished / name).rglob("*")) if path.is_file()]
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in sources if "build" not in path.parts}
    yield finished
    for path, (content, time) in before.items():
        if path.read_bytes() != content or path.stat().st_mtime_ns != time:
            path.write_bytes(content)
            os.utime(path, ns=(time, time))


def edit(path, text="\n# edited\n"):
    path.write_text(path.read_text("utf-8") + text)


def edit_config(project, change):
    content = yaml.safe_load((project / SMOKE).read_text())
    change(content)
    (project / SMOKE).write_text(yaml.safe_dump(content))


def test_first_run_makes_everything(finished):
    ran = workflow(finished, "--dry-run", "--forceall")
    assert ran.returncode == 0, ran.stdout
    for rule in ("parameters", "notebook", "merge", "claims", "report", "verdict"):
        assert re.search(rf"^{rule} +\d+$", ran.stdout, re.MULTILINE), rule


def test_nothing_runs_again_by_itself(project):
    assert planned(project) == set()


def test_touching_reruns_nothing(project):
    for name in SOURCES:
        for path in [project / name, *(project / name).rglob("*")]:
            os.utime(path)
    assert planned(project) == set()


@pytest.mark.parametrize(
    ("edited", "expected"),
    [
        ("lib/dchoices/kernels/memory.py", after(*SIMULATIONS)),
        ("lib/dchoices/lumped.py", after(*SIMULATIONS)),
        ("lib/dchoices/comparison.py", after(*COMPARED)),
        (
            "lib/dchoices/kernels/drift.py",
            after("fluid", "portrait", "trajectories", "ladder", "recursion", "concentration", "convergence"),
        ),
        ("lib/dchoices/concentration.py", after("concentration")),
        ("lib/dchoices/theory/general_service.py", CLAIMS | REPORT),
        ("lib/dchoices/tails.py", CLAIMS | REPORT),
        ("lib/dchoices/regimes.py", after("finite_size") | CLAIMS | REPORT),
        ("lib/dchoices/portrait.py", after("portrait")),
        ("lib/dchoices/plots/__init__.py", REPORT),
        ("lib/dchoices/claims/__init__.py", CLAIMS | REPORT),
        ("lib/dchoices/report/__init__.py", REPORT),
        ("lib/dchoices/workflow/verdict.py", {"The verdict"}),
        ("lib/dchoices/workflow/run_notebook.py", set()),
        ("report/report.md", REPORT),
        ("report/figures.js", REPORT),
    ],
)
def test_edit_reruns_what_uses_the_file(project, edited, expected):
    edit(project / edited)
    assert planned(project) == expected


def test_edit_that_carries_an_older_time_is_seen(project):
    path = project / "lib/dchoices/kernels/memoryless.py"
    edit(path)
    os.utime(path, (1e9, 1e9))
    assert planned(project) == after(*SIMULATIONS)


def test_edited_cell_reruns_its_notebook(project):
    path = project / "notebooks/fluid.ipynb"
    notebook = json.loads(path.read_text("utf-8"))
    notebook["cells"].append({"cell_type": "code", "source": "1 + 1", "metadata": {}, "outputs": []})
    path.write_text(json.dumps(notebook))
    assert planned(project) == after("fluid")


def test_saved_outputs_rerun_nothing(project):
    path = project / "notebooks/fluid.ipynb"
    notebook = json.loads(path.read_text("utf-8"))
    notebook["cells"][-1] |= {"execution_count": 7, "outputs": [{"output_type": "stream", "text": "done"}]}
    path.write_text(json.dumps(notebook, indent=3))
    assert planned(project) == set()


def test_changed_parameter_reruns_its_study(project):
    edit_config(project, lambda content: content["studies"]["fixed_points"].update(lam_points=60))
    assert planned(project) == after("fixed_points") | {"Parameters of fixed_points"}


def test_changed_budget_reruns_nothing(project):
    edit_config(project, lambda content: content["studies"]["ladder"].update(events=9.9e6))
    assert planned(project) == set()


def test_deleted_run_is_made_again(project):
    run = next((project / "data/smoke/runs/ladder").iterdir())
    content = run.read_bytes()
    run.unlink()
    try:
        assert planned(project) == after("ladder")
    finally:
        run.write_bytes(content)


def test_bad_config_stops_before_anything_runs(project):
    edit_config(project, lambda content: content["studies"]["trajectories"]["lam"].__setitem__(1, 1.2))
    ran = workflow(project)
    assert ran.returncode != 0
    line = f"{SMOKE}: studies.trajectories.lam[1] = 1.2: must be a number greater than 0 and less than 1"
    assert line in ran.stdout.splitlines()
    assert "Building DAG" not in ran.stdout


def test_key_given_twice_is_refused(project):
    edit(project / SMOKE, "seed: 2\n")
    ran = workflow(project, "--dry-run")
    assert ran.returncode != 0
    assert "seed: is given twice" in ran.stdout
