"""Anything that predicts, as a function of columns by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.audits.proxy_fits import Scorer
from evenhand.errors import DataError, MissingDependencyError
from evenhand.models.model import Model, as_model

FloatArray = NDArray[np.float64]


def make_scorer(model: Any, names: list[str], *, soft: bool | None, threshold: float = 0.5) -> Scorer:
    """Wrap a model so that it takes columns by name and returns one number between 0 and 1 per row.

    Parameters
    ----------
    model : object with predict_proba or predict, callable, `Model`, torch module or ONNX session
        Gets a data frame when it was fitted on one (``feature_names_in_``), else a matrix with the columns
        in the order of `names`.
    names : list of str
        The features.
    soft : bool or None
        Probabilities, decisions, or whatever the model gives.
    threshold : float
        Where probabilities become decisions, for models without `predict`.

    Returns
    -------
    callable

    Examples
    --------
    >>> scorer = make_scorer(lambda X: X[:, 0] / 2, ["a"], soft=True)
    >>> scorer({"a": np.array([0.0, 1.0])}).tolist()
    [0.0, 0.5]
    """
    if isinstance(model, Model) and hasattr(model.inner, "predict"):
        model = model.inner
    ask = _question(model, soft)
    fitted_on = getattr(model, "feature_names_in_", None)
    order = names if fitted_on is None else [str(n) for n in fitted_on]
    missing = [n for n in order if n not in names]
    if missing:
        raise DataError(
            f"The model was fitted on {', '.join(f'`{m}`' for m in missing)}, which the data's features "
            "lack. Name them in `features`."
        )

    def score(columns: Mapping[str, NDArray[Any]]) -> FloatArray:
        out = np.asarray(ask(_table(columns, order, frame=fitted_on is not None)), dtype=np.float64)
        rows = len(columns[order[0]])
        if out.shape != (rows,) or not np.all((out >= 0) & (out <= 1)):
            raise DataError(
                f"The model must give one number between 0 and 1 per row; got shape {out.shape} for {rows} "
                "rows" + (f" and values from {out.min():g} to {out.max():g}." if out.size else ".")
            )
        return (out >= threshold).astype(np.float64) if soft is False else out

    return score


def _question(model: Any, soft: bool | None) -> Any:
    if soft is not False and hasattr(model, "predict_proba"):
        return lambda X: np.asarray(model.predict_proba(X))[:, 1]
    if hasattr(model, "predict"):
        classes = getattr(model, "classes_", None)
        if classes is not None and len(classes) == 2:
            return lambda X: np.asarray(model.predict(X)) == classes[1]
        return model.predict
    if callable(model) and not hasattr(model, "parameters"):
        return model
    wrapped = as_model(model)  # torch, ONNX, or an error that says what is allowed
    return wrapped.decide if soft is False else wrapped.score


def _table(columns: Mapping[str, NDArray[Any]], order: list[str], *, frame: bool) -> Any:
    if frame:
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingDependencyError("The model was fitted on a data frame: pandas is needed.") from error
        return pd.DataFrame({n: columns[n] for n in order})
    arrays = [np.asarray(columns[n]) for n in order]
    if all(a.dtype.kind in "biuf" for a in arrays):
        return np.column_stack([a.astype(np.float64) for a in arrays])
    out = np.empty((len(arrays[0]), len(arrays)), dtype=object)
    for j, a in enumerate(arrays):
        out[:, j] = a
    return out
