"""Counterfactual weights on the toy of [wang2019] section 4.1, and the transport of scores against rows counted out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from evenhand.errors import UsageError
from evenhand.mitigation.counterfactual_weights import CounterfactualWeights, transport
from evenhand.mitigation.estimator import check_training, fit_learner, probability_of

RNG = np.random.default_rng(0)
N = 50_000
GROUP = RNG.integers(0, 2, N)
X = (RNG.random((N, 3)) < np.where(GROUP[:, None] == 0, [0.9, 0.2, 0.2], [0.1, 0.5, 0.5])).astype(float)
Y = (RNG.random(N) < expit(X @ [5.0, -2.0, -2.0])).astype(np.int64)
TOY = CounterfactualWeights(reference="1").fit(X, Y, sensitive_features=GROUP)
PLAIN = probability_of(fit_learner(None, check_training(X, Y, GROUP, None)), X)


def fpr_gap(score, weight=None):
    weight = np.ones(N) if weight is None else weight
    rates = [np.average(score[rows], weights=weight[rows]) for rows in ((k == GROUP) & (Y == 0) for k in (0, 1))]
    return rates[0] - rates[1]


def test_the_weights_close_the_gap_of_the_toy():
    gaps = TOY.gaps_["0"]
    assert gaps[0] == pytest.approx(0.319, abs=0.02)
    assert abs(gaps[-1]) < 0.01
    assert 15 <= len(gaps) - 1 <= 25
    # From the observed labels, without any model of them.
    assert fpr_gap(PLAIN) == pytest.approx(0.319, abs=0.02)
    assert fpr_gap(PLAIN, TOY.weights_) == pytest.approx(0, abs=0.02)
    moved = TOY.weights_[GROUP == 0]
    assert moved.mean() == pytest.approx(1, abs=0.01)
    assert TOY.effective_rows_ == {"0": pytest.approx(moved.sum() ** 2 / (moved**2).sum())}
    assert 0.2 < TOY.effective_rows_["0"] / len(moved) < 0.8
    np.testing.assert_array_equal(TOY.weights_[GROUP == 1], 1)


def test_moved_scores_close_the_gap_and_a_learner_without_the_group_a_part_of_it():
    assert fpr_gap(TOY.scores_) == pytest.approx(0, abs=0.04)
    assert fpr_gap(TOY.predict_proba(X)[:, 1]) < fpr_gap(PLAIN) - 0.05
    np.testing.assert_array_equal(TOY.scores_[GROUP == 1], PLAIN[GROUP == 1])


def test_the_weights_alone_would_not_repair():
    rows = check_training(X, Y, GROUP, None)
    again = probability_of(fit_learner(None, rows, weight=TOY.weights_), X)
    assert fpr_gap(again) == pytest.approx(fpr_gap(PLAIN), abs=0.01)


def test_strength_goes_from_the_plain_scores_to_the_moved_ones():
    half, none = (
        CounterfactualWeights(reference="1", strength=s).fit(X, Y, sensitive_features=GROUP) for s in (0.5, 0)
    )
    np.testing.assert_allclose(half.scores_, (PLAIN + TOY.scores_) / 2)
    np.testing.assert_allclose(none.predict_proba(X)[:, 1], PLAIN, atol=0.01)
    with pytest.raises(UsageError, match="`strength` must be a number from 0 to 1; got 3"):
        CounterfactualWeights(strength=3).fit(X, Y, sensitive_features=GROUP)


def test_a_value_moves_to_its_rank_among_rows_counted_out():
    values = RNG.random(12).round(1)
    before, after = RNG.integers(1, 4, 12), RNG.integers(0, 5, 12)
    steps = before.sum() * after.sum()
    old = np.sort(np.repeat(values, before * after.sum()))
    new = np.sort(np.repeat(values, after * before.sum()))
    assert len(old) == len(new) == steps
    expected = [new[old == value].mean() for value in values]
    moved = transport(values, before.astype(float), after.astype(float))
    np.testing.assert_allclose(moved, expected)
    assert np.average(moved, weights=before) == pytest.approx(np.average(values, weights=after))


def test_a_whole_weight_is_so_many_rows():
    rows = np.arange(1500)
    weight = RNG.integers(0, 3, 1500)
    repeated = np.repeat(rows, weight)
    method = CounterfactualWeights(LogisticRegression(tol=1e-10, max_iter=1000))  # scaling would not know the weights
    one = clone(method).fit(X[rows], Y[rows], sensitive_features=GROUP[rows], sample_weight=weight)
    many = clone(method).fit(X[repeated], Y[repeated], sensitive_features=GROUP[repeated])
    np.testing.assert_allclose(one.gaps_["0"], many.gaps_["0"], atol=1e-6)
    np.testing.assert_allclose(one.predict_proba(X), many.predict_proba(X), atol=1e-5)
    real = clone(method).fit(X[rows], Y[rows], sensitive_features=GROUP[rows], sample_weight=weight / 3)
    assert real.gaps_["0"][0] == pytest.approx(one.gaps_["0"][0], abs=0.03)


def test_what_cannot_be_moved_is_left_and_said():
    few = np.flatnonzero(GROUP == 1)[:300]
    rows = np.concatenate([few, np.flatnonzero((GROUP == 0) & (Y == 1))[:20]])
    method = CounterfactualWeights().fit(X[rows], Y[rows], sensitive_features=GROUP[rows])
    assert method.stopped_ == {"0": "Group `0` has 0 rows with outcome 0; at least 2 are needed to learn P(Y|X,S)."}
    assert method.gaps_ == {}
    np.testing.assert_array_equal(method.weights_, 1)
    with pytest.raises(UsageError, match="`reference` must be one of the groups `0`, `1`; got 'x'"):
        CounterfactualWeights(reference="x").fit(X, Y, sensitive_features=GROUP)


def test_every_group_but_the_largest_is_moved_towards_it():
    some = np.arange(6000)
    third = np.where((GROUP[some] == 0) & (some % 3 == 0), 2, GROUP[some])
    method = CounterfactualWeights(measure="sp").fit(X[some], Y[some], sensitive_features=third)
    assert set(method.gaps_) == set(method.effective_rows_) == set(method.stopped_) == {"0", "2"}
    means = [method.scores_[third == k].mean() for k in range(3)]
    plain = probability_of(fit_learner(None, check_training(X[some], Y[some], third, None)), X[some])
    for k in (0, 2):
        assert plain[third == k].mean() - means[1] > 0.6
        assert means[k] == pytest.approx(means[1], abs=0.05)
