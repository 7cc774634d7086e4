"""Runs that are killed, crowded out, or find damaged files: the next ends with the same data, or says what is wrong.

A part of the smoke profile runs in a copy of the project as `make` runs it.
"""

import os
import random
import shlex
import shutil
import subprocess
import sys
import time

import pytest
from dchoices import datasets
from whole_runs import ROOT, copy_kernels, copy_project, halves, hashes, processes, snakemake

pytestmark = pytest.mark.trust

# Split and whole, simulated and computed.
STUDIES = ("trajectories", "fluid")
TARGETS = [f"data/smoke/{study}.nc" for study in STUDIES]
KILLS, MANY_KILLS = 6, 30
KERNEL = 3  # seconds: most notebooks take longer
SEED = 20201130
PATIENCE = 300  # seconds for what takes a few


# `make smoke` for the targets, with this Python as the environment that is there.
COMMAND = ["make", "-o", "installed", "INSTALLED=installed", f"PY={sys.executable}",
           f"SNAKEMAKE={sys.executable} -m snakemake --cores all {' '.join(TARGETS)}", "smoke"]  # fmt: skip
RUN = shlex.join(COMMAND)
ENVIRONMENT = os.environ | {"PYTHONPATH": "lib"}


def make(folder, **options):
    """Start a run."""
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(COMMAND, cwd=folder, env=ENVIRONMENT, start_new_session=True, **(output | options))


