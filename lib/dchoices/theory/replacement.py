"""What probing with replacement costs, to first order in 1/N: a conjecture derived from the model."""

from __future__ import annotations

import numpy as np

from dchoices import validation
from dchoices.theory.closed_forms import TAIL_MASS, fixed_point_state, optimality_threshold

STEP = 1e-4  # of d, for the derivative: its square is far below what a simulation can tell, and far above rounding


def replacement_limit(lam: float, d: int, policy: str = "sq-memory") -> float:
    """Return the limit of N (R - R'), the mean response times with and without replacement.

    Of d probes with replacement d - d(d-1)/(2N) + … hit different servers. With memory the fluid model knows the probes
    by their mean number alone, so the limit is -d(d-1)/2 ∂R/∂d at its fixed point, for d as a real number: 0 below the
    threshold. Without, all d probes hit servers with i jobs or more with probability s_i^d, and
    s_i^d - d(d-1)/2 s_i^(d-1) (1 - s_i)/N + … if they are different, which shifts the fixed point
    s_i = λ P(all hit i - 1 jobs or more) by -u_i/N, with u_i = λ s_(i-1)^(d-1) (d u_(i-1) + d(d-1)/2 (1 - s_(i-1)));
    the limit is Σ u_i / λ.

    Parameters
    ----------
    lam : float
        Load λ in (0, 1); with memory away from the steps of the bound, where there is no derivative.
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
    if validation.choice("policy", policy, ("sq", "sq-memory")) == "sq":
        return _memoryless(lam, d)
    if lam < optimality_threshold(d):
        return 0.0
    states = (fixed_point_state(lam, d + step).sum(axis=1) for step in (STEP, -STEP))
    more, fewer = (float(pmf @ np.arange(pmf.size)) / lam for pmf in states)
    return -d * (d - 1) / 2 * (more - fewer) / (2 * STEP)


def _memoryless(lam: float, d: int) -> float:
    if d == 1:  # one probe is one server
        return 0.0
    tail, shift, total = 1.0, 0.0, 0.0
    while tail >= TAIL_MASS:
        shift = lam * tail ** (d - 1) * (d * shift + d * (d - 1) / 2 * (1 - tail))
        tail = lam * tail**d
        total += shift
    return total / lam
