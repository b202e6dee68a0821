"""`audit_arrays`: the names of scikit-learn and fairlearn, and the numbers of fairlearn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from fairlearn.metrics import MetricFrame, false_negative_rate, false_positive_rate, selection_rate
from sklearn.metrics import accuracy_score, precision_score

import evenhand as eh

PEERS = {
    "fnr": false_negative_rate,
    "fpr": false_positive_rate,
    "selection_rate": selection_rate,
    "accuracy": accuracy_score,
    "precision": precision_score,
}
ROWS = 900


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(3)
    race, sex = rng.choice(["a", "b", "c"], ROWS, p=[0.2, 0.5, 0.3]), rng.choice(["F", "M"], ROWS)
    y_true = rng.integers(0, 2, ROWS)
    y_pred = np.where(rng.random(ROWS) < np.where(race == "a", 0.4, 0.2), 1 - y_true, y_true)
    return y_true, y_pred, race, sex, rng.uniform(0.5, 2, ROWS)


@pytest.mark.parametrize("weighted", [False, True])
def test_estimates_are_the_differences_of_fairlearn(people, weighted):
    y_true, y_pred, race, _, weight = people
    params = {name: {"sample_weight": weight} for name in PEERS} if weighted else None
    peer = MetricFrame(metrics=PEERS, y_true=y_true, y_pred=y_pred, sensitive_features=race, sample_params=params)
    run = eh.audit_arrays(
        y_true, y_pred, sensitive_features=race, sample_weight=weight if weighted else None, metrics=[*PEERS]
    )
    pairs = [f for f in run.findings if len(f.groups) == 2]
    assert len(pairs) == 2 * len(PEERS)
    for finding in pairs:
        group, reference = (name.partition("=")[2] for name in finding.groups)
        assert reference == "b", "the largest group"
        column = peer.by_group[finding.measure]
        assert finding.estimate == pytest.approx(column[group] - column[reference], abs=1e-12)
    spread = peer.difference(method="between_groups")
    for finding in run.find(measure="fnr"):
        if finding.measure == "fnr_global":
            assert finding.estimate == pytest.approx(spread["fnr"], abs=1e-12)


def test_each_kind_of_sensitive_features_gives_the_same_answer(people):
    y_true, y_pred, race, sex, _ = people
    asked = {"metrics": ["fnr"]}
    plain = eh.audit_arrays(y_true, y_pred, sensitive_features={"race": race}, **asked)
    for features in (pd.Series(race, name="race"), pl.Series("race", race), pd.DataFrame({"race": race})):
        run = eh.audit_arrays(list(y_true), pd.Series(y_pred), sensitive_features=features, **asked)
        assert run.to_dict()["findings"] == plain.to_dict()["findings"]
    unnamed = [race, race.tolist(), pd.Series(race), pd.Series(race).astype("category")]
    for features in unnamed:
        run = eh.audit_arrays(y_true, y_pred, sensitive_features=features, **asked)
        assert run.findings[0].groups == ("sensitive_feature=a", "sensitive_feature=b")
        assert [f.estimate for f in run.findings] == [f.estimate for f in plain.findings]
    both = eh.audit_arrays(y_true, y_pred, sensitive_features=np.column_stack([race, sex]), **asked)
    assert {f.groups[0].partition("=")[0] for f in both.findings} == {"sensitive_feature_0", "sensitive_feature_1"}


def test_control_features_are_what_people_are_compared_within(people):
    y_true, y_pred, race, sex, _ = people
    run = eh.audit_arrays(y_true, y_pred, sensitive_features=race, control_features=sex, metrics=["selection_rate"])
    assert run.findings[0].measure == "selection_rate_conditional"
    assert run.data["columns"]["strata"] == "control_feature"


def test_labels_scores_and_options_are_taken(people):
    y_true, y_pred, _, sex, _ = people
    words = np.array(["bad", "good"])
    run = eh.audit_arrays(
        words[y_true],
        words[y_pred],
        sensitive_features={"sex": sex},
        y_score=0.25 + y_pred / 2,
        pos_label="good",
        metrics=["tpr", "auc"],
        margin=0.2,
        alpha=0.01,
        reference={"sex": "F"},
        rng=7,
    )
    assert {f.groups for f in run.findings} == {("sex=M", "sex=F")}
    assert (run.plan["alpha"], run.seed, run.findings[0].margin) == (0.01, 7, 0.2)
    cut = eh.audit_arrays(y_true, y_score=0.25 + y_pred / 2, sensitive_features=sex, threshold=0.5, metrics=["fnr"])
    same = eh.audit_arrays(y_true, y_pred, sensitive_features=sex, metrics=["fnr"])
    assert cut.findings[0].estimate == same.findings[0].estimate


def test_wrong_words_are_answered(people):
    y_true, y_pred, race, _, _ = people
    with pytest.raises(eh.UsageError, match=r"no option `metric`\. Did you mean `metrics`"):
        eh.audit_arrays(y_true, y_pred, sensitive_features=race, metric="fnr")
    with pytest.raises(eh.DataError, match="`sensitive_features` has 3 dimensions"):
        eh.audit_arrays(y_true, y_pred, sensitive_features=np.zeros((2, 2, 2)))
    with pytest.raises(eh.DataError, match=r"rows|length"):
        eh.audit_arrays(y_true, y_pred[:-1], sensitive_features=race)
