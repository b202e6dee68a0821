"""The design of a comparison from numbers assumed before there are data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from evenhand.errors import UsageError
from evenhand.inference.power.designs import Aucs, Binomials, CalibrationErrors, Design, Means, Pair

_ANY = (-math.inf, math.inf)
_BASE, _SELECTION, _SPREAD = "base_rate", "selection_rate", "spread"
_SAYS = {
    _BASE: "the share of rows with outcome 1",
    _SELECTION: "the share of rows with decision 1",
    _SPREAD: "the standard deviation of one row's value",
}
# Denominators of rates, as cells decision + 2 outcome: which assumed rate gives their share of the rows.
_INSIDE = {(2, 3): (_BASE, True), (0, 1): (_BASE, False), (1, 3): (_SELECTION, True), (0, 2): (_SELECTION, False)}


# What is assumed of each group, by name: `base_rate`, `selection_rate`, and the `spread` of one row's value.
Assumptions = Mapping[str, Pair | None]


def assumed_design(
    name: str, kind: str, denominator: Sequence[int], assumed: Assumptions, *, f1: bool = False, limits: Pair = _ANY
) -> Design:
    """Return the design of a metric whose rates and spreads are assumed.

    Parameters
    ----------
    name : str
        The metric's, for messages.
    kind : {"rate", "balanced", "mean", "auc", "calibration", "table", "rows"}
        Which inference serves it.
    denominator : sequence of int
        For a rate: the cells it counts among, numbered decision + 2 outcome.
    assumed : mapping of str to tuple of float
        Rates and spreads by name, a number for each group.
    f1 : bool
        Whether the rate is shown as F1.
    limits : tuple of float
        The metric's range.

    Examples
    --------
    >>> assumed_design("fnr", "rate", (2, 3), {"base_rate": (0.4, 0.3)}).shares
    ((0.4,), (0.3,))
    """

    def need(which: str) -> Pair:
        pair = assumed.get(which)
        if pair is None:
            raise UsageError(f"Metric `{name}` needs `{which}`, {_SAYS[which]}.")
        return pair

    if kind == "rate" and f1:
        one, two = (b + s for b, s in zip(need(_BASE), need(_SELECTION), strict=True))
        return Binomials(((one,), (two,)), f1=True)
    if kind == "rate":
        cells = tuple(sorted(denominator))
        if cells not in _INSIDE:
            return Binomials(((1.0,), (1.0,)))
        which, chosen = _INSIDE[cells]
        one, two = (p if chosen else 1 - p for p in need(which))
        return Binomials(((one,), (two,)))
    if kind == "balanced":
        one, two = need(_BASE)
        return Binomials(((one, 1 - one), (two, 1 - two)), (0.5, 0.5))
    if kind == "auc":
        return Aucs(need(_BASE))
    if kind == "calibration":
        # Without more knowledge scores say nothing inside a bin: the outcome's own spread, the largest there is.
        one, two = assumed.get(_SPREAD) or (math.sqrt(b * (1 - b)) for b in need(_BASE))
        return CalibrationErrors((one, two))
    return Means(need(_SPREAD), *limits)
