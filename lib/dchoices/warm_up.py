"""Compile every kernel once, alone: numba writes its cache files in place, which parallel jobs would disturb.

``python -m dchoices.warm_up`` is what the workflow does first; with a warm cache it takes a moment.
"""

from __future__ import annotations

from dchoices import registry
from dchoices.concentration import tail_frequencies
from dchoices.replacement import replacement_gap
from dchoices.simulation import simulate, stationary
from dchoices.theory.fluid import fluid_path


def main() -> None:
    """Run every policy and the fluid model for a moment, through the functions that notebooks call."""
    for name in registry.policies():
        simulate(name, N=10, d=2 if registry.get(name).takes_d else 0, lam=0.5, t=[0.5], replicates=1)
    stationary("sq-memory", N=100, d=2, lam=0.5, warm_up=0.0, horizon=2.0, replicates=2, service="deterministic")
    tail_frequencies(N=10, d=2, lam=0.5, t=[0.5], epsilon=0.5, replicates=1)
    replacement_gap("sq-memory", N=10, d=2, lam=0.5, t_end=1.0, warm_up=0.0, replicates=2)
    fluid_path(0.5, 2, [0.5])


if __name__ == "__main__":
    main()
