"""The figure of service that is not exponential: what all laws share, and what each has for itself."""

from __future__ import annotations

import itertools
import math
from typing import Any

import holoviews as hv
import numpy as np
import xarray as xr

from dchoices import statistics
from dchoices.claims.selection import far
from dchoices.plots import elements as el
from dchoices.plots.comparison import LOAD_TICKS
from dchoices.plots.figure import MEMORY, TAIL_FLOOR, Datasets, Figure, Panel, example_d, largest, tail_of
from dchoices.plots.limits import MOST_TICKS, OCCUPIED
from dchoices.service import as_law
from dchoices.theory.closed_forms import optimality_threshold, queue_bound
from dchoices.theory.general_service import service_fixed_point

# Colour, dash and marker of the laws, the least variable first.
LOOKS = (
    (el.BLUE, "dashed", "triangle"),
    (el.GREEN, "dotted", "dot"),
    (el.BLACK, "solid", "ring"),
    (el.VERMILLION, "solid", "dot"),
    (el.PURPLE, "dashed", "ring"),
    (el.ORANGE, "dotted", "triangle"),
)
Looks = dict[str, tuple[str, str, str]]
# Points of a staircase over load.
STAIRS = 200


def service(data: Datasets) -> Figure:
    """Share of jobs to observation 0 for every law on a common line; tails and bounds, in which the laws differ."""
    runs = largest(data["service"], MEMORY)
    if runs is None:
        raise ValueError("data['service']: holds no runs with memory")
    laws = sorted(runs["service"].values.tolist(), key=lambda law: as_law(law).scv)
    looks = {law: LOOKS[k % len(LOOKS)] for k, law in enumerate(laws)}
    ds, lam = runs["d"].values.tolist(), float(runs["λ"].max())
    shared, compared = [d for d in ds if d > 1] or ds, sorted({min(ds), example_d(ds)})
    panels = [_share_panel(runs.sel(d=d), d, looks) for d in shared]
    panels += [_tail_panel(runs.sel(d=d, λ=lam), d, lam, looks) for d in compared]
    panels += [_bound_panel(runs.sel(d=d), d, looks) for d in compared]
    key = [el.Key(law, color, dash) for law, (color, dash, _) in looks.items()]
    key += [el.Key(f"{law}, simulated", color, look) for law, (color, _, look) in looks.items()]
    key += [
        el.Key("limit of every law: min(1, d(1 − λ))", el.SKY, "solid"),
        el.Key("threshold 1 − 1/d; ⌈1/(d(1 − λ))⌉, the most of any law", el.GREY, "dashed"),
    ]
    bounds = {d: {law: queue_bound(lam, d, law) for law in laws} for d in compared}
    facts = {"laws": laws, "N": runs["N"].item(), "load": lam, "d": shared, "bounds": bounds, "occupied": OCCUPIED}
    facts |= _distances(runs) | _told_apart(runs, laws)
    alt = "Share of jobs to observation 0 against load, queue-length tails, and bounds, for several service laws."
    return Figure("fig-service", alt, ("service",), panels, key, facts=facts)


def _distances(runs: xr.Dataset) -> dict[str, Any]:
    """How far simulated shares are from their limits, over all cells, and what the check of the warm-up says."""
    share, occupancy = [], []
    for law in runs["service"].values.tolist():
        for d in runs["d"].values.tolist():
            for lam in runs["λ"].values.tolist():
                point = runs.sel(service=law, d=d, λ=lam)
                share.append(abs(float(point["dispatch_to_observation_zero"]) - min(1, d * (1 - lam))))
                limit = service_fixed_point(lam, d, law)["queue_length_pmf"].values
                occupancy.append(float(statistics.total_variation(point["occupancy"].values, limit)))
    flagged = int((runs["warm_up_ok"] == 0).sum())
    return {"cells": len(share), "share_error": max(share), "occupancy_error": max(occupancy), "flagged": flagged}


