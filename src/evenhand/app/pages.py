"""Pages from templates. Every text in them is escaped: names and cells come from strangers."""

from __future__ import annotations

from importlib.metadata import version
from importlib.resources import files
from typing import Any

import jinja2
from starlette.responses import HTMLResponse, Response

from evenhand.app.safety import REPORT_HEADERS
from evenhand.report.document import shown
from evenhand.report.html import coded
from evenhand.results import printable


class Pages:
    """The templates of the app, with the address below which all its pages lie."""

    def __init__(self, base: str) -> None:
        self._environment = jinja2.Environment(
            loader=jinja2.FunctionLoader(part), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True,
            lstrip_blocks=True,
        )  # fmt: skip
        self._environment.globals.update(
            base=base, coded=lambda text: coded(printable(text)), shown=shown, version=version("evenhand")
        )
        self._environment.filters["printable"] = printable

    def page(self, name: str, *, status: int = 200, **content: Any) -> Response:
        """Fill in a template."""
        text = self._environment.get_template(f"{name}.html.jinja").render(**content)
        return HTMLResponse(text, status_code=status)

    def message(self, title: str, sentence: str, *, status: int) -> Response:
        """Make a page that says one thing."""
        return self.page("message", status=status, title=title, sentence=sentence)


def report_page(text: str) -> Response:
    """Answer with a report, which is shut off from all other pages."""
    return HTMLResponse(text, headers=REPORT_HEADERS)


def style() -> str:
    """Return the style of all pages: the report's, and what forms need beside it."""
    return files("evenhand.report").joinpath("page", "report.css").read_text(encoding="utf-8") + part("app.css")


def part(name: str) -> str:
    """Return a file of this room's folder `page`."""
    return files("evenhand.app").joinpath("page", name).read_text(encoding="utf-8")
