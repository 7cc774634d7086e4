"""Intervals and distances."""

import dchoices as dc
import numpy as np
import pytest
from dchoices import statistics
from scipy import stats


def test_half_width_is_students():
    samples = np.array([1.0, 2.0, 4.0, 4.0, 9.0])
    low, high = stats.t.interval(0.95, 4, samples.mean(), stats.sem(samples))
    assert statistics.half_width(samples) == pytest.approx((high - low) / 2)
    with pytest.raises(ValueError, match="at least 2"):
        statistics.half_width(np.array([1.0]))


def test_widening_is_bonferronis():
    assert statistics.widening(12, 1) == pytest.approx(1)
    assert statistics.widening(12, 20) == pytest.approx(stats.t.isf(0.025 / 20, 11) / stats.t.isf(0.025, 11))


def test_intervals_can_hold_for_several_lists_of_cells_at_once():
    with statistics.at_once(3):
        assert statistics.widening(12, 20) == pytest.approx(stats.t.isf(0.025 / 60, 11) / stats.t.isf(0.025, 11))
        assert statistics.student(np.inf) == pytest.approx(stats.norm.isf(0.025 / 3))
    assert statistics.student(5) == pytest.approx(stats.t.isf(0.025, 5))


def test_what_stands_in_for_the_quantile_shows_what_half_widths_are_made_of():
    with statistics.quantile(lambda freedom: 1 / freedom):
        assert statistics.student(8, cells=20) == 1 / 8
        assert statistics.widening(9, 20) == pytest.approx(1 / 8 / stats.t.isf(0.025, 8))
    assert statistics.student(8) == pytest.approx(stats.t.isf(0.025, 8))


def test_proportions_have_exact_intervals():
    low, high = statistics.proportion(np.array([0, 3, 10]), 10)
    expected = [stats.binomtest(k, 10).proportion_ci(0.95, "exact") for k in (0, 3, 10)]
    assert low == pytest.approx([interval.low for interval in expected])
    assert high == pytest.approx([interval.high for interval in expected])


def test_simultaneous_intervals_cover_together():
    """100 cells at once, 2000 repetitions: all covered in at least 95 % of them, up to sampling error."""
    rng = np.random.default_rng(1)
    samples = rng.normal(size=(2000, 8, 100))
    width = statistics.half_width(samples, axis=1) * statistics.widening(8, 100)
    covered = (np.abs(samples.mean(axis=1)) <= width).all(axis=1).mean()
    assert 0.935 < covered < 0.97


def test_slope_is_that_of_a_fit_to_all_samples():
    rng = np.random.default_rng(1)
    x = np.array([2.0, 3.0, 5.0])
    samples = [rng.normal(size=n) + 2 * at for n, at in zip((4, 3, 2), x, strict=True)]
    fit = stats.linregress(np.repeat(x, (4, 3, 2)), np.concatenate(samples))
    assert statistics.slope(x, samples)[0] == pytest.approx(fit.slope)
    with pytest.raises(ValueError, match="1 at one x"):
        statistics.slope(x, [np.ones(3), np.ones(1), np.ones(2)])


def test_slope_against_two_values_is_welchs_difference():
    one, other = np.array([1.0, 2.0, 4.0, 8.0]), np.array([3.0, 3.5, 9.0])
    slope, error, freedom = statistics.slope(np.array([0.0, 2.0]), [one, other])
    welch = stats.ttest_ind(other, one, equal_var=False)
    low, high = welch.confidence_interval(0.95)
    assert freedom == pytest.approx(welch.df)
    assert 2 * slope == pytest.approx((low + high) / 2)
    assert 2 * error * statistics.student(freedom) == pytest.approx((high - low) / 2)


@pytest.mark.parametrize(("foot", "top"), [(1, 1), (1, 2), (2, 1)], ids=["alike", "wide top", "wide foot"])
def test_slope_intervals_cover_with_few_samples_at_the_top(foot, top):
    """The ladder of the paper's profile: 95 %, up to the sampling error of 5000 repetitions."""
    rng = np.random.default_rng(2)
    x, number, spread = np.arange(6.0), [30, 30, 30, 30, 10, 4], [foot, 1, 1, 1, 1, top]
    covered = 0
    for _ in range(5000):
        samples = [1 - 0.5 * at + s * rng.normal(size=n) for at, n, s in zip(x, number, spread, strict=True)]
        slope, error, freedom = statistics.slope(x, samples)
        covered += abs(slope + 0.5) <= error * statistics.student(freedom)
    assert 0.94 < covered / 5000 < 0.96


def test_total_variation():
    assert dc.total_variation([1, 0], [0, 1]) == 1
    assert dc.total_variation([0.5, 0.5], [0.5, 0.25, 0.25]) == pytest.approx(0.25)
    assert dc.total_variation(np.eye(3), np.eye(3)[[1, 0, 2]]).tolist() == [1, 1, 0]


def test_a_control_variate_takes_what_goes_with_it():
    """The intervals cover, and are those of the line fitted by least squares, at the known mean."""
    rng = np.random.default_rng(3)
    covered, widths = 0, []
    for _ in range(2000):
        control = rng.normal(size=6)
        samples = 5 + 3 * control + 0.1 * rng.normal(size=6)
        mean, half = statistics.controlled(samples, control, 0.0)
        covered += abs(mean - 5) <= half
        widths.append(half / statistics.half_width(samples))
    assert 0.93 < covered / 2000 < 0.97
    assert np.median(widths) < 0.1
    fit = stats.linregress(control, samples)
    assert mean == pytest.approx(fit.intercept)
    assert half == pytest.approx(fit.intercept_stderr * stats.t.isf(0.025, 4))
    assert statistics.controlled(samples, np.ones(6), 1.0) == pytest.approx(
        (samples.mean(), statistics.half_width(samples))
    )
    with pytest.raises(ValueError, match="needs at least 3"):
        statistics.controlled(samples[:2], control[:2], 0.0)
