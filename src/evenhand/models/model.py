"""`Model`: one face for scikit-learn estimators, ONNX sessions, torch modules and plain callables."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import DataError, UsageError, near_matches
from evenhand.models.onnx import OnnxClassifier, onnx_session
from evenhand.models.orientation import class_of_one

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Model:
    """A classifier of two decisions.

    Parameters
    ----------
    name : str
        What reports call it.
    score : callable
        From features, shape (n, d), to a score, shape (n,); larger means closer to decision 1.
    decide : callable
        From features to decisions 0.0 or 1.0, shape (n,).
    threshold : float
        The score at which the decision changes.
    probability : bool
        Whether the score is a probability.
    inner : object
        What was wrapped; methods with a formula for it look inside.
    gradient : callable or None
        From features to the score's gradient, shape (n, d), where there is one.

    Examples
    --------
    >>> model = as_model(lambda X: X[:, 0], threshold=0.5)
    >>> model.decide(np.array([[0.2], [0.7]])).tolist()
    [0.0, 1.0]
    """

    name: str
    score: Callable[[FloatArray], FloatArray]
    decide: Callable[[FloatArray], FloatArray]
    threshold: float
    probability: bool
    inner: Any = None
    gradient: Callable[[FloatArray], FloatArray] | None = None


def as_model(
    source: Any,
    *,
    threshold: float | None = None,
    features: Sequence[str] | None = None,
    positive: Any = None,
) -> Model:
    """Wrap anything that decides.

    Parameters
    ----------
    source : object
        A `Model`; a fitted scikit-learn estimator or pipeline; an ONNX file or session; a torch module; or a
        callable from a feature array to scores, shape (n,) or (n, 2).
    threshold : float, optional
        Decision 1 from this score on. By default a classifier's own decision, and 0.5 for functions and torch modules.
        A regressor has no decision of its own.
    features : sequence of str, optional
        Column names, for estimators that were fitted on a data frame.
    positive : object, optional
        The class that is decision 1; see `evenhand.models.orientation.class_of_one`.

    Returns
    -------
    Model

    Examples
    --------
    >>> as_model(lambda X: X.mean(axis=1)).threshold
    0.5
    """
    if isinstance(source, Model):
        return source
    if isinstance(source, str | Path):
        if str(source).endswith(".onnx"):
            source = onnx_session(Path(source))
        else:
            raise UsageError(f"`{source}` is not an ONNX file. Load the model first and pass the object.")
    if hasattr(source, "run") and hasattr(source, "get_inputs"):
        source = OnnxClassifier(source)
    if hasattr(source, "predict"):
        return _estimator(source, threshold, features, positive)
    if hasattr(source, "parameters") and hasattr(source, "forward"):
        return _from_scores(type(source).__name__, _torch_scores(source), threshold, source)
    if callable(source):
        return _from_scores(getattr(source, "__name__", "callable"), source, threshold, source)
    refuse_other(source)


def refuse_other(source: Any) -> NoReturn:
    """Say that something is not a model, and what is."""
    raise UsageError(
        f"A {type(source).__name__} is not a model. Allowed: a fitted estimator, an ONNX file, a torch module, or a "
        "callable from a feature array to scores."
    )


def expected_columns(source: Any) -> tuple[tuple[str, ...] | None, int | None]:
    """Ask a model which columns it was fitted on.

    Parameters
    ----------
    source : object
        Anything `as_model` takes.

    Returns
    -------
    names : tuple of str or None
        None when the model does not know names.
    number : int or None
        None when it does not say.

    Examples
    --------
    >>> expected_columns(lambda X: X[:, 0])
    (None, None)
    """
    inner = source.inner if isinstance(source, Model) else source
    names = getattr(inner, "feature_names_in_", None)
    if names is not None:
        return tuple(str(n) for n in names), len(names)
    number = getattr(inner, "n_features_in_", None)
    return None, None if number is None else int(number)


def check_columns(source: Any, features: Mapping[str, Any]) -> list[str]:
    """Check the columns a model was fitted on against those the data have, before it is asked anything.

    Parameters
    ----------
    source : object
        Anything `as_model` takes.
    features : mapping of str to array
        The data's features, in their order.

    Returns
    -------
    list of str
        What a reader should know: columns the model does not use, or that they are taken by position.

    Raises
    ------
    DataError
        When a column is missing, or there are too many or too few.

    Examples
    --------
    >>> check_columns(lambda X: X[:, 0], {"x": None})
    []
    """
    if isinstance(source, type):
        raise UsageError(f"The model `{source.__name__}` is a class. Give a fitted object of it.")
    if isinstance(source, int | float | str | Mapping | Sequence | ModuleType):
        raise UsageError(f"A {type(source).__name__} is not a model. Give a fitted estimator, or a callable to scores.")
    given = list(features)
    inner = source.inner if isinstance(source, Model) else source
    name = type(inner).__name__
    names, number = expected_columns(source)
    if names is None:
        if number is None and hasattr(inner, "fit") and hasattr(inner, "predict") and not _looks_fitted(inner):
            raise UsageError(f"The model `{name}` is not fitted. Fit it first, and save it after that.")
        if number is not None and number != len(given):
            raise DataError(
                f"The model `{name}` takes {number} columns by position and the data have {len(given)}: "
                f"{_listed(given)}. Name its columns in `features`, in the order it was fitted on."
            )
        if number is None:
            return []
        return [f"The model `{name}` knows its columns by position; they were taken in the order {_listed(given)}."]
    missing = [n for n in names if n not in given]
    if missing:
        raise DataError(
            f"The model `{name}` was fitted on {len(names)} columns and the data lack {len(missing)} of them: "
            f"{_listed(missing)}.{near_matches(missing[0], given)} Name the model's columns in `features`."
        )
    extra = [n for n in given if n not in names]
    return [f"Not an input of the model `{name}`: {_listed(extra)}."] if extra else []


def _looks_fitted(inner: Any) -> bool:
    # scikit-learn's rule: what fitting learns ends with an underscore.
    return any(key.endswith("_") and not key.startswith("__") for key in vars(inner)) or hasattr(inner, "steps")


def _listed(names: Sequence[str], most: int = 8) -> str:
    return ", ".join(f"`{n}`" for n in names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _from_scores(name: str, raw: Callable[[FloatArray], Any], threshold: float | None, inner: Any) -> Model:
    cut = 0.5 if threshold is None else float(threshold)

    def score(X: FloatArray) -> FloatArray:
        return _one_score(raw(X), len(X), name)

    def decide(X: FloatArray) -> FloatArray:
        return (score(X) >= cut).astype(float)

    return Model(name=name, score=score, decide=decide, threshold=cut, probability=False, inner=inner)


def _estimator(source: Any, threshold: float | None, features: Sequence[str] | None, positive: Any) -> Model:
    classes = getattr(source, "classes_", None)
    if classes is not None and len(classes) != 2:
        raise UsageError(f"The classifier has {len(classes)} classes; audits of decisions need 2.")
    name = type(source).__name__
    which = 1 if classes is None else class_of_one(classes, name=name, positive=positive)[0]
    sign = 1.0 if which == 1 else -1.0

    def ask(method: str, X: FloatArray) -> Any:
        with warnings.catch_warnings():
            # An estimator fitted on a frame warns about plain arrays; columns are matched by position here.
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            return np.asarray(getattr(source, method)(_framed(source, X, features)))

    if classes is None:  # a regressor: its prediction is the score
        if threshold is None:
            raise UsageError(
                f"The model `{name}` predicts a number, and from which on the decision is 1 is not known. Say it with "
                "`threshold`, or give a classifier."
            )
        return _from_scores(name, lambda X: ask("predict", X), threshold, source)
    if threshold is None and hasattr(source, "decision_function"):

        def score(X: FloatArray) -> FloatArray:
            return sign * _one_score(ask("decision_function", X), len(X), name)

        cut, probability = 0.0, False
    elif hasattr(source, "predict_proba"):

        def score(X: FloatArray) -> FloatArray:
            return np.asarray(ask("predict_proba", X)[:, which], dtype=float)

        cut, probability = 0.5 if threshold is None else float(threshold), True
    else:

        def score(X: FloatArray) -> FloatArray:
            return np.asarray(ask("predict", X) == classes[which], dtype=float)

        cut, probability = 0.5, False

    def decide(X: FloatArray) -> FloatArray:
        if threshold is None:  # ties are the estimator's to break
            return np.asarray(ask("predict", X) == classes[which], dtype=float)
        return (score(X) >= cut).astype(float)

    return Model(name=name, score=score, decide=decide, threshold=cut, probability=probability, inner=source)


def _framed(source: Any, X: FloatArray, features: Sequence[str] | None) -> Any:
    names = getattr(source, "feature_names_in_", None)
    if names is None or features is None:
        return X
    try:
        import pandas as pd
    except ImportError:
        return X
    return pd.DataFrame(X, columns=list(features))[list(names)]


def _one_score(raw: Any, n: int, name: str) -> FloatArray:
    values = np.asarray(raw, dtype=float)
    if values.ndim == 2 and values.shape[1] == 2:
        values = values[:, 1]
    values = values.reshape(-1)
    if values.shape != (n,):
        raise DataError(f"Model `{name}` gave {values.size} scores for {n} rows; one per row is needed.")
    return values


def _torch_scores(module: Any) -> Callable[[FloatArray], Any]:
    def scores(X: FloatArray) -> Any:
        import torch

        with torch.no_grad():
            kind = next((p.dtype for p in module.parameters()), torch.float32)
            return module(torch.as_tensor(X, dtype=kind)).numpy()

    return scores
