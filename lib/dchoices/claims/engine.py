"""From measured cells to verdicts.

A claim is checked on cells: values with intervals, each against its own tolerance. It passes when every interval lies
inside its tolerance, fails when one lies outside, and is inconclusive otherwise, or without cells. Intervals hold for
all cells of a claim at once (Bonferroni), and a second verdict is by intervals that hold for all claims. The same check
runs on the controls, models for which the claim is false.

Student's intervals hold as far as the means of replicates are normal. An event so rare that no run saw it leaves them
no width, so that estimates have what `statistics.unseen` may add beside.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import xarray as xr

from dchoices import datasets, statistics
from dchoices.claims import resampling
from dchoices.variables import VARIABLES
from dchoices.wording import one_line

CLAIM = "claim"  # the model name under which a check measures the claim itself
NO_DATA = "no data"  # how the place of a cell begins that a run does not hold


@dataclass(frozen=True)
class Cell:
    """One measured value with the half-width of its simultaneous interval and its tolerance.

    A cell `beside` the others must pass as they do, but would if the claim were wrong, or is another claim's: the
    record shows it only where it decides alone.
    """

    at: str
    value: float
    half_width: float
    low: float = -math.inf
    high: float = math.inf
    beside: bool = False
    exact: bool = False  # computed, not sampled: the half-width bounds an error

    @property
    def verdict(self) -> str:
        """Pass, fail or inconclusive, by where the interval lies; without a number or a width it decides nothing."""
        if not (math.isfinite(self.value) and self.half_width >= 0):
            return "inconclusive"
        if resampling.inside(self.value, self.half_width, self.low, self.high):
            return "pass"
        bottom, top = self.value - self.half_width, self.value + self.half_width
        return "fail" if top < self.low or bottom > self.high else "inconclusive"

    @property
    def excess(self) -> float:
        """How far the interval reaches beyond its tolerance (negative: room left), in widths of the tolerance.

        That of a tolerance with one end is the distance of this from 0.
        """
        width = self.high - self.low
        if math.isinf(width):
            width = min(abs(self.low), abs(self.high))
        reach = max(self.value + self.half_width - self.high, self.low - self.value + self.half_width)
        return reach / width if 0 < width < math.inf else reach


class Data:
    """The merged datasets of a run, loaded when first used; of the named studies alone, where any are named."""

    def __init__(self, folder: str | os.PathLike, studies: Sequence[str] = ()):
        self._folder = Path(folder)
        self._studies = studies
        self._loaded: dict[str, xr.Dataset] = {}

    def __getitem__(self, name: str) -> xr.Dataset:
        if self._studies and name not in self._studies:
            raise datasets.NotStudied(name)
        if name not in self._loaded:
            self._loaded[name] = datasets.read(self._folder / f"{name}.nc")
        return self._loaded[name]


@dataclass(frozen=True)
class Claim:
    """A claim, how it is checked, and the models on which the same check must fail.

    The id of a claim of the paper is P and its number, that of one beyond the paper N and a number. Such a claim is a
    conjecture: its `heuristic` says why it should hold, before anything is measured.
    """

    id: str
    statement: str
    source: str
    quantity: str
    tolerance_reason: str
    controls: dict[str, str]
    dataset: str
    figure: str
    check: Callable[[Data, str], Iterable[Cell]] = field(repr=False)
    heuristic: str = ""

    @property
    def order(self) -> tuple[bool, int]:
        """Where the claim stands among all: those of the paper first, by number."""
        return self.id[0] != "P", int(self.id[1:])


REGISTRY: dict[str, Claim] = {}


def claim(**description: Any) -> Callable[[Callable[[Data, str], Iterable[Cell]]], Claim]:
    """Register the decorated check (data, model) -> cells; model is `CLAIM` or the key of a control."""

    def register(check: Callable[[Data, str], Iterable[Cell]]) -> Claim:
        entry = Claim(check=check, **description)
        if entry.id in REGISTRY:
            raise ValueError(f"claim {entry.id}: registered twice")
        if not re.fullmatch("[PN][1-9][0-9]*", entry.id):
            raise ValueError(f"claim {entry.id}: an id is P (of the paper) or N (new) and a number")
        if (entry.id[0] == "N") != bool(entry.heuristic):
            raise ValueError(f"claim {entry.id}: the claims beyond the paper, and only they, have a heuristic")
        REGISTRY[entry.id] = entry
        return entry

    return register


def estimate_cells(
    dataset: xr.Dataset, quantity: str, places: Sequence[tuple[dict[str, Any], float, float]], also: int = 1
) -> list[Cell]:
    """Return cells for an estimate of a stationary dataset at the given places, each with its tolerance.

    Intervals are widened to hold for all places, and for `also` such lists, at once. Where the warm-up was too short
    the interval is infinite: such a cell can neither pass nor fail. A cell is named without its policy, alike for the
    claim and its controls.
    """
    replicates = int(dataset.attrs["replicates"])
    factor = statistics.widening(replicates, max(1, len(places) * also))
    meaning = VARIABLES[quantity].description.partition(" (")[0]
    cells = []
    # A place is found in as many variables as there are.
    wanted = dataset[[quantity, f"{quantity}_ci95", "warm_up_ok", "horizon"]]
    for place, low, high in places:
        point = wanted.sel(place)
        width = float(point[f"{quantity}_ci95"]) * factor + missed(point, replicates)
        at = where({name: value for name, value in place.items() if name != "policy"})
        cells.append(Cell(f"{meaning}, {at}", float(point[quantity]), width, low, high))
    return cells


def missed(point: xr.Dataset, replicates: int) -> float:
    """Return what events that no run saw may add to a share of jobs or servers, or to R; infinite if not warmed up."""
    return (
        float(statistics.unseen(replicates, point["λ"], point["N"], point["horizon"]))
        if point["warm_up_ok"]
        else math.inf
    )


def missing(what: str) -> Cell:
    """Return the cell of evidence that a run does not hold: it can neither pass nor fail."""
    return Cell(f"{NO_DATA}: {what}", 0.0, math.inf, 0.0, 0.0)


def where(place: dict[str, Any]) -> str:
    """Return a cell's coordinates in words."""
    return ", ".join(str(value) if isinstance(value, str) else f"{name} = {value:g}" for name, value in place.items())


