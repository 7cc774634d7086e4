"""The configuration of a study: read, checked against config/schema.json, turned into the list of jobs.

``python -m dchoices.workflow.config config/paper.yaml`` prints the plan, or one line that says what is wrong.
"""

from __future__ import annotations

import argparse
import difflib
import functools
import itertools
import json
import math
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dchoices.capacity import CALL, LAST_SWITCH, MAX_EVENTS
from dchoices.studies import STUDIES
from dchoices.wording import show
from dchoices.workflow import without_uri_checks
from dchoices.workflow.closure import ClosureError, registered_policies
from dchoices.workflow.estimates import estimated_calls, estimated_events, estimated_points
from dchoices.workflow.reading import MAX_DEPTH, MAX_ITEMS, ConfigError, read, show_key, show_path

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = ROOT / "config" / "schema.json"
OWN_POLICIES = ROOT / "notebooks" / "policies.ipynb"  # which registers some that its study may then ask for
NOT_PARAMETERS = ("split", "events")  # keys of a study that its notebook does not get
FLUID_GRID = ("d", "lam", "t_end", "t_step")  # what fluid.nc and trajectories.nc share
DISTINCT = ("sq-distinct", "sq-memory-distinct")  # policies that probe d different servers
ONE_FOR_EACH_SIZE = {"ladder": ["replicates"], "constant_d": ["warm_up", "horizon"]}  # lists as long as N
MOST_JOBS = 1000  # of a study; each starts a notebook
MOST_STEPS = 10**5  # of a time grid
STEP_TOLERANCE = 1e-9  # t_end / t_step may miss a whole number by rounding, not by more
SUM_TOLERANCE = 1e-9  # as far as shares may miss 1, which is as far as `starts` lets them
# States that a study may solve or hold: half an hour or a GB, and for a job of a simulation half a GB.
MOST_POINTS = {"fixed_points": 1e5, "portrait": 1e7, "bound_grid": 1e7, "convergence": 1e7, "fluctuations": 1e7}
MOST_POINTS_ELSE = 1e6


@dataclass(frozen=True)
class Job:
    """One run of one notebook.

    Attributes
    ----------
    study : str
        The notebook, without its ending.
    part : str
        Which share of the study it is: "d=2", or "all".
    parameters : dict
        What the notebook gets, except for `output`.
    events : float
        Estimated number of simulated events.
    """

    study: str
    part: str
    parameters: dict[str, Any]
    events: float

    @property
    def name(self) -> str:
        """The study and the part, as in the paths of the job's files."""
        return f"{self.study}/{self.part}"

    def as_yaml(self) -> str:
        """Return the text of the job's parameter file."""
        return yaml.safe_dump(self.parameters, allow_unicode=True, default_flow_style=None)


@dataclass(frozen=True)
class Plan:
    """Everything a profile asks for."""

    profile: str
    budgets: dict[str, float]
    jobs: dict[str, Job]

    @property
    def data(self) -> Path:
        """The folder of a run's datasets, relative to the project."""
        return Path("data", self.profile)

    @property
    def report(self) -> Path:
        """The folder of its report."""
        return Path("report", "build", *([] if self.profile == "paper" else [self.profile]))

    @property
    def studies(self) -> list[str]:
        """Names of the studies, in the order of the configuration."""
        return list(dict.fromkeys(job.study for job in self.jobs.values()))

    @property
    def is_whole(self) -> bool:
        """Whether every study is there, as the report needs; it is a short one otherwise."""
        return set(self.studies) == set(STUDIES)

    @property
    def pages(self) -> list[Path]:
        """The files of the report."""
        names = ["report.html", "report.pdf", "claims.md", *(["main-figure.svg"] if self.is_whole else [])]
        return [self.report / name for name in names]

    def parts(self, study: str) -> list[str]:
        """Return the parts into which a study is split."""
        return [job.part for job in self.jobs.values() if job.study == study]

    def events(self, study: str) -> float:
        """Return the estimated number of simulated events of a study."""
        return sum(job.events for job in self.jobs.values() if job.study == study)


