"""The live notebook's figures: what they hold, and that the controls change them."""

import dchoices as dc
import numpy as np
import pytest
from bokeh.models import Plot
from dchoices import registry
from dchoices.plots import explore

T = np.linspace(0, 5, 11)
EMPTY = {"start": "empty", "t": T, "seed": 1}


def tail(pmf):
    return np.asarray(pmf)[..., ::-1].cumsum(axis=-1)[..., ::-1]


def padded(values):
    return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, explore.LONGEST + 1 - values.shape[-1])])


def test_shares_are_those_of_the_public_functions():
    shares = explore.tails("sq-memory", 10_000, 2, 0.9, **EMPTY)
    run = dc.simulate("sq-memory", 10_000, 2, 0.9, T, replicates=1, seed=1).squeeze()
    np.testing.assert_allclose(shares.simulated, padded(tail(run.occupancy)), atol=1e-12)
    np.testing.assert_allclose(shares.fluid, padded(tail(dc.fluid_path(0.9, 2, T).occupancy)), atol=1e-12)
    np.testing.assert_allclose(shares.fixed_point, padded(tail(dc.fixed_point(0.9, 2).queue_length_pmf)), atol=1e-12)
    assert shares.attrs == {"N": 10_000, "longest_queue": run.max_queue[-1], "bound": 3}
    assert abs(shares.simulated - shares.fluid).max() < 0.03


def test_policies_without_a_limit_are_drawn_without():
    shares = explore.tails("sq-log", 1000, 2, 0.9, **EMPTY)
    assert shares.simulated.notnull().all()
    assert shares.fluid.isnull().all()
    assert shares.fixed_point.isnull().all()
    assert "bound" not in shares.attrs


@pytest.mark.parametrize("policy", dc.policies())
@pytest.mark.parametrize("start", explore.STARTS)
def test_every_system_on_offer_can_be_shown(policy, start):
    """At the lightest load and the heaviest, where queues of `random` are longer than a fluid path may hold."""
    for lam in (explore.LOADS[0], explore.LOADS[-1]):
        t = np.linspace(0, explore.FARTHEST, 3)
        shares = explore.tails(policy, explore.SIZES[0], explore.PROBES[-1], lam, start, t, seed=1)
        assert (shares.simulated.diff("i") <= 0).all()
        if registry.get(policy).fluid:
            assert (shares.fluid.diff("i") <= 1e-9).all()
            assert shares.fluid[0].values == pytest.approx(shares.simulated[0].values, abs=0.011)


@pytest.fixture
def shown():
    """The explorer, and the columns that its two figures draw, as lists by figure, element and column."""
    page = dc.explore(N=1000, seed=1)
    figures = sorted(page.get_root().select({"type": Plot}), key=lambda figure: figure.title.text, reverse=True)

    def columns():
        sources = [[part.data_source.data for part in figure.renderers] for figure in figures]
        return [[{name: np.array(column).tolist() for name, column in source.items()} for source in figure]
                for figure in sources]  # fmt: skip

    return page, columns


@pytest.mark.parametrize(
    ("control", "value"), [(0, "sq"), (1, 0.5), (2, 4), (3, 10_000), (4, "overloaded-3")],
    ids=["policy", "load", "probes", "servers", "start"],
)  # fmt: skip
def test_every_control_redraws_both_figures(shown, control, value):
    page, columns = shown
    before = columns()
    page[0][control].value = value
    assert [str(old) == str(new) for old, new in zip(before, columns(), strict=True)] == [False, False]
    policy, lam, d, N, start = (one.value for one in page[0])
    expected = explore.tails(policy, N, d, lam, start, np.linspace(0, 10, explore.TIMES), seed=1)
    in_time, at_the_end = columns()
    np.testing.assert_array_equal(in_time[0]["ys"], expected.simulated[:, 1 : 1 + explore.IN_TIME].T)
    np.testing.assert_array_equal(at_the_end[-1]["share"], expected.simulated[-1].where(lambda x: x > 0))


def test_d_is_greyed_out_where_a_policy_has_none(shown):
    page, _ = shown
    policy, d = page[0][0], page[0][2]
    assert not d.disabled
    policy.value = "jsq"
    assert d.disabled
    policy.value = "sq"
    assert not d.disabled


def test_values_that_are_not_on_offer_are_added():
    page = dc.explore("sq", N=123, d=12, lam=0.7071, start="random-5")
    assert [control.value for control in page[0]] == ["sq", 0.7071, 12, 123, "random-5"]
    assert list(page[0][3].options)[:3] == ["100", "123", "1\u202f000"]


def test_a_policy_of_ones_own_is_on_offer(monkeypatch):
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))

    def at_random(at_least, d, rng):
        rank, queue = dc.uniform(rng) * at_least[0], 0
        while at_least[queue + 1] > rank:
            queue += 1
        return queue

    dc.register_policy("own", at_random, messages_per_job=0)
    page = dc.explore("own", N=100)
    assert "own" in page[0][0].options


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"policy": "sqq"}, "policy = 'sqq': must be one of jiq, "),
        ({"N": 5}, r"N = 5: must be an integer in \[10, 10000000000\]"),
        ({"N": 15, "d": 20}, "d = 20: must be at most N = 15"),
        ({"d": 0}, "d = 0: must be an integer in "),
        ({"lam": 1}, "lam = 1: must be a number greater than 0 and less than 1"),
        ({"start": [[1]]}, r"start = \[\[1\]\]: must be a name, such as empty, "),
        ({"start": "full"}, "start = 'full': must be empty, "),
        ({"t_end": 0}, "t_end = 0: must be at least 0.01 and at most 100"),
        ({"t_end": 101}, "t_end = 101: must be at least 0.01 and at most 100"),
        ({"seed": -1}, "seed = -1: must be an integer in "),
    ],
)
def test_what_cannot_be_shown_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        dc.explore(**given)
