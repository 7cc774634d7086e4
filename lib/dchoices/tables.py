"""Datasets as tables, in CSV or Parquet, for readers without xarray.

``python -m dchoices.tables data/paper/stationary.nc out.csv mean_response_time mean_response_time_ci95`` writes one.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd
import xarray as xr

from dchoices import datasets
from dchoices.wording import one_line, shorten, show

SUFFIXES = (".csv", ".parquet")
# What an error names: variables, those of one set of dimensions, and characters of all of it.
MENTIONED, NAMED, LINE = 12, 3, 550
CSVW = "http://www.w3.org/ns/csvw"  # Metadata Vocabulary for Tabular Data, https://www.w3.org/TR/tabular-metadata


def to_table(dataset: xr.Dataset, path: str | os.PathLike, variables: str | Sequence[str] | None = None) -> None:
    """Write variables of a dataset as one table in long format: a row for each (N, d, λ, …), a column for each of them.

    A table has one set of dimensions, those of its variables that have the most; a variable with fewer of them is
    repeated along the others. Rows in which no variable has a value, as of replicates that an N does not have, are left
    out. Values are written in full, so that they read back as the same numbers.

    Units and descriptions of the columns go into the metadata of the columns in Parquet, with the attributes of the
    dataset (its parameters, commit and hash) in that of the file. Those of a CSV file stand beside it, in
    ``<path>-metadata.json`` by the W3C's recommendation for tabular data: a header of comments in the file itself would
    be data to spreadsheets and to most programs.

    Parameters
    ----------
    dataset : xarray.Dataset
        Any that this package returns or writes.
    path : path
        The file, which ends in .csv or .parquet (this needs pyarrow). It is replaced when the table is whole.
    variables : str or sequence of str, optional
        Which variables; by default all, if one set of dimensions holds them.

    Raises
    ------
    ValueError
        If the path ends otherwise, a variable is not in the dataset or comes twice, or one set of dimensions does not
        hold all of them.
    """
    if not isinstance(dataset, xr.Dataset):
        raise ValueError(f"dataset = {show(dataset)}: must be an xarray Dataset")
    if not isinstance(path, str | os.PathLike):
        raise ValueError(f"path = {show(path)}: must be the name of a file")
    target = Path(path)
    if target.suffix not in SUFFIXES:
        raise ValueError(f"path = {show(str(path))}: must end in {' or '.join(SUFFIXES)}")
    if target.is_dir():
        raise ValueError(f"path = {show(str(path))}: is a folder, must be a file to write")
    names = _names(dataset, variables)
    frame = _frame(dataset[names], _dimensions(dataset, names))
    columns = {str(name): _described(dataset[name]) for name in frame}
    if target.suffix == ".csv":
        metadata = json.dumps(_csvw(target.name, frame, columns, dataset.attrs), ensure_ascii=False, indent=1) + "\n"
        _replace(target.with_name(f"{target.name}-metadata.json"), lambda file: file.write_text(metadata, "utf-8"))
        _replace(target, lambda file: frame.to_csv(file, index=False))
    else:
        _replace(target, lambda file: _write_parquet(frame, file, columns, dataset.attrs))


def _names(dataset: xr.Dataset, variables: Any) -> list[str]:
    known = list(map(str, dataset.data_vars))
    if variables is None:
        variables = known
    elif isinstance(variables, str):
        variables = [variables]
    elif not isinstance(variables, Sequence):
        raise ValueError(f"variables = {show(variables)}: must be names of variables")
    names: list[str] = []
    for name in variables:
        if not isinstance(name, str) or name not in known:
            raise ValueError(f"variables: {show(name)} is not in the dataset, must be one of {_few(known, MENTIONED)}")
        if name in names:
            raise ValueError(f"variables: {name} is named twice, must be named once")
        names.append(name)
    if not names:
        raise ValueError(f"variables: none is named, must be one or more of {_few(known, MENTIONED)}")
    return names


def _dimensions(dataset: xr.Dataset, names: Sequence[str]) -> list[Hashable]:
    """Return the dimensions of the variable that has the most, which must be all there are."""
    dims = max((dataset[name].dims for name in names), key=len)
    if any(set(dataset[name].dims) - set(dims) for name in names):
        kinds: dict[tuple[Hashable, ...], list[str]] = {}
        for name in names:
            kinds.setdefault(dataset[name].dims, []).append(name)
        told = "; ".join(
            f"{_few(found, NAMED)} by {', '.join(map(str, kind)) or 'nothing'}" for kind, found in kinds.items()
        )
        raise ValueError(
            shorten(f"variables: must have the dimensions of one of them, name some that do: {told}", LINE)
        )
    return list(dims)


def _frame(dataset: xr.Dataset, dims: Sequence[Hashable]) -> pd.DataFrame:
    """Return the table: dimensions, other coordinates, variables."""
    if not dims:
        dataset, dims = dataset.expand_dims("row"), ["row"]
    frame = dataset.to_dataframe(dim_order=list(dims)).dropna(how="all", subset=list(dataset.data_vars)).reset_index()
    others = [name for name in dataset.coords if name not in dims]
    return frame[[*(dim for dim in dims if dim in dataset.coords), *others, *dataset.data_vars]]


def _few(names: Sequence[str], most: int) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _described(array: xr.DataArray) -> dict[str, str]:
    return {key: str(array.attrs[key]) for key in ("units", "description") if key in array.attrs}


def _csvw(
    name: str, frame: pd.DataFrame, columns: Mapping[str, Mapping[str, str]], attrs: Mapping[Any, Any]
) -> dict[str, Any]:
    kinds = {"i": "integer", "u": "integer", "f": "double"}
    return {
        "@context": CSVW,
        "url": name,
        **({"dc:title": attrs["title"]} if "title" in attrs else {}),
        "notes": [{str(key): _plain(value)} for key, value in attrs.items()],
        "tableSchema": {
            "columns": [
                {
                    "name": quote(column, safe=""),
                    "titles": column,
                    "datatype": kinds.get(frame[column].dtype.kind, "string"),
                    **({"dc:description": said["description"]} if "description" in said else {}),
                    **({"schema:unitText": said["units"]} if "units" in said else {}),
                }
                for column, said in columns.items()
            ]
        },
    }


def _plain(value: Any) -> Any:
    """Return an attribute as JSON has it: netCDF gives numbers of numpy."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _write_parquet(
    frame: pd.DataFrame, file: Path, columns: Mapping[str, Mapping[str, str]], attrs: Mapping[Any, Any]
) -> None:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise ValueError("path: a table in Parquet needs pyarrow, must end in .csv without it") from None
    table = pa.Table.from_pandas(frame, preserve_index=False)
    fields = [field.with_metadata(columns[field.name]) for field in table.schema]
    said = {str(key): str(_plain(value)) for key, value in attrs.items()}
    parquet.write_table(table.cast(pa.schema(fields, metadata=said | (table.schema.metadata or {}))), file)


def _replace(target: Path, write: Callable[[Path], Any]) -> None:
    """Write a file under a temporary name and rename it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        write(temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def main(arguments: Sequence[str]) -> int:
    """Write a table of the dataset named first to the file named second, of the variables named then."""
    if len(arguments) < 2:
        print("usage: python -m dchoices.tables DATASET.nc TABLE.(csv|parquet) [VARIABLE ...]", file=sys.stderr)
        return 2
    source, target, *variables = arguments
    try:
        to_table(datasets.read(source), target, variables or None)
    except (datasets.DatasetError, ValueError, OSError) as error:
        print(one_line(str(error)), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
