"""Where jobs go, by observation: the balance of observations, and the recursion on windows of paths."""

import itertools

import dchoices as dc
import numpy as np
import pytest
import xarray as xr
from dchoices import recursion, registry

# Six standard errors: all cells below together exceed it by chance once in ten thousand runs; the seed is fixed too.
SIX_SIGMA = 6


@pytest.mark.parametrize(("policy", "probes"), [("sq-memory", [1, 2, 3]), ("sq-memory-distinct", [1, 2, 3])])
def test_servers_probed_is_the_mean_number_of_different_probes(policy, probes):
    for d in probes:
        draw = itertools.permutations if policy.endswith("distinct") else lambda s, d: itertools.product(s, repeat=d)
        counted = np.mean([len(set(drawn)) for drawn in draw(range(4), d)])
        assert registry.get(policy).servers_probed(4, d) == pytest.approx(counted)
    assert registry.get(policy).servers_probed(1, 1) == 1


@pytest.mark.parametrize(
    ("policy", "N", "d", "options"),
    [
        ("sq-memory", 3, 2, {}),
        ("sq-memory", 10, 3, {}),
        ("sq-memory-distinct", 5, 2, {}),
        ("sq-memory", 5, 2, {"speeds": {0.5: 0.4, 1.5: 0.6}}),
        ("sq-memory", 5, 2, {"service": "deterministic"}),
    ],
)
def test_observations_are_in_balance_in_every_finite_system(policy, N, d, options):
    """Exactly so for any rule of dispatch and any service: at small N, where d is no substitute for d_N."""
    ds = dc.stationary(policy, N, d, 0.8, warm_up=50.0, horizon=1000.0, replicates=10, seed=2, **options).squeeze()
    error = ds.observation_balance_ci95 / 2.262  # Student's quantile: to the standard error of ten replicates
    assert (abs(ds.observation_balance) <= SIX_SIGMA * error + 1e-12).all()
    exact = registry.get(policy).servers_probed(N, d)
    other = N * (1 - (1 - 1 / N) ** d) if exact == d else d
    wrong = ds.observation_balance + (exact - other) * (ds.occupancy - ds.observation_occupancy)
    assert (abs(wrong) > SIX_SIGMA * error).any()


@pytest.mark.parametrize("policy", ["sq", "sq-memory"])
def test_fractions_by_observation(policy):
    """With memory an observation is never below the queue, without it is the queue."""
    ds = dc.simulate(policy, 500, 2, 0.8, np.linspace(0, 5, 11), replicates=2, start="overloaded-2")
    at_least = [ds[name].values[..., ::-1].cumsum(axis=-1) for name in ("occupancy", "observation_occupancy")]
    assert at_least[1][..., -1] == pytest.approx(1)
    assert (at_least[1] >= at_least[0] - 1e-12).all()
    assert (at_least[1] == at_least[0]).all() == (policy == "sq")
    assert ds.observation_occupancy.isel(t=0, queue_length=2).values == pytest.approx(1)


def test_fractions_by_observation_follow_the_fluid_path():
    t = np.linspace(0, 4, 9)
    ds = dc.simulate("sq-memory", 200_000, 2, 0.6, t, replicates=1, start="overloaded-4", seed=1).squeeze()
    limit = dc.fluid_path(0.6, 2, t, start="overloaded-4").state.sum("i").values
    assert dc.total_variation(ds.observation_occupancy.values, limit).max() < 0.01


@pytest.mark.parametrize(
    ("lam", "d", "start"), [(0.6, 2, "overloaded-4"), (0.9, 3, "overloaded-4"), (0.99, 2, "empty")]
)
def test_the_fluid_path_obeys_the_recursion(lam, d, start):
    """R_j - R_{j-1} = d p_j below k, and at every level d (p_j - y_j) - y_j' / λ."""
    t = np.arange(0, 8, 0.01)
    path = dc.fluid_path(lam, d, t, start)
    table = dc.fluid_dispatch(lam, d, t, start).squeeze()
    steps = np.diff(table.fluid_dispatch, axis=1, prepend=0)
    p, y, k = path.occupancy.values, path.state.sum("i").values, table["mode"].values
    below = np.arange(p.shape[1]) < k[:, None]
    assert below[:, 1].any()
    assert steps[below] == pytest.approx(d * p[below], abs=1e-6)
    smooth = np.convolve(np.diff(k, prepend=k[0]) != 0, np.ones(9), "same") == 0  # away from the kinks of y
    rate = np.gradient(y, t, axis=0)
    balance = (d * (p - y) - rate / lam)[5:-5][smooth[5:-5]]
    assert steps[5:-5][smooth[5:-5]] == pytest.approx(balance, abs=1e-3)


