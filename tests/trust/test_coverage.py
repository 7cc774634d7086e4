"""Every kind of interval that the report prints holds the truth as often as it says, in small systems that are known.

A kind names where its intervals are shown, the system and its truth, and repeats the estimate: which repetitions held
it, for each quantity. Truths come from the solved chain, closed forms or a sampling model, never from a simulation.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from unittest import mock

import dchoices as dc
import numpy as np
import pytest
from dchoices import regimes, registry, simulation, statistics
from dchoices.exponents import RESOLVED, Ladder, exponent_at_zero
from dchoices.progress import progress_bar
from dchoices.recursion import recursion_terms
from dchoices.relaxation import measure_decay
from dchoices.service import as_law
from dchoices.statistics import NONE_SEEN
from dchoices.tails import fit_tails
from dchoices.theory import exact_chain
from scipy import stats

pytestmark = pytest.mark.trust

REPETITIONS, SOAK = 1000, 10_000
NOMINAL = 0.95
LEVEL = 1e-3  # of the two-sided binomial test of a coverage
REPLICATES = 4  # few, so that a normal quantile for Student's, or a wrong divisor, shows
Held = dict[str, np.ndarray]


# ------------------------------------------------------------------------------------------------------- known systems


@dataclass(frozen=True, eq=False)
class Known:
    """A small system and what is known of it, as numbers or arrays by level."""

    policy: str
    N: int
    d: int
    lam: float
    probed: float
    warm_up: float
    horizon: float
    truth: dict

    @property
    def place(self):
        return self.policy, self.N, self.d, self.lam


LEVELS = 3  # that are seen often enough: see the last test
RESPONSE_TIMES = np.array([0.0, 0.5, 2.0])
# Between two samples of a stationary run: far apart, so that windows can be long. Means over 100 service times of three
# servers are so skewed that Student's intervals of four hold 92 % of mean response times.
STEP = 4.0


@functools.cache
def mm1():
    """Servers that each are an M/M/1 queue of its own: the relaxation time is 5."""
    N, lam = 20, 0.3
    p = (1 - lam) * lam ** np.arange(LEVELS)
    truth = {
        "occupancy": p,
        "occupancy_tail": lam ** np.arange(LEVELS),
        "dispatch_by_queue": p,
        "dispatch_to_idle": 1 - lam,
        "dispatch_to_observation_zero": 1 - lam,
        "mean_queue_length": lam / (1 - lam),
        "mean_response_time": 1 / (1 - lam),
        "controlled_response_time": 1 / (1 - lam),
        "response_time_tail": np.exp(-(1 - lam) * RESPONSE_TIMES),
        "mass_above_bound": lam**2,
    }
    return Known("random", N, 0, lam, 1.0, 20.0, 60.0, truth)


@functools.cache
def solved(policy="sq-memory", N=3, d=2, lam=0.5, buffer=10):
    """The chain of a few servers, with the joint law of queues and observations."""
    i, j, rates = exact_chain._enumerate(policy, N, d, lam, buffer)
    weight = exact_chain._solve(rates, i.sum(axis=1))
    p, y = (np.array([(x == level).mean(axis=1) @ weight for level in range(buffer + 1)]) for x in (i, j))
    probed = N * (1 - (1 - 1 / N) ** d)
    sent = np.cumsum(probed * (p - y))  # the balance of observations
    alone = dc.exact_stationary(N, d, lam, buffer, policy)
    assert float(alone.truncated_mass) < 1e-4
    assert sent[0] == pytest.approx(float(alone.dispatch_to_observation_zero), abs=1e-6)

    def n_variance(servers):
        return float(servers**2 @ weight - (servers @ weight) ** 2) / N

    truth = {
        "occupancy": p[:LEVELS],
        "occupancy_tail": p[::-1].cumsum()[::-1][:LEVELS],
        "observation_occupancy": y[:LEVELS],
        "observation_balance": np.zeros(LEVELS),
        "dispatch_by_observation": sent[:LEVELS],
        "dispatch_to_idle": float(alone.dispatch_to_idle),
        "dispatch_to_observation_zero": sent[0],
        "mean_queue_length": float(alone.mean_queue_length),
        "mean_response_time": float(alone.mean_response_time),
        "controlled_response_time": float(alone.mean_response_time),
        "n_var_busy": n_variance((i > 0).sum(axis=1)),
        "n_var_known_idle": n_variance((j == 0).sum(axis=1)),
    }
    return Known(policy, N, d, lam, probed, 20.0, 400.0, truth)


@functools.cache
def summaries(known, repetitions):
    """Return what `stationary` says of a system, for many groups of replicates."""
    policy, law = registry.get(known.policy), as_law("exponential")
    samples, found = round(known.horizon / STEP), []
    with progress_bar(1.0, "coverage") as progress, mock.patch.object(simulation, "SAMPLE_STEP", STEP):
        for first in range(0, repetitions * REPLICATES, REPLICATES):
            runs = []
            for replicate in range(first, first + REPLICATES):
                system = (known.N, known.d, known.lam, 0, replicate, law, None, RESPONSE_TIMES)
                chain = simulation._engine(policy, *system)
                chain.advance(known.warm_up)
                runs.append(simulation._measure(chain, samples, 1, RESPONSE_TIMES, progress))
                runs[-1]["observation_balance"] = simulation._observation_balance(runs[-1], known.probed)
                runs[-1]["messages_per_job"] = 0.0
            found.append(simulation._summarise(runs, known.warm_up, known.lam, True))
    return found


def by_level(values):
    """Return the first levels, as far as they were seen."""
    return np.pad(values[:LEVELS], (0, max(0, LEVELS - len(values))))


def held(found, truth, half_width, name) -> Held:
    """Return which intervals held the truth, by level where there are several."""
    hits = np.abs(np.array(found) - truth) <= np.array(half_width) + 1e-12
    return {name: hits} if hits.ndim == 1 else {f"{name} {k}": column for k, column in enumerate(hits.T)}


# ------------------------------------------------------------------------------------------ kinds, one function each


def means(repetitions, known, names) -> Held:
    """Student's interval for a mean over replicates."""
    found = summaries(known, repetitions)
    hits: Held = {}
    for name in names:
        cut = np.asarray if np.ndim(known.truth[name]) == 0 or name == "response_time_tail" else by_level
        values, widths = ([cut(run[key]) for run in found] for key in (name, f"{name}_ci95"))
        hits |= held(values, known.truth[name], widths, name)
    hits.pop("occupancy_tail 0", None)  # 1, as is the share of response times above 0
    hits.pop("response_time_tail 0", None)
    return hits


