"""Projection audit: how far are the data from group-fair ones, and who would have to change?

Hypotheses
    H0: E[C(X) phi(U, E[U])] = 0, the criterion holds in the population. With `epsilon` and an alternative of
    ``"greater"`` or ``"less"``, H0: the criterion's values lie at most epsilon above (below) 0; with ``"two-sided"``,
    at most epsilon away from 0.
Statistic
    N times the projection distance R: the least mean distance that people must be moved across the decision
    boundary until the criterion holds in the sample.
Reference distribution
    In the limit a sum of chi-squares whose weights follow from the density of people at the boundary and the
    covariance of the criterion. No draws: tails are integrated. Several one-sided conditions: chi-bar-square.
When it fails
    The signed distance needs a positive, continuous density at 0. Distances of few distinct values, squared
    distances (the kernel cost as printed) and score margins break that; findings carry a warning. Small groups:
    the law is a limit. With one condition the decision tends to that of Wald's test whatever the distance is:
    what projection adds is how far, and whom.

Symbols
    ===========  ======================  =====================  ==============================
    code         [si2021]                shape                  where
    ===========  ======================  =====================  ==============================
    distance     d(x)                    (records,)             eq. (6)
    decision     C(x)                    (records,)
    phi          phi(u, E[U])            (U, m)                 Definition 1
    influence    phi C + E[phi_z C] U    (U, 2, m)              Theorem 1
    estimate     P(P_N)                  one per finding        eq. (5), (7), (9)
    statistic    s_N                     one per finding        sec. 3.2
    curvature    S                       (m, m)                 Theorem 1, sec. 5.2
    covariance   Sigma                   (m, m)                 Theorem 1
    weights      eig(S^-1/2 Sigma S^-1/2) / 2   (m,)
    moved        N p*                    (cells,)               Proposition 3
    ===========  ======================  =====================  ==============================

Where print is not followed: Corollary 1's squared chi-square is not squared; Algorithm 1 runs over all rows and
takes d = 0; Example 5's index starts at 1; kernel distances are not squared; the bandwidth has the unit of d.
"""

from __future__ import annotations

import math

import numpy as np

from evenhand.arrays import FloatArray, IntArray
from evenhand.audits.finding import Raw, columns_of
from evenhand.audits.needs import check_independent
from evenhand.audits.options import complete, record, with_options
from evenhand.audits.projection.batched import EXACT_ROWS, find_records
from evenhand.audits.projection.boundary import Asked, Sample, as_distances, questions
from evenhand.audits.projection.changes import Laws, Solved
from evenhand.audits.projection.criteria import Conditions, Criterion, own_conditions, rate_conditions
from evenhand.audits.projection.evidence import ProjectionEvidence
from evenhand.audits.projection.options import Band, ProjectionOptions, ProjectionSetting
from evenhand.audits.projection.words import tell, untestable
from evenhand.intake.data import AuditData
from evenhand.kernels.shared.seeds import seed_of
from evenhand.kernels.transport.dual import project_cells
from evenhand.kernels.transport.equal_rates import Sides, project_rates
from evenhand.kernels.transport.limit_law import boundary_bandwidth, boundary_curvature, influence_covariance, limit_law
from evenhand.kernels.transport.projection import Cell, Projection, cell_sums, make_cells, project_line
from evenhand.results import AuditResult

_FACTORS = (0.25, 0.5, 1.0, 2.0)  # bandwidths shown beside the one used
_MANY_CELLS = 500  # beyond this a single condition is solved by sorting rows


