"""Any case of the stationary study, chosen by the reader of the page."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import holoviews as hv
import numpy as np
import xarray as xr
from scipy import special

from dchoices.plots import elements as el
from dchoices.plots.figure import (
    LIMIT,
    MEMORY,
    TAIL_FLOOR,
    WITH,
    Control,
    Datasets,
    Figure,
    Frame,
    Panel,
    example_d,
    nearest,
    tail_of,
)
from dchoices.theory import closed_forms

# Cases that a page holds: of some kilobytes each.
MOST_CASES = 1000
# Load that the figure opens at, and that print shows.
FIRST_LOAD = 0.9
# Longest queue and longest response time drawn, and the smallest share of jobs: fewer are too few to count in a run.
LONGEST_QUEUE, LONGEST_TIME = 16, 16.0
TIME_FLOOR = 1e-5
QUEUES = (el.QUEUE, hv.Dimension("tail", label="share with at least i jobs"))
TIMES = (
    hv.Dimension("time", label="time t, in mean service times"),
    hv.Dimension("slower", label="share of jobs that take over t"),
)
# By the name of a dimension: what the reader of the page chooses.
LABELS = {"policy": "policy", "N": "servers N", "d": "probes per job d", "λ": "load λ"}
POLICIES = {"sq": "sq (without memory)", "sq-memory": "sq-memory"}


def lookup(data: Datasets) -> Figure:
    """Queue lengths and response times beside their limits, over policy, N, d and λ."""
    ds = data["stationary"]
    axes = {name: ds[name].values.tolist() for name in LABELS}
    while math.prod(map(len, axes.values())) > MOST_CASES:  # a sweep may have any number
        longest = max(axes, key=lambda name: len(axes[name]))
        axes[longest] = axes[longest][::2]
    first = {
        "policy": MEMORY if MEMORY in axes["policy"] else axes["policy"][0],
        "N": axes["N"][-1],
        "d": example_d(axes["d"]),
        "λ": nearest(axes["λ"], FIRST_LOAD),
    }
    cases = [dict(zip(axes, case, strict=True)) for case in itertools.product(*axes.values())]
    frames = [_frames(ds.sel(case)) for case in cases]
    at = cases.index(first)
    panels = [
        _panel([queues for queues, _ in frames], at, QUEUES, LONGEST_QUEUE, TAIL_FLOOR),
        _panel([times for _, times in frames], at, TIMES, LONGEST_TIME, TIME_FLOOR),
    ]
    controls = [
        Control(LABELS[name], [_shown(v) for v in values], values.index(first[name]), slider=name != "policy")
        for name, values in axes.items()
        if len(values) > 1
    ]
    key = [
        el.Key("limit as N grows", LIMIT, "solid"),
        el.Key("simulated", WITH, "dot"),
        el.Key("95 % interval", WITH, "area"),
    ]
    alt = "Tails of queue lengths and of response times for a policy, N, d and load of one's choice."
    facts = {"first": first, "cases": len(cases)}
    return Figure("fig-lookup", alt, ("stationary",), panels, key, facts=facts, controls=controls)


def _shown(value: str | float) -> str:
    return POLICIES.get(value, value) if isinstance(value, str) else f"{value:.10g}"


def _frames(run: xr.Dataset) -> tuple[Frame, Frame]:
    """Return what the two panels draw of one case: the limit, the estimate and its interval."""
    lam, d = float(run["λ"]), int(run["d"])
    pmf = closed_forms.fixed_point(lam, d)["queue_length_pmf"].values
    if run["policy"].item() != MEMORY:
        pmf = closed_forms.sq_queue_length_pmf(lam, d)
    i, t = np.arange(LONGEST_QUEUE + 1), run["response_time"].values
    # As many jobs come to i jobs as go, so that p_(i+1)/λ of them find i; such a job takes an Erlang(i+1) time.
    stages = np.arange(1, len(pmf))
    slower = special.gammaincc(stages, t[:, None]) @ pmf[1:] / lam
    limit = np.append(tail_of(pmf), np.zeros(len(i)))[: len(i)]
    tail, half = tail_of(run["occupancy"])[: len(i)], run["occupancy_tail_ci95"].values[: len(i)]
    times = run["response_time_tail"].values, run["response_time_tail_ci95"].values
    return _frame(i, limit, i[: len(tail)], tail, half, TAIL_FLOOR), _frame(t, slower, t, *times, TIME_FLOOR)


def _frame(at: np.ndarray, limit: np.ndarray, x: np.ndarray, y: np.ndarray, half: np.ndarray, floor: float) -> Frame:
    """Return a limit over `at`, and an estimate with its interval over `x` where it is above the axis' foot."""
    seen = y > floor
    low, high = np.maximum(y - half, floor / 10)[seen], (y + half)[seen]
    return {
        "limit": (at, np.maximum(limit, floor / 10)),
        "interval": (x[seen], low, high),
        "simulated": (x[seen], y[seen], half[seen]),
    }


def _panel(frames: Sequence[Frame], at: int, dims: el.Axes, longest: float, floor: float) -> Panel:
    across, up = dims
    tips = [(str(across.label), f"@{across.name}"), ("share", f"@{up.name}{{0.00e+0}}"), ("±", "@half{0.0e+0}")]
    (edge, low, high), limit, (x, y, half) = (frames[at][name] for name in ("interval", "limit", "simulated"))
    content = hv.Overlay(
        [
            el.band(edge, low, high, dims, WITH, label="interval"),
            el.line(limit[0], limit[1], dims, LIMIT, label="limit"),
            el.points(x, y, dims, WITH, size=6, tooltips=tips, columns={"half": half}, label="simulated"),
        ]
    )
    options = {"logy": True, "ylim": (floor, 2), "xlim": (-0.02 * longest, 1.02 * longest)}
    title = "queue lengths" if dims is QUEUES else "response times"
    return Panel(content, title, options, frames)
