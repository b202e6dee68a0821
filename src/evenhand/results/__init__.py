"""The one answer every audit gives: findings, and the verdict on each.

A `Finding` is one row of the answer. An `AuditResult` is the findings of one audit with the evidence
behind each; an `AuditRun` is several audits on one error budget with all that is needed to repeat it.
"""

from evenhand.results.display import Displayed
from evenhand.results.evidence import Evidence
from evenhand.results.finding import Finding, Interval, Verdict, plain
from evenhand.results.findings import Findings
from evenhand.results.run import SCHEMA, AuditResult, AuditRun
from evenhand.results.table import printable, shown_margin, shown_p, table_rows, text_table

__all__ = [
    "SCHEMA",
    "AuditResult",
    "AuditRun",
    "Displayed",
    "Evidence",
    "Finding",
    "Findings",
    "Interval",
    "Verdict",
    "plain",
    "printable",
    "shown_margin",
    "shown_p",
    "table_rows",
    "text_table",
]
