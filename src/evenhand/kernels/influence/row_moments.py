"""Sums over rows from which means, shares and linearised variances follow: added batch by batch, in any order.

With its nuisance models given, everything else about two samples is a function of a few sums. A row's integrands are

    z(x) = (1, n_1(x), d_1(x), n_2(x), d_2(x), ...),

the numerators and denominators of a functional's terms; the centre of psi is a function of their means, and psi itself
is linear in them. Where a row stands between two grid points of a feature, the weights e(x) of the two add up to 1:
the shares of the levels are means of e, and a profile over the levels is linear in e. The part that a row has in a
score or in a shift is then z c + e v with constants c and v that are known later than the sums, and the sum of its
squares is a quadratic form in the sums of z z', e z' and e e'. Rows in a nuisance fit have a further part through its
residuals and are looked at one by one; the sums of squares are those of the other rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from evenhand.arrays import BoolArray, FloatArray, IntArray
from evenhand.kernels.influence.design import Block
from evenhand.kernels.influence.functionals import TERMS, Centre, Functional
from evenhand.kernels.influence.nuisance import with_products

_CHUNK = 16384


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Population:
    """Rows with what the centre of psi is computed from."""

    X: FloatArray  # (rows, columns): inputs of all rows, of P and of Q
    inside: BoolArray  # (rows,): rows of P
    count: IntArray | FloatArray  # (rows,): rows each record stands for
    unit: FloatArray  # (rows,): sampling weight of each of its rows
    # h, eta (rows,): as the centre used them.
    h: FloatArray
    eta: FloatArray

    @property
    def weight(self) -> FloatArray:
        """Weight of each record."""
        return self.count * self.unit

    def take(self, rows: IntArray) -> Population:
        """Return some of the rows, without what else is known of them."""
        return Population(**{f.name: getattr(self, f.name)[rows] for f in fields(Population)})

    def corrected(self, variance: FloatArray, pulls: Mapping[str, FloatArray]) -> FloatArray:
        """Return variances with the rows that the coefficients of the largest fit have used up."""
        n = float(self.count[self.inside].sum())
        spent = max((pull.shape[1] for pull in pulls.values()), default=1)
        return variance * (n / max(n - spent, 1.0))


def integrands(form: Functional, h: FloatArray, eta: FloatArray) -> FloatArray:
    """Return 1, then numerator and denominator of each term, for each row: shape (rows, 1 + 2 terms).

    Examples
    --------
    >>> from evenhand.kernels.influence.functionals import functional
    >>> integrands(functional("fpr"), np.array([0.5]), np.array([0.25])).tolist()
    [[1.0, 0.375, 0.75]]
    """
    out = np.ones((len(h), 1 + 2 * len(form.terms)))
    for t, (name, _) in enumerate(form.terms):
        out[:, 1 + 2 * t], out[:, 2 + 2 * t] = TERMS[name].parts(h, eta)
    return out


def psi_weights(at: Centre) -> FloatArray:
    """Return the vector whose product with a row's integrands is psi, the logarithm of a penalised one left out.

    Examples
    --------
    >>> from evenhand.kernels.influence.functionals import functional
    >>> psi_weights(Centre(form=functional("fpr"), ratio=(0.25,), scale=(0.5,), slope=(1.0,))).tolist()
    [0.0, 2.0, -0.5]
    """
    out = np.zeros(1 + 2 * len(at.form.terms))
    for t, (name, coefficient) in enumerate(at.form.terms):
        if name == "da":
            out[1 + 2 * t] = coefficient * at.slope[t]
            out[0] -= coefficient * at.ratio[t]
        else:
            out[1 + 2 * t] = coefficient / at.scale[t]
            out[2 + 2 * t] = -coefficient * at.ratio[t] / at.scale[t]
    return out


class Places:
    """Where rows stand among the levels of a feature: at one, between two neighbours, or at none of them.

    Parameters
    ----------
    block : Block
        The feature.
    part : ndarray, shape (rows, width)
        Its columns.
    strange : ndarray of bool, shape (rows,), optional
        Rows whose value the columns cannot say, which stand at no level.
    """

    def __init__(self, block: Block, part: FloatArray, strange: BoolArray | None = None) -> None:
        self.low, self.above, known = block.places(part)  # (rows,): the level at or below, the weight of the next one
        if strange is not None:
            known &= ~strange
        self.known: BoolArray | None = None if known.all() else known  # (rows,)
        self.graded = block.graded
        self.levels = len(block.levels)

    def read(self, of_level: FloatArray) -> FloatArray:
        """Return each row's value of a function of the levels; 0 at none of them."""
        out = of_level[self.low]
        if self.graded:
            out = out + self.above * (np.append(of_level[1:], 0.0) - of_level)[self.low]
        return out if self.known is None else np.where(self.known, out, 0.0)

    def sums(self, weight: FloatArray, side: IntArray) -> FloatArray:
        """Return the weight at each level, shape (2, levels): a row between two levels belongs to both."""
        out = self._counted(weight, side)
        if self.graded:
            upper = self._counted(weight * self.above, side)
            out -= upper
            out[:, 1:] += upper[:, :-1]
        return out

    def squares(self, weight: FloatArray, side: IntArray, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return sums of squared level weights, and of products of a level's with the next one's: (2, levels) each.

        `sums` are those of the same weights.
        """
        if not self.graded:
            return sums, np.zeros_like(sums)
        both = self._counted(weight * self.above * (1 - self.above), side)
        # (1 - a)² = (1 - a) - a (1 - a) and a² = a - a (1 - a).
        own = sums - both
        own[:, 1:] -= both[:, :-1]
        return own, both

    def _counted(self, weight: FloatArray, side: IntArray) -> FloatArray:
        """Return the weight of the rows at or just above each level, shape (2, levels)."""
        w = weight if self.known is None else np.where(self.known, weight, 0.0)
        counted = np.bincount(self.low + self.levels * side, weights=w, minlength=2 * self.levels)
        return counted.astype(np.float64, copy=False).reshape(2, self.levels)


class RowMoments:
    """Sums over the rows of P (first) and of Q (second): a monoid with `add` and `merge`.

    Parameters
    ----------
    form : Functional
        The terms.
    blocks : sequence of Block
        The features whose shares are counted.
    coefficients : int or None
        Of the outcome's logistic fit, the intercept included; None without such a fit.
    products : tuple of (int, int)
        Products of columns in that fit.
    squares : bool
        Whether sums of squares are kept too: for rows that are in no fit.

    Examples
    --------
    >>> from evenhand.kernels.influence.functionals import functional
    >>> people = Population(X=np.zeros((3, 0)), inside=np.array([True, True, False]), count=np.array([1, 2, 1]),
    ...                     unit=np.ones(3), h=np.array([0.3, 0.6, 0.5]), eta=np.zeros(3))
    >>> sums = RowMoments(functional("sp"), ())
    >>> sums.add(people)
    >>> sums.rows.tolist(), sums.means(0).round(12).tolist()
    ([3, 1], [[0.5, 1.0]])
    """

    def __init__(
        self, form: Functional, blocks: Sequence[Block], coefficients: int | None = None,
        products: tuple[tuple[int, int], ...] = (), *, squares: bool = False,
    ) -> None:  # fmt: skip
        self.form, self.blocks, self.products, self.squared = form, tuple(blocks), products, squares
        size = 1 + 2 * len(form.terms)
        self.rows = np.zeros(2, dtype=np.int64)
        self.first = np.zeros((2, size))
        self.level = [np.zeros((2, len(b.levels))) for b in blocks]  # weights by level
        # (terms, 2, coefficients): slopes of the summed numerators and denominators of P in the fit's coefficients.
        self.slopes = np.zeros((len(form.terms), 2, coefficients or 0))
        self.second = np.zeros((2, size, size))
        self.cross = [np.zeros((2, len(b.levels), size)) for b in blocks]
        self.own = [np.zeros((2, len(b.levels))) for b in blocks]
        self.both = [np.zeros((2, len(b.levels))) for b in blocks]

    @property
    def weight(self) -> FloatArray:
        """Summed weights of P and Q."""
        return np.asarray(self.first[:, 0])

    def means(self, side: int) -> FloatArray:
        """Return E[n] and E[d] of each term in P (0) or Q (1), shape (terms, 2)."""
        return np.asarray(self.first[side, 1:] / self.first[side, 0]).reshape(-1, 2)

    def shares(self, b: int) -> FloatArray:
        """Return the shares of a feature's levels, shape (2, levels), among the rows that stand at any; NaN if none."""
        total = self.level[b].sum(axis=1, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.where(total > 0, self.level[b] / total, np.nan))

    def add(self, people: Population, strange: Mapping[str, BoolArray] | None = None) -> None:
        """Add rows; `strange` marks, by feature, rows whose value its columns cannot say."""
        for start in range(0, len(people.h), _CHUNK):
            some = slice(start, start + _CHUNK)
            h, eta, count, unit = people.h[some], people.eta[some], people.count[some], people.unit[some]
            side, weight, z = 1 - people.inside[some].astype(np.int64), count * unit, integrands(self.form, h, eta)
            spread = np.ascontiguousarray((z * (weight * unit)[:, None]).T)  # (integrands, rows)
            for k in (0, 1):
                here = side == k
                self.rows[k] += int(count[here].sum())
                self.first[k] += weight[here] @ z[here]
                if self.squared:
                    self.second[k] += spread[:, here] @ z[here]
            even = self.squared and bool((unit == 1).all())  # then weights and their squares have the same sums
            for b, block in enumerate(self.blocks):
                unseen = None if strange is None else strange.get(block.name)
                places = Places(block, block.part(people.X[some]), None if unseen is None else unseen[some])
                if self.squared:
                    self._add_squares(b, places, spread, side, even=even)
                if not even:
                    self.level[b] += places.sums(weight, side)
            if self.slopes.shape[2] and (side == 0).any():
                self._add_slopes(people, some)

    def _add_squares(self, b: int, places: Places, spread: FloatArray, side: IntArray, *, even: bool) -> None:
        cross = np.stack([places.sums(column, side) for column in spread], axis=2)  # (2, levels, integrands)
        own, both = places.squares(spread[0], side, cross[:, :, 0])
        self.cross[b] += cross
        self.own[b] += own
        self.both[b] += both
        if even:
            self.level[b] += cross[:, :, 0]

    def _add_slopes(self, people: Population, some: slice) -> None:
        """Add what the outcome's probability does to numerators and denominators of P."""
        h, eta, X = people.h[some], people.eta[some], with_products(people.X[some], self.products)
        curve = np.where(people.inside[some], people.weight[some] * eta * (1 - eta), 0.0)
        pulls = np.empty((*self.slopes.shape[:2], len(h)))
        for t, (name, _) in enumerate(self.form.terms):
            _, n_eta, _, d_eta = TERMS[name].slopes(h, eta)
            pulls[t] = curve * n_eta, curve * d_eta
        self.slopes[:, :, 0] += pulls.sum(axis=2)
        self.slopes[:, :, 1:] += (pulls.reshape(-1, len(h)) @ X).reshape(*self.slopes.shape[:2], -1)

    def merge(self, other: RowMoments) -> None:
        """Add the sums of other rows."""
        for mine, theirs in zip(self._tables(), other._tables(), strict=True):
            mine += theirs

    def _tables(self) -> list[FloatArray | IntArray]:
        return [self.rows, self.first, self.slopes, self.second, *self.level, *self.cross, *self.own, *self.both]

    def squared_parts(self, side: int, of_row: FloatArray) -> FloatArray:
        """Sum the products of parts z c over the squared rows of one side, for c of shape (integrands, scores)."""
        return np.asarray(of_row.T @ self.second[side] @ of_row)

    def squared_part(self, side: int, b: int, of_row: FloatArray, of_level: FloatArray) -> float:
        """Sum the squares of z c + e v over the squared rows of one side: c of the row, v of a feature's levels."""
        total = of_row @ self.second[side] @ of_row + 2 * of_level @ self.cross[b][side] @ of_row
        total += self.own[b][side] @ of_level**2
        total += 2 * self.both[b][side][:-1] @ (of_level[:-1] * of_level[1:])
        return float(total)
