"""The coordinates a model works in, and the way back to the user's own columns and units.

A pipeline with scaling and one-hot encoding turns columns into a matrix. The individual audit moves people in
that matrix and reports the movement in the columns they came from: years, dollars, categories.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import BoolArray, FloatArray, IntArray
from evenhand.errors import DataError, near_matches, optional_module
from evenhand.intake.columns import text_of
from evenhand.intake.parts import FeatureType

Columns = Mapping[str, NDArray[Any]]
Types = Mapping[str, FeatureType]


@dataclass(frozen=True, slots=True)
class Input:
    """One coordinate: the column it comes from, a category of it, or a number with its unit."""

    column: str  # the user's column
    category: str | None = None  # the category a dummy stands for
    # User's value = offset + scale * coordinate.
    offset: float = 0.0
    scale: float = 1.0

    @property
    def name(self) -> str:
        """The coordinate's name, such as ``age`` or ``job=Sales``."""
        return self.column if self.category is None else f"{self.column}={self.category}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InputSpace:
    """Named coordinates and the way there and back."""

    inputs: tuple[Input, ...]  # one per coordinate
    encode: Callable[[Columns], FloatArray]  # columns to a matrix of shape (rows, inputs)
    # (inputs,): length of one step in the model's own inputs; None when the coordinates are those inputs.
    unit: FloatArray | None = None

    @property
    def units(self) -> FloatArray:
        """Length of one step in the model's own inputs."""
        return np.ones(len(self.inputs)) if self.unit is None else self.unit

    @property
    def names(self) -> tuple[str, ...]:
        """The coordinates' names."""
        return tuple(i.name for i in self.inputs)

    @property
    def blocks(self) -> tuple[IntArray, ...]:
        """Coordinates that are the categories of one column, one array per such column."""
        places: dict[str, list[int]] = {}
        for j, i in enumerate(self.inputs):
            if i.category is not None:
                places.setdefault(i.column, []).append(j)
        return tuple(np.array(v) for v in places.values())

    def rescaled(self, center: FloatArray, unit: FloatArray) -> InputSpace:
        """Return the same space in other units: old coordinate = center + unit * new coordinate."""
        inputs = tuple(
            replace(i, offset=i.offset + i.scale * float(c), scale=i.scale * float(u)) if i.category is None else i
            for i, c, u in zip(self.inputs, center, unit, strict=True)
        )
        old = self.encode
        return InputSpace(inputs=inputs, encode=lambda columns: (old(columns) - center) / unit, unit=self.units * unit)

    def columns_of(self, names: Sequence[str]) -> BoolArray:
        """Mark the coordinates that belong to columns (or are coordinates) of these names."""
        known = {i.column for i in self.inputs} | set(self.names)
        for name in names:
            if name not in known:
                raise DataError(f"`{name}` is not an input of the model.{near_matches(name, sorted(known))}")
        return np.array([i.column in names or i.name in names for i in self.inputs])

    def movement(self, before: FloatArray, after: FloatArray, least: float = 1e-3) -> list[dict[str, Any]]:
        """Describe one row's movement in the user's columns, largest first.

        Parameters
        ----------
        before, after : ndarray, shape (inputs,)
            Two positions.
        least : float
            Movements shorter than this (in coordinates) are left out.

        Returns
        -------
        list of dict
            Numbers: column, before, after, change. Categories: column, before and after (the strongest one)
            and
            how much weight moved to which category.
        """
        rows: list[tuple[float, dict[str, Any]]] = []
        for j, i in enumerate(self.inputs):
            if i.category is None and abs(after[j] - before[j]) >= least:
                a, b = i.offset + i.scale * before[j], i.offset + i.scale * after[j]
                rows.append((abs(after[j] - before[j]), {"column": i.column, "before": a, "after": b, "change": b - a}))
        for block in self.blocks:
            change = after[block] - before[block]
            if np.abs(change).max() < least:
                continue
            label = [str(self.inputs[j].category) for j in block]
            rows.append(
                (
                    float(np.abs(change).max()),
                    {
                        "column": self.inputs[block[0]].column,
                        "before": label[int(before[block].argmax())],
                        "after": label[int(after[block].argmax())],
                        "toward": label[int(change.argmax())],
                        "weight_toward": float(change.max()),
                        "away_from": label[int(change.argmin())],
                        "weight_away": float(change.min()),
                    },
                )
            )
        return [row for _, row in sorted(rows, key=lambda r: -r[0])]


