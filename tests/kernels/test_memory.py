"""The kernel with memory on small cases; its stationary law is tested in test_law."""

import numpy as np
import pytest
from comparisons import assert_count
from dchoices.kernels import memory, memory_cells, sfc64
from numba.core import config

ARRIVALS_ONLY, DEPARTURES_ONLY = 1e9, 1e-9  # loads at which all events are of one kind


@pytest.fixture(autouse=True, params=["as chosen", "cells"])
def way(request, monkeypatch):
    """Run every test with the kernel that N asks for, and with the one for many servers."""
    if request.param == "cells":
        monkeypatch.setattr(memory, "advance", memory_cells.advance)
    return request.param


def table_of(classes, levels=16):
    """Return the table of {(queue, observation): servers}."""
    table = np.zeros((levels, levels), np.int64)
    for (queue, observation), servers in classes.items():
        table[observation, queue] = servers
    return table


def run(d, lam, events, table, seed=0):
    """Run all events and return the jobs sent, by observation and queue; the table must have room."""
    sent = np.zeros(table.size, np.int64)
    rng = sfc64.initial_state(np.random.SeedSequence(seed))
    assert memory.advance(d, False, lam, events, table, rng, sent) == 0
    return sent.reshape(table.shape)


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("N", [1, 2, 7, 500])
def test_books_are_kept(N, d):
    table = table_of({(0, 0): N}, levels=64)
    sent = np.zeros(table.size, np.int64)
    rng = sfc64.initial_state(np.random.SeedSequence(d))
    before, events = 0, 20 if config.DISABLE_JIT else 200
    for _ in range(10):
        assert memory.advance(d, False, 0.8, events, table, rng, sent) == 0
        assert (table >= 0).all()
        assert table.sum() == N
        assert not np.triu(table, 1).any(), "an observation is below the queue"
        assert before <= sent.sum() <= before + events
        before = sent.sum()
        assert table.sum(axis=0) @ np.arange(64) <= before, "more jobs are there than came"
    assert not np.triu(sent.reshape(table.shape), 1).any()


def test_every_event_is_an_arrival_or_a_departure():
    """Jobs there = jobs at the start + jobs sent - departures, and no event is lost when none can be idle."""
    table = table_of({(9, 9): 400}, levels=32)
    sent = run(2, 0.5, 900, table)
    departures = 400 * 9 + sent.sum() - table.sum(axis=0) @ np.arange(32)
    assert departures + sent.sum() == 900
    assert_count(int(sent.sum()), 900, 1 / 3, 0.08)


def test_a_departure_lowers_the_queue_and_not_the_observation():
    table = table_of({(9, 9): 1000})  # so many that none is idle after 500 events
    assert not run(1, DEPARTURES_ONLY, 500, table).any()
    assert table.sum(axis=0) @ np.arange(16) == 8500
    assert table[9].sum() == 1000


def test_idle_servers_have_no_departures():
    table = table_of({(0, 0): 3, (0, 5): 4})
    before = table.copy()
    run(2, DEPARTURES_ONLY, 500, table)
    assert (table == before).all()


def test_jobs_go_to_the_lowest_observation_only():
    table = table_of({(3, 3): 50, (5, 5): 50})
    sent = run(1, ARRIVALS_ONLY, 40, table)
    assert sent[3, 3] == sent.sum() == 40
    assert table[4, 4] == 40


def test_a_probed_server_is_remembered_as_it_is():
    """All idle but remembered with 4 jobs: one arrival, one probe, and the probed server gets the job."""
    table = table_of({(0, 4): 100})
    sent = run(1, ARRIVALS_ONLY, 1, table)
    assert table[4, 0] == 99
    assert table[1, 1] == 1
    assert sent[0, 0] == sent.sum() == 1


