"""One question of a comparison: how does the difference between two groups change from one model to the other?

With g_A and g_B the difference of a metric between two groups under each model, U = g_B - g_A is the change and
V = g_B + g_A. The size of the difference changes unless U = 0 or V = 0, because |g_B| = |g_A| means g_B = g_A or
g_B = -g_A. So the test of "as large as before" needs both U and V to differ from 0 (an intersection-union test: its
p-value is the larger one); their signs say whether it became larger (the same sign) or smaller.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special

from evenhand.arrays import AnyArray, FloatArray
from evenhand.audits.group.influence import influence
from evenhand.audits.group.samples import row_values, samples_of
from evenhand.change.sides import Sides
from evenhand.inference.means import MeanSamples
from evenhand.inference.paired_samples import InfluenceSamples, PairedRates
from evenhand.inference.samples import Draws, MarginSamples
from evenhand.intake import Attribute
from evenhand.metrics import Metric
from evenhand.summaries import Sums

#: With fewer people decided otherwise the normal law of influence values is not trusted.
FEWEST = 10

_DENOMINATORS = ((0, 1, 2, 3), (2, 3), (0, 1))  # those that do not depend on the decision
_INSTEAD = {"di": "spd", "aod_abs": "aod", "calibration_error": "mean_residual", "scoring_rate": "mean_score"}


class Own(NamedTuple):
    """One group's value under both models, and the interval of its change."""

    before: float
    after: float
    low: float
    high: float
    differ: int  # people whom the models treat differently


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Paired:
    """A metric of all groups of an attribute under both models."""

    before: FloatArray  # (K,)
    after: FloatArray  # (K,)
    change: MarginSamples  # of each group from a to b
    total: MarginSamples  # of each group, a plus b
    differ: AnyArray  # (K,): people whom the models treat differently
    reason: tuple[str, ...]  # why a group has no value

    def own(self, k: int, level: float) -> Own:
        """Return a group's own change with its interval."""
        z = float(special.ndtri((1 + level) / 2))
        if isinstance(self.change, PairedRates):
            _, low, high = self.change.known(k, z)
        elif isinstance(self.change, InfluenceSamples):
            middle, error = float(self.change.estimate[k]), self.change.own_error(k)
            low, high = middle - z * error, middle + z * error
        else:
            low = high = math.nan
        return Own(float(self.before[k]), float(self.after[k]), low, high, int(self.differ[k]))


def pair(metric: Metric, sides: Sides, attribute: Attribute) -> Paired | str:
    """Put a metric of both sides together; a sentence where no paired inference is known.

    Parameters
    ----------
    metric : Metric
        What is compared.
    sides : Sides
        The two models.
    attribute : Attribute
        Whose groups.

    Returns
    -------
    Paired or str
    """
    if metric.name in _INSTEAD or metric.kind == "rows":
        other = f"; `{_INSTEAD[metric.name]}` has one" if metric.name in _INSTEAD else ""
        return f"The change of `{metric.name}` has no paired test here{other}."
    if metric.kind == "rate" and metric.transform == "identity" and metric.denominator in _DENOMINATORS:
        return _rates(metric, sides, attribute) if sides.a.weight is None else _means(metric, sides, attribute)
    return _means(metric, sides, attribute) if metric.kind == "mean" else _by_influence(metric, sides, attribute)


def _rates(metric: Metric, sides: Sides, attribute: Attribute) -> Paired:
    """Count who gains and who loses the counted result, by group."""
    k, table = len(attribute.labels), sides.joint(attribute)
    counted = np.isin(np.arange(4), metric.numerator)
    inside = np.isin(np.arange(4), metric.denominator)
    trials = table[:, inside][:, :, inside].sum(axis=(1, 2))
    has_a, has_b = table[:, counted].sum(axis=(1, 2)), table[:, :, counted].sum(axis=(1, 2))
    both = table[:, counted][:, :, counted].sum(axis=(1, 2))
    change = PairedRates(has_b - both, has_a - both, trials, metric.empty)
    groups = np.repeat(np.arange(k), 3)
    twice = np.tile([0.0, 1.0, 2.0], k)  # how many of the two models give the result
    sums = np.stack([trials - has_a - has_b + both, has_a + has_b - 2 * both, both], axis=1).astype(np.int64)
    total = MeanSamples(value=twice, codes=groups, n_groups=k, count=sums.ravel(), empty_reason=metric.empty)
    with np.errstate(invalid="ignore", divide="ignore"):
        before, after = has_a / trials, has_b / trials
    return Paired(
        before=before, after=after, change=change, total=total, differ=has_a + has_b - 2 * both, reason=change.reason
    )


