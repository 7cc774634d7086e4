"""The limit law at a later step of the bound (derived from the model).

At λ_Q, Q >= 2, all servers have observation Q in the limit, and the fraction y of those with Q - 1 is what a system of
N servers forgets last: y' = -c y^Q with c = (1 + 1/δ)^(Q-2), δ = λd, and white noise of variance σ²/N per unit of time,
reflected at 0.

c: along the steady states of the levels Q - 1 and Q, at any rate θ of dispatch, p_0 = (1+δ)^(-Q) + a_0 δ/(1+δ) exactly,
where a_0 is the fraction of servers that are idle and have observation Q - 1. For small y they are there after Q - 1
services during short stays of 1/θ = y/r, with r = δ/(1+δ) the flow through this observation: a_0 = y (y/r)^(Q-1).
"""

from __future__ import annotations

import math

import numpy as np

from dchoices import validation
from dchoices.theory.closed_forms import fixed_point_state, switch_load


def slow_variable(level: int, d: int) -> np.ndarray:
    """Return u, float64[Q+1], what servers with i jobs and observation Q take from the slow variable at the step λ_Q.

    It is the number of jobs sent less Σ u_i over the servers, with u_Q = 0: linear in the state, and without a drift to
    first order. A server that a probe finds with i jobs takes Q - i jobs before its observation is Q again, so that it
    counts Q - i at once. No drift in any state asks for u_{Q-1} = λ and u_{i-1} = (1+δ) u_i - δ (Q-i) + λ; that servers
    without a job have none either, u_0 = Q - 1/d, is what fixes λ_Q.

    Parameters
    ----------
    level : int
        Q >= 2.
    d : int
        Probes per job.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    level, d = validation.integer("level", level, 2), validation.probes(d)
    lam = switch_load(level, d)
    u = np.zeros(level + 1)
    u[level - 1] = lam
    for queue in range(level - 1, 0, -1):
        u[queue - 1] = (1 + lam * d) * u[queue] - lam * d * (level - queue) + lam
    return u


def noise(level: int, d: int) -> float:
    """Return σ², N times the variance of the slow variable per unit of time at the step λ_Q.

    Parameters
    ----------
    level, d : int
        As for `slow_variable`.
    """
    u, lam = slow_variable(level, d), switch_load(level, d)
    p = fixed_point_state(lam, d).sum(axis=1)
    found = u - (level - np.arange(level + 1))  # gained by a probe
    mean, square = p @ found, p @ found**2
    arrival = 1 + 2 * d * mean + d * square + d * (d - 1) * mean**2  # E (1 + Σ over the d probes)²
    return float(lam * arrival + p[1:] @ np.diff(u) ** 2)


def lowest_share_limit(level: int, d: int) -> float:
    """Return the limit of N^(1/(Q+1)) E[y] at the step λ_Q, Q >= 2: y has the density ∝ exp(-2cN y^(Q+1)/((Q+1)σ²)).

    Parameters
    ----------
    level, d : int
        As for `slow_variable`.
    """
    variance = noise(level, d)
    c = (1 + 1 / (switch_load(level, d) * d)) ** (level - 2)
    power = level + 1
    return (2 * c / (power * variance)) ** (-1 / power) * math.gamma(2 / power) / math.gamma(1 / power)
