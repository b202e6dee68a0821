"""The group audit where the group of some people is unknown."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.audits.margin import is_ratio
from evenhand.inference.rates.samples import RateSamples
from evenhand.inference.samples import Draws


def people(seed=0, n=2000, missing=0.06, rates=(0.3, 0.5), labels=("F", "M"), weight=None):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, len(labels), n)
    outcome = (rng.random(n) < 0.5).astype(int)
    decision = (rng.random(n) < np.asarray(rates)[group]).astype(int)
    score = np.clip(rng.normal(0.4, 0.15, n) + 0.2 * decision, 0, 1)
    label = np.array(labels, dtype=object)[group]
    label[rng.random(n) < missing] = None
    more = {} if weight is None else {"weight": weight(rng, n), "weight_kind": "sampling"}
    return eh.AuditData.from_arrays(
        outcome=outcome, decision=decision, score=score, groups={"sex": label}, missing="unknown", **more
    )


def one(data, metric="selection_rate", **options):
    result = eh.audit_group(data, metrics=[metric], rng=0, **options)
    return result.findings[0], result.evidence[0]


@pytest.mark.parametrize("metric", ["selection_rate", "fnr", "precision", "accuracy"])
@pytest.mark.parametrize("ratio", [False, True])
def test_the_range_is_that_of_all_assignments(metric, ratio):
    data = people(seed=3, n=60, missing=0.15)
    finding, evidence = one(data, metric, ratio=ratio)
    cells = (data.decision + 2 * data.outcome).astype(int)
    attribute = data.attribute("sex")
    unknown = attribute.codes == attribute.unknown
    table = np.zeros((2, 4))
    known = {label: k for k, label in enumerate(("M", "F"))}
    for code, cell in zip(attribute.codes[~unknown], cells[~unknown], strict=True):
        table[known[attribute.labels[code]], cell] += 1
    order = [known[name.removeprefix("sex=")] for name in finding.groups]
    values = []
    for places in itertools.product((0, 1), repeat=int(unknown.sum())):
        whole = table.copy()
        np.add.at(whole, (list(places), cells[unknown]), 1)
        first, second = eh.METRICS[metric](whole)[order]
        values.append(first / second if ratio else first - second)
    assert evidence.lowest_possible == pytest.approx(min(values))
    assert evidence.highest_possible == pytest.approx(max(values))
    none = 1.0 if ratio else 0.0
    assert finding.estimate == pytest.approx(np.clip(none, min(values), max(values)))
    assert finding.interval.low <= min(values) <= max(values) <= finding.interval.high
    assert is_ratio(finding.measure) is ratio


def test_nobody_unknown_is_the_ordinary_answer_and_few_unknown_nearly_so():
    plain = eh.AuditData.from_arrays(decision=[0, 1] * 40, groups={"sex": ["F", "M", "M", "F"] * 20}, missing="unknown")
    assert [f.measure for f in eh.audit_group(plain, metrics=["selection_rate"])] == ["selection_rate"]
    data = people(missing=0.0005, seed=5)
    finding, evidence = one(data)
    assert evidence.unknown_rows == 1
    dropped, _ = one(data.take(np.flatnonzero(data.attributes[0].codes != data.attributes[0].unknown)))
    assert finding.estimate == pytest.approx(dropped.estimate, abs=2e-3)
    assert finding.interval.low == pytest.approx(dropped.interval.low, abs=4e-3)


def test_a_verdict_needs_every_possible_value():
    clear, _ = one(people(missing=0.05))
    assert str(clear.verdict) == "disparity"
    assert clear.pvalue < 1e-6
    hidden, evidence = one(people(missing=0.4))  # as badly placed as possible they show the opposite
    assert str(hidden.verdict) == "inconclusive"
    assert hidden.pvalue == 1.0
    assert hidden.estimate == 0.0
    assert evidence.lowest_possible < 0 < evidence.highest_possible
    assert "knowing more of the groups does" in hidden.reason
    assert 0 < evidence.unknown_tolerated < evidence.unknown_rows
    assert f"up to {evidence.unknown_tolerated:,} of the {evidence.unknown_rows:,}" in hidden.reason


def test_equivalence_needs_the_whole_range_inside_the_margin():
    near = people(n=20_000, rates=(0.3, 0.3), missing=0.01)
    finding, evidence = one(near, margin=0.1)
    assert str(finding.verdict) == "equivalent"
    wide, evidence = one(people(n=20_000, rates=(0.3, 0.3), missing=0.2), margin=0.1)
    assert str(wide.verdict) == "inconclusive"
    assert evidence.equivalence_pvalue == 1.0
    assert evidence.highest_possible > 0.1


def test_interval_and_pvalue_agree():
    for seed, missing in ((0, 0.1), (1, 0.02), (2, 0.05)):
        result = eh.audit_group(people(seed=seed, n=400, missing=missing, rates=(0.3, 0.48)), metrics=["fnr"], rng=0)
        finding = result.findings[0]
        misses = finding.interval.low > 0 or finding.interval.high < 0
        assert misses == (finding.pvalue <= 0.05)


def test_unknown_tolerated_is_the_largest_number_that_keeps_the_test():
    data = people(n=500, missing=0.3, rates=(0.25, 0.6), seed=4)
    finding, evidence = one(data)
    codes, unknown = data.attributes[0].codes, data.attributes[0].unknown
    x = [int(data.decision[codes == k].sum()) for k in range(3)]
    n = [int((codes == k).sum()) for k in range(3)]
    a, b = (data.attributes[0].labels.index(name.removeprefix("sex=")) for name in finding.groups)

    def kept(number):
        sign = 1 if evidence.among_known > 0 else -1
        worst = None
        for some in range(number + 1):
            fail, success = (some, number - some) if sign > 0 else (number - some, some)
            if fail > n[unknown] - x[unknown] or success > x[unknown]:
                continue
            counts = [x[a], x[b] + success] if sign > 0 else [x[a] + success, x[b]]
            trials = [n[a] + fail, n[b] + success] if sign > 0 else [n[a] + success, n[b] + fail]
            apart = sign * (counts[0] / trials[0] - counts[1] / trials[1])
            if worst is None or apart < worst[0]:
                worst = (apart, counts, trials)
        return RateSamples.from_counts(worst[1], worst[2]).test(0, 1, Draws()).pvalue <= 0.05

    assert kept(evidence.unknown_tolerated)
    assert not kept(evidence.unknown_tolerated + 1)


@pytest.mark.parametrize("metric", ["mean_score", "brier", "mae"])
def test_means_have_a_range_too(metric):
    finding, evidence = one(people(), metric)
    assert evidence.lowest_possible < evidence.among_known < evidence.highest_possible
    assert finding.interval.low < evidence.lowest_possible


def test_weights_and_cells_take_the_same_way():
    data = people(weight=lambda rng, n: np.ones(n) * 2.5)
    weighted, evidence = one(data)
    plain, plain_evidence = one(people())
    assert evidence.lowest_possible == pytest.approx(plain_evidence.lowest_possible)
    assert weighted.interval.low == pytest.approx(plain.interval.low, abs=0.01)


def test_three_groups_have_no_global_finding_and_the_unknown_are_no_group():
    data = people(n=3000, rates=(0.3, 0.5, 0.4), labels=("F", "M", "X"))
    result = eh.audit_group(data, metrics=["selection_rate"], compare="pairs")
    assert [f.measure for f in result] == ["selection_rate_bounds"] * 3
    assert not any("(missing)" in name for f in result for name in f.groups)
    assert all("sex=(missing)" in f.counts for f in result)


@pytest.mark.parametrize(
    ("metric", "said"),
    [("auc", "known for rates and means"), ("calibration_error", "known for rates and means")],
)
def test_what_cannot_be_bounded_says_so(metric, said):
    finding, _ = one(people(n=300), metric)
    assert str(finding.verdict) == "not_computable"
    assert said in finding.reason


def test_a_group_with_nobody_known_in_the_denominator():
    data = eh.AuditData.from_arrays(
        outcome=[1] * 20 + [0] * 5 + [1] * 5,
        decision=[0, 1] * 15,
        groups={"sex": ["M"] * 20 + ["F"] * 5 + [None] * 5},
        missing="unknown",
    )
    finding, _ = one(data, "fnr")
    assert str(finding.verdict) == "not_computable"
    assert "could give it any value" in finding.reason


def test_the_unknown_cannot_be_the_reference():
    with pytest.raises(eh.UsageError, match="is not a group in the data"):
        eh.audit_group(people(n=300), reference={"sex": "(missing)"})
    many_unknown = people(n=300, missing=0.7)
    assert one(many_unknown)[0].groups[1] in ("sex=F", "sex=M")


def test_strata_are_refused_with_the_reason():
    frame = pd.DataFrame({"d": [0, 1] * 50, "sex": ["M", "F", None, "F"] * 25, "job": (["a"] * 2 + ["b"] * 2) * 25})
    data = eh.read(frame, decision="d", groups="sex", missing="unknown", strata="job")
    finding, _ = one(data)
    assert str(finding.verdict) == "not_computable"
    assert "Leave `strata=` out" in finding.reason


def test_rows_cells_and_order_agree():
    rng = np.random.default_rng(7)
    table = pd.DataFrame({"y": rng.integers(0, 2, 900), "d": rng.integers(0, 2, 900)})
    table["sex"] = np.where(rng.random(900) < 0.1, None, rng.choice(["F", "M"], 900))
    asked = {"outcome": "y", "decision": "d", "groups": "sex", "missing": "unknown"}
    kept, cells, turned = (
        eh.audit_group(eh.read(source, **asked, rows=rows), metrics=["selection_rate", "fnr"], rng=0).findings
        for source, rows in ((table, "keep"), (table, "cells"), (table.sample(frac=1, random_state=2), "keep"))
    )
    assert [f.to_dict() for f in kept] == [f.to_dict() for f in cells] == [f.to_dict() for f in turned]


def test_three_groups_and_two_bound_the_same_pair_alike():
    """A third group is never needed for the worst case of a rate."""
    three = people(n=900, rates=(0.3, 0.5, 0.4), labels=("F", "M", "X"), seed=9)
    two = three.take(np.flatnonzero(three.attributes[0].codes != three.attributes[0].labels.index("X")))
    for metric in ("selection_rate", "fnr"):
        results = [eh.audit_group(d, metrics=[metric], reference={"sex": "M"}, rng=0) for d in (three, two)]
        firsts = [
            next(e for f, e in zip(r.findings, r.evidence, strict=True) if f.groups[0] == "sex=F") for r in results
        ]
        assert firsts[0].lowest_possible == pytest.approx(firsts[1].lowest_possible)
        assert firsts[0].highest_possible == pytest.approx(firsts[1].highest_possible)


def test_clusters_give_bounds_their_own_error():
    """Everybody twice in one cluster each is the same answer as everybody once."""
    rng = np.random.default_rng(8)
    table = pd.DataFrame({"d": rng.integers(0, 2, 1200), "person": range(1200)})
    table["sex"] = np.where(
        rng.random(1200) < 0.05, None, np.where(rng.random(1200) < 0.5 + 0.2 * table["d"], "F", "M")
    )
    asked = {"decision": "d", "groups": "sex", "missing": "unknown"}
    once, twice = (
        eh.audit_group(eh.read(rows, **asked, cluster="person"), metrics=["selection_rate"], rng=0).findings[0]
        for rows in (table, pd.concat([table, table]))
    )
    plain = eh.audit_group(eh.read(table, **asked), metrics=["selection_rate"], rng=0).findings[0]
    assert twice.estimate == pytest.approx(once.estimate)
    assert (twice.interval.low, twice.interval.high) == pytest.approx((once.interval.low, once.interval.high), abs=1e-6)
    assert once.interval.low == pytest.approx(plain.interval.low, abs=3e-3)
