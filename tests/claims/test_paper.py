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


LADDER = (100, 1000, 10_000, 100_000)


def distances(slope, control_slope, sizes=LADDER, loads=(0.3, 0.4, 0.6, 0.72, 0.9)):
    rng = np.random.default_rng(1)
    shape = (10, len(sizes), 2, len(loads))
    size = np.array(sizes, float)[None, :, None, None]
    noise = np.exp(0.02 * rng.normal(size=shape))
    dims = ("replicate", "N", "d", "λ")
    return xr.Dataset(
        {"sup_distance": (dims, size**slope * noise), "sup_distance_control": (dims, size**control_slope * noise)},
        coords={"replicate": np.arange(10), "N": list(sizes), "d": [2, 3], "λ": list(loads)},
    )


def ladder(changed=None, sizes=(*LADDER, 10**6, 10**7)):
    """From three starts, with three replicates at the largest N; `changed` are the distances of one start."""
    starts = {name: distances(-0.5, -0.05, sizes) for name in ("empty", "stale-2", "random-3")} | (changed or {})
    runs = xr.concat([run.assign_coords(start=name) for name, run in starts.items()], "start")
    return runs.where(runs.N.isin(sizes[:-1]) | (runs.replicate < 3))


def study(**changes):
    right = distances(-0.5, -0.05)
    parts = {
        "stationary": stationary(),
        "fixed_points": dc.fixed_point_grid(np.linspace(0.05, 0.99, 40), PROBES),
        "trajectories": right,
        "ladder": ladder(),
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
@pytest.mark.parametrize("start", ["empty", "random-3"])
def test_slopes(slope, expected, start):
    assert verdict("P1", study(trajectories=distances(slope, 0.0))) == expected
    assert verdict("P1", study(ladder=ladder({start: distances(slope, 0.0, (*LADDER, 10**6, 10**7))}))) == expected


def test_one_wrong_side_of_one_start_is_enough_to_fail():
    wrong = distances(-0.5, 0.0, (*LADDER, 10**6, 10**7))
    wrong.sup_distance.loc[{"d": 3, "λ": [0.72, 0.9]}] = 0.2
    wrong = study(ladder=ladder({"stale-2": wrong}))
    assert verdict("P1", wrong) == "fail"
    (cell,) = [cell for cell in engine.REGISTRY["P1"].check(wrong, engine.CLAIM) if cell.verdict == "fail"]
    assert cell.at.startswith("start stale-2, d = 3, λ above 1 - 1/d, N to 10000000")


def test_a_short_ladder_is_inconclusive():
    short = (1000, 10_000)
    assert verdict("P1", study(trajectories=distances(-0.5, 0.0, sizes=short))) == "inconclusive"
    assert verdict("P1", study(ladder=ladder(sizes=short))) == "inconclusive"
    assert verdict("P1", study(ladder=ladder(sizes=(10, 100, 1000)))) == "inconclusive"


def test_all_replicates_count_and_missing_ones_do_not():
    cells = {cell.at.rpartition(",")[0]: cell for cell in engine.REGISTRY["P1"].check(study(), engine.CLAIM)}
    logs = np.log(ladder().sup_distance.sel(start="random-3", d=2, λ=[0.6, 0.72, 0.9]))
    points = logs.mean("λ").stack(point=("N", "replicate")).dropna("point")
    assert points.size == 5 * 10 + 3
    slope = np.polyfit(np.log(points.N.values), points.values, 1)[0]
    assert cells["start random-3, d = 2, λ above 1 - 1/d, N to 10000000"].value == pytest.approx(slope)


def test_the_control_of_the_fluid_limit_fails_from_every_start(right):
    cells = list(engine.REGISTRY["P1"].check(right, "d+1"))
    assert [cell.verdict for cell in cells] == ["fail"] * 2 * 4  # d; the trajectories and three starts


def test_scattered_distances_are_inconclusive():
    """The top of the ladder, with its few replicates, has to count for the interval."""
    runs = ladder()
    scatter = np.exp(3 * np.random.default_rng(1).normal(size=runs.sup_distance.shape))
    runs["sup_distance"] = runs.sup_distance.where(runs.N < 10**7, runs.sup_distance * scatter)
    assert verdict("P1", study(ladder=runs)) == "inconclusive"
