"""Distances of rows that stay where they are: measured batch by batch, and brought back as counted records.

A record is all people of one group, outcome and decision at one distance. Up to `EXACT_ROWS` rows distances are kept as
they are; of more, those that differ by less than one part in a thousand are counted together at their mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import FloatArray, IntArray, read_only
from evenhand.audits.projection.boundary import (
    Boundary,
    Distances,
    ScoreEnds,
    column_distance,
    disagreement,
    find_boundary,
    input_names,
    is_margin,
    margin_boundary,
    model_boundary,
    priced,
)
from evenhand.errors import DataError, UsageError
from evenhand.intake import AuditData
from evenhand.intake.batches import Batches, Several, batches_of
from evenhand.intake.cells import first_places, joint_codes
from evenhand.kernels.shared.value_bins import bin_places
from evenhand.models import AuditedModel, audited_model
from evenhand.models.distances import BoundaryDistance, boundary_distance
from evenhand.models.gradient_sklearn import final_step
from evenhand.models.ground import find_ground
from evenhand.models.linear import linear_form

EXACT_ROWS = 1 << 20
DIGITS = 10  # of a distance where there are more rows
_WAITING = 1 << 17  # records that wait before they are brought together
SEARCHED_ROWS = 20_000  # from which a boundary is searched, at most
_TRIAL_ROWS = 1_000  # that show how the distances of a model are found

# From a batch to decisions and distances.
Measure = Callable[[AuditData], tuple[IntArray, FloatArray]]


def find_records(
    data: AuditData, model: Any, distance: ArrayLike | str | None, how: Distances, seed: int
) -> tuple[AuditData, Boundary]:
    """Find decisions and distances, and the records they belong to: the data's own, or those that batches bring back.

    Parameters
    ----------
    data : AuditData
        With rows in memory, or batches.
    model, distance, how, seed
        As for `find_boundary`.

    Returns
    -------
    data : AuditData
        The records.
    boundary : Boundary
        With one decision and one distance for each.
    """
    many = batches_of(data).rows > SEARCHED_ROWS  # rows in memory, to search from each of them
    if model is not None and distance is None and (many or data.batches is not None):
        return _by_model(data, audited_model(model, data, threshold=how.threshold), how, seed)
    if data.batches is None or (model is None) == (distance is None):
        return data, find_boundary(data, model, distance, how, seed)
    if is_margin(distance, data.batches.features):
        cut = data.batches.fold(ScoreEnds).threshold()
        made, far = _records(data, data.batches, partial(_margin_of_batch, cut))
        return made, _stated(data, priced(made, margin_boundary(made, cut, far), how.cost))
    if not isinstance(distance, str) or distance not in data.batches.features:
        raise UsageError(
            "The rows stay where they are, so that `distance` must be the name of a feature column, or 'threshold' for "
            "the margin of a score. Read them with `rows='keep'` to give an array."
        )
    measure = partial(_column_of_batch, distance)
    made, far = _records(data, data.batches, measure)
    named = {"method": "given", "source": f"column `{distance}`", "scale": "as given"}
    boundary = Boundary(decision=np.asarray(made.decision).astype(np.int64), distance=far, described=named)
    return made, _stated(data, priced(made, boundary, how.cost))


def _by_model(data: AuditData, model: AuditedModel, how: Distances, seed: int) -> tuple[AuditData, Boundary]:
    batches, spread, ahead = batches_of(data), None, None
    if data.batches is not None and how.scale in ("std", "range"):
        # In one walk, in which the rows are drawn that show how the model's distances are found. Those of a linear
        # score are proportional in any units, so that they need not wait until the spread is known.
        if _is_linear(model, batches.plain.first(), how):
            own = replace(how, scale="none")
            both = batches.plain.fold(partial(Several, _Spread, _make_records(batches, model, own, seed)))
            spread, ahead = both.summaries
        else:
            spread = batches.plain.fold(_Spread)
    shown = batches.sample(SEARCHED_ROWS, seed=0)
    names = input_names(model, shown, how)
    columns = {n: shown.features[n] for n in names}
    some = {n: column[:_TRIAL_ROWS] for n, column in columns.items()}
    trial = boundary_distance(model, some, how, count=shown.count[:_TRIAL_ROWS], seed=seed)
    drawn = hasattr(final_step(model.source)[1], "drawn_members") and model.choose is not None
    if trial.method == "search" or drawn:
        # A search walks from row to row, and a drawn member depends on its place: both need rows side by side.
        boundary = find_boundary(shown, model, None, how, seed)
        drawn_rows = int(shown.count.sum())
        if drawn_rows == batches.rows:
            return shown, boundary
        warning = (
            f"Distances to this model's boundary are searched from row to row, so {drawn_rows:,} rows, drawn "
            f"by their content, stand for all {batches.rows:,}. Counts and p-value are those of the rows drawn."
        )
        return shown, replace(boundary, warnings=(*boundary.warnings, warning))
    if data.batches is None:
        return data, find_boundary(data, model, None, how, seed)
    moves = how
    if spread is not None:
        moving = find_ground(model, columns, how.categorical).moving
        moves = replace(how, scale=tuple(spread.unit(str(how.scale), moving).tolist()))
    times = None
    if ahead is not None and trial.method == "linear":
        times = _proportion(
            *(boundary_distance(model, some, m, seed=seed) for m in (replace(how, scale="none"), moves))
        )
    # The model is asked in the walk, so that it need not have decided before.
    if ahead is None or times is None:
        ahead, times = batches.plain.fold(_make_records(batches, model, moves, seed)), 1.0
    made, far = ahead.data(data)
    measured = replace(trial, distance=far * times, decision=np.asarray(made.decision), towards=None)
    return made, _stated(data, priced(made, model_boundary(made, measured, how), how.cost))


def _is_linear(model: AuditedModel, some: AuditData, how: Distances) -> bool:
    """Say whether distances are those to a plane, as far as some rows show; jumps have a price that no unit changes."""
    if how.categorical or how.method not in ("auto", "linear"):
        return False
    ground = find_ground(model, {n: some.features[n][:_TRIAL_ROWS] for n in input_names(model, some, how)})
    return ground.surface is not None and linear_form(ground.surface, ground.E) is not None


def _proportion(one: BoundaryDistance, other: BoundaryDistance) -> float | None:
    """Return by how much the second distances are longer than the first; None where that cannot be seen."""
    k = int(np.argmax(np.where(np.isfinite(one.distance), one.distance, -1.0)))
    near, far = float(one.distance[k]), float(other.distance[k])
    return far / near if 0 < near < np.inf and np.isfinite(far) else None


def _make_records(batches: Batches, model: AuditedModel, moves: Distances, seed: int) -> Callable[[], _Records]:
    return partial(_Records, partial(_model_distance, model, moves, seed), _digits(batches))


def _model_distance(model: AuditedModel, moves: Distances, seed: int, batch: AuditData) -> tuple[IntArray, FloatArray]:
    columns = {n: batch.features[n] for n in input_names(model, batch, moves)}
    measured = boundary_distance(model, columns, moves, count=batch.count, seed=seed)
    return measured.decision.astype(np.int64), measured.distance


def _column_of_batch(name: str, batch: AuditData) -> tuple[IntArray, FloatArray]:
    boundary = column_distance(batch, name)
    return boundary.decision, boundary.distance


def _margin_of_batch(cut: float, batch: AuditData) -> tuple[IntArray, FloatArray]:
    return np.asarray(batch.decision).astype(np.int64), np.abs(np.asarray(batch.score) - cut)


def _stated(data: AuditData, boundary: Boundary) -> Boundary:
    """Say how much a distance may differ from its row's own, where distances were counted together."""
    if batches_of(data).rows <= EXACT_ROWS:
        return boundary
    note = (
        f"Distances that differ by less than {2.0**-DIGITS:.2%} were counted together at their mean, so that the mean "
        f"distance moved is known within {2.0**-DIGITS:.2%}."
    )
    described = {**boundary.described, "largest_relative_error": 2.0**-DIGITS}
    return replace(boundary, described=described, notes=(*boundary.notes, note))


