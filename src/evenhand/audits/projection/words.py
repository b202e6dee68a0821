"""The finding of a projection audit and the evidence behind it, in numbers and words.

Beside the projection stand Welch's and Wald's tests, the group audit's test, and what could be detected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import special

from evenhand.arrays import FloatArray, IntArray
from evenhand.audits.detectable import least_by_normal
from evenhand.audits.finding import Raw, not_computable
from evenhand.audits.group.samples import samples_of
from evenhand.audits.projection.boundary import Asked, Sample
from evenhand.audits.projection.changes import (
    Laws,
    Solved,
    describe_changes,
    moved_share,
    projected_rates,
    sentence,
    signed_histogram,
)
from evenhand.audits.projection.criteria import Conditions
from evenhand.audits.projection.evidence import (
    AtBandwidth,
    Changes,
    GroupTest,
    MovedRows,
    ProjectedRate,
    ProjectionEvidence,
    WaldTest,
    WelchTest,
)
from evenhand.audits.projection.options import Band, ProjectionSetting
from evenhand.audits.projection.points import feature_changes, find_moves, moved_points
from evenhand.inference.samples import Draws
from evenhand.intake.data import AuditData
from evenhand.kernels.transport.limit_law import Law
from evenhand.kernels.transport.projection import cell_sums
from evenhand.metrics import resolve
from evenhand.results import Finding
from evenhand.summaries import Sums

_METRICS = {1: "tpr", 0: "fpr", None: "selection_rate"}  # the group audit's names of the rates


def tell(data: AuditData, solved: Solved, sample: Sample, options: ProjectionSetting, asked: Asked) -> Raw:
    """Put the finding and its evidence together."""
    conditions, move, laws, n = solved.conditions, solved.move, solved.laws, sample.rows
    band = options.band(conditions.contrasts)
    details = replace(
        _other_tests(data, solved, asked if options.beside else [], sample),
        test="optimal-transport projection, limit law",
        conditions=tuple(conditions.contrasts),
        tolerances=options.epsilon if len(options.epsilon) > 1 else None,
        values=tuple((conditions.value / n).tolist()),
        warnings=tuple(sample.boundary.warnings),
        distance=dict(sample.boundary.described),
    )
    law = laws[0][2] if laws else None
    if math.isnan(move.cost):
        problem = "People at an infinite distance from the boundary make the criterion unreachable."
        return untestable(options, asked, problem, details, conditions.groups)
    if law is None or law.weights.size == 0:
        return untestable(options, asked, _no_law(laws), details, conditions.groups)
    records, share = moved_share(solved, sample)
    changes = describe_changes(conditions, sample, records, share)
    after = projected_rates(conditions, move.moved)
    spread = _spread(solved, band)
    moves = find_moves(sample.boundary, records)
    evidence = replace(
        details,
        statistic=move.cost,
        gap=move.gap,
        weights=tuple(law.weights.tolist()),
        threshold=law.threshold(options.alpha, **band.least),
        bandwidth=laws[0][1],
        bandwidth_sensitivity=spread,
        changes=changes,
        projected=after,
        figure=signed_histogram(
            conditions, solved.cells, max(4 * laws[0][1], 2 * float(np.nan_to_num(changes.largest_distance)))
        ),
        planning=_detectable(conditions, law, options.alpha, options.alternative),
        fact=f"{_rates_sentence(conditions, after)} {sentence(changes, n)}".strip(),
        warnings=(*sample.boundary.warnings, *_warnings(solved, spread, options.alpha)),
        rows=_moved_rows(sample, records, share) if options.rows else None,
        features=None if moves is None else feature_changes(moves, sample, records),
        points=moved_points(moves, records) if moves is not None and options.points else None,
    )
    finding = Finding(
        audit="projection",
        measure=conditions.name,
        groups=conditions.groups,
        estimate=move.cost / n,
        pvalue=spread[0].pvalue,
        margin=options.margin,
        counts=_counts(conditions, sample, changes),
    )
    return Raw(finding=finding, evidence=evidence)


def _spread(solved: Solved, band: Band) -> tuple[AtBandwidth, ...]:
    return tuple(
        AtBandwidth(
            factor=factor,
            bandwidth=bandwidth,
            pvalue=law.sf(solved.move.cost, **band.least),
            weights=tuple(law.weights.tolist()),
        )
        for factor, bandwidth, law in solved.laws
    )


def _moved_rows(sample: Sample, records: IntArray, share: FloatArray) -> MovedRows:
    return MovedRows(
        record=tuple(records.tolist()),
        share=tuple(share.tolist()),
        from_=tuple(sample.decision[records].tolist()),
        distance=tuple(sample.distance[records].tolist()),
    )


def _warnings(solved: Solved, spread: Sequence[AtBandwidth], alpha: float) -> list[str]:
    """Say where the limit law is known to be less reliable and the data are there."""
    said, conditions, laws = [], solved.conditions, solved.laws
    near = np.concatenate([c.distance[c.distance <= 2 * laws[0][1]] for c in solved.cells])
    if near.size and np.unique(near).size < 0.5 * near.size:
        said.append(
            f"Near the boundary the distance takes only {np.unique(near).size} values over {near.size} people; the "
            "limit law assumes a continuous distance."
        )
    narrow = next(each for f, _, each in laws if f == min(g for g, _, _ in laws))
    ratio = np.trace(narrow.curvature) / np.trace(laws[0][2].curvature)
    if ratio > 1.6:
        said.append(
            f"The density of people at the boundary grows {ratio:.1f} times when the bandwidth shrinks to a quarter: "
            "the distance may be squared, or have an atom at 0, and then the test hardly ever rejects."
        )
    elif ratio < 0.4:
        said.append(
            "Few people lie close to the boundary compared with further away; the density there is badly determined."
        )
    decided = {bool(line.pvalue <= alpha) for line in spread}
    if len(decided) > 1:
        said.append("The decision depends on the bandwidth; see `bandwidth_sensitivity`.")
    for rate in conditions.rates:
        size = conditions.mass[rate.cells].sum(axis=0)
        if min(size) < 10:
            said.append(
                f"{rate.words} has {size[1]:g} of {size.sum():g} rows with decision 1; the limit law needs "
                "at least 10 of each."
            )
    return said


def _no_law(laws: Laws) -> str:
    if not laws:
        return "The distances have no spread, so the density of people at the boundary cannot be estimated."
    if not np.any(laws[0][2].covariance):
        return "Every group has one decision only, so the criterion has no sampling variance."
    return (
        "Too few people of some group lie near the boundary to estimate the density there "
        f"(bandwidth {laws[0][1]:.3g}); give a larger `bandwidth` or merge groups."
    )


def _rates_sentence(conditions: Conditions, after: Sequence[ProjectedRate]) -> str:
    if not after:
        return ""
    shown = [f"{line.before:.3f} for {rate.words}" for rate, line in zip(conditions.rates, after, strict=True)]
    return "The rate of decision 1 is " + ", ".join(shown[:6]) + (", …" if len(shown) > 6 else "") + "."


def _counts(conditions: Conditions, sample: Sample, changes: Changes) -> dict[str, dict[str, float]]:
    counts: dict[str, dict[str, float]] = {}
    for rate in conditions.rates:
        own = (conditions.code >= 0) & rate.cells[conditions.code]
        line = counts.setdefault(rate.group, {"rows": 0, "decision_1": 0, "raised": 0, "lowered": 0})
        line["rows"] += int(sample.count[own].sum())
        line["decision_1"] += int(sample.count[own & (sample.decision == 1)].sum())
    for change in changes.by_group:
        counts[change.group]["raised" if change.to else "lowered"] += change.people
    return counts


def untestable(
    options: ProjectionSetting,
    asked: Asked,
    problem: str,
    evidence: ProjectionEvidence,
    groups: tuple[str, ...] | None = None,
) -> Raw:
    """Return the finding of a question that these data cannot answer; by default it names all groups asked about."""
    named = tuple(a.group_name(g) for a, _ in asked for g in range(len(a.labels)))
    return not_computable(
        "projection",
        options.name,
        groups or named,
        f"{options.name} cannot be tested. {problem}",
        margin=options.margin,
        evidence=evidence,
    )


def _other_tests(data: AuditData, solved: Solved, asked: Asked, sample: Sample) -> ProjectionEvidence:
    """Run the tests an auditor would compare a projection with.

    Parameters
    ----------
    data : AuditData
        Records.
    solved : Solved
        The criterion, and the covariance of its conditions.
    asked : sequence of (Attribute, int)
        Attributes with their reference.
    sample : Sample
        The same records as arrays.

    Returns
    -------
    ProjectionEvidence
        ``wald`` for any number of conditions, ``welch`` for one, ``group_audit`` for the attributes asked.
    """
    conditions = solved.conditions
    square = cell_sums(solved.place, sample.square, conditions.mass.size)
    one = conditions.phi.shape[1] == 1 and len(conditions.rates) == 2
    return ProjectionEvidence(
        wald=_wald(conditions.value / sample.rows, solved.covariance, sample.rows),
        welch=_welch(conditions, square) if one else None,
        group_audit=_group_tests(data, conditions, asked) if conditions.rates and asked else None,
    )


def _detectable(conditions: Conditions, law: Law, alpha: float, alternative: str) -> str:
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


def _group_tests(data: AuditData, conditions: Conditions, asked: Asked) -> tuple[GroupTest, ...]:
    tests, sums = [], Sums(data)
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
            tests.append(GroupTest(attribute=attribute.name, metric=metric.name, test=test.method, pvalue=test.pvalue))
    return tuple(tests)
