"""What can go wrong, as one tree of exceptions and one warning.

A message says what and where, what was got, what is allowed and what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from importlib import import_module
from types import ModuleType


class EvenhandError(Exception):
    """Base of every error Evenhand raises on purpose."""


class DataError(EvenhandError, ValueError):
    """The data cannot be audited as asked: a missing column, one group, a NaN score."""


class UsageError(EvenhandError, ValueError):
    """The request itself is wrong: an unknown metric, an impossible option."""


class MissingDependencyError(EvenhandError, ImportError):
    """An optional package is needed for this input and is not installed."""


class EvenhandWarning(UserWarning):
    """The answer stands, but the reader should know something about it."""


def optional_module(name: str, sentence: str) -> ModuleType:
    """Import a package that is not always installed, or say with this sentence that it is needed."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingDependencyError(sentence) from error


def first_line(error: BaseException) -> str:
    """Return the first line of a stranger's error, without its full stop; its type where it says nothing."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def near_matches(name: str, known: Iterable[str]) -> str:
    """Say which known names are close to a wrong one, as a sentence to append.

    Parameters
    ----------
    name : str
        The name that was not found.
    known : iterable of str
        The names that exist.

    Returns
    -------
    str
        ``" Did you mean `sex`?"`` or, without a near match, a list of what is known.

    Examples
    --------
    >>> near_matches("gendr", ["gender", "age"])
    ' Did you mean `gender`?'
    >>> near_matches("zzz", ["gender", "age"])
    ' Known: `gender`, `age`.'
    """
    names = [str(k) for k in known]
    by_lower = {k.lower(): k for k in names}
    close = difflib.get_close_matches(str(name).lower(), list(by_lower), n=3, cutoff=0.6)
    if close:
        return " Did you mean " + " or ".join(f"`{by_lower[c]}`" for c in close) + "?"
    shown = ", ".join(f"`{k}`" for k in names[:12])
    return f" Known: {shown}{', …' if len(names) > 12 else ''}." if names else ""
