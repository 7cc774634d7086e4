"""The solved finite chain against closed forms, small chains written out, and published values."""

import dchoices as dc
import numpy as np
import pytest
from comparisons import exact
from dchoices import registry
from dchoices.theory import exact_chain
from reference_values import reference

BUILT_IN = [policy.name for policy in registry._BUILT_IN]


def a_d(policy, d=2):
    return d if registry.get(policy).takes_d else 0


def geometric(lam, levels):
    return [(1 - lam) * lam**i for i in range(levels)]


@pytest.mark.parametrize("policy", BUILT_IN)
def test_one_server_is_m_m_1_under_every_policy(policy):
    point = dc.exact_stationary(1, a_d(policy, 1), 0.5, 45, policy)
    assert point.occupancy.values[:6] == pytest.approx(geometric(0.5, 6), abs=1e-9)
    assert point.mean_response_time.item() == pytest.approx(2, abs=1e-8)
    assert point.dispatch_to_idle.item() == pytest.approx(0.5, abs=1e-9)


@pytest.mark.parametrize(("policy", "d"), [("random", 0), ("sq", 1), ("sq-distinct", 1)])
@pytest.mark.parametrize("N", [2, 3])
def test_one_probe_makes_every_server_m_m_1(policy, d, N):
    point = dc.exact_stationary(N, d, 0.4, 25, policy)
    assert point.occupancy.values[:6] == pytest.approx(geometric(0.4, 6), abs=1e-8)
    assert point.dispatch_to_observation_zero.item() == pytest.approx(0.6, abs=1e-8)


def two_servers(lam, levels, to_shorter):
    """Solve two servers by the shorter queue m and the difference n, written out, for the mean queue per server.

    `to_shorter` (m, n) -> probability that a job goes to the shorter queue. An independent dense solve: the other one
    iterates on multisets.
    """
    place = {(m, n): m * levels + n for m in range(levels) for n in range(levels)}
    Q = np.zeros((levels**2, levels**2))

    def add(state, other, rate):
        if rate > 0 and other in place:
            Q[place[state], place[other]] += rate
            Q[place[state], place[state]] -= rate

    for m, n in place:
        if n == 0:
            add((m, n), (m, 1), 2 * lam)
            add((m, n), (m - 1, 1), 2)
        else:
            add((m, n), (m + 1, n - 1), 2 * lam * to_shorter(m, n))
            add((m, n), (m, n + 1), 2 * lam * (1 - to_shorter(m, n)))
            add((m, n), (m, n - 1), 1)
            add((m, n), (m - 1, n + 1), 1)
    Q[:, 0] = 1
    law = np.linalg.solve(Q.T, np.eye(levels**2)[0]).reshape(levels, levels)
    m, n = np.indices(law.shape)
    return law, float((law * (2 * m + n)).sum() / 2)


@pytest.mark.parametrize(
    ("policy", "d", "to_shorter"),
    [
        ("jsq", 0, lambda m, n: 1.0),
        ("sq-distinct", 2, lambda m, n: 1.0),
        ("sq-memory-distinct", 2, lambda m, n: 1.0),  # both are probed
        ("jiq", 0, lambda m, n: 1.0 if m == 0 else 0.5),
        ("sq", 2, lambda m, n: 0.75),  # missed only where both probes hit the longer
        ("sq", 3, lambda m, n: 0.875),
        ("sq-sqrt", 0, lambda m, n: 0.75),  # 2 probes
        ("sq-log", 0, lambda m, n: 0.5),  # 1 probe
    ],
)
def test_two_servers_written_out(policy, d, to_shorter):
    lam = 0.5
    law, mean = two_servers(lam, 24, to_shorter)
    point = dc.exact_stationary(2, d, lam, 23, policy)
    assert point.mean_queue_length.item() == pytest.approx(mean, abs=2e-5)
    idle = law[0].sum() / 2 + law[0, 0] / 2
    assert point.occupancy.values[0] == pytest.approx(idle, abs=2e-6)
    both_or_one = law[0].sum() if to_shorter(0, 1) == 1 else law[0, 0] + to_shorter(0, 1) * law[0, 1:].sum()
    assert point.dispatch_to_idle.item() == pytest.approx(both_or_one, abs=2e-6)