def numeric_space(columns: Columns, names: Sequence[str] | None, expected: int | None) -> InputSpace:
    """Make the space of a model that takes a plain matrix of numbers.

    Parameters
    ----------
    columns : mapping of str to ndarray
        The features.
    names : sequence of str, optional
        The columns the model was fitted on, in its order; by default all, in the order given.
    expected : int, optional
        How many inputs the model takes.

    Returns
    -------
    InputSpace
    """
    order = list(columns) if names is None else [str(n) for n in names]
    for name in order:
        if name not in columns:
            raise DataError(f"The model needs the feature `{name}`, which is missing.{near_matches(name, columns)}")
        if columns[name].dtype.kind not in "biuf":
            raise DataError(
                f"Feature `{name}` holds text and the model takes a matrix of numbers. Put an encoder before the model "
                "in a scikit-learn pipeline and hand over the pipeline."
            )
    if expected is not None and len(order) != expected:
        raise DataError(f"The model takes {expected} inputs; {len(order)} features were given: {', '.join(order[:8])}.")

    def encode(features: Columns) -> FloatArray:
        return np.column_stack([np.asarray(features[name], dtype=np.float64) for name in order])

    return InputSpace(inputs=tuple(Input(name) for name in order), encode=encode)


def as_frame(columns: Columns, types: Types | None = None) -> Any:
    """Return the features as a pandas frame, the form in which pipelines know columns by name.

    Parameters
    ----------
    columns : mapping of str to ndarray
        The features.
    types : mapping of str to FeatureType, optional
        How columns were kept where the model was fitted; they are given back so.

    Returns
    -------
    pandas.DataFrame

    Examples
    --------
    >>> job = FeatureType(kind="category", categories=("b", "a"))
    >>> as_frame({"job": np.array(["a", "b"], dtype=object)}, {"job": job})["job"].cat.categories.tolist()
    ['b', 'a']
    """
    missing = "This model takes columns by name, for which pandas is needed: pip install evenhand[pandas]."
    pandas = optional_module("pandas", missing)
    types = types or {}
    return pandas.DataFrame(
        {name: _typed(np.asarray(c), types[name]) if name in types else np.asarray(c) for name, c in columns.items()}
    )


def own_values(column: NDArray[Any], kind: FeatureType | None) -> NDArray[Any]:
    """Return categories that are not texts as the source's own values, and anything else as it is.

    Examples
    --------
    >>> own_values(np.array(["3", "1"], dtype=object), FeatureType(kind="category", categories=(1, 3))).tolist()
    [3, 1]
    """
    if kind is None or kind.kind != "category" or all(isinstance(c, str) for c in kind.categories):
        return column
    place = {text_of(c): c for c in kind.categories}
    return np.array([place.get(text_of(v)) for v in column])


def _typed(column: NDArray[Any], kind: FeatureType) -> Any:
    import pandas

    if kind.kind == "category":
        texts = [text_of(c) for c in kind.categories]
        codes = pandas.Categorical(column, categories=texts).codes
        return pandas.Categorical.from_codes(
            codes, dtype=pandas.CategoricalDtype(list(kind.categories), ordered=kind.ordered)
        )
    if column.dtype.kind != "f":
        return column
    if kind.kind == "truth":
        return column == 1 if bool(((column == 0) | (column == 1)).all()) else column
    # What was moved between whole numbers stays there.
    with np.errstate(invalid="ignore"):
        whole = bool((np.isfinite(column) & (column == np.rint(column)) & (np.abs(column) < 2**53)).all())
    return column.astype(np.int64) if whole else column


