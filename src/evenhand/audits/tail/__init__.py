"""Tail audit: how badly is the worst-treated person disadvantaged for group membership alone?

Hypotheses
    The level of a group at a horizon of m decisions is the change of score that one decision in m exceeds when a person
    is recorded as the other group. For one group, H0: the level is at most the margin (by default one point of score,
    0.01). For groups a and b, H0: their levels at one common horizon differ by at most the margin (ECD). On request:
    the mean change (ACD), H0: it lies inside the margin; the mean of the worst share of changes (CVaR), H0: it is at
    most the margin; and of both the difference between the groups, H0: it lies inside the margin.
Statistic
    One group: how many rows lie above the margin. Two groups: the counts above the two levels, as normal deviates,
    added in squares, at the value of the reference's level that suits the hypothesis best. Means: over their standard
    error (`inference.one_mean`, `inference.means`).
Reference distribution
    The binomial law of a count, exact whatever the form of the tail, with steps and ties; for two groups chi-square of
    one degree for the smallest sum. The fit never decides. Beyond the rows it gives the level and its upper limit:
    generalised Pareto excesses over a threshold that the exponentiality test chooses, if goodness of fit and
    stability of the threshold do not speak against it; for logistic models the closed form.
When it fails
    Models that do not see the attribute. Horizons beyond the rows where the fit is not believed: refused, and generated
    rows say what a longer look might show, without a test. The flip changes the named columns only: what else would
    differ had the person been another is not asked.

Symbols
    ==========  =====================  ==============  =================================
    code        [monjezi2025]          shape           where
    ==========  =====================  ==============  =================================
    cd          CD(x, z)               (rows,)         Definition III.1
    acd         ACD                    one per group   sec. III
    threshold   u                      one per group   sec. II, the k-th largest value
    location    mu at horizon m        one per group   sec. IV: location
    scale_at    sigma at horizon m     one per group   sec. IV
    shape       xi                     one per group   sec. IV: types I, II, III
    estimate    ECD = mu_u - mu_p      one per pair    Definition III.2
    ==========  =====================  ==============  =================================

Where print is not followed: the location depends on the size of the sample, so groups are compared at one horizon;
the limits of the exponentiality test are calibrated over all k; the end point cannot exceed what is possible; verdicts
are counted and have a margin; levels at horizons inside the sample are counted too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from evenhand.arrays import FloatArray
from evenhand.audits.finding import Raw, columns_of
from evenhand.audits.margin import parse_margin
from evenhand.audits.needs import check_independent
from evenhand.audits.options import complete, record, with_options
from evenhand.audits.reference import references
from evenhand.audits.tail.findings import (
    chosen_horizon,
    difference_finding,
    level_finding,
    refused,
)
from evenhand.audits.tail.flipped import Asked, ask_both_ways
from evenhand.audits.tail.group_tail import GroupTail, Request, tail_of
from evenhand.audits.tail.mean_findings import mean_findings
from evenhand.audits.tail.options import TailOptions, TailSetting
from evenhand.errors import DataError, UsageError
from evenhand.generators import extend_tail, printed_algorithm
from evenhand.intake import Attribute, AuditData
from evenhand.kernels.shared.seeds import seed_of
from evenhand.models import AuditedModel, audited_model
from evenhand.models.adapter import ASKED_ROWS
from evenhand.models.counterfactual import Columns
from evenhand.results import AuditResult

People = Callable[[], Columns]  # the rows of a group

_POINT = 0.01  # one point of a score from 0 to 1; one hundredth of another score's range


@with_options(TailOptions)
def audit_tail(data: AuditData, asked: TailOptions) -> AuditResult:
    """Estimate how badly the worst-treated members of each group are treated for their membership alone.

    Parameters
    ----------
    data : AuditData
        With features, among them the columns that record the attribute.

    Returns
    -------
    AuditResult
        Per pair of groups a finding ``"ecd"`` and, for each of the two, a finding ``"return_level"``; on request
        ``"acd_difference"`` and ``"acd"``, ``"cvar_difference"`` and ``"cvar"``.

    Examples
    --------
    >>> import evenhand as eh
    >>> draw = np.random.default_rng(0)
    >>> x, sex = draw.normal(size=4000), draw.integers(2, size=4000)
    >>> model = lambda X: 1 / (1 + np.exp(-X[:, 0] - 0.8 * X[:, 1]))
    >>> score = model(np.column_stack([x, sex]))
    >>> data = eh.AuditData.from_arrays(score=score, groups={"sex": sex}, features={"x": x, "sex": sex})
    >>> result = audit_tail(data, model=model, rng=0)
    >>> women = next(f for f in result if f.measure == "return_level" and f.groups[0] == "sex=0")
    >>> round(women.estimate, 3), round(float(np.tanh(0.8 / 4)), 3)  # the exact worst case of this model
    (0.197, 0.197)
    """
    check_independent(data, "The tail audit")
    scorer, setting, attributes = _prepare(data, asked)
    raw: list[Raw] = []
    for one, both in zip(attributes, ask_both_ways(data, attributes, scorer, asked.flip, setting), strict=True):
        raw.extend(refused(data, one, setting, both) if isinstance(both, str) else _questions(data, one, both, setting))
    generator = setting.generator if isinstance(setting.generator, str) else type(setting.generator).__name__
    return AuditResult(
        audit="tail",
        **columns_of(raw),
        options=record(setting, generator=generator, model=scorer.name),
        notes=data.notes,
    )


def _questions(data: AuditData, attribute: Attribute, both: Asked, options: TailSetting) -> Iterator[Raw]:
    """Ask each pair of groups: who is treated worse at worst, and how badly each."""
    asked = both.changes
    # The last bits of a prediction may depend on the rows beside it.
    if all(changes.largest <= 1e-12 for changes in asked.values()):
        rows = sum(changes.rows for changes in asked.values())
        why = (
            f"The model cannot see `{attribute.name}`: flipping it changes none of {rows:,} scores. A model that does "
            "not use the attribute, or gives everybody one score, treats nobody by membership alone; audit its "
            "proxies instead"
        )
        yield from refused(data, attribute, options, why)
        return
    request = Request(
        upper=options.span,
        level=options.level,
        draws=options.n_resamples,
        seed=options.seed,
        share=options.cvar_share,
        k=options.k,
        printed=options.printed,
    )
    for a, b in both.pairs:
        smaller = min(asked[a, b].rows, asked[b, a].rows)
        horizon = chosen_horizon(smaller) if options.horizon is None else options.horizon
        found = []
        for own, other in ((a, b), (b, a)):
            options.say(f"tail: {attribute.group_name(own)}")
            names = attribute.group_name(own), attribute.group_name(other)
            group = tail_of(*names, asked[own, other], horizon, request)
            if "ecd" not in options.asked_for:
                found.append(group)
                continue
            generated = _as_printed if options.generate == "printed" else _extended
            people = partial(_members, data, attribute.name, own)
            found.append(generated(group, people, partial(both.flipped.change, other), horizon, options))
        for measure in options.asked_for:
            if measure == "ecd":
                yield difference_finding(found[0], found[1], horizon, options)
                yield from (level_finding(group, horizon, options) for group in found)
            else:
                yield from mean_findings(measure, found[0], found[1], options)


def _members(data: AuditData, attribute: str, own: int) -> Columns:
    """Return the rows of one group, or drawn ones where rows stay where they are."""
    rows = data if data.batches is None else data.batches.sample(ASKED_ROWS, seed=0)
    mine = rows.attribute(attribute).codes == own
    return {n: np.repeat(c[mine], rows.count[mine]) for n, c in rows.features.items()}


def _extended(
    group: GroupTail, people: People, change: Callable[[Columns], FloatArray], horizon: float, options: TailSetting
) -> GroupTail:
    """Ask a generator where a group's own rows give no level and are not in steps."""
    atoms = group.ties is not None and group.ties.atoms
    known = not math.isnan(group.level_at(horizon, options.level).value)
    if known or atoms or options.generator == "none" or group.cd.size < 20:
        return group
    suggestion = extend_tail(
        people(),
        change,
        options.generator,
        horizon=horizon,
        upper=options.span,
        seed=options.seed,
        time_limit=options.time_limit,
        progress=options.progress,
    )
    return replace(group, synthetic=suggestion)


