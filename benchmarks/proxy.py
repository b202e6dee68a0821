"""Influence and proxy scores against one prediction pass of the nuisance models: seconds, ratio and memory.

    python benchmarks/proxy.py [--rows 1000000] [--quick]

A prediction pass is P(Y|X,S=0), P(Y|X,S=1) and P(S|X) on all rows with ``LogisticFit.probability``. Influence is psi on
all rows from that pass's probabilities; proxy scores toggle each of 40 features over its values on every row of the
group (half of all). Memory is the largest growth while scoring, beyond the data, the matrix and the probabilities.
Beside them stands what a plain version costs: a new prediction for every feature and value.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy.special import expit

from evenhand.kernels.design import make_design
from evenhand.kernels.influence import centre, functional, means, psi
from evenhand.kernels.logistic import LogisticFit
from evenhand.kernels.nuisance import LogisticFolds
from evenhand.kernels.toggles import Sources, toggle

FEATURES = 40


def seconds(work: Callable[[], object], repeat: int = 3) -> float:
    """Return the fastest of a few runs, after one that warms caches."""
    work()
    best = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def fit(coef: np.ndarray, intercept: float) -> LogisticFolds:
    whole = LogisticFit(coef=coef, intercept=intercept, converged=True, iterations=1)
    return LogisticFolds((whole,), whole, 1.0)


def measure(rows: int, numeric: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    columns = {
        f"x{j}": rng.normal(size=rows).round(2) if j < numeric else (rng.random(rows) < 0.3).astype(float)
        for j in range(FEATURES)
    }
    inside = rng.random(rows) < 0.5
    weight = np.ones(rows)
    design = make_design(columns, weight, inside)
    X = design.encode(columns)
    models = [fit(rng.normal(0, 0.3, design.width), -0.5) for _ in range(4)]
    eta_fit, eta1_fit, member, h_fit = models
    h = expit(X @ h_fit.all_rows.coef - 0.5)
    form = functional("fpr")
    reference = means(form, h[~inside], eta1_fit.whole(X[~inside]), weight[~inside])
    eta = eta_fit.whole(X)

    def predict() -> object:
        return eta_fit.whole(X), eta1_fit.whole(X), member.whole(X)

    def influence() -> object:
        at = centre(form, h[inside], eta[inside], weight[inside], reference=reference)
        return psi(form, at, h, eta)

    at = centre(form, h[inside], eta[inside], weight[inside], reference=reference)
    group = X[inside]
    fold = np.zeros(len(group), dtype=np.int64)
    sources = Sources(h=h_fit, eta=eta_fit)

    def scores() -> object:
        return toggle(design.blocks, group, np.ones(len(group)), fold, form, at, sources).score

    def capped() -> object:
        part = group[:50_000]
        return toggle(design.blocks, part, np.ones(len(part)), fold[: len(part)], form, at, sources).score

    def plain() -> object:
        part = group[: max(len(group) // 100, 1)].copy()  # a hundredth, times a hundred
        out = []
        for block in design.blocks:
            kept = part[:, list(block.where)].copy()
            table = []
            for level in block.levels:
                part[:, list(block.where)] = level
                table.append(psi(form, at, h_fit.whole(part), eta_fit.whole(part)))
            part[:, list(block.where)] = kept
            out.append(np.ptp(np.array(table), axis=0).mean())
        return out

    one = seconds(predict)
    psi_time, score_time, capped_time = seconds(influence), seconds(scores, 2), seconds(capped)
    plain_time = 100 * seconds(plain, 1)
    tracemalloc.start()
    capped()  # chunks are the same for any number of rows
    grown = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    what = f"{rows:,} rows x {FEATURES} features, {numeric} of them numbers"
    return [
        {
            "what": f"influence and proxy scores, {what}, every row of the group",
            "peer": "one prediction pass of the nuisance models",
            "ours": psi_time + score_time,
            "theirs": one,
            "ratio": (psi_time + score_time) / one,
            "at_most": 3 if numeric == 0 else None,
            "memory_megabytes": grown / 1e6,
            "plain_version": plain_time,
        },
        {
            "what": f"influence and proxy scores, {what}, the audit's default of 50,000 averaged rows",
            "peer": "one prediction pass of the nuisance models",
            "ours": psi_time + capped_time,
            "theirs": one,
            "ratio": (psi_time + capped_time) / one,
            "at_most": 3,
            "memory_megabytes": grown / 1e6,
            "plain_version": plain_time,
        },
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, printed only")
    asked = parser.parse_args()
    rows = asked.rows // 10 if asked.quick else asked.rows
    found = [line for numeric in (0, 20) for line in measure(rows, numeric)]
    for line in found:
        print(
            f"{line['what']}: {line['ours']:.3f} s against {line['theirs']:.3f} s, ratio {line['ratio']:.2f}, "
            f"{line['memory_megabytes']:.1f} MB; plain version {line['plain_version']:.1f} s"
        )
    if not asked.quick:
        machine = {"python": sys.version.split()[0], "numpy": np.__version__, "system": platform.machine()}
        stored = {"machine": machine, "rows": found}
        Path(__file__).with_suffix(".json").write_text(json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    main()
