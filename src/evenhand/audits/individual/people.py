"""The people an individual audit moves: equal rows made one, in an order that row order cannot change."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenhand.arrays import FloatArray, IntArray
from evenhand.errors import DataError
from evenhand.intake import AuditData
from evenhand.models import audited_model
from evenhand.models.gradient import rescaled
from evenhand.models.gradient_view import ModelView, view_model
from evenhand.similarity.metric import GroupTable, MetricRows

# Inputs whose spread differs from one by more than this factor are standardised when `scale` is "auto".
SPREAD = 4.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class People:
    """Distinct people: inputs, outcome and sampling weight, with how many rows each stands for."""

    view: ModelView  # the model; its `y` is that of the distinct people
    X: FloatArray  # (people, inputs): in the coordinates they are moved in, sorted
    count: FloatArray  # (people,): rows each stands for
    weight: FloatArray | None  # sampling weight of each of those rows
    groups: tuple[GroupTable, ...]  # rows per person and group
    continuous: Mapping[str, FloatArray]  # sum of each continuous attribute
    notes: tuple[str, ...] = ()  # what was decided on the user's behalf

    def learn(self, index: IntArray) -> MetricRows:
        """Return some of the people as rows a metric is learned from."""
        return MetricRows(
            X=self.X[index],
            groups=tuple(replace(g, table=g.table[index]) for g in self.groups),
            continuous={k: v[index] for k, v in self.continuous.items()},
            count=self.count[index],
            space=self.view.space,
        )


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
    raw = view.space.encode(data.features) + 0.0  # -0.0 and 0.0 are the same person
    if not np.all(np.isfinite(raw)):
        bad = int((~np.isfinite(raw)).any(axis=1).sum())
        raise DataError(f"{bad} rows have a missing or infinite model input. Drop them, or impute inside the pipeline.")
    key = [raw, view.y[:, None]] + ([] if data.weight is None else [data.weight[:, None]])
    units, place = np.unique(np.hstack(key), axis=0, return_inverse=True)
    place = place.reshape(-1)
    n, p = units.shape[0], raw.shape[1]
    count = _tally(place, data.count.astype(np.float64), n)
    view, X, note = _in_units(replace(view, y=units[:, p]), units[:, :p], count, scale)
    return People(
        view=view,
        X=X,
        count=count,
        weight=None if data.weight is None else units[:, p + 1],
        groups=_group_tables(data, place, n),
        continuous=_continuous_sums(data, place, n),
        notes=(*view.notes, *note),
    )


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
    X, place = np.unique(people.view.space.encode(data.features) + 0.0, axis=0, return_inverse=True)
    place, n = place.reshape(-1), X.shape[0]
    return MetricRows(
        X=X,
        groups=_group_tables(data, place, n),
        continuous=_continuous_sums(data, place, n),
        count=_tally(place, data.count.astype(np.float64), n),
        space=people.view.space,
    )


def halves(rows: FloatArray) -> tuple[IntArray, IntArray]:
    """Split distinct rows in two halves by a hash of their content; neither a seed nor the order of rows matters.

    Parameters
    ----------
    rows : ndarray, shape (rows, values)
        Without repetition.

    Returns
    -------
    two index arrays, each sorted
    """
    order = np.argsort([zlib.crc32(row.tobytes()) for row in np.ascontiguousarray(rows)], kind="stable")
    return np.sort(order[::2]), np.sort(order[1::2])


def _in_units(
    view: ModelView, raw: FloatArray, count: FloatArray, scale: str
) -> tuple[ModelView, FloatArray, tuple[str, ...]]:
    total = count.sum()
    center = count @ raw / total
    spread = np.sqrt(count @ (raw - center) ** 2 / total)
    number = np.array([i.category is None for i in view.space.inputs])
    # Two values are a yes or no: their spread says how common the yes is, not in which unit it is measured.
    number &= np.array([np.unique(column[:3000]).size > 2 or np.unique(column).size > 2 for column in raw.T])
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


def _group_tables(data: AuditData, place: IntArray, n: int) -> tuple[GroupTable, ...]:
    """Count the rows of each person in each group of each attribute."""
    rows = data.count.astype(np.float64)
    tables = (_tally(place * len(a.labels) + a.codes, rows, n * len(a.labels)) for a in data.attributes)
    return tuple(
        GroupTable(name=a.name, labels=a.labels, table=table.reshape(n, -1))
        for a, table in zip(data.attributes, tables, strict=True)
    )


def _continuous_sums(data: AuditData, place: IntArray, n: int) -> dict[str, FloatArray]:
    """Sum each continuous attribute over the rows of each person; sorted, so that row order cannot change a digit."""
    rows = data.count.astype(np.float64)
    orders = {name: np.lexsort((rows, values, place)) for name, values in data.continuous.items()}
    return {name: _tally(place[order], (data.continuous[name] * rows)[order], n) for name, order in orders.items()}


def _tally(place: IntArray, amount: FloatArray, size: int) -> FloatArray:
    return np.bincount(place, weights=amount, minlength=size).astype(np.float64)
