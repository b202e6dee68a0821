"""The plan: which audits run, with which options, on how much error. Checked when it is made, before any work."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.audits.options import AUDITS, check_audit, check_call, check_range
from evenhand.errors import UsageError, near_matches
from evenhand.inference.multiplicity import CORRECTIONS
from evenhand.intake import AuditData, read

_DATA_HIDDEN = ("source", "rows", "score_bins")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What an audit is to do, decided before the data are looked at.

    Parameters
    ----------
    audits : tuple of str
        Which audits run, of ``"group"``, ``"projection"``, ``"individual"``, ``"proxy"`` and ``"tail"``.
    alpha : float
        Error rate over all findings of all audits.
    correction : {"gatekeeping", "holm", "bonferroni", "bh", "max-t", "none"}
        How p-values are adjusted over them. By default the group, individual and tail audits share the error, and
        projection and proxy, which explain a difference between groups, open as the group audit shows one.
    seed : int, optional
        Every random draw comes from it. `evenhand.audit` writes the one it used into the run's plan.
    n_resamples : int, optional
        Random permutations where a test is not exact, for all audits that draw them.
    reference : mapping of str to str
        The group each attribute's others are compared with, for all audits; by default the largest.
    data : mapping
        Options of `evenhand.read` and ``model``, so that ``evenhand audit FILE --plan`` needs no other words.
    group, projection, individual, proxy, tail : mapping
        Options of each audit's function beyond those above, such as ``group={"metrics": ["fnr"], "margin": 0.05}``.
    notes : tuple of str
        Sentences the run repeats, such as why an audit was left out.

    Examples
    --------
    >>> plan = Plan(alpha=0.01, group={"metrics": ["fnr", "fpr"]})
    >>> plan.to_dict()["alpha"], plan.hash == Plan(alpha=0.01, group={"metrics": ("fnr", "fpr")}).hash
    (0.01, True)
    """

    audits: tuple[str, ...] = ("group",)
    alpha: float = 0.05
    correction: str = "gatekeeping"
    seed: int | None = None
    n_resamples: int | None = None
    reference: Mapping[str, str] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    group: Mapping[str, Any] = field(default_factory=dict)
    projection: Mapping[str, Any] = field(default_factory=dict)
    individual: Mapping[str, Any] = field(default_factory=dict)
    proxy: Mapping[str, Any] = field(default_factory=dict)
    tail: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for one in fields(self):
            object.__setattr__(self, one.name, _simple(getattr(self, one.name)))
        for name in ("audits", "notes"):
            value = getattr(self, name)
            if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
                raise UsageError(f"`{name}` is {value!r}; allowed: a list of names such as {list(AUDITS[:2])}.")
            object.__setattr__(self, name, tuple(value))
        _check_audits(self.audits)
        _check_numbers(self)
        for section in ("reference", "data", *AUDITS):
            if not isinstance(getattr(self, section), Mapping):
                raise UsageError(f"`{section}` is {getattr(self, section)!r}; allowed: a table of options.")
        if not all(isinstance(label, str) for label in self.reference.values()):
            raise UsageError('`reference` takes labels as text, such as `reference = {sex = "Male"}`.')
        options = {k: v for k, v in self.data.items() if k != "model"}
        if "model" in self.data and not isinstance(self.data["model"], str):
            raise UsageError("`data.model` is a file or `package.module:object`, as text. Pass an object as `model=`.")
        check_call(read, options, "`data`", "data.", _DATA_HIDDEN)
        for name in AUDITS:
            if getattr(self, name):
                check_audit(name, getattr(self, name))

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
        why = {name: lacks(name, getattr(base, name), data, model) for name in AUDITS}
        chosen = tuple(name for name in AUDITS if not why[name])
        if not chosen:
            raise UsageError(f"No audit can run on these columns: the group audit {why['group']}.")
        told = "; ".join(f"the {name} audit, which {why[name]}" for name in AUDITS if name not in chosen)
        left_out = (f"Left out: {told}.",) if told else ()
        asked: dict[str, Any] = {name: dict(getattr(base, name)) for name in chosen}
        if data.outcome_kind != "binary":  # by default these two ask about errors, which need an outcome
            for name, key, word in (("projection", "criterion", "statistical_parity"), ("proxy", "measure", "sp")):
                if name in chosen:
                    asked[name].setdefault(key, word)
        return replace(base, audits=chosen, notes=(*base.notes, *left_out), **asked)

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
        known = [f.name for f in fields(cls)]
        given = {k: v for k, v in content.items() if k != "hash"}
        for key in given:
            if key not in known:
                raise UsageError(f"The plan has the key `{key}`, which is not known.{near_matches(key, known)}")
        return cls(**given)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data; an object of one's own is described by its name and content."""
        content = {f.name: getattr(self, f.name) for f in fields(self)}
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


