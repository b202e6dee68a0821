"""The scan as users call it: what is found, in which words, on which engine, and what is refused."""

from __future__ import annotations

import itertools
import math
import re

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import evenhand as eh
from evenhand.audits.scan.options import ScanOptions
from evenhand.audits.scan.subgroups import Subgroups, conditions_of, subgroups_of


def world(seed=1, rows=4000, low=0.2, high=0.4, **more):
    """Return people of whom women of race C are decided 1 at another rate than everybody else."""
    rng = np.random.default_rng(seed)
    sex, race, job = (rng.choice(list(values), rows) for values in ("FM", "ABC", "xyz"))
    inside = (sex == "F") & (race == "C")
    columns = {"sex": sex, "race": race, "job": job} | more
    decision = (rng.random(rows) < np.where(inside, low, high)).astype(int)
    return columns, decision, inside


def data_of(columns, decision, **roles):
    return eh.AuditData.from_arrays(decision=decision, groups=columns, **roles)


def _pairs(result):
    return zip(result.findings, result.evidence, strict=True)


def shown(result):
    return [f.groups[0] for f in result if f.verdict == "disparity"]


def test_a_planted_combination_is_found_in_its_shortest_words():
    columns, decision, inside = world()
    result = eh.audit_scan(data_of(columns, decision), rng=0)
    assert shown(result) == ["sex=F & race=C"]
    finding, evidence = result.findings[0], result.evidence[0]
    assert finding.estimate == pytest.approx(decision[inside].mean() - decision[~inside].mean())
    assert finding.counts["sex=F & race=C"]["rows"] == inside.sum()
    assert finding.interval.low < finding.estimate < finding.interval.high < 0
    assert "simultaneous" in finding.interval.kind
    assert evidence.more_people == pytest.approx(inside.sum() * finding.estimate)
    assert evidence.adjusted_pvalue >= finding.pvalue
    # Diluted and accidental parts of it are counted under it, not beside it.
    assert "race=C" in evidence.stands_for
    assert evidence.stands_for_number == len(evidence.stands_for)
    # What each condition adds to the other alone.
    assert {b.parent for b in evidence.beyond_parents} == {"race=C", "sex=F"}
    women = columns["sex"] == "F"
    gap = decision[inside].mean() - decision[women & ~inside].mean()
    assert next(b for b in evidence.beyond_parents if b.parent == "sex=F").difference == pytest.approx(gap)
    assert evidence.described == 2 + 3 + 3 + 6 + 6 + 9 + 18


def test_an_effect_of_one_attribute_is_reported_without_its_combinations():
    rng = np.random.default_rng(31)
    columns, _, _ = world(3)
    decision = (rng.random(4000) < np.where(columns["race"] == "B", 0.55, 0.4)).astype(int)
    assert shown(eh.audit_scan(data_of(columns, decision), rng=0)) == ["race=B"]


def test_a_part_that_differs_further_is_reported_beside_its_whole():
    rng = np.random.default_rng(50)
    columns, _, inside = world(5, rows=12_000)
    rate = np.where(columns["sex"] == "F", 0.5, 0.3)
    rate[inside] = 0.75
    decision = (rng.random(12_000) < rate).astype(int)
    found = shown(eh.audit_scan(data_of(columns, decision), rng=0))
    assert len(found) == 2
    assert "sex=F & race=C" in found
    assert {"sex=F", "sex=M"} & set(found)  # women against the rest is men against the rest


def test_two_effects_that_add_up_are_reported_without_their_meeting():
    rng = np.random.default_rng(60)
    columns, _, _ = world(6, rows=20_000)
    rate = 0.3 + 0.15 * (columns["sex"] == "F") + 0.15 * (columns["race"] == "C")
    decision = (rng.random(20_000) < rate).astype(int)
    found = shown(eh.audit_scan(data_of(columns, decision), rng=0))
    assert len(found) == 2
    assert "race=C" in found
    assert {"sex=F", "sex=M"} & set(found)


def test_adjusted_pvalues_are_compared_with_everything_that_was_searched():
    columns, decision, _ = world(low=0.4)
    result = eh.audit_scan(data_of(columns, decision), rng=0, show=60)
    raw, adjusted = (np.array([getattr(f, k) for f in result]) for k in ("pvalue", "pvalue_adjusted"))
    assert raw.min() < 0.05 < adjusted.min()
    assert (adjusted >= raw).all()
    assert (np.diff(adjusted[np.argsort(raw)]) >= -1e-12).all()


