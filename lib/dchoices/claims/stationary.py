"""The claims about what the system settles to: threshold, bound, tails."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import xarray as xr

from dchoices import statistics
from dchoices.claims.engine import CLAIM, Cell, Data, claim, estimate_cells, missing, where
from dchoices.claims.selection import ENOUGH_SERVERS, NEARER_THAN_CONTROL, REVIEW, far
from dchoices.theory.closed_forms import (
    fixed_point,
    optimality_threshold,
    queue_bound,
    sq_queue_length_pmf,
)

# Share of jobs that may miss an idle server where √N(1-1/d-λ) >= 2: the stock of known idle servers is then at least
# about three standard deviations away from empty.
MISSED_IDLE = 0.01
# Mass above the bound that counts as none; the control, a bound lower by one, leaves p_Q, mostly above 0.1.
NO_MASS = 1e-3
# A bound is tight if its level holds mass: at least this part of the fixed point's, which a wrong level does not have.
TIGHT = 0.5
# Relative error allowed for a tail of SQ(d): far below what separates it from the policy with memory.
RELATIVE = 0.1
# Levels with fewer servers than this, and loads above the next, are left out of the tails of SQ(d): few servers are
# noisy, and near λ = 1 queues forget the start, which is the formula itself, slower than the runs are long. M/M/1
# forgets slowest, in (1-√λ)^(-2).
ENOUGH_AT_LEVEL = 1000
NOT_HEAVY, NOT_HEAVY_MM1 = 0.95, 0.6
# Shares of two models that differ by less, as they do where λ -> 1 and both vanish, are not told apart.
SEPARATION = 0.02

LEVELS = ("occupancy", "occupancy_tail")  # by queue length

Place = tuple[dict[str, Any], float, float]  # coordinates of a cell, and its tolerance
Bounded = tuple[dict[str, Any], float, np.ndarray]  # coordinates, a bound, and the limit's shares by queue length


def largest_places(dataset: xr.Dataset, policy: str, keep: Callable[[int, float], bool]) -> Iterator[dict[str, Any]]:
    """Yield the (policy, N, d, λ) of a stationary dataset at its largest N, where (d, λ) is kept."""
    N = int(dataset.N.max())
    if N < ENOUGH_SERVERS or policy not in dataset.policy:
        return
    for d in dataset.d.values.tolist():
        for lam in dataset["λ"].values.tolist():
            if keep(d, lam):
                yield {"policy": policy, "N": N, "d": d, "λ": lam}


def _policy(model: str) -> str:
    return "sq-memory" if model == CLAIM else "sq"


@claim(
    id="P2",
    statement="If λ < 1 - 1/d, every job finds an idle server as N grows, and the mean response time tends to 1.",
    source="main theorem (if), " + REVIEW,
    quantity="share of jobs that find an idle server, and mean response time",
    tolerance_reason="1 % of jobs where √N(1-1/d-λ) >= 2, and at most half of what memoryless SQ(d) misses",
    controls={"sq": "memoryless SQ(d)"},
    dataset="stationary",
    figure="fig-idle",
)
def optimal_below_threshold(data: Data, model: str) -> Iterator[Cell]:
    """Idle share and response time at the largest N, far enough below the threshold for that N."""
    runs = data["stationary"]
    N = int(runs.N.max())
    keep = lambda d, lam: math.sqrt(N) * (optimality_threshold(d) - lam) >= 2  # noqa: E731
    idle: list[Place] = []
    response: list[Place] = []
    for place in largest_places(runs, _policy(model), keep):
        missed = min(MISSED_IDLE, place["λ"] ** place["d"] / 2)
        idle.append((place, 1 - missed, math.inf))
        response.append((place, 1 - missed, 1 + missed))
    yield from estimate_cells(runs, "dispatch_to_idle", idle, also=2)
    yield from estimate_cells(runs, "mean_response_time", response, also=2)


@claim(
    id="P3",
    statement="Only if: for λ > 1 - 1/d the share of jobs sent to observation 0 tends to d(1-λ) < 1, and the share "
    "that finds an idle server to p_1/λ < 1.",
    source="main theorem (only if), " + REVIEW + "; limits derived from the model",
    quantity="share of jobs sent to observation 0, and share that finds an idle server",
    tolerance_reason="0.4 of the distance to 1 - λ^d, the share of memoryless SQ(d), where the two differ by 0.02",
    controls={"sq": "memoryless SQ(d)"},
    dataset="stationary",
    figure="fig-idle",
)
def suboptimal_above_threshold(data: Data, model: str) -> Iterator[Cell]:
    """Both shares at the largest N, λ within 0.05 to 0.25 above the threshold, d >= 2."""
    runs = data["stationary"]
    keep = lambda d, lam: d >= 2 and 0.05 - 1e-9 <= lam - optimality_threshold(d) <= 0.25 + 1e-9  # noqa: E731
    observed: list[Place] = []
    idle: list[Place] = []
    for place in largest_places(runs, _policy(model), keep):
        lam, d = place["λ"], place["d"]
        memoryless = 1 - lam**d
        for limit, places in ((d * (1 - lam), observed), (float(fixed_point(lam, d).dispatch_to_idle), idle)):
            room = NEARER_THAN_CONTROL * abs(memoryless - limit)
            if abs(memoryless - limit) >= SEPARATION:
                places.append((place, limit - room, min(limit + room, math.nextafter(1, 0))))
    yield from estimate_cells(runs, "dispatch_to_observation_zero", observed, also=2)
    yield from estimate_cells(runs, "dispatch_to_idle", idle, also=2)


def _bound(model: str, Q: Any, lam: Any, d: Any) -> Any:
    """Return the bound of the claim or of a control, from the formula's Q(λ, d); arrays or numbers."""
    if model == "log(λd)":
        with np.errstate(divide="ignore"):
            return np.where(lam * d > 1, np.ceil(-np.log1p(-lam) / np.log(np.maximum(lam * d, 1))), np.inf)
    if model == "floor":
        return np.floor(-np.log1p(-lam) / np.log1p(lam * d))
    return Q + {CLAIM: 0, "lower": -1, "higher": 1}[model]


