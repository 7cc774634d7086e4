"""Policies with and without a d in one dataset."""

import dchoices as dc
import numpy as np
import pytest
import xarray as xr
from dchoices import registry

SHORT = {"warm_up": 2.0, "horizon": 4.0, "replicates": 2, "seed": 4}


def test_each_policy_is_what_it_is_alone():
    both = dc.compare({"random": 0, "sq": 3}, [50, 100], [0.6, 0.9], **SHORT)
    assert both.policy.values.tolist() == ["random", "sq"]
    assert both.probes.values.tolist() == [0, 3]
    assert "d" not in both.dims
    alone = dc.stationary("sq", [50, 100], 3, [0.6, 0.9], **SHORT).squeeze("d", drop=True)
    levels = alone.sizes["queue_length"]
    assert levels < both.sizes["queue_length"]
    xr.testing.assert_equal(both.sel(policy=["sq"], queue_length=slice(None, levels - 1)).drop_vars("probes"), alone)
    assert not both.occupancy.sel(policy="sq", queue_length=slice(levels, None)).any()
    assert both.attrs["seed"] == 4
    for name in both.variables:
        assert both[name].attrs["units"], name
        assert both[name].attrs["description"], name


@pytest.mark.parametrize(
    ("policies", "message"),
    [
        ({}, r"policies = \{\}: must be a mapping of at least one policy"),
        (["sq"], r"policies = \['sq'\]: must be a mapping of at least one policy to its d"),
        ({"best": 2}, "policy = 'best': must be one of jiq, jsq, "),
        ({"jsq": 2}, "d = 2: policy 'jsq' has no d, must be 0"),
        ({"random": 0, "sq": 0}, r"d = 0: must be an integer in \[1, 10000\]"),
        ({"sq-distinct": 60}, "d = 60: different servers are probed, must be at most N = 50"),
    ],
)
def test_bad_arguments_are_named(policies, message):
    with pytest.raises(ValueError, match=message):
        dc.compare(policies, 50, 0.9, **SHORT)


def test_several_d_make_a_policy_each_and_times_may_depend_on_where_they_are_for():
    both = dc.compare(
        {"sq": [2, 3], "jsq": [0]}, [50, 100], [0.6, 0.9],
        warm_up=lambda policy, N, d, lam: d + N * lam, horizon=4.0, replicates=3, seed=4,
    )  # fmt: skip
    assert both.policy.values.tolist() == ["sq(2)", "sq(3)", "jsq"]
    assert both.probes.values.tolist() == [2, 3, 0]
    expected = [[[d + N * lam for lam in (0.6, 0.9)] for N in (50, 100)] for d in (2, 3, 0)]
    np.testing.assert_allclose(both.warm_up.values, expected)
    alone = dc.stationary("sq", 100, 3, 0.9, warm_up=93.0, horizon=4.0, replicates=3, seed=4).squeeze()
    there = both.sel(policy="sq(3)", N=100, λ=0.9)
    for name in ("mean_response_time", "controlled_response_time", "controlled_response_time_ci95"):
        assert float(there[name]) == float(alone[name])


def test_labels():
    assert registry.label("sq", 2) == "sq(2)"
    assert registry.label("jsq", 0) == "jsq"
