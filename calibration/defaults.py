"""What a user gets without choosing anything, in worlds where nothing is unfair: does each promise hold?

    python calibration/defaults.py --label after              # every row; writes into defaults.json; hours on one core
    python calibration/defaults.py --label after --rows weights,repeated --runs 400
    python calibration/defaults.py --list

Each row is a world in which the null hypothesis is true by construction, a model that was trained (unless the row says
otherwise) on rows that are not audited, and a call with default options. Only public names are called, so the same file
measures an older version too: run it with that version's sources first on the path and another ``--label``. Parts of
a row are added up as long as their seeds are fresh; the error given with each share is the Monte-Carlo standard error.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import duckdb
import numpy as np
import pandas as pd
from scipy import special
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import evenhand as eh

HERE = Path(__file__).resolve().parent
Outcome = dict[str, bool | None]  # what happened in one run; None where the question did not arise


class Row(NamedTuple):
    """One promise: what it says, what is promised, and one run of it."""

    words: str
    promised: dict[str, float]
    run: Callable[[int], Outcome]


class Sample(NamedTuple):
    """Rows of people: features, outcome."""

    features: pd.DataFrame
    outcome: np.ndarray


# --- people ---------------------------------------------------------------------------------------------------


def synthetic(rng: np.random.Generator, rows: int) -> Sample:
    """Draw four numbers, three of which matter."""
    x = rng.normal(size=(rows, 4))
    y = rng.random(rows) < special.expit(x @ [1.0, -0.7, 0.4, 0.0])
    return Sample(pd.DataFrame(x, columns=["a", "b", "c", "d"]), y.astype(int))


@cache
def _adult() -> Sample:
    table = pd.DataFrame(eh.datasets.adult_table()).dropna()
    names = ["age", "education_num", "capital_gain", "hours_per_week", "marital_status", "workclass"]
    return Sample(table[names].reset_index(drop=True), (table["income"] == ">50K").to_numpy().astype(int))


@cache
def _compas() -> Sample:
    table = pd.DataFrame(dict(eh.datasets.table("compas")))
    names = ["age", "priors_count", "juv_fel_count", "juv_misd_count", "c_charge_degree"]
    features = table[names].copy()
    for name in names[:4]:
        features[name] = features[name].astype(float)
    return Sample(features, table["two_year_recid"].astype(float).to_numpy().astype(int))


def real(whole: Sample, rng: np.random.Generator, rows: int) -> Sample:
    """Draw real people, with replacement."""
    chosen = rng.integers(0, len(whole.outcome), rows)
    return Sample(whole.features.iloc[chosen].reset_index(drop=True), whole.outcome[chosen])


def people(kind: str, rng: np.random.Generator, rows: int) -> Sample:
    """Draw people of one kind."""
    if kind == "synthetic":
        return synthetic(rng, rows)
    return real(_adult() if kind == "adult" else _compas(), rng, rows)


def trained(kind: str, features: pd.DataFrame, outcome: np.ndarray, seed: int) -> Any:
    """Fit a model as a user would."""
    words = [c for c in features if not pd.api.types.is_numeric_dtype(features[c])]
    numbers = [c for c in features if c not in words]
    learner = {
        "logistic": lambda: LogisticRegression(max_iter=1000),
        "boosting": lambda: HistGradientBoostingClassifier(max_iter=30, max_leaf_nodes=8, random_state=seed),
        "network": lambda: MLPClassifier((16,), learning_rate_init=0.01, max_iter=15, random_state=seed),
    }[kind]()
    parts = [(StandardScaler(), numbers), (OneHotEncoder(sparse_output=False, handle_unknown="ignore"), words)]
    encode = make_column_transformer(*(part for part in parts if part[1]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_pipeline(encode, learner).fit(features, outcome)


def fixed(slopes: Iterable[float], names: Iterable[str], intercept: float = 0.0) -> LogisticRegression:
    """Return a logistic model whose coefficients are known."""
    model = LogisticRegression()
    model.classes_ = np.array([0, 1])
    model.coef_ = np.array([list(slopes)], dtype=float)
    model.intercept_ = np.array([intercept])
    model.feature_names_in_ = np.array(list(names), dtype=object)
    model.n_features_in_ = model.coef_.shape[1]
    model.n_iter_ = np.array([1])
    return model


def audited(model: Any, people: Sample, groups: dict[str, Any], **options: Any) -> eh.AuditData:
    """Let a model decide over people."""
    score = model.predict_proba(people.features)[:, 1]
    return eh.AuditData.from_arrays(
        outcome=people.outcome,
        decision=(score >= 0.5).astype(int),
        score=score,
        groups=groups,
        features=people.features,
        **options,
    )


def disparity(findings: Iterable[eh.Finding]) -> bool:
    """Say whether any finding is a disparity."""
    return any(f.verdict == "disparity" for f in findings)


# --- the default plan -----------------------------------------------------------------------------------------


# A model that is given the group fits a small coefficient to it, which is a real difference. It is trained on many more
# rows than are audited, so that this difference is small beside the noise; real people are drawn with replacement,
# so that some are in both.
TRAINING = {"logistic": 200_000, "network": 50_000, "boosting": 50_000}
MARGIN = 0.01  # of score: the tail audit's default


# From these numbers of rows on, audits of rows that stay where they are keep sums in place of rows. Here they are so
# small that a few thousand people go the way of many millions.
MANY_ROWS = {
    "audits.tail.changes.EXACT_ROWS": 500,
    "audits.tail.changes.LARGEST": 400,
    "audits.tail.ASKED_ROWS": 1500,
    "audits.projection.EXACT_ROWS": 1000,
    "audits.projection.batched.EXACT_ROWS": 1000,
    "audits.projection.batched.SEARCHED_ROWS": 1500,
    "models.adapter.ASKED_ROWS": 1500,
    "run.ASKED_ROWS": 1500,
    "intake.batches.DRAWN_ROWS": 2000,
    "intake.engines.duck.BATCH_ROWS": 2048,
}


def _in_batches(model: Any, audience: Sample, groups: dict[str, Any], seed: int) -> eh.AuditRun:
    """Audit rows that stay in DuckDB with the default plan; the audits that learn from some rows take 1,500."""
    table = audience.features.assign(outcome=audience.outcome, **groups)
    with ExitStack() as stack:
        for name, value in MANY_ROWS.items():
            stack.enter_context(patch(f"evenhand.{name}", value))
        data = eh.read(
            duckdb.from_df(table), outcome="outcome", groups=[*groups], features=[*audience.features], rows="batches"
        )
        few = {"sample_rows": 1500}
        plan = eh.Plan.default(data, model, base=eh.Plan(proxy=few, individual=few))
        return eh.audit(data, model=model, plan=plan, rng=seed)


def plan_row(
    model: str, kinds: tuple[str, ...], given: bool, rows: int, several: bool = False, batches: bool = False
) -> Callable[[int], Outcome]:
    """Train a model, draw groups at random, audit with the default plan; count any disparity, and at smaller levels.

    A network changes some scores by more than the margin when people are recorded as the other group, by the
    luck of its training. Then what the tail audit says of it is true, and does not count.
    """

    def run(seed: int) -> Outcome:
        rng = np.random.default_rng([seed, 41])
        kind = kinds[seed % len(kinds)]
        before = TRAINING[model] if given else 5_000
        sample = people(kind, rng, before + rows)
        group = rng.choice(["u", "v"], before + rows)
        features = sample.features.assign(member=(group == "u").astype(int)) if given else sample.features
        fitted = trained(model, features[:before], sample.outcome[:before], seed)
        questions = ("group", "projection", "individual", "proxy", "tail", "scan")
        audience = Sample(features[before:].reset_index(drop=True), sample.outcome[before:])
        groups = {"member": audience.features["member"] if given else group[before:]}
        if several:
            groups["region"] = rng.choice(["north", "south", "west"], rows, p=[0.5, 0.3, 0.2])
        if batches:
            found = _in_batches(fitted, audience, groups, seed).findings
        else:
            found = eh.audit(audited(fitted, audience, groups), model=fitted, rng=seed).findings
        if given and _reach(fitted, features[: min(before, 20_000)]) > MARGIN:
            found = tuple(f for f in found if f.audit != "tail")
        smallest = np.nanmin([f.pvalue_adjusted for f in found])
        out: Outcome = {"any disparity": disparity(found), **at(float(smallest), 0.01, 0.001)}
        for name in questions:
            mine = [f for f in found if f.audit == name]
            out[f"{name}: disparity"] = disparity(mine) if mine else None
        return out

    return run


def _reach(model: Any, features: pd.DataFrame) -> float:
    """Return the largest change of score by being recorded as the other group, but for one person in a thousand."""
    other = features.assign(member=1 - features["member"])
    change = np.abs(model.predict_proba(other)[:, 1] - model.predict_proba(features)[:, 1])
    return float(np.quantile(change, 0.999))


# --- individual -----------------------------------------------------------------------------------------------

NAMES = ["a", "b", "c", "d"]
APART = fixed([0.05, 0.9, -0.6, 0.3], NAMES)
UNLIKE = fixed([0.9, 0.9, -0.6, 0.3], NAMES)
IGNORED = fixed([0.0, 0.9, -0.6, 0.3], ["sex", *NAMES[1:]])


def _apart(rng: np.random.Generator, rows: int) -> tuple[Sample, np.ndarray]:
    group = rng.integers(0, 2, rows)
    x = rng.normal(size=(rows, 4))
    x[:, 0] += 0.3 * group
    features = pd.DataFrame(x, columns=NAMES)
    outcome = rng.random(rows) < APART.predict_proba(features)[:, 1]
    return Sample(features, outcome.astype(int)), group


def _individual(rng: np.random.Generator, rows: int, seed: int) -> eh.AuditResult:
    sample, group = _apart(rng, rows)
    return eh.audit_individual(audited(APART, sample, {"g": group}), model=APART, rng=seed)


@cache
def _limit_ratio() -> float:
    """Return the loss ratio in a sample so large that the learned metric is the true one."""
    found = _individual(np.random.default_rng(77), 100_000, 0)
    return next(f.estimate for f in found if f.measure == "loss_ratio")


def apart_row(rows: int) -> Callable[[int], Outcome]:
    """Set groups .3 standard deviations apart in one of four numbers, with a coefficient of .05."""

    def run(seed: int) -> Outcome:
        found = {f.measure: f for f in _individual(np.random.default_rng([seed, 42]), rows, seed)}
        loss = found["loss_ratio"]
        inside = None
        if loss.interval is not None and not math.isnan(loss.estimate):
            inside = loss.interval.low <= _limit_ratio() <= loss.interval.high
        return {
            "disparity": loss.verdict == "disparity",
            "disparity in the error ratio": found["error_ratio"].verdict == "disparity",
            "interval covers the limit": inside,
            "not computable": loss.verdict == "not_computable",
        }

    return run


def unlike(seed: int) -> Outcome:
    """Set groups one standard deviation apart in a number that the model uses as much as any other."""
    rng = np.random.default_rng([seed, 54])
    group = rng.integers(0, 2, 1000)
    features = pd.DataFrame(rng.normal(size=(1000, 4)), columns=NAMES)
    features["a"] += group
    outcome = (rng.random(1000) < UNLIKE.predict_proba(features)[:, 1]).astype(int)
    found = eh.audit_individual(audited(UNLIKE, Sample(features, outcome), {"g": group}), model=UNLIKE, rng=seed)
    return {f"{f.measure}: true disparity shown": f.verdict == "disparity" for f in found}


def ignored(seed: int) -> Outcome:
    """Sex is a column of the model, with coefficient exactly 0, and tells nothing about the others."""
    rng = np.random.default_rng([seed, 43])
    features = pd.DataFrame(rng.normal(size=(1000, 4)), columns=["sex", *NAMES[1:]])
    features["sex"] = rng.integers(0, 2, 1000).astype(float)
    outcome = (rng.random(1000) < IGNORED.predict_proba(features)[:, 1]).astype(int)
    data = audited(IGNORED, Sample(features, outcome), {"sex": features["sex"].astype(int)})
    return {"disparity": disparity(eh.audit_individual(data, model=IGNORED, rng=seed))}


# --- tail -----------------------------------------------------------------------------------------------------


def level_row(model: str, intercept: float) -> Callable[[int], Outcome]:
    """Ask for the 1-in-1000 level of the group that would gain by being recorded as the other."""

    def draw(rng: np.random.Generator, rows: int) -> Sample:
        x = rng.normal(size=(rows, 3))
        g = rng.integers(0, 2, rows)
        y = rng.random(rows) < special.expit(intercept + x @ [1.0, -0.7, 0.4] + 0.5 * g)
        return Sample(pd.DataFrame(x, columns=NAMES[:3]).assign(member=g), y.astype(int))

    def run(seed: int) -> Outcome:
        rng = np.random.default_rng([seed, 44])
        fitted = trained(model, *draw(rng, 2000), seed)
        sample = draw(rng, 4000)
        data = audited(fitted, sample, {"member": sample.features["member"]})
        found = [f for f in eh.audit_tail(data, model=fitted, horizon=1000, rng=seed) if f.measure == "return_level"]
        big = draw(rng, 400_000).features
        gap = fitted.predict_proba(big.assign(member=1 - big["member"]))[:, 1] - fitted.predict_proba(big)[:, 1]
        mine = next(f for f in found if f.groups[0] == "member=0")
        if mine.interval is None or math.isnan(mine.estimate):
            return {"interval covers": None, "wholly above the largest possible value": None}
        own = gap[big["member"].to_numpy() == 0]
        truth = float(np.quantile(own, 1 - 1 / 1000))
        return {
            "interval covers": bool(mine.interval.low <= truth <= mine.interval.high),
            "wholly above the largest possible value": bool(mine.interval.low > own.max() + 1e-6),
        }

    return run


class Planted:
    """A score of .4 that changes by a planted amount when the mark is set."""

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return the score."""
        return 0.4 + X[:, 0] * X[:, 1]


