"""A paper to reproduce: its tables and figures as items, each with what it needs, how it is made, what is claimed."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from evenhand import datasets
from evenhand.errors import DataError
from evenhand.files import write_atomic
from evenhand.report.document import Block

Settings = Mapping[str, Any]
Result = Mapping[str, Any]

REACHED = ("yes", "no", "in part", "not claimed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One printed number or statement beside ours, judged by a rule that code applies.

    Parameters
    ----------
    claim : str
        What is claimed.
    printed, ours : str
        The values as they are shown; "–" where a paper prints none.
    reached : {"yes", "no", "in part", "not claimed"}
        By `rule`; "not claimed" where the paper prints no value and ours stands alone.
    rule : str
        How it was judged.
    remark : str
        Why it is not reached, or what to know.
    """

    claim: str
    printed: str
    ours: str
    reached: str
    rule: str
    remark: str = ""

    def __post_init__(self) -> None:
        if self.reached not in REACHED:
            raise ValueError(f"`reached` is {self.reached!r}; allowed: {', '.join(REACHED)}.")


def near(printed: float, ours: float, error: float, *, times: float = 3.0) -> str:
    """Judge whether a printed value lies within so many standard errors of ours.

    Parameters
    ----------
    printed, ours : float
        The two values.
    error : float
        Standard error of their difference.
    times : float
        How many of them are allowed.

    Returns
    -------
    str
        "yes" or "no".

    Examples
    --------
    >>> near(0.0486, 0.0458, 0.003), near(0.0486, 0.0782, 0.003)
    ('yes', 'no')
    """
    return "yes" if abs(printed - ours) <= times * error else "no"


@dataclass(frozen=True, slots=True)
class Parts:
    """Where the parts of a long item are kept, so that it can be interrupted and goes on from there."""

    folder: Path | None = None
    say: Callable[[str], None] = field(default=lambda text: None)

    def keep(self, name: str, settings: Settings, make: Callable[[], Any]) -> Any:
        """Return a stored part that was made with the same settings and version, or make and store it.

        Parameters
        ----------
        name : str
            Of the part.
        settings : mapping
            What the part depends on.
        make : callable
            Returns plain data.

        Returns
        -------
        object
            As read back from JSON, whether stored or new.
        """
        self.say(name)
        told = {"version": version("evenhand"), "settings": json.loads(json.dumps(settings))}
        mark = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]
        place = None if self.folder is None else self.folder / f"{name}-{mark}.json"
        if place is not None and place.exists():
            return json.loads(place.read_text(encoding="utf-8"))["result"]
        made = json.loads(json.dumps(make()))
        if place is not None:
            write_atomic(place, json.dumps({**told, "result": made}) + "\n")
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One table, figure or section of a paper.

    Parameters
    ----------
    name : str
        As said with ``--only``: ``table-1``, ``figure-2``, ``section-4.2``.
    title : str
        What it shows.
    run : callable
        From settings and `Parts` to the result, plain data.
    settings, short : mapping
        Of the full form and of the short one.
    minutes : float
        Processor time of the full form, about.
    data : tuple of str
        Data sets it needs.
    packages : tuple of str
        Packages it imports that the core does not install.
    claims : callable
        From the result and its settings to claims.
    figures : callable
        From the result to figures and tables.
    """

    name: str
    title: str
    run: Callable[[Settings, Parts], Result]
    settings: Settings
    short: Settings
    minutes: float
    data: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    claims: Callable[[Result, Settings], Sequence[Claim]] = lambda result, settings: ()
    figures: Callable[[Result], Sequence[Block]] = lambda result: ()

    def lacks(self) -> str:
        """Return in a sentence what is missing to run it; empty when nothing is."""
        for name in self.packages:
            if find_spec(name) is None:
                return f"`{self.name}` needs the package {name}: pip install evenhand[reproduce]."
        for name in self.data:
            try:
                datasets.table(name)
            except DataError as error:
                return f"`{self.name}` needs data. {error}"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The result of one item, with what made it."""

    settings: Settings
    version: str
    seconds: float
    result: Result

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "settings": dict(self.settings),
            "version": self.version,
            "seconds": self.seconds,
            "result": dict(self.result),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """A paper: what it is, its items, and what is known of its print.

    Parameters
    ----------
    key : str
        As in the bibliography.
    title : str
        Of the paper, with its authors.
    items : tuple of Item
        What is reproduced.
    notes : tuple of str
        Slips in print, choices made after seeing results, and what was not attempted, a paragraph each.
    """

    key: str
    title: str
    items: tuple[Item, ...]
    notes: tuple[str, ...] = ()

    def item(self, name: str) -> Item:
        """Return an item by name."""
        return next(item for item in self.items if item.name == name)

    def claims(self, stored: Mapping[str, Stored]) -> list[tuple[Item, Claim]]:
        """Return all claims of the items that have a result."""
        return [
            (item, claim)
            for item in self.items
            if item.name in stored
            for claim in item.claims(stored[item.name].result, stored[item.name].settings)
        ]


def run_item(item: Item, *, short: bool, parts: Parts) -> Stored:
    """Compute one item.

    Parameters
    ----------
    item : Item
        What to compute.
    short : bool
        The short form.
    parts : Parts
        Where its parts are kept.

    Returns
    -------
    Stored
    """
    settings = item.short if short else item.settings
    start = time.process_time()
    result = json.loads(json.dumps(item.run(settings, parts)))
    return Stored(
        settings=dict(settings),
        version=version("evenhand"),
        seconds=round(time.process_time() - start, 1),
        result=result,
    )
