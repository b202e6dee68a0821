"""The map learned from a sample, applied to people wherever their rows are; what comes back are sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace

import numpy as np

from evenhand.arrays import IntArray
from evenhand.audits.individual.folds import Plan
from evenhand.audits.individual.moving import Moved, move
from evenhand.audits.individual.options import IndividualSetting, MapOptions
from evenhand.audits.individual.people import People, further, second_half
from evenhand.audits.individual.region import Box
from evenhand.audits.individual.totals import Totals
from evenhand.errors import DataError, EvenhandError, first_line
from evenhand.intake import AuditData
from evenhand.intake.batches import BATCH_ROWS
from evenhand.intake.row_sample import content
from evenhand.kernels.shared.row_hash import row_hash
from evenhand.models.gradient_view import ModelView
from evenhand.similarity.metric import FairMetric

Say = Callable[[int], None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnfairMap:
    """How anybody is moved: by content under the metric of the other half, each half inside its range."""

    view: ModelView  # the model, and the coordinates people are moved in
    ways: tuple[tuple[FairMetric, Box], ...]  # one for everybody, or one for each half
    marks: IntArray  # what says who belongs to which half
    options: MapOptions  # how
    examples: int  # pairs to keep as rows

    @classmethod
    def of(cls, people: People, plan: Plan, setting: IndividualSetting) -> UnfairMap:
        """Keep of a plan what is needed to move people, without the rows it was learned from."""
        how = {f.name: getattr(setting, f.name) for f in fields(MapOptions)}
        return cls(
            view=replace(people.view, y=np.empty(0)),
            ways=tuple((f.metric, f.box) for f in plan.folds),
            marks=plan.marks,
            options=MapOptions(**how | {"progress": None}),
            examples=setting.examples,
        )

    def apply(self, people: People, say: Say) -> tuple[Moved, Totals]:
        """Move people and add them up; `say` hears how many were moved."""
        second = second_half(people.marks, self.marks) if len(self.ways) == 2 else np.zeros(people.count.size, bool)
        parts = [(np.flatnonzero(second == k), *way) for k, way in enumerate(self.ways)]
        done, outs = 0, []
        for index, metric, box in parts:

            def report(k: int, _: int, before: int = done) -> None:
                say(before + k)

            outs.append(move(people, index, metric, box, self.options, report))
            done += index.size
        order = np.argsort(np.concatenate([index for index, _, _ in parts]), kind="stable")
        moved = Moved(
            end=np.concatenate([o.end for o in outs])[order],
            clock=outs[0].clock,
            log_loss=np.concatenate([o.log_loss for o in outs], axis=1)[:, order],
            wrong=np.concatenate([o.wrong for o in outs], axis=1)[:, order],
            stopped=np.concatenate([o.stopped for o in outs])[order],
        )
        return moved, Totals.of(people, moved, [(index, box) for index, _, box in parts], self.examples)


class Attack:
    """A summary of batches: the people of each are moved, and only sums over them are kept.

    Parameters
    ----------
    unfair : UnfairMap
        How people are moved.
    say : callable, optional
        Called with the rows done after each batch, where batches are worked through one after the other.
    """

    def __init__(self, unfair: UnfairMap, say: Say | None = None) -> None:
        self._unfair = unfair
        self._say = say
        self.totals: Totals | None = None

    def add(self, batch: AuditData) -> None:
        """Move the people of one batch."""
        for piece in _pieces(batch):
            self._take(_moved(self._unfair, piece))
            if self._say is not None and self.totals is not None:
                self._say(int(self.totals.rows))

    def merge(self, other: Attack) -> None:
        """Take the sums of another attack."""
        if other.totals is not None:
            self._take(other.totals)

    def _take(self, totals: Totals) -> None:
        self.totals = totals if self.totals is None else self.totals + totals


def _moved(unfair: UnfairMap, piece: AuditData) -> Totals:
    """Move the people of some rows; whatever a model runs into is said with the rows it ran into."""
    try:
        return unfair.apply(further(unfair.view, piece), _nobody)[1]
    except EvenhandError:
        raise
    except Exception as error:  # whatever a stranger's model runs into
        raise DataError(
            f"{unfair.view.name} raised {type(error).__name__}: {first_line(error)} while {piece.count.size} rows of a "
            "batch were moved. Drop such rows, or mend the model."
        ) from error


def _pieces(batch: AuditData) -> Iterator[AuditData]:
    """Divide a large batch by the hash of its rows, so that equal rows stay together and row order does not matter."""
    records = batch.count.size
    if records <= BATCH_ROWS:
        yield batch
        return
    order = np.argsort(row_hash(content(batch), 0), kind="stable")
    for start in range(0, records, BATCH_ROWS):
        yield batch.records(order[start : start + BATCH_ROWS])


def _nobody(_: int) -> None:
    """Hear nothing."""
