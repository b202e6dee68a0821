"""Two finished runs compared by their ``findings.json``: what appeared, vanished, or changed its verdict.

A run holds no rows, so the two sides cannot be paired. Where they are about different people, the change of an estimate
is held against the width of both intervals (normal law); where they are about the same people, known by a fingerprint
of their groups and outcomes, no test is made, because what both sides share would be counted as chance.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special

from evenhand.audits.margin import is_ratio
from evenhand.audits.registry import AUDITS
from evenhand.change.result import COMPARISON_SCHEMA, ChangeVerdict, json_text
from evenhand.errors import DataError
from evenhand.inference.multiplicity import adjust
from evenhand.results import SCHEMA, AuditRun, Finding, Verdict, plain, printable, shown_p
from evenhand.results.table import text_rows

_SAME = (
    "Both runs are about the same people. Their difference is no sample of its own, so no p-values are given; "
    "`evenhand compare FILE` with both models or both columns gives a paired test."
)
_OTHER = (
    "The runs are about different people and are compared as independent samples, by the width of their intervals. "
    "If some of them are in both, the p-values are too large or too small."
)


_SEARCHED = (
    "Subgroups of a scan are picked out for their size and looked for anew in each run. So their change is not tested, "
    "and one that appeared or vanished was perhaps only not listed in the other run."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One finding in two runs.

    Parameters
    ----------
    audit, measure : str
        Which finding.
    groups : tuple of str
        Whom it is about.
    state : {"appeared", "vanished", "changed verdict", "same verdict"}
        What became of it.
    before, after : float
        Estimates; NaN where a run lacks the finding.
    verdict_before, verdict_after : str
        Empty where a run lacks the finding.
    pvalue, pvalue_adjusted : float
        Against "as large as before"; NaN where no test is made.
    verdict : ChangeVerdict
        What is shown about the size of the disparity.
    """

    audit: str
    measure: str
    groups: tuple[str, ...]
    state: str
    before: float
    after: float
    verdict_before: str
    verdict_after: str
    pvalue: float = math.nan
    pvalue_adjusted: float = math.nan
    verdict: ChangeVerdict = ChangeVerdict.NOT_COMPUTABLE

    def to_dict(self) -> dict[str, Any]:
        """Return the line as plain data."""
        content: dict[str, Any] = plain({n: getattr(self, n) for n in self.__slots__ if n not in ("groups", "verdict")})
        return {**content, "groups": list(self.groups), "verdict": str(self.verdict)}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunComparison:
    """Two finished runs, finding by finding."""

    lines: tuple[Line, ...]
    names: tuple[str, str]
    alpha: float
    same_people: bool  # whether the fingerprints of their groups and outcomes agree
    plan_changes: tuple[str, ...]  # what else was asked, in sentences
    notes: tuple[str, ...]
    versions: Mapping[str, str]

    @property
    def worse(self) -> tuple[Line, ...]:
        """The findings that are shown to be for the worse."""
        return tuple(line for line in self.lines if line.verdict is ChangeVerdict.WORSE)

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain data."""
        return {
            "schema": COMPARISON_SCHEMA,
            "names": list(self.names),
            "alpha": self.alpha,
            "same_people": self.same_people,
            "plan_changes": list(self.plan_changes),
            "lines": [line.to_dict() for line in self.lines],
            "notes": list(self.notes),
            "versions": dict(self.versions),
        }

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the comparison as JSON and, with a path, write it there in one step."""
        return json_text(self.to_dict(), path)

    def __str__(self) -> str:
        head = ("audit", "measure", "groups", "before", "after", "p", "verdict before", "verdict after", "shown")
        rows = [head, *(_row(line) for line in self.lines)]
        states = Counter(line.state for line in self.lines)
        counted = ", ".join(f"{n} {state}" for state, n in states.items())
        return "\n".join(
            [text_rows(rows), "", f"{len(self.lines)} findings: {counted}.", *self.plan_changes, *self.notes]
        )


