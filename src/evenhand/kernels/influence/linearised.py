"""Variances of numbers that were computed with estimated probabilities, by linearising every step.

A score depends on the rows it averages, on the centre of psi and on coefficients of logistic fits. Each of
these is, to first order, a mean of one contribution per row; adding a row's contributions before squaring
gives the variance of the whole, the error of the nuisance fits included. No refitting, no draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
from scipy import special

from evenhand.arrays import BoolArray, FloatArray, IntArray
from evenhand.kernels.influence.functionals import TERMS, Centre
from evenhand.kernels.influence.nuisance import with_products
from evenhand.kernels.influence.set_features import Toggles
from evenhand.kernels.influence.shifted_predictions import Rows

_CHUNK = 16384
# Chance of finding a product where there is none (Bonferroni), and how many are kept, the clearest first.
_CHANCE, _MOST = 0.01, 12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Equation:
    """The estimating equation of one logistic fit."""

    residual: FloatArray  # (rows,): outcome minus cross-fitted probability; 0 for rows outside the fit
    bread: FloatArray  # (1 + columns, 1 + columns): inverse of the summed Hessian
    # (int, int): products of columns in the fit; they count as columns above.
    products: tuple[tuple[int, int], ...] = ()


def equation(
    X: FloatArray, target: FloatArray, probability: FloatArray, weight: FloatArray, l2: float,
    products: tuple[tuple[int, int], ...] = (),
) -> Equation:  # fmt: skip
    """Set up the estimating equation of a logistic fit.

    Parameters
    ----------
    X : ndarray, shape (rows, columns)
        Inputs.
    target, probability : ndarray, shape (rows,)
        Outcome and cross-fitted probability.
    weight : ndarray, shape (rows,)
        Weights in the fit; 0 for rows outside it.
    l2 : float
        Its penalty.
    products : tuple of (int, int)
        Products of columns in the fit.

    Returns
    -------
    Equation

    Examples
    --------
    >>> X, y = np.array([[0.0], [1.0]]), np.array([0.0, 1.0])
    >>> equation(X, y, np.full(2, 0.5), np.ones(2), 1.0).bread.shape
    (2, 2)
    """
    p = X.shape[1] + len(products)
    hessian = np.zeros((p + 1, p + 1))
    for start in range(0, len(X), _CHUNK):
        rows = slice(start, start + _CHUNK)
        design = with_one(X[rows], products)
        curve = weight[rows] * probability[rows] * (1 - probability[rows])
        hessian += design.T @ (design * curve[:, None])
    hessian[np.arange(1, p + 1), np.arange(1, p + 1)] += l2
    residual = np.where(weight > 0, target - probability, 0.0)
    return Equation(residual=residual, bread=np.linalg.pinv(hessian), products=products)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Population:
    """Rows with what the centre of psi was computed from."""

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


def score_covariance(
    toggles: Toggles, rows: Rows, people: Population, at: Centre, equations: Mapping[str, Equation], *,
    stand_for: IntArray | None = None,
) -> FloatArray:  # fmt: skip
    """Return the covariance matrix of proxy scores.

    Parameters
    ----------
    toggles : Toggles
        Made with ``linear=True``.
    rows : Rows
        The rows of `people` the scores average over.
    people : Population
        All rows.
    at : Centre
        What psi belongs to.
    equations : mapping of str to Equation
        By source ("h", "eta", "member"), for those that were learned by logistic regression.
    stand_for : ndarray of int, optional
        The rows that were averaged in truth, when `rows` are a part of them that was looked at in detail.

    Returns
    -------
    ndarray, shape (blocks, blocks)
    """
    weight, averaged = people.weight, rows.number
    total = float(weight[people.inside].sum())
    slopes = {name: table.copy() for name, table in toggles.slopes.items()}
    if "eta" in slopes:
        X = with_products(people.X, equations["eta"].products)
        slopes["eta"] += _centre_slopes(toggles, people, at, weight / total, X)
    pulls = {name: slopes[name] @ equations[name].bread for name in slopes}  # (blocks, 1 + columns)
    position = np.full(len(weight), -1)
    position[averaged] = np.arange(len(averaged))
    mass = float(weight[averaged if stand_for is None else stand_for].sum())
    spread = people.count * people.unit**2
    if stand_for is not None:
        stands = np.ones(len(weight))
        stands[stand_for] = 0.0
        stands[averaged] = mass / float(weight[averaged].sum())
        spread = spread * stands
    out = np.zeros((len(toggles.score), len(toggles.score)))
    for start in range(0, len(weight), _CHUNK):
        some = slice(start, start + _CHUNK)
        share = _centre_shares(toggles, people, at, weight, total, some)
        spot = position[some]
        seen = spot >= 0
        share[seen] += (toggles.rows[spot[seen]] - toggles.score) / mass
        for name, pull in pulls.items():
            design = with_one(people.X[some], equations[name].products)
            share += (design * equations[name].residual[some][:, None]) @ pull.T
        out += share.T @ (share * spread[some][:, None])
    return people.corrected(out, pulls)


def _centre_slopes(toggles: Toggles, people: Population, at: Centre, weight: FloatArray, X: FloatArray) -> FloatArray:
    """Slope of the scores in eta's coefficients through the centre: E[n] / E[d] and E[d] use eta too."""
    w = np.where(people.inside, weight, 0.0)
    curve = people.eta * (1 - people.eta)
    out = np.zeros((len(toggles.score), 1 + X.shape[1]))
    for t, (name, _) in enumerate(at.form.terms):
        if name == "da":
            continue
        _, n_e, _, d_e = TERMS[name].slopes(people.h, people.eta)
        by_ratio = w * (n_e - at.ratio[t] * d_e) / at.scale[t] * curve
        by_scale = w * d_e * curve
        for pull, table in ((by_ratio, toggles.by_ratio), (by_scale, toggles.by_scale)):
            gained = np.concatenate(([pull.sum()], pull @ X))
            out += table[:, [t]] * gained
    return out


