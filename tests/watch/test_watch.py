"""A watch from the outside: batches once, one plan, verdicts over time, and a state that can be read back."""

from __future__ import annotations

import json

import duckdb
import numpy as np
import pandas as pd
import pytest

import evenhand as eh


def batch(seed, *, gap=0.0, rows=800, groups=("F", "M"), common=0.3):
    rng = np.random.default_rng(seed)
    g = rng.choice(groups, rows)
    y = rng.random(rows) < 0.5
    d = rng.random(rows) < np.where(y, 1 - common - gap * (g == groups[0]), 0.2)
    score = np.clip(0.2 + 0.5 * d + 0.2 * rng.random(rows), 0, 1)
    return eh.AuditData.from_arrays(outcome=y, decision=d, score=score, groups={"sex": g})


def watched(gaps, **asked):
    watch = eh.Watch(asked.pop("metrics", ["fnr"]), **{"reference": {"sex": "M"}, **asked})
    for t, gap in enumerate(gaps):
        watch.update(batch(t, gap=gap), batch=f"{t:02d}")
    return watch


def test_a_difference_is_seen_and_its_batch_named():
    watch = watched([0.2] * 6)
    (finding,) = watch.findings
    assert finding.verdict is eh.Verdict.DISPARITY
    assert finding.interval.low > 0
    assert finding.pvalue < 0.05
    answer = watch.answers[0]
    assert answer.log_adjusted[answer.alarm] >= np.log(20) > answer.log_adjusted[: answer.alarm].max(initial=-np.inf)
    assert f"`{watch.batches[answer.alarm].name}`" in finding.reason
    assert "`fnr` of `sex=F` is higher than that of `sex=M`" in finding.reason
    assert [a.question.measure for a in watch.alarms] == ["fnr"]


def test_equal_groups_are_shown_equivalent_within_a_margin():
    watch = watched([0.0] * 12, margin=0.15)
    assert watch.findings[0].verdict is eh.Verdict.EQUIVALENT
    low, high = watch.findings[0].interval.low, watch.findings[0].interval.high
    assert -0.15 <= low < 0 < high <= 0.15


def test_equivalence_does_not_outlive_a_change():
    watch = watched([0.0] * 10 + [0.14] * 12, margin=0.15)
    assert watch.answers[0].settled is not None
    assert watch.findings[0].verdict is eh.Verdict.INCONCLUSIVE
    assert "holds no longer" in watch.findings[0].reason
    assert any("no single value" in note for note in watch.notes)


def test_a_change_since_the_baseline_is_a_question_of_its_own():
    watch = watched([0.1] * 6 + [0.35] * 8, baseline=6)
    verdicts = {f.measure: f.verdict for f in watch.findings}
    assert verdicts == {"fnr": eh.Verdict.DISPARITY, "fnr_change": eh.Verdict.DISPARITY}
    calm = watched([0.2] * 14, baseline=6)
    verdicts = {f.measure: f.verdict for f in calm.findings}
    assert verdicts == {"fnr": eh.Verdict.DISPARITY, "fnr_change": eh.Verdict.INCONCLUSIVE}


def test_one_sided_and_ratio():
    assert watched([0.2] * 6, alternative="less").findings[0].verdict is eh.Verdict.INCONCLUSIVE
    ratio = watched([0.3] * 8, margin="four-fifths").findings[0]
    assert ratio.measure == "fnr_ratio"
    assert ratio.verdict is eh.Verdict.DISPARITY
    assert ratio.interval.low >= 1.25


def test_means_of_probabilities_are_watched():
    watch = watched([0.4] * 8, metrics=["mean_score", "brier", "mean_residual", "selection_rate"])
    assert {f.measure: f.verdict for f in watch.findings}["mean_score"] is eh.Verdict.DISPARITY
    score = next(a for a in watch.answers if a.question.measure == "mean_residual")
    data = batch(3, gap=0.4)
    codes = data.attribute("sex").codes
    assert score.values[3, 0] == pytest.approx((data.outcome - data.score)[codes == 0].mean())


def test_a_batch_counts_once_and_cannot_be_changed():
    watch = watched([0.0, 0.0])
    assert watch.update(batch(1), batch="01") is False
    assert len(watch.batches) == 2
    with pytest.raises(eh.DataError, match="counted before with other rows"):
        watch.update(batch(7), batch="01")
    assert watch.update(batch(1), batch="again") is True
    assert any("same rows as batch `01`" in note for note in watch.notes)


def test_the_state_is_read_back_and_goes_on(tmp_path):
    path = tmp_path / "state.json"
    one = watched([0.1, 0.1], state=path)
    two = eh.Watch.load(path)
    assert two.to_json() == one.to_json()
    for watch in (one, eh.Watch(["fnr"], reference={"sex": "M"}, state=tmp_path / "other.json")):
        for t in range(4):
            watch.update(batch(t, gap=0.1), batch=f"{t:02d}")
    two = eh.Watch.load(path)
    assert two.history() == one.history() == eh.Watch.load(tmp_path / "other.json").history()
    assert path.stat().st_size < 3000


def test_a_changed_plan_is_refused_in_one_sentence(tmp_path):
    path = tmp_path / "state.json"
    watched([0.1], state=path)
    with pytest.raises(eh.UsageError, match=r"`alpha` was 0\.05 and is now 0\.01"):
        eh.Watch(["fnr"], reference={"sex": "M"}, alpha=0.01, state=path)
    text = json.loads(path.read_text())
    text["plan"]["alpha"] = 0.5
    path.write_text(json.dumps(text))
    with pytest.raises(eh.DataError, match="changed by hand"):
        eh.Watch.load(path)
    path.write_text('{"format": "evenhand-watch/9"}')
    with pytest.raises(eh.DataError, match="this version reads"):
        eh.Watch.load(path)
    path.write_text("{")
    with pytest.raises(eh.DataError, match="is not the state file"):
        eh.Watch.load(path)


