"""SQ(d, N) with memory: the faster of two exact ways to run it."""

from dchoices.kernels import memory_cells, memory_line
from dchoices.kernels.jit import kernel

BLOCK = memory_cells.BLOCK
LONGEST_LINE = 1 << 16  # servers: so many still fit a processor's cache, one by one
SHORT_LINE = 1024  # servers whose line is set up in no time


@kernel
def advance(d, distinct, lam, events, table, rng, sent):
    """Run SQ(d, N) with memory (model: arXiv:1802.06566) for up to `events` uniformised events.

    Parameters
    ----------
    d : int
        Probes per arrival.
    distinct : bool
        Whether the probed servers are all different; else they are drawn with replacement, as in the paper.
    lam : float
        Arrival rate per server, below 1.
    events : int
        Number of events to run.
    table : int64[L, L]
        Servers by observation j and queue length i <= j, L a multiple of `BLOCK`; updated.
    rng : uint64[4]
        SFC64 state; updated.
    sent : int64[L²]
        Jobs sent, by the class of the server at that moment, j·L + i; incremented.

    Returns
    -------
    int
        Events left to run: positive if a server has reached observation L - 1 and the arrays must grow first.
    """
    servers = table.sum()
    # A long line is not worth setting up for few events, and a line does not tell how many of a class were probed.
    if servers <= min(LONGEST_LINE, max(2 * events, SHORT_LINE)) and not distinct:
        return memory_line.advance(d, lam, events, table, rng, sent)
    return memory_cells.advance(d, distinct, lam, events, table, rng, sent)


@kernel
def follow(d, distinct, lam, events, table, rng, sent, by_queue, by_observation):
    """Run several intervals as `advance` does, and count the servers at the end of each.

    Parameters
    ----------
    events : int64[T]
        Number of events in each interval; those that are left to run stay in it.
    by_queue, by_observation : int64[T, L]
        Servers by queue length and by observation at the end of each interval; filled.
    d, distinct, lam, table, rng, sent
        As for `advance`.

    Returns
    -------
    int
        Intervals that were completed, fewer than T if the arrays must grow first.
    """
    for interval in range(events.size):
        events[interval] = advance(d, distinct, lam, events[interval], table, rng, sent)
        if events[interval] > 0:
            return interval
        by_queue[interval] = table.sum(axis=0)
        by_observation[interval] = table.sum(axis=1)
    return events.size
