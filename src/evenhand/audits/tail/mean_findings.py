"""The tail audit's means on request: the mean change (ACD), and the mean of the worst share of changes (CVaR)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from evenhand.audits.finding import Raw, not_computable
from evenhand.audits.tail.evidence import MeanEvidence
from evenhand.audits.tail.group_tail import GroupTail
from evenhand.audits.tail.options import TailSetting
from evenhand.audits.tail.words import mean_sentence, means_sentence, planning_sentence
from evenhand.inference.means import MeanSamples
from evenhand.inference.one_mean import OneMean, tail_rows
from evenhand.inference.pvalues import SMALLEST
from evenhand.inference.samples import Draws
from evenhand.kernels.shared.descending import Descending
from evenhand.results import Finding, Interval

LEAST_ROWS = 2  # of a mean: one row has no spread
LEAST_WORST = 10  # rows in the worst share: with fewer neither its mean nor its error is known
_DIGITS = 12  # decimals of a change; what lies behind them is the rounding of a model


def mean_findings(measure: str, a: GroupTail, b: GroupTail, options: TailSetting) -> Iterator[Raw]:
    """Compare the means of two groups, and test each of them.

    Parameters
    ----------
    measure : {"acd", "cvar"}
        Of everybody, or of the worst share.
    a, b : GroupTail
        The group and its reference.
    options : TailSetting
        Margin, share, level, draws.

    Yields
    ------
    Raw
        Their difference, and one for each group.
    """
    yield _difference(measure, a, b, options)
    yield from (_own(measure, group, options) for group in (a, b))


def _share(measure: str, options: TailSetting) -> float:
    return 1.0 if measure == "acd" else options.cvar_share


def _draws(name: str, options: TailSetting) -> Draws:
    return Draws(n_resamples=options.n_resamples, seed=options.seed, name=f"tail/{name}")


def _changes(group: GroupTail) -> Descending:
    """Return the changes without their last bits, which may depend on the rows beside each and part equal ones."""
    return group.cd.changed(lambda values: np.round(values, _DIGITS))


def _too_few(group: GroupTail, share: float) -> str:
    """Say why a group has no such mean; empty when it has."""
    n = group.cd.size
    if n < LEAST_ROWS:
        return f"`{group.name}` has {n} rows; a mean and its error need at least {LEAST_ROWS}."
    worst = math.ceil(share * n - 1e-9)
    if share < 1 and worst < LEAST_WORST:
        return (
            f"`{group.name}` has {n:,} rows, of which the worst {100 * share:.3g} % are {worst}; their mean needs at "
            f"least {LEAST_WORST} of them. Give a larger `cvar_share`, or more rows."
        )
    return ""


def _counts(share: float, *groups: GroupTail) -> dict[str, dict[str, float]]:
    return {
        g.name: {
            "rows": g.cd.size,
            "worst": math.ceil(share * g.cd.size - 1e-9),
            "better_off": int(g.cd.above(0.0)),
        }
        for g in groups
    }


def _own(measure: str, group: GroupTail, options: TailSetting) -> Raw:
    """Test one group's mean: ACD on both sides of the margin, CVaR above it only."""
    share, margin, names = _share(measure, options), options.margin or 0.0, (group.name, group.other)
    shown, counts = MeanEvidence(share=share), _counts(share, group)
    why = _too_few(group, share)
    if why:
        return not_computable("tail", measure, names, why, counts=counts, evidence=shown)
    mean = OneMean(_changes(group), share, -options.span, group.ceiling, _draws(measure, options))

    def interval(level: float) -> Interval:
        low, high = mean.interval(level)
        return Interval(low=low, high=high, level=level, kind=mean.words)

    if measure == "acd":
        beyond = 1.0 if abs(mean.estimate) < margin else mean.two_sided(math.copysign(margin, mean.estimate))
        inside = max(mean.tail(-margin, "greater"), mean.tail(margin, "less"))
        differs = mean.two_sided(0.0)
    else:
        beyond, differs = (min(1.0, 2 * mean.tail(value, "greater")) for value in (margin, 0.0))
        inside = 0.0 if group.ceiling <= margin else mean.tail(margin, "less")
    plain = interval(options.level)
    flips = mean.flips
    evidence = replace(
        shown,
        fact=mean_sentence(group, mean.estimate, share, plain, margin, high_is_good=options.favourable == "high"),
        planning=planning_sentence(plain),
        threshold=None if share == 1 else {group.name: tail_rows(mean.descending, share)[1]},
        test=mean.words,
        statistic=mean.estimate / mean.standard_error if mean.standard_error > 0 else None,
        n_resamples=getattr(flips, "used", 0),
        pvalue_floor=None if flips is None else 2 * flips.floor,
        warnings=mean.warnings,
    )
    if options.margin is not None:
        evidence = replace(evidence, equivalence_pvalue=inside, difference_pvalue=differs)
    finding = Finding(
        audit="tail",
        measure=measure,
        groups=names,
        estimate=mean.estimate,
        interval=plain,
        pvalue=max(beyond, SMALLEST),
        margin=options.margin,
        counts=counts,
    )
    return Raw(finding=finding, evidence=evidence, interval_at=interval)


