"""Sufficient statistics in, one value out: the catalogue of metrics and the user's own."""

from evenhand.metrics.catalogue import METRICS, default_metrics, resolve
from evenhand.metrics.metric import CELLS, Metric, cell_metric, row_metric

__all__ = ["CELLS", "METRICS", "Metric", "cell_metric", "default_metrics", "resolve", "row_metric"]
