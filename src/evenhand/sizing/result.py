"""The answer of `evenhand.power`: one row per comparison, as a table, as plain data, as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from evenhand.files import written_json
from evenhand.results import SCHEMA, Displayed, plain, printable
from evenhand.results.table import text_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """Something that is to be shown.

    Parameters
    ----------
    power : float
        The chance of showing it with the rows at hand.
    rows : tuple of float
        Rows of the group and of the reference, at their present ratio, that give the power asked for; NaN where no
        number does.
    one_group : str
        The group whose rows alone would do with the fewest more; empty where one group is not enough.
    one_group_rows : float
        Its rows, all together; NaN where one group is not enough.
    """

    power: float
    rows: tuple[float, ...]
    one_group: str
    one_group_rows: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerRow:
    """What one comparison can show.

    Parameters
    ----------
    measure : str
        The metric's name, or ``"<metric>_correlation"``.
    groups : tuple of str
        The group and its reference; the attribute for a correlation.
    rows : tuple of float
        Theirs.
    value : float
        The reference's value, assumed or from the pilot.
    below, above : float
        The smallest differences (negative, positive) shown with the power asked for; NaN where none is.
    difference : float
        The difference that is to be shown; NaN where none was named.
    to_show_difference : Goal or None
        For that difference.
    to_show_equivalence : Goal or None
        With a margin, when the truth is no difference.
    curve : tuple of mapping
        Power over rows or over differences, where asked for.
    reason : str
        Why a number is NaN.
    """

    measure: str
    groups: tuple[str, ...]
    rows: tuple[float, ...]
    value: float
    below: float = math.nan
    above: float = math.nan
    difference: float = math.nan
    to_show_difference: Goal | None = None
    to_show_equivalence: Goal | None = None
    curve: tuple[Mapping[str, float], ...] = ()
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the row as plain data, NaN as None."""
        row: dict[str, Any] = plain(asdict(self))
        return row


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PowerResult(Displayed):
    """What an audit can show, one row per comparison.

    Parameters
    ----------
    rows : tuple of PowerRow
        The answer; iterating over the result iterates over them.
    options : mapping
        What was asked: alpha, findings, power, difference, ratio, margin.

    Examples
    --------
    >>> import evenhand as eh
    >>> result = eh.power("selection_rate", rows=(200, 800), value=0.3)
    >>> round(result[0].above, 2)
    0.1
    """

    rows: tuple[PowerRow, ...]
    options: Mapping[str, Any] = field(default_factory=dict)

    def __iter__(self) -> Iterator[PowerRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> PowerRow:
        return self.rows[index]

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one plain dictionary per comparison."""
        return [row.to_dict() for row in self.rows]

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data, in the layout of ``power.json``."""
        return {"schema": SCHEMA, "options": plain(dict(self.options)), "power": self.to_rows()}

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the result as JSON and, with a path, write it there in one step."""
        return written_json(self.to_dict(), path)

    def __str__(self) -> str:
        return text_rows(self.cells())

    def cells(self) -> list[tuple[str, ...]]:
        """Return the head and the cells of the table; columns without any content are left out."""
        return _cells(self)


def _cells(result: PowerResult) -> list[tuple[str, ...]]:
    head = (
        "measure", "groups", "rows", "value", "detectable", "difference", "power", "rows needed", "or one group",
        "equivalence power", "rows for equivalence", "or one group alone",
    )  # fmt: skip
    rows = []
    for row in result.rows:
        cells = [row.measure, " vs ".join(row.groups), _rows(row.rows), _short(row.value)]
        cells.append(f"{_short(row.below)}, +{_short(row.above)}")
        cells.append("" if math.isnan(row.difference) else f"{row.difference:+.4g}")
        for goal in (row.to_show_difference, row.to_show_equivalence):
            if goal is None:
                cells += ["", "", ""]
                continue
            alone = f"{goal.one_group}: {goal.one_group_rows:,.0f}" if goal.one_group else "–"
            cells += [f"{goal.power:.3f}", _rows(goal.rows), alone]
        rows.append(cells)
    used = [j for j in range(len(head)) if j < 5 or any(cells[j] for cells in rows)]
    return [tuple(printable(cells[j]) for j in used) for cells in (list(head), *rows)]


def _rows(rows: Sequence[float]) -> str:
    return " + ".join("–" if math.isnan(n) else f"{n:,.0f}" for n in rows)


def _short(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3g}"