def verdict(cells: Sequence[Cell]) -> str:
    """Return the verdict over all cells."""
    found = {cell.verdict for cell in cells}
    if "fail" in found:
        return "fail"
    return "pass" if found == {"pass"} else "inconclusive"


def worst(cells: Sequence[Cell]) -> Cell:
    """Return the cell that decides: the failing or inconclusive one furthest out, else the one with least room."""
    order = {"fail": 2, "inconclusive": 1, "pass": 0}
    # Of cells that pass, measured ones are shown before exact ones, which have no interval.
    return max(cells, key=lambda cell: (order[cell.verdict], not cell.beside, cell.half_width > 0, cell.excess))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _measured(cells: Sequence[Cell], at: str = "") -> dict[str, Any]:
    """Return what a record says of the cell that decides, which is the one `at` this place if that fails."""
    if not cells:
        return {
            "measured": None,
            "ci95": [None, None],
            "tolerance": [None, None],
            "at": NO_DATA,
            "cells": 0,
            "cells_beside": 0,
        }
    cell = worst([cell for cell in cells if cell.at == at and cell.verdict == "fail"] or cells)
    return {
        "measured": _finite(cell.value),
        "ci95": [_finite(cell.value - cell.half_width), _finite(cell.value + cell.half_width)],
        "tolerance": [_finite(cell.low), _finite(cell.high)],
        "at": cell.at,
        "cells": len(cells),
        "cells_beside": sum(cell.beside for cell in cells),
    }