def _records(data: AuditData, batches: Batches, measure: Measure) -> tuple[AuditData, FloatArray]:
    """Measure all rows where they are, and return the records and their distances."""
    return batches.fold(partial(_Records, measure, _digits(batches))).data(data)


def _digits(batches: Batches) -> int | None:
    """Return how many digits of distances count; None where all do."""
    return None if batches.rows <= EXACT_ROWS else DIGITS


class _Records:
    """People added up by group, outcome, decision and distance."""

    def __init__(self, measure: Measure, digits: int | None) -> None:
        self._measure, self._digits = measure, digits
        self.differ = 0  # rows on which the model and a column of decisions disagree
        # Codes, shape (records, keys), and sums, shape (records, 4): rows, w, w², w times distance. The first pair has
        # each record once; others wait until they are as many, so that records are not sorted again for every batch.
        self._held: list[tuple[IntArray, FloatArray]] = []

    def add(self, batch: AuditData) -> None:
        """Measure the rows of one batch."""
        decision, distance = self._measure(batch)
        if batch.decision is not None:
            self.differ += int(batch.count[decision != batch.decision].sum())
        binary = batch.outcome is not None and batch.outcome_kind == "binary"
        outcome = batch.outcome.astype(np.int64) if batch.outcome is not None and binary else np.zeros_like(decision)
        # Every double has a place of its own where all its digits count.
        place = bin_places(distance, 52 if self._digits is None else self._digits)
        weight = np.ones(distance.size) if batch.weight is None else batch.weight
        mass = batch.count * weight
        codes = np.column_stack([*(a.codes for a in batch.attributes), outcome, decision, place])
        self._held.append((codes, np.column_stack([batch.count, mass, batch.count * weight**2, mass * distance])))
        self._join_some()

    def merge(self, other: _Records) -> None:
        """Take the rows of another part."""
        self.differ += other.differ
        self._held += other._held
        self._join_some()

    def _join_some(self) -> None:
        waiting = sum(len(codes) for codes, _ in self._held[1:])
        if waiting and waiting > max(len(self._held[0][0]), _WAITING):
            self._join()

    def _join(self) -> tuple[IntArray, FloatArray]:
        """Bring all that is held into records that occur once."""
        codes, sums = (np.concatenate(parts) for parts in zip(*self._held, strict=True))
        distinct, place = np.unique(codes[:, -1], return_inverse=True)
        keys = [(key, int(key.max()) + 1) for key in codes[:, :-1].T]
        record, used = joint_codes([*keys, (place.astype(np.int64), len(distinct))])
        first = codes[first_places(record, len(used))]
        self._held = [(first, np.column_stack([np.bincount(record, term, len(used)) for term in sums.T]))]
        return self._held[0]

    def data(self, whole: AuditData) -> tuple[AuditData, FloatArray]:
        """Return the records as data, and their distances."""
        if self.differ:
            raise DataError(disagreement(self.differ, whole))
        codes, sums = self._join()
        *groups, outcome, decision, place = codes.T
        rows, mass, square, total = sums.T
        distance = place.astype(np.int64).view(np.float64) if self._digits is None else total / mass
        count = rows.astype(np.int64)
        weighted = whole.weight is not None
        made = replace(
            whole,
            outcome=None if whole.outcome is None else read_only(outcome.astype(np.float64)),
            decision=read_only(decision.astype(np.float64)),
            score=None,
            score_kind="none",
            score_bins=None,
            attributes=tuple(replace(a, codes=read_only(c)) for a, c in zip(whole.attributes, groups, strict=True)),
            count=read_only(count),
            weight=read_only(mass / count) if weighted else None,
            weight_square=read_only(square) if weighted else None,
            moments=None,
            batches=None,
        )
        return made, distance


