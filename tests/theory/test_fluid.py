"""The hybrid fluid integration against closed forms, the fixed point and a scheme that shares no code."""

import dchoices as dc
import numpy as np
import pytest
from dchoices import registry, starts
from dchoices.theory.closed_forms import sq_queue_length_pmf
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

GRID = np.arange(0, 20.1, 0.5)
MEMORY = registry.get("sq-memory")
# Steps of a path that are more than any has taken: some hundred in a mode, and one for each output time.
MOST_STEPS = 3000


def closed_form(lam, d, t):
    """x_{1,1} and x_{0,1} from empty for λ < 1 - 1/d (derived from the model)."""
    delta = lam * d
    memory = (1 - np.exp(-delta * t)) / delta
    stale = t * np.exp(-t) if abs(delta - 1) < 1e-12 else (np.exp(-t) - np.exp(-delta * t)) / (delta - 1)
    return lam * (1 - np.exp(-t)), lam * (memory - stale)


@njit
def first_order(x, lam, d, duration, steps):
    """No modes: at each step serve, sample, dispatch λh up to what each class holds, lowest first."""
    size, h = len(x), duration / steps
    for _ in range(steps):
        for j in range(size):
            for i in range(1, j + 1):
                served = x[i, j] * h
                x[i, j] -= served
                x[i - 1, j] += served
        for j in range(size):
            for i in range(j):
                probed = x[i, j] * (lam * d * h)
                x[i, j] -= probed
                x[i, i] += probed
        flow = lam * h
        for j in range(size - 1):
            held = x[:, j].sum()
            sent = min(flow, held)
            for i in range(j + 1):
                moved = x[i, j] * sent / held if held > 0 else 0.0
                x[i, j] -= moved
                x[i + 1, j + 1] += moved
            flow -= sent


def scheme(start, lam, d, times, steps):
    """Occupancies of the first-order scheme with so many steps per unit of time."""
    size = len(start) + dc.queue_bound(lam, d) + 2
    x, out, clock = np.zeros((size, size)), [], 0.0
    x[: len(start), : len(start)] = start
    for time in times:
        first_order(x, lam, d, time - clock, round((time - clock) * steps))
        clock = time
        out.append(x.sum(axis=1))
    return np.array(out)


def distance(a, b):
    """The largest difference of two occupancies, whatever their numbers of levels."""
    levels = max(a.shape[-1], b.shape[-1])
    pad = lambda x: np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, levels - x.shape[-1])])  # noqa: E731
    return np.abs(pad(a) - pad(b)).max()


def test_closed_form_from_empty_below_the_threshold():
    rng = np.random.default_rng(1)
    for _ in range(200):
        d = int(rng.integers(2, 21))
        lam, t = rng.uniform(1e-3, 1 - 1 / d), rng.uniform(0, 30)
        state = dc.fluid_path(lam, d, [t]).state.values[0]
        busy, remembered = closed_form(lam, d, t)
        assert state[1, 1] == pytest.approx(busy, abs=1e-8), (lam, d, t)
        assert state[0, 1] == pytest.approx(remembered, abs=1e-8), (lam, d, t)


def test_closed_form_where_its_two_rates_meet():
    state = dc.fluid_path(0.5, 2, [1.5]).state.values[0]
    assert state[0, 1] == pytest.approx(closed_form(0.5, 2, 1.5)[1], abs=1e-8)


@pytest.mark.parametrize("start", ["empty", "overloaded-3", "stale-3", "random-3"])
@pytest.mark.parametrize(("lam", "d"), [(0.4, 2), (0.7, 2), (0.9, 2), (0.9, 1), (0.95, 3), (0.6, 1), (0.95, 5)])
def test_scheme_without_modes_agrees(start, lam, d):
    """Two first-order runs, extrapolated; their third says how far that can be trusted."""
    assert dc.distance_to_switch(lam, d) >= 0.01
    times = np.array([0.5, 1.0, 2.0, 5.0, 10.0])
    matrix = starts.fractions(start, MEMORY, lam, d)
    coarse, middle, fine = (scheme(matrix, lam, d, times, steps) for steps in (5_000, 10_000, 20_000))
    path = dc.fluid_path(lam, d, times, start=matrix).occupancy.values
    assert distance(2 * fine - middle, 2 * middle - coarse) < 1e-6
    assert distance(path, 2 * fine - middle) < 1e-6
    assert distance(path, fine) > 1e-6, "the scheme itself must be too coarse to pass"


