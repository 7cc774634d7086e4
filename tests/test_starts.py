"""Initial states by name and as matrices: the same state, text and stream however given."""

import dchoices as dc
import numpy as np
import pytest
from dchoices import registry, starts

MEMORY, MEMORYLESS = registry.get("sq-memory"), registry.get("sq")


@pytest.mark.parametrize("m", range(1, 13))
def test_a_random_start_is_a_distribution_over_all_pairs(m):
    matrix = dc.random_start(m)
    assert matrix.shape == (m + 1, m + 1)
    assert (matrix[np.triu_indices(m + 1)] > 0).all()
    assert not np.tril(matrix, -1).any()
    assert matrix.sum() == matrix[::-1, ::-1].sum() == 1  # exactly, in any order of summation


def test_a_random_start_never_changes():
    """Its entries are pinned: results of the study depend on them."""
    pinned = [[98693991, 182209899, 39598534], [0, 323850609, 229915198], [0, 0, 199473593]]
    assert (dc.random_start(2) * 2**30).tolist() == pinned
    again = dc.random_start(3)
    again[0, 0] = 0  # a matrix of one's own, not the one that the name stands for
    assert dc.random_start(3)[0, 0] > 0


def test_random_starts_are_uniform_among_distributions():
    """Then n fractions have mean 1/n and variance (n - 1)/(n²(n + 1)): over the starts, each within its error."""
    for moment, expected in ((1, lambda n: 1 / n), (2, lambda n: 2 / (n * (n + 1)))):
        found = []
        for m in range(1, 13):
            fractions = dc.random_start(m)[np.triu_indices(m + 1)]
            found.append((fractions**moment).mean() / expected(fractions.size))
        assert np.mean(found) == pytest.approx(1, abs=1e-12 if moment == 1 else 0.2)


@pytest.mark.parametrize(
    ("name", "matrix"),
    [
        ("empty", [[1]]),
        ("overloaded-3", dc.overloaded(3)),
        ("stale-12", dc.stale(12)),
        ("random-1", dc.random_start(1)),
        ("random-3", dc.random_start(3)),
        ("random-12", dc.random_start(12)),
    ],
)
def test_a_start_is_the_same_however_given(name, matrix):
    forms = [name, np.asarray(matrix), np.asarray(matrix).tolist(), np.pad(np.asarray(matrix, float), (0, 2))]
    assert [starts.label(form) for form in forms] == [name] * 4
    runs = [dc.simulate("sq-memory", 50, 2, 0.9, [0.0, 2.0], replicates=2, start=form) for form in forms]
    for run in runs:
        assert run.attrs["start"] == name
        assert (run.occupancy.values == runs[0].occupancy.values).all()


def test_a_start_that_is_nearly_random_has_another_text():
    matrix = dc.random_start(3)
    matrix[0, 0], matrix[0, 1] = matrix[0, 0] + 2**-30, matrix[0, 1] - 2**-30
    text = starts.label(matrix)
    assert text.startswith(f"0,0:{matrix[0, 0].hex()};0,1:")
    assert starts.label(np.diag([0.5, 0.5])) == "0,0:0x1.0000000000000p-1;1,1:0x1.0000000000000p-1"


def test_without_memory_a_start_is_its_queue_lengths():
    assert starts.fractions("random-3", MEMORY, 0.5, 2).tolist() == dc.random_start(3).tolist()
    assert starts.fractions("random-3", MEMORYLESS, 0.5, 2) == pytest.approx(dc.random_start(3).sum(axis=1))


@pytest.mark.parametrize("m", [0, 13, 2.0, "3", True])
def test_bad_numbers_are_named(m):
    with pytest.raises(ValueError, match=r"m = .*: must be an integer in \[1, 12\]"):
        dc.random_start(m)
