"""A reproduction as a document: for each item its figures, and what is printed beside what was computed."""

from __future__ import annotations

from collections.abc import Mapping

from evenhand.report.bibliography import SOURCES
from evenhand.report.document import Block, Cell, Chapter, Document, Table, Text
from evenhand.reproductions.paper import Claim, Item, Paper, Stored

_HEAD = ("Claim", "Printed", "Ours", "Reached", "Judged by", "Remark")


def tally(claims: list[Claim]) -> tuple[int, int]:
    """Return how many claims are reached, and of how many.

    Examples
    --------
    >>> tally([Claim(claim="", printed="1", ours="1", reached="yes", rule="equal")])
    (1, 1)
    """
    counted = [c for c in claims if c.reached != "not claimed"]
    return sum(c.reached == "yes" for c in counted), len(counted)


def compose_reproduction(
    paper: Paper, results: Mapping[str, Stored], problems: Mapping[str, str] | None = None
) -> Document:
    """Decide what the page of a reproduction says.

    Parameters
    ----------
    paper : Paper
        The paper.
    results : mapping of str to Stored
        By item.
    problems : mapping of str to str, optional
        Items that could not run.

    Returns
    -------
    Document
    """
    claims = [claim for _, claim in paper.claims(results)]
    reached, counted = tally(claims)
    chapters = [_chapter(item, results[item.name]) for item in paper.items if item.name in results]
    missing = [Text(text=text, kind="warning") for text in (problems or {}).values()]
    source = SOURCES[paper.key]
    settings = [
        (name, "; ".join(f"{k} = {v}" for k, v in s.settings.items()), s.version, s.seconds)
        for name, s in results.items()
    ]
    return Document(
        title=f"Reproduction of {paper.key}",
        headline=f"{reached} of {counted} claims are reached.",
        summary=(Text(text=paper.title), *missing),
        tally={},
        sections=(),
        data=tuple(Text(text=note) for note in paper.notes) or (Text(text="Nothing more is known of its print."),),
        tested=Table(
            title="What was computed",
            head=("Item", "What it is", "Minutes of the full form, about"),
            rows=tuple((item.name, item.title, item.minutes) for item in paper.items),
        ),
        facts=Table(
            title="To repeat this run",
            head=("Item", "Settings", "Version", "Processor seconds"),
            rows=tuple(settings),
        ),
        references=((paper.key, str(source), source.address),),
        chapters=tuple(chapters),
    )


def _chapter(item: Item, stored: Stored) -> Chapter:
    blocks: list[Block] = list(item.figures(stored.result))
    claims = item.claims(stored.result, stored.settings)
    if claims:
        rows: tuple[tuple[Cell, ...], ...] = tuple(_row(c) for c in claims)
        blocks.append(Table(title="Printed, and ours", head=_HEAD, rows=rows))
    return Chapter(
        key=item.name, title=item.name.replace("-", " ").capitalize(), question=item.title, blocks=tuple(blocks)
    )


def _row(c: Claim) -> tuple[Cell, ...]:
    return (c.claim, c.printed, c.ours, c.reached, c.rule, c.remark)


def claims_table(paper: Paper, results: Mapping[str, Stored]) -> str:
    """Return the claims of a paper as a Markdown table, and how many are reached.

    Parameters
    ----------
    paper : Paper
        The paper.
    results : mapping of str to Stored
        By item.

    Returns
    -------
    str
    """
    pairs = paper.claims(results)
    reached, counted = tally([c for _, c in pairs])
    lines = ["| Item | " + " | ".join(_HEAD) + " |", "|" + " --- |" * (len(_HEAD) + 1)]
    for item, claim in pairs:
        cells = (item.name, *(str(c) for c in _row(claim)))
        lines.append("| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |")
    return f"{reached} of {counted} claims are reached.\n\n" + "\n".join(lines) + "\n"
