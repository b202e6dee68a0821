"""What a tail audit can be asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.audits.margin import parse_margin
from evenhand.audits.options import REQUIRED, IntervalOptions, option
from evenhand.errors import UsageError, near_matches
from evenhand.models.counterfactual import Flip

MEASURES = ("ecd", "acd", "cvar")


@dataclass(frozen=True, slots=True, kw_only=True)
class TailOptions(IntervalOptions):
    """What a tail audit is asked."""

    model: Any = option(
        REQUIRED,
        "A fitted estimator or pipeline, an ONNX file, a torch module, or a callable from columns to scores.",
        kind="object",
        recorded=False,
    )
    attribute: str | None = option(
        None,
        "The protected attribute; by default each one.",
        recorded=False,
        offer=("column", "only this one"),
    )
    flip: Flip | None = option(
        None,
        "Columns that change together when the attribute does; by default the column of the attribute's name. A "
        "mapping gives each label's values; a function takes columns and a label.",
        kind="str, sequence of str, mapping or callable, optional",
        recorded=False,
    )
    reference: Mapping[str, str] | str | None = option(
        None,
        "The group others are compared with; the largest by default.",
        kind="mapping of str to str, or str, optional",
    )
    measures: str | Sequence[str] = option(
        ("ecd",),
        'What is tested: "ecd" the worst changes at a horizon, "acd" the mean change, "cvar" the mean of the worst '
        "share of changes. Each asks about both groups and their difference and costs error budget, so one is the "
        "default.",
        kind="sequence of str",
        offer=(["ecd", "acd", "cvar"], "also the mean change, and the mean of the worst share of changes"),
    )
    cvar_share: float = option(
        0.05, "The share of people, those with the largest changes, whose mean change `cvar` is.", between=(0, 1)
    )
    horizon: float | None = option(
        None,
        "Decisions over which worst cases are compared, at least 10. By default the longest of 10, 20, 50, 100, 200, "
        "500 and 1000 for which the smaller group of a pair has ten times as many rows, so that counting decides.",
        within=(10, 1e12),
        offer=(1000, "decisions over which worst cases are compared; by default as far as the rows reach"),
    )
    k: int | None = option(
        None,
        "How many of the largest values make the tail; by default the exponentiality test chooses.",
        within=(20, 501),
    )
    favourable: str = option("high", "Which scores people would rather have.", words=("high", "low"))
    positive: Any = option(
        None,
        "The class whose probability is the score; by default the one that counts as 1 in the data.",
        kind="object, optional",
        recorded=False,
    )
    score_range: tuple[float, float] | None = option(
        None, "Smallest and largest possible score; (0, 1) for probabilities, else no limit."
    )
    margin: float | str | None = option(
        "default",
        "A change (and a difference of changes) that counts as negligible: a verdict needs more. By default one point, "
        "0.01, of a score from 0 to 1, and of another score one hundredth of the range that its middle nine tenths "
        "cover; None or 0 asks for any change at all.",
        kind='float, "default" or None',
        offer=(0.01, "a change of score that counts as negligible; 0 for none"),
    )
    printed: bool = option(False, "Judge exponentiality by the limits as printed instead of the calibrated ones.")
    generator: Any = option(
        "light",
        "What makes more rows of a group whose own do not suffice; an object has `fit` and `sample`. Generated rows "
        "never enter an estimate or a test, they are reported apart.",
        kind='{"light", "ctgan", "tvae", "none"} or object',
        words=("light", "ctgan", "tvae", "none"),
    )
    generate: str = option(
        "suggest",
        'What generated rows are for: "suggest" what a longer look might show where a group has no level, or '
        '"printed": Algorithm 1 of [monjezi2025] as printed, for every group, in which made-up rows count as people. '
        "It is shown apart, and no estimate, interval or verdict rests on it.",
        words=("suggest", "printed"),
    )
    time_limit: float = option(60.0, "Seconds that generating may take per group.", above=0)
    n_resamples: int = option(
        999,
        "Samples of the fitted law that check it, at most 199 of them; and the sign flips and permutations of the "
        "means, up to ten times as many. The other verdicts use no random draws.",
        least=99,
    )

    @property
    def asked_for(self) -> tuple[str, ...]:
        """The measures, each once."""
        return tuple(dict.fromkeys([self.measures] if isinstance(self.measures, str) else self.measures))

    def check(self) -> None:
        """Refuse a margin that is not understood, or a ratio, and measures that are not known."""
        for name in self.asked_for:
            if name not in MEASURES:
                raise UsageError(f"`measures` holds `{name}`.{near_matches(str(name), MEASURES)}")
        if not self.asked_for:
            raise UsageError("`measures` is empty. Name at least one of `ecd`, `acd` and `cvar`.")
        if self.generate == "printed" and isinstance(self.generator, str) and self.generator == "none":
            raise UsageError(
                "`generate` is `printed` and `generator` is `none`: Algorithm 1 adds rows that a generator makes. Name "
                "a generator, such as `light`, or leave `generate` out."
            )
        if self.generate == "printed" and "ecd" not in self.asked_for:
            raise UsageError(
                "`generate` is `printed` and `measures` lacks `ecd`: Algorithm 1 is about the worst changes. Ask for "
                "`ecd`, or leave `generate` out."
            )
        bounds = None if self.margin in ("default", None, 0) else parse_margin(self.margin)
        if bounds is not None and bounds.ratio:
            raise UsageError(f"The tail audit takes a difference as margin, such as 0.05; got `{self.margin}`.")


@dataclass(frozen=True, slots=True, kw_only=True)
class TailSetting(TailOptions):
    """What a tail audit works with: its options, and what the data and other options decide."""

    reference: Mapping[str, str]
    score_range: tuple[float, float]
    margin: float | None
    level: float
    seed: int

    @property
    def span(self) -> float:
        """Length of the score's range: the largest change a flip can make."""
        return self.score_range[1] - self.score_range[0]
