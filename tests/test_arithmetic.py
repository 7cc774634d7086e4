"""Sizes at which 32-bit integers or doubles would fail, and queues longer than the arrays that a run starts with."""

import math
from decimal import Decimal, getcontext

import dchoices as dc
import numpy as np
import pytest
from comparisons import SIGMAS, assert_count, chain
from dchoices import registry, simulation, starts
from dchoices.progress import EventBar

HUGE = 10**10
BUILT_IN = [policy.name for policy in registry._BUILT_IN]


def a_d(policy):
    return 2 if registry.get(policy).takes_d else 0


@pytest.mark.parametrize("policy", BUILT_IN)
def test_ten_billion_servers(policy):
    """Counts beyond 2^33: 4000 jobs or so among 10^10 servers, which all go to idle ones."""
    ds = dc.simulate(policy, HUGE, a_d(policy), 0.5, [8e-7], replicates=1)
    sent = int(ds.sent_by_queue.sum())
    assert abs(sent - 4000) < SIGMAS * math.sqrt(4000)
    counts = ds.occupancy.values.ravel() * HUGE
    assert ds.occupancy.sizes["queue_length"] == 2
    assert sent - 20 <= round(counts[1]) <= sent
    assert round(counts.sum()) == HUGE


@pytest.mark.parametrize("N", [1, 3, 7, 2**31 + 1, 2**33 + 1, HUGE - 1, HUGE])
def test_counts_sum_to_n_at_any_size(N):
    counts = starts.counts(np.array([1 / 3, 1 / 3, 1 / 3]), N)
    assert counts.dtype == np.int64
    assert counts.sum() == N
    assert counts.max() - counts.min() <= 1


def test_a_long_tail_keeps_its_servers():
    """M/M/1 at λ = 0.999: two servers of 2000 at the first level, less than one at nearly all others."""
    geometric = 0.001 * 0.999 ** np.arange(40_000)
    counts = starts.counts(geometric, 2000)
    assert counts.sum() == 2000
    assert counts @ np.arange(counts.size) / 2000 == pytest.approx(999, rel=1e-3)
    tail = counts[::-1].cumsum()[::-1]
    assert np.abs(tail - 2000 * 0.999 ** np.arange(counts.size)).max() < 0.51


@pytest.mark.parametrize("policy", BUILT_IN)
@pytest.mark.parametrize("N", [2**31 + 1, HUGE])
def test_a_chain_holds_all_its_servers_from_the_start(policy, N):
    one = chain(policy, N, a_d(policy), 0.9)
    assert one.by_queue.sum() == N
    expected = registry.get(policy).fixed_point(0.9, registry.get(policy).probes(N, a_d(policy)))
    queues = expected.sum(axis=1) if expected.ndim == 2 else expected
    assert (np.abs(one.by_queue[: queues.size] - queues * N) <= queues.size).all()


@pytest.mark.parametrize("policy", ["sq", "sq-memory"])
def test_the_clock_counts_more_events_than_a_double_can(policy, monkeypatch):
    """3·10^16 events, which nobody runs: the kernel would get an exact int64 of the right law."""
    one = chain(policy, HUGE, 2, 0.5)
    asked = []
    monkeypatch.setattr(one, "_run", lambda events: asked.append(events) or 0)
    expected = 1.5 * HUGE * 2e6
    assert one.advance(2e6) == asked[0]
    assert isinstance(asked[0], int)
    assert 2**53 < asked[0] < 2**63
    assert abs(asked[0] - expected) < SIGMAS * math.sqrt(expected)


@pytest.mark.parametrize("policy", ["sq", "sq-memory"])
def test_sums_of_counts_over_samples_are_exact(policy, monkeypatch):
    """800 samples of 10^10 servers: sums of 8·10^12."""
    one = chain(policy, HUGE, 2, 0.9)

    def send_jobs_only(duration):
        one._sent[1:3] += 1
        return 0

    monkeypatch.setattr(one, "advance", send_jobs_only)
    with EventBar(disable=True) as quiet:
        run = simulation._measure(one, 800, 3, np.zeros(1), quiet)
    assert (run["occupancy"] == one.by_queue / HUGE).all()
    assert run["halves"][0] == run["halves"][1] == pytest.approx(one.by_queue @ np.arange(one.by_queue.size) / HUGE)


