"""The scan: how often it reports a subgroup where none differs, on real people and in 500 designs nobody chose by hand.

python calibration/scan.py [--part compas ...]     # 70 minutes on one core; writes calibration/scan.json
python calibration/scan.py --short                 # a minute; prints only

Each sample is audited as a user would: `evenhand.audit_scan` with its defaults, but for the number of permutations. A
false find is a subgroup with the verdict `disparity` where decisions, given the outcome, are independent of everything
searched. In the world "planted" one attribute matters, and a find counts as false when its description does not name
that attribute. Parts that are named are run again; the others stay as they are stored.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import evenhand as eh

HERE = Path(__file__).parent
ALPHAS = (0.05, 0.01, 0.001)
PERMUTATIONS = 999


@dataclass(frozen=True)
class Sample:
    """People to search, and what a false find is."""

    outcome: np.ndarray
    decision: np.ndarray
    attributes: dict[str, np.ndarray]
    matters: str = ""  # the attribute that matters; none where empty
    rates: np.ndarray | None = None  # each person's true chance of decision 1, where known

    @property
    def data(self) -> eh.AuditData:
        """Return the people as audits take them."""
        return eh.AuditData.from_arrays(outcome=self.outcome, decision=self.decision, groups=self.attributes)


def shuffled(sample: Sample, rng: np.random.Generator) -> Sample:
    """Deal the decisions out at random among people of the same outcome."""
    decision = sample.decision.copy()
    for value in (0, 1):
        own = np.flatnonzero(sample.outcome == value)
        decision[own] = rng.permutation(decision[own])
    return Sample(sample.outcome, decision, sample.attributes)


@functools.cache
def compas() -> Sample:
    """Return ProPublica's people with six attributes."""
    table = pd.DataFrame(dict(eh.datasets.table("compas")))
    table = table[(table["days_b_screening_arrest"].abs() <= 30) & (table["c_charge_degree"] != "O")]
    priors = pd.cut(table["priors_count"], [-1, 0, 3, 100], labels=["0", "1-3", "more"])
    young = pd.cut(table["juv_fel_count"] + table["juv_misd_count"], [-1, 0, 100], labels=["none", "some"])
    columns = {name: table[name] for name in ("sex", "race", "age_cat", "c_charge_degree")}
    columns |= {"priors": priors, "juvenile": young}
    return Sample(
        table["two_year_recid"].to_numpy().astype(int),
        (table["decile_score"].to_numpy() >= 5).astype(int),
        {name: column.astype(str).to_numpy() for name, column in columns.items()},
    )


@functools.cache
def census() -> Sample:
    """Return half of Adult, decided by a model trained on the other half, with eight attributes."""
    table = pd.DataFrame(dict(eh.datasets.table("adult")))
    y = (table["income"].astype(str).str.strip(". ") == ">50K").to_numpy().astype(int)
    numbers = ["age", "education_num", "hours_per_week", "capital_gain"]
    words = ["workclass", "marital_status", "occupation"]
    one_hot = OneHotEncoder(handle_unknown="ignore", min_frequency=50)
    model = make_pipeline(
        make_column_transformer((StandardScaler(), numbers), (one_hot, words)), LogisticRegression(max_iter=500)
    )
    table[words] = table[words].astype(str)
    order = np.random.default_rng(0).permutation(len(table))
    first, second = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])
    decision = model.fit(table.iloc[first], y[first]).predict(table.iloc[second])
    people = table.iloc[second]
    columns = {name: people[name] for name in ("sex", "race", *words)}
    columns |= {
        "age": pd.cut(people["age"], [0, 25, 35, 45, 55, 100]),
        "hours": pd.cut(people["hours_per_week"], [0, 34, 40, 100]),
        "education": pd.cut(people["education_num"], [0, 8, 9, 12, 16]),
    }
    return Sample(y[second], decision, {name: column.astype(str).to_numpy() for name, column in columns.items()})


