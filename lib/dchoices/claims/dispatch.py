"""The claim about where jobs go: the recursion of the dispatch fractions."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import xarray as xr

from dchoices import statistics
from dchoices.claims.engine import Cell, Data, claim, missing, where
from dchoices.claims.selection import ENOUGH_SERVERS, far
from dchoices.recursion import steady_levels, windows

# Relative error allowed to the recursion: with one probe more it is off by 1/(d+1), which is three times as much at
# d = 5; finite N lowers R_j - R_{j-1} by y_j/p_j, where y_j is a handful of servers and p_j at least 1 %.
RELATIVE = 0.05
# Where no server at all was seen a ratio is taken to this, less than one server of any N: it is then far off.
ABSENT = 1e-12

TERMS = ("dispatch_by_observation", "occupancy", "observation_occupancy")  # R_j, p_j, y_j

Ratio = tuple[str, float, float, int]  # where, value, half-width of its own 95 % interval, replicates behind it


def _policy(model: str) -> str:
    return "sq" if model == "sq" else "sq-memory"


def _probes(model: str, d: int) -> int:
    """Return the number of probes in the recursion of the claim or of a control."""
    return d + 1 if model == "d+1" else d


def _steady(runs: xr.Dataset, model: str) -> tuple[list[Ratio], list[Ratio]]:
    """Return, at the largest N, the recursion below k, and at every level the flow out over the flow in.

    Both intervals are those of R_j - R_{j-1} less its value in the claim, which take account of how the parts go
    together; the error of what they are divided by is of second order.
    """
    below: list[Ratio] = []
    every: list[Ratio] = []
    policy = _policy(model)
    N = int(runs.N.max())
    if N < ENOUGH_SERVERS or policy not in runs.policy:
        return below, every
    replicates = int(runs.attrs["replicates"])
    wanted = runs[[*TERMS, "observation_balance_ci95", "observation_occupancy_ci95", "warm_up_ok"]]
    for d in runs.d.values.tolist():
        probes = _probes(model, d)
        for lam in runs["λ"].values.tolist():
            point = wanted.sel(policy=policy, N=N, d=d, λ=lam)
            sent, p, y = (point[name].values for name in TERMS)
            error = point.observation_balance_ci95.values + (0.0 if point.warm_up_ok else math.inf)
            k, levels = steady_levels(lam, d)
            for j in levels:
                at = f"j = {j}, steady, " + where({"N": N, "d": d, "λ": lam})
                found = max(probes * p[j], ABSENT)
                inflow = sent[j - 1] + found
                every.append((f"out of / into {at}", (sent[j] + probes * y[j]) / inflow, error[j] / inflow, replicates))
                if j < k and far(lam, d):
                    width = error[j] + probes * point.observation_occupancy_ci95.values[j]
                    below.append((at, (sent[j] - sent[j - 1]) / found, width / found, replicates))
    return below, every


def _transient(runs: xr.Dataset, model: str) -> list[Ratio]:
    """Return the recursion below k on windows of paths in which k stays, at the largest N."""
    policy = _policy(model)
    if runs.N.max() < ENOUGH_SERVERS or policy not in runs.policy:
        return []
    found: list[Ratio] = []
    for window in windows(runs, policy):
        probes = _probes(model, window.place["d"])
        for j in window.levels:
            ratios = window.steps[:, j] / np.maximum(probes * window.shares[:, j], ABSENT)
            place = where({name: value for name, value in window.place.items() if name != "start"})
            at = f"j = {j}, while k = {window.k} from {window.place['start']}, {place}"
            found.append((at, float(ratios.mean()), float(statistics.half_width(ratios)), ratios.size))
    return found


@claim(
    id="P6",
    statement="The shares of jobs by observation obey a recursion: R_j - R_(j-1) = d p_j below the lowest observation "
    "in use, k, on the way as in steady state; and in steady state R_j - R_(j-1) = d (p_j - y_j) at every j.",
    source="recursion of the fluid model's dispatch fractions, arXiv:1802.06566; at every j derived from the model",
    quantity="(R_j - R_(j-1)) / (d p_j) for 1 <= j < k, in steady state and on windows of transients in which k stays; "
    "steady flow out of observation j over the flow into it, (R_j + d y_j) / (R_(j-1) + d p_j), for every j >= 1",
    tolerance_reason="5 %: less than half of the 1/(d+1) by which the recursion with d + 1 probes is off, for d up to "
    "8, and more than the few servers known below k that finite N leaves",
    controls={"sq": "memoryless SQ(d)", "d+1": "the recursion with d + 1 probes"},
    dataset="recursion",
    figure="fig-recursion",
)
def recursion(data: Data, model: str) -> Iterator[Cell]:
    """Levels j >= 1 that hold enough servers; below k in steady state only away from steps of the bound.

    At such a step the servers known below k are a critical queue, and y_j vanishes slower. The balance at every level
    is exact at any N, whatever the rule of dispatch: it tests the memory and the counts, the recursion tests the rule.
    """
    below, every = _steady(data["stationary"], model)
    moving = _transient(data["recursion"], model)
    if not below:
        yield missing("steady levels j >= 1 below the lowest observation in use")
    if not moving:
        yield missing("windows of transients with levels j >= 1 below the lowest observation in use")
    found = [*below, *every, *moving]
    for at, value, half_width, replicates in found:
        width = half_width * statistics.widening(replicates, len(found))
        yield Cell(at, float(value), float(width), 1 - RELATIVE, 1 + RELATIVE)
