"""A metric from matched pairs: people who differ only in what should not matter show the directions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import AnyArray, FloatArray, IntArray
from evenhand.errors import DataError, UsageError
from evenhand.kernels.flow.gradient_flow import QuadraticForm
from evenhand.similarity.metric import FairMetric, MetricRows, largest_inputs


class MatchedPairs:
    """Leading directions of the differences between matched people (singular value decomposition).

    Parameters
    ----------
    left, right : mapping of str to array
        The two people of each pair, as columns of the features the model takes; row i of one belongs to row i of the
        other.
    components : int, optional
        How many directions.
    share : float
        Without `components`: as many as it takes to explain this share of the squared differences.

    Examples
    --------
    >>> pairs = MatchedPairs({"x": [0.0, 1.0], "z": [5.0, 5.0]}, {"x": [2.0, 3.0], "z": [5.0, 5.1]})
    >>> pairs.learned
    False
    """

    # The pairs are the user's own and not among the audited rows.
    learned = False

    def __init__(
        self,
        left: Mapping[str, ArrayLike],
        right: Mapping[str, ArrayLike],
        *,
        components: int | None = None,
        share: float = 0.9,
    ) -> None:
        self.pairs = Pairs.of(left, right)
        if list(left) != list(right):
            raise UsageError("`left` and `right` must have the same columns in the same order.")
        if (components is not None and components < 1) or not 0 < share <= 1:
            raise UsageError("`components` must be at least 1 and `share` lie between 0 and 1.")
        self.components, self.share = components, share

    def resampled(self, rng: np.random.Generator) -> MatchedPairs:
        """Return the recipe with its pairs drawn again, for the bootstrap."""
        pairs, _ = self.pairs.drawn(rng)
        return MatchedPairs(pairs.left, pairs.right, components=self.components, share=self.share)

    def fit(self, rows: MetricRows) -> FairMetric:
        """Return the metric in the coordinates of these rows."""
        gap = self.pairs.differences(rows)
        _, s, vt = np.linalg.svd(gap, full_matrices=False)
        if s.size == 0 or s[0] <= 1e-12:
            raise DataError("The matched pairs do not differ in any input of the model; no direction can be learned.")
        explained = np.cumsum(s**2) / np.sum(s**2)
        k = int(np.searchsorted(explained, self.share - 1e-12)) + 1 if self.components is None else self.components
        k = min(k, int((s > 1e-10 * s[0]).sum()))
        basis = np.ascontiguousarray(vt[:k].T)
        details: dict[str, Any] = {
            "pairs": len(gap),
            "rank": k,
            "explained": float(explained[k - 1]),
            "directions": [largest_inputs(v, rows.space.names) for v in basis.T],
        }
        return FairMetric(form=QuadraticForm(basis=basis), kind="directions of matched pairs", details=details)


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Two people each, as columns of the features the model takes."""

    left: Mapping[str, AnyArray]
    right: Mapping[str, AnyArray]

    @classmethod
    def of(cls, left: Mapping[str, ArrayLike], right: Mapping[str, ArrayLike]) -> Pairs:
        """Take both sides as arrays."""
        return cls(*({k: np.asarray(v) for k, v in side.items()} for side in (left, right)))

    def drawn(self, rng: np.random.Generator) -> tuple[Pairs, IntArray]:
        """Return as many pairs as there are, drawn with replacement, and which they are."""
        pairs = len(next(iter(self.left.values()), ()))
        chosen = rng.integers(pairs, size=pairs)
        return Pairs(*({k: v[chosen] for k, v in side.items()} for side in (self.left, self.right))), chosen

    def differences(self, rows: MetricRows) -> FloatArray:
        """Return right minus left in the coordinates people are moved in, shape (pairs, inputs)."""
        a, b = rows.space.encode(self.left), rows.space.encode(self.right)
        if a.shape != b.shape or a.shape[0] == 0:
            raise DataError(f"`left` has {a.shape[0]} people and `right` {b.shape[0]}; each pair needs both.")
        return b - a
