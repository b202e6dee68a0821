"""Euler steps made in strides against the same steps made one by one."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.kernels.flow.gradient_flow import Euler, Flow, QuadraticForm, follow, step_sizes
from evenhand.kernels.flow.perceptron import Perceptron
from evenhand.kernels.flow.strides import CLOSE, anchors, stride
from evenhand.kernels.flow.tiles import Tiles

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 6))
Y = RNG.integers(2, size=300).astype(float)
FORM = QuadraticForm(basis=np.linalg.qr(RNG.normal(size=(6, 2)))[0])


def network(activation):
    rng = np.random.default_rng(1)
    return Perceptron(
        weights=(1.5 * rng.normal(size=(6, 12)) / np.sqrt(6), rng.normal(size=(12, 1))),
        biases=(rng.normal(size=12), np.zeros(1)),
        activation=activation,
    )


def flow_of(net, counted=None, **options):
    def gradient(at, rows):
        if counted is not None:
            counted.append(len(at))
        out, pull = net.pullback(at)
        return pull(1 / (1 + np.exp(-out)) - Y[rows, None])

    return Flow(gradient=gradient, form=FORM, penalty=options.pop("penalty", 50.0), **options)


def both(net, steps, marks, **options):
    def observe(at, rows):
        return net.outputs(at)

    flow = flow_of(net, **options)
    return [follow(X, flow, Euler(steps, marks, strides=strides), observe=observe) for strides in (True, False)]


@pytest.mark.parametrize("schedule", ["constant", "decay"])
@pytest.mark.parametrize("penalty", [50.0, 20.0, 0.0])
@pytest.mark.parametrize("activation", ["tanh", "logistic", "relu"])
def test_positions_and_what_is_seen_are_those_of_single_steps(activation, penalty, schedule):
    steps = step_sizes(0.01, 200, schedule)
    many, single = both(network(activation), steps, [0, 3, 25, 100, 200], penalty=penalty)
    assert np.abs(single.end - X).max() > 0.03
    np.testing.assert_allclose(many.end, single.end, atol=CLOSE * (1 + np.abs(X).max()))
    np.testing.assert_allclose(many.seen, single.seen, atol=10 * CLOSE * (1 + np.abs(single.seen).max()))


def test_a_smooth_network_needs_few_gradients_and_a_kinked_one_is_stepped_one_by_one():
    method = Euler(np.full(200, 0.01), [0, 100, 200], strides=True)
    smooth: list[int] = []
    follow(X, flow_of(network("tanh"), smooth), method)
    assert sum(smooth) < 0.33 * 200 * len(X)
    # Slopes that jump all the time: no stride holds, and nothing but the attempt is lost.
    saw: list[int] = []

    def gradient(at, rows):
        saw.append(len(at))
        return np.where(np.floor(40 * at) % 2 == 0, 1.0, -0.4)

    jumping = Flow(gradient=gradient, form=FORM, penalty=50.0)
    many = follow(X, jumping, method)
    assert sum(saw) < 1.3 * 200 * len(X)
    at = X.copy()
    for _ in range(200):
        at += 0.01 * (np.where(np.floor(40 * at) % 2 == 0, 1.0, -0.4) - 100.0 * FORM.apply(at - X))
    assert np.mean(np.abs(many.end - at).max(axis=1) < 1e-3) > 0.95


@pytest.mark.parametrize("penalty", [50.0, 5.0])
@pytest.mark.parametrize("edge", [1.0, 1.5, 2.0, 2.5])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_rows_that_reach_the_edge_are_kept_there_as_by_single_steps(activation, edge, penalty):
    many, single = both(
        network(activation), np.full(200, 0.01), [0, 200], penalty=penalty, keep=lambda at, _: np.clip(at, -edge, edge)
    )
    assert 0 < single.stopped.sum() < len(X)
    np.testing.assert_array_equal(many.stopped, single.stopped)
    np.testing.assert_allclose(many.end, single.end, atol=CLOSE * (1 + np.abs(X).max()))


def test_a_row_depends_on_no_other_row():
    method = Euler(np.full(100, 0.01), [0, 100], strides=True)
    flow = flow_of(network("tanh"))
    whole = follow(X, flow, method).end
    for tiles in (Tiles(size=37), Tiles(size=64)):
        np.testing.assert_allclose(follow(X, flow, method, tiles=tiles).end, whole, atol=1e-12)


def test_a_stride_over_gradients_that_are_a_polynomial_is_exact():
    steps, known = RNG.uniform(0.001, 0.015, size=20), [3, 5, 6, 9]
    slope = np.polynomial.Polynomial([0.3, -1.0, 0.2, 0.01])
    along, across = 0.7, -0.2
    for k in range(9, 17):
        along += steps[k] * slope(k)
        across += steps[k] * (slope(k) - 2 * 30.0 * across)
    free, held, left = stride(known, 9, 17, steps, 30.0)
    values = slope(np.array(known, dtype=float))
    assert 0.7 + values @ free == pytest.approx(along, rel=1e-10)
    assert left * -0.2 + values @ held == pytest.approx(across, rel=1e-10)


@pytest.mark.parametrize(("count", "marks"), [(200, [0, 3, 6, 12, 25, 200]), (33, []), (500, [0, 499])])
def test_anchors_hold_start_end_and_all_marks_in_order(count, marks):
    plan = anchors(count, marks, 13)
    assert plan[0] == 0
    assert plan[-1] == count
    assert set(marks) <= set(plan)
    assert np.all(np.diff(plan) > 0)
