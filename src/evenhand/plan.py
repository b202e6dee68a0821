"""The plan: which audits run, with which options, on how much error. Checked when it is made, before any work."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.audits.options import SHARED, ask, check_names, options_of
from evenhand.audits.reference import WORDS
from evenhand.audits.registry import AUDITS
from evenhand.errors import UsageError, near_matches
from evenhand.inference.multiplicity import CORRECTIONS
from evenhand.intake import AuditData, read
from evenhand.results import Displayed


@dataclass(frozen=True, slots=True, init=False)
class Plan(Displayed):
    """What an audit is to do, decided before the data are looked at.

    Parameters
    ----------
    audits : tuple of str
        Which audits run, such as ``("group", "tail")``.
    alpha : float
        Error rate over all findings of all audits.
    correction : {"gatekeeping", "holm", "bonferroni", "bh", "max-t", "none"}
        How p-values are adjusted over them. By default the group, individual, tail and scan audits share the error,
        and projection and proxy, which explain a difference between groups, open as the group audit shows one.
    seed : int, optional
        Every random draw comes from it. `evenhand.audit` writes the one it used into the run's plan.
    n_resamples : int, optional
        Random permutations where a test is not exact, for all audits that draw them.
    reference : mapping of str to str, or str
        The group each attribute's others are compared with, for all audits; by default the largest. The group audit
        also takes a word, for one attribute or alone for all: ``"highest"``, ``"rest"``, ``"overall"``.
    data : mapping
        Options of `evenhand.read` and ``model``, so that ``evenhand audit FILE --plan`` needs no other words.
    notes : tuple of str
        Sentences the run repeats, such as why an audit was left out.
    **sections : mapping
        By an audit's name, options of its function beyond those above, such as
        ``group={"metrics": ["fnr"], "margin": 0.05}``; each is an attribute of the plan, too.

    Examples
    --------
    >>> plan = Plan(alpha=0.01, group={"metrics": ["fnr", "fpr"]})
    >>> plan.to_dict()["alpha"], plan.hash == Plan(alpha=0.01, group={"metrics": ("fnr", "fpr")}).hash
    (0.01, True)
    """

    audits: tuple[str, ...]
    alpha: float
    correction: str
    seed: int | None
    n_resamples: int | None
    reference: Mapping[str, str] | str
    data: Mapping[str, Any]
    sections: Mapping[str, Mapping[str, Any]]
    notes: tuple[str, ...]

    def __init__(
        self,
        /,
        *,
        audits: Sequence[str] = ("group",),
        alpha: float = 0.05,
        correction: str = "gatekeeping",
        seed: int | None = None,
        n_resamples: int | None = None,
        reference: Mapping[str, str] | str | None = None,
        data: Mapping[str, Any] | None = None,
        notes: Sequence[str] = (),
        **sections: Mapping[str, Any],
    ) -> None:
        object.__setattr__(self, "sections", {name: {} for name in AUDITS})
        self._take(
            audits=audits,
            alpha=alpha,
            correction=correction,
            seed=seed,
            n_resamples=n_resamples,
            reference={} if reference is None else reference,
            data={} if data is None else data,
            notes=notes,
            **sections,
        )

    def __getattr__(self, name: str) -> Mapping[str, Any]:
        """Return the options of one audit."""
        if name in AUDITS:
            return self.sections[name]
        raise AttributeError(f"A plan has no `{name}`.")

    def _take(self, /, **given: Any) -> None:
        """Check parts of the plan and keep them; each value is checked when it enters, and only then."""
        for key, value in given.items():
            if key in AUDITS:
                sections = {**self.sections, key: _section(key, _simple(value))}
                object.__setattr__(self, "sections", sections)
            elif key in _PARTS:
                object.__setattr__(self, key, _PARTS[key](key, _simple(value)))
            else:
                known = [*_PARTS, *AUDITS]
                raise UsageError(f"The plan has the key `{key}`, which is not known.{near_matches(key, known)}")

    def changed(self, **parts: Any) -> Plan:
        """Return the plan with some parts replaced; only they are checked.

        Examples
        --------
        >>> Plan(group={"metrics": ["fnr"]}).changed(alpha=0.01).group
        {'metrics': ['fnr']}
        """
        new = object.__new__(Plan)
        for one in fields(self):
            object.__setattr__(new, one.name, getattr(self, one.name))
        new._take(**parts)
        return new

    @classmethod
    def default(cls, data: AuditData, model: Any = None, *, base: Plan | None = None) -> Plan:
        """Choose the audits that these columns, and this model, allow.

        Parameters
        ----------
        data : AuditData
            What is to be audited.
        model : object, optional
            The model that decided.
        base : Plan, optional
            Where all but the audits comes from, such as ``Plan(alpha=0.01)``.

        Returns
        -------
        Plan
            Its notes say why an audit was left out.

        Examples
        --------
        >>> import evenhand as eh
        >>> plan = Plan.default(eh.datasets.planted(rows=100, rng=0))
        >>> plan.audits, len(plan.notes)
        (('group',), 1)
        """
        base = cls() if base is None else base
        why = {name: row.lacks(data, model, base.sections[name]) for name, row in AUDITS.items()}
        chosen = tuple(name for name in AUDITS if not why[name])
        if not chosen:
            raise UsageError(f"No audit can run on these columns: the group audit {why['group']}.")
        told = "; ".join(f"the {name} audit, which {why[name]}" for name in AUDITS if name not in chosen)
        left_out = (f"Left out: {told}.",) if told else ()
        asked: dict[str, Any] = {}
        if data.outcome_kind != "binary":  # by default some ask about errors, which need an outcome
            asked = {name: {**AUDITS[name].without_outcome, **base.sections[name]} for name in chosen}
        return base.changed(audits=chosen, notes=(*base.notes, *left_out), **asked)

    @classmethod
    def from_toml(cls, path: str | Path) -> Plan:
        """Read a plan from a TOML file; its keys are the parameters above.

        Parameters
        ----------
        path : str or Path
            Such as ``audit.toml``.

        Returns
        -------
        Plan
        """
        try:
            content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            told = error.strerror if isinstance(error, OSError) else error
            raise UsageError(f"Plan `{path}` cannot be read: {str(told).rstrip('.')}.") from error
        try:
            return cls.from_dict(content)
        except UsageError as error:
            raise UsageError(f"Plan `{path}`: {error}") from error

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Plan:
        """Make a plan from plain data, such as `to_dict` or a run's `plan`."""
        return cls(**{k: v for k, v in content.items() if k != "hash"})

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data; an object of one's own is described by its name and content."""
        content = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("sections", "notes")}
        content |= {**self.sections, "notes": self.notes}
        plain: dict[str, Any] = json.loads(json.dumps(content, default=_named))
        return plain

    @property
    def hash(self) -> str:
        """SHA-256 of the plan's canonical JSON: the same for the same plan on any machine."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def to_toml(self) -> str:
        """Return the plan as TOML; what is left at its default is left out.

        Returns
        -------
        str

        Examples
        --------
        >>> print(Plan(seed=1, group={"metrics": ["fnr"]}).to_toml(), end="")
        audits = ["group"]
        alpha = 0.05
        correction = "gatekeeping"
        seed = 1
        <BLANKLINE>
        [group]
        metrics = ["fnr"]
        """
        return "\n".join(_toml_lines(self.to_dict())) + "\n"


def check_fits(plan: Plan, data: AuditData, model: Any) -> None:
    """Refuse a plan of which some audit lacks what it needs, as far as can be seen without running it.

    Examples
    --------
    >>> import evenhand as eh
    >>> check_fits(Plan(), eh.datasets.planted(rows=100, rng=0), None)
    """
    for name in plan.audits:
        why = AUDITS[name].lacks(data, model, plan.sections[name])
        if why:
            raise UsageError(f"The audit `{name}` {why}. Give it, or leave the audit out of `audits=`.")


def _names(key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        raise UsageError(f"`{key}` is {value!r}; allowed: a list of names such as {list(AUDITS)[:2]}.")
    return tuple(value)


def _audits(key: str, value: Any) -> tuple[str, ...]:
    names = _names(key, value)
    for name in names:
        if name not in AUDITS:
            raise UsageError(f"Audit `{name}` is not known.{near_matches(name, AUDITS)}")
        if names.count(name) > 1:
            raise UsageError(f"Audit `{name}` is named twice in `audits=`. Name each audit once.")
    if not names:
        raise UsageError("The plan names no audit. Name at least one in `audits=`.")
    return names


def _alpha(key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
        raise UsageError(f"`{key}` must lie between 0 and 1; got {value!r}.")
    return value


def _correction(key: str, value: Any) -> str:
    if value not in CORRECTIONS:
        raise UsageError(f"`{key}` is `{value}`; allowed: {', '.join(f'`{c}`' for c in CORRECTIONS)}.")
    return str(value)


def _seed(key: str, value: Any) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63):
        raise UsageError(f"`{key}` must be a whole number from 0 on; got {value!r}.")
    return value


def _resamples(key: str, value: Any) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 99):
        raise UsageError(f"`{key}` must be a whole number of at least 99; got {value!r}.")
    return value


def _table(key: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"`{key}` is {value!r}; allowed: a table of options.")
    return value


def _reference(key: str, value: Any) -> dict[str, str] | str:
    if isinstance(value, str):
        if value not in WORDS:
            raise UsageError(
                f"`reference=` is `{value}`; allowed: {', '.join(f'`{word}`' for word in WORDS)}, or a group of each "
                'attribute, such as `reference = {sex = "Male"}`.'
            )
        return value
    if not all(isinstance(label, str) for label in _table(key, value).values()):
        raise UsageError('`reference=` takes labels as text, such as `reference = {sex = "Male"}`.')
    return _table(key, value)


# What is said of the source beside it, and never by a plan: a plan may come from a stranger, and a query reads files.
_OF_SOURCE = ("source", "table", "query", "sheet", "memory", "progress", "rows", "score_bins")


def _data(key: str, value: Any) -> dict[str, Any]:
    known = {k: v for k, v in options_of(read).items() if k not in _OF_SOURCE}
    given = {k: v for k, v in _table(key, value).items() if k != "model"}
    if not isinstance(value.get("model", ""), str):
        raise UsageError("`data.model` is a file or `package.module:object`, as text. Pass an object as `model=`.")
    check_names(known, given, "`data`")
    for name, one in given.items():
        known[name].check(one, "data.")
    return _table(key, value)


def _section(name: str, value: Any) -> dict[str, Any]:
    """Check the options of one audit, but for those that are given once for the whole plan."""
    options = _table(name, value)
    if not options:
        return options  # an audit that is not asked for is not loaded
    for key in options:
        if key in SHARED:
            raise UsageError(f"`{key}` belongs to the whole plan, not to the audit `{name}`.")
    kind = AUDITS[name].options
    check_names([key for key in options_of(kind) if key not in SHARED], options, f"The audit `{name}`")
    ask(kind, options, f"{name}.")
    return options


# What a plan holds beside the options of each audit, and how it is checked.
_PARTS: Mapping[str, Callable[[str, Any], Any]] = {
    "audits": _audits,
    "alpha": _alpha,
    "correction": _correction,
    "seed": _seed,
    "n_resamples": _resamples,
    "reference": _reference,
    "data": _data,
    "notes": _names,
}


def _simple(value: Any) -> Any:
    """Copy containers and numbers into plain ones, so that equal plans are equal; other objects stay."""
    if isinstance(value, Mapping):
        return {str(k): _simple(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_simple(v) for v in value]
    return value.item() if isinstance(value, np.generic) else value


def _named(value: Any) -> Any:
    """Describe an object of one's own in a plan by its content where it has one, else by its name."""
    if isinstance(value, np.ndarray):
        return {"array": hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest(), "shape": value.shape}
    name = getattr(value, "__qualname__", type(value).__qualname__)
    content = {f: getattr(value, f) for f in getattr(value, "__dataclass_fields__", {})}
    if not callable(value):
        inner = getattr(value, "__dict__", {}).items()
        content |= {k: v for k, v in inner if isinstance(v, str | bool | int | float | list | np.ndarray)}
    return {"object": f"{getattr(value, '__module__', '')}.{name}", **content}


