"""The figures of the report: each a list of panels (HoloViews overlays), a key, and the values its caption quotes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import holoviews as hv
import numpy as np
import xarray as xr

from dchoices import registry
from dchoices.plots import elements as el
from dchoices.theory import closed_forms

Datasets = Mapping[str, xr.Dataset]

# A level counts as occupied in a simulation when more than this share of the servers holds it: the mass that a finite
# system leaves above the fluid bound is of order 1/√N or less, the fluid mass at the bound is rarely so small.
OCCUPIED = 1e-3
# Load at which queue-length tails are compared: high enough for long queues, low enough to be stationary soon.
TAIL_LOAD = 0.95
# Shares below this are not drawn on a logarithmic axis: less than one server in the largest system.
TAIL_FLOOR = 1e-6
# Longest queue drawn in the tail panels; M/M/1 goes on far beyond it.
TAIL_LENGTH = 16
# Longest queue with a colour of its own in the stacked fixed points.
STACKED = 6
# Most ticks on an axis of queue lengths.
MOST_TICKS = 6
# Queue lengths are drawn in time when the fluid path brings them above this share.
WORTH_A_PANEL = 0.01
# Points kept of a dense line: more than a panel has pixels to tell apart.
DENSE = 240
# Load at which policies are compared: high enough to tell them apart, and the highest at which most cells are exact.
COMPARED_LOAD = 0.9
# Loads that are named on an axis of 1 / (1 - λ).
LOAD_TICKS = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995)
# Probes per job at which the limits of cost and benefit are drawn.
PROBES = (1, 2, 3, 4, 5, 6, 8, 10, 14, 20, 30, 50, 100)

MEMORY, MEMORYLESS = "sq-memory", "sq"
WITH, WITHOUT, LIMIT = el.BLUE, el.VERMILLION, el.BLACK
# How policies look side by side: colour and dash. Those that coincide at low loads show through each other's gaps.
LOOKS = {
    "random": (el.GREY, "solid"),
    MEMORYLESS: (WITHOUT, "solid"),
    MEMORY: (WITH, "solid"),
    "sq-log": (el.ORANGE, "solid"),
    "jsq": (el.BLACK, "solid"),
    "jiq": (el.GREEN, "dashed"),
    "sq-sqrt": (el.SKY, "dotted"),
}
OTHER_COLORS = (el.PURPLE, "#7a5c3a", "#a9a100")


@dataclass(frozen=True)
class Panel:
    """One pair of axes: its content and the options both backends share (axis scales and limits)."""

    content: hv.Overlay
    title: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Figure:
    """Panels under one caption; `facts` are the values a caption may quote, `studies` the datasets it is made from."""

    anchor: str
    alt: str
    studies: Sequence[str]
    panels: Sequence[Panel]
    key: Sequence[el.Key]
    columns: int = 2
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def named_panels(self) -> dict[str, Panel]:
        """The panels, by the name of each in page and print."""
        return {f"{self.anchor}-{k}": panel for k, panel in enumerate(self.panels)}


def make_figures(data: Datasets) -> list[Figure]:
    """Return every figure of the report, in its order."""
    makers: list[Callable[[Datasets], Figure]] = [
        trajectories, error, starts, idle, fixed_points, bound, memory, policies,
    ]  # fmt: skip
    return [make(data) for make in makers]


# ---------------------------------------------------------------------------------------------- what the data hold


def example_d(values: Any) -> int:
    """Return the d that examples use: 2 where there is one, else the smallest above 1, else the smallest."""
    ordered = sorted(int(v) for v in values)
    return 2 if 2 in ordered else next((v for v in ordered if v > 1), ordered[0])


def either_side(loads: Any, d: int) -> list[float]:
    """Return a load well below the threshold 1 - 1/d and one well above it, as far as `loads` has them."""
    threshold = closed_forms.optimality_threshold(d)
    loads = np.sort(np.asarray(loads, float))
    targets = [(loads[loads < threshold], 0.8 * threshold), (loads[loads > threshold], 0.9)]
    return [float(some[np.argmin(np.abs(some - target))]) for some, target in targets if some.size]


def simulated_d(data: Datasets) -> list[int]:
    """Return the d that have both fixed points and stationary runs, or all that have fixed points."""
    computed = [int(d) for d in data["fixed_points"]["d"].values]
    return [d for d in computed if d in data["stationary"]["d"].values] or computed


def nearest(values: Any, target: float) -> float:
    """Return the value next to `target`."""
    values = np.asarray(values, float)
    return float(values[np.argmin(np.abs(values - target))])


def tail_of(pmf: Any) -> np.ndarray:
    """Return the share of servers with at least i jobs, from the share with exactly i."""
    return np.cumsum(np.nan_to_num(np.asarray(pmf, float))[::-1])[::-1]


def thin(n: int, most: int = DENSE) -> np.ndarray:
    """Return at most about `most` evenly spaced indices of `n`, both ends among them."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(int))


