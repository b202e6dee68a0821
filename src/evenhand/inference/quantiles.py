"""High quantiles of one sample and of two, by counting: exact for any law, ties and steps included.

The level of a share p is the value that at most a share p of the population lies above:
``inf {x : P(X > x) <= p}``. That it lies above x says that more than p lie above x, and how many of n rows do is
binomial. So a test of the level is a binomial test, and its inversion is an interval between two order statistics.
Nothing is assumed about the form of the tail, and nothing is said about it beyond the largest value.

For two samples the difference of the levels is tested with the other sample's level unknown. At every value x that
it may have, the first sample has a count above x + d and the second a count above x; each count's exact one-sided
p-value becomes a normal deviate, the two are added in squares, and the smallest sum over all x is compared with
chi-square of one degree. Only the levels need to agree, not the forms or the sizes (calibration/tail.py).
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from evenhand.arrays import FloatArray
from evenhand.kernels.shared.descending import Descending

Sample = FloatArray | Descending


def sample_level(descending: Sample, share: float) -> float:
    """Estimate the level of a share: half-way between the two values that the counts point at.

    Parameters
    ----------
    descending : ndarray, shape (n,), or Descending
        The sample, sorted downwards.
    share : float
        Share of the population above the level; n times the share is at least 1.

    Examples
    --------
    >>> sample_level(np.arange(1000.0)[::-1], 0.01)  # ten values lie above
    989.5
    """
    place = descending.size * share - 0.5  # Hazen's position, counted from 0
    low = min(max(math.floor(place), 0), descending.size - 1)
    high = min(low + 1, descending.size - 1)
    part = min(max(place - low, 0.0), 1.0)
    sample = Descending.of(descending)
    return float((1 - part) * sample.at(low) + part * sample.at(high))


def level_pvalues(descending: Sample, share: float, value: float) -> tuple[float, float]:
    """Test exactly whether the level of a share lies above, or below, a value.

    Parameters
    ----------
    descending : ndarray, shape (n,), or Descending
        The sample, sorted downwards.
    share : float
        Share of the population above the level.
    value : float
        What the level is compared with.

    Returns
    -------
    above : float
        One-sided p-value against "the level is at most the value".
    below : float
        One-sided p-value against "the level is larger than the value".

    Examples
    --------
    >>> above, below = level_pvalues(np.arange(3000.0)[::-1] / 3000, 0.001, 0.999)
    >>> round(above, 2), round(below, 2)  # two of 3,000 lie above, three are expected
    (0.8, 0.42)
    """
    n, over = descending.size, int(Descending.of(descending).above(value))
    above = 1.0 if over == 0 else float(special.bdtrc(over - 1, n, share))
    return max(above, 1e-300), float(special.bdtr(over, n, share))


def level_interval(
    descending: Sample, share: float, level: float, *, lowest: float = -math.inf, highest: float = math.inf
) -> tuple[float, float]:
    """Return the values at which neither test of `level_pvalues` rejects at half of ``1 - level``.

    Parameters
    ----------
    descending, share
        As in `level_pvalues`.
    level : float
        Coverage, at least.
    lowest, highest : float
        What is possible; taken where the sample does not reach.

    Returns
    -------
    low, high : float
        Two order statistics, or what is possible.

    Examples
    --------
    >>> level_interval(np.arange(1000.0)[::-1], 0.1, 0.95)
    (880.0, 918.0)
    >>> level_interval(np.arange(1000.0)[::-1], 0.001, 0.95, highest=2000.0)
    (996.0, 2000.0)
    """
    n, side = descending.size, (1 - level) / 2
    many, few = _least_above(n, share, side), _most_below(n, share, side)
    sample = Descending.of(descending)
    low = lowest if many > n else float(sample.at(many - 1))
    high = highest if few < 0 else float(sample.at(few))
    return max(low, lowest), min(high, highest)


def _least_above(n: int, share: float, side: float) -> int:
    """Return the smallest count that so many or more exceed with probability at most `side`."""
    k = max(math.floor(float(special.bdtrik(1 - side, n, share))) - 1, 0)
    while k <= n and (k == 0 or float(special.bdtrc(k - 1, n, share)) > side):
        k += 1
    return k


def _most_below(n: int, share: float, side: float) -> int:
    """Return the largest count whose distribution function is at most `side`; -1 when none is."""
    if float(special.bdtr(0, n, share)) > side:
        return -1
    k = math.floor(float(special.bdtrik(side, n, share))) + 1
    while float(special.bdtr(k, n, share)) > side:
        k -= 1
    return k


def _deviates(n: int, share: float) -> tuple[FloatArray, FloatArray]:
    """Return, for every count that matters, how far it is too large, and too small, as normal deviates above 0."""
    most = min(n, math.ceil(n * share + 40 * math.sqrt(n * share + 1) + 60))
    k = np.arange(most + 1.0)
    large = np.concatenate([[1.0], special.bdtrc(k[:-1], n, share)])
    small = special.bdtr(k, n, share)
    large, small = (np.maximum(-special.ndtri(np.clip(p, 1e-300, 1.0)), 0.0) for p in (large, small))
    return large, small


def difference_pvalue(a: Sample, b: Sample, share: float, value: float = 0.0, *, highest_b: float = math.inf) -> float:
    """Test whether the level of a exceeds that of b by more than a value.

    Parameters
    ----------
    a, b : ndarray or Descending
        The samples, sorted downwards.
    share : float
        Share of either population above its level.
    value : float
        The difference.
    highest_b : float
        Largest possible value of b.

    Returns
    -------
    float
        One-sided p-value against "the level of a minus that of b is at most the value".

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, y = -np.sort(-rng.normal(1, 1, size=2000)), -np.sort(-rng.normal(0, 1, size=3000))
    >>> difference_pvalue(x, y, 0.01) < 0.001 < difference_pvalue(x, y, 0.01, 0.7)
    True
    """
    a, b = Descending.of(a), Descending.of(b)
    large, _ = _deviates(a.size, share)
    _, small = _deviates(b.size, share)
    top = a.records(large.size)
    over_a = a.above(top)
    at = top - value  # the second level at which the first lies right at one of its sample
    over_b = np.minimum(b.reaching(at), small.size - 1)
    square = np.where(at <= highest_b, large[over_a] ** 2 + small[over_b] ** 2, math.inf)
    return float(special.ndtr(-math.sqrt(min(float(square.min()), 1400.0)))) if square.min() > 0 else 1.0


def difference_interval(
    a: Sample, b: Sample, share: float, level: float, *, highest: tuple[float, float] = (math.inf, math.inf)
) -> tuple[float, float]:
    """Return the differences at which `difference_pvalue`, either way, is above half of ``1 - level``.

    Parameters
    ----------
    a, b, share
        As in `difference_pvalue`.
    level : float
        Coverage.
    highest : tuple of float
        Largest possible value of a and of b.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, y = -np.sort(-rng.normal(1, 1, size=2000)), -np.sort(-rng.normal(0, 1, size=3000))
    >>> low, high = difference_interval(x, y, 0.01, 0.95)
    >>> bool(0 < low < 1 < high)
    True
    """
    a, b = Descending.of(a), Descending.of(b)
    return _lower(a, b, share, level, highest[1]), 0.0 - _lower(b, a, share, level, highest[0])


def _lower(a: Descending, b: Descending, share: float, level: float, highest_b: float) -> float:
    allowed = float(special.ndtri((1 - level) / 2)) ** 2
    large, _ = _deviates(a.size, share)
    _, small = _deviates(b.size, share)
    top = a.records(large.size)
    left = allowed - large[a.above(top)] ** 2
    top, left = top[left > 0], left[left > 0]
    # The deviates of small counts fall as counts rise: the smallest count that is not too small.
    least = np.searchsorted(-(small**2), -left, side="right")
    reached = np.where(least > 0, b.at(np.minimum(np.maximum(least, 1), b.size) - 1), math.inf)
    return float((top - np.minimum(reached, highest_b)).min(initial=math.inf))
