"""Charts as Vega-Lite data: one visual language for all audits.

Names from the data are only ever values, never field names, titles of scales or expressions: a chart cannot
be made to run them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.report.axis_names import named_lines
from evenhand.report.document import Cell, Figure, Table
from evenhand.report.theme import SERIES, VERDICT_COLOURS, VERDICT_SHAPES, VERDICTS, colour_of, legend_of
from evenhand.results import Verdict

Row = Mapping[str, Any]


def number(value: Any) -> float | None:
    """Return a finite number with seven digits, or None: short specifications, no NaN in them.

    Parameters
    ----------
    value : object
        A number or None.

    Returns
    -------
    float or None

    Examples
    --------
    >>> number(1 / 3), number(float("nan")), number(None)
    (0.3333333, None, None)
    """
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.7g}")


def figure(
    title: str,
    caption: str,
    rows: Sequence[Row],
    layers: Sequence[Mapping[str, Any]],
    *,
    columns: Mapping[str, str],
    height: int = 220,
    legend: Sequence[tuple[str | Verdict, str]] = (),
) -> Figure:
    """Make a figure from rows and layers of marks.

    Parameters
    ----------
    title, caption : str
        What it shows, and how to read it.
    rows : sequence of mapping
        The data; the keys are names of ours.
    layers : sequence of mapping
        Vega-Lite layers on these data, or on their own.
    columns : mapping of str to str
        Which keys the table of numbers shows, and their heads.
    height : int
        Of the plot.
    legend : sequence of (str, str)
        Name and colour of each series.

    Returns
    -------
    Figure

    Examples
    --------
    >>> made = figure("t", "c", [{"x": 1.0, "y": 2.0}], [{"mark": "point"}], columns={"x": "X"})
    >>> made.table.head, made.table.rows
    (('X',), ((1.0,),))
    """
    spec = {
        "data": {"values": [dict(row) for row in rows]},
        "height": height,
        "layer": [dict(layer) for layer in layers],
        "autosize": {"type": "fit-x", "contains": "padding"},
    }
    cells: tuple[tuple[Cell, ...], ...] = tuple(tuple(row.get(key) for key in columns) for row in rows)
    table = Table(title=f"The numbers in this chart: {title}", head=tuple(columns.values()), rows=cells, folded=True)
    return Figure(title=title, caption=caption, spec=spec, table=table, legend=tuple(legend))


def axis(field: str, title: str, **more: Any) -> dict[str, Any]:
    """Return a quantitative channel with a plain title.

    Parameters
    ----------
    field : str
        A key of the rows.
    title : str
        Words of ours.
    **more
        Further keys: ``scale``, ``axis``.

    Returns
    -------
    dict

    Examples
    --------
    >>> axis("x", "time")["type"]
    'quantitative'
    """
    return {"field": field, "type": "quantitative", "title": title, **more}


def word(field: str, title: str) -> dict[str, str]:
    """Return a channel of names, such as a line of a tooltip, with a plain title."""
    return {"field": field, "type": "nominal", "title": title}


def layer(mark: str | Mapping[str, Any], values: Sequence[Row] = (), **encoding: Any) -> dict[str, Any]:
    """Return a layer of marks, with values of its own where they are not those of the figure."""
    own = {"data": {"values": list(values)}} if values else {}
    return {**own, "mark": mark, "encoding": encoding}


def rule(value: float, channel: str = "x", *, dashed: bool = False) -> dict[str, Any]:
    """Return a layer with one line at a value.

    Parameters
    ----------
    value : float
        Where.
    channel : {"x", "y"}
        Across which axis.
    dashed : bool
        Dashes for a margin or a tolerance, solid for no difference.

    Returns
    -------
    dict

    Examples
    --------
    >>> rule(0.0)["mark"]["type"]
    'rule'
    """
    mark = {"type": "rule", "color": "var(--soft)", "strokeWidth": 1.2}
    if dashed:
        mark |= {"strokeDash": [5, 4], "color": "var(--margin)"}
    return layer(mark, [{"at": value}], **{channel: axis("at", "")})


def forest(
    title: str,
    caption: str,
    rows: Sequence[Row],
    *,
    value: str,
    none: float,
    margin: Sequence[float] = (),
    label: str = "Comparison",
) -> Figure:
    """Draw estimates with their intervals, one line each.

    Parameters
    ----------
    title, caption : str
        What it shows, and how to read it.
    rows : sequence of mapping
        With ``label``, ``estimate``, ``low`` and ``high``; perhaps ``low_adjusted``, ``high_adjusted``, ``verdict``.
    value : str
        What the axis measures.
    none : float
        Where there is no difference: 0 for differences, 1 for ratios.
    margin : sequence of float
        Ends of the margin.
    label : str
        Head of the first column in the table of numbers.

    Returns
    -------
    Figure

    Examples
    --------
    >>> row = {"label": "a vs b", "estimate": 0.1, "low": 0.0, "high": 0.2, "verdict": "inconclusive"}
    >>> len(forest("t", "c", [row], value="difference", none=0.0).spec["layer"])
    3
    """
    rows, y, height = named_lines(rows, domain=False)
    tip = [word("label", "compared"), *(axis(name, name, format=".4f") for name in ("estimate", "low", "high"))]
    columns = {"label": label, "estimate": "Estimate", "low": "Low", "high": "High"}
    look: dict[str, Any] = {"color": {"value": SERIES[0]}}
    shape: dict[str, Any] = {}
    at = [j for j, v in enumerate(VERDICTS) if any(row.get("verdict") == v for row in rows)]
    if at:
        domain = [VERDICTS[j] for j in at]
        channel = {"field": "verdict", "type": "nominal"}
        look = {"color": {**channel, "scale": {"domain": domain, "range": [VERDICT_COLOURS[j] for j in at]}}}
        shape = {"shape": {**channel, "scale": {"domain": domain, "range": [VERDICT_SHAPES[j] for j in at]}}}
        tip.append(word("verdict", "verdict"))
        columns["verdict"] = "Verdict"
    layers = [rule(none), *(rule(m, dashed=True) for m in margin)]
    if any(row.get("low_adjusted") is not None for row in rows):
        columns |= {"low_adjusted": "Low adjusted", "high_adjusted": "High adjusted"}
        wide, thin = axis("low_adjusted", value), {"type": "rule", "strokeWidth": 1}
        layers.append(layer(thin, y=y, x=wide, x2={"field": "high_adjusted"}, **look))
    low, thick = axis("low", value, axis={"tickCount": 4}), {"type": "rule", "strokeWidth": 2.5, "strokeCap": "round"}
    layers.append(layer(thick, y=y, x=low, x2={"field": "high"}, tooltip=tip, **look))
    point = {"type": "point", "filled": True, "size": 85, "opacity": 1}
    layers.append(layer(point, y=y, x=axis("estimate", value, scale={"zero": False}), tooltip=tip, **look, **shape))
    legend = [(list(Verdict)[j], VERDICT_COLOURS[j]) for j in at]
    return figure(title, caption, rows, layers, columns=columns, height=height, legend=legend)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What surrounds the lines of a chart."""

    # x, y: what the axes measure.
    x: str
    y: str
    none: float | None = None  # a solid line across: no difference
    dashed: Sequence[float] = ()  # dashed lines across: a margin, a tolerance
    at: float | None = None  # a dashed upright line
    # x_log, y_log: logarithmic axes.
    x_log: bool = False
    y_log: bool = False
    x_values: Sequence[float] = ()  # where the axis has marks; chosen by the chart library by default
    points: bool = False  # mark each value