def test_two_processes_do_not_lose_each_others_batches(tmp_path):
    path = tmp_path / "state.json"
    watched([0.0], state=path)
    one, two = eh.Watch.load(path), eh.Watch.load(path)
    one.update(batch(5), batch="x")
    with pytest.raises(eh.DataError, match="Another process"):
        two.update(batch(6), batch="y")
    assert [b.name for b in eh.Watch.load(path).batches] == ["00", "x"]


@pytest.mark.parametrize("engine", ["mapping", "duckdb"])
def test_a_table_by_month_is_its_batches(engine):
    parts = {month: batch(j, gap=0.1) for j, month in enumerate(("2026-01", "2026-02", "2026-03"))}
    one = eh.Watch(["fnr"], reference={"sex": "M"})
    for month, data in parts.items():
        one.update(data, batch=month)
    columns = {"month": [], "y": [], "d": [], "sex": []}
    for month, data in reversed(parts.items()):
        columns["month"] += [month] * len(data.count)
        columns["y"] += data.outcome.astype(int).tolist()
        columns["d"] += data.decision.astype(int).tolist()
        columns["sex"] += [data.attributes[0].labels[c] for c in data.attributes[0].codes]
    source = columns
    if engine == "duckdb":
        source = duckdb.connect().from_df(pd.DataFrame(columns))
    told = {"outcome": "y", "decision": "d", "groups": ["sex"]}
    two = eh.Watch(["fnr"], reference={"sex": "M"}, data=told)
    assert two.update_by(source, time="month") == list(parts)
    assert two.history() == one.history()
    assert two.update_by(source, time="month") == []


def test_new_groups_are_named_and_not_watched():
    watch = watched([0.0])
    watch.update(batch(1, groups=("F", "M", "X")), batch="b")
    assert len(watch.findings) == 1
    assert any("`sex=X` did not occur in the first batch" in note for note in watch.notes)


def test_a_group_without_rows_in_the_denominator_is_not_computable():
    watch = eh.Watch(["fnr"])
    watch.update(eh.AuditData.from_arrays(outcome=[0, 0, 1, 1], decision=[0, 1, 0, 1], groups={"g": list("aabb")}), "x")
    assert watch.findings[0].verdict is eh.Verdict.NOT_COMPUTABLE
    assert watch.findings[0].interval is None
    assert "`g=b` or `g=a` has no rows with outcome 1" in watch.findings[0].reason


@pytest.mark.parametrize(
    ("asked", "match"),
    [
        ({"metrics": ["auc"]}, "cannot be watched"),
        ({"metrics": ["f1"]}, "`precision` and `tpr`"),
        ({"metrics": ["fnr"], "margin": 1.5}, "can never be exceeded"),
        ({"metrics": ["fnr"], "alpha": 2}, "between 0 and 1"),
        ({"metrics": ["fnr"], "baseline": -1}, "number of batches"),
        ({"metrics": ["fnr"], "alternative": "more"}, "Allowed"),
        ({"metrics": ["fnr"], "margins": 0.1}, "not an option of a watch"),
        ({"metrics": ["di"], "margin": 0.1}, "is a ratio"),
    ],
)
def test_a_wrong_plan_is_refused(asked, match):
    with pytest.raises(eh.UsageError, match=match):
        eh.Watch(**asked)


def test_what_cannot_be_watched_is_refused():
    rows = {"decision": [0, 1, 1, 0], "groups": {"g": list("abab")}}
    with pytest.raises(eh.DataError, match="Sampling weights cannot be watched"):
        eh.Watch().update(eh.AuditData.from_arrays(**rows, weight=[0.5, 1.5, 2.5, 1.0], weight_kind="sampling"), "x")
    with pytest.raises(eh.DataError, match="Clusters cannot be watched"):
        eh.Watch().update(eh.AuditData.from_arrays(**rows, cluster=[1, 1, 2, 2]), "x")
    with pytest.raises(eh.UsageError, match="does not know the columns"):
        eh.Watch().update({"d": [0, 1]}, "x")


def test_dependent_rows_are_warned_about():
    rng = np.random.default_rng(0)
    watch = eh.Watch(["selection_rate"])
    for t in range(12):
        d = np.repeat(rng.random(40) < 0.4, 10)  # ten people of one employer share a decision
        watch.update(
            eh.AuditData.from_arrays(decision=d, groups={"g": np.repeat(rng.choice(["a", "b"], 40), 10)}), f"{t}"
        )
    assert any("more than independent rows do" in note for note in watch.notes)
    assert not watched([0.0] * 12).notes


def test_a_label_keeps_its_meaning():
    def rows(words, **more):
        return eh.AuditData.from_arrays(decision=words, groups={"g": list("abab")}, **more)

    watch = eh.Watch(["selection_rate"])
    watch.update(rows(["up", "down", "up", "down"], positive="up"), "1")
    with pytest.raises(eh.DataError, match="the decision `down` counts as 1, in batch `1` it counted as 0"):
        watch.update(rows(["up", "down", "up", "down"], positive="down"), "3")


def test_people_whose_group_is_not_known_are_no_group():
    groups = ["a"] * 10 + ["b"] * 20 + [None] * 40
    data = eh.AuditData.from_arrays(decision=[0, 1] * 35, groups={"g": groups}, missing="unknown")
    watch = eh.Watch(["selection_rate"])
    watch.update(data, "x")
    assert [f.groups for f in watch.findings] == [("g=a", "g=b")]
