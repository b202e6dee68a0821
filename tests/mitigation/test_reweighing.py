"""Reweighing against a table counted by hand, and on Adult."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.neighbors import KNeighborsClassifier

import evenhand as eh
from evenhand.errors import UsageError
from evenhand.mitigation.estimator import check_training, fit_learner
from evenhand.mitigation.reweighing import Reweighing, independence_weights

RNG = np.random.default_rng(3)
N = 400
GROUP = RNG.choice(3, N, p=[0.5, 0.3, 0.2])
Y = (RNG.random(N) < np.array([0.6, 0.3, 0.1])[GROUP]).astype(np.int64)
X = RNG.normal(size=(N, 2)) + Y[:, None] - 0.5 * GROUP[:, None]
WEIGHT = RNG.integers(0, 4, N).astype(float)


def test_group_and_label_are_independent_under_the_weights():
    for weight in (np.ones(N), WEIGHT):
        moved = weight * independence_weights(GROUP, Y, weight)
        share = np.array([[moved[(g == GROUP) & (k == Y)].sum() for k in (0, 1)] for g in range(3)]) / moved.sum()
        np.testing.assert_allclose(share, np.outer(share.sum(axis=1), share.sum(axis=0)), atol=1e-14)
        # The shares of groups and of labels stay as they were.
        np.testing.assert_allclose(share.sum(axis=1), [weight[g == GROUP].sum() / weight.sum() for g in range(3)])
        np.testing.assert_allclose(share.sum(axis=0), [weight[k == Y].sum() / weight.sum() for k in (0, 1)])


def test_weights_are_those_counted_by_hand():
    made = Reweighing().fit(X, Y, sensitive_features=GROUP).weights_
    for g, y, weight in zip(GROUP, Y, made, strict=True):
        group, label = sum(g == GROUP), sum(y == Y)
        both = sum(1 for a, b in zip(GROUP, Y, strict=True) if (a, b) == (g, y))
        assert weight == pytest.approx(group * label / (N * both))


def test_a_whole_weight_is_so_many_rows():
    repeated = np.repeat(np.arange(N), WEIGHT.astype(int))
    one = Reweighing().fit(X, Y, sensitive_features=GROUP, sample_weight=WEIGHT)
    many = Reweighing().fit(X[repeated], Y[repeated], sensitive_features=GROUP[repeated])
    np.testing.assert_allclose(one.weights_[repeated] / WEIGHT[repeated], many.weights_)


def test_strength_mixes_with_the_weights_as_given():
    whole, half, none = (
        Reweighing(strength=s).fit(X, Y, sensitive_features=GROUP, sample_weight=WEIGHT).weights_ for s in (1, 0.5, 0)
    )
    np.testing.assert_allclose(none, WEIGHT)
    np.testing.assert_allclose(half, (whole + WEIGHT) / 2)
    with pytest.raises(UsageError, match=r"`strength` must be a number from 0 to 1; got 2"):
        Reweighing(strength=2).fit(X, Y, sensitive_features=GROUP)


def test_a_learner_without_weights_is_refused():
    with pytest.raises(UsageError, match="KNeighborsClassifier takes no sample weights"):
        Reweighing(KNeighborsClassifier()).fit(X, Y, sensitive_features=GROUP)


def test_on_adult_the_gap_in_selection_rates_is_about_halved():
    data = eh.datasets.load("adult")
    frame, y, women = pd.DataFrame(dict(data.features)), data.outcome.astype(int), data.attribute("sex").codes == 0
    train = np.random.default_rng(0).random(len(y)) < 0.7

    def gap(learner):
        decided = learner.predict(frame[~train])
        return decided[~women[~train]].mean() - decided[women[~train]].mean()

    plain = gap(fit_learner(None, check_training(frame[train], y[train], women[train], None)))
    half, whole = (
        gap(Reweighing(strength=s).fit(frame[train], y[train], sensitive_features=women[train])) for s in (0.5, 1)
    )
    assert plain == pytest.approx(0.166, abs=0.005)
    assert half == pytest.approx(0.128, abs=0.005)
    assert whole == pytest.approx(0.084, abs=0.005)
