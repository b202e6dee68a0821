"""The catalogue: every metric Evenhand knows by name, one row each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from evenhand.arrays import FloatArray
from evenhand.errors import UsageError, near_matches
from evenhand.metrics.metric import FN, FP, TN, TP, Metric

_EVERYONE = (TN, FP, FN, TP)
_BOTH = ("outcome", "decision")
_SCORED = ("outcome", "score")


def _rate(name: str, top: tuple[int, ...], bottom: tuple[int, ...], better: str, says: str, empty: str) -> Metric:
    cells: dict[str, Any] = {"numerator": top, "denominator": bottom}
    return Metric(name=name, kind="rate", needs=_BOTH, better=better, says=says, empty=empty, **cells)


def _mean(name: str, value: str, says: str, *, high: float = math.inf, **more: Any) -> Metric:
    return Metric(name=name, kind="mean", value=value, says=says, high=high, **{"needs": _SCORED, **more})


def _balanced_accuracy(tn: FloatArray, fp: FloatArray, fn: FloatArray, tp: FloatArray) -> FloatArray:
    return (tp / (tp + fn) + tn / (tn + fp)) / 2


def _average_odds(tn: FloatArray, fp: FloatArray, fn: FloatArray, tp: FloatArray) -> FloatArray:
    return (tp / (tp + fn) + fp / (tn + fp)) / 2


_POSITIVES, _NEGATIVES, _CHOSEN, _PASSED = (FN, TP), (TN, FP), (FP, TP), (TN, FN)
_NO_POSITIVES, _NO_NEGATIVES = "has no rows with outcome 1", "has no rows with outcome 0"
_NO_CHOSEN, _NO_PASSED = "has no rows with decision 1", "has no rows with decision 0"

_ROWS = (
    Metric(
        name="selection_rate",
        kind="rate",
        needs=("decision",),
        outcome="any",
        numerator=_CHOSEN,
        denominator=_EVERYONE,
        says="share of the group decided 1",
    ),
    _rate("tpr", (TP,), _POSITIVES, "higher", "share decided 1 among outcome 1 (recall)", _NO_POSITIVES),
    _rate("fpr", (FP,), _NEGATIVES, "lower", "share decided 1 among outcome 0", _NO_NEGATIVES),
    _rate("tnr", (TN,), _NEGATIVES, "higher", "share decided 0 among outcome 0", _NO_NEGATIVES),
    _rate("fnr", (FN,), _POSITIVES, "lower", "share decided 0 among outcome 1", _NO_POSITIVES),
    _rate("precision", (TP,), _CHOSEN, "higher", "share of outcome 1 among those decided 1", _NO_CHOSEN),
    _rate("npv", (TN,), _PASSED, "higher", "share of outcome 0 among those decided 0", _NO_PASSED),
    _rate("fdr", (FP,), _CHOSEN, "lower", "share of outcome 0 among those decided 1", _NO_CHOSEN),
    _rate("for", (FN,), _PASSED, "lower", "share of outcome 1 among those decided 0", _NO_PASSED),
    _rate("accuracy", (TN, TP), _EVERYONE, "higher", "share decided as it came out", "has no rows"),
    _rate("error_rate", (FP, FN), _EVERYONE, "lower", "share decided otherwise than it came out", "has no rows"),
    Metric(
        name="balanced_accuracy",
        kind="table",
        needs=_BOTH,
        table=_balanced_accuracy,
        better="higher",
        says="mean of tpr and tnr",
        empty="lacks rows with outcome 0 or outcome 1",
    ),
    Metric(
        name="f1",
        kind="rate",
        needs=_BOTH,
        numerator=(TP,),
        denominator=(FP, FN, TP),
        transform="f1",
        better="higher",
        says="harmonic mean of precision and recall",
        empty="has no rows with outcome 1 or decision 1",
    ),
    Metric(
        name="auc",
        kind="auc",
        needs=_SCORED,
        better="higher",
        says="chance that an outcome 1 scores above an outcome 0, ties counted half",
        empty="lacks rows with outcome 0 or outcome 1",
    ),
    _mean(
        "brier",
        "squared_error",
        "mean squared difference of score and outcome",
        high=1.0,
        probability=True,
        better="lower",
    ),
    _mean(
        "log_loss",
        "log_loss",
        "mean negative log-likelihood of the outcome under the score",
        probability=True,
        better="lower",
    ),
    Metric(
        name="calibration_error",
        kind="calibration",
        needs=_SCORED,
        probability=True,
        better="lower",
        says="distance between scores and outcome rates over ten score bins",
    ),
    Metric(
        name="scoring_rate",
        kind="scoring",
        needs=("score",),
        outcome="any",
        says="share of the group with a score above the median of everybody's",
    ),
    _mean("mean_score", "score", "mean score", needs=("score",), outcome="any", low=-math.inf),
    _mean("mae", "absolute_error", "mean absolute difference of score and outcome", outcome="any", better="lower"),
    _mean("mse", "squared_error", "mean squared difference of score and outcome", outcome="any", better="lower"),
    _mean(
        "mean_residual",
        "residual",
        "mean of outcome minus score: above 0 the group is scored too low",
        outcome="any",
        low=-math.inf,
    ),
)


def _compared(name: str, metric: str, compare: str, says: str) -> Metric:
    """Return a metric under the name that its difference or ratio has in the literature."""
    known = next(m for m in _ROWS if m.name == metric)
    return replace(known, name=name, compare=compare, per_group=metric, says=says)


_NAMED = (
    _compared("spd", "selection_rate", "difference", "statistical parity difference: difference of selection_rate"),
    _compared("di", "selection_rate", "ratio", "disparate impact: ratio of selection_rate"),
    _compared("eod", "tpr", "difference", "equal opportunity difference: difference of tpr"),
    Metric(
        name="aod",
        kind="table",
        needs=_BOTH,
        table=_average_odds,
        compare="difference",
        per_group="mean of tpr and fpr",
        says="average odds difference: mean of the differences of tpr and fpr, with their signs",
        empty="lacks rows with outcome 0 or outcome 1",
    ),
    Metric(
        name="aod_abs",
        kind="gaps",
        needs=_BOTH,
        parts=("tpr", "fpr"),
        compare="difference",
        per_group="mean of tpr and fpr",
        says="average absolute odds difference: mean of the absolute differences of tpr and fpr",
        empty="lacks rows with outcome 0 or outcome 1",
    ),
)

METRICS: Mapping[str, Metric] = MappingProxyType({m.name: m for m in (*_ROWS, *_NAMED)})


def resolve(metrics: Sequence[str | Metric] | str | Metric) -> tuple[Metric, ...]:
    """Turn names into metrics; a metric of the user's own passes through.

    Parameters
    ----------
    metrics : sequence of str or Metric, or one of them
        Names of the catalogue are not case-sensitive.

    Returns
    -------
    tuple of Metric
        In the order given.

    Examples
    --------
    >>> [m.name for m in resolve(["FNR", "auc"])]
    ['fnr', 'auc']
    """
    wanted = [metrics] if isinstance(metrics, str | Metric) else list(metrics)
    found: list[Metric] = []
    for item in wanted:
        if isinstance(item, Metric):
            metric = item
        else:
            name = str(item).strip().lower()
            if name not in METRICS:
                raise UsageError(f"Metric `{item}` is not known.{near_matches(name, METRICS)}")
            metric = METRICS[name]
        if metric.name in {m.name for m in found}:
            raise UsageError(f"Metric `{metric.name}` is named twice. Name each metric once.")
        found.append(metric)
    if not found:
        raise UsageError("No metric was named. Name at least one, or leave `metrics=` out for the default.")
    return tuple(found)


def default_metrics(*, outcome_kind: str, has_decision: bool, has_score: bool) -> tuple[Metric, ...]:
    """Choose the metrics an audit runs when the user names none.

    Few on purpose: each metric costs error budget.

    Parameters
    ----------
    outcome_kind : {"binary", "numeric", "none"}
        What the outcome is.
    has_decision, has_score : bool
        Which columns are there.

    Returns
    -------
    tuple of Metric

    Examples
    --------
    >>> [m.name for m in default_metrics(outcome_kind="binary", has_decision=True, has_score=False)]
    ['selection_rate', 'fnr', 'fpr']
    """
    names: list[str] = []
    if has_decision:
        names += ["selection_rate"] + (["fnr", "fpr"] if outcome_kind == "binary" else [])
    if has_score and outcome_kind == "binary":
        names += ["auc"] if has_decision else ["auc", "mean_residual"]
    elif has_score:
        names += ["mae", "mean_residual"] if outcome_kind == "numeric" else ["mean_score"]
    return resolve(names)
