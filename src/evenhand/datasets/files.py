"""A data set's file as columns, checked against its checksum first."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.datasets.registry import ENVIRONMENT, Source, find, source
from evenhand.errors import DataError

Values = NDArray[Any]


def table(name: str) -> dict[str, Values]:
    """Return all rows of a known data set as one array per column.

    Parameters
    ----------
    name : str
        One of the names `known` lists.

    Returns
    -------
    dict of str to ndarray
        Columns in the file's order. A missing number is NaN, a missing text None. A column name that
        occurs twice gets ``_1`` the second time.

    Raises
    ------
    DataError
        When the name is not known, the file was not found, or it is not the file that is known.

    Examples
    --------
    >>> columns = table("adult")
    >>> len(columns["income"]), columns["race"][0]
    (48842, 'White')
    """
    entry = source(name)
    path = find(entry)
    if path is None:
        raise DataError(
            f"The data set `{name}` is known but no copy was found. Get `{Path(entry.file).name}` from "
            f"{entry.origin} and put it into `~/.evenhand/data`, or into a folder that the environment "
            f"variable {ENVIRONMENT} names."
        )
    digest = hashlib.sha256(_content(path)).hexdigest()
    if digest not in entry.sha256:
        raise DataError(
            f"`{path}` is not the file known as `{name}`: its content has SHA-256 {digest}, expected "
            f"{' or '.join(entry.sha256)}. Replace the file, or read yours with `evenhand.read`."
        )
    columns = _read_blanks(entry, path) if entry.delimiter == "space" else _read(entry, path)
    rows = len(next(iter(columns.values())))
    if rows != entry.rows:
        raise DataError(f"`{path}` was read as {rows} rows; `{name}` has {entry.rows}.")
    return columns


def missing(column: Values) -> NDArray[np.bool_]:
    """Mark the texts of a column that are None.

    Parameters
    ----------
    column : ndarray of object
        From `table`.

    Returns
    -------
    ndarray of bool

    Examples
    --------
    >>> missing(np.array(["a", None], dtype=object)).tolist()
    [False, True]
    """
    return np.fromiter((value is None for value in column), dtype=np.bool_, count=column.size)


def _content(path: Path) -> bytes:
    data = path.read_bytes()
    try:
        return gzip.decompress(data) if path.suffix == ".gz" else data
    except (OSError, EOFError) as error:
        raise DataError(f"`{path}` is not a whole gzip file: {error}.") from error


def _read(entry: Source, path: Path) -> dict[str, Values]:
    import duckdb

    place = "'" + str(path).replace("'", "''") + "'"
    query = f"SELECT * FROM read_parquet({place})"
    if path.suffix != ".parquet":
        names = f", names = {list(entry.columns)!r}" if entry.columns else ""
        query = (
            f"SELECT * FROM read_csv({place}, delim = '{entry.delimiter}', quote = '\"', "
            f"header = {entry.header}, skip = {entry.skip}, nullstr = '{entry.missing}', "
            f"sample_size = -1, auto_detect = true{names})"
        )
    with duckdb.connect() as connection:
        columns = connection.execute(query).fetchnumpy()
    return {str(key): _unmasked(values) for key, values in columns.items()}


def _read_blanks(entry: Source, path: Path) -> dict[str, Values]:
    values = np.loadtxt(path, dtype=np.float64, ndmin=2)
    return {name: values[:, j].copy() for j, name in enumerate(entry.columns)}


def _unmasked(values: Values) -> Values:
    """Write what the engine masks as NaN, NaT or None, so that no mask is lost on the way."""
    mask = np.ma.getmaskarray(values)
    data = np.ma.getdata(values)
    if data.dtype.kind in "iu":
        data = data.astype(np.int64)  # small types would overflow in the reader's arithmetic
    if not mask.any():
        return data
    if data.dtype.kind in "ib":
        data = data.astype(np.float64)
    data = data.copy()
    data[mask] = None if data.dtype == object else np.nan if data.dtype.kind == "f" else np.datetime64("NaT")
    return data
