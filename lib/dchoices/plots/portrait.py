"""The phase portrait of the fluid model, in two planes over the share of busy servers."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import holoviews as hv
import numpy as np
import xarray as xr
from matplotlib.colors import to_hex, to_rgb
from matplotlib.path import Path

from dchoices.plots import elements as el
from dchoices.plots.figure import Control, Datasets, Figure, Frame, Panel, either_side, example_d, thin
from dchoices.theory import closed_forms

# Modes with a colour of their own, the last for all beyond: dark to light for a grey printer, blue to orange for the
# colour-blind (plasma).
MODES = ("#1b0a8f", "#9c179e", "#dd5e66", "#f08a24")
# Strength of the tints that say which mode is possible.
TINTS = (0.07, 0.15, 0.26, 0.42)
# Frames that the page may hold: every one of them is in the file.
MOST_FRAMES = 50
# Inches of print for a row of panels, and the height of each.
PRINTED = (6.8, 2.1)
# Size of a panel's axes in px, to which paths are simplified and by which arrows are drawn.
ACROSS, UP = 400, 320
SIMPLIFIED = 0.4  # px that a path may be moved by
# An arrow stands at this part of a path's length, on paths of at least so many px; length and half width of its head.
ARROW_AT, ARROW_FROM, ARROW = 0.45, 40, (8, 3.5)
# Loads at which the line of fixed points is computed, closer together where it is steep.
LOCUS = 1 - np.geomspace(0.99, 0.002, 100)

BUSY = hv.Dimension("busy", label="share of busy servers")
PLANES = {
    "waiting_jobs": (BUSY, hv.Dimension("waiting", label="waiting jobs per server")),
    "known_idle": (BUSY, hv.Dimension("known", label="share known to be idle")),
}
TITLES = {"waiting_jobs": "jobs that wait", "known_idle": "idle servers that the memory knows"}


def portrait(data: Datasets) -> Figure:
    """Fluid paths from many starts, over d and λ; in print below, at and above the threshold."""
    ds = data["portrait"].sortby(["d", "λ"])
    ds = ds.isel(d=thin(ds.sizes["d"], MOST_FRAMES))
    ds = ds.isel(λ=thin(ds.sizes["λ"], MOST_FRAMES // ds.sizes["d"]))
    probes, loads = ds["d"].values.tolist(), ds["λ"].values.tolist()
    choices = list(itertools.product(probes, loads))
    d = example_d(probes)
    places = _places(loads, d)
    columns = max(2, len(places))
    first = choices.index((d, max(places)))
    panels, twins = [], []
    for variable, title in TITLES.items():
        top = 1.04 * max(float(ds[variable].max()), *(_rest(*choice)[variable] for choice in choices))
        frames = [_frame(ds.sel(d=choice[0], λ=choice[1]), variable, top) for choice in choices]
        panels.append(_panel(ds, variable, frames[first], top, title, frames=frames, height=420))
        for lam, place in places.items():
            frame, inches = frames[choices.index((d, lam))], (PRINTED[0] / columns, PRINTED[1])
            twins.append(_panel(ds, variable, frame, top, f"λ = {lam:.4g} ({place})", inches=inches))
    controls = (
        Control("probes per job d", [str(d) for d in probes], probes.index(d), slider=False),
        Control("load λ", [f"{lam:.4g}" for lam in loads], loads.index(max(places))),
    )
    facts = {"d": d, "loads": list(places), "starts": ds.sizes["start"], "t_end": ds["t"].values[-1].item()}
    facts |= {"frames": len(choices)}
    alt = f"Fluid paths from {ds.sizes['start']} starts in two planes over the share of busy servers."
    return Figure(
        "fig-portrait", alt, ("portrait",), panels, _KEY, facts=facts, controls=controls, twins=twins,
        print_columns=columns,
    )  # fmt: skip


_KEY = (
    *(el.Key(f"mode {k}" + " or more" * (color == MODES[-1]), color, "solid") for k, color in enumerate(MODES)),
    el.Key("switch of the mode", el.BLACK, "dot"),
    el.Key("start, fresh memory", el.BLACK, "ring"),
    el.Key("start, stale memory", el.BLACK, "triangle"),
    el.Key("fixed point", el.BLACK, "star"),
    el.Key("fixed points of all loads", el.GREY, "solid"),
    el.Key("busy servers at rest: λ", el.GREY, "dashed"),
)


def _places(loads: Sequence[float], d: int) -> dict[float, str]:
    """Return a load below the threshold, the threshold and one above, as far as there are such, with where each is."""
    threshold = closed_forms.optimality_threshold(d)
    at = {lam: "threshold" for lam in loads if np.isclose(lam, threshold)}
    others = either_side([lam for lam in loads if lam not in at], d)
    return dict(sorted(({lam: "below" if lam < threshold else "above" for lam in others} | at).items()))


@functools.cache
def _rest(d: int, lam: float) -> dict[str, float]:
    """Return the heights of a fixed point in the two planes; across it is at λ."""
    state = closed_forms.fixed_point_state(lam, d)
    waiting = float(state.sum(axis=1)[2:] @ np.arange(1, len(state) - 1))
    return {"waiting_jobs": waiting, "known_idle": float(state[0, 0])}


def region(k: int, d: int, top: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return where mode k is possible in the plane of busy servers b and waiting jobs w, as x, low and high of an area.

    Mode k >= 1 needs S_k = d Σ_{i<k} (k-i) p_i <= 1. As (k-i)⁺ is convex in i, S_k >= d max(k p_0, k - b - w), with
    equality for some state: so the region is b >= 1 - 1/(kd), w >= k - 1/d - b.
    """
    x = np.array([1 - 1 / (k * d), 1.0])
    return x, np.clip(k - 1 / d - x, 0, top), np.full(2, top)


