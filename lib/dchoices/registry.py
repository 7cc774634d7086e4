"""The dispatching policies: one registry line each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dchoices import validation
from dchoices.theory import closed_forms


@dataclass(frozen=True)
class Policy:
    """A dispatching policy.

    Attributes
    ----------
    name : str
        Its name in arguments and datasets.
    memory : bool
        Whether the dispatcher remembers its last observation of every server.
    messages_per_job : callable
        d -> messages per job: a query and a reply for every probe; sending the job itself is not counted.
    fixed_point : callable
        (λ, d) -> the fluid fixed point: float64[i, j] with memory, float64[i] without.
    """

    name: str
    memory: bool
    messages_per_job: Callable[[int], float]
    fixed_point: Callable[[float, int], np.ndarray]


def _probe_messages(d: int) -> float:
    return 2.0 * d


_REGISTRY = {
    policy.name: policy
    for policy in (
        Policy("sq", False, _probe_messages, closed_forms.sq_queue_length_pmf),
        Policy("sq-memory", True, _probe_messages, closed_forms.fixed_point_state),
    )
}


def policies() -> list[str]:
    """Return the names of the policies."""
    return sorted(_REGISTRY)


def get(name: str) -> Policy:
    """Return the policy called `name`.

    Raises
    ------
    ValueError
        If there is none.
    """
    return _REGISTRY[validation.choice("policy", name, policies())]
