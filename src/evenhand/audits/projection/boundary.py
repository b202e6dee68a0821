"""The records of a projection audit: whose rates it compares, and how far each is from the other decision.

Distances come from the user's column, a model, or, with a warning, the score.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.arrays import FloatArray, IntArray
from evenhand.audits.reference import references
from evenhand.errors import DataError, UsageError, near_matches
from evenhand.intake import Attribute, AuditData
from evenhand.models import AuditedModel, audited_model
from evenhand.models.distances import BoundaryDistance, boundary_distance
from evenhand.models.moves import Moves
from evenhand.models.nearest import Towards

Asked = list[tuple[Attribute, int]]  # attributes of one finding, each with the code of its reference group


@dataclass(frozen=True, slots=True, kw_only=True)
class Distances(Moves):
    """How the distance to a model's boundary is measured: all of `evenhand.models.moves.Moves`, and whose model it is.

    Parameters
    ----------
    norm, scale, method, categorical, delta, jumps, starts, rounds
        See `evenhand.models.moves.Moves`. Text columns not named in `categorical` are frozen: the distance is to the
        nearest boundary point with the same categories.
    threshold : float, optional
        Decision 1 from this score on, where the model's own decision is not meant.
    features : sequence of str, optional
        The model's inputs in its order; all feature columns by default.
    cost : mapping of str to float
        Price of a unit of distance for a group, such as ``{"sex=Female": 2.0}``; 1 where not named.

    Examples
    --------
    >>> Distances(norm="l1").norm
    'l1'
    """

    threshold: float | None = None
    features: Sequence[str] | None = None
    cost: Mapping[str, float] = field(default_factory=dict)


def as_distances(given: Distances | Mapping[str, Any] | None) -> Distances:
    """Read how distances are measured from an object, or from a table of a plan.

    Parameters
    ----------
    given : Distances, mapping or None
        None for the defaults.

    Returns
    -------
    Distances

    Examples
    --------
    >>> as_distances({"norm": "l1"}).norm
    'l1'
    """
    if isinstance(given, Distances):
        return given
    known = [f.name for f in fields(Distances)]
    for key in given or {}:
        if key not in known:
            raise UsageError(f"`distances` has the key `{key}`, which is not known.{near_matches(key, known)}")
    return Distances(**(given or {}))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Boundary:
    """Decisions and distances of all records, and what to tell about them."""

    decision: IntArray  # (records,): decisions, 0 or 1
    distance: FloatArray  # (records,): at least 0, infinite allowed
    described: Mapping[str, Any]  # for the evidence and the options
    # warnings, notes: for findings, and for the result.
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    # The model's inputs, and where each record would have to go; empty and None where the distance has no such points.
    inputs: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    towards: Towards | None = None


def find_boundary(data: AuditData, model: Any, distance: ArrayLike | str | None, how: Distances, seed: int) -> Boundary:
    """Find decisions and distances.

    Parameters
    ----------
    data : AuditData
        Records.
    model : object or None
        Anything `evenhand.models.audited_model` takes.
    distance : array-like, str or None
        Distances, a feature column, or ``"threshold"``.
    how : Distances
        How a model's distances are measured, and the cost by group.
    seed : int
        Of a search.

    Returns
    -------
    Boundary
    """
    if (model is None) == (distance is None):
        raise UsageError(
            "The projection audit needs distances to the decision boundary: give either `model=`, or `distance` (an "
            "array, a feature column, or 'threshold' for the score's distance from it)."
        )
    if data.moments is not None:
        raise DataError(
            "The rows stayed on their engine as counts; the projection audit needs them. Read with `rows='keep'`."
        )
    if model is not None:
        boundary = _from_model(data, model, how, seed)
    elif is_margin(distance, data.features):
        boundary = _from_threshold(data)
    else:
        boundary = column_distance(data, distance)
    return priced(data, boundary, how.cost)


def column_distance(data: AuditData, distance: ArrayLike | str | None) -> Boundary:
    """Take the distances from the user's array or feature column."""
    decision = _decision(data)
    name = "the array given"
    if isinstance(distance, str):
        if distance not in data.features:
            raise DataError(
                f"There is no feature column `{distance}` for the distance. Name it in `features=`."
                f"{near_matches(distance, data.features)}"
            )
        name = f"column `{distance}`"
        distance = data.features[distance]
    try:
        values = np.array(distance, dtype=float).reshape(-1)
    except (TypeError, ValueError) as error:
        raise DataError(f"The distances in {name} are not numbers.") from error
    if values.shape != decision.shape:
        raise DataError(
            f"`distance` has {values.size} values for {decision.size} records ({data.rows.rows_in} rows came in). Put "
            "it among the `features=`, so that dropped rows are dropped there too, and give the column's name."
        )
    bad = int(np.sum(~(values >= 0)))
    if bad:
        raise DataError(
            f"{bad} distances in {name} are negative or missing; a distance is 0 or more (infinite is allowed)."
        )
    return Boundary(
        decision=decision, distance=values, described={"method": "given", "source": name, "scale": "as given"}
    )


