"""A copy of the project in another folder, and its workflow run there, for tests of whole runs."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil
from dchoices import KERNEL_CACHE, datasets
from numba.core.caching import UserProvidedCacheLocator

ROOT = Path(__file__).parents[1]
SOURCES = ("Snakefile", "config", "profiles", "lib", "notebooks", "report")
SMOKE = "config/smoke.yaml"

# A namespace of its own, in which there is no network at all; where that is not permitted, Python's sockets reach this
# machine only.
NAMESPACE = ("unshare", "--net", "--map-root-user")
BLOCKED_SOCKETS = str(Path(__file__).parent / "trust" / "offline")
# An address of documentation (RFC 5737): never this machine, and nobody's.
ATTEMPT = "import socket; socket.create_connection(('192.0.2.1', 80), timeout=10)"


def copy_project(folder):
    """Copy what the workflow reads into a folder, without results."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in SOURCES:
        source, target = ROOT / name, folder / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("build", "__pycache__"))
        else:
            shutil.copy2(source, target)
    return folder


def copy_kernels(folder):
    """Copy what is compiled already into a copy of the project: numba files it by the path of the sources."""
    named = UserProvidedCacheLocator.get_suitable_cache_subpath
    source = "lib/dchoices/kernels/jit.py"
    compiled = KERNEL_CACHE / named(str(ROOT / source))
    if compiled.exists():
        shutil.copytree(compiled, folder / ".numba_cache" / KERNEL_CACHE.name / named(str(folder / source)))


def clone_project(folder):
    """Clone the project, with what is not committed yet; where there is no repository, copy it."""
    if not (ROOT / ".git").exists():
        return copy_project(folder)
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
    changed = subprocess.run(
        ["git", "ls-files", "-z", "--modified", "--deleted", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in filter(None, changed.stdout.split("\0")):
        (folder / name).unlink(missing_ok=True)
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def snakemake(folder, *arguments, wrap=(), **environment):
    """Run the smoke profile in a folder to its end; return the exit code and what it printed, both streams in one.

    A command to run it under goes before it.
    """
    return subprocess.run(
        [*wrap, sys.executable, "-m", "snakemake", *arguments, "--configfile", SMOKE],
        cwd=folder,
        env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def hashes(folder):
    """Return the content hash of every dataset that is there, each checked against its own values."""
    files = sorted((folder / "data").rglob("*.nc"))
    return {file.relative_to(folder).as_posix(): datasets.content_hash(datasets.read(file)) for file in files}


def halves(folder):
    """Return the files that a killed job had begun to write."""
    return [path for path in (folder / "data").rglob("*") if path.suffix == ".tmp"]


def processes(folder, word=None):
    """Return the processes at work in a folder, or those whose command holds a word."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.cwd() == str(folder) and (word is None or word in process.cmdline()):
                found.append(process)
        except psutil.Error:  # gone, or not ours
            pass
    return found


@dataclass(frozen=True)
class OfflineStudy:
    """The smoke profile, with its report, run without a network.

    Attributes
    ----------
    folder : Path
        The copy of the project that it ran in.
    means : str
        How the network was kept away: "namespace" or "sockets".
    attempt : subprocess.CompletedProcess
        A Python that tried to connect to somewhere else, by the same means.
    """

    folder: Path
    means: str
    attempt: subprocess.CompletedProcess


def run_offline(folder):
    """Run the smoke profile, with its report, without a network, in a copy of the project."""
    try:
        permitted = subprocess.run([*NAMESPACE, "true"], capture_output=True).returncode == 0
    except FileNotFoundError:  # no Linux
        permitted = False
    means, wrap, environment = (
        ("namespace", NAMESPACE, {}) if permitted else ("sockets", (), {"PYTHONPATH": BLOCKED_SOCKETS})
    )
    attempt = subprocess.run([*wrap, sys.executable, "-c", ATTEMPT], env=environment, capture_output=True, text=True)
    copy_kernels(copy_project(folder))
    ran = snakemake(folder, wrap=wrap, **environment)
    assert ran.returncode == 0, ran.stdout[-5000:]
    return OfflineStudy(folder, means, attempt)
