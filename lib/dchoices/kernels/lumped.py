"""The lumped chains: counts of servers by state, exact at every N, at a cost per event that does not grow with N.

Time is uniformised at rate N(1+λ): one uniform number in [0, N(1+λ)) is a departure attempt at that server when
it is below N, else an arrival. Both kernels return the number of events left when the highest level of their arrays
is reached, so that the caller can enlarge them and go on with the same stream; nothing is ever cut off.
"""

import numpy as np

from dchoices.kernels.jit import kernel
from dchoices.kernels.sfc64 import next_word, unit

BLOCK = 32  # levels looked up at once; a change of block is one move in as many


@kernel
def _locate(sizes, start, rank):
    """Return the class that holds element `rank` when classes from `start` on are laid end to end, and the rest."""
    index = start
    while rank >= sizes[index]:
        rank -= sizes[index]
        index += 1
    return index, rank


@kernel
def advance_memory(d, lam, events, count, by_queue, by_observation, rng, sent_by_queue, sent_by_observation):
    """Run SQ(d, N) with memory (model: arXiv:1802.06566) for up to `events` uniformised events.

    Parameters
    ----------
    d : int
        Probes per arrival, with replacement.
    lam : float
        Arrival rate per server.
    events : int
        Number of events to run.
    count : int64[L, L]
        Servers with i jobs and observation j >= i; updated.
    by_queue, by_observation : int64[L]
        Row and column sums of `count`; updated.
    rng : uint64[4]
        SFC64 state; updated.
    sent_by_queue, sent_by_observation : int64[L]
        Jobs sent, by the true queue and by the observation found; incremented.

    Returns
    -------
    int
        Events left to run: positive if a server has reached observation L - 1 and the arrays must grow first.
    """
    a, b, c, counter = rng
    servers = by_queue.sum()
    total_rate = servers * (1.0 + lam)
    top = by_queue.size - 1
    while events > 0:
        events -= 1
        word, a, b, c, counter = next_word(a, b, c, counter)
        position = unit(word) * total_rate
        if position < servers:
            i, rank = _locate(by_queue, 0, int(position))
            if i > 0:
                j, rank = _locate(count[i], i, rank)
                count[i, j] -= 1
                count[i - 1, j] += 1
                by_queue[i] -= 1
                by_queue[i - 1] += 1
            continue
        for _ in range(d):
            word, a, b, c, counter = next_word(a, b, c, counter)
            i, rank = _locate(by_queue, 0, int(unit(word) * servers))
            if rank >= count[i, i]:  # the memory is stale
                j, rank = _locate(count[i], i, rank)
                count[i, j] -= 1
                count[i, i] += 1
                by_observation[j] -= 1
                by_observation[i] += 1
        lowest = 0
        while by_observation[lowest] == 0:
            lowest += 1
        i = 0
        if lowest > 0:
            word, a, b, c, counter = next_word(a, b, c, counter)
            i, rank = _locate(count[:, lowest], 0, int(unit(word) * by_observation[lowest]))
        count[i, lowest] -= 1
        count[i + 1, lowest + 1] += 1
        by_queue[i] -= 1
        by_queue[i + 1] += 1
        by_observation[lowest] -= 1
        by_observation[lowest + 1] += 1
        sent_by_queue[i] += 1
        sent_by_observation[lowest] += 1
        if lowest + 1 == top:
            break
    rng[0], rng[1], rng[2], rng[3] = a, b, c, counter
    return events


@kernel
def advance_memoryless(d, lam, events, by_queue, rng, sent_by_queue):
    """Run SQ(d) without memory, d probes with replacement, for up to `events` uniformised events.

    With servers ordered by queue length, the shortest of d probed queues is the one of the lowest probed rank. Without
    memory queues can be hundreds long (d = 1), so that ranks are looked up by blocks of levels first.
    Arguments and result are those of `advance_memory`.
    """
    a, b, c, counter = rng
    servers = by_queue.sum()
    total_rate = servers * (1.0 + lam)
    top = by_queue.size - 1
    by_block = np.zeros(top // BLOCK + 1, np.int64)
    for i in range(by_queue.size):
        by_block[i // BLOCK] += by_queue[i]
    while events > 0:
        events -= 1
        word, a, b, c, counter = next_word(a, b, c, counter)
        position = unit(word) * total_rate
        if position < servers:
            block, rank = _locate(by_block, 0, int(position))
            i, _ = _locate(by_queue, block * BLOCK, rank)
            if i > 0:
                by_queue[i] -= 1
                by_queue[i - 1] += 1
                if i % BLOCK == 0:
                    by_block[block] -= 1
                    by_block[block - 1] += 1
            continue
        lowest = 1.0
        for _ in range(d):
            word, a, b, c, counter = next_word(a, b, c, counter)
            lowest = min(lowest, unit(word))
        block, rank = _locate(by_block, 0, int(lowest * servers))
        i, _ = _locate(by_queue, block * BLOCK, rank)
        by_queue[i] -= 1
        by_queue[i + 1] += 1
        if (i + 1) % BLOCK == 0:
            by_block[block] -= 1
            by_block[block + 1] += 1
        sent_by_queue[i] += 1
        if i + 1 == top:
            break
    rng[0], rng[1], rng[2], rng[3] = a, b, c, counter
    return events
