"""What a bias audit says: the tables in the words of a form, and what they are and are not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from evenhand.report.bias_audit.tables import BiasTable, Category
from evenhand.report.bibliography import SOURCES
from evenhand.report.compose import compose
from evenhand.report.document import Block, Cell, Chapter, Document, Table, Text, p_value
from evenhand.results import AuditRun, Verdict, printable

_CHOSEN = {"selection_rate": "Selected", "scoring_rate": "Above the median"}
_RATES = {"selection_rate": "Selection rate", "scoring_rate": "Scoring rate"}
_MEANINGS = {
    "selection_rate": "The selection rate is the share of a category's people who were selected.",
    "scoring_rate": "The scoring rate is the share of a category's people whose score lies above the median score of "
    "everybody.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The words of one kind of bias audit."""

    title: str
    category: str  # what a line is called
    people: str  # and those in it
    ratio: str  # and the ratio to the highest rate
    about: tuple[str, ...]  # what the tables are and are not
    marks_small: bool  # whether categories below 2 % are marked
    sources: tuple[str, ...]


FORMS = {
    "ll144": Form(
        title="Bias audit tables, New York City Local Law 144",
        category="Category",
        people="Applicants",
        ratio="Impact ratio",
        marks_small=True,
        about=(
            "These are the tables that the rules for Local Law 144 of New York City (6 RCNY § 5-300 to § 5-304) ask of "
            "a bias audit of an automated employment decision tool: by sex, by race or ethnicity and by both together, "
            "the number of applicants, how many of them were selected or scored above the median, that rate, and the "
            "impact ratio, which is the rate divided by the highest rate in the table.",
            "The tables are not legal advice and no finding of discrimination. They alone are no bias audit in the "
            "sense of the law either: that needs an independent auditor, who also answers for the data, and a "
            "published summary with the source of the data and the date.",
            "The rules name no value from which on an impact ratio would be too low. Four fifths is a convention of "
            "the federal guidelines of 1978 (29 CFR 1607.4 D) and not part of this law; only where a margin of "
            "`four-fifths` was asked for do the verdicts below refer to it.",
            "A category with less than 2 % of the people in its table is marked. The rules allow an independent "
            "auditor to leave such a category out of the impact ratios, with the reason and with its number and rate "
            "in the summary. Here it is left in.",
        ),
        sources=("nyc2023", "eeoc1978"),
    ),
    "bias-audit": Form(
        title="Bias audit tables",
        category="Group",
        people="People",
        ratio="Ratio to the highest",
        marks_small=False,
        about=(
            "The tables give, for each group, its people, how many of them were selected or scored above the median, "
            "that rate, and the rate divided by the highest rate in the table.",
            "They are not legal advice and no finding of discrimination: they say that rates differ, not why. Four "
            "fifths is a convention of the federal guidelines of the United States of 1978 (29 CFR 1607.4 D); only "
            "where a margin of `four-fifths` was asked for do the verdicts below refer to it.",
        ),
        sources=("eeoc1978",),
    ),
}

_INFERENCE = (
    "Interval and verdict stand beside each ratio because a ratio of small numbers can be far from 1 by chance alone. "
    "Which category is the highest is chosen by the same data, and there are several ratios: both are paid for. All "
    "intervals of this page hold together with at least the confidence {confidence:g} %, whichever category truly has "
    "the highest rate. {verdict}"
)
_HELD_BACK = (
    "Some categories are held back, so that no small number is published. Ratios are to the highest rate that is "
    "published: one that is held back may be higher."
)
_PLAIN = "`disparity` says that the ratio is shown to lie below 1; `inconclusive` shows neither."
_MARGIN = (
    "`disparity` says that the ratio is shown to lie below the margin of {margin:g}, `equivalent` that it is shown to "
    "lie above; `inconclusive` shows neither. An interval beside `equivalent` is that of its own, one-sided test."
)


