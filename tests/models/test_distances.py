"""Distances to the boundary against brute force and closed forms."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from evenhand.errors import DataError, UsageError
from evenhand.models import adapt
from evenhand.models.distances import boundary_distance
from evenhand.models.linear import plane_distance
from evenhand.models.moves import Moves, length
from evenhand.models.search import search_boundary

X = np.random.default_rng(0).normal(size=(150, 3)) * [1.0, 2.0, 5.0]
BETA = np.array([1.0, -0.8, 0.3])
Y = (X @ BETA > 0.2).astype(int)


def line(x):
    return x @ BETA


def measured(model, X, *, threshold=None, **how):
    columns = {f"x{j}": column for j, column in enumerate(X.T)}
    return boundary_distance(adapt(model, columns, threshold=threshold), columns, Moves(**how))


@pytest.mark.parametrize(("norm", "dual"), [("l2", 2), ("l1", np.inf), ("linf", 1)])
def test_linear_distance_is_margin_over_dual_norm(norm, dual):
    found = measured(line, X, threshold=0.2, norm=norm, scale="std")
    unit = X.std(axis=0)
    np.testing.assert_allclose(found.distance, np.abs(line(X) - 0.2) / np.linalg.norm(BETA * unit, ord=dual), rtol=1e-9)
    assert found.method == "linear"
    assert found.described["scale"] == "standard deviations of the audited data"


@pytest.mark.parametrize("norm", ["l2", "l1", "linf"])
def test_linear_distance_against_random_moves(norm):
    rng = np.random.default_rng(2)
    found = measured(line, X[:20], threshold=0.2, norm=norm, scale="none").distance
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
    by_score = measured(plain, X, scale="none")
    by_probability = measured(lambda x: plain.predict_proba(x)[:, 1], X, scale="none")
    np.testing.assert_allclose(by_score.distance, expected, rtol=1e-8)
    np.testing.assert_allclose(by_probability.distance, expected, rtol=1e-6)
    pipe = make_pipeline(StandardScaler(), PCA(3), LogisticRegression()).fit(X, Y)
    assert measured(pipe, X).method == "linear"


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
    found = plane_distance(margin, beta[:2], data[:, 2:] * beta[2:], Moves(delta=delta))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_only_categorical_features_can_be_out_of_reach():
    found = plane_distance(np.array([5.0]), np.empty(0), np.array([[1.0]]), Moves())
    assert found.tolist() == [np.inf]


@pytest.mark.parametrize("norm", ["l2", "l1", "linf"])
def test_tree_distance_is_exact(norm):
    from sklearn.tree import DecisionTreeClassifier

    labels = ((X[:, 0] * X[:, 1] > 0) ^ (X[:, 2] > 1)).astype(int)
    tree = DecisionTreeClassifier(max_leaf_nodes=12, random_state=0).fit(X, labels)
    found = measured(tree, X, norm=norm, scale="none")
    assert found.method == "tree"
    # no random point nearer than the distance has another decision; some slightly further has
    rng = np.random.default_rng(4)
    for i in range(25):
        moves = rng.normal(size=(3000, 3)) ** 3
        moves /= length(moves, norm)[:, None]
        inside = X[i] + moves * found.distance[i] * rng.random((3000, 1)) * (1 - 1e-6)
        assert np.all(tree.predict(inside) == tree.predict(X[i : i + 1])[0])
    searched = search_boundary(
        lambda z, _: tree.predict(z) * 1.0, None, X, Moves(norm=norm, starts=4, rounds=1), shared=True
    )
    assert np.all(searched.distance >= found.distance - 1e-5)
    assert np.median(searched.distance / found.distance) < 1.05


def test_tree_without_a_second_decision_is_infinitely_far():
    from sklearn.tree import DecisionTreeClassifier

    labels = (np.arange(150) % 10 == 0).astype(int)
    stump = DecisionTreeClassifier(max_depth=1, min_samples_leaf=70, random_state=0).fit(X, labels)
    assert set(stump.predict(X)) == {0}
    assert np.isinf(measured(stump, X, method="tree").distance).all()


def test_kernel_distance_is_a_distance_not_its_square():
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    svc = SVC(kernel="linear").fit(X, Y)
    # for the linear kernel the space is the features' own, so both formulas must agree
    by_kernel = measured(svc, X, method="kernel").distance
    by_line = measured(svc, X, scale="none").distance
    np.testing.assert_allclose(by_kernel, by_line, rtol=1e-6)
    pipe = make_pipeline(StandardScaler(), SVC(gamma=0.5)).fit(X, Y)
    found = measured(pipe, X)
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

    def score(z, _):
        return (z**2).sum(axis=1) - 1

    effort = Moves(norm=norm, starts=4, rounds=3)
    found = search_boundary(lambda z, of: (score(z, of) >= 0).astype(float), score, Z, effort, shared=True)
    if norm == "l2":
        exact = np.abs(np.linalg.norm(Z, axis=1) - 1)
        assert np.median(found.distance / exact) < 1.01
        assert np.all(found.distance >= exact - 1e-6)
    assert found.excess_median < 0.02


def test_what_a_search_finds_does_not_depend_on_the_order_of_rows():
    """Some rows are searched again, harder, to state the accuracy: which ones they are must not show in distances."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 4))

    def wavy(x):
        return np.sin(2 * x[:, 0]) + np.cos(3 * x[:, 1]) * x[:, 2] + 0.4 * x[:, 3]

    order = rng.permutation(400)
    some, others = (measured(wavy, rows, threshold=0.2, method="search") for rows in (X, X[order]))
    assert some.described["excess_high"] > 0  # so that searching harder would have changed distances
    np.testing.assert_allclose(some.distance[order], others.distance, rtol=1e-9)
    assert some.described["excess_high"] == pytest.approx(others.described["excess_high"], rel=1e-6)


