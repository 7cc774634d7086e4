"""The benchmark, `make bench`: time per uniformised event, memory, time per fluid path; ours and others' in one run.

Every figure is the best of several repetitions on one thread; ratios are to the kernel of dchoices on the same case. An
event-driven simulator handles λN arrivals and as many departures while the uniformised chain makes N(1+λ) events; its
time per job is set against (1+λ)/λ events.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import rivals
from dchoices import provenance, registry, starts
from dchoices.kernels import sfc64
from dchoices.lumped import LumpedChain
from dchoices.theory.closed_forms import queue_bound
from dchoices.theory.fluid import fluid_path
from tqdm import tqdm

LOADS, PROBES = (0.9, 0.995), (2, 5)
SIZES = tuple(10**k for k in range(3, 10))
PER_SERVER_SIZES = {"sq": (10**3, 10**4, 10**6, 10**8), "sq-memory": (10**3, 10**4, 10**6, 10**7)}  # what memory holds
EVENTS, REPETITIONS = 1_000_000, 25
SIMPY_JOBS, CIW_JOBS = 20_000, 3_000
FLUID_CASES = ((0.4, 2), (0.7, 2), (0.9, 2), (0.995, 2), (0.9, 1), (0.999, 10))
FLUID_STARTS = ("empty", "overloaded-3", "stale-6")
FLUID_GRID = np.arange(101.0)
FLUID_ERROR = 1e-8
WIDTHS = 10.0 ** -np.arange(6, 14)  # of the smoothed switch, tried until the error is ours
SEED = np.random.SeedSequence(20200801)


def best(run: Callable[[], object], repetitions: int = REPETITIONS) -> float:
    """Return the seconds of the fastest repetition, after one that is not counted."""
    run()
    times = []
    for _ in range(repetitions):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return min(times)


def peak_mb() -> float:
    """Return the largest resident set of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def draw_ns() -> float:
    """Return the nanoseconds of one raw draw of 64 bits."""
    state, out = sfc64.initial_state(SEED), np.empty(10_000, np.uint64)
    return best(lambda: sfc64.fill_words(state, out), 50) / out.size * 1e9


def lumped_ns(policy: str, N: int, d: int, lam: float) -> float:
    """Return the nanoseconds per event of our kernel, started at the fixed point."""
    chosen = registry.get(policy)
    chain = LumpedChain(chosen, N, d, lam, starts.fractions("fixed-point", chosen, lam, d), SEED.spawn(1)[0])
    duration, done = EVENTS / (N * (1 + lam)), [0]
    seconds = []
    chain.advance(duration)
    for _ in range(REPETITIONS):
        started = time.perf_counter()
        done[0] = chain.advance(duration)
        seconds.append((time.perf_counter() - started) / done[0])
    return min(seconds) * 1e9


def per_server_ns(policy: str, N: int, d: int, lam: float) -> float:
    """Return the nanoseconds per event of the per-server loop, started at the same counts."""
    chosen = registry.get(policy)
    counts = starts.counts(starts.fractions("fixed-point", chosen, lam, d), N)
    rng = sfc64.initial_state(SEED)
    if not chosen.memory:
        queue = np.repeat(np.arange(counts.size), counts).astype(np.int16)
        return best(lambda: rivals.per_server(d, lam, EVENTS, queue, rng)) / EVENTS * 1e9
    pairs = np.argwhere(counts)
    queue, observation = (np.repeat(column, counts[tuple(pairs.T)]).astype(np.int16) for column in pairs.T)
    lists = rivals.lists(observation)
    run = lambda: rivals.per_server_with_memory(d, lam, EVENTS, queue, observation, *lists, rng)  # noqa: E731
    return best(run) / EVENTS * 1e9


