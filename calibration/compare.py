"""Does the comparison of two models hold its level, and what does pairing gain?

People of two groups are decided about by an old and a new model whose true differences between the groups are known.
For each design: how often a change is shown where there is none, how often the interval covers the true change, how
often "worse" or "better" is said of a difference as large as before, and, where there is a change, how often it is
shown by the paired test and by a test that takes the two sides for different people.

    python calibration/compare.py                  # 2,000 samples of each design; writes compare.json
    python calibration/compare.py --samples 200    # quicker; prints only
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special

import evenhand as eh

HERE = Path(__file__).parent
LEVELS = (0.05, 0.01, 0.001)
Draw = Callable[[np.random.Generator], dict[str, Any]]


@dataclass(frozen=True)
class Design:
    """One way to draw people and decide about them twice."""

    name: str
    metric: str
    change: float  # the true change of the difference, b minus a of (first group minus second)
    same_size: bool  # whether the difference is as large as before
    draw: Draw


def tables(
    sizes: tuple[int, int],
    old: tuple[float, float],
    gained: tuple[float, float],
    lost: tuple[float, float],
) -> Draw:
    """Decide at given rates; some people gain the decision under the new model, some lose it (shares of all)."""

    def draw(rng: np.random.Generator) -> dict[str, Any]:
        groups, one, two = [], [], []
        for k, n in enumerate(sizes):
            shares = [gained[k], lost[k], old[k] - lost[k], 1 - old[k] - gained[k]]
            counts = rng.multinomial(n, shares)
            groups += [f"g{k}"] * n
            one += [0] * counts[0] + [1] * counts[1] + [1] * counts[2] + [0] * counts[3]
            two += [1] * counts[0] + [0] * counts[1] + [1] * counts[2] + [0] * counts[3]
        return {"groups": groups, "a": np.array(one), "b": np.array(two), "outcome": np.ones(len(one), dtype=int)}

    return draw


def scores(sizes: tuple[int, int], skill: tuple[float, float], better: tuple[float, float], role: str) -> Draw:
    """Give correlated scores under both models; `better` is added to the new one's separation of outcomes."""

    def draw(rng: np.random.Generator) -> dict[str, Any]:
        n = sum(sizes)
        g = np.repeat([0, 1], sizes)
        y = rng.integers(0, 2, n)
        shared, own = rng.normal(size=n), rng.normal(size=(2, n))
        a, b = (
            np.asarray(s)[g] * y + 0.8 * shared + 0.6 * noise
            for s, noise in zip((skill, tuple(np.add(skill, better))), own, strict=True)
        )
        a, b = special.expit(a), special.expit(b)
        if role == "decision":
            a, b = (a > 0.6).astype(int), (b > 0.6).astype(int)
        return {"groups": np.array(["g0", "g1"])[g], "a": a, "b": b, "outcome": y}

    return draw


def designs() -> list[Design]:
    """List the grid."""
    rate = "selection_rate"
    null = [
        Design(
            "equal gaps, unequal rates",
            rate,
            0.0,
            True,
            tables((400, 400), (0.5, 0.2), (0.06, 0.06), (0.03, 0.03)),
        ),
        Design(
            "equal gaps, 200 and 2,000 rows",
            rate,
            0.0,
            True,
            tables((200, 2000), (0.5, 0.3), (0.05, 0.05), (0.05, 0.05)),
        ),
        Design(
            "few decided otherwise (1 %)",
            rate,
            0.0,
            True,
            tables((500, 500), (0.4, 0.3), (0.005, 0.005), (0.005, 0.005)),
        ),
        Design(
            "few decided otherwise, 50 and 1,000 rows",
            rate,
            0.0,
            True,
            tables((50, 1000), (0.4, 0.3), (0.02, 0.02), (0.01, 0.01)),
        ),
        Design(
            "many decided otherwise in one group only",
            rate,
            0.0,
            True,
            tables((300, 300), (0.5, 0.4), (0.15, 0.01), (0.15, 0.01)),
        ),
        Design("one model equal to the other", rate, 0.0, True, tables((300, 300), (0.5, 0.4), (0.0, 0.0), (0.0, 0.0))),
        Design(
            "no difference before or after",
            rate,
            0.0,
            True,
            tables((300, 300), (0.4, 0.4), (0.05, 0.05), (0.05, 0.05)),
        ),
        Design(
            "turned over: as large as before",
            rate,
            0.2,
            True,
            tables((600, 600), (0.4, 0.5), (0.12, 0.02), (0.02, 0.12)),
        ),
        Design("AUC, unequal skill", "auc", 0.0, True, scores((300, 300), (1.0, 2.0), (0.0, 0.0), "score")),
        Design("AUC, 80 and 800 rows", "auc", 0.0, True, scores((80, 800), (1.0, 1.5), (0.0, 0.0), "score")),
        Design("precision", "precision", 0.0, True, scores((400, 400), (1.5, 1.5), (0.0, 0.0), "decision")),
        Design("F1, 150 and 1,500 rows", "f1", 0.0, True, scores((150, 1500), (1.5, 1.5), (0.0, 0.0), "decision")),
        Design(
            "balanced accuracy",
            "balanced_accuracy",
            0.0,
            True,
            scores((300, 300), (1.5, 1.5), (0.0, 0.0), "decision"),
        ),
        Design("mean score", "mean_score", 0.0, True, scores((200, 200), (1.0, 1.0), (0.0, 0.0), "score")),
        Design("Brier score, 60 and 600 rows", "brier", 0.0, True, scores((60, 600), (1.0, 1.0), (0.0, 0.0), "score")),
    ]
    power = [
        Design("power: change of .05", rate, 0.05, False, tables((1000, 1000), (0.5, 0.4), (0.06, 0.01), (0.01, 0.01))),
        Design(
            "power: change of .02, few otherwise",
            rate,
            0.02,
            False,
            tables((1000, 1000), (0.5, 0.4), (0.025, 0.005), (0.005, 0.005)),
        ),
    ]
    return null + power


