"""Service laws: what a unit of work is, in time. Each has mean 1, so that time stays in mean service times."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dchoices import validation
from dchoices.kernels import codes
from dchoices.wording import show

LOG_TIMES = (-40.0, 4.0)  # logarithm of an exponential time of mean 1, but for a probability of 1e-17
MOST_STAGES = 1000  # each costs a logarithm per job; such a law is deterministic to three per cent


@dataclass(frozen=True)
class ServiceLaw:
    """A distribution of service times with mean 1, as `service_law` makes it.

    Attributes
    ----------
    name : str
        Its name in arguments and datasets.
    parameters : tuple of (str, float)
        Its parameters by name.
    code : int
        How the kernel knows it.
    constants : (float, float, float)
        What the kernel computes with, worked out from the parameters.
    scv : float
        Squared coefficient of variation, the variance; may be infinite.
    laplace : callable
        Its Laplace transform, s >= 0 -> E[exp(-sS)]: the probability that nothing of rate s happens in a service time.
    """

    name: str
    parameters: tuple[tuple[str, float], ...]
    code: int
    constants: tuple[float, float, float]
    scv: float
    laplace: Callable[[float], float] = field(repr=False, compare=False)

    @property
    def mean(self) -> float:
        """The mean service time, 1."""
        return 1.0

    @property
    def label(self) -> str:
        """Name and exact parameters; it keys the random stream."""
        inside = ", ".join(f"{name}={value!r}" for name, value in self.parameters)
        return f"{self.name}({inside})" if inside else self.name


def _stages(name: str, value: Any) -> int:
    return validation.integer(name, value, 1, MOST_STAGES)


def _within(above: float, most: float, reason: str) -> Callable[[str, Any], float]:
    """Return a check for a number in (above, most]."""

    def check(name: str, value: Any) -> float:
        if not above < (number := validation.real(value)) <= most:
            raise ValueError(
                f"{name} = {show(value)}: must be a number greater than {above:g} and at most {most:g} ({reason})"
            )
        return number

    return check


# What a law is made of: its code, the constants of the kernel, the squared coefficient of variation, and the Laplace
# transform.
Made = tuple[int, tuple[float, float, float], float, Callable[[float], float]]


def _exponential() -> Made:
    return codes.EXPONENTIAL, (0.0, 0.0, 0.0), 1.0, lambda s: 1 / (1 + s)


def _deterministic() -> Made:
    return codes.DETERMINISTIC, (0.0, 0.0, 0.0), 0.0, lambda s: math.exp(-s)


def _erlang(stages: int) -> Made:
    constants = (float(stages), 1 / stages, 0.0)
    return codes.ERLANG, constants, 1 / stages, lambda s: math.exp(-stages * math.log1p(s / stages))


def _hyperexponential(scv: float) -> Made:
    # Balanced means: either phase does half of the work, p m_1 = (1-p) m_2 = 1/2.
    p = (1 + math.sqrt((scv - 1) / (scv + 1))) / 2
    first, second = 1 / (2 * p), 1 / (2 * (1 - p))
    return (
        codes.HYPEREXPONENTIAL, (p, first, second), scv, lambda s: p / (1 + s * first) + (1 - p) / (1 + s * second)
    )  # fmt: skip


def _weibull(shape: float) -> Made:
    scale = 1 / math.gamma(1 + 1 / shape)
    scv = math.gamma(1 + 2 / shape) * scale**2 - 1
    return codes.WEIBULL, (scale, 1 / shape, 0.0), scv, lambda s: _mean_of(s, lambda time: scale * time ** (1 / shape))


def _pareto(shape: float) -> Made:
    scv = 1 / (shape * (shape - 2)) if shape > 2 else math.inf
    least = 1 - 1 / shape
    return (
        codes.PARETO, (least, -1 / shape, 0.0), scv, lambda s: _mean_of(s, lambda time: least * math.exp(time / shape))
    )  # fmt: skip


def _mean_of(s: float, service: Callable[[float], float]) -> float:
    """Return E[exp(-sS)] by quadrature, where the service time S is a function of an exponential time of mean 1.

    Over the logarithm of that time, in which no s is so large that the integrand is a peak too narrow to be found.
    """
    from scipy.integrate import quad

    def integrand(log: float) -> float:
        time = math.exp(log)
        return math.exp(log - time - s * service(time))

    return float(quad(integrand, *LOG_TIMES, epsabs=1e-14, epsrel=1e-13, limit=1000)[0])


# The checks of the parameters, and what they make.
_LAWS: dict[str, tuple[dict[str, Callable[[str, Any], float]], Callable[..., Made]]] = {
    "exponential": ({}, _exponential),
    "deterministic": ({}, _deterministic),
    "erlang": ({"stages": _stages}, _erlang),
    "hyperexponential": ({"scv": _within(1.0, 1e6, "two phases vary more than one")}, _hyperexponential),
    "weibull": ({"shape": _within(0.05, 100.0, "beyond, floating point is at its end")}, _weibull),
    "pareto": ({"shape": _within(1.0, 1000.0, "the mean is infinite up to 1")}, _pareto),
}


def service_law(name: str, **parameters: Any) -> ServiceLaw:
    """Return a law of service times with mean 1.

    Parameters
    ----------
    name : str
        With its parameters in brackets: "exponential"; "deterministic"; "erlang" (stages, an integer in [1, 1000]);
        "hyperexponential" (scv > 1: two exponential phases with balanced means, either doing half of the work);
        "weibull" (shape > 0.05: P(S > x) = exp(-(x/s)^shape)); "pareto" (shape > 1: P(S > x) = (x_m/x)^shape from
        x_m = 1 - 1/shape on, Pareto's first kind; the variance is infinite up to shape 2).
    **parameters
        The parameters of that law.

    Returns
    -------
    ServiceLaw
        With ``name``, ``parameters``, ``scv`` (squared coefficient of variation) and ``label``.

    Raises
    ------
    ValueError
        If there is no such law, or a parameter is missing, unknown or out of range (an infinite mean included).
    """
    checks, make = _LAWS[validation.choice("service", name, _LAWS)]
    if set(parameters) != set(checks):
        call = ", ".join([repr(name), *(f"{field}=…" for field in checks)])
        raise ValueError(f"service = {name!r} with parameters {show(sorted(parameters))}: must be service_law({call})")
    checked = {field: check(field, parameters[field]) for field, check in checks.items()}
    return ServiceLaw(name, tuple(checked.items()), *make(**checked))


def as_law(service: Any) -> ServiceLaw:
    """Return a law given as such, by the name of one without parameters, or by its label, as "erlang(stages=4)".

    Raises
    ------
    ValueError
        If it is none of these.
    """
    if isinstance(service, ServiceLaw):
        return service
    label = re.fullmatch(r"(\w+)(?:\((\w+)=([^,()]+)\))?", service) if isinstance(service, str) else None
    if label is None:
        raise ValueError(f"service = {show(service)}: must be the name of a law, its label or what service_law returns")
    name, parameter, value = label.groups()
    return service_law(name, **{parameter: _number(value)}) if parameter else service_law(name)


def _number(text: str) -> int | float | str:
    """Return the number that a text is, or the text, which no check of a parameter lets pass."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
