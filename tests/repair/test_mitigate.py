"""`evenhand.mitigate`: parts, order, certificate, comparison and what is said when nothing can be certified."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

import evenhand as eh
from evenhand.audits.margin import parse_margin
from evenhand.mitigation.estimator import About, Mitigator, Training
from evenhand.models import load_model
from evenhand.repair.certificate import Certificate, pvalue_of, times_rows
from evenhand.repair.parts import three_parts


def people(size: int = 6000, *, gap: float = 0.6, seed: int = 0, **more: Any) -> eh.AuditData:
    """Two groups of whom one has lower values of the feature that counts."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], size)
    frame = pd.DataFrame(
        {
            "skill": rng.normal(size=size) + gap * (sex == "m"),
            "noise": rng.normal(size=size),
            "town": rng.choice(["north", "south"], size),
        }
    )
    y = (frame["skill"] + rng.normal(size=size) > 0).astype(int)
    return eh.AuditData.from_arrays(outcome=y, groups={"sex": sex}, features=frame, **more)


class Shift(Mitigator):
    """A method for tests: decides by a cut of one's own, for each group its own, on the feature `skill`."""

    about = About(stage="after", needs="nothing", changes="the cut", cost="none", decides_with_group=True)

    def __init__(self, f: float = 0.0, m: float = 0.0, group_column: str | None = None) -> None:
        self.f = f
        self.m = m
        self.group_column = group_column

    def _fit(self, rows: Training) -> None:
        self.fitted_ = True

    def _probability(self, X: Any) -> np.ndarray:
        cut = np.where(X[self.group_column] == "m", self.m, self.f)
        return np.asarray(X["skill"] > cut, dtype=float)


def test_parts_are_disjoint_cover_everybody_and_hold_every_group_and_outcome() -> None:
    data = people(1000)
    numbered = eh.AuditData.from_arrays(
        outcome=data.outcome,
        groups={"sex": np.array(data.attribute("sex").labels)[data.attribute("sex").codes]},
        features={"at": np.arange(1000.0)},
    )
    parts = three_parts(numbered, numbered.attributes, (0.5, 0.25, 0.25), 7)
    at = [p.features["at"] for p in parts]
    np.testing.assert_array_equal(np.sort(np.concatenate(at)), np.arange(1000.0))
    assert [len(a) for a in at] == pytest.approx([500, 250, 250], abs=4)
    whole = np.mean(numbered.outcome)
    for part in parts:
        assert np.mean(part.outcome) == pytest.approx(whole, abs=0.01)
    again = three_parts(numbered, numbered.attributes, (0.5, 0.25, 0.25), 7)
    np.testing.assert_array_equal(again[2].features["at"], at[2])
    other = three_parts(numbered, numbered.attributes, (0.5, 0.25, 0.25), 8)
    assert not np.array_equal(other[2].features["at"], at[2])


def test_a_record_that_stands_for_several_people_is_divided_person_by_person() -> None:
    data = eh.AuditData.from_arrays(
        outcome=[0, 1, 0, 1],
        groups={"g": ["a", "a", "b", "b"]},
        features={"x": [1.0, 2.0, 3.0, 4.0]},
        weight=[40, 40, 40, 40],
        weight_kind="frequency",
    )
    parts = three_parts(data, data.attributes, (0.5, 0.25, 0.25), 0)
    assert [p.rows.rows_used for p in parts] == pytest.approx([80, 40, 40], abs=4)
    assert all(p.count.max() == 1 for p in parts)


def test_the_best_of_those_certified_is_returned_and_testing_stops_at_the_first_failure() -> None:
    """From a cut that makes rates equal to one that performs best: three candidates with known truths."""
    data = people(20000, gap=1.0)
    methods = [Shift(f=0.0, m=1.0), Shift(f=0.0, m=0.7), Shift(f=0.0, m=0.4)]
    result = eh.mitigate(
        data, methods=methods, metric="selection_rate", margin=0.15, most_loss=0.5, audits=False, rng=0
    )
    steps = result.certificate.steps
    assert [s.certified for s in steps] == [True] * (len(steps) - 1) + [False]
    assert result.chosen == steps[-2].candidate
    tested = [c for c in result.candidates if c.place is not None]
    tested.sort(key=lambda c: c.place)
    performance = [c.performance for c in tested]
    assert performance == sorted(performance)
    assert [c.pvalue for c in tested] == sorted(c.pvalue for c in tested)
    assert [s.candidate for s in steps] == [c.label for c in tested[: len(steps)]]
    assert steps[0].pvalue == pvalue_of(steps[0].comparisons)