def _with_bound(places: Iterable[dict[str, Any]], bound: Callable[[float, int], float]) -> list[Bounded]:
    """Return the places with a bound and the fixed point's shares by queue length."""
    points = [(place, place["λ"], place["d"]) for place in places]
    return [(place, bound(lam, d), fixed_point(lam, d).queue_length_pmf.values) for place, lam, d in points]


def mass_cells(runs: xr.Dataset, places: Sequence[Bounded]) -> Iterator[Cell]:
    """Yield for each place the mass above the bound (none) and at the bound (that of the limit, so tight)."""
    factor = statistics.widening(int(runs.attrs["replicates"]), max(1, 2 * len(places)))
    wanted = runs[[*LEVELS, *(f"{name}_ci95" for name in LEVELS), "warm_up_ok"]]
    for place, level, pmf in places:
        expected = float(pmf[int(level)]) if level < len(pmf) else 0.0
        at = where({key: value for key, value in place.items() if key != "policy"})
        point = wanted.sel(place)
        value, width = _at_level(point, "occupancy_tail", level + 1)
        yield Cell(f"mass above {level:g} at {at}", value, width * factor, high=NO_MASS)
        value, width = _at_level(point, "occupancy", level)
        yield Cell(f"mass at {level:g} at {at}", value, width * factor, low=max(NO_MASS, TIGHT * expected))


def _at_level(point: xr.Dataset, quantity: str, level: float) -> tuple[float, float]:
    """Return an estimate by queue length and its half-width: none beyond the longest queue seen."""
    if not point.warm_up_ok:
        return 0.0, math.inf
    if level >= point.sizes["queue_length"]:
        return 0.0, 0.0
    return float(point[quantity][int(level)]), float(point[f"{quantity}_ci95"][int(level)])


@claim(
    id="P4",
    statement="Queues are bounded by Q(λ, d) = ⌈-log(1-λ)/log(λd+1)⌉, tightly, and mass above it vanishes as N grows.",
    source="main theorem (bound), " + REVIEW,
    quantity="share of a dense grid where the fixed point's longest queue is not Q; stationary mass above and at Q",
    tolerance_reason="no grid point may differ, as levels and formula are decided without rounding; less than 0.001 of "
    "mass above, and at least half of the fixed point's mass at the bound",
    controls={
        "lower": "the bound less one",
        "higher": "the bound plus one",
        "log(λd)": "log(λd) in place of log(λd+1)",
        "floor": "the floor for the ceiling",
    },
    dataset="stationary",
    figure="fig-bound",
)
def tight_bound(data: Data, model: str) -> Iterator[Cell]:
    """The formula against levels found without it, and against stationary runs away from its steps."""
    grid = data["bound_grid"]
    formula = _bound(model, grid.bound.values, grid["λ"].values, grid.d.values[:, None])
    differing = float((formula != grid.level.transpose("d", "λ").values).mean())
    exact = int(grid.decided_exactly.sum())
    at = f"share of {grid.level.size} grid points with another level, {exact} of them decided in fractions"
    yield Cell(at, differing, 0.0, 0.0, 0.0, exact=True)
    runs = data["stationary"]
    places = list(largest_places(runs, "sq-memory", lambda d, lam: far(lam, d)))
    bound = lambda lam, d: float(_bound(model, queue_bound(lam, d), lam, d))  # noqa: E731
    yield from mass_cells(runs, _with_bound(places, bound)) if places else [missing("stationary runs with memory")]


