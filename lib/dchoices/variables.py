"""The registry of dimensions and variables: what each means, in which unit, on which dimensions."""

from __future__ import annotations

from dataclasses import dataclass

import xarray as xr


@dataclass(frozen=True)
class Variable:
    """What a variable is: its possible dimensions (most to fewest), unit and meaning."""

    dims: tuple[str, ...]
    units: str
    description: str


DIMENSIONS = {
    "N": ("servers", "number of servers"),
    "d": ("probes per job", "servers probed at an arrival; 0 for a policy without such a number"),
    "λ": ("jobs per server and mean service time", "load, the arrival rate per server"),
    "t": ("mean service times", "time since the start"),
    "queue_length": ("jobs", "jobs at a server, the one in service included"),
    "replicate": ("1", "independent replicate"),
    "service": ("1", "law of the service times, which have mean 1"),
    "policy": ("1", "dispatching policy"),
    "start": ("1", "initial state"),
    "perturbation": ("1", "scale of a heavy-tailed factor on the load of each replicate; 0: the system itself"),
    "ε": ("1", "distance to the fluid path"),
    "response_time": ("mean service times", "response time, waiting and service"),
    "i": ("jobs", "queue length"),
    "j": ("jobs", "observation"),
    "point": ("1", "where the load lies: a regime, with its offset from a step"),
    "side": ("1", "side of a step of the bound that the load is on"),
    "step": ("jobs", "Q of the step of the bound from Q to Q + 1; 0: a load that is no step"),
    "closeness": ("1", "distance of the load from a step of the bound, in units of 1 - λ there"),
    "example_load": ("jobs per server and mean service time", "load of an example"),
}

_ESTIMATES = {
    "occupancy": Variable(
        ("replicate", "start", "service", "policy", "N", "d", "λ", "t", "queue_length"),
        "1",
        "fraction of servers by queue length",
    ),
    "occupancy_tail": Variable(
        ("service", "policy", "N", "d", "λ", "queue_length"), "1", "fraction of servers with at least so many jobs"
    ),
    "observation_occupancy": Variable(
        ("replicate", "start", "service", "policy", "N", "d", "λ", "t", "queue_length"),
        "1",
        "fraction of servers by observation",
    ),
    "observation_balance": Variable(
        ("service", "policy", "N", "d", "λ", "queue_length"),
        "1",
        "R_j - R_{j-1} - d (p_j - y_j), with the expected number of different servers among the probes for d",
    ),
    "dispatch_by_queue": Variable(
        ("service", "policy", "N", "d", "λ", "t", "queue_length"), "1", "fraction of jobs by the queue length they find"
    ),
    "dispatch_by_observation": Variable(
        ("service", "policy", "N", "d", "λ", "queue_length"), "1", "fraction of jobs by the observation of their server"
    ),
    "dispatch_to_idle": Variable(
        ("service", "policy", "N", "d", "λ", "t"), "1", "fraction of jobs that find an idle server"
    ),
    "dispatch_to_observation_zero": Variable(
        ("service", "policy", "N", "d", "λ"), "1", "fraction of jobs sent to a server with observation 0"
    ),
    "mean_queue_length": Variable(("service", "policy", "N", "d", "λ"), "jobs", "mean queue length"),
    "mean_response_time": Variable(
        ("service", "policy", "N", "d", "λ", "t"), "mean service times", "mean response time of a job"
    ),
    "controlled_response_time": Variable(
        ("service", "policy", "N", "d", "λ"),
        "mean service times",
        "mean response time of a job, with the share of busy servers, whose mean is λ, as a control variate",
    ),
    "response_time_tail": Variable(
        ("service", "policy", "N", "d", "λ", "response_time"), "1", "fraction of jobs whose response time exceeds"
    ),
    "mass_above_bound": Variable(
        ("service", "policy", "N", "d", "λ"), "1", "fraction of servers with more than Q(λ, d) jobs (d = 0: than 1)"
    ),
    "n_var_busy": Variable(("N", "d", "λ"), "1", "N times the stationary variance of the fraction of busy servers"),
    "n_var_known_idle": Variable(
        ("N", "d", "λ"), "1", "N times the stationary variance of the fraction of servers with observation 0"
    ),
    "n_replacement": Variable(
        ("policy", "N", "d", "λ"),
        "mean service times",
        "N times what probing with replacement adds to the mean response time",
    ),
    "messages_per_job": Variable(
        ("service", "policy", "N", "d", "λ"),
        "messages",
        "messages per job: query and reply of a probe count as two, a report as one",
    ),
    "lowest_share": Variable(
        ("point", "N", "d"), "1", "y, fraction of servers with observation Q - 1, Q the level of the nearest step"
    ),
    "response_excess": Variable(
        ("point", "N", "d"), "mean service times", "mean response time less that of the fluid limit, R_N - R"
    ),
    "response_remainder": Variable(
        ("point", "N", "d"),
        "mean service times",
        "R_N - R + y/λ, what servers of the lowest observation do not explain",
    ),
    "missed_zero": Variable(("point", "N", "d"), "1", "fraction of jobs not sent to a server with observation 0"),
}