def measure() -> pd.DataFrame:
    """Return the table: a row for every simulator and case."""
    for policy in PER_SERVER_SIZES:
        lumped_ns(policy, 1000, 2, 0.9)  # compiles
    base = peak_mb()
    rows = []
    cases = [(p, lam, d, N) for p in PER_SERVER_SIZES for lam in LOADS for d in PROBES for N in SIZES]
    for policy, lam, d, N in tqdm(cases, desc="dchoices"):
        ns = lumped_ns(policy, N, d, lam)
        rows.append(("dchoices", policy, lam, d, N, ns, peak_mb() - base))
    ours = {row[1:5]: row[5] for row in rows}
    for policy, lam, d, N in tqdm(cases, desc="per-server loop"):
        if N in PER_SERVER_SIZES[policy]:
            rows.append(("per-server loop", policy, lam, d, N, per_server_ns(policy, N, d, lam), np.nan))
    per_job = (0.9 + 1) / 0.9  # events
    for name, seconds, jobs in (
        ("SimPy", rivals.simpy_seconds_per_job, SIMPY_JOBS),
        ("Ciw", rivals.ciw_seconds_per_job, CIW_JOBS),
    ):
        rows.append((name, "sq", 0.9, 2, 1000, seconds(1000, 2, 0.9, jobs) / per_job * 1e9, np.nan))
    table = pd.DataFrame(rows, columns=["simulator", "policy", "λ", "d", "N", "ns per event", "memory, MB"])
    table["ratio to dchoices"] = [row[5] / ours[row[1:5]] for row in rows]
    table["ratio to a draw"] = table["ns per event"] / draw_ns()
    return table


def smoothed_ms(lam: float, d: int, start: str) -> tuple[float, float]:
    """Return the milliseconds of LSODA on the widest smoothed drift with an error of `FLUID_ERROR`, and its error.

    Where none has so small an error, it is the most exact one.
    """
    exact = fluid_path(lam, d, FLUID_GRID, start, tolerance=1e-10).occupancy.values
    x, levels = np.zeros((max(exact.shape[1], queue_bound(lam, d) + 3),) * 2), exact.shape[1]
    given = starts.fractions(start, registry.get("sq-memory"), lam, d)
    x[: len(given), : len(given)] = given
    reached = []
    for width in WIDTHS:
        occupancy = rivals.smoothed_path(x, d, lam, FLUID_GRID, width, FLUID_ERROR / 100)
        if occupancy is None:
            break
        reached.append((float(np.abs(occupancy[:, :levels] - exact).max()), width))
        if reached[-1][0] <= FLUID_ERROR:
            break
    error, width = min(reached)
    return best(lambda: rivals.smoothed_path(x, d, lam, FLUID_GRID, width, FLUID_ERROR / 100), 3) * 1e3, error


def measure_fluid() -> pd.DataFrame:
    """Return the table of fluid paths to t = 100: ours at tolerance 1e-8, LSODA on a smoothed drift at that error."""
    rows = []
    for (lam, d), start in tqdm([(c, s) for c in FLUID_CASES for s in FLUID_STARTS], desc="fluid paths"):
        path = fluid_path(lam, d, FLUID_GRID, start)
        ms = best(lambda: fluid_path(lam, d, FLUID_GRID, start), 5) * 1e3  # noqa: B023
        other, error = smoothed_ms(lam, d, start)
        rows.append((lam, d, queue_bound(lam, d), start, ms, path.attrs["steps"], other, error, other / ms))
    head = ["λ", "d", "Q", "start", "ms", "steps", "LSODA, ms", "its error", "ratio"]
    return pd.DataFrame(rows, columns=head)


def save(table: pd.DataFrame, target: Path) -> None:
    """Print a table and save it."""
    print(table.to_string(index=False, float_format=lambda value: f"{value:.3g}", na_rep="-"))
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_suffix(".new")
    table.to_csv(temporary, index=False)
    temporary.replace(target)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and save the tables."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--out", type=Path, default=Path("data/benchmark"))
    out = parser.parse_args(arguments).out
    save(measure(), out / "speed.csv")
    save(measure_fluid(), out / "fluid.csv")
    print(f"one draw: {draw_ns():.2f} ns; versions: {provenance.versions()}; saved to {out}")


if __name__ == "__main__":
    main()
