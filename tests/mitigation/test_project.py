"""Removing directions against plain linear algebra, and what an audit of the result says."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import evenhand as eh
from evenhand.audits.individual import audit_individual
from evenhand.errors import DataError
from evenhand.mitigation.project import Project, ProjectSensitive, sensitive_directions

RNG = np.random.default_rng(0)
N = 1200
X = RNG.normal(size=(N, 4))
SEX = (X[:, 0] + 0.3 * RNG.normal(size=N) > 0).astype(int)
Y = (1.2 * X[:, 0] + X[:, 1] + 0.5 * RNG.normal(size=N) > 0).astype(int)
TRAIN, TEST = np.arange(800), np.arange(800, N)
DATA = eh.AuditData.from_arrays(outcome=Y[TEST], groups={"sex": SEX[TEST]}, features=X[TEST])


def ratio(model):
    return audit_individual(DATA, model=model, similarity=["x0"], steps=100, refits=0, rng=0)[0].estimate


def test_projection_removes_exactly_the_directions():
    v = sensitive_directions(X, SEX)[0]
    project = ProjectSensitive([v]).fit(X)
    moved = project.transform(X)
    np.testing.assert_allclose(moved @ v, 0.0, atol=1e-10)
    np.testing.assert_allclose(project.transform(moved), moved, atol=1e-12)
    np.testing.assert_allclose(moved, X - np.outer(X @ v, v) / (v @ v), atol=1e-10)


def test_directions_are_those_of_logistic_regressions():
    theirs = LogisticRegression(C=0.5, tol=1e-10, max_iter=1000).fit(X, SEX).coef_
    np.testing.assert_allclose(sensitive_directions(X, SEX, l2=2.0), theirs, rtol=1e-5)
    three = np.digitize(X[:, 1], [-0.5, 0.5])
    one_each = [LogisticRegression(tol=1e-10, max_iter=1000).fit(X, three == k).coef_[0] for k in range(3)]
    np.testing.assert_allclose(sensitive_directions(X, three), one_each, rtol=1e-4, atol=1e-6)
    weight = RNG.integers(0, 3, N).astype(float)
    copies = np.repeat(np.arange(N), weight.astype(int))
    np.testing.assert_allclose(
        sensitive_directions(X, SEX, weight=weight), sensitive_directions(X[copies], SEX[copies]), rtol=1e-8
    )


def test_the_method_is_encoding_projection_and_learner_by_hand():
    scaled = StandardScaler().fit_transform(X)
    v = sensitive_directions(scaled, SEX)[0]
    behind = scaled - np.outer(scaled @ v, v) / (v @ v)
    by_hand = LogisticRegression(max_iter=1000).fit(behind, Y)
    model = Project().fit(X, Y, sensitive_features=SEX)
    np.testing.assert_allclose(model.predict_proba(X), by_hand.predict_proba(behind), atol=1e-8)


def test_projection_lowers_the_ratio():
    plain = LogisticRegression().fit(X[TRAIN], Y[TRAIN])
    repaired = Project(LogisticRegression()).fit(X[TRAIN], Y[TRAIN], sensitive_features=SEX[TRAIN])
    assert ratio(plain) > 2
    assert ratio(repaired) < 0.5 * ratio(plain)


def test_a_pipeline_with_sparse_columns_is_projected_before_its_last_step():
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": np.where(X[:, 2] > 0, "x", "y")})
    encode = make_column_transformer((OneHotEncoder(), ["c"]), remainder="passthrough", sparse_threshold=1.0)
    model = Project(make_pipeline(encode, RandomForestClassifier(5, random_state=0)))
    model.fit(frame, Y, sensitive_features=SEX)
    assert [name for name, _ in model.decides_as_.steps] == ["columntransformer", "project", "learner"]
    assert np.mean(model.predict(frame) == Y) > 0.8


def test_it_says_what_it_needs():
    assert clone(Project(l2=3.0)).l2 == 3.0
    with pytest.raises(DataError, match="single value"):
        sensitive_directions(X, np.zeros(N))
    with pytest.raises(DataError, match="for 2 inputs; X has 4"):
        ProjectSensitive([[1.0, 0.0]]).fit(X)
    with pytest.raises(DataError, match="for 2 inputs; X has 4"):
        Project(directions=[[1.0, 0.0]]).fit(X, Y, sensitive_features=SEX)
