"""Whether a run is whole, and the same as the one that is committed.

``python -m dchoices.workflow.verify data/smoke`` checks every dataset of a run, merged or not, against the registry and
its own hash. With a second folder, data/reference/smoke, the merged ones are then compared with those in it: to the
last bit where they are made of counts, which is a matter of hashes, else to 1e-9 (`variables.tolerance`). The first
entry that differs is shown. ``--update`` makes the second folder anew from the run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import xarray as xr

from dchoices import datasets
from dchoices.variables import tolerance
from dchoices.wording import show

HASHES = "hashes.json"


class BadReference(Exception):
    """A reference that cannot be compared with; the message names the file."""


def read(run: Path) -> tuple[dict[str, xr.Dataset], list[str]]:
    """Read a run; return its merged datasets, and a line for each file that does not match the registry or its hash."""
    merged, lines = {}, []
    for path in [*sorted(run.glob("*.nc")), *sorted(run.glob("runs/*/*.nc"))]:
        try:
            dataset = datasets.read(path)
        except datasets.DatasetError as error:
            lines.append(str(error))
        else:
            if path.parent == run:
                merged[path.stem] = dataset
    return merged, lines


def differences(merged: dict[str, xr.Dataset], reference: Path) -> list[tuple[str, str]]:
    """Return (dataset, how it differs) for each variable of a run's merged datasets that is not that of the reference.

    Raises
    ------
    BadReference
        If the reference is not there, or damaged.
    """
    hashes = _hashes(reference)
    lines = [(name, "is not in the reference") for name in merged if name not in hashes]
    for name, counted in hashes.items():
        if name in merged:
            lines += [(name, line) for line in compare(merged[name], _kept(reference / f"{name}.nc", counted), counted)]
        else:
            lines.append((name, "is missing"))
    return lines


def compare(ours: xr.Dataset, theirs: xr.Dataset, counted: dict[str, str]) -> Iterator[str]:
    """Yield how a dataset differs from the reference: in its parameters, or else a line for each variable.

    Parameters
    ----------
    ours, theirs : xarray.Dataset
        Of a run, and of the reference.
    counted : dict
        Hashes of those variables of the reference that are made of counts.
    """
    given, wanted = (json.loads(dataset.attrs["parameters"]) for dataset in (ours, theirs))
    if given != wanted:
        name = next(name for name in given | wanted if given.get(name) != wanted.get(name))
        yield f"parameter {name} = {show(given.get(name))}, in the reference {show(wanted.get(name))}"
        return
    # The coordinates first, which say where a value is.
    for name in dict.fromkeys([*theirs.coords, *theirs.data_vars, *ours.variables]):
        if name not in ours.variables or name not in theirs.variables:
            yield f"{name} is missing" if name in theirs.variables else f"{name} is not in the reference"
        elif name not in counted or _hash(ours[name]) != counted[name]:
            yield from _difference(ours[name], theirs[name], tolerance(theirs, str(name)))


def _difference(ours: xr.DataArray, theirs: xr.DataArray, allowed: float) -> Iterator[str]:
    """Yield how two arrays differ, with the first entry that does."""
    (kind, values), (wanted_kind, wanted) = datasets.contents(ours), datasets.contents(theirs)
    if (kind, ours.dims, ours.shape) != (wanted_kind, theirs.dims, theirs.shape):
        yield f"{ours.name} is {_form(ours)}, in the reference {_form(theirs)}"
        return
    wrong = _wrong(values, wanted, allowed)
    if not wrong.any():
        return
    first = np.unravel_index(wrong.argmax(), wrong.shape)
    place = ", ".join(f"{dim} = {ours[dim].values[k]}" for dim, k in zip(ours.dims, first, strict=True))
    more = f", and {wrong.sum() - 1} more of its entries differ" if wrong.sum() > 1 else ""
    yield f"{ours.name} at {place or '-'}: {values[first]!s}, in the reference {wanted[first]!s}{more}"


def _wrong(values: np.ndarray, wanted: np.ndarray, allowed: float) -> np.ndarray:
    if values.dtype.kind != "f":
        return values != wanted
    if not allowed:  # to the last bit: -0 is not 0
        return values.view(np.uint64) != wanted.view(np.uint64)
    both_absent = np.isnan(values) & np.isnan(wanted)
    return ~((np.abs(values - wanted) <= allowed * np.maximum(1, np.abs(wanted))) | both_absent)


def _form(array: xr.DataArray) -> str:
    return f"{array.dtype} on {dict(array.sizes)}"


def _hashes(reference: Path) -> dict[str, dict[str, str]]:
    try:
        found: dict[str, dict[str, str]] = json.loads((reference / HASHES).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise BadReference(f"{reference / HASHES}: cannot be read ({error})") from None
    return found


def _kept(path: Path, counted: dict[str, str]) -> xr.Dataset:
    try:
        dataset = datasets.read(path)
    except (datasets.DatasetError, FileNotFoundError) as error:
        raise BadReference(str(error)) from None
    if hashes_of_counted(dataset) != counted:
        raise BadReference(f"{path}: is not what {HASHES} is of; make the reference anew")
    return dataset


def update(merged: dict[str, xr.Dataset], reference: Path) -> None:
    """Make the reference from the merged datasets of a run; files that would hold the same are left as they are."""
    reference.mkdir(parents=True, exist_ok=True)
    for path in reference.glob("*.nc"):
        if path.stem not in merged:
            path.unlink()
    for name, dataset in merged.items():
        _keep(dataset, reference / f"{name}.nc")
    hashes = {name: hashes_of_counted(dataset) for name, dataset in merged.items()}
    (reference / HASHES).write_text(json.dumps(hashes, indent=1) + "\n", "utf-8")


def hashes_of_counted(dataset: xr.Dataset) -> dict[str, str]:
    """Return the hash of each variable that is made of counts."""
    return {str(name): _hash(array) for name, array in dataset.data_vars.items() if tolerance(dataset, str(name)) == 0}


def _hash(array: xr.DataArray) -> str:
    return datasets.content_hash(xr.Dataset({array.name: array.variable}))


def _keep(dataset: xr.Dataset, path: Path) -> None:
    """Write a dataset without its descriptions, in a third of the space."""
    attrs = {name: dataset.attrs[name] for name in ("parameters", "content_hash")}
    if path.exists() and _attributes(path) == attrs:
        return
    plain = dataset.drop_attrs().drop_encoding().assign_attrs(attrs)
    encoding = {name: {"zlib": True, "complevel": 9, "shuffle": True} for name in plain.data_vars if plain[name].ndim}
    with h5py.File(path, "w", libver="latest") as file:
        plain.to_netcdf(file, engine="h5netcdf", encoding=encoding)


def _attributes(path: Path) -> dict[str, Any]:
    with xr.open_dataset(path, engine="h5netcdf") as dataset:
        return dict(dataset.attrs)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what is wrong with a run; return 1 if something is, 2 if it cannot be told."""
    parser = argparse.ArgumentParser(
        prog="python -m dchoices.workflow.verify", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("run", type=Path, help="folder of a run, data/<profile>")
    parser.add_argument("reference", type=Path, nargs="?", help="folder to compare it with")
    parser.add_argument("--update", action="store_true", help="make the reference from the run instead")
    given = parser.parse_args(arguments)
    if given.update and not given.reference:
        parser.error("--update needs the folder of the reference")
    merged, lines = read(given.run)
    if not merged and not lines:
        print(f"{given.run}: holds no dataset", file=sys.stderr)
        return 2
    if lines:
        print(*lines, sep="\n", file=sys.stderr)
        return 1
    if given.update:
        update(merged, given.reference)
        print(f"{given.reference}: made from {given.run}")
        return 0
    try:
        found = differences(merged, given.reference) if given.reference else []
    except BadReference as error:
        print(error, file=sys.stderr)
        return 2
    if found:
        (name, line), *more = found
        print(f"{given.run / name}.nc: {line}", file=sys.stderr)
        if more:
            others = ", ".join(dict.fromkeys(name for name, _ in more))
            print(f"{len(more)} more variables or datasets differ, in {others}", file=sys.stderr)
        return 1
    print(f"{given.run}: every dataset is whole" + f", and the same as in {given.reference}" * bool(given.reference))
    return 0


if __name__ == "__main__":
    sys.exit(main())
