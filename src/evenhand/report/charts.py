"""Charts drawn ahead as SVG, and the library that draws them again in the reader's browser.

Both come from the `vl-convert-python` package at run time: no JavaScript of others is part of this one.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple
from xml.etree import ElementTree

from markupsafe import Markup

from evenhand.report.document import Figure
from evenhand.report.drawing import DrawingError, artist
from evenhand.report.theme import CONFIG

_WIDTH = 560  # of a chart that is drawn ahead
_SVG = "http://www.w3.org/2000/svg"
_UNSEEN = ("class", "role", "pointer-events")


class Drawn(NamedTuple):
    """A chart's place in the page and its picture, or why there is none."""

    key: str
    svg: Markup
    problem: str = ""


class Charts:
    """The charts of one page, in the order they are asked for.

    Parameters
    ----------
    known : dict, optional
        Pictures by specification, filled as they are drawn: a page that is laid out again does not draw them again.

    Examples
    --------
    >>> "charts" in Charts().json()
    True
    """

    def __init__(self, known: dict[str, str] | None = None) -> None:
        self._specs: dict[str, Any] = {}
        self._known = {} if known is None else known
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
        name = json.dumps(spec, sort_keys=True)
        try:
            if name not in self._known:
                self._known[name] = picture({**spec, "width": _WIDTH})
            drawn = Drawn(key, Markup(self._known[name]))
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
    return _light(artist().draw({"config": CONFIG, **spec}))


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
