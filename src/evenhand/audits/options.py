"""How an option of an audit is declared, once, and all that follows from the declaration.

Each audit has one frozen class of options (``audits/<audit>/options.py``). A field carries the option's type, default,
help, allowed words and range; the signature and the documentation of the audit's function, the checks of a call, a plan
or a file, and the comments of ``evenhand plan`` are read from it.
"""

from __future__ import annotations

import functools
import inspect
import math
import textwrap
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass
from typing import Any, TypeVar

import numpy as np

from evenhand.audits.verdict import settle
from evenhand.errors import UsageError, near_matches
from evenhand.inference.multiplicity import CORRECTIONS
from evenhand.intake import AuditData
from evenhand.results import AuditResult

REQUIRED: Any = inspect.Parameter.empty


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What is declared of an option beside its type and its default."""

    help: str = ""  # what it is for, in whole sentences
    kind: str = ""  # what it may be, as documentation says it; read from the type hint where empty
    words: tuple[str, ...] = ()  # the texts allowed; any where empty
    least: float | None = None  # the smallest number allowed
    above: float | None = None  # numbers must be larger
    between: tuple[float, float] | None = None  # numbers must lie inside, ends excluded
    within: tuple[float, float] | None = None  # the same, but the lower end is allowed
    positional: bool = False  # may be given without its name
    recorded: bool = True  # is written into the result's options
    offer: tuple[Any, str] | None = None  # an example and what it does, as a comment of `evenhand plan`


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option: its name, type hint (also as it is written), default and rules."""

    name: str
    hint: Any
    written: str
    default: Any
    rules: Rules

    @property
    def said(self) -> str:
        """What it may be, in words."""
        if self.rules.kind:
            return self.rules.kind
        if self.rules.words:
            return _choice(self.rules.words) + (", optional" if _fits(None, self.hint) else "")
        return _said(self.hint)

    def check(self, value: Any, prefix: str = "") -> None:
        """Refuse a value of a wrong kind, a word that is not allowed, or a number out of range."""
        name, rules = f"`{prefix}{self.name}`", self.rules
        if rules.words and isinstance(value, str) and value not in rules.words:
            other = rules.kind.partition("} or ")[2]
            shown = ", ".join(f"`{a}`" for a in rules.words) + (f", or {other}" if other else "")
            close = near_matches(value, rules.words)
            hint = close if close.startswith(" Did you mean") else ""
            raise UsageError(f"{name} is `{value}`; allowed: {shown}.{hint}")
        if isinstance(value, int | float) and not isinstance(value, bool):
            self._check_range(value, name)
        if not _fits(value, self.hint):
            said = self.said.removesuffix(", optional")
            raise UsageError(f"{name} is {value!r}, which is a {_kind(value)}; allowed: {said}.")

    def _check_range(self, value: float, name: str) -> None:
        rules = self.rules
        whole = int in (self.hint, *typing.get_args(self.hint))
        limits = rules.between or rules.within
        problem = ""
        if rules.least is not None and not (rules.least <= value < math.inf and (not whole or int(value) == value)):
            problem = f"be a {'whole ' if whole else ''}number of at least {rules.least:g}"
        elif rules.above is not None and not rules.above < value < math.inf:
            problem = f"be a number above {rules.above:g}"
        elif limits and not (limits[0] < value < limits[1] or (rules.within and value == limits[0])):
            problem = f"lie between {limits[0]:g} and {limits[1]:g}"
        if problem:
            raise UsageError(f"{name} must {problem}; got {value}.")


