"""A document as Markdown: for pull requests and wikis, tables and no charts."""

from __future__ import annotations

import re

from evenhand.report import words
from evenhand.report.detail import Detail, shorten
from evenhand.report.document import Block, Document, Figure, Section, Table, Text, compared, findings_table, shown
from evenhand.results import printable

# Between backticks Markdown shows escapes as they are written: what needs one is quoted instead.
_CODE, _ACTIVE = re.compile(r"(?<!`)`([^`]+)`(?!`)"), re.compile(r"[&<>\\*_\[\]|!#~]")


def markdown_page(page: Document) -> str:
    """Write a document as Markdown."""
    page = shorten(page, Detail())
    parts = [f"# {inert(page.title)}", f"**{inert(page.headline)}**"]
    parts += [_block(item) for item in (*page.opening, *page.summary)]
    for chapter in page.chapters:
        parts += [
            f"## {inert(chapter.title)}",
            f"*{inert(chapter.question)}*",
            *(_block(item) for item in chapter.blocks),
        ]
    for section in page.sections:
        parts += [f"## {section.audit.capitalize()}", f"*{section.question}*"]
        parts += [f"- {inert(answer)}" for answer in section.answers]
        parts += [_block(item) for item in section.blocks if isinstance(item, Text)]
        parts.append(_table(findings_table(section)))
        parts += [f"### Why these verdicts of the {section.audit} audit", _reasons(section)] if section.entries else []
    parts += ["## Data", *(_block(item) for item in page.data), "## Methods", _table(page.tested)]
    parts += [f"**{s.audit.capitalize()}.** {s.method} {' '.join(f'[{k}]' for k in s.sources)}" for s in page.sections]
    parts += ["## References", "\n".join(f"- **{k}** {inert(t)} {a}".rstrip() for k, t, a in page.references)]
    meanings = [*((shown(v), t) for v, t in words.VERDICT_WORDS.items()), *page.glossary]
    parts += ["## Glossary", "\n".join(f"- **{inert(w)}**: {inert(m)}" for w, m in meanings)]
    parts += ["## To repeat this run", _table(page.facts)]
    return "\n\n".join(parts) + "\n"


def _reasons(section: Section) -> str:
    """Say each finding's reason, those that decide nothing included; the same ones as in the table."""
    lines = [
        f"- **{inert(f.measure)}, {inert(compared(f.groups))}**: {inert(shown(f.verdict))}. {inert(f.reason)}"
        for f in (entry.finding for entry in section.entries[: section.most_rows])
    ]
    return "\n".join(lines)


def _block(item: Block) -> str:
    if isinstance(item, Text):
        return {"plain": "", "item": "- "}.get(item.kind, "> ") + inert(item.text)
    return _table(item.table if isinstance(item, Figure) else item)


def _table(table: Table) -> str:
    lines = [" | ".join(inert(name) for name in table.head), " | ".join("---" for _ in table.head)]
    lines += [" | ".join(inert(shown(value)) for value in row) for row in table.rows]
    return f"**{inert(table.title)}**\n\n" + "\n".join(f"| {line} |" for line in lines)


def inert(text: str) -> str:
    r"""Escape what Markdown or HTML inside it would act upon: names come from strangers.

    Parameters
    ----------
    text : str
        What is to be shown as it is.

    Returns
    -------
    str

    Examples
    --------
    >>> inert("<b> *x*")
    '&lt;b&gt; \\*x\\*'
    """
    text = _CODE.sub(lambda match: f'"{match[1]}"' if _ACTIVE.search(match[1]) else match[0], printable(text))
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\*_\[\]|!#~])", r"\\\1", text)
