"""The claims about service that is not exponential: what does not depend on its law, and what does."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import xarray as xr

from dchoices.claims.engine import CLAIM, Cell, Data, claim, estimate_cells, missing
from dchoices.claims.selection import NEARER_THAN_CONTROL, far
from dchoices.claims.stationary import MISSED_IDLE, SEPARATION, Place, largest_places, mass_cells
from dchoices.theory.closed_forms import optimality_threshold, queue_bound
from dchoices.theory.general_service import service_fixed_point


def _places(runs: xr.Dataset, keep: Callable[[int, float, str], bool]) -> Iterator[dict[str, Any]]:
    """Yield the places of every service law at the largest N, with memory, where (d, λ, law) is kept."""
    for law in runs.service.values.tolist():
        kept = lambda d, lam, law=law: keep(d, lam, law)  # noqa: E731
        for place in largest_places(runs, "sq-memory", kept):
            yield {"service": law, **place}


def _share(model: str, lam: float, d: int) -> float:
    """Return the limit of the share of jobs to observation 0 by the claim or a control; none knows the law."""
    return 1 - lam**d if model == "sq" else min(1.0, (d + (model == "d+1")) * (1 - lam))


@claim(
    id="N6",
    statement="The threshold does not depend on the service law: for first-come-first-served servers and any law of "
    "mean 1 every job finds an idle server if λ < 1 - 1/d, and above it the share sent to observation 0 is d(1-λ).",
    heuristic="If all jobs go to idle servers, a share λ of the servers is busy (Little's law, for any service time of "
    "mean 1). A server that falls idle stays unobserved until a probe finds it, at rate λd, so that another share "
    "λ/(λd) = 1/d is idle and unobserved. What is left, 1 - λ - 1/d, is known to be idle; it is positive if and only "
    "if λ < 1 - 1/d. Above, no known idle servers are left, and jobs go to observation 0 as fast as probes find idle "
    "servers, at rate λd(1-λ).",
    source="conjecture; the paper has it for exponential service",
    quantity="share of jobs sent to observation 0, and below the threshold also the share that finds an idle server",
    tolerance_reason="1 % of jobs where √N(1-1/d-λ) >= 2, and at most half of what memoryless SQ(d) misses; above, 0.4 "
    "of the distance to the nearer control, where they differ by 0.02",
    controls={
        "sq": "the share of memoryless SQ(d), 1 - λ^d",
        "d+1": "d + 1 probes: the threshold 1 - 1/(d+1), and (d+1)(1-λ) above it",
    },
    dataset="service",
    figure="fig-service",
)
def threshold_of_any_law(data: Data, model: str) -> Iterator[Cell]:
    """Both shares at the largest N for every law, λ far enough below the threshold or 0.05 to 0.25 above it."""
    runs = data["service"]
    N = int(runs.N.max())
    below: list[Place] = []
    observed: list[Place] = []
    for place in _places(runs, lambda d, lam, law: d >= 2):
        lam, d = place["λ"], place["d"]
        limit, above = _share(model, lam, d), lam - optimality_threshold(d)
        if math.sqrt(N) * -above >= 2:
            room = min(MISSED_IDLE, lam**d / 2)
            below.append((place, limit - room, limit + room))
            observed.append(below[-1])
        elif 0.05 - 1e-9 <= above <= 0.25 + 1e-9:
            apart = min(abs(_share(control, lam, d) - _share(CLAIM, lam, d)) for control in ("sq", "d+1"))
            if apart >= SEPARATION:
                room = NEARER_THAN_CONTROL * apart
                observed.append((place, limit - room, limit + room))
    yield from estimate_cells(runs, "dispatch_to_idle", below, also=2)
    yield from estimate_cells(runs, "dispatch_to_observation_zero", observed, also=2)
    if not below or len(below) == len(observed):
        yield missing("runs on either side of the threshold")


@claim(
    id="N7",
    statement="The bound depends on the service law: queues are bounded, tightly, by the least Q with "
    "1 + φ^(-1) + … + φ^(1-Q) >= 1/(d(1-λ)), where φ = E[exp(-λdS)] is the probability that a server is not probed "
    "while it serves a job. It is smallest for deterministic service.",
    heuristic="At a load where the level changes every server is topped up to Q jobs whenever it is probed. Look at "
    "the jobs left when a service ends: one less than before if there was no probe, else Q - 1. So a share "
    "u = φ^(Q-1)(1-φ)/(1-φ^Q) of services leave the server idle, for 1/(λd) on average, and the share of idle servers "
    "is u/(λd + u), which has to be 1 - λ: u = d(1-λ). Exponential service has φ = 1/(1+λd), which gives the bound of "
    "the paper. By Jensen's inequality φ is smallest, and with it Q, for service times that do not vary; and the sum "
    "has Q terms of at least 1, so that Q is at most ⌈1/(d(1-λ))⌉ for every law.",
    source="conjecture; the paper has the bound for exponential service",
    quantity="stationary mass above and at Q, for every law, away from the steps of its bound",
    tolerance_reason="as for the bound of the paper: less than 0.001 of mass above, and at least half of the limit's "
    "mass at the bound",
    controls={
        "exponential": "the bound for exponential service, whatever the law",
        "lower": "the bound less one",
        "higher": "the bound plus one",
    },
    dataset="service",
    figure="fig-service",
)
def bound_of_a_law(data: Data, model: str) -> Iterator[Cell]:
    """Mass above and at the bound at the largest N, for every law."""
    runs = data["service"]
    shift = {"lower": -1, "higher": 1}.get(model, 0)
    places = []
    for place in _places(runs, lambda d, lam, law: far(lam, d, law)):
        lam, d, law = place["λ"], place["d"], place["service"]
        level = queue_bound(lam, d, "exponential" if model == "exponential" else law) + shift
        places.append((place, level, service_fixed_point(lam, d, law).queue_length_pmf.values))
    yield from mass_cells(runs, places) if places else [missing("stationary runs with memory")]
