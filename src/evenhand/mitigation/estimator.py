"""What every mitigator shares: one shape of `fit`, groups and weights checked once, any learner fitted with weights."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from evenhand.arrays import FloatArray, IntArray
from evenhand.errors import DataError, UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a person choosing a method wants to know; the table in the docs is made from it.

    Parameters
    ----------
    stage : {"before", "in", "after"}
        Whether it works before, in or after training.
    needs : str
        What it needs beside rows, labels and groups.
    changes : str
        What it changes.
    cost : str
        What it costs, as a multiple of fitting the plain learner.
    decides_with_group : bool
        Whether it must know a person's group to decide about that person.
    grid : tuple of mappings
        The settings that `evenhand.mitigate` tries, from the mildest to the strongest.
    """

    stage: str
    needs: str
    changes: str
    cost: str
    decides_with_group: bool = False
    grid: tuple[Mapping[str, Any], ...] = field(default=({},))


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """Rows to train on, checked.

    Parameters
    ----------
    X : frame or ndarray
        The features as they were given.
    y : ndarray of int
        0 and 1: positions in `classes`.
    classes : ndarray
        The two labels, sorted.
    group : ndarray of int
        Positions in `groups`.
    groups : tuple of str
        Labels of the groups; several attributes are joined to their intersections.
    weight : ndarray or None
        Weight of each row.
    """

    X: Any
    y: IntArray
    classes: NDArray[Any]
    group: IntArray
    groups: tuple[str, ...]
    weight: FloatArray | None = None

    @property
    def weights(self) -> FloatArray:
        """The weight of each row, 1 where none were given."""
        return np.ones(self.y.size) if self.weight is None else self.weight

    def take(self, rows: NDArray[Any]) -> Training:
        """Return some of the rows, by position or by mask."""
        weight = None if self.weight is None else self.weight[rows]
        return replace(self, X=take_rows(self.X, rows), y=self.y[rows], group=self.group[rows], weight=weight)


