"""Simulations against the exact chain, the per-server simulation, published values and their own promises."""

import dchoices as dc
import numpy as np
import pytest
import xarray as xr
from dchoices import per_server, simulation, starts
from reference_values import reference

# One chance in about 10^5 per comparison that a right simulation is refused.
SIGMAS = 4.4


def run_small(policy, N, d, lam, replicates=24, horizon=4000.0):
    return dc.stationary(policy, N, d, lam, warm_up=200.0, horizon=horizon, replicates=replicates, seed=5).squeeze()


def sigmas(value, expected, ci95, replicates=24):
    from scipy import special

    return abs(value - expected) / (ci95 / special.stdtrit(replicates - 1, 0.975))


@pytest.mark.parametrize(
    ("policy", "N", "d", "lam", "buffer"),
    [
        ("sq-memory", 2, 1, 0.5, 20),
        ("sq-memory", 2, 2, 0.8, 30),
        ("sq-memory", 3, 2, 0.7, 11),
        ("sq", 2, 2, 0.7, 40),
        ("sq", 3, 2, 0.7, 30),
        ("sq", 3, 1, 0.5, 30),
    ],
)
def test_lumped_kernel_agrees_with_the_exact_chain(policy, N, d, lam, buffer):
    exact = dc.exact_stationary(N, d, lam, buffer, policy)
    assert exact.truncated_mass < 2e-4
    ours = run_small(policy, N, d, lam)
    for name in ("dispatch_to_idle", "mean_queue_length", "mean_response_time"):
        assert sigmas(float(ours[name]), float(exact[name]), float(ours[f"{name}_ci95"])) < SIGMAS, name
    for level in range(4):
        value, width = float(ours.occupancy[level]), float(ours.occupancy_ci95[level])
        assert sigmas(value, float(exact.occupancy[level]), width) < SIGMAS, f"p_{level}"


@pytest.mark.parametrize(
    ("policy", "N", "d", "lam"), [("sq-memory", 2, 1, 0.5), ("sq-memory", 3, 2, 0.7), ("sq", 3, 2, 0.7)]
)
def test_per_server_simulation_agrees_with_the_exact_chain(policy, N, d, lam):
    exact = dc.exact_stationary(N, d, lam, 11 if N == 3 else 20, policy)
    runs = [per_server.run(policy, N, d, lam, horizon=1500.0, warm_up=50.0, seed=s) for s in range(12)]
    occupancy = np.array([run.occupancy[:4] for run in runs])
    idle = np.array([run.sent_by_queue[0] / run.sent_by_queue.sum() for run in runs])
    for level in range(4):
        error = occupancy[:, level].std(ddof=1) / np.sqrt(len(runs))
        assert abs(occupancy[:, level].mean() - float(exact.occupancy[level])) < 6 * error
    assert abs(idle.mean() - float(exact.dispatch_to_idle)) < 6 * idle.std(ddof=1) / np.sqrt(len(runs))


@pytest.mark.parametrize(("policy", "d"), [("sq-memory", 1), ("sq-memory", 2), ("sq", 2)])
def test_lumped_kernel_agrees_with_the_per_server_simulation(policy, d):
    """At N = 12, beyond the exact chain; dispatch by observation included, which lumping could get wrong."""
    N, lam = 12, 0.8
    runs = [per_server.run(policy, N, d, lam, horizon=400.0, warm_up=50.0, seed=s) for s in range(12)]
    plain = np.array([r.sent_by_observation[:2] / r.sent_by_observation.sum() for r in runs])
    occupancy = np.array([run.occupancy[:3] for run in runs])
    ours = dc.stationary(policy, N, d, lam, warm_up=50.0, horizon=1000.0, replicates=24, seed=2).squeeze()
    pairs = [(plain[:, 0], ours.dispatch_to_observation_zero, ours.dispatch_to_observation_zero_ci95)]
    pairs += [(occupancy[:, i], ours.occupancy[i], ours.occupancy_ci95[i]) for i in range(3)]
    for samples, value, width in pairs:
        error = np.hypot(samples.std(ddof=1) / np.sqrt(len(samples)), float(width) / 2)
        assert abs(samples.mean() - float(value)) < 6 * error


PUBLISHED = [
    (float(row["lam"]), int(row["N"]), float(row["mean_queue_length"]), float(row["ci95"]))
    for row in reference("sq_mean_queue_length")
]


