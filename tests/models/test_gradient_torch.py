from __future__ import annotations

import importlib

import numpy as np
import pytest

from evenhand.errors import UsageError
from evenhand.models import adapt
from evenhand.models.gradient import GradientModel
from evenhand.models.gradient_torch import TorchGradient, layers_as_matrices, torch_model
from evenhand.models.gradient_view import view_model

torch = importlib.import_module("torch")
nn, F = torch.nn, torch.nn.functional

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


def matrices(module, link="logit"):
    """The module as matrices, None where it is left to autograd."""
    return layers_as_matrices(TorchGradient(module, link=link), X)


@pytest.mark.parametrize("activation", [nn.ReLU, nn.Tanh, nn.Sigmoid])
def test_a_plain_stack_needs_no_autograd(activation):
    module = net(2, activation=activation)
    plain, auto = matrices(module).network, TorchGradient(module)
    np.testing.assert_allclose(plain.outputs(X), auto.outputs(X), atol=1e-12)
    slope = RNG.normal(size=(60, 2))
    np.testing.assert_allclose(plain.pullback(X)[1](slope), auto.pullback(X)[1](slope), atol=1e-12)


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


class Written(nn.Module):
    """Layers and numbers to write a forward function with; `asked` counts the calls."""

    def __init__(self, forward):
        super().__init__()
        torch.manual_seed(2)
        self.first, self.one, self.two = nn.Linear(4, 6), nn.Linear(6, 1), nn.Linear(6, 2)
        self.start, self.norm, self.drop = nn.BatchNorm1d(4), nn.BatchNorm1d(6), nn.Dropout(0.5)
        self.weight, self.bias = nn.Parameter(torch.randn(6, 2)), nn.Parameter(torch.randn(2))
        for part in (self.start, self.norm):
            part.running_mean.normal_()
            part.running_var.uniform_(0.5, 2.0)
        self.register_buffer("mean", torch.randn(4))
        self.register_buffer("scale", torch.rand(4) + 0.5)
        self.asked, self.kept, self.written = 0, None, forward

    def forward(self, x):
        self.asked += 1
        return self.written(self, x)

    def keep(self, h):
        self.kept = h
        return h


