"""Each kind of metric against a plain loop over subgroups and permutations."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from evenhand.inference.samples import Draws
from evenhand.inference.scan import curves
from evenhand.inference.scan.aucs import AucFamily, score_bins
from evenhand.inference.scan.averages import AverageFamily
from evenhand.inference.scan.curves import CurveFamily, CurveSamples, calibration_bins
from evenhand.inference.scan.family import Family
from evenhand.inference.scan.means import MeanFamily, MomentFamily
from evenhand.inference.scan.step_down import step_down

sys.path.insert(0, str(Path(__file__).parent))

from brute_force import masks, plain_step_down, small_table

B = 60


def adjusted(family: Family, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the adjusted p-values, and the draws they are made of."""
    kept = []

    def drawn(rng: np.random.Generator, b: int) -> np.ndarray:
        kept.append(family.drawn(rng, b))
        return kept[-1].copy()

    pvalue = step_down(family.evidence, drawn, n_resamples=B, seed=seed, name="test").pvalue
    return pvalue, np.concatenate(kept)


def plain_mean_evidence(value: np.ndarray, inside: np.ndarray) -> float:
    """Welch's test of scipy, after Hall's transformation with the skewness of all rows."""
    test = stats.ttest_ind(value[inside], value[~inside], equal_var=False)
    n, m = inside.sum(), (~inside).sum()
    lean = stats.skew(value) * (1 / n**2 - 1 / m**2) / (1 / n + 1 / m) ** 1.5
    t = test.statistic
    t = min(abs(t), abs(t + lean * t**2 / 3 + lean**2 * t**3 / 27 + lean / 6))
    return float(-np.log(2 * stats.t(test.df).sf(t)))


def test_means_are_those_of_a_plain_loop():
    rng = np.random.default_rng(1)
    lattice, cell = small_table(rng, 60, 6)
    value = rng.exponential(size=60) + 2.0 * (cell < 3)
    family = MeanFamily(lattice, cell, value, np.ones(60, int))
    order = np.lexsort((value, cell))
    inside = masks(lattice, cell[order])
    assert family.difference == pytest.approx(
        [value[order][w].mean() - value[order][~w].mean() for w in inside], abs=1e-10
    )
    t = family._sides.welch(*family._sums(family._rows[None]))[0][:, 0]
    plain = [stats.ttest_ind(value[order][w], value[order][~w], equal_var=False).statistic for w in inside]
    assert t == pytest.approx(plain, abs=1e-10)
    pvalue, drawn = adjusted(family, 3)
    lines = np.random.default_rng(5).permuted(np.broadcast_to(value[order], (B, 60)), axis=1)
    loop = np.array([[plain_mean_evidence(line, w) for w in inside] for line in lines])
    assert family.drawn(np.random.default_rng(5), B) == pytest.approx(loop, rel=2e-4, abs=1e-9)
    seen = np.array([plain_mean_evidence(value[order], w) for w in inside])
    assert family.evidence == pytest.approx(seen, rel=2e-4)
    assert pvalue.tolist() == plain_step_down(seen, drawn).tolist()
    assert pvalue.min() < 0.5 < pvalue.max()


def test_signs_leave_every_row_where_it_is():
    rng = np.random.default_rng(1)
    lattice, cell = small_table(rng, 50, 6)
    value = rng.normal(size=50) * (1 + 3 * (cell == 2))
    family = MeanFamily(lattice, cell, value, np.ones(50, int))
    order = np.lexsort((value, cell))
    bits = np.unpackbits(np.random.default_rng(2).integers(0, 256, (4, 7), dtype=np.uint8), axis=1)[:, :50]
    centred = (value[order] - value.mean()) / value.std()
    t, _ = family._sides.welch(*family._sums(np.where(bits, centred, -centred)))
    for line, seen in zip(np.where(bits, centred, -centred), t.T, strict=True):
        plain = [stats.ttest_ind(line[w], line[~w], equal_var=False).statistic for w in masks(lattice, cell[order])]
        assert seen == pytest.approx(plain, abs=1e-9)
    assert family.flipped(np.random.default_rng(2), 4) == pytest.approx(
        family._sides.evidence(*family._sums(np.where(bits, centred, -centred))).T
    )


