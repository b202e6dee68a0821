"""The front of a learner: the steps of its pipeline that make numbers of columns, before the step that decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline

from evenhand.arrays import FloatArray
from evenhand.mitigation.estimator import Training, default_learner, to_numbers

Steps = list[tuple[str, Any]]


def split_learner(learner: Any, rows: Training, *, numbers: bool) -> tuple[Steps, Any, Training]:
    """Fit the front of a learner once, so that the deciding step can be fitted many times or behind something else.

    Parameters
    ----------
    learner : estimator or None
        None takes `default_learner`.
    rows : Training
        To fit the front on.
    numbers : bool
        Whether the deciding step needs a matrix: a learner without a pipeline then gets `to_numbers` as its front.

    Returns
    -------
    front : list of (str, transformer)
        Fitted; empty for a learner without a pipeline that takes the columns as they are.
    last : estimator
        The step that decides, not fitted.
    rows : Training
        The same rows as they look behind the front.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> y = np.array([0, 1])
    >>> rows = Training(np.array([[1.0], [3.0]]), y, y, y, ("a", "b"))
    >>> front, last, behind = split_learner(LogisticRegression(), rows, numbers=True)
    >>> behind.X.tolist()
    [[-1.0], [1.0]]
    """
    if learner is None:
        learner = default_learner(rows.X)
    elif numbers and not isinstance(learner, Pipeline):
        learner = make_pipeline(to_numbers(rows.X), learner)
    if not isinstance(learner, Pipeline):
        return [], clone(learner), rows
    fresh = clone(learner)
    if len(fresh.steps) == 1:
        return [], fresh.steps[-1][1], rows
    X = fresh[:-1].fit_transform(rows.X, rows.y)
    front = list(fresh.steps[:-1])
    return front, fresh.steps[-1][1], replace(rows, X=as_matrix(X) if numbers else X)


def join(front: Sequence[tuple[str, Any]], name: str, last: Any) -> Any:
    """Return fitted steps and a fitted last step as one learner."""
    return Pipeline([*front, (name, last)]) if front else last


def as_matrix(X: Any) -> FloatArray:
    """Return what a front gave as a plain matrix of numbers, also where it gave a sparse one or a frame.

    Examples
    --------
    >>> as_matrix([[1, 2]]).tolist()
    [[1.0, 2.0]]
    """
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