def _told_apart(runs: xr.Dataset, laws: list[str]) -> dict[str, Any]:
    """Where, away from the steps of a law's bound, it is another than that of exponential service; what never shows."""
    places = itertools.product(laws, runs["d"].values.tolist(), runs["λ"].values.tolist())
    away = [(law, d, lam) for law, d, lam in places if far(lam, d, law)]
    told = [(law, d, lam) for law, d, lam in away if queue_bound(lam, d, law) != queue_bound(lam, d)]
    untold = [law for law in laws if as_law(law).name != "exponential" and law not in {law for law, *_ in told}]
    return {"away": len(away), "told": told, "untold": untold}


def _share_panel(runs: xr.Dataset, d: int, looks: Looks) -> Panel:
    dims = (el.LOAD, hv.Dimension("share", label="share of jobs to observation 0"))
    lam = np.linspace(0, 1, 101)
    parts: list[Any] = [el.line(lam, np.minimum(1, d * (1 - lam)), dims, el.SKY, width=4)]
    parts.append(el.mark(optimality_threshold(d)))
    for k, (law, (color, _, look)) in enumerate(looks.items()):
        point = runs.sel(service=law)
        value, half = (point[f"dispatch_to_observation_zero{end}"] for end in ("", "_ci95"))
        tips = [(f"{law}, load λ", "@lam{0.000}"), ("share", "@share{0.0000}"), ("± 95 %", "@half_width{0.0000}")]
        parts.append(el.intervals(point["λ"], value, half, dims, color))
        size = max(12 - 2 * k, 5)  # where points coincide those below show round those above
        parts.append(el.points(point["λ"], value, dims, color, look, size, tips, {"half_width": half}))
    return Panel(hv.Overlay(parts), f"sent to observation 0, d = {d}", {"xlim": (0.3, 1), "ylim": (0, 1.05)})


def _tail_panel(runs: xr.Dataset, d: int, lam: float, looks: Looks) -> Panel:
    dims = (el.QUEUE, hv.Dimension("tail", label="share with at least i jobs"))
    parts: list[Any] = []
    longest = 0
    for law, (color, dash, look) in looks.items():
        tail = np.append(tail_of(service_fixed_point(lam, d, law)["queue_length_pmf"]), TAIL_FLOOR / 10)
        parts.append(el.line(np.arange(tail.size), tail, dims, color, dash, 2))
        measured = tail_of(runs["occupancy"].sel(service=law))
        seen = np.flatnonzero(measured > TAIL_FLOOR)
        tips = [(f"{law}: at least", "@i jobs"), ("share of servers", "@tail{0.0000}")]
        parts.append(el.points(seen, measured[seen], dims, color, look, 7, tooltips=tips))
        longest = max(longest, tail.size - 1)
    options = {"logy": True, "ylim": (1e-3, 1.5), "xlim": (-0.3, longest + 0.3)}
    return Panel(hv.Overlay(parts), f"queue-length tail, d = {d}, λ = {lam:g}", options)


def _bound_panel(runs: xr.Dataset, d: int, looks: Looks) -> Panel:
    dims = (hv.Dimension("slack", label="load λ, on the scale of 1 / (1 − λ)"), hv.Dimension("level", label="jobs"))
    lam = runs["λ"].values
    slack = np.geomspace(1 / (1 - lam.min()), 1.3 / (1 - lam.max()), STAIRS)
    top = 0
    parts: list[Any] = [el.line(slack, np.ceil(slack / d), dims, el.GREY, "dashed", 1, steps=True)]
    for law, (color, dash, look) in looks.items():
        stairs = np.array([queue_bound(1 - 1 / x, d, law) for x in slack])
        tips = [(f"bound, {law}", "@level"), ("1/(1 − λ)", "@slack{0.00}")]
        parts.append(el.line(slack, stairs, dims, color, dash, 2, steps=True, tooltips=tips))
        held = (runs["occupancy"].sel(service=law) > OCCUPIED) * runs["queue_length"]
        parts.append(el.points(1 / (1 - lam), held.max("queue_length"), dims, color, look, 7))
        top = max(top, int(stairs.max()), int(held.max()))
    options = {"logx": True, "ylim": (0, top + 0.5), "yticks": list(range(0, top + 1, math.ceil(top / MOST_TICKS)))}
    options["xticks"] = [(1 / (1 - v), f"{v:g}") for v in LOAD_TICKS if slack[0] <= 1 / (1 - v) <= slack[-1]]
    return Panel(hv.Overlay(parts), f"bound, d = {d}", options)
