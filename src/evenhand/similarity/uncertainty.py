"""How sure a learned metric is: refits on resampled rows, and the angles between their subspaces."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from evenhand.arrays import FloatArray
from evenhand.errors import DataError
from evenhand.kernels.flow.gradient_flow import QuadraticForm
from evenhand.kernels.shared.seeds import stream
from evenhand.similarity.metric import FairMetric, GroupTable, MetricRows, Resampled, Similarity, angles


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MetricSpread:
    """Refits of a metric on bootstrap resamples of its rows."""

    forms: tuple[QuadraticForm, ...]  # one per refit that could be made
    # (refits,): largest principal angle in degrees between each refit's free directions and the fitted ones.
    largest_angle: FloatArray
    # (refits,): spectral norm of the change of the matrix; delta_d of [maity2021] A.4 is twice this.
    distance: FloatArray
    failed: int  # resamples on which the metric could not be fitted


def bootstrap_metric(
    recipe: Similarity, rows: MetricRows, fitted: FairMetric, *, refits: int, seed: int
) -> MetricSpread:
    """Refit a metric on resampled rows, or on resampled pairs where it is made from pairs.

    Parameters
    ----------
    recipe : Similarity
        How the metric is made.
    rows : MetricRows
        The rows it was made from, in an order that does not depend on the input's.
    fitted : FairMetric
        The metric itself.
    refits : int
        Number of resamples.
    seed : int
        From `evenhand.kernels.shared.seeds.seed_of`.

    Returns
    -------
    MetricSpread
    """
    dense, free = fitted.form.dense(), fitted.form.free_directions()
    forms: list[QuadraticForm] = []
    for b in range(refits):
        rng = stream(seed, "individual/metric", b)
        try:
            if isinstance(recipe, Resampled):
                form = recipe.resampled(rng).fit(rows).form
            else:
                form = recipe.fit(draw(rows, rng)[0]).form
        except DataError:
            continue
        forms.append(form)
    others = [form.free_directions() for form in forms]
    turns = [angles(free, o).max(initial=0.0) if free.size and o.size else np.nan for o in others]
    moves = [np.linalg.norm(form.dense() - dense, 2) for form in forms]
    return MetricSpread(
        forms=tuple(forms), largest_angle=np.array(turns), distance=np.array(moves), failed=refits - len(forms)
    )


def draw(rows: MetricRows, rng: np.random.Generator) -> tuple[MetricRows, FloatArray]:
    """Draw people again: each counts a Poisson number of times, the bootstrap for people kept as counts.

    Parameters
    ----------
    rows : MetricRows
        The people.
    rng : Generator
        Where the numbers come from.

    Returns
    -------
    rows, times
        The people drawn, and how many times each row counts of what it counted.
    """
    one = rows.count <= 1
    times = rng.poisson(rows.count) / np.maximum(rows.count, 1e-300)
    groups: list[GroupTable] = []
    for g in rows.groups:
        # Several people in a row: who of them is drawn decides the groups as well.
        table = np.where(one[:, None], g.table * times[:, None], 0.0)
        table[~one] = rng.poisson(g.table[~one])
        if not groups:
            times[~one] = table[~one].sum(axis=1) / rows.count[~one]
        groups.append(replace(g, table=table))
    drawn = replace(
        rows,
        groups=tuple(groups),
        continuous={name: sums * times for name, sums in rows.continuous.items()},
        count=rows.count * times,
    )
    return drawn, times
