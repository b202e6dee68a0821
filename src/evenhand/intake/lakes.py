"""Delta and Iceberg tables in folders: the table's own library says which rows it holds now, and DuckDB reads these."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from evenhand.errors import DataError, EvenhandError, first_line, optional_module
from evenhand.intake.file_sets import ICEBERG_STATE, LAKES, pattern_free
from evenhand.intake.memory import open_duckdb

# What tables of Delta may ask of a reader beyond the first version of the format, as far as it is heeded here.
_FEATURES = {"columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "v2Checkpoint", "vacuumProtocolCheck"}
_FILE = "evenhand file"
_SCHEME = "^file:(//)?"  # before a path on this machine


@dataclass(frozen=True, slots=True, kw_only=True)
class _Contents:
    """What a table holds now."""

    schema: Any  # of pyarrow, with the names of today
    keys: Mapping[str, str | int]  # what finds a column in the files: its name there, or Iceberg's number of it
    files: Sequence[str]  # paths on this machine
    values: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # columns with one value for each of the files
    deleted: Sequence[Any] = ()  # pairs of a path here and positions of rows, or the paths of Iceberg's files of them
    version: str


@contextmanager
def lake_relation(path: Path, kind: str, memory: int | None) -> Iterator[tuple[Any, str]]:
    """Give the rows that a Delta or Iceberg table holds now, and a note that says as of when.

    The table's own library reads its log and names the files, with what is deleted from them; it reads no rows. So rows
    stream from the files within the memory that DuckDB has, and can be walked over again.

    Parameters
    ----------
    path : Path
        The folder; of Iceberg also the file of metadata that holds the state to read.
    kind : str
        As `lake_kind` says.
    memory : int or None
        Bytes that reading may take.

    Yields
    ------
    relation : duckdb.DuckDBPyRelation
        Its rows; complaints of DuckDB become one sentence.
    note : str
    """
    import duckdb

    name = f"`{path}`"
    package = {"delta": "deltalake", "iceberg": "pyiceberg.table"}[kind]
    needed = f'{name} is a table of {LAKES[kind]}, which needs `evenhand[lake]`: pip install "evenhand[lake]".'
    library = optional_module(package, needed)
    optional_module("pyarrow", needed)
    try:
        contents = (_delta if kind == "delta" else _iceberg)(path.resolve(), library)
    except EvenhandError:
        raise
    except Exception as error:  # the libraries have no common kind of error
        raise _broken(name, kind, error) from None
    try:
        yield (
            _relation(open_duckdb(memory), name, contents),
            f"The {LAKES[kind]} table was read as of {contents.version}.",
        )
    except duckdb.Error as error:
        raise _broken(name, kind, error) from None


def _broken(name: str, kind: str, error: Exception) -> DataError:
    said = first_line(error).strip(" :")
    return DataError(f"{name} cannot be read as a table of {LAKES[kind]}; check that it is whole and here: {said}.")


def _delta(path: Path, deltalake: Any) -> _Contents:
    import pyarrow

    table = deltalake.DeltaTable(str(path))
    unknown = {*(table.protocol().reader_features or ())} - _FEATURES
    if unknown:
        raise _cannot(path, "Delta", f"the feature `{min(unknown)}`")
    mapping = table.metadata().configuration.get("delta.columnMapping.mode", "none")
    if mapping not in ("none", "name"):
        raise _cannot(path, "Delta", f"column mapping by {mapping}")
    schema = pyarrow.schema(table.schema().to_arrow())
    keys = {c.name: c.metadata.get("delta.columnMapping.physicalName", c.name) for c in table.schema().fields}
    actions = pyarrow.table(table.get_add_actions(flatten=True))
    files = [_local(path, unquote(p)) for p in actions["path"].to_pylist()]
    values = {c: actions[f"partition.{c}"].to_pylist() for c in table.metadata().partition_columns if files}
    deleted = [
        (_local(path, unquote(file.as_py())), np.flatnonzero(~kept.values.to_numpy(zero_copy_only=False)))
        for batch in table.deletion_vectors()
        for file, kept in zip(*(pyarrow.array(batch[c]) for c in ("filepath", "selection_vector")), strict=True)
    ]
    version = f"version {table.version()}"
    return _Contents(schema=schema, keys=keys, files=files, values=values, deleted=deleted, version=version)


def _iceberg(path: Path, library: Any) -> _Contents:
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    metadata = path if path.is_file() else _newest_metadata(path)
    table = library.StaticTable.from_metadata(str(metadata))
    schema, snapshot = table.schema(), table.current_snapshot()
    # What is elsewhere would be fetched by the library.
    for manifest in snapshot.manifests(table.io) if snapshot and _local(path, snapshot.manifest_list) else ():
        _local(path, manifest.manifest_path)
    tasks = list(table.scan().plan_files())
    parts = [task.file for task in tasks]
    removals = {gone for task in tasks for gone in task.delete_files}
    for file in (*parts, *removals):
        if file.file_format.name != "PARQUET":
            what = "rows in" if file in parts else "deletions in"
            raise _cannot(path, "Iceberg", f"{what} files of the form {file.file_format.name}")
    if any(column.initial_default is not None for column in schema.fields):
        raise _cannot(path, "Iceberg", "values by default of columns that were added")
    names = {column.field_id: column.name for column in schema.fields}
    values: dict[str, list[Any]] = {}
    for i, file in enumerate(parts):
        for spot, part in enumerate(table.specs()[file.spec_id].fields):
            if str(part.transform) == "identity" and part.source_id in names:
                values.setdefault(names[part.source_id], [None] * len(parts))[i] = file.partition[spot]
    return _Contents(
        schema=schema_to_pyarrow(schema, include_field_ids=False),
        keys={column: number for number, column in names.items()},
        files=[_local(path, file.file_path) for file in parts],
        values=values,
        deleted=[_local(path, gone.file_path) for gone in removals],
        version=f"`{metadata.name}`",
    )


def _newest_metadata(path: Path) -> Path:
    """Return the file that holds the state of today: the one that is named as such, or that of the highest number."""
    hint = path / "metadata" / "version-hint.text"
    if hint.is_file():
        text = hint.read_text().strip().removesuffix(ICEBERG_STATE)
        return path / "metadata" / f"{'v' if text.isdecimal() else ''}{text}{ICEBERG_STATE}"
    numbered: dict[int, list[Path]] = {}
    for file in (path / "metadata").glob("*" + ICEBERG_STATE):
        number = re.match(r"v?(\d+)", file.name)
        numbered.setdefault(int(number[1]) if number else -1, []).append(file)
    newest = numbered[max(numbered)]
    if len(newest) > 1:
        shown = " and ".join(f"`{file.name}`" for file in sorted(newest)[:2])
        raise DataError(
            f"`{path}` has {len(newest)} files of metadata of the same number ({shown}), and only its catalogue knows "
            "which is valid. Name that file in place of the folder."
        )
    return newest[0]


def _cannot(path: Path, kind: str, what: str) -> DataError:
    return DataError(
        f"`{path}` is a table of {kind} that uses {what}, which cannot be read here. Let Spark read it, or write "
        "its rows to Parquet."
    )


def _local(path: Path, location: str) -> str:
    """Return where a file of a table is on this machine."""
    plain = re.sub(_SCHEME, "", location)
    if re.match(r"[a-z][a-z0-9+.-]+:", plain):
        raise DataError(f"`{path}` has rows elsewhere (`{location}`); only tables on this machine can be read.")
    return str((path / plain).absolute())


def _relation(connection: Any, name: str, contents: _Contents) -> Any:
    """Let DuckDB read the files as the table has its columns today, without the deleted rows."""
    import pyarrow

    # No audit takes a column of lists or records, whose fields may have other names in the files.
    plain = [column for column in contents.schema if not pyarrow.types.is_nested(column.type)]
    empty = connection.from_arrow(pyarrow.schema(plain).empty_table())
    if not contents.files:
        return empty
    paths = pattern_free(contents.files)
    _check_files(connection, name, contents, paths)
    arrays = [pyarrow.array(v, contents.schema.field(c).type) for c, v in contents.values.items()]
    named = {"number": [*range(len(paths))], "file": contents.files}
    connection.from_arrow(pyarrow.table(named | {f"v{i}": v for i, v in enumerate(arrays)})).create("files")
    values = {c: f"here.v{i}" for i, c in enumerate(contents.values)}
    # How many rows the files have is not known when a join is planned: the short side is the one named last.
    connection.execute("SET disabled_optimizers = 'build_side_probe_side,join_order'")
    wanted, stored = [], []
    for column, kind in zip(empty.columns, empty.dtypes, strict=True):
        key = contents.keys[column]
        # A file is searched for the number or, without numbers, for the name; one that lacks it has no values.
        inside = column if isinstance(key, int) else key
        stored.append(f"{_text(key)}: {{name: {_text(inside)}, type: {_text(str(kind))}, default_value: NULL}}")
        value = f"part.{_quoted(inside)}"
        if column in values:
            value = f"coalesce({values[column]}, {value})"
        wanted.append(f"{value} AS {_quoted(column)}")
    shown = f"schema=MAP {{{', '.join(stored)}}}, filename='{_FILE}', hive_partitioning=false"
    rows = f"read_parquet($1, {shown}) AS part"
    if values or contents.deleted:
        rows += f' LEFT JOIN files AS here ON here.file = part."{_FILE}"'
    if contents.deleted:
        _list_deleted(connection, name, contents)
        rows += " ANTI JOIN deleted ON deleted.number = here.number AND deleted.pos = part.file_row_number"
    return connection.sql(f"SELECT {', '.join(wanted)} FROM {rows}", params=[paths])


def _quoted(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _text(value: str | int) -> str:
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def _check_files(connection: Any, name: str, contents: _Contents, paths: Sequence[str]) -> None:
    """Make sure that all files are there under the names they are joined by, and hold columns of the table."""
    found = connection.execute(
        "SELECT file_name, list(name), list(field_id) FROM parquet_schema($1) GROUP BY file_name", [paths]
    ).fetchall()
    if {file for file, *_ in found} != {*contents.files}:
        raise DataError(f"{name} has files whose names DuckDB reads in another way; move the table to a plainer path.")
    for file, names, numbers in found:
        if {*contents.keys.values()}.isdisjoint([*names, *numbers]):
            raise DataError(
                f"{name} has a file (`{Path(file).name}`) without the marks by which the table knows its columns. "
                "Rewrite the table's files, or let Spark read it."
            )


def _list_deleted(connection: Any, name: str, contents: _Contents) -> None:
    """Make a table of the rows that are deleted: the number of a file, and the position in it."""
    import pyarrow

    if isinstance(contents.deleted[0], str):
        connection.execute(
            "CREATE TABLE deleted AS SELECT DISTINCT files.number, gone.pos FROM read_parquet($1) AS gone "
            "JOIN files ON files.file = regexp_replace(gone.file_path, $2, '')",
            [pattern_free(contents.deleted), _SCHEME],
        )
        return
    numbers = {file: number for number, file in enumerate(contents.files)}
    if any(file not in numbers for file, _ in contents.deleted):
        raise DataError(f"{name} lists deleted rows of a file that is none of its own; check how it was written.")
    each = [np.full(gone.size, numbers[file]) for file, gone in contents.deleted]
    gone = np.concatenate([gone for _, gone in contents.deleted])
    connection.from_arrow(pyarrow.table({"number": np.concatenate(each), "pos": gone})).create("deleted")
