"""The audits, one row each: what is asked, needed, tested and cited; everything that lists audits reads it here.

An audit is a folder of this room (``audits/<name>/``, with ``audit_<name>`` in its ``__init__`` and ``<Name>Options``
in its ``options.py``), loaded when it is asked for, and a row below.

The entry audits ask questions of their own and begin with a share of the error. The explaining audits ask where a
difference between groups comes from, which is a question only once a difference is shown: they begin with none and
open as findings of the group audit are rejected, so that their many tests do not tax the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from evenhand.audits import needs
from evenhand.intake import AuditData
from evenhand.results import AuditResult, Evidence

if TYPE_CHECKING:
    from evenhand.audits.options import AuditOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """The null hypothesis of one kind of finding."""

    measure: str  # of which findings
    null: str  # what is assumed until the data show otherwise, without a margin
    margin: str = ""  # the same with a margin; empty where there is none
    default: str = "none"  # the margin by default
    on_request: bool = False  # whether it is listed only where a finding of this measure is there
    sources: tuple[str, ...] = ()  # keys of the report's bibliography, cited where it is on request and there

    def fits(self, measure: str) -> bool:
        """Say whether a finding's measure is the one that it names, alone or at the end."""
        return measure == self.measure or measure.endswith(f"_{self.measure}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """One audit."""

    name: str  # in plans, on the command line and in findings
    # question, method: what it asks and how it answers, as the report says it.
    question: str
    method: str
    sources: tuple[str, ...]  # keys of the report's bibliography
    needs: tuple[needs.Need, ...]  # what it cannot run without, in the order in which it is asked
    hypotheses: tuple[Hypothesis, ...]  # what its findings test
    # What its findings are called, with the meaning where no metric of the catalogue has the name; empty for an audit
    # of the catalogue's metrics.
    measures: Mapping[str, str] = field(default_factory=dict)
    share: float = 1.0  # of the error, before it is divided by the shares of the run
    explains: bool = False  # whether it explains a difference between groups and waits until one is shown
    # Options that make it run where no outcome of two values is known.
    without_outcome: Mapping[str, str] = field(default_factory=dict)
    # Whether it searches many questions and adjusts for all of them itself, also those that give no finding; it then
    # takes its share of the error as a whole.
    joint: bool = False
    # Whether it draws rows of its own, by the `draw_ahead` of its `stated.py`, on the first walk over rows that stay
    # where they are.
    draws_ahead: bool = False
    evidence: tuple[str, ...] = ()  # classes of its `evidence.py` that its evidence is made of, the fullest first

    @property
    def of_decisions(self) -> bool:
        """Whether it works on decisions or scores, which a model makes where the data have none."""
        return not {needs.decisions_or_scores, needs.decisions_or_probabilities}.isdisjoint(self.needs)

    @property
    def function(self) -> Callable[..., AuditResult]:
        """The public function."""
        made: Callable[..., AuditResult] = getattr(import_module(f"{__package__}.{self.name}"), f"audit_{self.name}")
        return made

    def draw_ahead(self, data: AuditData, asked: AuditOptions) -> None:
        """Let the first walk over rows that stay where they are draw those that the audit will ask for."""
        if self.draws_ahead:
            import_module(f"{__package__}.{self.name}.stated").draw_ahead(data, asked)

    @property
    def options(self) -> type[AuditOptions]:
        """The class that declares its options."""
        module = import_module(f"{__package__}.{self.name}.options")
        made: type[AuditOptions] = getattr(module, f"{self.name.title()}Options")
        return made

    @property
    def kinds_of_evidence(self) -> tuple[type[Evidence], ...]:
        """The classes of its evidence, for who reads it back or writes its schema."""
        module = import_module(f"{__package__}.{self.name}.evidence") if self.evidence else None
        return tuple(getattr(module, name) for name in self.evidence) or (Evidence,)

    def lacks(self, data: AuditData, model: Any, options: Mapping[str, Any]) -> str:
        """Say what it needs and is not given: empty, or the end of a sentence that begins with the audit.

        Examples
        --------
        >>> import evenhand as eh
        >>> AUDITS["tail"].lacks(eh.datasets.planted(rows=100, rng=0), None, {})
        'needs a model and none was given'
        """
        given = needs.Given(data=data, model=model, options=options)
        return next((why for need in self.needs if (why := need(given))), "")


_ROWS = (
    Audit(
        name="group",
        evidence=("GroupEvidence",),
        question="Do error and selection rates, or other metrics, differ between groups?",
        needs=(needs.groups_or_numbers, needs.decisions_or_scores),
        share=2.0,
        hypotheses=(
            Hypothesis(
                measure="difference or ratio of two groups",
                null="Both groups have the same value of the metric, whatever else differs between them.",
                margin="The difference (or the ratio) lies inside the margin.",
            ),
            Hypothesis(
                measure="comparison with highest",
                null="No group has a higher rate than this one, whichever group that is.",
                margin="The rate is at least so much of every other group's (or at most so much below it).",
                on_request=True,
            ),
            Hypothesis(
                measure="comparison with rest",
                null="The group has the same value of the metric as all other groups together.",
                margin="The difference (or the ratio) lies inside the margin.",
                on_request=True,
            ),
            Hypothesis(
                measure="comparison with overall",
                null="The group has the same value of the metric as everybody, so the same as all others.",
                margin="The difference from everybody (or the ratio) lies inside the margin, at the group's share.",
                on_request=True,
            ),
            Hypothesis(
                measure="aod_abs",
                null="Both groups have the same tpr, and both have the same fpr.",
                margin="The mean of the absolute differences of tpr and fpr is at most the margin.",
                on_request=True,
            ),
            Hypothesis(
                measure="global",
                null="All groups of the attribute have the same value of the metric.",
                margin="No two groups differ by more than the margin.",
            ),
            Hypothesis(
                measure="conditional",
                null="Within strata both groups have the same value, on the weighted mean over the strata.",
                margin="The conditional difference (or ratio) lies inside the margin.",
                on_request=True,
            ),
            Hypothesis(
                measure="bounds",
                null="Some assignment of the people of unknown or guessed group to groups makes both values the same.",
                margin="Some assignment of these people makes the difference (or the ratio) lie inside the margin.",
                on_request=True,
                sources=("imbens2004", "kallus2022"),
            ),
            Hypothesis(
                measure="em",
                null="Both guessed groups have the same value, given that it depends on the proxy through the group "
                "alone.",
                margin="Given that, the difference (or the ratio) lies inside the margin.",
                on_request=True,
                sources=("mccartan2024",),
            ),
            Hypothesis(
                measure="correlation",
                null="The metric's value per row is not correlated with the attribute.",
            ),
        ),
        method=(
            "Two rates are compared by an exact test: how often tables at least as extreme would occur if both groups "
            "had one rate, at the rate for which that is most often. The interval holds the differences (or ratios) "
            "that the same test does not reject. Other metrics are divided by their standard error first, so that "
            "groups may differ in size and spread, and compared with what chance gives: by permuting group labels, or "
            "by a limit law where its error is negligible. With strata a group is compared with the reference within "
            "strata only: rates by permuting labels within strata, all permutations summed, and the score interval "
            "over strata. The evidence of each finding names its test. Rows must be independent: the same person "
            "twice, or households, break the tests."
        ),
        sources=("diciccio2020", "chung2013", "delong1988", "miettinen1985", "mantel1959", "phipson2010"),
    ),
    Audit(
        name="projection",
        evidence=("ProjectionEvidence",),
        question="How far are the data from ones on which the decisions would be group-fair, and who would have to "
        "change?",
        needs=(needs.distances, needs.rows, needs.groups, needs.independent_people, needs.decisions_or_features),
        explains=True,
        hypotheses=(
            Hypothesis(
                measure="every criterion",
                null="The rates that the criterion names are equal in all groups: no one needs to change.",
            ),
        ),
        measures={
            "equal_opportunity": "equal rates of decision 1 among outcome 1; the estimate is the mean distance moved",
            "predictive_equality": "equal rates of decision 1 among outcome 0; the estimate is the mean distance moved",
            "equalized_odds": "both of the above; the estimate is the mean distance moved",
            "statistical_parity": "equal rates of decision 1; the estimate is the mean distance moved",
        },
        without_outcome={"criterion": "statistical_parity"},
        method=(
            "The people nearest to the decision boundary are moved across it until the rates are equal, at the "
            "smallest total distance. That distance is compared with its limit law under equal rates, which uses the "
            "density of people at the boundary. It needs the true distance to the boundary and enough people near it; "
            "the p-value is shown for several bandwidths in the evidence. Equal opportunity is about the same rates "
            "as `fnr` in the group audit, and predictive equality as `fpr`: the two audits ask it in different ways, "
            "and one may show what the other does not."
        ),
        sources=("si2021",),
    ),
    Audit(
        name="individual",
        evidence=("IndividualEvidence",),
        question="Are similar people treated similarly?",
        needs=(needs.model, needs.rows, needs.groups, needs.independent_people, needs.features, needs.outcome),
        hypotheses=(
            Hypothesis(
                measure="loss_ratio, error_ratio",
                null="For a comparable person the model's loss (or error rate) is no larger than for the person.",
                margin="It is no larger than the tolerated multiple.",
                default="1.25 times",
            ),
        ),
        measures={
            "loss_ratio": "mean ratio of the model's loss for a comparable person to its loss for the person",
            "error_ratio": "error rate among comparable people over the error rate among the people themselves",
        },
        method=(
            "Each person is moved, along directions that should not matter, to a comparable person for whom the model "
            "does worst. The mean ratio of the losses, after over before, is tested against the tolerance. The result "
            "depends on the metric that says who is comparable: the evidence shows how it was found and how much it "
            "varies. The test is valid for any fixed way of moving people; it is a lower bound on the worst case."
        ),
        sources=("maity2021",),
    ),
    Audit(
        name="proxy",
        draws_ahead=True,
        evidence=("FeatureEvidence", "NamedFeature", "GapEvidence", "Evidence"),
        question="Which features carry the disparity?",
        needs=(needs.rows, needs.groups, needs.independent_people, needs.features, needs.decisions_or_probabilities),
        explains=True,
        hypotheses=(
            Hypothesis(
                measure="the gap",
                null="Group and reference have the same value of the measure.",
            ),
            Hypothesis(
                measure="a feature",
                null="There is no gap, or no part of it goes through the feature.",
                margin="There is no gap, or at most the margin of it goes through the feature.",
                default="0.01 of the gap's scale",
            ),
        ),
        measures=dict.fromkeys(("fnr", "fpr", "sp", "fdr", "accuracy", "cal", "da"), ""),
        without_outcome={"measure": "sp"},
        method=(
            "A feature carries that part of the gap which would go if the feature alone were distributed in the group "
            "as in the reference, everything else being as it is. It carries nothing when the model and the outcome "
            "do not depend on it, and when both groups have the same distribution of it. A feature is a disparity "
            "when it is shown to carry more than the margin of a gap that is itself shown. The proxy score in the "
            "evidence says how strongly a person's influence on the gap changes when the feature alone changes: what "
            "it could do, not what it does. All this rests on a fitted model of the outcome given the features; its "
            "calibration is in the evidence. Where the model gives scores, the gap is one of mean scores, not of "
            "decisions: it can differ from the group audit's difference of the same name, even in its sign."
        ),
        sources=("wang2019",),
    ),
    Audit(
        name="tail",
        evidence=("LevelEvidence", "MeanEvidence", "DifferenceEvidence"),
        question="How badly is the worst-treated person disadvantaged for group membership alone?",
        needs=(
            needs.model,
            needs.rows,
            needs.groups,
            needs.independent_people,
            needs.features,
            needs.no_sampling_weights,
            needs.recorded_group,
        ),
        hypotheses=(
            Hypothesis(
                measure="ecd",
                null="The worst change of score at the horizon is the same in both groups.",
                margin="The two worst changes differ by no more than the margin.",
                default="0.01 of score",
            ),
            Hypothesis(
                measure="return_level",
                null="The worst change of score at the horizon is not above 0.",
                margin="It is not above the margin.",
                default="0.01 of score",
            ),
            Hypothesis(
                measure="acd",
                null="The mean change of score is 0.",
                margin="It lies inside the margin.",
                default="0.01 of score",
                on_request=True,
            ),
            Hypothesis(
                measure="cvar",
                null="The mean of the worst share of changes of score is not above 0.",
                margin="It is not above the margin.",
                default="0.01 of score",
                on_request=True,
            ),
            Hypothesis(
                measure="acd_difference",
                null="The mean change of score is the same in both groups.",
                margin="The two means differ by no more than the margin.",
                default="0.01 of score",
                on_request=True,
            ),
            Hypothesis(
                measure="cvar_difference",
                null="The mean of the worst share of changes of score is the same in both groups.",
                margin="The two means differ by no more than the margin.",
                default="0.01 of score",
                on_request=True,
            ),
        ),
        measures={
            "ecd": "difference between groups of the worst change of score at one horizon",
            "return_level": "change of score exceeded once in the stated number of decisions",
            "acd": "mean change of score",
            "acd_difference": "difference between groups of the mean change of score",
            "cvar": "mean of the worst share of changes of score",
            "cvar_difference": "difference between groups of the mean of the worst share of changes of score",
        },
        method=(
            "Each person's score is computed twice, as recorded and with the group changed. How large a change one "
            "person in so many exceeds is counted among the rows, exactly and whatever the form of the tail; so are "
            "all verdicts, and they need more than a margin. Beyond the rows a level is given only where a "
            "generalised Pareto tail passes a test of fit and does not depend on its threshold, or where a logistic "
            "model has a closed form. Rows made by a generator are never counted as observed."
        ),
        sources=("monjezi2025", "hosking1987"),
    ),
    Audit(
        name="scan",
        evidence=("ScanEvidence", "Evidence"),
        question="Which combinations of attributes are treated differently from everybody else?",
        needs=(
            needs.several_attributes,
            needs.decisions_or_scores,
            needs.independent_people,
            needs.no_sampling_weights,
        ),
        joint=True,
        hypotheses=(
            Hypothesis(
                measure="a subgroup",
                null="The subgroup has the same value of the metric as everybody else.",
            ),
        ),
        method=(
            "All subgroups that a few conditions describe are compared with everybody else. Each has its own exact "
            "p-value. Random permutations, the same for all subgroups, say how small the smallest of these p-values "
            "is by chance; the adjusted p-value is compared with that, so the error rate is over everything that was "
            "searched. Subgroups too small to be shown do not make the others harder to show. Of the subgroups "
            "that are shown, those are listed that differ beyond the others: one that differs only through a shorter "
            "or longer description is counted under that one. Intervals hold for all subgroups together."
        ),
        sources=("westfall1993", "tarone1990"),
    ),
)

AUDITS: Mapping[str, Audit] = {row.name: row for row in _ROWS}
