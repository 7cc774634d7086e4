"""The claim about how fast fluid paths settle."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import xarray as xr

from dchoices.claims.engine import CLAIM, Cell, Data, claim, missing, where
from dchoices.theory.closed_forms import distance_to_switch, optimality_threshold

# Starts with at most one job, and one remembered, at each server.
FEW_JOBS = ("empty", "stale-1", "overloaded-1")
# λd this far from 1 keeps the other rate of the last mode a fifth and more away.
AWAY_FROM_ONE = 0.25
# Nearest to λd = 1 the next rate is a quarter above: a rate within a tenth is that of no other deviation.
RATE_TOLERANCE = 0.1
# Nearer to the threshold, in units of 1-λ, the last switch comes when the distance is already as small as where the
# rate is measured.
AWAY_FROM_THRESHOLD = 1e-4
# Loads so little above the threshold are the control.
JUST_ABOVE = 0.05


def _loads(model: str, d: int, loads: np.ndarray) -> Iterator[float]:
    """Yield the loads of the claim, or of its control."""
    threshold = optimality_threshold(d)
    for lam in loads.tolist():
        if distance_to_switch(lam, d) < AWAY_FROM_THRESHOLD * (1 - lam):
            continue
        if model == CLAIM and lam < threshold and abs(lam * d - 1) >= AWAY_FROM_ONE:
            yield lam
        if model != CLAIM and d >= 2 and threshold < lam <= threshold + JUST_ABOVE:
            yield lam


def _slowest(paths: xr.Dataset, rate: float) -> tuple[float, float]:
    """Return the lowest rate over the starts, as one may miss the slowest mode, and its half-width, over `rate`."""
    low = float((paths.relaxation_rate - paths.relaxation_rate_error).min()) / rate
    high = float((paths.relaxation_rate + paths.relaxation_rate_error).min()) / rate
    return (low + high) / 2, (high - low) / 2 if bool(paths.settled.all()) else math.inf


@claim(
    id="P10",
    statement="If λ < 1 - 1/d, the fluid path converges exponentially to the fixed point, at rate min(1, λd).",
    source="convergence to the fixed point, arXiv:1802.06566; the rate is derived from the model",
    quantity="rate at which the distance of the full state from the fixed point dies out after the last switch, over "
    "min(1, λd), slowest of the starts with at most one job at a server",
    tolerance_reason="the last mode has the rates 1, λd and 1+λd; with λd a quarter or more away from 1 a rate within "
    "a tenth of min(1, λd) is none of the others. The interval holds what powers of t and the next exponential can do",
    controls={"above": "λ above the threshold by 0.05 at most, d >= 2"},
    dataset="convergence",
    figure="fig-convergence",
)
def relaxation(data: Data, model: str) -> Iterator[Cell]:
    """Lowest rate over the starts, at every load of the model."""
    dataset = data["convergence"]
    dataset = dataset.sel(start=[start for start in FEW_JOBS if start in dataset.start])
    if not dataset.start.size:
        yield missing(f"paths from {', '.join(FEW_JOBS)}")
        return
    for d in dataset.d.values.tolist():
        for lam in _loads(model, d, dataset["λ"].values):
            value, half_width = _slowest(dataset.sel({"d": d, "λ": lam}), min(1.0, lam * d))
            place = where({"d": d, "λ": lam})
            low, high = 1 - RATE_TOLERANCE, 1 + RATE_TOLERANCE
            yield Cell(f"rate over min(1, λd), {place}", value, half_width, low, high, exact=True)
