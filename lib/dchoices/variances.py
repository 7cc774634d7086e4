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
    t_end: float = 1000.0,
    warm_up: float = 50.0,
    replicates: int = 20,
    seed: int = 0,
) -> xr.Dataset:
    """Estimate N times the stationary variances of the shares of busy and of known idle servers, with memory.

    Every replicate starts at the fluid fixed point, and after the warm-up the state is taken every `SAMPLE_STEP`. The
    variance is about the mean of all replicates; intervals are Student's over the replicates' mean squares. What the
    error of that mean takes from the variance is a part of it that falls as 1/(replicates · t_end), the interval only
    as its root.

    Parameters
    ----------
    N, d, lam : scalar or list
        Servers, probes per job, load; the dataset is their product.
    t_end, warm_up : float
        The end of a run, and up to when it is not observed, in mean service times; 0 <= warm_up < t_end. Below the
        threshold the relaxation time is 1/min(1, λd).
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
    t_end, warm_up = validation.observed_until(t_end, warm_up)
    replicates, seed = validation.replicates(replicates, 2), validation.seed(seed)
    expected = t_end * replicates * sum(sizes) * len(ds) * sum(1 + x for x in loads)
    validation.events(
        "N, t_end and replicates",
        (max(sizes), t_end, replicates),
        expected,
        replicates * len(sizes) * len(ds) * len(loads),
    )
    # A sample is two numbers, and of the run under way two for each level.
    validation.numbers("t_end and replicates", 2 * (replicates + 16) * (t_end - warm_up) / SAMPLE_STEP)
    shape = (len(sizes), len(ds), len(loads))
    values, widths = np.empty((2, *shape)), np.empty((2, *shape))
    with progress_bar(expected, "fluctuations") as progress:
        for cell, (servers, probes, load) in zip(np.ndindex(shape), itertools.product(sizes, ds, loads), strict=True):
            runs = []
            for replicate in range(replicates):
                key = stream(seed, POLICY, servers, probes, load, "fixed-point", replicate)
                runs.append(_counts(servers, probes, load, t_end, warm_up, key))
                progress.update(round(servers * (1 + load) * t_end))
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
            attrs={"policy": POLICY, "seed": seed, "replicates": replicates, "t_end": t_end, "warm_up": warm_up},
        )
    )


def _counts(N: int, d: int, lam: float, t_end: float, warm_up: float, key: np.random.SeedSequence) -> np.ndarray:
    """Return the numbers of busy and of known idle servers along one replicate, int64[2, T]."""
    policy = registry.get(POLICY)
    chain = LumpedChain(policy, N, d, lam, starts.fractions("fixed-point", policy, lam, d), key)
    chain.advance(warm_up)
    by_queue, by_observation = chain.follow(np.full(max(1, round((t_end - warm_up) / SAMPLE_STEP)), SAMPLE_STEP))
    return np.stack([N - by_queue[:, 0], by_observation[:, 0]])


def _variances(counts: np.ndarray, N: int) -> tuple[np.ndarray, np.ndarray]:
    """Return N times the variances of the shares, and half-widths, float64[2] each; `counts` on (replicate, 2, T)."""
    squares = (counts - counts.mean(axis=(0, 2), keepdims=True)) ** 2
    samples = squares.mean(axis=2) / N
    return samples.mean(axis=0), statistics.half_width(samples)
