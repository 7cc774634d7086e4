"""Pairs of systems on the same random numbers: each is the system itself, and both are alike where nothing differs."""

import dchoices as dc
import numpy as np
import pytest
from dchoices import replacement
from dchoices.kernels import pair, sfc64
from numba import config

MEMORY = pytest.mark.parametrize("memory", [True, False], ids=["memory", "no memory"])


def follow(memory, N, d, lam, runs, events, seed=1):
    """Run a pair for `runs` times `events` events and return the queue lengths after each, int64[runs, 2, N]."""
    servers, end = replacement._start("sq-memory" if memory else "sq", N, d, lam)
    rng = sfc64.initial_state(np.random.SeedSequence(seed))
    queues, sums = [], np.zeros(2, np.int64)
    for _ in range(runs):
        arrivals, more, left = pair.run(memory, d, lam, events, servers, end, rng)
        assert left == 0
        sums += arrivals, more
        queues.append(servers[0].copy())
    return np.array(queues), sums, (servers, end)


@MEMORY
def test_each_alone_is_the_exact_chain(memory):
    """At N = 3, where the two differ most, with replacement and without."""
    d, lam = 2, 0.6
    queues, (arrivals, more), _ = follow(memory, 3, d, lam, *((200, 5) if config.DISABLE_JIT else (60_000, 20)))
    if config.DISABLE_JIT:
        return
    policy = "sq-memory" if memory else "sq"
    exact = [dc.exact_stationary(3, d, lam, 12, name) for name in (policy, f"{policy}-distinct")]
    for k, solved in enumerate(exact):
        occupancy = np.bincount(queues[:, k].ravel(), minlength=4)[:4] / queues[:, k].size
        assert occupancy == pytest.approx(solved.occupancy.values[:4], abs=6e-3)
    gap = float(exact[0].mean_response_time - exact[1].mean_response_time)
    assert more / arrivals == pytest.approx(gap, rel=0.1)


@MEMORY
def test_with_one_probe_both_are_the_same(memory):
    queues, (_, more), state = follow(memory, 20, 1, 0.8, 20, 100)
    assert (queues[:, 0] == queues[:, 1]).all()
    assert more == 0
    servers, end = state
    assert (servers[:, 0] == servers[:, 1]).all()
    assert (end[0] == end[1]).all()


def test_the_line_stays_in_order_of_observation():
    servers, end = replacement._start("sq-memory", 30, 3, 0.9)
    queue, observation, line, place = servers
    rng = sfc64.initial_state(np.random.SeedSequence(2))
    for _ in range(300):
        pair.run(True, 3, 0.9, 3, servers, end, rng)
        for k in range(2):
            assert (line[k][place[k]] == np.arange(30)).all()
            ordered = observation[k][line[k]]
            assert (np.diff(ordered) >= 0).all()
            assert (np.searchsorted(ordered, np.arange(end.shape[1]), side="right") == end[k]).all()
            assert (queue[k] <= observation[k]).all()


def test_servers_of_two_systems_are_chosen_alike_and_each_by_its_own_law():
    """Lowest are servers 0, 1, 2 in one, 1, 2, 3, 4 in the other: the same one with probability 2/4."""
    observation = np.array([[0, 0, 0, 1, 1], [1, 0, 0, 0, 0]])
    line, end = np.array([[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]]), np.array([[3, 5], [4, 5]])
    rng = sfc64.initial_state(np.random.SeedSequence(4))
    draws = 300 if config.DISABLE_JIT else 20_000
    for a, b in ((0, 1), (1, 0)):
        order = [a, b]
        chosen = np.array([pair._lowest(observation[order], line[order], end[order], rng) for _ in range(draws)])
        error = 4 * np.sqrt(0.25 / draws)
        for k, law in enumerate(([1 / 3] * 3 + [0] * 2, [0] + [1 / 4] * 4)):
            found = np.bincount(chosen[:, order.index(k)], minlength=5) / draws
            assert found == pytest.approx(law, abs=error)
        assert (chosen[:, 0] == chosen[:, 1]).mean() == pytest.approx(1 / 2, abs=error)


def test_a_full_memory_stops_the_run():
    servers, end = replacement._start("sq-memory", 1, 1, 0.6)
    rng = sfc64.initial_state(np.random.SeedSequence(1))
    _, _, left = pair.run(True, 1, 0.999, 10_000, servers, end[:, :6].copy(), rng)
    assert left > 0
    assert servers[1].max() == 5
