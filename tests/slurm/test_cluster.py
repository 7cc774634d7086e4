"""The study as jobs of a real SLURM: the same data as on this machine alone, also when a job is killed half-way."""

import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from dchoices.workflow import config, verify
from one_node import PARTITION, one_node
from whole_runs import ROOT, SMOKE, copy_kernels, copy_project, halves, hashes, processes, snakemake

pytestmark = pytest.mark.slurm

PROFILE = "profiles/slurm/config.yaml"
# Those lines of the profile that a user of a cluster changes, as here.
LINES = {"# slurm_partition: short": f"slurm_partition: {PARTITION}", "runtime: 60 *": "runtime: 20 *"}
ON_SLURM = ("--workflow-profile", "profiles/slurm", "--slurm-init-seconds-before-status-checks", "1")
TARGETS = ("data/smoke/trajectories.nc", "data/smoke/fluid.nc")  # simulated and computed, split and whole
PARTS = ("trajectories/d=1", "trajectories/d=2", "fluid/all")
VICTIM = PARTS[1]
CELL_DONE = '"status": "completed"'  # papermill's word, in a notebook that runs


def comment(name):
    """Return how the plugin marks the job of a notebook."""
    return f"rule_notebook_wildcards_{name.replace('/', '_')}"


@dataclass(frozen=True)
class Study:
    """The smoke profile, run as jobs of SLURM.

    Attributes
    ----------
    data : Path
        What it wrote.
    hashes : dict
        Content hashes of its datasets, by their paths.
    jobs : list of Job
        All of SLURM's.
    leftovers : list of Path
        What the jobs left in the folder for scratch.
    again : str
        What Snakemake says when it is asked for the same on this machine.
    """

    data: Path
    hashes: dict
    jobs: list
    leftovers: list
    again: str


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with one_node(tmp_path_factory.mktemp("slurm")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    """Where jobs have their folders for scratch."""
    return tmp_path_factory.mktemp("scratch")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the project, whose profile is that of the cluster."""
    folder = copy_project(tmp_path_factory.mktemp("project"))
    profile = (folder / PROFILE).read_text()
    for line, ours in LINES.items():
        assert profile.count(line) == 1
        profile = profile.replace(line, ours)
    (folder / PROFILE).write_text(profile)
    copy_kernels(folder)
    return folder


@pytest.fixture(scope="module")
def study(project, cluster, scratch):
    ran = snakemake(project, "datasets", *ON_SLURM, **cluster.environment, TMPDIR=str(scratch))
    assert ran.returncode == 0, ran.stdout[-5000:]
    again = snakemake(project, "datasets", "--dry-run").stdout
    found = hashes(project)
    data = (project / "data").rename(project / "studied")
    return Study(data / "smoke", found, cluster.jobs(), list(scratch.iterdir()), again)


def test_the_study_is_the_same(study, capsys):
    code = verify.main([str(study.data), str(ROOT / "data/reference/smoke")])
    assert code == 0, capsys.readouterr().err


def test_every_notebook_is_a_job_as_the_profile_has_it(study):
    plan = config.make_plan(config.read(ROOT / SMOKE))
    assert sorted(job.comment for job in study.jobs) == sorted(map(comment, plan.jobs))
    assert {(job.state, job.partition, job.limit, job.memory) for job in study.jobs} == {
        ("COMPLETED", PARTITION, "20:00", "2000M")
    }


def test_jobs_leave_nothing_behind(study):
    assert study.leftovers == []


def test_nothing_is_run_again_on_this_machine(study):
    assert "Nothing to be done" in study.again, study.again


@dataclass(frozen=True)
class Interrupted:
    """A part of the profile, run as jobs of SLURM, one of which was killed.

    Attributes
    ----------
    returncode : int
        Of Snakemake.
    printed : str
        By Snakemake.
    jobs : list of Job
        Those of SLURM.
    killed : str
        The id of the job that was killed.
    environments : list of dict
        Of the kernel of each notebook that ran.
    """

    returncode: int
    printed: str
    jobs: list
    killed: str
    environments: list


@pytest.fixture(scope="module")
def local(project):
    """The hashes of that part, run on this machine without SLURM."""
    ran = snakemake(project, *TARGETS)
    assert ran.returncode == 0, ran.stdout[-5000:]
    found = hashes(project)
    shutil.rmtree(project / "data")
    return found


@pytest.fixture(scope="module")
def interrupted(local, project, cluster, scratch):
    """SLURM kills all that belongs to a job when its notebook is half run, as when a node goes down."""
    log, notebook = project / "printed.log", project / "data/smoke/logs" / f"{VICTIM}.ipynb"
    earlier = cluster.jobs()
    with log.open("w") as printed:
        process = subprocess.Popen(
            [sys.executable, "-m", "snakemake", *TARGETS, *ON_SLURM, "--configfile", SMOKE],
            cwd=project,
            env=os.environ | cluster.environment | {"TMPDIR": str(scratch)},
            stdout=printed,
            stderr=subprocess.STDOUT,
        )
    killed, environments = None, {}
    try:
        while process.poll() is None:
            for kernel in processes(project, "ipykernel_launcher"):
                with suppress(psutil.Error):  # it has just ended
                    environments.setdefault(kernel.pid, kernel.environ())
            if not killed and notebook.exists() and CELL_DONE in notebook.read_text():
                (killed,) = (
                    job.id for job in cluster.jobs() if job.comment == comment(VICTIM) and job.state == "RUNNING"
                )
                cluster.run("scancel", "--signal=KILL", "--full", killed)
            time.sleep(0.1)
    finally:
        process.terminate()
    jobs = [job for job in cluster.jobs() if job not in earlier]
    return Interrupted(process.returncode, log.read_text(), jobs, killed, list(environments.values()))


def test_a_part_is_the_same_without_slurm(study, local):
    assert local
    assert local.items() <= study.hashes.items()


def test_a_killed_job_is_restarted(interrupted):
    assert interrupted.returncode == 0, interrupted.printed[-5000:]
    assert sorted(job.comment for job in interrupted.jobs) == sorted(map(comment, [*PARTS, VICTIM]))
    assert {job.id for job in interrupted.jobs if job.state != "COMPLETED"} == {interrupted.killed}


def test_the_data_are_the_same_after_a_kill(interrupted, local, project):
    assert hashes(project) == local
    assert halves(project) == []


def test_every_job_has_a_scratch_folder_and_a_kernel_cache_of_its_own(interrupted, scratch):
    assert len(interrupted.environments) == len(PARTS) + 1
    for variable in ("TMPDIR", "NUMBA_CACHE_DIR"):
        used = {Path(environment[variable]) for environment in interrupted.environments}
        assert len(used) == len(interrupted.environments)
        assert all(scratch in path.parents for path in used)
    (killed,) = (e["TMPDIR"] for e in interrupted.environments if e["SLURM_JOB_ID"] == interrupted.killed)
    assert {str(path) for path in scratch.iterdir()} <= {killed}
