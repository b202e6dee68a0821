"""The names that differences and ratios of rates have in the literature: spd, di, eod, aod, aod_abs."""

from __future__ import annotations

import numpy as np
import pytest
from fairlearn.metrics import (
    MetricFrame,
    demographic_parity_ratio,
    equalized_odds_difference,
    false_positive_rate,
    selection_rate,
    true_positive_rate,
)
from scipy import stats

import evenhand as eh
from evenhand.errors import UsageError
from evenhand.inference.rates.gaps import RateGaps
from evenhand.inference.rates.samples import RateSamples
from evenhand.inference.samples import Draws

NAMES = ["spd", "di", "eod", "aod", "aod_abs"]


def drawn(seed=0, sizes=(150, 400), groups="ab"):
    draw = np.random.default_rng(seed)
    label = np.repeat(list(groups), sizes)
    y = draw.random(label.size) < np.where(label == "a", 0.3, 0.5)
    d = draw.random(label.size) < 0.2 + 0.5 * y - 0.1 * (label == "a") + 0.05 * (label == "c")
    return y.astype(int), d.astype(int), label


def data_of(y, d, label):
    return eh.AuditData.from_arrays(outcome=y, decision=d, groups={"g": label})


def test_estimates_are_those_of_fairlearn():
    y, d, label = drawn()
    frame = MetricFrame(
        metrics={"sel": selection_rate, "tpr": true_positive_rate, "fpr": false_positive_rate},
        y_true=y, y_pred=d, sensitive_features=label,
    ).by_group  # fmt: skip
    gap = frame.loc["a"] - frame.loc["b"]
    found = {f.measure: f.estimate for f in eh.audit_group(data_of(y, d, label), NAMES, rng=0)}
    assert found["spd"] == pytest.approx(gap["sel"])
    assert min(found["di_ratio"], 1 / found["di_ratio"]) == pytest.approx(
        demographic_parity_ratio(y, d, sensitive_features=label)
    )
    assert found["eod"] == pytest.approx(gap["tpr"])
    assert found["aod"] == pytest.approx((gap["tpr"] + gap["fpr"]) / 2)
    assert found["aod_abs"] == pytest.approx(equalized_odds_difference(y, d, sensitive_features=label, agg="mean"))


def test_a_name_is_the_metric_with_its_comparison():
    data = data_of(*drawn())
    spd, di, eod = eh.audit_group(data, ["spd", "di", "eod"], rng=0)
    difference, tpr = eh.audit_group(data, ["selection_rate", "tpr"], rng=0)
    (ratio,) = eh.audit_group(data, "selection_rate", ratio=True, rng=0)
    for named, plain in ((spd, difference), (di, ratio), (eod, tpr)):
        assert named.estimate == plain.estimate
        assert named.pvalue == plain.pvalue
        assert named.interval == plain.interval
    assert spd.reason.startswith("selection_rate is ")


def test_the_names_keep_their_comparison_whatever_ratio_says():
    data = data_of(*drawn())
    for ratio in (False, True):
        result = eh.audit_group(data, [*NAMES, "fnr"], ratio=ratio, rng=0)
        assert [f.measure for f in result[:5]] == ["spd", "di_ratio", "eod", "aod", "aod_abs"]
    assert result[5].measure == "fnr_ratio"


@pytest.mark.parametrize(
    ("metric", "margin", "told"),
    [
        ("di", 0.05, "`di` is a ratio of two groups and the margin of 0.05 is for a difference. Give a ratio such as"),
        ("spd", "four-fifths", "`spd` is a difference of two groups and the margin of 0.8 is for a ratio. Give a diff"),
    ],
)
def test_a_margin_of_the_other_kind_is_refused(metric, margin, told):
    with pytest.raises(UsageError, match=told):
        eh.audit_group(data_of(*drawn()), metric, margin=margin, rng=0)
    with pytest.raises(UsageError, match=told):
        eh.Plan(group={"metrics": [metric], "margin": margin})


def test_the_absolute_difference_has_no_direction_and_no_weights():
    y, d, label = drawn()
    with pytest.raises(UsageError, match=r"`aod_abs` has no direction.*ask for `aod`"):
        eh.audit_group(data_of(y, d, label), "aod_abs", alternative="greater", rng=0)
    weighted = eh.AuditData.from_arrays(outcome=y, decision=d, groups={"g": label}, weight=1.0 + 0.5 * (y == 1))
    with pytest.raises(eh.errors.DataError, match=r"`aod_abs` does not take sampling weights.*use `aod`, which does"):
        eh.audit_group(weighted, "aod_abs", rng=0)
    assert eh.audit_group(weighted, "aod", rng=0)[0].interval.low < 0


