"""Do the tests of clustered rows hold their level, and do their intervals cover? And what if clusters are ignored?

Rows come in clusters whose rate, or mean, varies: the intraclass correlation is its variance over that of a row. Either
every cluster lies in one group (`within`: several rows of a person), or clusters have rows of both (`crossing`: one
officer decides over all; the share of the first group differs between clusters), or each has as many of either
(`pairs`). Sizes are equal, or vary as a geometric law does. The groups do not differ, except where coverage is
measured.

python calibration/clusters.py [--runs 2000] [--short]
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy import stats

from evenhand.audits.group.samples import samples_of
from evenhand.inference.samples import Draws, Samples
from evenhand.intake import AuditData
from evenhand.metrics import METRICS
from evenhand.summaries import Sums

HERE = Path(__file__).parent
LEVELS = (0.05, 0.01, 0.001)


@dataclass(frozen=True)
class Design:
    """Clusters of rows in two groups."""

    kind: str  # within, crossing, pairs
    clusters: int
    size: int  # rows of a cluster, on average
    correlation: float  # intraclass
    rate: float = 0.3  # of decision 1
    equal: bool = True  # cluster sizes
    metric: str = "selection_rate"

    def draw(self, rng: np.random.Generator, gap: float = 0.0) -> dict[str, np.ndarray]:
        """Draw rows: cluster, group, decision, outcome and score; the first group's rate is higher by the gap."""
        c = self.clusters
        sizes = np.full(c, self.size) if self.equal else rng.geometric(1 / self.size, c)
        if self.kind == "within":
            first = np.repeat(np.arange(c) < max(round(c / 3), 3), sizes)  # a third of the clusters
        elif self.kind == "crossing":
            first = rng.random(sizes.sum()) < np.repeat(rng.beta(1.0, 2.0, c), sizes)
        else:
            first = np.concatenate([np.arange(n) % 2 == 0 for n in 2 * sizes])
            sizes = 2 * sizes
        cluster = np.repeat(np.arange(c), sizes)
        # A normal value of each row with this correlation within clusters.
        tau = self.correlation
        latent = np.sqrt(tau) * rng.normal(size=c)[cluster] + np.sqrt(1 - tau) * rng.normal(size=cluster.size)
        outcome = (rng.random(cluster.size) < 0.5).astype(int)
        rate = self.rate + gap * first
        # Shares of a beta law, so that the correlation is that of the decisions.
        if tau > 0:
            spread = (1 - tau) / tau
            high, low = (rng.beta(r * spread, (1 - r) * spread, c) for r in (self.rate + gap, self.rate))
            if self.kind != "within":  # both groups of a cluster are judged by the same officer
                u = rng.random(c)
                high, low = (stats.beta.ppf(u, r * spread, (1 - r) * spread) for r in (self.rate + gap, self.rate))
            rate = np.where(first, high[cluster], low[cluster])
        decision = (rng.random(cluster.size) < rate).astype(int)
        score = latent + 1.0 * outcome + gap * first
        return {"cluster": cluster, "first": first, "decision": decision, "outcome": outcome, "score": score}


SIZE = (
    *(Design("within", 40, 20, r, equal=False) for r in (0.0, 0.5)),
    *(Design("within", c, m, r) for c, m in ((10, 20), (30, 5), (100, 5)) for r in (0.0, 0.1, 0.5)),
    *(Design("within", 60, 5, r, rate=0.03) for r in (0.0, 0.3)),
    Design("within", 30, 2, 0.3),
    Design("within", 15, 200, 0.1),
    Design("within", 500, 4, 0.3),
    *(Design("crossing", c, m, r) for c, m in ((10, 20), (30, 5), (100, 5)) for r in (0.0, 0.5)),
    *(Design("crossing", 40, 20, r, equal=False) for r in (0.0, 0.5)),
    *(Design("crossing", 60, 5, r, rate=0.03) for r in (0.0, 0.3)),
    Design("crossing", 15, 200, 0.1),
    Design("crossing", 500, 4, 0.3),
    *(Design("pairs", c, 1, 0.3) for c in (20, 200)),
    *(Design(kind, 40, 8, 0.3, metric=m) for kind in ("within", "crossing") for m in ("auc", "mean_score", "f1")),
)
COVERAGE = (
    Design("within", 20, 10, 0.1),
    Design("within", 60, 5, 0.3, equal=False),
    Design("crossing", 20, 10, 0.1),
    Design("crossing", 60, 5, 0.3, equal=False),
)
GAP = 0.2


def samples(design: Design, rows: dict[str, np.ndarray], *, clustered: bool) -> Samples:
    """Return the samples that the audit compares; NaN estimates where a group is empty."""
    more: dict[str, Any] = {"cluster": rows["cluster"]} if clustered else {}
    data = AuditData.from_arrays(
        outcome=rows["outcome"],
        decision=rows["decision"],
        score=rows["score"],
        groups={"g": np.where(rows["first"], "a", "b")},
        **more,
    )
    return samples_of(METRICS[design.metric], Sums(data), data.attributes[0])


def one_size(design: Design, seed: int) -> tuple[float, float]:
    """Return the p-values with and without clusters; 1 where there is no test."""
    rows = design.draw(np.random.default_rng([seed, design.clusters, design.size]))
    found = []
    for clustered in (True, False):
        if np.unique(rows["first"]).size < 2:
            return 1.0, 1.0
        made = samples(design, rows, clustered=clustered)
        p = made.test(0, 1, Draws(seed=seed, name="calibration", n_resamples=999)).pvalue
        found.append(p if p == p else 1.0)
    return found[0], found[1]


def one_cover(design: Design, seed: int) -> tuple[bool, bool]:
    """Say whether the 95 % intervals with and without clusters cover the true difference."""
    rows = design.draw(np.random.default_rng([seed, design.clusters, 7]), GAP)
    covers = []
    for clustered in (True, False):
        made = samples(design, rows, clustered=clustered)
        draws = Draws(seed=seed, name="calibration", n_resamples=999)
        low, high, _ = made.interval(0, 1, level=0.95, ratio=False, draws=draws)
        covers.append(bool(low <= GAP <= high))
    return covers[0], covers[1]


def run(runs: int, seconds: float) -> dict[str, Any]:
    """Run the grid within a time; each design gets as many runs as the time leaves, at most `runs`."""
    started, size, coverage = time.process_time(), [], []
    todo = len(SIZE) + len(COVERAGE)
    for number, design in enumerate((*SIZE, *COVERAGE)):
        left = (seconds - (time.process_time() - started)) / (todo - number)
        begun, answers = time.process_time(), []
        for seed in range(runs):
            answers.append((one_size if number < len(SIZE) else one_cover)(design, seed))
            if time.process_time() - begun > left:
                break
        made = np.array(answers)
        if number < len(SIZE):
            rates = {f"{a:g}": [float((made[:, k] <= a).mean()) for k in (0, 1)] for a in LEVELS}
            size.append({**asdict(design), "runs": len(made), "rejected": rates})
        else:
            coverage.append({**asdict(design), "runs": len(made), "covered": made.mean(axis=0).tolist()})
        print(size[-1] if number < len(SIZE) else coverage[-1], flush=True)
    return {"levels": LEVELS, "gap": GAP, "size": size, "coverage": coverage}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=700.0, help="processor time of the whole run")
    parser.add_argument("--short", action="store_true")
    given = parser.parse_args()
    if given.short:
        run(50, 60.0)
    else:
        (HERE / "clusters.json").write_text(json.dumps(run(given.runs, given.seconds), indent=1) + "\n")
