"""The figure of heavy traffic: how slowly response times grow as λ tends to 1."""

from __future__ import annotations

import math
from typing import Any

import holoviews as hv
import numpy as np
import xarray as xr

from dchoices import registry
from dchoices.heavy_traffic import HEAVIEST, limit_response, periods, slope
from dchoices.plots import elements as el
from dchoices.plots.figure import MEMORY, MEMORYLESS, WITH, WITHOUT, Datasets, Figure, Panel

# The lines of the limits begin here, and have so many points.
LIGHTEST, POINTS = 0.2, 200
# The axis of loads goes so much further than the simulations, in 1/(1-λ).
BEYOND = 4
# Numbers of probes of which slopes are drawn.
SLOPES = (1, 2, 3, 4)
# What a simulation may lie beyond its limit before it is drawn.
LEAST_EXCESS = 1e-3
SLACK = hv.Dimension("slack", label="1 / (1 − λ)")


def heavy_traffic(data: Datasets) -> Figure:
    """Response times against 1/(1-λ), limits and several N; and their slope against log(1/(1-λ))."""
    ds = data["heavy_traffic"]
    d = int(ds["probes"].min())
    shown = [int(k) for k in data["fixed_points"]["d"].values if k in SLOPES] or [d]
    colors = dict(zip(ds["N"].values.tolist(), el.ladder(ds["N"].values.tolist()), strict=True))
    tones = dict(zip(shown, el.ladder(shown), strict=True))
    key = [
        el.Key(f"{registry.label(MEMORY, d)}, limit", WITH, "solid"),
        *(el.Key(f"N = {N}", color, "dot") for N, color in colors.items()),
        el.Key(f"{registry.label(MEMORYLESS, d)}, limit", WITHOUT, "dashed"),
        el.Key(f"{registry.label(MEMORYLESS, d + 1)}, limit", el.ORANGE, "dashed"),
        el.Key("without memory, largest N", el.BLACK, "ring"),
        el.Key("1 / (N (1 − λ))", el.GREY, "dashed"),
        *(el.Key(f"below, with memory, d = {k}", color, "solid") for k, color in tones.items()),
        el.Key("below, without memory", el.GREY, "dotted"),
        el.Key("limits 1 / log(1 + d)", el.BLACK, "dashed"),
    ]
    panels = [_response_panel(ds, d, colors), _excess_panel(ds, d, colors), _ratio_panel(tones), _slope_panel(tones)]
    alt = "Mean response time against 1/(1-λ) with memory and without, and its slope against log(1/(1-λ))."
    return Figure("fig-heavy-traffic", alt, ("heavy_traffic",), panels, key, facts=_facts(ds, d, shown))


def _facts(ds: xr.Dataset, d: int, shown: list[int]) -> dict[str, Any]:
    last = {k: periods(k)[-1] for k in shown}
    facts: dict[str, Any] = {
        "d": d,
        "N": ds["N"].values.tolist(),
        "heaviest": HEAVIEST,
        "slopes": {k: (slope(MEMORY, k, at), 1 / math.log1p(k)) for k, at in last.items()},
        "without": {k: (slope(MEMORYLESS, k, at), 1 / math.log(k)) for k, at in last.items() if k > 1},
        "cells": ds["warm_up_ok"].size,
        "flagged": int((ds["warm_up_ok"] == 0).sum()),
        "small": None,
    }
    if (called := registry.label(MEMORY, d)) in ds["policy"]:
        small = ds.sel(policy=called, N=ds["N"].min(), λ=ds["λ"].max())
        lam = small["λ"].item()
        # All servers are busy most of the time: the jobs are an M/M/1 queue that is N times as fast.
        relaxation = (1 - math.sqrt(lam)) ** -2 / small["N"].item()
        facts["small"] = {
            "N": small["N"].item(), "load": lam, "idle": small["N"].item() * (1 - lam),
            "limit": limit_response(MEMORY, lam, d),
            "replicates": int(ds.attrs["replicates"]), "relaxations": small["horizon"].item() / relaxation,
            "mean_response_time": small["controlled_response_time"].item(),
            "mean_response_time_ci95": small["controlled_response_time_ci95"].item(),
        }  # fmt: skip
    return facts


def _response_panel(ds: xr.Dataset, d: int, colors: dict[int, str]) -> Panel:
    dims = (SLACK, hv.Dimension("response", label="mean response time"))
    loads = 1 - np.geomspace(1 - LIGHTEST, 1 - HEAVIEST, POINTS)
    parts: list[Any] = []
    lines = ((MEMORYLESS, d, WITHOUT, "dashed"), (MEMORYLESS, d + 1, el.ORANGE, "dashed"), (MEMORY, d, WITH, "solid"))
    for policy, probes, color, dash in lines:
        called = registry.label(policy, probes)
        tips = [(f"{called}, limit", "@response{0.000}"), ("1/(1 − λ)", "@slack{0.0}")]
        limit = [limit_response(policy, lam, probes) for lam in loads]
        parts.append(el.line(1 / (1 - loads), limit, dims, color, dash, 2, tooltips=tips))
        for N, tone in colors.items():
            if called in ds["policy"] and (policy == MEMORY or max(colors) == N):
                parts += _points(ds.sel(policy=called, N=N), dims, tone if policy == MEMORY else color, policy)
    beyond = 1 - (1 - ds["λ"].values.max()) / BEYOND
    options = {"logx": True, "xlim": (1 / (1 - LIGHTEST), 1 / (1 - beyond))}
    options["ylim"] = (0, 1.1 * limit_response(MEMORYLESS, beyond, d))
    return Panel(hv.Overlay(parts), f"mean response time, d = {d}", options)


