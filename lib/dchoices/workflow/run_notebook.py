"""Run a notebook with the parameters of a file, for one job of the workflow.

Stricter than papermill: a misspelt or missing parameter is refused before anything runs, the exit code is not
0 on any error, a dead kernel included, and the notebook must have written its dataset.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dchoices.workflow import without_uri_checks
from dchoices.workflow.reading import ConfigError, read

START_TIMEOUT = 180  # seconds; a cold file cache on a busy machine takes well over papermill's 60
IOPUB_TIMEOUT = 60  # seconds for an output to arrive after its cell; nbclient's 4 fail on a busy machine
SAVE_EVERY = 30  # seconds between two saves of the executed notebook while a cell runs
TRACEBACK_LINES = 30  # of a failed cell, in the log; the executed notebook holds all
# Overflows, divisions by zero, means of nothing: numbers that went wrong stop a run, where JupyterLab only shows them.
STRICT = "error::RuntimeWarning"


class RunError(Exception):
    """A notebook that cannot run as asked; the message is one line."""


def run(notebook: Path, parameters_file: Path, output: Path, log_notebook: Path) -> None:
    """Run a notebook, keep it with its outputs, and make sure that it wrote its dataset.

    Parameters
    ----------
    notebook : Path
        With one cell tagged `parameters`. It runs in the current directory: the project's root.
    parameters_file : Path
        YAML mapping with exactly the names of that cell, but for `output`.
    output : Path
        Passed as the parameter `output`; the notebook must write this file.
    log_notebook : Path
        Where the executed notebook goes, also when it fails.

    Raises
    ------
    RunError
        If the parameters do not fit, or no dataset was written.
    papermill.PapermillExecutionError
        If a cell failed.
    nbclient.exceptions.DeadKernelError
        If the kernel died.
    """
    with without_uri_checks():
        import papermill

    parameters = _parameters(notebook, parameters_file) | {"output": output.as_posix()}
    log_notebook.parent.mkdir(parents=True, exist_ok=True)
    output.parent.mkdir(parents=True, exist_ok=True)
    with (
        _alone(log_notebook.with_suffix(".lock")),
        tempfile.TemporaryDirectory(prefix="dchoices-", ignore_cleanup_errors=True) as folder,
    ):
        before = _state(output)
        papermill.execute_notebook(
            notebook,
            log_notebook,
            parameters=parameters,
            kernel_name="python3",
            language="python",
            progress_bar=False,
            stdout_file=sys.stdout,
            stderr_file=sys.stderr,
            start_timeout=START_TIMEOUT,
            iopub_timeout=IOPUB_TIMEOUT,
            autosave_cell_every=SAVE_EVERY,
            config=_isolated(folder),
        )
    if _state(output) in (None, before):
        raise RunError(f"{notebook}: ran to its end, but did not write {output}")


def _parameters(notebook: Path, parameters_file: Path) -> dict[str, Any]:
    """Return the parameters of the file, checked against the names in the notebook."""
    import papermill

    if notebook.suffix != ".ipynb" or not notebook.is_file():
        raise RunError(f"{notebook}: no such notebook")
    try:
        given = read(parameters_file)  # plain data: names and numbers, text, lists and mappings of them
    except ConfigError as error:
        raise RunError(str(error)) from None
    if not isinstance(given, dict):
        raise RunError(f"{parameters_file}: must be a mapping of parameter names to values")
    try:
        names = set(papermill.inspect_notebook(notebook))
    except ValueError as error:
        raise RunError(f"{notebook}: cannot be inspected: {' '.join(str(error).split())}") from None
    if not names:
        raise RunError(f"{notebook}: has no cell tagged 'parameters' with assignments")
    for kind, wrong in (("unknown", set(given) - names), ("missing", names - set(given) - {"output"})):
        if wrong:
            raise RunError(
                f"{parameters_file}: {kind} parameter {', '.join(sorted(map(str, wrong)))}; "
                f"{notebook} takes {', '.join(sorted(names))}"
            )
    if "output" not in names:
        raise RunError(f"{notebook}: its parameters cell must have 'output'")
    return given


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold a lock: a run that outlived its killed workflow is waited for, or it would write last."""
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"Waiting for another run that holds {path}", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _state(path: Path) -> tuple[int, int] | None:
    """Return what changes when a file is written or replaced."""
    return (path.stat().st_ino, path.stat().st_mtime_ns) if path.exists() else None


def _isolated(folder: str) -> Any:
    """Return a configuration that keeps kernels apart from each other and from the user's own settings."""
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, [os.environ.get("PYTHONWARNINGS"), STRICT]))
    os.environ["IPYTHONDIR"] = folder  # no start-up files, and no history shared by parallel kernels
    os.environ["JUPYTER_RUNTIME_DIR"] = folder
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"  # python3 is this interpreter, whatever ~/.local says
    from traitlets.config import Config

    # Ports are chosen, released and bound again, which fails when kernels start together. Sockets are files;
    # `ip` is the start of their paths, by default one in the current directory that all kernels would share.
    return Config({"KernelManager": {"transport": "ipc", "ip": f"{folder}/kernel"}})


def _failure(error: Exception) -> str:
    """Return what the log says about a failed run."""
    from papermill import PapermillExecutionError

    if not isinstance(error, PapermillExecutionError):
        return f"{type(error).__name__}: {error}".strip()
    lines = str(error).strip().splitlines()
    cut = ["..."] if len(lines) > TRACEBACK_LINES else []
    return "\n".join([f"Cell {error.exec_count} failed:", *cut, *lines[-TRACEBACK_LINES:]])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a notebook; return 0 if it wrote its dataset, 1 if it failed, 2 if it was refused."""
    parser = argparse.ArgumentParser(prog="python -m dchoices.workflow.run_notebook", description=__doc__)
    parser.add_argument("notebook", type=Path)
    parser.add_argument("parameters", type=Path, help="YAML file")
    parser.add_argument("output", type=Path, help="dataset that the notebook writes")
    parser.add_argument("--log-notebook", type=Path, required=True, help="where the executed notebook goes")
    given = parser.parse_args(arguments)
    # Leave by an exception, so that the kernel is shut down.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    started = time.monotonic()
    try:
        run(given.notebook, given.parameters, given.output, given.log_notebook)
    except RunError as error:
        print(error, file=sys.stderr)
        return 2
    except Exception as error:
        print(f"\n{_failure(error)}\n{given.notebook}: failed, see {given.log_notebook}", file=sys.stderr)
        return 1
    print(f"{given.output}: written in {time.monotonic() - started:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
