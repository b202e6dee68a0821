"""Who is moved under which metric: directions that predict groups on rows apart, and each half under the other's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.arrays import IntArray
from evenhand.audits.individual.moving import check_step
from evenhand.audits.individual.options import MapOptions
from evenhand.audits.individual.people import People, halves, same_space, shuffled
from evenhand.audits.individual.region import Box, observed_box
from evenhand.errors import DataError
from evenhand.intake import AuditData
from evenhand.similarity.metric import FairMetric, MetricRows, Similarity
from evenhand.similarity.prediction import Predicted, predicted_groups
from evenhand.similarity.subspace import SensitiveSubspace

# Below this the normal limit says nothing at all.
LEAST_ROWS = 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fold:
    """Some people, the metric they are moved under and where they may go."""

    index: IntArray  # the people who are moved
    rows: MetricRows  # the rows the metric was learned from
    # The rows on which differences between groups are measured: those who are moved, where their groups are known.
    moved: MetricRows
    metric: FairMetric  # who counts as similar
    box: Box  # where they may go


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """The folds of an audit and the recipe behind them."""

    recipe: Similarity  # with only the attributes that the inputs predict
    folds: tuple[Fold, ...]  # one or two
    predicted: tuple[Predicted, ...]  # how well the inputs predict each attribute; empty for a stated metric


class NotPredictedError(DataError):
    """No attribute is predicted by the inputs: no direction can be called group-like."""

    def __init__(self, message: str, predicted: Sequence[Predicted]) -> None:
        super().__init__(message)
        self.predicted = tuple(predicted)


def make_plan(people: People, recipe: Similarity, metric_rows: str | AuditData, how: MapOptions, alpha: float) -> Plan:
    """Fit the metric, and where people may go, for each part of the people.

    Parameters
    ----------
    people : People
        All who are audited.
    recipe : Similarity
        As the user asked for it.
    metric_rows : {"crossfit", "shared"} or AuditData
        Where a metric is learned.
    how : MapOptions
        How people are moved.
    alpha : float
        Error rate of the test that the inputs predict some attribute.

    Returns
    -------
    Plan
    """
    if people.count.sum() < LEAST_ROWS:
        raise DataError(
            f"{people.count.sum():.0f} rows are too few for any statement; at least {LEAST_ROWS} are needed."
        )
    everyone = np.arange(people.X.shape[0])
    own = None if isinstance(metric_rows, str) else same_space(people, metric_rows)
    one, two = halves(people)
    if min(one.size, two.size) == 0:
        raise DataError("There are too few different people to learn the fair metric apart from them.")
    predicted: list[Predicted] = []
    if recipe.learned:
        sides = (people.learn(one), people.learn(two)) if own is None else split(own)
        recipe, predicted = predictive(recipe, *sides, alpha)
    if own is not None:
        parts = [(everyone, own)]
    elif metric_rows == "crossfit" and (recipe.learned or how.method == "search"):
        parts = [(one, people.learn(two)), (two, people.learn(one))]
    else:
        parts = [(everyone, people.learn(everyone))]
    folds = []
    for index, rows in parts:
        metric = recipe.fit(rows)
        check_step(metric.form, how)
        moved = people.learn(index)
        known = {g.name for g in moved.groups} | set(moved.continuous)
        if not all(p.attribute is None or p.attribute in known for p in metric.parts):
            moved = rows
        box = observed_box(rows, metric, moved, how.limit)
        folds.append(Fold(index=index, rows=rows, moved=moved, metric=metric, box=box))
    return Plan(recipe=recipe, folds=tuple(folds), predicted=tuple(predicted))


def predictive(
    recipe: Similarity, one: MetricRows, two: MetricRows, alpha: float
) -> tuple[Similarity, list[Predicted]]:
    """Return the recipe with only what the inputs predict on rows apart, or say that they predict nothing.

    Parameters
    ----------
    recipe : Similarity
        A learned one.
    one, two : MetricRows
        Two halves of the rows.
    alpha : float
        Error rate over all regressions together.

    Returns
    -------
    recipe, predicted
    """
    ours = isinstance(recipe, SensitiveSubspace)
    asked = recipe if isinstance(recipe, SensitiveSubspace) else SensitiveSubspace(getattr(recipe, "attributes", None))
    predicted = predicted_groups(asked, one, two)
    shown = [p for p in predicted if p.pvalue <= alpha / len(predicted)]
    if not shown and not (ours and asked.axes(one)):
        tested = ", ".join(f"{p.label}: p {p.pvalue:.2g}, AUC {p.auc:.2f}" for p in predicted)
        raise NotPredictedError(
            "The model's inputs do not predict the protected groups better than chance on rows apart "
            f"({tested or 'no group to predict'}; p at most {alpha / max(len(predicted), 1):.3g} is needed). So no "
            "direction can be called group-like, and nobody can be moved as if they belonged to another group.",
            predicted,
        )
    return (asked.keeping({(p.attribute, p.group) for p in shown}) if ours else recipe), predicted


def split(rows: MetricRows) -> tuple[MetricRows, MetricRows]:
    """Split rows for a metric in two halves by a hash of their inputs."""
    order = shuffled(rows.X)
    return rows.take(np.sort(order[::2])), rows.take(np.sort(order[1::2]))
