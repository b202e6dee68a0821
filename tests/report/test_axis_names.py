"""Names beside the lines of charts: in full, in short lines, and never two as one."""

from __future__ import annotations

import pytest

from evenhand.report.axis_names import named_lines
from evenhand.report.figures import bars, dumbbells, forest

LONG = "race=Native Hawaiian or other Pacific Islander, outcome 1"


def _rows(*labels):
    return [{"label": label, "estimate": 0.1, "low": 0.0, "high": 0.2, "verdict": "inconclusive"} for label in labels]


def test_a_long_name_is_shown_whole_in_short_lines():
    rows, _, height = named_lines(_rows("sex=F", LONG))
    lines = rows[1]["shown_label"].split("\n")
    assert " ".join(lines) == LONG
    assert max(map(len, lines)) <= 24
    assert height / 2 >= 14 * len(lines)  # both names have room for as many lines as the longest has


def test_short_names_take_one_line_as_before():
    rows, _, height = named_lines(_rows("a", "b"))
    assert [row["shown_label"] for row in rows] == ["a", "b"]
    assert height == 2 * 26


def test_names_that_begin_alike_stay_apart_and_equal_names_stay_one():
    start = "x" * 200
    rows, _, _ = named_lines(_rows(f"{start}1", f"{start}2", f"{start}3", f"{start}1"))
    shown = [row["shown_label"] for row in rows]
    assert len(set(shown)) == 3
    assert shown[0] == shown[3]


@pytest.mark.parametrize("name", ["forest", "bars", "dumbbells"])
def test_every_chart_with_names_breaks_them_and_lists_them_whole(name):
    row = {**_rows(LONG)[0], "value": 1.0, "series": "s", "before": 0.1, "after": 0.2}
    made = {
        "forest": lambda: forest("t", "c", [row], value="v", none=0.0),
        "bars": lambda: bars("t", "c", [row], value="v", label="Group"),
        "dumbbells": lambda: dumbbells("t", "c", [row]),
    }[name]()
    assert "\n" in made.spec["data"]["values"][0]["shown_label"]
    assert made.spec["layer"][-1]["encoding"]["y"]["field"] == "shown_label"
    assert made.table.rows[0][0] == LONG
