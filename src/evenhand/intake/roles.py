"""Which column is what: a proposal for a person to check, from names and from a bounded look at the values."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.intake.columns import Column
from evenhand.intake.dependence import names_people
from evenhand.intake.favourable import favourable_of
from evenhand.intake.glimpse import Glimpse, glimpse
from evenhand.intake.lookalikes import MANY_GROUPS, group_notes
from evenhand.intake.role_words import MISSING_MARKS, WORDS, pointing
from evenhand.intake.wording import count_of, listing, number_text
from evenhand.results import printable

ROLES = ("outcome", "decision", "score", "group", "weight", "feature", "identifier", "none")
_SHOWN = 5  # values shown of each column
_MOST_LABELS = 10  # more labels are no outcome and no decision
_MOST_CODES = 6  # a number with more values is measured, and not a code for groups
_LONGEST = 60  # characters of a value that are shown
_ENOUGH = 20  # rows from which "every row has another value" means something
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([T ].*)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedColumn:
    """What one column holds and what it is probably for."""

    name: str
    kind: str  # one of "number", "whole number", "true or false", "text", "date", "empty"
    values: tuple[tuple[str, int], ...]  # the most frequent ones and how often they occur, for showing
    distinct: int  # how many there are among the rows looked at
    missing: int  # rows without a value, among those looked at
    role: str  # one of `ROLES`
    reason: str  # why, as a sentence for a person to check
    labels: tuple[str, ...] = ()  # of an outcome or a decision, as they are in the file
    favourable: str | None = None  # the label that is proposed to count as 1; None where a person must say it
    favourable_reason: str = ""
    cuts: tuple[float, ...] = ()  # of a group that is a number: where to cut it
    note: str = ""  # what looks odd


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What the columns of a file are probably for."""

    columns: tuple[ProposedColumn, ...]
    rows: int | None  # of the file; None where nobody counted them
    exact: bool  # whether they were counted and not estimated
    seen: int  # rows looked at
    notes: tuple[str, ...]  # what a person should know before checking

    def of_role(self, role: str) -> tuple[ProposedColumn, ...]:
        """Return the columns that a role is proposed for."""
        return tuple(column for column in self.columns if column.role == role)

    def options(self) -> dict[str, Any]:
        """Return the proposal in the words of `evenhand.read`, for what a person has agreed to."""
        said: dict[str, Any] = {
            role: self.of_role(role)[0].name
            for role in ("outcome", "decision", "score", "weight")
            if self.of_role(role)
        }
        if "weight" in said:
            said["weight_kind"] = "sampling"
        groups = self.of_role("group")
        said["groups"] = [column.name for column in groups]
        positive = {c.role: c.favourable for c in self.columns if c.favourable is not None}
        cuts = {column.name: list(column.cuts) for column in groups if column.cuts}
        return said | ({"positive": positive} if positive else {}) | ({"cuts": cuts} if cuts else {})


def propose_roles(path: str | Path, *, sheet: str | None = None) -> Proposal:
    r"""Say what each column of a file holds and what it is probably for.

    Nothing is decided: each proposal has a reason in words, for a person to check. At most 20,000 rows are looked at,
    from ten places of a large file, so that the answer comes at once whatever the size.

    Parameters
    ----------
    path : str or Path
        CSV, TSV (also gzipped), Parquet, Arrow or Excel.
    sheet : str, optional
        Of a workbook; the first visible one by default.

    Returns
    -------
    Proposal

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "loans.csv"
    ...     _ = file.write_text("sex,income,repaid,approved\n" + "F,31.5,yes,1\nM,40.25,no,0\nF,8.5,no,1\n" * 9)
    ...     proposal = propose_roles(file)
    >>> [(column.name, column.role) for column in proposal.columns]
    [('sex', 'group'), ('income', 'feature'), ('repaid', 'outcome'), ('approved', 'decision')]
    >>> proposal.options()["positive"]
    {'outcome': 'yes', 'decision': '1'}
    """
    held = glimpse(Path(path), sheet)
    seen = [_described(name, column, held.seen) for name, column in held.columns.items()]
    chosen = _single_roles(seen, held.columns)
    proposed = [_proposed(column, held.columns[column.name], chosen) for column in seen]
    proposed = _without_doubled_age(proposed)
    proposed = [_with_favourable(column, held.columns, chosen) for column in proposed]
    return Proposal(
        columns=tuple(proposed),
        rows=held.rows,
        exact=held.exact,
        seen=held.seen,
        notes=tuple(_notes(held, proposed)),
    )


