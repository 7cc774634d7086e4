"""Shared by all tests."""

import shutil

import pytest
from hypothesis import settings

# The same examples in every run, and no limit on the time of one: a busy machine is no fault of the code.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")


def pytest_addoption(parser):
    parser.addoption("--soak", action="store_true", help="the long form of the tests marked trust: hours, not minutes")


@pytest.fixture(scope="session")
def soak(request):
    return request.config.getoption("--soak")


CHROMIUM = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api")
    executable = shutil.which("chromium")
    if executable is None:
        pytest.fail("Debian's chromium is not installed")
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=executable, args=CHROMIUM)
        yield running
        running.close()
