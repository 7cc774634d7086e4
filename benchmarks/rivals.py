"""What the kernels are measured against: a server-by-server loop in numba, SimPy, Ciw; for fluid paths, LSODA."""

from __future__ import annotations

import random
import time

import numpy as np
from dchoices.kernels.jit import kernel
from dchoices.kernels.sfc64 import next_word, unit
from scipy.integrate import solve_ivp

MOST_CALLS = 200_000  # of the smoothed drift; LSODA can crawl where a switch is sharp
MOST_JOBS = 64  # levels of the per-server loops; the cases measured stay far below


@kernel
def per_server(d, lam, events, queue, rng):
    """Run SQ(d) without memory, one queue length for every server, for so many uniformised events."""
    a, b, c, counter = rng
    servers = queue.size
    for _ in range(events):
        word, a, b, c, counter = next_word(a, b, c, counter)
        position = unit(word) * servers * (1.0 + lam)
        if position < servers:
            queue[int(position)] -= queue[int(position)] > 0
            continue
        shortest = int((position - servers) / lam)
        for _ in range(d - 1):
            word, a, b, c, counter = next_word(a, b, c, counter)
            server = int(unit(word) * servers)
            if queue[server] < queue[shortest]:
                shortest = server
        queue[shortest] += 1
    rng[0], rng[1], rng[2], rng[3] = a, b, c, counter


@kernel
def _move(server, old, new, members, place, size):
    """Move a server from one observation to another: the last member of the old list takes its place."""
    size[old] -= 1
    last = members[old, size[old]]
    members[old, place[server]] = last
    place[last] = place[server]
    members[new, size[new]] = server
    place[server] = size[new]
    size[new] += 1


@kernel
def per_server_with_memory(d, lam, events, queue, observation, members, place, size, rng):
    """Run SQ(d) with memory, the servers of every observation in a list, for so many uniformised events."""
    a, b, c, counter = rng
    servers = queue.size
    lowest = 0
    for _ in range(events):
        word, a, b, c, counter = next_word(a, b, c, counter)
        position = unit(word) * servers * (1.0 + lam)
        if position < servers:
            queue[int(position)] -= queue[int(position)] > 0
            continue
        for _ in range(d):
            word, a, b, c, counter = next_word(a, b, c, counter)
            server = int(unit(word) * servers)
            found, known = queue[server], observation[server]
            if found < known:
                _move(server, known, found, members, place, size)
                observation[server] = found
                lowest = min(lowest, found)
        while size[lowest] == 0:
            lowest += 1
        word, a, b, c, counter = next_word(a, b, c, counter)
        server = members[lowest, int(unit(word) * size[lowest])]
        _move(server, lowest, lowest + 1, members, place, size)
        observation[server] += 1
        queue[server] += 1
    rng[0], rng[1], rng[2], rng[3] = a, b, c, counter


def lists(observation: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return members[observation, k], place[server] and size[observation] of `per_server_with_memory`."""
    levels = int(observation.max()) + 4
    members = np.zeros((levels, observation.size), np.int32)
    place, size = np.zeros(observation.size, np.int32), np.zeros(levels, np.int64)
    for level in range(levels):
        found = np.flatnonzero(observation == level)
        members[level, : found.size], size[level] = found, found.size
        place[found] = np.arange(found.size)
    return members, place, size


def simpy_seconds_per_job(N: int, d: int, lam: float, jobs: int, seed: int = 1) -> float:
    """Return the seconds that SimPy takes for a job of SQ(d), its arrival and its departure."""
    import simpy

    rng = random.Random(seed)
    environment = simpy.Environment()
    servers = [simpy.Resource(environment) for _ in range(N)]

    def job(server):
        with server.request() as turn:
            yield turn
            yield environment.timeout(rng.expovariate(1.0))

    def arrivals():
        for _ in range(jobs):
            yield environment.timeout(rng.expovariate(lam * N))
            probed = rng.choices(servers, k=d)
            environment.process(job(min(probed, key=lambda server: server.count + len(server.queue))))

    environment.process(arrivals())
    started = time.perf_counter()
    environment.run()
    return (time.perf_counter() - started) / jobs


def ciw_seconds_per_job(N: int, d: int, lam: float, jobs: int, seed: int = 1) -> float:
    """Return the seconds that Ciw takes for a job of SQ(d); node 1 is the dispatcher."""
    import ciw

    class ShortestOfD(ciw.routing.NodeRouting):
        def next_node(self, ind):
            probed = random.choices(self.simulation.nodes[2:-1], k=d)
            return min(probed, key=lambda node: node.number_of_individuals)

    leave = ciw.routing.Leave()
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(lam * N), *[None] * N],
        service_distributions=[ciw.dists.Deterministic(0.0), *[ciw.dists.Exponential(1.0)] * N],
        number_of_servers=[float("inf"), *[1] * N],
        routing=ciw.routing.NetworkRouting(routers=[ShortestOfD(), *[leave] * N]),
    )
    ciw.seed(seed)
    simulation = ciw.Simulation(network)
    started = time.perf_counter()
    simulation.simulate_until_max_customers(jobs)
    return (time.perf_counter() - started) / jobs


@kernel
def _smoothed_drift(x, d, lam, width, out):
    """Fill `out` with the drift of the fluid model; a class with y_j servers takes y_j/(y_j + width) of the flow."""
    out[:, :] = 0.0
    left = lam
    for j in range(len(x)):
        held = max(0.0, x[: j + 1, j].sum())
        flow = left * held / (held + width) if j + 1 < len(x) else 0.0
        left -= flow
        for i in range(j + 1):
            mass = x[i, j]
            if i >= 1:
                out[i, j] -= mass
                out[i - 1, j] += mass
            out[i, j] -= lam * d * mass
            out[i, i] += lam * d * mass
            if held > 0.0 and flow > 0.0:
                out[i, j] -= flow * mass / held
                out[i + 1, j + 1] += flow * mass / held


def smoothed_path(start, d, lam, grid, width, tolerance):
    """Return the queue-length occupancy float64[t, i] by LSODA on the smoothed drift; None where it fails."""
    upper, x, out = np.triu_indices(len(start)), np.zeros_like(start), np.zeros_like(start)
    calls = iter(range(MOST_CALLS))

    def drift(_, flat):
        next(calls)
        x[upper] = flat
        _smoothed_drift(x, d, lam, width, out)
        return out[upper].copy()

    try:
        solution = solve_ivp(drift, (0, grid[-1]), start[upper], "LSODA", grid, rtol=tolerance, atol=tolerance / 1e3)
    except StopIteration:
        return None
    if not solution.success:
        return None
    states = np.zeros((len(grid), *start.shape))
    states[:, upper[0], upper[1]] = solution.y.T
    return states.sum(axis=2)
