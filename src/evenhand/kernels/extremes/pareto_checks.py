"""Is a fitted tail to be believed? Goodness of fit, and whether the answer stays when the threshold moves.

Both statistics are compared with what samples of the fitted law itself give when they are fitted again (parametric
bootstrap), so that estimating the parameters is inside the p-values. A poor p-value is a reason not to extrapolate; a
good one is no proof that the tail goes on as it began.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evenhand.arrays import FloatArray
from evenhand.kernels.extremes.pareto import fit, quantile, survival
from evenhand.kernels.extremes.pareto_tail import Tail

DOUBT = 0.1  # a fit whose p-value is lower is not believed
_PARTS = (2, 4)  # the same tail from a half and a quarter of its excesses
_LEAST = 20


def anderson_darling(u: FloatArray) -> FloatArray:
    """Return the Anderson-Darling statistic of values that should be uniform.

    Parameters
    ----------
    u : ndarray, shape (..., k)
        Between 0 and 1, sorted upwards along the last axis.

    Returns
    -------
    ndarray, shape (...)

    Examples
    --------
    >>> round(float(anderson_darling(np.array([0.25, 0.5, 0.75]))), 4)
    0.2694
    """
    k = u.shape[-1]
    u = np.clip(u, 1e-15, 1 - 1e-15)
    weight = (2 * np.arange(1, k + 1) - 1) / k
    return np.asarray(-k - (weight * (np.log(u) + np.log1p(-u[..., ::-1]))).sum(axis=-1))


@dataclass(frozen=True, slots=True, kw_only=True)
class FitCheck:
    """What two checks of a fitted tail found."""

    # statistic, fits: Anderson-Darling statistic of the excesses, and its p-value.
    statistic: float
    fits: float
    levels: tuple[tuple[int, float], ...]  # (int, float): number of excesses and the return level they give
    stable: float  # p-value against "the levels differ by chance alone"

    @property
    def believed(self) -> bool:
        """Whether both checks are passed."""
        return min(self.fits, self.stable) >= DOUBT


def check_fit(tail: Tail, horizon: float, *, draws: int, rng: np.random.Generator) -> FitCheck:
    """Check a fitted tail by its form and by what fewer excesses say.

    Parameters
    ----------
    tail : Tail
        From `fit_tail`.
    horizon : float
        At which the return level must not depend on the threshold.
    draws : int
        Samples of the fitted law.
    rng : Generator
        For them.

    Returns
    -------
    FitCheck

    Examples
    --------
    >>> from evenhand.kernels.extremes.pareto_tail import fit_tail
    >>> rng = np.random.default_rng(0)
    >>> check_fit(fit_tail(rng.exponential(size=2000), 100), 10_000, draws=199, rng=rng).believed
    True
    >>> wrong = fit_tail(np.r_[rng.exponential(size=1960), 5 + 0.01 * rng.random(40)], 100)
    >>> check_fit(wrong, 10_000, draws=199, rng=rng).believed
    False
    """
    y = tail.excesses[None, :]
    drawn = np.asarray(quantile(np.sort(rng.random((draws, tail.k)), axis=1)[:, ::-1], tail.scale, tail.shape))
    # The drawn threshold is that of the fit: the room above it is the same.
    every = np.concatenate([y, drawn])
    scale, shape, _ = fit(every, room=tail.room)
    form = anderson_darling(1 - survival(every, scale[:, None], shape[:, None]))
    sizes = [tail.k, *(tail.k // part for part in _PARTS if tail.k // part >= _LEAST)]
    levels = np.array([_level(every, k, tail, horizon) for k in sizes])
    moved = levels[1:] - levels[:1]
    spread = np.std(moved[:, 1:], axis=1, keepdims=True)
    away = (np.abs(moved) / np.maximum(spread, 1e-12)).max(axis=0, initial=0.0)
    return FitCheck(
        statistic=float(form[0]),
        fits=_rank(form),
        levels=tuple((k, tail.threshold + float(v)) for k, v in zip(sizes, levels[:, 0], strict=True)),
        stable=_rank(away),
    )


def _level(every: FloatArray, k: int, tail: Tail, horizon: float) -> FloatArray:
    """Return the return level, as an excess, from the k largest excesses of every sample."""
    floor = every[:, -k - 1] if k < every.shape[1] else np.zeros(len(every))
    y = every[:, -k:] - floor[:, None]
    scale, shape, _ = fit(y, room=tail.room - floor)
    return floor + quantile(1 / max(horizon * k / tail.n, 1.0), scale, shape)


def _rank(values: FloatArray) -> float:
    """Return the Monte-Carlo p-value of the first value among all."""
    return float((values >= values[0]).sum() / values.size) if math.isfinite(values[0]) else 0.0