def test_order_and_repeated_rows_do_not_matter():
    rng = np.random.default_rng(2)
    lattice, cell = small_table(rng, 60, 6)
    value, count = rng.integers(0, 4, 60).astype(float), rng.integers(1, 4, 60)
    shuffled = rng.permutation(60)
    repeated = np.repeat(np.arange(60), count)
    one = MeanFamily(lattice, cell, value, count)
    for two in (
        MeanFamily(lattice, cell[shuffled], value[shuffled], count[shuffled]),
        MeanFamily(lattice, cell[repeated], value[repeated], np.ones(repeated.size, int)),
    ):
        assert (one.evidence == two.evidence).all()
        assert (one.drawn(np.random.default_rng(0), 7) == two.drawn(np.random.default_rng(0), 7)).all()
    score = rng.random(60)
    place, residual = calibration_bins(score), rng.integers(0, 2, 60) - score
    first = CurveFamily(lattice, cell, place, residual, count)
    again = (part[repeated] for part in (cell, place, residual))
    second = CurveFamily(lattice, *again, np.ones(repeated.size, int))
    assert first.evidence == pytest.approx(second.evidence, abs=1e-12)
    assert (first.drawn(np.random.default_rng(0), 7) == second.drawn(np.random.default_rng(0), 7)).all()


def test_values_that_do_not_vary_show_nothing():
    rng = np.random.default_rng(2)
    lattice, cell = small_table(rng, 60, 6)
    family = MeanFamily(lattice, cell, np.full(60, 0.1), np.ones(60, int))
    assert family.evidence.max() == 0
    assert family.drawn(rng, 3).max() == 0


def plain_auc(x: np.ndarray, y: np.ndarray) -> tuple[float, float, list[tuple[float, int]]]:
    """Return the regularised logit, its variance, and the two sides' parts, from all pairs of rows."""
    right = (x[:, None] > y) + 0.5 * (x[:, None] == y)
    p, q = x.size, y.size
    auc = (right.mean() * p * q + 0.5) / (p * q + 1)
    sides = [right.mean(axis=1).var(ddof=1) / p, right.mean(axis=0).var(ddof=1) / q]
    n = min(p, q)
    variance = (n * sum(sides) + auc * (1 - auc) / n) / (n + 1)
    slope = 1 / (auc * (1 - auc)) ** 2
    return math.log(auc / (1 - auc)), variance * slope, [(s * slope, k) for s, k in zip(sides, (p, q), strict=True)]


def plain_auc_evidence(score: np.ndarray, outcome: np.ndarray, inside: np.ndarray) -> float:
    """DeLong's test of two logits with Satterthwaite's degrees of freedom."""
    (l1, v1, s1), (l2, v2, s2) = (plain_auc(score[w & outcome], score[w & ~outcome]) for w in (inside, ~inside))
    lost = sum(s**2 / (k - 1) for s, k in [*s1, *s2])
    df = min((v1 + v2) ** 2 / lost, outcome.size)
    return float(-np.log(2 * stats.t(df).sf(abs(l1 - l2) / math.sqrt(v1 + v2))))


def auc_tables(cell: np.ndarray, score: np.ndarray, outcome: np.ndarray) -> list[np.ndarray]:
    """Count rows of each outcome by cell and bin."""
    place = score_bins(score, np.ones(score.size, int))
    tables = [np.zeros((cell.max() + 1, place.max() + 1), int) for _ in range(2)]
    for c, k, y in zip(cell, place, outcome, strict=True):
        tables[0 if y else 1][c, k] += 1
    return tables


def test_aucs_are_those_of_a_plain_loop():
    rng = np.random.default_rng(4)
    lattice, cell = small_table(rng, 110, 25)
    outcome = rng.random(110) < 0.5
    score = np.round(2 * (rng.normal(size=110) + outcome * np.where(cell < 4, 2.0, 0.3))) / 2
    family = AucFamily(lattice, *auc_tables(cell, score, outcome))
    inside = masks(lattice, cell)
    assert family.evidence == pytest.approx([plain_auc_evidence(score, outcome, w) for w in inside], rel=2e-4)
    exact = [plain_auc(score[w & outcome], score[w & ~outcome])[0] for w in inside]
    moved = [(v * p * q + 0.5) / (p * q + 1) for v, w in zip(family.value, inside, strict=True)
             for p, q in [((w & outcome).sum(), (w & ~outcome).sum())]]  # fmt: skip
    assert [math.log(v / (1 - v)) for v in moved] == pytest.approx(exact, abs=1e-10)
    # Scores of each outcome are permuted among the rows of that outcome, sorted by cell and score.
    order = np.lexsort((score, cell))
    source = np.random.default_rng(6)
    lines = np.empty((B, 110))
    for side in (True, False):
        rows = order[outcome[order] == side]
        lines[:, rows] = source.permuted(np.broadcast_to(score[rows], (B, rows.size)), axis=1)
    loop = np.array([[plain_auc_evidence(line, outcome, w) for w in inside] for line in lines])
    assert family.drawn(np.random.default_rng(6), B) == pytest.approx(loop, rel=2e-4, abs=1e-9)
    pvalue, drawn = adjusted(family, 3)
    assert pvalue.tolist() == plain_step_down(family.evidence, drawn).tolist()
    assert pvalue.min() < 0.5 < pvalue.max()


