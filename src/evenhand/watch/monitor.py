"""`Watch`: batches come in, evidence goes on, and an alarm is rarely false however often one looks."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evenhand.audits.group.samples import metrics_for
from evenhand.audits.reference import references
from evenhand.errors import DataError, UsageError
from evenhand.files import written, written_json
from evenhand.intake import AuditData, read
from evenhand.metrics import Metric, resolve
from evenhand.results import Finding, Verdict, plain, text_table
from evenhand.summaries import group_sizes
from evenhand.watch.answers import Answer, answers_of, questions_of
from evenhand.watch.batches import Batch, batch_of
from evenhand.watch.periods import periods
from evenhand.watch.plan import WatchPlan, check_watched
from evenhand.watch.state import State, check_plan, read_state

SCHEMA = "evenhand-watch-answers/1"


class Watch:
    """Watch disparities over batches, with an error rate that holds however often one looks.

    Parameters
    ----------
    metrics : sequence of str, optional
        Names of the catalogue: rates, and means of probabilities. By default a few that the columns allow.
    data : mapping, optional
        Columns and how to read them, by the names of `evenhand.read`; not needed where each batch is an `AuditData`.
    state : str or Path, optional
        The state file. One that is there is gone on with, if its plan is the same; each batch is written to it before
        `update` returns.
    **asked
        `reference` (attribute to label; by default the largest group of the first batch), `margin` (``0.05``,
        ``"ratio:0.9"``, ``"four-fifths"``), `alternative` (``"two-sided"``, ``"greater"``, ``"less"``), `alpha`
        (0.05, over all questions and all looks), `baseline` (so many batches at the beginning are what later ones are
        also compared with; 0 for none).

    Notes
    -----
    The groups are those of the first batch. Rows of different batches, and rows within a batch, must not depend on each
    other.

    Examples
    --------
    >>> import evenhand as eh
    >>> watch = Watch(["selection_rate"], alpha=0.05)
    >>> for month in ("2026-01", "2026-02", "2026-03"):
    ...     _ = watch.update(eh.datasets.planted(rows=400, rng=int(month[-2:])), batch=month)
    >>> len(watch.batches), watch.findings[0].measure
    (3, 'selection_rate')
    """

    def __init__(
        self,
        metrics: Sequence[str] | str | None = None,
        *,
        data: Mapping[str, Any] | None = None,
        state: str | Path | None = None,
        **asked: Any,
    ) -> None:
        plan = WatchPlan.of({"metrics": metrics, "data": data, **asked})
        self._path = None if state is None else Path(state)
        self._state = State(plan=plan)
        self._answers: tuple[Answer, ...] | None = None
        if self._path is not None and self._path.exists():
            self._state = read_state(self._path)
            check_plan(self._state, plan, self._path)

    @classmethod
    def load(cls, path: str | Path) -> Watch:
        """Go on with the watch of a state file; further batches are written to it."""
        watch = cls()
        watch._path = Path(path)
        watch._state = read_state(watch._path)
        return watch

    def save(self, path: str | Path) -> None:
        """Write the state to a file in one step; further batches are written to it."""
        self._path = Path(path)
        self._state.write(self._path)

    @property
    def plan(self) -> WatchPlan:
        """What is asked."""
        return self._state.plan

    @property
    def state(self) -> dict[str, Any]:
        """The state as plain data, as it stands in the file."""
        return self._state.to_dict()

    @property
    def batches(self) -> tuple[Batch, ...]:
        """The batches in the order in which they came, as sums."""
        return self._state.batches

    def update(self, source: Any, batch: str) -> bool:
        """Count one batch.

        Parameters
        ----------
        source : AuditData, path, frame or relation
            Its rows; what is no `AuditData` is read with the options in `data`.
        batch : str
            Its name, such as a month. The same rows under the same name count once.

        Returns
        -------
        bool
            Whether it was counted; False where it had been counted before.

        Raises
        ------
        DataError
            Where other rows were counted under this name.
        """
        data = source if isinstance(source, AuditData) else self._read(source)
        return self._count(data, str(batch))

    def update_by(self, source: Any, time: str) -> list[str]:
        """Count a table as one batch for each value of a time column, in the order of the values.

        Parameters
        ----------
        source : path, frame or relation
            All rows; on DuckDB and Spark one group-by adds up all periods.
        time : str
            The column, such as a month as text: ``"2026-03"`` comes before ``"2026-04"``.

        Returns
        -------
        list of str
            The periods that were counted; those counted before are left out.
        """
        data = source if isinstance(source, AuditData) else self._read(source, time)
        return [name for name, part in periods(data, time) if self._count(part, name)]

    @property
    def answers(self) -> tuple[Answer, ...]:
        """What is known about each question after each batch; empty before the first."""
        if self._answers is None:
            self._answers = answers_of(self._state) if self.batches else ()
        return self._answers

    @property
    def findings(self) -> tuple[Finding, ...]:
        """One finding for each question, as after the last batch."""
        return tuple(answer.finding for answer in self.answers)

    @property
    def alarms(self) -> tuple[Answer, ...]:
        """The questions about which a disparity was shown."""
        return tuple(a for a in self.answers if a.finding.verdict is Verdict.DISPARITY)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know about the batches, in sentences."""
        said = [f"Batch `{batch.name}`: {note}" for batch in self.batches for note in batch.notes]
        for answer in self.answers:
            if answer.dispersed and not answer.question.change:
                spread = answer.spread
                said.append(
                    f"`{answer.question.measure}` of {' and '.join(f'`{g}`' for g in answer.question.groups)} varies "
                    f"between batches more than independent rows do (chi-square {spread.statistic:.1f} on "
                    f"{spread.freedom} degrees of freedom, p = {spread.pvalue:.2g}, warned about below 0.001). Either "
                    "the difference changes, or rows of a batch depend on each other; with dependent rows the error "
                    "rate does not hold."
                )
            if answer.torn is not None:
                said.append(
                    f"From batch `{self.batches[answer.torn].name}` on no single value of "
                    f"`{answer.question.measure}` for `{answer.question.groups[0]}` fits all batches: the difference "
                    "changes over time, and there is no interval for it any more."
                )
        return tuple(dict.fromkeys(said))

    def history(self) -> list[dict[str, Any]]:
        """Return one plain dictionary per batch and question."""
        rows = []
        for t, batch in enumerate(self.batches):
            for answer in self.answers:
                finding, values = answer.finding, answer.values[t]
                inside = math.nan if answer.log_inside is None else _exp(answer.log_inside[t])
                rows.append(
                    plain(
                        {
                            "batch": batch.name,
                            "rows": batch.used,
                            "measure": finding.measure,
                            "group": finding.groups[0],
                            "reference": finding.groups[1],
                            "rows_group": int(answer.stream.size[t, 0]),
                            "rows_reference": int(answer.stream.size[t, 1]),
                            "value_group": values[0],
                            "value_reference": values[1],
                            "estimate": answer.estimate[t],
                            "low": answer.ends[t, 0],
                            "high": answer.ends[t, 1],
                            "evidence": _exp(answer.log_e[t]),
                            "evidence_adjusted": _exp(answer.log_adjusted[t]),
                            "evidence_inside_adjusted": inside,
                            "alarm": answer.alarm is not None and t >= answer.alarm,
                        }
                    )
                )
        return rows

    def to_csv(self, path: str | Path | None = None) -> str:
        """Return the history as CSV, a row per batch and question, and, with a path, write it there in one step."""
        rows, text = self.history(), io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]) if rows else ["batch"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return written(text.getvalue(), path)

    def to_dict(self) -> dict[str, Any]:
        """Return findings, notes and history as plain data."""
        return {
            "schema": SCHEMA,
            "plan": self.plan.to_dict(),
            "plan_hash": self.plan.hash,
            "batches": [b.name for b in self.batches],
            "findings": [
                f.to_dict() | {"alarm": None if a.alarm is None else self.batches[a.alarm].name}
                for f, a in zip(self.findings, self.answers, strict=True)
            ],
            "notes": list(self.notes),
            "history": self.history(),
        }

    def to_json(self, path: str | Path | None = None) -> str:
        """Return findings, notes and history as JSON and, with a path, write it there in one step."""
        return written_json(self.to_dict(), path)

    def __str__(self) -> str:
        return text_table(self.findings)

    def _read(self, source: Any, time: str | None = None) -> AuditData:
        options = {"rows": "cells", **self.plan.data}
        if not self.plan.data:
            raise UsageError(
                "The watch does not know the columns. Give them once, as `Watch(data={'decision': 'd', 'groups': "
                "['sex']})`, or pass an `AuditData`."
            )
        groups = options.get("groups", ())
        named = [groups] if isinstance(groups, str) else list(groups)
        options["groups"] = named if time is None else [*named, time]
        return read(source, **options)

    def _count(self, data: AuditData, name: str) -> bool:
        state = self._state if self._state.groups is not None else _begin(self._state, data)
        batch = _noted(batch_of(data, name, resolve(state.metrics)), state)
        if state.knows(batch):
            return False
        state = state.with_batch(batch)
        if self._path is not None:
            self._check_untouched()
            state.write(self._path)
        self._state, self._answers = state, None
        return True

    def _check_untouched(self) -> None:
        """Refuse to write over batches that another process has counted meanwhile."""
        assert self._path is not None
        known = [b.fingerprint for b in self.batches]
        if self._path.exists() and [b.fingerprint for b in read_state(self._path).batches] != known:
            raise DataError(
                f"Another process has written to the state file `{self._path}` meanwhile. Load it again and send the "
                "batch once more."
            )


def _begin(state: State, data: AuditData) -> State:
    """Fix metrics, groups and references with the first batch."""
    plan = state.plan
    if plan.metrics is None:
        chosen: tuple[Metric, ...] = tuple(m for m in metrics_for(data) if m.name not in ("auc", "log_loss"))
        if not chosen:
            chosen = resolve("mean_score")
    else:
        chosen = resolve(plan.metrics)
    for metric in chosen:
        check_watched(metric)
    reference = references(data, plan.reference)
    groups = {}
    for attribute in data.attributes:
        known = [label for j, label in enumerate(attribute.labels) if j != attribute.unknown]
        if len(known) < 2:
            raise DataError(
                f"The first batch has {len(known)} group of `{attribute.name}`; at least 2 are needed. Begin with a "
                "batch that has all groups."
            )
        last = reference[attribute.name]
        if last not in known:  # most people's group is not known
            sizes = dict(zip(attribute.labels, group_sizes(data, attribute), strict=True))
            last = max(known, key=lambda label: sizes[label])
        groups[attribute.name] = (*(label for label in known if label != last), last)
    begun = State(plan=plan, metrics=tuple(m.name for m in chosen), groups=groups)
    questions_of(begun)
    return begun


def _noted(batch: Batch, state: State) -> Batch:
    """Add what is strange about a batch beside those before it."""
    notes = list(batch.notes)
    for attribute, labels in (state.groups or {}).items():
        new = [label for label in batch.tables.get(attribute, {}) if label not in labels]
        if new:
            names = ", ".join(f"`{attribute}={label}`" for label in new)
            notes.append(f"{names} did not occur in the first batch and cannot be watched; begin a new watch for that.")
    same = [known.name for known in state.batches if known.fingerprint == batch.fingerprint]
    if same and batch.name not in same:
        notes.append(f"it has the same rows as batch `{same[0]}`. If it was sent twice, its evidence counts twice.")
    return Batch.from_dict(batch.to_dict() | {"notes": notes})


def _exp(log: float) -> float:
    return math.exp(min(float(log), 700.0))
