"""What figures are made of: panels and keys, and what they all ask of the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import holoviews as hv
import numpy as np
import xarray as xr

from dchoices.plots import elements as el
from dchoices.theory import closed_forms

Datasets = Mapping[str, xr.Dataset]
# Shares below this are not drawn on a logarithmic axis: less than one server in the largest system.
TAIL_FLOOR = 1e-6
# Points kept of a dense line: more than a panel has pixels to tell apart.
DENSE = 240
MEMORY, MEMORYLESS = "sq-memory", "sq"
WITH, WITHOUT, LIMIT = el.BLUE, el.VERMILLION, el.BLACK


#: What a frame exchanges: by the label of each element, the values of its dimensions in their order.
Frame = Mapping[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Control:
    """A choice that the reader of the page has: its values as they are shown, and the one to begin with."""

    label: str
    values: Sequence[str]
    first: int
    slider: bool = True  # else a list to select from


@dataclass(frozen=True)
class Panel:
    """One pair of axes: its content and the options both backends share (axis scales and limits).

    In the page of a figure with controls `frames` holds what is drawn for each of their combinations, the last control
    running fastest; lines, bands and points can change so. Print shows the content.
    """

    content: hv.Overlay
    title: str
    options: Mapping[str, Any] = field(default_factory=dict)
    frames: Sequence[Frame] = ()
    height: int = 290  # px in the page
    inches: tuple[float, float] = (3.35, 1.75)  # in print, two to a row


@dataclass(frozen=True)
class Figure:
    """Panels under one caption; `facts` are the values a caption may quote, `studies` the datasets it is made from.

    A figure with `controls` has panels of its own for print, `twins`, which stand for a few of its frames.
    """

    anchor: str
    alt: str
    studies: Sequence[str]
    panels: Sequence[Panel]
    key: Sequence[el.Key]
    columns: int = 2
    facts: Mapping[str, Any] = field(default_factory=dict)
    controls: Sequence[Control] = ()
    twins: Sequence[Panel] = ()
    print_columns: int | None = None  # where they are others than in the page

    @property
    def named_panels(self) -> dict[str, Panel]:
        """The panels of the page, by the name of each."""
        return {f"{self.anchor}-{k}": panel for k, panel in enumerate(self.panels)}

    @property
    def printed_panels(self) -> dict[str, Panel]:
        """The panels in print, by the name of each."""
        return {f"{self.anchor}-{k}": panel for k, panel in enumerate(self.twins or self.panels)}


def example_d(values: Any) -> int:
    """Return the d that examples use: 2 where there is one, else the smallest above 1, else the smallest."""
    ordered = sorted(int(v) for v in values)
    return 2 if 2 in ordered else next((v for v in ordered if v > 1), ordered[0])


def either_side(loads: Any, d: int) -> list[float]:
    """Return a load well below the threshold 1 - 1/d and one well above it, as far as `loads` has them."""
    threshold = closed_forms.optimality_threshold(d)
    loads = np.sort(np.asarray(loads, float))
    targets = [(loads[loads < threshold], 0.8 * threshold), (loads[loads > threshold], 0.9)]
    return [float(some[np.argmin(np.abs(some - target))]) for some, target in targets if some.size]


def simulated_d(data: Datasets) -> list[int]:
    """Return the d that have both fixed points and stationary runs, or all that have fixed points."""
    computed = [int(d) for d in data["fixed_points"]["d"].values]
    return [d for d in computed if d in data["stationary"]["d"].values] or computed


def nearest(values: Any, target: float) -> float:
    """Return the value next to `target`."""
    values = np.asarray(values, float)
    return float(values[np.argmin(np.abs(values - target))])


def tail_of(pmf: Any) -> np.ndarray:
    """Return the share of servers with at least i jobs, from the share with exactly i."""
    return np.cumsum(np.nan_to_num(np.asarray(pmf, float))[::-1])[::-1]


def thin(n: int, most: int = DENSE) -> np.ndarray:
    """Return at most about `most` evenly spaced indices of `n`, both ends among them."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(int))


def largest(ds: xr.Dataset, policy: str) -> xr.Dataset | None:
    """Stationary estimates of `policy` at the largest N, or None where the profile does not have the policy."""
    if policy not in ds["policy"].values:
        return None
    return ds.sel(policy=policy, N=ds["N"].max().item())


def at_d(ds: xr.Dataset | None, d: int) -> xr.Dataset | None:
    return ds.sel(d=d) if ds is not None and d in ds["d"].values else None


def response_axis(longest: float) -> dict[str, Any]:
    """Return the options of a logarithmic axis of response times from 1 on."""
    ticks = (1, 1.5, 2, 3, 4, 6) if longest < 8 else (1, 2, 5, 10, 20, 50, 100)
    return {"logy": True, "ylim": (0.9, 1.3 * longest), "yticks": [(v, f"{v}") for v in ticks]}
