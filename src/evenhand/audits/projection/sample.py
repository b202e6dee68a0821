"""The records a projection audit works on, and the questions it asks of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evenhand.arrays import FloatArray, IntArray
from evenhand.audits.projection.boundary import Boundary
from evenhand.audits.reference import references
from evenhand.errors import DataError
from evenhand.intake import Attribute, AuditData

Asked = list[tuple[Attribute, int]]  # attributes of one finding, each with the code of its reference group


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """The records as arrays: decision, distance, mass."""

    decision: IntArray
    distance: FloatArray
    mass: FloatArray  # sums to the number of rows
    square: FloatArray  # sum of squared masses of each record's rows
    count: IntArray
    weighted: bool  # with sampling weights
    single: bool  # every record is one row of mass one
    boundary: Boundary

    @property
    def rows(self) -> float:
        """N."""
        return float(self.count.sum())


def questions(
    data: AuditData, attribute: str | Sequence[str] | None, reference: Mapping[str, str] | str | None
) -> tuple[list[Asked], dict[str, str]]:
    """Return, for each finding, its attributes with the code of their reference group.

    Parameters
    ----------
    data : AuditData
        Records.
    attribute : str, sequence of str or None
        One attribute; several for one joint finding; None for one finding each.
    reference : mapping, str or None
        The user's choice of reference groups; the largest group elsewhere.

    Returns
    -------
    asked : list
        One list of (Attribute, code) for each finding.
    chosen : dict
        Attribute name to reference label.
    """
    if not data.attributes:
        raise DataError("No group column was given. Name at least one in `groups`.")
    if attribute is None:
        chosen = [[a] for a in data.attributes]
    elif isinstance(attribute, str):
        chosen = [[data.attribute(attribute)]]
    else:
        chosen = [[data.attribute(a) for a in dict.fromkeys(attribute)]]
    audited = list({a.name: a for some in chosen for a in some}.values())
    for each in audited:
        if len(each.labels) < 2:
            raise DataError(f"Attribute `{each.name}` has {len(each.labels)} group; at least 2 are needed.")
    labels = references(data, reference, audited)
    return [[(a, a.labels.index(labels[a.name])) for a in some] for some in chosen], labels
