"""The same people recorded as members of another group, and what the model says about them then.

A model is asked in the user's own columns. The columns that record the protected attribute (one, or several that
change together such as a one-hot block) take the values they have in the other group; nothing else changes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import DataError, MissingDependencyError, UsageError, near_matches
from evenhand.models.model import Model, as_model

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Columns = Mapping[str, NDArray[Any]]
# Columns to flip together, the values of each group by label, or a function (columns, label) -> columns.
Flip = str | Sequence[str] | Mapping[str, Mapping[str, Any]] | Callable[[Columns, str], Columns]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scorer:
    """A model that is asked in named columns.

    Parameters
    ----------
    name : str
        What reports call it.
    score : callable
        Columns to one score per row.
    probability : bool
        Whether the score is known to be a probability.
    inputs : tuple of str or None
        Columns the model says it was fitted on; None when it does not say.
    """

    name: str
    score: Callable[[Columns], FloatArray]
    probability: bool
    inputs: tuple[str, ...] | None


def as_scorer(source: Any, columns: Columns, *, positive: Any = None) -> Scorer:
    """Wrap a model so that it can be asked in named columns.

    Parameters
    ----------
    source : object
        A fitted estimator or pipeline (its probability of the positive class is used, else its decision function,
        else its prediction), anything `evenhand.models.as_model` takes, or a callable. A callable gets a float
        array of shape (rows, columns) when all columns are numbers, else the mapping of columns.
    columns : mapping of str to ndarray
        The features, to see their names and kinds.
    positive : object, optional
        The class whose probability is the score; by default the last.

    Returns
    -------
    Scorer

    Examples
    --------
    >>> columns = {"x": np.array([1.0, 2.0]), "sex": np.array(["F", "M"])}
    >>> as_scorer(lambda c: c["x"] / 4 + (c["sex"] == "M"), columns).score(columns).tolist()
    [0.25, 1.5]
    """
    numeric = all(np.asarray(c).dtype.kind in "biuf" for c in columns.values())
    name = getattr(source, "__name__", type(source).__name__)
    if isinstance(source, Model):
        return _scorer(source.name, lambda c: source.score(_matrix(c)), source.probability, None)
    fitted_on = getattr(source, "feature_names_in_", None)
    inputs = None if fitted_on is None else tuple(str(n) for n in fitted_on)
    if inputs is not None:
        missing = [n for n in inputs if n not in columns]
        if missing:
            raise DataError(
                f"The model was fitted on the column `{missing[0]}`, which is not among the features."
                f"{near_matches(missing[0], columns)}"
            )
    if hasattr(source, "predict"):
        method, which, probability = _method(source, positive)
        framed = inputs is not None or not numeric

        def ask(c: Columns) -> Any:
            given = _frame(c, inputs) if framed else _matrix(c)
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="X does not have valid feature names")
                out = np.asarray(getattr(source, method)(given), dtype=float)
            return out[:, which] if out.ndim == 2 else out

        return _scorer(name, ask, probability, inputs)
    if isinstance(source, str) or hasattr(source, "forward") or hasattr(source, "get_inputs"):
        model = as_model(source)
        return _scorer(model.name, lambda c: model.score(_matrix(c)), model.probability, None)
    if callable(source):
        return _scorer(name, lambda c: source(_matrix(c) if numeric else dict(c)), False, None)
    raise UsageError(
        f"A {type(source).__name__} is not a model. Allowed: a fitted estimator, an ONNX file, a torch module, or a "
        "callable from columns to scores."
    )


def _method(source: Any, positive: Any) -> tuple[str, int, bool]:
    classes = getattr(source, "classes_", None)
    if classes is None or not hasattr(source, "predict_proba"):
        return ("predict" if classes is None else "decision_function"), -1, False
    if positive is None:
        return "predict_proba", -1, True
    at = np.flatnonzero(np.asarray(classes).astype(str) == str(positive))
    if not at.size:
        raise UsageError(f"`positive` is `{positive}`; the model's classes are {', '.join(map(str, classes))}.")
    return "predict_proba", int(at[0]), True


def _scorer(name: str, raw: Callable[[Columns], Any], probability: bool, inputs: tuple[str, ...] | None) -> Scorer:
    def score(columns: Columns) -> FloatArray:
        n = len(next(iter(columns.values())))
        values = np.asarray(raw(columns), dtype=float)
        if values.ndim == 2 and values.shape[1] == 2:
            values = values[:, 1]
        values = values.reshape(-1)
        if values.shape != (n,):
            raise DataError(f"Model `{name}` gave {values.size} scores for {n} rows; one per row is needed.")
        if not np.isfinite(values).all():
            raise DataError(f"Model `{name}` gave {int((~np.isfinite(values)).sum())} scores that are not finite.")
        return values

    return Scorer(name=name, score=score, probability=probability, inputs=inputs)


def _matrix(columns: Columns) -> FloatArray:
    try:
        return np.column_stack([np.asarray(c, dtype=np.float64) for c in columns.values()])
    except ValueError as error:
        raise DataError(
            "The model takes numbers and a feature column holds text. Encode it, or pass a pipeline that does."
        ) from error


def _frame(columns: Columns, inputs: tuple[str, ...] | None) -> Any:
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingDependencyError(
            "This model was fitted on a data frame and needs pandas. Install it with `pip install 'evenhand[pandas]'`."
        ) from error
    return pd.DataFrame({n: columns[n] for n in (inputs or columns)})


def flip_values(
    columns: Columns, attribute: str, labels: Sequence[str], codes: IntArray, flip: Flip | None
) -> list[dict[str, Any]] | Callable[[Columns, str], Columns] | str:
    """Find what each group's records look like in the columns that say which group it is.

    Parameters
    ----------
    columns : mapping of str to ndarray
        The features.
    attribute : str
        The protected attribute; an intersection ``"sex × race"`` stands for both columns.
    labels : sequence of str
        Its groups.
    codes : ndarray of int
        Each record's place in `labels`.
    flip : str, sequence of str, mapping, callable or None
        The columns that record the attribute; or each label's values, ``{"Female": {"sex_F": 1, "sex_M": 0}, ...}``;
        or a function of columns and a label. By default the column of the attribute's name.

    Returns
    -------
    list of dict, callable or str
        Column to value, one per label; the user's function; or, when the features do not record the attribute, the
        reason why nothing can be flipped.

    Examples
    --------
    >>> columns = {"sex": np.array([0, 1, 1]), "x": np.array([5.0, 6.0, 7.0])}
    >>> flip_values(columns, "sex", ["F", "M"], np.array([0, 1, 1]), None)
    [{'sex': np.int64(0)}, {'sex': np.int64(1)}]
    """
    if callable(flip):
        return flip
    if isinstance(flip, Mapping):
        return [_given(flip, label, columns) for label in labels]
    if flip is None:
        names = [attribute] if attribute in columns else attribute.split(" × ")
        absent = [n for n in names if n not in columns]
        if absent:
            return (
                f"The model cannot see `{attribute}`: no feature column of that name is among its inputs. If other "
                "columns record it (a one-hot block, say), name them in `flip`."
            )
    else:
        names = [flip] if isinstance(flip, str) else list(flip)
        for n in names:
            if n not in columns:
                raise UsageError(f"`flip` names the column `{n}`, which is not a feature.{near_matches(n, columns)}")
    found: list[dict[str, Any]] = []
    for code, label in enumerate(labels):
        mine = codes == code
        values: dict[str, Any] = {}
        for n in names:
            kinds = np.unique(columns[n][mine].astype(str) if columns[n].dtype == object else columns[n][mine])
            if kinds.size != 1:
                raise DataError(
                    f"Column `{n}` has {kinds.size} values within `{attribute}={label}`, so it does not record the "
                    f"attribute alone. Give `flip` as a mapping of each label to its column values, or as a function."
                )
            values[n] = columns[n][mine][0]
        found.append(values)
    return found


def _given(flip: Mapping[str, Mapping[str, Any]], label: str, columns: Columns) -> dict[str, Any]:
    if label not in flip:
        raise UsageError(f"`flip` has no values for the group `{label}`.{near_matches(label, flip)}")
    for n in flip[label]:
        if n not in columns:
            raise UsageError(f"`flip` names the column `{n}`, which is not a feature.{near_matches(n, columns)}")
    return dict(flip[label])


def recorded_as(
    columns: Columns, label: str, code: int, values: list[dict[str, Any]] | Callable[[Columns, str], Columns]
) -> Columns:
    """Return the same rows recorded as members of another group.

    Parameters
    ----------
    columns : mapping of str to ndarray
        The rows.
    label, code : str, int
        The other group.
    values : list of dict or callable
        From `flip_values`.

    Returns
    -------
    mapping of str to ndarray
        The inputs are not changed.
    """
    if callable(values):
        return values(dict(columns), label)
    out = dict(columns)
    for name, value in values[code].items():
        column = np.asarray(columns[name])
        # The column's own kind, wide enough for the other group's label.
        out[name] = np.full(column.shape, value, dtype=np.result_type(column.dtype, np.asarray(value).dtype))
    return out
