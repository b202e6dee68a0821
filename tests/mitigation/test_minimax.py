"""Minimax against the linear program of the same game, and what it says to bad settings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neighbors import KNeighborsClassifier

from evenhand.errors import DataError, UsageError
from evenhand.mitigation.minimax import Minimax


class Stumps(ClassifierMixin, BaseEstimator):
    """Exact weighted minimiser of the 0/1 loss over eleven rules on one number."""

    def fit(self, X: np.ndarray, y: np.ndarray, sample_weight: np.ndarray) -> Stumps:
        self.rule_ = int(np.argmin([sample_weight[wrong].sum() for wrong in rules(X) != y]))
        self.classes_ = np.array([0, 1])
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return rules(X)[self.rule_].astype(int)


def rules(X: np.ndarray) -> np.ndarray:
    """Return the decisions of each rule, shape (rules, rows)."""
    cuts = np.linspace(-2, 2, 10)
    return np.array([X[:, 0] > c for c in cuts] + [np.zeros(len(X), dtype=bool)])


@pytest.fixture(scope="module")
def problem() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three groups of unlike size for whom the best cut lies elsewhere."""
    rng = np.random.default_rng(3)
    group = np.repeat([0, 1, 2], [200, 60, 40])
    x = rng.normal(size=300)
    y = (x + 0.4 * rng.normal(size=300) > np.array([-0.7, 0.2, 1.0])[group]).astype(int)
    return x[:, None], y, group


def errors(X: np.ndarray, y: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Return the error of each rule in each group, shape (groups, rules)."""
    wrong = rules(X) != y
    return np.array([wrong[:, group == g].mean(axis=1) for g in range(3)])


def test_the_game_reaches_the_linear_program(problem: tuple[np.ndarray, ...]) -> None:
    X, y, group = problem
    table = errors(*problem)
    k, r = table.shape
    # Smallest v with the mixture's error at most v in every group.
    best = linprog(
        np.r_[np.zeros(r), 1], A_ub=np.c_[table, -np.ones(k)], b_ub=np.zeros(k), A_eq=[np.r_[np.ones(r), 0]], b_eq=[1]
    ).fun
    fitted = Minimax(Stumps(), rounds=800).fit(X, y, sensitive_features=group)
    plain = Minimax(Stumps(), rounds=1).fit(X, y, sensitive_features=group)
    assert plain.group_errors_.max() > best + 0.1
    assert best - 1e-12 <= fitted.group_errors_.max() <= best + 0.01
    np.testing.assert_allclose(fitted.group_weights_.sum(axis=1), 1)
    # The errors stated are those of the expected decision, and drawn decisions are near them.
    one = fitted.predict_proba(X)[:, 1]
    wrong = np.where(y == 1, 1 - one, one)
    np.testing.assert_allclose(fitted.group_errors_, [wrong[group == g].mean() for g in range(3)], atol=1e-12)
    drawn = fitted.predict(np.tile(X, (50, 1))) != np.tile(y, 50)
    np.testing.assert_allclose(
        [drawn[np.tile(group, 50) == g].mean() for g in range(3)], fitted.group_errors_, atol=0.03
    )


def test_the_bounded_game_reaches_its_linear_program(problem: tuple[np.ndarray, ...]) -> None:
    X, y, group = problem
    table = errors(*problem)
    share = np.bincount(group) / len(group)
    plain = Minimax(Stumps(), rounds=1).fit(X, y, sensitive_features=group)
    for gamma in (0.3, 0.35):
        assert plain.group_errors_.max() > gamma
        best = linprog(share @ table, A_ub=table, b_ub=np.full(3, gamma), A_eq=np.ones((1, table.shape[1])), b_eq=[1])
        fitted = Minimax(Stumps(), gamma=gamma, rounds=1500).fit(X, y, sensitive_features=group)
        assert fitted.group_errors_.max() <= gamma + 0.01
        assert fitted.error_ == pytest.approx(best.fun, abs=0.01)
    loose = Minimax(Stumps(), gamma=0.9, rounds=5).fit(X, y, sensitive_features=group)
    np.testing.assert_array_equal(loose.predict(X), plain.predict(X))


def test_the_curve_goes_from_the_plain_learner_to_the_minimax_one(problem: tuple[np.ndarray, ...]) -> None:
    X, y, group = problem
    curve = np.array(Minimax(Stumps(), rounds=400).trade_off(X, y, sensitive_features=group, points=4))
    plain = Minimax(Stumps(), rounds=1).fit(X, y, sensitive_features=group)
    assert curve[0].tolist() == pytest.approx([plain.group_errors_.max(), plain.error_, plain.group_errors_.max()])
    assert (np.diff(curve[:, 0]) < 0).all()
    assert curve[-1, 2] < curve[0, 2] - 0.1
    assert curve[-1, 1] > curve[0, 1]
    assert (curve[:, 2] <= curve[:, 0] + 0.02).all()


def test_a_weight_is_so_many_rows(problem: tuple[np.ndarray, ...]) -> None:
    X, y, group = problem
    times = np.random.default_rng(0).integers(0, 3, size=len(y))
    weighted = Minimax(Stumps(), rounds=50).fit(X, y, sensitive_features=group, sample_weight=times)
    repeated = Minimax(Stumps(), rounds=50).fit(
        np.repeat(X, times, axis=0), np.repeat(y, times), sensitive_features=np.repeat(group, times)
    )
    np.testing.assert_allclose(weighted.group_errors_, repeated.group_errors_, atol=1e-12)


def test_the_log_loss_mixes_probabilities_and_lowers_the_largest_group_loss(problem: tuple[np.ndarray, ...]) -> None:
    X, y, group = problem
    plain = Minimax(loss="log", rounds=1).fit(X, y, sensitive_features=group)
    fitted = Minimax(loss="log", rounds=40).fit(X, y, sensitive_features=group)
    assert fitted.group_errors_.max() < plain.group_errors_.max()
    front, mixture = fitted.decides_as_[:-1], fitted.decides_as_[-1]
    by_hand = np.mean([m.predict_proba(front.transform(X))[:, 1] for m in mixture.members], axis=0)
    np.testing.assert_allclose(fitted.predict_proba(X)[:, 1], by_hand)
    np.testing.assert_array_equal(fitted.predict(X), by_hand >= 0.5)
    p = plain.predict_proba(X)[:, 1]
    loss = -np.log(np.where(y == 1, p, 1 - p))
    np.testing.assert_allclose(plain.group_errors_, [loss[group == g].mean() for g in range(3)])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss": "log_loss"}, "Known: `zero_one`, `log`"),
        ({"rounds": 0}, "at least 1"),
        ({"form": "random"}, "Did you mean `randomised`"),
        ({"gamma": -0.1}, "0 or larger"),
        ({"estimator": KNeighborsClassifier()}, "takes no sample weights"),
    ],
)
def test_wrong_settings_are_refused_in_a_sentence(
    settings: dict[str, Any], message: str, problem: tuple[np.ndarray, ...]
) -> None:
    X, y, group = problem
    with pytest.raises(UsageError, match=message):
        Minimax(**settings).fit(X, y, sensitive_features=group)


def test_a_group_without_weight_is_refused(problem: tuple[np.ndarray, ...]) -> None:
    X, y, group = problem
    with pytest.raises(DataError, match="Group `2` has weight 0"):
        Minimax(Stumps()).fit(X, y, sensitive_features=group, sample_weight=group < 2)
