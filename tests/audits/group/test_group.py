from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import evenhand as eh


def planted(**options):
    return eh.datasets.planted(**({"rows": 3000, "fnr": (0.1, 0.3), "rng": 0} | options))


def only(result, measure):
    (found,) = [f for f in result if f.measure == measure]
    return found


def test_two_groups_give_one_finding_per_metric():
    result = eh.audit_group(planted(), metrics=["fnr", "fpr", "auc"], rng=0)
    assert [f.measure for f in result] == ["fnr", "fpr", "auc"]
    assert only(result, "fnr").verdict == "disparity"


def test_pvalue_on_request_is_the_exact_conditional_one():
    y, d = np.ones(40, dtype=int), np.r_[np.ones(18), np.zeros(2), np.ones(11), np.zeros(9)].astype(int)
    data = eh.AuditData.from_arrays(outcome=y, decision=d, groups={"g": np.repeat(["a", "b"], 20)})
    finding = eh.audit_group(data, metrics=["tpr"], method="exact", rng=0)[0]
    # The default is unconditional and rejects at least as often.
    assert eh.audit_group(data, metrics=["tpr"], rng=0)[0].pvalue < finding.pvalue
    # Equal group sizes: the law is symmetric, so this two-sided p-value is Fisher's.
    assert finding.pvalue == pytest.approx(stats.fisher_exact([[18, 2], [11, 9]]).pvalue, rel=1e-10)


def test_directions_are_group_minus_reference():
    result = eh.audit_group(planted(), metrics=["fnr"], reference="A", rng=0)
    swapped = eh.audit_group(planted(), metrics=["fnr"], reference={"group": "B"}, rng=0)
    assert result[0].groups == ("group=B", "group=A")
    assert result[0].estimate > 0
    assert swapped[0].estimate == -result[0].estimate
    assert swapped[0].pvalue == result[0].pvalue
    assert swapped[0].interval.low == pytest.approx(-result[0].interval.high, abs=1e-9)


def test_one_sided_pvalues():
    up = eh.audit_group(planted(), metrics=["fnr"], reference="A", alternative="greater", rng=0)[0]
    down = eh.audit_group(planted(), metrics=["fnr"], reference="A", alternative="less", rng=0)[0]
    assert up.pvalue < 1e-6
    assert down.pvalue > 0.999


def test_several_groups_reference_pairs_and_global():
    rng = np.random.default_rng(0)
    data = eh.AuditData.from_arrays(
        decision=rng.random(900) < 0.4, groups={"g": rng.choice(list("wxyz"), 900, p=[0.4, 0.3, 0.2, 0.1])}
    )
    result = eh.audit_group(data, metrics=["selection_rate"], rng=0)
    assert [f.groups for f in result][:3] == [("g=x", "g=w"), ("g=y", "g=w"), ("g=z", "g=w")]
    whole = only(result, "selection_rate_global")
    table = np.array([[f.counts[g]["numerator"], f.counts[g]["denominator"]] for f in [whole] for g in f.groups])
    expected = stats.chi2_contingency(np.c_[table[:, 0], table[:, 1] - table[:, 0]], correction=False).pvalue
    assert whole.pvalue == pytest.approx(expected, abs=0.02)
    assert whole.interval is None
    pairs = eh.audit_group(data, metrics=["selection_rate"], compare="pairs", rng=0)
    assert len(pairs) == 7


def test_ratio_has_the_pvalue_of_the_difference():
    data = planted()
    difference = eh.audit_group(data, metrics=["selection_rate"], reference="A", rng=0)[0]
    ratio = eh.audit_group(data, metrics=["selection_rate"], reference="A", ratio=True, rng=0)[0]
    assert ratio.measure == "selection_rate_ratio"
    assert ratio.pvalue == difference.pvalue
    assert ratio.interval.low < ratio.estimate < ratio.interval.high
    assert ratio.estimate < 1


def test_ratio_of_two_rates_of_zero_is_not_computable_and_one_to_zero_has_a_lower_limit():
    data = eh.AuditData.from_arrays(decision=[0, 0, 0, 0, 0, 0], groups={"g": list("aaabbb")})
    finding = eh.audit_group(data, metrics=["selection_rate"], reference="a", ratio=True, rng=0)[0]
    assert finding.verdict == "not_computable"
    assert "is 0" in finding.reason
    data = eh.AuditData.from_arrays(decision=[0, 0, 0, 1, 0, 1], groups={"g": list("aaabbb")})
    finding = eh.audit_group(data, metrics=["selection_rate"], reference="a", ratio=True, rng=0)[0]
    assert finding.verdict == "inconclusive"
    assert finding.interval.high == np.inf


