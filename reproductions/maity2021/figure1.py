"""Appendix E of [maity2021]: heat maps of T_n over logistic models, and where the statistic crosses 1.25."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import optimize, special

from evenhand.kernels.flow.gradient_flow import Adaptive, Euler, Flow, QuadraticForm, follow, step_sizes
from evenhand.kernels.flow.losses import LogitLoss
from evenhand.kernels.flow.ratios import mean_ratio
from evenhand.kernels.flow.tiles import Tiles

ALPHA, DELTA, PENALTY = 0.05, 1.25, 100.0
STEPS = step_sizes(0.02, 400, "decay")


def sample(seed: int, n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Draw the data of E.1, with labels from features centred by group; as printed every label would be 1."""
    rng = np.random.default_rng([2021, seed])
    g = (rng.random(n) < 0.1).astype(float)
    mean = np.column_stack([np.where(g == 1, 1.5, -1.5), np.zeros(n)])
    X = mean + 0.25 * rng.normal(size=(n, 2))
    w = np.column_stack([np.where(g == 1, 0.2, -0.2), np.full(n, -0.01)])
    y = (((X - mean) * w).sum(axis=1) + 0.01 * rng.normal(size=n) > 0).astype(float)
    return X, y


def intercept(X: np.ndarray, y: np.ndarray, theta: np.ndarray) -> float:
    """Return the intercept that fits best for given coefficients."""
    z = X @ theta
    return float(optimize.brentq(lambda b: special.expit(z + b).sum() - y.sum(), -60, 60, xtol=1e-12))


def statistics(
    X: np.ndarray, y: np.ndarray, thetas: np.ndarray, degrees: float = 0.0, times: int = 1, adaptive: bool = False
) -> np.ndarray:
    """Return T_n of each model; `times` = 2 adds the intercept twice, as a slip in the authors' script does."""
    turn = np.radians(degrees)
    # The direction that is not discounted, (0, 1), rotated: the metric keeps rank one.
    kept = np.array([-np.sin(turn), np.cos(turn)])
    form = QuadraticForm(matrix=np.outer(kept, kept))
    n, models = len(y), len(thetas)
    bias = np.repeat([times * intercept(X, y, t) for t in thetas], n)
    w, start, label = np.repeat(thetas, n, axis=0), np.tile(X, (models, 1)), np.tile(y, models)

    def score(at: np.ndarray, rows: np.ndarray) -> np.ndarray:
        out: np.ndarray = np.einsum("ij,ij->i", at, w[rows]) + bias[rows]
        return out

    def gradient(at: np.ndarray, rows: np.ndarray) -> np.ndarray:
        out: np.ndarray = (special.expit(score(at, rows)) - label[rows])[:, None] * w[rows]
        return out

    method = Adaptive(np.array([STEPS.sum()]), 1e-6) if adaptive else Euler(STEPS)
    flow = Flow(gradient=gradient, form=form, penalty=PENALTY)
    end = follow(start, flow, method, tiles=Tiles(size=8192)).end
    every = np.arange(n * models)
    loss = LogitLoss()
    log_ratio = loss.log_value(score(end, every)[:, None], label) - loss.log_value(score(start, every)[:, None], label)
    return np.array([mean_ratio(r, np.ones(n)).bound(ALPHA) for r in log_ratio.reshape(models, n)])


def crossing(X: np.ndarray, y: np.ndarray, times: int = 1, sign: float = 1.0) -> float:
    """Return |theta_1| (theta_2 = 0, theta_1 of the given sign) at which T_n passes 1.25."""
    grid = np.linspace(0.2, 3.0, 29)
    values = statistics(X, y, np.column_stack([sign * grid, np.zeros_like(grid)]), times=times)
    k = int(np.flatnonzero(values > DELTA)[0])
    return float(np.interp(DELTA, values[k - 1 : k + 1], grid[k - 1 : k + 1]))


def _over_samples(samples: int, times: int, sign: float) -> dict[str, float]:
    found = np.array([crossing(*sample(s), times=times, sign=sign) for s in range(samples)])
    return {"mean": float(found.mean()), "deviation": float(found.std(ddof=1)), "samples": samples}


def figure_1(samples: int, cells: int) -> dict[str, Any]:
    """Return the three heat maps of one sample, and the crossing over samples, with the intercept once and twice."""
    axis = np.linspace(-4, 4, cells)
    thetas = np.array([(a, b) for a in axis for b in axis])
    X, y = sample(0)
    maps = {}
    for degrees in (0, 5, 10):
        T = statistics(X, y, thetas, degrees).reshape(cells, cells)
        near = np.abs(axis) < 1e-9
        maps[f"{degrees} degrees"] = {
            "T_n": [[float(f"{v:.4g}") for v in row] for row in T],
            "rejected_share": float((T > DELTA).mean()),
            "rejected_at_theta1_0": float((T[near] > DELTA).mean()),
            "rejected_at_theta1_0_largest_T_n": float(T[near].max()),
        }
    exact = statistics(X, y, np.array([[1.2, 0.0], [2.0, 2.0]]), adaptive=True)
    euler = statistics(X, y, np.array([[1.2, 0.0], [2.0, 2.0]]))
    return {
        "axis": axis.tolist(),
        "maps": maps,
        "crossing": _over_samples(samples, 1, 1.0),
        "crossing_negative_theta1": _over_samples(samples, 1, -1.0),
        "crossing_with_intercept_twice": _over_samples(samples, 2, 1.0),
        "crossing_with_intercept_twice_negative_theta1": _over_samples(samples, 2, -1.0),
        "euler_against_adaptive": {"euler": euler.tolist(), "adaptive": exact.tolist()},
        "flow_time": float(STEPS.sum()),
    }
