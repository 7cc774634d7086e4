"""The kernel of policies without memory on small cases; its stationary law is tested in test_law."""

import itertools

import numpy as np
import pytest
from comparisons import assert_count
from dchoices.kernels import codes, memoryless, sfc64
from numba.core import config

ARRIVALS_ONLY, DEPARTURES_ONLY = 1e9, 1e-9  # loads at which all events are of one kind
BUILT_IN = [codes.SHORTEST_OF_D, codes.SHORTEST_OF_D_DISTINCT, codes.JOIN_SHORTEST, codes.JOIN_IDLE]


def tails_of(by_queue, levels=16):
    """Return the servers with at least i jobs from [servers with i jobs]."""
    at_least = np.zeros(levels, np.int64)
    at_least[: len(by_queue)] = np.cumsum(by_queue[::-1])[::-1]
    return at_least


def run(code, d, lam, events, at_least, seed=0):
    """Run all events and return the jobs sent by queue; the array must have room."""
    sent = np.zeros(at_least.size, np.int64)
    rng = sfc64.initial_state(np.random.SeedSequence(seed))
    assert memoryless.advance(code, None, d, lam, events, at_least, rng, sent) == (0, 0)
    return sent


@pytest.mark.parametrize("code", BUILT_IN)
@pytest.mark.parametrize(("N", "d"), [(1, 1), (2, 1), (7, 3), (5000, 2)])
def test_books_are_kept(code, N, d):
    at_least = tails_of([N], levels=256)
    sent = np.zeros(256, np.int64)
    rng = sfc64.initial_state(np.random.SeedSequence(d))
    for _ in range(10):
        assert memoryless.advance(code, None, d, 0.8, 200, at_least, rng, sent) == (0, 0)
        assert at_least[0] == N
        assert (np.diff(at_least) <= 0).all(), "a count is negative"
        assert at_least[-1] == 0
        assert at_least[1:].sum() <= sent.sum(), "more jobs are there than came"
    assert 0.3 * 2000 < sent.sum() < 0.6 * 2000


def test_every_event_is_an_arrival_or_a_departure():
    at_least = tails_of([0] * 9 + [400], levels=64)
    sent = run(codes.SHORTEST_OF_D, 2, 0.5, 900, at_least)
    departures = 400 * 9 + sent.sum() - at_least[1:].sum()
    assert departures + sent.sum() == 900
    assert_count(int(sent.sum()), 900, 1 / 3, 0.08)


def test_idle_servers_have_no_departures():
    at_least = tails_of([5])
    assert not run(codes.SHORTEST_OF_D, 2, DEPARTURES_ONLY, 500, at_least).any()
    assert at_least.tolist() == [5] + [0] * 15


