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


def tails(frequency, control=lambda N, e: 0.03 / e * (200 / N) ** 0.5, sizes=(200, 280, 400, 600), replicates=10**6):
    """Tail frequencies as functions of N and ε, rounded to counts."""
    epsilon = np.array([0.08, 0.1, 0.12])
    values = np.array([[fall(np.array(N, float), epsilon) for N in sizes] for fall in (frequency, control)])
    values = np.rint(values * replicates)[:, :, None, None] / replicates
    return xr.Dataset(
        {"tail_frequency": (("perturbation", "N", "d", "λ", "ε"), values)},
        coords={"perturbation": [0.0, 1.0], "N": list(sizes), "d": [2], "λ": [0.4], "ε": epsilon},
        attrs={"replicates": replicates},
    )


def exponential(N, e, exponent=2):
    return 0.7 * np.exp(-0.006 * N * (e / 0.08) ** exponent)


def study(**changes):
    right = distances(-0.5, -0.05)
    parts = {
        "stationary": stationary(),
        "fixed_points": dc.fixed_point_grid(np.linspace(0.05, 0.99, 40), PROBES),
        "trajectories": right,
        "starts": right.expand_dims(start=["stale-2"]),
        "concentration": tails(exponential),
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


@pytest.mark.parametrize(
    "frequency",
    [
        lambda N, e: exponential(N, e) * (200 / N) ** 0.5,  # the factor that theory allows
        lambda N, e: -np.expm1(-3 * exponential(N, e)),  # frequencies that bend as they near 1
    ],
)
def test_tails_with_what_theory_allows_beside_the_exponential_pass(frequency):
    assert verdict("P9", study(concentration=tails(frequency))) == "pass"


@pytest.mark.parametrize(
    "frequency",
    [
        lambda N, e: 0.03 * (0.08 / e) ** 2 * (200 / N) ** 4,  # a power of N, though its sum is finite
        lambda N, e: exponential(N, e, exponent=1),
        lambda N, e: exponential(N, e, exponent=3),
        lambda N, e: 0.4 * np.exp(-0.4 * (N / 200) ** 2 * (e / 0.08) ** 2),  # faster than an exponential
    ],
    ids=["power", "ε", "ε³", "Gauss"],
)
def test_other_tails_fail(frequency):
    assert verdict("P9", study(concentration=tails(frequency))) == "fail"


@pytest.mark.parametrize(
    "poor",
    [
        tails(exponential, replicates=300),
        tails(exponential, sizes=(200, 400)),
        tails(exponential, sizes=(2000, 4000, 6000)),
        tails(exponential).sel(perturbation=[1.0]),
    ],
    ids=["few replicates", "few numbers of servers", "nothing seen", "no runs"],
)
def test_poor_tails_are_inconclusive(poor):
    assert verdict("P9", study(concentration=poor)) == "inconclusive"


def test_a_control_without_runs_is_inconclusive():
    assert verdict("P9", study(concentration=tails(exponential).sel(perturbation=[0.0])), "perturbed") == "inconclusive"


def test_intervals_of_tails_hold_for_all_loads_at_once():
    one = tails(exponential)
    both = xr.concat([one, one.assign_coords(λ=[0.7])], "λ")
    alone, together = (
        list(engine.REGISTRY["P9"].check(study(concentration=runs), engine.CLAIM)) for runs in (one, both)
    )
    assert len(together) == 2 * len(alone) == 14
    for narrow, wide in zip(alone, together[:7], strict=True):
        assert wide.value == pytest.approx(narrow.value)
        assert wide.half_width == pytest.approx(narrow.half_width * 2.914 / 2.690, rel=1e-3)