@pytest.mark.parametrize(
    ("margin", "fnr", "verdict"),
    [(0.1, (0.2, 0.2), "equivalent"), (0.001, (0.2, 0.2), "inconclusive"), (0.05, (0.1, 0.4), "disparity")],
)
def test_margins(margin, fnr, verdict):
    data = planted(rows=6000, fnr=fnr)
    finding = eh.audit_group(data, metrics=["fnr"], margin=margin, rng=0)[0]
    assert finding.verdict == verdict
    assert finding.margin == margin


def test_four_fifths_is_a_ratio_margin():
    data = planted(rows=8000, fnr=(0.2, 0.2))
    finding = eh.audit_group(data, metrics=["selection_rate"], margin="four-fifths", rng=0)[0]
    assert (finding.measure, finding.margin, finding.verdict) == ("selection_rate_ratio", 0.8, "equivalent")


def test_own_metric_of_cells_agrees_with_the_built_in_rate():
    data = planted()
    mine = eh.cell_metric("mine", lambda tn, fp, fn, tp: fn / (fn + tp))
    result = eh.audit_group(data, metrics=[mine, "fnr"], rng=0)
    assert result[0].estimate == pytest.approx(result[1].estimate)
    assert result[0].verdict == result[1].verdict == "disparity"


def test_own_metric_of_rows():
    data = planted(rows=400)
    median = eh.row_metric("median_score", lambda rows: float(np.median(rows["score"])), needs=("score",))
    finding = eh.audit_group(data, metrics=[median], n_resamples=99, rng=0)[0]
    groups = {g: data.score[data.attributes[0].codes == k] for k, g in enumerate(data.attributes[0].labels)}
    a, b = (g.split("=")[1] for g in finding.groups)
    assert finding.estimate == pytest.approx(np.median(groups[a]) - np.median(groups[b]))
    assert 0 < finding.pvalue <= 1


def test_continuous_attribute_is_correlated_with_the_error():
    rng = np.random.default_rng(0)
    age = rng.uniform(20, 80, 1500)
    outcome = rng.random(1500) < 0.5
    wrong = rng.random(1500) < (age - 20) / 100
    data = eh.AuditData.from_arrays(outcome=outcome, decision=outcome ^ wrong, groups={"age": age}, continuous=["age"])
    finding = eh.audit_group(data, metrics=["error_rate"], rng=0)[0]
    assert finding.measure == "error_rate_correlation"
    assert finding.estimate == pytest.approx(np.corrcoef(age, wrong)[0, 1])
    assert finding.verdict == "disparity"
    refused = eh.audit_group(data, metrics=["balanced_accuracy"], rng=0)[0]
    assert refused.verdict == "not_computable"
    assert "cut `age` into groups" in refused.reason


def test_sampling_weights_change_the_estimate():
    rng = np.random.default_rng(0)
    group = np.repeat(["a", "b"], 400)
    decision = rng.random(800) < 0.4
    weight = np.where(decision, 0.5, 2.5)
    data = eh.AuditData.from_arrays(decision=decision, groups={"g": group}, weight=weight, weight_kind="sampling")
    result = eh.audit_group(data, metrics=["selection_rate"], n_resamples=499, rng=0)
    for k, name in enumerate(("a", "b")):
        expected = np.average(decision[group == name], weights=weight[group == name])
        assert result.evidence[0].values[f"g={name}"] == pytest.approx(expected), k
    assert 0 < result[0].pvalue <= 1


@pytest.mark.parametrize("metric", ["f1", "balanced_accuracy", "auc", "brier", "fnr", "mean_score"])
def test_equal_sampling_weights_leave_estimates_alone(metric):
    arrays = {"outcome": (np.arange(200) % 3 == 0), "groups": {"g": np.arange(200) % 2}}
    arrays["score"] = np.random.default_rng(0).random(200)
    arrays["decision"] = arrays["score"] > 0.6
    plain = eh.audit_group(eh.AuditData.from_arrays(**arrays), metrics=[metric], n_resamples=99, rng=0)[0]
    weighted = eh.AuditData.from_arrays(**arrays, weight=np.full(200, 2.5), weight_kind="sampling")
    assert eh.audit_group(weighted, metrics=[metric], n_resamples=99, rng=0)[0].estimate == pytest.approx(
        plain.estimate
    )


def test_sampling_weights_are_never_ignored():
    arrays = {"outcome": np.arange(200) % 2, "score": np.linspace(0.1, 0.9, 200), "groups": {"g": np.arange(200) % 3}}
    data = eh.AuditData.from_arrays(**arrays, weight=np.linspace(0.5, 2, 200), weight_kind="sampling")
    with pytest.raises(eh.DataError, match="does not take sampling weights"):
        eh.audit_group(data, metrics=["calibration_error"], rng=0)