@pytest.mark.parametrize("start", ["empty", "overloaded-3", "stale-6"])
@pytest.mark.parametrize(("lam", "d"), [(0.4, 2), (0.64, 3), (0.7, 2), (0.8, 1), (0.9, 5), (0.95, 2)])
def test_paths_settle_at_the_fixed_point(start, lam, d):
    path = dc.fluid_path(lam, d, [*GRID, 2000.0], start=start)
    assert dc.total_variation(path.occupancy.values[-1], dc.fixed_point(lam, d).queue_length_pmf.values) < 1e-8


def pairs_up_to(m):
    return (m + 1) * (m + 2) // 2


@st.composite
def random_starts(draw):
    """Fractions on the pairs i <= j <= m, many of them zero or tiny."""
    m = draw(st.integers(0, 6))
    weight = st.one_of(st.just(0.0), st.floats(0, 1), st.floats(-14, 0).map(lambda e: 10**e))
    weights = draw(st.lists(weight, min_size=pairs_up_to(m), max_size=pairs_up_to(m)).filter(any))
    matrix = np.zeros((m + 1, m + 1))
    matrix[np.triu_indices(m + 1)] = weights
    return matrix / matrix.sum()


@settings(max_examples=150, deadline=None, derandomize=True)
@given(random_starts(), st.integers(1, 10), st.floats(0.01, 0.999), st.sampled_from([1e-8, 1e-6]))
def test_any_start(start, d, lam, tolerance):
    times = [0.0, 1e-3, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 100.0]
    path = dc.fluid_path(lam, d, times, start=start, tolerance=tolerance)
    x = path.state.values
    assert path.attrs["steps"] < MOST_STEPS
    assert np.abs(x.sum(axis=(1, 2)) - 1).max() < 1e-12
    assert x.min() > -tolerance
    assert not np.tril(x, -1).any()
    for dispatch in (path.dispatch, path.dispatch_by_queue):
        assert np.abs(dispatch.sum(dispatch.dims[1]) - 1).max() < 1e-9
        assert dispatch.min() > -1e-8
    finer = dc.fluid_path(lam, d, times, start=start, tolerance=tolerance / 2)
    assert distance(path.occupancy.values, finer.occupancy.values) < tolerance / 10


def test_jobs_are_neither_lost_nor_made():
    """The mean queue changes at rate λ - (1 - p_0): its integral against the path, by Simpson's rule."""
    t = np.linspace(0, 8, 8001)
    path = dc.fluid_path(0.8, 2, t, start="random-4").occupancy
    queue = (path * path.queue_length).sum("queue_length").values
    rate = 0.8 - 1 + path.sel(queue_length=0).values
    gained = (rate[:-2:2] + 4 * rate[1:-1:2] + rate[2::2]).sum() * (t[1] - t[0]) / 3
    assert queue[-1] - queue[0] == pytest.approx(gained, abs=1e-7)


def test_the_mode_goes_down_and_up_again():
    """From overloaded-3 the mode goes down to 0 at a low load, and at a high one passes through the modes upwards."""
    down = dc.fluid_path(0.4, 2, [30.0], start="overloaded-3").attrs
    assert down["switch_modes"] == [2, 1, 0]
    up = dc.fluid_path(0.9, 2, [100.0], start="empty").attrs
    assert up["switch_modes"] == [1, 2]
    matrix = np.zeros((5, 5))
    matrix[0, 0], matrix[4, 4] = 0.2, 0.8
    both = dc.fluid_path(0.7, 2, [100.0], start=matrix).attrs["switch_modes"]
    assert min(np.diff([0, *both])) < 0 < max(np.diff([0, *both]))


