"""Comparisons of simulations with what they must meet, shared by the tests."""

import functools

import dchoices as dc
import numpy as np
from dchoices import registry, starts
from dchoices.lumped import LumpedChain
from scipy import special

# One chance in about 10^5 per comparison that a right simulation is refused: 4.4 standard deviations of a normal.
SIGMAS = 4.4
LEVEL = 2 * special.ndtr(-SIGMAS)


class TooNoisyError(Exception):
    """A comparison that could not fail: no result of a simulation, so an expected failure does not cover it."""


def _check_width(allowed, widest, what):
    if not allowed < widest:
        raise TooNoisyError(f"{what}: {allowed:.2g} is allowed")


def sigmas(replicates):
    """Return how many standard errors over `replicates` a Student variable exceeds as rarely as a normal 4.4."""
    return special.stdtrit(replicates - 1, 1 - LEVEL / 2)


def assert_mean(samples, expected, widest, what):
    """Assert that the mean of independent samples meets `expected`, and that more than `widest` would be noticed."""
    allowed = sigmas(len(samples)) * np.std(samples, ddof=1) / np.sqrt(len(samples))
    _check_width(allowed, widest, what)
    assert abs(np.mean(samples) - expected) <= allowed + 1e-12, f"{what}: {np.mean(samples)} is not {expected}"


def assert_same_mean(first, second, widest, what):
    """Assert that two sets of independent samples have one mean, and that more than `widest` would be noticed."""
    error = np.hypot(*(np.std(samples, ddof=1) / np.sqrt(len(samples)) for samples in (first, second)))
    allowed = sigmas(min(len(first), len(second))) * error
    _check_width(allowed, widest, what)
    assert abs(np.mean(first) - np.mean(second)) <= allowed, f"{what}: {np.mean(first)} and {np.mean(second)}"


def assert_estimate(dataset, name, expected, widest, index=()):
    """Assert that an estimate of `stationary` meets `expected` by its own interval, no wider than `widest`."""
    half_width = float(dataset[f"{name}_ci95"].values[index])
    replicates = dataset.attrs["replicates"]
    allowed = half_width * sigmas(replicates) / special.stdtrit(replicates - 1, 0.975)
    value = float(dataset[name].values[index])
    _check_width(allowed, widest, f"{name}{list(index)}")
    assert abs(value - expected) <= allowed + 1e-12, f"{name}{list(index)}: {value} is not {expected}"


def assert_count(count, trials, probability, widest=0.05):
    """Assert that `count` of `trials` fits a binomial law of this probability, told apart from `widest` beside it."""
    allowed = SIGMAS * np.sqrt(probability * (1 - probability) / trials)
    _check_width(allowed, widest, f"{trials} trials")
    assert abs(count / trials - probability) <= allowed, f"{count} of {trials}: not {probability}"


@functools.cache
def exact(policy, N, d, lam, buffer):
    """Return the solved chain, once."""
    return dc.exact_stationary(N, d, lam, buffer, policy)


def chain(policy, N, d, lam, seed=0, start="fixed-point"):
    """Return one lumped chain."""
    known = registry.get(policy)
    fractions = starts.fractions(start, known, lam, known.probes(N, d))
    return LumpedChain(known, N, d, lam, fractions, np.random.SeedSequence(seed))


def shares(counts, levels):
    """Return the first `levels` shares of some counts, padded with zeros."""
    head = np.zeros(levels)
    head[: min(levels, len(counts))] = counts[:levels]
    return head / counts.sum()


def long_runs(policy, N, d, lam, horizon, replicates=24, warm_up=200.0, levels=4):
    """Return the shares of jobs by queue and by observation, float64[R, levels] each, of long stationary runs."""
    rows = []
    for replicate in range(replicates):
        one = chain(policy, N, d, lam, seed=replicate)
        one.advance(warm_up)
        one.reset_counters()
        one.advance(horizon)
        rows.append((shares(one.sent_by_queue, levels), shares(one.sent_by_observation, levels)))
    return tuple(np.array(column) for column in zip(*rows, strict=True))
