"""Data with a column of periods, divided into the data of each period."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from evenhand.arrays import BoolArray, read_only
from evenhand.errors import UsageError
from evenhand.intake.data import AuditData
from evenhand.intake.design import numbered, present_labels
from evenhand.intake.fingerprint import Fingerprint
from evenhand.intake.parts import Moments


def by_period(data: AuditData) -> Iterator[tuple[str, AuditData]]:
    """Yield each period's name and data, in the order of the names.

    Parameters
    ----------
    data : AuditData
        Read with `period`. One pass has added up all periods; rows that stayed where they are are picked out there.

    Yields
    ------
    name : str
    data : AuditData
        With the same groups and the same meaning of 1 in every period, also where a group has nobody in it.

    Examples
    --------
    >>> from evenhand.intake import read
    >>> table = {"d": [0, 1, 1], "g": ["a", "b", "a"], "day": ["2024-01-31", "2024-02-01", "2024-02-02"]}
    >>> [(name, part.count.size) for name, part in by_period(read(table, decision="d", groups="g", period="day:month"))]
    [('2024-01', 1), ('2024-02', 2)]
    """
    if data.period is None:
        raise UsageError("The data have no periods. Read them with `period='date:month'` or another column.")
    for j, name in enumerate(data.period.labels):
        yield name, _part(data, name, data.period.codes == j)


def _part(data: AuditData, name: str, chosen: BoolArray) -> AuditData:
    at = np.flatnonzero(chosen)
    part = replace(data, moments=None, batches=None, period=None).records(at)
    moments = data.moments and {
        value: Moments(*(read_only(a[at]) for a in (m.wv, m.wwv, m.wwvv))) for value, m in data.moments.items()
    }
    rows = part.rows.rows_used
    within = None if data.batches is None else data.batches.of_period
    part = replace(
        part,
        moments=moments,
        weight_square=None if data.weight_square is None else read_only(data.weight_square[at]),
        strata=None if data.strata is None else present_labels(data.strata, at),
        cluster=None if data.cluster is None else read_only(numbered(data.cluster[at])),
        survey_strata=None if data.survey_strata is None else read_only(numbered(data.survey_strata[at])),
        batches=None if within is None else within(name, rows),
    )
    return replace(part, fingerprint=_fingerprint(part))


def _fingerprint(part: AuditData) -> str:
    """Return a hash of the content of some records, whatever their order."""
    mark = Fingerprint(part.count)
    numbers = {"outcome": part.outcome, "decision": part.decision, "score": part.score, "weight": part.weight}
    numbers |= part.continuous
    numbers |= {name: sums.wv for name, sums in (part.moments or {}).items()}
    for name, values in numbers.items():
        if values is not None:
            mark.numbers(name, values)
    for attribute in (*part.attributes, *([] if part.strata is None else [part.strata])):
        mark.labels(attribute.name, attribute.codes, attribute.labels)
    for name, column in part.features.items():
        if column.dtype == object:
            labels, codes = np.unique([str(v) for v in column], return_inverse=True)
            mark.labels(f"feature:{name}", codes, labels.tolist())
        else:
            mark.numbers(f"feature:{name}", column)
    return mark.hex()
