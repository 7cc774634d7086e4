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

from dchoices import validation
from dchoices.variables import describe

POLICIES = ("sq", "sq-memory")
MAX_STATES = 600_000  # about 2 GB while solving
RESIDUAL = 1e-13  # Σ|πP - π|; the error of π is this over the gap of P, about (1-√λ)²/(N(1+λ))
MAX_ITERATIONS = 500_000

Transition = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # rows, rate, new i, new j


def _probe_sets(N: int, d: int) -> Iterator[tuple[list[int], float]]:
    """Yield each set of servers that d probes with replacement can hit, with its probability."""
    for size in range(1, min(N, d) + 1):
        onto = sum((-1) ** (size - k) * math.comb(size, k) * k**d for k in range(size + 1))
        for chosen in itertools.combinations(range(N), size):
            yield list(chosen), onto / N**d


def _departures(i: np.ndarray, j: np.ndarray) -> Iterator[Transition]:
    for server in range(i.shape[1]):
        rows = np.flatnonzero(i[:, server] > 0)
        after = i[rows].copy()
        after[:, server] -= 1
        yield rows, np.ones(rows.size), after, j[rows]


def _arrivals(i: np.ndarray, j: np.ndarray, d: int, lam: float, memory: bool, buffer: int) -> Iterator[Transition]:
    """Probe, send to a server with the lowest observation (of all with memory, else of the probed), count the job."""
    N = i.shape[1]
    for chosen, probability in _probe_sets(N, d):
        seen = j.copy()
        seen[:, chosen] = i[:, chosen]
        candidates = seen if memory else np.where(np.isin(np.arange(N), chosen), i, buffer + 1)
        lowest = candidates == candidates.min(axis=1, keepdims=True)
        share = lam * N * probability * lowest / lowest.sum(axis=1, keepdims=True)
        for server in range(N):
            rows = np.flatnonzero(share[:, server])
            room = candidates[rows, server] < buffer  # a job beyond the buffer is lost
            queues, observations = i[rows].copy(), seen[rows]
            queues[:, server] += room
            observations[:, server] += room
            yield rows, share[rows, server], queues, observations


def _enumerate(N: int, d: int, lam: float, buffer: int, memory: bool) -> tuple[np.ndarray, sparse.csr_matrix]:
    """Return the codes of the reachable states, int64[S, N] sorted in rows, and the rates between them, S x S."""
    base = buffer + 1
    weights = (base * base) ** np.arange(N)
    index = {0: 0}
    layers, frontier = [np.zeros((1, N), dtype=np.int64)], np.zeros((1, N), dtype=np.int64)
    triples: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    done = 0
    while frontier.size:
        i, j = np.divmod(frontier, base)
        fresh: list[np.ndarray] = []
        for rows, rate, queues, observations in itertools.chain(
            _departures(i, j), _arrivals(i, j, d, lam, memory, buffer)
        ):
            # Without memory the observation plays no part: it is kept at 0 so that states differ by queues alone.
            codes = np.sort(queues * base + (observations if memory else 0), axis=1)
            keys, first, inverse = np.unique(codes @ weights, return_index=True, return_inverse=True)
            for key, place in zip(keys.tolist(), first.tolist(), strict=True):
                if key not in index:
                    index[key] = len(index)
                    fresh.append(codes[place])
            targets = np.array([index[key] for key in keys.tolist()], dtype=np.int64)
            triples.append((rows + done, targets[inverse.ravel()] if keys.size else targets, rate))
        if len(index) > MAX_STATES:
            raise ValueError(f"buffer = {buffer}: more than {MAX_STATES} states at N = {N}, choose a smaller one")
        done += len(frontier)
        frontier = np.array(fresh, dtype=np.int64).reshape(len(fresh), N)
        layers.append(frontier)
    row, column, rate = (np.concatenate(part) for part in zip(*triples, strict=True))
    rates = sparse.csr_matrix((rate, (row, column)), shape=(len(index), len(index)))
    return np.concatenate(layers), rates


def _solve(rates: sparse.csr_matrix) -> np.ndarray:
    """Return the stationary distribution π of a chain with these transition rates: πQ = 0, Σπ = 1.

    Power iteration on the uniformised chain: it keeps π a distribution and cannot break down, where incomplete
    factorisations with GMRES did not converge on these matrices and direct ones fill in.
    """
    out = np.asarray(rates.sum(axis=1)).ravel()
    rate = 1.01 * out.max()  # above the maximum, so that the chain is aperiodic
    step = (rates.T / rate).tocsr()
    stay = 1 - out / rate
    weight = np.full(rates.shape[0], 1 / rates.shape[0])
    for _ in range(MAX_ITERATIONS):
        following = step @ weight + stay * weight
        change = np.abs(following - weight).sum()
        weight = following
        if change < RESIDUAL:
            return weight / weight.sum()
    raise RuntimeError(f"{rates.shape[0]} states: the power iteration stopped at a residual of {change:.1e}")


def exact_stationary(N: int, d: int, lam: float, buffer: int, policy: str = "sq-memory") -> xr.Dataset:
    """Solve the finite chain of N servers for its stationary distribution.

    Parameters
    ----------
    N : int
        Servers, 1 to 5: the number of states grows like buffer^(2N)/N!.
    d : int
        Probes per job, with replacement.
    lam : float
        Load λ in (0, 1).
    buffer : int
        Highest observation (highest queue without memory); a job sent beyond it is lost.
    policy : {"sq-memory", "sq"}
        Dispatching policy.

    Returns
    -------
    xarray.Dataset
        ``occupancy`` (queue_length), ``dispatch_to_idle`` = E[p_1]/λ (as many jobs join idle servers as leave a server
        idle; exact up to truncation), ``mean_queue_length``, ``mean_response_time`` by Little, and ``truncated_mass``,
        the probability that some server is at the buffer.

    Raises
    ------
    ValueError
        If an argument is out of range or there are too many states.
    RuntimeError
        If the power iteration does not settle: λ too close to 1 for so large a buffer.
    """
    N, d = validation.integer("N", N, 1, 5), validation.probes(d)
    lam, buffer = validation.load(lam), validation.integer("buffer", buffer, 1)
    memory = validation.choice("policy", policy, POLICIES) == "sq-memory"
    codes, rates = _enumerate(N, d, lam, buffer, memory)
    weight = _solve(rates)
    queues, observations = np.divmod(codes, buffer + 1)
    occupancy = np.array([(queues == level).mean(axis=1) @ weight for level in range(buffer + 1)])
    mean = float(occupancy @ np.arange(buffer + 1))
    at_buffer = ((observations if memory else queues) == buffer).any(axis=1)
    solved = xr.Dataset(
        {
            "occupancy": ("queue_length", occupancy),
            "dispatch_to_idle": ((), occupancy[1] / lam),
            "mean_queue_length": ((), mean),
            "mean_response_time": ((), mean / lam),
            "truncated_mass": ((), float(weight[at_buffer].sum())),
        },
        coords={"queue_length": np.arange(buffer + 1)},
        attrs={"policy": policy, "N": N, "d": d, "lam": lam, "states": len(codes)},
    )
    return describe(solved)
