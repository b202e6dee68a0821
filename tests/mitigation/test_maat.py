"""MAAT on a set small enough to compute by hand."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.tree import DecisionTreeClassifier

from evenhand.errors import DataError, UsageError
from evenhand.mitigation.estimator import check_training
from evenhand.mitigation.maat import MAAT, equal_shares

# Six of ten in a and two of ten in b have label 1; eight of twenty in all.
GROUP = np.repeat(["a", "b"], 10)
Y = np.array([1] * 6 + [0] * 4 + [1] * 2 + [0] * 8)
X = (GROUP == "a").astype(float)[:, None]


def kept_of(y, group, weight=None, seed=0):
    rows = equal_shares(check_training(X, y, group, weight), np.random.default_rng(seed))
    counted = np.ones(len(y)) if weight is None else weight
    return {(g, k): counted[rows][(group[rows] == g) & (y[rows] == k)].sum() for g in "ab" for k in (0, 1)}


def test_rows_left_out_are_those_counted_by_hand():
    # a keeps 4 * 8/12 = 2.67, so 3, of its ones; b keeps 2 * 12/8 = 3 of its zeros.
    assert kept_of(Y, GROUP) == {("a", 1): 3, ("a", 0): 4, ("b", 1): 2, ("b", 0): 3}


def test_no_other_numbers_give_equal_shares_and_keep_the_share_of_all():
    counts = {("a", 1): 60, ("a", 0): 40, ("b", 1): 20, ("b", 0): 80}
    y = np.concatenate([np.full(n, k) for (_, k), n in counts.items()])
    group = np.concatenate([np.full(n, g) for (g, _), n in counts.items()])
    solutions = [
        (ones, zeros)
        for ones, zeros in product(range(1, 61), range(1, 81))
        if abs(ones / (ones + 40) - 20 / (20 + zeros)) < 0.003 and abs((ones + 20) / (ones + zeros + 60) - 0.4) < 0.003
    ]
    rows = equal_shares(check_training(np.zeros((200, 1)), y, group, None), np.random.default_rng(0))
    kept = [int(np.sum((group[rows] == g) & (y[rows] == k))) for g, k in (("a", 1), ("b", 0), ("a", 0), ("b", 1))]
    assert solutions == [(27, 30)]
    assert kept == [27, 30, 40, 20]


def test_probabilities_are_the_mean_of_both_models_by_hand():
    tree = MAAT(DecisionTreeClassifier()).fit(X, Y, sensitive_features=GROUP)
    shares = {"a": (0.6 + 3 / 7) / 2, "b": (0.2 + 2 / 5) / 2}
    np.testing.assert_allclose(tree.predict_proba(X)[:, 1], [shares[g] for g in GROUP])
    np.testing.assert_array_equal(tree.predict(X), (GROUP == "a").astype(int))
    flat = MAAT(DummyClassifier(strategy="prior"), strength=0.25).fit(X, Y, sensitive_features=GROUP)
    np.testing.assert_allclose(flat.predict_proba(X)[:, 1], 0.75 * 8 / 20 + 0.25 * 5 / 12)
    for strength, ones in ((0, 0.6), (1, 3 / 7)):
        alone = MAAT(DecisionTreeClassifier(), strength=strength).fit(X, Y, sensitive_features=GROUP)
        assert alone.predict_proba(X)[0, 1] == pytest.approx(ones)


def test_rows_count_by_their_weight():
    weight = np.where(GROUP == "b", 2.0, 1.0)
    weight[0] = 0
    # Ones weigh 5 in a and 4 in b, zeros 4 and 16: odds 9/20. a keeps 1.8 of its ones, b 8.9 of its zeros.
    assert kept_of(Y, GROUP, weight) == {("a", 1): 2, ("a", 0): 4, ("b", 1): 4, ("b", 0): 8}
    method = MAAT(DecisionTreeClassifier(), strength=1.0).fit(X, Y, sensitive_features=GROUP, sample_weight=weight)
    assert 0 not in method.fairness_rows_
    np.testing.assert_allclose(method.predict_proba(X)[[0, 19], 1], [2 / 6, 4 / 12])


def test_which_rows_are_left_out_depends_on_the_seed_alone():
    first, again, other = (MAAT(random_state=s).fit(X, Y, sensitive_features=GROUP).fairness_rows_ for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert first.tolist() != other.tolist()


def test_what_cannot_be_equal_is_refused():
    with pytest.raises(DataError, match="Group `b` has no rows with label `1`"):
        MAAT().fit(X, np.where(GROUP == "b", 0, Y), sensitive_features=GROUP)
    with pytest.raises(DataError, match="Group `a` has no rows with label `0`"):
        MAAT().fit(X, np.where(GROUP == "a", 1, Y), sensitive_features=GROUP)
    with pytest.raises(UsageError, match="`strength` must be a number from 0 to 1; got -1"):
        MAAT(strength=-1).fit(X, Y, sensitive_features=GROUP)
