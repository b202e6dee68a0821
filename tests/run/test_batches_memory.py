"""Memory does not grow with the number of rows that stay where they are."""

from __future__ import annotations

import json
import subprocess
import sys

SCRIPT = """
import json
from pathlib import Path

import duckdb
import numpy as np

import evenhand as eh
from evenhand.audits.projection import batched
from evenhand.audits.tail import changes

# So few rows are kept as they are that both sizes lie far above.
changes.EXACT_ROWS = batched.EXACT_ROWS = 1 << 16


def model(X):
    return 1 / (1 + np.exp(-2 * X[:, 0] - X[:, 1] * X[:, 2] + 1))


def peak():
    # Of this program alone: what getrusage says may be the peak of the one that started it.
    line = next(one for one in Path("/proc/self/status").read_text().splitlines() if one.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def source(rows):
    x = "hash(range) / 18446744073709551615.0 AS x, hash(range + 7) / 18446744073709551615.0 AS z"
    return duckdb.sql(f"SELECT range % 2 AS sex, (range % 3 = 0)::INT AS y, {x} FROM range({rows})")


asked = {"outcome": "y", "groups": "sex", "features": ["x", "z", "sex"]}
some = {"sample_rows": 5_000, "max_rows": 2_000}
plan = eh.Plan(audits=["group", "proxy", "tail"], group={"metrics": ["selection_rate"]}, proxy=some)
peaks = []
for rows in (400_000, 1_600_000):
    run = eh.audit(eh.read(source(rows), **asked, rows="batches"), model=model, plan=plan, rng=0)
    assert run.data["rows_used"] == rows
    peaks.append(peak())
kept = eh.read(source(1_600_000), **asked, rows="keep")
print(json.dumps([*peaks, peak()]))
"""

MOST_GROWTH = 40.0  # megabytes: the four columns of the rows that were added take 37 alone, before they are coded


def test_memory_stays_where_rows_do() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    few, many, kept = json.loads(done.stdout.splitlines()[-1])
    assert many - few < MOST_GROWTH
    assert kept - many > MOST_GROWTH  # rows in memory would show
