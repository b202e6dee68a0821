"""What the report says in words: questions, methods, the four verdicts, the glossary."""

from __future__ import annotations

from evenhand.audits.hypotheses import HYPOTHESES
from evenhand.metrics import METRICS
from evenhand.report.document import Table
from evenhand.results import AuditRun, Verdict

QUESTIONS = {
    "group": "Do error and selection rates, or other metrics, differ between groups?",
    "projection": "How far are the data from ones on which the decisions would be group-fair, and who would have to "
    "change?",
    "individual": "Are similar people treated similarly?",
    "proxy": "Which features carry the disparity?",
    "tail": "How badly is the worst-treated person disadvantaged for group membership alone?",
}

METHODS = {
    "group": (
        "Two rates are compared by an exact test: how often tables at least as extreme would occur if both groups had "
        "one rate, at the rate for which that is most often. The interval holds the differences (or ratios) that the "
        "same test does not reject. Other metrics are divided by their standard error first, so that groups may "
        "differ in size and spread, and compared with what chance gives: by permuting group labels, or by a limit law "
        "where its error is negligible. The evidence of each finding names its test. Rows must be independent: the "
        "same person twice, or households, break the tests."
    ),
    "projection": (
        "The people nearest to the decision boundary are moved across it until the rates are equal, at the "
        "smallest total distance. That distance is compared with its limit law under equal rates, which uses "
        "the density of people at the boundary. It needs the true distance to the boundary and enough people "
        "near it; the p-value is shown for several bandwidths in the evidence. Equal opportunity is about the "
        "same rates as `fnr` in the group audit, and predictive equality as `fpr`: the two audits ask it in different "
        "ways, and one may show what the other does not."
    ),
    "individual": (
        "Each person is moved, along directions that should not matter, to a comparable person for whom the "
        "model does worst. The mean ratio of the losses, after over before, is tested against the tolerance. "
        "The result depends on the metric that says who is comparable: the evidence shows how it was found "
        "and how much it varies. The test is valid for any fixed way of moving people; it is a lower bound on "
        "the worst case."
    ),
    "proxy": (
        "A feature carries that part of the gap which would go if the feature alone were distributed in the group "
        "as in the reference, everything else being as it is. It carries nothing when the model and the outcome do "
        "not depend on it, and when both groups have the same distribution of it. A feature is a disparity when it "
        "is shown to carry more than the margin of a gap that is itself shown. The proxy score in the evidence says "
        "how strongly a person's influence on the gap changes when the feature alone changes: what it could do, not "
        "what it does. All this rests on a fitted model of the outcome given the features; its calibration is in the "
        "evidence. Where the model gives scores, the gap is one of mean scores, not of decisions: it can differ from "
        "the group audit's difference of the same name, even in its sign."
    ),
    "tail": (
        "Each person's score is computed twice, as recorded and with the group changed. How large a change one "
        "person in so many exceeds is counted among the rows, exactly and whatever the form of the tail; so are all "
        "verdicts, and they need more than a margin. Beyond the rows a level is given only where a generalised Pareto "
        "tail passes a test of fit and does not depend on its threshold, or where a logistic model has a closed form. "
        "Rows made by a generator are never counted as observed."
    ),
}

SOURCES_OF = {
    "group": ("diciccio2020", "chung2013", "delong1988", "miettinen1985", "phipson2010"),
    "projection": ("si2021",),
    "individual": ("maity2021",),
    "proxy": ("wang2019",),
    "tail": ("monjezi2025", "hosking1987"),
}

CORRECTIONS = {
    "holm": ("Holm's step-down correction", ("holm1979",)),
    "bonferroni": ("Bonferroni's correction", ()),
    "bh": ("the Benjamini-Hochberg correction, which limits the share of false findings among those shown",
           ("benjamini1995",)),
    "max-t": ("the joint law of the largest statistic in the group audit, and Holm's correction elsewhere",
              ("hothorn2008", "holm1979")),
    "gatekeeping": ("gate-keeping", ("bretz2009", "holm1979")),
    "none": ("no correction", ()),
}  # fmt: skip

