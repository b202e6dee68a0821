"""What the individual audit asks of a model: outputs, and how output slopes pull back to input gradients.

An adapter makes one `GradientModel` from a model of its library. `CallableGradient` is for anything else: a
function with its Jacobian.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy import special

from evenhand.arrays import FloatArray
from evenhand.errors import UsageError
from evenhand.kernels.flow.perceptron import Perceptron
from evenhand.kernels.flow.tiles import TILE

Pull = Callable[[FloatArray], FloatArray]
LINKS = ("logit", "probability", "identity")


def check_link(link: str) -> None:
    """Refuse a word that does not say what outputs are."""
    if link not in LINKS:
        raise UsageError(f"`link` is `{link}`; allowed: {', '.join(f'`{k}`' for k in LINKS)}.")


class Network(Protocol):
    """Anything with outputs and a pullback; `evenhand.kernels.flow.perceptron.Perceptron` is one."""

    def outputs(self, X: FloatArray) -> FloatArray:
        """Return values of shape (rows, outputs)."""

    def pullback(self, X: FloatArray) -> tuple[FloatArray, Pull]:
        """Return the outputs, and the map from output slopes to input gradients."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GradientModel:
    """A model with gradients, in the coordinates of its own input matrix."""

    network: Network  # outputs and pullback
    # What the outputs are: log-odds or class scores, probabilities, or predicted numbers; one of "logit",
    # "probability", "identity".
    link: str
    classes: tuple[Any, ...] | None = None  # class labels in the order of the outputs, where the model knows them
    tile: int = TILE  # rows to hand over at once
    name: str = "model with gradients"  # for the report

    def __post_init__(self) -> None:
        check_link(self.link)


class CallableGradient:
    """A function with its Jacobian, as a model for the individual audit.

    Parameters
    ----------
    outputs : callable
        ``outputs(X)`` for X of shape (rows, inputs): shape (rows,) or (rows, k).
    jacobian : callable
        ``jacobian(X)``: shape (rows, inputs) or (rows, k, inputs).
    link : {"probability", "logit", "identity"}
        What the outputs are: probabilities of outcome 1 (or of each class), log-odds, or predicted numbers.
    classes : sequence, optional
        Class labels in the order of the output columns.

    Examples
    --------
    >>> slope = lambda X: np.tile([2.0, 0.0], (len(X), 1))
    >>> model = CallableGradient(lambda X: 2 * X[:, 0], slope, link="logit")
    >>> outputs, pull = model.pullback(np.ones((1, 2)))
    >>> outputs.tolist(), pull(np.ones((1, 1))).tolist()
    ([[2.0]], [[2.0, 0.0]])
    """

    def __init__(
        self,
        outputs: Callable[[FloatArray], Any],
        jacobian: Callable[[FloatArray], Any],
        *,
        link: str = "probability",
        classes: Sequence[Any] | None = None,
    ) -> None:
        check_link(link)
        self._outputs, self._jacobian = outputs, jacobian
        self.link = link
        self.classes = None if classes is None else tuple(classes)

    def outputs(self, X: FloatArray) -> FloatArray:
        """Return values of shape (rows, k)."""
        return as_columns(self._outputs(X), X.shape[0])

    def pullback(self, X: FloatArray) -> tuple[FloatArray, Pull]:
        """Return the outputs, and the map from output slopes to input gradients."""
        out = self.outputs(X)
        jac = np.asarray(self._jacobian(X), dtype=np.float64)
        if jac.ndim == 2:
            jac = jac[:, None, :]
        if jac.shape != (X.shape[0], out.shape[1], X.shape[1]):
            raise UsageError(
                f"`jacobian` returned shape {jac.shape}; with {out.shape[1]} outputs and {X.shape[1]} inputs it must "
                f"be ({X.shape[0]}, {out.shape[1]}, {X.shape[1]}), or without the middle axis for one output."
            )
        return out, lambda slope: np.einsum("ik,ikj->ij", slope, jac)


@dataclass(frozen=True, slots=True, eq=False)
class Prefixed:
    """A network behind an affine map of its inputs: outputs at ``X @ matrix + offset``, or ``X * matrix + offset``."""

    network: Network
    matrix: FloatArray  # (inputs, network inputs), or one factor per input
    offset: FloatArray  # (network inputs,)

    def outputs(self, X: FloatArray) -> FloatArray:
        """Return the network's outputs behind the map."""
        return self.network.outputs(_mapped(X, self.matrix, self.offset))

    def pullback(self, X: FloatArray) -> tuple[FloatArray, Pull]:
        """Return the outputs, and the map from output slopes to gradients before the map."""
        matrix, offset = (a.astype(X.dtype, copy=False) for a in (self.matrix, self.offset))
        out, pull = self.network.pullback(_mapped(X, matrix, offset))
        return out, lambda slope: pull(slope) @ matrix.T if matrix.ndim == 2 else pull(slope) * matrix


def _mapped(X: FloatArray, matrix: FloatArray, offset: FloatArray) -> FloatArray:
    return (X @ matrix if matrix.ndim == 2 else X * matrix) + offset


def rescaled(network: Network, center: FloatArray, unit: FloatArray) -> Network:
    """Return a network in other units, input = center + unit * x; matrices are rewritten, others wrapped.

    Examples
    --------
    >>> net = Perceptron(weights=(np.array([[2.0]]),), biases=(np.array([1.0]),))
    >>> rescaled(net, np.array([3.0]), np.array([10.0])).outputs(np.array([[1.0]])).tolist()
    [[27.0]]
    """
    return prefixed(network, np.diag(unit) if isinstance(network, Perceptron) else unit, center)


