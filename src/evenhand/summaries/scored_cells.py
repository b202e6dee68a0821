"""Cells of rows that a model scores where they are: what an engine's one pass makes where scores are a column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from evenhand.arrays import FloatArray, IntArray, read_only
from evenhand.intake.cells import first_places, joint_codes, steady, steady_sums
from evenhand.intake.data import AuditData
from evenhand.intake.parts import Moments
from evenhand.intake.records import ScoreBins
from evenhand.intake.summed_values import VALUES, value_names


class ScoreRange:
    """The smallest and the largest score of some rows."""

    def __init__(self) -> None:
        self.low, self.high = np.inf, -np.inf

    def add(self, batch: AuditData) -> None:
        """Take the rows of one batch."""
        assert batch.score is not None
        self.low, self.high = min(self.low, float(batch.score.min())), max(self.high, float(batch.score.max()))

    def merge(self, other: ScoreRange) -> None:
        """Take the rows of another part."""
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)


class ScoredCells:
    """Rows added up by their groups, outcome, decision and bin of the score.

    Parameters
    ----------
    bins : ScoreBins
        Of the scores.

    Examples
    --------
    >>> rows = AuditData.from_arrays(decision=[0, 1, 1], score=[0.1, 0.8, 0.8], groups={"g": ["a", "b", "b"]})
    >>> cells = ScoredCells(ScoreBins.over(0.0, 1.0, 10))
    >>> cells.add(rows)
    >>> made = cells.data(rows)
    >>> made.count.tolist(), made.decision.tolist(), made.score.round(2).tolist(), made.moments["score"].wv.tolist()
    ([1, 2], [0.0, 1.0], [0.15, 0.85], [0.1, 1.6])
    """

    def __init__(self, bins: ScoreBins) -> None:
        self._bins = bins
        self._decided = False
        self._codes: IntArray = np.empty((0, 0), dtype=np.int64)  # (cells, keys)
        self._count: IntArray = np.empty(0, dtype=np.int64)
        self._sums: FloatArray = np.empty((0, 0))  # (cells, sums)

    def add(self, batch: AuditData) -> None:
        """Take the rows of one batch, with scores."""
        self._decided = batch.decision is not None
        self._take(*_added_up(_keys(batch, self._bins), batch.count, _terms(batch, self._bins)))

    def merge(self, other: ScoredCells) -> None:
        """Take the rows of another part."""
        if other._count.size:
            self._decided = other._decided
            self._take(other._codes, other._count, other._sums)

    def _take(self, codes: IntArray, count: IntArray, sums: FloatArray) -> None:
        """Take cells."""
        if self._count.size:
            codes, count = np.vstack([self._codes, codes]), np.concatenate([self._count, count])
            sums = np.vstack([self._sums, sums])
            codes, count, sums = _added_up([*codes.T], count, [*sums.T])
        self._codes, self._count, self._sums = codes, count, sums

    def data(self, whole: AuditData) -> AuditData:
        """Return the cells as data: those of the whole, with what the model says."""
        keys = iter(read_only(key) for key in self._codes.T)
        attributes = tuple(replace(a, codes=next(keys)) for a in whole.attributes)
        strata = None if whole.strata is None else replace(whole.strata, codes=next(keys))
        score = read_only(self._bins.middle(next(keys)))
        decision = next(keys).astype(np.float64)
        outcome = next(keys).astype(np.float64)
        total, square, outcome_sum, *rest = self._sums.T
        if whole.outcome_kind == "numeric":
            outcome = steady(outcome_sum / total)
        names = value_names(whole.outcome_kind, self._bins.kind)
        threes = zip(rest[::3], rest[1::3], rest[2::3], strict=True)
        moments = {n: steady_sums(*three, self._count) for n, three in zip(names, threes, strict=True)}
        weighted = whole.weight is not None
        return replace(
            whole,
            outcome=None if whole.outcome is None else read_only(outcome),
            decision=read_only(decision) if self._decided else None,
            score=score,
            score_kind=self._bins.kind,
            score_bins=self._bins.bins,
            attributes=attributes,
            strata=strata,
            count=read_only(self._count),
            weight=read_only(steady(total) / self._count) if weighted else None,
            weight_square=read_only(steady(square)) if weighted else None,
            moments={name: Moments(*map(read_only, three)) for name, three in moments.items()},
        )


def _added_up(
    keys: Sequence[IntArray], count: IntArray, terms: Sequence[FloatArray]
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the cells of some rows or cells: codes, shape (cells, keys), rows, and sums, shape (cells, sums)."""
    cell, used = joint_codes([(key, int(key.max()) + 1) for key in keys])
    first = first_places(cell, len(used))
    rows = np.zeros(len(used), dtype=np.int64)
    np.add.at(rows, cell, count)
    sums = [np.bincount(cell, weights=term, minlength=len(used)) for term in terms]
    return np.column_stack([key[first] for key in keys]), rows, np.column_stack(sums)


def _keys(batch: AuditData, bins: ScoreBins) -> list[IntArray]:
    """Return what tells cells apart, one code per row each: groups, stratum, bin, decision and binary outcome."""
    assert batch.score is not None
    none = np.zeros(batch.count.size, dtype=np.int64)
    keys = [attribute.codes for attribute in batch.attributes]
    keys += [] if batch.strata is None else [batch.strata.codes]
    outcome = batch.outcome.astype(np.int64) if batch.outcome is not None and batch.outcome_kind == "binary" else none
    return [
        *keys,
        bins.place(batch.score),
        none if batch.decision is None else batch.decision.astype(np.int64),
        outcome,
    ]


def _terms(batch: AuditData, bins: ScoreBins) -> list[FloatArray]:
    """Return what is added up: weights, their squares, the outcome, and of each value w v, w² v and w² v²."""
    assert batch.score is not None
    weight = np.ones(batch.count.size) if batch.weight is None else batch.weight
    outcome = np.zeros(batch.count.size) if batch.outcome is None else batch.outcome
    once, twice = batch.count * weight, batch.count * weight**2
    terms = [once, twice, once * outcome]
    for name in value_names(batch.outcome_kind, bins.kind):
        value = VALUES[name].array(outcome, batch.score)
        terms += [once * value, twice * value, twice * value**2]
    return terms