def _marked(columns: dict[str, np.ndarray], label: str) -> dict[str, np.ndarray]:
    return {**columns, "mark": np.ones_like(columns["mark"])}


def shapes(seed: int) -> Outcome:
    """Two groups lose the same at 1 in 100, with tails of different shape."""
    rng = np.random.default_rng([seed, 45])
    group = np.repeat([0, 1], 1000)
    uniform = 0.2 * rng.random(2000) / 0.99
    steep = np.minimum(rng.exponential(0.2 / math.log(100), 2000), 0.59)
    change = np.where(group == 0, uniform, steep)
    features = {"change": change, "mark": np.zeros(2000)}
    data = eh.AuditData.from_arrays(
        outcome=rng.integers(0, 2, 2000),
        decision=np.zeros(2000, dtype=int),
        groups={"g": group},
        features=features,
    )
    found = eh.audit_tail(data, model=Planted(), horizon=100, flip=_marked, generator="none", rng=seed)
    return {"ecd: disparity": disparity(f for f in found if f.measure == "ecd")}


def fitted_coefficient(seed: int) -> Outcome:
    """Train a model with a group that means nothing: it gets a small coefficient all the same."""
    rng = np.random.default_rng([seed, 46])
    before = TRAINING["logistic"]
    sample = synthetic(rng, before + 2000)
    features = sample.features.assign(member=rng.integers(0, 2, before + 2000))
    fitted = trained("logistic", features[:before], sample.outcome[:before], seed)
    rest = Sample(features[before:].reset_index(drop=True), sample.outcome[before:])
    found = eh.audit_tail(audited(fitted, rest, {"member": rest.features["member"]}), model=fitted, rng=seed)
    return {"ecd: disparity": disparity(f for f in found if f.measure == "ecd")}