SHARES = (
    "occupancy",
    "occupancy_tail",
    "dispatch_to_idle",
    "dispatch_to_observation_zero",
    "mean_queue_length",
    "mean_response_time",
)


def means_of_mm1(repetitions) -> Held:
    return means(repetitions, mm1(), (*SHARES, "dispatch_by_queue", "mass_above_bound", "response_time_tail"))


def means_of_the_chain(repetitions) -> Held:
    return means(repetitions, solved(), (*SHARES, "observation_occupancy", "dispatch_by_observation"))


def balance(repetitions) -> Held:
    return means(repetitions, solved(), ("observation_balance",))


def control_variate(repetitions) -> Held:
    name = ("controlled_response_time",)
    return {f"{name[0]}, {known.policy}": means(repetitions, known, name)[name[0]] for known in (mm1(), solved())}


def warm_up(repetitions) -> Held:
    """The halves of a window that is long settled agree as often as the level says."""
    return {
        f"halves agree at 0.05, {known.policy}": np.array(
            [
                statistics.warm_up_is_long_enough(run["warm_up_z"], REPLICATES, 0.05)
                for run in summaries(known, repetitions)
            ]
        )
        for known in (mm1(), solved())
    }


def difference_of_means(repetitions) -> Held:
    """The difference of two estimates, with the sum of their half-widths."""
    name, systems = "controlled_response_time", (mm1(), solved())
    runs = [summaries(known, repetitions) for known in systems]
    value, width = (np.array([[run[key] for run in found] for found in runs]) for key in (name, f"{name}_ci95"))
    return held(value[0] - value[1], systems[0].truth[name] - systems[1].truth[name], width.sum(axis=0), name)


