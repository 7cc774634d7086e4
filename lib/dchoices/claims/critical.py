"""The conjectures about the loads at which the longest queue grows, and about the order of what a finite N adds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import xarray as xr

from dchoices.claims.engine import CLAIM, Cell, Data, claim, missing, where
from dchoices.exponents import Ladder, exponent_at_zero
from dchoices.statistics import widening

# An exponent is told from the next one in question if it lies nearer than half-way to it; where there is none on one
# side, the room is the same as on the other. A fitted exponent is off by corrections for finite N that fall as slowly
# as N^(-1/6) (at Q = 2, where y is 0 for a part of the time), so that no tighter tolerance can be derived.
HALF_WAY = 0.5
# Powers of N are read off ladders that reach this far, and the exponential below the threshold off ladders that reach
# so far: its exponent of N grows with N.
ENOUGH_SERVERS, ENOUGH_BELOW = 1000, 100
# Below the threshold: the fall is steeper than twice the order above it, and more an exponential's than a power's.
STEEP = -2.0
# Rounding of a mean response time of order 1, which is solved for to a few units in the last place.
ROUNDING = 1e-14

Tolerance = tuple[float, float]
Wanted = tuple[str, str, int, str, Tolerance]  # quantity, point, d, method of Ladder, tolerance

SYMBOLS = {
    "missed_zero": "1 - R_0",
    "lowest_share": "y",
    "response_excess": "R_N - R",
    "response_remainder": "R_N - R + y/λ",
}
METHODS = {
    "exponent": "exponent of N in",
    "local_exponent": "exponent, at the largest N, in",
    "exponential_part": "part of an exponential in",
}


def _order(level: int) -> float:
    """Return the exponent of N in y at the step of level Q."""
    return -1 / (level + 1)


def _nearest(exponent: float, *others: float) -> Tolerance:
    """Return the tolerance of an exponent: half-way to the others, of which one at least is not as steep."""
    room_above = HALF_WAY * (min(other for other in others if other > exponent) - exponent)
    steeper = [other for other in others if other < exponent]
    room_below = HALF_WAY * (exponent - max(steeper)) if steeper else room_above
    return exponent - room_below, exponent + room_above


STEPS = {2: "step-2", 3: "step-3"}
ORDERS: dict[str, list[tuple[str, Tolerance]]] = {
    "below": [("local_exponent", (-math.inf, STEEP)), ("exponential_part", (HALF_WAY, math.inf))],
    "threshold": [("exponent", _nearest(-1 / 2, -1.0, _order(2)))],
    "above": [("exponent", _nearest(-1.0, -1 / 2))],
}


def _cells(runs: xr.Dataset, wanted: Sequence[Wanted]) -> Iterator[Cell]:
    """Yield a cell for each quantity, point and d that are wanted; intervals hold for all at once."""
    factor = widening(int(runs.attrs["replicates"]) - 1, max(1, len(wanted)))  # the control variate takes one more
    for quantity, point, d, method, (low, high) in wanted:
        at = f"{METHODS[method]} {SYMBOLS[quantity]}, {point}, {where({'d': d})}"
        ladder = Ladder.of(runs, quantity, point, d)
        if not ladder.resolved or ladder.N[-1] < (ENOUGH_BELOW if point == "below" else ENOUGH_SERVERS):
            yield missing(at)
            continue
        value, half_width = getattr(ladder, method)()
        yield Cell(at, value, factor * half_width, low, high)


def _run(runs: xr.Dataset, regime: str, beside: bool = False) -> Iterator[tuple[str, int]]:
    """Yield the point of a regime, or with `beside` those with an offset too, and the d for which it was run."""
    for point in runs["point"].values.tolist():
        if point == regime or (beside and point.split()[0] == regime):
            for d in runs["d"].values.tolist():
                if bool((runs["horizon"].sel(point=point, d=d) > 0).any()):
                    yield point, d


@claim(
    id="N2",
    statement="Critical window of the threshold: at λ = 1 - 1/d the share of jobs that are not sent to a server with "
    "observation 0 is of order N^(-1/2); at λ = 1 - 1/d + x/(d√N) this share times √N depends on x and d alone.",
    source="conjecture, derived from the model",
    heuristic="At any N the balance of observations is R_0 = d_N (1-λ-y_0), with y_0 the mean fraction of servers with "
    "observation 0 and d_N = d + O(1/N) the expected number of different servers among d probes. So 1 - R_0 = d y_0 + "
    "O(1/N) at λ = 1 - 1/d. There the drift of y_0 vanishes at 0 and is linear: y_0' = λ(d(p_0-y_0) - 1), with p_0 = "
    "1-λ in the mean, while p_0 and y_0 get noise of size N^(-1/2), and y_0 is reflected at 0. All terms are of one "
    "size if y_0, p_0 - (1-λ) and λ - (1-1/d) are of order N^(-1/2): this is the width of the window, and the time "
    "scale is of order 1.",
    quantity="exponent of N in 1 - R_0, per d and x",
    tolerance_reason="half-way to -1/3, the exponent at the next step of the bound, and as much on the other side",
    controls={
        "above": "a fixed load above the threshold, where 1 - R_0 has a limit",
        "step-2": "the lowest observation at the step of the bound from 2 to 3 (N^(-1/3))",
    },
    dataset="finite_size",
    figure="fig-critical",
)
def critical_window(data: Data, model: str) -> Iterator[Cell]:
    """Exponents at the threshold and at fixed x beside it."""
    runs = data["finite_size"]
    regime, quantity = {
        CLAIM: ("threshold", "missed_zero"),
        "above": ("above", "missed_zero"),
        "step-2": ("step-2", "lowest_share"),
    }[model]
    tolerance = _nearest(_order(1), _order(2))
    yield from _cells(runs, [(quantity, *place, "exponent", tolerance) for place in _run(runs, regime, beside=True)])


@claim(
    id="N3",
    statement="Critical load of a later step: where the bound steps from Q to Q + 1, at λ_Q, the fraction y of servers "
    "with observation Q - 1 is of order N^(-1/(Q+1)), also for Q = 2 and 3.",
    source="conjecture, derived from the model",
    heuristic="For Q >= 2, next to λ_Q, y' = -(ε + c y^Q) in the limit, ε the distance of the load from λ_Q: servers "
    "wait for a time of order y at observation Q - 1, and one of them is idle only after Q - 1 services in a row in "
    "such times, so that p_0 is larger by a term of order y^Q. With noise of variance σ²/N, reflected at 0, y has the "
    "density ∝ exp(-2cN y^(Q+1)/((Q+1)σ²)) at ε = 0: of order N^(-1/(Q+1)), forgotten in a time N^((Q-1)/(Q+1)), in a "
    "window of loads of width N^(-Q/(Q+1)). For part of the time y is 0, of order N^(1/(Q+1)-1/2): it is the largest "
    "correction.",
    quantity="exponent of N in y, per Q and d",
    tolerance_reason="half-way to the exponents of the levels before and after",
    controls={
        "threshold": "the fraction with observation 0 at the threshold (N^(-1/2)), taken for Q = 2",
        "neighbour": "the fraction at Q = 3 taken for Q = 2, and the other way round",
    },
    dataset="finite_size",
    figure="fig-critical",
)
def later_steps(data: Data, model: str) -> Iterator[Cell]:
    """Exponents of y at every step that was run, or those of another step under the same tolerances."""
    runs = data["finite_size"]
    measured = {CLAIM: STEPS, "threshold": {2: "threshold"}, "neighbour": {2: "step-3", 3: "step-2"}}
    wanted: list[Wanted] = []
    for level, regime in measured[model].items():
        tolerance = _nearest(_order(level), _order(level - 1), _order(level + 1))
        wanted += [("lowest_share", *place, "exponent", tolerance) for place in _run(runs, regime)]
    yield from _cells(runs, wanted)


@claim(
    id="N4",
    statement="A root in the limit: the mean response time R is no smooth function of the load at λ_Q, Q >= 2; "
    "R(λ_Q) - R(λ) is of order |λ-λ_Q|^(1/Q) below λ_Q, and linear above.",
    source="conjecture, derived from the model",
    heuristic="The fixed point just below λ_Q has ε + c y^Q = 0 (see N3), so y = (|ε|/c)^(1/Q); and in the limit the "
    "mean observation exceeds the mean queue length by 1/d, so that λ R = Q - y - 1/d. Above λ_Q the new longest queue "
    "opens with a share linear in ε. At Q = 2 the line of R has a square root on the lower side, at Q = 3 a cube "
    "root.",
    quantity="exponent of |λ-λ_Q| in |R(λ) - R(λ_Q)|, per Q and d, on either side",
    tolerance_reason="half-way to the exponents of the levels before and after below, a quarter on either side above",
    controls={
        "smooth": "a load that is no step, half-way from the threshold to the step of Q = 2 (exponent 1)",
        "next": "the exponent 1/(Q+1) of the next level",
    },
    dataset="finite_size",
    figure="fig-finite-size",
)
def root_singularity(data: Data, model: str) -> Iterator[Cell]:
    """Exponents of fixed points, with what they still change by towards the step."""
    near = data["finite_size"]["response_step"].sortby("closeness")
    for level in [step for step in near["step"].values.tolist() if step >= 2]:
        claimed = level + (model == "next")
        tolerances = {"below": _nearest(1 / claimed, 1 / (claimed - 1), 1 / (claimed + 1)), "above": (0.75, 1.25)}
        for d in near["d"].values.tolist():
            for side, (low, high) in tolerances.items():
                values = near.sel(side=side, step=0 if model == "smooth" else level, d=d).values
                value, error = exponent_at_zero(near["closeness"].values, values, ROUNDING)
                yield Cell(f"{side} the step, Q = {level}, d = {d}", value, error, low, high, exact=True)


@claim(
    id="N5",
    statement="Corrections for finite N: the mean response time R_N of N servers differs from its limit R by less than "
    "any power of N below the threshold, by order N^(-1/2) at it, 1/N above it, and N^(-1/(Q+1)) at a later step, "
    "where R_N is the lower one in the end.",
    source="conjecture, derived from the model",
    heuristic="Below the threshold a job waits only if the stock of about N(1-λ-1/d) known idle servers has run out: a "
    "large deviation, exponentially rare. At the threshold and at later steps R follows y, of which N2 and N3 give "
    "the order: at any N the mean observation exceeds the mean queue length by 1/d_N, so that λ R_N = Q - y - 1/d_N "
    "plus servers with an observation above Q, λ R_N - λ R = -y + O(N^(-Q/(Q+1))) for Q >= 2. Elsewhere the limit is "
    "smooth at its fixed point, and fluctuations of size N^(-1/2) change means by their square.",
    quantity="exponent of N in R_N - R, per regime and d; below also the part of the fall that is an exponential's; at "
    "later steps the exponent in -y/λ and that in what it leaves of R_N - R",
    tolerance_reason="below: steeper than twice the order above, more exponential than power; else half-way to the "
    "exponents of the regimes or levels next to it; what y leaves falls faster than half-way from y to the predicted "
    "order",
    controls={
        "above": "the regime above, taken for the one below and for the threshold",
        "threshold": "the threshold, taken for the regime below, for that above and for the step of Q = 2",
    },
    dataset="finite_size",
    figure="fig-finite-size",
)
def finite_size_orders(data: Data, model: str) -> Iterator[Cell]:
    """All regimes; in a control one of them stands for every other."""
    runs = data["finite_size"]
    wanted: list[Wanted] = []
    for regime, checks in ORDERS.items():
        if regime != model:
            for point, d in _run(runs, regime if model == CLAIM else model):
                wanted += [("response_excess", point, d, *check) for check in checks]
    for level, regime in STEPS.items() if model == CLAIM else [(2, model)]:
        wanted += _later_step(runs, level, regime)
    yield from _cells(runs, wanted)


def _later_step(runs: xr.Dataset, level: int, regime: str) -> list[Wanted]:
    leading = _nearest(_order(level), _order(level - 1), _order(level + 1))
    remainder = (-math.inf, HALF_WAY * (_order(level) + level * _order(level)))
    wanted: list[Wanted] = []
    for point, d in _run(runs, regime):
        wanted.append(("lowest_share", point, d, "exponent", leading))
        wanted.append(("response_remainder", point, d, "exponent", remainder))
    return wanted
