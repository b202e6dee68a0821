"""scikit-learn models with exact gradients: linear ones and perceptrons, alone or ending a pipeline."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from evenhand.arrays import FloatArray
from evenhand.kernels.flow.perceptron import ACTIVATIONS, Perceptron
from evenhand.models.gradient import GradientModel, prefixed

Affine = tuple[FloatArray, FloatArray]

_LINEAR_CLASSIFIERS = ("LogisticRegression", "LogisticRegressionCV")
_LINEAR_REGRESSORS = (
    "LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "ElasticNet", "ElasticNetCV",
    "HuberRegressor",
    "BayesianRidge", "SGDRegressor", "LinearSVR",
)  # fmt: skip


def is_sklearn(model: Any) -> bool:
    """Say whether a model is a scikit-learn estimator, without importing scikit-learn for the question."""
    base = sys.modules.get("sklearn.base")
    return base is not None and isinstance(model, base.BaseEstimator)


def final_step(model: Any) -> tuple[list[Any], Any]:
    """Split a (nested) pipeline into its transformers and its last estimator.

    Parameters
    ----------
    model : estimator
        A pipeline or anything else.

    Returns
    -------
    transformers, estimator
        The list is empty when there is no pipeline.
    """
    pipeline = sys.modules.get("sklearn.pipeline")
    steps: list[Any] = []
    while pipeline is not None and isinstance(model, pipeline.Pipeline):
        steps += [part for _, part in model.steps[:-1] if part not in (None, "passthrough")]
        model = model.steps[-1][1]
    return steps, model


def fold_affine(steps: list[Any], wide: Callable[[list[Any]], int]) -> tuple[list[Any], Affine | None]:
    """Split off steps that mix inputs linearly: they belong to the model, not to the coordinates.

    A person is moved before a projection, never behind it: what a projection takes out must not be moved by hand.

    Parameters
    ----------
    steps : list
        A pipeline's fitted transformers.
    wide : callable
        Number of columns after the first few steps.

    Returns
    -------
    steps, affine
        The steps that make the coordinates, and matrix and offset of the others; None when there are no others, or
        when one of them is not linear.
    """
    first = next((k for k, step in enumerate(steps) if _mixes(step)), None)
    if first is None:
        return steps, None
    affine = _composed(steps[first:], wide(steps[:first]))
    return (steps, None) if affine is None else (steps[:first], affine)


def _composed(steps: list[Any], wide: int) -> Affine | None:
    """Return several steps as one matrix and offset, or None when one of them is not linear."""
    matrix, offset = np.eye(wide), np.zeros(wide)
    for step in steps:
        affine = _affine(step, matrix.shape[1])
        if affine is None:
            return None
        matrix, offset = matrix @ affine[0], offset @ affine[0] + affine[1]
    return matrix, offset


def _mixes(step: Any) -> bool:
    return type(step).__name__ in ("ProjectSensitive", "EqualMeans", "PCA", "TruncatedSVD")


def _affine(step: Any, wide: int) -> Affine | None:
    kind = type(step).__name__
    if kind == "ProjectSensitive":
        return np.eye(wide) - step.basis_ @ step.basis_.T, np.zeros(wide)
    if kind == "EqualMeans":
        return step.matrix_, np.zeros(step.matrix_.shape[1])
    if kind == "PCA":
        matrix = step.components_.T / (np.sqrt(step.explained_variance_) if step.whiten else 1.0)
        return matrix, -step.mean_ @ matrix
    if kind == "TruncatedSVD":
        return step.components_.T, np.zeros(step.components_.shape[0])
    if kind == "StandardScaler":
        scale = np.ones(wide) if step.scale_ is None else step.scale_
        return np.diag(1.0 / scale), -(step.mean_ if step.with_mean else np.zeros(wide)) / scale
    if kind == "MinMaxScaler" and not step.clip:
        return np.diag(step.scale_), step.min_
    return None


def numeric_model(estimator: Any) -> GradientModel | None:
    """Read a fitted estimator, or a pipeline that only scales and mixes numbers, as one network on those numbers.

    Parameters
    ----------
    estimator : fitted scikit-learn estimator
        Alone, or behind steps that are affine.

    Returns
    -------
    GradientModel or None
        None where no exact gradient is known.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> fitted = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, [0, 0, 1, 1])
    >>> bool(np.allclose(numeric_model(fitted).network.outputs(X)[:, 0], fitted.decision_function(X)))
    True
    """
    steps, last = final_step(estimator)
    model = sklearn_model(last)
    if model is None or not steps:
        return model
    affine = _composed(steps, int(steps[0].n_features_in_))
    return None if affine is None else replace(model, network=prefixed(model.network, *affine))


def sklearn_model(estimator: Any) -> GradientModel | None:
    """Read the weights of a fitted estimator, or return None where no exact gradient is known.

    Parameters
    ----------
    estimator : fitted scikit-learn estimator
        Without its pipeline.

    Returns
    -------
    GradientModel or None

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = sklearn_model(LogisticRegression().fit(X, [0, 0, 1, 1]))
    >>> model.link, [int(c) for c in model.classes]
    ('logit', [0, 1])
    """
    kind = type(estimator).__name__
    if not type(estimator).__module__.startswith("sklearn."):
        gradient = getattr(estimator, "gradient_model", None)  # our own estimators say it themselves
        found = gradient() if callable(gradient) else None
        return found if isinstance(found, GradientModel) else None
    if kind in _LINEAR_CLASSIFIERS:
        classes = tuple(estimator.classes_)
        if len(classes) > 2 and (
            getattr(estimator, "solver", "") == "liblinear" or getattr(estimator, "multi_class", "") == "ovr"
        ):
            return None  # one-against-the-rest probabilities are not a softmax
        net = Perceptron(
            weights=(np.array(estimator.coef_.T, dtype=np.float64),),
            biases=(np.array(np.broadcast_to(estimator.intercept_, estimator.coef_.shape[:1]), dtype=np.float64),),
        )
        return GradientModel(network=net, link="logit", classes=classes, name=f"{kind} (exact gradient)")
    if kind in ("MLPClassifier", "MLPRegressor"):
        if estimator.activation not in ACTIVATIONS:
            return None
        net = Perceptron(
            weights=tuple(np.array(w, dtype=np.float64) for w in estimator.coefs_),
            biases=tuple(np.array(b, dtype=np.float64) for b in estimator.intercepts_),
            activation=estimator.activation,
        )
        if kind == "MLPRegressor":
            if net.biases[-1].size != 1 or estimator.out_activation_ != "identity":
                return None
            return GradientModel(network=net, link="identity", name=f"{kind} (exact gradient)")
        if estimator.out_activation_ not in ("logistic", "softmax") or (
            estimator.out_activation_ == "logistic" and net.biases[-1].size != 1
        ):
            return None
        return GradientModel(
            network=net, link="logit", classes=tuple(estimator.classes_), name=f"{kind} (exact gradient)"
        )
    if kind in _LINEAR_REGRESSORS:
        coef = np.atleast_2d(np.asarray(estimator.coef_, dtype=np.float64))
        if coef.shape[0] != 1:
            return None
        bias = np.atleast_1d(np.asarray(estimator.intercept_, dtype=np.float64))[:1]
        net = Perceptron(weights=(coef.T.copy(),), biases=(bias.copy(),))
        return GradientModel(network=net, link="identity", name=f"{kind} (exact gradient)")
    return None
