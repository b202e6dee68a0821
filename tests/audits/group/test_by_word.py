"""Groups compared with the highest, with the rest and with everybody: what findings say, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

import evenhand as eh
from evenhand.audits.reference import groups_among, references, words_among
from evenhand.errors import UsageError
from evenhand.inference.rates.best import Best
from evenhand.inference.rates.samples import RateSamples

COUNTS = {"a": (48, 300), "b": (90, 250), "c": (220, 500), "d": (6, 40)}


def rates(counts=COUNTS, **more):
    decision = np.concatenate([np.repeat([1, 0], [x, n - x]) for x, n in counts.values()])
    label = np.repeat(list(counts), [n for _, n in counts.values()])
    return eh.AuditData.from_arrays(decision=decision, groups={"g": label}, **more)


def test_each_group_but_the_highest_is_compared_with_it():
    found = eh.audit_group(rates(), "selection_rate", reference="highest", margin="four-fifths", rng=0)
    assert [f.groups for f in found] == [("g=a", "g=highest"), ("g=b", "g=highest"), ("g=d", "g=highest")]
    assert {f.measure for f in found} == {"selection_rate_ratio"}
    best = Best(RateSamples.from_counts(*np.array(list(COUNTS.values())).T), ratio=True)
    for f, e, a in zip(found, found.evidence, (0, 1, 3), strict=True):
        assert f.estimate == pytest.approx(best.estimate(a))
        assert (f.interval.low, f.interval.high) == pytest.approx(best.interval(a, 0.95)[:2])
        assert (f.pvalue, e.difference_pvalue) == pytest.approx((best.pvalue(a, 0.8), best.pvalue(a, 1.0)))
        assert e.equivalence_pvalue == pytest.approx(best.inside(a, 0.8))
        assert e.highest_group == "g=c"
        assert "0.440 for g=c, the highest of 4 groups" in f.reason
    assert found[0].verdict == "disparity"
    assert found[1].verdict == "inconclusive"
    assert found[2].verdict == "disparity"


def test_the_shortfall_is_the_least_number_that_reaches_the_margin():
    found = eh.audit_group(rates(), "selection_rate", reference="highest", margin="four-fifths", rng=0)
    for f, e, (x, n) in zip(found, found.evidence, (COUNTS[k] for k in "abd"), strict=True):
        reaches = [k for k in range(200) if 5 * (x + k) * 500 >= 4 * 220 * n]  # four fifths of 220 of 500
        assert e.shortfall == reaches[0]
        assert (f"{e.shortfall} more selections" in f.reason) == (e.shortfall > 0)
    assert found.evidence[0].shortfall == 58
    exactly = rates({"a": (4, 10), "b": (5, 10)})
    (row,) = eh.audit_group(exactly, "selection_rate", reference="highest", margin="four-fifths", rng=0).evidence
    assert row.shortfall == 0  # 4 of 10 is four fifths of 5 of 10


def test_conventional_pvalues_are_shown_beside_and_decide_nothing():
    found = eh.audit_group(rates(), "selection_rate", reference="highest", rng=0)
    table = [[48, 252], [220, 280]]
    assert found.evidence[0].fisher_pvalue_unadjusted == pytest.approx(stats.fisher_exact(table).pvalue)
    assert found.evidence[0].midp_pvalue_unadjusted < found.evidence[0].fisher_pvalue_unadjusted
    assert found[0].pvalue != found.evidence[0].fisher_pvalue_unadjusted


def test_a_zero_gives_a_limit_and_zeros_everywhere_a_reason():
    found = eh.audit_group(
        rates({"a": (0, 40), "b": (30, 90), "c": (20, 80)}), "selection_rate", reference="highest", ratio=True, rng=0
    )
    assert (found[0].estimate, found[0].interval.low) == (0.0, 0.0)
    assert found[0].interval.high < 1
    assert found[0].verdict == "disparity"
    none = eh.audit_group(rates({"a": (0, 9), "b": (0, 8)}), "selection_rate", reference="highest", ratio=True, rng=0)
    assert {str(f.verdict) for f in none} == {"not_computable"}
    assert "0 in every group" in none[0].reason
    plain = eh.audit_group(rates({"a": (0, 9), "b": (0, 8)}), "selection_rate", reference="highest", rng=0)
    assert plain[0].estimate == 0.0


def test_a_ratio_to_a_rate_of_zero_has_a_lower_limit():
    found = eh.audit_group(rates({"a": (30, 60), "b": (0, 70)}), "selection_rate", ratio=True, rng=0)
    assert found[0].estimate == np.inf
    assert 1 < found[0].interval.low < found[0].interval.high == np.inf
    assert found[0].verdict == "disparity"
    assert "a lower limit only" in found[0].reason
    assert json.loads(json.dumps(found[0].to_dict()))["estimate"] is None


def test_relabelling_and_repeated_rows_change_nothing():
    one = eh.audit_group(rates(), "selection_rate", reference="highest", ratio=True, rng=0)
    turned = {"z": COUNTS["a"], "y": COUNTS["b"], "x": COUNTS["c"], "w": COUNTS["d"]}
    two = eh.audit_group(rates(turned), "selection_rate", reference="highest", ratio=True, rng=0)
    assert [f.pvalue for f in one] == pytest.approx([f.pvalue for f in two][::-1])
    data = rates()
    weight = np.ones(len(data.decision))
    again = eh.AuditData.from_arrays(
        decision=data.decision,
        groups={"g": np.array(data.attributes[0].labels)[data.attributes[0].codes]},
        weight=weight,
        weight_kind="frequency",
    )
    three = eh.audit_group(again, "selection_rate", reference="highest", ratio=True, rng=0)
    assert [f.pvalue for f in three] == [f.pvalue for f in one]


def test_sampling_weights_widen_the_interval():
    rng = np.random.default_rng(0)
    plain = rates()
    label = np.array(plain.attributes[0].labels)[plain.attributes[0].codes]
    weight = rng.uniform(0.2, 4, label.size)
    data = eh.AuditData.from_arrays(decision=plain.decision, groups={"g": label}, weight=weight, weight_kind="sampling")
    found = eh.audit_group(data, "selection_rate", reference="highest", ratio=True, rng=0)
    one = eh.audit_group(plain, "selection_rate", reference="highest", ratio=True, rng=0)
    assert np.mean([f.interval.high - f.interval.low for f in found]) > np.mean(
        [f.interval.high - f.interval.low for f in one]
    )
    assert found.evidence[0].fisher_pvalue_unadjusted is None


def test_the_rest_is_one_group_and_two_groups_ask_once():
    found = eh.audit_group(rates(), "selection_rate", reference="rest", rng=0)
    assert [f.groups for f in found][:4] == [(f"g={k}", "g=rest") for k in "abcd"]
    joined = rates({"a": COUNTS["a"], "others": (316, 790)})
    (alone,) = eh.audit_group(joined, "selection_rate", reference={"g": "others"}, rng=0)
    assert (found[0].estimate, found[0].pvalue) == pytest.approx((alone.estimate, alone.pvalue))
    assert (found[0].interval.low, found[0].interval.high) == pytest.approx((alone.interval.low, alone.interval.high))
    two = eh.audit_group(rates({"a": (3, 20), "b": (9, 30)}), "selection_rate", reference="rest", rng=0)
    assert [f.groups for f in two] == [("g=a", "g=rest")]


@pytest.mark.parametrize("ratio", [False, True])
def test_everybody_is_the_rest_in_other_units(ratio):
    overall = eh.audit_group(rates(), "selection_rate", reference="overall", ratio=ratio, rng=0)
    rest = eh.audit_group(rates(), "selection_rate", reference="rest", ratio=ratio, rng=0)
    x, n = np.array(list(COUNTS.values())).T
    for k in range(4):
        own, everybody, s = x[k] / n[k], x.sum() / n.sum(), n[k] / n.sum()
        assert overall[k].estimate == pytest.approx(own / everybody if ratio else own - everybody)
        assert overall[k].pvalue == pytest.approx(rest[k].pvalue)
        for end in ("low", "high"):
            value = getattr(rest[k].interval, end)
            moved = value / (s * value + 1 - s) if ratio else (1 - s) * value
            assert getattr(overall[k].interval, end) == pytest.approx(moved)
        assert overall.evidence[k].planning.startswith("Against the rest: ")


def test_a_margin_to_everybody_is_judged_at_the_value_that_goes_with_it():
    found = eh.audit_group(rates(), "selection_rate", reference="overall", margin="four-fifths", rng=0)
    x, n = np.array(list(COUNTS.values())).T
    s = float(n[0] / n.sum())
    samples = RateSamples.from_counts([x[0], x.sum() - x[0]], [n[0], n.sum() - n[0]])
    at = 0.8 * (1 - s) / (1 - 0.8 * s)
    assert found[0].pvalue == pytest.approx(samples._curve(0, 1, ratio=True).pvalue(at))
    assert found[0].verdict == "disparity"
    shown = found.evidence[0].verdict_interval
    assert shown.high < 0.8


@pytest.mark.parametrize("word", ["highest", "rest", "overall"])
def test_people_of_unknown_group_are_left_out_and_counted(word):
    counts = {**COUNTS, None: (5, 70)}
    decision = np.concatenate([np.repeat([1, 0], [x, n - x]) for x, n in counts.values()])
    label = np.repeat(np.array(list(counts), dtype=object), [n for _, n in counts.values()])
    data = eh.AuditData.from_arrays(decision=decision, groups={"g": label}, missing="unknown")
    found = eh.audit_group(data, "selection_rate", reference=word, ratio=True, rng=0)
    known = eh.audit_group(rates(), "selection_rate", reference=word, ratio=True, rng=0)
    assert len(found) in (3, 4)
    for f, e, same in zip(found, found.evidence, known, strict=False):
        assert (f.groups, f.estimate, f.pvalue) == (same.groups, same.estimate, same.pvalue)
        assert e.warnings[-1].startswith("70 people of unknown group are left out")


def test_means_are_compared_with_everybody_and_what_is_no_average_is_refused():
    data = eh.datasets.planted(rows=600, rng=0)
    score = eh.audit_group(data, "mean_score", reference="overall", n_resamples=199, rng=0)
    assert all(f.verdict != "not_computable" for f in score[:2])
    for word, metric, says in (
        ("overall", "auc", "no average of the groups' values"),
        ("highest", "auc", "is no rate"),
        ("overall", "f1", "no average"),
    ):
        with pytest.raises(UsageError, match=says):
            eh.audit_group(data, metric, reference=word, rng=0)
    default = eh.audit_group(data, reference="highest", rng=0)
    assert "auc" not in {f.measure for f in default}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"reference": "highest", "compare": "pairs"}, "pairs have no reference"),
        ({"reference": "highest", "alternative": "less"}, "the direction is given"),
        ({"reference": {"g": "hihgest"}}, "`g=hihgest` is not a group"),
    ],
)
def test_what_contradicts_itself_is_refused(options, says):
    with pytest.raises(UsageError, match=says):
        eh.audit_group(rates(), "selection_rate", rng=0, **options)


def test_a_group_of_that_name_goes_before_the_word():
    data = rates({"highest": (3, 20), "low": (9, 30)})
    assert words_among(data, {"g": "highest"}) == {}
    assert groups_among(data, {"g": "highest"}) == {"g": "highest"}
    (row,) = eh.audit_group(data, "selection_rate", reference={"g": "highest"}, rng=0)
    assert row.groups == ("g=low", "g=highest")
    with pytest.raises(UsageError, match="a group of `g` and also a word"):
        eh.audit_group(data, "selection_rate", reference="highest", rng=0)


def test_other_audits_take_the_largest_group_and_refuse_the_word_when_asked_alone():
    data = eh.datasets.planted(rows=400, rng=0)
    plan = eh.Plan(reference="highest", group={"metrics": ["selection_rate"]})
    run = eh.audit(data, plan=plan, rng=0)
    assert run.findings[0].groups[-1].endswith("=highest")
    assert eh.Plan.from_dict(plan.to_dict()).hash == plan.hash
    assert 'reference = "highest"' in plan.to_toml()
    with pytest.raises(UsageError, match="a word of the group audit"):
        references(data, "highest")
    with pytest.raises(UsageError, match="allowed: `highest`, `rest`, `overall`"):
        eh.Plan(reference="Male")


def test_the_scoring_rate_counts_scores_strictly_above_the_median_of_everybody():
    score, label = [1, 2, 3, 3, 3, 4, 5, 9], list("aabbabbb")
    data = eh.AuditData.from_arrays(score=np.array(score) / 10, groups={"g": label})
    found = eh.audit_group(data, "scoring_rate", reference={"g": "b"}, rng=0)
    assert found[0].counts["g=a"]["numerator"] == 0  # 3 is the median: nobody of a is above it
    assert found[0].counts["g=b"]["numerator"] == 3
    law = stats.hypergeom(8, 3, 3)  # of 8 people 3 are above; 3 are of group a
    difference = np.abs(np.arange(4) / 3 - (3 - np.arange(4)) / 5)
    assert found[0].pvalue == pytest.approx(law.pmf(np.arange(4))[difference >= 0.6 - 1e-12].sum())
    assert found.evidence[0].exact


def test_the_scoring_rate_holds_its_level_given_the_scores():
    """Over all ways to deal 12 scores to two groups, as equality has it."""
    from itertools import combinations

    shown = 0
    ways = list(combinations(range(12), 5))
    for own in ways:
        label = np.where(np.isin(np.arange(12), own), "a", "b")
        data = eh.AuditData.from_arrays(score=np.arange(12) / 12, groups={"g": label})
        shown += eh.audit_group(data, "scoring_rate", rng=0)[0].pvalue <= 0.05
    assert 0 < shown / len(ways) <= 0.05
