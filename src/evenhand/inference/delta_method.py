"""Any function of cell counts, studentised by the delta method under the null.

The plain delta method takes each group's variance at its own cells. With few rows behind the value that
variance is 0 or far too small just when the value is extreme, and the test rejects a true null three times
too often. So the variance is taken where the null puts the cells: each group's cells are moved, along the
direction that costs the least likelihood, until all groups have one value. Nothing else is pooled: when the
values are equal the moved cells tend to the group's own, so the statistic stays pivotal under the weak null.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from evenhand.arrays import FloatArray, IntArray
from evenhand.inference.count_functions import Form, spread_of, studentise
from evenhand.inference.mover import Known, Limits, mover, mover_equivalence
from evenhand.kernels.counts.binomial import normal_quantile


@dataclass(frozen=True, slots=True, eq=False)
class Function(Form):
    """A function of the cells."""

    permute = "all"

    function: Callable[[FloatArray], FloatArray]  # tables (..., C) of floats to values (...)
    strata: IntArray  # (C,): the outcome of each cell
    # Rows added to each stratum of a group, spread like the pooled rows, before the cells are moved, so that no cell is
    # empty; the group's stratum is then scaled back to its size.
    prior: float = 1.0
    # Rows added to each cell before an interval is taken, as Agresti and Caffo (2000) do for two proportions.
    shrink: float = 1.0

    def value(self, tables: FloatArray) -> FloatArray:
        """Return the function; anything not finite is NaN."""
        with np.errstate(all="ignore"):
            out = np.asarray(self.function(np.asarray(tables, dtype=np.float64)), dtype=np.float64)
        return np.where(np.isfinite(out), out, np.nan)

    def _slopes(self, cells: FloatArray) -> FloatArray:
        """Return the derivative by each cell, less its mean over the rows: the influence of one row."""
        slopes = np.empty_like(cells)
        for j in range(cells.shape[-1]):
            size = 1e-3 * cells[..., j] + 1e-9
            up, down = cells.copy(), cells.copy()
            up[..., j] += size
            down[..., j] -= size
            slopes[..., j] = (self.value(up) - self.value(down)) / (2 * size)
        rows = np.maximum(cells.sum(-1, keepdims=True), 1e-300)
        return np.asarray(slopes - (cells * slopes).sum(-1, keepdims=True) / rows)

    def _delta(self, cells: FloatArray) -> FloatArray:
        """Return the delta-method variance at these cells."""
        return np.asarray((cells * self._slopes(cells) ** 2).sum(-1))

    def _variances(self, tables: FloatArray, variance: str) -> FloatArray:
        """Return the variance of each group's value, (..., K)."""
        tables = np.asarray(tables, dtype=np.float64)
        if variance == "none":
            return np.full(tables.shape[:-1], 1 / tables.shape[-2])
        if variance == "unpooled":
            return self._delta(np.maximum(tables, 1e-6))
        pooled = tables.sum(-2, keepdims=True) + 0.5
        cells, alike, factor = np.empty_like(tables), np.empty_like(tables), np.empty_like(tables)
        for stratum in np.unique(self.strata):
            here = self.strata == stratum
            shape = pooled[..., here] / pooled[..., here].sum(-1, keepdims=True)
            size = tables[..., here].sum(-1, keepdims=True)
            cells[..., here] = (tables[..., here] + self.prior * shape) * (size / (size + self.prior))
            alike[..., here] = shape * size
            factor[..., here] = size / np.maximum(size - 1, 0.5)
        # The common value: weights from cells spread alike in all groups, since a group's own variance
        # is smallest when it should be trusted least.
        with np.errstate(divide="ignore", invalid="ignore"):
            weight = 1 / np.maximum(self._delta(alike), 1e-20)
            common = (weight * self.value(tables)).sum(-1, keepdims=True) / weight.sum(-1, keepdims=True)
            for _ in range(6):  # Newton steps along the least favourable direction
                influence = self._slopes(cells)
                v = (cells * influence**2).sum(-1)
                step = np.where(v > 1e-20, (common - self.value(cells)) / np.maximum(v, 1e-20), 0.0)
                change = step[..., None] * influence
                # A linear step keeps every total the value is blind to; shorten it to keep cells positive.
                down, up = -change.min(-1, keepdims=True), change.max(-1, keepdims=True)
                cells = cells * (1 + change / np.maximum(np.maximum(down / 0.8, up / 4), 1.0))
            # Fitting the cells costs a degree of freedom in each stratum, as n / (n - 1) in a variance.
            return np.asarray((cells * factor * self._slopes(cells) ** 2).sum(-1))

    def statistic(self, tables: FloatArray, variance: str) -> FloatArray:
        """Return the difference over its delta-method standard error."""
        value, v = self.value(tables), self._variances(tables, variance)
        return studentise(value[..., 0] - value[..., 1], v.sum(-1))

    def spread(self, tables: FloatArray, variance: str) -> FloatArray:
        """Return the spread of the values."""
        return spread_of(self.value(tables), self._variances(tables, variance))

    def _limits(self, tables: FloatArray) -> Limits:
        smooth = np.asarray(tables, dtype=np.float64) + self.shrink
        (a, b), centre, half = self.value(tables).tolist(), self.value(smooth), np.sqrt(self._delta(smooth))

        def limits(z: float) -> tuple[Known, Known]:
            low, high = (centre - z * half).tolist(), (centre + z * half).tolist()
            return (a, low[0], high[0]), (b, low[1], high[1])

        return limits

    def interval(self, tables: FloatArray, level: float, *, ratio: bool) -> tuple[float, float, str]:
        """Return MOVER limits from shrunken delta-method limits; NaN for a ratio with a negative value."""
        if ratio and self.value(tables).min() < 0:
            return math.nan, math.nan, "none"
        return *mover(*self._limits(tables)(normal_quantile(level)), ratio=ratio), "mover-delta"

    def equivalence(self, tables: FloatArray, low: float, high: float, *, ratio: bool) -> float:
        """Return the p-value at which the interval fits between the margins."""
        if ratio and self.value(tables).min() < 0:
            return math.nan
        return mover_equivalence(self._limits(tables), low, high, ratio=ratio)

    def standard_error(self, tables: FloatArray) -> float:
        """Return the standard error under the null."""
        return math.sqrt(float(self._variances(tables, "null").sum()))
