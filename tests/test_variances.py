"""Stationary variances: the closed form against the Lyapunov equation, the estimate against closed moments."""

import dchoices as dc
import numpy as np
import pytest
from dchoices import variances
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import solve_continuous_lyapunov


def moments(N, d, lam):
    """Variances at finite N, as long as a server is known to be idle: the first two moments of B and Z close.

    A server is among the probes with probability one, a given pair with probability two.
    """
    one = 1 - (1 - 1 / N) ** d
    two = 1 - 2 * (1 - 1 / N) ** d + (1 - 2 / N) ** d
    rate = lam * N
    B = rate
    Z = B / (rate * one)
    BB = B + B**2
    BZ = (rate * (1 - one) * Z + BB - B) / (1 + rate * one)
    ZZ = (rate * (one - two) * Z + 2 * BZ + B) / (rate * (2 * one - two))
    return (BB - B**2) / N, (BB + 2 * BZ + ZZ - (B + Z) ** 2) / N


@given(st.integers(2, 20), st.floats(0.01, 0.99))
def test_closed_form_solves_the_lyapunov_equation(d, part):
    lam = part * (1 - 1 / d)
    for v in (1 - 1 / d, 1.0):
        drift = np.array([[-1, 0], [1, -lam * d]])
        noise = lam * np.array([[2, -2], [-2, 2 + v]])
        covariance = solve_continuous_lyapunov(drift, -noise)
        expected = covariance[0, 0], covariance.sum()
        assert dc.fluctuations_below_threshold(lam, d, v) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("lam", "d"), [(0.1, 2), (0.37, 2), (0.1, 5), (0.6, 5)])
def test_the_chain_at_finite_n_tends_to_the_closed_form(lam, d):
    limit = np.array(dc.fluctuations_below_threshold(lam, d))
    errors = [np.abs(np.array(moments(N, d, lam)) / limit - 1).max() for N in (100, 1000, 10_000)]
    assert errors[1] < 1e-3
    assert errors[2] == pytest.approx(errors[1] / 10, rel=0.05)


def test_estimates_are_the_moments_of_the_finite_chain():
    """At N = 60, where the next to nothing that is lost at the edge is below the interval, but finite N is not."""
    N, d, lam = 60, 5, 0.2
    runs = dc.fluctuations(N, d, lam, t_end=8000, replicates=10, seed=2).squeeze()
    for name, expected in zip(("n_var_busy", "n_var_known_idle"), moments(N, d, lam), strict=True):
        assert abs(float(runs[name]) - expected) < 2 * float(runs[f"{name}_ci95"]), name
        assert float(runs[f"{name}_ci95"]) < 0.05 * expected


def test_variance_is_about_the_common_mean_and_its_interval_over_replicates():
    counts = np.array([[[0, 2], [1, 1]], [[4, 6], [1, 3]]])  # replicate, busy or known idle, time
    value, width = variances._variances(counts, N=10)
    assert value == pytest.approx([0.5, 0.075])  # (9 + 1 + 1 + 9) / 4 / 10 about the mean 3; (3/4 + 9/4) / 4 / 10
    half = 12.706 * (0.125 - 0.025) / 2  # Student's, one degree of freedom: the means of squares are 0.25 and 1.25
    assert width == pytest.approx([0.0, half], rel=1e-4)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"lam": 1.0}, "lam = 1.0"),
        ({"warm_up": 1000.0}, "warm_up = 1000: must be less than t_end = 1000"),
        ({"t_end": 0.0}, "t_end = 0"),
        ({"replicates": 1}, "replicates = 1"),
    ],
)
def test_bad_arguments_are_named(changed, message):
    with pytest.raises(ValueError, match=message):
        dc.fluctuations(**({"N": 100, "d": 2, "lam": 0.3} | changed))


@pytest.mark.parametrize(("lam", "d"), [(0.5, 2), (0.9, 2), (0.3, 1)])
def test_above_the_threshold_nothing_is_conjectured(lam, d):
    with pytest.raises(ValueError, match="must be below the threshold"):
        dc.fluctuations_below_threshold(lam, d)
