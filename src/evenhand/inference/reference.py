"""The law that a studentised value is held against: drawn, listed or known, for a test and its interval alike.

A test, an interval, an equivalence test and a test against a margin ask one question of one law: how far out is
this value? So each of them agrees with the others by construction. Where two laws are used the larger p-value
counts: the answer is right when either law is.

Draws are made as they are needed. The p-value of a value is a function of the value and of one fixed endless
sequence of draws: after the first `PILOT` draws a share above `CLEAR` is the answer; otherwise, as Besag and
Clifford (1991) showed, HITS over the place of the HITS-th draw beyond the value is a valid p-value; and where the
sequence ends first, (hits + 1) / (draws + 1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import special

from evenhand.arrays import FloatArray
from evenhand.inference.pvalues import TIE, TestResult, extremes, share_limits
from evenhand.kernels.counts.deals import Work, in_blocks

PILOT = 999
# One-sided share of draws beyond the value above which the pilot is the answer.
CLEAR = 0.2
# Draws beyond the value that end the sequence: the p-value is then known to a tenth of itself.
HITS = 100
# How many times as many draws are made from one look at them to the next.
GROWTH = 4


class Law(Protocol):
    """A law of a studentised value."""

    def tail(self, statistic: float, side: str) -> float:
        """Return the one-sided p-value."""

    def critical(self, share: float) -> tuple[float, float]:
        """Return the values beyond which either one-sided p-value is at most `share`."""


class Drawn:
    """A law known by random draws, as many as the question needs.

    Parameters
    ----------
    work : callable
        ``work(generator, b)`` returns `b` draws of the statistic.
    cap : int
        Draws at most.
    block : int
        Draws that share a random stream; part of the definition of a result.
    seed, name
        See `evenhand.kernels.shared.seeds.stream`.

    Examples
    --------
    >>> law = Drawn(lambda rng, b: rng.normal(size=b), cap=99_999, block=1000, seed=1, name="demo")
    >>> 0.02 < law.tail(1.96, "greater") < 0.03
    True
    >>> law.used < 10_000
    True
    """

    def __init__(self, work: Work, *, cap: int, block: int, seed: int, name: str) -> None:
        self._work, self.cap, self._block = work, cap, min(block, cap)
        self._seed, self._name = seed, name
        self._kept = np.empty(0)
        self.used = 0

    @property
    def floor(self) -> float:
        """The smallest one-sided p-value."""
        return 1 / (self.cap + 1)

    def draws(self, n: int) -> FloatArray:
        """Return the first `n` draws, or all that are allowed."""
        n = min(n, self.cap)
        if self._kept.size < n:
            first, last = self._kept.size // self._block, -(-n // self._block)
            more = in_blocks(
                self._work,
                last * self._block,
                self._block,
                seed=self._seed,
                name=self._name,
                first=first,
            )
            self._kept = np.concatenate([self._kept, more])
        self.used = max(self.used, n)
        return self._kept[:n]

    def tail(self, statistic: float, side: str) -> float:
        """Return the one-sided p-value of a value."""
        return self.share(statistic, side)[0]

    def share(self, statistic: float, side: str, enough: float = 0.0) -> tuple[float, int, int]:
        """Return the one-sided p-value with the draws beyond the value and the draws behind it.

        Parameters
        ----------
        statistic : float
            The value.
        side : {"greater", "less"}
            Where extreme values lie.
        enough : float
            Stop once the p-value is surely (.999) below this: another law then gives the answer.
        """
        n = min(PILOT, self.cap)
        while True:
            beyond = extremes(self.draws(n), statistic, side)
            hits = int(beyond.sum())
            if n <= PILOT and hits > CLEAR * n:
                return (1 + hits) / (n + 1), hits, n
            if hits >= HITS:
                place = int(np.flatnonzero(beyond)[HITS - 1]) + 1
                return min(HITS / place, CLEAR), HITS, place
            if n >= self.cap or float(special.betaincinv(hits + 1, n - hits, 0.999)) < enough:
                return (1 + hits) / (n + 1), hits, n
            n = min(GROWTH * n, self.cap)

    def critical(self, share: float) -> tuple[float, float]:
        """Return the values beyond which either one-sided p-value is at most `share` (below 0.1).

        Both are infinite where no value has so small a p-value.
        """
        # The HITS-th draw beyond a value comes at HITS / share or later exactly when fewer than HITS come before.
        before = math.ceil(HITS / share - 1e-9) - 1
        if before < self.cap:
            null, allowed = self.draws(before), HITS - 1
        else:
            null = self.draws(self.cap)
            allowed = math.floor(share * (null.size + 1) + 1e-9) - 1
        return _ends(null, allowed)


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """A law whose values, the statistic on every permutation, are all known and equally likely.

    Examples
    --------
    >>> Listed(np.array([-2.0, -1.0, 1.0, 2.0])).tail(2.0, "greater")
    0.25
    """

    values: FloatArray

    @property
    def floor(self) -> float:
        """The smallest one-sided p-value."""
        known = self.values[~np.isnan(self.values)]
        return min(self.tail(float(known.max()), "greater"), self.tail(float(known.min()), "less"))

    def tail(self, statistic: float, side: str) -> float:
        """Return the share of values at least as extreme."""
        return float(extremes(self.values, statistic, side).mean())

    def critical(self, share: float) -> tuple[float, float]:
        """Return the values beyond which either one-sided p-value is at most `share`."""
        return _ends(self.values, math.floor(share * self.values.size + 1e-9))


def _ends(null: FloatArray, allowed: int) -> tuple[float, float]:
    """Return the values that at most `allowed` of the draws reach or pass; draws without a value always do."""
    if allowed < 0 or allowed >= null.size:
        return -math.inf, math.inf
    lower, upper = (np.sort(np.where(np.isnan(null), far, null)) for far in (-np.inf, np.inf))
    low, high = float(lower[allowed]), float(upper[-1 - allowed])
    # A value equal to a draw but for rounding counts as reached.
    return low - TIE * max(1.0, abs(low)), high + TIE * max(1.0, abs(high))


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """One or two laws; the larger p-value counts.

    Examples
    --------
    >>> from evenhand.inference.skewed_student import Lean
    >>> round(Reference(Lean(), None).pvalue(1.959964, "two-sided"), 6)
    0.05
    """

    law: Law | None  # a law in closed form
    null: Drawn | Listed | None  # a permutation law

    def tail(self, statistic: float, side: str) -> float:
        """Return the larger one-sided p-value."""
        known = 0.0 if self.law is None else self.law.tail(statistic, side)
        if self.null is None or math.isnan(known):
            return known
        if isinstance(self.null, Drawn):
            return max(known, self.null.share(statistic, side, known)[0])
        return max(known, self.null.tail(statistic, side))

    def pvalue(self, statistic: float, alternative: str) -> float:
        """Return the p-value; two-sided it is twice that of the side on which the value lies."""
        if math.isnan(statistic):
            return math.nan
        if alternative != "two-sided":
            return self.tail(statistic, alternative)
        sides = ("greater", "less") if statistic >= 0 else ("less", "greater")
        near = self.tail(statistic, sides[0])
        # The far side is smaller only for values in the middle of a very skewed law.
        return min(1.0, 2 * (near if near <= CLEAR else min(near, self.tail(statistic, sides[1]))))

    def critical(self, level: float) -> tuple[float, float]:
        """Return the values between which a two-sided test at 1 - level keeps the null."""
        ends = [law.critical((1 - level) / 2) for law in (self.law, self.null) if law is not None]
        return min(low for low, _ in ends), max(high for _, high in ends)

    def result(self, statistic: float, alternative: str, *, method: str, warnings: Sequence[str] = ()) -> TestResult:
        """Return the answer of a test, with words for the reader about its method."""
        p = self.pvalue(statistic, alternative)
        sides = 2 if alternative == "two-sided" else 1
        low = high = p
        n, floor, null = 0, 0.0, np.empty(0)
        if isinstance(self.null, Drawn):
            side = alternative if sides == 1 else "greater" if statistic >= 0 else "less"
            known = 0.0 if self.law is None else self.law.tail(statistic, side)
            _, hits, n = self.null.share(statistic, side, known)
            under, over = (sides * max(end, known) for end in share_limits(hits, n))
            low, high = min(p, under), max(p, min(1.0, over))
            floor, null = min(1.0, sides * self.null.floor), self.null.draws(min(n, 2000)).copy()
        elif isinstance(self.null, Listed):
            floor = min(1.0, sides * self.null.floor)
            values = self.null.values
            null = values[:: max(1, values.size // 2000)][:2000].copy()
        return TestResult(
            statistic=statistic,
            pvalue=p,
            method=method,
            exact=isinstance(self.null, Listed) and self.law is None,
            n_resamples=n,
            floor=floor,
            pvalue_low=low,
            pvalue_high=high,
            null=null,
            warnings=tuple(warnings),
        )
