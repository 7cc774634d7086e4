"""Initial states: matrices X[i, j], the fraction of servers with i jobs and observation j >= i."""

from __future__ import annotations

import functools
import re
from typing import Any

import numpy as np

from dchoices import validation
from dchoices.registry import Policy
from dchoices.wording import show

SUM_TOLERANCE = 1e-9  # a start is refused when its fractions miss 1 by more; rounding in user code stays below
MAX_RANDOM = 12  # the largest m of a random start, as of the others that are given by a name
FRACTION_BITS = 30  # a random start is made of multiples of 2^-30, whose sums are exact in doubles


def overloaded(m: int) -> np.ndarray:
    """Return the start where every server has m jobs and is remembered so: X[m, m] = 1.

    Raises
    ------
    ValueError
        If m is no integer in [0, 999].
    """
    m = _jobs(m)
    return _all_at(m, m)


def stale(m: int) -> np.ndarray:
    """Return the start where every server is idle but remembered with m jobs: X[0, m] = 1.

    Raises
    ------
    ValueError
        If m is no integer in [0, 999].
    """
    return _all_at(0, _jobs(m))


def random_start(m: int) -> np.ndarray:
    """Return a start over all pairs 0 <= i <= j <= m, drawn once for each m: the start "random-m".

    The fractions of the n pairs are the n gaps that n - 1 uniform points leave in [0, 1], so uniform among the
    distributions (Dirichlet with unit weights). The points are raw outputs of numpy's PCG64 seeded by m, cut to
    `FRACTION_BITS`: the matrix sums to 1 exactly, and is the same to the last bit on every machine and with every
    version of numpy.

    Returns
    -------
    float64[m + 1, m + 1]
        X[i, j], positive for i <= j and else 0.

    Raises
    ------
    ValueError
        If m is no integer in [1, 12].
    """
    size = validation.integer("m", m, 1, MAX_RANDOM) + 1
    pairs = np.triu_indices(size)
    points = np.random.PCG64(size - 1).random_raw(pairs[0].size - 1) >> np.uint64(64 - FRACTION_BITS)
    matrix = np.zeros((size, size))
    matrix[pairs] = np.diff(np.sort(points.astype(np.int64)), prepend=0, append=2**FRACTION_BITS) / 2**FRACTION_BITS
    return matrix


def mixed(shares: Any, observation: int | None = None) -> np.ndarray:
    """Return the start with the fraction `shares`[i] of the servers at i jobs.

    Parameters
    ----------
    shares : float64[I]
        Fractions p_0, p_1, … that sum to 1.
    observation : int, optional
        What every server is remembered with, at least the longest queue; by default its own queue length.

    Raises
    ------
    ValueError
        If the shares are no distribution, or the observation is below a queue.
    """
    allowed = "a list of fractions p_0, p_1, …"
    column = validation.array("shares", shares, allowed, validation.MAX_LEVELS)
    if column.ndim != 1 or column.size == 0:
        raise ValueError(f"shares = {show(shares)}: must be {allowed}")
    if observation is None:
        return _checked(np.diag(column), "shares")
    levels = validation.integer("observation", observation, column.size - 1, validation.MAX_LEVELS - 1) + 1
    return _checked(np.pad(column[:, None], ((0, 0), (levels - 1, 0))), "shares")


def _jobs(m: Any) -> int:
    return validation.integer("m", m, 0, validation.MAX_LEVELS - 1)


def _all_at(i: int, j: int) -> np.ndarray:
    matrix = np.zeros((j + 1, j + 1))
    matrix[i, j] = 1.0
    return matrix


def fractions(start: Any, policy: Policy, lam: float, probes: int) -> np.ndarray:
    """Return a start as fractions: X[i, j] for a policy with memory, p[i] for one without.

    Parameters
    ----------
    start : str or array_like
        "empty"; "fixed-point", the fluid fixed point of `policy` at λ with so many probes; "overloaded-m", "stale-m" or
        "random-m" with an integer m, as `overloaded`, `stale` and `random_start`; or a matrix X[i, j].

    Raises
    ------
    ValueError
        If it is no known name and no distribution over pairs i <= j.
    """
    if isinstance(start, str) and start == "fixed-point":
        return policy.fixed_point(lam, probes)
    matrix = _named(start) if isinstance(start, str) else _checked(start)
    return matrix if policy.memory else matrix.sum(axis=1)


