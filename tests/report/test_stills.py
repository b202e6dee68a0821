"""Still pictures hold what Vega-Lite draws from the same data: every mark, tick, label and title, in its place."""

from __future__ import annotations

import re
from collections import Counter
from xml.etree import ElementTree

import numpy as np
import pytest
import vl_convert

from evenhand.report.figures import Frame, axis, bars, dumbbells, figure, forest, histogram, layer, lines, rule, word
from evenhand.report.heat_map import HeatFrame, heat_map
from evenhand.report.quantile_chart import quantile_chart
from evenhand.report.ranked_chart import ranked_chart
from evenhand.report.stills import DrawingError, picture
from evenhand.report.theme import CONFIG, VERDICT_COLOURS, VERDICTS, colour_of

WIDTH = 560
SVG = "{http://www.w3.org/2000/svg}"
NUMBER = r"-?\d*\.?\d+(?:e-?\d+)?"


def _forest_rows(shift: float = 0.0) -> list[dict[str, object]]:
    names = ["sex=Female", "race=Amer-Indian-Eskimo", "race=Asian-Pac-Islander, outcome 1", "a=b"]
    return [
        {
            "label": name,
            "estimate": shift + 0.03 * j - 0.07,
            "low": shift + 0.03 * j - 0.11,
            "high": shift + 0.03 * j - 0.05,
            "low_adjusted": shift + 0.03 * j - 0.15,
            "high_adjusted": shift + 0.03 * j - 0.01,
            "verdict": VERDICTS[j],
        }
        for j, name in enumerate(names)
    ]


def _curve(points: int = 9, scale: float = 1.0) -> list[dict[str, object]]:
    rows = []
    for name in ("a", "b, a longer name"):
        for j in range(points):
            y = None if j == 4 and name == "a" else scale * float(np.sin(j + len(name)))
            ends = (None, None) if y is None else (y - 0.2 * scale, y + 0.3 * scale)
            rows.append({"x": 0.01 * j**2, "y": y, "low": ends[0], "high": ends[1], "series": name})
    return rows


def _by_name(mark: dict[str, object], **axis_more: object) -> object:
    """A chart over batches: a line with points, a band and an upright line at one of them."""
    rows = [
        {"batch": f"2024-{j + 1:02}", "y": 0.11 * j - 0.2, "low": 0.11 * j - 0.5, "high": 0.11 * j + 0.1}
        for j in range(7)
    ]
    x = {"field": "batch", "type": "ordinal", "sort": None, "title": "batch", "axis": axis_more}
    free = {"zero": False}
    layers = [
        rule(0.0, "y"),
        layer(
            {"type": "area", "opacity": 0.16, "color": "red"}, x=x, y=axis("low", "y", scale=free), y2={"field": "high"}
        ),
        layer(mark, x=x, y=axis("y", "y", scale=free)),
        layer(
            {"type": "rule", "color": "blue"}, [{"at": "2024-03"}], x={"field": "at", "type": "ordinal", "sort": None}
        ),
    ]
    return figure("t", "c", rows, layers, columns={"y": "Y"})


def _tallies() -> object:
    rows = [{"run": str(j), "verdict": v, "findings": j + k} for j in range(3) for k, v in enumerate(VERDICTS)]
    colour = {"field": "verdict", "type": "nominal", "scale": {"domain": VERDICTS, "range": VERDICT_COLOURS}}
    x = {"field": "run", "type": "ordinal", "title": "run", "sort": None, "axis": {"labelAngle": 0}}
    y = axis("findings", "findings", stack=True, axis={"tickMinStep": 1, "format": "d"})
    return figure("t", "c", rows, [layer({"type": "bar"}, x=x, y=y, color=colour)], columns={"run": "R"}, height=200)