def random_attributes(rng: np.random.Generator, number: int = 6) -> Sample:
    """Return the census people and the model's own decisions, with attributes that are pure noise."""
    real = census()
    keep = rng.choice(real.outcome.size, 6000, replace=False)
    made = {f"a{j}": rng.integers(0, k, keep.size).astype(str) for j, k in enumerate((2, 3, 4, 2, 5, 3)[:number])}
    return Sample(real.outcome[keep], real.decision[keep], made)


def design(number: int, rng: np.random.Generator, *, planted: bool = False) -> Sample:
    """Draw people of one of 500 designs: 5 to 20 attributes, common and rare outcomes, base rates that differ.

    Parameters
    ----------
    number : int
        Which design; the same for every sample of it.
    rng : Generator
        Draws the people.
    planted : bool
        Whether the first attribute matters.
    """
    fixed = np.random.default_rng(number)
    d = 5 + number % 16
    rows = int(fixed.choice([400, 1200, 4000]))
    levels = fixed.integers(2, 6, size=d)
    shares = [fixed.dirichlet(np.full(k, 1.5)) for k in levels]
    codes = np.column_stack([rng.choice(k, rows, p=p) for k, p in zip(levels, shares, strict=True)])
    base = fixed.choice([0.03, 0.1, 0.3, 0.5])
    slope = [fixed.normal(0, 0.8, size=k) for k in levels]
    lift = sum(slope[j][codes[:, j]] for j in range(1 if planted else 0, d)) / np.sqrt(d)
    outcome = (rng.random(rows) < 1 / (1 + np.exp(-np.log(base / (1 - base)) - lift))).astype(int)
    missed, wrong = fixed.choice([0.02, 0.1, 0.3, 0.5], size=2)
    chance = np.where(outcome == 1, 1 - missed, wrong)
    if planted:
        chance = np.where(codes[:, 0] == 0, np.clip(chance + np.where(outcome == 1, -0.25, 0.25), 0.02, 0.98), chance)
    decision = (rng.random(rows) < chance).astype(int)
    several = [j for j in range(d) if np.unique(codes[:, j]).size > 1]
    names = {f"a{j}": np.char.add("v", codes[:, j].astype(str)) for j in several}
    return Sample(outcome, decision, names, "a0" if planted else "", chance)


def audited(sample: Sample, seed: int, **options: Any) -> dict[str, Any]:
    """Audit one sample; return the smallest adjusted p-value of a true null, and the numbers searched."""
    result = eh.audit_scan(sample.data, n_resamples=PERMUTATIONS, rng=seed, **options)
    known = [(f, e) for f, e in zip(result.findings, result.evidence, strict=True) if f.verdict != "not_computable"]
    nulls = [f for f, _ in known if not sample.matters or f"{sample.matters}=" not in f.groups[0]]
    shown = [f for f, _ in known if f.verdict == "disparity"]
    out: dict[str, Any] = {
        "pvalue": min((f.pvalue_adjusted for f in nulls), default=1.0),
        "described": max((e.described for _, e in known), default=0),
        "tested": sum({f.measure: e.tested for f, e in known}.values()),
        "shown": len(shown),
        "false": sum(f in nulls for f in shown),
        "missed": 0,
        "intervals": 0,
    }
    for finding in shown:
        truth = true_difference(sample, finding.groups[0], finding.measure)
        if truth is not None and finding.interval is not None:
            out["intervals"] += 1
            out["missed"] += not finding.interval.low - 1e-12 <= truth <= finding.interval.high + 1e-12
    return out


