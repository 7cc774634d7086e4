"""The system server by server, for service times and speeds that have no lumped chain.

A job's service time is drawn when it arrives. Servers take jobs first come, first served, so its departure is known
at once: it waits in a calendar queue (R. Brown, Communications of the ACM 31(10), 1988), and before every arrival the
departures up to then are taken out. A day of the calendar is the mean time between arrivals. The order of departures
within a day plays no part, so days are not sorted. The work per job does not grow with N, as that of a heap would.

Policies that need to know which servers are shortest (or remembered as such) find them in `order`: servers sorted by
`seen`, the highest first, so that those with `seen` >= k are the first `at_least[k]`. A step of one up or down swaps
two servers.
"""

from typing import NamedTuple

import numpy as np

from dchoices.kernels.codes import JOIN_IDLE, JOIN_SHORTEST, SHORTEST_OF_D, SHORTEST_OF_D_DISTINCT, USER
from dchoices.kernels.jit import kernel, uncached_kernel
from dchoices.kernels.service import draw, exponential
from dchoices.kernels.sfc64 import uniform

_FAR = 2.0**62  # a last day, for all times beyond


class Servers(NamedTuple):
    """What is known of every server.

    Attributes
    ----------
    speed : float64[N]
        Work done per time.
    free : float64[N]
        When the jobs sent so far are done.
    queue : int64[N]
        Jobs now.
    seen : int64[N]
        What `order` goes by: the observation with memory, the queue length for policies that know all of them.
    order, place : int64[N]
        Servers sorted by `seen`, the highest first, and where each stands.
    deck : int64[N]
        Any permutation; different servers are probed by shuffling its head.
    at_least : int64[L]
        Servers with `seen` >= k.
    """

    speed: np.ndarray
    free: np.ndarray
    queue: np.ndarray
    seen: np.ndarray
    order: np.ndarray
    place: np.ndarray
    deck: np.ndarray
    at_least: np.ndarray


class Departures(NamedTuple):
    """The departures of the jobs present, in lists by day.

    Attributes
    ----------
    time : float64[C]
        When a job departs.
    source : int64[C]
        The server that it leaves.
    following : int64[C]
        Next entry of the same day, or of the unused ones; -1 behind the last.
    day : int64[D]
        First entry of a day modulo D, a power of two; -1 if there is none.
    unused : int64[1]
        First unused entry; -1 if there is none.
    today : int64[1]
        The day up to which jobs have gone.
    """

    time: np.ndarray
    source: np.ndarray
    following: np.ndarray
    day: np.ndarray
    unused: np.ndarray
    today: np.ndarray


class Tally(NamedTuple):
    """What is counted: jobs by the queue and the observation they found, and their response times.

    Attributes
    ----------
    by_queue, by_observation : int64[L]
        Jobs sent.
    grid : float64[X]
        Response times.
    beyond : int64[X + 1]
        Jobs by the number of entries of the grid that their response time exceeds.
    response : float64[1]
        Sum of the response times.
    """

    by_queue: np.ndarray
    by_observation: np.ndarray
    grid: np.ndarray
    beyond: np.ndarray
    response: np.ndarray


@kernel
def _date(time, rate):
    """Return the day of a time."""
    return np.int64(min(time * rate, _FAR))


@kernel
def _enter(departs, server, rate, time, source, following, day, unused):
    """Put a departure into the calendar."""
    entry = unused[0]
    unused[0] = following[entry]
    date = _date(departs, rate) & (day.size - 1)
    time[entry], source[entry] = departs, server
    following[entry] = day[date]
    day[date] = entry


@kernel
def _swap(server, rank, order, place):
    """Put a server at a rank, and the one that was there where it was."""
    other, old = order[rank], place[server]
    order[rank], order[old] = server, other
    place[server], place[other] = rank, old


@kernel
def _raise(server, seen, order, place, at_least):
    """Add one to what is seen of a server."""
    level = seen[server] + 1
    _swap(server, at_least[level], order, place)
    at_least[level] += 1
    seen[server] = level


@kernel
def _lower(server, seen, order, place, at_least):
    """Take one from what is seen of a server."""
    level = seen[server]
    at_least[level] -= 1
    _swap(server, at_least[level], order, place)
    seen[server] = level - 1


@kernel
def _probe(probe, distinct, deck, rng):
    """Return the server that the k-th probe of a job finds."""
    if not distinct:
        return np.int64(uniform(rng) * deck.size)
    other = probe + np.int64(uniform(rng) * (deck.size - probe))
    deck[probe], deck[other] = deck[other], deck[probe]
    return deck[probe]


@kernel
def _shortest(d, distinct, queue, deck, rng):
    """Return the shortest of d servers. Probes come in random order: the first of equals is a random one of them."""
    shortest = _probe(0, distinct, deck, rng)
    for probe in range(1, d):
        server = _probe(probe, distinct, deck, rng)
        if queue[server] < queue[shortest]:
            shortest = server
    return shortest


