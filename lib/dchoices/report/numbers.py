"""Numbers as a reader wants them: no more digits than their interval supports."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

Interval: TypeAlias = Sequence[float | None]

MINUS, DASH = "−", "–"
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# Digits of a half-width that are shown: two, as its own uncertainty allows no third.
HALF_WIDTH_DIGITS = 2
# Digits of a value that comes without an interval.
PLAIN_DIGITS = 4
# Below this, and from a million on, a common power of ten is split off.
SMALL, LARGE = 1e-3, 1e6
# Integers from here on have their thousands apart.
GROUPED = 10_000


def plain(value: float | None, digits: int = PLAIN_DIGITS) -> str:
    """Return a number with at most `digits` significant digits, an integer with all of its own, "–" for none."""
    if value is None or not math.isfinite(value):
        return DASH
    if isinstance(value, int):
        return (f"{value:,}" if abs(value) >= GROUPED else str(value)).replace(",", "\u202f").replace("-", MINUS)
    if value == 0 or SMALL <= abs(value) < LARGE:
        return f"{float(f'{value:.{digits}g}'):g}".replace("-", MINUS)
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{mantissa} × {power(int(exponent))}".replace("-", MINUS)


def power(exponent: int) -> str:
    """Return a power of ten."""
    return "10" + str(exponent).translate(_SUPERSCRIPTS)


def estimate(value: float | None, interval: Interval | None, most: int | None = None) -> tuple[str, str]:
    """Return a measured value and its interval, both with the digits that the interval supports.

    An interval without a width belongs to a value that was computed. One that shows none in so many digits is given by
    their size.

    Parameters
    ----------
    value : float or None
        The estimate; None and NaN are shown as a dash.
    interval : sequence of two floats or None
        Its ends, None where it has none; without one, it is the value alone.
    most : int, optional
        Most significant digits of the value.
    """
    if value is None or not math.isfinite(value):
        return DASH, "not measured"
    if interval is None or interval[0] == interval[1] is not None:
        return plain(value, min(PLAIN_DIGITS, most or PLAIN_DIGITS)), "computed"
    low, high = interval
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return plain(value, 2), "no finite interval"
    largest = max(abs(value), abs(low), abs(high))
    exponent = 0 if SMALL <= largest < LARGE else math.floor(math.log10(largest))
    value, low, high = (v / 10**exponent for v in (value, low, high))
    decimals = _decimals(value, (high - low) / 2, most)
    shown, ends = fixed(value, decimals), f"[{fixed(low, decimals)}, {fixed(high, decimals)}]"
    if fixed(low, decimals) == fixed(high, decimals):
        ends = f"± less than {fixed(10.0**-decimals, decimals)}"
    if exponent == 0:
        return shown, ends
    scale = f" × {power(exponent)}"
    return shown + scale if float(f"{value:.{decimals}f}") else "0", ends + scale


def _decimals(value: float, half_width: float, most: int | None) -> int:
    decimals = HALF_WIDTH_DIGITS - 1 - math.floor(math.log10(half_width))
    if most is not None and value:
        decimals = min(decimals, most - 1 - math.floor(math.log10(abs(value))))
    return max(decimals, 0)


def fixed(value: float | None, decimals: int) -> str:
    """Return a number with `decimals` digits after the point, "–" where there is none."""
    if value is None:
        return DASH
    text = f"{value:.{decimals}f}"
    return (text.removeprefix("-") if float(text) == 0 else text).replace("-", MINUS)


def tolerance(bounds: Interval) -> str:
    """Return the range in which a measured value must lie."""
    low, high = bounds
    if low is None and high is None:
        return DASH
    if low is None:
        return f"≤ {plain(high)}"
    if high is None:
        return f"≥ {plain(low)}"
    return f"exactly {plain(low)}" if low == high else f"[{plain(low)}, {plain(high)}]"
