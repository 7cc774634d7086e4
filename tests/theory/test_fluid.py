"""The hybrid fluid integration against closed forms, the fixed point and a scheme that shares no code."""

import dchoices as dc
import numpy as np
import pytest
from dchoices.theory.closed_forms import sq_queue_length_pmf

GRID = np.arange(0, 20.1, 0.5)


def closed_form(lam, d, t):
    """x_{1,1} and x_{0,1} from empty for λ < 1 - 1/d (derived from the model)."""
    delta = lam * d
    memory = (1 - np.exp(-delta * t)) / delta
    stale = t * np.exp(-t) if abs(delta - 1) < 1e-12 else (np.exp(-t) - np.exp(-delta * t)) / (delta - 1)
    return lam * (1 - np.exp(-t)), lam * (memory - stale)


def complementarity_path(start, lam, d, times, h):
    """First order, no modes: at each step serve, sample, dispatch λh up to what each class holds, lowest first."""
    size = len(start) + 4
    x = np.zeros((size, size))
    x[: len(start), : len(start)] = start
    out, clock = [], 0.0
    for time in times:
        for _ in range(round((time - clock) / h)):
            served = np.vstack([x[0] * 0, x[1:]]) * h
            x = x - served + np.vstack([served[1:], x[0] * 0])
            probed = np.triu(x, 1) * (lam * d * h)
            x = x - probed + np.diag(probed.sum(axis=1))
            flow = lam * h
            for j in range(size - 1):
                sent = min(flow, x[:, j].sum())
                if sent > 0:
                    moved = x[:, j] * (sent / x[:, j].sum())
                    x[:, j] -= moved
                    x[1:, j + 1] += moved[:-1]
                    flow -= sent
                if flow <= 0:
                    break
        clock = time
        out.append(x.sum(axis=1))
    return np.array(out)


@pytest.mark.parametrize(("lam", "d"), [(0.3, 2), (0.5, 3), (0.25, 4), (0.7, 5)])
def test_closed_form_from_empty_below_the_threshold(lam, d):
    path = dc.fluid_path(lam, d, GRID)
    busy, remembered = closed_form(lam, d, GRID)
    assert path.state.values[:, 1, 1] == pytest.approx(busy, abs=1e-8)
    assert path.state.values[:, 0, 1] == pytest.approx(remembered, abs=1e-8)


@pytest.mark.parametrize("start", ["empty", "overloaded-2", "stale-3", "random-2"])
@pytest.mark.parametrize(("lam", "d"), [(0.4, 2), (0.7, 2), (0.9, 1)])
def test_scheme_without_modes_agrees(start, lam, d):
    """The extrapolated first-order scheme; its own error decides the tolerance."""
    from dchoices import starts

    times = np.array([0.5, 1.0, 2.0, 4.0, 8.0])
    matrix = starts.fractions(start, _memory_policy(), lam, d)
    coarse, fine = (complementarity_path(matrix, lam, d, times, h) for h in (0.005, 0.0025))
    path = dc.fluid_path(lam, d, times, start=start)
    error = dc.total_variation(path.occupancy.values, 2 * fine - coarse)
    assert error.max() < 5e-5
    assert dc.total_variation(path.occupancy.values, coarse).max() < 0.01


def _memory_policy():
    from dchoices import registry

    return registry.get("sq-memory")


@pytest.mark.parametrize("start", ["empty", "overloaded-3", "stale-6", "random-4"])
@pytest.mark.parametrize(("lam", "d"), [(0.4, 2), (0.64, 3), (0.7, 2), (0.8, 1), (0.9, 5)])
def test_paths_settle_at_the_fixed_point_and_keep_mass(start, lam, d):
    path = dc.fluid_path(lam, d, [*GRID, 400.0], start=start)
    assert dc.total_variation(path.occupancy.values[-1], dc.fixed_point(lam, d).queue_length_pmf.values) < 1e-8
    assert path.occupancy.sum("queue_length").values == pytest.approx(1, abs=1e-10)
    assert path.state.values.min() > -1e-9
    assert path.dispatch.sum("j").values == pytest.approx(1, abs=1e-9)
    assert np.abs(np.tril(path.state.values, -1)).max() < 1e-20  # what LSODA's matrices leave


def test_integer_argument_does_not_stall_and_decays_like_one_over_t():
    lam, d = np.sqrt(3) / 2, 2
    path = dc.fluid_path(float(lam), d, [0.0, 200.0, 400.0, 800.0])
    error = dc.total_variation(path.occupancy.values, dc.fixed_point(float(lam), d).queue_length_pmf.values)
    assert error[2] / error[3] == pytest.approx(2, abs=0.2)


def test_fixed_point_is_a_rest_point():
    path = dc.fluid_path(0.9, 2, [0.0, 50.0], start="fixed-point")
    assert dc.total_variation(path.occupancy.values[0], path.occupancy.values[1]) < 1e-8
    assert path.attrs["switch_times"] == []


@pytest.mark.parametrize(("lam", "d"), [(0.9, 2), (0.5, 1), (0.7, 3)])
def test_memoryless_path_settles_at_its_fixed_point(lam, d):
    path = dc.fluid_path(lam, d, [0.0, 1.0, 300.0], policy="sq")
    assert dc.total_variation(path.occupancy.values[-1], sq_queue_length_pmf(lam, d)) < 1e-8


@pytest.mark.parametrize(("lam", "d"), [(0.7, 2), (0.9, 1), (0.9, 3), (0.4, 2)])
def test_dispatch_settles_at_that_of_the_fixed_point(lam, d):
    dispatch = dc.fluid_path(lam, d, [400.0]).dispatch.values[0]
    expected = dc.fixed_point(lam, d).dispatch.values
    assert dispatch[: len(expected)] == pytest.approx(expected, abs=1e-8)
    assert not dispatch[len(expected) :].any()


def test_memoryless_with_one_probe_is_m_m_1_early_on():
    """From empty, p_0 falls at rate λ: p_0(t) = 1 - λt + λ(1+λ)t²/2 + O(t³)."""
    t = 1e-3
    path = dc.fluid_path(0.8, 1, [t], policy="sq")
    assert path.occupancy.values[0, 0] == pytest.approx(1 - 0.8 * t + 0.8 * 1.8 * t**2 / 2, abs=1e-8)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ([[0.5, 0.4], [0, 0]], r"start: fractions sum to 0\.9, must sum to 1"),
        ([[0.5, 0.0], [0.5, 0.0]], r"start: X\[1, 0\] = 0\.5: must be 0 for i > j"),
        ([[1.5, -0.5], [0, 0]], r"start: X\[0, 1\] = -0\.5: must be finite and >= 0"),
        ([[float("nan"), 1], [0, 0]], r"start: X\[0, 0\] = nan: must be finite"),
        ("full", "start = 'full': must be empty, fixed-point, overloaded-m, stale-m or random-m with m up to 12"),
        ("random-0", "start = 'random-0'"),
        ("stale-13", "start = 'stale-13'"),
        ([1.0], "shape"),
    ],
)
def test_bad_starts_are_named(start, message):
    with pytest.raises(ValueError, match=message):
        dc.fluid_path(0.5, 2, [1.0], start=start)


@pytest.mark.parametrize("t", [[], [1.0, 1.0], [2.0, 1.0], [-1.0], [float("nan")], ["a"]])
def test_bad_times_are_named(t):
    with pytest.raises(ValueError, match=r"t: |t = |t with"):
        dc.fluid_path(0.5, 2, t)
