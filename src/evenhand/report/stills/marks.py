"""Each kind of mark as SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import escape

from evenhand.report.stills.chart import Layer, Row
from evenhand.report.stills.scales import Linear, Places, Scale

_THINNEST = 0.25  # pixels of a bar
_BAR = 0.9  # of the place of a name is filled by its bar
_FAINT = 0.7  # points, where nothing is said
_POINT = 30.0  # pixels of a point's square, where nothing is said


@dataclass(frozen=True, slots=True)
class Plot:
    """The inside of the axes."""

    width: float
    height: float
    scales: Mapping[str, Scale]

    def at(self, layer: Layer, channel: str, row: Row) -> float | None:
        """Return a row's place along x or y, or None where it has none."""
        said = layer.encoding.get(channel)
        if said is None:
            return None
        if "value" in said:
            return float(said["value"])
        value = row.get(said["field"])
        return None if value is None else self.scales[channel[0]].at(value)


def drawn(layer: Layer, plot: Plot) -> str:
    """Draw the marks of a layer."""
    return "".join(_DRAW[layer.kind](layer, plot))


def n(value: float) -> str:
    """Write a place with a hundredth of a pixel.

    Examples
    --------
    >>> n(12.0), n(0.126), n(-0.001)
    ('12', '0.13', '0')
    """
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _named(layer: Layer, channel: str, row: Row, otherwise: Any) -> Any:
    """Return what a channel says of a row: a colour, a shape, how opaque."""
    said = layer.encoding.get(channel)
    if said is None:
        return otherwise
    if "value" in said:
        return said["value"]
    value = row.get(said["field"])
    scale = said.get("scale")
    return value if scale is None else scale["range"][scale["domain"].index(value) % len(scale["range"])]


def _colour(layer: Layer, row: Row) -> str:
    return str(escape(_named(layer, "color", row, layer.mark.get("color", "var(--series-1)"))))


def _opacity(layer: Layer, row: Row, otherwise: float = 1.0) -> str:
    value = float(_named(layer, "opacity", row, layer.mark.get("opacity", otherwise)))
    return "" if value == 1 else f' opacity="{n(value)}"'


def _stroke(layer: Layer, row: Row) -> str:
    dash = layer.mark.get("strokeDash")
    more = f' stroke-dasharray="{",".join(n(d) for d in dash)}"' if dash else ""
    more += ' stroke-linecap="round"' if layer.mark.get("strokeCap") == "round" else ""
    return f'stroke="{_colour(layer, row)}" stroke-width="{n(layer.mark.get("strokeWidth", 1))}"{more}'


def _rules(layer: Layer, plot: Plot) -> Iterator[str]:
    for row in layer.rows:
        places = []
        for channel, end in (("x", plot.width), ("y", plot.height)):
            if channel not in layer.encoding:
                places.append((0.0, end))
                continue
            low = plot.at(layer, channel, row)
            high = plot.at(layer, f"{channel}2", row) if f"{channel}2" in layer.encoding else low
            if low is None or high is None:
                break
            if layer.mark.get("clip"):
                low, high = (min(max(value, 0.0), end) for value in (low, high))
            places.append((low, high))
        else:
            (x1, x2), (y1, y2) = places
            yield f'<path d="M{n(x1)},{n(y1)}L{n(x2)},{n(y2)}" {_stroke(layer, row)}{_opacity(layer, row)}/>'


def _points(layer: Layer, plot: Plot) -> Iterator[str]:
    for row in layer.rows:
        x, y = plot.at(layer, "x", row), plot.at(layer, "y", row)
        if x is None or y is None:
            continue
        if layer.mark.get("clip") and not (0 <= x <= plot.width and 0 <= y <= plot.height):
            continue
        colour = _colour(layer, row)
        outline = f'stroke="{colour}" stroke-width="{n(layer.mark.get("strokeWidth", 2))}"'
        look = f'fill="{colour}"' if layer.mark.get("filled") else outline
        shape = symbol(str(_named(layer, "shape", row, "circle")), float(layer.mark.get("size", _POINT)), x, y)
        yield f'<path d="{shape}" {look}{_opacity(layer, row, _FAINT)}/>'


def symbol(shape: str, size: float, x: float, y: float) -> str:
    """Return the outline of a point, in a square of so many pixels.

    Examples
    --------
    >>> symbol("square", 4.0, 10.0, 10.0)
    'M9,9h2v2h-2Z'
    """
    r = math.sqrt(size) / 2
    if shape == "square":
        return f"M{n(x - r)},{n(y - r)}h{n(2 * r)}v{n(2 * r)}h{n(-2 * r)}Z"
    if shape == "diamond":
        return f"M{n(x - r)},{n(y)}l{n(r)},{n(-r)}l{n(r)},{n(r)}l{n(-r)},{n(r)}Z"
    if shape == "cross":
        s = r / 2.5
        wide, arm = n(2 * s), n(r - s)
        right, left = f"h{arm}v{wide}h-{arm}", f"h-{arm}v-{wide}h{arm}"
        return f"M{n(x - s)},{n(y - r)}h{wide}v{arm}{right}v{arm}h-{wide}v-{arm}{left}Z"
    if shape != "circle":
        raise ValueError(f"There is no point of the shape {shape!r}.")
    return f"M{n(x + r)},{n(y)}a{n(r)},{n(r)},0,1,1,{n(-2 * r)},0a{n(r)},{n(r)},0,1,1,{n(2 * r)},0"


