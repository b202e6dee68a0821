"""From raw p-values to adjusted ones and verdicts: the one place where a finding is judged.

A finding is about one quantity with one null value, 0 for a difference and 1 for a ratio.

=============  ====================================================  ===============================================
family         without a margin                                      with a margin
=============  ====================================================  ===============================================
`disparity`    ``pvalue``: it equals the null value                  ``pvalue``: it lies inside the margin
`equivalent`   never                                                 ``equivalence_pvalue``: it lies outside
only words     never                                                 ``difference_pvalue``: it equals the null value
=============  ====================================================  ===============================================

Each family is corrected apart, so that a false `disparity` has probability at most alpha over the whole run, and so
has a false `equivalent`. An audit hands over raw findings with, in their evidence,

* ``fact``: the sentence that states what was seen,
* ``equivalence_pvalue``, ``difference_pvalue``: where a margin is set,
* ``planning``: what could have been detected, for a finding that decides nothing,
* ``pvalue_floor``, ``n_resamples``: the smallest p-value its test could give, and how many random draws it made,
* ``adjusted_pvalue``: where the audit has adjusted some of its findings jointly ("max-t"),

and, where it can, a function from a level to the interval at that level (`AuditResult.interval_at`): the interval at
the level at which the finding was judged is written into the evidence as ``verdict_interval``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from evenhand.arrays import BoolArray, FloatArray
from evenhand.audits.registry import AUDITS
from evenhand.audits.verdict_words import Judgement, sentence
from evenhand.inference.multiplicity import adjust, gatekeeping, share_out
from evenhand.results import AuditResult, Evidence, Finding, Interval, Verdict

R = TypeVar("R", bound=AuditResult)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Family:
    """Raw and adjusted p-values of one question asked of all findings, and how many were asked."""

    raw: FloatArray
    adjusted: FloatArray
    asked: int

    def level(self, i: int, alpha: float, critical: float | None = None) -> float:
        """Return the level at which one finding was tested: its raw p-value is at most this just when it is shown.

        `critical` is the level of a single question where the audit adjusted for all it searched.
        """
        raw, adjusted = float(self.raw[i]), float(self.adjusted[i])
        if math.isnan(adjusted):
            return math.nan
        own = alpha * raw / adjusted if adjusted > 0 else 0.0
        least = alpha / max(self.asked, 1) if critical is None else critical
        return max(own, least) if adjusted <= alpha else own


@dataclass(frozen=True, slots=True, kw_only=True)
class OneSided:
    """Intervals of a ratio that is asked only whether it is larger than a tolerance.

    Called with a level it returns the interval from a lower limit upwards, which shows a value beyond the tolerance;
    `inside` returns the one up to an upper limit, which shows a value inside it.

    Examples
    --------
    >>> limits = OneSided(lower=lambda tail: 1.1, upper=lambda tail: 1.2, kind="exact, one-sided")
    >>> limits(0.95).high, limits.inside(0.95).high
    (inf, 1.2)
    """

    # lower, upper: from the chance that the limit is wrong to the limit.
    lower: Callable[[float], float]
    upper: Callable[[float], float]
    kind: str  # how the limits are made

    def __call__(self, level: float) -> Interval:
        """Return the interval from the lower limit upwards."""
        return Interval(low=self.lower(1 - level), high=math.inf, level=level, kind=self.kind)

    def inside(self, level: float) -> Interval:
        """Return the interval up to the upper limit."""
        return Interval(low=0.0, high=self.upper(1 - level), level=level, kind=self.kind)


def settle(results: Sequence[R], *, alpha: float, correction: str = "holm") -> tuple[R, ...]:
    """Adjust all p-values of all results as one family and give each finding its verdict.

    Parameters
    ----------
    results : sequence of AuditResult
        Raw findings; those that are `not_computable` keep their verdict and do not count.
    alpha : float
        The error rate over the family.
    correction : {"holm", "bonferroni", "bh", "gatekeeping", "max-t", "none"}
        How p-values are adjusted; see `evenhand.inference.multiplicity`. "gatekeeping" follows
        `hierarchy`; "max-t" takes the audit's own joint adjustment where there is one and
        Holm elsewhere.

    Returns
    -------
    tuple of AuditResult
        The same results with adjusted p-values, verdicts and reasons, and in the evidence the adjusted p-values of
        the other two questions and the interval at the verdict's own level.

    Examples
    --------
    >>> from evenhand.results import Evidence, Finding
    >>> raw = Finding(audit="demo", measure="m", groups=("a", "b"), estimate=0.3, pvalue=0.001)
    >>> result = AuditResult(audit="demo", findings=(raw,), evidence=(Evidence(fact="It differs by 0.3."),))
    >>> settle([result], alpha=0.05)[0][0].verdict
    <Verdict.DISPARITY: 'disparity'>
    """
    rows = [(f, e) for r in results for f, e in zip(r.findings, r.evidence, strict=True)]
    audit = [r.audit for r in results for _ in r.findings]
    makers = [m for r in results for m in (r.interval_at or (None,) * len(r))]
    beyond = _family([f.pvalue for f, _ in rows], audit, correction, [e.adjusted_pvalue for _, e in rows])
    inside = _family([e.equivalence_pvalue for _, e in rows], audit, correction)
    differs = _family([e.difference_pvalue for _, e in rows], audit, correction)
    closed = _closed(beyond, audit, alpha) if correction == "gatekeeping" else {}
    judged: list[tuple[Finding, Evidence]] = []
    for i, (finding, evidence) in enumerate(rows):
        if finding.verdict is Verdict.NOT_COMPUTABLE:
            judged.append((finding, evidence))
            continue
        known = Judgement(
            alpha=alpha,
            beyond=float(beyond.adjusted[i]),
            inside=float(inside.adjusted[i]),
            differs=float(differs.adjusted[i]),
            waits_for=closed.get(audit[i], ""),
        )
        verdict = _verdict(known)
        levels = [family.level(i, alpha, evidence.critical_pvalue) for family in (beyond, inside, differs)]
        level = _level(verdict, known, levels, one_sided=isinstance(makers[i], OneSided))
        if verdict is Verdict.INCONCLUSIVE and differs.raw[i] > 1 - level:
            known = replace(known, differs=math.nan)  # said only where the interval shown beside it says so too
        shown = replace(finding, pvalue_adjusted=known.beyond, verdict=verdict)
        interval = _interval(shown, makers[i], level, evidence)
        written = replace(
            evidence,
            equivalence_pvalue_adjusted=_where_asked(evidence.equivalence_pvalue, inside.adjusted[i]),
            difference_pvalue_adjusted=_where_asked(evidence.difference_pvalue, differs.adjusted[i]),
            verdict_interval=interval,
        )
        judged.append((replace(shown, reason=sentence(shown, written, known, interval)), written))
    rest = iter(judged)
    parts = [[next(rest) for _ in r.findings] for r in results]
    return tuple(
        replace(r, findings=tuple(f for f, _ in part), evidence=tuple(e for _, e in part))
        for r, part in zip(results, parts, strict=True)
    )


def hierarchy(audits: Collection[str]) -> tuple[dict[str, float], dict[str, Sequence[str]]]:
    """Return which audits begin with which share of the error, and which of them opens which others.

    Parameters
    ----------
    audits : collection of str
        Those with something to test. Without a group audit the first that explains takes its place: it, too, tests
        a difference between groups. An audit of another name begins with a share.

    Returns
    -------
    shares : dict of str to float
        They sum to 1.
    opens : dict of str to sequence of str

    Examples
    --------
    >>> hierarchy(["group", "individual", "tail", "proxy"])
    ({'group': 0.5, 'individual': 0.25, 'tail': 0.25}, {'group': ('proxy',)})
    >>> hierarchy(["proxy"])
    ({'proxy': 1.0}, {})
    """
    explaining = [name for name, row in AUDITS.items() if row.explains and name in audits]
    first = "group" if "group" in audits else explaining.pop(0) if explaining else ""
    begins = {name: share for name, share in even_shares(audits).items() if name not in explaining}
    if first:
        begins[first] = AUDITS["group"].share
    total = sum(begins.values())
    return {name: share / total for name, share in begins.items()}, {first: tuple(explaining)} if explaining else {}


def even_shares(audits: Collection[str]) -> dict[str, float]:
    """Return shares for tests that wait for no other, such as those of equivalence: the group audit's counts twice.

    Parameters
    ----------
    audits : collection of str
        Those with something to test.

    Returns
    -------
    dict of str to float

    Examples
    --------
    >>> even_shares(["group", "proxy"])
    {'group': 2.0, 'proxy': 1.0}
    """
    return {name: AUDITS[name].share if name in AUDITS else 1.0 for name in audits}


def _where_asked(raw: float | None, adjusted: float) -> float | None:
    return None if raw is None else float(adjusted)


def _family(
    values: Sequence[float | None],
    audit: Sequence[str],
    correction: str,
    joint: Sequence[float | None] | None = None,
) -> _Family:
    """Adjust one family; findings without a p-value do not count. Only `disparity` has gates and joint values."""
    raw = np.array([math.nan if v is None else v for v in values], dtype=np.float64)
    asked = int(np.sum(~np.isnan(raw)))
    own = np.array([name in AUDITS and AUDITS[name].joint for name in audit], dtype=bool) & ~np.isnan(raw)
    if joint is not None and own.any():
        return _with_joint_audits(raw, own, audit, correction, joint)
    if correction == "gatekeeping":
        present = list(dict.fromkeys(a for a, p in zip(audit, raw, strict=True) if not math.isnan(p)))
        shares, opens = (even_shares(present), {}) if joint is None else hierarchy(present)
        return _Family(raw=raw, adjusted=gatekeeping(raw, audit, shares=shares, opens=opens), asked=asked)
    if correction != "max-t":
        return _Family(raw=raw, adjusted=adjust(raw, method=correction), asked=asked)
    known = np.array([math.nan if v is None else v for v in joint or [None] * len(raw)], dtype=np.float64)
    together = ~np.isnan(known) & ~np.isnan(raw)
    # A joint value cannot be below the raw one: draws are finite.
    inner = np.where(together, np.maximum(known, raw), adjust(np.where(together, math.nan, raw), method="holm"))
    return _Family(raw=raw, adjusted=share_out(inner, together.astype(int)), asked=asked)


def _with_joint_audits(
    raw: FloatArray, own: BoolArray, audit: Sequence[str], correction: str, joint: Sequence[float | None]
) -> _Family:
    """Give each audit that adjusts for all it searched its share of the error, and the other audits what is left.

    Its findings are few of the questions it asked, so what it does not use is not handed on.
    """
    rest = _family([math.nan if mine else p for p, mine in zip(raw, own, strict=True)], audit, correction, joint)
    adjusted = rest.adjusted.copy()
    searched = np.array([math.nan if v is None else v for v in joint], dtype=np.float64)
    if correction == "none":
        adjusted[own] = raw[own]
        return _Family(raw=raw, adjusted=adjusted, asked=int(np.sum(~np.isnan(raw))))
    present = list(dict.fromkeys(a for a, p in zip(audit, raw, strict=True) if not math.isnan(p)))
    shares, _ = hierarchy(present)
    left = 1 - sum(shares[name] for name in {a for a, mine in zip(audit, own, strict=True) if mine})
    part = np.array([shares.get(a, 1.0) for a in audit])
    adjusted[own] = np.minimum(np.maximum(searched[own], raw[own]) / part[own], 1.0)
    adjusted[~own] = np.minimum(adjusted[~own] / max(left, 1e-300), 1.0)
    return _Family(raw=raw, adjusted=adjusted, asked=int(np.sum(~np.isnan(raw))))


def _closed(family: _Family, audit: Sequence[str], alpha: float) -> dict[str, str]:
    """Return the audits whose gate has not opened, with the one they wait for."""
    present = {a for a, p in zip(audit, family.raw, strict=True) if not math.isnan(p)}
    _, opens = hierarchy([a for a in dict.fromkeys(audit) if a in present])
    shown = {a for a, p in zip(audit, family.adjusted, strict=True) if p <= alpha}
    return {name: first for first, names in opens.items() if first not in shown for name in names}


def _verdict(known: Judgement) -> Verdict:
    if known.inside <= known.alpha:
        return Verdict.EQUIVALENT
    return Verdict.DISPARITY if known.beyond <= known.alpha else Verdict.INCONCLUSIVE


def _level(verdict: Verdict, known: Judgement, levels: Sequence[float], *, one_sided: bool) -> float:
    """Return the coverage of the interval that says what the verdict says; NaN where nothing was tested."""
    beyond, inside, differs = levels
    if verdict is Verdict.EQUIVALENT:
        return 1 - inside if one_sided else 1 - 2 * inside  # two one-sided tests
    if verdict is Verdict.DISPARITY or one_sided:
        return 1 - beyond
    if known.waits_for:
        return math.nan
    # Wide enough to reach into the margin and out of it.
    return 1 - min((x for x in (beyond, 2 * inside, differs) if not math.isnan(x)), default=math.nan)


def _interval(finding: Finding, maker: Any, level: float, evidence: Evidence) -> Interval | None:
    drawn = evidence.n_resamples and not evidence.exact
    if drawn and 1 - level < (evidence.pvalue_floor or 0.0):
        return None  # so few draws have no interval at that level
    plain = finding.interval
    if plain is None or not 0 < level < 1:
        return None
    if isinstance(maker, OneSided) and finding.verdict is Verdict.EQUIVALENT:
        return maker.inside(level)
    if math.isclose(level, plain.level, rel_tol=0, abs_tol=1e-12):
        return plain
    made: Interval | None = None if maker is None else maker(level)
    return made
