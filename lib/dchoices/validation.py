"""Checks of arguments: one clear line that names the argument, the value and what is allowed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

Value = TypeVar("Value", int, float, str)

MAX_PROBES = 10**4  # the cost of an arrival grows with d
MAX_SERVERS = 10**10  # ranks stay far below 2**53
MAX_EVENTS = 10**14  # a month of one core; counts of events stay far below 2**63


def integer(name: str, value: Any, low: int, high: int | None = None) -> int:
    """Return `value` as an int in [low, high].

    Raises
    ------
    ValueError
        If it is no integer (booleans and strings are none) or out of range.
    """
    allowed = f"an integer >= {low}" if high is None else f"an integer in [{low}, {high}]"
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise ValueError(f"{name} = {value!r}: must be {allowed}")
    if value < low or (high is not None and value > high):
        raise ValueError(f"{name} = {value}: must be {allowed}")
    return int(value)


def is_real(value: Any) -> bool:
    """Return whether `value` is a real number; booleans, which Python counts as numbers, are none."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def positive(name: str, value: Any, zero: bool = False) -> float:
    """Return `value` as a finite float > 0 (>= 0 with `zero`).

    Raises
    ------
    ValueError
        If it is no such number.
    """
    allowed = "a finite number " + (">= 0" if zero else "> 0")
    if not is_real(value) or not math.isfinite(value):
        raise ValueError(f"{name} = {value!r}: must be {allowed}")
    if value < 0 or (value == 0 and not zero):
        raise ValueError(f"{name} = {value}: must be {allowed}")
    return float(value)


def observed_until(t_end: Any, warm_up: Any) -> tuple[float, float]:
    """Return the end of a run that is observed from `warm_up` on, and the warm-up.

    Raises
    ------
    ValueError
        If they are no times with 0 <= warm_up < t_end.
    """
    t_end, warm_up = positive("t_end", t_end), positive("warm_up", warm_up, zero=True)
    if warm_up >= t_end:
        raise ValueError(f"warm_up = {warm_up:g}: must be less than t_end = {t_end:g}")
    return t_end, warm_up


def load(value: Any, name: str = "lam") -> float:
    """Return the load λ as a float in (0, 1).

    Raises
    ------
    ValueError
        If it is no number in the open interval (0, 1).
    """
    return fraction(value, name)


def fraction(value: Any, name: str) -> float:
    """Return a number in (0, 1) as a float.

    Raises
    ------
    ValueError
        If it is no number in the open interval (0, 1).
    """
    if not is_real(value) or not 0 < value < 1:
        raise ValueError(f"{name} = {value!r}: must be a number greater than 0 and less than 1")
    return float(value)


def probes(value: Any, name: str = "d") -> int:
    """Return the number of probes d, an integer in [1, 10^4].

    Raises
    ------
    ValueError
        If it is no such integer.
    """
    return integer(name, value, 1, MAX_PROBES)


def servers(value: Any, name: str = "N") -> int:
    """Return the number of servers N, an integer in [1, 10^10].

    Raises
    ------
    ValueError
        If it is no such integer.
    """
    return integer(name, value, 1, MAX_SERVERS)


def events(name: str, value: Any, expected: float) -> None:
    """Refuse a simulation that would never end.

    Raises
    ------
    ValueError
        If more than `MAX_EVENTS` uniformised events are expected.
    """
    if not expected <= MAX_EVENTS:
        raise ValueError(
            f"{name} = {value}: about {expected:.2g} events are to be simulated, must be at most {MAX_EVENTS:.0e}"
        )


def several(name: str, values: Any, check: Callable[..., Value]) -> list[Value]:
    """Return a scalar or list as a non-empty list of distinct, checked values.

    Raises
    ------
    ValueError
        If the list is empty, holds a value twice, or holds a value that `check` refuses.
    """
    if isinstance(values, np.ndarray):
        values = values.tolist()
    items = list(values) if isinstance(values, Iterable) and not isinstance(values, str | bytes) else [values]
    if not items:
        raise ValueError(f"{name} = []: must hold at least one value")
    checked = [check(item, name) for item in items]
    if len(set(checked)) < len(checked):
        raise ValueError(f"{name} = {checked}: must not hold a value twice")
    return checked


def time_grid(value: Any, name: str = "t") -> np.ndarray:
    """Return the time grid as float64[T]: finite, >= 0, strictly increasing, not empty.

    Raises
    ------
    ValueError
        If it is not.
    """
    given = np.asarray(value)
    if given.dtype.kind not in "iuf":
        raise ValueError(f"{name} = {value!r}: must be numbers")
    grid = np.atleast_1d(given.astype(np.float64))
    if grid.ndim != 1 or grid.size == 0:
        raise ValueError(f"{name} with shape {grid.shape}: must be a list of at least one time")
    if not np.isfinite(grid).all() or grid[0] < 0 or (np.diff(grid) <= 0).any():
        raise ValueError(f"{name}: times must be finite, >= 0 and strictly increasing")
    return grid


def choice(name: str, value: Any, allowed: Iterable[str]) -> str:
    """Return `value` if it is one of `allowed`.

    Raises
    ------
    ValueError
        If it is not.
    """
    if value not in (options := list(allowed)):
        raise ValueError(f"{name} = {value!r}: must be one of {', '.join(options)}")
    return str(value)
