"""A metric meets the search: data, subgroups and metric in, the evidence of all subgroups out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from evenhand.arrays import BoolArray, IntArray
from evenhand.audits.scan.subgroups import Subgroups
from evenhand.inference.rates.samples import RateSamples
from evenhand.inference.samples import Samples
from evenhand.inference.scan.family import Family
from evenhand.inference.scan.rates import RateFamily
from evenhand.inference.strata.rates import StratifiedRates
from evenhand.intake import AuditData
from evenhand.kernels.scan.lattice import one_of_each
from evenhand.metrics import Metric
from evenhand.summaries import cells_of


class Between(Protocol):
    """Compares two sets of people, given as masks of cells; within sets of cells where these are given."""

    def __call__(self, first: BoolArray, second: BoolArray, within: IntArray | None = None, /) -> Samples:
        """Return the samples: the first set is compared with the second."""


def family_of(metric: Metric, data: AuditData, subgroups: Subgroups, smallest: int) -> tuple[Family, Between]:
    """Return a metric in every subgroup of enough people, each question once, and how two sets are compared."""
    return _MAKERS[metric.kind](metric, data, subgroups, smallest)


def _rates(metric: Metric, data: AuditData, subgroups: Subgroups, smallest: int) -> tuple[Family, Between]:
    cell, size = cells_of(data), subgroups.count.size
    inside, hit = (np.isin(cell, part) * data.count for part in (metric.denominator, metric.numerator))
    trials, successes = (
        np.bincount(subgroups.cell, weights=part, minlength=size).astype(np.int64) for part in (inside, hit)
    )

    def between(first: BoolArray, second: BoolArray, within: IntArray | None = None, /) -> Samples:
        if within is not None:
            strata = [np.where(mask, within, -1) for mask in (first, second)]
            tables = [[_by_stratum(part, codes) for codes in strata] for part in (successes, trials)]
            return StratifiedRates(*tables)
        counts = [[int(part[mask].sum()) for mask in (first, second)] for part in (successes, trials, subgroups.count)]
        return RateSamples.from_counts(*counts, given_total=True)

    lattice = subgroups.lattice.take(kept(subgroups, trials, smallest))
    return RateFamily(lattice, successes, trials), between


def _by_stratum(values: IntArray, codes: IntArray) -> IntArray:
    """Add up values of cells by stratum; those with -1 are left out."""
    inside = codes >= 0
    return np.bincount(codes[inside], weights=values[inside], minlength=codes.size).astype(np.int64)


def kept(subgroups: Subgroups, people: IntArray, smallest: int) -> IntArray:
    """Return the subgroups that are compared: enough people in them and in the rest, and each question once.

    Parameters
    ----------
    subgroups : Subgroups
        All of them.
    people : ndarray of int, shape (C,)
        Whom the metric is about, by cell.
    smallest : int
        The fewest people.
    """
    size = subgroups.lattice.sums(people.astype(np.float64))
    enough = np.flatnonzero((size >= smallest) & (people.sum() - size >= smallest))
    return enough[one_of_each(subgroups.lattice.take(enough), people)]


_MAKERS: dict[str, Callable[[Metric, AuditData, Subgroups, int], tuple[Family, Between]]] = {"rate": _rates}
KINDS = tuple(_MAKERS)
