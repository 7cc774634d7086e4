"""What runs again after which edit: the real Snakefile and sources in a copy, where every step is a stand-in."""

import json
import os
import re
import shutil

import pytest
import yaml
from dchoices.studies import STUDIES
from whole_runs import ROOT, SMOKE, SOURCES, copy_project, snakemake

pytestmark = pytest.mark.trust

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
BESIDE = ("README.md", "LICENSE", "CITATION.cff", "requirements.lock", "pyproject.toml", "Makefile")

COMPARED = {"policies", "heavy_traffic", "constant_d"}
SIMULATIONS = {
    "trajectories",
    "ladder",
    "stationary",
    "recursion",
    "concentration",
    "service",
    "finite_size",
    "fluctuations",
    "replacement",
} | COMPARED
LIMITS = {"fluid", "portrait", "fixed_points", "bound_grid", "convergence"}
CLAIMS = {"Checking the claims"}
REPORT = {"Writing the report", "The verdict"}
NOTHING = set()
MESSAGE = re.compile(
    r"^Job \d+: ((Running|Parameters of|Merging) \w+|Checking the claims|Writing the report|The verdict)"
)
LONG_AGO = 1e9  # seconds: what rsync, tar and cp -p may give a file that they replace


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
    for name in BESIDE:
        shutil.copy2(ROOT / name, folder)
    (folder / "stand-in").mkdir()
    (folder / "stand-in" / "sitecustomize.py").write_text(STAND_IN)
    ran = workflow(folder)
    assert ran.returncode == 0, ran.stdout
    return folder


@pytest.fixture
def project(finished, tmp_path):
    """A copy of it, to be edited."""
    return shutil.copytree(finished, tmp_path / "project")


# --- edits: functions of the project that return the files they changed ---------------------------------------------


def line_added(name, text="\n# edited\n"):
    def edit(project):
        path = project / name
        path.write_text(path.read_text("utf-8") + text)
        return [path]

    return edit


def replaced(name, old, new):
    def edit(project):
        path = project / name
        text = path.read_text("utf-8")
        assert text.count(old) == 1, f"{name}: {old!r} must be there once"
        path.write_text(text.replace(old, new))
        return [path]

    return edit


def touched(name):
    def edit(project):
        (project / name).touch()
        return [project / name]

    return edit


def configured(study, **values):
    def edit(project):
        content = yaml.safe_load((project / SMOKE).read_text())
        content["studies"][study].update(values)
        (project / SMOKE).write_text(yaml.safe_dump(content, sort_keys=False))
        return [project / SMOKE]

    return edit


def left_out(study):
    def edit(project):
        content = yaml.safe_load((project / SMOKE).read_text())
        del content["studies"][study]
        (project / SMOKE).write_text(yaml.safe_dump(content, sort_keys=False))
        return [project / SMOKE]

    return edit


def notebook(study, change):
    def edit(project):
        path = project / "notebooks" / f"{study}.ipynb"
        content = json.loads(path.read_text("utf-8"))
        change(content["cells"])
        path.write_text(json.dumps(content, indent=3))
        return [path]

    return edit


def cell_added(cells):
    cells.append({"cell_type": "code", "source": "1 + 1", "metadata": {}, "outputs": []})


def outputs_saved(cells):
    cells[-1] |= {"execution_count": 7, "outputs": [{"output_type": "stream", "text": "done"}]}


def installed(package):
    """Put another version of a package before the one that is installed."""

    def edit(project):
        path = project / "stand-in" / f"{package}-99.0.dist-info" / "METADATA"
        path.parent.mkdir()
        path.write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 99.0\n")
        return [path]

    return edit


def together(*edits):
    return lambda project: [path for edit in edits for path in edit(project)]