def _named(name: str) -> np.ndarray:
    if name == "empty":
        return overloaded(0)
    match = re.fullmatch(r"(overloaded|stale|random)-([0-9]|1[0-2])", name)
    if not match or name == "random-0":
        raise ValueError(
            f"start = {show(name)}: must be empty, fixed-point, overloaded-m, stale-m or random-m with m up to 12 "
            "(random-m from 1)"
        )
    return {"overloaded": overloaded, "stale": stale, "random": random_start}[match[1]](int(match[2]))


def _checked(start: Any, name: str = "start") -> np.ndarray:
    """Return a square matrix X[i, j] scaled to sum exactly to 1.

    Raises
    ------
    ValueError
        If it is no distribution over pairs i <= j.
    """
    given = validation.array(name, start, "a name or a matrix X[i, j] of fractions", validation.MAX_LEVELS**2)
    if given.ndim != 2 or given.size == 0 or max(given.shape) > validation.MAX_LEVELS:
        raise ValueError(
            f"{name} with shape {given.shape}: must be a matrix X[i, j] of fractions, i, j < {validation.MAX_LEVELS}"
        )
    square = np.zeros((max(given.shape),) * 2)
    square[: given.shape[0], : given.shape[1]] = given
    _refuse(name, "be finite and >= 0", ~np.isfinite(square) | (square < 0), square)
    _refuse(name, "be at most 1", square > 1 + SUM_TOLERANCE, square)
    _refuse(name, "be 0 for i > j, as an observation is never below the queue", np.tril(square, -1) != 0, square)
    if abs(square.sum() - 1) > SUM_TOLERANCE:
        raise ValueError(f"{name}: fractions sum to {square.sum():.15g}, must sum to 1")
    return square / square.sum()


def _refuse(name: str, rule: str, wrong: np.ndarray, matrix: np.ndarray) -> None:
    """Raise on the first entry that is wrong."""
    for i, j in np.argwhere(wrong):
        raise ValueError(f"{name}: X[{i}, {j}] = {matrix[i, j]:g}: must {rule}")


def levels(start: Any) -> int:
    """Return how many queue lengths and observations a start has, but for the fixed point, where it is 1."""
    if isinstance(start, str):
        return 1 if start == "fixed-point" else len(_named(start))
    return len(_checked(start))


def counts(fractions: np.ndarray, N: int) -> np.ndarray:
    """Round fractions to int64 counts that sum to N.

    Sums over the first states are rounded, not the states one by one: a long tail of states with less than one server
    each keeps its servers. Every count, and every sum over a row, is less than 1 from its exact value.
    """
    below = np.floor(fractions.ravel().cumsum() * N + 0.5).astype(np.int64)
    below[np.flatnonzero(fractions)[-1] :] = N  # whatever the sum of the fractions was rounded to
    np.minimum(below, N, out=below)
    below[1:] -= below[:-1]
    return below.reshape(fractions.shape)


def label(start: Any) -> str:
    """Return a stable text for a start: its name where it has one, or the exact entries of its matrix.

    It keys the random stream, so a start has the same text however it is given.
    """
    if isinstance(start, str):
        return _label_of_name(start)
    return _label_of_matrix(_checked(start))


@functools.cache
def _label_of_name(name: str) -> str:
    return name if name == "fixed-point" else _label_of_matrix(_named(name))


def _label_of_matrix(matrix: np.ndarray) -> str:
    entries = [(int(i), int(j), float(matrix[i, j])) for i, j in np.argwhere(matrix)]
    if len(entries) > 1:
        m = max(j for _, j, _ in entries)
        if m <= MAX_RANDOM and np.array_equal(matrix[: m + 1, : m + 1], random_start(m)):
            return f"random-{m}"
        return ";".join(f"{i},{j}:{value.hex()}" for i, j, value in entries)
    i, j, _ = entries[0]
    if j == 0:
        return "empty"
    return f"overloaded-{j}" if i == j else f"stale-{j}" if i == 0 else f"{i},{j}"
