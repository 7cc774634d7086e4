"""How fast fluid paths settle: relaxation rates measured on paths, beside the spectral gap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from dchoices import starts, validation
from dchoices.theory.closed_forms import fixed_point_state
from dchoices.theory.fluid import fluid_path
from dchoices.theory.spectrum import spectral_gap
from dchoices.variables import describe
from dchoices.wording import show

# What a path errs in a unit of time, in its full state, is below ERROR_RATE, as settled paths show; it lives for a
# relaxation time, or a thousand service times if that is less.
ERROR_RATE, SLOWEST = 2e-13, 1e-3
# A path has settled when it is within so many times its error of the fixed point: the error is then a thousandth.
SETTLED = 1e3
# A rate is measured while the distance falls by the last factor of a thousand: over seven e-folds.
FALL = 1e3
# Relaxation times 1/gap that a path is followed at first; then LONGER times as far, up to the last horizon.
RELAXATION_TIMES, LONGER, LAST_HORIZON = 25.0, 4.0, 1e5
HORIZON_WITHOUT_GAP = 100.0
POINTS = 200  # of a time grid
RESOLVED = 2.0  # the grid is refined where a distance that is measured falls by more than this in a step


class Decay(NamedTuple):
    """How a distance dies out; an error is the half-width of an interval.

    Attributes
    ----------
    rate, rate_error : float
        -d log distance / dt, extrapolated from late windows to infinite time.
    exponent, exponent_error : float
        -d log distance / d log t over the last decade of time.
    """

    rate: float
    rate_error: float
    exponent: float
    exponent_error: float


def distance_to_fixed_point(path: xr.Dataset) -> xr.DataArray:
    """Return ½ Σ_ij |x_ij(t) - x*_ij|, the total variation between the full states of a path and its fixed point.

    Parameters
    ----------
    path : xarray.Dataset
        From `fluid_path`, of the policy "sq-memory".

    Returns
    -------
    xarray.DataArray
        On t.
    """
    known = isinstance(path, xr.Dataset) and "state" in path and {"lam", "d"} <= set(path.attrs)
    if not known:
        raise ValueError(f"path = {show(path)}: must be a dataset from fluid_path, of the policy 'sq-memory'")
    limit = fixed_point_state(path.attrs["lam"], path.attrs["d"])
    beyond = path.sizes["i"] - len(limit)  # a path has at least the levels of its fixed point
    return 0.5 * abs(path.state - np.pad(limit, (0, beyond))).sum(("i", "j"))


def measure_decay(t: np.ndarray, distance: np.ndarray, error: float, switches: Sequence[float] = ()) -> Decay:
    """Measure how a distance dies out.

    The window after the last switch in which the distance falls by the last factor `FALL` before it has settled, or
    before the end, is halved. A power of t beside the exponential bends the local rate by p/t, with t since the last
    switch: from the rates r_1, r_2 around t_1, t_2 in the halves the rate is extrapolated to
    r_2 + (r_2 - r_1) t_1 / (t_2 - t_1). A further exponential bends it for a shorter time, so that the rate lies
    between r_2 and as far beyond the extrapolated one. What the error of the path can do is added to the interval.

    Parameters
    ----------
    t, distance : float64[T]
        Times and the distance then, over at least two decades of time.
    error : float
        Bound on the error of the distance.
    switches : sequence of float
        Times at which the mode of the path changes.
    """
    end = np.flatnonzero(distance >= min(SETTLED * error, distance[0]))[-1]
    last_switch = max((time for time in switches if time < t[end]), default=0.0)  # rounding makes later ones
    begin = np.flatnonzero((t > last_switch) & (distance <= FALL * distance[end]))[0]
    cuts = np.array([begin, np.searchsorted(t, 0.5 * (t[begin] + t[end])), end])
    spans = np.diff(t[cuts])
    early, late = -np.diff(np.log(distance[cuts])) / spans
    weight = (t[cuts[0]] + t[cuts[1]] - 2 * last_switch) / spans.sum()
    noise = (1 + 2 * weight) * error * (1 / distance[cuts[1]] + 1 / distance[end]) / spans.min()
    decades = np.searchsorted(t, t[end] * np.array([0.01, 0.1, 1.0]))
    before, last = -np.diff(np.log(distance[decades])) / np.diff(np.log(t[decades]))
    return Decay(
        rate=late + weight * (late - early),
        rate_error=weight * abs(late - early) + noise,
        exponent=last,
        exponent_error=2 * abs(last - before),  # a correction in t^(-1/3) leaves 0.9 times the difference
    )


def settling_path(lam: float, d: int, start: Any = "empty") -> xr.Dataset:
    """Return a fluid path as long as it needs to settle, or of the last horizon, fine enough for `measure_decay`.

    Parameters
    ----------
    lam, d, start
        As for `fluid_path`.

    Returns
    -------
    xarray.Dataset
        As from `fluid_path`, with the `distance_to_fixed_point` as ``distance`` (t). The spectral gap only decides
        how long the path is.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    gap = spectral_gap(lam, d)
    error = ERROR_RATE / max(gap, SLOWEST)
    horizon = min(RELAXATION_TIMES / gap, LAST_HORIZON) if gap else HORIZON_WITHOUT_GAP
    t = np.linspace(0, horizon, POINTS)
    while True:
        path = fluid_path(lam, d, t, start)
        distance = distance_to_fixed_point(path).values
        if distance[-1] > SETTLED * error and t[-1] < LAST_HORIZON:
            t = np.linspace(0, min(LONGER * t[-1], LAST_HORIZON), POINTS)
            continue
        level = max(SETTLED * error, distance[-1])
        before, after = distance[:-1], distance[1:]
        coarse = np.flatnonzero((before > level) & (after < FALL * level) & (before > RESOLVED * after))
        if not coarse.size:
            return path.assign(distance=("t", distance)).assign_attrs(distance_error=error)
        t = np.union1d(t, np.linspace(t[coarse[0]], t[coarse[-1] + 1], POINTS))