class Mitigator(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose training or decisions were changed so that groups are treated more alike.

    A method gives `about`, `_fit`, which learns from checked rows, and `_probability`, which scores. A method whose
    result is one ordinary learner keeps it as `decides_as_`; audits then look at that learner.
    """

    about: ClassVar[About]

    def fit(self, X: Any, y: ArrayLike, *, sensitive_features: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from rows.

        Parameters
        ----------
        X : frame or array, shape (rows, features)
            Features; text columns in a frame are allowed.
        y : array, shape (rows,)
            Labels of two classes; the larger one in sorting order counts as 1.
        sensitive_features : array, series, frame or mapping
            The group of each row; several columns are joined to their intersections.
        sample_weight : array, optional
            Weight of each row.

        Returns
        -------
        Mitigator
            Itself.
        """
        rows = check_training(X, y, sensitive_features, sample_weight)
        self.classes_ = rows.classes
        self.groups_ = rows.groups
        self.n_features_in_ = int(np.shape(X)[1])
        names = getattr(X, "columns", None)
        if names is not None:
            self.feature_names_in_ = np.asarray([str(n) for n in names], dtype=object)
        self._fit(rows)
        return self

    @abstractmethod
    def _fit(self, rows: Training) -> None:
        """Learn from checked rows."""

    def _probability(self, X: Any) -> FloatArray:
        """Return the probability of the second class."""
        return probability_of(self.decides_as_, X)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class, shape (rows, 2)."""
        check_is_fitted(self)
        one = self._probability(X)
        return np.column_stack([1 - one, one])

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row."""
        check_is_fitted(self)
        decides_as = getattr(self, "decides_as_", None)
        codes = self._probability(X) >= 0.5 if decides_as is None else np.asarray(decides_as.predict(X)) == 1
        chosen: NDArray[Any] = self.classes_[codes.astype(np.int64)]
        return chosen


def check_training(X: Any, y: ArrayLike, sensitive_features: Any, sample_weight: ArrayLike | None) -> Training:
    """Check what was given to `fit` and code labels and groups.

    Parameters
    ----------
    X, y, sensitive_features, sample_weight
        As for `Mitigator.fit`.

    Returns
    -------
    Training
    """
    if np.ndim(X) != 2:
        raise DataError(f"`X` must have rows and columns; got {np.ndim(X)} dimension(s).")
    size = int(np.shape(X)[0])
    labels = np.asarray(y)
    if labels.shape != (size,):
        raise DataError(f"`y` has shape {labels.shape}; it needs one label for each of the {size} rows of `X`.")
    classes, codes = np.unique(labels, return_inverse=True)
    if classes.size != 2:
        raise DataError(f"`y` has {classes.size} class(es), {classes.tolist()[:5]}; mitigation needs exactly 2.")
    group, groups = group_codes(sensitive_features, size)
    weight = None
    if sample_weight is not None:
        weight = np.asarray(sample_weight, dtype=np.float64)
        if weight.shape != (size,) or not np.isfinite(weight).all() or (weight < 0).any() or not weight.any():
            raise DataError(
                f"`sample_weight` must hold one finite number, 0 or larger and not all 0, for each of the {size} rows."
            )
    return Training(X, codes.astype(np.int64), classes, group, groups, weight)


def group_codes(sensitive_features: Any, size: int, known: tuple[str, ...] = ()) -> tuple[IntArray, tuple[str, ...]]:
    """Return each row's group as a number, and the labels of the groups.

    Parameters
    ----------
    sensitive_features : array, series, frame or mapping
        One attribute, or several as columns.
    size : int
        Rows expected.
    known : tuple of str
        The groups of training, when rows to decide about are coded; without them at least two groups are needed.

    Returns
    -------
    codes : ndarray of int
    labels : tuple of str

    Examples
    --------
    >>> group_codes({"sex": ["F", "M"], "old": [True, True]}, 2)
    (array([0, 1]), ('F × True', 'M × True'))
    """
    if sensitive_features is None:
        raise DataError("`sensitive_features` is missing: say each row's group.")
    if hasattr(sensitive_features, "columns"):
        sensitive_features = {str(n): sensitive_features[n] for n in sensitive_features.columns}
    if isinstance(sensitive_features, Mapping):
        columns = [np.asarray(c) for c in sensitive_features.values()]
    else:
        whole = np.asarray(sensitive_features)
        columns = [whole] if whole.ndim < 2 else list(whole.T)
    if not columns or any(c.shape != (size,) for c in columns):
        shapes = ", ".join(str(c.shape) for c in columns) or "nothing"
        raise DataError(f"`sensitive_features` has shape {shapes}; it needs one group for each of the {size} rows.")
    if any(value is None or value != value for c in columns for value in set(c.tolist())):
        raise DataError("`sensitive_features` has missing values; leave those rows out or give them a group.")
    texts = columns[0].astype(str)
    for column in columns[1:]:
        texts = np.char.add(np.char.add(texts, " × "), column.astype(str))
    labels, codes = np.unique(texts, return_inverse=True)
    if known:
        strange = sorted(set(labels.tolist()) - set(known))
        if strange:
            raise DataError(f"Group `{strange[0]}` was not among the groups of training: {', '.join(known)}.")
        codes = np.array([known.index(label) for label in labels.tolist()], dtype=np.int64)[codes]
        return codes, known
    if labels.size < 2:
        raise DataError(f"`sensitive_features` has the single group `{labels[0]}`; at least two are needed.")
    return codes.astype(np.int64), tuple(labels.tolist())


def take_rows(X: Any, rows: NDArray[Any]) -> Any:
    """Return some rows of a frame or an array, by position or by mask.

    Examples
    --------
    >>> take_rows(np.array([[1], [2], [3]]), np.array([True, False, True])).tolist()
    [[1], [3]]
    """
    where = np.flatnonzero(rows) if np.asarray(rows).dtype == bool else np.asarray(rows)
    if hasattr(X, "iloc"):
        return X.iloc[where]
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return frame[where.tolist(), :].to_native() if isinstance(frame, nw.DataFrame) else np.asarray(X)[where]


def to_numbers(X: Any) -> Any:
    """Return an unfitted transformer of these columns: numbers standardised, texts as one column for each value.

    Examples
    --------
    >>> to_numbers(np.array([[0.0], [2.0]])).fit_transform(np.array([[0.0], [2.0]])).tolist()
    [[-1.0], [1.0]]
    """
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return StandardScaler()
    numeric = [n for n, kind in frame.schema.items() if kind.is_numeric() or kind == nw.Boolean]
    rest = [n for n in frame.columns if n not in numeric]
    parts = [(StandardScaler(), numeric)] if numeric else []
    if rest:
        parts.append((OneHotEncoder(handle_unknown="ignore", sparse_output=False), rest))
    return make_column_transformer(*parts)


def default_learner(X: Any) -> Any:
    """Return an unfitted logistic regression on these columns as numbers.

    Examples
    --------
    >>> default_learner(np.zeros((2, 1))).steps[-1][0]
    'logisticregression'
    """
    return make_pipeline(to_numbers(X), LogisticRegression(max_iter=1000))


def fit_learner(learner: Any, rows: Training, weight: FloatArray | None = None, y: IntArray | None = None) -> Any:
    """Fit a copy of a learner, with weights if there are any.

    Parameters
    ----------
    learner : estimator or None
        Not fitted, or fitted before: a copy is fitted. None takes `default_learner`. In a pipeline, weights go to the
        last step.
    rows : Training
        Features, labels and their weights.
    weight : ndarray, optional
        Weights in place of those of the rows.
    y : ndarray, optional
        Labels in place of those of the rows.

    Returns
    -------
    estimator
        Fitted, with classes 0 and 1.
    """
    made = default_learner(rows.X) if learner is None else clone(learner)
    weight = rows.weight if weight is None else weight
    given = {}
    if weight is not None:
        require_weights(made)
        last = made.steps[-1] if isinstance(made, Pipeline) else ("", made)
        given = {f"{last[0]}__sample_weight" if last[0] else "sample_weight": weight}
    return made.fit(rows.X, rows.y if y is None else y, **given)


def takes_weights(learner: Any) -> bool:
    """Tell whether a learner, or the last step of a pipeline, can be fitted with weights.

    Examples
    --------
    >>> takes_weights(LogisticRegression())
    True
    """
    return bool(has_fit_parameter(learner.steps[-1][1] if isinstance(learner, Pipeline) else learner, "sample_weight"))


def require_weights(learner: Any) -> None:
    """Refuse a learner that cannot be fitted with weights."""
    if not takes_weights(learner):
        last = learner.steps[-1][1] if isinstance(learner, Pipeline) else learner
        raise UsageError(
            f"The learner {type(last).__name__} takes no sample weights in `fit`, and this needs them. Use a "
            "learner that does, such as logistic regression, a forest or boosting, or a method without weights."
        )


def probability_of(learner: Any, X: Any) -> FloatArray:
    """Return a fitted learner's probability of class 1; its decision where it has none.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> float(probability_of(LogisticRegression().fit(X, [0, 0, 1, 1]), X)[3].round(2))
    0.81
    """
    if hasattr(learner, "predict_proba"):
        return np.asarray(learner.predict_proba(X), dtype=np.float64)[:, 1]
    return np.asarray(learner.predict(X), dtype=np.float64)
