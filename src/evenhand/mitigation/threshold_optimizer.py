"""Thresholds per group, chosen after training so that rates agree and decisions are as right as they can be.

A learner gives everybody a score. Each group then gets its own threshold, or draws between two thresholds, such that
the groups' selection rates, true positive rates, false positive rates, or both of the last two, agree. Among all such
rules the one with the largest accuracy is taken. The optimum is exact: it lies at a corner of the upper hulls of the
groups' curves, and all corners are tried. One threshold per group suffices when rates then differ by at most
`tolerance` and no more than that is lost of the objective; else decisions near the thresholds are drawn.

Source: M. Hardt, E. Price, N. Srebro, "Equality of opportunity in supervised learning", NeurIPS 2016.

Where it fails: **it treats people differently by their group, openly, which is unlawful in places**: in the United
States, for example, in credit (Equal Credit Opportunity Act) and in employment (Title VII as amended in 1991 forbids
different cutoffs by group). It needs each person's group to decide. Rates agree on the rows that chose the thresholds
and only about so on others; groups with few rows of a class get thresholds that are mostly chance. Equal odds bring
all groups down to what the scores can do in the worst-predicted one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from evenhand.arrays import FloatArray, IntArray
from evenhand.errors import DataError, UsageError, near_matches
from evenhand.kernels.shared.seeds import seed_of, stream
from evenhand.mitigation.estimator import About, Mitigator, Training, fit_learner, group_codes, probability_of
from evenhand.mitigation.held_out import held_out

#: Rates that agree under each constraint.
CONSTRAINTS = {
    "demographic_parity": ("selection_rate",),
    "tpr_parity": ("tpr",),
    "fpr_parity": ("fpr",),
    "equalized_odds": ("tpr", "fpr"),
}
OBJECTIVES = ("accuracy", "balanced_accuracy")


class ThresholdOptimizer(Mitigator):
    """Decide with a threshold for each group. Deciding with the group is unlawful in places.

    In the United States, for example, credit and employment law forbid it; ask before you use it.

    Parameters
    ----------
    estimator : estimator, optional
        Learner that gives scores; logistic regression by default.
    constraint : {"equalized_odds", "demographic_parity", "tpr_parity", "fpr_parity"}
        Which rates agree between the groups.
    objective : {"accuracy", "balanced_accuracy"}
        What is largest among the rules that satisfy the constraint.
    tolerance : float
        One threshold per group is enough if rates differ by at most so much and the objective is at most so much
        below the best; else decisions are drawn between two thresholds.
    held_out : float
        Share of the rows that the learner does not see and that choose the thresholds. With 0 all rows do both,
        which misleads for learners that know their training rows by heart.
    group_column : str or int, optional
        Column of `X` that records the group, for rows to decide about without `sensitive_features`: a saved model can
        then be audited like any other.
    learner_sees_group : bool
        Whether the learner gets that column too.
    random_state : int
        Seed of the split and of decisions that are drawn.

    Attributes
    ----------
    thresholds_ : ndarray, shape (groups, 2)
        The two thresholds of each group, in the order of `groups_`; the same twice where one suffices.
    first_ : ndarray, shape (groups,)
        Chance that the first of them decides.
    ignored_ : ndarray, shape (groups,)
        Chance that the score is not looked at; then the decision is 1 with chance `blind_`.
    blind_ : float
        See `ignored_`.
    randomised_ : bool
        Whether any decision is drawn.
    objective_ : float
        The objective on the rows that chose the thresholds.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> group = rng.choice(["a", "b"], 2000)
    >>> x = rng.normal(size=2000) + (group == "a")
    >>> y = (x + rng.normal(size=2000) > 0.5).astype(int)
    >>> method = ThresholdOptimizer(constraint="demographic_parity").fit(x[:, None], y, sensitive_features=group)
    >>> accepted = method.predict(x[:, None], sensitive_features=group)
    >>> bool(abs(accepted[group == "a"].mean() - accepted[group == "b"].mean()) < 0.05)
    True
    """

    about = About(
        stage="after",
        needs="each person's group when deciding",
        changes="the threshold of each group; the learner stays as it is",
        cost="1 fit",
        decides_with_group=True,
        grid=({"constraint": "tpr_parity"}, {"constraint": "demographic_parity"}, {"constraint": "equalized_odds"}),
    )

    def __init__(
        self,
        estimator: Any = None,
        *,
        constraint: str = "equalized_odds",
        objective: str = "accuracy",
        tolerance: float = 0.01,
        held_out: float = 0.25,
        group_column: str | int | None = None,
        learner_sees_group: bool = False,
        random_state: int = 0,
    ) -> None:
        self.estimator = estimator
        self.constraint = constraint
        self.objective = objective
        self.tolerance = tolerance
        self.held_out = held_out
        self.group_column = group_column
        self.learner_sees_group = learner_sees_group
        self.random_state = random_state

    def _fit(self, rows: Training) -> None:
        self._check()
        if self.group_column is not None:
            recorded = np.asarray(_column(rows.X, self.group_column)).astype(str)
            if not np.array_equal(recorded, np.asarray(rows.groups)[rows.group]):
                raise DataError(
                    f"Column `{self.group_column}` (`group_column`) does not hold the labels of `sensitive_features`. "
                    "Pass the same column as both, or leave `group_column` out."
                )
        choosing = self._held_out(rows)
        learning = np.ones(rows.y.size, dtype=bool) if choosing.all() else ~choosing
        part = rows.take(learning)
        seen = Training(self._seen(part.X), part.y, part.classes, part.group, part.groups, part.weight)
        self.learner_ = fit_learner(self.estimator, seen)
        rest = rows.take(choosing)
        curves = _curves(probability_of(self.learner_, self._seen(rest.X)), rest, self.objective)
        rates = CONSTRAINTS[self.constraint]
        drawn, best = _both_rates(curves) if len(rates) == 2 else _one_rate(curves, rates[0])
        fixed, reached, apart = _single_thresholds(curves, rates, drawn)
        enough = apart <= self.tolerance and reached >= best - self.tolerance
        rule = fixed if enough else drawn
        self.thresholds_, self.first_, self.ignored_, self.blind_ = rule.cuts, rule.first, rule.ignored, rule.blind
        self.objective_ = reached if enough else best
        self.randomised_ = bool(not enough and rule.draws)

    def _check(self) -> None:
        """Refuse settings that mean nothing."""
        for name, known in (("constraint", CONSTRAINTS), ("objective", OBJECTIVES)):
            word = getattr(self, name)
            if word not in known:
                raise UsageError(f"`{name}` is {word!r}, which is not known.{near_matches(str(word), known)}")
        if not 0 <= self.held_out < 1:
            raise UsageError(f"`held_out` is {self.held_out!r}; it is a share of the rows, at least 0 and below 1.")

    def _held_out(self, rows: Training) -> NDArray[np.bool_]:
        """Return which rows choose the thresholds."""
        if not self.held_out:
            return np.ones(rows.y.size, dtype=bool)
        return held_out(rows, self.held_out, stream(seed_of(self.random_state), "threshold_optimizer/split"))

    def _seen(self, X: Any) -> Any:
        """Return the columns that the learner gets."""
        return X if self.group_column is None or self.learner_sees_group else _without(X, self.group_column)

    def _accepts(self, X: Any, sensitive_features: Any) -> FloatArray:
        """Return each row's chance of decision 1."""
        check_is_fitted(self)
        if sensitive_features is None:
            if self.group_column is None:
                raise DataError(
                    "ThresholdOptimizer decides with the group. Pass `sensitive_features`, or name the column of `X` "
                    "that records the group as `group_column` when the method is made."
                )
            sensitive_features = _column(X, self.group_column)
        group, _ = group_codes(sensitive_features, int(np.shape(X)[0]), self.groups_)
        above = probability_of(self.learner_, self._seen(X))[:, None] >= self.thresholds_[group]
        looked = np.where(above[:, 0], self.first_[group], 0.0) + np.where(above[:, 1], 1 - self.first_[group], 0.0)
        ignored = self.ignored_[group]
        return np.asarray(np.clip(ignored * self.blind_ + (1 - ignored) * looked, 0, 1))

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> FloatArray:
        """Return the chance of each decision: 0 or 1 unless decisions are drawn.

        Parameters
        ----------
        X : frame or array
            Rows to decide about.
        sensitive_features : array, series, frame or mapping, optional
            The group of each row; needed unless `group_column` was named.

        Returns
        -------
        ndarray, shape (rows, 2)
        """
        one = self._accepts(X, sensitive_features)
        return np.column_stack([1 - one, one])

    def predict(self, X: Any, *, sensitive_features: Any = None) -> NDArray[Any]:
        """Return the decision for each row; those that are drawn depend on the seed and the row's position.

        Parameters
        ----------
        X : frame or array
            Rows to decide about.
        sensitive_features : array, series, frame or mapping, optional
            The group of each row; needed unless `group_column` was named.

        Returns
        -------
        ndarray, shape (rows,)
        """
        one = self._accepts(X, sensitive_features)
        draws = stream(seed_of(self.random_state), "threshold_optimizer/decisions").random(one.size)
        chosen: NDArray[Any] = self.classes_[(draws < one).astype(np.int64)]
        return chosen


