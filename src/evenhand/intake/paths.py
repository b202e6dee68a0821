"""Files: CSV and Parquet through DuckDB, Arrow through pyarrow."""

from __future__ import annotations

import codecs
import csv
import gzip
import importlib.util
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evenhand.errors import DataError, MissingDependencyError
from evenhand.intake.dependence import identifier_names
from evenhand.intake.engines.duck import DuckEngine
from evenhand.intake.engines.one_pass import engine_cells, repeated_identifiers
from evenhand.intake.frames import columns_table, frame_table
from evenhand.intake.options import Options, check_columns
from evenhand.intake.records import Table

# Above so many rows a file is added up to cells instead of being held in memory.
ROW_LIMIT = 5_000_000

_TEXT = (".csv", ".tsv", ".txt")
_ARROW = (".arrow", ".feather", ".ipc")
_PARQUET = (".parquet", ".pq")
_SEPARATORS = (",", ";", "\t", "|")
_NOT_TEXT = (b"PAR1", b"ARROW1", b"\x89PNG", b"PK\x03\x04", b"\x1f\x8b", b"%PDF")


def file_table(path: Path, options: Options) -> Table:
    """Read the needed columns of a file, or its cells when it is large.

    Parameters
    ----------
    path : Path
        CSV, TSV (also gzipped), Parquet, or Arrow/Feather IPC.
    options : Options
        What was asked.

    Returns
    -------
    Table
    """
    if not path.exists():
        near = _near_files(path)
        raise DataError(f"File `{path}` does not exist.{near}")
    if path.is_dir():
        raise DataError(f"`{path}` is a folder, not a table; name one file in it.")
    suffix = _suffix(path)
    if suffix in _ARROW:
        return _arrow_table(path, options)
    if suffix not in (*_TEXT, *_PARQUET):
        allowed = ".csv, .tsv (also .gz), .parquet, .arrow, .feather"
        raise DataError(f"File `{path.name}` has the extension `{path.suffix}`; allowed are {allowed}.")
    if path.stat().st_size == 0:
        raise DataError(f"File `{path.name}` is empty; a header and rows are needed.")
    with _connection(path) as connection:
        if suffix in _PARQUET:
            return _parquet_table(connection, path, options)
        return _text_table(connection, path, options)


def wants_cells(options: Options, rows: int) -> bool:
    """Say whether a source with so many rows is added up instead of read."""
    if options.rows != "auto":
        return options.rows in ("cells", "batches")
    if rows > ROW_LIMIT and options.needs_rows:
        cut = ", or cut it with `cuts`" if options.continuous else ""
        verb = "needs" if options.continuous else "need"
        raise DataError(
            f"{options.needs_rows} {verb} all {rows:,} rows in memory. Pass `rows='keep'` to allow that{cut}."
        )
    return rows > ROW_LIMIT


def wants_batches(options: Options, rows: int) -> bool:
    """Say whether the rows of a source that was added up are also wanted batch by batch, for a model."""
    if options.rows != "auto":
        return options.rows == "batches"
    return rows > ROW_LIMIT and bool(options.features) and not options.needs_cells


def _parquet_table(connection: Any, path: Path, options: Options) -> Table:
    relation = connection.read_parquet(_literal_path(path))
    schema = connection.execute("SELECT name, num_children FROM parquet_schema($1)", [_literal_path(path)]).fetchall()
    names = _top_names(schema)
    check_columns(options, names)
    engine = DuckEngine(relation, dict(zip(names, relation.columns, strict=True)))
    notes = repeated_identifiers(engine, names, options)
    if wants_cells(options, engine.count()):
        return engine_cells(engine, options).noted(notes)
    return columns_table(engine.fetch(options.columns), options).noted(notes)


def _top_names(schema: Sequence[tuple[str, int | None]]) -> list[str]:
    # The schema is a tree written in depth-first order; DuckDB itself renames duplicates.
    names, at = [], 1

    def skip(i: int) -> int:
        following = i + 1
        for _ in range(schema[i][1] or 0):
            following = skip(following)
        return following

    while at < len(schema):
        names.append(schema[at][0])
        at = skip(at)
    return names


