from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import optimize, special, stats
from sklearn.metrics import roc_auc_score

from evenhand.errors import UsageError
from evenhand.inference.auc import AucSamples
from evenhand.inference.samples import Draws
from evenhand.kernels.shared.seeds import stream

QUICK = Draws(n_resamples=99, method="permutation")


def scored(n: int = 200, digits: int | None = None, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = stream(seed, "scored")
    y = rng.random(n) < 0.4
    s = rng.normal(size=n) + y
    return (s if digits is None else np.round(s, digits)), y.astype(int), rng.integers(0, 3, n)


def delong(s: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    p, q = s[y == 1], s[y == 0]
    psi = (p[:, None] > q) + 0.5 * (p[:, None] == q)
    return psi.mean(), psi.mean(1).var(ddof=1) / p.size + psi.mean(0).var(ddof=1) / q.size


@pytest.mark.parametrize("digits", [None, 1])
def test_estimate_and_plain_statistic(digits: int | None) -> None:
    s, y, g = scored(digits=digits)
    samples = AucSamples(score=s, outcome=y, codes=g, n_groups=3)
    for k in range(3):
        assert samples.estimate[k] == pytest.approx(roc_auc_score(y[g == k], s[g == k]))
    (a, va), (b, vb) = (delong(s[g == k], y[g == k]) for k in (0, 1))
    result = samples.test(0, 1, Draws(method="limit", variance="unpooled"))
    assert result.statistic == pytest.approx((a - b) / math.sqrt(va + vb))
    assert result.pvalue == pytest.approx(2 * stats.norm.sf(abs(result.statistic)))
    assert samples.counts[0]["positives"] == ((g == 0) & (y == 1)).sum()


def test_enumeration_within_outcome_by_brute_force() -> None:
    s, y, g = scored(14, digits=0, seed=5)
    g = g % 2
    samples = AucSamples(score=s, outcome=y, codes=g, n_groups=2)
    result = samples.test(0, 1, Draws(method="exact"))
    observed, null = samples.test(0, 1, Draws(method="limit")).statistic, []
    places = [np.flatnonzero(y == side) for side in (1, 0)]
    sizes = [int((g[p] == 0).sum()) for p in places]
    for first in itertools.combinations(places[0], sizes[0]):
        for second in itertools.combinations(places[1], sizes[1]):
            label = np.ones(14, dtype=int)
            label[[*first, *second]] = 0
            moved = AucSamples(score=s, outcome=y, codes=label, n_groups=2)
            null.append(moved.test(0, 1, Draws(method="limit")).statistic)
    assert result.exact
    tails = [np.mean(sign * np.array(null) >= sign * observed - 1e-9) for sign in (1, -1)]
    assert result.pvalue == pytest.approx(min(1, 2 * min(tails)))


def test_rows_and_bins_have_one_law() -> None:
    s, y, g = scored(2000, digits=0)
    g = (g > 0).astype(int)
    few = AucSamples(score=s, outcome=y, codes=g, n_groups=2)  # about ten distinct scores: drawn as counts
    bins = few.test(0, 1, Draws(n_resamples=1999, method="permutation"))
    tiny = np.linspace(0, 1e-9, 2000)
    rows = AucSamples(score=s + tiny, outcome=y, codes=g, n_groups=2)
    # Breaking the ties at random changes the AUC; the shape of the permuted law must stay.
    other = rows.test(0, 1, Draws(n_resamples=1999, method="permutation"))
    assert stats.ks_2samp(bins.null, other.null).pvalue > 0.001


def test_all_rows_may_be_permuted() -> None:
    s, y, g = scored()
    samples = AucSamples(score=s, outcome=y, codes=g, n_groups=3)
    every = samples.test(0, 1, Draws(n_resamples=199, permute="all"))
    within = samples.test(0, 1, Draws(n_resamples=199, method="permutation"))
    assert "within outcome" in within.method
    assert "within outcome" not in every.method
    assert every.null.tobytes() != within.null.tobytes()
    assert samples.test_global([0, 1, 2], Draws(n_resamples=19, permute="all")).pvalue > 0


@pytest.mark.parametrize("kind", ["rows", "bins", "weights"])
def test_row_order_labels_do_not_matter(kind: str) -> None:
    s, y, g = scored(600, digits=0 if kind == "bins" else None)
    w = stream(2, "w").gamma(2.0, size=600) if kind == "weights" else np.ones(600)
    opt = (lambda i: {"weight": w[i]}) if kind == "weights" else (lambda i: {})
    base = AucSamples(score=s, outcome=y, codes=g, n_groups=3, **opt(slice(None)))
    order = stream(3, "order").permutation(600)
    moved = AucSamples(score=s[order], outcome=y[order], codes=2 - g[order], n_groups=3, **opt(order))
    assert base.test(0, 1, QUICK).null.tobytes() == moved.test(2, 1, QUICK).null.tobytes()
    assert base.test(0, 1, QUICK).pvalue == moved.test(2, 1, QUICK).pvalue == base.test(1, 0, QUICK).pvalue
    assert base.test_global([0, 1, 2], QUICK).null.tobytes() == moved.test_global([0, 1, 2], QUICK).null.tobytes()


@pytest.mark.parametrize("digits", [None, 0])
def test_counts_equal_repeated_rows(digits: int | None) -> None:
    s, y, g = scored(300, digits)
    c = stream(4, "c").integers(0, 4, 300)
    told = AucSamples(score=s, outcome=y, codes=g, n_groups=3, count=c)
    written = AucSamples(score=np.repeat(s, c), outcome=np.repeat(y, c), codes=np.repeat(g, c), n_groups=3)
    assert told.test(0, 1, QUICK).null.tobytes() == written.test(0, 1, QUICK).null.tobytes()
    assert told.estimate.tobytes() == written.estimate.tobytes()


def test_equal_weights_change_nothing_that_matters() -> None:
    s, y, g = scored()
    plain = AucSamples(score=s, outcome=y, codes=g, n_groups=3)
    heavy = AucSamples(score=s, outcome=y, codes=g, n_groups=3, weight=np.full(200, 2.5))
    assert heavy.estimate == pytest.approx(plain.estimate)
    a, b = plain.test(0, 1, QUICK), heavy.test(0, 1, QUICK)
    assert a.statistic == pytest.approx(b.statistic)
    assert a.null == pytest.approx(b.null)


def test_weighted_estimate() -> None:
    s, y, g = scored(digits=1)
    w = stream(5, "w").gamma(1.0, size=200)
    samples = AucSamples(score=s, outcome=y, codes=g, n_groups=3, weight=w)
    k = g == 1
    assert samples.estimate[1] == pytest.approx(roc_auc_score(y[k], s[k], sample_weight=w[k]))


def test_perfect_separation_in_a_small_group_is_not_evidence() -> None:
    # Three of three in order against an AUC of .9: the plain statistic explodes.
    rng = stream(6, "perfect")
    big = rng.normal(size=400) + np.repeat([1.8, 0], 200)
    s = np.concatenate([[2.0, 2.1, 2.2, 0.1, 0.2, 0.3], big])
    y = np.concatenate([[1, 1, 1, 0, 0, 0], np.repeat([1, 0], 200)])
    g = np.repeat([0, 1], [6, 400])
    samples = AucSamples(score=s, outcome=y, codes=g, n_groups=2)
    result = samples.test(0, 1, Draws(n_resamples=499))
    assert samples.estimate[0] == 1.0
    assert result.pvalue > 0.05
    assert "hardly any pair" in result.warnings[0]
    low, high, _ = samples.interval(0, 1, level=0.95, ratio=False, draws=QUICK)
    assert low < 0 < high <= 0.2


@pytest.mark.parametrize("ratio", [False, True])
@pytest.mark.parametrize("method", ["auto", "permutation"])
@pytest.mark.parametrize("apart", [0.0, 0.6])
def test_interval_test_margin_and_equivalence_agree(ratio: bool, method: str, apart: float) -> None:
    s, y, g = scored(400)
    samples = AucSamples(score=s + apart * y * (g == 0), outcome=y, codes=g, n_groups=3)
    draws, none = Draws(n_resamples=1999, method=method), 1.0 if ratio else 0.0
    p = samples.test(0, 1, draws).pvalue
    for level in (0.9, 0.95, 1 - p - 1e-6, 1 - p + 1e-6):
        if not 0.8 <= level < 0.995:
            continue
        low, high, _ = samples.interval(0, 1, level=level, ratio=ratio, draws=draws)
        assert (low > none or high < none) == (p <= 1 - level)
        assert samples.beyond(0, 1, low=low - 0.1, high=low - 1e-6, ratio=ratio, draws=draws) <= 1 - level + 1e-4
        assert samples.beyond(0, 1, low=low - 0.1, high=low + 1e-6, ratio=ratio, draws=draws) >= 1 - level - 1e-4
        assert samples.beyond(0, 1, low=high + 1e-6, high=high + 0.1, ratio=ratio, draws=draws) <= 1 - level + 1e-4
        assert samples.beyond(0, 1, low=high - 1e-6, high=high + 0.1, ratio=ratio, draws=draws) >= 1 - level - 1e-4
    low, high, _ = samples.interval(0, 1, level=0.9, ratio=ratio, draws=draws)
    assert samples.beyond(0, 1, low=low, high=high, ratio=ratio, draws=draws) == 1.0
    if method == "auto":
        for bounds in ({"low": low, "high": 10.0}, {"low": -5.0, "high": high}):
            assert samples.equivalence(0, 1, **bounds, ratio=ratio, draws=draws) == pytest.approx(0.05, abs=1e-4)


def test_large_samples_agree_with_delong() -> None:
    s, y, g = scored(3000)
    samples = AucSamples(score=s, outcome=y, codes=g, n_groups=3)
    (a, va), (b, vb) = (delong(s[g == k], y[g == k]) for k in (0, 1))
    low, high, _ = samples.interval(0, 1, level=0.95, ratio=False, draws=Draws())
    assert (low, high) == pytest.approx(
        (a - b - 1.96 * math.sqrt(va + vb), a - b + 1.96 * math.sqrt(va + vb)), abs=0.003
    )
    assert samples.standard_error(0, 1) == pytest.approx(math.sqrt(va + vb), rel=0.02)
    result = samples.test(0, 1, Draws())
    assert result.method == "skewness-corrected t test of logits"
    assert result.pvalue == pytest.approx(2 * stats.norm.sf(abs(a - b) / math.sqrt(va + vb)), abs=0.03)
    assert samples.test_global([0, 1], Draws()).pvalue == pytest.approx(result.pvalue, abs=0.01)


def test_many_rows_and_small_groups_are_quick() -> None:
    """Nothing is drawn: 270,000 rows in nine groups, the smallest with 270 rows, cost a few sorts."""
    rng = stream(9, "many")
    n, shares = 270_000, [0.7, 0.2, 0.05, 0.03, 0.01, 0.005, 0.003, 0.001, 0.001]
    g, y = rng.choice(9, n, p=shares), rng.random(n) < 0.1
    score, count = np.round(rng.normal(size=n) + y, 1), np.ones(n, dtype=int)
    samples = AucSamples(score=score, outcome=y, codes=g, n_groups=9, count=count)
    for k in range(1, 9):
        assert samples.test(k, 0, Draws()).n_resamples == 0
        low, high, _ = samples.interval(k, 0, level=0.95, ratio=False, draws=Draws())
        assert low < samples.estimate[k] - samples.estimate[0] < high
    assert 0 < samples.test_global(range(9), Draws()).pvalue <= 1


def test_lean_of_the_placements_by_brute_force() -> None:
    s, y, g = scored(120, digits=1)
    w = stream(10, "w").gamma(2.0, size=120)
    for weight in (None, w):
        samples = AucSamples(score=s, outcome=y, codes=g, n_groups=3, weight=weight)
        u = np.ones(120) if weight is None else w
        up, down = (g == 0) & (y == 1), (g == 0) & (y == 0)
        psi = (s[up][:, None] > s[down]) + 0.5 * (s[up][:, None] == s[down])
        place = psi @ u[down] / u[down].sum()
        residual = u[up] / u[up].mean() * (place - np.average(place, weights=u[up]))
        shape = samples._placements(0)[0]
        assert shape.moments[1] == pytest.approx((residual**3).mean())
        assert shape.variance == pytest.approx((residual**2).sum() / up.sum() / (up.sum() - 1))


def test_a_missing_outcome_has_a_reason() -> None:
    samples = AucSamples(score=[1, 2, 3, 4, 5], outcome=[1, 1, 0, 1, 0], codes=[0, 0, 1, 1, 1], n_groups=3)
    assert samples.reason == ("has no rows with outcome 0", "", "has no rows with outcome 1 or 0")
    assert math.isnan(samples.test(0, 1, QUICK).pvalue)
    assert math.isnan(samples.test_global([0, 1], QUICK).pvalue)
    assert math.isnan(samples.interval(0, 1, level=0.95, ratio=True, draws=QUICK)[0])
    assert math.isnan(samples.equivalence(0, 1, low=-1, high=1, ratio=False, draws=QUICK))
    weighted = AucSamples(
        score=[1, 2, 3, 4, 5],
        outcome=[1, 1, 0, 1, 0],
        codes=[0, 0, 1, 1, 1],
        n_groups=2,
        weight=[1, 2, 1, 2, 1],
    )
    assert math.isnan(weighted.estimate[0])


@pytest.mark.parametrize(("auc", "spread"), [(0.75, 1.0), (0.75, 3.0), (0.95, 1.0)])
def test_size(auc: float, spread: float) -> None:
    rng = stream(8, "size")
    runs, hits = 120, 0
    y, g = np.repeat([1, 0, 1, 0], [22, 78, 100, 300]), np.repeat([0, 1], [100, 400])
    for r in range(runs):
        width = np.repeat([1.0, 1.0, spread, 1.0], [22, 78, 100, 300])
        centre = stats.norm.ppf(auc) * np.sqrt(width**2 + 1) * y
        s = centre + width * rng.normal(size=500)
        result = AucSamples(score=s, outcome=y, codes=g, n_groups=2).test(0, 1, Draws(n_resamples=99, seed=r))
        hits += result.pvalue <= 0.05
    assert hits <= stats.binom.ppf(0.9999, runs, 0.05)


def test_an_exact_test_that_is_too_large_is_refused() -> None:
    score, y, g = scored()
    samples = AucSamples(score=score, outcome=y, codes=g, n_groups=int(g.max()) + 1)
    with pytest.raises(UsageError, match="too many permutations"):
        samples.test(0, 1, Draws(method="exact"))
    with pytest.raises(UsageError, match="more than two groups"):
        samples.test_global([0, 1], Draws(method="exact"))


@pytest.mark.parametrize(("value", "ratio"), [(0.1, False), (-0.3, False), (1.2, True), (0.4, True)])
def test_distance_to_a_margin_is_the_least_that_a_search_by_scipy_finds(value: float, ratio: bool) -> None:
    rng = stream(11, "margin")
    y = rng.random(200) < 0.4
    samples = AucSamples(score=rng.normal(size=200) + y, outcome=y, codes=rng.integers(2, size=200), n_groups=2)
    (l1, v1), (l2, v2) = samples._logits

    def square(second: float) -> float:
        first = value * second if ratio else second + value
        return (l1 - special.logit(first)) ** 2 / v1 + (l2 - special.logit(second)) ** 2 / v2

    ends = (1e-9, min(1, 1 / value) - 1e-9) if ratio else (max(0, -value) + 1e-9, min(1, 1 - value) - 1e-9)
    wanted = optimize.minimize_scalar(square, bounds=ends, method="bounded", options={"xatol": 1e-10})
    assert abs(samples._distance(0, 1, value, ratio)) == pytest.approx(math.sqrt(wanted.fun), rel=1e-9)


@pytest.mark.parametrize("digits", [None, 1])
def test_parts_of_weighted_lines_by_brute_force(digits: int | None) -> None:
    s, y, g = scored(150, digits)
    w = np.round(stream(12, "w").gamma(2.0, size=150), 1) + 0.1
    samples = AucSamples(score=s, outcome=y, codes=g, n_groups=3, weight=w)
    for k in range(3):
        up, down = (g == k) & (y == 1), (g == k) & (y == 0)
        psi = (s[up][:, None] > s[down]) + 0.5 * (s[up][:, None] == s[down])
        auc = w[up] @ psi @ w[down] / w[up].sum() / w[down].sum()
        variance = 0.0
        for side, place in ((up, psi @ w[down] / w[down].sum()), (down, w[up] @ psi / w[up].sum())):
            n = side.sum()
            variance += (w[side] ** 2 @ (place - auc) ** 2) / w[side].sum() ** 2 * n / (n - 1)
        part = samples._observed[k]
        assert (float(part.auc), float(part.variance())) == pytest.approx((auc, variance))


@pytest.mark.parametrize("ratio", [False, True])
@pytest.mark.parametrize("level", [1e-9, 0.5, 0.95, 0.9999])
def test_interval_is_where_the_distance_to_both_logits_reaches_the_critical_value(ratio: bool, level: float) -> None:
    s, y, g = scored(90, seed=3)
    samples = AucSamples(score=s + 0.5 * y * (g == 0), outcome=y, codes=g, n_groups=3)
    for a, b in itertools.permutations(range(3), 2):
        low, high, _ = samples.interval(a, b, level=level, ratio=ratio, draws=Draws())
        ends = samples._reference(a, b, Draws())[0].critical(level)
        point = samples._point(a, b, ratio)
        for value, end in ((low, ends[1]), (high, ends[0])):
            if value != point:
                assert samples._distance(a, b, value, ratio) == pytest.approx(end, abs=2e-6)


def test_infinite_critical_values_leave_the_interval_open() -> None:
    s, y, g = scored(90, seed=3)
    samples = AucSamples(score=s, outcome=y, codes=g, n_groups=3)
    few = Draws(n_resamples=9, method="permutation")
    assert samples.interval(0, 1, level=0.95, ratio=False, draws=few)[:2] == (-1.0, 1.0)
    assert samples.interval(0, 1, level=0.95, ratio=True, draws=few)[:2] == (0.0, math.inf)
