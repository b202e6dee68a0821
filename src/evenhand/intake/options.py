"""What the user asked of intake, checked before any data are touched."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.errors import DataError, UsageError, near_matches
from evenhand.intake.wording import listing

Intersections = bool | Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The columns by role and how to read them; see `evenhand.read` for the meaning of each.

    Parameters
    ----------
    outcome, decision, score, weight : str or None
        Column names.
    groups : tuple of str
        Columns that become attributes.
    continuous : tuple of str
        Columns that stay numbers.
    features : tuple of str
        The model's inputs.
    weight_kind, positive, threshold, cuts, intersections, missing, rows, score_bins
        As given to `evenhand.read`, checked.
    """

    outcome: str | None
    decision: str | None
    score: str | None
    weight: str | None
    groups: tuple[str, ...]
    continuous: tuple[str, ...]
    features: tuple[str, ...]
    weight_kind: str
    positive: Any
    threshold: float | None
    cuts: Mapping[str, tuple[float, ...]]
    intersections: tuple[tuple[str, ...], ...]
    missing: str
    rows: str
    score_bins: int

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that is needed, once."""
        return tuple(dict.fromkeys([*self.results, *self.groups, *self.continuous, *self.features]))

    @property
    def results(self) -> tuple[str, ...]:
        """The columns that say what was found or decided, or how much a row counts."""
        single = (self.outcome, self.decision, self.score, self.weight)
        return tuple(c for c in single if c is not None)


def make_options(
    *,
    outcome: str | None,
    decision: str | None,
    score: str | None,
    groups: str | Iterable[str],
    features: str | Iterable[str] | None = None,
    weight: str | None = None,
    weight_kind: str = "auto",
    positive: Any = None,
    threshold: float | None = None,
    cuts: Mapping[str, Sequence[float]] | None = None,
    continuous: str | Iterable[str] = (),
    intersections: Intersections = False,
    missing: str = "drop",
    rows: str = "auto",
    score_bins: int = 4096,
) -> Options:
    """Check what was asked and put it in one place; raise one clear sentence when it makes no sense."""
    _one_of("weight_kind", weight_kind, ("auto", "frequency", "sampling"))
    _one_of("missing", missing, ("drop", "group", "error"))
    _one_of("rows", rows, ("auto", "keep", "cells"))
    numeric = _names(continuous)
    listed = _names(groups)
    labelled = tuple(g for g in listed if g not in numeric)
    if not labelled and not numeric:
        raise UsageError("`groups` is empty; name at least one column whose groups are compared.")
    if outcome is None and decision is None and score is None:
        raise UsageError("None of `outcome`, `decision` and `score` is given; at least one is needed.")
    if isinstance(score_bins, bool) or not isinstance(score_bins, int) or not 2 <= score_bins <= 65536:
        raise UsageError(f"`score_bins` must be a whole number from 2 to 65536; got {score_bins!r}.")
    _check_threshold(threshold, score, decision, features)
    _check_roles(outcome, decision, score, weight, listed, numeric)
    return Options(
        outcome=outcome,
        decision=decision,
        score=score,
        weight=weight,
        groups=labelled,
        continuous=numeric,
        features=_names(features or ()),
        weight_kind=weight_kind,
        positive=positive,
        threshold=None if threshold is None else float(threshold),
        cuts=_checked_cuts(cuts or {}, labelled, numeric),
        intersections=_checked_intersections(intersections, labelled),
        missing=missing,
        rows=rows,
        score_bins=score_bins,
    )


def check_columns(options: Options, names: Sequence[str]) -> None:
    """Refuse a table with duplicated names or without a column that is needed."""
    check_unique(names)
    known = set(names)
    for name in options.columns:
        if name not in known:
            raise DataError(f"Column `{name}` is not in the table.{near_matches(name, names)}")


def check_unique(names: Sequence[str]) -> None:
    """Refuse duplicated column names."""
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise DataError(f"Column name {listing(twice)} occurs more than once; rename so that names are unique.")


def refuse_continuous_cells(options: Options) -> None:
    """Refuse a continuous attribute in cells before any work is done."""
    if options.continuous and options.rows == "cells":
        raise DataError(
            f"Continuous attribute `{options.continuous[0]}` needs rows, not cells. Pass rows='keep', or "
            f"cut it with `cuts`."
        )


def _names(names: str | Iterable[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(str(n) for n in names)


def _one_of(option: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise UsageError(f"`{option}` must be one of {listing(allowed)}; got {value!r}.")


def _check_threshold(threshold: float | None, score: str | None, decision: str | None, features: Any) -> None:
    if threshold is None:
        return
    if decision is not None:
        raise UsageError("`threshold` makes a decision from the score, but `decision` is given; drop one of them.")
    if score is None and not features:
        raise UsageError(
            "`threshold` needs a score to cut. Name the `score`'s column, or the `features` of the model that makes it."
        )
    if not math.isfinite(threshold):
        raise UsageError(f"`threshold` must be a finite number; got {threshold!r}.")


def _check_roles(
    outcome: str | None,
    decision: str | None,
    score: str | None,
    weight: str | None,
    groups: tuple[str, ...],
    continuous: tuple[str, ...],
) -> None:
    for name, n in Counter(groups).items():
        if n > 1:
            raise DataError(f"Column `{name}` is named {n} times in `groups`; once is enough.")
    # A 0/1 column may serve as decision and as score; every other double use compares a thing with itself.
    pairs = [("outcome", outcome, "decision", decision), ("outcome", outcome, "score", score)]
    pairs += [(role, name, "weight", weight) for role, name in _roles(outcome, decision, score)]
    people = dict.fromkeys([*groups, *continuous])
    pairs += [(role, name, "group", g) for g in people for role, name in _roles(outcome, decision, score)]
    pairs += [("weight", weight, "group", g) for g in people]
    for one, a, other, b in pairs:
        if a is not None and a == b:
            raise DataError(f"Column `{a}` is used as {one} and as {other}; the two need different columns.")


def _roles(*names: str | None) -> list[tuple[str, str | None]]:
    return list(zip(("outcome", "decision", "score"), names, strict=True))


def _checked_cuts(
    cuts: Mapping[str, Sequence[float]], groups: tuple[str, ...], continuous: tuple[str, ...]
) -> dict[str, tuple[float, ...]]:
    checked = {}
    for name, points in cuts.items():
        if name in continuous:
            raise UsageError(f"Column `{name}` is in `cuts` and in `continuous`; choose one of them.")
        if name not in groups:
            raise UsageError(f"`cuts` names `{name}`, which is not in `groups`.{near_matches(name, groups)}")
        values = tuple(float(p) for p in ([points] if isinstance(points, int | float) else points))
        increasing = all(a < b for a, b in itertools.pairwise(values))
        if not values or not increasing or not all(map(math.isfinite, values)):
            raise UsageError(f"`cuts` for `{name}` must be increasing finite numbers; got {list(values)}.")
        checked[name] = values
    return checked


def _checked_intersections(asked: Intersections, groups: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    if isinstance(asked, bool):
        return (groups,) if asked and len(groups) > 1 else ()
    checked = []
    for names in asked:
        members = tuple(names) if not isinstance(names, str) else (names,)
        for name in members:
            if name not in groups:
                hint = near_matches(name, groups)
                raise UsageError(f"`intersections` names `{name}`, which is not a group column.{hint}")
        if len(set(members)) < 2:
            raise UsageError(f"An intersection needs at least 2 different columns; got {listing(members)}.")
        checked.append(members)
    return tuple(checked)
