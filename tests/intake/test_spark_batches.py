"""Batches on a real Spark: any number of partitions, tasks that die, batches that go wrong."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import evenhand as eh
from evenhand.errors import DataError
from evenhand.intake.engines import spark as spark_engine
from evenhand.intake.engines.spark_batches import _restored, _state

ROLES: dict[str, Any] = {"outcome": "paid", "groups": ["sex", "race"], "features": ["x", "job", "member", "sex"]}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(8)
    n = 2000
    return pd.DataFrame(
        {
            "paid": rng.choice(["yes", "no", None], n, p=[0.5, 0.4, 0.1]),
            "sex": rng.choice(["F", "M", None], n, p=[0.5, 0.45, 0.05]),
            "race": rng.choice(["a", "b", "c"], n),
            "x": rng.normal(size=n),
            "job": rng.choice(["clerk", "smith", None], n),
            "member": rng.choice([True, False], n),
        }
    )


class Sums:
    """Sums by group of a feature, of what a given function makes of it; the function does not travel back."""

    def __init__(self, change: Any, groups: int) -> None:
        self.change, self.rows, self.total = change, np.zeros(groups, dtype=np.int64), np.zeros(groups)

    def add(self, batch: eh.AuditData) -> None:
        codes = batch.attributes[0].codes
        self.rows += np.bincount(codes, weights=batch.count, minlength=self.rows.size).astype(np.int64)
        self.total += np.bincount(codes, weights=self.change(batch.features["x"]), minlength=self.rows.size)

    def merge(self, other: Sums) -> None:
        self.rows += other.rows
        self.total += other.total


@pytest.mark.parametrize(
    "values",
    [
        [0.0, -0.0, 0.5, np.nan, -np.nan, np.inf],
        [0.1, 1e300, -5e-324],
        [1, -3, 200],
        [0, 2**31],
        [-(2**63), 2**63 - 1],
        [],
        [[1.5, 2.5], [3.5, 4.5]],
        ["a", None],
        [True, False],
    ],
)
def test_arrays_keep_each_bit_on_their_way_to_the_driver(values: list[Any]) -> None:
    sent = {"as it is": np.array(values), "turned": np.array(values).T, "words": np.array([2**63], dtype=np.uint64)}
    back = _restored(_state(sent, dict), dict)
    for name, array in sent.items():
        assert (back[name].dtype, back[name].shape) == (array.dtype, array.shape)
        same = back[name].tolist() == array.tolist() if array.dtype == object else None
        assert back[name].tobytes() == array.tobytes() if same is None else same


def test_few_bytes_travel_where_few_hold_the_values() -> None:
    numbers = np.random.default_rng(1).normal(size=5000)
    long, short = (len(_state(values, dict)) for values in (numbers, numbers.astype(np.float32).astype(np.float64)))
    assert short < 0.55 * long
    assert len(_state(np.arange(5000) % 100, dict)) < 6000


def test_the_first_rows_are_asked_for_once(frame: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    collect = spark_engine.collected
    monkeypatch.setattr(spark_engine, "collected", lambda rows: asked.append(rows) or collect(rows))
    numeric = frame.selectExpr("CASE WHEN paid = 'yes' THEN 1 WHEN paid = 'no' THEN 0 END AS paid", "sex", "x")
    data = eh.read(numeric, outcome="paid", groups="sex", features=["x"], rows="batches")
    assert data.batches is not None
    assert data.outcome_kind == "binary"
    assert data.batches.first().outcome.size > 0
    assert len(asked) == 1


@pytest.fixture
def frame(spark: Any, table: pd.DataFrame) -> Any:
    return spark.createDataFrame(table.astype(object).where(table.notna(), None).values.tolist(), list(table))


@pytest.mark.parametrize("partitions", [1, 5])
def test_any_number_of_partitions_gives_one_answer(frame: Any, table: pd.DataFrame, partitions: int) -> None:
    local = eh.read(duckdb.from_df(table), **ROLES, rows="batches")
    far = eh.read(frame.repartition(partitions), **ROLES, rows="batches")
    assert far.batches is not None
    assert local.batches is not None
    assert (far.batches.rows, far.batches.features) == (local.batches.rows, local.batches.features)
    lambdas_travel = partial(Sums, lambda x: x**2, 2)
    one, two = local.batches.fold(lambdas_travel), far.batches.fold(lambdas_travel)
    np.testing.assert_array_equal(one.rows, two.rows)
    np.testing.assert_allclose(one.total, two.total, rtol=1e-12)
    assert two.change(3.0) == 9.0
    kept, drawn = local.batches.sample(150, seed=4), far.batches.sample(150, seed=4)
    assert kept.rows.rows_used == drawn.rows.rows_used == 150
    for name in ("x", "job", "member"):
        np.testing.assert_array_equal(kept.features[name], drawn.features[name])
    assert kept.feature_types == drawn.feature_types


def test_a_poisoned_batch_gives_one_sentence_that_says_where(frame: Any) -> None:
    data = eh.read(frame.coalesce(1), **ROLES, rows="batches")
    assert data.batches is not None
    with pytest.raises(DataError, match=r"^Values are too large\. This was in rows 1 to 2,000 of partition 0\.$"):
        data.batches.fold(partial(Sums, refuse_large, 2))
    with pytest.raises(
        DataError, match=r"^Spark could not work through the rows: ZeroDivisionError: division by zero\.$"
    ):
        data.batches.fold(partial(Sums, lambda x: 1 / 0, 2))
    with pytest.raises(DataError, match=r"^The model cannot be sent to Spark's workers: TypeError: "):
        data.batches.fold(partial(Sums, threading.Lock(), 2))


def test_audits_with_a_model_say_what_they_say_of_rows_in_memory(frame: Any, table: pd.DataFrame) -> None:
    used = table.dropna(subset=["paid"])
    model = LogisticRegression().fit(used[["x", "member"]], used["paid"])
    asked: dict[str, Any] = {"outcome": "paid", "groups": "sex", "features": ["x", "member"]}
    plan = eh.Plan(audits=["group", "projection", "tail"], tail={"flip": {"F": {"member": 1}, "M": {"member": 0}}})
    kept = eh.audit(eh.read(table, **asked), model=model, plan=plan, rng=0)
    far = eh.audit(eh.read(frame.repartition(3), **asked, rows="batches"), model=model, plan=plan, rng=0)
    assert len(kept.findings) == len(far.findings)
    for one, two in zip(kept.findings, far.findings, strict=True):
        assert (one.measure, one.groups, one.counts) == (two.measure, two.groups, two.counts)
        ranked = one.measure.startswith(("auc", "calibration"))
        assert two.estimate == pytest.approx(one.estimate, rel=1e-8, abs=1e-3 if ranked else 1e-12, nan_ok=True)


def refuse_large(x: Any) -> Any:
    if (x > 2).any():
        raise DataError("Values are too large.")
    return x


CLUSTER = """
import os, signal, sys
from functools import partial
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

