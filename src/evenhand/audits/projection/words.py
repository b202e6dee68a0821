"""The finding of a projection audit and the evidence behind it, in numbers and words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import IntArray
from evenhand.audits.finding import Raw, not_computable
from evenhand.audits.projection.beside import detectable, other_tests
from evenhand.audits.projection.changes import (
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
    MovedRows,
    ProjectedRate,
    ProjectionEvidence,
)
from evenhand.audits.projection.options import ProjectionSetting
from evenhand.audits.projection.sample import Asked, Sample
from evenhand.intake.data import AuditData
from evenhand.kernels.transport.limit_law import Law
from evenhand.kernels.transport.projection import Cell, Projection
from evenhand.results import Finding

Laws = Sequence[tuple[float, float, Law]]  # factor, bandwidth, law; the one used comes first


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solved:
    """A criterion on the records, the cheapest move that meets it, and what chance makes of its cost."""

    conditions: Conditions  # the criterion
    # cells, place: sorted records, and each record's cell.
    cells: tuple[Cell, ...]
    place: IntArray
    found: Projection  # the cheapest move
    laws: Laws  # (float, float, Law): factor, bandwidth and limit law, the one used first


def tell(data: AuditData, solved: Solved, sample: Sample, options: ProjectionSetting, asked: Asked) -> Raw:
    """Put the finding and its evidence together."""
    (below, above), n = options.band, sample.rows
    conditions, found, laws = solved.conditions, solved.found, solved.laws
    beside = asked if options.beside else []
    details = replace(
        other_tests(data, conditions, beside, sample.decision, sample.square, n),
        test="optimal-transport projection, limit law",
        conditions=tuple(conditions.contrasts),
        values=tuple((conditions.value / n).tolist()),
        warnings=tuple(sample.boundary.warnings),
        distance=dict(sample.boundary.described),
    )
    law = laws[0][2] if laws else None
    if math.isnan(found.cost):
        problem = "People at an infinite distance from the boundary make the criterion unreachable."
        return untestable(options, asked, problem, details, conditions.groups)
    if law is None or law.weights.size == 0:
        return untestable(options, asked, _no_law(conditions, laws), details, conditions.groups)
    mass = None if sample.single else sample.mass
    records, share = moved_share(solved.cells, found.moved, solved.place, sample.distance, mass)
    changes = describe_changes(conditions, records, share, sample.decision, sample.distance, sample.count, n)
    after = projected_rates(conditions, found.moved)
    spread = _spread(solved, below, above)
    evidence = replace(
        details,
        statistic=found.cost,
        gap=found.gap,
        weights=tuple(law.weights.tolist()),
        threshold=law.threshold(options.alpha, below=below, above=above),
        bandwidth=laws[0][1],
        bandwidth_sensitivity=spread,
        changes=changes,
        projected=after,
        figure=signed_histogram(
            conditions, solved.cells, max(4 * laws[0][1], 2 * float(np.nan_to_num(changes.largest_distance)))
        ),
        planning=detectable(conditions, law, options.alpha, options.alternative),
        fact=f"{_rates_sentence(conditions, after)} {sentence(changes, n)}".strip(),
        warnings=(*sample.boundary.warnings, *_warnings(conditions, solved.cells, laws, spread, options.alpha)),
        rows=_moved_rows(sample, records, share) if options.rows else None,
    )
    finding = Finding(
        audit="projection",
        measure=conditions.name,
        groups=conditions.groups,
        estimate=found.cost / n,
        pvalue=spread[0].pvalue,
        margin=options.epsilon if options.epsilon > 0 else None,
        counts=_counts(conditions, sample, changes),
    )
    return Raw(finding=finding, evidence=evidence)


def _spread(solved: Solved, below: float, above: float) -> tuple[AtBandwidth, ...]:
    return tuple(
        AtBandwidth(
            factor=factor,
            bandwidth=bandwidth,
            pvalue=law.sf(solved.found.cost, below=below, above=above),
            weights=tuple(law.weights.tolist()),
        )
        for factor, bandwidth, law in solved.laws
    )


def _moved_rows(sample: Sample, records: IntArray, share: NDArray[np.float64]) -> MovedRows:
    return MovedRows(
        record=tuple(records.tolist()),
        share=tuple(share.tolist()),
        from_=tuple(sample.decision[records].tolist()),
        distance=tuple(sample.distance[records].tolist()),
    )


def _warnings(
    conditions: Conditions,
    cells: tuple[Cell, ...],
    laws: Laws,
    spread: Sequence[AtBandwidth],
    alpha: float,
) -> list[str]:
    """Say where the limit law is known to be less reliable and the data are there."""
    said = []
    h = laws[0][1]
    near = np.concatenate([c.distance[c.distance <= 2 * h] for c in cells])
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


def _no_law(conditions: Conditions, laws: Laws) -> str:
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
    told: dict[str, dict[str, float]] = {}
    for rate in conditions.rates:
        own = (conditions.code >= 0) & rate.cells[conditions.code]
        line = told.setdefault(rate.group, {"rows": 0, "decision_1": 0, "raised": 0, "lowered": 0})
        line["rows"] += int(sample.count[own].sum())
        line["decision_1"] += int(sample.count[own & (sample.decision == 1)].sum())
    for change in changes.by_group:
        told[change.group]["raised" if change.to else "lowered"] += change.people
    return told


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
        margin=options.epsilon if options.epsilon > 0 else None,
        evidence=evidence,
    )