def _described(name: str, column: Column, seen: int) -> ProposedColumn:
    """Say what a column holds."""
    codes, distinct = column.distinct()
    counts = np.bincount(codes + 1, minlength=len(distinct) + 1)
    order = np.argsort(-counts[1:], kind="stable")[:_SHOWN]
    shown = tuple((_shown(column.text(distinct[i])), int(counts[1 + i])) for i in order)
    marks = [column.text(v) for v in distinct if column.text(v).strip().casefold() in MISSING_MARKS]
    note = ""
    if marks and column.kind == "label":
        note = f"{listing(marks)} may mean that the value is not known; it is read as a label like any other."
    return ProposedColumn(
        name=name,
        kind=_kind(column, distinct),
        values=shown,
        distinct=len(distinct),
        missing=int(counts[0]) if len(codes) else seen,
        role="none",
        reason="",
        note=note,
    )


def _shown(text: str) -> str:
    safe = printable(text)
    return safe if len(safe) <= _LONGEST else safe[: _LONGEST - 1] + "…"


def _kind(column: Column, distinct: Sequence[float] | Sequence[str]) -> str:
    if not distinct:
        return "empty"
    if column.kind == "truth":
        return "true or false"
    if column.kind == "number":
        return "whole number" if all(float(v).is_integer() for v in distinct) else "number"
    return "date" if all(_DATE.fullmatch(str(v).strip()) for v in distinct) else "text"


def _single_roles(columns: Sequence[ProposedColumn], held: Mapping[str, Column]) -> dict[str, str]:
    """Return the one column of each role that only one column has: the strongest name.

    Of equal names the last one is the outcome or the decision, which usually stand at the end; others are the first.
    """
    chosen: dict[str, str] = {}
    for role, fits in (("decision", _few_labels), ("outcome", _few_labels), ("score", _scores), ("weight", _weighs)):
        candidates = [
            (pointing(c.name, role) + _bonus(c, role, held), i if fits is _few_labels else -i, c.name)
            for i, c in enumerate(columns)
            if pointing(c.name, role) and fits(c, held[c.name]) and c.name not in chosen.values()
        ]
        if candidates:
            chosen[role] = max(candidates)[2]
    last = columns[-1] if columns else None
    if (
        "outcome" not in chosen
        and last is not None
        and last.distinct == 2
        and last.name not in chosen.values()
        and not pointing(last.name, "group")
    ):
        chosen["outcome"] = last.name
    return chosen


def _bonus(column: ProposedColumn, role: str, held: Mapping[str, Column]) -> float:
    """Prefer two labels to more, and among scores those that are probabilities."""
    if role in ("outcome", "decision"):
        return 0.5 if column.distinct == 2 else 0.0
    values = held[column.name].values
    known = values[~np.isnan(values)]
    return 0.5 if role == "score" and known.min() >= 0 and known.max() <= 1 else 0.0


def _few_labels(column: ProposedColumn, held: Column) -> bool:
    most = 2 if held.kind == "number" else _MOST_LABELS
    return 2 <= column.distinct <= most and column.kind != "date"


def _scores(column: ProposedColumn, held: Column) -> bool:
    return held.kind == "number" and column.distinct > 2


def _weighs(column: ProposedColumn, held: Column) -> bool:
    return held.kind == "number" and column.distinct > 1 and float(np.nanmin(held.values)) >= 0


_REASONS = {
    "outcome": "Its name says what happened to a person, and it has {labels}.",
    "decision": "Its name says what was decided, and it has {labels}.",
    "score": "Its name says that it is a score, and it holds numbers. Check that it is the model's own score and not "
    "one of its inputs.",
    "weight": "Its name is that of survey weights: how many people of a population a row stands for.",
}


def _proposed(column: ProposedColumn, held: Column, chosen: Mapping[str, str]) -> ProposedColumn:
    """Give one column its role and the reason."""
    role = next((role for role, name in chosen.items() if name == column.name), None)
    if role is not None:
        labels = held.texts()[1] if role in ("outcome", "decision") else ()
        reason = _REASONS[role].format(labels=count_of(column.distinct, "label"))
        if role == "outcome" and not pointing(column.name, "outcome"):
            reason = "It is the last column and has two values, as outcomes often do. Its name does not say so."
        return replace(column, role=role, reason=reason, labels=labels)
    if column.distinct < 2:
        word = "no value" if column.distinct == 0 else "the same value"
        return replace(column, reason=f"It has {word} in every row that was looked at.")
    if column.kind == "date":
        return replace(column, reason="It holds dates.")
    if pointing(column.name, "group"):
        return _as_group(column, held)
    if _identifies(column, held):
        return replace(column, role="identifier", reason="It tells people apart: its name or its values say so.")
    also = [role for role in chosen if pointing(column.name, role) and not _is_measured(column, held, role)]
    reason = "Nothing in its name says that it is anything else: an input of the model, or not needed."
    if "weight" in column.name.casefold() and held.kind == "number":
        reason = "It could be a survey weight or the weight of a body; say which."
    elif also:
        reason = f"It could also be the {also[0]}; `{chosen[also[0]]}` was proposed in its place."
    return replace(column, role="feature", reason=reason)


