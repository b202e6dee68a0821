from __future__ import annotations

import importlib

import numpy as np
import pytest

from evenhand.errors import UsageError
from evenhand.models import adapt
from evenhand.models.gradient_torch import TorchGradient, layers_as_matrices, torch_model
from evenhand.models.gradient_view import view_model

torch = importlib.import_module("torch")
nn = torch.nn

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = RNG.integers(2, size=60).astype(float)
FEATURES = {f"x{j}": X[:, j] for j in range(4)}


def viewed(model, features, outcome, kind, **asked):
    return view_model(adapt(model, features, numeric_outcome=kind != "binary"), features, outcome, kind, **asked)


def net(outputs=2, dtype=torch.float64, activation=nn.Tanh):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), activation(), nn.Dropout(0.5), nn.Linear(6, outputs)).to(dtype)


class Odd(nn.Module):
    """Something only autograd can follow: batch normalisation, a skip connection, dropout."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.first, self.norm, self.last = nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)
        self.drop = nn.Dropout(0.3)

    def forward(self, x):
        return self.last(self.drop(torch.tanh(self.norm(self.first(x))) + x))[:, 0]


@pytest.mark.parametrize("make", [lambda: net(2), lambda: net(1), lambda: Odd().double()])
def test_gradients_against_finite_differences(make):
    view = viewed(TorchGradient(make()), FEATURES, Y, "binary")
    out, pull = view.network.pullback(X)
    g = pull(view.loss.slope(out, Y))
    h = 1e-5
    for j in range(4):
        e = np.eye(4)[j] * h
        up, down = (np.exp(view.loss.log_value(view.network.outputs(X + s * e), Y)) for s in (1, -1))
        np.testing.assert_allclose(g[:, j], (up - down) / (2 * h), atol=1e-6)


def test_the_module_is_left_as_found():
    module = Odd()
    module.train()
    module.norm.eval()  # a mixed state
    module.first.weight.requires_grad_(False)  # a layer the user froze
    module.last.weight.grad = torch.ones_like(module.last.weight)
    before = {k: v.clone() for k, v in module.state_dict().items()}
    modes = [m.training for m in module.modules()]
    generator = torch.get_rng_state()
    view = viewed(module, FEATURES, Y, "binary")
    for _ in range(3):
        out, pull = view.network.pullback(X)
        pull(np.ones_like(out))
        view.network.outputs(X)
    assert [m.training for m in module.modules()] == modes
    assert [p.requires_grad for p in module.parameters()] == [False, True, True, True, True, True]
    assert torch.equal(module.last.weight.grad, torch.ones_like(module.last.weight))
    assert module.first.bias.grad is None
    assert all(torch.equal(v, before[k]) for k, v in module.state_dict().items())
    assert torch.equal(torch.get_rng_state(), generator)
    np.testing.assert_array_equal(view.network.outputs(X), view.network.outputs(X))  # dropout is off


def test_modes_come_back_after_an_error():
    module = Odd().train()
    with pytest.raises(RuntimeError):
        TorchGradient(module).outputs(np.zeros((2, 9)))
    assert module.training


def test_works_inside_no_grad_and_inference_mode():
    model = TorchGradient(net())
    expected = model.pullback(X)[1](np.ones((60, 2)))
    with torch.no_grad():
        np.testing.assert_array_equal(model.pullback(X)[1](np.ones((60, 2))), expected)
    with torch.inference_mode():
        np.testing.assert_array_equal(model.pullback(X)[1](np.ones((60, 2))), expected)


@pytest.mark.parametrize("activation", [nn.ReLU, nn.Tanh, nn.Sigmoid])
def test_a_plain_stack_needs_no_autograd(activation):
    module = net(2, activation=activation)
    plain, auto = layers_as_matrices(module), TorchGradient(module)
    np.testing.assert_allclose(plain.outputs(X), auto.outputs(X), atol=1e-12)
    slope = RNG.normal(size=(60, 2))
    np.testing.assert_allclose(plain.pullback(X)[1](slope), auto.pullback(X)[1](slope), atol=1e-12)


def test_what_is_not_a_plain_stack_is_left_to_autograd():
    class Mine(nn.Linear):
        pass

    hooked = net()
    hooked[0].register_forward_hook(lambda *a: None)
    stacks = (
        Odd(),
        nn.Sequential(Mine(4, 2)),
        nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2)),
        nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 2)),
        nn.Sequential(nn.Linear(4, 2), nn.Softmax(dim=1)),
        nn.Sequential(nn.Linear(4, 1), nn.Sigmoid()),
        hooked,
    )
    assert [layers_as_matrices(s) for s in stacks] == [None] * len(stacks)


def test_probabilities_must_be_announced():
    soft = nn.Sequential(net(dtype=torch.float32), nn.Softmax(dim=1))
    with pytest.raises(UsageError, match="look like probabilities"):
        torch_model(soft, X, task="classes")
    announced = viewed(TorchGradient(soft, link="probability"), FEATURES, Y, "binary")
    logits = viewed(net(dtype=torch.float32), FEATURES, Y, "binary")
    a, b = (v.loss.log_value(v.network.outputs(X), Y) for v in (announced, logits))
    np.testing.assert_allclose(a, b, atol=1e-5)


def test_regression_and_constant_outputs():
    value = viewed(net(1), FEATURES, 3 * X[:, 0], "numeric")
    assert (value.task, value.loss.name) == ("regression", "squared")

    class Constant(nn.Module):
        def forward(self, x):
            return torch.zeros(len(x), 1)

    out, pull = TorchGradient(Constant()).pullback(X)
    np.testing.assert_array_equal(pull(np.ones_like(out)), 0.0)


class Own(nn.Module):
    """A stack of layers with a forward function of its own."""

    def __init__(self, ends=lambda out: out):
        super().__init__()
        torch.manual_seed(2)
        self.first, self.middle, self.last = nn.Linear(4, 5), nn.Sequential(nn.Linear(5, 3), nn.ReLU()), nn.Linear(3, 1)
        self.ends = ends

    def forward(self, x):
        return self.ends(self.last(self.middle(torch.relu(self.first(x)))))


def test_a_stack_with_a_forward_function_of_its_own_is_read_by_tracing():
    own = Own().double()
    plain = layers_as_matrices(own)
    assert plain is not None
    assert torch_model(own, X, task="classes").network.activation == "relu"
    slope = RNG.normal(size=(60, 1))
    for a, b in zip(plain.pullback(X), TorchGradient(own).pullback(X), strict=True):
        values = (a, b) if isinstance(a, np.ndarray) else (a(slope), b(slope))
        np.testing.assert_allclose(*values, rtol=1e-10, atol=1e-12)


def test_a_module_that_does_more_than_a_stack_is_not_read():
    skips = Own(lambda out: out + 1.0)
    depends = Own(lambda out: out if out.sum() > 0 else -out)
    for module in (skips, depends):
        assert layers_as_matrices(module) is None
    hooked = Own()
    hooked.first.register_forward_hook(lambda *_: None)
    assert layers_as_matrices(hooked) is None


def test_matrices_that_answer_otherwise_than_the_module_are_not_used(monkeypatch):
    read = layers_as_matrices(net(1))
    monkeypatch.setattr("evenhand.models.gradient_torch.layers_as_matrices", lambda _: read)
    assert "autograd" in torch_model(TorchGradient(Own().double()), X, task="classes").name
    assert "matrices" in torch_model(net(1), X, task="classes").name
