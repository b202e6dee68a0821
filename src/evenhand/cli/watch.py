"""``evenhand watch FILE... --state FILE``: count batches, go on with the evidence, and say when there is an alarm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from evenhand.cli.audit import check_folder
from evenhand.cli.output import write_page
from evenhand.cli.pairs import pairs
from evenhand.cli.reading import data_options, listed, open_data, said_of_data
from evenhand.cli.wording import spoken
from evenhand.errors import UsageError
from evenhand.files import write_all
from evenhand.intake import AuditData
from evenhand.models.adapter import audited_model
from evenhand.report.library import prepare
from evenhand.report.watch import compose_watch
from evenhand.results import printable
from evenhand.run import decided
from evenhand.watch import Watch

_TABLES = (".csv", ".tsv", ".txt", ".parquet", ".pq", ".arrow", ".feather", ".ipc")


@click.command("watch")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@data_options
@click.option("--state", type=click.Path(path_type=Path), required=True, help="State file; made with the first batch.")
@click.option("--folder", type=click.Path(path_type=Path), help="Count all files of a folder, in the order of names.")
@click.option("--batch", help="Name of the batch.  [default: the file's name without its ending]")
@click.option("--time", help="Column that divides a file into batches, such as a month.")
@click.option("--reference", multiple=True, metavar="COLUMN=LABEL", help="Group the others are compared with.")
@click.option("--metrics", help="Metrics, separated by commas.")
@click.option("--margin", help="What counts as negligible: 0.05, ratio:0.9 or four-fifths.")
@click.option("--alternative", type=click.Choice(["two-sided", "greater", "less"]), help="[default: two-sided]")
@click.option("--alpha", type=float, help="Error rate over all questions and all looks.  [default: 0.05]")
@click.option("--baseline", type=click.IntRange(min=0), help="So many first batches that later ones are compared with.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("evenhand-watch"), show_default=True,
              help="Folder for the results.")  # fmt: skip
@click.option("--quiet", is_flag=True, help="No table.")
def watch_command(files: tuple[Path, ...], **words: Any) -> int:
    """Count batches of decisions as they come, and alarm when a disparity is shown; exit code 3 with an alarm.

    What is asked is said once, with the first batch; the state file keeps it.
    """
    check_folder(words["out"])
    named = _named(files, words)
    watch = _opened(words)
    prepare()
    for file, name in named:
        data = _data(file, watch, words)
        if words["time"]:
            counted = watch.update_by(data, words["time"])
            said = f"{len(counted)} batches counted" if counted else "all batches were counted before"
            click.echo(f"{printable(file.name)}: {said}.")
        else:
            fresh = watch.update(data, name)
            said = "counted" if fresh else "was counted before, and counts once"
            click.echo(f"Batch {printable(name)}: {said}.")
    if not watch.batches:
        raise UsageError("There is no batch yet. Name a file, or a `--folder` with files.")
    return _written(watch, words)


def _written(watch: Watch, words: Mapping[str, Any]) -> int:
    """Write and show what is known, and return the exit code."""
    out = words["out"]
    write_all({out / "watch.json": watch.to_json(), out / "history.csv": watch.to_csv()})
    if not words["quiet"]:
        for line in (*str(watch).splitlines(), "", *watch.notes):
            click.echo(printable(spoken(line)))
    write_page(compose_watch(watch), out, beside=("history.csv", "watch.json"))
    for answer in watch.alarms:
        finding = answer.finding
        named = f"{finding.measure} ({' vs '.join(finding.groups)})"
        click.echo(printable(f"evenhand: alarm: {named}: {finding.reason}"), err=True)
    return 3 if watch.alarms else 0


def _named(files: Sequence[Path], words: Mapping[str, Any]) -> list[tuple[Path, str]]:
    """Return the files to count, each with the name of its batch."""
    folder = words["folder"]
    if folder is not None and not folder.is_dir():
        raise UsageError(f"`--folder {folder}` is not a folder.")
    inside = () if folder is None else sorted(p for p in folder.iterdir() if _is_table(p))
    every = [*files, *inside]
    if words["batch"] is not None and len(every) != 1:
        raise UsageError(f"`--batch` names one batch and there are {len(every)} files. Leave it out, or give one file.")
    return [(path, words["batch"] or _stem(path)) for path in every]


def _is_table(path: Path) -> bool:
    return path.is_file() and not path.name.startswith(".") and Path(_bare(path)).suffix in _TABLES


def _bare(path: Path) -> str:
    return path.name.lower().removesuffix(".gz")


def _stem(path: Path) -> str:
    return path.name[: len(Path(_bare(path)).stem)] or path.name


def _opened(words: Mapping[str, Any]) -> Watch:
    """Go on with the state file, or begin one with what the words ask."""
    asked = {
        "metrics": listed(words["metrics"]) or None,
        "reference": pairs("--reference", words["reference"]) or None,
        "margin": _number(words["margin"]),
        "alternative": words["alternative"],
        "alpha": words["alpha"],
        "baseline": words["baseline"],
        "data": said_of_data(words) or None,
    }
    if words["state"].exists() and all(value is None for value in asked.values()):
        return Watch.load(words["state"])
    return Watch(state=words["state"], **asked)


def _number(text: str | None) -> float | str | None:
    """Read a margin that is a number as one, so that the plan is the same as in Python."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def _data(file: Path, watch: Watch, words: Mapping[str, Any]) -> AuditData:
    """Read one file as the plan says; a model decides where there is no decision."""
    said = dict(watch.plan.data)
    if words["time"]:
        said["groups"] = [*said.get("groups", ()), words["time"]]
    data, model = open_data([file], said if "model" in said else {"rows": "cells", **said}, words)
    if model is not None and data.features:
        data, _ = decided(data, audited_model(model, data))
    return data
