"""The figures of the report, in its order; each is made in the module of its subject."""

from __future__ import annotations

from collections.abc import Callable

from dchoices.plots import comparison, concentration, critical, dispatch, limits, lookup, paths, portrait, relaxation
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
    comparison.policies,
    critical.critical,
    critical.finite_size,
)


def make_figures(data: Datasets) -> list[Figure]:
    """Return every figure of the report, in its order."""
    return [make(data) for make in MAKERS]
