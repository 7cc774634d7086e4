"""The bound and the fixed point of any service law, against exact arithmetic, chains with phases, and a simulation."""

import math

import dchoices as dc
import numpy as np
import pytest
import scipy.sparse as sparse
from dchoices.service import as_law
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.sparse.linalg import spsolve

LAWS = [
    "deterministic", "erlang(stages=4)", "exponential", "hyperexponential(scv=4.0)", "weibull(shape=0.5)",
    "pareto(shape=1.5)",
]  # fmt: skip
# As phases: the probability to begin in each, and the rate from each to the next; the last one, and all those of
# parallel phases, end the service.
PHASES = {
    "erlang(stages=3)": ([1.0, 0.0, 0.0], [3.0] * 3, "in series"),
    "hyperexponential(scv=4.0)": (
        [(1 + math.sqrt(0.6)) / 2, (1 - math.sqrt(0.6)) / 2], [1 + math.sqrt(0.6), 1 - math.sqrt(0.6)], "parallel"
    ),
}  # fmt: skip
loads = st.floats(0.01, 0.999)
probes = st.integers(1, 8)


def fluid(lam, d, law, k, theta):
    """Solve the steady state of (i, j, phase) by its generator, with jobs at rate θ to each server observed at k."""
    begin, rate, kind = PHASES[law]
    states = [(i, j, f) for j in (k, k + 1) for i in range(j + 1) for f in range(len(begin) if i else 1)]
    number = {state: n for n, state in enumerate(states)}
    flow = sparse.lil_matrix((len(states), len(states)))

    def move(state, to, speed):
        flow[number[to], number[state]] += speed
        flow[number[state], number[state]] -= speed

    def with_queue(state, i, j, speed):
        """The phase of the job in service stays; an idle server begins one."""
        for f, p in enumerate(begin) if state[0] == 0 and i else [(state[2], 1.0)]:
            move(state, (i, j, f), speed * p)

    for state in states:
        i, j, f = state
        if i and (kind == "parallel" or f == len(begin) - 1):
            for g, p in enumerate(begin) if i > 1 else [(0, 1.0)]:
                move(state, (i - 1, j, g), rate[f] * p)
        elif i:
            move(state, (i, j, f + 1), rate[f])
        if i < max(j, k):
            with_queue(state, max(i, k), max(i, k), lam * d)
        if j == k:
            with_queue(state, i + 1, k + 1, theta)
    flow[0, :] = 1.0
    shares = spsolve(flow.tocsc(), np.eye(len(states))[0])
    return np.bincount([i for i, _, _ in states], shares)


@pytest.mark.parametrize("law", PHASES)
@pytest.mark.parametrize(("lam", "d"), [(0.6, 2), (0.8, 1), (0.9, 2), (0.95, 3), (0.97, 1)])
def test_fixed_point_is_that_of_the_chain_with_phases(law, lam, d):
    found = dc.service_fixed_point(lam, d, law)
    k = found.sizes["i"] - 2
    idle = lambda u: fluid(lam, d, law, k, u / (1 - u))[0] - (1 - lam)  # noqa: E731
    u = brentq(idle, 1e-9, 1 - 1e-9, xtol=1e-13)
    np.testing.assert_allclose(found.queue_length_pmf, fluid(lam, d, law, k, u / (1 - u)), atol=1e-7)


@given(loads, probes, st.sampled_from(["exponential", "erlang(stages=1)", "weibull(shape=1)"]))
def test_exponential_by_another_name(lam, d, law):
    if dc.distance_to_switch(lam, d) > 1e-9:
        assert dc.queue_bound(lam, d, law) == dc.queue_bound(lam, d)
        expected = dc.fixed_point(lam, d)
        found = dc.service_fixed_point(lam, d, law)
        np.testing.assert_allclose(found.queue_length_pmf, expected.queue_length_pmf, atol=1e-7)
        assert found.dispatch_to_idle == pytest.approx(float(expected.dispatch_to_idle), rel=1e-5)
        assert found.mean_response_time == pytest.approx(float(expected.mean_response_time), rel=1e-5)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_level_found_without_the_formula_is_the_bound(law, d):
    for lam in np.linspace(0.05, 0.98, 24).tolist():
        point = dc.service_fixed_point(lam, d, law)
        assert point.sizes["i"] - 1 == dc.queue_bound(lam, d, law), lam
        assert point.queue_length_pmf.values[-1] > 0
        assert point.queue_length_pmf.values[0] == pytest.approx(1 - lam, rel=1e-8)
        assert min(1, d * (1 - lam)) - 1e-9 <= point.dispatch_to_idle <= 1 + 1e-9


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("d", [2, 3, 7, 49])
def test_the_threshold_is_that_of_every_law(law, d):
    for threshold in (dc.optimality_threshold(d), (d - 1) / d):
        assert dc.queue_bound(threshold, d, law) == 1
        assert dc.service_fixed_point(threshold, d, law).sizes["i"] == 2
    assert dc.queue_bound(1 - 1 / d + 1e-9, d, law) == 2


