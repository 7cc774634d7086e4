"""The figure of tail frequencies: how rarely a path strays from the fluid path."""

from __future__ import annotations

from typing import Any

import holoviews as hv
import numpy as np
import xarray as xr

from dchoices.plots import elements as el
from dchoices.plots.figure import LIMIT, WITH, WITHOUT, Datasets, Figure, Panel
from dchoices.statistics import proportion
from dchoices.tails import fit_tails

DIMS = (el.SERVERS, hv.Dimension("frequency", label="share of paths beyond ε"))


def tails(data: Datasets) -> Figure:
    """Tail frequencies against N and against log N, two panels for each d and λ, with the control."""
    ds = data["concentration"].sortby("N")
    panels = []
    for d in ds["d"].values.tolist():
        for lam in ds["λ"].values.tolist():
            panels += [_tail_panel(ds.sel(d=d, λ=lam), logarithmic) for logarithmic in (False, True)]
    key = [
        el.Key("the system, with an exponential fitted", WITH, "solid"),
        el.Key("control: perturbed loads, with a power of N fitted", WITHOUT, "solid"),
        el.Key("1/N", LIMIT, "dashed"),
    ]
    alt = "Share of paths farther than ε from the fluid path against N, on a linear and on a logarithmic axis of N."
    return Figure("fig-concentration", alt, ("concentration",), panels, key, facts=_facts(ds))


def _tail_panel(ds: xr.Dataset, logarithmic: bool) -> Panel:
    """Points with their intervals and a fitted line for every ε: straight where the axis suits it."""
    replicates = int(ds.attrs["replicates"])
    N = ds["N"].values.astype(float)
    dense = np.geomspace(N[0], N[-1])
    parts: list[Any] = []
    for scale in ds["perturbation"].values.tolist():
        color = WITHOUT if scale else WITH
        for epsilon in ds["ε"].values.tolist():
            frequency = ds["tail_frequency"].sel(perturbation=scale, ε=epsilon).transpose("N").values
            exceeded = np.rint(frequency * replicates).astype(int)
            fit = fit_tails(exceeded[None], replicates, N, exponential=not scale, power=bool(scale))
            if fit is not None:
                parts.append(el.line(dense, np.minimum(fit.frequency(dense)[0], 1), DIMS, color, width=1))
            parts += _points(N, exceeded, replicates, color, f"ε = {epsilon:g}" + ", control" * bool(scale))
    if logarithmic:
        middle = np.sqrt(0.5 / replicates)
        parts.append(el.line(N, middle * N[0] / N, DIMS, LIMIT, "dashed", 1.2))
    room = (N[0] / 1.1, N[-1] * 1.1) if logarithmic else (N[0] - 0.05 * N[-1], 1.05 * N[-1])
    options: dict[str, Any] = {"logy": True, "logx": logarithmic, "xlim": room, "ylim": (0.5 / replicates, 1.5)}
    if logarithmic:
        options["xticks"] = [(n, f"{n:g}") for n in N]
    axis = "log N" if logarithmic else "N"
    return Panel(hv.Overlay(parts), f"d = {ds['d'].item()}, λ = {ds['λ'].item():g}, against {axis}", options)


def _points(N: np.ndarray, exceeded: np.ndarray, replicates: int, color: str, name: str) -> list[Any]:
    """Frequencies above 0, which have a place on the axis, with exact intervals."""
    seen = exceeded > 0
    count, at = exceeded[seen], N[seen]
    low, high = proportion(count, replicates)
    gap = np.full_like(at, np.nan)
    bars = el.line(np.stack([at, at, gap], 1).ravel(), np.stack([low, high, gap], 1).ravel(), DIMS, color, width=1)
    tips = [(f"{name}, N", "@N"), ("share of replicates", "@frequency{0.00000}"), ("replicates", "@count")]
    return [bars, el.points(at, count / replicates, DIMS, color, size=4, tooltips=tips, columns={"count": count})]


def _facts(ds: xr.Dataset) -> dict[str, Any]:
    """What the text says: the ε, how many replicates, the range of s = -d log P/d log N, and the control's medians."""
    replicates, N = int(ds.attrs["replicates"]), ds["N"].values.astype(float)
    slopes: dict[str, list[float]] = {"system": [], "control": []}
    for place in ds["tail_frequency"].stack(place=("perturbation", "d", "λ")).transpose("place", "ε", "N"):
        fit = fit_tails(np.rint(place.values * replicates).astype(int), replicates, N)
        if fit is not None:
            slopes["control" if place["perturbation"].item() else "system"] += fit.local_exponent()[0].tolist()
    control = ds["median_distance"].sel(perturbation=ds["perturbation"] > 0).isel(d=0, λ=0)
    return {
        "epsilon": ds["ε"].values.tolist(),
        "replicates": replicates,
        "N": ds["N"].values[[0, -1]].tolist(),
        "slopes": {name: (min(found), max(found)) for name, found in slopes.items() if found},
        "load": control["λ"].item(),
        "medians": control.isel(perturbation=0, N=[0, -1]).values.tolist() if control.size else None,
    }
