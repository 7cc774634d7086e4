"""Figures of the report, built once as HoloViews elements and rendered by two backends.

Only the report imports this package: drawing libraries are slow to start, and no simulation depends on a picture.
"""

from dchoices.plots.elements import Key, swatch
from dchoices.plots.figure import Control, Figure, Panel
from dchoices.plots.figures import make_figures
from dchoices.plots.limits import story
from dchoices.plots.render import bokeh_item, script, svg, svg_row

__all__ = [
    "Control", "Figure", "Key", "Panel", "bokeh_item", "make_figures", "script", "story", "svg", "svg_row", "swatch",
]  # fmt: skip
