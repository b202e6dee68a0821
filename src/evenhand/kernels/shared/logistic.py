"""Penalised logistic regression by Newton's method, solved to the end or refused.

Minimises  sum_i w_i log(1 + exp(-s_i (b + x_i'c))) + (l2 / 2) ||c||²,  s_i = 2 y_i - 1.  The intercept b
is not penalised. The objective is convex, so a vanishing gradient proves the solution; a solver that
stops early gives coefficients that look like an answer and are none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from evenhand.arrays import FloatArray
from evenhand.errors import DataError

# Norm of the gradient of the mean loss, each component on its column's scale.
TOLERANCE = 1e-10
# Smallest pivot of the scaled Hessian that still counts as full rank.
PIVOT = 1e-7
# Products of matrices are summed over pieces of so many multiplications, which BLAS makes on one thread: the bits
# do not depend on the number of threads, and threads that wait for busy cores cost more than they bring.
PIECE = 200_000
# Rows of a piece, at least: wider matrices are multiplied at once. And pieces that are made together.
FEWEST, AT_ONCE = 8, 64
# A Hessian is used again as long as a step leaves at most this part of the gradient.
KEPT = 0.1
# Largest change of b + x'c that Newton's next step may still make at a solution.
SETTLED = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogisticFit:
    """A fitted logistic regression; one that did not converge is an error, never a result."""

    # (features,): one coefficient per column of X.
    coef: FloatArray  # (features,)
    intercept: float  # the constant term
    iterations: int  # Newton steps taken

    def linear(self, X: ArrayLike) -> FloatArray:
        """Return ``intercept + X @ coef``, one value per row."""
        return np.asarray(X, dtype=np.float64) @ self.coef + self.intercept

    def probability(self, X: ArrayLike) -> FloatArray:
        """Return the probability of outcome 1, one value per row."""
        return np.asarray(special.expit(self.linear(X)))


def fit_logistic(
    X: ArrayLike,
    y: ArrayLike,
    weight: ArrayLike | None = None,
    l2: float = 1.0,
    *,
    max_iterations: int = 100,
    start: LogisticFit | None = None,
) -> LogisticFit:
    """Fit a penalised logistic regression.

    Parameters
    ----------
    X : array, shape (rows, features)
        Finite numbers. Scale the columns: the penalty treats them alike.
    y : array, shape (rows,)
        0 or 1; both must occur.
    weight : array, shape (rows,), optional
        Non-negative; a weight of 2 counts as two rows.
    l2 : float
        Penalty on the squared coefficients, 1 / C in scikit-learn's terms; 0 for none.
    max_iterations : int
        Newton steps before giving up.
    start : LogisticFit, optional
        Where to begin, such as a fit of nearly the same rows; the solution does not depend on it. From there one
        Hessian serves for several steps, which cost a product with a vector each.

    Returns
    -------
    LogisticFit

    Raises
    ------
    DataError
        When the input is not as above, the columns are linearly dependent without a penalty, the classes
        are separated without a penalty, or the steps run out.

    Examples
    --------
    >>> fit = fit_logistic([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1], l2=1.0)
    >>> fit.coef.round(4).tolist()
    [0.4529]
    >>> fit.probability([[1.5]]).round(4).tolist()
    [0.5]
    """
    problem = _check(X, y, weight, l2)
    design, target, w, penalty = problem.design, problem.target, problem.weight, problem.penalty
    n, k = design.shape[0], design.shape[1] - 1
    total = float(w.sum())
    scale = np.maximum(1.0, (w @ np.abs(design)) / total)  # (1 + features,)
    rate = float(w @ target) / total
    beta = np.zeros(k + 1)
    beta[0] = np.log(rate / (1 - rate))
    if start is not None:
        beta = np.concatenate(([start.intercept], start.coef))
    value, eta = problem.objective(beta)
    curve, before = None, np.inf
    for iteration in range(max_iterations + 1):
        p = special.expit(eta)  # (rows,)
        gradient = np.einsum("ij,i->j", design, w * (p - target)) + penalty * beta
        size = float(np.linalg.norm(gradient / scale))
        if size <= TOLERANCE * total:
            # Where features separate the outcomes the unpenalised gradient vanishes at infinity only, and
            # Newton's steps do not shrink on the way there.
            if l2 == 0:
                step = problem.curve(p).step(gradient)
                if float(np.abs(design @ step).max()) > SETTLED:
                    break
            if start is not None and curve is not None:
                beta = beta - curve.step(gradient)  # an old Hessian leaves more over than a new one
            coef = beta[1:].copy()
            coef.flags.writeable = False
            return LogisticFit(coef=coef, intercept=float(beta[0]), iterations=iteration)
        if iteration == max_iterations or not np.isfinite(value):
            break
        if start is None or curve is None or size > KEPT * before:
            curve = problem.curve(p)
        before, step = size, curve.step(gradient)
        beta, value, eta = problem.descend(beta, value, step, float(gradient @ step))
    raise DataError(
        f"Logistic regression on {n} rows and {k} features did not converge in {max_iterations} steps with "
        f"`l2={l2}`. The features may separate the two outcomes, or differ too much in scale. Standardise "
        "the columns, or raise `l2`."
    )


def _check(X: ArrayLike, y: ArrayLike, weight: ArrayLike | None, l2: float) -> _Problem:
    features = np.asarray(X, dtype=np.float64)
    target = np.asarray(y, dtype=np.float64)
    if features.ndim != 2 or target.shape != features.shape[:1]:
        raise DataError(
            f"`X` must have shape (rows, features) and `y` shape (rows,); got {features.shape} and {target.shape}."
        )
    w = np.ones_like(target) if weight is None else np.asarray(weight, dtype=np.float64)
    if w.shape != target.shape or not np.all(np.isfinite(w)) or np.any(w < 0):
        raise DataError("`weight` must hold one finite number of at least 0 per row.")
    if not np.all(np.isfinite(features)):
        bad = int(np.count_nonzero(~np.isfinite(features).all(axis=1)))
        raise DataError(f"`X` has {bad} rows with a NaN or infinite value. Drop or fill them.")
    used = target[w > 0]
    if not np.all((target == 0) | (target == 1)) or not 0 < used.sum() < used.size:
        raise DataError(f"`y` must be 0 or 1 and hold both; got the values {np.unique(used)[:5].tolist()}.")
    if not (np.isfinite(l2) and l2 >= 0):
        raise DataError(f"`l2` must be a finite number of at least 0; got {l2!r}.")
    design = np.column_stack([np.ones(target.size), features])
    return _Problem(design, target, w, np.concatenate(([0.0], np.full(features.shape[1], float(l2)))))


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    """What is minimised: rows with a column of ones first, outcomes, weights, and the penalty of each column."""

    design: FloatArray
    target: FloatArray
    weight: FloatArray
    penalty: FloatArray

    def objective(self, beta: FloatArray) -> tuple[float, FloatArray]:
        """Return the penalised loss and the linear predictor."""
        eta: FloatArray = np.einsum("ij,j->i", self.design, beta)  # (rows,)
        loss = float(self.weight @ (np.logaddexp(0.0, eta) - self.target * eta))
        return loss + 0.5 * float(self.penalty @ beta**2), eta

    def curve(self, p: FloatArray) -> _Curve:
        """Return the Hessian at probabilities p, or refuse one that is not of full rank."""
        hessian = _crossed(self.design, self.design * (self.weight * p * (1 - p))[:, None])
        hessian[np.diag_indices_from(hessian)] += self.penalty
        size = np.sqrt(np.diag(hessian))
        size = np.where(size > 0, size, 1.0)
        scaled = hessian / np.outer(size, size)  # unit diagonal: rank no longer depends on units
        try:
            pivots = np.diag(np.linalg.cholesky(scaled))
        except np.linalg.LinAlgError:
            pivots = np.zeros(1)
        if pivots.min() < PIVOT:
            raise DataError(
                "Logistic regression has no unique solution: columns of `X` are constant or linearly dependent, "
                "or they separate the two outcomes. Remove such columns, or set `l2` above 0."
            )
        return _Curve(scaled, size)

    def descend(
        self, beta: FloatArray, value: float, step: FloatArray, slope: float
    ) -> tuple[FloatArray, float, FloatArray]:
        """Halve Newton's step until the objective falls by a part of what the slope promises (Armijo)."""
        slack = 1e-13 * (1.0 + abs(value))  # at the solution the fall is below rounding
        size = 1.0
        for _ in range(40):
            trial = beta - size * step
            new_value, eta = self.objective(trial)
            if new_value <= value - 1e-4 * size * slope + slack:
                break
            size /= 2
        return trial, new_value, eta


@dataclass(frozen=True, slots=True, eq=False)
class _Curve:
    """A Hessian with a unit diagonal, and the scale of each column."""

    scaled: FloatArray
    size: FloatArray

    def step(self, gradient: FloatArray) -> FloatArray:
        """Return Newton's step."""
        return np.linalg.solve(self.scaled, gradient / self.size) / self.size


def _crossed(A: FloatArray, B: FloatArray) -> FloatArray:
    """Return A'B of tall matrices, piece by piece."""
    (n, k), columns = A.shape, B.shape[1]
    size = PIECE // (k * columns)
    if size < FEWEST:
        return np.asarray(A.T @ B)
    out = np.zeros((k, columns))
    for start in range(0, n, AT_ONCE * size):
        a, b = A[start : start + AT_ONCE * size], B[start : start + AT_ONCE * size]
        whole = len(a) - len(a) % size
        pieces = a[:whole].reshape(-1, size, k).swapaxes(1, 2) @ b[:whole].reshape(-1, size, columns)
        out += pieces.sum(axis=0) + a[whole:].T @ b[whole:]
    return out
