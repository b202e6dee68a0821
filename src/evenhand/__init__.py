"""Evenhand: is what we see unfair treatment, or noise, and how sure are we?"""

from importlib.metadata import version as _version

from evenhand import datasets, similarity
from evenhand.audits.group import audit_group
from evenhand.audits.individual import audit_individual
from evenhand.audits.projection import audit_projection
from evenhand.audits.projection_boundary import Distances
from evenhand.audits.projection_criteria import Criterion
from evenhand.audits.proxy import audit_proxy
from evenhand.audits.tail import audit_tail
from evenhand.errors import (
    DataError,
    EvenhandError,
    EvenhandWarning,
    MissingDependencyError,
    UsageError,
)
from evenhand.intake import AuditData, read
from evenhand.metrics import METRICS, Metric, cell_metric, row_metric
from evenhand.plan import Plan
from evenhand.results import AuditResult, AuditRun, Finding, Interval, Verdict
from evenhand.run import audit

__version__ = _version("evenhand")

__all__ = [
    "METRICS",
    "AuditData",
    "AuditResult",
    "AuditRun",
    "Criterion",
    "DataError",
    "Distances",
    "EvenhandError",
    "EvenhandWarning",
    "Finding",
    "Interval",
    "Metric",
    "MissingDependencyError",
    "Plan",
    "UsageError",
    "Verdict",
    "audit",
    "audit_group",
    "audit_individual",
    "audit_projection",
    "audit_proxy",
    "audit_tail",
    "cell_metric",
    "datasets",
    "read",
    "row_metric",
    "similarity",
]