@kernel
def _any_at(level, order, at_least, rng):
    """Return a random one of the servers seen at a level."""
    first = at_least[level + 1]
    return order[first + np.int64(uniform(rng) * (at_least[level] - first))]


@kernel
def _send(policy, memory, d, queue, seen, order, place, deck, at_least, rng):
    """Return the server that a built-in policy sends the next job to."""
    distinct = policy == SHORTEST_OF_D_DISTINCT
    if memory:
        for probe in range(d):
            server = _probe(probe, distinct, deck, rng)
            while seen[server] > queue[server]:
                _lower(server, seen, order, place, at_least)
    elif policy == SHORTEST_OF_D or distinct or (policy == JOIN_IDLE and at_least[1] == order.size):
        return _shortest(d, distinct, queue, deck, rng)
    return _any_at(seen[order[-1]], order, at_least, rng)


@kernel
def _depart(
    until, rate, sorts_queues, queue, seen, order, place, at_least, time, source, following, day, unused, today
):
    """Let all jobs go that are done by then."""
    last, days = _date(until, rate), day.size
    for date in range(max(today[0], last - days + 1), last + 1):
        before, entry = -1, day[date & (days - 1)]
        while entry >= 0:
            next_entry = following[entry]
            if time[entry] > until:  # later this day, or in another year
                before, entry = entry, next_entry
                continue
            if before >= 0:
                following[before] = next_entry
            else:
                day[date & (days - 1)] = next_entry
            following[entry] = unused[0]
            unused[0] = entry
            server = source[entry]
            queue[server] -= 1
            if sorts_queues:
                _lower(server, seen, order, place, at_least)
            entry = next_entry
    today[0] = last


@kernel
def begin(law, rate, servers, departures, rng):
    """Give every job present at time 0 a service time of its own, and put its departure into the calendar."""
    speed, free, queue = servers.speed, servers.free, servers.queue
    time, source, following, day, unused, _ = departures
    for server in range(queue.size):
        for _ in range(queue[server]):
            free[server] += draw(law, rng) / speed[server]
            _enter(free[server], server, rate, time, source, following, day, unused)


def _advance(policy, memory, choose, d, rate, law, now, end, servers, departures, tally, rng):
    """Run from one time to another.

    Parameters
    ----------
    policy : int
        One of `codes`, see `memoryless.advance`.
    memory : bool
        Whether the dispatcher remembers what it probed, and sends jobs to a server with the lowest observation.
    choose : None or jitted function
        The policy of a user: (at_least, d, rng) -> queue length of the server that gets the job.
    d : int
        Probes per arrival.
    rate : float
        Arrivals per time, λN.
    law : (int, float, float, float)
        Service law, see `service.draw`.
    now, end : float
        Times, in mean service times at speed 1.
    servers : Servers
    departures : Departures
    tally : Tally
    rng : uint64[4]
        SFC64 state; updated, as are the three before it.

    Returns
    -------
    now : float
        The time reached: short of `end` if the calendar or the levels are full and must grow first.
    arrived : int
        Jobs that came.
    impossible : int
        0, or 1 + the queue length that a user's policy chose though no server has it (-1 if that is negative).
    """
    # Plain arrays from here on: a tuple of arrays that is handed on in a loop has every reference counted.
    speed, free, queue, seen, order, place, deck, at_least = servers
    time, source, following, day, unused, today = departures
    sent_by_queue, sent_by_observation, grid, beyond, total = tally
    sorts_queues = not memory and policy in (JOIN_SHORTEST, JOIN_IDLE, USER)
    arrived = 0
    full = False
    while not full:
        # Arrivals have no memory: the time to the next may be drawn anew after a pause.
        arrival = now + exponential(rng) / rate
        _depart(
            min(arrival, end), rate, sorts_queues, queue, seen, order, place, at_least,
            time, source, following, day, unused, today,
        )  # fmt: skip
        if arrival > end:
            return end, arrived, 0
        now = arrival
        if choose is not None:
            level = choose(at_least, d, rng)
            if level < 0 or level + 1 >= at_least.size or at_least[level] == at_least[level + 1]:
                return now, arrived, level + 1 if level >= 0 else -1
            server = _any_at(level, order, at_least, rng)
        else:
            server = _send(policy, memory, d, queue, seen, order, place, deck, at_least, rng)
        arrived += 1
        known = seen[server] if memory else queue[server]
        sent_by_queue[queue[server]] += 1
        sent_by_observation[known] += 1
        # Not the difference of two times: where nobody waits it would round a fixed service time up or down.
        response = max(0.0, free[server] - now) + draw(law, rng) / speed[server]
        free[server] = now + response
        total[0] += response
        beyond[np.searchsorted(grid, response)] += 1
        _enter(free[server], server, rate, time, source, following, day, unused)
        queue[server] += 1
        if memory or sorts_queues:
            _raise(server, seen, order, place, at_least)
        full = unused[0] < 0 or known + 2 == sent_by_queue.size
    return now, arrived, 0


advance = kernel(_advance)
advance_user = uncached_kernel(_advance)
