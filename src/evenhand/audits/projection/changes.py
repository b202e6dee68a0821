"""Who would have to change: from moved masses per cell to people, groups, directions and distances."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.arrays import FloatArray, IntArray
from evenhand.audits.projection.boundary import Sample
from evenhand.audits.projection.criteria import Conditions, among
from evenhand.audits.projection.evidence import (
    Changes,
    DistanceHistogram,
    GroupChanges,
    NearBoundary,
    ProjectedRate,
)
from evenhand.kernels.transport.limit_law import Law
from evenhand.kernels.transport.projection import Cell, Projection

_WHOLE = 1e-6  # a share of a row below this is rounding

Laws = Sequence[tuple[float, float, Law]]  # factor, bandwidth, law; the one used comes first


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solved:
    """A criterion on the records, the cheapest move that meets it, and what chance makes of its cost."""

    conditions: Conditions  # the criterion
    # cells, place: sorted records, and each record's cell.
    cells: tuple[Cell, ...]
    place: IntArray
    move: Projection  # the cheapest one
    covariance: FloatArray  # (m, m): of a row's influence on the conditions
    laws: Laws


def moved_share(solved: Solved, sample: Sample) -> tuple[IntArray, FloatArray]:
    """Return the records that move and the share of each that does. [si2021] Proposition 3

    Parameters
    ----------
    solved : Solved
        The cheapest move.
    sample : Sample
        The records.

    Returns
    -------
    records : ndarray of int
        Sorted by cell, then distance.
    share : ndarray
        Between 0 and 1; at most a few are not 1.
    """
    cells, moved, place, distance = solved.cells, solved.move.moved, solved.place, sample.distance
    # Nearest rows go first, so a cell's movers are those up to its last price: one pass, no sort of all rows.
    cut = np.array([c.last_price(float(q)) if q > _WHOLE else -1.0 for c, q in zip(cells, moved, strict=True)])
    candidates = np.flatnonzero((place >= 0) & (distance <= cut[place]))
    weight = np.ones(candidates.size) if sample.single else sample.mass[candidates]
    order = np.lexsort((candidates, weight, distance[candidates], place[candidates]))
    candidates, weight = candidates[order], weight[order]
    share = np.empty(candidates.size)
    starts = np.searchsorted(place[candidates], np.arange(len(cells) + 1))
    for j, q in enumerate(moved):
        part = slice(starts[j], starts[j + 1])
        before = np.concatenate([[0.0], np.cumsum(weight[part])])[:-1]
        share[part] = np.clip((float(q) - before) / weight[part], 0.0, 1.0)
    taken = share > _WHOLE
    return candidates[taken], share[taken]


def describe_changes(conditions: Conditions, sample: Sample, records: IntArray, share: FloatArray) -> Changes:
    """Count the people who would have to change, by group and direction.

    Parameters
    ----------
    conditions : Conditions
        The criterion.
    sample : Sample
        The records.
    records, share : ndarray
        From `moved_share`.

    Returns
    -------
    Changes
        With a line for each rate and direction.
    """
    count = sample.count
    people = np.ceil(share * count[records] - _WHOLE)  # (movers,)
    far = sample.distance[records]
    lines = []
    for rate in conditions.rates:
        inside = rate.cells[conditions.code[records]] if records.size else np.empty(0, dtype=bool)
        own = (conditions.code >= 0) & rate.cells[conditions.code]
        for now in (0, 1):
            taken = inside & (sample.decision[records] == now)
            lines.append(
                GroupChanges(
                    group=rate.group,
                    outcome=rate.outcome,
                    from_=now,
                    to=1 - now,
                    people=int(people[taken].sum()),
                    share_of_group=float(people[taken].sum() / max(1, count[own].sum())),
                    **_distances(far[taken], people[taken]),
                )
            )
    return Changes(
        people=int(people.sum()),
        share_of_sample=float(people.sum() / sample.rows),
        in_part=int(np.sum(share < 1 - _WHOLE)),
        **_distances(far, people),
        by_group=tuple(lines),
    )


def projected_rates(conditions: Conditions, moved: FloatArray) -> tuple[ProjectedRate, ...]:
    """Return each rate before and after the move.

    Parameters
    ----------
    conditions : Conditions
        The criterion.
    moved : ndarray, shape (2 U,)
        Mass moved up and down in each value of U.

    Returns
    -------
    tuple of ProjectedRate
    """
    change = moved.reshape(-1, 2)  # (U, 2): up, down
    lines = []
    for rate in conditions.rates:
        size = float(conditions.mass[rate.cells].sum())
        positive = float(conditions.mass[rate.cells, 1].sum())
        after = positive + float(change[rate.cells, 0].sum() - change[rate.cells, 1].sum())
        lines.append(
            ProjectedRate(
                group=rate.group,
                outcome=rate.outcome,
                reference=rate.reference,
                before=positive / size,
                after=after / size,
            )
        )
    return tuple(lines)


def sentence(changes: Changes, rows: float) -> str:
    """Say in one sentence who would have to change."""
    if not changes.people:
        return "Nobody would have to change."
    people = changes.people
    said = (
        f"The smallest change that removes it moves {people:,} of {int(rows):,} people ({people / rows:.1%}) across "
        f"the boundary, {changes.mean_distance:.3g} on average and {changes.largest_distance:.3g} at most"
    )
    lines = [
        f"{line.people:,} of {among(line.group, line.outcome)} from {line.from_} to {line.to}"
        for line in changes.by_group
        if line.people
    ]
    shown = "; ".join(lines[:4]) + ("; …" if len(lines) > 4 else "")
    return f"{said}: {shown}." if shown else f"{said}."


def signed_histogram(
    conditions: Conditions, cells: tuple[Cell, ...], width: float, bins: int = 60
) -> DistanceHistogram:
    """Return histograms of the signed distance near the boundary, one for each rate, for the report to draw."""
    edges = np.linspace(-width, width, bins + 1)
    counted = np.zeros((len(cells), bins))
    for j, cell in enumerate(cells):
        signed = cell.distance if j % 2 else -cell.distance
        mass = None if cell.reach is None else np.diff(cell.reach)
        counted[j] = np.histogram(signed, bins=edges, weights=mass)[0]
    pairs = counted.reshape(-1, 2, bins).sum(axis=1)  # (U, bins)
    return DistanceHistogram(
        edges=tuple(edges.tolist()),
        series=tuple(
            NearBoundary(group=r.group, outcome=r.outcome, mass=tuple(pairs[r.cells].sum(axis=0).tolist()))
            for r in conditions.rates
        ),
    )


def _distances(far: FloatArray, people: FloatArray) -> dict[str, float]:
    if not people.sum():
        return {"mean_distance": math.nan, "median_distance": math.nan, "largest_distance": math.nan}
    order = np.argsort(far, kind="stable")
    middle = np.searchsorted(np.cumsum(people[order]), 0.5 * people.sum())
    return {
        "mean_distance": float(np.average(far, weights=people)),
        "median_distance": float(far[order[middle]]),
        "largest_distance": float(far.max()),
    }
