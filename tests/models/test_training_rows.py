"""Whether a model has seen the rows it is audited on."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import evenhand as eh
from evenhand.models import audited_model
from evenhand.models.training_rows import QUESTION, compare_with_refits, training_rows

N = 400


def world(seed, n=N):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    signal = X[:, 0] + X[:, 1] * X[:, 2]
    return X, np.where(rng.random(n) < 1 / (1 + np.exp(-signal)), "approved", "denied"), signal + rng.normal(size=n)


def told(model, X, y):
    groups = {"g": np.arange(len(y)) % 2}
    data = eh.AuditData.from_arrays(outcome=y, groups=groups, features=X)
    return training_rows(audited_model(model, data), data)


KINDS = [
    RandomForestClassifier(20, random_state=0),
    HistGradientBoostingClassifier(max_iter=60),
    DecisionTreeClassifier(random_state=0),
]


@pytest.mark.parametrize("learner", KINDS, ids=lambda m: type(m).__name__)
def test_rows_that_were_learned_by_heart_are_named(learner):
    X, y, _ = world(1)
    said = told(learner.fit(X, y), X, y)
    assert said.startswith("These rows look like the rows the model was trained on: it errs on ")
    assert "Audit rows that the model has not seen." in said


@pytest.mark.parametrize("learner", [*KINDS, LogisticRegression()], ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("seed", range(3))
def test_other_rows_are_not(learner, seed):
    X, y, _ = world(100 + seed, 3000)
    fitted = learner.fit(X, y)
    assert told(fitted, *world(seed)[:2]) == QUESTION


def test_numbers_learned_by_heart_are_named_too():
    X, _, value = world(2)
    forest = RandomForestRegressor(20, random_state=0)
    assert "mean squared error" in told(forest.fit(X, value), X, value)
    assert told(forest.fit(*world(3, 3000)[::2]), X, value) == QUESTION


def test_the_order_of_rows_does_not_matter_and_a_run_says_it():
    X, y, _ = world(4)
    fitted = RandomForestClassifier(20).fit(X, y)
    order = np.random.default_rng(0).permutation(N)
    assert told(fitted, X, y) == told(fitted, X[order], y[order])
    data = eh.AuditData.from_arrays(outcome=y, groups={"g": np.arange(N) % 2}, features=X)
    run = eh.audit(data, model=fitted, plan=eh.Plan(audits=("group",), group={"metrics": ["fnr"]}))
    assert run.data["notes"][-1].startswith("These rows look like the rows")


def test_what_cannot_be_fitted_again_is_only_asked_about():
    X, y, _ = world(5)
    fitted = DecisionTreeClassifier(random_state=0).fit(X, y == "approved")
    data = eh.AuditData.from_arrays(outcome=y, groups={"g": np.arange(N) % 2}, features=X)
    asked = audited_model(lambda M: fitted.predict_proba(M)[:, 1], data)
    assert compare_with_refits(asked, data) is None
