"""A heat map as Vega-Lite data: one value per cell of a grid, and a line where it crosses a threshold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from evenhand.report.document import Figure
from evenhand.report.figures import axis, figure, layer, number, word

_FAINTEST = 0.14  # a cell at the threshold can still be told from the page and from the other side


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatFrame:
    """What surrounds a heat map."""

    # x, y, value: what the axes and the cells measure.
    x: str
    y: str
    value: str
    threshold: float  # above 0, as all values: distances from it are those of logarithms
    # below, above: names of its two sides.
    below: str
    above: str


def heat_map(
    title: str,
    caption: str,
    x: Sequence[float],
    y: Sequence[float],
    values: Sequence[Sequence[float]],
    frame: HeatFrame,
) -> Figure:
    """Draw positive values over a grid, one colour for each side of a threshold, stronger the farther from it.

    Each side has its own scale: its farthest value is drawn strongest. The colours are those of the page, so that the
    map follows light and dark; a scale between two of them could not.

    Parameters
    ----------
    title, caption : str
        What it shows, and how to read it.
    x, y : sequence of float
        Middles of the cells, increasing and evenly spaced, at least two each.
    values : sequence of sequence of float
        One row for each `y`, one value for each `x`.
    frame : HeatFrame
        What is measured, and the threshold.

    Returns
    -------
    Figure

    Examples
    --------
    >>> frame = HeatFrame(x="a", y="b", value="v", threshold=1.0, below="low", above="high")
    >>> made = heat_map("t", "c", [0.0, 1.0], [0.0, 1.0], [[0.5, 0.5], [0.5, 2.0]], frame)
    >>> made.table.rows[-1], len(made.spec["layer"][1]["data"]["values"])
    ((1.0, 1.0, 2.0, 'high'), 2)
    """
    dx, dy = (x[1] - x[0]) / 2, (y[1] - y[0]) / 2
    gaps = [math.log(v / frame.threshold) for row in values for v in row]
    far = (max(-min(gaps), 1e-12), max(*gaps, 1e-12))
    sides = (frame.below, frame.above)
    rows = [
        {
            "x": number(a),
            "y": number(b),
            "left": number(a - dx),
            "right": number(a + dx),
            "low": number(b - dy),
            "high": number(b + dy),
            "value": number(v),
            "side": sides[v > frame.threshold],
            "strength": number(
                _FAINTEST + (1 - _FAINTEST) * abs(math.log(v / frame.threshold)) / far[v > frame.threshold]
            ),
        }
        for b, row in zip(y, values, strict=True)
        for a, v in zip(x, row, strict=True)
    ]
    colours = ("var(--equivalent)", "var(--disparity)")
    across = axis("left", frame.x, scale={"nice": False, "zero": False}, axis={"grid": False, "tickCount": 5})
    up = axis("low", frame.y, scale={"nice": False, "zero": False}, axis={"grid": False, "tickCount": 5})
    cells = layer(
        {"type": "rect", "strokeWidth": 0},
        x=across,
        x2={"field": "right"},
        y=up,
        y2={"field": "high"},
        color={"field": "side", "type": "nominal", "scale": {"domain": list(sides), "range": list(colours)}},
        opacity={"field": "strength", "type": "quantitative", "scale": None},
        tooltip=[
            axis("x", frame.x, format=".4~g"),
            axis("y", frame.y, format=".4~g"),
            axis("value", frame.value, format=".4~g"),
            word("side", "side"),
        ],
    )
    layers = [cells]
    edges = _edges(x, y, [[v > frame.threshold for v in row] for row in values])
    if edges:
        line = {"type": "rule", "color": "var(--ink)", "strokeWidth": 1.6, "strokeCap": "round"}
        ends = {"x2": {"field": "right"}, "y2": {"field": "high"}}
        layers.append(layer(line, edges, x=axis("left", frame.x), y=axis("low", frame.y), **ends))
    columns = {"x": frame.x.capitalize(), "y": frame.y.capitalize(), "value": frame.value, "side": "Side"}
    return figure(
        title, caption, rows, layers, columns=columns, height=300, legend=list(zip(sides, colours, strict=True))
    )


def _edges(x: Sequence[float], y: Sequence[float], above: Sequence[Sequence[bool]]) -> list[dict[str, float | None]]:
    """Return the sides of cells between a value above the threshold and one that is not."""
    dx, dy = (x[1] - x[0]) / 2, (y[1] - y[0]) / 2
    edges = []
    for i, b in enumerate(y):
        for j, a in enumerate(x):
            if j + 1 < len(x) and above[i][j] != above[i][j + 1]:
                edges.append((a + dx, b - dy, a + dx, b + dy))
            if i + 1 < len(y) and above[i][j] != above[i + 1][j]:
                edges.append((a - dx, b + dy, a + dx, b + dy))
    names = ("left", "low", "right", "high")
    return [{name: number(end) for name, end in zip(names, edge, strict=True)} for edge in edges]
