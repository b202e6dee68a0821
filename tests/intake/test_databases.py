"""DuckDB database files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from evenhand.errors import DataError, UsageError
from evenhand.intake import AuditData, read

ROWS = {"y": [1, 0, 1, 0, 1], "sex": ["F", "M", "M", "F", "X"], "id": [1, 2, 3, 4, 5]}


def table(source: Any, **options: Any) -> AuditData:
    return read(source, **({"outcome": "y", "groups": "sex"} | options))


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "bank.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE loans (y INT, sex VARCHAR, id INT)")
        connection.executemany("INSERT INTO loans VALUES ($1, $2, $3)", list(zip(*ROWS.values(), strict=True)))
        connection.execute("CREATE SCHEMA old; CREATE TABLE old.loans AS SELECT * FROM loans WHERE id < 5")
        connection.execute("""CREATE VIEW "odd "" name; DROP TABLE loans" AS SELECT * FROM loans""")
    return path


@pytest.mark.parametrize("rows", ["auto", "keep", "cells"])
def test_tables_views_and_queries(database: Path, rows: Any) -> None:
    whole = table({name: ROWS[name] for name in ("y", "sex")}, rows="cells" if rows == "cells" else "keep")
    before = database.read_bytes()
    for more in (
        {"table": "loans"},
        {"table": "main.loans"},
        {"table": 'odd " name; DROP TABLE loans'},
        {"query": "SELECT y, sex FROM loans"},
        {"query": "WITH a AS (FROM loans) FROM a;"},
    ):
        assert table(database, rows=rows, **more).fingerprint == whole.fingerprint, more
    assert table(database, rows=rows, table="old.loans").rows.rows_used == 4
    assert table(database, rows=rows, query="SELECT *, id > 2 AS late FROM loans", groups="late").rows.rows_used == 5
    assert database.read_bytes() == before


def test_the_only_table_needs_no_name_and_the_ending_no_matter(tmp_path: Path) -> None:
    path = tmp_path / "loans.db"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE loans AS SELECT i % 2 AS y, i % 3 AS sex FROM range(9) t(i)")
    assert table(path).rows.rows_used == 9


def test_features_of_a_database_are_kept_or_read_in_batches(database: Path) -> None:
    kept = table(database, table="loans", features=["id"])
    assert kept.features["id"].tolist() == [1, 2, 3, 4, 5]
    batches = table(database, table="loans", features=["id"], rows="batches").batches
    assert batches is not None
    assert sorted(batches.sample(9, seed=0).features["id"].tolist()) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("more", "kind", "message"),
    [
        ({}, UsageError, r"`bank.duckdb` has 3 tables \(`loans`, .*`old.loans`\). Name one as `table=`"),
        ({"table": "loan"}, DataError, r"has no table `loan`. Did you mean `loans`"),
        ({"table": "loans", "query": "SELECT 1"}, UsageError, r"`table=` and `query=` are both given"),
        ({"query": "SELECT 1; SELECT 2"}, UsageError, r"must be one SELECT, .*; got SELECT and SELECT"),
        ({"query": "DROP TABLE loans"}, UsageError, r"must be one SELECT, which only reads; got DROP"),
        ({"query": "COPY loans TO 'x.csv'"}, UsageError, r"got COPY"),
        ({"query": "INSERT INTO loans VALUES (1, 'F', 6)"}, UsageError, r"got INSERT"),
        ({"query": "EXPLAIN SELECT 1"}, UsageError, r"got EXPLAIN"),
        ({"query": "ATTACH 'other.duckdb'"}, UsageError, r"got ATTACH"),
        ({"query": "  "}, UsageError, r"got nothing"),
        ({"query": "SELEC y"}, UsageError, r"The query is not understood: Parser Error"),
        ({"query": "SELECT y, sex FROM nowhere"}, DataError, r"The query of `bank.duckdb` cannot be read: .*nowhere"),
        ({"query": "SELECT y FROM loans"}, DataError, r"Column `sex` is not in the table"),
    ],
)
def test_requests_that_make_no_sense(database: Path, more: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        table(database, **more)
    assert "\n" not in str(caught.value)


def test_files_that_are_no_databases(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"`.*none.duckdb` does not exist"):
        table(tmp_path / "none.duckdb", table="t")
    (tmp_path / "a.duckdb").write_text("hello")
    with pytest.raises(DataError, match=r"`a.duckdb` cannot be opened as a DuckDB database"):
        table(tmp_path / "a.duckdb", table="t")
    (tmp_path / "a.csv").write_text("y,sex\n1,F\n0,M\n")
    with pytest.raises(UsageError, match=r"are for DuckDB databases \(.duckdb\), and `.*a.csv` is none"):
        table(tmp_path / "a.csv", query="SELECT 1")
    with pytest.raises(UsageError, match=r"and a dict is none"):
        table({"y": [1, 0], "sex": ["F", "M"]}, table="t")
