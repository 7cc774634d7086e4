"""The longest queue without the formula: the enclosure, exact arithmetic, and what other ways find."""

import functools
from fractions import Fraction

import dchoices as dc
import numpy as np
import pytest
from dchoices.theory import levels
from hypothesis import example, given, settings
from hypothesis import strategies as st

loads = st.floats(0.001, 0.99999)
probes = st.integers(1, 50)


@functools.cache
def grid():
    lam = 1 - np.geomspace(0.95, 1e-5, 60)
    steps = [dc.loads_around_switch(level, d) for d in range(1, 51) for level in range(1 + (d == 1), 4)]
    return dc.bound_grid(np.union1d(lam, steps), range(1, 51))


def exact_level(lam, d):
    """The least level with p_0 <= 1-λ in fractions from the start, every state of it written out."""
    lam, level = Fraction(lam), 0
    while True:
        level += 1
        state = [Fraction(1)]
        for i in range(level - 1, -1, -1):
            state.insert(0, state[0] / ((i >= 1) + lam * d))
        if state[0] / sum(state) <= 1 - lam:
            return level


def test_every_level_of_the_grid_is_the_bound():
    assert (grid().level == grid().bound).all()
    assert 0 < grid().decided_exactly.sum() < grid().level.size / 100


def test_levels_are_those_of_exact_arithmetic_without_the_enclosure():
    rng = np.random.default_rng(3)
    for a, b in zip(rng.integers(0, 50, 300), rng.integers(0, grid().sizes["λ"], 300), strict=True):
        point = grid().isel(d=a, λ=b)
        assert int(point.level) == exact_level(float(point["λ"]), int(point.d))


@settings(max_examples=50)
@given(loads, probes, st.integers(1, 17))
@example(0.45712679473693835, 26, 1)  # off by 4 roundings, where the bound has 16
def test_rounding_stays_within_its_bound(lam, d, level):
    exact = levels.idle_share(Fraction(lam), Fraction(d), level) / (1 - Fraction(lam))
    found = Fraction(float(levels.idle_share(np.array(lam), np.array(d), level) / (1 - lam)))
    assert abs(found / exact - 1) <= levels.ROUNDINGS * (level + 1) * Fraction(1, 2**53)


@given(loads, probes)
def test_both_ends_of_the_fixed_point_equations(lam, d):
    """From θ = 0 to θ = ∞, in the solver of fixed points, p_0 falls from one level's share to the next one's."""
    from dchoices.theory.closed_forms import _idle

    for k in range(4):
        assert _idle(0.0, k, lam * d) == pytest.approx(levels.idle_share(lam, d, k), rel=1e-12)
        assert _idle(1.0, k, lam * d) == pytest.approx(levels.idle_share(lam, d, k + 1), rel=1e-12)


# At d = 1 the first step is at load 0.
@pytest.mark.parametrize(("level", "d"), [(q, d) for q in (1, 2, 3) for d in (1, 2, 3, 4, 7, 50) if q > 1 or d > 1])
def test_neighbouring_doubles_at_a_step(level, d):
    before, last, after = dc.loads_around_switch(level, d)
    assert np.nextafter(before, 1) == last
    assert np.nextafter(last, 1) == after
    assert dc.bound_grid([before, last, after], d).level.values.tolist() == [[level, level, level + 1]]
    assert dc.queue_bound(after, d) == level  # counts as the step itself, unless asked for the double
    assert dc.queue_bound(after, d, ulps=0) == level + 1


def test_levels_are_where_long_fluid_paths_end():
    """Away from steps, where the last level keeps enough mass to be told from what dies out."""
    rng = np.random.default_rng(5)
    for lam, d in zip(rng.uniform(0.1, 0.95, 12), rng.integers(1, 6, 12).tolist(), strict=True):
        if dc.distance_to_switch(lam, d) > 0.02 * (1 - lam):
            end = dc.fluid_path(lam, d, [2000.0], start="overloaded-6").occupancy.values[-1]
            assert np.flatnonzero(end > 1e-6).max() == dc.bound_grid(lam, d).level.item()


def test_the_step_at_load_zero_is_refused():
    with pytest.raises(ValueError, match="level = 1: must be at least 2 for d = 1"):
        dc.loads_around_switch(1, 1)


@pytest.mark.parametrize(("lam", "d", "message"), [(1.0, 2, "lam = 1.0"), ([0.5], [0], "d = 0")])
def test_bad_arguments_are_named(lam, d, message):
    with pytest.raises(ValueError, match=message):
        dc.bound_grid(lam, d)
