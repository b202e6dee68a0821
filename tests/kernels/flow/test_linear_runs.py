from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from evenhand.kernels.flow.gradient_flow import Euler, Flow, QuadraticForm, follow
from evenhand.kernels.flow.linear_runs import Runs, linear_in_pieces
from evenhand.kernels.flow.losses import LogitLoss
from evenhand.kernels.flow.perceptron import Perceptron

LOSS = LogitLoss()
MARKS = (0, 3, 6, 12, 25, 50, 100)


def network(*sizes, activation="relu", seed=0):
    rng = np.random.default_rng(seed)
    pairs = list(pairwise(sizes))
    return Perceptron(
        weights=tuple(rng.normal(size=pair) * np.sqrt(2.0 / pair[0]) for pair in pairs),
        biases=tuple(0.5 * rng.normal(size=to) for _, to in pairs),
        activation=activation,
    )


def ask(net):
    def asked(X):
        out, pull = net.pullback(X)
        return out[:, 0], pull(np.ones_like(out))

    return asked


def both_ways(net, X, y, *, penalty=20.0, step=0.02, keep=None):
    """Runs and plain single steps; how often the network was asked for a row in runs and the steps after them."""
    asked = [0]

    def counted(at, answer):
        asked[0] += len(at)
        return answer

    def gradient(at, rows):
        out, pull = net.pullback(at)
        return counted(at, pull(LOSS.slope(out, y[rows])))

    def look(out, rows):
        return LOSS.log_value(out, y[rows])[:, None]

    basis = np.linalg.qr(np.random.default_rng(1).normal(size=(X.shape[1], 2)))[0]
    flow = Flow(gradient=gradient, form=QuadraticForm(basis=basis), penalty=penalty, keep=keep)
    steps = np.full(MARKS[-1], step)
    runs = Runs(ask=lambda at: counted(at, ask(net)(at)), slope=LOSS.slope, y=y, look=look, near=1e-9)
    quick = follow(
        X, flow, Euler(steps, MARKS, strides=True, runs=runs), observe=lambda at, r: look(net.outputs(at), r)
    )
    share = asked[0] / len(X)
    plain = follow(X, flow, Euler(steps, MARKS), observe=lambda at, rows: look(net.outputs(at), rows))
    return quick, plain, share


@pytest.mark.parametrize("sizes", [(6, 12, 1), (6, 12, 8, 1), (6, 1)])
@pytest.mark.parametrize(("penalty", "step"), [(20.0, 0.02), (25.0, 0.02), (0.0, 0.02), (20.0, 0.03)])
def test_positions_are_those_of_single_steps(sizes, penalty, step):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(300, 6)), rng.integers(2, size=300).astype(float)
    quick, plain, share = both_ways(network(*sizes), X, y, penalty=penalty, step=step)
    gap = np.abs(quick.end - plain.end).max(axis=1)
    assert (gap < 1e-10).mean() >= 0.99  # a piece may be entered and left again between two looks
    assert gap.max() < 0.01
    close = gap < 1e-10
    np.testing.assert_allclose(quick.seen[:, close], plain.seen[:, close], atol=1e-9)
    assert share < 0.8 * MARKS[-1]  # and the network is asked less often than once a step
    assert np.abs(plain.end - X).max() > 0.1


def test_rows_that_meet_no_kink_are_asked_about_a_few_times():
    X, y = np.random.default_rng(2).normal(size=(50, 6)), np.arange(50) % 2.0
    assert both_ways(network(6, 1), X, y)[2] <= 11  # runs end at marks


def test_a_kink_that_is_crossed_in_every_step_is_followed():
    """At a ridge single steps go to and fro; runs must do the same."""
    net = Perceptron(
        weights=(np.array([[1.0, -1.0], [0.0, 0.0]]), np.array([[-1.0], [-1.0]])), biases=(np.zeros(2), np.zeros(1))
    )
    X = np.array([[0.3, 0.0], [-0.123, 1.0], [0.0, 0.0]])
    quick, plain, _ = both_ways(net, X, np.zeros(3), penalty=0.0, step=0.05)
    np.testing.assert_allclose(quick.end, plain.end, atol=1e-12)
    np.testing.assert_allclose(quick.seen, plain.seen, atol=1e-12)


def test_rows_that_leave_the_region_are_held_at_its_edge():
    rng = np.random.default_rng(3)
    X, y = rng.uniform(-1.0, 1.0, size=(200, 6)), rng.integers(2, size=200).astype(float)

    def keep(at, start):
        return np.clip(at, -1.0, 1.0)

    quick, plain, _ = both_ways(network(6, 12, 1), X, y, keep=keep)
    gap = np.abs(quick.end - plain.end).max(axis=1)
    assert (gap < 1e-10).mean() >= 0.98  # the edge may be passed and come back to between two looks
    assert 0.1 < plain.stopped.mean() < 0.9
    np.testing.assert_array_equal(quick.stopped[gap < 1e-10], plain.stopped[gap < 1e-10])


def test_a_row_that_is_not_a_number_harms_no_other():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(20, 6)), rng.integers(2, size=20).astype(float)
    clean = both_ways(network(6, 12, 1), X, y)[0]
    X[3, 2] = np.nan
    broken = both_ways(network(6, 12, 1), X, y)[0]
    assert np.isnan(broken.end[3]).any()
    others = np.arange(20) != 3
    np.testing.assert_allclose(broken.end[others], clean.end[others], atol=1e-12)


@pytest.mark.parametrize(("activation", "linear"), [("relu", True), ("tanh", False), ("logistic", False)])
def test_smooth_networks_are_told_from_those_with_pieces(activation, linear):
    X = np.random.default_rng(5).normal(size=(64, 6))
    assert linear_in_pieces(ask(network(6, 12, 1, activation=activation)), X, 1e-9) is linear
