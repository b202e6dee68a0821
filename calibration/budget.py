"""Family-wise error of all five audits together, when nothing is unfair.

    python calibration/budget.py [--families 1000]    # about 15 minutes a thousand on one core; writes budget.json
    python calibration/budget.py --first 500          # more families, added to the stored ones

Two worlds, one model that is fixed before any data are drawn. It takes three features and a mark that is 0 for all
and becomes 1 when a person is recorded as a member of the other group.

* "nothing unfair": the group is independent of features and outcome. Every null hypothesis is true: rates, AUC,
  projection distance and proxies, because groups are alike; worst cases, because being recorded as the other group
  means the same to both (ECD), and one person in a hundred would be better off, which is the horizon (return
  levels, on the edge of their null hypothesis); similar people, because the tolerance is the larger of the two
  ratios that the model has in the population (on the edge too).
* "rates unfair": the same, but half of one group's outcomes 1 are turned to 0. Only findings whose null hypothesis
  is still true are counted: strong control.

Each world's families are judged by every correction. A family is wrong when any true null hypothesis gives the
verdict `disparity`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special, stats

import evenhand as eh
from evenhand.audits.verdict import settle
from evenhand.models.gradient import CallableGradient

HERE = Path(__file__).resolve().parent
ALPHA = 0.05
ROWS = 800
CORRECTIONS = ("holm", "bonferroni", "bh", "gatekeeping", "max-t", "none")
WORLDS = ("nothing unfair", "rates unfair")
HORIZON = 100
# One person in HORIZON has a larger x2.
EDGE = float(special.ndtri(1 - 1 / HORIZON))
SLOPES = np.array([0.8, -0.5, 0.4])
METRICS = ["selection_rate", "fnr", "fpr", "auc", "brier", "calibration_error"]
# What stays true when outcomes of one group are turned from 1 to 0 at random: what does not look at the outcome, what
# conditions on outcome 1, and similar people (the tolerance is that of the world).
STILL_TRUE = ("selection_rate", "fnr", "equal_opportunity", "loss_ratio", "error_ratio", "ecd", "return_level")


class FixedModel(CallableGradient):
    """A logistic model with its gradient, also a plain function for the audits that need none."""

    def __init__(self) -> None:
        super().__init__(self.log_odds, self.slopes, link="logit")

    @staticmethod
    def log_odds(X: np.ndarray) -> np.ndarray:
        """Return the log-odds of outcome 1; the mark lowers them for 99 in 100."""
        return X[:, :3] @ SLOPES + 0.3 * (X[:, 2] - EDGE) * X[:, 3]

    @staticmethod
    def slopes(X: np.ndarray) -> np.ndarray:
        """Return their gradient."""
        out = np.tile([*SLOPES, 0.0], (len(X), 1))
        out[:, 2] += 0.3 * X[:, 3]
        out[:, 3] = 0.3 * (X[:, 2] - EDGE)
        return out

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return the probability of outcome 1."""
        return special.expit(self.log_odds(X))


MODEL = FixedModel()


def recorded_as_other(columns: dict[str, np.ndarray], label: str) -> dict[str, np.ndarray]:
    """Set the mark: what the tail audit's `flip` does."""
    return {**columns, "mark": np.ones_like(columns["mark"])}


def draw(seed: int, world: str = WORLDS[0], rows: int = ROWS) -> eh.AuditData:
    """Draw one data set."""
    rng = np.random.default_rng([seed, 20])
    x, g = rng.normal(size=(rows, 3)), rng.integers(0, 2, rows)
    y = rng.random(rows) < special.expit(x @ SLOPES)
    if world != WORLDS[0]:
        y &= (g == 0) | (rng.random(rows) < 0.5)
    score = MODEL(np.column_stack([x, np.zeros(rows)]))
    return eh.AuditData.from_arrays(
        outcome=y.astype(int),
        decision=(score >= 0.5).astype(int),
        score=score,
        groups={"g": g},
        features={"x0": x[:, 0], "x1": x[:, 1], "x2": x[:, 2], "mark": np.zeros(rows)},
    )


def plan(tolerance: float) -> eh.Plan:
    """All five audits; the group audit's joint adjustment is made once and used where the correction asks for it."""
    return eh.Plan(
        audits=("group", "projection", "individual", "proxy", "tail"),
        alpha=ALPHA,
        correction="max-t",
        n_resamples=999,
        group={"metrics": METRICS},
        projection={"beside": False},
        individual={**SIMILAR, "tolerance": tolerance},
        proxy={"measure": "fpr"},
        tail={"horizon": HORIZON, "flip": recorded_as_other, "generator": "none"},
    )


