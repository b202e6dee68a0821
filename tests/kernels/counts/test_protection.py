"""Totals held back: their ranges against every table that fits, and how many are too narrow."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from evenhand.kernels.counts.protection import feasible_range, held_back


def _two_way(rows, columns):
    """Totals of a two-way table: its rows, its columns and its cells."""
    place = np.arange(rows * columns)
    margins = [place // columns == i for i in range(rows)] + [place % columns == j for j in range(columns)]
    return np.vstack([*margins, np.eye(rows * columns, dtype=bool)])


def _every_table(parts, totals, held):
    """All tables of one kind that agree with what is published, by trying them."""
    counts = totals.astype(int) @ parts
    for cells in itertools.product(range(int(parts.sum()) + 1), repeat=len(parts) - 1):
        if sum(cells) > parts.sum():
            continue
        table = np.array([*cells, int(parts.sum()) - sum(cells)])
        sums = totals.astype(int) @ table
        if (sums[~held] == counts[~held, 0]).all() and (sums[held] >= 1).all():
            yield sums


@pytest.mark.parametrize("seed", range(6))
def test_ranges_are_those_of_all_tables_that_fit(seed):
    rng = np.random.default_rng(seed)
    parts = rng.integers(1, 5, size=(4, 1))
    totals = _two_way(2, 2)
    held = np.append(rng.random(4) < 0.5, [True, True, True, rng.random() < 0.5])
    tables = np.array(list(_every_table(parts, totals, held)))
    for place in np.flatnonzero(held):
        expected = (tables[:, place].min(), tables[:, place].max())
        assert feasible_range(parts, totals, held, place, 0) == expected
        assert feasible_range(parts, totals, held, place, None) == expected


@pytest.mark.parametrize("seed", range(8))
def test_nothing_held_back_is_narrower_than_the_threshold(seed):
    rng = np.random.default_rng(seed)
    totals = _two_way(2, 5)
    parts = rng.negative_binomial(0.8, 0.01, size=(10, 2)) + 1
    held = held_back(parts, totals, 10)
    small = ((totals.astype(int) @ parts) < 10).any(axis=1)
    assert (held >= small).all()
    for place in np.flatnonzero(held):
        for kind in (0, 1, None):
            low, high = feasible_range(parts, totals, held, place, kind)
            assert high - low >= 10


def test_nothing_small_nothing_held_back():
    assert not held_back(np.full((10, 2), 10), _two_way(2, 5), 10).any()


def test_a_lone_small_cell_takes_three_more_with_it():
    """In a table whose margins are published a cell is protected by the corners of a rectangle."""
    parts = np.full((9, 1), 50)
    parts[4] = 3
    held = held_back(parts, _two_way(3, 3), 10)
    assert not held[:6].any()
    cells = np.flatnonzero(held[6:])
    assert len(cells) == 4
    assert 4 in cells
    assert len(set(cells // 3)) == len(set(cells % 3)) == 2


def test_groups_of_one_are_not_betrayed_by_their_number():
    """Twenty groups of one person each, twenty people: everybody would know that each has one."""
    parts = np.vstack([np.ones((20, 1), dtype=int), [[400], [500]]])
    held = held_back(parts, np.eye(22, dtype=bool), 10)
    assert held.tolist() == [True] * 21 + [False]


def test_a_table_that_is_too_small_cannot_be_protected():
    assert held_back(np.array([[3, 2], [2, 4]]), np.eye(2, dtype=bool), 10) is None