def test_search_states_its_accuracy_and_is_repeatable():
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(5, min_samples_leaf=10, random_state=0).fit(X, Y)
    first, second = (measured(forest, X, starts=1, rounds=1) for _ in range(2))
    np.testing.assert_array_equal(first.distance, second.distance)
    assert first.method == "search"
    assert 0 <= first.described["excess_median"] <= first.described["excess_high"] <= 1


def test_one_decision_only_is_infinitely_far():
    found = measured(lambda x: np.zeros(len(x)), X, method="search")
    assert np.isinf(found.distance).all()


def test_requests_that_do_not_fit_are_refused():
    def refused(**how):
        return measured(lambda x: (x**2).sum(axis=1), X, threshold=1.0, **how)

    with pytest.raises(UsageError, match="not linear"):
        refused(method="linear")
    with pytest.raises(UsageError, match="need a linear classifier"):
        refused(categorical=["x0"])
    with pytest.raises(UsageError, match="not a single decision tree"):
        refused(method="tree")
    with pytest.raises(UsageError, match="`norm` is `l3`"):
        refused(norm="l3")
    with pytest.raises(DataError, match="3 positive numbers"):
        refused(scale=[1.0, 2.0])


@pytest.mark.parametrize("kind", ["forest", "boosting", "encoded", "whole"])
def test_searched_distances_do_not_depend_on_the_order_of_rows(kind):
    rng = np.random.default_rng(8)
    x, z = rng.normal(size=(2, 400)).round(1)
    job = rng.choice(["a", "b", "c"], 400)
    y = x * z + (job == "a") + rng.normal(size=400) > 0
    columns = {"x": x, "z": z} | ({"job": job} if kind in ("encoded", "whole") else {})
    frame = pd.DataFrame(columns)
    if kind == "whole":

        def model(rows):
            return np.tanh(rows["x"] * rows["z"] + (rows["job"] == "a")) - 0.2

    else:
        learner = {"boosting": HistGradientBoostingClassifier(random_state=0, max_iter=20)}.get(
            kind, RandomForestClassifier(10, min_samples_leaf=3, random_state=0)
        )
        encode = make_column_transformer((OneHotEncoder(), ["job"]), remainder="passthrough")
        model = make_pipeline(encode, learner).fit(frame, y) if kind == "encoded" else learner.fit(frame.to_numpy(), y)
    order = rng.permutation(400)
    moved = {name: column[order] for name, column in columns.items()}
    one, two = (boundary_distance(adapt(model, given, threshold=0.5), given) for given in (columns, moved))
    assert one.method == "search"
    np.testing.assert_array_equal(one.distance[order], two.distance)
