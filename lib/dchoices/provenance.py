"""Where a dataset comes from: commit, versions, parameters. Written into attributes in this one place."""

from __future__ import annotations

import json
import platform
import subprocess
from functools import cache
from importlib import metadata
from typing import Any

PACKAGES = (
    "numpy",
    "numba",
    "scipy",
    "xarray",
    "h5netcdf",
    "snakemake",
    "papermill",
)


@cache
def commit() -> str:
    """Return the commit of the working tree, with "+changes" when files differ from it; "unknown" outside git."""
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--abbrev=12", "--dirty=+changes", "--exclude=*"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return described.stdout.strip()


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that results pass through."""
    return {"python": platform.python_version()} | {name: metadata.version(name) for name in PACKAGES}


def attributes(title: str, notebook: str, parameters: dict[str, Any]) -> dict[str, str]:
    """Return the provenance attributes of a dataset.

    Parameters
    ----------
    title : str
        What the dataset holds, in a line.
    notebook : str
        Name of the notebook that made it.
    parameters : dict
        The parameters of that notebook, as JSON can hold them.
    """
    return {
        "title": title,
        "notebook": f"notebooks/{notebook}.ipynb",
        "parameters": json.dumps(parameters, ensure_ascii=False),
        "commit": commit(),
        "versions": json.dumps(versions()),
        "conventions": "time in mean service times; load λ in jobs per server and mean service time",
    }
