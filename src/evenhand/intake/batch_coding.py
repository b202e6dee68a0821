"""The rows of one batch coded exactly as the whole was: the same groups in the same order, the same meaning of 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from evenhand.arrays import FloatArray, IntArray, sealed
from evenhand.intake.batches import Batches, LocalBatches
from evenhand.intake.columns import Column
from evenhand.intake.data import AuditData
from evenhand.intake.engines.spark import SparkEngine
from evenhand.intake.engines.spark_batches import SparkBatches
from evenhand.intake.options import Options
from evenhand.intake.parts import Attribute, FeatureType, RowCounts
from evenhand.intake.periods import key_sql, within_sql
from evenhand.intake.records import MISSING_LABEL, cut, numbers_of


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchCoding:
    """What is known of the whole and needed to code a part of it; it can be pickled."""

    options: Options
    whole: AuditData  # with groups, labels and kinds, and no records
    crossings: tuple[Mapping[tuple[int, ...], int], ...]  # of each intersection: its parts' codes to its own

    @classmethod
    def of(cls, cells: AuditData, options: Options, kinds: Mapping[str, str]) -> BatchCoding:
        """Take what the cells of all rows say; `kinds` are those of the source's columns."""
        plain = {a.name: a for a in cells.attributes}
        crossings = []
        for names, crossed in zip(options.intersections, cells.attributes[len(options.groups) :], strict=True):
            parts = np.column_stack([*(plain[n].codes for n in names), crossed.codes])
            crossings.append({tuple(row[:-1]): row[-1] for row in np.unique(parts, axis=0).tolist()})
        truths = {name: FeatureType(kind="truth") for name in options.features if kinds[name] == "truth"}
        empty = replace(cells, moments=None, period=None, feature_types=truths).records(np.empty(0, dtype=np.int64))
        return cls(options=options, whole=empty, crossings=tuple(crossings))

    def batch(self, columns: Mapping[str, Column]) -> AuditData:
        """Code the rows of one batch and leave out those that cannot be used, as in the whole."""
        options, whole = self.options, self.whole
        outcome = None if options.outcome is None else self._labelled(columns[options.outcome], "outcome")
        score = None if options.score is None else numbers_of(columns[options.score], options.score, "score")
        decision = None if options.decision is None else self._labelled(columns[options.decision], "decision")
        rows = len(next(iter(columns.values())))
        keep = np.ones(rows, dtype=bool)
        for values in (outcome, decision):
            keep &= True if values is None else ~np.isnan(values)
        if options.threshold is not None and score is not None:
            decision = (score >= options.threshold).astype(np.float64)
        groups = {a.name: self._codes(columns[a.name], a) for a in whole.attributes[: len(options.groups)]}
        strata = None if whole.strata is None else self._strata(columns, whole.strata)
        for codes in (*groups.values(), *([] if strata is None else [strata])):
            keep &= codes >= 0
        if options.period is not None:
            keep &= ~columns[options.period].missing
        count, weight = self._weights(columns, rows)
        keep &= count > 0
        every = bool(keep.all())  # then nothing is copied: a batch has many columns and this is done for each

        def of(values: Any) -> Any:
            return None if values is None else sealed(values if every else values[keep])

        groups = {name: codes if every else codes[keep] for name, codes in groups.items()}
        for crossed, crossing, names in zip(
            whole.attributes[len(options.groups) :], self.crossings, options.intersections, strict=True
        ):
            groups[crossed.name] = _crossed([groups[n] for n in names], crossing)
        used = int(count[keep].sum())
        return replace(
            whole,
            outcome=of(outcome),
            decision=of(decision),
            score=of(score),
            score_bins=None,
            attributes=tuple(replace(a, codes=sealed(groups[a.name])) for a in whole.attributes),
            strata=None if strata is None or whole.strata is None else replace(whole.strata, codes=of(strata)),
            features={name: of(columns[name].plain()) for name in options.features},
            count=of(count),
            weight=of(weight),
            weight_square=None if weight is None else of(weight**2),
            rows=RowCounts(rows_in=rows, rows_used=used, dropped={}),
        )

    def _labelled(self, column: Column, role: str) -> FloatArray:
        """Return 0 and 1 as the labels of the whole say, or the numbers of a numeric outcome; NaN where missing."""
        labels = self.whole.labels.get(role)
        if labels is None:
            return np.asarray(column.values, dtype=np.float64)
        codes, distinct = column.distinct()
        texts = [column.text(value) for value in distinct]
        meaning = [1.0 if t in labels.one else 0.0 if t in labels.zero else np.nan for t in texts]
        return np.array([*meaning, np.nan])[codes]

    def _codes(self, column: Column, attribute: Attribute) -> IntArray:
        """Return each row's place among the groups of the whole, -1 for rows that are not used."""
        return _places(
            self._texts(column, attribute.name), attribute.labels, self.options.missing in ("group", "unknown")
        )

    def _texts(self, column: Column, name: str) -> tuple[IntArray, tuple[str, ...]]:
        points = self.options.cuts.get(name)
        return column.texts() if points is None else cut(np.asarray(column.values, dtype=np.float64), points)

    def _strata(self, columns: Mapping[str, Column], strata: Attribute) -> IntArray:
        """Return each row's place among the strata of the whole, which may be crossings of several columns."""
        kept = self.options.missing_strata == "group"
        texts = [self._texts(columns[name], name) for name in self.options.strata]
        if len(texts) == 1:
            return _places(texts[0], strata.labels, kept)
        known = [(*labels, MISSING_LABEL) for _, labels in texts]
        place = {label: i for i, label in enumerate(strata.labels)}
        parts = np.column_stack([codes for codes, _ in texts])
        combinations, at = np.unique(parts, axis=0, return_inverse=True)
        places = [
            -1
            if min(row) < 0 and not kept
            else place.get(" & ".join(labels[c] for labels, c in zip(known, row, strict=True)), -1)
            for row in combinations.tolist()
        ]
        return np.array(places, dtype=np.int64)[at.reshape(-1)]

    def _weights(self, columns: Mapping[str, Column], rows: int) -> tuple[IntArray, FloatArray | None]:
        """Return how many rows each row stands for, 0 for rows without weight, and its sampling weight."""
        name = self.options.weight
        if name is None:
            return np.ones(rows, dtype=np.int64), None
        weight = numbers_of(columns[name], name, "weight")
        if self.options.weight_kind == "frequency":
            return weight.astype(np.int64), None
        # Where the kind was not said, weights that count rows are 0 and 1: the reader has refused others.
        return (weight > 0).astype(np.int64), None if self.whole.weight is None else weight


