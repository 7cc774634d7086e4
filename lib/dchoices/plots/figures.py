"""The figures of the report, in its order; each is made in the module of its subject."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from dchoices.datasets import NotStudied
from dchoices.plots import (
    comparison,
    concentration,
    critical,
    dispatch,
    fluctuations,
    heavy_traffic,
    limits,
    lookup,
    messages,
    paths,
    portrait,
    relaxation,
    replacement,
    service,
)
from dchoices.plots.figure import Datasets, Figure

MAKERS: tuple[Callable[[Datasets], Figure], ...] = (
    portrait.portrait,
    paths.trajectories,
    paths.error,
    paths.starts,
    concentration.tails,
    limits.idle,
    dispatch.recursion,
    limits.fixed_points,
    limits.bound,
    relaxation.relaxation,
    limits.memory,
    lookup.lookup,
    heavy_traffic.heavy_traffic,
    messages.messages,
    comparison.policies,
    critical.critical,
    critical.finite_size,
    service.service,
    fluctuations.fluctuations,
    replacement.replacement,
)


def make_figures(data: Datasets) -> list[Figure]:
    """Return the figures of the report, in its order; of a run with some of the studies those that need no others."""
    made = []
    for make in MAKERS:
        with contextlib.suppress(NotStudied):
            made.append(make(data))
    return made
