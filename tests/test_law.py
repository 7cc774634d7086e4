"""The lumped kernels against the solved finite chain, for every policy."""

import dchoices as dc
import pytest
from comparisons import assert_estimate, assert_mean, exact, long_runs
from dchoices import registry
from dchoices.kernels import memory, memory_cells

# policy, N, d, λ, buffer: the mass cut off by the buffer stays below what the comparisons can see.
CASES = [
    ("random", 2, 0, 0.6, 50),
    ("random", 3, 0, 0.5, 30),
    ("sq", 2, 1, 0.6, 50),
    ("sq", 2, 2, 0.6, 40),
    ("sq", 3, 2, 0.6, 30),
    ("sq", 3, 3, 0.6, 30),
    pytest.param("sq", 4, 2, 0.6, 20, marks=pytest.mark.slow),
    ("sq-distinct", 2, 2, 0.6, 40),
    ("sq-distinct", 3, 2, 0.6, 30),
    pytest.param("sq-distinct", 4, 1, 0.4, 18, marks=pytest.mark.slow),
    ("sq-distinct", 4, 3, 0.6, 20),
    ("sq-log", 2, 0, 0.6, 50),
    ("sq-log", 3, 0, 0.6, 30),
    ("sq-sqrt", 2, 0, 0.6, 40),
    ("sq-sqrt", 4, 0, 0.6, 20),
    pytest.param("sq-sqrt", 5, 0, 0.6, 15, marks=pytest.mark.slow),
    ("jsq", 2, 0, 0.7, 25),
    ("jsq", 3, 0, 0.7, 20),
    pytest.param("jsq", 4, 0, 0.7, 12, marks=pytest.mark.slow),
    ("jiq", 2, 0, 0.7, 50),
    ("jiq", 3, 0, 0.7, 35),
    pytest.param("jiq", 4, 0, 0.7, 22, marks=pytest.mark.slow),
    ("sq-memory", 1, 1, 0.6, 50),
    ("sq-memory", 2, 1, 0.5, 20),
    ("sq-memory", 2, 2, 0.7, 24),
    ("sq-memory", 3, 1, 0.6, 12),
    ("sq-memory", 3, 2, 0.6, 12),
    pytest.param("sq-memory", 4, 2, 0.3, 7, marks=pytest.mark.slow),
    pytest.param("sq-memory-distinct", 3, 1, 0.6, 12, marks=pytest.mark.slow),
    ("sq-memory-distinct", 2, 2, 0.7, 24),
    pytest.param("sq-memory-distinct", 3, 2, 0.6, 12, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("policy", "N", "d", "lam", "buffer"), CASES)
def test_jobs_are_sent_as_in_the_exact_chain(policy, N, d, lam, buffer):
    """As many jobs join servers with i others as leave servers with i + 1: λ·share_i = p_{i+1}."""
    solved = exact(policy, N, d, lam, buffer)
    assert solved.truncated_mass < 1e-5
    memory = registry.get(policy).memory
    by_queue, by_observation = long_runs(policy, N, d, lam, horizon=5000.0 if memory else 40_000.0)
    for i in range(4):
        assert_mean(by_queue[:, i], float(solved.occupancy[i + 1]) / lam, 0.03 if memory else 0.015, f"queue {i}")
    assert_mean(by_observation[:, 0], float(solved.dispatch_to_observation_zero), 0.03, "observation 0")


@pytest.mark.parametrize(("N", "d", "lam", "buffer"), [(2, 1, 0.5, 20), (3, 2, 0.6, 12)])
def test_the_kernel_for_many_servers_sends_jobs_as_in_the_exact_chain(N, d, lam, buffer, monkeypatch):
    monkeypatch.setattr(memory, "advance", memory_cells.advance)
    solved = exact("sq-memory", N, d, lam, buffer)
    by_queue, _ = long_runs("sq-memory", N, d, lam, horizon=4000.0)
    for i in range(4):
        assert_mean(by_queue[:, i], float(solved.occupancy[i + 1]) / lam, 0.04, f"queue {i}")


def messages(policy, N, d, idle):
    """Messages per job, from the definition: a query and a reply each, or the reports of idle servers."""
    probes = {"random": 0, "jsq": N, "sq-log": {2: 1, 3: 2, 4: 2}[N], "sq-sqrt": 2}.get(policy, d)
    return idle if policy == "jiq" else 2 * probes


@pytest.mark.parametrize(
    ("policy", "d", "lam"),
    [
        ("random", 0, 0.5),
        ("sq", 2, 0.6),
        ("sq-distinct", 2, 0.6),
        ("sq-log", 0, 0.5),
        ("sq-sqrt", 0, 0.6),
        ("jsq", 0, 0.7),
        ("jiq", 0, 0.5),
        ("sq-memory", 2, 0.6),
        ("sq-memory-distinct", 2, 0.6),
    ],
)
def test_stationary_estimates_meet_the_exact_chain(policy, d, lam):
    N = 3
    solved = exact(policy, N, d, lam, 12 if registry.get(policy).memory else 30)
    assert solved.truncated_mass < 1e-5
    ours = dc.stationary(policy, N, d, lam, warm_up=150.0, horizon=600.0, replicates=24, seed=5).squeeze()
    idle = float(solved.dispatch_to_idle)
    assert_estimate(ours, "dispatch_to_idle", idle, 0.08)
    assert_estimate(ours, "dispatch_to_observation_zero", float(solved.dispatch_to_observation_zero), 0.08)
    assert_estimate(ours, "mean_queue_length", float(solved.mean_queue_length), 0.2)
    assert_estimate(ours, "mean_response_time", float(solved.mean_response_time), 0.3)
    assert_estimate(ours, "messages_per_job", messages(policy, N, d, idle), 0.08)
    for level in range(4):
        assert_estimate(ours, "occupancy", float(solved.occupancy[level]), 0.08, (level,))
