"""Made-up datasets of a whole study: what every claim says, to be changed where a test needs it wrong."""

import functools
import math

import dchoices as dc
import numpy as np
import xarray as xr
from dchoices import registry
from dchoices.heavy_traffic import limit_response
from dchoices.theory.closed_forms import sq_queue_length_pmf
from made_up_regimes import finite_size

LOADS = [0.3, 0.4, 0.6, 0.72, 0.85, 0.9, 0.995]
PROBES = [1, 2, 3]
SIZES = [1000, 100_000]
LEVELS = 4000
CELL = ("policy", "N", "d", "λ")


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


def dispatch_limits(policy, lam, d):
    """Shares of jobs and of servers by observation, as N grows."""
    jobs, servers = np.zeros(LEVELS), np.zeros(LEVELS)
    if policy == "sq":
        servers, _, _ = limits("sq", lam, d)
        tail = servers[::-1].cumsum()[::-1]
        return tail**d - np.append(tail[1:], 0) ** d, servers
    point = dc.fixed_point(lam, d)
    jobs[: point.sizes["j"]], servers[: point.sizes["j"]] = point.dispatch, point.state.sum("i")
    return jobs, servers


def stationary(sizes=SIZES, ci95=1e-5):
    shape = (2, len(sizes), len(PROBES), len(LOADS))
    occupancy, idle, zero = np.zeros((*shape, LEVELS)), np.zeros(shape), np.zeros(shape)
    jobs, observed = np.zeros_like(occupancy), np.zeros_like(occupancy)
    above = np.zeros(shape)
    for p, policy in enumerate(("sq-memory", "sq")):
        for b, d in enumerate(PROBES):
            for c, lam in enumerate(LOADS):
                pmf, idle[p, :, b, c], zero[p, :, b, c] = limits(policy, lam, d)
                occupancy[p, :, b, c] = pmf
                jobs[p, :, b, c], observed[p, :, b, c] = dispatch_limits(policy, lam, d)
                above[p, :, b, c] = pmf[dc.queue_bound(lam, d) + 1 :].sum()
    values = {
        "occupancy": ((*CELL, "queue_length"), occupancy),
        "occupancy_tail": ((*CELL, "queue_length"), occupancy[..., ::-1].cumsum(axis=-1)[..., ::-1]),
        "dispatch_by_observation": ((*CELL, "queue_length"), jobs),
        "observation_occupancy": ((*CELL, "queue_length"), observed),
        "observation_balance": ((*CELL, "queue_length"), np.zeros_like(jobs)),
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


@functools.cache
def paths(N=200_000, t_end=5.0, noise=1e-3, start="overloaded-4", lam=0.6, d=2):
    """Jobs sent along the fluid paths with memory and without, each count with a relative error."""
    rng = np.random.default_rng(1)
    t = np.arange(round(t_end / 0.05) + 1) * 0.05
    fluid = dc.fluid_dispatch(lam, d, t, start=start)
    levels = fluid.sizes["queue_length"]
    occupancy = [dc.fluid_path(lam, d, t, start, policy).occupancy.values for policy in ("sq-memory", "sq")]
    occupancy = np.array([p[:, :levels] for p in occupancy])
    tail = 1 - np.pad(occupancy[1].cumsum(axis=1), [(0, 0), (1, 0)])
    rates = np.array([fluid.fluid_dispatch.values[0, 0], -np.diff(tail**d, axis=1)])
    sent = np.zeros((10, *rates.shape))
    sent[:, :, 1:] = N * lam * 0.05 * (rates[:, 1:] + rates[:, :-1]) / 2
    sent *= 1 + noise * rng.normal(size=sent.shape)
    dims = ("replicate", "policy", "t", "queue_length")
    return (
        xr.Dataset(
            {
                "sent_by_observation": (dims, np.maximum(sent, 0).round().astype(int)),
                "occupancy": (dims, np.broadcast_to(occupancy, sent.shape)),
            },
            coords={
                "replicate": np.arange(10),
                "policy": ["sq-memory", "sq"],
                "t": t,
                "queue_length": np.arange(levels),
            },
        )
        .expand_dims(start=[start], N=[N], d=[d], λ=[lam])
        .merge(fluid.expand_dims(start=[start]), join="exact")
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


LAWS = ["deterministic", "erlang(stages=4)", "exponential", "hyperexponential(scv=4.0)"]


@functools.cache
def service(sizes=(10_000,), ci95=1e-4, loads=(0.4, 0.6, 0.72, 0.925), laws=tuple(LAWS), limit=dc.service_fixed_point):
    """Stationary runs at the limits of every law; `limit` (λ, d, law) is where they settle."""
    shape = (len(laws), 1, len(sizes), len(PROBES), len(loads))
    occupancy, idle, zero = np.zeros((*shape, 12)), np.zeros(shape), np.zeros(shape)
    for a, law in enumerate(laws):
        for b, d in enumerate(PROBES):
            for c, lam in enumerate(loads):
                point = limit(lam, d, law)
                occupancy[a, 0, :, b, c, : point.sizes["i"]] = point.queue_length_pmf
                idle[a, 0, :, b, c], zero[a, 0, :, b, c] = point.dispatch_to_idle, min(1, d * (1 - lam))
    cell = ("service", *CELL)
    values = {
        "occupancy": ((*cell, "queue_length"), occupancy),
        "occupancy_tail": ((*cell, "queue_length"), occupancy[..., ::-1].cumsum(axis=-1)[..., ::-1]),
        "dispatch_to_idle": (cell, idle),
        "dispatch_to_observation_zero": (cell, zero),
    }
    widths = {f"{name}_ci95": (dims, np.full_like(array, ci95)) for name, (dims, array) in values.items()}
    return xr.Dataset(
        {**values, **widths, "warm_up_ok": (cell, np.ones(shape, np.int8))},
        coords={
            "service": list(laws), "policy": ["sq-memory"], "N": list(sizes), "d": PROBES, "λ": list(loads),
            "queue_length": np.arange(12),
        },
        attrs={"replicates": 8},
    )  # fmt: skip


def gaps(sizes=(20, 80, 320), ci95=0.01, exponent=-1.0, factor=1.0, policies=("sq-memory", "sq"), loads=(0.3, 0.7)):
    """N times the cost of replacement: its limit, times a factor and a power of N over the largest N."""
    limits = np.array([[[dc.replacement_limit(lam, 2, policy) for lam in loads]] for policy in policies])
    power = (np.array(sizes, float) / max(sizes)) ** (exponent + 1)
    values = factor * limits[:, None] * power[:, None, None]
    dims = ("policy", "N", "d", "λ")
    return xr.Dataset(
        {"n_replacement": (dims, values), "n_replacement_ci95": (dims, np.full(values.shape, ci95))},
        {"policy": list(policies), "N": list(sizes), "d": [2], "λ": list(loads)},
        {"replicates": 20},
    )


def variances(N=1000, ci95=0.01, busy=1.0, known_idle=1.0):
    """N times the stationary variances over a grid: their limits below the threshold, times a factor each."""
    loads, ds, dims = [0.1, 0.3, 0.6], [2, 5], ("N", "d", "λ")
    limits = np.array(
        [[dc.fluctuations_below_threshold(lam, d) if lam < 1 - 1 / d else (0.4, 0.1) for lam in loads] for d in ds]
    )[None]
    arrays = {"n_var_busy": limits[..., 0] * busy, "n_var_known_idle": limits[..., 1] * known_idle}
    widths = {f"{name}_ci95": (dims, array * ci95) for name, array in arrays.items()}
    arrays = {name: (dims, array) for name, array in arrays.items()}
    return xr.Dataset({**arrays, **widths}, {"N": [N], "d": ds, "λ": loads}, {"replicates": 40})


HEAVY = {"sq-memory": [2], "sq": [2, 3]}
CONSTANT = {"sq-memory": [3, 6, 21], "sq": [3, 6, 21], "sq-log": [0]}


def labelled(policies, sizes, loads, response, ci95=1e-6):
    """Policies with their d side by side, from a function of (name, N, d, λ)."""
    chosen = {registry.label(name, d): (name, d) for name, ds in policies.items() for d in ds}
    values = np.array([[[response(name, N, d, lam) for lam in loads] for N in sizes] for name, d in chosen.values()])
    dims = ("policy", "N", "λ")
    response_times = {
        f"{kind}_response_time{end}": (dims, array)
        for kind in ("mean", "controlled")
        for end, array in (("", values), ("_ci95", np.full(values.shape, ci95)))
    }
    return xr.Dataset(
        {
            **response_times,
            "horizon": (dims, np.full(values.shape, 50.0)),
            "warm_up_ok": (dims, np.ones(values.shape, np.int8)),
            "probes": ("policy", [d for _, d in chosen.values()]),
        },
        coords={"policy": list(chosen), "N": list(sizes), "λ": list(loads)},
        attrs={"replicates": 6},
    )


def saturating(excess=lambda name, N, d, lam: 0.3 / (N * (1 - lam)), sizes=(100, 20_000), **more):
    """The limits in heavy traffic, and what jobs in excess of them take; 0.998 is too heavy for N = 1000."""

    def response(name, N, d, lam):
        return limit_response(name, lam, d) + excess(name, N, d, lam)

    return labelled(HEAVY, sizes, [0.9, 0.99, 0.998], response, **more)


def enough(policies=CONSTANT, sizes=(1000, 10_000, 10**6), loads=(0.6, 0.8, 0.95), delay=None, **more):
    """The limits with memory and without; `delay` changes R - 1 of some."""

    def response(name, N, d, lam):
        name, d = ("sq", math.ceil(math.log(N))) if name == "sq-log" else (name, d)
        expected = limit_response(name, lam, d) - 1
        return 1 + (delay(name, N, d, lam, expected) if delay else expected)

    return labelled(policies, sizes, loads, response, **more)


def study(**changes):
    right = distances(-0.5, -0.05)
    parts = {
        "stationary": stationary(),
        "fixed_points": dc.fixed_point_grid(np.linspace(0.05, 0.99, 40), PROBES),
        "bound_grid": dc.bound_grid(np.linspace(0.05, 0.99, 40), PROBES),
        "convergence": settling(),
        "trajectories": right,
        "ladder": ladder(),
        "recursion": paths(),
        "concentration": tails(exponential),
        "service": service(),
        "fluctuations": variances(),
        "replacement": gaps(),
        "heavy_traffic": saturating(),
        "constant_d": enough(),
        "finite_size": finite_size(),
    }
    return {**parts, **changes}
