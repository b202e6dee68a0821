"""The words by which columns of decisions about people are usually named, and which of their labels are good ones."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.intake.dependence import words_of

# Names that are the role's own, and words that point to it when they stand in a longer name.
NAMED = {
    "outcome": {"y", "outcome", "label", "target", "class", "y true", "truth", "ground truth", "actual", "result"},
    "decision": {"d", "decision", "y pred", "y hat", "yhat", "predicted", "prediction", "pred", "decided"},
    "score": {"p", "score", "y score", "p hat", "phat", "probability", "prob", "proba", "risk score", "score raw"},
    "weight": {"sample weight", "sampling weight", "survey weight", "person weight", "fnlwgt", "pweight", "weights"},
}
WORDS = {
    "outcome": {
        "outcome", "label", "target", "actual", "truth", "default", "defaulted", "repaid", "repay", "paid", "recid",
        "recidivism", "recidivated", "reoffended", "rearrested", "income", "readmitted", "graduated", "passed", "churn",
        "fraud", "survived", "died", "diagnosis", "disease", "qualified", "success", "successful",
        "arrest", "arrested",
    },
    "decision": {
        "decision", "approved", "approval", "approve", "accepted", "accept", "granted", "grant", "hired", "hire",
        "admitted", "admit", "selected", "shortlisted", "invited", "offered", "rejected", "reject", "denied", "deny",
        "declined", "refused", "predicted", "prediction", "pred", "flagged", "detained", "released",
    },
    "score": {"score", "scores", "probability", "prob", "proba", "risk", "decile", "likelihood", "confidence", "pd"},
    "weight": {"fnlwgt", "pweight", "perwt"},
    "group": {
        "sex", "gender", "race", "ethnic", "ethnicity", "age", "agegroup", "religion", "nationality", "citizenship",
        "citizen", "country", "disability", "disabled", "marital", "married", "marriage", "foreign", "foreigner",
        "immigrant", "migrant", "pregnant", "orientation", "veteran", "caste", "minority", "hispanic", "female",
    },
}  # fmt: skip

# What nobody wishes to happen to them, as a word of a column's name or of a label.
_BAD = {
    "default", "defaulted", "recid", "recidivism", "recidivated", "reoffended", "rearrested", "denied", "deny",
    "rejected", "reject", "refused", "declined", "fraud", "bad", "failed", "fail", "failure", "died", "dead", "death",
    "disease", "sick", "arrest", "arrested", "detained", "flagged", "churn", "churned", "late", "delinquent", "charged",
    "unpaid", "dropout", "dismissed", "fired", "high", "no", "not", "readmitted",
}  # fmt: skip
_GOOD = {
    "approved", "accepted", "granted", "hired", "admitted", "selected", "invited", "offered", "released", "paid",
    "repaid", "passed", "pass", "good", "success", "successful", "graduated", "survived", "alive", "healthy", "low",
    "qualified", "yes", "current", "shortlisted",
}  # fmt: skip

# Words that stand where a value is not known; they are read as labels like any other.
MISSING_MARKS = {"?", "na", "n/a", "nan", "null", "none", "unknown", "-", "--", "missing", "not known", "unbekannt"}


def pointing(name: str, role: str) -> int:
    """Return how strongly a column's name points to a role: 2 for the role's own name, 1 for a word in it, else 0.

    Examples
    --------
    >>> pointing("Y_true", "outcome"), pointing("two_year_recid", "outcome"), pointing("two_year_recid", "decision")
    (2, 1, 0)
    """
    words = words_of(name)
    if " ".join(words) in NAMED.get(role, ()):
        return 2
    return int(any(word.rstrip("0123456789f") in WORDS[role] or word in WORDS[role] for word in words))


def is_bad(text: str) -> bool:
    """Say whether a column's name or a label names something that nobody wishes for.

    Examples
    --------
    >>> is_bad("default payment next month"), is_bad("Charged Off"), is_bad("repaid")
    (True, True, False)
    """
    return any(word in _BAD for word in words_of(text))


def good_label(labels: Sequence[str]) -> str | None:
    """Return the one of two labels that people would rather have, or None where the words do not say it.

    Examples
    --------
    >>> good_label(["Charged Off", "Fully Paid"]), good_label(["a", "b"])
    ('Fully Paid', None)
    """
    good = [label for label in labels if any(word in _GOOD for word in words_of(label)) and not is_bad(label)]
    if len(good) == 1:
        return good[0]
    better = [label for label in labels if not is_bad(label)]
    return better[0] if len(better) == 1 and len(labels) == 2 else None
