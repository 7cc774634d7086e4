"""The fluid fixed point of SQ(d) with memory for any service law: a heuristic, exact for the exponential law.

Servers are probed at rate δ = λd whatever they do. With k = Q-1 every server has observation k or k+1. One that is
probed with i < k jobs gets k - i jobs at once; jobs left over go at a rate θ to each server observed at k. So while a
job is served nothing but these two events moves the server, and what they do in a time t is a combination of 1, e^-δt,
e^-θt and e^-(δ+θ)t. Averaged over the service time it needs the Laplace transform of the law at δ, θ and δ+θ alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import xarray as xr
from scipy.optimize import brentq

from dchoices import validation
from dchoices.service import ServiceLaw, as_law
from dchoices.theory.closed_forms import STEP_GUARD, queue_bound
from dchoices.variables import describe

# How close θ may come to δ, in units of it: the probability that has both cancels there.
APART = 1e-6
MOST_LEVELS = 100  # linear systems of twice this size are solved for each level


def service_fixed_point(lam: float, d: int, service: str | ServiceLaw) -> xr.Dataset:
    """Return where the fluid limit of SQ(d) with memory settles if its servers follow a service law.

    The level is found by solving, without the formula of `queue_bound`.

    Parameters
    ----------
    lam : float
        Load λ in (0, 1).
    d : int
        Probes per job, >= 1.
    service : str or ServiceLaw
        "exponential", "deterministic", a law from `service_law`, or its label.

    Returns
    -------
    xarray.Dataset
        ``queue_length_pmf`` (i), ``mean_response_time`` (by Little, mean service times) and ``dispatch_to_idle``, the
        fraction of jobs that find an idle server.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    lam, d, law = validation.load(lam), validation.probes(d), as_law(service)
    if (bound := queue_bound(lam, d, law)) > MOST_LEVELS:
        raise ValueError(
            f"lam = {lam!r}: queues go up to about {bound} at d = {d} with service {law.label}, must be at "
            f"most {MOST_LEVELS}"
        )
    pmf, to_idle = _settled(lam, d, law)
    levels = np.arange(pmf.size)
    return describe(
        xr.Dataset(
            {
                "queue_length_pmf": ("i", pmf),
                "mean_response_time": ((), float(levels @ pmf) / lam),
                "dispatch_to_idle": ((), to_idle),
            },
            coords={"i": levels},
            attrs={"lam": lam, "d": d, "policy": "sq-memory", "service": law.label},
        )
    )


def _settled(lam: float, d: int, law: ServiceLaw) -> tuple[np.ndarray, float]:
    """Return the shares by queue length where p_0 = 1-λ, and the fraction of jobs that find an idle server."""
    if d * (1 - lam) >= 1 - STEP_GUARD:
        return np.array([1 - lam, lam]), 1.0
    k = 1
    while _level(1.0, k, lam * d, law)[0][0] > (1 - lam) * (1 + STEP_GUARD):
        k += 1

    def missing(u: float) -> float:
        return float(_level(u, k, lam * d, law)[0][0]) / (1 - lam) - 1

    return _level(brentq(missing, 0.0, 1.0, xtol=1e-14) if missing(1.0) < 0 else 1.0, k, lam * d, law)


def _level(u: float, k: int, delta: float, law: ServiceLaw) -> tuple[np.ndarray, float]:
    """Return the shares by queue length and the fraction of jobs to idle servers, for θ/(1+θ) = u and k >= 1.

    Looked at when services begin and end, a server is a chain on (i, j), i >= 1: by a row of i = 1…k with j = k, then
    one of i = 1…k+1 with j = k+1. An idle one waits for the next of the two events.
    """
    theta = u / (1 - u) if u < 1 else math.inf
    if abs(theta - delta) < APART * delta:
        theta = delta * (1 + APART)
    ends = _during_service(law.laplace, theta, k, delta)
    spent = _during_service(lambda s: (1 - law.laplace(s)) / s if s else 1.0, theta, k, delta)
    begins = np.zeros_like(ends)
    upper = slice(k, 2 * k + 1)
    begins[:, : k - 1], begins[:, k : 2 * k] = ends[:, 1:k], ends[:, k + 1 :]
    idle = ends[:, [0, k]]  # with observation k, with k+1
    begins[:, k - 1] += idle @ [delta / (delta + theta), 1.0]
    begins[:, k] += idle[:, 0] * (1 - delta / (delta + theta))
    balance = np.vstack([begins.T - np.eye(2 * k + 1), np.ones(2 * k + 1)])
    share = np.linalg.lstsq(balance, np.append(np.zeros(2 * k + 1), 1.0), rcond=None)[0]
    time = np.zeros(k + 2)
    time[0] = share @ idle @ [1 / (delta + theta), 1 / delta]
    time[1 : k + 1] += (share @ spent)[:k]
    time[1:] += (share @ spent)[upper]
    return time / time.sum(), float(share @ idle.sum(axis=1))


def _during_service(of: Callable[[float], float], theta: float, k: int, delta: float) -> np.ndarray:
    """Return where a server is that began a service at a pair (i, j): float64[2k+1, 2k+1].

    With of(s) = E[e^-sS] that is the probability of a pair at the end of a service, with of(s) = E[∫_0^S e^-st dt] the
    time spent there: the probability of a pair after a time t is a combination of e^-st.
    """
    neither, no_probe, no_job = of(delta + theta), of(delta), of(theta)
    at_k = delta * (no_job - no_probe) / (delta - theta)  # probed since, and no job after the first probe
    matrix = np.zeros((2 * k + 1, 2 * k + 1))
    full, raised = k - 1, 2 * k  # (k, k), (k+1, k+1)
    for i in range(1, k + 1):
        if i < k:
            matrix[i - 1, i - 1] = neither
            matrix[i - 1, k + i] = no_probe - neither
        matrix[[i - 1, k + i - 1], full] = at_k
        matrix[k + i - 1, k + i - 1] = no_probe
    matrix[full] = 0.0
    matrix[full, full] = no_job
    matrix[:, raised] = of(0.0) - matrix.sum(axis=1)
    return matrix
