"""Panels to bokeh documents for the page and to SVG for print. Neither asks the network for anything."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import holoviews as hv
import holoviews.plotting.bokeh  # registers the backend, where `hv.extension` would also load scripts from a CDN
import holoviews.plotting.mpl  # likewise
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from bokeh.core.types import ID
from bokeh.embed import json_item
from bokeh.models import HoverTool
from bokeh.resources import Resources
from bokeh.themes import Theme
from matplotlib.figure import Figure as MplFigure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter

from dchoices.plots.elements import DASHES, Key
from dchoices.plots.figure import Figure, Panel

hv.Store.set_current_backend("bokeh")

SANS = "-apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
_INK, _SOFT, _GRID = "#222222", "#9a9a9a", "#ebebeb"
#: What every pair of axes in a page is given.
PAGE: Mapping[str, Any] = {
    "responsive": True, "show_legend": False, "show_grid": True, "toolbar": "above", "active_tools": [],
    "default_tools": ["pan", "box_zoom", "wheel_zoom", "reset"],
    "fontsize": {"title": "13px", "labels": "12px", "ticks": "11px"},
}  # fmt: skip
FRAME_DIGITS = 4  # significant digits of what frames hold: a panel has less than 1000 pixels
# Margins of a printed panel in inches (left, right, bottom, top): fixed, so that the axes of neighbours line up.
_MARGINS = (0.56, 0.1, 0.42, 0.26)

THEME = Theme(
    json={
        "attrs": {
            "Axis": {
                "axis_line_color": _SOFT, "major_tick_line_color": _SOFT, "minor_tick_line_color": None,
                "axis_label_text_font": SANS, "axis_label_text_font_style": "normal", "axis_label_text_color": _INK,
                "major_label_text_font": SANS, "major_label_text_color": _INK, "axis_label_standoff": 6,
            },
            "Title": {"text_font": SANS, "text_font_style": "bold", "text_color": _INK},
            "Grid": {"grid_line_color": _GRID},
            "Plot": {"outline_line_color": None, "background_fill_color": None, "border_fill_color": None},
            "Toolbar": {"logo": None, "autohide": True},
        }
    }
)  # fmt: skip

_RC: dict[Any, Any] = {
    "font.family": ["DejaVu Sans"], "font.size": 7.5, "axes.titlesize": 8, "axes.titleweight": "bold",
    "axes.titlelocation": "left", "axes.labelsize": 7.5, "xtick.labelsize": 7, "ytick.labelsize": 7,
    "axes.edgecolor": _SOFT, "axes.linewidth": 0.7, "xtick.color": _INK, "ytick.color": _INK, "text.color": _INK,
    "axes.labelcolor": _INK, "xtick.major.width": 0.7, "ytick.major.width": 0.7, "xtick.minor.size": 0,
    "ytick.minor.size": 0, "svg.hashsalt": "dchoices", "svg.fonttype": "path",
}  # fmt: skip


def script() -> str:
    """Return bokeh's own script, to be inlined once. (Its ready-made tags would add one that is fetched.)"""
    return "\n".join(Resources(mode="inline", components=["bokeh"]).js_raw)


def _plot(content: hv.Dimensioned, backend: str) -> Any:
    """Return what a backend makes of an element. (`hv.render` makes each twice, and returns the second.)"""
    return hv.renderer(backend).get_plot(content)


def bokeh_item(panel: Panel, target: str) -> dict[str, Any]:
    """Return the bokeh document of a panel as JSON, to be embedded in the element with id `target`.

    A panel with frames has a further entry `frames`: for each frame the columns of the data sources that it exchanges,
    by their ids.
    """
    content = panel.content.opts(title=panel.title, height=panel.height, backend="bokeh", **PAGE, **panel.options)
    drawing = _plot(content, "bokeh")
    plot = drawing.state
    for tool in plot.toolbar.tools:
        tool.visible = not isinstance(tool, HoverTool)  # always on: one button for each series would fill the bar
    # No gesture is taken from the reader until a tool is chosen: on a phone a swipe over a plot scrolls the page.
    plot.toolbar.active_drag = plot.toolbar.active_scroll = None
    item = dict(json_item(plot, ID(target), theme=THEME))
    if panel.frames:
        item["frames"] = _exchanged(panel, drawing)
    return item


