"""Rows with numbers and categories: numbers move, categories stay as they are or jump.

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

from evenhand.errors import DataError, UsageError
from evenhand.models.distances import BoundaryDistance, check_request, searched_words, units_of
from evenhand.models.gradient_sklearn import final_step, is_sklearn
from evenhand.models.input_space import Columns, InputSpace, Types, as_frame, pipeline_space
from evenhand.models.kernel import is_kernel_machine, kernel_distance
from evenhand.models.linear import linear_form, plane_distance
from evenhand.models.model import Model, as_model
from evenhand.models.search import search_rows
from evenhand.models.tree import is_tree, leaf_boxes, tree_distance

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Encode = Callable[[Columns], FloatArray]

_TILE = 8192  # rows encoded at once
_PROBES = 200  # rows on which it is checked that moves are affine


def is_number(column: NDArray[Any]) -> bool:
    """Say whether a column holds numbers, so that there is a distance along it.

    Parameters
    ----------
    column : ndarray
        Values.

    Returns
    -------
    bool

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

    Parameters
    ----------
    source : object
        Anything `evenhand.models.as_model` takes.
    columns : mapping of str to ndarray
        The model's inputs.
    types : mapping of str to FeatureType, optional
        How columns were kept where the model was fitted.

    Returns
    -------
    list of str
        In the order of `columns`.

    Examples
    --------
    >>> category_columns(None, {"age": np.array([30, 40]), "job": np.array(["Sales", "Craft"])})
    ['job']
    """
    space, _ = _taken_apart(source, columns, types)
    coded = set() if space is None else {i.column for i in space.inputs if i.category is not None}
    return [name for name, column in columns.items() if name in coded or not is_number(column)]


def mixed_distance(
    source: Any,
    columns: Columns,
    *,
    types: Types | None = None,
    positive: Any = None,
    threshold: float | None = None,
    norm: str = "l2",
    scale: str | Sequence[float] = "std",
    method: str = "auto",
    categorical: Sequence[str] = (),
    delta: float = 1.0,
    jumps: str = "together",
    starts: int = 3,
    rounds: int = 2,
    seed: int = 0,
    count: IntArray | None = None,
) -> BoundaryDistance:
    """Measure how far each row is from the other decision when some columns hold categories.

    Numbers move. Categories are frozen: the distance is to the nearest point with the same categories. Columns named
    in `categorical` jump instead.

    Parameters
    ----------
    source : object
        A fitted scikit-learn estimator or pipeline; or a callable that takes a data frame.
    columns : mapping of str to ndarray
        The model's inputs in their own units.
    types : mapping of str to FeatureType, optional
        How columns were kept where the model was fitted.
    positive, threshold
        The class that is decision 1, and the score it begins at; see `evenhand.models.as_model`.
    norm : {"l2", "l1", "linf"}
        Length of a move.
    scale : {"std", "range", "none"} or sequence of float
        The unit of each column that moves.
    method : {"auto", "linear", "kernel", "tree", "search"}
        "auto" takes the formula that fits the model and searches otherwise.
    categorical : sequence of str
        Columns that jump; linear classifiers only.
    delta, jumps
        Price and manner of jumps; see `evenhand.models.linear.plane_distance`.
    starts, rounds, seed
        See `evenhand.models.search.search_distance`.
    count : ndarray of int, optional
        People that each row stands for; one by default.

    Returns
    -------
    BoundaryDistance
        Infinite where the columns that move cannot change the decision. `described` names the columns that move, are
        frozen and jump.

    Examples
    --------
    >>> columns = {"x": np.array([0.0, 1.0, 4.0, 1.0]), "job": np.array(["a", "b", "a", "a"])}
    >>> model = lambda frame: frame["x"] - 3.0 * (frame["job"] == "b")
    >>> mixed_distance(model, columns, threshold=0.5, scale="none").distance.round(4).tolist()
    [0.5, 2.5, 3.5, 0.5]
    """
    check_request(norm, method)
    rows = _rows(source, columns, types, positive, threshold, categorical)
    X, inner = rows.X, rows.inner
    unit, words = units_of(X, scale, count)
    told: dict[str, Any] = {
        "norm": norm,
        "scale": words,
        "model": rows.name,
        "moving_columns": list(rows.moving),
        "frozen_columns": [n for n in rows.columns if n not in rows.moving and n not in categorical],
    }
    form = linear_form(inner, rows.E) if inner is not None and method in ("auto", "linear") else None
    if form is not None:
        coefficients, intercept = form
        parts = _parts(rows, coefficients, categorical)
        margin, slope = rows.E @ coefficients + intercept, rows.A @ coefficients * unit
        told |= {"method": "linear", "accuracy": "exact"}
        if len(categorical):
            told |= {"jumping_columns": list(categorical), "delta": delta, "jumps": jumps}
        return rows.answer(plane_distance(margin, slope, norm, parts, delta, jumps), "linear", told)
    if len(categorical):
        raise UsageError("`categorical` features need a linear classifier; for this model give the distances yourself.")
    if method == "linear":
        raise UsageError(f"`{rows.name}` is not linear in its numbers; use `method='auto'`.")
    if method == "kernel" or (method == "auto" and inner is not None and is_kernel_machine(inner.inner)):
        if inner is None or not is_kernel_machine(inner.inner):
            raise UsageError(f"`{rows.name}` is not a kernel classifier with support vectors; use `method='auto'`.")
        told |= {
            "method": "kernel",
            "norm": "the kernel's own",
            "scale": "the kernel's own",
            "accuracy": "exact in the kernel's space, where categories move too",
            "moving_columns": list(rows.columns),
            "frozen_columns": [],
        }
        return rows.answer(kernel_distance(inner.inner, rows.E), "kernel", told)
    single = inner is not None and is_tree(inner.inner) and _one_to_one(rows.A)
    if method == "tree" and not single:
        raise UsageError(f"`{rows.name}` is not a single decision tree on plain columns; use `method='auto'`.")
    if single and method in ("auto", "tree"):
        assert inner is not None
        low, high, inside = leaf_boxes(inner.inner)
        steps = np.abs(rows.A * unit[:, None]).sum(axis=0)  # 0 for encoded categories: they stay
        far = tree_distance((low, high), inner.decide(inside) == 1, rows.decision, rows.E, steps, norm)
        told |= {"method": "tree", "accuracy": "exact"}
        return rows.answer(far, "tree", told)
    if not rows.moving:
        told |= {"method": "search", "accuracy": "nothing moves", "excess_median": 0.0, "excess_high": 0.0}
        return rows.answer(np.full(len(X), np.inf), "search", told)
    searched = search_rows(
        lambda z, of: rows.decide(z * unit, of),
        X / unit,
        norm,
        score=lambda z, of: rows.margin(z * unit, of),
        starts=starts,
        rounds=rounds,
        seed=seed,
    )
    told |= searched_words(searched)
    if inner is None:
        told["within"] = "the observed range of each column"
    return rows.answer(searched.distance, "search", told)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Rows:
    """The rows, and the model asked at other numbers with a row's own categories."""

    name: str
    columns: Columns
    moving: tuple[str, ...]
    X: FloatArray  # (n, p), own units
    decision: FloatArray  # (n,)
    decide: Callable[[FloatArray, IntArray], FloatArray]
    margin: Callable[[FloatArray, IntArray], FloatArray]  # score minus threshold
    # Where moves are affine behind the pipeline: the classifier, the encoded rows (n, q) and the step of each column.
    inner: Model | None
    encode: Encode
    E: FloatArray
    A: FloatArray  # (p, q)

    def answer(self, distance: FloatArray, method: str, described: Mapping[str, Any]) -> BoundaryDistance:
        return BoundaryDistance(distance=distance, decision=self.decision, method=method, described=described)


