"""Simulation: trajectories on a time grid and stationary estimates.

Both are functions of their arguments and the seed alone. The stream of a replicate is keyed by what the replicate
is, so it does not change with the order, the cores, or what else is in the list.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from dchoices import per_server, registry, starts, statistics, validation
from dchoices.lumped import SPARE_LEVELS, LumpedChain
from dchoices.per_server import PerServerSystem
from dchoices.progress import EventBar, progress_bar
from dchoices.registry import Policy
from dchoices.service import ServiceLaw, as_law
from dchoices.theory.closed_forms import queue_bound
from dchoices.variables import describe
from dchoices.wording import show

SAMPLE_STEP = 0.5  # mean service times between two samples of a stationary run; occupancies hardly move in less
FEWEST_JOBS = 100  # expected in a measured window; with fewer, shares of jobs mean nothing
OF_A_RUN = 100  # numbers that a replicate returns, at least
RESPONSE_TIMES = np.arange(0.0, 20.5, 0.5)  # default grid of the response-time tail, in mean service times


def stream(
    seed: int, policy: str, N: int, d: int, lam: float, start: Any, replicate: int, *labels: str
) -> np.random.SeedSequence:
    """Return the seed of one replicate, keyed by all that identifies it (`labels`: service and speeds, per server)."""
    key = "|".join([f"{seed}|{policy}|{N}|{d}|{lam.hex()}|{starts.label(start)}|{replicate}", *labels])
    return np.random.SeedSequence(int.from_bytes(hashlib.sha256(key.encode()).digest()[:16], "big"))


Engine = LumpedChain | PerServerSystem


def stack(values: Sequence[np.ndarray]) -> np.ndarray:
    """Stack arrays that differ at most in the length of their last axis, padding it with zeros."""
    arrays = [np.asarray(value) for value in values]
    if arrays[0].ndim == 0:
        return np.stack(arrays)
    longest = max(array.shape[-1] for array in arrays)
    for k, array in enumerate(arrays):
        if array.shape[-1] < longest:
            arrays[k] = np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, longest - array.shape[-1])])
    return np.stack(arrays)


def _trim(*arrays: np.ndarray) -> list[np.ndarray]:
    """Cut the common last axis after the last level that any of the arrays uses."""
    used = max(np.flatnonzero(array.any(axis=tuple(range(array.ndim - 1)))).max(initial=0) for array in arrays)
    return [array[..., : used + 1] for array in arrays]


def _axes(policies: Sequence[Policy], N: Any, d: Any, lam: Any) -> tuple[list[int], list[int], list[float]]:
    """Return the checked lists of N, d and λ; policies without a d stand at d = 0."""
    sizes = validation.several("N", N, validation.servers)
    return sizes, registry.numbers_of_probes(policies, sizes, d), validation.several("lam", lam, validation.load)


def _coordinates(**values: Any) -> dict[str, tuple[str, Any]]:
    return {name: (name, value) for name, value in values.items()}


def _trajectory(chain: LumpedChain, steps: np.ndarray, progress: EventBar) -> tuple[np.ndarray, ...]:
    """Run one replicate; return servers and jobs sent, each by queue and by observation, and the longest queue so far.

    Fractions of servers and counts of jobs on (t, queue_length), the longest queue on (t).
    """
    rows, longest = [], int(np.flatnonzero(chain.by_queue).max())
    for step in steps:
        chain.reset_counters()
        progress.update(chain.advance(step))
        sent = chain.sent_by_queue
        longest = max(longest, int(np.flatnonzero(sent).max(initial=-1)) + 1)
        servers = chain.by_queue / chain.N, chain.by_observation / chain.N
        rows.append((*servers, sent, chain.sent_by_observation, longest))
    return tuple(stack(column) for column in zip(*rows, strict=True))


def simulate(
    policy: str,
    N: int | Sequence[int],
    d: int | Sequence[int],
    lam: float | Sequence[float],
    t: Sequence[float] | np.ndarray,
    replicates: int = 10,
    seed: int = 0,
    start: Any = "empty",
) -> xr.Dataset:
    """Simulate trajectories of the N-server system on a time grid.

    Parameters
    ----------
    policy : str
        One of `policies`.
    N, d, lam : scalar or list
        Servers, probes per job, load; the dataset is their product.
    t : float64[T]
        Times in mean service times, >= 0 and increasing.
    replicates : int
        Independent replicates.
    seed : int
        Seed >= 0; the stream of a replicate is keyed by all that identifies it.
    start : str or array_like
        "empty", "fixed-point", "overloaded-m", "stale-m", "random-m", or a matrix X[i, j] of fractions of servers;
        rounded to counts.

    Returns
    -------
    xarray.Dataset
        ``occupancy`` (replicate, N, d, λ, t, queue_length), and of the same dimensions ``observation_occupancy``, the
        fraction of servers by observation, ``sent_by_queue`` and ``sent_by_observation``: jobs sent since the time
        before, by the true queue and by the observation they found; ``max_queue`` (replicate, N, d, λ, t), the longest
        queue since the start. Without memory, what is observed is the truth.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    chosen = registry.get(policy)
    sizes, ds, loads = _axes([chosen], N, d, lam)
    grid = validation.time_grid(t)
    replicates = validation.replicates(replicates, 1)
    seed = validation.seed(seed)
    steps = np.diff(grid, prepend=0.0)
    expected = grid[-1] * replicates * sum(n * (1 + x) for n in sizes for x in loads) * len(ds)
    paths = replicates * len(sizes) * len(ds) * len(loads)
    validation.events("N, t and replicates", (max(sizes), float(grid[-1]), replicates), expected, paths * grid.size)
    validation.numbers("replicates and t", 4 * paths * grid.size * (starts.levels(start) + SPARE_LEVELS))
    runs = []
    with progress_bar(expected, f"simulate {policy}") as progress:
        for replicate, servers, probes, load in itertools.product(range(replicates), sizes, ds, loads):
            fractions = starts.fractions(start, chosen, load, chosen.probes(servers, probes))
            key = stream(seed, policy, servers, probes, load, start, replicate)
            runs.append(_trajectory(LumpedChain(chosen, servers, probes, load, fractions, key), steps, progress))
    shape = (replicates, len(sizes), len(ds), len(loads), grid.size, -1)
    *levels, longest = (stack(column) for column in zip(*runs, strict=True))
    occupancy, observed, by_queue, by_observation = _trim(*(array.reshape(shape) for array in levels))
    dims = ("replicate", "N", "d", "λ", "t", "queue_length")
    return describe(
        xr.Dataset(
            {
                "occupancy": (dims, occupancy),
                "observation_occupancy": (dims, observed),
                "sent_by_queue": (dims, by_queue),
                "sent_by_observation": (dims, by_observation),
                "max_queue": (dims[:-1], longest.reshape(shape[:-1])),
            },
            coords=_coordinates(
                replicate=np.arange(replicates),
                N=sizes,
                d=ds,
                λ=loads,
                t=grid,
                queue_length=np.arange(occupancy.shape[-1]),
            ),
            attrs={"policy": policy, "seed": seed, "start": starts.label(start)},
        )
    )


