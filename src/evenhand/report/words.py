"""What the report says in words: questions, methods, the four verdicts, the glossary."""

from __future__ import annotations

from evenhand.metrics import METRICS
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
        "Group labels are permuted among the rows that the hypothesis of equal values makes exchangeable, and "
        "the difference is compared with the differences so obtained. For rates this is exact inside the "
        "metric's own denominator, whatever the base rates are. Other metrics are divided by their standard "
        "error first, so that groups may differ in size and spread; they hold their level when groups are not "
        "tiny. Rows must be independent: the same person twice, or households, break the tests."
    ),
    "projection": (
        "The people nearest to the decision boundary are moved across it until the rates are equal, at the "
        "smallest total distance. That distance is compared with its limit law under equal rates, which uses "
        "the density of people at the boundary. It needs the true distance to the boundary and enough people "
        "near it; the p-value is shown for several bandwidths in the evidence."
    ),
    "individual": (
        "Each person is moved, along directions that should not matter, to a comparable person for whom the "
        "model does worst. The mean ratio of the losses, after over before, is tested against the tolerance. "
        "The result depends on the metric that says who is comparable: the evidence shows how it was found "
        "and how much it varies. The test is valid for any fixed way of moving people; it is a lower bound on "
        "the worst case."
    ),
    "proxy": (
        "The influence function says how the gap changes when a group has a few more people of one kind. A "
        "feature's proxy score is how strongly the influence changes when that feature alone changes. A "
        "feature is said to carry part of the gap when the influence depends on it and the groups differ in "
        "it. All this rests on two fitted models, of the group and of the outcome given the features; their "
        "calibration is in the evidence."
    ),
    "tail": (
        "Each person's score is computed twice, as recorded and with the group changed. The largest "
        "differences are described by extreme-value theory: a generalised Pareto tail above a threshold where "
        "the excesses pass a test of fit. Levels beyond the data are extrapolation. Rows made by a generator "
        "are never counted as observed."
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
    "gatekeeping": ("gate-keeping in the order of the audits", ("bretz2009", "holm1979")),
    "none": ("no correction", ()),
}  # fmt: skip

VERDICT_WORDS = {
    Verdict.DISPARITY: "A difference is shown, at the stated error rate.",
    Verdict.EQUIVALENT: "The difference is shown to lie inside the margin that was set.",
    Verdict.INCONCLUSIVE: "Neither is shown. This is not good news: the finding says what could have been detected.",
    Verdict.NOT_COMPUTABLE: "The value does not exist for these data; the finding says why.",
}

_GLOSSARY = (
    ("p-value", "How often chance alone would give a difference at least as large, if there were none."),
    ("adjusted p-value", "The p-value after paying for the number of questions asked; verdicts rest on it."),
    ("error rate", "The chance, set before the audit, that any `disparity` in this report is a false alarm."),
    ("interval", "Values of the true difference that the data do not rule out at the stated level."),
    ("margin", "The largest difference the user calls negligible, set before looking."),
    ("reference", "The group that the others are compared with."),
    ("denominator", "The people a rate is a share of: for `fnr`, those with outcome 1."),
    ("permutation", "A shuffle of group labels; many of them show what chance alone gives."),
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


def glossary(run: AuditRun) -> tuple[tuple[str, str], ...]:
    """Return the words and measures that occur in a run, with what they mean.

    Parameters
    ----------
    run : AuditRun
        What was found.

    Returns
    -------
    tuple of (word, meaning)

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