def _evidence() -> object:
    rows = [{"batch": f"{j}", "series": "s", "evidence": 10.0 ** (j - 3)} for j in range(9)]
    powers = [10.0**k for k in range(-3, 13)]
    y = axis("evidence", "evidence", scale={"type": "log"}, axis={"format": ".1~g", "values": powers})
    x = {"field": "batch", "type": "ordinal", "sort": None, "title": "batch", "axis": {"labelAngle": 0}}
    line = {"type": "line", "strokeWidth": 2, "point": {"size": 36, "filled": True}}
    return figure("t", "c", rows, [layer(line, x=x, y=y, color=colour_of("series", ["s"]))], columns={"batch": "B"})


def _scatter() -> object:
    rng = np.random.default_rng(0)
    rows = [
        {"x": float(a), "y": float(b), "low": float(b) - 0.4, "high": float(b) + 2} for a, b in rng.normal(size=(9, 2))
    ]
    up = {"scale": {"domain": [-2.0, 2.0]}, "axis": {"tickCount": 5}}
    layers = [
        layer(
            {"type": "rule", "strokeWidth": 1.5, "clip": True, "color": "red"},
            x=axis("x", "a"), y=axis("low", "b", **up), y2={"field": "high"},
        ),
        layer({"type": "point", "filled": False, "size": 45, "color": "red"}, x=axis("x", "a"), y=axis("y", "b", **up)),
    ]  # fmt: skip
    return figure("t", "c", rows, layers, columns={"x": "X"}, height=150)


GRID = [[float(np.exp(np.sin(a) + b)) for a in np.linspace(0, 3, 8)] for b in np.linspace(-1, 1, 6)]
CHARTS = {
    "estimates": forest("t", "c", _forest_rows(), value="difference", none=0.0, margin=[-0.05, 0.05]),
    "ratios": forest("t", "c", _forest_rows(1.0), value="ratio", none=1.0),
    "lines": lines("t", "c", _curve(), Frame(x="time", y="value", none=0.0, at=0.2, dashed=[0.5])),
    "few values": lines("t", "c", _curve(2, 1e-5), Frame(x="time", y="value")),
    "large values": lines("t", "c", _curve(9, 2e4), Frame(x="time", y="value", points=True)),
    "p-values": lines(
        "t", "c", [{"x": float(j), "y": 10.0**-j, "series": "a"} for j in range(13)],
        Frame(x="threshold", y="p-value", dashed=[0.05], y_log=True),
    ),
    "few powers": lines(
        "t", "c", [{"x": 10.0 ** (j / 4), "y": 2.0 + j, "series": "a"} for j in range(5)],
        Frame(x="rows", y="seconds", x_log=True, y_log=True),
    ),
    "horizons": lines(
        "t", "c", [{"x": 10.0**j, "y": 0.11 * j, "series": "a"} for j in range(1, 7)],
        Frame(x="decisions", y="change", x_log=True, x_values=[10.0**j for j in range(1, 7)], points=True),
    ),
    "shuffles": histogram(
        "t", "c", np.linspace(-0.21, 0.17, 20), np.arange(19.0) * 13, observed=0.31, x="size", y="shuffles"
    ),
    "bars": bars("t", "c", [{"label": f"group {j // 2}", "value": 3 * j + 1, "series": f"s{j % 2}"} for j in range(6)],
                 value="people", label="Group"),
    "before and after": dumbbells(
        "t", "c", [{"label": f"m{j}", "before": 0.1 * j, "after": 0.02 * j - 0.05} for j in range(3)]
    ),
    "fitted": quantile_chart(
        "t", "c", [{"x": 0.2 + 0.001 * j, "y": 0.2 + 0.0011 * j, "series": "a"} for j in range(30)]
    ),
    "ranked": ranked_chart(
        "t", "c",
        [{"name": f"sex=F & race={j}" * (j + 1), "people": 10 ** j, "estimate": 0.1 * j, "low": 0.1 * j - 0.2,
          "high": 0.1 * j + 0.1, "verdict": VERDICTS[j % 3]} for j in range(4)],
        value="difference",
    ),
    "map": heat_map("t", "c", np.linspace(0, 3, 8).tolist(), np.linspace(-1, 1, 6).tolist(), GRID,
                    HeatFrame(x="a", y="b", value="v", threshold=1.0, below="low", above="high")),
    "batches": _by_name(
        {"type": "line", "strokeWidth": 2, "color": "red", "point": {"size": 30, "filled": True, "color": "red"}},
        labelAngle=0,
    ),
    "periods": _by_name({"type": "point", "filled": True, "size": 45, "color": "red", "opacity": 1}, labelOverlap=True),
    "tallies": _tallies(),
    "evidence": _evidence(),
    "clipped": _scatter(),
}  # fmt: skip


