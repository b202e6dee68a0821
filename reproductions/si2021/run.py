"""Reproduce tables 1 to 3 and figure 1 of [si2021].

    python reproductions/si2021/run.py                      # 1000 replications, as in the paper
    python reproductions/si2021/run.py --profile stored     # what result.json was made with
    python reproductions/si2021/run.py --short              # a minute, for a check

Needs scikit-learn and the COMPAS, Drug and Arrhythmia files (see `evenhand datasets`). Writes result.json beside
this file unless `--out` says otherwise.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from evenhand import datasets
from evenhand.audits.projection import audit_projection
from evenhand.intake.data import AuditData
from evenhand.mitigation.linear_constraint import EqualMeans
from evenhand.results import plain

HERE = Path(__file__).parent
DATA = ("arrhythmia", "compas", "drug")
METHODS = ("naive", "donini")
PRINTED = {  # rejection percentages of the paper
    "table1": {"naive": (68.4, 100.0, 30.1), "donini": (11.6, 16.6, 21.6)},
    "table2": {"naive": (75.1, 100.0, 30.5), "donini": (13.7, 21.7, 17.2)},
    "table3": {"naive": (76.1, 100.0, 35.5), "donini": (14.0, 16.1, 23.0)},
}


@dataclass(frozen=True)
class People:
    """Features, outcome and sensitive attribute of a data set."""

    X: np.ndarray
    y: np.ndarray
    a: np.ndarray


def compas() -> People:
    """5,278 rows: African-American or Caucasian; age category, sex, charge degree as 0/1, priors z-scored."""
    t = datasets.table("compas")
    days = np.array([float(v) if v not in (None, "") else np.nan for v in t["days_b_screening_arrest"]], dtype=float)
    keep = (
        (np.abs(days) <= 30)
        & (np.asarray(t["is_recid"]).astype(int) != -1)
        & (np.asarray(t["c_charge_degree"]) != "O")
        & (np.asarray(t["score_text"]) != "N/A")
        & np.isin(t["race"], ["African-American", "Caucasian"])
    )
    priors = np.asarray(t["priors_count"]).astype(float)[keep]
    ages = np.asarray(t["age_cat"])[keep]
    X = np.column_stack(
        [
            *(ages == level for level in sorted(set(ages))),
            np.asarray(t["sex"])[keep] == "Male",
            (priors - priors.mean()) / priors.std(),
            np.asarray(t["c_charge_degree"])[keep] == "M",
        ]
    ).astype(float)
    y = np.asarray(t["two_year_recid"]).astype(int)[keep]
    return People(X, y, (np.asarray(t["race"])[keep] == "African-American").astype(int))


def drug() -> People:
    """1,885 rows: never used cannabis against used; White against others; 11 quantified features."""
    columns = [np.asarray(c) for c in datasets.table("drug").values()]
    X = np.column_stack([columns[k].astype(float) for k in range(1, 13) if k != 5])
    y = (np.char.strip(columns[18].astype(str)) == "CL0").astype(int)
    return People(X, y, np.isclose(columns[5].astype(float), -0.31685).astype(int))


def arrhythmia() -> People:
    """452 rows: normal against arrhythmia; sex; the first 12 other columns, z-scored, missing cells at the median."""
    columns = [np.asarray(c) for c in datasets.table("arrhythmia").values()]
    made = []
    for k in [0, *range(2, 13)]:
        v = np.array([float(x) if x not in (None, "?", "") else np.nan for x in columns[k]], dtype=float)
        v = np.where(np.isnan(v), np.nanmedian(v), v)
        made.append((v - v.mean()) / v.std())
    return People(
        np.column_stack(made), (columns[-1].astype(float) == 1).astype(int), columns[1].astype(float).astype(int)
    )


def split(people: People, rng: np.random.Generator, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Draw training rows with replacement inside each (a, y) cell; the rows never drawn are the test rows.

    So did the authors under the name of a 70/30 split: about half of the rows end up in the test set.
    """
    train = []
    for a in (0, 1):
        for y in (0, 1):
            rows = np.flatnonzero((people.a == a) & (people.y == y))
            train.append(rng.choice(rows, size=round(share * rows.size), replace=True))
    drawn = np.concatenate(train)
    return drawn, np.setdiff1d(np.arange(people.y.size), drawn)


def fit_svm(X: np.ndarray, y: np.ndarray, penalties: list[float], folds: int, rng: np.random.Generator) -> SVC:
    """Fit a linear SVM, C chosen by cross-validated accuracy; equal rows are merged into weights, which is exact."""
    order = rng.permutation(len(y))
    scores = np.zeros(len(penalties))
    if len(penalties) > 1:
        for fold in range(folds):
            held = order[fold::folds]
            rest = np.setdiff1d(order, held)
            for k, c in enumerate(penalties):
                scores[k] += float(np.sum(_svm(X[rest], y[rest], c).predict(X[held]) == y[held]))
    return _svm(X, y, penalties[int(np.argmax(scores))])


def _svm(X: np.ndarray, y: np.ndarray, c: float) -> SVC:
    rows, weight = np.unique(np.column_stack([X, y]), axis=0, return_counts=True)
    return SVC(kernel="linear", C=c, cache_size=50).fit(rows[:, :-1], rows[:, -1].astype(int), sample_weight=weight)