def _largest(ds: xr.Dataset, policy: str) -> xr.Dataset | None:
    """Stationary estimates of `policy` at the largest N, or None where the profile does not have the policy."""
    if policy not in ds["policy"].values:
        return None
    return ds.sel(policy=policy, N=ds["N"].max().item())


def _at_d(ds: xr.Dataset | None, d: int) -> xr.Dataset | None:
    return ds.sel(d=d) if ds is not None and d in ds["d"].values else None


# ------------------------------------------------------------------------------------------------------ the figures


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
    """The same from the other starts, one panel per start, one line per (d, λ)."""
    ds = data["starts"]
    names = [str(s) for s in ds["start"].values]
    panels = [_error_panel(ds.sel(start=name), f"start: {name}") for name in names]
    facts = {"starts": names, "replicates": ds.sizes["replicate"]}
    alt = "Distance to the fluid path against N from starts other than the empty system."
    return Figure("fig-starts", alt, ("starts",), panels, _ERROR_KEY, columns=min(2, len(panels)), facts=facts)


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


def idle(data: Datasets) -> Figure:
    """Share of jobs that find an idle server against λ, one panel per d."""
    shown = simulated_d(data)
    panels = [_idle_panel(data, d) for d in shown]
    key = [
        el.Key("with memory: fluid limit", WITH, "solid"),
        el.Key("with memory: simulated", WITH, "dot"),
        el.Key("jobs sent to observation 0 (limit)", el.SKY, "dotted"),
        el.Key("without memory: 1 − λ^d", WITHOUT, "dashed"),
        el.Key("without memory: simulated", WITHOUT, "ring"),
        el.Key("threshold 1 − 1/d", el.GREY, "dashed"),
    ]
    facts = {"N": data["stationary"]["N"].max().item(), "d": shown}
    alt = "Share of jobs that find an idle server against load for each d, with and without memory."
    return Figure("fig-idle", alt, ("stationary", "fixed_points"), panels, key, facts=facts)


def _idle_panel(data: Datasets, d: int, observed: bool = True) -> Panel:
    dims = (el.LOAD, hv.Dimension("idle", label="share of jobs to idle servers"))
    dense = data["fixed_points"].sel(d=d)
    dense = dense.isel(λ=thin(dense.sizes["λ"]))
    lam = dense["λ"].values
    tips = [("fluid limit, load λ", "@lam{0.000}"), ("share", "@idle{0.0000}")]
    parts = [
        el.line(lam, 1 - lam**d, dims, WITHOUT, "dashed"),
        *([el.line(lam, dense["dispatch_to_observation_zero"], dims, el.SKY, "dotted", 2)] if observed else []),
        el.line(lam, dense["dispatch_to_idle"], dims, WITH, width=2, tooltips=tips),
    ]
    for policy, color, look in ((MEMORYLESS, WITHOUT, "ring"), (MEMORY, WITH, "dot")):
        parts += _simulated(data, policy, d, "dispatch_to_idle", dims, color, look)
    parts.append(el.mark(closed_forms.optimality_threshold(d)))
    return Panel(hv.Overlay(parts), f"d = {d}", {"xlim": (0, 1), "ylim": (0, 1.05)})


