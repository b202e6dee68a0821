"""The whole default audit of a file of predictions: seconds and memory from 1e4 to 1e7 rows; and of trained models.

    python benchmarks/audit.py [--quick]
    python benchmarks/audit.py --models          # trained models alone; the rest of a stored file stays

Each size is one fresh process from the file to the last file written, with Python's start, with and without the
report. The peer is a bare ``pandas.read_csv`` of the same file in a fresh process: what merely looking at the rows
costs. ``--quick`` stops at 1e5 rows and stores nothing.

Trained models: all six audits by default, of 8,320 people of the Adult data with eleven columns, by pipelines that were
fitted on 16,000 others; each in a fresh process, beside one prediction of the same people.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
AMOUNTS = ("age", "education_num", "capital_gain", "capital_loss", "hours_per_week")
CATEGORIES = ("workclass", "marital_status", "occupation", "relationship", "race", "sex")
TRAINED, PEOPLE = 16_000, 8_320
ONE_THREAD = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
ROLES = "outcome='y', decision='d', score='p', groups=['sex', 'race']"
BARE = "import sys, pandas; pandas.read_csv(sys.argv[1])"
NUMBERS = f"import sys, evenhand as eh; eh.audit(eh.read(sys.argv[1], {ROLES}), rng=0).to_json(sys.argv[2])"


def write_file(path: Path, rows: int) -> None:
    """Write decisions with scores and two attributes, one of two and one of five groups."""
    rng = np.random.default_rng(0)
    sex, race = rng.integers(2, size=rows), rng.integers(5, size=rows)
    score = np.clip(rng.beta(2, 3, rows) + 0.03 * sex, 0, 1).round(4)
    outcome = (rng.random(rows) < score).astype(int)
    with path.open("w") as file:
        file.write("sex,race,p,y,d\n")
        for start in range(0, rows, 100_000):
            part = slice(start, start + 100_000)
            file.writelines(
                f"{'FM'[s]},{'abcde'[r]},{p:.4f},{y},{int(p >= 0.5)}\n"
                for s, r, p, y in zip(sex[part], race[part], score[part], outcome[part], strict=True)
            )


def cost(command: list[str]) -> dict[str, float]:
    """Run a command and return its wall and processor seconds and its largest memory in MB."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{command[:4]} left with {process.returncode}")
    return {
        "seconds": round(time.perf_counter() - start, 3),
        "processor": round(usage.ru_utime + usage.ru_stime, 3),
        "megabytes": round(usage.ru_maxrss / 1024, 1),
    }


def measure(rows: int, folder: Path) -> dict[str, object]:
    file, out = folder / "decisions.csv", folder / "out"
    write_file(file, rows)
    words = ["--outcome", "y", "--decision", "d", "--score", "p", "--group", "sex", "--group", "race", "--quiet"]
    python = sys.executable
    row: dict[str, object] = {
        "rows": rows,
        "report": cost([python, "-m", "evenhand", "audit", str(file), *words, "--out", str(out)]),
        "numbers": cost([python, "-c", NUMBERS, str(file), str(folder / "findings.json")]),
        "bare_read": cost([python, "-c", BARE, str(file)]),
    }
    print(row, flush=True)
    return row


def audit_model(kind: str) -> None:
    """Train a model on people of the Adult data, audit it on others, and print what that cost."""
    import pandas as pd
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    import evenhand as eh

    told = eh.datasets.adult_table()
    types = dict.fromkeys(AMOUNTS, float) | dict.fromkeys(CATEGORIES, str)
    frame = pd.DataFrame({name: np.asarray(told[name]).astype(kind_of) for name, kind_of in types.items()})
    frame["income"] = (np.asarray(told["income"]).astype(str) == ">50K").astype(int)
    known, people = frame[:TRAINED], frame[TRAINED : TRAINED + PEOPLE]
    learner = {
        "logistic": LogisticRegression(max_iter=2000),
        "forest": RandomForestClassifier(100, min_samples_leaf=5, random_state=0),
        "boosting": HistGradientBoostingClassifier(random_state=0),
    }[kind]
    encoder = OneHotEncoder(sparse_output=False, handle_unknown="ignore")
    encoded = make_column_transformer((StandardScaler(), AMOUNTS), (encoder, CATEGORIES))
    model = make_pipeline(encoded, learner).fit(known[[*types]], known["income"])
    began = time.process_time()
    model.predict_proba(people[[*types]])
    asked = time.process_time() - began
    data = eh.read(people, outcome="income", groups=["sex", "race"], features=[*types])
    wall, began = time.perf_counter(), time.process_time()
    run = eh.audit(data, model=model, rng=0)
    taken = {
        "seconds": time.perf_counter() - wall,
        "processor": time.process_time() - began,
        "one_prediction": asked,
    }
    rounded = {what: round(value, 3) for what, value in taken.items()}
    print(json.dumps({"model": kind, **rounded, "findings": len(run.findings)}))


def trained() -> list[dict[str, object]]:
    """Measure each kind of model in a fresh process."""
    rows = []
    for kind in ("logistic", "forest", "boosting"):
        done = subprocess.run(
            [sys.executable, __file__, "--model", kind], capture_output=True, text=True, check=True, env=ONE_THREAD
        )
        rows.append({"rows": PEOPLE, **json.loads(done.stdout.splitlines()[-1])})
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--models", action="store_true", help="measure trained models alone")
    parser.add_argument("--model", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.model:
        audit_model(asked.model)
        return
    stored = HERE / "audit.json"
    made = json.loads(stored.read_text()) if stored.exists() else {}
    made["machine"] = {"cores": os.cpu_count(), "python": platform.python_version(), "numpy": np.__version__}
    if not asked.models:
        with tempfile.TemporaryDirectory() as folder:
            measure(SIZES[0], Path(folder))  # warms the disk cache
            made["rows"] = [measure(n, Path(folder)) for n in (SIZES[:2] if asked.quick else SIZES)]
    if not asked.quick:
        made["models"] = trained()
        stored.write_text(json.dumps(made, indent=2) + "\n")


if __name__ == "__main__":
    main()