VARIABLES: dict[str, Variable] = {
    **_ESTIMATES,
    **{
        f"{name}_ci95": Variable(kind.dims, kind.units, f"half-width of the 95 % interval: {kind.description}")
        for name, kind in _ESTIMATES.items()
    },
    "occupancy_std": Variable(
        ("start", "N", "d", "λ", "t", "queue_length"), "1", "standard deviation over replicates of the occupancy"
    ),
    "sup_distance": Variable(
        ("start", "replicate", "N", "d", "λ"), "1",
        "sup over the time grid of the total variation between the occupancy and the fluid path",
    ),
    "sup_distance_control": Variable(
        ("start", "replicate", "N", "d", "λ"), "1", "the same distance to the fluid path with d + 1 probes"
    ),
    "tail_frequency": Variable(
        ("perturbation", "N", "d", "λ", "ε"), "1",
        "fraction of replicates whose sup-distance to the fluid path is greater than ε",
    ),
    "median_distance": Variable(
        ("perturbation", "N", "d", "λ"), "1", "median over replicates of the sup-distance to the fluid path"
    ),
    "sent_by_queue": Variable(
        ("replicate", "N", "d", "λ", "t", "queue_length"), "jobs", "jobs sent since the time before, by true queue"
    ),
    "sent_by_observation": Variable(
        ("replicate", "start", "policy", "N", "d", "λ", "t", "queue_length"), "jobs",
        "jobs sent since the time before, by observation",
    ),
    "state": Variable(("t", "i", "j"), "1", "fraction of servers with i jobs and observation j"),
    "dispatch": Variable(("t", "j"), "1", "fraction of jobs sent to servers with observation j"),
    "fluid_dispatch": Variable(
        ("start", "d", "λ", "t", "queue_length"), "1",
        "fraction of jobs sent to servers with this observation, fluid path",
    ),
    "mode": Variable(
        ("start", "d", "λ", "t"), "jobs", "lowest observation with mass, without memory the lowest queue length"
    ),
    "busy_share": Variable(("start", "d", "λ", "t"), "1", "fraction of busy servers, 1 - p_0"),
    "waiting_jobs": Variable(("start", "d", "λ", "t"), "jobs", "jobs per server that wait, Σ (i-1) p_i over i >= 1"),
    "known_idle": Variable(("start", "d", "λ", "t"), "1", "fraction of servers with observation 0, all of them idle"),
    "truncated_mass": Variable((), "1", "probability that some server is at the buffer"),
    "max_queue": Variable(
        ("replicate", "service", "policy", "N", "d", "λ", "t"), "jobs",
        "longest queue seen: since the start on a time grid, else in the measured windows",
    ),
    "probes": Variable(("policy",), "probes per job", "the d of each policy; 0 for a policy without such a number"),
    "warm_up": Variable(
        ("service", "policy", "point", "N", "d", "λ"), "mean service times", "time discarded before measuring"
    ),
    "horizon": Variable(
        ("service", "policy", "point", "N", "d", "λ"), "mean service times", "time measured after the warm-up"
    ),
    "warm_up_z": Variable(
        ("service", "policy", "point", "N", "d", "λ"), "1",
        "Student statistic of the mean queue in the two halves of the window",
    ),
    "warm_up_ok": Variable(
        ("service", "policy", "point", "N", "d", "λ"), "1",
        "1 if the halves agree, at level 0.001; of points 0.05 for all at once",
    ),
    "queue_length_pmf": Variable(("d", "λ", "queue_length"), "1", "fraction of servers by queue length, fixed point"),
    "level": Variable(("d", "λ"), "jobs", "longest queue with mass at the fixed point, found without the formula"),
    "bound": Variable(("d", "λ"), "jobs", "Q(λ, d) = ⌈-log(1-λ)/log(λd+1)⌉"),
    "decided_exactly": Variable(("d", "λ"), "1", "1 if it took rational arithmetic to find the level"),
    "distance": Variable(
        ("example_load", "t"), "1", "total variation between the full states of a fluid path and its fixed point"
    ),
    "distance_left": Variable(("start", "d", "λ"), "1", "the same distance where the path ends"),
    "settled": Variable(("start", "d", "λ"), "1", "1 if the path comes within 1e-7 of its fixed point"),
    "relaxation_rate": Variable(
        ("start", "d", "λ"), "1/mean service time", "-d log distance / dt, late on the path, extrapolated"
    ),
    "relaxation_rate_error": Variable(
        ("start", "d", "λ"), "1/mean service time", "half-width of the interval: relaxation rate"
    ),
    "decay_exponent": Variable(
        ("start", "d", "λ"), "1", "-d log distance / d log t over the last decade, for paths that do not settle"
    ),
    "decay_exponent_error": Variable(("start", "d", "λ"), "1", "half-width of the interval: decay exponent"),
    "spectral_gap": Variable(
        ("d", "λ"), "1/mean service time", "rate of the slowest deviation in the linearised fluid model"
    ),
    "load": Variable(("point", "N", "d"), "jobs per server and mean service time", "load λ of a point"),
    "offset": Variable(("point",), "1", "distance of the load from the step λ_Q, in units of (1 - λ_Q) N^(-Q/(Q+1))"),
    "response_step": Variable(
        ("side", "step", "d", "closeness"), "mean service times",
        "|R(λ_Q ± ε) - R(λ_Q)|, mean response time of the fluid limit at and next to a step",
    ),
}  # fmt: skip