def _from_model(data: AuditData, model: Any, how: Distances, seed: int) -> Boundary:
    asked = audited_model(model, data, threshold=how.threshold)
    columns = {n: np.asarray(data.features[n]) for n in input_names(asked, data, how)}
    measured = boundary_distance(asked, columns, how, count=data.count, seed=seed)
    if data.decision is not None:
        differ = int(data.count[measured.decision != data.decision].sum())
        if differ:
            raise DataError(disagreement(differ, data))
    return replace(model_boundary(data, measured, how), inputs=columns)


def input_names(model: AuditedModel, data: AuditData, how: Distances) -> list[str]:
    """Return the model's inputs among the features, in its order."""
    wanted = [*(model.inputs or data.features)]
    names = list(how.features) if how.features is not None else [n for n in data.features if n in wanted]
    if not names:
        raise DataError("The model's inputs are missing: name the columns in `features=`.")
    for name in [*names, *wanted, *how.categorical]:
        if name not in data.features:
            raise DataError(f"There is no feature column `{name}`.{near_matches(name, data.features)}")
    return names


def disagreement(differ: int, data: AuditData) -> str:
    """Say that the model did not make the decisions of the data."""
    return (
        f"The model and the column of decisions disagree on {differ} of {data.rows.rows_used} rows. Check the "
        "order of `features=` and the `threshold=`, or leave the decisions out."
    )


def model_boundary(data: AuditData, measured: BoundaryDistance, how: Distances) -> Boundary:
    """Say how far each record is from a model's boundary, and what is to be said about it."""
    stuck = int(data.count[np.isinf(measured.distance)].sum())
    described = {**measured.described, "unreachable": stuck}
    stay = described.get("frozen_columns", [])
    notes = [f"Distances: {described['method']}, norm {described['norm']}, in {described['scale']}."]
    if stay:
        notes.append(
            f"Frozen columns: {', '.join(stay)}. The distance is to the nearest boundary point with the same "
            "categories. To let some of them change too, name them as `categorical` in the projection audit's option "
            "`distances`, in a plan or in Python."
        )
    return Boundary(
        decision=measured.decision.astype(np.int64),
        distance=measured.distance,
        described=described,
        notes=tuple(notes),
        warnings=tuple(_doubts(data, measured, how, stuck)),
        towards=measured.towards,
    )


def _doubts(data: AuditData, measured: BoundaryDistance, how: Distances, stuck: int) -> Iterator[str]:
    """Say what is wrong with distances: out of reach, all alike, or not accurate."""
    if stuck:
        yield (
            f"{stuck} of {data.rows.rows_used} people cannot reach the other decision"
            + (" with their categories as they are" if measured.described.get("frozen_columns") else "")
            + ": their distance is infinite. They count in every rate and never change."
        )
    atom = int(data.count[np.isclose(measured.distance, how.delta, rtol=1e-9)].sum()) if how.categorical else 0
    if atom > 1:
        yield (
            f"A jump alone changes the decision of {atom} people, who are all at the distance {how.delta:g}; the limit "
            "law assumes a continuous distance, and the test may reject too often or too seldom."
        )
    if measured.method == "search" and measured.described["excess_high"] > 0.1:
        yield (
            "The search for the boundary is not accurate: with four times the effort the distance of some people was "
            f"{measured.described['excess_high']:.0%} shorter. How far people must move is overstated."
        )


class ScoreEnds:
    """The lowest score with decision 1 and the highest with decision 0, between which a threshold lies."""

    def __init__(self) -> None:
        self.yes, self.no = np.inf, -np.inf

    def add(self, batch: AuditData) -> None:
        """Take the rows of one batch."""
        decision = _decision(batch)
        if batch.score is None:
            raise DataError("`distance='threshold'` needs a score. Name its column in `score=`.")
        self.yes = min(self.yes, float(batch.score[decision == 1].min(initial=np.inf)))
        self.no = max(self.no, float(batch.score[decision == 0].max(initial=-np.inf)))

    def merge(self, other: ScoreEnds) -> None:
        """Take the rows of another part."""
        self.yes, self.no = min(self.yes, other.yes), max(self.no, other.no)

    def threshold(self) -> float:
        """Return the score at which the decision changes, 0 where all decisions are alike."""
        if self.yes < self.no:
            raise DataError(
                "The decisions are not a threshold of the score: some scores with decision 0 exceed some with "
                "decision 1, so the score has no margin. Give `distance` or `model=`."
            )
        return 0.5 * (self.yes + self.no) if np.isfinite(self.yes) and np.isfinite(self.no) else 0.0


