"""Two systems side by side, one probing with replacement and one without, on the same random numbers.

Departures happen at the same server, probes are the same until one is drawn again, and jobs go to the same server
where they can. Each of the two alone is the system itself; together they differ in few servers, so that the difference
of their means, of order 1/N, is not lost in the noise of either. Servers are kept one by one.
"""

import numpy as np

from dchoices.kernels.jit import kernel
from dchoices.kernels.sfc64 import uniform


@kernel
def _remember(server, level, observation, line, place, end):
    """Give a server an observation; `line` holds the servers in order of observation, up to j in the first end[j]."""
    here, now = place[server], observation[server]
    while now != level:  # at each border the server changes places with the first or the last one of its level
        if now > level:
            now -= 1
            border = end[now]
            end[now] = border + 1
        else:
            border = end[now] - 1
            end[now] = border
            now += 1
        other = line[border]
        line[here], place[other] = other, here
        line[border] = server
        here = border
    place[server], observation[server] = here, level


@kernel
def _lowest(observation, line, end, rng):
    """Return a server with the lowest observation for each system, the same one as often as their laws allow."""
    low = observation[0, line[0, 0]], observation[1, line[1, 0]]
    size = end[0, low[0]], end[1, low[1]]
    one = line[0, int(uniform(rng) * size[0])]
    if observation[1, one] == low[1] and uniform(rng) * size[1] < size[0]:
        return one, one
    while True:  # what is left of the law of the other
        two = line[1, int(uniform(rng) * size[1])]
        if observation[0, two] != low[0] or uniform(rng) * size[0] >= size[1]:
            return one, two


@kernel
def _seen(probes, p):
    """Return whether probe p is of a server that was probed before."""
    seen = False
    for before in range(p):
        seen |= probes[before] == probes[p]
    return seen


@kernel
def _shortest(probes, queue):
    """Return the first of the probed servers with the shortest queue."""
    found = probes[0]
    for server in probes[1:]:
        if queue[server] < queue[found]:
            found = server
    return found


@kernel
def run(memory, d, lam, events, servers, end, rng):
    """Run both systems for so many uniformised events, at rate N(1+λ).

    Parameters
    ----------
    memory : bool
        Whether jobs go to a lowest observation; else to the shortest of the probed queues.
    d : int
        Probes per arrival.
    lam : float
        Arrival rate per server, below 1.
    events : int
        Number of events.
    servers : int64[4, 2, N]
        With replacement and without: queue length and observation of each server, the servers in order of observation,
        and where each stands in that line; updated. Without memory only the queues are.
    end : int64[2, L]
        Number of servers with an observation up to j; updated.
    rng : uint64[4]
        SFC64 state; updated.

    Returns
    -------
    arrivals, more : int
        Jobs that arrived, and by how many jobs more they found before them with replacement than without, in all.
    left : int
        Events left to run: positive if an observation has reached L - 1.
    """
    queue, observation, line, place = servers
    N = queue.shape[1]
    probes = np.empty((2, d), np.int64)
    arrivals = more = 0
    while events > 0:
        events -= 1
        value = uniform(rng) * (1 + lam)
        if value < 1:
            server = int(value * N)
            for k in range(2):
                queue[k, server] -= min(queue[k, server], 1)
            continue
        for p in range(d):
            probes[0, p] = probes[1, p] = int(uniform(rng) * N)
            while _seen(probes[1], p):
                probes[1, p] = int(uniform(rng) * N)
        if memory:
            for k in range(2):
                for server in probes[k]:
                    if observation[k, server] > queue[k, server]:
                        _remember(server, queue[k, server], observation[k], line[k], place[k], end[k])
            chosen = _lowest(observation, line, end, rng)
        else:
            chosen = _shortest(probes[0], queue[0]), _shortest(probes[1], queue[1])
        arrivals += 1
        more += queue[0, chosen[0]] - queue[1, chosen[1]]
        full = False
        for k in range(2):
            queue[k, chosen[k]] += 1
            if memory:
                level = observation[k, chosen[k]] + 1
                _remember(chosen[k], level, observation[k], line[k], place[k], end[k])
                full |= level == end.shape[1] - 1
        if full:
            break
    return arrivals, more, events
