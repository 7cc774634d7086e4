"""Stationary variances of the system with memory: how far the shares of servers stray around their means."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import xarray as xr

from dchoices import registry, starts, statistics, validation
from dchoices.lumped import LumpedChain
from dchoices.progress import progress_bar
from dchoices.simulation import SAMPLE_STEP, stream
from dchoices.variables import describe

POLICY = "sq-memory"


def fluctuations(
    N: int | Sequence[int],
    d: int | Sequence[int],
    lam: float | Sequence[float],
    warm_up: float = 20.0,
    horizon: float = 500.0,
    replicates: int = 20,
    seed: int = 0,
) -> xr.Dataset:
    """Estimate N times the stationary variances of the shares of busy and of known idle servers, with memory.

    Every replicate starts at the fluid fixed point, and after the warm-up the state is taken every `SAMPLE_STEP`. The
    variance is about the mean of all replicates; intervals are Student's over the replicates' mean squares. What the
    error of that mean takes from the variance is a part of 2/(replicates · horizon), far below the interval.

    Parameters
    ----------
    N, d, lam : scalar or list
        Servers, probes per job, load; the dataset is their product.
    warm_up, horizon : float
        Time not observed (may be 0) and observed, in units of 1/min(1, λd) mean service times, the relaxation time
        below the threshold.
    replicates : int
        Independent replicates, >= 2.
    seed : int
        Seed >= 0.

    Returns
    -------
    xarray.Dataset
        On (N, d, λ): ``n_var_busy`` and ``n_var_known_idle`` (servers with observation 0), each with its ``…_ci95``.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    sizes, ds = validation.several("N", N, validation.servers), validation.several("d", d, validation.probes)
    loads = validation.several("lam", lam, validation.load)
    warm_up, horizon = validation.positive("warm_up", warm_up, zero=True), validation.positive("horizon", horizon)
    replicates, seed = validation.integer("replicates", replicates, 2), validation.integer("seed", seed, 0)
    time = (warm_up + horizon) * sum((1 + x) / min(1, x * probes) for x in loads for probes in ds)
    expected = time * replicates * sum(sizes)
    validation.events("warm_up and horizon", f"{warm_up:g} and {horizon:g}", expected)
    shape = (len(sizes), len(ds), len(loads))
    values, widths = np.empty((2, *shape)), np.empty((2, *shape))
    with progress_bar(expected, "fluctuations") as progress:
        for cell, (servers, probes, load) in zip(np.ndindex(shape), itertools.product(sizes, ds, loads), strict=True):
            relaxation = 1 / min(1, load * probes)
            runs = []
            for replicate in range(replicates):
                key = stream(seed, POLICY, servers, probes, load, "fixed-point", replicate)
                runs.append(_counts(servers, probes, load, relaxation * warm_up, relaxation * horizon, key))
                progress.update(round(servers * (1 + load) * relaxation * (warm_up + horizon)))
            values[:, *cell], widths[:, *cell] = _variances(np.stack(runs), servers)
    arrays = {
        f"{name}{end}": (("N", "d", "λ"), array[k])
        for k, name in enumerate(("n_var_busy", "n_var_known_idle"))
        for end, array in (("", values), ("_ci95", widths))
    }
    return describe(
        xr.Dataset(
            arrays,
            coords={"N": sizes, "d": ds, "λ": loads},
            attrs={"policy": POLICY, "seed": seed, "replicates": replicates, "warm_up": warm_up, "horizon": horizon},
        )
    )


def _counts(N: int, d: int, lam: float, warm_up: float, horizon: float, key: np.random.SeedSequence) -> np.ndarray:
    """Return the numbers of busy and of known idle servers along one replicate, int64[2, T]."""
    policy = registry.get(POLICY)
    chain = LumpedChain(policy, N, d, lam, starts.fractions("fixed-point", policy, lam, d), key)
    chain.advance(warm_up)
    by_queue, by_observation = chain.follow(np.full(max(1, round(horizon / SAMPLE_STEP)), SAMPLE_STEP))
    return np.stack([N - by_queue[:, 0], by_observation[:, 0]])


def _variances(counts: np.ndarray, N: int) -> tuple[np.ndarray, np.ndarray]:
    """Return N times the variances of the shares, and half-widths, float64[2] each; `counts` on (replicate, 2, T)."""
    squares = (counts - counts.mean(axis=(0, 2), keepdims=True)) ** 2
    samples = squares.mean(axis=2) / N
    return samples.mean(axis=0), statistics.half_width(samples)