# --- weights and dependence -----------------------------------------------------------------------------------


def weights_row(**options: Any) -> Callable[[int], Outcome]:
    """Whole-number survey weights with mean 27, groups at random."""

    def run(seed: int) -> Outcome:
        rng = np.random.default_rng([seed, 47])
        n = 800
        y, group = rng.integers(0, 2, n), rng.integers(0, 2, n)
        decision = (rng.random(n) < 0.2 + 0.5 * y).astype(int)
        weight = np.ceil(rng.lognormal(3.0, 0.75, n))
        try:
            data = eh.AuditData.from_arrays(outcome=y, decision=decision, groups={"g": group}, weight=weight, **options)
        except eh.EvenhandError:
            return {"refused with a question": True, "selection_rate: disparity": None, "fnr: disparity": None}
        out: Outcome = {"refused with a question": False}
        for metric in ("selection_rate", "fnr"):
            found = eh.audit_group(data, metrics=[metric], rng=seed)[0]
            truth_inside = found.interval is not None and found.interval.low <= 0 <= found.interval.high
            out[f"{metric}: disparity"] = found.verdict == "disparity"
            out[f"{metric}: interval covers"] = truth_inside
        return out

    return run


def repeated(seed: int) -> Outcome:
    """Draw 300 people with five rows each: inputs and score stay, the outcome is drawn anew."""
    rng = np.random.default_rng([seed, 48])
    person = np.repeat(np.arange(300), 5)
    ability = rng.normal(size=300)
    score = special.expit(ability)[person]
    decision = (score >= 0.5).astype(int)
    y = (rng.random(1500) < score).astype(int)
    group = rng.integers(0, 2, 300)[person]
    features = {"ability": ability[person], "income": rng.normal(size=300)[person]}
    data = eh.AuditData.from_arrays(outcome=y, decision=decision, score=score, groups={"g": group}, features=features)
    found = eh.audit_group(data, metrics=["selection_rate", "fnr"], rng=seed)
    words = " ".join(data.notes).lower()
    return {
        "selection_rate: disparity": found[0].verdict == "disparity",
        "fnr: disparity": found[1].verdict == "disparity",
        "said in a note": "repeat" in words or "identical" in words or "same person" in words,
    }


