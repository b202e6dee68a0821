"""A chart's layers, read and checked, and the scales that they share."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from evenhand.report.stills.scales import Linear, Log, Places, Scale, rounded_domain

Row = Mapping[str, Any]

# The part of the grammar that is drawn; `tooltip` is for pointers, `autosize` and `config` are those of the page.
_CHART = {"data", "height", "width", "layer", "autosize"}
_MARK = {
    "type", "color", "opacity", "strokeWidth", "strokeDash", "strokeCap", "filled", "size", "point", "binSpacing",
    "align", "baseline", "lineBreak", "lineHeight", "fontSize", "stroke", "clip",
}  # fmt: skip
_CHANNELS = {"x", "y", "x2", "y2", "color", "shape", "opacity", "text", "tooltip"}
_SCALE = {"zero", "nice", "type", "domain", "range"}
_AXIS = {
    "grid", "tickCount", "values", "labelOverlap", "labelExpr", "labelLimit", "labelLineHeight", "labelAngle", "ticks",
    "domain", "format", "tickMinStep",
}  # fmt: skip
_MARKS = {"rule", "point", "line", "area", "bar", "rect", "text"}


class DrawingError(RuntimeError):
    """A chart, or the library that draws it again in a browser, could not be made."""


class Layer(NamedTuple):
    """Marks of one kind."""

    mark: Mapping[str, Any]
    encoding: Mapping[str, Mapping[str, Any]]
    rows: Sequence[Row]

    @property
    def kind(self) -> str:
        """What is drawn for each row."""
        return str(self.mark["type"])


class Side(NamedTuple):
    """What the layers say about one axis."""

    title: str
    settings: Mapping[str, Any]  # of the axis; the first that says something is heard
    drawn: bool
    quantitative: bool
    binned: bool
    log: bool
    domain: tuple[Any, ...]  # the ends, or all names

    def scale(self, start: float, end: float) -> Scale:
        """Return the scale between two places."""
        if not self.quantitative:
            return Places(self.domain, start, end)
        low, high = self.domain
        return Log(low, high, start, end) if self.log else Linear(low, high, start, end)


def layers_of(spec: Mapping[str, Any]) -> list[Layer]:
    """Read a chart; `DrawingError` says what in it is not drawn here."""
    try:
        json.dumps(spec, allow_nan=False)
    except ValueError:
        raise DrawingError("a value in it is not a finite number") from None
    _only("a chart", spec, _CHART)
    return [_layer(part, spec.get("data", {}).get("values", ())) for part in spec["layer"]]


def _layer(part: Mapping[str, Any], rows: Sequence[Row]) -> Layer:
    mark = {"type": part["mark"]} if isinstance(part["mark"], str) else part["mark"]
    _only("a layer", part, {"data", "mark", "encoding"})
    _only("a mark", mark, _MARK)
    _only("the marks", [mark["type"]], _MARKS)
    _only("an encoding", part["encoding"], _CHANNELS)
    for channel in part["encoding"].values():
        if isinstance(channel, Mapping):
            _only("a scale", channel.get("scale") or (), _SCALE)
            _only("an axis", channel.get("axis") or (), _AXIS)
    layer = Layer(mark, part["encoding"], part.get("data", {}).get("values", rows))
    return _stacked(layer) if layer.kind == "bar" else layer


def _only(where: str, keys: Any, known: set[str]) -> None:
    unknown = sorted(set(keys) - known)
    if unknown:
        raise DrawingError(f"still pictures do not know `{unknown[0]}` in {where}")


def _stacked(layer: Layer) -> Layer:
    """Set the bars of one name one behind the other, from 0 on."""
    if {"x2", "y2"} & layer.encoding.keys():  # from one value to another already
        return layer
    along, across = ("x", "y") if layer.encoding["x"]["type"] == "quantitative" else ("y", "x")
    field, name = layer.encoding[along]["field"], layer.encoding[across]["field"]
    series = str(layer.encoding.get("color", {}).get("field"))
    ends: dict[Any, float] = {}
    rows = []
    for row in sorted(layer.rows, key=lambda row: str(row.get(series)), reverse=along == "y"):
        start = ends.get(row[name], 0.0)
        ends[row[name]] = start + (row[field] or 0.0)
        rows.append({**row, "bar_start": start, "bar_end": ends[row[name]]})
    channels = {along: {**layer.encoding[along], "field": "bar_end"}, f"{along}2": {"field": "bar_start"}}
    order = list(dict.fromkeys(row[name] for row in layer.rows))
    rows.sort(key=lambda row: order.index(row[name]))
    return Layer(layer.mark, {**layer.encoding, **channels}, rows)


def side_of(layers: Sequence[Layer], channel: str) -> Side | None:
    """Return what the layers say about an axis, or None where nothing is placed along it."""
    placed = [layer for layer in layers if "field" in layer.encoding.get(channel, {})]
    if not placed:
        return None
    said = [layer.encoding[channel] for layer in placed]
    settings: dict[str, Any] = {}
    for one in said:
        settings = {**(one.get("axis") or {}), **settings}
    title = ", ".join(dict.fromkeys(str(one["title"]) for one in said if one.get("title")))
    quantitative = said[0]["type"] == "quantitative"
    scales = [one.get("scale") or {} for one in said]
    log = any(scale.get("type") == "log" for scale in scales)
    values = list(_values(placed, channel))
    domain: tuple[Any, ...] = tuple(dict.fromkeys(str(value) for value in values))
    if quantitative:
        domain = _ends(placed, channel, scales, [float(value) for value in values], log)
    return Side(
        title=title,
        settings=settings,
        drawn=all(one.get("axis", {}) is not None for one in said),
        quantitative=quantitative,
        binned=any("bin" in one for one in said),
        log=log,
        domain=domain,
    )


def _values(layers: Sequence[Layer], channel: str) -> Iterator[Any]:
    for layer in layers:
        fields = [layer.encoding[c]["field"] for c in (channel, f"{channel}2") if c in layer.encoding]
        for row in layer.rows:
            yield from (row[field] for field in fields if row.get(field) is not None)


def _ends(
    layers: Sequence[Layer], channel: str, scales: Sequence[Mapping[str, Any]], values: Sequence[float], log: bool
) -> tuple[float, float]:
    """Return the ends of a scale of numbers: those that are said, or those of the values, with 0 and rounded."""
    fixed = [scale["domain"] for scale in scales if "domain" in scale]
    if fixed:
        return float(fixed[0][0]), float(fixed[0][-1])
    low, high = min(values, default=0.0), max(values, default=1.0)
    zero = next((bool(s["zero"]) for s in scales if "zero" in s), _from_zero(layers[0], channel))
    if zero and not log:
        low, high = min(low, 0.0), max(high, 0.0)
    binned = all("bin" in layer.encoding[channel] for layer in layers)
    nice = next((bool(s["nice"]) for s in scales if "nice" in s), not binned)
    return rounded_domain(low, high, log) if nice else (low, high)


def _from_zero(layer: Layer, channel: str) -> bool:
    """Whether a scale holds 0 when nothing is said about it."""
    return "bin" not in layer.encoding[channel] and not (layer.kind in ("line", "area") and channel == "x")