@with_options(ProjectionOptions)
def audit_projection(data: AuditData, asked: ProjectionOptions) -> AuditResult:
    """Test group fairness by projection, and say who would have to change.

    Parameters
    ----------
    data : AuditData
        Decisions, groups and, unless the criterion is ``"statistical_parity"``, outcomes.

    Returns
    -------
    AuditResult
        `estimate` is the mean distance moved per person; `evidence` says who.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand.intake.data import AuditData
    >>> rng = np.random.default_rng(0)
    >>> sex = np.repeat(["F", "M"], 300)
    >>> score = rng.normal(np.where(sex == "F", -0.4, 0.4))
    >>> data = AuditData.from_arrays(decision=(score > 0).astype(int), groups={"sex": sex})
    >>> found = audit_projection(data, criterion="statistical_parity", distance=np.abs(score))
    >>> str(found[0].verdict), found.evidence[0].changes.people
    ('disparity', 109)
    """
    check_independent(data, "The projection audit")
    data, setting, findings, sample = _prepare(data, asked)
    raw: list[Raw] = []
    for pairs in findings:
        setting.say(f"projection: {setting.name} of {', '.join(a.name for a, _ in pairs) or 'own tuple'}")
        conditions = _conditions(setting.criterion, data, pairs, sample)
        problem = _undefined(sample) or (conditions if isinstance(conditions, str) else "")
        if problem or isinstance(conditions, str):
            warned = ProjectionEvidence(warnings=tuple(sample.boundary.warnings))
            raw.append(untestable(setting, pairs, problem, warned))
            continue
        cells, place = _cells(conditions, sample)
        move = _statistic(conditions, cells, sample, setting.band(conditions.contrasts))
        covariance, laws = _reference(conditions, cells, place, sample, setting.bandwidth)
        solved = Solved(conditions=conditions, cells=cells, place=place, move=move, covariance=covariance, laws=laws)
        raw.append(tell(data, solved, sample, setting, pairs))
    return AuditResult(
        audit="projection",
        **columns_of(raw),
        options=record(setting, criterion=setting.name, distance=dict(sample.boundary.described)),
        notes=(*data.notes, *sample.boundary.notes),
    )


def _statistic(conditions: Conditions, cells: tuple[Cell, ...], sample: Sample, band: Band) -> Projection:
    """Find the cheapest move; its cost is N times the projection distance."""
    if conditions.strata and band.even:
        return _equal_rates(conditions, cells, **band.least)
    now = conditions.value
    side = np.tile([1.0, -1.0], len(conditions.phi))  # 1 - 2 C
    tilt = np.repeat(conditions.phi, 2, axis=0) * side[:, None]  # (2 U, m)
    n = sample.rows
    low, high = (-now, -now) if band.closed else (-n * band.below - now, n * band.above - now)
    if tilt.shape[1] == 1 and len(cells) > _MANY_CELLS:
        return _by_rows(conditions, sample, float(low[0]), float(high[0]))
    moved, cost, gap = np.zeros(len(cells)), 0.0, 0.0
    for block in conditions.blocks:
        own = np.flatnonzero(np.any(tilt[:, block] != 0, axis=1))
        keep = _independent(tilt[np.ix_(own, block)]) if band.closed else np.arange(block.size)
        part = project_cells(
            [cells[j] for j in own], tilt[np.ix_(own, block[keep])], low[block[keep]], high[block[keep]]
        )
        moved[own] = part.moved
        cost, gap = cost + part.cost, max(gap, part.gap)
    return Projection(cost, moved, gap=gap)


def _equal_rates(conditions: Conditions, cells: tuple[Cell, ...], below: float, above: float) -> Projection:
    moved, cost = np.zeros(len(cells)), 0.0
    for members in conditions.strata:
        u = [int(np.flatnonzero(conditions.rates[k].cells)[0]) for k in members]
        sides = [
            Sides(cells[2 * j], cells[2 * j + 1], float(conditions.mass[j, 1]), float(conditions.mass[j].sum()))
            for j in u
        ]
        part = project_rates(sides, reference=0, below=below, above=above)
        for i, j in enumerate(u):
            moved[2 * j : 2 * j + 2] = part.moved[2 * i : 2 * i + 2]
        cost += part.cost
    return Projection(cost, moved)


def _by_rows(conditions: Conditions, sample: Sample, low: float, high: float) -> Projection:
    tilt = conditions.phi[conditions.code, 0] * (1 - 2 * sample.decision)
    of_rows = project_line(sample.distance, tilt, low, high, None if sample.single else sample.mass)
    place = 2 * conditions.code + sample.decision
    return Projection(of_rows.cost, cell_sums(place, of_rows.moved, 2 * len(conditions.phi)))


