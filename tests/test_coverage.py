"""The 95 % intervals of `stationary` hold the exact value as often as they say."""

import dchoices as dc
import numpy as np
import pytest
from comparisons import SIGMAS, exact

REPETITIONS = 400
REPLICATES = 6  # few, so that a normal quantile for Student's, or a wrong divisor, would show
# In relaxation times (1-√λ)^-2 of a queue of its own, which no system here exceeds: a warm-up of 10, a window of 40 and
# more. Means over 10 are so skewed that Student's intervals of six hold 93 % (measured at λ = 0.4 to 0.7, window 300).
WARM_UP, HORIZON = 60.0, 200.0
SYSTEMS = [
    ("random", 2, 0, 0.3, 25),
    ("sq", 3, 2, 0.3, 15),
    ("jsq", 2, 0, 0.3, 15),
    ("jiq", 3, 0, 0.3, 15),
    ("sq-memory", 2, 1, 0.3, 14),
    ("sq-memory", 3, 2, 0.3, 9),
]
QUANTITIES = ("dispatch_to_idle", "dispatch_to_observation_zero", "mean_queue_length", "mean_response_time")


def hits(policy, N, d, lam, buffer):
    """Return, for each repetition, which intervals hold the exact value."""
    solved = exact(policy, N, d, lam, buffer)
    assert solved.truncated_mass < 1e-5
    rows = []
    for seed in range(REPETITIONS):
        ours = dc.stationary(
            policy, N, d, lam, warm_up=WARM_UP, horizon=HORIZON, replicates=REPLICATES, seed=seed, response_time=[0.0]
        )
        row = [abs(ours[name].item() - solved[name].item()) <= ours[f"{name}_ci95"].item() for name in QUANTITIES]
        for level in (0, 1, 2):
            error = ours.occupancy.values[..., level] - float(solved.occupancy[level])
            row.append(abs(error.item()) <= ours.occupancy_ci95.values[..., level].item())
        rows.append(row)
    return np.array(rows)


@pytest.mark.slow
def test_intervals_cover_as_often_as_they_say():
    covered = {system: hits(*system) for system in SYSTEMS}
    for system, held in covered.items():
        print(system, dict(zip([*QUANTITIES, "p_0", "p_1", "p_2"], held.mean(axis=0).round(3).tolist(), strict=True)))
        allowed = SIGMAS * np.sqrt(0.95 * 0.05 / REPETITIONS)
        assert (np.abs(held.mean(axis=0) - 0.95) < allowed).all(), system
    pooled = np.mean([held.mean(axis=0) for held in covered.values()], axis=0)
    print("all", pooled.round(4))
    allowed = SIGMAS * np.sqrt(0.95 * 0.05 / (REPETITIONS * len(SYSTEMS)))
    assert allowed < 0.02, "too noisy to be a test"
    assert (np.abs(pooled - 0.95) < allowed).all(), pooled
