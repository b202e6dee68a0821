"""The one answer every audit gives: findings, and the verdict on each.

A `Finding` is one row of the answer. An `AuditResult` is the findings of one audit with the evidence
behind each; an `AuditRun` is several audits on one error budget with all that is needed to repeat it.
"""

from __future__ import annotations

import enum
import html
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.files import write_atomic

SCHEMA = "evenhand/1"


class Verdict(enum.StrEnum):
    """The four words an audit can end with, and no others."""

    DISPARITY = "disparity"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"
    NOT_COMPUTABLE = "not_computable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A confidence interval: its ends, its level and how it was made.

    Parameters
    ----------
    low, high : float
        The ends; infinite where the data do not bound the value.
    level : float
        Nominal coverage, such as 0.95.
    kind : str
        The construction, such as ``"score"`` or ``"welch-t"``.

    Examples
    --------
    >>> Interval(low=-0.1, high=0.2, level=0.95, kind="score").to_dict()
    {'low': -0.1, 'high': 0.2, 'level': 0.95, 'kind': 'score'}
    """

    low: float
    high: float
    level: float
    kind: str

    def to_dict(self) -> dict[str, Any]:
        """Return the interval as plain data."""
        return {"low": self.low, "high": self.high, "level": self.level, "kind": self.kind}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One row of an audit's answer.

    Parameters
    ----------
    audit : str
        Which audit found it: ``"group"``, ``"projection"``, ...
    measure : str
        What was measured, such as ``"fnr"`` (a difference), ``"fnr_ratio"``, ``"fnr_global"``.
    groups : tuple of str
        The groups compared, as ``"sex=Female"``; the reference comes last.
    estimate : float
        The value found; NaN where it cannot be computed.
    interval : Interval or None
        Its uncertainty; None where none is defined.
    pvalue, pvalue_adjusted : float
        Raw, and after the multiplicity correction; NaN where not computed.
    margin : float or None
        The largest difference (or the smallest ratio) the user calls negligible.
    counts : mapping
        Group name to the whole numbers behind the estimate.
    verdict : Verdict
        One of the four words.
    reason : str
        One sentence that says why this verdict.

    Examples
    --------
    >>> row = Finding(audit="group", measure="fnr", groups=("sex=F", "sex=M"), estimate=float("nan"),
    ...               reason="Group `sex=F` has no positives.", verdict=Verdict.NOT_COMPUTABLE)
    >>> row.to_dict()["estimate"] is None
    True
    """

    audit: str
    measure: str
    groups: tuple[str, ...]
    estimate: float
    interval: Interval | None = None
    pvalue: float = math.nan
    pvalue_adjusted: float = math.nan
    margin: float | None = None
    counts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    verdict: Verdict = Verdict.INCONCLUSIVE
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as plain data, NaN as None."""
        row: dict[str, Any] = plain(
            {
                "audit": self.audit,
                "measure": self.measure,
                "groups": list(self.groups),
                "estimate": self.estimate,
                "interval": None if self.interval is None else self.interval.to_dict(),
                "pvalue": self.pvalue,
                "pvalue_adjusted": self.pvalue_adjusted,
                "margin": self.margin,
                "counts": self.counts,
                "verdict": str(self.verdict),
                "reason": self.reason,
            }
        )
        return row

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Finding:
        """Rebuild a finding from `to_dict`."""
        interval = row["interval"]
        return cls(
            audit=row["audit"],
            measure=row["measure"],
            groups=tuple(row["groups"]),
            estimate=_number(row["estimate"]),
            interval=None
            if interval is None
            else Interval(
                low=_number(interval["low"], -math.inf),
                high=_number(interval["high"], math.inf),
                level=interval["level"],
                kind=interval["kind"],
            ),
            pvalue=_number(row["pvalue"]),
            pvalue_adjusted=_number(row["pvalue_adjusted"]),
            margin=row["margin"],
            counts=row["counts"],
            verdict=Verdict(row["verdict"]),
            reason=row["reason"],
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AuditResult:
    """The findings of one audit, in a fixed order, with the evidence behind each.

    Parameters
    ----------
    audit : str
        The audit's name.
    findings : tuple of Finding
        The answer; iterating over the result iterates over them.
    evidence : tuple of mapping
        For each finding, what the report draws and a reader may check: the values per group, the test,
        its Monte-Carlo interval, the smallest attainable p-value, warnings.
    options : mapping
        The options the audit ran with.
    notes : tuple of str
        Sentences about the data and the method that concern all findings.

    Examples
    --------
    >>> import evenhand as eh
    >>> result = eh.audit_group(eh.datasets.planted(rows=400, rng=0), metrics=["fnr"], rng=0)
    >>> len(result), result[0].measure
    (1, 'fnr')
    """

    audit: str
    findings: tuple[Finding, ...]
    evidence: tuple[Mapping[str, Any], ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.findings) != len(self.evidence):
            raise ValueError("each finding needs its evidence")

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __getitem__(self, index: int) -> Finding:
        return self.findings[index]

    def with_findings(self, findings: Sequence[Finding]) -> AuditResult:
        """Return the same result with other findings in the same places."""
        return replace(self, findings=tuple(findings))

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one plain dictionary per finding, ready for any data frame."""
        return [f.to_dict() for f in self.findings]

    def to_dict(self) -> dict[str, Any]:
        """Return the whole result as plain data."""
        return {
            "audit": self.audit,
            "findings": self.to_rows(),
            "evidence": plain(list(self.evidence)),
            "options": plain(dict(self.options)),
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> AuditResult:
        """Rebuild a result from `to_dict`."""
        return cls(
            audit=data["audit"],
            findings=tuple(Finding.from_dict(row) for row in data["findings"]),
            evidence=tuple(data["evidence"]),
            options=data["options"],
            notes=tuple(data["notes"]),
        )

    def __str__(self) -> str:
        return text_table(self.findings)

    def _repr_html_(self) -> str:
        return html_table(self.findings)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AuditRun:
    """Several audits of one data set on one error budget, with all that is needed to repeat them.

    Parameters
    ----------
    results : tuple of AuditResult
        One per audit.
    plan : mapping
        What was asked.
    seed : int
        The seed every random draw came from.
    data : mapping
        Rows in, used and dropped, column roles, fingerprint.
    versions : mapping
        Evenhand's and its numerical libraries' versions.

    Examples
    --------
    >>> import evenhand as eh
    >>> run = eh.audit(eh.datasets.planted(rows=400, rng=0), rng=0)
    >>> run.to_dict()["schema"]
    'evenhand/1'
    """

    results: tuple[AuditResult, ...]
    plan: Mapping[str, Any]
    seed: int
    data: Mapping[str, Any]
    versions: Mapping[str, str]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings of all audits, in order."""
        return tuple(f for r in self.results for f in r.findings)

    def to_dict(self) -> dict[str, Any]:
        """Return the run as plain data, in the layout of ``findings.json``."""
        return {
            "schema": SCHEMA,
            "plan": plain(dict(self.plan)),
            "seed": self.seed,
            "versions": dict(self.versions),
            "data": plain(dict(self.data)),
            "findings": [f.to_dict() for f in self.findings],
            "audits": [
                {
                    "audit": r.audit,
                    "findings": len(r),
                    **{k: v for k, v in r.to_dict().items() if k not in ("audit", "findings")},
                }
                for r in self.results
            ],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> AuditRun:
        """Rebuild a run from `to_dict`."""
        rows = iter(data["findings"])
        results = tuple(
            AuditResult.from_dict({**block, "findings": [next(rows) for _ in range(block["findings"])]})
            for block in data["audits"]
        )
        return cls(
            results=results,
            plan=data["plan"],
            seed=data["seed"],
            data=data["data"],
            versions=data["versions"],
        )

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the run as JSON and, with a path, write it there in one step."""
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        if path is not None:
            write_atomic(Path(path), text)
        return text

    def __str__(self) -> str:
        return text_table(self.findings)

    def _repr_html_(self) -> str:
        return html_table(self.findings)


def plain(value: Any) -> Any:
    """Turn arrays, numpy numbers and mappings into JSON-ready data; a number that is not finite is None."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, str | bool) or value is None:
        return str(value) if isinstance(value, enum.Enum) else value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Sequence):
        return [plain(v) for v in value]
    return str(value)


def _number(value: float | None, missing: float = math.nan) -> float:
    return missing if value is None else float(value)


_COLUMNS = ("audit", "measure", "groups", "estimate", "interval", "p", "p adj.", "verdict")
_NUMBERS = ("estimate", "p", "p adj.")


def table_rows(findings: Sequence[Finding]) -> list[tuple[str, ...]]:
    """Return the head and the cells of the table of findings; the audit is named when there are several.

    Parameters
    ----------
    findings : sequence of Finding
        One row each.

    Returns
    -------
    list of tuple of str
        The head first.

    Examples
    --------
    >>> table_rows([Finding(audit="group", measure="fnr", groups=("a", "b"), estimate=0.5)])[1][:3]
    ('fnr', 'a vs b', '0.5000')
    """
    rows = [_COLUMNS, *(_cells(f) for f in findings)]
    first = 0 if len({f.audit for f in findings}) > 1 else 1
    return [tuple(printable(cell) for cell in row[first:]) for row in rows]


def _cells(finding: Finding) -> tuple[str, ...]:
    interval = finding.interval
    return (
        finding.audit,
        finding.measure,
        " vs ".join(finding.groups) if len(finding.groups) <= 2 else f"{len(finding.groups)} groups",
        _short(finding.estimate),
        "" if interval is None else f"[{_short(interval.low)}, {_short(interval.high)}]",
        _short_p(finding.pvalue),
        _short_p(finding.pvalue_adjusted),
        str(finding.verdict),
    )


def text_table(findings: Sequence[Finding]) -> str:
    """Lay findings out as a plain text table."""
    head, *rows = table_rows(findings)
    widths = [max(len(row[j]) for row in (head, *rows)) for j in range(len(head))]

    def line(row: tuple[str, ...]) -> str:
        cells = zip(row, widths, head, strict=True)
        return "  ".join(c.rjust(w) if name in _NUMBERS else c.ljust(w) for c, w, name in cells).rstrip()

    return "\n".join([line(head), "  ".join("-" * w for w in widths), *(line(row) for row in rows)])


def html_table(findings: Sequence[Finding]) -> str:
    """Lay findings out as an HTML table; names are escaped."""
    head, *rows = [[html.escape(cell) for cell in row] for row in table_rows(findings)]
    top = "".join(f"<th>{cell}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def printable(text: str) -> str:
    """Replace control characters: names come from strangers and could move the cursor or recolour a terminal.

    Parameters
    ----------
    text : str
        What is to be shown.

    Returns
    -------
    str

    Examples
    --------
    >>> printable("a" + chr(27) + "[31mb")
    'a�[31mb'
    """
    return "".join(c if c.isprintable() else "�" for c in text)


def _short(value: float) -> str:
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:.4f}"


def _short_p(value: float) -> str:
    if math.isnan(value):
        return "–"
    return f"{value:.4f}" if value >= 1e-4 else f"{value:.1e}"
