"""A whole chart as SVG: its axes, its marks, and the room that they need."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import escape

from evenhand.report.stills.chart import DrawingError, Side, layers_of, side_of
from evenhand.report.stills.letters import cut_to, width_of
from evenhand.report.stills.marks import Plot, drawn, n
from evenhand.report.stills.scales import MANY, Log, Places, Scale, kept_apart, written
from evenhand.report.theme import CONFIG

__all__ = ["DrawingError", "picture"]

_PAD = 5  # around everything
_TICK, _GAP = 5, 2  # pixels of a tick, and between it and its label
_LINE = 14  # from one line of a label to the next
_TITLE_ROOM = 23  # above the plot for the title of the upright axis
_PER_TICK = 40  # pixels of an axis for each tick, where their number is not said
_AXIS = CONFIG["axis"]


class Tick(NamedTuple):
    """A tick and its label, in lines."""

    place: float
    lines: tuple[str, ...]

    @property
    def width(self) -> float:
        """About how wide the label is."""
        return max(map(width_of, self.lines), default=0.0)


def picture(spec: Mapping[str, Any], width: int) -> str:
    """Draw a chart as SVG of a width, or raise `DrawingError` where it cannot be drawn.

    Parameters
    ----------
    spec : mapping
        Vega-Lite data, of the part that this package uses.
    width : int
        Of the whole picture; the height follows from the chart's.

    Returns
    -------
    str

    Examples
    --------
    >>> axis = {"field": "x", "type": "quantitative", "title": "time"}
    >>> layer = {"mark": "point", "encoding": {"x": axis, "y": {**axis, "field": "y"}}}
    >>> picture({"data": {"values": [{"x": 1, "y": 2}]}, "height": 100, "layer": [layer]}, 400)[:4]
    '<svg'
    """
    layers = layers_of(spec)
    sides = {channel: side for channel in "xy" if (side := side_of(layers, channel)) is not None}
    height = float(spec["height"])
    below, beside = sides.get("x"), sides.get("y")
    left, above = float(_PAD), 7.0
    scales: dict[str, Scale] = {}
    if beside is not None:
        scales["y"] = beside.scale(*((height, 0.0) if beside.quantitative else (0.0, height)))
        if beside.drawn:
            left += max(_room(beside) + max((t.width for t in _ticks(beside, scales["y"], height)), default=0), 0)
            if beside.title:
                left, above = max(left, _PAD + -CONFIG["axisY"]["titleX"]), _PAD + _TITLE_ROOM
    inner, bottom = _fitted(below, float(width) - math.ceil(left) - _PAD)
    left = math.ceil(left)
    if below is not None:
        scales["x"] = below.scale(0.0, inner)
    plot = Plot(inner, height, scales)
    whole = math.ceil(above + height + bottom)
    axes = _across(below, plot) if below is not None and below.drawn else ""
    axes = (_upright(beside, plot) if beside is not None and beside.drawn else "") + axes
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{whole}" viewBox="0 0 {width} {whole}" '
        f'font-family="{escape(CONFIG["font"])}" font-size="{_AXIS["labelFontSize"]}">'
        f'<g fill="none" transform="translate({n(left)},{n(above)})">{axes}'
        f"{''.join(drawn(layer, plot) for layer in layers)}</g></svg>"
    )


def _fitted(side: Side | None, most: float) -> tuple[float, float]:
    """Return the width of the plot, so that the last label has room, and the room below it."""
    if side is None or not side.drawn:
        return most, _PAD
    ticks = _ticks(side, side.scale(0.0, most), most)
    over = 0.0
    if not _turned(side):
        over = max((t.place + t.width / 2 - most for t in ticks if not _flush(side, t, most)), default=0.0)
    labels = max((t.width for t in ticks), default=0.0) + _GAP if _turned(side) else 12.0
    title = _AXIS["titlePadding"] + 12 if side.title else 0
    return most - max(over, 0.0), _TICK + _GAP + labels + title + _PAD


def _turned(side: Side) -> bool:
    """Whether labels below stand upright: names do, where nothing is said."""
    return not side.quantitative and side.settings.get("labelAngle") != 0


def _flush(side: Side, tick: Tick, end: float) -> bool:
    """Whether a label at the end of an axis of numbers stays inside it."""
    return side.quantitative and (abs(tick.place) < 1 or abs(tick.place - end) < 1)


def _room(side: Side) -> float:
    return _GAP + (_TICK if side.settings.get("ticks", True) else 0)


def _ticks(side: Side, scale: Scale, size: float) -> list[Tick]:
    """Return the ticks of an axis, with their labels where there is room for them."""
    settings = side.settings
    limit = float(settings.get("labelLimit", _AXIS["labelLimit"]))
    if isinstance(scale, Places):
        lines = [name.split("\n") if "labelExpr" in settings else [name] for name in scale.names]
        return [
            Tick(scale.at(name), tuple(cut_to(line, limit) for line in own))
            for name, own in zip(scale.names, lines, strict=True)
        ]
    low, high = sorted(side.domain)
    count = settings.get("tickCount", MANY if side.log else math.ceil(size / _PER_TICK))
    if "tickMinStep" in settings:
        count = min(count, math.floor((high - low) / settings["tickMinStep"]) + 1)
    values = [v for v in settings["values"] if low <= v <= high] if "values" in settings else scale.ticks(count)
    return [Tick(scale.at(value), (_label(scale, value, count, settings),)) for value in values]


def _label(scale: Scale, value: float, count: float, settings: Mapping[str, Any]) -> str:
    if "format" in settings:
        return written(value, settings["format"])
    assert not isinstance(scale, Places)
    if isinstance(scale, Log) and "values" in settings:
        return Log(value, value * 10, scale.start, scale.end).label(value, count)  # none is left out
    return scale.label(value, count)


def _shown(ticks: Sequence[Tick], spans: Sequence[tuple[float, float]], side: Side) -> list[bool]:
    """Say which labels are written, so that none touches another."""
    how = side.settings.get("labelOverlap", _AXIS["labelOverlap"])
    there = [any(tick.lines) for tick in ticks]
    if how is False:
        return there
    inside = [span for span, is_there in zip(spans, there, strict=True) if is_there]
    kept = iter(kept_apart(inside, "greedy" if how == "greedy" else "parity", _AXIS["labelSeparation"]))
    return [is_there and next(kept) for is_there in there]


def _text(x: float, y: float, lines: Sequence[str], anchor: str, more: str = "") -> str:
    words = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return "".join(
        f'<text x="{n(x)}" y="{n(y + j * _LINE)}"{words}{more}>{escape(line)}</text>' for j, line in enumerate(lines)
    )


def _framed(side: Side, grid: str, ticks: str, line: str, texts: str) -> str:
    """Put the parts of an axis together: a grid for numbers, ticks and a line where they are not forbidden."""
    settings = side.settings
    has_grid = settings.get("grid", side.quantitative and not side.binned)
    strokes = (grid if has_grid else "") + (ticks if settings.get("ticks", True) else "")
    strokes += line if settings.get("domain", True) else ""
    drawn_lines = f'<path d="{strokes}" stroke="{_AXIS["gridColor"]}"/>' if strokes else ""
    return f'{drawn_lines}<g fill="{_AXIS["labelColor"]}">{texts}</g>'


def _across(side: Side, plot: Plot) -> str:
    """Draw the axis below."""
    ticks = _ticks(side, plot.scales["x"], plot.width)
    at = [f"M{n(round(t.place) + 0.5)},{n(plot.height + 0.5)}" for t in ticks]
    y = plot.height + _TICK + _GAP + 9.5
    texts, deep = [], 12.0
    if _turned(side):
        shown = _shown(ticks, [(t.place - 6, t.place + 6) for t in ticks], side)
        deep = max((t.width for t in ticks), default=0.0) + _GAP
        for tick in (t for t, is_shown in zip(ticks, shown, strict=True) if is_shown):
            x, top = tick.place + 4.5, plot.height + _TICK + _GAP
            texts.append(_text(x, top, tick.lines, "end", f' transform="rotate(-90,{n(x)},{n(top)})"'))
    else:
        placed = []
        for tick in ticks:
            anchor = "middle"
            if _flush(side, tick, plot.width):
                anchor = "start" if tick.place < 1 else "end"
            begin = tick.place - tick.width * {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor]
            placed.append((begin, begin + tick.width, anchor))
        shown = _shown(ticks, [(low, high) for low, high, _ in placed], side)
        for tick, (_, _, anchor), is_shown in zip(ticks, placed, shown, strict=True):
            texts += [_text(tick.place + 0.5, y, tick.lines, anchor)] if is_shown else []
    if side.title:
        below = plot.height + _TICK + _GAP + deep + _AXIS["titlePadding"] + 9
        texts.append(_text(plot.width / 2, below, [side.title], "middle"))
    line = f"M0.5,{n(plot.height + 0.5)}h{n(plot.width)}"
    grid = "".join(f"{place}v{n(-plot.height)}" for place in at)
    return _framed(side, grid, "".join(f"{place}v{_TICK}" for place in at), line, "".join(texts))


def _upright(side: Side, plot: Plot) -> str:
    """Draw the axis at the left."""
    ticks = _ticks(side, plot.scales["y"], plot.height)
    at = [f"M0.5,{n(round(t.place) + 0.5)}" for t in ticks]
    spans = [(-t.place - 6, -t.place + 6) for t in ticks]
    if not side.quantitative:
        spans = [(t.place - 6, t.place + 6) for t in ticks]
    texts = []
    for tick, is_shown in zip(ticks, _shown(ticks, spans, side), strict=True):
        first = tick.place + 4 - (len(tick.lines) - 1) * _LINE / 2
        texts += [_text(0.5 - _room(side), first, tick.lines, "end")] if is_shown else []
    if side.title:
        texts.append(_text(CONFIG["axisY"]["titleX"], CONFIG["axisY"]["titleY"], [side.title], "start"))
    grid = "".join(f"{place}h{n(plot.width)}" for place in at)
    line = f"M0.5,0.5v{n(plot.height)}"
    return _framed(side, grid, "".join(f"{place}h{-_TICK}" for place in at), line, "".join(texts))
