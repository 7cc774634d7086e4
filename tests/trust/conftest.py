"""Whole runs that several tests look at, made once: they take minutes."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from whole_runs import copy_project, snakemake

# A namespace of its own, in which there is no network at all; where that is not permitted, Python's sockets reach this
# machine only.
NAMESPACE = ("unshare", "--net", "--map-root-user")
BLOCKED_SOCKETS = str(Path(__file__).parent / "offline")
# An address of documentation (RFC 5737): never this machine, and nobody's.
ATTEMPT = "import socket; socket.create_connection(('192.0.2.1', 80), timeout=10)"
RUNS_AT_ONCE = 2


def pytest_configure(config):
    config.addinivalue_line("markers", "soak: run by make soak alone")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--soak"):
        left_out = [item for item in items if item.get_closest_marker("soak")]
        config.hook.pytest_deselected(left_out)
        items[:] = [item for item in items if item not in left_out]


@dataclass(frozen=True)
class OfflineStudy:
    """The smoke profile, with its report, run without a network.

    Attributes
    ----------
    folder : Path
        The copy of the project that it ran in.
    means : str
        How the network was kept away: "namespace" or "sockets".
    attempt : subprocess.CompletedProcess
        A Python that tried to connect to somewhere else, by the same means.
    """

    folder: Path
    means: str
    attempt: subprocess.CompletedProcess


def _offline(folder):
    permitted = subprocess.run([*NAMESPACE, "true"], capture_output=True).returncode == 0
    means, wrap, environment = (
        ("namespace", NAMESPACE, {}) if permitted else ("sockets", (), {"PYTHONPATH": BLOCKED_SOCKETS})
    )
    attempt = subprocess.run([*wrap, sys.executable, "-c", ATTEMPT], env=environment, capture_output=True, text=True)
    ran = snakemake(copy_project(folder), wrap=wrap, **environment)
    assert ran.returncode == 0, ran.stdout[-5000:]
    return OfflineStudy(folder, means, attempt)


@pytest.fixture(scope="session")
def pool():
    with ThreadPoolExecutor(RUNS_AT_ONCE) as executor:
        yield executor


@pytest.fixture(scope="session")
def offline_study_started(pool, tmp_path_factory):
    """The future of `offline_study`, for who has something to run beside it."""
    return pool.submit(_offline, tmp_path_factory.mktemp("offline"))


@pytest.fixture(scope="session")
def offline_study(offline_study_started):
    """The smoke profile, run without a network; to be looked at, not changed."""
    return offline_study_started.result()
