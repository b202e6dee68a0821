"""Charts drawn ahead as SVG, and the library that draws them again in the reader's browser.

Both come from the `vl-convert-python` package at run time: no JavaScript of others is part of this one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple
from xml.etree import ElementTree

from markupsafe import Markup

from evenhand.report.document import Figure
from evenhand.report.drawing import DrawingError, artist
from evenhand.report.theme import CONFIG

_WIDTH = 560  # of a chart that is drawn ahead
# About as many pixels is a character of a label wide.
_WIDTHS = {**dict.fromkeys("abcdeghknopqsuvxyz0123456789=_<>", 7), **dict.fromkeys("fijlrt -.,:;!'|()[]/", 4)}
_WIDEST = 12
_SVG = "http://www.w3.org/2000/svg"
_UNSEEN = ("class", "role", "pointer-events")


class Drawn(NamedTuple):
    """A chart's place in the page and its picture, or why there is none."""

    key: str
    svg: Markup
    problem: str = ""


class Charts:
    """The charts of one page, in the order they are asked for.

    Examples
    --------
    >>> "charts" in Charts().json()
    True
    """

    def __init__(self) -> None:
        self._specs: dict[str, Any] = {}
        self.problems: list[str] = []

    def add(self, figure: Figure) -> Drawn:
        """Draw a figure, and keep its specification for the browser; one that cannot be drawn is left out.

        Parameters
        ----------
        figure : Figure
            What to draw.

        Returns
        -------
        Drawn
        """
        key = f"c{len(self._specs) + 1}"
        spec = dict(figure.spec)
        try:
            drawn = Drawn(key, Markup(picture({**spec, "width": _WIDTH})))
        except (DrawingError, ElementTree.ParseError) as error:
            self.problems.append(str(error))
            return Drawn("", Markup(), str(error))
        self._specs[key] = spec
        return drawn

    def json(self) -> Markup:
        """Return all specifications, safe inside a script element."""
        page = {"config": CONFIG, "charts": self._specs}
        text = json.dumps(page, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
        return Markup(text.replace("<", "\\u003c"))


def picture(spec: dict[str, Any]) -> str:
    """Draw a Vega-Lite specification as SVG, or raise `DrawingError` where it cannot be drawn.

    Examples
    --------
    >>> picture({"data": {"values": [{"x": 1}]}, "mark": "point"})[:4]
    '<svg'
    """
    return _drawn(json.dumps(_still({"config": CONFIG, **spec})))


@lru_cache(maxsize=256)
def _drawn(text: str) -> str:
    """Draw what is written as JSON; a page that is laid out again does not draw its charts again."""
    return _light(artist().draw(json.loads(text)))


def _still(spec: dict[str, Any]) -> dict[str, Any]:
    """Leave out what costs time and cannot be seen in a still picture: tooltips, and a limit that no label reaches.

    To cut labels, the drawing library measures each of them several times, and measuring is most of its work.
    """
    still: dict[str, Any] = _without_tooltips(spec)
    axis = still["config"].get("axis", {})
    if all(_width(text) <= axis.get("labelLimit", 0) for text in _labels(still)):
        still["config"] = {**still["config"], "axis": {**axis, "labelLimit": 0}}
    return still


def _without_tooltips(part: Any) -> Any:
    if isinstance(part, dict):
        kept = {name: value for name, value in part.items() if name != "tooltip"}
        return {name: value if name == "data" else _without_tooltips(value) for name, value in kept.items()}
    return [_without_tooltips(value) for value in part] if isinstance(part, list) else part


def _labels(spec: dict[str, Any]) -> Iterator[str]:
    """Return the texts that stand at an axis."""
    parts = list(_parts(spec))
    channels = (part.get(name) for part in parts for name in ("x", "y"))
    fields = {channel["field"] for channel in channels if isinstance(channel, dict) and "field" in channel}
    for part in parts:
        for row in part.get("data", {}).get("values", ()):
            yield from (row[name] for name in fields & row.keys() if isinstance(row[name], str))


def _parts(part: Any) -> Iterator[dict[str, Any]]:
    """Return every mapping in a specification, without its rows."""
    if isinstance(part, dict):
        yield part
        part = [value for name, value in part.items() if name != "data"]
    if isinstance(part, list):
        for value in part:
            yield from _parts(value)


def _width(text: str) -> int:
    return sum(_WIDTHS.get(letter, _WIDEST) for letter in text)


def _light(svg: str) -> str:
    """Take away what a still picture does not need: a third of its size."""
    ElementTree.register_namespace("", _SVG)
    root = ElementTree.fromstring(svg)
    for parent in root.iter():
        for child in list(parent):
            if child.tag == f"{{{_SVG}}}path" and child.get("d", "") in ("", "M0,0h0v0h0Z"):
                parent.remove(child)
        for name in [n for n in parent.attrib if n in _UNSEEN or n.startswith("aria-")]:
            del parent.attrib[name]
    return ElementTree.tostring(root, encoding="unicode")


def library() -> str:
    """Return the chart library as one script, safe inside a script element.

    `DrawingError` is raised where it cannot be built.

    Examples
    --------
    >>> "</script" in library().lower()
    False
    """
    return artist().library().replace("</script", "<\\/script").replace("<!--", "<\\!--")