def test_the_shorter_queue_of_two_decays_by_the_square_of_the_load():
    """J. F. C. Kingman, Two similar queues in parallel, Ann. Math. Statist. 32 (1961): the ratio is λ²."""
    point = dc.exact_stationary(2, 0, 0.7, 40, "jsq")
    ratio = point.occupancy.values[12:18] / point.occupancy.values[11:17]
    assert ratio == pytest.approx(0.49, abs=1e-4)


@pytest.mark.parametrize("N", [2, 3])
def test_policies_are_ordered_as_they_know_more(N):
    means = [
        exact(policy, N, d, 0.6, 30).mean_queue_length.item()
        for policy, d in (("jsq", 0), ("sq-distinct", 2), ("sq", 2), ("random", 0))
    ]
    assert means == sorted(means)
    assert exact("jsq", N, 0, 0.6, 30).mean_queue_length < exact("jiq", N, 0, 0.6, 30).mean_queue_length


@pytest.mark.parametrize("policy", ["sq-memory", "sq-memory-distinct"])
def test_memory_helps_most_when_all_are_probed(policy):
    """d = N different probes are jsq; with replacement some memories are stale, and many probes mend that."""
    jsq = exact("jsq", 2, 0, 0.6, 30).mean_queue_length.item()
    means = [dc.exact_stationary(2, d, 0.6, 16, policy).mean_queue_length.item() for d in (1, 2)]
    if policy == "sq-memory":
        means.append(dc.exact_stationary(2, 30, 0.6, 16, policy).mean_queue_length.item())
    assert means == sorted(means, reverse=True)
    assert means[-1] == pytest.approx(jsq, abs=1e-5)


@pytest.mark.parametrize("policy", BUILT_IN)
def test_work_is_conserved(policy):
    """A share 1 - λ is idle; as many jobs join idle servers as leave a server idle."""
    point = dc.exact_stationary(3, a_d(policy), 0.5, 10 if registry.get(policy).memory else 30, policy)
    assert point.occupancy.sum().item() == pytest.approx(1)
    assert 1 - point.occupancy.values[0] == pytest.approx(0.5, abs=1e-4)
    assert point.mean_response_time.item() == pytest.approx(point.mean_queue_length.item() / 0.5)
    if registry.get(policy).memory:
        assert point.dispatch_to_observation_zero < point.dispatch_to_idle, "some idle servers are not known to be"
    else:
        # Two computations: from the rates of departure, and from the rule of the policy.
        assert point.dispatch_to_observation_zero.item() == pytest.approx(point.dispatch_to_idle.item(), abs=1e-6)


@pytest.mark.parametrize(("row", "buffer"), zip(reference("exact_chain"), (20, 10), strict=True))
def test_published_values(row, buffer):
    point = dc.exact_stationary(int(row["N"]), int(row["d"]), float(row["lam"]), buffer)
    truncation = float(row["truncation"])
    assert point.truncated_mass.item() < truncation
    expected = [float(row[f"p_{i}"]) for i in range(3)]
    assert point.occupancy.values[:3] == pytest.approx(expected, abs=2 * truncation)
    assert point.dispatch_to_idle.item() == pytest.approx(float(row["dispatch_to_idle"]), abs=2 * truncation)
    assert point.mean_queue_length.item() == pytest.approx(float(row["mean_queue_length"]), abs=20 * truncation)


def test_hundreds_of_thousands_of_states_are_solved():
    point = dc.exact_stationary(3, 2, 0.7, 14)
    assert point.attrs["states"] > 280_000
    smaller = dc.exact_stationary(3, 2, 0.7, 11)
    assert point.truncated_mass < smaller.truncated_mass
    change = abs(point.mean_queue_length.item() - smaller.mean_queue_length.item())
    assert change < 20 * smaller.truncated_mass.item()


