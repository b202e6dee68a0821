"""What an audit costs at home: starting, labels and small groups, each beside a plain baseline.

    python benchmarks/home.py [--quick]

Costs are seconds of processor time, of the process and those it starts, and so hardly depend on what else the machine
does. ``--quick`` takes a tenth of the rows and stores nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd

import evenhand as eh

HERE = Path(__file__).parent
LABELS = np.array(["African American", "Asian", "White", "another", "not said"])


def spent(who: int = resource.RUSAGE_SELF) -> float:
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def cost(work: Callable[[], object], repeat: int = 2) -> float:
    """Return the processor time of the cheapest of a few runs, after one that warms caches."""
    work()
    costs = []
    for _ in range(repeat):
        start = spent()
        work()
        costs.append(spent() - start)
    return min(costs)


def cost_of_program(code: str, *words: str, repeat: int = 2, **variables: str) -> float:
    """Return the processor time of a fresh Python with all that it starts."""
    costs = []
    for _ in range(repeat):
        start = spent(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code, *words], env={**os.environ, **variables}, check=True)
        costs.append(spent(resource.RUSAGE_CHILDREN) - start)
    return min(costs)


def line(what: str, baseline: str, ours: float, theirs: float) -> dict[str, object]:
    print(f"{what}: {ours:.3f} s; {baseline}: {theirs:.3f} s", flush=True)
    return {"what": what, "baseline": baseline, "ours": round(ours, 4), "theirs": round(theirs, 4)}


def starts() -> list[dict[str, object]]:
    bare = cost_of_program("import numpy")
    shown = "from evenhand.cli import run; import os, sys; sys.stdout = open(os.devnull, 'w'); run(['--help'])"
    return [
        line("`import evenhand`", "`import numpy`", cost_of_program("import evenhand"), bare),
        line("`evenhand --help`", "`import numpy`", cost_of_program(shown), bare),
    ]


def labels(rows: int) -> list[dict[str, object]]:
    rng = np.random.default_rng(0)
    fixed = LABELS[rng.integers(LABELS.size, size=rows)]
    out = []
    for name, group in (("fixed-width texts", fixed), ("objects", fixed.astype(object))):
        out.append(
            line(
                f"groups of {rows:,} rows as {name}: coded, checked, fingerprinted",
                "pandas.factorize",
                cost(lambda group=group: eh.AuditData.from_arrays(decision=np.ones(rows), groups={"g": group})),
                cost(lambda group=group: pd.factorize(group)),
            )
        )
    return out


def small_groups(rows: int) -> list[dict[str, object]]:
    rng = np.random.default_rng(0)
    group = rng.integers(8, size=rows)
    group[rng.choice(rows, 200, replace=False)] = 8
    outcome = rng.random(rows) < 0.4
    score = 1 / (1 + np.exp(-rng.normal(size=rows) - outcome))
    columns = {"outcome": outcome, "decision": score > 0.5, "score": score, "groups": {"g": group}}
    kinds = {"rows": eh.AuditData.from_arrays(**columns), "cells": eh.AuditData.from_arrays(**columns, rows="cells")}
    sort = cost(lambda: np.argsort(score, kind="stable"))
    return [
        line(
            f"{metric} of nine groups, one of 200 rows, {rows:,} rows kept as {kind}",
            "one sort of the scores",
            cost(lambda metric=metric, data=data: eh.audit_group(data, metrics=[metric], rng=0)),
            sort,
        )
        for kind, data in kinds.items()
        for metric in ("auc", "calibration_error", "log_loss")
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    rows = 20_000 if quick else 200_000
    lines = [*starts(), *(one for n in (rows, 5 * rows) for kind in (labels, small_groups) for one in kind(n))]
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "numpy": np.__version__}
    if not quick:
        (HERE / "home.json").write_text(json.dumps({"machine": machine, "rows": lines}, indent=2) + "\n")


if __name__ == "__main__":
    main()
