"""The document: what a report says, before it is HTML or Markdown.

A document is made of sections, a section of blocks: text, tables and figures. Nothing here knows how a
block is drawn, and nothing that draws a block knows what an audit is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evenhand.results import Finding, Interval, Verdict, shown_margin, shown_p

_LONG = 30  # a longer one is opened by hand


class PValue(float):
    """A p-value, shown as everywhere by `evenhand.results.shown_p`; all its digits are kept."""


Cell = str | int | float | Verdict | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """One paragraph."""

    text: str  # plain text; names in it come from strangers
    kind: str = "plain"  # "plain", "note", "warning": how loud it is; "item": one of a list


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table; a number keeps all its digits until it is drawn."""

    title: str  # what the rows are
    head: tuple[str, ...]  # names of the columns
    rows: tuple[tuple[Cell, ...], ...]  # cells: texts, numbers, verdicts, None for an empty one
    links: tuple[str, ...] = ()  # one per row: the address to which its first cell leads, empty for nowhere
    folded: bool = False  # whether it is opened by hand


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A chart as a Vega-Lite specification."""

    title: str  # what it shows
    caption: str  # how to read it
    spec: Mapping[str, Any]  # one view, one layer of marks on another; the width is set where it is drawn
    table: Table  # the numbers it draws
    legend: tuple[tuple[str | Verdict, str], ...] = ()  # name and colour of each series; a verdict is a name of its own


Block = Text | Table | Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A finding with its place in the document and the evidence behind it."""

    key: str  # the anchor of its evidence
    finding: Finding  # what was found
    blocks: tuple[Block, ...]  # its evidence
    interval: Interval | None = None  # at the level at which the verdict was reached
    inside: float = math.nan  # adjusted p-value for lying outside the margin; NaN without one


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One audit's part of the document."""

    audit: str  # its name
    question: str  # what it asks
    tally: Mapping[Verdict, int]  # verdict to number of findings
    answers: tuple[str, ...]  # the main findings, a sentence each
    blocks: tuple[Block, ...]  # figures and tables for the whole audit
    entries: tuple[Entry, ...]  # all findings
    method: str  # how it works, what it assumes, when it fails
    sources: tuple[str, ...]  # keys of the bibliography
    most_rows: int = 1000  # findings in its table; the others are in `findings.json`


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """A part of a document that is about no audit of its own."""

    key: str  # its anchor
    title: str
    question: str  # what it answers
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A whole report."""

    title: str  # its name
    headline: str  # the answer in one sentence
    summary: tuple[Text, ...]  # what the answer means and does not mean
    tally: Mapping[Verdict, int]  # verdict to number of findings over all audits
    sections: tuple[Section, ...]  # one per audit
    data: tuple[Block, ...]  # rows used and dropped, groups and their sizes
    tested: Table  # the null hypotheses
    facts: Table  # what is needed to repeat the run
    references: tuple[tuple[str, str, str], ...]  # (key, text, address): the bibliography of the methods used
    glossary: tuple[tuple[str, str], ...] = field(default=())  # (word, meaning): words and measures that occur
    chapters: tuple[Chapter, ...] = ()  # what comes before the audits
    opening: tuple[Text, ...] = ()  # below the headline: who, how many, how sure, what next


def shown(value: Cell) -> str:
    """Write a cell for reading: four significant digits, no false precision.

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
    if isinstance(value, PValue):
        return shown_p(value)
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
    """Return a p-value as a cell, None where it is NaN.

    Examples
    --------
    >>> shown(p_value(1e-155)), shown(p_value(0.25)), p_value(float("nan"))
    ('< 1e-16', '0.2500', None)
    """
    return None if value != value else PValue(value)


def compared(groups: Sequence[str]) -> str:
    """Name the groups of a finding, the reference last, in few words.

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
    """Return the table of all findings of a section, each with the way to its evidence."""
    entries = section.entries[: section.most_rows]
    plain = any(entry.finding.interval is not None for entry in entries)
    adjusted = any(entry.interval is not None for entry in entries)
    margins = any(entry.finding.margin is not None for entry in entries)
    rows: list[tuple[Cell, ...]] = []
    for entry in entries:
        f = entry.finding
        cells: list[Cell] = [f.measure, compared(f.groups), f.estimate]
        cells += _ends(f.interval) if plain else ()
        cells += _ends(entry.interval) if adjusted else ()
        cells += [shown_margin(f) or None] if margins else ()
        cells += [p_value(f.pvalue), p_value(f.pvalue_adjusted)]
        cells += [p_value(entry.inside)] if margins else ()
        rows.append((*cells, f.verdict))
    left_out = len(section.entries) - len(entries)
    more = f", the first {len(entries):,} of {len(section.entries):,}" if left_out else ""
    head = ["Measure", "Groups", "Estimate", *(["Low", "High"] if plain else [])]
    head += ["Low adjusted", "High adjusted"] if adjusted else []
    head += ["Margin", "p beyond", "p beyond adjusted", "p inside adjusted"] if margins else ["p", "p adjusted"]
    return Table(
        title=f"All findings of the {section.audit} audit{more}",
        head=(*head, "Verdict"),
        rows=tuple(rows),
        links=tuple(f"#{entry.key}" if entry.blocks else "" for entry in entries),
        folded=len(section.entries) > _LONG,
    )


def _ends(interval: Interval | None) -> tuple[Cell, Cell]:
    return (None, None) if interval is None else (interval.low, interval.high)
