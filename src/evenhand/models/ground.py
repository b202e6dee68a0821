"""Where rows stand before a boundary: what moves, what stays as it is, and the model asked where they move to.

The usual model is a pipeline that scales numbers and encodes text, with a classifier behind it. Between the
pipeline's start and its classifier a move of the numbers is affine, whatever the categories: found by probing. So rows
are encoded once, and a search asks the classifier alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import BoolArray, FloatArray, IntArray
from evenhand.errors import DataError, UsageError
from evenhand.models.audited import AuditedModel
from evenhand.models.gradient_sklearn import final_step, is_sklearn
from evenhand.models.input_space import Columns, InputSpace, Types, pipeline_space
from evenhand.models.search import AskRows
from evenhand.models.surface import Surface, estimator_surface, matrix_surface

Encode = Callable[[Columns], FloatArray]

_TILE = 8192  # rows encoded at once
_PROBES = 200  # rows on which it is checked that moves are affine


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ground:
    """Rows, and the model asked at other numbers with a row's own categories."""

    name: str  # what reports call the model
    columns: Columns  # the model's inputs
    # Columns that move, and columns that stay as they are.
    moving: tuple[str, ...]
    frozen: tuple[str, ...] = ()
    X: FloatArray  # (n, p): numbers in their own units
    jumps: BoolArray  # (p,): numbers that jump instead of moving
    decision: FloatArray  # (n,): the model's decisions
    # From points, shape (m, p), and the rows they were moved from to decisions, and to score minus threshold.
    decide: AskRows
    margin: AskRows
    shared: bool  # whether a point's decision does not depend on whose point it is: no row has categories of its own
    surface: Surface | None  # the classifier, where moves are affine before it; None when the model is asked as a whole
    E: FloatArray  # (n, q): the rows as the classifier takes them
    A: FloatArray  # (p, q): the step of each number in them
    # From the classifier's coefficients to what each jumping column adds to the margin, shape (n, jumping).
    parts: Callable[[FloatArray], FloatArray]

    def described(self) -> dict[str, Any]:
        """Name what moves and what is frozen, where there are categories."""
        return {} if self.shared else {"moving_columns": list(self.moving), "frozen_columns": list(self.frozen)}

    def one_to_one(self) -> bool:
        """Say whether each number feeds one encoded column, and each of these has one source at most."""
        return bool((np.count_nonzero(self.A, axis=0) <= 1).all() and (np.count_nonzero(self.A, axis=1) <= 1).all())


def find_ground(model: AuditedModel, columns: Columns, categorical: Sequence[str] = ()) -> Ground:
    """Find out what of the model's inputs can move, and how the model is asked there.

    Examples
    --------
    >>> from evenhand.models.adapter import adapt
    >>> columns = {"age": np.array([30.0, 40.0]), "job": np.array(["Sales", "Craft"])}
    >>> find_ground(adapt(lambda frame: frame["age"] / 50, columns), columns).described()
    {'moving_columns': ['age'], 'frozen_columns': ['job']}
    """
    coded = category_columns(model.source, columns, model.types)
    if not coded:
        return _numbers(model, columns, categorical)
    columns = {n: c for n, c in columns.items() if model.inputs is None or n in model.inputs}
    moving = tuple(n for n in columns if n not in coded and n not in categorical)
    columns = {n: np.asarray(c, dtype=float) if n in moving else c for n, c in columns.items()}
    X = _matrix({name: columns[name] for name in moving}, len(next(iter(columns.values()))))
    space, last = _taken_apart(model.source, columns, model.types)
    A = None if space is None else _affine(space.encode, columns, moving, X)
    rows = {
        "columns": columns, "moving": moving, "X": X, "jumps": np.zeros(len(moving), dtype=bool), "shared": False,
        "frozen": tuple(n for n in columns if n not in moving and n not in categorical),
    }  # fmt: skip
    if space is not None and A is not None:
        return _encoded(rows, estimator_surface(model, last), space.encode, A, categorical)
    return _whole(rows, model)