def finish(folder):
    """Run to the end; return what was printed."""
    process = make(folder)
    printed, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, printed[-3000:]
    return printed


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the project whose kernels are compiled, with a Makefile, and no data."""
    folder = copy_project(tmp_path_factory.mktemp("project"))
    copy_kernels(folder)
    shutil.copy2(ROOT / "Makefile", folder)
    (folder / "installed").touch()
    return folder


@pytest.fixture(scope="module")
def expected(project):
    """The hashes of a run that nothing disturbs, and how long it takes when the kernels are compiled."""
    subprocess.run([sys.executable, "-m", "dchoices.warm_up"], cwd=project, check=True, env=ENVIRONMENT)
    started = time.monotonic()
    finish(project)
    return hashes(project), time.monotonic() - started


@pytest.fixture
def empty(project):
    """The project before its first run."""
    shutil.rmtree(project / "data", ignore_errors=True)
    return project


@pytest.fixture
def finished(project, expected):
    """The project after its run."""
    finish(project)
    assert hashes(project) == expected[0]
    return project


def kill_workflow(folder, rng):
    """Kill Snakemake alone, whose jobs go on, or all that runs, as when the machine stops."""
    alone = rng.random() < 0.5
    for process in processes(folder, "snakemake" if alone else None):
        process.kill()
    return "Snakemake" if alone else "all"


def kill_kernel(folder, rng):
    """Kill the kernel of one notebook, of those that run or of the next; there may be none any more."""
    while processes(folder, "snakemake"):
        if kernels := processes(folder, "ipykernel_launcher"):
            time.sleep(rng.uniform(0, KERNEL))
            victim = rng.choice(kernels)
            if victim.is_running():
                victim.kill()
                return "a kernel"
        time.sleep(0.05)
    return ""


# Late in a run there may be nothing to kill any more, and no kernel even earlier.
@pytest.mark.parametrize(("kill", "latest"), [(kill_workflow, 0.9), (kill_kernel, 0.4)])
def test_killed_runs_end_with_the_same_data(kill, latest, empty, expected, soak):
    """Kill at random moments, run again each time, and from nothing whenever all is there."""
    rng = random.Random(SEED)
    reference, duration = expected
    log, kills = [], 0
    while kills < (MANY_KILLS if soak else KILLS):
        process = make(empty, stdout=subprocess.DEVNULL)
        moment = rng.uniform(0, latest * duration)
        try:
            process.wait(timeout=moment)
            log.append("done")
        except subprocess.TimeoutExpired:
            killed = kill(empty, rng)
            kills += bool(killed)
            log.append(f"{moment:.1f} s: {killed or 'none alive'}")
            process.wait(timeout=PATIENCE)
        there = hashes(empty)
        assert there.items() <= reference.items(), (SEED, log)
        if process.returncode == 0:
            assert there == reference, (SEED, log)
            assert not halves(empty)
            shutil.rmtree(empty / "data")
    finish(empty)
    assert hashes(empty) == reference, (SEED, log)
    assert not halves(empty), (SEED, log)
    print(f"{kills} kills survived: {', '.join(log)}")


def test_an_orphan_that_outlives_its_run_does_no_harm(empty, expected):
    """The workflow dies while a notebook runs; the next run waits for the orphan, and makes its own."""
    process = make(empty, stdout=subprocess.DEVNULL)
    while not processes(empty, "ipykernel_launcher"):
        assert process.poll() is None
        time.sleep(0.05)
    for victim in processes(empty, "snakemake"):
        victim.kill()
    process.wait()
    orphans = processes(empty, "dchoices.workflow.run_notebook")
    assert orphans
    finish(empty)
    for orphan in orphans:
        orphan.wait(timeout=PATIENCE)
    assert hashes(empty) == expected[0]
    assert not halves(empty)


def test_two_runs_at_once_are_one_after_the_other(empty, expected):
    runs = [make(empty), make(empty)]
    printed = [run.communicate(timeout=PATIENCE)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0], printed
    assert sorted("Waiting for another run in this folder to end" in text for text in printed) == [False, True]
    assert sum("Nothing to be done" in text for text in printed) == 1
    assert hashes(empty) == expected[0]


def test_a_living_run_keeps_its_lock_and_a_dead_one_loses_it(empty, expected):
    """Snakemake without make: the second is refused while the first lives, and takes over when it was killed."""
    process = make(empty, stdout=subprocess.DEVNULL)
    while not list(empty.glob(".snakemake/locks/*")):
        assert process.poll() is None
        time.sleep(0.05)
    refused = snakemake(empty, *TARGETS)
    assert refused.returncode != 0
    assert "cannot be locked" in refused.stdout
    assert list(empty.glob(".snakemake/locks/*"))
    for victim in processes(empty, "snakemake"):
        victim.kill()
    process.wait()
    assert list(empty.glob(".snakemake/locks/*"))
    assert snakemake(empty, *TARGETS).returncode == 0
    assert hashes(empty) == expected[0]


def truncated(content, rng):
    return content[: rng.randrange(len(content))]


def flipped(content, rng):
    place = rng.randrange(len(content))
    return content[:place] + bytes([content[place] ^ 1 << rng.randrange(8)]) + content[place + 1 :]


# h5netcdf closes once more what it could not open, and stumbles (its File.close).
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("damage", "times"), [(truncated, 300), (flipped, 150)])
def test_damage_is_noticed_or_harmless(damage, times, finished, expected, soak, tmp_path):
    """Wherever a file is damaged: it is refused by name, or holds what it held (its attributes are not hashed)."""
    rng = random.Random(SEED)
    files = sorted((finished / "data").rglob("*.nc"))
    refused = []
    for _ in range(10 * times if soak else times):
        file = rng.choice(files)
        copy = tmp_path / file.name
        copy.write_bytes(damage(file.read_bytes(), rng))
        try:
            read = datasets.read(copy)
        except datasets.DatasetError as error:
            refused.append(str(copy) in str(error))
        else:
            assert datasets.content_hash(read) == expected[0][file.relative_to(finished).as_posix()]
    print(f"{len(refused)} refused")
    assert all(refused)
    assert len(refused) > times / 3


def test_a_run_that_meets_a_damaged_file_says_which(finished, expected):
    path = finished / "data/smoke/runs/trajectories/d=1.nc"
    path.write_bytes(truncated(path.read_bytes(), random.Random(SEED)))
    run = make(finished)
    printed, _ = run.communicate(timeout=PATIENCE)
    assert run.returncode != 0
    assert "data/smoke/runs/trajectories/d=1.nc: cannot be read" in printed
    path.unlink()
    finish(finished)
    assert hashes(finished) == expected[0]


def test_a_file_of_another_run_is_not_merged(finished, expected):
    runs = finished / "data/smoke/runs/trajectories"
    shutil.copy(runs / "d=2.nc", runs / "d=1.nc")
    run = make(finished)
    printed, _ = run.communicate(timeout=PATIENCE)
    assert run.returncode != 0
    assert "runs/trajectories/d=1.nc, data/smoke/runs/trajectories/d=2.nc: must differ along" in printed
    (runs / "d=1.nc").unlink()
    finish(finished)
    assert hashes(finished) == expected[0]


# In a mount namespace of its own; root of it, not of the machine.
MOUNTED = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-ec"]


def test_a_full_disk_is_an_error_and_a_rerun_with_room_ends_well(empty, expected):
    script = f"""
        mkdir data && mount -t tmpfs -o size=256k none data
        {RUN} && exit 9
        find data -name '*.nc' -size 0 -exec false {{}} + || exit 8
        echo "=== room ==="
        mount -o remount,size=64m data
        {RUN}
        mkdir kept && cp -r data/smoke kept
    """
    ran = subprocess.run([*MOUNTED, script], cwd=empty, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         check=False)  # fmt: skip
    shutil.rmtree(empty / "data")
    assert ran.returncode == 0, ran.stdout[-3000:]
    full, _, _ = ran.stdout.partition("=== room ===")
    assert "data/smoke: No space left on device" in full
    (empty / "kept").rename(empty / "data")
    assert hashes(empty) == expected[0]
    assert not halves(empty)


def test_a_folder_that_cannot_be_written_is_an_error_that_names_it(empty, expected):
    script = f"""
        mkdir data && mount -t tmpfs none data && mount -o remount,ro data
        {RUN}
    """
    ran = subprocess.run([*MOUNTED, script], cwd=empty, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         check=False)  # fmt: skip
    shutil.rmtree(empty / "data")
    assert ran.returncode != 0
    assert "Read-only file system" in ran.stdout
    assert "data/smoke" in ran.stdout
    print(ran.stdout[-1500:])