def _as_printed(
    group: GroupTail, people: People, change: Callable[[Columns], FloatArray], horizon: float, options: TailSetting
) -> GroupTail:
    """Run Algorithm 1 of [monjezi2025] as printed beside a group's own tail."""
    if not group.cd.size:
        return group
    fits = printed_algorithm(
        people(),
        change,
        options.generator,
        horizon=horizon,
        upper=options.span,
        seed=options.seed,
        time_limit=options.time_limit,
    )
    return replace(group, as_printed=fits)


def _prepare(data: AuditData, asked: TailOptions) -> tuple[AuditedModel, TailSetting, tuple[Attribute, ...]]:
    """Check the request against the data; the only place that raises errors about them."""
    if not data.features and data.batches is None:
        raise DataError("The tail audit asks the model about changed records and needs `features=`. None were given.")
    if data.weight is not None:
        raise DataError(
            "Sampling weights were given and the tail audit does not take them: the largest changes are counted, not "
            "averaged. Leave `weight=` out, draw rows in proportion to it first, or pass whole-number counts as "
            "`weight_kind='frequency'`."
        )
    attributes = data.attributes if asked.attribute is None else (data.attribute(asked.attribute),)
    if not attributes:
        raise DataError("No group column was given. Name at least one in `groups=`.")
    reference = references(data, asked.reference, attributes)
    scorer = audited_model(asked.model, data, positive=asked.positive)
    known = scorer.probability or data.score_kind == "probability"
    low, high = asked.score_range or ((0.0, 1.0) if known else (-math.inf, math.inf))
    span = float(high - low)
    bounds = None if asked.margin in ("default", None, 0) else parse_margin(asked.margin)
    if bounds is not None and bounds.value >= span:
        raise UsageError(
            f"A margin of {asked.margin} is as large as the score's range of {span:g}, which no change exceeds."
        )
    margin = None if bounds is None else bounds.value
    setting = complete(
        TailSetting,
        asked,
        reference=reference,
        horizon=None if asked.horizon is None else float(asked.horizon),
        score_range=(float(low), float(high)),
        margin=_default_margin(scorer, data, span) if asked.margin == "default" else margin,
        level=asked.coverage,
        seed=seed_of(asked.rng),
    )
    return scorer, setting, attributes


def _default_margin(scorer: AuditedModel, data: AuditData, span: float) -> float:
    """Return one hundredth of the score's range as it is known, or of the range of the middle nine tenths seen."""
    if math.isinf(span):
        rows = data if data.batches is None else data.batches.sample(ASKED_ROWS, seed=0)
        seen = scorer.score(rows.features)
        low, high = np.quantile(seen, [0.05, 0.95])
        span = 1.0 if seen.min() >= 0 and seen.max() <= 1 else float(high - low)
    return float(f"{_POINT * span:.2g}") or _POINT
