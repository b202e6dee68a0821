"""What a watch is asked, checked once when it is made, and the name by which a state file knows it again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from evenhand.audits.margin import check_reach, parse_margin
from evenhand.errors import UsageError, near_matches
from evenhand.inference.limits import Margin
from evenhand.inference.pvalues import ALTERNATIVES
from evenhand.metrics import Metric, resolve
from evenhand.results import plain


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchPlan:
    """What a watch is asked."""

    metrics: tuple[str, ...] | None = None  # None: a few that the columns allow
    reference: Mapping[str, str] = field(default_factory=dict)
    margin: float | str | None = None
    alternative: str = "two-sided"
    alpha: float = 0.05
    baseline: int = 0  # so many batches at the beginning are what later ones are compared with
    data: Mapping[str, Any] = field(default_factory=dict)  # columns and how to read them, as for `evenhand.read`

    def __post_init__(self) -> None:
        if self.alternative not in ALTERNATIVES:
            raise UsageError(
                f"`alternative` is `{self.alternative}`.{near_matches(self.alternative, ALTERNATIVES)} "
                f"Allowed: {', '.join(f'`{word}`' for word in ALTERNATIVES)}."
            )
        if not 0 < self.alpha < 1:
            raise UsageError(f"`alpha=` is {self.alpha:g}; it must lie between 0 and 1, such as 0.05.")
        if isinstance(self.baseline, bool) or not isinstance(self.baseline, int) or self.baseline < 0:
            raise UsageError(
                f"`baseline` is {self.baseline!r}; it must be the number of batches at the beginning that later ones "
                "are compared with, such as 3, or 0."
            )
        margin = self.tolerated
        for metric in () if self.metrics is None else resolve(self.metrics):
            check_watched(metric)
            if metric.kind == "rate":
                check_reach(margin, metric.name, metric.high - metric.low)
            if margin is not None and metric.compare and margin.ratio != (metric.compare == "ratio"):
                raise UsageError(
                    f"Metric `{metric.name}` is a {metric.compare} and the margin `{self.margin}` is not. Give one "
                    f"for a {metric.compare}, or watch `{metric.per_group}`."
                )

    @property
    def tolerated(self) -> Margin | None:
        """The margin, read."""
        return parse_margin(self.margin)

    @property
    def hash(self) -> str:
        """A short name of the plan: another plan has another one."""
        text = json.dumps(self.to_dict(), sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data."""
        return {f.name: plain(getattr(self, f.name)) for f in fields(self)}

    @classmethod
    def of(cls, asked: Mapping[str, Any]) -> WatchPlan:
        """Make a plan of options by name, or say which option is not known."""
        known = [f.name for f in fields(cls)]
        for name in asked:
            if name not in known:
                raise UsageError(f"`{name}` is not an option of a watch.{near_matches(name, known)}")
        given = {name: value for name, value in asked.items() if value is not None}
        metrics = given.get("metrics")
        if metrics is not None:
            given["metrics"] = tuple(m.name for m in resolve(metrics))
        if isinstance(given.get("reference"), str):
            raise UsageError(
                f'`reference=` is `{given["reference"]}`. Give the group of each attribute, such as {{"sex": "Male"}}.'
            )
        return cls(**given)


def check_watched(metric: Metric) -> None:
    """Refuse a metric that is no mean of values with known ends."""
    instead = {
        "f1": "`precision` and `tpr`", "balanced_accuracy": "`tpr` and `tnr`", "aod": "`tpr` and `fpr`",
        "aod_abs": "`tpr` and `fpr`", "auc": "`tpr` and `fpr`", "log_loss": "`brier`", "mse": "`brier`",
        "calibration_error": "`mean_residual`",
    }  # fmt: skip
    if metric.name in instead or metric.kind not in ("rate", "mean"):
        raise UsageError(
            f"Metric `{metric.name}` cannot be watched: evidence over time needs a rate, or a mean of values with "
            f"known ends. Watch {instead.get(metric.name, '`error_rate`')} instead."
        )
