from __future__ import annotations

import numpy as np
import pytest

from evenhand.kernels.flow.direction_search import PASSES, Directions, search
from evenhand.kernels.flow.tiles import Tiles

POINTS = 9


def slow_search(start, objective, directions, snap):
    """Go from one row along one direction at a time, asking about every place."""
    ends = []
    for k, row in enumerate(start):
        at = np.array([k])
        free, kept, best = row.copy(), row.copy(), objective(row[None], at)[0]
        for j in [*range(directions.number)] * PASSES:
            along, (least, most), bottom, top = directions.line(j, row[None], at)
            along = along if along.ndim == 1 else along[0]
            options = []
            for share in np.linspace(0, 1, POINTS):
                goal = np.clip(bottom[0] + share * (top[0] - bottom[0]), least[0], most[0])
                place = free + (goal - free @ along) * along
                options.append((objective(snap(place[None]), at)[0], -np.linalg.norm(place - row), place))
            peak = max(value for value, _, _ in options)
            place = max((o for o in options if o[0] >= peak), key=lambda o: o[1])[2]
            if peak > best + 1e-12 * max(1.0, abs(best)):
                free, kept, best = place, snap(place[None])[0], peak
        ends.append(kept)
    return np.array(ends)


@pytest.mark.parametrize("tile", [7, 50])
def test_it_is_the_search_place_by_place_and_asks_about_equal_places_once(tile):
    rng = np.random.default_rng(1)
    start = np.column_stack([rng.normal(size=(40, 2)), rng.integers(0, 2, 40)])
    weights = rng.normal(size=(40, 3))

    def snap(X):
        return np.column_stack([X[:, :2], X[:, 2] > 0.5])

    asked = []

    def objective(X, rows):
        asked.append(len(X))
        return np.sin(3 * X * weights[rows]).sum(axis=1) + X[:, 2]

    number = np.linalg.qr(rng.normal(size=(2, 2)))[0][:, :1]
    directions = Directions(
        np.column_stack([np.vstack([number, [[0.0]]]), [0.0, 0.0, 1.0]]), np.array([-2.0, 0.0]), np.array([2.0, 1.0])
    )
    fast = search(start, objective, directions, points=POINTS, snap=snap, tiles=Tiles(size=tile))
    places = sum(asked)
    np.testing.assert_allclose(fast, slow_search(start, objective, directions, snap), atol=1e-12)
    assert np.abs(fast - start).max() > 0.5
    # The start, and in each round at most all places of the number and the two values of the other.
    assert places <= len(start) * (1 + PASSES * (POINTS + 2))