def test_metrics_share_the_error_rate():
    columns, decision, _ = world()
    outcome = np.random.default_rng(1).integers(0, 2, 4000)
    data = data_of(columns, decision, outcome=outcome)
    one = eh.audit_scan(data, metrics=["fnr"], rng=0, show=60)
    two = eh.audit_scan(data, metrics=["fnr", "fpr"], rng=0, show=60)
    largest = max(f.pvalue_adjusted for f in two if f.measure == "fnr")
    assert largest == 1.0
    for finding in one:
        other = next(f for f in two if f.measure == "fnr" and f.groups == finding.groups)
        assert other.pvalue_adjusted == pytest.approx(min(2 * finding.pvalue_adjusted, 1.0), abs=1e-12)


def test_in_a_plan_the_scan_takes_its_share_and_leaves_the_rest_to_the_others():
    columns, decision, _ = world()
    data = data_of({"sex": columns["sex"], "race": columns["race"]}, decision)
    plan = eh.Plan(audits=["group", "scan"], group={"metrics": ["selection_rate"]})
    run = eh.audit(data, plan=plan, rng=0)
    alone = eh.audit(data, plan=eh.Plan(audits=["group"], group={"metrics": ["selection_rate"]}), rng=0)
    group, scan = run.results
    # The group audit counts twice: two thirds and one third of the error.
    for together, before in zip(group, alone.findings, strict=True):
        assert together.pvalue_adjusted == pytest.approx(min(before.pvalue_adjusted * 3 / 2, 1.0))
    for finding, evidence in zip(scan, scan.evidence, strict=True):
        assert finding.pvalue_adjusted == pytest.approx(min(3 * evidence.adjusted_pvalue, 1.0))
    assert "sex=F & race=C" in shown(scan)


def test_without_correction_nothing_is_adjusted():
    columns, decision, _ = world()
    result = eh.audit_scan(data_of(columns, decision), correction="none", rng=0)
    assert all(f.pvalue_adjusted == f.pvalue for f in result)


def test_found_on_one_part_and_confirmed_on_the_other():
    columns, decision, inside = world()
    result = eh.audit_scan(data_of(columns, decision), split=0.5, rng=0)
    assert shown(result)[0] == "sex=F & race=C"
    about = sum(part["rows"] for part in result[0].counts.values())
    assert about == 2000
    assert 0.35 * inside.sum() < result[0].counts["sex=F & race=C"]["rows"] < 0.65 * inside.sum()
    assert all(e.tested <= 10 and e.confirmed_on == 2000 for e in result.evidence)


def test_the_order_of_rows_does_not_matter_when_people_are_divided():
    columns, decision, _ = world()
    order = np.random.default_rng(8).permutation(4000)
    one = eh.audit_scan(data_of(columns, decision), split=0.4, rng=0)
    two = eh.audit_scan(data_of({k: v[order] for k, v in columns.items()}, decision[order]), split=0.4, rng=0)
    assert [f.to_dict() for f in one] == [f.to_dict() for f in two]


def test_the_false_discovery_rate_is_that_of_what_is_reported():
    rng = np.random.default_rng(20)
    columns = {f"a{j}": rng.integers(0, 4, 12_000).astype(str) for j in range(5)}
    rate = 0.4 + sum(0.05 * (columns[f"a{j}"] == "0") for j in range(5))
    data = data_of(columns, (rng.random(12_000) < rate).astype(int))
    result = eh.audit_scan(data, control="fdr", depth=2, rng=0)
    reported = [f for f in result if f.verdict == "disparity"]
    tested = result.evidence[0].tested
    assert len(reported) >= 3
    # Each reported one passes the bar that belongs to their number, which is lower than that of all that pass.
    assert all(f.pvalue <= 0.05 * len(reported) / tested for f in reported)
    assert all("false coverage" in f.interval.kind for f in result)
    for finding in result:  # the evidence of large subgroups is by the normal law, the finding's own p-value exact
        expected = min(finding.pvalue * tested / len(reported), 1.0)
        assert math.log(finding.pvalue_adjusted) == pytest.approx(math.log(expected), rel=0.02, abs=0.02)


def test_against_everybody_the_difference_is_smaller_and_the_test_the_same():
    columns, decision, inside = world()
    rest, overall = (eh.audit_scan(data_of(columns, decision), reference=r, rng=0) for r in ("rest", "overall"))
    assert overall[0].groups == ("sex=F & race=C", "overall")
    assert overall[0].estimate == pytest.approx(decision[inside].mean() - decision.mean())
    assert overall[0].pvalue == pytest.approx(rest[0].pvalue)
    assert overall[0].interval.high < 0