def _text_table(connection: Any, path: Path, options: Options) -> Table:
    import duckdb

    names, separator = _header(path, options)
    check_columns(options, names)
    held_names = list(dict.fromkeys([*options.columns, *identifier_names(names, options)]))
    wanted = [f"c{names.index(c)}" for c in held_names]
    safe = {name: f"c{i}" for i, name in enumerate(names)}

    def relation(sample: int, texts: Sequence[str] = ()) -> Any:
        # Names are replaced by positions: whatever the header holds, it never enters SQL.
        return connection.read_csv(
            _literal_path(path),
            header=True,
            delimiter=separator,
            quotechar='"',
            escapechar='"',
            names=list(safe.values()),
            sample_size=sample,
            # Left to itself DuckDB may take leading rows for a preamble and "#" for a comment, and drop rows.
            skiprows=0,
            comment="",
            null_padding=False,
            dtype=dict.fromkeys(texts, "VARCHAR") or None,
        )

    def table(sample: int) -> Table:
        source = relation(sample)
        truths = [c for c, t in zip(source.columns, source.dtypes, strict=True) if t == "BOOLEAN" and c in wanted]
        if truths:
            source = relation(sample, _not_truths(relation(sample, truths), truths))
        if options.rows in ("cells", "batches"):
            engine = DuckEngine(source, safe)
            engine.check_types(options.features if options.rows == "batches" else ())
            return engine_cells(engine, options).noted(repeated_identifiers(engine, names, options))
        limit = "" if options.rows == "keep" else f" LIMIT {ROW_LIMIT + 1}"
        source.project(", ".join(wanted)).create_view("evenhand_source")
        connection.execute(f"CREATE TEMP TABLE evenhand_rows AS SELECT * FROM evenhand_source{limit}")
        held = DuckEngine(connection.table("evenhand_rows"), {c: safe[c] for c in held_names})
        notes = repeated_identifiers(held, held_names, options)
        if wants_cells(options, held.count()):
            connection.execute("DROP TABLE evenhand_rows")
            engine = DuckEngine(source, safe)
            engine.check_types(options.features)
            return engine_cells(engine, options).noted(notes)
        return columns_table(held.fetch(options.columns), options).noted(notes)

    try:
        return table(20_480)
    except (duckdb.ConversionException, duckdb.InvalidInputException):
        # A column that looked like numbers holds a text further down: look at the whole file.
        connection.execute("DROP TABLE IF EXISTS evenhand_rows")
        connection.execute("DROP VIEW IF EXISTS evenhand_source")
        return table(-1)


def _not_truths(source: Any, columns: Sequence[str]) -> list[str]:
    """Return the columns whose words DuckDB would turn into truth values though they are not true and false."""
    tests = [f"coalesce(bool_or(lower(trim({c})) NOT IN ('true', 'false')), FALSE)" for c in columns]
    answers = source.aggregate(", ".join(tests)).fetchall()[0]
    return [c for c, other in zip(columns, answers, strict=True) if other]


