"""AUCs compared within strata: only rows of one stratum are held against each other.

In a stratum a group's AUC is the share of its pairs of a positive and a negative row that are in the right order. Its
size n in the weights is p q / (p + q), p and q the numbers of positive and negative rows: that is what the variance of
an AUC goes by. A group takes part in the strata where it has rows of both outcomes. Its variance is DeLong's with one
row's worth of the largest possible mixed in (`evenhand.inference.auc_logit`), so that a small stratum without a pair in
the wrong order does not seem to be known exactly. Permutations move rows within stratum and outcome.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import BoolArray, FloatArray, IntArray
from evenhand.inference.auc_logit import regularised
from evenhand.inference.reference import Drawn
from evenhand.inference.resampling import dealt_masks, drawn
from evenhand.inference.samples import Draws, coded_rows
from evenhand.inference.strata.values import MOST_PERMUTED, Cells, StratifiedValues, studentised
from evenhand.kernels.counts.auc import AucParts, PooledScores
from evenhand.kernels.counts.deals import block_size

# Rows of the rarer outcome, over all strata, from which the t law alone is used.
_ENOUGH = 500.0


class StratifiedAucs(StratifiedValues):
    """K samples of scores with a 0/1 outcome, compared by their AUCs within strata.

    Parameters
    ----------
    score, outcome : array_like, shape (R,)
        Score and outcome of each record.
    codes, strata, shape, count, weight, empty_reason
        As in `StratifiedMeans`.

    Examples
    --------
    >>> samples = StratifiedAucs(score=[1, 2, 3, 4, 1, 2, 2, 3], outcome=[0, 1, 0, 1, 0, 0, 1, 1],
    ...                          codes=[0, 0, 0, 0, 1, 1, 1, 1], strata=[0] * 8, shape=(2, 1))
    >>> samples.difference(0, 1)
    -0.125
    """

    def __init__(
        self,
        *,
        score: ArrayLike,
        outcome: ArrayLike,
        codes: ArrayLike,
        strata: ArrayLike,
        shape: tuple[int, int],
        count: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        empty_reason: str = "",
    ) -> None:
        v, s = np.asarray(score, dtype=np.float64), np.asarray(strata, dtype=np.int64)
        y = np.asarray(outcome).astype(np.bool_)
        g, c, w, keep = coded_rows(codes, shape[0], count, weight)
        v, s, y, g, c, w = v[keep], s[keep], y[keep], g[keep], c[keep], w[keep]
        order = np.lexsort((w, v, s))  # a fixed order: that of the records cannot change a result
        self._records = (v[order], y[order], w[order], s[order], g[order], c[order])
        self._weighted = weight is not None
        cell = (g * shape[1] + s) * 2 + y
        self._sizes = np.bincount(cell, weights=c, minlength=2 * shape[0] * shape[1]).reshape(*shape, 2)
        lacks = [" or ".join(str(k) for k in (1, 0) if not rows[k]) for rows in self._sizes.sum(1)]
        reason = tuple((empty_reason or f"has no rows with outcome {which}") if which else "" for which in lacks)
        counts: tuple[dict[str, float], ...] = tuple(
            {"rows": int(rows.sum()), "positives": int(rows[1]), "negatives": int(rows[0])}
            for rows in self._sizes.sum(1)
        )
        reason = tuple(
            why or ("" if (rows > 0).all(1).any() else "has no stratum with rows of both outcomes")
            for why, rows in zip(reason, self._sizes, strict=True)
        )
        parts = _areas(v[order], y[order], w[order], c[order], (g * shape[1] + s)[order], shape[0] * shape[1])
        whole = _cells(parts)
        cells = Cells(*(part.reshape(shape) for part in (whole.value, whole.variance, whole.size, whole.freedom)))
        super().__init__(cells, reason=reason, counts=counts)

    def _rows(self) -> FloatArray:
        return np.asarray(self._sizes.sum(-1))

    def _interval(self, a: int, b: int, level: float, ratio: bool, draws: Draws) -> tuple[float, float, str]:
        low, high, kind = super()._interval(a, b, level, ratio, draws)
        return (low, high, kind) if ratio else (max(low, -1.0), min(high, 1.0), kind)

    def _null(self, a: int, b: int, draws: Draws) -> Drawn | None:
        pair = self.pair(a, b)
        sizes = self._sizes[[a, b]][:, pair.strata]  # (2, S, 2 outcomes)
        rarer = float(sizes.sum(1).min())
        if draws.method == "auto" and (sizes.sum() > MOST_PERMUTED or rarer >= _ENOUGH):
            return None
        small = int(tuple(sizes[1].ravel()) < tuple(sizes[0].ravel()))
        dealt = sizes[[small, 1 - small]].astype(np.int64)
        pools = self._pools(a, b, pair.strata)

        def work(rng: np.random.Generator, b: int) -> FloatArray:
            first, second = [], []
            for k, pool in enumerate(pools):
                masks = [dealt_masks(rng, dealt[:, k, side].tolist(), b)[0] for side in (1, 0)]
                one, two = pool.split(masks[0], masks[1])
                first.append(_cells(one))
                second.append(_cells(two))
            return (-1.0 if small else 1.0) * studentised(_joined(first), _joined(second))

        cost = 4 * int(sizes.sum()) + 200 * len(pools)
        return drawn(work, draws, cost, block_size(cost), "strata")

    def _pools(self, a: int, b: int, strata: IntArray) -> list[PooledScores]:
        """Return both samples' rows of each stratum, ready to be relabelled."""
        v, y, w, s, g, c = self._records
        mine = (g == a) | (g == b)
        pools = []
        for stratum in strata.tolist():
            start, stop = np.searchsorted(s, [stratum, stratum + 1])
            part = slice(start, stop)
            sides = [mine[part] & (y[part] == side) for side in (True, False)]
            scores = [np.repeat(v[part][side], c[part][side]) for side in sides]
            weights = [np.repeat(w[part][side], c[part][side]) for side in sides] if self._weighted else []
            pools.append(PooledScores(*scores, *weights))
        return pools

    def _warning(self, a: int, b: int, null: Drawn | None) -> tuple[str, ...]:
        return ()


