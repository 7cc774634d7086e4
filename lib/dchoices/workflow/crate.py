"""A finished run as one archive: an RO-Crate, by the Workflow Run profile as far as it fits.

``python -m dchoices.workflow.crate config/paper.yaml`` packs the workflow with all that it reads, the datasets, claims
and report that it made, and a description of them for machines: who, what, when, with what, under which licence, and
the SHA-256 of every file. The single steps, which the Provenance Run profile would want, are not described: they are in
the attributes of the datasets.

RO-Crate 1.1: https://w3id.org/ro/crate/1.1, Workflow Run Crate 0.5: https://w3id.org/ro/wfrun/workflow/0.5
"""

from __future__ import annotations

import argparse
import hashlib
import mimetypes
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml
from rocrate.model import ComputerLanguage, ContextEntity, DataEntity, SoftwareApplication
from rocrate.rocrate import ROCrate

from dchoices import datasets
from dchoices.workflow.config import ConfigError, Plan, make_plan
from dchoices.workflow.reading import read

ARCHIVE = "crate.zip"
WORKFLOW = "Snakefile"
# What the workflow is and reads, and what says how to use it: all but what a run makes.
SOURCES = (
    "Makefile", "README.md", "LICENSE", "CITATION.cff", "environment.yml", "pyproject.toml", "requirements.lock",
    "config", "profiles", "notebooks", "lib", "report", "docs", "tests", "benchmarks", "data/reference",
)  # fmt: skip
LEFT_OUT = ("__pycache__", "build")
REQUIREMENTS = ("numpy", "numba", "scipy", "xarray", "papermill")  # the others are in the lock

SNAKEMAKE = "https://w3id.org/workflowhub/workflow-ro-crate#snakemake"
PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": "Process Run Crate",
    "https://w3id.org/ro/wfrun/workflow/0.5": "Workflow Run Crate",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": "Workflow RO-Crate",
}
BIOSCHEMAS_WORKFLOW = "https://bioschemas.org/profiles/ComputationalWorkflow/1.0-RELEASE"
SHA256 = "https://w3id.org/ro/terms/workflow-run#sha256"
COMPLETED = "http://schema.org/CompletedActionStatus"
FORMATS = {  # which Python may not know
    ".cff": "application/yaml", ".ipynb": "application/x-ipynb+json", ".md": "text/markdown",
    ".nc": "application/netcdf", ".yaml": "application/yaml", ".yml": "application/yaml",
}  # fmt: skip


class CrateError(ValueError):
    """A run that cannot be packed; the message names the file."""


def write(config: Path, out: Path | None = None) -> Path:
    """Pack a finished run into a zip file; to be called in the root of the project.

    Parameters
    ----------
    config : Path
        The configuration that was run.
    out : Path, optional
        The file to write, first under a temporary name; `crate.zip` beside the report if not given.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ConfigError
        If the configuration is not valid.
    CrateError
        If the run has not ended, or a dataset is not what its hash says.
    """
    plan = make_plan(read(config), str(config))
    out = out or plan.report / ARCHIVE
    made = _made(plan)
    crate = ROCrate(version="1.1", gen_preview=True)
    crate.metadata.extra_terms["sha256"] = SHA256
    files = {path: _add(crate, path, path) for path in _sources()}
    if config not in files:  # lies somewhere else
        files[config] = _add(crate, config, Path("config", config.name))
    results = [_add(crate, path, path, **_of_result(path)) for path in made]
    authors = _describe_whole(crate, plan, files)
    workflow = _add_workflow(crate)
    _connect(crate, workflow, {"input": [files[config]], "output": results})
    begin, end = (path.stat().st_mtime for path in (plan.data / "times" / "started", plan.data / "verdict.txt"))
    action = crate.add_action(
        workflow,
        f"#{plan.profile}",
        object=files[config],
        result=results,
        properties={
            "name": f"Run of the profile {plan.profile}",
            "description": f"{len(plan.jobs)} notebooks, of {len(plan.studies)} studies",
            "startTime": _time(begin),
            "endTime": _time(end),
            "actionStatus": COMPLETED,
        },
    )
    action["agent"] = _one(authors)
    crate.root_dataset["mentions"] = action
    _replace(crate, out)
    return out


def _made(plan: Plan) -> list[Path]:
    """Return the files that a finished run made: merged datasets, claims, verdict and report."""
    found = [plan.data / f"{study}.nc" for study in plan.studies]
    found += [plan.data / "claims.json", plan.data / "verdict.txt", *plan.pages]
    for path in found:
        if not path.is_file():
            raise CrateError(f"{path}: is missing: a run must have ended before it is packed")
    return found


def _sources() -> Iterator[Path]:
    for top in map(Path, SOURCES):
        for path in [top] if top.is_file() else sorted(top.rglob("*")):
            if path.is_file() and not any(part in LEFT_OUT or part.startswith(".") for part in path.parts):
                yield path


