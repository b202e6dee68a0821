"""What a projection audit was asked, and the records it works on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.audits.projection.boundary import Boundary
from evenhand.errors import DataError, UsageError, near_matches
from evenhand.intake import Attribute, AuditData

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

Asked = list[tuple[Attribute, int]]  # attributes of one finding, each with the code of its reference group


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectionOptions:
    """What a projection audit was asked; see `audit_projection`."""

    criterion: str
    attribute: tuple[str, ...] | None
    reference: Mapping[str, str]
    alternative: str
    epsilon: float
    alpha: float
    correction: str
    bandwidth: float | None
    rows: bool
    beside: bool

    @property
    def band(self) -> tuple[float, float]:
        """How far below and above 0 the conditions may lie under the null hypothesis."""
        below = math.inf if self.alternative == "greater" else self.epsilon
        above = math.inf if self.alternative == "less" else self.epsilon
        return below, above


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
    names = list(dict.fromkeys(a.name for some in chosen for a in some))
    if isinstance(reference, str):
        if len(names) != 1:
            raise UsageError(
                f"`reference` is the single label `{reference}` but there are {len(names)} attributes. Give a mapping."
            )
        reference = {names[0]: reference}
    for name in reference or {}:
        if name not in names:
            raise UsageError(
                f"`reference` names the attribute `{name}`, which is not audited.{near_matches(name, names)}"
            )
    labels: dict[str, str] = {}
    asked = []
    for some in chosen:
        pairs = []
        for each in some:
            if len(each.labels) < 2:
                raise DataError(f"Attribute `{each.name}` has {len(each.labels)} group; at least 2 are needed.")
            label = (reference or {}).get(each.name)
            if label is not None and label not in each.labels:
                raise UsageError(
                    f"Reference `{each.name}={label}` is not a group in the data.{near_matches(label, each.labels)}"
                )
            sizes = np.bincount(each.codes, weights=data.count, minlength=len(each.labels))
            code = int(np.argmax(sizes)) if label is None else each.labels.index(label)
            labels[each.name] = each.labels[code]
            pairs.append((each, code))
        asked.append(pairs)
    return asked, labels
