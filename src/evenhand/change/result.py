"""What a comparison of two models answers: one change for each metric and pair of groups, and a verdict on each."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from evenhand.files import write_atomic
from evenhand.results import Displayed, Interval, plain, printable, shown_p
from evenhand.results.table import text_rows

#: Written into every ``comparison.json``.
COMPARISON_SCHEMA = "evenhand-comparison/1"


def json_text(content: Mapping[str, Any], path: str | Path | None) -> str:
    """Return plain data as JSON and, with a path, write it there in one step."""
    text = json.dumps(content, indent=1, allow_nan=False) + "\n"
    if path is not None:
        write_atomic(Path(path), text)
    return text


class ChangeVerdict(StrEnum):
    """What is shown about a change."""

    WORSE = "worse"  # the difference between the groups is larger
    BETTER = "better"  # it is smaller
    ALIKE = "alike"  # it changed by less than the margin
    NOT_WORSE = "not_worse"  # it is not larger by more than the margin
    INCONCLUSIVE = "inconclusive"
    NOT_COMPUTABLE = "not_computable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """How the difference of one metric between two groups changes from model a to model b.

    Parameters
    ----------
    metric : str
        Of the catalogue.
    groups : tuple of str
        The group and its reference.
    before, after : float
        The difference under a and under b.
    estimate : float
        After minus before.
    interval : Interval or None
        Of the estimate.
    pvalue, pvalue_adjusted : float
        Against "as large as before", or with a margin "as large as before up to the margin"; raw and adjusted over
        all changes.
    change_pvalue : float
        Against "no change at all", the interval's own question.
    alike_pvalue, not_worse_pvalue : float
        With a margin, adjusted: against "changed by more than it" and "larger by more than it".
    margin : float or None
        Change that counts as negligible.
    values : mapping of str to mapping
        By group: ``before``, ``after``, ``low`` and ``high`` of its own change, ``differ`` (people treated
        differently), ``rows``.
    test : str
        How it was tested.
    verdict : ChangeVerdict
        What is shown.
    reason : str
        In a sentence.
    """

    metric: str
    groups: tuple[str, str]
    before: float = math.nan
    after: float = math.nan
    estimate: float = math.nan
    interval: Interval | None = None
    pvalue: float = math.nan
    pvalue_adjusted: float = math.nan
    change_pvalue: float = math.nan
    alike_pvalue: float = math.nan
    not_worse_pvalue: float = math.nan
    margin: float | None = None
    values: Mapping[str, Mapping[str, float]]
    test: str = ""
    verdict: ChangeVerdict = ChangeVerdict.NOT_COMPUTABLE
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the change as plain data."""
        interval = None if self.interval is None else self.interval.to_dict()
        content: dict[str, Any] = plain(
            {name: getattr(self, name) for name in self.__slots__ if name not in ("interval", "verdict", "groups")}
        )
        return {**content, "groups": list(self.groups), "interval": interval, "verdict": str(self.verdict)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Displayed):
    """Two models compared on the same people.

    Parameters
    ----------
    changes : tuple of Change
        One for each metric and pair of groups.
    names : tuple of str
        What the two sides are called.
    alpha : float
        Error rate over all changes.
    settings : mapping
        What was asked.
    data : mapping
        Rows, groups and fingerprint of the people.
    headlines : tuple of mapping
        Of other audits that were run on both sides: their main number before and after, and what can be said of it.
    notes : tuple of str
        Sentences.
    versions : mapping
        Of the package.

    Examples
    --------
    >>> import evenhand as eh, numpy as np
    >>> data = eh.datasets.planted(rows=4000, fnr=(0.1, 0.4), rng=0)
    >>> fair = np.where(data.outcome == 1, data.outcome, data.decision)
    >>> found = eh.compare(data, data.decision, fair, metrics=["fnr"])
    >>> str(found[0].verdict)
    'better'
    """

    changes: tuple[Change, ...]
    names: tuple[str, str]
    alpha: float
    settings: Mapping[str, Any]
    data: Mapping[str, Any]
    headlines: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    versions: Mapping[str, str]

    def __len__(self) -> int:
        return len(self.changes)

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)

    def __getitem__(self, place: int) -> Change:
        return self.changes[place]

    @property
    def worse(self) -> tuple[Change, ...]:
        """The changes that are shown to be for the worse."""
        return tuple(c for c in self.changes if c.verdict is ChangeVerdict.WORSE)

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain data, in the layout of ``comparison.json``."""
        return {
            "schema": COMPARISON_SCHEMA,
            "names": list(self.names),
            "alpha": self.alpha,
            "settings": plain(dict(self.settings)),
            "data": plain(dict(self.data)),
            "changes": [c.to_dict() for c in self.changes],
            "headlines": [plain(dict(h)) for h in self.headlines],
            "notes": list(self.notes),
            "versions": dict(self.versions),
        }

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the comparison as JSON and, with a path, write it there in one step."""
        return json_text(self.to_dict(), path)

    def cells(self) -> list[tuple[str, ...]]:
        """Return the head and the cells of the table of changes."""
        head = ("metric", "groups", "before", "after", "change", "interval", "p", "verdict")
        return [head, *(_row(c) for c in self.changes)]

    def __str__(self) -> str:
        tally = Counter(str(c.verdict) for c in self.changes)
        counted = ", ".join(f"{tally[v]} {v}" for v in map(str, ChangeVerdict) if tally[v])
        return "\n".join([text_rows(self.cells()), "", f"{len(self)} changes at error rate {self.alpha:g}: {counted}."])


def _row(c: Change) -> tuple[str, ...]:
    between = "" if c.interval is None else f"{c.interval.low:+.4f} to {c.interval.high:+.4f}"
    numbers = [f"{v:+.4f}" if math.isfinite(v) else "–" for v in (c.before, c.after, c.estimate)]
    p = shown_p(c.pvalue_adjusted) if math.isfinite(c.pvalue_adjusted) else "–"
    return (c.metric, printable(" vs ".join(c.groups)), *numbers, between, p, str(c.verdict))
