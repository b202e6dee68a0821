"""A metric meets the search: data, subgroups and metric in, the evidence of all subgroups out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from evenhand.arrays import BoolArray, FloatArray, IntArray
from evenhand.audits.group.influence import values_of
from evenhand.audits.group.samples import check_needs, crude_samples, samples_of
from evenhand.audits.scan.subgroups import Subgroups
from evenhand.errors import DataError, UsageError
from evenhand.inference.rates.samples import RateSamples
from evenhand.inference.samples import Samples
from evenhand.inference.scan import aucs, means
from evenhand.inference.scan.averages import AverageFamily
from evenhand.inference.scan.curves import CurveFamily, CurveSamples, calibration_bins
from evenhand.inference.scan.family import Family
from evenhand.inference.scan.rates import RateFamily
from evenhand.inference.strata.rates import StratifiedRates
from evenhand.intake import Attribute, AuditData
from evenhand.kernels.scan.lattice import one_of_each
from evenhand.metrics import METRICS, Metric
from evenhand.summaries import Sums, cells_of

# The rates whose mean a metric is: successes and denominators in cells of the confusion table.
_AVERAGES = {
    "balanced_accuracy": (((3,), (2, 3)), ((0,), (0, 1))),
    "aod": (((3,), (2, 3)), ((1,), (0, 1))),
}


class Between(Protocol):
    """Compares two sets of people, given as masks of cells; within sets of cells where these are given."""

    def __call__(self, first: BoolArray, second: BoolArray, within: IntArray | None = None, /) -> Samples:
        """Return the samples: the first set is compared with the second."""


_Made = tuple[Family, Between]


def family_of(metric: Metric, data: AuditData, subgroups: Subgroups, smallest: int) -> tuple[Family, Between]:
    """Return a metric in every subgroup of enough people, each question once, and how two sets are compared."""
    return _MAKERS[metric.kind](metric, data, subgroups, smallest)


def can_search(metric: Metric) -> bool:
    """Say whether a metric can be searched, whatever the data.

    Examples
    --------
    >>> can_search(METRICS["auc"]), can_search(METRICS["aod_abs"])
    (True, False)
    """
    known = metric.kind != "table" or (metric.name in _AVERAGES and METRICS[metric.name] is metric)
    return metric.kind in _MAKERS and known and metric.compare != "ratio"


def check_searchable(metric: Metric, data: AuditData, reference: str) -> None:
    """Raise a clear error when a metric cannot be searched, or not on such data.

    Parameters
    ----------
    metric : Metric
        What is asked for.
    data : AuditData
        What there is.
    reference : {"rest", "overall"}
        What subgroups are compared with.
    """
    check_needs(metric, data)
    if not can_search(metric):
        able = ", ".join(f"`{m.name}`" for m in METRICS.values() if can_search(m))
        raise UsageError(f"Metric `{metric.name}` cannot be searched. Allowed: {able}.")
    if metric.kind == "calibration" and data.moments is not None:
        raise DataError(
            f"Metric `{metric.name}` is searched row by row, and these rows stayed on their engine. Read the data with "
            "`rows='keep'`, or search `mean_residual`."
        )
    average = metric.kind in ("scoring", "mean") or (metric.kind == "rate" and metric.transform == "identity")
    if reference == "overall" and not average:
        raise UsageError(
            f"Metric `{metric.name}` is no average over people, so that a subgroup cannot be compared with everybody, "
            'itself included. Use `reference="rest"`.'
        )


def _rates(metric: Metric, data: AuditData, subgroups: Subgroups, smallest: int) -> _Made:
    table = _confusion(data, subgroups)
    trials, successes = (table[:, list(part)].sum(axis=1) for part in (metric.denominator, metric.numerator))
    if metric.transform == "identity":
        return _counted(successes, trials, subgroups, smallest)

    def between(first: BoolArray, second: BoolArray, within: IntArray | None = None, /) -> Samples:
        if within is not None:
            return _within_strata(successes, trials, (first, second), within, f1=True)
        return RateSamples(
            np.stack([table[mask].sum(axis=0) for mask in (first, second)]),
            numerator=metric.numerator,
            denominator=metric.denominator,
            transform=metric.transform,
            empty_reason=metric.empty,
        )

    return _counted(successes, trials, subgroups, smallest)[0], between


def _scoring(metric: Metric, data: AuditData, subgroups: Subgroups, smallest: int) -> _Made:
    """Count who scores above the median of everybody."""
    score = np.asarray(data.score)
    median = float(np.median(np.repeat(score, data.count)))
    above = _by_cell(subgroups, data.count * (score > median))
    return _counted(above, subgroups.count, subgroups, smallest)


def _counted(successes: IntArray, trials: IntArray, subgroups: Subgroups, smallest: int) -> _Made:
    """Search a rate whose successes and trials are known by cell."""

    def between(first: BoolArray, second: BoolArray, within: IntArray | None = None, /) -> Samples:
        if within is not None:
            return _within_strata(successes, trials, (first, second), within)
        counts = [[int(part[mask].sum()) for mask in (first, second)] for part in (successes, trials, subgroups.count)]
        return RateSamples.from_counts(*counts, given_total=True)

    lattice = subgroups.lattice.take(kept(subgroups, trials, smallest))
    return RateFamily(lattice, successes, trials), between


def _averages(metric: Metric, data: AuditData, subgroups: Subgroups, smallest: int) -> _Made:
    table, parts = _confusion(data, subgroups), _AVERAGES[metric.name]
    successes, trials = (np.stack([table[:, list(part[at])].sum(axis=1) for part in parts]) for at in (0, 1))
    asked = kept(subgroups, subgroups.count, smallest, having=trials)
    family = AverageFamily(subgroups.lattice.take(asked), successes, trials)
    return family, _crude(metric, data, subgroups)


def _means(metric: Metric, data: AuditData, subgroups: Subgroups, smallest: int) -> _Made:
    between = _crude(metric, data, subgroups)
    if data.moments is not None:
        moments = data.moments[metric.value]
        total, squares = (_added(subgroups, part) for part in (moments.wv, moments.wwvv))
        lattice = subgroups.lattice.take(kept(subgroups, subgroups.count, max(smallest, means.FEWEST)))
        return means.MomentFamily(lattice, subgroups.count.astype(np.float64), total, squares), between
    lattice = subgroups.lattice.take(kept(subgroups, subgroups.count, max(smallest, 2)))
    return means.MeanFamily(lattice, subgroups.cell, values_of(metric, data), data.count), between


def _aucs(metric: Metric, data: AuditData, subgroups: Subgroups, smallest: int) -> _Made:
    place = aucs.score_bins(np.asarray(data.score), data.count)
    bins, positive = int(place.max(initial=0)) + 1, np.asarray(data.outcome) == 1
    flat = subgroups.cell * bins + place
    tables = [
        np.bincount(flat, weights=data.count * side, minlength=subgroups.count.size * bins).astype(np.int64)
        for side in (positive, ~positive)
    ]
    x, y = (table.reshape(-1, bins) for table in tables)
    asked = kept(subgroups, subgroups.count, smallest, having=np.stack([x.sum(axis=1), y.sum(axis=1)]))
    return aucs.AucFamily(subgroups.lattice.take(asked), x, y), _crude(metric, data, subgroups)


def _curves(metric: Metric, data: AuditData, subgroups: Subgroups, smallest: int) -> _Made:
    score, outcome = np.asarray(data.score), np.asarray(data.outcome)

    def between(first: BoolArray, second: BoolArray, _: IntArray | None = None, /) -> Samples:
        # Curves are compared score bin by score bin; there is no further division.
        codes = np.where(first[subgroups.cell], 0, np.where(second[subgroups.cell], 1, 2))
        return CurveSamples(score=score, outcome=outcome, codes=codes, count=data.count)

    lattice = subgroups.lattice.take(kept(subgroups, subgroups.count, smallest))
    family = CurveFamily(lattice, subgroups.cell, calibration_bins(score), outcome - score, data.count)
    return family.take(np.flatnonzero(family.bins > 0)), between


def _crude(metric: Metric, data: AuditData, subgroups: Subgroups) -> Between:
    """Compare two sets of people as the group audit compares two groups."""
    sums = Sums(data)

    def between(first: BoolArray, second: BoolArray, within: IntArray | None = None, /) -> Samples:
        codes = np.where(first[subgroups.cell], 0, np.where(second[subgroups.cell], 1, 2))
        sets = Attribute(name="set", labels=("first", "second", "others"), codes=codes)
        if within is not None:
            strata = Attribute(
                name="sets", labels=tuple(map(str, range(int(within.max()) + 1))), codes=within[subgroups.cell]
            )
            return samples_of(metric, Sums(replace(data, strata=strata)), sets)
        # Counts are kept by the attribute's name, sorted values for all: only the former change with the sets.
        return crude_samples(metric, Sums(data) if metric.kind == "table" else sums, sets)

    return between


def _confusion(data: AuditData, subgroups: Subgroups) -> IntArray:
    """Count people by cell of attributes, outcome and decision, shape (C, 4)."""
    place = 4 * subgroups.cell + cells_of(data)
    counts = np.bincount(place, weights=data.count, minlength=4 * subgroups.count.size)
    return counts.astype(np.int64).reshape(-1, 4)


def _by_cell(subgroups: Subgroups, amounts: IntArray) -> IntArray:
    return _added(subgroups, amounts).astype(np.int64)


def _added(subgroups: Subgroups, amounts: FloatArray | IntArray) -> FloatArray:
    """Add an amount of each record up by cell."""
    return np.asarray(np.bincount(subgroups.cell, weights=amounts, minlength=subgroups.count.size), dtype=np.float64)


def _within_strata(
    successes: IntArray, trials: IntArray, sets: tuple[BoolArray, BoolArray], within: IntArray, *, f1: bool = False
) -> Samples:
    """Compare the rates of two sets of cells within strata of cells."""
    tables = [
        [np.bincount(within[mask], weights=part[mask], minlength=int(within.max()) + 1) for mask in sets]
        for part in (successes, trials)
    ]
    return StratifiedRates(*tables, f1=f1)


def kept(subgroups: Subgroups, people: IntArray, smallest: int, having: Sequence[IntArray] | IntArray = ()) -> IntArray:
    """Return the subgroups that are compared: enough people in them and in the rest, and each question once.

    Parameters
    ----------
    subgroups : Subgroups
        All of them.
    people : ndarray of int, shape (C,)
        Whom the metric is about, by cell.
    smallest : int
        The fewest people.
    having : sequence of ndarray of int, shape (C,)
        Parts of them, such as people with outcome 1, of each of which there must be some in a subgroup and the rest.
    """
    enough = np.ones(subgroups.lattice.conditions.shape[0], dtype=bool)
    for part, fewest in ((people, smallest), *((part, aucs.FEWEST) for part in having)):
        size = subgroups.lattice.sums(part.astype(np.float64))
        enough &= (size >= fewest) & (part.sum() - size >= fewest)
    able = np.flatnonzero(enough)
    return able[one_of_each(subgroups.lattice.take(able), people)]


_MAKERS: dict[str, Callable[[Metric, AuditData, Subgroups, int], _Made]] = {
    "rate": _rates,
    "scoring": _scoring,
    "table": _averages,
    "mean": _means,
    "auc": _aucs,
    "calibration": _curves,
}