def _row(line: Line) -> tuple[str, ...]:
    numbers = [f"{v:+.4f}" if math.isfinite(v) else "–" for v in (line.before, line.after)]
    p = shown_p(line.pvalue_adjusted) if math.isfinite(line.pvalue_adjusted) else "–"
    shown = "" if line.verdict is ChangeVerdict.NOT_COMPUTABLE else str(line.verdict)
    groups = printable(" vs ".join(line.groups) if len(line.groups) < 3 else f"{len(line.groups)} groups")
    return (line.audit, line.measure, groups, *numbers, p, line.verdict_before, line.verdict_after, shown)


def load_run(path: str | Path) -> AuditRun:
    """Read a run from ``findings.json``, or from the folder that holds it.

    Parameters
    ----------
    path : str or Path
        A file or a folder.

    Returns
    -------
    AuditRun
    """
    place = Path(path)
    place = place / "findings.json" if place.is_dir() else place
    try:
        content = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DataError(f"`{place}` cannot be read as findings: {_reason(error)}.") from None
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        found = content.get("schema") if isinstance(content, dict) else None
        raise DataError(f"`{place}` has the schema {found!r}; this version reads {SCHEMA!r}. Run the audit again.")
    try:
        run = AuditRun.from_dict(content)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"`{place}` is not a whole run: {_reason(error)}.") from None
    if "people" not in run.data:
        raise DataError(f"`{place}` does not say who its people are: an older version made it. Run the audit again.")
    return run


