"""Losses of a model's output, in log space so that tiny ones keep their ratios, with slopes for gradients.

Each loss has three faces: `log_value` (log of the loss), `slope` (its derivative by the outputs) and
`wrong` (the 0-1 loss). Outcomes are class numbers 0..k-1, or numbers for regression.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from evenhand.arrays import FloatArray


def log_softplus(s: FloatArray) -> FloatArray:
    """Return log(log(1 + exp(s))) without losing digits for very negative s.

    Examples
    --------
    >>> log_softplus(np.array([-800.0, 0.0])).round(6).tolist()
    [-800.0, -0.366513]
    """
    small = s < -30.0
    safe = np.where(small, 0.0, s)
    with np.errstate(invalid="ignore"):  # NaN stays NaN, without a warning
        # log1p(e) = e - e²/2 + ..., so its log is s - e/2 to within rounding here.
        return np.where(small, s - 0.5 * np.exp(np.minimum(s, -30.0)), np.log(np.logaddexp(0.0, safe)))


def _expit(s: FloatArray) -> FloatArray:
    """Return 1 / (1 + exp(-s)); scipy's takes the exponential of one number at a time, three times as long."""
    out: FloatArray = np.exp(np.minimum(-s, 700.0))
    out += 1.0
    np.reciprocal(out, out=out)
    return out


@dataclass(frozen=True, slots=True)
class LogitLoss:
    """Cross-entropy of log-odds: one output column for two classes, or one per class.

    Examples
    --------
    >>> loss = LogitLoss()
    >>> np.exp(loss.log_value(np.array([[0.0]]), np.array([1.0]))).round(4).tolist()
    [0.6931]
    """

    name = "log"

    def log_value(self, outputs: FloatArray, y: FloatArray) -> FloatArray:
        """Return log of -log p(y), one value per row."""
        if outputs.shape[1] == 1:
            return log_softplus(np.where(y == 1, -outputs[:, 0], outputs[:, 0]))
        if outputs.shape[1] == 2:
            gap = outputs[:, 1] - outputs[:, 0]
            return log_softplus(np.where(y == 1, -gap, gap))
        k = y.astype(np.intp)
        own = np.take_along_axis(outputs, k[:, None], axis=1)
        rest = outputs - own
        np.put_along_axis(rest, k[:, None], -np.inf, axis=1)
        return log_softplus(special.logsumexp(rest, axis=1))

    def slope(self, outputs: FloatArray, y: FloatArray) -> FloatArray:
        """Return the derivative by each output, shape of `outputs`."""
        if outputs.shape[1] == 1:
            out: FloatArray = _expit(outputs)
            out[:, 0] -= y
            return out
        if outputs.shape[1] == 2:  # two classes: one number with two signs, much cheaper than a softmax
            p = _expit(outputs[:, 1] - outputs[:, 0])
            p -= y
            return np.stack([-p, p], axis=1)
        out = special.softmax(outputs, axis=1)
        out[np.arange(y.size), y.astype(np.intp)] -= 1.0
        return out

    def wrong(self, outputs: FloatArray, y: FloatArray) -> FloatArray:
        """Return 1.0 where the likeliest class is not y."""
        return _wrong_class(outputs, y, 0.0)


@dataclass(frozen=True, slots=True)
class ProbabilityLoss:
    """Cross-entropy of probabilities: P(1), or one column per class.

    Examples
    --------
    >>> np.exp(ProbabilityLoss().log_value(np.array([[0.5]]), np.array([0.0]))).round(4).tolist()
    [0.6931]
    """

    # Probabilities are moved into [clip, 1 - clip] first; 0 leaves them as they are, and a probability of exactly 0 or
    # 1 then has an infinite or zero loss.
    clip: float = 0.0
    name = "log"

    def _own(self, outputs: FloatArray, y: FloatArray) -> FloatArray:
        if outputs.shape[1] == 1:
            p = np.where(y == 1, outputs[:, 0], 1.0 - outputs[:, 0])
        else:
            p = np.take_along_axis(outputs, y.astype(np.intp)[:, None], axis=1)[:, 0]
        return np.clip(p, self.clip, 1.0 - self.clip) if self.clip > 0 else p

    def log_value(self, outputs: FloatArray, y: FloatArray) -> FloatArray:
        """Return log of -log p(y), one value per row."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(-np.log(self._own(outputs, y)))

    def slope(self, outputs: FloatArray, y: FloatArray) -> FloatArray:
        """Return the derivative by each output, shape of `outputs`."""
        p = self._own(outputs, y)
        if outputs.shape[1] == 1:
            return (np.where(y == 1, -1.0, 1.0) / np.maximum(p, 1e-300))[:, None]
        out = np.zeros_like(outputs)
        out[np.arange(y.size), y.astype(np.intp)] = -1.0 / np.maximum(p, 1e-300)
        return out

    def wrong(self, outputs: FloatArray, y: FloatArray) -> FloatArray:
        """Return 1.0 where the likeliest class is not y."""
        return _wrong_class(outputs, y, 0.5)


class _NumberLoss:
    """A loss of numbers, which are not right or wrong."""

    __slots__ = ()

    def wrong(self, outputs: FloatArray, y: FloatArray) -> FloatArray:
        """Return NaN: a number is not right or wrong."""
        return np.full(y.size, np.nan)


@dataclass(frozen=True, slots=True)
class SquaredLoss(_NumberLoss):
    """Squared error of a prediction.

    Examples
    --------
    >>> np.exp(SquaredLoss().log_value(np.array([[3.0]]), np.array([1.0]))).round(6).tolist()
    [4.0]
    """

    name = "squared"

    def log_value(self, outputs: FloatArray, y: FloatArray) -> FloatArray:
        """Return log of the squared error."""
        with np.errstate(divide="ignore"):
            return 2.0 * np.log(np.abs(outputs[:, 0] - y))

    def slope(self, outputs: FloatArray, y: FloatArray) -> FloatArray:
        """Return twice the error."""
        return (2.0 * (outputs[:, 0] - y))[:, None]


@dataclass(frozen=True, slots=True)
class AbsoluteLoss(_NumberLoss):
    """Absolute error of a prediction.

    Examples
    --------
    >>> np.exp(AbsoluteLoss().log_value(np.array([[3.0]]), np.array([1.0]))).round(6).tolist()
    [2.0]
    """

    name = "absolute"

    def log_value(self, outputs: FloatArray, y: FloatArray) -> FloatArray:
        """Return log of the absolute error."""
        with np.errstate(divide="ignore"):
            return np.log(np.abs(outputs[:, 0] - y))

    def slope(self, outputs: FloatArray, y: FloatArray) -> FloatArray:
        """Return the sign of the error."""
        return np.sign(outputs[:, :1] - y[:, None])


Loss = LogitLoss | ProbabilityLoss | SquaredLoss | AbsoluteLoss


def _wrong_class(outputs: FloatArray, y: FloatArray, cut: float) -> FloatArray:
    binary = outputs.shape[1] == 1
    missed = (outputs[:, 0] > cut) != (y == 1) if binary else outputs.argmax(axis=1) != y
    # An output that is not a number is neither right nor wrong.
    return np.where(np.isnan(outputs).any(axis=1), np.nan, missed.astype(np.float64))