def make_plan(config: Any, source: str = "config") -> Plan:
    """Check a configuration and return its jobs.

    Parameters
    ----------
    config : dict
        As read from the YAML file.
    source : str
        What error messages name: the file.

    Raises
    ------
    ConfigError
        If anything is wrong, with the first thing that is.
    """
    try:
        checked = _check(config)
        jobs = {job.name: job for job in _jobs(checked)}
        studies = checked["studies"]
        budgets = {name: float(study["events"]) for name, study in studies.items() if "events" in study}
        plan = Plan(checked["profile"], budgets, jobs)
        _check_costs(plan)
    except ConfigError as error:
        raise ConfigError(f"{show_path(source)}: {error}") from None
    return plan


def _check(config: Any) -> dict[str, Any]:
    """Return the configuration with whole floats as integers where the schema wants integers."""
    _refuse_unfit(config, [])
    errors = list(_validator().iter_errors(config))
    if errors:
        # A misspelt key is also a missing key: the misspelling explains more.
        raise ConfigError(_explain(min(errors, key=lambda error: error.validator != "additionalProperties")))
    checked: dict[str, Any] = _whole_numbers(config, _schema())
    studies = checked["studies"]
    for name, study in studies.items():
        for check in (_check_time_grid, _check_warm_up, _check_split, *CHECKS_OF_ONE.get(name, ())):
            check(f"studies.{name}", study)
        for key in ONE_FOR_EACH_SIZE.get(name, []):
            _check_one_for_each_size(f"studies.{name}", study, key)
    if "fluid" in studies and "trajectories" in studies:
        _check_same_grid(studies["fluid"], studies["trajectories"])
    return checked


def _validator() -> Any:
    with without_uri_checks():
        import jsonschema
    return jsonschema.Draft202012Validator(_schema())


@functools.cache
def _schema() -> dict[str, Any]:
    """Return the schema, with the policies that the notebook of policies registers among those of its study."""
    schema: dict[str, Any] = json.loads(SCHEMA.read_text("utf-8"))
    try:
        own = registered_policies(Path(os.path.relpath(OWN_POLICIES)))
    except ClosureError as error:
        raise ConfigError(str(error)) from None
    known = schema["$defs"]["policies"]["properties"]["policies"]["properties"]
    for name, takes_d in own.items():
        known.setdefault(name, {"$ref": "#/$defs/one_d" if takes_d else "#/$defs/no_d"})
    return schema


def _resolve(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow a reference to the schema's definitions."""
    if "$ref" not in schema:
        return schema
    definition: dict[str, Any] = _schema()["$defs"][schema["$ref"].rpartition("/")[2]]
    return definition


def _refuse_unfit(value: Any, path: list[str | int]) -> None:
    """Raise on what no schema sees, or only after too long: numbers without an end, deep nesting, long lists."""
    field = _field(path)
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{field} = {value}: must be a finite number")
    if isinstance(value, int) and value.bit_length() > sys.float_info.max_exp:
        raise ConfigError(f"{field} = {show(value)}: must be less than {sys.float_info.max:.1e}")
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, Mapping):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    if items and len(path) == MAX_DEPTH:
        raise ConfigError(f"{field}: more than {MAX_DEPTH} levels of lists and mappings: must be fewer")
    if items and len(value) > MAX_ITEMS:
        raise ConfigError(f"{field}: holds {len(value)} values: must be at most {MAX_ITEMS}")
    for key, item in items:
        if isinstance(value, Mapping) and not isinstance(key, str):
            raise ConfigError(f"{field}: key {show(key)}: must be a name")
        _refuse_unfit(item, [*path, key])