def _header(path: Path, options: Options) -> tuple[list[str], str]:
    try:
        with _opened(path) as file:
            head = file.read(1 << 16)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"File `{path.name}` is not a whole gzip file: {str(error).rstrip('.')}.") from None
    if head.startswith(_NOT_TEXT) or b"\0" in head:
        hint = " UTF-16 text must be saved as UTF-8 first." if head[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
        raise DataError(f"File `{path.name}` is not a text table: it holds binary data.{hint}")
    # The cut may fall inside a character.
    try:
        text = head.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4 or len(head) < 1 << 16:
            raise _encoding_error(path) from None
        text = head[: error.start].decode("utf-8-sig")
    lines = text.splitlines(keepends=True)
    if not text.strip():
        raise DataError(f"File `{path.name}` is empty; a header and rows are needed.")
    tab = path.name.lower().removesuffix(".gz").endswith(".tsv")
    parsed = {sep: _first_record(lines, sep) for sep in (("\t",) if tab else _SEPARATORS)}
    wanted = set(options.columns)
    best = max(parsed, key=lambda sep: (len(wanted & set(parsed[sep])), len(parsed[sep])))
    return parsed[best], best


def _opened(path: Path) -> Any:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def _first_record(lines: list[str], separator: str) -> list[str]:
    try:
        return next(csv.reader(lines, delimiter=separator), [])
    except csv.Error:
        return []


def _arrow_table(path: Path, options: Options) -> Table:
    if importlib.util.find_spec("pyarrow") is None:
        raise MissingDependencyError(
            f'Reading the Arrow file `{path.name}` needs pyarrow: pip install "evenhand[arrow]".'
        )
    import pyarrow
    import pyarrow.feather

    try:
        with pyarrow.memory_map(str(path)) as file:
            try:
                table = pyarrow.ipc.open_file(file).read_all()
            except pyarrow.ArrowInvalid:
                file.seek(0)
                try:
                    table = pyarrow.ipc.open_stream(file).read_all()
                except pyarrow.ArrowInvalid:
                    table = pyarrow.feather.read_table(str(path))  # version 1 files
            table.validate(full=True)  # broken offsets would end the whole process, not this function
            names = table.column_names
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"File `{path.name}` is not an Arrow table: {_sentence(error)}") from None
    check_columns(options, names)
    if wants_cells(options, table.num_rows):
        needed = table.select(list(options.columns))
        safe = {name: f"c{i}" for i, name in enumerate(options.columns)}
        with _connection(path) as connection:
            relation = connection.from_arrow(needed.rename_columns(list(safe.values())))
            engine = DuckEngine(relation, safe)
            return engine_cells(engine, options).noted(repeated_identifiers(engine, options.columns, options))
    return frame_table(table, options)


@contextmanager
def _connection(path: Path) -> Iterator[Any]:
    """Open a private DuckDB and turn its complaints about the file into one sentence.

    It is closed when nothing holds it any more: batches may be read from it later.
    """
    import duckdb

    connection = duckdb.connect()
    try:
        yield connection
    except duckdb.Error as error:
        if _suffix(path) in _TEXT and not _is_utf8(path):
            raise _encoding_error(path) from None
        raise DataError(f"File `{path.name}` cannot be read as a table: {_sentence(error)}") from None


def _is_utf8(path: Path) -> bool:
    # Asked only after a failure: DuckDB's message quotes the file, so its words prove nothing.
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with _opened(path) as file:
            while chunk := file.read(1 << 20):
                decoder.decode(chunk)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    except (gzip.BadGzipFile, EOFError, zlib.error):
        pass  # broken before a wrong character was met
    return True


def _encoding_error(path: Path) -> DataError:
    return DataError(f"File `{path.name}` is not UTF-8 text; save it with the encoding UTF-8.")


def _sentence(error: BaseException) -> str:
    text = str(error).strip()
    if "sniffing" in text:
        return "its rows do not have as many fields as its header, or a quote is not closed."
    lines = text.splitlines() or [type(error).__name__]
    more = [line for line in lines[1:] if line.startswith(("Expected Number", "Error when", "Could not"))]
    return ": ".join([lines[0].rstrip(". "), *more[:1]]).rstrip(". ") + "."


def _suffix(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _literal_path(path: Path) -> str:
    # DuckDB expands patterns in paths; these brackets make it take the name as it is.
    return "".join(f"[{c}]" if c in "*?[" else c for c in str(path))


def _near_files(path: Path) -> str:
    import difflib

    if not path.parent.is_dir():
        return f" Its folder `{path.parent}` does not exist either."
    names = [p.name for p in path.parent.iterdir()]
    close = difflib.get_close_matches(path.name, names, n=1)
    return f" Did you mean `{close[0]}`?" if close else ""