def recursion_below(repetitions) -> Held:
    """(R_1 - R_0) / (d p_1), with the half-widths of the balance and of y_1 added up."""
    known, found = solved(), summaries(solved(), repetitions)
    scale = np.array([known.probed * run["occupancy"][1] for run in found])
    value = np.array([np.diff(run["dispatch_by_observation"])[0] for run in found]) / scale
    error, y = (np.array([run[f"observation_{name}_ci95"][1] for run in found]) for name in ("balance", "occupancy"))
    truth = 1 - known.truth["observation_occupancy"][1] / known.truth["occupancy"][1]
    return held(value, truth, (error + known.probed * y) / scale, "ratio")


def recursion_window(repetitions) -> Held:
    """The mean over replicates of R_1 - R_0 over d p_1 on a window of paths."""
    known = solved()
    t = np.append(0.0, np.linspace(20.0, 220.0, 41))
    ratios = []
    for seed in range(repetitions // REPETITIONS):
        runs = dc.simulate(*known.place, t, replicates=REPLICATES * REPETITIONS, seed=seed)
        sent, p = (runs[name].values[:, 0, 0, 0] for name in ("sent_by_observation", "occupancy"))
        steps, shares = recursion_terms(sent, p, t, np.arange(t.size - 1) >= 1)
        ratios.append((steps[:, 1] / (known.probed * shares[:, 1])).reshape(REPETITIONS, REPLICATES))
    ratios = np.concatenate(ratios)
    truth = 1 - known.truth["observation_occupancy"][1] / known.truth["occupancy"][1]
    return held(ratios.mean(axis=1), truth, statistics.half_width(ratios, axis=1), "ratio")


def finite_size(repetitions) -> Held:
    """Estimates from counts of jobs, with the number of jobs and services as a control variate."""
    known = solved()
    system = regimes.System(1, known.N, known.d, known.lam, known.warm_up, 200.0, 0.0)
    found = [regimes._estimates(system, REPLICATES, seed, 0.05) for seed in range(repetitions)]
    limit = float(dc.fixed_point(known.lam, known.d).mean_response_time)
    lowest, excess = known.truth["observation_occupancy"][0], known.truth["mean_response_time"] - limit
    truth = {
        "lowest_share": lowest,
        "response_excess": excess,
        "response_remainder": excess + lowest / known.lam,
        "missed_zero": 1 - known.truth["dispatch_to_observation_zero"],
    }
    hits: Held = {}
    for name, value in truth.items():
        hits |= held([run[name] for run in found], value, [run[f"{name}_ci95"] for run in found], name)
    return hits


def paired_systems(repetitions) -> Held:
    """N times the difference of two systems on the same random numbers."""
    hits: Held = {}
    for policy in ("sq", "sq-memory"):
        N, d, lam = 3, 2, 0.5
        with_, without = (solved_response(name, N, d, lam) for name in (policy, f"{policy}-distinct"))
        found = [
            dc.replacement_gap(policy, N, d, lam, t_end=320, warm_up=20, replicates=REPLICATES, seed=seed)
            for seed in range(repetitions)
        ]
        value, width = ([float(run[f"n_replacement{end}"].item()) for run in found] for end in ("", "_ci95"))
        hits |= held(value, N * (with_ - without), width, policy)
    return hits


def solved_response(policy, N, d, lam):
    return float(dc.exact_stationary(N, d, lam, 10 if "memory" in policy else 20, policy).mean_response_time)


def variances(repetitions) -> Held:
    """N times a stationary variance, about the mean of all replicates."""
    known, hits = solved(), {}
    found = [
        dc.fluctuations(*known.place[1:], t_end=420, warm_up=20, replicates=REPLICATES, seed=seed)
        for seed in range(repetitions)
    ]
    for name in ("n_var_busy", "n_var_known_idle"):
        value, width = ([float(run[f"{name}{end}"].item()) for run in found] for end in ("", "_ci95"))
        hits |= held(value, known.truth[name], width, name)
    return hits


def proportions(repetitions) -> Held:
    """The share of replicates beyond ε, of 20 000."""
    rng, hits = np.random.default_rng(1), {}
    for chance in (1e-4, 1e-3, 0.03, 0.5):
        low, high = statistics.proportion(rng.binomial(20_000, chance, repetitions), 20_000)
        hits[f"P = {chance:g}"] = (low <= chance) & (chance <= high)
    return hits


SIZES, EPSILON = np.array([200.0, 300.0, 450.0, 700.0, 1000.0]), np.array([0.08, 0.1, 0.12])
PATHS = 20_000


def tail_counts(rng, power):
    """Replicates beyond each ε at each N, those beyond the larger among those beyond the smaller; and the rates."""
    rate = 0.35 * EPSILON**2
    chance = np.exp(-0.2 - np.outer(rate, SIZES) - power * np.log(SIZES / 200))
    counts = np.empty(chance.shape, dtype=np.int64)
    left, before = np.full(SIZES.size, PATHS), np.ones(SIZES.size)
    for row, beyond in zip(counts, chance, strict=True):
        left, before = rng.binomial(left, beyond / before), beyond
        row[:] = left
    return counts, rate


def tails(repetitions) -> Held:
    """Fits to tail frequencies, as the claim about concentration has them: normal intervals."""
    rng, hits = np.random.default_rng(2), {}
    quantile = statistics.student(np.inf)
    for _ in range(repetitions):
        counts, rate = tail_counts(rng, power=1.5)
        fit = fit_tails(counts, PATHS, SIZES)
        s = rate * fit.N + 1.5
        for name, (value, error), truth in (
            ("exponent", fit.local_exponent(), s),
            ("part of the exponential", fit.exponential_part(), rate * fit.N / s),
        ):
            for k, ok in enumerate(np.abs(value - truth) <= quantile * error):
                hits.setdefault(f"{name}, ε = {EPSILON[k]:g}", []).append(ok)
        counts, _ = tail_counts(rng, power=0.0)
        value, error = fit_tails(counts, PATHS, SIZES, power=False).rate_exponent(EPSILON)
        hits.setdefault("exponent of ε", []).append(abs(value - 2) <= quantile * error)
    return {name: np.array(row) for name, row in hits.items()}


def slopes(repetitions) -> Held:
    """Slope of samples at each N, few at the largest and with another spread: Welch's degrees of freedom."""
    rng, x, number = np.random.default_rng(3), np.arange(6.0), [30, 30, 30, 30, 10, 4]
    hits: Held = {}
    for name, spread in (
        ("alike", np.ones(6)),
        ("wide at the largest N", [1, 1, 1, 1, 1, 10]),
        ("wide at the least", [3, 1, 1, 1, 1, 1]),
    ):
        row = []
        for _ in range(repetitions):
            samples = [s * rng.normal(size=n) - 0.5 * at for at, n, s in zip(x, number, spread, strict=True)]
            value, error, freedom = statistics.slope(x, samples)
            row.append(abs(value + 0.5) <= error * statistics.student(freedom))
        hits[name] = np.array(row)
    return hits


RUNS = 20  # replicates behind a rung of the paper's ladders


def ladders(repetitions, relative) -> Held:
    """Exponents in N and what a root tends to, from estimates with Student's intervals."""
    rng = np.random.default_rng(4)
    far, near = np.array([100.0, 300.0, 1000.0, 3000.0, 10_000.0]), np.array([25.0, 50.0, 100.0, 200.0])
    cases = {
        "exponent": (far, far**-0.5, -0.5),
        "local_exponent": (near, np.exp(-0.02 * near), -0.02 * 100 / np.log(2)),
        "exponential_part": (
            near,
            np.exp(-0.01 * near) / near,
            0.01 * np.sqrt(25 * 200) / (1 + 0.01 * np.sqrt(25 * 200)),
        ),
        "root_constant": (far, 0.7 / np.sqrt(far) + 0.5 / far, 0.7),
    }
    hits: Held = {}
    for method, (N, value, truth) in cases.items():
        row = []
        while len(row) < repetitions:
            samples = value * (1 + relative * np.sqrt(RUNS) * rng.normal(size=(RUNS, N.size)))
            rung = Ladder(N, samples.mean(axis=0), statistics.half_width(samples))
            if rung.resolved:  # others are not used
                found, width = getattr(rung, method)()
                row.append(abs(found - truth) <= width)
        hits[method] = np.array(row)
    return hits


def ladders_of_the_paper(repetitions) -> Held:
    return ladders(repetitions, 0.02)


def barely_resolved_ladders(repetitions) -> Held:
    return ladders(repetitions, 1 / RESOLVED / statistics.student(RUNS - 1) / 1.5)


def at_once(repetitions, families=1) -> Held:
    """All of many independent cells at once."""
    cells = 20
    samples = np.random.default_rng(5).normal(size=(repetitions, REPLICATES, families, cells))
    with statistics.at_once(families):
        factor = statistics.widening(REPLICATES, cells)
    ok = np.abs(samples.mean(axis=1)) <= factor * statistics.half_width(samples, axis=1)
    return {f"{families} lists of {cells} cells": ok.all(axis=(1, 2))}


def simultaneous(repetitions) -> Held:
    return at_once(repetitions) | at_once(repetitions, families=5)


def simultaneous_of_one_run(repetitions) -> Held:
    """The same of cells that share their runs."""
    known, names = solved(), SHARES[2:]
    factor = statistics.widening(REPLICATES, len(names))
    ok = [
        all(abs(run[name] - known.truth[name]) <= factor * run[f"{name}_ci95"] for name in names)
        for run in summaries(known, repetitions)
    ]
    return {f"{len(names)} cells": np.array(ok)}


def rare_delays(repetitions) -> Held:
    """R - 1 where few jobs or none are delayed, each by a service, with what may have been missed."""
    rng, jobs, hits = np.random.default_rng(6), 10**6, {}
    for expected in (0.1, 1.0, 10.0, 1000.0):
        delayed = rng.poisson(expected / REPLICATES, (repetitions, REPLICATES))
        delay = rng.gamma(np.maximum(delayed, 1e-9)) * (delayed > 0) / jobs
        width = statistics.half_width(delay, axis=1) + NONE_SEEN / (REPLICATES * jobs)
        hits |= held(delay.mean(axis=1), expected / REPLICATES / jobs, width, f"{expected:g} delayed jobs")
    return hits


def decays(repetitions) -> Held:
    """Rates of a power of t times an exponential, with a faster one beside it."""
    rng, t = np.random.default_rng(7), np.linspace(0, 60, 3000)
    hits = []
    for _ in range(repetitions):
        rate, power = rng.uniform(0.4, 1.0), rng.integers(0, 3)
        other = 1 + rng.uniform(-0.9, 0.9) * np.exp(-rng.uniform(0.25, 1.0) * t)
        found = measure_decay(t, (1 + t) ** power * np.exp(-rate * t) * other, 2e-13)
        hits.append(abs(found.rate - rate) <= found.rate_error)
    return {"rate": np.array(hits)}


def roots(repetitions) -> Held:
    """Exponents of exact values at 0, with corrections that fall at least by half from one to the next."""
    rng, x = np.random.default_rng(8), 10.0 ** np.arange(-8, -2)
    hits = []
    for _ in range(repetitions):
        exponent, steeper, size = rng.uniform(0.25, 1), rng.uniform(0.31, 1), rng.uniform(-0.9, 0.9)
        exact = x**exponent * (1 + size * x**steeper)
        value, error = exponent_at_zero(x, exact + 1e-14 * rng.uniform(-1, 1, x.size), 1e-14)
        hits.append(abs(value - exponent) <= error)
    return {"exponent": np.array(hits)}


# ----------------------------------------------------------------------------------------------------------- the table

# Why a kind may hold the truth more often than 95 %, and by how much at most it does.
SUMS = "half-widths are added up, as if errors never cancelled"
COUNTS = "counts are whole numbers"
SHARED = "Bonferroni's inequality, for cells that go together"
ALLOWANCE = "what may have been missed is allowed for in full"
QUANTILE = "the quantile is that of one rung, the spread is known from all"
BOUND = "a bound on an error that is no chance: it always holds"


@dataclass(frozen=True)
class Kind:
    """A kind of interval: where it is shown, its estimator, the system with its truth, why it may hold more often."""

    shown: str
    estimator: str
    system: str
    repeat: Callable[[int], Held]
    wider: str = ""


MM1, CHAIN = "20 queues M/M/1, λ = 0.3: closed forms", "sq-memory, N = 3, d = 2, λ = 0.5: solved chain"
KINDS = {
    "mean, M/M/1": Kind("P2-P5, P8, P12, N6, N7, figures", "half_width", MM1, means_of_mm1),
    "mean, chain": Kind("P2-P5, P8, P12, N6, N7, figures", "half_width", CHAIN, means_of_the_chain),
    "balance of observations": Kind("P6, steady", "half_width", CHAIN, balance),
    "control variate": Kind("P7, heavy traffic", "controlled", f"{MM1}; {CHAIN}", control_variate),
    "warm-up check": Kind("flagged cells", "halves_statistic", f"{MM1}; {CHAIN}", warm_up),
    "difference of two means": Kind(
        "P7, SQ(d) less R", "sum of half-widths", f"{MM1}; {CHAIN}", difference_of_means, SUMS
    ),
    "recursion below k": Kind("P6, steady", "sum of half-widths", CHAIN, recursion_below, SUMS),
    "recursion on a window": Kind("P6, transients", "half_width of ratios", CHAIN, recursion_window),
    "finite size": Kind("N2, N3, N5, figures", "controlled", CHAIN, finite_size),
    "paired systems": Kind("N8", "half_width", "sq and sq-memory, N = 3: solved chains", paired_systems),
    "variance": Kind("N1", "half_width of mean squares", CHAIN, variances),
    "proportion": Kind("fig-concentration, rates of passing", "proportion", "binomial counts", proportions, COUNTS),
    "tail": Kind("P9", "fit_tails", "nested binomial counts", tails),
    "slope": Kind("P1", "slope", "normal samples", slopes),
    "ladder": Kind("N2, N3, N5, N8, prose", "Ladder", "normal samples, errors of 2 %", ladders_of_the_paper, QUANTILE),
    "ladder, barely resolved": Kind(
        "N5", "Ladder", "normal samples, errors of 20 %", barely_resolved_ladders, QUANTILE
    ),
    "many cells": Kind("every claim", "widening, at_once", "normal samples", simultaneous),
    "many cells of one run": Kind("every claim", "widening", CHAIN, simultaneous_of_one_run, SHARED),
    "rare delays": Kind("P8", "half_width + unseen", "Poisson counts", rare_delays, ALLOWANCE),
    "relaxation rate": Kind("P10, fig-convergence", "measure_decay", "t^p exp(-rt)", decays, BOUND),
    "exponent at zero": Kind("N4", "exponent_at_zero", "x^a (1 + c x^b)", roots, BOUND),
}


def allowed(repetitions):
    """Return the coverages that a true one of 95 % gives but for one time in a thousand.

    Many repetitions tell that no mean over a finite time is quite normal: they are held to 1 % and sampling error,
    which still is closer than the few.
    """
    off = 0.0 if repetitions <= REPETITIONS else 0.01
    low, high = (
        stats.binom.ppf(q, repetitions, p) for q, p in ((LEVEL / 2, NOMINAL - off), (1 - LEVEL / 2, NOMINAL + off))
    )
    return float(low) / repetitions, float(high) / repetitions


@pytest.mark.parametrize("name", KINDS)
def test_intervals_hold_the_truth_as_often_as_they_say(name, soak):
    kind, repetitions = KINDS[name], SOAK if soak else REPETITIONS
    low, high = allowed(repetitions)
    assert high - low < 0.05, "too noisy to be a test"
    if kind.wider == BOUND:
        low = high = 1.0
    wrong = []
    for quantity, hits in kind.repeat(repetitions).items():
        assert hits.shape == (repetitions,)
        coverage = hits.mean()
        print(f"{name} | {quantity} | {repetitions} | {coverage:.2%} | {low:.2%} to {high:.2%} | {kind.wider}")
        if coverage < low or (coverage > high and not kind.wider):
            wrong.append(f"{quantity}: {coverage:.4f}")
    assert not wrong, f"{name} ({kind.estimator}; {kind.system}): must be {low:.4f} to {high:.4f}"


@pytest.mark.parametrize("seen", [1, 100, 1000])
def test_a_mean_of_what_is_hardly_seen_holds_its_truth_less_often(seen, soak):
    """Student's interval for a Poisson number that is seen so many times in all replicates.

    Of nothing seen it is [0, 0]: no interval for a mass of which a handful of jobs or servers tells. The tolerances are
    for masses of which thousands do; where they are not, as for rare delays, what may be missed is added.
    """
    repetitions = SOAK if soak else REPETITIONS
    counts = np.random.default_rng(9).poisson(seen / REPLICATES, (repetitions, REPLICATES)).astype(float)
    (hits,) = held(counts.mean(axis=1), seen / REPLICATES, statistics.half_width(counts, axis=1), "").values()
    low, high = allowed(repetitions)
    print(f"hardly seen | {seen} in all | {repetitions} | {hits.mean():.2%} | {low:.2%} to {high:.2%}")
    assert (low <= hits.mean() <= high) == (seen > 1)
