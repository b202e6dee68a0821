"""What a comparison within strata costs beside the comparison of everybody: seconds, and their ratio.

    python benchmarks/strata.py

A million rows in a thousand strata, two groups: the group audit with and without strata of the same rows, in one
process, on one core. The data are read before the clock starts; asked is a ratio of at most 2.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import evenhand as eh

HERE = Path(__file__).parent
ROWS, STRATA = 1_000_000, 1000
METRICS = (["selection_rate"], ["fnr", "fpr"], ["mean_score"], ["selection_rate", "fnr", "fpr", "auc"])


def seconds(work: Callable[[], object], repeat: int = 5) -> float:
    """Return the fastest of a few runs, after one that warms caches, in seconds of the processor."""
    work()
    best = float("inf")
    for _ in range(repeat):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def make(rows: int, strata: int) -> tuple[eh.AuditData, eh.AuditData]:
    """Return the same people without and with strata."""
    rng = np.random.default_rng(0)
    job = rng.integers(strata, size=rows)
    group = (rng.random(rows) < 0.3 + 0.4 * job / strata).astype(np.int64)
    outcome = (rng.random(rows) < 0.2 + 0.4 * job / strata).astype(np.int64)
    score = np.clip(rng.normal(0.3 + 0.3 * outcome, 0.15, rows), 0, 1)
    roles: dict[str, Any] = {"outcome": outcome, "decision": (score > 0.5).astype(np.int64), "score": score}
    roles["groups"] = {"g": group}
    return eh.AuditData.from_arrays(**roles), eh.AuditData.from_arrays(**roles, strata={"job": job})


def main() -> None:
    """Measure and store the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE / "strata.json")
    words = parser.parse_args()
    plain, within = make(ROWS, STRATA)
    rows = []
    for metrics in METRICS:
        without, stratified = (
            seconds(functools.partial(eh.audit_group, data, metrics=metrics, rng=0)) for data in (plain, within)
        )
        row = {"metrics": metrics, "without": without, "within": stratified, "ratio": stratified / without}
        rows.append({**row, "asked": 2.0, "reached": row["ratio"] <= 2})
        print(
            f"{', '.join(metrics)}: {without:.3f} s without, {stratified:.3f} s within strata, {row['ratio']:.2f} times"
        )
    stored = {"rows": ROWS, "strata": STRATA, "machine": platform.machine(), "python": platform.python_version()}
    words.out.write_text(json.dumps({**stored, "measured": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
