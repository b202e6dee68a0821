"""A torch module as a model with gradients, by autograd; the module is left exactly as it was found."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

import numpy as np
from scipy import special

from evenhand.arrays import FloatArray
from evenhand.errors import UsageError
from evenhand.models.gradient import CallableGradient, GradientModel, Pull
from evenhand.models.torch_layers import Layers, read_layers

# Autograd has a fixed cost per call, so its tiles are larger than those of plain matrices.
TORCH_TILE = 16384
# Rows for which a module is watched, and for which what was seen is compared with its own answers.
WATCHED, CHECKED = 5, 256
# What may stand at the end of a stack of layers, given what its outputs are: (link, end).
BEHIND = {
    ("logit", "none"), ("logit", "log_softmax"), ("identity", "none"), ("probability", "sigmoid"),
    ("probability", "softmax"),
}  # fmt: skip


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
            out = self.module(self.tensor(X))
        return self._array(out if out.ndim == 2 else out.reshape(X.shape[0], -1))

    def pullback(self, X: FloatArray) -> tuple[FloatArray, Pull]:
        """Return the outputs, and the map from output slopes to input gradients."""
        import torch

        with _recording(), _evaluating(self.module):
            x = self.tensor(X).requires_grad_(True)
            out = self.module(x)
            out = out if out.ndim == 2 else out.reshape(X.shape[0], -1)
        values = self._array(out)

        def pull(slope: FloatArray) -> FloatArray:
            if not out.requires_grad:  # an output that does not depend on the inputs
                return np.zeros_like(X)
            with _recording():
                cotangent = torch.from_numpy(np.ascontiguousarray(slope)).to(dtype=out.dtype, device=out.device)
                # As a sum: for slopes handed over beside the outputs torch imports its symbolic mathematics.
                (g,) = torch.autograd.grad((out * cotangent).sum(), x, allow_unused=True)
            return np.zeros_like(X) if g is None else np.asarray(g.cpu().numpy(), dtype=X.dtype)

        return values, pull

    def tensor(self, X: FloatArray) -> Any:
        """Return rows as the module takes them."""
        import torch

        like = next(self.module.parameters(), None)
        dtype, device = (torch.float32, "cpu") if like is None else (like.dtype, like.device)
        # A copy, made by numpy in less time: the flow goes on moving X while autograd still needs the old values.
        return torch.from_numpy(np.array(X)).to(dtype=dtype, device=device)

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
    plain = layers_as_matrices(wrapped, X)
    if plain is not None:
        return plain
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


def layers_as_matrices(wrapped: TorchGradient, X: FloatArray) -> GradientModel | None:
    """Read a module that only applies linear layers with one kind of activation; then no autograd is needed.

    Parameters
    ----------
    wrapped : TorchGradient
        Its module may be anything. What it does to a few rows is watched (`torch_layers`) and must then give its own
        answers and gradients for others. A softmax or sigmoid at the end of a module whose outputs are said to be
        probabilities is taken off: what is before it are log-odds. Modules with hooks may do more than they show and
        are left to autograd.
    X : ndarray, shape (rows, inputs)
        Rows to ask it for.

    Returns
    -------
    GradientModel or None

    Examples
    --------
    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    >>> layers_as_matrices(TorchGradient(net), np.eye(2)).network.activation
    'relu'
    """
    module = wrapped.module
    if X.shape[0] < 2 or any(_hooked(part) for part in module.modules()):
        return None
    some = X[:: -(-X.shape[0] // CHECKED)]
    try:
        with _evaluating(module):
            read = read_layers(module, wrapped.tensor(some[:WATCHED]))
        if read is None or (wrapped.link, read.end) not in BEHIND or not _agree(read, wrapped, some):
            return None
    except Exception:  # a stranger's code, which may not bear being watched
        return None
    link = "logit" if wrapped.link == "probability" else wrapped.link
    name = "torch module (its layers as matrices)"
    return GradientModel(network=read.network, link=link, classes=wrapped.classes, name=name)


def _agree(read: Layers, wrapped: TorchGradient, X: FloatArray) -> bool:
    """Say whether the layers that were read give a module's answers and gradients."""
    own, pull_own = wrapped.pullback(X)
    scores, pull = read.network.pullback(X.astype(read.network.dtype))
    if own.shape != scores.shape or (wrapped.link == "probability" and (own.shape[1] == 1) != (read.end == "sigmoid")):
        return False
    near = 1e-5 if wrapped.dtype == np.float32 else 1e-9
    answers, back = _ended(read.end, scores.astype(np.float64))
    if not np.abs(answers - own).max() <= near * (1.0 + np.abs(own).max()):
        return False
    # Different weights for the outputs, so that no two of them can be taken for each other.
    slope = np.broadcast_to(1.0 + np.arange(own.shape[1]), own.shape)
    mine, theirs = pull(back(slope)), pull_own(slope)
    gap = np.abs(mine - theirs).max(axis=1)
    # At a kink a rounding error decides between two gradients.
    return bool((gap <= 100 * near * np.abs(theirs).max()).mean() >= 0.95)


def _ended(end: str, scores: FloatArray) -> tuple[FloatArray, Pull]:
    """Return what the end of a module makes of scores, and the map from slopes behind it to slopes before it."""
    if end == "sigmoid":
        p = special.expit(scores)
        return p, lambda slope: slope * p * (1 - p)
    p = special.softmax(scores, axis=1)
    if end == "softmax":
        return p, lambda slope: p * (slope - (slope * p).sum(axis=1, keepdims=True))
    if end == "log_softmax":
        return special.log_softmax(scores, axis=1), lambda slope: slope - p * slope.sum(axis=1, keepdims=True)
    return scores, lambda slope: slope


def _hooked(part: Any) -> bool:
    return any(
        getattr(part, name, None)
        for name in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    )


def _like_probabilities(out: FloatArray) -> bool:
    inside = bool(((out >= 0) & (out <= 1)).all())
    return inside and (out.shape[1] == 1 or bool(np.allclose(out.sum(axis=1), 1.0, atol=1e-4)))


def _recording() -> AbstractContextManager[Any]:
    """Let autograd record, also where the caller has switched that off; switching takes longer than looking."""
    import torch

    if torch.is_grad_enabled() and not torch.is_inference_mode_enabled():
        return nullcontext()
    stack = ExitStack()
    stack.enter_context(torch.inference_mode(False))
    stack.enter_context(torch.enable_grad())
    return stack


@contextmanager
def _evaluating(module: Any) -> Iterator[None]:
    """Switch training off for the moment, part by part, and back on for exactly the parts that had it on."""
    training = [part.__dict__ for part in module.modules() if part.training]
    for own in training:  # not by assignment, which a module looks at for long
        own["training"] = False
    try:
        yield
    finally:
        for own in training:
            own["training"] = True
