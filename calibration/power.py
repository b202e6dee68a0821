"""Is the power that `evenhand.power` promises the share of real audits that show the difference, or equivalence?

python calibration/power.py [--replications 1000] [--workers 2] [--part 1/8]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy import special, stats

sys.path.insert(0, str(Path(__file__).parent))

from designs import cells

import evenhand as eh

HERE = Path(__file__).parent
LOSSES = ("brier", "log_loss", "mae", "mse")


@dataclass(frozen=True)
class Promise:
    """A design whose power is computed and simulated.

    Parameters
    ----------
    metric : str
        A name of the catalogue, or "correlation".
    rows : tuple of int
        Rows of the group and the reference.
    value, difference : float
        The reference's true value and what the group adds to it.
    assumed : dict
        Rates and spreads, as given to `evenhand.power` and to the simulation.
    margin : str or None
        With one, equivalence is to be shown; the difference is then 0.
    findings : int
        How many findings share the error rate.
    route : str
        "assumed" numbers, or a "pilot" of 4,000 rows for each group.
    """

    metric: str
    rows: tuple[int, int]
    value: float
    difference: float
    assumed: dict[str, Any] = field(default_factory=dict)
    margin: str | None = None
    findings: int = 1
    route: str = "assumed"

    @property
    def name(self) -> str:
        """Return one line that names the design."""
        said = ", ".join(f"{k} {v}" for k, v in self.assumed.items())
        goal = f"margin {self.margin}" if self.margin else f"difference {self.difference:+g}"
        extra = (f", {self.findings} findings" if self.findings > 1 else "") + (", pilot" * (self.route == "pilot"))
        return (
            f"{self.metric} {self.rows[0]}+{self.rows[1]}, value {self.value:g}, {goal}"
            + (f", {said}" if said else "")
            + extra
        )


def cheap(p: Promise) -> bool:
    """Whether its audits need no permutations and no exact test of equivalence."""
    return not p.margin and p.metric != "correlation" and eh.METRICS[p.metric].kind in ("rate", "table")


def pair(value: float | tuple[float, float]) -> tuple[float, float]:
    """Return one number for each group."""
    return value if isinstance(value, tuple) else (value, value)


def draw(p: Promise, rows: tuple[int, int], rng: np.random.Generator) -> eh.AuditData:
    """Draw two groups with the design's values."""
    values = (p.value + p.difference, p.value)
    base, selected = pair(p.assumed.get("base_rate", 0.5)), pair(p.assumed.get("selection_rate", 0.5))
    codes = np.repeat([0, 1], rows)
    groups = {"g": np.array(["a", "b"])[codes]}
    if p.metric == "correlation":
        x = rng.normal(size=rows[0])
        y = p.difference * x + math.sqrt(1 - p.difference**2) * rng.normal(size=rows[0])
        return eh.AuditData.from_arrays(score=y, groups={"x": x}, continuous=["x"])
    metric = eh.METRICS[p.metric]
    if metric.kind in ("rate", "table"):
        parts = []
        for n, v, b, s in zip(rows, values, base, selected, strict=True):
            if p.metric == "f1":
                j = v / (2 - v)
                inside = (b + s) / (1 + j)
                law = [1 - inside, s - j * inside, b - j * inside, j * inside]
            elif p.metric == "balanced_accuracy":
                law = [(1 - b) * v, (1 - b) * (1 - v), b * (1 - v), b * v]
            else:
                chosen = p.metric in ("precision", "fdr", "npv", "for")
                by = s if chosen else b
                law = cells(p.metric, 1 - by if p.metric in ("npv", "for", "fpr", "tnr") else by, v, 0)
            parts.append(rng.choice(4, n, p=law))
        cell = np.concatenate(parts)
        return eh.AuditData.from_arrays(outcome=cell // 2, decision=cell % 2, groups=groups)
    value = np.repeat(values, rows)
    y = rng.random(codes.size) < np.repeat(base, rows)
    if metric.kind == "auc":
        score = rng.normal(size=codes.size) + y * np.sqrt(2) * special.ndtri(value)
        return eh.AuditData.from_arrays(outcome=y.astype(int), score=score, groups=groups)
    if metric.kind == "calibration":
        raw = rng.beta(2, 2, size=codes.size) * (1 - value)
        outcome = (rng.random(codes.size) < raw).astype(int)
        return eh.AuditData.from_arrays(outcome=outcome, score=raw + value, groups=groups)
    spread = np.repeat(pair(p.assumed["spread"]), rows)
    if p.metric in LOSSES:  # skewed, above 0
        v = rng.gamma((value / spread) ** 2, spread**2 / value)
        v = np.minimum(v, 1.0) if p.metric == "brier" else v
    else:
        v = value + spread * rng.normal(size=codes.size)
    if p.metric in ("brier", "log_loss"):
        miss = np.sqrt(v) if p.metric == "brier" else 1 - np.exp(-v)
        return eh.AuditData.from_arrays(outcome=y.astype(int), score=np.where(y, 1 - miss, miss), groups=groups)
    number = rng.normal(size=codes.size)
    score = {"mae": number + v, "mse": number + np.sqrt(np.abs(v)), "mean_residual": number - v}.get(p.metric, v)
    return eh.AuditData.from_arrays(outcome=number, score=score, groups=groups)


def audited(p: Promise) -> str:
    """Return the metric that the audit runs."""
    return "mean_score" if p.metric == "correlation" else p.metric


def promised(p: Promise) -> float:
    """Return the power that is promised."""
    words: dict[str, Any] = {"margin": p.margin, "findings": p.findings}
    if not p.margin:
        words["difference"] = p.difference
    if p.route == "pilot":
        pilot = draw(p, (4000, 4000), np.random.default_rng(77))
        sizes = p.rows[0] if p.metric == "correlation" else p.rows
        reference = None if p.metric == "correlation" else "b"
        row = eh.power(audited(p), pilot, rows=sizes, reference=reference, **words)[0]
    elif p.metric == "correlation":
        row = eh.power("correlation", rows=p.rows[0], **words)[0]
    else:
        row = eh.power(p.metric, rows=p.rows, value=p.value, **p.assumed, **words)[0]
    goal = row.to_show_equivalence if p.margin else row.to_show_difference
    return goal.power


def simulate(p: Promise, replications: int, first: int = 0, n_resamples: int = 999) -> dict[str, Any]:
    """Run real audits of simulated data and count what they show."""
    shown = 0
    for i in range(first, first + replications):
        data = draw(p, p.rows, np.random.default_rng([i, *p.rows]))
        words = {} if p.metric == "correlation" else {"reference": "b"}
        result = eh.audit_group(
            data, audited(p), margin=p.margin, alpha=0.05 / p.findings, n_resamples=n_resamples, rng=i, **words
        )
        shown += result[0].verdict == ("equivalent" if p.margin else "disparity")
    low, high = stats.binomtest(int(shown), replications).proportion_ci(0.99, "exact")
    return {"design": p.name, "metric": p.metric, "route": p.route, "margin": p.margin, "promised": promised(p),
            "audits": replications, "shown": int(shown), "low": float(low), "high": float(high)}  # fmt: skip


def grid() -> Iterator[Promise]:
    """Yield every design."""
    for rows, value, gap in (((20, 20), 0.5, 0.45), ((50, 20), 0.9, -0.3), ((50, 50), 0.05, 0.2),
                             ((15, 200), 0.3, 0.35), ((300, 300), 0.2, 0.1), ((100, 900), 0.1, 0.1),
                             ((2000, 800), 0.3, 0.055), ((50, 4000), 0.05, 0.1)):  # fmt: skip
        yield Promise("selection_rate", rows, value, gap)
    yield Promise("selection_rate", (300, 300), 0.2, 0.12, findings=6)
    yield Promise("accuracy", (150, 300), 0.8, -0.12)
    yield Promise("error_rate", (150, 300), 0.2, 0.12)
    for name, value, gap in (("tpr", 0.8, -0.2), ("fnr", 0.2, 0.2), ("fpr", 0.2, 0.15), ("tnr", 0.8, -0.15)):
        yield Promise(name, (150, 300), value, gap, {"base_rate": (0.4, 0.3)})
    for name, value, gap in (("precision", 0.8, -0.2), ("fdr", 0.2, 0.2), ("npv", 0.8, -0.15), ("for", 0.2, 0.15)):
        yield Promise(name, (150, 300), value, gap, {"selection_rate": (0.4, 0.3)})
    yield Promise("f1", (150, 300), 0.7, -0.15, {"base_rate": 0.4, "selection_rate": 0.4})
    yield Promise("balanced_accuracy", (150, 300), 0.75, -0.12, {"base_rate": (0.4, 0.3)})
    yield Promise("balanced_accuracy", (60, 60), 0.7, 0.22, {"base_rate": 0.5})
    for rows, value, gap in (((150, 300), 0.75, -0.14), ((60, 60), 0.7, 0.2), ((400, 200), 0.9, -0.07)):
        yield Promise("auc", rows, value, gap, {"base_rate": (0.4, 0.3)})
    for name, value, gap, spread in (("brier", 0.2, 0.06, 0.15), ("log_loss", 0.5, 0.15, 0.4), ("mae", 1.0, 0.3, 0.8),
                                     ("mse", 1.0, 0.4, 1.2), ("mean_score", 0.0, 0.3, (1.0, 0.8)),
                                     ("mean_residual", 0.0, -0.3, (0.8, 1.0))):  # fmt: skip
        yield Promise(name, (120, 200), value, gap, {"spread": spread})
    yield Promise("mean_score", (12, 30), 0.0, 1.0, {"spread": 1.0})
    for rows, value, gap in (((300, 600), 0.05, 0.12), ((1000, 1000), 0.1, 0.05), ((400, 400), 0.2, -0.12)):
        yield Promise("calibration_error", rows, value, gap, {"spread": 0.43})
    yield Promise("correlation", (200, 200), 0.0, 0.2)
    yield Promise("correlation", (60, 60), 0.0, 0.4)
    for margin, rows, value in (("0.2", (50, 50), 0.1), ("0.1", (300, 300), 0.2), ("four-fifths", (300, 600), 0.6),
                                ("ratio:0.5", (200, 200), 0.3), ("0.05", (2000, 1000), 0.2)):  # fmt: skip
        yield Promise("selection_rate", rows, value, 0.0, margin=margin)
    yield Promise("fnr", (400, 800), 0.2, 0.0, {"base_rate": 0.4}, margin="0.1")
    yield Promise("f1", (400, 400), 0.8, 0.0, {"base_rate": 0.4, "selection_rate": 0.4}, margin="0.1")
    yield Promise("balanced_accuracy", (300, 600), 0.8, 0.0, {"base_rate": 0.4}, margin="0.1")
    yield Promise("auc", (300, 600), 0.8, 0.0, {"base_rate": 0.4}, margin="0.1")
    yield Promise("auc", (300, 600), 0.8, 0.0, {"base_rate": 0.4}, margin="ratio:0.9")
    yield Promise("mean_score", (200, 100), 1.0, 0.0, {"spread": 0.8}, margin="0.3")
    yield Promise("log_loss", (300, 300), 0.5, 0.0, {"spread": 0.4}, margin="four-fifths")
    yield Promise("calibration_error", (600, 600), 0.1, 0.0, {"spread": 0.43}, margin="0.1")
    for p in (Promise("fnr", (150, 300), 0.2, 0.2, {"base_rate": (0.4, 0.3)}),
              Promise("balanced_accuracy", (150, 300), 0.75, -0.12, {"base_rate": (0.4, 0.3)}),
              Promise("auc", (150, 300), 0.75, -0.14, {"base_rate": (0.4, 0.3)}),
              Promise("log_loss", (120, 200), 0.5, 0.15, {"spread": 0.4}),
              Promise("calibration_error", (300, 600), 0.05, 0.12, {"spread": 0.43}),
              Promise("correlation", (200, 200), 0.0, 0.2)):  # fmt: skip
        yield Promise(p.metric, p.rows, p.value, p.difference, p.assumed, route="pilot")


def short() -> Iterator[Promise]:
    """Yield one design per kind of test."""
    yield Promise("selection_rate", (50, 20), 0.9, -0.3)
    yield Promise("fnr", (150, 300), 0.2, 0.2, {"base_rate": (0.4, 0.3)})
    yield Promise("balanced_accuracy", (150, 300), 0.75, -0.12, {"base_rate": (0.4, 0.3)})
    yield Promise("auc", (150, 300), 0.75, -0.14, {"base_rate": (0.4, 0.3)})
    yield Promise("mean_score", (12, 30), 0.0, 1.0, {"spread": 1.0})
    yield Promise("calibration_error", (300, 600), 0.05, 0.12, {"spread": 0.43})
    yield Promise("correlation", (200, 200), 0.0, 0.2)
    yield Promise("selection_rate", (300, 300), 0.2, 0.0, margin="0.1")
    yield Promise("auc", (300, 600), 0.8, 0.0, {"base_rate": 0.4}, margin="0.1")


def main() -> None:
    """Run the grid and store it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--part", default="1/1", help="such as 2/8: every eighth design; stored beside the others")
    parser.add_argument("--first", type=int, default=0, help="number of the first simulated data set")
    words = parser.parse_args()
    place, parts = (int(word) for word in words.part.split("/"))
    designs = list(grid())[place - 1 :: parts]
    with ProcessPoolExecutor(words.workers) as pool:
        wanted = [words.replications * (5 if cheap(p) else 2) // 5 for p in designs]
        jobs = [pool.submit(simulate, p, n, words.first) for p, n in zip(designs, wanted, strict=True)]
        rows = []
        for job in jobs:
            rows.append(row := job.result())
            print(f"{row['design']}: promised {row['promised']:.3f}, shown {row['shown'] / row['audits']:.3f} "
                  f"[{row['low']:.3f}, {row['high']:.3f}]", flush=True)  # fmt: skip
    path = HERE / "power.json"
    kept = json.loads(path.read_text())["rows"] if parts > 1 and path.exists() else []
    found = {row["design"]: row for row in (*kept, *rows)}
    ordered = [found[p.name] for p in grid() if p.name in found]
    path.write_text(json.dumps({"alpha": 0.05, "rows": ordered}, indent=1) + "\n")


if __name__ == "__main__":
    main()