def test_a_continuous_attribute_has_no_such_comparison():
    y, d, label = drawn()
    data = eh.AuditData.from_arrays(
        outcome=y, decision=d, groups={"g": label, "age": np.arange(y.size) * 1.0}, continuous=["age"]
    )
    found = next(f for f in eh.audit_group(data, "spd", rng=0) if f.measure == "spd_correlation")
    assert found.verdict == "not_computable"
    assert "spd compares groups" in found.reason


def test_a_near_match_is_offered():
    with pytest.raises(UsageError, match=r"Did you mean.*`aod`"):
        eh.audit_group(data_of(*drawn()), "aodd", rng=0)


def gaps(table):
    return RateGaps(
        {
            "tpr": RateSamples(table, numerator=[3], denominator=[2, 3]),
            "fpr": RateSamples(table, numerator=[1], denominator=[0, 1]),
        }
    )


def test_the_p_value_is_that_of_all_tables_listed_slowly():
    """The chance, at the worst pair of common rates, that either rate's own p-value is at most the smaller one seen."""
    table = [[9, 3, 2, 6], [5, 7, 6, 3]]
    samples, draws = gaps(table), Draws()
    seen = samples.test(0, 1, draws).pvalue
    own = {name: part.test(0, 1, draws).pvalue for name, part in samples.parts.items()}
    bar = min(own.values())
    reject = {}
    for name, (n, m) in {"tpr": (8, 9), "fpr": (12, 12)}.items():
        chance = np.zeros(201)
        p = np.linspace(0, 1, 201)
        for x in range(n + 1):
            for z in range(m + 1):
                if RateSamples.from_counts([x, z], [n, m]).test(0, 1, draws).pvalue <= bar + 1e-12:
                    chance += stats.binom.pmf(x, n, p) * stats.binom.pmf(z, m, p)
        reject[name] = chance.max()
    exact = 1 - (1 - reject["tpr"]) * (1 - reject["fpr"])
    assert bar < seen
    assert exact <= seen + 1e-9
    assert exact > 0.5 * seen  # it is not much too large either


@pytest.mark.parametrize("seed", range(12))
def test_the_interval_leaves_out_zero_just_when_the_p_value_says_so(seed):
    draw = np.random.default_rng(seed)
    table = draw.multinomial(draw.integers(20, 300), [0.4, 0.2, 0.1, 0.3], size=1)[0]
    other = draw.multinomial(draw.integers(20, 300), [0.25, 0.25, 0.2, 0.3], size=1)[0]
    samples, draws = gaps([table, other]), Draws()
    p, estimate = samples.test(0, 1, draws).pvalue, samples.difference(0, 1)
    for alpha in (1.02 * p, 0.98 * p):
        if 1e-9 < alpha < 0.9:
            low, high, _ = samples.interval(0, 1, level=1 - alpha, ratio=False, draws=draws)
            assert (low > 0) == (p <= alpha)
            assert low <= estimate <= high
    inside = samples.equivalence(0, 1, low=-0.3, high=0.3, ratio=False, draws=draws)
    if inside < 0.5:
        assert samples.interval(0, 1, level=1 - 2.01 * inside, ratio=False, draws=draws)[1] < 0.3
        assert samples.interval(0, 1, level=1 - 1.99 * inside, ratio=False, draws=draws)[1] >= 0.3


def test_signed_differences_that_cancel_are_seen_by_the_absolute_one_only():
    table = {"a": (450, 50, 250, 250), "b": (300, 200, 100, 400)}  # tn, fp, fn, tp: tpr .5 and .8, fpr .1 and .4
    table["c"] = (300, 200, 250, 250)
    parts = [(np.repeat([0, 0, 1, 1], n), np.repeat([0, 1, 0, 1], n), np.repeat(g, 1000)) for g, n in table.items()]
    y, d, label = (np.concatenate(x) for x in zip(*parts, strict=True))
    swapped = np.where(label == "b", 1 - d, d)  # tpr .2, fpr .6
    result = eh.audit_group(data_of(y, swapped, label), ["aod", "aod_abs"], reference="c", compare="pairs", rng=0)
    by = {(f.measure, f.groups): f for f in result}
    pair = ("g=a", "g=b")
    assert by["aod", pair].estimate == pytest.approx((0.3 - 0.5) / 2)
    assert by["aod_abs", pair].estimate == pytest.approx((0.3 + 0.5) / 2)
    everything = by["aod_abs_global", ("g=a", "g=b", "g=c")]
    assert everything.estimate == pytest.approx(max(f.estimate for f in result if f.measure == "aod_abs"))
    assert everything.verdict == "disparity"
    assert "The largest aod_abs of two of 3 groups is 0.400 (g=a, g=b)." in everything.reason