def unpaired(found: eh.Change) -> float:
    """Return the p-value of the change if the two sides were different people."""
    square = 0.0
    for v in found.values.values():
        square += sum(v[key] * (1 - v[key]) / v["rows"] for key in ("before", "after"))
    return 2 * float(special.ndtr(-abs(found.estimate) / math.sqrt(square))) if square > 0 else 1.0


def rates(design: Design, samples: int, seed: int) -> dict[str, Any]:
    """Draw samples, compare, and count."""
    rng = np.random.default_rng([seed, sum(map(ord, design.name))])
    counted: dict[str, Any] = {
        "design": design.name,
        "metric": design.metric,
        "samples": samples,
        "same": design.same_size,
    }
    counted |= {"change": [0] * 3, "size": [0] * 3, "unpaired": [0] * 3, "covered": 0, "computable": 0}
    for _ in range(samples):
        drawn = design.draw(rng)
        data = eh.AuditData.from_arrays(
            outcome=drawn["outcome"], decision=drawn["outcome"], groups={"g": drawn["groups"]}
        )
        role = "score" if drawn["a"].dtype.kind == "f" else "decision"
        found = eh.compare(
            data, {role: drawn["a"]}, {role: drawn["b"]}, metrics=[design.metric], reference="g1", n_resamples=999
        )[0]
        if found.interval is None:
            continue
        counted["computable"] += 1
        counted["covered"] += found.interval.low <= design.change <= found.interval.high
        for j, alpha in enumerate(LEVELS):
            counted["change"][j] += found.change_pvalue <= alpha
            counted["size"][j] += found.pvalue <= alpha
            counted["unpaired"][j] += design.metric == "selection_rate" and unpaired(found) <= alpha
    return counted


def census() -> list[dict[str, Any]]:
    """Compare two models of income, with and without marital status, on the half of Adult that neither has seen."""
    import pandas as pd
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    table = pd.DataFrame(dict(eh.datasets.adult_table()))
    columns = ["age", "education_num", "hours_per_week", "occupation", "marital_status"]
    y = (table["income"] == ">50K").to_numpy().astype(int)
    half = np.random.default_rng(0).random(len(table)) < 0.5
    decisions = []
    for names in (columns, columns[:-1]):
        X = pd.get_dummies(table[names]).astype(float)
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(X[half], y[half])
        decisions.append(model.predict(X[~half]))
    data = eh.AuditData.from_arrays(
        outcome=y[~half], decision=y[~half], groups={"sex": table["sex"][~half].to_numpy(dtype=object)}
    )
    found = eh.compare(data, *decisions, metrics=["selection_rate", "fnr", "fpr"])
    lines = []
    for change in found:
        assert change.interval is not None
        apart = 0.0
        for v in change.values.values():
            apart += sum(v[key] * (1 - v[key]) / v["rows"] for key in ("before", "after"))
        error = (change.interval.high - change.interval.low) / (2 * float(special.ndtri(0.975)))
        line = change.to_dict() | {"error": error, "error_apart": math.sqrt(apart), "rows": found.data["rows"]}
        lines.append(line)
    return lines


def write(parts: dict[str, Any]) -> None:
    """Put parts of the result into ``compare.json``."""
    place = HERE / "compare.json"
    stored = json.loads(place.read_text()) if place.exists() else {}
    place.write_text(json.dumps({**stored, "levels": LEVELS, **parts}, indent=1) + "\n")


def main() -> None:
    """Run the grid and write it down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--census", action="store_true", help="only the two models of Adult")
    asked = parser.parse_args()
    lines = []
    for design in [] if asked.census else designs():
        start = time.perf_counter()
        lines.append(rates(design, asked.samples, asked.seed))
        print(f"{lines[-1]} {time.perf_counter() - start:.0f} s", flush=True)
        if asked.samples >= 1000:
            write({"lines": lines})
    if asked.samples >= 1000 or asked.census:
        write({"census": census()})


if __name__ == "__main__":
    main()
