"""The system of one replicate server by server: any service law, servers of different speeds, the same policies.

The engine for what the lumped chain cannot do; its memory and the time to sample it grow with N.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import gammaln

from dchoices import starts, validation
from dchoices.kernels import codes, per_server, sfc64
from dchoices.registry import Policy
from dchoices.service import ServiceLaw

MAX_SERVERS = 10**6  # some 100 bytes each
SPARE_LEVELS = 8  # levels above the start, at least; they double when a run needs more
SPARE_JOBS = 64  # room for departures beyond twice those at the start; it doubles when a run needs more
# Mean times between arrivals that the calendar of departures spans, per server: a job that stays for longer is met
# again in the next year, and a longer calendar falls out of the processor's cache.
DAYS_PER_SERVER = 8


def server_speeds(speeds: Any, N: int) -> np.ndarray:
    """Return the speeds of N servers, sorted: float64[N], the work done per mean service time.

    Parameters
    ----------
    speeds : None, array_like or mapping
        None for 1 each; N numbers > 0; or fractions of servers by speed, rounded to counts, as
        {0.5: 0.2, 1.125: 0.8}.

    Raises
    ------
    ValueError
        If they are not N positive finite numbers, or the fractions do not sum to 1.
    """
    if speeds is None:
        return np.ones(N)
    if isinstance(speeds, Mapping):
        values = np.array([validation.positive("speeds", speed) for speed in speeds], dtype=np.float64)
        shares = np.array([validation.positive("speeds", share, zero=True) for share in speeds.values()])
        if not abs(shares.sum() - 1) <= starts.SUM_TOLERANCE:
            raise ValueError(f"speeds: fractions of servers sum to {shares.sum():.12g}, must sum to 1")
        return np.sort(np.repeat(values, starts.counts(shares / shares.sum(), N)))
    given = validation.array("speeds", speeds, "N numbers > 0, or fractions of servers by speed", MAX_SERVERS)
    if given.shape != (N,):
        raise ValueError(f"speeds with shape {given.shape}: must be N = {N} numbers > 0")
    if not (np.isfinite(given) & (given > 0)).all():
        worst = given[~(np.isfinite(given) & (given > 0))][0]
        raise ValueError(f"speeds hold {worst}: must be finite and > 0")
    return np.sort(given)


def speeds_label(speeds: np.ndarray) -> str:
    """Return a stable text for sorted speeds, exact; it keys the random stream. Many different ones are hashed."""
    values, counts = np.unique(speeds, return_counts=True)
    if values.size > 8:
        digest = hashlib.sha256(speeds.tobytes()).hexdigest()[:32]
        return f"{values.size} from {values[0]!s} to {values[-1]!s}, mean {speeds.mean()!s}, sha256 {digest}"
    return ", ".join(f"{count} at {value!s}" for value, count in zip(values, counts, strict=True))


def highest_load(policy: Policy, N: int, d: int, speeds: np.ndarray) -> float:
    """Return the load below which servers of these speeds keep up: the mean speed or, for some policies, less.

    Without memory, jobs whose d probes all hit the k slowest servers go there however long their queues are, so that
    λN (k/N)^d must be less than the sum of their speeds for every k (S. Foss, N. Chernova, Queueing Systems 29, 1998);
    at d = 1, λ must be less than the lowest speed.

    Parameters
    ----------
    speeds : float64[N]
        Sorted.
    """
    if policy.memory or policy.code not in (codes.SHORTEST_OF_D, codes.SHORTEST_OF_D_DISTINCT):
        return float(speeds.mean())
    slowest, probes = np.arange(1, N + 1), policy.probes(N, d)
    if policy.distinct:
        ways = gammaln(slowest + 1) - gammaln(slowest - probes + 1)  # -∞ for fewer servers than probes
        share = np.exp(ways - ways[-1])
    else:
        share = (slowest / N) ** probes
    with np.errstate(divide="ignore"):
        return float((speeds.cumsum() / N / share).min())


class PerServerSystem:
    """N servers, each with its queue, its speed and what the dispatcher remembers of it.

    Jobs present at the start begin service at time 0; only for exponential laws is that no different from being under
    way, so others need a warm-up.

    Parameters
    ----------
    policy : Policy
        From the registry.
    N, d : int
        Servers, at most `MAX_SERVERS`; probes per job where the policy takes a d.
    lam : float
        Load λ: jobs per server and mean service time at speed 1.
    start : float64[i, j] or float64[i]
        Fractions of servers, as `starts.fractions` returns them; which servers they are is drawn.
    seed : numpy.random.SeedSequence
        Of this replicate.
    service : ServiceLaw
        Law of the work that a job brings, with mean 1.
    speeds : float64[N]
        Work that each server does per time, > 0.
    response_time : float64[X]
        Grid of the response-time tail.
    """

    def __init__(
        self,
        policy: Policy,
        N: int,
        d: int,
        lam: float,
        start: np.ndarray,
        seed: np.random.SeedSequence,
        service: ServiceLaw,
        speeds: np.ndarray,
        response_time: np.ndarray,
    ):
        self.policy, self.N, self.lam = policy, N, lam
        self._d = policy.probes(N, d)
        self._law = (service.code, *service.constants)
        kernel_seed, order_seed = seed.spawn(2)
        self._rng = sfc64.initial_state(kernel_seed)
        self._servers = _servers(starts.counts(start, N), speeds, np.random.Generator(np.random.PCG64(order_seed)))
        self._now = 0.0
        self._departures = _calendar(2 * int(self._servers.queue.sum()) + SPARE_JOBS, N)
        per_server.begin(self._law, lam * N, self._servers, self._departures, self._rng)
        self._grid = np.array(response_time)  # plain, whatever view was given: one kernel for all
        self.reset_counters()

    @property
    def by_queue(self) -> np.ndarray:
        """Servers by queue length, int64[L]."""
        return np.bincount(self._servers.queue, minlength=self._servers.at_least.size)

    @property
    def by_observation(self) -> np.ndarray:
        """Servers by observation, int64[L]: without memory, what is observed is the truth."""
        if not self.policy.memory:  # what is seen may then not be kept
            return self.by_queue
        return np.bincount(self._servers.seen, minlength=self._servers.at_least.size)

    @property
    def sent_by_queue(self) -> np.ndarray:
        """Jobs sent since the counters were reset, by the queue they found, int64[L]."""
        return self._tally.by_queue.copy()

    @property
    def sent_by_observation(self) -> np.ndarray:
        """Jobs sent, by the observation of their server, int64[L]: without memory, what is observed is the truth."""
        return self._tally.by_observation.copy()

    def response(self, response_time: np.ndarray) -> tuple[float, np.ndarray]:
        """Return mean and tail of the response time of the jobs sent since the counters were reset.

        Measured job by job: known at its arrival, and counted then.

        Parameters
        ----------
        response_time : float64[X]
            The grid that the system was made with.

        Raises
        ------
        ValueError
            If it is another grid.
        """
        if not np.array_equal(response_time, self._grid):
            raise ValueError("response_time: must be the grid that the system was made with")
        beyond = self._tally.beyond
        jobs = beyond.sum()
        return float(self._tally.response[0] / jobs), beyond[::-1].cumsum()[::-1][1:] / jobs

    def reset_counters(self) -> None:
        """Forget the jobs sent so far."""
        levels = self._servers.at_least.size
        self._tally = per_server.Tally(
            np.zeros(levels, dtype=np.int64),
            np.zeros(levels, dtype=np.int64),
            self._grid,
            np.zeros(self._grid.size + 1, dtype=np.int64),
            np.zeros(1),
        )

    def advance(self, duration: float) -> int:
        """Run for `duration` mean service times and return the number of arrivals.

        Raises
        ------
        ValueError
            If a user's policy sends a job where no server is.
        """
        end, arrivals = self._now + duration, 0
        while self._now < end:
            arrivals += self._run(end)
            self._grow()
        return arrivals

    def _run(self, end: float) -> int:
        """Run until `end` or until an array is full; return the number of arrivals."""
        policy = self.policy
        code = codes.SHORTEST_OF_D_DISTINCT if policy.distinct else policy.code
        advance = per_server.advance if policy.choose is None else per_server.advance_user
        self._now, arrived, impossible = advance(
            code, policy.memory, policy.choose, self._d, self.lam * self.N, self._law, self._now, end,
            self._servers, self._departures, self._tally, self._rng,
        )  # fmt: skip
        if impossible:
            raise ValueError(
                f"policy {policy.name!r} sent a job to queue length {impossible - (impossible > 0)}: "
                "must be the queue length of a server"
            )
        return int(arrived)

    def _grow(self) -> None:
        """Double what is full: the room for departures, the levels."""
        departures = self._departures
        if departures.unused[0] < 0:
            room = departures.time.size
            departures.unused[0] = room
            self._departures = departures._replace(
                time=np.pad(departures.time, (0, room)),
                source=np.pad(departures.source, (0, room)),
                following=np.append(departures.following, _chain(room, room)),
            )
        levels = self._servers.at_least.size
        if self._tally.by_observation[-2]:  # a server has reached the last level
            self._servers = self._servers._replace(at_least=np.pad(self._servers.at_least, (0, levels)))
            self._tally = self._tally._replace(
                by_queue=np.pad(self._tally.by_queue, (0, levels)),
                by_observation=np.pad(self._tally.by_observation, (0, levels)),
            )


def _servers(counts: np.ndarray, speeds: np.ndarray, rng: np.random.Generator) -> per_server.Servers:
    """Return the servers of a start, in random order, with room for `SPARE_LEVELS` more jobs.

    Parameters
    ----------
    counts : int64[i, j] or int64[i]
        Servers by queue length and observation, or by queue length.
    speeds : float64[N]
        Their speeds, in the order in which the servers stay.
    """
    state = rng.permutation(np.repeat(np.arange(counts.size), counts.ravel()))
    queue, seen = np.divmod(state, counts.shape[1]) if counts.ndim == 2 else (state, state.copy())
    order = np.argsort(-seen, kind="stable")
    by_level = np.bincount(seen, minlength=len(counts) + SPARE_LEVELS)
    return per_server.Servers(
        speed=speeds,
        free=np.zeros(speeds.size),
        queue=queue,
        seen=seen,
        order=order,
        place=np.argsort(order),
        deck=np.arange(speeds.size),
        at_least=by_level[::-1].cumsum()[::-1].copy(),
    )


def _chain(first: int, size: int) -> np.ndarray:
    """Return a list of so many unused entries from `first` on, each naming the next: int64[size]."""
    return np.append(np.arange(first + 1, first + size), -1)


def _calendar(room: int, N: int) -> per_server.Departures:
    """Return an empty calendar for N servers with room for so many departures."""
    return per_server.Departures(
        time=np.zeros(room),
        source=np.zeros(room, dtype=np.int64),
        following=_chain(0, room),
        day=np.full(1 << (DAYS_PER_SERVER * N - 1).bit_length(), -1),
        unused=np.zeros(1, dtype=np.int64),
        today=np.zeros(1, dtype=np.int64),
    )
