"""Whole runs that several tests look at, made once: they take minutes."""

import fcntl
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
from whole_runs import run_offline

RUNS_AT_ONCE = 2
# They come first: begun last, they would keep one core at work alone.
LONGEST = ("test_same_bits", "test_interruptions")


def once(folder, run):
    """Return what `run` returns for a folder, of all processes that ask for it by the first."""
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = folder.parent / f"{folder.name}.pickle"
        if not kept.exists():
            kept.write_bytes(pickle.dumps(run(folder)))
        return pickle.loads(kept.read_bytes())


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--soak"):
        left_out = [item for item in items if item.get_closest_marker("soak")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    items.sort(key=lambda item: item.path.stem not in LONGEST)


@pytest.fixture(scope="session")
def pool():
    with ThreadPoolExecutor(RUNS_AT_ONCE) as executor:
        yield executor


@pytest.fixture(scope="session")
def offline_study_started(pool, tmp_path_factory, request):
    """The future of `offline_study`, for who has something to run beside it."""
    ours = tmp_path_factory.getbasetemp()
    shared = ours.parent if hasattr(request.config, "workerinput") else ours  # with the other workers of pytest-xdist
    return pool.submit(once, shared / "offline", run_offline)


@pytest.fixture(scope="session")
def offline_study(offline_study_started):
    """The smoke profile with its report, run without a network; to be looked at, not changed."""
    return offline_study_started.result()
