"""`AuditData`: decisions about people, checked and coded, as arrays.

A record is one row, or a cell of identical rows that an engine counted; `count` says how many rows it
stands for. Everything after intake works on records, so a billion rows cost what their cells cost.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.arrays import FloatArray, IntArray, read_only, sealed
from evenhand.errors import DataError, UsageError, near_matches
from evenhand.intake.arrays import arrays_table
from evenhand.intake.batches import Batches
from evenhand.intake.cells import fingerprint_of, intersect, merge_cells
from evenhand.intake.dependence import repeat_note
from evenhand.intake.design import check_design
from evenhand.intake.options import Options
from evenhand.intake.parts import Attribute, FeatureType, Labels, Moments, Probabilities, RowCounts
from evenhand.intake.records import Records, Table, code_records
from evenhand.results import Displayed


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AuditData(Displayed):
    """Checked decisions about people. Make one with `evenhand.read` or `AuditData.from_arrays`.

    Parameters
    ----------
    outcome : ndarray or None
        What really happened; 0.0 and 1.0 when `outcome_kind` is ``"binary"``.
    outcome_kind : {"binary", "numeric", "none"}
        Whether binary metrics apply.
    decision : ndarray or None
        What was decided, 0.0 or 1.0.
    score : ndarray or None
        The model's score; a probability when `score_kind` is ``"probability"``. When an engine
        binned it, each record carries its bin's middle.
    score_kind : {"probability", "real", "none"}
        Whether all scores lie in [0, 1].
    score_bins : int or None
        Number of bins when an engine binned the score, else None.
    attributes : tuple of Attribute
        The protected attributes, intersections included.
    continuous : mapping of str to ndarray
        Attributes tested as continuous, such as age.
    features : mapping of str to ndarray
        The model's inputs by column; empty when not given or not collected.
    feature_types : mapping of str to FeatureType
        How a feature was kept in its source, for models that were fitted on it so: whole numbers, True and False,
        categories. Floats and texts are not listed.
    labels : mapping of str to Labels
        By role (``"outcome"``, ``"decision"``): which original values count as 1 and which as 0. Under ``"model"``,
        when named with `positive`, the model's class that is decision 1.
    threshold : float or None
        The score from which on the decision is 1, when it was said.
    count : ndarray of int
        Rows each record stands for.
    weight : ndarray or None
        Sampling weight of each of a record's rows; None when all are equal. In cells made by an
        engine it is the mean weight, and `weight_square` holds the sum of squares.
    weight_square : ndarray or None
        Sum of squared sampling weights of each record's rows; None when `weight` is None.
    moments : mapping of str to Moments or None
        Sums by value name (see `evenhand.summaries`) when rows stayed on an engine, else None.
    strata : Attribute or None
        What people are compared within, several columns crossed; None when nothing was named.
    cluster, survey_strata : ndarray of int or None
        The number of each record's cluster, and of its sampling stratum, where they were named.
    period : Attribute or None
        The period of each record, where a column of them was named; see `evenhand.intake.by_period`.
    probabilities : mapping of str to Probabilities
        Attributes of which only each group's probability is known.
    columns : mapping of str to str
        Role to column name, for messages and the report.
    rows : RowCounts
        Rows in, used and dropped.
    notes : tuple of str
        What intake decided on the user's behalf, in sentences.
    fingerprint : str
        A hash of the data's content; row order does not matter.
    batches : Batches or None
        The rows with their features, batch by batch, where they stayed in their source; then the records here are
        cells. None when the rows are in memory, or not to be had.
    """

    outcome: FloatArray | None
    outcome_kind: str
    decision: FloatArray | None
    score: FloatArray | None
    score_kind: str
    score_bins: int | None = None
    attributes: tuple[Attribute, ...]
    continuous: Mapping[str, FloatArray] = field(default_factory=dict)
    features: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    feature_types: Mapping[str, FeatureType] = field(default_factory=dict)
    labels: Mapping[str, Labels] = field(default_factory=dict)
    threshold: float | None = None
    count: IntArray
    weight: FloatArray | None = None
    weight_square: FloatArray | None = None
    moments: Mapping[str, Moments] | None = None
    strata: Attribute | None = None
    cluster: IntArray | None = None
    survey_strata: IntArray | None = None
    period: Attribute | None = None
    probabilities: Mapping[str, Probabilities] = field(default_factory=dict)
    columns: Mapping[str, str]
    rows: RowCounts
    notes: tuple[str, ...] = ()
    fingerprint: str
    batches: Batches | None = None

    @classmethod
    def from_arrays(
        cls,
        *,
        outcome: ArrayLike | None = None,
        decision: ArrayLike | None = None,
        score: ArrayLike | None = None,
        groups: Mapping[str, ArrayLike] | None = None,
        features: Any = None,
        weight: ArrayLike | None = None,
        strata: Mapping[str, ArrayLike] | None = None,
        cluster: ArrayLike | None = None,
        survey_strata: ArrayLike | None = None,
        group_probability: Mapping[str, Mapping[str, ArrayLike]] | None = None,
        **options: Any,
    ) -> AuditData:
        """Check and code plain arrays; the options are those of `evenhand.read`.

        Parameters
        ----------
        outcome, decision, score, weight : array-like, optional
            One value per row; arrays, lists or series. They are copied.
        groups : mapping of str to array-like
            Attribute name to one label per row; a frame is taken too.
        features : 2-D array, mapping or frame, optional
            The model's inputs; the columns of an array are called ``x0``, ``x1``, ...
        strata : mapping of str to array-like, optional
            What people are compared within.
        cluster, survey_strata : array-like, optional
            Rows that belong together, and the strata that a survey sampled from.
        group_probability : mapping, optional
            Attribute to label to one probability per row, where groups are guessed.
        **options
            `weight_kind`, `positive`, `threshold`, `cuts`, `continuous`, `intersections`, `missing`,
            `rows`, `score_bins`: see `evenhand.read`.

        Returns
        -------
        AuditData

        Examples
        --------
        >>> data = AuditData.from_arrays(outcome=[1, 0, 1, 0], decision=[1, 0, 0, 0],
        ...                              groups={"sex": ["F", "M", "M", "F"]})
        >>> data.attribute("sex").codes.tolist()
        [0, 1, 1, 0]
        """
        roles = {"outcome": outcome, "decision": decision, "score": score, "weight": weight}
        roles |= {"cluster": cluster, "survey_strata": survey_strata}
        columns = {"groups": {} if groups is None else groups, "strata": strata or {}, "features": features}
        return cls.of_table(*arrays_table(roles, columns, group_probability or {}, options))

    @classmethod
    def of_table(cls, table: Table, options: Options) -> AuditData:
        """Check and code the columns of a source: one record per row, or per cell where rows are added up."""
        if options.rows == "batches" and table.engine is None:
            raise UsageError(
                "`rows='batches'` is for files, DuckDB relations and Spark frames; these rows are in memory. Pass "
                "`rows='keep'`."
            )
        records = code_records(table, options)
        if table.rows is not None or options.rows == "cells":
            return cls._of_records(merge_cells(records, options), options, cells=True)
        note = None if options.cluster is not None else repeat_note(records)
        return cls._of_records(records if note is None else replace(records, notes=(*records.notes, note)), options)

    @classmethod
    def _of_records(cls, records: Records, options: Options, *, cells: bool = False) -> AuditData:
        weights, bins, score = records.weights, records.bins, records.score
        if score is not None and bins is not None:
            score = bins.middle(score.astype(np.int64))
        moments = {name: Moments(*map(read_only, sums)) for name, sums in records.moments.items()}
        crossed = tuple(intersect(names, records.attributes) for names in options.intersections)
        design = records.design
        strata = (
            intersect(options.strata, design.strata) if len(options.strata) > 1 else next(iter(design.strata), None)
        )
        check_design(design, strata, weights.count, options)
        return cls(
            outcome=_own_or_none(records.outcome),
            outcome_kind=records.outcome_kind,
            decision=_own_or_none(records.decision),
            score=_own_or_none(score),
            score_kind=records.score_kind,
            score_bins=None if bins is None else bins.bins,
            attributes=tuple(replace(a, codes=read_only(a.codes)) for a in (*records.attributes, *crossed)),
            continuous={name: read_only(v) for name, v in records.continuous.items()},
            features={name: read_only(column.plain()) for name, column in records.features.items()},
            feature_types={n: c.source_type for n, c in records.features.items() if c.source_type is not None},
            labels=records.labels,
            threshold=options.threshold,
            count=read_only(weights.count),
            weight=None if weights.total is None else read_only(weights.total / weights.count),
            weight_square=_own_or_none(weights.square),
            moments=moments if cells else None,
            strata=None if strata is None else replace(strata, codes=read_only(strata.codes)),
            cluster=None if design.cluster is None else read_only(design.cluster),
            survey_strata=None if design.survey_strata is None else read_only(design.survey_strata),
            period=None if design.period is None else replace(design.period, codes=read_only(design.period.codes)),
            probabilities={p.name: replace(p, values=read_only(p.values)) for p in design.probabilities},
            columns=options.column_names(),
            rows=records.rows,
            notes=records.notes,
            fingerprint=fingerprint_of(records, cells),
        )

    def attribute(self, name: str) -> Attribute:
        """Return one attribute by name.

        Parameters
        ----------
        name : str
            Such as ``"sex"`` or ``"sex × race"``.

        Returns
        -------
        Attribute

        Raises
        ------
        UsageError
            When there is none of this name; near matches are offered.
        """
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute
        known = [a.name for a in self.attributes]
        raise UsageError(f"There is no attribute `{name}`.{near_matches(name, known)}")

    def take(self, people: IntArray) -> AuditData:
        """Return some of the people, one record each.

        Parameters
        ----------
        people : ndarray of int
            Positions, where a record that stands for k rows has k of them.

        Returns
        -------
        AuditData
            With the same groups, also those of whom nobody is left.

        Raises
        ------
        DataError
            When the rows stayed on their engine.

        Examples
        --------
        >>> data = AuditData.from_arrays(decision=[1, 0, 1], groups={"g": ["a", "b", "a"]})
        >>> data.take(np.array([0, 2])).decision.tolist()
        [1.0, 1.0]
        """
        self._refuse_cells()
        at = np.repeat(np.arange(self.count.size), self.count)[people]
        return self.records(at, count=np.ones(at.size, dtype=np.int64))

    def records(self, at: IntArray, *, count: IntArray | None = None) -> AuditData:
        """Return some of the records.

        Parameters
        ----------
        at : ndarray of int
            Their positions.
        count : ndarray of int, optional
            Rows each stands for; by default as many as here.

        Returns
        -------
        AuditData
            With the same groups, also those of whom nobody is left.

        Raises
        ------
        DataError
            When the rows stayed on their engine.

        Examples
        --------
        >>> data = AuditData.from_arrays(decision=[1, 0, 1], groups={"g": ["a", "b", "a"]})
        >>> data.records(np.array([0, 2]), count=np.array([5, 1])).rows.rows_used
        6
        """
        self._refuse_cells()
        counts = self.count[at] if count is None else count

        def of(values: FloatArray | None) -> FloatArray | None:
            return None if values is None else sealed(values[at])

        rows, order = int(counts.sum()), np.argsort(at, kind="stable")
        content = self.fingerprint.encode() + at[order].tobytes() + counts[order].tobytes()
        return replace(
            self,
            outcome=of(self.outcome),
            decision=of(self.decision),
            score=of(self.score),
            weight=of(self.weight),
            weight_square=None if self.weight is None else sealed(counts * self.weight[at] ** 2),
            attributes=tuple(replace(a, codes=sealed(a.codes[at])) for a in self.attributes),
            continuous={name: sealed(v[at]) for name, v in self.continuous.items()},
            features={name: sealed(v[at]) for name, v in self.features.items()},
            strata=None if self.strata is None else replace(self.strata, codes=sealed(self.strata.codes[at])),
            cluster=None if self.cluster is None else sealed(self.cluster[at]),
            survey_strata=None if self.survey_strata is None else sealed(self.survey_strata[at]),
            period=None if self.period is None else replace(self.period, codes=sealed(self.period.codes[at])),
            probabilities={name: p.take(at) for name, p in self.probabilities.items()},
            count=read_only(counts),
            rows=RowCounts(rows_in=rows, rows_used=rows, dropped={}),
            fingerprint=hashlib.sha256(content).hexdigest(),
        )

    def _refuse_cells(self) -> None:
        if self.moments is not None:
            raise DataError("These rows stayed on their engine and cannot be divided. Read them with `rows='keep'`.")

    @staticmethod
    def joined(parts: Sequence[AuditData]) -> AuditData:
        """Return the records of several parts of one whole, one after the other.

        Parameters
        ----------
        parts : sequence of AuditData
            With the same columns, coded alike.

        Returns
        -------
        AuditData

        Examples
        --------
        >>> data = AuditData.from_arrays(decision=[1, 0, 1], groups={"g": ["a", "b", "a"]})
        >>> AuditData.joined([data.records(np.array([2, 0])), data.records(np.array([1]))]).decision.tolist()
        [1.0, 1.0, 0.0]
        """
        first = parts[0]

        def of(values: Sequence[NDArray[Any] | None]) -> Any:
            return sealed(np.concatenate([v for v in values if v is not None])) if values[0] is not None else None

        def attribute(own: Attribute, codes: Sequence[IntArray]) -> Attribute:
            return replace(own, codes=of(codes))

        rows = sum(part.rows.rows_used for part in parts)
        return replace(
            first,
            **{
                name: of([getattr(part, name) for part in parts])
                for name in ("outcome", "decision", "score", "weight", "weight_square", "cluster", "survey_strata")
            },
            attributes=tuple(
                attribute(own, [part.attributes[i].codes for part in parts]) for i, own in enumerate(first.attributes)
            ),
            continuous={name: of([part.continuous[name] for part in parts]) for name in first.continuous},
            features={name: of([part.features[name] for part in parts]) for name in first.features},
            strata=None
            if first.strata is None
            else attribute(first.strata, [part.strata.codes for part in parts if part.strata is not None]),
            period=None
            if first.period is None
            else attribute(first.period, [part.period.codes for part in parts if part.period is not None]),
            probabilities={
                name: replace(own, values=of([part.probabilities[name].values for part in parts]))
                for name, own in first.probabilities.items()
            },
            count=of([part.count for part in parts]),
            rows=RowCounts(rows_in=rows, rows_used=rows, dropped={}),
            fingerprint=hashlib.sha256("".join(sorted(part.fingerprint for part in parts)).encode()).hexdigest(),
        )


def _own_or_none(array: FloatArray | None) -> FloatArray | None:
    return None if array is None else read_only(array)
