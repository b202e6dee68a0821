"""One audit for each period, all together on one error budget.

Every period is a family of questions of its own. With K periods each is audited at alpha / K, so that by Bonferroni's
inequality the chance of a wrong verdict anywhere in the output is at most alpha, whatever the periods have to do with
each other. The same holds for false discovery rates, because the share of wrong verdicts over all periods is at most
the sum of their shares.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.audits.reference import groups_among, references, words_among
from evenhand.errors import DataError
from evenhand.intake import AuditData, by_period
from evenhand.plan import Plan
from evenhand.results import AuditRun, Verdict, printable
from evenhand.results.table import text_rows
from evenhand.run import perform

# Where a plan does not say how many random permutations there are.
_RESAMPLES = 9999


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodRun:
    """What was found in one period, or why nothing was."""

    name: str
    run: AuditRun | None
    problem: str = ""  # a sentence, where the period could not be audited


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodRuns:
    """The audits of all periods."""

    column: str  # which names the periods
    alpha: float  # error rate asked for
    share: float  # error rate of each period
    runs: tuple[PeriodRun, ...]  # in the order of the periods' names
    notes: tuple[str, ...] = ()

    @property
    def budget(self) -> str:
        """Say how the error rate is divided, in one sentence."""
        many = len(self.runs)
        if self.share == self.alpha:
            return f"The error rate {self.alpha:g} holds in each of {many} periods alone, not over all of them."
        return (
            f"The error rate {self.alpha:g} is divided evenly over {many} periods, {self.share:.3g} for each, so that "
            "it holds over all of them together."
        )

    def tally(self, run: PeriodRun) -> dict[Verdict, int]:
        """Count the verdicts of one period."""
        counted = Counter(() if run.run is None else (f.verdict for f in run.run.findings))
        return {verdict: counted[verdict] for verdict in Verdict}

    def to_dict(self, folders: Sequence[str]) -> dict[str, Any]:
        """Return an overview as plain data, with the folder of each period."""
        return {
            "column": self.column,
            "alpha": self.alpha,
            "alpha_of_each": self.share,
            "periods": [
                {
                    "period": one.name,
                    "folder": folder if one.run is not None else None,
                    "rows_used": None if one.run is None else one.run.data["rows_used"],
                    "verdicts": {str(verdict): n for verdict, n in self.tally(one).items()},
                    "problem": one.problem or None,
                }
                for one, folder in zip(self.runs, folders, strict=True)
            ],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        rows = [("period", "rows", *(str(v) for v in Verdict), "")]
        for one in self.runs:
            used = "" if one.run is None else f"{one.run.data['rows_used']:,}"
            counted = ["" if one.run is None else str(n) for n in self.tally(one).values()]
            rows.append((printable(one.name), used, *counted, printable(one.problem)))
        return "\n".join([text_rows(rows), "", self.budget, *self.notes])


def share_of(plan: Plan, periods: int, *, together: bool) -> float:
    """Return the error rate of each period; undivided where none is held over the findings of one period either.

    Examples
    --------
    >>> share_of(Plan(alpha=0.06), 12, together=True), share_of(Plan(alpha=0.06), 12, together=False)
    (0.005, 0.06)
    """
    return plan.alpha / periods if together and plan.correction != "none" else plan.alpha


def notes_of(plan: Plan, data: AuditData, share: float) -> tuple[str, ...]:
    """Say what concerns all periods: rows that were left out, and too few permutations for so small an error rate."""
    notes = [f"{n:,} rows are left out: {reason}." for reason, n in data.rows.dropped.items()]
    resamples = plan.n_resamples or _RESAMPLES
    if share * (resamples + 1) < 10:
        notes.append(
            f"Tests by {resamples:,} random permutations give no p-value below {1 / (resamples + 1):.1g}, and each "
            f"period has an error rate of {share:.2g}; give `n_resamples=` of {round(100 / share, -3):,.0f} or more."
        )
    return tuple(notes)


def audit_periods(
    plan: Plan,
    data: AuditData,
    model: Any,
    *,
    share: float,
    progress: Callable[[str], None] | None = None,
) -> Iterator[PeriodRun]:
    """Audit the periods one after the other, each with the same questions and the same reference groups.

    Parameters
    ----------
    plan : Plan
        With a seed, and whose audits lack nothing.
    data : AuditData
        Read with `period`.
    model : object or None
        The model.
    share : float
        Error rate of each period, from `share_of`.
    progress : callable, optional
        As for `evenhand.audit`.

    Yields
    ------
    PeriodRun
        A period whose data cannot be audited, such as one with a single group, costs that period only.
    """
    assert data.period is not None
    asked = plan.changed(alpha=share, reference=_fixed(plan, data))
    many = len(data.period.labels)
    for number, (name, part) in enumerate(by_period(data), 1):
        tell = None if progress is None else _telling(progress, f"{name} ({number} of {many})")
        try:
            run = perform(asked, part, model, progress=tell)
        except DataError as error:
            yield PeriodRun(name=name, run=None, problem=str(error))
        else:
            yield PeriodRun(name=name, run=run)


def _telling(progress: Callable[[str], None], where: str) -> Callable[[str], None]:
    return lambda text: progress(f"{where}: {text}")


def _fixed(plan: Plan, data: AuditData) -> Any:
    """Name the reference groups of all periods: the largest of a period would change from one to the next."""
    if isinstance(plan.reference, str) or plan.group.get("compare") == "pairs" or "reference" in plan.group:
        return plan.reference
    return references(data, groups_among(data, plan.reference)) | words_among(data, plan.reference)
