"""Names beside the lines of a chart: in full, broken into lines short enough for a narrow screen."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

_LETTERS = 24  # of a name in one line: less than half of a narrow screen
_MOST_LINES = 4  # of one name
_WIDEST = 230  # pixels of a line: letters as wide as they are high, and no more
_LINE, _ROOM, _LEAST = 14, 12, 26  # pixels: of a line, between names, of a name


def in_lines(name: str, letters: int) -> list[str]:
    """Break a name into lines; what does not fit into four ends in dots.

    Examples
    --------
    >>> in_lines("race=Asian-Pac-Islander, outcome 1", 24)
    ['race=Asian-Pac-Islander,', 'outcome 1']
    """
    return textwrap.wrap(name, letters, max_lines=_MOST_LINES, placeholder="…", break_on_hyphens=False) or [""]


def named_lines(rows: Sequence[Mapping[str, Any]], **axis: Any) -> tuple[list[dict[str, Any]], dict[str, Any], int]:
    r"""Return rows with their ``label`` broken into lines, the channel that shows it, and the height of the plot.

    Parameters
    ----------
    rows : sequence of mapping
        With ``label``; equal labels share a line of the chart.
    **axis
        Further properties of the axis.

    Examples
    --------
    >>> rows, channel, height = named_lines([{"label": "a"}, {"label": "race=Asian-Pac-Islander, outcome 1"}])
    >>> rows[1]["shown_label"], channel["field"], height
    ('race=Asian-Pac-Islander,\noutcome 1', 'shown_label', 80)
    """
    shown: dict[str, str] = {}
    for label in dict.fromkeys(str(row["label"]) for row in rows):
        broken = "\n".join(in_lines(label, _LETTERS))
        same = sum(broken == other.partition("\n(")[0] for other in shown.values())
        shown[label] = f"{broken}\n({same + 1})" if same else broken  # long names that begin alike stay apart
    most = max((text.count("\n") + 1 for text in shown.values()), default=1)
    # Names are values, which the expression splits: none of them is part of it.
    lines = {
        "labelExpr": "split(datum.label, '\\n')",
        "labelLimit": _WIDEST,
        "labelLineHeight": _LINE,
        "labelOverlap": False,
    }
    channel = {"field": "shown_label", "type": "nominal", "sort": None, "title": None}
    placed = [{**row, "shown_label": shown[str(row["label"])]} for row in rows]
    return placed, {**channel, "axis": {"ticks": False, **lines, **axis}}, max(_LEAST, _LINE * most + _ROOM) * len(rows)
