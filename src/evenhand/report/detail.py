"""How much of a document is laid out: a page stays small enough to be sent, whatever was audited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from evenhand.report.document import Block, Document, Figure, Section, Table, Text
from evenhand.results import Finding, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """How much of a run a report lays out; the rest is in ``findings.json``."""

    evidence: int = 150  # findings with their evidence; those that decide come first
    figures: int = 100  # charts of one audit
    rows: int = 1000  # rows of one table of findings or groups


def shorten(page: Document, detail: Detail) -> Document:
    """Leave out of a document what is beyond a limit, and say so where it was."""
    kept = set(first_findings([entry.finding for s in page.sections for entry in s.entries], detail.evidence))
    sections, number = [], 0
    for section in page.sections:
        sections.append(_shorter(section, range(number, number + len(section.entries)), kept, detail))
        number += len(section.entries)
    facts, *groups = page.data
    data = (facts, *(_fewer_rows(block, detail.rows) for block in groups))
    return replace(page, sections=tuple(sections), data=data)


def first_findings(findings: Sequence[Finding], most: int) -> list[int]:
    """Choose the findings whose evidence is laid out: those that decide come first."""
    order = sorted(range(len(findings)), key=lambda j: (findings[j].verdict is Verdict.INCONCLUSIVE, j))
    return order[:most]


def _shorter(section: Section, places: range, kept: set[int], detail: Detail) -> Section:
    entries = tuple(
        entry if j in kept else replace(entry, blocks=()) for j, entry in zip(places, section.entries, strict=True)
    )
    return replace(
        section, entries=entries, blocks=_fewer_figures(section.blocks, detail.figures), most_rows=detail.rows
    )


def _fewer_figures(blocks: tuple[Block, ...], most: int) -> tuple[Block, ...]:
    """Keep the first figures and say how many are left out."""
    left_out = [block for block in blocks if isinstance(block, Figure)][most:]
    if not left_out:
        return blocks
    gone = {id(block) for block in left_out}
    said = f"{len(left_out)} charts are left out to keep the page small; their numbers are in findings.json."
    return (*(block for block in blocks if id(block) not in gone), Text(text=said, kind="note"))


def _fewer_rows(block: Block, most: int) -> Block:
    if not isinstance(block, Table) or len(block.rows) <= most:
        return block
    title = f"{block.title}, the first {most:,} of {len(block.rows):,}"
    return replace(block, title=title, rows=block.rows[:most])
