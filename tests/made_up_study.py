"""A made-up study that has the shape of a real one: the limits are the model's, the noise is drawn."""

import json
import math
import os
import time
from pathlib import Path

import numpy as np
import xarray as xr
from dchoices import datasets as dc_datasets
from dchoices import registry
from dchoices.heavy_traffic import limit_response
from dchoices.report import __main__ as report
from dchoices.theory import closed_forms, levels, spectrum
from dchoices.theory.fluctuations import fluctuations_below_threshold
from dchoices.theory.general_service import service_fixed_point
from dchoices.theory.replacement import replacement_limit
from dchoices.variables import describe
from made_up_regimes import finite_size

LEVELS = 8
POLICIES = ("sq-memory", "sq")
LAWS = ("deterministic", "erlang(stages=4)", "exponential", "hyperexponential(scv=4.0)")
SIDE_BY_SIDE = ("random", "my-policy", "sq", "sq-memory", "sq-log", "sq-sqrt", "jiq", "jsq")


def padded(pmf, levels=LEVELS):
    """Return the distribution on exactly `levels` levels, the rest of its mass in the last."""
    out = np.zeros(levels)
    head = np.asarray(pmf)[:levels]
    out[: len(head)] = head
    out[-1] += 1 - out.sum()
    return out


def limit(policy, lam, d, levels=LEVELS):
    if policy == "sq":
        return padded(closed_forms.sq_queue_length_pmf(lam, d), levels)
    return padded(closed_forms.fixed_point(lam, d)["queue_length_pmf"].values, levels)


def attrs(study, **parameters):
    return {
        "title": f"made-up {study}",
        "profile": "made-up",
        "parameters": json.dumps(parameters),
        "seed": 1,
        "commit": "0123456789abcdef0123456789abcdef01234567",
        "versions": json.dumps({"python": "3.11", "numpy": "2.0"}),
        "notebook": f"notebooks/{study}.ipynb",
        "events": 500_000_000,
        "cpu_seconds": 9.0,
        "peak_memory_mb": 321,
        "created_by": "tests",
    }


def fluid(d, lam, t):
    """Stand-in for the fluid path: from empty to the fixed point at rate 1."""
    empty = np.eye(LEVELS)[0]
    weight = np.exp(-t)[:, None]
    occupancy = [[weight * empty + (1 - weight) * limit("sq-memory", v, k) for v in lam] for k in d]
    return xr.Dataset(
        {"occupancy": (("d", "λ", "t", "queue_length"), np.array(occupancy))},
        {"d": list(d), "λ": list(lam), "t": t, "queue_length": np.arange(LEVELS)},
        attrs("fluid"),
    )


def distances(rng, shape, sizes):
    """Distances that fall like 1/√N, and a control that stays."""
    root = np.sqrt(np.array(sizes, float)).reshape(1, -1, *[1] * (len(shape) - 2))
    return 0.9 / root * rng.lognormal(0, 0.2, shape), 0.9 / root * 0.3 + 0.08 * rng.lognormal(0, 0.1, shape)


def trajectories(rng, path, sizes, replicates):
    spread = np.sqrt(np.abs(path["occupancy"].values * (1 - path["occupancy"].values)))
    scale = 1 / np.sqrt(np.array(sizes, float)).reshape(-1, 1, 1, 1, 1)
    mean = path["occupancy"].values + 0.3 * scale * spread * rng.standard_normal((len(sizes), *spread.shape))
    mean = np.abs(mean) / np.abs(mean).sum(-1, keepdims=True)
    shape = (replicates, len(sizes), path.sizes["d"], path.sizes["λ"])
    near, control = distances(rng, shape, sizes)
    dims = ("N", "d", "λ", "t", "queue_length")
    return xr.Dataset(
        {
            "occupancy": (dims, mean),
            "occupancy_std": (dims, scale * spread[None]),
            "sup_distance": (("replicate", "N", "d", "λ"), near),
            "sup_distance_control": (("replicate", "N", "d", "λ"), control),
        },
        {"N": list(sizes), "replicate": np.arange(replicates), **path.coords},
        attrs("trajectories", replicates=replicates, t_end=float(path["t"].max())),
    )


