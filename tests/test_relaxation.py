"""Relaxation rates: the estimate on known decays, and measured on paths against the spectrum."""

import dchoices as dc
import numpy as np
import pytest
from dchoices.relaxation import ERROR_RATE, SETTLED, SLOWEST, measure_decay, settling_path

T = np.linspace(0, 60, 400)
EXACT = 1e-13  # error of the distances that are made here
STARTS = ["empty", "stale-1", "overloaded-1", "overloaded-3"]


@pytest.mark.parametrize(
    ("distance", "rate"),
    [
        (np.exp(-0.6 * T), 0.6),
        (0.2 * np.exp(-0.6 * T) + np.exp(-0.8 * T), 0.6),
        (np.exp(-T) - 0.9 * np.exp(-1.3 * T), 1.0),
        ((1 + T) * np.exp(-T), 1.0),
        ((1 + T + 2 * T**2) * np.exp(-T), 1.0),
    ],
    ids=["exponential", "slower and faster", "opposite signs", "Jordan block of 2", "Jordan block of 3"],
)
def test_the_interval_holds_the_rate(distance, rate):
    found = measure_decay(T, distance, EXACT)
    assert abs(found.rate - rate) <= found.rate_error < 0.15 * rate


def test_the_local_rate_alone_would_not_do():
    """It is what the interval is for: with a power of t the rate is a few per cent off where the path ends."""
    found = measure_decay(T, (1 + T) * np.exp(-T), EXACT)
    assert found.rate_error > 0.02


def test_noise_is_in_the_interval():
    rng = np.random.default_rng(1)
    exact = np.exp(-0.6 * T)
    for _ in range(50):
        found = measure_decay(T, exact + 1e-8 * rng.uniform(-1, 1, T.size), 1e-8)
        assert abs(found.rate - 0.6) <= found.rate_error < 0.1


def test_only_what_comes_after_the_last_switch_counts():
    distance = np.where(T < 20, np.exp(-0.1 * T), np.exp(-2.0 - 1.5 * (T - 20)))
    found = measure_decay(T, distance, EXACT, [5.0, 20.0, 59.0])  # the last one comes when it has settled
    assert abs(found.rate - 1.5) <= found.rate_error < 0.02


@pytest.mark.parametrize("exponent", [1, 0.5, 1 / 3])
def test_algebraic_decay_has_an_exponent_and_no_rate(exponent):
    t = np.linspace(0, 1e5, 400)
    found = measure_decay(t, (1 + t + 10 * t ** (1 - exponent)) ** -exponent, EXACT)
    assert abs(found.exponent - exponent) <= found.exponent_error < 0.2 * exponent
    assert abs(found.rate) <= found.rate_error < 1e-3


# λ below and above the threshold, at heavy load, and 1 % on either side of the steps to Q = 3, 4.
CELLS = [
    (0.3, 2), (0.55, 2), (0.7, 2), (0.9, 2), (0.99, 2), (0.3, 1), (0.9, 1), (0.6, 5), (0.81, 5), (0.97, 5),
    *((dc.switch_load(level, d) + side * (1 - dc.switch_load(level, d)), d)
      for level, d in ((2, 1), (3, 2)) for side in (-0.01, 0.01)),
]  # fmt: skip


@pytest.mark.parametrize(("lam", "d"), CELLS)
def test_paths_settle_at_the_spectral_gap(lam, d):
    """From every start, and no start is slower; random ones have every mode."""
    rng = np.random.default_rng(3)
    matrices = [np.triu(rng.random((levels, levels))) for levels in (2, 3, 5)]
    found = dc.relaxation_rates(lam, d, [*STARTS, *(matrix / matrix.sum() for matrix in matrices)]).squeeze()
    gap = float(found.spectral_gap)
    assert found.settled.all()
    low, high = (found.relaxation_rate + side * found.relaxation_rate_error for side in (-1, 1))
    assert low.min() <= gap <= high.min()
    assert (found.relaxation_rate_error < 0.1 * gap).all()
    assert float(found.relaxation_rate.min()) == pytest.approx(gap, rel=0.03)


