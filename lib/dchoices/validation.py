"""Checks of arguments: one clear line that names the argument, the value and what is allowed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

from dchoices.capacity import CALL, MAX_EVENTS
from dchoices.wording import show

Value = TypeVar("Value", int, float, str)

MAX_PROBES = 10**4  # the cost of an arrival grows with d
MAX_SERVERS = 10**10  # ranks stay far below 2**53
MAX_REPLICATES = 10**9
MAX_SEED = 2**63 - 1  # what a dataset's attribute holds
MAX_VALUES = 10**6  # of a list, such as a grid of times
MAX_NUMBERS = 10**8  # that a call may hold at once: 0.8 GB
MAX_POINTS = 10**7  # that are solved one by one, of some ten microseconds each: minutes
PATH = 100  # of them are a fixed point with its dataset, or a fluid path
MAX_LEVELS = 1000  # queue lengths and observations of a start; the state has their square
# Closer to 1 the next double is a visible part of 1-λ away, and what is of its order is lost to rounding; closer to 0
# there is nothing to see.
LOADS = (1e-9, 1 - 1e-12)


def integer(name: str, value: Any, low: int, high: int | None = None) -> int:
    """Return `value` as an int in [low, high].

    Raises
    ------
    ValueError
        If it is no integer (booleans and strings are none) or out of range.
    """
    allowed = f"an integer >= {low}" if high is None else f"an integer in [{low}, {high}]"
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < low or (high is not None and value > high):
        raise ValueError(f"{name} = {show(value)}: must be {allowed}")
    return int(value)


def real(value: Any) -> float:
    """Return a real number as a float, and NaN for what is none: booleans, which Python counts as numbers, strings."""
    if not isinstance(value, int | float | np.integer | np.floating) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def positive(name: str, value: Any, zero: bool = False) -> float:
    """Return `value` as a finite float > 0 (>= 0 with `zero`).

    Raises
    ------
    ValueError
        If it is no such number.
    """
    number = real(value)
    if not 0 <= number < math.inf or (number == 0 and not zero):
        raise ValueError(f"{name} = {show(value)}: must be a finite number {'>= 0' if zero else '> 0'}")
    return number


def replicates(value: Any, least: int) -> int:
    """Return the number of replicates, an integer from `least` to 10^9.

    Raises
    ------
    ValueError
        If it is no such integer.
    """
    return integer("replicates", value, least, MAX_REPLICATES)


def seed(value: Any) -> int:
    """Return a seed, an integer in [0, 2^63 - 1].

    Raises
    ------
    ValueError
        If it is no such integer.
    """
    return integer("seed", value, 0, MAX_SEED)


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
    """Return the load λ as a float in (0, 1), not closer to the ends than `LOADS`.

    Raises
    ------
    ValueError
        If it is no such number.
    """
    number = fraction(value, name)
    if not LOADS[0] <= number <= LOADS[1]:
        raise ValueError(
            f"{name} = {show(value)}: must be at least {LOADS[0]:g} and at most 1 - {1 - LOADS[1]:.0e}; floating point "
            "does not resolve loads closer to 0 and 1"
        )
    return number


def fraction(value: Any, name: str) -> float:
    """Return a number in (0, 1) as a float.

    Raises
    ------
    ValueError
        If it is no number in the open interval (0, 1).
    """
    number = real(value)
    if not 0 < number < 1:
        raise ValueError(f"{name} = {show(value)}: must be a number greater than 0 and less than 1")
    return number


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


def events(name: str, value: Any, expected: float, calls: float = 0.0) -> None:
    """Refuse a simulation that would take weeks.

    Parameters
    ----------
    name : str
        What the caller can lower, with its value.
    expected, calls : float
        Uniformised events that are expected, and how often Python starts a replicate or takes a sample.

    Raises
    ------
    ValueError
        If it takes as long as more than `MAX_EVENTS` events.
    """
    work = expected + CALL * calls
    if not work <= MAX_EVENTS:
        raise ValueError(
            f"{name} = {show(value)}: about {work:.2g} events are to be simulated, must be at most {MAX_EVENTS:.0e}"
        )


def numbers(name: str, expected: float) -> None:
    """Refuse what would not fit into memory.

    Raises
    ------
    ValueError
        If about so many numbers are to be held at once, and it is more than `MAX_NUMBERS`.
    """
    if not expected <= MAX_NUMBERS:
        raise ValueError(f"{name}: about {expected:.2g} numbers are to be held, must be at most {MAX_NUMBERS:.0e}")


def points(name: str, expected: float, cost: int = 1) -> None:
    """Refuse what would take too long to solve one by one.

    Raises
    ------
    ValueError
        If there are more than `MAX_POINTS` points, of which each costs as much as so many others.
    """
    if not expected <= (most := MAX_POINTS / cost):
        raise ValueError(f"{name}: about {expected:.2g} points are to be solved, must be at most {most:.0e}")


def several(name: str, values: Any, check: Callable[..., Value]) -> list[Value]:
    """Return a scalar or list as a non-empty list of distinct, checked values.

    Raises
    ------
    ValueError
        If the list is empty or too long, holds a value twice, or holds a value that `check` refuses.
    """
    if isinstance(values, np.ndarray) and values.size <= MAX_VALUES:
        values = values.tolist()
    is_list = isinstance(values, Iterable) and not isinstance(values, str | bytes | Mapping)
    items = list(itertools.islice(values, MAX_VALUES + 1)) if is_list else [values]
    if not items:
        raise ValueError(f"{name} = []: must hold at least one value")
    if len(items) > MAX_VALUES:
        raise ValueError(f"{name}: holds more than {MAX_VALUES} values, must be fewer")
    checked = [check(item, name) for item in items]
    if len(set(checked)) < len(checked):
        raise ValueError(f"{name} = {show(checked)}: must not hold a value twice")
    return checked


def array(name: str, value: Any, allowed: str, size: int = MAX_NUMBERS) -> np.ndarray:
    """Return a list or array of real numbers as an array of floats.

    Raises
    ------
    ValueError
        If it is none (`allowed` says what it must be), or larger than `size`.
    """
    try:
        large = (value.size if isinstance(value, np.ndarray) else len(value)) > size
    except (TypeError, OverflowError):  # a scalar; a range too long for len
        large = isinstance(value, range)
    if large:
        raise ValueError(f"{name} = {show(value)}: must be {allowed}, of at most {size} numbers")
    try:
        given = np.asarray(value)
    except ValueError:  # lists of different lengths
        given = np.array("ragged")
    if given.dtype.kind not in "iuf":
        raise ValueError(f"{name} = {show(value)}: must be {allowed}")
    return given.astype(np.float64)


def time_grid(value: Any, name: str = "t") -> np.ndarray:
    """Return the time grid as float64[T]: finite, >= 0, strictly increasing, not empty.

    Raises
    ------
    ValueError
        If it is not.
    """
    grid = np.atleast_1d(array(name, value, "a list of numbers, finite, >= 0 and strictly increasing", MAX_VALUES))
    if grid.ndim != 1 or grid.size == 0:
        raise ValueError(f"{name} with shape {grid.shape}: must be a list of at least one time")
    if not np.isfinite(grid).all() or grid[0] < 0 or (np.diff(grid) <= 0).any():
        raise ValueError(f"{name} = {show(value)}: times must be finite, >= 0 and strictly increasing")
    return grid


def choice(name: str, value: Any, allowed: Iterable[str]) -> str:
    """Return `value` if it is one of `allowed`.

    Raises
    ------
    ValueError
        If it is not.
    """
    options = list(allowed)
    if not isinstance(value, str) or value not in options:
        raise ValueError(f"{name} = {show(value)}: must be one of {', '.join(options)}")
    return str(value)


def mapping(name: str, value: Any, of: str) -> Mapping[Any, Any]:
    """Return `value` if it is a mapping that is not empty; `of` says from what to what.

    Raises
    ------
    ValueError
        If it is not.
    """
    if not isinstance(value, Mapping) or not value:
        raise ValueError(f"{name} = {show(value)}: must be a mapping of at least one {of}")
    return value
