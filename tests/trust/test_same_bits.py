"""The same data to the last bit: again, on other cores, in another order, with a cold cache, in another folder.

In CI one run of the smoke profile is held against another that differs from it in all of these at once, and against
the committed reference; with --soak against each by itself, and against what another processor would compute.
"""

import json
import random
import shutil
import subprocess
import sys
from dataclasses import dataclass, field

import dchoices as dc
import h5py
import pytest
import yaml
from dchoices import datasets
from dchoices.workflow import config, verify
from whole_runs import ROOT, SMOKE, clone_project, copy_project, snakemake

pytestmark = pytest.mark.trust

DATA = "data/smoke"
CLAIMS = f"{DATA}/claims.json"
REFERENCE = ROOT / "data" / "reference" / "smoke"
SEED = 1
SHUFFLES = 5  # orders tried with --soak

# The linear algebra, numba and the C library of a processor of 2008.
OLD_PROCESSOR = {
    "OPENBLAS_CORETYPE": "Nehalem",
    "NUMBA_CPU_NAME": "nehalem",
    "NUMBA_CPU_FEATURES": "",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-AVX,-FMA",
}


@dataclass(frozen=True)
class Variation:
    """How a run differs from the one that it is held against.

    Attributes
    ----------
    clone : bool
        In a clone of the repository, else in a copy of the sources.
    cold : bool
        No kernel is compiled beforehand, and every job compiles what it finds missing (`--cores 1`: jobs that fill the
        cache together disturb each other).
    order : int or None
        Seed of a random order of studies and jobs.
    """

    name: str
    cores: int = 2
    clone: bool = False
    cold: bool = False
    order: int | None = None
    environment: dict = field(default_factory=dict)


ALL_AT_ONCE = Variation("all at once", cores=1, clone=True, cold=True, order=SEED)
EACH = [
    Variation("again"),
    Variation("one core", cores=1),
    Variation("cold cache", cores=1, cold=True),
    Variation("clone", clone=True),
    *(Variation(f"order {seed}", order=seed) for seed in range(1, SHUFFLES + 1)),
]


def shuffle(folder, seed):
    """Write the studies in another order, and return jobs to prefer: a random half."""
    rng = random.Random(seed)
    content = yaml.safe_load((folder / SMOKE).read_text("utf-8"))
    studies = list(content["studies"].items())
    rng.shuffle(studies)
    (folder / SMOKE).write_text(yaml.safe_dump(content | {"studies": dict(studies)}, sort_keys=False))
    jobs = list(config.make_plan(content).jobs)
    return [f"{DATA}/runs/{name}.nc" for name in rng.sample(jobs, len(jobs) // 2)]


def run(variation, folder):
    """Run the smoke profile up to its claims and return its folder."""
    (clone_project if variation.clone else copy_project)(folder)
    options = ["--cores", str(variation.cores)]
    if variation.cold:
        options = ["--no-hooks", *options]
    if variation.order is not None:
        options = ["--prioritize", *shuffle(folder, variation.order), *options]
    ran = snakemake(folder, *options, CLAIMS, **variation.environment)
    assert ran.returncode == 0, f"{variation}: {ran.stdout[-5000:]}"
    return folder


def hashes(folder):
    """Return the content hash of every dataset, merged or not, by its path."""
    found = {}
    for path in sorted((folder / DATA).rglob("*.nc")):
        with h5py.File(path) as file:
            found[path.relative_to(folder).as_posix()] = file.attrs["content_hash"]
    return found


def order_of_jobs(folder):
    """Return the runs in the order in which they were written."""
    return sorted((folder / DATA / "runs").rglob("*.nc"), key=lambda path: path.stat().st_mtime_ns)


def assert_same(folder, other, what):
    assert hashes(folder) == hashes(other), what
    assert (folder / CLAIMS).read_text() == (other / CLAIMS).read_text(), what


@pytest.fixture(scope="module")
def other_study(pool, offline_study_started, tmp_path_factory):
    """A run that differs in everything that must not matter, beside the offline one."""
    return pool.submit(run, ALL_AT_ONCE, tmp_path_factory.mktemp("other") / "clone").result()


def test_nothing_that_must_not_matter_does(other_study, offline_study_started):
    offline_study = offline_study_started.result()  # asked for as a fixture it would be awaited before the other starts
    assert_same(offline_study.folder, other_study, ALL_AT_ONCE)
    plan = config.make_plan(config.read(ROOT / SMOKE))
    expected = {f"{DATA}/runs/{name}.nc" for name in plan.jobs} | {f"{DATA}/{study}.nc" for study in plan.studies}
    assert hashes(other_study).keys() == expected
    assert [path.relative_to(other_study) for path in order_of_jobs(other_study)] != [
        path.relative_to(offline_study.folder) for path in order_of_jobs(offline_study.folder)
    ]


def test_the_committed_reference_is_found_again(offline_study, capsys):
    code = verify.main([str(offline_study.folder / DATA), str(REFERENCE)])
    assert code == 0, capsys.readouterr().err


def test_another_seed_is_not_the_reference():
    """The check can fail: a study run with another seed than its parameters say."""
    kept = datasets.read(REFERENCE / "replacement.nc")
    counted = json.loads((REFERENCE / verify.HASHES).read_text())["replacement"]
    given = json.loads(kept.attrs["parameters"])
    policies, seed = given.pop("policies"), given.pop("seed")
    same, other = (
        dc.replacement_gap(policies, seed=x, **given).assign_attrs(parameters=kept.attrs["parameters"])
        for x in (seed, seed + 1)
    )
    assert list(verify.compare(same, kept, counted)) == []
    line, *_ = verify.compare(other, kept, counted)
    place = f"policy = {policies[0]}, N = {given['N'][0]}, d = {given['d'][0]}, λ = {given['lam'][0]}"
    assert line.startswith(f"n_replacement at {place}: ")


@pytest.mark.soak
@pytest.mark.parametrize("variation", EACH, ids=lambda variation: variation.name)
def test_each_by_itself(offline_study, variation, tmp_path):
    assert_same(offline_study.folder, run(variation, tmp_path / "project"), variation)


@pytest.mark.soak
def test_a_warm_cache(offline_study, tmp_path):
    """In one folder, since the cache knows its sources by their paths."""
    folder = run(Variation("first"), tmp_path / "project")
    shutil.rmtree(folder / "data")
    ran = snakemake(folder, "--no-hooks", "--cores", "2", CLAIMS)
    assert ran.returncode == 0, ran.stdout[-5000:]
    assert_same(offline_study.folder, folder, "warm cache")


@pytest.mark.soak
def test_another_processor_counts_the_same(tmp_path, capsys):
    """Counts to the last bit, all else to its tolerance."""
    folder = run(Variation("old processor", environment=OLD_PROCESSOR | _numpy_of_an_old_processor()), tmp_path / "p")
    code = verify.main([str(folder / DATA), str(REFERENCE)])
    assert code == 0, capsys.readouterr().err


def _numpy_of_an_old_processor():
    """Return the setting by which numpy leaves out what it has compiled for newer processors."""
    code = (
        "from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__ as found; "
        "print(*(name for name in __cpu_dispatch__ if found[name]))"
    )
    names = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return {"NPY_DISABLE_CPU_FEATURES": names.strip()}
