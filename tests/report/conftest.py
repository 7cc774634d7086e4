"""A made-up study and the report of it."""

from pathlib import Path

import pytest
from dchoices.report import __main__ as report
from made_up_study import claims, portrait, study, write

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
    """The report of a made-up study in which every claim passes, beside its data as the workflow has them."""
    root = tmp_path_factory.mktemp("project")
    small = study(d=(2,), loads=(0.3, 0.48, 0.9, 0.95))
    small["portrait"] = portrait((1, 2), (0.3, 0.48, 0.9, 0.95), small["portrait"]["t"].values)  # with a choice of d
    write(root / "data" / "made-up", small, claims())
    out = root / "report" / "build" / "made-up"
    arguments = ["--data", root / "data" / "made-up", "--template", TEMPLATE, "--out", out]
    assert report.main([str(a) for a in arguments]) == 0
    return out
