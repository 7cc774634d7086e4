"""Exponents of power laws in N, and what tells a power from a faster fall."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

# Fewer numbers of servers make no ladder, and a value enters a logarithm if it is so many half-widths away from 0.
FEWEST = 3
RESOLVED = 1.5


@dataclass(frozen=True)
class Ladder:
    """Independent estimates of one quantity over the numbers of servers.

    Attributes
    ----------
    N, value, half_width : float64[K]
        Servers, increasing; estimates; half-widths of their 95 % intervals, infinite where a warm-up was too short.
    """

    N: np.ndarray
    value: np.ndarray
    half_width: np.ndarray

    @classmethod
    def of(cls, runs: xr.Dataset, quantity: str, point: str, d: int) -> Ladder:
        """Return the estimates that a dataset of `dchoices.finite_size` has, maybe none."""
        if point not in runs["point"] or d not in runs["d"]:
            return cls(*np.empty((3, 0)))
        there = runs[[quantity, f"{quantity}_ci95", "horizon", "warm_up_ok"]].sel(point=point, d=d).sortby("N")
        there = there.isel(N=np.flatnonzero(there["horizon"] > 0))
        half_width = np.where(there["warm_up_ok"], there[f"{quantity}_ci95"], np.inf)
        return cls(there["N"].values.astype(float), there[quantity].values, half_width)

    @property
    def resolved(self) -> bool:
        """Whether there are enough values, all of one sign and away from 0."""
        one_sign = bool((self.value > 0).all() or (self.value < 0).all())
        return self.N.size >= FEWEST and one_sign and bool((np.abs(self.value) > RESOLVED * self.half_width).all())

    def exponent(self) -> tuple[float, float]:
        """Return the least-squares slope of log |value| against log N, every N alike, and its half-width."""
        x = np.log(self.N) - np.log(self.N).mean()
        weight = x / (x @ x)
        return float(weight @ np.log(np.abs(self.value))), float(np.linalg.norm(weight * self._relative))

    def local_exponent(self) -> tuple[float, float]:
        """Return the same for the two largest N alone."""
        return Ladder(self.N[-2:], self.value[-2:], self.half_width[-2:]).exponent()

    def exponential_part(self) -> tuple[float, float]:
        """Return the part of the fall that is an exponential's, bN / (s + bN) in the middle of the N; its half-width.

        Of the weighted least-squares fit log |value| = a - s log N - bN. It is 1 for an exponential, 0 for a power.
        """
        middle = np.sqrt(self.N[0] * self.N[-1])
        design = np.column_stack([np.ones_like(self.N), -np.log(self.N), -self.N / middle])
        (_, s, b), covariance = _fit(design, np.log(np.abs(self.value)), self._relative)
        gradient = np.array([0.0, -b, s]) / (s + b) ** 2
        return float(b / (s + b)), float(np.sqrt(gradient @ covariance @ gradient))

    def root_constant(self) -> tuple[float, float]:
        """Return where √N · value goes, by its weighted least-squares line against 1/√N, and the half-width."""
        root = np.sqrt(self.N)
        design = np.column_stack([np.ones_like(root), 1 / root])
        (constant, _), covariance = _fit(design, root * self.value, root * self.half_width)
        return float(constant), float(np.sqrt(covariance[0, 0]))

    @property
    def _relative(self) -> np.ndarray:
        return self.half_width / np.abs(self.value)


def _fit(design: np.ndarray, values: np.ndarray, widths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the weighted least-squares coefficients and their covariance, in units of the squares of `widths`."""
    weighted = design / widths[:, None] ** 2
    covariance = np.linalg.inv(design.T @ weighted)
    return covariance @ (weighted.T @ values), covariance


def exponent_at_zero(x: np.ndarray, values: np.ndarray, rounding: float) -> tuple[float, float]:
    """Return the exponent of x in exact values as x -> 0, from the smallest x, and how far that may be from the limit.

    Corrections die out with x: from one ratio of neighbours to the next the exponent moves by more than what is left,
    if they fall at least by half. What rounding adds is bounded too.

    Parameters
    ----------
    x : float64[K]
        Increasing, K >= 3, in a geometric progression.
    values : float64[K]
        Positive.
    rounding : float
        Absolute error of the values.
    """
    slopes = np.diff(np.log(values[:3])) / np.diff(np.log(x[:3]))
    return float(slopes[0]), float(abs(slopes[1] - slopes[0]) + 2 * rounding / values[0] / np.log(x[1] / x[0]))