def _add(crate: ROCrate, path: Path, place: Path, **properties: Any) -> DataEntity:
    """Add a file at a place in the archive, with its hash."""
    encoding = FORMATS.get(path.suffix) or mimetypes.guess_type(path)[0] or "text/plain"
    described = {"sha256": _sha256(path), "encodingFormat": encoding} | properties
    return crate.add_file(path, place.as_posix(), properties=described, record_size=True)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _of_result(path: Path) -> dict[str, str]:
    """Return what a result says of itself: a dataset its title, and the hash of what it holds."""
    if path.suffix != ".nc":
        return {"name": path.name}
    try:
        attrs = datasets.read(path).attrs
    except datasets.DatasetError as error:
        raise CrateError(str(error)) from None
    return {"name": attrs["title"], "identifier": f"content_hash={attrs['content_hash']}"}


def _describe_whole(crate: ROCrate, plan: Plan, files: dict[Path, DataEntity]) -> list[ContextEntity]:
    """Describe the archive by CITATION.cff; return its authors."""
    citation = yaml.safe_load(Path("CITATION.cff").read_text("utf-8"))
    authors = list(_people(crate, citation["authors"]))
    licence = f"https://spdx.org/licenses/{citation['license']}"
    crate.name = citation["title"]
    crate.description = f"{citation['title']}: the workflow, and its run of the profile {plan.profile}"
    crate.keywords = citation["keywords"]
    crate.license = crate.add(
        ContextEntity(crate, licence, {"@type": "CreativeWork", "name": citation["license"], "url": licence})
    )
    root = crate.root_dataset
    root["author"] = root["publisher"] = _one(authors)
    root["version"] = citation["version"]
    root["citation"] = _one(
        [
            crate.add(
                ContextEntity(
                    crate,
                    f"https://doi.org/{work['doi']}",
                    {"@type": "ScholarlyArticle", "name": work["title"], "datePublished": str(work["year"])},
                )
            )
            for work in citation["references"]
        ]
    )
    root["conformsTo"] = [
        crate.add(ContextEntity(crate, uri, {"@type": "CreativeWork", "name": name, "version": uri.rsplit("/", 1)[1]}))
        for uri, name in PROFILES.items()
    ]
    files[Path("README.md")]["about"] = root
    return authors


def _one(entities: list[ContextEntity]) -> ContextEntity | list[ContextEntity]:
    """Return the only entity of a list, which RO-Crate wants bare, or the list."""
    return entities[0] if len(entities) == 1 else entities


def _people(crate: ROCrate, authors: Iterable[dict[str, str]]) -> Iterator[ContextEntity]:
    for k, author in enumerate(authors, 1):
        name = author.get("name") or f"{author['given-names']} {author['family-names']}"
        kind = "Organization" if "name" in author else "Person"
        yield crate.add(ContextEntity(crate, author.get("orcid", f"#author-{k}"), {"@type": kind, "name": name}))


def _add_workflow(crate: ROCrate) -> DataEntity:
    language = {
        "name": "Snakemake",
        "alternateName": "snakemake",
        "identifier": {"@id": "https://doi.org/10.12688/f1000research.29032.2"},
        "url": {"@id": "https://snakemake.github.io"},
        "version": metadata.version("snakemake"),
    }
    workflow = crate.add_workflow(
        WORKFLOW,
        WORKFLOW,
        main=True,
        lang=crate.add(ComputerLanguage(crate, SNAKEMAKE, language)),
        record_size=True,
        properties={
            "name": "Configuration, notebooks, datasets, claims, report, verdict",
            "version": crate.root_dataset["version"],
            "conformsTo": {"@id": BIOSCHEMAS_WORKFLOW},
            "url": {"@id": WORKFLOW},
            "sha256": _sha256(Path(WORKFLOW)),
            "encodingFormat": "text/plain",
        },
    )
    for name in REQUIREMENTS:
        page, version = f"https://pypi.org/project/{name}", metadata.version(name)
        package = {"name": name, "softwareVersion": version, "url": {"@id": page}}
        workflow.append_to("softwareRequirements", crate.add(SoftwareApplication(crate, f"{page}/{version}", package)))
    return workflow


def _connect(crate: ROCrate, workflow: DataEntity, files: dict[str, list[DataEntity]]) -> None:
    """Name the inputs and outputs of the workflow, of which files are the values."""
    for slot, entities in files.items():
        for entity in entities:
            name = "config" if slot == "input" else Path(entity.id).name
            parameter = crate.add_formal_parameter(name, "File", f"#{slot}-{name}", valueRequired=slot == "input")
            parameter["workExample"] = entity
            entity["exampleOfWork"] = parameter
            workflow.append_to(slot, parameter, compact=True)


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _replace(crate: ROCrate, out: Path) -> None:
    temporary = out.with_name(f"{out.name}.{os.getpid()}.tmp")
    try:
        crate.write_zip(temporary)
        temporary.replace(out)
    finally:
        temporary.unlink(missing_ok=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the archive and say where it is; return 2 with one line of reason where that cannot be."""
    parser = argparse.ArgumentParser(prog="python -m dchoices.workflow.crate", description=write.__doc__)
    parser.add_argument("config", type=Path, help="config/paper.yaml, or what else was run")
    parser.add_argument("out", type=Path, nargs="?", help=f"file to write, {ARCHIVE} beside the report if not given")
    given = parser.parse_args(arguments)
    config = Path(os.path.relpath(given.config))
    try:
        print(write(config, given.out))
    except (ConfigError, CrateError) as error:
        print(error, file=sys.stderr)
        return 2
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