@given(loads, probes)
def test_the_more_service_varies_the_larger_is_the_bound(lam, d):
    spread = ["deterministic", "erlang(stages=9)", "erlang(stages=2)", "exponential"]
    spread += ["hyperexponential(scv=2)", "hyperexponential(scv=9)"]
    bounds = [dc.queue_bound(lam, d, law) for law in spread]
    assert bounds == sorted(bounds)
    assert bounds[-1] <= max(1, math.ceil(1 / (d * (1 - lam)) * (1 - 1e-9)))
    assert dc.queue_bound(lam, d, "pareto(shape=1.2)") >= bounds[0]


@pytest.mark.parametrize("law", LAWS)
def test_the_bound_grows_with_the_load(law):
    for d in (1, 2, 5):
        assert (np.diff([dc.queue_bound(lam, d, law) for lam in np.linspace(0.01, 0.99, 99).tolist()]) >= 0).all()


def step(level, d, law):
    """Return the load up to which the bound is `level`."""
    low, high = 1e-6, 1 - 1e-6
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if dc.queue_bound(middle, d, law) <= level else (low, middle)
    return low


def service_times(law, rng, size):
    name = law.partition("(")[0]
    draws = {
        "deterministic": lambda: np.ones(size),
        "erlang": lambda: rng.gamma(4, 1 / 4, size),
        "exponential": lambda: rng.exponential(size=size),
        "hyperexponential": lambda: (
            rng.exponential(size=size)
            / np.where(rng.random(size) < (1 + math.sqrt(0.6)) / 2, 1 + math.sqrt(0.6), 1 - math.sqrt(0.6))
        ),
        "weibull": lambda: rng.weibull(0.5, size) / 2,
        "pareto": lambda: (1 + rng.pareto(1.5, size)) / 3,
    }
    return draws[name]()


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("level", "d"), [(2, 2), (3, 1)])
def test_at_a_step_a_server_that_probes_top_up_is_idle_as_long_as_it_should(law, level, d):
    """One server, topped up to the level at each point of a Poisson stream: simulated event by event."""
    lam = step(level, d, law)
    rng = np.random.default_rng(1)
    idle, busy = [], []
    for _ in range(40):
        queue, waited, worked = level, 0.0, 0.0
        for service, probed in zip(service_times(law, rng, 2500), rng.random(2500), strict=True):
            if queue == 0:
                waited += rng.exponential(1 / (lam * d))
                queue = level
            worked += service
            queue = level - 1 if probed < -math.expm1(-lam * d * service) else queue - 1
        idle.append(waited)
        busy.append(worked if law != "pareto(shape=1.5)" else 2500.0)  # its mean is known; it has no variance
    share = np.array(idle) / (np.array(idle) + np.array(busy))
    error = share.std(ddof=1) / math.sqrt(share.size)
    assert error < 0.1 * (1 - lam), "too noisy to be a test"
    assert abs(share.mean() - (1 - lam)) < 4.4 * error


def test_no_load_and_no_number_of_probes_is_too_large():
    assert dc.queue_bound(1 - 0.5e-4, 10_000, "deterministic") == 2  # φ underflows
    assert dc.queue_bound(1 - 1e-12, 1, "deterministic") == math.ceil(math.log(1 + math.expm1(1) / 1e-12))


@pytest.mark.parametrize("d", [1, 2])
def test_the_rates_of_probes_and_of_jobs_may_be_equal(d):
    """At θ = δ two exponentials are one: the shares are continuous there."""
    from dchoices.theory.general_service import _level

    lam, law = 0.9, as_law("deterministic")
    u = lam * d / (1 + lam * d)
    (at, _), (beside, _) = (_level(v, 2, lam * d, law) for v in (u, u + 1e-5))
    np.testing.assert_allclose(at, beside, atol=1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, 2, "exponential"), "lam = 0.0"),
        ((0.5, 0, "exponential"), "d = 0: must be an integer"),
        ((0.5, 2, "normal"), "service = 'normal': must be one of"),
        ((0.5, 2, 1.0), "service = 1.0: must be the name of a law"),
    ],
)
@pytest.mark.parametrize("function", [dc.queue_bound, dc.service_fixed_point])
def test_bad_arguments_are_named(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(*arguments)
