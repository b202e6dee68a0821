"""How far each person is from the other decision: the formula that fits the model, or a search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from evenhand.arrays import FloatArray, IntArray
from evenhand.errors import UsageError
from evenhand.models.audited import AuditedModel
from evenhand.models.gradient_sklearn import final_step, with_last_step
from evenhand.models.ground import Ground, find_ground
from evenhand.models.input_space import Columns
from evenhand.models.kernel import is_kernel_machine, kernel_distance
from evenhand.models.leaf_search import nearest_leaves
from evenhand.models.leaf_space import leaf_space
from evenhand.models.linear import linear_form, plane_distance
from evenhand.models.moves import Moves
from evenhand.models.nearest import Towards, joined_towards, plane_towards, put_back, tree_towards
from evenhand.models.search import search_boundary
from evenhand.models.tree import is_tree, leaf_boxes, tree_distance

# Distances, how they were measured, and where the nearest points are; None where a distance has no such points.
Measured = tuple[FloatArray, dict[str, Any], Towards | None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BoundaryDistance:
    """Distances to the boundary and how they were measured."""

    distance: FloatArray  # (n,): at least 0; infinite where no move changes the decision
    decision: FloatArray  # (n,): the model's decisions
    method: str  # `"linear"`, `"kernel"`, `"tree"` or `"search"`
    described: Mapping[str, Any]  # method, norm, scale and accuracy, for the report
    towards: Towards | None = None  # from rows to their nearest inputs at the boundary; None where there are none


def boundary_distance(
    model: AuditedModel, columns: Columns, moves: Moves | None = None, *, count: IntArray | None = None, seed: int = 0
) -> BoundaryDistance:
    """Measure how far each row is from the nearest point with the other decision. [si2021] eq. (6)

    Numbers move. Categories (text, and numbers that a pipeline one-hot encodes) are frozen: the distance is to the
    nearest point with the same categories. Columns named in `categorical` jump instead.

    Parameters
    ----------
    model : AuditedModel
        From `evenhand.models.audited_model` or `evenhand.models.adapt`.
    columns : mapping of str to ndarray
        The model's inputs in their own units.
    moves : Moves, optional
        How a move is measured, and what jumps.
    count : ndarray of int, shape (n,), optional
        People that each row stands for; one by default.
    seed : int
        Of a search.

    Returns
    -------
    BoundaryDistance
        Infinite where the columns that move cannot change the decision. Beside categories, `described` names the
        columns that move, are frozen and jump.

    Examples
    --------
    >>> from evenhand.models import adapt
    >>> x, z = np.random.default_rng(0).normal(size=(2, 100))
    >>> model = adapt(lambda X: X @ [3.0, 4.0], {"x": x, "z": z}, threshold=0.0)
    >>> found = boundary_distance(model, {"x": x, "z": z}, Moves(scale="none"))
    >>> found.method, bool(np.allclose(found.distance, np.abs(0.6 * x + 0.8 * z)))
    ('linear', True)
    >>> columns = {"x": np.array([0.0, 1.0, 4.0, 1.0]), "job": np.array(["a", "b", "a", "a"])}
    >>> model = adapt(lambda frame: frame["x"] - 3.0 * (frame["job"] == "b"), columns, threshold=0.5)
    >>> boundary_distance(model, columns, Moves(scale="none")).distance.round(4).tolist()
    [0.5, 2.5, 3.5, 0.5]
    """
    moves = moves or Moves()
    drawn = _drawn(model, len(next(iter(columns.values()))))
    if drawn is None:
        return _measured(model, columns, moves, count, seed)
    members, which = drawn
    each = [_measured(member, columns, moves, count, seed) for member in members]
    rows = np.arange(len(which))
    coarsest = max(each, key=lambda one: float(one.described.get("excess_high", 0.0)))
    return replace(
        coarsest,
        distance=np.array([one.distance for one in each])[which, rows],
        decision=np.array([one.decision for one in each])[which, rows],
        described={**coarsest.described, "model": model.name},
        towards=joined_towards([one.towards for one in each], which),
    )


def _drawn(model: AuditedModel, size: int) -> tuple[list[AuditedModel], IntArray] | None:
    """Return the members of a model that draws one for each person, as models, and which was drawn; None for others."""
    last = final_step(model.source)[1]
    draw = getattr(last, "drawn_members", None)
    drawn = draw(size) if callable(draw) and model.choose is not None else None
    if drawn is None:
        return None
    members, which = drawn
    return [replace(model, source=with_last_step(model.source, member)) for member in members], which


def _measured(
    model: AuditedModel, columns: Columns, moves: Moves, count: IntArray | None, seed: int
) -> BoundaryDistance:
    """Measure distances to the boundary of one model."""
    ground = find_ground(model, columns, moves.categorical)
    unit, words = moves.unit(ground.X, count)
    measured = (
        _linear(ground, unit, moves)
        or _kernel(ground, moves)
        or _tree(ground, unit, moves)
        or _search(ground, count, moves, seed)
    )
    facts = {"norm": moves.norm, "scale": words, "model": ground.name, **ground.described(), **measured[1]}
    return BoundaryDistance(
        distance=measured[0], decision=ground.decision, method=facts["method"], described=facts, towards=measured[2]
    )


def _linear(ground: Ground, unit: FloatArray, moves: Moves) -> Measured | None:
    form = None
    if ground.surface is not None and moves.method in ("auto", "linear"):
        form = linear_form(ground.surface, ground.E)
    if form is None:
        if len(moves.categorical):
            raise UsageError(
                "`categorical` features need a linear classifier; for this model give the distances yourself."
            )
        if moves.method == "linear":
            what = "features" if ground.shared else "numbers"
            raise UsageError(f"`{ground.name}` is not linear in its {what}; use `method='auto'`.")
        return None
    coefficients, intercept = form
    margin, slope = ground.E @ coefficients + intercept, (ground.A @ coefficients * unit)[~ground.jumps]
    parts = ground.parts(coefficients)
    described: dict[str, Any] = {"method": "linear", "accuracy": "exact"}
    if len(moves.categorical):
        jumping = {"categorical_columns": len(moves.categorical)}
        described |= jumping if ground.shared else {"jumping_columns": list(moves.categorical)}
        described |= {"delta": moves.delta, "jumps": moves.jumps}
    return plane_distance(margin, slope, parts, moves), described, plane_towards(ground, unit, form, parts, moves)


def _kernel(ground: Ground, moves: Moves) -> Measured | None:
    machine = None if ground.surface is None else ground.surface.source
    fits = is_kernel_machine(machine)
    if moves.method == "kernel" and not fits:
        raise UsageError(f"`{ground.name}` is not a kernel classifier with support vectors; use `method='auto'`.")
    if moves.method not in ("auto", "kernel") or not fits:
        return None
    described: dict[str, Any] = {
        "method": "kernel",
        "norm": "the kernel's own",
        "scale": "the kernel's own",
        "accuracy": "exact in the kernel's space",
    }
    if not ground.shared:
        described["accuracy"] += ", where categories move too"
        described |= {"moving_columns": list(ground.columns), "frozen_columns": []}
    return kernel_distance(machine, ground.E), described, None


def _tree(ground: Ground, unit: FloatArray, moves: Moves) -> Measured | None:
    surface = ground.surface
    if surface is None or not is_tree(surface.source) or not ground.one_to_one():
        if moves.method == "tree":
            where = "" if ground.shared else " on plain columns"
            raise UsageError(f"`{ground.name}` is not a single decision tree{where}; use `method='auto'`.")
        return None
    if moves.method not in ("auto", "tree"):
        return None
    low, high, inside = leaf_boxes(surface.source)
    steps = np.abs(ground.A * unit[:, None]).sum(axis=0)  # 0 for encoded categories: they stay
    positive = surface.decide(inside) == 1
    far = tree_distance((low, high), positive, ground.decision, ground.E, steps, moves.norm)
    way = tree_towards(ground, (low, high), positive, steps, moves.norm)
    return far, {"method": "tree", "accuracy": "exact"}, way


def _by_content(ground: Ground) -> IntArray:
    """Return the rows in an order that does not depend on the one they came in."""
    stay: list[IntArray] = []
    if not ground.E.shape[1]:  # the model is asked as a whole, about categories as they are
        stay = [np.unique(np.asarray(ground.columns[n]).astype(str), return_inverse=True)[1] for n in ground.frozen]
    return np.lexsort((*stay, *ground.E.T, *ground.X.T, ground.decision))


def _search(ground: Ground, count: IntArray | None, moves: Moves, seed: int) -> Measured:
    if not ground.X.shape[1]:
        nothing = {"method": "search", "accuracy": "nothing moves", "excess_median": 0.0, "excess_high": 0.0}
        return np.full(len(ground.X), np.inf), nothing, None
    # Rows are searched in the order of their content: they show each other the way, and where they stand says nothing.
    order = _by_content(ground)
    unit, _ = moves.unit(ground.X[order], None if count is None else count[order])
    Z, inside = ground.X[order] / unit, None
    if ground.surface is not None and ground.one_to_one():
        space = leaf_space(ground.surface, ground.E[order], ground.A, unit, ground.decision[order], moves.norm)
        inside = None if space is None else partial(nearest_leaves, space, Z)
    searched = search_boundary(
        lambda z, of: ground.decide(z * unit, order[of]),
        lambda z, of: ground.margin(z * unit, order[of]),
        Z,
        moves,
        shared=ground.shared,
        seed=seed,
        inside=inside,
    )
    place = np.argsort(order)
    distance, point = searched.distance[place], searched.point[place]
    described: dict[str, Any] = {
        "method": "search",
        "accuracy": f"upper bound; four times the effort was {searched.excess_median:.1%} shorter on the middle row, "
        f"{searched.excess_high:.1%} at the 95 % point",
        "excess_median": searched.excess_median,
        "excess_high": searched.excess_high,
    }
    if inside is not None:
        described["accuracy"] += "; exact along each column alone"
    if ground.surface is None:
        described["within"] = "the observed range of each column"
    return distance, described, lambda rows: put_back(ground, rows, point[rows] * unit)
