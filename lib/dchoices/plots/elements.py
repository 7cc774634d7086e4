"""Styled HoloViews elements: made once, drawn by bokeh in the page and by matplotlib in print.

Each function returns elements that carry the options of both backends, so that a figure is described once and its two
twins cannot drift apart. Colours are those of Okabe and Ito, which survive colour blindness, and viridis for ordered
quantities, which also survives a grey printer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import holoviews as hv
import matplotlib
import numpy as np
from matplotlib.colors import to_hex

BLACK, GREY = "#1a1a1a", "#8a8a8a"
BLUE, VERMILLION, SKY = "#0072B2", "#D55E00", "#56B4E9"
GREEN, ORANGE, PURPLE = "#009E73", "#E69F00", "#CC79A7"

#: Line styles, with bokeh's and matplotlib's and SVG's word for each.
DASHES: Mapping[str, tuple[str, str, str]] = {
    "solid": ("solid", "-", "none"),
    "dashed": ("dashed", "--", "5 3"),
    "dotted": ("dotted", ":", "1.5 2.5"),
}
#: Marker styles, likewise.
MARKERS: Mapping[str, tuple[str, str]] = {
    "dot": ("circle", "o"),
    "ring": ("circle", "o"),
    "triangle": ("triangle", "^"),
    "star": ("star", "*"),
}

LOAD = hv.Dimension("lam", label="load λ")
SERVERS = hv.Dimension("N", label="number of servers N")
TIME = hv.Dimension("t", label="time t, in mean service times")
QUEUE = hv.Dimension("i", label="queue length i (jobs)")
Axes: TypeAlias = tuple[hv.Dimension, hv.Dimension]
Tooltips: TypeAlias = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Key:
    """One entry of a figure's key: how a series looks and what it is."""

    label: str
    color: str
    look: str  # a dash, a marker, or "area"


def ladder(values: Sequence[Any]) -> list[str]:
    """Colours for an ordered quantity, light to dark."""
    return [to_hex(c) for c in matplotlib.colormaps["viridis_r"](np.linspace(0.12, 0.92, max(len(values), 1)))]


def line(
    x: Any,
    y: Any,
    dims: Axes,
    color: str = BLACK,
    dash: str = "solid",
    width: float = 1.6,
    alpha: float = 1.0,
    steps: bool = False,
    tooltips: Tooltips = (),
    label: str = "",
) -> hv.Curve:
    """Curve of `y` over `x`, broken at NaN; with `tooltips` it answers to the pointer."""
    kdim, vdim = dims
    bokeh_dash, mpl_dash, _ = DASHES[dash]
    interpolation = "steps-post" if steps else "linear"
    curve = hv.Curve((np.asarray(x, float), np.asarray(y, float)), kdim, vdim, label=label)
    bokeh = {"tools": ["hover"] if tooltips else [], "hover_tooltips": list(tooltips), "interpolation": interpolation}
    print_ = {"linestyle": mpl_dash, "linewidth": 0.8 * width, "interpolation": interpolation}
    return _styled(
        curve,
        {"color": color, "line_width": width, "line_dash": bokeh_dash, "alpha": alpha, **bokeh},
        {"color": color, "alpha": alpha, **print_},
    )


def lines(x: Any, ys: Any, dims: Axes, colors: Sequence[str], width: float = 1.6) -> hv.Contours:
    """One line over `x` for each row of `ys`, all one element, which redraws in the time of one."""
    kdim, vdim = dims
    x = np.asarray(x, float)
    rows = [{kdim.name: x, vdim.name: np.asarray(y, float), "color": c} for y, c in zip(ys, colors, strict=True)]
    return _styled(
        hv.Contours(rows, [kdim, vdim], "color"),
        {"color": "color", "line_width": width, "tools": []},
        {"color": "color", "linewidth": 0.8 * width},
    )


