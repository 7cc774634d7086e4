"""SQ(d, N) with memory, every server in a line: the faster way while the line fits a processor's cache.

Servers with the same queue length and observation are exchangeable, so a server is no more than a place in a line
that holds its class; the line is kept in order of observation. A random server is a random place, the lowest
observation is that of the first place, a random server that has it is one of the first so many places, and a new
observation is a swap at every border between the old one and the new.
"""

import numpy as np

from dchoices.kernels.bits import scaled
from dchoices.kernels.jit import kernel
from dchoices.kernels.sfc64 import next_word, unit

# A class in one word: the observation above, the queue length in the low bits.
_BITS = 16
_QUEUE = (1 << _BITS) - 1
_BOTH = (1 << _BITS) + 1


@kernel
def _run(d, lam, events, line, end, rng, sent):
    """Run events until none is left or a server has the last observation; return the events left.

    Places are unsigned words of 32 bits: it spares numba's test for a negative index at every access.
    """
    a, b, c, counter = rng
    threshold = np.uint64(lam / (1 + lam) * 2.0**64)
    whole, stretch = np.uint64(lam), np.uint64(lam % 1.0 * 2.0**64)
    per_arrival = (1 + lam) / lam * (1 - 2.0**-50)  # a hair less: a rank must be below the number of ranks
    while events > 0:
        events -= 1
        word, a, b, c, counter = next_word(a, b, c, counter)
        if word >= threshold:  # a comparison of words is known sooner than one of doubles
            word -= threshold
            word += word * whole + np.uint64(scaled(word, stretch))  # word·(1 + λ): again uniform
            place = np.uint32(scaled(word, line.size))
            here = np.int64(line[place])
            line[place] = here - ((here & _QUEUE) > 0)
            continue
        value = unit(word) * per_arrival  # again uniform
        for _ in range(d):
            word, a, b, c, counter = next_word(a, b, c, counter)
            place = np.uint32(scaled(word, line.size))
            here = np.int64(line[place])
            queue, level = here & _QUEUE, here >> _BITS
            if queue == level:
                continue
            while level > queue:  # at each border the place goes to the lower level, its server to the first one
                level -= 1
                border = end[level]
                line[place] = line[border]
                end[level] = border + 1
                place = border
            line[place] = queue * _BOTH
        lowest = np.int64(line[0]) >> _BITS
        place, last = np.uint32(value * end[lowest]), np.uint32(end[lowest] - 1)
        here = np.int64(line[place])
        line[place] = line[last]
        line[last] = here + _BOTH
        end[lowest] = last
        sent[lowest * end.size + (here & _QUEUE)] += 1
        if lowest + 2 == end.size:
            break
    rng[0], rng[1], rng[2], rng[3] = a, b, c, counter
    return events


@kernel
def advance(d, lam, events, table, rng, sent):
    """Do what `memory.advance` does, in a time and space that grow with the number of servers."""
    levels = table.shape[0]
    line, end = np.zeros(table.sum(), np.uint32), np.zeros(levels, np.uint32)
    filled = 0
    for observation in range(levels):
        for queue in range(observation + 1):
            line[filled : filled + table[observation, queue]] = (observation << _BITS) + queue
            filled += table[observation, queue]
        end[observation] = filled
    if end[levels - 1] == end[levels - 2]:
        events = _run(d, lam, events, line, end, rng, sent)
    begin = 0
    parts = np.zeros((4, levels), np.int64)  # so that equal neighbours do not wait for each other
    for observation in range(levels):
        parts[:] = 0
        for place in range(begin, end[observation]):
            parts[place & 3, line[place] & _QUEUE] += 1
        begin = end[observation]
        table[observation] = parts.sum(axis=0)
    return events