@pytest.mark.parametrize(("lam", "N", "published", "published_ci95"), PUBLISHED)
def test_memoryless_kernel_agrees_with_published_values(lam, N, published, published_ci95):
    horizon = (120_000.0 if lam == 0.9 else 40_000.0) / N  # as many jobs for every N
    ours = dc.stationary("sq", N, 2, lam, warm_up=300.0, horizon=horizon, replicates=24, seed=3).squeeze()
    allowed = SIGMAS / 1.96 * np.hypot(float(ours.mean_queue_length_ci95), published_ci95)
    assert allowed < 0.03 * published, "too noisy to be a test"
    assert abs(float(ours.mean_queue_length) - published) < allowed


# One-run sanity values of SQ(d) with memory at N = 1000, good to about 1 %.
@pytest.mark.parametrize(("lam", "d", "response"), [(0.9, 2, 1.918), (0.9, 1, 2.678), (0.8, 3, 1.298), (0.4, 2, 0.999)])
def test_memory_kernel_agrees_with_sanity_values(lam, d, response):
    ours = dc.stationary("sq-memory", 1000, d, lam, warm_up=50.0, horizon=50.0, replicates=6)
    assert float(ours.mean_response_time.squeeze()) == pytest.approx(response, rel=0.01)


def test_stationary_runs_meet_the_fluid_fixed_point():
    ours = dc.stationary("sq-memory", 100_000, 2, 0.9, warm_up=5.0, horizon=40.0, replicates=3).squeeze()
    point = dc.fixed_point(0.9, 2)
    assert ours.occupancy.values[:4] == pytest.approx(point.queue_length_pmf.values, abs=3e-3)
    assert float(ours.mean_response_time) == pytest.approx(point.mean_response_time.item(), abs=5e-3)
    assert int(ours.max_queue) == dc.queue_bound(0.9, 2)


def test_runs_do_not_depend_on_neighbours_order_or_number_of_replicates():
    t = [0.0, 1.0, 3.0]
    alone = dc.simulate("sq-memory", 50, 2, 0.9, t, replicates=1, seed=9)
    among = dc.simulate("sq-memory", [200, 50], [1, 2], [0.3, 0.9], t, replicates=3, seed=9)
    same = among.sel(N=[50], d=[2], λ=[0.9], replicate=[0])
    for name in ("occupancy", "sent_by_queue", "sent_by_observation"):
        values = same[name].values
        assert (values[..., : alone.sizes["queue_length"]] == alone[name].values).all()
        assert not values[..., alone.sizes["queue_length"] :].any()


@pytest.mark.parametrize(
    "change",
    [{"seed": 2}, {"policy": "sq"}, {"N": 101}, {"d": 3}, {"lam": 0.90000001}, {"start": "stale-1"}, {"replicate": 2}],
)
def test_every_part_of_the_key_changes_the_stream(change):
    key = {"seed": 1, "policy": "sq-memory", "N": 100, "d": 2, "lam": 0.9, "start": "empty", "replicate": 0}
    one = simulation.stream(**key).generate_state(4)
    other = simulation.stream(**{**key, **change}).generate_state(4)
    assert (one != other).any()
    assert (one == simulation.stream(**key).generate_state(4)).all()


@pytest.mark.parametrize("policy", ["sq", "sq-memory"])
def test_dispatch_counts_balance_the_queues(policy):
    """Jobs present = jobs at the start + jobs sent - jobs served; sent counts agree in total."""
    ds = dc.simulate(policy, 200, 2, 0.8, np.linspace(0, 5, 6), replicates=2)
    assert (ds.sent_by_queue.sum("queue_length") == ds.sent_by_observation.sum("queue_length")).all()
    rate = ds.sent_by_queue.sum("queue_length").isel(t=slice(1, None)) / 200
    assert float(rate.mean()) == pytest.approx(0.8, abs=0.1)
    assert ds.occupancy.sum("queue_length").values == pytest.approx(1)
    assert (ds.occupancy.isel(t=0, queue_length=0) == 1).all()


def test_starts_are_met_exactly_in_counts():
    ds = dc.simulate("sq-memory", 1000, 2, 0.9, [0.0], replicates=1, start="fixed-point")
    expected = dc.fixed_point(0.9, 2).queue_length_pmf.values
    assert ds.occupancy.values.ravel() == pytest.approx(expected, abs=2e-3)
    overloaded = dc.simulate("sq", 10, 2, 0.9, [0.0], replicates=1, start=dc.overloaded(3))
    assert overloaded.occupancy.values.ravel().tolist() == [0, 0, 0, 1]


def test_counts_sum_to_n_at_any_size():
    for N in (1, 3, 7, 10**10):
        counts = starts.counts(np.array([1 / 3, 1 / 3, 1 / 3]), N)
        assert counts.sum() == N
        assert counts.max() - counts.min() <= 1


