"""From anything that decides to `AuditedModel`: made once per audit, from the model and the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from scipy import special

from evenhand.arrays import FloatArray, read_only
from evenhand.errors import UsageError
from evenhand.intake.batches import batches_of
from evenhand.intake.data import AuditData
from evenhand.intake.parts import FeatureType, Labels
from evenhand.models.agreement import SeparatingCut, check_agreement, threshold_of_data
from evenhand.models.audited import Answers, AuditedModel, NotFiniteError, in_unit, logits_of
from evenhand.models.files import load_model
from evenhand.models.fitted_columns import check_columns, expected_columns
from evenhand.models.gradient import GradientModel
from evenhand.models.gradient_sklearn import final_step
from evenhand.models.gradient_torch import network_of
from evenhand.models.input_space import Columns, own_values
from evenhand.models.onnx import OnnxClassifier
from evenhand.models.orientation import Oriented, class_of_one

# Of rows that stay where they are, so many show what the model takes and whether it agrees with the data.
ASKED_ROWS = 20_000
# Classifiers of scikit-learn that decide for the class with the larger probability.
_LIKELIER = (
    "DecisionTreeClassifier", "ExtraTreesClassifier", "GradientBoostingClassifier", "HistGradientBoostingClassifier",
    "LogisticRegression", "RandomForestClassifier",
)  # fmt: skip


def adapt(
    source: Any,
    columns: Columns,
    *,
    labels: Mapping[str, Labels] | None = None,
    types: Mapping[str, FeatureType] | None = None,
    numeric_outcome: bool = False,
    positive: Any = None,
    threshold: float | None = None,
) -> AuditedModel:
    """Give a model its face, from the columns it is asked in.

    Parameters
    ----------
    source : object
        A fitted estimator or pipeline, an ONNX session or file, a torch module, a network with its gradient, or a
        callable. A callable gets a float array of shape (rows, columns) when all columns are numbers, else a data
        frame.
    columns : mapping of str to ndarray
        The features.
    labels, types
        See `AuditData`.
    numeric_outcome : bool
        Whether the outcome is a number, so that a network predicts it rather than classes.
    positive : object, optional
        The class that is decision 1, where the labels do not say it.
    threshold : float, optional
        Decision 1 from this score on, in place of the model's own decision.

    Returns
    -------
    AuditedModel

    Examples
    --------
    >>> columns = {"x": np.array([1.0, 2.0]), "sex": np.array(["F", "M"])}
    >>> adapt(lambda frame: frame["x"] / 4 + 0.1 * (frame["sex"] == "M"), columns).score(columns).tolist()
    [0.25, 0.6]
    """
    if isinstance(source, str | Path):
        source = load_model(source)
    if hasattr(source, "run") and hasattr(source, "get_inputs"):
        source = OnnxClassifier(source)
    notes = check_columns(source, columns)
    outer, source = source, inner_learner(source)
    labels = labels or {}
    own = {n: own_values(np.asarray(c), (types or {}).get(n)) for n, c in columns.items()}
    numeric = all(c.dtype.kind in "biuf" for c in own.values())
    fitted_on = getattr(source, "feature_names_in_", None)
    blank = AuditedModel(
        name=getattr(outer, "__name__", type(outer).__name__),
        source=source,
        outer=outer,
        ask=_nothing,
        threshold=threshold,
        inputs=None if fitted_on is None else tuple(str(n) for n in fitted_on),
        framed=fitted_on is not None or not numeric,
        types=_types(source, own, types or {}),
        notes=tuple(notes),
    )
    network = None
    if numeric:
        head = np.column_stack([np.asarray(c[:256], dtype=np.float64) for c in own.values()])
        regression = numeric_outcome and getattr(source, "link", "") not in ("logit", "probability")
        network = network_of(source, head, task="regression" if regression else "classes")
    if network is not None:
        return _network(replace(blank, network=network), labels, positive, network)
    if isinstance(source, OnnxClassifier):
        source.learn_classes(blank.encode(columns))
    if hasattr(source, "predict"):
        return _estimator(blank, labels, positive, numeric_outcome)
    if not callable(source):
        raise UsageError(
            f"A {type(source).__name__} is not a model. Allowed: a fitted estimator, an ONNX file, a torch module, or "
            "a callable from a feature array to scores."
        )
    made = _asked(replace(blank, ask=source), columns)
    if made.seen is not None and made.seen.score is not None and in_unit(made.seen.score):
        made = replace(made, probability=True, threshold=0.5 if threshold is None else threshold)
    return replace(made, notes=(*made.notes, _stated(made, labels)))


def inner_learner(model: Any) -> Any:
    """Return the learner that a mitigator decides as, which has gradients and boundaries to look at; else the model.

    The learner's classes 0 and 1 are the places of the mitigator's own classes, so that both have the same order. It is
    used where it takes the same columns.

    Examples
    --------
    >>> inner_learner("anything else")
    'anything else'
    """
    learner = getattr(model, "decides_as_", None)
    if learner is None or list(getattr(learner, "classes_", ())) != [0, 1] or len(model.classes_) != 2:
        return model
    return learner if expected_columns(learner) == expected_columns(model) else model


def _asked(model: AuditedModel, columns: Columns) -> AuditedModel:
    """Ask for the scores of the audited rows, once."""
    if model.problem or (model.seen is not None and model.seen.columns is columns):
        return model
    try:
        return replace(model, seen=Answers(columns=columns, score=read_only(model.score(columns))))
    except NotFiniteError as error:
        return replace(model, problem=str(error))


def _estimator(blank: AuditedModel, labels: Mapping[str, Labels], positive: Any, numeric_outcome: bool) -> AuditedModel:
    source, threshold = blank.source, blank.threshold
    known, named = (getattr(model, "classes_", None) for model in (source, blank.outer))
    if known is None and not hasattr(source, "predict_proba"):  # a regressor: its prediction is the score
        return replace(blank, ask=source.predict)
    classes = (0, 1) if known is None else tuple(known)
    if len(classes) != 2:
        why = f"The classifier `{blank.name}` has {len(classes)} classes; audits of decisions need 2."
        return replace(blank, ask=source.predict, classes=classes, problem=why)
    try:
        one, note = class_of_one(classes if named is None else named, labels, name=blank.name, positive=positive)
    except UsageError as error:
        if not numeric_outcome:
            raise
        return replace(blank, ask=source.predict, classes=classes, problem=str(error))

    face = Oriented(source, classes, one)
    threshold = _tuned(source, classes, one) if threshold is None else threshold
    made = replace(blank, classes=classes, one=one, notes=(*blank.notes, *([note] if note else [])))
    if known is not None and threshold is None:
        made = replace(made, choose=face.chosen)
    if hasattr(source, "predict_proba"):
        last = type(final_step(source)[1])
        likelier = last.__module__.startswith("sklearn.") and last.__name__ in _LIKELIER
        return replace(
            made, ask=face.probability, probability=True, by_probability=likelier,
            threshold=0.5 if threshold is None else threshold,
        )  # fmt: skip
    if hasattr(source, "decision_function"):
        return replace(made, ask=face.margin, threshold=0.0 if threshold is None else threshold)
    return replace(made, ask=face.chosen, probability=True, threshold=0.5)


def _tuned(source: Any, classes: tuple[Any, ...], one: int) -> float | None:
    """Return the probability of decision 1 at which scikit-learn's classifiers with a tuned threshold decide."""
    if type(source).__name__ not in ("FixedThresholdClassifier", "TunedThresholdClassifierCV"):
        return None
    cut = getattr(source, "best_threshold_", getattr(source, "threshold", None))
    if not isinstance(cut, int | float) or getattr(source, "response_method", "auto") == "decision_function":
        return None
    label = getattr(source, "pos_label", None)
    return float(cut) if (one == 1 if label is None else label == classes[one]) else 1.0 - float(cut)


