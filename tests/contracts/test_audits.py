"""What every audit promises, held against all of them by one table.

Each row of the table runs one audit through `evenhand.audit` on a real model, so what the run passes on is tested too.
Where an audit keeps a promise in its own way, its row has the sentence that it must say. All audits but the scan stand
in the table twice: with rows in memory, and with rows that stay in DuckDB and come in small batches.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import evenhand as eh
from evenhand.intake.batches import LocalBatches, pieces

N = 240
BATCH = 70  # rows
FLIP = {"a": {"is_b": 0.0, "is_c": 0.0}, "b": {"is_b": 1.0, "is_c": 0.0}, "c": {"is_b": 0.0, "is_c": 1.0}}


@dataclass(frozen=True, eq=False)
class Contract:
    """One audit: how it is asked, and what it says where it cannot answer."""

    audit: str
    # Two rows in all, a group of two rows without outcome 1, a group whose outcomes are all 1.
    two_rows: str
    tiny: str = ""
    one_class: str = ""
    sampling: str = ""  # why sampling weights are refused; empty where they are taken
    rounding: float = 0.0  # what the order and the number of rows may change
    options: Mapping[str, Any] = field(default_factory=dict)
    model: bool = True  # or the columns alone
    batches: bool = False  # whether rows stay where they are


IN_MEMORY = {
    "group": Contract(
        "group",
        two_rows="Group `g=b` has no rows with outcome 1.",
        tiny="Group `g=t` has no rows with outcome 1.",
        one_class="Group `g=b` lacks rows with outcome 0 or outcome 1.",
        sampling="Metric `calibration_error` does not take sampling weights. Leave it out",
        options={"metrics": ["selection_rate", "fnr", "balanced_accuracy", "auc", "brier", "calibration_error"]},
    ),
    "projection": Contract(
        "projection",
        two_rows="Every row has decision 0, so the classifier has no boundary",
        tiny="Group `g=t` has no rows with outcome 1, so its rate is undefined.",
        one_class="Group `g=b` has no rows with outcome 0, so its rate is undefined.",
        rounding=1e-12,  # units of distance and matrix products add numbers in the order of the rows
        options={"criterion": "equalized_odds"},
    ),
    "projection by distance": Contract(
        "projection",
        two_rows="Every row has decision 0, so the classifier has no boundary",
        tiny="Group `g=t` has no rows with outcome 1, so its rate is undefined.",
        one_class="Group `g=b` has no rows with outcome 0, so its rate is undefined.",
        options={"criterion": "equalized_odds", "distance": "threshold"},
        model=False,
    ),
    "individual": Contract(  # asks about everybody at once: a small group among many rows hinders nothing
        "individual",
        two_rows="2 rows are too few for any statement; at least 8 are needed.",
        options={"steps": 20, "refits": 5, "points": 5},
    ),
    "proxy": Contract(
        "proxy",
        two_rows="Group `g=b` has 1 row; at least 2 are needed.",
        tiny="Group `g=t` has 0 rows with outcome 1; at least 2 are needed",
        one_class="Group `g=b` has 0 rows with outcome 0; at least 2 are needed",
        options={"max_rows": 100, "folds": 2},
    ),
    "proxy by decisions": Contract(
        "proxy",
        two_rows="Group `g=b` has 1 row; at least 2 are needed.",
        tiny="Group `g=t` has 0 rows with outcome 1; at least 2 are needed",
        one_class="Group `g=b` has 0 rows with outcome 0; at least 2 are needed",
        options={"max_rows": 100, "folds": 2},
        model=False,
    ),
    "tail": Contract(  # does not look at outcomes
        "tail",
        two_rows="`g=b` has 1 rows; a fit needs at least 200",
        tiny="`g=t` has 2 rows; a fit needs at least 200",
        sampling="The audit `tail` does not take sampling weights.",
        options={"flip": FLIP | {"t": FLIP["c"]}},
    ),
    "scan": Contract(  # leaves out a subgroup that is too small to be shown, which hinders nothing
        "scan",
        two_rows="No subgroup of at least 10 people could be shown to differ",
        sampling="The audit `scan` does not take sampling weights.",
        options={
            "metrics": ["selection_rate", "fnr"],
            "attributes": ["g", "age", "debt"],
            "bins": 2,
            "smallest": 10,
            "show": 1000,
        },
    ),
    "scan by decisions": Contract(
        "scan",
        two_rows="No subgroup of at least 10 people could be shown to differ",
        sampling="The audit `scan` does not take sampling weights.",
        options={"metrics": ["fpr"], "attributes": ["g", "is_c"], "smallest": 10, "show": 1000},
        model=False,
    ),
    "tail by means": Contract(
        "tail",
        two_rows="`g=b` has 1 rows; a mean and its error need at least 2.",
        tiny="`g=t` has 2 rows, of which the worst 20 % are 1; their mean needs at least 10 of them.",
        sampling="The audit `tail` does not take sampling weights.",
        options={"flip": FLIP | {"t": FLIP["c"]}, "measures": ["acd", "cvar"], "cvar_share": 0.2},
    ),
}
# The scan adds up whole groups wherever rows are, and searches features of rows in memory only.
IN_BATCHES = {
    f"{name} in batches": replace(contract, batches=True, rounding=1e-10)
    for name, contract in IN_MEMORY.items()
    if contract.audit != "scan"
}
TABLE = IN_MEMORY | IN_BATCHES
EVERY_METRIC = replace(TABLE["group"], options={"metrics": sorted(eh.METRICS)})
every_audit = pytest.mark.parametrize("contract", TABLE.values(), ids=TABLE.keys())
every_audit_and_metric = pytest.mark.parametrize(
    "contract", [*TABLE.values(), EVERY_METRIC], ids=[*TABLE, "group on every metric"]
)
every_model = pytest.mark.parametrize("contract", [c for c in TABLE.values() if c.model], ids=lambda c: c.audit)


@functools.cache
def _drawn() -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    group = rng.choice(3, N, p=[0.45, 0.3, 0.25])
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 10, N).round(2) + 4 * (group == 1),
            "debt": rng.normal(0, 1, N).round(3) + 0.5 * (group == 2),
            "is_b": (group == 1) * 1.0,
            "is_c": (group == 2) * 1.0,
        }
    )
    signal = 0.08 * (frame["age"] - 40) - frame["debt"] + 0.5 * frame["is_b"]
    outcome = (rng.random(N) < 1 / (1 + np.exp(-signal))).to_numpy().astype(int)
    return frame, outcome, np.array(["a", "b", "c"], dtype=object)[group]


def people() -> dict[str, Any]:
    """Return the columns, fresh, so that a test may change them."""
    frame, outcome, group = _drawn()
    score = fitted().predict_proba(frame)[:, 1]
    decision = (score >= 0.5).astype(int)
    return {
        "outcome": outcome.copy(),
        "decision": decision,
        "score": score,
        "g": group.copy(),
        "features": frame.copy(),
    }


def take(columns: Mapping[str, Any], index: Any) -> dict[str, Any]:
    return {k: v.iloc[index] if isinstance(v, pd.DataFrame) else v[index] for k, v in columns.items()}


@functools.cache
def fitted(one: Any = 1, zero: Any = 0) -> LogisticRegression:
    frame, outcome, _ = _drawn()
    return LogisticRegression(solver="newton-cholesky", tol=1e-12).fit(frame, np.where(outcome == 1, one, zero))


def ask(
    contract: Contract,
    columns: Mapping[str, Any],
    *,
    model: Any = None,
    rng: int = 0,
    n_resamples: int = 199,
    **intake: Any,
) -> eh.AuditRun:
    """Run one row of the table: with a model it scores and decides, without one the columns say it."""
    given = dict(columns)
    model = (fitted() if model is None else model) if contract.model else None
    if contract.model:
        given = {k: v for k, v in given.items() if k not in ("score", "decision")}
    data = (
        read_in_batches(given, **intake)
        if contract.batches
        else eh.AuditData.from_arrays(groups={"g": given.pop("g")}, **given, **intake)
    )
    plan = eh.Plan(
        audits=(contract.audit,), correction="holm", n_resamples=n_resamples, **{contract.audit: contract.options}
    )
    return eh.audit(data, model=model, plan=plan, rng=rng)


def read_in_batches(columns: Mapping[str, Any], *, weight: Any = None, **intake: Any) -> eh.AuditData:
    """Put the columns into DuckDB, and read them where they are, a few rows at a time."""
    frame = columns["features"].copy()
    features = [*frame]
    frame = frame.assign(**{name: values for name, values in columns.items() if name != "features"})
    roles = {name: name for name in ("outcome", "decision", "score") if name in columns}
    if weight is not None:
        frame["weight"] = weight
        roles["weight"] = "weight"
    data = eh.read(duckdb.from_df(frame), groups="g", features=features, rows="batches", **roles, **intake)
    whole = data.batches
    few = LocalBatches(lambda: (few for batch in whole._read() for few in pieces(batch, BATCH)), whole.rows, features)
    return replace(data, batches=few)


@functools.cache
def usual(contract: Contract) -> eh.AuditRun:
    """Return the answer on the columns as they are."""
    return ask(contract, people())


def findings(run: eh.AuditRun) -> list[dict[str, Any]]:
    return [f.to_dict() for f in run.findings]


def numbers(run: eh.AuditRun, names: Mapping[str, str] | None = None) -> dict[Any, list[Any]]:
    """Return what each finding says in numbers, under the groups it is about."""
    told = {}
    for f in run.findings:
        groups = [g if names is None else re.sub(r"\bg=(\w+)", lambda m: f"g={names[m[1]]}", g) for g in f.groups]
        if len(groups) != 2:  # about all of them at once: no order
            groups.sort()
        ends = () if f.interval is None else (f.interval.low, f.interval.high)
        told[f.measure, *groups] = [f.estimate, f.pvalue, f.pvalue_adjusted, *ends]
    return told


def assert_close(found: Mapping[Any, Any], expected: Mapping[Any, Any], rel: float = 1e-9) -> None:
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        assert found[key] == pytest.approx(values, rel=rel, abs=rel, nan_ok=True), key


def assert_same(contract: Contract, found: eh.AuditRun, expected: eh.AuditRun) -> None:
    """Hold that two answers are one: to the last bit, or up to the rounding that the table allows."""
    if not contract.rounding:
        assert findings(found) == findings(expected)
        return
    assert_close(numbers(found), numbers(expected), contract.rounding)
    assert [f.reason for f in found.findings] == [f.reason for f in expected.findings]


def test_the_table_holds_every_audit():
    offered = {name.removeprefix("audit_") for name in eh.__all__ if name.startswith("audit_")}
    offered -= {"arrays"}  # a whole run from arrays
    assert {contract.audit for contract in TABLE.values()} == offered


@every_audit
def test_the_usual_answer_is_one(contract):
    """The other promises would be empty on findings that are all refused."""
    told = usual(contract).findings
    assert any(f.verdict != "not_computable" for f in told)
    for f in told:
        assert f.verdict in set(eh.Verdict)
        assert f.reason.endswith(".")
        assert f.verdict == "not_computable" or 0 < f.pvalue <= f.pvalue_adjusted <= 1


@pytest.mark.parametrize("away", IN_BATCHES.values(), ids=IN_BATCHES)
def test_rows_that_stay_away_say_what_rows_in_memory_say(away):
    """The group audit has sums: scores in 4,096 bins, which ranks feel, and for means the limit law alone."""
    one, two = usual(away), usual(replace(away, batches=False))
    assert [(f.measure, f.groups, f.verdict, f.counts) for f in one.findings] == [
        (f.measure, f.groups, f.verdict, f.counts) for f in two.findings
    ]
    told, expected = numbers(one), numbers(two)
    for key in [*expected]:
        if away.audit == "group" and key[0].startswith(("brier", "auc", "calibration_error")):
            rounding = 1e-10 if key[0].startswith("brier") else 2 / 4096
            assert told.pop(key)[0] == pytest.approx(expected.pop(key)[0], abs=rounding)
    assert_close(told, expected, rel=1e-10)


@every_audit
def test_same_seed_same_bytes(contract):
    assert ask(contract, people()).to_json() == usual(contract).to_json()


def test_another_seed_changes_random_pvalues_only():
    one, two = numbers(usual(EVERY_METRIC)), numbers(ask(EVERY_METRIC, people(), rng=1))
    assert {k: v[0] for k, v in one.items()} == {k: v[0] for k, v in two.items()}
    assert any(one[k][1] != two[k][1] for k in one)


@every_audit_and_metric
def test_row_order_is_irrelevant(contract):
    shuffled = ask(contract, take(people(), np.random.default_rng(5).permutation(N)))
    assert_same(contract, shuffled, usual(contract))


@every_audit_and_metric
def test_relabelling_groups_permutes_findings(contract):
    back = {"z": "a", "y": "b", "x": "c"}
    new = {old: name for name, old in back.items()}
    columns = people()
    columns["g"] = np.array([new[label] for label in columns["g"]])
    options = dict(contract.options)
    if "flip" in options:
        options["flip"] = {new[label]: FLIP[label] for label in FLIP}
    renamed = ask(replace(contract, options=options), columns)
    assert_close(numbers(renamed, back), numbers(usual(contract)))


@every_audit_and_metric
def test_a_whole_weight_is_so_many_rows(contract):
    weight = np.random.default_rng(1).integers(1, 4, N)
    weighted = ask(contract, people(), weight=weight, weight_kind="frequency")
    repeated = ask(contract, take(people(), np.repeat(np.arange(N), weight)))
    assert_same(contract, weighted, repeated)


@every_audit
def test_sampling_weights_move_the_estimate_or_are_refused(contract):
    weight = np.where(people()["outcome"] == 1, 2.5, 0.5)
    if contract.sampling:
        with pytest.raises(eh.EvenhandError, match=contract.sampling):
            ask(contract, people(), weight=weight, weight_kind="sampling")
        return
    weighted = numbers(ask(contract, people(), weight=weight, weight_kind="sampling"))
    expected = numbers(usual(contract))
    assert weighted.keys() == expected.keys()
    assert any(weighted[key][0] != values[0] for key, values in expected.items())


@every_audit
def test_inputs_are_left_as_found(contract):
    columns, before = people(), people()
    model = fitted()
    learned = model.coef_.copy()
    ask(contract, columns, model=model)
    for key, values in before.items():
        if isinstance(values, pd.DataFrame):
            pd.testing.assert_frame_equal(columns[key], values)
        else:
            np.testing.assert_array_equal(columns[key], values)
    np.testing.assert_array_equal(model.coef_, learned)


@every_audit
def test_read_only_inputs_are_enough(contract):
    columns = people()
    for key in ("outcome", "decision", "score", "g"):
        columns[key].flags.writeable = False
    assert findings(ask(contract, columns)) == findings(usual(contract))


def refused(run: eh.AuditRun, sentence: str) -> list[eh.Finding]:
    """Return the findings refused for this reason; whatever is refused has no number and a sentence."""
    told = [f for f in run.findings if f.verdict == "not_computable"]
    for f in told:
        assert np.isnan(f.estimate)
        assert np.isnan(f.pvalue)
        assert f.interval is None
        assert f.reason.endswith(".")
        assert f.to_dict()["estimate"] is None
    return [f for f in told if sentence in f.reason]


def assert_refused(run: eh.AuditRun, group: str, sentence: str) -> None:
    """Hold that what this group lacks costs findings about it, or, without a sentence, none at all."""
    if not sentence:
        assert not refused(run, "")
        return
    told = refused(run, sentence)
    assert told
    assert all(group in f.groups for f in told)


@every_audit
def test_a_tiny_group_is_not_computable_with_the_reason(contract):
    columns = people()
    columns["g"][np.flatnonzero(columns["outcome"] == 0)[:2]] = "t"
    assert_refused(ask(contract, columns), "g=t", contract.tiny)


@every_audit
def test_a_group_of_one_class_is_not_computable_with_the_reason(contract):
    columns = people()
    columns["outcome"][columns["g"] == "b"] = 1
    assert_refused(ask(contract, columns), "g=b", contract.one_class)


def test_each_metric_refuses_a_group_that_lacks_what_it_needs():
    columns = take(people(), np.argsort(people()["decision"] + people()["outcome"], kind="stable"))
    columns["g"][:2] = "t"  # neither outcome 1 nor decision 1
    run = ask(EVERY_METRIC, columns)
    told = {f.measure for f in refused(run, "`g=t`") if "g=t" in f.groups and not f.measure.endswith("_global")}
    assert {"fnr", "tpr", "precision", "auc", "balanced_accuracy", "f1"} <= told


@every_audit
def test_two_rows_are_not_computable_with_the_reason(contract):
    columns = people()
    low = columns["decision"] == 0
    some = [np.flatnonzero(low & (columns["g"] == g) & (columns["outcome"] == 0))[0] for g in "ab"]
    assert refused(ask(contract, take(columns, some)), contract.two_rows)


@every_audit
def test_an_empty_group_is_as_if_it_were_not_there(contract):
    """Both a label that no row has and one whose rows have no outcome; rows left out are counted."""
    named = people() | {"g": pd.Categorical(people()["g"], categories=["a", "b", "c", "t"])}
    assert findings(ask(contract, named)) == findings(usual(contract))
    more = take(people(), [*range(N), 0, 1])
    more["g"][N:] = "t"
    more["outcome"] = np.where(np.arange(N + 2) < N, more["outcome"], np.nan)
    run = ask(contract, more)
    assert run.data["rows_dropped"] == {"`outcome` is missing": 2}
    assert_same(contract, run, usual(contract))


@every_audit
@pytest.mark.parametrize("one", ["approved", "denied"])
def test_words_in_either_order_are_0_and_1(contract, one):
    """One of the words sorts before the other and is the one that usually counts as 1; each is asked for once."""
    zero = "denied" if one == "approved" else "approved"
    columns = people()
    columns["outcome"] = np.where(columns["outcome"] == 1, one, zero)
    run = ask(contract, columns, model=fitted(one, zero), positive={"outcome": one, "model": one})
    assert_close(numbers(run), numbers(usual(contract)), 1e-6)


class Wrapped:
    """A fitted classifier whose classes may stand in the other order."""

    def __init__(self, step: int) -> None:
        self.step = step
        self.classes_ = fitted().classes_[::step]
        self.feature_names_in_, self.n_features_in_ = fitted().feature_names_in_, fitted().n_features_in_

    def fit(self, X: Any, y: Any) -> Wrapped:
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        return fitted().predict_proba(X)[:, :: self.step]

    def predict(self, X: Any) -> np.ndarray:
        return fitted().predict(X)


@every_model
def test_the_order_of_a_models_classes_is_irrelevant(contract):
    one, other = (ask(contract, people(), model=Wrapped(step)) for step in (1, -1))
    assert_close(numbers(other), numbers(one))


@every_model
def test_a_model_of_the_other_class_is_noticed_and_can_be_named(contract):
    turned = fitted(0, 1)  # its class 1 is the data's outcome 0
    notes = " ".join(ask(contract, people(), model=turned).data["notes"])
    assert "it ranks people the wrong way round, or its decision 1 is not what the data mean by 1" in notes
    named = ask(contract, people(), model=turned, positive={"model": 0})
    assert_close(numbers(named), numbers(usual(contract)), 1e-6)


@every_audit
def test_the_answer_survives_a_round_trip(contract):
    plain = json.loads(usual(contract).to_json())
    assert [eh.Finding.from_dict(f).to_dict() for f in plain["findings"]] == findings(usual(contract))
    for result in usual(contract).results:
        content = json.loads(json.dumps(result.to_dict()))
        assert eh.AuditResult.from_dict(content).to_dict() == content
