"""The dispatching policies: one registry line each, and those that a user adds."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dchoices import validation
from dchoices.kernels import codes
from dchoices.theory import closed_forms
from dchoices.wording import one_line, shorten, show


def _two_a_probe(N: int, probes: int, idle: float) -> float:
    """A query and a reply for every probe."""
    return 2.0 * probes


def _shortest_of(lam: float, probes: int) -> np.ndarray:
    return closed_forms.sq_queue_length_pmf(lam, probes)


def _one_job_at_most(lam: float, probes: int) -> np.ndarray:
    """Return the limit of the policies that find an idle server whenever there is one."""
    return np.array([1 - lam, lam])


@dataclass(frozen=True)
class Policy:
    """A dispatching policy.

    Attributes
    ----------
    name : str
        Its name in arguments and datasets.
    description : str
        What it does, in a line.
    memory : bool
        Whether the dispatcher remembers its last observation of every server.
    slots : int
        Memory that the dispatcher keeps for each server: a slot for an observation, or for whether it is idle.
    distinct : bool
        Whether it probes without replacement.
    takes_d : bool
        Whether the number of probes is an argument; else it is stored at d = 0.
    probes : callable
        (N, d) -> probes per job.
    messages_per_job : callable
        (N, probes, share of jobs that find an idle server) -> messages per job. A query and its reply count as two, a
        report that a server sends of its own accord as one; sending the job itself is not counted.
    fixed_point : callable
        (λ, probes) -> fluid fixed point, at which runs start: float64[i, j] with memory,
        else float64[i].
    fluid : str
        The policy without memory that it has its fluid model from, or "sq-memory"; empty if none is known.
    code : int
        How the kernel of policies without memory knows it.
    choose : callable or None
        The jitted function of a user's policy.
    """

    name: str
    description: str
    memory: bool = False
    slots: int = 0
    distinct: bool = False
    takes_d: bool = True
    probes: Callable[[int, int], int] = lambda N, d: d
    messages_per_job: Callable[[int, int, float], float] = _two_a_probe
    fixed_point: Callable[[float, int], np.ndarray] = _shortest_of
    fluid: str = "sq"
    code: int = codes.SHORTEST_OF_D
    choose: Callable[..., int] | None = None

    def servers_probed(self, N: int, d: int) -> float:
        """Return the expected number of different servers among the probes of a job: N(1 - (1 - 1/N)^probes).

        Parameters
        ----------
        N, d : int
            Servers; the policy's d, 0 where it has none.
        """
        probes = self.probes(N, d)
        return float(probes) if self.distinct else N * (1 - (1 - 1 / N) ** probes)


_BUILT_IN = (
    Policy("random", "a random server", takes_d=False, probes=lambda N, d: 1,
           messages_per_job=lambda N, probes, idle: 0.0),
    Policy("sq", "the shortest of d random servers"),
    Policy("sq-distinct", "the shortest of d different servers", distinct=True, code=codes.SHORTEST_OF_D_DISTINCT),
    Policy("sq-log", "sq with d = ⌈log N⌉", takes_d=False, fluid="",
           probes=lambda N, d: max(1, math.ceil(math.log(N)))),
    Policy("sq-sqrt", "sq with d = ⌈√N⌉", takes_d=False, fluid="", probes=lambda N, d: 1 + math.isqrt(N - 1)),
    Policy("sq-memory", "d probes, then the lowest observation", True, 1, fluid="sq-memory",
           fixed_point=closed_forms.fixed_point_state),
    Policy("sq-memory-distinct", "d different probes, then the lowest observation", True, 1, True, fluid="sq-memory",
           fixed_point=closed_forms.fixed_point_state),
    Policy("jsq", "a shortest queue of all, every server asked", takes_d=False, probes=lambda N, d: 0,
           messages_per_job=lambda N, probes, idle: 2.0 * N, fixed_point=_one_job_at_most, fluid="jsq",
           code=codes.JOIN_SHORTEST),
    Policy("jiq", "an idle server if there is one, else a random one; idle servers report themselves", slots=1,
           takes_d=False, probes=lambda N, d: 1, messages_per_job=lambda N, probes, idle: idle,
           fixed_point=_one_job_at_most, fluid="jiq", code=codes.JOIN_IDLE),
)  # fmt: skip

_REGISTRY = {policy.name: policy for policy in _BUILT_IN}


def policies() -> list[str]:
    """Return the names of the policies, those of the user included."""
    return sorted(_REGISTRY)


def get(name: str) -> Policy:
    """Return the policy called `name`.

    Raises
    ------
    ValueError
        If there is none.
    """
    return _REGISTRY[validation.choice("policy", name, policies())]


def numbers_of_probes(chosen: Sequence[Policy], sizes: Sequence[int], d: Any) -> list[int]:
    """Return the checked list of d for these policies and numbers of servers; policies without a d stand at d = 0.

    Raises
    ------
    ValueError
        If d fits a policy or a number of servers not, or only some of the policies have one.
    """
    if len({policy.takes_d for policy in chosen}) > 1:
        without = next(policy.name for policy in chosen if not policy.takes_d)
        names = show([policy.name for policy in chosen])
        raise ValueError(f"policy = {names}: {without!r} has no d, must be run on its own with d = 0")
    if not chosen[0].takes_d:
        if validation.several("d", d, lambda value, name: validation.integer(name, value, 0)) != [0]:
            raise ValueError(f"d = {show(d)}: policy {chosen[0].name!r} has no d, must be 0")
        return [0]
    ds = validation.several("d", d, validation.probes)
    if any(policy.distinct for policy in chosen) and max(ds) > min(sizes):
        raise ValueError(f"d = {max(ds)}: different servers are probed, must be at most N = {min(sizes)}")
    return ds


def label(name: str, d: int | str) -> str:
    """Return how tables and figures call a policy with its d, 0 where it has none: sq(2), jsq."""
    return f"{name}({d})" if d else name


def register_policy(
    name: str,
    choose: Callable[..., int],
    messages_per_job: float | Callable[[int, int, float], float],
    description: str = "registered by the user",
    takes_d: bool = True,
) -> None:
    """Add a policy without memory, given by a function that numba can compile.

    It compiles here and when it first runs (some seconds, in every process: numba cannot tell from its cache that a
    function has changed). It then has a place in `policies`, `simulate` and `stationary` like the others.

    Parameters
    ----------
    name : str
        Lower-case letters, digits and hyphens; no built-in policy. A name registered before is replaced.
    choose : callable
        ``choose(at_least, d, rng)`` -> queue length of the server that gets the job, one of those at that length
        taken at random. ``at_least[i]`` (int64) is the number of servers with i jobs or more, ``at_least[0]`` is N;
        ``dc.uniform(rng)`` draws a number in [0, 1). It must not write to `at_least`.
    messages_per_job : float or callable
        Messages per job, or a function (N, d, share of jobs that find an idle server) of them.
    description : str
        What it does, in a line.
    takes_d : bool
        Whether it uses d; else it is called with d = 0, and stored so.

    Raises
    ------
    ValueError
        If the name is taken by a built-in policy or malformed, an argument has the wrong type, or numba cannot compile
        the function.
    """
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise ValueError(f"name = {show(name)}: must be lower-case letters, digits and single hyphens")
    if name in {policy.name for policy in _BUILT_IN}:
        raise ValueError(f"name = {name!r}: is a built-in policy, must be another name")
    if not callable(choose):
        raise ValueError(f"choose = {show(choose)}: must be a function of (at_least, d, rng)")
    if not isinstance(description, str) or not description.isprintable():
        raise ValueError(f"description = {show(description)}: must be a line of text")
    if not isinstance(takes_d, bool):
        raise ValueError(f"takes_d = {show(takes_d)}: must be True or False")
    _REGISTRY[name] = Policy(
        name, description, takes_d=takes_d, messages_per_job=_messages(messages_per_job), choose=_jitted(choose),
        fixed_point=_one_job_at_most, fluid="", code=codes.USER,
    )  # fmt: skip


def _messages(given: Any) -> Callable[[int, int, float], float]:
    def messages(N: int, probes: int, idle: float) -> float:
        return validation.positive("messages_per_job", given(N, probes, idle) if callable(given) else given, zero=True)

    if not callable(given):
        messages(1, 0, 0.0)  # refuses now what it would refuse later
    return messages


def _jitted(choose: Any) -> Callable[..., int]:
    """Return a user's function as numba compiles it, compiled: what is wrong with it shows at once."""
    import numba

    from dchoices.kernels.jit import uncached_kernel

    try:
        jitted: Any = choose if hasattr(choose, "py_func") else uncached_kernel(choose)
        if not hasattr(jitted, "py_func"):  # numba is switched off
            return jitted
        jitted.compile((numba.int64[::1], numba.int64, numba.uint64[::1]))
    except (numba.core.errors.NumbaError, TypeError) as cause:  # the latter for what is no function of Python
        reason = shorten(one_line(str(cause)), 400)
        raise ValueError(f"choose = {show(choose)}: must be a function that numba can compile: {reason}") from cause
    (found,) = {overload.signature.return_type for overload in jitted.overloads.values()}
    if not isinstance(found, numba.types.Integer):
        raise ValueError(f"choose = {show(choose)}: must return an integer, the queue length, and returns {found}")
    return jitted
