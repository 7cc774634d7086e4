"""Verdicts: by interval, over cells, with the deciding cell named."""

import math

import pytest
from dchoices.claims import catalogue, engine, stationary
from dchoices.claims.engine import Cell

INSIDE, OUTSIDE, ACROSS = Cell("a", 0.5, 0.1, 0, 1), Cell("b", 1.5, 0.1, 0, 1), Cell("c", 0.95, 0.1, 0, 1)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([], "inconclusive"),
        ([INSIDE], "pass"),
        ([INSIDE, ACROSS], "inconclusive"),
        ([INSIDE, ACROSS, OUTSIDE], "fail"),
        ([Cell("infinite", 0.5, math.inf, 0, 1)], "inconclusive"),
        ([Cell("one-sided", 0.0, 0.0, high=0.001)], "pass"),
        ([Cell("at the edge", 1.0, 0.0, 0, 1)], "pass"),
        ([Cell("nan", math.nan, 0.0, 0, 1)], "inconclusive"),
        ([Cell("nan wide", 0.5, math.nan, 0, 1)], "inconclusive"),
        ([Cell("infinite above", math.inf, 0.0, low=0.001)], "inconclusive"),
        ([Cell("infinite below", -math.inf, 0.0, high=0.001)], "inconclusive"),
        ([Cell("negative width", 0.5, -0.1, 0, 1)], "inconclusive"),
        ([Cell("negative width", 0.5, -math.inf, 0, 1)], "inconclusive"),
    ],
)
def test_verdict(cells, expected):
    assert engine.verdict(cells) == expected


def test_the_deciding_cell_is_the_worst():
    assert engine.worst([INSIDE, OUTSIDE, ACROSS]) is OUTSIDE
    assert engine.worst([INSIDE, ACROSS]) is ACROSS
    tight = Cell("d", 0.8, 0.1, 0, 1)
    assert engine.worst([INSIDE, tight]) is tight


def test_registry_holds_the_claims_in_order():
    expected = [*(f"P{k}" for k in range(1, 13)), *(f"N{k}" for k in range(1, 9))]
    assert [entry.id for entry in catalogue.CLAIMS] == expected
    for entry in catalogue.CLAIMS:
        assert entry.controls, entry.id
        assert entry.tolerance_reason, entry.id


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"id": "P1"}, "registered twice"),
        ({"id": "claim"}, "P .* or N"),
        ({"id": "N99"}, "have a heuristic"),
        ({"id": "P99", "heuristic": "As on average."}, "have a heuristic"),
    ],
)
def test_a_claim_that_cannot_be_registered_is_refused(given, message):
    empty = dict.fromkeys(("statement", "source", "quantity", "tolerance_reason", "dataset", "figure"), "")
    before = dict(engine.REGISTRY)
    with pytest.raises(ValueError, match=message):
        engine.claim(**empty, controls={}, **given)(lambda data, model: [])
    assert before == engine.REGISTRY


@pytest.mark.parametrize("model", ["lower", "higher", "log(λd)", "floor"])
def test_every_wrong_bound_differs_from_the_bound(model):
    assert stationary._bound(engine.CLAIM, 3, 0.9, 2) == 3
    assert stationary._bound(model, 3, 0.9, 2) != 3


def test_command_line_names_a_missing_dataset(tmp_path, capsys):
    assert engine.main([str(tmp_path), str(tmp_path / "claims.json")]) == 1
    assert "trajectories.nc" in capsys.readouterr().err
    assert not (tmp_path / "claims.json").exists()
    assert engine.main([]) == 2
