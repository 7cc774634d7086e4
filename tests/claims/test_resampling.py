"""Redrawn cells: what half-widths are made of, what counts as chance, and which rate is shown."""

import math

import numpy as np
import pytest
from dchoices import statistics
from dchoices.claims import engine, resampling
from dchoices.claims.engine import Cell
from scipy import stats


def cells(*given, replicates=6, bound=0.0, exact=()):
    """Return a check with simultaneous intervals of (value, standard error, low, high), and exact cells."""

    def check():
        quantile = statistics.student(replicates - 1, max(1, len(given)))
        sampled = [Cell("", value, quantile * error + bound, low, high) for value, error, low, high in given]
        return [*sampled, *(Cell("", value, 0.0, 0.0, 1.0, exact=True) for value in exact)]

    return check


def rate(check, control=True):
    return resampling.pass_rate(check(), check, "test", control)


def test_half_widths_are_taken_apart():
    check = cells((5, 2.0, 0, 1), (5, 0.0, 0, 1), bound=0.25)
    found = resampling.spread(check(), check)
    assert found.error == pytest.approx([2.0, 0.0])
    assert found.bound == pytest.approx([0.25, 0.25])
    assert found.quantile == pytest.approx([stats.t.isf(0.0125, 5), 0.0])
    assert found.freedom[0] == pytest.approx(5)
    normal = cells((5, 2.0, 0, 1), replicates=math.inf)
    assert resampling.spread(normal(), normal).freedom == pytest.approx(resampling.NORMAL)


@pytest.mark.parametrize("at", [0.0, 0.6, 0.8, 1.2])
def test_the_rate_is_that_of_the_sampling_distribution(at):
    """Against samples of a normal variable and their own Student intervals."""
    check = cells((at, 0.1, -1, 1))
    samples = np.random.default_rng(1).normal(at, 0.1 * math.sqrt(6), (10_000, 6))
    width = statistics.half_width(samples, axis=1)
    expected = resampling.inside(samples.mean(axis=1), width, -1, 1).mean()
    assert rate(check)["rate"] == pytest.approx(expected, abs=0.02)


def test_a_control_has_the_rate_of_its_least_cell_and_a_claim_that_of_all():
    check = cells((0.65, 0.1, -1, 1), (0.65, 0.1, -1, 1), (0.0, 0.1, -1, 1))
    least, all_ = rate(check), rate(check, control=False)
    assert 0.1 < all_["rate"] < least["rate"] < 0.9
    assert all_["rate"] == pytest.approx(least["rate"] ** 2, abs=0.03)
    assert least["ci95"][0] < least["rate"] < least["ci95"][1]
    assert least["repetitions"] == resampling.REPETITIONS
    assert rate(check) == least, "it differs from run to run"


def test_exact_cells_decide_by_construction():
    assert rate(cells(exact=[0.5])) == {"rate": 1.0, "ci95": [1.0, 1.0], "repetitions": 0}
    assert rate(cells(exact=[0.5, 2.0])) == {"rate": 0.0, "ci95": [0.0, 0.0], "repetitions": 0}
    sampled = (0.0, 0.1, -1, 1)
    assert rate(cells(sampled, exact=[0.5])) == rate(cells(sampled))
    refused = rate(cells(sampled, exact=[2.0]))
    assert refused["rate"] == refused["repetitions"] == 0
    assert refused["sampled"] == rate(cells(sampled))


def test_what_was_not_measured_has_no_rate():
    good, without = (0.0, 0.1, -1, 1), (0.0, math.inf, -1, 1)
    assert rate(cells()) is None
    assert rate(cells(without)) is None
    assert rate(cells(good, without), control=False) is None
    assert rate(cells(good, without))["repetitions"] > 0
    assert rate(cells((math.nan, 0.1, -1, 1))) is None
    assert resampling.most_lenient([rate(cells(good)), None]) is None


def test_the_most_lenient_control_is_shown():
    near, far = rate(cells((0.9, 0.1, -1, 1))), rate(cells((9.0, 0.1, -1, 1)))
    exact = rate(cells(exact=[2.0]))
    assert resampling.most_lenient([far, near, exact]) is near
    assert resampling.most_lenient([exact, far]) is far


def test_a_record_holds_the_rates_of_every_control():
    """A new claim has them without a word."""
    sampled = cells((0.0, 0.1, -1, 1))
    entry = engine.Claim(
        **dict.fromkeys(("id", "statement", "source", "quantity", "tolerance_reason", "figure"), ""),
        controls={"off": "one off", "two": "two off"},
        dataset="made up",
        check=lambda data, model: sampled() if model == engine.CLAIM else cells((2.0, 0.1 + (model == "two"), -1, 1))(),
    )
    data = {"made up": type("Made", (), {"attrs": {"content_hash": ""}})}
    record = engine.evaluate(entry, data)
    assert record["pass_rate"]["rate"] > 0.99
    assert set(record["false_pass_rates"]) == {"one off", "two off"}
    assert record["false_pass_rate"] == record["false_pass_rates"]["two off"]