def evaluate(entry: Claim, data: Data, claims: int = 1) -> dict[str, Any]:
    """Return the record of a claim: what was measured at the deciding cell, its verdict, and that of its controls.

    With several controls the record shows the one that comes closest to passing, where it can at the cell that decides
    the claim, else at its own; its tolerance is that of the cell, as a wrong model may expect another value.
    `verdict_at_once` is the verdict with intervals that hold for the cells of all `claims` claims at once. `pass_rate`
    and `false_pass_rate`, the greatest of the controls', are those of `resampling`. A claim about a study that the run
    was not asked for is undecided, and its record says so.
    """
    try:
        return _evaluated(entry, data, claims)
    except datasets.NotStudied as absent:
        undecided = [missing(f"the study {absent}")]
        return _evaluated(replace(entry, check=lambda *_: undecided), data, claims)


def _evaluated(entry: Claim, data: Data, claims: int) -> dict[str, Any]:
    cells = list(entry.check(data, CLAIM))
    with statistics.at_once(claims):
        verdict_at_once = verdict(list(entry.check(data, CLAIM)))
    leniency = {"pass": 2, "inconclusive": 1, "fail": 0}
    trials = {key: list(entry.check(data, key)) for key in entry.controls}
    key = max(
        trials,
        key=lambda name: (leniency[verdict(trials[name])], -sum(c.verdict == "fail" for c in trials[name])),
    )
    shown = _measured(cells)
    control = _measured(trials[key], shown["at"])
    rates = {
        model: resampling.pass_rate(found, partial(entry.check, data, model), f"{entry.id} {model}", model != CLAIM)
        for model, found in ({CLAIM: cells} | trials).items()
    }
    pass_rate = rates.pop(CLAIM)
    return {
        "id": entry.id,
        "statement": entry.statement,
        "source": entry.source,
        "heuristic": entry.heuristic,
        "quantity": entry.quantity,
        **shown,
        "tolerance_reason": entry.tolerance_reason,
        "verdict": verdict(cells),
        "verdict_at_once": verdict_at_once,
        "control": "; ".join(entry.controls.values()),
        "control_measured": control["measured"],
        "control_ci95": control["ci95"],
        "control_tolerance": control["tolerance"],
        "control_at": control["at"],
        "control_cells": control["cells"],
        "control_cells_failing": sum(cell.verdict == "fail" for cell in trials[key]),
        "control_verdict": verdict(trials[key]),
        "pass_rate": pass_rate,
        "false_pass_rate": resampling.most_lenient(rates.values()),
        "false_pass_rates": {entry.controls[model]: rate for model, rate in rates.items()},
        "evidence": {
            "notebook": f"notebooks/{entry.dataset}.ipynb",
            "dataset": f"{entry.dataset}.nc",
            "dataset_hash": _hash(data, entry.dataset),
            "figure": entry.figure,
        },
    }


def _hash(data: Data, name: str) -> str | None:
    """Return the hash of a dataset, None for that of a study that the run was not asked for."""
    try:
        return str(data[name].attrs["content_hash"])
    except datasets.NotStudied:
        return None


def main(arguments: Sequence[str]) -> int:
    """Write the records of all claims as JSON, under a temporary name, then renamed; see `dchoices.claims`."""
    from dchoices.claims.catalogue import CLAIMS  # they are built on this module

    if len(arguments) < 2:
        print("usage: python -m dchoices.claims DATA_DIR OUT.json [STUDY ...]", file=sys.stderr)
        return 2
    data, target = Data(arguments[0], arguments[2:]), Path(arguments[1])
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        records = [evaluate(entry, data, len(CLAIMS)) for entry in CLAIMS]
    except (datasets.DatasetError, OSError) as error:
        print(one_line(str(error)), file=sys.stderr)
        return 1
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    temporary.write_text(json.dumps(records, indent=1, ensure_ascii=False) + "\n")
    temporary.replace(target)
    for record in records:
        print(f"{record['id']}: {record['verdict']} (control: {record['control_verdict']})")
    return 0
