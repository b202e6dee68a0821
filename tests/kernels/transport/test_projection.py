"""Sorting, one unknown, the dual and the plain linear programme agree; odd cases behave."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog

from evenhand.kernels.transport.dual import project_cells
from evenhand.kernels.transport.equal_rates import Sides, project_rates
from evenhand.kernels.transport.projection import Cell, make_cells, project_line

TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def programme(distance, tilt, low, high, mass):
    """The linear programme of the paper, row by row, solved by HiGHS."""
    kept = np.isfinite(distance)
    rows = tilt[kept].T
    if np.array_equal(low, high):
        bounds = {"A_eq": rows, "b_eq": low}
    else:
        over, under = np.isfinite(high), np.isfinite(low)
        bounds = {
            "A_ub": np.vstack([rows[over], -rows[under]]),
            "b_ub": np.concatenate([high[over], -low[under]]),
        }
    box = np.column_stack([np.zeros(kept.sum()), mass[kept]])
    answer = linprog(distance[kept], bounds=box, method="highs-ds", options=TIGHT, **bounds)
    return answer.fun if answer.status == 0 else math.nan


def distances(rng, n, kind):
    d = np.abs(rng.standard_normal(n))
    if kind == "ties":
        return np.round(d, 1)  # many ties, some exactly 0
    if kind == "infinite":
        d[rng.random(n) < 0.25] = np.inf
    return d


def band(kind, epsilon):
    return {
        "equal": (0.0, 0.0),
        "tolerance": (epsilon, epsilon),
        "upper": (math.inf, epsilon),
        "lower": (epsilon, math.inf),
    }[kind]


@pytest.mark.parametrize("kind", ["smooth", "ties", "infinite"])
@pytest.mark.parametrize("null", ["equal", "tolerance", "upper", "lower"])
def test_one_attribute_sort_dual_and_programme_agree(kind, null):
    rng = np.random.default_rng(10 * len(kind) + len(null))
    seen = 0
    for _ in range(15):
        k, n = int(rng.integers(2, 6)), int(rng.integers(30, 150))
        group = np.concatenate([np.tile(np.arange(k), 2), rng.integers(0, k, n - 2 * k)])
        decision = (rng.random(n) < rng.random(k)[group]).astype(int)
        distance = distances(rng, n, kind)
        below, above = band(null, float(rng.choice([0.02, 0.1])))
        size, positive = np.bincount(group, minlength=k), np.bincount(group, decision, minlength=k)
        cells = make_cells(distance, 2 * group + decision, 2 * k)
        sides = [Sides(cells[2 * g], cells[2 * g + 1], positive[g], size[g]) for g in range(k)]
        by_rate = project_rates(sides, reference=0, below=below, above=above)
        phi = np.stack([(group == g) * n / size[g] - (group == 0) * n / size[0] for g in range(1, k)], axis=1)
        tilt = (1 - 2 * decision)[:, None] * phi
        now = (decision[:, None] * phi).sum(axis=0)
        low, high = (-now, -now) if null == "equal" else (-n * below - now, n * above - now)
        expected = programme(distance, tilt, low, high, np.ones(n))
        cell_tilt = np.array(
            [tilt[2 * group + decision == j][0] if len(c.distance) else np.zeros(k - 1) for j, c in enumerate(cells)]
        )
        by_dual = project_cells(cells, cell_tilt, low, high)
        found = [by_rate.cost, by_dual.cost]
        if k == 2:
            found.append(project_line(distance, tilt[:, 0], low[0], high[0]).cost)
        if math.isnan(expected):
            assert all(math.isnan(v) for v in found)
            continue
        seen += 1
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        assert by_dual.gap <= 1e-9
    assert seen >= 5


@pytest.mark.parametrize("null", ["equal", "tolerance", "upper"])
@pytest.mark.parametrize("weighted", [False, True])
def test_overlapping_attributes_dual_and_programme_agree(null, weighted):
    rng = np.random.default_rng(7)
    for _ in range(12):
        k, n = int(rng.integers(2, 5)), int(rng.integers(80, 300))
        member = rng.integers(0, 2, (n, k))
        decision = (rng.random(n) < 0.3 + 0.2 * member[:, 0]).astype(int)
        distance = distances(rng, n, "ties" if rng.random() < 0.5 else "smooth")
        mass = rng.uniform(0.5, 2.0, n) if weighted else np.ones(n)
        total = mass.sum()
        phi = np.stack([m / (mass @ m) - (1 - m) / (mass @ (1 - m)) for m in member.T], axis=1) * total
        tilt = (1 - 2 * decision)[:, None] * phi
        now = (mass * decision) @ phi
        below, above = band(null, 0.03)
        low, high = (-now, -now) if null == "equal" else (-total * below - now, total * above - now)
        kinds, code = np.unique(np.column_stack([member, decision]), axis=0, return_inverse=True)
        cells = make_cells(distance, code, len(kinds), mass if weighted else None)
        cell_tilt = np.array([tilt[code == j][0] for j in range(len(kinds))])
        found = project_cells(cells, cell_tilt, low, high)
        expected = programme(distance, tilt, low, high, mass)
        assert found.cost == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert found.gap <= 1e-9
        reached = found.moved @ cell_tilt
        assert np.all(reached >= low - 1e-6)
        assert np.all(reached <= high + 1e-6)


def test_one_condition_with_many_values_of_phi():
    rng = np.random.default_rng(9)
    distance, tilt, mass = np.abs(rng.normal(size=80)), rng.normal(size=80), rng.uniform(0.5, 2, 80)
    for low, high in ((3.0, 3.0), (-5.0, -5.0), (-math.inf, -2.0), (1.0, 2.0), (-1.0, 1.0)):
        found = project_line(distance, tilt, low, high, mass)
        expected = programme(distance, tilt[:, None], np.array([low]), np.array([high]), mass)
        assert found.cost == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert np.all((found.moved >= 0) & (found.moved <= mass + 1e-12))


def test_printed_algorithm_breaks_at_distance_zero_and_ours_does_not():
    # [si2021] Algorithm 1 divides by d; a row on the boundary moves for nothing.
    assert project_line(np.array([0.0, 1.0]), np.array([1.0, 1.0]), 1.0, 1.0).cost == 0.0
    assert project_line(np.array([0.0, 1.0]), np.array([1.0, 1.0]), 1.5, 1.5).cost == pytest.approx(0.5)


def test_unreachable_conditions_have_no_value():
    assert math.isnan(project_line(np.array([np.inf]), np.array([1.0]), 1.0, 1.0).cost)
    stuck = Sides(Cell(np.empty(0)), Cell(np.empty(0)), 1.0, 4.0)
    free = Sides(Cell(np.empty(0)), Cell(np.array([1.0])), 4.0, 4.0)
    assert math.isnan(project_rates([stuck, free]).cost)
    cells = [Cell(np.array([1.0]))]
    assert math.isnan(project_cells(cells, np.array([[1.0]]), np.array([2.0]), np.array([2.0])).cost)


def test_conditions_that_hold_cost_nothing():
    cells = [Cell(np.array([1.0, 2.0]))]
    found = project_cells(cells, np.array([[1.0]]), np.array([-1.0]), np.array([1.0]))
    assert found.cost == 0
    assert found.moved.tolist() == [0.0]


def test_cell_accounts():
    cell = Cell(np.array([1.0, 2.0, 4.0]), np.array([0.0, 0.5, 2.5, 3.0]))
    assert cell.capacity == 3.0
    assert cell.cost(1.5) == pytest.approx(0.5 * 1 + 1.0 * 2)
    assert (cell.price(0.5), cell.last_price(0.5)) == (2.0, 1.0)
    assert cell.price(3.0) == math.inf
    assert cell.last_price(0.0) == 0.0


def test_whole_rows_move_but_for_a_few():
    # A vertex of the programme has at most as many fractional rows as conditions.
    rng = np.random.default_rng(11)
    member = rng.integers(0, 2, (5000, 3))
    decision = (rng.random(5000) < 0.4 + 0.05 * member[:, 1]).astype(int)
    size = member.sum(axis=0)
    code = member @ [8, 4, 2] + decision
    bits = (np.arange(16)[:, None] // 2 >> np.array([2, 1, 0])) & 1
    phi = bits * 5000 / size - (1 - bits) * 5000 / (5000 - size)
    side = np.where(np.arange(16) % 2, -1.0, 1.0)
    now = np.bincount(code, decision, minlength=16) @ phi
    cells = make_cells(np.abs(rng.normal(size=5000)), code, 16)
    found = project_cells(cells, phi * side[:, None], -now, -now)
    assert np.sum(np.abs(found.moved - np.round(found.moved)) > 1e-6) <= 3
