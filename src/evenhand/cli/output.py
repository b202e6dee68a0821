"""What every command shows and writes."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from evenhand.results import AuditRun, Verdict, printable

_STYLES: dict[str, dict[str, Any]] = {
    Verdict.DISPARITY: {"fg": "red", "bold": True},
    Verdict.EQUIVALENT: {"fg": "green", "bold": True},
    Verdict.NOT_COMPUTABLE: {"fg": "yellow"},
}


def show(run: AuditRun) -> None:
    """Print a run: rows used, the table of findings, the reasons of those that decide, the count of verdicts."""
    data = run.data
    click.echo(f"Rows: {data['rows_in']:,} in, {data['rows_used']:,} used.")
    for reason, number in data["rows_dropped"].items():
        click.echo(f"  {number:,} dropped: {printable(reason)}.")
    for note in data["notes"]:
        click.echo(f"  {printable(note)}")
    click.echo()
    for line in str(run).splitlines():
        verdict = line.rsplit(" ", 1)[-1]
        click.echo(line.removesuffix(verdict) + click.style(verdict, **_STYLES.get(verdict, {})))
    click.echo()
    told = [f for f in run.findings if f.verdict is not Verdict.INCONCLUSIVE]
    for finding in told:
        click.echo(f"{finding.verdict}: {printable(finding.reason)}")
    tally = Counter(f.verdict for f in run.findings)
    if tally[Verdict.INCONCLUSIVE]:
        click.echo("inconclusive: see `reason` in findings.json for what could have been detected.")
    click.echo()
    click.echo(
        f"{len(run.findings)} findings at error rate {run.plan['alpha']:g} ({run.plan['correction']}): "
        + ", ".join(f"{tally[v]} {v}" for v in Verdict if tally[v])
        + "."
    )


def write(run: AuditRun, folder: Path) -> Path:
    """Write ``findings.json`` into a folder in one step and say where.

    Parameters
    ----------
    run : AuditRun
        What was found.
    folder : Path
        Made when missing.

    Returns
    -------
    Path
        The file written.
    """
    path = folder / "findings.json"
    run.to_json(path)
    click.echo(f"Wrote {path}")
    return path


@contextmanager
def progress(quiet: bool) -> Iterator[Callable[[str], None] | None]:
    """Show what is being worked on as one line on standard error that replaces itself."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    width = shutil.get_terminal_size().columns - 1

    def tell(text: str) -> None:
        click.echo("\r" + printable(text)[:width].ljust(width), nl=False, err=True)

    try:
        yield tell
    finally:
        click.echo("\r" + " " * width + "\r", nl=False, err=True)