@dataclass(frozen=True, slots=True, eq=False)
class _Curve:
    """What each threshold of one group does."""

    cuts: FloatArray  # (cuts,): score from which the decision is 1, the strictest first
    # tpr, fpr, selection_rate (cuts,)
    tpr: FloatArray
    fpr: FloatArray
    selection_rate: FloatArray
    # right, wrong: what a true positive rate of 1 adds to the objective, and a false positive rate of 1 takes from it
    right: float
    wrong: float

    @property
    def value(self) -> FloatArray:
        """What the group adds to the objective, (cuts,)."""
        return self.right * self.tpr + self.wrong * (1 - self.fpr)


@dataclass(frozen=True, slots=True, eq=False)
class _Rule:
    """Thresholds of all groups and how they are drawn; see the attributes of `ThresholdOptimizer`."""

    cuts: FloatArray  # (groups, 2)
    first: FloatArray  # (groups,)
    ignored: FloatArray  # (groups,)
    blind: float
    target: tuple[float, ...]  # the rates that all groups have

    @property
    def draws(self) -> bool:
        """Whether any decision is drawn."""
        mixed = (self.first > 0) & (self.first < 1) & (self.cuts[:, 0] != self.cuts[:, 1])
        return bool(mixed.any() or (self.ignored > 0).any())


