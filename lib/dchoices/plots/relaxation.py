"""The figure of how fast fluid paths settle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import holoviews as hv
import numpy as np
import xarray as xr
from scipy.optimize import brentq

from dchoices.plots import elements as el
from dchoices.plots.figure import LIMIT, WITH, WITHOUT, Datasets, Figure, Panel
from dchoices.theory.closed_forms import distance_to_switch, optimality_threshold, queue_bound, switch_load
from dchoices.theory.spectrum import gap_growth, spectral_gap

# Distances below this are not drawn: the error of the paths begins to show.
FLOOR = 1e-10
# A load this near to a step of the bound, in units of 1-λ, is the step.
AT_STEP = 1e-9
# How near to a step the two sides are drawn, in the same units.
CLOSE, NEAR = 1e-4, 0.2
PER_STRETCH = 40  # points of the spectral gap between two steps
# The growth of the gap towards λ = 1 is read off half-way between two steps, where 1-λ is still as large as this.
HEAVIEST = 1e-11

RATE = hv.Dimension("rate", label="rate / (1 − λ)")


def relaxation(data: Datasets) -> Figure:
    """Distance from the fixed point in time, rates next to steps of the bound, and rates over λ for each d."""
    ds = data["convergence"]
    panels = [_distance_panel(ds), *_step_panels(ds), *(_rate_panel(ds, d) for d in ds["d"].values.tolist())]
    key = [
        el.Key("distance, λ below the threshold", el.GREEN, "solid"),
        el.Key("distance, λ above", WITH, "solid"),
        el.Key("distance, λ at a step of the bound Q", WITHOUT, "solid"),
        el.Key("slope −1/(Q − 1)", LIMIT, "dashed"),
        el.Key("rate: spectral gap", LIMIT, "solid"),
        el.Key("rate: measured, slowest start", WITH, "dot"),
        el.Key("rate: measured above a step; fastest start at a step", WITHOUT, "ring"),
        el.Key("threshold 1 − 1/d", el.GREY, "dashed"),
        el.Key("further steps of the bound", el.GREY, "dotted"),
    ]
    alt = "Distance from the fixed point in time, and the rate at which it dies out against load, for each d."
    return Figure("fig-convergence", alt, ("convergence",), panels, key, facts=_facts(ds))


def _facts(ds: xr.Dataset) -> dict[str, Any]:
    low = (ds["relaxation_rate"] - ds["relaxation_rate_error"]).min("start")
    high = (ds["relaxation_rate"] + ds["relaxation_rate_error"]).min("start")
    regular = ~_at_steps(ds) & ds["settled"].all("start")
    exponents: dict[int, list[tuple[float, float]]] = {}
    for d, lam, level in _steps(ds):
        at = ds.sel({"d": d, "λ": lam})
        slow = at.isel(start=np.flatnonzero((at["settled"] == 0) & (level > 1)))
        found = zip(slow["decay_exponent"].values.tolist(), slow["decay_exponent_error"].values.tolist(), strict=True)
        exponents.setdefault(level, []).extend(found)
    return {
        "d": ds["d"].values.tolist(),
        "starts": ds["start"].values.tolist(),
        "example": int(ds.attrs["example_d"]),
        "example_loads": ds["example_load"].values.tolist(),
        "paths": ds["settled"].size,
        "unsettled": int((ds["settled"] == 0).sum()),
        "unsettled_at_steps": int(((ds["settled"] == 0) & _at_steps(ds)).sum()),
        "left": float(ds["distance_left"].where(ds["settled"] == 0).max()),
        "pairs": int(regular.sum()),
        "agree": int((regular & (low <= ds["spectral_gap"]) & (ds["spectral_gap"] <= high)).sum()),
        "heaviest": float(ds["λ"].max()),
        "exponents": {level: (min(found), max(found)) for level, found in sorted(exponents.items()) if found},
        "algebraic": sum(map(len, exponents.values())),
        "as_derived": sum(abs(x - 1 / (level - 1)) <= error for level, f in exponents.items() for x, error in f),
        "slack": HEAVIEST,
        "growth": {d: (_growth(d), gap_growth(d, 0.5)) for d in ds["d"].values.tolist()},
    }


def _steps(ds: xr.Dataset) -> Iterator[tuple[int, float, int]]:
    """Yield d, λ and level where a load of the dataset is a step of the bound."""
    for d in ds["d"].values.tolist():
        for lam in ds["λ"].values.tolist():
            if distance_to_switch(lam, d) <= AT_STEP * (1 - lam):
                yield d, lam, queue_bound(lam, d)


def _at_steps(ds: xr.Dataset) -> xr.DataArray:
    flags = xr.zeros_like(ds["spectral_gap"], dtype=bool)
    for d, lam, _ in _steps(ds):
        flags.loc[{"d": d, "λ": lam}] = True
    return flags


def _growth(d: int) -> float:
    """Return by how much gap/(1-λ) grows from one level to the next, half-way between two steps."""
    last = np.floor(-np.log(HEAVIEST) / np.log(1 + d)) - 0.5
    slack = [np.exp(brentq(lambda u, a=a: u + a * np.log1p(-np.expm1(u) * d), -99, -0.5)) for a in (last - 1, last)]
    before, after = (spectral_gap(1 - x, d) / x for x in slack)
    return after - before


def _distance_panel(ds: xr.Dataset) -> Panel:
    d = int(ds.attrs["example_d"])
    dims = (el.TIME, hv.Dimension("distance", label="distance"))
    t = ds["t"].values
    parts: list[Any] = []
    for lam in ds["example_load"].values.tolist():
        y = ds["distance"].sel(example_load=lam).values
        step = distance_to_switch(lam, d) <= AT_STEP * (1 - lam)
        color = WITHOUT if step else el.GREEN if lam < optimality_threshold(d) else WITH
        tips = [("load λ", f"{lam:.4f}"), ("t", "@t{0.0}"), ("distance", "@distance{0.0e+0}")]
        if step:
            late = t >= t[-1] / 100
            guide = 2 * y[-1] * (t[late] / t[-1]) ** (-1 / max(1, queue_bound(lam, d) - 1))
            parts.append(el.line(t[late], guide, dims, LIMIT, "dashed", 1.2))
        parts.append(el.line(t, np.where(y > FLOOR, y, np.nan), dims, color, width=2, tooltips=tips))
    options = {"logx": True, "logy": True, "xlim": (t[0], t[-1]), "ylim": (FLOOR, 2)}
    return Panel(hv.Overlay(parts), f"distance from the fixed point, d = {d}", options)


def _step_panels(ds: xr.Dataset) -> list[Panel]:
    """Rates against the distance from each step of the bound above the threshold, on either side, if there is one."""
    d = int(ds.attrs["example_d"])
    steps = [lam for probes, lam, level in _steps(ds) if probes == d and level > 1]
    if not steps:
        return []
    dims = (hv.Dimension("away", label="distance of λ from the step, over 1 − λ"), RATE)
    measured, lam = _slowest(ds, d), ds["λ"].values
    away = np.geomspace(CLOSE, NEAR, PER_STRETCH)
    parts: list[Any] = []
    for step in steps:
        for side, color, word in ((-1, WITH, "below"), (1, WITHOUT, "above")):
            loads = step + side * away * (1 - step)
            parts.append(el.line(away, _scaled_gap(loads, d), dims, LIMIT, width=1.2))
            at = side * (lam - step) / (1 - step)
            keep = (at >= CLOSE) & (at <= NEAR)
            tips = [(f"{word} the step to Q", f"{queue_bound(step, d) + 1}"), ("load λ", "@lam{0.0000}"),
                    ("rate / (1 − λ)", "@rate{0.0000}")]  # fmt: skip
            look = "dot" if side < 0 else "ring"
            columns = {"lam": lam[keep]}
            parts.append(el.points(at[keep], measured[keep], dims, color, look, 6, tips, columns))
    options = {"logx": True, "logy": True, "xlim": (CLOSE, NEAR)}
    return [Panel(hv.Overlay(parts), f"next to the steps of the bound, d = {d}", options)]


def _slowest(ds: xr.Dataset, d: int) -> np.ndarray:
    """Return the measured rate of the slowest start over 1-λ."""
    rate: np.ndarray = (ds["relaxation_rate"].sel(d=d).min("start") / (1 - ds["λ"])).values
    return rate


def _scaled_gap(loads: Sequence[float] | np.ndarray, d: int) -> np.ndarray:
    return np.array([spectral_gap(float(lam), d) / (1 - lam) for lam in loads])


def _rate_panel(ds: xr.Dataset, d: int) -> Panel:
    """Rates over 1-λ against 1/(1-λ): measured, and the spectral gap, whose line breaks at the steps of the bound."""
    dims = (hv.Dimension("slack", label="1 / (1 − λ)"), RATE)
    lam, rate = ds["λ"].values, ds["relaxation_rate"].sel(d=d)
    top = float(lam.max())
    steps = [step for level in range(1, queue_bound(top, d) + 1) if 0 < (step := switch_load(level, d)) < top]
    parts: list[Any] = []
    highest = 0.0
    for low, high in zip([0.0, *steps], [*steps, top], strict=True):
        # Crowded towards the ends of the stretch, where the line is steep.
        part = np.sin(np.linspace(0.01, np.pi / 2 - 0.01, PER_STRETCH)) ** 2
        loads = 1 - (1 - low) ** (1 - part) * (1 - high) ** part
        tips = [("spectral gap / (1 − λ)", "@rate{0.000}"), ("1/(1 − λ)", "@slack{0.00}")]
        parts.append(el.line(1 / (1 - loads), gap := _scaled_gap(loads, d), dims, LIMIT, width=1.4, tooltips=tips))
        highest = max(highest, gap.max())
    tips = [("measured, slowest start", "@rate{0.0000}"), ("load λ", "@lam{0.0000}")]
    parts.append(el.points(1 / (1 - lam), _slowest(ds, d), dims, WITH, size=4, tooltips=tips, columns={"lam": lam}))
    at_steps = _at_steps(ds).sel(d=d).values
    tips = [("measured at a step, fastest start", "@rate{0.0000}"), ("load λ", "@lam{0.0000}")]
    fastest = (rate.max("start") / (1 - ds["λ"])).values[at_steps]
    x, columns = 1 / (1 - lam[at_steps]), {"lam": lam[at_steps]}
    parts.append(el.points(x, fastest, dims, WITHOUT, "ring", 6, tips, columns))
    threshold = optimality_threshold(d)
    for step in steps:
        parts.append(el.mark(1 / (1 - step), dash="dashed" if abs(step - threshold) < AT_STEP else "dotted"))
    options = {"logx": True, "xlim": (1, 1.15 / (1 - top)), "ylim": (-0.03 * highest, 1.1 * highest)}
    return Panel(hv.Overlay(parts), f"rates, d = {d}", options)
