"""SenSR: train a network on the worst people similar to those in the data (sensitive subspace robustness).

Each step draws a batch, moves its people first freely along the sensitive directions and then anywhere at a price, so
that the loss grows, and updates the network on the people so moved. The price follows a budget on the mean squared
fair distance. (Yurochkin, Bower and Sun, "Training individually fair ML models with sensitive subspace robustness",
ICLR 2020; settings after Maity, Xue, Yurochkin and Sun, ICLR 2021.)

Where it fails: similar people are those who differ along directions that predict the groups linearly. Rates of groups
are no part of the objective and need not come closer. Long moves along the directions (a large `subspace_rate`) cost
accuracy, and training that is too short looks fair because it has learned nothing.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from evenhand.kernels.flow.perceptron import Adam, Perceptron
from evenhand.kernels.shared.seeds import seed_of, stream
from evenhand.mitigation.estimator import About, Mitigator, Training, to_numbers
from evenhand.mitigation.front import as_matrix, join
from evenhand.mitigation.project import directions_of
from evenhand.models.gradient import GradientModel
from evenhand.similarity.metric import orthonormal

FloatArray = NDArray[Any]


class SenSR(Mitigator):
    """A network that is trained to treat similar people similarly.

    Parameters
    ----------
    hidden : tuple of int
        Units of the hidden layers.
    steps : int
        Updates of the network.
    batch_size : int
        People per update.
    balanced : bool
        Whether each batch holds the same number of people of each class, as in the experiments of the paper; otherwise
        people are drawn by their weights alone.
    learning_rate : float
        Of Adam on the weights.
    subspace_steps, subspace_rate : int, float
        Adam steps along the sensitive directions, and their size; 0 steps for none.
    full_steps, full_rate : int, float
        Adam steps in all directions, and their size; 0 steps for none. Without both attacks it is an ordinary network.
    budget : float
        Mean squared fair distance the second attack may use (rho).
    penalty : float
        First price of that distance (lambda); it then follows the budget.
    directions : array, shape (r, inputs), optional
        Sensitive directions; by default they are learned from the groups.
    l2 : float
        Ridge penalty of the regressions that learn them.
    bias : float
        First value of the biases.
    encoder : transformer, optional
        Makes numbers of the columns; ``"passthrough"`` takes numbers as they are. By default numbers are standardised
        and each value of a text becomes a column.
    random_state : int
        Seed.

    Attributes
    ----------
    decides_as_ : pipeline, or RobustNetwork
        Encoding and network.
    failed_attacks_ : int
        Updates that were left out because the second attack lowered its own objective.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> model = SenSR((10,), steps=20, batch_size=50, learning_rate=0.01)
    >>> model.fit(X, X[:, 0] + X[:, 1] > 0, sensitive_features=X[:, 1] > 0).predict_proba(X[:2]).shape
    (2, 2)
    """

    about: ClassVar[About] = About(
        stage="in",
        needs="groups that are predicted by directions in the inputs; it brings its own network",
        changes="the people in training: each is moved to a similar person who is treated worse",
        cost="one network whose steps cost about ten times as much",
        grid=({"subspace_rate": 0.1}, {"subspace_rate": 1.0}),
    )

    def __init__(
        self,
        hidden: tuple[int, ...] = (50,),
        *,
        steps: int = 1500,
        batch_size: int = 500,
        balanced: bool = False,
        learning_rate: float = 2e-3,
        subspace_steps: int = 5,
        subspace_rate: float = 0.1,
        full_steps: int = 3,
        full_rate: float = 1e-3,
        budget: float = 1e-3,
        penalty: float = 2.0,
        directions: ArrayLike | None = None,
        l2: float = 1.0,
        bias: float = 0.1,
        encoder: Any = None,
        random_state: int = 0,
    ) -> None:
        self.hidden = hidden
        self.steps = steps
        self.batch_size = batch_size
        self.balanced = balanced
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
        self.encoder = encoder
        self.random_state = random_state

    def _fit(self, rows: Training) -> None:
        front: list[tuple[str, Any]] = []
        if self.encoder != "passthrough":
            encoder = to_numbers(rows.X) if self.encoder is None else clone(self.encoder)
            rows = replace(rows, X=encoder.fit_transform(rows.X, rows.y))
            front = [("encode", encoder)]
        rows = replace(rows, X=as_matrix(rows.X))
        attacked = self.subspace_steps or self.full_steps
        self.directions_ = directions_of(rows, self.directions, self.l2) if attacked else np.zeros((0, rows.X.shape[1]))
        seed = seed_of(self.random_state)
        network = self._start(rows.X.shape[1], stream(seed, "sensr/start"))
        self.failed_attacks_ = 0
        self._train(network, rows, stream(seed, "sensr/batches"))
        self.decides_as_ = join(front, "network", RobustNetwork(network.weights, network.biases).fit(rows.X))

    def _start(self, wide: int, rng: np.random.Generator) -> Perceptron:
        shapes = list(itertools.pairwise((wide, *self.hidden, 2)))
        reach = [np.sqrt(6.0 / (a + b)) for a, b in shapes]
        return Perceptron(
            weights=tuple(rng.uniform(-r, r, size=s).astype(np.float32) for r, s in zip(reach, shapes, strict=True)),
            biases=tuple(np.full(s[1], self.bias, dtype=np.float32) for s in shapes),
        )

    def _train(self, network: Perceptron, rows: Training, rng: np.random.Generator) -> None:
        """Update the network in place."""
        X, batches = rows.X.astype(np.float32), _Batches(rows, self.batch_size, self.balanced, rng)
        attack = _Attack(self, self.directions_)
        adam = Adam(self.learning_rate)
        parameters = [a for pair in zip(network.weights, network.biases, strict=True) for a in pair]
        for _ in range(self.steps):
            drawn = batches.draw()
            label = rows.y[drawn]
            moved = attack(network, X[drawn], label)
            if moved is None:
                self.failed_attacks_ += 1
                continue

            def slope(outputs: FloatArray, label: NDArray[np.int64] = label) -> FloatArray:
                return _slope(outputs, label) / np.float32(label.size)

            adam.step(parameters, network.weight_gradient(moved, slope))


class RobustNetwork(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The trained network of SenSR as a plain classifier with the classes 0 and 1.

    Parameters
    ----------
    weights, biases : sequence of arrays
        Of each layer; the last has two outputs.

    Examples
    --------
    >>> network = RobustNetwork([np.array([[0.0, 2.0]])], [np.zeros(2)]).fit([[1.0]])
    >>> network.predict([[-1.0], [1.0]]).tolist()
    [0, 1]
    """

    def __init__(self, weights: Any, biases: Any) -> None:
        self.weights = weights
        self.biases = biases

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Take over the weights; nothing is learned from the rows but their number of columns."""
        validate_data(self, X, dtype=np.float64)
        self.classes_ = np.array([0, 1])
        return self

    def _network(self) -> Perceptron:
        return Perceptron(
            weights=tuple(np.asarray(w, dtype=np.float64) for w in self.weights),
            biases=tuple(np.asarray(b, dtype=np.float64) for b in self.biases),
        )

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Return the log-odds of class 1."""
        check_is_fitted(self)
        outputs = self._network().outputs(validate_data(self, X, dtype=np.float64, reset=False))
        return outputs[:, 1] - outputs[:, 0]

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return the probability of each class."""
        one = special.expit(self.decision_function(X))
        return np.column_stack([1 - one, one])

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the likelier class."""
        return (self.decision_function(X) > 0).astype(np.int64)

    def gradient_model(self) -> GradientModel:
        """Return the network with its gradients, as the individual audit uses it."""
        check_is_fitted(self)
        return GradientModel(network=self._network(), link="logit", classes=(0, 1), name="SenSR (exact gradient)")


