"""A heat map: colours by side, strength by distance, a line between the sides, and a drawing without a browser."""

from __future__ import annotations

import pytest

from evenhand.report.heat_map import HeatFrame, heat_map
from evenhand.report.stills import picture

FRAME = HeatFrame(x="first", y="second", value="ratio", threshold=2.0, below="kept", above="rejected")
VALUES = [[1.0, 1.0, 8.0], [1.0, 2.0, 4.0]]


@pytest.fixture(scope="module")
def made():
    return heat_map("t", "c", [0.0, 1.0, 2.0], [10.0, 20.0], VALUES, FRAME)


def test_each_cell_has_its_place_its_side_and_its_strength(made):
    cells = made.spec["data"]["values"]
    assert [c["value"] for c in cells] == [1, 1, 8, 1, 2, 4]
    assert [c["side"] for c in cells] == ["kept", "kept", "rejected", "kept", "kept", "rejected"]  # 2 is not above 2
    assert (cells[5]["left"], cells[5]["right"], cells[5]["low"], cells[5]["high"]) == (1.5, 2.5, 15.0, 25.0)
    assert cells[0]["strength"] == cells[2]["strength"] == 1.0  # the farthest of each side
    assert cells[4]["strength"] == 0.14  # at the threshold
    assert cells[5]["strength"] == pytest.approx(0.14 + 0.86 / 2)  # half of the logarithm of 8 / 2


def test_the_line_parts_the_sides_and_nothing_else(made):
    line = made.spec["layer"][1]["data"]["values"]
    assert line == [
        {"left": 1.5, "low": 5.0, "right": 1.5, "high": 15.0},
        {"left": 1.5, "low": 15.0, "right": 1.5, "high": 25.0},
    ]


def test_a_map_on_one_side_has_no_line():
    flat = heat_map("t", "c", [0.0, 1.0], [0.0, 1.0], [[1.0, 1.0], [1.0, 1.0]], FRAME)
    assert len(flat.spec["layer"]) == 1


def test_colours_are_those_of_the_page_and_the_map_can_be_drawn(made):
    assert made.legend == (("kept", "var(--equivalent)"), ("rejected", "var(--disparity)"))
    drawn = picture(made.spec, 560)
    assert drawn.count("var(--disparity)") == 2
    assert drawn.count("var(--equivalent)") == 4