def test_methods_with_the_same_label_are_not_taken_for_each_other() -> None:
    """Two estimators that differ in their learner only: the one that is tested is the one that is returned."""
    data = people(6000, gap=0.3)
    bare = eh.AuditData.from_arrays(
        outcome=data.outcome,
        groups={"sex": np.array(data.attribute("sex").labels)[data.attribute("sex").codes]},
        features={"skill": data.features["skill"]},
    )
    methods = [eh.mitigation.MAAT(LogisticRegression(C=c)) for c in (1e-9, 1.0)]
    result = eh.mitigate(bare, methods=methods, metric="selection_rate", margin=0.4, most_loss=0.5, audits=False, rng=0)
    labels = [c.label for c in result.candidates]
    assert len(set(labels)) == len(labels) == 3
    chosen = next(c for c in result.candidates if c.label == result.chosen)
    assert result.model is chosen.model
    assert result.certificate.steps[chosen.place].candidate == result.chosen
    certify = three_parts(bare, bare.attributes, (0.5, 0.25, 0.25), 0)[2]
    decision = result.model.predict(pd.DataFrame({"skill": certify.features["skill"]}))
    codes = certify.attribute("sex").codes
    tested = result.certificate.steps[chosen.place].comparisons[0].finding.estimate
    assert decision[codes == 0].mean() - decision[codes == 1].mean() == pytest.approx(tested)


def test_the_certificate_is_the_audit_s_own_test_on_the_people_to_certify_on() -> None:
    data = people(8000)
    method = Shift(f=0.0, m=0.6)
    result = eh.mitigate(
        data, methods=[method], metric="selection_rate", margin=0.1, most_loss=0.5, audits=False, rng=3
    )
    certify = three_parts(data, data.attributes, (0.5, 0.25, 0.25), 3)[2]
    sex = certify.attribute("sex")
    decision = certify.features["skill"] > np.where(np.array(sex.labels)[sex.codes] == "m", 0.6, 0.0)
    judged = eh.AuditData.from_arrays(
        outcome=certify.outcome, decision=decision.astype(int), groups={"sex": np.array(sex.labels)[sex.codes]}
    )
    audit = eh.audit_group(judged, metrics=["selection_rate"], margin=0.1, correction="none", rng=0)
    step = next(s for s in result.certificate.steps if s.candidate.startswith("Shift"))
    assert step.pvalue == audit.evidence[0].equivalence_pvalue


def test_several_metrics_and_margins_must_all_hold() -> None:
    data = people(12000)
    result = eh.mitigate(
        data,
        methods=["threshold_optimizer"],
        metric=["fnr", "fpr"],
        margin={"fnr": 0.1, "fpr": 0.12},
        most_loss=0.5,
        audits=False,
        rng=0,
    )
    assert {c.finding.measure for s in result.certificate.steps for c in s.comparisons} == {"fnr", "fpr"}
    assert result.certificate.margins == {"fnr": 0.1, "fpr": 0.12}
    for step in result.certificate.steps:
        assert step.pvalue == max(c.outside for c in step.comparisons)


def test_nothing_certifiable_is_an_answer_that_says_how_many_rows_would_do() -> None:
    result = eh.mitigate(people(600), methods=["reweighing"], metric="fnr", margin=0.02, audits=False, rng=0)
    assert result.model is None
    assert result.verdict is eh.Verdict.INCONCLUSIVE
    assert "Nothing is certified" in result.certificate.reason
    assert "would show it 4 times in 5" in result.certificate.reason or "More rows alone" in result.certificate.reason
    assert "No model was certified" in result.card()


def test_both_models_judge_the_same_people() -> None:
    data = people(8000)
    result = eh.mitigate(
        data, methods=[Shift(f=0.0, m=0.6)], metric="selection_rate", margin=0.1, most_loss=0.5, audits=False, rng=3
    )
    certify = three_parts(data, data.attributes, (0.5, 0.25, 0.25), 3)[2]
    sex = np.array(certify.attribute("sex").labels)[certify.attribute("sex").codes]
    after = certify.features["skill"] > np.where(sex == "m", 0.6, 0.0)
    rate = next(c for c in result.disparities if c.measure == "selection_rate")
    assert rate.change.after == pytest.approx(after[sex == "f"].mean() - after[sex == "m"].mean())
    assert rate.groups == ("sex=f", "sex=m")
    own = {(c.measure, c.groups): c for c in result.performance}
    right = after == (certify.outcome == 1)
    assert own["accuracy", ()].change.after == pytest.approx(right.mean())
    assert own["accuracy", ("sex=m",)].change.after == pytest.approx(right[sex == "m"].mean())


