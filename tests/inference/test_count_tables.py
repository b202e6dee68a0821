"""Functions of count tables: permutation tests against plain ones on rows, forms."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import special, stats

from evenhand.errors import UsageError
from evenhand.inference.count_functions import Rate, balanced_accuracy, spread_of, studentise
from evenhand.inference.count_tables import TableSamples
from evenhand.inference.mover import mover, mover_equivalence
from evenhand.inference.rates.samples import RateSamples
from evenhand.inference.samples import Draws, Samples
from evenhand.kernels.counts.binomial import score_interval, score_statistic

DRAWS = Draws(n_resamples=999)
_: type[Samples] = TableSamples  # the protocol holds, says the type checker

FNR = Rate((2,), (2, 3))


def fnr(t):
    return t[..., 2] / (t[..., 2] + t[..., 3])


def youden(t):
    return t[..., 3] / (t[..., 2] + t[..., 3]) + t[..., 0] / (t[..., 0] + t[..., 1]) - 1


def matthews(t):
    tn, fp, fn, tp = (t[..., j] for j in range(4))
    return (tp * tn - fp * fn) / np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))


def _rows(table):
    cells = np.concatenate([np.repeat(np.arange(4), row) for row in table])
    return cells, np.repeat([0, 1], [sum(row) for row in table])


def _statistic_on_rows(cells, labels, variance):
    """The studentised difference of false negative rates, from rows: slow and plain."""
    rate, n = [], []
    for g in (0, 1):
        positive = cells[(labels == g) & (cells >= 2)]
        if not positive.size:
            return math.nan
        rate.append((positive == 2).mean())
        n.append(positive.size)
    if variance == "none":
        return rate[0] - rate[1]
    if variance == "unpooled":
        v = sum(p * (1 - p) / m for p, m in zip(rate, n, strict=True))
    else:
        p = (rate[0] * n[0] + rate[1] * n[1]) / sum(n)
        v = p * (1 - p) * (1 / n[0] + 1 / n[1])
    if v < 1e-20:
        return math.copysign(math.inf, rate[0] - rate[1]) if abs(rate[0] - rate[1]) > 1e-12 else 0.0
    return (rate[0] - rate[1]) / math.sqrt(v)


@pytest.mark.parametrize("variance", ["null", "unpooled", "none"])
@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_exact_test_is_every_permutation_of_the_rows(variance, alternative):
    table = [[1, 1, 2, 1], [2, 0, 1, 3]]
    cells, labels = _rows(table)
    observed = _statistic_on_rows(cells, labels, variance)
    hits = total = 0
    for chosen in itertools.combinations(range(cells.size), 5):
        other = np.ones(cells.size, dtype=int)
        other[list(chosen)] = 0
        z = _statistic_on_rows(cells, other, variance)
        sign = {"two-sided": (abs(z), abs(observed)), "greater": (z, observed), "less": (-z, -observed)}
        at, seen = sign[alternative]
        hits += math.isnan(z) or at >= seen - 1e-9
        total += 1
    draws = Draws(permute="all", variance=variance, alternative=alternative)
    result = TableSamples(table, FNR).test(0, 1, draws)
    assert result.exact
    assert result.statistic == pytest.approx(observed)
    assert result.pvalue == pytest.approx(hits / total, rel=1e-10)
    assert 0 < result.floor <= result.pvalue


def test_random_draws_agree_with_permuted_rows():
    table = [[30, 10, 6, 4], [12, 8, 9, 21]]
    cells, labels = _rows(table)
    rng = np.random.default_rng(0)
    observed = _statistic_on_rows(cells, labels, "null")
    slow = [abs(_statistic_on_rows(cells, rng.permutation(labels), "null")) for _ in range(1500)]
    hits = int((np.array(slow) >= abs(observed) - 1e-9).sum())
    result = TableSamples(table, FNR).test(0, 1, Draws(permute="all", method="permutation", n_resamples=20_000))
    assert stats.binomtest(hits, 1500, result.pvalue).pvalue > 1e-3
    assert result.n_resamples == 20_000


def test_an_infinite_statistic_ties_with_infinite_ones():
    # The unpooled form gives infinity here; its ties must count.
    result = TableSamples([[3, 3, 3, 0], [3, 3, 0, 3]], FNR).test(0, 1, Draws(permute="all", variance="unpooled"))
    assert math.isinf(result.statistic)
    # One group takes all three of one kind (2 x C(12, 6) ways), or no positive at all (2 x C(12, 9)).
    assert result.pvalue == pytest.approx((2 * 924 + 2 * 220) / 48620)


def test_same_seed_same_answer_and_order_of_groups_irrelevant():
    samples = TableSamples([[30, 10, 6, 14], [52, 8, 9, 41], [20, 5, 8, 11]], matthews)
    draws = Draws(n_resamples=300, method="permutation", seed=5, name="mcc")
    first = samples.test(0, 1, draws)
    assert first.pvalue == samples.test(0, 1, draws).pvalue == samples.test(1, 0, draws).pvalue
    assert first.statistic == -samples.test(1, 0, draws).statistic
    assert samples.test_global([0, 1, 2], draws).pvalue == samples.test_global([2, 0, 1], draws).pvalue
    assert not np.array_equal(first.null, samples.test(0, 1, replace(draws, seed=6)).null)


def test_undefined_values_are_named_and_not_numbers():
    samples = TableSamples([[5, 5, 0, 0], [5, 5, 3, 3]], fnr, empty_reason="has no rows with outcome 1")
    assert samples.reason == ("has no rows with outcome 1", "")
    assert math.isnan(samples.test(0, 1, DRAWS).pvalue)
    assert math.isnan(samples.test_global([0, 1], DRAWS).pvalue)
    assert math.isnan(samples.interval(0, 1, level=0.95, ratio=False, draws=DRAWS)[1])
    assert math.isnan(samples.equivalence(0, 1, low=-0.1, high=0.1, ratio=False, draws=DRAWS))
    assert math.isnan(samples.standard_error(0, 1))
    assert samples.counts[1] == {"rows": 16, "tn": 5, "fp": 5, "fn": 3, "tp": 3}


def test_degenerate_permutations_count_as_extreme():
    # One positive in each group: half of all permutations leave a group without a value.
    table = [[6, 0, 1, 0], [6, 0, 0, 1]]
    result = TableSamples(table, FNR).test(0, 1, Draws(permute="all"))
    empty = 2 * math.comb(12, 5) / math.comb(14, 7)
    assert result.pvalue == pytest.approx(1.0)
    assert 0.4 < empty < 0.5
    greater = TableSamples(table, FNR).test(0, 1, Draws(permute="all", alternative="greater"))
    assert greater.pvalue == pytest.approx(empty + (1 - empty) / 2)


def test_balanced_accuracy_is_the_four_sample_score_test():
    table = np.array([[100, 60, 12, 28], [50, 5, 14, 36]])
    samples = TableSamples(table, balanced_accuracy())
    assert samples.estimate == pytest.approx((youden(table) + 1) / 2)
    x = [28, 100, 36, 50]
    n = [40, 160, 50, 55]
    c = [0.5, 0.5, -0.5, -0.5]
    result = samples.test(0, 1, Draws())
    assert result.statistic == pytest.approx(float(score_statistic(x, n, c, corrected=False)))
    assert result.exact
    assert "within outcome" in result.method
    limit = samples.test(0, 1, Draws(method="limit")).pvalue
    assert limit == pytest.approx(2 * special.ndtr(-abs(result.statistic)))
    assert result.pvalue == pytest.approx(limit, rel=0.2)
    low, high, kind = samples.interval(0, 1, level=0.95, ratio=False, draws=DRAWS)
    assert (low, high) == pytest.approx(tuple(float(v) for v in score_interval(x, n, c, 0.95)))
    assert kind == "score"
    assert samples.equivalence(0, 1, low=low, high=0.9, ratio=False, draws=DRAWS) == pytest.approx(0.025, abs=1e-7)


def test_balanced_accuracy_ratio_and_global():
    samples = TableSamples([[100, 60, 12, 28], [50, 5, 14, 36], [70, 20, 10, 40]], balanced_accuracy())
    low, high, _kind = samples.interval(0, 1, level=0.9, ratio=True, draws=DRAWS)
    ratio = samples.estimate[0] / samples.estimate[1]
    assert low < ratio < high
    assert samples.equivalence(0, 1, low=low, high=high, ratio=True, draws=DRAWS) == pytest.approx(0.05, abs=1e-6)
    pair = samples.test_global([0, 1], Draws(method="limit"))
    single = samples.test(0, 1, Draws(method="limit"))
    assert pair.statistic == pytest.approx(single.statistic**2, rel=0.02)
    drawn = samples.test_global([0, 1, 2], DRAWS)
    assert drawn.pvalue == pytest.approx(samples.test_global([0, 1, 2], Draws(method="limit")).pvalue, abs=0.03)


def test_general_function_of_a_rate_meets_the_rate_itself():
    table = np.array([[400, 60, 120, 280], [500, 50, 140, 360]])
    general, rate = TableSamples(table, fnr), TableSamples(table, FNR)
    for variance in ("null", "unpooled"):
        draws = Draws(method="limit", variance=variance)
        assert general.test(0, 1, draws).statistic == pytest.approx(rate.test(0, 1, draws).statistic, rel=2e-3)
    assert general.standard_error(0, 1) == pytest.approx(rate.standard_error(0, 1), rel=2e-3)
    ours = general.interval(0, 1, level=0.95, ratio=False, draws=DRAWS)
    assert ours[:2] == pytest.approx(rate.interval(0, 1, level=0.95, ratio=False, draws=DRAWS)[:2], abs=1e-3)
    assert ours[2] == "mover-delta"
    ours = general.interval(0, 1, level=0.95, ratio=True, draws=DRAWS)
    assert ours[:2] == pytest.approx(rate.interval(0, 1, level=0.95, ratio=True, draws=DRAWS)[:2], abs=5e-3)
    assert general.equivalence(0, 1, low=-0.07, high=0.07, ratio=False, draws=DRAWS) == pytest.approx(
        rate.equivalence(0, 1, low=-0.07, high=0.07, ratio=False, draws=DRAWS), rel=0.05
    )


def test_variance_of_a_function_is_that_of_a_bootstrap():
    table = np.array([[300, 60, 50, 190], [420, 40, 60, 80]])
    rng = np.random.default_rng(0)
    draws = [matthews(rng.multinomial(row.sum(), row / row.sum(), 4000).astype(float)) for row in table]
    expected = math.sqrt(draws[0].var() + draws[1].var())
    z = TableSamples(table, matthews).test(0, 1, Draws(method="limit", variance="unpooled")).statistic
    difference = matthews(table[0].astype(float)) - matthews(table[1].astype(float))
    assert difference / z == pytest.approx(expected, rel=0.04)


def test_a_rate_with_its_own_denominator_is_the_exact_test():
    table = [[90, 10, 12, 28], [50, 5, 4, 36]]
    inside = TableSamples(table, FNR).test(0, 1, Draws())
    expected = RateSamples(table, numerator=(2,), denominator=(2, 3)).test(0, 1, Draws(method="exact"))
    assert inside.pvalue == pytest.approx(expected.pvalue, rel=1e-10)
    assert inside.floor == pytest.approx(expected.floor, rel=1e-10)


def test_permuting_precision_within_outcome_warns_when_base_rates_differ():
    table = [[20, 10, 20, 150], [120, 60, 4, 16]]
    precision = RateSamples(table, numerator=(3,), denominator=(1, 3))
    result = precision.test(0, 1, Draws(permute="outcome", method="permutation", n_resamples=500))
    assert any("base rates differ" in text for text in result.warnings)
    assert not precision.test(0, 1, Draws(permute="all", method="permutation", n_resamples=500)).warnings


def test_few_rows_of_an_outcome_warn():
    draws = Draws(n_resamples=99, method="permutation")
    table = [[180, 100, 4, 14], [120, 60, 24, 76]]
    for value in (matthews, balanced_accuracy()):
        assert any("fewer than 20 rows" in text for text in TableSamples(table, value).test(0, 1, draws).warnings)
    assert not TableSamples(table, FNR).test(0, 1, draws).warnings
    enough = [[180, 100, 14, 24], [120, 60, 24, 76]]
    for value in (matthews, balanced_accuracy()):
        assert not TableSamples(enough, value).test(0, 1, draws).warnings


@pytest.mark.parametrize(
    ("value", "positives"), [(FNR, 8), (fnr, 8), (fnr, 20)], ids=["rate", "function-8", "function-20"]
)
def test_size_with_few_positives(value, positives):
    # [diciccio2020] sec. 4.2 with a smaller group: the printed variance rejects .35 of true nulls here.
    rng = np.random.default_rng(7)
    rejected = made = 0
    for i in range(150):
        rows = []
        for n in (rng.binomial(200, 0.8), rng.binomial(200, positives / 200)):
            fn = rng.binomial(n, 0.1)
            fp = rng.binomial(200 - n, 0.1)
            rows.append([200 - n - fp, fp, fn, n - fn])
        draws = Draws(permute="all", method="permutation", n_resamples=79, seed=i)
        p = TableSamples(rows, value).test(0, 1, draws).pvalue
        made += not math.isnan(p)
        rejected += p <= 0.05
    assert rejected <= stats.binom.ppf(0.9999, made, 0.055)


def test_mover_on_symmetric_limits_is_the_usual_interval():
    def limits(z):
        return (0.5, 0.5 - 0.03 * z, 0.5 + 0.03 * z), (0.4, 0.4 - 0.04 * z, 0.4 + 0.04 * z)

    assert mover(*limits(2.0), ratio=False) == pytest.approx((0.0, 0.2))
    # Donner and Zou (2012): with symmetric limits the ratio is Fieller's.
    low, high = mover(*limits(2.0), ratio=True)
    for end in (low, high):
        assert (0.5 - end * 0.4) ** 2 == pytest.approx(4 * (0.03**2 + end**2 * 0.04**2))
    assert mover_equivalence(limits, -0.1, 0.2, ratio=False) == pytest.approx(special.ndtr(-2.0))
    assert mover_equivalence(limits, 0.2, 0.3, ratio=False) == 1


def test_studentise_and_spread_at_the_edges():
    z = studentise(np.array([0.0, -1.0, np.nan, 1.0]), np.array([0.0, 0.0, 1.0, np.nan]))
    assert z[:2].tolist() == [0.0, -math.inf]
    assert np.isnan(z[2:]).all()
    values, v = np.array([1.0, 2.0, 4.0]), np.array([1.0, 0.5, 2.0])
    mean = (values / v).sum() / (1 / v).sum()
    assert spread_of(values, v) == pytest.approx(((values - mean) ** 2 / v).sum())


def test_bad_requests():
    samples = TableSamples([[400, 100, 50, 450], [300, 200, 80, 420]], youden)
    with pytest.raises(UsageError, match="exact test"):
        samples.test(0, 1, Draws(method="exact"))
    with pytest.raises(UsageError, match="`permute`"):
        samples.test(0, 1, Draws(permute="rows"))
    with pytest.raises(ValueError, match="counts"):
        TableSamples([[1, -1, 1, 1]], youden)
