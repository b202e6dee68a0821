"""Distances to the boundary against brute force and closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.errors import DataError, UsageError
from evenhand.models import as_model, boundary_distance
from evenhand.models.linear import length, linear_distance
from evenhand.models.search import search_distance

X = np.random.default_rng(0).normal(size=(150, 3)) * [1.0, 2.0, 5.0]
BETA = np.array([1.0, -0.8, 0.3])
Y = (X @ BETA > 0.2).astype(int)


def line(x):
    return x @ BETA


@pytest.mark.parametrize(("norm", "dual"), [("l2", 2), ("l1", np.inf), ("linf", 1)])
def test_linear_distance_is_margin_over_dual_norm(norm, dual):
    found = boundary_distance(as_model(line, threshold=0.2), X, norm=norm, scale="std")
    unit = X.std(axis=0)
    np.testing.assert_allclose(found.distance, np.abs(line(X) - 0.2) / np.linalg.norm(BETA * unit, ord=dual), rtol=1e-9)
    assert found.method == "linear"
    assert found.described["scale"] == "standard deviations of the audited data"


@pytest.mark.parametrize("norm", ["l2", "l1", "linf"])
def test_linear_distance_against_random_moves(norm):
    rng = np.random.default_rng(2)
    found = boundary_distance(as_model(line, threshold=0.2), X[:20], norm=norm, scale="none").distance
    moves = rng.normal(size=(40_000, 3)) ** 3
    moves /= length(moves, norm)[:, None]
    steep = np.abs(moves @ BETA).max()  # the best direction found
    np.testing.assert_allclose(found, np.abs(line(X[:20]) - 0.2) / steep, rtol=0.02)
    assert np.all(found <= np.abs(line(X[:20]) - 0.2) / steep + 1e-12)


def test_logistic_probability_and_pipeline_are_seen_to_be_linear():
    from sklearn.decomposition import PCA
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    plain = LogisticRegression(C=100.0).fit(X, Y)
    expected = np.abs(plain.decision_function(X)) / np.linalg.norm(plain.coef_)
    by_score = boundary_distance(as_model(plain), X, scale="none")
    by_probability = boundary_distance(as_model(lambda x: plain.predict_proba(x)[:, 1]), X, scale="none")
    np.testing.assert_allclose(by_score.distance, expected, rtol=1e-8)
    np.testing.assert_allclose(by_probability.distance, expected, rtol=1e-6)
    pipe = make_pipeline(StandardScaler(), PCA(3), LogisticRegression()).fit(X, Y)
    assert boundary_distance(as_model(pipe), X).method == "linear"


def test_mixed_cost_against_all_combinations():
    # [si2021] eq. (4), by listing every combination of the categorical columns
    rng = np.random.default_rng(3)
    data = np.column_stack([rng.normal(size=(80, 2)), rng.integers(0, 3, 80), rng.integers(0, 2, 80)])
    beta, delta = np.array([1.0, -0.5, 0.9, -1.2]), 0.4
    margin = data @ beta - 0.3
    combos = np.unique(data[:, 2:], axis=0)
    expected = []
    for row, m in zip(data, margin, strict=True):
        best = np.inf
        for combo in combos:
            moved = m + (combo - row[2:]) @ beta[2:]
            jump = 0.0 if np.array_equal(combo, row[2:]) else delta
            left = max(moved, 0.0) if m >= 0 else max(-moved, 0.0)
            best = min(best, jump + left / np.linalg.norm(beta[:2]))
        expected.append(best)
    found = linear_distance(margin, beta, data, np.ones(4), "l2", [2, 3], delta)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_only_categorical_features_can_be_out_of_reach():
    found = linear_distance(np.array([5.0]), np.array([1.0]), np.array([[1.0]]), np.ones(1), "l2", [0], 1.0)
    assert found.tolist() == [np.inf]


@pytest.mark.parametrize("norm", ["l2", "l1", "linf"])
def test_tree_distance_is_exact(norm):
    from sklearn.tree import DecisionTreeClassifier

    labels = ((X[:, 0] * X[:, 1] > 0) ^ (X[:, 2] > 1)).astype(int)
    tree = DecisionTreeClassifier(max_leaf_nodes=12, random_state=0).fit(X, labels)
    model = as_model(tree)
    found = boundary_distance(model, X, norm=norm, scale="none")
    assert found.method == "tree"
    # no random point nearer than the distance has another decision; some slightly further has
    rng = np.random.default_rng(4)
    for i in range(25):
        moves = rng.normal(size=(3000, 3)) ** 3
        moves /= length(moves, norm)[:, None]
        inside = X[i] + moves * found.distance[i] * rng.random((3000, 1)) * (1 - 1e-6)
        assert np.all(model.decide(inside) == model.decide(X[i : i + 1])[0])
    searched = search_distance(model.decide, X, norm, starts=4, rounds=1)
    assert np.all(searched.distance >= found.distance - 1e-5)
    assert np.median(searched.distance / found.distance) < 1.05


def test_tree_without_a_second_decision_is_infinitely_far():
    from sklearn.tree import DecisionTreeClassifier

    labels = (np.arange(150) % 10 == 0).astype(int)
    stump = DecisionTreeClassifier(max_depth=1, min_samples_leaf=70, random_state=0).fit(X, labels)
    assert set(stump.predict(X)) == {0}
    assert np.isinf(boundary_distance(as_model(stump), X, method="tree").distance).all()


def test_kernel_distance_is_a_distance_not_its_square():
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    svc = SVC(kernel="linear").fit(X, Y)
    # for the linear kernel the space is the features' own, so both formulas must agree
    by_kernel = boundary_distance(as_model(svc), X, method="kernel").distance
    by_line = boundary_distance(as_model(svc), X, scale="none").distance
    np.testing.assert_allclose(by_kernel, by_line, rtol=1e-6)
    pipe = make_pipeline(StandardScaler(), SVC(gamma=0.5)).fit(X, Y)
    found = boundary_distance(as_model(pipe), X)
    machine = pipe[-1]
    Z = pipe[:-1].transform(X)
    support = machine.support_vectors_
    gram = np.exp(-0.5 * ((support[:, None] - support[None]) ** 2).sum(axis=2))
    a = machine.dual_coef_[0]
    np.testing.assert_allclose(found.distance, np.abs(machine.decision_function(Z)) / np.sqrt(a @ gram @ a), rtol=1e-9)
    assert found.method == "kernel"


@pytest.mark.parametrize("norm", ["l2", "l1", "linf"])
def test_search_finds_a_known_curved_boundary(norm):
    # decision 1 outside the unit circle; for l2 the distance is | |z| - 1 |
    rng = np.random.default_rng(5)
    Z = rng.normal(size=(120, 2))

    def score(z):
        return (z**2).sum(axis=1) - 1

    found = search_distance(lambda z: (score(z) >= 0).astype(float), Z, norm, score=score, starts=4, rounds=3)
    if norm == "l2":
        exact = np.abs(np.linalg.norm(Z, axis=1) - 1)
        assert np.median(found.distance / exact) < 1.01
        assert np.all(found.distance >= exact - 1e-6)
    assert found.excess_median < 0.02


def test_search_states_its_accuracy_and_is_repeatable():
    from sklearn.ensemble import RandomForestClassifier

    forest = as_model(RandomForestClassifier(5, min_samples_leaf=10, random_state=0).fit(X, Y))
    first, second = (boundary_distance(forest, X, starts=1, rounds=1, seed=3) for _ in range(2))
    np.testing.assert_array_equal(first.distance, second.distance)
    assert first.method == "search"
    assert 0 <= first.described["excess_median"] <= first.described["excess_high"] <= 1


def test_one_decision_only_is_infinitely_far():
    found = boundary_distance(as_model(lambda x: np.zeros(len(x))), X, method="search")
    assert np.isinf(found.distance).all()


def test_requests_that_do_not_fit_are_refused():
    curved = as_model(lambda x: (x**2).sum(axis=1), threshold=1.0)
    with pytest.raises(UsageError, match="not linear"):
        boundary_distance(curved, X, method="linear")
    with pytest.raises(UsageError, match="need a linear classifier"):
        boundary_distance(curved, X, categorical=[0])
    with pytest.raises(UsageError, match="not a single decision tree"):
        boundary_distance(curved, X, method="tree")
    with pytest.raises(UsageError, match="`norm` is `l3`"):
        boundary_distance(curved, X, norm="l3")
    with pytest.raises(DataError, match="3 positive numbers"):
        boundary_distance(curved, X, scale=[1.0, 2.0])
