"""A metric meets its inference: data, attribute and metric in, K samples with their tests out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from evenhand.arrays import AnyArray, BoolArray, FloatArray
from evenhand.errors import DataError
from evenhand.inference.auc import AucSamples
from evenhand.inference.calibration import CalibrationSamples
from evenhand.inference.count_functions import balanced_accuracy
from evenhand.inference.count_tables import TableSamples
from evenhand.inference.means import MeanSamples
from evenhand.inference.rates.samples import RateSamples
from evenhand.inference.rates.weighted import WeightedRateSamples
from evenhand.inference.rows import RowSamples
from evenhand.inference.samples import Samples
from evenhand.intake import Attribute, AuditData
from evenhand.intake.values import VALUES
from evenhand.metrics import METRICS, Metric
from evenhand.metrics.metric import RowFunction
from evenhand.summaries import cells_of, confusion, weight_sums, weighted_confusion


def check_needs(metric: Metric, data: AuditData) -> None:
    """Raise a clear error when the data lack what a metric reads.

    Parameters
    ----------
    metric : Metric
        What is asked for.
    data : AuditData
        What there is.
    """
    for role in metric.needs:
        if getattr(data, role) is None:
            article = "an" if role == "outcome" else "a"
            raise DataError(
                f"Metric `{metric.name}` needs {article} {role} column and none was given. Name it with `{role}=`, "
                f"or leave `{metric.name}` out of `metrics`."
            )
    if "outcome" in metric.needs and metric.outcome == "binary" and data.outcome_kind != "binary":
        raise DataError(
            f"Metric `{metric.name}` needs an outcome with two values; column "
            f"`{data.columns.get('outcome', 'outcome')}` has more. Use a regression metric such as "
            "`mae`, or say which value is the positive one with `positive=`."
        )
    if metric.probability and data.score_kind != "probability":
        raise DataError(
            f"Metric `{metric.name}` needs scores between 0 and 1; column `{data.columns.get('score', 'score')}` has "
            "values outside. Rescale it, or use `auc`, which needs only the order of the scores."
        )
    if metric.kind == "calibration" and data.weight is not None:
        raise DataError(
            f"Metric `{metric.name}` does not take sampling weights. Leave it out of `metrics`, or use "
            "`mean_residual`, which does."
        )
    if metric.kind == "rows" and data.moments is not None:
        raise DataError(
            f"Metric `{metric.name}` is a function of rows, and these rows stayed on their engine. "
            "Read the data with `rows='keep'`."
        )


def largest_difference(metric: Metric, data: AuditData) -> float:
    """Return the largest difference of a metric that is possible with such data.

    Parameters
    ----------
    metric : Metric
        What is compared.
    data : AuditData
        Its score may be a probability, which bounds what has no bound in general.

    Returns
    -------
    float
        Infinite where there is none.

    Examples
    --------
    >>> data = AuditData.from_arrays(score=[0.2, 0.7], groups={"g": ["a", "b"]})
    >>> largest_difference(METRICS["mean_score"], data), largest_difference(METRICS["log_loss"], data)
    (1.0, inf)
    """
    span = metric.high - metric.low
    bounded = data.score is not None and data.score_kind == "probability"
    if math.isfinite(span) or not bounded or ("outcome" in metric.needs and data.outcome_kind != "binary"):
        return span
    return {"score": 1.0, "absolute_error": 1.0, "squared_error": 1.0, "residual": 2.0}.get(metric.value, span)


def samples_of(metric: Metric, data: AuditData, attribute: Attribute) -> Samples:
    """Make the samples that a metric compares between the groups of an attribute.

    Parameters
    ----------
    metric : Metric
        What is compared.
    data : AuditData
        Checked with `check_needs`.
    attribute : Attribute
        Whose groups.

    Returns
    -------
    Samples
    """
    return _MAKERS[metric.kind](metric, data, attribute)


def row_values(metric: Metric, data: AuditData) -> tuple[FloatArray, BoolArray] | None:
    """Return a metric's value for each record and which records it averages over.

    Parameters
    ----------
    metric : Metric
        A rate or a mean has such values; other metrics do not.
    data : AuditData
        Records that are rows, not cells.

    Returns
    -------
    values, inside : ndarray, shape (records,)
        Or None when the metric is not a mean over rows or the rows stayed on their engine.
    """
    if data.moments is not None:
        return None
    if metric.kind == "mean":
        values = _values(metric, data)
        return values, np.ones(values.shape, dtype=bool)
    if metric.kind == "rate" and metric.transform == "identity":
        cell = cells_of(data)
        return np.isin(cell, metric.numerator).astype(float), np.isin(cell, metric.denominator)
    return None


def _rate_samples(metric: Metric, data: AuditData, attribute: Attribute) -> Samples:
    if data.weight is not None:
        return _weighted_rate(metric, data, attribute)
    return RateSamples(
        confusion(data, attribute.codes, len(attribute.labels)),
        numerator=metric.numerator,
        denominator=metric.denominator,
        transform=metric.transform,
        empty_reason=metric.empty,
    )


def _weighted_rate(metric: Metric, data: AuditData, attribute: Attribute) -> Samples:
    """With sampling weights a rate is a weighted mean of 0 and 1 over the rows of its denominator."""
    if metric.transform != "identity":
        return _weighted_table(metric, data, attribute)
    top, bottom = list(metric.numerator), list(metric.denominator)
    if data.moments is not None:
        count = confusion(data, attribute.codes, len(attribute.labels))
        sums = weighted_confusion(data, attribute.codes, len(attribute.labels))
        w, ww = sums.w[:, bottom].sum(axis=1), sums.ww[:, bottom].sum(axis=1)
        wv, wwv = sums.w[:, top].sum(axis=1), sums.ww[:, top].sum(axis=1)
        n = count[:, bottom].sum(axis=1)
        means = MeanSamples.from_moments(n, w, ww, wv, wwv, wwv, empty_reason=metric.empty)
        return WeightedRateSamples(means, w=w, ww=ww, wwv=wwv)
    cell = cells_of(data)
    inside, one = np.isin(cell, bottom), np.isin(cell, top).astype(float)
    weight, codes = np.asarray(data.weight), attribute.codes

    def total(part: FloatArray) -> FloatArray:
        sums = np.bincount(codes[inside], weights=(data.count * part)[inside], minlength=len(attribute.labels))
        return np.asarray(sums, dtype=np.float64)

    return WeightedRateSamples(
        _means(one, inside, metric, data, attribute),
        w=total(weight),
        ww=total(weight**2),
        wwv=total(weight**2 * one),
    )


def _table_samples(metric: Metric, data: AuditData, attribute: Attribute) -> Samples:
    if data.weight is not None:
        return _weighted_table(metric, data, attribute)
    table = confusion(data, attribute.codes, len(attribute.labels))
    form = balanced_accuracy() if metric is METRICS["balanced_accuracy"] else metric
    return TableSamples(table, form, empty_reason=metric.empty)


def _weighted_table(metric: Metric, data: AuditData, attribute: Attribute) -> Samples:
    """With sampling weights a function of the table is a function of rows: its variance is bootstrapped."""
    if data.moments is not None:
        raise DataError(
            f"Metric `{metric.name}` with sampling weights needs rows, and these stayed on their engine. "
            "Read the data with `rows='keep'`."
        )

    def value(columns: Mapping[str, AnyArray]) -> float:
        cells = np.bincount(columns["cell"].astype(np.int64), weights=columns["weight"], minlength=4)
        return float(metric(np.asarray(cells, dtype=np.float64)))

    columns = {"cell": cells_of(data).astype(float), "weight": np.asarray(data.weight)}
    return _rows(value, columns, metric, data, attribute)


def _mean_samples(metric: Metric, data: AuditData, attribute: Attribute) -> Samples:
    n_groups = len(attribute.labels)
    if data.moments is not None:
        w, ww = weight_sums(data)
        moments = data.moments[metric.value]
        sums = [
            np.bincount(attribute.codes, weights=part, minlength=n_groups)
            for part in (data.count, w, ww, moments.wv, moments.wwv, moments.wwvv)
        ]
        return MeanSamples.from_moments(*sums, empty_reason=metric.empty)
    values = _values(metric, data)
    return _means(values, np.ones(values.shape, dtype=bool), metric, data, attribute)


def _auc_samples(metric: Metric, data: AuditData, attribute: Attribute) -> Samples:
    return AucSamples(
        score=np.asarray(data.score),
        outcome=np.asarray(data.outcome),
        count=data.count,
        weight=data.weight,
        codes=attribute.codes,
        n_groups=len(attribute.labels),
        empty_reason=metric.empty,
    )


def _calibration_samples(metric: Metric, data: AuditData, attribute: Attribute) -> Samples:
    return CalibrationSamples(
        score=np.asarray(data.score),
        outcome=np.asarray(data.outcome),
        count=data.count,
        codes=attribute.codes,
        n_groups=len(attribute.labels),
        empty_reason=metric.empty,
    )


def _row_samples(metric: Metric, data: AuditData, attribute: Attribute) -> Samples:
    columns = {role: np.asarray(getattr(data, role)) for role in metric.needs}
    if data.weight is not None:
        columns["weight"] = np.asarray(data.weight)
    assert metric.function is not None
    return _rows(metric.function, columns, metric, data, attribute)


def _values(metric: Metric, data: AuditData) -> FloatArray:
    score = np.asarray(data.score)
    outcome = score if data.outcome is None else data.outcome  # a value without outcome never looks at it
    return VALUES[metric.value].array(outcome, score)


def _means(values: FloatArray, inside: BoolArray, metric: Metric, data: AuditData, attribute: Attribute) -> MeanSamples:
    return MeanSamples(
        value=values[inside],
        count=data.count[inside],
        weight=None if data.weight is None else data.weight[inside],
        codes=attribute.codes[inside],
        n_groups=len(attribute.labels),
        empty_reason=metric.empty,
    )


def _rows(
    value: RowFunction,
    columns: Mapping[str, AnyArray],
    metric: Metric,
    data: AuditData,
    attribute: Attribute,
) -> RowSamples:
    return RowSamples(
        columns=columns,
        count=data.count,
        codes=attribute.codes,
        n_groups=len(attribute.labels),
        value=value,
        empty_reason=metric.empty,
    )


_MAKERS: dict[str, Callable[[Metric, AuditData, Attribute], Samples]] = {
    "rate": _rate_samples,
    "table": _table_samples,
    "mean": _mean_samples,
    "auc": _auc_samples,
    "calibration": _calibration_samples,
    "rows": _row_samples,
}