def _walk(outline: str) -> list[tuple[float, float]]:
    """The points that a path goes through, in order."""
    x = y = 0.0
    start, points = (0.0, 0.0), []
    for letter, rest in re.findall(r"([A-Za-z])([^A-Za-z]*(?:e-?\d[^A-Za-z]*)*)", outline):
        numbers = [float(value) for value in re.findall(NUMBER, rest)]
        step = {"M": 2, "L": 2, "l": 2, "H": 1, "h": 1, "V": 1, "v": 1, "A": 7, "a": 7}.get(letter, 0)
        for at in range(0, len(numbers), step or 1):
            part = numbers[at : at + step]
            dx, dy = (x, y) if letter.islower() else (0.0, 0.0)
            if letter in "Hh":
                x = dx + part[0]
            elif letter in "Vv":
                y = dy + part[0]
            else:
                x, y = dx + part[-2], dy + part[-1]
            start = (x, y) if letter == "M" else start
            points.append((x, y))
        if letter in "Zz":
            x, y = start
    return points


def _box(points: list[tuple[float, float]]) -> tuple[float, ...]:
    return (*np.min(points, axis=0), *np.max(points, axis=0))


def _moved(element: ElementTree.Element) -> tuple[float, float]:
    shift = re.search(rf"translate\(({NUMBER}),({NUMBER})\)", element.get("transform", ""))
    return (float(shift[1]), float(shift[2])) if shift else (0.0, 0.0)


class Seen:
    """The marks of a picture as boxes with their paint, its labels and titles, and the ticks of its axes."""

    def __init__(self) -> None:
        self.marks: list[tuple[str, tuple[float, ...]]] = []
        self.texts: Counter[str] = Counter()
        self.ticks: list[tuple[float, ...]] = []

    def add(self, element: ElementTree.Element, points: list[tuple[float, float]]) -> None:
        paint = element.get("fill") or element.get("stroke") or ""
        self.marks.append((f"{paint} {float(element.get('opacity', 1)):.2f}", _box(points)))


def _theirs(spec: dict[str, object], inner: float) -> Seen:
    """Read what Vega-Lite draws when its plot is as wide as ours."""
    whole = {key: value for key, value in spec.items() if key != "autosize"}
    root = ElementTree.fromstring(vl_convert.vegalite_to_svg({**whole, "config": CONFIG, "width": inner}))
    seen = Seen()
    clipped = any(isinstance(part["mark"], dict) and part["mark"].get("clip") for part in spec["layer"])

    def visit(element: ElementTree.Element, x: float, y: float, role: str) -> None:
        dx, dy = _moved(element)
        x, y = x + dx, y + dy
        role = element.get("class", "") if "role-" in element.get("class", "") else role
        tag = element.tag.removeprefix(SVG)
        if tag == "text" and float(element.get("opacity", 1)) > 0:
            seen.texts.update(line for line in ([element.text or ""] + [t.text or "" for t in element]) if line)
        elif tag in ("line", "path") and ("role-mark" in role or "role-axis-tick" in role):
            points = _walk(element.get("d") or f"M0,0L{element.get('x2', 0)},{element.get('y2', 0)}")
            points = [(x + a, y + b) for a, b in points]
            if not points or not element.get("stroke", element.get("fill")):
                return
            if "role-axis-tick" in role:
                seen.ticks.append(_box(points))
            else:
                if clipped:
                    points = [(a, min(max(b, 0.0), float(spec["height"]))) for a, b in points]
                seen.add(element, points)
        for child in element if tag in ("svg", "g") else ():
            visit(child, x, y, role)

    frame = root[0]
    dx, dy = _moved(frame)
    visit(root, -dx, -dy, "")
    return seen


