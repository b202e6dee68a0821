from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as sk

import evenhand as eh
from evenhand.errors import UsageError
from evenhand.metrics import default_metrics, resolve

rng = np.random.default_rng(0)
Y = rng.random(500) < 0.4
D = rng.random(500) < np.where(Y, 0.7, 0.2)
TABLE = np.array([np.sum(~Y & ~D), np.sum(~Y & D), np.sum(Y & ~D), np.sum(Y & D)])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("selection_rate", D.mean()),
        ("tpr", sk.recall_score(Y, D)),
        ("fnr", 1 - sk.recall_score(Y, D)),
        ("tnr", sk.recall_score(~Y, ~D)),
        ("fpr", 1 - sk.recall_score(~Y, ~D)),
        ("precision", sk.precision_score(Y, D)),
        ("fdr", 1 - sk.precision_score(Y, D)),
        ("npv", sk.precision_score(~Y, ~D)),
        ("for", 1 - sk.precision_score(~Y, ~D)),
        ("accuracy", sk.accuracy_score(Y, D)),
        ("error_rate", 1 - sk.accuracy_score(Y, D)),
        ("balanced_accuracy", sk.balanced_accuracy_score(Y, D)),
        ("f1", sk.f1_score(Y, D)),
        ("aod", (sk.recall_score(Y, D) + 1 - sk.recall_score(~Y, ~D)) / 2),
        ("spd", D.mean()),
        ("di", D.mean()),
        ("eod", sk.recall_score(Y, D)),
    ],
)
def test_value_agrees_with_scikit_learn(name, expected):
    assert float(eh.METRICS[name](TABLE)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", [m.name for m in eh.METRICS.values() if m.kind in ("rate", "table")])
def test_empty_table_has_no_value(name):
    assert np.isnan(eh.METRICS[name](np.zeros(4)))


def test_wrong_name_offers_near_matches():
    with pytest.raises(UsageError, match=r"Metric `fnrr` is not known. Did you mean `fnr`"):
        resolve("fnrr")
    with pytest.raises(UsageError, match="named twice"):
        resolve(["fnr", "FNR"])
    with pytest.raises(UsageError, match="No metric"):
        resolve([])


def test_score_metrics_are_no_function_of_a_table():
    with pytest.raises(TypeError, match="auc"):
        eh.METRICS["auc"](TABLE)


@pytest.mark.parametrize(
    ("outcome", "decision", "score", "names"),
    [
        ("binary", True, True, ["selection_rate", "fnr", "fpr", "auc"]),
        ("none", True, False, ["selection_rate"]),
        ("numeric", False, True, ["mae", "mean_residual"]),
        ("none", False, True, ["mean_score"]),
        ("binary", False, True, ["auc", "mean_residual"]),
    ],
)
def test_default_metrics_follow_the_columns(outcome, decision, score, names):
    found = default_metrics(outcome_kind=outcome, has_decision=decision, has_score=score)
    assert [m.name for m in found] == names
