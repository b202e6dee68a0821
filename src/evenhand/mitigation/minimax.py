"""Minimax group fairness: the worst-off group's error is made as small as it can be.

A learner and an opponent play in rounds. The opponent puts weight on the groups and moves it to those with the larger
error; the learner is fitted to the weighted rows. The answer is the uniform mixture of the learners of all rounds:
one of them is drawn and decides. With a bound `gamma` the mean error is made as small as it can be while no group's
error exceeds the bound, so that one moves between the plain learner and the minimax one.

Source: E. Diana, W. Gill, M. Kearns, K. Kearns, A. Roth, S. Sharifi-Malvajerdi, "Minimax group fairness: algorithms
and experiments", AIES 2021. The learner there minimises the weighted loss exactly; ours is any learner with weights.

Where it fails: it lowers the largest error and does not make errors equal. The bound holds on the training rows and for
a member drawn for each person; forms without a draw may do otherwise. A learner that fits its training rows
perfectly leaves the opponent nothing to move. Where one group's labels are noisier than any model can mend, weight
goes to that group to no avail. A mixture can raise the worst counterfactual change of a person [monjezi2025].
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from evenhand.arrays import FloatArray
from evenhand.errors import DataError, UsageError, near_matches
from evenhand.mitigation.estimator import About, Mitigator, Training, check_training, fit_learner, probability_of
from evenhand.mitigation.front import join, split_learner
from evenhand.mitigation.mixture import FORMS, Mixture

LOSSES = ("zero_one", "log")
_SURE = 1e-6  # probabilities are taken this far from 0 and 1, so that a log loss is finite
_RELAXED_STEP = 10.0  # over the root of the rounds: multipliers near 1 are reached while errors differ by hundredths


class Minimax(Mitigator):
    """Make the largest group's error small by multiplicative weights over groups.

    Parameters
    ----------
    estimator : estimator, optional
        Learner that takes sample weights; logistic regression by default.
    loss : {"zero_one", "log"}
        What counts as a group's error: the share of wrong decisions, or the mean log loss.
    gamma : float, optional
        Largest error allowed in any group: the mean error is minimised under this bound. Without it the largest error
        itself is minimised.
    rounds : int
        Rounds of the game, each one fit of the learner.
    step : float, optional
        How fast weight moves; by default what suits the number of rounds.
    form : {"probability", "decision", "randomised"}, optional
        How the mixture decides, see `Mixture`; by default randomised under the 0/1 loss, to which the bound speaks,
        and by mean probability under the log loss.
    random_state : int
        Seed of the draws of a randomised mixture.

    Attributes
    ----------
    decides_as_ : estimator
        The mixture of the rounds' learners, behind the learner's own preparation of columns.
    group_errors_ : ndarray, shape (groups,)
        Error of the mixture in each group, on the training rows.
    error_ : float
        Its mean over the training rows.
    group_weights_ : ndarray, shape (rounds, groups)
        Weight of the groups in each round.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> group = np.repeat(["a", "b"], [900, 100])
    >>> x = rng.normal(size=1000)
    >>> y = (x > np.where(group == "a", 0, 1)).astype(int)
    >>> X = np.column_stack([x, x**2])
    >>> plain = Minimax(rounds=1).fit(X, y, sensitive_features=group)
    >>> fair = Minimax(rounds=40).fit(X, y, sensitive_features=group)
    >>> bool(fair.group_errors_.max() < plain.group_errors_.max())
    True
    """

    about = About(
        stage="in",
        needs="a learner with sample weights",
        changes="the weight of each group in training; the largest group error falls, others may rise",
        cost="one fit for each round (20 by default)",
        grid=({"rounds": 5}, {"rounds": 15}),
    )

    def __init__(
        self,
        estimator: Any = None,
        *,
        loss: str = "zero_one",
        gamma: float | None = None,
        rounds: int = 20,
        step: float | None = None,
        form: str | None = None,
        random_state: int = 0,
    ) -> None:
        self.estimator = estimator
        self.loss = loss
        self.gamma = gamma
        self.rounds = rounds
        self.step = step
        self.form = form
        self.random_state = random_state

    def _fit(self, rows: Training) -> None:
        self._check()
        kept = rows.weights > 0
        rows = rows if kept.all() else rows.take(kept)
        share = _group_means(np.ones(rows.y.size), rows)[1]
        if not share.all():
            raise DataError(f"Group `{rows.groups[int(share.argmin())]}` has weight 0 in all its rows; leave it out.")
        front, last, behind = split_learner(self.estimator, rows, numbers=False)
        game = _Multiplicative(self, share) if self.gamma is None else _Bounded(self, share)
        members, played, errors = [], [], []
        for _ in range(self.rounds):
            # A group's weight is spread over its rows: weight of the group over its share.
            by_row = rows.weights * (game.weights / share)[rows.group]
            member = fit_learner(last, behind, by_row * rows.y.size / by_row.sum())
            error = _group_means(self._losses(member, behind), behind)[0]
            members.append(member)
            played.append(game.weights)
            errors.append(error)
            game.see(error)
        form = self.form or ("probability" if self.loss == "log" else "randomised")
        mixture = Mixture(members, np.ones(self.rounds), form=form, random_state=self.random_state)
        self.decides_as_ = join(front, "mixture", mixture)
        self.group_weights_ = np.array(played)
        self.group_errors_ = np.mean(errors, axis=0)
        self.error_ = float(share @ self.group_errors_)

    def _check(self) -> None:
        """Refuse settings that mean nothing."""
        if self.loss not in LOSSES:
            raise UsageError(f"`loss` is {self.loss!r}, which is not known.{near_matches(str(self.loss), LOSSES)}")
        if not self.rounds >= 1:
            raise UsageError(f"`rounds` is {self.rounds!r}; at least 1 is needed.")
        if self.form is not None and self.form not in FORMS:
            raise UsageError(f"`form` is {self.form!r}, which is not known.{near_matches(str(self.form), FORMS)}")
        if self.gamma is not None and not self.gamma >= 0:
            raise UsageError(f"`gamma` is {self.gamma!r}; it is the largest error allowed in any group, 0 or larger.")

    def _losses(self, member: Any, rows: Training) -> FloatArray:
        """Return a member's loss in each row."""
        if self.loss == "zero_one":
            return np.asarray(np.asarray(member.predict(rows.X)) != rows.y, dtype=np.float64)
        one = probability_of(member, rows.X)
        return np.asarray(-np.log(np.clip(np.where(rows.y == 1, one, 1 - one), _SURE, 1)))

    def trade_off(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sensitive_features: Any,
        sample_weight: ArrayLike | None = None,
        points: int = 5,
    ) -> list[tuple[float, float, float]]:
        """Return the curve of mean error against the bound, from the plain learner to the minimax one.

        Parameters
        ----------
        X, y, sensitive_features, sample_weight
            As for `fit`.
        points : int
            Bounds tried, evenly between the plain learner's largest error and the minimax error.

        Returns
        -------
        list of tuple
            Bound, mean error and largest group error of each mixture on these rows, the loosest bound first.

        Examples
        --------
        >>> X = np.array([[0.0], [1.0], [0.0], [1.0], [2.0], [3.0]])
        >>> groups = ["a", "a", "b", "b", "b", "b"]
        >>> len(Minimax(rounds=3).trade_off(X, [0, 1, 1, 0, 0, 1], sensitive_features=groups, points=2))
        2
        """
        rows = check_training(X, y, sensitive_features, sample_weight)
        ends = []
        for rounds in (1, self.rounds):
            made = clone(self).set_params(gamma=None, rounds=rounds)
            made._fit(rows)
            ends.append(float(made.group_errors_.max()))
        curve = []
        for gamma in np.linspace(ends[0], min(ends), points).tolist():
            made = clone(self).set_params(gamma=gamma)
            made._fit(rows)
            curve.append((gamma, made.error_, float(made.group_errors_.max())))
        return curve


