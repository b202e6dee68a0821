"""Does the certificate hold? How often is a model returned whose true disparity exceeds the margin?

Each run draws people at random from a population whose every person is known, repairs a model with `evenhand.mitigate`
as a user would, and looks up the returned model's true disparity in the whole population. Beside it, on the same
people: what happens when the best model is taken whose disparity looks small enough on one holdout, or in training.

python calibration/mitigation.py [--runs 1000] [--rows 1000 5000 20000] [--only NAME] [--workers 2]
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from scipy import special, stats

import evenhand as eh
from evenhand.repair.candidates import decide, training_of
from evenhand.repair.parts import three_parts

HERE = Path(__file__).parent
ALPHA = 0.05


@dataclass(frozen=True)
class Population:
    """Everybody: features, group, outcome, and how many of each there are."""

    X: pd.DataFrame
    group: np.ndarray
    outcome: np.ndarray
    weight: np.ndarray

    def draw(self, rows: int, seed: int) -> eh.AuditData:
        """Draw people with replacement: independent draws from the population."""
        at = np.random.default_rng(seed).choice(self.weight.size, rows, p=self.weight)
        return eh.AuditData.from_arrays(
            outcome=self.outcome[at], groups={"group": self.group[at]}, features=self.X.iloc[at].reset_index(drop=True)
        )

    def gap(self, decision: np.ndarray, metric: str) -> float:
        """Return the true difference of a metric between the two groups."""
        rates = []
        for label in np.unique(self.group):
            inside = self.group == label
            if metric == "fnr":
                inside = inside & (self.outcome == 1)
            value = decision == 0 if metric == "fnr" else decision == 1
            rates.append(float(np.average(value[inside], weights=self.weight[inside])))
        return abs(rates[1] - rates[0])


def census() -> Population:
    """Return a census-like population of 2,880 kinds of people, each with its probability of the outcome."""
    levels = {
        "age": [20, 30, 40, 50, 60, 70],
        "schooling": [8, 10, 12, 14, 16],
        "hours": [10, 25, 40, 55],
        "work": ["office", "sales", "craft", "care", "farm", "none"],
        "married": ["yes", "no"],
        "group": ["a", "b"],
    }
    frame = pd.DataFrame(itertools.product(*levels.values()), columns=list(levels))
    rng = np.random.default_rng(0)
    b = (frame["group"] == "b").to_numpy()
    weight = np.where(b, 0.35, 0.65)
    for name in ("age", "schooling", "hours", "work", "married"):
        share = {g: rng.dirichlet(np.full(len(levels[name]), 3.0)) for g in ("a", "b")}
        mixed = {"a": share["a"], "b": 0.5 * share["a"] + 0.5 * share["b"]}
        place = frame[name].map({v: j for j, v in enumerate(levels[name])}).to_numpy()
        weight = weight * np.where(b, mixed["b"][place], mixed["a"][place])
    effect = {"office": 0.8, "sales": 0.3, "craft": 0.0, "care": -0.3, "farm": -0.6, "none": -1.2}
    logit = (
        0.03 * (frame["age"] - 45)
        + 0.25 * (frame["schooling"] - 12)
        + 0.03 * (frame["hours"] - 35)
        + frame["work"].map(effect)
        + 0.7 * (frame["married"] == "yes")
        - 0.9 * b
    ).to_numpy(dtype=float)
    p = special.expit(logit - 0.6)
    two = pd.concat([frame, frame], ignore_index=True)
    outcome = np.repeat([1, 0], len(frame))
    weights = np.concatenate([weight * p, weight * (1 - p)])
    return Population(two.drop(columns="group"), two["group"].to_numpy(), outcome, weights / weights.sum())


def adult() -> Population:
    """Return the Adult data of the package, taken as the whole population."""
    data = eh.datasets.load("adult")
    assert data.outcome is not None
    sex = data.attribute("sex")
    X = pd.DataFrame({name: np.asarray(column) for name, column in data.features.items()})
    labels = np.array(sex.labels)[sex.codes]
    size = len(X)
    return Population(X, labels, data.outcome.astype(int), np.full(size, 1 / size))


POPULATIONS = {"census": census, "adult": adult}
#: Population, metric and margin. Margins were set after a look at the true disparities of a few repaired models, where
#: these lie close to the margin on both sides: there a wrong certificate is likeliest.
DESIGNS = (
    ("census", "selection_rate", 0.06),
    ("census", "fnr", 0.10),
    ("adult", "selection_rate", 0.12),
    ("adult", "fnr", 0.06),
)
METHODS = ("reweighing", "threshold_optimizer")
_known: dict[str, Population] = {}


def one_run(design: tuple[str, str, float], rows: int, seed: int) -> dict[str, Any]:
    """Repair once, and look up the truth."""
    name, metric, margin = design
    if name not in _known:
        _known[name] = POPULATIONS[name]()
    people = _known[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = people.draw(rows, seed)
        try:
            result = eh.mitigate(
                data, methods=list(METHODS), metric=metric, margin=margin, most_loss=0.2, audits=False, rng=seed
            )
        except eh.DataError as error:
            return {"refused": str(error)}
        seen = [c for c in result.candidates if not c.reason]
        truth = {c.label: people.gap(_decided(c.model, people), metric) for c in seen}
        train, *others = three_parts(data, data.attributes, (0.5, 0.25, 0.25), seed)
        holdout = {c.label: _gap_on(c.model, others, metric) for c in seen}
        training = {c.label: _gap_on(c.model, [train], metric) for c in seen}
    by_label = {c.label: c for c in seen}

    def naive(gaps: dict[str, float]) -> float | None:
        small = [label for label, gap in gaps.items() if gap <= margin]
        best = max(small, key=lambda label: by_label[label].performance, default=None)
        return None if best is None else truth[best]

    return {
        "certified": truth.get(result.chosen),
        "holdout": naive(holdout),
        "training": naive(training),
        "accuracy": None if not result.chosen else by_label[result.chosen].performance,
    }


def _decided(model: Any, people: Population) -> np.ndarray:
    X = people.X.assign(group=people.group)
    more = getattr(getattr(model, "about", None), "decides_with_group", False)
    return np.asarray(model.predict(X if more else people.X))


def _gap_on(model: Any, parts: list[eh.AuditData], metric: str) -> float:
    """Return the difference between the groups that is seen on these parts."""
    decision = np.concatenate([decide(model, training_of(p, p.attributes)) for p in parts])
    group = np.concatenate([p.attributes[0].codes for p in parts])
    outcome = np.concatenate([p.outcome for p in parts if p.outcome is not None])
    rates = []
    for j in (0, 1):
        inside = (group == j) & ((outcome == 1) if metric == "fnr" else True)
        rates.append(float(np.mean((decision == 0 if metric == "fnr" else decision == 1)[inside])))
    return abs(rates[1] - rates[0])


def summary(runs: list[dict[str, Any]], margin: float) -> dict[str, Any]:
    """Count how often each way of choosing returned a model, and how often that exceeded the margin."""
    made: dict[str, Any] = {"runs": len(runs), "refused": sum("refused" in r for r in runs)}
    for way in ("certified", "holdout", "training"):
        gaps = [r[way] for r in runs if r.get(way) is not None]
        wrong = sum(g > margin for g in gaps)
        low, high = stats.binomtest(wrong, len(runs)).proportion_ci(0.95, method="exact") if runs else (0, 1)
        made[way] = {
            "returned": len(gaps) / len(runs),
            "wrong": wrong / len(runs),
            "wrong_low": float(low),
            "wrong_high": float(high),
            "worst_gap": max(gaps, default=None),
        }
    return made


def main() -> None:
    """Run all designs and store their rates."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 5000, 20000])
    parser.add_argument("--only", default="", help="a population")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=HERE / "mitigation.json")
    words = parser.parse_args()
    made = json.loads(words.out.read_text())["designs"] if words.out.exists() else {}
    with ProcessPoolExecutor(words.workers) as pool:
        for design in DESIGNS:
            if not design[0].startswith(words.only):
                continue
            for rows in words.rows:
                seeds = range(words.runs)
                runs = list(pool.map(one_run, [design] * words.runs, [rows] * words.runs, seeds, chunksize=5))
                key = f"{design[0]}, {design[1]} within {design[2]:g}, {rows} rows"
                made[key] = summary(runs, design[2])
                print(key, made[key], flush=True)
                text = {"methods": list(METHODS), "alpha": ALPHA, "version": eh.__version__, "designs": made}
                words.out.write_text(json.dumps(text, indent=1) + "\n")


if __name__ == "__main__":
    main()
