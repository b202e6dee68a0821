"""Where the rows may be: folders, parts, standard input, databases, Spark; the findings are those of the one file."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from deltalake import write_deltalake
from pyiceberg.catalog.sql import SqlCatalog

from evenhand.cli import run

COLUMNS = ("--outcome", "y", "--decision", "d", "--group", "sex", "--quiet")


def findings(folder: Path) -> Any:
    return json.loads((folder / "findings.json").read_text())["findings"]


def audited(out: Path, *words: str) -> Any:
    assert run(["audit", *words, *COLUMNS, "--out", str(out)]) == 0
    return findings(out)


def piped(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def arrow_bytes(table: pa.Table, writer: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with writer(sink, table.schema) as file:
        file.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def parquet_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(table, sink)
    return bytes(sink.getvalue().to_pybytes())


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_parts_folders_and_patterns(tmp_path: Path, decisions: Callable[..., Path]) -> None:
    file = decisions()
    whole = audited(tmp_path / "whole", str(file))
    lines = file.read_text().splitlines(keepends=True)
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "_SUCCESS").touch()
    for i in range(3):
        (folder / f"part-{i}.csv").write_text("".join([lines[0], *lines[1 + 200 * i : 201 + 200 * i]]))
    named = sorted(str(path) for path in folder.glob("part*"))
    for words in ([str(folder)], [str(folder / "*.csv")], named):
        assert audited(tmp_path / "out", *words) == whole


def test_standard_input(
    tmp_path: Path, decisions: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, own_temporary_folder: Path
) -> None:
    file = decisions()
    table = pyarrow.csv.read_csv(file)
    whole = audited(tmp_path / "whole", str(file))
    for content in (
        file.read_bytes(),
        parquet_bytes(table),
        arrow_bytes(table, pa.ipc.new_file),
        arrow_bytes(table, pa.ipc.new_stream),
    ):
        piped(monkeypatch, content)
        assert audited(tmp_path / "out", "-") == whole
        assert list(own_temporary_folder.iterdir()) == [], "what was held is removed"


def test_a_table_of_a_database(tmp_path: Path, decisions: Callable[..., Path]) -> None:
    file = decisions()
    database = tmp_path / "bank.duckdb"
    with duckdb.connect(str(database)) as connection:
        connection.execute("CREATE TABLE loans AS FROM read_csv($1)", [str(file)])
        connection.execute("CREATE TABLE other AS SELECT 1 AS x")
    whole = audited(tmp_path / "whole", str(file))
    assert audited(tmp_path / "out", str(database), "--table", "loans") == whole
    assert audited(tmp_path / "out", str(database), "--query", "SELECT sex, y, d FROM loans") == whole


def test_tables_of_delta_and_iceberg(tmp_path: Path, decisions: Callable[..., Path]) -> None:
    file = decisions(month=[f"2024-0{1 + i % 2}-05" for i in range(600)])
    table = pyarrow.csv.read_csv(file)
    write_deltalake(tmp_path / "delta", table, partition_by=["month", "sex"])
    write_deltalake(tmp_path / "delta", table, mode="append")
    write_deltalake(tmp_path / "delta", table, mode="overwrite")
    catalogue = SqlCatalog("made", uri="sqlite:///:memory:", warehouse=f"file://{tmp_path}")
    catalogue.create_namespace("n")
    made = catalogue.create_table("n.loans", schema=table.schema)
    made.append(table)
    made.append(table)
    made.overwrite(table)
    catalogue.engine.dispose()
    whole = audited(tmp_path / "whole", str(file))
    assert run(["audit", str(file), *COLUMNS, "--by", "month:month", "--out", str(tmp_path / "months")]) == 0
    for folder in (tmp_path / "delta", tmp_path / "n" / "loans"):
        assert audited(tmp_path / "out", str(folder), "--memory", "600MB") == whole
        assert run(["audit", str(folder), *COLUMNS, "--by", "month:month", "--out", str(tmp_path / "by")]) == 0
        for month in ("2024-01", "2024-02"):
            assert findings(tmp_path / "by" / month) == findings(tmp_path / "months" / month)


def test_where_the_rows_stay_can_be_said(tmp_path: Path, decisions: Callable[..., Path]) -> None:
    words = ["audit", str(decisions()), *COLUMNS, "--features", "age", "--audits", "group", "--out", str(tmp_path)]
    answers = []
    for rows, told in (("keep", None), ("cells", "added up to cells"), ("batches", "batch by batch")):
        assert run([*words, "--read-rows", rows]) == 0
        answers.append(findings(tmp_path))
        notes = " ".join(json.loads((tmp_path / "findings.json").read_text())["data"]["notes"])
        assert (told in notes) if told else ("cells" not in notes and "batch" not in notes)
    assert answers[0] == answers[1] == answers[2]


BAD: dict[str, tuple[tuple[str, ...], bytes | None, str]] = {
    "nothing on standard input": (("-",), b"", r"`standard-input.csv` is empty"),
    "standard input that is no table": (("-",), b"\x89PNG\r\n\x1a\n\0", r"not a text table"),
    "standard input and a file": (("-", "x.csv"), b"y", r"is the whole table; name no other"),
    "a query of a text file": (("data.csv", "--query", "SELECT 1"), None, r"are for DuckDB databases"),
    "no table named": (("bank.duckdb",), None, r"2 tables \(`loans`, `other`\). Name one as `--table`"),
    "a query that writes": (("bank.duckdb", "--query", "DELETE FROM loans"), None, r"one SELECT.*got DELETE"),
    "settings without Spark": (("data.csv", "--spark-conf", "a=b"), None, r"name its master with `--spark`"),
    "a setting that is none": (("data", "--spark", "local[1]", "--spark-conf", "a"), None, r"Write `--spark-conf KEY="),
    "Spark and a table": (("bank", "--spark", "local[1]", "--table", "t"), None, r"name one table or path"),
    "too little memory": (
        ("data.csv", "--memory", "10MB"),
        None,
        r"`--memory` is 10 MB; at least 512 MB|`memory` is 10 MB",
    ),
    "memory that is none": (("data.csv", "--memory", "lots"), None, r"is 'lots'; allowed: an amount such as '2GB'"),
    "memory of Spark": (("data", "--spark", "local[1]", "--memory", "2GB"), None, r"spark.driver.memory=2g"),
    "batches of nothing": (
        ("data.csv", "--read-rows", "batches"),
        None,
        r"`--read-rows batches` reads .* in `--features`",
    ),
    "Spark and two files": (("a", "b", "--spark", "local[1]"), None, r"name one table or path"),
    "a pattern without a match": (("*.parquet",), None, r"No file matches the pattern `\*.parquet`"),
}


@pytest.mark.parametrize("case", BAD)
def test_sources_that_make_no_sense(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words, content, message = BAD[case]
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text("y,d,sex\n1,0,F\n0,1,M\n")
    with duckdb.connect("bank.duckdb") as connection:
        connection.execute("CREATE TABLE loans AS FROM 'data.csv'; CREATE TABLE other AS FROM loans")
    if content is not None:
        piped(monkeypatch, content)
    assert run(["audit", *words, *COLUMNS, "--out", "out"]) == 2
    said = capsys.readouterr().err.strip()
    assert re.search(message, said), said
    assert "\n" not in said
    assert not Path("out").exists()


# A session with a table of its own, in which the command finds it, and one that it does not find.
SESSION = """
import sys
from pyspark.sql import SparkSession
from evenhand.cli import run
session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
session.read.csv(sys.argv[1], header=True, inferSchema=True).createTempView("loans")
words = ["--outcome", "y", "--decision", "d", "--group", "sex", "--quiet", "--spark", "local[1]", "--out"]
assert run(["audit", "loans", *words, sys.argv[2]]) == 0
assert session.range(1).count() == 1, "a session that was there before is left running"
assert run(["audit", "no_such_table", *words, "none"]) == 2
broken = sys.argv[3]
assert run(["audit", broken, *words, "none"]) == 2
session.stop()
"""


def test_spark_reads_paths_and_tables(tmp_path: Path, decisions: Callable[..., Path]) -> None:
    """Real Spark in processes of its own: a path as on a terminal, and tables of a session that is there."""
    file = decisions()
    whole = audited(tmp_path / "whole", str(file))
    conf = ["--spark", "local[1]", "--spark-conf", "spark.sql.shuffle.partitions=1"]
    command = ["-m", "evenhand", "audit", str(file), *COLUMNS, *conf, "--out", str(tmp_path / "path")]
    broken = tmp_path / "broken"
    broken.mkdir()
    table = pyarrow.csv.read_csv(file)
    pyarrow.parquet.write_table(table, broken / "part-0.parquet")
    (broken / ".part-0.parquet.crc").touch()  # Spark reads it: what the file should add up to, and here nothing
    script = ["-c", SESSION, str(file), str(tmp_path / "table"), str(broken)]
    for words, out in ((command, "path"), (script, "table")):
        done = subprocess.run(
            [sys.executable, *words],
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert findings(tmp_path / out) == whole
    assert "evenhand: Spark cannot read `no_such_table`: [TABLE_OR_VIEW_NOT_FOUND]" in done.stderr
    assert f"evenhand: Spark cannot read `{broken}`: java.io.EOFException: Read past End of File." in done.stderr
    assert "Traceback" not in done.stderr


def test_a_memory_budget_that_was_not_kept_is_said(
    tmp_path: Path,
    decisions: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["audit", str(decisions()), *COLUMNS, "--memory", "600MB", "--out", str(tmp_path / "out")]
    for peak, said in ((599 * 10**6, ""), (None, ""), (750 * 10**6, "was not kept: the command took 750 MB")):
        monkeypatch.setattr("evenhand.cli.sources._peak_memory", lambda peak=peak: peak)
        assert run(words) == 0
        shown = capsys.readouterr().err
        assert (said in shown) if said else shown == ""
