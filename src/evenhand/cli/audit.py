"""``evenhand audit FILE``: one file of decisions, one table, one ``findings.json``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from evenhand.cli.output import progress, show, write
from evenhand.errors import UsageError
from evenhand.intake import read
from evenhand.models import load_model
from evenhand.plan import Plan
from evenhand.results import Verdict
from evenhand.run import audit


@click.command("audit")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--outcome", help="Column with what really happened.")
@click.option("--decision", help="Column with what was decided.")
@click.option("--score", help="Column with the model's score.")
@click.option("--group", "groups", multiple=True, help="Group column; may be repeated.")
@click.option("--reference", multiple=True, metavar="COLUMN=LABEL", help="Group the others are compared with.")
@click.option("--metrics", help="Metrics, separated by commas.")
@click.option("--audits", help="Audits, separated by commas.  [default: group]")
@click.option("--model", help="Model: a skops or ONNX file, or package.module:object.")
@click.option("--trust-pickle", is_flag=True, help="Load a pickled model although that runs its maker's code.")
@click.option("--features", help="The model's columns, separated by commas.")
@click.option("--weight", help="Column with weights.")
@click.option("--weight-kind", type=click.Choice(["auto", "frequency", "sampling"]), default="auto", show_default=True)
@click.option("--positive", help="Label that means 1, in outcome and decision.")
@click.option("--threshold", type=float, help="Decide 1 from this score on, when there is no decision column.")
@click.option("--cut", multiple=True, metavar="COLUMN=25,40", help="Cut a numeric group column at these points.")
@click.option("--continuous", multiple=True, help="Attribute to test as continuous; may be repeated.")
@click.option("--intersections", is_flag=True, help="Also audit the groups of all attributes together.")
@click.option("--missing", type=click.Choice(["drop", "group", "error"]), default="drop", show_default=True)
@click.option("--compare", type=click.Choice(["reference", "pairs"]), help="With the reference, or all pairs.")
@click.option("--ratio", is_flag=True, help="Report ratios instead of differences.")
@click.option("--margin", help="What counts as negligible: 0.05, ratio:0.9 or four-fifths.")
@click.option("--alpha", type=float, help="Error rate over all findings.  [default: 0.05]")
@click.option("--correction", help="holm, bonferroni, bh, max-t or none.  [default: holm]")
@click.option("--resamples", type=int, help="Random permutations where a test is not exact.  [default: 9999]")
@click.option("--plan", "plan_file", type=click.Path(path_type=Path), help="Plan in TOML; options here come first.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True, help="Threads.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder for findings.json.")
@click.option("--fail-on", multiple=True, metavar="VERDICT", help="Leave with exit code 3 when a finding has it.")
@click.option("--quiet", is_flag=True, help="No progress, no table.")
def audit_command(file: Path, **words: Any) -> int:
    """Audit a file of decisions (CSV, Parquet or Arrow)."""
    verdicts = _verdicts(words["fail_on"])
    plan = _plan(words)
    model = None if words["model"] is None else load_model(words["model"], trust_pickle=words["trust_pickle"])
    data = read(
        file,
        outcome=words["outcome"],
        decision=words["decision"],
        score=words["score"],
        groups=list(words["groups"]),
        features=_list(words["features"]) or None,
        weight=words["weight"],
        weight_kind=words["weight_kind"],
        positive=words["positive"],
        threshold=words["threshold"],
        cuts={column: _numbers(points) for column, points in _pairs("--cut", words["cut"]).items()},
        continuous=tuple(words["continuous"]),
        intersections=words["intersections"],
        missing=words["missing"],
    )
    with progress(words["quiet"]) as tell:
        run = audit(data, model=model, plan=plan, rng=words["seed"], workers=words["workers"], progress=tell)
    if not words["quiet"]:
        show(run)
    write(run, words["out"])
    return 3 if any(f.verdict in verdicts for f in run.findings) else 0


def _plan(words: dict[str, Any]) -> Plan:
    """Lay the words of the command line over the plan file."""
    base = Plan() if words["plan_file"] is None else Plan.from_toml(words["plan_file"])
    group = dict(base.group)
    said = {
        "metrics": _list(words["metrics"]),
        "reference": _pairs("--reference", words["reference"]),
        "compare": words["compare"],
        "ratio": words["ratio"],
        "margin": words["margin"],
        "n_resamples": words["resamples"],
    }
    group.update({key: value for key, value in said.items() if value})
    return replace(
        base,
        audits=tuple(_list(words["audits"])) or base.audits,
        alpha=base.alpha if words["alpha"] is None else words["alpha"],
        correction=words["correction"] or base.correction,
        group=group,
    )


def _list(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _pairs(option: str, items: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not equals or not key or not value:
            raise UsageError(f"`{option} {item}` is not understood. Write `{option} COLUMN=VALUE`.")
        found[key] = value
    return found


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in _list(text)]
    except ValueError:
        raise UsageError(f"`--cut …={text}` is not understood. Write numbers separated by commas.") from None


def _verdicts(words: Sequence[str]) -> set[Verdict]:
    found = set()
    for word in words:
        if word not in set(Verdict):
            raise UsageError(f"`--fail-on {word}` is not a verdict. Allowed: {', '.join(Verdict)}.")
        found.add(Verdict(word))
    return found
