"""Records: the columns of a source, checked, coded and without the rows that cannot be used.

The same steps serve rows and engine cells: a cell is a record that stands for several rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evenhand.arrays import BoolArray, FloatArray, IntArray
from evenhand.errors import DataError
from evenhand.intake.columns import Column
from evenhand.intake.design import Codes, Design, DesignColumns, code_design
from evenhand.intake.labels import check_positive, code_binary, positive_for
from evenhand.intake.lookalikes import group_notes
from evenhand.intake.options import Options
from evenhand.intake.parts import Attribute, Labels, RowCounts
from evenhand.intake.weights import Weights, WeightSums, code_weights
from evenhand.intake.wording import count_of, listing, number_text

MISSING_LABEL = "(missing)"
MOST_LABELS = 1000
LARGEST_VALUE = 1e100


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreBins:
    """Equal-width bins of a score."""

    # The range that is cut; 0 and 1 for a probability.
    low: float
    high: float
    bins: int  # how many bins

    @classmethod
    def over(cls, low: float, high: float, bins: int) -> ScoreBins:
        """Cut a range of scores, that of probabilities from 0 to 1."""
        return cls(low=0.0, high=1.0, bins=bins) if low >= 0 and high <= 1 else cls(low=low, high=high, bins=bins)

    @property
    def kind(self) -> str:
        """What the score is; "probability" or "real"."""
        return "probability" if (self.low, self.high) == (0.0, 1.0) else "real"

    @property
    def scale(self) -> float:
        """Bins per unit of score; 0 when the score is constant."""
        return self.bins / (self.high - self.low) if self.high > self.low else 0.0

    def place(self, score: FloatArray) -> IntArray:
        """Return each score's bin."""
        return np.clip(np.floor((score - self.low) * self.scale), 0, self.bins - 1).astype(np.int64)

    def middle(self, place: IntArray) -> FloatArray:
        """Return the middle of each bin."""
        if self.scale == 0:
            return np.full(place.shape, self.low)
        return np.asarray(self.low + (place + 0.5) / self.scale, dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """The needed columns of a source, by role."""

    # In engine cells the score is the bin's number, and a numeric outcome is the cell's mean.
    outcome: Column | None = None
    decision: Column | None = None
    score: Column | None = None
    # By name.
    groups: Mapping[str, Column]
    continuous: Mapping[str, Column] = field(default_factory=dict)
    features: Mapping[str, Column] = field(default_factory=dict)
    design: DesignColumns = field(default_factory=DesignColumns)
    weights: WeightSums | None = None  # sums over each record's rows
    rows: IntArray | None = None  # rows of the source each record stands for; None when each is one
    bins: ScoreBins | None = None  # the bins when the score is a bin's number
    numeric_outcome: bool = False  # True when an engine already took the outcome as numeric
    # Sums of w v, w² v, w² v² made by the engine.
    moments: Mapping[str, tuple[FloatArray, FloatArray, FloatArray]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # what was decided while reading
    engine: Any = None  # the engine that made cells, which still has the rows

    def noted(self, notes: Sequence[str]) -> Table:
        """Return the table with more notes."""
        return replace(self, notes=(*self.notes, *notes))

    def size(self) -> int:
        """Return the number of records."""
        single = (self.outcome, self.decision, self.score)
        columns = [c for c in single if c is not None] + [*self.groups.values(), *self.continuous.values()]
        return len(columns[0])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Records:
    """Coded records that can be used, and the account of those that cannot."""

    # Floats, and kinds as in `AuditData`; the score is the bin's number when `bins` is given.
    outcome: FloatArray | None
    outcome_kind: str
    decision: FloatArray | None
    score: FloatArray | None
    score_kind: str
    attributes: tuple[Attribute, ...]  # without intersections
    # By name.
    continuous: Mapping[str, FloatArray]
    features: Mapping[str, Column]
    design: Design
    labels: Mapping[str, Labels]  # by role
    weights: Weights  # count and sampling weight of each record
    bins: ScoreBins | None  # see `Table`
    moments: Mapping[str, tuple[FloatArray, FloatArray, FloatArray]]  # see `Table`
    # As in `AuditData`.
    rows: RowCounts
    notes: tuple[str, ...]


def code_records(table: Table, options: Options) -> Records:
    """Check and code a table; every data error that concerns values is raised here."""
    rows = np.ones(table.size(), dtype=np.int64) if table.rows is None else table.rows
    rows_in = int(rows.sum())
    if rows_in == 0:
        raise DataError("The table has no rows; at least one row per group is needed.")
    notes = list(table.notes)
    labels = _named_labels(table, options)
    outcome, outcome_kind = _outcome(table, options, notes, labels)
    decision = _decision(table, options, notes, labels)
    groups = {name: _group(column, name, options) for name, column in table.groups.items()}
    strata = {name: _stratum(column, name, options) for name, column in table.design.strata.items()}
    design = code_design(table.design, strata, options)
    continuous = {name: numbers_of(column, name, "continuous") for name, column in table.continuous.items()}

    gone = _Gone(rows)
    numbers = {options.outcome: outcome, options.decision: decision}
    gone.drop_missing({name: v for name, v in numbers.items() if name is not None and v is not None})
    for name, (codes, _) in groups.items():
        _drop_missing_group(gone, codes < 0, name, options.missing)
    for name, absent in design.missing(options).items():
        _drop_missing_group(gone, absent, name, options.missing_strata)
    gone.drop_missing(continuous)
    weights = code_weights(table.weights, options, rows, gone.kept)
    if weights.zero is not None:
        gone.subtract(weights.zero, f"`{options.weight}` is zero")
    notes.extend(weights.notes)
    keep = gone.some_kept(rows_in)

    score, score_kind = _score(table, options, keep)
    _refuse_infinite(outcome, keep, options.outcome)
    decision = None if decision is None else decision[keep]
    if options.threshold is not None and score is not None and decision is None:
        decision = (score >= options.threshold).astype(np.float64)
    attributes = tuple(_attribute(n, codes[keep], known, gone.dropped, options) for n, (codes, known) in groups.items())
    for attribute in attributes:
        numeric = table.groups[attribute.name].kind == "number" and attribute.name not in options.cuts
        notes.extend(group_notes(attribute.name, attribute.labels, numeric=numeric))
    return Records(
        outcome=None if outcome is None else outcome[keep],
        outcome_kind=outcome_kind,
        decision=decision,
        score=score,
        score_kind=score_kind,
        attributes=attributes,
        continuous={name: values[keep] for name, values in continuous.items()},
        features={name: column.take(keep) for name, column in table.features.items()},
        design=design.take(keep),
        labels=labels,
        weights=weights.take(keep),
        bins=table.bins,
        moments={name: (a[keep], b[keep], c[keep]) for name, (a, b, c) in table.moments.items()},
        rows=RowCounts(rows_in=rows_in, rows_used=int(gone.rows[keep].sum()), dropped=dict(gone.dropped)),
        notes=tuple(notes),
    )


def _named_labels(table: Table, options: Options) -> dict[str, Labels]:
    """Check what was named as positive, and return the model's class when that was named."""
    named = {options.outcome: table.outcome, options.decision: table.decision}
    check_positive({n: c for n, c in named.items() if n is not None and c is not None}, options.positive)
    wanted, said = positive_for("model", options.positive)
    return {"model": Labels(one=(str(wanted),))} if said and wanted is not None else {}


class _Gone:
    """Rows dropped so far: each row is counted under its first reason."""

    def __init__(self, rows: IntArray) -> None:
        self.rows = rows.copy()
        self.dropped: dict[str, int] = {}

    @property
    def kept(self) -> BoolArray:
        return self.rows > 0

    def some_kept(self, rows_in: int) -> BoolArray:
        if not self.kept.any():
            reasons = "; ".join(f"{reason}: {n:,}" for reason, n in self.dropped.items())
            raise DataError(f"All {count_of(rows_in, 'row')} are dropped ({reasons}); nothing is left to audit.")
        return self.kept

    def drop_missing(self, columns: Mapping[str, FloatArray]) -> None:
        for name, values in columns.items():
            self.drop(np.isnan(values), f"`{name}` is missing")

    def drop(self, mask: BoolArray, reason: str) -> None:
        self.subtract(np.where(mask, self.rows, 0), reason)

    def subtract(self, rows: IntArray, reason: str) -> None:
        taken = np.minimum(rows, self.rows)
        total = int(taken.sum())
        if total:
            self.rows -= taken
            self.dropped[reason] = self.dropped.get(reason, 0) + total


def _outcome(
    table: Table, options: Options, notes: list[str], labels: dict[str, Labels]
) -> tuple[FloatArray | None, str]:
    if table.outcome is None or options.outcome is None:
        return None, "none"
    if table.numeric_outcome:
        notes.extend(_left_out(options))
        return np.asarray(table.outcome.values, dtype=np.float64), "numeric"
    coded = code_binary(table.outcome, role="outcome", name=options.outcome, positive=options.positive)
    notes.extend([coded.note] if coded.note else [])
    labels.update({"outcome": coded.labels} if coded.labels else {})
    if coded.kind == "numeric":
        notes.extend(_left_out(options, table.outcome))
    return coded.values, coded.kind


def _left_out(options: Options, column: Column | None = None) -> list[str]:
    """Say what a yes/no decision cannot be measured by when the outcome is a number."""
    if options.decision is None and options.threshold is None:
        return []
    found = () if column is None else column.distinct()[1]
    shown = listing(map(number_text, map(float, found)))
    held = f"{len(found):,} values ({shown})" if found else "more than two values"
    return [
        f"Outcome `{options.outcome}` has {held} beside a yes/no decision, so the metrics that need a yes/no outcome "
        f"(`fnr`, `fpr`, `auc`, …) are left out. If one value counts as 1, name it with `positive=`."
    ]


def _decision(table: Table, options: Options, notes: list[str], labels: dict[str, Labels]) -> FloatArray | None:
    if options.threshold is not None and options.score is not None:
        notes.append(f"Decision is 1 where `{options.score}` >= {number_text(options.threshold)}.")
        return None if table.decision is None else np.asarray(table.decision.values, dtype=np.float64)
    if table.decision is None or options.decision is None:
        return None
    coded = code_binary(table.decision, role="decision", name=options.decision, positive=options.positive)
    notes.extend([coded.note] if coded.note else [])
    labels.update({"decision": coded.labels} if coded.labels else {})
    return coded.values


def _group(column: Column, name: str, options: Options) -> Codes:
    if name not in options.cuts:
        _refuse_identifier(column, name)
    return _with_missing(_coded(column, name, options), keep=options.missing in ("group", "unknown"))


def _stratum(column: Column, name: str, options: Options) -> Codes:
    return _with_missing(_coded(column, name, options), keep=options.missing_strata == "group")


def _coded(column: Column, name: str, options: Options) -> Codes:
    points = options.cuts.get(name)
    if points is None:
        return column.texts()
    if column.kind == "label" and not column.missing.all():
        raise DataError(f"Column `{name}` is text ({listing(column.labels, 3)}) and cannot be cut; use numbers.")
    return cut(np.asarray(column.values, dtype=np.float64), points)


def _with_missing(coded: Codes, *, keep: bool) -> Codes:
    """Give the records without a label one of their own, where they are kept."""
    codes, labels = coded
    if not keep or not (codes < 0).any():
        return coded
    known = labels if MISSING_LABEL in labels else (*labels, MISSING_LABEL)
    return np.where(codes < 0, known.index(MISSING_LABEL), codes), known


def _refuse_identifier(column: Column, name: str) -> None:
    if column.kind == "label" and len(column.labels) <= MOST_LABELS:
        return
    n = len(column.distinct()[1])
    if n > MOST_LABELS:
        raise DataError(
            f"Column `{name}` has {n:,} groups; at most {MOST_LABELS:,} are allowed, so it looks like an "
            f"identifier or a measurement. Cut it with `cuts=`, or name it in `continuous=`."
        )


def cut(values: FloatArray, points: tuple[float, ...]) -> tuple[IntArray, tuple[str, ...]]:
    """Cut numbers into intervals that are closed on the left; -1 where missing.

    Examples
    --------
    >>> codes, labels = cut(np.array([20.0, 25.0, 60.0, float("nan")]), (25.0, 40.0))
    >>> codes.tolist(), labels
    ([0, 1, 2, -1], ('<25', '25–40', '>=40'))
    """
    codes = np.searchsorted(np.array(points), values, side="right").astype(np.int64)
    texts = [number_text(p) for p in points]
    inner = [f"{a}–{b}" for a, b in itertools.pairwise(texts)]
    return np.where(np.isnan(values), -1, codes), (f"<{texts[0]}", *inner, f">={texts[-1]}")


def _drop_missing_group(gone: _Gone, missing: BoolArray, name: str, rule: str) -> None:
    n = int(gone.rows[missing].sum())
    if n and rule == "error":
        raise DataError(
            f"Column `{name}` is missing in {count_of(n, 'row')}. Drop them with `missing='drop'`, or keep "
            f"them as a group with `missing='group'`."
        )
    gone.drop(missing, f"`{name}` is missing")


def _attribute(
    name: str, codes: IntArray, labels: tuple[str, ...], dropped: Mapping[str, int], options: Options
) -> Attribute:
    used = np.bincount(codes, minlength=len(labels)) > 0
    present = tuple(label for label, use in zip(labels, used, strict=True) if use)
    order = np.argsort(np.array(present, dtype=object), kind="stable") if name not in options.cuts else None
    unknown = options.missing == "unknown" and MISSING_LABEL in present
    if unknown and len(present) < 3:
        raise DataError(
            f"Column `{name}` has {len(present) - 1} group beside the people whose group is missing; at least 2 are "
            f"needed. Check `groups=`."
        )
    if len(present) < 2:
        lost = dropped.get(f"`{name}` is missing", 0)
        after = f" after dropping {count_of(lost, 'row')} with missing labels" if lost else ""
        hint = ", or keep missing values as a group with `missing='group'`" if lost else ""
        raise DataError(
            f"Column `{name}` has 1 group (`{present[0]}`){after}; at least 2 are needed. Check `groups=`{hint}."
        )
    place = np.cumsum(used) - 1
    if order is not None:
        place = np.argsort(order, kind="stable")[place]
        present = tuple(present[i] for i in order)
    place_of_unknown = present.index(MISSING_LABEL) if unknown else None
    return Attribute(name=name, labels=present, codes=place[codes], unknown=place_of_unknown)


def _score(table: Table, options: Options, keep: BoolArray) -> tuple[FloatArray | None, str]:
    if table.score is None or options.score is None:
        return None, "none"
    values = numbers_of(table.score, options.score, "score")[keep]
    rows = np.ones(len(keep), dtype=np.int64) if table.rows is None else table.rows
    bad = ~np.isfinite(values)
    if bad.any():
        n = int(rows[keep][bad].sum())
        raise DataError(
            f"Score `{options.score}` is missing, NaN or infinite in {count_of(n, 'row')} of those used; "
            f"every score must be a finite number. Remove or fill these rows first."
        )
    refuse_vast(values, options.score, "Score")
    if table.bins is not None:
        return values, table.bins.kind
    return values, "probability" if values.min() >= 0 and values.max() <= 1 else "real"


def numbers_of(column: Column, name: str, role: str) -> FloatArray:
    """Return a column's numbers, or say that it holds text."""
    if column.kind == "label":
        if column.missing.all():
            return np.full(len(column), math.nan)
        first = column.labels[int(column.values[~column.missing][0])]
        raise DataError(f"Column `{name}` must hold numbers to be used as {role}; got text such as `{first}`.")
    return np.asarray(column.values, dtype=np.float64)


def _refuse_infinite(outcome: FloatArray | None, keep: BoolArray, name: str | None) -> None:
    if outcome is not None and np.isinf(outcome[keep]).any():
        raise DataError(f"Outcome `{name}` is infinite in some rows; every outcome must be a finite number.")
    if outcome is not None:
        refuse_vast(outcome[keep], name, "Outcome")


def refuse_vast(values: FloatArray, name: str | None, role: str) -> None:
    """Refuse values whose squares cannot be added up."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest > LARGEST_VALUE:
        raise DataError(
            f"{role} `{name}` reaches {largest:.3g}; values beyond {LARGEST_VALUE:g} cannot be squared and added. "
            f"Divide the column by a large number first."
        )
