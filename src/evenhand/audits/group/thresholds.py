"""The same rate at other decision thresholds: would the difference be there had the bar been elsewhere?

Each threshold is tested alone ([diciccio2020] figure 2). The curve explores; no verdict rests on it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenhand.arrays import FloatArray, IntArray
from evenhand.audits.finding import Raw
from evenhand.audits.group.design import has_design
from evenhand.audits.group.evidence import GroupEvidence, ThresholdCurve
from evenhand.inference.rates.conditional import exact_pvalue
from evenhand.intake import Attribute, AuditData
from evenhand.kernels.counts.binomial import score_interval
from evenhand.metrics import Metric

_POINTS = 25
_LEVEL = 0.95
_MOST_PAIRS = 12  # of one metric and attribute: beyond, nobody reads the curves


def with_curves(raw: Sequence[Raw], data: AuditData, metrics: Sequence[Metric]) -> list[Raw]:
    """Add to the evidence of each rate what its difference would be at other decision thresholds.

    Parameters
    ----------
    raw : sequence of Raw
        Findings before they are judged.
    data : AuditData
        Scores and decisions; without them nothing is added.
    metrics : sequence of Metric
        Those of the audit.

    Returns
    -------
    list of Raw
    """
    thresholds = spread_thresholds(data) if any(_moves(metric) for metric in metrics) else None
    if thresholds is None:
        return list(raw)
    named = {m.name: m for m in metrics}
    tables = {a.name: threshold_tables(data, a, thresholds) for a in data.attributes}
    pairs = Counter(r.pair[:2] for r in raw if r.pair is not None)
    with_curve = []
    for r in raw:
        if r.pair is not None and pairs[r.pair[:2]] <= _MOST_PAIRS and isinstance(r.evidence, GroupEvidence):
            metric, attribute, a, b = r.pair
            curve = threshold_curve(named[metric], tables[attribute], thresholds, a, b)
            r = replace(r, evidence=replace(r.evidence, thresholds=curve))
        with_curve.append(r)
    return with_curve


def _moves(metric: Metric) -> bool:
    """Whether a metric is a rate that other thresholds would change."""
    return metric.kind == "rate" and metric.transform == "identity"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Thresholds:
    """Thresholds spread over the scores, and where each record stands among them."""

    at: FloatArray  # (T,): decided 1 from here on
    reached: IntArray  # (records,): how many of the thresholds a record's score reaches
    used: float | None  # the threshold of the decisions in the data, where one explains them all


def spread_thresholds(data: AuditData) -> Thresholds | None:
    """Spread thresholds over the scores, with as many people between any two of them.

    There are none without scores or decisions, with sampling weights or clusters, or when all scores are equal.

    Examples
    --------
    >>> data = AuditData.from_arrays(decision=[0, 0, 1, 1], score=[0.1, 0.4, 0.6, 0.9], groups={"g": list("abab")})
    >>> found = spread_thresholds(data)
    >>> found.at.tolist(), found.reached.tolist(), found.used
    ([0.4, 0.6, 0.9], [0, 1, 2, 3], 0.6)
    """
    if data.score is None or data.decision is None or data.weight is not None or has_design(data):
        return None
    order = np.argsort(data.score, kind="stable")
    ordered = data.score[order]
    people = np.cumsum(data.count[order])
    goals = people[-1] * np.arange(1, _POINTS) / _POINTS
    # The next value above each goal: at the lowest score everybody would be decided 1.
    places = np.searchsorted(ordered, ordered[np.searchsorted(people, goals)], side="right")
    at = np.unique(ordered[places[places < len(ordered)]])
    if not len(at):
        return None
    return Thresholds(
        at=at, reached=np.searchsorted(at, data.score, side="right"), used=_used(data.score, data.decision)
    )


def threshold_tables(data: AuditData, attribute: Attribute, thresholds: Thresholds) -> IntArray:
    """Count each group's confusion table at each threshold.

    Parameters
    ----------
    data : AuditData
        An outcome that is not binary counts as 0.
    attribute : Attribute
        Whose groups.
    thresholds : Thresholds
        From `spread_thresholds`.

    Returns
    -------
    ndarray of int, shape (T, K, 4)

    Examples
    --------
    >>> data = AuditData.from_arrays(decision=[0, 0, 1, 1], score=[0.1, 0.4, 0.6, 0.9], groups={"g": list("abab")})
    >>> threshold_tables(data, data.attributes[0], spread_thresholds(data))[0].tolist()
    [[1, 1, 0, 0], [0, 2, 0, 0]]
    """
    outcome = np.zeros(len(data.count), dtype=np.int64)
    if data.outcome is not None and data.outcome_kind == "binary":
        outcome = data.outcome.astype(np.int64)
    bins, groups = len(thresholds.at) + 1, len(attribute.labels)
    cell = (2 * attribute.codes + outcome) * bins + thresholds.reached
    counts = np.bincount(cell, weights=data.count, minlength=2 * groups * bins).reshape(groups, 2, bins)
    low = np.cumsum(counts, axis=2)[:, :, :-1]  # below each threshold
    high = counts.sum(axis=2, keepdims=True) - low
    tables = np.stack([low[:, 0], high[:, 0], low[:, 1], high[:, 1]], axis=-1)  # (K, T, 4): tn, fp, fn, tp
    whole: IntArray = np.rint(tables).astype(np.int64)
    return whole.transpose(1, 0, 2)


def _used(score: FloatArray, decision: FloatArray) -> float | None:
    chosen = decision == 1
    if not chosen.any() or chosen.all():
        return None
    least = float(score[chosen].min())
    return least if float(score[~chosen].max()) < least else None


def threshold_curve(metric: Metric, tables: IntArray, thresholds: Thresholds, a: int, b: int) -> ThresholdCurve | None:
    """Compare a rate between two groups at each threshold.

    Parameters
    ----------
    metric : Metric
        A rate that depends on the decision.
    tables : ndarray of int, shape (T, K, 4)
        From `threshold_tables`.
    thresholds : Thresholds
        Where they are.
    a, b : int
        The groups; `b` is the reference.

    Returns
    -------
    ThresholdCurve or None
        Threshold, difference, ends of its score interval and exact p-value at each; None for other metrics.

    Examples
    --------
    >>> from evenhand.metrics import METRICS
    >>> data = AuditData.from_arrays(decision=[0, 0, 1, 1], score=[0.1, 0.4, 0.6, 0.9], groups={"g": list("abab")})
    >>> bars = spread_thresholds(data)
    >>> tables = threshold_tables(data, data.attributes[0], bars)
    >>> threshold_curve(METRICS["selection_rate"], tables, bars, 0, 1).difference
    (-0.5, 0.0, -0.5)
    """
    if not _moves(metric):
        return None
    x = tables[:, [a, b]][..., list(metric.numerator)].sum(axis=-1)  # (T, 2)
    n = tables[:, [a, b]][..., list(metric.denominator)].sum(axis=-1)  # (T, 2)
    able = np.all(n > 0, axis=1)
    if not able.any():
        return None
    x, n = x[able], n[able]
    low, high = score_interval(x, n, [1, -1], _LEVEL)
    return ThresholdCurve(
        threshold=tuple(thresholds.at[able].tolist()),
        difference=tuple((x[:, 0] / n[:, 0] - x[:, 1] / n[:, 1]).tolist()),
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
        pvalue=tuple(exact_pvalue(x[t].tolist(), n[t].tolist())[0] for t in range(len(x))),
        level=_LEVEL,
        used=math.nan if thresholds.used is None else thresholds.used,
    )
