"""Datasets on disk: one registry of dimensions and variables, checked on write and read; hashes; merges.

``python -m dchoices.datasets OUT IN [IN ...]`` merges.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dchoices.variables import DIMENSIONS, VARIABLES, describe
from dchoices.wording import one_line


class DatasetError(Exception):
    """A dataset that is damaged, unregistered or cannot be merged; the message names file and cause."""


class NotStudied(LookupError):
    """A study that a run was not asked for, by its name: what needs its dataset is left out."""


def contents(array: xr.DataArray) -> tuple[str, np.ndarray]:
    """Return the type of an array's values, the same for however text is held, and the values."""
    if array.dtype.kind in "OUT":
        return "text", array.values.astype(str)
    return array.dtype.str, np.ascontiguousarray(array.values)


def content_hash(dataset: xr.Dataset) -> str:
    """Return a hash of names, dimensions, dtypes and values; attributes and file layout play no part."""
    digest = hashlib.sha256()
    for name in sorted(map(str, dataset.variables)):
        array = dataset[name]
        kind, values = contents(array)
        digest.update(repr((name, array.dims, array.shape, kind)).encode())
        digest.update("\0".join(values.ravel()).encode() if kind == "text" else values.tobytes())
    return digest.hexdigest()


def _check(dataset: xr.Dataset, where: str) -> None:
    for dim in dataset.dims:
        if dim not in DIMENSIONS or dim not in dataset.coords:
            raise DatasetError(f"{where}: dimension {dim!r} is not registered or has no coordinate")
        if not dataset.indexes[dim].is_unique:
            raise DatasetError(f"{where}: coordinate {dim!r} holds a value twice")
    for name, array in dataset.data_vars.items():
        kind = VARIABLES.get(str(name))
        if kind is None:
            raise DatasetError(f"{where}: variable {name!r} is not registered in dchoices.datasets")
        if tuple(dim for dim in kind.dims if dim in array.dims) != array.dims:
            raise DatasetError(f"{where}: {name!r} has dimensions {array.dims}, allowed are, in order, {kind.dims}")
        if array.dtype.kind == "f" and not _is_finite(array):
            raise DatasetError(f"{where}: {name!r} holds NaN or infinity")


def _is_finite(array: xr.DataArray) -> bool:
    """Tell whether all values are finite, but for NaN in the last replicates where an N has fewer than others."""
    if {"replicate", "N"} <= set(array.dims):
        there = array.notnull().any([dim for dim in array.dims if dim not in ("replicate", "N")])
        if bool(there.isel(replicate=0).all() and (there.astype(int).diff("replicate") <= 0).all()):
            array = array.where(there, 0.0)
    return bool(np.isfinite(array.values).all())


def write(dataset: xr.Dataset, path: str | os.PathLike, attrs: dict[str, Any] | None = None) -> None:
    """Check a dataset, describe its variables and write it as NetCDF under a temporary name, then rename.

    Raises
    ------
    DatasetError
        If a dimension or variable is not registered, a coordinate repeats, or a value is not finite.
    """
    target = Path(path)
    if target.is_dir() or not target.name:
        raise DatasetError(f"{target}: is a folder, must be a file to write")
    dataset = dataset.assign_attrs({**dataset.attrs, **(attrs or {})})
    _check(dataset, str(target))
    describe(dataset)
    dataset.attrs["content_hash"] = content_hash(dataset)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        # Text is kept as objects: fixed-width strings have no NetCDF form.
        encoding = {name: {"zlib": True, "complevel": 4} for name in dataset.data_vars if dataset[name].ndim}
        dataset.to_netcdf(temporary, engine="h5netcdf", encoding=encoding)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def read(path: str | os.PathLike) -> xr.Dataset:
    """Load a dataset into memory, close the file, and check it against the registry and its own hash.

    Raises
    ------
    DatasetError
        If the file cannot be read, holds what is not registered, or its contents do not match its hash.
    """
    try:
        dataset = xr.load_dataset(path, engine="h5netcdf")
    except FileNotFoundError:
        raise
    except Exception as cause:  # h5py and h5netcdf raise many kinds on a damaged file
        raise DatasetError(f"{path}: cannot be read ({type(cause).__name__}: {cause})") from cause
    _check(dataset, str(path))
    if dataset.attrs.get("content_hash") != content_hash(dataset):
        raise DatasetError(f"{path}: contents do not match their hash; delete the file and run again")
    return dataset


def merge(paths: Sequence[str | os.PathLike]) -> xr.Dataset:
    """Join datasets along the dimensions by which they differ, in the order of their coordinates; queues are padded.

    Raises
    ------
    DatasetError
        If a coordinate value comes twice, another coordinate differs, they do not differ along any dimension, or not in
        all combinations along several.
    """
    parts = [read(path) for path in paths]
    if len(parts) == 1:
        return parts[0]
    where = ", ".join(map(str, paths))
    differing = [
        dim
        for dim in parts[0].dims
        if dim != "queue_length" and any(not parts[0].indexes[dim].equals(part.indexes[dim]) for part in parts[1:])
    ]
    if not differing:
        raise DatasetError(f"{where}: must differ along a dimension, but have the same coordinates")
    levels = max(part.sizes.get("queue_length", 0) for part in parts)
    if levels:
        parts = [part.reindex(queue_length=np.arange(levels), fill_value=0) for part in parts]
    merged = _joined(parts, differing, where)
    for cost, joint in (("events", sum), ("cpu_seconds", sum), ("peak_memory_mb", max)):
        if all(cost in part.attrs for part in parts):
            merged.attrs[cost] = joint(part.attrs[cost] for part in parts)
    if all("parameters" in part.attrs for part in parts):
        merged.attrs["parameters"] = _joint_parameters([json.loads(part.attrs["parameters"]) for part in parts])
    _check(merged, where)
    return merged


def _joined(parts: Sequence[xr.Dataset], dims: Sequence[Hashable], where: str) -> xr.Dataset:
    """Return parts joined along the last dimension wherever they agree on the others, and so on to the first."""
    first, *others = dims
    if others:
        groups: dict[bytes, list[xr.Dataset]] = {}
        for part in parts:
            groups.setdefault(contents(part[first])[1].tobytes(), []).append(part)
        parts = [_joined(group, others, where) for group in groups.values()]
    try:
        joined = xr.concat(parts, first, data_vars="minimal", coords="minimal", compat="equals", join="exact",
                           combine_attrs="drop_conflicts")  # fmt: skip
    except ValueError as cause:
        raise DatasetError(
            f"{where}: must differ along one dimension, or in all combinations along several, differ along "
            f"{', '.join(map(str, dims))} ({one_line(str(cause))})"
        ) from cause
    return joined.sortby(first)


def _joint_parameters(runs: Sequence[dict[str, Any]]) -> str:
    """Return the parameters of runs as one: the lists by which they differ are joined."""
    joint = {
        name: value
        if all(run[name] == value for run in runs)
        else list(dict.fromkeys(item for run in runs for item in run[name]))
        for name, value in runs[0].items()
    }
    return json.dumps(joint, ensure_ascii=False)


def main(arguments: Sequence[str]) -> int:
    """Merge the datasets named after the first argument into it."""
    if len(arguments) < 2:
        print("usage: python -m dchoices.datasets OUT IN [IN ...]", file=sys.stderr)
        return 2
    out, *parts = arguments
    try:
        write(merge(parts), out)
    except (DatasetError, OSError) as error:
        print(one_line(str(error)), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
