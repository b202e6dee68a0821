"""What a proxy audit can be asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evenhand.audits.options import IntervalOptions, Rules, option
from evenhand.errors import UsageError
from evenhand.kernels.influence.functionals import Functional, functional
from evenhand.kernels.influence.nuisance import LEARNERS

# Records averaged over: where a changed feature needs no new prediction, and where a model is asked for each.
AVERAGED, ASKED = 50_000, 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyOptions(IntervalOptions):
    """What a proxy audit is asked."""

    measure: str | Mapping[str, float] = option(
        "fpr",
        "``fpr``, ``fnr``, ``fdr``, ``sp`` (statistical parity), ``accuracy``, ``cal`` (calibration error), ``da`` "
        '(distribution alignment), or a combination such as ``{"fpr": 0.5, "fnr": 0.5}``.',
        offer=("fnr", 'or "fpr", "fdr", "sp", "accuracy", "cal", "da"'),
    )
    attribute: str | None = option(None, "The attribute audited; by default all.", recorded=False)
    reference: Mapping[str, str] | str | None = option(
        None,
        "The group the others are compared with; by default the largest.",
        kind="mapping of str to str, or str, optional",
        recorded=False,
    )
    model: Any = option(
        None,
        "The audited model, asked for predictions at changed features. Without it they come from a surrogate learned "
        "from the scores.",
        kind="object with predict_proba or predict, or callable, optional",
        recorded=False,
    )
    nuisance: Any = option(
        "logistic",
        "Learner of P(Y|X,S) and P(S|X).",
        kind='{"logistic", "boosting"} or estimator',
        words=LEARNERS,
    )
    soft: bool | None = option(
        None, "Audit scores (True) or decisions (False); by default scores where they are probabilities."
    )
    margin: float | None = option(
        0.01,  # one point of a rate
        "The largest part of the gap that counts as negligible: a feature is a `disparity` when it is shown to carry "
        "more, and `equivalent` when it is shown to carry less. With None or 0 any part counts. The gap itself is "
        "tested for any difference.",
        kind="float or None",
        offer=(0.01, "a part of the gap that counts as negligible"),
    )
    pairs: bool = option(
        False,
        "Score pairs of features too; in the evidence of the gap.",
        offer=(True, "score pairs of features too"),
    )
    blocks: Mapping[str, Sequence[str]] | None = option(
        None, "Columns that are one feature, such as the dummies of a one-hot coding."
    )
    categorical: Sequence[str] = option((), "Numeric columns that are codes of categories.")
    alignment_penalty: float = option(0.0, "Lambda of ``da``.")
    folds: int = option(5, "Folds for cross-fitting; the first also judges the descent.", least=2)
    l2: float = option(1.0, "Penalty of the logistic nuisance models.", above=0)
    interactions: bool = option(True, "Give the logistic outcome model the products of features it is shown to miss.")
    max_rows: int | None = option(
        None,
        "Records that proxy scores and means by level average over; the intervals know about it. By default 10,000 "
        "where a model must be asked about each of them at every value of every feature, else 50,000.",
        least=100,
    )
    sample_rows: int = option(
        50_000,
        "Different rows of each group from which nuisance models are learned; a group that has not more is taken as a "
        "whole. The gap and the shares of values are always those of all rows.",
        least=1000,
    )
    step: float = option(0.1, "First step of the descent; see `evenhand.kernels.influence.descent.descend`.", above=0)
    max_steps: int = option(200, "At most so many steps of the descent.", least=0)
    tolerance: float = option(1e-3, "The descent ends when the held-out gap is within this.", least=0)
    patience: int = option(6, "Halvings of a step that does not help before the descent gives up.", least=0)
    n_resamples: int = option(
        9999,
        "Random permutations behind the gap's p-value, where it is neither exact nor by a limit law; a small one gets "
        "more.",
        least=99,
    )

    def check(self) -> None:
        """Refuse an unknown measure and a margin that is no part of the gap."""
        functional(self.measure, self.alignment_penalty)
        if self.margin and not 0 < self.margin < 1:
            raise UsageError(
                f"`margin` must be a part of the gap between 0 and 1, such as 0.01 for one point; got {self.margin}. "
                "With 0 any part counts."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxySetting(ProxyOptions):
    """What a proxy audit works with: its options, and what the data and other options decide."""

    form: Functional = field(metadata={"rules": Rules(recorded=False)})
    soft: bool
    blocks: Mapping[str, tuple[str, ...]]
    categorical: tuple[str, ...]
    max_rows: int
    level: float
    seed: int

    @property
    def learner(self) -> str:
        """The name of what learns the nuisance models."""
        return self.nuisance if isinstance(self.nuisance, str) else type(self.nuisance).__name__
