"""Whether the audited rows look like the rows a model was trained on.

A model that has seen the labels of rows repeats them, noise included. Fitted again on a part of the same rows, a model
of its kind cannot repeat the labels of the rest. Where the first is far better than the second, the rows were seen; or
the model was trained on very many more rows, and the outcome has next to no noise.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import FloatArray, IntArray
from evenhand.intake.data import AuditData
from evenhand.kernels.shared.row_hash import row_hash
from evenhand.models.audited import AuditedModel
from evenhand.models.gradient_sklearn import is_sklearn

MOST_ROWS = 1500  # rows looked at
LEAST_ROWS = 60
FOLDS = 3
# The model is suspected below this share of the error of saying the same to everybody, ...
SCREEN = 0.5
# ... and named when it errs at most this often as a model fitted on other rows, by more than chance.
RATIO = 0.4
CHANCE = 4.0  # standard errors
# With next to no noise, many more rows to learn from are enough to be that much better.
NOISE = 0.05

QUESTION = (
    "Was the model trained on any of these rows? On rows it has seen it errs less than it will on others, and what is "
    "built on its errors looks better than it is."
)


def training_rows(model: AuditedModel, data: AuditData) -> str:
    """Ask whether the model has seen these rows, or say that it looks so.

    Examples
    --------
    >>> data = AuditData.from_arrays(decision=[0, 1], groups={"g": ["a", "b"]}, features={"x": [0.2, 0.7]})
    >>> from evenhand.models.adapter import audited_model
    >>> training_rows(audited_model(lambda X: X[:, 0], data), data) == QUESTION
    True
    """
    errors = compare_with_refits(model, data)
    if errors is None:
        return QUESTION
    here, elsewhere = errors
    says = "errs on {:.1%} of {}" if data.outcome_kind == "binary" else "has a mean squared error of {:.3g} on {}"
    return (
        f"These rows look like the rows the model was trained on: it {says.format(here, 'them')}, and a model of its "
        f"kind that is fitted on two thirds of them {says.format(elsewhere, 'the rest')}. Error rates, calibration and "
        "all that is built on them are too good here. Audit rows that the model has not seen."
    )


def compare_with_refits(model: AuditedModel, data: AuditData) -> tuple[float, float] | None:
    """Return the model's error on the rows and that of refits on rows they have not seen, where the first is far less.

    Parameters
    ----------
    model : AuditedModel
        The model; only scikit-learn estimators can be fitted again.
    data : AuditData
        The rows.

    Returns
    -------
    (float, float) or None
        None where nothing suspicious is seen, or nothing can be said.
    """
    source = getattr(model.source, "best_estimator_", model.source)  # of a search: its parameters are chosen already
    if data.outcome is None or model.problem or not is_sklearn(source):
        return None
    binary = data.outcome_kind == "binary"
    if binary != (model.classes is not None):
        return None
    rows = _some_rows(data)
    if len(rows) < LEAST_ROWS:
        return None
    columns = {name: np.asarray(column)[rows] for name, column in data.features.items()}
    y = data.outcome[rows]
    answers = (model.decide if binary else model.score)(data.features)[rows]
    own = (answers - y) ** 2  # for decisions, 1 where they are wrong
    if not own.mean() < SCREEN * (1 if binary else SCREEN) * _constant_error(y, binary):
        return None
    other = _refitted(source, model, columns, y, binary)
    if other is None:
        return None
    gain = other - own
    error = float(gain.std(ddof=1)) / math.sqrt(len(gain))
    if binary and other.mean() < NOISE:
        return None
    if own.mean() <= RATIO * other.mean() and gain.mean() > CHANCE * error:
        return float(own.mean()), float(other.mean())
    return None


def _constant_error(y: FloatArray, binary: bool) -> float:
    share = float(y.mean())
    return min(share, 1 - share) if binary else float(y.var())


def _some_rows(data: AuditData) -> IntArray:
    """Choose rows, in an order that does not depend on theirs: sorted by outcome and by the hash of their content."""
    assert data.outcome is not None
    order = np.lexsort((row_hash(data.features, 0), data.outcome))
    return np.asarray(order[np.linspace(0, len(order) - 1, min(len(order), MOST_ROWS)).astype(np.int64)])


def _refitted(source: Any, model: AuditedModel, columns: Any, y: FloatArray, binary: bool) -> FloatArray | None:
    from sklearn.base import clone

    # Sorted by outcome, dealt out in turn: each fold has its share of every outcome.
    fold = np.arange(len(y)) % FOLDS
    out = np.empty(len(y))
    target: NDArray[Any] = y
    if binary:
        assert model.classes is not None
        assert model.one is not None
        target = np.asarray(model.classes)[np.where(y == 1, model.one, 1 - model.one)]
    try:
        with warnings.catch_warnings(action="ignore"):
            for k in range(FOLDS):
                part = [model.encode({n: c[mask] for n, c in columns.items()}) for mask in (fold != k, fold == k)]
                fitted = _steady(clone(source)).fit(part[0], target[fold != k])
                answer = np.asarray(fitted.predict(part[1]))
                truth = target[fold == k]
                out[fold == k] = answer != truth if binary else (answer - truth) ** 2
    except Exception:  # a stranger's estimator may need more than rows and outcomes to be fitted
        return None
    return out


def _steady(estimator: Any) -> Any:
    """Let random estimators learn the same each time, and alone."""
    fixed = {k: 0 for k, v in estimator.get_params().items() if k.split("__")[-1] == "random_state" and v is None}
    alone = {k: 1 for k, v in estimator.get_params().items() if k.split("__")[-1] == "n_jobs" and v is not None}
    return estimator.set_params(**fixed, **alone)
