"""From raw p-values to adjusted ones and verdicts: the one place where a finding is judged.

Two families are corrected apart: the tests of "no difference" (a false `disparity` has probability at
most alpha over the whole family) and, where a margin is set, the tests of "not inside the margin" (the
same for a false `equivalent`). An audit hands over raw findings with, in their evidence,

* ``fact``: the sentence that states what was seen,
* ``equivalence_pvalue``: where a margin was set,
* ``planning``: what could have been detected, for a finding that decides nothing,
* ``adjusted_pvalue``: where the audit has adjusted some of its findings jointly ("max-t").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evenhand.inference.multiplicity import adjust, gatekeeping, share_out
from evenhand.results import AuditResult, Finding, Verdict

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def settle(results: Sequence[AuditResult], *, alpha: float, correction: str = "holm") -> tuple[AuditResult, ...]:
    """Adjust all p-values of all results as one family and give each finding its verdict.

    Parameters
    ----------
    results : sequence of AuditResult
        Raw findings; those that are `not_computable` keep their verdict and do not count.
    alpha : float
        The error rate over the family.
    correction : {"holm", "bonferroni", "bh", "gatekeeping", "max-t", "none"}
        How p-values are adjusted; see `evenhand.inference.multiplicity`. "gatekeeping" tests the audits in their
        order; "max-t" takes the audit's own joint adjustment where there is one and Holm elsewhere.

    Returns
    -------
    tuple of AuditResult
        The same results with adjusted p-values, verdicts and reasons.

    Examples
    --------
    >>> from evenhand.results import Finding
    >>> raw = Finding(audit="demo", measure="m", groups=("a", "b"), estimate=0.3, pvalue=0.001)
    >>> result = AuditResult(audit="demo", findings=(raw,), evidence=({"fact": "It differs by 0.3."},))
    >>> settle([result], alpha=0.05)[0][0].verdict
    <Verdict.DISPARITY: 'disparity'>
    """
    rows = [(f, e) for r in results for f, e in zip(r.findings, r.evidence, strict=True)]
    audit = np.array([i for i, r in enumerate(results) for _ in r.findings], dtype=int)
    raw = np.array([f.pvalue for f, _ in rows], dtype=float)
    joint = np.array([e.get("adjusted_pvalue", math.nan) for _, e in rows], dtype=float)
    adjusted = _adjusted(raw, audit, joint, correction)
    outside = np.array([e.get("equivalence_pvalue", math.nan) for _, e in rows], dtype=float)
    inside = _adjusted(outside, audit, np.full(len(rows), math.nan), correction)
    judged = iter(
        [
            _judge(f, str(e.get("fact", "")), str(e.get("planning", "")), float(p), float(q), alpha)
            for (f, e), p, q in zip(rows, adjusted, inside, strict=True)
        ]
    )
    return tuple(r.with_findings([next(judged) for _ in r.findings]) for r in results)


def _adjusted(raw: FloatArray, audit: IntArray, joint: FloatArray, correction: str) -> FloatArray:
    """Adjust one family; findings without a p-value do not count."""
    if correction == "gatekeeping":
        return gatekeeping(raw, audit)
    if correction != "max-t":
        return adjust(raw, method=correction)
    together = ~np.isnan(joint) & ~np.isnan(raw)
    # A joint value cannot be below the raw one: draws are finite.
    inner = np.where(together, np.maximum(joint, raw), adjust(np.where(together, math.nan, raw), method="holm"))
    return share_out(inner, together.astype(int))


def _judge(finding: Finding, fact: str, planning: str, p: float, q: float, alpha: float) -> Finding:
    if finding.verdict is Verdict.NOT_COMPUTABLE:
        return finding
    margin = "" if finding.margin is None else f" the margin of {finding.margin:g}"
    if q <= alpha:
        verdict = Verdict.EQUIVALENT
        decided = f"It is shown to lie inside{margin} (adjusted p {_p(q)} for lying outside)"
        decided += f", although it differs from none (adjusted p {_p(p)})." if p <= alpha else "."
    elif p <= alpha:
        verdict = Verdict.DISPARITY
        decided = f"Chance alone explains it badly (adjusted p {_p(p)}, error rate {alpha:g})."
    else:
        verdict = Verdict.INCONCLUSIVE
        decided = (
            f"This is compatible with chance (adjusted p {_p(p)}), which does not show that there is no disparity."
        )
        if not math.isnan(q):
            decided += f" Nor is it shown to lie inside{margin} (adjusted p {_p(q)})."
        decided = f"{decided} {planning}"
    reason = " ".join(part for part in (fact, decided.strip()) if part)
    return replace(finding, pvalue_adjusted=p, verdict=verdict, reason=reason)


def _p(value: float) -> str:
    return f"{value:.2g}" if value >= 1e-4 else f"{value:.0e}"