def _centre_shares(
    toggles: Toggles, people: Population, at: Centre, weight: FloatArray, total: float, some: slice
) -> FloatArray:
    """Each row's part in the scores through the means of the centre, per unit of weight."""
    inside, h, eta = people.inside[some], people.h[some], people.eta[some]
    out = np.zeros((len(h), len(toggles.score)))
    for t, (name, _) in enumerate(at.form.terms):
        if name == "da":
            # c = logit E_P[h] - logit E_Q[h]
            p, q = float(weight[people.inside] @ people.h[people.inside]) / total, at.other[t]
            other = float(weight[~people.inside].sum())
            part = np.where(inside, (h - p) / (p * (1 - p) * total), -(h - q) / (q * (1 - q) * other))
            out += part[:, None] * toggles.by_slope[:, t]
            continue
        n, d = TERMS[name].parts(h, eta)
        by_ratio = np.where(inside, (n - at.ratio[t] * d) / (at.scale[t] * total), 0.0)
        by_scale = np.where(inside, (d - at.scale[t]) / total, 0.0)
        out += by_ratio[:, None] * toggles.by_ratio[:, t] + by_scale[:, None] * toggles.by_scale[:, t]
    return out


def missed_products(people: Population, fit: Equation, pairs: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Find products of columns that a fit should have had, by score tests.

    Parameters
    ----------
    people : Population
        The rows in the fit, with its probabilities as eta.
    fit : Equation
        The fit, with residuals of these rows.
    pairs : sequence of (int, int)
        Candidates.

    Returns
    -------
    tuple of (int, int)

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(800, 2))
    >>> y = (X[:, 0] * X[:, 1] > 0).astype(float)
    >>> one, half = np.ones(800), np.full(800, 0.5)
    >>> people = Population(X=X, inside=one > 0, count=one, unit=one, h=half, eta=half)
    >>> missed_products(people, equation(X, y, half, one, 1.0), [(0, 1)])
    ((0, 1),)
    """
    X, weight = people.X, people.weight
    design = with_one(X)
    curved = design * (weight * people.eta * (1 - people.eta))[:, None]
    pulled = weight * fit.residual
    spread = people.count * (people.unit * fit.residual) ** 2
    sizes: list[tuple[float, tuple[int, int]]] = []
    for start in range(0, len(pairs), 32):
        some = pairs[start : start + 32]
        V = np.stack([X[:, a] * X[:, b] for a, b in some], axis=1)
        V -= design @ (fit.bread @ (curved.T @ V))  # what the fit cannot already express
        score, variance = pulled @ V, spread @ V**2
        with np.errstate(divide="ignore", invalid="ignore"):
            size = np.where(variance > 1e-12 * len(X), score**2 / variance, 0.0)
        sizes += [(float(z), pair) for z, pair in zip(size, some, strict=True)]
    cut = float(special.chdtri(1, _CHANCE / max(len(pairs), 1)))
    clear = sorted((f for f in sizes if f[0] > cut), key=lambda f: (-f[0], f[1]))
    return tuple(pair for _, pair in clear[:_MOST])


def with_one(X: FloatArray, products: Sequence[tuple[int, int]] = ()) -> FloatArray:
    """Return a matrix with a column of ones before it and products of columns behind it."""
    return np.concatenate([np.ones((len(X), 1)), with_products(X, products)], axis=1)
