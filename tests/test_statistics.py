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


def test_simultaneous_intervals_cover_together():
    """100 cells at once, 2000 repetitions: all covered in at least 95 % of them, up to sampling error."""
    rng = np.random.default_rng(1)
    samples = rng.normal(size=(2000, 8, 100))
    width = statistics.half_width(samples, axis=1) * statistics.widening(8, 100)
    covered = (np.abs(samples.mean(axis=1)) <= width).all(axis=1).mean()
    assert 0.935 < covered < 0.97


def test_total_variation():
    assert dc.total_variation([1, 0], [0, 1]) == 1
    assert dc.total_variation([0.5, 0.5], [0.5, 0.25, 0.25]) == pytest.approx(0.25)
    assert dc.total_variation(np.eye(3), np.eye(3)[[1, 0, 2]]).tolist() == [1, 1, 0]
