"""Files: CSV and Parquet through DuckDB, Arrow through pyarrow."""

from __future__ import annotations

import codecs
import csv
import gzip
import importlib.util
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evenhand.errors import DataError, MissingDependencyError
from evenhand.intake.dependence import identifier_names
from evenhand.intake.engines.duck import DuckEngine, kind_of
from evenhand.intake.engines.one_pass import engine_cells, repeated_identifiers
from evenhand.intake.file_sets import FileSet
from evenhand.intake.frames import columns_table, frame_table
from evenhand.intake.memory import memory_of, open_duckdb, rows_within, size_text
from evenhand.intake.options import Options, check_columns, check_unique
from evenhand.intake.progress import Tell, looked_at
from evenhand.intake.records import Table
from evenhand.intake.wording import listing

# Above so many rows a file is added up to cells instead of being held in memory.
ROW_LIMIT = 5_000_000

_SEPARATORS = (",", ";", "\t", "|")
_NOT_TEXT = (b"PAR1", b"ARROW1", b"\x89PNG", b"PK\x03\x04", b"\x1f\x8b", b"%PDF")


def file_table(files: FileSet, options: Options, progress: Tell | None = None) -> Table:
    """Read the needed columns of files that make one table, or their cells when they are large.

    Parameters
    ----------
    files : FileSet
        CSV, TSV (also gzipped), Parquet, or Arrow/Feather IPC.
    options : Options
        What was asked.
    progress : callable, optional
        Called with a short text that says how far reading is.

    Returns
    -------
    Table
    """
    if files.form == "arrow":
        return _arrow_table(files, options)
    with engine_for(files, options.memory) as connection, looked_at(connection, progress):
        return (_parquet_table if files.form == "parquet" else _text_table)(connection, files, options)


def wants_cells(options: Options, rows: int) -> bool:
    """Say whether a source with so many rows is added up instead of read."""
    if options.rows in ("cells", "batches"):
        return True
    cut = ", or cut it with `cuts=`" if options.continuous else ""
    needs = f"{options.needs_rows} {'needs' if options.continuous else 'need'}" if options.needs_rows else ""
    columns = len(options.columns)
    if (needs or options.rows == "keep") and options.memory is not None and rows > rows_within(options.memory, columns):
        about, allowed = size_text(memory_of(rows, columns)), size_text(options.memory)
        asked = f"{needs or 'You asked for'} all {rows:,} rows in memory, which takes about {about}"
        raise DataError(
            f"{asked}, and `memory=` allows {allowed}. Allow more with `memory='{about.replace(' ', '')}'`{cut}."
        )
    if options.rows == "keep":
        return False
    if needs and rows > _most_rows(options):
        raise DataError(f"{needs} all {rows:,} rows in memory. Pass `rows='keep'` to allow that{cut}.")
    return rows > _most_rows(options)


def _most_rows(options: Options) -> int:
    """Return how many rows are held in memory where nothing else was said; more are added up."""
    return min(ROW_LIMIT, rows_within(options.memory, len(options.columns)))


def wants_batches(options: Options, rows: int) -> bool:
    """Say whether the rows of a source that was added up are also wanted batch by batch, for a model."""
    if options.rows != "auto":
        return options.rows == "batches"
    return rows > _most_rows(options) and bool(options.features) and not options.needs_cells


def _parquet_table(connection: Any, files: FileSet, options: Options) -> Table:
    columns = _parquet_columns(connection, files)
    own = list(columns[0])
    names = [*own, *(name for name in files.partitions if name not in own)]
    check_columns(options, names)
    _check_parts(files, columns, options)
    # Without a union by name, DuckDB squeezes each part into the types of the first one: 1.5 becomes 2.
    relation = connection.read_parquet(
        files.literals, hive_partitioning=bool(files.partitions), union_by_name=len(files.paths) > 1
    )
    safe = {name: name for name in names} | dict(zip(own, relation.columns, strict=False))
    engine = DuckEngine(relation, safe)
    notes = repeated_identifiers(engine, names, options)
    if wants_cells(options, engine.count()):
        return engine_cells(engine, options).noted(notes)
    return columns_table(engine.fetch(options.columns), options).noted(notes)


