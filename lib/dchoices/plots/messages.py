"""The figure of delay against messages, from which a policy can be chosen."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import holoviews as hv
import numpy as np
import xarray as xr

from dchoices import registry
from dchoices.constant_d import LARGEST, MANY_PROBES, enough_servers, tolerated
from dchoices.heavy_traffic import limit_response
from dchoices.plots import elements as el
from dchoices.plots.comparison import COMPARED_LOAD, LOOKS, PROBES
from dchoices.plots.figure import MEMORY, MEMORYLESS, Control, Datasets, Figure, Frame, Panel, nearest, thin
from dchoices.statistics import unseen
from dchoices.theory.closed_forms import fewest_probes

# Frames that the page may hold: every one of them is in the file.
MOST_FRAMES = 40
FAMILIES = (MEMORY, MEMORYLESS)
MESSAGES = hv.Dimension("messages", label="messages per job")
DELAY = hv.Dimension("delay", label="R − 1")
# Delays below this are not drawn.
FLOOR = 1e-7
TOP = 5.0


def messages(data: Datasets) -> Figure:
    """Delay against messages over λ and N, and against N; in print at two loads and the largest N."""
    ds = data["constant_d"].sortby(["N", "λ"])
    ds["delay"] = ds["mean_response_time"] - 1
    ds["unseen"] = unseen(ds.attrs["replicates"], ds["λ"], ds["N"], ds["horizon"])
    ds = ds.isel(N=thin(ds.sizes["N"], MOST_FRAMES))
    ds = ds.isel(λ=thin(ds.sizes["λ"], MOST_FRAMES // ds.sizes["N"]))
    loads, sizes = ds["λ"].values.tolist(), ds["N"].values.tolist()
    names = list(dict.fromkeys(_name(policy) for policy in ds["policy"].values))
    names = [name for name in LOOKS if name in names]
    lam, N = nearest(loads, COMPARED_LOAD), sizes[-1]
    choices = list(itertools.product(loads, sizes))
    frames = [_trade_off(ds.sel(λ=x, N=n), names) for x, n in choices]
    ladders = [_ladder(ds.sel(λ=x), names, n) for x, n in choices]
    at = choices.index((lam, N))
    across_N = (sizes[0] / 1.5, 1.5 * sizes[-1])
    across_messages = (0.5, 2 * max(float(ds["messages_per_job"].max()), 2.0 * PROBES[-1]))
    panels = [
        _panel(frames[at], names, MESSAGES, across_messages, "delay against messages", frames=frames, height=400),
        _panel(ladders[at], names, el.SERVERS, across_N, "delay against N", frames=ladders, height=400),
    ]
    twins = []
    for x in dict.fromkeys((loads[0], lam)):
        k = choices.index((x, N))
        twins.append(_panel(frames[k], names, MESSAGES, across_messages, f"λ = {x:g}, N = {N}"))
        twins.append(_panel(ladders[k], names, el.SERVERS, across_N, f"λ = {x:g}, d = {_constant(ds, x)}"))
    key = [
        *(el.Key(name + " over d" * (name in FAMILIES), *LOOKS[name]) for name in names),
        el.Key("limits over d", el.GREY, "solid"),
        el.Key("no delayed job seen: R − 1 is below", el.BLACK, "triangle"),
        el.Key("least d with λ < 1 − 1/d, and its N₀", el.GREY, "dashed"),
        el.Key("ε", el.BLACK, "dotted"),
    ]
    controls = (
        Control("load λ", [f"{x:.4g}" for x in loads], loads.index(lam)),
        Control("servers N", [f"{n}" for n in sizes], len(sizes) - 1),
    )
    alt = "Mean response time less 1 against messages per job and against N, for several policies."
    return Figure(
        "fig-messages", alt, ("constant_d",), panels, key, facts=_facts(ds, lam, N), controls=controls, twins=twins
    )


def _name(policy: str) -> str:
    return str(policy).partition("(")[0]


def _constant(ds: xr.Dataset, lam: float) -> int:
    """Return the d of the claim where it was run, else the next above it, else the largest."""
    there = sorted({int(d) for p, d in zip(ds["policy"].values, ds["probes"].values, strict=True) if "(" in str(p)})
    return next((d for d in there if d >= fewest_probes(lam)), there[-1] if there else 0)


def _facts(ds: xr.Dataset, lam: float, N: int) -> dict[str, Any]:
    """Return what the caption and the table quote, at one λ and N."""
    rows = {}
    for policy in map(str, ds["policy"].values):
        point = ds.sel(policy=policy, λ=lam, N=N)
        rows[policy] = {
            "messages_per_job": float(point["messages_per_job"]),
            "slots": registry.get(_name(policy)).slots * N,
            "delay": float(point["delay"]),
            "delay_ci95": float(point["mean_response_time_ci95"]),
            "unseen": float(point["unseen"]),
        }
    checks = ds["warm_up_ok"]
    facts = {"load": lam, "N": N, "rows": dict(sorted(rows.items(), key=lambda row: row[1]["messages_per_job"]))}
    facts |= {"d": fewest_probes(lam), "epsilon": tolerated(lam), "enough": enough_servers(lam), "largest": LARGEST}
    facts["many"] = MANY_PROBES
    return facts | {"constant": registry.label(MEMORY, fewest_probes(lam)), "cells": checks.size,
                    "flagged": int((checks == 0).sum())}  # fmt: skip


def _series(name: str, x: xr.DataArray, points: xr.Dataset) -> dict[str, tuple[Any, ...]]:
    """Return a line, its points with their intervals, and triangles in place of points in which no delay was seen."""
    at, delay, half = x.values.astype(float), points["delay"].values, points["mean_response_time_ci95"].values
    seen, d = delay > FLOOR, np.broadcast_to(points["probes"].values, delay.shape)
    low, high, gap = np.maximum(delay - half, FLOOR)[seen], (delay + half)[seen], np.full(seen.sum(), np.nan)
    return {
        f"line {name}": (at, np.where(seen, delay, np.nan)),
        f"interval {name}": (np.repeat(at[seen], 3), np.stack([low, high, gap], axis=1).ravel()),
        f"points {name}": (at[seen], delay[seen], d[seen], half[seen]),
        f"unseen {name}": (at[~seen], points["unseen"].values[~seen], d[~seen]),
    }


def _trade_off(ds: xr.Dataset, names: Sequence[str]) -> Frame:
    """Everything that moves in the plane of messages and delay, at one λ and N."""
    lam = ds["λ"].item()
    frame: dict[str, tuple[Any, ...]] = {}
    for name in names:
        points = ds.sel(policy=[p for p in ds["policy"].values if _name(p) == name]).sortby("probes")
        frame |= _series(name, points["messages_per_job"], points)
    for name in FAMILIES:
        limit = np.array([limit_response(name, lam, d) - 1 for d in PROBES])
        frame[f"limit {name}"] = (2 * np.array(PROBES, float), np.where(limit > FLOOR, limit, np.nan))
    return frame | _marks(lam, 2.0 * fewest_probes(lam))


def _ladder(ds: xr.Dataset, names: Sequence[str], N: int) -> Frame:
    """Everything in the plane of N and delay at one λ, the two families at the constant d."""
    lam = ds["λ"].item()
    frame: dict[str, tuple[Any, ...]] = {}
    for name in names:
        called = registry.label(name, _constant(ds, lam)) if name in FAMILIES else name
        points = ds.sel(policy=called) if called in ds["policy"] else ds.isel(policy=0, N=slice(0))
        frame |= _series(name, points["N"], points)
    return frame | _marks(lam, enough_servers(lam)) | {"here": ([N, N], [FLOOR, TOP])}


def _marks(lam: float, x: float) -> dict[str, tuple[Any, ...]]:
    return {"constant": ([x, x], [FLOOR, TOP]), "epsilon": ([0.1, 1e11], [tolerated(lam)] * 2)}


def _panel(
    frame: Frame, names: Sequence[str], across: hv.Dimension, room: tuple[float, float], title: str, **options: Any
) -> Panel:
    """A plane with one frame drawn."""
    dims = (across, DELAY)

    def line(label: str, color: str, dash: str = "solid", width: float = 1.2, alpha: float = 1.0) -> hv.Curve:
        x, y = frame[label]
        return el.line(x, y, dims, color, dash, width, alpha, label=label)

    parts: list[Any] = [line("constant", el.GREY, "dashed"), line("epsilon", el.BLACK, "dotted")]
    if "here" in frame:
        parts.append(line("here", el.GREY, width=6, alpha=0.25))
    parts += [
        line(f"limit {name}", LOOKS[name][0], width=0.9, alpha=0.6) for name in FAMILIES if f"limit {name}" in frame
    ]
    for name in names:
        color, dash = LOOKS[name]
        where = [(f"{name}, d", "@d"), (str(across.label), f"@{across.name}{{0.[0]}}")]
        parts += [line(f"line {name}", color, dash, 1.6), line(f"interval {name}", color)]
        x, y, d, half = frame[f"points {name}"]
        tips = [*where, ("R − 1", "@delay{0.00e+0}"), ("95 % half-width", "@half_width{0.0e+0}")]
        columns = {"d": d, "half_width": half}
        parts.append(el.points(x, y, dims, color, "dot", 6, tips, columns, f"points {name}"))
        x, y, d = frame[f"unseen {name}"]
        tips = [*where, ("R − 1 below", "@delay{0.0e+0}")]
        parts.append(el.points(x, y, dims, color, "triangle", 8, tips, {"d": d}, f"unseen {name}"))
    axes = {"logx": True, "logy": True, "xlim": room, "ylim": (FLOOR, TOP)}
    return Panel(hv.Overlay(parts), title, axes, **options)
