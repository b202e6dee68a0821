"""Two models judge the same people: how much did a mean, or the difference of a mean between groups, change?

Each person has a value under both models, so what both models do alike drops out of the difference and of its variance.
Rates are means over the people in their denominator, which may depend on the model (precision). The change is
studentised by the sum of squared influence values; its reference is the normal law.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from evenhand.arrays import BoolArray, FloatArray

#: With fewer people whom the models treat differently the normal law is not trusted.
FEWEST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change from model a to model b.

    Parameters
    ----------
    before, after : float
        The mean, or its difference between groups, under each model.
    estimate : float
        After minus before.
    error : float
        Its standard error; NaN where too few people are treated differently.
    differ : int
        People with another value, or in the denominator of one model only.
    """

    before: float
    after: float
    estimate: float
    error: float
    differ: int

    @property
    def pvalue(self) -> float:
        """Against no change, two-sided."""
        return 2 * float(special.ndtr(-abs(self.estimate) / self.error)) if self.error > 0 else math.nan

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the ends of the interval of the change."""
        reach = float(special.ndtri((1 + level) / 2)) * self.error
        return self.estimate - reach, self.estimate + reach


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """One value per person under one model, and which people it is averaged over."""

    value: FloatArray
    inside: BoolArray


def paired_change(
    a: Values, b: Values, group: BoolArray, reference: BoolArray | None = None, weight: FloatArray | None = None
) -> Change:
    """Return how a group's mean, or its difference from a reference's, changes from one model to another.

    Parameters
    ----------
    a, b : Values
        The two models on the same people.
    group : ndarray of bool
        Members of the group.
    reference : ndarray of bool, optional
        Members of the reference, none of whom is in the group. Without it the group's own mean is compared.
    weight : ndarray, optional
        Sampling weights.

    Returns
    -------
    Change
        NaN where a mean is over nobody.

    Examples
    --------
    >>> everyone = np.ones(40, dtype=bool)
    >>> old, new = np.zeros(40), np.repeat([1.0, 0.0], [12, 28])
    >>> round(paired_change(Values(old, everyone), Values(new, everyone), everyone).estimate, 2)
    0.3
    """
    w = np.ones(a.value.size) if weight is None else weight
    sides = [(group, 1.0)] + ([] if reference is None else [(reference, -1.0)])
    before = after = square = 0.0
    differ = math.inf
    for members, sign in sides:
        mean_a, pull_a = _mean(a, members, w)
        mean_b, pull_b = _mean(b, members, w)
        before, after = before + sign * mean_a, after + sign * mean_b
        pull = pull_b - pull_a
        size = int(np.count_nonzero((a.inside | b.inside) & members))
        square += float((pull**2).sum()) * (size / (size - 1) if size > 1 else math.nan)
        other = (a.inside != b.inside) | (a.inside & b.inside & (a.value != b.value))
        differ = min(differ, int(np.count_nonzero(other & members)))
    few = differ < FEWEST and differ != 0
    return Change(
        before=before,
        after=after,
        estimate=after - before,
        error=math.nan if few or not square > 0 else math.sqrt(square),
        differ=int(differ),
    )


def _mean(values: Values, members: BoolArray, w: FloatArray) -> tuple[float, FloatArray]:
    """Return a weighted mean over members, and each person's influence on it."""
    share = np.where(values.inside & members, w, 0.0)
    total = float(share.sum())
    if total <= 0:
        return math.nan, np.full(share.size, math.nan)
    share = share / total
    mean = float(share @ np.where(share > 0, values.value, 0.0))
    return mean, np.where(share > 0, share * (values.value - mean), 0.0)
