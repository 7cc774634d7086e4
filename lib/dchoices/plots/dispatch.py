"""Figure of where jobs go, by observation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import holoviews as hv
import numpy as np
import xarray as xr

from dchoices import statistics
from dchoices.plots import elements as el
from dchoices.plots.figure import (
    DENSE,
    LIMIT,
    MEMORY,
    MEMORYLESS,
    WITHOUT,
    Datasets,
    Figure,
    Panel,
    example_d,
    largest,
    thin,
)
from dchoices.recursion import steady_levels, windows

# Observations with a colour of their own; those from the last on share one.
COLORS = el.ladder(range(5))
# Time shown of a path, over that of its last switch.
BEYOND_SWITCH = 1.25
# Points of a path that one can tell apart.
POINTS = DENSE // 4

STEP = hv.Dimension("step", label="Rⱼ − Rⱼ₋₁")


class Point(NamedTuple):
    """A step of the dispatch fractions beside what it should be."""

    j: int
    expected: float
    step: float
    half_width: float
    at: str


def recursion(data: Datasets) -> Figure:
    """Steps of the dispatch fractions against the recursion, and in time."""
    runs = data["recursion"]
    start, d, lam = _example(runs)
    path = runs.sel(start=start, d=d, λ=lam, N=runs.N.max())
    found = {policy: [*_steady(data, policy), *_moving(runs, policy)] for policy in (MEMORY, MEMORYLESS)}
    panels = [
        _diagonal(found, "below k, steady and on the way", "d pⱼ"),
        _diagonal({p: [*_steady(data, p, every=True)] for p in found}, "steady, every j", "d (pⱼ − yⱼ)"),
        *_in_time(path, f"d = {d}, λ = {lam:g}, from {start}"),
    ]
    key = [
        *(el.Key(f"j = {j}{' or more' * (color == COLORS[-1])}", color, "dot") for j, color in enumerate(COLORS)),
        el.Key("without memory", WITHOUT, "ring"),
        el.Key("the recursion", LIMIT, "dashed"),
        el.Key("in time: limit of Rⱼ, measured d pⱼ", COLORS[1], "solid"),
        el.Key("k moves", el.GREY, "dotted"),
    ]
    facts = {"N": int(runs.N.max()), "start": start, "d": d, "load": lam, "replicates": runs.sizes["replicate"]}
    facts |= {"steady_N": int(data["stationary"].N.max()), "points": len(found[MEMORY])}
    facts |= {"modes": list(dict.fromkeys(path["mode"].values.tolist())), "unknown": _below(runs)}
    alt = "Steps of the dispatch fractions against d times the share of servers, on the diagonal with memory."
    return Figure("fig-recursion", alt, ("recursion", "stationary"), panels, key, facts=facts)


def _example(runs: xr.Dataset) -> tuple[str, int, float]:
    """Return the start, d and λ of the path with the most modes, at the d that examples use."""
    d = example_d(runs["d"].values)
    places = [(s, x) for s in runs["start"].values.tolist() for x in runs["λ"].values.tolist()]
    start, lam = max(places, key=lambda place: np.unique(runs["mode"].sel(d=d, start=place[0], λ=place[1])).size)
    return start, d, lam


def _below(runs: xr.Dataset) -> float:
    """Return the largest share of servers, over windows, with an observation below k."""
    shares = [0.0]
    if MEMORY in runs.policy:
        for window in windows(runs, MEMORY):
            observed = runs.observation_occupancy.sel(window.place | {"policy": MEMORY}).transpose("t", ...)
            shares.append(float(observed.values[1:][window.inside, : window.k].sum(axis=1).mean()))
    return max(shares)


def _steady(data: Datasets, policy: str, every: bool = False) -> Iterator[Point]:
    """Yield the steps in steady state below k, to be d p_j, or at every level, to be d (p_j - y_j)."""
    stationary = largest(data["stationary"], policy)
    if stationary is None:
        return
    for d in stationary["d"].values.tolist():
        for lam in stationary["λ"].values.tolist():
            point = stationary.sel(d=d, λ=lam)
            steps = np.diff(point["dispatch_by_observation"], prepend=0.0)
            p, y, half = (
                point[name].values for name in ("occupancy", "observation_occupancy", "observation_balance_ci95")
            )
            k, levels = steady_levels(lam, d)
            for j in levels if every else [j for j in levels if j < k]:
                yield Point(j, d * (p[j] - y[j] * every), steps[j], half[j], f"steady, d = {d}, λ = {lam:g}")


def _moving(runs: xr.Dataset, policy: str) -> Iterator[Point]:
    """Yield the steps on windows of paths."""
    if policy not in runs.policy:
        return
    for window in windows(runs, policy):
        d, lam = window.place["d"], window.place["λ"]
        half = statistics.half_width(window.steps - d * window.shares)
        for j in window.levels:
            at = f"from {window.place['start']} while k = {window.k}, d = {d}, λ = {lam:g}"
            yield Point(j, d * window.shares[:, j].mean(), window.steps[:, j].mean(), half[j], at)


def _diagonal(found: dict[str, list[Point]], title: str, expected: str) -> Panel:
    """Steps against what they should be; rings without memory lie under the dots with it."""
    dims = (hv.Dimension("expected", label=expected), STEP)
    drawn = np.array([(point.expected, point.step) for points in found.values() for point in points] or [(0.0, 1.0)])
    ends = drawn.min(), drawn.max()
    left, right = drawn[:, 0].min(), drawn[:, 0].max()
    room = 0.05 * (right - left)
    parts: list[Any] = [el.line(ends, ends, dims, LIMIT, "dashed", 1.2)]
    groups = [(found[MEMORYLESS], WITHOUT, "ring")]
    groups += [([point for point in found[MEMORY] if _color(point.j) == color], color, "dot") for color in COLORS]
    for points, color, look in groups:
        if points:
            j, x, y, half, at = zip(*points, strict=True)
            tips = [("j", "@j"), ("where", "@at"), (expected, "@expected{0.0000}"), ("step", "@step{0.0000}"),
                    ("95 % half-width of the difference", "@half_width{0.0e+0}")]  # fmt: skip
            columns = {"j": j, "at": at, "half_width": half}
            parts.append(el.points(x, y, dims, color, look, 6, tips, columns))
    return Panel(hv.Overlay(parts), title, {"xlim": (left - room, right + room)})


def _in_time(path: xr.Dataset, title: str) -> list[Panel]:
    """Fractions R_j beside the fluid path, and their steps beside d p_j, with the switches of k marked."""
    t, mode = path["t"].values, path["mode"].values
    switches = t[1:][np.diff(mode) != 0]
    end = int(np.searchsorted(t[:-1], BEYOND_SWITCH * switches.max(initial=0.0) or t[-1])) + 1
    levels = range(mode[:end].max() + 1)
    path = path.isel(t=slice(end))
    dims = (el.TIME, hv.Dimension("fraction", label="share Rⱼ of jobs"))
    fractions = [el.line(t[:end], path["fluid_dispatch"].isel(queue_length=j), dims, _color(j)) for j in levels]
    steps = []
    if MEMORY in path.policy:
        run = path.sel(policy=MEMORY)
        fractions += [_counted(run, j, dims) for j in levels]
        for j in levels[1:-1]:
            found = path["d"].item() * run["occupancy"].isel(queue_length=j).mean("replicate")
            steps += [el.line(t[:end], found, (el.TIME, STEP), _color(j)), _counted(run, j, (el.TIME, STEP), step=True)]
    marks = [el.mark(at, el.GREY, "dotted") for at in switches if at <= t[end - 1]]
    panels = [(f"jobs, {title}", fractions), (f"steps, {title}", steps)]
    return [Panel(hv.Overlay([*parts, *marks]), name) for name, parts in panels if parts]


def _counted(run: xr.Dataset, j: int, dims: el.Axes, step: bool = False) -> hv.Scatter:
    """Points for R_j, or its step, between two times of the grid, over all replicates."""
    jobs = run["sent_by_observation"].sum("replicate").transpose("t", "queue_length").values[1:]
    shares = jobs / np.maximum(jobs.sum(axis=1, keepdims=True), 1)
    middle = (run["t"].values[1:] + run["t"].values[:-1]) / 2
    shown = thin(middle.size, POINTS)
    value = (shares[:, j] - step * shares[:, j - 1])[shown]
    tips = [("j", f"{j}"), ("t", "@t{0.00}"), ("Rⱼ − Rⱼ₋₁" if step else "Rⱼ", f"@{dims[1].name}{{0.0000}}")]
    return el.points(middle[shown], value, dims, _color(j), size=4, tooltips=tips)


def _color(j: int) -> str:
    return COLORS[min(j, len(COLORS) - 1)]
