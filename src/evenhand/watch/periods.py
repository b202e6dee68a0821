"""One table with a time column, divided into a batch for each period."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from evenhand.arrays import BoolArray, read_only
from evenhand.intake import Attribute, AuditData
from evenhand.intake.fingerprint import Fingerprint
from evenhand.intake.parts import Moments, RowCounts


def periods(data: AuditData, time: str) -> Iterator[tuple[str, AuditData]]:
    """Yield each period's name and data, in the order of the names.

    Parameters
    ----------
    data : AuditData
        With the time column as one of its attributes: one group-by has added up all periods.
    time : str
        Its name.

    Yields
    ------
    name : str
    data : AuditData
        Without the time column, with a fingerprint of its own rows.

    Examples
    --------
    >>> data = AuditData.from_arrays(decision=[0, 1, 1], groups={"g": ["a", "b", "a"], "month": ["1", "1", "2"]})
    >>> [(name, int(part.count.sum())) for name, part in periods(data, "month")]
    [('1', 2), ('2', 1)]
    """
    when = data.attribute(time)
    others = tuple(a for a in data.attributes if a.name != time)
    for j in sorted(range(len(when.labels)), key=lambda j: when.labels[j]):
        if j != when.unknown and (when.codes == j).any():
            yield when.labels[j], _part(replace(data, attributes=others), when.codes == j)


def _part(data: AuditData, keep: BoolArray) -> AuditData:
    count = data.count[keep]
    mark = Fingerprint(count)
    outcome, decision, score = (
        None if a is None else read_only(a[keep]) for a in (data.outcome, data.decision, data.score)
    )
    for role, values in (("outcome", outcome), ("decision", decision), ("score", score)):
        if values is not None:
            mark.numbers(role, values)
    attributes = tuple(_present(a, keep) for a in data.attributes)
    for attribute in attributes:
        mark.labels(attribute.name, attribute.codes, attribute.labels)
    moments = None
    if data.moments is not None:
        moments = {n: Moments(*(read_only(a[keep]) for a in (m.wv, m.wwv, m.wwvv))) for n, m in data.moments.items()}
        for name, sums in moments.items():
            mark.numbers(name, sums.wv)
    rows = int(count.sum())
    return replace(
        data,
        outcome=outcome,
        decision=decision,
        score=score,
        attributes=attributes,
        count=read_only(count),
        moments=moments,
        features={},
        rows=RowCounts(rows_in=rows, rows_used=rows),
        notes=(),
        fingerprint=mark.hex(),
    )


def _present(attribute: Attribute, keep: BoolArray) -> Attribute:
    """Return an attribute with the groups that occur among these records."""
    codes = attribute.codes[keep]
    seen = np.unique(codes)
    place = {int(code): j for j, code in enumerate(seen)}
    unknown = None if attribute.unknown is None else place.get(attribute.unknown)
    labels = tuple(attribute.labels[j] for j in seen)
    return replace(attribute, labels=labels, codes=read_only(np.searchsorted(seen, codes)), unknown=unknown)
