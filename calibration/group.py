"""Size of every test and coverage of every interval of the group audit, on a grid of true nulls.

python calibration/group.py [--short] [--replications 1000] [--intervals 100] [--workers 2] [--metrics auc,brier]

With `--metrics`, what was not run keeps its stored values. `aod` sums exact p-values of two rates for every data set,
a quarter of a second with a few hundred rows: 200 data sets a design are stored (`--metrics aod --replications 200
--intervals 200`), and of the designs the smallest only. `aod_abs` was run with `--metrics aod_abs --intervals 20`.

Every data set is tested; an interval costs twenty times as much as a test, so the first of them only get one.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy import stats

sys.path.insert(0, str(Path(__file__).parent))

from designs import Design, cells, grid, samples, short

from evenhand import METRICS
from evenhand.inference.rates.samples import RateSamples
from evenhand.inference.samples import Draws

HERE = Path(__file__).parent
ALPHA = 0.05
MARGIN = 0.1
SHOWN = (
    ("size", "rejected", "tested"),
    ("at .01", "rejected_01", "tested"),
    ("at .001", "rejected_001", "tested"),
    ("coverage", "covered", "intervals"),
    ("ratio coverage", "ratio_covered", "ratios"),
    ("warned", "warned", "tested"),
)


def simulate(
    design: Design, replications: int, *, intervals: int, n_resamples: int = 199, first: int = 0
) -> dict[str, Any]:
    """Count rejections of the true null and coverage of no difference and of the ratio 1."""
    names = ("tested", "rejected", "rejected_01", "rejected_001", "warned", "intervals", "covered", "ratios")
    seen = dict.fromkeys((*names, "ratio_covered", "not_computable"), 0)
    for i in range(first, first + replications):
        rng = np.random.default_rng([i, len(design.name), *design.sizes])
        s = samples(design, rng)
        if any(s.reason):
            seen["not_computable"] += 1
            continue
        draws = Draws(n_resamples=n_resamples, seed=i, name="calibration")
        result = s.test(0, 1, draws)
        if np.isnan(result.pvalue):
            seen["not_computable"] += 1
            continue
        seen["tested"] += 1
        rejected = result.pvalue <= ALPHA
        warned = bool(result.warnings)
        seen["rejected"] += rejected
        seen["rejected_01"] += result.pvalue <= 0.01
        seen["rejected_001"] += result.pvalue <= 0.001
        seen["warned"] += warned
        if i >= first + intervals:
            continue
        seen["intervals"] += 1
        low, high, _ = s.interval(0, 1, level=0.95, ratio=False, draws=draws)
        seen["covered"] += low <= 0 <= high
        if s.estimate[1] != 0 and METRICS[design.metric].low == 0 and not METRICS[design.metric].compare:
            low, high, _ = s.interval(0, 1, level=0.95, ratio=True, draws=draws)
            seen["ratios"] += 1
            seen["ratio_covered"] += low <= 1 <= high
    return {"design": design.name, "metric": design.metric, "kind": design.kind, "sizes": design.sizes,
            "base": design.base, "level": design.level, **seen}  # fmt: skip


def margin_size(metric: str, sizes: tuple[int, int], base: tuple[float, float], replications: int) -> dict[str, Any]:
    """Count how often equivalence is claimed when the true difference lies on the margin."""
    m = METRICS[metric]
    claimed = tested = covered = 0
    for i in range(replications):
        rng = np.random.default_rng([i, *sizes])
        table = np.stack(
            [rng.multinomial(n, cells(metric, b, p, g))
             for g, (n, b, p) in enumerate(zip(sizes, base, (0.3 + MARGIN, 0.3), strict=True))]
        )  # fmt: skip
        s = RateSamples(table, numerator=m.numerator, denominator=m.denominator, transform=m.transform)
        if any(s.reason):
            continue
        tested += 1
        claimed += s.equivalence(0, 1, low=-MARGIN, high=MARGIN, ratio=False, draws=Draws()) <= ALPHA
        low, high, _ = s.interval(0, 1, level=0.95, ratio=False, draws=Draws())
        covered += low <= MARGIN <= high
    return {"design": f"{metric} on the margin n={sizes[0]}/{sizes[1]} base={base[0]}/{base[1]}", "metric": metric,
            "tested": tested, "claimed": claimed, "covered": covered}  # fmt: skip


def family(correction: str, replications: int) -> dict[str, Any]:
    """Count families of six true weak nulls in which anything is called a disparity."""
    import evenhand as eh

    wrong = 0
    for i in range(replications):
        rng = np.random.default_rng(i)
        parts = []
        for g, (n, base) in enumerate(((300, 0.6), (200, 0.3), (80, 0.1), (400, 0.5))):
            cell = rng.choice(4, n, p=[(1 - base) * 0.8, (1 - base) * 0.2, base * 0.15, base * 0.85])
            parts.append((cell, np.full(n, g)))
        cell, g = (np.concatenate(x) for x in zip(*parts, strict=True))
        data = eh.AuditData.from_arrays(outcome=cell // 2, decision=cell % 2, groups={"g": g})
        result = eh.audit_group(data, metrics=["fnr", "fpr"], correction=correction, n_resamples=999, rng=i)
        wrong += any(f.verdict == "disparity" for f in result if not f.measure.endswith("_global"))
    return {"design": f"six weak nulls at once, {correction}", "families": replications, "wrong": wrong}


def suspicious(row: dict[str, Any]) -> bool:
    """Whether a right test would show so many rejections, or so little coverage, in less than 1 % of runs."""
    if row["tested"] < 100:
        return False
    levels = ((row["rejected"], 0.05), (row["rejected_01"], 0.01), (row["rejected_001"], 0.001))
    missed = row["intervals"] - row["covered"]
    return any(n > stats.binom.isf(0.01, row["tested"], a) for n, a in levels) or (
        row["intervals"] >= 20 and missed > stats.binom.isf(0.01, row["intervals"], ALPHA)
    )


def again(path: Path, replications: int, intervals: int, workers: int) -> None:
    """Run the designs that look wrong once more, on fresh and more data sets, and store that beside the first run."""
    stored = json.loads(path.read_text())
    wrong = [Design(r["metric"], tuple(r["sizes"]), tuple(r["base"]), r["level"], r["kind"])
             for r in stored["size"] if suspicious(r)]  # fmt: skip
    with ProcessPoolExecutor(workers) as pool:
        jobs = [pool.submit(simulate, d, replications, intervals=intervals, first=1_000_000) for d in wrong]
        stored["again"] = [job.result() for job in jobs]
    path.write_text(json.dumps(stored, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--replications", type=int, default=1000)
    parser.add_argument("--intervals", type=int, default=100, help="data sets of each design that get intervals")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--metrics", default="", help="only these, separated by commas; 'families' for the rest")
    parser.add_argument("--out", type=Path, default=HERE / "group.json")
    parser.add_argument("--again", action="store_true", help="only the stored designs that look wrong, on fresh data")
    words = parser.parse_args()
    if words.again:
        again(words.out, words.replications, words.intervals, words.workers)
        return
    only = words.metrics.split(",") if words.metrics else []
    designs = [d for d in (short() if words.short else grid()) if not only or d.metric in only]
    wanted = min(words.replications, 400) if words.short else words.replications
    with ProcessPoolExecutor(words.workers) as pool:
        jobs = [pool.submit(simulate, d, wanted, intervals=words.intervals) for d in designs]
        margins = families = []
        if not only or "families" in only:
            margins = [
                pool.submit(margin_size, m, sizes, base, words.intervals)
                for m in ("fnr", "selection_rate", "f1")
                for sizes in ((100, 30), (300, 300), (1000, 100))
                for base in ((0.5, 0.5), (0.8, 0.2))
            ]
            families = [pool.submit(family, c, words.intervals * 5) for c in ("holm", "max-t")]
        rows = []
        for job in jobs:
            row = job.result()
            rows.append(row)
            tested = max(row["tested"], 1)
            shown = {k: row[v] / max(row[n], 1) for k, v, n in SHOWN}
            print(f"{row['design']}:", ", ".join(f"{k} {v:.4f}" for k, v in shown.items()), f"of {tested}", flush=True)
        others = [job.result() for job in (*margins, *families)]
        for row in others:
            print(row, flush=True)
    if not words.short:
        stored = {
            "replications": wanted,
            "intervals": words.intervals,
            "alpha": ALPHA,
            "size": rows,
            "margin": [r for r in others if "claimed" in r],
            "family": [r for r in others if "families" in r],
        }
        if only and words.out.exists():  # what was not run keeps its stored values
            before = json.loads(words.out.read_text())
            kept = [r for r in before["size"] if r["metric"] not in only]
            stored = before | {"size": kept + rows} | {k: stored[k] for k in ("margin", "family") if stored[k]}
        words.out.write_text(json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    main()
