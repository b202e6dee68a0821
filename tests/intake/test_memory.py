"""A memory budget: amounts that are understood, rows that do not fit, and the peak that a process really reached."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from evenhand.errors import DataError, UsageError
from evenhand.intake import read
from evenhand.intake.memory import bytes_of, rows_within, size_text

BUDGET = "512MB"
ROLES = {"outcome": "y", "decision": "d", "groups": "sex"}


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """3 million rows with ten features, which are more than half a gigabyte when they are held."""
    path = tmp_path_factory.mktemp("large") / "rows.parquet"
    features = ", ".join(f"hash(i + {j}) / 2e19 AS x{j}" for j in range(10))
    duckdb.sql(
        f"SELECT i % 2 AS y, i % 3 % 2 AS d, CASE WHEN i % 7 < 3 THEN 'F' ELSE 'M' END AS sex, i % 1000 / 1000 AS p, "
        f"{features} FROM range(3000000) t(i)"
    ).write_parquet(str(path))
    return path


def peak(code: str, *words: str) -> int:
    """Run code in a process of its own and return the most memory that it held, in bytes."""
    tail = "\nprint([l.split()[1] for l in open('/proc/self/status') if l.startswith('VmHWM')][0])"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code + tail, *words],
        env=environment, capture_output=True, text=True, timeout=500, check=True,
    )  # fmt: skip
    return int(done.stdout.split()[-1]) * 1024


READ = """
import sys, json
from evenhand.intake import read
data = read(sys.argv[1], outcome='y', decision='d', groups='sex', **json.loads(sys.argv[2]))
"""
WALK = """
class Rows:
    n = 0
    def add(self, batch): self.n += batch.count.sum() + 0 * sum(v.sum() for v in batch.features.values())
assert data.batches.fold(Rows).n == 3000000
"""


def test_the_budget_is_kept_where_rows_held_would_break_it(large: Path) -> None:
    features = "[" + ", ".join(f'"x{j}"' for j in range(10)) + "]"
    allowed = bytes_of(BUDGET)
    assert allowed is not None
    assert peak(READ, str(large), f'{{"features": {features}, "rows": "keep"}}') > allowed
    assert peak(READ, str(large), f'{{"score": "p", "memory": "{BUDGET}"}}') < allowed
    assert peak(READ + WALK, str(large), f'{{"features": {features}, "memory": "{BUDGET}"}}') < allowed


def test_what_does_not_fit_is_added_up_or_read_in_batches(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for more, cells, batches in (
        ({}, False, False),
        ({"memory": "100GB"}, False, False),
        ({"memory": BUDGET}, True, False),
        ({"memory": BUDGET, "features": ["x0"]}, True, True),
    ):
        data = read(large, **ROLES, **more)
        assert ((data.moments is not None), (data.batches is not None)) == (cells, batches), more


def test_many_columns_are_too_many_values_before_the_rows_are_too_many(
    large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five million rows of a hundred features would take tens of gigabytes."""
    names = [f"x{j}" for j in range(10)]
    monkeypatch.setattr("evenhand.intake.memory.VALUE_LIMIT", 13 * 3_000_000 - 1)
    assert read(large, **ROLES, features=names).batches is not None
    assert read(large, **ROLES, features=names[:9]).batches is None
    with pytest.raises(DataError, match=r"`x0` needs all 3,000,000 rows in memory\. Pass `rows='keep'`"):
        read(large, **ROLES, features=names, continuous="x0")


def test_more_memory_than_rows_take_is_not_asked_for(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenhand.intake.paths.ROW_LIMIT", 2_999_999)
    with pytest.raises(DataError, match=r"needs all 3,000,000 rows in memory\. Pass `rows='keep'` to allow that"):
        read(large, **ROLES, continuous="x0", memory="100GB")


def test_what_cannot_be_kept_is_one_sentence(large: Path, tmp_path: Path) -> None:
    says = r"all 3,000,000 rows in memory, which takes about [\d.]+ [GM]B, and `memory=` allows 512 MB. Allow more with"
    with pytest.raises(DataError, match=rf"Continuous attribute `x0` needs {says} `memory=.*cut it with `cuts=`"):
        read(large, **ROLES, continuous="x0", memory=BUDGET)
    with pytest.raises(DataError, match=rf"You asked for {says}"):
        read(large, **ROLES, rows="keep", memory=BUDGET)
    with pytest.raises(DataError, match=rf"You asked for {says}"):
        read(duckdb.read_parquet(str(large)), **ROLES, rows="keep", memory=BUDGET)
    path = tmp_path / "a.arrow"
    table = pa.table({"y": [1, 0], "d": [1, 0], "sex": ["F", "M"], "z": ["x" * 3 * 10**8, ""]})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(DataError, match=r"is Arrow, which is read whole: 300 MB do not fit into `memory=` of 512 MB"):
        read(path, **ROLES, memory=BUDGET)


def test_nothing_is_left_of_what_went_to_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.parquet"
    duckdb.sql(
        "SELECT i % 2 AS y, i % 3 % 2 AS d, i % 5 AS sex, md5(i::VARCHAR) AS person_id FROM range(3000000) t(i)"
    ).write_parquet(str(path))
    folder = tmp_path / "spill"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    data = read(path, **ROLES, memory=BUDGET)
    assert data.rows.rows_used == 3_000_000
    del data
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("size", ["2", "2 apples", "GB", "-2GB", True, 2.5, "", "1e9"])
def test_amounts_that_are_none(size: Any) -> None:
    with pytest.raises(UsageError, match=r"`memory=` is .*; allowed: an amount such as '2GB'"):
        bytes_of(size)


def test_amounts(tmp_path: Path) -> None:
    assert bytes_of("800 mb") == 800_000_000
    assert bytes_of(2 * 10**9) == 2 * 10**9
    assert [size_text(n) for n in (512e6, 1e9, 2.25e9)] == ["512 MB", "1 GB", "2.25 GB"]
    assert rows_within(10**9, 10) < rows_within(10**9, 5) < rows_within(2 * 10**9, 5)
    with pytest.raises(UsageError, match=r"`memory=` is 100 MB; at least 512 MB are needed"):
        bytes_of("100MB")
