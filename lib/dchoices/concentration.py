"""Concentration: how often a path strays from the fluid path, over many replicates of small systems."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import xarray as xr

from dchoices import registry, starts, validation
from dchoices.convergence import fluid_paths
from dchoices.lumped import LumpedChain
from dchoices.progress import EventBar, progress_bar
from dchoices.simulation import stack, stream
from dchoices.statistics import total_variation
from dchoices.variables import describe

POLICY = "sq-memory"
LEVELS = 16  # of the occupancies that a run returns, at least
BATCH = 1000  # replicates whose paths are held at once
LOADS = (1e-3, 1 - 1e-3)  # where perturbed loads are cut off: far beyond what takes a path to any ε of interest


def tail_frequencies(
    N: int | Sequence[int],
    d: int | Sequence[int],
    lam: float | Sequence[float],
    t: Sequence[float] | np.ndarray,
    epsilon: float | Sequence[float],
    replicates: int = 1000,
    seed: int = 0,
    perturbation: float | Sequence[float] = 0.0,
) -> xr.Dataset:
    """Estimate P(sup_t ½ Σ_i |p_i^N(t) - p_i(t)| > ε) for SQ(d, N) with memory, from empty.

    Parameters
    ----------
    N, d, lam : scalar or list
        Servers, probes per job, load; the dataset is their product.
    t : float64[T]
        Grid of times over which the distance is taken, in mean service times, >= 0 and increasing.
    epsilon : scalar or list
        Distances ε in (0, 1).
    replicates : int
        Independent replicates of each system.
    seed : int
        Seed >= 0; the stream of a replicate is keyed by all that identifies it.
    perturbation : scalar or list
        Scale s >= 0 of a random factor on the load, drawn for each replicate: it runs at λ(1 + sZ/√N), Z a standard
        Cauchy variable, and is held against the fluid path at λ. As P(|Z| > z) falls as 1/z, the distance still goes
        to 0 in probability, but its tail falls as N^(-1/2). With 0 it is the system itself.

    Returns
    -------
    xarray.Dataset
        ``tail_frequency`` (perturbation, N, d, λ, ε), and ``median_distance`` (perturbation, N, d, λ).

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    sizes = validation.several("N", N, validation.servers)
    ds = validation.several("d", d, validation.probes)
    loads = validation.several("lam", lam, validation.load)
    grid = validation.time_grid(t)
    distances = np.array(validation.several("epsilon", epsilon, validation.fraction))
    replicates = validation.replicates(replicates, 1)
    seed = validation.seed(seed)
    scales = validation.several("perturbation", perturbation, lambda s, name: validation.positive(name, s, zero=True))
    expected = grid[-1] * replicates * sum(n * (1 + x) for n in sizes for x in loads) * len(ds) * len(scales)
    runs = replicates * len(sizes) * len(ds) * len(loads) * len(scales)
    validation.events("N, t and replicates", (max(sizes), float(grid[-1]), replicates), expected, runs)
    validation.numbers("replicates and t", runs * distances.size + LEVELS * min(replicates, BATCH) * grid.size)
    limits = fluid_paths(loads, ds, grid).occupancy
    found = []
    with progress_bar(expected, "tail frequencies") as progress:
        for scale, servers, probes, load in itertools.product(scales, sizes, ds, loads):
            path = limits.sel(d=probes, λ=load).values
            found.append(_distances(servers, probes, load, scale, grid, path, replicates, seed, progress))
    shape = (len(scales), len(sizes), len(ds), len(loads))
    samples = np.array(found)
    exceeded = (samples[..., None] > distances).mean(axis=1)
    dims = ("perturbation", "N", "d", "λ")
    return describe(
        xr.Dataset(
            {
                "tail_frequency": ((*dims, "ε"), exceeded.reshape(*shape, -1)),
                "median_distance": (dims, np.median(samples, axis=1).reshape(shape)),
            },
            coords={"perturbation": scales, "N": sizes, "d": ds, "λ": loads, "ε": distances},
            attrs={"policy": POLICY, "seed": seed, "start": "empty", "replicates": replicates},
        )
    )


def _distances(
    N: int,
    d: int,
    lam: float,
    scale: float,
    grid: np.ndarray,
    path: np.ndarray,
    replicates: int,
    seed: int,
    progress: EventBar,
) -> np.ndarray:
    """Return the distance of each replicate to the fluid path, float64[R]; `path` on (t, queue_length)."""
    policy, steps = registry.get(POLICY), np.diff(grid, prepend=0.0)
    start = starts.fractions("empty", policy, lam, d)
    labels = [f"perturbation {scale.hex()}"] if scale else []
    distances = []
    for first in range(0, replicates, BATCH):
        counts = []
        for replicate in range(first, min(first + BATCH, replicates)):
            key = stream(seed, POLICY, N, d, lam, "empty", replicate, *labels)
            load = _perturbed(lam, scale / math.sqrt(N), key) if scale else lam
            counts.append(LumpedChain(policy, N, d, load, start, key).follow(steps)[0])
        distances.append(total_variation(stack(counts) / N, path).max(axis=-1))
        progress.update(round(N * (1 + lam) * grid[-1] * len(counts)))
    return np.concatenate(distances)


# Of Student's laws the one with 2 degrees of freedom would be nearer to a finite sum, with a tail 1/N; but among a few
# hundred servers its P still falls as N^(-1.4), and a sum of that would be finite. The Cauchy law has 1.
def _perturbed(lam: float, size: float, key: np.random.SeedSequence) -> float:
    """Return a load with a Cauchy factor of this size, by its quantile at a uniform number.

    The number is of the replicate's own seed, of which its events and its clock have children.
    """
    uniform = key.generate_state(1, np.uint64)[0] / 2.0**64
    return float(np.clip(lam * (1 + size * math.tan(math.pi * (uniform - 0.5))), *LOADS))
