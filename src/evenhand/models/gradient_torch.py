"""A torch module as a model with gradients, by autograd; the module is left exactly as it was found."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import FloatArray
from evenhand.errors import UsageError
from evenhand.kernels.flow.perceptron import Perceptron
from evenhand.models.gradient import CallableGradient, GradientModel, Pull

# Autograd has a fixed cost per call, so its tiles are larger than those of plain matrices.
TORCH_TILE = 16384


class TorchGradient:
    """A torch module whose outputs are class scores, probabilities or predicted numbers.

    Training modes, frozen parameters, accumulated gradients and running statistics stay as they are: the module is
    put in evaluation mode for each call only, and gradients are asked for by the inputs alone. People are moved in
    the module's own precision, losses are taken in double precision.

    Parameters
    ----------
    module : torch.nn.Module
        Maps (rows, inputs) to (rows,) or (rows, outputs).
    link : {"logit", "probability", "identity"}
        What it returns. ``"logit"``: log-odds of outcome 1, or one score per class before the softmax.
    classes : sequence, optional
        Class labels in the order of the outputs.

    Examples
    --------
    >>> import torch
    >>> layer = torch.nn.Linear(2, 1)
    >>> model = TorchGradient(layer)
    >>> outputs, pull = model.pullback(np.zeros((3, 2)))
    >>> bool(np.allclose(pull(np.ones((3, 1))), layer.weight.detach().numpy()))
    True
    """

    def __init__(self, module: Any, *, link: str = "logit", classes: Sequence[Any] | None = None) -> None:
        self.module, self.link = module, link
        self.classes = None if classes is None else tuple(classes)

    @property
    def dtype(self) -> Any:
        """The precision people are moved in: single where the module has it, else double."""
        import torch

        like = next(self.module.parameters(), None)
        return np.float64 if like is not None and like.dtype == torch.float64 else np.float32

    def outputs(self, X: FloatArray) -> FloatArray:
        """Return the module's outputs, shape (rows, outputs)."""
        import torch

        with _evaluating(self.module), torch.no_grad():
            out = self.module(self._tensor(X))
        return self._array(out if out.ndim == 2 else out.reshape(X.shape[0], -1))

    def pullback(self, X: FloatArray) -> tuple[FloatArray, Pull]:
        """Return the outputs, and the map from output slopes to input gradients."""
        import torch

        with torch.inference_mode(False), torch.enable_grad(), _evaluating(self.module):
            x = self._tensor(X).requires_grad_(True)
            out = self.module(x)
            out = out if out.ndim == 2 else out.reshape(X.shape[0], -1)
        values = self._array(out.detach())

        def pull(slope: FloatArray) -> FloatArray:
            cotangent = torch.from_numpy(np.ascontiguousarray(slope)).to(dtype=out.dtype, device=out.device)
            if not out.requires_grad:  # an output that does not depend on the inputs
                return np.zeros_like(X)
            with torch.inference_mode(False):
                (g,) = torch.autograd.grad(out, x, cotangent, allow_unused=True)
            return np.zeros_like(X) if g is None else np.asarray(g.cpu().numpy(), dtype=X.dtype)

        return values, pull

    def _tensor(self, X: FloatArray) -> Any:
        import torch

        like = next(self.module.parameters(), None)
        dtype, device = (torch.float32, "cpu") if like is None else (like.dtype, like.device)
        # A copy: the flow goes on moving X while autograd still needs the old values.
        return torch.tensor(X, dtype=dtype, device=device)

    @staticmethod
    def _array(tensor: Any) -> FloatArray:
        out: FloatArray = tensor.detach().cpu().numpy().astype(np.float64)
        return out


