"""The group audit with probabilities of groups in place of groups."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import evenhand as eh


def frame(seed=0, n=4000, rates=(0.5, 0.3, 0.4), sharp=0.5):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.array([0.5, 0.3, 0.2]) * sharp, n)
    group = (p.cumsum(1) > rng.random((n, 1))).argmax(1)
    return pd.DataFrame(
        {
            "y": (rng.random(n) < 0.5).astype(int),
            "d": (rng.random(n) < np.asarray(rates)[group]).astype(int),
            "score": rng.random(n),
            "white": p[:, 0],
            "black": p[:, 1],
            "asian": p[:, 2],
            "race": np.array(["white", "black", "asian"])[group],
        }
    )


RACE = {"race": ["white", "black", "asian"]}


def read(table, **options):
    return eh.read(table, outcome="y", decision="d", group_probability=RACE, **options)


def test_two_findings_for_each_pair_and_each_names_its_assumption():
    result = eh.audit_group(read(frame()), metrics=["selection_rate"])
    assert [(f.measure, f.groups) for f in result] == [
        (f"selection_rate_{kind}", (f"race={group}", "race=white"))
        for group in ("black", "asian")
        for kind in ("bounds", "em")
    ]
    for finding, evidence in zip(result.findings, result.evidence, strict=True):
        assert "the probabilities of the groups are right" in evidence.assumption
        assert ("depends on the proxy" in evidence.assumption) == finding.measure.endswith("_em")
        low, high = finding.interval.low, finding.interval.high
        assert low <= finding.estimate <= high
        assert (finding.pvalue <= 0.05) == (low > 0 or high < 0)


@pytest.mark.parametrize("metric", ["selection_rate", "fnr", "precision"])
def test_the_estimate_is_that_of_the_true_groups(metric):
    table = frame(n=20_000, sharp=0.3)
    guessed = eh.audit_group(read(table), metrics=[metric], group_probability_method="em")
    true = eh.audit_group(
        eh.read(table, outcome="y", decision="d", groups="race"), metrics=[metric], reference={"race": "white"}
    )
    for finding in guessed:
        same = next(f for f in true if f.groups == finding.groups)
        assert finding.estimate == pytest.approx(same.estimate, abs=0.05)
        assert finding.interval.low < same.estimate < finding.interval.high


def test_a_difference_that_no_assignment_hides():
    table = frame(n=8000, rates=(0.9, 0.1, 0.5), sharp=0.05)
    finding = eh.audit_group(read(table), metrics=["selection_rate"], group_probability_method="bounds").findings[0]
    assert str(finding.verdict) == "disparity"
    assert finding.estimate < -0.3


def test_margins_ratios_and_sides():
    data = read(frame(n=8000))
    beyond = eh.audit_group(data, metrics=["selection_rate"], margin=0.05).findings
    assert str(next(f for f in beyond if f.measure.endswith("_em")).verdict) == "disparity"
    ratio = eh.audit_group(data, metrics=["selection_rate"], margin="four-fifths").findings[1]
    assert ratio.measure == "selection_rate_ratio_em"
    assert ratio.margin == 0.8
    assert str(ratio.verdict) == "disparity"
    alike = read(frame(n=20_000, rates=(0.3, 0.3, 0.3), sharp=0.05))
    same = eh.audit_group(alike, metrics=["selection_rate"], margin=0.1, group_probability_method="em").findings[0]
    assert str(same.verdict) == "equivalent"
    less = eh.audit_group(data, metrics=["selection_rate"], alternative="less").findings[1]
    two = eh.audit_group(data, metrics=["selection_rate"]).findings[1]
    assert less.pvalue == pytest.approx(two.pvalue / 2)
    assert less.interval.low == -np.inf


def test_the_reference_is_the_most_probable_group_or_the_one_asked_for():
    data = read(frame(n=1000))
    assert {f.groups[1] for f in eh.audit_group(data, metrics=["selection_rate"])} == {"race=white"}
    for wanted in ("asian", {"race": "asian"}):
        assert {f.groups[1] for f in eh.audit_group(data, metrics=["selection_rate"], reference=wanted)} == {
            "race=asian"
        }
    with pytest.raises(eh.UsageError, match="Reference `race=asia` has no probability"):
        eh.audit_group(data, reference={"race": "asia"})


@pytest.mark.parametrize(
    ("method", "why"),
    [("weighting", "counts each person for every group"), ("threshold", "takes the most probable group")],
)
def test_the_shortcuts_are_refused_with_the_reason(method, why):
    with pytest.raises(eh.UsageError, match=why) as refused:
        eh.audit_group(read(frame(n=200)), group_probability_method=method)
    assert "Allowed: `both`, `bounds`, `em`" in str(refused.value)
    with pytest.raises(eh.UsageError, match="allowed: `both`, `bounds`, `em`"):
        eh.audit_group(read(frame(n=200)), group_probability_method="bisg")


def test_equal_probabilities_are_not_identified():
    table = frame(n=500).assign(white=0.5, black=0.3, asian=0.2)
    bounds, em = eh.audit_group(read(table), metrics=["selection_rate"]).findings[:2]
    assert str(em.verdict) == "not_computable"
    assert "the same for everybody" in em.reason
    assert str(bounds.verdict) == "inconclusive"


def test_a_group_that_nobody_may_be_in_and_metrics_that_are_no_rates():
    table = frame(n=500)
    table = table.assign(white=table["white"] + table["asian"], asian=0.0)
    last = eh.audit_group(read(table), metrics=["selection_rate"]).findings[-1]
    assert str(last.verdict) == "not_computable"
    assert "nobody there may be in it" in last.reason
    mean = eh.audit_group(read(table, score="score"), metrics=["mean_score"]).findings[0]
    assert "only rates can" in mean.reason


def test_a_contradicted_assumption_gives_no_verdict():
    rng = np.random.default_rng(1)
    table = frame(n=8000, sharp=2.0)
    chance = 0.2 + 0.6 * (np.sin(6 * table["white"]) > 0)
    table = table.assign(d=(rng.random(8000) < chance).astype(int))
    for options in ({}, {"margin": 0.05}):
        result = eh.audit_group(read(table), metrics=["selection_rate"], **options)
        finding, evidence = result.findings[1], result.evidence[1]
        assert "The data contradict the assumption" in evidence.warnings[0]
        assert "It was not tested. The data contradict" in finding.reason
        assert str(finding.verdict) == "inconclusive"
        assert np.isnan(finding.pvalue)


def test_weights_and_clusters():
    table = frame(n=2000)
    plain = eh.audit_group(read(table), metrics=["fnr"]).findings
    weighted = eh.audit_group(read(table.assign(w=2.5), weight="w", weight_kind="sampling"), metrics=["fnr"]).findings
    doubled = pd.concat([table.assign(person=range(2000))] * 2)
    clustered = eh.audit_group(read(doubled, cluster="person"), metrics=["fnr"]).findings
    for one, two, three in zip(plain, weighted, clustered, strict=True):
        assert two.estimate == pytest.approx(one.estimate, abs=1e-4)
        assert two.interval.low == pytest.approx(one.interval.low, abs=2e-3)
        if one.measure.endswith("_em"):
            assert three.interval.low == pytest.approx(one.interval.low, abs=2e-3)


def test_guessed_and_known_attributes_together():
    table = frame(n=1500)
    data = eh.read(table, outcome="y", decision="d", groups="race", group_probability={"guess": RACE["race"]})
    measures = [f.measure for f in eh.audit_group(data, metrics=["selection_rate"], reference={"race": "white"})]
    assert measures.count("selection_rate") == 2
    assert measures.count("selection_rate_em") == 2
    run = eh.audit(data, plan=eh.Plan(group={"metrics": ["selection_rate"]}), rng=0)
    assert len(run.findings) == 7


def test_few_people_have_no_bounds():
    bounds = eh.audit_group(read(frame(n=30, rates=(0.1, 0.1, 0.1))), metrics=["selection_rate"]).findings[0]
    assert str(bounds.verdict) == "not_computable"
    assert "at least 10 people in its numerator" in bounds.reason


def test_real_decisions_with_synthetic_names():
    """Adult, where race is known: the numbers of docs/unknown-groups.md, and the shortcuts' beside them."""
    data = eh.datasets.load("adult")
    race = data.attribute("race")
    white, black = (race.labels.index(name) for name in ("White", "Black"))
    group = np.where(race.codes == white, 0, np.where(race.codes == black, 1, 2))
    rng = np.random.default_rng(0)
    names = rng.dirichlet(np.full(300, 0.15), 3)
    name = np.array([rng.choice(300, p=names[g]) for g in group])
    p = np.bincount(group)[:, None] / group.size * names
    p = (p / p.sum(0)).T[name]
    table = pd.DataFrame({"y": data.outcome, "d": data.decision, "white": p[:, 0], "black": p[:, 1], "asian": p[:, 2]})
    bounds, em = eh.audit_group(read(table), metrics=["selection_rate"]).findings[:2]
    truth = data.decision[group == 1].mean() - data.decision[group == 0].mean()
    weighted = np.average(data.decision, weights=p[:, 1]) - np.average(data.decision, weights=p[:, 0])
    likely = p.argmax(1)
    by_threshold = data.decision[likely == 1].mean() - data.decision[likely == 0].mean()
    assert (truth, weighted, by_threshold) == pytest.approx((-0.115, -0.076, -0.093), abs=5e-4)
    assert em.estimate == pytest.approx(-0.116, abs=5e-4)
    assert (em.interval.low, em.interval.high) == pytest.approx((-0.135, -0.095), abs=5e-4)
    assert em.interval.low < truth < em.interval.high < by_threshold
    assert bounds.interval.low < truth < bounds.interval.high


