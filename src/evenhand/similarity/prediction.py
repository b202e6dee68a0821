"""Do the inputs predict the groups? Tested on rows apart from those the directions are learned on.

Each attribute is regressed on the inputs in one half of the rows, and the other half is ranked by the regression; then
the halves change places. If the inputs have nothing to do with the group, the group's ranks in a half are a random draw
from that half's, whatever the other half said, so that each half's standardised rank sum (Wilcoxon) has mean 0 and
variance 1. The two are not independent (they are almost equal when there are many inputs), so their mean is compared
with a standard normal: at most conservative.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from evenhand.arrays import FloatArray
from evenhand.similarity.metric import MetricRows, SensitiveDirection
from evenhand.similarity.subspace import SensitiveSubspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """How well one attribute, or one of its groups, is predicted on rows apart."""

    attribute: str  # the attribute
    group: int | None  # the group against the rest, where there are more than two
    label: str  # the same in words
    # Chance that a member of the group ranks above somebody else; 0.5 is a coin. For a number: its correlation
    # with the prediction, brought to the same scale.
    auc: float
    pvalue: float  # of "the inputs say nothing about the group"


def predicted_groups(recipe: SensitiveSubspace, one: MetricRows, two: MetricRows) -> list[Predicted]:
    """Test for each regression of a recipe whether it predicts on rows it has not seen.

    Parameters
    ----------
    recipe : SensitiveSubspace
        Which attributes, and with what penalty.
    one, two : MetricRows
        Two halves of the rows, without common people.

    Returns
    -------
    list of Predicted
        In the order of the regressions; those that only one half could make have p-value 1.

    Examples
    --------
    >>> from evenhand.models.input_space import numeric_space
    >>> from evenhand.similarity.metric import GroupTable
    >>> x = np.linspace(-1, 1, 40)[:, None]
    >>> sex = GroupTable(name="sex", labels=("f", "m"), table=np.eye(2)[(x[:, 0] > 0).astype(int)])
    >>> rows = MetricRows(X=x, groups=(sex,), continuous={}, count=np.ones(40), space=numeric_space({"x": x}, None, 1))
    >>> found = predicted_groups(SensitiveSubspace(), rows, rows)
    >>> found[0].auc, found[0].pvalue < 0.001
    (1.0, True)
    """
    learned = [{_key(p, rows): p for p in recipe.regressions(rows)} for rows in (one, two)]
    out = []
    for key in dict.fromkeys([*learned[0], *learned[1]]):
        pair = [half.get(key) for half in learned]
        scores = [_score(p, rows) for p, rows in zip(pair, (two, one), strict=True) if p is not None]
        z = sum(s[0] for s in scores) / 2 if len(scores) == 2 else -math.inf
        name = next(p for p in pair if p is not None)
        out.append(
            Predicted(
                attribute=key[0],
                group=key[1],
                label=key[0] if key[1] is None else name.label,
                auc=float(np.mean([s[1] for s in scores])),
                pvalue=float(special.ndtr(-z)),
            )
        )
    return out


def _key(part: SensitiveDirection, rows: MetricRows) -> tuple[str, int | None]:
    assert part.attribute is not None
    table = next((g.table for g in rows.groups if g.name == part.attribute), None)
    several = table is not None and int((table.sum(axis=0) > 0).sum()) > 2
    return part.attribute, part.group if several else None


def _score(part: SensitiveDirection, rows: MetricRows) -> tuple[float, float]:
    """Return the standardised rank sum (or correlation) of one direction on rows apart, and the AUC."""
    rank = _ranks(rows.X @ part.direction, rows.count)
    n = float(rows.count.sum())
    table = next((g.table for g in rows.groups if g.name == part.attribute), None)
    centred = rank - float(rows.count @ rank) / n
    spread = float(rows.count @ centred**2)
    if table is None:
        value = rows.continuous[str(part.attribute)]  # sums
        gap = value - rows.count * (value.sum() / n)
        size = float(np.sqrt((gap**2 / np.maximum(rows.count, 1e-300)).sum() * spread))
        r = float(gap @ centred) / size if size > 0 else 0.0
        return r * math.sqrt(max(n - 1, 0.0)), (1 + r) / 2
    members = table[:, part.group]
    k = float(members.sum())
    if spread <= 0 or not 0 < k < n:
        return 0.0, 0.5
    gain = float(members @ centred)
    # Permutation variance of a rank sum, with ties.
    z = gain / math.sqrt(k * (n - k) / (n * (n - 1)) * spread)
    return z, 0.5 + gain / (k * (n - k))


def _ranks(score: FloatArray, count: FloatArray) -> FloatArray:
    """Return mid-ranks of rows that stand for several people each; scores that differ by rounding are ties."""
    place = stats.rankdata(np.round(score, 12), method="dense") - 1
    people = np.bincount(place, weights=count)
    return np.asarray((np.cumsum(people) - (people - 1) / 2)[place])
