"""`Surface`: a model's decision as distances see it, a score that changes sides at a threshold."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.arrays import FloatArray
from evenhand.models.audited import AuditedModel, logits_of, one_per_row
from evenhand.models.input_space import as_frame

Answer = Callable[[Any], FloatArray]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Surface:
    """A decision and the score behind it."""

    name: str  # what reports call it
    source: Any  # the estimator; methods with a formula for it look inside
    # From what the estimator takes, a matrix or a frame, to one score per row, and to decisions 0.0 or 1.0.
    score: Answer
    decide: Answer
    threshold: float  # the score at which the decision changes


def matrix_surface(model: AuditedModel, names: Sequence[str]) -> Surface:
    """Return the decision of a model on a matrix with these columns."""
    if model.classes is not None and model.network is None:
        inputs = model.inputs
        if inputs is None:
            return estimator_surface(model, model.source)
        place = [list(names).index(name) for name in inputs]
        return estimator_surface(
            model, model.source, lambda X: as_frame({n: X[:, j] for n, j in zip(inputs, place, strict=True)})
        )
    cut, network = model.cut(), model.network
    # Between 0 and 1 the rounding of a probability would bend a straight line.
    margin = network is not None and network.link == "logit" and cut == 0.5

    def score(X: FloatArray) -> FloatArray:
        return logits_of(network, model.one, X) if margin else model.score(dict(zip(names, X.T, strict=True)))

    return _cut_at(model.name, model.source, score, 0.0 if margin else cut)


def estimator_surface(model: AuditedModel, estimator: Any, give: Callable[[Any], Any] = lambda given: given) -> Surface:
    """Return the decision of a model's estimator, or of the last step of its pipeline, oriented as the model is."""
    name, cut, one = type(estimator).__name__, model.own_cut(), model.one

    def ask(method: str, given: Any) -> Any:
        with warnings.catch_warnings():
            # An estimator fitted on a frame warns about plain arrays; columns are matched by position here.
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            return np.asarray(getattr(estimator, method)(give(given)))

    def chosen(given: Any) -> FloatArray:
        return np.asarray(ask("predict", given) == model.class_of_one(), dtype=float)

    if getattr(estimator, "classes_", None) is None:  # a function, or a regressor whose prediction is the score
        method = "predict" if hasattr(estimator, "predict") else "__call__"
        label = name if method == "predict" else model.name
        return _cut_at(label, estimator, lambda given: one_per_row(ask(method, given), len(given), name), model.cut())
    score, at = chosen, 0.5
    if cut is None and hasattr(estimator, "decision_function"):
        at = 0.0

        def score(given: Any) -> FloatArray:
            towards_second = one_per_row(ask("decision_function", given), len(given), name)
            return towards_second if one == 1 else -towards_second

    elif hasattr(estimator, "predict_proba"):
        at = 0.5 if cut is None else float(cut)

        def score(given: Any) -> FloatArray:
            return np.asarray(ask("predict_proba", given)[:, one], dtype=float)

    if cut is None:  # ties are the estimator's to break
        return Surface(name=name, source=estimator, score=score, decide=chosen, threshold=at)
    return _cut_at(name, estimator, score, at)


def _cut_at(name: str, source: Any, score: Answer, at: float) -> Surface:
    def decide(given: Any) -> FloatArray:
        return (score(given) >= at).astype(float)

    return Surface(name=name, source=source, score=score, decide=decide, threshold=at)
