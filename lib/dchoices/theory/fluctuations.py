"""Gaussian fluctuations of the stationary system with memory below the threshold, a conjecture derived from the model.

For λ < 1 - 1/d every server is busy with observation 1 (B of them), idle but still remembered as busy (Z), or known to
be idle, and every job goes to one of the last, as long as there is one. A departure takes one from B and adds one to Z.
An arrival adds one to B and takes from Z the M servers that its probes find there, a binomial number with mean 1 and
variance 1 - 1/d at the fixed point, where Z = N/d. So per server, with δ = λd, the drift has the matrix
J = [[-1, 0], [1, -δ]], the noise Q = λ [[2, -2], [-2, 1 + E M²]], and the covariance Σ solves JΣ + ΣJ' + Q = 0.
"""

from __future__ import annotations

from dchoices import validation


def fluctuations_below_threshold(lam: float, d: int, found_variance: float | None = None) -> tuple[float, float]:
    """Return the limits of N times the stationary variance of the share of busy and of known idle servers.

    They are λ, as for the M/M/∞ queue, and λ + (2 + v)/(2d) - (2δ + 1)/(d(1 + δ)) with v = Var M = 1 - 1/d.

    Parameters
    ----------
    lam : float
        Load λ in (0, 1 - 1/d).
    d : int
        Probes per job, >= 2.
    found_variance : float, optional
        Another v, for a control: 1 is that of a Poisson variable.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    lam, d = validation.load(lam), validation.probes(d)
    if lam >= 1 - 1 / d:
        raise ValueError(f"lam = {lam}: must be below the threshold 1 - 1/d = {1 - 1 / d:g}")
    v = 1 - 1 / d if found_variance is None else validation.positive("found_variance", found_variance, zero=True)
    delta = lam * d
    return lam, lam + (2 + v) / (2 * d) - (2 * delta + 1) / (d * (1 + delta))
