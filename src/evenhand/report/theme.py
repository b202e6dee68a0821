"""The look of all charts: fonts, axes, and colours that are variables of the page.

A chart so follows light, dark and print without being drawn anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evenhand.report.document import shown
from evenhand.results import Verdict

VERDICTS = [shown(v) for v in Verdict]
VERDICT_COLOURS = ["var(--disparity)", "var(--equivalent)", "var(--inconclusive)", "var(--not-computable)"]
VERDICT_SHAPES = ["circle", "square", "diamond", "cross"]
SERIES = [f"var(--series-{j})" for j in range(1, 7)]

_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif"
CONFIG: dict[str, Any] = {
    "aria": False,
    "background": "transparent",
    "font": _FONT,
    "view": {"stroke": None},
    "axis": {
        "labelColor": "var(--soft)",
        "titleColor": "var(--soft)",
        "domainColor": "var(--line)",
        "tickColor": "var(--line)",
        "gridColor": "var(--line)",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelLimit": 170,
        "labelOverlap": "parity",
        "labelSeparation": 5,
        "titlePadding": 8,
    },
    "axisY": {"titleAnchor": "end", "titleAngle": 0, "titleAlign": "left", "titleY": -10, "titleX": -30},
    "legend": {"disable": True},
}


def colour_of(field: str, names: Sequence[str]) -> dict[str, Any]:
    """Return a colour channel whose order is the order of the names.

    Parameters
    ----------
    field : str
        A key of the rows.
    names : sequence of str
        The series.

    Returns
    -------
    dict

    Examples
    --------
    >>> colour_of("s", ["a"])["scale"]["range"]
    ['var(--series-1)']
    """
    names = list(dict.fromkeys(names))
    return {
        "field": field,
        "type": "nominal",
        "scale": {"domain": names, "range": [SERIES[j % len(SERIES)] for j in range(len(names))]},
    }


def legend_of(names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the legend of some series; a single one needs none.

    Parameters
    ----------
    names : sequence of str
        The series, repeated or not.

    Returns
    -------
    list of (str, str)

    Examples
    --------
    >>> legend_of(["a", "b", "a"])
    [('a', 'var(--series-1)'), ('b', 'var(--series-2)')]
    """
    names = list(dict.fromkeys(names))
    return [(name, SERIES[j % len(SERIES)]) for j, name in enumerate(names)] if len(names) > 1 else []
