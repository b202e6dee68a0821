"""Scores of many rows when both probabilities are logistic: a few passes over numbers that stay in the cache.

With u = 1 - h and v = 1 - eta every influence function but those with an absolute value or a logarithm is

    psi = k + B u + C v + D u v,        u = r / (a + r),   v = s / (b + s),

where a and b are the odds of h and eta without the feature, and 1/r, 1/s what its level multiplies them
by. A level costs two divisions and three additions per row. A 0/1 feature costs one level: the other one is
where the row already is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.arrays import FloatArray
from evenhand.kernels.influence.design import Block
from evenhand.kernels.influence.functionals import Centre, psi
from evenhand.kernels.influence.shifted_predictions import Chunk, LogisticReader

# Beyond this linear predictor products of odds could overflow.
_FAR = 300.0
# Beyond this coefficient exp(c) - exp(-c) loses digits.
_STEEP = 5.0


@dataclass(frozen=True, slots=True)
class Bilinear:
    """psi = k + B u + C v + D u v."""

    k: float
    B: float
    C: float
    D: float


def bilinear(at: Centre) -> Bilinear | None:
    """Read the four coefficients of an influence function off its values in the corners; None when it has others.

    Examples
    --------
    >>> from evenhand.kernels.influence.functionals import functional
    >>> bilinear(Centre(form=functional("fpr"), ratio=(0.25,), scale=(0.5,), slope=(1.0,)))
    Bilinear(k=0.0, B=0.0, C=1.5, D=-2.0)
    """
    if at.form.uses_log_ratio or at.form.kinked:
        return None
    h, eta = np.array([1.0, 0.0, 1.0, 0.0]), np.array([1.0, 1.0, 0.0, 0.0])
    k, by_u, by_v, both = (float(v) for v in psi(at, h, eta))
    return Bilinear(k, by_u - k, by_v - k, both - by_u - by_v + k)


class Odds:
    """One chunk of rows, opened for fast scores.

    Parameters
    ----------
    shape : Bilinear
        The influence function.
    readers : dict
        Of h, and of eta when psi uses it.
    weight : ndarray, shape (rows,)
        Row weights.
    """

    def __init__(self, shape: Bilinear, readers: dict[str, LogisticReader], weight: FloatArray):
        self.shape, self.weight = shape, weight
        self.readers = [readers[name] for name in ("h", "eta") if name in readers]
        self.total = float(weight.sum())
        self.one = np.ones_like(weight)
        self.even = bool(np.all(weight == 1))
        self.t, self.s, self.p, self.high, self.low = (np.empty_like(weight) for _ in range(5))
        self.near = all(float(np.abs(r.linear).max()) <= _FAR for r in self.readers)
        if self.near:
            # Odds where the rows are, and psi there, less its constant.
            self.a = np.exp(self.readers[0].linear)
            self.b = np.exp(self.readers[1].linear) if len(self.readers) > 1 else None
            self.here = shape.B / (1.0 + self.a)
            if self.b is not None:
                self.here += (shape.C + shape.D / (1.0 + self.a)) / (1.0 + self.b)
            self.sum_here = float(weight @ self.here)
            self.ca = self.a * shape.C

    def score(self, block: Block, columns: FloatArray) -> tuple[float, FloatArray] | None:
        """Return the summed change of psi and summed psi at each level; None when odds would overflow."""
        where, shape = list(block.where), self.shape
        if block.binary:
            steps = [float(r.coef[where[0]]) for r in self.readers]
            if self.near and max(map(abs, steps)) <= _STEEP:
                return self._binary(columns[where[0]], steps)
        odds: list[FloatArray] = []
        ratio = np.ones((2, len(block.levels)))
        for k, reader in enumerate(self.readers):
            base, step = reader.without(block), block.levels @ reader.coef[where]
            if float(np.abs(step).max()) > _FAR:
                return None
            with np.errstate(over="ignore"):  # infinite odds lead to the right limits below
                odds.append(np.exp(base, out=base))
            ratio[k] = np.exp(-step)
        sums = np.zeros(len(block.levels))
        for v, (r, s) in enumerate(ratio.T.tolist()):
            t = np.add(odds[0], r, out=self.low if v == 0 else self.t)
            if len(odds) == 1:
                np.divide(shape.B * r, t, out=t)
            else:
                # (C + D u) s / (b + s), and B u where there is any; u = r / (a + r)
                np.divide(shape.D * r * s, t, out=t)
                t += shape.C * s
                t /= np.add(odds[1], s, out=self.s)
                if shape.B:
                    np.add(odds[0], r, out=self.s)
                    t += np.divide(shape.B * r, self.s, out=self.s)
            sums[v] = self.weight @ t
            if v == 1:
                np.maximum(self.low, t, out=self.high)
            elif v > 1:
                np.maximum(self.high, t, out=self.high)
            if v:
                np.minimum(self.low, t, out=self.low)
        sums += shape.k * self.total
        if len(sums) == 1:
            return 0.0, sums
        self.high -= self.low
        return float(self.weight @ self.high), sums

    def _binary(self, x: FloatArray, steps: list[float]) -> tuple[float, FloatArray]:
        """Move every row to the value it does not have: psi there, less psi where it is."""
        shape, p = self.shape, self.p
        # Odds times exp(c) where x is 0, exp(-c) where it is 1.
        r = np.multiply(x, np.exp(steps[0]) - np.exp(-steps[0]), out=self.high)
        r += np.exp(-steps[0])
        change = np.multiply(r, shape.C + shape.D if self.b is not None else shape.B, out=self.t)
        np.add(self.a, r, out=p)
        if self.b is not None:
            s = np.multiply(x, np.exp(steps[1]) - np.exp(-steps[1]), out=self.low)
            s += np.exp(-steps[1])
            change += self.ca
            change *= s
            q = np.add(self.b, s, out=self.s)
            p *= q
            if shape.B:
                q *= r
                q *= shape.B
                change += q
        change /= p
        change -= self.here
        if not self.even:
            change *= self.weight
        moved, moved_from_1 = float(self.one @ change), float(x @ change)
        np.abs(change, out=change)
        # Rows keep psi at their own value and gain the change at the other one.
        sums = np.array([self.sum_here + moved_from_1, self.sum_here + moved - moved_from_1])
        return float(self.one @ change), sums + self.shape.k * self.total


def open_odds(shape: Bilinear, chunk: Chunk) -> Odds | None:
    """Open a chunk for fast scores, or return None when a source is not a plain logistic fit."""
    logistic = {name: r for name, r in chunk.readers.items() if isinstance(r, LogisticReader)}
    return Odds(shape, logistic, chunk.weight) if len(logistic) == len(chunk.readers) else None
