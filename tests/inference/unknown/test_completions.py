"""Assignments of people of unknown group against all assignments there are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from evenhand.inference.unknown.completions import A, B, MeanParts, assign_cells, assign_values
from evenhand.metrics import METRICS


def extremes_by_hand(table, cells, metric, groups, ratio):
    """Return the smallest and largest comparison of groups 0 and 1 over all assignments."""
    values = []
    for places in itertools.product(range(groups), repeat=len(cells)):
        whole = np.array(table, dtype=float)
        np.add.at(whole, (list(places), list(cells)), 1)
        first, second = METRICS[metric](whole)[:2]
        values.append(first / second if ratio else first - second)
    return min(values), max(values)


def placed(table, cells, metric, pair, directions, ratio):
    first, second = pair
    places = assign_cells(np.array(cells), *directions)
    whole = np.array(table, dtype=float)
    for place, cell in zip(places, cells, strict=True):
        if place in (A, B):
            whole[first if place == A else second, cell] += 1
    values = METRICS[metric](whole)
    return values[0] / values[1] if ratio else values[0] - values[1]


RATES = [
    "selection_rate",
    "tpr",
    "fpr",
    "precision",
    "npv",
    "accuracy",
    "f1",
    "balanced_accuracy",
    "aod",
]
TABLES = {"balanced_accuracy": ((0, 3), (1, 2)), "aod": ((1, 3), (0, 2))}


@pytest.mark.parametrize("ratio", [False, True])
@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("metric", RATES)
def test_corner_assignments_are_the_extremes(metric, groups, ratio):
    rng = np.random.default_rng(len(metric) + groups)
    known = METRICS[metric]
    directions = TABLES.get(metric) or (known.numerator, tuple(set(known.denominator) - set(known.numerator)))
    for _ in range(6):
        table = rng.integers(1, 6, size=(groups, 4))
        cells = rng.integers(0, 4, size=6 if groups == 3 else 8)
        low, high = extremes_by_hand(table, cells, metric, groups, ratio)
        assert placed(table, cells, metric, (0, 1), directions, ratio) == pytest.approx(high)
        assert placed(table, cells, metric, (1, 0), directions, ratio) == pytest.approx(low)


@pytest.mark.parametrize("ratio", [False, True])
@pytest.mark.parametrize("groups", [2, 3])
def test_means_against_every_assignment(groups, ratio):
    rng = np.random.default_rng(groups)
    for _ in range(60):
        value, weight = rng.random(7) ** 2, rng.choice([1.0, 0.5, 2.0], 7)
        size, mean = rng.integers(1, 6, 2).astype(float), rng.random(2)
        parts = MeanParts(weight=tuple(size), total=tuple(size * mean), value=value, unknown=weight)
        found = assign_values(parts, elsewhere=groups > 2, ratio=ratio)
        best = max(_compared(parts, np.array(places), ratio) for places in itertools.product(range(groups), repeat=7))
        assert _compared(parts, found, ratio) == pytest.approx(best)


def _compared(parts, places, ratio):
    means = [
        (parts.total[k] + (parts.value * parts.unknown)[places == k].sum())
        / (parts.weight[k] + parts.unknown[places == k].sum())
        for k in (A, B)
    ]
    return means[0] / means[1] if ratio else means[0] - means[1]
