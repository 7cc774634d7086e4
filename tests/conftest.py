"""Shared by all tests."""

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
