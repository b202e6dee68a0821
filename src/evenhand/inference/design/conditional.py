"""Clustered rows compared within strata: people of one stratum are compared with each other only.

Two groups differ by sum_s W_s (value_as - value_bs) / sum_s W_s with W_s = n_as n_bs / (n_as + n_bs), and their ratio
is sum_s W_s value_as / sum_s W_s value_bs, for rates that of Mantel and Haenszel. So each pair of groups has values of
its own, standardised to the strata that both have. Given how many rows each stratum has of either group, a row pulls
its group's value by W_s / sum W of what it pulls its own stratum's. These pulls are added up by cluster, whatever
strata the cluster's rows are in, and compared as those of any clusters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from evenhand.arrays import FloatArray, IntArray
from evenhand.inference.design.clustered import Behind, ClusteredSamples
from evenhand.inference.design.contributions import Contributions
from evenhand.inference.design.crossed import joint_score
from evenhand.inference.pvalues import TestResult, undefined
from evenhand.inference.samples import Draws, Samples
from evenhand.inference.strata.samples import Coverage

NO_STRATUM = "No stratum has rows of both groups, so nothing can be compared within strata."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """Records with their group, stratum and cluster, and how much they pull their group's value in their stratum."""

    group: IntArray  # (R,)
    stratum: IntArray  # (R,)
    line: IntArray  # (R,): the cluster, a line of `copies`
    copies: IntArray  # (L,): clusters that each line stands for
    survey: IntArray | None  # (L,): the sampling stratum of each line
    count: FloatArray  # (R,): rows behind the value, of one of the copies
    mass: FloatArray  # (R,): their weight
    pull: FloatArray  # (R,): of the value of the record's group in its stratum
    square: FloatArray  # (R,): sum of the squares of its rows' pulls
    value: FloatArray  # (K, S): the value of each group in each stratum


