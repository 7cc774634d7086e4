"""Intervals, the warm-up check and the distance between occupancies."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

CONFIDENCE = 0.95
# A warm-up is flagged when the halves of the measured window differ beyond what chance does once in a thousand runs:
# a study has hundreds of cells, and a stricter level would flag sound ones.
WARM_UP_LEVEL = 1e-3


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


def widening(replicates: int, cells: int) -> float:
    """Return the factor from a 95 % half-width to one that holds for `cells` cells at once (Bonferroni)."""
    level = (1 - CONFIDENCE) / 2
    return float(special.stdtrit(replicates - 1, level / cells) / special.stdtrit(replicates - 1, level))


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


def warm_up_is_long_enough(statistic: float, replicates: int) -> bool:
    """Return whether the halves agree at `WARM_UP_LEVEL`."""
    return bool(abs(statistic) <= -special.stdtrit(replicates - 1, WARM_UP_LEVEL / 2))


def total_variation(first: Any, second: Any) -> np.ndarray:
    """Return ½ Σ_i |p_i - q_i| along the last axis; the shorter occupancy is padded with zeros.

    Parameters
    ----------
    first, second : float64[..., queue_length]
        Occupancies on the same leading axes.
    """
    p, q = np.asarray(first), np.asarray(second)
    levels = max(p.shape[-1], q.shape[-1])
    p, q = (np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, levels - x.shape[-1])]) for x in (p, q))
    return 0.5 * np.abs(p - q).sum(axis=-1)
