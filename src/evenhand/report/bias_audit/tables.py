"""From a run whose groups were compared with the highest rate to the tables of a bias audit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from evenhand.results import AuditRun, Evidence, Finding, Interval, Verdict

SMALL_SHARE = 0.02  # below it the rules of New York City allow a category to be left out of the ratios


@dataclass(frozen=True, slots=True, kw_only=True)
class Category:
    """One line of a table."""

    label: str
    people: int | None  # None where it is held back
    share: float = math.nan  # of the people whose category is known and published
    chosen: int | None = None  # how many were selected, or scored above the median
    rate: float = math.nan
    ratio: float = math.nan  # to the highest rate
    interval: Interval | None = None  # of the ratio; all of a run's hold at once at its error rate
    pvalue_adjusted: float = math.nan
    verdict: Verdict | None = None  # None for the category that has the highest rate
    reason: str = ""

    @property
    def held_back(self) -> bool:
        """Whether its counts are not published."""
        return self.people is None

    @property
    def small(self) -> bool:
        """Whether it has less than 2 % of the people."""
        return self.share < SMALL_SHARE


@dataclass(frozen=True, slots=True, kw_only=True)
class BiasTable:
    """The categories of one attribute, or of several crossed."""

    attribute: str
    metric: str  # "selection_rate" or "scoring_rate"
    categories: tuple[Category, ...]
    unknown: int | None  # people whose category is not known; None where that number is held back

    @property
    def highest(self) -> Category | None:
        """The category that has the highest rate; None where no ratio is defined."""
        return next((c for c in self.categories if c.ratio == 1 and c.verdict is None), None)


def bias_tables(run: AuditRun, metric: str, unknown: Mapping[str, str]) -> tuple[BiasTable, ...]:
    """Lay out the findings of a group audit with the reference ``"highest"``, a table per attribute.

    Parameters
    ----------
    run : AuditRun
        A group audit of ratios.
    metric : str
        ``"selection_rate"`` or ``"scoring_rate"``.
    unknown : mapping of str to str
        Attribute to the label of people whose group is not known, where there are some.

    Returns
    -------
    tuple of BiasTable
    """
    (result,) = run.results
    pairs = [(f, e) for f, e in zip(result.findings, result.evidence, strict=True) if f.measure == f"{metric}_ratio"]
    held = run.data.get("suppression", {}).get("groups", {})
    return tuple(
        _table(name, metric, sizes, unknown.get(name), tuple(held.get(name, ())), pairs)
        for name, sizes in run.data["groups"].items()
    )


def _table(
    name: str,
    metric: str,
    sizes: Mapping[str, int],
    unknown: str | None,
    held: tuple[str, ...],
    pairs: list[tuple[Finding, Evidence]],
) -> BiasTable:
    """Make the table of one attribute."""
    own = [(f, e) for f, e in pairs if f.groups[1:] == (f"{name}=highest",)]
    compared = {f.groups[0]: (f, e) for f, e in own}
    counts = {group: c for f, _ in own for group, c in f.counts.items()}
    rates = {group: r for _, e in own if isinstance(e.values, Mapping) for group, r in e.values.items()}
    known = {label: int(n) for label, n in sizes.items() if label != unknown}
    total = sum(known.values())
    alone = not own  # too few groups are published to compare them
    categories = []
    for label in sorted({*known, *(label for label in held if label != unknown)}):
        group = f"{name}={label}"
        if label not in known:
            categories.append(Category(label=label, people=None))
            continue
        share = known[label] / total
        if alone:
            categories.append(Category(label=label, people=known[label], share=share))
            continue
        # Where nobody at all was selected, the first category has no finding, and stands in none of the others'.
        number = counts.get(group, {"numerator": 0}).get("numerator")  # none with sampling weights
        chosen, rate = None if number is None else int(number), rates.get(group, 0.0)
        if group not in compared:
            ratio = 1.0 if rate else math.nan
            categories.append(
                Category(label=label, people=known[label], share=share, chosen=chosen, rate=rate, ratio=ratio)
            )
            continue
        finding, evidence = compared[group]
        categories.append(
            Category(
                label=label,
                people=known[label],
                share=share,
                chosen=chosen,
                rate=rate,
                ratio=finding.estimate,
                interval=_interval(finding, evidence),
                pvalue_adjusted=finding.pvalue_adjusted,
                verdict=finding.verdict,
                reason=finding.reason,
            )
        )
    missing = None if unknown in held else int(sizes.get(unknown, 0)) if unknown is not None else 0
    return BiasTable(attribute=name, metric=metric, categories=tuple(categories), unknown=missing)


def _interval(finding: Finding, evidence: Evidence) -> Interval | None:
    """Return the interval that agrees with the verdict and holds together with all others of the run."""
    decisive = evidence.verdict_interval
    if decisive is None or finding.interval is None:
        return finding.interval
    if finding.verdict in (Verdict.DISPARITY, Verdict.EQUIVALENT):
        return decisive
    return max(finding.interval, decisive, key=lambda interval: interval.level)
