"""Figures of trajectories beside the fluid path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import holoviews as hv
import numpy as np
import xarray as xr

from dchoices.plots import elements as el
from dchoices.plots.figure import (
    DENSE,
    LIMIT,
    WITH,
    WITHOUT,
    Datasets,
    Figure,
    Panel,
    either_side,
    example_d,
    nearest,
    thin,
)

# Queue lengths are drawn in time when the fluid path brings them above this share.
WORTH_A_PANEL = 0.01


def trajectories(data: Datasets) -> Figure:
    """Occupancy in time against the fluid path: bands of one standard deviation, one colour per N."""
    ds, fluid = data["trajectories"], data["fluid"]
    d = example_d(ds["d"].values)
    loads = either_side(ds["λ"].values, d)
    sizes = [int(n) for n in ds["N"].values]
    colors = el.ladder(sizes)
    panels = []
    for lam in loads:
        path = fluid["occupancy"].sel(d=d, λ=nearest(fluid["λ"], lam))
        used = [i for i in (1, 2, 3) if i in path["queue_length"] and path.sel(queue_length=i).max() > WORTH_A_PANEL]
        panels += [_path_panel(ds.sel(d=d, λ=lam), path, i, colors) for i in used]
    key = [el.Key("fluid path", LIMIT, "dashed")]
    key += [el.Key(f"N = {n:,}".replace(",", "\u202f"), c, "area") for n, c in zip(sizes, colors, strict=True)]
    facts = {"d": d, "loads": loads, "sizes": sizes, "replicates": ds.sizes["replicate"]}
    alt = f"Shares of servers by queue length in time for d = {d} and a ladder of N, with the fluid path."
    return Figure("fig-trajectories", alt, ("trajectories", "fluid"), panels, key, facts=facts)


def _path_panel(ds: xr.Dataset, path: xr.DataArray, i: int, colors: Sequence[str]) -> Panel:
    """Share of servers with i jobs: a band and a mean for each N, and the fluid path."""
    jobs = f"{i} job{'s' * (i > 1)}"
    dims = (el.TIME, hv.Dimension("share", label=f"share with {jobs}"))
    end = _settled(path)
    limit = path.sel(queue_length=i, t=slice(None, end))
    limit = limit.isel(t=thin(limit.sizes["t"]))
    top = float(limit.max())
    parts: list[Any] = []
    for n, color in zip(ds["N"].values.tolist(), colors, strict=True):
        run = ds.sel(N=n, queue_length=i, t=slice(None, end))
        run = run.isel(t=thin(run.sizes["t"], DENSE // 2))
        mean, std, t = run["occupancy"].values, run["occupancy_std"].values, run["t"].values
        tips = [("N", f"{n}"), ("t", "@t{0.00}"), ("mean share", "@share{0.0000}")]
        parts.append(el.band(t, np.maximum(mean - std, 0), mean + std, dims, color, alpha=0.35))
        parts.append(el.line(t, mean, dims, color, width=1, tooltips=tips))
        top = max(top, float((mean + std).max()))
    tips = [("fluid path, t", "@t{0.00}"), ("share", "@share{0.0000}")]
    parts.append(el.line(limit["t"], limit, dims, LIMIT, "dashed", 1.8, tooltips=tips))
    return Panel(hv.Overlay(parts), f"λ = {path['λ'].item():g}, {jobs}", {"ylim": (0, 1.1 * top)})


def _settled(path: xr.DataArray) -> float:
    """Time to show: half as long again as the fluid path needs to come within 0.005 of its last value."""
    gap = 0.5 * abs(path - path.isel(t=-1)).sum("queue_length")
    moving = path["t"].values[(gap > 0.005).values]
    last = float(path["t"].max())
    return min(last, max(1.5 * float(moving[-1]) if moving.size else last, 0.1 * last))


def error(data: Datasets) -> Figure:
    """Distance to the fluid path against N from the empty start, one panel per d, one line per λ."""
    ds = data["trajectories"]
    panels = [_error_panel(ds.sel(d=[d]), f"d = {d}") for d in ds["d"].values]
    facts = {"runs": ds["sup_distance"].size, "replicates": ds.sizes["replicate"]}
    alt = "Distance to the fluid path against N on logarithmic axes, for each d, with the control that stays flat."
    return Figure("fig-error", alt, ("trajectories", "fluid"), panels, _ERROR_KEY, facts=facts)


def starts(data: Datasets) -> Figure:
    """The same from several starts up to the largest N, one panel per start, one line per (d, λ)."""
    ds = data["ladder"]
    names = [str(s) for s in ds["start"].values]
    panels = [_error_panel(ds.sel(start=name), f"start: {name}") for name in names]
    replicates = ds["sup_distance"].notnull().any(["start", "d", "λ"]).sum("replicate")
    facts = {"starts": names, "t_end": float(ds["t"].max()), "top": int(ds["N"].max()),
             "most": int(replicates.max()), "fewest": int(replicates.sel(N=ds["N"].max()))}  # fmt: skip
    alt = "Distance to the fluid path against N from several starts, up to the largest N."
    return Figure("fig-starts", alt, ("ladder",), panels, _ERROR_KEY, columns=min(2, len(panels)), facts=facts)


_ERROR_KEY = (
    el.Key("distance to the fluid path", WITH, "solid"),
    el.Key("control: fluid path with d + 1 probes", WITHOUT, "solid"),
    el.Key("slope −1/2", LIMIT, "dashed"),
)


def _error_panel(ds: xr.Dataset, title: str) -> Panel:
    """Lines over N of all (d, λ) in `ds`, as one curve with gaps: many elements are slow to render."""
    dims = (el.SERVERS, hv.Dimension("distance", label="distance to the fluid path"))
    tips = [("d", "@d"), ("load λ", "@lam{0.000}"), ("N", "@N"), ("mean distance", "@distance{0.00000}")]
    parts: list[Any] = []
    for variable, color in (("sup_distance_control", WITHOUT), ("sup_distance", WITH)):
        mean = ds[variable].mean("replicate").sortby("N").transpose("d", "λ", "N")
        d, lam, sizes = (c.values.ravel() for c in xr.broadcast(mean["d"], mean["λ"], mean["N"]))
        gaps = mean.pad(N=(0, 1), constant_values=np.nan)
        parts.append(el.line(np.tile([*mean["N"].values, np.nan], d.size // mean.sizes["N"]), gaps.values.ravel(),
                             dims, color, width=1.1, alpha=0.75))  # fmt: skip
        parts.append(
            el.points(sizes, mean.values.ravel(), dims, color, size=4, tooltips=tips, columns={"d": d, "lam": lam})
        )
    sizes = mean["N"].values.astype(float)
    at_first = float(np.exp(np.log(ds["sup_distance"].sel(N=sizes[0])).mean()))
    parts.append(el.line(sizes, at_first * np.sqrt(sizes[0] / sizes), dims, LIMIT, "dashed", 1.8))
    room = (sizes[0] / 1.3, sizes[-1] * 1.3)
    return Panel(hv.Overlay(parts), title, {"logx": True, "logy": True, "xlim": room})