LIB = "lib/dchoices"
# These rerun nothing: what all of them together do, each does.
OF_NO_ACCOUNT = [
    line_added("report/claims.md"),
    line_added("report/short.md"),  # for fewer studies
    line_added(f"{LIB}/workflow/run_notebook.py"),
    notebook("fluid", outputs_saved),  # what JupyterLab saves
    touched("notebooks/portrait.ipynb"),
    notebook("explore", cell_added),  # for people only
    line_added(f"{LIB}/plots/explore.py"),
    touched(f"{LIB}/kernels/memory.py"),
    configured("ladder", events=9.9e6),
    line_added(SMOKE, "\n# of no account\n"),
    replaced("config/schema.json", "A study of power-of-d", "Our study of power-of-d"),
    line_added("README.md", "\n<!-- of no account -->\n"),
    line_added("LICENSE"),
    line_added("CITATION.cff"),
    line_added("requirements.lock"),  # what is not installed yet
    installed("jupyterlab"),  # computes nothing
]
EDITS = {
    "kernel with memory": (line_added(f"{LIB}/kernels/memory.py"), after(*SIMULATIONS)),
    "kernel without memory": (line_added(f"{LIB}/kernels/memoryless.py"), after(*SIMULATIONS)),
    "lumped chain": (line_added(f"{LIB}/lumped.py"), after(*SIMULATIONS)),
    "comparison of policies": (line_added(f"{LIB}/comparison.py"), after(*COMPARED)),
    "kernel of the fluid model": (
        line_added(f"{LIB}/kernels/drift.py"),
        after("fluid", "portrait", "trajectories", "ladder", "recursion", "concentration", "convergence"),
    ),
    "function of one study": (line_added(f"{LIB}/concentration.py"), after("concentration")),
    "function of another": (line_added(f"{LIB}/portrait.py"), after("portrait")),
    "function of a study and its claims": (line_added(f"{LIB}/regimes.py"), after("finite_size")),
    "theory of notebooks": (line_added(f"{LIB}/theory/spectrum.py"), after("convergence", "heavy_traffic")),
    "theory of claims": (line_added(f"{LIB}/theory/general_service.py"), CLAIMS | REPORT),
    "statistics of claims": (line_added(f"{LIB}/tails.py"), CLAIMS | REPORT),
    "claim": (line_added(f"{LIB}/claims/__init__.py"), CLAIMS | REPORT),
    "tolerance of a claim": (
        replaced(f"{LIB}/claims/dispatch.py", "RELATIVE = 0.05", "RELATIVE = 0.06"),
        CLAIMS | REPORT,
    ),
    "plot": (line_added(f"{LIB}/plots/__init__.py"), REPORT),
    "report code": (line_added(f"{LIB}/report/__init__.py"), REPORT),
    "report text": (line_added("report/report.md"), REPORT),
    "report script": (line_added("report/figures.js"), REPORT),
    "verdict": (line_added(f"{LIB}/workflow/verdict.py"), {"The verdict"}),
    "cell of a notebook": (notebook("fluid", cell_added), after("fluid")),
    "config value": (
        configured("fixed_points", lam_points=60),
        after("fixed_points") | {"Parameters of fixed_points"},
    ),
    "study left out": (left_out("portrait"), CLAIMS | REPORT),
    "numpy": (installed("numpy"), after(*SIMULATIONS, *LIMITS)),
    "numba": (installed("numba"), after(*SIMULATIONS, *LIMITS)),
    "scipy": (installed("scipy"), after(*SIMULATIONS, *LIMITS)),
    "of no account": (together(*OF_NO_ACCOUNT), NOTHING),
}

# The time of a file matters to Snakemake where it reads inputs, not where it reads `params`: one edit of each kind.
OLDER = ("kernel with memory", "tolerance of a claim", "report code", "report text", "verdict", "cell of a notebook",
         "config value", "of no account")  # fmt: skip


def older(name):
    return pytest.param(name, True, id=f"{name}, long ago", marks=[] if name in OLDER else pytest.mark.soak)


@pytest.mark.parametrize(("name", "long_ago"), [*((name, False) for name in EDITS), *map(older, EDITS)])
def test_edit_reruns_what_depends_on_it_and_nothing_else(name, long_ago, project):
    edit, expected = EDITS[name]
    for path in edit(project):
        if long_ago:
            os.utime(path, (LONG_AGO, LONG_AGO))
    assert planned(project) == expected


# --- the rest ------------------------------------------------------------------------------------------------------


def test_every_study_is_expected_somewhere():
    assert set(STUDIES) == SIMULATIONS | LIMITS


def test_first_run_makes_everything(finished):
    ran = workflow(finished, "--dry-run", "--forceall")
    assert ran.returncode == 0, ran.stdout
    for rule in ("parameters", "notebook", "merge", "claims", "report", "verdict"):
        assert re.search(rf"^{rule} +\d+$", ran.stdout, re.MULTILINE), rule


def test_nothing_runs_again_by_itself(finished):
    assert planned(finished) == NOTHING


def test_touching_reruns_nothing(project):
    for name in SOURCES:
        for path in [project / name, *(project / name).rglob("*")]:
            path.touch()
    assert planned(project) == NOTHING


def test_deleted_run_is_made_again(project):
    next((project / "data/smoke/runs/ladder").iterdir()).unlink()
    assert planned(project) == after("ladder")


def test_bad_config_stops_before_anything_runs(project):
    configured("trajectories", lam=[0.3, 1.2])(project)
    ran = workflow(project)
    assert ran.returncode != 0
    line = f"{SMOKE}: studies.trajectories.lam[1] = 1.2: must be a number greater than 0 and less than 1"
    assert sum(said.startswith(line) for said in ran.stdout.splitlines()) == 1
    assert "Building DAG" not in ran.stdout


def test_key_given_twice_is_refused(project):
    line_added(SMOKE, "seed: 2\n")(project)
    ran = workflow(project, "--dry-run")
    assert ran.returncode != 0
    assert "seed: is given twice" in ran.stdout
