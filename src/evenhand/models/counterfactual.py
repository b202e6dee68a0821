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

from evenhand.errors import DataError, EvenhandError, MissingDependencyError, UsageError, near_matches
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
    encode : callable
        Columns to what the model takes: a matrix, a data frame, or the columns themselves.
    ask : callable
        What the model takes to its scores.
    probability : bool
        Whether the score is known to be a probability.
    inputs : tuple of str or None
        Columns the model says it was fitted on; None when it does not say.
    """

    name: str
    encode: Callable[[Columns], Any]
    ask: Callable[[Any], Any]
    probability: bool
    inputs: tuple[str, ...] | None

    def score(self, columns: Columns) -> FloatArray:
        """Return one score per row."""
        return self._checked(self.encode(columns), columns)

    def change(self, columns: Columns, flipped: Columns) -> FloatArray:
        """Return the score of the flipped rows minus that of the rows as they are."""
        given = self.encode(columns)
        if not isinstance(given, np.ndarray):
            return self._checked(self.encode(flipped), columns) - self._checked(given, columns)
        # Copied: a model may return a part of what it was given, which changes below.
        as_is = self._checked(given, columns).copy()
        for j, name in enumerate(columns):
            if flipped[name] is not columns[name]:
                given[:, j] = flipped[name]
        return self._checked(given, columns) - as_is

    def _checked(self, given: Any, columns: Columns) -> FloatArray:
        n = len(next(iter(columns.values())))
        try:
            values = np.asarray(self.ask(given), dtype=float)
        except EvenhandError:
            raise
        except Exception as error:  # a stranger's model may raise anything
            shown = ", ".join(list(columns)[:8]) + (", …" if len(columns) > 8 else "")
            raise DataError(
                f"Model `{self.name}` raised {type(error).__name__} when asked about {n:,} rows of columns {shown}: "
                f"{error}. It must take the audit's features, in their order, and give one score per row."
            ) from error
        if values.ndim == 2 and values.shape[1] == 2:
            values = values[:, 1]
        values = values.reshape(-1)
        if values.shape != (n,):
            raise DataError(f"Model `{self.name}` gave {values.size} scores for {n} rows; one per row is needed.")
        bad = int((~np.isfinite(values)).sum())
        if bad:
            raise DataError(
                f"Model `{self.name}` gave {bad:,} of {n:,} scores that are not finite numbers. Look for missing "
                "values in the features, and fill or drop those rows before the audit."
            )
        return values


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
        return Scorer(name=source.name, encode=_matrix, ask=source.score, probability=source.probability, inputs=None)
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

        def ask(given: Any) -> Any:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="X does not have valid feature names")
                out = np.asarray(getattr(source, method)(given), dtype=float)
            return out[:, which] if out.ndim == 2 else out

        encode = (lambda c: _frame(c, inputs)) if framed else _matrix
        return Scorer(name=name, encode=encode, ask=ask, probability=probability, inputs=inputs)
    if isinstance(source, str) or hasattr(source, "forward") or hasattr(source, "get_inputs"):
        model = as_model(source)
        return Scorer(name=model.name, encode=_matrix, ask=model.score, probability=model.probability, inputs=None)
    if callable(source):
        return Scorer(name=name, encode=_matrix if numeric else dict, ask=source, probability=False, inputs=None)
    raise UsageError(
        f"A {type(source).__name__} is not a model. Allowed: a fitted estimator, an ONNX file, a torch module, or a "
        "callable from columns to scores."
    )


def _method(source: Any, positive: Any) -> tuple[str, int, bool]:
    classes = getattr(source, "classes_", None)
    if classes is None or not hasattr(source, "predict_proba"):
        margin = classes is not None and hasattr(source, "decision_function")
        return ("decision_function" if margin else "predict"), -1, False
    if positive is None:
        return "predict_proba", -1, True
    at = np.flatnonzero(np.asarray(classes).astype(str) == str(positive))
    if not at.size:
        raise UsageError(f"`positive` is `{positive}`; the model's classes are {', '.join(map(str, classes))}.")
    return "predict_proba", int(at[0]), True


def _matrix(columns: Columns) -> FloatArray:
    try:
        # One column after the other in memory: built, and changed in one column, at the speed of copying.
        return np.array([np.asarray(c, dtype=np.float64) for c in columns.values()]).T
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
