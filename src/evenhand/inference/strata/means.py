"""Means of a value compared within strata: scores, errors, weighted rates."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import FloatArray, IntArray
from evenhand.inference.means import CALM_KURTOSIS, CALM_SKEWNESS
from evenhand.inference.reference import Drawn
from evenhand.inference.resampling import drawn
from evenhand.inference.samples import Draws, coded_rows
from evenhand.inference.strata.values import MOST_PERMUTED, Cells, StratifiedValues, studentised
from evenhand.kernels.counts import row_sums
from evenhand.kernels.counts.deals import block_size


class StratifiedMeans(StratifiedValues):
    """K samples of a value, compared by their means within strata.

    Parameters
    ----------
    value : array_like, shape (R,)
        Value of each record.
    codes, strata : array_like of int, shape (R,)
        Sample and stratum of each record.
    shape : tuple of int
        Number of samples and of strata.
    count, weight : array_like, shape (R,), optional
        Rows each record stands for, and their sampling weight; 1 by default.
    empty_reason : str
        Why a sample without rows has no value.

    Examples
    --------
    >>> samples = StratifiedMeans(value=[1, 2, 3, 6, 7, 9], codes=[0, 0, 1, 0, 1, 1], strata=[0, 0, 0, 1, 1, 1],
    ...                           shape=(2, 2))
    >>> samples.difference(0, 1)  # 1.5 - 3 and 6 - 8, with the weights 2/3 and 2/3
    -1.75
    """

    def __init__(
        self,
        *,
        value: ArrayLike,
        codes: ArrayLike,
        strata: ArrayLike,
        shape: tuple[int, int],
        count: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        empty_reason: str = "has no rows",
    ) -> None:
        v, s = np.asarray(value, dtype=np.float64), np.asarray(strata, dtype=np.int64)
        g, c, w, keep = coded_rows(codes, shape[0], count, weight)
        v, s, g, c, w = v[keep], s[keep], g[keep], c[keep], w[keep]
        # A fixed order: that of the records cannot change a result.
        order = np.lexsort((w, v, s))
        self._records = (v[order], w[order], s[order], g[order], c[order])
        centre = np.bincount(s, weights=c * w * v, minlength=shape[1])
        mass = np.bincount(s, weights=c * w, minlength=shape[1])
        middle = centre / np.where(mass > 0, mass, 1.0)  # (S,): sums of squares keep their digits
        lines = row_sums.features(v - middle[s], w, 0.0) * c[:, None]
        cell = g * shape[1] + s
        parts = [np.bincount(cell, weights=line, minlength=shape[0] * shape[1]) for line in lines.T]
        sums = np.stack(parts, -1).astype(np.float64).reshape(*shape, 6)
        self._summarise(sums, middle, weight is not None, empty_reason)

    @classmethod
    def from_moments(cls, sums: Mapping[str, ArrayLike], *, empty_reason: str = "has no rows") -> StratifiedMeans:
        """Make samples from sums over rows that stayed on an engine; only the t law is possible.

        Parameters
        ----------
        sums : mapping of str to array_like, shape (K, S)
            ``n``, ``w``, ``ww``, ``wv``, ``wwv``, ``wwvv``: rows and sums of w, w^2, w v, w^2 v, w^2 v^2.
        empty_reason : str
            Why a sample without rows has no value.

        Examples
        --------
        >>> n, v = [[2, 2], [2, 2]], [[3, 4], [5, 8]]
        >>> sums = {"n": n, "w": n, "ww": n, "wv": v, "wwv": v, "wwvv": [[5, 10], [13, 34]]}
        >>> StratifiedMeans.from_moments(sums).difference(0, 1)
        -1.5
        """
        names = ("n", "w", "ww", "wv", "wwv", "wwvv")
        whole = np.stack([np.asarray(sums[name], dtype=np.float64) for name in names], -1)
        new = cls(value=[], codes=[], strata=[], shape=(whole.shape[0], whole.shape[1]))
        weighted = not np.array_equal(whole[..., 0], whole[..., 2])
        new._summarise(whole, np.zeros(whole.shape[1]), weighted, empty_reason)
        return new

    def _summarise(self, sums: FloatArray, middle: FloatArray, weighted: bool, empty_reason: str) -> None:
        """Keep the sums (K, S, 6) around each stratum's middle and what they say."""
        self._sums, self._weighted = sums, weighted
        total = sums.sum(1)
        reason = tuple("" if n > 0 else empty_reason for n in total[:, 0])
        worth = [{"effective_rows": float(t[1] ** 2 / t[2]) if t[2] > 0 else 0.0} if weighted else {} for t in total]
        counts = tuple({"rows": int(t[0]), **more} for t, more in zip(total, worth, strict=True))
        around = _cells(sums)
        cells = Cells(around.value + middle, around.variance, around.size, around.freedom)
        super().__init__(cells, reason=reason, counts=counts)

    def _rows(self) -> FloatArray:
        return np.asarray(self._sums[..., 0])

    def _known(self) -> bool:
        return bool(self._records[0].size)

    def _pooled(self, a: int, b: int) -> tuple[FloatArray, FloatArray, IntArray, IntArray]:
        """Return values around their stratum's mean, weights, strata and rows of the two samples where both are."""
        v, w, s, g, c = self._records
        strata = self.pair(a, b).strata
        place = np.full(self._sums.shape[1], -1)
        place[strata] = np.arange(strata.size)
        keep = ((g == a) | (g == b)) & (place[s] >= 0)
        v, w, c, at = v[keep], w[keep], c[keep], place[s[keep]]
        mass = np.bincount(at, weights=c * w, minlength=strata.size)
        return v - (np.bincount(at, weights=c * w * v, minlength=strata.size) / mass)[at], w, at, c

    def _is_calm(self, a: int, b: int) -> bool:
        """Whether all rows together are so little skewed, for the smaller sample, that the t law is enough."""
        v, w, _, c = self._pooled(a, b)
        residual = w * v
        m2, m3, m4 = (float(c @ residual**k / c.sum()) for k in (2, 3, 4))
        smallest = float(self._rows()[[a, b]][:, self.pair(a, b).strata].sum(1).min())
        if m2 <= 0 or self._freedom(a, b) < 50:
            return False
        return abs(m3) / m2**1.5 / smallest**0.5 <= CALM_SKEWNESS and m4 / m2**2 / smallest <= CALM_KURTOSIS

    def _null(self, a: int, b: int, draws: Draws) -> Drawn | None:
        if not self._known():
            return None
        n = self._rows()[[a, b]][:, self.pair(a, b).strata]
        if draws.method == "auto" and (n.sum() > MOST_PERMUTED or self._is_calm(a, b)):
            return None
        small = int(tuple(n[1]) < tuple(n[0]))  # the sample that is dealt first, whatever the two are called
        v, w, at, c = self._pooled(a, b)
        rows = np.ascontiguousarray(np.repeat(row_sums.features(v, w, 0.0), c, axis=0).T)  # (6, rows)
        at = np.repeat(at, c)
        sizes = n[[small, 1 - small]].T.astype(np.int64)  # (S, 2): the strata's rows are dealt in this order
        starts = np.concatenate([[0], np.cumsum(sizes.ravel())[:-1]])

        def work(rng: np.random.Generator, b: int) -> FloatArray:
            order = np.argsort(at + rng.random((b, at.size)), axis=1)
            sums = np.stack([np.add.reduceat(line[order], starts, axis=1) for line in rows], -1)  # (b, 2 S, 6)
            return (-1.0 if small else 1.0) * studentised(_cells(sums[:, ::2]), _cells(sums[:, 1::2]))

        return drawn(work, draws, 2 * at.size, block_size(8 * at.size), "strata")

    def _warning(self, a: int, b: int, null: Drawn | None) -> tuple[str, ...]:
        rows = self._rows()[[a, b]][:, self.pair(a, b).strata].sum(1).min()
        if not self._known():
            if rows < 1000:
                return ("Only sums were available, so the t limit was used on a group of fewer than 1000 rows.",)
            return ()
        if null is None and not self._is_calm(a, b):
            return ("The values are skewed for so few rows of one group, so the t law may be off far out.",)
        return ()


def _cells(sums: FloatArray) -> Cells:
    """Return means and their variances of sums (..., S, 6)."""
    rows = sums[..., 0]
    return Cells(row_sums.mean(sums), row_sums.variance(sums), sums[..., 1], np.maximum(rows - 1, 0.0))