def lines(title: str, caption: str, rows: Sequence[Row], frame: Frame) -> Figure:
    """Draw one line per series, with a band where ``low`` and ``high`` are given.

    Parameters
    ----------
    title, caption : str
        What it shows, and how to read it.
    rows : sequence of mapping
        ``x``, ``y``, ``series``, and optionally ``low`` and ``high``.
    frame : Frame
        The axes and what else is drawn.

    Returns
    -------
    Figure

    Examples
    --------
    >>> rows = [{"x": 0.0, "y": 1.0, "series": "a"}, {"x": 1.0, "y": 2.0, "series": "a"}]
    >>> len(lines("t", "c", rows, Frame(x="time", y="value")).spec["layer"])
    1
    """
    x, y = frame.x, frame.y
    colour = colour_of("series", [row["series"] for row in rows])
    log = {"type": "log"}
    # Marks of a logarithmic axis are not evenly spaced: where there is no room for all, each is judged alone.
    alone = {"labelOverlap": "greedy"}
    marks: dict[str, Any] = {"values": list(frame.x_values)} if frame.x_values else {"tickCount": 6}
    if frame.x_log or frame.x_values:
        marks |= alone
    across = axis(
        "x", x, scale={"nice": False, **(log if frame.x_log else {"zero": False})}, axis={"grid": False, **marks}
    )
    up = log if frame.y_log else {"zero": False}
    banded = any(row.get("low") is not None for row in rows)
    layers: list[Mapping[str, Any]] = []
    if frame.none is not None:
        layers.append(rule(frame.none, "y"))
    layers += [rule(value, "y", dashed=True) for value in frame.dashed]
    if frame.at is not None:
        layers.append(rule(frame.at, "x", dashed=True))
    if banded:
        band, low = {"type": "area", "opacity": 0.16}, axis("low", y, scale=up)
        layers.append(layer(band, x=across, y=low, y2={"field": "high"}, color=colour))
    tip = [word("series", "series"), axis("x", x, format=".4~g"), axis("y", y, format=".4~g")]
    line = {"type": "line", "strokeWidth": 2, "point": {"size": 36, "filled": True} if frame.points else False}
    upright = axis("y", y, scale=up, **({"axis": alone} if frame.y_log else {}))
    layers.append(layer(line, x=across, y=upright, color=colour, tooltip=tip))
    columns = {"series": "Series", "x": x.capitalize(), "y": y.capitalize()}
    if banded:
        columns |= {"low": "Low", "high": "High"}
    legend = legend_of([row["series"] for row in rows])
    return figure(title, caption, rows, layers, columns=columns, legend=legend)


