"""Numbers as a person reads them: points of 100, with as many digits as tell them apart and no more.

The ends of an interval may have more digits than the values: one that is close to 0 must not be written as 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evenhand.results import Interval

_MOST_DIGITS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Two values, how they compare and how sure that is.

    Parameters
    ----------
    first, second : float
        The values of the group and of what it is compared with.
    change : float
        Their difference or ratio as it was estimated; that of strata is not the difference of the values.
    interval : Interval or None
        Of the difference or ratio.
    scale : float
        By which values and differences are multiplied: 100 for rates.
    ratio : bool
        Whether the change is a ratio.
    limits : tuple of float
        Values that the change is compared with, such as 0 and a margin: what is written stays on its side of them.

    Examples
    --------
    >>> ends = Interval(low=0.0178, high=0.1637, level=0.99, kind="score")
    >>> seen = Compared(first=0.478, second=0.3876, change=0.0904, interval=ends, scale=100, limits=(0.0,))
    >>> seen.size, seen.values, seen.between
    ('9', ('48', '39'), 'between 2 and 16')
    >>> close = Interval(low=0.0031, high=0.2081, level=0.99, kind="score")
    >>> seen = Compared(first=0.5084, second=0.4026, change=0.1058, interval=close, scale=100, limits=(0.0,))
    >>> seen.size, seen.values, seen.between
    ('11', ('51', '40'), 'between 0.3 and 20.8')
    """

    first: float
    second: float
    change: float
    interval: Interval | None = None
    scale: float = 1.0
    ratio: bool = False
    limits: tuple[float, ...] = ()

    @property
    def size(self) -> str:
        """How large the difference is, without its sign, or the ratio."""
        return self._change(self.change if self.ratio else abs(self.change))

    @property
    def values(self) -> tuple[str, str]:
        """The two values."""
        return tuple(f"{value * self.scale:.{self._digits}f}" for value in (self.first, self.second))  # type: ignore[return-value]

    @property
    def between(self) -> str:
        """Between which values the change lies, in the direction that the size is said in; empty where unknown."""
        low, high = self.ends
        if math.isinf(low) and math.isinf(high):
            return ""
        if math.isinf(high):
            return f"at least {self._end(low)}"
        return f"at most {self._end(high)}" if math.isinf(low) else f"between {self._end(low)} and {self._end(high)}"

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the interval in the direction that the size is said in."""
        if self.interval is None:
            return -math.inf, math.inf
        low, high = self.interval.low, self.interval.high
        return (-high, -low) if self.change < 0 and not self.ratio else (low, high)

    def _change(self, value: float, digits: int | None = None) -> str:
        digits = self._digits if digits is None else digits
        digits = max(digits, 2) if self.ratio else digits
        return f"{round(value * (1.0 if self.ratio else self.scale), digits) + 0.0:.{digits}f}"

    def _end(self, value: float) -> str:
        return self._change(value, self._fewest(self._ends_clear))

    @property
    def _digits(self) -> int:
        """The fewest decimals with which values and change contradict neither each other nor the limits."""
        return self._fewest(self._clear)

    def _fewest(self, clear: Callable[[int], bool]) -> int:
        fewest = 0 if self.scale == 100 else 2
        return next((digits for digits in range(fewest, _MOST_DIGITS) if clear(digits)), _MOST_DIGITS)

    def _ends_clear(self, digits: int) -> bool:
        ends = () if self.interval is None else (self.interval.low, self.interval.high)
        return self._on_their_sides(ends, digits) and self._inside(self._rounded(self.change, self._digits), digits)

    def _inside(self, change: float, digits: int | None = None) -> bool:
        """Say whether a change as written lies in the interval, or in the one that its ends as written make."""
        if self.interval is None or not self.interval.low <= self.change <= self.interval.high:
            return True
        low, high = (self._rounded(end, digits) for end in (self.interval.low, self.interval.high))
        return low <= change <= high and (low < high or self.interval.low == self.interval.high)

    def _rounded(self, value: float, digits: int | None) -> float:
        value *= 1.0 if self.ratio else self.scale
        return value if digits is None or not math.isfinite(value) else round(value, max(digits, 2 * self.ratio))

    def _clear(self, digits: int) -> bool:
        first, second = (round(value * self.scale, digits) for value in (self.first, self.second))
        if first == second and self.first != self.second:
            return False
        if not self.ratio and math.isclose(self.first - self.second, self.change, abs_tol=1e-9):
            shown = round(self.change * self.scale, digits)
            if not math.isclose(first - second, shown, abs_tol=10.0 ** -(digits + 3)):
                return False
        return self._on_their_sides((self.change,), digits) and self._inside(self._rounded(self.change, digits))

    def _on_their_sides(self, values: Sequence[float], digits: int) -> bool:
        scale, digits = (1.0, max(digits, 2)) if self.ratio else (self.scale, digits)
        return all(
            _side(round(value * scale, digits), round(limit * scale, digits)) == _side(value, limit)
            for value in values
            if math.isfinite(value)
            for limit in self.limits
        )


def _side(value: float, limit: float) -> int:
    return (value > limit) - (value < limit)