def test_max_t_takes_every_metric_and_is_never_stricter_than_holm_among_those_it_joins():
    metrics = ["fnr", "tpr", "fpr", "f1", "balanced_accuracy", "auc", "brier"]
    joint = eh.audit_group(planted(), metrics=metrics, correction="max-t", n_resamples=999, rng=0)
    holm = eh.audit_group(planted(), metrics=metrics, n_resamples=999, rng=0)
    assert joint[0].pvalue_adjusted == pytest.approx(joint[1].pvalue_adjusted, rel=1e-6)  # tpr is 1 - fnr
    assert all(a.pvalue <= a.pvalue_adjusted <= b.pvalue_adjusted for a, b in zip(joint, holm, strict=True))
    assert all("influence" in e.correction_note for e in joint.evidence)


def test_max_t_does_not_see_the_order_of_rows():
    rng = np.random.default_rng(1)
    n = 300
    y, p, g = rng.integers(0, 2, n), rng.random(n), rng.integers(0, 3, n)

    def adjusted(order):
        data = eh.AuditData.from_arrays(
            outcome=y[order], decision=p[order] > 0.5, score=p[order], groups={"g": g[order]}
        )
        found = eh.audit_group(data, metrics=["fnr", "tpr", "auc"], correction="max-t", n_resamples=199, rng=0)
        return [f.pvalue_adjusted for f in found]

    assert adjusted(np.arange(n)) == adjusted(rng.permutation(n))


def test_max_t_never_refuses_what_cannot_be_joined():
    rng = np.random.default_rng(0)
    n = 400
    y, p = rng.integers(0, 2, n), rng.random(n)
    data = eh.AuditData.from_arrays(
        outcome=y,
        decision=p > 0.5,
        score=p,
        groups={"g": np.arange(n) % 3, "age": rng.normal(size=n)},
        continuous=["age"],
    )
    median = eh.row_metric("median_score", lambda rows: float(np.median(rows["score"])), needs=("score",))
    result = eh.audit_group(
        data, metrics=["fnr", "auc", "calibration_error", median], correction="max-t", n_resamples=99, rng=0
    )
    joined = [f.measure for f, e in zip(result, result.evidence, strict=True) if e.adjusted_pvalue is not None]
    assert joined == ["fnr", "fnr", "auc", "auc"]
    assert {f.measure for f in result} >= {"fnr_global", "calibration_error", "median_score", "fnr_correlation"}
    assert all(f.pvalue_adjusted >= f.pvalue for f in result if f.verdict != "not_computable")


def test_the_papers_schemes_are_there():
    data = planted(fnr=(0.2, 0.2))
    for options in ({"permute": "all"}, {"permute": "outcome"}, {"permute": "all", "variance": "unpooled"}):
        result = eh.audit_group(data, metrics=["fnr"], n_resamples=499, rng=0, **options)
        assert 0 < result[0].pvalue <= 1
        assert "permut" in result.evidence[0].test


def test_inconclusive_says_what_could_have_been_detected():
    finding = eh.audit_group(planted(rows=200, fnr=(0.2, 0.25)), metrics=["fnr"], rng=0)[0]
    assert finding.verdict == "inconclusive"
    assert "would have been shown 4 times in 5" in finding.reason


def test_planning_sentence_is_true():
    """A difference of the size named as detectable is shown about 4 times in 5."""
    finding = eh.audit_group(planted(rows=1200, fnr=(0.2, 0.2)), metrics=["fnr"], rng=0)[0]
    detectable = float(finding.reason.split("A difference of ")[1].split(" ")[0])
    shown = 0
    for seed in range(200):
        data = planted(rows=1200, fnr=(0.2 - detectable / 2, 0.2 + detectable / 2), rng=seed)
        shown += eh.audit_group(data, metrics=["fnr"], rng=0)[0].pvalue <= 0.05
    assert 0.68 < shown / 200 < 0.9


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"metrics": ["nope"]}, "`nope` is not known"),
        ({"reference": {"sex": "A"}}, "`sex`, which is not audited"),
        ({"reference": "C"}, "is not a group in the data"),
        ({"alpha": 0}, "`alpha` must lie between"),
        ({"level": 2}, "`level` must lie between"),
        ({"compare": "rest"}, "`compare` is `rest`; allowed"),
        ({"alternative": "both"}, "`alternative` is `both`; allowed"),
        ({"correction": "sidak"}, "`correction` is `sidak`; allowed"),
        ({"method": "guess"}, "`method` is `guess`; allowed"),
        ({"n_resamples": 10}, "`n_resamples` must be a whole number of at least 99"),
        ({"margin": 0.05, "ratio": True}, "`ratio=` was asked with the difference margin"),
    ],
)
def test_requests_that_make_no_sense(options, says):
    with pytest.raises(eh.UsageError, match=says):
        eh.audit_group(planted(rows=100), rng=0, **options)


def test_metric_without_its_column():
    data = eh.AuditData.from_arrays(decision=[0, 1, 0, 1], groups={"g": list("aabb")})
    with pytest.raises(eh.DataError, match="`fnr` needs an outcome column"):
        eh.audit_group(data, metrics=["fnr"], rng=0)
    with pytest.raises(eh.DataError, match="`auc` needs"):
        eh.audit_group(data, metrics=["auc"], rng=0)
