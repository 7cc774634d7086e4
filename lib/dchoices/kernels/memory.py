"""The lumped chain of SQ(d, N) with memory: counts of servers by observation and queue length, exact at every N.

Time is uniformised at rate N(1+λ): with probability 1/(1+λ) a random server ends a job if it has one, else a job
arrives. Nearly all work is to find the class of a random server, so that is a table lookup: every class is given a row
of cells, some of them spare, a random cell is drawn, and drawn again if it holds no server. The line of cells is cut
into `SLICES`; a slice whose cells all hold servers of one class, and will for a while, needs no further look. When a
class outgrows its cells, or shrinks below the slices that trust it, the cells are laid out anew.

A class is one number, observation·L + queue, so that a departure, a probe and a job sent are each a step of it.
"""

import numpy as np

from dchoices.kernels.bits import lowest_bit
from dchoices.kernels.jit import kernel
from dchoices.kernels.sfc64 import next_word, unit

BLOCK = 8  # levels looked at together, without a branch: L is a multiple of it
SLICE_BITS = 9
SLICES = 1 << SLICE_BITS
MOST_SPARE, SPARE_BITS = 16, 7  # spare cells of a class: N/2^7, at most 16, and a share of 2^-8 of its servers
SHARE_BITS = 8
DEEPEST = 62  # observations are marked as occupied in one word; its last bit stands for all from here on

_TO_SLICE = np.uint64(64 - SLICE_BITS)
_FREE = 2**62  # no bound


@kernel
def _list_moves(levels, moves):
    """Fill `moves`, uint32[L², 5]: source and target of a departure and of a probe, and the bit of what a probe finds.

    Where nothing changes (an idle server, a memory that is right) they are the two entries behind the counts.
    """
    nothing = levels * levels
    for observation in range(levels):
        for queue in range(observation + 1):
            here = observation * levels + queue
            moves[here, :4] = (nothing, nothing + 1, nothing, nothing + 1)
            if queue > 0:
                moves[here, 0], moves[here, 1] = here, here - 1
            if queue < observation:
                moves[here, 2], moves[here, 3] = here, queue * (levels + 1)
            moves[here, 4] = min(queue, DEEPEST)


@kernel
def _lay_out(levels, top, servers, d, count, low, high, first, owner, slices):
    """Give every class its cells and every slice its class; return the number of cells, spare ones included.

    A slice that is not safely within one class holds L² plus the place of a class at or before its first cell.
    The counts may move d steps beyond `low` and `high` before the cells are laid out anew.
    """
    spare = 1 + min(servers >> SPARE_BITS, MOST_SPARE)
    places = cells = 0
    for observation in range(top + 1):
        for queue in range(observation + 1):
            here = observation * levels + queue
            size = count[here]
            low[here] = high[here] = 0
            if size > 0 or queue == observation:  # what a probe finds becomes (i, i): it comes and goes
                room = spare + (size >> SHARE_BITS)
                # Too small for a slice of its own: it may vanish.
                low[here] = size - room if size > 4 * room else 0
                high[here] = size + room
                owner[places], first[places] = here, cells
                cells += size + room + d
                places += 1
    first[places] = cells
    scale = SLICES / cells
    done = before = 0
    for place in range(places):
        here = owner[place]
        # One slice less on either side, against the rounding of `scale`.
        begin = np.int64((first[place] + 1) * scale) + 1
        end = np.int64((first[place] + low[here] - d - 1) * scale)
        if end > begin:
            slices[done:begin] = levels * levels + before
            slices[begin:end] = here
            done, before = end, place
    slices[done:] = levels * levels + before
    return float(cells)


@kernel
def _resolve(kind, value, levels, cells, count, first, owner, slices, a, b, c, counter):
    """Return the class of a random server where the slice does not tell, drawing again until the cell holds one."""
    mixed = levels * levels
    while kind >= mixed:
        place = kind - mixed
        cell = np.int64(value * cells)
        while cell >= first[place + 1]:
            place += 1
        here = np.int64(owner[place])
        if cell - first[place] < count[here]:
            return here, a, b, c, counter
        word, a, b, c, counter = next_word(a, b, c, counter)
        value = unit(word)
        kind = np.int64(slices[word >> _TO_SLICE])
    return kind, a, b, c, counter


