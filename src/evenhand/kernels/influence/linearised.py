"""Variances of numbers that were computed with estimated probabilities, by linearising every step.

A score depends on the rows it averages, on the centre of psi and on coefficients of logistic fits. Each of
these is, to first order, a mean of one contribution per row; adding a row's contributions before squaring
gives the variance of the whole, the error of the nuisance fits included. No refitting, no draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from evenhand.arrays import FloatArray, IntArray
from evenhand.kernels.influence.functionals import Centre
from evenhand.kernels.influence.nuisance import with_one
from evenhand.kernels.influence.row_moments import Population, RowMoments, integrands
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


def score_covariance(
    toggles: Toggles, rows: Rows, people: Population, at: Centre, equations: Mapping[str, Equation],
    sums: RowMoments, *, stand_for: IntArray | None = None,
) -> FloatArray:  # fmt: skip
    """Return the covariance matrix of proxy scores.

    Parameters
    ----------
    toggles : Toggles
        Made with ``linear=True``.
    rows : Rows
        The rows of `people` the scores average over.
    people : Population
        The rows in the fits, or all rows.
    at : Centre
        What psi belongs to.
    equations : mapping of str to Equation
        By source ("h", "eta", "member"), for those that were learned by logistic regression.
    sums : RowMoments
        Of all rows, with the squares of those that are not in `people`.
    stand_for : ndarray of int, optional
        The rows that were averaged in truth, when `rows` are a part of them that was looked at in detail.

    Returns
    -------
    ndarray, shape (blocks, blocks)
    """
    weight, averaged = people.weight, rows.number
    slopes = {name: table.copy() for name, table in toggles.slopes.items()}
    if "eta" in slopes:
        slopes["eta"] += _centre_slopes(toggles, at, sums)
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
    through = _centre_parts(toggles, at, sums)
    out = np.zeros((len(toggles.score), len(toggles.score)))
    for start in range(0, len(weight), _CHUNK):
        some = slice(start, start + _CHUNK)
        z = integrands(at.form, people.h[some], people.eta[some])
        share = np.where(people.inside[some][:, None], z @ through[0], z @ through[1])
        spot = position[some]
        seen = spot >= 0
        share[seen] += (toggles.rows[spot[seen]] - toggles.score) / mass
        for name, pull in pulls.items():
            design = with_one(people.X[some], equations[name].products)
            share += (design * equations[name].residual[some][:, None]) @ pull.T
        out += share.T @ (share * spread[some][:, None])
    out += sum(sums.squared_parts(side, through[side]) for side in (0, 1))
    return people.corrected(out, pulls)


def _centre_slopes(toggles: Toggles, at: Centre, sums: RowMoments) -> FloatArray:
    """Slope of the scores in eta's coefficients through the centre: E[n] / E[d] and E[d] use eta too."""
    out = np.zeros((len(toggles.score), sums.slopes.shape[2]))
    for t, (name, _) in enumerate(at.form.terms):
        if name != "da":
            top, bottom = sums.slopes[t] / sums.weight[0]
            out += toggles.by_ratio[:, [t]] * (top - at.ratio[t] * bottom) / at.scale[t]
            out += toggles.by_scale[:, [t]] * bottom
    return out


def _centre_parts(toggles: Toggles, at: Centre, sums: RowMoments) -> tuple[FloatArray, FloatArray]:
    """Return what a row's integrands do to the scores through the means of the centre, for P and for Q.

    Each of shape (integrands, blocks): times a row's integrands they are its part per unit of weight.
    """
    inside, outside = np.zeros((2, sums.first.shape[1], len(toggles.score)))
    total, other = sums.weight
    for t, (name, _) in enumerate(at.form.terms):
        n, d = 1 + 2 * t, 2 + 2 * t
        if name == "da":
            # c = logit E_P[h] - logit E_Q[h]
            p, q = float(sums.means(0)[t, 0]), at.other[t]
            for part, mean, size in ((inside, p, p * (1 - p) * total), (outside, q, -q * (1 - q) * other)):
                part[n] += toggles.by_slope[:, t] / size
                part[0] -= mean * toggles.by_slope[:, t] / size
            continue
        by_ratio, by_scale = toggles.by_ratio[:, t] / (at.scale[t] * total), toggles.by_scale[:, t] / total
        inside[n] += by_ratio
        inside[d] += by_scale - at.ratio[t] * by_ratio
        inside[0] -= at.scale[t] * by_scale
    return inside, outside


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
