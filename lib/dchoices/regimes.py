"""The finite system beside its limit: next to the loads at which the longest queue grows, and away from them.

Let λ_Q be the load at which the bound steps from Q to Q + 1, and y the fraction of servers with observation Q - 1, the
lowest in use below it. There y' = -(ε + c y^Q) in the limit, with ε the distance of the load from λ_Q; in a system of N
servers noise of size N^(-1/2) keeps y from 0, at a size N^(-1/(Q+1)) that it forgets in a time N^((Q-1)/(Q+1)).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from dchoices import registry, starts, statistics, validation
from dchoices.lumped import LumpedChain
from dchoices.progress import progress_bar
from dchoices.simulation import FEWEST_JOBS, stack, stream
from dchoices.theory.closed_forms import fixed_point, optimality_threshold, switch_load
from dchoices.variables import describe
from dchoices.wording import show

POLICY = "sq-memory"
# Where a load lies: the level Q of the step that it is at or beside.
REGIMES = {"below": 1, "threshold": 1, "above": 1, "step-2": 2, "step-3": 3}
# Of the threshold, where the load of the regime `below` is.
WELL_BELOW = 0.8
MOST_LEVELS = 60  # of `step_response`
# Discarded at the start, in units of the longer of 1/(1-λ) and N^((Q-1)/(Q+1)). The start has y = 0, the largest y
# that is likely is reached in about 0.4 of the latter.
WARM_UP = 4.0


def regime_load(regime: str, d: int, N: int, offset: float = 0.0) -> float:
    """Return the load of a regime.

    Parameters
    ----------
    regime : str
        "below": 0.8 of the threshold 1 - 1/d (d >= 2); "threshold" (d >= 2); "above": half-way from the threshold to
        the next step; "step-2", "step-3": where the bound steps from 2 to 3, from 3 to 4.
    d, N : int
        Probes per job; servers.
    offset : float
        Distance from the step λ_Q, in units of (1-λ_Q) N^(-Q/(Q+1)); of the regimes at a step.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    level = REGIMES[validation.choice("regime", regime, REGIMES)]
    if regime == "below":
        load = WELL_BELOW * optimality_threshold(d)
    elif regime == "above":
        load = (switch_load(1, d) + switch_load(2, d)) / 2
    else:
        step = switch_load(level, d)
        load = step + offset * (1 - step) * N ** (-level / (level + 1))
    if not 0 < load < 1:
        raise ValueError(f"regime = {regime!r}, d = {d}, N = {N}, offset = {offset:g}: no load in (0, 1)")
    return load


def finite_size(regimes: Mapping[str, Mapping[str, Any]], replicates: int = 20, seed: int = 0) -> xr.Dataset:
    """Estimate how far stationary systems of N servers are from the fluid limit, in several regimes of the load.

    Every replicate starts at the fluid fixed point and gets as many events as any other of its regime, whatever its N;
    what follows the warm-up is counted in two halves, which are compared at a level of 0.05 for all systems at once.
    All is computed from the jobs counted by the queue and by the observation that they find: no time is sampled. The
    number of jobs and services in the window is known in the mean, and what an estimate owes to its chance is taken
    off by regression over the replicates (control variate).

    Parameters
    ----------
    regimes : mapping
        For each regime of `regime_load` what to run it on: lists ``d`` and ``N``; ``events`` for each of its systems,
        over all replicates and with the warm-up; optionally ``offsets``, default [0].
    replicates : int
        Independent replicates, >= 4.
    seed : int
        Seed >= 0.

    Returns
    -------
    xarray.Dataset
        On (point, N, d), a point being a regime with an offset: ``lowest_share`` y, ``response_excess`` R_N - R,
        ``response_remainder`` R_N - R + y/λ and ``missed_zero`` 1 - R_0, each with its ``…_ci95``; ``load``,
        ``warm_up``, ``horizon``, ``warm_up_z``, ``warm_up_ok``. What was not asked for is 0, its horizon too.
        ``offset`` on (point).

    Raises
    ------
    ValueError
        If an argument is out of range, or a system has too few events for its warm-up.
    """
    replicates = validation.replicates(replicates, 4)
    seed = validation.seed(seed)
    validation.mapping("regimes", regimes, "regime to what to run it on")
    checked = {name: _checked(name, given) for name, given in regimes.items()}
    asked = [(name, offset) for name, given in checked.items() for offset in given["offsets"]]
    labels = [point_label(*point) for point in asked]
    ds, sizes = (sorted({value for given in checked.values() for value in given[axis]}) for axis in ("d", "N"))
    shape = (len(labels), len(sizes), len(ds))
    planned = [
        (_planned(name, N, d, offset, given["events"], replicates), (point, sizes.index(N), ds.index(d)))
        for point, (name, offset) in enumerate(asked)
        for given in [checked[name]]
        for N, d in itertools.product(given["N"], given["d"])
    ]
    validation.events("events", max(s.events for s, _ in planned), sum(s.events for s, _ in planned),
                      replicates * len(planned))  # fmt: skip
    validation.numbers("replicates", 100 * replicates)
    # One system that is flagged leaves its ladder inconclusive: at 0.001 for each, chance would do that to one study in
    # eight or so.
    level = (1 - statistics.CONFIDENCE) / len(planned)
    cells: dict[str, np.ndarray] = {}
    with progress_bar(sum(system.events for system, _ in planned), "finite size") as progress:
        for system, place in planned:
            for variable, value in _estimates(system, replicates, seed, level).items():
                cells.setdefault(variable, np.zeros(shape, np.asarray(value).dtype))[place] = value
            progress.update(round(system.events))
    variables: dict[str, Any] = {name: (("point", "N", "d"), array) for name, array in cells.items()}
    variables["offset"] = ("point", [float(offset) for _, offset in asked])
    coords = {"point": labels, "N": sizes, "d": ds}
    return describe(xr.Dataset(variables, coords, {"policy": POLICY, "seed": seed, "replicates": replicates}))


