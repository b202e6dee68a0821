"""The linear constraint against a constrained optimum, and against the formula in its paper."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import evenhand as eh
from evenhand.errors import DataError, UsageError
from evenhand.mitigation.linear_constraint import EqualMeans, LinearConstraint
from evenhand.models.adapter import audited_model
from evenhand.models.distances import boundary_distance
from evenhand.models.gradient_view import view_model

RNG = np.random.default_rng(3)
N = 240
GROUP = RNG.choice(["a", "b", "c"], N)
TWO = np.where(GROUP == "c", "b", GROUP)
X = RNG.normal(size=(N, 4)) + np.array([1.0, 0.4, 0.0, 0.2]) * (GROUP == "a")[:, None]
X[:, 2] += 0.7 * (GROUP == "c")
Y = (X @ [1.0, 0.8, 0.5, 0.0] + RNG.normal(size=N) > 0.2).astype(int)


def mean_scores(score: np.ndarray, group: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """Return each group's mean score among true ones."""
    weight = np.ones(N) if weight is None else weight
    return np.array(
        [np.average(score[(Y == 1) & (group == g)], weights=weight[(Y == 1) & (group == g)]) for g in np.unique(group)]
    )


def test_the_formula_of_the_paper():
    u = X[(Y == 1) & (TWO == "a")].mean(axis=0) - X[(Y == 1) & (TWO == "b")].mean(axis=0)
    i = int(np.argmax(np.abs(u)))
    by_hand = np.delete(X - np.outer(X[:, i] / u[i], u), i, axis=1)
    equal = EqualMeans().fit(X, Y, group=TWO)
    np.testing.assert_allclose(equal.transform(X), by_hand, atol=1e-13)
    assert equal.get_feature_names_out(list("pqrs")).tolist() == [n for j, n in enumerate("pqrs") if j != i]


def test_it_is_the_constrained_optimum():
    scaled = StandardScaler().fit_transform(X)
    u = scaled[(Y == 1) & (TWO == "a")].mean(axis=0) - scaled[(Y == 1) & (TWO == "b")].mean(axis=0)
    rest = np.arange(4) != int(np.argmax(np.abs(u)))
    sign = 2 * Y - 1

    def loss(v: np.ndarray) -> float:
        return float(np.logaddexp(0, -sign * (scaled @ v[:4] + v[4])).sum() + 0.5 * v[:4][rest] @ v[:4][rest])

    best = minimize(
        loss,
        np.zeros(5),
        method="SLSQP",
        constraints={"type": "eq", "fun": lambda v: v[:4] @ u},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert best.success
    model = LinearConstraint(LogisticRegression(C=1.0, tol=1e-10)).fit(X, Y, sensitive_features=TWO)
    score = model.decides_as_.decision_function(X)
    np.testing.assert_allclose(score, scaled @ best.x[:4] + best.x[4], atol=1e-4)
    free = minimize(loss, np.zeros(5), method="BFGS")
    assert loss(best.x) > free.fun + 1, "the constraint binds"


@pytest.mark.parametrize("learner", [LogisticRegression(), SVC(kernel="linear")])
@pytest.mark.parametrize("group", [TWO, GROUP])
def test_mean_scores_agree_in_two_and_three_groups_with_weights(learner, group):
    plain = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y).decision_function(X)
    assert np.ptp(mean_scores(plain, group)) > 0.3
    weight = RNG.uniform(0.1, 3.0, N)
    for given in (None, weight):
        model = LinearConstraint(learner).fit(X, Y, sensitive_features=group, sample_weight=given)
        score = model.decides_as_.decision_function(X)
        assert np.ptp(mean_scores(score, group, given)) < 1e-9
        assert np.mean(model.predict(X) == Y) > 0.6


def test_audits_see_a_linear_model():
    frame = pd.DataFrame(X, columns=list("pqrs"))
    words = np.where(Y == 1, "fit", "unfit")
    model = LinearConstraint().fit(frame, words, sensitive_features=TWO)
    data = eh.AuditData.from_arrays(
        outcome=words, groups={"g": TWO}, features={n: X[:, j] for j, n in enumerate("pqrs")}, positive="fit"
    )
    made = audited_model(model, data)
    assert boundary_distance(made, data.features).method == "linear"
    view = view_model(made, data.features, data.outcome, "binary")
    assert view.space.names == tuple("pqrs")
    at = view.space.encode(data.features)
    # `fit` sorts before `unfit`, so that it is the model's first class.
    expected = -model.decides_as_.decision_function(frame)
    np.testing.assert_allclose(view.network.outputs(at)[:, 0], expected, atol=1e-9)


def test_equal_means_need_no_change():
    twice = np.vstack([X, X])
    model = LinearConstraint().fit(twice, np.tile(Y, 2), sensitive_features=np.repeat(["a", "b"], N))
    plain = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(twice, np.tile(Y, 2))
    np.testing.assert_allclose(model.predict_proba(twice), plain.predict_proba(twice), atol=1e-9)


def test_what_cannot_work_is_refused():
    with pytest.raises(UsageError, match="RandomForestClassifier is not linear"):
        LinearConstraint(RandomForestClassifier(3)).fit(X, Y, sensitive_features=TWO)
    with pytest.raises(DataError, match="has no row with label 1"):
        LinearConstraint().fit(X, np.where(TWO == "a", 0, Y), sensitive_features=TWO)
    with pytest.raises(DataError, match="too few for 2 groups"):
        LinearConstraint().fit(X[:, :1], Y, sensitive_features=TWO)