def audit(people: People, rows: np.ndarray, margin: np.ndarray, norm: float, alpha: float) -> dict[str, Any]:
    """Audit a linear classifier on test rows: ours, the authors' bandwidth, Welch."""
    decision = (margin >= 0).astype(int)
    if decision.min() == decision.max():
        return {"degenerate": True}
    data = AuditData.from_arrays(
        outcome=people.y[rows], decision=decision, groups={"a": [str(v) for v in people.a[rows]]}
    )
    told: dict[str, Any] = {"degenerate": False}
    authors = rows.size ** (-1 / 5)  # no scale: the estimator behind the printed tables
    for key, criterion, h in (
        ("table1", "equal_opportunity", None),
        ("table2", "equalized_odds", None),
        ("table1_authors", "equal_opportunity", authors),
        ("table2_authors", "equalized_odds", authors),
    ):
        result = audit_projection(
            data, criterion=criterion, distance=np.abs(margin) / norm, bandwidth=h, alpha=alpha, beside=False
        )
        told[key] = result[0].pvalue
        if key == "table1":
            evidence = result.evidence[0]
            told["table3"] = math.nan if evidence.welch is None else evidence.welch.pvalue
            told["statistic"] = math.nan if evidence.statistic is None else evidence.statistic
            told["threshold"] = math.nan if evidence.threshold is None else evidence.threshold
            told["people"] = 0 if evidence.changes is None else evidence.changes.people
    told["accuracy"] = float(np.mean(decision == people.y[rows]))
    return told


def one_replication(people: People, method: str, seed: list[int], options: dict[str, Any]) -> dict[str, Any]:
    """Split, fit, audit."""
    rng = np.random.default_rng(seed)
    train, test = split(people, rng, options["train_share"])
    X, Z = people.X[train], people.X[test]
    if method == "donini":
        equal = EqualMeans().fit(X, people.y[train], group=people.a[train])
        X, Z = equal.transform(X), equal.transform(Z)
    machine = fit_svm(X, people.y[train], options["svm_c"], options["folds"], rng)
    norm = float(np.linalg.norm(machine.coef_))
    if norm < 1e-9:
        return {"degenerate": True}
    return audit(people, test, machine.decision_function(Z), norm, options["alpha"])


def tables(found: dict[str, People], options: dict[str, Any], replications: int) -> dict[str, Any]:
    """Rejection shares of tables 1 to 3, degenerate classifiers counted apart."""
    told: dict[str, Any] = {}
    for name, people in found.items():
        for method in METHODS:
            start = time.perf_counter()
            runs = [
                one_replication(people, method, [options["seed"], DATA.index(name), k], options)
                for k in range(replications)
            ]
            real = [r for r in runs if not r["degenerate"]]
            line: dict[str, Any] = {"replications": replications, "degenerate": replications - len(real)}
            for key in ("table1", "table2", "table3", "table1_authors", "table2_authors"):
                p = np.array([r[key] for r in real], dtype=float)
                rejected = int(np.sum(p <= options["alpha"]))
                line[key] = {
                    "rejected": rejected,
                    "not_computable": int(np.isnan(p).sum()),
                    "percent_of_all": 100 * rejected / replications,
                    "percent_of_proper": 100 * rejected / max(1, len(real) - int(np.isnan(p).sum())),
                }
            line["median_people"] = float(np.median([r["people"] for r in real])) if real else math.nan
            line["accuracy"] = float(np.mean([r["accuracy"] for r in real])) if real else math.nan
            told[f"{name}/{method}"] = line
            print(f"{name:11s} {method:7s} {time.perf_counter() - start:6.1f} s  {json.dumps(line)}", flush=True)
    return told


def figure(found: dict[str, People], options: dict[str, Any], splits: int) -> dict[str, Any]:
    """Statistic, threshold and accuracy against the penalty: logistic on COMPAS, SVM on Drug."""
    told: dict[str, Any] = {}
    for name, kind in (("compas", "logistic"), ("drug", "svm")):
        if name not in found:
            continue
        people, lines = found[name], []
        for penalty in options[f"figure_penalty_{kind}"]:
            runs = []
            for k in range(splits):
                train, test = split(people, np.random.default_rng([options["seed"], 9, k]), options["train_share"])
                if kind == "logistic":
                    machine: Any = LogisticRegression(C=1 / penalty, max_iter=1000).fit(
                        people.X[train], people.y[train]
                    )
                else:
                    machine = _svm(people.X[train], people.y[train], 1 / penalty)
                norm = float(np.linalg.norm(machine.coef_))
                if norm > 1e-12:
                    margin = machine.decision_function(people.X[test])
                    runs.append(audit(people, test, margin, norm, options["alpha"]))
            real = [r for r in runs if not r["degenerate"]]
            mean = {
                k: float(np.mean([r[k] for r in real])) if real else math.nan
                for k in ("statistic", "threshold", "accuracy")
            }
            lines.append({"penalty": penalty, "degenerate": splits - len(real), **mean})
            print(name, kind, json.dumps(lines[-1]), flush=True)
        told[f"{name}/{kind}"] = lines
    return told


def main() -> None:
    """Run and write down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", choices=("full", "stored", "short"), default="full")
    parser.add_argument("--short", action="store_const", const="short", dest="profile")
    parser.add_argument("--data", default=",".join(DATA), help="which data sets, separated by commas")
    parser.add_argument("--out", type=Path, default=HERE / "result.json")
    asked = parser.parse_args()
    config = tomllib.loads((HERE / "config.toml").read_text())
    options, profile = config["common"], config[asked.profile]
    makers = {"arrhythmia": arrhythmia, "compas": compas, "drug": drug}
    found = {name: makers[name]() for name in asked.data.split(",")}
    result = {
        "profile": asked.profile,
        **profile,
        "rows": {name: int(p.y.size) for name, p in found.items()},
        "printed": PRINTED,
        "tables": tables(found, options, profile["replications"]),
        "figure1": figure(found, options, profile["figure_splits"]),
    }
    asked.out.write_text(json.dumps(plain(result), indent=1, allow_nan=False) + "\n")


if __name__ == "__main__":
    main()
