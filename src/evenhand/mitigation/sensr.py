"""SenSR: train a network on the worst people similar to those in the data (sensitive subspace robustness).

Each step draws a batch, moves its people first freely along the sensitive directions and then anywhere at a price, so
that the loss grows, and updates the network on the people so moved. The price follows a budget on the mean squared
fair distance. (Yurochkin, Bower and Sun, ICLR 2020; settings of [maity2021].)
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from evenhand.errors import DataError
from evenhand.kernels.flow.perceptron import Adam, Perceptron
from evenhand.kernels.shared.seeds import seed_of, stream
from evenhand.mitigation.project import sensitive_directions
from evenhand.models.gradient import GradientModel
from evenhand.similarity.metric import orthonormal

FloatArray = NDArray[Any]


class SenSRClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A two-class or multi-class network trained to treat similar people similarly.

    Parameters
    ----------
    hidden : tuple of int
        Units of the hidden layers.
    steps : int
        Updates of the network; 0 attacks in each step gives an ordinary network.
    batch_size : int
        People per update, the same number of each class.
    learning_rate : float
        Of Adam on the weights.
    subspace_steps, subspace_rate : int, float
        Adam steps along the sensitive directions, and their size.
    full_steps, full_rate : int, float
        Adam steps in all directions, and their size.
    budget : float
        Mean squared fair distance the second attack may use (rho).
    penalty : float
        First price of that distance (lambda); it then follows the budget.
    directions : array, shape (r, inputs), optional
        Sensitive directions; without them they are learned from `sensitive` in `fit`.
    l2 : float
        Ridge penalty of the regressions that learn them.
    bias : float
        First value of the biases.
    random_state : int
        Seed.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> y = (X[:, 0] + X[:, 1] > 0).astype(int)
    >>> model = SenSRClassifier(steps=20, batch_size=50, learning_rate=0.01, directions=[[0.0, 1.0, 0.0]])
    >>> model.fit(X, y).predict_proba(X[:2]).shape
    (2, 2)
    """

    def __init__(
        self,
        hidden: tuple[int, ...] = (100,),
        *,
        steps: int = 2000,
        batch_size: int = 1000,
        learning_rate: float = 1e-3,
        subspace_steps: int = 10,
        subspace_rate: float = 0.1,
        full_steps: int = 50,
        full_rate: float = 1e-4,
        budget: float = 1e-3,
        penalty: float = 2.0,
        directions: ArrayLike | None = None,
        l2: float = 1.0,
        bias: float = 0.1,
        random_state: int = 0,
    ) -> None:
        self.hidden = hidden
        self.steps = steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.subspace_steps = subspace_steps
        self.subspace_rate = subspace_rate
        self.full_steps = full_steps
        self.full_rate = full_rate
        self.budget = budget
        self.penalty = penalty
        self.directions = directions
        self.l2 = l2
        self.bias = bias
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, *, sensitive: ArrayLike | None = None) -> SenSRClassifier:
        """Train; `sensitive` holds the protected attributes when `directions` are not given."""
        data, target = validate_data(self, X, y, dtype=np.float64)
        self.classes_, codes = np.unique(target, return_inverse=True)
        if self.classes_.size < 2:
            raise DataError(f"`y` has the single class {self.classes_.tolist()}; at least two are needed.")
        if self.directions is not None:
            directions = np.atleast_2d(np.asarray(self.directions, dtype=np.float64))
        elif sensitive is not None:
            directions = sensitive_directions(data, sensitive, self.l2)
        elif self.subspace_steps or self.full_steps:
            raise DataError("SenSRClassifier needs `directions`, or the attributes as `sensitive` in `fit`.")
        else:
            directions = np.zeros((0, data.shape[1]))
        self.directions_ = directions
        seed = seed_of(self.random_state)
        self.network_ = self._start(data.shape[1], int(self.classes_.size), stream(seed, "sensr/start"))
        self.failed_attacks_ = 0
        self._train(data.astype(np.float32), codes, stream(seed, "sensr/batches"))
        self.network_ = Perceptron(
            weights=tuple(w.astype(np.float64) for w in self.network_.weights),
            biases=tuple(b.astype(np.float64) for b in self.network_.biases),
        )
        return self

    def _start(self, wide: int, classes: int, rng: np.random.Generator) -> Perceptron:
        sizes = (wide, *self.hidden, classes)
        shapes = list(itertools.pairwise(sizes))
        reach = [np.sqrt(6.0 / (a + b)) for a, b in shapes]
        return Perceptron(
            weights=tuple(rng.uniform(-r, r, size=s).astype(np.float32) for r, s in zip(reach, shapes, strict=True)),
            biases=tuple(np.full(s[1], self.bias, dtype=np.float32) for s in shapes),
        )

    def _train(self, X: FloatArray, codes: NDArray[np.int64], rng: np.random.Generator) -> None:
        members = [np.flatnonzero(codes == k) for k in range(self.classes_.size)]
        each = max(1, min(self.batch_size // len(members), min(m.size for m in members)))
        attack = _Attack(self, self.directions_)
        adam = Adam(self.learning_rate)
        parameters = [a for pair in zip(self.network_.weights, self.network_.biases, strict=True) for a in pair]
        label = np.repeat(np.arange(len(members)), each)
        for _ in range(self.steps):
            rows = np.concatenate([m[rng.integers(m.size, size=each)] for m in members])
            moved = attack(self.network_, X[rows], label)
            if moved is None:
                self.failed_attacks_ += 1
                continue

            def slope(outputs: FloatArray) -> FloatArray:
                return _slope(outputs, label) / np.float32(label.size)

            adam.step(parameters, self.network_.weight_gradient(moved, slope))

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Return log-odds of the second class, or one score per class."""
        check_is_fitted(self)
        outputs = self.network_.outputs(validate_data(self, X, dtype=np.float64, reset=False))
        return outputs[:, 1] - outputs[:, 0] if outputs.shape[1] == 2 else outputs

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return the probability of each class."""
        check_is_fitted(self)
        outputs = self.network_.outputs(validate_data(self, X, dtype=np.float64, reset=False))
        out: FloatArray = special.softmax(outputs, axis=1)
        return out

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the likeliest class."""
        out: NDArray[Any] = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return out

    def gradient_model(self) -> GradientModel:
        """Return the network with its gradients, as the individual audit uses it."""
        check_is_fitted(self)
        return GradientModel(
            network=self.network_,
            link="logit",
            classes=tuple(self.classes_),
            name="SenSRClassifier (exact gradient)",
        )


class _Attack:
    """Move a batch to where the loss is larger; None when the second attack lowered its own objective."""

    def __init__(self, options: SenSRClassifier, directions: FloatArray) -> None:
        self.options = options
        self.directions: FloatArray = directions.astype(np.float32)
        self.basis = orthonormal(directions).astype(np.float32) if directions.shape[0] else None
        self.penalty = float(options.penalty)
        self.rate = float(options.full_rate)

    def __call__(self, network: Perceptron, X: FloatArray, label: NDArray[np.int64]) -> FloatArray | None:
        start = X
        if self.options.subspace_steps and self.directions.shape[0]:
            X = self._along(network, X, label)
        if not self.options.full_steps:
            return X
        extra = np.zeros_like(X)
        adam = Adam(self.rate)
        before = self._objective(network, X, start, label)
        for _ in range(self.options.full_steps):
            at = X + extra
            outputs, pull = network.pullback(at)
            gradient = pull(_slope(outputs, label))
            gradient -= np.float32(2 * self.penalty) * self._apart(at - start)
            adam.step([extra], [-gradient / np.float32(label.size)])
        X = X + extra
        if not self._objective(network, X, start, label) >= before:
            self.rate *= 0.999
            return None
        distance = float((self._apart(X - start) ** 2).sum(axis=1).mean())
        budget = self.options.budget
        ratio = max(distance, budget) / max(min(distance, budget), 1e-12)
        self.penalty = min(max(1e-5, self.penalty + ratio * (distance - budget)), 10.0)
        return X

    def _along(self, network: Perceptron, X: FloatArray, label: NDArray[np.int64]) -> FloatArray:
        w: FloatArray = np.zeros((X.shape[0], self.directions.shape[0]), dtype=np.float32)
        adam = Adam(self.options.subspace_rate)
        # The same network as a function of w: X stays, so that its share of the first layer is computed once.
        along = network.behind(self.directions, X)
        for _ in range(self.options.subspace_steps):
            outputs, pull = along.pullback(w)
            adam.step([w], [pull(_slope(outputs, label)) / np.float32(-label.size)])
        moved = X + w @ self.directions
        return moved if _mean_loss(network, moved, label) >= _mean_loss(network, X, label) else X

    def _apart(self, d: FloatArray) -> FloatArray:
        return d if self.basis is None else d - (d @ self.basis) @ self.basis.T

    def _objective(self, network: Perceptron, X: FloatArray, start: FloatArray, label: NDArray[np.int64]) -> float:
        apart = float((self._apart(X - start) ** 2).sum(axis=1).mean())
        return _mean_loss(network, X, label) - self.penalty * apart


def _slope(outputs: FloatArray, label: NDArray[np.int64]) -> FloatArray:
    if outputs.shape[1] == 2:
        p = special.expit(outputs[:, 1] - outputs[:, 0]) - label.astype(outputs.dtype)
        return np.stack([-p, p], axis=1)
    out: FloatArray = special.softmax(outputs, axis=1)
    out[np.arange(label.size), label] -= 1
    return out


def _mean_loss(network: Perceptron, X: FloatArray, label: NDArray[np.int64]) -> float:
    outputs = network.outputs(X)
    outputs = outputs - np.take_along_axis(outputs, label[:, None], axis=1)
    top = outputs.max(axis=1, keepdims=True)
    return float((np.log(np.exp(outputs - top).sum(axis=1)) + top[:, 0]).mean())
