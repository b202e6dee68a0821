"""Reproductions: every table and figure of a paper that can be recovered, computed anew beside what is printed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from evenhand.errors import UsageError, near_matches
from evenhand.files import write_atomic
from evenhand.reproductions.paper import Claim, Item, Paper, Parts, Stored, run_item

__all__ = ["KEYS", "Claim", "Item", "Outcome", "Paper", "load_paper", "reproduce", "stored_results"]

#: The papers, as the bibliography calls them.
KEYS = ("diciccio2020", "maity2021", "monjezi2025", "si2021", "wang2019")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a reproduction ended with.

    Parameters
    ----------
    paper : Paper
        The paper.
    results : mapping of str to Stored
        By item.
    problems : mapping of str to str
        Items that could not run, with what to do.
    """

    paper: Paper
    results: Mapping[str, Stored]
    problems: Mapping[str, str]


def load_paper(key: str) -> Paper:
    """Return a paper by its key.

    Examples
    --------
    >>> load_paper("diciccio2020").items[0].name
    'table-1'
    """
    if key not in KEYS:
        raise UsageError(f"No paper is called `{key}`.{near_matches(key, KEYS)}")
    paper: Paper = import_module(f"evenhand.reproductions.{key}").PAPER
    return paper


def stored_results(key: str) -> dict[str, Stored]:
    """Return the results that travel with the package, by item.

    Examples
    --------
    >>> sorted(stored_results("diciccio2020"))[0]
    'figure-1'
    """
    place = Path(__file__).parent / key / "stored.json"
    if not place.exists():
        return {}
    return {name: Stored(**entry) for name, entry in json.loads(place.read_text(encoding="utf-8")).items()}


def reproduce(
    key: str,
    *,
    only: Sequence[str] = (),
    short: bool = False,
    folder: Path | None = None,
    progress: Callable[[str], None] | None = None,
) -> Outcome:
    """Compute the items of a paper.

    Parameters
    ----------
    key : str
        One of `KEYS`.
    only : sequence of str
        Items; all by default.
    short : bool
        The short form, with fewer simulations.
    folder : Path, optional
        Where results and parts are kept; an item that was interrupted goes on from its parts.
    progress : callable, optional
        Called with a short text before each piece of work.

    Returns
    -------
    Outcome
        Items that lack data or a package are left out with the reason; the others run.
    """
    paper = load_paper(key)
    names = [item.name for item in paper.items]
    for name in only:
        if name not in names:
            raise UsageError(f"`{key}` has no item `{name}`.{near_matches(name, names)}")
    results: dict[str, Stored] = {}
    problems: dict[str, str] = {}
    say = progress or (lambda text: None)
    for item in paper.items:
        if only and item.name not in only:
            continue
        problem = item.lacks()
        if problem:
            problems[item.name] = problem
            continue
        say(f"{key}: {item.name}, {item.title}")
        keep = None if folder is None else folder / "parts" / item.name
        results[item.name] = run_item(item, short=short, parts=Parts(keep, say))
        if folder is not None:
            text = json.dumps(results[item.name].to_dict(), indent=1)
            write_atomic(folder / f"{item.name}.json", text + "\n")
    return Outcome(paper=paper, results=results, problems=problems)