def _simulated(data: Datasets, policy: str, d: int, variable: str, dims: el.Axes, color: str, look: str) -> list[Any]:
    """Points of a stationary estimate at the largest N over λ, with their intervals."""
    ds = _at_d(_largest(data["stationary"], policy), d)
    if ds is None:
        return []
    name = dims[1].name
    tips = [
        (f"simulated {policy}, N", f"{ds['N'].item()}"), ("load λ", "@lam{0.000}"),
        ("value", f"@{name}{{0.00000}}"), ("95 % half-width", "@half_width{0.0e+0}"),
    ]  # fmt: skip
    at, value, half = ds["λ"], ds[variable], ds[f"{variable}_ci95"]
    marks = el.points(at, value, dims, color, look, 6, tips, {"half_width": half})
    return [el.intervals(at, value, half, dims, color), marks]


def fixed_points(data: Datasets) -> Figure:
    """Queue-length distribution of the fixed point against λ: stacked shares, one panel per d."""
    ds = data["fixed_points"]
    shown = simulated_d(data)
    deepest = min(STACKED, int(ds["queue_length"].max()))
    colors = ["#e9e6df", *el.ladder(range(deepest))]
    panels = []
    for d in shown:
        pmf = ds["queue_length_pmf"].sel(d=d).fillna(0).transpose("λ", "queue_length")
        pmf = pmf.isel(λ=thin(pmf.sizes["λ"]))
        edges = np.cumsum(np.hstack([np.zeros((pmf.sizes["λ"], 1)), pmf.values[:, :deepest]]), axis=1)
        edges = np.hstack([edges, np.ones((len(edges), 1))])
        dims = (el.LOAD, hv.Dimension("share", label="share of servers"))
        parts: list[Any] = [
            el.band(pmf["λ"], edges[:, i], edges[:, i + 1], dims, color, alpha=1) for i, color in enumerate(colors)
        ]
        for i in range(deepest):
            tips = [("queue length", f"{i} or less"), ("load λ", "@lam{0.000}"), ("share of servers", "@share{0.0000}")]
            parts.append(el.line(pmf["λ"], edges[:, i + 1], dims, "#ffffff", width=0.8, tooltips=tips))
        parts.append(el.mark(closed_forms.optimality_threshold(d), el.BLACK))
        panels.append(Panel(hv.Overlay(parts), f"d = {d}", {"xlim": (0, 1), "ylim": (0, 1)}))
    names = [f"{i}" for i in range(deepest)] + [f"{deepest} or more jobs"]
    key = [el.Key(name, color, "area") for name, color in zip(names, colors, strict=True)]
    key.append(el.Key("threshold 1 − 1/d", el.BLACK, "dashed"))
    facts = {"loads": ds.sizes["λ"], "d": shown}
    alt = "Stacked shares of servers by queue length at the fluid fixed point against load, for each d."
    return Figure("fig-fixed-points", alt, ("fixed_points",), panels, key, facts=facts)


def bound(data: Datasets) -> Figure:
    """The bound as a staircase over load, with the level found without it and what simulations reach."""
    ds = data["fixed_points"]
    panels = [_bound_panel(data, d) for d in simulated_d(data)]
    key = [
        el.Key("bound Q(λ, d)", LIMIT, "solid"),
        el.Key("largest level of the fixed point, found without the formula", el.SKY, "area"),
        el.Key("simulated: largest level with mass", WITH, "dot"),
        el.Key("simulated: longest queue ever seen", WITHOUT, "triangle"),
    ]
    facts = {
        "cells": ds.sizes["d"] * ds.sizes["λ"],
        "differ": int((ds["level"] != ds["bound"]).sum()),
        "occupied": OCCUPIED,
        "N": data["stationary"]["N"].max().item(),
    }
    alt = "The bound on queue lengths as a staircase over load for each d, with simulated maxima."
    return Figure("fig-bound", alt, ("fixed_points", "stationary"), panels, key, facts=facts)


