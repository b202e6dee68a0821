"""Scott-Knott ranking: methods sorted by their mean and cut into ranks that differ visibly and significantly.

Samples are ordered by mean and cut where the variance between the two parts is largest; a cut stands if a bootstrap
test tells the parts apart and Cliff's delta is not negligible. Each part is then cut in the same way. Used in software
engineering to compare learners (A. Scott, M. Knott, Biometrics 1974; N. Mittas, L. Angelis, IEEE TSE 2013). It keeps no
error rate over all its cuts and takes repetitions on overlapping data as independent: a convention, not a proof.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenhand.arrays import FloatArray, IntArray

NEGLIGIBLE = 0.147  # Cliff's delta below which two samples count as alike (J. Romano and others 2006)


def cliffs_delta(first: FloatArray, second: FloatArray) -> float:
    """Return how much oftener a value of the first sample is larger than smaller than one of the second.

    Parameters
    ----------
    first, second : ndarray
        Two samples.

    Returns
    -------
    float
        Between -1 and 1.

    Examples
    --------
    >>> cliffs_delta(np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0]))
    0.0
    """
    ordered = np.sort(second)
    below = np.searchsorted(ordered, first, side="left").sum()
    above = (second.size - np.searchsorted(ordered, first, side="right")).sum()
    return float(below - above) / (first.size * second.size)


def bootstrap_pvalue(first: FloatArray, second: FloatArray, rng: np.random.Generator, n_resamples: int = 1000) -> float:
    """Test equal means by resampling both samples, shifted to a common mean.

    Parameters
    ----------
    first, second : ndarray
        Two samples.
    rng : Generator
        Draws.
    n_resamples : int
        How many.

    Returns
    -------
    float
        Two-sided, of the difference in means over its standard error; 1 for two samples without spread and with one
        mean, and the smallest possible value for two without spread and with two.

    Examples
    --------
    >>> from evenhand.kernels.shared.seeds import stream
    >>> bootstrap_pvalue(np.arange(10.0), np.arange(10.0) + 20, stream(0, "example")) < 0.01
    True
    """
    observed = abs(_studentised(first[None], second[None])[0])
    together = np.concatenate([first, second]).mean()
    drawn = [
        sample[rng.integers(sample.size, size=(n_resamples, sample.size))] - sample.mean() + together
        for sample in (first, second)
    ]
    reached = np.abs(_studentised(drawn[0], drawn[1])) >= observed - 1e-12
    return float(1 + reached.sum()) / (1 + n_resamples)


def _studentised(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the differences of means over their standard errors, one for each row."""
    gap = first.mean(axis=1) - second.mean(axis=1)
    error = np.sqrt(sum(s.var(axis=1, ddof=1) / s.shape[1] if s.shape[1] > 1 else 0.0 * gap for s in (first, second)))
    none = error <= 1e-12
    without_spread = np.where(np.abs(gap) > 1e-12, np.copysign(np.inf, gap), 0.0)
    return np.where(none, without_spread, gap / np.where(none, 1.0, error))


def scott_knott(
    samples: Sequence[FloatArray],
    rng: np.random.Generator,
    *,
    alpha: float = 0.05,
    negligible: float = NEGLIGIBLE,
    n_resamples: int = 1000,
) -> IntArray:
    """Rank samples by their means; samples of one rank are not told apart.

    Parameters
    ----------
    samples : sequence of ndarray
        One sample for each method.
    rng : Generator
        For the bootstrap.
    alpha : float
        Level of each cut's test.
    negligible : float
        Cliff's delta that a cut must reach.
    n_resamples : int
        Of the bootstrap.

    Returns
    -------
    ndarray of int
        Rank of each sample, 0 for the smallest mean.

    Examples
    --------
    >>> from evenhand.kernels.shared.seeds import stream
    >>> low, same, high = np.arange(8.0), np.arange(8.0) + 0.1, np.arange(8.0) + 30
    >>> scott_knott([high, low, same], stream(0, "example")).tolist()
    [1, 0, 0]
    """
    order = np.argsort([float(s.mean()) for s in samples], kind="stable")
    ranks: IntArray = np.zeros(len(samples), dtype=np.int64)
    waiting, rank = [list(order.tolist())], 0
    while waiting:
        part = waiting.pop()
        cut = _best_cut([samples[i] for i in part])
        if cut:
            low, high = (np.concatenate([samples[i] for i in side]) for side in (part[:cut], part[cut:]))
            apart = abs(cliffs_delta(high, low)) >= negligible
            if apart and bootstrap_pvalue(low, high, rng, n_resamples) <= alpha:
                waiting += [part[cut:], part[:cut]]  # the lower part is looked at next
                continue
        ranks[part] = rank
        rank += 1
    return ranks


def _best_cut(samples: Sequence[FloatArray]) -> int:
    """Return after how many samples the variance between two parts is largest; 0 where there is nothing to cut."""
    if len(samples) < 2:
        return 0
    sizes = np.cumsum([s.size for s in samples])
    sums = np.cumsum([float(s.sum()) for s in samples])
    mean = sums[-1] / sizes[-1]
    left, right = sums[:-1] / sizes[:-1], (sums[-1] - sums[:-1]) / (sizes[-1] - sizes[:-1])
    between = sizes[:-1] * (left - mean) ** 2 + (sizes[-1] - sizes[:-1]) * (right - mean) ** 2
    return int(between.argmax()) + 1
