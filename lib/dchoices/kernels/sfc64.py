"""The SFC64 generator, bit for bit numpy's, for use inside a kernel.

The state is four unsigned words that a kernel keeps in local variables: passing a numpy Generator costs 6 ns a draw,
this about 1.6 ns. Seeding stays with numpy: `initial_state` reads the words of a seeded ``np.random.SFC64``.
"""

import numpy as np

from dchoices.kernels.jit import kernel

_ONE, _THREE, _ELEVEN = np.uint64(1), np.uint64(3), np.uint64(11)
_ROTATE, _ROTATE_BACK = np.uint64(24), np.uint64(40)
_TO_UNIT = 2.0**-53


def initial_state(seed_sequence):
    """Return the uint64[4] state of numpy's SFC64 seeded by `seed_sequence`."""
    return np.random.SFC64(seed_sequence).state["state"]["state"].astype(np.uint64)


@kernel
def next_word(a, b, c, counter):
    """Return 64 random bits and the next state (Doty-Humphrey's SFC64)."""
    word = a + b + counter
    return (
        word,
        b ^ (b >> _ELEVEN),
        c + (c << _THREE),
        ((c << _ROTATE) | (c >> _ROTATE_BACK)) + word,
        counter + _ONE,
    )


@kernel
def unit(word):
    """Map 64 random bits to a double in [0, 1), as numpy does."""
    return np.float64(word >> _ELEVEN) * _TO_UNIT


@kernel
def fill_words(state, out):
    """Fill `out` (uint64) with successive words and leave `state` (uint64[4]) behind the last."""
    a, b, c, counter = state
    for index in range(out.size):
        out[index], a, b, c, counter = next_word(a, b, c, counter)
    state[0], state[1], state[2], state[3] = a, b, c, counter


@kernel
def uniform(state):
    """Return a double in [0, 1) and leave `state` (uint64[4]) behind it: for code outside the hot loops."""
    word, state[0], state[1], state[2], state[3] = next_word(state[0], state[1], state[2], state[3])
    return unit(word)
