"""What the user asked of intake, checked before any data are touched."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evenhand.errors import DataError, UsageError, near_matches
from evenhand.intake.memory import bytes_of
from evenhand.intake.periods import parse_period
from evenhand.intake.wording import listing, number_text

Intersections = bool | Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The columns by role and how to read them; see `evenhand.read` for the meaning of each."""

    # Column names.
    outcome: str | None = None
    decision: str | None = None
    score: str | None = None
    weight: str | None = None
    groups: tuple[str, ...]  # columns that become attributes
    continuous: tuple[str, ...] = ()  # columns that stay numbers
    features: tuple[str, ...] = ()  # the model's inputs
    strata: tuple[str, ...] = ()  # columns to compare within
    cluster: str | None = None
    survey_strata: str | None = None
    period: str | None = None  # column of the periods that are audited one by one
    period_unit: str | None = None  # what its dates are cut into; None where it names the periods itself
    # Attribute to label to column.
    group_probability: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # As given to `evenhand.read`, checked.
    weight_kind: str = "auto"
    positive: Any = None
    threshold: float | None = None
    cuts: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    intersections: tuple[tuple[str, ...], ...] = ()
    missing: str = "drop"
    rows: str = "auto"
    score_bins: int = 4096
    memory: Any = None  # bytes that reading may take, as given before it is checked

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that is needed, once."""
        guessed = [column for parts in self.group_probability.values() for column in parts.values()]
        named = [*self.results, *self.groups, *self.continuous, *self.design, *guessed, *self.features]
        return tuple(dict.fromkeys(named))

    @property
    def design(self) -> tuple[str, ...]:
        """The columns of strata, clusters, survey strata and periods, once each."""
        named = (*self.strata, self.cluster, self.survey_strata, self.period)
        return tuple(dict.fromkeys(c for c in named if c is not None))

    @property
    def needs_rows(self) -> str:
        """Say what needs rows in memory and not cells, as the beginning of a sentence; empty when nothing does."""
        if self.continuous:
            return f"Continuous attribute `{self.continuous[0]}`"
        return f"The probabilities of `{next(iter(self.group_probability))}`" if self.group_probability else ""

    @property
    def needs_cells(self) -> str:
        """Name what only the cells of the group audit take, and no batch of rows; empty when nothing is."""
        return "cluster" if self.cluster is not None else "survey_strata" if self.survey_strata is not None else ""

    @property
    def missing_strata(self) -> str:
        """What happens to rows without a stratum; `missing` is for groups, but for keeping them as a group."""
        return "drop" if self.missing == "unknown" else self.missing

    @property
    def results(self) -> tuple[str, ...]:
        """The columns that say what was found or decided, or how much a row counts."""
        single = (self.outcome, self.decision, self.score, self.weight)
        return tuple(c for c in single if c is not None)

    def roles(self) -> dict[str, str | None]:
        """Return the column of the outcome, the decision and the score."""
        return {"outcome": self.outcome, "decision": self.decision, "score": self.score}

    def column_names(self) -> dict[str, str]:
        """Return the columns by role, for messages and the report."""
        named = {
            **self.roles(),
            "weight": self.weight,
            "strata": " × ".join(self.strata) or None,
            "cluster": self.cluster,
            "survey_strata": self.survey_strata,
            "period": self.period,
        }
        if self.threshold is not None and self.score is not None:
            named["decision"] = f"{self.score} >= {number_text(self.threshold)}"
        return {role: name for role, name in named.items() if name is not None}


def make_options(**asked: Any) -> Options:
    """Check what was asked, by the names of `evenhand.read`; raise one clear sentence when it makes no sense."""
    column, unit = parse_period(asked.pop("period", None))
    given = Options(**asked, period=column, period_unit=unit)
    _one_of("weight_kind", given.weight_kind, ("auto", "frequency", "sampling"))
    _one_of("missing", given.missing, ("drop", "group", "unknown", "error"))
    _one_of("rows", given.rows, ("auto", "keep", "cells", "batches"))
    numeric, listed = _names(given.continuous), _names(given.groups)
    labelled = tuple(g for g in listed if g not in numeric)
    guessed = _checked_probabilities(given.group_probability or {})
    if not labelled and not numeric and not guessed:
        raise UsageError("`groups=` is empty; name at least one column whose groups are compared.")
    if all(name is None for name in given.roles().values()):
        raise UsageError("None of `outcome=`, `decision=` and `score=` is given; at least one is needed.")
    bins = given.score_bins
    if isinstance(bins, bool) or not isinstance(bins, int) or not 2 <= bins <= 65536:
        raise UsageError(f"`score_bins` must be a whole number from 2 to 65536; got {bins!r}.")
    _check_threshold(given)
    strata = _names(given.strata or ())
    _check_roles(given, listed, numeric)
    _check_design(given, (*listed, *numeric), strata, guessed)
    options = replace(
        given,
        groups=labelled,
        continuous=numeric,
        features=_names(given.features or ()),
        threshold=None if given.threshold is None else float(given.threshold),
        cuts=_checked_cuts(given.cuts or {}, (*labelled, *strata), numeric),
        intersections=_checked_intersections(given.intersections, labelled),
        strata=strata,
        group_probability=guessed,
        memory=bytes_of(given.memory),
    )
    if options.needs_rows and options.rows in ("cells", "batches"):
        cut = ", or cut it with `cuts=`" if options.continuous else ""
        verb = "needs" if options.continuous else "need"
        raise DataError(f"{options.needs_rows} {verb} rows, not {options.rows}. Pass `rows='keep'`{cut}.")
    if options.rows == "batches" and not options.features:
        raise UsageError("`rows='batches'` reads the model's inputs batch by batch. Name them in `features=`.")
    if options.rows == "batches" and options.needs_cells:
        raise UsageError(
            f"`{options.needs_cells}` is for the group audit, which needs no batches of rows. Pass `rows='cells'`, or "
            "`rows='keep'` to let a model decide."
        )
    return options


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


def _names(names: str | Iterable[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(str(n) for n in names)


def _one_of(option: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise UsageError(f"`{option}` must be one of {listing(allowed)}; got {value!r}.")


def _check_threshold(given: Options) -> None:
    if given.threshold is None:
        return
    if given.decision is not None:
        raise UsageError("`threshold=` makes a decision from the score, but `decision=` is given; drop one of them.")
    if given.score is None and not given.features:
        raise UsageError(
            "`threshold=` needs a score to cut. Name the score's column with `score=`, or with `features=` the columns "
            "of the model that makes it."
        )
    if not math.isfinite(given.threshold):
        raise UsageError(f"`threshold=` must be a finite number; got {given.threshold!r}.")


def _check_roles(given: Options, groups: tuple[str, ...], continuous: tuple[str, ...]) -> None:
    for name, n in Counter(groups).items():
        if n > 1:
            raise DataError(f"Column `{name}` is named {n} times in `groups=`; once is enough.")
    # A 0/1 column may serve as decision and as score; every other double use compares a thing with itself.
    pairs = [("outcome", given.outcome, other, given.roles()[other]) for other in ("decision", "score")]
    pairs += [(role, name, "weight", given.weight) for role, name in given.roles().items()]
    people = dict.fromkeys([*groups, *continuous])
    pairs += [(role, name, "group", g) for g in people for role, name in given.roles().items()]
    pairs += [("weight", given.weight, "group", g) for g in people]
    for one, a, other, b in pairs:
        if a is not None and a == b:
            raise DataError(f"Column `{a}` is used as {one} and as {other}; the two need different columns.")


def _check_design(
    given: Options, people: Sequence[str], strata: tuple[str, ...], guessed: Mapping[str, Mapping[str, str]]
) -> None:
    """Refuse a column of the design that has another role, and a name that is used twice."""
    taken = {name: role for role, name in (*given.roles().items(), ("weight", given.weight)) if name is not None}
    taken |= dict.fromkeys(people, "group")
    asked = [*((name, "stratum") for name in strata), (given.cluster, "cluster")]
    asked += [(given.survey_strata, "survey stratum"), (given.period, "period")]
    asked += [(column, "group probability") for parts in guessed.values() for column in parts.values()]
    for name, role in asked:
        if name is not None and name in taken:
            raise DataError(f"Column `{name}` is used as {taken[name]} and as {role}; the two need different columns.")
        if role in ("stratum", "group probability") and name is not None:
            taken[name] = role
    for name in guessed:
        if name in people:
            raise DataError(f"Attribute `{name}` is in `groups=` and in `group_probability=`; choose one of them.")


def _checked_probabilities(asked: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return attribute to label to column, from lists of columns or labels to columns."""
    if not isinstance(asked, Mapping):
        raise UsageError(
            f"`group_probability=` is {asked!r}; allowed: attributes to columns, such as "
            '{"race": ["p_black", "p_white"]}.'
        )
    checked = {}
    for name, columns in asked.items():
        parts = columns if isinstance(columns, Mapping) else {str(c): str(c) for c in _names(columns)}
        if len(parts) < 2:
            raise UsageError(
                f"`group_probability=` of `{name}` names {len(parts)} column; at least 2 are needed, one for "
                "each group."
            )
        checked[str(name)] = {str(label): str(column) for label, column in parts.items()}
    return checked


def _checked_cuts(
    cuts: Mapping[str, Sequence[float]], groups: tuple[str, ...], continuous: tuple[str, ...]
) -> dict[str, tuple[float, ...]]:
    checked = {}
    for name, points in cuts.items():
        if name in continuous:
            raise UsageError(f"Column `{name}` is in `cuts=` and in `continuous=`; choose one of them.")
        if name not in groups:
            raise UsageError(
                f"`cuts=` names `{name}`, which is not in `groups=` or `strata=`.{near_matches(name, groups)}"
            )
        values = tuple(float(p) for p in ([points] if isinstance(points, int | float) else points))
        increasing = all(a < b for a, b in itertools.pairwise(values))
        if not values or not increasing or not all(map(math.isfinite, values)):
            raise UsageError(f"`cuts=` for `{name}` must be increasing finite numbers; got {list(values)}.")
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
                raise UsageError(f"`intersections=` names `{name}`, which is not a group column.{hint}")
        if len(set(members)) < 2:
            raise UsageError(f"An intersection needs at least 2 different columns; got {listing(members)}.")
        checked.append(members)
    return tuple(checked)