def _reference(
    conditions: Conditions, cells: tuple[Cell, ...], place: IntArray, sample: Sample, bandwidth: float | None
) -> tuple[FloatArray, Laws]:
    """Return the conditions' covariance, and the limit law at the bandwidth (first) and at multiples of it."""
    used = conditions.code >= 0
    square = cell_sums(place, sample.square, len(cells))  # (2 U,)
    m = conditions.phi.shape[1]
    covariance = influence_covariance(conditions.influence.reshape(-1, m), square, sample.rows)
    present = conditions.phi[conditions.mass.sum(axis=1) > 0]
    keep = _independent(present)
    independent_rows = float(sample.mass[used].sum()) ** 2 / max(float(sample.square[used].sum()), 1e-300)
    h = boundary_bandwidth(cells, independent_rows) if bandwidth is None else bandwidth
    laws = []
    for factor in (1.0, *(f for f in _FACTORS if f != 1.0)):
        if not h > 0:
            break
        curvature = boundary_curvature(cells, conditions.phi, sample.rows, factor * h)
        corner = np.ix_(keep, keep)
        laws.append((factor, factor * h, limit_law(curvature[corner], covariance[corner], sample.rows)))
    return covariance, laws


def _conditions(criterion: str | Criterion, data: AuditData, asked: Asked, sample: Sample) -> Conditions | str:
    if isinstance(criterion, Criterion):
        return own_conditions(criterion, sample.decision, sample.mass)
    return rate_conditions(criterion, data, asked, sample.decision, sample.mass)


def _cells(conditions: Conditions, sample: Sample) -> tuple[tuple[Cell, ...], IntArray]:
    """Sort the records into (value of U, decision), nearest to the boundary first."""
    place = np.where(conditions.code >= 0, 2 * conditions.code + sample.decision, -1)
    n_cells = 2 * len(conditions.phi)
    if sample.weighted or (not sample.single and sample.rows > EXACT_ROWS):
        return make_cells(sample.distance, place, n_cells, sample.mass), place
    if sample.single:
        return make_cells(sample.distance, place, n_cells), place
    # A counted record is so many rows: repeated, both give the same answer to the last bit.
    return make_cells(np.repeat(sample.distance, sample.count), np.repeat(place, sample.count), n_cells), place


def _independent(phi: FloatArray) -> IntArray:
    """Return the conditions that do not follow from the others."""
    keep: list[int] = []
    for k in range(phi.shape[1]):
        trial = phi[:, [*keep, k]] / np.maximum(np.abs(phi[:, [*keep, k]]).max(axis=0), 1e-300)
        if np.linalg.matrix_rank(trial, tol=1e-9 * math.sqrt(phi.size)) == len(keep) + 1:
            keep.append(k)
    return np.array(keep, dtype=np.int64)


def _prepare(data: AuditData, asked: ProjectionOptions) -> tuple[AuditData, ProjectionSetting, list[Asked], Sample]:
    """Check the request against the data; the only place that raises errors about them."""
    findings: list[Asked] = [[]]
    chosen: dict[str, str] = {}
    if not isinstance(asked.criterion, Criterion):
        questions(data, asked.attribute, asked.reference)  # what cannot be asked is refused before anything is measured
    how = as_distances(asked.distances)
    data, boundary = find_records(data, asked.model, asked.distance, how, seed_of(asked.rng))
    if not isinstance(asked.criterion, Criterion):
        findings, chosen = questions(data, asked.attribute, asked.reference)
    weight = np.ones(data.count.size) if data.weight is None else data.weight
    mass = data.count * weight
    shrink = float(data.count.sum()) / float(mass.sum()) if mass.sum() > 0 else 1.0
    square = data.count * weight**2 if data.weight_square is None else data.weight_square
    sample = Sample(
        decision=boundary.decision,
        distance=boundary.distance,
        mass=mass * shrink,
        square=square * shrink**2,
        count=data.count,
        weighted=data.weight is not None,
        single=data.weight is None and bool(np.all(data.count == 1)),
        boundary=boundary,
    )
    one = asked.attribute
    setting = complete(
        ProjectionSetting,
        asked,
        attribute=None if one is None else (one,) if isinstance(one, str) else tuple(one),
        reference=chosen,
        epsilon=(float(asked.epsilon),) if isinstance(asked.epsilon, int | float) else tuple(map(float, asked.epsilon)),
    )
    return data, setting, findings, sample


def _undefined(sample: Sample) -> str:
    positive = int(sample.count[sample.decision == 1].sum())
    if positive in (0, int(sample.rows)):
        return f"Every row has decision {int(positive > 0)}, so the classifier has no boundary among these people."
    return ""
