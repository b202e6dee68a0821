"""A metric learned from judgements: people said of pairs whether the two are comparable.

The chance that a pair is called comparable is modelled as 2 / (1 + exp(d'Sd)): certain at distance zero, falling with
distance. The likelihood is convex in S, which is found among positive semi-definite matrices.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import BoolArray, FloatArray
from evenhand.errors import DataError, UsageError
from evenhand.kernels.flow.gradient_flow import QuadraticForm
from evenhand.similarity.matched_pairs import Pairs
from evenhand.similarity.metric import FairMetric, MetricRows, largest_inputs


class ComparablePairs:
    """Learn a full metric from pairs that people called comparable or not.

    Parameters
    ----------
    left, right : mapping of str to array
        The two people of each pair, as columns of the features the model takes.
    comparable : array of bool
        What was said of each pair. Both answers must occur; with "comparable" alone use `MatchedPairs`.
    l2 : float
        Penalty on the squared entries of the matrix; keeps it finite when the answers are separable.

    Examples
    --------
    >>> import numpy as np
    >>> pairs = ComparablePairs({"x": np.zeros(4)}, {"x": [0.1, 0.2, 3.0, 4.0]}, [True, True, False, False])
    >>> pairs.learned
    False
    """

    learned = False

    def __init__(
        self, left: Mapping[str, ArrayLike], right: Mapping[str, ArrayLike], comparable: ArrayLike, *, l2: float = 1e-2
    ) -> None:
        self.pairs = Pairs.of(left, right)
        self.comparable = np.asarray(comparable).astype(bool)
        self.l2 = float(l2)
        if not self.l2 > 0:
            raise UsageError(f"`l2` must be above 0; got {l2}.")
        if self.comparable.all() or not self.comparable.any():
            raise DataError(
                "All pairs have the same answer; a metric needs pairs called comparable and pairs called not "
                "comparable. With comparable pairs alone use `MatchedPairs`."
            )

    def resampled(self, rng: np.random.Generator) -> ComparablePairs:
        """Return the recipe with its pairs drawn again, for the bootstrap."""
        pairs, chosen = self.pairs.drawn(rng)
        return ComparablePairs(pairs.left, pairs.right, self.comparable[chosen], l2=self.l2)

    def fit(self, rows: MetricRows) -> FairMetric:
        """Return the metric in the coordinates of these rows."""
        gap = self.pairs.differences(rows)
        if gap.shape[0] != self.comparable.size:
            raise DataError(f"There are {gap.shape[0]} pairs and {self.comparable.size} answers.")
        S, steps = fit_comparable(gap, self.comparable, self.l2)
        values, vectors = np.linalg.eigh(S)
        return FairMetric(
            form=QuadraticForm(matrix=S),
            kind="metric learned from pairs called comparable or not",
            details={
                "pairs": int(self.comparable.size),
                "penalty": self.l2,
                "steps": steps,
                "eigenvalues": values,
                "directions": [largest_inputs(vectors[:, 0], rows.space.names)],
            },
        )


def fit_comparable(gap: FloatArray, comparable: BoolArray, l2: float) -> tuple[FloatArray, int]:
    """Maximise the penalised likelihood over positive semi-definite matrices by projected gradient.

    Parameters
    ----------
    gap : ndarray, shape (pairs, inputs)
        Differences.
    comparable : ndarray of bool, shape (pairs,)
        Answers.
    l2 : float
        Penalty, relative to the mean loss.

    Returns
    -------
    ndarray, shape (inputs, inputs), and the steps taken

    Examples
    --------
    >>> gap = np.array([[0.1, 3.0], [2.0, 0.1], [0.2, 2.0]])
    >>> S, _ = fit_comparable(gap, np.array([True, False, True]), 1e-2)
    >>> bool(S[0, 0] > 10 * S[1, 1])
    True
    """
    n, p = gap.shape

    def value(S: FloatArray) -> tuple[float, FloatArray]:
        d = np.maximum(np.einsum("ij,jk,ik->i", gap, S, gap), 1e-10)
        loss = np.where(comparable, np.logaddexp(0.0, d), -np.log(np.tanh(d / 2)))
        return float(loss.mean()) + 0.5 * l2 * float((S**2).sum()), d

    S = np.eye(p) / max(float((gap**2).sum(axis=1).mean()), 1e-12)
    best, d = value(S)
    size = 1.0
    for step in range(1, 5001):
        slope = np.where(comparable, 1.0 / (1.0 + np.exp(-np.minimum(d, 500.0))), -1.0 / np.sinh(np.minimum(d, 500.0)))
        gradient = (gap * slope[:, None]).T @ gap / n + l2 * S
        for _ in range(60):
            vals, vecs = np.linalg.eigh(S - size * gradient)
            trial = (vecs * np.maximum(vals, 0.0)) @ vecs.T
            new, d_new = value(trial)
            move = trial - S
            if new <= best + float((gradient * move).sum()) + float((move**2).sum()) / (2 * size) + 1e-15:
                break
            size /= 2
        still = float(np.linalg.norm(move)) <= 1e-8 * max(1.0, float(np.linalg.norm(S)))
        S, best, d = trial, new, d_new
        if still:
            return S, step
        size *= 1.5
    raise DataError("The metric did not converge in 5,000 steps. Standardise the columns, or raise `l2`.")
