"""The people a finding is about, and what happened to them, in the user's own labels.

Labels come from strangers: each is set between backticks, which every writer of a document escapes and shows as code.
A label that is a verb of everyday English, such as "refused" or "repaid", is used as one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

# Labels that complete "were ..." and those that complete "who ...".
_DONE_TO = (
    "accepted", "admitted", "approved", "declined", "denied", "detained", "flagged", "funded", "granted", "hired",
    "invited", "promoted", "refused", "rejected", "released", "selected", "shortlisted",
)  # fmt: skip
_DONE_BY = (
    "defaulted", "died", "failed", "graduated", "left", "paid", "passed", "reoffended", "repaid", "returned", "stayed",
    "survived",
)  # fmt: skip
_MOST_NAMED = 2  # labels of one value that are named one by one
_OTHERS = {"rest": "all other", "overall": "all"}  # words in place of a reference group


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """The people that a metric is about: some of a group, by what happened to them."""

    clause: str = ""  # such as "who repaid"; empty for everybody

    def of(self, group: str) -> str:
        """Name those of a group or subgroup.

        Examples
        --------
        >>> Population(clause="who repaid").of("sex=Female")
        'people with `sex=Female` who repaid'
        """
        return f"people with {quoted(group)} {self.clause}".rstrip()

    def like(self, group: str, word: str = "") -> str:
        """Name those of the group that another is compared with, once the clause is known.

        Parameters
        ----------
        group : str
            The reference.
        word : {"", "rest", "overall"}
            What stands in place of a single group.

        Returns
        -------
        str

        Examples
        --------
        >>> Population(clause="who repaid").like("sex=Male"), Population().like("", "rest")
        ('such people with `sex=Male`', 'all other people')
        """
        people = "such people" if self.clause else "people"
        return f"{_OTHERS[word]} {people}" if word in _OTHERS else f"{people} with {quoted(group)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """How the labels of one run are said.

    Parameters
    ----------
    columns : mapping
        Role to the name of its column.
    labels : mapping
        Role to the texts that count as ``"one"`` and as ``"zero"``.

    Examples
    --------
    >>> people = People(columns={"outcome": "loan"}, labels={"outcome": {"one": ["repaid"], "zero": ["late"]}})
    >>> people.outcome(1), people.outcome(0), people.decision(1)
    ('repaid', 'had `loan` `late`', 'got the decision `1`')
    >>> people.with_outcome(0).clause
    'who had `loan` `late`'
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)

    @classmethod
    def of_data(cls, data: Mapping[str, Any]) -> People:
        """Read the labels of a run's description of its data."""
        return cls(columns=data["columns"], labels=data.get("labels", {}))

    def outcome(self, value: int) -> str:
        """Say as a verb that somebody's outcome has a value."""
        column = self.columns.get("outcome", "outcome")
        named = "the outcome" if column == "outcome" else quoted(column)
        return self._said("outcome", value, f"had {named}", f"did not have {named}")

    def decision(self, value: int) -> str:
        """Say as a verb that somebody got a decision."""
        return self._said("decision", value, "got the decision", "did not get the decision")

    def with_outcome(self, value: int) -> Population:
        """Return those whose outcome has a value."""
        return Population(clause=f"who {self.outcome(value)}")

    def with_decision(self, value: int) -> Population:
        """Return those who got a decision."""
        return Population(clause=f"who {self.decision(value)}")

    def _said(self, role: str, value: int, verb: str, negated: str) -> str:
        known = self.labels.get(role, {})
        own = list(known.get("one" if value else "zero", ()))
        if len(own) > _MOST_NAMED or not own:
            other = list(known.get("zero" if value else "one", ()))
            if 0 < len(other) <= _MOST_NAMED:
                return f"{negated} {either(other)}"
            return f"{verb} {quoted(str(value))}"
        word = own[0].strip().lower()
        if len(own) == 1 and word in _DONE_TO:
            return f"were {word}"
        if len(own) == 1 and word in _DONE_BY:
            return word
        return f"{verb} {either(own)}"


def quoted(name: str) -> str:
    """Set a name between backticks, without those that it brings.

    Examples
    --------
    >>> quoted("a`b")
    "`a'b`"
    """
    return f"`{name.replace('`', chr(39))}`"


def either(names: Sequence[str]) -> str:
    """Name one or two labels.

    Examples
    --------
    >>> either(["no", "late"])
    '`no` or `late`'
    """
    return " or ".join(quoted(name) for name in names)
