from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from evenhand.inference.calibration import CalibrationSamples
from evenhand.inference.samples import Draws
from evenhand.kernels.shared.seeds import stream

BOTH = " and outcomes drawn anew, the larger p-value"
QUICK = Draws(n_resamples=99)


def scored(sizes: list[int], shift: float = 0.0, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = stream(seed, "calibration")
    s = rng.beta(2, 3, size=sum(sizes))
    return (
        s,
        (rng.random(s.size) < np.clip(s + shift, 0, 1)).astype(int),
        np.repeat(np.arange(len(sizes)), sizes),
    )


def test_debiased_error_by_brute_force() -> None:
    s, y, g = scored([80, 120], shift=0.2)
    samples = CalibrationSamples(score=s, outcome=y, codes=g, n_groups=2, n_bins=5)
    for k in (0, 1):
        sk, yk = s[g == k], y[g == k]
        bins = np.minimum((sk * 5).astype(int), 4)
        squared = used = 0.0
        for b in range(5):
            e = (yk - sk)[bins == b]
            if e.size > 1:
                products = np.outer(e, e)[~np.eye(e.size, dtype=bool)]
                squared += e.size * products.mean()
                used += e.size
        assert samples.estimate[k] == pytest.approx(math.sqrt(max(squared / used, 0)))


def test_debiased_error_has_no_bias_and_the_plain_one_has() -> None:
    rng = stream(2, "bias")
    squared, plain = [], []
    for _ in range(400):
        s = rng.uniform(size=60)
        samples = CalibrationSamples(score=s, outcome=rng.random(60) < s, codes=np.zeros(60), n_groups=1)
        squared.append(samples._theta[0])
        bins, e = (s * 10).astype(int), (rng.random(60) < s) - s
        plain.append(np.abs(np.bincount(bins, e)).sum() / 60)
    error = np.std(squared) / math.sqrt(400)
    assert abs(np.mean(squared)) < 4 * error
    assert np.mean(plain) > 0.08


def test_row_order_labels_and_counts_do_not_matter() -> None:
    rng = stream(3, "order")
    s, y, g = scored([150, 90, 200])
    s = np.round(s, 2)
    c = rng.integers(0, 3, s.size)
    base = CalibrationSamples(score=s, outcome=y, codes=g, n_groups=3, count=c)
    order = rng.permutation(s.size)
    turned = CalibrationSamples(score=s[order], outcome=y[order], codes=2 - g[order], n_groups=3, count=c[order])
    written = CalibrationSamples(score=np.repeat(s, c), outcome=np.repeat(y, c), codes=np.repeat(g, c), n_groups=3)
    wanted = base.test(0, 1, QUICK)
    for other in (turned.test(2, 1, QUICK), written.test(0, 1, QUICK)):
        assert other.null.tobytes() == wanted.null.tobytes()
        assert other.pvalue == wanted.pvalue
    assert base.test(1, 0, QUICK).pvalue == wanted.pvalue
    together = base.test_global([0, 1, 2], QUICK)
    assert turned.test_global([2, 1, 0], QUICK).null.tobytes() == together.null.tobytes()


def test_three_ways_to_permute_have_one_law() -> None:
    s, y, g = scored([400, 2600], shift=0.1)
    draws = Draws(n_resamples=1999)
    rows = CalibrationSamples(score=s, outcome=y, codes=g, n_groups=2)
    few = CalibrationSamples(score=np.round(s, 1), outcome=y, codes=g, n_groups=2)
    every = CalibrationSamples(score=np.round(s, 1) + 1e-7 * np.arange(3000) / 3000, outcome=y, codes=g, n_groups=2)
    limit = rows.test(0, 1, Draws(n_resamples=1999, method="limit"))
    assert "normal bin sums" in limit.method
    assert stats.ks_2samp(rows.test(0, 1, draws).null, limit.null).pvalue > 0.001
    assert stats.ks_2samp(few.test(0, 1, draws).null, every.test(0, 1, draws).null).pvalue > 0.001


@pytest.mark.parametrize("decimals", [2, 12])
def test_small_groups_drawn_row_by_row_have_the_law_of_permutations(decimals: int) -> None:
    s, y, g = scored([150, 400, 5000, 6000], shift=0.1)
    samples = CalibrationSamples(score=np.round(s, decimals), outcome=y, codes=g, n_groups=4)
    quick, every = Draws(n_resamples=999), Draws(n_resamples=999, method="permutation")
    pair, plain = samples.test(3, 0, quick), samples.test(3, 0, every)
    assert plain.method == "studentised permutation test"
    assert pair.method == plain.method + BOTH
    assert stats.ks_2samp(pair.null, plain.null).pvalue > 0.001
    together, plain = samples.test_global([0, 1, 2, 3], quick), samples.test_global([0, 1, 2, 3], every)
    assert together.method == "studentised permutation test, normal bin sums" + BOTH
    assert stats.ks_2samp(together.null, plain.null).pvalue > 0.001


@pytest.mark.parametrize("sizes", [(1010, 1010), (1010, 4000)])
def test_rare_outcomes_in_large_groups_keep_the_tails_of_permutations(sizes: tuple[int, int]) -> None:
    # Nearly all scores below .1: a bin has a handful of rows, and a few rows with outcome 1 make its sum skewed.
    rng = stream(8, "rare")
    s = rng.beta(0.5, 20, size=sum(sizes))
    samples = CalibrationSamples(score=s, outcome=rng.random(s.size) < s, codes=np.repeat([0, 1], sizes), n_groups=2)
    n = 8000
    limit, words = samples._reference(0, 1, Draws(n_resamples=n))
    assert "normal bin sums" in words
    plain = samples._reference(0, 1, Draws(n_resamples=n, method="permutation"))[0].null.draws(n)
    for share in (0.05, 0.01):
        low, high = np.quantile(limit.null.draws(n), [share / 2, 1 - share / 2])
        beyond = int(((plain <= low) | (plain >= high)).sum())
        # Both are drawn: twice the variance of one binomial share.
        assert abs(beyond - share * n) < 4 * math.sqrt(2 * n * share)


def test_the_cost_of_a_permutation_is_that_of_the_small_group() -> None:
    # Cells that stand for 10^11 rows: no list of rows could hold them.
    s, y = np.tile(np.linspace(0.05, 0.95, 10), 4), np.tile(np.repeat([0, 1], 10), 2)
    g = np.repeat([0, 1], 20)
    samples = CalibrationSamples(score=s, outcome=y, codes=g, n_groups=2, count=np.where(g == 0, 10, 5 * 10**9))
    result = samples.test(0, 1, Draws(n_resamples=199))
    assert result.method == "studentised permutation test" + BOTH
    assert 0 <= result.pvalue <= 1


def test_a_real_difference_is_found() -> None:
    s, y, g = scored([1500, 3000])
    rng = stream(4, "alternative")
    worse = (rng.random(s.size) < np.clip(s + 0.15, 0, 1)).astype(int)
    samples = CalibrationSamples(score=s, outcome=np.where(g == 0, worse, y), codes=g, n_groups=2)
    assert samples.test(0, 1, Draws(n_resamples=199)).pvalue == pytest.approx(2 / 2000)
    assert samples.test(0, 1, Draws(n_resamples=199, alternative="greater")).pvalue == pytest.approx(1 / 2000)
    assert samples.test_global([0, 1], Draws(n_resamples=199)).pvalue == pytest.approx(1 / 2000)
    low, high, _ = samples.interval(0, 1, level=0.95, ratio=False, draws=QUICK)
    assert 0 < low < 0.15 < high + 0.03
    assert samples.equivalence(0, 1, low=-0.3, high=0.3, ratio=False, draws=QUICK) < 0.01
    assert samples.equivalence(0, 1, low=-0.05, high=0.05, ratio=False, draws=QUICK) > 0.5
    assert 0.01 < samples.standard_error(0, 1) < 0.05


@pytest.mark.parametrize("ratio", [False, True])
@pytest.mark.parametrize("shift", [0.0, 0.08, 0.12])
def test_interval_test_and_margin_agree(ratio: bool, shift: float) -> None:
    s, y, g = scored([300, 300], 0.1)
    rng = stream(5, "agree")
    worse = (rng.random(s.size) < np.clip(s + 0.1 + shift, 0, 1)).astype(int)
    samples = CalibrationSamples(score=s, outcome=np.where(g == 0, worse, y), codes=g, n_groups=2)
    draws, none = Draws(n_resamples=999), 1.0 if ratio else 0.0
    p = samples.test(0, 1, draws).pvalue
    for level in (0.9, 0.95, 0.99, 1 - p - 1e-6, 1 - p + 1e-6):
        if not 0.8 <= level < 0.995:
            continue
        low, high, _ = samples.interval(0, 1, level=level, ratio=ratio, draws=draws)
        if not ratio or low > 0:
            assert (low > none or high < none) == (p <= 1 - level)
        assert samples.beyond(0, 1, low=low - 0.2, high=low - 1e-6, ratio=ratio, draws=draws) <= 1 - level + 1e-4
        assert samples.beyond(0, 1, low=low - 0.2, high=low + 1e-6, ratio=ratio, draws=draws) >= 1 - level - 1e-4
    assert samples.beyond(0, 1, low=-9, high=9, ratio=ratio, draws=draws) == 1.0


def test_degenerate_samples() -> None:
    samples = CalibrationSamples(score=[0.1, 0.2, 0.9], outcome=[0, 1, 1], codes=[0, 0, 1], n_groups=3)
    assert samples.reason[1] == "has no score bin with two rows"
    assert samples.reason[2] == "has no rows"
    assert math.isnan(samples.test(0, 2, QUICK).pvalue)
    assert math.isnan(samples.test_global([0, 1], QUICK).pvalue)
    assert math.isnan(samples.interval(0, 1, level=0.95, ratio=False, draws=QUICK)[0])
    assert math.isnan(samples.equivalence(0, 2, low=-1, high=1, ratio=False, draws=QUICK))
    edge = CalibrationSamples(score=[0.0, 0.0, 1.0, 1.0], outcome=[0, 0, 1, 1], codes=[0] * 4, n_groups=1)
    assert edge.estimate[0] == 0.0
    assert edge.counts[0] == {"rows": 4, "bins": 2}


@pytest.mark.parametrize("shift", [0.0, 0.1])
def test_size(shift: float) -> None:
    runs, hits = 200, 0
    for r in range(runs):
        s, y, g = scored([100, 600], shift, seed=100 + r)
        samples = CalibrationSamples(score=s, outcome=y, codes=g, n_groups=2)
        hits += samples.test(0, 1, Draws(n_resamples=99, seed=r)).pvalue <= 0.05
    assert hits <= stats.binom.ppf(0.9999, runs, 0.05)


def test_outcomes_drawn_anew_have_the_law_of_new_rows() -> None:
    # A slow plain version: new rows with the scores of each sample, and outcomes with the theta that both share.
    n = 1500
    rng = stream(9, "anew")
    parts = [rng.beta(2, 3, 150), rng.beta(1, 12, 700)]
    s, g = np.concatenate(parts), np.repeat([0, 1], [150, 700])
    samples = CalibrationSamples(score=s, outcome=rng.random(s.size) < np.clip(s + 0.1, 0, 1), codes=g, n_groups=2)
    common = max(float(samples._rows @ samples._theta / samples._rows.sum()), 0.0)
    errors = []
    for k in (0, 1):
        mean = samples._sums[k, :, 1] / np.maximum(samples._sums[k, :, 0], 1)
        errors.append(mean * math.sqrt(common / (samples._sums[k, :, 0] @ mean**2 / samples._rows[k])))
    slow = []
    for _ in range(n):
        new = [rng.choice(part, part.size) for part in parts]
        chance = [np.clip(part + error[(part * 10).astype(int)], 0, 1) for part, error in zip(new, errors, strict=True)]
        outcome = rng.random(s.size) < np.concatenate(chance)
        one = CalibrationSamples(score=np.concatenate(new), outcome=outcome, codes=g, n_groups=2)
        slow.append(one._statistic(0, 1))
    law = samples._reference(0, 1, Draws())[0].law
    assert stats.ks_2samp(law.draws(n), slow).pvalue > 0.001


def test_size_where_outcomes_are_rare_in_the_large_group_only() -> None:
    # Both are calibrated. Permutations alone reject at .05 in 14 % of such data sets, at .001 in 4 %.
    runs, pvalues = 150, []
    for r in range(runs):
        rng = stream(r, "rare in one")
        s = np.concatenate([rng.beta(3, 7, 200), rng.beta(1, 19, 1500)])
        samples = CalibrationSamples(
            score=s, outcome=rng.random(s.size) < s, codes=np.repeat([0, 1], [200, 1500]), n_groups=2
        )
        pvalues.append(samples.test(0, 1, Draws(n_resamples=199, seed=r)).pvalue)
    for level in (0.05, 0.01, 0.001):
        assert (np.array(pvalues) <= level).sum() <= stats.binom.isf(1e-3, runs, level)