def test_all_audits_run_before_and_after_and_the_model_is_saved_with_its_card(tmp_path: Any) -> None:
    result = eh.mitigate(
        people(6000), methods=["exponentiated_gradient"], metric="selection_rate", margin=0.2, most_loss=0.2, rng=0
    )
    assert result.chosen.startswith("exponentiated_gradient")
    assert {f.audit for f in result.after.findings} >= {"group", "projection", "individual"}
    assert len(result.compared) > 3
    written = result.save(tmp_path)
    assert {p.name for p in written} == {"mitigation.json", "card.md", "model.skops"}
    frame = pd.DataFrame({"skill": [1.0, -2.0], "noise": [0.0, 0.0], "town": ["north", "south"]})
    again = load_model(tmp_path / "model.skops")
    assert again.predict(frame).tolist() == result.model.predict(frame).tolist()
    stored = json.loads((tmp_path / "mitigation.json").read_text())
    assert stored["certificate"]["verdict"] == "equivalent"
    assert result.chosen in (tmp_path / "card.md").read_text()


def test_the_rows_named_would_show_it_four_times_in_five() -> None:
    """Ask for the rows once; draw so many from a population in which the estimate is the truth, again and again."""
    method = Shift(f=0.0, m=0.6)
    asked = {"methods": [method], "metric": "selection_rate", "margin": 0.08, "most_loss": 0.5, "audits": False}
    first = eh.mitigate(people(3000), rng=0, **asked)
    step = next(s for s in first.certificate.steps if s.candidate.startswith("Shift"))
    worst = max(step.comparisons, key=lambda c: c.outside)
    rows = int(3000 * worst.times_rows)
    # The population in which the estimate is the truth: the same shift in the cut of one group.
    off = Shift(f=0.0, m=0.6 + worst.finding.estimate / 0.3989)
    again = [
        eh.mitigate(people(rows, seed=s), rng=s, **{**asked, "methods": [off]}).certificate.steps for s in range(60)
    ]
    shown = np.mean([any(s.certified and s.candidate.startswith("Shift") for s in steps) for steps in again])
    assert 0.62 < shown < 0.95


def test_a_model_of_an_earlier_run_does_not_stay_beside_an_answer_that_certifies_none(tmp_path: Any) -> None:
    (tmp_path / "model.skops").write_bytes(b"old")
    eh.mitigate(people(600), methods=["reweighing"], margin=0.02, audits=False, rng=0).save(tmp_path)
    assert not (tmp_path / "model.skops").exists()


def test_the_same_seed_gives_the_same_answer() -> None:
    first, second = (
        eh.mitigate(people(3000), methods=["reweighing"], margin=0.2, audits=False, rng=5).to_dict() for _ in range(2)
    )
    for made in (first, second):
        for candidate in made["candidates"]:
            candidate.pop("seconds")
    assert first == second


def test_sampling_weights_reach_training_and_certificate() -> None:
    rng = np.random.default_rng(0)
    plain = people(4000)
    weighted = people(4000, weight=rng.uniform(0.2, 3.0, 4000))
    results = [
        eh.mitigate(d, methods=["reweighing"], metric="selection_rate", margin=0.3, audits=False, rng=0)
        for d in (plain, weighted)
    ]
    values = [r.candidates[0].comparisons[0].finding.estimate for r in results]
    assert values[0] != values[1]


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"methods": ["reweigh"]}, "Did you mean `reweighing`"),
        ({"methods": []}, "`methods` is empty"),
        ({"metric": "fnrr"}, "fnrr"),
        ({"margin": 0.0}, "Margin"),
        ({"margin": 1.5}, "can never be exceeded"),
        ({"margin": {"fpr": 0.1}}, "no margin for `fnr`"),
        ({"parts": (0.5, 0.5)}, "three positive shares"),
        ({"alpha": 0.0}, "`alpha=`"),
        ({"performance": "auc"}, "`performance`"),
        ({"attribute": "race"}, "no attribute `race`"),
        ({"learner": "logistic"}, "scikit-learn classifier"),
    ],
)
def test_bad_requests_are_refused_in_a_sentence(asked: dict[str, Any], sentence: str) -> None:
    with pytest.raises(eh.UsageError, match=sentence):
        eh.mitigate(people(400), **{"methods": ["reweighing"], **asked})


def test_data_that_cannot_be_repaired_are_refused_in_a_sentence() -> None:
    bare = eh.AuditData.from_arrays(outcome=[0, 1] * 50, groups={"g": ["a", "b"] * 50})
    with pytest.raises(eh.DataError, match="features"):
        eh.mitigate(bare)
    one = eh.AuditData.from_arrays(
        outcome=[1] + [0] * 99, groups={"g": ["a", "b"] * 50}, features={"x": np.arange(100.0)}
    )
    with pytest.raises(eh.DataError, match="only one outcome is left"):
        eh.mitigate(one, methods=["reweighing"], rng=0)
    lonely = eh.AuditData.from_arrays(
        outcome=[0, 1] * 50, groups={"g": ["c", *["a", "b"] * 49, "a"]}, features={"x": np.arange(100.0)}
    )
    with pytest.raises(eh.DataError, match="nobody of group `g=c`"):
        eh.mitigate(lonely, methods=["reweighing"], rng=0)


