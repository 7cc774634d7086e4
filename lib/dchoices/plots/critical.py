"""Figures of the loads at which the longest queue grows, and of what a finite N adds to the limit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import holoviews as hv
import numpy as np
import xarray as xr

from dchoices.exponents import Ladder
from dchoices.plots import elements as el
from dchoices.plots.figure import LIMIT, WITH, WITHOUT, Datasets, Figure, Panel, example_d
from dchoices.regimes import REGIMES
from dchoices.theory.closed_forms import fixed_point, switch_load
from dchoices.theory.critical import lowest_share_limit

# Colours of the regimes, the later steps alike, and of y by d.
COLORS = {"below": el.GREEN, "threshold": WITHOUT, "above": WITH, "step-2": el.PURPLE}
BY_D = (el.ORANGE, WITH, WITHOUT, el.PURPLE, el.GREY)
LATER = {2: "step-2", 3: "step-3"}
SHARE_TICKS = [(y, f"{y:g}") for y in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)]
# How far from the step the line of R is drawn, in units of 1 - λ, and with how many points on a side.
NEAR, POINTS = 0.3, 80
# A power law is seen in |R_N - R| where what y leaves of it is less than this part of y/λ.
SMALL_PART = 0.1


def _d_of(runs: xr.Dataset, point: str) -> list[int]:
    """Return the d for which a point was run."""
    if point not in runs["point"].values:
        return []
    return [d for d in runs["d"].values.tolist() if Ladder.of(runs, "lowest_share", point, d).N.size]


def _size_axis(runs: xr.Dataset, points: list[str]) -> dict[str, Any]:
    """Return the options of an axis of N that holds what was run at these points."""
    sizes = runs["N"].values[(runs["horizon"].sel(point=points) > 0).any(["point", "d"]).values]
    if not sizes.size:
        return {}
    powers = [10**k for k in range(1, 10) if sizes.min() <= 10**k <= sizes.max()]
    ticks = [(N, f"{N}") for N in powers or sizes.tolist()]
    return {"logx": True, "logy": True, "xlim": (sizes.min() / 1.3, sizes.max() * 1.3), "xticks": ticks}


def _series(ladder: Ladder, dims: el.Axes, color: str, look: str, name: str) -> Iterator[Any]:
    """Points of |value| with their intervals, joined by a line."""
    N, y, half = ladder.N, np.abs(ladder.value), np.minimum(ladder.half_width, 0.95 * np.abs(ladder.value))
    yield el.line(N, y, dims, color, width=1, alpha=0.5)
    yield el.intervals(N, y, half, dims, color)
    tips = [(f"{name}, N", "@N"), (dims[1].label, f"@{dims[1].name}{{0.00000}}")]
    yield el.points(N, y, dims, color, look, 5, tips)


def critical(data: Datasets) -> Figure:
    """The window at the threshold, scaled, and the fraction with the lowest observation at later steps."""
    runs = data["finite_size"]
    window = _d_of(runs, "threshold")
    later = [LATER[level] for level in LATER if _d_of(runs, LATER[level])]
    panels = [_window_panel(runs, d) for d in window] + [_share_panel(runs, point) for point in later]
    sizes = _window_sizes(runs)
    key = [el.Key(f"N = {N}", color, "dot") for N, color in zip(sizes, el.ladder(sizes), strict=True)]
    shown = sorted({d for point in later for d in _d_of(runs, point)})
    key += [el.Key(f"y, d = {d}", _color(d), "ring") for d in shown]
    key += [el.Key(f"its limit law, d = {d}", _color(d), "dashed") for d in shown]
    ladders = {d: Ladder.of(runs, "missed_zero", "threshold", d) for d in window}
    constants = {d: ladder.root_constant() for d, ladder in ladders.items() if ladder.resolved}
    facts = {"constants": constants, "sizes": sizes, "change": {d: _window_change(runs, d) for d in window}}
    facts |= _share_facts(runs, later)
    alt = "Jobs that miss observation 0 times the root of N against the scaled load, and y against N at later steps."
    return Figure("fig-critical", alt, ("finite_size",), panels, key, facts=facts)


def _share_facts(runs: xr.Dataset, later: list[str]) -> dict[str, Any]:
    """Return of y at later steps its exponents of N, and its ratios to its limit law at the smallest N and the largest.

    And how many exponents hold the derived value, with the one that is nearest to the middle between two levels.
    """
    exponents: dict[int, dict[int, tuple[float, float]]] = {}
    ratios: dict[int, dict[int, tuple[float, float, float]]] = {}
    held, nearest = [], []
    for point in later:
        level = REGIMES[point]
        for d in _d_of(runs, point):
            if not (ladder := Ladder.of(runs, "lowest_share", point, d)).resolved:
                continue
            value, half = exponents.setdefault(level, {})[d] = ladder.exponent()
            over = ladder.N ** (1 / (level + 1)) / lowest_share_limit(level, d)
            ratio, width = ladder.value * over, ladder.half_width * over
            ratios.setdefault(level, {})[d] = (float(ratio[0]), float(ratio[-1]), float(width[-1]))
            held.append(abs(value + 1 / (level + 1)) <= half)
            for other in (level - 1, level + 1):
                edge = -(1 / (level + 1) + 1 / (other + 1)) / 2
                nearest.append((abs(value - edge) - half, {"level": level, "d": d, "edge": edge, "other": other}))
    closest = min(nearest, key=lambda pair: pair[0])[1] if nearest else None
    return {"exponents": exponents, "ratios": ratios, "held": sum(held), "of": len(held), "closest": closest}


def _window_change(runs: xr.Dataset, d: int) -> tuple[float, float]:
    """Return by which part √N (1 - R_0) changes from the smallest N to the largest, least and most over the loads."""
    sizes = _window_sizes(runs)
    missed = runs["missed_zero"].sel(point=_window(runs), d=d)
    change = np.sqrt(sizes[-1] / sizes[0]) * missed.sel(N=sizes[-1]) / missed.sel(N=sizes[0]) - 1
    return float(change.min()), float(change.max())


def _window(runs: xr.Dataset) -> list[str]:
    return [p for p in runs.sortby("offset")["point"].values.tolist() if p.split()[0] == "threshold"]


def _window_sizes(runs: xr.Dataset) -> list[int]:
    there = (runs["horizon"].sel(point=_window(runs)) > 0).any(["point", "d"])
    return runs["N"].values[there.values].tolist()


def _window_panel(runs: xr.Dataset, d: int) -> Panel:
    dims = (
        hv.Dimension("x", label="x = (λ − λ₁)√N / (1 − λ₁)"),
        hv.Dimension("scaled", label="√N (1 − R₀)"),
    )
    at = runs.sel(point=_window(runs), d=d)
    sizes = _window_sizes(runs)
    parts: list[Any] = []
    for N, color in zip(sizes, el.ladder(sizes), strict=True):
        root = np.sqrt(N)
        x, y = at["offset"].values, root * at["missed_zero"].sel(N=N).values
        half = root * at["missed_zero_ci95"].sel(N=N).values
        parts += [el.line(x, y, dims, color, width=1), el.intervals(x, y, half, dims, color)]
        tips = [("N", f"{N}"), ("x", "@x"), ("√N (1 − R₀)", "@scaled{0.000}")]
        parts.append(el.points(x, y, dims, color, size=5, tooltips=tips))
    return Panel(hv.Overlay(parts), f"at the threshold, d = {d}")


def _color(d: int) -> str:
    return BY_D[(d - 1) % len(BY_D)]


def _share_panel(runs: xr.Dataset, point: str) -> Panel:
    dims = (el.SERVERS, hv.Dimension("y", label="share of servers y"))
    level = REGIMES[point]
    parts: list[Any] = []
    for d in _d_of(runs, point):
        ladder = Ladder.of(runs, "lowest_share", point, d)
        limit = lowest_share_limit(level, d) * ladder.N ** (-1 / (level + 1))
        parts.append(el.line(ladder.N, limit, dims, _color(d), "dashed", 1.2))
        parts += _series(ladder, dims, _color(d), "ring", f"Q = {level}, d = {d}")
    return Panel(
        hv.Overlay(parts), f"at the step from Q = {level}", _size_axis(runs, [point]) | {"yticks": SHARE_TICKS}
    )


def finite_size(data: Datasets) -> Figure:
    """|R_N - R| against N, what it is made of at later steps, and R(λ) at a later step."""
    runs = data["finite_size"]
    early = [p for p in ("below", "threshold", "above") if _d_of(runs, p)]
    later = [LATER[level] for level in LATER if _d_of(runs, LATER[level])]
    panels = ([_excess_panel(runs, early)] if early else []) + ([_parts_panel(runs, later[0])] if later else [])
    panels += [_scaled_panel(runs, point) for point in later]
    d = example_d(runs["d"].values)
    step = min(level for level in runs["step"].values.tolist() if level)
    panels += [_limit_panel(d, step), _root_panel(runs, d)]
    key = [el.Key(f"|R_N − R| {_where(p)}", COLORS[p], "dot") for p in early]
    key += [
        el.Key(f"at later steps, d = {k}", _color(k), "solid")
        for k in sorted({k for p in later for k in _d_of(runs, p)})
    ]
    key += [
        el.Key("leading term y/λ of −(R_N − R)", LIMIT, "ring"),
        el.Key("what that leaves", LIMIT, "triangle"),
        el.Key("R_N − R, scaled", LIMIT, "dot"),
        el.Key("where it goes", LIMIT, "dotted"),
        el.Key("the limit R below a step of Q", WITH, "solid"),
        el.Key("the limit R above a step of Q", WITHOUT, "solid"),
        el.Key("slopes derived", LIMIT, "dashed"),
    ]
    facts = {"d": d, "step": step, "later": later and _later_facts(runs, later[0])}
    facts["courses"] = [_course(runs, point, k) for point in later for k in _d_of(runs, point)]
    alt = "Difference of the mean response time from its limit against N, and the limit next to a step of the bound."
    return Figure("fig-finite-size", alt, ("finite_size",), panels, key, facts=facts)


def _where(point: str) -> str:
    return {"threshold": "at the threshold"}.get(point, f"{point} the threshold")


EXCESS = (el.SERVERS, hv.Dimension("excess", label="|R_N − R|"))


def _guide(ladder: Ladder, exponent: float, factor: float) -> Any:
    """A dashed line of this slope beside the largest N."""
    y = factor * abs(ladder.value[-1]) * (ladder.N / ladder.N[-1]) ** exponent
    return el.line(ladder.N, y, EXCESS, LIMIT, "dashed", 1)


def _excess_panel(runs: xr.Dataset, early: list[str]) -> Panel:
    parts: list[Any] = []
    for point in early:
        for d in _d_of(runs, point):
            ladder = Ladder.of(runs, "response_excess", point, d)
            parts += _series(ladder, EXCESS, COLORS[point], "dot", f"{_where(point)}, d = {d}")
        if point != "below":
            parts.append(_guide(ladder, -1 / 2 if point == "threshold" else -1, 2))
    return Panel(hv.Overlay(parts), "below, at and above the threshold", _size_axis(runs, early))


def _parts_panel(runs: xr.Dataset, point: str) -> Panel:
    """What R_N - R is made of: its leading term, and what that leaves, for each d."""
    level = REGIMES[point]
    parts: list[Any] = []
    for k, d in enumerate(_d_of(runs, point)):
        load = float(runs["load"].sel(point=point, d=d).max())
        y = Ladder.of(runs, "lowest_share", point, d)
        leading = Ladder(y.N, y.value / load, y.half_width / load)
        remainder = Ladder.of(runs, "response_remainder", point, d)
        if k == 0:
            parts += [_guide(leading, -1 / (level + 1), 1.5), _guide(remainder, -level / (level + 1), 0.6)]
        parts += _series(leading, EXCESS, _color(d), "ring", f"y/λ, d = {d}")
        parts += _series(remainder, EXCESS, _color(d), "triangle", f"R_N − R + y/λ, d = {d}")
    title = f"two parts of R_N − R at the step from Q = {level}"
    return Panel(hv.Overlay(parts), title, _size_axis(runs, [point]))


def _scaled_panel(runs: xr.Dataset, point: str) -> Panel:
    """R_N - R over its order in N, with its sign, and the limit of that, for each d."""
    level = REGIMES[point]
    dims = (el.SERVERS, hv.Dimension("scaled", label=f"N^(1/{level + 1}) (R_N − R)"))
    axis = _size_axis(runs, [point])
    parts: list[Any] = [el.line(axis["xlim"], (0, 0), dims, el.GREY, width=1)]
    for d in _d_of(runs, point):
        ladder = Ladder.of(runs, "response_excess", point, d)
        power = ladder.N ** (1 / (level + 1))
        goes = -lowest_share_limit(level, d) / float(runs["load"].sel(point=point, d=d).max())
        parts.append(el.line(axis["xlim"], (goes, goes), dims, _color(d), "dotted", 1.4))
        parts.append(el.line(ladder.N, power * ladder.value, dims, _color(d), width=1, alpha=0.5))
        parts.append(el.intervals(ladder.N, power * ladder.value, power * ladder.half_width, dims, _color(d)))
        tips = [(f"d = {d}, N", "@N"), (f"N^(1/{level + 1}) (R_N − R)", "@scaled{0.000}")]
        parts.append(el.points(ladder.N, power * ladder.value, dims, _color(d), "dot", 5, tips))
    return Panel(hv.Overlay(parts), f"R_N − R, scaled, at the step from Q = {level}", axis | {"logy": False})


def _course(runs: xr.Dataset, point: str, d: int) -> dict[str, Any]:
    """Return R_N - R at the smallest N and the largest of a later step; `direct` if below 0 and ever closer to it."""
    ladder = Ladder.of(runs, "response_excess", point, d)
    direct = bool((ladder.value < 0).all() and (np.diff(ladder.value) > 0).all())
    ends = [(int(ladder.N[k]), float(ladder.value[k]), float(ladder.half_width[k])) for k in (0, -1)]
    return {"level": REGIMES[point], "d": d, "direct": direct, "first": ends[0], "last": ends[1]}


def _later_facts(runs: xr.Dataset, point: str) -> dict[str, Any]:
    """Between the two largest N the exponent of |R_N - R|, and the N at which the leading term leads, for each d."""
    found: dict[int, tuple[float, float, float]] = {}
    power = (REGIMES[point] - 1) / (REGIMES[point] + 1)  # what it leaves falls by so much faster
    for d in _d_of(runs, point):
        excess = Ladder.of(runs, "response_excess", point, d)
        if excess.N.size < 2:
            continue
        y = Ladder.of(runs, "lowest_share", point, d)
        remainder = Ladder.of(runs, "response_remainder", point, d)
        part = remainder.value[-1] * float(runs["load"].sel(point=point, d=d).max()) / y.value[-1]
        found[d] = (*excess.local_exponent(), float(y.N[-1] * (abs(part) / SMALL_PART) ** (1 / power)))
    return {"level": REGIMES[point], "part": SMALL_PART, "by_d": found}


def _limit_panel(d: int, level: int) -> Panel:
    dims = (el.LOAD, hv.Dimension("R", label="mean response time R"))
    step = switch_load(level, d)
    away = NEAR * (1 - step) * np.linspace(0, 1, POINTS) ** 2  # crowded where it is steep
    parts: list[Any] = []
    for side, color in ((-1, WITH), (1, WITHOUT)):
        loads = step + side * away
        response = [float(fixed_point(float(lam), d).mean_response_time) for lam in loads]
        tips = [("load λ", "@lam{0.0000}"), ("R", "@R{0.0000}")]
        parts.append(el.line(loads, response, dims, color, width=2, tooltips=tips))
    parts.append(el.mark(step, dash="dotted"))
    return Panel(hv.Overlay(parts), f"the limit at the step from Q = {level}, d = {d}")


def _root_panel(runs: xr.Dataset, d: int) -> Panel:
    dims = (
        hv.Dimension("away", label="distance of λ from the step, over 1 − λ"),
        hv.Dimension("change", label="change of R"),
    )
    away = runs["closeness"].values
    parts: list[Any] = []
    for level in [step for step in runs["step"].values.tolist() if step]:
        for side, color, exponent in (("below", WITH, 1 / level), ("above", WITHOUT, 1.0)):
            y = runs["response_step"].sel(side=side, step=level, d=d).values
            parts.append(el.line(away, 1.6 * y[0] * (away / away[0]) ** exponent, dims, LIMIT, "dashed", 1))
            tips = [(f"{side} the step from Q = {level}", "@away"), ("change of R", "@change{0.0e+0}")]
            parts.append(el.line(away, y, dims, color, width=1.8, tooltips=tips))
    options = {"logx": True, "logy": True, "xlim": (away.min(), away.max())}
    return Panel(hv.Overlay(parts), f"next to steps of Q, d = {d}", options)
