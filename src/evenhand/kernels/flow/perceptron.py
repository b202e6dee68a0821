"""A fully connected network as plain matrices: outputs, gradients by its inputs and by its weights.

No hidden layer makes it a (multinomial) logistic or linear regression. Only products of matrices are used,
so a tile of rows costs a few calls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special

from evenhand.arrays import FloatArray
from evenhand.errors import UsageError

# What is done to a layer's values, in place; and to slopes behind them, by the derivative in terms of the value.
ACTIVATIONS: dict[str, tuple[Callable[[FloatArray], Any], Callable[[FloatArray, FloatArray], Any]]] = {
    "identity": (lambda h: h, lambda g, h: g),
    "relu": (lambda h: np.maximum(h, 0.0, out=h), lambda g, h: np.multiply(g, h > 0, out=g)),
    "tanh": (lambda h: np.tanh(h, out=h), lambda g, h: np.multiply(g, 1.0 - h * h, out=g)),
    "logistic": (lambda h: special.expit(h, out=h), lambda g, h: np.multiply(g, h * (1.0 - h), out=g)),
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Perceptron:
    """Weights of a fully connected network.

    Examples
    --------
    >>> net = Perceptron(weights=(np.array([[2.0]]),), biases=(np.array([1.0]),))
    >>> outputs, pull = net.pullback(np.array([[3.0]]))
    >>> outputs.tolist(), pull(np.array([[1.0]])).tolist()
    ([[7.0]], [[2.0]])
    """

    weights: tuple[FloatArray, ...]  # each (from, to): one matrix per layer
    biases: tuple[FloatArray, ...]  # each (to,): one vector per layer
    activation: str = "relu"  # "relu", "tanh", "logistic", "identity": between layers; the last layer is linear

    def __post_init__(self) -> None:
        if self.activation not in ACTIVATIONS:
            raise UsageError(f"Activation `{self.activation}` is not known; allowed: {', '.join(ACTIVATIONS)}.")

    @property
    def dtype(self) -> Any:
        """The precision of the weights."""
        return self.weights[0].dtype.type

    def behind(self, matrix: FloatArray, offset: FloatArray) -> Perceptron:
        """Return the network behind an affine map of its inputs, ``X @ matrix + offset``."""
        first = self.weights[0]
        return replace(
            self,
            weights=(matrix @ first, *self.weights[1:]),
            biases=(offset @ first + self.biases[0], *self.biases[1:]),
        )

    def outputs(self, X: FloatArray) -> FloatArray:
        """Return the last layer's values, shape (rows, outputs)."""
        return self._forward(X)[-1]

    def pullback(self, X: FloatArray) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
        """Return the outputs, and the map from output slopes to input gradients."""
        layers = self._forward(X)

        def pull(slope: FloatArray) -> FloatArray:
            g = slope @ self.weights[-1].T
            for w, h in zip(self.weights[-2::-1], layers[-2:0:-1], strict=True):
                ACTIVATIONS[self.activation][1](g, h)
                g = g @ w.T
            return g

        return layers[-1], pull

    def weight_gradient(self, X: FloatArray, slope_of: Callable[[FloatArray], FloatArray]) -> list[FloatArray]:
        """Return gradients by weights and biases, ``[w0, b0, w1, b1, ...]``.

        `slope_of` maps outputs to the derivative of the summed loss by them.
        """
        layers = self._forward(X)
        g = slope_of(layers[-1])
        out: list[FloatArray] = []
        for k in range(len(self.weights) - 1, -1, -1):
            out[:0] = [layers[k].T @ g, g.sum(axis=0)]
            if k:
                g = g @ self.weights[k].T
                ACTIVATIONS[self.activation][1](g, layers[k])
        return out

    def _forward(self, X: FloatArray) -> list[FloatArray]:
        layers = [X]
        for k, (w, b) in enumerate(zip(self.weights, self.biases, strict=True)):
            h = layers[-1] @ w
            h += b
            if k < len(self.weights) - 1:
                ACTIVATIONS[self.activation][0](h)
            layers.append(h)
        return layers


class Adam:
    """Adam's update rule for a list of arrays, in place.

    Parameters
    ----------
    rate : float
        Learning rate.

    Examples
    --------
    >>> x = np.array([1.0])
    >>> Adam(0.1).step([x], [np.array([5.0])])
    >>> x.round(6).tolist()
    [0.9]
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.count = 0
        self.first: list[FloatArray] = []
        self.second: list[FloatArray] = []

    def step(self, values: list[FloatArray], gradients: list[FloatArray]) -> None:
        """Move the values one step down the gradients."""
        if not self.first:
            self.first = [np.zeros_like(v) for v in values]
            self.second = [np.zeros_like(v) for v in values]
        self.count += 1
        rate = self.rate * np.sqrt(1 - 0.999**self.count) / (1 - 0.9**self.count)
        for v, g, m, s in zip(values, gradients, self.first, self.second, strict=True):
            m += 0.1 * (g - m)
            s += 0.001 * (g * g - s)
            v -= rate * m / (np.sqrt(s) + 1e-8)
