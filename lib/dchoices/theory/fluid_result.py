"""What every fluid model returns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class FluidPath(NamedTuple):
    """A fluid path on a time grid.

    Attributes
    ----------
    occupancy : float64[t, i]
        Fraction of servers with i jobs.
    by_queue, by_observation : float64[t, i]
        Fraction of jobs that find i jobs at their server; by the observation of it.
    modes : int64[t]
        Mode of the hybrid system.
    switches : list of (float, int)
        Time of each switch and the mode after it.
    steps : int
        Steps of the integration.
    states : float64[t, i, j] or None
        Fraction of servers with i jobs and observation j, with memory.
    """

    occupancy: np.ndarray
    by_queue: np.ndarray
    by_observation: np.ndarray
    modes: np.ndarray
    switches: list[tuple[float, int]]
    steps: int
    states: np.ndarray | None = None
