"""Max-T in the group audit: comparisons adjusted together by the dependence of their influence functions.

Every row pulls each metric of its group up or down by a known amount, its influence. The same row does so for all
metrics and all attributes, which is why their comparisons depend on each other. Metrics that are a function of the
confusion table, means over rows and the AUC have closed influence functions; what has none keeps Holm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from evenhand.arrays import FloatArray
from evenhand.audits.finding import Raw
from evenhand.audits.group.evidence import GroupEvidence
from evenhand.audits.group.samples import row_values
from evenhand.inference.joint_maximum import max_t
from evenhand.inference.samples import Draws
from evenhand.intake import Attribute, AuditData
from evenhand.metrics import Metric
from evenhand.summaries import Sums, cells_of

_CHUNK = 1 << 16  # records whose influence on all comparisons is held at once
_STEP = 1e-4  # relative change of a cell in a numerical derivative

NOTE = (
    "Adjusted by the largest of the family's statistics, whose dependence is that of the rows' influence on each "
    "(holds in large samples); findings outside this family share the error rate in proportion to their number."
)


def joint_adjustment(raw: Sequence[Raw], data: AuditData, metrics: Sequence[Metric], draws: Draws) -> list[Raw]:
    """Add to each comparison of two groups its p-value adjusted jointly with the others.

    Parameters
    ----------
    raw : sequence of Raw
        The audit's findings before they are judged.
    data : AuditData
        What they were made from.
    metrics : sequence of Metric
        Those compared.
    draws : Draws
        How many normal draws.

    Returns
    -------
    list of Raw
        With ``adjusted_pvalue`` in the evidence where there is an influence function: rates, functions of the
        confusion table, means and the AUC. Global tests, correlations and the rest are left as they are.
    """
    pull = {
        (m.name, a.name): pulls
        for m in metrics
        for a in data.attributes
        if (pulls := influence(m, data, a)) is not None
    }
    places = [i for i, r in enumerate(raw) if r.pair is not None and r.pair[:2] in pull]
    codes = {a.name: a.codes for a in data.attributes}
    keys = [key for i in places if (key := raw[i].pair) is not None]
    covariance = np.zeros((len(keys), len(keys)))
    for start in range(0, len(data.count), _CHUNK):
        part = slice(start, start + _CHUNK)
        columns = [
            pull[m, name][part] * (np.equal(codes[name][part], a).astype(float) - np.equal(codes[name][part], b))
            for m, name, a, b in keys
        ]
        psi = np.stack(columns) if columns else np.empty((0, 0))  # (comparisons, records)
        covariance += (psi * data.count[part]) @ psi.T if columns else 0.0
    pvalues = np.array([raw[i].finding.pvalue for i in places], dtype=float)
    adjusted = max_t(pvalues, covariance, replace(draws, name="group/max-t"))
    out = list(raw)
    for i, p in zip(places, adjusted, strict=True):
        evidence = raw[i].evidence
        assert isinstance(evidence, GroupEvidence)
        out[i] = replace(raw[i], evidence=replace(evidence, adjusted_pvalue=float(p), correction_note=NOTE))
    return out


def influence(metric: Metric, data: AuditData, attribute: Attribute) -> FloatArray | None:
    """Return how much one row of each record moves the metric's value in its own group, shape (records,).

    It is 0 in groups without a value, and None where there is no closed form.

    Examples
    --------
    >>> from evenhand.metrics import METRICS
    >>> data = AuditData.from_arrays(decision=[0, 1, 1, 1], groups={"g": ["a", "a", "b", "b"]})
    >>> influence(METRICS["selection_rate"], data, data.attributes[0]).round(6).tolist()
    [-0.25, 0.25, 0.0, 0.0]
    """
    weight = np.ones(len(data.count)) if data.weight is None else data.weight
    if metric.kind in ("rate", "table"):
        return weight * _table_gradient(metric, data, attribute)[attribute.codes, cells_of(data)]
    if metric.kind == "auc":
        return weight * _auc_influence(data, attribute, weight * data.count)
    per_row = row_values(metric, data) if metric.kind == "mean" else None
    if per_row is None:
        return None
    values, _ = per_row
    mass = np.bincount(attribute.codes, weights=weight * data.count, minlength=len(attribute.labels))
    total = np.bincount(attribute.codes, weights=weight * data.count * values, minlength=len(attribute.labels))
    mean = total / np.where(mass > 0, mass, 1.0)
    return np.asarray(weight * (values - mean[attribute.codes]) / mass[attribute.codes])


def _table_gradient(metric: Metric, data: AuditData, attribute: Attribute) -> FloatArray:
    """Return the derivative of each group's value by the rows in each cell, shape (groups, 4)."""
    sums = Sums(data)
    weighted = data.weight is not None
    table = sums.weighted_confusion(attribute).w if weighted else sums.confusion(attribute).astype(float)
    gradient = np.zeros_like(table)
    for cell in range(4):
        step = _STEP * table[:, cell]
        up, down = table.copy(), table.copy()
        up[:, cell] += step
        down[:, cell] -= step
        with np.errstate(divide="ignore", invalid="ignore"):
            gradient[:, cell] = (metric(up) - metric(down)) / (2 * step)
    return np.nan_to_num(gradient, nan=0.0, posinf=0.0, neginf=0.0)


def _auc_influence(data: AuditData, attribute: Attribute, mass: FloatArray) -> FloatArray:
    """Return DeLong's placements around the group's AUC, over the rows of their side."""
    score, positive = np.asarray(data.score), np.asarray(data.outcome) == 1
    out = np.zeros(len(mass))
    for code in range(len(attribute.labels)):
        mine = np.flatnonzero(attribute.codes == code)
        distinct, place = np.unique(score[mine], return_inverse=True)
        x = np.bincount(place, weights=mass[mine] * positive[mine], minlength=distinct.size)
        y = np.bincount(place, weights=mass[mine] * ~positive[mine], minlength=distinct.size)
        if not (x.sum() > 0 and y.sum() > 0):
            continue
        below = (np.cumsum(y) - y / 2) / y.sum()
        above = (x.sum() - np.cumsum(x) + x / 2) / x.sum()
        auc = float(x @ below / x.sum())
        out[mine] = np.where(positive[mine], (below[place] - auc) / x.sum(), (above[place] - auc) / y.sum())
    return out