def compose_bias_audit(run: AuditRun, tables: Sequence[BiasTable], form: str) -> Document:
    """Decide what the page of a bias audit says: its tables first, the group audit behind them after."""
    words, page = FORMS[form], compose(run)
    ratios = [c for table in tables for c in table.categories if c.verdict is not None]
    below = sum(c.verdict is Verdict.DISPARITY for c in ratios)
    margin = next((f.margin for f in run.findings if f.margin is not None), None)
    where = "1" if margin is None else f"{margin:g}"
    held = any(c.held_back for table in tables for c in table.categories)
    named = "published ratio" if held else "ratio"
    some = f"{below} of {len(ratios)}" if below else f"None of the {len(ratios)}"
    named += "" if len(ratios) == 1 else "s"
    headline = f"{some} {named} to the highest rate {'are' if below > 1 else 'is'} shown to lie below {where}."
    verdict = _PLAIN if margin is None else _MARGIN.format(margin=margin)
    inference = _INFERENCE.format(confidence=100 * (1 - float(run.plan["alpha"])), verdict=verdict)
    about: list[Block] = [Text(text=text) for text in (*words.about, _MEANINGS[tables[0].metric], inference)]
    if form == "ll144" and len(tables) < 3:
        shown_here = " and ".join(f"`{table.attribute}`" for table in tables)
        asked = (
            f"The rules ask for three tables: sex, race or ethnicity, and both together. Here there is {shown_here}."
        )
        about.append(Text(text=asked, kind="warning"))
    chapters = [
        _chapter(f"table-{j}", table, printed, words)
        for j, (table, printed) in enumerate(zip(tables, printed_tables(tables, form), strict=True), 1)
    ]
    chapters.append(
        Chapter(
            key="about", title="About these tables", question="What do they say, and what not?", blocks=tuple(about)
        )
    )
    sources = [(key, str(SOURCES[key]), SOURCES[key].address) for key in words.sources]
    return replace(
        page,
        title=words.title,
        headline=headline,
        summary=(
            Text(text="The tables are not legal advice and no finding of discrimination.", kind="note"),
            *([Text(text=_HELD_BACK, kind="warning")] if held else []),
        ),
        opening=(),
        chapters=tuple(chapters),
        references=(*sources, *page.references),
    )


def printed_tables(tables: Sequence[BiasTable], form: str) -> list[Table]:
    """Return the tables in the words of a form, with all digits, as every file shows them."""
    words = FORMS[form]
    printed = []
    for table in tables:
        head = (
            words.category,
            words.people,
            "Share",
            _CHOSEN[table.metric],
            _RATES[table.metric],
            words.ratio,
            "Low",
            "High",
            "p adjusted",
            "Verdict",
            "Note",
        )
        rows = [_row(category, words) for category in table.categories]
        if table.unknown != 0:
            note = "not in the calculations" if table.unknown is not None else "held back"
            rows.append(("(unknown)", table.unknown, *[None] * 8, note))
        printed.append(Table(title=f"By {printable(table.attribute)}", head=head, rows=tuple(rows)))
    return printed


def _row(category: Category, words: Form) -> tuple[Cell, ...]:
    low, high = (None, None) if category.interval is None else (category.interval.low, category.interval.high)
    return (
        printable(category.label),
        category.people,
        category.share,
        category.chosen,
        category.rate,
        category.ratio,
        low,
        high,
        p_value(category.pvalue_adjusted),
        category.verdict,
        "; ".join(_notes(category, words)),
    )


def _notes(category: Category, words: Form) -> list[str]:
    if category.held_back:
        return ["held back"]
    notes = ["highest rate"] if category.verdict is None and category.ratio == 1 else []
    notes += ["below 2 % of the people"] if words.marks_small and category.small else []
    notes += ["no ratio: every rate is 0"] if category.rate == 0 and category.ratio != category.ratio else []
    return notes


def _chapter(key: str, table: BiasTable, printed: Table, words: Form) -> Chapter:
    rates = f"{_RATES[table.metric]}s"
    return Chapter(
        key=key,
        title=printed.title,
        question=f"How does each {rates.lower()[:-1]} compare with the highest one?",
        blocks=(replace(printed, title=f"{rates} {printed.title.replace('By', 'by', 1)}"), *_remarks(table, words)),
    )


def _remarks(table: BiasTable, words: Form) -> list[Text]:
    """Say what a reader of one table should know."""
    said = []
    if any(c.chosen is None and c.rate == c.rate for c in table.categories):
        said.append(Text(text="The rates are those of the sampling weights; people are counted as rows.", kind="note"))
    if table.unknown:
        people = "person whose" if table.unknown == 1 else "people whose"
        text = f"The calculations leave out {table.unknown:,} {people} {words.category.lower()} is not known."
        said.append(Text(text=text, kind="note"))
    if words.marks_small and table.highest is not None and table.highest.small:
        said.append(
            Text(
                text=f"The highest rate is that of `{table.highest.label}`, which has {table.highest.share:.1%} of the "
                "people: every ratio here rests on a small category. The intervals allow for that.",
                kind="warning",
            )
        )
    return said
