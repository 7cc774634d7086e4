"""One step of the fluid integration against dense linear algebra, and the drift against the model's three steps."""

import numpy as np
import pytest
from dchoices.kernels import drift, hybrid

CASES = [(0, 1, 0.3, 4), (0, 3, 0.6, 6), (1, 2, 0.7, 5), (2, 1, 0.9, 6), (3, 2, 0.97, 7)]  # k, d, λ, levels


def state(k, levels, seed=0, spare=0.1):
    """A state in mode k, where the queues below k are so few that S_k < 1."""
    rng = np.random.default_rng(seed)
    x = np.triu(rng.dirichlet(np.full(levels * levels, 0.5)).reshape(levels, levels))
    x[:, :k] = 0.0
    x[:k] *= spare
    x[:, -1] = 0.0  # an empty last level: dispatch needs one more than there are
    return x / x.sum()


def slope(x, k, d, lam):
    out, share = np.empty_like(x), np.empty(len(x))
    drift.memory_drift(x, k, d, lam, False, share, out)
    return out


def written_out(x, k, d, lam):
    """The drift from the three steps of the model, one transition after the other, with R_j of the general rule."""
    out, p = np.zeros_like(x), x.sum(axis=1)
    right, sent = 1.0, 0.0
    for j in range(len(x) - 1):
        sent = right if x[:, j].any() else min(sent + d * p[j], right)
        right -= sent
        for i in range(j + 1):
            # A class that is empty passes on, from (j,j), what it gets.
            share = x[i, j] / x[:, j].sum() if x[:, j].any() else 1.0 * (i == j)
            out[i, j] -= lam * sent * share
            out[i + 1, j + 1] += lam * sent * share
    for i, j in np.argwhere(x):
        out[i, i] += lam * d * x[i, j]
        out[i, j] -= lam * d * x[i, j]
        if i:
            out[i - 1, j] += x[i, j]
            out[i, j] -= x[i, j]
    return out


@pytest.mark.parametrize(("k", "d", "lam", "levels"), CASES)
def test_drift_is_that_of_the_model(k, d, lam, levels):
    for seed in range(5):
        x = state(k, levels, seed, spare=0.05 / d)
        assert d * drift.waiting_jobs(x, k) < 1
        assert slope(x, k, d, lam) == pytest.approx(written_out(x, k, d, lam), abs=1e-15)
        assert slope(x, k, d, lam).sum() == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize(("k", "d", "lam", "levels"), CASES)
@pytest.mark.parametrize("h", [1e-3, 0.3, 20.0])
def test_euler_step_solves_the_dense_system(k, d, lam, levels, h):
    x = state(k, levels)
    pairs = [(i, j) for j in range(k, levels) for i in range(j + 1)]
    jacobian = np.empty((len(pairs), len(pairs)))
    for column, (i, j) in enumerate(
        pairs
    ):  # the drift is of degree 2 over 1: a central difference of 1e-6 is good to 1e-9
        up, down = x.copy(), x.copy()
        up[i, j] += 1e-6
        down[i, j] -= 1e-6
        difference = (slope(up, k, d, lam) - slope(down, k, d, lam)) / 2e-6
        jacobian[:, column] = [difference[pair] for pair in pairs]
    flat = np.array([slope(x, k, d, lam)[pair] for pair in pairs])
    expected = np.linalg.solve(np.eye(len(pairs)) / h - jacobian, flat)
    increment, arrays = np.empty_like(x), np.zeros((7, *x.shape))
    hybrid.euler_steps(x, k, d, lam, False, h, 1, arrays, increment)
    assert [increment[pair] for pair in pairs] == pytest.approx(expected, abs=1e-6)
    assert np.tril(increment, -1).any() == 0
    assert increment.sum() == pytest.approx(0, abs=1e-13 * (1 + h))


def test_extrapolation_is_of_its_order():
    """Halving the step divides the error over a given time by 2^ORDER."""
    x = state(1, 5)
    exact = advance(x, 0.05, 64)
    once, twice = (np.abs(advance(x, 0.05, steps) - exact).max() for steps in (1, 2))
    assert np.log2(once / twice) == pytest.approx(hybrid.ORDER, abs=1)


def advance(x, t, steps):
    arrays, table = np.zeros((7, *x.shape)), np.zeros((hybrid.ORDER, *x.shape))
    for _ in range(steps):
        after = np.zeros_like(x)
        hybrid.extrapolated_step(x, 1, 2, 0.7, False, t / steps, arrays, table, after)
        x = after
    return x


def test_a_class_that_empties_and_fills_within_a_step_is_seen():
    """The cubic through 1, -9 and 1, 9 over a step of 1 goes to -1.25 in the middle."""
    assert hybrid.dips(1.0, -9.0, 1.0, 9.0, 1.0)
    assert not hybrid.dips(1.0, -3.0, 1.0, 3.0, 1.0)
    assert not hybrid.dips(1.0, -9.0, 1.0, -9.0, 1.0)
    assert not hybrid.dips(1.0, 9.0, 1.0, 9.0, 1.0)


def test_no_progress_is_reported():
    x = state(1, 5)
    states = np.empty((1, *x.shape))
    end, _, reached, steps = hybrid.integrate_mode(x, 1, 2, 0.7, 0.0, np.array([1.0]), 1e-30, states)
    assert end == hybrid.STALLED
    assert reached == 0
    assert steps < hybrid.MAX_STEPS