def _measure(chain: Engine, samples: int, bound: int, response_time: np.ndarray, progress: EventBar) -> dict[str, Any]:
    """Run one replicate over its measured window and return its time and job averages."""
    chain.reset_counters()
    highest = int(np.flatnonzero(chain.by_queue).max())
    halves = np.zeros((2, 2, len(chain.by_queue)), dtype=np.int64)  # half, queue or observation, level
    for sample in range(samples):
        progress.update(chain.advance(SAMPLE_STEP))
        servers = np.stack([chain.by_queue, chain.by_observation])
        if servers.shape[1] > halves.shape[2]:
            halves = np.pad(halves, [(0, 0), (0, 0), (0, servers.shape[1] - halves.shape[2])])
        halves[2 * sample // samples] += servers
    means = halves / halves.sum(axis=2, keepdims=True)
    occupancy, observed = means.mean(axis=0)
    sent, seen = chain.sent_by_queue, chain.sent_by_observation
    mean_response_time, response_time_tail = chain.response(response_time)
    level = np.arange(len(occupancy))
    return {
        "occupancy": occupancy,
        "occupancy_tail": occupancy[::-1].cumsum()[::-1],
        "observation_occupancy": observed,
        "dispatch_by_queue": sent / sent.sum(),
        "dispatch_by_observation": seen / seen.sum(),
        "dispatch_to_idle": sent[0] / sent.sum(),
        "dispatch_to_observation_zero": seen[0] / seen.sum(),
        "mean_queue_length": occupancy @ level,
        "mean_response_time": mean_response_time,
        "response_time_tail": response_time_tail,
        "mass_above_bound": occupancy[bound + 1 :].sum(),
        "max_queue": max(highest, int(np.flatnonzero(sent).max()) + 1),
        "halves": means[:, 0] @ level,
    }


def _observation_balance(run: dict[str, Any], probed: float) -> np.ndarray:
    """Return R_j - R_{j-1} - probed · (p_j - y_j), float64[L], which has mean 0 in the stationary system with memory.

    The number of servers observed at j changes with arrivals alone, by `probed` (p_j - y_j) on average as the probed
    servers are seen anew, and by R_{j-1} - R_j as the job is sent. The three are correlated: an interval for what is
    left needs it from every replicate. Without memory y_j = p_j, and nothing balances R_j - R_{j-1}.

    Parameters
    ----------
    run : dict
        From `_measure`.
    probed : float
        Expected number of different servers among the probes of a job: d as N grows.
    """
    steps = np.diff(run["dispatch_by_observation"], prepend=0.0)
    return steps - probed * (run["occupancy"] - run["observation_occupancy"])


BY_LEVEL = (
    "occupancy",
    "occupancy_tail",
    "observation_occupancy",
    "observation_balance",
    "dispatch_by_queue",
    "dispatch_by_observation",
)
ESTIMATES = (
    *BY_LEVEL,
    "dispatch_to_idle",
    "dispatch_to_observation_zero",
    "mean_queue_length",
    "mean_response_time",
    "response_time_tail",
    "mass_above_bound",
    "messages_per_job",
)


def _summarise(runs: list[dict[str, Any]], warm_up: float, lam: float, controlled: bool) -> dict[str, Any]:
    """Return means and 95 % half-widths over replicates, and the verdict on the warm-up."""
    summary: dict[str, Any] = {}
    if controlled:
        response, idle = np.array([(run["mean_response_time"], run["occupancy"][0]) for run in runs]).T
        name = "controlled_response_time"
        summary[name], summary[f"{name}_ci95"] = statistics.controlled(response, idle, 1 - lam)
    for name in ESTIMATES:
        samples = stack([run[name] for run in runs])
        summary[name] = samples.mean(axis=0)
        summary[f"{name}_ci95"] = statistics.half_width(samples)
    halves = np.array([run["halves"] for run in runs])
    summary["warm_up_z"] = statistics.halves_statistic(halves[:, 0], halves[:, 1])
    summary["warm_up_ok"] = np.int8(statistics.warm_up_is_long_enough(summary["warm_up_z"], len(runs)))
    summary["warm_up"] = warm_up
    summary["max_queue"] = max(run["max_queue"] for run in runs)
    return summary


def stationary(
    policy: str | Sequence[str],
    N: int | Sequence[int],
    d: int | Sequence[int],
    lam: float | Sequence[float],
    warm_up: float | Sequence[float] = 50.0,
    horizon: float | Sequence[float] = 100.0,
    replicates: int = 12,
    seed: int = 0,
    response_time: Sequence[float] | np.ndarray = RESPONSE_TIMES,
    service: str | ServiceLaw = "exponential",
    speeds: Any = None,
) -> xr.Dataset:
    """Estimate stationary quantities of the N-server system.

    Every replicate starts at the fluid fixed point of its policy, runs `warm_up` unrecorded, then is sampled every
    `SAMPLE_STEP` over `horizon`. Intervals are Student's over replicates. The warm-up is checked by comparing the
    mean queue length in the two halves of the window.

    Exponential service at one speed runs in the lumped chain, whose cost does not grow with N; all else server by
    server, from the same start, with fresh service times for the jobs that are there. The more service times vary, the
    longer the warm-up has to be, and where they have no third moment (Pareto up to shape 3) response times may have no
    variance, and no interval means anything.

    Parameters
    ----------
    policy : str or list of str
        Names from `policies`.
    N, d, lam : scalar or list
        Servers, probes per job, load; the dataset is the product of the lists.
    warm_up, horizon : float or float64[λ]
        Mean service times, one for all loads or one for each; > 0 (the warm-up may be 0).
    replicates : int
        Independent replicates, >= 2.
    seed : int
        Seed >= 0.
    response_time : float64[X]
        Grid of the response-time tail, in mean service times.
    service : str or ServiceLaw
        "exponential", "deterministic", or a law from `service_law`; all have mean 1.
    speeds : None, float64[N] or mapping
        Work that each server does per mean service time, > 0, not scaled; or fractions of servers by speed, as
        {0.5: 0.2, 1.125: 0.8}. Which server has which speed plays no part. Given speeds, even if all are 1, run server
        by server.

    Returns
    -------
    xarray.Dataset
        On (policy, N, d, λ): time-averaged ``occupancy``, ``occupancy_tail`` and ``observation_occupancy``
        (queue_length), the shares of jobs ``dispatch_by_queue`` and ``dispatch_by_observation`` (queue_length),
        ``observation_balance`` (queue_length; how far the latter are from what a steady state with memory asks of
        them), ``dispatch_to_idle``, ``dispatch_to_observation_zero``, ``mean_queue_length``, ``mean_response_time``,
        ``response_time_tail`` (response_time; in the lumped chain a job that joins i others waits an Erlang(i+1) time,
        per server it is measured), ``mass_above_bound``, ``messages_per_job``, each with its ``…_ci95`` half-width,
        ``max_queue``, the measured ``horizon`` and the checked warm-up (``warm_up``, ``warm_up_z``, ``warm_up_ok``).
        From three replicates on, without `speeds`, also ``controlled_response_time`` with its interval: in heavy
        traffic the mean response time goes with the share of busy servers, whose mean is λ, and is known the better for
        it.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    law = as_law(service)
    names = validation.several("policy", policy, lambda value, name: registry.get(value).name)
    chosen = [registry.get(name) for name in names]
    sizes, ds, loads = _axes(chosen, N, d, lam)
    warm_ups = _per_load("warm_up", warm_up, loads, zero=True)
    # Two equal halves, for the check of the warm-up.
    samples = [2 * max(1, round(time / SAMPLE_STEP / 2)) for time in _per_load("horizon", horizon, loads)]
    replicates = validation.replicates(replicates, 2)
    seed = validation.seed(seed)
    grid = validation.time_grid(response_time, "response_time")
    by_size = _speeds(chosen, sizes, ds, loads, law, speeds)
    for load, count in zip(loads, samples, strict=True):
        if (jobs := min(sizes) * load * count * SAMPLE_STEP) < FEWEST_JOBS:
            raise ValueError(
                f"horizon = {count * SAMPLE_STEP:g}: about {jobs:.0f} jobs arrive at N = {min(sizes)}, λ = {load:g}, "
                f"must be at least {FEWEST_JOBS}"
            )
    # Events per server and time: uniformised in the lumped chain, arrivals alone per server.
    rates = [x if by_size else 1 + x for x in loads]
    time = sum(rate * (w + n * SAMPLE_STEP) for rate, w, n in zip(rates, warm_ups, samples, strict=True))
    systems = replicates * len(names) * len(ds)
    expected = time * systems * sum(sizes)
    times = (max(sizes), max(warm_ups), max(samples) * SAMPLE_STEP, replicates)
    validation.events("N, warm_up, horizon and replicates", times, expected, systems * len(sizes) * sum(samples))
    held = replicates * (OF_A_RUN + grid.size) + systems // replicates * len(sizes) * len(loads) * 2 * grid.size
    validation.numbers("replicates and response_time", held)
    # Servers that work at one speed are busy for a share λ of the time, whatever the policy and the law of service.
    controlled = speeds is None and replicates >= 3
    cells = []
    with progress_bar(expected, "stationary") as progress:
        for one, servers, probes, (c, load) in itertools.product(chosen, sizes, ds, enumerate(loads)):
            bound = queue_bound(load, probes) if probes else 1
            runs = []
            for replicate in range(replicates):
                chain = _engine(one, servers, probes, load, seed, replicate, law, by_size.get(servers), grid)
                progress.update(chain.advance(warm_ups[c]))
                runs.append(_measure(chain, samples[c], bound, grid, progress))
                probed = one.servers_probed(servers, probes)
                runs[-1]["observation_balance"] = _observation_balance(runs[-1], probed)
                runs[-1]["messages_per_job"] = one.messages_per_job(
                    servers, one.probes(servers, probes), runs[-1]["dispatch_to_idle"]
                )
            cells.append(_summarise(runs, warm_ups[c], load, controlled))
    shape = (len(names), len(sizes), len(ds), len(loads))
    stacked = {variable: stack([cell[variable] for cell in cells]) for variable in cells[0]}
    arrays = {variable: array.reshape(*shape, *array.shape[1:]) for variable, array in stacked.items()}
    arrays["horizon"] = np.broadcast_to(np.array(samples) * SAMPLE_STEP, shape)
    return _stationary_dataset(arrays, names, sizes, ds, loads, grid).assign_attrs(
        seed=seed,
        replicates=replicates,
        service=law.label,
        speeds="; ".join(per_server.speeds_label(array) for array in by_size.values()) if by_size else "all at 1.0",
    )


def _speeds(
    policies: Sequence[Policy], sizes: list[int], ds: list[int], loads: list[float], law: ServiceLaw, speeds: Any
) -> dict[int, np.ndarray]:
    """Return the checked speeds of the servers by N; none if the lumped chain does: exponential service at one speed.

    Raises
    ------
    ValueError
        If they are no speeds, N is too large to run server by server, or a policy cannot keep up with a load.
    """
    if law.name == "exponential" and speeds is None:
        return {}
    if max(sizes) > per_server.MAX_SERVERS:
        raise ValueError(
            f"N = {max(sizes)}: must be at most {per_server.MAX_SERVERS} where the service is not exponential "
            "or speeds are given, which is run server by server"
        )
    by_size = {N: per_server.server_speeds(speeds, N) for N in sizes}
    for policy, N, d in itertools.product(policies, sizes, ds):
        if max(loads) >= (highest := per_server.highest_load(policy, N, d, by_size[N])):
            raise ValueError(
                f"lam = {max(loads)!r}: must be less than {highest:.6g}, what servers of these speeds can do "
                f"under policy {policy.name!r} at N = {N}, d = {d}"
            )
    return by_size


def _engine(
    policy: Policy,
    N: int,
    d: int,
    lam: float,
    seed: int,
    replicate: int,
    law: ServiceLaw,
    speeds: np.ndarray | None,
    response_time: np.ndarray,
) -> Engine:
    """Return the system of one replicate at its fluid fixed point: lumped without speeds, else server by server."""
    start = starts.fractions("fixed-point", policy, lam, policy.probes(N, d))
    identity = (seed, policy.name, N, d, lam, "fixed-point", replicate)
    if speeds is None:
        return LumpedChain(policy, N, d, lam, start, stream(*identity))
    key = stream(*identity, law.label, per_server.speeds_label(speeds))
    return PerServerSystem(policy, N, d, lam, start, key, law, speeds, response_time)


def _per_load(name: str, value: Any, loads: list[float], zero: bool = False) -> list[float]:
    """Return one time for each load, from one for all or a list."""
    one = not isinstance(value, list | tuple | np.ndarray) or getattr(value, "ndim", 1) == 0
    if not one and len(value) != len(loads):
        raise ValueError(
            f"{name} = {show(value)}: holds {len(value)} times, must be one, or one for each of the {len(loads)} loads"
        )
    times = [value] * len(loads) if one else list(value)
    return [validation.positive(name, time, zero) for time in times]


def _stationary_dataset(
    arrays: dict[str, np.ndarray],
    names: list[str],
    sizes: list[int],
    ds: list[int],
    loads: list[float],
    grid: np.ndarray,
) -> xr.Dataset:
    by_level = [f"{name}{end}" for name in BY_LEVEL for end in ("", "_ci95")]
    arrays |= dict(zip(by_level, _trim(*(arrays[name] for name in by_level)), strict=True))
    cell = ("policy", "N", "d", "λ")
    last: dict[str, tuple[str, ...]] = dict.fromkeys(BY_LEVEL, ("queue_length",))
    last["response_time_tail"] = ("response_time",)
    return describe(
        xr.Dataset(
            {name: (cell + last.get(name.removesuffix("_ci95"), ()), array) for name, array in arrays.items()},
            coords=_coordinates(
                policy=names,
                N=sizes,
                d=ds,
                λ=loads,
                queue_length=np.arange(arrays["occupancy"].shape[-1]),
                response_time=grid,
            ),
        )
    )
