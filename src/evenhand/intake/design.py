"""Columns beside the groups: strata to compare within, rows that belong together, and probabilities of groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from evenhand.arrays import BoolArray, FloatArray, IntArray
from evenhand.errors import DataError
from evenhand.intake.columns import Column
from evenhand.intake.options import Options
from evenhand.intake.parts import Attribute, Probabilities
from evenhand.intake.periods import code_periods
from evenhand.intake.wording import count_of

Codes = tuple[IntArray, tuple[str, ...]]

# Strata per row above which nearly every row would be compared with nobody; pairs have one half.
_MOST_STRATA = 0.75
# How far from 1 the probabilities of a row's groups may add up.
_SUM = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Design:
    """Coded columns that are neither groups nor results; codes are -1 where a value is missing."""

    strata: tuple[Attribute, ...] = ()  # one for each column
    cluster: IntArray | None = None  # each record's cluster
    survey_strata: IntArray | None = None  # each record's sampling stratum
    period: Attribute | None = None  # each record's period
    probabilities: tuple[Probabilities, ...] = ()  # one for each attribute

    def missing(self, options: Options) -> dict[str, BoolArray]:
        """Mark the records without a value, by column."""
        marks = {part.name: part.codes < 0 for part in self._labelled()}
        for name, codes in ((options.cluster, self.cluster), (options.survey_strata, self.survey_strata)):
            if name is not None and codes is not None:
                marks[name] = codes < 0
        return marks

    def _labelled(self) -> tuple[Attribute, ...]:
        return self.strata if self.period is None else (*self.strata, self.period)

    def take(self, keep: BoolArray | IntArray) -> Design:
        """Return the records that are kept, with codes from 0 on for what is left."""
        return Design(
            strata=tuple(present_labels(part, keep) for part in self.strata),
            cluster=None if self.cluster is None else numbered(self.cluster[keep]),
            survey_strata=None if self.survey_strata is None else numbered(self.survey_strata[keep]),
            period=None if self.period is None else present_labels(self.period, keep),
            probabilities=tuple(part.take(keep) for part in self.probabilities),
        )

    def keys(self) -> list[tuple[IntArray, int]]:
        """Return codes and their number of each column that tells cells apart."""
        keys = [(part.codes, len(part.labels)) for part in self._labelled()]
        keys += [
            (codes, int(codes.max(initial=0)) + 1) for codes in (self.cluster, self.survey_strata) if codes is not None
        ]
        return keys


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DesignColumns:
    """The columns of a source that a `Design` is made from."""

    strata: Mapping[str, Column] = field(default_factory=dict)  # by name
    cluster: Column | None = None
    survey_strata: Column | None = None
    period: Column | None = None
    probabilities: Mapping[str, Column] = field(default_factory=dict)  # by name

    @classmethod
    def named(cls, columns: Mapping[str, Column], options: Options) -> DesignColumns:
        """Choose the columns that were asked for."""
        wanted = [column for parts in options.group_probability.values() for column in parts.values()]
        return cls(
            strata={name: columns[name] for name in options.strata},
            cluster=None if options.cluster is None else columns[options.cluster],
            survey_strata=None if options.survey_strata is None else columns[options.survey_strata],
            period=None if options.period is None else columns[options.period],
            probabilities={name: columns[name] for name in wanted},
        )


def code_design(columns: DesignColumns, strata: Mapping[str, Codes], options: Options) -> Design:
    """Code the columns; probabilities that are none are refused.

    Parameters
    ----------
    columns : DesignColumns
        As they were read.
    strata : mapping of str to codes and labels
        The columns of strata, coded as groups are.
    options : Options
        What was asked.

    Returns
    -------
    Design
    """
    return Design(
        strata=tuple(Attribute(name=n, labels=labels, codes=codes) for n, (codes, labels) in strata.items()),
        cluster=None if columns.cluster is None else columns.cluster.distinct()[0],
        survey_strata=None if columns.survey_strata is None else columns.survey_strata.distinct()[0],
        period=None if columns.period is None else _period(columns.period, options),
        probabilities=tuple(
            _probabilities(name, parts, columns.probabilities) for name, parts in options.group_probability.items()
        ),
    )


def check_design(design: Design, strata: Attribute | None, count: IntArray, options: Options) -> None:
    """Refuse strata that hold one row each, and a single cluster.

    Parameters
    ----------
    design : Design
        Of the records that are used.
    strata : Attribute or None
        The columns of strata crossed.
    count : ndarray of int, shape (records,)
        Rows of each record.
    options : Options
        What was asked.
    """
    rows = int(count.sum())
    if strata is not None and len(strata.labels) > _MOST_STRATA * rows:
        raise DataError(
            f"`{strata.name}` makes {len(strata.labels):,} strata of {rows:,} rows, so nearly "
            f"every row would be compared with nobody. Name a coarser column in `strata=`, or cut it with `cuts=`."
        )
    if design.cluster is not None and int(design.cluster.max(initial=0)) == 0:
        raise DataError(
            f"Column `{options.cluster}` has one value, so all rows belong together and nothing can be compared. "
            f"Leave `cluster=` out, or name a column with a value for each person."
        )


def _period(column: Column, options: Options) -> Attribute:
    name = options.period or ""
    codes, labels = code_periods(*column.texts(), name, options.period_unit)
    return Attribute(name=name, labels=labels, codes=codes)


def _probabilities(name: str, parts: Mapping[str, str], columns: Mapping[str, Column]) -> Probabilities:
    for column in parts.values():
        if columns[column].kind == "label" and not columns[column].missing.all():
            raise DataError(f"Column `{column}` must hold numbers to be used as a probability; got text.")
    values = np.column_stack([_floats(columns[column]) for column in parts.values()])
    shown = ", ".join(f"`{column}`" for column in parts.values())
    for bad, what in (
        (np.isnan(values).any(axis=1), "is missing"),
        (((values < 0) | (values > 1)).any(axis=1), "lies outside 0 to 1"),
    ):
        if bad.any():
            raise DataError(
                f"A probability of `{name}` ({shown}) {what} in {count_of(int(bad.sum()), 'row')}. Every row needs a "
                f"number from 0 to 1 for each group; fill or remove these rows first."
            )
    off = np.abs(values.sum(axis=1) - 1) > _SUM
    if off.any():
        raise DataError(
            f"The probabilities of `{name}` ({shown}) do not add up to 1 in {count_of(int(off.sum()), 'row')}; "
            f"the first such row adds up to {values[off][0].sum():.6g}. Name the columns of all "
            f"groups, or divide by their sum."
        )
    return Probabilities(name=name, labels=tuple(parts), values=values / values.sum(axis=1, keepdims=True))


def _floats(column: Column) -> FloatArray:
    return np.where(column.missing, np.nan, column.values).astype(np.float64)


def present_labels(part: Attribute, keep: BoolArray | IntArray) -> Attribute:
    """Return some of an attribute's records, with the labels that occur among them."""
    codes = part.codes[keep]
    used = np.bincount(codes, minlength=len(part.labels)) > 0
    labels = tuple(label for label, use in zip(part.labels, used, strict=True) if use)
    return Attribute(name=part.name, labels=labels, codes=(np.cumsum(used) - 1)[codes])


def numbered(codes: IntArray) -> IntArray:
    """Return codes numbered from 0 on, without gaps."""
    used = np.bincount(codes, minlength=1) > 0
    numbers: IntArray = (np.cumsum(used) - 1)[codes]
    return numbers
