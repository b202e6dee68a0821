"""What a stream of batches says about two groups at any time: evidence, confidence sequence, change of late."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evenhand.arrays import BoolArray, FloatArray
from evenhand.inference.anytime.betting import Stream, log_gains
from evenhand.inference.anytime.mixture import log_capital, prior

_AT_ONCE = 6_000_000  # numbers held at once: hypotheses times batches times bets
_STEPS = 200  # hypotheses on each side of the estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How two groups are compared: by a difference of values, or by a ratio."""

    ratio: bool
    span: float = 1.0  # the width of the metric's range, by which values were divided to lie in [0, 1]

    @property
    def none(self) -> float:
        """Where the groups are alike."""
        return 1.0 if self.ratio else 0.0

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest value that can be."""
        return (0.0, math.inf) if self.ratio else (-self.span, self.span)

    def line(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return offset and slope of the hypotheses "the comparison is this value"."""
        if self.ratio:
            return np.zeros_like(values), values
        return values / self.span, np.ones_like(values)

    def shifted(self, values: FloatArray, by: float) -> FloatArray:
        """Return values that differ from these by a margin, which for ratios is a factor."""
        return values * by if self.ratio else values + by


def log_evidence(
    stream: Stream, scale: Scale, values: FloatArray, side: str, weight: FloatArray | None = None
) -> FloatArray:
    """Return the log e-process against hypotheses about the comparison of the first group with the second.

    Parameters
    ----------
    stream : Stream
        Sums of shape (batches, 2).
    scale : Scale
        Difference or ratio.
    values : ndarray, shape (hypotheses,)
        Differences or ratios.
    side : {"greater", "less"}
        "greater" speaks against "in every batch the comparison is at most this value", "less" against "at least".
    weight : ndarray, optional
        How the capital is spread over the bets at first.

    Returns
    -------
    ndarray, shape (batches, hypotheses)

    Examples
    --------
    >>> size, total = np.full((3, 2), 100.0), np.array([[60.0, 20.0]] * 3)
    >>> stream = Stream(size=size, total=total, square=total, binary=True)
    >>> log_evidence(stream, Scale(ratio=False), np.array([0.0, 0.3]), "greater").round(1)[-1].tolist()
    [45.3, 2.2]
    """
    offset, slope = scale.line(np.asarray(values, dtype=float))
    if side == "less":
        stream, offset = stream.turned(), 1 - slope - offset
    batches = stream.size.shape[-2]
    step = max(_AT_ONCE // (batches * 64), 1)
    parts = []
    for start in range(0, offset.size, step):
        at = slice(start, start + step)
        shared = Stream(
            size=stream.size[None], total=stream.total[None], square=stream.square[None], binary=stream.binary
        )
        parts.append(log_capital(log_gains(shared, offset[at], slope[at]), weight))
    return np.concatenate(parts).T


def estimates(stream: Stream, scale: Scale) -> FloatArray:
    """Return the comparison after each batch, each batch weighted as it is in the evidence.

    Parameters
    ----------
    stream : Stream
        Sums of shape (batches, 2).
    scale : Scale
        Difference or ratio.

    Returns
    -------
    ndarray, shape (batches,)
        NaN before the first batch with rows of both groups, and where a ratio has no denominator.
    """
    size, total = stream.size, stream.total
    rows = size.sum(axis=-1)
    share = np.divide(size[:, ::-1], rows[:, None], out=np.zeros_like(size), where=rows[:, None] > 0)
    first, second = np.cumsum(total * share, axis=0).T
    with np.errstate(invalid="ignore", divide="ignore"):
        if scale.ratio:
            return np.where(second > 0, first / second, math.nan)
        weight = np.cumsum(size[:, 0] * share[:, 0])
        return np.where(weight > 0, scale.span * (first - second) / weight, math.nan)


def sequence(stream: Stream, scale: Scale, alpha: float, alternative: str, among: tuple[float, ...]) -> FloatArray:
    """Return a confidence sequence: with probability 1 - alpha all its intervals hold the comparison.

    Each interval lies inside those before it. It holds one value for all batches; where the value changes the interval
    can become empty, its low end above the high one.

    Parameters
    ----------
    stream : Stream
        Sums of shape (batches, 2).
    scale : Scale
        Difference or ratio.
    alpha : float
        Error rate, halved between the ends where `alternative` is two-sided.
    alternative : {"two-sided", "greater", "less"}
        A one-sided one has one end only.
    among : tuple of float
        Values at which the ends are exact, such as no difference.

    Returns
    -------
    ndarray, shape (batches, 2)
    """
    grid = _grid(stream, scale, among)
    bar = math.log((2 if alternative == "two-sided" else 1) / alpha)
    low, high = scale.ends
    ends = np.tile([low, high], (stream.size.shape[0], 1))
    if alternative != "less":
        ends[:, 0] = _end(log_evidence(stream, scale, grid, "greater") >= bar, grid, low)
    if alternative != "greater":
        ends[:, 1] = _end(log_evidence(stream, scale, grid[::-1], "less") >= bar, grid[::-1], high)
    return ends


def _grid(stream: Stream, scale: Scale, among: tuple[float, ...]) -> FloatArray:
    """Return hypotheses that lie the closer the nearer they are to the estimate."""
    middle = estimates(stream, scale)[-1]
    far = np.geomspace(1e-4, 2.0 if not scale.ratio else 6.0, _STEPS)
    far = np.concatenate([-far[::-1], [0.0], far])
    if scale.ratio:
        values = (middle if middle > 0 else 1.0) * np.exp(far)
    else:
        values = np.clip((0.0 if math.isnan(middle) else middle) + scale.span * far, -scale.span, scale.span)
    return np.unique(np.concatenate([values, among]))


def _end(rejected: BoolArray, grid: FloatArray, none: float) -> FloatArray:
    """Return the last of the hypotheses that are all rejected, from the first on, by each batch."""
    ever = np.maximum.accumulate(rejected, axis=0)
    number = np.cumprod(ever, axis=1).sum(axis=1)
    return np.asarray(np.where(number > 0, grid[np.maximum(number - 1, 0)], none))


def log_change(stream: Stream, scale: Scale, baseline: int, margin: tuple[float, float]) -> FloatArray:
    """Return the log e-process against "the comparison has not changed since the first batches, but for a margin".

    For each value v that the comparison may have had in the baseline, the e-value of the baseline against v times the
    e-process of the later batches against "from v by no more than the margin" is an e-process; the smallest over all v
    is one against all of them. No error is set aside for the uncertainty of the baseline: it is in the product.

    Parameters
    ----------
    stream : Stream
        Sums of shape (batches, 2).
    scale : Scale
        Difference or ratio.
    baseline : int
        How many batches are the baseline.
    margin : tuple of float
        Ends of the change that is negligible: (0, 0) or (1, 1) for none.

    Returns
    -------
    ndarray, shape (batches - baseline,)
    """
    before, after = stream.part(slice(0, baseline)), stream.part(slice(baseline, None))
    known = np.array([estimates(part, scale)[-1] for part in (before, after)])
    between = np.linspace(known[0], known[1], _STEPS) if np.isfinite(known).all() else np.zeros(0)
    grid = np.unique(np.concatenate([_grid(before, scale, ())[::4], _grid(after, scale, ())[::4], between]))
    # The size of the baseline is known, and so is the size of bet that is best against what it can tell apart.
    rows = before.size.sum(axis=-1)
    pairs = float(np.divide(before.size.prod(axis=-1), rows, out=np.zeros_like(rows), where=rows > 0).sum())
    weight = prior(float(np.clip(2.5 / math.sqrt(0.15 * pairs + 1), 0.005, 2.0)), 0.3)
    up = log_evidence(before, scale, grid, "greater", weight)[-1:]
    down = log_evidence(before, scale, grid, "less", weight)[-1:]
    later_up = log_evidence(after, scale, scale.shifted(grid, margin[1]), "greater")
    later_down = log_evidence(after, scale, scale.shifted(grid, margin[0]), "less")
    return np.asarray((_least(up, down) + _least(later_up, later_down)).min(axis=1))


def _least(up: FloatArray, down: FloatArray) -> FloatArray:
    """Return the least two-sided log evidence between neighbouring hypotheses: one side falls with them, one rises."""
    falling = np.minimum.accumulate(up, axis=1)
    rising = np.minimum.accumulate(down[:, ::-1], axis=1)[:, ::-1]
    return np.logaddexp(falling[:, 1:], rising[:, :-1]) - math.log(2)