def audited_whole(sample: Sample, seed: int) -> dict[str, Any]:
    """Run the whole audit that a user gets by default: any finding of any audit is false."""
    run = eh.audit(sample.data, rng=seed)
    scan = next(result for result in run.results if result.audit == "scan")
    known = [e for e in scan.evidence if e.fact is not None]
    return {
        "pvalue": min(f.pvalue_adjusted for f in run.findings if f.verdict != "not_computable"),
        "described": max(e.described for e in known),
        "tested": sum({f.measure: e.tested for f, e in zip(scan.findings, scan.evidence, strict=True)}.values()),
        "shown": sum(f.verdict == "disparity" for f in run.findings),
        "false": sum(f.verdict == "disparity" for f in run.findings),
        "missed": 0,
        "intervals": 0,
    }


def true_difference(sample: Sample, name: str, measure: str) -> float | None:
    """Return the true difference between a subgroup and the rest, given who they are; None where it is not known."""
    if sample.rates is None:
        return None
    inside = np.ones(sample.outcome.size, dtype=bool)
    for condition in name.split(" & "):
        attribute, _, value = condition.partition("=")
        inside &= sample.attributes[attribute] == value
    about = sample.outcome == (1 if measure == "fnr" else 0)
    rate = 1 - sample.rates if measure == "fnr" else sample.rates
    return float(rate[inside & about].mean() - rate[~inside & about].mean())


def worlds() -> dict[str, tuple[int, Callable[[int, np.random.Generator], Sample], dict[str, Any]]]:
    """Return each world: how many samples, how one is made, and the audit's options."""
    return {
        "compas": (400, lambda _, rng: shuffled(compas(), rng), {}),
        "census": (150, lambda _, rng: shuffled(census(), rng), {}),
        "random attributes": (200, lambda _, rng: random_attributes(rng), {}),
        "whole audit": (200, lambda _, rng: random_attributes(rng, 3), {}),
        "designs": (500, lambda i, rng: design(i % 500, rng), {}),
        "planted": (500, lambda i, rng: design(i, rng, planted=True), {}),
        "planted, false discovery rate": (
            150,
            lambda i, rng: design(i, rng, planted=True),
            {"control": "fdr", "show": 0},
        ),
        "designs, split": (200, lambda i, rng: design(i, rng), {"split": 0.5}),
    }


def simulate(world: str, samples: int | None = None) -> dict[str, Any]:
    """Audit the samples of one world and count."""
    number, make, options = worlds()[world]
    answers = list(_answers(samples or number, make, options, world))
    lines = {key: np.array([one[key] for one in answers]) for key in answers[0]}
    rates = lines["false"] / np.maximum(lines["shown"], 1)
    return {
        "world": world,
        "samples": len(answers),
        "wrong": [int((lines["pvalue"] <= alpha).sum()) for alpha in ALPHAS],
        "described": [int(v) for v in np.quantile(lines["described"], [0, 0.5, 1])],
        "tested": [int(v) for v in np.quantile(lines["tested"], [0, 0.5, 1])],
        "shown": int(lines["shown"].sum()),
        "false": int(lines["false"].sum()),
        "false_share": float(rates.mean()),
        "intervals": int(lines["intervals"].sum()),
        "samples_missed": int((lines["missed"] > 0).sum()),
    }


def _answers(number: int, make: Callable[..., Sample], options: dict[str, Any], world: str) -> Iterator[dict[str, Any]]:
    for i in range(number):
        rng = np.random.default_rng([len(world), i])
        yield audited_whole(make(i, rng), i) if world == "whole audit" else audited(make(i, rng), i, **options)


def main() -> None:
    """Run the parts that are asked for and store them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", action="append", choices=list(worlds()))
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--out", type=Path, default=HERE / "scan.json")
    words = parser.parse_args()
    if words.short:
        for world in ("designs", "planted"):
            print(json.dumps(simulate(world, 20)))
        return
    stored = json.loads(words.out.read_text()) if words.out.exists() else {}
    for world in words.part or worlds():
        stored[world] = simulate(world)
        print(json.dumps(stored[world]), flush=True)
        kept = json.loads(words.out.read_text()) if words.out.exists() else {}
        words.out.write_text(json.dumps({**kept, world: stored[world]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
