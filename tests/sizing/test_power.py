"""`evenhand.power` as a user meets it."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import evenhand as eh

ASSUMED = {"base_rate": 0.4, "selection_rate": 0.35, "spread": 0.3}


def pilot(rows=400):
    rng = np.random.default_rng(0)
    y = (rng.random(rows) < 0.4).astype(int)
    score = np.clip(0.3 * y + 0.6 * rng.random(rows), 0.01, 0.99)
    return eh.AuditData.from_arrays(
        outcome=y,
        decision=(score > 0.45).astype(int),
        score=score,
        groups={"g": np.tile(["a", "b", "b", "b"], rows // 4)},
    )


@pytest.mark.parametrize("metric", sorted(name for name, metric in eh.METRICS.items() if metric.kind != "gaps"))
def test_every_metric_both_ways(metric):
    for result in (
        eh.power(metric, rows=(60, 180), value=0.6, difference=-0.25, margin=0.3, **ASSUMED),
        eh.power(metric, pilot(), difference=-0.08, margin=0.3),
    ):
        (row,) = result
        assert row.below < 0 < row.above or row.reason
        for goal in (row.to_show_difference, row.to_show_equivalence):
            assert 0 <= goal.power <= 1
            assert goal.rows[1] == pytest.approx(3 * goal.rows[0], abs=3)
            assert goal.one_group_rows > 0 or goal.one_group == ""


@pytest.mark.parametrize("given", [{"rows": (60, 180), "value": 0.6, **ASSUMED}, {"data": pilot()}])
def test_the_absolute_odds_difference_is_refused_with_what_to_size_in_its_place(given):
    with pytest.raises(eh.errors.UsageError, match=r"`aod_abs` cannot be sized.*Size `tpr` and `fpr` in its place"):
        eh.power("aod_abs", **given)


def test_the_power_at_the_rows_needed_is_the_one_asked_for():
    row = eh.power("fnr", rows=(300, 900), value=0.2, base_rate=0.4, difference=0.1)[0]
    n, m = row.to_show_difference.rows
    again = eh.power("fnr", rows=(int(n), int(m)), value=0.2, base_rate=0.4, difference=0.1)[0]
    assert 0.8 <= again.to_show_difference.power < 0.82
    alone = eh.power(
        "fnr", rows=(int(row.to_show_difference.one_group_rows), 900), value=0.2, base_rate=0.4, difference=0.1
    )
    assert row.to_show_difference.one_group == "group"
    assert 0.8 <= alone[0].to_show_difference.power < 0.82


def test_findings_share_the_error_rate():
    words = {"rows": (200, 200), "value": 0.3}
    assert eh.power("selection_rate", **words, findings=5)[0] == eh.power("selection_rate", **words, alpha=0.01)[0]
    both = eh.power(["selection_rate", "accuracy"], **words)
    assert both.options["findings"] == 2
    assert both[0].above == eh.power("selection_rate", **words, alpha=0.025)[0].above


def test_a_pilot_and_the_same_numbers_assumed_agree():
    decision = np.concatenate([np.arange(100) < 45, np.arange(300) < 90]).astype(int)
    data = eh.AuditData.from_arrays(decision=decision, groups={"g": np.repeat(["a", "b"], [100, 300])})
    seen = eh.power("selection_rate", data, difference=0.2, margin=0.1)[0]
    said = eh.power("selection_rate", rows={"g=a": 100, "g=b": 300}, value=0.3, difference=0.2, margin=0.1)[0]
    assert seen == said
    planned = eh.power("selection_rate", data, rows=(1000, 1000))[0]
    assert planned.rows == (1000, 1000)
    assert planned.above < seen.above


def test_ratio_is_a_difference_in_other_words():
    words = {"rows": (200, 200), "value": 0.25}
    one, two = (eh.power("selection_rate", **words, **goal)[0] for goal in ({"ratio": 1.4}, {"difference": 0.1}))
    assert one.difference == pytest.approx(two.difference)
    assert one.to_show_difference.rows == two.to_show_difference.rows


def test_curves_rise():
    words = {"rows": (100, 100), "value": 0.3}
    over_rows = eh.power("selection_rate", **words, difference=0.15, curve="rows")[0].curve
    assert np.diff([point["power"] for point in over_rows]).min() > 0
    over = eh.power("mean_score", rows=(100, 100), spread=1.0, curve="difference")[0].curve
    assert over[10]["difference"] == 0
    assert over[10]["power"] == pytest.approx(0.05, abs=1e-3)
    assert np.diff([point["power"] for point in over[10:]]).min() > 0


def test_correlation_assumed_and_from_a_pilot():
    row = eh.power("correlation", rows=200, difference=0.2)[0]
    assert row.to_show_difference.power == pytest.approx(0.8, abs=0.02)
    rng = np.random.default_rng(0)
    data = eh.AuditData.from_arrays(
        score=rng.normal(size=300), groups={"age": rng.normal(size=300)}, continuous=["age"]
    )
    seen = eh.power("mean_score", data, margin=0.1)[0]
    assert (seen.measure, seen.groups, seen.rows) == ("mean_score_correlation", ("age",), (300,))
    assert seen.above == pytest.approx(0.165, abs=0.015)
    assert seen.reason == "A correlation has no equivalence test."


def test_metrics_of_ones_own():
    youden = eh.cell_metric("youden", lambda tn, fp, fn, tp: tp / (tp + fn) + tn / (tn + fp) - 1, low=-1)
    assert eh.power(youden, pilot())[0].above > 0
    assert eh.power(youden, rows=(100, 100), value=0.2, spread=1.0)[0].above == pytest.approx(0.398, abs=1e-3)


def test_what_does_not_exist_is_nan_with_a_reason_and_null_in_json():
    rows = eh.power("selection_rate", rows=(5, 1000), value=0.95)
    assert math.isnan(rows[0].above)
    assert "above the reference's value" in rows[0].reason
    assert json.loads(rows.to_json())["power"][0]["above"] is None
    empty = eh.AuditData.from_arrays(outcome=[0, 0, 1, 1], decision=[0, 1, 0, 1], groups={"g": list("aabb")})
    row = eh.power("fnr", empty, reference="b")[0]
    assert row.reason == "Group `g=a` has no rows with outcome 1."
    assert math.isnan(row.below)


def test_a_pilot_with_an_impossible_difference_says_so_in_that_row_only():
    rows = eh.power(["mae", "mean_residual"], pilot(), difference=-0.6)
    assert "outside 0 to inf" in rows[0].reason
    assert rows[0].to_show_difference is None
    assert rows[1].to_show_difference.power > 0.99


def test_tables_and_hostile_names(tmp_path):
    result = eh.power("selection_rate", rows={"<script>\x1b": 50, "M": 80}, value=0.3, difference=0.1)
    assert "<script>" not in result._repr_html_()
    assert "&lt;script&gt;" in result._repr_html_()
    assert "\x1b" not in str(result)
    assert str(result).splitlines()[0].split()[:2] == ["measure", "groups"]
    path = tmp_path / "power.json"
    assert result.to_json(path) == path.read_text(encoding="utf-8")
    assert result.to_dict()["schema"] == "evenhand/1"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"metrics": "fnrr"}, "Did you mean `fnr`"),
        ({"rows": (10,)}, "`rows` must hold"),
        ({"rows": None}, "`rows` must hold"),
        ({"rows": (10, 1)}, "at least 2"),
        ({"value": None}, "needs `value`"),
        ({"value": 1.5}, "between 0 and 1"),
        ({"base_rate": None}, "Metric `fnr` needs `base_rate`, the share of rows with outcome 1"),
        ({"metrics": "precision"}, "needs `selection_rate`"),
        ({"metrics": "brier"}, "needs `spread`"),
        ({"base_rate": 1.2}, "`base_rate` must be"),
        ({"base_rate": (0.1, 0.2, 0.3)}, "`base_rate` must be"),
        ({"difference": 0.9}, "outside 0 to 1"),
        ({"difference": 0}, "other than 0"),
        ({"value": 0, "ratio": 1.5}, "no ratio is a difference"),
        ({"difference": 0.1, "ratio": 1.2}, "Both `difference` and `ratio`"),
        ({"ratio": 1}, "other than 1"),
        ({"alpha": 0}, "`alpha` must lie"),
        ({"power": 1}, "`power` must lie"),
        ({"power": 0.04}, "`power` must be above `alpha`"),
        ({"findings": 0}, "`findings` must be"),
        ({"margin": "five"}, "is not understood"),
        ({"curve": "alpha"}, "`curve` is `alpha`"),
        ({"curve": "rows"}, "needs `difference` or `ratio`"),
        ({"metrics": "correlation"}, "A correlation needs `rows`, one whole number"),
        ({"data": "pilot"}, "A pilot was given"),
    ],
)
def test_requests_that_make_no_sense(words, says):
    asked = {"metrics": "fnr", "rows": (100, 100), "value": 0.2, "base_rate": 0.4} | words
    if asked.get("data"):
        asked["data"] = pilot()
    with pytest.raises(eh.UsageError, match=says):
        eh.power(**asked)