def _frame(ds: xr.Dataset, variable: str, top: float) -> Frame:
    """Everything that moves in a plane, at one d and λ."""
    d, lam = int(ds["d"]), float(ds["λ"])
    threshold = closed_forms.optimality_threshold(d)
    strokes, switches = _strokes(ds, variable, top)
    moving: dict[str, tuple[Any, ...]] = {
        "load": ([lam, lam], [0, top]),
        "switches": switches,
        "rest": ([lam], [_rest(d, lam)[variable]]),
        "locus": (LOCUS, [_rest(d, x)[variable] for x in LOCUS]),
    }
    moving |= {f"mode {k}": stroke for k, stroke in enumerate(strokes)}
    if variable == "waiting_jobs":
        moving |= {f"possible {k}": region(k, d, top) for k in range(1, len(MODES))}
    else:
        moving["floor"] = ([threshold, 1], [0, 0])
    return moving


def _panel(ds: xr.Dataset, variable: str, frame: Frame, top: float, title: str, **options: Any) -> Panel:
    """A plane with one frame drawn, and the starts, which no frame moves."""
    dims = PLANES[variable]

    def line(label: str, color: str, dash: str = "solid", width: float = 1.7) -> hv.Curve:
        x, y = frame[label]
        return el.line(x, y, dims, color, dash, width, label=label)

    if variable == "waiting_jobs":
        parts: list[Any] = [el.band([0, 1], [0, 0], [top, top], dims, _tint(0), alpha=1)]
        for k in range(1, len(MODES)):
            x, low, high = frame[f"possible {k}"]
            parts.append(el.band(x, low, high, dims, _tint(k), alpha=1, label=f"possible {k}"))
    else:
        parts = [el.band([0, 1], [0, 0], [1, 0], dims, _tint(0), alpha=1), line("floor", _tint(2), width=9)]
    parts += [line("locus", el.GREY, width=1.2), line("load", el.GREY, "dashed", 1.4)]
    parts += [line(f"mode {k}", color) for k, color in enumerate(MODES)]
    x, y, t, modes = frame["switches"]
    tips = [("switch of mode", "@modes"), ("t", "@t{0.00}")]
    parts.append(el.points(x, y, dims, el.BLACK, "dot", 4, tips, {"t": t, "modes": modes}, "switches"))
    for look, memory in (("triangle", "stale"), ("ring", "fresh")):
        names = [name for name in ds["start"].values.tolist() if name.endswith(memory)]
        first = ds.isel(t=0, d=0, λ=0).sel(start=names)
        tips = [("start", "@start")]
        parts.append(el.points(first["busy_share"], first[variable], dims, el.BLACK, look, 7, tips, {"start": names}))
    x, y = frame["rest"]
    tips = [("fixed point, busy", "@busy{0.000}"), (str(dims[1].label), f"@{dims[1].name}{{0.000}}")]
    parts.append(el.points(x, y, dims, el.BLACK, "star", 18, tips, label="rest"))
    room = {"xlim": (-0.03, 1.03), "ylim": (-0.03 * top, top)}
    return Panel(hv.Overlay(parts), title, room, **options)