def _cells(parts: AucParts) -> Cells:
    """Return AUCs, their variances, sizes and degrees of freedom; NaN where an outcome is missing."""
    known = (parts.n_positive > 0) & (parts.n_negative > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        _, variance = regularised(parts)
        size = 1 / (parts.positive[0] + parts.negative[0])
    rarer = np.minimum(parts.n_positive, parts.n_negative)
    return Cells(
        np.where(known, parts.auc, np.nan),
        np.where(known, variance, np.nan),
        np.where(known, size, 0.0),
        np.maximum(rarer - 1, 0.5),
    )


def _joined(cells: list[Cells]) -> Cells:
    return Cells(
        *(np.stack([getattr(c, name) for c in cells], -1) for name in ("value", "variance", "size", "freedom"))
    )


def _areas(v: FloatArray, y: BoolArray, w: FloatArray, c: IntArray, cell: IntArray, n_cells: int) -> AucParts:
    """Return the AUC parts of every cell at once, from records in the order of their scores within strata."""
    order = np.lexsort((v, cell))
    v, y, w, c, cell = v[order], y[order], w[order], c[order], cell[order]
    new = np.ones(v.size, dtype=np.bool_)
    new[1:] = (cell[1:] != cell[:-1]) | (v[1:] != v[:-1])
    line = np.cumsum(new) - 1
    at, lines = cell[new], int(new.sum())  # the cell of each distinct score

    def summed(amount: FloatArray, mask: BoolArray) -> FloatArray:
        return np.bincount(line, weights=np.where(mask, amount, 0.0), minlength=lines).astype(float)

    def by_cell(amount: FloatArray) -> FloatArray:
        return np.bincount(at, weights=amount, minlength=n_cells).astype(float)

    x, z = summed(c * w, y), summed(c * w, ~y)
    xx, zz = summed(c * w * w, y), summed(c * w * w, ~y)
    p, q = by_cell(x), by_cell(z)
    before = np.concatenate([[0.0], np.cumsum(q)[:-1]])  # negatives in earlier cells
    earlier = np.concatenate([[0.0], np.cumsum(p)[:-1]])
    with np.errstate(divide="ignore", invalid="ignore"):
        below = (np.cumsum(z) - z / 2 - before[at]) / q[at]
        above = (p[at] - (np.cumsum(x) - x / 2 - earlier[at])) / p[at]
        below, above = np.nan_to_num(below), np.nan_to_num(above)
        auc = by_cell(x * below) / p
        sides = [
            np.stack([by_cell(square * place**k) / total**2 for k in range(3)])
            for square, place, total in ((xx, below, p), (zz, above, q))
        ]
    rows = [np.bincount(cell, weights=c * mask, minlength=n_cells).astype(float) for mask in (y, ~y)]
    return AucParts(np.where((p > 0) & (q > 0), auc, np.nan), sides[0], sides[1], rows[0], rows[1])
