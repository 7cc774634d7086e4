"""Tail frequencies of the distance to the fluid path: what they count, and the control with perturbed loads."""

import dchoices as dc
import numpy as np
import pytest
from comparisons import assert_count, chain
from dchoices import concentration, simulation
from scipy import stats

T = [0.0, 0.5, 2.0]


@pytest.mark.parametrize(
    ("policy", "N", "lam", "start", "steps"),
    [
        ("sq-memory", 1, 0.9, "empty", [0.0, 0.2, 3.0, 0.1]),
        ("sq-memory", 30, 0.95, "stale-6", [0.1, 0.0, 2.0]),
        ("sq-memory", 3000, 0.9, "empty", [0.0, 0.01, 0.02]),  # by classes, as there are more servers than events
        ("sq-memory", 1, 0.999, "overloaded-12", [10.0, 20.0, 100.0, 100.0, 100.0]),  # the arrays grow on the way
        ("sq-memory-distinct", 1, 0.999, "overloaded-12", [10.0, 20.0, 100.0, 100.0, 100.0]),
    ],
)
def test_following_a_path_is_advancing_step_by_step(policy, N, lam, start, steps):
    ours, theirs = (chain(policy, N, min(2, N), lam, seed=5, start=start) for _ in range(2))
    room = len(ours.by_queue)
    path, observed = ours.follow(np.array(steps))
    for step, counts, seen in zip(steps, path, observed, strict=True):
        theirs.advance(step)
        levels = min(len(counts), len(theirs.by_queue))
        assert (counts[:levels] == theirs.by_queue[:levels]).all()
        assert (seen[:levels] == theirs.by_observation[:levels]).all()
        assert counts.sum() == seen.sum() == N
    assert ours.sent_by_queue.sum() == theirs.sent_by_queue.sum()
    assert (ours._rng == theirs._rng).all()
    assert (path.shape[1] > room) == (start == "overloaded-12")


def test_they_count_the_distances_of_simulated_paths(monkeypatch):
    """The same streams as `simulate`, so the very same paths; in batches or at once."""
    epsilon = [0.1, 0.2, 0.4]
    paths = dc.simulate("sq-memory", [20, 40], [1, 2], [0.4, 0.9], T, replicates=7, seed=3)
    distance = dc.sup_distance(paths, dc.fluid_paths([0.4, 0.9], [1, 2], T))
    for batch in (1000, 3):
        monkeypatch.setattr(concentration, "BATCH", batch)
        ds = dc.tail_frequencies([20, 40], [1, 2], [0.4, 0.9], T, epsilon, replicates=7, seed=3)
        assert ds.tail_frequency.dims == ("perturbation", "N", "d", "λ", "ε")
        for e in epsilon:
            expected = (distance > e).mean("replicate")
            assert ds.tail_frequency.sel(perturbation=0, ε=e).values == pytest.approx(expected.values, abs=1e-12)
        assert ds.median_distance.sel(perturbation=0).values == pytest.approx(distance.median("replicate").values)
    assert ds.attrs["replicates"] == 7


def test_perturbed_loads_have_streams_of_their_own_and_leave_the_others_alone():
    settings = {"t": T, "epsilon": [0.05, 0.1, 0.2], "replicates": 40, "seed": 3}
    alone = dc.tail_frequencies(50, 2, 0.4, **settings, perturbation=1)
    among = dc.tail_frequencies([30, 50], 2, [0.7, 0.4], **settings, perturbation=[0, 0.5, 1])
    assert (among.sel(perturbation=[1], N=[50], λ=[0.4]).tail_frequency.values == alone.tail_frequency.values).all()
    assert len(set(among.median_distance.sel(N=50, λ=0.4).values.ravel().tolist())) == 3


def test_every_replicate_has_a_stream_of_its_own_and_a_factor_of_its_size(monkeypatch):
    keys, sizes = [], []
    monkeypatch.setattr(concentration, "stream", lambda *key: keys.append(key) or simulation.stream(*key))
    monkeypatch.setattr(concentration, "_perturbed", lambda lam, size, key: sizes.append(float(size)) or lam)
    dc.tail_frequencies([4, 25], [1, 2], [0.4, 0.7], [0.1], 0.1, replicates=3, perturbation=[0, 0.5, 1])
    assert len(keys) == len({simulation.stream(*key).entropy for key in keys}) == 3 * 2 * 2 * 2 * 3
    assert sizes == pytest.approx(np.repeat([0.5 / 2, 0.5 / 5, 1 / 2, 1 / 5], 2 * 2 * 3))


def test_the_factor_on_the_load_is_cauchy():
    """Half of it within its size, and 2/(πz) beyond z sizes; cut off inside (0, 1)."""
    keys = [simulation.stream(1, "sq-memory", 100, 2, 0.4, "empty", replicate, "test") for replicate in range(4000)]
    loads = np.array([concentration._perturbed(0.4, 0.02, key) for key in keys])
    size = np.abs(loads / 0.4 - 1) / 0.02
    assert_count(int((size < 1).sum()), len(keys), 0.5)
    assert_count(int((size > 10).sum()), len(keys), 2 * np.arctan(1 / 10) / np.pi, 0.02)
    wild = [concentration._perturbed(0.4, 1e6, key) for key in keys[:50]]
    assert set(wild) == {concentration.LOADS[0], concentration.LOADS[1]}


def test_far_below_the_threshold_one_time_is_a_binomial_tail():
    """Every job finds an idle server: at time t the busy servers are nearly Poisson with mean Nλ(1-e^-t)."""
    N, lam, t, epsilon, replicates = 200, 0.2, 1.5, 0.05, 4000
    ds = dc.tail_frequencies(N, 3, lam, [t], epsilon, replicates=replicates, seed=1)
    mean = N * lam * (1 - np.exp(-t))
    busy = np.arange(200)
    expected = stats.poisson.pmf(busy, mean)[np.abs(busy - mean) > epsilon * N].sum()
    assert_count(round(ds.tail_frequency.item() * replicates), replicates, expected, 0.02)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0}, "epsilon = 0: must be a number greater than 0 and less than 1"),
        ({"epsilon": [0.1, 0.1]}, "must not hold a value twice"),
        ({"perturbation": -1}, "perturbation = -1: must be a finite number >= 0"),
        ({"replicates": 0}, "replicates = 0: must be an integer in"),
        ({"lam": 1}, "lam = 1: must be a number greater than 0 and less than 1"),
        ({"t": []}, "must be a list of at least one time"),
        ({"N": 10**10, "replicates": 10**9}, "events are to be simulated, must be at most"),
    ],
)
def test_bad_arguments_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        dc.tail_frequencies(**{"N": 10, "d": 2, "lam": 0.5, "t": [1.0], "epsilon": 0.1, "replicates": 2, **change})
