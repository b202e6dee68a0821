"""What a scan can be asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evenhand.audits.options import IntervalOptions, option
from evenhand.metrics import Metric, resolve


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanOptions(IntervalOptions):
    """What a scan is asked."""

    metrics: Sequence[str | Metric] | str | Metric | None = option(
        None,
        "Names of the catalogue (`evenhand.METRICS`). By default the error rates, or what else the columns allow.",
        kind="sequence of str or Metric, optional",
        positional=True,
    )
    attributes: Sequence[str] | str | None = option(
        None,
        "Group columns and features whose combinations are searched. By default all group columns.",
        kind="sequence of str, optional",
    )
    depth: int = option(
        3,
        "The most conditions that describe a subgroup.",
        least=1,
        offer=(2, "how many conditions describe a subgroup at most"),
    )
    bins: int = option(
        4,
        "A numeric feature is cut into so many parts of about equal size; the parts, and everything below or above a "
        "cut, are conditions. Cuts use the feature alone, never decisions or outcomes, so they cost nothing.",
        least=2,
    )
    hierarchy: Mapping[str, Mapping[str, Sequence[str]]] | None = option(
        None,
        "For an attribute, names for sets of its values that are conditions too: "
        '``{"job": {"manual": ["craft", "farming"]}}``.',
        kind="mapping, optional",
    )
    smallest: int = option(20, "Subgroups of fewer people are neither searched nor shown.", least=1)
    reference: str = option(
        "rest",
        "What a subgroup is compared with: everybody else, or everybody. The test is the same.",
        words=("rest", "overall"),
    )
    control: str = option(
        "family-wise",
        'What the error rate is about. "family-wise": the chance of any false subgroup over everything searched. '
        '"fdr": the expected share of false ones among those that are reported; it may find more and promises less.',
        words=("family-wise", "fdr"),
    )
    split: float | None = option(
        None,
        "Find on this share of the people and confirm on the others, in place of one search of all.",
        between=(0, 1),
        offer=(0.5, "find on one part of the people, confirm on the other"),
    )
    show: int = option(5, "How many subgroups that are not shown to differ are listed, most evidence first.", least=0)
    n_resamples: int = option(1999, "Random permutations, shared by all subgroups.", least=99)
    memory: float = option(2.0, "Gigabytes that the list of subgroups may take; a larger search is refused.", above=0)

    def check(self) -> None:
        """Refuse a metric that is not known."""
        if self.metrics is not None:
            resolve(self.metrics)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanSetting(ScanOptions):
    """What a scan works with: its options, and what the data decide."""

    metrics: tuple[Metric, ...]
    attributes: tuple[str, ...]
    level: float
    seed: int
