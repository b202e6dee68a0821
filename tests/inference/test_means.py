from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from evenhand.errors import UsageError
from evenhand.inference.means import MeanSamples
from evenhand.inference.samples import Draws
from evenhand.kernels.shared.seeds import stream

QUICK = Draws(n_resamples=199, method="permutation")


def skewed(na: int, nb: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    return stream(seed, "values").exponential(size=na + nb), np.repeat([0, 1], [na, nb])


def test_limit_law_is_welch_of_scipy() -> None:
    v, g = skewed(30, 70)
    result = MeanSamples(value=v, codes=g, n_groups=2).test(0, 1, Draws(method="limit"))
    other = stats.ttest_ind(v[g == 0], v[g == 1], equal_var=False)
    assert result.statistic == pytest.approx(other.statistic, rel=1e-10)
    assert result.pvalue == pytest.approx(other.pvalue, rel=1e-10)
    for side in ("greater", "less"):
        p = MeanSamples(value=v, codes=g, n_groups=2).test(0, 1, Draws(method="limit", alternative=side)).pvalue
        assert p == pytest.approx(stats.ttest_ind(v[g == 0], v[g == 1], equal_var=False, alternative=side).pvalue)


@pytest.mark.parametrize("side", ["two-sided", "greater", "less"])
def test_enumeration_agrees_with_scipy(side: str) -> None:
    v, g = skewed(4, 6)
    result = MeanSamples(value=v, codes=g, n_groups=2).test(0, 1, Draws(method="exact", alternative=side))
    every = stats.PermutationMethod(n_resamples=10**6)
    other = stats.ttest_ind(v[g == 0], v[g == 1], equal_var=False, alternative=side, method=every)
    assert result.exact
    assert result.pvalue == pytest.approx(other.pvalue)


def test_random_permutations_agree_with_enumeration() -> None:
    v, g = skewed(5, 8, seed=3)
    samples = MeanSamples(value=v, codes=g, n_groups=2)
    exact = samples.test(0, 1, Draws(method="exact"))
    drawn = samples.test(0, 1, Draws(method="permutation", n_resamples=4999))
    assert drawn.pvalue_low <= exact.pvalue <= drawn.pvalue_high
    assert exact.floor <= exact.pvalue


@pytest.mark.parametrize("weighted", [False, True])
def test_row_order_and_labels_do_not_matter(weighted: bool) -> None:
    v, g = skewed(40, 90)
    w = stream(2, "w").gamma(2.0, size=130) if weighted else None
    base = MeanSamples(value=v, codes=g, n_groups=2, weight=w).test(0, 1, QUICK)
    order = stream(3, "order").permutation(130)
    moved = MeanSamples(value=v[order], codes=g[order], n_groups=2, weight=None if w is None else w[order])
    swapped = MeanSamples(value=v, codes=1 - g, n_groups=2, weight=w)
    for other in (moved.test(0, 1, QUICK), swapped.test(1, 0, QUICK)):
        assert other.null.tobytes() == base.null.tobytes()
        assert other.pvalue == base.pvalue
    assert swapped.test(0, 1, QUICK).pvalue == base.pvalue
    three = MeanSamples(value=v, codes=g + (v > 1), n_groups=3, weight=w).test_global([0, 1, 2], QUICK)
    turned = MeanSamples(value=v, codes=2 - g - (v > 1), n_groups=3, weight=w).test_global([0, 1, 2], QUICK)
    assert three.null.tobytes() == turned.null.tobytes()


@pytest.mark.parametrize("repeat", [1, 60])
def test_counts_equal_repeated_rows(repeat: int) -> None:
    rng = stream(4, "counts")
    v, g, c = rng.integers(0, 9, 50) / 8, rng.integers(0, 2, 50), rng.integers(1, 5, 50) * repeat
    told = MeanSamples(value=v, codes=g, n_groups=2, count=c)
    written = MeanSamples(value=np.repeat(v, c), codes=np.repeat(g, c), n_groups=2)
    assert told.test(0, 1, QUICK).null.tobytes() == written.test(0, 1, QUICK).null.tobytes()
    assert told.estimate.tobytes() == written.estimate.tobytes()
    draws = Draws(n_resamples=199)
    one, two = (s.interval(0, 1, level=0.9, ratio=False, draws=draws) for s in (told, written))
    assert one == two


def test_moments_give_the_limit_law() -> None:
    v, g = skewed(2000, 3000)
    w = stream(5, "w").gamma(2.0, size=5000)
    rows = MeanSamples(value=v, codes=g, n_groups=2, weight=w)
    sums = [np.bincount(g, weights=x) for x in (np.ones(5000), w, w * w, w * v, w * w * v, (w * v) ** 2)]
    cells = MeanSamples.from_moments(*sums)
    a, b = rows.test(0, 1, Draws(method="limit")), cells.test(0, 1, Draws())
    assert a.pvalue == pytest.approx(b.pvalue, rel=1e-8)
    assert b.method == "Welch's t test"
    assert cells.estimate == pytest.approx(rows.estimate)
    few = MeanSamples.from_moments([20, 30], [20, 30], [20, 30], [9, 9], [9, 9], [50, 40])
    assert "fewer than 1000 rows" in few.test(0, 1, Draws()).warnings[0]


def test_weighted_mean_and_linearised_variance() -> None:
    v, g = skewed(25, 25)
    w = stream(6, "w").gamma(1.0, size=50)
    samples = MeanSamples(value=v, codes=g, n_groups=2, weight=w)
    total = 0.0
    for k in (0, 1):
        x, u = v[g == k], w[g == k]
        m = np.average(x, weights=u)
        assert samples.estimate[k] == pytest.approx(m)
        total += 25 / 24 * np.sum(u**2 * (x - m) ** 2) / u.sum() ** 2
    assert samples.standard_error(0, 1) == pytest.approx(math.sqrt(total))
    equal = MeanSamples(value=v, codes=g, n_groups=2, weight=np.full(50, 3.0)).test(0, 1, QUICK)
    assert equal.pvalue == MeanSamples(value=v, codes=g, n_groups=2).test(0, 1, QUICK).pvalue


def test_auto_chooses_the_limit_law_only_where_it_is_safe() -> None:
    rng = stream(7, "auto")
    g = np.repeat([0, 1], 20_000)
    calm, wild = rng.normal(size=40_000), rng.lognormal(sigma=2, size=40_000)
    draws = Draws(n_resamples=19)
    assert MeanSamples(value=calm, codes=g, n_groups=2).test(0, 1, draws).method == "skewness-corrected t test"
    assert "permutation" in MeanSamples(value=wild, codes=g, n_groups=2).test(0, 1, draws).method


def test_who_is_in_which_group_does_not_choose_the_law() -> None:
    # A small group that happens to lack the rare large values must not look calm.
    rng = stream(12, "rare")
    v = np.where(rng.random(3300) < 0.01, 5.0, 0.01)
    lucky, usual = np.zeros(3300, dtype=int), np.zeros(3300, dtype=int)
    lucky[np.flatnonzero(v < 1)[:300]] = 1
    usual[:300] = 1
    for g in (lucky, usual):
        assert "permutation" in MeanSamples(value=v, codes=g, n_groups=2).test(0, 1, Draws(n_resamples=199)).method
    missed = MeanSamples(value=v, codes=lucky, n_groups=2).test(0, 1, Draws(n_resamples=999))
    chance = (1 - 300 / 3300) ** int((v > 1).sum())  # that a group of 300 gets none of them
    assert missed.pvalue == pytest.approx(2 * chance, rel=0.35)
    assert MeanSamples(value=v, codes=lucky, n_groups=2).test(0, 1, Draws(method="limit")).pvalue < 1e-6


def test_small_pvalues_get_more_draws_and_say_their_floor() -> None:
    rng = stream(13, "floor")
    v = np.concatenate([rng.exponential(size=60), rng.exponential(size=60) + 3])
    result = MeanSamples(value=v, codes=np.repeat([0, 1], 60), n_groups=2).test(0, 1, Draws(n_resamples=999))
    assert result.n_resamples == 9999
    assert result.floor == pytest.approx(2 / 10_000)
    assert result.pvalue >= result.floor
    same = MeanSamples(value=v, codes=np.tile([0, 1], 60), n_groups=2).test(0, 1, Draws(n_resamples=999))
    assert same.n_resamples <= 999
    assert same.floor == result.floor


@pytest.mark.parametrize(("shift", "method"), [(0.0, "auto"), (0.45, "auto"), (0.5, "permutation")])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ratio", [False, True])
def test_interval_test_margin_and_equivalence_agree(shift: float, method: str, weighted: bool, ratio: bool) -> None:
    rng = stream(14, "agree")
    v = np.concatenate([rng.exponential(size=90) + shift, rng.exponential(size=40)]) + 0.5
    w = rng.gamma(2.0, size=130) if weighted else None
    samples = MeanSamples(value=v, codes=np.repeat([0, 1], [90, 40]), n_groups=2, weight=w)
    draws = Draws(n_resamples=999, method=method)
    none = 1.0 if ratio else 0.0
    p = samples.test(0, 1, draws).pvalue
    for level in (0.9, 0.95, 1 - p - 1e-6, 1 - p + 1e-6):
        if not 0.8 <= level < 0.999:
            continue
        low, high, _ = samples.interval(0, 1, level=level, ratio=ratio, draws=draws)
        if abs(1 - level - p) > 1e-9:
            assert (low > none or high < none) == (p <= 1 - level)
        eps = 1e-6 * (high - low)
        for end, out, back in ((low, -eps, eps), (high, eps, -eps)):
            if not 0 < abs(end) < math.inf:
                continue
            outside = samples.beyond(
                0, 1, low=end + min(out, 9 * out), high=end + max(out, 9 * out), ratio=ratio, draws=draws
            )
            inside = samples.beyond(
                0, 1, low=end + min(back, 9 * back), high=end + max(back, 9 * back), ratio=ratio, draws=draws
            )
            assert outside <= 1 - level + 1e-6
            assert inside >= 1 - level - 1e-6
    low, high, _ = samples.interval(0, 1, level=0.9, ratio=ratio, draws=draws)
    wide = samples.equivalence(0, 1, low=low - 1e-6, high=high + 1e-6, ratio=ratio, draws=draws)
    tight = samples.equivalence(0, 1, low=low + 1e-6, high=high - 1e-6, ratio=ratio, draws=draws)
    assert wide <= 0.05 + 1e-6
    assert tight >= 0.05 - 1e-6
    assert samples.beyond(0, 1, low=low - 1, high=high + 1, ratio=ratio, draws=draws) == 1.0


def test_global_limit_is_welch_anova() -> None:
    rng = stream(8, "anova")
    parts = [rng.normal(0, s, n) for s, n in ((1, 20), (2, 30), (3, 25))]
    samples = MeanSamples(value=np.concatenate(parts), codes=np.repeat([0, 1, 2], [20, 30, 25]), n_groups=3)
    # Welch's F by its textbook steps.
    n, m, var = (np.array([f(p) for p in parts]) for f in (len, np.mean, lambda p: np.var(p, ddof=1)))
    w = n / var
    centre = (w * m).sum() / w.sum()
    lam = (3 * ((1 - w / w.sum()) ** 2 / (n - 1)).sum()) / 8
    f = (w * (m - centre) ** 2).sum() / 2 / (1 + 2 * lam / 3)
    result = samples.test_global([0, 1, 2], Draws(method="limit"))
    assert result.pvalue == pytest.approx(stats.f.sf(f, 2, 1 / lam), rel=1e-9)


def test_intervals_equivalence_and_ratio() -> None:
    rng = stream(9, "interval")
    v = np.concatenate([rng.normal(10, 1, 3000), rng.normal(9.9, 2, 4000)])
    samples = MeanSamples(value=v, codes=np.repeat([0, 1], [3000, 4000]), n_groups=2)
    low, high, kind = samples.interval(0, 1, level=0.95, ratio=False, draws=Draws(method="limit"))
    other = stats.ttest_ind(v[:3000], v[3000:], equal_var=False).confidence_interval(0.95)
    assert (low, high) == pytest.approx((other.low, other.high), rel=1e-9)
    assert kind == "welch-t"
    near = samples.interval(0, 1, level=0.95, ratio=False, draws=Draws(n_resamples=999, method="permutation"))
    assert near[:2] == pytest.approx((low, high), abs=0.02)
    rlow, rhigh, _ = samples.interval(0, 1, level=0.95, ratio=True, draws=Draws(method="limit"))
    assert rlow < samples.estimate[0] / samples.estimate[1] < rhigh
    draws = Draws(n_resamples=199)
    assert samples.equivalence(0, 1, low=-0.5, high=0.5, ratio=False, draws=draws) < 0.01
    assert samples.equivalence(0, 1, low=-0.05, high=0.05, ratio=False, draws=draws) > 0.5
    assert samples.equivalence(0, 1, low=0.8, high=1.25, ratio=True, draws=draws) < 0.01


def test_degenerate_samples() -> None:
    empty = MeanSamples(value=[1, 2], codes=[0, 0], n_groups=2, empty_reason="has no rows with outcome 1")
    assert empty.reason == ("", "has no rows with outcome 1")
    assert math.isnan(empty.estimate[1])
    assert math.isnan(empty.test(0, 1, QUICK).pvalue)
    assert math.isnan(empty.test_global([0, 1], QUICK).pvalue)
    assert math.isnan(empty.interval(0, 1, level=0.95, ratio=False, draws=QUICK)[0])
    assert math.isnan(empty.equivalence(0, 1, low=-1, high=1, ratio=False, draws=QUICK))
    same = MeanSamples(value=[2] * 8, codes=[0, 1] * 4, n_groups=2)
    assert same.test(0, 1, Draws()).pvalue == 1.0
    assert math.isnan(empty.beyond(0, 1, low=-1, high=1, ratio=False, draws=QUICK))
    apart = MeanSamples(value=[0] * 6 + [1] * 6, codes=[0] * 6 + [1] * 6, n_groups=2)
    assert apart.test(0, 1, Draws()).pvalue == pytest.approx(2 / math.comb(12, 6))
    single = MeanSamples(value=[5, 1, 2, 3, 4], codes=[0, 1, 1, 1, 1], n_groups=2)
    assert single.test(0, 1, Draws()).pvalue == pytest.approx(0.4)
    assert single.interval(0, 1, level=0.95, ratio=False, draws=QUICK)[:2] == (-math.inf, math.inf)


def test_skewed_small_groups_carry_a_warning() -> None:
    rng = stream(10, "warn")
    v = np.concatenate([3 * rng.lognormal(sigma=1.5, size=30), rng.lognormal(sigma=1.5, size=30)])
    g = np.repeat([0, 1], 30)
    warned = MeanSamples(value=v, codes=g, n_groups=2).test(0, 1, Draws(n_resamples=199)).warnings
    assert "so skewed" in warned[0]
    calm = rng.normal(size=60)
    assert MeanSamples(value=calm, codes=g, n_groups=2).test(0, 1, Draws(n_resamples=199)).warnings == ()


def test_the_global_test_warns_only_where_a_group_may_have_missed_the_tail() -> None:
    rng = stream(12, "missed")
    g = np.repeat([0, 1, 2], [300, 200, 60])
    seen = rng.lognormal(size=560)
    missed = np.where(g == 2, 0.1 * rng.normal(size=560), seen)
    draws = Draws(n_resamples=199)
    assert MeanSamples(value=seen, codes=g, n_groups=3).test_global([0, 1, 2], draws).warnings == ()
    warned = MeanSamples(value=missed, codes=g, n_groups=3).test_global([0, 1, 2], draws).warnings
    assert "may have missed" in warned[0]


def test_the_global_test_of_skewed_groups_holds_and_is_not_idle() -> None:
    rng = stream(13, "six")
    sizes, shapes = [150, 80, 60, 40, 30, 25], [2.0, 1.0, 1.0, 0.6, 0.5, 0.4]
    g, runs, hits, idle = np.repeat(np.arange(6), sizes), 300, 0, 0
    for r in range(runs):
        v = np.concatenate([rng.gamma(k, 1 / k, n) for n, k in zip(sizes, shapes, strict=True)])
        draws = Draws(n_resamples=199, seed=r)
        p = MeanSamples(value=v, codes=g, n_groups=6).test_global(range(6), draws).pvalue
        hits, idle = hits + (p <= 0.05), idle + (p <= 0.2)
    assert hits <= stats.binom.ppf(0.999, runs, 0.05)
    assert idle >= stats.binom.ppf(0.001, runs, 0.1)


@pytest.mark.parametrize(("na", "nb", "sa", "weighted"), [(30, 300, 1, False), (30, 60, 3, False), (30, 200, 1, True)])
def test_size(na: int, nb: int, sa: float, weighted: bool) -> None:
    rng = stream(11, "size")
    runs, hits = 300, 0
    for r in range(runs):
        if weighted:  # 0/1 values with sampling weights
            v, w = (rng.random(na + nb) < 0.2).astype(float), rng.gamma(2.0, size=na + nb)
        else:
            v, w = np.concatenate([sa * rng.normal(size=na), rng.normal(size=nb)]), None
        samples = MeanSamples(value=v, codes=np.repeat([0, 1], [na, nb]), n_groups=2, weight=w)
        hits += samples.test(0, 1, Draws(n_resamples=99, seed=r, method="permutation")).pvalue <= 0.05
    assert hits <= stats.binom.ppf(0.9999, runs, 0.05)


def test_an_exact_test_that_is_too_large_is_refused() -> None:
    v, g = skewed(40, 90)
    samples = MeanSamples(value=v, codes=g, n_groups=2)
    with pytest.raises(UsageError, match="too many permutations"):
        samples.test(0, 1, Draws(method="exact"))
    three = MeanSamples(value=v[:9], codes=np.arange(9) % 3, n_groups=3)
    with pytest.raises(UsageError, match="more than two groups"):
        three.test_global([0, 1, 2], Draws(method="exact"))


def test_values_whose_squares_vanish_still_have_a_test():
    value = np.array([0.0, 5e-324] * 10 + [5e-324] * 20)
    samples = MeanSamples(value=value, codes=np.repeat([0, 1], 20), n_groups=2)
    assert 0 < samples.test(0, 1, Draws(seed=0)).pvalue <= 1


@pytest.mark.parametrize("weighted", [False, True])
def test_calm_samples_dealt_by_their_limit_have_the_law_of_permutations(weighted: bool) -> None:
    rng = stream(31, "calm")
    sizes = [30, 40, 3000, 4000, 5000]
    value = rng.exponential(size=sum(sizes))
    weight = rng.gamma(4.0, size=value.size) if weighted else None
    samples = MeanSamples(value=value, codes=np.repeat(np.arange(5), sizes), n_groups=5, weight=weight)
    quick = samples.test_global(range(5), Draws(n_resamples=1999))
    plain = samples.test_global(range(5), Draws(n_resamples=1999, method="permutation"))
    assert "permutation" in quick.method
    n = min(quick.null.size, plain.null.size)
    assert n >= 999
    assert stats.ks_2samp(quick.null[:n], plain.null[:n]).pvalue > 0.001
    few = samples.test_global([2, 0], Draws(n_resamples=99))
    assert few.pvalue == samples.test_global([0, 2], Draws(n_resamples=99)).pvalue
