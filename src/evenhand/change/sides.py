"""The two sides of a comparison: the same people, as one model decides about them and as another does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evenhand.arrays import BoolArray, FloatArray
from evenhand.errors import DataError, UsageError, near_matches
from evenhand.intake import Attribute, AuditData
from evenhand.models import audited_model
from evenhand.run import decided
from evenhand.summaries import cells_of

_ROLES = ("decision", "score")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sides:
    """The same people under both models."""

    a: AuditData
    b: AuditData
    notes: tuple[str, ...]
    _tables: dict[str, FloatArray] = field(default_factory=dict)

    def joint(self, attribute: Attribute) -> FloatArray:
        """Count rows by group, cell of the confusion table under a, and under b; made once, shape (K, 4, 4)."""
        if attribute.name not in self._tables:
            k = len(attribute.labels)
            place = 4 * attribute.codes + cells_of(self.a)
            place *= 4
            place += cells_of(self.b)
            counts = np.bincount(place, weights=self.a.count, minlength=16 * k).astype(np.float64)
            self._tables[attribute.name] = counts.reshape(k, 4, 4)
        return self._tables[attribute.name]


def make_sides(data: AuditData, a: Any, b: Any) -> Sides:
    """Let two models, or two columns, decide about the same people.

    Parameters
    ----------
    data : AuditData
        People with their groups and outcomes.
    a, b : array-like, str, mapping or model
        See `evenhand.compare`.

    Returns
    -------
    Sides
        Of the people for whom both sides have a value.
    """
    if data.moments is not None:
        raise DataError("A comparison needs rows, and these stayed on their engine as counts. Read with `rows='keep'`.")
    one, said = _side(data, a, "a")
    two, said_too = _side(data, b, "b")
    for role in _ROLES:
        if (getattr(one, role) is None) != (getattr(two, role) is None):
            has, lacks = ("a", "b") if getattr(two, role) is None else ("b", "a")
            raise UsageError(f"`{has}` has a {role} and `{lacks}` has none; both sides need the same.")
    known = _known(one) & _known(two)
    notes = [*said, *said_too]
    if not known.any():
        raise DataError("No person has a value on both sides, so nothing can be compared.")
    if not known.all():
        lost = int(data.count[~known].sum())
        notes.append(f"{lost:,} rows without a value on one of the sides are left out.")
        one, two = (_some(side, known) for side in (one, two))
    return Sides(a=one, b=two, notes=tuple(notes))


def _some(side: AuditData, keep: BoolArray) -> AuditData:
    """Return the kept records; a record stands for several rows and stays whole."""
    people = np.repeat(np.arange(side.count.size), side.count)
    return side.take(np.flatnonzero(keep[people]))


def _known(side: AuditData) -> BoolArray:
    known = np.ones(side.count.shape, dtype=bool)
    for role in _ROLES:
        values = getattr(side, role)
        if values is not None and np.isnan(values.sum()):  # a sum costs less than looking at every value
            known &= ~np.isnan(values)
    return known


def _side(data: AuditData, given: Any, name: str) -> tuple[AuditData, list[str]]:
    """Return the data with one side's decisions, scores or both."""
    bare = replace(data, decision=None, score=None, score_kind="none", score_bins=None)
    if isinstance(given, str):
        return _given(bare, {_role_of(_column(data, given), data): _column(data, given)}, name, data), []
    if isinstance(given, Mapping):
        unknown = [key for key in given if key not in _ROLES]
        if unknown or not given:
            raise UsageError(
                f"`{name}` may hold `decision` and `score`; got {', '.join(map(repr, given)) or 'nothing'}."
            )
        columns = {key: _column(data, v) if isinstance(v, str) else np.asarray(v) for key, v in given.items()}
        return _given(bare, columns, name, data), []
    if _is_model(given):
        if not data.features:
            raise UsageError(f"`{name}` is a model and the data have no features. Name its columns with `features=`.")
        model = audited_model(given, bare)
        judged, notes = decided(bare, model)
        if judged.score is None:
            raise UsageError(f"`{name}`: {model.problem}")
        return judged, [f"`{name}`: {note}" for note in notes]
    values = np.asarray(given)
    return _given(bare, {_role_of(values, data): values}, name, data), []


def _is_model(given: Any) -> bool:
    return callable(given) or any(hasattr(given, word) for word in ("predict", "predict_proba", "decision_function"))


def _column(data: AuditData, name: str) -> Any:
    own = {data.columns.get(role): getattr(data, role) for role in _ROLES}
    if name in own and own[name] is not None:
        return own[name]
    if name in data.features:
        return data.features[name]
    known = [*(n for n in own if n is not None), *data.features]
    raise UsageError(f"There is no column `{name}` to compare.{near_matches(name, known)}")


def _role_of(values: Any, data: AuditData) -> str:
    """Take 0 and 1, True and False, or the words of the decision for decisions and other numbers for scores."""
    array = np.asarray(values)
    if array.dtype == object or array.dtype.kind in "US":
        return "decision"
    return "decision" if _binary(array) else "score"


def _binary(values: Any) -> bool:
    """Whether numbers are 0, 1 or missing."""
    other = (values != 0) & (values != 1)
    return not other.any() or bool(np.isnan(values[other].astype(np.float64)).all())


def _given(bare: AuditData, columns: Mapping[str, Any], name: str, data: AuditData) -> AuditData:
    made = bare
    for role, values in columns.items():
        array = np.asarray(values)
        if array.shape != bare.count.shape:
            shown = " x ".join(map(str, array.shape))
            raise DataError(f"`{name}` has {shown} values and the data have {bare.count.size:,} rows that are used.")
        if role == "decision":
            made = replace(made, decision=_coded(array, name, data))
        else:
            made = replace(made, score=array.astype(np.float64))
    score = made.score
    if score is not None:
        known = score[~np.isnan(score)]
        inside = bool(known.size) and bool(known.min() >= 0) and bool(known.max() <= 1)
        made = replace(made, score_kind="probability" if inside else "real")
        if made.decision is None and data.threshold is not None:
            cut = np.where(np.isnan(score), np.nan, np.where(score >= data.threshold, 1.0, 0.0))
            made = replace(made, decision=cut)
    return made


def _coded(values: Any, name: str, data: AuditData) -> FloatArray:
    """Code decisions as the data's own are: the same words mean the same."""
    array = np.asarray(values)
    if array.dtype != object and array.dtype.kind not in "US":
        numbers = array.astype(np.float64)
        if not _binary(numbers):
            raise DataError(f"The decisions of `{name}` must be 0 and 1; name scores as {{'score': ...}}.")
        return numbers
    labels = data.labels.get("decision")
    if labels is None:
        raise DataError(
            f"The decisions of `{name}` are words, and which of them counts as 1 is not known; give 0 and 1."
        )
    one, zero = set(labels.one), set(labels.zero)
    coded = np.full(array.shape, np.nan)
    for i, value in enumerate(array):
        if value is not None and value == value:
            if str(value) not in one | zero:
                raise DataError(
                    f"Decision `{value}` of `{name}` does not occur among the data's decisions "
                    f"({', '.join(f'`{w}`' for w in sorted(one | zero))}); both sides need the same words."
                )
            coded[i] = float(str(value) in one)
    return coded
