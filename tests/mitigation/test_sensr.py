"""SenSR: its network against scikit-learn's, and the audit it is trained for."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import evenhand as eh
from evenhand.audits.individual import audit_individual
from evenhand.errors import DataError
from evenhand.mitigation.sensr import SenSR

RNG = np.random.default_rng(0)
N = 1200
X = RNG.normal(size=(N, 4))
SEX = (X[:, 0] + 0.3 * RNG.normal(size=N) > 0).astype(int)
Y = (1.2 * X[:, 0] + X[:, 1] + 0.5 * RNG.normal(size=N) > 0).astype(int)
TRAIN, TEST = np.arange(800), np.arange(800, N)
DATA = eh.AuditData.from_arrays(outcome=Y[TEST], groups={"sex": SEX[TEST]}, features=X[TEST])
SHARED = {"hidden": (20,), "steps": 400, "batch_size": 200, "learning_rate": 5e-3, "encoder": "passthrough"}


def ratio(model):
    return audit_individual(DATA, model=model, similarity=["x0"], steps=100, refits=0, rng=0)[0].estimate


def fitted(**settings):
    return SenSR(**SHARED | settings).fit(X[TRAIN], Y[TRAIN], sensitive_features=SEX[TRAIN])


@pytest.mark.parametrize("balanced", [True, False])
def test_it_treats_similar_people_more_alike_than_the_same_network_without(balanced):
    plain = fitted(subspace_steps=0, full_steps=0, balanced=balanced)
    fair = fitted(directions=np.eye(4)[:1], subspace_steps=5, subspace_rate=1.0, full_steps=3, balanced=balanced)
    assert plain.score(X[TEST], Y[TEST]) > 0.85
    assert 0.6 < fair.score(X[TEST], Y[TEST]) < plain.score(X[TEST], Y[TEST])
    assert ratio(fair) < 1.2 < 2 < ratio(plain)
    again = clone(fair).fit(X[TRAIN], Y[TRAIN], sensitive_features=SEX[TRAIN])
    np.testing.assert_array_equal(again.predict_proba(X), fair.predict_proba(X))


def test_without_attack_and_hidden_layer_it_is_logistic_regression():
    rare = (X[:, 0] + X[:, 1] + RNG.normal(size=N) > 1).astype(int)
    settings = {"subspace_steps": 0, "full_steps": 0, "steps": 3000, "batch_size": 1200, "learning_rate": 2e-3}
    weight = np.where(rare == 1, 3.0, 1.0)
    for given, balanced in (
        (None, False),
        (weight, False),
        (np.where(rare == 1, 1 / rare.mean(), 1 / (1 - rare.mean())), True),
    ):
        ours = SenSR((), encoder="passthrough", balanced=balanced, **settings)
        ours.fit(X, rare, sensitive_features=SEX, sample_weight=None if balanced else given)
        theirs = LogisticRegression(C=1e6).fit(X, rare, sample_weight=given)
        network = ours.decides_as_
        slope = network.weights[0][:, 1] - network.weights[0][:, 0]
        np.testing.assert_allclose(slope, theirs.coef_[0], atol=0.1)
        np.testing.assert_allclose(network.biases[0][1] - network.biases[0][0], theirs.intercept_[0], atol=0.1)


def test_directions_are_learned_behind_the_encoding():
    model = SenSR((5,), steps=3, batch_size=20).fit(X * [1, 10, 1, 1] + 5, Y, sensitive_features=SEX)
    scaled = model.decides_as_[:-1].transform(X * [1, 10, 1, 1] + 5)
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-10)
    theirs = LogisticRegression(tol=1e-10, max_iter=1000).fit(scaled, SEX).coef_
    np.testing.assert_allclose(model.directions_, theirs, rtol=1e-4, atol=1e-6)
    with pytest.raises(DataError, match="for 2 inputs; X has 4"):
        SenSR(directions=[[1.0, 0.0]]).fit(X, Y, sensitive_features=SEX)


def test_its_gradient_is_its_own():
    model = fitted(steps=50)
    gradient = model.decides_as_.gradient_model()
    outputs, pull = gradient.network.pullback(X[:3])
    np.testing.assert_allclose(outputs[:, 1] - outputs[:, 0], model.decides_as_.decision_function(X[:3]))
    slope = pull(np.tile([-1.0, 1.0], (3, 1)))
    for j in range(4):
        step = 1e-6 * np.eye(4)[j]
        rise = model.decides_as_.decision_function(X[:3] + step) - model.decides_as_.decision_function(X[:3] - step)
        np.testing.assert_allclose(slope[:, j], rise / 2e-6, rtol=1e-4, atol=1e-6)