@kernel
def _lowest(occupied, levels, count):
    """Return the lowest observation that a server has, how many have it, and the marks without those found empty."""
    lowest = lowest_bit(occupied)
    while True:
        row = lowest * levels
        known = 0
        for queue in range(BLOCK):  # no branch: what is above the observation is 0
            known += count[row + queue]
        for queue in range(BLOCK, lowest + 1):
            known += count[row + queue]
        if known > 0:
            return lowest, known, occupied
        if lowest < DEEPEST:
            occupied &= ~(1 << lowest)
            lowest = lowest_bit(occupied)
        else:
            lowest += 1


@kernel
def _queue(rank, row, count):
    """Return the queue length of the server of a rank among those of one observation."""
    queue = before = 0
    for step in range(BLOCK - 1):
        before += count[row + step]
        queue += rank >= before
    if queue == BLOCK - 1:
        before += count[row + queue]
        while rank >= before:
            queue += 1
            before += count[row + queue]
    return queue


@kernel
def _run(d, arrival, events, levels, top, occupied, cells, count, low, high, first, owner, slices, moves, rng, sent):
    """Run events until the cells must be laid out anew; return the events left and the observations that are taken."""
    a, b, c, counter = rng
    mixed = levels * levels
    per_arrival, per_departure = 1 / arrival, 1 / (1 - arrival)
    crowded = False
    while events > 0 and not crowded:
        events -= 1
        word, a, b, c, counter = next_word(a, b, c, counter)
        value = unit(word)
        if value >= arrival:
            value = (value - arrival) * per_departure  # again uniform
            here = np.int64(slices[np.int64(value * SLICES) & (SLICES - 1)])
            if here >= mixed:
                here, a, b, c, counter = _resolve(
                    here, value, levels, cells, count, first, owner, slices, a, b, c, counter
                )
            source, target = moves[here, 0], moves[here, 1]
            count[source] -= 1
            count[target] += 1
            crowded = (count[source] < low[source]) | (count[target] > high[target])
            continue
        value *= per_arrival
        for _ in range(d):
            word, a, b, c, counter = next_word(a, b, c, counter)
            here = np.int64(slices[word >> _TO_SLICE])
            if here >= mixed:
                here, a, b, c, counter = _resolve(
                    here, unit(word), levels, cells, count, first, owner, slices, a, b, c, counter
                )
            source, target = moves[here, 2], moves[here, 3]
            count[source] -= 1
            count[target] += 1
            occupied |= 1 << np.int64(moves[here, 4])
            crowded |= (count[source] < low[source]) | (count[target] > high[target])
        lowest, known, occupied = _lowest(occupied, levels, count)
        row = lowest * levels
        queue = _queue(np.int64(value * known), row, count)
        # The job may take the only server of this observation.
        occupied &= ~(np.int64((known == 1) & (lowest < DEEPEST)) << min(lowest, DEEPEST))
        occupied |= 1 << min(lowest + 1, DEEPEST)
        here = row + queue
        after = here + levels + 1
        count[here] -= 1
        count[after] += 1
        sent[here] += 1
        crowded |= (count[here] < low[here]) | (count[after] > high[after])
        if lowest == top:
            crowded = True
    rng[0], rng[1], rng[2], rng[3] = a, b, c, counter
    return events, occupied


@kernel
def advance(d, lam, events, table, rng, sent):
    """Run SQ(d, N) with memory (model: arXiv:1802.06566) for up to `events` uniformised events.

    Parameters
    ----------
    d : int
        Probes per arrival, with replacement.
    lam : float
        Arrival rate per server.
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
    levels = table.shape[0]
    classes = levels * levels
    count = np.zeros(classes + 2, np.int64)
    count[:classes] = table.ravel()
    servers = count.sum()
    low, high = np.full(classes + 2, -_FREE), np.full(classes + 2, _FREE)
    first, owner = np.zeros(classes + 1, np.int64), np.zeros(classes, np.uint32)
    slices, moves = np.zeros(SLICES, np.uint32), np.zeros((classes, 5), np.uint32)
    _list_moves(levels, moves)
    top = occupied = 0
    for observation in range(levels):
        if table[observation].any():
            top = observation
            occupied |= 1 << min(observation, DEEPEST)
    while events > 0 and top + 1 < levels:
        cells = _lay_out(levels, top, servers, d, count, low, high, first, owner, slices)
        events, occupied = _run(
            d, lam / (1 + lam), events, levels, top, occupied, cells, count, low, high, first, owner, slices,
            moves, rng, sent,
        )  # fmt: skip
        if count[(top + 1) * levels : (top + 2) * levels].any():
            top += 1
    table[:] = count[:classes].reshape(levels, levels)
    return events
