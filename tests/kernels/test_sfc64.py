"""The in-kernel generator is numpy's, bit for bit."""

import numpy as np
import pytest
from dchoices.kernels import sfc64


@pytest.mark.parametrize("seed", [0, 1, 2**31, 2**64 - 1, 2**127 + 3])
def test_words_and_doubles_equal_numpys(seed):
    sequence = np.random.SeedSequence(seed)
    state, ours = sfc64.initial_state(sequence), np.empty(10_000, np.uint64)
    sfc64.fill_words(state, ours)
    theirs = np.random.SFC64(np.random.SeedSequence(seed))
    assert (ours == theirs.random_raw(ours.size)).all()
    assert (state == theirs.state["state"]["state"]).all()
    doubles = np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed))).random(ours.size)
    assert ([sfc64.unit(word) for word in ours[:1000]] == doubles[:1000]).all()


def test_state_carries_over_between_calls():
    sequence = np.random.SeedSequence(7)
    whole, parts = np.empty(100, np.uint64), np.empty(100, np.uint64)
    sfc64.fill_words(sfc64.initial_state(sequence), whole)
    state = sfc64.initial_state(sequence)
    sfc64.fill_words(state, parts[:37])
    sfc64.fill_words(state, parts[37:])
    assert (whole == parts).all()