def test_a_start_may_miss_the_slowest_mode():
    """From stale-1 the term e^(-λdt) has a factor 1 - 1/d - λ/(1-λd), which vanishes at λ = (d-1)/d²."""
    found = dc.relaxation_rates(0.25, 2, ["stale-1", "empty"]).squeeze()
    assert found.relaxation_rate.values == pytest.approx([1.0, 0.5], rel=0.01)
    assert float(found.spectral_gap) == 0.5


@pytest.mark.parametrize(("level", "d"), [(2, 1), (2, 2), (3, 2), (4, 1)])
def test_at_a_step_relaxation_is_algebraic_from_below_and_exponential_from_above(level, d):
    step = dc.switch_load(level, d)
    found = dc.relaxation_rates(step, d, ["empty", f"overloaded-{level + 1}"]).squeeze()
    assert found.settled.values.tolist() == [0, 1]
    below, above = found.isel(start=0), found.isel(start=1)
    assert abs(below.decay_exponent - 1 / (level - 1)) <= below.decay_exponent_error
    assert float(below.decay_exponent) == pytest.approx(1 / (level - 1), rel=0.1)
    gap_above = dc.spectral_gap(step + 1e-6 * (1 - step), d)
    assert float(above.relaxation_rate) == pytest.approx(gap_above, rel=0.02)


def test_a_path_that_lingers_and_then_settles_is_resolved():
    """Just above a step the path is slow until its mode changes, for some thousand times its relaxation time."""
    step = dc.switch_load(2, 1)
    path = settling_path(step + 1e-8, 1)
    assert path.attrs["switch_times"][-1] > 1e4
    found = dc.relaxation_rates(step + 1e-8, 1).squeeze()
    assert abs(found.relaxation_rate - found.spectral_gap) <= found.relaxation_rate_error < 0.1 * found.spectral_gap


@pytest.mark.parametrize(("lam", "d"), [(0.3, 2), (0.9, 1), (0.99, 2), (0.999, 5)])
def test_settled_paths_stay_within_their_error(lam, d):
    """The bound that the intervals rest on, over as long again as a path needs to settle."""
    path = settling_path(lam, d, "overloaded-3")
    error = path.attrs["distance_error"]
    assert error == ERROR_RATE / max(dc.spectral_gap(lam, d), SLOWEST)
    end = path.t.values[-1]
    late = dc.fluid_path(lam, d, np.linspace(0, 3 * end, 600), "overloaded-3")
    assert dc.distance_to_fixed_point(late).values[400:].max() <= error
    assert path.distance.values[-1] <= SETTLED * error


def test_distance_is_the_total_variation_of_the_full_state():
    path = dc.fluid_path(0.9, 2, [0.0], dc.stale(2))  # all at (0, 2), where the fixed point has little
    state = dc.fixed_point(0.9, 2).state.values
    assert dc.distance_to_fixed_point(path).values == pytest.approx([1 - state[0, 2]])
    assert dc.total_variation(path.occupancy.values[0], state.sum(axis=1)) < 0.95


def test_bad_starts_are_named():
    with pytest.raises(ValueError, match=r"^start = fixed-point: must not be the fixed point"):
        dc.relaxation_rates(0.9, 2, "fixed-point")
    with pytest.raises(ValueError, match=r"^start = 'full': must be"):
        dc.relaxation_rates(0.9, 2, ["empty", "full"])


def test_results_are_on_the_product_of_what_is_given():
    found = dc.relaxation_rates([0.4, 0.6], [1, 2], ["empty", "stale-1"])
    assert found.relaxation_rate.dims == ("start", "d", "λ")
    single = dc.relaxation_rates(0.6, 1, "stale-1")
    assert found.sel({"start": ["stale-1"], "d": [1], "λ": [0.6]}).equals(single)