def weighted_equivalence(seed: int) -> Outcome:
    """Compare selection rates .02 and .07 under a margin of .05, 300 people each, survey weights."""
    rng = np.random.default_rng([seed, 49])
    group = np.repeat([0, 1], 300)
    decision = (rng.random(600) < np.where(group == 0, 0.07, 0.02)).astype(int)
    weight = rng.lognormal(0.0, 1.0, 600)
    data = eh.AuditData.from_arrays(
        outcome=rng.integers(0, 2, 600), decision=decision, groups={"g": group}, weight=weight, weight_kind="sampling"
    )
    found = eh.audit_group(data, metrics=["selection_rate"], margin=0.05, rng=seed)[0]
    return {"equivalent": found.verdict == "equivalent", "disparity": found.verdict == "disparity"}


# --- tails of the tests ---------------------------------------------------------------------------------------


def at(pvalue: float, *levels: float) -> Outcome:
    """Say at which levels a p-value rejects."""
    return {f"p <= {level:g}": None if math.isnan(pvalue) else bool(pvalue <= level) for level in levels}


def correlation(seed: int) -> Outcome:
    """Scores and age: no correlation, but the scores of older people spread more."""
    rng = np.random.default_rng([seed, 50])
    n = 100
    age = 20 + rng.exponential(12, n)
    score = 0.5 + 0.01 * (age - 20) * (rng.exponential(size=n) - 1)
    groups = {"g": rng.integers(0, 2, n), "age": age}
    data = eh.AuditData.from_arrays(outcome=rng.integers(0, 2, n), score=score, groups=groups, continuous=["age"])
    found = eh.audit_group(data, metrics=["mean_score"], rng=seed)
    return at(next(f.pvalue for f in found if f.measure.endswith("_correlation")), 0.05, 0.01, 0.001)


