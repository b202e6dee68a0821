"""The exact test of rates against brute force and scipy; intervals, equivalence, size."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from evenhand.errors import UsageError
from evenhand.inference.rates.conditional import exact_pvalue
from evenhand.inference.rates.equality import equality_pvalue
from evenhand.inference.rates.samples import RateSamples
from evenhand.inference.samples import Draws, Samples
from evenhand.kernels.counts.binomial import ratio_interval, score_interval

EXACT = Draws()
_: type[Samples] = RateSamples  # the protocol holds, says the type checker

FNR = {"numerator": (2,), "denominator": (2, 3)}


def _all_assignments(x, n, alternative):
    """Rearrange the labels of every row in every way: the definition of the permutation test."""
    rows = [1] * x[0] + [0] * (n[0] - x[0]) + [1] * x[1] + [0] * (n[1] - x[1])
    observed = x[0] / n[0] - x[1] / n[1]
    hits = ties = total = 0
    for chosen in itertools.combinations(range(len(rows)), n[0]):
        first = sum(rows[i] for i in chosen)
        value = first / n[0] - (sum(rows) - first) / n[1]
        at, seen = {
            "two-sided": (abs(value), abs(observed)),
            "greater": (value, observed),
            "less": (-value, -observed),
        }[alternative]
        hits += at >= seen - 1e-12
        ties += abs(at - seen) < 1e-12
        total += 1
    return hits / total, (hits - ties / 2) / total


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@pytest.mark.parametrize(
    ("x", "n"),
    [
        ((3, 1), (4, 4)),
        ((1, 3), (5, 6)),
        ((0, 4), (3, 8)),
        ((2, 2), (4, 4)),
        ((4, 2), (6, 3)),
        ((0, 0), (3, 4)),
        ((3, 4), (3, 4)),
    ],
)
def test_exact_test_is_all_permutations(x, n, alternative):
    whole, half = _all_assignments(x, n, alternative)
    assert exact_pvalue(x, n, alternative)[0] == pytest.approx(whole, rel=1e-12)
    assert exact_pvalue(x, n, alternative, midp=True)[0] == pytest.approx(half, rel=1e-12)


def test_against_scipy_on_random_tables():
    rng = np.random.default_rng(0)
    for _ in range(100):
        n = rng.integers(1, 80, 2)
        x = rng.binomial(n, rng.random())
        table = np.stack([x, n - x], 1)
        for side in ("greater", "less"):
            expected = stats.fisher_exact(table, alternative=side).pvalue
            assert exact_pvalue(x, n, side)[0] == pytest.approx(expected, rel=1e-11)
        law = stats.hypergeom(n.sum(), n[0], x.sum())
        k = np.arange(law.support()[0], law.support()[1] + 1)
        gap = np.abs(k * n.sum() - x.sum() * n[0])
        extreme = gap >= gap[k == x[0]]
        p, floor = exact_pvalue(x, n)
        assert p == pytest.approx(law.pmf(k)[extreme].sum(), rel=1e-11)
        assert floor == pytest.approx(law.pmf(k)[gap == gap.max()].sum(), rel=1e-11)
        assert floor <= p * (1 + 1e-12)


def test_hundred_million_trials():
    x, n = np.array([50_000_000, 49_985_000]), np.array([10**8, 10**8])
    result = RateSamples.from_counts(x, n).test(0, 1, EXACT)
    assert result.pvalue == pytest.approx(2 * stats.norm.sf(abs(result.statistic)), rel=1e-3)
    far = RateSamples.from_counts([50_000_000, 49_500_000], n).test(0, 1, EXACT)
    assert 0 < far.pvalue < 1e-300 or far.pvalue == 0


def test_result_fields():
    samples = RateSamples([[90, 10, 12, 28], [50, 5, 4, 36]], **FNR)
    result = samples.test(0, 1, EXACT)
    assert result.exact
    assert "exact unconditional test" in result.method
    conditional = samples.test(0, 1, replace(EXACT, method="exact"))
    assert "absolute difference of rates at least the observed" in conditional.method
    assert conditional.pvalue == exact_pvalue((12, 4), (40, 40))[0] > result.pvalue
    assert result.pvalue == result.pvalue_low == result.pvalue_high
    assert result.statistic == pytest.approx(
        math.sqrt(stats.chi2_contingency([[12, 28], [4, 36]], correction=False)[0])
    )
    assert samples.counts[0] == {"rows": 140, "denominator": 40, "numerator": 12}
    assert samples.reason == ("", "")
    turned = samples.test(1, 0, EXACT)
    assert turned.pvalue == result.pvalue
    assert turned.statistic == -result.statistic
    assert samples.test(1, 0, replace(EXACT, alternative="less")).pvalue == pytest.approx(
        samples.test(0, 1, replace(EXACT, alternative="greater")).pvalue, rel=1e-12
    )


def test_random_permutations_agree_with_the_sum():
    samples = RateSamples([[90, 10, 12, 28], [50, 5, 4, 36]], **FNR)
    for side in ("two-sided", "greater", "less"):
        exact = samples.test(0, 1, Draws(alternative=side, method="exact")).pvalue
        drawn = samples.test(0, 1, Draws(alternative=side, method="permutation", n_resamples=20_000))
        assert drawn.pvalue_low <= exact <= drawn.pvalue_high
        assert not drawn.exact


def test_permuting_within_outcome_is_the_exact_test_for_fnr_only():
    table = [[90, 10, 12, 28], [50, 5, 4, 36]]
    fnr = RateSamples(table, **FNR)
    assert fnr.test(0, 1, Draws(permute="outcome")).pvalue == fnr.test(0, 1, Draws(method="exact")).pvalue
    assert fnr.test(0, 1, Draws(permute="all", n_resamples=99)).method.find("all rows") > 0
    precision = RateSamples(table, numerator=(3,), denominator=(1, 3))
    assert "within outcome" in precision.test(0, 1, Draws(permute="outcome", n_resamples=99)).method
    accuracy = RateSamples(table, numerator=(0, 3), denominator=(0, 1, 2, 3))
    assert accuracy.test(0, 1, Draws(permute="all")).pvalue == accuracy.test(0, 1, Draws(method="exact")).pvalue


def test_empty_denominator_has_no_value():
    samples = RateSamples([[5, 5, 0, 0], [5, 5, 3, 3]], **FNR, empty_reason="has no rows with outcome 1")
    assert samples.reason == ("has no rows with outcome 1", "")
    assert np.isnan(samples.estimate[0])
    result = samples.test(0, 1, EXACT)
    assert math.isnan(result.pvalue)
    assert math.isnan(result.statistic)
    assert result.warnings == ("A group has no rows with outcome 1.",)
    assert math.isnan(samples.test_global([0, 1], EXACT).pvalue)
    assert math.isnan(samples.interval(0, 1, level=0.95, ratio=False, draws=EXACT)[0])
    assert math.isnan(samples.equivalence(0, 1, low=-0.1, high=0.1, ratio=False, draws=EXACT))
    assert math.isnan(samples.standard_error(0, 1))


@pytest.mark.parametrize("successes", [[0, 0, 0], [10, 20, 30]])
def test_constant_rates_are_no_evidence(successes):
    samples = RateSamples.from_counts(successes, [10, 20, 30])
    result = samples.test(0, 1, EXACT)
    assert (result.statistic, result.pvalue) == (0, 1)
    assert samples.test_global([0, 1, 2], EXACT).pvalue == 1
    low, high, _kind = samples.interval(0, 1, level=0.95, ratio=False, draws=EXACT)
    assert low < 0 < high
    assert samples.standard_error(0, 1) > 0


def test_tiny_groups_warn_that_nothing_can_be_shown():
    result = RateSamples.from_counts([1, 0], [1, 3]).test(0, 1, EXACT)
    # One of one against none of three: p (1 - p)^3 is largest at 1/4; its mirror image has the same chance at 3/4.
    assert result.pvalue == pytest.approx(result.floor)
    assert result.floor == pytest.approx(0.125, abs=1e-6)  # both tables together, at 1/2
    assert any("below 0.125" in text for text in result.warnings)
    conditional = RateSamples.from_counts([1, 0], [1, 3]).test(0, 1, Draws(method="exact"))
    assert (conditional.floor, conditional.pvalue) == pytest.approx((0.25, 0.25))


def test_counts_without_cells_permute_within_the_denominator():
    samples = RateSamples.from_counts([12, 4], [40, 40], [90, 60])
    assert samples.test(0, 1, Draws(permute="outcome")).pvalue == samples.test(0, 1, Draws(method="exact")).pvalue
    assert samples.test(0, 1, Draws(permute="all")).pvalue != samples.test(0, 1, Draws(method="exact")).pvalue


@pytest.mark.parametrize("side", ["two-sided", "greater", "less"])
def test_naming_the_groups_otherwise_gives_the_same_digits(side):
    rng = np.random.default_rng(3)
    turned = {"two-sided": "two-sided", "greater": "less", "less": "greater"}[side]
    for _ in range(50):
        n = rng.integers(1, 500, 2)
        x = rng.binomial(n, 0.3)
        assert exact_pvalue(x, n, side) == exact_pvalue(x[::-1], n[::-1], turned)


def test_global_test_enumerated_drawn_and_by_the_limit():
    samples = RateSamples.from_counts([9, 4, 3], [20, 25, 15])
    exact = samples.test_global([0, 1, 2], EXACT)
    table = np.array([[9, 11], [4, 21], [3, 12]])
    assert exact.exact
    assert exact.statistic == pytest.approx(stats.chi2_contingency(table, correction=False).statistic)
    brute = hits = 0.0
    for i, j in itertools.product(range(17), range(17)):
        k = 16 - i - j
        if 0 <= k <= 15:
            weight = math.comb(20, i) * math.comb(25, j) * math.comb(15, k)
            cells = np.array([[i, 20 - i], [j, 25 - j], [k, 15 - k]])
            expected = np.outer([20, 25, 15], [16, 44]) / 60
            brute += weight
            hits += weight * (((cells - expected) ** 2 / expected).sum() >= exact.statistic * (1 - 1e-9))
    assert exact.pvalue == pytest.approx(hits / brute, rel=1e-10)
    drawn = samples.test_global([2, 0, 1], Draws(method="permutation", n_resamples=20_000))
    assert drawn.pvalue_low <= exact.pvalue <= drawn.pvalue_high
    assert samples.test_global([0, 1, 2], Draws(method="limit")).pvalue == pytest.approx(
        stats.chi2_contingency(table, correction=False).pvalue
    )


def test_global_test_does_not_depend_on_the_order_of_groups():
    samples = RateSamples.from_counts([900, 880, 1000, 950], [5000, 5100, 5200, 5050])
    draws = Draws(n_resamples=500, name="fnr")
    first = samples.test_global([0, 1, 2, 3], draws)
    assert not first.exact
    assert first.pvalue == samples.test_global([2, 3, 1, 0], draws).pvalue


def test_global_test_of_two_groups_is_the_pair_test():
    samples = RateSamples.from_counts([12, 4], [40, 40])
    assert samples.test_global([0, 1], EXACT).pvalue == samples.test(0, 1, EXACT).pvalue


def test_f1_is_tested_through_its_jaccard_rate():
    table = 20 * np.array([[50, 8, 6, 20], [40, 12, 15, 18]])  # with fewer trials equivalence is exact
    samples = RateSamples(table, numerator=(3,), denominator=(1, 2, 3), transform="f1")
    tp, fp, fn = table[:, 3], table[:, 1], table[:, 2]
    assert samples.estimate == pytest.approx(2 * tp / (2 * tp + fp + fn))
    assert samples.test(0, 1, Draws(method="exact")).pvalue == exact_pvalue(tp, tp + fp + fn)[0]
    assert samples.test(0, 1, EXACT).pvalue == equality_pvalue(tuple(tp.tolist()), tuple((tp + fp + fn).tolist()))[0]
    for ratio, value in (
        (False, samples.estimate[0] - samples.estimate[1]),
        (True, samples.estimate[0] / samples.estimate[1]),
    ):
        low, high, kind = samples.interval(0, 1, level=0.95, ratio=ratio, draws=EXACT)
        assert low < value < high
        assert kind == "likelihood-root"
        null = 1.0 if ratio else 0.0
        assert samples.beyond(0, 1, low=null, high=null, ratio=ratio, draws=EXACT) == pytest.approx(
            samples.test(0, 1, EXACT).pvalue, rel=1e-9
        )
        at = samples.beyond(0, 1, low=0.0 if ratio else -1.0, high=low, ratio=ratio, draws=EXACT)
        assert at == pytest.approx(0.05, rel=1e-6)
    j = tp.sum() / (tp + fp + fn).sum()
    pooled = math.sqrt(j * (1 - j) * (1 / (tp + fp + fn)).sum())
    assert samples.standard_error(0, 1) == pytest.approx(pooled * 2 / (1 + j) ** 2)


def test_equivalence_in_large_samples_is_the_score_interval_turned_round():
    x, n = [300, 290], [1000, 1000]
    samples = RateSamples.from_counts(x, n)
    low, high = (float(end) for end in score_interval(x, n, [1, -1], 0.9))
    assert samples.equivalence(0, 1, low=low, high=0.5, ratio=False, draws=EXACT) == pytest.approx(0.05, abs=1e-7)
    assert samples.equivalence(0, 1, low=-0.5, high=high, ratio=False, draws=EXACT) == pytest.approx(0.05, abs=1e-7)
    low, high = (float(end) for end in ratio_interval(x, n, 0.9))
    assert samples.equivalence(0, 1, low=low, high=9.0, ratio=True, draws=EXACT) == pytest.approx(0.05, abs=1e-7)
    assert samples.equivalence(0, 1, low=0.1, high=high, ratio=True, draws=EXACT) == pytest.approx(0.05, abs=1e-7)
    assert samples.equivalence(0, 1, low=0.02, high=0.05, ratio=False, draws=EXACT) > 0.5


def test_size_of_the_exact_test_by_summing_all_samples():
    # Not a simulation: the probability of rejection over all pairs of binomials, at several rates.
    n = (6, 25)
    x0, x1 = np.meshgrid(np.arange(n[0] + 1), np.arange(n[1] + 1), indexing="ij")
    p = np.array([[exact_pvalue((i, j), n)[0] for j in range(n[1] + 1)] for i in range(n[0] + 1)])
    for rate in (0.02, 0.1, 0.3, 0.5, 0.9):
        law = stats.binom.pmf(x0, n[0], rate) * stats.binom.pmf(x1, n[1], rate)
        assert law[p <= 0.05].sum() <= 0.05


@pytest.mark.parametrize(("n", "rate"), [((40, 160), 0.1), ((20, 20), 0.3), ((100, 30), 0.5)])
def test_coverage_of_the_score_interval_by_summing_all_samples(n, rate):
    x = np.stack(np.meshgrid(np.arange(n[0] + 1), np.arange(n[1] + 1), indexing="ij"), -1).reshape(-1, 2)
    law = stats.binom.pmf(x[:, 0], n[0], rate) * stats.binom.pmf(x[:, 1], n[1], rate)
    likely = law > 1e-7
    low, high = score_interval(x[likely], n, [1, -1], 0.95)
    assert law[likely][(low <= 0) & (high >= 0)].sum() == pytest.approx(0.95, abs=0.012)
    low, high = ratio_interval(x[likely], n, 0.95)
    assert law[likely][(low <= 1) & (high >= 1)].sum() == pytest.approx(0.95, abs=0.012)


def test_bad_requests():
    with pytest.raises(UsageError, match="identity or f1"):
        RateSamples([[1, 1, 1, 1]], **FNR, transform="log")
    with pytest.raises(UsageError, match="among the denominator"):
        RateSamples([[1, 1, 1, 1]], numerator=(0,), denominator=(2, 3))