def engine_batches(engine: Any, coding: BatchCoding, rows: int) -> Batches:
    """Return the rows that an engine holds as batches, each coded as the whole."""
    columns, features = coding.options.columns, coding.options.features
    batches: Batches
    if isinstance(engine, SparkEngine):
        batches = SparkBatches(engine, coding.batch, columns, rows, features)
    else:
        batches = LocalBatches(partial(_coded_batches, engine, coding), rows, features)
    if coding.options.period is not None:
        batches.of_period = partial(_period_batches, engine, coding)
    return batches


def _period_batches(engine: Any, coding: BatchCoding, label: str, rows: int) -> Batches:
    """Return the rows of one period, which the engine picks out itself."""
    options = coding.options
    key = key_sql(engine.quote(options.period), options.period_unit)
    within = within_sql(key, label, options.period_unit, engine.literal(label))
    return engine_batches(engine.where(within), coding, rows)


def _coded_batches(engine: Any, coding: BatchCoding) -> Iterator[AuditData]:
    for columns in engine.record_batches(coding.options.columns):
        yield coding.batch(columns)


def _places(coded: tuple[IntArray, tuple[str, ...]], labels: Sequence[str], keep_missing: bool) -> IntArray:
    codes, own = coded
    place = {label: i for i, label in enumerate(labels)}
    missing = place.get(MISSING_LABEL, -1) if keep_missing else -1
    return np.array([*(place.get(label, -1) for label in own), missing], dtype=np.int64)[codes]


def _crossed(parts: Sequence[IntArray], crossing: Mapping[tuple[int, ...], int]) -> IntArray:
    combinations, at = np.unique(np.column_stack(parts), axis=0, return_inverse=True)
    places = [crossing[tuple(row)] for row in combinations.tolist()]
    return np.array(places, dtype=np.int64)[at.reshape(-1)]
