"""The projection audit: answers against plain sums, promises every audit makes, requests it refuses."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linprog

from evenhand.audits.projection import audit_projection
from evenhand.audits.projection.boundary import Distances
from evenhand.audits.projection.criteria import CRITERIA, Criterion
from evenhand.errors import DataError, UsageError
from evenhand.intake.data import AuditData
from evenhand.results import AuditResult

N = 400


def columns(seed=0, n=N, shift=0.4):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n, p=[0.35, 0.65])
    race = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    y = (rng.random(n) < 0.5).astype(int)
    margin = rng.normal(0.7 * y - 0.3 - shift * (sex == "F"), 1.0)
    return {"outcome": y, "margin": margin, "groups": {"sex": sex, "race": race}}


def made(arrays, **options):
    return AuditData.from_arrays(
        outcome=arrays["outcome"],
        decision=(arrays["margin"] >= 0).astype(int),
        groups=arrays["groups"],
        features={"d": np.abs(arrays["margin"])},
        **options,
    )


def audit(arrays, **options):
    weight = {k: options.pop(k) for k in ("weight", "weight_kind") if k in options}
    return audit_projection(made(arrays, **weight), distance="d", **options)


def numbers(result):
    return {(f.measure, f.groups): (f.estimate, f.pvalue) for f in result}


def test_equal_opportunity_by_plain_sums():
    arrays = columns()
    found = audit(arrays, attribute="sex")
    y, m, women = arrays["outcome"], arrays["margin"], arrays["groups"]["sex"] == "F"
    c, d = (m >= 0).astype(float), np.abs(m)
    u1, u0 = women & (y == 1), ~women & (y == 1)
    phi = u1 / u1.mean() - u0 / u0.mean()
    programme = linprog(d, A_eq=[(1 - 2 * c) * phi], b_eq=[-(c * phi).sum()], bounds=(0, 1))
    evidence = found.evidence[0]
    assert evidence.statistic == pytest.approx(programme.fun, rel=1e-7)
    assert found[0].estimate == pytest.approx(programme.fun / N, rel=1e-7)
    # limit law: covariance with the phi_z correction, Gaussian kernel at Silverman's bandwidth of the rows compared
    r1, r0 = c[u1].mean(), c[u0].mean()
    psi = u1 / u1.mean() * (c - r1) - u0 / u0.mean() * (c - r0)
    signed = m[y == 1]
    quarter = np.sort(signed)[[math.ceil(q * signed.size) - 1 for q in (0.25, 0.75)]]
    h = 0.9 * min(signed.std(), (quarter[1] - quarter[0]) / 1.349) * signed.size**-0.2
    assert evidence.bandwidth == pytest.approx(h)
    S = np.sum(stats.norm.pdf(m / h) / h * phi**2) / N
    weight = psi.var(ddof=1) / (2 * S)
    assert list(evidence.weights) == pytest.approx([weight])
    assert found[0].pvalue == pytest.approx(stats.chi2.sf(programme.fun / weight, 1), rel=1e-6)
    assert evidence.threshold == pytest.approx(weight * stats.chi2.isf(0.05, 1))
    welch = (r1 - r0) ** 2 / (r1 * (1 - r1) / u1.sum() + r0 * (1 - r0) / u0.sum())
    assert evidence.welch.statistic == pytest.approx(welch)
    assert evidence.wald.statistic == pytest.approx(N * (r1 - r0) ** 2 / psi.var(ddof=1))


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("attribute", ["sex", "race", ("sex", "race")])
def test_moving_the_named_people_makes_the_rates_equal(criterion, attribute):
    arrays = columns(1)
    found = audit(arrays, criterion=criterion, attribute=attribute, rows=True, beside=False)
    moved = found.evidence[0].rows
    c = (arrays["margin"] >= 0).astype(float)
    p = np.zeros(N)
    p[list(moved.record)] = moved.share
    after = c + (1 - 2 * c) * p
    for name in (attribute,) if isinstance(attribute, str) else attribute:
        for outcome in CRITERIA[criterion]:
            inside = np.ones(N, bool) if outcome is None else arrays["outcome"] == outcome
            rates = [after[inside & (arrays["groups"][name] == g)].mean() for g in np.unique(arrays["groups"][name])]
            assert np.ptp(rates) < 1e-7
    assert p @ np.abs(arrays["margin"]) == pytest.approx(found.evidence[0].statistic, rel=1e-7)
    changes = found.evidence[0].changes
    assert changes.people == np.sum(p > 0)
    assert changes.in_part == np.sum((p > 0) & (p < 1 - 1e-6))
    assert all(
        abs(line.after - found.evidence[0].projected[0].after) < 1e-7
        for line in found.evidence[0].projected
        if line.outcome == CRITERIA[criterion][0]
    )
    first = attribute if isinstance(attribute, str) else attribute[0]
    told = [line for line in changes.by_group if line.group.startswith(f"{first}=")]
    assert sum(line.people for line in told) == changes.people


def test_rows_are_told_only_on_request():
    assert audit(columns()).evidence[0].rows is None


def test_one_finding_for_each_attribute_and_one_for_several_at_once():
    single = audit(columns(), beside=False)
    assert [f.groups[-1] for f in single] == ["sex=M", "race=a"]
    joint = audit(columns(), attribute=["sex", "race"], beside=False)
    assert len(joint) == 1
    assert joint.evidence[0].statistic >= max(e.statistic for e in single.evidence) - 1e-9
    assert joint.evidence[0].gap <= 1e-9
    assert len(joint.evidence[0].weights) == 3


def test_an_attribute_twice_changes_nothing():
    arrays = columns()
    arrays["groups"]["copy"] = arrays["groups"]["sex"]
    once, twice = (audit(arrays, attribute=a, beside=False)[0] for a in (["sex"], ["sex", "copy"]))
    assert twice.estimate == pytest.approx(once.estimate, rel=1e-9)
    assert twice.pvalue == pytest.approx(once.pvalue, rel=1e-9)


def test_own_tuple_gives_the_named_criterion():
    arrays = columns()
    y, women = arrays["outcome"], arrays["groups"]["sex"] == "F"
    own = Criterion(
        name="mine",
        u=np.column_stack([women & (y == 1), ~women & (y == 1)]).astype(float),
        phi=lambda u, mu: u[:, :1] / mu[0] - u[:, 1:] / mu[1],
        phi_z=lambda u, mu: np.stack([-u[:, 0] / mu[0] ** 2, u[:, 1] / mu[1] ** 2], axis=1)[:, None, :],
        groups=("women", "men"),
    )
    named, mine = audit(arrays, attribute="sex")[0], audit(arrays, criterion=own)[0]
    assert mine.estimate == pytest.approx(named.estimate, rel=1e-9)
    # the named criterion takes its bandwidth from the rows compared, the tuple from all rows
    h = audit(arrays, attribute="sex").evidence[0].bandwidth
    assert audit(arrays, criterion=own, bandwidth=h)[0].pvalue == pytest.approx(named.pvalue, rel=1e-9)
    assert mine.measure == "mine"
    assert mine.groups == ("women", "men")


def test_own_tuple_with_many_values_is_solved_by_rows():
    arrays = columns(3, n=1500)
    x = np.random.default_rng(0).normal(size=1500)
    own = Criterion(
        name="covariance", u=x, phi=lambda u, mu: u - mu, phi_z=lambda u, mu: np.broadcast_to(-1.0, (len(u), 1, 1))
    )
    found = audit(arrays, criterion=own)
    c, d = (arrays["margin"] >= 0).astype(float), np.abs(arrays["margin"])
    phi = x - x.mean()
    programme = linprog(d, A_eq=[(1 - 2 * c) * phi], b_eq=[-(c * phi).sum()], bounds=(0, 1))
    assert found.evidence[0].statistic == pytest.approx(programme.fun, rel=1e-7)


def test_one_side_and_tolerance():
    arrays = columns(2, n=3000)
    two = audit(arrays, attribute="sex")[0]
    less = audit(arrays, attribute="sex", alternative="less")[0]
    greater = audit(arrays, attribute="sex", alternative="greater")[0]
    assert less.pvalue == pytest.approx(two.pvalue / 2, rel=1e-9)  # women have the lower rate
    assert greater.pvalue == 1.0
    assert greater.estimate == 0.0
    gap = abs(two_gap := audit(arrays, attribute="sex").evidence[0].values[0])
    assert two_gap < 0
    inside = audit(arrays, attribute="sex", epsilon=gap + 0.01)[0]
    assert (inside.estimate, inside.pvalue) == (0.0, 1.0)
    near = audit(arrays, attribute="sex", epsilon=0.02)
    assert two.pvalue < near[0].pvalue < 1
    assert near[0].margin == 0.02
    after = {line.group: line.after for line in near.evidence[0].projected}
    assert after["sex=M"] - after["sex=F"] == pytest.approx(0.02)


def test_a_tolerance_for_each_condition():
    arrays = columns(2, n=1500)
    one = audit(arrays, attribute="sex", criterion="equalized_odds", epsilon=0.01)
    alike = audit(arrays, attribute="sex", criterion="equalized_odds", epsilon=[0.01, 0.01])
    assert alike[0].pvalue == one[0].pvalue
    found = audit(arrays, attribute="sex", criterion="equalized_odds", epsilon=[0.0, 0.03])
    # The programme as such: each person moves over the boundary or not, and both differences of rates are in reach.
    c, d, y = (arrays["margin"] >= 0).astype(float), np.abs(arrays["margin"]), arrays["outcome"]
    women = arrays["groups"]["sex"] == "F"
    gaps = [
        ((y == k) & women) / ((y == k) & women).sum() - ((y == k) & ~women) / ((y == k) & ~women).sum() for k in (1, 0)
    ]
    move, now = np.array([(1 - 2 * c) * g for g in gaps]), np.array([(c * g).sum() for g in gaps])
    allowed = np.array([0.0, 0.03])
    programme = linprog(
        d, A_ub=np.vstack([move, -move]), b_ub=np.concatenate([allowed - now, allowed + now]), bounds=(0, 1)
    )
    evidence = found.evidence[0]
    assert len(evidence.conditions) == 2
    assert evidence.tolerances == (0.0, 0.03)
    assert evidence.statistic == pytest.approx(programme.fun, rel=1e-7)
    assert found[0].margin == 0.03
    assert one[0].estimate != found[0].estimate
    with pytest.raises(UsageError, match=r"`epsilon` has 3 values and `equalized_odds` has 2 conditions here"):
        audit(arrays, attribute="sex", criterion="equalized_odds", epsilon=[0.01, 0.02, 0.03])
    with pytest.raises(UsageError, match=r"`epsilon` must lie between 0 and 1 for each condition"):
        audit(arrays, attribute="sex", criterion="equalized_odds", epsilon=[0.01, 1.5])


def test_reference_turns_one_sided_tests_around():
    arrays = columns(2, n=3000)
    a = audit(arrays, attribute="sex", alternative="less", reference="M")[0]
    b = audit(arrays, attribute="sex", alternative="greater", reference={"sex": "F"})[0]
    assert a.pvalue == pytest.approx(b.pvalue, rel=1e-9)
    assert a.groups == ("sex=F", "sex=M")
    assert b.groups == ("sex=M", "sex=F")


# What every audit promises


def test_same_bytes_and_row_order():
    arrays = columns()
    order = np.random.default_rng(5).permutation(N)
    shuffled = {
        "outcome": arrays["outcome"][order],
        "margin": arrays["margin"][order],
        "groups": {k: v[order] for k, v in arrays["groups"].items()},
    }
    assert json.dumps(audit(arrays).to_dict()) == json.dumps(audit(arrays).to_dict())
    assert audit(arrays).to_dict()["findings"] == audit(shuffled).to_dict()["findings"]


def test_relabelling_groups_renames_findings():
    arrays = columns()
    new = {"a": "z", "b": "y", "c": "x"}
    renamed = {**arrays, "groups": {"race": np.array([new[v] for v in arrays["groups"]["race"]])}}
    plain = {**arrays, "groups": {"race": arrays["groups"]["race"]}}
    back = {f"race={v}": f"race={k}" for k, v in new.items()}
    old = numbers(audit(plain))
    for (measure, groups), value in numbers(audit(renamed)).items():
        assert old[measure, tuple(back[g] for g in groups)] == value


def test_counts_equal_repeated_rows():
    arrays = columns()
    weight = np.random.default_rng(1).integers(1, 4, N)
    again = np.repeat(np.arange(N), weight)
    repeated = {
        "outcome": arrays["outcome"][again],
        "margin": arrays["margin"][again],
        "groups": {k: v[again] for k, v in arrays["groups"].items()},
    }
    for options in ({}, {"attribute": ["sex", "race"]}, {"criterion": "equalized_odds"}):
        weighted = audit(arrays, weight=weight, weight_kind="frequency", **options)
        assert [f.to_dict() for f in weighted] == [f.to_dict() for f in audit(repeated, **options)]


def test_equal_sampling_weights_change_nothing_and_unequal_ones_widen_the_law():
    arrays = columns()
    plain = audit(arrays, attribute="sex", beside=False)
    equal = audit(arrays, attribute="sex", weight=np.full(N, 2.5), weight_kind="sampling", beside=False)
    assert equal[0].pvalue == pytest.approx(plain[0].pvalue, rel=1e-6)
    assert equal[0].estimate == pytest.approx(plain[0].estimate, rel=1e-9)
    noisy = np.random.default_rng(0).lognormal(0, 1, N)
    unequal = audit(arrays, attribute="sex", weight=noisy, weight_kind="sampling", beside=False)
    assert unequal.evidence[0].wald.statistic != plain.evidence[0].wald.statistic
    assert unequal.evidence[0].weights[0] > plain.evidence[0].weights[0]


def test_round_trip_reasons_and_inputs():
    arrays = columns()
    before = arrays["margin"].copy()
    result = audit(arrays, rows=True)
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert AuditResult.from_dict(plain).to_dict() == plain
    assert np.array_equal(arrays["margin"], before)
    for f in result:
        assert f.reason.endswith(".")
        assert 0 < f.pvalue <= f.pvalue_adjusted <= 1
    assert "would have to change" in result[0].reason or "moves" in result[0].reason


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda a: a["margin"].__imul__(0).__iadd__(1), "Every row has decision 1"),
        (lambda a: np.copyto(a["margin"], -1.0), "Every row has decision 0"),
        (lambda a: np.copyto(a["outcome"], 0, where=a["groups"]["sex"] == "F"), "`sex=F` has no rows with outcome 1"),
    ],
)
def test_degenerate_data_are_not_computable_with_the_reason(change, reason):
    arrays = columns()
    change(arrays)
    finding = audit(arrays, attribute="sex")[0]
    assert finding.verdict == "not_computable"
    assert reason in finding.reason
    assert math.isnan(finding.estimate)
    assert math.isnan(finding.pvalue)
    assert finding.to_dict()["estimate"] is None


def test_unreachable_and_flat_distances_are_not_computable():
    arrays = columns()
    data = made(arrays)
    women, up = arrays["groups"]["sex"] == "F", arrays["margin"] >= 0
    only_men_up = np.where(women | up, np.inf, np.abs(arrays["margin"]))  # but women have the lower rate
    stuck = audit_projection(data, distance=only_men_up, attribute="sex")[0]
    assert stuck.verdict == "not_computable"
    assert "unreachable" in stuck.reason
    nobody = audit_projection(data, distance=np.full(N, np.inf), attribute="sex")[0]
    assert nobody.verdict == "not_computable"
    assert "infinite distance" in nobody.reason


def test_warnings_about_distances_that_break_the_law():
    arrays = columns(4, n=2000)
    data = made(arrays)
    squared = audit_projection(data, distance=arrays["margin"] ** 2, attribute="sex", beside=False)
    assert any("may be squared" in w for w in squared.evidence[0].warnings)
    rounded = audit_projection(data, distance=np.round(np.abs(arrays["margin"]), 1), attribute="sex", beside=False)
    assert any("takes only" in w for w in rounded.evidence[0].warnings)
    smooth = audit_projection(data, distance="d", attribute="sex", beside=False)
    assert smooth.evidence[0].warnings == ()


def test_margin_only_with_a_warning():
    arrays = columns()
    data = AuditData.from_arrays(
        outcome=arrays["outcome"],
        decision=(arrays["margin"] >= 0).astype(int),
        score=arrays["margin"],
        groups=arrays["groups"],
    )
    found = audit_projection(data, distance="threshold", attribute="sex")
    assert any("score's margin" in w for w in found.evidence[0].warnings)
    assert found.evidence[0].distance["threshold"] == pytest.approx(0, abs=0.05)


def test_cost_by_group_moves_the_burden():
    arrays = columns(2, n=2000)
    plain = audit(arrays, attribute="sex", beside=False)
    dear = audit(arrays, attribute="sex", distances=Distances(cost={"sex=F": 10.0}), beside=False)

    def raised(result):
        return sum(line.people for line in result.evidence[0].changes.by_group if line.group == "sex=F")

    assert raised(dear) < raised(plain)
    assert dear[0].estimate > plain[0].estimate


def test_model_gives_distances_and_decisions():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 2)) * [1.0, 10.0]
    beta = np.array([1.0, 0.05])
    y, sex = rng.integers(0, 2, 500), rng.choice(["F", "M"], 500)
    data = AuditData.from_arrays(outcome=y, groups={"sex": sex}, features=X)
    found = audit_projection(data, model=lambda x: x @ beta, distances=Distances(threshold=0.0), beside=False)
    expected = np.abs(X @ beta) / np.linalg.norm(beta * X.std(axis=0))
    by_hand = AuditData.from_arrays(outcome=y, decision=(X @ beta >= 0).astype(int), groups={"sex": sex})
    other = audit_projection(by_hand, distance=expected, beside=False)
    assert found[0].estimate == pytest.approx(other[0].estimate, rel=1e-8)
    assert found.evidence[0].distance["method"] == "linear"
    assert "standard deviations" in found.notes[-1]


def hiring(n=600, seed=0):
    """A pipeline on numbers and text, and people it has not seen."""
    import pandas as pd
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 65, n),
            "job": rng.choice(["craft", "farm", "sales"], n),
            "skill": rng.normal(size=n),
        }
    )
    sex = rng.choice(["F", "M"], n)
    y = (frame.skill + 0.02 * frame.age - (frame.job == "farm") + rng.normal(size=n) > 0.7).astype(int).to_numpy()
    encode = ColumnTransformer([("n", StandardScaler(), ["age", "skill"]), ("c", OneHotEncoder(), ["job"])])
    model = make_pipeline(encode, LogisticRegression()).fit(frame, y)
    features = {name: frame[name].to_numpy() for name in frame} | {"note": np.full(n, "not an input")}
    return model, AuditData.from_arrays(outcome=y, groups={"sex": sex}, features=features), frame, y, sex


def test_pipeline_with_text_columns_freezes_them():
    model, data, frame, y, sex = hiring()
    found = audit_projection(data, model=model, beside=False)
    numbers = frame[["age", "skill"]].to_numpy(dtype=float)
    slope = model[-1].coef_[0][:2] / model[0].named_transformers_["n"].scale_ * numbers.std(axis=0)
    distance = np.abs(model.decision_function(frame)) / np.linalg.norm(slope)
    by_hand = AuditData.from_arrays(outcome=y, decision=model.predict(frame), groups={"sex": sex})
    other = audit_projection(by_hand, distance=distance, beside=False)
    assert found[0].estimate == pytest.approx(other[0].estimate, rel=1e-6)
    assert found[0].pvalue == pytest.approx(other[0].pvalue, rel=1e-6)
    said = found.evidence[0].distance
    assert (said["moving_columns"], said["frozen_columns"], said["unreachable"]) == (["age", "skill"], ["job"], 0)
    assert "Frozen columns: job." in found.notes[-1]
    # A jump can only shorten the way.
    jump = audit_projection(data, model=model, distances={"categorical": ["job"], "delta": 0.1}, beside=False)
    assert jump[0].estimate < found[0].estimate
    assert jump.evidence[0].distance["jumping_columns"] == ["job"]
    assert "who are all at the distance 0.1" in jump.evidence[0].warnings[0]


def test_people_who_cannot_reach_the_other_decision_stay_in_the_rates():
    model, data, frame, *_ = hiring()
    whole = audit_projection(data, model=model, criterion="statistical_parity", beside=False)

    def strict(rows):  # nobody in farming is ever taken
        return np.where(rows["job"] == "farm", -9.0, model.decision_function(rows))

    farm = int((frame.job == "farm").sum())
    options = Distances(threshold=0.0, features=list(frame), rounds=1)
    found = audit_projection(data, model=strict, criterion="statistical_parity", distances=options, beside=False)
    assert found.evidence[0].distance["unreachable"] == farm
    assert f"{farm} of 600 people cannot reach the other decision" in found.evidence[0].warnings[0]
    assert sum(c["rows"] for c in found[0].counts.values()) == sum(c["rows"] for c in whole[0].counts.values()) == 600
    model[-1].coef_[0, :2] = 0.0
    stuck = audit_projection(data, model=model, beside=False)[0]
    assert stuck.verdict == "not_computable"
    assert "infinite distance" in stuck.reason


def test_text_that_the_model_does_not_take_is_refused():
    from sklearn.linear_model import LogisticRegression

    _, data, frame, y, _ = hiring()
    plain = LogisticRegression().fit(frame.assign(job=1.0), y)
    with pytest.raises(DataError, match=r"raised ValueError .* Feature `job` holds text"):
        audit_projection(data, model=plain)


def test_progress_is_told_and_changes_nothing():
    told = []
    first = audit(columns(), beside=False, progress=told.append)
    assert told == ["projection: equal_opportunity of sex", "projection: equal_opportunity of race"]
    assert first.to_dict() == audit(columns(), beside=False).to_dict()


def test_group_audit_stands_beside():
    evidence = audit(columns(), criterion="equalized_odds", attribute="sex").evidence[0]
    assert [line.metric for line in evidence.group_audit] == ["tpr", "fpr"]
    assert all(0 < line.pvalue <= 1 for line in evidence.group_audit)


def test_figure_counts_people_near_the_boundary():
    evidence = audit(columns(), attribute="sex", beside=False).evidence[0]
    edges = evidence.figure.edges
    near = np.abs(columns()["margin"]) < edges[-1]
    counted = sum(np.sum(s.mass) for s in evidence.figure.series)
    assert counted == np.sum(near & (columns()["outcome"] == 1))


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"criterion": "equal_oportunity"}, UsageError, "Did you mean `equal_opportunity`"),
        ({"attribute": "sexx"}, UsageError, "sexx"),
        ({"distance": "dd"}, DataError, "no feature column `dd`"),
        ({"distance": None}, UsageError, "either `model=`, or `distance`"),
        ({"distance": np.ones(3)}, DataError, "has 3 values for 400 records"),
        ({"distance": np.full(N, -1.0)}, DataError, "400 distances .* negative"),
        ({"distance": "threshold"}, DataError, "needs a score"),
        ({"alternative": "up"}, UsageError, "`alternative` is `up`"),
        ({"alpha": 2}, UsageError, "`alpha` must lie"),
        ({"epsilon": -0.1}, UsageError, "`epsilon` must lie"),
        ({"bandwidth": 0.0}, UsageError, "`bandwidth` must be"),
        ({"reference": "M"}, UsageError, "2 attributes"),
        ({"reference": {"sex": "X"}}, UsageError, "not a group in the data"),
        ({"reference": {"age": "X"}}, UsageError, "not audited"),
        ({"distances": Distances(cost={"sex=X": 2.0})}, UsageError, "`cost` names the group"),
        ({"distances": {"nrm": "l1"}}, UsageError, "Did you mean `norm`"),
    ],
)
def test_requests_that_make_no_sense_are_refused(options, error, match):
    data = made(columns())
    with pytest.raises(error, match=match):
        audit_projection(data, **{"distance": "d", **options})


def test_model_that_disagrees_with_the_decisions_is_refused():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 1))
    data = AuditData.from_arrays(
        outcome=rng.integers(0, 2, 100), decision=(X[:, 0] > 0.5).astype(int), groups={"g": ["a", "b"] * 50}, features=X
    )
    with pytest.raises(DataError, match="disagree on"):
        audit_projection(data, model=lambda x: x[:, 0], distances=Distances(threshold=0.0))


def test_outcome_is_needed_but_for_parity():
    rng = np.random.default_rng(0)
    m = rng.normal(size=200)
    data = AuditData.from_arrays(decision=(m > 0).astype(int), groups={"g": ["a", "b"] * 100})
    assert audit_projection(data, criterion="statistical_parity", distance=np.abs(m))[0].pvalue > 0
    with pytest.raises(DataError, match="needs a binary outcome"):
        audit_projection(data, distance=np.abs(m))
