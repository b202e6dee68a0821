"""What an individual audit can be asked, and the check of what it was asked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from evenhand.audits.individual.moving import MapOptions
from evenhand.audits.individual.region import LIMITS
from evenhand.errors import UsageError
from evenhand.inference.multiplicity import METHODS

OWN_ROWS = "rows of their own"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndividualOptions:
    """What an individual audit was asked; see `audit_individual`."""

    tolerance: float
    alpha: float
    level: float
    correction: str
    metric_rows: str
    refits: int
    examples: int
    scale: str
    loss: str | None
    clip: float
    limits: str


def check_options(options: IndividualOptions, how: MapOptions) -> None:
    """Raise an error for an option that cannot be meant.

    Parameters
    ----------
    options, how
        As the user gave them.
    """
    for name, value, allowed in (
        ("method", how.method, ("auto", "euler", "adaptive", "search")),
        ("limit", how.limit, LIMITS),
        ("schedule", how.schedule, ("constant", "decay")),
        ("scale", options.scale, ("auto", "standard", "none")),
        ("limits", options.limits, ("skewness", "normal")),
        ("correction", options.correction, tuple(METHODS)),
    ):
        if value not in allowed:
            raise UsageError(f"`{name}` is `{value}`; allowed: {', '.join(f'`{a}`' for a in allowed)}.")
    if options.metric_rows not in ("crossfit", "shared", OWN_ROWS):
        raise UsageError(
            f"`metric_rows` is `{options.metric_rows}`; allowed: `crossfit`, `shared`, or an `AuditData` of other rows."
        )
    numbers: list[tuple[str, Any, int | None, bool]] = [
        ("tolerance", options.tolerance, 1, False), ("penalty", how.penalty, None, False), ("step", how.step, 0, False),
        ("steps", how.steps, 0, True), ("points", how.points, 2, True), ("workers", how.workers, 0, True),
        ("flow_tolerance", how.flow_tolerance, 0, False), ("refits", options.refits, None, True),
        ("examples", options.examples, None, True),
    ]  # fmt: skip
    for name, number, least, whole in numbers:
        size = _size(number, whole)
        if not math.isfinite(size) or (size < 0 if least is None else size <= least):
            wanted = "at least 0" if least is None else f"above {least}"
            raise UsageError(f"`{name}` must be a {'whole ' if whole else ''}number {wanted}; got {number!r}.")
    for name, number in (("alpha", options.alpha), ("level", options.level)):
        if not 0 < _size(number, whole=False) < 1:
            raise UsageError(f"`{name}` must lie between 0 and 1; got {number!r}.")
    if how.batch_rows is not None and how.batch_rows < 1:
        raise UsageError(f"`batch_rows` must be at least 1; got {how.batch_rows}.")


def _size(value: Any, whole: bool) -> float:
    return float(value) if isinstance(value, Integral if whole else Real) else math.nan
