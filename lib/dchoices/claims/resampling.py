"""How often a check would pass: its cells redrawn within their sampling error, by the same rule for verdicts.

Each repetition draws every estimate anew: normal about the value that was measured, with the standard error that was
measured, and with a new standard error, a χ² variable with the degrees of freedom of its interval; and makes the same
simultaneous intervals of them. So the rate is that of a system whose truth is what was measured. For a control it is
the false-pass rate: the chance that a rerun of the study with other seeds would let this wrong model pass. It says
nothing of models nearer to the claim than the control, and nothing of errors that every rerun shares. For the claim
itself it is the power: the chance that a rerun would pass again.

Cells share runs, and how they go together is not known. A check passes only if every cell does, so that the rate of the
cell that passes least often is an upper bound for that of the check, which is taken for controls; for the claim the
cells are drawn independently.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dchoices import statistics

if TYPE_CHECKING:
    from dchoices.claims.engine import Cell

Rate = dict[str, Any]

REPETITIONS = 10_000
NORMAL = 1e9  # degrees of freedom that are as good as infinite


def inside(value: Any, half_width: Any, low: Any, high: Any) -> Any:
    """Return whether intervals lie inside their tolerances, for numbers or arrays."""
    return (low <= value - half_width) & (value + half_width <= high)


class Spread(NamedTuple):
    """What half-widths are made of, quantile · error + bound; float64[C] each.

    Attributes
    ----------
    error, freedom : float64[C]
        Standard error and its degrees of freedom.
    quantile : float64[C]
        Of the simultaneous interval, in standard errors.
    bound : float64[C]
        What does not come from sampling.
    """

    error: np.ndarray
    freedom: np.ndarray
    quantile: np.ndarray
    bound: np.ndarray


def spread(cells: Sequence[Cell], check: Callable[[], Iterable[Cell]]) -> Spread:
    """Return what the half-widths of the cells of a check are made of, of those that can be drawn."""

    def widths(quantile: Callable[[float], float]) -> np.ndarray:
        with statistics.quantile(quantile):
            return np.array([cell.half_width for cell in _drawable(check())])

    half_width = np.array([cell.half_width for cell in cells])
    one, two, more = (widths(quantile) for quantile in (lambda _: 1.0, lambda _: 2.0, lambda freedom: 1 + 1 / freedom))
    error, rise = two - one, more - one
    bound, spreads = one - error, error > 0
    freedom = np.divide(error, rise, out=np.full_like(error, NORMAL), where=spreads & (rise * NORMAL > error))
    quantile = np.divide(half_width - bound, error, out=np.zeros_like(error), where=spreads)
    return Spread(error, freedom, quantile, bound)


def _drawable(cells: Iterable[Cell]) -> list[Cell]:
    """Return the cells with a sampling error that is known."""
    return [cell for cell in cells if not cell.exact and math.isfinite(cell.value + cell.half_width)]


def redrawn(cells: Sequence[Cell], spread: Spread, rng: np.random.Generator) -> np.ndarray:
    """Return which cells pass in each repetition, bool[REPETITIONS, C]."""
    value, low, high = np.array([(cell.value, cell.low, cell.high) for cell in cells]).T
    shape = (REPETITIONS, len(cells))
    drawn = value + spread.error * rng.standard_normal(shape)
    error = spread.error * np.sqrt(rng.chisquare(spread.freedom, shape) / spread.freedom)
    return inside(drawn, spread.quantile * error + spread.bound, low, high)


def pass_rate(cells: Sequence[Cell], check: Callable[[], Iterable[Cell]], key: str, control: bool) -> Rate | None:
    """Return how often a check passes, with a 95 % interval and the repetitions behind it.

    Parameters
    ----------
    cells : sequence of Cell
        What the check measured.
    check : callable
        Measures them again.
    key : str
        What is drawn depends on it and on the cells alone.
    control : bool
        Whether to return the least pass rate of a cell, or that of all cells drawn independently.

    Returns
    -------
    dict or None
        ``rate``, ``ci95``, ``repetitions``. If exact cells decide, the rate is 0 or 1 by construction and there are no
        repetitions; where they refuse, ``sampled`` is the rate of the other cells. A cell without a finite interval
        passes in no repetition: a control is judged by its other cells, and without one it is None, as for a claim.
    """
    drawn = _drawable(cells)
    exact = [cell.verdict == "pass" for cell in cells if cell.exact]
    without = len(cells) - len(drawn) - len(exact)
    if not (drawn or exact) or (without and not control):
        return None
    if not drawn:
        return _by_construction(all(exact))
    seed = int.from_bytes(hashlib.sha256(key.encode()).digest()[:16], "big")
    passed = redrawn(drawn, spread(drawn, check), np.random.default_rng(seed))
    count = passed.sum(axis=0).min() if control else passed.all(axis=1).sum()
    low, high = statistics.proportion(count, REPETITIONS)
    sampled = {"rate": float(count / REPETITIONS), "ci95": [float(low), float(high)], "repetitions": REPETITIONS}
    return sampled if all(exact) else _by_construction(False) | {"sampled": sampled}


def _by_construction(passes: bool) -> Rate:
    return {"rate": float(passes), "ci95": [float(passes)] * 2, "repetitions": 0}


def most_lenient(rates: Iterable[Rate | None]) -> Rate | None:
    """Return the greatest of the rates of controls; None if there is none, or one is not known."""
    found = list(rates)
    known = [rate for rate in found if rate is not None]
    if len(known) < len(found):
        return None
    return max(known, key=lambda rate: (rate["ci95"][1], rate.get("sampled", rate)["ci95"][1]), default=None)