def lacks(name: str, options: Mapping[str, Any], data: AuditData, model: Any) -> str:
    """Say what an audit needs and was not given, as far as can be seen without running it.

    Parameters
    ----------
    name : str
        The audit.
    options : mapping
        Its options in the plan.
    data : AuditData
        What is to be audited.
    model : object or None
        The model that decided.

    Returns
    -------
    str
        Empty, or the end of a sentence that begins with the audit.

    Examples
    --------
    >>> import evenhand as eh
    >>> lacks("tail", {}, eh.datasets.planted(rows=100, rng=0), None)
    'needs a model and none was given'
    """
    engine = "needs rows, and these stayed on their engine as counts; read with `rows='keep'`"
    own = bool(options.get("distance") is not None or options.get("flip") is not None)
    if name in ("individual", "tail") and model is None:
        return "needs a model and none was given"
    if name == "projection" and model is None and not own:
        return "needs distances to the decision boundary, from a model or as `distance`"
    if name != "group" and data.moments is not None:
        return engine
    if not data.attributes and (name != "group" or not data.continuous):
        return "needs a group column and none was given"
    predicted = data.decision is not None or data.score is not None
    if name == "group":
        if model is not None and not predicted and not data.features:
            return "needs decisions, and the model cannot make them without its columns; name them in `features`"
        return "" if predicted or model is not None else "needs a decision or a score column"
    if name == "projection" and model is None:
        return "" if data.decision is not None else "needs decisions"
    if not data.features:
        return "needs the model's features and none were given"
    if name == "projection":
        return ""
    if name == "individual":
        return "" if data.outcome is not None else "needs an outcome column"
    if name == "proxy":
        soft = data.score is not None and data.score_kind == "probability"
        return "" if model is not None or soft or data.decision is not None else "needs decisions or scores from 0 to 1"
    if data.weight is not None:
        return "does not take sampling weights"
    seen = [a.name for a in data.attributes if all(part in data.features for part in a.name.split(" × "))]
    if not own and not seen:
        return (
            "needs a feature that records the group; name such columns in `features`, or as `flip` of the tail audit "
            "in a plan"
        )
    return ""


def _check_audits(audits: tuple[str, ...]) -> None:
    for name in audits:
        if name not in AUDITS:
            raise UsageError(f"Audit `{name}` is not known.{near_matches(name, AUDITS)}")
        if audits.count(name) > 1:
            raise UsageError(f"Audit `{name}` is named twice in `audits`. Name each audit once.")
    if not audits:
        raise UsageError("The plan names no audit. Name at least one in `audits`.")


def _check_numbers(plan: Plan) -> None:
    alpha, correction, seed = plan.alpha, plan.correction, plan.seed
    if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 < alpha < 1:
        raise UsageError(f"`alpha` must lie between 0 and 1; got {alpha!r}.")
    if correction not in CORRECTIONS:
        allowed = ", ".join(f"`{c}`" for c in CORRECTIONS)
        raise UsageError(f"`correction` is `{correction}`; allowed: {allowed}.")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63):
        raise UsageError(f"`seed` must be a whole number from 0 on; got {seed!r}.")
    resamples = plan.n_resamples
    if resamples is not None and (isinstance(resamples, bool) or not isinstance(resamples, int)):
        raise UsageError(f"`n_resamples` must be a whole number of at least 99; got {resamples!r}.")
    check_range("n_resamples", resamples)


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
