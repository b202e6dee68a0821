"""What an individual audit can be asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from evenhand.audits.individual.region import LIMITS
from evenhand.audits.options import REQUIRED, IntervalOptions, option
from evenhand.intake import AuditData
from evenhand.similarity.metric import Similarity

OWN_ROWS = "rows of their own"
# People whom a search moves by default: it asks the model a few hundred times about each.
SEARCHED = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MapOptions(IntervalOptions):
    """How people are moved."""

    method: str = option(
        "auto",
        'How people are moved. "auto": Euler where the model has a gradient, else search.',
        words=("auto", "euler", "adaptive", "search"),
    )
    penalty: float = option(50.0, "Price of distance (lambda).", least=0)
    step: float = option(
        0.01, 'Length of an Euler step; times `steps` it is the flow time (for "adaptive" too).', above=0
    )
    steps: int = option(500, "Number of Euler steps.", least=1)
    schedule: str = option(
        "constant", "Equal steps, or the k-th divided by k to the power 2/3.", words=("constant", "decay")
    )
    flow_tolerance: float = option(1e-4, "Error allowed in one adaptive step.", above=0)
    limit: str = option(
        "groups",
        'How far people are moved. "groups": inside the observed range of the inputs and of the free directions, and '
        'along a direction learned from groups no farther than the groups\' means differ. "range": inside the observed '
        'range. "none": as far as the flow carries them, as in the paper.',
        words=LIMITS,
    )
    freeze: str | Sequence[str] = option((), "Columns that cannot change.", kind="sequence of str")
    points: int = option(17, "Values tried along each direction by the search.", least=3)
    allow_unstable: bool = option(False, "Allow Euler steps above the stability limit, to repeat a published setting.")
    batch_rows: int | None = option(
        None,
        "People moved at once; bounds memory. The answer does not depend on it, rounding apart.",
        least=1,
        recorded=False,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class IndividualOptions(MapOptions):
    """What an individual audit is asked."""

    model: Any = option(
        REQUIRED,
        "A scikit-learn estimator or pipeline, a torch module or `TorchGradient`, a `CallableGradient`, an ONNX "
        "session, or a callable that returns probabilities (numbers for a regression).",
        kind="object",
        recorded=False,
    )
    similarity: Similarity | ArrayLike | Sequence[str] | None = option(
        None,
        "Who counts as similar: a recipe of `evenhand.similarity`, a matrix, or columns that should not matter. By "
        "default the directions that predict the groups should not matter (`SensitiveSubspace`).",
        kind="Similarity, array or sequence of str, optional",
        recorded=False,
        offer=(["column"], "columns that should not matter; by default what predicts the groups"),
    )
    tolerance: float = option(
        1.25,
        "The largest mean ratio that is tolerated (delta); 1.25 is the four-fifths rule turned round.",
        above=1,
        offer=(1.25, "how much the loss of comparable people may grow"),
    )
    metric_rows: str | AuditData = option(
        "crossfit",
        "Where a metric is learned: on the other half of the rows for each half, on the audited rows themselves (which "
        "is then stated), or on rows of their own.",
        kind='{"crossfit", "shared"} or AuditData',
        words=("crossfit", "shared"),
    )
    scale: str = option(
        "auto",
        "Standardise numeric inputs before people are moved: if their scales differ, always, or never.",
        words=("auto", "standard", "none"),
    )
    loss: str | None = option(
        None,
        "By default the log loss for classes, the squared error for numbers.",
        words=("log", "squared", "absolute"),
    )
    clip: float = option(
        0.0, "Probabilities of a black box are moved into [clip, 1 - clip], which keeps losses of 0 away."
    )
    limits: str = option(
        "skewness",
        "Interval and test of the mean ratio: corrected for skewness, or as the paper prints them.",
        words=("skewness", "normal"),
    )
    refits: int = option(
        30,
        "Times a learned metric is learned again, from rows drawn again, to see how sure it is; its error is part of "
        "p-values and intervals. 0 takes the metric as known, with every direction that was learned, whether or not it "
        "is shown to predict a group: for a metric from elsewhere, or to repeat a published setting.",
        least=0,
    )
    sample_rows: int = option(
        50_000,
        "Rows from which the fair metric, where people may go and which columns moved are learned: all where there are "
        "not more, else a sample drawn by a hash of the rows' content. Ratios and error rates are those of all rows "
        "that are moved, see `attack_rows`.",
        least=8,
    )
    attack_rows: int | None = option(
        None,
        "Rows that are moved, drawn by a hash of their content: no others are looked at; intervals and tests know "
        f"that they are a sample. By default all where the model has a gradient, and {SEARCHED:,} where people are "
        "moved by search.",
        least=8,
    )
    examples: int = option(
        0, "Pairs with the largest ratio to list as rows; none by default, since rows are about persons.", least=0
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class IndividualSetting(IndividualOptions):
    """What an individual audit works with: its options, and what the data decide."""

    freeze: tuple[str, ...]
    level: float

    def attacked(self, rows: int) -> int:
        """Return how many of so many rows are moved."""
        most = self.attack_rows or (SEARCHED if self.method == "search" else rows)
        return min(most, rows)

    @property
    def learned_on(self) -> str:
        """Where the metric is learned, in a word."""
        return self.metric_rows if isinstance(self.metric_rows, str) else OWN_ROWS
