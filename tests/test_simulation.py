"""Trajectories and stationary estimates: their books, their starts, and the arguments that they refuse.

Their law is tested in test_law, test_limits and test_reference, their streams in test_streams.
"""

import dchoices as dc
import numpy as np
import pytest
import xarray as xr


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
        ({"policy": "best"}, r"policy = 'best': must be one of jiq, jsq, random, sq, sq-distinct"),
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
        ({"policy": ["sq", "jsq"]}, "'jsq' has no d, must be run on its own with d = 0"),
        ({"policy": "jsq"}, "d = 2: policy 'jsq' has no d, must be 0"),
        ({"policy": "sq-distinct", "d": [2, 11]}, "d = 11: different servers are probed, must be at most N = 10"),
        ({"horizon": 0}, "horizon = 0"),
        ({"horizon": 1.0}, "horizon = 1: about 5 jobs arrive"),
        ({"warm_up": -1.0}, "warm_up = -1.0"),
        ({"warm_up": [1.0, 2.0]}, "warm_up = .*: holds 2 times"),
        ({"response_time": [2.0, 1.0]}, "response_time"),
    ],
)
def test_bad_stationary_arguments_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        dc.stationary(**{**GOOD, **change})