class _Multiplicative:
    """The opponent of the minimax game: weights multiplied by the exponential of the errors seen."""

    def __init__(self, asked: Minimax, share: FloatArray) -> None:
        self.step = math.sqrt(8 * math.log(share.size) / asked.rounds) if asked.step is None else asked.step
        self.logs = np.log(share)  # the first round is then the plain learner
        self.weights: FloatArray = share

    def see(self, error: FloatArray) -> None:
        """Move weight to the groups with the larger error."""
        self.logs = self.logs + self.step * error
        raised = np.exp(self.logs - self.logs.max())
        self.weights = raised / raised.sum()


class _Bounded:
    """The opponent of the relaxed game: each group's share, and a multiplier for what exceeds the bound."""

    def __init__(self, asked: Minimax, share: FloatArray) -> None:
        assert asked.gamma is not None
        self.step = _RELAXED_STEP / math.sqrt(asked.rounds) if asked.step is None else asked.step
        self.gamma = asked.gamma
        self.share = share
        self.multiplier: FloatArray = np.zeros(share.size)

    @property
    def weights(self) -> FloatArray:
        """Weight of each group in the learner's next fit."""
        return self.share + self.multiplier

    def see(self, error: FloatArray) -> None:
        """Raise the multipliers of groups above the bound, lower the others."""
        self.multiplier = np.maximum(self.multiplier + self.step * (error - self.gamma), 0)


def _group_means(losses: FloatArray, rows: Training) -> tuple[FloatArray, FloatArray]:
    """Return the weighted mean loss of each group, and the groups' shares of all weight."""
    size = len(rows.groups)
    total = np.bincount(rows.group, rows.weights, size)
    sums = np.bincount(rows.group, rows.weights * losses, size)
    return sums / np.maximum(total, 1e-300), np.asarray(total / total.sum())
