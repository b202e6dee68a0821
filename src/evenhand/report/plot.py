"""The report's charts as Altair charts, for notebooks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from evenhand.audits.margin import is_ratio, margin_ends
from evenhand.errors import UsageError, near_matches, optional_module
from evenhand.report.document import Figure, compared, shown
from evenhand.report.figures import forest, number
from evenhand.report.palette import THEMES, painted
from evenhand.report.sections import section_blocks
from evenhand.report.theme import CONFIG
from evenhand.results import AuditRun, Finding, Findings, printable

_WIDTH = 480
_MOST_LINES = 60  # of one measure


def plot(value: AuditRun | Findings, chart: str | None = None, *, theme: str = "light") -> Any:
    """Return an Altair chart of findings, or of a run's report.

    Parameters
    ----------
    value : AuditRun or Findings
        What was found.
    chart : str, optional
        The title of one of the report's charts, or its beginning; by default estimates with their intervals.
    theme : {"light", "dark"}
        For the background it will stand on.

    Returns
    -------
    altair.LayerChart or altair.VConcatChart

    Examples
    --------
    >>> import evenhand as eh
    >>> run = eh.audit(eh.datasets.planted(rows=400, rng=0), plan=eh.Plan(group={"metrics": ["fnr"]}), rng=0)
    >>> type(run["fnr"].plot()).__name__
    'LayerChart'
    """
    if theme not in THEMES:
        raise UsageError(f"`theme={theme!r}` is not known.{near_matches(str(theme), THEMES)}")
    altair = optional_module(
        "altair",
        "A plot needs Altair, which is not installed: pip install 'evenhand[plot]'. The report has its charts.",
    )
    if isinstance(value, AuditRun):
        figures = [_named(value, str(chart))]
    else:
        figures = _forests(value.findings)
        if not figures:
            raise UsageError("There is nothing to draw: no finding here has an interval. `to_frame()` has the numbers.")
    panels = [painted(_panel(figure), theme) for figure in figures]
    spec = panels[0] if len(panels) == 1 else {"vconcat": panels}
    return altair.Chart.from_dict({**spec, "config": painted(_config(), theme)})


def _forests(findings: Sequence[Finding]) -> list[Figure]:
    """Draw the findings of each measure that have an interval."""
    drawn = [f for f in findings if f.interval is not None]
    return [
        _forest(measure, [f for f in drawn if (f.audit, f.measure) == (audit, measure)][:_MOST_LINES])
        for audit, measure in dict.fromkeys((f.audit, f.measure) for f in drawn)
    ]


def _forest(measure: str, findings: Sequence[Finding]) -> Figure:
    ratio = is_ratio(measure)
    ends = {end for f in findings if f.margin is not None for end in margin_ends(measure, f.margin)}
    intervals = [f.interval for f in findings if f.interval is not None]
    drawn = [*ends, *(f.estimate for f in findings), *(end for i in intervals for end in (i.low, i.high))]
    finite = [value for value in drawn if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    room = 0.1 * (high - low)  # an interval without an end goes on to the edge
    rows = [
        {
            "label": printable(compared(f.groups)),
            "estimate": number(f.estimate),
            "low": number(max(interval.low, low - room)),
            "high": number(min(interval.high, high + room)),
            "verdict": shown(f.verdict),
        }
        for f, interval in zip(findings, intervals, strict=True)
    ]
    return forest(
        printable(f"{findings[0].audit}: {measure}"),
        "",
        rows,
        value="ratio" if ratio else "difference",
        none=1.0 if ratio else 0.0,
        margin=sorted(ends),
    )


def _named(run: AuditRun, title: str) -> Figure:
    """Return the chart of the report whose title is this one, or begins with it."""
    figures = [b for result in run.results for b in section_blocks(result) if isinstance(b, Figure)]
    exact = [figure for figure in figures if figure.title == title]
    begun = exact or [figure for figure in figures if figure.title.startswith(title)]
    if not begun:
        raise UsageError(f"The report has no chart `{title}`.{near_matches(title, [f.title for f in figures])}")
    return begun[0]


def _panel(figure: Figure) -> dict[str, Any]:
    spec = {key: value for key, value in figure.spec.items() if key != "autosize"}
    return {**spec, "width": _WIDTH, "title": printable(figure.title)}


def _config() -> dict[str, Any]:
    """Return the look of the report's charts, with legends, which the page draws by itself."""
    words = {"labelColor": "var(--ink)", "titleColor": "var(--soft)", "labelLimit": 320}
    title = {"color": "var(--ink)", "anchor": "start"}
    axis = {**CONFIG["axis"], "labelLimit": 320}
    return {**CONFIG, "axis": axis, "background": "var(--paper)", "legend": words, "title": title}