def pipeline_space(transformers: Sequence[Any], columns: Columns, types: Types | None = None) -> InputSpace:
    """Make the space after a pipeline's fitted transformers.

    Scalers, imputers, one-hot encoders and column transformers are followed exactly; any other step gets the
    names it gives to its outputs, in its own units.

    Parameters
    ----------
    transformers : sequence
        The steps before the last.
    columns : mapping of str to ndarray
        The features.
    types : mapping of str to FeatureType, optional
        See `as_frame`.

    Returns
    -------
    InputSpace
    """
    first = transformers[0]
    wanted = getattr(first, "feature_names_in_", None)
    order = list(columns) if wanted is None else [str(n) for n in wanted]
    for name in order:
        if name not in columns:
            raise DataError(f"The model needs the feature `{name}`, which is missing.{near_matches(name, columns)}")

    def encode(features: Columns) -> FloatArray:
        if wanted is None and all(features[n].dtype.kind in "biuf" for n in order):
            X: Any = np.column_stack([np.asarray(features[n], dtype=np.float64) for n in order])
        else:
            X = as_frame({n: features[n] for n in order}, types)
        for step in transformers:
            X = step.transform(X)
        X = X.toarray() if hasattr(X, "toarray") else X
        return np.ascontiguousarray(np.asarray(X, dtype=np.float64))

    inputs = [Input(name) for name in order]
    for step in transformers:
        inputs = _through(step, inputs)
    return InputSpace(inputs=tuple(inputs), encode=encode)


def _through(step: Any, inputs: list[Input]) -> list[Input]:
    """Follow coordinates through one fitted transformer."""
    kind = type(step).__name__
    if step in ("passthrough", None) or (
        kind in ("SimpleImputer", "FunctionTransformer") and _width(step) in (None, len(inputs))
    ):
        return inputs
    if kind == "Pipeline":
        for _, part in step.steps:
            inputs = _through(part, inputs)
        return inputs
    if kind == "ColumnTransformer":
        names = [i.name for i in inputs]
        out: list[Input] = []
        for _, part, chosen in step.transformers_:
            if isinstance(part, str) and part == "drop":
                continue
            out += _through(part, [inputs[j] for j in _places(chosen, names)])
        return out
    if kind == "OneHotEncoder":
        out = []
        for k, (i, labels) in enumerate(zip(inputs, step.categories_, strict=True)):
            dropped = None if step.drop_idx_ is None else step.drop_idx_[k]
            out += [Input(i.column, str(c)) for m, c in enumerate(labels) if m != dropped]
        return out if len(out) == _width(step) else _opaque(step, inputs)
    scale, center = getattr(step, "scale_", None), None
    if kind in ("StandardScaler", "RobustScaler"):
        center = (step.mean_ if step.with_mean else None) if kind == "StandardScaler" else step.center_
        center, scale = (0.0 if center is None else center), (1.0 if scale is None else scale)
    elif kind == "MaxAbsScaler":
        center = 0.0
    elif kind == "MinMaxScaler" and scale is not None:  # x * scale_ + min_
        center, scale = -step.min_ / scale, 1.0 / scale
    if center is None or scale is None:
        return _opaque(step, inputs)
    centers, scales = np.broadcast_to(center, len(inputs)), np.broadcast_to(scale, len(inputs))
    return [
        Input(i.column, i.category, i.offset + i.scale * float(c), i.scale * float(s)) if i.category is None else i
        for i, c, s in zip(inputs, centers, scales, strict=True)
    ]


def _width(step: Any) -> int | None:
    try:
        return len(step.get_feature_names_out())
    except Exception:  # a transformer that cannot name its outputs
        return None


def _opaque(step: Any, inputs: list[Input]) -> list[Input]:
    for names in ([i.name for i in inputs], None):
        try:
            return [Input(str(name)) for name in step.get_feature_names_out(names)]
        except Exception:  # other names than it was fitted with, or none at all
            continue
    return [Input(f"{type(step).__name__.lower()} {j}") for j in range(len(inputs))]


def _places(chosen: Any, names: list[str]) -> list[int]:
    if isinstance(chosen, str):
        return [names.index(chosen)]
    if isinstance(chosen, slice):
        return list(range(len(names)))[chosen]
    values = list(np.atleast_1d(np.asarray(chosen, dtype=object)))
    if values and all(isinstance(v, bool | np.bool_) for v in values):
        return [j for j, v in enumerate(values) if v]
    return [names.index(v) if isinstance(v, str) else int(v) for v in values]
