"""The phase portrait, and what its planes say about the mode."""

import dchoices as dc
import numpy as np
import pytest
from dchoices import starts
from dchoices.plots.portrait import region

GRID = 20 * np.linspace(0, 1, 60) ** 2
STARTS = {
    "empty": "empty",
    "mixed": dc.mixed([0.6, 0, 0.4]),
    "stale": dc.mixed([0.4, 0, 0, 0.6], 4),
    "long": dc.mixed([0, 0, 0, 1]),
}
# As far as a coordinate may miss: paths are accurate to 1e-8, and go down a mode where S_k exceeds 1 by 1e-12.
ERROR = 1e-7


@pytest.fixture(scope="module")
def portrait():
    return dc.phase_portrait([0.4, 0.5, 0.9], [1, 2], GRID, STARTS)


def test_coordinates_are_those_of_single_paths(portrait):
    assert portrait.waiting_jobs.dims == ("start", "d", "λ", "t")
    path = dc.fluid_path(0.9, 2, GRID, STARTS["mixed"])
    ours = portrait.sel(start="mixed", d=2, λ=0.9)
    levels = np.arange(path.sizes["queue_length"])
    np.testing.assert_allclose(ours.busy_share, path.occupancy[:, 1:].sum("queue_length"), atol=1e-12)
    np.testing.assert_allclose(ours.busy_share + ours.waiting_jobs, path.occupancy.values @ levels, atol=1e-12)
    np.testing.assert_allclose(ours.known_idle, path.state.sum("i").sel(j=0), atol=1e-12)
    assert (ours["mode"].values == path["mode"].values).all()


def test_paths_begin_at_their_starts(portrait):
    first = portrait.isel(t=0, d=0, λ=0)
    coordinates = {name: first[name].values.tolist() for name in ("busy_share", "waiting_jobs", "known_idle")}
    assert coordinates == {
        "busy_share": pytest.approx([0, 0.4, 0.6, 1]),
        "waiting_jobs": pytest.approx([0, 0.4, 1.2, 2]),
        "known_idle": pytest.approx([1, 0.6, 0, 0]),
    }


def test_jobs_pile_up_by_the_load_less_the_busy_servers(portrait):
    """d(b + w)/dt = λ - b, integrated by the trapezoidal rule on a fine grid."""
    t = np.linspace(0, 5, 2001)
    path = dc.phase_portrait(0.9, 2, t, {"mixed": STARTS["mixed"]}).squeeze()
    jobs = (path.busy_share + path.waiting_jobs).values
    rate = 0.9 - path.busy_share.values
    assert jobs[-1] - jobs[0] == pytest.approx(np.trapezoid(rate, t), abs=1e-5)


def test_a_mode_is_met_only_in_its_region(portrait):
    seen = set()
    for d in (1, 2):
        some = portrait.sel(d=d)
        for k in range(1, 5):
            there = some["mode"].values == k
            [left, right], [at_left, at_right], _ = region(k, d, np.inf)
            busy, waiting = some.busy_share.values[there], some.waiting_jobs.values[there]
            assert (busy >= left - ERROR).all()
            edge = np.interp(busy, [left, right], [at_left, at_right])
            assert (waiting >= edge - ERROR).all()
            seen |= {k} if there.any() else set()
    assert seen >= {1, 2, 3}


@pytest.mark.parametrize(("k", "d"), [(1, 2), (2, 1), (2, 3), (3, 2)])
def test_a_region_is_no_larger_than_it_must_be(k, d):
    """At every point of its edge, but w = 0, some state has S_k = 1: of two queue lengths, those next to their mean."""
    [left, right], lows, _ = region(k, d, np.inf)
    for busy in np.linspace(left, right, 7):
        waiting = np.interp(busy, [left, right], lows)
        if waiting == 0 and busy > left:
            continue
        jobs = busy + waiting
        length = int(jobs / busy)
        share = jobs - length * busy
        least = (k * (1 - busy)) + max(k - length, 0) * (busy - share) + max(k - length - 1, 0) * share
        assert d * least == pytest.approx(1)


def test_known_idle_servers_are_mode_zero(portrait):
    later = portrait.isel(t=slice(1, None))
    assert ((later.known_idle > ERROR) <= (later["mode"] == 0)).all()
    assert ((later["mode"] > 0) <= (later.known_idle == 0)).all()


def test_mixed_starts():
    assert dc.mixed([0, 0, 1]).tolist() == dc.overloaded(2).tolist()
    assert dc.mixed([1], 3).tolist() == dc.stale(3).tolist()
    assert dc.mixed([0.5, 0.5], 2).tolist() == [[0, 0, 0.5], [0, 0, 0.5], [0, 0, 0]]
    assert starts.label(dc.mixed([1])) == "empty"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5, 0.4],), "shares: fractions sum to"),
        (([1.5, -0.5],), r"shares: X\[1, 1\] = -0.5: must be"),
        (([[1]],), r"shares = \[\[1\]\]: must be a list of fractions"),
        ((1,), "shares = 1: must be a list of fractions"),
        (([0, 0, 1], 1), r"observation = 1: must be an integer in \[2, 999\]"),
        ((["a"],), r"shares = \['a'\]: must be a list of fractions"),
    ],
)
def test_bad_shares_are_refused(arguments, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        dc.mixed(*arguments)