# The ways to write the same: how the network answers, what its answers are, and the activation to be found.
WAYS = {
    "functional": (lambda m, x: m.one(F.relu(m.first(x))), "logit", "relu"),
    "methods": (lambda m, x: m.two(m.first(x).relu()), "logit", "relu"),
    "in place": (lambda m, x: m.two(F.relu(m.first(x).mul_(2).add_(1), inplace=True)), "logit", "relu"),
    "clamp": (lambda m, x: m.two(m.first(x).clamp(min=0)), "logit", "relu"),
    "dropout": (lambda m, x: m.one(F.dropout(m.drop(torch.tanh(m.first(x))), 0.5, m.training)), "logit", "tanh"),
    "batch norm before": (lambda m, x: m.one(torch.relu(m.norm(m.first(m.start(x))))), "logit", "relu"),
    "batch norm behind": (lambda m, x: m.one(m.norm(torch.relu(m.first(x)))), "logit", "relu"),
    "standardised": (lambda m, x: m.one(F.tanh(m.first((x - m.mean) / m.scale))), "logit", "tanh"),
    "product": (lambda m, x: torch.relu(F.linear(x, m.first.weight)) @ m.weight + m.bias, "logit", "relu"),
    "no activation": (lambda m, x: 1 - m.two(m.first(x)) / 2, "logit", "relu"),
    "shapes": (lambda m, x: m.one(m.first(x.view(x.size(0), -1)).relu().flatten(1)).squeeze(-1), "logit", "relu"),
    "asks for shapes": (lambda m, x: m.one(m.first(x if x.dim() == 2 else x[None]).relu()).view(-1), "logit", "relu"),
    "columns": (lambda m, x: m.two(m.first(x[:, [3, 1, 0, 2]]).sigmoid())[:, :1], "logit", "logistic"),
    "keeps a layer": (lambda m, x: m.one(m.keep(m.first(x)).relu()), "logit", "relu"),
    "softmax": (lambda m, x: m.two(m.first(x).relu()).softmax(dim=1), "probability", "relu"),
    "sigmoid": (lambda m, x: torch.sigmoid(m.one(m.first(x).relu()))[:, 0], "probability", "relu"),
    "log softmax": (lambda m, x: F.log_softmax(m.two(m.first(x).tanh()), dim=-1), "logit", "tanh"),
    "number": (lambda m, x: m.one(m.first(x).relu()).squeeze(), "identity", "relu"),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("way", WAYS)
def test_a_forward_function_is_read_however_it_is_written(way, dtype):
    forward, link, activation = WAYS[way]
    module = Written(forward).to(dtype)
    read, auto = matrices(module, link), TorchGradient(module, link=link)
    assert read.network.activation == activation
    near = 1e-5 if dtype == torch.float32 else 1e-10
    outcome = X[:, 0] if link == "identity" else Y
    kind = "numeric" if link == "identity" else "binary"
    losses, slopes = [], []
    for model in (read, GradientModel(network=auto, link=link)):
        view = viewed(model, FEATURES, outcome, kind)
        out, pull = view.network.pullback(X)
        losses.append(np.exp(view.loss.log_value(out, outcome)))
        slopes.append(pull(view.loss.slope(out, outcome)))
    np.testing.assert_allclose(*losses, rtol=near, atol=near)
    np.testing.assert_allclose(*slopes, rtol=100 * near, atol=10 * near)


def straight_through(h):
    class Sign(torch.autograd.Function):
        @staticmethod
        def forward(ctx, h):
            return h * 2

        @staticmethod
        def backward(ctx, slope):
            return slope

    return Sign.apply(h)


def without_gradient(layer, x):
    with torch.no_grad():
        return layer(x)


# What looks like a stack of layers for a moment, or is none.
OTHERS = {
    "depends on the rows": lambda m, x: m.one(m.first(x).relu()) * (1 if x.sum() > 0 else -1),
    "depends on the rows, by numpy": lambda m, x: m.one(m.first(x).relu()) * float(x.detach().numpy().mean()),
    "depends on the other rows": lambda m, x: m.one(m.first(x - x.mean(dim=0)).relu()),
    "depends on how often it was asked": lambda m, x: m.one(m.first(x).relu()) * (1 if m.asked % 2 else -1),
    "random": lambda m, x: m.one(m.first(x).relu()) + torch.randn(1),
    "dropout never off": lambda m, x: m.one(F.dropout(m.first(x).relu(), 0.5)),
    "a way around": lambda m, x: m.one(m.first(x).relu()) + x[:, :1],
    "chosen by a condition": lambda m, x: m.one(torch.where(m.first(x) > 0, m.first(x), 0.1 * m.first(x))),
    "another activation": lambda m, x: m.one(F.gelu(m.first(x))),
    "two activations": lambda m, x: torch.tanh(m.one(m.first(x).relu())) * 2,
    "a gradient that is cut": lambda m, x: m.one(m.first(x).relu().detach()),
    "a gradient that is not asked for": lambda m, x: m.one(without_gradient(m.first, x).relu()),
    "a gradient of its own": lambda m, x: m.one(straight_through(m.first(x)).relu()),
    "softmax said to be scores": lambda m, x: m.two(m.first(x).relu()).softmax(dim=1),
    "parts for categories": lambda m, x: m.one(F.one_hot((x[:, 0] > 0).long(), 6).to(x.dtype) + m.first(x)),
}


@pytest.mark.parametrize("other", OTHERS)
def test_what_is_no_stack_of_layers_is_left_to_autograd(other):
    module = Written(OTHERS[other]).double()
    assert matrices(module) is None
    if "softmax" not in other:  # refused without a word about what its outputs are
        assert torch_model(module, X, task="classes").name == "torch module (autograd)"


def test_hooks_and_single_rows_are_left_to_autograd():
    for hook in ("register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook"):
        module = net()
        getattr(module[0], hook)(lambda *_: None)
        assert matrices(module) is None
    assert layers_as_matrices(TorchGradient(net()), X[:1]) is None


def test_reading_leaves_the_module_as_found():
    module = Written(WAYS["batch norm before"][0]).train()
    module.norm.eval()
    module.first.weight.requires_grad_(False)
    before = {k: v.clone() for k, v in module.state_dict().items()}
    modes, generator = [part.training for part in module.modules()], torch.get_rng_state()
    assert matrices(module) is not None
    assert [part.training for part in module.modules()] == modes
    assert all(torch.equal(v, before[k]) for k, v in module.state_dict().items())
    assert all(p.grad is None for p in module.parameters())
    assert not module.first.weight.requires_grad
    assert module.one.weight.requires_grad
    assert torch.equal(torch.get_rng_state(), generator)


def test_a_layer_that_was_kept_is_still_the_modules_own():
    module = Written(WAYS["keeps a layer"][0])
    assert matrices(module) is not None
    module(torch.ones(3, 4)).sum().backward()
    assert module.kept.shape == (3, 6)
