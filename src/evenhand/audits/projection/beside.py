"""Answers that stand beside a projection: Welch's and Wald's tests, the group audit's test, what could be detected."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import special

from evenhand.arrays import FloatArray, IntArray
from evenhand.audits.detectable import least_by_normal
from evenhand.audits.group.samples import samples_of
from evenhand.audits.projection.criteria import Conditions
from evenhand.audits.projection.evidence import GroupTest, ProjectionEvidence, WaldTest, WelchTest
from evenhand.inference.samples import Draws
from evenhand.intake import Attribute, AuditData
from evenhand.kernels.transport.limit_law import Law, influence_covariance
from evenhand.kernels.transport.projection import cell_sums
from evenhand.metrics import resolve
from evenhand.summaries import Sums

_METRICS = {1: "tpr", 0: "fpr", None: "selection_rate"}  # the group audit's names of the rates


def other_tests(
    data: AuditData,
    conditions: Conditions,
    asked: Sequence[tuple[Attribute, int]],
    decision: IntArray,
    square: FloatArray,
    rows: float,
) -> ProjectionEvidence:
    """Run the tests an auditor would compare a projection with.

    Parameters
    ----------
    data : AuditData
        Records.
    conditions : Conditions
        The criterion.
    asked : sequence of (Attribute, int)
        Attributes with their reference.
    decision, square : ndarray, shape (records,)
        Decisions, and squared masses.
    rows : float
        N.

    Returns
    -------
    ProjectionEvidence
        ``wald`` for any number of conditions, ``welch`` for one, ``group_audit`` for the attributes asked.
    """
    place = np.where(conditions.code >= 0, 2 * conditions.code + decision, -1)
    flat = cell_sums(place, square, conditions.mass.size)
    m = conditions.phi.shape[1]
    covariance = influence_covariance(conditions.influence.reshape(-1, m), flat, rows)
    value = conditions.value / rows  # (m,)
    return ProjectionEvidence(
        wald=_wald(value, covariance, rows),
        welch=_welch(conditions, flat) if m == 1 and len(conditions.rates) == 2 else None,
        group_audit=_group_tests(data, conditions, asked) if conditions.rates and asked else None,
    )


def detectable(conditions: Conditions, law: Law, alpha: float, alternative: str) -> str:
    """Say which difference would have been shown, condition by condition (the smallest is named).

    Parameters
    ----------
    conditions : Conditions
        The criterion.
    law : Law
        With the covariance of the conditions.
    alpha : float
        Error rate.
    alternative : str
        One side or two.

    Returns
    -------
    str
    """
    reach = least_by_normal(1.0, alpha, two_sided=alternative == "two-sided")
    gaps = reach * np.sqrt(np.diag(law.covariance) / law.rows)
    if not np.any(gaps > 0):
        return ""
    k = int(np.argmin(np.where(gaps > 0, gaps, np.inf)))
    return (
        f"A difference of rates of about {gaps[k]:.2g} ({conditions.contrasts[k]}) would have been shown 4 times in 5 "
        "(before correction for multiplicity)."
    )


def _wald(value: FloatArray, covariance: FloatArray, rows: float) -> WaldTest:
    eigenvalues, vectors = np.linalg.eigh(covariance)
    keep = eigenvalues > 1e-12 * max(float(eigenvalues[-1]), 1e-300)
    if not keep.any():
        return WaldTest(statistic=math.nan, df=0, pvalue=math.nan)
    along = vectors[:, keep].T @ value
    statistic = float(rows * np.sum(along**2 / eigenvalues[keep]))
    df = int(keep.sum())
    return WaldTest(statistic=statistic, df=df, pvalue=float(special.chdtrc(float(df), statistic)))


def _welch(conditions: Conditions, square: FloatArray) -> WelchTest:
    """(r1 - r0)^2 / (r1 (1 - r1) / n1 + r0 (1 - r0) / n0) against a chi-square, as in [si2021] Table 3."""
    difference, variance = 0.0, 0.0
    for rate in conditions.rates:
        size, positive = conditions.mass[rate.cells].sum(), conditions.mass[rate.cells, 1].sum()
        r = positive / size
        difference += -r if rate.reference else r
        # Sum of squared masses over the squared total: 1 / n when masses are one.
        variance += r * (1 - r) * square.reshape(-1, 2)[rate.cells].sum() / size**2
    statistic = difference**2 / variance if variance > 0 else math.nan
    return WelchTest(
        difference=float(difference), statistic=float(statistic), pvalue=float(special.chdtrc(1.0, statistic))
    )


def _group_tests(
    data: AuditData, conditions: Conditions, asked: Sequence[tuple[Attribute, int]]
) -> tuple[GroupTest, ...]:
    found, sums = [], Sums(data)
    outcomes = list(dict.fromkeys(rate.outcome for rate in conditions.rates))
    for attribute, reference in asked:
        for outcome in outcomes:
            metric = resolve(_METRICS[outcome])[0]
            samples = samples_of(metric, sums, attribute)
            draws = Draws(n_resamples=9999, seed=0, name=f"group/{metric.name}")
            others = [g for g in range(len(attribute.labels)) if g != reference]
            test = (
                samples.test(others[0], reference, draws)
                if len(others) == 1
                else samples.test_global([*others, reference], draws)
            )
            found.append(GroupTest(attribute=attribute.name, metric=metric.name, test=test.method, pvalue=test.pvalue))
    return tuple(found)
