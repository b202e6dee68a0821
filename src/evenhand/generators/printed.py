"""Algorithm 1 of [monjezi2025] as printed: rows that a generator made up are counted as people.

Kept for comparison with the paper. What it says of a tail rests on rows that nobody has seen, on steps fitted like any
other value, and on limits that are not calibrated: the tail audit shows it apart and draws no verdict from it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.arrays import FloatArray
from evenhand.generators.adapter import Generator, make_generator
from evenhand.generators.columns import Columns
from evenhand.generators.extend import LEAST, ROUNDS
from evenhand.kernels.extremes.exponentiality import PRINTED, residual_variation
from evenhand.kernels.extremes.pareto_tail import fit_tail, tail_intervals
from evenhand.kernels.shared.seeds import stream

#: What the coefficient of variation is taken of: the k largest values, as the text says, or their excesses over the
#: k-th, as the method does that the text builds on.
READINGS = ("values", "excesses")
_KMIN, _KMAX = 10, 50
_LEVEL = 0.95  # of the shape's interval, which decides the type
_SAME = 1e-9  # a change of score that is none


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedFit:
    """What the printed algorithm says of one group's tail."""

    reading: str  # one of `READINGS`
    rows: int  # people
    generated: int  # rows that were made up and counted as people
    rounds: int  # of generating
    stopped: bool  # whether the time was over
    passed: bool  # whether the exponentiality test passed in the end
    type: str  # I, II or III; empty when the test did not pass
    # shape, location: of the tail, NaN when the test did not pass; the location is the level at the horizon.
    shape: float
    location: float


def passes(values: FloatArray, reading: str) -> bool:
    """Apply the test of the printed algorithm to the largest values.

    Parameters
    ----------
    values : ndarray
        Changes of score.
    reading : {"values", "excesses"}
        What the coefficient of variation is taken of.

    Returns
    -------
    bool
        False also when there are at most 50 values.

    Examples
    --------
    >>> heavy = 0.3 + 0.01 * (np.arange(1, 1001) / 1000) ** -0.7
    >>> passes(heavy, "values"), passes(heavy, "excesses")
    (True, False)
    """
    if values.size <= _KMAX:
        return False
    top = -np.sort(-values)[:_KMAX]
    k = np.arange(_KMIN, _KMAX + 1)
    if reading == "excesses":
        variation = residual_variation(top, _KMIN)
    else:
        mean = np.array([top[:j].mean() for j in k])
        deviation = np.array([top[:j].std(ddof=1) for j in k])
        variation = deviation / np.where(mean > 0, mean, math.nan)
    return not bool((variation > 1 + PRINTED / np.sqrt(k)).any())


def printed_algorithm(
    rows: Columns,
    change: Callable[[Columns], FloatArray],
    generator: Any,
    *,
    horizon: float,
    upper: float,
    seed: int,
    time_limit: float = 60.0,
) -> tuple[PrintedFit, ...]:
    """Add generated rows to a group's own until the test passes, then fit the 50 largest changes of all of them.

    Parameters
    ----------
    rows : mapping of str to ndarray
        The group's own rows.
    change : callable
        From rows to the change of score when they are recorded as the other group.
    generator : str or object
        See `make_generator`.
    horizon : float
        Of the location.
    upper : float
        Largest possible change.
    seed : int
        For the generator and for intervals.
    time_limit : float
        Seconds; when they are over the search stops between rounds, and training where the generator allows it.

    Returns
    -------
    tuple of PrintedFit
        One for each of `READINGS`; both see the same generated rows.

    Examples
    --------
    >>> rows = {"x": np.linspace(0.0, 1.0, 400)}
    >>> fits = printed_algorithm(rows, lambda made: 0.4 * made["x"], "light", horizon=1000.0, upper=1.0, seed=0)
    >>> [(fit.reading, fit.generated, fit.type) for fit in fits]
    [('values', 0, 'III'), ('excesses', 0, 'III')]
    """
    made = _Rounds(rows, change, make_generator(generator, seed=seed), time_limit)
    return tuple(_fit(made, reading, horizon, upper, seed) for reading in READINGS)


class _Rounds:
    """The changes of a group's rows, and of more that are generated when a reading of the test asks for them."""

    def __init__(
        self, rows: Columns, change: Callable[[Columns], FloatArray], maker: Generator, time_limit: float
    ) -> None:
        self._rows, self._change, self._maker, self._time_limit = rows, change, maker, time_limit
        self._rounds = [change(rows)]
        self._end = math.inf

    @property
    def own(self) -> int:
        return self._rounds[0].size

    def values(self, rounds: int) -> FloatArray:
        """Return the changes of the own rows and of those of so many rounds."""
        return np.concatenate(self._rounds[: rounds + 1])

    def reach(self, rounds: int) -> bool:
        """Make sure that there are so many rounds; False when the time is over. The first is always made."""
        if rounds < len(self._rounds):
            return True
        if len(self._rounds) == 1:
            self._end = time.monotonic() + self._time_limit
            if hasattr(self._maker, "time_limit"):
                self._maker.time_limit = min(self._maker.time_limit, self._time_limit)
            self._maker.fit(self._rows)
        elif time.monotonic() > self._end:
            return False
        self._rounds.append(self._change(self._maker.sample(max(LEAST, self.own))))
        return True


def _fit(made: _Rounds, reading: str, horizon: float, upper: float, seed: int) -> PrintedFit:
    """Run one reading of the algorithm."""
    rounds, stopped = 0, False
    while not (passed := passes(made.values(rounds), reading)) and rounds < ROUNDS and not stopped:
        stopped = not made.reach(rounds + 1)
        rounds += not stopped
    values = made.values(rounds)
    kind, shape, location = "", math.nan, math.nan
    if passed:
        ordered = -np.sort(-values)
        if ordered[0] - ordered[_KMAX] < _SAME:  # all the same: the tail ends there
            kind, location = "III", float(ordered[0])
        else:
            tail = fit_tail(values, _KMAX, upper=upper)
            rng = stream(seed, "tail/printed")
            kind = tail_intervals(tail, np.array([horizon]), level=_LEVEL, rng=rng).type
            shape, location = tail.free_shape, tail.level(horizon)
    return PrintedFit(
        reading=reading,
        rows=made.own,
        generated=values.size - made.own,
        rounds=rounds,
        stopped=stopped,
        passed=passed,
        type=kind,
        shape=shape,
        location=location,
    )
