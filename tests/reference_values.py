"""Published values, from data/reference."""

import csv
from pathlib import Path


def reference(name):
    """Return the rows of a table of data/reference as dictionaries of text."""
    with (Path(__file__).parents[1] / "data" / "reference" / f"{name}.csv").open() as table:
        return list(csv.DictReader(table))