def _parquet_columns(connection: Any, files: FileSet) -> list[dict[str, str]]:
    """Return each part's columns and their types in DuckDB's words."""
    schema = connection.execute(
        "SELECT file_name, name, num_children, duckdb_type FROM parquet_schema($1)", [files.literals]
    ).fetchall()
    by_file: dict[str, list[tuple[str, int | None, str | None]]] = {}
    for file, *line in schema:
        by_file.setdefault(file, []).append(tuple(line))
    parts = []
    for lines in by_file.values():
        top = _top_lines(lines)
        check_unique([line[0] for line in top])
        parts.append({line[0]: line[2] or "nested" for line in top})
    return parts


def _check_parts(files: FileSet, columns: Sequence[Mapping[str, str]], options: Options) -> None:
    """Refuse parts that have other columns than the first one, or a needed column of another kind."""
    first, kept = columns[0], files.paths[0].name
    for path, part in zip(files.paths, columns, strict=True):
        lacking, more = [c for c in first if c not in part], [c for c in part if c not in first]
        if lacking or more:
            told = f"lacks {listing(lacking)}" if lacking else f"has {listing(more)} too"
            raise DataError(
                f"The parts of {files.name} have different columns: `{path.name}` {told}, compared with `{kept}`. "
                "Write them with the same columns, or name those that belong together."
            )
        for name in options.columns:
            kinds = [_plain_kind(each[name]) for each in (first, part) if name in each]
            if len({kind for kind in kinds if kind}) > 1:
                raise DataError(
                    f"Column `{name}` holds {first[name]} in part `{kept}` of {files.name} and {part[name]} in part "
                    f"`{path.name}`. Write it with one type in all parts."
                )
    twice = [name for name in first if sum(other.lower() == name.lower() for other in first) > 1]
    if twice and len(files.paths) > 1:
        raise DataError(f"Columns {listing(twice)} of {files.name} differ only in case; rename them in all parts.")


def _plain_kind(dtype: str) -> str:
    """Return the kind that types of one column must share; True and False are numbers, and nothing is anything."""
    kind = kind_of(dtype)
    return "" if dtype.strip('"') == "NULL" else "number" if kind == "truth" else kind


def _top_lines(schema: Sequence[tuple[str, int | None, str | None]]) -> list[tuple[str, int | None, str | None]]:
    # The schema is a tree written in depth-first order; DuckDB itself renames duplicates.
    lines, at = [], 1

    def skip(i: int) -> int:
        following = i + 1
        for _ in range(schema[i][1] or 0):
            following = skip(following)
        return following

    while at < len(schema):
        lines.append(schema[at])
        at = skip(at)
    return lines


def _text_table(connection: Any, files: FileSet, options: Options) -> Table:
    import duckdb

    own, separator = _one_header(files, options)
    names = [*own, *(name for name in files.partitions if name not in own)]
    check_columns(options, names)
    held_names = list(dict.fromkeys([*options.columns, *identifier_names(names, options)]))
    safe = {name: f"field_of_file_{i}" for i, name in enumerate(own)}
    safe |= {name: name for name in files.partitions}
    wanted = [_quoted(safe[c]) for c in held_names]

    def relation(sample: int, texts: Sequence[str] = ()) -> Any:
        # Names are replaced by positions: whatever the header holds, it never enters SQL.
        return connection.read_csv(
            files.literals,
            header=True,
            delimiter=separator,
            quotechar='"',
            escapechar='"',
            names=[safe[name] for name in own],
            sample_size=sample,
            # Left to itself DuckDB may take leading rows for a preamble and "#" for a comment, and drop rows.
            skiprows=0,
            comment="",
            null_padding=False,
            hive_partitioning=bool(files.partitions),
            union_by_name=len(files.paths) > 1,
            dtype=dict.fromkeys(texts, "VARCHAR") or None,
        )

    def table(sample: int) -> Table:
        source = relation(sample)
        kinds = zip(source.columns, source.dtypes, strict=True)
        truths = [c for c, kind in kinds if kind == "BOOLEAN" and _quoted(c) in wanted]
        if truths:
            source = relation(sample, _not_truths(relation(sample, truths), truths))
        if options.rows in ("cells", "batches"):
            engine = DuckEngine(source, safe)
            engine.check_types(options.features if options.rows == "batches" else ())
            return engine_cells(engine, options).noted(repeated_identifiers(engine, names, options))
        limit = "" if options.rows == "keep" else f" LIMIT {_most_rows(options) + 1}"
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


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _one_header(files: FileSet, options: Options) -> tuple[list[str], str]:
    """Return the names and the separator that all parts share."""
    (names, separator), *others = [header_of(path, options.columns) for path in files.paths]
    for path, (other, mark) in zip(files.paths[1:], others, strict=True):
        if other != names or mark != separator:
            what = "the same columns in another order" if sorted(other) == sorted(names) else listing(other)
            raise DataError(
                f"The parts of {files.name} have different columns: `{path.name}` has {what}, and "
                f"`{files.paths[0].name}` has {listing(names)}. Write them with the same header, or name those that "
                "belong together."
            )
    return names, separator