@claim(
    id="P5",
    statement="Without memory every queue length keeps mass: a fraction λ^((d^i-1)/(d-1)) of servers has at least i "
    "jobs.",
    source="Mitzenmacher 2001; Vvedenskaya, Dobrushin and Karpelevich 1996; recalled in the " + REVIEW,
    quantity="fraction of servers with at least i jobs over the formula's, i up to 2Q, λ up to 0.95 (0.6 for d = 1)",
    tolerance_reason="10 % of the formula; with memory there is nothing left beyond Q",
    controls={"sq-memory": "SQ(d) with memory"},
    dataset="stationary",
    figure="fig-memory",
)
def memoryless_tails(data: Data, model: str) -> Iterator[Cell]:
    """Tails of SQ(d) at the largest N, at every level that holds enough servers."""
    runs = data["stationary"]
    keep = lambda d, lam: lam <= (NOT_HEAVY if d > 1 else NOT_HEAVY_MM1)  # noqa: E731
    places = list(largest_places(runs, "sq" if model == CLAIM else "sq-memory", keep))
    tails = []
    for place in places:
        expected = sq_queue_length_pmf(place["λ"], place["d"])[::-1].cumsum()[::-1]
        # With M/M/1 the levels are many; up to twice the bound shows what memory removes.
        last = min(len(expected) - 1, 2 * queue_bound(place["λ"], place["d"]))
        tails += [(place, i, expected[i]) for i in range(1, last + 1) if expected[i] * place["N"] >= ENOUGH_AT_LEVEL]
    factor = statistics.widening(int(runs.attrs["replicates"]), max(1, len(tails)))
    wanted = runs[["occupancy_tail", "occupancy_tail_ci95", "warm_up_ok"]]
    for place, i, expected in tails:
        value, width = _at_level(wanted.sel(place), "occupancy_tail", i)
        at = f"i = {i}, " + where({key: place[key] for key in ("N", "d", "λ")})
        yield Cell(at, value / expected, width / expected * factor, 1 - RELATIVE, 1 + RELATIVE)


@claim(
    id="P11",
    statement="At λ = 0.995 the bound is 5 for d = 2, and for d = 3 it is 4 (an early abstract says 3).",
    source="numbers in the abstract and its early version, arXiv:1802.06566",
    quantity="longest queue with mass at the fixed point, and stationary mass above and at the bound, at λ = 0.995",
    tolerance_reason="the level must be the number; less than 0.001 of mass above, and at least half of the fixed "
    "point's mass at it",
    controls={"early": "the early abstract's 3 at d = 3", "floor": "the floor for the ceiling"},
    dataset="stationary",
    figure="fig-bound",
)
def published_numbers(data: Data, model: str) -> Iterator[Cell]:
    """The two numbers, by the fixed point and by simulation."""
    numbers: dict[int, float] = {2: 5, 3: 4}
    if model == "early":
        numbers = {2: 5, 3: 3}
    elif model == "floor":
        numbers = {d: _bound("floor", numbers[d], 0.995, d) for d in numbers}
    for d, number in numbers.items():
        level = fixed_point(0.995, d).sizes["i"] - 1
        yield Cell(f"longest queue at the fixed point, d = {d}", level, 0.0, number, number, exact=True)
    runs = data["stationary"]
    places = list(largest_places(runs, "sq-memory", lambda d, lam: lam == 0.995 and d in numbers))
    yield from mass_cells(runs, _with_bound(places, lambda lam, d: numbers[d]))
    if len(places) < len(numbers):
        yield missing("stationary runs at λ = 0.995 for d = 2 and 3")


@claim(
    id="P12",
    statement="One probe is enough for a bounded queue: with d = 1 and memory, queues are bounded by Q(λ, 1).",
    source="the bound at d = 1, " + REVIEW,
    quantity="stationary mass above Q(λ, 1), d = 1",
    tolerance_reason="less than 0.001 of mass; M/M/1 has λ^(Q+1)",
    controls={"sq": "d = 1 without memory (M/M/1)"},
    dataset="stationary",
    figure="fig-memory",
)
def one_probe_is_enough(data: Data, model: str) -> list[Cell]:
    """Mass above the bound at the largest N, away from its steps."""
    runs = data["stationary"]
    places = largest_places(runs, _policy(model), lambda d, lam: d == 1 and far(lam, d))
    return estimate_cells(runs, "mass_above_bound", [(place, -math.inf, NO_MASS) for place in places])
