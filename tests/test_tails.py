"""The fit of tail frequencies: exact on exact data, and its errors as large as it says."""

import numpy as np
import pytest
from dchoices.tails import fit_tails

N = np.array([200.0, 300.0, 450.0, 700.0])
EPSILON = np.array([0.08, 0.1, 0.12])
RATE, POWER = 0.01 * (EPSILON / 0.08) ** 2, 0.5
CHANCE = np.exp(1.9 - np.outer(RATE, N) - POWER * np.log(N))
MANY = 10**13  # replicates that leave no noise


def counts(chance, replicates):
    return np.rint(chance * replicates).astype(np.int64)


def test_it_is_exact_on_exact_frequencies():
    fit = fit_tails(counts(CHANCE, MANY), MANY, N)
    assert fit.rate == pytest.approx(RATE, rel=1e-6)
    assert fit.power == pytest.approx(POWER, abs=1e-4)
    assert fit.frequency(N) == pytest.approx(CHANCE, rel=1e-6)
    assert fit.N.tolist() == pytest.approx([np.exp(np.log(N).mean())] * 3)
    assert fit.local_exponent()[0] == pytest.approx(RATE * fit.N + POWER, rel=1e-4)
    assert fit.exponential_part()[0] == pytest.approx(RATE * fit.N / (RATE * fit.N + POWER), rel=1e-4)
    assert fit.rate_exponent(EPSILON)[0] == pytest.approx(2, abs=1e-4)


def test_each_of_the_two_can_be_fitted_alone():
    exponential = fit_tails(counts(CHANCE * np.sqrt(N), MANY), MANY, N, power=False)
    assert (exponential.rate, exponential.power) == (pytest.approx(RATE, rel=1e-6), 0)
    falling = np.outer(EPSILON, N**-1.5) * 3000
    power = fit_tails(counts(falling, MANY), MANY, N, exponential=False)
    assert (power.rate.tolist(), power.power) == ([0, 0, 0], pytest.approx(1.5))
    both = fit_tails(counts(falling, MANY), MANY, N)
    assert both.exponential_part()[0] == pytest.approx(np.zeros(3), abs=1e-4)


def test_frequencies_that_are_no_tail_play_no_part():
    high = np.hstack([np.full((3, 1), 0.7), CHANCE])
    fit = fit_tails(counts(high, MANY), MANY, np.insert(N, 0, 100.0))
    assert fit.power == pytest.approx(POWER, abs=1e-4)
    assert fit.N.tolist() == pytest.approx([np.exp(np.log(N).mean())] * 3)


def test_errors_are_as_large_as_it_says():
    """Over many studies of replicates that are counted for every ε; independent counts would be told apart."""
    replicates, studies = 20_000, 800
    rate = 0.4 * RATE
    chance = np.exp(1.9 - np.outer(rate, N) - POWER * np.log(N))
    rng = np.random.default_rng(1)
    found = []
    for _ in range(studies):
        exceeded = [rng.binomial(replicates, chance[0])]
        for now, before in zip(chance[1:], chance, strict=False):
            exceeded.append(rng.binomial(exceeded[-1], now / before))  # of those beyond one ε, some are beyond the next
        both, alone = (fit_tails(np.array(exceeded), replicates, N, power=power) for power in (True, False))
        parts, local = both.exponential_part(), both.local_exponent()
        found.append(np.column_stack([local, parts, alone.rate_exponent(EPSILON)]))
    values, errors = np.moveaxis(np.array(found), 1, 0)
    spread = values.std(axis=0, ddof=1) / np.sqrt((errors**2).mean(axis=0))
    assert spread == pytest.approx(np.ones(7), abs=4.4 / np.sqrt(2 * studies))
    middle = np.exp(np.log(N).mean())
    assert values[:, :3].mean(axis=0) == pytest.approx(rate * middle + POWER, rel=0.02)


@pytest.mark.parametrize(
    "exceeded",
    [
        counts(CHANCE[:, :2], 10_000),
        counts(CHANCE, 100),  # the rarest is seen at two numbers of servers
        counts(CHANCE * 0, 10_000),
        np.full((3, 4), 9000),
    ],
    ids=["two sizes", "few replicates", "nothing", "no tail"],
)
def test_too_few_frequencies_give_no_fit(exceeded):
    assert fit_tails(exceeded, 10_000 if exceeded.max() != 24 else 100, N[: exceeded.shape[1]]) is None