SIMILAR = {"similarity": ["x2"], "refits": 0, "scale": "none", "steps": 100}


def tolerance(world: str, rows: int = 400_000) -> float:
    """Return the larger of the two mean ratios in a large sample that is not used again."""
    data = draw(10_000_000, world, rows)
    return max(f.estimate for f in eh.audit_individual(data, model=MODEL, **SIMILAR, rng=0))


def family(seed: int, world: str, allowed: float) -> dict[str, Any]:
    """Audit one data set and say, for each correction and each audit, whether a true null was rejected."""
    run = eh.audit(draw(seed, world), model=MODEL, plan=plan(allowed), rng=seed)
    out: dict[str, Any] = {}
    for correction in CORRECTIONS:
        wrong = [
            f
            for result in settle(run.results, alpha=ALPHA, correction=correction)
            for f in result
            if f.verdict == "disparity" and (world == WORLDS[0] or f.measure in STILL_TRUE)
        ]
        out[correction] = {name: any(f.audit == name for f in wrong) for name in run.plan["audits"]}
    out["tests"] = sum(bool(np.isfinite(f.pvalue)) for f in run.findings)
    out["missing"] = sorted({f"{f.audit} {f.measure}" for f in run.findings if f.verdict == "not_computable"})
    return out


def count(world: str, allowed: float, families: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add families up: one row per correction, with exact 99 % limits of the error."""
    seen = list(families)
    n, rows = len(seen), []
    for correction in CORRECTIONS:
        wrong = sum(any(f[correction].values()) for f in seen)
        limits = stats.binomtest(wrong, n).proportion_ci(0.99, method="exact")
        rows.append(
            {
                "world": world,
                "correction": correction,
                "families": n,
                "wrong": wrong,
                "low": round(float(limits.low), 4),
                "high": round(float(limits.high), 4),
                "by_audit": {a: sum(f[correction][a] for f in seen) for a in seen[0][correction]},
                "tests": round(sum(f["tests"] for f in seen) / n, 2),
                "not_computable": {m: sum(m in f["missing"] for f in seen) for f in seen for m in f["missing"]},
                "tolerance": round(allowed, 4),
            }
        )
    return rows


def _add(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Join two parts of one simulation."""
    n, wrong = old["families"] + new["families"], old["wrong"] + new["wrong"]
    limits = stats.binomtest(wrong, n).proportion_ci(0.99, method="exact")
    missing = {**old["not_computable"], **new["not_computable"]}
    return {
        **new,
        "families": n,
        "wrong": wrong,
        "low": round(float(limits.low), 4),
        "high": round(float(limits.high), 4),
        "by_audit": {a: old["by_audit"][a] + v for a, v in new["by_audit"].items()},
        "tests": round((old["tests"] * old["families"] + new["tests"] * new["families"]) / n, 2),
        "not_computable": {m: old["not_computable"].get(m, 0) + new["not_computable"].get(m, 0) for m in missing},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--families", type=int, default=500)
    parser.add_argument("--first", type=int, default=0, help="seed of the first family; above 0 adds to what is stored")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--tolerance", type=float, help="of the individual audit, where it was found before")
    parser.add_argument("--worlds", default=",".join(WORLDS))
    parser.add_argument("--out", type=Path, default=HERE / "budget.json")
    words = parser.parse_args()
    stored = json.loads(words.out.read_text()) if words.first and words.out.exists() else {"rows": []}
    old = {(r["world"], r["correction"]): r for r in stored["rows"]}
    for world in words.worlds.split(","):
        known = [r["tolerance"] for r in stored["rows"] if r["world"] == world]
        if words.tolerance is not None:
            known = [words.tolerance]
        allowed = known[0] if known else round(tolerance(world), 4)
        with ProcessPoolExecutor(words.workers) as pool:
            seeds = range(words.first, words.first + words.families)
            made = pool.map(family, seeds, [world] * len(seeds), [allowed] * len(seeds), chunksize=10)
            rows = count(world, allowed, made)
        for row in rows:
            key = (world, row["correction"])
            old[key] = _add(old[key], row) if key in old else row
            print(old[key], flush=True)
        content = {"alpha": ALPHA, "rows_per_family": ROWS, "rows": list(old.values())}
        words.out.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
