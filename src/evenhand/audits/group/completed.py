"""Samples in which the people of unknown group have been given one, so that a difference is smallest or largest."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from evenhand.arrays import BoolArray, IntArray
from evenhand.audits.group.comparison import beyond_margin
from evenhand.audits.group.options import GroupSetting
from evenhand.audits.group.samples import row_values, samples_of
from evenhand.inference.limits import Margin
from evenhand.inference.rates.samples import RateSamples
from evenhand.inference.samples import Draws, Samples
from evenhand.inference.unknown.completions import ELSEWHERE, A, MeanParts, assign_cells, assign_values
from evenhand.inference.unknown.identified import End
from evenhand.intake import Attribute, AuditData
from evenhand.kernels.counts.binomial import ratio_interval, score_interval
from evenhand.metrics import METRICS, Metric
from evenhand.metrics.metric import FN, FP, TN, TP
from evenhand.summaries import Sums, weight_sums

# Functions of the confusion table with the cells that raise and that lower them.
_TABLES = {"balanced_accuracy": ((TN, TP), (FP, FN)), "aod": ((FP, TP), (TN, FN))}
_DROP = "or drop these people with `missing='drop'`, which assumes that groups are missing at random."


def known_groups(attribute: Attribute) -> list[int]:
    """Return the codes of the groups to be compared: all but that of people whose group is unknown."""
    return [k for k in range(len(attribute.labels)) if k != attribute.unknown]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One metric and one pair of groups of an attribute that is unknown for some people."""

    metric: Metric
    sums: Sums
    attribute: Attribute
    unknown: int  # the code of people whose group is not known
    pair: tuple[int, int]  # codes of the group and its reference
    options: GroupSetting
    draws: Draws

    @property
    def names(self) -> tuple[str, str]:
        """The two groups."""
        return self.attribute.group_name(self.pair[0]), self.attribute.group_name(self.pair[1])

    @property
    def measure(self) -> str:
        """What the finding is called."""
        return f"{self.metric.name}_ratio_bounds" if self.options.ratio else f"{self.metric.name}_bounds"

    @property
    def both_sides(self) -> Draws:
        """How two-sided tests are made, whatever the question's side."""
        return replace(self.draws, alternative="two-sided")

    def value(self, samples: Samples) -> float:
        """Return the difference or ratio; infinite over 0, and NaN for 0 over 0."""
        a, b = self.pair
        if not self.options.ratio:
            return samples.difference(a, b)
        first, second = float(samples.estimate[a]), float(samples.estimate[b])
        if second == 0:
            return math.inf if first > 0 else math.nan
        return first / second

    def end(self, samples: Samples) -> End:
        """Return one end of the possible values."""
        a, b = self.pair
        ratio, draws = self.options.ratio, self.both_sides

        def interval(level: float) -> tuple[float, float]:
            return samples.interval(a, b, level=level, ratio=ratio, draws=draws)[:2]

        def pvalue(value: float) -> float:
            if value == (1.0 if ratio else 0.0):
                return samples.test(a, b, draws).pvalue
            return beyond_margin(samples, a, b, Margin(value=value, low=value, high=value, ratio=ratio), draws)

        return End(estimate=self.value(samples), interval=interval, pvalue=pvalue)


def refusal(metric: Metric, data: AuditData, *, ratio: bool) -> str:
    """Say why a metric has no bounds over people of unknown group; empty where it has."""
    if data.strata is not None:
        return (
            f"{metric.name} cannot be bounded: within strata the worst assignment of people of unknown group is not "
            f"known. Leave `strata=` out, {_DROP}"
        )
    table = metric.name in _TABLES and METRICS[metric.name] is metric
    if metric.kind not in ("rate", "mean") and not table:
        return (
            f"{metric.name} cannot be bounded: bounds over people of unknown group are known for rates and means, and "
            f"it is neither. Ask for a rate, {_DROP}"
        )
    if metric.kind != "mean":
        return ""
    per_row = row_values(metric, data)
    if per_row is None:
        return (
            f"{metric.name} cannot be bounded: it needs rows, and these stayed on their engine. Read the data with "
            "`rows='keep'`."
        )
    if ratio and per_row[0].min() < 0:
        return f"{metric.name} cannot be bounded as a ratio: some of its values lie below 0. Ask for a difference."
    return ""