def option(default: Any, help: str, **rules: Any) -> Any:
    """Declare an option as a field of an options class; see `Rules`."""
    return field(default=default, metadata={"rules": Rules(help=help, **rules)})


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions:
    """What every audit takes; a plan gives these once for all of its audits."""

    alpha: float = option(0.05, "Error rate over all findings.", between=(0, 1))
    correction: str = option(
        "holm",
        'How p-values are adjusted over the findings. "max-t" uses the dependence between comparisons of a group audit '
        'and is never stricter than Holm among them; it holds in large samples. "gatekeeping" is for the several '
        "audits of a plan; alone it is Holm.",
        words=CORRECTIONS,
    )
    rng: Any = option(0, "Seed.", kind="int, Generator or None", recorded=False)
    progress: Callable[[str], None] | None = option(
        None,
        "Called with a short text before each piece of work.",
        kind="callable, optional",
        recorded=False,
    )

    def check(self) -> None:
        """Refuse what makes no sense for any data and no single field can see."""

    def say(self, text: str) -> None:
        """Tell the user what is being done."""
        if self.progress is not None:
            self.progress(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalOptions(AuditOptions):
    """What an audit takes that gives intervals."""

    level: float | None = option(
        None,
        "Coverage of each interval, ``1 - alpha`` by default; intervals are not adjusted for their number.",
        between=(0, 1),
    )

    @property
    def coverage(self) -> float:
        """The level asked for, or the one by default."""
        return 1 - self.alpha if self.level is None else self.level


# Given once for the whole plan.
SHARED = (*(f.name for f in fields(AuditOptions)), "model")

O = TypeVar("O", bound=AuditOptions)  # noqa: E741
R = TypeVar("R", bound=AuditResult)


def options_of(source: Any) -> dict[str, Option]:
    """Return the options of a class, its own before inherited ones; or the parameters of a function, by name."""
    return _options_of(source)


@functools.cache
def _options_of(source: Any) -> dict[str, Option]:
    hints = typing.get_type_hints(source)
    if not isinstance(source, type):
        parameters = inspect.signature(source).parameters.values()
        return {p.name: _parameter(p, hints[p.name]) for p in parameters}
    options = {}
    lines = {name: i for i, kind in reversed([*enumerate(source.__mro__)]) for name in inspect.get_annotations(kind)}
    for one in sorted(fields(source), key=lambda f: lines[f.name]):
        default = None if one.default is MISSING else one.default
        rules = one.metadata.get("rules", Rules())
        options[one.name] = Option(
            name=one.name, hint=hints[one.name], written=str(one.type), default=default, rules=rules
        )
    return options


def check_names(known: Iterable[str], given: Iterable[str], owner: str) -> None:
    """Refuse names that are no options, with near matches; the owner begins the sentence."""
    names = list(known)
    for key in given:
        if key not in names:
            raise UsageError(f"{owner} has no option `{key}`.{near_matches(key, names)}")


def ask(kind: type[O], given: Mapping[str, Any], prefix: str = "") -> O:
    """Make an audit's options from named values, and check them.

    Parameters
    ----------
    kind : type
        The options class.
    given : mapping
        Name to value; the names are known.
    prefix : str
        Put before an option's name in messages.

    Examples
    --------
    >>> ask(IntervalOptions, {"alpha": 0.1}).coverage
    0.9
    """
    values = {k: v.item() if isinstance(v, np.generic) else v for k, v in given.items()}
    for key, value in values.items():
        options_of(kind)[key].check(value, prefix)
    asked = kind(**values)
    asked.check()
    return asked


def complete(kind: type[O], asked: AuditOptions, **known: Any) -> O:
    """Make the options that an audit works with: as asked, but for what the data have decided."""
    return kind(**{f.name: getattr(asked, f.name) for f in fields(asked)} | known)


def record(options: AuditOptions, **instead: Any) -> dict[str, Any]:
    """Return options as plain data for a result; objects are named by what is given instead."""
    own_first = sorted(fields(options), key=lambda f: f.name in ("level", *SHARED))
    kept = {f.name: getattr(options, f.name) for f in own_first if f.metadata.get("rules", Rules()).recorded}
    return {k: asdict(v) if is_dataclass(v) and not isinstance(v, type) else v for k, v in (kept | instead).items()}


def with_options(kind: type[O]) -> Callable[[Callable[[AuditData, O], R]], Callable[..., R]]:
    """Make an audit's public function from its recipe: named options, checked, and a verdict on each finding.

    The recipe takes the data and the options object and gives findings that are not judged yet; it stays reachable
    through `inspect.unwrap`, for a run of several audits that judges all findings together.
    """

    def wrap(recipe: Callable[[AuditData, O], R]) -> Callable[..., R]:
        options = options_of(kind)
        signature = _signature(recipe, options)
        owner = f"The audit `{recipe.__name__.removeprefix('audit_')}`"

        @functools.wraps(recipe)
        def audit(*given: Any, **named: Any) -> R:
            check_names(signature.parameters, named, owner)
            values = signature.bind(*given, **named).arguments
            asked = ask(kind, {k: v for k, v in values.items() if k != "data"})
            return settle([recipe(values["data"], asked)], alpha=asked.alpha, correction=asked.correction)[0]

        audit.__signature__ = signature  # type: ignore[attr-defined]
        audit.__annotations__ = {k: v for k, v in typing.get_type_hints(recipe).items() if k != "asked"}
        audit.__annotations__ |= {name: one.hint for name, one in options.items()}
        audit.__doc__ = _documented(inspect.getdoc(recipe) or "", options)
        return audit

    return wrap


def _signature(recipe: Callable[..., Any], options: Mapping[str, Option]) -> inspect.Signature:
    plain = inspect.signature(recipe)
    named = [
        inspect.Parameter(
            one.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD if one.rules.positional else inspect.Parameter.KEYWORD_ONLY,
            default=one.default,
            annotation=one.written,
        )
        for one in options.values()
    ]
    return plain.replace(parameters=[plain.parameters["data"], *named])


def _documented(text: str, options: Mapping[str, Option]) -> str:
    """Put the options at the end of a docstring's parameters."""
    before, heading, after = text.partition("\n\nReturns\n-------")
    lines = [before]
    for one in options.values():
        lines += [f"{one.name} : {one.said}", textwrap.indent(textwrap.fill(one.rules.help, 110), "    ")]
    return "\n".join(lines) + heading + after


def _parameter(parameter: inspect.Parameter, hint: Any) -> Option:
    literal = typing.get_origin(hint) is typing.Literal
    rules = Rules(words=typing.get_args(hint) if literal else ())
    return Option(
        name=parameter.name, hint=str if literal else hint, written="", default=parameter.default, rules=rules
    )


def _choice(words: Iterable[str]) -> str:
    return "{" + ", ".join(f'"{w}"' for w in words) + "}"


def _said(hint: Any) -> str:
    """Write a type hint as documentation does."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        said = " or ".join(_said(one) for one in inner if one is not type(None))
        return said + (", optional" if type(None) in inner else "")
    if hint is Any:
        return "object"
    if origin is None:
        return str(hint.__name__)
    if issubclass(origin, Mapping):
        return f"mapping of {_said(inner[0])} to {_said(inner[1])}"
    parts = dict.fromkeys(_said(one) for one in inner if one is not Ellipsis)
    return f"{'tuple' if origin is tuple else 'sequence'} of {' or '.join(parts)}"


def _kind(value: Any) -> str:
    names = {bool: "truth value", int: "whole number", float: "number", str: "text", list: "list", dict: "table"}
    return names.get(type(value), type(value).__name__)


def _fits(value: Any, hint: Any) -> bool:
    """Say whether a value can be what a type hint asks for; what cannot be judged passes."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, one) for one in inner)
    if hint is Any:
        return True
    if hint is None or hint is type(None):
        return value is None
    if hint in (int, float):
        whole = isinstance(value, int) and not isinstance(value, bool)
        return whole or (hint is float and isinstance(value, float))
    if hint in (str, bool):
        return isinstance(value, hint)
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(_fits(v, inner[1]) for v in value.values())
    if origin is not None and isinstance(origin, type) and issubclass(origin, Iterable):
        parts = [one for one in inner if one is not Ellipsis]
        if isinstance(value, np.ndarray):
            return True
        return isinstance(value, list | tuple) and all(any(_fits(v, p) for p in parts) for v in value)
    if isinstance(value, str | bool | int | float | Mapping | list) and isinstance(hint, type) and hint is not object:
        return getattr(hint, "_is_protocol", False) is False and isinstance(value, hint)
    return True