def test_row_order_and_repeated_rows():
    table = frame(n=1200)
    result = eh.audit_group(read(table), metrics=["fnr"]).findings
    turned = eh.audit_group(read(table.sample(frac=1, random_state=1)), metrics=["fnr"]).findings
    counted = read(table.assign(w=2), weight="w", weight_kind="frequency")
    twice = eh.audit_group(read(pd.concat([table, table])), metrics=["fnr"]).findings
    for one, two in (
        *zip(result, turned, strict=True),
        *zip(eh.audit_group(counted, metrics=["fnr"]), twice, strict=True),
    ):
        assert two.estimate == pytest.approx(one.estimate, abs=1e-6)
        assert (two.interval.low, two.interval.high) == pytest.approx((one.interval.low, one.interval.high), abs=1e-5)


def test_labels_can_be_said_beside_columns():
    table = frame(n=600).rename(columns={"white": "p_w", "black": "p_b", "asian": "p_a"})
    named = {"race": {"White": "p_w", "Black": "p_b", "Asian": "p_a"}}
    data = eh.read(table, outcome="y", decision="d", group_probability=named)
    assert eh.audit_group(data, metrics=["selection_rate"]).findings[0].groups == ("race=Black", "race=White")


def test_named_comparisons_say_whose_rate_they_compare():
    findings = eh.audit_group(read(frame(n=800)), metrics=["spd", "di"]).findings
    assert [f.measure for f in findings[:2]] == ["spd_bounds", "spd_em"]
    assert findings[4].measure == "di_ratio_bounds"
    assert all("selection_rate" in f.reason for f in findings)
