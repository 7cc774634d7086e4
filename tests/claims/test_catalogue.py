"""Every check of the paper's claims, on data made from the limits and on data made wrong."""

import dchoices as dc
import numpy as np
import pytest
import xarray as xr
from dchoices import heavy_traffic, statistics
from dchoices.claims import catalogue, engine
from dchoices.constant_d import enough_servers, tolerated
from dchoices.heavy_traffic import limit_response
from made_up_limits import (
    HEAVY,
    LADDER,
    LAWS,
    LOADS,
    PROBES,
    SIZES,
    distances,
    enough,
    exponential,
    gaps,
    labelled,
    ladder,
    paths,
    saturating,
    service,
    settling,
    stationary,
    study,
    tails,
    variances,
)
from made_up_regimes import SYSTEMS, finite_size

STATIONARY = ["P2", "P3", "P4", "P5", "P6", "P11", "P12"]


def verdict(claim, data, model=engine.CLAIM):
    return engine.verdict(list(engine.REGISTRY[claim].check(data, model)))


@pytest.fixture(scope="module")
def right():
    return study()


@pytest.mark.parametrize("claim", [entry.id for entry in catalogue.CLAIMS])
def test_a_claim_passes_on_its_limits_and_every_control_fails(claim, right):
    assert verdict(claim, right) == "pass"
    for control in engine.REGISTRY[claim].controls:
        assert verdict(claim, right, control) == "fail", control


@pytest.mark.parametrize("claim", ["P2", "P3", "P4", "P6", "P11", "P12"])
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


@pytest.mark.parametrize(
    ("claim", "wrong"),
    [
        ("N2", {"orders": {"threshold": -1 / 3}}),
        ("N2", {"orders": {"threshold": -0.7}}),
        ("N3", {"orders": {"step-2": -1 / 2}}),
        ("N3", {"orders": {"step-2": -1 / 4}}),
        ("N3", {"orders": {"step-3": -1 / 3}}),
        ("N3", {"orders": {"step-3": -1 / 5}}),
        ("N5", {"orders": {"threshold": -1}}),
        ("N5", {"orders": {"above": -1 / 2}}),
        ("N5", {"orders": {"above": -3 / 2}}),
        ("N5", {"orders": {"step-2": -1 / 2}}),
        ("N5", {"decay": 0.003}),
        ("N5", {"remainder": 0.5}),
    ],
)
def test_wrong_orders_in_N_are_caught(claim, wrong):
    assert verdict(claim, study(finite_size=finite_size(**wrong))) == "fail"


@pytest.mark.parametrize("claim", ["N2", "N3", "N5"])
@pytest.mark.parametrize(
    "poor",
    [
        lambda: finite_size({name: (d, [10, 20, 40]) for name, (d, _) in SYSTEMS.items()}, width=0.2),
        lambda: finite_size({name: (d, N[:2]) for name, (d, N) in SYSTEMS.items()}),
        lambda: finite_size(width=0.3),
        lambda: (runs := finite_size()).assign(warm_up_ok=0 * runs.warm_up_ok),
        lambda: finite_size().isel(point=[]),
    ],
    ids=["few servers", "short ladder", "wide intervals", "short warm-up", "no runs"],
)
def test_poor_ladders_are_inconclusive(claim, poor):
    assert verdict(claim, study(finite_size=poor())) == "inconclusive"


@pytest.mark.parametrize("power", [0.45, 1.0, 2.0])
def test_a_limit_without_the_root_is_caught(power):
    """All changes to a power that makes a root another one, or a line."""
    runs = finite_size()
    assert verdict("N4", study(finite_size=runs.assign(response_step=runs.response_step**power))) == (
        "pass" if power == 1 else "fail"
    )


def test_a_limit_that_rounding_blurs_is_inconclusive():
    runs = finite_size()
    assert verdict("N4", study(finite_size=runs.assign(response_step=1e-12 * runs.response_step))) == "inconclusive"


def test_one_wrong_level_of_the_grid_fails_the_bound(right):
    wrong = right["bound_grid"].copy(deep=True)
    wrong["level"][1, 7] += 1
    assert verdict("P4", study(bound_grid=wrong)) == "fail"


def test_intervals_hold_for_all_cells_at_once():
    """A width that one interval may have, but not all of some thirty at once."""
    runs = stationary(ci95=0.0)
    name = "dispatch_to_idle"
    places = [({"policy": "sq", "N": 100_000, "d": d, "λ": x}, 0.0, 1.0) for d in PROBES for x in LOADS]
    alone = engine.estimate_cells(runs.assign({f"{name}_ci95": runs[name] * 0 + 0.01}), name, places[:1])
    together = engine.estimate_cells(runs.assign({f"{name}_ci95": runs[name] * 0 + 0.01}), name, places)
    assert alone[0].half_width == pytest.approx(0.01)
    assert together[0].half_width > 0.015