def _toml_lines(content: Mapping[str, Any]) -> Iterator[str]:
    tables = {k: v for k, v in content.items() if isinstance(v, Mapping) and v}
    for key, value in content.items():
        if key not in tables and value is not None and value not in ({}, []):
            yield f"{key} = {toml_value(value)}"
    for name, table in tables.items():
        yield f"\n[{name}]"
        yield from (f"{toml_key(k)} = {toml_value(v)}" for k, v in table.items() if v is not None)


def toml_key(name: str) -> str:
    """Write a key as TOML: bare where that is allowed, else quoted.

    Parameters
    ----------
    name : str
        The key.

    Returns
    -------
    str

    Examples
    --------
    >>> toml_key("sex"), toml_key("sex × race")
    ('sex', '"sex × race"')
    """
    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if bare else toml_value(name)


def toml_value(value: Any) -> str:
    """Write a value as TOML.

    Parameters
    ----------
    value : str, bool, int, float, list or mapping
        Plain data.

    Returns
    -------
    str

    Examples
    --------
    >>> toml_value({"sex": "Male", "cuts": [25, 40.5]})
    '{sex = "Male", cuts = [25, 40.5]}'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON's escapes are TOML's, but for the delete character.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml_value(v) for v in value) + "]"
    if isinstance(value, Mapping):
        inner = ", ".join(f"{toml_key(str(k))} = {toml_value(v)}" for k, v in value.items() if v is not None)
        return "{" + inner + "}"
    raise UsageError(f"A {type(value).__name__} cannot be written into a plan's file; pass the plan in Python.")