def test_switches_are_where_the_scheme_without_modes_has_them():
    """Class 0 of the start from empty is used up when the scheme's is; first order, so to 1e-3."""
    [first, *_] = dc.fluid_path(0.9, 2, [10.0]).attrs["switch_times"]
    x = np.zeros((7, 7))
    x[0, 0] = 1.0
    steps = 0
    while x[:, 0].sum() > 1e-9:
        first_order(x, 0.9, 2, 1e-4, 1)
        steps += 1
    assert first == pytest.approx(steps * 1e-4, abs=1e-3)


@pytest.mark.parametrize(("level", "d"), [(2, 2), (3, 2), (2, 3), (4, 1)])
@pytest.mark.parametrize("start", ["empty", "stale-3"])
def test_integer_argument_does_not_stall_and_decays_as_a_power_of_t(level, d, start):
    """Like 1/t at λ = √3/2, d = 2.

    With y servers left in class k = Q-1, a share of order y^(k-i) of them has i jobs, so that p_0 - (1-λ), the speed at
    which the mean queue approaches its limit, is of order y^(k+1): y falls like t^(-1/k) (derived from the model).
    """
    lam = dc.switch_load(level, d)
    path = dc.fluid_path(lam, d, [1e4, 1e5], start=start)
    before, after = dc.total_variation(path.occupancy.values, dc.fixed_point(lam, d).queue_length_pmf.values)
    assert np.log10(before / after) == pytest.approx(1 / (level - 1), abs=0.025)
    assert path.attrs["steps"] < MOST_STEPS


@pytest.mark.parametrize("level", [2, 3])
def test_integer_argument_from_above_stays_where_it_settles(level):
    """S_k -> 1 from below, where rounding decides the mode."""
    lam = dc.switch_load(level, 2)
    path = dc.fluid_path(lam, 2, [1e3, 1e5], start="overloaded-3").occupancy.values
    assert dc.total_variation(path, dc.fixed_point(lam, 2).queue_length_pmf.values).max() < 1e-9


@pytest.mark.parametrize(("lam", "d"), [(0.999, 2), (0.9999, 10), (1e-4, 3), (0.5, 1000), (0.9, 100)])
@pytest.mark.parametrize("start", ["empty", "overloaded-12", "stale-12"])
def test_extreme_loads_and_probes(lam, d, start):
    path = dc.fluid_path(lam, d, [1.0, 1e3], start=start)
    assert path.occupancy.sum("queue_length").values == pytest.approx(1, abs=1e-12)
    finer = dc.fluid_path(lam, d, [1.0, 1e3], start=start, tolerance=1e-10)
    assert distance(path.occupancy.values, finer.occupancy.values) < 1e-8


@pytest.mark.parametrize("policy", ["jsq", "jiq"])
def test_policies_that_find_every_idle_server_have_one_job_at_most_from_empty(policy):
    t = np.array([0.0, 0.5, 2.0, 30.0])
    path = dc.fluid_path(0.9, 0, t, policy=policy)
    assert path.occupancy.values[:, 1] == pytest.approx(0.9 * (1 - np.exp(-t)), abs=1e-8)
    assert path.mean_response_time.values == pytest.approx(1, abs=1e-8)
    assert path.dispatch_to_idle.values == pytest.approx(1, abs=1e-8)


@njit
def first_order_by_queue(p, lam, steps, h, shortest):
    """JSQ and JIQ without modes: serve, then send λh to the shortest queues, or to idle ones and then to all."""
    for _ in range(steps):
        flow = lam * h
        for i in range(1, p.size):
            served = p[i] * h
            p[i] -= served
            p[i - 1] += served
        last = p.size - 1 if shortest else 1
        for i in range(last):
            sent = min(flow, p[i])
            p[i] -= sent
            p[i + 1] += sent
            flow -= sent
        for i in range(p.size - 2, -1, -1):
            sent = flow * p[i]
            p[i] -= sent
            p[i + 1] += sent


