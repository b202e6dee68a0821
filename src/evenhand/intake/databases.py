"""Tables and views of DuckDB database files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evenhand.errors import DataError, UsageError, first_line, near_matches
from evenhand.intake.memory import open_duckdb
from evenhand.intake.wording import listing

_SUFFIXES = (".duckdb", ".ddb")


def is_database(path: Path) -> bool:
    """Say whether a file is a DuckDB database: by its ending, or by what it begins with."""
    if path.suffix.lower() in _SUFFIXES:
        return True
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(12)[8:] == b"DUCK"


@contextmanager
def database_relation(path: Path, table: str | None, query: str | None, memory: int | None) -> Iterator[Any]:
    """Open a database so that nothing can be written, and give one table or the rows of one query.

    Parameters
    ----------
    path : Path
        A DuckDB database.
    table : str or None
        Its table or view, with its schema where there are several: ``"main.loans"``. Not needed where there is one.
    query : str or None
        One SELECT in place of a table.
    memory : int or None
        Bytes that reading may take.

    Yields
    ------
    duckdb.DuckDBPyRelation
        Its rows; complaints of DuckDB become one sentence.
    """
    import duckdb

    if table is not None and query is not None:
        raise UsageError("`table=` and `query=` are both given; name the table, or ask the query.")
    if not path.exists():
        raise DataError(f"File `{path}` does not exist.")
    try:
        connection = open_duckdb(memory, path)
    except duckdb.Error as error:
        raise DataError(
            f"File `{path.name}` cannot be opened as a DuckDB database: {first_line(error)}. Close it where it is "
            "written, and check that it is one."
        ) from None
    try:
        if query is not None:
            yield connection.sql(_one_select(connection, query))
        else:
            yield connection.sql(f"SELECT * FROM {_table_name(connection, path, table)}")
    except duckdb.Error as error:
        what = f"Table `{table}`" if query is None else "The query"
        raise DataError(f"{what} of `{path.name}` cannot be read: {first_line(error)}.") from None


def _one_select(connection: Any, query: str) -> str:
    import duckdb

    try:
        statements = connection.extract_statements(query)
    except duckdb.Error as error:
        raise UsageError(f"The query is not understood: {first_line(error)}.") from None
    kinds = [statement.type.name for statement in statements]
    if kinds != ["SELECT"]:
        got = " and ".join(kinds) if kinds else "nothing"
        raise UsageError(f"A query must be one SELECT, which only reads; got {got}. Write `SELECT … FROM …`.")
    text: str = statements[0].query
    return text


def _table_name(connection: Any, path: Path, table: str | None) -> str:
    """Return a table's name as SQL, once it is known that the database has it."""
    listed = connection.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT internal UNION ALL "
        "SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal ORDER BY ALL"
    ).fetchall()
    if not listed:
        raise DataError(f"Database `{path.name}` has no tables.")
    names = [name if schema == "main" else f"{schema}.{name}" for schema, name in listed]
    if table is None and len(listed) > 1:
        raise UsageError(f"Database `{path.name}` has {len(listed)} tables ({listing(names)}). Name one as `table=`.")
    for (schema, name), known in zip(listed, names, strict=True):
        if table in (None, known, f"{schema}.{name}"):
            return ".".join('"' + part.replace('"', '""') + '"' for part in (schema, name))
    raise DataError(f"Database `{path.name}` has no table `{table}`.{near_matches(str(table), names)}")