def _means(metric: Metric, sides: Sides, attribute: Attribute) -> Paired:
    """Compare each person's value under both models; both sides average over the same people."""
    one, two = row_values(metric, sides.a), row_values(metric, sides.b)
    assert one is not None
    assert two is not None
    (a, inside), (b, _) = one, two
    k, codes, count = len(attribute.labels), attribute.codes[inside], sides.a.count[inside]
    weight = None if sides.a.weight is None else sides.a.weight[inside]
    made = [
        MeanSamples(value=v[inside], codes=codes, n_groups=k, count=count, weight=weight, empty_reason=metric.empty)
        for v in (b - a, a + b)
    ]
    differ = np.bincount(codes, weights=count * (a != b)[inside], minlength=k)
    before, after = (made[1].estimate - made[0].estimate) / 2, (made[1].estimate + made[0].estimate) / 2
    return Paired(before=before, after=after, change=made[0], total=made[1], differ=differ, reason=made[0].reason)


def _by_influence(metric: Metric, sides: Sides, attribute: Attribute) -> Paired | str:
    parts = []
    for side in (sides.a, sides.b):
        pull = influence(metric, side, attribute)
        if pull is None:
            return f"The change of `{metric.name}` has no paired test here."
        samples = samples_of(metric, Sums(side), attribute)
        parts.append((np.asarray(samples.estimate), pull, samples.reason))
    (before, pull_a, why_a), (after, pull_b, why_b) = parts
    codes, count = attribute.codes, sides.a.count
    reason = tuple(a or b for a, b in zip(why_a, why_b, strict=True))
    change, total = (
        InfluenceSamples(after + sign * before, pull_b + sign * pull_a, codes, count, reason) for sign in (-1, 1)
    )
    other = _differ(metric, sides)
    differ = np.bincount(codes, weights=count * other, minlength=len(attribute.labels))
    return Paired(before=before, after=after, change=change, total=total, differ=differ, reason=reason)


def _differ(metric: Metric, sides: Sides) -> FloatArray:
    role = "score" if "score" in metric.needs else "decision"
    one, two = (getattr(side, role) for side in (sides.a, sides.b))
    return np.asarray(one != two, dtype=np.float64)


class Answer(NamedTuple):
    """What the tests say about one pair of groups."""

    size: float  # p-value against "as large as before", or with a margin "larger or smaller by at most the margin"
    change: float  # p-value against "no change"
    alike: float  # p-value against "changed by more than the margin"; NaN without a margin
    not_worse: float  # p-value against "larger by more than the margin"; NaN without a margin
    larger: bool  # whether the difference seen is larger than before
    test: str  # how the change was tested


def ask(paired: Paired, a: int, b: int, margin: float | None, draws: Draws) -> Answer:
    """Test one pair of groups.

    Parameters
    ----------
    paired : Paired
        The metric under both models.
    a, b : int
        Codes of the group and its reference.
    margin : float or None
        Change of the difference's size that counts as negligible.
    draws : Draws
        How permutation laws are made where they are needed.

    Returns
    -------
    Answer
    """
    change, total = paired.change, paired.total
    larger = change.difference(a, b) * total.difference(a, b) > 0
    tested = change.test(a, b, draws)
    moved = tested.pvalue
    if not margin:
        size = max(moved, total.test(a, b, draws).pvalue) if not math.isnan(moved) else math.nan
        return Answer(size, moved, math.nan, math.nan, larger, tested.method)
    beyond = [s.beyond(a, b, low=-margin, high=margin, ratio=False, draws=draws) for s in (change, total)]
    size = max(beyond)
    alike = change.equivalence(a, b, low=-margin, high=margin, ratio=False, draws=draws)
    return Answer(size, moved, alike, _not_worse(change, total, a, b, margin, draws), larger, tested.method)


def _not_worse(change: MarginSamples, total: MarginSamples, a: int, b: int, margin: float, draws: Draws) -> float:
    """Return the p-value against "larger by at least the margin": U and V are both above it, or both below minus it.

    Each of the two is refused by whichever of U and V speaks more clearly, at twice its p-value.
    """

    def inside(samples: MarginSamples, sign: int) -> float:
        # Against "sign times the value is at least the margin".
        return samples.one_sided(a, b, sign * margin, alternative="less" if sign > 0 else "greater", draws=draws)

    sides = [min(1.0, 2 * min(inside(change, sign), inside(total, sign))) for sign in (1, -1)]
    return max(sides)
