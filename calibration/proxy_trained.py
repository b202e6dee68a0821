"""Trained models in the proxy audit: are features that carry nothing named, and does the interval cover?

    python calibration/proxy_trained.py                       # writes proxy_trained.json
    python calibration/proxy_trained.py --samples 20 --models 1 --only logistic --keep   # some worlds more

Synthetic people: `x` (matters, differs between the groups), `u` (matters, does not differ), and features unrelated to
the outcome given those: `z` and the category `k` differ between the groups, `e` and `f` do not. Adult: real features of
women and men, and an outcome drawn from logistic models of P(income > 50K | x), one for each sex, so that the truth is
known. A model is trained on rows of its own (2,000; Adult: 4,000) and never has exactly zero use for a feature. What
each feature truly carries is summed over a large population, values of a feature drawn apart from the others, without
any of the audit's code. "False" is a feature that is named and carries at most the margin in truth. With groups at
random there is no gap, and whatever is named is false.
"""

from __future__ import annotations

import argparse
import json
import warnings
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import evenhand as eh

SEED = 20263
MARGIN = 0.01
SPOTS = 120  # values of a feature, at even quantiles of each group, over which the truth is summed
COLUMNS = ("tested", "covered", "equivalent", "false_equivalent", "disparity", "true", "mean")
IDLE = ("z", "k", "e", "f")


class People(NamedTuple):
    """Rows with the probability of outcome 1."""

    features: pd.DataFrame
    inside: np.ndarray
    chance: np.ndarray


class World(NamedTuple):
    """What is audited."""

    kind: str  # of people
    model: str
    measure: str
    groups: str  # "real" or "random"
    rows: int

    @property
    def name(self) -> str:
        """Return one line that names the world."""
        return f"{self.kind}, {self.model}, {self.measure}, {self.groups} groups, {self.rows} rows"


WORLDS = (
    *(World("synthetic", m, s, "real", 1500) for m in ("logistic", "boosting", "network") for s in ("fpr", "sp")),
    *(World("synthetic", m, "fpr", "random", 1500) for m in ("logistic", "boosting", "network")),
    *(World("adult", m, s, "real", 2000) for m in ("logistic", "boosting") for s in ("sp", "fpr")),
    World("adult", "logistic", "fpr", "random", 2000),
)


def synthetic(rng: np.random.Generator, rows: int) -> People:
    """Draw people of whom two features matter."""
    g = rng.random(rows) < 0.4
    features = pd.DataFrame(
        {
            "x": rng.normal(size=rows) + 0.8 * g,
            "u": rng.normal(size=rows),
            "z": rng.normal(size=rows) + 0.8 * g,
            "k": np.where(rng.random(rows) < 0.3 + 0.3 * g, "p", rng.choice(["q", "r"], rows)).astype(object),
            "e": rng.normal(size=rows),
            "f": (rng.random(rows) < 0.3).astype(float),
        }
    )
    return People(features, g, expit(-1 + features["x"].to_numpy() + 0.7 * features["u"].to_numpy()))


