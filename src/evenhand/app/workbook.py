"""A report's tables as an Excel workbook."""

from __future__ import annotations

from evenhand.report.document import Document, Table, Text, findings_table
from evenhand.report.spreadsheet import xlsx_of


def workbook(page: Document) -> bytes:
    """Return the findings of each audit and the tables about the data, one sheet each, after a sheet of sentences."""
    sentences = [block for block in (*page.opening, *page.summary) if isinstance(block, Text)]
    about = [page.title, page.headline, *(sentence.text for sentence in sentences)]
    findings = [_titled(findings_table(section), f"{section.audit} findings") for section in page.sections]
    of_data = [block for block in page.data if isinstance(block, Table)]
    return xlsx_of([*findings, *of_data, page.tested, page.facts], about)


def _titled(table: Table, title: str) -> Table:
    return Table(title=title, head=table.head, rows=table.rows)
