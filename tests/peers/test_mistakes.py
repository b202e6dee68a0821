"""Statistical mistakes seen in other toolkits, as cases that must come out right here.

The numbers in the comments are what the other tool did on the same design.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import evenhand as eh
from evenhand.inference.multiplicity import adjust
from evenhand.inference.rates.samples import RateSamples
from evenhand.inference.samples import Draws


def rejections(make, runs: int, *, measure: str, **options) -> int:
    """Count how often a true null is called a disparity."""
    hits = 0
    for seed in range(runs):
        result = eh.audit_group(make(np.random.default_rng(seed)), metrics=[measure], rng=seed, **options)
        (pvalue,) = [f.pvalue for f in result if f.measure == measure]
        hits += pvalue <= 0.05
    return hits


def limit(runs: int) -> int:
    """Return the number of rejections that a valid 5 % test exceeds once in 10,000 such tests."""
    return int(stats.binom.isf(1e-4, runs, 0.05))


def decisions(rng, sizes, base, tpr, fpr):
    group = np.repeat(["a", "b"], sizes)
    outcome = rng.random(sum(sizes)) < np.repeat(base, sizes)
    decision = rng.random(sum(sizes)) < np.where(outcome, np.repeat(tpr, sizes), np.repeat(fpr, sizes))
    return eh.AuditData.from_arrays(outcome=outcome, decision=decision, groups={"g": group})


@pytest.mark.parametrize(
    ("sizes", "base"),
    [
        ((500, 500), (0.6, 0.06)),
        ((150, 60), (0.5, 0.1)),
    ],  # one pooled spread for all permutations: .093 and .17
)
def test_equal_recall_with_unequal_base_rates_keeps_its_level(sizes, base):
    runs = 400
    hits = rejections(lambda rng: decisions(rng, sizes, base, (0.8, 0.8), (0.2, 0.2)), runs, measure="tpr")
    assert hits <= limit(runs)


def test_equal_opportunity_permutes_positives_only():
    runs = 400  # permuting all rows without studentising: .27
    hits = rejections(lambda rng: decisions(rng, (500, 500), (0.6, 0.06), (0.7, 0.7), (0.3, 0.3)), runs, measure="tpr")
    assert hits <= limit(runs)


@pytest.mark.parametrize("measure", ["fpr", "tpr", "fnr", "tnr"])
def test_fpr_significance_is_not_an_fdr_test(measure):
    runs = 200  # testing P(false positive | decided 1) and calling it FPR: 40 of 40 runs below .05
    hits = rejections(lambda rng: decisions(rng, (600, 600), (0.2, 0.6), (0.7, 0.7), (0.3, 0.3)), runs, measure=measure)
    assert hits <= limit(runs)


def test_pvalue_is_never_zero_and_equal_rates_give_one():
    data = decisions(np.random.default_rng(0), (2000, 2000), (0.5, 0.5), (0.95, 0.05), (0.05, 0.95))
    assert all(f.pvalue > 0 for f in eh.audit_group(data, metrics=["tpr", "fpr"], rng=0))
    same = eh.AuditData.from_arrays(
        outcome=np.ones(40), decision=np.tile([1, 0], 20), groups={"g": np.repeat(["a", "b"], 20)}
    )
    (finding,) = eh.audit_group(same, metrics=["tpr"], rng=0)  # an observed difference of 0 once had p = .788
    assert finding.estimate == 0
    assert finding.pvalue == 1


def test_undefined_rate_is_not_zero():
    data = eh.AuditData.from_arrays(
        outcome=[0, 0, 0, 1, 1, 0], decision=[0, 1, 0, 1, 0, 0], groups={"g": list("aaabbb")}
    )
    (finding,) = eh.audit_group(data, metrics=["tpr"], rng=0)
    assert finding.verdict == "not_computable"
    assert np.isnan(finding.estimate)
    assert "has no rows with outcome 1" in finding.reason


def test_auc_of_binary_scores_counts_ties_half():
    rng = np.random.default_rng(1)
    outcome = rng.random(400) < 0.5
    score = (rng.random(400) < np.where(outcome, 0.7, 0.3)).astype(float)
    group = np.repeat(["a", "b"], 200)
    data = eh.AuditData.from_arrays(outcome=outcome, score=score, groups={"g": group})
    result = eh.audit_group(data, metrics=["auc"], rng=0)
    pos, neg = score[(group == "a") & outcome], score[(group == "a") & ~outcome]
    expected = np.mean((pos[:, None] > neg) + 0.5 * (pos[:, None] == neg))
    assert result.evidence[0].values["g=a"] == pytest.approx(expected, abs=1e-12)


def test_correlation_test_survives_heteroscedastic_errors():
    def make(rng):
        x = rng.uniform(1e-5, 1, 300)
        return eh.AuditData.from_arrays(
            outcome=rng.normal(size=300) / x, score=np.zeros(300), groups={"x": x}, continuous=["x"]
        )

    runs = 200  # shuffling the concatenated columns: 57.5 %
    hits = 0
    for seed in range(runs):
        data = make(np.random.default_rng(seed))
        (finding,) = eh.audit_group(data, metrics=["mean_residual"], n_resamples=199, rng=seed)
        hits += finding.pvalue <= 0.05
    assert hits <= limit(runs)


@pytest.mark.parametrize("groups", [2, 4])
def test_interval_of_no_difference_contains_zero(groups):
    covered, runs = 0, 60  # percentile bootstrap of max minus min: 0 of 60
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        group = rng.integers(groups, size=1000).astype(str)
        data = eh.AuditData.from_arrays(decision=rng.random(1000) < 0.4, groups={"g": group})
        first = eh.audit_group(data, metrics=["selection_rate"], rng=0)[0]
        covered += first.interval.low <= 0 <= first.interval.high
    assert covered >= stats.binom.ppf(1e-4, runs, 0.95)


def test_equal_means_with_unequal_spread_keep_their_level():
    def make(rng):
        score = np.r_[rng.normal(0, 1, 450), rng.normal(0, 3, 50)]
        return eh.AuditData.from_arrays(score=score, groups={"g": np.repeat(["a", "b"], [450, 50])})

    runs = 200  # not studentised: .385
    hits = rejections(make, runs, measure="mean_score", n_resamples=199)
    assert hits <= limit(runs)


def test_two_sided_pvalue_of_no_effect_is_large():
    # 1 - 2 Phi(|t|) is never above 0: that rule flagged 10 of 10 groups on null data.
    rng = np.random.default_rng(3)
    group = rng.integers(10, size=4000).astype(str)
    data = eh.AuditData.from_arrays(decision=rng.random(4000) < 0.3, groups={"g": group})
    result = eh.audit_group(data, metrics=["selection_rate"], rng=0)
    assert sum(f.verdict == "disparity" for f in result) == 0


def test_benjamini_hochberg_uses_ranks():
    rng = np.random.default_rng(0)
    runs = 500
    hits = sum((adjust(rng.random(50), method="bh") <= 0.1).any() for _ in range(runs))  # indices as ranks: 92.8 %
    assert hits <= stats.binom.isf(1e-4, runs, 0.1)


def test_all_pairs_are_tested():
    rng = np.random.default_rng(0)
    group = rng.integers(4, size=800).astype(str)
    data = eh.AuditData.from_arrays(decision=rng.random(800) < 0.3, groups={"g": group})
    result = eh.audit_group(data, metrics=["selection_rate"], compare="pairs", rng=0)
    assert sum(f.measure == "selection_rate" for f in result) == 6  # a return inside the loop tested one


def test_picking_the_extreme_groups_does_not_inflate_the_error():
    runs, hits = 150, 0  # an ordinary test on the best and worst of ten groups ignores the picking
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        rows = np.bincount(rng.integers(10, size=1500), minlength=10)
        samples = RateSamples.from_counts(rng.binomial(rows, 0.3), rows)
        pairs = [samples.test(a, b, Draws()).pvalue for a in range(10) for b in range(a + 1, 10)]
        hits += adjust(pairs).min() <= 0.05
    assert hits <= limit(runs)


def test_alpha_reaches_the_test():
    data = decisions(np.random.default_rng(0), (300, 300), (0.5, 0.5), (0.8, 0.68), (0.2, 0.2))
    (loose,) = eh.audit_group(data, metrics=["tpr"], alpha=0.2, rng=0)
    (strict,) = eh.audit_group(data, metrics=["tpr"], alpha=1e-6, rng=0)
    assert (loose.verdict, strict.verdict) == ("disparity", "inconclusive")


def test_nan_is_refused_not_called_fair():
    with pytest.raises(eh.DataError, match="score"):
        eh.AuditData.from_arrays(outcome=[0, 1], score=[0.5, np.nan], groups={"g": ["a", "b"]})


def selection(counts: dict[str, tuple[int, int]]) -> eh.AuditData:
    """Make decisions with so many ones among so many rows per group."""
    decision = np.concatenate([np.r_[np.ones(x), np.zeros(n - x)] for x, n in counts.values()])
    group = np.repeat(list(counts), [n for _, n in counts.values()])
    return eh.AuditData.from_arrays(decision=decision, groups={"g": group})


def test_counts_are_left_as_they_are_in_small_tables():
    # Adding 1 to every cell estimates something else: here 3/5 - 2/6 in place of 2/3 - 1/4.
    (finding,) = eh.audit_group(selection({"a": (2, 3), "b": (1, 4)}), reference="b", rng=0)
    assert finding.estimate == pytest.approx(2 / 3 - 1 / 4)
    assert finding.counts["g=a"]["numerator"] == 2


def test_significance_depends_on_the_sample_size():
    # An effect size called a z score, or a t statistic without n, is the same for 40 rows and for 4,000.
    small, large = (eh.audit_group(selection({"a": (6 * k, 20 * k), "b": (9 * k, 20 * k)}), rng=0)[0] for k in (1, 100))
    assert small.estimate == pytest.approx(large.estimate)
    assert small.pvalue > 0.3
    assert large.pvalue < 1e-10


def test_intervals_do_not_depend_on_a_seed():
    # Twenty or fifty bootstraps give an interval that is mostly noise.
    data = selection({"a": (30, 100), "b": (45, 100)})
    one, two = (eh.audit_group(data, rng=seed)[0].interval for seed in (0, 1))
    assert one == two


def test_each_group_keeps_its_size():
    # Resampling both groups to the smaller size ignores the rows of the larger one.
    equal = eh.audit_group(selection({"a": (15, 50), "b": (20, 50)}), rng=0)[0].interval
    unequal = eh.audit_group(selection({"a": (15, 50), "b": (2000, 5000)}), reference="b", rng=0)[0].interval
    assert unequal.high - unequal.low < 0.8 * (equal.high - equal.low)


def test_impact_ratio_of_ten_thousand_rows():
    # A bootstrap of this ratio elsewhere ends the process.
    (finding,) = eh.audit_group(selection({"a": (1500, 5000), "b": (2000, 5000)}), reference="b", ratio=True, rng=0)
    assert finding.estimate == pytest.approx(0.75)
    assert 0.70 < finding.interval.low < 0.75 < finding.interval.high < 0.80
