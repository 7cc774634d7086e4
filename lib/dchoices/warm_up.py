"""Compile every kernel once, alone: numba writes its cache files in place, which parallel jobs would disturb.

``python -m dchoices.warm_up`` is what the workflow does first; with a warm cache it takes a moment. It prints the pace
of this machine, the CPU time of an event in nanoseconds, by which the workflow says what a run will take.
"""

from __future__ import annotations

import time

from dchoices import registry
from dchoices.concentration import tail_frequencies
from dchoices.progress import events_simulated
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


def pace() -> float:
    """Return the CPU time of an event in seconds, where N is large: the least of three short runs."""
    found = []
    for seed in range(3):
        before, started = events_simulated(), time.process_time()
        simulate("sq-memory", N=10**6, d=2, lam=0.9, t=[2.0], replicates=1, seed=seed, start="fixed-point")
        found.append((time.process_time() - started) / (events_simulated() - before))
    return min(found)


if __name__ == "__main__":
    main()
    print(f"{1e9 * pace():.3g}")
