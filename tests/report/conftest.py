"""A made-up study and the report of it."""

from pathlib import Path

import pytest
from made_up_study import claims, study, write_report

TEMPLATE = Path(__file__).parents[2] / "report" / "report.md"


@pytest.fixture(scope="session")
def template():
    """The report's template."""
    return TEMPLATE


@pytest.fixture(scope="session")
def datasets():
    return study()


@pytest.fixture
def records():
    return claims()


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The report of a made-up study in which every claim passes, with every figure drawn."""
    return write_report(tmp_path_factory.mktemp("project"), TEMPLATE)
