"""``evenhand reproduce KEY``: the tables and figures of a paper beside ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evenhand.cli.audit import check_folder
from evenhand.cli.output import progress, write_page
from evenhand.cli.reading import listed
from evenhand.errors import DataError, UsageError
from evenhand.results import printable


@click.command("reproduce")
@click.argument("key", required=False)
@click.option("--list", "listing", is_flag=True, help="List papers and items, with what each needs.")
@click.option("--only", help="Items, separated by commas, such as table-2,figure-1.")
@click.option("--short", is_flag=True, help="Fewer simulations: minutes in place of hours.")
@click.option(
    "--stored", is_flag=True, help="Compute nothing; write the page of the results that travel with Evenhand."
)
@click.option("--out", type=click.Path(path_type=Path), help="Folder for results.  [default: evenhand-KEY]")
@click.option("--quiet", is_flag=True, help="No progress, no table.")
def reproduce_command(key: str | None, **words: Any) -> None:
    """Compute the tables and figures of a paper and set them beside what is printed."""
    from evenhand.reproductions import KEYS, Outcome, load_paper, reproduce, stored_results
    from evenhand.reproductions.page import claims_table, compose_reproduction

    if words["listing"]:
        for name in [key] if key else KEYS:
            _listed(name, load_paper(name))
        return
    if key is None:
        raise UsageError(f"Name a paper: {', '.join(KEYS)}. `evenhand reproduce --list` lists what each has.")
    paper = load_paper(key)
    out = words["out"] or Path(f"evenhand-{key}")
    check_folder(out)
    if words["stored"]:
        outcome = Outcome(paper=paper, results=stored_results(key), problems={})
    else:
        with progress(words["quiet"]) as tell:
            outcome = reproduce(key, only=listed(words["only"]), short=words["short"], folder=out, progress=tell)
    for problem in outcome.problems.values():
        click.echo(f"evenhand: {printable(problem)}", err=True)
    if not outcome.results:
        raise DataError("Nothing could be computed.")
    if not words["quiet"]:
        click.echo(printable(claims_table(paper, outcome.results).splitlines()[0]))
        for item, claim in paper.claims(outcome.results):
            line = f"  {item.name}: {claim.claim}: printed {claim.printed}, ours {claim.ours}: {claim.reached}"
            click.echo(printable(line))
    write_page(compose_reproduction(paper, outcome.results, outcome.problems), out)


def _listed(key: str, paper: Any) -> None:
    click.echo(click.style(f"{key}  {paper.title}", bold=True))
    for item in paper.items:
        needs = ", ".join((*item.data, *item.packages)) or "nothing more"
        lacks = item.lacks()
        minutes = f"{item.minutes:g} min" if item.minutes >= 1 else "under a minute"
        click.echo(f"  {item.name:<14} {minutes:>14}  needs {needs}{'; missing here' if lacks else ''}: {item.title}")
