"""What each audit's function may be asked, read from its signature and docstring, and checked before any work.

The docstrings are the one place that lists the words an option allows, so a message and the documentation cannot
disagree.
"""

from __future__ import annotations

import inspect
import math
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

from evenhand.audits.margin import check_reach, parse_margin
from evenhand.errors import UsageError, near_matches
from evenhand.metrics import resolve
from evenhand.results import AuditResult

AUDITS = ("group", "projection", "individual", "proxy", "tail")

# Given once for the whole plan.
SHARED = ("data", "model", "alpha", "correction", "rng", "workers", "progress")

# Smallest whole numbers, numbers that must be above 0, and those between 0 and 1.
_LEAST = {"n_resamples": 99, "folds": 2, "refits": 0, "examples": 0, "steps": 1, "max_steps": 0, "patience": 0}
_ABOVE_0 = ("bandwidth", "step", "l2", "time_limit")
_INSIDE = ("level",)


def audit_function(name: str) -> Callable[..., AuditResult]:
    """Return an audit's function; its module is loaded only when it is asked for.

    Parameters
    ----------
    name : str
        One of `AUDITS`.

    Returns
    -------
    callable

    Examples
    --------
    >>> audit_function("group").__name__
    'audit_group'
    """
    function: Callable[..., AuditResult] = getattr(import_module(f"evenhand.audits.{name}"), f"audit_{name}")
    return function


def takes(name: str, option: str) -> bool:
    """Say whether an audit has an option.

    Parameters
    ----------
    name : str
        The audit.
    option : str
        The option.

    Returns
    -------
    bool

    Examples
    --------
    >>> takes("group", "metrics"), takes("group", "horizon")
    (True, False)
    """
    return option in inspect.signature(audit_function(name)).parameters


def check_audit(name: str, options: Mapping[str, Any]) -> None:
    """Check one audit's options: their names, kinds, words and ranges.

    Parameters
    ----------
    name : str
        The audit.
    options : mapping
        As in a plan.

    Examples
    --------
    >>> check_audit("group", {"metrics": ["fnr"], "compare": "pairs"})
    """
    for key in options:
        if key in SHARED:
            raise UsageError(f"`{key}` belongs to the whole plan, not to the audit `{name}`.")
    check_call(audit_function(name), options, f"The audit `{name}`", f"{name}.", SHARED)
    chosen = () if options.get("metrics") is None else resolve(options["metrics"])
    if name == "group" and options.get("margin") is not None:
        margin = parse_margin(options["margin"])
        for metric in chosen:
            check_reach(margin, metric.name, metric.high - metric.low)
    if name == "projection" and isinstance(options.get("criterion"), str):
        from evenhand.audits.projection.criteria import check_criterion

        check_criterion(options["criterion"])
    if name == "proxy" and "measure" in options:
        from evenhand.kernels.influence.functionals import functional

        functional(options["measure"], options.get("alignment_penalty", 0.0))


def check_call(
    function: Callable[..., Any], options: Mapping[str, Any], owner: str, prefix: str, hidden: Iterable[str] = ()
) -> None:
    """Check named options against a function's signature, type hints and docstring.

    Parameters
    ----------
    function : callable
        With type hints and a numpydoc docstring.
    options : mapping
        Name to value.
    owner : str
        Whose options they are, as the start of a sentence.
    prefix : str
        Put before an option's name in messages.
    hidden : iterable of str
        Parameters that are not options.

    Examples
    --------
    >>> def paint(colour: str = "red", coats: int = 1) -> None:
    ...     '''Paint.
    ...
    ...     Parameters
    ...     ----------
    ...     colour : {"red", "green"}
    ...     coats : int
    ...     '''
    >>> check_call(paint, {"colour": "green", "coats": 2}, "Painting", "")
    """
    known = [p for p in inspect.signature(function).parameters if p not in hidden]
    described = _described(function)
    hints = typing.get_type_hints(function)
    for key, value in options.items():
        if key not in known:
            raise UsageError(f"{owner} has no option `{key}`.{near_matches(key, known)}")
        words = described.get(key, "")
        allowed = re.findall(r'"([^"]+)"', words.partition("{")[2].partition("}")[0])
        if allowed and isinstance(value, str) and value not in allowed:
            shown = ", ".join(f"`{a}`" for a in allowed)
            raise UsageError(f"`{prefix}{key}` is `{value}`; allowed: {shown}.{_close(value, allowed)}")
        if not _fits(value, hints.get(key, Any)):
            said = words.removesuffix(", optional") or "see the documentation"
            raise UsageError(f"`{prefix}{key}` is {value!r}, which is a {_kind(value)}; allowed: {said}.")
        check_range(key, value, prefix)


def check_range(key: str, value: Any, prefix: str = "") -> None:
    """Check a number whose option's name says what is possible.

    Parameters
    ----------
    key : str
        The option.
    value : object
        What was given; only numbers are looked at.
    prefix : str
        Put before the name in messages.

    Examples
    --------
    >>> check_range("n_resamples", 999)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    least = _LEAST.get(key)
    if least is not None and (int(value) != value or value < least):
        raise UsageError(f"`{prefix}{key}` must be a whole number of at least {least}; got {value}.")
    if key in _ABOVE_0 and not (value > 0 and math.isfinite(value)):
        raise UsageError(f"`{prefix}{key}` must be a number above 0; got {value}.")
    if key in _INSIDE and not 0 < value < 1:
        raise UsageError(f"`{prefix}{key}` must lie between 0 and 1; got {value}.")


def _described(function: Callable[..., Any]) -> dict[str, str]:
    """Return each parameter's type line of a numpydoc docstring."""
    found: dict[str, str] = {}
    for names, words in re.findall(r"^(\w+(?:, \w+)*) : (.+)$", inspect.getdoc(function) or "", flags=re.MULTILINE):
        found.update(dict.fromkeys(names.split(", "), words))
    return found


def _close(value: str, allowed: list[str]) -> str:
    said = near_matches(value, allowed)
    return said if said.startswith(" Did you mean") else ""


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
        return isinstance(value, list | tuple) and all(any(_fits(v, p) for p in parts) for v in value)
    if isinstance(value, str | bool | int | float | Mapping | list) and isinstance(hint, type) and hint is not object:
        return getattr(hint, "_is_protocol", False) is False and isinstance(value, hint)
    return True
