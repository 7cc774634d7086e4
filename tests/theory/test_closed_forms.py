"""Closed forms against the published table, exact arithmetic and each other."""

import math
from fractions import Fraction

import dchoices as dc
import numpy as np
import pytest
from dchoices.theory.closed_forms import sq_mean_response_time
from hypothesis import given
from hypothesis import strategies as st
from reference_values import reference

TABLE = [
    (
        float(row["lam"]),
        int(row["d"]),
        int(row["bound"]),
        [float(p) for p in row["queue_length_pmf"].split()],
        float(row["mean_response_time"]),
    )
    for row in reference("fixed_points")
]
loads = st.floats(0.001, 0.99999)
probes = st.integers(1, 12)


@pytest.mark.parametrize(("lam", "d", "bound", "pmf", "response"), TABLE)
def test_fixed_point_reproduces_the_table(lam, d, bound, pmf, response):
    point = dc.fixed_point(lam, d)
    assert dc.queue_bound(lam, d) == bound
    assert point.queue_length_pmf.values == pytest.approx(pmf, abs=5.1e-6)
    assert point.mean_response_time.item() == pytest.approx(response, abs=5.1e-6)


@given(loads, probes)
def test_fixed_point_solves_the_fluid_equations(lam, d):
    """Balance of every pair (i, j), written out from the model: service, sampling, dispatch of what arrives."""
    state = dc.fixed_point(lam, d).state.values
    size, k, delta = len(state), len(state) - 2, lam * d
    p, flow = state.sum(axis=1), np.zeros_like(state)
    held = state[:, k].sum()
    share = lam * (1 - d * sum((k - i) * p[i] for i in range(k)))  # λR_k
    for i in range(size):
        for j in range(i, size):
            if i:
                flow[i, j] -= state[i, j]
                flow[i - 1, j] += state[i, j]
            if i < max(j, k):
                flow[i, j] -= delta * state[i, j]
                flow[max(i, k), max(i, k)] += delta * state[i, j]
    if held > 1e-9:
        for i in range(k + 1):
            flow[i, k] -= share * state[i, k] / held
            flow[i + 1, k + 1] += share * state[i, k] / held
        assert np.abs(flow).max() < 1e-9
    assert state.sum() == pytest.approx(1, abs=1e-13)
    assert p[0] == pytest.approx(1 - lam, rel=1e-9)
    assert (state >= 0).all()


@given(loads, probes)
def test_level_found_without_the_formula_is_the_bound(lam, d):
    if dc.distance_to_switch(lam, d) > 1e-12:
        assert dc.fixed_point(lam, d).sizes["i"] - 1 == dc.queue_bound(lam, d)


@given(loads, probes)
def test_dispatch_at_the_fixed_point(lam, d):
    point = dc.fixed_point(lam, d)
    assert point.dispatch.sum().item() == pytest.approx(1)
    assert point.dispatch.values[0] == pytest.approx(min(1, d * (1 - lam)), rel=1e-9)
    assert point.dispatch_to_idle.item() >= point.dispatch.values[0] - 1e-12


@pytest.mark.parametrize("d", range(2, 51))
def test_bound_at_and_around_the_threshold(d):
    threshold = dc.optimality_threshold(d)
    assert dc.queue_bound(threshold, d) == 1
    assert dc.queue_bound((d - 1) / d, d) == 1
    assert dc.queue_bound(threshold * (1 - 1e-13), d) == 1
    assert dc.queue_bound(threshold * (1 + 1e-13), d) == 2
    assert dc.fixed_point(threshold, d).sizes["i"] == 2


@pytest.mark.parametrize("d", [1, 2, 3, 5, 10])
@pytest.mark.parametrize("level", range(2, 9))
def test_bound_at_and_around_later_switches(d, level):
    """The double nearest a switch (exact bisection) belongs to the lower level; 1e-13 further on it does not."""
    low, high = Fraction(level * d - 1, d * (level + 1)), Fraction(1)
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if (1 - middle) * (1 + middle * d) ** level >= 1 else (low, middle)
    switch = float(low)
    assert dc.switch_load(level, d) == pytest.approx(switch, rel=1e-14)
    assert dc.queue_bound(switch, d) == level
    assert dc.fixed_point(switch, d).sizes["i"] - 1 == level
    assert dc.queue_bound(switch - 1e-13, d) == level
    assert dc.queue_bound(switch + 1e-13, d) == level + 1


def test_bound_does_not_trust_the_quotient_of_logarithms():
    assert math.ceil(-math.log(1 - 0.8) / math.log(0.8 * 5 + 1)) == 2, "the trap this test is about is gone"
    assert dc.queue_bound(0.8, 5) == 1


@pytest.mark.parametrize(("lam", "d"), [(0.3, 1), (0.9, 2), (0.99, 3)])
def test_memoryless_fixed_point(lam, d):
    from dchoices.theory.closed_forms import sq_queue_length_pmf

    tail = sq_queue_length_pmf(lam, d)[::-1].cumsum()[::-1]
    exponents = [sum(d**k for k in range(i)) for i in range(6)]
    assert tail[:6] == pytest.approx([lam**e for e in exponents], abs=1e-12)
    if (lam, d) == (0.9, 2):
        # Mean response time 2.614057: Mitzenmacher's limit.
        assert tail[1:].sum() / lam == pytest.approx(2.614057, abs=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, 2), "lam = 0.0: must be a number greater than 0 and less than 1"),
        ((1.0, 2), "lam = 1.0"),
        ((math.nan, 2), "lam = nan"),
        (("0.5", 2), "lam = '0.5'"),
        ((True, 2), "lam = True"),
        ((0.5, 0), "d = 0: must be an integer >= 1"),
        ((0.5, 2.0), "d = 2.0: must be an integer >= 1"),
        ((0.5, True), "d = True"),
    ],
)
@pytest.mark.parametrize("function", [dc.queue_bound, dc.fixed_point])
def test_bad_arguments_are_named(function, arguments, message):
    with pytest.raises(ValueError, match=message.split(":")[0]):
        function(*arguments)


@pytest.mark.parametrize(
    ("lam", "d"),
    [(0.3, 2), (0.5, 3), (2 / 3, 4), (0.7, 4), (0.75, 5), (0.8, 6), (1 - 1 / 7, 8), (0.9, 11), (0.99, 101)],
)
def test_the_fewest_probes_are_not_decided_by_rounding(lam, d):
    assert dc.fewest_probes(lam) == d
    assert lam < dc.optimality_threshold(d)
    assert dc.queue_bound(lam, d) == 1


def test_response_time_without_memory():
    assert sq_mean_response_time(0.9, 1) == pytest.approx(10)
    assert sq_mean_response_time(0.7, 2) == pytest.approx(1 + 0.7**2 + 0.7**6 + 0.7**14 + 0.7**30)