def test_fluid_dispatch_is_the_product_of_paths():
    t = [0.0, 1.0, 3.0]
    table = dc.fluid_dispatch([0.4, 0.9], [1, 2], t, start="overloaded-3")
    for d, lam in itertools.product((1, 2), (0.4, 0.9)):
        path, point = dc.fluid_path(lam, d, t, start="overloaded-3"), table.sel(d=d, λ=lam)
        levels = path.sizes["j"]
        assert (point.fluid_dispatch.values[:, :levels] == path.dispatch.values).all()
        assert (point.fluid_dispatch.values[:, levels:] == 0).all()
        assert (point["mode"] == path["mode"]).all()


def test_windows_stay_away_from_switches():
    t = np.arange(0, 10.5, 0.5)
    mode = np.where(t < 5.2, 3, 2)  # the switch lies between 5 and 5.5
    N = 1000  # the margin is 0.5
    ends = {k: t[1:][recursion.well_inside(mode, t, k, N)] for k in (1, 2, 3)}
    assert ends[1].size == 0
    assert ends[3].tolist() == t[(t > 0) & (t <= 4.5)].tolist()
    assert ends[2].tolist() == t[t >= 6.5].tolist()
    assert recursion.well_inside(np.full(t.size, 3), t, 3, N).all()


def test_terms_are_those_of_the_window_alone():
    """Two replicates on an uneven grid; jobs outside the window would spoil the shares."""
    t = np.array([0.0, 1.0, 3.0, 4.0])
    window = np.array([True, True, False])
    sent = np.array([[[0, 0], [1, 3], [1, 3], [90, 0]], [[0, 0], [0, 4], [4, 0], [90, 0]]])
    first = np.array([[0.0, 0.2, 0.4, 1.0], [0.5, 0.5, 0.5, 1.0]])
    steps, shares = recursion.recursion_terms(sent, np.stack([first, 1 - first], axis=-1), t, window)
    assert steps == pytest.approx(np.array([[0.25, 0.5], [0.5, 0.0]]))
    # ∫ p = 0.1 · 1 + 0.3 · 2 over a length of 3
    assert shares[:, 0] == pytest.approx([0.7 / 3, 0.5])


def runs(**changes):
    """Paths on which k is 3 up to t = 2 and then 1, all jobs go to 3, and R_j - R_{j-1} -> 0.1 for j < 3."""
    t = np.arange(0, 4.1, 0.1)
    mode = np.where(t < 2, 3, 1)
    limit = np.where(np.arange(5) < 3, 0.1 * (np.arange(5) + 1), 0.0) * np.ones((t.size, 1))
    sent = np.broadcast_to(np.arange(5) == 3, (2, t.size, 5)).astype(int) * 100
    dims = ("replicate", "t", "queue_length")
    one = xr.Dataset(
        {"sent_by_observation": (dims, sent), "occupancy": (dims, np.full(sent.shape, 0.2)),
         "fluid_dispatch": (dims[1:], limit), "mode": ("t", mode)},
        {"replicate": [0, 1], "t": t, "queue_length": np.arange(5)},
    )  # fmt: skip
    one = one.assign(**changes)
    by_run = {"start": ["overloaded-3"], "policy": ["sq-memory"], "N": [1000, 10**6], "d": [2], "λ": [0.6]}
    names = ["sent_by_observation", "occupancy"]
    return (
        one[names]
        .expand_dims(by_run)
        .merge(one.drop_vars(names).expand_dims({k: v for k, v in by_run.items() if k in ("start", "d", "λ")}))
    )


def test_windows_hold_the_levels_below_k():
    (window,) = recursion.windows(runs(), "sq-memory")  # while k = 1 there is no j with 1 <= j < k
    assert window.place == {"start": "overloaded-3", "N": 10**6, "d": 2, "λ": 0.6}
    assert (window.k, window.levels) == (3, [1, 2])
    assert window.steps == pytest.approx(np.tile([0, 0, 0, 1, -1], (2, 1)))
    assert window.shares == pytest.approx(0.2)


def test_levels_with_few_servers_and_short_windows_are_left_out():
    dispatch = runs().fluid_dispatch[0, 0, 0]
    few = dispatch - 0.09 * (dispatch.queue_length >= 1)  # the step at 1, d p_1, is 0.01
    (window,) = recursion.windows(runs(fluid_dispatch=few), "sq-memory")
    assert window.levels == [2]
    short = runs()["mode"][0, 0, 0] * 0 + 1 + 2 * (dispatch.t < 0.4)
    assert not list(recursion.windows(runs(mode=short), "sq-memory"))


@pytest.mark.parametrize(
    ("lam", "d", "k", "levels"),
    [(0.4, 2, 0, [1]), (0.9, 2, 2, [1, 2, 3]), (0.995, 2, 4, [1, 2, 3, 4, 5]), (0.995, 1, 7, [2, 3, 4, 5, 6, 7, 8])],
)
def test_levels_of_the_steady_state(lam, d, k, levels):
    assert recursion.steady_levels(lam, d) == (k, levels)