def _difference(measure: str, a: GroupTail, b: GroupTail, options: TailSetting) -> Raw:
    """Compare the two means by Welch's statistic of the rows whose means they are."""
    share, margin, names = _share(measure, options), options.margin or 0.0, (a.name, b.name)
    shown, counts = MeanEvidence(share=share), _counts(share, a, b)
    why = " ".join(text for text in (_too_few(group, share) for group in (a, b)) if text)
    if why:
        return not_computable("tail", f"{measure}_difference", names, why, counts=counts, evidence=shown)
    (first, above_a), (second, above_b) = (tail_rows(_changes(group), share) for group in (a, b))
    samples = MeanSamples(
        value=np.concatenate([first.values, second.values]),
        codes=np.repeat([0, 1], [first.values.size, second.values.size]),
        count=np.concatenate([np.diff(first.ends), np.diff(second.ends)]),
        n_groups=2,
    )
    draws = _draws(f"{measure}_difference", options)

    def interval(level: float) -> Interval:
        low, high, kind = samples.interval(0, 1, level=level, ratio=False, draws=draws)
        return Interval(low=max(low, -2 * options.span), high=min(high, 2 * options.span), level=level, kind=kind)

    test = samples.test(0, 1, draws)
    if math.isnan(test.pvalue):
        said = " ".join(test.warnings) or "The test's statistic is undefined on these data."
        return not_computable("tail", f"{measure}_difference", names, said, counts=counts, evidence=shown)
    plain, values = interval(options.level), (first.mean(), second.mean())
    evidence = replace(
        shown,
        fact=means_sentence(a, b, values, share),
        planning=planning_sentence(plain),
        values=dict(zip(names, values, strict=True)),
        threshold=None if share == 1 else {a.name: above_a, b.name: above_b},
        test=test.method,
        statistic=test.statistic,
        n_resamples=test.n_resamples,
        pvalue_floor=test.floor,
        warnings=tuple(test.warnings),
    )
    pvalue = test.pvalue
    if options.margin is not None:
        pvalue = samples.beyond(0, 1, low=-margin, high=margin, ratio=False, draws=draws)
        inside = samples.equivalence(0, 1, low=-margin, high=margin, ratio=False, draws=draws)
        evidence = replace(evidence, equivalence_pvalue=inside, difference_pvalue=test.pvalue)
    finding = Finding(
        audit="tail",
        measure=f"{measure}_difference",
        groups=names,
        estimate=values[0] - values[1],
        interval=plain,
        pvalue=max(pvalue, SMALLEST),
        margin=options.margin,
        counts=counts,
    )
    return Raw(finding=finding, evidence=evidence, interval_at=interval)