def _points(runs: xr.Dataset, dims: el.Axes, color: str, policy: str) -> list[Any]:
    at, N = 1 / (1 - runs["λ"].values), runs["N"].item()
    value, half = (runs[f"controlled_response_time{end}"].values for end in ("", "_ci95"))
    tips = [
        (f"simulated {runs['policy'].item()}, N", f"{N}"), ("load λ", "@load{0.0000}"), ("N (1 − λ)", "@idle{0.0}"),
        ("mean response time", "@response{0.000}"), ("95 % half-width", "@half_width{0.0e+0}"),
    ]  # fmt: skip
    columns = {"load": runs["λ"].values, "idle": N * (1 - runs["λ"].values), "half_width": half}
    look = "dot" if policy == MEMORY else "ring"
    return [el.intervals(at, value, half, dims, color), el.points(at, value, dims, color, look, 7, tips, columns)]


def _excess_panel(ds: xr.Dataset, d: int, colors: dict[int, str]) -> Panel:
    """R with memory less its limit; where the interval reaches 0, its upper end."""
    dims = (hv.Dimension("idle", label="N (1 − λ)"), hv.Dimension("excess", label="R − its limit"))
    called = registry.label(MEMORY, d)
    room = np.outer(ds["N"].values, 1 - ds["λ"].values)
    across = np.array([room.min() / 2, room.max() * 2])
    parts: list[Any] = [el.line(across, 1 / across, dims, el.GREY, "dashed", 1.2)]
    highest = 1 / across
    for N, color in colors.items():
        if called not in ds["policy"]:
            continue
        runs = ds.sel(policy=called, N=N)
        limit = np.array([limit_response(MEMORY, lam, d) for lam in runs["λ"].values.tolist()])
        excess, half = runs["controlled_response_time"].values - limit, runs["controlled_response_time_ci95"].values
        clear, at = excess > half, N * (1 - runs["λ"].values)
        highest = np.append(highest, excess + half)
        for keep, value, look, word in (
            (clear, excess, "dot", "R − limit"),
            (~clear, excess + half, "triangle", "at most"),
        ):
            tips = [(f"N = {N}, {word}", "@excess{0.0000}"), ("N (1 − λ)", "@idle{0.0}"), ("load λ", "@load{0.0000}")]
            columns = {"load": runs["λ"].values[keep]}
            parts.append(el.points(at[keep], np.abs(value[keep]), dims, color, look, 7, tips, columns))
        parts.append(el.intervals(at[clear], excess[clear], half[clear], dims, color))
    options = {"logx": True, "logy": True, "xlim": tuple(across), "ylim": (LEAST_EXCESS, 2 * float(highest.max()))}
    return Panel(hv.Overlay(parts), f"beyond the limit, with memory, d = {d}", options)


def _ratio_panel(tones: dict[int, str]) -> Panel:
    """R over log(1/(1-λ)), which is slower than the slope to come to the same limit."""
    dims = (SLACK, hv.Dimension("ratio", label="R / log(1 / (1 − λ))"))
    loads = 1 - np.geomspace(1 - LIGHTEST, 1 - HEAVIEST, POINTS)
    parts: list[Any] = []
    for d, color in tones.items():
        parts.append(el.line((1, 1 / (1 - HEAVIEST)), (1 / math.log1p(d),) * 2, dims, el.BLACK, "dashed", 1))
        for policy, dash in ((MEMORYLESS, "dotted"), (MEMORY, "solid")):
            if policy == MEMORY or d > 1:
                ratio = [-limit_response(policy, lam, d) / math.log1p(-lam) for lam in loads.tolist()]
                tips = [
                    (f"{registry.label(policy, d)}, R / log(1/(1 − λ))", "@ratio{0.000}"),
                    ("1/(1 − λ)", "@slack{0.0}"),
                ]
                parts.append(el.line(1 / (1 - loads), ratio, dims, color, dash, 1.6, tooltips=tips))
    options = {"logx": True, "xlim": (2, 1.2 / (1 - HEAVIEST)), "ylim": (0, 2.5)}
    return Panel(hv.Overlay(parts), "R over log(1 / (1 − λ)), limits", options)


def _slope_panel(tones: dict[int, str]) -> Panel:
    """Slopes over whole periods, at the end of each; the limit with d probes and memory is that of d + 1 without."""
    dims = (SLACK, hv.Dimension("slope", label="slope against log(1 / (1 − λ))"))
    parts: list[Any] = []
    for d, color in tones.items():
        ends = np.array([1 / (1 - high) for _, high in periods(d)])
        parts.append(el.line((1, 1 / (1 - HEAVIEST)), (1 / math.log1p(d),) * 2, dims, el.BLACK, "dashed", 1))
        for policy, dash, look in ((MEMORYLESS, "dotted", "ring"), (MEMORY, "solid", "dot")):
            if policy == MEMORY or d > 1:
                values = [slope(policy, d, period) for period in periods(d)]
                tips = [
                    (f"{registry.label(policy, d)}, slope", "@slope{0.000}"),
                    ("period up to 1/(1 − λ)", "@slack{0.0}"),
                ]
                parts += [el.line(ends, values, dims, color, dash, 1.4)]
                parts.append(el.points(ends, values, dims, color, look, 6, tips))
    top = 1.1 * max(1 / math.log1p(d) for d in tones)
    options = {"logx": True, "xlim": (2, 1.2 / (1 - HEAVIEST)), "ylim": (0, top)}
    return Panel(hv.Overlay(parts), "slope over whole periods of the bound", options)
