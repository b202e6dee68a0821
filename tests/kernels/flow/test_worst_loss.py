"""The largest loss within a budget against brute force: a dense grid, and transport as a linear programme."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize

from evenhand.kernels.flow.worst_loss import largest_penalised, score_speed, worst_mean_loss


@pytest.mark.parametrize("speed", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("penalty", [0.01, 0.1, 0.5, 3.0])
def test_largest_penalised_loss_is_that_of_a_dense_grid(speed, penalty):
    z = np.array([-40.0, -8.0, -3.0, -0.5, 0.0, 0.7, 5.0])
    value, cost = largest_penalised(z, speed, penalty)
    t = np.linspace(0, speed / (2 * penalty), 400_001)
    for k, start in enumerate(z):
        grid = np.logaddexp(0.0, start + speed * t) - penalty * t**2
        assert value[k] == pytest.approx(grid.max(), rel=1e-8, abs=1e-12)
        again = np.logaddexp(0.0, start + speed * math.sqrt(cost[k])) - penalty * cost[k]
        assert again == pytest.approx(value[k], rel=1e-10, abs=1e-12)


def test_a_row_far_from_the_boundary_may_have_its_maximum_beyond_the_steep_part():
    """Two local maxima: staying, and crossing. Which is larger depends on the penalty."""
    stays, _ = largest_penalised(np.array([-6.0]), 1.0, 0.05)
    crosses, cost = largest_penalised(np.array([-6.0]), 1.0, 0.02)
    assert stays[0] < 0.01
    assert crosses[0] > 1
    assert cost[0] > 36


@pytest.mark.parametrize("budget", [0.05, 0.4, 2.0])
def test_the_dual_is_the_transport_problem(budget):
    """The primal (2.2) with all mass free to go to a grid of points, two inputs, an unequal metric."""
    X, y = np.array([[0.0, 0.0], [1.0, -1.0], [-2.0, 0.5]]), np.array([1.0, 0.0, 1.0])
    w, S = np.array([1.0, 0.5]), np.diag([0.2, 1.0])
    sign = np.where(y == 1, -1.0, 1.0)
    z = sign * (X @ w)
    best = np.linalg.solve(S, w)  # the direction in which the score changes most cheaply
    t = np.linspace(-6, 6, 1201)
    points = X[:, None, :] + t[None, :, None] * (best / math.sqrt(w @ best))  # (rows, places, inputs)
    loss = np.logaddexp(0.0, sign[:, None] * (points @ w))
    moved = points - X[:, None, :]
    cost = np.einsum("ijk,kl,ijl->ij", moved, S, moved)
    n, m = loss.shape
    row_sums = np.kron(np.eye(n), np.ones(m))
    done = optimize.linprog(
        -loss.ravel(), A_ub=cost.reshape(1, -1), b_ub=[budget], A_eq=row_sums, b_eq=np.full(n, 1 / n), method="highs"
    )
    value, penalty = worst_mean_loss(z, score_speed(w, S), budget)
    assert value == pytest.approx(-done.fun, abs=2e-4)
    assert penalty == pytest.approx(-done.ineqlin.marginals[0], rel=0.02)


def test_speed_is_the_largest_change_of_the_score_per_distance():
    rng = np.random.default_rng(0)
    w, root = rng.normal(size=3), rng.normal(size=(3, 3))
    S = root @ root.T
    d = rng.normal(size=(200_000, 3))
    found = np.abs(d @ w) / np.sqrt(np.einsum("ij,jk,ik->i", d, S, d))
    assert found.max() == pytest.approx(score_speed(w, S), rel=0.01)
    assert found.max() <= score_speed(w, S) * (1 + 1e-9)


def test_a_free_direction_makes_the_worst_case_infinite_and_no_budget_leaves_the_mean():
    S = np.diag([0.0, 1.0])
    z = np.array([-1.0, 2.0])
    assert worst_mean_loss(z, score_speed(np.array([1e-3, 1.0]), S), 0.0)[0] == math.inf
    assert score_speed(np.array([0.0, 2.0]), S) == pytest.approx(2.0)
    assert worst_mean_loss(z, 2.0, 0.0)[0] == pytest.approx(np.logaddexp(0.0, z).mean())