@pytest.mark.parametrize("claim", ["N6", "N7"])
@pytest.mark.parametrize(
    "poor",
    [
        lambda: service(sizes=(1000,)),
        lambda: service(ci95=0.5),
        lambda: service().assign(warm_up_ok=service().warm_up_ok * 0),
        lambda: service().isel(policy=[]),
    ],
    ids=["few servers", "wide intervals", "short warm-up", "no runs"],
)
def test_poor_runs_of_other_laws_are_inconclusive(claim, poor):
    assert verdict(claim, study(service=poor())) == "inconclusive"


def test_loads_on_one_side_of_the_threshold_say_nothing_of_it():
    assert verdict("N6", study(service=service(loads=(0.4,)))) == "inconclusive"


@pytest.mark.parametrize("law", LAWS)
def test_one_law_with_another_share_is_enough_to_fail(law):
    for lam, share in ((0.4, 0.98), (0.72, 0.5)):
        wrong = service().copy(deep=True)
        wrong.dispatch_to_observation_zero.loc[{"service": law, "d": 2, "λ": lam}] = share
        assert verdict("N6", study(service=wrong)) == "fail"
    missed = service().copy(deep=True)
    missed.dispatch_to_idle.loc[{"service": law, "d": 3, "λ": 0.6}] = 0.98
    assert verdict("N6", study(service=missed)) == "fail"


@pytest.mark.parametrize("law", ["deterministic", "hyperexponential(scv=4.0)"])
def test_a_law_that_settles_where_the_exponential_does_fails(law):
    """In both directions: shorter queues than those of the law, and longer ones."""
    wrong = service(limit=lambda lam, d, name: dc.service_fixed_point(lam, d, "exponential" if name == law else name))
    cells = engine.REGISTRY["N7"].check(study(service=wrong), engine.CLAIM)
    assert {cell.at.split(" at ")[-1].split(",")[0] for cell in cells if cell.verdict == "fail"} == {law}


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


@pytest.mark.parametrize(
    "poor",
    [
        lambda: paths(N=1000),
        lambda: paths(noise=0.5),
        lambda: paths(t_end=0.45),
        lambda: paths(start="empty"),
        lambda: paths().sel(policy=["sq"]),
    ],
    ids=["few servers", "wide intervals", "no time", "no levels below k", "no runs"],
)
def test_recursion_on_poor_paths_is_inconclusive(poor):
    assert verdict("P6", study(recursion=poor())) == "inconclusive"


def test_recursion_is_measured_on_every_window():
    """From overloaded-4 to t = 5 at λ = 0.6, k is 4, 3 and 2 in turn; p_1 is below 1 % while it is 4."""
    cells = [cell.at for cell in engine.REGISTRY["P6"].check(study(), engine.CLAIM) if "overloaded-4" in cell.at]
    assert [at.split(" from")[0] for at in cells] == [
        "j = 1, while k = 2", "j = 1, while k = 3", "j = 2, while k = 3", "j = 2, while k = 4", "j = 3, while k = 4"
    ]  # fmt: skip


def test_recursion_wrong_at_one_level_is_caught():
    """A tenth of the jobs sent to observation 1, sent to 0: in one window of one path, or at one load."""
    runs = paths()
    late = runs.t > 3.6
    moved = runs.sent_by_observation.sel(queue_length=1) // 10 * late
    sent = runs.sent_by_observation + moved * ((runs.queue_length == 0).astype(int) - (runs.queue_length == 1))
    assert verdict("P6", study(recursion=runs.assign(sent_by_observation=sent))) == "fail"
    wrong = stationary()
    place = {"policy": "sq-memory", "N": SIZES[-1], "d": 2, "λ": 0.9}
    moved = 0.1 * float(wrong.dispatch_by_observation.sel(place)[1])
    wrong.dispatch_by_observation.loc[place | {"queue_length": [0, 1]}] += np.array([moved, -moved])
    assert verdict("P6", study(stationary=wrong)) == "fail"


def test_balance_at_every_level_is_more_than_the_recursion_below_k():
    """Servers that forget to raise their slot: more of them at k, fewer above, nothing else changed."""
    wrong = stationary()
    place = {"policy": "sq-memory", "N": SIZES[-1], "d": 2, "λ": 0.72, "queue_length": [1, 2]}
    wrong.observation_occupancy.loc[place] += np.array([0.1, -0.1])
    assert verdict("P6", study(stationary=wrong)) == "fail"


