"""`Column`: one column of any source as numbers, or as codes and labels.

Whatever the back end, the same content becomes the same column: this is where frames end.
"""

from __future__ import annotations

import datetime
import decimal
import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import BoolArray, FloatArray, IntArray
from evenhand.errors import DataError
from evenhand.intake.fixed_width import code_texts
from evenhand.intake.parts import FeatureType
from evenhand.intake.wording import number_text


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Column:
    """One column, coded."""

    kind: str  # Numbers; True and False as 1.0 and 0.0; or codes into `labels`; one of "number", "truth", "label"
    values: NDArray[Any]  # (records,): floats with NaN where missing, or int codes with -1 where missing
    labels: tuple[str, ...] = ()  # the texts the codes stand for; empty for numbers
    source_type: FeatureType | None = None  # how the source kept it, where `kind` does not say all

    def __len__(self) -> int:
        return len(self.values)

    @property
    def missing(self) -> BoolArray:
        """Mark the records without a value."""
        mask: BoolArray = self.values < 0 if self.kind == "label" else np.isnan(self.values)
        return mask

    def distinct(self) -> tuple[IntArray, tuple[float, ...] | tuple[str, ...]]:
        """Return each record's place among the distinct values that occur, and these values sorted."""
        if self.kind == "label":
            return relabel(self.values, self.labels)
        codes, distinct = factorise_numbers(self.values)
        return codes, tuple(float(v) for v in distinct)

    def texts(self) -> tuple[IntArray, tuple[str, ...]]:
        """Return each record's place among the distinct labels that occur, and these labels sorted."""
        if self.kind == "label":
            return relabel(self.values, self.labels)
        codes, distinct = self.distinct()
        return relabel(codes, tuple(self.text(v) for v in distinct))

    def text(self, value: float | str) -> str:
        """Return one of its values as a text."""
        if self.kind == "truth":
            return "True" if value else "False"
        return number_text(float(value)) if self.kind == "number" else str(value)

    def take(self, keep: BoolArray) -> Column:
        """Return the marked records."""
        return replace(self, values=self.values[keep])

    def plain(self) -> NDArray[Any]:
        """Return numbers as floats, and labels and categories as an array of texts, None where missing."""
        codes, labels = self.values, self.labels
        if self.kind != "label":
            if self.source_type is None or self.source_type.kind != "category":
                return np.asarray(self.values, dtype=np.float64)
            codes, labels = self.texts()  # categories that are numbers have no distance between them
        texts: NDArray[Any] = np.array([*labels, None], dtype=object)
        return np.asarray(texts[codes])


def relabel(codes: IntArray, labels: tuple[str, ...]) -> tuple[IntArray, tuple[str, ...]]:
    """Keep the labels that occur, merge equal ones and sort them.

    Examples
    --------
    >>> codes, labels = relabel(np.array([2, 0, -1]), ("b", "unused", "a"))
    >>> codes.tolist(), labels
    ([0, 1, -1], ('a', 'b'))
    """
    used = np.bincount(codes + 1, minlength=len(labels) + 1)[1:] > 0
    kept = tuple(sorted({label for label, use in zip(labels, used, strict=True) if use}))
    place = {label: i for i, label in enumerate(kept)}
    table = np.array([*(place.get(label, -1) for label in labels), -1], dtype=np.int64)
    return table[codes], kept