def test_numbers_are_cut_into_parts_and_halves_without_looking_at_decisions():
    rng = np.random.default_rng(0)
    age = rng.integers(18, 80, 1000).astype(float)
    age[:30] = np.nan
    columns, decision, _ = world(rows=1000)
    data = data_of(columns, decision, features={"age": age})
    found = conditions_of(data, "age", ScanOptions())
    known = age[~np.isnan(age)]
    assert len(found.labels) == 4 + 2 + 2 + 1
    assert found.labels[-1] == "age=missing"
    for k, label in enumerate(found.labels[:-1]):
        inside = found.membership[found.codes, k]
        low, high = _ends(label)
        np.testing.assert_array_equal(inside, (age >= low) & (age < high))
    quarters = [found.membership[found.codes, k].sum() for k, label in enumerate(found.labels) if "<=" in label]
    assert all(abs(q - known.size / 4) < 40 for q in quarters)


def _ends(label):
    if "<=" in label:
        first, _, last = label.partition("<=age<")
        return float(first), float(last)
    return (float(label[5:]), math.inf) if label.startswith("age>=") else (-math.inf, float(label[4:]))


def test_cuts_are_named_with_few_digits_and_recorded_with_all():
    rng = np.random.default_rng(3)
    age = rng.uniform(40.0, 41.0, 1000)
    columns, decision, _ = world(rows=1000)
    found = conditions_of(data_of(columns, decision, features={"age": age}), "age", ScanOptions())
    assert all(re.fullmatch(r"(40\.\d<=)?age(<|>=)40\.\d", label) for label in found.labels)
    assert len(set(found.labels)) == len(found.labels)
    for k, (label, tested) in enumerate(zip(found.labels, found.tested, strict=True)):
        low, high = _ends(tested)
        np.testing.assert_array_equal(found.membership[found.codes, k], (age >= low) & (age < high))
        assert _ends(label) == pytest.approx((low, high), abs=0.05)


def test_a_finding_records_the_cut_that_was_tested():
    rng = np.random.default_rng(10)
    age = rng.uniform(20, 80, 6000)
    columns, _, _ = world(rows=6000)
    decision = (rng.random(6000) < np.where(age >= 50, 0.5, 0.35)).astype(int)
    result = eh.audit_scan(data_of(columns, decision, features={"age": age}), attributes=["sex", "age"], rng=0)
    place = next(j for j, f in enumerate(result.findings) if f.verdict == "disparity")
    low, high = _ends(result.evidence[place].conditions[0])
    inside = int(((age >= low) & (age < high)).sum())
    name = result.findings[place].groups[0]
    assert result.findings[place].counts[name]["rows"] == inside
    assert len(name) <= len("age>=50.1")


@pytest.mark.parametrize("step", [1.0, 1e-7])
def test_values_that_agree_in_many_digits_stay_different_conditions(step):
    rng = np.random.default_rng(5)
    amount = 1_000_000 + step * rng.integers(1, 5, 1000)
    columns, decision, _ = world(rows=1000)
    found = conditions_of(data_of(columns, decision, features={"amount": amount}), "amount", ScanOptions())
    assert found.membership.shape[1] == len(set(found.labels)) == 4
    for k, tested in enumerate(found.tested):
        exact = float(tested.removeprefix("amount="))
        np.testing.assert_array_equal(found.membership[found.codes, k], amount == exact)


def test_an_effect_above_a_cut_is_found_as_such():
    rng = np.random.default_rng(10)
    age = rng.uniform(20, 80, 6000)
    columns, _, _ = world(rows=6000)
    cut = float(np.quantile(age, 0.5))
    decision = (rng.random(6000) < np.where(age >= cut, 0.5, 0.35)).astype(int)
    data = data_of(columns, decision, features={"age": age})
    found = shown(eh.audit_scan(data, attributes=["sex", "race", "age"], rng=0))
    assert len(found) == 1
    assert found[0].startswith(("age>=", "age<"))
    assert float(found[0].lstrip("age>=<")) == pytest.approx(cut, abs=0.1)


def test_named_sets_of_values_are_conditions():
    rng = np.random.default_rng(4)
    job = rng.choice(["craft", "farm", "office", "law"], 5000)
    sex = rng.choice(["F", "M"], 5000)
    decision = (rng.random(5000) < np.where(np.isin(job, ["craft", "farm"]), 0.3, 0.42)).astype(int)
    data = data_of({"job": job, "sex": sex}, decision)
    found = shown(eh.audit_scan(data, hierarchy={"job": {"manual": ["craft", "farm"]}}, rng=0))
    assert found == ["job=manual"]


def test_missing_features_are_a_condition():
    rng = np.random.default_rng(6)
    job = rng.choice(np.array(["a", "b", None], dtype=object), 4000)
    sex = rng.choice(["F", "M"], 4000)
    decision = (rng.random(4000) < np.where(job == None, 0.25, 0.42)).astype(int)  # noqa: E711
    data = data_of({"sex": sex}, decision, features={"job": job})
    assert shown(eh.audit_scan(data, attributes=["sex", "job"], rng=0)) == ["job=missing"]


