"""Compile every kernel once, alone: numba writes its cache files in place, which parallel jobs would disturb.

``python -m dchoices.warm_up [MARKER]`` also leaves the marker file by which the workflow knows that it was done.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from dchoices import policies
from dchoices.simulation import simulate
from dchoices.theory.fluid import fluid_path


def main(arguments: Sequence[str]) -> int:
    """Run every policy and fluid model for a moment, through the functions that notebooks call."""
    for policy in policies.policies():
        simulate(policy, N=10, d=2, lam=0.5, t=[0.5], replicates=1)
        fluid_path(0.5, 2, [0.5], policy=policy)
    for marker in arguments:
        Path(marker).parent.mkdir(parents=True, exist_ok=True)
        Path(marker).touch()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