def _rows(
    source: Any,
    columns: Columns,
    types: Types | None,
    positive: Any,
    threshold: float | None,
    categorical: Sequence[str],
) -> _Rows:
    wanted = getattr(source, "feature_names_in_", None)
    columns = {n: c for n, c in columns.items() if wanted is None or n in wanted}
    fixed = {*category_columns(source, columns, types), *categorical}
    moving = tuple(n for n in columns if n not in fixed)
    columns = {n: np.asarray(c, dtype=float) if n in moving else c for n, c in columns.items()}
    for name in moving:
        if not np.isfinite(columns[name]).all():
            raise DataError(f"Feature `{name}` has missing or infinite values; fill or drop them first.")
    n = len(next(iter(columns.values())))
    X = np.column_stack([np.empty((n, 0)), *(columns[name] for name in moving)])
    space, last = _taken_apart(source, columns, types)
    A = None if space is None else _affine(space.encode, columns, moving, X)
    if space is not None and A is not None:
        inner, E = as_model(last, threshold=threshold, positive=positive), space.encode(columns)

        def ask(method: Callable[[FloatArray], FloatArray]) -> Callable[[FloatArray, IntArray], FloatArray]:
            def at(points: FloatArray, of: IntArray) -> FloatArray:
                out = np.empty(len(points))
                for start in range(0, len(points), _TILE):
                    part = slice(start, start + _TILE)
                    out[part] = method(E[of[part]] + (points[part] - X[of[part]]) @ A)
                return out

            return at

        decision, decided = inner.decide(E), _decider(inner, E)
        margin = ask(lambda e: inner.score(e) - inner.threshold)
        return _Rows(
            name=type(last).__name__, columns=columns, moving=moving, X=X, decision=decision, decide=ask(decided),
            margin=margin, inner=inner, encode=space.encode, E=E, A=A,
        )  # fmt: skip
    model = as_model(source, threshold=threshold, positive=positive)

    def framed(points: FloatArray, of: IntArray) -> Any:
        # A logarithm has no value below 0. A clipped point is nearer to its row, so distances stay upper bounds.
        points = np.clip(points, X.min(axis=0), X.max(axis=0))
        moved = {name: points[:, j] for j, name in enumerate(moving)}
        return as_frame({name: moved[name] if name in moved else c[of] for name, c in columns.items()}, types)

    frame = as_frame(columns, types)
    try:
        decision, decided = model.decide(frame), _decider(model, frame)
    except (TypeError, ValueError) as error:
        text = next((name for name, column in columns.items() if not is_number(column)), None)
        if text is None:
            raise
        raise DataError(
            f"Feature `{text}` holds text and {model.name} does not take it: {error} Hand over a pipeline that encodes "
            "it, leave it out of `features`, or give `distance`."
        ) from error
    return _Rows(
        name=model.name, columns=columns, moving=moving, X=X, decision=decision,
        decide=lambda z, of: decided(framed(z, of)),
        margin=lambda z, of: model.score(framed(z, of)) - model.threshold,
        inner=None, encode=lambda some: as_frame(some, types), E=np.empty((n, 0)), A=np.empty((len(moving), 0)),
    )  # fmt: skip


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

    def moved(shift: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):  # a logarithm of what is below 0 is not a number, and so not affine
            return encode(head | {name: head[name] + shift[:, j] for j, name in enumerate(moving)})

    step = np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    here = encode(head)
    A = np.empty((len(moving), here.shape[1]))
    for j in range(len(moving)):
        shift = np.zeros((len(some), len(moving)))
        shift[:, j] = step[j]
        A[j] = (moved(shift)[0] - here[0]) / step[j]
    A[np.abs(A) * step[:, None] <= 1e-12 * (1 + np.abs(here).max(axis=0))] = 0.0
    # Far out, both ways and all columns at once: clipping, logarithms and products show.
    for far in (3.0, -3.0, 50.0):
        shift = far * step * (1 + np.arange(len(some))[:, None] % 7) / 7 * np.where(np.arange(len(moving)) % 2, 1, -1)
        try:
            expected, seen = here + shift @ A, moved(shift)
        except ValueError:  # a later step refuses what an earlier one made of it
            return None
        if not np.all(np.abs(seen - expected) <= 1e-9 * (1 + np.abs(expected))):
            return None
    return A