class ConditionalClusters(Samples):
    """K groups of clustered rows, compared within strata.

    Parameters
    ----------
    rows : Rows
        The records.
    plain : ClusteredSamples
        The same groups without strata: their values are shown, and whether a group has one.
    rate : bool
        Whether the value is a share of rows.
    """

    def __init__(self, rows: Rows, plain: ClusteredSamples, *, rate: bool) -> None:
        self._rows, self._rate, self.plain = rows, rate, plain
        self.estimate, self.reason = plain.estimate, plain.reason
        self.counts: tuple[Mapping[str, float], ...] = plain.counts
        groups, strata = rows.value.shape
        cell = rows.group * strata + rows.stratum
        amounts = rows.copies[rows.line] * rows.mass
        self._mass = np.bincount(cell, weights=amounts, minlength=rows.value.size).reshape(groups, strata)
        self._pairs: dict[tuple[int, int], ClusteredSamples | None] = {}

    def informative(self, a: int, b: int) -> IntArray:
        """Return the strata that have rows of both groups."""
        both = (self._mass[[a, b]] > 0).all(axis=0) & ~np.isnan(self._rows.value[[a, b]]).any(axis=0)
        return np.flatnonzero(both)

    def coverage(self, a: int, b: int) -> Coverage:
        """Return how many strata and rows of two groups there are, and how many where both are."""
        rows = self._rows
        counts = np.bincount(
            rows.group * rows.value.shape[1] + rows.stratum,
            weights=rows.copies[rows.line] * rows.count,
            minlength=rows.value.size,
        ).reshape(rows.value.shape)[[a, b]]
        both = self.informative(a, b)
        return Coverage(
            strata=int((counts > 0).any(axis=0).sum()),
            compared=both.size,
            rows=round(float(counts.sum())),
            rows_compared=round(float(counts[:, both].sum())),
        )

    def pair(self, a: int, b: int) -> ClusteredSamples | None:
        """Return the two groups' values standardised to the strata they share; None where they share none."""
        if (a, b) not in self._pairs:
            self._pairs[a, b] = self._standardised(a, b)
        return self._pairs[a, b]

    def _standardised(self, a: int, b: int) -> ClusteredSamples | None:
        rows, strata = self._rows, self.informative(a, b)
        if not strata.size:
            return None
        one, two = self._mass[a, strata], self._mass[b, strata]
        weight = np.zeros(self._mass.shape[1])
        weight[strata] = one * two / (one + two)
        weight /= weight.sum()
        value = np.array([weight[strata] @ rows.value[k, strata] for k in (a, b)])
        used = np.isin(rows.group, (a, b)) & (weight[rows.stratum] > 0)
        group, stratum, line = (rows.group[used] == b).astype(np.int64), rows.stratum[used], rows.line[used]
        here = weight[stratum]
        lines, clusters = np.unique(line, return_inverse=True)
        if rows.survey is not None:  # all clusters of the survey count, also those without rows of these groups
            lines, clusters = np.arange(rows.copies.size), line
        size = (lines.size, 2)
        place = clusters * 2 + group

        def add(amounts: FloatArray) -> FloatArray:
            return np.bincount(place, weights=amounts, minlength=lines.size * 2).reshape(size).astype(np.float64)

        # The share of a row in its group's standardised value.
        mass = here * rows.mass[used] / np.stack([self._mass[a], self._mass[b]])[group, stratum]
        parts = Contributions(
            estimate=value,
            mass=add(mass),
            pull=add(here * rows.pull[used]),
            copies=rows.copies[lines],
            stratum=None if rows.survey is None else rows.survey[lines],
        )
        copies = rows.copies[line]
        variance = np.bincount(group, weights=copies * here**2 * rows.square[used], minlength=2).astype(np.float64)
        worth = 1 / np.bincount(group, weights=copies * mass**2 / np.maximum(rows.count[used], 1), minlength=2)
        counts = add(rows.count[used])
        rows_used = parts.copies @ counts
        behind = Behind(
            rows=rows_used,
            worth=worth,
            variance=variance,
            largest=counts.max(axis=0),
            cluster_size=parts.copies @ counts**2 / rows_used,
        )
        return ClusteredSamples(parts, behind, rate=self._rate, name=self.plain.name)

    def values(self, a: int, b: int) -> tuple[float, float]:
        """Return the two groups' values, standardised to the strata they share."""
        pair = self.pair(a, b)
        return (math.nan, math.nan) if pair is None else (float(pair.estimate[0]), float(pair.estimate[1]))

    def difference(self, a: int, b: int) -> float:
        """Return the conditional difference."""
        first, second = self.values(a, b)
        return first - second

    def _test(self, a: int, b: int, draws: Draws) -> TestResult:
        pair = self.pair(a, b)
        if pair is None:
            return undefined(NO_STRATUM)
        result = pair.test(0, 1, draws)
        return replace(result, method=f"within {self.informative(a, b).size:,} strata, {result.method}")

    def _test_global(self, members: list[int], draws: Draws) -> TestResult:
        """All groups against the one with most rows."""
        reference = max(members, key=lambda k: self.counts[k]["rows"])
        others = [k for k in members if k != reference]
        pairs = [self.pair(k, reference) for k in others]
        if any(pair is None for pair in pairs):
            return undefined("A group shares no stratum with the largest group, so not all can be compared in strata.")
        known = [pair for pair in pairs if pair is not None]
        if any(pair._missing(0, 1) for pair in known):
            return undefined(" ".join(dict.fromkeys(pair._missing(0, 1) for pair in known if pair._missing(0, 1))))
        rows = self._rows
        null = np.zeros((rows.copies.size, len(known)))
        for j, (k, pair) in enumerate(zip(others, known, strict=True)):
            null[self._lines(k, reference), j] = pair.null_parts()
        gaps = np.array([pair.difference(0, 1) for pair in known])
        df = min(pair.parts.freedom(0, 1) for pair in known)
        used = null.any(axis=1)
        return joint_score(gaps, null[used], rows.copies[used], df, draws)

    def _lines(self, a: int, b: int) -> IntArray:
        rows, strata = self._rows, self.informative(a, b)
        if rows.survey is not None:
            return np.arange(rows.copies.size)
        return np.unique(rows.line[np.isin(rows.group, (a, b)) & np.isin(rows.stratum, strata)])

    def _interval(self, a: int, b: int, level: float, ratio: bool, draws: Draws) -> tuple[float, float, str]:
        pair = self.pair(a, b)
        if pair is None:
            return math.nan, math.nan, "none"
        return pair.interval(0, 1, level=level, ratio=ratio, draws=draws)

    def beyond(self, a: int, b: int, *, low: float, high: float, ratio: bool, draws: Draws) -> float:
        """Return the p-value against "it lies in [low, high]"."""
        pair = None if self._missing(a, b) else self.pair(a, b)
        return math.nan if pair is None else pair.beyond(0, 1, low=low, high=high, ratio=ratio, draws=draws)

    def _equivalence(self, a: int, b: int, low: float, high: float, ratio: bool, draws: Draws) -> float:
        pair = self.pair(a, b)
        return math.nan if pair is None else pair.equivalence(0, 1, low=low, high=high, ratio=ratio, draws=draws)

    def _standard_error(self, a: int, b: int) -> float:
        if a == b:
            return self.plain.standard_error(a, b)
        pair = self.pair(a, b)
        return math.nan if pair is None else pair.standard_error(0, 1)
