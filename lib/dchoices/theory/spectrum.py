"""The fluid model with memory, linearised at its fixed point: how fast small deviations die out.

In mode k the drift is linear but for the dispatch of the flow λR_k over the servers with observation k. Servers with an
observation above k+1 obey rates of their own, 1, δ = λd and 1+δ, none of which is the slowest; the pairs with
observation k or k+1 are closed.
"""

from __future__ import annotations

import numpy as np

from dchoices import validation
from dchoices.theory.closed_forms import fixed_point_state


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


def spectral_gap(lam: float, d: int) -> float:
    """Return the rate at which the slowest deviation from the fixed point of SQ(d) with memory dies out.

    It is the distance from 0 to the nearest real part in the spectrum of the linearised drift, without the zero that
    stands for the conserved number of servers: min(1, λd) below 1 - 1/d. At an integer argument of the bound the drift
    has a kink, and it is the lower of the limits from either side: 0 at a level Q >= 2, where relaxation is algebraic,
    and 1/d at the threshold (derived from the model).

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

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    lam, d = validation.load(lam), validation.probes(d)
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
