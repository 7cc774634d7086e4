"""Known limits and published values of the policies without memory, and the fluid fixed point with it."""

import dchoices as dc
import numpy as np
import pytest
from comparisons import SIGMAS, assert_estimate, chain, sigmas
from reference_values import reference

MANY = 100_000


def estimate(policy, N, d, lam, horizon, replicates=8, warm_up=10.0):
    return dc.stationary(policy, N, d, lam, warm_up=warm_up, horizon=horizon, replicates=replicates, seed=4).squeeze()


def test_two_choices_meet_their_limit():
    """SQ(2), λ = 0.9: Σ λ^(2^i - 1) over i >= 1, over λ; a finite N adds about 4/N to the queue."""
    ours = estimate("sq", MANY, 2, 0.9, horizon=12.0, replicates=24, warm_up=5.0)
    assert_estimate(ours, "mean_response_time", 2.614057, 0.015)
    assert_estimate(ours, "mean_queue_length", 0.9 * 2.614057, 0.015)
    assert_estimate(ours, "dispatch_to_idle", 1 - 0.9**2, 0.003)
    for level in range(1, 5):
        assert_estimate(ours, "occupancy_tail", 0.9 ** (2**level - 1), 0.005, (level,))


def test_different_servers_do_not_change_the_limit():
    ours = estimate("sq-distinct", MANY, 2, 0.9, horizon=8.0, replicates=16)
    assert_estimate(ours, "mean_response_time", 2.614057, 0.025)


@pytest.mark.parametrize("policy", ["jsq", "jiq"])
@pytest.mark.parametrize("lam", [0.5, 0.9, 0.99])
def test_policies_that_find_every_idle_server_have_no_waiting(policy, lam):
    """N(1-λ) servers are idle, 1000 at least, and give or take √N: none is ever missing."""
    ours = estimate(policy, MANY, 0, lam, horizon=4.0, replicates=4, warm_up=2.0)
    assert ours.mean_response_time.item() == ours.dispatch_to_idle.item() == 1.0
    assert ours.max_queue.item() == 1
    # As many are busy as in M/M/∞: a mean over some relaxation times is this close.
    assert ours.occupancy.values[1] == pytest.approx(lam, abs=SIGMAS * np.sqrt(lam / MANY))


def test_only_jsq_makes_no_long_queue_longer():
    """From four jobs each and a high load: jsq sends to the shortest, jiq anywhere until servers fall idle."""
    longest = {}
    for policy in ("jsq", "jiq"):
        one = chain(policy, MANY, 0, 0.9, start="overloaded-4")
        one.advance(1.0)
        longest[policy] = int(np.flatnonzero(one.by_queue).max())
        assert one.by_queue[0] < MANY / 100, "idle servers get a job at once"
    assert longest["jsq"] <= 5
    assert longest["jiq"] > 6


def test_a_random_server_is_an_m_m_1_queue():
    """λ = 0.9: mean response time 10.

    The relaxation time is (1-√λ)^-2 = 380, far beyond this run, and no warm-up would help; but the start is the
    stationary law itself, at which the mean stays, so that only the spread between replicates is too small for a
    longer run's.
    """
    ours = estimate("random", MANY, 0, 0.9, horizon=15.0, warm_up=0.0)
    assert_estimate(ours, "mean_response_time", 10.0, 0.2)
    assert_estimate(ours, "dispatch_to_idle", 0.1, 0.003)
    for level in (1, 5, 20, 40):
        assert_estimate(ours, "occupancy_tail", 0.9**level, 0.01, (level,))


def test_a_random_server_settles_in_its_relaxation_time():
    """λ = 0.5 from empty: 12 relaxation times of (1-√λ)^-2 = 11.7 later it is M/M/1."""
    one = chain("random", MANY, 0, 0.5, start="empty")
    one.advance(140.0)
    share = one.by_queue[:6] / MANY
    for level in range(6):
        probability = 0.5 ** (level + 1)
        assert share[level] == pytest.approx(probability, abs=SIGMAS * np.sqrt(probability / MANY))


