"""Words that many messages share."""

from __future__ import annotations

from collections.abc import Iterable


def count_of(n: int, noun: str) -> str:
    """Return a number with its noun, such as ``"1 row"`` or ``"12 rows"``."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def listing(names: Iterable[object], most: int = 5) -> str:
    """Return names in backticks, the first few of them.

    Examples
    --------
    >>> listing(["a", "b", "c"], most=2)
    '`a`, `b`, …'
    """
    known = [str(n) for n in names]
    shown = ", ".join(f"`{n}`" for n in known[:most])
    return shown + (", …" if len(known) > most else "")


def number_text(value: float) -> str:
    """Return a number as a label: whole numbers without a decimal point.

    Examples
    --------
    >>> number_text(1.0), number_text(0.25)
    ('1', '0.25')
    """
    whole = abs(value) < 1e15 and value == int(value)
    return str(int(value)) if whole else repr(float(value))
