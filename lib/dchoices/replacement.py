"""What probing with replacement costs, from pairs of systems that share their random numbers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import xarray as xr

from dchoices import per_server, registry, starts, statistics, validation
from dchoices.kernels import pair, sfc64
from dchoices.progress import progress_bar
from dchoices.simulation import stream
from dchoices.variables import describe

POLICIES = ("sq", "sq-memory")  # that are also run with d different probes
SPARE_LEVELS = 64  # above the start: observations that few systems come near; a run that does begins anew with more


def replacement_gap(
    policy: str | Sequence[str],
    N: int | Sequence[int],
    d: int | Sequence[int],
    lam: float | Sequence[float],
    t_end: float = 1000.0,
    warm_up: float = 50.0,
    replicates: int = 20,
    seed: int = 0,
) -> xr.Dataset:
    """Estimate N times the difference of the mean response times with replacement and without.

    Both systems run on the same arrivals, departures and probes, with one that is drawn again where it has to be
    (`kernels.pair`), from the fluid fixed point. The difference of their mean response times is that of the jobs that
    a job finds at its server; its interval is Student's over replicates, and does not grow with N. Server by server,
    so at a memory that grows with N.

    Parameters
    ----------
    policy : str or list of str
        "sq-memory" or "sq"; without replacement they are "sq-memory-distinct" and "sq-distinct".
    N, d, lam : scalar or list
        Servers, at least d; probes per job; load; the dataset is the product of the lists.
    t_end, warm_up : float
        The end of a run, and up to when it is not observed, in mean service times; 0 <= warm_up < t_end.
    replicates : int
        Independent replicates, >= 2.
    seed : int
        Seed >= 0.

    Returns
    -------
    xarray.Dataset
        ``n_replacement`` (policy, N, d, λ) and its ``n_replacement_ci95``.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    names = validation.several("policy", policy, lambda value, name: validation.choice(name, value, POLICIES))
    sizes = validation.several("N", N, lambda value, name: validation.integer(name, value, 1, per_server.MAX_SERVERS))
    ds = registry.numbers_of_probes([registry.get(f"{name}-distinct") for name in names], sizes, d)
    loads = validation.several("lam", lam, validation.load)
    t_end, warm_up = validation.observed_until(t_end, warm_up)
    replicates, seed = validation.replicates(replicates, 2), validation.seed(seed)
    expected = t_end * replicates * len(names) * len(ds) * sum(sizes) * sum(1 + x for x in loads)
    runs = replicates * len(names) * len(ds) * len(sizes) * len(loads)
    validation.events("N, t_end and replicates", (max(sizes), t_end, replicates), expected, runs)
    validation.numbers("replicates", runs)
    shape = (len(names), len(sizes), len(ds), len(loads))
    samples = np.empty((replicates, *shape))
    with progress_bar(expected, "replacement") as progress:
        for cell, identity in zip(np.ndindex(shape), itertools.product(names, sizes, ds, loads), strict=True):
            for replicate in range(replicates):
                key = stream(seed, *identity, "fixed-point", replicate, "pair")
                samples[replicate, *cell] = _gap(*identity, t_end, warm_up, key)
                progress.update(round(t_end * identity[1] * (1 + identity[3])))
    scaled = samples * np.array(sizes)[:, None, None]
    dims = ("policy", "N", "d", "λ")
    arrays = {
        "n_replacement": (dims, scaled.mean(axis=0)),
        "n_replacement_ci95": (dims, statistics.half_width(scaled)),
    }
    coords = {"policy": names, "N": sizes, "d": ds, "λ": loads}
    attrs = {"seed": seed, "replicates": replicates, "t_end": t_end, "warm_up": warm_up}
    return describe(xr.Dataset(arrays, coords, attrs))


def _gap(
    policy: str,
    N: int,
    d: int,
    lam: float,
    t_end: float,
    warm_up: float,
    key: np.random.SeedSequence,
    spare: int = SPARE_LEVELS,
) -> float:
    """Return the difference of the mean response times over one replicate."""
    rng = sfc64.initial_state(key)
    servers, end = _start(policy, N, d, lam, spare)
    memory = registry.get(policy).memory
    rate = N * (1 + lam)
    for duration in (warm_up, t_end - warm_up):
        arrivals, more, left = pair.run(memory, d, lam, round(rate * duration), servers, end, rng)
        if left:
            return _gap(policy, N, d, lam, t_end, warm_up, key, 4 * spare)
    return more / max(arrivals, 1)


def _start(policy: str, N: int, d: int, lam: float, spare: int = SPARE_LEVELS) -> tuple[np.ndarray, np.ndarray]:
    """Return both systems at the fluid fixed point, as `pair.run` takes them."""
    fractions = starts.fractions("fixed-point", registry.get(policy), lam, d)
    if len(fractions) > validation.MAX_LEVELS:
        raise ValueError(
            f"lam = {lam!r}: the start has {len(fractions)} queue lengths at d = {d} without memory, must be at most "
            f"{validation.MAX_LEVELS}"
        )
    counts = starts.counts(fractions if fractions.ndim == 2 else np.diag(fractions), N)
    observation, queue = (np.repeat(level, counts.T[counts.T > 0]) for level in np.nonzero(counts.T))
    line = np.arange(N)
    end = np.searchsorted(observation, np.arange(len(counts) + spare), side="right")
    return np.stack([[array, array] for array in (queue, observation, line, line)]), np.stack([end, end])