def _matrix(columns: Columns, n: int) -> FloatArray:
    for name, column in columns.items():
        if not np.isfinite(column).all():
            raise DataError(f"Feature `{name}` has missing or infinite values; fill or drop them first.")
    return np.column_stack([np.empty((n, 0)), *columns.values()])


def _numbers(model: AuditedModel, columns: Columns, categorical: Sequence[str]) -> Ground:
    """Stand on a plain matrix: every column is a number."""
    names = tuple(columns)
    X = _matrix({name: np.asarray(c).astype(float) for name, c in columns.items()}, len(next(iter(columns.values()))))
    surface = matrix_surface(model, names)
    jumps = np.array([name in categorical for name in names])
    return Ground(
        name=surface.name, columns=columns, moving=names, X=X, jumps=jumps, decision=surface.decide(X),
        decide=lambda z, _: surface.decide(z), margin=lambda z, _: surface.score(z) - surface.threshold, shared=True,
        surface=surface, E=X, A=np.eye(len(names)), parts=lambda slope: X[:, jumps] * slope[jumps],
    )  # fmt: skip


def _encoded(
    rows: Mapping[str, Any], surface: Surface, encode: Encode, A: FloatArray, categorical: Sequence[str]
) -> Ground:
    """Stand behind a pipeline's transformers, where moves of the numbers are affine."""
    X, columns = rows["X"], rows["columns"]
    E = encode(columns)
    decision = surface.decide(E)

    def ask(method: Callable[[FloatArray], FloatArray]) -> AskRows:
        def at(points: FloatArray, of: IntArray) -> FloatArray:
            out = np.empty(len(points))
            for start in range(0, len(points), _TILE):
                part = slice(start, start + _TILE)
                out[part] = method(E[of[part]] + (points[part] - X[of[part]]) @ A)
            return out

        return at

    return Ground(
        **rows, name=surface.name, decision=decision, decide=ask(_decider(surface, E, decision)),
        margin=ask(lambda e: surface.score(e) - surface.threshold), surface=surface, E=E, A=A,
        parts=lambda slope: _parts(encode, columns, E, slope, categorical),
    )  # fmt: skip


def _whole(rows: Mapping[str, Any], model: AuditedModel) -> Ground:
    """Ask the whole model, in a frame of numbers that were moved and categories that stay."""
    X, columns, moving = rows["X"], rows["columns"], rows["moving"]
    surface = estimator_surface(model, model.source)

    def framed(points: FloatArray, of: IntArray) -> Any:
        # A logarithm has no value below 0. A clipped point is nearer to its row, so distances stay upper bounds.
        points = np.clip(points, X.min(axis=0), X.max(axis=0))
        moved = {name: points[:, j] for j, name in enumerate(moving)}
        return model.frame({name: moved[name] if name in moved else c[of] for name, c in columns.items()})

    frame = model.frame(columns)
    decision = surface.decide(frame)
    decided = _decider(surface, frame, decision)
    return Ground(
        **rows, name=surface.name, decision=decision, decide=lambda z, of: decided(framed(z, of)),
        margin=lambda z, of: surface.score(framed(z, of)) - surface.threshold, surface=None,
        E=np.empty((len(X), 0)), A=np.empty((len(moving), 0)), parts=lambda _: np.empty((len(X), 0)),
    )  # fmt: skip


def is_number(column: NDArray[Any]) -> bool:
    """Say whether a column holds numbers, so that there is a distance along it.

    Examples
    --------
    >>> is_number(np.array([1, 2])), is_number(np.array(["1", "2"], dtype=object))
    (True, False)
    """
    if column.dtype.kind in "biuf":
        return True
    if column.dtype.kind != "O" or any(isinstance(v, str | bytes) for v in column):
        return False
    try:
        column.astype(float)
    except (TypeError, ValueError):
        return False
    return True


