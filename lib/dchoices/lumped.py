"""The lumped chain of one replicate: counts, random streams and dispatch counters around the kernels."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaincc

from dchoices import starts
from dchoices.kernels import memory, memoryless, sfc64
from dchoices.registry import Policy

SPARE_LEVELS = 8  # levels above the start, at least; the arrays double when a run needs more


def _erlang_tail(sent_by_queue: np.ndarray, response_time: np.ndarray) -> tuple[float, np.ndarray]:
    """Return mean and tail of the response time: a job that joins i others waits an Erlang(i+1) time.

    Parameters
    ----------
    sent_by_queue : int64[L]
        Jobs by the queue that they joined.
    response_time : float64[X]
        Times at which the tail is wanted.
    """
    share = sent_by_queue / sent_by_queue.sum()
    stages = np.arange(1, len(share) + 1)
    return float(share @ stages), share @ gammaincc(stages[:, None], response_time[None, :])


class LumpedChain:
    """N exponential servers under a policy that treats them alike, in the exact lumped chain.

    Parameters
    ----------
    policy : Policy
        From the registry.
    N, d : int
        Servers; probes per job where the policy takes a d.
    lam : float
        Load λ.
    start : float64[i, j] or float64[i]
        Fractions of servers, as `starts.fractions` returns them.
    seed : numpy.random.SeedSequence
        Of this replicate.
    """

    def __init__(self, policy: Policy, N: int, d: int, lam: float, start: np.ndarray, seed: np.random.SeedSequence):
        self.policy, self.N, self.lam = policy, N, lam
        self._d = policy.probes(N, d)
        kernel_seed, clock_seed = seed.spawn(2)
        self._rng = sfc64.initial_state(kernel_seed)
        self._clock = np.random.Generator(np.random.PCG64(clock_seed))
        counts = starts.counts(start, N)
        levels = -(-(len(counts) + SPARE_LEVELS) // memory.BLOCK) * memory.BLOCK
        if policy.memory:
            self._table = np.zeros((levels, levels), dtype=np.int64)  # observation, queue
            self._table[: len(counts), : len(counts)] = counts.T
        else:
            self._at_least = np.zeros(levels, dtype=np.int64)
            self._at_least[: len(counts)] = counts[::-1].cumsum()[::-1]
        self.reset_counters()

    @property
    def by_queue(self) -> np.ndarray:
        """Servers by queue length, int64[L]."""
        if self.policy.memory:
            return self._table.sum(axis=0)
        return self._at_least - np.append(self._at_least[1:], 0)

    @property
    def by_observation(self) -> np.ndarray:
        """Servers by observation, int64[L]: without memory, what is observed is the truth."""
        return self._table.sum(axis=1) if self.policy.memory else self.by_queue

    @property
    def sent_by_queue(self) -> np.ndarray:
        """Jobs sent since the counters were reset, by the queue they found, int64[L]."""
        return self._sent.sum(axis=0) if self.policy.memory else self._sent.copy()

    @property
    def sent_by_observation(self) -> np.ndarray:
        """Jobs sent, by the observation of their server, int64[L]: without memory, what is observed is the truth."""
        return self._sent.sum(axis=1) if self.policy.memory else self._sent.copy()

    def response(self, response_time: np.ndarray) -> tuple[float, np.ndarray]:
        """Return mean and tail of the response time of the jobs sent since the counters were reset.

        The mean is Σ (i+1)·(share of jobs that join i others), half as noisy as Little's E[queue]/λ.
        """
        return _erlang_tail(self.sent_by_queue, response_time)

    def reset_counters(self) -> None:
        """Forget the jobs sent so far."""
        self._sent = np.zeros_like(self._table if self.policy.memory else self._at_least)

    def advance(self, duration: float) -> int:
        """Run for `duration` mean service times and return the number of uniformised events.

        Uniformised at the constant rate N(1+λ), the number of events in an interval is Poisson.

        Raises
        ------
        ValueError
            If a user's policy sends a job where no server is.
        """
        events = left = int(self._clock.poisson(self.N * (1 + self.lam) * duration))
        while left > 0:
            left = self._run(left)
            if left > 0 or (self._table[-1].any() if self.policy.memory else self._at_least[-1]):
                self._grow()
        return events

    def follow(self, steps: np.ndarray) -> np.ndarray:
        """Run a policy with memory for several durations; return the servers by queue and by observation after each.

        The same path as `advance` for each in turn, without what it costs to enter a kernel so often: more than the
        events of a small system.

        Parameters
        ----------
        steps : float64[T]
            Mean service times.

        Returns
        -------
        int64[2, T, L]
        """
        events = self._clock.poisson(self.N * (1 + self.lam) * steps)
        servers = np.zeros((2, len(events), len(self._sent)), dtype=np.int64)
        done = self._follow(events, servers)
        while done < len(events):
            self._grow()
            servers = np.pad(servers, [(0, 0), (0, 0), (0, len(self._sent) - servers.shape[2])])
            done += self._follow(events[done:], servers[:, done:])
        return servers

    def _follow(self, events: np.ndarray, servers: np.ndarray) -> int:
        distinct, sent = self.policy.distinct, self._sent.reshape(-1)
        return int(memory.follow(self._d, distinct, self.lam, events, self._table, self._rng, sent, *servers))

    def _run(self, events: int) -> int:
        if self.policy.memory:
            return int(
                memory.advance(
                    self._d, self.policy.distinct, self.lam, events, self._table, self._rng, self._sent.reshape(-1)
                )
            )
        advance = memoryless.advance if self.policy.choose is None else memoryless.advance_user
        left, impossible = advance(
            self.policy.code, self.policy.choose, self._d, self.lam, events, self._at_least, self._rng, self._sent
        )
        if impossible:
            raise ValueError(
                f"policy {self.policy.name!r} sent a job to queue length {impossible - (impossible > 0)}: "
                "must be the queue length of a server"
            )
        return int(left)

    def _grow(self) -> None:
        """Double the number of levels."""
        extra = len(self._sent)
        self._sent = np.pad(self._sent, (0, extra))
        if self.policy.memory:
            self._table = np.pad(self._table, (0, extra))
        else:
            self._at_least = np.pad(self._at_least, (0, extra))
