"""A folder of runs in the order of their dates: what each found, and what changed from one to the next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evenhand.change.runs import compare_runs, load_run
from evenhand.errors import DataError
from evenhand.results import Verdict, printable
from evenhand.results.table import text_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One run of a history.

    Parameters
    ----------
    folder : str
        Where it lies, below the folder that was asked for.
    date : str
        When its findings were written, in UTC.
    fingerprint, plan : str
        Of the data and of the plan.
    rows : int
        That were used.
    tally : mapping of str to int
        Verdict to number of findings.
    changed : tuple of str
        What changed since the run before, in sentences.
    """

    folder: str
    date: str
    fingerprint: str
    plan: str
    rows: int
    tally: Mapping[str, int]
    changed: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as plain data."""
        content = {name: getattr(self, name) for name in self.__slots__}
        return {**content, "tally": dict(self.tally), "changed": list(self.changed)}


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The runs of a folder, oldest first."""

    folder: str
    entries: tuple[Entry, ...]
    problems: tuple[str, ...]  # files that are no whole run, a sentence each

    def __str__(self) -> str:
        head = ("date", "run", "rows", "data", "plan", *(str(v) for v in Verdict), "changed")
        rows = [head]
        for e in self.entries:
            tally = [str(e.tally.get(str(v), 0)) for v in Verdict]
            marks = (e.fingerprint[:8], e.plan[:8])
            rows.append((e.date, printable(e.folder), f"{e.rows:,}", *marks, *tally, " ".join(e.changed)))
        return "\n".join([text_rows(rows), *self.problems])


def read_history(folder: str | Path) -> History:
    """Read all runs below a folder: every ``findings.json``, in the order in which they were written.

    Parameters
    ----------
    folder : str or Path
        Where the runs are; nothing in it is changed.

    Returns
    -------
    History
    """
    root = Path(folder)
    if not root.is_dir():
        raise DataError(f"`{root}` is not a folder. Name the folder that holds the folders of your runs.")
    places = sorted(root.rglob("findings.json"), key=lambda p: (p.stat().st_mtime_ns, str(p)))
    if not places:
        raise DataError(f"`{root}` holds no run: no file below it is called findings.json.")
    entries: list[Entry] = []
    problems: list[str] = []
    before = None
    for place in places:
        try:
            run = load_run(place)
        except DataError as error:
            problems.append(str(error))
            continue
        changed = () if before is None else _changed(before, run)
        written = datetime.fromtimestamp(place.stat().st_mtime, tz=UTC)
        entries.append(
            Entry(
                folder=str(place.parent.relative_to(root)),
                date=written.strftime("%Y-%m-%d %H:%M"),
                fingerprint=str(run.data["fingerprint"]),
                plan=str(run.plan.get("hash", "")),
                rows=int(run.data["rows_used"]),
                tally=Counter(str(f.verdict) for f in run.findings),
                changed=changed,
            )
        )
        before = run
    return History(folder=str(root), entries=tuple(entries), problems=tuple(problems))


def _changed(before: Any, after: Any) -> tuple[str, ...]:
    try:
        compared = compare_runs(before, after)
    except DataError:  # a run that was made to be shared
        return ("Not compared with the run before.",)
    states = Counter(line.state for line in compared.lines)
    said = [
        f"{states[state]} {word}."
        for state, word in (
            ("changed verdict", "verdicts changed"),
            ("appeared", "findings are new"),
            ("vanished", "findings are gone"),
        )
        if states[state]
    ]
    if compared.worse:
        said.append(f"{len(compared.worse)} shown to be larger.")
    if compared.plan_changes:
        said.append("The plan changed." if any("plan" in c for c in compared.plan_changes) else "The set-up changed.")
    said.append("The same people." if compared.same_people else "")
    return tuple(text for text in said if text)
