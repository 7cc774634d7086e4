"""The finite chain, enumerated and solved: the oracle of the simulations, with which it shares no code.

States are multisets of servers (i jobs, observation j), held as sorted codes i·(buffer+1) + j. Transitions are written
per server from the model's three steps, for all states of a breadth-first layer at once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import xarray as xr
from scipy import sparse

from dchoices import registry, validation
from dchoices.variables import describe

MOST_SERVERS = 5  # the number of states grows like buffer^(2N)/N!
MAX_BUFFER = 10_000  # a layer of states for each job
MAX_STATES = 1_500_000  # 300 thousand take half a GB and a few seconds
# Jobs beyond the buffer are lost, and the mean queue misses a few times the truncated mass: with more than this the
# numbers do not pass for those of the infinite system.
TRUNCATION = 1e-2
RESIDUAL = 1e-13  # Σ|πQ| over the highest rate; the error of π is this over the relative gap, (1-√λ)²/(N(1+λ)) or so
MOST_SWEEPS = 20_000

MEMORY = ("sq-memory", "sq-memory-distinct")
PROBING = ("sq", "sq-distinct", "sq-log", "sq-sqrt", *MEMORY)
POLICIES = ("random", "jsq", "jiq", *PROBING)

Dispatch = tuple[float, np.ndarray, np.ndarray]  # probability, observations int64[S, N], share of each server [S, N]
Transition = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # rows, rate, new i, new j


def _number_of_probes(policy: str, N: int, d: int) -> int:
    if policy == "sq-log":
        return max(1, math.ceil(math.log(N)))
    if policy == "sq-sqrt":
        return next(probes for probes in range(1, N + 1) if probes**2 >= N)
    return d


def _probe_sets(N: int, d: int, distinct: bool) -> Iterator[tuple[list[int], float]]:
    """Yield each set of servers that d probes can hit, with its probability."""
    for size in [d] if distinct else range(1, min(N, d) + 1):
        # With replacement: the sequences of d probes that hit all of a set, by inclusion and exclusion.
        onto = sum((-1) ** (size - k) * math.comb(size, k) * k**d for k in range(size + 1))
        for chosen in itertools.combinations(range(N), size):
            yield list(chosen), 1 / math.comb(N, d) if distinct else onto / N**d


def _evenly(candidates: np.ndarray) -> np.ndarray:
    """Return the share of each server when one of the candidates, bool[S, N], is drawn."""
    return candidates / candidates.sum(axis=1, keepdims=True)


def _dispatches(policy: str, d: int, i: np.ndarray, j: np.ndarray) -> Iterator[Dispatch]:
    """Yield what an arrival can meet: what is then observed of the servers and where the job goes.

    Parameters
    ----------
    policy : str
        One of `POLICIES`.
    d : int
        Probes per job.
    i, j : int64[S, N]
        Jobs and memory of every server, in S states.
    """
    if policy == "random":
        yield 1.0, i, _evenly(i >= 0)
    elif policy == "jsq":
        yield 1.0, i, _evenly(i == i.min(axis=1, keepdims=True))
    elif policy == "jiq":
        someone_idle = (i == 0).any(axis=1, keepdims=True)
        yield 1.0, i, _evenly((i == 0) | ~someone_idle)
    else:
        for chosen, probability in _probe_sets(i.shape[1], d, policy.endswith("distinct")):
            if policy in MEMORY:
                seen = j.copy()
                seen[:, chosen] = i[:, chosen]
                yield probability, seen, _evenly(seen == seen.min(axis=1, keepdims=True))
            else:
                shortest = i == i[:, chosen].min(axis=1, keepdims=True)
                yield probability, i, _evenly(shortest & np.isin(np.arange(i.shape[1]), chosen))


def _departures(i: np.ndarray, j: np.ndarray) -> Iterator[Transition]:
    for server in range(i.shape[1]):
        rows = np.flatnonzero(i[:, server] > 0)
        after = i[rows].copy()
        after[:, server] -= 1
        yield rows, np.ones(rows.size), after, j[rows]


def _arrivals(policy: str, d: int, lam: float, buffer: int, i: np.ndarray, j: np.ndarray) -> Iterator[Transition]:
    N = i.shape[1]
    for probability, seen, share in _dispatches(policy, d, i, j):
        for server in range(N):
            rows = np.flatnonzero(share[:, server])
            room = seen[rows, server] < buffer  # a job beyond the buffer is lost
            queues, observations = i[rows].copy(), seen[rows].copy()
            queues[:, server] += room
            observations[:, server] += room
            yield rows, lam * N * probability * share[rows, server], queues, observations


def _enumerate(
    policy: str, N: int, d: int, lam: float, buffer: int
) -> tuple[np.ndarray, np.ndarray, sparse.csr_matrix]:
    """Return the states that are reached from the empty system, ordered by the number of jobs, and their rates.

    Returns
    -------
    queues, observations : int64[S, N]
        Jobs and memory of every server; the memory of a policy without one is all 0.
    rates : float64[S, S], sparse
        From row to column.

    Raises
    ------
    ValueError
        If there are more than `MAX_STATES` states.
    """
    base = buffer + 1
    of_one = base * (base + 1) // 2 if policy in MEMORY else base
    # Of the multisets of N such servers two thirds or more are reached.
    if (states := math.comb(of_one + N - 1, N)) > 2 * MAX_STATES or base ** (2 * N) > 2**63:
        raise ValueError(f"buffer = {buffer}: about {states:.1e} states at N = {N}, must be at most {MAX_STATES:.1e}")
    weights = (base * base) ** np.arange(N)
    known = frontier = np.zeros(1, dtype=np.int64)  # the empty system
    triples: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    while frontier.size:
        i, j = np.divmod(frontier[:, None] // weights % (base * base), base)
        layer = []
        for rows, rate, queues, observations in itertools.chain(
            _departures(i, j), _arrivals(policy, d, lam, buffer, i, j)
        ):
            codes = np.sort(queues * base + (observations if policy in MEMORY else 0), axis=1)
            layer.append((frontier[rows], codes @ weights, rate))
        triples += layer
        reached = np.sort(np.concatenate([target for _, target, _ in layer]))
        # By hand: numpy's unique hashes, which takes seconds on codes as regular as these.
        reached = reached[np.append(True, reached[1:] > reached[:-1])]
        frontier = np.setdiff1d(reached, known, assume_unique=True)
        known = np.sort(np.concatenate([known, frontier]), kind="stable")
        if known.size > MAX_STATES:
            raise ValueError(f"buffer = {buffer}: more than {MAX_STATES} states at N = {N}, must be smaller")
    source, target, rate = (np.concatenate(part) for part in zip(*triples, strict=True))
    queues, observations = np.divmod(known[:, None] // weights % (base * base), base)
    order = np.argsort(queues.sum(axis=1), kind="stable")
    place = np.argsort(order)
    row, column = place[np.searchsorted(known, source)], place[np.searchsorted(known, target)]
    return queues[order], observations[order], sparse.csr_matrix((rate, (row, column)), shape=(known.size,) * 2)


def _solve(rates: sparse.csr_matrix, jobs: np.ndarray) -> np.ndarray:
    """Return the stationary distribution π of the chain: πQ = 0, Σπ = 1.

    Gauss-Seidel sweeps over the levels of equally many jobs, up and down; a level depends on its neighbours alone, but
    for jobs lost at the buffer. After a sweep every level is scaled so that flows balance between the levels: the
    number of jobs is what relaxes slowest, and alone makes plain sweeps or powers slow (at N = 3, buffer 10, λ = 0.7
    a power iteration took 0.75 s, this takes 0.11 s). Incomplete factorisations with GMRES did not converge on these
    matrices, and direct ones fill in.

    Parameters
    ----------
    rates : float64[S, S], sparse
        Transition rates, from row to column.
    jobs : int64[S]
        Number of jobs in each state, increasing; a transition changes it by one at most.
    """
    rates = rates - sparse.diags_array(rates.diagonal())
    into, out = rates.T.tocsr(), np.asarray(rates.sum(axis=1)).ravel()
    begin = np.searchsorted(jobs, np.arange(jobs[-1] + 2))
    levels = [slice(first, last) for first, last in itertools.pairwise(begin)]
    blocks = [into[level] for level in levels]
    rise = _flow(rates, jobs, 1)
    fall = _flow(rates, jobs, -1)
    weight = np.full(jobs.size, 1 / jobs.size)
    upwards = list(range(len(levels)))
    for _ in range(MOST_SWEEPS):
        for level in upwards + upwards[::-1]:
            weight[levels[level]] = blocks[level] @ weight / out[levels[level]]
        up, down = (np.bincount(jobs, weight * flow) for flow in (rise, fall))
        weight *= np.concatenate([[1.0], np.cumprod(up[:-1] / down[1:])])[jobs]
        weight /= weight.sum()
        residual = np.abs(into @ weight - out * weight).sum() / out.max()
        if residual < RESIDUAL:
            return weight
    raise RuntimeError(f"{jobs.size} states: the solution stopped at a residual of {residual:.1e}")


def _flow(rates: sparse.csr_matrix, jobs: np.ndarray, step: int) -> np.ndarray:
    """Return the rate out of each state to those with `step` jobs more."""
    entries = rates.tocoo()
    wanted = jobs[entries.col] == jobs[entries.row] + step
    return np.bincount(entries.row[wanted], entries.data[wanted], minlength=jobs.size)


def _to_observation_zero(policy: str, d: int, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Return, for each state, the probability that an arrival is sent to a server observed at 0."""
    return sum(
        probability * (share * (seen == 0)).sum(axis=1) for probability, seen, share in _dispatches(policy, d, i, j)
    )


