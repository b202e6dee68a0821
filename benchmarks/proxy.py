"""Influence and proxy scores against one prediction pass of the nuisance models: seconds, ratio and memory.

    python benchmarks/proxy.py [--rows 1000000] [--quick]

A prediction pass is P(Y|X,S=0), P(Y|X,S=1) and P(S|X) on all rows with ``LogisticFit.probability``: three products of
the matrix with a vector and three times the inverse logit. Influence is psi on all rows from that pass's
probabilities; proxy scores toggle each of 40 features over its values on every row of the group (half of all). Ours
and theirs are timed in turn, seven times, by the processor time of one thread; the cheapest of each counts. Memory is
the largest growth while scoring, beyond the data, the matrix and the probabilities. Beside them stand what a plain
version costs (a new prediction for every feature and value) and what the slopes behind the scores' intervals cost, on
the 50,000 rows the audit takes them from.
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
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy.special import expit

from evenhand.kernels.influence.design import make_design
from evenhand.kernels.influence.functionals import Sample, centre, functional, means, psi
from evenhand.kernels.influence.nuisance import LogisticFolds
from evenhand.kernels.influence.set_features import toggle
from evenhand.kernels.influence.shifted_predictions import Rows, Sources
from evenhand.kernels.shared.logistic import LogisticFit

FEATURES = 40


def seconds(*works: Callable[[], object], repeat: int = 7) -> list[float]:
    """Return the processor time of each work's cheapest run of a few, taken in turn, after one that warms caches."""
    best = [float("inf")] * len(works)
    for turn in range(repeat + 1):
        for k, work in enumerate(works):
            start = time.process_time()
            work()
            if turn:
                best[k] = min(best[k], time.process_time() - start)
    return best


def fit(coef: np.ndarray, intercept: float) -> LogisticFolds:
    whole = LogisticFit(coef=coef, intercept=intercept, iterations=1)
    return LogisticFolds((whole,), whole, 1.0)


def measure(rows: int, numeric: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    columns = {
        f"x{j}": rng.normal(size=rows).round(2) if j < numeric else (rng.random(rows) < 0.3).astype(float)
        for j in range(FEATURES)
    }
    inside = rng.random(rows) < 0.5
    weight = np.ones(rows)
    design = make_design(columns, weight, inside)
    X = np.ascontiguousarray(design.encode(columns))  # one row after the other, as the audit has the rows it draws
    models = [fit(rng.normal(0, 0.3, design.width), -0.5) for _ in range(4)]
    eta_fit, eta1_fit, member, h_fit = models
    h = expit(X @ h_fit.all_rows.coef - 0.5)
    form = functional("fpr")
    reference = means(form, h[~inside], eta1_fit.whole(X[~inside]), weight[~inside])
    eta = eta_fit.whole(X)

    def predict() -> object:
        return eta_fit.whole(X), eta1_fit.whole(X), member.whole(X)

    def influence() -> object:
        group = Sample(h=h[inside], eta=eta[inside], weight=weight[inside], reference=reference)
        return psi(centre(form, group), h, eta)

    at = centre(form, Sample(h=h[inside], eta=eta[inside], weight=weight[inside], reference=reference))
    group = X[inside]
    every = Rows(group, np.ones(len(group)), np.zeros(len(group), dtype=np.int64), np.arange(len(group)))
    few = replace(every, number=np.arange(min(50_000, len(group))))
    sources = Sources(h=h_fit, eta=eta_fit)

    def scores() -> object:
        return toggle(design.blocks, every, at, sources).score

    def slopes() -> object:
        return toggle(design.blocks, few, at, sources, linear=True).score

    def plain() -> object:
        part = group[: max(len(group) // 100, 1)].copy()  # a hundredth, times a hundred
        out = []
        for block in design.blocks:
            kept = part[:, list(block.where)].copy()
            table = []
            for level in block.levels:
                part[:, list(block.where)] = level
                table.append(psi(at, h_fit.whole(part), eta_fit.whole(part)))
            part[:, list(block.where)] = kept
            out.append(np.ptp(np.array(table), axis=0).mean())
        return out

    one, psi_time, score_time = seconds(predict, influence, scores)
    slope_time, plain_time = seconds(slopes, plain, repeat=1)
    tracemalloc.start()
    scores()
    grown = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    what = f"influence and proxy scores, {rows:,} rows x {FEATURES} features, {numeric} of them numbers, every row"
    ours = psi_time + score_time
    return {
        "what": what,
        "peer": "one prediction pass of the nuisance models",
        "ours": ours,
        "theirs": one,
        "ratio": ours / one,
        "at_most": 3,
        "memory_megabytes": grown / 1e6,
        "slopes_for_intervals": slope_time,
        "plain_version": 100 * plain_time,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, printed only")
    asked = parser.parse_args()
    rows = asked.rows // 10 if asked.quick else asked.rows
    found = [measure(rows, numeric) for numeric in (0, 20)]
    for line in found:
        print(f"{line['what']}: {line['ours']:.3f} s against {line['theirs']:.3f} s, ratio {line['ratio']:.2f}")
        print(f"    {line['memory_megabytes']:.1f} MB, plain version {line['plain_version']:.1f} s", flush=True)
        print(f"    slopes for the intervals {line['slopes_for_intervals']:.2f} s", flush=True)
    if not asked.quick:
        machine = {"python": sys.version.split()[0], "numpy": np.__version__, "system": platform.machine()}
        stored = {"machine": machine, "rows": found}
        Path(__file__).with_suffix(".json").write_text(json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    main()
