"""STEALTH: clusters of about equal size, their representatives, and what the surrogate learns from."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from evenhand.errors import DataError, UsageError
from evenhand.mitigation.stealth import STEALTH, bisect, central

RNG = np.random.default_rng(2)
N = 900
X = RNG.normal(size=(N, 3))
GROUP = RNG.choice(["a", "b"], N)
Y = (X[:, 0] + 0.5 * RNG.normal(size=N) > 0).astype(int)


@pytest.mark.parametrize("size", [100, 257, 900])
def test_there_are_about_root_n_clusters_of_about_root_n_rows(size):
    method = STEALTH().fit(X[:size], Y[:size], sensitive_features=GROUP[:size])
    sizes = np.bincount(method.leaves_)
    assert len(sizes) == len(method.representatives_) == round(np.sqrt(size))
    assert sizes.sum() == size
    assert sizes.max() <= 2 * sizes.min() + 1
    more = STEALTH(exponent=0.7).fit(X[:size], Y[:size], sensitive_features=GROUP[:size])
    assert len(more.representatives_) == round(size**0.7)


def test_each_cluster_is_represented_by_its_row_nearest_to_its_mean():
    method = STEALTH().fit(X, Y, sensitive_features=GROUP)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    for k, row in enumerate(method.representatives_):
        inside = np.flatnonzero(method.leaves_ == k)
        away = [np.linalg.norm(scaled[j] - scaled[inside].mean(axis=0)) for j in inside]
        assert row == inside[np.argmin(away)]


def test_a_part_is_cut_between_two_distant_points():
    points = X[:40]
    east = max(points, key=lambda p: np.linalg.norm(p - points.mean(axis=0)))
    west = max(points, key=lambda p: np.linalg.norm(p - east))
    # How far along the line from east to west, by the law of cosines.
    along = [np.linalg.norm(p - east) ** 2 - np.linalg.norm(p - west) ** 2 for p in points]
    order = np.argsort(along)
    first, second = bisect(points, np.ones(40), 2)
    assert {frozenset(first.tolist()), frozenset(second.tolist())} == {
        frozenset(order[:20].tolist()),
        frozenset(order[20:].tolist()),
    }


def test_equal_points_are_cut_too():
    assert [part.size for part in bisect(np.zeros((6, 2)), np.ones(6), 6)] == [1] * 6
    assert [part.size for part in bisect(np.zeros((3, 2)), np.ones(3), 8)] == [1] * 3
    assert central(np.zeros((3, 2)), np.ones(3), np.array([1, 2])) == 1


def test_the_surrogate_learns_the_labels_of_the_model_or_the_true_ones():
    nearest = KNeighborsClassifier(1)
    model = DecisionTreeClassifier(max_depth=1).fit(X, Y)
    by_model = STEALTH(DecisionTreeClassifier(max_depth=1), surrogate=nearest).fit(X, Y, sensitive_features=GROUP)
    few = by_model.representatives_
    np.testing.assert_array_equal(by_model.predict(X[few]), model.predict(X[few]))
    true = STEALTH(surrogate=nearest, labels="true").fit(X, Y, sensitive_features=GROUP)
    np.testing.assert_array_equal(true.representatives_, few)
    np.testing.assert_array_equal(true.predict(X[few]), Y[few])
    expected = KNeighborsClassifier(1).fit(X[few], Y[few]).predict(X)
    np.testing.assert_array_equal(true.predict(X), expected)


def test_a_whole_weight_is_so_many_rows_in_the_cuts():
    weight = RNG.integers(1, 5, 60)
    rows = np.repeat(np.arange(60), weight)
    (first, _), (many, _) = bisect(X[:60], weight.astype(float), 2), bisect(X[rows], np.ones(len(rows)), 2)
    # The row at the median may be cut itself when it stands for several.
    assert len(set(first.tolist()) ^ set(rows[many].tolist())) <= 1


def test_rows_of_weight_0_are_not_there():
    weight = (np.arange(N) < 400).astype(float)
    one = STEALTH().fit(X, Y, sensitive_features=GROUP, sample_weight=weight)
    assert (one.leaves_[400:] == -1).all()
    assert one.representatives_.max() < 400
    assert len(one.representatives_) == 20


def test_the_same_whatever_is_drawn_elsewhere():
    first, second = (STEALTH(random_state=5).fit(X, Y, sensitive_features=GROUP) for _ in range(2))
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))
    other = STEALTH(random_state=6).fit(X, Y, sensitive_features=GROUP)
    np.testing.assert_array_equal(first.representatives_, other.representatives_)
    assert (first.predict_proba(X) != other.predict_proba(X)).any()
    assert np.mean(first.predict(X) == LogisticRegression().fit(X, Y).predict(X)) > 0.85


def test_bad_settings_are_refused():
    with pytest.raises(UsageError, match="`exponent` must be a number between 0 and 1; got 1"):
        STEALTH(exponent=1).fit(X, Y, sensitive_features=GROUP)
    with pytest.raises(UsageError, match="`labels` must be one of model, true; got 'x'"):
        STEALTH(labels="x").fit(X, Y, sensitive_features=GROUP)
    rare = (np.arange(N) < 3).astype(int)
    with pytest.raises(DataError, match="All 30 representatives have the label `0`"):
        STEALTH().fit(X, rare, sensitive_features=GROUP)
