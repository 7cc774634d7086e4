"""The lumped chain of SQ(d, N) with memory: counts of servers by observation and queue length, exact at every N.

Time is uniformised at rate N(1+λ): with probability 1/(1+λ) a random server ends a job if it has one, else a job
arrives. Nearly all work is to find the class of a random server, so that is a table lookup: every class is given a row
of cells, some of them spare, a random cell is drawn, and drawn again if it holds no server. The line of cells is cut
into `SLICES`; a slice whose cells all hold servers of one class, and will for a while, needs no further look. An event
moves a class by d + 1 servers at most, so the room that classes have is checked once in many events. When it runs
out, or a class without cells is entered, the cells are laid out anew.

A class is one number, observation·L + queue, so that a departure, a probe and a job sent are each a step of it. Classes
are kept unsigned: it spares numba's test for a negative index at every access.
"""

import numpy as np

from dchoices.kernels.bits import lowest_bit, scaled
from dchoices.kernels.jit import kernel
from dchoices.kernels.sfc64 import next_word, unit

BLOCK = 8  # levels looked at together, without a branch: L is a multiple of it
SLICE_BITS = 11
SLICES = 1 << SLICE_BITS
MOST_SPARE, SPARE_BITS = 512, 9  # spare cells of a class: N/2^9, at most 512, and a share of 2^-8 of its servers
SHARE_BITS = 8
DEEPEST = 62  # observations are marked as occupied in one word; its last bit stands for all from here on

