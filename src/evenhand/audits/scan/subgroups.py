"""From columns to subgroups: conditions on each attribute, cells of people, and all combinations of conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenhand.arrays import AnyArray, BoolArray, FloatArray, IntArray
from evenhand.audits.scan.numbers import all_digits, told_apart
from evenhand.audits.scan.options import ScanOptions
from evenhand.errors import DataError, UsageError, near_matches
from evenhand.intake import AuditData
from evenhand.kernels.scan.lattice import Lattice, build_lattice, entries_limit, sizes

_MISSING = "missing"
# A numeric feature with more values than this is cut.
_FEW_VALUES = 8
# A text with more values than this is an identifier, or free text.
_MANY_VALUES = 200
# Descriptions of this many subgroups and their draws take minutes.
_MOST_SUBGROUPS = 2_000_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Conditions:
    """The conditions on one attribute.

    Parameters
    ----------
    name : str
        The attribute.
    codes : ndarray of int, shape (records,)
        Each record's value.
    labels : tuple of str, length I
        Each condition as it is read, such as ``"sex=Female"`` or ``"age>=40"``; its numbers are rounded.
    tested : tuple of str, length I
        Each condition as it is tested, with all digits.
    membership : ndarray of bool, shape (values, I)
        Which values meet which condition.
    """

    name: str
    codes: IntArray
    labels: tuple[str, ...]
    tested: tuple[str, ...]
    membership: BoolArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subgroups:
    """All subgroups of some people.

    Parameters
    ----------
    labels, tested : tuple of str
        Each condition, over all attributes: as it is read and as it is tested.
    cell : ndarray of int, shape (records,)
        The cell of each record: people who agree in all attributes.
    count : ndarray of int, shape (C,)
        People in each cell.
    meets : ndarray of bool, shape (C, I)
        Which cells meet which condition.
    lattice : Lattice
        Which cells make which subgroup.
    described : int
        Descriptions with at most so many conditions, also those that fit nobody.
    """

    labels: tuple[str, ...]
    tested: tuple[str, ...]
    cell: IntArray
    count: IntArray
    meets: BoolArray
    lattice: Lattice
    described: int

    def name(self, conditions: IntArray) -> str:
        """Return a subgroup as findings name it."""
        return " & ".join(self.labels[i] for i in conditions if i >= 0)

    def cells(self, conditions: IntArray) -> BoolArray:
        """Return the cells that meet some conditions."""
        inside = np.ones(self.count.size, dtype=bool)
        for item in conditions:
            inside &= self.meets[:, item]
        return inside


def subgroups_of(data: AuditData, names: Sequence[str], asked: ScanOptions) -> Subgroups:
    """List all subgroups that up to `depth` conditions on these attributes describe.

    Examples
    --------
    >>> data = AuditData.from_arrays(decision=[1, 0, 1], groups={"a": ["x", "y", "y"], "b": ["u", "u", "v"]})
    >>> found = subgroups_of(data, ["a", "b"], ScanOptions())
    >>> [found.name(c) for c in found.lattice.conditions]
    ['a=x', 'a=y', 'b=u', 'b=v', 'a=x & b=u', 'a=y & b=u', 'a=y & b=v']
    """
    conditions = [conditions_of(data, name, asked) for name in names]
    depth = min(asked.depth, len(conditions))
    key = np.zeros(data.count.size, dtype=np.int64)
    for one in conditions:
        key = np.unique(key * one.membership.shape[0] + one.codes, return_inverse=True)[1].reshape(-1)
    cells, first = np.unique(key, return_index=True)
    codes = np.stack([one.codes[first] for one in conditions], axis=1)
    memberships = [one.membership for one in conditions]
    described = _refuse_too_many(conditions, depth, cells.size, asked.memory)
    return Subgroups(
        labels=tuple(label for one in conditions for label in one.labels),
        tested=tuple(label for one in conditions for label in one.tested),
        cell=key,
        count=np.bincount(key, weights=data.count, minlength=cells.size).astype(np.int64),
        meets=np.concatenate([m[codes[:, j]] for j, m in enumerate(memberships)], axis=1),
        lattice=build_lattice(codes, memberships, depth),
        described=described,
    )


def _refuse_too_many(conditions: Sequence[Conditions], depth: int, cells: int, memory: float) -> int:
    """Return the number of descriptions, or say what to drop when there are too many."""
    described, entries = sizes([one.membership for one in conditions], depth)
    most = entries_limit(memory)
    if described <= _MOST_SUBGROUPS and entries * cells <= most:
        return described
    widest = max(conditions, key=lambda one: len(one.labels))
    left = [one.membership for one in conditions if one is not widest]
    without, shallower = sizes(left, depth), sizes([one.membership for one in conditions], max(depth - 1, 1))
    size = f"{described:,} subgroups (at most {_MOST_SUBGROUPS:,} are allowed)"
    if described <= _MOST_SUBGROUPS:
        size = (
            f"{described:,} subgroups of {cells:,} cells of people, which takes about {entries * cells * 24 / 1e9:.2g} "
            f"GB (`memory=` allows {memory:g})"
        )
    raise DataError(
        f"The search would list {size}. Leave an attribute out (without `{widest.name}`, which has "
        f"{len(widest.labels)} conditions, there are {without[0]:,} subgroups), or combine fewer attributes "
        f"(`depth={max(depth - 1, 1)}` makes {shallower[0]:,})."
    )


def conditions_of(data: AuditData, name: str, asked: ScanOptions) -> Conditions:
    """Return the conditions on one group column or feature."""
    grouped = {a.name: a for a in data.attributes}
    if name in grouped:
        codes, labels = grouped[name].codes, grouped[name].labels
        return _categories(name, codes, labels, asked)
    column = data.features[name] if name in data.features else data.continuous[name]
    if column.dtype.kind in "biuf":
        values = column.astype(np.float64)
        if np.unique(values[~np.isnan(values)]).size > _FEW_VALUES:
            return _cut(name, values, data.count, asked.bins)
        return _few_numbers(name, values, asked)
    return _coded(name, np.array([_MISSING if _absent(v) else str(v) for v in column], dtype=object), asked)


def _absent(value: object) -> bool:
    return value is None or value != value


def _few_numbers(name: str, values: FloatArray, asked: ScanOptions) -> Conditions:
    """Each number is a condition, and missing ones are another."""
    distinct = np.unique(values[~np.isnan(values)]).tolist()
    text = dict(zip(distinct, told_apart(distinct), strict=True))
    made = _coded(name, np.array([text.get(value, _MISSING) for value in values.tolist()], dtype=object), asked)
    whole = {f"{name}={short}": f"{name}={all_digits(value)}" for value, short in text.items()}
    return replace(made, tested=tuple(whole.get(label, label) for label in made.labels))


def _coded(name: str, texts: AnyArray, asked: ScanOptions) -> Conditions:
    labels, codes = np.unique(texts.astype(str), return_inverse=True)
    if labels.size > _MANY_VALUES:
        raise DataError(
            f"Attribute `{name}` has {labels.size:,} values, which looks like an identifier or free text; at most "
            f"{_MANY_VALUES} are searched. Leave it out of `attributes`, or join values before the audit."
        )
    return _categories(name, codes.reshape(-1), tuple(labels.tolist()), asked)


def _categories(name: str, codes: IntArray, labels: Sequence[str], asked: ScanOptions) -> Conditions:
    """Each value is a condition, and each named set of values."""
    membership = [np.eye(len(labels), dtype=bool)]
    shown = [f"{name}={label}" for label in labels]
    for joined, members in (asked.hierarchy or {}).get(name, {}).items():
        for member in members:
            if member not in labels:
                raise UsageError(
                    f"`hierarchy` of `{name}` puts `{member}` into `{joined}`.{near_matches(member, labels)}"
                )
        membership.append(np.isin(np.array(labels, dtype=object), list(members))[:, None])
        shown.append(f"{name}={joined}")
    names = tuple(shown)
    meets = np.concatenate(membership, axis=1)
    return Conditions(name=name, codes=codes, labels=names, tested=names, membership=meets)


def _cut(name: str, values: FloatArray, count: IntArray, bins: int) -> Conditions:
    """Parts of about equal size, everything below or above a cut, and missing values."""
    known = ~np.isnan(values)
    order = np.argsort(values[known], kind="stable")
    ranked, upto = values[known][order], np.cumsum(count[known][order])
    at = np.searchsorted(upto, upto[-1] * np.arange(1, bins) / bins)
    cuts = np.unique(ranked[at])
    cuts = cuts[cuts > ranked[0]]
    codes = np.where(known, np.searchsorted(cuts, np.nan_to_num(values), side="right"), cuts.size + 1)
    # The ends are told apart too: a name must not read as if nobody, or everybody, were meant.
    seen = np.unique([ranked[0], *cuts, ranked[-1]])
    names = dict(zip(seen.tolist(), told_apart(seen.tolist()), strict=True))
    membership = []
    bounds: list[tuple[int, int]] = []
    place = np.arange(cuts.size + 2)
    for low in range(cuts.size + 1):
        for high in range(low, cuts.size + 1):
            if (low, high) == (0, cuts.size) or (low != high and low > 0 and high < cuts.size):
                continue
            bounds.append((low, high))
            membership.append((place >= low) & (place <= high))
    labels = _named_parts(name, [names[cut] for cut in cuts.tolist()], bounds)
    tested = _named_parts(name, [all_digits(cut) for cut in cuts.tolist()], bounds)
    if not known.all():
        labels.append(f"{name}={_MISSING}")
        tested.append(labels[-1])
        membership.append(place == cuts.size + 1)
    meets = np.stack(membership, axis=1) if membership else np.zeros((place.size, 0), dtype=bool)
    return Conditions(name=name, codes=codes, labels=tuple(labels), tested=tuple(tested), membership=meets)


def _named_parts(name: str, cuts: Sequence[str], bounds: Sequence[tuple[int, int]]) -> list[str]:
    """Name the parts between the first and last of some numbered stretches; cuts lie between stretches."""
    labels = []
    for low, high in bounds:
        first = f"{name}>={cuts[low - 1]}" if low > 0 else ""
        last = f"{name}<{cuts[high]}" if high < len(cuts) else ""
        labels.append(f"{cuts[low - 1]}<={last}" if first and last else first or last)
    return labels


def searchable(data: AuditData) -> list[str]:
    """Return the columns that a scan could search: groups that are no combination already, and features."""
    own = [a.name for a in data.attributes if " × " not in a.name]
    return [*own, *(name for name in (*data.features, *data.continuous) if name not in own)]


def asked_attributes(data: AuditData, asked: Sequence[str] | str | None) -> tuple[str, ...]:
    """Return the columns that are searched; by default the group columns."""
    if asked is None:
        return tuple(a.name for a in data.attributes if " × " not in a.name)
    names = (asked,) if isinstance(asked, str) else tuple(asked)
    known = searchable(data)
    away = () if data.batches is None else data.batches.features
    for name in names:
        if name in away and name not in known:
            raise UsageError(
                f"`attributes` names `{name}`, a feature of rows that stay where they are. Such rows are added up by "
                f"their groups: name it in `groups=` when you read them, with `cuts=` if it is a number."
            )
        if name not in known:
            raise UsageError(
                f"`attributes` names `{name}`, which is neither a group column nor a feature."
                f"{near_matches(name, known)}"
            )
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"`attributes` names `{twice}` twice. Name each column once.")
    return names


def check_hierarchy(hierarchy: Mapping[str, Mapping[str, Sequence[str]]] | None, names: Sequence[str]) -> None:
    """Refuse a hierarchy of an attribute that is not searched."""
    for name in hierarchy or {}:
        if name not in names:
            raise UsageError(f"`hierarchy` names `{name}`, which is not searched.{near_matches(name, list(names))}")