def _series(layer: Layer, plot: Plot) -> Iterator[list[Row]]:
    """Return the rows of each colour, in the order of x where x is a number."""
    field = layer.encoding.get("color", {}).get("field")
    parts: dict[Any, list[Row]] = {}
    for row in layer.rows:
        parts.setdefault(row.get(field) if field else None, []).append(row)
    x = layer.encoding["x"]["field"]
    for rows in parts.values():
        yield rows if isinstance(plot.scales["x"], Places) else sorted(rows, key=lambda row: (row[x] is None, row[x]))


def _pieces(layer: Layer, plot: Plot, rows: Sequence[Row], channels: Sequence[str]) -> Iterator[list[list[float]]]:
    """Return the places of rows, in pieces where one is missing."""
    piece: list[list[float]] = []
    for row in rows:
        places = [plot.at(layer, channel, row) for channel in channels]
        if any(place is None for place in places):
            if piece:
                yield piece
            piece = []
        else:
            piece.append([float(place) for place in places if place is not None])
    if piece:
        yield piece


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{n(x)},{n(y)}" for x, y in points)


def _lines(layer: Layer, plot: Plot) -> Iterator[str]:
    for rows in _series(layer, plot):
        pieces = list(_pieces(layer, plot, rows, ("x", "y")))
        outline = "".join(_path([(x, y) for x, y in piece]) for piece in pieces)
        if outline:
            width = {"strokeWidth": 2, **layer.mark}
            yield f'<path d="{outline}" {_stroke(layer._replace(mark=width), rows[0])}{_opacity(layer, rows[0])}/>'
        dots = layer.mark.get("point")
        if dots:
            colour = {"color": layer.mark["color"]} if "color" in layer.mark else {}
            look = {"type": "point", "filled": True, "opacity": 1, **colour}
            look |= dots if isinstance(dots, Mapping) else {}
            yield from _points(Layer(look, layer.encoding, rows), plot)


def _areas(layer: Layer, plot: Plot) -> Iterator[str]:
    for rows in _series(layer, plot):
        pieces = list(_pieces(layer, plot, rows, ("x", "y", "y2")))
        outline = "".join(
            _path([*((x, y) for x, y, _ in piece), *((x, y2) for x, _, y2 in reversed(piece))]) + "Z"
            for piece in pieces
        )
        if outline:
            yield f'<path d="{outline}" fill="{_colour(layer, rows[0])}"{_opacity(layer, rows[0])}/>'


def _bars(layer: Layer, plot: Plot) -> Iterator[str]:
    for row in layer.rows:
        spans = [_bar_span(layer, plot, channel, row) for channel in "xy"]
        if None not in spans:
            (left, right), (top, bottom) = (span for span in spans if span is not None)
            yield _box(left, top, right, bottom, layer, row)


def _bar_span(layer: Layer, plot: Plot, channel: str, row: Row) -> tuple[float, float] | None:
    scale, place = plot.scales[channel], plot.at(layer, channel, row)
    if place is None:
        return None
    if isinstance(scale, Places):
        half = _BAR * abs(scale.step) / 2
        return place - half, place + half
    other = plot.at(layer, f"{channel}2", row)
    if f"{channel}2" in layer.encoding:
        if other is None:
            return None
        low, high = min(place, other), max(place, other)
        gap = layer.mark.get("binSpacing", 0) / 2 if "bin" in layer.encoding[channel] else 0.0
        return (low + gap, max(high - gap, low + gap + _THINNEST)) if gap else (low, high)
    zero = scale.at(0.0) if isinstance(scale, Linear) else scale.start
    return min(place, zero), max(place, zero)


def _boxes(layer: Layer, plot: Plot) -> Iterator[str]:
    for row in layer.rows:
        places = [plot.at(layer, channel, row) for channel in ("x", "y", "x2", "y2")]
        x, y, x2, y2 = (place for place in places if place is not None)
        yield _box(min(x, x2), min(y, y2), max(x, x2), max(y, y2), layer, row)


def _box(left: float, top: float, right: float, bottom: float, layer: Layer, row: Row) -> str:
    outline = f"M{n(left)},{n(top)}h{n(right - left)}v{n(bottom - top)}h{n(left - right)}Z"
    return f'<path d="{outline}" fill="{_colour(layer, row)}"{_opacity(layer, row)}/>'


def _texts(layer: Layer, plot: Plot) -> Iterator[str]:
    size, height = float(layer.mark["fontSize"]), float(layer.mark["lineHeight"])
    halo = layer.mark.get("stroke")
    look = f' stroke="{escape(halo)}" stroke-width="{n(layer.mark["strokeWidth"])}"' if halo else ""
    for row in layer.rows:
        x, y = plot.at(layer, "x", row), plot.at(layer, "y", row)
        if x is None or y is None:
            continue
        for j, line in enumerate(str(row[layer.encoding["text"]["field"]]).split("\n")):
            place = f'x="{n(x)}" y="{n(y + 0.79 * size + j * height)}"'
            yield f'<text {place} fill="{_colour(layer, row)}"{look}>{escape(line)}</text>'


_DRAW: dict[str, Callable[[Layer, Plot], Iterator[str]]] = {
    "rule": _rules,
    "point": _points,
    "line": _lines,
    "area": _areas,
    "bar": _bars,
    "rect": _boxes,
    "text": _texts,
}
