from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from evenhand.errors import UsageError
from evenhand.kernels.flow.direction_search import Directions, search
from evenhand.kernels.flow.gradient_flow import (
    Adaptive,
    Euler,
    Flow,
    QuadraticForm,
    follow,
    stability_limit,
    step_sizes,
)
from evenhand.kernels.flow.tiles import Tiles

W = np.array([1.7, 0.0])
BIAS = -0.3
FREE_FIRST = QuadraticForm(basis=np.array([[1.0], [0.0]]))


def people(n=50, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)), rng.integers(2, size=n).astype(float)


def logistic_gradient(y):
    return lambda X, rows: (special.expit(X @ W + BIAS) - y[rows])[:, None] * W


def lambert_end(X, y, time):
    """The flow of a logistic model along a free axis in closed form.

    With margin m = s(b + w x), m' = -w² / (1 + exp m), so m + exp m falls at rate w²; the inverse of
    m + exp(m) is c - W(exp c), W being Lambert's function.
    """
    s = np.where(y == 1, 1.0, -1.0)
    m = s * (X @ W + BIAS)
    c = m + np.exp(m) - W[0] ** 2 * time
    end = X.copy()
    end[:, 0] = (s * (c - special.wrightomega(c).real) - BIAS) / W[0]
    return end


def run(X, y, method, *, observe=None, tiles=None, **options):
    flow = Flow(gradient=logistic_gradient(y), form=FREE_FIRST, penalty=50.0, **options)
    return follow(X, flow, method, observe=observe, tiles=tiles)


def test_closed_form_agrees_with_lambert_w_itself():
    X, y = people(5)
    c = 0.7
    assert special.wrightomega(c).real == pytest.approx(special.lambertw(np.exp(c)).real, rel=1e-14)
    # The closed form solves the differential equation: its derivative is the drift.
    h = 1e-6
    slope = (lambert_end(X, y, 1 + h) - lambert_end(X, y, 1 - h)) / (2 * h)
    at = lambert_end(X, y, 1.0)
    np.testing.assert_allclose(slope, logistic_gradient(y)(at, np.arange(5)), atol=1e-8)


def test_euler_converges_to_the_closed_form_at_first_order():
    X, y = people()
    truth = lambert_end(X, y, 2.0)
    errors = [np.abs(run(X, y, Euler(np.full(k, 2.0 / k))).end - truth).max() for k in (200, 400, 800, 1600)]
    ratios = np.array(errors[:-1]) / np.array(errors[1:])
    np.testing.assert_allclose(ratios, 2.0, atol=0.06)
    assert errors[-1] < 2e-3


def test_adaptive_method_keeps_its_tolerance():
    X, y = people()
    truth = lambert_end(X, y, 2.0)
    for tolerance in (1e-3, 1e-5, 1e-7):
        end = run(X, y, Adaptive(np.array([2.0]), tolerance)).end
        assert np.abs(end - truth).max() < 50 * tolerance


def test_adaptive_checkpoints_do_not_change_the_end():
    X, y = people(20)
    one = run(X, y, Adaptive(np.array([2.0]), 1e-8))
    many = run(X, y, Adaptive(np.array([0.5, 1.0, 2.0]), 1e-8), observe=lambda at, rows: at)
    np.testing.assert_allclose(one.end, many.end, atol=1e-6)
    np.testing.assert_allclose(many.seen[0], lambert_end(X, y, 0.5), atol=1e-6)


def test_decaying_steps_reach_the_same_flow_time():
    X, y = people()
    steps = step_sizes(0.02, 2000, "decay")
    assert np.all(np.diff(steps) < 0)
    np.testing.assert_allclose(run(X, y, Euler(steps)).end, lambert_end(X, y, steps.sum()), atol=0.02)
    halved = step_sizes(0.01, 4000, "decay-halved")
    assert halved.sum() == pytest.approx(steps.sum())


def test_unknown_schedule():
    with pytest.raises(UsageError, match="`schedule` is `fast`"):
        step_sizes(0.1, 3, "fast")


def test_steps_above_the_limit_overshoot_and_below_it_settle():
    # A constant push against the pull settles at push / (2 penalty); too long steps never do.
    form = QuadraticForm(matrix=np.eye(1))
    limit = stability_limit(form, 50.0)
    assert limit == pytest.approx(0.02)

    def settle(step):
        push = Flow(gradient=lambda X, rows: np.ones_like(X), form=form, penalty=50.0)
        return follow(np.zeros((1, 1)), push, Euler(np.full(400, step))).end[0, 0]

    assert settle(0.9 * limit) == pytest.approx(0.01)
    assert abs(settle(1.1 * limit)) > 1.0


