"""Texts that say how far a walk over rows is."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

from evenhand.intake import progress, read

SAYS = re.compile(r"([\d,]+) of 200,000 rows, [\d,]+ rows per second, \d+ (s|min|h) left")


class Nothing:
    def add(self, batch: object) -> None:
        pass

    def merge(self, other: Nothing) -> None:
        pass


def test_batches_tell_rows_per_second_and_time_left(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    duckdb.sql("SELECT i % 2 AS y, i % 3 AS g, i / 7 AS x FROM range(200000) t(i)").write_parquet(str(path))
    data = read(path, outcome="y", groups="g", features=["x"], rows="batches")
    assert data.batches is not None
    told: list[str] = []
    data.batches.progress = told.append
    data.batches.fold(Nothing)
    matches = [SAYS.fullmatch(text) for text in told]
    assert all(matches)
    done = [int(match[1].replace(",", "")) for match in matches if match]
    assert len(done) > 2
    assert done == sorted(done)
    assert done[-1] == 200_000


@pytest.mark.parametrize(("rows", "left"), [(2, "1 s"), (1001, "17 min"), (36_001, "10 h")])
def test_time_left(rows: int, left: str) -> None:
    assert progress.pace(1, rows, 1.0).endswith(f"{left} left")


def test_an_engine_is_looked_at_while_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """Percentages as DuckDB gives them: none at first, then of one query, then of the next."""

    class Working:
        percents = iter([-1.0, 10.0, 50.0, 20.0, 40.0, 100.0])
        ended = False

        def query_progress(self) -> float:
            for percent in self.percents:
                return percent
            self.ended = True
            return -1.0

    monkeypatch.setattr(progress, "_LOOK", 0.001)
    told: list[str] = []
    engine = Working()
    with progress.looked_at(engine, told.append):
        while not engine.ended:
            pass
    assert [text.split(",")[0] for text in told] == ["reading: 10 %", "reading: 50 %", "reading: 40 %"]


def test_reading_tells_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real query of DuckDB, looked at all the time; what is told depends on its speed, but never breaks it."""
    monkeypatch.setattr(progress, "_LOOK", 0.001)
    path = tmp_path / "a.parquet"
    duckdb.sql("SELECT i % 2 AS y, i % 3 AS g, i % 1009 AS person_id FROM range(2000000) t(i)").write_parquet(str(path))
    told: list[str] = []
    data = read(path, outcome="y", groups="g", rows="cells", progress=told.append)
    assert data.rows.rows_used == 2_000_000
    assert all(re.fullmatch(r"reading: \d+ %, \d+ (s|min|h) left", text) for text in told)