def category_columns(source: Any, columns: Columns, types: Types | None = None) -> list[str]:
    """Return the columns along which the model has no distance: text, and numbers that its pipeline one-hot encodes.

    Examples
    --------
    >>> category_columns(None, {"age": np.array([30, 40]), "job": np.array(["Sales", "Craft"])})
    ['job']
    """
    space, _ = _taken_apart(source, columns, types)
    coded = set() if space is None else {i.column for i in space.inputs if i.category is not None}
    return [name for name, column in columns.items() if name in coded or not is_number(column)]


def _taken_apart(source: Any, columns: Columns, types: Types | None) -> tuple[InputSpace | None, Any]:
    """Return the space behind a pipeline's transformers, and its classifier; no space for anything else."""
    source = getattr(source, "best_estimator_", source)  # of a grid search
    steps, last = final_step(source) if is_sklearn(source) else ([], source)
    if not steps:
        return None, source
    try:
        return pipeline_space(steps, columns, types), last
    except DataError:
        raise
    except (ValueError, IndexError):  # a step whose inputs cannot be followed: the whole pipeline is asked
        return None, source


def _affine(encode: Encode, columns: Columns, moving: Sequence[str], X: FloatArray) -> FloatArray | None:
    """Return the change of the encoded row for a step along each number, or None when it is not always the same."""
    some = np.unique(np.linspace(0, len(X) - 1, min(len(X), _PROBES)).astype(int))
    head = {name: column[some] for name, column in columns.items()}

    def moved(rows: Columns, shift: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):  # a logarithm of what is below 0 is not a number, and so not affine
            return encode(dict(rows) | {name: rows[name] + shift[:, j] for j, name in enumerate(moving)})

    spread = X.std(axis=0)
    step = np.where(spread > 0, spread, 1.0)
    here = encode(head)
    A = np.empty((len(moving), here.shape[1]))
    if moving:  # all steps of the first row at once: a call of a pipeline takes as long as some hundred rows
        first = {name: np.repeat(column[:1], len(moving)) for name, column in head.items()}
        A = (moved(first, np.diag(step)) - here[0]) / step[:, None]
    A[np.abs(A) * step[:, None] <= 1e-12 * (1 + np.abs(here).max(axis=0))] = 0.0
    # Far out, both ways and all columns at once: clipping, logarithms and products show.
    for far in (3.0, -3.0, 50.0):
        shift = far * step * (1 + np.arange(len(some))[:, None] % 7) / 7 * np.where(np.arange(len(moving)) % 2, 1, -1)
        try:
            expected, seen = here + shift @ A, moved(head, shift)
        except ValueError:  # a later step refuses what an earlier one made of it
            return None
        if not np.all(np.abs(seen - expected) <= 1e-9 * (1 + np.abs(expected))):
            return None
    return A


def _decider(surface: Surface, at: Any, decision: FloatArray) -> Callable[[Any], FloatArray]:
    """Decide by the score where that is the model's decision on all rows: a prediction costs twice as much."""
    if np.array_equal(surface.score(at) > surface.threshold, decision == 1):
        return lambda points: (surface.score(points) > surface.threshold).astype(float)
    return surface.decide


def _parts(encode: Encode, columns: Columns, E: FloatArray, slope: FloatArray, names: Sequence[str]) -> FloatArray:
    """Return what each jumping column adds to the margin, up to a constant."""
    if not len(names):
        return np.empty((len(E), 0))
    first = {name: np.repeat(column[:1], len(column)) for name, column in columns.items()}
    parts = [encode(first | {name: columns[name]}) @ slope for name in names]
    without = encode(dict(columns) | {name: first[name] for name in names}) @ slope
    whole, together = E @ slope, np.sum([part - part[0] for part in parts], axis=0)
    if not np.allclose(whole - without, together, rtol=1e-9, atol=1e-9 * (1 + np.abs(whole).max())):
        raise UsageError(
            "The columns in `categorical` do not act one by one in this model (an earlier step combines them); give "
            "the distances yourself."
        )
    return np.column_stack(parts)
