"""A bias audit: selection or scoring rates by category and their ratios to the highest, in the form of a law."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.errors import UsageError
from evenhand.files import write_all, written
from evenhand.intake import AuditData
from evenhand.kernels.shared.seeds import RngLike, seed_of
from evenhand.plan import Plan, check_fits
from evenhand.report.bias_audit.page import FORMS, compose_bias_audit, printed_tables
from evenhand.report.bias_audit.tables import BiasTable, bias_tables
from evenhand.report.document import Document, Text, shown
from evenhand.report.html import html_page
from evenhand.report.markdown import markdown_page
from evenhand.report.spreadsheet import csv_of, xlsx_of
from evenhand.results import AuditRun
from evenhand.results.table import html_rows, text_rows
from evenhand.run import perform

__all__ = ["BiasAudit", "bias_audit", "bias_plan"]

_METRICS = ("selection_rate", "scoring_rate")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BiasAudit:
    """The tables of a bias audit, and the run behind them. Make one with `evenhand.bias_audit`.

    Parameters
    ----------
    form : {"bias-audit", "ll144"}
        In whose words.
    tables : tuple of BiasTable
        One per attribute, crossings included.
    run : AuditRun
        The group audit that they come from.
    """

    form: str
    tables: tuple[BiasTable, ...]
    run: AuditRun

    @classmethod
    def of_run(cls, run: AuditRun, data: AuditData, form: str) -> BiasAudit:
        """Lay out a run of a plan from `bias_plan`; of the data only the name for people of unknown group is read."""
        unknown = {a.name: a.labels[a.unknown] for a in data.attributes if a.unknown is not None}
        (metric,) = run.results[0].options["metrics"]
        return cls(form=form, tables=bias_tables(run, metric, unknown), run=run)

    @property
    def page(self) -> Document:
        """What the page says."""
        return compose_bias_audit(self.run, self.tables, self.form)

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the tables as one HTML page that works offline and, with a path, write it there in one step."""
        return written(html_page(self.page), path)

    def to_markdown(self, path: str | Path | None = None) -> str:
        """Return the page as Markdown and, with a path, write it there in one step."""
        return written(markdown_page(self.page), path)

    def to_csv(self, path: str | Path | None = None) -> str:
        """Return all tables as one CSV text and, with a path, write it there; no cell is taken for a formula."""
        return written(csv_of(printed_tables(self.tables, self.form)), path)

    def to_xlsx(self, path: str | Path | None = None) -> bytes:
        """Return an Excel workbook, a sheet per table, and, with a path, write it; needs ``evenhand[xlsx]``."""
        page = self.page
        texts = [block.text for block in (*page.summary, *page.chapters[-1].blocks) if isinstance(block, Text)]
        about = [page.title, page.headline, *texts]
        content = xlsx_of(printed_tables(self.tables, self.form), [*about, *self.run.data["notes"]])
        if path is not None:
            write_all({Path(path): content})
        return content

    def _rows(self) -> list[tuple[str, list[tuple[str, ...]]]]:
        """Return each table's title and its rows as text, the head first."""
        return [
            (table.title, [table.head, *(tuple(shown(value) for value in row) for row in table.rows)])
            for table in printed_tables(self.tables, self.form)
        ]

    def __str__(self) -> str:
        return "\n\n".join(f"{title}\n{text_rows(rows, numbers=rows[0][1:-2])}" for title, rows in self._rows())

    def _repr_html_(self) -> str:
        return "".join(html_rows(rows) for _, rows in self._rows())


def bias_audit(
    data: AuditData,
    *,
    form: str = "bias-audit",
    metric: str | None = None,
    margin: float | str | None = None,
    alpha: float = 0.05,
    rng: RngLike = None,
    suppress: int | None = None,
) -> BiasAudit:
    """Compare each category's selection or scoring rate with the highest one, as bias audits are reported.

    Parameters
    ----------
    data : AuditData
        Read with ``missing="unknown"``, so that people of unknown category are counted and not compared, and with
        ``intersections=True`` for crossed categories.
    form : {"bias-audit", "ll144"}
        Neutral words, or those of the rules for New York City's Local Law 144.
    metric : {"selection_rate", "scoring_rate"}, optional
        The share selected, or the share with a score above everybody's median; by default the first if there are
        decisions.
    margin : float or str, optional
        What counts as negligible, such as ``"four-fifths"``; without one the question is whether a ratio is below 1.
    alpha : float
        Error rate over all ratios.
    rng : int, Generator or None
        Seed.
    suppress : int, optional
        Make tables that may be shared, without counts below this number; see `evenhand.audit`.

    Returns
    -------
    BiasAudit

    Examples
    --------
    >>> import evenhand as eh
    >>> audit = bias_audit(eh.datasets.planted(rows=4000, fnr=(0.1, 0.4), rng=0), rng=0)
    >>> [(c.label, round(c.ratio, 2)) for c in audit.tables[0].categories]
    [('A', 1.0), ('B', 0.75)]
    """
    if form not in FORMS:
        raise UsageError(f"`form` is `{form}`; allowed: {', '.join(f'`{name}`' for name in FORMS)}.")
    if not isinstance(data, AuditData):
        raise UsageError(f"`bias_audit` needs data that were read: got {type(data).__name__}. Use `eh.read` first.")
    said = {"metrics": metric, "margin": margin}
    base = Plan(alpha=alpha, seed=seed_of(rng), group={key: value for key, value in said.items() if value is not None})
    plan = bias_plan(base, data)
    check_fits(plan, data, None)
    return BiasAudit.of_run(perform(plan, data, None, suppress=suppress, simultaneous=True), data, form)


def bias_plan(base: Plan, data: AuditData) -> Plan:
    """Return the plan of a bias audit: ratios of one rate to the highest, and nothing else.

    Parameters
    ----------
    base : Plan
        What was asked: metric, margin, error rate, seed.
    data : AuditData
        Decides between selection and scoring rates where no metric was named.

    Returns
    -------
    Plan
    """
    asked: Mapping[str, Any] = base.sections["group"]
    metrics = asked.get("metrics")
    if metrics is None:
        metrics = ["scoring_rate" if data.decision is None and data.score is not None else "selection_rate"]
    metrics = [metrics] if isinstance(metrics, str) else list(metrics)
    if len(metrics) != 1 or metrics[0] not in _METRICS:
        raise UsageError(
            f"A bias audit is made of one rate; got the metrics {', '.join(f'`{m}`' for m in metrics)}. Name "
            "`selection_rate`, for decisions, or `scoring_rate`, for scores."
        )
    if base.reference or asked.get("reference") or asked.get("compare", "reference") != "reference":
        raise UsageError("A bias audit compares with the highest rate. Leave `reference=` and `compare=` out.")
    if base.audits != ("group",):
        raise UsageError("A bias audit is made of the group audit alone. Leave `audits=` out.")
    if data.continuous or data.probabilities:
        name = next(iter({**data.continuous, **data.probabilities}))
        raise UsageError(
            f"A bias audit compares categories, and `{name}` has none. Cut it with `cuts=`, or leave it out."
        )
    if base.correction not in ("gatekeeping", "bonferroni"):
        raise UsageError(
            f"A bias audit gives intervals that hold together, by Bonferroni's correction; got `{base.correction}`. "
            "Leave `correction=` out."
        )
    group = {**asked, "metrics": metrics, "ratio": True, "reference": "highest"}
    # With Bonferroni's correction the intervals that hold together are those that agree with the verdicts.
    return base.changed(audits=("group",), correction="bonferroni", group=group)
