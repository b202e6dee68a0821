"""Exponentiated gradient against fairlearn's own probabilities, and against its promise in training."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from fairlearn import reductions
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import evenhand as eh
from evenhand.errors import MissingDependencyError, UsageError
from evenhand.mitigation.exponentiated_gradient import CONSTRAINTS, ExponentiatedGradient
from evenhand.models.adapter import audited_model
from evenhand.models.gradient_view import view_model

RNG = np.random.default_rng(5)
N = 500
GROUP = RNG.choice(["a", "b", "c"], N, p=[0.5, 0.3, 0.2])
X = RNG.normal(size=(N, 3)) + np.array([0.8, 0.0, 0.0]) * (GROUP == "a")[:, None]
Y = (X[:, 0] + 0.5 * X[:, 1] + RNG.normal(size=N) > 0.4).astype(int)


def rate_gap(decision: np.ndarray, among: np.ndarray) -> float:
    """Return the largest distance of a group's rate from the rate of all."""
    return max(abs(decision[among & (g == GROUP)].mean() - decision[among].mean()) for g in "abc")


@pytest.mark.parametrize("word", CONSTRAINTS)
def test_the_mixture_is_that_of_fairlearn(word):
    learner = make_pipeline(StandardScaler(), LogisticRegression())
    ours = ExponentiatedGradient(learner, constraint=word, eps=0.03, max_iter=8)
    ours.fit(X, Y, sensitive_features=GROUP)
    moment = getattr(reductions, CONSTRAINTS[word])(difference_bound=0.03)
    theirs = reductions.ExponentiatedGradient(
        learner, moment, eps=0.03, max_iter=8, sample_weight_name="logisticregression__sample_weight"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs.fit(X, Y, sensitive_features=GROUP)
    expected = theirs._pmf_predict(X)
    assert len(np.unique(expected[:, 1])) > 2, "a mixture of one says nothing"
    np.testing.assert_allclose(ours.predict_proba(X), expected, atol=1e-12, rtol=0)
    assert ours.gap_ == pytest.approx(theirs.best_gap_, abs=1e-12)


@pytest.mark.parametrize("word", CONSTRAINTS)
def test_the_bound_holds_in_training_for_the_expected_decision(word):
    plain = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y).predict(X)
    events = {"demographic_parity": [Y >= 0], "equalized_odds": [Y == 0, Y == 1], "tpr_parity": [Y == 1]}[word]
    fair = ExponentiatedGradient(constraint=word, eps=0.02).fit(X, Y, sensitive_features=GROUP)
    expected = fair.predict_proba(X)[:, 1]
    assert max(rate_gap(plain, e) for e in events) > 0.08
    # The promise of the paper's theorem: the bound plus twice the gap at which the game ended.
    assert max(rate_gap(expected, e) for e in events) <= 0.02 * (1 + 2 * fair.gap_) + 1e-9
    error = np.mean(np.where(Y == 1, 1 - expected, expected))
    assert error < min(Y.mean(), 1 - Y.mean()) - 0.05, "saying the same to everybody keeps every bound"


def test_text_labels_text_columns_and_weights():
    frame = pd.DataFrame({"skill": X[:, 0], "more": X[:, 1], "town": np.where(X[:, 2] > 0, "north", "south")})
    words = np.where(Y == 1, "yes", "no")
    weight = RNG.integers(0, 3, N)
    copies = np.repeat(np.arange(N), weight)
    settings = {"constraint": "demographic_parity", "eps": 0.05, "max_iter": 5}
    weighted = ExponentiatedGradient(LogisticRegression(), **settings)
    weighted.fit(X, words, sensitive_features=GROUP, sample_weight=weight)
    repeated = ExponentiatedGradient(LogisticRegression(), **settings)
    repeated.fit(X[copies], words[copies], sensitive_features=GROUP[copies])
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-12)
    heavy = ExponentiatedGradient(**settings).fit(
        frame, words, sensitive_features=GROUP, sample_weight=np.where(GROUP == "c", 0.25, 2.5)
    )
    assert np.mean(heavy.predict(frame) == words) > 0.6


def test_the_draw_comes_from_the_seed_and_other_forms_do_not_draw():
    settings = {"constraint": "demographic_parity", "eps": 0.02, "max_iter": 8}
    models = [ExponentiatedGradient(**settings, random_state=s).fit(X, Y, sensitive_features=GROUP) for s in (0, 0, 1)]
    first, same, other = (m.predict(X) for m in models)
    np.testing.assert_array_equal(first, same)
    assert np.any(first != other)
    for form in ("decision", "probability"):
        a, b = (
            ExponentiatedGradient(**settings, form=form, random_state=s).fit(X, Y, sensitive_features=GROUP)
            for s in (0, 1)
        )
        np.testing.assert_array_equal(a.predict(X), b.predict(X))


def test_the_individual_audit_follows_the_mean_probability_behind_text_columns():
    frame = pd.DataFrame({"skill": X[:, 0], "more": X[:, 1], "town": np.where(X[:, 2] > 0, "north", "south")})
    words = np.where(Y == 1, "fit", "unfit")
    model = ExponentiatedGradient(constraint="demographic_parity", eps=0.02, max_iter=8)
    model.fit(frame, words, sensitive_features=GROUP)
    data = eh.AuditData.from_arrays(
        outcome=words, groups={"g": GROUP}, features={n: frame[n].to_numpy() for n in frame}, positive="fit"
    )
    view = view_model(audited_model(model, data), data.features, data.outcome, "binary")
    assert view.space.names == ("skill", "more", "town=north", "town=south")
    at = view.space.encode(data.features)
    mixture = model.decides_as_[-1]
    chances = [member.predict_proba(at)[:, 0] for member in mixture.members]  # of `fit`, which sorts first
    assert len(chances) > 1
    outputs, pull = view.network.pullback(at)
    np.testing.assert_allclose(outputs[:, 0], np.average(chances, axis=0, weights=mixture.weights), atol=1e-12)
    step = 1e-6 * np.eye(4)[0]
    rise = (view.network.outputs(at + step) - view.network.outputs(at - step))[:, 0] / 2e-6
    np.testing.assert_allclose(pull(np.ones((N, 1)))[:, 0], rise, rtol=1e-5, atol=1e-8)


def test_a_tree_on_numbers_needs_no_pipeline():
    model = ExponentiatedGradient(DecisionTreeClassifier(max_depth=3), eps=0.05, max_iter=5)
    assert type(model.fit(X, Y, sensitive_features=GROUP).decides_as_).__name__ == "Mixture"
    assert np.mean(model.predict(X) == Y) > 0.65


def test_what_cannot_work_is_refused():
    with pytest.raises(UsageError, match="KNeighborsClassifier takes no sample weights"):
        ExponentiatedGradient(KNeighborsClassifier()).fit(X, Y, sensitive_features=GROUP)
    with pytest.raises(UsageError, match="allowed: `demographic_parity`, `equalized_odds`, `tpr_parity`"):
        ExponentiatedGradient(constraint="parity").fit(X, Y, sensitive_features=GROUP)
    with pytest.raises(UsageError, match="between 0 and 1; got 0"):
        ExponentiatedGradient(eps=0).fit(X, Y, sensitive_features=GROUP)
    with pytest.raises(UsageError, match="`form` is `vote`"):
        ExponentiatedGradient(form="vote").fit(X, Y, sensitive_features=GROUP)


def test_a_missing_fairlearn_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "fairlearn.reductions", None)
    with pytest.raises(MissingDependencyError, match=r"evenhand\[mitigation\]"):
        ExponentiatedGradient().fit(X, Y, sensitive_features=GROUP)
