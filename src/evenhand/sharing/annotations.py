"""Findings as annotations of a GitHub pull request: workflow commands on standard output."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from evenhand.report.document import compared
from evenhand.report.junit import Fails
from evenhand.results import AuditRun, Verdict, printable

_MOST = 9  # GitHub shows ten of a kind for each step; the tenth says how many more there are


def github_annotations(run: AuditRun, *, place: str | Path | None = None, fails: Fails | None = None) -> list[str]:
    """Return a line for each finding that fails, and for each other disparity.

    Parameters
    ----------
    run : AuditRun
        What was found.
    place : str or Path, optional
        The file of the repository that they stand at.
    fails : callable, optional
        Which findings are errors; by default those with the verdict `disparity`. A disparity that is none is a warning.

    Returns
    -------
    list of str
        Workflow commands of GitHub: at most ten errors and ten warnings, the last of which counts the others.

    Examples
    --------
    >>> import evenhand as eh
    >>> run = eh.audit(eh.datasets.planted(rows=4000, fnr=(0.1, 0.4), rng=0), plan=eh.Plan(group={"metrics": ["fnr"]}))
    >>> github_annotations(run)[0].partition(" vs ")[0]
    '::error title=Evenhand%3A fnr%2C group=B'
    """
    failed = [f for f in run.findings if (f.verdict is Verdict.DISPARITY if fails is None else fails(f))]
    others = [f for f in run.findings if f.verdict is Verdict.DISPARITY and f not in failed]
    lines = []
    for kind, findings in (("error", failed), ("warning", others)):
        said = [(f"Evenhand: {f.measure}, {compared(f.groups)}", f"{f.verdict}. {f.reason}") for f in findings]
        if len(said) > _MOST + 1:
            said[_MOST:] = [("Evenhand", f"{len(findings) - _MOST:,} more findings are in the report.")]
        lines += [_command(kind, title, message, place) for title, message in said]
    return lines


def _command(kind: str, title: str, message: str, place: str | Path | None) -> str:
    properties = {"title": title, **({} if place is None else {"file": Path(place).as_posix(), "line": "1"})}
    written = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{kind} {written}::{_data(message)}"


def _data(text: str) -> str:
    """Escape a message: a line end would begin another command."""
    return printable(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


@contextmanager
def unread(echo: Callable[[str], None]) -> Iterator[None]:
    """Tell GitHub to take nothing of what is printed meanwhile as a command: names in it come from strangers.

    Parameters
    ----------
    echo : callable
        Prints a line.
    """
    token = secrets.token_hex(16)
    echo(f"::stop-commands::{token}")
    try:
        yield
    finally:
        echo(f"::{token}::")
