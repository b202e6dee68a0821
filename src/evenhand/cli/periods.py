"""``evenhand audit FILE --by date:month``: a folder of results for each period, and an overview."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from evenhand.change.periods import PeriodRun, PeriodRuns, audit_periods, notes_of, share_of
from evenhand.cli.gate import Gate, met
from evenhand.cli.output import keep, progress, write, write_page
from evenhand.cli.wording import spoken
from evenhand.errors import DataError
from evenhand.files import written_json
from evenhand.intake import AuditData
from evenhand.plan import Plan
from evenhand.report import compose
from evenhand.report.periods import compose_periods
from evenhand.results import Finding, printable


def audit_by_period(plan: Plan, data: AuditData, model: Any, words: Mapping[str, Any], gates: Sequence[Gate]) -> int:
    """Audit each period, write its results as they come, then the overview; return the exit code."""
    assert data.period is not None
    names = data.period.labels
    folders = dict(zip(names, folder_names(names), strict=True))
    share = share_of(plan, len(names), together=words["by_alpha"] == "all")
    fails: Callable[[Finding], bool] | None = (lambda f: any(g.met_by(f) for g in gates)) if gates else None
    runs: list[PeriodRun] = []
    broken: list[str] = []
    with progress(words["quiet"]) as tell:
        for one in audit_periods(plan, data, model, share=share, progress=tell):
            runs.append(one)
            if one.run is not None:
                folder = words["out"] / folders[one.name]
                keep(one.run, folder)
                write(compose(one.run), folder, fails=fails)
                broken += [f"{one.name}: {sentence}" for sentence in met(gates, one.run)]
    if all(one.run is None for one in runs):
        raise DataError(f"No period could be audited. The first, {runs[0].name}: {runs[0].problem}")
    result = PeriodRuns(
        column=data.period.name, alpha=plan.alpha, share=share, runs=tuple(runs), notes=notes_of(plan, data, share)
    )
    _written(result, [folders[name] for name in names], words["out"], quiet=words["quiet"])
    for sentence in broken:
        click.echo(f"evenhand: {printable(sentence)}", err=True)
    return 3 if broken else 0


def folder_names(names: Sequence[str]) -> list[str]:
    """Return a folder's name for each period; names come from strangers, and none leads out of the folder.

    Examples
    --------
    >>> folder_names(["2024-01", "../etc", "a/b", "a b"])
    ['2024-01', '_etc', 'a_b', 'a_b-2']
    """
    taken: dict[str, int] = {}
    made = []
    for name in names:
        plain = re.sub(r"[^\w+-]+", "_", name)[:80] or "_"
        taken[plain] = taken.get(plain, 0) + 1
        made.append(plain if taken[plain] == 1 else f"{plain}-{taken[plain]}")
    return made


def _written(result: PeriodRuns, folders: Sequence[str], out: Path, *, quiet: bool) -> None:
    written_json(result.to_dict(folders), out / "periods.json")
    if not quiet:
        for line in str(result).splitlines():
            click.echo(spoken(line))
    write_page(compose_periods(result, folders), out, beside=("periods.json",))