def skewed_groups(seed: int) -> Outcome:
    """Six groups with one mean and skewed scores of unequal spread."""
    rng = np.random.default_rng([seed, 51])
    sizes, shape = [150, 80, 60, 40, 30, 25], [2.0, 1.0, 1.0, 0.6, 0.5, 0.4]
    score = np.concatenate([rng.gamma(k, 1 / k, n) for n, k in zip(sizes, shape, strict=True)])
    group = np.repeat(np.arange(6), sizes)
    data = eh.AuditData.from_arrays(outcome=rng.integers(0, 2, len(group)), score=score, groups={"g": group})
    found = eh.audit_group(data, metrics=["mean_score"], rng=seed)
    return at(next(f.pvalue for f in found if f.measure.endswith("_global")), 0.05, 0.01, 0.001)


def rare_log_loss(seed: int) -> Outcome:
    """Log loss of a trained model, 2 % positives, 900 and 100 people."""
    rng = np.random.default_rng([seed, 52])
    x = rng.normal(size=(3000, 3))
    y = (rng.random(3000) < special.expit(-4.4 + x @ [0.8, -0.5, 0.3])).astype(int)
    y[:2] = 0, 1
    features = pd.DataFrame(x, columns=NAMES[:3])
    fitted = trained("logistic", features[:2000], y[:2000], seed)
    group = np.repeat([0, 1], [900, 100])
    data = audited(fitted, Sample(features[2000:].reset_index(drop=True), y[2000:]), {"g": group})
    return at(eh.audit_group(data, metrics=["log_loss"], rng=seed)[0].pvalue, 0.05, 0.01, 0.001)