def test_recursion_below_k_is_left_to_loads_away_from_steps_of_the_bound():
    """λ = 0.85 is next to one at d = 1; the balance at every level holds there too."""
    cells = [cell.at for cell in engine.REGISTRY["P6"].check(study(), engine.CLAIM) if "d = 1, λ = 0.85" in cell.at]
    assert cells
    assert all(at.startswith("out of / into") for at in cells)
    assert any("d = 1, λ = 0.9" in cell.at for cell in engine.REGISTRY["P6"].check(study(), engine.CLAIM))


def test_recursion_intervals_hold_for_all_its_cells_at_once():
    cells = list(engine.REGISTRY["P6"].check(study(stationary=stationary(ci95=1e-3)), engine.CLAIM))
    (cell,) = [cell for cell in cells if cell.at == "j = 1, steady, N = 100000, d = 2, λ = 0.9"]
    found = 2 * dc.fixed_point(0.9, 2).queue_length_pmf.values[1]
    alone = (1e-3 + 2 * 1e-3) / found  # of the balance, and of the servers observed at 1
    assert cell.half_width == pytest.approx(alone * statistics.widening(10, len(cells)))


def test_recursion_fails_where_nobody_is():
    """Levels that the limit fills and the runs leave empty: no division by 0 makes them inconclusive."""
    empty = stationary(ci95=0.0)
    names = ["occupancy", "dispatch_by_observation", "observation_occupancy"]
    place = {"policy": "sq-memory", "N": SIZES[-1], "d": 2, "λ": 0.9, "queue_length": slice(1, None)}
    for name in names:
        empty[name].loc[place] = 0.0
    empty.dispatch_by_observation.loc[place | {"queue_length": 0}] = 0.0
    cells = engine.REGISTRY["P6"].check(study(stationary=empty), engine.CLAIM)
    found = [cell.verdict for cell in cells if cell.at.endswith("steady, N = 100000, d = 2, λ = 0.9")]
    assert found == ["fail"] * 4  # j = 1 below k, and every j from 1 to 3
    runs = paths()
    shown = runs.queue_length != 1
    empty = runs.assign(occupancy=runs.occupancy * shown, sent_by_observation=runs.sent_by_observation * shown)
    assert verdict("P6", study(recursion=empty)) == "fail"


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


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        (lambda: variances(N=100), "inconclusive"),
        (lambda: variances(ci95=0.05), "inconclusive"),
        (lambda: variances().sel({"λ": [0.6], "d": [2]}), "inconclusive"),
        (lambda: variances(busy=1.1), "fail"),
        (lambda: variances(known_idle=0.9), "fail"),
    ],
    ids=["few servers", "wide intervals", "above the threshold", "busy servers", "known idle servers"],
)
def test_variances_that_are_not_the_conjecture(runs, expected):
    assert verdict("N1", study(fluctuations=runs())) == expected


def test_variances_are_judged_where_known_idle_servers_do_not_run_out():
    cells = list(engine.REGISTRY["N1"].check(study(), engine.CLAIM))
    assert len(cells) == 2 * 5  # all but λ = 0.6, d = 2


def cells_of(claim, data, model=engine.CLAIM):
    return list(engine.REGISTRY[claim].check(data, model))


@pytest.mark.parametrize(
    "excess",
    [
        lambda name, N, d, lam: 0.08 * (name == "sq-memory"),  # at λ = 0.9 half of the way to SQ(3)
        lambda name, N, d, lam: -0.08 * (name == "sq-memory"),
        lambda name, N, d, lam: -0.4 * (name == "sq" and d == 3),
    ],
    ids=["slower", "faster", "SQ(d+1) below memory"],
)
def test_other_response_times_in_heavy_traffic_fail(excess):
    assert verdict("P7", study(heavy_traffic=saturating(excess))) == "fail"


def test_response_times_that_grow_with_a_wrong_rate_fail(monkeypatch):
    """Fixed points whose R grows as that of one probe more, or less; and a grid on which memory is no better."""
    right = heavy_traffic.limit_response
    for other in (1, 3):
        monkeypatch.setattr(
            heavy_traffic, "limit_response", lambda p, lam, d, k=other: right(p, lam, k if d == 2 else d)
        )
        assert "fail" in {cell.verdict for cell in cells_of("P7", study()) if cell.at.endswith("R, sq-memory(2)")}
    monkeypatch.undo()
    grid = dc.fixed_point_grid(np.linspace(0.05, 0.99, 40), PROBES)
    grid.mean_response_time.loc[{"d": 2}] += 0.2
    assert verdict("P7", study(fixed_points=grid)) == "fail"