def _curves(score: FloatArray, rows: Training, objective: str) -> list[_Curve]:
    """Return each group's curve."""
    weight = rows.weights
    totals = np.array([weight[rows.y == v].sum() for v in (0, 1)])
    each = totals.sum() * np.ones(2) if objective == "accuracy" else 2 * totals
    curves = []
    for code, label in enumerate(rows.groups):
        mine = rows.group == code
        own = np.array([weight[mine & (rows.y == v)].sum() for v in (0, 1)])
        if not own.all():
            raise DataError(
                f"Group `{label}` has no row of class {rows.classes[int(own.argmin())]} among those that choose the "
                "thresholds, so its rates are not known. Leave the group out or join it with another, or lower "
                "`held_out`."
            )
        levels, place = np.unique(-score[mine], return_inverse=True)
        levels = -levels
        ones = np.cumsum(np.bincount(place, weight[mine] * rows.y[mine], levels.size))
        zeros = np.cumsum(np.bincount(place, weight[mine] * (1 - rows.y[mine]), levels.size))
        tpr, fpr = np.r_[0.0, ones / own[1]], np.r_[0.0, zeros / own[0]]
        curves.append(
            _Curve(
                np.r_[np.inf, (levels[:-1] + levels[1:]) / 2, -np.inf],
                tpr,
                fpr,
                (tpr * own[1] + fpr * own[0]) / own.sum(),
                float(own[1] / each[1]),
                float(own[0] / each[0]),
            )
        )
    return curves


def _upper_hull(x: FloatArray, value: FloatArray) -> IntArray:
    """Return the positions of the corners of the smallest concave function above some points, by growing x."""
    corners: list[int] = []
    for i in np.lexsort((-value, x)).tolist():
        if corners and x[i] == x[corners[-1]]:
            continue
        while len(corners) > 1:
            a, b = corners[-2:]
            if (x[b] - x[a]) * (value[i] - value[a]) < (x[i] - x[a]) * (value[b] - value[a]):
                break
            corners.pop()
        corners.append(i)
    return np.array(corners, dtype=np.int64)


def _between(x: FloatArray, at: float) -> tuple[int, int, float]:
    """Return the two neighbours of a place among growing numbers and the share of the first."""
    right = min(max(int(np.searchsorted(x, at)), 1), x.size - 1)
    share = float((x[right] - at) / (x[right] - x[right - 1]))
    return right - 1, right, min(max(share, 0.0), 1.0)


