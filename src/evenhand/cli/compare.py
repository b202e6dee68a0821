"""``evenhand compare`` two models on one file, or two finished runs; ``evenhand history`` of a folder of runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from evenhand.cli.audit import check_folder
from evenhand.cli.output import progress, write_page
from evenhand.cli.pairs import pairs
from evenhand.cli.reading import data_options, listed, open_data, said_of_data
from evenhand.cli.wording import spoken
from evenhand.errors import UsageError
from evenhand.files import write_atomic
from evenhand.models import load_model
from evenhand.results import printable

_OUT = click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("evenhand-comparison"),
    show_default=True,
    help="Folder for the results.",
)


@click.command("compare")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@data_options
@click.option("--decision-b", help="Column with the new decisions; --decision names the old ones.")
@click.option("--score-b", help="Column with the new scores; --score names the old ones.")
@click.option("--model-b", help="The new model; --model names the old one.")
@click.option("--metrics", help="Metrics, separated by commas.")
@click.option("--reference", multiple=True, metavar="COLUMN=LABEL", help="Group the others are compared with.")
@click.option("--pairs", is_flag=True, help="All pairs of groups in place of the reference.")
@click.option("--margin", type=float, help="Change that counts as negligible, such as 0.02.")
@click.option("--audits", help="Other audits to run on both models, separated by commas.")
@click.option("--alpha", type=float, default=0.05, show_default=True, help="Error rate over all changes.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@_OUT
@click.option("--fail-on", type=click.Choice(["worse"]), help="Exit code 3 when something is shown to be worse.")
@click.option("--quiet", is_flag=True, help="No progress, no table.")
def compare_command(files: tuple[Path, ...], **words: Any) -> int:
    """Compare two models on the people of one file, or two finished runs (their folders or findings.json)."""
    check_folder(words["out"])
    if len(files) > 2:
        raise UsageError(f"`evenhand compare` takes one file of people or two finished runs; got {len(files)} names.")
    return _runs(files, words) if len(files) == 2 else _models(files[0], words)


def _runs(files: tuple[Path, ...], words: Mapping[str, Any]) -> int:
    from evenhand.change.runs import compare_runs, load_run
    from evenhand.report.change import compose_run_comparison

    old, new = (load_run(file) for file in files)
    result = compare_runs(old, new, alpha=words["alpha"], names=(str(files[0]), str(files[1])))
    return _finish(result, compose_run_comparison(result), words)


def _models(file: Path, words: Mapping[str, Any]) -> int:
    from evenhand.change import compare
    from evenhand.report.change import compose_comparison

    data, a, b, names = _sides(file, words)
    with progress(words["quiet"]) as tell:
        result = compare(
            data,
            a,
            b,
            metrics=listed(words["metrics"]) or None,
            reference=pairs("--reference", words["reference"]) or None,
            pairs=words["pairs"],
            margin=words["margin"],
            alpha=words["alpha"],
            names=names,
            audits=listed(words["audits"]),
            rng=words["seed"],
            progress=tell,
        )
    return _finish(result, compose_comparison(result), words)


def _sides(file: Path, words: Mapping[str, Any]) -> tuple[Any, Any, Any, tuple[str, str]]:
    """Read the file once, with what both sides need."""
    said = said_of_data(words)
    if words["model"] or words["model_b"]:
        if not (words["model"] and words["model_b"]):
            raise UsageError("Name both models: `--model old.skops --model-b new.skops`.")
        data, old = open_data([file], said, words)
        new = load_model(words["model_b"], trust_pickle=words["trust_pickle"], trust_import=True)
        return data, old, new, (words["model"], words["model_b"])
    columns = {role: (words[role], words[f"{role}_b"]) for role in ("decision", "score")}
    columns = {role: both for role, both in columns.items() if any(both)}
    if not columns:
        raise UsageError("Name both sides: `--decision old --decision-b new`, `--score` or `--model` likewise.")
    for role, (old, new) in columns.items():
        if not (old and new):
            raise UsageError(f"Name both sides: `--{role}` and `--{role}-b`.")
    more = [new for _, new in columns.values()]
    said["features"] = [*said.get("features", []), *more]
    data, _ = open_data([file], said, words)
    sides = [{role: both[j] for role, both in columns.items()} for j in (0, 1)]
    first = next(iter(columns.values()))
    return data, sides[0], sides[1], (first[0], first[1])


def _finish(result: Any, page: Any, words: Mapping[str, Any]) -> int:
    """Write the numbers first, then show and write the page."""
    out = words["out"]
    result.to_json(out / "comparison.json")
    if not words["quiet"]:
        for line in str(result).splitlines():
            click.echo(printable(spoken(line)))
    write_page(page, out, beside=("comparison.json",))
    for change in result.worse if words["fail_on"] else ():
        click.echo(f"evenhand: shown to be worse: {printable(' '.join(change.groups))}.", err=True)
    return 3 if words["fail_on"] and result.worse else 0


@click.command("history")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Folder for a page and the numbers; none without it.")
def history_command(folder: Path, out: Path | None) -> int:
    """List the runs below a folder: when, on which data, what was found, what changed."""
    from evenhand.change.history import read_history
    from evenhand.report.change import compose_history

    history = read_history(folder)
    for line in str(history).splitlines():
        click.echo(printable(line))
    if out is not None:
        check_folder(out)
        write_atomic(out / "history.json", json.dumps([e.to_dict() for e in history.entries], indent=1) + "\n")
        write_page(compose_history(history), out, beside=("history.json",))
    return 0
