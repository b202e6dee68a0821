"""Each audit on rows that stay in their file: seconds, processor time and memory as rows, features and groups grow.

    python benchmarks/scale.py [--rows 100000 1000000 10000000] [--audits group proxy] [--engines local spark]
    python benchmarks/scale.py --grow features groups          # 10, 20, 40 features; 2, 4, 8 groups; at 1e5 rows
    python benchmarks/scale.py --rows 1000000 --audits whole --engines memory --models logistic boosting
    python benchmarks/scale.py --quick                         # 20,000 rows, also on Spark, printed only

The rows are synthetic: 40 features, an outcome and a group that is also a feature, in one Parquet file in a temporary
folder. A logistic regression decides, or gradient boosting on request; nothing but outcome, group and features is in
the file, so every audit lets the model score. Each audit is one fresh process, from the file to the findings; Python's
start is not counted. ``local`` is ``rows="batches"`` on one machine, ``memory`` is ``rows="keep"``, ``spark`` is Spark
with master ``local[2]``. ``whole`` is the plan by default: every audit that the columns and the model allow, on one
error budget. The bare cost is that of scoring the same rows once with the same model, batch by batch, without anything
of ours: on Spark with ``mapInArrow``, in the same session. Beside it stands the bare cost of the same questions: as
many walks over the rows as the audit makes, and in each the model is asked about every row as often (``ASKED``). On
Spark bare job and audit are both done ``ROUNDS`` times on another file of 100,000 rows before they are measured: Java
compiles what is new to it while it works, which takes about 10 processor seconds for the first job of a session and
several for each new kind, whoever wrote it. Processor time is that of the process and of all that it started, on Spark
of Java and the workers too. Memory is the largest of the Python process that asks; Spark's own processes are not in
it. The load is that of the machine when the measurement ends: above the number of cores, wall seconds are too long.
Results are kept by audit, engine, model, rows, features and groups in ``scale.json``: a run replaces what it measures
again.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pickle
import platform
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the workers need the same packages

import numpy as np

STORED = Path(__file__).with_suffix(".json")
AUDITS = ("group", "projection", "individual", "proxy", "tail")
SIZES = (100_000, 1_000_000, 10_000_000)
FEATURES, GROUPS = 40, 2
GROWN = {"features": (10, 20, 40), "groups": (2, 4, 8)}
PIECE = 100_000
ROUNDS = 3
KEY = ("audit", "engine", "model", "rows", "features", "groups")
MODELS = ("logistic", "boosting")
# How often each audit asks the model about every row, walk by walk. The individual audit moves each row by 500 steps
# along the gradient of the model, which count as 500 questions.
ASKED = {"group": (1,), "projection": (1,), "individual": (0, 500), "proxy": (1, 1), "tail": (2,)}


def columns(rows: int, features: int, groups: int, seed: int) -> dict[str, np.ndarray]:
    """Draw people: the group is a feature, three quarters of the others are numbers and the rest yes or no."""
    rng = np.random.default_rng(seed)
    group = rng.integers(groups, size=rows)
    drawn: dict[str, np.ndarray] = {"group": group.astype(np.float64)}
    for j in range(features - 1):
        number = rng.normal(size=rows).astype(np.float32)
        lean = 0.3 * (group == 0) * (j % 5 == 0)
        drawn[f"x{j}"] = (number + lean).astype(np.float32) if j % 4 else (number + lean > 0.4).astype(np.float32)
    z = 0.8 * drawn["x1"] + 0.5 * drawn["x0"] - 0.4 * drawn["x5"] - 0.3 * (group == 0)
    drawn["y"] = (rng.random(rows) < 1 / (1 + np.exp(-z))).astype(np.float32)
    return drawn


def write(file: Path, rows: int, features: int, groups: int) -> None:
    """Write the rows piece by piece."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    for k, start in enumerate(range(0, rows, PIECE)):
        table = pa.table(columns(min(PIECE, rows - start), features, groups, seed=k + 1))
        writer = writer or pq.ParquetWriter(file, table.schema, use_dictionary=False)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def fitted(features: int, groups: int, kind: str = "logistic") -> Any:
    """Fit the model that decides, on other people."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression

    people = columns(20_000, features, groups, seed=0)
    y = people.pop("y")
    model = HistGradientBoostingClassifier(random_state=0) if kind == "boosting" else LogisticRegression(max_iter=1000)
    return model.fit(np.column_stack([*people.values()]), y)


def names_of(features: int) -> list[str]:
    return ["group", *(f"x{j}" for j in range(features - 1))]


def matrix_of(batch: Any, names: list[str]) -> np.ndarray:
    return np.column_stack([batch.column(n).to_numpy(zero_copy_only=False) for n in names]).astype(np.float64)


def bare_local(file: str, model: Any, names: list[str]) -> float:
    """Score every row once, batch by batch."""
    import pyarrow.parquet as pq

    batches = pq.ParquetFile(file).iter_batches(batch_size=65_536, columns=names)
    return float(sum(model.predict_proba(matrix_of(b, names))[:, 1].sum() for b in batches))


def bare_spark(frame: Any, model: Any, names: list[str], asked: Sequence[int] = (1,)) -> float:
    """Walk over the rows where Spark has them, and ask about every row as often as is said for each walk."""
    import pyarrow as pa

    shipped = frame.sparkSession.sparkContext.broadcast(model)

    def walk(times: int, batches: Iterator[Any]) -> Iterator[Any]:
        for b in batches:
            rows = matrix_of(b, names)
            total = float(sum(shipped.value.predict_proba(rows)[:, 1].sum() for _ in range(times)))
            yield pa.RecordBatch.from_pydict({"s": [total]})

    walks = (frame.select(*names).mapInArrow(partial(walk, times), "s double") for times in asked)
    return float(sum(row.s for walked in walks for row in walked.collect()))


def session() -> Any:
    from pyspark.sql import SparkSession

    made = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    made = made.config("spark.driver.memory", "4g").config("spark.log.level", "ERROR")
    return made.config("spark.sql.execution.arrow.maxRecordsPerBatch", "65536").getOrCreate()


def work(asked: dict[str, Any]) -> None:
    """Do one measurement in this process and print it."""
    import evenhand as eh

    with open(asked["fitted"], "rb") as file:
        model = pickle.load(file)
    names, audit, findings = names_of(asked["features"]), asked["audit"], 0
    taken: dict[str, float] = {}

    def timed(what: str, function: Callable[..., Any], *given: Any) -> Any:
        usage, began = _used(), time.perf_counter()
        made = function(*given)
        taken[f"{what}seconds"], taken[f"{what}processor"] = time.perf_counter() - began, _used() - usage
        return made

    def audited(source: Any) -> int:
        kept = "keep" if asked["engine"] == "memory" else "batches"
        data = eh.read(source, outcome="y", groups=["group"], features=names, rows=kept)
        plan = None if audit == "whole" else eh.Plan(audits=(audit,))
        return len(eh.audit(data, model=model, plan=plan, rng=0).findings)

    if asked["engine"] == "spark":
        source, few = (session().read.parquet(asked[which]) for which in ("file", "few"))
        for _ in range(ROUNDS):
            bare_spark(few, model, names)
            audited(few)
        timed("bare_", bare_spark, source, model, names)
        if audit in ASKED:
            timed("same_", bare_spark, source, model, names, ASKED[audit])
        findings = timed("", audited, source)
    elif audit == "bare":
        timed("", bare_local, asked["file"], model, names)
    else:
        findings = timed("", audited, asked["file"])
    print(json.dumps(taken | {"findings": findings}))


def _used() -> float:
    """Return the processor seconds of this process and of all that it started, living or ended."""
    seconds, started = {}, defaultdict(list)
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # one that ended meanwhile
            fields = file.read_text().rpartition(")")[2].split()
            started[int(fields[1])].append(int(file.parent.name))
            seconds[int(file.parent.name)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    own = [os.getpid()]
    for process in own:
        own += started[process]
    return sum(seconds[process] for process in own)


def measure(asked: dict[str, Any]) -> dict[str, Any] | None:
    """Run one measurement in a fresh process; None, with what it said, where it fails."""
    command = [sys.executable, __file__, "--work", json.dumps(asked)]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(command, stdout=out, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        said.seek(0)
        if process.returncode != 0:
            print(f"{asked['audit']} on {asked['engine']} failed: {said.read().strip().splitlines()[-1:]}", flush=True)
            return None
        done = json.loads(out.read().strip().splitlines()[-1])
    row = {k: asked[k] for k in KEY}
    row |= {k: round(v, 3) for k, v in done.items()}
    row["megabytes"] = round(usage.ru_maxrss / 1024, 1)
    row["load"] = round(os.getloadavg()[0], 1)
    print(row, flush=True)
    return row


def store(made: dict[str, Any]) -> None:
    """Keep what was measured, in place of what the same measurement gave before."""
    held = json.loads(STORED.read_text())["rows"] if STORED.exists() else []
    by = {tuple(row[k] for k in KEY): row for row in [*held, made]}
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "numpy": np.__version__}
    rows = [by[key] for key in sorted(by)]
    STORED.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n")


def designs(asked: argparse.Namespace) -> list[tuple[int, int, int]]:
    """List rows, features and groups of each file."""
    if asked.quick:
        return [(20_000, FEATURES, GROUPS)]
    out = [(rows, FEATURES, GROUPS) for rows in asked.rows]
    out += [(SIZES[0], k, GROUPS) for k in GROWN["features"] if "features" in asked.grow]
    return out + [(SIZES[0], FEATURES, k) for k in GROWN["groups"] if "groups" in asked.grow]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="*", default=[])
    parser.add_argument("--audits", nargs="*", default=[*AUDITS, "bare"], choices=[*AUDITS, "bare", "whole"])
    parser.add_argument("--engines", nargs="*", default=["local"], choices=["local", "memory", "spark"])
    parser.add_argument("--models", nargs="*", default=MODELS[:1], choices=MODELS)
    parser.add_argument("--grow", nargs="*", default=[], choices=[*GROWN])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        work(json.loads(asked.work))
        return
    if asked.quick:
        asked.engines = ["local", "spark"]
    if not (asked.rows or asked.grow):
        asked.rows = [*SIZES]
    for rows, features, groups in dict.fromkeys(designs(asked)):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "people.parquet")
            write(file, rows, features, groups)
            design = {"rows": rows, "features": features, "groups": groups, "file": str(file)}
            if "spark" in asked.engines:
                design["few"] = str(Path(folder, "few.parquet"))
                write(Path(design["few"]), PIECE, features, groups)
            for kind, engine, audit in product(asked.models, asked.engines, asked.audits):
                if audit == "bare" and engine != "local":
                    continue  # on Spark it is measured beside each audit
                model = Path(folder, f"{kind}.pickle")
                if not model.exists():
                    model.write_bytes(pickle.dumps(fitted(features, groups, kind)))
                row = measure(design | {"audit": audit, "engine": engine, "model": kind, "fitted": str(model)})
                if row is not None and not asked.quick:
                    store(row)


if __name__ == "__main__":
    main()
