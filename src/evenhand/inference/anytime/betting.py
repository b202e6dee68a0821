"""The evidence of one batch against "the difference is at most so much": bets on all rows of two groups.

Values lie in [0, 1]; a rate is the mean of 0 and 1. In one batch group A has n_A rows with means a_i, group B has n_B
rows with means b_i, independent given the past; a and b are the averages of these means. The hypothesis is a line, with
everything on one side of it:

    a - slope b <= offset        (slope 1: a difference; offset 0: a ratio)

Each row multiplies the capital by 1 + c_A (X - center_A) in group A and by 1 - c_B (X - center_B) in group B, where
center_A - slope center_B = offset and n_A c_A = n_B c_B / slope = k > 0. The numbers c and the centers are fixed before
the batch is seen; only the sizes n_A and n_B may be known. The capital is an e-value: its expectation is

    prod_i (1 + c_A (a_i - center_A)) prod_i (1 - c_B (b_i - center_B))
        <= exp(n_A c_A (a - center_A) - n_B c_B (b - center_B)) = exp(k ((a - slope b) - offset)) <= 1

because 1 + u <= exp(u), as long as no factor can be negative. Nothing else is assumed: rates may drift from batch to
batch, rows need not be alike, the groups may have any sizes. With Bernoulli rows and the best c this is the likelihood
ratio of [turner2021] against the closest point of the hypothesis.

Symbols
    effect      D    (bets,)    the size of the bet: about the difference in log odds that it is best against
    log_gain    log E  (..., batches, bets)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.arrays import FloatArray

# A bet loses at most this share of its capital with one row.
_STAKE = 0.9
# The first batch has no past to learn the center from: the capital is shared over these.
_CENTERS = np.array([0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98])
_PRIOR_ROWS = 2.0  # rows at 1/2 that the center is drawn to

EFFECTS: FloatArray = np.geomspace(0.002, 4.0, 28)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stream:
    """Sums of a value in [0, 1] by batch and group, each of shape (..., batches, 2); the compared group comes first."""

    size: FloatArray  # rows
    total: FloatArray  # sum of the values
    square: FloatArray  # sum of their squares; that of a rate is `total`
    binary: bool  # whether every value is 0 or 1

    def part(self, batches: slice) -> Stream:
        """Return some of the batches."""
        size, total, square = (a[..., batches, :] for a in (self.size, self.total, self.square))
        return Stream(size=size, total=total, square=square, binary=self.binary)

    def turned(self) -> Stream:
        """Return the stream of 1 minus the value: what was larger is smaller."""
        square = self.size - 2 * self.total + self.square
        return Stream(size=self.size, total=self.size - self.total, square=square, binary=self.binary)


def log_gains(stream: Stream, offset: FloatArray, slope: FloatArray, effects: FloatArray = EFFECTS) -> FloatArray:
    """Return the log e-value of each batch and bet against "a - slope b <= offset".

    Parameters
    ----------
    stream : Stream
        Sums of shape (..., batches, 2).
    offset, slope : ndarray
        The hypotheses, with a shape that fits the leading axes of the stream.
    effects : ndarray, shape (bets,)
        Sizes of bets, above 0.

    Returns
    -------
    ndarray, shape (..., batches, bets)
        0 for a batch in which one of the groups has no rows.

    Examples
    --------
    >>> two = np.array([[10.0, 10.0]])
    >>> stream = Stream(size=two, total=np.array([[9.0, 1.0]]), square=np.array([[9.0, 1.0]]), binary=True)
    >>> bool(log_gains(stream, np.array(0.0), np.array(1.0)).max() > 3)
    True
    """
    o, r = np.asarray(offset, dtype=float)[..., None, None], np.asarray(slope, dtype=float)[..., None, None]
    size = stream.size.sum(axis=-1)
    before = np.cumsum(size, axis=-1) - size
    earned = np.cumsum(stream.total.sum(axis=-1), axis=-1) - stream.total.sum(axis=-1)
    middle = (earned + 0.5 * _PRIOR_ROWS) / (before + _PRIOR_ROWS)
    gains = _gains(stream, middle[..., None], o, r, effects)
    first = _gains(stream.part(slice(0, 1)), _CENTERS[:, None, None], *_spread(o, r), effects, spread=True)
    top = first.max(axis=-3)
    gains[..., :1, :] = top + np.log(np.exp(first - top[..., None, :, :]).mean(axis=-3))
    return gains


def _spread(o: FloatArray, r: FloatArray) -> tuple[FloatArray, FloatArray]:
    return o[..., None, :, :], r[..., None, :, :]


def _gains(
    stream: Stream, middle: FloatArray, o: FloatArray, r: FloatArray, effects: FloatArray, *, spread: bool = False
) -> FloatArray:
    """Return log e-values where the mean over both groups is guessed to be `middle`."""
    sums = (stream.size, stream.total, stream.square)
    size, total, square = (a[..., None, :, None, :] if spread else a[..., :, None, :] for a in sums)
    size_a, size_b = size[..., 0], size[..., 1]  # (..., batches, 1)
    rows = size_a + size_b
    usable = (size_a > 0) & (size_b > 0)
    rows = np.where(usable, rows, 2.0)
    share_a, share_b = np.where(usable, size_a, 1.0) / rows, np.where(usable, size_b, 1.0) / rows
    center_b = (middle - share_a * o) / (share_a * r + share_b)
    center_a = r * center_b + o
    with np.errstate(divide="ignore"):
        most_a = np.where(center_a > 0, _STAKE / (share_b * np.maximum(center_a, 1e-300)), np.inf)
        most_b = np.where(center_b < 1, _STAKE / (r * share_a * np.maximum(1 - center_b, 1e-300)), np.inf)
    bet = np.minimum(effects, np.minimum(most_a, most_b))
    c_a, c_b = bet * share_b, bet * r * share_a
    log = _log_binary if stream.binary else _log_bounded
    # Group B is bet on with 1 - X, so that both bets are on large values.
    gain = log(c_a, center_a, size_a, total[..., 0], square[..., 0])
    gain = gain + log(c_b, 1 - center_b, size_b, size_b - total[..., 1], size_b - 2 * total[..., 1] + square[..., 1])
    return np.where(usable, gain, 0.0)


def _log_binary(c: FloatArray, center: FloatArray, n: FloatArray, total: FloatArray, square: FloatArray) -> FloatArray:
    """Return sum log(1 + c (X - center)) over values that are 0 or 1."""
    return np.asarray(total * np.log1p(c * (1 - center)) + (n - total) * np.log1p(-c * center))


def _log_bounded(c: FloatArray, center: FloatArray, n: FloatArray, total: FloatArray, square: FloatArray) -> FloatArray:
    """Return a number that sum log(1 + c (X - center)) is never below, from sums.

    For u >= -1 and 0 <= s < 1, log(1 + s u) >= s u + u² (log(1 - s) + s) [fan2015]; u is (X - center) / reach.
    """
    reach = np.maximum(center, 1e-9)  # X - center >= -reach, as X >= 0
    s = np.minimum(c * reach, _STAKE)
    around = square - 2 * center * total + n * center**2
    return np.asarray(s * (total - n * center) / reach + np.maximum(around, 0.0) / reach**2 * (np.log1p(-s) + s))
