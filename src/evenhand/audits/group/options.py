"""What a group audit can be asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evenhand.audits.margin import check_reach, parse_margin
from evenhand.audits.options import IntervalOptions, option
from evenhand.errors import UsageError
from evenhand.inference.limits import Margin
from evenhand.inference.pvalues import ALTERNATIVES
from evenhand.metrics import Metric, resolve

# Which findings there are where groups are guessed.
GUESSED = {"both": ("bounds", "em"), "bounds": ("bounds",), "em": ("em",)}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOptions(IntervalOptions):
    """What a group audit is asked."""

    metrics: Sequence[str | Metric] | str | Metric | None = option(
        None,
        "Names of the catalogue (`evenhand.METRICS`) or metrics of one's own. By default a few that the columns allow.",
        kind="sequence of str or Metric, optional",
        positional=True,
    )
    reference: Mapping[str, str] | str | None = option(
        None,
        'The group each attribute\'s other groups are compared with, such as ``{"sex": "Male"}``; by default the '
        'largest group. Or a word: ``"highest"`` for the group whose rate is highest, whichever that is, ``"rest"`` '
        'for all other groups together, ``"overall"`` for everybody. For some attributes only: '
        '``{"race": "highest"}``, where a group of that label goes before the word.',
        kind="mapping of str to str, or str, optional",
    )
    compare: str = option(
        "reference",
        "Against the reference, or all pairs.",
        words=("reference", "pairs"),
        offer=("pairs", "all pairs of groups in place of the reference"),
    )
    ratio: bool = option(
        False,
        "Report ratios instead of differences, where a metric's name does not say which. The p-value is the same: "
        "equal values have difference 0 and ratio 1.",
        offer=(True, "ratios in place of differences"),
    )
    margin: float | str | Margin | None = option(
        None,
        'What counts as negligible: ``0.05``, ``"ratio:0.9"``, ``"four-fifths"``. A ratio margin implies `ratio`. With '
        "one, `disparity` means shown beyond it and `equivalent` shown inside it; a margin that no value can exceed is "
        "refused.",
        kind="float or str, optional",
        offer=(0.05, 'what counts as negligible: a difference, "ratio:0.9" or "four-fifths"'),
    )
    alternative: str = option("two-sided", "Of the group's value compared with the reference's.", words=ALTERNATIVES)
    n_resamples: int = option(9999, "Random permutations, where the distribution is not exact.", least=99)
    method: str = option(
        "auto",
        'Reference distribution; "auto" takes the best that holds its level.',
        words=("auto", "exact", "permutation", "limit"),
    )
    permute: str = option(
        "auto",
        'Which rows swap groups. "all" and "outcome" are the paper\'s two schemes.',
        words=("auto", "denominator", "outcome", "all"),
    )
    variance: str = option(
        "auto",
        'The studentising variance of rates under "all" and "outcome": "unpooled" is the form the paper prints, "none" '
        "does not studentise. Both are there for comparison and do not hold their level.",
        words=("auto", "null", "unpooled", "none"),
    )
    group_probability_method: str = option(
        "both",
        'With group probabilities: "bounds" says what they allow without further assumptions, "em" estimates under the '
        "assumption that decisions and outcomes do not depend on the proxy given the group.",
        kind='{"both", "bounds", "em"}',
    )
    midp: bool = option(False, "Mid-p for exact tests: more power, level not guaranteed.")

    def check(self) -> None:
        """Refuse an unknown metric, and a margin that is not understood or that no value can exceed."""
        _check_method(self.group_probability_method)
        margin = parse_margin(self.margin)
        for metric in () if self.metrics is None else resolve(self.metrics):
            check_reach(margin, metric.name, metric.high - metric.low)
            _check_comparison(metric, margin, self.alternative)


def _check_method(method: str) -> None:
    """Refuse the two shortcuts with group probabilities, with the reason, and words that are no method."""
    reasons = {
        "weighting": "counts each person for every group by its probability, so that the people of one group count in "
        "the rate of the other: differences come out too small where decisions depend on the group, and with the wrong "
        "size or sign where they depend on the proxy",
        "threshold": "takes the most probable group for the true one, so that the people of one group count in the "
        "rate of the other, and a group that is seldom the most probable is seen through few of its people",
    }
    if method in reasons:
        raise UsageError(
            f"`group_probability_method` is `{method}`, which is not offered: it {reasons[method]}. More people do not "
            "repair that. Allowed: `both`, `bounds`, `em`."
        )
    if method not in GUESSED:
        raise UsageError(f"`group_probability_method` is `{method}`; allowed: `both`, `bounds`, `em`.")


def _check_comparison(metric: Metric, margin: Margin | None, alternative: str) -> None:
    """Refuse a margin of the other kind, and a direction where there is none."""
    if margin is not None and metric.compare and margin.ratio != (metric.compare == "ratio"):
        kind, other = ("ratio", "difference") if margin.ratio else ("difference", "ratio")
        allowed = "a difference such as 0.05" if metric.compare == "difference" else "a ratio such as `ratio:0.9`"
        raise UsageError(
            f"Metric `{metric.name}` is a {other} of two groups and the margin of {margin.value:g} is for a {kind}. "
            f"Give {allowed}, or audit `{metric.name}` apart."
        )
    if metric.kind == "gaps" and alternative != "two-sided":
        raise UsageError(
            f"Metric `{metric.name}` has no direction, so `alternative` cannot be `{alternative}`. Leave it at "
            "`two-sided`, or ask for `aod`, which has a sign."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSetting(GroupOptions):
    """What a group audit works with: its options, and what the data and other options decide."""

    metrics: tuple[Metric, ...]
    reference: Mapping[str, str]
    margin: Margin | None
    level: float
