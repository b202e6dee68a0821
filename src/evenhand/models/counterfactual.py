"""The same people recorded as members of another group.

A model is asked in the user's own columns. The columns that record the protected attribute (one, or several that
change together such as a one-hot block) take the values they have in the other group; nothing else changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import IntArray
from evenhand.errors import DataError, UsageError, near_matches

Columns = Mapping[str, NDArray[Any]]
# Columns to flip together, the values of each group by label, or a function (columns, label) -> columns.
Flip = str | Sequence[str] | Mapping[str, Mapping[str, Any]] | Callable[[Columns, str], Columns]


def flip_values(
    columns: Columns, attribute: str, labels: Sequence[str], codes: IntArray, flip: Flip | None
) -> list[dict[str, Any]] | Callable[[Columns, str], Columns] | str:
    """Find what each group's records look like in the columns that say which group it is.

    Parameters
    ----------
    columns : mapping of str to ndarray
        The features.
    attribute : str
        The protected attribute; an intersection ``"sex × race"`` stands for both columns.
    labels : sequence of str
        Its groups.
    codes : ndarray of int
        Each record's place in `labels`.
    flip : str, sequence of str, mapping, callable or None
        The columns that record the attribute; or each label's values, ``{"Female": {"sex_F": 1, "sex_M": 0}, ...}``;
        or a function of columns and a label. By default the column of the attribute's name.

    Returns
    -------
    list of dict, callable or str
        Column to value, one per label; the user's function; or, when the features do not record the attribute, the
        reason why nothing can be flipped.

    Examples
    --------
    >>> columns = {"sex": np.array([0, 1, 1]), "x": np.array([5.0, 6.0, 7.0])}
    >>> flip_values(columns, "sex", ["F", "M"], np.array([0, 1, 1]), None)
    [{'sex': np.int64(0)}, {'sex': np.int64(1)}]
    """
    if callable(flip):
        return flip
    if isinstance(flip, Mapping):
        return [_given(flip, label, columns) for label in labels]
    if flip is None:
        names = [attribute] if attribute in columns else attribute.split(" × ")
        absent = [n for n in names if n not in columns]
        if absent:
            return (
                f"The model cannot see `{attribute}`: no feature column of that name is among its inputs. If other "
                "columns record it (a one-hot block, say), name them in the tail audit's option `flip`, in a plan or "
                "in Python."
            )
    else:
        names = [flip] if isinstance(flip, str) else list(flip)
        _check_features(names, columns)
    of_groups: list[dict[str, Any]] = []
    for code, label in enumerate(labels):
        mine = codes == code
        values: dict[str, Any] = {}
        for n in names:
            kinds = np.unique(columns[n][mine].astype(str) if columns[n].dtype == object else columns[n][mine])
            if kinds.size != 1:
                raise DataError(
                    f"Column `{n}` has {kinds.size} values within `{attribute}={label}`, so it does not record the "
                    f"attribute alone. Give `flip` as a mapping of each label to its column values, or as a function."
                )
            values[n] = columns[n][mine][0]
        of_groups.append(values)
    return of_groups


def _given(flip: Mapping[str, Mapping[str, Any]], label: str, columns: Columns) -> dict[str, Any]:
    if label not in flip:
        raise UsageError(f"`flip` has no values for the group `{label}`.{near_matches(label, flip)}")
    _check_features(flip[label], columns)
    return dict(flip[label])


def _check_features(names: Iterable[str], columns: Columns) -> None:
    for name in names:
        if name not in columns:
            raise UsageError(f"`flip` names the column `{name}`, which is not a feature.{near_matches(name, columns)}")


def recorded_as(
    columns: Columns, label: str, code: int, values: list[dict[str, Any]] | Callable[[Columns, str], Columns]
) -> Columns:
    """Return the same rows recorded as members of another group.

    Parameters
    ----------
    columns : mapping of str to ndarray
        The rows.
    label, code : str, int
        The other group.
    values : list of dict or callable
        From `flip_values`.

    Returns
    -------
    mapping of str to ndarray
        The inputs are not changed.
    """
    if callable(values):
        return values(dict(columns), label)
    out = dict(columns)
    for name, value in values[code].items():
        column = np.asarray(columns[name])
        # The column's own kind, wide enough for the other group's label.
        out[name] = np.full(column.shape, value, dtype=np.result_type(column.dtype, np.asarray(value).dtype))
    return out
