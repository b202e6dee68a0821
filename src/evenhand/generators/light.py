"""Two samplers on numpy alone: a Gaussian copula (the default) and columns drawn independently (a baseline)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from evenhand.arrays import FloatArray
from evenhand.generators.columns import ColumnKind, Columns, describe
from evenhand.kernels.shared.seeds import stream


class LightSampler:
    """Draw rows whose columns have the observed margins and rank correlations.

    Each column becomes normal scores (a category takes the scores of its share of the line), the scores' correlation
    is shrunk a little towards none, and rows are drawn from the normal law with that correlation. Numbers lie inside
    the observed range.

    Parameters
    ----------
    seed : int
        Same seed, same rows.

    Examples
    --------
    >>> columns = {"x": np.arange(100.0), "y": np.arange(100.0) ** 2}
    >>> made = LightSampler(seed=1).fit(columns).sample(500)
    >>> bool(np.corrcoef(made["x"], made["y"])[0, 1] > 0.9)
    True
    """

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed
        self._kinds: tuple[ColumnKind, ...] = ()
        self._margins: list[FloatArray] = []
        self._root: FloatArray = np.empty((0, 0))
        self._block = 0

    def fit(self, columns: Columns) -> LightSampler:
        """Learn margins and correlations from a table."""
        rng = stream(self.seed, "generator/light/fit")
        self._kinds = describe(columns)
        self._margins, scores = [], []
        for kind in self._kinds:
            values = columns[kind.name]
            numbers = np.asarray(values, dtype=float) if kind.categories is None else kind.codes(values).astype(float)
            n = numbers.size
            # Ties in random order: a category fills its share of the line evenly.
            order = np.lexsort((rng.random(n), numbers))
            rank = np.empty(n)
            rank[order] = np.arange(n) + 0.5
            scores.append(special.ndtri(rank / n))
            self._margins.append(np.sort(numbers))
        matrix = np.array(scores)  # (columns, rows)
        correlation = np.atleast_2d(np.corrcoef(matrix))
        d, n = matrix.shape
        shrink = d / (n + d)
        correlation = (1 - shrink) * correlation + shrink * np.eye(d)
        self._root = np.linalg.cholesky(correlation + 1e-9 * np.eye(d))
        self._block = 0
        return self

    def sample(self, n: int) -> dict[str, NDArray[Any]]:
        """Draw n rows; each call goes on where the last one stopped."""
        rng = stream(self.seed, "generator/light/sample", self._block)
        self._block += 1
        share = special.ndtr(rng.standard_normal((n, len(self._kinds))) @ self._root.T)
        return {
            kind.name: kind.restore(_inverse(margin, share[:, j], step=kind.categories is not None))
            for j, (kind, margin) in enumerate(zip(self._kinds, self._margins, strict=True))
        }


def _inverse(margin: FloatArray, share: FloatArray, *, step: bool) -> FloatArray:
    if step:
        return np.asarray(margin[np.minimum((share * margin.size).astype(np.int64), margin.size - 1)])
    return np.asarray(np.interp(share, (np.arange(margin.size) + 0.5) / margin.size, margin))


class IndependentSampler:
    """Draw each column on its own, evenly over its domain: the baseline no audit should use.

    Parameters
    ----------
    seed : int
        Same seed, same rows.

    Examples
    --------
    >>> made = IndependentSampler(seed=1).fit({"x": np.arange(100.0)}).sample(10)
    >>> made["x"].shape
    (10,)
    """

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed
        self._kinds: tuple[ColumnKind, ...] = ()
        self._block = 0

    def fit(self, columns: Columns) -> IndependentSampler:
        """Learn each column's domain."""
        self._kinds, self._block = describe(columns), 0
        return self

    def sample(self, n: int) -> dict[str, NDArray[Any]]:
        """Draw n rows."""
        rng = stream(self.seed, "generator/independent/sample", self._block)
        self._block += 1
        made = {}
        for kind in self._kinds:
            if kind.categories is None:
                made[kind.name] = kind.restore(rng.uniform(kind.low, kind.high, n))
            else:
                made[kind.name] = kind.restore(np.minimum(rng.uniform(0.0, kind.size, n), kind.size - 1e-9))
        return made
