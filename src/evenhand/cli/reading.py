"""The words that say what is in a file, for every command that reads one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from evenhand.cli.output import progress
from evenhand.cli.pairs import pairs
from evenhand.cli.sources import source_of, source_options
from evenhand.errors import UsageError
from evenhand.intake import AuditData, read
from evenhand.models import load_model

_OPTIONS = (
    click.option("--outcome", help="Column with what really happened."),
    click.option("--decision", help="Column with what was decided."),
    click.option("--score", help="Column with the model's score."),
    click.option("--group", "groups", multiple=True, help="Group column; may be repeated."),
    click.option("--model", help="Model: a skops or ONNX file, or package.module:object."),
    click.option("--trust-pickle", is_flag=True, help="Load a pickled model although that runs its maker's code."),
    click.option("--trust-plan", is_flag=True, help="Import a model that a plan names as package.module:object."),
    click.option("--features", help="The model's columns, separated by commas."),
    click.option("--weight", help="Column with weights."),
    click.option(
        "--weight-kind",
        type=click.Choice(["auto", "frequency", "sampling"]),
        help="Numbers of identical people, or survey weights; whole numbers need it said.",
    ),
    click.option("--positive", help="Label that means 1, in outcome and decision."),
    click.option("--threshold", type=float, help="Decide 1 from this score on, when there is no decision column."),
    click.option("--cut", multiple=True, metavar="COLUMN=25,40", help="Cut a numeric group column at these points."),
    click.option("--continuous", multiple=True, help="Attribute to test as continuous; may be repeated."),
    click.option("--intersections", is_flag=True, help="Also audit the groups of all attributes together."),
    click.option(
        "--missing",
        type=click.Choice(["drop", "group", "unknown", "error"]),
        help="Rows without a group: drop, make a group, take as unknown, or refuse.  [default: drop]",
    ),
    click.option("--strata", multiple=True, help="Column to compare within, such as the job; may be repeated."),
    click.option("--cluster", help="Column that names what rows belong to, such as a person with several rows."),
    click.option("--survey-strata", help="Column of the strata that a survey sampled from."),
    click.option(
        "--group-probability",
        multiple=True,
        metavar="ATTRIBUTE=COLUMN,COLUMN",
        help="Columns with the probability of each group, where groups are guessed; may be repeated.",
    ),
)


def data_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that say what is in its file, and where that is."""
    command = source_options(command)
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def said_of_data(words: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the words say about the data, in the terms of a plan's ``[data]``; nothing unsaid is there.

    Parameters
    ----------
    words : mapping
        From `data_options`.

    Returns
    -------
    dict
    """
    cuts = {column: _numbers(points) for column, points in pairs("--cut", words["cut"]).items()}
    said = {
        **{key: words[key] for key in ("outcome", "decision", "score", "weight", "weight_kind", "positive", "missing")},
        "groups": list(words["groups"]),
        "features": listed(words["features"]),
        "threshold": words["threshold"],
        "cuts": cuts,
        "continuous": list(words["continuous"]),
        "intersections": words["intersections"],
        "strata": list(words["strata"]),
        "cluster": words["cluster"],
        "survey_strata": words["survey_strata"],
        "group_probability": {
            name: listed(columns) for name, columns in pairs("--group-probability", words["group_probability"]).items()
        },
        "model": words["model"],
    }
    return {
        key: value for key, value in said.items() if value is not None and value is not False and value not in ([], {})
    }


def open_data(files: Sequence[str | Path], said: Mapping[str, Any], words: Mapping[str, Any]) -> tuple[AuditData, Any]:
    """Load the model, if one is named, and read the files.

    Parameters
    ----------
    files : sequence of str or Path
        Those of one table, as named on the command line.
    said : mapping
        A plan's ``[data]``.
    words : mapping
        From `data_options`: whether a pickled model may be loaded, and one that only the plan names be imported.

    Returns
    -------
    data : AuditData
    model : object or None
    """
    if "model" in said and not said.get("features"):
        raise UsageError(
            f"The model `{said['model']}` is named but not its columns. Name them in the model's order: "
            "`--features age,income`."
        )
    model = None
    if "model" in said:
        named = words["trust_plan"] or words["model"] is not None
        model = load_model(said["model"], trust_pickle=words["trust_pickle"], trust_import=named)
    options = {"groups": (), **{key: value for key, value in said.items() if key != "model"}}
    source, more = source_of(files, words)
    with progress(words.get("quiet", False)) as tell:
        return read(source, **options, **more, progress=tell), model


def listed(text: str | None) -> list[str]:
    """Split words at commas."""
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in listed(text)]
    except ValueError:
        raise UsageError(f"`--cut …={text}` is not understood. Write numbers separated by commas.") from None
