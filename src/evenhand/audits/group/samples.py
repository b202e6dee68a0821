"""A metric meets its inference: data, attribute and metric in, K samples with their tests out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from evenhand.arrays import AnyArray, BoolArray, FloatArray
from evenhand.audits.group.design import check_design_needs, design_samples, has_design
from evenhand.audits.group.influence import values_of
from evenhand.audits.group.strata import stratified_samples
from evenhand.errors import DataError
from evenhand.inference.auc import AucSamples
from evenhand.inference.calibration import CalibrationSamples
from evenhand.inference.count_functions import average_odds, balanced_accuracy
from evenhand.inference.count_tables import TableSamples
from evenhand.inference.means import MeanSamples
from evenhand.inference.rates.averages import RateAverage
from evenhand.inference.rates.gaps import RateGaps
from evenhand.inference.rates.samples import RateSamples
from evenhand.inference.rates.weighted import WeightedRateSamples
from evenhand.inference.rows import RowSamples
from evenhand.inference.samples import Samples
from evenhand.intake import Attribute, AuditData
from evenhand.metrics import METRICS, Metric, default_metrics, resolve
from evenhand.summaries import SortedRecords, Sums, cells_of, weight_sums

# Kinds of metric that take no sampling weights, with a metric that does.
_UNWEIGHTED = {"calibration": "mean_residual", "gaps": "aod", "scoring": "mean_score"}


def metrics_for(data: AuditData, asked: Sequence[str | Metric] | str | Metric | None = None) -> tuple[Metric, ...]:
    """Return the metrics asked for; by default a few that the columns allow."""
    if asked is not None:
        return resolve(asked)
    predicted = {"has_decision": data.decision is not None, "has_score": data.score is not None}
    return default_metrics(outcome_kind=data.outcome_kind, **predicted)


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
                f"or leave `{metric.name}` out of `metrics=`."
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
    if metric.kind in _UNWEIGHTED and data.weight is not None:
        raise DataError(
            f"Metric `{metric.name}` does not take sampling weights. Leave it out of `metrics=`, or use "
            f"`{_UNWEIGHTED[metric.kind]}`, which does."
        )
    check_design_needs(metric, data)
    if metric.kind in ("rows", "scoring") and data.moments is not None:
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


def samples_of(metric: Metric, sums: Sums, attribute: Attribute) -> Samples:
    """Make the samples that a metric, checked with `check_needs`, compares between the groups of an attribute."""
    if has_design(sums.data):
        return design_samples(metric, sums.data, attribute)
    if sums.data.strata is not None:
        return stratified_samples(metric, sums, attribute, values_of)
    return crude_samples(metric, sums, attribute)


def crude_samples(metric: Metric, sums: Sums, attribute: Attribute) -> Samples:
    """Make the samples that a metric compares between all rows of the groups, whatever their strata."""
    if has_design(sums.data):
        return design_samples(metric, replace(sums.data, strata=None), attribute)
    return _MAKERS[metric.kind](metric, sums, attribute)


def row_values(metric: Metric, data: AuditData) -> tuple[FloatArray, BoolArray] | None:
    """Return a metric's value for each record and which records it averages over.

    None when the metric is not a mean over rows (a rate or a mean is), or the rows stayed on their engine.
    """
    if data.moments is not None:
        return None
    if metric.kind == "mean":
        values = values_of(metric, data)
        return values, np.ones(values.shape, dtype=bool)
    if metric.kind == "rate" and metric.transform == "identity":
        cell = cells_of(data)
        return np.isin(cell, metric.numerator).astype(float), np.isin(cell, metric.denominator)
    return None


def _rate_samples(metric: Metric, sums: Sums, attribute: Attribute) -> Samples:
    if sums.data.weight is not None:
        return _weighted_rate(metric, sums, attribute)
    return RateSamples(
        sums.confusion(attribute),
        numerator=metric.numerator,
        denominator=metric.denominator,
        transform=metric.transform,
        empty_reason=metric.empty,
    )


def _weighted_rate(metric: Metric, sums: Sums, attribute: Attribute) -> Samples:
    """With sampling weights a rate is a weighted mean of 0 and 1 over the rows of its denominator."""
    if metric.transform != "identity":
        return _weighted_table(metric, sums, attribute)
    top, bottom = list(metric.numerator), list(metric.denominator)
    table = sums.weighted_confusion(attribute)
    w, ww, wwv = table.w[:, bottom].sum(axis=1), table.ww[:, bottom].sum(axis=1), table.ww[:, top].sum(axis=1)
    data = sums.data
    if data.moments is not None:
        n, wv = sums.confusion(attribute)[:, bottom].sum(axis=1), table.w[:, top].sum(axis=1)
        means = MeanSamples.from_moments(n, w, ww, wv, wwv, wwv, empty_reason=metric.empty)
    else:
        inside = np.isin(sums.cells, bottom)
        value, weight = np.isin(sums.cells[inside], top).astype(float), np.asarray(data.weight)[inside]
        grouped = _groups(metric, attribute, inside)
        means = MeanSamples(value=value, count=data.count[inside], weight=weight, **grouped)
    return WeightedRateSamples(means, w=w, ww=ww, wwv=wwv)


def _table_samples(metric: Metric, sums: Sums, attribute: Attribute) -> Samples:
    if sums.data.weight is not None:
        return _weighted_table(metric, sums, attribute)
    if metric is METRICS["aod"]:
        return RateAverage(sums.confusion(attribute), average_odds(), empty_reason=metric.empty)
    form = balanced_accuracy() if metric is METRICS["balanced_accuracy"] else metric
    return TableSamples(sums.confusion(attribute), form, empty_reason=metric.empty)


def _gap_samples(metric: Metric, sums: Sums, attribute: Attribute) -> Samples:
    table = sums.confusion(attribute)
    parts = {
        name: RateSamples(table, numerator=METRICS[name].numerator, denominator=METRICS[name].denominator)
        for name in metric.parts
    }
    return RateGaps(parts, empty_reason=metric.empty)


def _weighted_table(metric: Metric, sums: Sums, attribute: Attribute) -> Samples:
    """With sampling weights a function of the table is a function of rows: its variance is bootstrapped."""
    if sums.data.moments is not None:
        raise DataError(
            f"Metric `{metric.name}` with sampling weights needs rows, and these stayed on their engine. "
            "Read the data with `rows='keep'`."
        )

    def value(columns: Mapping[str, AnyArray]) -> FloatArray:
        cell, weight = np.atleast_2d(columns["cell"].astype(np.int64), columns["weight"])  # (samples, rows)
        place = cell + 4 * np.arange(len(cell))[:, None]
        cells = np.bincount(place.ravel(), weights=weight.ravel(), minlength=4 * len(cell)).reshape(-1, 4).astype(float)
        return metric(cells)[0] if columns["cell"].ndim == 1 else metric(cells)

    columns = {"cell": sums.cells.astype(float), "weight": np.asarray(sums.data.weight)}
    counted = {"count": sums.data.count, **_groups(metric, attribute)}
    return RowSamples(columns=columns, value=value, batch=True, **counted)


def _scoring_samples(metric: Metric, sums: Sums, attribute: Attribute) -> Samples:
    """Count who scores strictly above the median of everybody; given the scores, half of all people do."""
    records = sums.by_value("score", lambda: np.asarray(sums.data.score))
    upto = np.cumsum(records.count)
    middle = [records.value[np.searchsorted(upto, place)] for place in ((upto[-1] + 1) // 2, upto[-1] // 2 + 1)]
    codes, n_groups = attribute.codes[records.order], len(attribute.labels)
    above = np.where(records.value > sum(middle) / 2, records.count, 0)
    counts = [np.bincount(codes, weights=part, minlength=n_groups) for part in (above, records.count)]
    return RateSamples.from_counts(*counts, given_total=True)


def _mean_samples(metric: Metric, sums: Sums, attribute: Attribute) -> Samples:
    data, n_groups = sums.data, len(attribute.labels)
    if data.moments is not None:
        moments = data.moments[metric.value]
        parts = (data.count, *weight_sums(data), moments.wv, moments.wwv, moments.wwvv)
        totals = [np.bincount(attribute.codes, weights=part, minlength=n_groups) for part in parts]
        return MeanSamples.from_moments(*totals, empty_reason=metric.empty)
    records = sums.by_value(metric.value, lambda: values_of(metric, data))
    return MeanSamples(value=records.value, weight=records.weight, **_sorted_groups(metric, attribute, records))


def _auc_samples(metric: Metric, sums: Sums, attribute: Attribute) -> Samples:
    records, outcome = _by_score(sums)
    grouped = _sorted_groups(metric, attribute, records)
    return AucSamples(score=records.value, outcome=outcome, weight=records.weight, **grouped)


def _calibration_samples(metric: Metric, sums: Sums, attribute: Attribute) -> Samples:
    records, outcome = _by_score(sums)
    return CalibrationSamples(score=records.value, outcome=outcome, **_sorted_groups(metric, attribute, records))


def _row_samples(metric: Metric, sums: Sums, attribute: Attribute) -> Samples:
    data = sums.data
    columns = {role: np.asarray(getattr(data, role)) for role in metric.needs}
    if data.weight is not None:
        columns["weight"] = np.asarray(data.weight)
    assert metric.function is not None
    return RowSamples(columns=columns, value=metric.function, count=data.count, **_groups(metric, attribute))


def _by_score(sums: Sums) -> tuple[SortedRecords, AnyArray]:
    """Return the records by their score, and their outcomes."""
    records = sums.by_value("score", lambda: np.asarray(sums.data.score))
    return records, np.asarray(sums.data.outcome)[records.order]


def _groups(metric: Metric, attribute: Attribute, rows: AnyArray | slice = slice(None)) -> dict[str, Any]:
    """Return what samples of some records need to know about groups."""
    return {"codes": attribute.codes[rows], "n_groups": len(attribute.labels), "empty_reason": metric.empty}


def _sorted_groups(metric: Metric, attribute: Attribute, records: SortedRecords) -> dict[str, Any]:
    return {"count": records.count, **_groups(metric, attribute, records.order)}


_MAKERS: dict[str, Callable[[Metric, Sums, Attribute], Samples]] = {
    "rate": _rate_samples,
    "scoring": _scoring_samples,
    "table": _table_samples,
    "gaps": _gap_samples,
    "mean": _mean_samples,
    "auc": _auc_samples,
    "calibration": _calibration_samples,
    "rows": _row_samples,
}
