"""The charts of one page: their still pictures, and their data for the library that draws them in the browser."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from markupsafe import Markup

from evenhand.report.document import Figure
from evenhand.report.stills import DrawingError, picture
from evenhand.report.theme import CONFIG

_WIDTH = 560  # of a chart that is drawn ahead


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
        try:
            drawn = Drawn(key, Markup(picture(figure.spec, _WIDTH)))
        except DrawingError as error:
            self.problems.append(str(error))
            return Drawn("", Markup(), str(error))
        self._specs[key] = dict(figure.spec)
        return drawn

    def json(self) -> Markup:
        """Return all specifications, safe inside a script element."""
        page = {"config": CONFIG, "charts": self._specs}
        text = json.dumps(page, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
        return Markup(text.replace("<", "\\u003c"))
