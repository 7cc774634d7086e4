"""Where a dataset comes from: commit, versions, parameters, cost. Written into attributes in this one place."""

from __future__ import annotations

import json
import platform
import resource
import subprocess
import sys
import time
from functools import cache
from importlib import metadata
from typing import Any

# Loaded here, as the last import of a notebook, and not by its first call: what comes after is work, and no start-up.
import numba  # noqa: F401
import scipy.special  # noqa: F401

from dchoices.progress import events_simulated

STARTED = time.process_time()
PER_MB = 1e6 if sys.platform == "darwin" else 1e6 / 1024  # macOS counts bytes, Linux kibibytes
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


def attributes(title: str, notebook: str, parameters: dict[str, Any]) -> dict[str, str | int | float]:
    """Return the provenance attributes of a dataset, and what it cost: events, CPU time since the imports, memory.

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
        "events": events_simulated(),
        "cpu_seconds": round(time.process_time() - STARTED, 3),
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / PER_MB),
        "conventions": "time in mean service times; load λ in jobs per server and mean service time",
    }