def ladder(rng, path, sizes, names, replicates):
    """With one replicate less at the largest N, where there are several."""
    t = path["t"].values[::10]
    shape = (replicates, len(sizes), path.sizes["d"], path.sizes["λ"])
    pairs = [distances(rng, shape, sizes) for _ in names]
    occupancy = np.broadcast_to(
        path["occupancy"].sel(t=t).values, (len(names), len(sizes), *path["occupancy"].sel(t=t).shape)
    )
    dims = ("start", "replicate", "N", "d", "λ")
    ds = xr.Dataset(
        {
            "sup_distance": (dims, np.array([near for near, _ in pairs])),
            "sup_distance_control": (dims, np.array([control for _, control in pairs])),
            "occupancy": (("start", "N", "d", "λ", "t", "queue_length"), occupancy),
        },
        {
            "start": list(names), "replicate": np.arange(replicates), "N": list(sizes), "d": path["d"],
            "λ": path["λ"], "t": t, "queue_length": path["queue_length"],
        },
        attrs("ladder", replicates=[replicates] * (len(sizes) - 1) + [max(1, replicates - 1)]),
    )  # fmt: skip
    absent = (ds["N"] == sizes[-1]) & (ds["replicate"] == replicates - 1) & (replicates > 1)
    distance = ["sup_distance", "sup_distance_control"]
    return ds.assign(ds[distance].where(~absent).transpose(*dims))


def concentration(sizes, perturbation, replicates=10_000):
    """Tails that fall exponentially, and for the control like 1/√N."""
    size, epsilon = np.array(sizes, float)[:, None], np.array([0.08, 0.1])
    tail = {0: 0.7 * np.exp(-0.01 * size * (epsilon / 0.08) ** 2), 1: 0.03 / epsilon * (size / size[0]) ** -0.5}
    frequency = np.array([np.round(tail[scale] * replicates) / replicates for scale in perturbation])
    dims = ("perturbation", "N", "d", "λ")
    places = (len(perturbation), len(sizes), 1, 2)
    return xr.Dataset(
        {
            "tail_frequency": ((*dims, "ε"), np.broadcast_to(frequency[:, :, None, None], (*places, 2))),
            "median_distance": (dims, np.broadcast_to(size[..., None] ** -0.5, places)),
        },
        {"perturbation": list(perturbation), "N": list(sizes), "d": [2], "λ": [0.4, 0.7], "ε": epsilon},
        attrs("concentration", replicates=replicates) | {"replicates": replicates},
    )


def portrait(d, loads, t):
    """Stand-in for fluid paths from four starts: straight to the fixed point."""
    ends = {name: np.empty((len(d), len(loads), 1)) for name in ("busy_share", "waiting_jobs", "known_idle")}
    for b, k in enumerate(d):
        for c, lam in enumerate(loads):
            pmf = limit("sq-memory", lam, k)
            ends["busy_share"][b, c] = lam
            ends["waiting_jobs"][b, c] = pmf[2:] @ np.arange(1, LEVELS - 1)
            ends["known_idle"][b, c] = max(1 - lam - 1 / k, 0)
    begins = {"busy_share": [0, 0.4, 0, 0.4], "waiting_jobs": [0, 0.4, 0, 0.4], "known_idle": [1, 0.6, 0, 0]}
    weight = np.exp(-t)
    paths = {
        name: np.reshape(begin, (-1, 1, 1, 1)) * weight + ends[name] * (1 - weight) for name, begin in begins.items()
    }
    variables = {name: (("start", "d", "λ", "t"), values) for name, values in paths.items()}
    variables["mode"] = (("start", "d", "λ", "t"), (paths["known_idle"] < 0.05) * (1 + (paths["waiting_jobs"] > 0.5)))
    names = [f"p = {shares}, {memory}" for memory in ("fresh", "stale") for shares in ([1], [0.6, 0, 0.4])]
    return xr.Dataset(
        variables,
        {"start": names, "d": list(d), "λ": list(loads), "t": t},
        attrs("portrait", starts=[[1], [0.6, 0, 0.4]]),
    )