def _one_to_one(A: FloatArray) -> bool:
    """Say whether each number feeds one encoded column, and each of these has one source at most."""
    return bool((np.count_nonzero(A, axis=0) <= 1).all() and (np.count_nonzero(A, axis=1) <= 1).all())


def _decider(model: Model, at: Any) -> Callable[[Any], FloatArray]:
    """Decide by the score where that is the model's decision on all rows: a prediction costs twice as much."""
    decision, score = model.decide(at), model.score(at)
    if np.array_equal(score > model.threshold, decision == 1):
        return lambda points: (model.score(points) > model.threshold).astype(float)
    return model.decide


def _parts(rows: _Rows, coefficients: FloatArray, names: Sequence[str]) -> FloatArray:
    """Return what each jumping column adds to the margin, up to a constant."""
    first = {name: np.repeat(column[:1], len(column)) for name, column in rows.columns.items()}
    parts = [rows.encode(first | {name: rows.columns[name]}) @ coefficients for name in names]
    if not parts:
        return np.empty((len(rows.X), 0))
    without = rows.encode(dict(rows.columns) | {name: first[name] for name in names}) @ coefficients
    together = np.sum([part - part[0] for part in parts], axis=0)
    whole = rows.E @ coefficients
    if not np.allclose(whole - without, together, rtol=1e-9, atol=1e-9 * (1 + np.abs(whole).max())):
        raise UsageError(
            "The columns in `categorical` do not act one by one in this model (an earlier step combines them); give "
            "the distances yourself."
        )
    return np.column_stack(parts)
