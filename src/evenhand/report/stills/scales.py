"""From values to places: linear and logarithmic scales with their ticks, and places for names."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

MANY = 10  # ticks, where their number is not said: of a logarithmic scale, and to round a domain for


@dataclass(frozen=True, slots=True)
class Linear:
    """Places in proportion to values.

    Examples
    --------
    >>> scale = Linear(0.0, 1.0, 0.0, 100.0)
    >>> scale.at(0.25), scale.ticks(4), scale.label(0.2, 4)
    (25.0, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0], '0.2')
    """

    low: float
    high: float
    # start, end: the places of both.
    start: float
    end: float

    def at(self, value: Any) -> float:
        """Return the place of a value; a domain without width has its value in the middle."""
        share = 0.5 if self.high == self.low else (float(value) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, count: float) -> list[float]:
        """Return about so many round values."""
        return round_values(min(self.low, self.high), max(self.low, self.high), count)

    def label(self, value: float, count: float) -> str:
        """Write a tick with as many decimals as the distance of the ticks asks for."""
        step = tick_step(min(self.low, self.high), max(self.low, self.high), count)
        return with_minus(f"{value:,.{max(0, -_exponent(step))}f}")


@dataclass(frozen=True, slots=True)
class Log:
    """Places in proportion to logarithms.

    Examples
    --------
    >>> scale = Log(0.1, 10.0, 0.0, 100.0)
    >>> scale.at(1.0), [scale.label(v, 10) for v in scale.ticks(10) if scale.label(v, 10)]
    (50.0, ['0.1', '0.2', '0.3', '0.4', '0.5', '1', '2', '3', '4', '5', '10'])
    """

    low: float
    high: float
    # start, end: the places of both.
    start: float
    end: float

    def at(self, value: Any) -> float:
        """Return the place of a value above 0."""
        low, high = math.log10(self.low), math.log10(self.high)
        share = 0.5 if high == low else (math.log10(value) - low) / (high - low)
        return self.start + share * (self.end - self.start)

    def ticks(self, count: float) -> list[float]:
        """Return powers of ten and their multiples; powers alone where there are many, round values where few."""
        low, high = math.log10(self.low), math.log10(self.high)
        if high - low >= count:
            return [10.0**power for power in round_values(low, high, min(high - low, count))]
        powers = range(math.floor(low), math.ceil(high) + 1)
        values = [float(f"{k}e{power}") for power in powers for k in range(1, 10)]
        inside = [value for value in values if self.low <= value <= self.high]
        return inside if 2 * len(inside) >= count else round_values(self.low, self.high, count)

    def label(self, value: float, count: float) -> str:
        """Write a tick; multiples of a power are left out where there are many ticks."""
        most = max(1.0, 10 * count / max(len(self.ticks(MANY)), 1))
        multiple = value / 10.0 ** round(math.log10(value))
        if (multiple * 10 if multiple * 10 < 9.5 else multiple) > most + 1e-9:
            return ""
        if value < 1e-6:
            return _short_power(f"{value:.12g}")
        return f"{value:.12f}".rstrip("0") if value < 1e-4 else f"{value:,.12g}"


@dataclass(frozen=True, slots=True)
class Places:
    """One place for each name, in their order.

    Examples
    --------
    >>> Places(("a", "b"), 0.0, 100.0).at("b")
    75.0
    """

    names: tuple[str, ...]
    start: float
    end: float

    @property
    def step(self) -> float:
        """Return how far places are apart."""
        return (self.end - self.start) / max(len(self.names), 1)

    def at(self, value: Any) -> float:
        """Return the middle of a name's place."""
        return self.start + (self.names.index(str(value)) + 0.5) * self.step


Scale = Linear | Log | Places


def tick_step(low: float, high: float, count: float) -> float:
    """Return the distance, 1, 2 or 5 times a power of ten, of about so many round values."""
    raw = (high - low) / max(count, 1e-9)
    if raw <= 0:
        return 1.0
    power = _exponent(raw)
    rest = raw / 10.0**power
    factor = 10 if rest >= math.sqrt(50) else 5 if rest >= math.sqrt(10) else 2 if rest >= math.sqrt(2) else 1
    return float(f"{factor}e{power}")


def round_values(low: float, high: float, count: float) -> list[float]:
    """Return about so many round values between two."""
    step = tick_step(low, high, count)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{j * step:.12g}") for j in range(first, last + 1)]


def rounded_domain(low: float, high: float, log: bool) -> tuple[float, float]:
    """Return round ends around two values.

    Examples
    --------
    >>> rounded_domain(0.012, 0.87, log=False), rounded_domain(0.012, 0.87, log=True)
    ((0.0, 0.9), (0.01, 1.0))
    """
    if log:
        return 10.0 ** math.floor(math.log10(low)), 10.0 ** math.ceil(math.log10(high))
    before = 0.0
    for _ in range(10):
        step = tick_step(low, high, MANY)
        if step == before or low == high:
            break
        low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
        before = step
    return float(f"{low:.12g}"), float(f"{high:.12g}")


def written(value: float, form: str) -> str:
    """Write a number in one of the two forms that charts of this package ask for.

    Examples
    --------
    >>> written(1000.0, ".1~g"), written(3.0, "d")
    ('1e+3', '3')
    """
    return with_minus(_short_power(f"{value:.1g}") if form == ".1~g" else f"{value:.0f}")


def with_minus(text: str) -> str:
    """Write a minus sign in place of a hyphen, and none before zero."""
    return text if float(text.replace(",", "")) >= 0 or not text.startswith("-") else f"\u2212{text[1:]}"


def _short_power(text: str) -> str:
    return re.sub(r"e([+-])0+(\d)", r"e\1\2", text)


def _exponent(value: float) -> int:
    return int(f"{value:e}".partition("e")[2])


def kept_apart(spans: Sequence[tuple[float, float]], how: str, gap: float) -> list[bool]:
    """Say which of some spans of text are shown so that none touches another.

    Parameters
    ----------
    spans : sequence of (float, float)
        Where each begins and ends, in order.
    how : {"parity", "greedy"}
        Leave out every second one until all fit, or each that would touch the one before.
    gap : float
        Room that stays between two.

    Examples
    --------
    >>> kept_apart([(0, 10), (8, 18), (16, 26)], "parity", 1)
    [True, False, True]
    """
    if how == "greedy":
        shown, end = [], -math.inf
        for low, high in spans:
            shown.append(low >= end + gap)
            end = high if shown[-1] else end
        return shown
    every = 1
    while True:
        kept = spans[::every]
        if len(kept) < 2 or all(b[0] >= a[1] + gap for a, b in itertools.pairwise(kept)):
            return [j % every == 0 for j in range(len(spans))]
        every *= 2
