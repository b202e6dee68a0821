"""A ranked dot plot: one value with its interval per line, and above it a name of any length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evenhand.report.axis_names import in_lines
from evenhand.report.document import Figure
from evenhand.report.figures import Row, axis, figure, layer, rule, word
from evenhand.report.theme import VERDICT_COLOURS, VERDICT_SHAPES, VERDICTS
from evenhand.results import Verdict

_LETTERS = 44  # of a name in one line: what a narrow screen has room for
_LINE = 15  # pixels of a line of a name
_DOT = 28  # pixels of a dot with its interval


def ranked_chart(title: str, caption: str, rows: Sequence[Row], *, value: str) -> Figure:
    """Draw values with their intervals, one below the other, each under its whole name.

    Parameters
    ----------
    title, caption : str
        What it shows, and how to read it.
    rows : sequence of mapping
        In their order: ``name``, ``people``, ``estimate``, ``low``, ``high`` and ``verdict``.
    value : str
        What the axis measures.

    Returns
    -------
    Figure

    Examples
    --------
    >>> row = {"name": "sex=F & race=C", "people": 120, "estimate": 0.1, "low": 0.0, "high": 0.2}
    >>> made = ranked_chart("t", "c", [{**row, "verdict": "disparity"}], value="difference")
    >>> made.spec["height"], made.spec["data"]["values"][0]["label"]
    (43, 'sex=F & race=C, 120 people')
    """
    placed, height = _placed(rows)
    down = {"type": "quantitative", "axis": None, "scale": {"domain": [height, 0], "nice": False, "zero": False}}
    at = {**down, "field": "at"}
    there = [j for j, verdict in enumerate(VERDICTS) if any(row["verdict"] == verdict for row in rows)]
    channel = {"field": "verdict", "type": "nominal"}
    domain = [VERDICTS[j] for j in there]
    colour = {**channel, "scale": {"domain": domain, "range": [VERDICT_COLOURS[j] for j in there]}}
    shape = {**channel, "scale": {"domain": domain, "range": [VERDICT_SHAPES[j] for j in there]}}
    faint = {"field": "strength", "type": "quantitative", "scale": None}
    tip = [word("name", "subgroup"), axis("people", "people", format=",")]
    tip += [*(axis(name, name, format=".4f") for name in ("estimate", "low", "high")), word("verdict", "verdict")]
    text = {"type": "text", "align": "left", "baseline": "top", "lineBreak": "\n", "lineHeight": _LINE, "fontSize": 12}
    halo = {"stroke": "var(--paper)", "strokeWidth": 4, "color": "var(--paper)"}  # no line runs through a name
    named: dict[str, Any] = {"y": {**down, "field": "top"}, "x": {"value": 0}, "text": word("label", "")}
    interval = {"type": "rule", "strokeWidth": 2.5, "strokeCap": "round"}
    point = {"type": "point", "filled": True, "size": 85}
    low = axis("low", value, axis={"tickCount": 4})
    middle = axis("estimate", value, scale={"zero": False})
    layers = [
        rule(0.0),
        layer(interval, y=at, x=low, x2={"field": "high"}, color=colour, opacity=faint, tooltip=tip),
        layer(point, y=at, x=middle, color=colour, shape=shape, opacity=faint, tooltip=tip),
        layer({**text, **halo}, **named),
        layer(text, **named, color=colour, tooltip=tip),
    ]
    columns = {"name": "Subgroup", "people": "People", "estimate": "Estimate", "low": "Low", "high": "High"}
    return figure(
        title,
        caption,
        placed,
        layers,
        columns={**columns, "verdict": "Verdict"},
        height=height,
        legend=[(list(Verdict)[j], VERDICT_COLOURS[j]) for j in there],
    )


def _placed(rows: Sequence[Row]) -> tuple[list[dict[str, Any]], int]:
    """Give each row its name in lines, its places from above, and how strongly it is drawn."""
    placed, top = [], 0
    for row in rows:
        lines = _with_size(row["name"], f"{row['people']:,} people")
        at = top + _LINE * len(lines) + _DOT // 2 - 5
        shown = row["verdict"] == VERDICTS[0]
        placed.append({**row, "label": "\n".join(lines), "top": top, "at": at, "strength": 1.0 if shown else 0.6})
        top += _LINE * len(lines) + _DOT
    return placed, top


def _with_size(name: str, size: str) -> list[str]:
    """Break a name, with its size behind it, into lines; what does not fit at all ends in dots."""
    lines = in_lines(name, _LETTERS)
    if len(lines[-1]) + len(size) + 2 <= _LETTERS:
        lines[-1] += f", {size}"
    else:
        lines.append(size)
    return lines