@pytest.mark.parametrize(
    ("policy", "N", "d", "buffer"), [("sq-memory", 2, 2, 16), ("jiq", 3, 0, 20), ("sq-memory", 1, 1, 30)]
)
def test_the_solution_is_stationary(policy, N, d, buffer):
    """The residual, and against a dense solve where the chain is small."""
    i, _, rates = exact_chain._enumerate(policy, N, d, 0.7, buffer)
    weight = exact_chain._solve(rates, i.sum(axis=1))
    out = np.asarray(rates.sum(axis=1)).ravel()
    assert (weight >= 0).all()
    assert weight.sum() == pytest.approx(1)
    assert np.abs(rates.T @ weight - out * weight).sum() < 1e-11
    if weight.size < 2000:
        Q = rates.toarray() - np.diag(out)
        Q[:, 0] = 1
        assert weight == pytest.approx(np.linalg.solve(Q.T, np.eye(weight.size)[0]), abs=1e-12)


def test_only_reachable_states_are_listed():
    """With memory an observation is never below its queue, and one is never above what was ever sent."""
    i, j, _ = exact_chain._enumerate("sq-memory", 2, 1, 0.5, 4)
    assert (i <= j).all()
    i, j, rates = exact_chain._enumerate("sq", 3, 2, 0.5, 4)
    assert len(i) == 35  # multisets of 3 from 5 lengths
    assert not j.any()
    assert rates.shape == (35, 35)


def test_a_buffer_that_cuts_off_too_much_is_refused():
    with pytest.raises(ValueError, match=r"buffer = 4: .* tolerance = 0\.01; a larger buffer or a lower lam helps"):
        dc.exact_stationary(2, 1, 0.5, 4)
    allowed = dc.exact_stationary(2, 1, 0.5, 4, tolerance=0.1)
    assert 0.01 < allowed.truncated_mass < 0.1
    with pytest.raises(ValueError, match=r"tolerance = 1e-06"):
        dc.exact_stationary(2, 1, 0.5, 12, tolerance=1e-6)


def test_a_users_policy_cannot_be_solved():
    dc.register_policy("anywhere", lambda at_least, d, rng: 0, 0.0)
    try:
        with pytest.raises(ValueError, match="policy = 'anywhere': registered by a program"):
            dc.exact_stationary(2, 1, 0.5, 10, "anywhere")
    finally:
        del registry._REGISTRY["anywhere"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"N": 0}, r"N = 0: "),
        ({"N": 6}, r"N = 6: "),
        ({"N": 5, "buffer": 400}, r"buffer = 400: about .* states at N = 5, must be at most"),
        ({"d": 0}, r"d = 0: "),
        ({"buffer": 0}, r"buffer = 0: "),
        ({"lam": 1.0}, r"lam = 1\.0: "),
        ({"tolerance": 0.0}, r"tolerance = 0\.0: "),
        ({"policy": "best"}, r"policy = 'best': "),
        ({"policy": "jsq", "d": 2}, r"d = 2: policy 'jsq' has no d, must be 0"),
        ({"policy": "sq-distinct", "d": 3}, r"d = 3: different servers are probed, must be at most N = 2"),
    ],
)
def test_bad_arguments_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        dc.exact_stationary(**{"N": 2, "d": 1, "lam": 0.5, "buffer": 4, **change})


@pytest.mark.parametrize(("most", "message"), [(1000, "about .* states"), (4000, "more than 4000 states")])
def test_too_many_states_are_refused_before_or_while_they_are_listed(monkeypatch, most, message):
    monkeypatch.setattr(exact_chain, "MAX_STATES", most)
    with pytest.raises(ValueError, match=f"buffer = 12: {message} at N = 2, must be"):
        dc.exact_stationary(2, 2, 0.6, 12)


def test_sweeps_that_do_not_settle_are_reported(monkeypatch):
    monkeypatch.setattr(exact_chain, "MOST_SWEEPS", 2)
    with pytest.raises(RuntimeError, match="the solution stopped at a residual of"):
        dc.exact_stationary(2, 2, 0.6, 12)