# --- proxy ----------------------------------------------------------------------------------------------------


def unrelated(seed: int) -> Outcome:
    """Three features of a trained model have nothing to do with the outcome and much with the group."""
    rng = np.random.default_rng([seed, 53])
    before = TRAINING["logistic"]
    n = before + 2000
    group = rng.integers(0, 2, n)
    x = rng.normal(size=(n, 5))
    x[:, 0] += 0.8 * group
    x[:, 2:] += 0.8 * group[:, None]
    y = (rng.random(n) < special.expit(-0.4 + 1.0 * (x[:, 0] - 0.4) - 0.7 * x[:, 1])).astype(int)
    features = pd.DataFrame(x, columns=["real", "other", "idle1", "idle2", "idle3"])
    fitted = trained("logistic", features[:before], y[:before], seed)
    data = audited(fitted, Sample(features[before:].reset_index(drop=True), y[before:]), {"g": group[before:]})
    found = eh.audit_proxy(data, model=fitted, rng=seed)
    named = [f for f in found if f.verdict == "disparity"]
    return {
        "an idle feature named": any("idle" in g for f in named for g in (*f.groups, f.measure)),
        "the real one named": any("real" in g for f in named for g in (*f.groups, f.measure)),
    }


def _plans() -> dict[str, Row]:
    out = {}
    for model, rows in (("logistic", 1000), ("network", 800), ("boosting", 500)):
        for given in (False, True):
            sees = "the model is given the group" if given else "the model does not see the group"
            for tag, which, said in (
                ("", ("synthetic",), "synthetic features"),
                ("-real", ("adult", "compas"), "Adult and COMPAS features in turn"),
            ):
                key = f"plan-{model}{tag}-{'given' if given else 'blind'}"
                said = f"default plan, trained {model}, {said}, groups at random, {sees}"
                out[key] = Row(said, {"any disparity": 0.05}, plan_row(model, which, given, rows))
        said = (
            f"default plan, trained {model}, Adult and COMPAS features in turn, two attributes at random, so that "
            "subgroups are searched too"
        )
        several = plan_row(model, ("adult", "compas"), False, rows, several=True)
        out[f"plan-{model}-real-several"] = Row(said, {"any disparity": 0.05}, several)
    for model, given in itertools.product(("logistic", "boosting"), (False, True)):
        sees = "the model is given the group" if given else "two attributes at random"
        said = (
            f"default plan on 4,000 rows that stay in DuckDB, with the limits of exact methods lowered so that all is "
            f"added up in batches, trained {model}, Adult and COMPAS features in turn, {sees}"
        )
        run = plan_row(model, ("adult", "compas"), given, 4000, several=not given, batches=True)
        out[f"plan-{model}-batches-{'given' if given else 'blind'}"] = Row(said, {"any disparity": 0.05}, run)
    return out