def _network(blank: AuditedModel, labels: Mapping[str, Labels], positive: Any, network: GradientModel) -> AuditedModel:
    head = f"{type(blank.source).__name__}" if blank.name == "function" else blank.name
    if network.link == "identity":
        return replace(blank, ask=lambda X: network.network.outputs(X)[:, 0])
    classes, one, note = network.classes, 1, ""
    if classes is not None and len(classes) != 2:
        why = f"The network `{head}` has {len(classes)} classes; audits of decisions need 2."
        return replace(blank, classes=tuple(classes), problem=why)
    if classes is not None:
        one, note = class_of_one(classes, labels, name=head, positive=positive)

    def ask(X: FloatArray) -> FloatArray:
        if network.link == "logit":
            return np.asarray(special.expit(logits_of(network, one, X)))
        out = network.network.outputs(X)
        return out[:, one] if out.shape[1] == 2 else out[:, 0] if one == 1 else 1 - out[:, 0]

    made = replace(
        blank, ask=ask, probability=True, threshold=0.5 if blank.threshold is None else blank.threshold,
        classes=None if classes is None else tuple(classes), one=one,
    )  # fmt: skip
    kind = "log-odds" if network.link == "logit" else "probabilities"
    taken = f"Outputs of the model `{head}` are taken as {kind}."
    return replace(made, notes=(*blank.notes, note or _stated(made, labels), taken))


def _stated(model: AuditedModel, labels: Mapping[str, Labels]) -> str:
    words = [one.one[0] for role in ("decision", "outcome") if (one := labels.get(role)) is not None and one.one]
    said = f" (`{words[0]}`)" if words and words[0] != "1" else ""
    cut = "" if model.threshold is None else f", from {model.threshold:g} on"
    return f"The model `{model.name}` does not name its classes: larger scores are taken to mean decision 1{said}{cut}."


