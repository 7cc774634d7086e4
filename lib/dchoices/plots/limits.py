"""Figures of stationary estimates beside their limits."""

from __future__ import annotations

import math
from typing import Any

import holoviews as hv
import numpy as np
import xarray as xr

from dchoices.claims.selection import far
from dchoices.heavy_traffic import limit_response
from dchoices.plots import elements as el
from dchoices.plots.figure import (
    LIMIT,
    MEMORY,
    MEMORYLESS,
    TAIL_FLOOR,
    WITH,
    WITHOUT,
    Datasets,
    Figure,
    Panel,
    at_d,
    example_d,
    largest,
    nearest,
    response_axis,
    simulated_d,
    tail_of,
    thin,
)
from dchoices.theory import closed_forms

# A level counts as occupied in a simulation when more than this share of the servers holds it: the mass that a finite
# system leaves above the fluid bound is of order 1/√N or less, the fluid mass at the bound is rarely so small.
OCCUPIED = 1e-3
# Load at which queue-length tails are compared: high enough for long queues, low enough to be stationary soon.
TAIL_LOAD = 0.95
# Longest queue drawn in the tail panels; M/M/1 goes on far beyond it.
TAIL_LENGTH = 16
# Longest queue with a colour of its own in the stacked fixed points.
STACKED = 6
# Most ticks on an axis of queue lengths.
MOST_TICKS = 6


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
    ds = at_d(largest(data["stationary"], policy), d)
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
    ds = data["bound_grid"]
    shown = [d for d in simulated_d(data) if d in ds["d"].values] or [example_d(ds["d"].values)]
    panels = [_bound_panel(data, d) for d in shown]
    key = [
        el.Key("bound Q(λ, d)", LIMIT, "solid"),
        el.Key("largest level of the fixed point, found without the formula", el.SKY, "area"),
        el.Key("simulated: largest level with mass", WITH, "dot"),
        el.Key("simulated: longest queue ever seen", WITHOUT, "triangle"),
    ]
    facts = {
        "cells": ds.sizes["d"] * ds.sizes["λ"],
        "d": ds["d"].max().item(),
        "exact": int(ds["decided_exactly"].sum()),
        "differ": int((ds["level"] != ds["bound"]).sum()),
        "occupied": OCCUPIED,
        "N": data["stationary"]["N"].max().item(),
        "above": _above(data["stationary"]),
    }
    alt = "The bound on queue lengths as a staircase over load for each d, with simulated maxima."
    return Figure("fig-bound", alt, ("bound_grid", "stationary"), panels, key, facts=facts)


def _above(ds: xr.Dataset) -> dict[int, tuple[float, float]]:
    """Return for each N the largest share of servers above the bound, away from its steps, with its half-width."""
    if MEMORY not in ds["policy"]:
        return {}
    away = [[far(lam, d) for lam in ds["λ"].values.tolist()] for d in ds["d"].values.tolist()]
    runs = ds[["mass_above_bound", "mass_above_bound_ci95"]].sel(policy=MEMORY)
    places = runs.where(xr.DataArray(away, dims=("d", "λ")), 0.0).stack(place=("d", "λ"))
    worst = places.isel(place=places["mass_above_bound"].argmax("place"))
    ends = (worst[f"mass_above_bound{end}"].values.tolist() for end in ("", "_ci95"))
    return dict(zip(ds["N"].values.tolist(), zip(*ends, strict=True), strict=True))


def _bound_panel(data: Datasets, d: int) -> Panel:
    dims = (hv.Dimension("slack", label="1 / (1 − λ)"), hv.Dimension("level", label="queue length"))
    ds = data["bound_grid"].sel(d=d).sortby("λ")
    x = 1 / (1 - ds["λ"].values)
    tips = [("bound Q(λ, d)", "@level"), ("1/(1 − λ)", "@slack{0.00}")]
    parts: list[Any] = []
    for variable, color, width, hover in (("level", el.SKY, 7, ()), ("bound", LIMIT, 1.6, tips)):
        y = ds[variable].values
        keep = np.unique(np.concatenate([[0, len(y) - 1], np.flatnonzero(np.diff(y)) + 1]))
        parts.append(el.line(x[keep], y[keep], dims, color, width=width, steps=True, tooltips=hover))
    top = int(ds["bound"].max())
    runs = at_d(largest(data["stationary"], MEMORY), d)
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
    response = {d: [limit_response(policy, lam, d) for policy in (MEMORY, MEMORYLESS)] for d in compared}
    facts |= {"N": stationary["N"].max().item(), "response": response}
    alt = "Mean response time against load, and queue-length tails, with and without memory."
    return Figure("fig-memory", alt, ("stationary", "fixed_points"), panels, key, len(compared), facts)


def _response_panel(data: Datasets, d: int) -> Panel:
    dims = (el.LOAD, hv.Dimension("response", label="mean response time"))
    dense = data["fixed_points"].sel(d=d)
    dense = dense.isel(λ=thin(dense.sizes["λ"]))
    # Both lines end where the simulations do: beyond, M/M/1 would take the axis for itself.
    dense = dense.sel(λ=slice(None, max(float(data["stationary"]["λ"].max()), 0.99)))
    lam = dense["λ"].values
    tips = [("fluid limit, load λ", "@lam{0.000}"), ("response time", "@response{0.000}")]
    parts: list[Any] = [
        el.line(lam, [closed_forms.sq_mean_response_time(v, d) for v in lam], dims, WITHOUT, "dashed", tooltips=tips),
        el.line(lam, dense["mean_response_time"], dims, WITH, width=2, tooltips=tips),
    ]
    for policy, color, look in ((MEMORYLESS, WITHOUT, "ring"), (MEMORY, WITH, "dot")):
        parts += _simulated(data, policy, d, "mean_response_time", dims, color, look)
    longest = closed_forms.sq_mean_response_time(float(lam[-1]), d)
    options = response_axis(longest) | {"xlim": (0, 1)}
    return Panel(hv.Overlay(parts), f"mean response time, d = {d}", options)


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
        runs = at_d(largest(data["stationary"], policy), d)
        if runs is not None:
            measured = tail_of(runs["occupancy"].sel(λ=lam))[: TAIL_LENGTH + 1]
            seen = np.flatnonzero(measured > TAIL_FLOOR)
            tips = [(f"simulated {policy}: at least", "@i jobs"), ("share of servers", "@tail{0.0e+0}")]
            parts.append(el.points(seen, measured[seen], dims, color, look, 6, tooltips=tips))
        longest = max(longest, int(np.sum(tail > TAIL_FLOOR)))
    options = {"logy": True, "ylim": (TAIL_FLOOR, 2), "xlim": (-0.3, min(longest, TAIL_LENGTH) + 0.3)}
    return Panel(hv.Overlay(parts), f"queue-length tail, d = {d}, λ = {lam:g}", options)


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