def test_long_queues_grow_the_arrays():
    """d = 1 without memory at high load: hundreds of levels, none lost."""
    ds = dc.stationary("sq", 50, 1, 0.98, warm_up=0.0, horizon=20.0, replicates=2)
    assert ds.occupancy.sum("queue_length").item() == pytest.approx(1)
    assert ds.max_queue.item() > simulation.SPARE_LEVELS + 8


def test_long_queues_keep_their_law():
    """M/M/1 stays at its fixed point λ^i, over several blocks of levels."""
    ours = dc.stationary("sq", 20_000, 1, 0.97, warm_up=5.0, horizon=10.0, replicates=2).squeeze()
    for i in (1, 31, 32, 33, 64, 100):
        assert float(ours.occupancy_tail[i]) == pytest.approx(0.97**i, rel=0.03)


def test_ten_billion_servers():
    """Counts beyond 2^32; a handful of events."""
    ds = dc.simulate("sq-memory", 10**10, 2, 0.5, [1e-7], replicates=1)
    sent = int(ds.sent_by_queue.sum())
    assert 200 < sent < 900
    assert ds.occupancy.values.ravel()[1] == pytest.approx(sent / 1e10)


def test_warm_up_that_is_too_short_is_flagged():
    short = dc.stationary("sq", 3000, 1, 0.9, warm_up=0.0, horizon=10.0, replicates=8)
    assert short.warm_up_ok.all(), "a start at the fixed point needs no warm-up here"
    halves = np.array([[1.0, 1.5], [1.1, 1.6], [0.9, 1.4], [1.0, 1.52]])
    from dchoices import statistics

    assert not statistics.warm_up_is_long_enough(statistics.halves_statistic(halves[:, 0], halves[:, 1]), 4)


def test_the_warm_up_is_run_and_left_out():
    """From the fixed point nothing shows it but the stream: other warm-ups, other samples; counters start after it."""
    short, long = (dc.stationary("sq-memory", 200, 2, 0.9, warm_up=w, horizon=50.0, replicates=2) for w in (0.0, 30.0))
    assert (short.occupancy.values[..., 0] != long.occupancy.values[..., 0]).any()
    assert long.warm_up.item() == 30.0
    cold = dc.stationary("sq-memory", 2000, 1, 0.5, warm_up=0.0, horizon=20.0, replicates=2).squeeze()
    assert float(cold.mass_above_bound) == pytest.approx(float(cold.occupancy_tail[dc.queue_bound(0.5, 1) + 1 :].sum()))
    heavy = dc.stationary("sq", 2000, 1, 0.5, warm_up=5.0, horizon=20.0, replicates=2).squeeze()
    assert float(heavy.mass_above_bound) == pytest.approx(float(heavy.occupancy_tail[dc.queue_bound(0.5, 1) + 1]))


def test_response_time_tail_is_the_erlang_mixture():
    ds = dc.stationary("sq", 1000, 1, 0.5, warm_up=5.0, horizon=50.0, replicates=6).squeeze()
    # M/M/1: the response time is exponential with rate 1 - λ.
    assert ds.response_time_tail.values == pytest.approx(np.exp(-0.5 * ds.response_time.values), abs=0.02)
    assert isinstance(ds, xr.Dataset)


GOOD = {"policy": "sq-memory", "N": 10, "d": 2, "lam": 0.5}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policy": "best"}, r"policy = 'best': must be one of sq, sq-memory"),
        ({"N": 0}, r"N = 0: must be an integer in \[1, "),
        ({"N": 10.0}, r"N = 10\.0"),
        ({"N": []}, r"N = \[\]: must hold at least one value"),
        ({"N": [5, 5]}, r"N = \[5, 5\]: must not hold a value twice"),
        ({"d": 0}, r"d = 0: must be an integer in \[1, 10000\]"),
        ({"lam": 1.5}, r"lam = 1\.5: must be a number greater than 0 and less than 1"),
        ({"lam": [0.5, "0.6"]}, r"lam = '0\.6'"),
        ({"seed": -1}, r"seed = -1"),
        ({"seed": True}, r"seed = True"),
    ],
)
def test_bad_arguments_are_named_before_anything_runs(change, message):
    with pytest.raises(ValueError, match=message):
        dc.simulate(**{**GOOD, **change}, t=[1.0])
    with pytest.raises(ValueError, match=message):
        dc.stationary(**{**GOOD, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"replicates": 1}, "replicates = 1"),
        ({"horizon": 0}, "horizon = 0"),
        ({"horizon": 1.0}, "horizon = 1: about 5 jobs arrive"),
        ({"warm_up": -1.0}, "warm_up = -1.0"),
        ({"warm_up": [1.0, 2.0]}, "warm_up holds 2 times"),
        ({"response_time": [2.0, 1.0]}, "response_time"),
    ],
)
def test_bad_stationary_arguments_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        dc.stationary(**GOOD, **change)
