"""What a test returns, and how a Monte-Carlo p-value is made."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy import special

from evenhand.arrays import BoolArray, FloatArray

# Two statistics that differ by rounding only are ties and must count as "at least as extreme".
TIE = 1e-9

SMALLEST = float(np.finfo(np.float64).tiny)

ALTERNATIVES = ("two-sided", "greater", "less")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TestResult:
    """One test's answer."""

    __test__ = False  # a name pytest would collect

    statistic: float  # the studentised value; NaN where undefined
    pvalue: float  # NaN where undefined
    method: str  # how the p-value was made, in words a reader understands
    exact: bool  # True when the whole permutation distribution was enumerated or summed
    n_resamples: int = 0  # random draws made; 0 when exact or by a limit law
    floor: float = 0.0  # the smallest p-value this test could have given on data of this size
    # pvalue_low, pvalue_high: 99 % Monte-Carlo interval of the p-value; equal to it when no draws were made.
    pvalue_low: float = math.nan
    pvalue_high: float = math.nan
    # The statistic on permuted data (at most a few thousand values, for drawing); empty when none.
    null: FloatArray = field(default_factory=lambda: np.empty(0))
    warnings: tuple[str, ...] = ()  # where this test is known to be less reliable and the data are there

    def __post_init__(self) -> None:
        for name in ("pvalue_low", "pvalue_high"):
            if math.isnan(getattr(self, name)):
                object.__setattr__(self, name, self.pvalue)
        # A probability too small for a double is reported as the smallest one: an upper bound, and never 0.
        for name in ("pvalue", "pvalue_high"):
            if getattr(self, name) < SMALLEST:
                object.__setattr__(self, name, SMALLEST)


def undefined(reason: str) -> TestResult:
    """Return the answer of a test that cannot be made: NaN, with a sentence that says why.

    Examples
    --------
    >>> undefined("A group has no rows.").pvalue
    nan
    """
    return TestResult(statistic=math.nan, pvalue=math.nan, method="none", exact=False, warnings=(reason,))


def extremes(null: FloatArray, observed: float, alternative: str, *, strictly: bool = False) -> BoolArray:
    """Mark the null values at least as extreme as the observed one, ties by rounding included.

    Parameters
    ----------
    null : ndarray
        Statistic on permuted data. NaN (no value) counts as extreme: never in the user's favour.
    observed : float
        Statistic on the data.
    alternative : {"two-sided", "greater", "less"}
        Two-sided compares absolute values.
    strictly : bool
        Leave ties out.

    Examples
    --------
    >>> extremes(np.array([0.0, 2.0, -2.0, float("nan")]), 2.0, "two-sided").tolist()
    [False, True, True, True]
    """
    if alternative == "two-sided":
        null, observed = np.abs(null), abs(observed)
    elif alternative == "less":
        null, observed = -null, -observed
    slack = TIE * max(1.0, abs(observed)) if math.isfinite(observed) else 0.0
    return (null > observed + slack if strictly else null >= observed - slack) | np.isnan(null)


def share_limits(hits: int, n: int) -> tuple[float, float]:
    """Return the exact 99 % limits of a share of which `hits` of `n` draws were seen."""
    low = 0.0 if hits == 0 else float(special.betaincinv(hits, n - hits + 1, 0.005))
    return low, 1.0 if hits == n else float(special.betaincinv(hits + 1, n - hits, 0.995))


def monte_carlo(null: FloatArray, observed: float, alternative: str, *, method: str) -> TestResult:
    """Turn permuted statistics into a p-value with the +1 rule and its Monte-Carlo interval.

    Examples
    --------
    >>> monte_carlo(np.zeros(99), 1.0, "two-sided", method="demo").pvalue
    0.01
    """
    n = int(null.size)
    hits = int(extremes(null, observed, alternative).sum())
    low, high = share_limits(hits, n)
    pvalue = (1 + hits) / (n + 1)
    return TestResult(
        statistic=float(observed),
        pvalue=pvalue,
        method=method,
        exact=False,
        n_resamples=n,
        floor=1 / (n + 1),
        pvalue_low=min(low, pvalue),
        pvalue_high=max(high, pvalue),
        null=null[:2000].copy(),
    )
