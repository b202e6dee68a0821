"""What every command shows and writes."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from evenhand.cli.wording import spoken
from evenhand.errors import DataError, EvenhandWarning
from evenhand.files import write_all, write_atomic
from evenhand.progress import shown_progress
from evenhand.report.bias_audit import BiasAudit
from evenhand.report.document import Document
from evenhand.report.html import html_page
from evenhand.report.junit import Fails, junit_suites
from evenhand.report.markdown import markdown_page
from evenhand.results import AuditRun, Verdict, printable

_TABLES = ("bias-audit.csv", "bias-audit.xlsx")
_STYLES: dict[str, dict[str, Any]] = {
    Verdict.DISPARITY: {"fg": "red", "bold": True},
    Verdict.EQUIVALENT: {"fg": "green", "bold": True},
    Verdict.NOT_COMPUTABLE: {"fg": "yellow"},
}


def show(run: AuditRun, page: Document, table: str | None = None) -> None:
    """Print a run: what was found, rows used, the table of findings or another one, the answers, the verdicts."""
    data = run.data
    click.echo(click.style(printable(page.headline), bold=True))
    for text in page.opening:
        click.echo(f"{'  - ' if text.kind == 'item' else ''}{printable(text.text)}")
    click.echo()
    click.echo(f"Rows: {data['rows_in']:,} in, {data['rows_used']:,} used.")
    for reason, number in data["rows_dropped"].items():
        click.echo(f"  {number:,} dropped: {printable(reason)}.")
    for note in data["notes"]:
        click.echo(f"  {printable(spoken(note))}")
    click.echo()
    for line in (str(run) if table is None else table).splitlines():
        verdict = line.rsplit(" ", 1)[-1]
        click.echo(line.removesuffix(verdict) + click.style(verdict, **_STYLES.get(verdict, {})))
    if any(f.verdict is Verdict.EQUIVALENT for f in run.findings):
        click.echo("With a margin, p is for lying beyond it; `equivalent` rests on a test of its own, in the report.")
    click.echo()
    for section in page.sections:
        click.echo(click.style(section.question, bold=True))
        for answer in section.answers:
            click.echo(f"  {printable(spoken(answer))}")
        absent = [e.finding.reason for e in section.entries if e.finding.verdict is Verdict.NOT_COMPUTABLE]
        for reason in dict.fromkeys(absent):
            click.echo(f"  not_computable: {printable(spoken(reason))}")
    tally = Counter(f.verdict for f in run.findings)
    click.echo()
    click.echo(
        f"{len(run.findings)} findings at error rate {run.plan['alpha']:g} ({run.plan['correction']}): "
        + ", ".join(f"{tally[v]} {v}" for v in Verdict if tally[v])
        + "."
    )


def keep(run: AuditRun, folder: Path) -> None:
    """Write ``findings.json`` into a folder: the numbers come first and are kept whatever happens to the page."""
    write_atomic(folder / "findings.json", run.to_json())


def table_makers(audit: BiasAudit | None) -> dict[str, Callable[[], str | bytes]]:
    """Return the files that bias-audit tables have beside the report, each with what makes it."""
    return {} if audit is None else dict(zip(_TABLES, (audit.to_csv, audit.to_xlsx), strict=True))


def write(
    page: Document,
    folder: Path,
    *,
    fails: Fails | None = None,
    more: Mapping[str, Callable[[], str | bytes]] | None = None,
) -> None:
    """Write the report, Markdown and JUnit beside ``findings.json``, and say where.

    A page of another run never stays beside the numbers.

    Parameters
    ----------
    page : Document
        What the report says.
    folder : Path
        Where the numbers are.
    fails : callable, optional
        Which findings JUnit counts as failures; those with a disparity by default.
    more : mapping of str to callable, optional
        Names of further files, each with what makes its content.
    """
    makers: dict[str, Callable[[], str | bytes]] = {
        "report.html": lambda: html_page(page),
        "report.md": lambda: markdown_page(page),
        "junit.xml": lambda: junit_suites(page, fails),
        **(more or {}),
    }
    try:
        made = {folder / name: text for name, make in makers.items() if (text := _made(name, make)) is not None}
        write_all(made)
    except OSError as error:
        _remove(folder, (*makers, *_TABLES))
        raise DataError(
            f"The numbers are in `{folder / 'findings.json'}`; the report was not written: {error.strerror or error}."
        ) from None
    _remove(folder, [name for name in (*makers, *_TABLES) if folder / name not in made])
    first, *others = [path.name for path in made] + ["findings.json"]
    beside = f", and {' and '.join([', '.join(others[:-1]), others[-1]] if others[1:] else others)} beside it"
    click.echo(f"Wrote {folder / first}{beside if others else ''}")


def write_page(page: Document, folder: Path, *, beside: Iterable[str] = ()) -> None:
    """Write a document as page and Markdown, and say where."""
    made = {folder / "report.html": html_page(page), folder / "report.md": markdown_page(page)}
    write_all(made)
    click.echo(f"Wrote {folder / 'report.html'}, with {', '.join(['report.md', *beside])} beside it")


def _made(name: str, make: Callable[[], str | bytes]) -> str | bytes | None:
    """Make one file's content; what goes wrong in it is said and costs only this file."""
    try:
        with warnings.catch_warnings(record=True, action="ignore") as said:
            warnings.simplefilter("always", EvenhandWarning)
            text = make()
    except Exception as error:
        reason = printable((str(error).strip().splitlines() or [type(error).__name__])[0])
        click.echo(f"evenhand: `{name}` could not be made ({reason}); findings.json has all numbers.", err=True)
        return None
    for warning in said:
        click.echo(f"evenhand: {printable(str(warning.message))}", err=True)
    return text


def _remove(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        (folder / name).unlink(missing_ok=True)


@contextmanager
def progress(quiet: bool) -> Iterator[Callable[[str], None] | None]:
    """Show what is being worked on as one line on standard error that replaces itself."""
    with shown_progress(not quiet and sys.stderr.isatty()) as tell:
        yield tell
