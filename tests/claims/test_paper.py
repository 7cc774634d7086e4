"""Every check of the paper's claims, on data made from the limits and on data made wrong."""

import dchoices as dc
import numpy as np
import pytest
import xarray as xr
from dchoices.claims import engine, paper
from dchoices.theory.closed_forms import sq_queue_length_pmf

LOADS = [0.3, 0.4, 0.6, 0.72, 0.85, 0.9, 0.995]
PROBES = [1, 2, 3]
SIZES = [1000, 100_000]
LEVELS = 4000
CELL = ("policy", "N", "d", "λ")
STATIONARY = ["P2", "P3", "P4", "P5", "P11", "P12"]


def limits(policy, lam, d):
    """Occupancy, and the shares to idle servers and to observation 0, as N grows."""
    pmf = np.zeros(LEVELS)
    if policy == "sq":
        exact = sq_queue_length_pmf(lam, d)[:LEVELS]
        pmf[: len(exact)] = exact
        return pmf, 1 - lam**d, 1 - lam**d
    point = dc.fixed_point(lam, d)
    pmf[: point.sizes["i"]] = point.queue_length_pmf.values
    return pmf, float(point.dispatch_to_idle), float(point.dispatch[0])


def stationary(sizes=SIZES, ci95=1e-5):
    shape = (2, len(sizes), len(PROBES), len(LOADS))
    occupancy, idle, zero = np.zeros((*shape, LEVELS)), np.zeros(shape), np.zeros(shape)
    above = np.zeros(shape)
    for p, policy in enumerate(("sq-memory", "sq")):
        for b, d in enumerate(PROBES):
            for c, lam in enumerate(LOADS):
                pmf, idle[p, :, b, c], zero[p, :, b, c] = limits(policy, lam, d)
                occupancy[p, :, b, c] = pmf
                above[p, :, b, c] = pmf[dc.queue_bound(lam, d) + 1 :].sum()
    values = {
        "occupancy": ((*CELL, "queue_length"), occupancy),
        "occupancy_tail": ((*CELL, "queue_length"), occupancy[..., ::-1].cumsum(axis=-1)[..., ::-1]),
        "dispatch_to_idle": (CELL, idle),
        "dispatch_to_observation_zero": (CELL, zero),
        "mean_response_time": (CELL, occupancy @ np.arange(LEVELS) / np.array(LOADS)),
        "mass_above_bound": (CELL, above),
    }
    widths = {f"{name}_ci95": (dims, np.full_like(array, ci95)) for name, (dims, array) in values.items()}
    return xr.Dataset(
        {**values, **widths, "warm_up_ok": (CELL, np.ones(shape, np.int8))},
        coords={"policy": ["sq-memory", "sq"], "N": sizes, "d": PROBES, "λ": LOADS, "queue_length": np.arange(LEVELS)},
        attrs={"replicates": 10},
    )


def distances(slope, control_slope, sizes=(100, 1000, 10_000, 100_000), loads=(0.3, 0.4, 0.6, 0.72, 0.9)):
    rng = np.random.default_rng(1)
    shape = (10, len(sizes), 2, len(loads))
    size = np.array(sizes, float)[None, :, None, None]
    noise = np.exp(0.02 * rng.normal(size=shape))
    dims = ("replicate", "N", "d", "λ")
    return xr.Dataset(
        {"sup_distance": (dims, size**slope * noise), "sup_distance_control": (dims, size**control_slope * noise)},
        coords={"replicate": np.arange(10), "N": list(sizes), "d": [2, 3], "λ": list(loads)},
    )


def settling(factor=1.0, error=0.01, settled=1, starts=("empty", "stale-1", "overloaded-1", "overloaded-3")):
    """Relaxation rates at the spectral gap, times a factor, of paths from every start."""
    loads, ds = [0.2, 0.3, 0.45, 0.52, 0.6, 0.69], [1, 2, 3]
    gap = np.array([[dc.spectral_gap(lam, d) for lam in loads] for d in ds])
    shape = (len(starts), *gap.shape)
    return xr.Dataset(
        {
            "relaxation_rate": (("start", "d", "λ"), np.broadcast_to(gap * factor, shape).copy()),
            "relaxation_rate_error": (("start", "d", "λ"), np.full(shape, error)),
            "settled": (("start", "d", "λ"), np.full(shape, settled, np.int8)),
        },
        coords={"start": list(starts), "d": ds, "λ": loads},
    )


def study(**changes):
    right = distances(-0.5, -0.05)
    parts = {
        "stationary": stationary(),
        "fixed_points": dc.fixed_point_grid(np.linspace(0.05, 0.99, 40), PROBES),
        "convergence": settling(),
        "trajectories": right,
        "starts": right.expand_dims(start=["stale-2"]),
    }
    return {**parts, **changes}


def verdict(claim, data, model=engine.CLAIM):
    return engine.verdict(list(engine.REGISTRY[claim].check(data, model)))


@pytest.fixture(scope="module")
def right():
    return study()