class _Spread:
    """Mean, spread and range of the columns of numbers."""

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()
        self._rows = 0.0
        # (columns,): mean, sum of squares around it, smallest and largest value.
        self._mean = self._square = np.zeros(0)
        self._low = self._high = np.zeros(0)

    def add(self, batch: AuditData) -> None:
        """Take the rows of one batch."""
        numbers = {n: c for n, c in batch.features.items() if c.dtype.kind in "biuf"}
        if not numbers:
            return
        lines = np.array([*numbers.values()], dtype=np.float64)  # (columns, rows)
        rows = float(batch.count.sum())
        mean = lines @ batch.count / rows
        low, high = lines.min(axis=1), lines.max(axis=1)
        lines -= mean[:, None]
        self._take(tuple(numbers), rows, mean, np.square(lines, out=lines) @ batch.count, low, high)

    def merge(self, other: _Spread) -> None:
        """Take the rows of another part."""
        if other._rows:
            self._take(other._names, other._rows, other._mean, other._square, other._low, other._high)

    def _take(
        self,
        names: tuple[str, ...],
        rows: float,
        mean: FloatArray,
        square: FloatArray,
        low: FloatArray,
        high: FloatArray,
    ) -> None:
        if not self._rows:
            self._names, self._rows = names, rows
            self._mean, self._square, self._low, self._high = mean, square, low, high
            return
        # Means and squares of two parts, without large sums that cancel (Chan, Golub and LeVeque 1983).
        total, gap = self._rows + rows, mean - self._mean
        self._square = self._square + square + gap**2 * (self._rows * rows / total)
        self._mean = self._mean + gap * (rows / total)
        self._rows = total
        self._low, self._high = np.minimum(self._low, low), np.maximum(self._high, high)

    def unit(self, scale: str, names: Sequence[str]) -> FloatArray:
        """Return the standard deviation or the range of some columns, 1 where it is 0."""
        spread = np.sqrt(self._square / self._rows) if scale == "std" else self._high - self._low
        return np.where(spread > 0, spread, 1.0)[[self._names.index(name) for name in names]]