def _bound_panel(data: Datasets, d: int) -> Panel:
    dims = (hv.Dimension("slack", label="1 / (1 − λ)"), hv.Dimension("level", label="queue length"))
    ds = data["fixed_points"].sel(d=d).sortby("λ")
    x = 1 / (1 - ds["λ"].values)
    tips = [("bound Q(λ, d)", "@level"), ("1/(1 − λ)", "@slack{0.00}")]
    parts: list[Any] = []
    for variable, color, width, hover in (("level", el.SKY, 7, ()), ("bound", LIMIT, 1.6, tips)):
        y = ds[variable].values
        keep = np.unique(np.concatenate([[0, len(y) - 1], np.flatnonzero(np.diff(y)) + 1]))
        parts.append(el.line(x[keep], y[keep], dims, color, width=width, steps=True, tooltips=hover))
    top = int(ds["bound"].max())
    runs = _at_d(_largest(data["stationary"], MEMORY), d)
    if runs is not None:
        at = 1 / (1 - runs["λ"].values)
        held = (runs["occupancy"].fillna(0) > OCCUPIED) * runs["queue_length"]
        tips = [("largest level with mass", "@level"), ("1/(1 − λ)", "@slack{0.00}")]
        parts.append(el.points(at, held.max("queue_length"), dims, WITH, size=7, tooltips=tips))
        tips = [("longest queue seen", "@level"), ("1/(1 − λ)", "@slack{0.00}")]
        parts.append(el.points(at, runs["max_queue"], dims, WITHOUT, "triangle", 7, tooltips=tips))
        top = max(top, int(runs["max_queue"].max()))
    step = math.ceil(top / MOST_TICKS)
    return Panel(
        hv.Overlay(parts), f"d = {d}", {"logx": True, "ylim": (0, top + 0.5), "yticks": list(range(0, top + 1, step))}
    )


def memory(data: Datasets) -> Figure:
    """Mean response time and queue-length tails, with and without memory."""
    stationary = data["stationary"]
    shown = simulated_d(data)
    compared = sorted({min(shown), example_d(shown)})
    lam = nearest(stationary["λ"], TAIL_LOAD)
    panels = [_response_panel(data, d) for d in compared] + [_tail_panel(data, d, lam) for d in compared]
    key = [
        el.Key("with memory: fluid limit", WITH, "solid"),
        el.Key("with memory: simulated", WITH, "dot"),
        el.Key("without memory: fluid limit", WITHOUT, "dashed"),
        el.Key("without memory: simulated", WITHOUT, "ring"),
    ]
    facts = {"d": compared, "load": lam, "bounds": {d: closed_forms.queue_bound(lam, d) for d in compared}}
    facts |= {"N": stationary["N"].max().item(), "response": _response_facts(compared, lam)}
    alt = "Mean response time against load, and queue-length tails, with and without memory."
    return Figure("fig-memory", alt, ("stationary", "fixed_points"), panels, key, len(compared), facts)


def _response_facts(shown: Sequence[int], lam: float) -> dict[int, tuple[float, float]]:
    """Mean response time of the fluid limits at `lam`, with and without memory, for each d."""
    limits = {}
    for d in shown:
        with_memory = closed_forms.fixed_point(lam, d)["mean_response_time"].item()
        limits[d] = (with_memory, _memoryless_response(lam, d))
    return limits


def _memoryless_response(lam: float, d: int) -> float:
    return float(tail_of(closed_forms.sq_queue_length_pmf(lam, d))[1:].sum() / lam)