def _exchanged(panel: Panel, drawing: Any) -> list[dict[str, dict[str, list[Any]]]]:
    """Return for each frame of a panel the columns of the data sources that it exchanges, by their ids."""
    drawn = {
        element.label: (element, subplot.handles["source"].id)
        for element, subplot in zip(panel.content, drawing.subplots.values(), strict=True)
        if element.label
    }
    return [
        {drawn[label][1]: _columns(drawn[label][0], values) for label, values in frame.items()}
        for frame in panel.frames
    ]


def _columns(element: hv.Element, values: Sequence[Any]) -> dict[str, list[Any]]:
    """Return the columns of bokeh's source for an element with other values."""
    if isinstance(element, hv.Area):  # an outline: there along the upper edge, back along the lower
        x, low, high = (np.asarray(v, float) for v in values)
        return {"x": _short([*x, *x[::-1]]), "y": _short([*high, *low[::-1]])}
    return {dim.name: _short(column) for dim, column in zip(element.dimensions(), values, strict=True)}


def _short(column: Any) -> list[Any]:
    """Return values for JSON: few digits, None for NaN, text as it is."""
    column = np.asarray(column)
    if column.dtype.kind not in "fiu":
        return column.tolist()
    return [float(f"{v:.{FRAME_DIGITS}g}") if np.isfinite(v) else None for v in column.tolist()]


def svg(panel: Panel) -> bytes:
    """Return a panel drawn by matplotlib, the same bytes for the same content."""
    with matplotlib.rc_context(_RC):
        figure = _drawn(panel)
        return _saved(figure, {})


def svg_row(figure: Figure, inches: tuple[float, float], metadata: Mapping[str, str]) -> bytes:
    """Return the panels of a figure side by side in one SVG with a key above, as for a README."""
    with matplotlib.rc_context({**_RC, "font.size": 9, "axes.titlesize": 9.5, "axes.labelsize": 9}):
        layout = hv.Layout([_styled(panel) for panel in figure.panels]).cols(len(figure.panels))
        drawn = _plot(layout.opts(sublabel_format="", backend="matplotlib"), "matplotlib").state
        drawn.set_size_inches(*inches)
        _tidy(drawn)
        # HoloViews leaves room for colour bars and titles of its own; two panels need less.
        width = 0.98 / len(drawn.axes)
        for k, axes in enumerate(drawn.axes):
            axes.set_position((k * width + 0.075, 0.15, width - 0.09, 0.64))
        drawn.legend(
            handles=[_handle(key) for key in figure.key], loc="upper left", bbox_to_anchor=(0.066, 1.0),
            ncols=len(figure.key), frameon=False, fontsize=9, handlelength=2.2, borderaxespad=0.3,
        )  # fmt: skip
        return _saved(drawn, metadata)


def _handle(key: Key) -> Line2D:
    style: Any = DASHES[key.look][1]
    return Line2D([], [], color=key.color, linestyle=style, label=key.label, linewidth=1.8)


def _styled(panel: Panel) -> hv.Overlay:
    return panel.content.opts(
        title=panel.title, show_legend=False, aspect=1, show_frame=True, backend="matplotlib", **panel.options
    )


def _drawn(panel: Panel) -> MplFigure:
    figure = _plot(_styled(panel), "matplotlib").state
    width, height = panel.inches
    figure.set_size_inches(width, height)
    _tidy(figure)
    left, right, bottom, top = _MARGINS
    figure.subplots_adjust(left=left / width, right=1 - right / width, bottom=bottom / height, top=1 - top / height)
    return figure


def _tidy(figure: MplFigure) -> None:
    for axes in figure.axes:
        axes.set_aspect("auto")
        axes.set_box_aspect(None)
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set_axisbelow(True)
        axes.grid(True, color=_GRID, linewidth=0.7)
        axes.spines[["top", "right"]].set_visible(False)


def _saved(figure: MplFigure, metadata: Mapping[str, str]) -> bytes:
    stream = io.BytesIO()
    figure.savefig(stream, format="svg", metadata={"Date": None, **metadata})
    plt.close(figure)
    return stream.getvalue()