class _Batches:
    """Rows to update the network with, drawn with replacement."""

    def __init__(self, rows: Training, size: int, balanced: bool, rng: np.random.Generator) -> None:
        some = np.arange(rows.y.size) if rows.weight is None else np.flatnonzero(rows.weight > 0)
        self.parts = [some[rows.y[some] == k] for k in (0, 1)] if balanced else [some]
        self.each = max(1, min(size // len(self.parts), min(part.size for part in self.parts)))
        self.ends = None if rows.weight is None else [np.cumsum(rows.weight[part]) for part in self.parts]
        self.rng = rng

    def draw(self) -> NDArray[np.int64]:
        """Return the rows of one batch."""
        if self.ends is None:
            return np.concatenate([part[self.rng.integers(part.size, size=self.each)] for part in self.parts])
        return np.concatenate(
            [
                part[np.searchsorted(ends, ends[-1] * self.rng.random(self.each), side="right")]
                for part, ends in zip(self.parts, self.ends, strict=True)
            ]
        )


class _Attack:
    """Move a batch to where the loss is larger; None when the second attack lowered its own objective."""

    def __init__(self, options: SenSR, directions: FloatArray) -> None:
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
    p = special.expit(outputs[:, 1] - outputs[:, 0]) - label.astype(outputs.dtype)
    return np.stack([-p, p], axis=1)


def _mean_loss(network: Perceptron, X: FloatArray, label: NDArray[np.int64]) -> float:
    outputs = network.outputs(X)
    outputs = outputs - np.take_along_axis(outputs, label[:, None], axis=1)
    top = outputs.max(axis=1, keepdims=True)
    return float((np.log(np.exp(outputs - top).sum(axis=1)) + top[:, 0]).mean())
