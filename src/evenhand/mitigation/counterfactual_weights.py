"""Counterfactual weights: scores as in the population in which the plain model would show no gap.

The plain learner is fitted and looked at as the proxy audit does it: the influence function says how the gap between a
group and its reference would change with a few more people like x, and step by step the group's people are weighted
by 1 - step * psi(x), clipped at 0 and renormalised, until the gap is gone. These weights describe a counterfactual
population. Each person of the group then gets the score that the person at the same rank has in that population
(optimal transport along the score), and the learner is fitted to these scores, each row once with label 1, weighted
by the score, and once with label 0, weighted by the rest. The result is one learner that does not need the group to
decide.

Source
    Wang, Ustun and Calmon (2019), Auditing discrimination with influence functions, section 4.1 and algorithm 1, for
    the weights. Moving people to the counterfactual population is the repair of the same authors (2019), Repairing
    without retraining, ICML; they move features and need the group at prediction. Plain training with the weights is
    no repair: they depend on features alone and leave P(y | x) as it was, and on Adult the gap stays as it was.
Where it fails
    A learner without the group shares a correction between people who look alike. Where features tell little of the
    group the gap hardly closes; where they tell much, people of the reference who look like the group are moved with
    it. Weights are made for one measure; the others may get worse. The labels of the moved people are not moved, so
    that gaps in error rates close about, not exactly. With a few hundred rows in a group the end of the descent, which
    is judged on a fifth of them, is mostly noise. Where few people of the group could close the gap, few effective
    rows are left; look at `effective_rows_`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand.arrays import FloatArray
from evenhand.audits.proxy import weights_of
from evenhand.audits.proxy.options import ProxyOptions
from evenhand.errors import UsageError
from evenhand.intake.data import AuditData
from evenhand.mitigation.estimator import About, Mitigator, Training, fit_learner, probability_of


class CounterfactualWeights(Mitigator):
    """A learner fitted to scores as in the population in which the plain learner shows no gap.

    Parameters
    ----------
    estimator : estimator, optional
        The learner, not fitted; it must take sample weights. By default logistic regression.
    measure : str or mapping
        The gap that the weights close; see `evenhand.audit_proxy`.
    strength : float
        Between 0, which leaves the plain learner's scores as they are, and 1, which moves them all the way.
    reference : str, optional
        The group that stays as it is; by default the largest.
    step : float
        First step of the descent.
    max_steps : int
        At most so many steps.

    Attributes
    ----------
    decides_as_ : estimator
        The fitted learner.
    weights_ : ndarray, shape (rows,)
        The counterfactual weight of each training row, the given one included.
    scores_ : ndarray, shape (rows,)
        The scores that the learner was fitted to.
    gaps_ : dict of str to tuple of float
        For each group but the reference: the plain learner's gap on the training rows as the descent went.
    effective_rows_ : dict of str to float
        For each of them: (sum of weights)² / (sum of squared weights) of its rows at the end.
    stopped_ : dict of str to str
        For each of them: why the descent ended, or why there was none.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(0, 2, 600)
    >>> X = (rng.random((600, 2)) < np.where(group, 0.8, 0.2)[:, None]).astype(float)
    >>> y = rng.random(600) < 0.2 + 0.5 * X[:, 0]
    >>> method = CounterfactualWeights(measure="sp", reference="0").fit(X, y, sensitive_features=group)
    >>> gaps = method.gaps_["1"]
    >>> gaps[0] > 0.2, abs(gaps[-1]) < 0.05
    (True, True)
    """

    about = About(
        stage="before",
        needs="a learner that takes sample weights",
        changes="the labels: the learner is fitted to moved scores of the plain learner",
        cost="about 10 times one fit",
        grid=({"strength": 0.5}, {"strength": 1.0}, {"measure": "sp"}),
    )

    def __init__(
        self, estimator: Any = None, *, measure: Any = "fpr", strength: float = 1.0, reference: str | None = None,
        step: float = 0.1, max_steps: int = 200,
    ) -> None:  # fmt: skip
        self.estimator = estimator
        self.measure = measure
        self.strength = strength
        self.reference = reference
        self.step = step
        self.max_steps = max_steps

    def _fit(self, rows: Training) -> None:
        if not 0 <= self.strength <= 1:
            raise UsageError(f"`strength` must be a number from 0 to 1; got {self.strength!r}.")
        reference = self._reference(rows)
        score = probability_of(fit_learner(self.estimator, rows), rows.X)
        self.weights_, self.scores_ = rows.weights.copy(), score.copy()
        self.gaps_: dict[str, tuple[float, ...]] = {}
        self.effective_rows_: dict[str, float] = {}
        self.stopped_: dict[str, str] = {}
        for code, label in enumerate(rows.groups):
            if code != reference:
                self._reweigh(rows, score, code, reference)
                inside = (rows.group == code) & (rows.weights > 0)
                if label in self.gaps_:
                    moved = transport(score[inside], rows.weights[inside], self.weights_[inside])
                    self.scores_[inside] += self.strength * (moved - score[inside])
        size = rows.y.size
        self.decides_as_ = fit_learner(
            self.estimator,
            rows.take(np.tile(np.arange(size), 2)),
            weight=np.tile(rows.weights, 2) * np.concatenate([1 - self.scores_, self.scores_]),
            y=np.repeat(np.array([0, 1]), size),
        )

    def _reference(self, rows: Training) -> int:
        """Return the code of the group that stays as it is."""
        if self.reference is None:
            return int(np.bincount(rows.group, weights=rows.weights, minlength=len(rows.groups)).argmax())
        if self.reference not in rows.groups:
            raise UsageError(
                f"`reference` must be one of the groups {', '.join(f'`{g}`' for g in rows.groups)}; "
                f"got {self.reference!r}."
            )
        return rows.groups.index(self.reference)

    def _reweigh(self, rows: Training, score: FloatArray, code: int, reference: int) -> None:
        """Run the descent of one group, weight its rows and note how it went."""
        label = rows.groups[code]
        used = np.flatnonzero(((rows.group == code) | (rows.group == reference)) & (rows.weights > 0))
        part = rows.take(used)
        inside = part.group == code
        whole = bool(np.all(part.weights == np.round(part.weights)))  # then a weight is so many rows
        reference_label = rows.groups[reference]
        data = AuditData.from_arrays(
            outcome=part.y,
            score=score[used],
            groups={"group": np.where(inside, label, reference_label)},
            features=part.X,
            weight=part.weights if whole else part.weights / part.weights.mean(),
            weight_kind="frequency" if whole else "sampling",
        )
        asked = ProxyOptions(measure=self.measure, step=self.step, max_steps=self.max_steps)
        weights = weights_of(data, asked, label, reference_label)
        if isinstance(weights, str):
            self.stopped_[label] = weights
            return
        columns = {name: np.asarray(values)[inside] for name, values in data.features.items()}
        moved = part.weights[inside] * weights(columns, score=score[used][inside])
        self.weights_[used[inside]] = moved
        self.gaps_[label] = tuple(weights.path.values)
        self.effective_rows_[label] = float(moved.sum() ** 2 / (moved**2).sum())
        self.stopped_[label] = weights.path.stopped


def transport(values: FloatArray, before: FloatArray, after: FloatArray) -> FloatArray:
    """Return for each value the one at its rank when the values are weighted anew.

    Parameters
    ----------
    values : ndarray, shape (rows,)
        Values.
    before, after : ndarray, shape (rows,)
        Weights of the rows, above 0, and their new weights.

    Returns
    -------
    ndarray, shape (rows,)
        Equal values stay equal: they get the mean over their ranks. The mean of all is the newly weighted mean.

    Examples
    --------
    >>> transport(np.array([0.0, 1.0, 2.0]), np.ones(3), np.array([0.0, 1.0, 2.0])).round(12).tolist()
    [1.0, 2.0, 2.0]
    """
    distinct, at = np.unique(values, return_inverse=True)
    old, new = (np.bincount(at, weights=w) / w.sum() for w in (before, after))
    rank, new_rank, sums = (np.concatenate([[0.0], np.cumsum(part)]) for part in (old, new, new * distinct))
    moved: FloatArray = np.diff(np.interp(rank, new_rank, sums)) / old
    return np.clip(moved, distinct[0], distinct[-1])[at]
