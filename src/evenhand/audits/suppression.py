"""Data that may be shared: count tables in which no small count is left, and from which none can be worked out.

A group of which some count lies below the threshold is held back whole, and so are further groups until nobody can
find the counts that were held back by subtracting those that were not (`evenhand.kernels.counts.protection`). What is
left is made into new data from the published counts alone. An audit of these data cannot betray the others: whatever it
computes, in however many digits, is a function of counts that stand in the report anyway. That is why the data are
reduced before the audit and not the report after it: an adjusted p-value or a ratio to the highest rate of all groups
would carry the counts of the groups that are not shown.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenhand.arrays import BoolArray, IntArray, read_only
from evenhand.errors import DataError, UsageError
from evenhand.intake import Attribute, AuditData
from evenhand.intake.parts import RowCounts
from evenhand.kernels.counts.protection import held_back
from evenhand.metrics import METRICS, Metric, default_metrics, resolve
from evenhand.summaries import cells_of, group_sizes

_COUNTED = ("rate", "table", "gaps")  # kinds of metric that are functions of the four counts of each group
_MOST_PARTS = 1000  # combinations of groups; beyond, the linear programmes take minutes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shareable:
    """What may be published of some data."""

    parts: tuple[AuditData, ...]  # one per attribute of which two groups are left, made of published counts alone
    metrics: tuple[Metric, ...]  # what may be asked of them
    rows: RowCounts
    known: Mapping[str, int]  # attribute to its number of groups, published or not
    groups: Mapping[str, Mapping[str, int]]  # attribute to published group to its rows
    suppressed: Mapping[str, tuple[str, ...]]  # attribute to the groups held back; only those with some
    threshold: int
    kinds: int  # counts that are held back with each group
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Say what is held back as plain data, for the run."""
        held = sum(map(len, self.suppressed.values()))
        listed = {name: list(labels) for name, labels in self.suppressed.items()}
        return {"threshold": self.threshold, "groups": listed, "cells": held * self.kinds}

    def questions_held_back(self, *, pairs: bool, together: bool) -> int:
        """Count the comparisons that an audit of all groups would make beside those that are published.

        Parameters
        ----------
        pairs : bool
            Whether all pairs of groups are compared, and not each with a reference.
        together : bool
            Whether more than two groups are also compared all at once.
        """

        def asked(groups: Mapping[str, int]) -> int:
            ones = [n * (n - 1) // 2 if pairs else n - 1 for n in groups.values()]
            return sum(ones) + sum(together and n > 2 for n in groups.values())

        published = {name: n for part in self.parts for name, n in known_groups(part).items()}
        return len(self.metrics) * (asked(self.known) - asked(published))


def known_groups(data: AuditData) -> dict[str, int]:
    """Return the number of groups of each attribute; people of unknown group are none."""
    return {a.name: len(a.labels) - (a.unknown is not None) for a in data.attributes}


def shareable(data: AuditData, asked: Any, threshold: int) -> Shareable:
    """Reduce data to what may be published.

    Parameters
    ----------
    data : AuditData
        Decisions about people.
    asked : sequence of str or Metric, or None
        Metrics; by default those of counts that the columns allow.
    threshold : int
        Counts below it, zero among them, are not published.

    Returns
    -------
    Shareable

    Examples
    --------
    >>> groups = ["a"] * 60 + ["b"] * 60 + ["c"] * 22 + ["d"] * 22
    >>> data = AuditData.from_arrays(decision=[0, 1] * 71 + [1] * 22, groups={"g": groups})
    >>> shareable(data, None, 10).suppressed
    {'g': ('c', 'd')}
    """
    _check(data, threshold)
    metrics = _metrics(data, asked)
    cells, kinds = _cells(data, metrics)
    held = _held(data, cells, kinds, threshold)
    rows, left = _row_counts(data, threshold)
    groups, parts = {}, []
    for attribute in data.attributes:
        shown = ~held[attribute.name]
        sizes = group_sizes(data, attribute)
        groups[attribute.name] = {attribute.labels[k]: int(sizes[k]) for k in np.flatnonzero(shown)}
        if sum(k != attribute.unknown for k in np.flatnonzero(shown)) > 1:
            table = _table(attribute, cells, kinds, data.count)
            parts.append(_data_of(data, attribute, table, shown, kinds))
    suppressed = {
        a.name: tuple(a.labels[k] for k in np.flatnonzero(held[a.name])) for a in data.attributes if held[a.name].any()
    }
    if not parts:
        raise DataError(
            f"With counts below {threshold} held back no two groups of an attribute are left to compare. Join small "
            "groups, give more rows, or do not share this audit."
        )
    compared = {part.attributes[0].name for part in parts}
    notes = (*_words(data), *left, *_told(data, groups, suppressed, compared, threshold, kinds))
    return Shareable(
        parts=tuple(replace(part, notes=notes, rows=rows) for part in parts),
        metrics=metrics,
        rows=rows,
        known=known_groups(data),
        groups=groups,
        suppressed=suppressed,
        threshold=threshold,
        kinds=kinds,
        notes=notes,
    )


def _check(data: AuditData, threshold: int) -> None:
    """Refuse what cannot be protected."""
    if isinstance(threshold, bool) or not isinstance(threshold, int) or not 2 <= threshold <= 1000:
        raise UsageError(
            f"`suppress=` is {threshold!r}; allowed: a whole number from 2 to 1000, such as 10: counts below it are "
            "not published."
        )
    if data.weight is not None:
        raise UsageError(
            "`suppress=` protects counts, and with sampling weights the rates are made of weights, which no rule here "
            "protects. Leave `weight=` out, or do not share this audit."
        )
    designed = {"strata": data.strata, "cluster": data.cluster, "survey_strata": data.survey_strata}
    named = [role for role, values in designed.items() if values is not None]
    named += ["group_probability"] if data.probabilities else []
    if named:
        raise UsageError(
            f"`suppress=` protects counts of groups, and `{named[0]}` asks for more than these. Leave it out, or do "
            "not share this audit."
        )


def _metrics(data: AuditData, asked: Any) -> tuple[Metric, ...]:
    """Return the metrics of counts; others carry the values of single people."""
    if asked is None:
        if data.decision is None:
            raise UsageError(
                "`suppress=` needs a decision column, or `scoring_rate` among `metrics=`: only rates are made of "
                "counts."
            )
        return default_metrics(outcome_kind=data.outcome_kind, has_decision=True, has_score=False)
    metrics = resolve(asked)
    if [metric.kind for metric in metrics] == ["scoring"]:
        # In the data that may be shared it is a decision: to score above the median of everybody, not of those shown.
        return (replace(METRICS["selection_rate"], name=metrics[0].name, says=metrics[0].says),)
    for metric in metrics:
        if metric.kind not in _COUNTED:
            raise UsageError(
                f"Metric `{metric.name}` is made of single people's values, which `suppress=` cannot protect. Name "
                "metrics of counts, such as `selection_rate` or `fnr`, or `scoring_rate` alone."
            )
    return metrics


def _cells(data: AuditData, metrics: Sequence[Metric]) -> tuple[IntArray, int]:
    """Return each record's cell, and how many cells a group has: two decisions, with or without two outcomes."""
    if any("outcome" in metric.needs for metric in metrics):
        return cells_of(data), 4
    if metrics[0].name == "scoring_rate":
        return _above_median(data), 2
    assert data.decision is not None
    return data.decision.astype(np.int64), 2


def _above_median(data: AuditData) -> IntArray:
    """Say of each record whether its score lies above the median of everybody's."""
    assert data.score is not None
    order = np.argsort(data.score, kind="stable")
    upto, total = np.cumsum(data.count[order]), int(data.count.sum())
    middle = [data.score[order[np.searchsorted(upto, place)]] for place in ((total + 1) // 2, total // 2 + 1)]
    return np.asarray(data.score > sum(middle) / 2).astype(np.int64)


def _table(attribute: Attribute, cells: IntArray, kinds: int, count: IntArray) -> IntArray:
    """Count rows by group and cell."""
    n = len(attribute.labels)
    return np.bincount(kinds * attribute.codes + cells, weights=count, minlength=kinds * n).astype(int).reshape(n, -1)


def _held(data: AuditData, cells: IntArray, kinds: int, threshold: int) -> dict[str, BoolArray]:
    """Say of each attribute which groups are held back."""
    held: dict[str, BoolArray] = {}
    for related in _related(data.attributes):
        codes = np.column_stack([a.codes for a in related])
        combinations, place = np.unique(codes, axis=0, return_inverse=True)
        if len(combinations) > _MOST_PARTS:
            raise DataError(
                f"The groups of {', '.join(f'`{a.name}`' for a in related)} make {len(combinations):,} combinations; "
                f"`suppress=` can protect at most {_MOST_PARTS:,}. Join small groups, or name fewer attributes."
            )
        whole = Attribute(name="", labels=tuple(map(str, range(len(combinations)))), codes=place.ravel())
        columns = zip(related, combinations.T, strict=True)
        totals = np.vstack([column == np.arange(len(a.labels))[:, None] for a, column in columns])
        chosen = held_back(_table(whole, cells, kinds, data.count), totals, threshold)
        if chosen is None:
            raise DataError(
                f"These data are too small to be shared: with counts below {threshold} held back, nothing of "
                f"{', '.join(f'`{a.name}`' for a in related)} is left. Give more rows, or do not share this audit."
            )
        ends = np.cumsum([len(a.labels) for a in related])[:-1]
        held |= dict(zip((a.name for a in related), np.split(chosen, ends), strict=True))
    return held


def _related(attributes: Sequence[Attribute]) -> list[list[Attribute]]:
    """Gather the attributes of which one is a crossing, or another refinement, of others: their counts add up."""
    together: list[list[Attribute]] = []
    for attribute in attributes:
        linked = [some for some in together if any(_adds_up(attribute, other) for other in some)]
        together = [some for some in together if some not in linked]
        together.append([*(a for some in linked for a in some), attribute])
    return together


def _adds_up(one: Attribute, other: Attribute) -> bool:
    pairs = len(np.unique(np.column_stack([one.codes, other.codes]), axis=0))
    named = one.name in other.name.split(" × ") or other.name in one.name.split(" × ")
    return named or pairs in (len(np.unique(one.codes)), len(np.unique(other.codes)))


def _data_of(data: AuditData, attribute: Attribute, table: IntArray, shown: BoolArray, kinds: int) -> AuditData:
    """Make data of the published counts of one attribute, and of nothing else."""
    counts = table[shown]
    group, cell = (part.ravel() for part in np.indices(counts.shape))
    labels = tuple(attribute.labels[k] for k in np.flatnonzero(shown))
    unknown = (
        int(shown[: attribute.unknown].sum()) if attribute.unknown is not None and shown[attribute.unknown] else None
    )
    return AuditData(
        outcome=read_only((cell // 2).astype(float)) if kinds == 4 else None,
        outcome_kind="binary" if kinds == 4 else "none",
        decision=read_only((cell % 2).astype(float)),
        score=None,
        score_kind="none",
        attributes=(replace(attribute, labels=labels, codes=read_only(group), unknown=unknown),),
        labels={role: data.labels[role] for role in ("outcome", "decision") if role in data.labels},
        count=read_only(counts.ravel()),
        columns=data.columns,
        rows=data.rows,
        fingerprint="not published",
    )


def _row_counts(data: AuditData, threshold: int) -> tuple[RowCounts, tuple[str, ...]]:
    """Return the rows in, used and dropped so that they tell no small number."""
    rows, people = data.rows, int(data.count.sum())
    if people != rows.rows_used:  # lines of a table of counts, as many as it has cells that are not empty
        every = RowCounts(rows_in=people, rows_used=people)
        return every, ("Rows are people here, not lines of the file; those that could not be used are not among them.",)
    dropped = {reason: n for reason, n in rows.dropped.items() if n}
    if not any(n < threshold for n in dropped.values()):
        return rows, ()
    total = sum(dropped.values())
    if total >= threshold:
        return replace(rows, dropped={"for several reasons, of which some are too rare to be counted here": total}), ()
    few = RowCounts(rows_in=people, rows_used=people)
    return few, (f"Fewer than {threshold} rows of the file could not be used; they are not in the number of rows.",)


def _words(data: AuditData) -> list[str]:
    """Say which values count as 1; the other notes on the data may tell counts and are left out."""
    said = []
    for role in ("outcome", "decision"):
        labels = data.labels.get(role)
        if labels is not None and labels.one:
            said.append(f"{role.capitalize()} is 1 for {', '.join(f'`{text}`' for text in labels.one)}.")
    if data.threshold is not None and "decision" not in data.labels:
        said.append(f"Decision is 1 where the score is at least {data.threshold:g}.")
    return said


def _told(
    data: AuditData,
    groups: Mapping[str, Mapping[str, int]],
    suppressed: Mapping[str, tuple[str, ...]],
    compared: Collection[str],
    threshold: int,
    kinds: int,
) -> list[str]:
    """Say what was held back and why, attribute by attribute."""
    said = [
        f"This copy is made to be shared: no count below {threshold} is in it, and none can be worked out from it. The "
        "audit was made of the published counts alone."
    ]
    for name, labels in suppressed.items():
        rest = int(data.count.sum()) - sum(groups[name].values())
        said.append(
            f"Of `{name}` {len(labels)} {'group is' if len(labels) == 1 else 'groups are'} held back, with {kinds} "
            f"counts each and {rest:,} rows together: {', '.join(f'`{label}`' for label in labels)}. Some have a "
            f"count below {threshold} or none at all, the others are held back so that these cannot be worked out."
        )
        if name not in compared:
            said.append(f"So few groups of `{name}` are left that they are not compared.")
    if not suppressed:
        said.append("Nothing had to be held back.")
    return said