def test_tables_of_counts_have_the_law_of_permuted_rows():
    rng = np.random.default_rng(4)
    lattice, cell = small_table(rng, 200, 25)
    outcome = rng.random(200) < 0.5
    tables = auc_tables(cell, rng.integers(0, 3, 200).astype(float), outcome)
    by_rows, by_counts = AucFamily(lattice, *tables), AucFamily(lattice, *(30 * t for t in tables))
    # Thirty times the rows are drawn as counts; their evidence is that of chance, too.
    assert by_counts._tables[0].sum() > 8 * np.count_nonzero(by_counts._tables[0])
    for family in (by_rows, by_counts):
        chance = np.exp(-family.drawn(np.random.default_rng(1), 4000))
        assert (chance <= 0.1).mean(axis=0) == pytest.approx(0.1, abs=0.03)


def test_many_scores_are_binned_by_themselves_alone():
    score = np.random.default_rng(0).normal(size=5000)
    place = score_bins(score, np.ones(5000, int))
    assert np.bincount(place).tolist() == pytest.approx([5000 / 32] * 32, abs=1)
    assert (np.diff(place[np.argsort(score)]) >= 0).all()


def plain_curve(place: np.ndarray, residual: np.ndarray, inside: np.ndarray) -> tuple[float, int, float]:
    """Return statistic, bins and precision of two calibration curves by the definition."""
    statistic, bins, precision = 0.0, 0, 0.0
    for k in range(10):
        one, two = residual[(place == k) & inside], residual[(place == k) & ~inside]
        if min(one.size, two.size) >= curves.FEWEST:
            variance = residual[place == k].var(ddof=1) * (1 / one.size + 1 / two.size)
            statistic += (one.mean() - two.mean()) ** 2 / variance
            bins, precision = bins + 1, precision + 1 / variance
    return statistic, bins, precision


def test_curves_are_those_of_a_plain_loop():
    rng = np.random.default_rng(7)
    lattice, cell = small_table(rng, 300, 20)
    score = rng.beta(2, 2, 300)
    outcome = (rng.random(300) < np.where(cell < 2, 0.3, score)).astype(float)
    place = calibration_bins(score)
    family = CurveFamily(lattice, cell, place, outcome - score, np.ones(300, int))
    inside = masks(lattice, cell)
    for i, w in enumerate(inside):
        statistic, bins, precision = plain_curve(place, outcome - score, w)
        if not bins:
            assert (family.bins[i], family.evidence[i]) == (0, 0.0)
            continue
        evidence = max(-stats.chi2(bins).logsf(statistic) - math.log(2), 0.0)
        assert (family.bins[i], family.evidence[i]) == (bins, pytest.approx(evidence, abs=1e-10))
        assert family.value[i] == pytest.approx(math.sqrt(max(statistic - bins, 0) / precision), abs=1e-10)
        pair = CurveSamples(score=score, outcome=outcome, codes=(~w).astype(int), count=np.ones(300, int))
        assert pair.difference(0, 1) == pytest.approx(family.value[i], abs=1e-10)
        assert pair.test(0, 1, Draws()).pvalue == pytest.approx(math.exp(-evidence), rel=1e-9)
    order = np.lexsort((outcome - score, cell, place))
    source = np.random.default_rng(9)
    lines = np.empty((B, 300))
    for k in np.unique(place):
        rows = order[place[order] == k]
        lines[:, rows] = source.permuted(np.broadcast_to((outcome - score)[rows], (B, rows.size)), axis=1)
    loop = [[plain_curve(place, line, w)[:2] for w in inside] for line in lines]
    plain = [[max(-stats.chi2(k).logsf(x) - math.log(2), 0.0) if k else 0.0 for x, k in line] for line in loop]
    assert family.drawn(np.random.default_rng(9), B) == pytest.approx(np.array(plain), abs=1e-9)
    pvalue, drawn = adjusted(family, 3)
    assert pvalue.tolist() == plain_step_down(family.evidence, drawn).tolist()