def relaxation_rates(
    lam: float | Sequence[float] | np.ndarray, d: int | Sequence[int], start: str | Sequence[Any] = "empty"
) -> xr.Dataset:
    """Measure how fast fluid paths of SQ(d) with memory settle, on the product of starts, probes and loads.

    Parameters
    ----------
    lam, d : scalar or list
        Loads in (0, 1), probes per job >= 1.
    start : str or list
        Names of starts or matrices X[i, j]; not the fixed point.

    Returns
    -------
    xarray.Dataset
        On (start, d, λ): ``relaxation_rate`` and ``decay_exponent``, each with its ``…_error`` (see `measure_decay`);
        ``distance_left`` at the end and ``settled``, 1 if it is at most `SETTLED`. On (d, λ): ``spectral_gap``.

    Raises
    ------
    ValueError
        If an argument is out of range, or a path starts within `SETTLED` of its fixed point.
    """
    loads, ds = validation.several("lam", lam, validation.load), validation.several("d", d, validation.probes)
    if not isinstance(start, str | list | tuple) or not start:
        raise ValueError(f"start = {show(start)}: must be the name of a start, or a list of names and matrices")
    begins = [start] if isinstance(start, str) else list(start)
    if len({starts.label(begin) for begin in begins}) < len(begins):
        raise ValueError(f"start = {show(start)}: must not hold a start twice")
    validation.points("start, lam and d", len(begins) * len(ds) * len(loads), 10 * validation.PATH)
    shape = (len(begins), len(ds), len(loads))
    measured, left, settled = np.empty((len(Decay._fields), *shape)), np.empty(shape), np.empty(shape, np.int8)
    for at in np.ndindex(shape):
        path = settling_path(loads[at[2]], ds[at[1]], begins[at[0]])
        distance = path.distance.values
        error = path.attrs["distance_error"]
        if distance[0] <= SETTLED * error:
            raise ValueError(f"start = {path.attrs['start']}: must not be the fixed point")
        measured[:, *at] = measure_decay(path.t.values, distance, error, path.attrs["switch_times"])
        left[at], settled[at] = distance[-1], distance[-1] <= SETTLED * error
    names = ("relaxation_rate", "relaxation_rate_error", "decay_exponent", "decay_exponent_error")
    dims = ("start", "d", "λ")
    return describe(
        xr.Dataset(
            {
                **{name: (dims, values) for name, values in zip(names, measured, strict=True)},
                "distance_left": (dims, left),
                "settled": (dims, settled),
                "spectral_gap": (("d", "λ"), [[spectral_gap(x, probes) for x in loads] for probes in ds]),
            },
            coords={"start": [starts.label(begin) for begin in begins], "d": ds, "λ": loads},
        )
    )