def _whole_numbers(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return a copy where a whole float that the schema wants as an integer (1.0e+5 servers) is an int."""
    schema = _resolve(schema)
    if isinstance(value, Mapping):
        return {key: _whole_numbers(item, schema["properties"][key]) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(item, schema["items"]) for item in value]
    return int(value) if schema.get("type") == "integer" else value


def _check_time_grid(field: str, study: Mapping[str, Any]) -> None:
    if "t_step" not in study:
        return
    steps = study["t_end"] / study["t_step"]
    if steps > MOST_STEPS:
        raise ConfigError(
            f"{field}.t_step = {study['t_step']}: makes {steps:.2g} steps up to t_end = {study['t_end']}, must be at "
            f"most {MOST_STEPS}"
        )
    if round(steps) < 1 or abs(steps - round(steps)) > STEP_TOLERANCE * steps:
        raise ConfigError(
            f"{field}.t_step = {study['t_step']}: must divide t_end = {study['t_end']} into a whole number of steps"
        )


def _check_warm_up(field: str, study: Mapping[str, Any]) -> None:
    if "t_end" in study and study.get("warm_up", 0) >= study["t_end"]:
        raise ConfigError(f"{field}.warm_up = {study['warm_up']}: must be less than t_end = {study['t_end']}")


def _check_split(field: str, study: Mapping[str, Any]) -> None:
    axes = study.get("split", [])
    jobs = math.prod(len(study[axis]) for axis in axes)
    if jobs > MOST_JOBS:
        raise ConfigError(f"{field}.split = {show(axes)}: makes {jobs} jobs, must be at most {MOST_JOBS}")


def _check_one_for_each_size(field: str, study: Mapping[str, Any], key: str) -> None:
    if len(study[key]) != len(study["N"]):
        raise ConfigError(
            f"{field}.{key} = {show(study[key])}: must hold one number for each of N = {show(study['N'])}"
        )


def _check_pairs(field: str, study: Mapping[str, Any]) -> None:
    if max(study["d"]) > min(study["N"]):
        raise ConfigError(
            f"{field}.d = {show(study['d'])}: different servers are probed, must be at most N = {min(study['N'])}"
        )


def _check_distinct(field: str, study: Mapping[str, Any]) -> None:
    for policy in DISTINCT:
        d, servers = study["policies"].get(policy, 1), min(study["N"])
        if d > servers:
            raise ConfigError(
                f"{field}.policies.{policy} = {d}: different servers are probed, must be at most N = {servers}"
            )


def _check_levels(field: str, study: Mapping[str, Any]) -> None:
    d, level = max(*study["d"], study["example_d"]), max(study["levels"])
    if level * math.log1p(d) > -math.log(LAST_SWITCH):
        raise ConfigError(
            f"{field}.levels: holds {level}: at d = {d} the bound steps there at 1-λ of about {d + 1}^-{level}, must "
            f"be at least {LAST_SWITCH:g}"
        )


def _check_shares(field: str, study: Mapping[str, Any]) -> None:
    for k, shares in enumerate(study["starts"]):
        if abs(math.fsum(shares) - 1) > SUM_TOLERANCE:
            raise ConfigError(f"{field}.starts[{k}] = {show(shares)}: sums to {math.fsum(shares):g}, must sum to 1")


def _check_same_grid(fluid: Mapping[str, Any], trajectories: Mapping[str, Any]) -> None:
    for key in FLUID_GRID:
        if fluid[key] != trajectories[key]:
            raise ConfigError(
                f"studies.fluid.{key} = {show(fluid[key])}: must be that of studies.trajectories, "
                f"{show(trajectories[key])}"
            )


CHECKS_OF_ONE = {
    "policies": [_check_distinct],
    "replacement": [_check_pairs],
    "convergence": [_check_levels],
    "portrait": [_check_shares],
}


def _jobs(config: Mapping[str, Any]) -> Iterator[Job]:
    for name, study in config["studies"].items():
        axes = study.get("split", [])
        for values in itertools.product(*(study[axis] for axis in axes)):
            cut = {axis: [value] for axis, value in zip(axes, values, strict=True)}
            parameters = {key: value for key, value in study.items() if key not in NOT_PARAMETERS}
            parameters |= cut | {"seed": config["seed"]}
            # repr of a float is the shortest text that reads back as the same float, so names stay unique.
            part = ",".join(f"{axis}={value}" for axis, value in zip(axes, values, strict=True)) or "all"
            yield Job(name, part, parameters, estimated_events(parameters))


def _check_costs(plan: Plan) -> None:
    """Raise if a study would take weeks, more memory than there is, or more events than its budget."""
    for job in plan.jobs.values():
        points, most = estimated_points(job.study, job.parameters), MOST_POINTS.get(job.study, MOST_POINTS_ELSE)
        if points > most:
            raise ConfigError(
                f"studies.{job.study}: about {points:.2g} states of paths or fixed points are to be held at once, must "
                f"be at most {most:.0e}; ask for fewer or split the study"
            )
    for study in plan.studies:
        jobs = [job for job in plan.jobs.values() if job.study == study]
        estimate = sum(job.events + CALL * estimated_calls(job.parameters) for job in jobs)
        if estimate > MAX_EVENTS:
            raise ConfigError(
                f"studies.{study}: takes as long as about {estimate:.2g} events, must be at most {MAX_EVENTS:.0e} "
                "whatever the budget; ask for fewer or smaller runs"
            )
    for study, budget in plan.budgets.items():
        estimate = plan.events(study)
        if estimate > budget:
            raise ConfigError(
                f"studies.{study}.events = {budget:.3g}: must be at least the estimated {estimate:.3g} "
                "events; raise the budget, or ask for fewer or smaller runs"
            )


def _explain(error: Any) -> str:
    """Return one line for an error of jsonschema: field = value: what is allowed."""
    field, value, rule = _field(error.absolute_path), error.instance, error.validator
    if rule == "additionalProperties":
        return _explain_unknown_key(error)
    if rule == "required":
        missing = next(key for key in error.validator_value if key not in value)
        return f"{_join(field, missing)}: is missing, must be {_allowed(error.schema['properties'][missing])}"
    if rule == "uniqueItems":
        twice = next(item for k, item in enumerate(value) if item in value[:k])
        return f"{field} = {show(value)}: must not hold {show(twice)} twice"
    text = f"{field} = {show(value)}: must be {_allowed(error.schema)}"
    if rule == "enum" and isinstance(value, str):
        text += _nearest(value, error.validator_value)
    if rule == "type" and isinstance(value, str) and error.validator_value in ("number", "integer"):
        text += _number_hint(value)
    return text


def _explain_unknown_key(error: Any) -> str:
    known = list(error.schema["properties"])
    key = next(key for key in error.instance if key not in known)
    field = _join(_field(error.absolute_path), str(key))
    nearest = _nearest(str(key), known)
    other = error.schema.get("$comment", "")
    return f"{field} = {show(error.instance[key])}: unknown key{nearest}; must be one of {', '.join(known)}{other}"


def _allowed(schema: Mapping[str, Any]) -> str:
    """Return what a schema allows, in words."""
    schema = _resolve(schema)
    if "description" in schema:
        return str(schema["description"])
    if "enum" in schema:
        return "one of " + ", ".join(map(str, schema["enum"]))
    if schema["type"] == "array":
        return f"a list of at least one value, each {_allowed(schema['items'])}"
    return {"object": "a mapping of keys to values"}[schema["type"]]


def _nearest(word: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f", did you mean {close[0]}?" if close else ""


def _number_hint(text: str) -> str:
    try:
        value = float(text)
    except ValueError:
        return ""
    if not math.isfinite(value):
        return ""
    mantissa, exponent = f"{value:.15e}".split("e")
    digits = mantissa.rstrip("0") + ("0" if mantissa.rstrip("0").endswith(".") else "")
    plain = int(value) if value.is_integer() else value
    return f" (YAML reads {text} as a string: write {digits}e{int(exponent):+d} or {plain})"


def _field(path: Iterable[str | int]) -> str:
    field = ""
    for step in path:
        field = f"{field}[{step}]" if isinstance(step, int) else _join(field, step)
    return field or "the file"


def _join(field: str, key: str) -> str:
    return show_key(key) if field in ("", "the file") else f"{field}.{show_key(key)}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the plan of a configuration file; return 2 if it is refused."""
    parser = argparse.ArgumentParser(prog="python -m dchoices.workflow.config", description=__doc__)
    parser.add_argument("config", help="YAML file, such as config/paper.yaml")
    path = parser.parse_args(arguments).config
    try:
        plan = make_plan(read(path), path)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"profile {plan.profile}: {len(plan.jobs)} jobs")
    for study in plan.studies:
        budget = f"{plan.budgets[study]:.3g}" if study in plan.budgets else "-"
        print(f"{study:14} {len(plan.parts(study)):3} jobs, cost estimate {plan.events(study):9.3g}, budget {budget}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
