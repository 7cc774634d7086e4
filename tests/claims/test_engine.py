"""Verdicts: by interval, over cells, with the deciding cell named."""

import math

import pytest
import xarray as xr
from dchoices import datasets
from dchoices.claims import catalogue, engine, stationary
from dchoices.claims.engine import Cell, Claim
from made_up_limits import service, study
from made_up_limits import stationary as runs


@pytest.fixture
def data():
    return {"made-up": xr.Dataset(attrs={"content_hash": ""})}


@pytest.fixture
def entry():
    """A claim with the cells of each of its models."""

    def made(cells, controls):
        said = dict.fromkeys(("statement", "source", "quantity", "tolerance_reason", "figure"), "")
        check = lambda data, model: cells[model]  # noqa: E731
        return Claim(id="P1", controls={name: name for name in controls}, dataset="made-up", check=check, **said)

    return made


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


def test_a_control_that_passes_is_not_hidden_behind_one_that_fails(entry, data):
    """Nor one that fails in fewer cells, whatever their order."""
    cells = {engine.CLAIM: [INSIDE], "passes": [INSIDE, INSIDE], "fails": [OUTSIDE, INSIDE], "in two": [OUTSIDE] * 2}
    names = ["fails", "passes", "in two"]
    for controls in (names, names[::-1]):
        record = engine.evaluate(entry(cells, controls), data)
        assert (record["control_verdict"], record["control_cells_failing"]) == ("pass", 0)
    for controls in (["in two", "fails"], ["fails", "in two"]):
        record = engine.evaluate(entry(cells, controls), data)
        assert (record["control_verdict"], record["control_cells_failing"]) == ("fail", 1)


def test_the_control_is_shown_where_the_claim_is_decided_with_its_own_tolerance(entry, data):
    tight = Cell("tight", 0.8, 0.1, 0, 1)
    cells = {engine.CLAIM: [INSIDE, tight], "wrong": [Cell("a", 9.0, 0.1, 0, 1), Cell("tight", 0.8, 0.1, 1.0, 2.0)]}
    record = engine.evaluate(entry(cells, ["wrong"]), data)
    assert record["at"] == record["control_at"] == "tight"
    assert record["tolerance"] == [0, 1]
    assert record["control_tolerance"] == [1.0, 2.0]
    cells["wrong"][1] = tight  # does not fail there
    record = engine.evaluate(entry(cells, ["wrong"]), data)
    assert (record["control_at"], record["control_measured"]) == ("a", 9.0)


def test_cells_beside_the_others_are_shown_only_where_they_decide(entry, data):
    edge = Cell("edge", 0.9, 0.09, 0, 1, beside=True)
    record = engine.evaluate(entry({engine.CLAIM: [INSIDE, edge], "wrong": [OUTSIDE]}, ["wrong"]), data)
    assert (record["at"], record["verdict"], record["cells"], record["cells_beside"]) == ("a", "pass", 2, 1)
    across = Cell("across", 0.95, 0.1, 0, 1, beside=True)
    record = engine.evaluate(entry({engine.CLAIM: [INSIDE, across], "wrong": [OUTSIDE]}, ["wrong"]), data)
    assert (record["at"], record["verdict"]) == ("across", "inconclusive")


def test_room_is_measured_in_widths_of_the_tolerance():
    assert Cell("two ends", 0.5, 0.3, 0, 1).excess == pytest.approx(-0.2)
    assert Cell("from below", 0.3, 0.1, low=0.1).excess == pytest.approx(-1.0)
    assert Cell("from above", 0.002, 0.001, high=0.004).excess == pytest.approx(-0.25)
    assert Cell("a sign", -0.3, 0.1, high=0.0).excess == pytest.approx(-0.2)


def test_every_control_that_fails_is_shown_outside_its_tolerance():
    data = {name: part.assign_attrs(content_hash="") for name, part in study().items()}
    for one in catalogue.CLAIMS:
        record = engine.evaluate(one, data)
        assert record["control_verdict"] == "fail", one.id
        (bottom, top), (low, high) = record["control_ci95"], record["control_tolerance"]
        assert (high is not None and bottom > high) or (low is not None and top < low), one.id


def test_an_event_that_no_run_saw_leaves_an_interval():
    """No estimate of a share has an interval without a width, which would be sure that nothing was missed."""
    for name in ("P2", "P4", "P12", "N7"):
        cells = list(
            engine.REGISTRY[name].check(study(stationary=runs(ci95=0.0), service=service(ci95=0.0)), engine.CLAIM)
        )
        assert all(cell.half_width > 0 for cell in cells if "grid points" not in cell.at), name


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


def test_a_claim_about_a_study_that_was_not_asked_for_is_undecided_and_says_so(tmp_path):
    datasets.write(runs(), tmp_path / "stationary.nc")
    data = engine.Data(tmp_path, ["stationary"])
    record = engine.evaluate(engine.REGISTRY["P1"], data)
    assert record["verdict"] == record["control_verdict"] == "inconclusive"
    assert record["at"] == record["control_at"] == "no data: the study trajectories"
    assert record["evidence"]["dataset_hash"] is None
    assert engine.verdict(list(engine.REGISTRY["P2"].check(data, engine.CLAIM))) == "pass"
    with pytest.raises(FileNotFoundError):
        engine.evaluate(engine.REGISTRY["P1"], engine.Data(tmp_path))