def _checked(regime: str, given: Mapping[str, Any]) -> dict[str, Any]:
    validation.choice("regime", regime, REGIMES)
    validation.mapping(f"regimes[{regime!r}]", given, "key to its value")
    if not {"d", "N", "events"} <= set(given) <= {"d", "N", "events", "offsets"}:
        raise ValueError(
            f"regimes[{regime!r}] has {show(sorted(map(str, given)))}: must have d, N, events, maybe offsets"
        )
    offsets = validation.several("offsets", given.get("offsets", [0.0]), _offset)
    if any(offsets) and regime in ("below", "above"):
        raise ValueError(f"offsets = {show(offsets)}: regime {regime!r} is at no step, must be [0]")
    return {
        "d": validation.several("d", given["d"], validation.probes),
        "N": validation.several("N", given["N"], validation.servers),
        "offsets": offsets,
        "events": validation.positive("events", given["events"]),
    }


def _offset(value: Any, name: str) -> float:
    if not math.isfinite(number := validation.real(value)):
        raise ValueError(f"{name} = {show(value)}: must be finite numbers")
    return number


def point_label(regime: str, offset: float = 0.0) -> str:
    """Return the name of a regime with an offset."""
    return f"{regime} {offset:+g}" if offset else regime


@dataclass(frozen=True)
class System:
    """One system to be run: its step, size and load, and the times and events of a replicate and of all."""

    level: int
    N: int
    d: int
    lam: float
    warm_up: float
    horizon: float
    events: float


def _planned(regime: str, N: int, d: int, offset: float, events: float, replicates: int) -> System:
    """Return a system with its load and times."""
    level, lam = REGIMES[regime], regime_load(regime, d, N, offset)
    warm_up = WARM_UP * max(1 / (1 - lam), N ** ((level - 1) / (level + 1)))
    horizon = events / (replicates * N * (1 + lam)) - warm_up
    shortest = max(warm_up, FEWEST_JOBS / (N * lam))
    if horizon < shortest:
        raise ValueError(
            f"events = {events:g}: must be at least {replicates * N * (1 + lam) * (warm_up + shortest):.2g} "
            f"for regime {regime!r}, N = {N}, d = {d}"
        )
    return System(level, N, d, lam, warm_up, horizon, events)


def _estimates(system: System, replicates: int, seed: int, warm_up_level: float) -> dict[str, Any]:
    """Return the estimates for one system, with what they were measured on."""
    N, d, lam, horizon = system.N, system.d, system.lam, system.horizon
    policy = registry.get(POLICY)
    start = starts.fractions("fixed-point", policy, lam, d)
    by_queue, by_observation, controls = [], [], []
    for replicate in range(replicates):
        chain = LumpedChain(policy, N, d, lam, start, stream(seed, POLICY, N, d, lam, "fixed-point", replicate))
        chain.advance(system.warm_up)
        chain.reset_counters()
        total = chain.advance(horizon / 2)
        half = chain.sent_by_queue
        total += chain.advance(horizon / 2)
        jobs = chain.sent_by_queue.sum()
        by_queue += [half, chain.sent_by_queue]
        by_observation.append(chain.sent_by_observation)
        controls.append((jobs / lam - (total - jobs)) / (N * horizon))
    sent = stack(by_queue).reshape(replicates, 2, -1)
    probed, limit = policy.servers_probed(N, d), float(fixed_point(lam, d).mean_response_time)
    samples = _samples(sent[:, 1], stack(by_observation), system.level, probed, lam, limit)
    found: dict[str, Any] = {"load": lam, "warm_up": system.warm_up, "horizon": horizon}
    for name, values in samples.items():
        found[name], found[f"{name}_ci95"] = statistics.controlled(values, np.array(controls), 0.0)
    first, second = (_mean_queue_found(counts) for counts in (sent[:, 0], sent[:, 1] - sent[:, 0]))
    found["warm_up_z"] = statistics.halves_statistic(first, second)
    found["warm_up_ok"] = np.int8(statistics.warm_up_is_long_enough(found["warm_up_z"], replicates, warm_up_level))
    return found