def test_a_probe_stays_in_memory_for_later_arrivals():
    """Two probed servers turn out idle: the second job's own probe finds a busy one, yet it goes to an idle one."""
    table = table_of({(0, 0): 1, (2, 2): 10**6})
    sent = run(1, ARRIVALS_ONLY, 2, table)
    assert sent[0, 0] == 1
    assert sent[1, 1] == 1, "the server just raised to 1 is still the lowest"


@pytest.mark.parametrize("d", [1, 2, 3])
def test_probes_are_with_replacement(d):
    """Two stale servers: d probes miss one of them with probability 2^(1-d)."""
    missed = 0
    for seed in range(300):
        table = table_of({(0, 4): 2}, levels=8)
        run(d, ARRIVALS_ONLY, 1, table, seed)
        assert table[1, 1] == 1
        missed += int(table[4, 0])
    assert_count(missed, 300, 2.0 ** (1 - d), 0.13)


@pytest.mark.parametrize("N", [100_000, 10**10])
def test_ties_are_broken_uniformly(N):
    """Observed at 3, with 1 or 3 jobs: a probe of the first kind shows; else all are alike to the dispatcher."""
    table = table_of({(1, 3): 3 * N // 10, (3, 3): 7 * N // 10})
    arrivals = 3000
    sent = run(1, ARRIVALS_ONLY, arrivals, table)
    assert_count(int(sent[1, 1]), arrivals, 0.3)
    assert sent[1, 1] + sent[2, 2] + sent[3].sum() == arrivals
    assert_count(int(sent[3, 1]), int(sent[3].sum()), 0.3, 0.06)


@pytest.mark.parametrize("N", [10**6, 2**31 + 2**20, 10**10])
def test_a_departure_comes_from_a_uniform_server(N):
    """Counts beyond 32 bits; so many servers that events leave them all but unchanged."""
    # A slice too much or too little for a class is one part in 512: four million events tell it.
    events = 5_000 if config.DISABLE_JIT else 200_000 if N == 10**6 else 4_000_000
    held = {(0, 7): N // 2, (1, 1): 3 * N // 10, (2, 2): N // 5}
    table = table_of(held)
    run(1, DEPARTURES_ONLY, events, table)
    assert N == 10**6 or events / N < 0.002
    per_server = events / N
    once = -np.expm1(-per_server) / per_server  # at a million some are drawn again, and have left their class
    assert_count(int(table[1, 0]), events, 0.3 * once, 0.03 if events < 10**6 else 0.0015)
    assert_count(int(table[2, :2].sum()), events, 0.2 * once, 0.03 if events < 10**6 else 0.0015)
    assert table.sum() == sum(held.values())


def test_a_probe_finds_a_uniform_server():
    N = 10**10
    events = 3_000 if config.DISABLE_JIT else 2_000_000
    table = table_of({(0, 9): N // 2, (4, 9): N // 4, (8, 9): N // 8, (9, 9): N // 8})
    sent = run(2, ARRIVALS_ONLY, events, table)
    # A probe of the idle is followed by a job; those with 4 or 8 jobs stay as the probe left them.
    assert sent[:4].sum() == events
    assert_count(int(table[4, 4]), 2 * events, 1 / 4, 0.03 if config.DISABLE_JIT else 0.0015)
    assert_count(int(table[8, 8]), 2 * events, 1 / 8, 0.03 if config.DISABLE_JIT else 0.0015)


def deepest_state():
    """Beyond the 62 observations that are marked one by one, with gaps."""
    return table_of({(70, 70): 3, (2, 75): 4, (80, 80): 5}, levels=96)


def test_observations_beyond_the_marks_are_told_apart():
    table = deepest_state()
    sent = run(1, ARRIVALS_ONLY, 40, table)
    for observation, row in enumerate(sent):
        assert not row[observation + 1 :].any()
    assert sent.sum() == 40
    assert table.sum() == 12
    queues = np.arange(96)
    assert table.sum(axis=0) @ queues == 3 * 70 + 4 * 2 + 5 * 80 + 40


def test_jobs_fill_up_deep_observations_in_order():
    """At d = 1 with exact memories every probe is idle talk: jobs go to the lowest, as many as it takes."""
    table = table_of({(60, 60): 2, (64, 64): 2, (66, 66): 2}, levels=96)
    sent = run(1, ARRIVALS_ONLY, 16, table)
    expected = {60: 2, 61: 2, 62: 2, 63: 2, 64: 4, 65: 4}
    assert {level: int(sent[level, level]) for level in np.flatnonzero(sent.any(axis=1))} == expected
    assert table[66, 66] == 6


def advance_and_grow(d, lam, events, table, seed):
    """Run as `LumpedChain` does, with more levels whenever the kernel stops for them."""
    sent = np.zeros(table.shape, np.int64)
    rng = sfc64.initial_state(np.random.SeedSequence(seed))
    stops = 0
    while True:
        flat = sent.reshape(-1)
        events = memory.advance(d, False, lam, events, table, rng, flat)
        if events == 0 and not table[-1].any():
            return table, sent, stops
        stops += 1
        table, sent = np.pad(table, (0, memory.BLOCK)), np.pad(sent, (0, memory.BLOCK))


@pytest.mark.parametrize(("N", "d", "lam"), [(20, 1, 0.97), (3, 2, 0.97), (1, 1, 0.97)])
def test_nothing_is_lost_when_a_run_is_cut_and_grown(N, d, lam, way):
    """With few events left the cells draw other numbers, so that the ends are compared in what must agree."""
    # Few servers are what the cells are not made for.
    events = 100_000 if way == "as chosen" else 4_000
    if config.DISABLE_JIT:
        events //= 8
    low, low_sent, stops = advance_and_grow(d, lam, events, table_of({(0, 0): N}, levels=8), seed=3)
    high, high_sent, none = advance_and_grow(d, lam, events, table_of({(0, 0): N}, levels=512), seed=3)
    assert none == 0
    assert stops > 0 or events < 100_000
    if way == "as chosen":
        assert high_sent.sum() == low_sent.sum()
    assert_count(int(low_sent.sum()), events, lam / (1 + lam), 0.1)
    assert high.sum() == low.sum() == N
    for table, sent in ((low, low_sent), (high, high_sent)):
        queues = np.arange(len(table))
        assert not np.triu(table, 1).any()
        assert table.sum(axis=0) @ queues <= sent.sum()


# Compiled, `follow` keeps the `advance` that it was compiled with: there is one way only.
@pytest.mark.parametrize("way", ["as chosen"], indirect=True)
def test_following_is_advancing_interval_by_interval(way):
    """And it stops where the arrays must grow, with what is left to run."""
    events = np.array([30, 0, 20, 60])
    ours, theirs = (table_of({(0, 0): 3}, levels=8) for _ in range(2))
    sent, rng = np.zeros((2, 64), np.int64), [sfc64.initial_state(np.random.SeedSequence(1)) for _ in range(2)]
    left, by_queue, by_observation = events.copy(), np.full((4, 8), -1), np.full((4, 8), -1)
    done = memory.follow(1, False, 3.0, left, ours, rng[0], sent[0], by_queue, by_observation)
    assert done < 4
    for interval in range(done + 1):
        remaining = memory.advance(1, False, 3.0, events[interval], theirs, rng[1], sent[1])
        assert remaining == left[interval]
        assert interval == done or (by_queue[interval] == theirs.sum(axis=0)).all()
        assert interval == done or (by_observation[interval] == theirs.sum(axis=1)).all()
    assert left[done] > 0
    assert (left[done + 1 :] == events[done + 1 :]).all()
    assert (by_queue[done:] == by_observation[done:]).all()
    assert (by_queue[done:] == -1).all()
    assert (ours == theirs).all()
    assert (sent[0] == sent[1]).all()