def test_a_feature_that_the_learner_cannot_take_is_said() -> None:
    data = people(800)
    hole = np.array(data.features["skill"])
    hole[3] = np.nan
    holed = eh.AuditData.from_arrays(
        outcome=data.outcome,
        groups={"sex": np.array(data.attribute("sex").labels)[data.attribute("sex").codes]},
        features={"skill": hole},
    )
    with pytest.raises(eh.DataError, match="NaN"):
        eh.mitigate(holed, methods=["reweighing"], audits=False, rng=0)


def test_two_attributes_are_repaired_and_certified_together() -> None:
    data = people(8000)
    rng = np.random.default_rng(5)
    sex = np.array(data.attribute("sex").labels)[data.attribute("sex").codes]
    both = eh.AuditData.from_arrays(
        outcome=data.outcome,
        groups={"sex": sex, "race": rng.choice(["x", "y", "z"], 8000)},
        features={"skill": data.features["skill"]},
    )
    result = eh.mitigate(both, methods=["reweighing"], metric="selection_rate", margin=0.35, audits=False, rng=0)
    pairs = {c.finding.groups for c in result.certificate.steps[0].comparisons}
    assert len(pairs) == 1 + 3
    one = eh.mitigate(
        both, methods=["reweighing"], metric="selection_rate", margin=0.35, attribute="race", audits=False, rng=0
    )
    assert {c.finding.groups for c in one.certificate.steps[0].comparisons} == {p for p in pairs if "race" in p[0]}


def test_a_learner_without_weights_costs_the_methods_that_need_them() -> None:
    learner = KNeighborsClassifier()
    numbers = people(1500)
    frame = eh.AuditData.from_arrays(
        outcome=numbers.outcome,
        groups={"sex": np.array(numbers.attribute("sex").labels)[numbers.attribute("sex").codes]},
        features={"skill": numbers.features["skill"]},
    )
    with pytest.raises(eh.DataError, match="takes no sample weights"):
        eh.mitigate(frame, learner, methods=["reweighing"], audits=False, rng=0)
    result = eh.mitigate(frame, learner, methods=["reweighing", "threshold_optimizer"], margin=0.3, audits=False, rng=0)
    assert any("takes no sample weights" in c.reason for c in result.candidates)


def test_a_fitted_model_is_fitted_again() -> None:
    data = people(2000)
    X = np.column_stack([data.features["skill"], data.features["noise"]])
    fitted = LogisticRegression().fit(X[:10], data.outcome[:10])
    bare = eh.AuditData.from_arrays(
        outcome=data.outcome,
        groups={"sex": np.array(data.attribute("sex").labels)[data.attribute("sex").codes]},
        features={"skill": X[:, 0], "noise": X[:, 1]},
    )
    before = fitted.coef_.copy()
    result = eh.mitigate(bare, fitted, methods=["reweighing"], margin=0.3, audits=False, rng=0)
    np.testing.assert_array_equal(fitted.coef_, before)
    assert any("fitted again" in note for note in result.notes)


def test_a_certificate_is_plain_data() -> None:
    result = eh.mitigate(people(2000), methods=["reweighing"], margin=0.3, audits=False, rng=0)
    assert isinstance(result.certificate, Certificate)
    assert json.loads(result.to_json())["schema"] == "evenhand/mitigation/1"


@pytest.mark.parametrize(
    ("estimate", "low", "high", "expected"),
    [
        (0.0, -0.1, 0.1, 2.0),  # the interval ends at the margin: more rows are needed
        (0.1, 0.0, 0.2, None),  # on the margin itself
        (0.1 - 1e-15, 0.0, 0.2, None),
        (0.3, 0.2, 0.4, None),  # outside
        (0.0, -1e-9, 1e-9, 0.0),  # far more rows than needed
        (0.0, 0.0, 0.0, None),  # no spread at all
        (0.0, -1.0, 1.0, 200.0),
    ],
)
def test_rows_needed_at_the_edges(estimate: float, low: float, high: float, expected: float | None) -> None:
    finding = eh.Finding(
        audit="group",
        measure="fnr",
        groups=("g=a", "g=b"),
        estimate=estimate,
        interval=eh.Interval(low=low, high=high, level=0.95, kind="score"),
    )
    times = times_rows(finding, parse_margin(0.1), 0.05)
    if expected is None:
        assert np.isnan(times)
    else:
        assert times == pytest.approx(expected, rel=0.2, abs=0.01)
