from __future__ import annotations

import importlib
import itertools

import numpy as np
import pytest
from scipy import special

from evenhand.errors import UsageError
from evenhand.kernels.flow.losses import AbsoluteLoss, LogitLoss, ProbabilityLoss, SquaredLoss, log_softplus
from evenhand.kernels.flow.perceptron import Adam, Perceptron

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_logit_loss_is_minus_log_softmax(k):
    z = RNG.normal(size=(20, k)) * 3
    y = RNG.integers(max(k, 2), size=20).astype(float)
    full = np.column_stack([np.zeros(20), z[:, 0]]) if k == 1 else z
    plain = -special.log_softmax(full, axis=1)[np.arange(20), y.astype(int)]
    np.testing.assert_allclose(np.exp(LogitLoss().log_value(z, y)), plain, rtol=1e-10)
    np.testing.assert_array_equal(LogitLoss().wrong(z, y), full.argmax(axis=1) != y)


@pytest.mark.parametrize(
    ("loss", "k"),
    [(LogitLoss(), 1), (LogitLoss(), 2), (LogitLoss(), 4), (ProbabilityLoss(), 1), (ProbabilityLoss(), 3),
     (SquaredLoss(), 1), (AbsoluteLoss(), 1)],
)  # fmt: skip
def test_slopes_are_derivatives(loss, k):
    z = RNG.uniform(0.1, 0.9, size=(12, k))
    y = RNG.integers(max(k, 2), size=12).astype(float)
    h = 1e-6
    for j in range(k):
        step = np.zeros((1, k))
        step[0, j] = h
        slope = (np.exp(loss.log_value(z + step, y)) - np.exp(loss.log_value(z - step, y))) / (2 * h)
        np.testing.assert_allclose(loss.slope(z, y)[:, j], slope, rtol=1e-6, atol=1e-8)


def test_tiny_losses_keep_their_ratio():
    # At log-odds 60 and 50 the probabilities are 1 in double precision; the ratio exp(10) is not lost.
    z = np.array([[60.0], [50.0]])
    log_loss = LogitLoss().log_value(z, np.ones(2))
    assert log_loss[1] - log_loss[0] == pytest.approx(10.0, abs=1e-12)
    assert log_softplus(np.array([-2000.0]))[0] == -2000.0
    around = np.array([-30.000001, -29.999999])
    assert np.diff(log_softplus(around))[0] == pytest.approx(2e-6, rel=1e-6)


def test_probabilities_of_zero_and_one_have_no_ratio_unless_clipped():
    p = np.array([[1.0], [0.0]])
    assert ProbabilityLoss().log_value(p, np.ones(2)).tolist() == [-np.inf, np.inf]
    clipped = ProbabilityLoss(0.01).log_value(p, np.ones(2))
    np.testing.assert_allclose(np.exp(clipped), [-np.log(0.99), -np.log(0.01)])


@pytest.mark.parametrize("activation", ["relu", "tanh", "logistic", "identity"])
def test_perceptron_gradients_against_finite_differences(activation):
    sizes = (4, 6, 5, 3)
    net = Perceptron(
        weights=tuple(RNG.normal(size=s) for s in itertools.pairwise(sizes)),
        biases=tuple(RNG.normal(size=s) for s in sizes[1:]),
        activation=activation,
    )
    X = RNG.normal(size=(8, 4))
    cotangent = RNG.normal(size=(8, 3))
    _, pull = net.pullback(X)
    g = pull(cotangent)
    h = 1e-6
    for j in range(4):
        e = np.eye(4)[j] * h
        slope = ((net.outputs(X + e) - net.outputs(X - e)) * cotangent).sum(axis=1) / (2 * h)
        np.testing.assert_allclose(g[:, j], slope, rtol=1e-6, atol=1e-7)
    grads = net.weight_gradient(X, lambda out: cotangent)
    parameters = [a for pair in zip(net.weights, net.biases, strict=True) for a in pair]
    for p, grad in zip(parameters, grads, strict=True):
        place = tuple(RNG.integers(s) for s in p.shape)
        old = p[place]
        values = []
        for sign in (1, -1):
            p[place] = old + sign * h
            values.append(float((net.outputs(X) * cotangent).sum()))
        p[place] = old
        assert grad[place] == pytest.approx((values[0] - values[1]) / (2 * h), rel=1e-5, abs=1e-6)


def test_unknown_activation():
    with pytest.raises(UsageError, match="`swish` is not known"):
        Perceptron(weights=(np.eye(1),), biases=(np.zeros(1),), activation="swish")


def test_adam_is_torchs_adam():
    torch = importlib.import_module("torch")
    start = np.random.default_rng(3).normal(size=(3, 2))  # its own: the order of tests must not matter
    ours, theirs = start.copy(), torch.tensor(start, requires_grad=True)
    own, peer = Adam(0.05), torch.optim.Adam([theirs], lr=0.05)
    for _ in range(20):
        own.step([ours], [4 * ours**3])
        peer.zero_grad()
        (theirs**4).sum().backward()
        peer.step()
    # The two place Adam's epsilon differently, which shows in the sixth digit.
    np.testing.assert_allclose(ours, theirs.detach().numpy(), atol=1e-5)


@pytest.mark.parametrize("loss", [LogitLoss(), ProbabilityLoss()])
def test_what_is_not_a_number_is_neither_right_nor_wrong(loss):
    one, two = np.array([[np.nan], [0.9]]), np.array([[0.1, np.nan], [0.1, 0.9]])
    y = np.array([1.0, 1.0])
    for outputs in (one, two):
        assert np.isnan(loss.wrong(outputs, y)).tolist() == [True, False]
        assert np.isnan(loss.log_value(outputs, y))[0]
