"""The lumped chain of policies without memory: counts of servers by queue length, exact at every N.

Time is uniformised at rate N(1+λ): one uniform number in [0, N(1+λ)) is a departure attempt at that server when it is
below N, else an arrival. Servers are ranked by queue length, the longest first, so that a policy only has to name a
rank, and a job that comes or goes changes a single tail count.
"""

import math

import numpy as np

from dchoices.kernels.codes import JOIN_IDLE, SHORTEST_OF_D, SHORTEST_OF_D_DISTINCT
from dchoices.kernels.jit import kernel, uncached_kernel
from dchoices.kernels.sfc64 import next_word, unit

SLICES = 1024  # parts of the ranking whose queue length is remembered as a first guess
MANY_PROBES = 64  # from here on one draw and a power cost less than draws and roots for every binary digit
REFRESH = 8192  # events after which the guesses are made anew; a wrong guess costs time, never exactness


@kernel
def _guess_levels(at_least, shift, guess):
    """Fill `guess` with the queue length at the first rank of every slice of 2^shift ranks."""
    level = at_least.size - 1
    for part in range(((at_least[0] - 1) >> shift) + 1):
        while at_least[level] <= part << shift:
            level -= 1
        guess[part] = level


@kernel
def _level(rank, at_least, shift, guess):
    """Return the queue length of the server of a rank: the highest i with more than `rank` servers at i or above."""
    level = np.int64(guess[rank >> shift])
    while at_least[level] <= rank:
        level -= 1
    while at_least[level + 1] > rank:
        level += 1
    return level


@kernel
def _shortest_probed(d, servers, a, b, c, counter):
    """Return the rank of the shortest of d servers probed with replacement, and the generator's state.

    It is the highest of d ranks, that of the highest of d uniforms; and the highest of 2^k uniforms is the 2^k-th root
    of one, so that d takes as many draws as it has binary digits 1. If d is large it is the d-th root of one.
    """
    if d >= MANY_PROBES:
        word, a, b, c, counter = next_word(a, b, c, counter)
        return min(np.int64(unit(word) ** (1.0 / d) * servers), servers - 1), a, b, c, counter
    highest = 0.0
    root = 0
    while d >> root > 0:
        if (d >> root) & 1:
            word, a, b, c, counter = next_word(a, b, c, counter)
            value = unit(word)
            for _ in range(root):
                value = math.sqrt(value)
            highest = max(highest, value)
        root += 1
    # A root can round up to 1.
    return min(np.int64(highest * servers), servers - 1), a, b, c, counter


@kernel
def _shortest_distinct(d, servers, a, b, c, counter):
    """Return the rank of the shortest of d different servers, and the generator's state.

    Floyd's algorithm draws the k-th number below N - d + k; where it draws one again it takes a number above all others
    instead, which leaves the lowest as it is. Counted from the shortest, the lowest is what is wanted.
    """
    lowest = servers
    for room in range(servers - d + 1, servers + 1):
        word, a, b, c, counter = next_word(a, b, c, counter)
        lowest = min(lowest, np.int64(unit(word) * room))
    return servers - 1 - lowest, a, b, c, counter


def _advance(policy, choose, d, lam, events, at_least, rng, sent):
    """Run a policy without memory for up to `events` uniformised events.

    Parameters
    ----------
    policy : int
        One of `codes`.
    choose : None or jitted function
        The policy of a user: (at_least, d, rng) -> queue length of the server that gets the job.
    d : int
        Probes per arrival.
    lam : float
        Arrival rate per server.
    events : int
        Number of events to run.
    at_least : int64[L]
        Servers with at least i jobs; updated.
    rng : uint64[4]
        SFC64 state; updated.
    sent : int64[L]
        Jobs sent, by the queue they found; incremented.

    Returns
    -------
    left : int
        Events left to run: positive if a queue has reached L - 1 and the arrays must grow first.
    impossible : int
        0, or 1 + the queue length that a user's policy chose though no server has it (-1 if that is negative).
    """
    a, b, c, counter = rng
    servers = at_least[0]
    total_rate = servers * (1.0 + lam)
    shift = 0
    while (servers - 1) >> shift >= SLICES:
        shift += 1
    guess = np.zeros(SLICES, np.uint32)
    impossible = 0
    full = False
    while events > 0 and not full:
        _guess_levels(at_least, shift, guess)
        burst = min(events, REFRESH)
        while burst > 0 and not full:
            burst -= 1
            events -= 1
            word, a, b, c, counter = next_word(a, b, c, counter)
            position = unit(word) * total_rate
            arrives = position >= servers
            if choose is None:
                # Aimed at every event, not at arrivals only: a branch that no one can foresee costs more than the draw.
                # In line: as a function that returns the generator too, it made the loop twice as slow.
                aim = servers - 1
                if policy == SHORTEST_OF_D or (policy == JOIN_IDLE and at_least[1] == servers):
                    aim, a, b, c, counter = _shortest_probed(d, servers, a, b, c, counter)
                elif policy == SHORTEST_OF_D_DISTINCT:
                    aim, a, b, c, counter = _shortest_distinct(d, servers, a, b, c, counter)
                level = _level(aim if arrives else np.int64(position), at_least, shift, guess)
            elif arrives:
                rng[0], rng[1], rng[2], rng[3] = a, b, c, counter
                level = choose(at_least, d, rng)
                a, b, c, counter = rng
                if level < 0 or level + 1 >= at_least.size or at_least[level] == at_least[level + 1]:
                    impossible = level + 1 if level >= 0 else -1
                    break
            else:
                level = _level(np.int64(position), at_least, shift, guess)
            at_least[level + arrives] += np.int64(arrives) - np.int64((level > 0) & (not arrives))
            sent[level] += arrives
            full = level + 2 == at_least.size
        full |= impossible != 0
    rng[0], rng[1], rng[2], rng[3] = a, b, c, counter
    return events, impossible


advance = kernel(_advance)
advance_user = uncached_kernel(_advance)
