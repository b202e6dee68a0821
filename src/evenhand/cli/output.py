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

from evenhand.files import write_all
from evenhand.report import to_html, to_junit, to_markdown
from evenhand.report.compose import compose
from evenhand.results import AuditRun, Finding, Verdict, printable

Fails = Callable[[Finding], bool]

_STYLES: dict[str, dict[str, Any]] = {
    Verdict.DISPARITY: {"fg": "red", "bold": True},
    Verdict.EQUIVALENT: {"fg": "green", "bold": True},
    Verdict.NOT_COMPUTABLE: {"fg": "yellow"},
}


def show(run: AuditRun) -> None:
    """Print a run: rows used, the table of findings, the main ones in words, the count of verdicts."""
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
    for section in compose(run).sections:
        click.echo(click.style(section.question, bold=True))
        for answer in section.answers:
            click.echo(f"  {printable(answer)}")
        absent = [e.finding.reason for e in section.entries if e.finding.verdict is Verdict.NOT_COMPUTABLE]
        for reason in dict.fromkeys(absent):
            click.echo(f"  not_computable: {printable(reason)}")
    tally = Counter(f.verdict for f in run.findings)
    click.echo()
    click.echo(
        f"{len(run.findings)} findings at error rate {run.plan['alpha']:g} ({run.plan['correction']}): "
        + ", ".join(f"{tally[v]} {v}" for v in Verdict if tally[v])
        + "."
    )


def write(run: AuditRun, folder: Path, *, title: str = "Audit report", fails: Fails | None = None) -> None:
    """Write the report, ``findings.json``, Markdown and JUnit into a folder, all or none, and say where.

    Parameters
    ----------
    run : AuditRun
        What was found.
    folder : Path
        Made when missing.
    title : str
        Of the report.
    fails : callable, optional
        Which findings JUnit counts as failures; those with a disparity by default.
    """
    write_all(
        {
            folder / "report.html": to_html(run, title=title),
            folder / "report.md": to_markdown(run, title=title),
            folder / "findings.json": run.to_json(),
            folder / "junit.xml": to_junit(run, fails=fails),
        }
    )
    click.echo(f"Wrote {folder / 'report.html'}, and findings.json, report.md and junit.xml beside it")


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
