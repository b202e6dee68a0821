"""What a batch of a million rows costs in a watch, beside the bare group-by of the same rows.

    python benchmarks/watch.py    # writes benchmarks/watch.json

Counting a batch means reading it (`evenhand.read` adds it up in one pass) and writing the state file. Answering
(evidence, intervals, verdicts of all questions) is done when it is asked for and measured apart.
"""

from __future__ import annotations

import json
import os
import platform
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import duckdb
import numpy as np

import evenhand as eh

HERE = Path(__file__).parent
ROWS = 1_000_000
SQL = "SELECT g, y, d, COUNT(*) FROM {} GROUP BY g, y, d"
ASKED = {"outcome": "y", "decision": "d", "groups": ["g"]}


def cheapest(works: dict[str, Callable[[], object]], repeat: int = 9) -> dict[str, float]:
    """Return the least processor time of each over all threads, taken in turns.

    Not the time on the wall: that of a few thousandths of a second depends on who else computes.
    """
    best = dict.fromkeys(works, float("inf"))
    for turn in range(repeat + 1):
        for name, work in works.items():
            start = time.process_time()
            work()
            if turn:  # the first turn warms caches
                best[name] = min(best[name], time.process_time() - start)
    return best


def made(connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Make the batch as a table, as Parquet and as CSV."""
    connection.execute(
        "CREATE TABLE t AS SELECT CASE WHEN random() < .3 THEN 'a' ELSE 'b' END AS g, (random() < .4)::INT AS y, "
        f"(random() < .3)::INT AS d FROM range({ROWS})"
    )
    for kind in ("parquet", "csv"):
        connection.execute(f"COPY t TO '{folder}/t.{kind}'")


def counting(source: object, folder: Path) -> Callable[[], object]:
    """Return the work of counting one more batch in a watch that has counted eleven."""
    rng = np.random.default_rng(0)
    path = folder / f"state-{len(list(folder.iterdir()))}.json"
    watch = eh.Watch(["selection_rate", "fnr", "fpr"], data=ASKED, state=path)
    for month in range(11):
        y, d, g = rng.random(900) < 0.4, rng.random(900) < 0.3, rng.choice(["a", "b"], 900)
        watch.update(eh.AuditData.from_arrays(outcome=y, decision=d, groups={"g": g}), f"{month}")
    kept = path.read_bytes()

    def work() -> object:
        path.write_bytes(kept)
        return eh.Watch.load(path).update(source, "12")

    return work


def grouping(sql: str, connection: duckdb.DuckDBPyConnection | None) -> Callable[[], object]:
    """Return the bare group-by; that of a file opens it, as a batch that comes as a file must be opened."""
    return lambda: (connection or duckdb.connect()).execute(SQL.format(sql)).fetchall()


def main() -> None:
    """Measure and store."""
    rows = []
    with tempfile.TemporaryDirectory() as place:
        folder, connection = Path(place), duckdb.connect()
        made(connection, folder)
        sources = {
            "a DuckDB table": (connection.table("t"), "t"),
            "a Parquet file": (folder / "t.parquet", f"'{folder}/t.parquet'"),
            "a CSV file": (folder / "t.csv", f"'{folder}/t.csv'"),
        }
        for name, (source, sql) in sources.items():
            works = {
                "ours": counting(source, folder),
                "read": lambda source=source: eh.read(source, rows="cells", **ASKED),
                "group_by": grouping(sql, connection if name == "a DuckDB table" else None),
            }
            best = cheapest(works)
            ratio, beside_read = best["ours"] / best["group_by"], best["ours"] / best["read"]
            rows.append({"what": f"{ROWS:,} rows in {name}", **best, "ratio": ratio, "at_most": 1.3,
                         "ratio_to_read": beside_read})  # fmt: skip
            print(rows[-1], flush=True)
        watch = eh.Watch(["selection_rate", "fnr", "fpr"], data=ASKED, baseline=4)
        for month in range(12):
            watch.update(connection.table("t"), f"{month}")

        def answer() -> object:
            watch._answers = None
            return watch.findings

        rows.append({"what": "answers of 6 questions after 12 batches", "ours": cheapest({"ours": answer}, 3)["ours"]})
        print(rows[-1], flush=True)
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "numpy": np.__version__}
    (HERE / "watch.json").write_text(json.dumps({"machine": machine, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
