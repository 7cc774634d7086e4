"""The figure of what probing with replacement costs."""

from __future__ import annotations

import itertools
from typing import Any

import holoviews as hv
import xarray as xr

from dchoices.claims.replacement import far
from dchoices.plots import elements as el
from dchoices.plots.figure import MEMORY, MEMORYLESS, WITH, WITHOUT, Datasets, Figure, Panel
from dchoices.theory.replacement import replacement_limit

DIMS = (el.SERVERS, hv.Dimension("gap", label="N × (R with − R without)"))


def replacement(data: Datasets) -> Figure:
    """N times the difference of the mean response times against N, one panel for each d >= 2 and λ."""
    ds = data["replacement"].sortby("N")
    shown = [d for d in ds["d"].values.tolist() if d >= 2] or ds["d"].values.tolist()[:1]
    panels = [_panel(ds.sel(d=d, λ=lam)) for d in shown for lam in ds["λ"].values.tolist()]
    key = [
        el.Key("with memory: limit", WITH, "solid"),
        el.Key("with memory: simulated", WITH, "dot"),
        el.Key("without memory: limit", WITHOUT, "dashed"),
        el.Key("without memory: simulated", WITHOUT, "ring"),
    ]
    facts = {"replicates": ds.attrs["replicates"], "N": ds["N"].values[[0, -1]].tolist(), **_facts(ds)}
    alt = "N times the difference of mean response times with and without replacement against N, with limits as lines."
    return Figure("fig-replacement", alt, ("replacement",), panels, key, 3, facts, print_columns=2)


def _facts(ds: xr.Dataset) -> dict[str, Any]:
    """Return the largest N with memory above the threshold, where it tells the load from the steps and where not."""
    N = int(ds["N"][-1])
    found: dict[str, list[dict[str, float]]] = {"held": [], "near": []}
    if MEMORY in ds["policy"]:
        for d, lam in itertools.product(ds["d"].values.tolist(), ds["λ"].values.tolist()):
            if d >= 2 and (limit := replacement_limit(lam, d, MEMORY)):
                run = ds.sel(policy=MEMORY, N=N, d=d, λ=lam)
                value, half = (float(run[f"n_replacement{end}"]) for end in ("", "_ci95"))
                row = {"d": d, "load": lam, "limit": limit, "value": value, "half": half}
                found["held" if far(MEMORY, N, lam, d) else "near"].append(row)
    return found


def _panel(ds: xr.Dataset) -> Panel:
    d, lam, N = ds["d"].item(), ds["λ"].item(), ds["N"].values.astype(float)
    room = (N[0] / 1.3, N[-1] * 1.3)
    parts: list[Any] = []
    looks = {MEMORYLESS: (WITHOUT, "dashed", "ring"), MEMORY: (WITH, "solid", "dot")}
    for policy, (color, dash, look) in looks.items():
        limit = replacement_limit(lam, d, policy)
        tips = [(f"limit, {policy}", "@gap{0.000}")]
        parts.append(el.line(room, [limit, limit], DIMS, color, dash, 2, tooltips=tips))
        if policy in ds["policy"].values:
            run = ds.sel(policy=policy)
            tips = [(f"simulated {policy}, N", "@N"), ("N × difference", "@gap{0.000}"), ("95 % half-width", "@half")]
            half = run["n_replacement_ci95"].values
            parts.append(el.intervals(N, run["n_replacement"], half, DIMS, color))
            parts.append(el.points(N, run["n_replacement"], DIMS, color, look, 7, tips, {"half": half}))
    highest = float((ds["n_replacement"] + ds["n_replacement_ci95"]).max())
    top = 1.2 * max(highest, replacement_limit(lam, d, MEMORYLESS))
    options: dict[str, Any] = {"logx": True, "xlim": room, "ylim": (min(-0.05 * top, 0), max(top, 0.1))}
    options["xticks"] = [(n, f"{n:g}") for n in N]
    return Panel(hv.Overlay(parts), f"d = {d}, λ = {lam:g}", options)