def _checked(N: int, d: int, policy: str) -> tuple[int, str]:
    """Return the number of probes and the name of a policy that can be enumerated.

    Raises
    ------
    ValueError
        If it is no built-in policy, or d does not fit it.
    """
    known, d = registry.get(policy), validation.integer("d", d, 0)
    if known.name not in POLICIES:
        raise ValueError(f"policy = {policy!r}: registered by a program, must be built in to be solved exactly")
    (d,) = registry.numbers_of_probes([known], [N], d)
    return _number_of_probes(known.name, N, d), known.name


def exact_stationary(
    N: int, d: int, lam: float, buffer: int, policy: str = "sq-memory", tolerance: float = TRUNCATION
) -> xr.Dataset:
    """Solve the finite chain of N servers for its stationary distribution.

    Parameters
    ----------
    N : int
        Servers, 1 to 5: the number of states grows like buffer^(2N)/N! with memory, buffer^N/N! without.
    d : int
        Probes per job; 0 for a policy without a d.
    lam : float
        Load λ in (0, 1).
    buffer : int
        Highest observation (highest queue without memory), at most 10^4; a job sent beyond it is lost.
    policy : str
        One of the built-in `policies`.
    tolerance : float
        Truncated mass that is accepted.

    Returns
    -------
    xarray.Dataset
        ``occupancy`` (queue_length), ``dispatch_to_idle`` = E[p_1]/λ (as many jobs join idle servers as leave a server
        idle; exact up to truncation), ``dispatch_to_observation_zero`` (without memory what is observed is the truth),
        ``mean_queue_length``, ``mean_response_time`` by Little, and ``truncated_mass``, the probability that some
        server is at the buffer.

    Raises
    ------
    ValueError
        If an argument is out of range, there are too many states, or the buffer is too small for the tail that is
        cut off.
    RuntimeError
        If the sweeps do not settle.
    """
    N, lam = validation.integer("N", N, 1, MOST_SERVERS), validation.load(lam)
    buffer = validation.integer("buffer", buffer, 1, MAX_BUFFER)
    tolerance = validation.positive("tolerance", tolerance)
    probes, policy = _checked(N, d, policy)
    i, j, rates = _enumerate(policy, N, probes, lam, buffer)
    weight = _solve(rates, i.sum(axis=1))
    truncated = float(weight[((j if policy in MEMORY else i) == buffer).any(axis=1)].sum())
    if truncated > tolerance:
        raise ValueError(
            f"buffer = {buffer}: a server is there with probability {truncated:.1e}, must be at most "
            f"tolerance = {tolerance:g}; a larger buffer or a lower lam helps"
        )
    occupancy = np.array([(i == level).mean(axis=1) @ weight for level in range(buffer + 1)])
    mean = float(occupancy @ np.arange(buffer + 1))
    solved = xr.Dataset(
        {
            "occupancy": ("queue_length", occupancy),
            "dispatch_to_idle": ((), occupancy[1] / lam),
            "dispatch_to_observation_zero": ((), float(weight @ _to_observation_zero(policy, probes, i, j))),
            "mean_queue_length": ((), mean),
            "mean_response_time": ((), mean / lam),
            "truncated_mass": ((), truncated),
        },
        coords={"queue_length": np.arange(buffer + 1)},
        attrs={"policy": policy, "N": N, "d": int(d), "lam": lam, "states": weight.size},
    )
    return describe(solved)
