"""Charts drawn ahead as SVG, and the library that draws them again in the reader's browser.

Both come from the `vl-convert-python` package at run time: no JavaScript of others is part of this one.
"""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
from functools import lru_cache
from typing import Any, NamedTuple
from xml.etree import ElementTree

from markupsafe import Markup

from evenhand.report.document import Figure
from evenhand.report.theme import CONFIG

_WIDTH = 560  # of a chart that is drawn ahead
_SVG = "http://www.w3.org/2000/svg"
_UNSEEN = ("class", "role", "pointer-events")


class Drawn(NamedTuple):
    """A chart's place in the page and its picture."""

    key: str
    svg: Markup


class Charts:
    """The charts of one page, in the order they are asked for.

    Examples
    --------
    >>> "charts" in Charts().json()
    True
    """

    def __init__(self) -> None:
        self._specs: dict[str, Any] = {}

    def add(self, figure: Figure) -> Drawn:
        """Draw a figure, and keep its specification for the browser.

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
        self._specs[key] = spec
        return Drawn(key, Markup(picture({**spec, "width": _WIDTH})))

    def json(self) -> Markup:
        """Return all specifications, safe inside a script element."""
        page = {"config": CONFIG, "charts": self._specs}
        text = json.dumps(page, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
        return Markup(text.replace("<", "\\u003c"))


def picture(spec: dict[str, Any]) -> str:
    """Draw a specification as SVG.

    Parameters
    ----------
    spec : dict
        Vega-Lite.

    Returns
    -------
    str

    Examples
    --------
    >>> picture({"data": {"values": [{"x": 1}]}, "mark": "point"})[:4]
    '<svg'
    """
    import vl_convert

    svg: str = vl_convert.vegalite_to_svg({"config": CONFIG, **spec})
    return _light(svg)


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


_BUNDLE = (
    "import sys, vl_convert as v; "
    "sys.stdout.buffer.write(v.javascript_bundle('window.vegaEmbed = vegaEmbed;').encode())"
)


@lru_cache(maxsize=1)
def prepare() -> subprocess.Popen[bytes]:
    """Begin to build the chart library in a process of its own, so that it is ready when the audit is.

    Building it takes seconds and holds Python's lock; a command calls this before it reads its file.

    Returns
    -------
    subprocess.Popen
        Its output is the library.
    """
    command = [sys.executable, "-c", _BUNDLE]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    atexit.register(process.kill)  # a command that ends early leaves nothing behind
    return process


@lru_cache(maxsize=1)
def library() -> str:
    """Return the chart library as one script, safe inside a script element.

    Returns
    -------
    str

    Raises
    ------
    RuntimeError
        When it cannot be built; the message is that of the chart library.

    Examples
    --------
    >>> "</script" in library().lower()
    False
    """
    made, errors = prepare().communicate()
    if not made:
        raise RuntimeError(f"The chart library cannot be built: {errors.decode(errors='replace').strip()}")
    return made.decode().replace("</script", "<\\/script").replace("<!--", "<\\!--")
