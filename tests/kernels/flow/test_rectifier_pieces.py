"""The shortcut through rectifiers must end where single Euler steps end, however often units switch."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from evenhand.kernels.flow import rectifier_pieces
from evenhand.kernels.flow.gradient_flow import Euler, Flow, QuadraticForm, follow, step_sizes
from evenhand.kernels.flow.losses import AbsoluteLoss, LogitLoss, SquaredLoss
from evenhand.kernels.flow.perceptron import Perceptron
from evenhand.kernels.flow.rectifier_pieces import as_pieces
from evenhand.kernels.flow.tiles import Tiles

ROWS, INPUTS, UNITS = 60, 6, 20


def network(scale, outputs=1, hidden=True, activation="relu", seed=0):
    rng = np.random.default_rng(seed)
    sizes = (INPUTS, UNITS, outputs) if hidden else (INPUTS, outputs)
    return Perceptron(
        weights=tuple(scale * rng.normal(size=pair) / np.sqrt(pair[0]) for pair in itertools.pairwise(sizes)),
        biases=tuple(0.3 * rng.normal(size=k) for k in sizes[1:]),
        activation=activation,
    )


def both(net, loss, y, *, penalty=50.0, steps=None, tiles=None, **options):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(ROWS, INPUTS))
    form = QuadraticForm(basis=np.linalg.qr(rng.normal(size=(INPUTS, 2)))[0])

    def gradient(at, rows):
        out, pull = net.pullback(at)
        return pull(loss.slope(out, y[rows]))

    def observe(at, rows):
        return loss.log_value(net.outputs(at), y[rows])[:, None]

    steps = step_sizes(0.01, 150) if steps is None else steps
    flow = Flow(gradient=gradient, form=form, penalty=penalty, **options)
    pieces = as_pieces(net, loss.slope, y, lambda out, rows: loss.log_value(out, y[rows])[:, None])
    assert pieces is not None
    methods = (Euler(steps, [0, 7, 150], shortcut) for shortcut in (None, pieces))
    return tuple(follow(X, flow, method, observe=observe, tiles=tiles) for method in methods)


def same(plain, quick):
    np.testing.assert_allclose(quick.end, plain.end, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(quick.seen, plain.seen, rtol=1e-8, atol=1e-10)


LABELS = np.random.default_rng(2).integers(2, size=ROWS).astype(float)


@pytest.mark.parametrize("scale", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("penalty", [0.0, 3.0, 50.0, 90.0])
def test_positions_are_those_of_single_steps(scale, outputs, penalty):
    same(*both(network(scale, outputs), LogitLoss(), LABELS, penalty=penalty))


@pytest.mark.parametrize("loss", [SquaredLoss(), AbsoluteLoss()])
def test_regression_losses(loss):
    y = np.random.default_rng(3).normal(size=ROWS)
    same(*both(network(0.7), loss, y, steps=step_sizes(0.002, 150)))


def test_linear_models_are_one_piece():
    same(*both(network(1.0, hidden=False), LogitLoss(), LABELS))


def test_decaying_steps():
    same(*both(network(2.0), LogitLoss(), LABELS, penalty=100.0, steps=step_sizes(0.009, 150, "decay")))


def test_kinks_just_before_a_step_are_noticed():
    """Bounds are found in single precision; a unit that switched by less than that must not be missed."""
    after = np.arange(1, 100)  # steps after which a row is past the kink by a billionth
    X = np.column_stack([1e-9 - 0.01 * after, np.zeros(after.size)])
    net = Perceptron(
        weights=(np.array([[-1.0, 2.0], [0.0, 0.0]]), np.ones((2, 1))), biases=(np.array([0.0, 100.0]), np.zeros(1))
    )
    y, loss = np.zeros(after.size), AbsoluteLoss()

    def gradient(at, rows):
        out, pull = net.pullback(at)
        return pull(loss.slope(out, y[rows]))

    flow = Flow(gradient=gradient, form=QuadraticForm(basis=np.array([[1.0], [0.0]])), penalty=50.0)
    pieces = as_pieces(net, loss.slope, y, lambda out, rows: out)
    plain, quick = (follow(X, flow, Euler(step_sizes(0.01, 100), [100], way)).end for way in (None, pieces))
    np.testing.assert_allclose(quick, plain, atol=1e-11)
    assert (plain[:-1, 0] - X[:-1, 0] > 1.005).all()  # all but the last have gone on faster behind the kink


def test_few_anchors_where_units_hardly_switch_and_giving_up_where_they_always_do(monkeypatch):
    anchors = []
    renew = rectifier_pieces._Bounded.renew
    monkeypatch.setattr(
        rectifier_pieces._Bounded, "renew", lambda at, some, *a: anchors.append(len(some)) or renew(at, some, *a)
    )
    same(*both(network(0.3), LogitLoss(), LABELS))
    assert sum(anchors) < 0.1 * 150 * ROWS
    anchors.clear()
    made = []
    follow = rectifier_pieces.Pieces.follow
    monkeypatch.setattr(rectifier_pieces.Pieces, "follow", lambda *a: made.append(follow(*a)) or made[-1])
    same(*both(network(30.0), LogitLoss(), LABELS))
    assert made[0][2] < 150


def test_tiles_do_not_change_the_answer():
    _, whole = both(network(1.0), LogitLoss(), LABELS)
    _, parts = both(network(1.0), LogitLoss(), LABELS, tiles=Tiles(size=7))
    np.testing.assert_allclose(parts.end, whole.end, rtol=1e-11, atol=1e-13)


def test_not_used_where_columns_are_frozen_or_a_region_is_set():
    movable = np.arange(INPUTS) > 0
    plain, quick = both(network(1.0), LogitLoss(), LABELS, movable=movable)
    np.testing.assert_array_equal(plain.end, quick.end)
    plain, quick = both(network(1.0), LogitLoss(), LABELS, keep=lambda X, start: np.clip(X, -2, 2))
    np.testing.assert_array_equal(plain.end, quick.end)
    assert quick.stopped.any()


@pytest.mark.parametrize(
    "net",
    [
        network(1.0, outputs=3),
        network(1.0, activation="tanh"),
        Perceptron(weights=(np.ones((2, 2)),) * 3, biases=(np.zeros(2),) * 3),
        object(),
    ],
)
def test_other_networks_have_no_pieces(net):
    assert as_pieces(net, LogitLoss().slope, LABELS, lambda out, rows: out) is None