def prefixed(network: Network, matrix: FloatArray, offset: FloatArray) -> Network:
    """Return a network behind an affine map of its inputs; matrices are multiplied out, others wrapped.

    Examples
    --------
    >>> net = Perceptron(weights=(np.array([[2.0]]),), biases=(np.array([1.0]),))
    >>> prefixed(net, np.array([[1.0], [1.0]]), np.array([0.5])).outputs(np.array([[1.0, 2.0]])).tolist()
    [[8.0]]
    """
    if isinstance(network, Perceptron):
        return network.behind(matrix, offset)
    return Prefixed(network, matrix, offset)


@dataclass(frozen=True, slots=True, eq=False)
class Turned:
    """A network of two classes with the classes in the other order."""

    network: Network  # with one output for its second class, or one for each
    top: float  # the sum of the two answers where there is one output: 0 for log-odds, 1 for probabilities

    def outputs(self, X: FloatArray) -> FloatArray:
        """Return the network's outputs, turned."""
        return in_other_order(self.network.outputs(X), self.top)

    def pullback(self, X: FloatArray) -> tuple[FloatArray, Pull]:
        """Return the outputs, turned, and the map from their slopes to input gradients."""
        out, pull = self.network.pullback(X)
        one = out.shape[1] == 1
        other = in_other_order(out, self.top)
        return other, lambda slope: pull(-slope if one else np.ascontiguousarray(slope[:, ::-1]))


def in_other_order(outputs: FloatArray, top: float) -> FloatArray:
    """Return the outputs of two classes in the other order; one output is the second class's share of `top`."""
    return top - outputs if outputs.shape[1] == 1 else outputs[:, ::-1]


def turned(network: Network, link: str) -> Network:
    """Return a network with its two classes in the other order; matrices are rewritten, others wrapped.

    Examples
    --------
    >>> net = Perceptron(weights=(np.array([[2.0]]),), biases=(np.array([1.0]),))
    >>> turned(net, "logit").outputs(np.array([[1.0]])).tolist()
    [[-3.0]]
    """
    if isinstance(network, Perceptron) and link == "logit":
        *first, last = network.weights
        *before, bias = network.biases
        one = last.shape[1] == 1
        weights = (*first, -last if one else np.ascontiguousarray(last[:, ::-1]))
        return replace(network, weights=weights, biases=(*before, -bias if one else bias[::-1].copy()))
    return Turned(network, 0.0 if link == "logit" else 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Averaged:
    """The weighted mean of probabilities: what a mixture of networks of two classes answers.

    Examples
    --------
    >>> net = Perceptron(weights=(np.array([[1.0]]),), biases=(np.array([0.0]),))
    >>> mean = Averaged(((0.5, GradientModel(network=net, link="logit")),), constant=0.25)
    >>> outputs, pull = mean.pullback(np.array([[0.0]]))
    >>> outputs.tolist(), pull(np.ones((1, 1))).tolist()
    ([[0.5]], [[0.125]])
    """

    members: tuple[tuple[float, GradientModel], ...]  # weights, and networks whose second class is counted
    constant: float = 0.0  # what members that say the same to everybody add, with their weights

    def outputs(self, X: FloatArray) -> FloatArray:
        """Return the mean probability of the second class, shape (rows, 1)."""
        total = np.full(X.shape[0], self.constant)
        for weight, model in self.members:
            total += weight * _second(model.network.outputs(X), model.link)
        return total[:, None]

    def pullback(self, X: FloatArray) -> tuple[FloatArray, Pull]:
        """Return the mean probability, and the map from its slopes to input gradients."""
        total = np.full(X.shape[0], self.constant)
        parts: list[tuple[FloatArray, Pull]] = []
        for weight, model in self.members:
            out, pull = model.network.pullback(X)
            p = _second(out, model.link)
            total += weight * p
            rise = weight * (p * (1 - p) if model.link == "logit" else np.ones_like(p))
            fall = -rise if model.link == "logit" else np.zeros_like(rise)
            parts.append((rise[:, None] if out.shape[1] == 1 else np.stack([fall, rise], axis=1), pull))

        def mean_pull(slope: FloatArray) -> FloatArray:
            pulled = np.zeros_like(X)
            for rise, pull in parts:
                pulled += pull(slope * rise)
            return pulled

        return total[:, None], mean_pull


def _second(out: FloatArray, link: str) -> FloatArray:
    """Return the probability of the second of two classes from one output, or from one for each class."""
    if link == "logit":
        return np.asarray(special.expit(out[:, 0] if out.shape[1] == 1 else out[:, 1] - out[:, 0]))
    return out[:, -1]


def precision(network: Network) -> Any:
    """Return the floating point type in which a network wants to be followed."""
    inner = network
    while isinstance(inner, (Prefixed, Turned)):
        inner = inner.network
    return getattr(inner, "dtype", np.float64)


def as_columns(values: Any, rows: int) -> FloatArray:
    """Return a model's answer as a matrix of shape (rows, outputs), or say what is wrong with it."""
    out = np.asarray(values, dtype=np.float64)
    if out.ndim == 1:
        out = out[:, None]
    if out.ndim != 2 or out.shape[0] != rows:
        raise UsageError(
            f"The model returned shape {np.shape(values)} for {rows} rows; it must be ({rows},) or ({rows}, outputs)."
        )
    return out
