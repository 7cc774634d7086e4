"""Several policies at equal conditions, those with a number of probes and those without, in one dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from dchoices.simulation import stationary
from dchoices.variables import describe


def compare(
    policies: Mapping[str, int], N: int | Sequence[int], lam: float | Sequence[float], **options: Any
) -> xr.Dataset:
    """Estimate stationary quantities of several policies, each at a number of probes of its own.

    Parameters
    ----------
    policies : dict
        Names from `policies`, each with its d: an integer >= 1, or 0 where the policy has none.
    N, lam : scalar or list
        Servers and load; the dataset is the product of the lists.
    **options
        What else `stationary` takes: ``warm_up``, ``horizon``, ``replicates``, ``seed``, ``response_time``.

    Returns
    -------
    xarray.Dataset
        The variables of `stationary` on (policy, N, λ), and ``probes`` (policy), the d of each policy.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    if not isinstance(policies, Mapping) or not policies:
        raise ValueError(f"policies = {policies!r}: must name at least one policy, each with its d (0: it has none)")
    runs = [stationary(name, N, d, lam, **options).squeeze("d", drop=True) for name, d in policies.items()]
    levels = np.arange(max(run.sizes["queue_length"] for run in runs))
    runs = [run.reindex(queue_length=levels, fill_value=0) for run in runs]
    joined = xr.concat(runs, "policy", data_vars="all", join="exact", combine_attrs="drop_conflicts")
    return describe(joined.assign(probes=("policy", list(policies.values()))))