def _tint(k: int) -> str:
    """Return a pale colour for the region of a mode."""
    red, green, blue = (1 - TINTS[k] * (1 - channel) for channel in to_rgb(MODES[k]))
    return to_hex((red, green, blue))


def _strokes(ds: xr.Dataset, variable: str, top: float) -> tuple[list[tuple[Any, Any]], tuple[Any, ...]]:
    """Return the paths as one broken line for each mode, with arrows; and where they switch: x, y, t and the modes."""
    scale = np.array([ACROSS, UP / top])
    strokes: list[list[np.ndarray]] = [[] for _ in MODES]
    switches = []
    ds = ds.transpose("start", "t")
    for x, y, modes in zip(ds["busy_share"].values, ds[variable].values, ds["mode"].values, strict=True):
        path = np.column_stack([x, y]) * scale
        turns = np.flatnonzero(np.diff(modes)) + 1
        for begin, end in itertools.pairwise([0, *turns, len(path) - 1]):
            strokes[_color(modes[begin])].append(_simplified(path[begin : end + 1]))
        if (at := _arrow_place(path)) is not None:
            strokes[_color(modes[at])].append(_arrow(path, at))
        switches += [(x[n], y[n], ds["t"].values[n], f"{modes[n - 1]} → {modes[n]}") for n in turns]
    gap = np.full((1, 2), np.nan)
    lines = [np.concatenate([gap, *(part for stroke in some for part in (stroke, gap))]) / scale for some in strokes]
    columns = tuple(zip(*switches, strict=True)) if switches else ((), (), (), ())
    return [(line[:, 0], line[:, 1]) for line in lines], columns


def _color(mode: int) -> int:
    return min(int(mode), len(MODES) - 1)


def _simplified(points: np.ndarray) -> np.ndarray:
    """Return a path with fewer points, in px."""
    path = Path(points)
    path.simplify_threshold = SIMPLIFIED
    cleaned = path.cleaned(simplify=True)
    return np.asarray(cleaned.vertices)[np.asarray(cleaned.codes) != Path.STOP]


def _arrow_place(path: np.ndarray) -> int | None:
    """Return the index at which a path bears its arrow, None for one that is too short."""
    length = np.concatenate([[0], np.cumsum(np.hypot(*np.diff(path, axis=0).T))])
    return int(np.searchsorted(length, ARROW_AT * length[-1])) if length[-1] >= ARROW_FROM else None


def _arrow(path: np.ndarray, at: int) -> np.ndarray:
    """Return the head of an arrow as a stroke from one barb over the tip to the other."""
    along = path[min(at + 1, len(path) - 1)] - path[at - 1]
    along /= np.hypot(*along)
    length, half = ARROW
    back, aside = path[at] - length * along, half * np.array([-along[1], along[0]])
    return np.array([back + aside, path[at], back - aside])
