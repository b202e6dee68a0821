"""How much one row pulls a metric's value in its own group up or down: the influence functions of all smooth metrics.

Metrics that are a function of the confusion table, means over rows and the AUC have closed influence functions.
"""

from __future__ import annotations

import numpy as np

from evenhand.arrays import FloatArray
from evenhand.intake import Attribute, AuditData
from evenhand.intake.summed_values import VALUES
from evenhand.metrics import Metric
from evenhand.summaries import Sums, cells_of

_STEP = 1e-4  # relative change of a cell in a numerical derivative


def values_of(metric: Metric, data: AuditData) -> FloatArray:
    """Return the value of each record that a mean averages, shape (records,)."""
    score = np.asarray(data.score)
    outcome = score if data.outcome is None else data.outcome  # a value without outcome never looks at it
    return VALUES[metric.value].array(outcome, score)


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
        return weight * table_gradient(metric, data, attribute)[1][attribute.codes, cells_of(data)]
    if metric.kind == "auc":
        return weight * auc_influence(data, attribute, weight * data.count)[1]
    if metric.kind != "mean" or data.moments is not None:
        return None
    values = values_of(metric, data)
    mass = np.bincount(attribute.codes, weights=weight * data.count, minlength=len(attribute.labels))
    total = np.bincount(attribute.codes, weights=weight * data.count * values, minlength=len(attribute.labels))
    mean = total / np.where(mass > 0, mass, 1.0)
    return np.asarray(weight * (values - mean[attribute.codes]) / mass[attribute.codes])


def table_gradient(metric: Metric, data: AuditData, attribute: Attribute) -> tuple[FloatArray, FloatArray]:
    """Return each group's confusion table and the derivative of its value by each cell, both of shape (groups, 4)."""
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
    return table, np.nan_to_num(gradient, nan=0.0, posinf=0.0, neginf=0.0)


def auc_influence(data: AuditData, attribute: Attribute, mass: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return each group's AUC, and DeLong's placements around it over the rows of their side, (groups,) and (records,).

    The AUC is NaN in a group without rows of one outcome.
    """
    score, positive = np.asarray(data.score), np.asarray(data.outcome) == 1
    value, out = np.full(len(attribute.labels), np.nan), np.zeros(len(mass))
    for code in range(len(attribute.labels)):
        mine = np.flatnonzero(attribute.codes == code)
        distinct, place = np.unique(score[mine], return_inverse=True)
        x = np.bincount(place, weights=mass[mine] * positive[mine], minlength=distinct.size)
        y = np.bincount(place, weights=mass[mine] * ~positive[mine], minlength=distinct.size)
        if not (x.sum() > 0 and y.sum() > 0):
            continue
        below = (np.cumsum(y) - y / 2) / y.sum()
        above = (x.sum() - np.cumsum(x) + x / 2) / x.sum()
        value[code] = auc = float(x @ below / x.sum())
        out[mine] = np.where(positive[mine], (below[place] - auc) / x.sum(), (above[place] - auc) / y.sum())
    return value, out