# What another processor may change of a value (of one above 1, relatively), by its linear algebra and its logarithms.
TOLERANCE = 1e-9
# Nothing, if it is a sum, a quotient or a square root of counts: numpy rounds these everywhere alike.
COUNTED = frozenset(
    {
        "occupancy",
        "occupancy_std",
        "occupancy_tail",
        "observation_occupancy",
        "dispatch_by_queue",
        "dispatch_by_observation",
        "dispatch_to_idle",
        "dispatch_to_observation_zero",
        "mass_above_bound",
        "max_queue",
        "messages_per_job",
        "n_replacement",
        "n_var_busy",
        "n_var_known_idle",
        "probes",
        "sent_by_queue",
        "sent_by_observation",
    }
)


# Read off the last of a path, where its error is a thousandth of its distance: these have moved by up to 1e-4.
ROUGH_TOLERANCE = 1e-3
ROUGH = frozenset({"relaxation_rate", "relaxation_rate_error", "decay_exponent", "decay_exponent_error"})


def tolerance(dataset: xr.Dataset, name: str) -> float:
    """Return what another processor may change of a variable: 0 if it is made of counts.

    A dataset without N is of the fluid model, which has none; jobs of given service laws come and go at times that are
    drawn through logarithms.
    """
    if name in COUNTED and "N" in dataset.dims and "service" not in dataset.dims:
        return 0.0
    return ROUGH_TOLERANCE if name in ROUGH else TOLERANCE


def describe(dataset: xr.Dataset) -> xr.Dataset:
    """Write the registered unit and description into the attributes of every variable; returns the dataset.

    Raises
    ------
    KeyError
        If a dimension or variable is not registered.
    """
    for name in map(str, dataset.variables):
        units, description = (
            DIMENSIONS[name] if name in dataset.dims else (VARIABLES[name].units, VARIABLES[name].description)
        )
        dataset[name].attrs.update(units=units, description=description)
    return dataset