VERDICT_WORDS = {
    Verdict.DISPARITY: "At the stated error rate the value is shown to lie beyond the margin that was set or, without "
    "one, to differ from none.",
    Verdict.EQUIVALENT: "The value is shown to lie inside the margin: the one that was set or the audit's own, which "
    "each finding names.",
    Verdict.INCONCLUSIVE: "Neither is shown, or a difference is, but not on which side of the margin. This is not good "
    "news: the finding says what could have been detected.",
    Verdict.NOT_COMPUTABLE: "The value does not exist for these data; the finding says why.",
}

_GLOSSARY = (
    ("p-value", "How often chance alone would give a difference at least as large, if there were none."),
    ("p beyond", "With a margin: how often chance alone would give a value so far beyond it, if the truth lay inside."),
    (
        "p inside",
        "With a margin: how often chance alone would give a value so well inside, if the truth lay outside.",
    ),
    ("adjusted p-value", "The p-value after paying for the number of questions asked; verdicts rest on it."),
    (
        "adjusted interval",
        "The interval at the level at which the verdict was reached, after paying for the number of "
        "questions. A disparity's misses the margin (or the value of no difference), an equivalent one lies inside.",
    ),
    ("error rate", "The chance, set before the audit, that any `disparity` in this report is a false alarm."),
    ("interval", "Values of the true difference that the data do not rule out at the stated level."),
    ("margin", "The largest difference the user calls negligible, set before looking."),
    ("reference", "The group that the others are compared with."),
    ("denominator", "The people a rate is a share of: for `fnr`, those with outcome 1."),
    ("permutation", "A shuffle of group labels; many of them show what chance alone gives."),
)
HIERARCHY = (
    "The group audit begins with twice the share of the error that the individual and the tail audit have. Projection "
    "and proxy explain a difference between groups: they begin with none, and are tested with what the group audit "
    "releases as it shows differences. So their many questions do not weaken the first one."
)

_MEASURES = {
    "loss_ratio": "mean ratio of the model's loss for a comparable person to its loss for the person",
    "error_ratio": "error rate among comparable people over the error rate among the people themselves",
    "ecd": "difference between groups of the worst change of score at one horizon",
    "return_level": "change of score exceeded once in the stated number of decisions",
    "equal_opportunity": "equal rates of decision 1 among outcome 1; the estimate is the mean distance moved",
    "predictive_equality": "equal rates of decision 1 among outcome 0; the estimate is the mean distance moved",
    "equalized_odds": "both of the above; the estimate is the mean distance moved",
    "statistical_parity": "equal rates of decision 1; the estimate is the mean distance moved",
}


def tested(run: AuditRun) -> Table:
    """Return what each finding of a run assumes until the data speak against it.

    Examples
    --------
    >>> import evenhand as eh
    >>> run = eh.audit(eh.datasets.planted(rows=400, rng=0), plan=eh.Plan(group={"metrics": ["fnr"]}), rng=0)
    >>> tested(run).rows[0][2]
    'Both groups have the same value of the metric, whatever else differs between them.'
    """
    ran = [result.audit for result in run.results]
    return Table(
        title="What is assumed until the data speak against it",
        head=("Audit", "Finding", "Without a margin", "With a margin", "Margin by default"),
        rows=tuple(
            (h.audit, h.measure, h.null, h.margin or "no margin", h.default) for h in HYPOTHESES if h.audit in ran
        ),
    )


def glossary(run: AuditRun) -> tuple[tuple[str, str], ...]:
    """Return the words and measures that occur in a run, with what they mean.

    Examples
    --------
    >>> import evenhand as eh
    >>> run = eh.audit(eh.datasets.planted(rows=400, rng=0), plan=eh.Plan(group={"metrics": ["fnr"]}), rng=0)
    >>> glossary(run)[-1]
    ('fnr', 'share decided 0 among outcome 1')
    """
    found = dict(_GLOSSARY)
    for finding in run.findings:
        name = finding.measure.partition(":")[0]
        plain = name.removesuffix("_global").removesuffix("_ratio")
        if name in _MEASURES:
            found[name] = _MEASURES[name]
        elif plain in METRICS:
            found[plain] = METRICS[plain].says
    return tuple(found.items())