def _mean_queue_found(sent: np.ndarray) -> np.ndarray:
    return sent @ np.arange(sent.shape[1]) / sent.sum(axis=1)


def _samples(
    by_queue: np.ndarray, by_observation: np.ndarray, level: int, probed: float, lam: float, limit: float
) -> dict[str, np.ndarray]:
    """Return the estimates of each replicate from its jobs by the queue and by the observation that they find.

    In the stationary system servers come to i jobs as often as they go from i to i - 1, so that p_i = λ D_{i-1} with D
    the shares of jobs by the queue that they find, and p_0 = 1 - λ. The observations are in balance where
    R_j - R_{j-1} = probed · (p_j - y_j).

    Parameters
    ----------
    by_queue, by_observation : int64[R, L]
        Jobs sent.
    level : int
        Q of the step.
    probed : float
        Expected number of different servers among the probes of a job.
    lam, limit : float
        Load; mean response time of the fluid limit.
    """
    queue, observed = (sent / sent.sum(axis=1, keepdims=True) for sent in (by_queue, by_observation))
    occupancy = np.column_stack([np.full(len(queue), 1 - lam), lam * queue[:, :-1]])
    observed_at = occupancy - np.diff(observed, axis=1, prepend=0.0) / probed
    lowest, excess = observed_at[:, level - 1], 1 + _mean_queue_found(by_queue) - limit
    return {
        "lowest_share": lowest,
        "response_excess": excess,
        "response_remainder": excess + lowest / lam,
        "missed_zero": 1 - observed[:, 0],
    }


def _beside(step: float, part: float) -> float:
    load = step + part * (1 - step)
    return validation.load(load, f"closeness = {abs(part):g} makes a load")


def step_response(levels: Sequence[int], d: Sequence[int], closeness: Sequence[float]) -> xr.Dataset:
    """Return how the mean response time of the fluid limit leaves its value at the steps of the bound.

    Parameters
    ----------
    levels : int[Q]
        Steps of the bound, from Q to Q + 1, Q >= 2; 0 stands for a load that is none, half-way from the threshold to
        the step of level 2.
    d : int[D]
        Probes per job.
    closeness : float64[E]
        Distances of the load from the step, in units of 1 - λ_Q, in (0, 1).

    Returns
    -------
    xarray.Dataset
        ``response_step`` on (side, step, d, closeness): |R(λ_Q ± ε) - R(λ_Q)|, by the side of the step that the load
        is on, "below" and "above".

    Raises
    ------
    ValueError
        If an argument is out of range, or a load is not in (0, 1).
    """
    levels = validation.several("levels", levels, lambda value, name: validation.integer(name, value, 0, MOST_LEVELS))
    d = validation.several("d", d, validation.probes)
    closeness = validation.several("closeness", closeness, validation.fraction)
    validation.points("levels, d and closeness", 2 * len(levels) * len(d) * len(closeness), validation.PATH)
    signs = {"below": -1, "above": 1}
    values = np.empty((2, len(levels), len(d), len(closeness)))
    for (b, level), (c, probes) in itertools.product(enumerate(levels), enumerate(d)):
        if (level, probes) == (1, 1):
            raise ValueError("levels = 1: the bound steps at a load of 0 for d = 1, must be 0 or at least 2")
        step = switch_load(level, probes) if level else regime_load("above", probes, 1)
        at_step = float(fixed_point(step, probes).mean_response_time)
        for (a, sign), (e, part) in itertools.product(enumerate(signs.values()), enumerate(closeness)):
            values[a, b, c, e] = float(fixed_point(_beside(step, sign * part), probes).mean_response_time) - at_step
    coords = {"side": list(signs), "step": list(levels), "d": list(d), "closeness": list(closeness)}
    return describe(xr.Dataset({"response_step": (("side", "step", "d", "closeness"), np.abs(values))}, coords))
