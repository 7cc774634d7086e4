"""A copy of the project in another folder, and its workflow run there, for tests of whole runs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ("Snakefile", "config", "profiles", "lib", "notebooks", "report")
SMOKE = "config/smoke.yaml"


def copy_project(folder):
    """Copy what the workflow reads into a folder, without results."""
    for name in SOURCES:
        source, target = ROOT / name, folder / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("build", "__pycache__"))
        else:
            shutil.copy2(source, target)
    return folder


def snakemake(folder, *arguments, **environment):
    """Run the smoke profile in a folder to its end; return the exit code and what it printed, both streams in one."""
    return subprocess.run(
        [sys.executable, "-m", "snakemake", *arguments, "--configfile", SMOKE],
        cwd=folder,
        env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