import evenhand as eh

os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
spark = (
    SparkSession.builder.master("local-cluster[2,1,512]")
    .config("spark.executor.memory", "512m")
    .config("spark.executorEnv.PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    .config("spark.ui.enabled", "false")
    .config("spark.log.level", "OFF")
    .getOrCreate()
)


def executor() -> int:
    daemon = Path(f"/proc/{os.getppid()}/stat").read_text()
    return int(daemon.rpartition(")")[2].split()[1])


class Sums:
    def __init__(self, mark):
        self.mark, self.rows, self.total = mark, 0, 0.0

    def add(self, batch):
        if self.mark and not Path(self.mark).exists() and batch.features["x"].min() > 5000:
            Path(self.mark).touch()
            os.kill(executor(), signal.SIGKILL)
        self.rows += int(batch.count.sum())
        self.total += float(np.sqrt(batch.features["x"]).sum())

    def merge(self, other):
        self.rows += other.rows
        self.total += other.total


columns = ("id % 2 AS d", "IF(id % 3 = 0, 'F', 'M') AS sex", "CAST(id AS DOUBLE) AS x")
frame = spark.range(0, 10000, 1, 4).selectExpr(*columns)
data = eh.read(frame, decision="d", groups="sex", features="x", rows="batches")
for mark in ("", sys.argv[1]):
    summary = data.batches.fold(partial(Sums, mark))
    print("answer", summary.rows, repr(summary.total))
spark.stop()
"""


def test_a_killed_executor_changes_nothing(tmp_path: Path) -> None:
    """Two executors of their own; the one that works on the third partition is killed in the middle."""
    script, mark = tmp_path / "cluster.py", tmp_path / "killed"
    script.write_text(CLUSTER, encoding="utf-8")
    command = [sys.executable, str(script), str(mark)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=900, check=False)
    answers = [line.removeprefix("answer ") for line in done.stdout.splitlines() if line.startswith("answer ")]
    assert len(answers) == 2, done.stderr[-2000:]
    assert mark.exists()
    assert answers[0] == answers[1]
    assert answers[0].split()[0] == "10000"


CONNECT = """
import json, os, sys

import pandas as pd
from sklearn.linear_model import LogisticRegression

import evenhand as eh

os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
from pyspark.sql import SparkSession

spark = SparkSession.builder.remote("local[2]").getOrCreate()
rows = pd.read_parquet(sys.argv[1])
model = LogisticRegression().fit(rows[["x", "sex"]].to_numpy(), rows["paid"])
frame = spark.read.parquet(sys.argv[1]).repartition(2)
assert type(frame).__module__ == "pyspark.sql.connect.dataframe"
asked = {"outcome": "paid", "groups": "sex", "features": ["x", "sex"]}
plan = eh.Plan(audits=["group", "projection", "tail"])
for data in (eh.read(rows, **asked), eh.read(frame, **asked, rows="batches")):
    run = eh.audit(data, model=model, plan=plan, rng=0)
    print("answer", json.dumps([(f.measure, f.groups, f.estimate) for f in run.findings]))


def poisoned(X):
    if len(X) and X[:, 0].max() > 1e6:
        raise ValueError("no such income")
    return 1 / (1 + 2.718281828 ** -X[:, 0])


poison = frame.limit(500).selectExpr("x", "sex", "paid").union(spark.sql("SELECT 1e7D, 1L, 1L"))
try:
    eh.audit(eh.read(poison, **asked, rows="batches"), model=poisoned, plan=eh.Plan(audits=["group"]), rng=0)
except eh.EvenhandError as error:
    print("said", error)
spark.stop()
"""


def test_a_connect_session_says_what_rows_in_memory_say(tmp_path: Path) -> None:
    """In a process of its own: one process cannot hold a classic session and a Connect session."""
    rng = np.random.default_rng(3)
    rows = pd.DataFrame({"x": rng.normal(size=2000), "sex": rng.integers(2, size=2000)})
    rows["paid"] = (rows["x"] + 0.5 * rows["sex"] + rng.normal(size=2000) > 0).astype(int)
    source, script = tmp_path / "rows.parquet", tmp_path / "connect.py"
    rows.to_parquet(source)
    script.write_text(CONNECT, encoding="utf-8")
    command = [sys.executable, str(script), str(source)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=900, check=False)
    answers = [json.loads(line.removeprefix("answer ")) for line in done.stdout.splitlines() if line[:6] == "answer"]
    assert len(answers) == 2, done.stderr[-2000:]
    assert len(answers[0]) == len(answers[1]) == 8
    for one, two in zip(*answers, strict=True):
        assert one[:2] == two[:2]
        # The AUC takes scores of one bin as equal.
        assert two[2] == pytest.approx(one[2], rel=1e-8, abs=2e-4 if one[0] == "auc" else 1e-12, nan_ok=True)
    assert "said Model `poisoned` raised ValueError when asked about" in done.stdout
    assert "no such income" in done.stdout
