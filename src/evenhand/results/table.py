"""Findings as a table, in plain text and in HTML."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

from evenhand.results.finding import Finding, without_form

_COLUMNS = ("audit", "measure", "groups", "estimate", "interval", "margin", "p", "p adj.", "verdict")
SMALLEST_P = 1e-16  # what is below is beyond the reach of the arithmetic behind most tests
_NUMBERS = ("estimate", "margin", "p", "p adj.")


def table_rows(findings: Sequence[Finding]) -> list[tuple[str, ...]]:
    """Return the head and the cells of the table of findings; audit and margin only where they say something.

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
    shown = {"audit": len({f.audit for f in findings}) > 1, "margin": any(f.margin is not None for f in findings)}
    kept = [j for j, name in enumerate(_COLUMNS) if shown.get(name, True)]
    return [tuple(printable(row[j]) for j in kept) for row in rows]


def _cells(finding: Finding) -> tuple[str, ...]:
    interval = finding.interval
    return (
        finding.audit,
        finding.measure,
        " vs ".join(finding.groups) if len(finding.groups) <= 2 else f"{len(finding.groups)} groups",
        _short(finding.estimate),
        "" if interval is None else f"[{_short(interval.low)}, {_short(interval.high)}]",
        shown_margin(finding),
        shown_p(finding.pvalue),
        shown_p(finding.pvalue_adjusted),
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
    return text_rows(table_rows(findings), numbers=_NUMBERS)


def text_rows(rows: Sequence[Sequence[str]], *, numbers: Sequence[str] = ()) -> str:
    """Lay rows, the head first, out as a plain text table; columns of numbers stand to the right."""
    head = rows[0]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]

    def line(row: Sequence[str]) -> str:
        cells = zip(row, widths, head, strict=True)
        return "  ".join(c.rjust(w) if name in numbers else c.ljust(w) for c, w, name in cells).rstrip()

    return "\n".join([line(head), "  ".join("-" * w for w in widths), *map(line, rows[1:])])


def html_rows(cells: Sequence[Sequence[str]]) -> str:
    """Lay rows, the head first, out as an HTML table; texts are escaped."""
    head, *rows = [[html.escape(cell) for cell in row] for row in cells]
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
    text = f"{value:.4f}"
    return text if float(text) else text.lstrip("-")  # no zero below zero


def shown_margin(finding: Finding) -> str:
    """Write a finding's margin for reading: both ends where it is a range of ratios.

    Parameters
    ----------
    finding : Finding
        With or without a margin.

    Returns
    -------
    str
        Empty without a margin.

    Examples
    --------
    >>> shown_margin(Finding(audit="group", measure="fnr_ratio", groups=("a", "b"), estimate=1.7, margin=0.8))
    '0.8 to 1.25'
    """
    if finding.margin is None:
        return ""
    if finding.audit == "group" and without_form(finding.measure).endswith("_ratio"):
        low, high = sorted((finding.margin, 1 / finding.margin))
        if finding.groups[-1].endswith("=highest"):
            high = 1.0  # nothing is higher
        return f"{low:.4g} to {high:.4g}"
    return f"{finding.margin:g}"


def shown_p(value: float) -> str:
    """Write a p-value for reading, the same everywhere: below 1e-16 only its size is said.

    Parameters
    ----------
    value : float
        NaN for none.

    Returns
    -------
    str

    Examples
    --------
    >>> shown_p(0.0312), shown_p(2.5e-6), shown_p(1e-300), shown_p(float("nan"))
    ('0.0312', '2.5e-06', '< 1e-16', '–')
    """
    if math.isnan(value):
        return "–"
    if value < SMALLEST_P:
        return f"< {SMALLEST_P:.0e}"
    return f"{value:.4f}" if value >= 1e-4 else f"{value:.1e}"