def band(x: Any, low: Any, high: Any, dims: Axes, color: str, alpha: float = 0.3, label: str = "") -> hv.Area:
    """Area between `low` and `high` over `x`."""
    kdim, vdim = dims
    data = (np.asarray(x, float), np.asarray(low, float), np.asarray(high, float))
    area = hv.Area(
        data, kdim, [vdim, hv.Dimension(f"{vdim.name}_high", label=f"{vdim.label}, upper edge")], label=label
    )
    return _styled(
        area,
        {"color": color, "alpha": alpha, "line_width": 0, "tools": []},
        {"color": color, "facecolor": color, "edgecolor": "none", "alpha": alpha, "linewidth": 0},
    )


def points(
    x: Any,
    y: Any,
    dims: Axes,
    color: str = BLACK,
    look: str = "dot",
    size: float = 7,
    tooltips: Tooltips = (),
    columns: Mapping[str, Any] | None = None,
    label: str = "",
) -> hv.Scatter:
    """Markers at `(x, y)`; `columns` are further values that the tooltips may quote."""
    kdim, vdim = dims
    columns = columns or {}
    bokeh_marker, mpl_marker = MARKERS[look]
    fill = color if look in ("dot", "star") else "white"
    edge = "white" if look == "star" else color  # set off from what it lies on
    data = (np.asarray(x, float), np.asarray(y, float), *(np.asarray(c) for c in columns.values()))
    return _styled(
        hv.Scatter(data, kdim, [vdim, *columns], label=label),
        {
            "marker": bokeh_marker, "size": size, "line_color": edge, "fill_color": fill, "line_width": 1.4,
            "tools": ["hover"] if tooltips else [], "hover_tooltips": list(tooltips),
        },
        {"marker": mpl_marker, "s": size**2 / 2.6, "edgecolors": edge, "facecolors": fill, "linewidth": 0.9},
    )  # fmt: skip


def intervals(x: Any, y: Any, half_width: Any, dims: Axes, color: str) -> hv.ErrorBars:
    """Intervals `y` ± `half_width`, to be drawn under their markers."""
    kdim, vdim = dims
    data = (np.asarray(x, float), np.asarray(y, float), np.nan_to_num(np.asarray(half_width, float)))
    return _styled(
        hv.ErrorBars(data, kdim, [vdim, "half_width"]),
        {"line_color": color, "lower_head": None, "upper_head": None},
        {"edgecolor": color, "linewidth": 0.9, "capsize": 0},
    )


def mark(x: float, color: str = GREY, dash: str = "dashed") -> hv.VLine:
    """Vertical line at `x`, as for a threshold."""
    bokeh_dash, mpl_dash, _ = DASHES[dash]
    return _styled(
        hv.VLine(x),
        {"color": color, "line_width": 1.4, "line_dash": bokeh_dash},
        {"color": color, "linewidth": 1.0, "linestyle": mpl_dash},
    )


def _styled(element: Any, in_page: Mapping[str, Any], in_print: Mapping[str, Any]) -> Any:
    """Give an element the options of both backends."""
    return element.opts(**in_page, backend="bokeh", clone=False).opts(**in_print, backend="matplotlib", clone=False)


_STAR = "M14 0.4 L15.4 4.4 L19.6 4.5 L16.2 7 L17.5 11.1 L14 8.7 L10.5 11.1 L11.8 7 L8.4 4.5 L12.6 4.4 Z"


def swatch(key: Key) -> str:
    """Small SVG picture of how a series looks, for the key in page and print."""
    shapes = {
        "area": f'<rect x="3" y="2" width="22" height="8" fill="{key.color}"/>',
        "dot": f'<circle cx="14" cy="6" r="3.4" fill="{key.color}"/>',
        "ring": f'<circle cx="14" cy="6" r="3.2" fill="#fff" stroke="{key.color}" stroke-width="1.4"/>',
        "star": f'<path d="{_STAR}" fill="{key.color}"/>',
        "triangle": f'<path d="M14 2 L18 9.5 L10 9.5 Z" fill="#fff" stroke="{key.color}" stroke-width="1.4"/>',
    }
    stroke = f'<path d="M1 6 H27" fill="none" stroke="{key.color}" stroke-width="2"'
    shape = shapes.get(key.look) or f'{stroke} stroke-dasharray="{DASHES[key.look][2]}"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="28" height="12" viewBox="0 0 28 12">{shape}</svg>'
