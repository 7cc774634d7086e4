"""What the project's pages show, for tests that do it."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def blocks(page, language="python"):
    """Return the blocks of a page in a language."""
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)


def run_shell(block, folder):
    """Run the commands of a page in a copy of the project, in this environment; return what they printed."""
    python = folder / ".venv" / "bin" / "python"
    if not python.exists():  # what `make` would install
        python.parent.mkdir(parents=True)
        python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        python.chmod(0o755)
        (folder / ".venv" / "installed.lock").touch()
    ran = subprocess.run(
        ["bash", "-e", "-c", block],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder / "lib")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout[-5000:]
    return ran.stdout
