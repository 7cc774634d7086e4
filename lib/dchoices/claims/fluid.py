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


def _slope(distance: xr.DataArray) -> tuple[float, float, float]:
    """Return the slope of log distance, averaged over λ, against log N, its standard error and degrees of freedom.

    Replicates weigh alike at every N, as √N times the distance has a limit in law: log distance scatters alike.
    """
    sizes = distance.N.values
    found = [distance.sel(N=size).dropna("replicate").transpose("replicate", "λ").values for size in sizes]
    return statistics.slope(np.log(sizes.astype(float)), [np.log(values).mean(axis=1) for values in found])


@claim(
    id="P1",
    statement="The occupancy converges to the fluid path as N grows, from every start.",
    source="fluid limit, " + REVIEW,
    quantity="slope of log sup-distance to the fluid path against log N, per start, d and side of the threshold, away "
    "from steps of the bound; least squares over all replicates, with the spread at each N in its interval and the "
    "degrees of freedom of Welch and Satterthwaite",
    tolerance_reason="N^(-1/2) fluctuations have slope -1/2, a wrong limit has slope 0; corrections at the foot of the "
    "ladder bend it by less than 0.1",
    controls={"d+1": "the fluid path with d + 1 probes"},
    dataset="ladder",
    figure="fig-starts",
)
def fluid_limit(data: Data, model: str) -> Iterator[Cell]:
    """Slope per start, d and side of the threshold, averaged over the loads away from steps of the bound.

    The trajectories are long, from the empty system; the ladder is short in time and goes to the largest N, from every
    start. The control has the side above the threshold only: where every job finds an idle server, d does not matter.
    """
    name = "sup_distance" if model == CLAIM else "sup_distance_control"
    runs = [("empty", data["trajectories"][name])]
    runs += [(str(start), data["ladder"][name].sel(start=start)) for start in data["ladder"].start.values]
    groups: list[tuple[str, tuple[float, float, float]]] = []
    for start, distance in runs:
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
                    at = f"slope from {start}, d = {d}, λ {side} 1 - 1/d, N to {distance.N.values.max()}"
                    groups.append((at, _slope(distance.sel(d=d).isel({"λ": keep}))))
    for at, (value, error, freedom) in groups:
        width = error * statistics.student(freedom, len(groups))
        yield Cell(at, value, width, -0.5 - SLOPE_TOLERANCE, -0.5 + SLOPE_TOLERANCE)