# Rows of the same people are pointed out; the tests still take each row for a person.
NOTED = {"said in a note": 1.0, "selection_rate: disparity": math.nan, "fnr: disparity": math.nan}
ROWS: dict[str, Row] = {
    **_plans(),
    "individual-400": Row("individual, groups .3 sd apart, 400 rows, fixed model", {}, apart_row(400)),
    "individual-2000": Row("individual, groups .3 sd apart, 2,000 rows, fixed model", {}, apart_row(2000)),
    "individual-zero": Row("individual, sex is a feature with coefficient 0", {}, ignored),
    "individual-unlike": Row("individual, groups 1 sd apart in a feature that counts, 1,000 rows", {}, unlike),
    "level-logistic": Row("tail, 1-in-1000 level, logistic model, base rate 11 %", {}, level_row("logistic", -2.6)),
    "level-network": Row("tail, 1-in-1000 level, network", {}, level_row("network", -0.4)),
    "ecd-shapes": Row("tail, equal levels, different shapes", {}, shapes),
    "ecd-fitted": Row("tail, null world, fitted coefficient", {}, fitted_coefficient),
    "weights": Row("whole-number survey weights, kind not said", {}, weights_row()),
    "weights-said": Row("the same, kind said", {}, weights_row(weight_kind="sampling")),
    "repeated": Row("rows of the same people, 300 x 5", NOTED, repeated),
    "correlation": Row("correlation, unequal spread", {}, correlation),
    "global-means": Row("global test of means, six skewed groups", {}, skewed_groups),
    "log-loss": Row("log loss, rare outcome, trained model", {}, rare_log_loss),
    "weighted-equivalence": Row("equivalence with weights, few events, on the margin", {}, weighted_equivalence),
    "unrelated": Row("proxy, features unrelated to the outcome", {}, unrelated),
}


def promised(key: str, question: str) -> float:
    """Return what a share should be at most (or, for coverage and notes, at least)."""
    own = ROWS[key].promised.get(question)
    if own is not None:
        return own
    if question.startswith("p <= "):
        return float(question.removeprefix("p <= "))
    if "cover" in question:
        return 0.95
    if question == "the real one named" or any(w in question for w in ("refused", "not computable", "shown")):
        return math.nan
    return 0.0 if "largest possible" in question else 0.05


def one(key: str, seed: int) -> Outcome:
    """Make one run of a row."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ROWS[key].run(seed)


def counted(runs: Iterable[Outcome]) -> dict[str, list[int]]:
    """Count, for each question, in how many runs it was answered yes, and in how many it arose."""
    out: dict[str, list[int]] = {}
    for run in runs:
        for question, answer in run.items():
            mine = out.setdefault(question, [0, 0])
            if answer is not None:
                mine[0] += bool(answer)
                mine[1] += 1
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--label", default="after", help="under which name the results are stored")
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--first", type=int, default=0, help="the first seed; above 0 adds to what is stored")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=HERE / "defaults.json")
    parser.add_argument("--list", action="store_true")
    words = parser.parse_args()
    if words.list:
        print("\n".join(f"{key:30}{row.words}" for key, row in ROWS.items()))
        return
    for key in words.rows.split(","):
        seeds = range(words.first, words.first + words.runs)
        with ProcessPoolExecutor(words.workers) as pool:
            made = counted(pool.map(one, [key] * len(seeds), seeds, chunksize=5))
        stored = json.loads(words.out.read_text()) if words.out.exists() else {}
        mine = stored.setdefault(words.label, {})
        told = {question: promised(key, question) for question in made}
        stored.setdefault("rows", {})[key] = {
            "words": ROWS[key].words,
            "promised": {question: None if math.isnan(value) else value for question, value in told.items()},
        }
        if words.first and key in mine:
            for question, (yes, runs) in mine[key].items():
                made[question] = [made[question][0] + yes, made[question][1] + runs]
        mine[key] = made
        words.out.write_text(json.dumps(stored, indent=1) + "\n")
        print(key, {q: f"{y}/{n}" for q, (y, n) in made.items()}, flush=True)


if __name__ == "__main__":
    main()
