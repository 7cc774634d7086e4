"""The figure of policies side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import holoviews as hv
import numpy as np
import xarray as xr

from dchoices import registry
from dchoices.plots import elements as el
from dchoices.plots.figure import (
    MEMORY,
    MEMORYLESS,
    TAIL_FLOOR,
    WITH,
    WITHOUT,
    Datasets,
    Figure,
    Panel,
    nearest,
    response_axis,
)
from dchoices.statistics import unseen
from dchoices.theory import closed_forms

# Load at which policies are compared: high enough to tell them apart, and the highest at which most cells are exact.
COMPARED_LOAD = 0.9
# Loads that are named on an axis of 1 / (1 - λ).
LOAD_TICKS = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995)
# Probes per job at which the limits of cost and benefit are drawn.
PROBES = (1, 2, 3, 4, 5, 6, 8, 10, 14, 20, 30, 50, 100)
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
    ds["unseen"] = unseen(int(ds.attrs["replicates"]), ds["λ"], ds["N"], ds["horizon"])
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
    values = ("mean_response_time", "mean_response_time_ci95", "messages_per_job", "dispatch_to_idle", "unseen")
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
    options = response_axis(float(ds[variable].max())) | {"logx": True, "xlim": (x.min() / 1.1, x.max() * 1.1)}
    options["xticks"] = [(1 / (1 - v), f"{v:g}") for v in LOAD_TICKS if x.min() / 1.1 <= 1 / (1 - v) <= x.max() * 1.1]
    return Panel(hv.Overlay(parts), "mean response time", options)


def _cost_panel(ds: xr.Dataset, looks: Mapping[str, tuple[str, str]], labels: Mapping[str, str]) -> Panel:
    """Mean response time against messages per job; the two families over d as lines, in the fluid limit."""
    dims = (hv.Dimension("messages", label="messages per job"), hv.Dimension("value", label="mean response time"))
    lam = ds["λ"].item()
    limits = {
        MEMORYLESS: [closed_forms.sq_mean_response_time(lam, d) for d in PROBES],
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
    options = response_axis(float(ds["mean_response_time"].max())) | {"logx": True, "xlim": room}
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