def margin_boundary(data: AuditData, cut: float, distance: FloatArray) -> Boundary:
    """Say how far each score is from the threshold, and that this is no distance between people."""
    warning = (
        "The distance is the score's margin, not a distance between people: `how far` is in units of the score, and a "
        "score of few values, such as a tree's, breaks the limit law."
    )
    return Boundary(
        decision=_decision(data),
        distance=distance,
        described={"method": "threshold", "threshold": cut, "scale": "units of the score"},
        warnings=(warning,),
    )


def is_margin(distance: ArrayLike | str | None, features: Collection[str]) -> bool:
    """Say whether a distance is asked for as the score's margin, and not as a column of that name."""
    return isinstance(distance, str) and distance == "threshold" and "threshold" not in features


def _from_threshold(data: AuditData) -> Boundary:
    if data.score_bins is not None:
        raise DataError(
            "The score was binned by the engine; margins need the scores themselves. Read with `rows='keep'`."
        )
    ends = ScoreEnds()
    ends.add(data)
    cut = ends.threshold()
    return margin_boundary(data, cut, np.abs(np.asarray(data.score) - cut))


def _decision(data: AuditData) -> IntArray:
    if data.decision is None:
        raise DataError(
            "The projection audit needs decisions. Name their column in `decision=`, or give `threshold=` and a score."
        )
    return data.decision.astype(np.int64)


def priced(data: AuditData, boundary: Boundary, cost: Mapping[str, float]) -> Boundary:
    """Multiply the distances of groups by what a unit of distance costs them."""
    if not cost:
        return boundary
    price = np.ones(boundary.distance.size)
    known = {a.group_name(g): (a, g) for a in data.attributes for g in range(len(a.labels))}
    for name, factor in cost.items():
        if name not in known:
            raise UsageError(f"`cost` names the group `{name}`, which is not in the data.{near_matches(name, known)}")
        if not (np.isfinite(factor) and factor > 0):
            raise UsageError(f"`cost` of `{name}` must be a number above 0; got {factor}.")
        attribute, group = known[name]
        price[attribute.codes == group] *= factor
    described = {**boundary.described, "cost": dict(cost)}
    return replace(boundary, distance=boundary.distance * price, described=described)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """The records as arrays: decision, distance, mass."""

    decision: IntArray
    distance: FloatArray
    mass: FloatArray  # sums to the number of rows
    square: FloatArray  # sum of squared masses of each record's rows
    count: IntArray
    weighted: bool  # with sampling weights
    single: bool  # every record is one row of mass one
    boundary: Boundary

    @property
    def rows(self) -> float:
        """N."""
        return float(self.count.sum())


def questions(
    data: AuditData, attribute: str | Sequence[str] | None, reference: Mapping[str, str] | str | None
) -> tuple[list[Asked], dict[str, str]]:
    """Return, for each finding, its attributes with the code of their reference group.

    Parameters
    ----------
    data : AuditData
        Records.
    attribute : str, sequence of str or None
        One attribute; several for one joint finding; None for one finding each.
    reference : mapping, str or None
        The user's choice of reference groups; the largest group elsewhere.

    Returns
    -------
    asked : list
        One list of (Attribute, code) for each finding.
    chosen : dict
        Attribute name to reference label.
    """
    if not data.attributes:
        raise DataError("No group column was given. Name at least one in `groups=`.")
    if attribute is None:
        chosen = [[a] for a in data.attributes]
    elif isinstance(attribute, str):
        chosen = [[data.attribute(attribute)]]
    else:
        chosen = [[data.attribute(a) for a in dict.fromkeys(attribute)]]
    audited = list({a.name: a for some in chosen for a in some}.values())
    for each in audited:
        if len(each.labels) < 2:
            raise DataError(f"Attribute `{each.name}` has {len(each.labels)} group; at least 2 are needed.")
    labels = references(data, reference, audited)
    return [[(a, a.labels.index(labels[a.name])) for a in some] for some in chosen], labels
