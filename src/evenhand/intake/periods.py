"""Periods: a column of dates or times cut into days, weeks, months or years, alike on every engine."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence

import numpy as np

from evenhand.arrays import IntArray
from evenhand.errors import DataError, UsageError

# How much of a date, written as 2024-02-29, tells one period from another.
UNITS = {"day": 10, "week": 10, "month": 7, "year": 4}
_DATE = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2})(?:[T ].*)?)?)?")
_WHOLE = re.compile(r"(-?\d+)\.0")
_MOST = 100  # periods that a column may name without a unit: one with more holds moments, and each would be an audit


def parse_period(asked: str | None) -> tuple[str | None, str | None]:
    """Divide ``"date:month"`` into a column and a unit; without one of the units all of it is the column.

    Examples
    --------
    >>> parse_period("date:month"), parse_period("quarter"), parse_period("a:b")
    (('date', 'month'), ('quarter', None), ('a:b', None))
    """
    if asked is None:
        return None, None
    if not isinstance(asked, str) or not asked:
        raise UsageError(f"`period=` is {asked!r}; allowed: a column, or a column and a unit such as 'date:month'.")
    column, _, unit = asked.rpartition(":")
    return (column, unit) if column and unit in UNITS else (asked, None)


def key_sql(column: str, unit: str | None) -> str:
    """Return SQL for the part of a column's text that tells periods apart; weeks are told apart by their days."""
    text = f"trim(CAST({column} AS STRING))"
    return text if unit is None else f"substr({text}, 1, {UNITS[unit]})"


def within_sql(key: str, label: str, unit: str | None, quote: str) -> str:
    """Return SQL for "this row's key lies in the period"; `quote` is the engine's way to write the label as SQL."""
    if unit == "week":
        days = [datetime.date.fromisoformat(label) + datetime.timedelta(days=d) for d in range(7)]
        return f"{key} IN ({', '.join(chr(39) + day.isoformat() + chr(39) for day in days)})"
    return f"regexp_replace({key}, '^(-?[0-9]+)[.]0$', '\\1') = {quote}" if unit is None else f"{key} = {quote}"


def code_periods(
    codes: IntArray, labels: Sequence[str], name: str, unit: str | None
) -> tuple[IntArray, tuple[str, ...]]:
    """Turn the texts of dates into periods, sorted; codes stay -1 where a value is missing.

    Examples
    --------
    >>> codes, labels = code_periods(np.array([0, 1, 2]), ("2024-01-31", "2024-02-01", "2024-02-29"), "when", "month")
    >>> codes.tolist(), labels
    ([0, 1, 1], ('2024-01', '2024-02'))
    """
    periods = [_period(label.strip(), name, unit) for label in labels]
    sorted_periods = tuple(sorted(set(periods)))
    if unit is None and len(sorted_periods) > _MOST:
        raise DataError(
            f"Column `{name}` names {len(sorted_periods):,} periods, and each would be an audit of its own; at most "
            f"{_MOST} are taken as they are. Cut dates into longer periods, such as `{name}:month`, or name another "
            "column."
        )
    place = {period: i for i, period in enumerate(sorted_periods)}
    return np.array([*(place[period] for period in periods), -1], dtype=np.int64)[codes], sorted_periods


def _period(text: str, name: str, unit: str | None) -> str:
    """Return the period of one date; a week is named by its Monday."""
    if unit is None:
        return _WHOLE.sub(r"\1", text)
    match = _DATE.fullmatch(text)
    known = 0 if match is None else sum(part is not None for part in match.groups())
    try:
        if match is None or known < {"year": 1, "month": 2}.get(unit, 3):
            raise ValueError
        date = datetime.date(int(match[1]), int(match[2] or 1), int(match[3] or 1))
    except ValueError:
        raise DataError(
            f"Column `{name}` holds `{text}` and cannot be cut into {unit}s; dates such as 2024-02-29 are needed, or "
            f"a column that names the period itself, without `:{unit}`."
        ) from None
    if unit == "week":
        return (date - datetime.timedelta(days=date.weekday())).isoformat()
    return date.isoformat()[: UNITS[unit]]
