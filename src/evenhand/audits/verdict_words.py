"""The sentence that says why a finding has its verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass

from evenhand.audits.margin import is_ratio, margin_ends
from evenhand.results import Evidence, Finding, Interval, Verdict, shown_margin, shown_p

_AT_FLOOR = 1 + 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What the tests say about one finding."""

    alpha: float  # error rate over all findings
    # beyond, inside, differs: adjusted p-values against "it is at the null value or inside the margin", "it lies
    # outside the margin" and "it is at the null value"; NaN where not asked.
    beyond: float
    inside: float = math.nan
    differs: float = math.nan
    waits_for: str = ""  # the audit that has to show something before this finding is tested; empty where it is tested


def sentence(finding: Finding, evidence: Evidence, known: Judgement, interval: Interval | None) -> str:
    """Say what was seen, what is shown by it and, where nothing is, what could have been.

    Parameters
    ----------
    finding : Finding
        With its verdict.
    evidence : Evidence
        With ``fact`` and ``planning``.
    known : Judgement
        The tests.
    interval : Interval or None
        At the verdict's own level.

    Returns
    -------
    str

    Examples
    --------
    >>> finding = Finding(audit="group", measure="fnr_ratio", groups=("a", "b"), estimate=0.843, pvalue=1.0,
    ...                   margin=0.8)
    >>> known = Judgement(alpha=0.05, beyond=1.0, inside=0.12, differs=0.002)
    >>> sentence(finding, Evidence(), known, Interval(low=0.765, high=0.917, level=0.95, kind="score"))[:92]
    'The ratio 0.843 [0.765, 0.917] is shown to differ from 1 (adjusted p 0.0020), but not on whi'
    """
    if finding.verdict is Verdict.EQUIVALENT:
        said = f"It is shown to lie inside{_margin(finding)} (adjusted p {shown_p(known.inside)} for lying outside)"
        if known.differs <= known.alpha:
            said += f", although it is shown to differ from {_null(finding)} (adjusted p {shown_p(known.differs)})"
        said += "."
    elif finding.verdict is Verdict.DISPARITY:
        shown = "Chance alone would rarely give so large a value"
        if finding.measure.endswith("_bounds"):
            shown = "Every possible value is shown to be a disparity"
        if finding.margin is not None:
            shown = f"It is shown to lie beyond{_margin(finding)}"
        said = f"{shown} (adjusted p {shown_p(known.beyond)}, error rate {known.alpha:g})."
    else:
        said = _inconclusive(finding, evidence, known, interval)
    return " ".join(part.strip() for part in (evidence.fact or "", said) if part.strip())


def _inconclusive(finding: Finding, evidence: Evidence, known: Judgement, interval: Interval | None) -> str:
    planning = evidence.planning or ""
    if known.waits_for:
        first = known.waits_for
        shown = "no group difference was shown" if first == "group" else f"the {first} audit showed nothing"
        return (
            f"Not tested, because {shown}: what explains a difference is asked only when one is shown, so that "
            "these questions do not make the others harder to show. This does not show that there is no disparity."
        )
    if math.isnan(known.beyond):
        return f"It was not tested. {planning}"
    if "ruled out" not in planning:  # some audits say it with what could have been detected
        planning = f"{ruled_out(finding)} {planning}".strip()
    if finding.margin is not None and known.differs <= known.alpha:
        return (
            f"The {_quantity(finding)} {_shown(finding, interval)} is shown to differ "
            f"from {_null(finding)} (adjusted p {shown_p(known.differs)}), but not on which side of "
            f"{_end(finding):g} it lies. {planning}"
        )
    floor = _floor(finding, evidence)
    if floor:
        return f"{floor} Whether it is chance cannot be decided. {planning}"
    alone = finding.pvalue <= known.alpha
    if finding.margin is None:
        if alone:
            return (
                f"Looked at alone it would be shown (p {shown_p(finding.pvalue)}), but not among all questions asked "
                f"here (adjusted p {shown_p(known.beyond)}). That does not show that there is no disparity. {planning}"
            )
        if finding.measure.endswith("_bounds"):
            return (
                f"That every possible value is a disparity is not shown (adjusted p {shown_p(known.beyond)}), which "
                f"does not show that there is none. {planning}"
            )
        return (
            f"This is compatible with chance (adjusted p {shown_p(known.beyond)}), which does not show that there is "
            f"no disparity. {planning}"
        )
    said = f"It is not shown to lie beyond{_margin(finding)} (adjusted p {shown_p(known.beyond)}"
    said += f"; looked at alone it would be, p {shown_p(finding.pvalue)})" if alone else ")"
    if not math.isnan(known.inside):
        said += f", nor to lie inside it (adjusted p {shown_p(known.inside)})"
    return f"{said}. That does not show that there is no disparity. {planning}"


def ruled_out(finding: Finding) -> str:
    """Say which values the finding's interval excludes, at its own level and for this finding alone.

    Parameters
    ----------
    finding : Finding
        With an interval or without.

    Returns
    -------
    str
        A sentence; empty where nothing is excluded.

    Examples
    --------
    >>> around = Interval(low=-0.02, high=0.0412, level=0.95, kind="score")
    >>> ruled_out(Finding(audit="group", measure="fnr", groups=("a", "b"), estimate=0.01, interval=around))
    'Ruled out, looked at alone: differences below -0.020 or above 0.041 (95 % interval).'
    """
    interval = finding.interval
    if interval is None or finding.measure.endswith("_bounds"):
        return ""
    least = 0.0 if is_ratio(finding.measure) else -math.inf
    ends = [f"below {interval.low:.3f}"] if interval.low > least else []
    ends += [f"above {interval.high:.3f}"] if interval.high < math.inf else []
    if not ends:
        return ""
    kind = "correlation" if finding.measure.endswith("_correlation") else _quantity(finding)
    return f"Ruled out, looked at alone: {kind}s {' or '.join(ends)} ({100 * interval.level:g} % interval)."


def _floor(finding: Finding, evidence: Evidence) -> str:
    """Say that a p-value could not have been smaller, where that is so."""
    floor = evidence.pvalue_floor
    tested = finding.pvalue if evidence.difference_pvalue is None else evidence.difference_pvalue
    if floor is None or not floor > 0 or not tested <= floor * _AT_FLOOR:
        return ""
    draws = evidence.n_resamples
    if draws and not evidence.exact:
        return (
            f"The p-value {shown_p(tested)} is at the floor of its simulation: {draws:,} random draws "
            "cannot give a smaller one, and the correction for the number of questions asks for one. More draws can "
            "decide: raise `n_resamples=`."
        )
    return f"The p-value {shown_p(tested)} is the smallest that these counts can give."


def _margin(finding: Finding) -> str:
    return "" if finding.margin is None else f" the margin of {shown_margin(finding)}"


def _null(finding: Finding) -> str:
    return "1" if is_ratio(finding.measure) else "0"


def _end(finding: Finding) -> float:
    """Return the end of the margin on the estimate's side of the null value."""
    low, high = margin_ends(finding.measure, finding.margin or 0.0)
    return high if finding.estimate >= (1 if is_ratio(finding.measure) else 0) else low


def _shown(finding: Finding, interval: Interval | None) -> str:
    around = interval or finding.interval
    ends = "" if around is None else f" [{around.low:.3f}, {around.high:.3f}]"
    return f"{finding.estimate:.3f}{ends}"


def _quantity(finding: Finding) -> str:
    if is_ratio(finding.measure):
        return "ratio"
    return "difference" if finding.audit == "group" else "value"
