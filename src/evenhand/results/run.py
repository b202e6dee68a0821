"""The findings of one audit, and of several on one error budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

from evenhand.files import written_json
from evenhand.results.display import Displayed
from evenhand.results.evidence import Evidence, read_evidence
from evenhand.results.finding import Finding, Interval, plain
from evenhand.results.findings import Findings
from evenhand.results.table import text_table

SCHEMA = "evenhand/1"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AuditResult(Findings):
    """The findings of one audit, in a fixed order, with the evidence behind each.

    Parameters
    ----------
    audit : str
        The audit's name.
    findings : tuple of Finding
        The answer; iterating over the result iterates over them.
    evidence : tuple of Evidence
        For each finding, what the report draws and a reader may check: the values per group, the test,
        its Monte-Carlo interval, the smallest attainable p-value, warnings.
    options : mapping
        The options the audit ran with.
    notes : tuple of str
        Sentences about the data and the method that concern all findings.
    interval_at : tuple of callable or None
        For each finding, a function from a level to its interval at that level, or None; empty where the audit has
        none. Verdicts use it; it is not written into files.

    Examples
    --------
    >>> import evenhand as eh
    >>> result = eh.audit_group(eh.datasets.planted(rows=400, rng=0), metrics=["fnr"], rng=0)
    >>> len(result), result[0].measure
    (1, 'fnr')
    """

    kinds_of_evidence: ClassVar[Callable[[str], Sequence[type[Evidence]]]]  # handed over by `evenhand/__init__.py`

    audit: str
    options: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    interval_at: tuple[Callable[[float], Interval | None] | None, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        Findings.__post_init__(self)
        if self.interval_at and len(self.interval_at) != len(self.findings):
            raise ValueError("each finding needs a place in `interval_at`")

    def to_dict(self) -> dict[str, Any]:
        """Return the whole result as plain data."""
        return {
            "audit": self.audit,
            "findings": self.to_rows(),
            "evidence": [e.to_dict() for e in self.evidence],
            "options": plain(dict(self.options)),
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> AuditResult:
        """Rebuild a result from `to_dict`."""
        kinds = AuditResult.kinds_of_evidence(data["audit"])
        return cls(
            audit=data["audit"],
            findings=tuple(Finding.from_dict(row) for row in data["findings"]),
            evidence=tuple(read_evidence(e, kinds) for e in data["evidence"]),
            options=data["options"],
            notes=tuple(data["notes"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AuditRun(Displayed):
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
    label : str or None
        What the user calls this run, such as the model's version.
    model : mapping or None
        Of the model: its ``"name"``, the ``"sha256"`` of its file or None, and the ``"reason"`` where there is none.
        None where no model was given.
    input : sequence of mapping
        Of each input file the same; empty where the rows did not come from files.

    Examples
    --------
    >>> import evenhand as eh
    >>> run = eh.audit(eh.datasets.planted(rows=400, rng=0), rng=0)
    >>> run.to_dict()["schema"]
    'evenhand/1'
    """

    # report, sharing: handed over by `evenhand/__init__.py`: the rooms of these names.
    report: ClassVar[Callable[[], ModuleType]]
    sharing: ClassVar[Callable[[], ModuleType]]

    results: tuple[AuditResult, ...]
    plan: Mapping[str, Any]
    seed: int
    data: Mapping[str, Any]
    versions: Mapping[str, str]
    label: str | None = None
    model: Mapping[str, str | None] | None = None
    input: Sequence[Mapping[str, str | None]] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings of all audits, in order."""
        return tuple(f for r in self.results for f in r.findings)

    def find(
        self,
        *,
        measure: str | None = None,
        group: str | None = None,
        audit: str | None = None,
        verdict: str | None = None,
    ) -> Findings:
        """Return the findings that are about all of what is named; see `Findings.find`."""
        return self._all.find(measure=measure, group=group, audit=audit, verdict=verdict)

    def __getitem__(self, measure: str) -> Findings:
        """Return the findings of one measure, or about one metric."""
        return self._all.find(measure=measure)

    def to_frame(self, kind: str | None = None) -> Any:
        """Return a data frame with one row per finding; see `Findings.to_frame`."""
        return self._all.to_frame(kind)

    def plot(self, chart: str | None = None, *, theme: str = "light") -> Any:
        """Return an Altair chart: all findings, or one chart of the report by its title; needs ``evenhand[plot]``.

        Parameters
        ----------
        chart : str, optional
            The title of one of the report's charts, or its beginning; an unknown one is answered with their titles.
        theme : {"light", "dark"}
            For the background it will stand on.

        Returns
        -------
        altair.LayerChart or altair.VConcatChart
        """
        return AuditRun.report().plot(self._all if chart is None else self, chart, theme=theme)

    @property
    def _all(self) -> Findings:
        return Findings(findings=self.findings, evidence=tuple(e for r in self.results for e in r.evidence))

    def to_dict(self) -> dict[str, Any]:
        """Return the run as plain data, in the layout of ``findings.json``."""
        return {
            "schema": SCHEMA,
            "label": self.label,
            "model": plain(self.model),
            "input": plain(self.input),
            "plan": plain(dict(self.plan)),
            "seed": self.seed,
            "versions": dict(self.versions),
            "data": plain(dict(self.data)),
            "findings": [f.to_dict() for f in self.findings],
            "audits": [{**r.to_dict(), "findings": len(r)} for r in self.results],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> AuditRun:
        """Rebuild a run from `to_dict`."""
        rows = iter(data["findings"])
        results = tuple(
            AuditResult.from_dict({**block, "findings": [next(rows) for _ in range(block["findings"])]})
            for block in data["audits"]
        )
        named = ("plan", "seed", "data", "versions", "label", "model", "input")
        return cls(results=results, **{key: data[key] for key in named if key in data})

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the run as JSON and, with a path, write it there in one step."""
        return written_json(self.to_dict(), path)

    def to_html(self, path: str | Path | None = None, *, title: str | None = None) -> str:
        """Return the run as one HTML page that works offline and, with a path, write it there in one step."""
        return str(AuditRun.report().to_html(self, path, title=title))

    def to_markdown(self, path: str | Path | None = None, *, title: str | None = None) -> str:
        """Return the run as Markdown and, with a path, write it there in one step."""
        return str(AuditRun.report().to_markdown(self, path, title=title))

    def to_junit(self, path: str | Path | None = None) -> str:
        """Return the run as JUnit XML, a `disparity` as a failure, and, with a path, write it there in one step."""
        return str(AuditRun.report().to_junit(self, path))

    def to_model_card(self, path: str | Path | None = None, *, name: str = "Audited model", **fields: Any) -> str:
        """Return the findings as a model card in Markdown and, with a path, write it there in one step.

        Parameters
        ----------
        path : str or Path, optional
            Such as ``"README.md"``.
        name : str
            Of the model.
        **fields
            Further metadata fields of a Hugging Face card, such as ``license="mit"``, ``tags=["credit"]`` or
            ``dataset="loans-2024"``; they are written as they are given.

        Returns
        -------
        str
        """
        return str(AuditRun.sharing().to_model_card(self, path, name=name, **fields))

    def log_to_mlflow(self, *, run_id: str | None = None, prefix: str = "evenhand") -> str:
        """Log metrics, parameters, tags and files into MLflow; needs ``evenhand[mlflow]``.

        Parameters
        ----------
        run_id : str, optional
            The MLflow run to log into; by default the active one, or else a new one, which is ended again.
        prefix : str
            What all names begin with, to tell several audits in one MLflow run apart.

        Returns
        -------
        str
            The id of the MLflow run.
        """
        return str(AuditRun.sharing().log_to_mlflow(self, run_id=run_id, prefix=prefix))

    def __str__(self) -> str:
        return text_table(self.findings)