def test_small_subgroups_are_neither_searched_nor_shown():
    columns, decision, _ = world(rows=1500)
    columns["rare"] = np.where(np.arange(1500) < 12, "yes", "no")
    decision[:12] = 1
    result = eh.audit_scan(data_of(columns, decision), smallest=20, show=20, rng=0)
    assert not any("rare=yes" in f.groups[0] for f in result)
    assert all(min(part["denominator"] for part in f.counts.values()) >= 20 for f in result)
    assert any("rare=yes" in f.groups[0] for f in eh.audit_scan(data_of(columns, decision), smallest=5, rng=0))


def test_rows_counted_by_an_engine_give_the_same_findings():
    columns, decision, _ = world()
    outcome = np.random.default_rng(1).integers(0, 2, 4000)
    table = pa.table({**columns, "d": decision, "y": outcome})
    asked = {"outcome": "y", "decision": "d", "groups": list(columns)}
    engine = eh.read(duckdb.connect().from_arrow(table), **asked)
    assert engine.moments is not None
    one, two = (eh.audit_scan(data, rng=0) for data in (engine, eh.read(table, **asked)))
    assert [f.to_dict() for f in one] == [f.to_dict() for f in two]
    split = eh.audit_scan(engine, split=0.5, rng=0)
    assert sum(part["rows"] for part in split[0].counts.values()) == 2000


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"attributes": ["sex", "rase"]}, "neither a group column nor a feature. Did you mean `race`?"),
        ({"attributes": ["sex", "sex"]}, "names `sex` twice"),
        ({"hierarchy": {"city": {"a": ["b"]}}}, "`hierarchy` names `city`, which is not searched"),
        ({"hierarchy": {"race": {"a": ["D"]}}}, "`hierarchy` of `race` puts `D` into `a`"),
        ({"metrics": ["fnr"]}, "Metric `fnr` needs an outcome column"),
        ({"depth": 0}, "`depth` must be a whole number of at least 1"),
        ({"split": 1.5}, "`split` must lie between 0 and 1"),
        ({"memory": 1e-6}, "The search would list 47 subgroups of 18 cells of people"),
    ],
)
def test_refusals_say_what_to_do(options, says):
    columns, decision, _ = world(rows=500)
    with pytest.raises(eh.EvenhandError, match=says.replace("(", r"\(").replace("?", r"\?")):
        eh.audit_scan(data_of(columns, decision), **options)


def test_a_search_that_is_too_large_names_what_to_drop():
    rng = np.random.default_rng(0)
    wide = {f"a{j}": rng.integers(0, 150 if j == 0 else 40, 3000).astype(str) for j in range(9)}
    data = data_of(wide, rng.integers(0, 2, 3000))
    with pytest.raises(eh.DataError, match=r"without `a0`, which has 150 conditions, there are .*`depth=2` makes"):
        eh.audit_scan(data, depth=3)


def test_an_identifier_is_refused():
    columns, decision, _ = world(rows=900)
    data = data_of(columns, decision, features={"id": np.array([f"p{i}" for i in range(900)], dtype=object)})
    with pytest.raises(eh.DataError, match="looks like an identifier or free text"):
        eh.audit_scan(data, attributes=["sex", "id"])


def test_nobody_to_compare_is_not_computable():
    columns, _, _ = world(rows=60)
    result = eh.audit_scan(data_of(columns, np.ones(60, int)), rng=0)
    assert [str(f.verdict) for f in result] == ["not_computable"]
    assert "No subgroup of at least 20 people could be shown" in result[0].reason


def test_subgroups_know_their_names_and_cells():
    columns, decision, inside = world(rows=800)
    data = data_of(columns, decision)
    found = subgroups_of(data, ["sex", "race", "job"], ScanOptions())
    assert isinstance(found, Subgroups)
    place = next(c for c in found.lattice.conditions if found.name(c) == "sex=F & race=C")
    assert found.count[found.cells(place[place >= 0])].sum() == inside.sum()
    assert found.count.sum() == 800


def test_what_would_have_been_found_is_said():
    columns, decision, _ = world(low=0.4)
    result = eh.audit_scan(data_of(columns, decision), rng=0)
    told = result.evidence[0].detectable
    assert [d.size for d in told] == [50, 100, 200, 500, 1000]
    assert all(a.difference > b.difference > 0 for a, b in itertools.pairwise(told))
    assert "would have been shown in 8 of 10 cases" in result[0].reason
