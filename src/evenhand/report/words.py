"""What the report says in words: what is tested, the four verdicts, the glossary."""

from __future__ import annotations

from evenhand.audits.margin import metric_of
from evenhand.audits.registry import AUDITS
from evenhand.metrics import METRICS
from evenhand.report.document import Table
from evenhand.results import AuditRun, Verdict

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
    Verdict.INCONCLUSIVE: "Neither is shown, or a difference is, but not on which side of the margin. There may "
    "still be a disparity: the finding says what is ruled out and what could have been detected.",
    Verdict.NOT_COMPUTABLE: "The value does not exist for these data; the finding says why.",
}

_GLOSSARY = (
    ("p-value", "How often chance alone would give a difference at least as large, if there were none."),
    ("p beyond", "With a margin: how often chance alone would give a value so far beyond it, if the truth lay inside."),
    (
        "p inside",
        "With a margin: how often chance alone would give a value so well inside, if the truth lay outside.",
    ),
    ("adjusted p-value", "The p-value corrected for the number of questions asked; verdicts rest on it."),
    (
        "adjusted interval",
        "The interval at the level at which the verdict was reached, corrected for the number of "
        "questions. That of a disparity lies outside the margin (or away from no difference), that of an equivalent "
        "finding inside.",
    ),
    ("error rate", "The chance, set before the audit, that any `disparity` in this report is a false alarm."),
    ("interval", "Values of the true difference that the data do not rule out at the stated level."),
    ("margin", "The largest difference the user calls negligible, set before looking."),
    ("reference", "The group that the others are compared with."),
    ("denominator", "The people a rate is a share of: for `fnr`, those with outcome 1."),
    ("permutation", "A shuffle of group labels; many of them show what chance alone gives."),
)

_FORMS = {
    "_bounds": "After a metric: all values that it can have while people's groups are unknown or only guessed. The "
    "estimate is the one nearest to no disparity; a verdict means that every one of them agrees.",
    "_em": "After a metric: estimated from group probabilities, if given the group it does not depend on the proxy.",
}


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


_ENTRY = [f"the {name}" for name, audit in AUDITS.items() if not audit.explains and name != "group"]
_EXPLAINING = [name for name, audit in AUDITS.items() if audit.explains]
HIERARCHY = (
    f"The audits divide the error rate: {_listed(_ENTRY)} audit get one share each, the group audit gets two. "
    f"{_listed(_EXPLAINING).capitalize()} explain a difference between groups: they are tested with the part that the "
    "group audit no longer needs once it has shown differences. So their many questions do not make the others "
    "harder to answer."
)

_MEASURES = {name: says for audit in AUDITS.values() for name, says in audit.measures.items() if says}


def tested(run: AuditRun) -> Table:
    """Return what each finding of a run assumes until the data show otherwise.

    Examples
    --------
    >>> import evenhand as eh
    >>> run = eh.audit(eh.datasets.planted(rows=400, rng=0), plan=eh.Plan(group={"metrics": ["fnr"]}), rng=0)
    >>> tested(run).rows[0][2]
    'Both groups have the same value of the metric, whatever else differs between them.'
    """
    ran = [result.audit for result in run.results]
    there = {
        (finding.audit, measure)
        for finding in run.findings
        for measure in (finding.measure, f"comparison with {''.join(finding.groups[-1:]).rpartition('=')[2]}")
    }
    return Table(
        title="What is assumed until the data show otherwise",
        head=("Audit", "Finding", "Without a margin", "With a margin", "Margin by default"),
        rows=tuple(
            (name, h.measure, h.null, h.margin or "no margin", h.default)
            for name, audit in AUDITS.items()
            if name in ran
            for h in audit.hypotheses
            if not h.on_request or any(audit_of == name and h.fits(measure) for audit_of, measure in there)
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
    meanings = dict(_GLOSSARY)
    for finding in run.findings:
        name = finding.measure.partition(":")[0]
        plain = metric_of(name)
        if name in _MEASURES:
            meanings[name] = _MEASURES[name]
        elif plain in METRICS:
            meanings[plain] = METRICS[plain].says
        meanings |= {form: said for form, said in _FORMS.items() if name.endswith(form)}
    return tuple(meanings.items())
