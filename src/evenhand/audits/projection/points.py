"""Which features of the people who would have to change, and by how much. [si2021] Proposition 3"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import IntArray
from evenhand.audits.projection.boundary import Boundary, Sample
from evenhand.audits.projection.evidence import FeatureChange, MovedPoints

Change = dict[str, tuple[NDArray[Any], NDArray[Any]]]  # by feature that changes: values before and after

_SAME = 1e-12  # a change so small beside the value is rounding
FEWEST = 5  # the middle change of fewer people would say something of single ones


def find_moves(boundary: Boundary, records: IntArray) -> Change | None:
    """Return the features that change, before and after; None where the distance says nothing of features."""
    if boundary.towards is None:
        return None
    moved = boundary.towards(records) if records.size else {}
    pairs = {name: (np.asarray(boundary.inputs[name])[records], after) for name, after in moved.items()}
    return {name: pair for name, pair in pairs.items() if differs(*pair).any()}


def differs(before: NDArray[Any], after: NDArray[Any]) -> NDArray[np.bool_]:
    """Say whose value changes; rounding is no change."""
    if before.dtype.kind in "biuf" and after.dtype.kind in "biuf":
        here = before.astype(float)
        return np.asarray(np.abs(after - here) > _SAME * (1 + np.abs(here)), dtype=bool)
    return np.asarray(before != after, dtype=bool)


def feature_changes(moves: Change, sample: Sample, records: IntArray) -> tuple[FeatureChange, ...]:
    """Count, for each feature and direction, the people who need another value, and the middle change of these."""
    told = []
    count = sample.count[records]
    for name, (before, after) in moves.items():
        changed = differs(before, after)
        for now in (0, 1):
            who = changed & (sample.decision[records] == now)
            if not who.any():
                continue
            number = before.dtype.kind in "biuf" and after.dtype.kind in "biuf"
            steps = np.repeat(after[who] - before[who].astype(float), count[who]) if number else np.empty(0)
            told.append(
                FeatureChange(
                    feature=name,
                    from_=now,
                    people=int(count[who].sum()),
                    median_change=float(np.median(steps)) if steps.size >= FEWEST else math.nan,
                )
            )
    return tuple(told)


def moved_points(moves: Change, records: IntArray) -> MovedPoints:
    """Return the values of each record before and after."""
    return MovedPoints(
        record=tuple(records.tolist()),
        before={name: before.tolist() for name, (before, _) in moves.items()},
        after={name: after.tolist() for name, (_, after) in moves.items()},
    )
