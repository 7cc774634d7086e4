"""The claims about paths: the fluid limit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr

from dchoices import statistics
from dchoices.claims.engine import CLAIM, Cell, Data, claim, missing
from dchoices.claims.selection import ENOUGH_SERVERS, REVIEW, far
from dchoices.theory.closed_forms import optimality_threshold

# Numbers of servers that a slope against log N needs at least.
LADDER = 3
# A slope of log distance against log N of -1/2 is met within this: corrections of relative order N^(-1/2) at the foot
# of the ladder bend it by some hundredths, while a wrong limit has slope 0.
SLOPE_TOLERANCE = 0.1


def _slopes(distance: xr.DataArray) -> np.ndarray:
    """Return, per replicate, the slope of log distance against log N, averaged over λ."""
    points = np.log(distance.transpose("N", "replicate", "λ").values)
    size = np.log(distance.N.values.astype(float))
    slope = np.polyfit(size, points.reshape(size.size, -1), 1)[0]
    return slope.reshape(points.shape[1:]).mean(axis=1)


@claim(
    id="P1",
    statement="The occupancy converges to the fluid path as N grows, from every start.",
    source="fluid limit, " + REVIEW,
    quantity="slope of log sup-distance to the fluid path against log N, per start, d and side of the threshold, away "
    "from steps of the bound",
    tolerance_reason="N^(-1/2) fluctuations have slope -1/2, a wrong limit has slope 0; corrections at the foot of the "
    "ladder bend it by less than 0.1",
    controls={"d+1": "the fluid path with d + 1 probes"},
    dataset="trajectories",
    figure="fig-error",
)
def fluid_limit(data: Data, model: str) -> Iterator[Cell]:
    """Slope per start, d and side of the threshold, averaged over the loads away from steps of the bound.

    The control has the side above the threshold only: from empty below it, queue lengths do not depend on d.
    """
    name = "sup_distance" if model == CLAIM else "sup_distance_control"
    runs = {"empty": data["trajectories"][name]}
    runs |= {str(start): data["starts"][name].sel(start=start) for start in data["starts"].start.values}
    groups: list[tuple[str, np.ndarray]] = []
    for start, distance in runs.items():
        if distance.N.max() < ENOUGH_SERVERS or distance.N.size < LADDER:
            yield missing(f"a ladder of {LADDER} N up to {ENOUGH_SERVERS}, start {start}")
            continue
        for d in distance.d.values.tolist():
            for side in ("above",) if model != CLAIM else ("below", "above"):
                keep = [
                    far(x, d) and (x > optimality_threshold(d)) == (side == "above")
                    for x in distance["λ"].values.tolist()
                ]
                if any(keep):
                    slopes = _slopes(distance.sel(d=d).isel({"λ": keep}))
                    groups.append((f"start {start}, d = {d}, λ {side} 1 - 1/d", slopes))
    for at, slopes in groups:
        width = float(statistics.half_width(slopes)) * statistics.widening(slopes.size, len(groups))
        yield Cell(at, float(slopes.mean()), width, -0.5 - SLOPE_TOLERANCE, -0.5 + SLOPE_TOLERANCE)