def _one_rate(curves: list[_Curve], rate: str) -> tuple[_Rule, float]:
    """Return the best rule under which one rate agrees, and its objective."""
    hulls = [_upper_hull(getattr(c, rate), c.value) for c in curves]
    corners = [(getattr(c, rate)[h], c.value[h]) for c, h in zip(curves, hulls, strict=True)]
    tried = np.unique(np.concatenate([x for x, _ in corners]))
    total = np.sum([np.interp(tried, x, value) for x, value in corners], axis=0)
    at = float(tried[int(total.argmax())])
    cuts, first = [], []
    for curve, hull, (x, _) in zip(curves, hulls, corners, strict=True):
        low, high, share = _between(x, at)
        cuts.append(curve.cuts[hull[[low, high]]])
        first.append(share)
    return _Rule(np.array(cuts), np.array(first), np.zeros(len(curves)), 0.0, (at,)), float(total.max())


def _both_rates(curves: list[_Curve]) -> tuple[_Rule, float]:
    """Return the best rule under which both error rates agree, and its objective."""
    hulls = [_upper_hull(c.fpr, c.tpr) for c in curves]
    tried = np.unique(np.concatenate([c.fpr[h] for c, h in zip(curves, hulls, strict=True)]))
    tops = np.array([np.interp(tried, c.fpr[h], c.tpr[h]) for c, h in zip(curves, hulls, strict=True)])
    crossings = []
    for a in range(len(curves)):
        apart = tops[a] - tops[a + 1 :]  # (other groups, tried)
        other, j = np.nonzero(apart[:, :-1] * apart[:, 1:] < 0)
        way = apart[other, j] / (apart[other, j] - apart[other, j + 1])
        crossings.append(tried[j] + way * (tried[j + 1] - tried[j]))
    tried = np.unique(np.concatenate([tried, *crossings]))
    tops = np.array([np.interp(tried, c.fpr[h], c.tpr[h]) for c, h in zip(curves, hulls, strict=True)])
    low = tops.min(axis=0)
    right, wrong = sum(c.right for c in curves), sum(c.wrong for c in curves)
    total = right * low + wrong * (1 - tried)
    best = int(total.argmax())
    fpr, tpr = float(tried[best]), float(low[best])
    cuts, first, ignored = [], [], []
    for curve, hull, top in zip(curves, hulls, tops[:, best].tolist(), strict=True):
        a, b, share = _between(curve.fpr[hull], fpr)
        cuts.append(curve.cuts[hull[[a, b]]])
        first.append(share)
        # A group that could do better is brought down: some decisions do not look at the score.
        ignored.append((top - tpr) / (top - fpr) if top > tpr else 0.0)
    return _Rule(np.array(cuts), np.array(first), np.array(ignored), fpr, (tpr, fpr)), float(total[best])


def _single_thresholds(curves: list[_Curve], rates: tuple[str, ...], drawn: _Rule) -> tuple[_Rule, float, float]:
    """Return the single thresholds nearest to the best rule, their objective and how far rates then differ."""
    chosen = []
    for curve in curves:
        off = np.max([np.abs(getattr(curve, r) - t) for r, t in zip(rates, drawn.target, strict=True)], axis=0)
        near = np.flatnonzero(off <= off.min() + 1e-12)
        chosen.append(int(near[curve.value[near].argmax()]))
    cuts = np.array([[c.cuts[i]] * 2 for c, i in zip(curves, chosen, strict=True)])
    reached = sum(float(c.value[i]) for c, i in zip(curves, chosen, strict=True))
    apart = max(float(np.ptp([getattr(c, r)[i] for c, i in zip(curves, chosen, strict=True)])) for r in rates)
    size = len(curves)
    return _Rule(cuts, np.ones(size), np.zeros(size), 0.0, drawn.target), reached, apart


def _column(X: Any, name: str | int) -> NDArray[Any]:
    """Return one column of a frame by name, or of an array by position."""
    columns = getattr(X, "columns", None)
    if columns is not None:
        if name not in list(columns):
            raise DataError(f"`X` has no column `{name}` (`group_column`).{near_matches(str(name), columns)}")
        return np.asarray(X[name])
    if not isinstance(name, int) or not -np.shape(X)[1] <= name < np.shape(X)[1]:
        raise DataError(
            f"`group_column` is {name!r}; for an array of {np.shape(X)[1]} columns it must be a column's position."
        )
    return np.asarray(X)[:, name]


def _without(X: Any, name: str | int) -> Any:
    """Return the other columns."""
    if hasattr(X, "columns"):
        return nw.from_native(X, eager_only=True).drop(str(name)).to_native()
    return np.delete(np.asarray(X), int(name), axis=1)
