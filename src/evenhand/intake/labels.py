"""Which label counts as 1: outcomes and decisions that come as words."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from evenhand.arrays import BoolArray, FloatArray, IntArray
from evenhand.errors import DataError, UsageError
from evenhand.intake.columns import Column, text_of
from evenhand.intake.parts import Labels
from evenhand.intake.wording import listing

# Words that count as 1 and those that count as 0 beside them. Compared without case, outer blanks and trailing dots.
_OPPOSITES = {
    "1": ("0", "-1"),
    "1.0": ("0.0", "-1.0"),
    "+1": ("-1",),
    "yes": ("no",),
    "y": ("n",),
    "true": ("false",),
    "t": ("f",),
    "positive": ("negative",),
    "pos": ("neg",),
    "+": ("-",),
    "good": ("bad",),
    "approved": ("denied", "rejected", "declined"),
    "approve": ("deny", "reject"),
    "accepted": ("rejected", "denied", "declined"),
    "accept": ("reject",),
    "granted": ("denied", "rejected"),
    "grant": ("deny",),
    "admitted": ("rejected", "denied"),
    "selected": ("rejected",),
    "hired": ("rejected",),
    "pass": ("fail",),
    "passed": ("failed",),
    "success": ("failure",),
}
_COMPARISON = re.compile(r"^(<=|>=|<|>|≤|≥)\s*(\S.*)$")
_NEGATION = re.compile(r"^(?:not|no|non)[\s_-]+(\S.*)$")


ROLES = ("outcome", "decision", "model")


class Coded(NamedTuple):
    """An outcome or a decision as numbers."""

    values: FloatArray  # (records,): naN where missing
    kind: str  # what the values are; one of "binary", "numeric"
    labels: Labels | None = None  # which original values are 1 and which 0; None for numbers
    note: str | None = None  # what was decided on the user's behalf


def code_binary(column: Column, *, role: str, name: str, positive: Any = None) -> Coded:
    """Turn an outcome or a decision into 0.0 and 1.0, or leave a numeric outcome as it is.

    Parameters
    ----------
    column : Column
        What the source holds.
    role : {"outcome", "decision"}
        Only an outcome may be numeric.
    name : str
        The column's name, for messages.
    positive : object or mapping of role to object, optional
        The value that counts as 1.

    Returns
    -------
    Coded

    Examples
    --------
    >>> from evenhand.intake.columns import from_values
    >>> income = from_values([">50K", "<=50K."], "income")
    >>> coded = code_binary(income, role="outcome", name="income")
    >>> coded.values.tolist(), coded.labels, coded.note
    ([1.0, 0.0], Labels(one=('>50K',), zero=('<=50K.',)), '`income`: `>50K` counts as 1 and `<=50K.` as 0.')
    """
    codes, distinct = column.distinct()
    if not distinct:
        return Coded(np.full(len(column), np.nan), "binary")
    texts = [column.text(v) for v in distinct]
    wanted, strict = positive_for(role, positive)
    if wanted is not None:
        hits = _matching(column.kind, distinct, wanted)
        if hits.any():
            return Coded(
                _spread(hits.astype(np.float64), codes), "binary", _labels(texts, hits), _note(name, texts, hits)
            )
        if strict:
            raise DataError(
                f"`positive=` for {role} is {wanted!r}, which does not occur in column `{name}`; "
                f"it holds {listing(texts)}. Name one of its values."
            )
    coding = _plain_coding(column.kind, distinct)
    if coding is not None:
        ordinary = column.kind == "truth" or (column.kind == "number" and set(distinct) <= {0.0, 1.0})
        note = None if ordinary else _note(name, texts, coding == 1)
        return Coded(_spread(coding, codes), "binary", _labels(texts, coding == 1), note)
    if role == "outcome" and column.kind == "number" and not _whole_pair(distinct):
        return Coded(np.asarray(column.values, dtype=np.float64), "numeric")
    raise DataError(_refusal(column.kind, role, name, texts))


def check_positive(columns: Mapping[str, Column], positive: Any) -> None:
    """Refuse one positive value for all roles that occurs in none of them: it would change nothing."""
    if positive is None or isinstance(positive, Mapping) or not columns:
        return
    held = []
    for column in columns.values():
        distinct = column.distinct()[1]
        if _matching(column.kind, distinct, positive).any():
            return
        held += [column.text(v) for v in distinct[:5]]
    raise DataError(
        f"`positive=` is {positive!r}, which does not occur in column {listing(columns)}; values there are "
        f"{listing(held)}. Name one of them."
    )


def _refusal(kind: str, role: str, name: str, texts: Sequence[str]) -> str:
    if len(texts) <= 2:
        asked = " or ".join(f"`positive={t!r}`" if kind == "label" else f"`positive={t}`" for t in texts)
        held = " and ".join(f"`{t}`" for t in texts)
        word = "labels" if len(texts) == 2 else "one label"
        return f"Column `{name}` has the {word} {held}, and which counts as 1 is not known. Pass {asked}."
    if role == "decision" and kind == "number":
        return (
            f"Column `{name}` has {len(texts):,} values ({listing(texts)}); a decision has 2, such as 0 "
            f"and 1. If it is a score, pass it as `score=` with a `threshold=`."
        )
    return (
        f"Column `{name}` has {len(texts):,} labels ({listing(texts)}); a binary {role} has 2. "
        f"Name the one that counts as 1 with `positive=`; the others then count as 0."
    )


def label_token(value: Any) -> str | float:
    """Return the form in which two labels are the same one, wherever they come from.

    Case, outer blanks and trailing dots do not count; True is 1, and so are ``"1"`` and 1.0.

    Examples
    --------
    >>> label_token(" Approved. "), label_token(True), label_token("1"), label_token(np.int64(-1))
    ('approved', 1.0, 1.0, -1.0)
    """
    word = _token(text_of(value))
    if word in ("true", "false"):
        return float(word == "true")
    try:
        number = float(word)
    except ValueError:
        return word
    return number if math.isfinite(number) else word


def usual_positive(words: Sequence[str]) -> int | None:
    """Return the place of the word that usually counts as 1 among two, or None when that is not known.

    Examples
    --------
    >>> usual_positive(["approved", "denied"]), usual_positive(["Fail", "pass"]), usual_positive(["a", "b"])
    (0, 1, None)
    """
    tokens = [_token(w) for w in words]
    positive = _positive_token(sorted(set(tokens))) if len(set(tokens)) == 2 else None
    return None if positive is None else next(i for i, t in enumerate(tokens) if t in positive)


def positive_for(role: str, positive: Any) -> tuple[Any, bool]:
    """Return the positive value named for a role, and whether it must occur in the role's column."""
    # One value for both roles may fit only one of them; a mapping means what it says.
    if isinstance(positive, Mapping):
        unknown = [str(k) for k in positive if k not in ROLES]
        if unknown:
            raise UsageError(f"`positive=` has the key {listing(unknown)}; allowed are {listing(ROLES)}.")
        return positive.get(role), True
    return positive, False


