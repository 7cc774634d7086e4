"""Finite systems beside the limit: against the exact chain and the time averages, and what is refused."""

import itertools

import dchoices as dc
import numpy as np
import pytest
from dchoices import regimes
from dchoices.exponents import Ladder
from dchoices.theory import critical
from dchoices.theory.closed_forms import _level_state, fixed_point_state
from dchoices.theory.spectrum import linearised_drift


def test_the_estimates_are_those_of_the_exact_chain():
    """Three servers; the truncation of the exact chain adds less than the intervals."""
    runs = dc.finite_size({"above": {"d": [2], "N": [3], "events": 4e6}}, seed=1).sel(point="above", d=2, N=3)
    lam = float(runs["load"])
    exact = dc.exact_stationary(3, 2, lam, 12)
    excess = float(exact.mean_response_time) - float(dc.fixed_point(lam, 2).mean_response_time)
    assert abs(float(runs.response_excess) - excess) < 2 * float(runs.response_excess_ci95) < 0.02
    assert bool(runs.warm_up_ok)


@pytest.mark.parametrize(("regime", "level", "d"), [("threshold", 1, 3), ("step-2", 2, 1), ("step-3", 3, 1)])
def test_y_from_the_jobs_is_the_time_average(regime, level, d):
    """Against servers counted in time, which knows no balance; 50 servers, so that d_N is not d."""
    run = dc.finite_size({regime: {"d": [d], "N": [50], "events": 5e6}}, seed=2).sel(point=regime, d=d, N=50)
    lam = float(run["load"])
    sampled = dc.stationary("sq-memory", 50, d, lam, 100.0, 2000.0, replicates=10, seed=3)
    sampled = sampled.squeeze(drop=True)
    y, width = (sampled[f"observation_occupancy{end}"].values[level - 1] for end in ("", "_ci95"))
    assert abs(float(run.lowest_share) - y) < 1.5 * np.hypot(float(run.lowest_share_ci95), width) < 0.15 * y
    zero, width = (float(sampled[f"dispatch_to_observation_zero{end}"]) for end in ("", "_ci95"))
    assert abs(1 - float(run.missed_zero) - zero) < 1.5 * np.hypot(float(run.missed_zero_ci95), width) < 0.02
    remainder = float(run.response_excess + run.lowest_share / lam)
    assert float(run.response_remainder) == pytest.approx(remainder, abs=1e-12)


def test_what_was_not_asked_for_is_no_ladder():
    asked = {"threshold": {"d": [2], "N": [20, 40, 80], "events": 1e5}, "above": {"d": [1], "N": [30], "events": 1e5}}
    runs = dc.finite_size(asked, replicates=4)
    assert runs.horizon.sum("N").values.astype(bool).tolist() == [[False, True], [True, False]]
    assert Ladder.of(runs, "lowest_share", "threshold", 2).N.tolist() == [20, 40, 80]
    assert Ladder.of(runs, "lowest_share", "threshold", 1).N.size == 0
    assert Ladder.of(runs, "lowest_share", "step-2", 1).N.size == 0


def test_loads_of_the_regimes():
    assert regimes.regime_load("below", 5, 100) == pytest.approx(0.64)
    assert regimes.regime_load("threshold", 2, 100, 1.0) == pytest.approx(0.55)
    assert regimes.regime_load("step-2", 2, 1000, -1.0) == pytest.approx(
        dc.switch_load(2, 2) - (1 - dc.switch_load(2, 2)) / 100
    )
    assert dc.switch_load(1, 3) < regimes.regime_load("above", 3, 10) < dc.switch_load(2, 3)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"beside": {"d": [2], "N": [10], "events": 1e6}}, "regime = 'beside': must be one of"),
        ({"threshold": {"d": [1], "N": [10], "events": 1e6}}, "no load in"),
        ({"above": {"d": [1], "N": [10], "events": 1e6, "offsets": [1]}}, "is at no step"),
        ({"step-3": {"d": [2], "N": [10_000], "events": 1e6}}, r"events = 1e\+06: must be at least"),
        ({"above": {"d": [0], "N": [10], "events": 1e6}}, "d = 0"),
    ],
)
def test_bad_arguments(asked, message):
    with pytest.raises(ValueError, match=message):
        dc.finite_size(asked)


@pytest.mark.parametrize(("level", "d"), [(2, 1), (2, 3), (3, 2), (4, 1)])
class TestLimitLaw:
    def test_idle_servers_at_the_steady_states_of_a_level(self, level, d):
        """p_0 = (1+δ)^(-Q) + a_0 δ/(1+δ) at any rate of dispatch, which gives c."""
        delta = dc.switch_load(level, d) * d
        for u in (0.3, 0.9, 0.999):
            state = _level_state(u, level - 1, delta)
            expected = (1 + delta) ** -level + state[0, level - 1] * delta / (1 + delta)
            assert state[0].sum() == pytest.approx(expected, rel=1e-12)

    def test_the_slow_variable_is_that_of_the_linearised_drift(self, level, d):
        """Its left eigenvector just below the step; and the servers without a job fix the load."""
        lam = dc.switch_load(level, d) * (1 - 1e-9)
        state, k = fixed_point_state(lam, d), level - 1
        values, vectors = np.linalg.eig(linearised_drift(state, k, d, lam).T)
        slowest = np.argsort(-values.real)[1]  # after the zero of the conserved number of servers
        at_top = vectors[:, slowest].real[level : 2 * level + 1]  # the pairs (i, Q)
        u = critical.slow_variable(level, d)
        found = at_top[-1] - at_top
        assert found / found[0] == pytest.approx(u / u[0], rel=1e-2)
        assert u[0] == pytest.approx(level - 1 / d)

    def test_noise_by_enumeration_of_the_probes(self, level, d):
        lam, u = dc.switch_load(level, d), critical.slow_variable(level, d)
        p = fixed_point_state(lam, d).sum(axis=1)
        arrival = sum(
            np.prod(p[list(found)]) * (1 + sum(u[i] - (level - i) for i in found)) ** 2
            for found in itertools.product(range(level + 1), repeat=d)
        )
        services = sum(p[i] * (u[i] - u[i - 1]) ** 2 for i in range(1, level + 1))
        assert critical.noise(level, d) == pytest.approx(lam * arrival + services)


def test_y_approaches_the_limit_law():
    """Its corrections fall like N^(-1/6); at d = 1 they are already small."""
    run = dc.finite_size({"step-2": {"d": [1], "N": [1000], "events": 2e7}}, seed=4)
    scaled = float(run.lowest_share.squeeze()) * 10
    assert scaled == pytest.approx(critical.lowest_share_limit(2, 1), rel=0.1)
