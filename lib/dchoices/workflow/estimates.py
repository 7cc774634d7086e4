"""What a study costs, estimated from its parameters before anything runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dchoices.capacity import CALL

CASES = ("d", "starts", "perturbation", "policies")  # what N and λ are run for, each
PER_SERVER = 25  # events of the lumped chain that cost as much time as an arrival run server by server
# Relaxation time in heavy traffic, in units of 1/(1-λ), for estimates that need no linear algebra: that of SQ(2), the
# longest but for M/M/1. With memory it is less, if λ is not next to a step of the bound.
RELAXATION = 1.5
SAMPLES = 2  # of a stationary run in a mean service time
BATCH = 1000  # replicates of the concentration study that are held at once
SETTLING = 200  # times of a path of the convergence study, at least
HEAVIEST = 1e-5  # 1-λ at the end of the dense grids of loads
NOTEBOOK = 4.3e8  # bytes of memory of a notebook that holds little: three quarters its kernel, the rest what runs it
STATE, STATE_OF_RUN = 100, 500  # bytes for each state that it solves or holds, and for each of a simulation
START_UP = 5.0  # s of CPU time until a notebook begins to work: 3 to 7 in the study of the report
# CPU time for a state that a notebook solves, in s; those of the study of the report, which simulates in the others.
SOLVING = {"fluid": 1.2e-3, "portrait": 6e-5, "fixed_points": 1.3e-3, "bound_grid": 3.3e-5, "convergence": 1.3e-4}


def estimated_events(parameters: Mapping[str, Any]) -> float:
    """Return what a notebook costs, in the expected number of uniformised events, at rate N(1+λ), of lumped chains.

    Service that is not exponential is run server by server, where arrivals count for what they cost: this is no count.
    """
    if "regimes" in parameters:  # each of its systems gets as many
        return float(sum(given["events"] * _systems(given) for given in parameters["regimes"].values()))
    if "N" not in parameters:
        return 0.0
    sizes = parameters["N"]
    per_replicate = [
        size * sum(_rate(parameters, lam) * _duration(parameters, k, lam) for lam in parameters["lam"])
        for k, size in enumerate(sizes)
    ]
    numbers = _replicates(parameters)
    return float(_cells(parameters) * sum(x * number for x, number in zip(per_replicate, numbers, strict=True)))


def estimated_calls(parameters: Mapping[str, Any]) -> float:
    """Return how often a notebook starts a replicate or samples one; each costs about `capacity.CALL` events."""
    if "regimes" in parameters:
        return float(parameters["replicates"] * sum(map(_systems, parameters["regimes"].values())))
    if "N" not in parameters:
        return 0.0
    laws = len(parameters.get("laws", [0]))
    samples = [
        sum(1 + _samples(parameters, _duration(parameters, k, lam)) for lam in parameters["lam"])
        for k in range(len(parameters["N"]))
    ]
    return float(laws * _cells(parameters) * sum(x * n for x, n in zip(samples, _replicates(parameters), strict=True)))


def estimated_seconds(study: str, parameters: Mapping[str, Any], pace: float) -> float:
    """Return the CPU time of a notebook, in seconds.

    Parameters
    ----------
    study : str
        Its name.
    parameters : mapping
        What it gets.
    pace : float
        CPU time of an event of the lumped chain where N is large, in seconds.
    """
    simulating = pace * (estimated_events(parameters) + CALL * estimated_calls(parameters))
    return START_UP + simulating + SOLVING.get(study, 0.0) * estimated_points(study, parameters)


def estimated_memory(study: str, parameters: Mapping[str, Any]) -> float:
    """Return the memory of a notebook, in bytes."""
    return NOTEBOOK + (STATE_OF_RUN if "N" in parameters else STATE) * estimated_points(study, parameters)


def estimated_points(study: str, parameters: Mapping[str, Any]) -> float:
    """Return how many states a notebook solves or holds: of fluid paths at their times, of fixed points, of replicates.

    Of stationary runs it holds the means of one cell.
    """
    given = {key: len(value) if isinstance(value, list) else value for key, value in parameters.items()}
    if study == "fluid":
        return float(given["d"] * given["lam"] * (1 + given["t_end"] / given["t_step"]))
    if study == "portrait":  # each start with a fresh memory and with a stale one
        return float(2 * given["starts"] * given["d"] * given["lam"] * given["times"])
    if study == "fixed_points":
        return float(given["d"] * (given["lam_points"] + sum(map(_steps, parameters["d"]))))
    if study == "bound_grid":
        probes = range(1, given["most_probes"] + 1)
        return float(len(probes) * (given["lam_points"] + 3 * sum(map(_steps, probes))))
    if study == "convergence":
        loads = given["lam"] + given["d"] * given["levels"] * (1 + 2 * given["closeness"])
        return float(given["starts"] * given["d"] * loads * SETTLING)
    if study == "fluctuations":
        return float(given["replicates"] * SAMPLES * given["t_end"])
    if "t_step" in given:
        held = sum(min(number, BATCH) if study == "concentration" else number for number in _replicates(parameters))
        return float(_cells(parameters) * given["lam"] * held * (1 + given["t_end"] / given["t_step"]))
    return float(max(_replicates(parameters)))


def _steps(d: int) -> float:
    """Return about how many steps of the bound the dense grid of loads passes."""
    return 1 - math.log(HEAVIEST) / math.log1p(d)


def _systems(regime: Mapping[str, Any]) -> int:
    return math.prod(len(regime.get(axis, [0])) for axis in ("d", "N", "offsets"))


def _cells(parameters: Mapping[str, Any]) -> int:
    return math.prod(_cases(parameters[axis]) for axis in CASES if axis in parameters)


def _cases(values: Any) -> int:
    """Return how many values there are, of a list or of a mapping to lists: of policies, each with its numbers of d."""
    if isinstance(values, Mapping):
        return sum(len(value) if isinstance(value, list) else 1 for value in values.values())
    return len(values)


def _replicates(parameters: Mapping[str, Any]) -> list[int]:
    """Return the number of replicates for each N."""
    given = parameters["replicates"]
    return given if isinstance(given, list) else [given] * len(parameters.get("N", [0]))


def _rate(parameters: Mapping[str, Any], lam: float) -> float:
    """Return the events per server and time, over all service laws where there are several."""
    laws = parameters.get("laws", ["exponential"])
    return sum(1 + lam if law == "exponential" else PER_SERVER * lam for law in laws)


def _samples(parameters: Mapping[str, Any], duration: float) -> float:
    """Return how often one replicate is looked at."""
    if "t_step" in parameters:
        return float(parameters["t_end"] / parameters["t_step"])
    return 0.0 if "t_end" in parameters else SAMPLES * duration  # the kernels take the samples of variances themselves


def _duration(parameters: Mapping[str, Any], k: int, lam: float) -> float:
    """Return the simulated time of one replicate at the k-th N; that of a stationary run grows with its relaxation."""
    if "t_end" in parameters:
        return float(parameters["t_end"])
    spans = [parameters[name] for name in ("warm_up", "horizon")]
    if "shortest" not in parameters:  # in relaxation times
        small_system = ((1 + math.sqrt(lam)) / (1 - lam)) ** 2 / parameters["N"][k]  # 1/(N (1-√λ)²)
        return float(sum(spans) * max(RELAXATION / (1 - lam), small_system))
    units = [span[k] if isinstance(span, list) else span for span in spans]
    return float(sum(max(parameters["shortest"], unit / (1 - lam)) for unit in units))
