"""The sum of independent hypergeometric counts, against its enumeration and against draws of its law."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from evenhand.kernels.counts import hypergeometric_sums
from evenhand.kernels.counts.hypergeometric_sums import HypergeometricSum


def listed(first, second, successes):
    """Add up the probability of every combination of counts: slow and plain."""
    law = {}
    parts = [range(max(0, s - m), min(n, s) + 1) for n, m, s in zip(first, second, successes, strict=True)]
    for counts in itertools.product(*parts):
        chance = math.prod(
            stats.hypergeom.pmf(x, n + m, s, n) for x, n, m, s in zip(counts, first, second, successes, strict=True)
        )
        law[sum(counts)] = law.get(sum(counts), 0.0) + chance
    return law


@pytest.mark.parametrize(
    ("first", "second", "successes"),
    [
        ([3, 5, 2], [4, 1, 6], [3, 4, 5]),
        ([1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1]),
        ([4], [9], [6]),
        ([2, 8], [7, 3], [0, 5]),
    ],
)
@pytest.mark.parametrize("midp", [False, True])
def test_pvalues_are_those_of_the_enumeration(first, second, successes, midp):
    law, known = HypergeometricSum(first, second, successes), listed(first, second, successes)
    assert law.mean == pytest.approx(sum(x * p for x, p in known.items()))
    assert law.variance == pytest.approx(sum((x - law.mean) ** 2 * p for x, p in known.items()))
    for at in known:
        gap = abs(at - law.mean)
        whole = sum(p for x, p in known.items() if abs(x - law.mean) >= gap - 1e-9)
        tie = sum(p for x, p in known.items() if abs(abs(x - law.mean) - gap) < 1e-9)
        expected = 1.0 if gap < 1e-9 else whole - (tie / 2 if midp else 0)
        assert law.pvalue(at, "two-sided", midp=midp) == pytest.approx(expected, rel=1e-9)
        upper = sum(p for x, p in known.items() if x >= at) - (known[at] / 2 if midp else 0)
        assert law.pvalue(at, "greater", midp=midp) == pytest.approx(upper, rel=1e-9)
    assert law.floor("two-sided") == pytest.approx(min(law.pvalue(at, "two-sided") for at in known))


def test_one_stratum_is_scipys_hypergeometric():
    law = HypergeometricSum([300], [500], [90])
    assert law.tail(45, upper=True) == pytest.approx(stats.hypergeom.sf(44, 800, 90, 300), rel=1e-9)
    assert law.tail(20, upper=False) == pytest.approx(stats.hypergeom.cdf(20, 800, 90, 300), rel=1e-9)


def test_equal_strata_folded_by_doubling_are_the_same_as_one_by_one():
    many = HypergeometricSum([3] * 37, [4] * 37, [2] * 37)
    law = np.ones(1)
    for _ in range(37):
        law = np.convolve(law, stats.hypergeom.pmf(np.arange(3), 7, 2, 3))
    assert many.tail(40, upper=True) == pytest.approx(law[40:].sum(), rel=1e-9)


def test_the_normal_law_takes_over_where_its_error_is_small(monkeypatch):
    rng = np.random.default_rng(1)
    first, second = rng.integers(1, 260, 400), rng.integers(1, 260, 400)
    law = HypergeometricSum(first, second, rng.binomial(first + second, 0.3))
    assert 4000 < law.variance < hypergeometric_sums.EXACT_VARIANCE
    monkeypatch.setattr(hypergeometric_sums, "EXACT_VARIANCE", 1000.0)
    limit = HypergeometricSum(*law._strata.T)
    assert not limit.exact
    for z in (-4, -2, -1, 1, 2, 4):
        at = round(law.mean + z * math.sqrt(law.variance))
        assert limit.tail(at, upper=z > 0) == pytest.approx(law.tail(at, upper=z > 0), rel=1e-3)
        assert limit.pvalue(at, "two-sided", midp=True) == pytest.approx(
            law.pvalue(at, "two-sided", midp=True), rel=1e-3
        )


def test_what_is_left_out_is_never_reported_as_less_likely_than_it_may_be():
    law = HypergeometricSum([500] * 4, [500] * 4, [500] * 4)
    assert law.pvalue(2000, "greater") == pytest.approx(hypergeometric_sums.LOST)
