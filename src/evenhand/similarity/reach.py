"""How far people may be moved: along each sensitive direction no farther than the groups differ.

The difference of the groups' means is measured on the rows that are moved, while the direction was learned on others:
on its own rows a direction always seems to separate the groups.
"""

from __future__ import annotations

import numpy as np

from evenhand.arrays import FloatArray
from evenhand.similarity.metric import FairMetric, MetricRows, SensitiveDirection


def group_reach(metric: FairMetric, rows: MetricRows) -> tuple[FloatArray, FloatArray]:
    """Return orthonormal free directions and how far people may be moved along each.

    Inputs that hold an attribute are directions by themselves. The others are turned so that the first is the one in
    which groups differ most.

    Parameters
    ----------
    metric : FairMetric
        Its free directions are the ones returned, turned.
    rows : MetricRows
        The rows on which differences are measured.

    Returns
    -------
    directions : ndarray, shape (inputs, r)
    reach : ndarray, shape (r,)
        Largest movement; infinite for a stated metric, which groups do not limit.

    Examples
    --------
    >>> from evenhand.kernels.flow.gradient_flow import QuadraticForm
    >>> from evenhand.models.input_space import numeric_space
    >>> from evenhand.similarity.metric import GroupTable
    >>> x = np.array([[0.0, 5.0], [0.3, 5.0], [2.0, 5.0], [2.3, 5.0]])
    >>> sex = GroupTable(name="sex", labels=("f", "m"), table=np.eye(2)[[0, 0, 1, 1]])
    >>> space = numeric_space({"x": x[:, 0], "z": x[:, 1]}, None, None)
    >>> rows = MetricRows(X=x, groups=(sex,), continuous={}, count=np.ones(4), space=space)
    >>> part = SensitiveDirection(
    ...     attribute="sex", group=1, direction=np.array([1.0, 0.0]), strength=1.0, column=False, label="sex=m"
    ... )
    >>> form = QuadraticForm(basis=np.array([[1.0], [0.0]]))
    >>> metric = FairMetric(form=form, kind="", learned=True, parts=(part,))
    >>> [v.round(6).tolist() for v in group_reach(metric, rows)]
    [[[1.0], [0.0]], [2.0]]
    """
    free = metric.form.free_directions()
    if not metric.learned:
        return free, np.full(free.shape[1], np.inf)
    axes = [p for p in metric.parts if p.column]
    sides = np.array([p.direction for p in axes]).reshape(len(axes), free.shape[0]).T
    rest = free - sides @ (sides.T @ free)
    u, s, _ = np.linalg.svd(rest, full_matrices=False)
    rest = u[:, s > 1e-7]
    learned = [p for p in metric.parts if not p.column]
    moves = (
        [_difference(p, rows) * p.direction for p in learned]
        if metric.parts
        else [m for g in rows.groups if " × " not in g.name for m in _spread(g.table, rows)]
    )
    seen = np.array(moves).reshape(len(moves), free.shape[0]) @ rest  # (moves, r)
    size, turn = np.linalg.eigh(seen.T @ seen)
    order = np.argsort(-size, kind="stable")
    directions = np.hstack([sides, rest @ turn[:, order]])
    along = [_difference(p, rows) for p in axes]
    return directions, np.concatenate([np.array(along), np.sqrt(np.maximum(size[order], 0.0))])


def _difference(part: SensitiveDirection, rows: MetricRows) -> float:
    """Return how far groups differ along a direction: the group's mean from the others', or all means of an input."""
    at = rows.X @ part.direction
    if part.attribute is None:  # stated by the user: only the observed range limits it
        return float(np.ptp(at))
    groups = next((g for g in rows.groups if g.name == part.attribute), None)
    if groups is None:
        return abs(_two_deviations(at, part.attribute, rows))
    if part.column:  # the input holds the attribute itself
        means = _means(at[:, None], groups.table)
        return float(np.ptp(means)) if means.size else 0.0
    own = groups.table[:, part.group]
    other = groups.table.sum(axis=1) - own
    if own.sum() <= 0 or other.sum() <= 0:
        return 0.0
    return abs(float(own @ at / own.sum() - other @ at / other.sum()))


def _two_deviations(at: FloatArray, attribute: str, rows: MetricRows) -> float:
    """Return the difference that goes with two standard deviations of a number: between two equal groups, theirs."""
    n = rows.count.sum()
    value = rows.continuous[attribute]
    mean = value.sum() / n
    each = value / np.maximum(rows.count, 1e-300)
    deviation = float(np.sqrt(rows.count @ (each - mean) ** 2 / n))
    covariance = float((value - rows.count * mean) @ at) / n
    return 2 * covariance / deviation if deviation > 0 else 0.0


def _spread(table: FloatArray, rows: MetricRows) -> list[FloatArray]:
    """Return vectors whose squares add up to those of the groups' differences, for a recipe that names no parts."""
    means = _means(rows.X, table)
    k = len(means)
    return [(means[a] - means[b]) * np.sqrt(2 / k) for a in range(k) for b in range(a)]


def _means(at: FloatArray, table: FloatArray) -> FloatArray:
    people = table.sum(axis=0)
    used = people > 0
    return np.asarray((table[:, used].T @ at) / people[used, None])
