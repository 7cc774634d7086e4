"""What probing with replacement costs: estimates against the exact chain, the limits against other ways to them."""

import dchoices as dc
import numpy as np
import pytest
from dchoices.claims.replacement import exponent
from reference_values import reference
from scipy.optimize import brentq


@pytest.mark.parametrize("policy", ["sq-memory", "sq"])
def test_estimate_is_the_difference_of_the_exact_chains(policy):
    N, d, lam = 3, 2, 0.6
    solved = [dc.exact_stationary(N, d, lam, 12, name) for name in (policy, f"{policy}-distinct")]
    exact = [float(chain.mean_response_time) for chain in solved]
    runs = dc.replacement_gap(policy, N, d, lam, t_end=8000, replicates=10, seed=1).squeeze()
    expected = N * (exact[0] - exact[1])
    assert abs(float(runs.n_replacement) - expected) < 2 * float(runs.n_replacement_ci95)
    assert float(runs.n_replacement_ci95) < 0.1 * expected


def test_published_mean_queues_have_the_sign_and_the_size():
    """SQ(2) at N = 10, from two papers: 2.800 with replacement and 2.686 without, at ρ = 0.9."""
    with_replacement = {float(row["lam"]): float(row["mean_queue_length"]) for row in rows("sq_mean_queue_length")}
    without = {float(row["lam"]): float(row["mean_queue_length"]) for row in rows("sq_distinct_mean_queue_length")}
    for lam in with_replacement.keys() & without.keys():
        limit = dc.replacement_limit(lam, 2, "sq")
        assert 10 * (with_replacement[lam] - without[lam]) / lam == pytest.approx(limit, rel=0.2)


def test_interval_does_not_grow_with_the_number_of_servers():
    runs = dc.replacement_gap("sq-memory", [20, 200], 2, 0.7, t_end=550, replicates=20, seed=3).squeeze()
    narrow, wide = runs.n_replacement_ci95.values
    assert wide < 2 * narrow


def test_one_probe_costs_nothing():
    assert (dc.replacement_gap(["sq", "sq-memory"], 10, 1, 0.8, t_end=60, replicates=2).n_replacement == 0).all()
    assert dc.replacement_limit(0.8, 1) == dc.replacement_limit(0.8, 1, "sq") == 0


def response_at_bound_2(lam, d):
    """The mean response time where the bound is 2, the fixed point with observations 1 and 2 written out."""
    delta = lam * d

    def weights(theta):
        a1, a0 = 1.0, 1 / (delta + theta)
        b2 = theta * a1
        b1 = (b2 + theta * a0) / (1 + delta)
        return np.array([a0 + b1 / delta, a1 + b1, b2])

    theta = brentq(lambda theta: weights(theta)[0] / weights(theta).sum() - (1 - lam), 0, 1e6, xtol=1e-14, rtol=1e-14)
    return weights(theta) @ [0, 1, 2] / weights(theta).sum() / lam


@pytest.mark.parametrize(("lam", "d"), [(0.7, 2), (0.8, 3), (0.9, 5)])
def test_limit_with_memory_is_a_derivative_in_d(lam, d):
    slope = (response_at_bound_2(lam, d + 1e-3) - response_at_bound_2(lam, d - 1e-3)) / 2e-3
    assert dc.replacement_limit(lam, d) == pytest.approx(-d * (d - 1) / 2 * slope, rel=1e-4)
    assert dc.replacement_limit(lam, d) > 0


@pytest.mark.parametrize(("lam", "d"), [(0.4, 2), (0.6, 3)])
def test_limit_below_the_threshold_is_zero(lam, d):
    assert dc.replacement_limit(lam, d) == 0


@pytest.mark.parametrize(("lam", "d"), [(0.3, 2), (0.7, 2), (0.8, 3), (0.9, 5)])
def test_limit_without_memory_is_the_shift_of_the_finite_fixed_point(lam, d):
    """s_i = λ P(d different probes hit i - 1 jobs or more), solved at a large finite N."""
    N, tails = 10**6, []
    for distinct in (False, True):
        tail = [1.0]
        while tail[-1] > 1e-12:
            all_hit = np.prod([(N * tail[-1] - k) / (N - k) for k in range(d)]) if distinct else tail[-1] ** d
            tail.append(max(lam * all_hit, 0.0))
        tails.append(sum(tail[1:]) / lam)
    assert N * (tails[0] - tails[1]) == pytest.approx(dc.replacement_limit(lam, d, "sq"), rel=1e-4)


def test_exponent_and_its_error():
    N = np.array([10, 100, 1000])
    slope, error = exponent(N, 3.0 * N**0.25, 0.01 * 3.0 * N**0.25)
    assert slope == pytest.approx(-0.75)
    assert error == pytest.approx(0.01 * np.sqrt(2) / (2 * np.log(10)))
    assert exponent(N, np.array([1.0, -1.0, 1.0]), np.ones(3))[1] == np.inf


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"policy": "jsq"}, "policy = 'jsq'"),
        ({"d": 11}, "d = 11: different servers are probed, must be at most N = 10"),
        ({"N": 10**8, "d": 2}, "N = 100000000"),
        ({"warm_up": 100.0}, "warm_up = 100: must be less than t_end = 100"),
    ],
)
def test_bad_arguments_are_named(changed, message):
    with pytest.raises(ValueError, match=message):
        dc.replacement_gap(**({"policy": "sq", "N": 10, "d": 2, "lam": 0.7, "t_end": 100.0} | changed))


def rows(name):
    return [row for row in reference(name) if int(row.get("N", 0)) == 10 and int(row.get("d", 2)) == 2]
