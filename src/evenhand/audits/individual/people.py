"""The people an individual audit moves: equal rows made one, in an order that row order cannot change."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenhand.arrays import BoolArray, FloatArray, IntArray
from evenhand.errors import DataError
from evenhand.intake import AuditData
from evenhand.models import audited_model
from evenhand.models.gradient import rescaled
from evenhand.models.gradient_view import ModelView, view_model
from evenhand.models.input_space import InputSpace
from evenhand.similarity.metric import GroupTable, MetricRows

# Inputs whose spread differs from one by more than this factor are standardised when `scale` is "auto".
SPREAD = 4.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class People:
    """Distinct people: inputs, outcome and sampling weight, with how many rows each stands for."""

    view: ModelView  # the model; its `y` is that of the distinct people
    # The people as rows a metric is learned from: inputs in the coordinates they are moved in, sorted.
    rows: MetricRows
    weight: FloatArray | None  # sampling weight of each of the rows a person stands for
    notes: tuple[str, ...] = ()  # what was decided on the user's behalf

    @property
    def count(self) -> FloatArray:
        """Rows each person stands for."""
        return self.rows.count

    @property
    def marks(self) -> IntArray:
        """A hash of each person's inputs and outcome."""
        return content_marks(np.column_stack([self.rows.X, self.view.y]))


def gather(data: AuditData, model: Any, *, scale: str, loss: str | None, clip: float) -> People:
    """Make the people of a data set.

    Parameters
    ----------
    data : AuditData
        Rows with outcome and features.
    model : object
        See `evenhand.models.audited_model`.
    scale : {"auto", "standard", "none"}
        Whether numbers are standardised before people are moved.
    loss, clip
        As in `view_model`.

    Returns
    -------
    People
    """
    if data.moments is not None or not data.features:
        raise DataError(
            "The individual audit moves people in the model's inputs and needs them as rows. Name the inputs with "
            "`features=`, and read the data with `rows='keep'`."
        )
    if data.outcome is None:
        raise DataError("The individual audit needs what really happened: name the column with `outcome=`.")
    asked = audited_model(model, data)
    view = view_model(asked, data.features, data.outcome, data.outcome_kind, loss=loss, clip=clip)
    rows, y, weight = _distinct(data, view, view.y)
    view, X, note = _in_units(replace(view, y=y), rows.X, rows.count, scale)
    return People(
        view=view,
        rows=replace(rows, X=np.ascontiguousarray(X), space=view.space),
        weight=weight,
        notes=(*view.notes, *note),
    )


def further(view: ModelView, data: AuditData) -> People:
    """Make the people of further rows, in the coordinates and with the classes of those already gathered.

    Parameters
    ----------
    view : ModelView
        Of the people gathered before.
    data : AuditData
        Rows with outcome and features, coded alike.

    Returns
    -------
    People
    """
    assert data.outcome is not None
    rows, y, weight = _distinct(data, view, view.code(data.outcome))
    return People(view=replace(view, y=y), rows=rows, weight=weight)


def _distinct(data: AuditData, view: ModelView, y: FloatArray) -> tuple[MetricRows, FloatArray, FloatArray | None]:
    """Make rows with equal inputs, outcome and weight one, in the order of these."""
    raw = view.space.encode(data.features) + 0.0  # -0.0 and 0.0 are the same person
    if not np.all(np.isfinite(raw)):
        bad = int((~np.isfinite(raw)).any(axis=1).sum())
        raise DataError(f"{bad} rows have a missing or infinite model input. Drop them, or impute inside the pipeline.")
    key = [raw, y[:, None]] + ([] if data.weight is None else [data.weight[:, None]])
    units, place = _units(np.hstack(key))
    p = raw.shape[1]
    rows = _counted(data, units[:, :p], place, view.space)
    return rows, units[:, p], None if data.weight is None else units[:, p + 1]