def fixed_points(d, n_loads):
    dense = np.unique(
        np.concatenate([np.linspace(0.005, 0.995, n_loads // 2), 1 - np.geomspace(0.5, 1e-5, n_loads // 2)])
    )
    points = [[closed_forms.fixed_point(lam, k) for lam in dense] for k in d]
    pmf = np.array([[padded(p["queue_length_pmf"].values, 20) for p in row] for row in points])
    response = (pmf * np.arange(20)).sum(-1) / dense
    zero = np.minimum(1, np.array(d)[:, None] * (1 - dense))
    dims = ("d", "λ")
    return xr.Dataset(
        {
            "queue_length_pmf": ((*dims, "queue_length"), pmf),
            "mean_response_time": (dims, response),
            "dispatch_to_idle": (dims, pmf[..., 1] / dense),
            "dispatch_to_observation_zero": (dims, zero),
        },
        {"d": list(d), "λ": dense, "queue_length": np.arange(20)},
        attrs("fixed_points", lam_points=n_loads),
    )


def bound_grid(d, n_loads):
    grid = levels.bound_grid(1 - np.geomspace(0.95, 1e-5, n_loads), range(1, max(d) + 1))
    return grid.assign_attrs(attrs("bound_grid", most_probes=max(d), lam_points=n_loads))


def dispatch(policy, lam, d, levels):
    """Limits of the fractions of jobs and of servers by observation."""
    if policy == "sq":
        pmf = limit(policy, lam, d, levels)
        return -np.diff(np.append(pmf[::-1].cumsum()[::-1] ** d, 0.0)), pmf
    point = closed_forms.fixed_point(lam, d)
    return padded(point["dispatch"].values, levels), padded(point["state"].values.sum(axis=0), levels)


def recursion(rng, policies, starts, d, loads, replicates=3, N=200_000):
    """Paths on which k goes down from 3 to 1 and the servers below k are those that the recursion allows."""
    t = np.arange(0, 6.05, 0.1)
    mode = np.select([t < 2, t < 4], [3, 2], 1)
    level = np.arange(LEVELS)
    probes = np.array(d, float)[:, None, None, None]
    below = np.where(level < mode[:, None], 0.2 * 0.5 ** (mode[:, None] - 1.0 - level), 0.0) / probes
    at_k = (level == mode[:, None]) * 1.0
    shape = (len(d), len(loads), t.size, LEVELS)
    p = np.broadcast_to(below + (1 - below.sum(-1, keepdims=True)) * at_k, shape)
    jobs = np.cumsum(probes * below, axis=-1) * (level < mode[:, None])
    limit_of_jobs = np.broadcast_to(jobs + (1 - jobs.sum(-1, keepdims=True)) * at_k, shape)
    tails = p[..., ::-1].cumsum(-1)[..., ::-1] ** probes
    shares = {"sq-memory": limit_of_jobs, "sq": tails - np.append(tails[..., 1:], np.zeros((*shape[:-1], 1)), -1)}
    observed = {"sq-memory": np.broadcast_to(at_k, shape), "sq": p}
    sent = np.array([[shares[policy] for policy in policies]] * len(starts))[None, :, :, None]
    size = np.array(loads)[:, None, None] * N * 0.1
    dims = ("start", "policy", "N", "d", "λ", "t", "queue_length")
    full = (replicates, len(starts), len(policies), 1, *shape)
    return xr.Dataset(
        {
            "sent_by_observation": (("replicate", *dims), rng.poisson(np.broadcast_to(size * sent, full))),
            "occupancy": (("replicate", *dims), np.broadcast_to(p, full)),
            "observation_occupancy": (dims, np.array([[[observed[policy]] for policy in policies]] * len(starts))),
            "fluid_dispatch": (("start", *dims[3:]), np.array([limit_of_jobs] * len(starts))),
            "mode": (("start", "d", "λ", "t"), np.broadcast_to(mode, (len(starts), *shape[:3]))),
        },
        {"replicate": np.arange(replicates), "start": list(starts), "policy": list(policies), "N": [N], "d": list(d),
         "λ": list(loads), "t": t, "queue_length": level},
        attrs("recursion", replicates=replicates),
    )  # fmt: skip


def fluctuations(d, loads):
    """Variances at their limits below the threshold, and flat above it."""
    limits = np.array([[flat_above(lam, k) for lam in loads] for k in d])[None]
    dims = ("N", "d", "λ")
    values = {"n_var_busy": limits[..., 0], "n_var_known_idle": limits[..., 1]}
    widths = {f"{name}_ci95": (dims, 0.01 * value) for name, value in values.items()}
    values = {name: (dims, value) for name, value in values.items()}
    coords = {"N": [1000], "d": list(d), "λ": list(loads)}
    return describe(xr.Dataset({**values, **widths}, coords, attrs("fluctuations") | {"replicates": 10}))


def replacement(rng, d, loads, sizes=(20, 80, 320)):
    policies, dims = ["sq-memory", "sq"], ("policy", "N", "d", "λ")
    limits = np.array([[[replacement_limit(lam, k, policy) for lam in loads] for k in d] for policy in policies])
    values = limits[:, None] * (1 + 0.02 * rng.standard_normal((1, len(sizes), 1, 1)))
    arrays = {"n_replacement": (dims, values), "n_replacement_ci95": (dims, np.full(values.shape, 0.02))}
    coords = {"policy": policies, "N": list(sizes), "d": list(d), "λ": list(loads)}
    return describe(xr.Dataset(arrays, coords, attrs("replacement") | {"replicates": 20}))


def flat_above(lam, d):
    return fluctuations_below_threshold(lam, d) if lam < 1 - 1 / d else (0.4, 0.1)


def convergence(rng, d, loads):
    """Rates at the spectral gap; at a step of the bound the first start does not settle and the other does."""
    steps = [closed_forms.switch_load(level, k) for k in d for level in (1, 2)]
    lam = np.unique([*loads, *(step + part * (1 - step) for step in steps for part in (-0.1, 0, 0.1))])
    lam = lam[(lam > 0) & (lam < 0.999)]
    gap = np.array([[spectrum.spectral_gap(x, k) for x in lam] for k in d])
    rate = np.stack([gap, np.where(gap > 0, gap, 0.1)]) * (1 + 1e-3 * rng.standard_normal((2, *gap.shape)))
    examples, t = [0.4, closed_forms.switch_load(2, 2), 0.9], np.geomspace(0.1, 1e4, 60)
    dims = ("start", "d", "λ")
    return xr.Dataset(
        {
            "relaxation_rate": (dims, rate),
            "relaxation_rate_error": (dims, np.full(rate.shape, 0.01)),
            "decay_exponent": (dims, np.where(rate > 0, 7.0, 1.0)),
            "decay_exponent_error": (dims, np.full(rate.shape, 0.01)),
            "distance_left": (dims, np.where(rate > 0, 1e-11, 1e-5)),
            "settled": (dims, (rate > 0).astype(np.int8)),
            "spectral_gap": (dims[1:], gap),
            "distance": (("example_load", "t"), [np.exp(-0.6 * t), 1 / (1 + t), np.exp(-0.1 * t)]),
        },
        {"start": ["empty", "overloaded-3"], "d": list(d), "λ": lam, "example_load": examples, "t": t},
        attrs("convergence") | {"example_d": 2},
    )


def stationary(rng, policies, sizes, d, loads, replicates, levels=60):
    size = np.array(sizes, float).reshape(1, -1, 1, 1)
    pmf = np.array([[[limit(p, lam, k, levels) for lam in loads] for k in d] for p in policies])
    pmf = np.broadcast_to(pmf[:, None], (len(policies), len(sizes), *pmf.shape[1:])).copy()
    leak = 0.3 / size[..., None] * pmf[..., :-1]
    pmf[..., 1:] += leak
    pmf[..., :-1] -= leak
    lam = np.array(loads)
    dims = ("policy", "N", "d", "λ")
    shape = pmf.shape[:-1]
    mean = (pmf * np.arange(levels)).sum(-1)
    probes = np.broadcast_to(np.array(d, float)[:, None], shape)
    tail = np.arange(0, 5.0)
    estimates = {
        "dispatch_to_idle": pmf[..., 1] / lam,
        "dispatch_to_observation_zero": np.minimum(1, probes * (1 - lam)),
        "mean_queue_length": mean,
        "mean_response_time": mean / lam,
        "messages_per_job": 2 * probes,
        "mass_above_bound": 0.1 / np.broadcast_to(size, shape),
    }
    variables = {}
    for name, value in estimates.items():
        half = 0.2 / np.sqrt(np.broadcast_to(size, shape) * replicates)
        variables[name] = (dims, value + 0.4 * half * rng.standard_normal(shape))
        variables[f"{name}_ci95"] = (dims, half)
    variables["occupancy"] = ((*dims, "queue_length"), pmf)
    variables["occupancy_ci95"] = ((*dims, "queue_length"), pmf / 50)
    variables["occupancy_tail_ci95"] = ((*dims, "queue_length"), pmf / 50)
    limits = np.array([[[dispatch(p, lam, k, levels) for lam in loads] for k in d] for p in policies])
    by_level = {"dispatch_by_observation": limits[..., 0, :], "observation_occupancy": limits[..., 1, :]}
    by_level["observation_balance"] = np.zeros_like(limits[..., 0, :])
    for name, value in by_level.items():
        variables[name] = ((*dims, "queue_length"), np.broadcast_to(value[:, None], pmf.shape))
        variables[f"{name}_ci95"] = ((*dims, "queue_length"), np.full(pmf.shape, 1e-4))
    response = np.broadcast_to(np.exp(-tail), (*shape, tail.size))
    variables["response_time_tail"] = ((*dims, "response_time"), response)
    variables["response_time_tail_ci95"] = ((*dims, "response_time"), response / 50)
    variables["max_queue"] = (dims, (pmf > 1e-5 / size[..., None]).cumsum(-1).argmax(-1))
    variables["warm_up"] = (dims, np.full(shape, 40.0))
    variables["warm_up_z"] = (dims, rng.standard_normal(shape))
    variables["warm_up_ok"] = (dims, np.ones(shape, np.int8))
    coords = {"policy": list(policies), "N": list(sizes), "d": list(d), "λ": list(loads)}
    coords |= {"queue_length": np.arange(levels), "response_time": tail}
    return xr.Dataset(variables, coords, attrs("stationary", horizon=100, replicates=replicates))


def compared(rng, policies, sizes, loads, replicates):
    """Policies side by side: those that are not known here, the user's own, lie between random and sq."""
    ds = stationary(rng, ["sq"] * len(policies), sizes, [2], loads, replicates).squeeze("d", drop=True)
    pull = {"random": 0.0, "sq": 0.6, "sq-memory": 0.8, "sq-log": 0.9, "sq-sqrt": 1.0, "jsq": 1.0, "jiq": 1.0}
    lam = np.array(loads)
    t = np.arange(0, 20.5, 0.5)
    share = np.array([pull.get(name, 0.3) for name in policies])[:, None, None]
    mean = np.broadcast_to(1 + (1 - share) * lam / (1 - lam), (len(policies), len(sizes), len(loads)))
    tail = np.exp(-t / mean[..., None])
    costs = {"random": 0, "jiq": 0.97, "jsq": 2e4, "sq-log": 20, "sq-sqrt": 200}
    messages = np.array([costs.get(name, 4.0) for name in policies])[:, None, None]
    dims = ("policy", "N", "λ")
    ds = ds.drop_vars([name for name in ds.data_vars if "response_time" in ds[name].dims] + ["response_time"])
    ds = ds.assign(
        mean_response_time=(dims, mean),
        horizon=(dims, np.full(mean.shape, 50.0)),
        messages_per_job=(dims, np.broadcast_to(messages, mean.shape)),
        response_time_tail=((*dims, "response_time"), tail),
        response_time_tail_ci95=((*dims, "response_time"), tail / 50),
        probes=("policy", [0 if name in ("random", "jsq", "jiq", "sq-log", "sq-sqrt") else 2 for name in policies]),
    )
    ds = ds.assign_coords(policy=list(policies), response_time=t)
    given = dict(zip(policies, ds["probes"].values.tolist(), strict=True))
    return ds.assign_attrs(attrs("policies", policies=given) | {"replicates": replicates})


def service(rng, laws, d, loads, replicates, N=10_000):
    """Every law near where its limit settles."""
    one = stationary(rng, ["sq-memory"], [N], d, loads, replicates, levels=12)
    runs = [one.copy(deep=True) for _ in laws]
    for run, law in zip(runs, laws, strict=True):
        for k in d:
            for lam in loads:
                pmf = service_fixed_point(lam, k, law)["queue_length_pmf"].values
                run["occupancy"].loc[{"d": k, "λ": lam}] = padded(pmf, 12)
    joined = xr.concat(runs, xr.DataArray(list(laws), dims="service", name="service"), data_vars="all")
    return joined.assign_attrs(attrs("service", laws={"deterministic": {}, "erlang": {"stages": 4}}))


def labelled(study, policies, sizes, loads, response, replicates=4, **more):
    """Policies with their d on a ladder of N, from a function of (name, N, d, λ)."""
    chosen = {registry.label(name, d): (name, d) for name, ds in policies.items() for d in ds}
    dims = ("policy", "N", "λ")
    value = np.array([[[response(name, N, d, lam) for lam in loads] for N in sizes] for name, d in chosen.values()])
    cost = {"jsq": 2 * sizes[-1], "jiq": 1, "sq-log": 20, "sq-sqrt": 60}
    messages = np.array([cost.get(name, 2 * d) for name, d in chosen.values()], float)
    half = np.minimum(0.01, (value - 1) / 10)
    variables = {
        "mean_response_time": (dims, value),
        "mean_response_time_ci95": (dims, half),
        "controlled_response_time": (dims, value),
        "controlled_response_time_ci95": (dims, half),
        "messages_per_job": (dims, np.broadcast_to(messages[:, None, None], value.shape)),
        "horizon": (dims, np.full(value.shape, 50.0)),
        "warm_up_ok": (dims, np.ones(value.shape, np.int8)),
        "probes": ("policy", [d for _, d in chosen.values()]),
    }
    coords = {"policy": list(chosen), "N": list(sizes), "λ": list(loads)}
    return xr.Dataset(variables, coords, attrs(study, policies=policies) | {"replicates": replicates} | more)


def heavy_traffic(policies=None, sizes=(100, 20_000), loads=(0.9, 0.99)):
    """The limits, and for each job what jobs in excess of them take."""

    def response(name, N, d, lam):
        return limit_response(name, lam, d) + 0.3 / (N * (1 - lam))

    return labelled("heavy_traffic", policies or {"sq-memory": [2], "sq": [2, 3]}, sizes, loads, response)


def constant_d(policies=None, sizes=(100, 10_000, 10**6), loads=(0.6, 0.8)):
    """The limits, and no delay where each job finds an idle server."""
    limits = {"sq-log": lambda N, lam: limit_response("sq", lam, max(1, math.ceil(math.log(N))))}

    def response(name, N, d, lam):
        if name in ("sq", "sq-memory"):
            return limit_response(name, lam, d)
        return limits.get(name, lambda N, lam: 1 + (0.1 / N if N < 1000 else 0))(N, lam)

    default = {"sq-memory": [2, 3, 6], "sq": [2, 3, 6], "sq-log": [0], "sq-sqrt": [0], "jiq": [0], "jsq": [0]}
    return labelled("constant_d", policies or default, sizes, loads, response)


STATEMENTS = {
    "P1": "Fluid limit: the distance between X^N and the fluid path goes to 0 from every start",
    "P2": "If λ < 1 - 1/d every job finds an idle server as N grows, and the mean response time goes to 1",
    "P3": "Only if: above 1 - 1/d the share of jobs sent to observation 0 tends to d(1-λ) < 1",
    "P4": r"Queues are bounded by $Q(\lambda, d) = \lceil -\log(1-\lambda)/\log(\lambda d+1) \rceil$, tightly",
    "P5": "Without memory a positive share of servers holds i jobs for every i: λ^((d^i-1)/(d-1))",
    "P6": "The shares of jobs by observation obey a recursion: R_j - R_(j-1) = d p_j below k",
    "P7": "No persistent queueing: R / log(1/(1-λ)) tends to 1/log(1+d) with memory, to 1/log d without",
    "P8": "A constant d is enough: R - 1 <= ε from some N_0 on with d = ⌊1/(1-λ)⌋ + 1 and memory",
    "P9": "Concentration: the probability of a distance above ε falls exponentially in N",
    "P11": "At λ = 0.995 the bound is 5 for d = 2 and 4 for d = 3",
    "P12": "One probe is enough for a bounded queue: d = 1 with memory",
    "N1": "Fluctuations below the threshold: N Var(p_1) tends to λ",
}
HEURISTICS = {"N1": "Busy servers are a queue M/M/∞, so that their number has the variance λN."}
CONTROLS = {
    "P1": "the fluid model with d + 1 probes",
    "P2": "memoryless SQ(d)",
    "P3": "memoryless SQ(d), whose idle share is 1-λ^d",
    "P4": "the bound with log(λd) for log(λd+1)",
    "P5": "SQ(d) with memory",
    "P6": "memoryless SQ(d)",
    "P7": "memoryless SQ(d)",
    "P8": "the same constant d without memory",
    "P9": "λ with a Cauchy factor of size 1/√N",
    "P11": "the early abstract's 3 at d = 3",
    "P12": "d = 1 without memory (M/M/1)",
    "N1": "independent servers",
}
# Figure, measured value, half-width, tolerance, quantity, measured on the control.
MEASURED = {
    "P1": ("fig-error", -0.4987, 0.009, (-0.55, -0.45), "slope of log distance against log N", -0.021),
    "P2": ("fig-idle", 1.00031, 0.00022, (0.999, 1.002), "mean response time at the largest N", 1.211),
    "P3": ("fig-idle", 0.00012, 0.0009, (-0.01, 0.01), "measured share less the limit", 0.0913),
    "P4": ("fig-bound", 1.0, 0.0, (1, 1), "share of the grid where level and bound agree", 0.4132),
    "P5": ("fig-memory", 0.0021, 0.0015, (-0.02, 0.02), "largest relative deviation over levels", -0.88),
    "P6": ("fig-recursion", 1.0012, 0.0051, (0.95, 1.05), "step over d p_j, for 1 <= j < k", 0.41),
    "P7": ("fig-heavy-traffic", 1.0991, 0.0, (0.936, 1.261), "growth of log(1/(1-λ)) with R", 0.6935),
    "P8": ("fig-messages", 2e-4, 1e-4, (None, 1), "R - 1 over ε", 11.9),
    "P9": ("fig-concentration", 0.97, 0.08, (0.5, 1.5), "part of the fall that is an exponential's", -0.13),
    "P11": ("fig-bound", 0.0, 0.0, (0, 0), "levels found less levels stated", 1.0),
    "P12": ("fig-memory", 1.3e-07, 4e-08, (None, 1e-4), "mass above the bound at the largest N", 0.6561),
    "N1": ("fig-idle", 1.002, 0.011, (0.95, 1.05), "N Var(p_1) over λ", 0.6),
}

STUDY_OF = {
    "fig-error": "trajectories",
    "fig-bound": "bound_grid",
    "fig-recursion": "recursion",
    "fig-concentration": "concentration",
    "fig-heavy-traffic": "heavy_traffic",
    "fig-messages": "constant_d",
}


def claims():
    """Return a list of claims as claims.json has them, all of them passing."""
    records = []
    for name, (figure, measured, half, tolerance, quantity, control_measured) in MEASURED.items():
        study = STUDY_OF.get(figure, "stationary")
        records.append(
            {
                "id": name,
                "statement": STATEMENTS[name],
                "source": "arXiv:1802.06566, abstract",
                "heuristic": HEURISTICS.get(name, ""),
                "quantity": quantity,
                "measured": measured,
                "ci95": [measured - half, measured + half],
                "tolerance": list(tolerance),
                "tolerance_reason": "Theory gives the value; the margin is four standard errors of the estimate.",
                "at": "N = 100000, d = 2, λ = 0.48",
                "cells": 16,
                "cells_beside": 4,
                "verdict": "pass",
                "verdict_at_once": "pass",
                "control": CONTROLS[name],
                "control_measured": control_measured,
                "control_ci95": [control_measured - half, control_measured + half],
                "control_tolerance": list(tolerance),
                "control_at": "N = 100000, d = 2, λ = 0.48",
                "control_cells": 16,
                "control_cells_failing": 12,
                "control_verdict": "fail",
                "pass_rate": {"rate": 0.98, "ci95": [0.977, 0.983], "repetitions": 10_000},
                "false_pass_rate": {"rate": 0.0, "ci95": [0.0, 3.7e-4], "repetitions": 10_000},
                "evidence": {
                    "notebook": f"notebooks/{study}.ipynb",
                    "dataset": f"data/made-up/{study}.nc",
                    "dataset_hash": "deadbeef",
                    "figure": figure,
                },
            }
        )
    return records


def study(sizes=(100, 1000, 10_000), d=(1, 2, 3), loads=(0.3, 0.48, 0.52, 0.9, 0.95), policies=POLICIES,
          replicates=4, n_loads=60, t_step=0.25, side_by_side=SIDE_BY_SIDE, tail_sizes=(200, 300, 450, 700),
          perturbation=(0, 1), laws=LAWS, regimes=None):  # fmt: skip
    """Return the datasets of a made-up study."""
    rng = np.random.default_rng(7)
    path = fluid(d, loads, np.arange(0, 20 + t_step / 2, t_step))
    return {
        "trajectories": trajectories(rng, path, sizes, replicates),
        "ladder": ladder(rng, path, sizes, ["overloaded-3", "stale-2"], replicates),
        "concentration": concentration(tail_sizes, perturbation),
        "fluid": path,
        "portrait": portrait(d, loads, np.linspace(0, 3, 30) ** 2),
        "fixed_points": fixed_points(d, n_loads),
        "bound_grid": bound_grid(d, n_loads),
        "convergence": convergence(np.random.default_rng(7), d, loads),
        "stationary": stationary(rng, policies, sizes, d, loads, replicates),
        "policies": compared(rng, side_by_side, sizes, loads, replicates),
        "heavy_traffic": heavy_traffic({"sq-memory": [2], "sq": [2, 3]} if "sq" in policies else {"sq-memory": [2]}),
        "constant_d": constant_d({name: [2, 3] for name in policies} | {"sq-log": [0], "jsq": [0]}),
        "recursion": recursion(rng, policies, ["empty", "overloaded-3"], d, loads),
        "service": service(np.random.default_rng(7), laws, d, loads, replicates),
        "finite_size": finite_size(regimes).assign_attrs(attrs("finite_size") | {"replicates": 20}),
        "fluctuations": fluctuations(d, loads),
        "replacement": replacement(rng, d, loads),
    }


def write(folder: Path, datasets, records):
    """Write a study as the workflow leaves it: datasets, claims, an executed notebook, benchmarks."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, ds in datasets.items():
        dc_datasets.write(ds, folder / f"{name}.nc")
        (folder / "logs" / name).mkdir(parents=True, exist_ok=True)
        (folder / "logs" / name / "d=2.ipynb").write_text("{}")
    started = folder / "times" / "started"
    started.parent.mkdir()
    started.write_text("")
    os.utime(started, (time.time() - 20,) * 2)
    for job in (*(f"notebook/{name}/d=2" for name in datasets), "claims"):
        file = folder / "times" / f"{job}.time"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("0m0.250s 0m0.050s\n0m11.000s 0m0.700s\n13\n")
    (folder / "claims.json").write_text(json.dumps(records))
    return folder


def write_report(root: Path, template: Path):
    """Write a small study as the workflow leaves it, and the report of it; return the folder of the report."""
    small = study(d=(2,), loads=(0.3, 0.48, 0.9, 0.95))
    small["portrait"] = portrait((1, 2), (0.3, 0.48, 0.9, 0.95), small["portrait"]["t"].values)  # with a choice of d
    data, out = write(root / "data" / "made-up", small, claims()), root / "report" / "build" / "made-up"
    assert report.main([f"--data={data}", f"--template={template}", f"--out={out}"]) == 0
    return out
