"""How often a check passes, by redrawing its cells, is how often it passes when the systems are run again."""

import math

import dchoices as dc
import numpy as np
import pytest
from dchoices import statistics
from dchoices.claims import engine, resampling, stationary
from dchoices.claims.engine import Cell
from scipy import stats

pytestmark = pytest.mark.trust

REPETITIONS, SOAK = 250, 5000
LEVEL = 1e-3  # of the two-sided binomial tests
SERVERS = 10_000  # the least that the checks take


def passes(runs, check, model):
    return engine.verdict(list(check({"stationary": runs}, model))) == "pass"


def pooled(runs, quantity):
    """Return runs that measured the mean of what all have, with the mean of their squared half-widths."""
    value, width = (np.array([run[name].values for run in runs]) for name in (quantity, f"{quantity}_ci95"))
    dims = runs[0][quantity].dims
    return runs[0].assign(
        {quantity: (dims, value.mean(axis=0)), f"{quantity}_ci95": (dims, np.sqrt((width**2).mean(axis=0)))}
    )


def assert_one_rate(runs, entry, model, quantity, wanted):
    """Assert that the rate of redrawn cells is that of the runs, which have to be in some range to tell anything."""
    one = pooled(runs, quantity)
    check = lambda: list(entry.check({"stationary": one}, model))  # noqa: E731
    cells = check()
    assert len(cells) == 1
    rate = resampling.pass_rate(cells, check, "test", control=True)["rate"]
    count = sum(passes(run, entry.check, model) for run in runs)
    low, high = stats.binom.interval(1 - LEVEL, len(runs), rate)
    print(f"{entry.id} {model} | redrawn {rate:.2%} | run again {count / len(runs):.2%} of {len(runs)}")
    assert wanted[0] <= rate <= wanted[1], rate
    assert low <= count <= high, f"{count} of {len(runs)}, redrawn {rate}"
    return count / len(runs)


def test_one_probe_without_memory_passes_as_often_as_redrawn(soak):
    """M/M/1 has the mass λ³ above the bound 2: with what may be missed, at λ = 0.0977 that of the tolerance."""
    loads = [0.0945, 0.0977]
    runs = [
        dc.stationary("sq", SERVERS, 1, loads, 5, 40, replicates=4, seed=seed, response_time=[0.0])
        for seed in range(SOAK if soak else REPETITIONS)
    ]
    entry = stationary.one_probe_is_enough
    for lam, wanted in zip(loads, ((0.2, 0.8), (0.01, 0.05)), strict=True):
        assert lam**3 <= stationary.NO_MASS * (1 + 1e-9)
        assert_one_rate([run.sel(λ=[lam]) for run in runs], entry, "sq", "mass_above_bound", wanted)


def test_tails_with_memory_pass_as_often_as_redrawn(soak):
    """Where level 1 alone holds enough servers memory changes nothing, and two short replicates decide by chance."""
    runs = [
        dc.stationary("sq-memory", SERVERS, 2, 0.3, 3, 2, replicates=2, seed=seed, response_time=[0.0]).isel(
            queue_length=slice(0, 2)
        )
        for seed in range(SOAK if soak else REPETITIONS)
    ]
    assert_one_rate(runs, stationary.memoryless_tails, "sq-memory", "occupancy_tail", (0.3, 0.95))


@pytest.mark.parametrize(("cells", "replicates"), [(1, 4), (5, 4), (5, 12), (1, math.inf)])
def test_a_model_at_the_edge_of_the_tolerance_passes_once_in_forty_over_the_cells(cells, replicates):
    """Its truth at the upper end in one cell, in the middle of a wide tolerance in the others."""

    def check():
        quantile = statistics.student(replicates - 1, cells)
        return [Cell("", 1.0 if k == 0 else 0.0, 0.01 * quantile, -1.0, 1.0) for k in range(cells)]

    found = resampling.pass_rate(check(), check, "edge", control=True)
    chance = 0.025 / cells
    low, high = stats.binom.interval(1 - LEVEL, found["repetitions"], chance)
    print(f"edge | {cells} cells, {replicates} replicates | {found['rate']:.3%} | {chance:.3%}")
    assert low <= found["rate"] * found["repetitions"] <= high