def _response_panel(data: Datasets, d: int) -> Panel:
    dims = (el.LOAD, hv.Dimension("response", label="mean response time"))
    dense = data["fixed_points"].sel(d=d)
    dense = dense.isel(λ=thin(dense.sizes["λ"]))
    # Both lines end where the simulations do: beyond, M/M/1 would take the axis for itself.
    dense = dense.sel(λ=slice(None, max(float(data["stationary"]["λ"].max()), 0.99)))
    lam = dense["λ"].values
    tips = [("fluid limit, load λ", "@lam{0.000}"), ("response time", "@response{0.000}")]
    parts: list[Any] = [
        el.line(lam, [_memoryless_response(v, d) for v in lam], dims, WITHOUT, "dashed", tooltips=tips),
        el.line(lam, dense["mean_response_time"], dims, WITH, width=2, tooltips=tips),
    ]
    for policy, color, look in ((MEMORYLESS, WITHOUT, "ring"), (MEMORY, WITH, "dot")):
        parts += _simulated(data, policy, d, "mean_response_time", dims, color, look)
    longest = _memoryless_response(float(lam[-1]), d)
    options = _response_axis(longest) | {"xlim": (0, 1)}
    return Panel(hv.Overlay(parts), f"mean response time, d = {d}", options)


def _response_axis(longest: float) -> dict[str, Any]:
    """Return the options of a logarithmic axis of response times from 1 on."""
    ticks = (1, 1.5, 2, 3, 4, 6) if longest < 8 else (1, 2, 5, 10, 20, 50, 100)
    return {"logy": True, "ylim": (0.9, 1.3 * longest), "yticks": [(v, f"{v}") for v in ticks]}


def _tail_panel(data: Datasets, d: int, lam: float) -> Panel:
    dims = (el.QUEUE, hv.Dimension("tail", label="share with at least i jobs"))
    limits = (
        (MEMORYLESS, closed_forms.sq_queue_length_pmf(lam, d), WITHOUT, "dashed", "ring"),
        (MEMORY, closed_forms.fixed_point(lam, d)["queue_length_pmf"].values, WITH, "solid", "dot"),
    )
    parts: list[Any] = []
    longest = 0
    for policy, pmf, color, dash, look in limits:
        tail = np.append(tail_of(pmf), 0.0)[: TAIL_LENGTH + 1]
        i = np.arange(len(tail))
        tips = [(f"fluid limit, {policy}: at least", "@i jobs"), ("share of servers", "@tail{0.0e+0}")]
        drawn = np.minimum.accumulate(np.maximum(tail, TAIL_FLOOR / 10))
        parts.append(el.line(i, drawn, dims, color, dash, 2, tooltips=tips))
        runs = _at_d(_largest(data["stationary"], policy), d)
        if runs is not None:
            measured = tail_of(runs["occupancy"].sel(λ=lam))[: TAIL_LENGTH + 1]
            seen = np.flatnonzero(measured > TAIL_FLOOR)
            tips = [(f"simulated {policy}: at least", "@i jobs"), ("share of servers", "@tail{0.0e+0}")]
            parts.append(el.points(seen, measured[seen], dims, color, look, 6, tooltips=tips))
        longest = max(longest, int(np.sum(tail > TAIL_FLOOR)))
    options = {"logy": True, "ylim": (TAIL_FLOOR, 2), "xlim": (-0.3, min(longest, TAIL_LENGTH) + 0.3)}
    return Panel(hv.Overlay(parts), f"queue-length tail, d = {d}, λ = {lam:g}", options)


