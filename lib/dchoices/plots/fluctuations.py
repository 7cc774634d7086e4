"""The figure of stationary variances."""

from __future__ import annotations

from typing import Any

import holoviews as hv
import numpy as np
import xarray as xr

from dchoices.plots import elements as el
from dchoices.plots.figure import LIMIT, WITHOUT, Datasets, Figure, Panel
from dchoices.theory.closed_forms import optimality_threshold
from dchoices.theory.fluctuations import fluctuations_below_threshold

BUSY, KNOWN_IDLE = el.BLUE, el.GREEN


def fluctuations(data: Datasets) -> Figure:
    """N times both variances against λ, one panel per d."""
    ds = data["fluctuations"]
    ds = ds.sel(N=ds["N"].max().item())
    panels = [_panel(ds.sel(d=d)) for d in ds["d"].values.tolist()]
    key = [
        el.Key("busy servers: limit, simulated", BUSY, "solid"),
        el.Key("known idle servers: limit, simulated", KNOWN_IDLE, "solid"),
        el.Key("independent servers, λ(1 − λ)", WITHOUT, "dashed"),
        el.Key("known idle, a Poisson number found", LIMIT, "dotted"),
        el.Key("threshold 1 − 1/d", el.GREY, "dashed"),
    ]
    facts = {"N": ds["N"].item(), "d": ds["d"].values.tolist(), "replicates": ds.attrs["replicates"]}
    alt = "N times the stationary variance of the shares of busy and of known idle servers against load, for each d."
    return Figure("fig-fluctuations", alt, ("fluctuations",), panels, key, 3, facts, print_columns=2)


def _panel(ds: xr.Dataset) -> Panel:
    """Limits up to the threshold as lines, simulated variances as points, the controls broken."""
    d = ds["d"].item()
    threshold, highest = optimality_threshold(d), float(ds["λ"].max())
    dims = (el.LOAD, hv.Dimension("variance", label="N × variance of a share"))
    parts: list[Any] = []
    if threshold > 0:
        lam = np.linspace(0.01, threshold, 60, endpoint=False)
        busy, known_idle = np.array([fluctuations_below_threshold(x, d) for x in lam]).T
        poisson = [fluctuations_below_threshold(x, d, 1.0)[1] for x in lam]
        parts += [
            el.line(lam, lam * (1 - lam), dims, WITHOUT, "dashed"),
            el.line(lam, poisson, dims, LIMIT, "dotted"),
            el.line(lam, busy, dims, BUSY, width=2),
            el.line(lam, known_idle, dims, KNOWN_IDLE, width=2),
            el.mark(threshold),
        ]
    for name, color, look in (("n_var_busy", BUSY, "dot"), ("n_var_known_idle", KNOWN_IDLE, "triangle")):
        value, half = ds[name].values, ds[f"{name}_ci95"].values
        tips = [(ds[name].attrs["description"], "@variance{0.0000}"), ("95 % half-width", "@half{0.0e+0}"),
                ("load λ", "@lam{0.00}")]  # fmt: skip
        parts.append(el.intervals(ds["λ"], value, half, dims, color))
        parts.append(el.points(ds["λ"], value, dims, color, look, 6, tips, {"half": half}))
    top = 1.1 * max(float(ds[name].max()) for name in ("n_var_busy", "n_var_known_idle"))
    return Panel(hv.Overlay(parts), f"d = {d}", {"xlim": (0, 1.15 * highest), "ylim": (0, top)})