@pytest.mark.parametrize("root", [1, 2, 3, 10, 46340, 46341, 65536, 99_999, 100_000])
def test_the_number_of_probes_of_sq_sqrt_steps_behind_perfect_squares(root):
    probes = registry.get("sq-sqrt").probes
    assert probes(root**2, 0) == root
    if root > 1:
        assert probes(root**2 - 1, 0) == root
    assert probes(root**2 + 1, 0) == root + 1


def test_the_number_of_probes_of_sq_log_steps_behind_the_powers_of_e():
    getcontext().prec = 40
    probes = registry.get("sq-log").probes
    assert [probes(N, 0) for N in (1, 2, 3, 7, 8, 20, 21)] == [1, 1, 2, 2, 3, 3, 4]
    for power in range(1, 24):
        below = int(Decimal(power).exp())
        assert probes(below, 0) == power
        assert probes(below + 1, 0) == power + 1
    assert probes(HUGE, 0) == 24


def test_queues_without_memory_reach_thousands():
    """M/M/1 at λ = 0.999, from its fixed point and from empty."""
    ds = dc.stationary("sq", 2000, 1, 0.999, warm_up=0.0, horizon=20.0, replicates=2)
    assert ds.max_queue.item() > 5000
    assert ds.occupancy.sum("queue_length").item() == pytest.approx(1)
    assert ds.mean_queue_length.item() == pytest.approx(999, rel=0.03)
    one = chain("random", 20, 0, 0.999, start="empty")
    events = one.advance(1e6)
    sent, now = one.sent_by_queue, one.by_queue
    assert np.flatnonzero(sent).max() > 1000
    assert now.sum() == 20
    assert_count(int(sent.sum()), events, 0.999 / 1.999)


def test_long_queues_keep_their_law():
    """M/M/1 stays at its fixed point λ^i, over several blocks of levels."""
    ours = dc.stationary("sq", 20_000, 1, 0.97, warm_up=5.0, horizon=10.0, replicates=2).squeeze()
    for i in (1, 31, 32, 33, 64, 100):
        assert float(ours.occupancy_tail[i]) == pytest.approx(0.97**i, rel=0.05)


@pytest.mark.slow
def test_one_server_with_memory_is_m_m_1_far_beyond_the_marked_observations():
    """λ = 0.97: shares of jobs λ^i (1-λ), the tail at 40, 62, 64 and 100 others; exact but for the spread."""
    tails, highest = [], 0
    for seed in range(24):
        one = chain("sq-memory", 1, 1, 0.97, seed=seed)
        one.advance(2000.0)
        one.reset_counters()
        one.advance(30_000.0)
        sent = one.sent_by_queue
        tails.append([sent[i:].sum() / sent.sum() for i in (1, 40, 62, 64, 100)])
        highest = max(highest, int(np.flatnonzero(one.sent_by_observation).max()))
    assert highest > 100
    means, errors = np.mean(tails, axis=0), np.std(tails, axis=0, ddof=1) / math.sqrt(24)
    for mean, error, i in zip(means, errors, (1, 40, 62, 64, 100), strict=True):
        assert 6 * error < 0.25
        assert abs(mean - 0.97**i) < 6 * error, i


def test_an_overload_beyond_the_marks_is_served():
    """A hundred jobs at each of 50 servers, all known: none lost, none sent past a lower observation."""
    start = dc.overloaded(100)
    one = chain("sq-memory", 50, 2, 0.9, start=start)
    events = one.advance(40.0)
    sent = one.sent_by_queue
    assert one.by_queue.sum() == 50
    jobs = int(one.by_queue @ np.arange(one.by_queue.size))
    departures = 5000 + int(sent.sum()) - jobs
    assert departures + sent.sum() == events, "no server was idle, so that every event counts"
    assert_count(int(sent.sum()), events, 0.9 / 1.9, 0.05)
    assert int(np.flatnonzero(one.sent_by_observation).max()) <= 100


def test_long_queues_grow_the_arrays():
    ds = dc.stationary("sq", 50, 1, 0.98, warm_up=0.0, horizon=20.0, replicates=2)
    assert ds.occupancy.sum("queue_length").item() == pytest.approx(1)
    assert ds.max_queue.item() > 100
