"""Intervals, the warm-up check and the distance between occupancies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from scipy import special

from dchoices import validation

CONFIDENCE = 0.95
# A warm-up is flagged when the halves of the measured window differ beyond what chance does once in a thousand runs:
# a study has hundreds of cells, and a stricter level would flag sound ones.
WARM_UP_LEVEL = 1e-3
# Where nothing was seen, as many may be expected: a Poisson number of mean 10 is 0 with probability 5e-5, which
# is 5 % shared among a thousand cells.
NONE_SEEN = 10

_families: ContextVar[int] = ContextVar("families", default=1)
_stand_in: ContextVar[Callable[[float], float] | None] = ContextVar("stand_in", default=None)


@contextmanager
def at_once(families: int) -> Iterator[None]:
    """Let `student` and `widening` give intervals that hold for this many lists of cells at once (Bonferroni)."""
    token = _families.set(families)
    try:
        yield
    finally:
        _families.reset(token)


@contextmanager
def quantile(stand_in: Callable[[float], float]) -> Iterator[None]:
    """Let `student` return this function of the degrees of freedom.

    Simultaneous half-widths are linear in what `student` returns: this tells the standard errors that they are made of.
    """
    token = _stand_in.set(stand_in)
    try:
        yield
    finally:
        _stand_in.reset(token)


def half_width(samples: np.ndarray, confidence: float = CONFIDENCE, axis: int = 0) -> np.ndarray:
    """Return the half-width of the Student interval for the mean of independent samples.

    Parameters
    ----------
    samples : float64[..., R, ...]
        R >= 2 independent replicates along `axis`.

    Raises
    ------
    ValueError
        If there are fewer than two replicates.
    """
    replicates = samples.shape[axis]
    if replicates < 2:
        raise ValueError(f"replicates = {replicates}: an interval needs at least 2")
    quantile = special.stdtrit(replicates - 1, (1 + confidence) / 2)
    return quantile * samples.std(axis=axis, ddof=1) / np.sqrt(replicates)


def student(freedom: float, cells: int = 1) -> float:
    """Return the half-width, in standard errors, of 95 % intervals that hold for `cells` cells at once (Bonferroni).

    With infinite degrees of freedom it is that of the normal distribution.
    """
    if (stand_in := _stand_in.get()) is not None:
        return stand_in(freedom)
    return -float(special.stdtrit(freedom, (1 - CONFIDENCE) / 2 / cells / _families.get()))


def widening(replicates: int, cells: int) -> float:
    """Return the factor from a 95 % half-width to one that holds for `cells` cells at once."""
    return student(replicates - 1, cells) / -float(special.stdtrit(replicates - 1, (1 - CONFIDENCE) / 2))


def proportion(count: Any, trials: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the exact 95 % intervals (Clopper and Pearson) for the chance of what came `count` times.

    They hold it at least that often: counts are whole numbers.

    Parameters
    ----------
    count : int64[...]
        Of 0 to `trials`.
    trials : int
        Independent trials, >= 1.
    """
    count = np.asarray(count)
    rest = (1 - CONFIDENCE) / 2
    missed = trials - count
    low = np.where(count > 0, special.betaincinv(np.maximum(count, 1), missed + 1, rest), 0.0)
    high = np.where(missed > 0, special.betaincinv(count + 1, np.maximum(missed, 1), 1 - rest), 1.0)
    return low, high


def unseen(replicates: int, lam: Any, N: Any, horizon: Any) -> Any:
    """Return what may be missed by runs that saw no such job: of a share of jobs or servers, of R - 1.

    For numbers or arrays.
    """
    return NONE_SEEN / (replicates * lam * N * horizon)


