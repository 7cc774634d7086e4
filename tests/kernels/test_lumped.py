"""Invariants of the lumped kernels; their law is tested in test_simulation against models that share no code."""

import numpy as np
import pytest
from dchoices.kernels import lumped, sfc64


def memory_state(N, levels=16):
    count = np.zeros((levels, levels), np.int64)
    count[0, 0] = N
    return count, count.sum(axis=1), count.sum(axis=0), np.zeros(levels, np.int64), np.zeros(levels, np.int64)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_memory_kernel_keeps_its_books(d):
    N, lam = 500, 0.9
    count, by_queue, by_observation, sent_queue, sent_observation = memory_state(N)
    rng = sfc64.initial_state(np.random.SeedSequence(d))
    for _ in range(20):
        left = lumped.advance_memory(d, lam, 5000, count, by_queue, by_observation, rng, sent_queue, sent_observation)
        assert left == 0
        assert (count >= 0).all()
        assert count.sum() == N
        assert not np.tril(count, -1).any(), "an observation is below the queue"
        assert (count.sum(axis=1) == by_queue).all()
        assert (count.sum(axis=0) == by_observation).all()
    assert sent_queue.sum() == sent_observation.sum()


def test_memory_kernel_sends_to_the_lowest_observation_only():
    """With all servers observed at 3 or 5, and d = 1 probing a server of true queue 3 or 5, jobs go to 3."""
    count, *_ = memory_state(100)
    count[:] = 0
    count[3, 3], count[5, 5] = 50, 50
    sent_queue, sent_observation = np.zeros(16, np.int64), np.zeros(16, np.int64)
    rng = sfc64.initial_state(np.random.SeedSequence(1))
    # A load of 10^9 makes every event an arrival.
    lumped.advance_memory(1, 1e9, 40, count, count.sum(axis=1), count.sum(axis=0), rng, sent_queue, sent_observation)
    assert sent_observation[3] == 40
    assert sent_queue[3] == 40


def test_memory_kernel_updates_what_it_probes():
    """All servers idle but remembered with 4 jobs: one arrival, one probe, and the probed server gets the job."""
    count, *_ = memory_state(100)
    count[:] = 0
    count[0, 4] = 100
    by_queue, by_observation = count.sum(axis=1), count.sum(axis=0)
    rng = sfc64.initial_state(np.random.SeedSequence(1))
    lumped.advance_memory(
        1, 1e9, 1, count, by_queue, by_observation, rng, np.zeros(16, np.int64), np.zeros(16, np.int64)
    )
    assert count[0, 4] == 99
    assert count[1, 1] == 1


@pytest.mark.parametrize("memory", [True, False])
def test_kernels_stop_at_the_top_level_and_go_on_from_there(memory):
    """Cut at a low top level and grown, a run ends where one with room from the start ends."""
    ends = []
    for levels in (4, 64):
        count, by_queue, by_observation, sent_queue, sent_observation = memory_state(20, levels)
        rng = sfc64.initial_state(np.random.SeedSequence(3))
        left = 20_000
        while left > 0:
            if memory:
                left = lumped.advance_memory(
                    1, 0.97, left, count, by_queue, by_observation, rng, sent_queue, sent_observation
                )
            else:
                left = lumped.advance_memoryless(1, 0.97, left, by_queue, rng, sent_queue)
            if by_queue[-1] or by_observation[-1]:
                count = np.pad(count, (0, 3))
                by_queue, by_observation = np.pad(by_queue, (0, 3)), np.pad(by_observation, (0, 3))
                sent_queue, sent_observation = np.pad(sent_queue, (0, 3)), np.pad(sent_observation, (0, 3))
        ends.append(np.trim_zeros(by_queue, "b").tolist())
    assert ends[0] == ends[1]
    assert sum(ends[0]) == 20
