"""The plain per-server simulation against the solved chain, and the lumped kernels against it where that is too big."""

import numpy as np
import pytest
from comparisons import SIGMAS, assert_mean, assert_same_mean, chain, exact, long_runs, shares
from dchoices import reference, registry

# policy, d
POLICIES = [
    ("random", 0),
    ("sq", 2),
    ("sq-distinct", 2),
    ("sq-log", 0),
    ("sq-sqrt", 0),
    ("jsq", 0),
    ("jiq", 0),
    ("sq-memory", 1),
    ("sq-memory", 2),
    ("sq-memory-distinct", 2),
]


def test_every_built_in_policy_has_its_plain_form():
    assert list(reference.POLICIES) == [policy.name for policy in registry._BUILT_IN]


@pytest.mark.parametrize("N", [2, 3])
@pytest.mark.parametrize(("policy", "d"), POLICIES)
def test_plain_simulation_agrees_with_the_exact_chain(policy, d, N):
    lam = 0.5
    solved = exact(policy, N, d, lam, 11 if registry.get(policy).memory else 25)
    assert solved.truncated_mass < 1e-4
    runs = [reference.run(policy, N, d, lam, horizon=500.0, warm_up=50.0, seed=seed) for seed in range(16)]
    occupancy = np.array([shares(run.occupancy, 4) for run in runs])
    for level in range(4):
        assert_mean(occupancy[:, level], float(solved.occupancy[level]), 0.09, f"p_{level}")
    idle = np.array([shares(run.sent_by_queue, 1)[0] for run in runs])
    assert_mean(idle, float(solved.dispatch_to_idle), 0.09, "dispatch to idle")
    seen = np.array([shares(run.sent_by_observation, 1)[0] for run in runs])
    assert_mean(seen, float(solved.dispatch_to_observation_zero), 0.09, "dispatch to observation 0")


@pytest.mark.parametrize(
    ("policy", "d"),
    [
        ("sq", 2),
        ("sq-distinct", 3),
        pytest.param("sq-log", 0, marks=pytest.mark.slow),
        pytest.param("sq-sqrt", 0, marks=pytest.mark.slow),
        ("jsq", 0),
        ("jiq", 0),
        ("sq-memory", 1),
        ("sq-memory", 3),
        ("sq-memory-distinct", 8),
    ],
)
def test_lumped_kernels_agree_with_the_plain_simulation(policy, d):
    """At N = 12, beyond the exact chain; dispatch by observation included, which lumping could get wrong."""
    N, lam = 12, 0.7
    runs = [reference.run(policy, N, d, lam, horizon=300.0, warm_up=30.0, seed=seed) for seed in range(16)]
    by_queue, by_observation = long_runs(policy, N, d, lam, horizon=1000.0, replicates=24)
    for level in range(4):
        plain = np.array([shares(run.sent_by_queue, 4)[level] for run in runs])
        assert_same_mean(plain, by_queue[:, level], 0.11, f"jobs to queue {level}")
        plain = np.array([shares(run.sent_by_observation, 4)[level] for run in runs])
        assert_same_mean(plain, by_observation[:, level], 0.11, f"jobs to observation {level}")
        # As many jobs join servers with i others as leave servers with i + 1.
        plain = np.array([shares(run.occupancy, 5)[level + 1] for run in runs])
        assert_same_mean(plain, lam * by_queue[:, level], 0.11, f"p_{level + 1}")


@pytest.mark.parametrize(("d", "lam"), [(1, 0.9), (3, 0.5)])
def test_deep_observations_fall_as_in_the_plain_simulation(d, lam):
    """From 70 jobs each, all known: observations cross those that the kernel marks one by one, below 62."""
    N, time = 12, 20.0
    runs = [reference.run("sq-memory", N, d, lam, horizon=time, seed=seed, jobs=70) for seed in range(30)]
    ours = []
    start = np.zeros((71, 71))
    start[70, 70] = 1.0
    for seed in range(80):
        one = chain("sq-memory", N, d, lam, seed=seed, start=start)
        one.advance(time)
        ours.append((one.sent_by_queue, one.sent_by_observation))
    for name, which in (("sent_by_queue", 0), ("sent_by_observation", 1)):
        for low in (55, 62, 66, 70):
            plain = [getattr(run, name)[:low].sum() / getattr(run, name).sum() for run in runs]
            lumped = [sent[which][:low].sum() / sent[which].sum() for sent in ours]
            assert_same_mean(plain, lumped, 0.25, f"{name} below {low}")


def test_plain_simulation_counts_the_jobs_that_come():
    run = reference.run("sq", 5, 2, 0.5, horizon=2000.0)
    assert run.occupancy.sum() == pytest.approx(1)
    assert abs(run.sent_by_queue.sum() - 5000) < SIGMAS * np.sqrt(5000)
    assert run.sent_by_queue.sum() == run.sent_by_observation.sum()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policy": "best"}, "policy = 'best'"),
        ({"policy": "sq-distinct", "d": 6}, "d = 6"),
        ({"jobs": -1}, "jobs = -1"),
    ],
)
def test_bad_arguments_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        reference.run(**{"policy": "sq", "N": 5, "d": 2, "lam": 0.5, "horizon": 1.0, **change})
