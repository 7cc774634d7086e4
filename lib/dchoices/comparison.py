"""Several policies at equal conditions, those with a number of probes and those without, in one dataset."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import xarray as xr

from dchoices import registry, validation
from dchoices.simulation import stationary
from dchoices.variables import describe

#: A time in mean service times: one for all, one for each λ, or a function (policy, N, d, λ) of where it is for.
Time: TypeAlias = float | Sequence[float] | np.ndarray | Callable[[str, int, int, float], float]


def compare(
    policies: Mapping[str, int | Sequence[int]],
    N: int | Sequence[int],
    lam: float | Sequence[float],
    warm_up: Time = 50.0,
    horizon: Time = 100.0,
    **options: Any,
) -> xr.Dataset:
    """Estimate stationary quantities of several policies, each at one or more numbers of probes of its own.

    Parameters
    ----------
    policies : dict
        Names from `policies`, each with its d: an integer >= 1, or 0 where the policy has none. With a list of d each
        of them makes a policy, called as in sq(2).
    N, lam : scalar or list
        Servers and load; the dataset is the product of the lists.
    warm_up, horizon : float, float64[λ] or callable
        Mean service times: one for all, one for each load, or a function (policy, N, d, λ) of where it is for.
    **options
        What else `stationary` takes: ``replicates``, ``seed``, ``response_time``.

    Returns
    -------
    xarray.Dataset
        The variables of `stationary` on (policy, N, λ), and ``probes`` (policy), the d of each policy.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    validation.mapping("policies", policies, "policy to its d (0: it has none)")
    sizes, loads = validation.several("N", N, validation.servers), validation.several("lam", lam, validation.load)
    chosen = {
        registry.label(name, d) if isinstance(ds, Sequence) else name: (name, d)
        for name, ds in policies.items()
        for d in validation.several("d", ds, lambda d, name: validation.integer(name, d, 0, validation.MAX_PROBES))
    }

    def time(given: Time, name: str, size: int, d: int) -> Any:
        return [given(name, size, d, x) for x in loads] if callable(given) else given

    runs = [
        stationary(name, size, d, loads, time(warm_up, name, size, d), time(horizon, name, size, d), **options)
        .squeeze("d", drop=True)
        .assign_coords(policy=[called])
        for called, (name, d) in chosen.items()
        for size in sizes
    ]
    levels = np.arange(max(run.sizes["queue_length"] for run in runs))
    runs = [run.reindex(queue_length=levels, fill_value=0) for run in runs]
    rows = [_joined(runs[k : k + len(sizes)], "N") for k in range(0, len(runs), len(sizes))]
    return describe(_joined(rows, "policy").assign(probes=("policy", [d for _, d in chosen.values()])))


def _joined(runs: Sequence[xr.Dataset], dim: str) -> xr.Dataset:
    return xr.concat(runs, dim, data_vars="all", join="exact", combine_attrs="drop_conflicts")