def controlled(samples: np.ndarray, control: np.ndarray, mean: float) -> tuple[float, float]:
    """Return the mean of independent samples and the half-width of its 95 % interval, with a control variate.

    It is the value at `mean` of the line fitted to the samples against the control, and Student's interval for it with
    R - 2 degrees of freedom: exact for a normal pair, and narrower as the two go together (Lavenberg and Welch, 1981,
    doi:10.1287/mnsc.27.3.322). Without a control that varies it is the plain mean.

    Parameters
    ----------
    samples : float64[R]
        R >= 3 independent replicates.
    control : float64[R]
        What was observed beside each of them.
    mean : float
        The known mean of the control.

    Raises
    ------
    ValueError
        If there are fewer than three replicates.
    """
    if samples.size < 3:
        raise ValueError(f"replicates = {samples.size}: a control variate needs at least 3")
    centred = control - control.mean()
    spread = float(centred @ centred)
    if spread == 0:
        return float(samples.mean()), float(half_width(samples))
    line = float(centred @ samples) / spread
    off = control.mean() - mean
    residuals = samples - samples.mean() - line * centred
    variance = residuals @ residuals / (samples.size - 2) * (1 / samples.size + off**2 / spread)
    quantile = special.stdtrit(samples.size - 2, (1 + CONFIDENCE) / 2)
    return float(samples.mean() - line * off), float(quantile * np.sqrt(variance))


def slope(x: np.ndarray, samples: Sequence[np.ndarray]) -> tuple[float, float, float]:
    """Return the least-squares slope of independent samples against x, its standard error and degrees of freedom.

    Every sample counts alike: with n_k samples of mean m_k at x_k, and x̄ the mean of x over all samples, the slope is
    Σ c_k m_k with c_k = n_k (x_k - x̄) / Σ n_l (x_l - x̄)². The spread s_k is estimated at each x for itself, so the
    samples need not scatter alike: the variance is Σ c_k² s_k² / n_k, its degrees of freedom those of Welch and
    Satterthwaite, (Σ v_k)² / Σ v_k² / (n_k - 1) with v_k = c_k² s_k² / n_k.

    Parameters
    ----------
    x : float64[K]
        At least two values.
    samples : sequence of float64[n_k]
        At least two samples at each x.

    Raises
    ------
    ValueError
        If a value of x has fewer than two samples.
    """
    number = np.array([values.size for values in samples])
    if number.min() < 2:
        raise ValueError(f"samples: {number.min()} at one x, an interval needs at least 2")
    centred = x - np.average(x, weights=number)
    weight = number * centred / (number @ centred**2)
    mean, variance = np.array([(values.mean(), values.var(ddof=1) / values.size) for values in samples]).T
    parts = weight**2 * variance
    total = parts.sum()
    freedom = total**2 / (parts**2 / (number - 1)).sum() if total > 0 else number.sum() - number.size
    return float(weight @ mean), float(np.sqrt(total)), float(freedom)


def halves_statistic(first: np.ndarray, second: np.ndarray) -> float:
    """Return Student's statistic of the difference between the halves of the measured window, over replicates.

    Parameters
    ----------
    first, second : float64[R]
        Means over the first and the second half, one of each per replicate.
    """
    difference = second - first
    error = difference.std(ddof=1) / np.sqrt(difference.size)
    return float(difference.mean() / error) if error > 0 else 0.0


def warm_up_is_long_enough(statistic: float, replicates: int, level: float = WARM_UP_LEVEL) -> bool:
    """Return whether the halves agree at this level."""
    return bool(abs(statistic) <= -special.stdtrit(replicates - 1, level / 2))


def total_variation(first: Any, second: Any) -> np.ndarray:
    """Return ½ Σ_i |p_i - q_i| along the last axis; the shorter occupancy is padded with zeros.

    Parameters
    ----------
    first, second : float64[..., queue_length]
        Occupancies on the same leading axes.
    """
    p, q = (
        validation.array(name, value, "occupancies, numbers with the queue length as last axis")
        for name, value in (("first", first), ("second", second))
    )
    for name, value in (("first", p), ("second", q)):
        if value.ndim == 0:
            raise ValueError(f"{name} = {value}: must be occupancies, numbers with the queue length as last axis")
        if not np.isfinite(value).all():
            raise ValueError(f"{name}: must hold finite numbers")
    try:
        np.broadcast_shapes(p.shape[:-1], q.shape[:-1])
    except ValueError:
        raise ValueError(
            f"first and second with shapes {p.shape} and {q.shape}: must have the same leading axes"
        ) from None
    levels = max(p.shape[-1], q.shape[-1])
    p, q = (np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, levels - x.shape[-1])]) for x in (p, q))
    return 0.5 * np.abs(p - q).sum(axis=-1)
