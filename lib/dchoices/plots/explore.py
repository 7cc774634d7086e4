"""A system live in a notebook: one simulated path beside its fluid path and fixed point, redrawn as sliders move."""

from __future__ import annotations

import functools
import html
from collections.abc import Callable, Iterable
from typing import Any

import holoviews as hv
import numpy as np
import panel as pn
import xarray as xr

from dchoices import registry, validation
from dchoices.plots import elements as el
from dchoices.plots.figure import LIMIT, WITH
from dchoices.plots.render import PAGE, SANS, THEME
from dchoices.simulation import simulate
from dchoices.theory.closed_forms import queue_bound
from dchoices.theory.fluid import fluid_path
from dchoices.wording import show

TIMES = 101  # of a path: about one for every four pixels
IN_TIME = 6  # queue lengths that are followed in time
LONGEST = 12  # queue length at which the distribution is cut
SMALLEST = 5e-7  # share that is drawn: half a server of the largest system that is offered
SIZES = (100, 1000, 10_000, 100_000, 1_000_000)
PROBES = tuple(range(1, 11))
LOADS = (*(k / 100 for k in range(1, 100)), 0.995, 0.999)
STARTS = ("empty", "overloaded-3", "stale-3", "random-3", "fixed-point")
NEAREST = 0.01  # mean service times: less is nothing to see
FARTHEST = 100.0  # mean service times: the fluid path of `random` needs more queue lengths, the longer it is
REMEMBERED = 100  # systems that were looked at, which show again at once

SHARE = hv.Dimension("share", label="share of servers with i jobs or more")
COLORS = el.ladder(range(IN_TIME))