def histogram(
    title: str, caption: str, edges: Sequence[float], counts: Sequence[float], *, observed: float, x: str, y: str
) -> Figure:
    """Draw what chance alone gives, and where the data fell.

    Parameters
    ----------
    title, caption : str
        What it shows, and how to read it.
    edges, counts : sequence of float
        The bins.
    observed : float
        The value found.
    x, y : str
        What the axes measure.

    Returns
    -------
    Figure

    Examples
    --------
    >>> histogram("t", "c", [0.0, 1.0, 2.0], [3, 4], observed=1.5, x="statistic", y="shuffles").table.rows[0]
    (0.0, 1.0, 3.0)
    """
    rows = [
        {"low": number(a), "high": number(b), "count": number(n)}
        for a, b, n in zip(edges[:-1], edges[1:], counts, strict=True)
    ]
    layers = [
        layer(
            {"type": "bar", "color": "var(--inconclusive)", "opacity": 0.55, "binSpacing": 1},
            x=axis("low", x, bin={"binned": True}, axis={"grid": False}),
            x2={"field": "high"},
            y=axis("count", y, axis={"tickCount": 3}),
            tooltip=[axis(*named, format=".3~g") for named in (("low", "from"), ("high", "to"), ("count", y))],
        ),
        layer(
            {"type": "rule", "color": "var(--disparity)", "strokeWidth": 2.5},
            [{"at": number(observed), "name": "observed"}],
            x=axis("at", x),
            tooltip=[axis("at", "observed")],
        ),
    ]
    columns = {"low": "From", "high": "To", "count": y.capitalize()}
    return figure(title, caption, rows, layers, columns=columns, height=120)


def bars(
    title: str,
    caption: str,
    rows: Sequence[Row],
    *,
    value: str,
    label: str,
) -> Figure:
    """Draw one bar per label, coloured by series.

    Parameters
    ----------
    title, caption : str
        What it shows, and how to read it.
    rows : sequence of mapping
        ``label``, ``value``, ``series``.
    value, label : str
        What the axis measures, and the head of the first column.

    Returns
    -------
    Figure

    Examples
    --------
    >>> bars("t", "c", [{"label": "a", "value": 3, "series": "s"}], value="people", label="Group").spec["height"]
    26
    """
    rows, y, height = named_lines(rows)
    bar = layer(
        "bar",
        y=y,
        x=axis("value", value, axis={"tickCount": 5}),
        color=colour_of("series", [row["series"] for row in rows]),
        tooltip=[word("label", label.lower()), word("series", "series"), axis("value", value)],
    )
    columns = {"label": label, "series": "Series", "value": value.capitalize()}
    legend = legend_of([row["series"] for row in rows])
    return figure(title, caption, rows, [bar], columns=columns, height=height, legend=legend)


def dumbbells(title: str, caption: str, rows: Sequence[Row]) -> Figure:
    """Draw two values of each line, before and after, joined by a line.

    Parameters
    ----------
    title, caption : str
        What it shows, and how to read it.
    rows : sequence of mapping
        With ``label``, ``before`` and ``after``.

    Returns
    -------
    Figure

    Examples
    --------
    >>> len(dumbbells("t", "c", [{"label": "fnr", "before": 0.1, "after": 0.02}]).spec["layer"])
    4
    """
    rows, y, height = named_lines(rows, domain=False)
    tip = [word("label", "compared"), *(axis(key, key, format=".4f") for key in ("before", "after"))]
    x = "difference between groups"
    mark = {"type": "rule", "color": "var(--soft)", "strokeWidth": 1.5}
    layers = [rule(0.0), layer(mark, y=y, x=axis("before", x), x2={"field": "after"})]
    colours = {"before": "var(--inconclusive)", "after": "var(--equivalent)"}
    for key, colour in colours.items():
        point = {"type": "point", "filled": key == "after", "size": 80, "opacity": 1, "color": colour, "strokeWidth": 2}
        layers.append(layer(point, y=y, x=axis(key, x), tooltip=tip))
    return figure(
        title,
        caption,
        rows,
        layers,
        columns={"label": "Compared", "before": "Before", "after": "After"},
        height=max(60, height),
        legend=list(colours.items()),
    )
