from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import evenhand as eh
from evenhand.audits.individual import audit_individual
from evenhand.errors import DataError
from evenhand.mitigation.project import ProjectSensitive, sensitive_directions
from evenhand.mitigation.sensr import SenSRClassifier

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
    project = ProjectSensitive().fit(X, sensitive=SEX)
    moved = project.transform(X)
    v = sensitive_directions(X, SEX)[0]
    np.testing.assert_allclose(moved @ v, 0.0, atol=1e-10)
    np.testing.assert_allclose(project.transform(moved), moved, atol=1e-12)
    np.testing.assert_allclose(moved, X - np.outer(X @ v, v) / (v @ v), atol=1e-10)


def test_projection_in_a_pipeline_lowers_the_ratio():
    plain = LogisticRegression().fit(X[TRAIN], Y[TRAIN])
    repaired = make_pipeline(ProjectSensitive(), LogisticRegression())
    repaired.fit(X[TRAIN], Y[TRAIN], projectsensitive__sensitive=SEX[TRAIN])
    assert ratio(plain) > 2
    assert ratio(repaired) < 0.5 * ratio(plain)


def test_estimators_can_be_cloned_and_say_what_they_need():
    assert clone(ProjectSensitive(l2=3.0)).l2 == 3.0
    assert clone(SenSRClassifier((5,), steps=3)).steps == 3
    for estimator in (ProjectSensitive(), SenSRClassifier()):
        with pytest.raises(DataError, match="needs `directions`, or the attributes as `sensitive`"):
            estimator.fit(X, Y)
    with pytest.raises(DataError, match="single value"):
        ProjectSensitive().fit(X, sensitive=np.zeros(N))
    with pytest.raises(DataError, match="for 2 inputs; X has 4"):
        ProjectSensitive([[1.0, 0.0]]).fit(X)
    with pytest.raises(DataError, match="single class"):
        SenSRClassifier(directions=np.eye(4)[:1]).fit(X, np.zeros(N))


def test_sensr_treats_similar_people_more_alike_than_the_same_network_without():
    shared = {"hidden": (20,), "steps": 400, "batch_size": 200, "learning_rate": 5e-3, "random_state": 0}
    plain = SenSRClassifier(**shared, subspace_steps=0, full_steps=0).fit(X[TRAIN], Y[TRAIN])
    fair = SenSRClassifier(**shared, directions=np.eye(4)[:1], subspace_steps=5, subspace_rate=1.0, full_steps=3).fit(
        X[TRAIN], Y[TRAIN]
    )
    assert plain.score(X[TEST], Y[TEST]) > 0.85
    assert 0.6 < fair.score(X[TEST], Y[TEST]) < plain.score(X[TEST], Y[TEST])
    assert ratio(fair) < 1.2 < 2 < ratio(plain)
    again = clone(fair).fit(X[TRAIN], Y[TRAIN])
    np.testing.assert_array_equal(again.predict_proba(X), fair.predict_proba(X))


def test_sensr_learns_several_classes_and_directions_by_itself():
    three = np.digitize(X[:, 1], [-0.5, 0.5])
    model = SenSRClassifier((10,), steps=150, batch_size=150, learning_rate=1e-2, full_steps=2)
    model.fit(X[TRAIN], three[TRAIN], sensitive=SEX[TRAIN])
    assert model.decision_function(X).shape == (N, 3)
    assert model.score(X[TEST], three[TEST]) > 0.7
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
