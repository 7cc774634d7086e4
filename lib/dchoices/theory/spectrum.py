"""The fluid models, linearised at their fixed points: how fast small deviations die out.

With memory, in mode k the drift is linear but for the dispatch of the flow λR_k over the servers with observation k.
Servers with an observation above k+1 obey rates of their own, 1, δ = λd and 1+δ, none of which is the slowest; pairs
with observation k or k+1 are closed.
"""

from __future__ import annotations

import math

import numpy as np

from dchoices import validation
from dchoices.theory.closed_forms import fixed_point_state, sq_queue_length_pmf


def linearised_drift(state: np.ndarray, k: int, d: int, lam: float) -> np.ndarray:
    """Return the Jacobian of the drift in mode k.

    Parameters
    ----------
    state : float64[L, L]
        Fractions x[i, j], with nothing below observation k and something at it, k < L-1.
    k : int
        The lowest observation with mass.
    d : int
        Probes per job.
    lam : float
        Load λ.

    Returns
    -------
    float64[P, P]
        ∂(dx_p/dt)/∂x_q over the pairs p = (i, j) with k <= j < L, ordered by j, then i. Its columns sum to zero.
    """
    pairs = [(i, j) for j in range(k, len(state)) for i in range(j + 1)]
    at = {pair: p for p, pair in enumerate(pairs)}
    jacobian = np.zeros((len(pairs), len(pairs)))

    def move(source: tuple[int, int], target: tuple[int, int], rate: float | np.ndarray) -> None:
        jacobian[at[target]] += rate
        jacobian[at[source]] -= rate

    unit = np.eye(len(pairs))
    for (i, j), p in at.items():
        if i >= 1:
            move((i, j), (i - 1, j), unit[p])
        move((i, j), (max(i, k), max(i, k)), lam * d * unit[p])
    queue, observation = np.array(pairs).T
    waiting = np.maximum(k - np.arange(len(state)), 0)
    flow, flow_change = lam * (1 - d * waiting @ state.sum(axis=1)), -lam * d * waiting[queue]
    held = state[:, k].sum()
    for i in range(k + 1):
        share = state[i, k] / held
        move((i, k), (i + 1, k + 1), share * flow_change + flow / held * (unit[at[i, k]] - share * (observation == k)))
    return jacobian


def memoryless_drift(lam: float, d: int) -> np.ndarray:
    """Return the Jacobian of the drift of SQ(d) at its fixed point.

    Parameters
    ----------
    lam : float
        Load λ.
    d : int
        Probes per job.

    Returns
    -------
    float64[L, L]
        ∂(ds_i/dt)/∂s_j for i, j = 1, …, L, where s_i is the fraction of servers with at least i jobs and ds_i/dt =
        λ(s_{i-1}^d - s_i^d) - (s_i - s_{i+1}); tridiagonal. Levels end where the fixed point does.
    """
    tails = sq_queue_length_pmf(lam, d)[::-1].cumsum()[::-1][1:]
    arrivals = lam * d * tails ** (d - 1)  # λ ∂(s_i^d)/∂s_i
    return np.diag(-arrivals - 1) + np.diag(arrivals[:-1], -1) + np.diag(np.ones(len(tails) - 1), 1)


def relaxation_time(lam: float, d: int, N: int, policy: str = "sq-memory") -> float:
    """Return how long N servers take to forget their start, in mean service times.

    The longer of two: that of the fluid model, 1 over its spectral gap, and, for systems that are small for their load,
    that of the jobs in excess, which N busy servers serve like a single queue M/M/1 that is N times as fast:
    1/(N (1-√λ)²). They meet where N(1-λ) is of order 1 (derived from the model).

    Parameters
    ----------
    lam : float
        Load λ in (0, 1), away from the steps of the bound with Q >= 2, where relaxation is algebraic.
    d : int
        Probes per job, >= 1.
    N : int
        Servers.
    policy : str
        "sq-memory" or "sq".

    Raises
    ------
    ValueError
        If an argument is out of range, or the load is at a step of the bound.
    """
    gap, N = spectral_gap(lam, d, policy), validation.servers(N)
    if gap == 0:
        raise ValueError(f"lam = {lam!r}: relaxes algebraically, must not be at a step of the bound at d = {d}")
    return max(1 / gap, 1 / (N * (1 - math.sqrt(lam)) ** 2))


def spectral_gap(lam: float, d: int, policy: str = "sq-memory") -> float:
    """Return the rate at which the slowest deviation from the fixed point of SQ(d) dies out, with memory or without.

    It is the distance from 0 to the nearest real part in the spectrum of the linearised drift, without the zero that
    stands for the conserved number of servers. With memory it is min(1, λd) below 1 - 1/d. At an integer argument of
    the bound the drift has a kink, and it is the lower of the limits from either side: 0 at a level Q >= 2, where
    relaxation is algebraic, and 1/d at the threshold (derived from the model).

    What happens next to a step with Q >= 2 shows in the fraction y of servers with observation k = Q-1. On the lower
    side y' = 0 ties the number of jobs n = k + 1 - 1/d - y to it, so that y' = -n' = 1 - λ - p_0. With y the servers
    that run idle while they wait at observation k raise p_0, by an amount of order y^Q, as one gets there through k+1
    short stays. So y' = -(ε + c y^Q), where ε has the sign of λ less the step: the gap vanishes like |ε|^((Q-1)/Q)
    below it, the distance like t^(-1/(Q-1)) at it; above it y is used up.

    Parameters
    ----------
    lam : float
        Load λ in (0, 1).
    d : int
        Probes per job, >= 1.
    policy : str
        "sq-memory" or "sq".

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    lam, d = validation.load(lam), validation.probes(d)
    validation.choice("policy", policy, ("sq-memory", "sq"))
    if policy == "sq" and d == 1:  # M/M/1, whose levels have no end
        return (1 - math.sqrt(lam)) ** 2
    if policy == "sq":
        return -float(np.linalg.eigvals(memoryless_drift(lam, d)).real.max())
    state = fixed_point_state(lam, d)
    k = len(state) - 2
    if not state[:, k].any():
        return 0.0 if k else 1 / d
    jacobian = linearised_drift(state, k, d, lam)
    on_zero_sums = jacobian[:-1, :-1] - jacobian[:-1, -1:]
    return float(-np.linalg.eigvals(on_zero_sums).real.max())


def gap_growth(d: int, below: float) -> float:
    """Return by how much gap/(1-λ) grows, as λ -> 1, from one level of the bound to the next.

    The gap is of order (1-λ) log(1/(1-λ)), not of order 1-λ: along loads whose argument of the bound stays the same
    `below` its integer Q, gap/((1-λ) Q) tends to d/(1+d+d²) · (1 - (1+d)^(-below)) (derived from the model). As λ -> 1
    the number of jobs n is the slowest variable, n' = p_0 - (1-λ), and the others follow it along the steady states of
    the levels k and k+1, of which the rate θ of dispatch is of order 1/k: p_0 = (1+d)^(-k) (E + (1-E)/(1+d)) with
    E = exp(-kθ/(1+d)), while -dn/dθ = 1/d + d/(1+d). The gap is -dp_0/dn.

    Parameters
    ----------
    d : int
        Probes per job, >= 1.
    below : float
        Q less the argument of the bound, in [0, 1).
    """
    return d / (1 + d + d * d) * (1 - (1 + d) ** -below)