def header_of(path: Path, wanted: Sequence[str] = ()) -> tuple[list[str], str]:
    """Return the names in a text file's first line and what separates them, in favour of names that are wanted."""
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
    best = max(parsed, key=lambda sep: (len({*wanted} & set(parsed[sep])), len(parsed[sep])))
    return parsed[best], best


def _opened(path: Path) -> Any:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def _first_record(lines: list[str], separator: str) -> list[str]:
    try:
        return next(csv.reader(lines, delimiter=separator), [])
    except csv.Error:
        return []


def _arrow_table(files: FileSet, options: Options) -> Table:
    if importlib.util.find_spec("pyarrow") is None:
        raise MissingDependencyError(f'Reading Arrow ({files.name}) needs pyarrow: pip install "evenhand[arrow]".')
    if files.partitions:
        raise DataError(
            f"{files.name} holds Arrow files in folders such as `{files.partitions[0]}=…`; only Parquet and CSV can be "
            "divided so. Write it as Parquet."
        )
    import pyarrow

    size = sum(path.stat().st_size for path in files.paths)
    if options.memory is not None and memory_of(0, 0) + size > options.memory:
        raise DataError(
            f"{files.name} is Arrow, which is read whole: {size_text(size)} do not fit into `memory=` of "
            f"{size_text(options.memory)}. Write it as Parquet, or allow more."
        )
    parts = [arrow_file(files.called(path), path) for path in files.paths]
    for path, part in zip(files.paths, parts, strict=True):
        check_columns(options, part.column_names)
        if set(part.column_names) != set(parts[0].column_names):
            raise DataError(
                f"The parts of {files.name} have different columns: `{path.name}` has {listing(part.column_names)}, "
                f"and `{files.paths[0].name}` has {listing(parts[0].column_names)}. Write them with the same columns."
            )
    try:
        table = parts[0] if len(parts) == 1 else pyarrow.concat_tables(parts, promote_options="permissive")
    except pyarrow.ArrowException as error:
        raise DataError(f"The parts of {files.name} do not fit together: {_sentence(error)}") from None
    if wants_cells(options, table.num_rows):
        needed = table.select(list(options.columns))
        safe = {name: f"c{i}" for i, name in enumerate(options.columns)}
        with engine_for(files, options.memory) as connection:
            relation = connection.from_arrow(needed.rename_columns(list(safe.values())))
            engine = DuckEngine(relation, safe)
            return engine_cells(engine, options).noted(repeated_identifiers(engine, options.columns, options))
    return frame_table(table, options)


def arrow_file(name: str, path: Path) -> Any:
    """Return the whole table of an Arrow file, a stream or an old Feather file, checked."""
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
            # A name that is not UTF-8 shows here.
            return table.rename_columns(table.column_names)
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{name} is not an Arrow table: {_sentence(error)}") from None


@contextmanager
def engine_for(files: FileSet, memory: int | None = None) -> Iterator[Any]:
    """Open a private DuckDB and turn its complaints about the files into one sentence.

    It is closed when nothing holds it any more: batches may be read from it later.
    """
    import duckdb

    connection = open_duckdb(memory)
    try:
        yield connection
    except duckdb.Error as error:
        for path in files.paths if files.form == "text" else ():
            if not _is_utf8(path):
                raise _encoding_error(path) from None
        if isinstance(error, duckdb.OutOfMemoryException) and memory is not None:
            raise DataError(
                f"{files.name} cannot be added up within `memory=` of {size_text(memory)}, even with the disk. "
                "Allow more, or name fewer groups."
            ) from None
        raise DataError(f"{files.name} cannot be read as a table: {_sentence(error)}") from None


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
