"""The claim about heavy traffic: how slowly response times grow."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import xarray as xr

from dchoices import registry, statistics
from dchoices.claims.engine import CLAIM, Cell, Data, claim, missing, where
from dchoices.claims.selection import ENOUGH_SERVERS, NEARER_THAN_CONTROL, REVIEW, far
from dchoices.heavy_traffic import limit_response, periods, slope
from dchoices.theory.closed_forms import sq_mean_response_time

# What SQ(d+1) loses has to exceed this to be told from the rounding of a fixed point.
RESOLVED = 1e-9
# N servers with few of them idle hold jobs in excess of the limit, which queue as in M/M/1: 1/(N(1-λ)) of a service
# time for each job. It must be below this part of the tolerance, so that most of it is left for the intervals.
EXCESS = 0.5


def _policy(model: str) -> str:
    return "sq-memory" if model == CLAIM else "sq"


def _room(lam: float, d: int) -> float:
    """Return how far from the limit R may be: 0.4 of the way to memoryless SQ(d+1)."""
    return NEARER_THAN_CONTROL * (limit_response("sq", lam, d + 1) - limit_response("sq-memory", lam, d))


def _growth_cells(ds: list[int], model: str) -> Iterator[Cell]:
    """Yield the growth of log(1/(1-λ)) as R grows by one, for the claim without memory too, over the last period.

    It is the inverse of the slope, which is finite for d = 1 without memory too: 0.
    """
    for d in ds:
        near = NEARER_THAN_CONTROL * math.log1p(1 / d)  # of log(1+d) - log d
        limits = {_policy(model): math.log1p(d)}
        if model == CLAIM and d > 1:
            limits["sq"] = math.log(d)
        for policy, limit in limits.items():
            for period in periods(d)[-1:]:
                at = f"growth of log(1/(1-λ)) with R, {registry.label(policy, d)}"
                yield Cell(at, 1 / slope(policy, d, period), 0.0, limit - near, limit + near, exact=True)


def _order_cells(grid: xr.Dataset, model: str) -> Iterator[Cell]:
    """Yield the largest (R-1) over that of SQ(d+1), which is below SQ(d), on the grid of fixed points."""
    loads = grid["λ"].values.tolist()
    for d in grid.d.values[grid.d.values > 1].tolist():
        least = np.array([sq_mean_response_time(lam, d + 1) - 1 for lam in loads])
        ours = grid.mean_response_time.sel(d=d).values
        if model != CLAIM:
            ours = np.array([sq_mean_response_time(lam, d) for lam in loads])
        told = least > RESOLVED
        if told.any():
            place = f"largest (R-1) over that of SQ(d+1), d = {d}, {told.sum()} loads"
            largest = float(((ours - 1)[told] / least[told]).max())
            yield Cell(place, largest, 0.0, high=math.nextafter(1, 0), exact=True)


def _estimate(runs: xr.Dataset, policy: str, d: int, lam: float) -> tuple[float, float] | None:
    """Return R at the largest N and the half-width of its own interval; None where it was not run."""
    called = registry.label(policy, d)
    if called not in runs.policy:
        return None
    point = runs.sel({"policy": called, "N": runs.N.max(), "λ": lam})
    half_width = float(point.controlled_response_time_ci95) if point.warm_up_ok else math.inf
    return float(point.controlled_response_time), half_width


def _simulated_cells(runs: xr.Dataset, model: str) -> list[Cell]:
    """Return R less its limit, and by how much SQ(d) and SQ(d+1) exceed it, at loads that are light enough for N."""
    N, policy = int(runs.N.max()), _policy(model)
    places = [
        (int(d), lam)
        for d in np.unique(runs.probes.values)
        for lam in runs["λ"].values.tolist()
        if N >= ENOUGH_SERVERS and d > 1 and far(lam, int(d)) and 1 / (N * (1 - lam)) <= EXCESS * _room(lam, int(d))
    ]
    found = []
    for d, lam in places:
        ours, others = _estimate(runs, policy, d, lam), [_estimate(runs, "sq", k, lam) for k in (d, d + 1)]
        if ours is None or None in others or registry.label("sq-memory", d) not in runs.policy:
            continue
        at = where({"N": N, "d": d, "λ": lam})
        far_off = _room(lam, d)
        found.append(
            (f"R less its limit, {at}", ours[0] - limit_response("sq-memory", lam, d), ours[1], -far_off, far_off)
        )
        found += [
            (f"R of SQ({k}) less R, {at}", other[0] - ours[0], other[1] + ours[1], 0.0, math.inf)
            for k, other in zip((d, d + 1), others, strict=True)
            if other is not None
        ]
    # The control variate takes one degree of freedom from the intervals.
    factor = statistics.widening(int(runs.attrs["replicates"]) - 1, max(1, len(found)))
    return [Cell(at, value, factor * width, low, high) for at, value, width, low, high in found]


@claim(
    id="P7",
    statement="No persistent queueing: with memory R stays at its limit for each λ, and as λ tends to 1, "
    "R / log(1/(1-λ)) tends to 1/log(1+d), without memory to 1/log d (d >= 2); R is below that of SQ(d) and of "
    "SQ(d+1).",
    source="heavy traffic, " + REVIEW + "; limits derived from the model, without memory Mitzenmacher 2001",
    quantity="by how much log(1/(1-λ)) grows as R grows by one, at fixed points over the last whole period of the "
    "bound up to λ = 0.99999, with memory and without; the largest (R-1) over that of SQ(d+1) on a grid of loads; "
    "simulated R less its limit, and R of SQ(d) and SQ(d+1) less R, away from steps of the bound and where N(1-λ) is "
    "large",
    tolerance_reason="growth within 0.4 of log(1+d) - log d from its limit; R within 0.4 of the way to SQ(d+1) from "
    "its limit, where jobs in excess of it, 1/(N(1-λ)), take at most half of that; a ratio below 1, differences above "
    "0",
    controls={"sq": "memoryless SQ(d)"},
    dataset="heavy_traffic",
    figure="fig-heavy-traffic",
)
def heavy_traffic(data: Data, model: str) -> Iterator[Cell]:
    """Fixed points for every d of the dense grid, simulated heavy traffic at its largest N."""
    grid, runs = data["fixed_points"], data["heavy_traffic"]
    yield from _growth_cells(grid.d.values.tolist(), model)
    yield from _order_cells(grid, model)
    yield from _simulated_cells(runs, model) or [missing("runs with memory, SQ(d) and SQ(d+1) where N(1-λ) is large")]
