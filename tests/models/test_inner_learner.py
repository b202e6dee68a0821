"""Audits look through a mitigator to the learner it decides as, and keep its words and their order."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import evenhand as eh
from evenhand.errors import UsageError
from evenhand.mitigation.estimator import fit_learner
from evenhand.mitigation.project import Project
from evenhand.models.adapter import audited_model, inner_learner
from evenhand.models.distances import boundary_distance
from evenhand.models.gradient_view import view_model

RNG = np.random.default_rng(2)
N = 300
FRAME = pd.DataFrame({"b": RNG.normal(size=N), "a": RNG.normal(size=N)})
SEX = np.where(RNG.normal(size=N) + FRAME["a"] > 0, "m", "f")
GOOD = (FRAME["b"] + 0.5 * FRAME["a"] + 0.3 * RNG.normal(size=N) > 0).to_numpy()


def data_of(words: tuple[str, str], columns: list[str]) -> eh.AuditData:
    """People whose outcome is the second word where it is good; it counts as 1."""
    return eh.AuditData.from_arrays(
        outcome=np.where(GOOD, words[1], words[0]),
        groups={"sex": SEX},
        features={n: FRAME[n].to_numpy() for n in columns},
        positive={"outcome": words[1]},
    )


@pytest.mark.parametrize("words", [("no", "yes"), ("worse", "better"), ("0", "1")])
@pytest.mark.parametrize("columns", [["b", "a"], ["a", "b"]])
def test_words_keep_their_meaning_in_either_order(words, columns):
    labels = np.where(GOOD, words[1], words[0])
    method = Project(LogisticRegression()).fit(FRAME, labels, sensitive_features=SEX)
    data = data_of(words, columns)
    made = audited_model(method, data)
    assert made.source is method.decides_as_
    assert made.outer is method
    assert made.name == "Project"
    place = method.classes_.tolist().index(words[1])
    np.testing.assert_allclose(made.score(data.features), method.predict_proba(FRAME)[:, place], atol=1e-12)
    np.testing.assert_array_equal(made.decide(data.features), method.predict(FRAME) == words[1])
    assert np.mean(made.decide(data.features) == GOOD) > 0.7
    view = view_model(made, data.features, data.outcome, "binary")
    assert view.network is not None
    X = view.space.encode(data.features)
    score = 1 / (1 + np.exp(-view.score(X)[:, 0]))
    np.testing.assert_allclose(score, method.predict_proba(FRAME)[:, place], atol=1e-9)


def test_a_class_that_is_named_later_turns_the_mitigator_not_its_learner():
    labels = np.where(GOOD, "blue", "red")
    method = Project(LogisticRegression()).fit(FRAME, labels, sensitive_features=SEX)
    data = eh.AuditData.from_arrays(
        outcome=GOOD.astype(int), groups={"sex": SEX}, features={n: FRAME[n].to_numpy() for n in FRAME}
    )
    with pytest.raises(UsageError, match="classes `blue` and `red`"):
        audited_model(method, data)
    made = audited_model(method, data, positive="blue")
    again = audited_model(made, data, positive="blue", threshold=0.7)
    np.testing.assert_array_equal(again.decide(data.features), method.predict_proba(FRAME)[:, 0] >= 0.7)


def test_a_method_whose_learner_takes_other_columns_is_asked_itself():
    class Narrow(Project):
        def _fit(self, rows):
            super()._fit(rows)
            self.decides_as_ = LogisticRegression().fit(np.asarray(rows.X), rows.y)

    method = Narrow().fit(FRAME, GOOD, sensitive_features=SEX)
    assert inner_learner(method) is method
    plain = LogisticRegression().fit(FRAME, GOOD)
    assert inner_learner(plain) is plain


@pytest.mark.parametrize(
    ("learner", "method"), [(LogisticRegression(), "linear"), (DecisionTreeClassifier(max_depth=3), "tree")]
)
def test_the_boundary_is_that_of_the_learner(learner, method):
    class Plain(Project):
        def _fit(self, rows):
            self.decides_as_ = fit_learner(self.estimator, rows)

    words = np.where(GOOD, "better", "worse")
    mitigated = Plain(learner).fit(FRAME, words, sensitive_features=SEX)
    data = data_of(("worse", "better"), ["a", "b"])
    through = boundary_distance(audited_model(mitigated, data), data.features)
    direct = boundary_distance(audited_model(clone(learner).fit(FRAME, words), data), data.features)
    assert through.method == direct.method == method
    np.testing.assert_allclose(through.distance, direct.distance, rtol=1e-9)
    np.testing.assert_array_equal(through.decision, direct.decision)