@pytest.mark.parametrize("level", [0.5, 0.95, 0.9999])
def test_limits_of_a_distance_agree_with_its_test(level):
    rng = np.random.default_rng(0)
    verdicts = set()
    for shift in (0.0, 0.1, 0.2, 0.3):
        score, codes = rng.random(600), rng.integers(0, 2, 600)
        outcome = (rng.random(600) < np.clip(score + shift * codes, 0, 1)).astype(float)
        pair = CurveSamples(score=score, outcome=outcome, codes=codes, count=np.ones(600, int))
        low, high, _ = pair.interval(0, 1, level=level, ratio=False, draws=Draws())
        assert (low > 0) == (pair.test(0, 1, Draws()).pvalue <= 1 - level)
        assert low <= pair.difference(0, 1) <= high
        share = (1 - level) / 2
        nc = high**2 * pair._precision
        assert stats.ncx2(pair._bins, nc).cdf(pair._statistic) == pytest.approx(share, rel=1e-5)
        if low > 0:
            assert stats.ncx2(pair._bins, low**2 * pair._precision).sf(pair._statistic) == pytest.approx(
                share, rel=1e-3
            )
        verdicts.add(low > 0)
    assert len(verdicts) == 2


def test_average_is_that_of_a_plain_loop():
    rng = np.random.default_rng(8)
    lattice, cell = small_table(rng, 200, 30)
    outcome = rng.random(200) < 0.5
    hit = rng.random(200) < np.where(cell < 3, 0.8, 0.5)
    cells = cell.max() + 1
    tables = [
        np.stack([np.bincount(cell[part & side], minlength=cells) for side in (outcome, ~outcome)])
        for part in (hit, np.ones(200, bool))
    ]
    family = AverageFamily(lattice, *tables)
    for i, w in enumerate(masks(lattice, cell)):
        gap, parts = 0.0, []
        for side in (outcome, ~outcome):
            for people, sign in ((w & side, 1), (~w & side, -1)):
                gap += sign * hit[people].mean() / 2
                p = (hit[people].sum() + 1) / (people.sum() + 2)
                parts.append((p * (1 - p) / people.sum() / 4, people.sum() - 1))
        variance = sum(v for v, _ in parts)
        law = stats.t(variance**2 / sum(v**2 / df for v, df in parts))
        assert family.difference[i] == pytest.approx(gap, abs=1e-12)
        assert family.evidence[i] == pytest.approx(-np.log(2 * law.sf(abs(gap) / math.sqrt(variance))), rel=1e-4)
    chance = np.exp(-family.drawn(np.random.default_rng(1), 4000))
    assert (chance <= 0.1).mean(axis=0) == pytest.approx(0.1, abs=0.035)
    pvalue, drawn = adjusted(family, 3)
    assert pvalue.tolist() == plain_step_down(family.evidence, drawn).tolist()


def test_moments_are_searched_like_rows():
    rng = np.random.default_rng(3)
    lattice, cell = small_table(rng, 6000, 1000)
    value = rng.exponential(size=6000)
    n, total, squares = (np.bincount(cell, weights=part) for part in (np.ones(6000), value, value**2))
    rows, sums = MeanFamily(lattice, cell, value, np.ones(6000, int)), MomentFamily(lattice, n, total, squares)
    assert sums.difference == pytest.approx(rows.difference, abs=1e-12)
    plain = [stats.ttest_ind(value[w], value[~w], equal_var=False).pvalue for w in masks(lattice, cell)]
    assert np.exp(-sums.evidence) == pytest.approx(plain, rel=1e-4)
    one, two = (family.drawn(np.random.default_rng(5), 3000) for family in (rows, sums))
    # The same joint law: how often two subgroups are both far from the rest.
    far = [(part > 1.0).astype(float) for part in (one, two)]
    assert np.abs(far[0].T @ far[0] - far[1].T @ far[1]).max() / 3000 < 0.05
    assert np.quantile(one.max(axis=1), 0.95) == pytest.approx(np.quantile(two.max(axis=1), 0.95), abs=0.4)