def _types(source: Any, own: Columns, types: Mapping[str, FeatureType]) -> dict[str, FeatureType]:
    """Return the columns' types, with texts as categories for models that take text in this form only."""
    known = dict(types)
    mask = getattr(source, "is_categorical_", None)  # scikit-learn's gradient boosting
    names = getattr(source, "feature_names_in_", None)
    if mask is not None and names is not None:
        wanted = {str(n) for n, is_category in zip(names, mask, strict=True) if is_category}
    elif type(source).__module__.split(".")[0] in ("lightgbm", "xgboost"):
        wanted = {n for n, c in own.items() if c.dtype.kind not in "biuf"}
    else:
        return known
    for name in wanted & set(own):
        if known.get(name, FeatureType(kind="")).kind != "category" and own[name].dtype.kind not in "biuf":
            texts = sorted({str(v) for v in own[name] if v is not None})
            known[name] = FeatureType(kind="category", categories=tuple(texts))
    return known


def _nothing(_: Any) -> Any:
    raise UsageError("This model gives no score.")


def audited_model(model: Any, data: AuditData, *, positive: Any = None, threshold: float | None = None) -> AuditedModel:
    """Give a model the face in which the audits of these data ask it, and check it against their decisions.

    Parameters
    ----------
    model : object
        Anything `adapt` takes. An `AuditedModel` is returned as it is, unless a class or a threshold is named.
    data : AuditData
        With features.
    positive : object, optional
        The class that is decision 1, where the labels of the data do not say it.
    threshold : float, optional
        Decision 1 from this score on. By default that of the data, else the model's own.

    Returns
    -------
    AuditedModel

    Raises
    ------
    DataError
        When the model's decisions contradict those of the data.
    UsageError
        When it cannot be known which class is decision 1.

    Examples
    --------
    >>> data = AuditData.from_arrays(outcome=["no", "yes"], groups={"g": ["a", "b"]}, features={"x": [0.2, 0.7]})
    >>> audited_model(lambda X: X[:, 0], data).decide(data.features).tolist()
    [0.0, 1.0]
    """
    if isinstance(model, AuditedModel):
        if positive is None and threshold is None:
            return model
        model = model.outer
    rows = _shown(model, data)
    known: dict[str, Any] = {"labels": data.labels, "types": data.feature_types}
    known |= {"numeric_outcome": data.outcome_kind == "numeric", "positive": positive, "threshold": threshold}
    made = _asked(_all_categories(adapt(model, rows.features, **known), data), rows.features)
    if made.problem:
        return made
    score = made.score(rows.features)
    cut = threshold_of_data(rows, score) if threshold is None else None
    if cut is not None:
        made = replace(made, threshold=cut, choose=None)
    elif made.threshold is None and data.decision is not None:
        made = replace(made, threshold=batches_of(data).fold(partial(SeparatingCut, made)).value)
    decision = None if made.threshold is None else read_only(made.decide(rows.features))
    notes = check_agreement(made, rows, score, decision)
    if notes and rows.rows.rows_used < data.rows.rows_used:
        notes = (*notes, f"They were compared on {rows.rows.rows_used:,} rows, drawn by their content.")
    answers = Answers(columns=data.features, score=score, decision=decision)
    return replace(made, seen=answers if data.batches is None else None, notes=(*made.notes, *notes))


def _shown(model: Any, data: AuditData) -> AuditData:
    """Return the rows that show what the model takes and whether it agrees with the data.

    Of rows that stay where they are, any will do for an estimator when nothing says what was decided: it names its
    classes, and no number depends on which rows it is shown. A function's scores are judged by their range.
    """
    if data.batches is None:
        return data
    if data.decision is None and data.score is None and hasattr(model, "predict"):
        return cast(AuditData, data.batches.first())
    return cast(AuditData, data.batches.sample(ASKED_ROWS, seed=0))


def _all_categories(model: AuditedModel, data: AuditData) -> AuditedModel:
    """Let a model that takes texts as categories know those of all rows, where it was made from some of them."""
    listed = [n for n, t in model.types.items() if t.kind == "category" and n not in data.feature_types]
    if data.batches is None or not listed:
        return model
    texts = data.batches.fold(partial(_Texts, tuple(listed))).texts
    types = {n: FeatureType(kind="category", categories=tuple(sorted(texts[n]))) for n in listed}
    return replace(model, types={**model.types, **types}, seen=None)


class _Texts:
    """The distinct texts of some columns."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.texts: dict[str, set[str]] = {name: set() for name in names}

    def add(self, batch: AuditData) -> None:
        """Take the rows of one batch."""
        for name, texts in self.texts.items():
            texts.update(str(v) for v in set(batch.features[name].tolist()) if v is not None)

    def merge(self, other: _Texts) -> None:
        """Take the rows of another part."""
        for name, texts in self.texts.items():
            texts |= other.texts[name]
