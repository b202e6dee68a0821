"""The same rows recorded as members of another group, and how far that changes a model's scores at worst."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np

from evenhand.arrays import FloatArray, IntArray
from evenhand.audits.tail.findings import chosen_horizon
from evenhand.audits.tail.group_tail import Request, group_tail
from evenhand.errors import DataError, near_matches
from evenhand.inference.quantiles import sample_level
from evenhand.mitigation.estimator import Training, probability_of, take_rows

_FIT_LEVEL = 0.95
_CHECKS = 100  # samples of a fitted tail that check it


class CounterfactualRows:
    """Rows as they are and recorded as members of the other groups.

    Parameters
    ----------
    rows : Training
        The rows, with at least one of each group.
    columns : sequence
        Columns that record the group, from `recording_columns`.
    horizon : float, optional
        Decisions of which one exceeds the level; by default what the rows of the smaller group reach.
    favourable : {"high", "low"}
        Whether a high or a low score is good for a person.
    seed : int
        For checks of a tail that is fitted.
    front : transformer, optional
        Fitted; the models that are asked stand behind it and get what it makes of the rows.
    """

    def __init__(
        self,
        rows: Training,
        columns: Sequence[str | int],
        *,
        horizon: float | None = None,
        favourable: str = "high",
        seed: int = 0,
        front: Any = None,
    ) -> None:
        self.favourable, self.seed = favourable, seed
        sizes = np.bincount(rows.group, minlength=len(rows.groups))
        if not sizes.all():
            raise DataError(
                f"Group `{rows.groups[int(sizes.argmin())]}` has no row among those that measure the settings. Leave "
                "it out or join it with another."
            )
        self.horizon = chosen_horizon(int(sizes.min())) if horizon is None else float(horizon)
        # One row of each group shows what its records look like.
        examples = [int(np.flatnonzero(rows.group == g)[0]) for g in range(len(rows.groups))]
        behind = (lambda X: X) if front is None else front.transform
        own = [take_rows(rows.X, rows.group == g) for g in range(len(rows.groups))]
        self.rows = replace(rows, X=behind(rows.X))
        self.own = [behind(X) for X in own]
        self.recorded = {
            (a, b): behind(recorded_like(own[a], columns, rows.X, examples[b]))
            for a, b in itertools.permutations(range(len(rows.groups)), 2)
        }

    def accuracy(self, fitted: Any) -> float:
        """Return the weighted share of right decisions."""
        right = np.asarray(fitted.predict(self.rows.X)) == self.rows.y
        return float(np.average(right, weights=self.rows.weights))

    def levels(self, fitted: Any) -> dict[tuple[int, int], float]:
        """Return the level of each group recorded as each other; NaN where it cannot be computed."""
        before = [probability_of(fitted, own) for own in self.own]
        return {
            (a, b): self._level(before[a], probability_of(fitted, changed)) for (a, b), changed in self.recorded.items()
        }

    def largest_ecd(self, fitted: Any) -> float:
        """Return the largest absolute ECD of any pair of groups; NaN where a level cannot be computed."""
        levels = self.levels(fitted)
        return float(np.max([abs(levels[a, b] - levels[b, a]) for a, b in levels if a < b]))

    def _level(self, before: FloatArray, after: FloatArray) -> float:
        """Return the change for the worse that one decision in `horizon` exceeds."""
        if self.favourable == "low":
            before, after = 1 - before, 1 - after
        if self.horizon <= before.size:
            return sample_level(-np.sort(before - after), 1 / self.horizon)
        asked = Request(upper=1.0, level=_FIT_LEVEL, draws=_CHECKS, seed=self.seed)
        return group_tail("own", "other", before, after, self.horizon, asked).level_at(self.horizon, _FIT_LEVEL).value


def recorded_like(X: Any, columns: Sequence[str | int], source: Any, row: int) -> Any:
    """Return rows with some columns as one row of another frame or array has them.

    Parameters
    ----------
    X : frame or array
        The rows; they are not changed.
    columns : sequence
        Names, or positions in an array.
    source : frame or array
        With the same columns.
    row : int
        Its row that is copied from.

    Returns
    -------
    frame or array

    Examples
    --------
    >>> recorded_like(np.array([[1, 0], [2, 0]]), [1], np.array([[9, 1]]), 0).tolist()
    [[1, 1], [2, 1]]
    """
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        out = np.array(X)
        places = [int(n) for n in columns]
        out[:, places] = np.asarray(source)[row, places]
        return out
    other = nw.from_native(source, eager_only=True)
    return frame.with_columns(*(other[str(n)][[row] * len(frame)] for n in columns)).to_native()


def recording_columns(rows: Training, attribute: Any) -> list[str | int]:
    """Return the columns that record the groups.

    Parameters
    ----------
    rows : Training
        The rows.
    attribute : str, int, sequence or None
        Names or positions to check; None looks for one.

    Returns
    -------
    list
        Empty where none is named and no column records the groups.

    Examples
    --------
    >>> group = np.array([0, 1, 1])
    >>> X = np.array([[5.0, 3.0], [6.0, 4.0], [7.0, 4.0]])
    >>> recording_columns(Training(X, group, group[:2], group, ("a", "b")), None)
    [1]
    """
    framed = hasattr(rows.X, "columns")
    known: list[str | int] = [str(n) for n in rows.X.columns] if framed else list(range(np.shape(rows.X)[1]))
    if attribute is None:
        return next(([n] for n in known if _one_to_one(_texts(rows.X, n), rows.group)), [])
    named = [attribute] if isinstance(attribute, str | int) else list(attribute)
    for name in named:
        if name not in known:
            raise DataError(
                f"`X` has no column {name!r} (`attribute`). ECD-Fair asks the model about people recorded as another "
                f"group, so the group must be a feature.{near_matches(str(name), [str(k) for k in known])}"
            )
    together = np.array(["\x1f".join(cells) for cells in zip(*(_texts(rows.X, n) for n in named), strict=True)])
    if not _one_to_one(together, rows.group):
        raise DataError(
            f"`attribute` {attribute!r} does not record the groups of `sensitive_features` one to one. Name the column "
            "that was passed as `sensitive_features`."
        )
    return named


def _texts(X: Any, name: str | int) -> Any:
    """Return a column as texts."""
    return np.asarray(X[name] if hasattr(X, "columns") else np.asarray(X)[:, int(name)]).astype(str)


def _one_to_one(texts: Any, group: IntArray) -> bool:
    """Tell whether each group has one text and each text one group."""
    pairs = set(zip(texts.tolist(), group.tolist(), strict=True))
    return len(pairs) == len({t for t, _ in pairs}) == len({g for _, g in pairs})
