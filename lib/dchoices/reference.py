"""The plain simulation, server by server: slow, readable, the reference that the lumped kernels are tested against.

It shares nothing with them: a list of queues, a list of memory slots, exponential times, Python's own generator. A
policy is a function (rng, queue, observation, d) -> server that gets the job.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from dchoices import validation


@dataclass
class Run:
    """Averages of one run: time averages for the occupancy, job averages for the dispatch counts.

    Attributes
    ----------
    occupancy : float64[L]
        Fraction of servers by queue length.
    sent_by_queue, sent_by_observation : int64[L]
        Jobs sent, by the queue that they found and by what was observed of it: without memory, the truth.
    """

    occupancy: np.ndarray
    sent_by_queue: np.ndarray
    sent_by_observation: np.ndarray


def _lowest(rng: random.Random, value: list[int], servers: Iterable[int]) -> int:
    """Return one of the servers with the lowest value, ties broken uniformly."""
    candidates = list(servers)
    lowest = min(value[server] for server in candidates)
    return rng.choice([server for server in candidates if value[server] == lowest])


def _random(rng: random.Random, queue: list[int], observation: list[int], d: int) -> int:
    return rng.randrange(len(queue))


def _sq(rng: random.Random, queue: list[int], observation: list[int], d: int) -> int:
    return _lowest(rng, queue, {rng.randrange(len(queue)) for _ in range(d)})


def _sq_distinct(rng: random.Random, queue: list[int], observation: list[int], d: int) -> int:
    return _lowest(rng, queue, rng.sample(range(len(queue)), d))


def _sq_log(rng: random.Random, queue: list[int], observation: list[int], d: int) -> int:
    return _sq(rng, queue, observation, max(1, math.ceil(math.log(len(queue)))))


def _sq_sqrt(rng: random.Random, queue: list[int], observation: list[int], d: int) -> int:
    return _sq(rng, queue, observation, math.ceil(math.sqrt(len(queue))))


def _sq_memory(rng: random.Random, queue: list[int], observation: list[int], d: int) -> int:
    for _ in range(d):
        server = rng.randrange(len(queue))
        observation[server] = queue[server]
    return _lowest(rng, observation, range(len(queue)))


def _sq_memory_distinct(rng: random.Random, queue: list[int], observation: list[int], d: int) -> int:
    for server in rng.sample(range(len(queue)), d):
        observation[server] = queue[server]
    return _lowest(rng, observation, range(len(queue)))


def _jsq(rng: random.Random, queue: list[int], observation: list[int], d: int) -> int:
    return _lowest(rng, queue, range(len(queue)))


def _jiq(rng: random.Random, queue: list[int], observation: list[int], d: int) -> int:
    idle = [server for server, jobs in enumerate(queue) if jobs == 0]
    return rng.choice(idle) if idle else rng.randrange(len(queue))


POLICIES: dict[str, Callable[[random.Random, list[int], list[int], int], int]] = {
    "random": _random,
    "sq": _sq,
    "sq-distinct": _sq_distinct,
    "sq-log": _sq_log,
    "sq-sqrt": _sq_sqrt,
    "sq-memory": _sq_memory,
    "sq-memory-distinct": _sq_memory_distinct,
    "jsq": _jsq,
    "jiq": _jiq,
}


def run(
    policy: str, N: int, d: int, lam: float, horizon: float, warm_up: float = 0.0, seed: int = 0, jobs: int = 0
) -> Run:
    """Simulate N servers and average over `horizon` after `warm_up` (mean service times).

    Parameters
    ----------
    policy : str
        One of `POLICIES`, which are the built-in ones.
    N, d : int
        Servers; probes per job, 0 for a policy without a d.
    lam : float
        Load λ in (0, 1).
    seed : int
        Seed of `random.Random`.
    jobs : int
        At every server at the start, and in its memory.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    choose = POLICIES[validation.choice("policy", policy, POLICIES)]
    N, lam = validation.servers(N), validation.load(lam)
    d = validation.integer("d", d, 0, N if policy.endswith("distinct") else validation.MAX_PROBES)
    end = validation.positive("warm_up", warm_up, zero=True) + validation.positive("horizon", horizon)
    rng = random.Random(seed)
    jobs = validation.integer("jobs", jobs, 0)
    queue, observation = [jobs] * N, [jobs] * N
    area, by_queue, by_observation = [0.0], [0], [0]
    now = 0.0
    while now < end:
        busy = [server for server in range(N) if queue[server] > 0]
        rate = lam * N + len(busy)
        step = rng.expovariate(rate)
        while max(*queue, *observation) >= len(area):
            for counter in (area, by_queue, by_observation):
                counter.append(0)
        measured = max(0.0, min(now + step, end) - max(now, warm_up))
        for length in queue:
            area[length] += measured
        now += step
        if rng.random() * rate < len(busy):
            queue[rng.choice(busy)] -= 1
            continue
        server = choose(rng, queue, observation, d)
        if "memory" not in policy:
            observation[server] = queue[server]
        if warm_up <= now < end:
            by_queue[queue[server]] += 1
            by_observation[observation[server]] += 1
        queue[server] += 1
        observation[server] += 1
    return Run(np.array(area) / sum(area), np.array(by_queue), np.array(by_observation))