def _is_measured(column: ProposedColumn, held: Column, role: str) -> bool:
    return role in ("outcome", "decision") and not _few_labels(column, held)


def _as_group(column: ProposedColumn, held: Column) -> ProposedColumn:
    """Propose groups of people: as they are, cut where they are numbers, or not at all where they are too many."""
    word = "Its name is that of a trait by which people are often treated differently."
    cuts = _thirds(held) if held.kind == "number" and column.distinct > _MOST_CODES else ()
    if column.distinct <= MANY_GROUPS and not cuts:
        odd = group_notes(column.name, held.texts()[1], numeric=held.kind == "number")
        return replace(column, role="group", reason=word, note=" ".join([column.note, *odd]).strip())
    if cuts:
        where = " and ".join(number_text(cut) for cut in cuts)
        said = f"{word} It is a number, so it is cut at {where}: about equally many people on each side."
        return replace(column, role="group", reason=said, cuts=cuts)
    said = f"{word} But it has {count_of(column.distinct, 'value')}: join some of them to compare groups."
    return replace(column, role="feature", reason=said)


def _thirds(held: Column) -> tuple[float, ...]:
    """Return whole numbers that divide people into three groups of about the same size, where there are such."""
    known = held.values[~np.isnan(held.values)]
    cuts = sorted({float(math.ceil(q)) for q in np.quantile(known, [1 / 3, 2 / 3])})
    return tuple(cut for cut in cuts if known.min() < cut <= known.max())


def _identifies(column: ProposedColumn, held: Column) -> bool:
    known = len(held) - column.missing
    if known < _ENOUGH:
        return False
    if names_people(column.name) and column.distinct >= _ENOUGH:
        return True
    if column.kind == "text":
        return column.distinct > 0.9 * known
    if column.kind != "whole number" or column.distinct < known:
        return False
    steps = np.diff(held.values[~np.isnan(held.values)])
    return bool((steps > 0).all())


def _without_doubled_age(columns: Sequence[ProposedColumn]) -> list[ProposedColumn]:
    """Leave out a number that has to be cut where another column holds the same trait in groups."""
    traits = [{w for w in WORDS["group"] if pointing(c.name, "group") and w in c.name.casefold()} for c in columns]
    kept = []
    for column, trait in zip(columns, traits, strict=True):
        others = (
            c.name for c, t in zip(columns, traits, strict=True) if c.role == "group" and not c.cuts and t & trait
        )
        other = next(others, None) if column.cuts else None
        if other is not None:
            reason = f"It is a number, and `{other}` holds the same trait in groups."
            column = replace(column, role="feature", reason=reason, cuts=())
        kept.append(column)
    return kept


def _with_favourable(column: ProposedColumn, held: Mapping[str, Column], chosen: Mapping[str, str]) -> ProposedColumn:
    """Propose which label counts as 1."""
    if not column.labels:
        return column
    score = chosen.get("score")
    label, reason = favourable_of(column.name, held[column.name], None if score is None else held[score], score)
    return replace(column, favourable=label, favourable_reason=reason)


def _notes(held: Glimpse, columns: Sequence[ProposedColumn]) -> list[str]:
    """Say what was looked at and what looks wrong with the whole."""
    notes = []
    if not held.whole:
        of = "" if held.rows is None else f" of {'' if held.exact else 'about '}{held.rows:,}"
        notes.append(f"Counts and values come from {held.seen:,}{of} rows; the audit reads all of them.")
    numeric = [column.name for column in columns if re.fullmatch(r"-?\d+(\.\d+)?", column.name.strip())]
    if len(numeric) > 1:
        notes.append(
            f"The first line ({listing(numeric, 3)}) looks like a row and not like names of columns. Write names above "
            "the rows."
        )
    if any(not column.name.strip() for column in columns):
        notes.append("A column has no name; give it one if it is needed.")
    for role, word in (("outcome", "what really happened"), ("group", "groups of people")):
        if not any(column.role == role for column in columns):
            notes.append(f"No column looks like {word}; choose it yourself if there is one.")
    if not any(column.role in ("decision", "score") for column in columns):
        notes.append("No column looks like a decision or a score; choose it yourself if there is one.")
    people = next((c for c in columns if c.role == "identifier" and c.distinct < held.seen - c.missing), None)
    if people is not None and names_people(people.name):
        notes.append(
            f"`{people.name}` names people and some of its values occur in several rows: say that rows with the same "
            "value belong together, so that nobody is counted as several people."
        )
    return notes
