"""What a killed run leaves behind: Snakemake's locks and files written by half. A later run takes over by itself."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import TextIO


def take_over(folder: Path = Path(".snakemake")) -> TextIO:
    """Remove the locks that no living run of this folder holds, and hold a lock that says that this one lives.

    Snakemake's locks are files that outlive a killed run, and do not say whose they were. The lock that is held here
    is the system's: it ends with its process, however that ends. Jobs do not inherit it, so orphans do not count.

    Parameters
    ----------
    folder : Path
        Where Snakemake keeps its state.

    Returns
    -------
    file
        Open, and to be kept so while the run lives.
    """
    folder.mkdir(exist_ok=True)
    living = (folder / "living").open("w")
    try:
        fcntl.flock(living, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pass  # another run lives, and Snakemake refuses what the two would both write
    else:
        for lock in (folder / "locks").glob("*"):
            lock.unlink()
    fcntl.flock(living, fcntl.LOCK_SH)
    return living


def remove_halves(folder: Path) -> None:
    """Remove what a killed job had begun to write under a temporary name.

    Parameters
    ----------
    folder : Path
        Searched with all that is in it. A job that outlived its run fails when it finds its file gone.
    """
    for half in folder.rglob("*.tmp"):
        half.unlink(missing_ok=True)