@pytest.mark.parametrize(
    "poor",
    [
        lambda: saturating(sizes=(100, 1000)),
        lambda: saturating(ci95=0.1),
        lambda: saturating().assign(warm_up_ok=saturating().warm_up_ok * 0),
        lambda: saturating().sel(policy=["sq(2)", "sq(3)"]),
        lambda: saturating().sel(policy=["sq-memory(2)", "sq(2)"]),
        lambda: saturating().sel({"λ": [0.998]}).assign_coords({"λ": [0.99999]}),
    ],
    ids=["few servers", "wide intervals", "short warm-up", "no memory", "no d + 1", "too heavy for N"],
)
def test_poor_runs_in_heavy_traffic_are_inconclusive(poor):
    assert verdict("P7", study(heavy_traffic=poor())) == "inconclusive"


def test_loads_too_heavy_for_the_largest_n_are_no_cells():
    """At N = 20 000 jobs in excess take 1/(N(1-λ)), 0.05 at λ = 0.999 and 0.025 at 0.998."""
    runs = labelled(HEAVY, [20_000], [0.998, 0.999], lambda name, N, d, lam: limit_response(name, lam, d))
    simulated = [cell.at for cell in cells_of("P7", study(heavy_traffic=runs)) if "N = 20000" in cell.at]
    assert len(simulated) == 3
    assert all("0.998" in at for at in simulated)


def test_a_constant_d_is_looked_at_from_n_0_on_and_where_it_is_cheaper():
    cells = [cell.at for cell in cells_of("P8", study())]
    assert cells == [
        "(R-1)/ε of sq-memory(3), N = 10000, λ = 0.6", "(R-1)/ε of sq-memory(3), N = 1e+06, λ = 0.6",
        "(R-1)/ε of sq-memory(6), N = 10000, λ = 0.8", "(R-1)/ε of sq-memory(6), N = 1e+06, λ = 0.8",
        "(R-1)/ε of SQ(⌈log N⌉), N = 1e+06, λ = 0.6", "(R-1)/ε of SQ(⌈log N⌉), N = 1e+06, λ = 0.8",
    ]  # fmt: skip
    assert 1000 < enough_servers(0.6) < 10_000
    assert tolerated(0.6) == pytest.approx(0.6**14 / 2, rel=1e-3)


@pytest.mark.parametrize(
    "delay",
    [
        lambda name, N, d, lam, r: r + (name == "sq-memory" and N == 10**6) * 1.5 * tolerated(lam),
        lambda name, N, d, lam, r: r + (name == "sq-memory" and N == 10_000) * 1.5 * tolerated(lam),
        lambda name, N, d, lam, r: 0.4 * r if d == 14 else r,
    ],
    ids=["delay at the top", "delay at N_0", "SQ(⌈log N⌉) is enough"],
)
def test_delays_on_the_wrong_side_fail(delay):
    assert verdict("P8", study(constant_d=enough(delay=delay))) == "fail"


def test_delays_of_small_systems_do_not_matter():
    delayed = enough(delay=lambda name, N, d, lam, r: r + (enough_servers(lam) > N) * 0.5)
    assert verdict("P8", study(constant_d=delayed)) == "pass"


@pytest.mark.parametrize(
    "poor",
    [
        lambda: enough(sizes=(1000, 100_000)),
        lambda: enough(ci95=0.1),
        lambda: enough().assign(horizon=enough().horizon * 1e-5),
        lambda: enough().assign(warm_up_ok=enough().warm_up_ok * 0),
        lambda: enough({"sq-memory": [3, 6], "sq": [3, 6]}),
        lambda: enough({"sq-memory": [2], "sq": [2], "sq-log": [0]}),
        lambda: enough(loads=(0.95,)),
    ],
    ids=["few servers", "wide intervals", "few jobs", "short warm-up", "no sq-log", "other d", "too heavy"],
)
def test_poor_ladders_of_a_constant_d_are_inconclusive(poor):
    assert verdict("P8", study(constant_d=poor())) == "inconclusive"


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        (lambda: gaps(sizes=(20,)), "inconclusive"),
        (lambda: gaps(sizes=(2, 4)), "inconclusive"),
        (lambda: gaps(ci95=0.1), "inconclusive"),
        (lambda: gaps(loads=(0.5,)), "inconclusive"),
        (lambda: gaps(policies=("sq",)), "inconclusive"),
        (lambda: gaps(factor=1.3), "fail"),
        (lambda: gaps(factor=-1.0), "fail"),
        (lambda: gaps(exponent=-0.5), "fail"),
        (lambda: gaps(exponent=-1.5), "fail"),
    ],
    ids=["one N", "few servers", "wide intervals", "at a step", "no memory", "factor", "sign", "slow", "fast"],
)
def test_costs_of_replacement_that_are_not_the_conjecture(runs, expected):
    assert verdict("N8", study(replacement=runs())) == expected