def explore(
    policy: str = "sq-memory",
    N: int = 100_000,
    d: int = 2,
    lam: float = 0.9,
    start: str = "empty",
    t_end: float = 10.0,
    seed: int = 0,
) -> pn.Column:
    """Show a system live in a notebook: a simulated path, its fluid path, and where that settles.

    Sliders and lists choose the system, one replicate of which is simulated anew and drawn at every change. They need a
    running kernel, and ``panel.extension(inline=True)`` before, which hands the browser what it draws with.

    Parameters
    ----------
    policy, N, d, lam, start
        What to begin with, as for `simulate`, N >= 10 and the start a name. Values that the sliders do not offer are
        added to them; d has no effect where the policy has none.
    t_end : float
        End of the path in mean service times, from 0.01 to 100.
    seed : int
        Seed >= 0.

    Returns
    -------
    panel.Column
        The controls above the shares of servers with i jobs or more: in time, and at `t_end`. A policy without a fluid
        model is drawn without its limit.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    controls = _controls(policy, N, d, lam, start)
    if not NEAREST <= validation.real(t_end) <= FARTHEST:
        raise ValueError(f"t_end = {show(t_end)}: must be at least {NEAREST:g} and at most {FARTHEST:g}")
    t = np.linspace(0.0, float(t_end), TIMES)
    seen = functools.lru_cache(REMEMBERED)(functools.partial(tails, t=t, seed=seed))
    seen(**{name: control.value for name, control in controls.items()})  # refuses now what it would refuse later
    chosen = {name: control.param.value for name, control in controls.items()}

    def live(draw: Callable[[xr.Dataset], hv.Overlay]) -> pn.pane.HoloViews:
        figure = hv.DynamicMap(lambda **system: draw(seen(**system)), streams=chosen)
        return pn.pane.HoloViews(figure, theme=THEME, linked_axes=False, sizing_mode="stretch_width")

    figures = pn.Row(live(in_time), live(at_the_end), sizing_mode="stretch_width")
    return pn.Column(pn.FlexBox(*controls.values()), _key(), figures, sizing_mode="stretch_width")


def _controls(policy: str, N: int, d: int, lam: float, start: str) -> dict[str, Any]:
    """Return a slider or list for each parameter of a system, by its name."""
    d = validation.probes(d)
    N = validation.integer("N", N, max(PROBES), validation.MAX_SERVERS)  # or not every d would fit
    if d > N:
        raise ValueError(f"d = {show(d)}: must be at most N = {N}")
    if not isinstance(start, str):
        raise ValueError(f"start = {show(start)}: must be a name, such as {', '.join(STARTS)}")
    policies = pn.widgets.Select(
        label="policy", value=registry.get(policy).name, options=registry.policies(), width=165
    )
    without_d = pn.bind(lambda name: not registry.get(name).takes_d, policies)
    return {
        "policy": policies,
        "lam": _slider("load λ", validation.load(lam), LOADS, str),
        "d": _slider("probes d", d, PROBES, str, disabled=without_d),
        "N": _slider("servers N", N, SIZES, _grouped),
        "start": pn.widgets.Select(
            label="start", value=start, options=list(dict.fromkeys([*STARTS, start])), width=125
        ),
    }


def _slider(
    label: str, value: Any, offered: Iterable[Any], text: Callable[[Any], str], **options: Any
) -> pn.widgets.DiscreteSlider:
    values = {text(one): one for one in sorted({*offered, value})}
    return pn.widgets.DiscreteSlider(label=label, value=value, options=values, width=135, **options)


def _grouped(number: int) -> str:
    return f"{number:,}".replace(",", "\u202f")


def _key() -> pn.pane.HTML:
    """Return what the lines and points mean, for both figures."""
    entries = [el.Key(f"i = {i}", color, "solid") for i, color in enumerate(COLORS, 1)]
    entries += [el.Key("simulated", WITH, "dot"), el.Key("fluid path", LIMIT, "dashed")]
    entries += [el.Key("fixed point", LIMIT, "star")]
    spans = "".join(f"<span>{el.swatch(key)} {html.escape(key.label)}</span>" for key in entries)
    style = f"font: 12px {SANS}; display: flex; flex-wrap: wrap; gap: 0 14px"
    return pn.pane.HTML(f'<div style="{html.escape(style)}">{spans}</div>')


def tails(policy: str, N: int, d: int, lam: float, start: str, t: np.ndarray, seed: int) -> xr.Dataset:
    """Return the shares of servers with i jobs or more along one simulated path and in the limit.

    Parameters
    ----------
    policy, N, d, lam, start, t, seed
        As for `simulate`, but that d has no effect where the policy has none.

    Returns
    -------
    xarray.Dataset
        ``simulated`` and ``fluid`` (t, i), ``fixed_point`` (i), for i up to `LONGEST`; NaN where no limit is known. In
        the attributes ``N``, ``longest_queue`` since the start, and with memory ``bound``, that of the fixed point.
    """
    chosen = registry.get(policy)
    d = d if chosen.takes_d else 0
    run = simulate(policy, N, d, lam, t, replicates=1, seed=seed, start=start)
    run = run.squeeze(["replicate", "N", "d", "λ"])
    fixed_point = fluid = np.full((1, 1), np.nan)
    if chosen.fluid:
        fixed_point = chosen.fixed_point(lam, chosen.probes(N, d))
        fixed_point = fixed_point.sum(axis=1)[None] if chosen.memory else fixed_point[None]
        # From there the path does not move; that of `random` would have to hold hundreds of queue lengths.
        fluid = fixed_point if start == "fixed-point" else fluid_path(lam, d, t, start, policy)["occupancy"].values
    shares = {
        "simulated": (("t", "i"), _tail(run["occupancy"].values)),
        "fluid": (("t", "i"), np.broadcast_to(_tail(fluid), (t.size, LONGEST + 1))),
        "fixed_point": ("i", _tail(fixed_point)[0]),
    }
    attrs = {"N": N, "longest_queue": int(run["max_queue"][-1])}
    if chosen.memory:
        attrs["bound"] = queue_bound(lam, d)
    return xr.Dataset(shares, {"t": t, "i": np.arange(LONGEST + 1)}, attrs)


def _tail(occupancy: np.ndarray) -> np.ndarray:
    """Return the share with i jobs or more, float64[t, LONGEST + 1], from that with exactly i."""
    tail = occupancy[:, ::-1].cumsum(axis=1)[:, ::-1][:, : LONGEST + 1]
    above = np.nan if np.isnan(tail).any() else 0.0
    return np.pad(tail, [(0, 0), (0, LONGEST + 1 - tail.shape[1])], constant_values=above)


def in_time(shares: xr.Dataset) -> hv.Overlay:
    """Draw the shares of servers with 1, 2, … jobs or more in time."""
    dims, t, levels = (el.TIME, SHARE), shares["t"].values, slice(1, IN_TIME + 1)
    simulated, fluid = (shares[name].values[:, levels].T for name in ("simulated", "fluid"))
    broken = np.pad(fluid, [(0, 0), (0, 1)], constant_values=np.nan)  # one dashed line with gaps
    rest = shares["fixed_point"].values[levels]
    parts = [
        el.lines(t, simulated, dims, COLORS, width=2.2),
        el.line(np.tile([*t, np.nan], IN_TIME), broken.ravel(), dims, LIMIT, "dashed", 1.3),
        el.points(np.full(IN_TIME, t[-1]), rest, dims, LIMIT, "star", 13),
    ]
    return _panel(parts, f"in time, N = {_grouped(shares.attrs['N'])}", xlim=(0, 1.03 * t[-1]), ylim=(0, 1.03))


def at_the_end(shares: xr.Dataset) -> hv.Overlay:
    """Draw the shares of servers with 0, 1, … jobs or more at the last time, on a logarithmic axis."""
    dims, i, last = (el.QUEUE, SHARE), shares["i"].values, shares.isel(t=-1)
    drawn = last.where(last >= SMALLEST)
    parts = [
        el.line(i, drawn["fluid"], dims, LIMIT, "dashed", 1.3),
        el.points(i, drawn["fixed_point"], dims, LIMIT, "star", 15),
        el.points(i, drawn["simulated"], dims, WITH, "dot", 6),
    ]
    title = f"at t = {shares['t'].values[-1]:g}; longest queue so far {shares.attrs['longest_queue']}"
    title += f", bound {shares.attrs['bound']}" if "bound" in shares.attrs else ""
    return _panel(parts, title, logy=True, xlim=(-0.3, LONGEST + 0.3), ylim=(SMALLEST, 2))


def _panel(parts: list[Any], title: str, **options: Any) -> hv.Overlay:
    return hv.Overlay(parts).opts(title=title, height=330, backend="bokeh", **PAGE, **options)
