"""Anything that predicts, as the individual audit sees it: coordinates, outcome, loss, and gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import FloatArray
from evenhand.errors import DataError, EvenhandError, UsageError
from evenhand.kernels.flow.losses import AbsoluteLoss, LogitLoss, Loss, ProbabilityLoss, SquaredLoss
from evenhand.models.audited import AuditedModel, quietly
from evenhand.models.gradient import GradientModel, Network, as_columns, in_other_order, prefixed, turned
from evenhand.models.gradient_sklearn import final_step, fold_affine, is_sklearn, sklearn_model
from evenhand.models.input_space import Columns, Input, InputSpace, as_frame, numeric_space, pipeline_space
from evenhand.models.threshold_cells import asked_by_cell

Score = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelView:
    """A model ready to be attacked."""

    name: str  # for the report
    space: InputSpace  # the coordinates people are moved in
    network: Network | None  # outputs with gradients; None for a black box
    score: Score  # outputs at a matrix of coordinates, shape (rows, outputs)
    loss: Loss  # what is made larger
    task: str  # what the outcome is; one of "binary", "multiclass", "regression"
    y: FloatArray  # (rows,): class numbers, or values
    code: Callable[[FloatArray], FloatArray]  # outcomes of other rows to such numbers
    labels: tuple[str, ...]  # names of the classes; empty for regression
    tile: int  # rows to hand over at once
    notes: tuple[str, ...] = ()  # what was decided on the user's behalf


def view_model(
    asked: AuditedModel,
    features: Columns,
    outcome: FloatArray,
    outcome_kind: str,
    *,
    loss: str | None = None,
    clip: float = 0.0,
) -> ModelView:
    """Find out what a model is and make the view of it.

    Without `loss` it is the log loss for classes and the squared error for numbers. Probabilities of a black box are
    moved into [clip, 1 - clip].
    """
    task = "regression" if _predicts_number(asked, outcome_kind) else "classes"
    space, core, black = _adapt(asked, features, task)
    classes = asked.classes
    notes = asked.notes
    if task == "regression" and outcome_kind == "binary":
        notes = (*notes, "The model predicts a number: its loss is the squared distance to the outcome, 0 or 1.")
    if core is not None:
        classes = core.classes if core.classes is not None else classes
        link, network, tile, name = core.link, core.network, core.tile, core.name
    else:
        assert black is not None
        link, network, tile = ("identity" if task == "regression" else "probability"), None, 2048
        name = f"{asked.name} (no gradient)"
    if task == "classes" and outcome_kind == "binary" and asked.one == 0:
        # The second class is outcome 1 from here on, whatever the model's own order is.
        classes = None if classes is None else (classes[1], classes[0])
        network = None if network is None else turned(network, link)
        black = None if black is None else partial(_in_other_order, black)
    score = network.outputs if network is not None else black
    assert score is not None
    sample = _first_answers(score, space.encode({k: v[:256] for k, v in features.items()}), name)
    if link == "probability" and bool(((sample < -1e-6) | (sample > 1 + 1e-6)).any()):
        raise UsageError(
            f"{name}: answers between {np.nanmin(sample):.3g} and {np.nanmax(sample):.3g} are no probabilities. Return "
            "probabilities, or say that they are log-odds with `CallableGradient(..., link='logit')`."
        )
    code, labels = _outcome_codes(outcome_kind, classes, task, sample.shape[1])
    return ModelView(
        name=name,
        space=space,
        network=network,
        score=score,
        loss=_loss(loss, task, link, clip),
        task=task if task == "regression" else "binary" if len(labels) == 2 else "multiclass",
        y=code(outcome),
        code=code,
        labels=labels,
        tile=tile,
        notes=notes,
    )


def _first_answers(score: Score, X: FloatArray, name: str) -> FloatArray:
    try:
        return score(X)
    except EvenhandError:
        raise
    except Exception as error:  # whatever a stranger's model runs into
        raise UsageError(
            f"{name}: the first {X.shape[0]} rows with {X.shape[1]} inputs were refused with "
            f"{type(error).__name__}: {error}. Check that `features=` are the model's inputs, in its order."
        ) from error


def _predicts_number(asked: AuditedModel, outcome_kind: str) -> bool:
    if asked.network is not None:
        return asked.network.link == "identity"
    if asked.classes is not None:
        return False
    return outcome_kind != "binary" or hasattr(asked.source, "predict")


def _in_other_order(black: Score, X: FloatArray) -> FloatArray:
    return in_other_order(black(X), 1.0)


def _adapt(asked: AuditedModel, features: Columns, task: str) -> tuple[InputSpace, GradientModel | None, Score | None]:
    if asked.network is not None:
        return numeric_space(features, None, None), asked.network, None
    known = is_sklearn(asked.source)
    steps, last = final_step(asked.source) if known else ([], asked.source)
    first, affine = [*steps, last][0], None
    if steps:
        one = {k: v[:1] for k, v in features.items()}
        steps, affine = fold_affine(steps, lambda some: _width(some, one, asked))
    if steps:
        space = pipeline_space(steps, features, asked.types)
    elif any(column.dtype.kind not in "biuf" for column in features.values()):
        space, ask = _raw(asked, features, task)
        return space, None, ask
    else:
        names, number = getattr(first, "feature_names_in_", None), getattr(first, "n_features_in_", None)
        space = numeric_space(features, names, number)
    wide = getattr(last, "n_features_in_", len(space.inputs)) if affine is None else affine[0].shape[0]
    if known and len(space.inputs) != wide:  # a step this project cannot follow: keep the matrix, name it plainly
        space = InputSpace(inputs=tuple(Input(f"input {j}") for j in range(wide)), encode=space.encode)
    model = sklearn_model(last) if known else None
    if model is not None:
        return space, model if affine is None else replace(model, network=prefixed(model.network, *affine)), None
    ask = asked_by_cell(_asker(last, task, getattr(last, "feature_names_in_", None)), last)
    if affine is None:
        return space, None, ask
    matrix, offset = affine
    return space, None, lambda X: ask(X @ matrix + offset)


def _width(steps: list[Any], head: Columns, asked: AuditedModel) -> int:
    space = pipeline_space(steps, head, asked.types) if steps else numeric_space(head, None, None)
    return int(space.encode(head).shape[1])


def _asker(model: Any, task: str, names: Any) -> Score:
    """Return the black box as a function from a matrix to probabilities of classes, or to numbers."""
    ask = _method(model, task)

    def score(X: FloatArray) -> FloatArray:
        given: Any = X if names is None else as_frame({str(n): X[:, j] for j, n in enumerate(names)})
        return as_columns(quietly(ask, given), X.shape[0])

    return score


def _method(model: Any, task: str) -> Callable[[Any], Any]:
    if task != "regression" and hasattr(model, "predict_proba"):
        return lambda X: model.predict_proba(X)
    if hasattr(model, "predict"):
        if task == "regression":
            return lambda X: model.predict(X)
        classes = list(getattr(model, "classes_", (0, 1)))
        return lambda X: (np.asarray(model.predict(X))[:, None] == np.asarray(classes)[None, :]).astype(np.float64)
    return lambda X: model(X)


def _raw(asked: AuditedModel, features: Columns, task: str) -> tuple[InputSpace, Score]:
    """Make coordinates for a black box that takes columns with text: numbers and dummies, and back."""
    names = [*(asked.inputs or features)]
    inputs: list[Input] = []
    for name in names:
        column = features[name]
        if column.dtype.kind in "biuf":
            inputs.append(Input(name))
        else:
            inputs += [Input(name, str(label)) for label in sorted({str(v) for v in column})]

    def encode(columns: Columns) -> FloatArray:
        text = {i.column: columns[i.column].astype(str) for i in inputs if i.category is not None}
        out = np.column_stack(
            [
                columns[i.column].astype(np.float64)
                if i.category is None
                else (text[i.column] == i.category).astype(np.float64)
                for i in inputs
            ]
        )
        for block in space.blocks:
            strange = out[:, block].sum(axis=1) == 0
            if strange.any():
                name = inputs[block[0]].column
                raise DataError(
                    f"Feature `{name}` is `{text[name][strange][0]}` in {int(strange.sum())} rows, and in none of "
                    "those from which the model's inputs were learned. Learn from more rows, or put an encoder before "
                    "the model in a scikit-learn pipeline and hand over the pipeline."
                )
        return out

    space = InputSpace(inputs=tuple(inputs), encode=encode)
    ask = _method(asked.source, task)

    def score(X: FloatArray) -> FloatArray:
        columns: dict[str, NDArray[Any]] = {}
        for j, i in enumerate(inputs):
            if i.category is None:
                columns[i.column] = X[:, j]
        for block in space.blocks:
            labels = np.array([inputs[j].category for j in block], dtype=object)
            columns[inputs[block[0]].column] = labels[X[:, block].argmax(axis=1)]
        return as_columns(ask(asked.encode({n: columns[n] for n in names})), X.shape[0])

    return space, score


def _outcome_codes(
    kind: str, classes: Any, task: str, outputs: int
) -> tuple[Callable[[FloatArray], FloatArray], tuple[str, ...]]:
    """Return the way from outcomes to class numbers, or values, and the names of the classes."""
    if task == "regression":
        if outputs != 1:
            raise DataError(f"The outcome is a number and the model has {outputs} outputs; a regression needs one.")
        return _as_numbers, ()
    n_classes = max(2, outputs) if classes is None else len(classes)
    if kind == "binary":
        if n_classes != 2:
            raise DataError(f"The outcome has two values and the model has {n_classes} classes.")
        return _as_numbers, ("0", "1") if classes is None else tuple(str(c) for c in classes)
    values = np.arange(n_classes) if classes is None else np.asarray(classes)
    try:
        known = values.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError(
            f"The outcome is numeric and the model's classes are names: {[str(v) for v in values[:5]]}. Code the "
            f"outcome as 0 to {n_classes - 1} in this order and pass a model whose classes are these numbers."
        ) from None
    return partial(_class_numbers, known), tuple(str(v) for v in values)


def _as_numbers(outcome: FloatArray) -> FloatArray:
    return outcome.astype(np.float64)


def _class_numbers(known: FloatArray, outcome: FloatArray) -> FloatArray:
    place = np.abs(outcome[:, None] - known[None, :]).argmin(axis=1)
    strange = np.unique(outcome[known[place] != outcome])
    if strange.size:
        raise DataError(f"Outcomes {strange[:5].tolist()} are not classes of the model; it knows {known[:8].tolist()}.")
    return np.asarray(place, dtype=np.float64)


def _loss(name: str | None, task: str, link: str, clip: float) -> Loss:
    wanted = name or ("squared" if task == "regression" else "log")
    allowed = ("squared", "absolute") if task == "regression" else ("log",)
    if wanted not in allowed:
        raise UsageError(f"`loss` is `{wanted}`; allowed for this outcome: {', '.join(f'`{a}`' for a in allowed)}.")
    if not 0 <= clip < 0.5:
        raise UsageError(f"`clip` must be at least 0 and below 0.5; got {clip}.")
    if wanted == "log":
        return LogitLoss() if link == "logit" else ProbabilityLoss(clip)
    return SquaredLoss() if wanted == "squared" else AbsoluteLoss()
