"""Two models on the same people: verdicts on the size of a difference, whatever form the sides come in."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import evenhand as eh
from evenhand import ChangeVerdict, DataError, UsageError
from evenhand.change.runs import compare_runs
from evenhand.cli import run


def people(n: int = 4000, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    g = rng.integers(0, 2, n)
    return {"g": np.array(["a", "b"])[g], "y": rng.integers(0, 2, n), "u": rng.random(n), "code": g}


def decide(table: dict[str, np.ndarray], a: float, b: float) -> np.ndarray:
    """Decide 1 at given rates; the same people first, as two versions of a model would."""
    return (table["u"] < np.where(table["code"] == 0, a, b)).astype(int)


def data_of(table: dict[str, np.ndarray], **more: Any) -> eh.AuditData:
    return eh.AuditData.from_arrays(
        outcome=table["y"], decision=decide(table, 0.5, 0.5), groups={"g": table["g"]}, **more
    )


@pytest.mark.parametrize(
    ("old", "new", "margin", "verdict"),
    [
        ((0.5, 0.5), (0.5, 0.4), None, "worse"),
        ((0.5, 0.4), (0.5, 0.5), None, "better"),
        ((0.5, 0.4), (0.4, 0.5), None, "inconclusive"),  # turned over: as large as before
        ((0.5, 0.4), (0.5, 0.4), None, "inconclusive"),
        ((0.5, 0.4), (0.5, 0.4), 0.05, "alike"),
        ((0.5, 0.4), (0.5, 0.41), 0.05, "alike"),
        ((0.5, 0.5), (0.5, 0.4), 0.05, "worse"),
        ((0.5, 0.3), (0.5, 0.42), 0.05, "better"),
        ((0.5, 0.4), (0.4, 0.47), 0.06, "not_worse"),
    ],
)
def test_the_verdict_is_about_the_size(
    old: tuple[float, float], new: tuple[float, float], margin: float | None, verdict: str
) -> None:
    table = people(12_000)
    found = eh.compare(
        data_of(table), decide(table, *old), decide(table, *new), metrics=["selection_rate"], margin=margin
    )
    change = found[0]
    assert str(change.verdict) == verdict
    assert change.estimate == pytest.approx(change.after - change.before)
    assert change.interval is not None
    assert change.interval.low <= change.estimate <= change.interval.high
    assert change.reason


def test_the_change_is_paired() -> None:
    """What both models do alike drops out: the interval is far narrower than that of independent samples."""
    table = people(4000)
    old, new = decide(table, 0.5, 0.4), decide(table, 0.51, 0.42)
    found = eh.compare(data_of(table), old, new, metrics=["selection_rate"])[0]
    one, two = (
        eh.audit_group(
            eh.AuditData.from_arrays(decision=d, groups={"g": table["g"]}), metrics=["selection_rate"], rng=0
        )[0]
        for d in (old, new)
    )
    assert found.interval is not None
    assert one.interval is not None
    assert two.interval is not None
    apart = np.hypot(one.interval.high - one.interval.low, two.interval.high - two.interval.low)
    assert found.interval.high - found.interval.low < 0.3 * apart


def test_every_metric_and_group_is_compared() -> None:
    table = people(3000)
    rng = np.random.default_rng(1)
    scores = [np.clip(0.3 * table["y"] + 0.7 * rng.random(3000), 0, 1) for _ in (0, 1)]
    sides = [{"decision": (s > 0.5).astype(int), "score": s} for s in scores]
    without = ["di", "aod_abs", "calibration_error", "scoring_rate"]
    metrics = [m for m in eh.METRICS if m not in without]
    found = eh.compare(data_of(table), *sides, metrics=metrics)
    assert [c.metric for c in found] == metrics
    for change in found:
        assert change.verdict is not ChangeVerdict.NOT_COMPUTABLE, change.metric
        judged = [
            eh.audit_group(
                eh.AuditData.from_arrays(outcome=table["y"], groups={"g": table["g"]}, **side),
                metrics=[change.metric], reference={"g": change.groups[1].removeprefix("g=")}, rng=0, n_resamples=199,
            )[0].estimate
            for side in sides
        ]  # fmt: skip
        assert (change.before, change.after) == pytest.approx(judged), change.metric
    left = eh.compare(data_of(table), *sides, metrics=without)
    assert {c.verdict for c in left} == {ChangeVerdict.NOT_COMPUTABLE}
    assert "`spd` has one" in left[0].reason


def test_sides_in_every_form_are_the_same() -> None:
    table = people(2000)
    x = np.column_stack([table["u"], table["y"] + np.random.default_rng(3).normal(size=2000)])
    models = [LogisticRegression(C=c).fit(x[:, :k], table["y"]) for c, k in ((1.0, 2), (0.001, 2))]
    data = data_of(table, features={"x0": x[:, 0], "x1": x[:, 1]})
    by_model = eh.compare(data, *models, metrics=["fnr", "auc"])
    decisions, scores = ([m.predict(x) for m in models], [m.predict_proba(x)[:, 1] for m in models])
    sides = [{"decision": d, "score": s} for d, s in zip(decisions, scores, strict=True)]
    by_array = eh.compare(data, *sides, metrics=["fnr", "auc"])
    assert [c.to_dict() for c in by_model] == [c.to_dict() for c in by_array]
    frame = {"g": table["g"], "y": table["y"]}
    frame |= {name: np.where(d == 1, "granted", "denied") for name, d in zip(("old", "new"), decisions, strict=True)}
    read = eh.read(frame, outcome="y", decision="old", groups="g", features=["new"], positive={"decision": "granted"})
    by_column = eh.compare(read, "old", "new", metrics=["fnr"])
    assert by_column[0].to_dict() == eh.compare(data, *decisions, metrics=["fnr"])[0].to_dict()


def test_counted_records_and_rows_agree() -> None:
    table = people(600)
    old, new = decide(table, 0.5, 0.4), decide(table, 0.45, 0.4)
    frame = pd.DataFrame({"g": table["g"], "y": table["y"], "old": old, "new": new})
    counted = frame.value_counts().reset_index(name="n")
    rows = eh.read(frame, outcome="y", decision="old", groups="g", features=["new"])
    cells = eh.read(
        counted, outcome="y", decision="old", groups="g", features=["new"], weight="n", weight_kind="frequency"
    )
    one, two = (eh.compare(d, "old", "new", metrics=["selection_rate", "precision"]) for d in (rows, cells))
    for a, b in zip(one, two, strict=True):
        assert a.pvalue == pytest.approx(b.pvalue, rel=1e-9)
        assert a.interval == b.interval or a.interval.low == pytest.approx(b.interval.low)  # type: ignore[union-attr]


def test_people_without_a_value_on_one_side_are_left_out() -> None:
    table = people(300)
    old, new = decide(table, 0.5, 0.4).astype(float), decide(table, 0.4, 0.4).astype(float)
    new[:7] = np.nan
    found = eh.compare(data_of(table), old, new, metrics=["selection_rate"])
    assert found.data["rows"] == 293
    assert any("7 rows without a value" in note for note in found.notes)


@pytest.mark.parametrize(
    ("a", "b", "asked", "kind", "said"),
    [
        (np.zeros(3), np.zeros(300), {}, DataError, "`a` has 3 values and the data have 300 rows"),
        ("nobody", "nothing", {}, UsageError, "There is no column `nobody` to compare"),
        ({"decisions": [1]}, np.zeros(300), {}, UsageError, "may hold `decision` and `score`"),
        (np.zeros(300), np.full(300, 0.5), {}, UsageError, "`a` has a decision and `b` has none"),
        (np.zeros(300), np.zeros(300), {"margin": "ratio:0.9"}, UsageError, "takes a difference such as 0.02"),
        (np.zeros(300), np.zeros(300), {"alpha": 2}, UsageError, "`alpha=` must lie between 0 and 1"),
        (np.full(300, np.nan), np.zeros(300), {}, DataError, "No person has a value on both sides"),
        (np.full(300, "yes"), np.zeros(300), {}, DataError, "does not occur among the data's decisions"),
        (LogisticRegression(), LogisticRegression(), {}, UsageError, "is a model and the data have no features"),
    ],
)
def test_bad_sides_are_refused(a: Any, b: Any, asked: dict[str, Any], kind: type, said: str) -> None:
    with pytest.raises(kind, match=said):
        eh.compare(data_of(people(300)), a, b, **asked)


def test_groups_are_needed() -> None:
    share = np.linspace(0, 1, 300)
    guessed = {"r": {"a": share, "b": 1 - share}}
    data = eh.AuditData.from_arrays(decision=np.arange(300) % 2, group_probability=guessed)
    with pytest.raises(DataError, match="A comparison needs a group column"):
        eh.compare(data, data.decision, data.decision)


def test_other_audits_stand_side_by_side() -> None:
    table = people(500)
    x = np.column_stack([table["u"], table["y"] + np.random.default_rng(3).normal(size=500)])
    models = [LogisticRegression(C=c).fit(x, table["y"]) for c in (1.0, 0.01)]
    data = eh.AuditData.from_arrays(
        outcome=table["y"], groups={"g": table["g"]}, features={"x0": x[:, 0], "x1": x[:, 1]}
    )
    found = eh.compare(data, *models, metrics=["fnr"], audits=["projection"])
    assert found.headlines[0]["audit"] == "projection"
    assert "no paired interval" in found.headlines[0]["note"]
    with pytest.raises(UsageError, match="`audits=` names `group`"):
        eh.compare(data, *models, audits=["group"])


def test_comparison_json_follows_its_schema() -> None:
    schema = json.loads(files("evenhand").joinpath("comparison.schema.json").read_text(encoding="utf-8"))
    check = jsonschema.Draft202012Validator(schema)
    table = people(500)
    old, new = decide(table, 0.5, 0.4), decide(table, 0.45, 0.4)
    found = json.loads(eh.compare(data_of(table), old, new, metrics=["fnr", "di"], margin=0.05).to_json())
    check.validate(found)
    plan = eh.Plan(group={"metrics": ["fnr"]})
    runs = [eh.audit(eh.datasets.planted(rows=500, rng=k), plan=plan, rng=0) for k in (0, 1)]
    check.validate(json.loads(compare_runs(*runs).to_json()))
    for key in ("changes", "alpha", "names"):
        with pytest.raises(jsonschema.ValidationError):
            check.validate({k: v for k, v in found.items() if k != key})
    with pytest.raises(jsonschema.ValidationError):
        check.validate({**found, "changes": [{**found["changes"][0], "verdict": "perhaps"}]})


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = people(6000)
    frame = pd.DataFrame(
        {"g": table["g"], "y": table["y"], "old": decide(table, 0.5, 0.5), "new": decide(table, 0.5, 0.4)}
    )
    frame.to_csv(tmp_path / "people.csv", index=False)
    words = ["compare", str(tmp_path / "people.csv"), "--outcome", "y", "--group", "g", "--out", str(tmp_path / "out")]
    assert run([*words, "--decision", "old", "--decision-b", "new"]) == 0
    assert "worse" in capsys.readouterr().out
    assert (tmp_path / "out" / "comparison.json").exists()
    page = (tmp_path / "out" / "report.html").read_text()
    assert "shown to be larger" in page
    assert run([*words, "--decision", "old", "--decision-b", "new", "--fail-on", "worse", "--quiet"]) == 3
    assert run([*words, "--decision", "new", "--decision-b", "old", "--fail-on", "worse", "--quiet"]) == 0
    capsys.readouterr()
    for bad in (["--decision", "old"], [], ["--model", "a.skops"], ["--decision", "old", "--decision-b", "nope"]):
        assert run([*words, *bad]) == 2
        assert len(capsys.readouterr().err.strip().splitlines()) == 1