def _matching(kind: str, distinct: Sequence[float] | Sequence[str], wanted: Any) -> BoolArray:
    if kind == "label":
        exact = np.array([v == str(wanted) for v in distinct])
        return exact if exact.any() else np.array([_token(str(v)) == _token(str(wanted)) for v in distinct])
    word = _token(str(wanted))
    number = {"true": 1.0, "false": 0.0}.get(word)
    if number is None:
        try:
            number = float(word)
        except ValueError:
            return np.zeros(len(distinct), dtype=bool)
    return np.array([v == number for v in distinct])


def _plain_coding(kind: str, distinct: Sequence[float] | Sequence[str]) -> FloatArray | None:
    """Return 0 or 1 for each value when that can be read without help, else None."""
    if kind != "label":
        numbers = {float(v) for v in distinct}
        if numbers <= {0.0, 1.0}:
            return np.array([float(v) for v in distinct])
        return np.array([float(float(v) == 1.0) for v in distinct]) if numbers <= {-1.0, 1.0} else None
    tokens = [_token(str(v)) for v in distinct]
    positive = _positive_token(sorted(set(tokens)))
    if positive is None:
        return None
    return np.array([float(t in positive) for t in tokens])


def _positive_token(tokens: list[str]) -> set[str] | None:
    if len(tokens) == 1:
        # A constant column is allowed when every known pair puts its word on the same side.
        counts, opposes = tokens[0] in _OPPOSITES, any(tokens[0] in words for words in _OPPOSITES.values())
        return None if counts == opposes else set(tokens) if counts else set()
    if len(tokens) != 2:
        return None
    for a, b in (tokens, tokens[::-1]):
        if b in _OPPOSITES.get(a, ()):
            return {a}
        negated = _NEGATION.match(b)
        if negated and negated.group(1) == a:
            return {a}
        one, other = _COMPARISON.match(a), _COMPARISON.match(b)
        if one and other and one.group(2) == other.group(2) and one.group(1) in ">=≥" and other.group(1) in "<=≤":
            return {a}
    return None


def _token(text: str) -> str:
    return text.strip().rstrip(". \t").casefold()


def _whole_pair(distinct: Sequence[float] | Sequence[str]) -> bool:
    return len(distinct) == 2 and all(float(v).is_integer() for v in distinct)


def _labels(texts: Sequence[str], hits: BoolArray) -> Labels:
    pairs = list(zip(texts, hits, strict=True))
    return Labels(one=tuple(t for t, h in pairs if h), zero=tuple(t for t, h in pairs if not h))


def _note(name: str, texts: Sequence[str], hits: BoolArray) -> str:
    ones, zeros = _labels(texts, hits).one, _labels(texts, hits).zero
    if not zeros:
        return f"`{name}`: {listing(ones)} counts as 1."
    if not ones:
        return f"`{name}`: {listing(zeros)} counts as 0."
    return f"`{name}`: {listing(ones)} counts as 1 and {listing(zeros)} as 0."


def _spread(coding: FloatArray, codes: IntArray) -> FloatArray:
    return np.append(coding, np.nan)[codes]
