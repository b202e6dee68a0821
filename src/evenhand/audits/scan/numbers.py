"""Numbers in the names of subgroups: short where they are read, whole where the tested condition is recorded."""

from __future__ import annotations

from collections.abc import Sequence

_FEWEST_DIGITS = 3
_MOST_DIGITS = 17  # tell any two numbers apart
_LARGEST_WRITTEN_OUT = 1e15


def told_apart(values: Sequence[float]) -> list[str]:
    """Round different numbers to the fewest digits that tell them apart, three at least; whole parts stay complete.

    Examples
    --------
    >>> told_apart([0.123456, 38512.25]), told_apart([1.0001, 1.0002]), told_apart([1000001, 1000002])
    (['0.123', '38512'], ['1.0001', '1.0002'], ['1000001', '1000002'])
    """
    rounded: list[str] = []
    for digits in range(_FEWEST_DIGITS, _MOST_DIGITS + 1):
        rounded = [_rounded(value, digits) for value in values]
        if len({float(text) for text in rounded}) == len(rounded):
            break
    return rounded


def _rounded(value: float, digits: int) -> str:
    if 10 ** (digits - 1) <= abs(value) < _LARGEST_WRITTEN_OUT:
        return f"{value:.0f}"
    return f"{value:.{digits}g}"


def all_digits(value: float) -> str:
    """Write a number so that reading it gives the same number.

    Examples
    --------
    >>> all_digits(40.0), all_digits(0.1), all_digits(1 / 3)
    ('40', '0.1', '0.3333333333333333')
    """
    short = f"{value:.15g}"
    return short if float(short) == value else repr(float(value))
