"""What stands behind a finding: typed, written to plain data and read back from it in one place.

Each audit declares what it shows as subclasses of `Part`, which are frozen dataclasses; the evidence of a finding as a
whole is an `Evidence`. The JSON schema of ``findings.json`` is made from these classes.
"""

from __future__ import annotations

import math
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self, Union, dataclass_transform, get_args, get_origin, get_type_hints

from evenhand.results.finding import Interval, plain


@dataclass_transform(frozen_default=True, kw_only_default=True, eq_default=False, field_specifiers=(field,))
@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """A piece of evidence whose keys are its fields.

    A field that is None by default is left out while it is None; every other one is always written. A number that is
    not known is NaN, never None; one that is not finite is written as null and read back as NaN. A name that Python
    keeps for itself ends in an underscore, which its key does not.

    Examples
    --------
    >>> Ends(low=0.0, high=float("nan"), level=0.95).to_dict()
    {'low': 0.0, 'high': None, 'level': 0.95}
    """

    def __init_subclass__(cls) -> None:
        """Make every kind of part a frozen dataclass whose fields are given by name."""
        dataclass(frozen=True, kw_only=True, eq=False)(cls)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        data = {}
        for key, (name, _, left_out) in keys_of(type(self)).items():
            value = getattr(self, name)
            if value is not None or not left_out:
                data[key] = _written(value)
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild it from `to_dict`."""
        known = keys_of(cls)
        return cls(**{known[key][0]: _read(known[key][1], value) for key, value in data.items()})


class OpenPart(Part):
    """A part that also has keys which another room describes, such as those of a fair metric."""

    details: Mapping[str, Any] = field(default_factory=dict)  # these keys; they are written among the part's own

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {**plain(self.details), **Part.to_dict(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild it from `to_dict`."""
        known = keys_of(cls)
        own = {known[key][0]: _read(known[key][1], value) for key, value in data.items() if key in known}
        return cls(**own, details={key: value for key, value in data.items() if key not in known})


class Ends(Part):
    """An interval whose construction is said elsewhere."""

    low: float
    high: float
    level: float


class Null(Part):
    """What chance alone gives, as a histogram of the statistic."""

    counts: tuple[int, ...]
    edges: tuple[float, ...]


class Evidence(Part):
    """What any audit may say about a finding; a finding that is not computable has little or none of it.

    Parameters
    ----------
    fact, planning : str
        What was seen, and what could have been detected.
    values : mapping or tuple
        The value of each group, or of each condition.
    warnings : tuple of str
        Where the method is known to be less reliable and the data are there.
    test, statistic : str, float
        The test and its statistic.
    exact, n_resamples : bool, int
        Whether its distribution is exact, and how many random draws it made.
    pvalue_floor, pvalue_low, pvalue_high : float
        The smallest p-value the test could give, and the Monte-Carlo limits of this one.
    null : Null
        What chance alone gives.
    difference_pvalue, equivalence_pvalue : float
        With a margin: for no difference, and for lying outside the margin.
    adjusted_pvalue, critical_pvalue : float
        Adjusted jointly with the audit's other findings, and the p-value that a single one had to reach.
    difference_pvalue_adjusted, equivalence_pvalue_adjusted : float
        After the correction over all findings.
    verdict_interval : Interval
        At the level at which the verdict was reached.
    """

    fact: str | None = None
    planning: str | None = None
    values: Mapping[str, float] | tuple[float, ...] | None = None
    warnings: tuple[str, ...] | None = None
    test: str | None = None
    statistic: float | None = None
    exact: bool | None = None
    n_resamples: int | None = None
    pvalue_floor: float | None = None
    pvalue_low: float | None = None
    pvalue_high: float | None = None
    null: Null | None = None
    difference_pvalue: float | None = None
    equivalence_pvalue: float | None = None
    adjusted_pvalue: float | None = None
    critical_pvalue: float | None = None
    difference_pvalue_adjusted: float | None = None
    equivalence_pvalue_adjusted: float | None = None
    verdict_interval: Interval | None = None


def read_evidence(data: Mapping[str, Any], classes: Sequence[type[Evidence]]) -> Evidence:
    """Rebuild evidence as the first of some classes that fits it."""
    for cls in classes:
        if _fits(cls, data):
            return cls.from_dict(data)
    raise ValueError(f"this is not the evidence of a finding: {', '.join(map(str, data))}")


_KEYS: dict[type[Part], dict[str, tuple[str, Any, bool]]] = {}


def keys_of(cls: type[Part]) -> dict[str, tuple[str, Any, bool]]:
    """Return each key of a part with the field's name, its type, and whether it is left out while it is None."""
    if cls not in _KEYS:
        hints = get_type_hints(cls)
        own = [f for f in fields(cls) if f.name != "details" or not issubclass(cls, OpenPart)]
        _KEYS[cls] = {f.name.removesuffix("_"): (f.name, hints[f.name], f.default is None) for f in own}
    return _KEYS[cls]


def _fits(cls: type[Part], data: Mapping[str, Any]) -> bool:
    """Say whether a part has all keys of some data, and no key that these would need."""
    known = keys_of(cls)
    needed = {key for key, (_, _, left_out) in known.items() if not left_out}
    return needed <= data.keys() and (issubclass(cls, OpenPart) or data.keys() <= known.keys())


def _written(value: Any) -> Any:
    if isinstance(value, Part):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(key): _written(item) for key, item in value.items()}
    return [_written(item) for item in value] if isinstance(value, tuple | list) else plain(value)


def _read(hint: Any, value: Any) -> Any:
    """Read plain data as a field's type says."""
    asked, origin = [hint], get_origin(hint)
    if origin in (Union, types.UnionType):
        asked = [h for h in get_args(hint) if h is not types.NoneType]
    if value is None:
        return math.nan if float in asked else None
    parts = [one for one in asked if isinstance(one, type) and issubclass(one, Part)]
    for one in asked:
        kind, of = get_origin(one), get_args(one)
        if one is Interval or (one in parts and _fits(one, value)):
            return one.from_dict(value)
        if kind is tuple and isinstance(value, list | tuple):
            return tuple(_read(of[0], item) for item in value)
        if kind is Mapping and isinstance(value, Mapping):
            return {key: _read(of[1], item) for key, item in value.items()}
    if parts:
        raise ValueError(f"this is no {parts[0].__name__}: {value}")
    return value