def _units(key: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the distinct rows in order, and the place of each row among them."""
    order = np.argsort(key[:, 0], kind="stable")
    if (np.diff(key[order, 0]) > 0).all():  # the first column tells them apart: no other needs to be looked at
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        return key[order], place
    units, place = np.unique(key, axis=0, return_inverse=True)
    return units, place.reshape(-1)


def same_space(people: People, data: AuditData) -> MetricRows:
    """Return other data's people as rows for a metric, in the coordinates of these people.

    Parameters
    ----------
    people : People
        The audited ones.
    data : AuditData
        Rows of their own for the metric.

    Returns
    -------
    MetricRows
    """
    if not data.features:
        raise DataError("The rows for the fair metric have no features. Name them with `features=`.")
    X, place = _units(people.view.space.encode(data.features) + 0.0)
    return _counted(data, X, place, people.view.space)


def content_marks(rows: FloatArray) -> IntArray:
    """Return a hash of the content of each row; neither a seed nor the order of rows matters.

    Parameters
    ----------
    rows : ndarray, shape (rows, values)
        Such as inputs and outcome.

    Returns
    -------
    ndarray of int, shape (rows,)
    """
    content = np.ascontiguousarray(rows).tobytes()
    width = len(content) // max(len(rows), 1)
    places = range(0, len(rows) * width, width) if width else ()
    return np.fromiter((zlib.crc32(content[at : at + width]) for at in places), np.int64, count=len(rows))


def second_half(marks: IntArray, known: IntArray) -> BoolArray:
    """Say who belongs to the second half: every other one of the known marks, and anybody else with the next above.

    Those whose marks are known fall into halves of equal size, and where anybody else belongs is a matter of content.

    Parameters
    ----------
    marks : ndarray of int, shape (rows,)
        From `content_marks`.
    known : ndarray of int
        The marks of all rows from which a metric is learned, increasing and without repetition.

    Returns
    -------
    ndarray of bool, shape (rows,)

    Examples
    --------
    >>> second_half(np.array([30, 10, 20, 15, 99]), np.array([10, 20, 30])).tolist()
    [False, False, True, True, True]
    """
    return np.asarray(np.searchsorted(known, marks) % 2 == 1)


def _in_units(
    view: ModelView, raw: FloatArray, count: FloatArray, scale: str
) -> tuple[ModelView, FloatArray, tuple[str, ...]]:
    total = count.sum()
    center = count @ raw / total
    spread = np.sqrt(count @ (raw - center) ** 2 / total)
    number = np.array([i.category is None for i in view.space.inputs])
    # Two values are a yes or no: their spread says how common the yes is, not in which unit it is measured.
    lowest, highest = raw.min(axis=0), raw.max(axis=0)
    number &= ~((lowest == raw) | (highest == raw)).all(axis=0)
    uneven = number & (spread > 0) & ((spread > SPREAD) | (spread < 1 / SPREAD))
    if scale == "none" or (scale == "auto" and not uneven.any()):
        return view, raw, ()
    moved = number & (spread > 0)
    center, unit = np.where(moved, center, 0.0), np.where(moved, spread, 1.0)
    network = None if view.network is None else rescaled(view.network, center, unit)

    def score(X: FloatArray) -> FloatArray:
        return view.score(center + X * unit)

    note = (
        f"The model's {int(moved.sum())} numeric inputs are on different scales and were standardised before people "
        "were moved (`scale='none'` keeps them as they are).",
    )
    moved_view = replace(view, space=view.space.rescaled(center, unit), network=network, score=score)
    return moved_view, (raw - center) / unit, note


def _counted(data: AuditData, X: FloatArray, place: IntArray, space: InputSpace) -> MetricRows:
    """Count the rows of each person, also by group, and sum continuous attributes over them."""
    rows, n = data.count.astype(np.float64), len(X)
    groups = []
    for a in data.attributes:
        table = _tally(place * len(a.labels) + a.codes, rows, n * len(a.labels)).reshape(n, -1)
        groups.append(GroupTable(name=a.name, labels=a.labels, table=table))
    continuous = {}
    for name, values in data.continuous.items():
        order = np.lexsort((rows, values, place))  # sorted, so that row order cannot change a digit
        continuous[name] = _tally(place[order], (values * rows)[order], n)
    return MetricRows(X=X, groups=tuple(groups), continuous=continuous, count=_tally(place, rows, n), space=space)


def _tally(place: IntArray, amount: FloatArray, size: int) -> FloatArray:
    return np.bincount(place, weights=amount, minlength=size).astype(np.float64)