def factorise_numbers(values: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return each number's place among the sorted distinct ones (-1 for NaN), and these."""
    known = ~np.isnan(values)
    inside = values if known.all() else values[known]
    codes = np.full(values.shape, -1, dtype=np.int64)
    if not inside.size:
        return codes, np.empty(0)
    low, high = float(inside.min()), float(inside.max())
    if math.isfinite(low) and math.isfinite(high) and high - low < 65536:
        whole = inside.astype(np.int64)
        if (whole == inside).all():  # small whole numbers need no sorting
            used = np.bincount(whole - int(low)) > 0
            place = np.cumsum(used) - 1
            codes[known] = place[whole - int(low)]
            return codes, np.flatnonzero(used).astype(np.float64) + int(low)
    distinct, codes[known] = np.unique(inside, return_inverse=True)
    return codes, distinct


def from_codes(codes: Any, labels: Iterable[Any]) -> Column:
    """Make a label column from codes (-1 where missing) and texts; blank texts are missing."""
    texts = ["" if is_missing(v) else text_of(v) for v in labels]
    table = np.array([*(i if t.strip() else -1 for i, t in enumerate(texts)), -1], dtype=np.int64)
    return Column(kind="label", values=table[np.asarray(codes, dtype=np.int64)], labels=tuple(texts))


def from_values(values: Any, name: str) -> Column:
    """Turn a one-dimensional array or list into a column; `frames.column_of` takes series too.

    Parameters
    ----------
    values : array-like
        Numbers, booleans or labels; never changed.
    name : str
        For messages.

    Returns
    -------
    Column

    Examples
    --------
    >>> from_values(["a", None, "b", float("nan")], "x").values.tolist()
    [0, -1, 2, -1]
    >>> from_values([True, None, False], "x").kind
    'truth'
    """
    if isinstance(values, np.ma.MaskedArray):
        inside, mask = _from_array(np.asarray(values.data), name), np.ma.getmaskarray(values)
        gap = -1 if inside.kind == "label" else math.nan
        return replace(inside, values=np.where(mask, gap, inside.values))
    if isinstance(values, np.ndarray):
        return _from_array(values, name)
    if isinstance(values, str | bytes | Mapping) or not hasattr(values, "__len__"):
        if not hasattr(values, "__array__"):
            raise DataError(f"`{name}` must be an array or a list; got {type(values).__name__}.")
        return _from_array(np.asarray(values), name)
    return _from_array(_list_array(values), name)


def _list_array(values: Any) -> NDArray[Any]:
    # numpy would turn a list of texts and NaN into texts, and a missing label into the text "nan".
    if hasattr(values, "__array__"):
        return np.asarray(values)
    items = list(values)
    types = set(map(type, items))
    if any(issubclass(t, list | tuple | np.ndarray) for t in types):
        return np.empty((len(items), 2))  # the caller refuses it by its shape
    if types and (types <= {int, float} or types == {bool}):
        try:
            return np.asarray(items)
        except OverflowError:
            return np.asarray(items, dtype=np.float64)
    return object_array(items)


def object_array(items: Sequence[Any]) -> NDArray[Any]:
    """Return one object per item, whatever the items are: numpy would make texts or a matrix of some."""
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def _from_array(array: NDArray[Any], name: str) -> Column:
    if array.ndim != 1:
        shape = " x ".join(str(s) for s in array.shape) or "a single value"
        raise DataError(f"`{name}` must be one-dimensional, one value per row; got {shape}.")
    kind = array.dtype.kind
    if kind == "b":
        return Column(kind="truth", values=array.astype(np.float64), source_type=FeatureType(kind="truth"))
    if kind in "iuf":
        whole = FeatureType(kind="integer") if kind in "iu" else None
        return Column(kind="number", values=array.astype(np.float64), source_type=whole)
    if kind in "mM":
        texts = np.where(np.isnat(array), "", array.astype(str))
        return _from_objects(texts.tolist(), name)
    if kind in "US":
        coded = code_texts(array)
        if coded is not None:
            return from_codes(coded[0], coded[1].tolist())
    if kind in "UOST":
        return _from_objects(array.tolist(), name)
    raise DataError(f"`{name}` has values of type {array.dtype}; numbers, booleans or labels are needed.")


class _Places(dict[Any, int]):
    """The place of each value among the distinct ones, in the order in which they are first asked for."""

    def __missing__(self, value: Any) -> int:
        place = self[value] = len(self)
        return place


def _from_objects(items: list[Any], name: str) -> Column:
    places = _Places()
    try:
        codes = np.fromiter(map(places.__getitem__, items), dtype=np.int64, count=len(items))
    except TypeError as error:
        raise DataError(f"`{name}` holds values that are not labels or numbers: {error}.") from None
    distinct = list(places)
    known = [v for v in distinct if not is_missing(v)]
    kinds = {"truth": bool | np.bool_, "number": numbers.Real | decimal.Decimal | np.number}
    for kind, types in kinds.items():
        if known and all(isinstance(v, types) for v in known):
            table = np.array([math.nan if is_missing(v) else float(v) for v in distinct])
            return Column(kind=kind, values=table[codes])
    return from_codes(codes, distinct)


def is_missing(value: Any) -> bool:
    """Say whether a value stands for "not known": None, NaN, NaT or a frame library's NA."""
    if value is None or value is np.ma.masked:
        return True
    if isinstance(value, str | bytes):
        return False
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA refuses to be true or false
        return True


def text_of(value: Any) -> str:
    """Return a value as the text it is known by: labels, numbers without needless digits, dates."""
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, numbers.Real | decimal.Decimal | np.number):
        return number_text(float(value))
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date().isoformat()
    return str(value)
