"""Which metrics are searched where none is named."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.audits.scan.families import can_search
from evenhand.metrics import Metric

_ERRORS = ("fnr", "fpr")


def searched_by_default(able: Sequence[Metric]) -> tuple[Metric, ...]:
    """Return the error rates among the metrics that the columns allow, or else the first that can be searched.

    Examples
    --------
    >>> from evenhand.metrics import METRICS
    >>> [m.name for m in searched_by_default([METRICS[name] for name in ("selection_rate", "fnr", "auc")])]
    ['fnr']
    """
    errors = tuple(metric for metric in able if metric.name in _ERRORS)
    return errors or tuple(metric for metric in able if can_search(metric))[:1]
