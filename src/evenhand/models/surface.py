"""`Surface`: a model's decision as distances see it, a score that changes sides at a threshold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.arrays import FloatArray
from evenhand.models.audited import AuditedModel, logits_of, one_per_row, quietly
from evenhand.models.input_space import as_frame
from evenhand.models.orientation import Oriented

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
    name, cut = type(estimator).__name__, model.own_cut()

    def answer(method: Callable[[Any], Any]) -> Answer:
        return lambda given: one_per_row(quietly(method, give(given)), len(given), name)

    if getattr(estimator, "classes_", None) is None or model.classes is None or model.one is None:
        # A regressor, whose prediction is the score, or a function.
        if hasattr(estimator, "predict"):
            return _cut_at(name, estimator, answer(estimator.predict), model.cut())
        return _cut_at(model.name, estimator, answer(estimator), model.cut())
    face = Oriented(estimator, model.classes, model.one)
    chosen = answer(face.chosen)
    if cut is None and hasattr(estimator, "decision_function"):
        score, at = answer(face.margin), 0.0
    elif hasattr(estimator, "predict_proba"):
        score, at = answer(face.probability), 0.5 if cut is None else cut
    else:
        score, at = chosen, 0.5
    if cut is None:  # ties are the estimator's to break
        return Surface(name=name, source=estimator, score=score, decide=chosen, threshold=at)
    return _cut_at(name, estimator, score, at)


def _cut_at(name: str, source: Any, score: Answer, at: float) -> Surface:
    def decide(given: Any) -> FloatArray:
        return (score(given) >= at).astype(float)

    return Surface(name=name, source=source, score=score, decide=decide, threshold=at)