@pytest.mark.parametrize("policy", ["jsq", "jiq"])
@pytest.mark.parametrize("lam", [0.4, 0.9])
@pytest.mark.parametrize("start", [dc.overloaded(3), dc.random_start(4)], ids=["overloaded", "random"])
def test_jsq_and_jiq_against_schemes_without_modes(policy, lam, start):
    path = dc.fluid_path(lam, 0, [1.0, 3.0, 12.0], start=start, policy=policy).occupancy.values
    runs = []
    for steps in (5_000, 10_000):
        p, run = np.zeros(60), []
        p[: len(start)] = start.sum(axis=1)
        for duration in (1, 2, 9):
            first_order_by_queue(p, lam, duration * steps, 1 / steps, policy == "jsq")
            run.append(p.copy())
        runs.append(np.array(run))
    assert distance(path, 2 * runs[1] - runs[0]) < 1e-6
    assert distance(path, runs[1]) > 1e-6, "the scheme itself must be too coarse to pass"


@pytest.mark.parametrize("lam", [0.4, 0.9])
def test_random_is_one_probe_without_memory(lam):
    random = dc.fluid_path(lam, 0, GRID, policy="random")
    one = dc.fluid_path(lam, 1, GRID, policy="sq")
    assert distance(random.occupancy.values, one.occupancy.values) == 0


@pytest.mark.parametrize(("policy", "d"), [("random", 0), ("sq", 2), ("jsq", 0), ("jiq", 0), ("sq-memory", 2)])
def test_dispatch_is_what_simulated_jobs_find(policy, d):
    """Shares of jobs by queue and by observation, and response times, against 10^6 servers from a random start."""
    t = np.arange(0, 4.01, 0.02)
    path = dc.fluid_path(0.8, d, t, start="random-3", policy=policy)
    run = dc.simulate(policy, 10**6, d, 0.8, t, replicates=1, start="random-3", seed=1)
    run = run.isel(replicate=0, N=0, d=0, λ=0)
    for sent, dispatch in ((run.sent_by_queue, path.dispatch_by_queue), (run.sent_by_observation, path.dispatch)):
        share = sent.values[1:].sum(axis=0) / sent.values[1:].sum()
        mean = (dispatch.values[1:] + dispatch.values[:-1]).mean(axis=0) / 2
        assert distance(share, mean) < 2e-3
    found = run.sent_by_queue.values[1:].sum(axis=0)
    response = found @ (np.arange(found.size) + 1) / found.sum()
    assert response == pytest.approx(path.mean_response_time.values.mean(), rel=5e-3)


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
    path, point = dc.fluid_path(lam, d, [400.0]), dc.fixed_point(lam, d)
    dispatch, expected = path.dispatch.values[0], point.dispatch.values
    assert path.dispatch_to_idle.item() == pytest.approx(point.dispatch_to_idle.item(), abs=1e-8)
    assert path.mean_response_time.item() == pytest.approx(point.mean_response_time.item(), abs=1e-7)
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tolerance": 1e-11}, "tolerance = 1e-11"),
        ({"tolerance": 0.1}, "tolerance = 0.1"),
        ({"tolerance": float("nan")}, "tolerance = nan"),
        ({"t": [2e5]}, "t = 200000"),
        ({"policy": "sq-log", "d": 0}, "policy = 'sq-log': has no fluid model"),
        ({"policy": "jsq"}, "d = 2: policy 'jsq' has no d"),
        ({"d": 0}, "d = 0"),
    ],
)
def test_other_bad_arguments_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        dc.fluid_path(**{"lam": 0.5, "d": 2, "t": [1.0], **change})


@pytest.mark.parametrize("t", [[], [1.0, 1.0], [2.0, 1.0], [-1.0], [float("nan")], ["a"]])
def test_bad_times_are_named(t):
    with pytest.raises(ValueError, match=r"t: |t = |t with"):
        dc.fluid_path(0.5, 2, t)
