"""Whole runs that several tests look at, made once: they take minutes."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from whole_runs import run_offline

RUNS_AT_ONCE = 2


def pytest_configure(config):
    config.addinivalue_line("markers", "soak: run by make soak alone")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--soak"):
        left_out = [item for item in items if item.get_closest_marker("soak")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def pool():
    with ThreadPoolExecutor(RUNS_AT_ONCE) as executor:
        yield executor


@pytest.fixture(scope="session")
def offline_study_started(pool, tmp_path_factory):
    """The future of `offline_study`, for who has something to run beside it."""
    return pool.submit(run_offline, tmp_path_factory.mktemp("offline"))


@pytest.fixture(scope="session")
def offline_study(offline_study_started):
    """The smoke profile with its report, run without a network; to be looked at, not changed."""
    return offline_study_started.result()
