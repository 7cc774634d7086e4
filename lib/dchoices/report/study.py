"""What a run of the workflow left in data/<profile>: datasets, claims, and where they come from."""

from __future__ import annotations

import itertools
import json
import os
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import xarray as xr
import yaml

from dchoices import datasets, registry
from dchoices.claims.engine import NO_DATA
from dchoices.studies import STUDIES

HASH_DIGITS = 12
LONGEST_BREAK = 60.0  # s in which no job runs: more is between two runs
ROUNDED = 1.0  # s to which the wall time of a job is known
TIMES = "times"  # folder of what jobs cost, in that of the run


class _Asked(dict[str, xr.Dataset]):
    """The datasets of a run, which says of another study that it was not asked for."""

    def __missing__(self, name: str) -> xr.Dataset:
        raise datasets.NotStudied(name)


@dataclass(frozen=True)
class Study:
    """A finished run, read from its folder."""

    folder: Path
    datasets: Mapping[str, xr.Dataset]
    claims: list[dict[str, Any]]

    @classmethod
    def read(cls, folder: Path, studies: Sequence[str] = STUDIES) -> Study:
        """Read a folder data/<profile>, checking every dataset against its hash."""
        loaded = _Asked((name, datasets.read(folder / f"{name}.nc")) for name in STUDIES if name in studies)
        return cls(folder, loaded, json.loads((folder / "claims.json").read_text("utf-8")))

    @property
    def is_whole(self) -> bool:
        """Whether the run has every study, so that it can fill the report's template."""
        return len(self.datasets) == len(STUDIES)

    @property
    def checked(self) -> list[dict[str, Any]]:
        """The records of the claims that are reported: of a few studies those alone that there are data for."""
        return [claim for claim in self.claims if self.is_whole or not _lacks_data(claim)]

    @property
    def unchecked(self) -> dict[str, list[str]]:
        """The other claims, by what it would take to check them."""
        found: dict[str, list[str]] = {}
        for claim in self.claims:
            if claim not in self.checked:
                what = claim["at"].removeprefix(NO_DATA).removeprefix(": ") or "runs of the kind that it is about"
                found.setdefault(what, []).append(claim["id"])
        return found

    @property
    def profile(self) -> str:
        """Name of the profile: paper, smoke or one's own."""
        return self.folder.name

    def notebooks(self, study: str) -> list[Path]:
        """Return the executed notebooks of a study."""
        return sorted((self.folder / "logs" / study).glob("*.ipynb"))

    def hash(self, study: str) -> str:
        """Return the first digits of a dataset's content hash."""
        return str(self.datasets[study].attrs.get("content_hash", "unknown"))[:HASH_DIGITS]

    def commit(self, study: str) -> str:
        """Return the commit that a dataset was made at. A merge of runs at several commits has none of its own."""
        return str(self.datasets[study].attrs.get("commit", "several, see the runs"))[: HASH_DIGITS + len("+changes")]

    def parameters(self, study: str) -> dict[str, list[Any]]:
        """Return the values that each parameter took over the jobs of a study."""
        jobs = list(self._jobs(study))
        taken: dict[str, list[Any]] = {}
        for name in jobs[0]:
            first, *others = (_as_list(job[name]) for job in jobs)
            if all(values == first for values in others):
                taken[name] = first
            else:
                joint = list(dict.fromkeys(itertools.chain(first, *others)))
                taken[name] = sorted(joint) if _alike(joint) else joint
        taken.pop("output", None)
        return taken

    def _jobs(self, study: str) -> Iterator[dict[str, Any]]:
        files = sorted((self.folder / "parameters" / study).glob("*.yaml"))
        for file in files:
            yield yaml.safe_load(file.read_text("utf-8"))
        if not files:
            yield json.loads(self.datasets[study].attrs.get("parameters", "{}"))

    @cached_property
    def times(self) -> list[dict[str, Any]]:
        """Wall and CPU time of every job that was measured, in seconds, in order of rule and job."""
        base = self.folder / TIMES
        rows = []
        for file in sorted(base.rglob("*.time")):
            rule, *job = file.relative_to(base).with_suffix("").parts
            text = file.read_text("utf-8")
            # What the shell's `times` prints of itself and its children, of user and system; then the wall time.
            cpu = sum(60 * float(minutes) + float(seconds) for minutes, seconds in re.findall(r"(\d+)m([\d.]+)s", text))
            rows.append({"rule": rule, "job": "/".join(job), "wall": float(text.split()[-1]), "cpu": cpu})
        return rows

    def cost(self, study: str) -> dict[str, float]:
        """Return what the notebooks of a study cost: wall time, CPU time and that of start-up, events, memory in MB.

        Start-up is the CPU time before the imports of a notebook are done, and that of what runs the notebook.
        """
        rows = [row for row in self.times if row["rule"] == "notebook" and row["job"].split("/")[0] == study]
        found: dict[str, float] = {"jobs": len(rows)}
        for name in ("wall", "cpu"):
            found[name] = sum(row[name] for row in rows)
        attrs = self.datasets[study].attrs
        found["start_up"] = max(0.0, found["cpu"] - float(attrs.get("cpu_seconds", 0.0)))
        found["events"] = int(attrs.get("events", 0))
        found["memory"] = int(attrs.get("peak_memory_mb", 0))
        return found

    @cached_property
    def elapsed(self) -> float | None:
        """Time from the start of the run to the end of its last job, in seconds; None where several runs did them."""
        base = self.folder / TIMES
        if not (base / "started").exists():
            return None
        begin = end = (base / "started").stat().st_mtime
        for file in sorted(base.rglob("*.time"), key=lambda file: file.stat().st_mtime):
            done = file.stat().st_mtime
            job_began = done - float(file.read_text("utf-8").split()[-1])
            if job_began < begin - ROUNDED or job_began - end > LONGEST_BREAK:
                return None
            end = done
        return end - begin


def _lacks_data(claim: Mapping[str, Any]) -> bool:
    return str(claim["at"]).startswith(NO_DATA)


def _as_list(value: Any) -> list[Any]:
    if isinstance(value, dict):  # policies, each with its d or several, or laws, each with its parameters
        return [
            registry.label(name, _inside(one))
            for name, given in value.items()
            for one in (given if isinstance(given, list) else [given])
        ]
    return value if isinstance(value, list) else [value]


def _inside(given: int | dict[str, Any]) -> int | str:
    """Return what stands in brackets behind a name: a number, or parameters by name, of which some are lists."""
    if not isinstance(given, dict):
        return given
    return "; ".join(f"{name}={', '.join(map(str, _as_list(value)))}" for name, value in given.items())


def _alike(values: list[Any]) -> bool:
    return all(isinstance(v, int | float) for v in values)


def machine() -> dict[str, str]:
    """Return what the report can say about the machine that it is made on."""
    found = {"system": platform.platform(terse=True), "processor": _processor(), "cores": str(os.cpu_count())}
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        found["memory"] = f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB"
    return found


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
