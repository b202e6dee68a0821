"""What a projection audit can be asked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import FloatArray
from evenhand.audits.options import AuditOptions, option
from evenhand.audits.projection.boundary import Distances, as_distances
from evenhand.audits.projection.criteria import CRITERIA, Criterion
from evenhand.errors import UsageError, near_matches
from evenhand.inference.pvalues import ALTERNATIVES


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectionOptions(AuditOptions):
    """What a projection audit is asked."""

    criterion: str | Criterion = option(
        "equal_opportunity",
        '``"equal_opportunity"``, ``"predictive_equality"``, ``"equalized_odds"``, ``"statistical_parity"``, or a '
        "`Criterion` of one's own.",
        offer=("equalized_odds", 'or "equal_opportunity", "predictive_equality", "statistical_parity"'),
    )
    model: Any = option(
        None,
        "A fitted classifier, or a callable from features to scores; the distance to its boundary is found over "
        "`data.features`. See `evenhand.models`.",
        kind="object, optional",
        recorded=False,
    )
    distance: ArrayLike | str | None = option(
        None,
        'The distances themselves, or the feature column that holds them. ``"threshold"`` takes score minus threshold, '
        "with a warning.",
        kind="array-like or str, optional",
        offer=("column", "a feature that holds distances to the boundary, in place of a model"),
    )
    attribute: str | Sequence[str] | None = option(
        None, "One attribute; or several, tested at once. By default each attribute gives a finding."
    )
    reference: Mapping[str, str] | str | None = option(
        None,
        "The group others are compared with; the largest by default. It matters only with `epsilon` or one side.",
        kind="mapping of str to str, or str, optional",
    )
    alternative: str = option(
        "two-sided",
        "One-sided: other groups have rates above (below) the reference's by more than epsilon.",
        words=ALTERNATIVES,
    )
    epsilon: float | Sequence[float] = option(
        0.0,
        "Tolerated difference of rates under the null hypothesis: one number, or one for each condition in the order "
        "of the evidence's `conditions`.",
        kind="float or sequence of float",
        within=(0, 1),
        offer=(0.01, "difference of rates that is tolerated"),
    )
    bandwidth: float | None = option(
        None, "Of the Gaussian kernel, in units of the distance; Silverman's rule by default.", above=0
    )
    distances: Distances | Mapping[str, Any] | None = option(
        None,
        "Norm, scale, categorical columns, cost by group: how the distance is measured.",
        kind="Distances or mapping, optional",
        recorded=False,
    )
    rows: bool = option(False, "Put the records that would have to change into the evidence.")
    points: bool = option(
        False, "Put the features of these records, before and after the change, into the evidence; needs `model`."
    )
    beside: bool = option(
        True, "Put the group audit's tests of the same rates into the evidence; False saves their time."
    )

    def check(self) -> None:
        """Refuse an unknown criterion, a tolerance out of range and an unknown key of `distances`."""
        if isinstance(self.criterion, str) and self.criterion not in CRITERIA:
            raise UsageError(f"There is no criterion `{self.criterion}`.{near_matches(self.criterion, CRITERIA)}")
        if not isinstance(self.epsilon, int | float) and not all(0 <= e < 1 for e in self.epsilon):
            raise UsageError(f"`epsilon` must lie between 0 and 1 for each condition; got {list(self.epsilon)}.")
        as_distances(self.distances)

    @property
    def name(self) -> str:
        """What is tested."""
        return self.criterion if isinstance(self.criterion, str) else self.criterion.name


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Band:
    """How far below and above 0 each condition may lie; infinite for a side that is free."""

    below: FloatArray  # (m,)
    above: FloatArray  # (m,)

    @property
    def even(self) -> bool:
        """Whether all conditions have one tolerance."""
        return len(set(self.below)) == len(set(self.above)) == 1

    @property
    def closed(self) -> bool:
        """Whether no condition has a tolerance."""
        return not self.below.any() and not self.above.any()

    @property
    def least(self) -> dict[str, float]:
        """The smallest tolerance on each side, which the limit law is taken at: it bounds the others."""
        return {"below": float(self.below.min()), "above": float(self.above.min())}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectionSetting(ProjectionOptions):
    """What a projection audit works with: its options, and what the data decide."""

    attribute: tuple[str, ...] | None
    reference: Mapping[str, str]
    epsilon: tuple[float, ...]  # one number, or one for each condition

    @property
    def margin(self) -> float | None:
        """The largest tolerance; None where there is none."""
        return max(self.epsilon) or None

    def band(self, conditions: Sequence[str]) -> Band:
        """Return how far below and above 0 each condition may lie under the null hypothesis."""
        if len(self.epsilon) not in (1, len(conditions)):
            raise UsageError(
                f"`epsilon` has {len(self.epsilon)} values and `{self.name}` has {len(conditions)} conditions here: "
                f"{'; '.join(conditions)}. Give one value, or one for each condition."
            )
        allowed = np.broadcast_to(np.asarray(self.epsilon, dtype=np.float64), (len(conditions),))
        free = np.full(len(conditions), math.inf)
        return Band(
            below=free if self.alternative == "greater" else allowed,
            above=free if self.alternative == "less" else allowed,
        )
