"""How error messages show what they were given: in one line, and not too much of it."""

from __future__ import annotations

from typing import Any

SHOWN = 60  # characters of a value that an error message shows


def show(value: Any) -> str:
    """Return a value as an error message shows it: in one line, and not more than `SHOWN` characters."""
    if isinstance(value, int) and value.bit_length() > 8 * SHOWN:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, list | tuple) and len(value) > 1000:
        return f"a {type(value).__name__} of {len(value)} values"
    if hasattr(value, "dtype") and getattr(value, "ndim", None) == 0:  # the number, not its type in numpy
        value = value.item()
    try:
        return shorten(one_line(repr(value)))
    except ValueError:  # an integer inside has more digits than Python prints
        return f"a {type(value).__name__}"


def one_line(text: str) -> str:
    """Return a text with its white space joined and what cannot be printed escaped."""
    joined = " ".join(text.split())
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in joined)


def shorten(text: str, most: int = SHOWN) -> str:
    """Return a text of at most so many characters."""
    return text if len(text) <= most else text[: most - 1] + "…"
