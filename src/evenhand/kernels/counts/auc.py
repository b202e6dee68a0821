"""The area under the ROC curve of many relabelled samples at once, with what its variance is made of.

A positive row's placement is the share of the group's negative rows with a lower score, ties counted
half; a negative row's placement is the share of positive rows with a higher score. The AUC is the mean
placement, and DeLong's variance is the variance of the two kinds of placement over their numbers.

Symbols: p, q = numbers of positive and negative rows of a group (sums of weights where rows are
weighted); x, y = membership of the pooled positive and negative rows in the group; L = for each pooled
positive row, the group's negative rows below it; H = for each pooled negative row, the group's positive
rows above it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import AnyArray, BoolArray, FloatArray

# Sums of more rows than this are made in single precision, centred, with an error in the studentised
# value below 1e-3 (measured 2e-4 at 200,000 rows) and no exact ties to preserve.
SINGLE_ABOVE = 20_000
# Rows times relabellings handled at once, so that the work arrays stay in cache.
STEP_CELLS = 100_000


@dataclass(frozen=True, slots=True)
class AucParts:
    """AUC and the quadratics of its variance, each of shape (...,).

    The variance with placements centred at `c` is ``sum_s s2 - 2 c s1 + c^2 s0`` over the two sides.
    """

    auc: FloatArray  # the area; NaN where a side is empty
    # positive, negative (3, ...): the coefficients (s0, s1, s2) of each side.
    positive: FloatArray
    negative: FloatArray
    # n_positive, n_negative: rows on each side.
    n_positive: FloatArray
    n_negative: FloatArray

    def variance(self) -> FloatArray:
        """Return DeLong's variance; NaN when a side has fewer than two rows."""
        total = np.zeros_like(self.auc)
        for (s0, s1, s2), n in ((self.positive, self.n_positive), (self.negative, self.n_negative)):
            part = np.maximum(s2 - 2 * self.auc * s1 + self.auc * self.auc * s0, 0.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                total = total + np.where(n > 1, part * n / (n - 1), np.nan)
        return total


def auc_of_counts(x: AnyArray, y: AnyArray) -> AucParts:
    """Return the AUC parts of samples given as counts over sorted distinct scores.

    Parameters
    ----------
    x, y : ndarray, shape (..., D)
        Positive and negative rows at each distinct score, lowest score first.

    Returns
    -------
    AucParts
        Of shape (...,).

    Examples
    --------
    >>> parts = auc_of_counts(np.array([0, 1, 1]), np.array([1, 1, 0]))
    >>> float(parts.auc)
    0.875
    """
    x = np.asarray(x, dtype=np.float64)
    y = np.asarray(y, dtype=np.float64)
    p, q = x.sum(axis=-1), y.sum(axis=-1)
    below = np.cumsum(y, axis=-1) - y / 2  # (..., D)
    above = p[..., None] - np.cumsum(x, axis=-1) + x / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        below = below / q[..., None]
        above = above / p[..., None]
        auc = (x * below).sum(axis=-1) / p
        second = (x * below**2).sum(axis=-1) / p
        third = (y * above**2).sum(axis=-1) / q
        return AucParts(
            auc=auc,
            positive=np.stack([1 / p, auc / p, second / p]),
            negative=np.stack([1 / q, auc / q, third / q]),
            n_positive=p,
            n_negative=q,
        )


def placements(
    score: FloatArray, weight: FloatArray | None, x: FloatArray, y: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the share of negative rows, and of positive ones, below each line, ties counted half.

    Parameters
    ----------
    score, weight : ndarray, shape (D,)
        Distinct pairs, rising; None for weights that are all 1.
    x, y : ndarray, shape (D,)
        Positive and negative rows of each line.

    Examples
    --------
    >>> below, beneath = placements(np.array([1.0, 2.0]), None, np.array([1.0, 1.0]), np.array([2.0, 0.0]))
    >>> below.tolist(), beneath.tolist()
    ([0.5, 1.0], [0.25, 0.75])
    """
    if weight is None:
        shares = [np.cumsum(part) - part / 2 for part in (y, x)]
    else:
        # Lines of one score and different weights are tied.
        starts = np.flatnonzero(np.concatenate([[True], score[1:] != score[:-1]]))[: score.size]
        length = np.diff(np.append(starts, score.size))
        tied = [np.add.reduceat(weight * part, starts) if score.size else part for part in (y, x)]
        shares = [np.repeat(np.cumsum(part) - part / 2, length) for part in tied]
    totals = [part.sum() if weight is None else weight @ part for part in (y, x)]
    with np.errstate(divide="ignore", invalid="ignore"):
        below, beneath = (share / total for share, total in zip(shares, totals, strict=True))
    return below, beneath


def auc_of_lines(score: FloatArray, weight: FloatArray | None, x: FloatArray, y: FloatArray) -> AucParts:
    """Return the AUC parts of one sample given as lines; parameters as in `placements`.

    Examples
    --------
    >>> parts = auc_of_lines(np.array([1.0, 2.0, 3.0]), None, np.array([0.0, 1, 1]), np.array([1.0, 1, 0]))
    >>> float(parts.auc)
    0.875
    """
    below, beneath = placements(score, weight, x, y)
    p, q = float(x.sum()), float(y.sum())
    sides = []
    with np.errstate(divide="ignore", invalid="ignore"):
        for rows, place in ((x, below), (y, 1 - beneath)):
            once = rows if weight is None else rows * weight
            twice = once if weight is None else once * weight
            moved = twice * place
            total = np.float64(once.sum())
            mean = np.dot(once, place) / total
            sides.append((mean, np.array([twice.sum(), moved.sum(), np.dot(moved, place)]) / total**2))
        (auc, positive), (_, negative) = sides
        auc = auc if p > 0 and q > 0 else np.nan
    return AucParts(np.asarray(auc), positive, negative, np.asarray(p), np.asarray(q))


class PooledScores:
    """The pooled rows of some groups in score order, ready to be relabelled many times.

    Parameters
    ----------
    positive, negative : ndarray, shape (n_positive,), (n_negative,)
        Scores of the pooled rows of each outcome, ascending.
    weight_positive, weight_negative : ndarray, optional
        Sampling weights of those rows.

    Examples
    --------
    >>> rows = PooledScores(np.array([0.3, 0.6, 0.8]), np.array([0.1, 0.4, 0.7]))
    >>> first, second = rows.split(np.array([[True, True, False]]), np.array([[True, False, False]]))
    >>> first.auc.tolist(), second.auc.tolist()
    ([1.0], [1.0])
    """

    def __init__(
        self,
        positive: FloatArray,
        negative: FloatArray,
        weight_positive: FloatArray | None = None,
        weight_negative: FloatArray | None = None,
    ) -> None:
        self.sizes = (positive.size, negative.size)
        paired = weight_positive is not None and weight_negative is not None
        self.weights: tuple[Any, Any] | None = (weight_positive, weight_negative) if paired else None
        single = self.weights is None and sum(self.sizes) > SINGLE_ABOVE
        self.dtype: Any = np.float32 if single else np.float64
        # Where each row's score falls among the other outcome's scores; two places where there are ties.
        self._below = _places(negative, positive)
        self._above = _places(positive, negative)
        everyone = (np.ones((1, positive.size), dtype=np.bool_), np.ones((1, negative.size), dtype=np.bool_))
        low, high, p, q = self._neighbours(*everyone, _Buffers())
        self._all_below, self._all_above = low.copy(), high.copy()  # (1, n_positive), (1, n_negative)
        self._all_p, self._all_q = float(p[0]), float(q[0])
        lead = low[0].astype(np.float64)
        if weight_positive is not None:
            lead = lead * weight_positive
        total = self._all_p * self._all_q
        self.centre = float(lead.sum() / total) if total else 0.5

    def group(self, x: BoolArray, y: BoolArray) -> AucParts:
        """Return the AUC parts of one group over relabellings.

        Parameters
        ----------
        x, y : ndarray of bool, shape (b, n_positive), (b, n_negative)
            Which pooled rows are in the group.

        Returns
        -------
        AucParts
            Of shape (b,).
        """
        buffers = _Buffers()
        step = max(1, STEP_CELLS // max(1, sum(self.sizes)))
        done = []
        for i in range(0, x.shape[0], step):
            xi, yi = x[i : i + step], y[i : i + step]
            done.append(self._parts(xi, yi, *self._neighbours(xi, yi, buffers), buffers))
        return _join(done)

    def split(self, x: BoolArray, y: BoolArray) -> tuple[AucParts, AucParts]:
        """Return the AUC parts of a group and of all other rows, which come by subtraction.

        Parameters
        ----------
        x, y : ndarray of bool, shape (b, n_positive), (b, n_negative)
            Which pooled rows are in the first group.

        Returns
        -------
        tuple of two AucParts
            Of shape (b,).
        """
        buffers = _Buffers()
        step = max(1, STEP_CELLS // max(1, sum(self.sizes)))
        first, second = [], []
        for i in range(0, x.shape[0], step):
            xi, yi = x[i : i + step], y[i : i + step]
            low, high, p, q = self._neighbours(xi, yi, buffers)
            first.append(self._parts(xi, yi, low, high, p, q, buffers))
            np.subtract(self._all_below, low, out=low)
            np.subtract(self._all_above, high, out=high)
            second.append(self._parts(~xi, ~yi, low, high, self._all_p - p, self._all_q - q, buffers))
        return _join(first), _join(second)

    def _neighbours(
        self, x: BoolArray, y: BoolArray, buffers: _Buffers
    ) -> tuple[AnyArray, AnyArray, FloatArray, FloatArray]:
        """L, H, p and q of the group: two cumulative sums, looked up at the other outcome's rows."""
        cx = self._cumulative(x, 0, buffers)
        high = self._lookup(cx, self._above, "high", buffers)
        p = cx[:, -1].astype(np.float64)
        np.subtract(p.astype(self.dtype)[:, None], high, out=high)
        cy = self._cumulative(y, 1, buffers)
        low = self._lookup(cy, self._below, "low", buffers)
        return low, high, p, cy[:, -1].astype(np.float64)

    def _cumulative(self, mask: BoolArray, side: int, buffers: _Buffers) -> AnyArray:
        """Cumulative membership with a leading zero, shape (b, n + 1)."""
        b, n = mask.shape
        out = buffers("cumulative", (b, n + 1), np.int32 if self.weights is None else np.float64)
        out[:, 0] = 0
        if self.weights is None:
            np.cumsum(mask, axis=1, dtype=np.int32, out=out[:, 1:])
        else:
            np.cumsum(mask * self.weights[side], axis=1, out=out[:, 1:])
        return out

    def _lookup(
        self, cumulative: AnyArray, places: tuple[NDArray[np.intp], ...], name: str, buffers: _Buffers
    ) -> AnyArray:
        shape = (cumulative.shape[0], places[0].size)
        value = buffers("found", shape, cumulative.dtype)
        out = buffers(name, shape, self.dtype)
        cumulative.take(places[0], axis=1, out=value, mode="clip")
        out[...] = value
        if len(places) == 2:
            cumulative.take(places[1], axis=1, out=value, mode="clip")
            out += value
            out *= self.dtype(0.5)
        return out

    def _parts(
        self, x: BoolArray, y: BoolArray, low: AnyArray, high: AnyArray, p: FloatArray, q: FloatArray, buffers: _Buffers
    ) -> AucParts:
        with np.errstate(divide="ignore", invalid="ignore"):
            lead, positive = self._side(x, low, p, q, 0, buffers)
            _, negative = self._side(y, high, q, p, 1, buffers)
        return AucParts(
            auc=np.where((p > 0) & (q > 0), lead, np.nan),
            positive=positive,
            negative=negative,
            n_positive=p if self.weights is None else x.sum(axis=1).astype(np.float64),
            n_negative=q if self.weights is None else y.sum(axis=1).astype(np.float64),
        )

    def _side(
        self, member: BoolArray, count: AnyArray, own: FloatArray, other: FloatArray, side: int, buffers: _Buffers
    ) -> tuple[FloatArray, FloatArray]:
        """Mean placement and the variance coefficients of one side, sums centred at the pooled AUC."""
        c = self.centre
        dev = buffers("dev", count.shape, self.dtype)
        np.multiply(count, (1 / other).astype(self.dtype)[:, None], out=dev)
        dev -= self.dtype(c)
        inside = buffers("inside", count.shape, self.dtype)
        inside[...] = member
        if self.weights is None:
            n0, d1 = own, _dots(inside, dev)
            mean = c + d1 / own
        else:
            inside *= self.weights[side]
            mean = c + _dots(inside, dev) / own
            inside *= self.weights[side]
            n0, d1 = inside.sum(axis=1), _dots(inside, dev)
        inside *= dev
        d2 = _dots(inside, dev)
        square = own * own
        return mean, np.stack([n0 / square, (d1 + c * n0) / square, (d2 + 2 * c * d1 + c * c * n0) / square])


class _Buffers:
    """Work arrays kept from one relabelling to the next: fresh large arrays cost more than the sums."""

    def __init__(self) -> None:
        self._kept: dict[str, AnyArray] = {}

    def __call__(self, name: str, shape: tuple[int, ...], dtype: Any) -> AnyArray:
        size = int(np.prod(shape))
        kept = self._kept.get(name)
        if kept is None or kept.size < size or kept.dtype != dtype:
            kept = self._kept[name] = np.empty(size, dtype=dtype)
        return kept[:size].reshape(shape)


def _places(sorted_scores: FloatArray, scores: FloatArray) -> tuple[NDArray[np.intp], ...]:
    low = np.searchsorted(sorted_scores, scores, side="left")
    high = np.searchsorted(sorted_scores, scores, side="right")
    return (low,) if np.array_equal(low, high) else (low, high)


def _dots(a: AnyArray, b: AnyArray) -> FloatArray:
    """Dot product of each pair of lines."""
    return np.array([np.dot(u, v) for u, v in zip(a, b, strict=True)], dtype=np.float64)


def _join(parts: list[AucParts]) -> AucParts:
    return AucParts(*(np.concatenate([getattr(part, f.name) for part in parts], axis=-1) for f in fields(AucParts)))