def policies(data: Datasets) -> Figure:
    """Policies at equal conditions: response times, their tails, the share of idle servers, and what each costs."""
    ds = data["policies"]
    ds = ds.sel(N=ds["N"].max().item())
    lam = nearest(ds["λ"], COMPARED_LOAD)
    looks = _looks([str(name) for name in ds["policy"].values])
    labels = {name: registry.label(name, int(ds["probes"].sel(policy=name))) for name in looks}
    panels = [
        _compared_panel(ds, "mean_response_time", looks, labels),
        _cost_panel(ds.sel(λ=lam), looks, labels),
        _response_tail_panel(ds.sel(λ=lam), looks, labels),
        _compared_panel(ds, "dispatch_to_idle", looks, labels),
    ]
    own = [name for name in looks if name not in registry.policies()]
    key = [
        el.Key(labels[name] + ", registered in the notebook" * (name in own), color, dash)
        for name, (color, dash) in looks.items()
    ]
    checks = data["policies"]["warm_up_ok"]
    facts = {"N": ds["N"].item(), "load": lam, "rows": _rows(ds.sel(λ=lam), labels)}
    facts |= {"cells": checks.size, "flagged": int((checks == 0).sum())}
    alt = "Mean response time, its tail and the share of jobs to idle servers for several policies, and their messages."
    return Figure("fig-policies", alt, ("policies",), panels, key, facts=facts)


