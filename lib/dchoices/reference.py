"""The plain simulation, server by server: slow, readable, the reference that the lumped kernels are tested against.

It shares nothing with them: a list of queues, a list of memory slots, exponential times, Python's own generator.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from dchoices import validation

POLICIES = ("sq", "sq-memory")


@dataclass
class Run:
    """Averages of one run: time averages for the occupancy, job averages for the dispatch counts."""

    occupancy: np.ndarray
    sent_by_queue: np.ndarray
    sent_by_observation: np.ndarray


def run(policy: str, N: int, d: int, lam: float, horizon: float, warm_up: float = 0.0, seed: int = 0) -> Run:
    """Simulate N servers from an empty system and average over `horizon` after `warm_up` (mean service times).

    Parameters
    ----------
    policy : {"sq-memory", "sq"}
        Dispatching policy.
    N, d : int
        Servers; probes per job, with replacement.
    lam : float
        Load λ in (0, 1).
    seed : int
        Seed of `random.Random`.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    memory = validation.choice("policy", policy, POLICIES) == "sq-memory"
    N, d, lam = validation.servers(N), validation.probes(d), validation.load(lam)
    end = validation.positive("warm_up", warm_up, zero=True) + validation.positive("horizon", horizon)
    rng = random.Random(seed)
    queue, observation = [0] * N, [0] * N
    levels = 8
    area, by_queue, by_observation = [0.0] * levels, [0] * levels, [0] * levels
    now = 0.0
    while now < end:
        busy = [server for server in range(N) if queue[server] > 0]
        rate = lam * N + len(busy)
        step = rng.expovariate(rate)
        while max(queue) + 2 > len(area) or max(observation) + 2 > len(area):
            for counter in (area, by_queue, by_observation):
                counter.append(0)
        for server in range(N):
            area[queue[server]] += max(0.0, min(now + step, end) - max(now, warm_up))
        now += step
        if rng.random() * rate < len(busy):
            queue[rng.choice(busy)] -= 1
            continue
        probed = [rng.randrange(N) for _ in range(d)]
        for server in probed:
            observation[server] = queue[server]
        candidates = range(N) if memory else probed
        lowest = min(observation[server] for server in candidates)
        target = rng.choice([server for server in candidates if observation[server] == lowest])
        if warm_up <= now < end:
            by_queue[queue[target]] += 1
            by_observation[lowest] += 1
        queue[target] += 1
        observation[target] += 1
    total = np.array(area)
    return Run(total / total.sum(), np.array(by_queue), np.array(by_observation))