@pytest.mark.parametrize("N", [10**8, 2**31 + 2**20, 10**10])
def test_a_departure_comes_from_a_uniform_server(N):
    """Counts beyond 32 bits; so many servers that events leave them all but unchanged."""
    events = 5_000 if config.DISABLE_JIT else 200_000 if N == 10**8 else 4_000_000
    at_least = tails_of([N // 2, 3 * N // 10, N // 5])
    before = at_least.copy()
    run(codes.SHORTEST_OF_D, 2, DEPARTURES_ONLY, events, at_least)
    assert at_least[0] == before[0]
    assert_count(int(before[1] - at_least[1]), events, 0.3, 0.03)
    assert_count(int(before[2] - at_least[2]), events, 0.2, 0.03)


def expected_shares(code, d, share):
    """Return the law of the queue joined among many servers, from the definition of the policy."""
    tail = np.append(np.cumsum(share[::-1])[::-1], 0.0)
    if code in (codes.SHORTEST_OF_D, codes.SHORTEST_OF_D_DISTINCT):
        return tail[:-1] ** d - tail[1:] ** d
    if code == codes.JOIN_IDLE and share[0] == 0:
        return np.array(share)
    return np.eye(len(share))[np.flatnonzero(share)[0]]


@pytest.mark.parametrize("code", BUILT_IN)
@pytest.mark.parametrize("d", [1, 2, 3, 6, 11])
@pytest.mark.parametrize("share", [(0.5, 0.3, 0.2), (0.0, 0.6, 0.4)])
def test_jobs_are_sent_by_the_rule_of_the_policy(code, d, share):
    N, arrivals = 10**10, 10_000
    at_least = tails_of([round(part * N) for part in share])
    if code == codes.JOIN_IDLE:
        d = 1  # what the registry makes it, where no server is idle
    sent = run(code, d, ARRIVALS_ONLY, arrivals, at_least)
    expected = expected_shares(code, d, share)
    for level, probability in enumerate(expected):
        assert_count(int(sent[level]), arrivals, probability, 0.03)
    assert sent.sum() == arrivals


@pytest.mark.parametrize(
    ("code", "d", "probability"),
    [
        (codes.SHORTEST_OF_D, 1, 1 / 4),
        (codes.SHORTEST_OF_D, 2, 7 / 16),
        (codes.SHORTEST_OF_D, 3, 37 / 64),
        (codes.SHORTEST_OF_D_DISTINCT, 1, 1 / 4),
        (codes.SHORTEST_OF_D_DISTINCT, 2, 1 / 2),
        (codes.SHORTEST_OF_D_DISTINCT, 3, 3 / 4),
        (codes.SHORTEST_OF_D_DISTINCT, 4, 1),
        (codes.JOIN_SHORTEST, 0, 1),
        (codes.JOIN_IDLE, 1, 1),
    ],
)
def test_the_only_idle_server_of_four_is_found(code, d, probability):
    """With replacement and without are told apart."""
    trials = 400 if config.DISABLE_JIT else 4000
    found = sum(int(run(code, d, ARRIVALS_ONLY, 1, tails_of([1, 1, 1, 1]), seed)[0]) for seed in range(trials))
    assert_count(found, trials, probability, 0.12 if config.DISABLE_JIT else 0.04)


def test_every_subset_of_different_servers_is_as_likely():
    """The lowest rank of 3 of 5 has the law that counting gives."""
    trials = 400 if config.DISABLE_JIT else 4000
    at_least = [1, 1, 1, 1, 1]
    sent = sum(
        run(codes.SHORTEST_OF_D_DISTINCT, 3, ARRIVALS_ONLY, 1, tails_of(at_least), seed) for seed in range(trials)
    )
    lowest = [min(chosen) for chosen in itertools.combinations(range(5), 3)]
    for level in range(5):
        assert_count(int(sent[level]), trials, lowest.count(level) / 10, 0.12 if config.DISABLE_JIT else 0.04)


@pytest.mark.parametrize("code", BUILT_IN)
def test_a_run_that_is_cut_and_grown_ends_where_one_with_room_ends(code):
    ends = []
    for levels in (4, 2048):
        at_least, sent = tails_of([20], levels), np.zeros(levels, np.int64)
        rng = sfc64.initial_state(np.random.SeedSequence(3))
        left, stops = 4_000 if config.DISABLE_JIT else 100_000, 0
        while left > 0:
            left, impossible = memoryless.advance(code, None, 1, 0.97, left, at_least, rng, sent)
            assert impossible == 0
            if at_least[-1]:
                stops += 1
                at_least, sent = np.pad(at_least, (0, 3)), np.pad(sent, (0, 3))
        ends.append((np.trim_zeros(at_least, "b").tolist(), np.trim_zeros(sent, "b").tolist()))
        if code != codes.JOIN_SHORTEST:
            assert (stops > 0) == (levels == 4)
    assert ends[0] == ends[1]


def test_more_servers_than_slices_are_ranked_all_the_same():
    """The first guess of a queue length is by slices of 2^k ranks, and wrong at their ends."""
    share = np.full(20, 0.05)
    N = 20 * 1537  # no multiple of a slice
    at_least = tails_of((share * N).round().astype(int).tolist(), levels=64)
    events = 2_000 if config.DISABLE_JIT else 20_000
    before = at_least.copy()
    run(codes.SHORTEST_OF_D, 1, DEPARTURES_ONLY, events, at_least)
    assert before[1:].sum() - at_least[1:].sum() < events, "idle servers were drawn too"
    assert_count(int(events - (before[1:].sum() - at_least[1:].sum())), events, 0.05 if events < 5_000 else 0.06, 0.03)


@pytest.mark.parametrize("d", [3, 11, 63, 64, 65, 1000])
def test_the_shortest_of_few_and_of_many_probes_has_the_highest_of_d_ranks(d):
    """P(rank < k) = (k/N)^d, by Kolmogorov's statistic: beyond 2 with probability 7e-4."""
    servers, draws = 10**6, 4000
    state = tuple(sfc64.initial_state(np.random.SeedSequence(d)))
    ranks = np.empty(draws)
    for k in range(draws):
        ranks[k], *state = memoryless._shortest_probed(d, servers, *(np.uint64(word) for word in state))
    expected = ((np.sort(ranks) + 1) / servers) ** d
    steps = np.arange(draws + 1) / draws
    assert np.sqrt(draws) * max((steps[1:] - expected).max(), (expected - steps[:-1]).max()) < 2
