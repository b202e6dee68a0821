"""Fair-SMOTE: as many training rows for each combination of group and label, and none that hang on the group.

Combinations of group and label with fewer rows than the largest get synthetic ones. Each grows out of a parent row and
two of its nearest neighbours in the same combination, as in differential evolution: with probability `crossover` a
number becomes parent + amplification * (first neighbour - second neighbour), kept within the numbers of the
combination, and anything else takes the value of one of the three; otherwise the parent's value stays. Then comes
situation testing: a logistic regression is fitted to these rows with the group as an input, each row's group is
changed, and rows that would be decided otherwise in another group are left out. The learner is fitted to the rest.

Columns of the features that the group determines (one value for each group) are the attribute itself, and changing the
group changes them. Where the features hold no such column, the group is given to the testing model alone; the learner
still decides without it.

Source
    Chakraborty, Majumder and Menzies (2021), Bias in machine learning software: why? how? what to do?, ESEC/FSE;
    five neighbours, amplification .8 and crossover rate .8 are theirs.
Where it fails
    Equal numbers in the training rows are not equal decisions: features that stand for the group keep the gap. The
    balanced rows have as many labels 1 as 0, so that far more people get decision 1 where 1 is rare, and
    probabilities are no longer calibrated. A combination with few rows is filled with near copies of them. Synthetic
    people can be impossible ones: each column is changed by itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors

from evenhand.arrays import BoolArray, FloatArray, IntArray
from evenhand.errors import DataError, UsageError
from evenhand.kernels.shared.seeds import seed_of, stream
from evenhand.mitigation.estimator import About, Mitigator, Training, fit_learner, to_numbers


class FairSMOTE(Mitigator):
    """A learner fitted to rows balanced by synthetic ones, without those whose decision hangs on the group.

    Parameters
    ----------
    estimator : estimator, optional
        The learner, not fitted. By default logistic regression.
    n_neighbors : int
        Neighbours that a parent's two partners are drawn from.
    amplification : float
        How far a number moves along the difference of the two partners.
    crossover : float
        Probability that a column of a synthetic row is changed.
    situation_testing : bool
        Whether rows whose decision hangs on the group are left out.
    random_state : int
        Seed.

    Attributes
    ----------
    decides_as_ : estimator
        The fitted learner.
    synthetic_rows_, removed_rows_ : int
        Rows made, and rows left out by situation testing.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> group = rng.choice(["a", "b"], 200, p=[0.7, 0.3])
    >>> X = rng.normal(size=(200, 2)) + (group == "a")[:, None]
    >>> method = FairSMOTE().fit(X, X[:, 0] > 0.5, sensitive_features=group)
    >>> cells = [np.sum((group == g) & ((X[:, 0] > 0.5) == y)) for g in "ab" for y in (0, 1)]
    >>> bool(method.synthetic_rows_ == 4 * max(cells) - 200)
    True
    """

    about = About(
        stage="before",
        needs="rows of every label in every group",
        changes="the training rows: synthetic ones are added, some are left out",
        cost="7",
        grid=({"situation_testing": False}, {"situation_testing": True}),
    )

    def __init__(
        self, estimator: Any = None, *, n_neighbors: int = 5, amplification: float = 0.8, crossover: float = 0.8,
        situation_testing: bool = True, random_state: int = 0,
    ) -> None:  # fmt: skip
        self.estimator = estimator
        self.n_neighbors = n_neighbors
        self.amplification = amplification
        self.crossover = crossover
        self.situation_testing = situation_testing
        self.random_state = random_state

    def _fit(self, rows: Training) -> None:
        if self.n_neighbors < 1 or self.amplification < 0 or not 0 <= self.crossover <= 1:
            raise UsageError(
                "Fair-SMOTE needs `n_neighbors` of at least 1, `amplification` of at least 0 and `crossover` from 0 to "
                f"1; got {self.n_neighbors!r}, {self.amplification!r} and {self.crossover!r}."
            )
        rng = stream(seed_of(self.random_state), "fair_smote")
        there = rows.take(rows.weights > 0)
        balanced = balance(there, self.n_neighbors, self.amplification, self.crossover, rng)
        self.synthetic_rows_ = balanced.y.size - there.y.size
        kept = np.ones(balanced.y.size, dtype=bool)
        if self.situation_testing:
            kept = ~changes_with_group(balanced)
        if np.unique(balanced.y[kept]).size < 2:
            raise DataError(
                f"Situation testing leaves {int(kept.sum())} rows, which do not hold both labels: almost every "
                "decision hangs on the group. Use `situation_testing=False`."
            )
        self.removed_rows_ = int((~kept).sum())
        self.decides_as_ = fit_learner(self.estimator, balanced.take(kept))


def balance(
    rows: Training, n_neighbors: int, amplification: float, crossover: float, rng: np.random.Generator
) -> Training:
    """Return the rows with synthetic ones behind them, so that all combinations of group and label weigh the same.

    Parameters
    ----------
    rows : Training
        Rows of weight above 0.
    n_neighbors, amplification, crossover
        As for `FairSMOTE`.
    rng : Generator
        Where random numbers come from.

    Returns
    -------
    Training
    """
    cell = 2 * rows.group + rows.y
    mass = np.bincount(cell, weights=rows.weights, minlength=2 * len(rows.groups))
    if not mass.all():
        empty = int(np.flatnonzero(mass == 0)[0])
        raise DataError(
            f"Group `{rows.groups[empty // 2]}` has no rows with label `{rows.classes[empty % 2]}`, from which "
            "Fair-SMOTE could make more. Leave the group out, or join it with another one."
        )
    missing = mass.max() - mass
    sizes = np.round(missing / rows.weights.mean()).astype(np.int64)
    numbers = np.asarray(to_numbers(rows.X).fit_transform(rows.X), dtype=np.float64)
    families = [
        _families(np.flatnonzero(cell == code), int(size), numbers, rows.weights, n_neighbors, rng)
        for code, size in enumerate(sizes)
    ]
    family = np.concatenate(families, axis=1)
    kind = np.repeat(np.arange(sizes.size), sizes)
    weight = None
    if rows.weight is not None:
        share = np.divide(missing, sizes, out=np.zeros_like(missing), where=sizes > 0)
        weight = np.concatenate([rows.weight, share[kind]])
    return replace(
        rows,
        X=_with_children(rows.X, family, cell, amplification, crossover, rng),
        y=np.concatenate([rows.y, kind % 2]),
        group=np.concatenate([rows.group, kind // 2]),
        weight=weight,
    )


def changes_with_group(rows: Training) -> BoolArray:
    """Tell which rows a logistic regression that knows the group would decide otherwise in another group.

    Parameters
    ----------
    rows : Training
        Rows to learn from and to test.

    Returns
    -------
    ndarray of bool, shape (rows,)
    """
    names, columns = _columns(rows.X)
    others = [name for name in names if not _determined(columns[name], rows.group)]
    numbers = np.zeros((rows.y.size, 0))
    if others:
        part = nw.from_native(rows.X, eager_only=True, pass_through=True)
        chosen = part[others].to_native() if isinstance(part, nw.DataFrame) else np.asarray(rows.X)[:, others]
        numbers = np.asarray(to_numbers(chosen).fit_transform(chosen), dtype=np.float64)
    member = np.eye(len(rows.groups))
    model = LogisticRegression(max_iter=1000)
    model.fit(np.hstack([numbers, member[rows.group]]), rows.y, sample_weight=rows.weight)
    size = rows.y.size
    decided = [
        model.predict(np.hstack([numbers, np.broadcast_to(member[code], (size, member.shape[1]))]))
        for code in range(len(rows.groups))
    ]
    changed: BoolArray = np.ptp(np.asarray(decided), axis=0) > 0
    return changed


def _families(
    inside: IntArray, size: int, numbers: FloatArray, weight: FloatArray, n_neighbors: int, rng: np.random.Generator
) -> IntArray:
    """Draw parents of one combination and two of each one's nearest neighbours, shape (3, size)."""
    if size == 0:
        return np.zeros((3, 0), dtype=np.int64)
    parent = rng.choice(inside.size, size=size, p=weight[inside] / weight[inside].sum())
    several = min(n_neighbors, inside.size - 1)
    if several == 0:
        return inside[np.tile(parent, (3, 1))]
    asked, back = np.unique(parent, return_inverse=True)
    search = NearestNeighbors(n_neighbors=several + 1).fit(numbers[inside])
    near = search.kneighbors(numbers[inside[asked]], return_distance=False)
    # A row is not its own neighbour; among copies of it, it need not come first.
    own = near == asked[:, None]
    own[~own.any(axis=1), -1] = True
    near = near[~own].reshape(asked.size, several)[back]
    first = rng.integers(several, size=size)
    second = (first + rng.integers(1, several, size=size)) % several if several > 1 else first
    row = np.arange(size)
    family: IntArray = inside[np.stack([parent, near[row, first], near[row, second]])]
    return family