@pytest.mark.parametrize("how", [Euler(np.full(500, 0.01)), Adaptive(np.array([2.5, 5.0]))])
def test_rows_slide_along_the_edge_and_fixed_columns_stay(how):
    X, y = people(40)

    def keep(at, start):
        return np.column_stack([np.clip(at[:, 0], -2.5, 2.5), at[:, 1]])

    done = run(X, y, how, keep=keep)
    assert np.abs(done.end[:, 0]).max() <= 2.5
    assert 0 < done.stopped.sum() < 40
    free = run(X, y, how).end
    np.testing.assert_array_equal(done.end[~done.stopped], free[~done.stopped])
    fixed = run(X, y, how, movable=np.array([False, True]), keep=lambda at, start: np.clip(at, -1, 1))
    np.testing.assert_array_equal(fixed.end[:, 0], X[:, 0])


def test_a_row_held_in_one_coordinate_goes_on_in_the_other():
    push = Flow(
        gradient=lambda X, rows: np.ones_like(X),
        form=QuadraticForm(basis=np.eye(2)),
        penalty=50.0,
        keep=lambda at, start: np.column_stack([np.minimum(at[:, 0], 1.0), at[:, 1]]),
    )
    done = follow(np.zeros((1, 2)), push, Euler(np.full(500, 0.01)))
    np.testing.assert_allclose(done.end, [[1.0, 5.0]], rtol=1e-12)
    assert done.stopped.all()


def test_batches_do_not_change_the_answer():
    X, y = people(300)
    steps = Euler(np.full(50, 0.01))
    whole = run(X, y, steps, tiles=Tiles(size=512))
    for size in (1, 7, 100):
        np.testing.assert_allclose(run(X, y, steps, tiles=Tiles(size=size)).end, whole.end, rtol=1e-12)


def test_progress_counts_rows():
    X, y = people(10)
    seen = []
    tiles = Tiles(size=4, progress=lambda done, total: seen.append((done, total)))
    run(X, y, Euler(np.full(2, 0.01)), tiles=tiles)
    assert seen == [(4, 10), (8, 10), (10, 10)]


def test_both_forms_of_one_metric_agree():
    rng = np.random.default_rng(1)
    Q = np.linalg.qr(rng.normal(size=(5, 2)))[0]
    basis, matrix = QuadraticForm(basis=Q), QuadraticForm(matrix=np.eye(5) - Q @ Q.T)
    d = rng.normal(size=(7, 5))
    np.testing.assert_allclose(basis.apply(d), matrix.apply(d), atol=1e-14)
    np.testing.assert_allclose(basis.square(d), np.sum((d - d @ Q @ Q.T) ** 2, axis=1), atol=1e-13)
    assert basis.norm() == pytest.approx(matrix.norm())
    free = matrix.free_directions()
    np.testing.assert_allclose(free @ free.T, Q @ Q.T, atol=1e-8)


def test_search_finds_the_best_point_of_the_box():
    rng = np.random.default_rng(3)
    start = rng.normal(size=(30, 3))
    Q = np.linalg.qr(rng.normal(size=(3, 2)))[0]
    low, high = np.array([-2.0, -1.0]), np.array([2.0, 3.0])
    goal = np.array([0.3, 1.0])  # on the grid of neither axis: the nearest grid values win
    end = search(start, lambda X, rows: -(((X @ Q) - goal) ** 2).sum(axis=1), Directions(Q, low, high), points=5)
    # Nobody leaves the plane through the start, and the coordinates are the best of grid and start.
    np.testing.assert_allclose((end - start) - (end - start) @ Q @ Q.T, 0.0, atol=1e-12)
    for j in range(2):
        grid = np.linspace(low[j], high[j], 5)
        own = start @ Q[:, j]
        best = np.array([min([*grid, o], key=lambda v: abs(v - goal[j])) for o in own])
        np.testing.assert_allclose(np.abs(end @ Q[:, j] - goal[j]), np.abs(best - goal[j]), atol=1e-12)


def test_search_stays_where_nothing_is_better_and_ignores_nan():
    start = np.zeros((4, 2))
    first = Directions(np.eye(2)[:, :1], np.array([-1.0]), np.array([1.0]))
    flat = search(start, lambda X, rows: np.zeros(len(X)), first)
    np.testing.assert_array_equal(flat, start)
    nan = search(start, lambda X, rows: np.where(X[:, 0] == 0, 0.0, np.nan), first)
    np.testing.assert_array_equal(nan, start)


def test_search_reach_limits_the_way():
    start = np.zeros((1, 1))
    up = lambda X, rows: X[:, 0]  # noqa: E731
    end = search(start, up, Directions(np.eye(1), np.array([-4.0]), np.array([4.0]), reach=0.25))
    assert end[0, 0] == pytest.approx(2.0)
