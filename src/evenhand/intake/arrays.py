"""Plain arrays by role -> `Table`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from evenhand.errors import DataError
from evenhand.intake.columns import Column
from evenhand.intake.frames import check_lengths, column_of, columns_table, frame_columns, frame_names
from evenhand.intake.options import Options, check_columns, check_unique, make_options
from evenhand.intake.records import Table


def arrays_table(
    roles: Mapping[str, Any],
    columns: Mapping[str, Any],
    probabilities: Mapping[str, Mapping[str, Any]],
    options: Mapping[str, Any],
) -> tuple[Table, Options]:
    """Put arrays in their roles; `AuditData.from_arrays` is the public name.

    Parameters
    ----------
    roles : mapping of str to array-like or None
        One array for each role.
    columns : mapping of str to mapping
        Arrays by name under ``"groups"``, and as far as there are any under ``"strata"`` and ``"features"``.
    probabilities : mapping
        Attribute to label to array.
    options : mapping
        Of `evenhand.read`.

    Examples
    --------
    >>> table, options = arrays_table({"outcome": [0, 1]}, {"groups": {"g": ["a", "b"]}}, {}, {"missing": "group"})
    >>> table.size(), options.outcome, options.missing
    (2, 'outcome', 'group')
    """
    people = _named_columns(columns["groups"], "groups")
    inputs = {} if columns.get("features") is None else _named_columns(columns["features"], "features")
    strata = _named_columns(columns.get("strata", {}), "strata")
    guessed = {f"{name}={label}": v for name, parts in probabilities.items() for label, v in parts.items()}
    for name in strata:
        if name in people:
            raise DataError(f"Column `{name}` is used as group and as stratum; the two need different columns.")
    known = {**inputs, **people, **strata, **{name: column_of(v, name) for name, v in guessed.items()}}
    names: dict[str, str | None] = {}
    for role, values in roles.items():
        # A group or a feature may carry a role's name; then the role's array takes another one.
        name = f"{role} array" if role in known else role
        names[role] = None if values is None else name
        if values is not None:
            known[name] = column_of(values, role)
    check_lengths({**inputs, **known})
    named: dict[str, Any] = {"groups": [*people], "features": [*inputs], "strata": [*strata], **names}
    named["group_probability"] = {
        name: {str(label): f"{name}={label}" for label in parts} for name, parts in probabilities.items()
    }
    asked = make_options(**{**named, **options})
    check_columns(asked, [*known])
    return replace(columns_table(known, asked), features=inputs), asked


def _named_columns(values: Any, role: str) -> dict[str, Column]:
    if isinstance(values, Mapping):
        return {str(name): column_of(array, str(name)) for name, array in values.items()}
    names = None if isinstance(values, np.ndarray) else frame_names(values)
    if names is not None:
        check_unique(names)
        columns = frame_columns(values, names)
        if columns is not None:
            return columns
    array = np.asarray(values)
    if role == "features" and array.ndim == 2:
        return {f"x{j}": column_of(array[:, j], f"x{j}") for j in range(array.shape[1])}
    wanted = "a mapping of names to arrays" + (", a frame or a 2-D array" if role == "features" else " or a frame")
    raise DataError(f"`{role}` must be {wanted}; got {type(values).__name__}.")
