"""The linearised drift against differences of the drift itself, and the spectral gap against what is known of it."""

import math

import dchoices as dc
import numpy as np
import pytest
from dchoices.kernels.drift import memory_drift
from dchoices.theory.spectrum import gap_growth, linearised_drift


def drift(x, k, d, lam):
    out = np.zeros_like(x)
    memory_drift(x, k, d, lam, False, np.zeros(len(x)), out)
    return out


def random_state(rng, levels, k):
    """A state with nothing below observation k, and none at the last, where dispatch ends."""
    x = np.triu(rng.random((levels, levels)))
    x[:, :k] = x[:, -1] = 0
    return x / x.sum()


@pytest.mark.parametrize(("k", "d", "lam"), [(0, 2, 0.3), (1, 2, 0.7), (1, 1, 0.6), (3, 5, 0.95)])
def test_the_jacobian_is_the_derivative_of_the_drift(k, d, lam):
    """At any state, as central differences see it: the error is of third order."""
    x, step = random_state(np.random.default_rng(k), k + 4, k), 1e-5
    pairs = [(i, j) for j in range(k, len(x)) for i in range(j + 1)]
    rows, columns = np.transpose(pairs)
    jacobian = linearised_drift(x, k, d, lam)
    for p, pair in enumerate(pairs):
        change = np.zeros_like(x)
        change[pair] = step
        slope = (drift(x + change, k, d, lam) - drift(x - change, k, d, lam)) / (2 * step)
        assert jacobian[:, p] == pytest.approx(slope[rows, columns], abs=1e-7), pair
    assert jacobian.sum(axis=0) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("lam", "d"), [(0.1, 2), (0.4, 2), (0.15, 5), (0.5, 5), (0.79, 5)])
def test_below_the_threshold_it_is_the_lesser_of_one_and_the_rate_of_sampling(lam, d):
    assert dc.spectral_gap(lam, d) == pytest.approx(min(1, lam * d))
    state = dc.fixed_point(lam, d).state.values
    rates = -np.linalg.eigvals(linearised_drift(np.pad(state, (0, 1)), 0, d, lam))
    known = (0, 1, lam * d, 1 + lam * d)
    assert all(min(abs(rate - value) for value in known) < 1e-6 for rate in rates)


@pytest.mark.parametrize("d", [1, 2, 3, 10, 1000])
def test_no_observation_above_those_in_use_is_slower(d):
    """They have rates 1, λd and 1+λd, and are left out of the spectrum."""
    for lam in np.concatenate([np.linspace(0.005, 0.985, 50), 1 - np.geomspace(0.01, 1e-6, 20)]):
        assert dc.spectral_gap(lam, d) <= min(1, lam * d) * (1 + 1e-12)


@pytest.mark.parametrize("d", [2, 3, 10])
def test_it_falls_at_the_threshold(d):
    threshold = dc.optimality_threshold(d)
    assert dc.spectral_gap(threshold - 1e-9, d) == pytest.approx(min(1, d - 1), abs=1e-6)
    for lam in (threshold, threshold + 1e-9):
        assert dc.spectral_gap(lam, d) == pytest.approx(1 / d, abs=1e-6)


@pytest.mark.parametrize("level", [2, 3, 4])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_it_vanishes_below_a_step_of_the_bound_and_not_above(level, d):
    step = dc.switch_load(level, d)
    near, nearer = (dc.spectral_gap(step - part * (1 - step), d) for part in (1e-8, 1e-10))
    # The next order is ε^(1/Q) of the first, some hundredths for Q = 4.
    assert np.log10(near / nearer) / 2 == pytest.approx((level - 1) / level, abs=0.01 * level**2 / 4)
    assert dc.spectral_gap(step, d) == 0
    above = dc.spectral_gap(step + 1e-8 * (1 - step), d)
    assert above > 1 - step
    assert above == pytest.approx(dc.spectral_gap(step + 1e-6 * (1 - step), d), rel=1e-4)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("below", [0.3, 0.7])
def test_it_is_of_order_slack_times_log_slack(d, below):
    """Along loads whose argument of the bound stays as far below its integer, up to 1-λ of about 1e-11."""
    levels = np.floor(11 * np.log(10) / np.log(1 + d)) + np.array([-1, 0])
    scaled = []
    for level in levels:
        slack = (1 + d) ** -(level - below)
        for _ in range(50):
            slack = (1 + (1 - slack) * d) ** -(level - below)
        scaled.append(dc.spectral_gap(1 - slack, d) / slack)
    assert scaled[1] - scaled[0] == pytest.approx(gap_growth(d, below), rel=0.06)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match=r"^lam = 1.5: must be"):
        dc.spectral_gap(1.5, 2)
    with pytest.raises(ValueError, match=r"^d = 0: must be"):
        dc.spectral_gap(0.5, 0)


@pytest.mark.parametrize(("lam", "d"), [(0.5, 1), (0.7, 1), (0.6, 2), (0.9, 2), (0.9, 3)])
def test_the_gap_without_memory_is_the_rate_at_which_fluid_paths_settle(lam, d):
    gap = dc.spectral_gap(lam, d, "sq")
    if d == 1:
        assert gap == pytest.approx((1 - math.sqrt(lam)) ** 2)
        return
    t = np.array([15.0, 16.0]) / gap
    path = dc.fluid_path(lam, d, t, policy="sq").occupancy.values
    limit = dc.fluid_path(lam, d, [60 / gap], policy="sq").occupancy.values
    first, second = np.abs(path[:, : limit.shape[1]] - limit[:, : path.shape[1]]).sum(axis=1)
    assert math.log(first / second) / (t[1] - t[0]) == pytest.approx(gap, rel=0.02)


def test_relaxation_takes_longer_where_few_servers_are_idle():
    assert dc.relaxation_time(0.9, 2, 10**6) == 1 / dc.spectral_gap(0.9, 2)
    assert dc.relaxation_time(0.9, 2, 10**6, "sq") == 1 / dc.spectral_gap(0.9, 2, "sq")
    assert dc.relaxation_time(0.998, 2, 100) == pytest.approx(4 / (100 * 0.002**2), rel=0.01)
    with pytest.raises(ValueError, match="relaxes algebraically, must not be at a step of the bound at d = 2"):
        dc.relaxation_time(dc.switch_load(2, 2), 2, 100)
    with pytest.raises(ValueError, match="policy = 'jsq': must be one of sq-memory, sq"):
        dc.relaxation_time(0.9, 2, 100, "jsq")
