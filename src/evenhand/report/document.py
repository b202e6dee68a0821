"""The document: what a report says, before it is HTML or Markdown.

A document is made of sections, a section of blocks: text, tables and figures. Nothing here knows how a
block is drawn, and nothing that draws a block knows what an audit is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evenhand.results import Finding, Verdict

_MOST_ROWS = 1000  # of a table of findings
_LONG = 30  # a longer one is opened by hand


class PValue(float):
    """A p-value: below 1e-16 only its size is shown, all its digits are kept."""


Cell = str | int | float | Verdict | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """One paragraph.

    Parameters
    ----------
    text : str
        Plain text; names in it come from strangers.
    kind : {"plain", "note", "warning"}
        How loud it is.
    """

    text: str
    kind: str = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table; a number keeps all its digits until it is drawn.

    Parameters
    ----------
    title : str
        What the rows are.
    head : tuple of str
        Names of the columns.
    rows : tuple of tuple
        Cells: texts, numbers, verdicts, None for an empty one.
    links : tuple of str
        One per row: where its first cell leads, empty for nowhere.
    folded : bool
        Whether it is opened by hand.
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    links: tuple[str, ...] = ()
    folded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A chart as a Vega-Lite specification.

    Parameters
    ----------
    title : str
        What it shows.
    caption : str
        How to read it.
    spec : mapping
        One view, one layer of marks on another; the width is set where it is drawn.
    table : Table
        The numbers it draws.
    legend : tuple of (str, str)
        Name and colour of each series; a verdict is a name of its own.
    """

    title: str
    caption: str
    spec: Mapping[str, Any]
    table: Table
    legend: tuple[tuple[str | Verdict, str], ...] = ()


Block = Text | Table | Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A finding with its place in the document and the evidence behind it.

    Parameters
    ----------
    key : str
        The anchor of its evidence.
    finding : Finding
        What was found.
    blocks : tuple of block
        Its evidence.
    """

    key: str
    finding: Finding
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One audit's part of the document.

    Parameters
    ----------
    audit : str
        Its name.
    question : str
        What it asks.
    tally : mapping
        Verdict to number of findings.
    answers : tuple of str
        The main findings, a sentence each.
    blocks : tuple of block
        Figures and tables for the whole audit.
    entries : tuple of Entry
        All findings.
    method : str
        How it works, what it assumes, when it fails.
    sources : tuple of str
        Keys of the bibliography.
    """

    audit: str
    question: str
    tally: Mapping[Verdict, int]
    answers: tuple[str, ...]
    blocks: tuple[Block, ...]
    entries: tuple[Entry, ...]
    method: str
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A whole report.

    Parameters
    ----------
    title : str
        Its name.
    headline : str
        The answer in one sentence.
    summary : tuple of Text
        What the answer means and does not mean.
    tally : mapping
        Verdict to number of findings over all audits.
    sections : tuple of Section
        One per audit.
    data : tuple of block
        Rows used and dropped, groups and their sizes.
    facts : Table
        What is needed to repeat the run.
    references : tuple of (key, text, address)
        The bibliography of the methods used.
    glossary : tuple of (word, meaning)
        Words and measures that occur.
    """

    title: str
    headline: str
    summary: tuple[Text, ...]
    tally: Mapping[Verdict, int]
    sections: tuple[Section, ...]
    data: tuple[Block, ...]
    facts: Table
    references: tuple[tuple[str, str, str], ...]
    glossary: tuple[tuple[str, str], ...] = field(default=())


def shown(value: Cell) -> str:
    """Write a cell for reading: four significant digits, no false precision.

    Parameters
    ----------
    value : str, number, Verdict or None
        The cell.

    Returns
    -------
    str

    Examples
    --------
    >>> shown(0.123456), shown(12345), shown(None), shown(1.0e-9)
    ('0.1235', '12,345', '–', '1e-09')
    """
    if value is None or (isinstance(value, float) and value != value):
        return "–"
    if isinstance(value, Verdict):
        return str(value).replace("_", " ")
    if isinstance(value, str):
        return value
    if isinstance(value, PValue) and value < 1e-16:
        return "< 1e-16"
    if isinstance(value, int):
        return f"{value:,}"
    if value in (float("inf"), float("-inf")):
        return "∞" if value > 0 else "−∞"
    if value and abs(value) < 1e-4:
        return f"{value:.2g}"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:.4f}" if abs(value) < 10 else f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"


def p_value(value: float) -> PValue | None:
    """Return a p-value as a cell.

    Parameters
    ----------
    value : float
        NaN for none.

    Returns
    -------
    PValue or None

    Examples
    --------
    >>> shown(p_value(1e-155)), shown(p_value(0.25)), p_value(float("nan"))
    ('< 1e-16', '0.2500', None)
    """
    return None if value != value else PValue(value)


def compared(groups: Sequence[str]) -> str:
    """Name the groups of a finding in few words.

    Parameters
    ----------
    groups : sequence of str
        The reference last.

    Returns
    -------
    str

    Examples
    --------
    >>> compared(["sex=F", "sex=M"]), compared(["a=1", "a=2", "a=3"]), compared([])
    ('sex=F vs sex=M', 'a: 3 groups', 'everybody')
    """
    if not groups:
        return "everybody"
    if len(groups) <= 2:
        return " vs ".join(groups)
    attributes = {g.partition("=")[0] for g in groups}
    return f"{'×'.join(sorted(attributes))}: {len(groups)} groups"


def findings_table(section: Section) -> Table:
    """Return the table of all findings of a section, each with the way to its evidence.

    Parameters
    ----------
    section : Section
        Of one audit.

    Returns
    -------
    Table
    """
    entries = section.entries[:_MOST_ROWS]
    rows: list[tuple[Cell, ...]] = []
    for f in (entry.finding for entry in entries):
        low, high = (None, None) if f.interval is None else (f.interval.low, f.interval.high)
        told = (f.estimate, low, high, p_value(f.pvalue), p_value(f.pvalue_adjusted))
        rows.append((f.measure, compared(f.groups), *told, f.verdict))
    more = "" if len(entries) == len(section.entries) else f", the first {_MOST_ROWS:,} of {len(section.entries):,}"
    return Table(
        title=f"All findings of the {section.audit} audit{more}",
        head=("Measure", "Groups", "Estimate", "Low", "High", "p", "p adjusted", "Verdict"),
        rows=tuple(rows),
        links=tuple(entry.key if entry.blocks else "" for entry in entries),
        folded=len(section.entries) > _LONG,
    )
