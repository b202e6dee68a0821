"""Findings as a table, in plain text and in HTML."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

from evenhand.results.finding import Finding

_COLUMNS = ("audit", "measure", "groups", "estimate", "interval", "p", "p adj.", "verdict")
_NUMBERS = ("estimate", "p", "p adj.")


def table_rows(findings: Sequence[Finding]) -> list[tuple[str, ...]]:
    """Return the head and the cells of the table of findings; the audit is named when there are several.

    Parameters
    ----------
    findings : sequence of Finding
        One row each.

    Returns
    -------
    list of tuple of str
        The head first.

    Examples
    --------
    >>> table_rows([Finding(audit="group", measure="fnr", groups=("a", "b"), estimate=0.5)])[1][:3]
    ('fnr', 'a vs b', '0.5000')
    """
    rows = [_COLUMNS, *(_cells(f) for f in findings)]
    first = 0 if len({f.audit for f in findings}) > 1 else 1
    return [tuple(printable(cell) for cell in row[first:]) for row in rows]


def _cells(finding: Finding) -> tuple[str, ...]:
    interval = finding.interval
    return (
        finding.audit,
        finding.measure,
        " vs ".join(finding.groups) if len(finding.groups) <= 2 else f"{len(finding.groups)} groups",
        _short(finding.estimate),
        "" if interval is None else f"[{_short(interval.low)}, {_short(interval.high)}]",
        _short_p(finding.pvalue),
        _short_p(finding.pvalue_adjusted),
        str(finding.verdict),
    )


def text_table(findings: Sequence[Finding]) -> str:
    """Lay findings out as a plain text table.

    Parameters
    ----------
    findings : sequence of Finding
        One row each.

    Returns
    -------
    str

    Examples
    --------
    >>> text_table([Finding(audit="group", measure="fnr", groups=("a", "b"), estimate=0.5)]).splitlines()[0][:14]
    'measure  group'
    """
    head, *rows = table_rows(findings)
    widths = [max(len(row[j]) for row in (head, *rows)) for j in range(len(head))]

    def line(row: tuple[str, ...]) -> str:
        cells = zip(row, widths, head, strict=True)
        return "  ".join(c.rjust(w) if name in _NUMBERS else c.ljust(w) for c, w, name in cells).rstrip()

    return "\n".join([line(head), "  ".join("-" * w for w in widths), *(line(row) for row in rows)])


def html_table(findings: Sequence[Finding]) -> str:
    """Lay findings out as an HTML table; names are escaped.

    Parameters
    ----------
    findings : sequence of Finding
        One row each.

    Returns
    -------
    str

    Examples
    --------
    >>> "<b>" in html_table([Finding(audit="group", measure="<b>", groups=("a", "b"), estimate=0.5)])
    False
    """
    head, *rows = [[html.escape(cell) for cell in row] for row in table_rows(findings)]
    top = "".join(f"<th>{cell}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def printable(text: str) -> str:
    """Replace control characters: names come from strangers and could move the cursor or recolour a terminal.

    Parameters
    ----------
    text : str
        What is to be shown.

    Returns
    -------
    str

    Examples
    --------
    >>> printable("a" + chr(27) + "[31mb")
    'a�[31mb'
    """
    return "".join(c if c.isprintable() else "�" for c in text)


def _short(value: float) -> str:
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:.4f}"


def _short_p(value: float) -> str:
    if math.isnan(value):
        return "–"
    return f"{value:.4f}" if value >= 1e-4 else f"{value:.1e}"
