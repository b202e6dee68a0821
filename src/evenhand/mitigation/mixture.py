"""Mixture: several fitted learners and how much each of them counts, as one model that every audit takes.

Methods that solve a game between a learner and a constraint end with a distribution over learners, not with one of
them (Agarwal, Beygelzimer, Dudik, Langford and Wallach, ICML 2018). Drawn anew for each person, the mixture keeps what
was promised on average; two people who are alike in everything may then get different decisions. The two forms without
a draw treat equal people equally, and need not keep the promise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from evenhand.arrays import FloatArray, IntArray
from evenhand.errors import DataError, UsageError
from evenhand.kernels.shared.seeds import seed_of, stream
from evenhand.mitigation.estimator import probability_of
from evenhand.models.gradient import Averaged, GradientModel
from evenhand.models.gradient_sklearn import numeric_model

#: How a mixture decides: by the mean of probabilities, by the expected decision, or by a member drawn for each person.
FORMS = ("probability", "decision", "randomised")


class Mixture(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A weighted mixture of fitted learners with the classes 0 and 1.

    Parameters
    ----------
    members : sequence of estimators
        Fitted, with classes 0 and 1; all take the same columns.
    weights : array, shape (members,)
        How much each counts: 0 or larger; they are scaled to a sum of one, and members without weight are left out.
    form : {"probability", "decision", "randomised"}
        ``"probability"``: the score is the weighted mean of the members' probabilities. ``"decision"``: the score is
        the weighted share of members who decide 1, the expected decision. Both decide 1 from a score of one half on.
        ``"randomised"``: the score is the expected decision, and the decision is that of one member, drawn for each
        person by weight.
    random_state : int
        Seed of the draws. A call with the same rows in the same order draws the same members.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> up, down = (LogisticRegression().fit(X, y) for y in ([0, 0, 1, 1], [1, 1, 0, 0]))
    >>> Mixture([up, down], [3, 1], form="decision").predict_proba(X)[:, 1].tolist()
    [0.25, 0.25, 0.75, 0.75]
    """

    def __init__(
        self, members: Sequence[Any], weights: ArrayLike, *, form: str = "probability", random_state: int = 0
    ) -> None:
        self.members = members
        self.weights = weights
        self.form = form
        self.random_state = random_state

    @property
    def classes_(self) -> IntArray:
        """The classes, 0 and 1."""
        return np.array([0, 1])

    @property
    def n_features_in_(self) -> int:
        """How many columns the members take."""
        return int(self._informed().n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The columns the members were fitted on; an AttributeError when they do not say."""
        names: NDArray[Any] = self._informed().feature_names_in_
        return names

    def _informed(self) -> Any:
        """Return a member that knows its columns; one that says the same to everybody does not."""
        return next((m for m in self.members if hasattr(m, "n_features_in_")), self.members[0])

    def fit(self, X: Any, y: Any = None) -> NoReturn:
        """Refuse: members are fitted before they are mixed; scikit-learn asks every estimator for this method."""
        raise UsageError(
            "A mixture is made of fitted members and cannot be fitted itself. Fit the method that made it."
        )

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def _used(self) -> list[tuple[float, Any]]:
        """Return the members that count, with weights that sum to one."""
        weights = np.asarray(self.weights, dtype=np.float64)
        if weights.shape != (len(self.members),) or not np.isfinite(weights).all() or (weights < 0).any():
            raise DataError(
                f"`weights` must hold one finite number of at least 0 for each of the {len(self.members)} members."
            )
        if not weights.any():
            raise DataError("All `weights` of the mixture are 0; at least one member must count.")
        if self.form not in FORMS:
            raise UsageError(f"`form` is `{self.form}`; allowed: {', '.join(f'`{k}`' for k in FORMS)}.")
        for member in self.members:
            classes = list(getattr(member, "classes_", [0, 1]))
            if not set(classes) <= {0, 1}:
                raise DataError(f"A member of the mixture has the classes {classes}; they must be 0 and 1.")
        shares = weights / weights.sum()
        return [(float(w), m) for w, m in zip(shares, self.members, strict=True) if w > 0]

    def _score(self, X: Any) -> FloatArray:
        """Return the probability of class 1."""
        ask = _chance if self.form == "probability" else _decided
        total: FloatArray = sum(w * ask(member, X) for w, member in self._used())  # type: ignore[assignment]
        return np.clip(total, 0.0, 1.0)  # a sum of shares may pass 1 by a rounding

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the score of each class, shape (rows, 2)."""
        one = self._score(X)
        return np.column_stack([1 - one, one])

    def predict(self, X: Any) -> IntArray:
        """Return the class of each row, 0 or 1; in the randomised form that of the member drawn for the row."""
        size = int(np.shape(X)[0])
        drawn = self.drawn_members(size)
        if drawn is None:
            return (self._score(X) >= 0.5).astype(np.int64)
        members, which = drawn
        decided = np.array([_decided(member, X) for member in members])  # (members, rows)
        return decided[which, np.arange(size)].astype(np.int64)

    def drawn_members(self, size: int) -> tuple[list[Any], IntArray] | None:
        """Return the members that count, and which of them decides about each of so many rows.

        None in the forms that draw nobody. A person's distance to the other decision is then the distance to the
        boundary of the member drawn for that person.
        """
        used = self._used()
        if self.form != "randomised":
            return None
        draw = stream(seed_of(self.random_state), "mixture/member").random(size)
        # The last bound is one, whatever rounding makes of the sum.
        bounds = np.append(np.cumsum([w for w, _ in used])[:-1], 1.0)
        return [member for _, member in used], np.searchsorted(bounds, draw, side="right")

    def gradient_model(self) -> GradientModel | None:
        """Return the mean of the members' probabilities with its gradient; None when a member has no gradient.

        Decisions are steps, so that the expected decision has a gradient of 0 almost everywhere. In every form people
        are therefore moved along the mean probability.
        """
        members: list[tuple[float, GradientModel]] = []
        constant = 0.0
        for weight, member in self._used():
            if _says_the_same(member):
                constant += weight * _constant(member)
                continue
            model = numeric_model(member)
            if model is None or model.link == "identity" or model.classes is None or len(model.classes) != 2:
                return None
            members.append((weight, model))
        return GradientModel(
            network=Averaged(tuple(members), constant),
            link="probability",
            classes=(0, 1),
            name=f"mixture of {len(self._used())} models (exact gradient)",
        )


def _chance(member: Any, X: Any) -> FloatArray:
    """Return a member's probability of class 1, also when it knows one class only."""
    return np.full(np.shape(X)[0], _constant(member)) if _says_the_same(member) else probability_of(member, X)


def _decided(member: Any, X: Any) -> FloatArray:
    """Return a member's decisions, 0.0 or 1.0."""
    return np.asarray(member.predict(X), dtype=np.float64)


def _says_the_same(member: Any) -> bool:
    return len(getattr(member, "classes_", (0, 1))) == 1


def _constant(member: Any) -> float:
    return float(member.classes_[0])