def _ours(svg: str) -> tuple[Seen, float]:
    root = ElementTree.fromstring(svg)
    seen, inner = Seen(), 0.0
    for element in root[0]:
        if element.tag == f"{SVG}path" and element.get("stroke") == "var(--line)":
            inner = max([inner, *(float(w) for w in re.findall(r"M0\.5,[\d.]+h([\d.]+)", element.get("d", "")))])
            strokes = re.findall(r"(M[-\d.]+,[-\d.]+[vh]-?5)(?=M|$)", element.get("d", ""))
            seen.ticks += [_box(_walk(stroke)) for stroke in strokes]
        elif element.tag == f"{SVG}path":
            seen.add(element, _walk(element.get("d", "")))
    seen.texts.update(element.text or "" for element in root.iter(f"{SVG}text"))
    return seen, inner


@pytest.mark.parametrize("name", CHARTS)
def test_a_still_picture_holds_what_vega_lite_draws(name):
    spec = CHARTS[name].spec
    seen, inner = _ours(picture(spec, WIDTH))
    wanted = _theirs(spec, inner)
    assert inner > WIDTH / 2
    assert seen.texts == wanted.texts
    for mine, other in ((seen.ticks, wanted.ticks), ([b for _, b in seen.marks], [b for _, b in wanted.marks])):
        assert len(mine) == len(other)
        assert other
        np.testing.assert_allclose(sorted(mine), sorted(other), atol=1.01)
    assert Counter(paint for paint, _ in seen.marks) == Counter(paint for paint, _ in wanted.marks)


@pytest.mark.parametrize("name", CHARTS)
def test_all_text_is_inside_the_picture(name):
    svg = picture(CHARTS[name].spec, WIDTH)
    root = ElementTree.fromstring(svg)
    left, above = _moved(root[0])
    for text in root.iter(f"{SVG}text"):
        x, y = float(text.get("x", 0)) + left, float(text.get("y", 0)) + above
        assert 0 <= x <= WIDTH
        assert 8 <= y <= float(root.get("height", 0)) - 2


def test_long_labels_are_cut_and_short_ones_are_not():
    long = forest("t", "c", [{**_forest_rows()[0], "label": "W" * 200}], value="difference", none=0.0)
    assert "…" in picture(long.spec, WIDTH)
    assert "…" not in picture(CHARTS["estimates"].spec, WIDTH)


def test_hostile_names_are_text():
    rows = [{**_forest_rows()[0], "label": "<img src=x onerror=alert(1)>"}]
    svg = picture(forest("t", "c", rows, value="difference", none=0.0).spec, WIDTH)
    assert "<img" not in svg
    assert "&lt;img" in svg


@pytest.mark.parametrize(
    ("chart", "words"),
    [
        ({"layer": [{"mark": "arc", "encoding": {}}]}, "`arc`"),
        ({"layer": [{"mark": {"type": "point", "angle": 1}, "encoding": {}}]}, "`angle` in a mark"),
        ({"layer": [{"mark": "point", "encoding": {"theta": {}}}]}, "`theta` in an encoding"),
        (
            {"layer": [{"mark": "point", "encoding": {"x": axis("x", "", axis={"orient": "top"})}}]},
            "`orient` in an axis",
        ),
        ({"layer": [], "title": "t"}, "`title` in a chart"),
        ({"layer": [], "data": {"values": [{"x": float("inf")}]}}, "not a finite number"),
    ],
)
def test_what_is_not_known_is_refused_and_never_drawn_wrongly(chart, words):
    with pytest.raises(DrawingError, match=words):
        picture({"height": 100, **chart}, WIDTH)


def test_a_tooltip_is_for_pointers():
    spec = figure("t", "c", [{"x": 1.0}], [layer("point", x=axis("x", "x"), tooltip=[word("x", "x")])], columns={}).spec
    assert "<svg" in picture(spec, WIDTH)
