"""The tail audit's means on request: ACD and CVaR."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import special, stats

import evenhand as eh
from evenhand.errors import UsageError


def columns(n=1600, seed=0):
    draw = np.random.default_rng(seed)
    return {"x": draw.normal(size=n), "sex": draw.integers(2, size=n)}


def logistic(X):
    return special.expit(X[:, 0] + 0.8 * X[:, 1])


def stepped(X):
    """A tree: the attribute counts for few people only."""
    return 0.3 + 0.4 * (X[:, 0] > 0) + 0.2 * ((X[:, 0] > 1.2) & (X[:, 1] == 1))


def audit(model=logistic, rows=1600, **options):
    made = columns(rows)
    X = np.column_stack([made["x"], made["sex"]])
    data = eh.AuditData.from_arrays(score=model(X), groups={"sex": made["sex"]}, features=made)
    return eh.audit_tail(data, model=model, rng=0, **({"measures": ["acd", "cvar"]} | options))


def changes(model, group, rows=1600):
    made = columns(rows)
    X = np.column_stack([made["x"], made["sex"]])[made["sex"] == group]
    Y = X.copy()
    Y[:, 1] = 1 - Y[:, 1]
    return model(Y) - model(X)


def test_the_default_asks_nothing_more():
    assert [f.measure for f in audit(measures=("ecd",))] == ["ecd", "return_level", "return_level"]
    assert [f.measure for f in audit(measures=["ecd", "acd", "cvar"])] == [
        "ecd", "return_level", "return_level", "acd_difference", "acd", "acd", "cvar_difference", "cvar", "cvar",
    ]  # fmt: skip


@pytest.mark.parametrize("model", [logistic, stepped])
def test_estimates_and_tests_are_those_of_plain_numpy_and_scipy(model):
    found = {(f.measure, f.groups): f for f in audit(model, margin=0)}
    a, b = changes(model, 0), changes(model, 1)
    pairs, reverse = ("sex=0", "sex=1"), ("sex=1", "sex=0")
    if pairs not in {g for _, g in found}:
        pairs, reverse, a, b = reverse, pairs, b, a
    difference = next(f for f in found.values() if f.measure == "acd_difference")
    sign = 1 if difference.groups == pairs else -1
    assert difference.estimate == pytest.approx(sign * (a.mean() - b.mean()))
    welch = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    assert sorted((sign * difference.interval.low, sign * difference.interval.high)) == pytest.approx(
        sorted(welch), abs=0.1 * (welch[1] - welch[0])
    )
    for groups, cd in ((pairs, a), (reverse, b)):
        own = found["acd", groups]
        assert own.estimate == pytest.approx(cd.mean())
        plain = stats.ttest_1samp(cd, 0).confidence_interval(0.95)
        assert (own.interval.low, own.interval.high) == pytest.approx(plain, abs=0.1 * (plain[1] - plain[0]))
        worst = 0.05 * cd.size
        weight = np.clip(worst - np.arange(cd.size), 0, 1)
        assert found["cvar", groups].estimate == pytest.approx(np.sort(cd)[::-1] @ weight / worst)


def test_a_group_that_gains_and_one_that_loses():
    by = {(f.measure, f.groups[0]): f for f in audit()}
    assert by["acd", "sex=0"].verdict == by["acd", "sex=1"].verdict == "disparity"  # a change either way counts
    assert by["cvar", "sex=0"].verdict == "disparity"
    assert by["cvar", "sex=1"].verdict == "equivalent"  # not above the margin
    assert "is no disadvantage, however low" in by["cvar", "sex=1"].reason
    assert "the scores of the 5 % of `sex=0` with the largest change would rise by" in by["cvar", "sex=0"].reason


def test_a_negligible_change_is_equivalent_and_a_huge_margin_is_refused():
    slight = audit(lambda X: special.expit(X[:, 0] + 0.004 * X[:, 1]), measures="acd")
    assert {str(f.verdict) for f in slight} == {"equivalent"}
    assert all(abs(f.estimate) < 0.002 for f in slight)


def test_a_group_whose_changes_are_all_zero_has_an_interval():
    """Only members of group 1 with large x are treated by membership; nobody of group 0 seen is among them."""
    far = lambda X: 0.4 + 0.1 * (X[:, 0] > 0) + 0.3 * ((X[:, 0] > 9) & (X[:, 1] == 1))  # noqa: E731
    made = columns(400)
    made["x"] = np.where((made["sex"] == 1) & (made["x"] > 1), 10.0, made["x"])
    X = np.column_stack([made["x"], made["sex"]])
    data = eh.AuditData.from_arrays(score=far(X), groups={"sex": made["sex"]}, features=made)
    found = {(f.measure, f.groups[0]): f for f in eh.audit_tail(data, model=far, measures=["acd", "cvar"], rng=0)}
    still = found["acd", "sex=0"]
    n = int((made["sex"] == 0).sum())
    assert still.estimate == 0
    assert still.interval.high == pytest.approx(1 - 0.025 ** (1 / n))  # others could change by the whole range
    assert still.verdict == "inconclusive"
    assert found["acd", "sex=1"].verdict == "disparity"


def test_too_few_rows_are_refused_with_the_number_needed():
    found = {(f.measure, f.groups[0]): f for f in audit(rows=60)}
    assert found["cvar", "sex=0"].verdict == "not_computable"
    assert "of which the worst 5 % are 2; their mean needs at least 10 of them" in found["cvar", "sex=0"].reason
    assert found["acd", "sex=0"].interval is not None
    larger = {f.measure: f for f in audit(rows=60, measures="cvar", cvar_share=0.5)}
    assert larger["cvar"].interval is not None


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"measures": ["acdd"]}, r"`measures` holds `acdd`. Did you mean `acd`"),
        ({"measures": []}, "`measures` is empty"),
        ({"cvar_share": 0}, "`cvar_share` must lie between 0 and 1; got 0"),
    ],
)
def test_a_wrong_request_is_refused(options, told):
    with pytest.raises(UsageError, match=told):
        audit(**options)


def test_findings_are_read_back_and_have_their_evidence():
    result = audit()
    again = eh.AuditResult.from_dict(json.loads(json.dumps(result.to_dict())))
    assert [type(e).__name__ for e in again.evidence] == ["MeanEvidence"] * 6
    assert again.evidence[-1].share == 0.05
    assert again.evidence[0].share == 1


def test_a_model_that_does_not_see_the_attribute_is_not_computable():
    result = audit(lambda X: special.expit(X[:, 0]))
    assert [f.measure for f in result] == ["acd_difference", "cvar_difference"]
    assert {str(f.verdict) for f in result} == {"not_computable"}
