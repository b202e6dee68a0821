"""The error bound of forward Euler, [maity2021] Theorem 2.2, with constants found along the path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.kernels.flow.gradient_flow import Drift, FloatArray, Gradient, QuadraticForm


@dataclass(frozen=True, slots=True, kw_only=True)
class EulerBound:
    """The constants of Theorem 2.2 as found along the path, and the bound they give.

    Parameters
    ----------
    lipschitz : float
        L: the largest stretch of the drift seen (a lower bound of the true constant).
    curvature : float
        m: the largest component of J_g g seen.
    log10_bound : float
        log10 of (h m sqrt(d) / 2L)(exp(LT) - 1). Far above the error in practice: L T is in the hundreds.
    """

    lipschitz: float
    curvature: float
    log10_bound: float


def euler_bound(
    positions: Sequence[FloatArray],
    start: FloatArray,
    gradient: Gradient,
    form: QuadraticForm,
    *,
    penalty: float,
    longest: float,
    time: float,
    probe: float = 6e-6,
) -> EulerBound:
    """Evaluate the bound of [maity2021] Theorem 2.2 with constants found along a path.

    Parameters
    ----------
    positions : sequence of ndarray, shape (rows, inputs)
        Points of the path at which the drift's derivative is probed.
    start : ndarray, shape (rows, inputs)
        Where the path began.
    gradient, form, penalty
        As in `flow`.
    longest : float
        h, the longest step.
    time : float
        T, the flow time.
    probe : float
        Step of the finite differences: about the cube root of the precision in which gradients are computed.

    Returns
    -------
    EulerBound

    Examples
    --------
    >>> form = QuadraticForm(matrix=np.eye(1))
    >>> x = np.zeros((1, 1))
    >>> found = euler_bound([x], x, lambda X, rows: np.ones_like(X), form, penalty=0.5, longest=0.1, time=1.0)
    >>> round(found.lipschitz, 3), round(10**found.log10_bound, 4)
    (1.0, 0.0859)
    """
    rows = np.arange(start.shape[0])
    drift = Drift(gradient, form, penalty, start, rows, None)
    lipschitz = curvature = 0.0
    for X in positions:
        g = drift(X)
        norm = np.linalg.norm(g, axis=1, keepdims=True)
        unit = g / np.maximum(norm, 1e-300)
        eps = probe
        along = (drift(X + eps * unit) - drift(X - eps * unit)) / (2 * eps)
        curvature = max(curvature, float(np.abs(along * norm).max(initial=0.0)))
        v = unit + 1.0 / np.sqrt(X.shape[1])  # not only along the flow: the stiffest direction may lie across it
        v /= np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-300)
        for _ in range(8):  # power iteration for the largest stretch
            jv = (drift(X + eps * v) - drift(X - eps * v)) / (2 * eps)
            size = np.linalg.norm(jv, axis=1, keepdims=True)
            lipschitz = max(lipschitz, float(size.max(initial=0.0)))
            v = jv / np.maximum(size, 1e-300)
    lt = lipschitz * time
    grow = lt / np.log(10) if lt > 30 else np.log10(np.expm1(lt)) if lt > 0 else -np.inf
    factor = longest * curvature * np.sqrt(start.shape[1])
    if factor <= 0 or lipschitz <= 0:
        return EulerBound(lipschitz=lipschitz, curvature=curvature, log10_bound=-np.inf)
    return EulerBound(
        lipschitz=lipschitz, curvature=curvature, log10_bound=float(np.log10(factor / (2 * lipschitz)) + grow)
    )