@pytest.mark.parametrize("policy", ["sq-log", "sq-sqrt"])
def test_growing_numbers_of_probes_are_those_of_sq(policy):
    """⌈log 10^5⌉ = 12 and ⌈√(10^5)⌉ = 317 probes: the limit at d fixed, Σ λ^((d^i-1)/(d-1)) over i >= 1."""
    probes = {"sq-log": 12, "sq-sqrt": 317}[policy]
    ours = estimate(policy, MANY, 0, 0.9, horizon=3.0, replicates=16, warm_up=1.0)
    tail = [0.9 ** ((probes**i - 1) / (probes - 1)) for i in range(1, 4)]
    assert_estimate(ours, "dispatch_to_idle", 1 - 0.9**probes, 0.02)
    assert_estimate(ours, "mean_queue_length", sum(tail), 0.02)


PUBLISHED = [
    ("sq", float(row["lam"]), int(row["N"]), float(row["mean_queue_length"]), float(row["ci95"]))
    for row in reference("sq_mean_queue_length")
] + [
    ("sq-distinct", float(row["lam"]), int(row["N"]), float(row["mean_queue_length"]), float(row["ci95"]))
    for row in reference("sq_distinct_mean_queue_length")
]


@pytest.mark.parametrize(
    ("policy", "lam", "N", "published", "ci95"),
    [pytest.param(*row, marks=pytest.mark.slow if row[2] in (20, 50) else ()) for row in PUBLISHED],
)
def test_published_values_at_finite_n(policy, lam, N, published, ci95):
    """By Little's law from the jobs sent, so that a long run needs no samples."""
    events = 700_000 if lam == 0.9 else 300_000
    means = []
    for replicate in range(24):
        one = chain(policy, N, 2, lam, seed=replicate)
        one.advance(500.0)
        one.reset_counters()
        one.advance(events / N / (1 + lam))
        means.append(lam * one.response(np.zeros(1))[0])
    # The spread of both.
    error = np.hypot(np.std(means, ddof=1) / np.sqrt(24), ci95 / 1.96)
    assert sigmas(24) * error < 0.035 * published, "too noisy to be a test"
    assert abs(np.mean(means) - published) < sigmas(24) * error


def test_with_and_without_replacement_are_told_apart():
    """The published means at N = 10 differ by 4 %, and the comparison above allows less."""
    (distinct,) = reference("sq_distinct_mean_queue_length")
    same = next(row for row in reference("sq_mean_queue_length") if (row["lam"], row["N"]) == ("0.9", "10"))
    assert float(same["mean_queue_length"]) / float(distinct["mean_queue_length"]) > 1.035


# One-run sanity values of SQ(d) with memory at N = 1000, good to about 1 %.
@pytest.mark.parametrize(("lam", "d", "response"), [(0.9, 2, 1.918), (0.9, 1, 2.678), (0.8, 3, 1.298), (0.4, 2, 0.999)])
def test_memory_kernel_agrees_with_sanity_values(lam, d, response):
    ours = dc.stationary("sq-memory", 1000, d, lam, warm_up=50.0, horizon=300.0, replicates=12)
    assert float(ours.mean_response_time.squeeze()) == pytest.approx(response, rel=0.01)


@pytest.mark.parametrize("policy", ["sq-memory", "sq-memory-distinct"])
def test_runs_with_memory_meet_the_fluid_fixed_point(policy):
    ours = dc.stationary(policy, MANY, 2, 0.9, warm_up=5.0, horizon=20.0, replicates=3).squeeze()
    point = dc.fixed_point(0.9, 2)
    assert ours.occupancy.values[:4] == pytest.approx(point.queue_length_pmf.values, abs=3e-3)
    assert float(ours.mean_response_time) == pytest.approx(point.mean_response_time.item(), abs=5e-3)
    assert int(ours.max_queue) == dc.queue_bound(0.9, 2)