def _reason(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__


def compare_runs(
    a: AuditRun, b: AuditRun, *, alpha: float = 0.05, names: tuple[str, str] = ("a", "b")
) -> RunComparison:
    """Compare two finished runs, finding by finding.

    Parameters
    ----------
    a, b : AuditRun
        The older and the newer one; see `load_run`.
    alpha : float
        Error rate over all findings.
    names : tuple of str
        What the runs are called.

    Returns
    -------
    RunComparison

    Examples
    --------
    >>> import evenhand as eh
    >>> plan = eh.Plan(group={"metrics": ["fnr"]})
    >>> old, new = (eh.audit(eh.datasets.planted(rows=4000, fnr=(0.1, f), rng=7), plan=plan, rng=0) for f in (0.1, 0.4))
    >>> str(compare_runs(old, new).lines[0].verdict)
    'worse'
    """
    for run, name in zip((a, b), names, strict=True):
        if "suppression" in run.data:
            raise DataError(
                f"Run `{name}` was made to be shared and does not say who its people are, so nothing can be compared "
                "with it. Compare the runs that were made without `suppress=`."
            )
    one, two = ({(f.audit, f.measure, f.groups): f for f in run.findings} for run in (a, b))
    for key in [k for k in two if k not in one and len(k[2]) == 2 and (*k[:2], k[2][::-1]) in one]:
        two[(*key[:2], key[2][::-1])] = _turned(two.pop(key))  # the other group was the reference
    same = a.data["people"] == b.data["people"]
    keys = list(dict.fromkeys([*one, *two]))
    raw = np.array([math.nan if same else _pvalue(one.get(k), two.get(k)) for k in keys])
    adjusted = adjust(raw)
    lines = [_line(k, one.get(k), two.get(k), float(raw[i]), float(adjusted[i]), alpha) for i, k in enumerate(keys)]
    return RunComparison(
        lines=tuple(lines),
        names=names,
        alpha=alpha,
        same_people=same,
        plan_changes=tuple(_plan_changes(a, b)),
        notes=(_SAME if same else _OTHER, *([_SEARCHED] if any(_searched(key[0]) for key in keys) else [])),
        versions=dict(b.versions),
    )


def _line(
    key: tuple[str, str, tuple[str, ...]],
    one: Finding | None,
    two: Finding | None,
    raw: float,
    adjusted: float,
    alpha: float,
) -> Line:
    audit, measure, groups = key
    state = (
        "appeared"
        if one is None
        else "vanished"
        if two is None
        else "same verdict"
        if one.verdict is two.verdict
        else "changed verdict"
    )
    verdict = ChangeVerdict.NOT_COMPUTABLE
    if one is not None and two is not None and not math.isnan(adjusted):
        before, after = (_distance(f) for f in (one, two))
        larger = abs(after) > abs(before)
        verdict = ChangeVerdict.INCONCLUSIVE
        if adjusted <= alpha:
            verdict = ChangeVerdict.WORSE if larger else ChangeVerdict.BETTER
    return Line(
        audit=audit,
        measure=measure,
        groups=groups,
        state=state,
        before=math.nan if one is None else one.estimate,
        after=math.nan if two is None else two.estimate,
        verdict_before="" if one is None else str(one.verdict),
        verdict_after="" if two is None else str(two.verdict),
        pvalue=raw,
        pvalue_adjusted=adjusted,
        verdict=verdict,
    )


def _turned(finding: Finding) -> Finding:
    """Return a finding about two groups with the other one as reference."""
    ratio = is_ratio(finding.measure)

    def turn(value: float) -> float:
        return (1 / value if value else math.inf) if ratio else -value

    interval = finding.interval
    if interval is not None:
        interval = replace(interval, low=turn(interval.high), high=turn(interval.low))
    return replace(finding, groups=finding.groups[::-1], estimate=turn(finding.estimate), interval=interval)


def _distance(finding: Finding) -> float:
    """Return how far an estimate lies from no disparity; a ratio on the scale of its logarithm."""
    if not is_ratio(finding.measure):
        return finding.estimate
    return math.log(finding.estimate) if finding.estimate > 0 else math.nan


def _pvalue(one: Finding | None, two: Finding | None) -> float:
    """Return the p-value against "as large as before", of independent estimates; NaN where it cannot be had."""
    if one is None or two is None or Verdict.NOT_COMPUTABLE in (one.verdict, two.verdict):
        return math.nan
    if _searched(one.audit):  # what was picked out for its size is smaller the next time, whatever happened
        return math.nan
    before, after = _distance(one), _distance(two)
    error = math.hypot(_error(one), _error(two))
    if not (math.isfinite(before) and math.isfinite(after) and error > 0 and math.isfinite(error)):
        return math.nan
    return max(2 * float(special.ndtr(-abs(v) / error)) for v in (after - before, after + before))


def _searched(audit: str) -> bool:
    """Say whether an audit lists what it searched for, and not the same questions in each run."""
    return audit in AUDITS and AUDITS[audit].joint


def _error(finding: Finding) -> float:
    interval = finding.interval
    if interval is None:
        return math.nan
    low, high = interval.low, interval.high
    if is_ratio(finding.measure):
        low, high = (math.log(v) if v > 0 else -math.inf for v in (low, high))
    return (high - low) / (2 * float(special.ndtri((1 + interval.level) / 2)))


def _plan_changes(a: AuditRun, b: AuditRun) -> list[str]:
    """Say what was asked otherwise, and what else differs."""
    one, two = ({k: v for k, v in run.plan.items() if k not in ("hash", "seed", "notes")} for run in (a, b))
    said = [
        f"The plan's `{key}` was {_short(one.get(key))} and is {_short(two.get(key))}."
        for key in dict.fromkeys([*one, *two])
        if one.get(key) != two.get(key)
    ]
    if a.versions.get("evenhand") != b.versions.get("evenhand"):
        said.append(f"The version of Evenhand was {a.versions.get('evenhand')} and is {b.versions.get('evenhand')}.")
    if dict(a.data["columns"]) != dict(b.data["columns"]):
        said.append("The columns have other roles than before.")
    return said


def _short(value: Any) -> str:
    text = json.dumps(value, default=str)
    return f"`{text}`" if len(text) <= 120 else f"`{text[:117]}…`"