def _looks(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Colour and dash of each policy, in the order of `LOOKS`; those that it does not know come last, on top."""
    others = [name for name in names if name not in LOOKS]
    known = {name: look for name, look in LOOKS.items() if name in names}
    return known | {name: (OTHER_COLORS[k % len(OTHER_COLORS)], "solid") for k, name in enumerate(others)}


def _rows(ds: xr.Dataset, labels: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """What a table says of each policy, at one N and λ."""
    values = ("mean_response_time", "mean_response_time_ci95", "messages_per_job", "dispatch_to_idle")
    rows: dict[str, dict[str, Any]] = {}
    for name in sorted(labels, key=lambda name: -float(ds["mean_response_time"].sel(policy=name))):
        known = name in registry.policies()
        rows[name] = {variable: _whole(ds[variable].sel(policy=name).item()) for variable in values}
        rows[name] |= {"label": labels[name], "description": registry.get(name).description if known else None}
    return rows


def _whole(value: float) -> float | int:
    """Return a whole number as an integer, which is shown with all of its digits."""
    return int(value) if value.is_integer() else value


def _compared_panel(
    ds: xr.Dataset, variable: str, looks: Mapping[str, tuple[str, str]], labels: Mapping[str, str]
) -> Panel:
    """Lines through the estimates of every policy over λ, with their intervals; response times in heavy traffic."""
    response = variable == "mean_response_time"
    lam = ds["λ"].values
    across = hv.Dimension("slack", label="load λ, on the scale of 1 / (1 − λ)") if response else el.LOAD
    dims = (across, hv.Dimension("value", label="mean response time" if response else "share of jobs to idle servers"))
    x = 1 / (1 - lam) if response else lam
    parts: list[Any] = []
    for name, (color, dash) in looks.items():
        value, half = (ds[v].sel(policy=name).values for v in (variable, f"{variable}_ci95"))
        tips = [
            (f"{labels[name]}, load λ", "@load{0.000}"), ("value", "@value{0.0000}"),
            ("95 % half-width", "@half_width{0.0e+0}"),
        ]  # fmt: skip
        parts += [el.line(x, value, dims, color, dash, 2), el.intervals(x, value, half, dims, color)]
        columns = {"load": lam, "half_width": half}
        parts.append(el.points(x, value, dims, color, size=4, tooltips=tips, columns=columns))
    if not response:
        room = {"xlim": (lam.min() - 0.05, 1), "ylim": (0, 1.05)}
        return Panel(hv.Overlay(parts), "jobs that find an idle server", room)
    options = _response_axis(float(ds[variable].max())) | {"logx": True, "xlim": (x.min() / 1.1, x.max() * 1.1)}
    options["xticks"] = [(1 / (1 - v), f"{v:g}") for v in LOAD_TICKS if x.min() / 1.1 <= 1 / (1 - v) <= x.max() * 1.1]
    return Panel(hv.Overlay(parts), "mean response time", options)


def _cost_panel(ds: xr.Dataset, looks: Mapping[str, tuple[str, str]], labels: Mapping[str, str]) -> Panel:
    """Mean response time against messages per job; the two families over d as lines, in the fluid limit."""
    dims = (hv.Dimension("messages", label="messages per job"), hv.Dimension("value", label="mean response time"))
    lam = ds["λ"].item()
    limits = {
        MEMORYLESS: [_memoryless_response(lam, d) for d in PROBES],
        MEMORY: [closed_forms.fixed_point(lam, d)["mean_response_time"].item() for d in PROBES],
    }
    parts: list[Any] = []
    for name, limit in limits.items():
        tips = [(f"{name} in the limit, d", "@d"), ("mean response time", "@value{0.000}")]
        at, color = 2 * np.array(PROBES), LOOKS[name][0]
        parts.append(el.line(at, limit, dims, color, width=0.8, alpha=0.6))
        parts.append(el.points(at, limit, dims, color, size=3, tooltips=tips, columns={"d": PROBES}))
    messages = ds["messages_per_job"]
    room = (0.5, 3 * max(float(messages.max()), 2.0 * PROBES[-1]))
    for name, (color, _) in looks.items():
        value, half = (ds[v].sel(policy=name).item() for v in ("mean_response_time", "mean_response_time_ci95"))
        cost = float(messages.sel(policy=name))
        if cost == 0:  # no place on a logarithmic axis
            parts.append(el.line(room, (value, value), dims, color, "dashed", 1.2))
            continue
        tips = [(f"{labels[name]}, messages per job", "@messages{0.00}"), ("mean response time", "@value{0.0000}")]
        parts.append(el.intervals([cost], [value], [half], dims, color))
        parts.append(el.points([cost], [value], dims, color, size=8, tooltips=tips))
    options = _response_axis(float(ds["mean_response_time"].max())) | {"logx": True, "xlim": room}
    return Panel(hv.Overlay(parts), f"benefit and cost, λ = {lam:g}", options)


def _response_tail_panel(ds: xr.Dataset, looks: Mapping[str, tuple[str, str]], labels: Mapping[str, str]) -> Panel:
    dims = (hv.Dimension("t", label="t, in mean service times"), hv.Dimension("tail", label="share of jobs with R > t"))
    parts: list[Any] = []
    for name, (color, dash) in looks.items():
        tail = ds["response_time_tail"].sel(policy=name)
        tail = tail.where(tail > TAIL_FLOOR)
        tips = [(f"{labels[name]}, t", "@t{0.0}"), ("share of jobs", "@tail{0.0e+0}")]
        parts.append(el.line(ds["response_time"], tail, dims, color, dash, 2, tooltips=tips))
    options = {"logy": True, "ylim": (TAIL_FLOOR, 2), "xlim": (0, float(ds["response_time"].max()))}
    return Panel(hv.Overlay(parts), f"response times, λ = {ds['λ'].item():g}", options)


def story(data: Datasets) -> Figure:
    """The one picture for the README: idle share and queue-length tail with and without memory."""
    d = example_d(simulated_d(data))
    lam = nearest(data["stationary"]["λ"], TAIL_LOAD)
    left, right = _idle_panel(data, d, observed=False), _tail_panel(data, d, lam)
    threshold = closed_forms.optimality_threshold(d)
    panels = [
        Panel(left.content, f"Below λ = {threshold:g} every job finds an idle server", left.options),
        Panel(
            right.content, f"No queue is longer than {closed_forms.queue_bound(lam, d)} at λ = {lam:g}", right.options
        ),
    ]
    key = [
        el.Key(f"{d} probes per job with memory (line: N → ∞, points: simulated)", WITH, "solid"),
        el.Key(f"{d} probes without memory", WITHOUT, "dashed"),
    ]
    alt = f"Left: share of jobs that find an idle server against load for d = {d}. Right: tail of the queue lengths."
    return Figure("main-figure", alt, ("stationary", "fixed_points"), panels, key, facts={"d": d, "load": lam})
