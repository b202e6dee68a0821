"""Observed against fitted quantiles: the one chart of a fitted tail."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.report.document import Figure
from evenhand.report.figures import Row, axis, figure, layer, word
from evenhand.report.theme import colour_of, legend_of


def quantile_chart(title: str, caption: str, rows: Sequence[Row]) -> Figure:
    """Draw observed against fitted quantiles, and the line on which they agree.

    Parameters
    ----------
    title, caption : str
        What it shows, and how to read it.
    rows : sequence of mapping
        With ``x`` (fitted), ``y`` (observed) and ``series``.

    Returns
    -------
    Figure

    Examples
    --------
    >>> len(quantile_chart("t", "c", [{"x": 0.1, "y": 0.2, "series": "a"}]).spec["layer"])
    2
    """
    ends = [min(r["x"] for r in rows), max(r["x"] for r in rows)]
    tip = [word("series", "group"), axis("x", "fitted", format=".4~g"), axis("y", "observed", format=".4~g")]
    names = [r["series"] for r in rows]
    layers = [
        layer(
            {"type": "line", "color": "var(--soft)", "strokeWidth": 1.2},
            [{"x": end, "y": end} for end in ends],
            x=axis("x", "fitted quantile"),
            y=axis("y", "observed quantile"),
        ),
        layer(
            {"type": "point", "filled": True, "size": 28, "opacity": 0.75},
            x=axis("x", "fitted quantile", scale={"zero": False}, axis={"tickCount": 5}),
            y=axis("y", "observed quantile", scale={"zero": False}),
            color=colour_of("series", names),
            tooltip=tip,
        ),
    ]
    columns = {"series": "Group", "x": "Fitted", "y": "Observed"}
    return figure(title, caption, rows, layers, columns=columns, legend=legend_of(names))