@pytest.mark.parametrize("claim", [entry.id for entry in paper.CLAIMS])
def test_a_claim_passes_on_its_limits_and_every_control_fails(claim, right):
    assert verdict(claim, right) == "pass"
    for control in engine.REGISTRY[claim].controls:
        assert verdict(claim, right, control) == "fail", control


@pytest.mark.parametrize("claim", ["P2", "P3", "P4", "P11", "P12"])
def test_a_dispatcher_that_ignores_its_memory_is_caught(claim):
    runs = stationary()
    memoryless = runs.sel(policy=["sq"])
    forgetful = xr.concat([memoryless.assign_coords(policy=["sq-memory"]), memoryless], "policy")
    assert verdict(claim, study(stationary=forgetful)) == "fail"


@pytest.mark.parametrize("claim", STATIONARY)
@pytest.mark.parametrize(
    "poor",
    [
        lambda: stationary(sizes=[100, 1000]),
        lambda: stationary(ci95=0.5),
        lambda: stationary().assign(warm_up_ok=stationary().warm_up_ok * 0),
        lambda: stationary().isel(policy=[]),
    ],
    ids=["few servers", "wide intervals", "short warm-up", "no runs"],
)
def test_poor_data_is_inconclusive(claim, poor):
    assert verdict(claim, study(stationary=poor())) == "inconclusive"


def test_intervals_hold_for_all_cells_at_once():
    """A width that one interval may have, but not all of some thirty at once."""
    runs = stationary(ci95=0.0)
    name = "dispatch_to_idle"
    places = [({"policy": "sq", "N": 100_000, "d": d, "λ": x}, 0.0, 1.0) for d in PROBES for x in LOADS]
    alone = engine.estimate_cells(runs.assign({f"{name}_ci95": runs[name] * 0 + 0.01}), name, places[:1])
    together = engine.estimate_cells(runs.assign({f"{name}_ci95": runs[name] * 0 + 0.01}), name, places)
    assert alone[0].half_width == pytest.approx(0.01)
    assert together[0].half_width > 0.015


@pytest.mark.parametrize(("slope", "expected"), [(-0.5, "pass"), (-0.25, "fail"), (-0.75, "fail"), (-0.02, "fail")])
def test_slopes(slope, expected):
    assert verdict("P1", study(trajectories=distances(slope, 0.0))) == expected


def test_one_wrong_side_of_one_start_is_enough_to_fail():
    wrong = distances(-0.5, 0.0)
    wrong.sup_distance.loc[{"d": 3, "λ": [0.72, 0.9]}] = 0.2
    assert verdict("P1", study(starts=wrong.expand_dims(start=["stale-2"]))) == "fail"


def test_a_short_ladder_is_inconclusive():
    short = distances(-0.5, 0.0, sizes=(1000, 10_000))
    assert verdict("P1", study(trajectories=short)) == "inconclusive"
    assert verdict("P1", study(starts=short.expand_dims(start=["stale-2"]))) == "inconclusive"


@pytest.mark.parametrize("factor", [0.5, 0.8, 1.2, 2.0])
def test_another_rate_of_relaxation_fails(factor):
    assert verdict("P10", study(convergence=settling(factor))) == "fail"


def test_the_rate_is_that_of_sampling_where_it_is_slower_than_service():
    """At d = 2, λ = 0.3 the rate is 0.6: one claim for both would be wrong."""
    wrong = settling()
    wrong.relaxation_rate.loc[{"d": 2, "λ": 0.3}] = 1.0
    assert verdict("P10", study(convergence=wrong)) == "fail"


def test_the_slowest_start_has_the_rate():
    faster, slower = settling(), settling()
    faster.relaxation_rate.loc[{"start": "stale-1"}] *= 2  # it may miss the slowest mode
    assert verdict("P10", study(convergence=faster)) == "pass"
    slower.relaxation_rate.loc[{"start": "stale-1", "λ": 0.2}] *= 0.8
    assert verdict("P10", study(convergence=slower)) == "fail"


@pytest.mark.parametrize(
    "poor",
    [
        lambda: settling(error=0.3),
        lambda: settling(settled=0),
        lambda: settling(starts=("overloaded-3",)),
        lambda: settling().sel(d=[1]),
    ],
    ids=["wide intervals", "short paths", "other starts", "one probe, which has no threshold"],
)
def test_paths_that_do_not_show_the_rate_are_inconclusive(poor):
    assert verdict("P10", study(convergence=poor())) == "inconclusive"


@pytest.mark.parametrize("distance", [0.0, 1e-6])
def test_the_threshold_itself_is_no_cell(distance):
    """There the rate depends on the side that a path comes from."""
    runs = settling().sel({"λ": [0.3, 0.69]})
    at = runs.sel({"λ": [0.69]}).assign_coords({"λ": [2 / 3 - distance]}) * 0.1
    cells = list(engine.REGISTRY["P10"].check(study(convergence=xr.concat([runs, at], "λ").sortby("λ")), engine.CLAIM))
    assert cells
    assert not any("0.66" in cell.at for cell in cells)
