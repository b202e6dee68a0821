"""A bounded look into a file: some rows from all over it, as columns, however large it is."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evenhand.errors import DataError, optional_module
from evenhand.intake.columns import Column, from_values
from evenhand.intake.engines.duck import DuckEngine
from evenhand.intake.file_sets import FileSet, file_set
from evenhand.intake.frames import frame_columns
from evenhand.intake.options import check_unique
from evenhand.intake.paths import arrow_file, engine_for, header_of
from evenhand.intake.workbooks import one_workbook, opened_sheet, sheet_values

MOST_ROWS = 20_000
_MOST_CELLS = 2_000_000
_SLICES = 10  # places of a large file that are looked at, evenly far from each other
_SLICE_BYTES = 400_000
_READ = 15  # times the cells that are kept: so many are walked through where a file is not cut into slices
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Glimpse:
    """Some rows of a file."""

    columns: Mapping[str, Column]  # all columns of the file, the same rows of each
    seen: int  # how many rows these are
    rows: int | None  # how many the file has; None where nobody counted them
    exact: bool  # whether `rows` was counted and not estimated

    @property
    def whole(self) -> bool:
        """Whether all rows were looked at."""
        return self.exact and self.rows == self.seen


def glimpse(path: Path, sheet: str | None = None) -> Glimpse:
    """Look at some rows of a file: at all of a small one, at rows from ten places of a large one.

    Parameters
    ----------
    path : Path
        CSV, TSV (also gzipped), Parquet, Arrow or Excel.
    sheet : str, optional
        Of a workbook.

    Returns
    -------
    Glimpse
    """
    files = file_set([path])
    if files.form == "workbook":
        with opened_sheet(one_workbook(files.name, files.paths), sheet) as held:
            values, whole = sheet_values(held, MOST_ROWS, _MOST_CELLS)
        columns = {name: from_values(column, name) for name, column in values.items()}
        seen = len(next(iter(values.values()), []))
        return Glimpse(columns=columns, seen=seen, rows=seen if whole else None, exact=whole)
    if files.form == "arrow":
        optional_module("pyarrow", f'Reading Arrow ({files.name}) needs pyarrow: pip install "evenhand[arrow]".')
        table = arrow_file(files.name, files.paths[0])
        check_unique(table.column_names)
        part = table.slice(0, _most_rows(len(table.column_names)))
        columns = frame_columns(part, table.column_names) or {}
        return Glimpse(columns=columns, seen=part.num_rows, rows=table.num_rows, exact=True)
    return _text_glimpse(files.paths[0]) if files.form == "text" else _parquet_glimpse(files)


def _most_rows(columns: int) -> int:
    return max(1, min(MOST_ROWS, _MOST_CELLS // max(columns, 1)))


def _parquet_glimpse(files: FileSet) -> Glimpse:
    with engine_for(files) as connection:
        counted = connection.execute("SELECT sum(num_rows) FROM parquet_file_metadata($1)", [files.literals]).fetchall()
        rows = int(counted[0][0])
        relation = connection.read_parquet(files.literals, file_row_number=True)
        names = [str(c) for c in relation.columns if c != "file_row_number"]
        most = _most_rows(len(names))
        if rows > most:
            each = max(most // _SLICES, 1)
            begins = (int(k * (rows - each) / (_SLICES - 1)) for k in range(_SLICES))
            places = (f"file_row_number BETWEEN {at} AND {at + each - 1}" for at in begins)
            relation = relation.filter(" OR ".join(places))
        columns = DuckEngine(relation).fetch(names)
    seen = len(next(iter(columns.values()), ()))
    return Glimpse(columns=columns, seen=seen, rows=rows, exact=True)


def _text_glimpse(path: Path) -> Glimpse:
    names, separator = header_of(path)
    check_unique(names)
    most = _most_rows(len(names))
    packed = path.suffix == ".gz"
    size = path.stat().st_size
    kept: list[list[str]] = []
    rows: int | None
    try:
        if packed or size <= _SLICES * _SLICE_BYTES:
            with gzip.open(path, "rb") if packed else path.open("rb") as raw:
                text = io.TextIOWrapper(raw, encoding="utf-8-sig", errors="replace", newline="")
                records = csv.reader(text, delimiter=separator)
                next(records, None)
                kept, rows = _thinned(records, len(names), most)
            exact = rows is not None
        else:
            slices, exact = list(_slices(path, size)), False
            for part in slices:
                records = csv.reader(io.StringIO(part), delimiter=separator)
                kept += itertools.islice(_fitting(records, len(names)), max(most // _SLICES, 1))
            width = sum(len(part) for part in slices) / max(sum(part.count("\n") for part in slices), 1)
            rows = int(size / max(width, 1))
    except (csv.Error, OSError, EOFError) as error:
        raise DataError(f"File `{path.name}` cannot be read as a table: {error}.") from None
    columns = {name: _typed(from_values([r[i] for r in kept], name)) for i, name in enumerate(names)}
    return Glimpse(columns=columns, seen=len(kept), rows=rows, exact=exact)


def _slices(path: Path, size: int) -> Iterator[str]:
    """Yield whole lines from evenly distant places, none of them the head."""
    with path.open("rb") as file:
        for k in range(_SLICES):
            file.seek(int(k * (size - _SLICE_BYTES) / (_SLICES - 1)))
            file.readline(_SLICE_BYTES)  # the rest of a line, or the head
            text = file.read(_SLICE_BYTES).decode("utf-8", errors="replace")
            yield text[: text.rfind("\n") + 1]


def _fitting(records: Iterator[list[str]], width: int) -> Iterator[list[str]]:
    """Return the records with as many fields as the head: a slice may begin inside a quoted field."""
    return (record for record in records if len(record) == width)


def _thinned(records: Iterator[list[str]], width: int, most: int) -> tuple[list[list[str]], int | None]:
    """Return evenly distant records, at most so many, and how many there are; None where the end was not reached."""
    kept: list[list[str]] = []
    step, count = 1, 0
    for record in _fitting(records, width):
        if count == _READ * most:
            return kept, None
        if count % step == 0:
            if len(kept) == most:
                kept, step = kept[::2], 2 * step
            if count % step == 0:
                kept.append(record)
        count += 1
    return kept, count


def _typed(column: Column) -> Column:
    """Read the texts of a file as numbers or truth values where all of them are."""
    known = [label for label in column.labels if label.strip()]
    table = None
    if known and all(_NUMBER.fullmatch(label.strip()) for label in known):
        kind, table = "number", [float(label) if label.strip() else math.nan for label in column.labels]
    elif known and {label.strip().casefold() for label in known} <= {"true", "false"}:
        kind, table = "truth", [float(label.strip().casefold() == "true") for label in column.labels]
    if table is None or column.kind != "label":
        return column
    return Column(kind=kind, values=np.array([*table, math.nan])[column.values])
