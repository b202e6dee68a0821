"""From subgroups to findings: estimate, interval, evidence, and the sentence that says what was seen."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from evenhand.arrays import BoolArray
from evenhand.audits.finding import Raw
from evenhand.audits.scan.description import Described, cells_of_subgroup
from evenhand.audits.scan.evidence import MOST_NAMED, BeyondParent, Detectable, Overlap, ScanEvidence
from evenhand.audits.scan.options import ScanSetting
from evenhand.audits.scan.search import Search
from evenhand.audits.scan.subgroups import Subgroups
from evenhand.inference.overall import OverallSamples
from evenhand.inference.samples import Draws, Samples
from evenhand.inference.scan.detectable import detectable_difference
from evenhand.inference.scan.rates import RateFamily
from evenhand.kernels.scan.lattice import parents
from evenhand.metrics import Metric
from evenhand.results import Finding, Interval

# Sizes of subgroups for which it is said what would have been found.
_SIZES = (50, 100, 200, 500, 1000, 2000, 5000, 10_000, 50_000, 100_000)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Context:
    """What all findings of one metric share."""

    searched: Search
    subgroups: Subgroups
    setting: ScanSetting
    detectable: tuple[Detectable, ...]


def context_of(searched: Search, subgroups: Subgroups, setting: ScanSetting) -> Context:
    """Gather what all findings of one metric share."""
    return Context(
        searched=searched,
        subgroups=subgroups,
        setting=setting,
        detectable=detectable_differences(searched),
    )


def detectable_differences(searched: Search) -> tuple[Detectable, ...]:
    """Return what would have been found, for subgroups of several sizes; rates only."""
    family = searched.family
    if not isinstance(family, RateFamily) or not math.isfinite(searched.critical):
        return ()
    able = [size for size in _SIZES if size < family.rows / 2]
    told = [(size, detectable_difference(size, family.rows, family.gained, searched.critical)) for size in able]
    return tuple(Detectable(size=size, difference=d) for size, d in told if not math.isnan(d))


def finding_of(context: Context, described: Described, others: Sequence[int]) -> Raw:
    """Make the raw finding of one subgroup.

    Parameters
    ----------
    context : Context
        What all findings of the metric share.
    described : Described
        The subgroup.
    others : sequence of int
        Places of the other subgroups that are shown, for overlaps.
    """
    searched, setting, i = context.searched, context.setting, described.index
    people = cells_of_subgroup(searched, i)
    name = context.subgroups.name(searched.family.lattice.conditions[i])
    samples = searched.between(people, ~people)
    if setting.reference == "overall":
        outside = samples.counts[1].get("denominator", samples.counts[1]["rows"])  # a mean is about all rows
        share = float(searched.family.size[i] / (searched.family.size[i] + outside))
        samples = OverallSamples(samples, share=share)
    names = (name, setting.reference)
    test = samples.test(0, 1, Draws())
    interval_at = partial(_interval, samples)
    one, two = samples.values(0, 1)
    difference = samples.difference(0, 1)
    size = int(searched.family.size[i])
    bar = math.exp(-searched.critical) if math.isfinite(searched.critical) else 0.0
    finding = Finding(
        audit="scan",
        measure=searched.metric.name,
        groups=names,
        estimate=difference,
        interval=_joint_interval(interval_at, bar, setting),
        pvalue=test.pvalue,
        counts={n: dict(samples.counts[k]) for k, n in enumerate(names)},
    )
    evidence = ScanEvidence(
        fact=_fact(searched, finding, (one, two), size),
        planning=_planning(context, size),
        values={names[0]: one, names[1]: two},
        test=test.method,
        statistic=test.statistic,
        exact=test.exact,
        pvalue_floor=test.floor,
        adjusted_pvalue=float(max(searched.pvalue[i], test.pvalue)),
        conditions=tuple(context.subgroups.tested[k] for k in searched.family.lattice.conditions[i] if k >= 0),
        people=size,
        more_people=size * (one - two) if _counts_people(searched.metric) else None,
        beyond_parents=tuple(_beyond(context, i, people)) if described.own else (),
        stands_for=tuple(_name(context, j) for j in described.stands_for[:MOST_NAMED]),
        stands_for_number=len(described.stands_for),
        overlaps=_overlaps(context, i, people, others),
        described=context.subgroups.described,
        considered=searched.considered,
        tested=searched.family.size.size,
        permutations=setting.n_resamples if setting.control == "family-wise" and setting.split is None else 0,
        critical_pvalue=bar,
        detectable=context.detectable,
        control=setting.control,
        confirmed_on=None if setting.split is None else int(searched.people.sum()),
    )
    return Raw(finding=finding, evidence=evidence, interval_at=interval_at)


def _name(context: Context, index: int) -> str:
    return context.subgroups.name(context.searched.family.lattice.conditions[index])


def _interval(samples: Samples, level: float) -> Interval:
    low, high, kind = samples.interval(0, 1, level=level, ratio=False, draws=Draws())
    return Interval(low=low, high=high, level=level, kind=kind)


def _joint_interval(interval_at: Callable[[float], Interval], bar: float, setting: ScanSetting) -> Interval | None:
    """Return the interval at the level that a single subgroup is tested at.

    With the family-wise error rate such intervals hold for all subgroups together; with the false discovery rate they
    fail for at most a share alpha of the subgroups that are shown.
    """
    if not 0 < bar < 1:
        return None
    one = interval_at(1 - bar)
    kind = "false coverage rate" if setting.control == "fdr" else "simultaneous over all subgroups"
    return Interval(low=one.low, high=one.high, level=setting.level, kind=f"{kind}, {one.kind}")


def _counts_people(metric: Metric) -> bool:
    """Say whether a metric is a share of people, so that a difference of it is a number of people."""
    return metric.kind in ("rate", "scoring") and metric.transform == "identity"


def _fact(searched: Search, finding: Finding, values: tuple[float, float], size: int) -> str:
    """Say who, how many they are, by how much they differ and, for a rate, how many people that is."""
    metric, (one, two) = searched.metric, values
    name, reference = finding.groups
    if metric.kind == "calibration":
        return (
            f"At the same scores, outcome minus score differs between {name} ({size:,} people) and the rest by "
            f"{finding.estimate:.3f} (root mean square over score bins); their own calibration errors are {one:.3f} "
            f"and {two:.3f}."
        )
    whom, whose = ("the rest", "the rest's") if reference == "rest" else ("everybody", "everybody's")
    called = metric.per_group or metric.name
    said = f"{called} is {one:.3f} for {name} ({size:,} people) and {two:.3f} for {whom}: "
    said += f"a difference of {one - two:+.3f}."
    if not _counts_people(metric) or math.isnan(one - two):
        return said
    more, number = "more" if one > two else "fewer", abs(size * (one - two))
    return (
        f"{said} That is {_of_100(one)} of 100 people against {_of_100(two)} of 100, or about {number:,.0f} of these "
        f"{size:,} people {more} than at {whose} rate."
    )


def _of_100(rate: float) -> str:
    """Write a rate as people of a hundred, with a decimal where whole people would hide it.

    Examples
    --------
    >>> _of_100(0.412), _of_100(0.0061)
    ('41', '0.6')
    """
    return f"{100 * rate:.0f}" if 0.1 <= rate <= 0.9 or rate in (0.0, 1.0) else f"{100 * rate:.1f}"


def _planning(context: Context, size: int) -> str:
    able = [d for d in context.detectable if d.size <= max(size, _SIZES[0])]
    if not able:
        return ""
    near = able[-1]
    return (
        f"Among the {context.searched.family.size.size:,} subgroups that were tested, a difference of about "
        f"{near.difference:.3f} would have been shown in 8 of 10 cases for one of {near.size:,} people."
    )


def _beyond(context: Context, own: int, people: BoolArray) -> Iterator[BeyondParent]:
    """Say what a subgroup adds to each description that leaves one of its conditions out.

    Nothing is said where the others are fewer people than are ever shown.
    """
    level = context.setting.level
    for parent in parents(context.searched.family.lattice, own):
        others = context.subgroups.cells(parent) & ~people
        samples = context.searched.between(people, others)
        if any(samples.reason[:2]) or int(context.subgroups.count[others].sum()) < context.setting.smallest:
            continue
        low, high, _ = samples.interval(0, 1, level=level, ratio=False, draws=Draws())
        yield BeyondParent(
            parent=context.subgroups.name(parent),
            difference=samples.difference(0, 1),
            low=low,
            high=high,
            level=level,
            pvalue=samples.test(0, 1, Draws()).pvalue,
        )


def _overlaps(context: Context, own: int, people: BoolArray, others: Sequence[int]) -> tuple[Overlap, ...]:
    count = context.subgroups.count
    shares = []
    for j in others:
        if j != own:
            both = float(count[people & cells_of_subgroup(context.searched, j)].sum() / count[people].sum())
            if both > 0:
                shares.append((both, _name(context, j)))
    shares.sort(key=lambda pair: (-pair[0], pair[1]))
    return tuple(Overlap(group=name, share=share) for share, name in shares[:MOST_NAMED])
