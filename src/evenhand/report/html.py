"""A document as one HTML file that works offline."""

from __future__ import annotations

import base64
import hashlib
import re
import warnings
from functools import cache
from importlib.metadata import version
from importlib.resources import files

import jinja2
from markupsafe import Markup, escape

from evenhand.errors import EvenhandWarning
from evenhand.report import words
from evenhand.report.charts import Charts
from evenhand.report.detail import Detail, shorten
from evenhand.report.document import Document, Section, Table, Text, compared, findings_table, shown
from evenhand.report.library import library
from evenhand.report.stills import DrawingError
from evenhand.results import Verdict

_LARGEST = 1_950_000  # bytes: a page that can be sent by mail
# Less and less is laid out until the page is small enough.
_DETAILS = (
    Detail(),
    Detail(evidence=60),
    Detail(evidence=20, figures=24),
    Detail(evidence=0, figures=12, rows=500),
    Detail(evidence=0, figures=4, rows=200),
    Detail(evidence=0, figures=0, rows=50),
)
_POLICY = "evenhand-content-security-policy"


def html_page(page: Document) -> str:
    """Lay a document out as one HTML page, with less and less of it until the page is small enough.

    Everything is inside: no request leaves the page, and its content security policy forbids any. Tables
    are readable without scripts; with them, charts answer to the pointer.
    """
    drawing = _script()
    for detail in _DETAILS:
        text, problems = _rendered(shorten(page, detail), drawing)
        if len(text.encode()) < _LARGEST:
            break
    if problems:
        charts = "1 chart was" if len(problems) == 1 else f"{len(problems)} charts were"
        warnings.warn(
            f"{charts} not drawn in the page: {'; '.join(dict.fromkeys(problems))}. The numbers are there.",
            EvenhandWarning,
            stacklevel=3,
        )
    return text


def _script() -> str:
    """Return the library that draws charts again in the browser, or nothing, with a warning."""
    try:
        return library()
    except DrawingError as error:
        warnings.warn(
            "The charts of the page are pictures that do not answer to the pointer, because the library that draws "
            f"them in the browser is missing: {error}.",
            EvenhandWarning,
            stacklevel=4,
        )
        return ""


def _rendered(page: Document, drawing: str) -> tuple[str, list[str]]:
    """Lay a document out, with the library that draws in the browser, and say why charts are missing."""
    template = _template()
    script, charts = _part("report.js"), Charts()
    text = template.render(
        page=page,
        charts=charts,
        verdicts=list(words.VERDICT_WORDS.items()),
        css=Markup(_part("report.css")),
        script=Markup(script),
        library=Markup(drawing),
        version=version("evenhand"),
        policy_mark=_POLICY,
    ).lstrip()
    return text.replace(_POLICY, _policy(drawing, script), 1), charts.problems


def _policy(*scripts: str) -> str:
    """Allow these scripts by their hash and forbid every request, form and frame."""
    hashes = " ".join(
        "'sha256-" + base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() + "'" for s in scripts
    )
    return f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    environment.globals.update(
        shown=shown,
        compared=compared,
        numeric=_numeric,
        findings_table=findings_table,
        evidence_of=_evidence_of,
        coded=coded,
        is_verdict=lambda value: isinstance(value, Verdict),
        is_text=lambda item: isinstance(item, Text),
        is_table=lambda item: isinstance(item, Table),
    )
    return environment.from_string(_part("report.html.jinja"))


def coded(text: str) -> Markup:
    """Escape a text and set what stands between backticks as code.

    Parameters
    ----------
    text : str
        Names in it come from strangers.

    Returns
    -------
    Markup

    Examples
    --------
    >>> coded("Column `<b>` is missing.")
    Markup('Column <code>&lt;b&gt;</code> is missing.')
    """
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def _evidence_of(section: Section) -> str:
    explained = sum(1 for entry in section.entries if entry.blocks)
    if explained < len(section.entries):
        return f"{explained} of {len(section.entries)} findings; the others are in findings.json"
    return f"{explained} finding{'s' if explained != 1 else ''}"


def _numeric(table: Table) -> list[bool]:
    """Say which columns stand to the right: those with numbers, and with nothing longer than one."""
    columns = [[row[j] for row in table.rows] for j in range(len(table.head))]
    return [
        any(isinstance(value, int | float) for value in column)
        and all(len(value) < 9 for value in column if isinstance(value, str))
        for column in columns
    ]


def _part(name: str) -> str:
    return files("evenhand.report").joinpath("page", name).read_text(encoding="utf-8")
