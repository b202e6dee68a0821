"""Rates compared within strata, against published numbers, enumeration and plain formulas."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy import optimize, special, stats

from evenhand.inference.samples import Draws
from evenhand.inference.strata.averages import StratifiedAverage
from evenhand.inference.strata.rates import StratifiedRates
from evenhand.inference.strata.score import restricted_rates
from evenhand.kernels.counts import binomial

PLAIN, MIDP, LIMIT = Draws(), Draws(midp=True), Draws(method="limit", midp=True)

# Berkeley's six largest departments in 1973, Bickel, Hammel and O'Connell (1975), as in R's UCBAdmissions.
MEN = ([512, 353, 120, 138, 53, 22], [825, 560, 325, 417, 191, 373])
WOMEN = ([89, 17, 202, 131, 94, 24], [108, 25, 593, 375, 393, 341])

# Gart (1985), Biometrika 72, 673-677, table 1; also in the R packages PF (Table6) and ratesci (test3.R).
GART = (([4, 2, 4, 1], [16, 16, 18, 15]), ([5, 3, 10, 3], [79, 87, 90, 82]))


def of(first, second, **more):
    return StratifiedRates([first[0], second[0]], [first[1], second[1]], **more)


def test_berkeley_is_the_test_of_cochran_mantel_and_haenszel():
    samples = of(MEN, WOMEN)
    # R: mantelhaen.test(UCBAdmissions, correct = FALSE) gives 1.5246, df = 1, p-value = 0.2169.
    assert samples.test(0, 1, PLAIN).statistic ** 2 == pytest.approx(1.5246, abs=5e-5)
    assert samples.test(0, 1, LIMIT).pvalue == pytest.approx(0.2169, abs=5e-4)  # here with the strata's own spread
    everybody = samples.test_global([0, 1], PLAIN)
    assert everybody.statistic == pytest.approx(1.5246, abs=5e-5)
    assert everybody.pvalue == pytest.approx(0.2169, abs=5e-5)
    assert samples.difference(0, 1) < 0  # men were admitted less often within departments
    assert samples.homogeneity(0, 1, ratio=False).pvalue < 0.01  # department A stands out


def test_the_exact_pvalue_is_that_of_enumerated_tables():
    first, second = ([3, 1, 2], [4, 2, 5]), ([1, 2, 0], [5, 3, 3])
    samples = of(first, second)
    x, n = np.array(first[0]), np.array(first[1])
    everyone, total = n + second[1], x + second[0]
    law = {}
    for counts in product(*(range(max(0, s - m), min(k, s) + 1) for s, k, m in zip(total, n, second[1], strict=True))):
        chance = math.prod(
            stats.hypergeom.pmf(c, e, s, k) for c, e, s, k in zip(counts, everyone, total, n, strict=True)
        )
        law[sum(counts)] = law.get(sum(counts), 0) + chance
    mean = float((n * total / everyone).sum())
    expected = sum(p for k, p in law.items() if abs(k - mean) >= abs(x.sum() - mean) - 1e-9)
    result = samples.test(0, 1, PLAIN)
    assert result.exact
    assert result.pvalue == pytest.approx(expected)
    assert samples.test(1, 0, PLAIN).pvalue == result.pvalue
    one_sided = sum(p for k, p in law.items() if k >= x.sum())
    assert samples.test(0, 1, Draws(alternative="greater")).pvalue == pytest.approx(one_sided)
    assert samples.test(1, 0, Draws(alternative="less")).pvalue == pytest.approx(one_sided)


def efficient_score(ratio):
    """Gart's statistic of a common ratio: efficient weights, no correction of the variance; and the strata's parts."""
    x, n = (np.array([GART[0][k], GART[1][k]], dtype=float).T for k in (0, 1))
    p = restricted_rates(x, n, ratio, ratio=True)
    variance = (p * (1 - p) * (1, ratio**2) / n).sum(1)
    gap = x[:, 0] / n[:, 0] - ratio * x[:, 1] / n[:, 1]
    weight = p[:, 1] / variance
    return float(weight @ gap / math.sqrt(weight**2 @ variance)), gap**2 / variance


def test_the_restricted_rates_give_garts_published_interval_and_homogeneity():
    """1.35 to 5.03 around 2.65, and Q = .954 on 3 degrees of freedom, p = .812 (R packages ratesci and PF)."""
    point = optimize.brentq(lambda r: efficient_score(r)[0], 1, 5)
    low = optimize.brentq(lambda r: efficient_score(r)[0] - 1.959964, 1, 2.6)
    high = optimize.brentq(lambda r: efficient_score(r)[0] + 1.959964, 2.7, 9)
    assert (round(point, 2), round(low, 2), round(high, 2)) == (2.65, 1.35, 5.03)
    q = float(efficient_score(point)[1].sum())
    assert q == pytest.approx(0.954, abs=5e-4)
    assert special.chdtrc(3, q) == pytest.approx(0.812, abs=5e-4)


def test_ours_with_mantel_haenszel_weights_is_near_garts():
    samples = of(*GART)
    one, two = samples.values(0, 1)
    x, n, y, m = (np.array(part, dtype=float) for side in GART for part in side)
    assert one / two == pytest.approx((x * m / (n + m)).sum() / (y * n / (n + m)).sum())
    low, high, _ = samples.interval(0, 1, level=0.95, ratio=True, draws=LIMIT)
    assert (low, high) == (pytest.approx(1.354, abs=0.01), pytest.approx(5.03, abs=0.08))
    same = samples.homogeneity(0, 1, ratio=True)
    assert (same.df, same.statistic, same.pvalue) == (3, pytest.approx(0.954, abs=0.02), pytest.approx(0.812, abs=0.01))


def test_one_stratum_is_the_interval_of_miettinen_and_nurminen():
    samples = StratifiedRates([[7], [1]], [[34], [34]])
    low, high, _ = samples.interval(0, 1, level=0.95, ratio=False, draws=LIMIT)
    assert (low, high) == (pytest.approx(0.0270416, abs=1e-7), pytest.approx(0.3452912, abs=1e-7))  # statsmodels
    low, high, _ = samples.interval(0, 1, level=0.95, ratio=True, draws=LIMIT)
    expected = binomial.ratio_interval([7, 1], [34, 34], 0.95)
    assert (low, high) == (pytest.approx(float(expected[0])), pytest.approx(float(expected[1])))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("draws", [PLAIN, MIDP], ids=["plain", "mid-p"])
def test_interval_and_pvalue_do_not_contradict_each_other(seed, draws):
    rng = np.random.default_rng(seed)
    trials = rng.integers(0, 9, (2, 30))
    samples = StratifiedRates(rng.binomial(trials, [[0.55], [0.35]]), trials)
    p = samples.test(0, 1, draws).pvalue
    for ratio, none in ((False, 0.0), (True, 1.0)):
        for level in (1 - 1.001 * p, 1 - 0.999 * p, 0.95, 0.999):
            low, high, _ = samples.interval(0, 1, level=level, ratio=ratio, draws=draws)
            assert (low <= none <= high) == (p > 1 - level)
        beyond = samples.beyond(0, 1, low=none, high=none, ratio=ratio, draws=draws)
        assert beyond == pytest.approx(p)  # a margin of nothing is the test itself


def test_turning_the_groups_turns_the_answer():
    samples = of(*GART)
    low, high, _ = samples.interval(0, 1, level=0.95, ratio=False, draws=PLAIN)
    back = samples.interval(1, 0, level=0.95, ratio=False, draws=PLAIN)
    assert (-back[1], -back[0]) == (pytest.approx(low, abs=1e-9), pytest.approx(high, abs=1e-9))
    low, high, _ = samples.interval(0, 1, level=0.95, ratio=True, draws=PLAIN)
    back = samples.interval(1, 0, level=0.95, ratio=True, draws=PLAIN)
    assert (1 / back[1], 1 / back[0]) == (pytest.approx(low, rel=1e-6), pytest.approx(high, rel=1e-6))


def test_restricted_rates_are_those_of_the_general_kernel():
    rng = np.random.default_rng(3)
    n = rng.integers(1, 30, (200, 2)).astype(float)
    x = rng.binomial(n.astype(int), rng.random((200, 1))).astype(float)
    for value in (-0.7, -0.1, 0.0, 0.3, 0.9):
        expected = binomial.restricted_proportions(x, n, (1.0, -1.0), np.full(200, value))
        np.testing.assert_allclose(restricted_rates(x, n, value, ratio=False), expected, atol=1e-9)
    for value in (0.2, 1.0, 3.0):
        expected = binomial.restricted_proportions(x, n, (1.0, -value), np.zeros(200))
        np.testing.assert_allclose(restricted_rates(x, n, value, ratio=True), expected, atol=1e-9)


def test_strata_without_both_groups_are_counted_and_left_out():
    samples = StratifiedRates([[3, 2, 5], [1, 0, 2]], [[5, 4, 9], [6, 0, 7]])
    known = samples.coverage(0, 1)
    assert (known.strata, known.compared, known.rows, known.rows_compared) == (3, 2, 31, 27)
    fewer = StratifiedRates([[3, 5], [1, 2]], [[5, 9], [6, 7]])
    assert samples.test(0, 1, PLAIN).pvalue == fewer.test(0, 1, PLAIN).pvalue
    assert samples.difference(0, 1) == pytest.approx(fewer.difference(0, 1))


def test_no_shared_stratum_is_said_in_one_sentence():
    samples = StratifiedRates([[3, 0], [0, 2]], [[5, 0], [0, 7]])
    result = samples.test(0, 1, PLAIN)
    assert math.isnan(result.pvalue)
    assert result.warnings[0].startswith("No stratum has rows of both groups")


def test_strata_without_variation_show_nothing_but_still_bound_the_difference():
    samples = StratifiedRates([[0, 0], [0, 0]], [[30, 50], [40, 70]])
    result = samples.test(0, 1, PLAIN)
    assert result.pvalue == 1
    assert result.warnings == ("With these counts no result could give a p-value below 1.",)
    low, high, _ = samples.interval(0, 1, level=0.95, ratio=False, draws=PLAIN)
    one = StratifiedRates([[0], [0]], [[80], [110]]).interval(0, 1, level=0.95, ratio=False, draws=PLAIN)
    assert (low, high) == (pytest.approx(one[0], abs=0.005), pytest.approx(one[1], abs=0.005))
    assert -0.1 < low < 0 < high < 0.1


def test_all_groups_by_draws_and_by_the_limit_agree():
    rng = np.random.default_rng(4)
    trials = rng.integers(0, 30, (4, 40))
    samples = StratifiedRates(rng.binomial(trials, np.array([[0.3], [0.3], [0.38], [0.32]])), trials)
    limit = samples.test_global([0, 1, 2, 3], Draws())
    assert limit.n_resamples == 0
    drawn = samples.test_global([0, 1, 2, 3], Draws(method="permutation", n_resamples=4999, seed=1))
    assert drawn.statistic == pytest.approx(limit.statistic)
    assert drawn.pvalue_low <= limit.pvalue <= drawn.pvalue_high


def test_three_groups_are_the_generalised_statistic_of_the_plain_formula():
    """Landis, Heyman and Koch (1978): gaps of the first K - 1 groups in their covariance, stratum by stratum."""
    rng = np.random.default_rng(5)
    n = rng.integers(1, 12, (3, 8))
    x = rng.binomial(n, 0.4)
    gap, covariance = np.zeros(2), np.zeros((2, 2))
    for k in range(8):
        total, everyone = x[:, k].sum(), n[:, k].sum()
        gap += (x[:, k] - n[:, k] * total / everyone)[:2]
        scale = total * (everyone - total) / (everyone**2 * (everyone - 1))
        covariance += scale * (everyone * np.diag(n[:, k]) - np.outer(n[:, k], n[:, k]))[:2, :2]
    expected = float(gap @ np.linalg.solve(covariance, gap))
    assert StratifiedRates(x, n).test_global([0, 1, 2], Draws(method="limit")).statistic == pytest.approx(expected)


def test_f1_asks_the_rate_behind_it():
    plain, f1 = of(*GART), of(*GART, f1=True)
    assert f1.test(0, 1, PLAIN).pvalue == plain.test(0, 1, PLAIN).pvalue
    one, two = plain.values(0, 1)
    assert f1.difference(0, 1) == pytest.approx(2 * one / (1 + one) - 2 * two / (1 + two))
    low, high, _ = f1.interval(0, 1, level=0.95, ratio=False, draws=PLAIN)
    assert low < f1.difference(0, 1) < high
    assert (low > 0) == (f1.test(0, 1, PLAIN).pvalue <= 0.05)


def test_a_mean_of_rates_profiles_both():
    tpr, tnr = of(MEN, WOMEN), of(*[(side[0][::-1], side[1][::-1]) for side in (WOMEN, MEN)])
    samples = StratifiedAverage([tpr, tnr], (0.5, 0.5))
    assert samples.difference(0, 1) == pytest.approx((tpr.difference(0, 1) + tnr.difference(0, 1)) / 2)
    p = samples.test(0, 1, PLAIN).pvalue
    low, high, _ = samples.interval(0, 1, level=0.95, ratio=False, draws=PLAIN)
    assert (low <= 0 <= high) == (p > 0.05)
    # Two independent normal values: the interval is about their joint standard error wide.
    assert (high - low) / 2 == pytest.approx(1.96 * samples.standard_error(0, 1), rel=0.1)


def test_limits_of_large_samples_are_those_of_the_normal_law() -> None:
    """Where the exact tail is too small to be summed the limits must not widen."""
    rng = np.random.default_rng(7)
    n = rng.integers(400, 3000, (2, 12))
    second = rng.uniform(0.05, 0.6, 12)
    first = second * rng.uniform(0.1, 0.6, 12)
    x = np.stack([rng.binomial(n[0], first), rng.binomial(n[1], second)])
    samples = StratifiedRates(x, n)
    p, w = x / n, n.prod(0) / n.sum(0)
    estimate = float(w @ (p[0] - p[1]) / w.sum())
    error = float(np.sqrt((w**2 * (p * (1 - p) / n).sum(0)).sum()) / w.sum())
    low, high, _ = samples.interval(0, 1, level=0.95, ratio=False, draws=Draws())
    assert low == pytest.approx(estimate - 1.96 * error, abs=0.35 * error)
    assert high == pytest.approx(estimate + 1.96 * error, abs=0.35 * error)