def completed(asked: Question, *, largest: bool) -> Samples:
    """Make the samples in which the unknown people are where the difference is largest, or smallest."""
    first, second = asked.pair if largest else asked.pair[::-1]
    unknown = asked.attribute.codes == asked.unknown
    if asked.metric.kind == "mean":
        places = _places_by_value(asked, unknown, (first, second))
    else:
        places = assign_cells(asked.sums.cells[unknown], *_directions(asked.metric))
    codes = asked.attribute.codes.copy()
    codes[unknown] = np.select([places == A, places == ELSEWHERE], [first, asked.unknown], second)
    # The sums of an attribute are kept by its name, and each metric places people in its own way.
    name = f"{asked.attribute.name}, unknown people placed for {asked.metric.name} of {first} over {second}"
    return samples_of(asked.metric, asked.sums, replace(asked.attribute, name=name, codes=codes, unknown=None))


def _directions(metric: Metric) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the cells that raise a metric, and those that lower it."""
    if metric.kind != "rate":
        return _TABLES[metric.name]
    return metric.numerator, tuple(c for c in metric.denominator if c not in metric.numerator)


def _places_by_value(asked: Question, unknown: BoolArray, pair: tuple[int, int]) -> IntArray:
    data, codes = asked.sums.data, asked.attribute.codes
    per_row = row_values(asked.metric, data)
    assert per_row is not None
    value, weight = per_row[0], weight_sums(data)[0]
    first, second = (codes == k for k in pair)
    parts = MeanParts(
        weight=(float(weight[first].sum()), float(weight[second].sum())),
        total=(float((weight * value)[first].sum()), float((weight * value)[second].sum())),
        value=value[unknown],
        unknown=weight[unknown],
    )
    others = len(known_groups(asked.attribute)) > 2
    return assign_values(parts, elsewhere=others, ratio=asked.options.ratio)


def tolerated(asked: Question, known: Samples) -> int | None:
    """Return how many unknown people may be placed as badly as possible before a disparity is no longer shown.

    The others are left out, as if they were like the people whose group is known. None where no disparity is shown
    among the known, and for what is not a plain rate of rows. With a margin, score intervals decide.
    """
    if not isinstance(known, RateSamples) or (known.transformed and asked.options.margin is not None):
        return None
    a, b = asked.pair
    options, margin, null = asked.options, asked.options.margin, 1.0 if asked.options.ratio else 0.0
    x, n = known.successes, known.trials
    top, rest = int(x[asked.unknown]), int(n[asked.unknown] - x[asked.unknown])
    counts = np.array([[x[a], n[a] - x[a]], [x[b], n[b] - x[b]]])
    above = asked.value(known) > null

    def shown(number: int) -> bool:
        # Some go to the one group and lower (or raise) its rate, the others to the other group.
        some = np.arange(max(0, number - (top if above else rest)), min(number, rest if above else top) + 1)
        tables = np.repeat(counts[None], len(some), axis=0)
        tables[:, 0, 1 if above else 0] += some
        tables[:, 1, 0 if above else 1] += number - some
        rates = tables[:, :, 0] / tables.sum(-1)
        apart = (rates[:, 0] - rates[:, 1]) * (1 if above else -1)
        worst = tables[int(np.argmin(apart))]
        if apart.min() <= 0:
            return False  # a disparity in the other direction is not the one that was seen
        if margin is None:
            samples = RateSamples(worst, numerator=[0], denominator=[0, 1])
            return samples.test(0, 1, asked.draws).pvalue <= options.alpha
        trials, level = worst.sum(-1), 1 - options.alpha
        interval = ratio_interval if margin.ratio else partial(score_interval, contrast=[1, -1])
        low, high = interval(worst[:, 0], trials, level=level)
        return bool(low > margin.high if above else high < margin.low)

    if math.isnan(asked.value(known)) or not shown(0):
        return None
    low, high = 0, top + rest
    if shown(high):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if shown(middle) else (low, middle)
    return low
