"""What a proxy audit can be asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evenhand.errors import UsageError
from evenhand.kernels.influence.nuisance import LEARNERS


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyOptions:
    """What a proxy audit was asked; see `audit_proxy`."""

    measure: str
    alignment_penalty: float
    nuisance: str
    soft: bool
    pairs: bool
    blocks: Mapping[str, tuple[str, ...]]
    categorical: tuple[str, ...]
    folds: int
    l2: float
    interactions: bool
    max_rows: int
    step: float
    max_steps: int
    tolerance: float
    patience: int
    n_resamples: int
    margin: float | None
    alpha: float
    level: float
    correction: str


def check(options: ProxyOptions) -> ProxyOptions:
    """Refuse options that make no sense for any data."""
    for name in ("alpha", "level"):
        if not 0 < getattr(options, name) < 1:
            raise UsageError(f"`{name}` must lie between 0 and 1; got {getattr(options, name)}.")
    if options.margin is not None and not 0 < options.margin < 1:
        raise UsageError(
            f"`margin` must be a part of the gap between 0 and 1, such as 0.01 for one point; got {options.margin}. "
            "With 0 any part counts."
        )
    for name, least in (("folds", 2), ("max_rows", 100), ("max_steps", 0), ("patience", 0), ("n_resamples", 99)):
        number = getattr(options, name)
        if isinstance(number, bool) or int(number) != number or number < least:
            raise UsageError(f"`{name}` must be a whole number of at least {least}; got {number}.")
    if not (options.step > 0 and options.l2 > 0 and options.tolerance >= 0):
        raise UsageError("`step` and `l2` must be above 0 and `tolerance` at least 0.")
    if options.nuisance not in LEARNERS and options.nuisance.islower():
        raise UsageError(f"`nuisance` is `{options.nuisance}`; allowed: `logistic`, `boosting`, or an estimator.")
    return options
