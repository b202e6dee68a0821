"""From an `AuditRun` to a page: document first, then HTML, Markdown or JUnit."""

from evenhand.report.html import to_html
from evenhand.report.junit import to_junit
from evenhand.report.markdown import to_markdown

__all__ = ["to_html", "to_junit", "to_markdown"]