def _with_children(
    X: Any, family: IntArray, cell: IntArray, amplification: float, crossover: float, rng: np.random.Generator
) -> Any:
    """Return the features with one row for each family behind them."""
    names, columns = _columns(X)
    parent, first, second = family
    made = {}
    for name in names:
        values = columns[name]
        change = rng.random(parent.size) < crossover
        if values.dtype.kind in "iuf" and np.unique(values).size > 2:
            moved = values[parent] + amplification * (values[first].astype(np.float64) - values[second])
            low, high = _ranges(values, cell)
            child = np.clip(moved, low[cell[parent]], high[cell[parent]])
            child = np.where(change, np.round(child) if values.dtype.kind in "iu" else child, values[parent])
        else:
            source = family[rng.integers(3, size=parent.size), np.arange(parent.size)]
            child = values[np.where(change, source, parent)]
        made[name] = np.concatenate([values, child.astype(values.dtype)])
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return np.column_stack([made[name] for name in names])
    series = [
        nw.new_series(name, made[name].tolist(), kind, backend=frame.implementation)
        for name, kind in frame.schema.items()
    ]
    return series[0].to_frame().with_columns(*series[1:]).to_native()


def _columns(X: Any) -> tuple[list[Any], dict[Any, NDArray[Any]]]:
    """Return the names of the columns, positions in an array, and their values."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return list(frame.columns), {name: frame[name].to_numpy() for name in frame.columns}
    matrix = np.asarray(X)
    return list(range(matrix.shape[1])), dict(enumerate(matrix.T))


def _ranges(values: NDArray[Any], cell: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and the largest value of each combination."""
    low, high = np.full(cell.max() + 1, np.inf), np.full(cell.max() + 1, -np.inf)
    np.minimum.at(low, cell, values)
    np.maximum.at(high, cell, values)
    return low, high


def _determined(values: NDArray[Any], group: IntArray) -> bool:
    """Tell whether a column is the attribute itself: one value for each group, and not the same for all."""
    texts = values.astype(str)
    each = [np.unique(texts[group == code]) for code in np.unique(group)]
    return all(v.size == 1 for v in each) and len({v[0] for v in each}) > 1