def is_torch_module(model: Any) -> bool:
    """Say whether a model is a torch module, without importing torch for the question."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def network_of(model: Any, X: FloatArray, *, task: str) -> GradientModel | None:
    """Return a model that is a network, with what its outputs are; None for anything else.

    Examples
    --------
    >>> network_of(lambda X: X[:, 0], np.zeros((1, 1)), task="classes") is None
    True
    """
    if isinstance(model, GradientModel):
        return model
    if isinstance(model, CallableGradient):
        return GradientModel(network=model, link=model.link, classes=model.classes, name="function with its gradient")
    if isinstance(model, TorchGradient) or is_torch_module(model):
        return torch_model(model, X, task=task)
    return None


def torch_model(model: Any, X: FloatArray, *, task: str) -> GradientModel:
    """Adapt a torch module, or a `TorchGradient` that says what its outputs are."""
    said = isinstance(model, TorchGradient)
    wrapped = model if said else TorchGradient(model, link="identity" if task == "regression" else "logit")
    plain = layers_as_matrices(wrapped.module)
    if plain is not None and _same_outputs(plain, wrapped, X[:256]):
        name = "torch module (its layers as matrices)"
        return GradientModel(network=plain, link=wrapped.link, classes=wrapped.classes, name=name)
    if not said:
        out = wrapped.outputs(X[:256])
        if task != "regression" and out.size and _like_probabilities(out):
            raise UsageError(
                "The torch module's outputs lie between 0 and 1 and look like probabilities; the audit needs to know. "
                "Pass `TorchGradient(module, link='probability')`, or `link='logit'` if they are scores before the "
                "softmax."
            )
    return GradientModel(
        network=wrapped, link=wrapped.link, classes=wrapped.classes, tile=TORCH_TILE, name="torch module (autograd)"
    )


def layers_as_matrices(module: Any) -> Perceptron | None:
    """Read a plain stack of linear layers with one kind of activation, which needs no autograd.

    Parameters
    ----------
    module : torch.nn.Module
        Anything; only linear layers, ReLU, Tanh or Sigmoid between them, and dropout (idle in evaluation) are read:
        from a `torch.nn.Sequential`, or from what the module does when torch traces it. Modules with hooks may do more
        than they show and are left to autograd.

    Returns
    -------
    Perceptron or None

    Examples
    --------
    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    >>> layers_as_matrices(net).activation
    'relu'
    """
    from torch import nn

    stack = None if any(_hooked(part) for part in module.modules()) else _stack(module)
    if stack is None:
        return None
    names = {nn.ReLU: "relu", nn.Tanh: "tanh", nn.Sigmoid: "logistic"}
    linear: list[Any] = []
    active: list[str] = []
    for part in stack:
        if type(part) is nn.Linear:
            if len(active) != len(linear):
                return None  # two linear layers in a row
            linear.append(part)
        elif type(part) in names and len(active) == len(linear) - 1:
            active.append(names[type(part)])
        elif type(part) not in (nn.Dropout, nn.Identity):
            return None
    if not linear or len(active) != len(linear) - 1 or len(set(active)) > 1:
        return None

    activation = active[0] if active else "relu"
    # Where many steps are made at once (`kernels.flow_pieces`) double precision costs nothing; elsewhere as the module.
    double = len(linear) == 1 or (len(linear) == 2 and activation == "relu")

    def array(tensor: Any) -> NDArray[Any]:
        out: NDArray[Any] = tensor.detach().cpu().numpy()
        return out.astype(np.float64 if double or out.dtype != np.float32 else np.float32)

    weights = tuple(np.ascontiguousarray(array(layer.weight).T) for layer in linear)
    return Perceptron(
        weights=weights,
        biases=tuple(
            np.zeros_like(w[0]) if layer.bias is None else array(layer.bias)
            for w, layer in zip(weights, linear, strict=True)
        ),
        activation=activation,
    )


def _stack(module: Any) -> list[Any] | None:
    """Return the layers that a module applies one after the other; None where it does anything else."""
    import torch
    from torch import fx, nn

    if type(module) is nn.Sequential:
        return list(module)
    with _evaluating(module):
        try:
            graph = fx.symbolic_trace(module).graph
        except Exception:  # tracing runs a stranger's code, and stops where the way depends on the inputs
            return None
    functions = {torch.relu: nn.ReLU, nn.functional.relu: nn.ReLU, torch.tanh: nn.Tanh, torch.sigmoid: nn.Sigmoid}
    methods = {"relu": nn.ReLU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid}
    layers: list[Any] = []
    last: Any = None
    for node in graph.nodes:
        if node.op == "output":
            return layers if node.args == (last,) else None
        if node.op == "placeholder" and last is None:
            last = node
            continue
        if node.args != (last,) or not set(node.kwargs) <= {"inplace"}:
            return None
        if node.op == "call_module":
            layers.append(module.get_submodule(node.target))
        elif node.op == "call_function" and node.target in functions:
            layers.append(functions[node.target]())
        elif node.op == "call_method" and node.target in methods:
            layers.append(methods[node.target]())
        else:
            return None
        last = node
    return None


def _same_outputs(plain: Perceptron, wrapped: TorchGradient, X: FloatArray) -> bool:
    """Say whether matrices that were read answer as the module does."""
    own = wrapped.outputs(X)
    return own.shape == (len(X), plain.biases[-1].size) and bool(
        np.allclose(plain.outputs(X.astype(plain.dtype)), own, rtol=1e-4, atol=1e-5 * (1.0 + float(np.abs(own).max())))
    )


def _hooked(part: Any) -> bool:
    return any(
        getattr(part, name, None)
        for name in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    )


def _like_probabilities(out: FloatArray) -> bool:
    inside = bool(((out >= 0) & (out <= 1)).all())
    return inside and (out.shape[1] == 1 or bool(np.allclose(out.sum(axis=1), 1.0, atol=1e-4)))


@contextmanager
def _evaluating(module: Any) -> Iterator[None]:
    """Switch training off for the moment, part by part, and back on for exactly the parts that had it on."""
    training = [part for part in module.modules() if part.training]
    for part in training:
        part.training = False
    try:
        yield
    finally:
        for part in training:
            part.training = True
