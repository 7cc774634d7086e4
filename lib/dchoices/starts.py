"""Initial states: matrices X[i, j], the fraction of servers with i jobs and observation j >= i."""

from __future__ import annotations

import functools
import re
from typing import Any

import numpy as np

from dchoices import validation
from dchoices.registry import Policy

SUM_TOLERANCE = 1e-9  # a start is refused when its fractions miss 1 by more; rounding in user code stays below


def overloaded(m: int) -> np.ndarray:
    """Return the start where every server has m jobs and is remembered so: X[m, m] = 1.

    Raises
    ------
    ValueError
        If m is no integer >= 0.
    """
    return _all_at(validation.integer("m", m, 0), m)


def stale(m: int) -> np.ndarray:
    """Return the start where every server is idle but remembered with m jobs: X[0, m] = 1.

    Raises
    ------
    ValueError
        If m is no integer >= 0.
    """
    return _all_at(0, validation.integer("m", m, 0))


def _all_at(i: int, j: int) -> np.ndarray:
    matrix = np.zeros((j + 1, j + 1))
    matrix[i, j] = 1.0
    return matrix


def fractions(start: Any, policy: Policy, lam: float, probes: int) -> np.ndarray:
    """Return a start as fractions: X[i, j] for a policy with memory, p[i] for one without.

    Parameters
    ----------
    start : str or array_like
        "empty"; "fixed-point", the fluid fixed point of `policy` at λ with so many probes; "overloaded-m" or "stale-m"
        with an integer m, as `overloaded` and `stale`; or a matrix X[i, j].

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
    if not (match := re.fullmatch(r"(overloaded|stale)-([0-9]|1[0-2])", name)):
        raise ValueError(f"start = {name!r}: must be empty, fixed-point, overloaded-m or stale-m with m up to 12")
    return {"overloaded": overloaded, "stale": stale}[match[1]](int(match[2]))


def _checked(start: Any) -> np.ndarray:
    """Return a square matrix X[i, j] scaled to sum exactly to 1.

    Raises
    ------
    ValueError
        If it is no distribution over pairs i <= j.
    """
    try:
        given = np.asarray(start)
    except ValueError:  # ragged
        given = np.array("ragged")
    if given.dtype.kind not in "iuf":
        raise ValueError("start: must be a name or a matrix X[i, j] of fractions")
    if given.ndim != 2 or given.size == 0:
        raise ValueError(f"start with shape {given.shape}: must be a matrix X[i, j] of fractions")
    square = np.zeros((max(given.shape),) * 2)
    square[: given.shape[0], : given.shape[1]] = given
    if not np.isfinite(square).all() or (square < 0).any():
        raise ValueError("start: every fraction must be finite and >= 0")
    if np.tril(square, -1).any():
        raise ValueError("start: X[i, j] must be 0 for i > j, an observation is never below the queue")
    if abs(square.sum() - 1) > SUM_TOLERANCE:
        raise ValueError(f"start: fractions sum to {square.sum()!r}, must sum to 1")
    return square / square.sum()


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
        return ";".join(f"{i},{j}:{value.hex()}" for i, j, value in entries)
    i, j, _ = entries[0]
    if j == 0:
        return "empty"
    return f"overloaded-{j}" if i == j else f"stale-{j}" if i == 0 else f"{i},{j}"
