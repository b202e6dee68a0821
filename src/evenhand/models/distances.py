"""How far each person is from the other decision: the formula that fits the model, or a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import DataError, UsageError
from evenhand.models.kernel import is_kernel_machine, kernel_distance
from evenhand.models.linear import NORMS, linear_distance, linear_form
from evenhand.models.model import Model
from evenhand.models.search import Searched, search_distance
from evenhand.models.tree import is_tree, leaf_boxes, tree_distance

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

METHODS = ("auto", "linear", "kernel", "tree", "search")
SCALES = ("std", "range", "none")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BoundaryDistance:
    """Distances to the boundary and how they were measured.

    Parameters
    ----------
    distance : ndarray, shape (n,)
        At least 0; infinite where no move changes the decision.
    decision : ndarray, shape (n,)
        The model's decisions.
    method : str
        ``"linear"``, ``"kernel"``, ``"tree"`` or ``"search"``.
    described : mapping
        Method, norm, scale and accuracy, for the report.
    """

    distance: FloatArray
    decision: FloatArray
    method: str
    described: Mapping[str, Any]


def boundary_distance(
    model: Model,
    X: FloatArray,
    *,
    norm: str = "l2",
    scale: str | Sequence[float] = "std",
    method: str = "auto",
    categorical: Sequence[int] = (),
    delta: float = 1.0,
    jumps: str = "together",
    starts: int = 3,
    rounds: int = 2,
    seed: int = 0,
    count: IntArray | None = None,
) -> BoundaryDistance:
    """Measure how far each row is from the nearest point with the other decision. [si2021] eq. (6)

    Parameters
    ----------
    model : Model
        From `as_model`.
    X : ndarray, shape (n, d)
        Features in their own units.
    norm : {"l2", "l1", "linf"}
        Length of a move.
    scale : {"std", "range", "none"} or sequence of float
        The unit of each feature: its standard deviation or range in `X`, one, or given numbers.
    method : {"auto", "linear", "kernel", "tree", "search"}
        "auto" takes the formula that fits the model and searches otherwise.
    categorical : sequence of int
        Columns that jump at the price `delta` instead of moving; linear classifiers only.
    delta : float
        That price, in the units of the other features.
    jumps : {"together", "each"}
        One price for all columns together, or one for each that changes; see `evenhand.models.linear.plane_distance`.
    starts, rounds, seed
        See `evenhand.models.search.search_distance`.
    count : ndarray of int, shape (n,), optional
        People that each row stands for; one by default.

    Returns
    -------
    BoundaryDistance

    Examples
    --------
    >>> from evenhand.models.model import as_model
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> found = boundary_distance(as_model(lambda x: x @ [3.0, 4.0], threshold=0.0), X, scale="none")
    >>> found.method, bool(np.allclose(found.distance, np.abs(X @ [0.6, 0.8])))
    ('linear', True)
    """
    check_request(norm, method)
    unit, words = units_of(X, scale, count)
    decision = model.decide(X)
    told: dict[str, Any] = {"norm": norm, "scale": words, "model": model.name}
    form = linear_form(model, X) if method in ("auto", "linear") else None
    if form is not None:
        coefficients, intercept = form
        far = linear_distance(X @ coefficients + intercept, coefficients, X, unit, norm, categorical, delta, jumps)
        told |= {"method": "linear", "accuracy": "exact"}
        if len(categorical):
            told |= {"categorical_columns": len(categorical), "delta": delta, "jumps": jumps}
        return BoundaryDistance(distance=far, decision=decision, method="linear", described=told)
    if len(categorical):
        raise UsageError("`categorical` features need a linear classifier; for this model give the distances yourself.")
    if method == "linear":
        raise UsageError(f"`{model.name}` is not linear in its features; use `method='auto'`.")
    if method == "kernel" or (method == "auto" and is_kernel_machine(model.inner)):
        if not is_kernel_machine(model.inner):
            raise UsageError(f"`{model.name}` is not a kernel classifier with support vectors; use `method='auto'`.")
        told |= {
            "method": "kernel",
            "norm": "the kernel's own",
            "scale": "the kernel's own",
            "accuracy": "exact in the kernel's space",
        }
        return BoundaryDistance(
            distance=kernel_distance(model.inner, X), decision=decision, method="kernel", described=told
        )
    if method == "tree" or (method == "auto" and is_tree(model.inner)):
        if not is_tree(model.inner):
            raise UsageError(f"`{model.name}` is not a single decision tree; use `method='auto'`.")
        low, high, inside = leaf_boxes(model.inner)
        far = tree_distance((low, high), model.decide(inside) == 1, decision, X, unit, norm)
        told |= {"method": "tree", "accuracy": "exact"}
        return BoundaryDistance(distance=far, decision=decision, method="tree", described=told)
    searched = search_distance(
        lambda z: model.decide(z * unit),
        X / unit,
        norm,
        score=lambda z: model.score(z * unit) - model.threshold,
        starts=starts,
        rounds=rounds,
        seed=seed,
    )
    told |= searched_words(searched)
    return BoundaryDistance(distance=searched.distance, decision=decision, method="search", described=told)


def check_request(norm: str, method: str) -> None:
    """Refuse a norm or a method that does not exist."""
    if norm not in NORMS:
        raise UsageError(f"`norm` is `{norm}`; allowed: {', '.join(f'`{n}`' for n in NORMS)}.")
    if method not in METHODS:
        raise UsageError(f"`method` is `{method}`; allowed: {', '.join(f'`{n}`' for n in METHODS)}.")


def searched_words(searched: Searched) -> dict[str, Any]:
    """Describe how accurate a search was."""
    return {
        "method": "search",
        "accuracy": f"upper bound; four times the effort was {searched.excess_median:.1%} shorter on the middle row, "
        f"{searched.excess_high:.1%} at the 95 % point",
        "excess_median": searched.excess_median,
        "excess_high": searched.excess_high,
    }


def units_of(X: FloatArray, scale: str | Sequence[float], count: IntArray | None = None) -> tuple[FloatArray, str]:
    """Return the unit of each column, and its name for reports.

    Parameters
    ----------
    X : ndarray, shape (n, d)
        The columns that move.
    scale : {"std", "range", "none"} or sequence of float
        See `boundary_distance`.
    count : ndarray of int, shape (n,), optional
        People that each row stands for; one by default.

    Returns
    -------
    (ndarray of shape (d,), str)

    Examples
    --------
    >>> units_of(np.array([[0.0], [4.0]]), "range")
    (array([4.]), 'ranges of the audited data')
    """
    if isinstance(scale, str):
        if scale not in SCALES:
            raise UsageError(
                f"`scale` is `{scale}`; allowed: {', '.join(f'`{s}`' for s in SCALES)} or one number per feature."
            )
        if scale == "none":
            return np.ones(X.shape[1]), "the features' own units"
        X = X if count is None else np.repeat(X, count, axis=0)
        spread = X.std(axis=0) if scale == "std" else X.max(axis=0) - X.min(axis=0)
        words = "standard deviations of the audited data" if scale == "std" else "ranges of the audited data"
        return np.where(spread > 0, spread, 1.0), words
    unit = np.asarray(scale, dtype=float)
    if unit.shape != (X.shape[1],) or not np.all(unit > 0) or not np.isfinite(unit).all():
        raise DataError(f"`scale` must hold {X.shape[1]} positive numbers, one per feature; got {unit!r}.")
    return unit, "units given by the user"