_TO_SLICE = np.uint64(64 - SLICE_BITS)


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
def _lay_out(levels, top, spare, count, low, high, bare, first, owner, slices):
    """Give every class its cells and every slice its class; return the number of cells and of classes that have some.

    A slice that is not safely within one class holds L² plus the place of a class at or before its first cell; so do
    those of a class that a departure leaves for one without cells: only then need departures be watched.
    """
    places = cells = 0
    for observation in range(top + 1):
        for queue in range(observation + 1):
            here = observation * levels + queue
            size = count[here]
            bare[here] = size == 0 and queue < observation  # what a probe finds becomes (i, i): it comes and goes
            if bare[here]:
                continue
            room = spare + (size >> SHARE_BITS)
            trusted = size > 4 * room and (queue == 0 or not bare[here - 1])
            low[places] = size - room if trusted else 0
            high[places] = size + room
            owner[places], first[places] = here, cells
            cells += size + room
            places += 1
    first[places] = cells
    done = before = 0
    for place in range(places):
        begin = -(-first[place] * SLICES // cells)
        end = (first[place] + low[place]) * SLICES // cells
        if end > begin:
            slices[done:begin] = levels * levels + before
            slices[begin:end] = owner[place]
            done, before = end, place
    slices[done:] = levels * levels + before
    return cells, places


@kernel
def _least_room(places, count, low, high, owner):
    """Return how many servers any class may still win, and a trusted one lose, before the cells must be laid anew."""
    room = high[0] - count[owner[0]]
    for place in range(places):
        size = count[owner[place]]
        room = min(room, high[place] - size)
        if low[place] > 0:
            room = min(room, size - low[place])
    return room


@kernel
def _resolve(kind, word, mixed, cells, count, first, owner, slices, a, b, c, counter):
    """Return the class of a random server where the slice does not tell, drawing again until the cell holds one."""
    while kind >= mixed:
        place = kind - mixed
        cell = scaled(word, cells)
        while cell >= first[place + 1]:
            place += 1
        here = owner[place]
        if cell - first[place] < count[here]:
            return here, a, b, c, counter
        word, a, b, c, counter = next_word(a, b, c, counter)
        kind = slices[word >> _TO_SLICE]
    return kind, a, b, c, counter


@kernel
def _choose_deep(value, occupied, levels, count):
    """Return what `_choose` does where the lowest observation is beyond the first block."""
    known = 0
    while known == 0:
        lowest = lowest_bit(occupied)
        known = count[lowest * levels : lowest * levels + lowest + 1].sum()
        if known == 0 and lowest < DEEPEST:
            occupied &= occupied - 1
        while known == 0 and lowest >= DEEPEST:
            lowest += 1
            known = count[lowest * levels : lowest * levels + lowest + 1].sum()
    here = lowest * levels
    rank = np.int64(value * known) - count[here]
    while rank >= 0:
        here += 1
        rank -= count[here]
    if lowest < DEEPEST:
        occupied &= ~(np.int64(known == 1) << lowest)
        occupied |= 2 << lowest
    return np.uint32(here), occupied


@kernel
def _choose(value, occupied, levels, count):
    """Return the class of a random server of the lowest observation, and the marks when a job was sent there.

    `value` in [0, 1) is the random number. A mark may outlive its servers; it is taken back when found so.
    """
    while True:
        lowest = lowest_bit(occupied)
        if lowest >= BLOCK:
            return _choose_deep(value, occupied, levels, count)
        row = lowest * levels
        known = 0
        for queue in range(BLOCK):  # no branch: what is above the observation is 0
            known += count[row + queue]
        if known > 0:
            break
        occupied &= occupied - 1
    rank = np.int64(value * known)
    queue = before = 0
    for step in range(BLOCK - 1):
        before += count[row + step]
        queue += rank >= before
    occupied &= ~(np.int64(known == 1) << lowest)  # the job takes the only server of this observation
    return np.uint32(row + queue), occupied | 2 << lowest


@kernel
def _run(
    d, distinct, lam, events, levels, spare, occupied, cells, places, count, low, high, bare, first, owner, slices,
    moves, seen, rng, sent,
):  # fmt: skip
    """Run events until the cells must be laid out anew; return the events left and the observations that are taken."""
    a, b, c, counter = rng
    mixed = levels * levels
    threshold = np.uint64(lam / (1 + lam) * 2.0**64)
    whole, stretch = np.uint64(lam), np.uint64(lam % 1.0 * 2.0**64)
    per_arrival = (1 + lam) / lam * (1 - 2.0**-50)  # a hair less: a rank must be below the number of ranks
    entered = False
    while events > 0 and not entered:
        room = _least_room(places, count, low, high, owner)
        if 4 * room < spare:
            break
        safe = min(events, room // (d + 1))
        events -= safe
        while safe > 0 and not entered:
            safe -= 1
            word, a, b, c, counter = next_word(a, b, c, counter)
            if word >= threshold:  # a comparison of words is known sooner than one of doubles
                word -= threshold
                word += word * whole + np.uint64(scaled(word, stretch))  # word·(1 + λ): again uniform
                here = slices[word >> _TO_SLICE]
                if here >= mixed:
                    here, a, b, c, counter = _resolve(
                        here, word, mixed, cells, count, first, owner, slices, a, b, c, counter
                    )
                    entered = bare[moves[here, 1]]
                count[moves[here, 0]] -= 1
                count[moves[here, 1]] += 1
                continue
            value = unit(word) * per_arrival  # again uniform
            left = d
            while left > 0:
                word, a, b, c, counter = next_word(a, b, c, counter)
                here = slices[word >> _TO_SLICE]
                if here >= mixed:
                    here, a, b, c, counter = _resolve(
                        here, word, mixed, cells, count, first, owner, slices, a, b, c, counter
                    )
                if distinct:  # those probed for this job are now among (i, i): one of them is drawn again
                    queue = here % levels
                    if seen[queue] > 0 and here == queue * (levels + 1):
                        word, a, b, c, counter = next_word(a, b, c, counter)
                        if unit(word) * count[here] < seen[queue]:
                            continue
                    seen[queue] += 1
                left -= 1
                count[moves[here, 2]] -= 1
                count[moves[here, 3]] += 1
                occupied |= 1 << np.int64(moves[here, 4])
            if distinct:
                seen[:] = 0
            here, occupied = _choose(value, occupied, levels, count)
            after = np.uint32(here + levels + 1)
            count[here] -= 1
            count[after] += 1
            sent[here] += 1
            entered = bare[after]
        events += safe
    rng[0], rng[1], rng[2], rng[3] = a, b, c, counter
    return events, occupied


@kernel
def advance(d, distinct, lam, events, table, rng, sent):
    """Do what `memory.advance` does, at a cost that does not grow with the number of servers."""
    levels = table.shape[0]
    classes = levels * levels
    servers = table.sum()
    count = np.zeros(classes + 2, np.int64)
    count[:classes] = table.ravel()
    spare = 8 * (d + 1) + min(servers >> SPARE_BITS, MOST_SPARE)
    low, high, first = np.zeros(classes, np.int64), np.zeros(classes, np.int64), np.zeros(classes + 1, np.int64)
    seen = np.zeros(levels, np.int64)
    bare = np.ones(classes + 2, np.bool_)
    bare[classes:] = False
    owner, slices, moves = np.zeros(classes, np.uint32), np.zeros(SLICES, np.uint32), np.zeros((classes, 5), np.uint32)
    _list_moves(levels, moves)
    top = occupied = 0
    for observation in range(levels):
        if table[observation].any():
            top = observation
            occupied |= 1 << min(observation, DEEPEST)
    while events > 0 and top + 1 < levels:
        cells, places = _lay_out(levels, top, spare, count, low, high, bare, first, owner, slices)
        events, occupied = _run(
            d, distinct, lam, events, levels, spare, occupied, cells, places, count, low, high, bare, first, owner,
            slices, moves, seen, rng, sent,
        )  # fmt: skip
        if count[(top + 1) * levels : (top + 2) * levels].any():
            top += 1
    table[:] = count[:classes].reshape(levels, levels)
    return events