@cache
def _adult() -> People:
    table = pd.DataFrame(eh.datasets.adult_table()).dropna()
    names = ["age", "education_num", "capital_gain", "hours_per_week", "marital_status", "workclass", "occupation"]
    features = table[names].reset_index(drop=True)
    inside, y = (table["sex"] == "Female").to_numpy(), (table["income"] == ">50K").to_numpy()
    chance = np.empty(len(y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for side in (inside, ~inside):
            chance[side] = fitted("logistic", features[side], y[side], 0).predict_proba(features[side])[:, 1]
    return People(features, inside, chance)


def people(kind: str, rng: np.random.Generator, rows: int) -> People:
    """Draw people of one kind."""
    if kind == "synthetic":
        return synthetic(rng, rows)
    whole = _adult()
    chosen = rng.choice(len(whole.inside), rows)
    return People(whole.features.iloc[chosen].reset_index(drop=True), whole.inside[chosen], whole.chance[chosen])


def fitted(kind: str, features: pd.DataFrame, outcome: np.ndarray, seed: int) -> Any:
    """Fit a model as a user would."""
    words = [c for c in features if not pd.api.types.is_numeric_dtype(features[c])]
    numbers = [c for c in features if c not in words]
    learner = {
        "logistic": lambda: LogisticRegression(max_iter=1000),
        "boosting": lambda: HistGradientBoostingClassifier(max_iter=30, max_leaf_nodes=8, random_state=seed),
        "network": lambda: MLPClassifier((16,), max_iter=200, random_state=seed),
    }[kind]()
    encode = make_column_transformer(
        (StandardScaler(), numbers), (OneHotEncoder(sparse_output=False, handle_unknown="ignore"), words)
    )
    return make_pipeline(encode, learner).fit(features, outcome)


def outcome_chance(kind: str, features: pd.DataFrame) -> np.ndarray:
    """Return P(Y=1 | x) in the group at changed features."""
    if kind == "synthetic":
        return expit(-1 + features["x"].to_numpy() + 0.7 * features["u"].to_numpy())
    return _women().predict_proba(features)[:, 1]


@cache
def _women() -> Any:
    whole = _adult()
    table = pd.DataFrame(eh.datasets.adult_table()).dropna()
    y = (table["income"] == ">50K").to_numpy()
    return fitted("logistic", whole.features[whole.inside], y[whole.inside], 0)


def truth(world: World, model: Any) -> dict[str, float]:
    """Sum what each feature carries over a population."""
    if world.groups == "random":
        return {}
    some = _adult() if world.kind == "adult" else synthetic(np.random.default_rng(7), 400_000)
    group = some.features[some.inside].sample(1500, random_state=0)
    lowest = {c: some.features.loc[some.inside, c].min() for c in group if pd.api.types.is_numeric_dtype(group[c])}
    highest = {c: some.features.loc[some.inside, c].max() for c in lowest}

    def parts(features: pd.DataFrame) -> np.ndarray:
        h = model.predict_proba(features)[:, 1]
        if world.measure == "sp":
            return np.array([h.mean(), 1.0])
        e = outcome_chance(world.kind, features)
        return np.array([(h * (1 - e)).mean(), (1 - e).mean()])

    here = parts(group)
    out = {}
    for name in group:
        both = []
        for side in (some.inside, ~some.inside):
            column = some.features.loc[side, name]
            if name in lowest:
                spots = np.sort(column.to_numpy())[((np.arange(SPOTS) + 0.5) / SPOTS * len(column)).astype(int)]
                shares = pd.Series(np.clip(spots, lowest[name], highest[name])).value_counts(normalize=True)
                if name == "capital_gain":  # nearly always 0: all its values
                    shares = column.clip(lowest[name], highest[name]).value_counts(normalize=True)
            else:
                shares = column.value_counts(normalize=True)
            both.append(shares)
        means = {v: parts(group.assign(**{name: v})) for v in set(both[0].index) | set(both[1].index)}
        sums = [sum(share * means[v] for v, share in side.items()) for side in both]
        moved = here + sums[1] - sums[0]
        out[name] = float(here[0] / here[1] - moved[0] / moved[1])
    return out


def run(world: World, models: int, samples: int, seed: int) -> dict[str, Any]:
    """Audit many samples of several trained models."""
    line: dict[str, Any] = {"world": world.name, "models": models, "samples": models * samples, "gap": 0, "rows": {}}
    for key in ("named", "idle_named", "named_01", "idle_named_01"):
        line[key] = 0
    for m in range(models):
        rng = np.random.default_rng([seed, m, 0])
        learned = people(world.kind, rng, 4000 if world.kind == "adult" else 2000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = fitted(world.model, learned.features, rng.random(len(learned.chance)) < learned.chance, m)
        exact = truth(world, model)
        for k in range(samples):
            draws = np.random.default_rng([seed, m, 1 + k])
            some = people(world.kind, draws, world.rows)
            inside = draws.permutation(some.inside) if world.groups == "random" else some.inside
            data = eh.AuditData.from_arrays(
                outcome=(draws.random(world.rows) < some.chance).astype(int),
                groups={"g": np.where(inside, "group", "reference")},
                features={c: some.features[c].to_numpy() for c in some.features},
            )
            found = eh.audit_proxy(data, measure=world.measure, reference="reference", model=model, max_steps=0)
            note(line, found, exact)
    return line


def note(line: dict[str, Any], found: Any, exact: dict[str, float]) -> None:
    """Count one audit."""
    line["gap"] += found[0].verdict == "disparity"
    for level, mark in ((0.05, ""), (0.01, "_01")):
        named = {f.measure.partition(":")[2] for f in found.findings[1:] if f.pvalue_adjusted <= level}
        false = {name for name in named if abs(exact.get(name, 0.0)) <= MARGIN}
        line[f"named{mark}"] += bool(false)
        line[f"idle_named{mark}"] += bool(named & set(IDLE))
    for f in found.findings[1:]:
        name = f.measure.partition(":")[2]
        row = line["rows"].setdefault(name, dict.fromkeys(COLUMNS, 0))
        true = exact.get(name, 0.0)
        row["true"] += true
        row["mean"] += f.estimate
        if f.interval is not None:
            row["tested"] += 1
            row["covered"] += f.interval.low - 1e-9 <= true <= f.interval.high + 1e-9
            row["false_equivalent"] += f.verdict == "equivalent" and abs(true) > MARGIN
        row["equivalent"] += f.verdict == "equivalent"
        row["disparity"] += f.verdict == "disparity"


def report(line: dict[str, Any]) -> None:
    """Print one world."""
    n = line["samples"]
    print(
        f"{line['world']}: gap shown {line['gap'] / n:.3f}, any false name {line['named'] / n:.3f} at .05, "
        f"{line['named_01'] / n:.3f} at .01; unrelated features named {line['idle_named'] / n:.3f}"
    )
    for name, row in line["rows"].items():
        if row["tested"]:
            print(
                f"    {name:15s} true {row['true'] / n:+.4f} mean {row['mean'] / n:+.4f} coverage "
                f"{row['covered'] / row['tested']:.3f} disparity {row['disparity'] / n:.3f} equivalent "
                f"{row['equivalent'] / n:.3f}",
                flush=True,
            )


def main() -> None:
    """Run the worlds and write them down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=4)
    parser.add_argument("--samples", type=int, default=25, help="audits of each model")
    parser.add_argument("--only", default="", help="run worlds whose name contains this")
    parser.add_argument("--keep", action="store_true", help="leave worlds that are stored as they are")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    asked = parser.parse_args()
    stored: dict[str, Any] = {"seed": asked.seed, "margin": MARGIN, "lines": []}
    if asked.keep and asked.out.exists():
        stored = json.loads(asked.out.read_text())
    done = {line["world"] for line in stored["lines"]}
    for world in WORLDS:
        if asked.only in world.name and world.name not in done:
            stored["lines"].append(run(world, asked.models, asked.samples, asked.seed))
            report(stored["lines"][-1])
            asked.out.write_text(json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    main()
