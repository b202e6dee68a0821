"""Individual audit: are similar people treated similarly?

Each person is moved, along directions in which people should be treated alike, to where the model does worst;
then the loss there is compared with the loss at the start.

Hypotheses
    H0: E[loss after / loss before] <= tolerance (measure ``loss_ratio``), and for classifiers H0: P(wrong after) /
    P(wrong before) <= tolerance (measure ``error_ratio``). The default tolerance 1.25 is the four-fifths rule turned
    round: a loss may grow by a quarter.
Statistic
    The mean ratio S_n with its standard error; T_n is its one-sided lower limit. The ratio of error rates
    S~_n.
Reference distribution
    Normal limit of the studentised mean, corrected for skewness (Hall 1992); ratios are kept as logarithms. For error
    rates the exact binomial given the number of errors, or Fieller's linear form when the map repaired some error.
    Both hold for any fixed map, so also for the search used with models that have no gradient.
When it fails
    Ratios with infinite variance (tiny losses): one pair then carries the sum, which is reported. A metric learned
    from the audited rows: cross-fitted by default. Few rows: the normal limit is rough below about 100. The answer
    belongs to the map: it has no plateau in flow time, so the whole curve is part of the evidence.

Symbols
    ===============  =========================  ====================
    code             [maity2021]                shape
    ===============  =========================  ====================
    X                x_i                        (people, inputs)
    moved.end        Phi(x_i, y_i), eq. (2.7)   (people, inputs)
    penalty          lambda, eq. (2.6)          one number
    step, steps      epsilon_t, T               Euler, eq. (2.8)
    log_ratio        log r_i, Algorithm 1       (people,)
    estimate         S_n (3.4), S~_n (3.12)     one number
    bound            T_n (3.10), T~_n (3.13)    one number
    tolerance        delta, eq. (3.3)           one number
    ===============  =========================  ====================
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, cast

import numpy as np

from evenhand.audits.finding import Raw, columns_of
from evenhand.audits.individual.attack import Attack, UnfairMap
from evenhand.audits.individual.description import by_part, curve, metric_sensitivity, movement_summary
from evenhand.audits.individual.evidence import GroupPredicted, IndividualEvidence, MapUsed, MetricUsed
from evenhand.audits.individual.findings import error_finding, loss_finding, refused
from evenhand.audits.individual.folds import NotPredictedError, Plan, Refits, make_plan, refit_errors
from evenhand.audits.individual.moving import Moved, check_step, euler_errors
from evenhand.audits.individual.options import IndividualOptions, IndividualSetting
from evenhand.audits.individual.people import People, gather
from evenhand.audits.individual.totals import Totals
from evenhand.audits.needs import check_independent
from evenhand.audits.options import complete, record, with_options
from evenhand.errors import DataError, UsageError, near_matches
from evenhand.intake import AuditData
from evenhand.intake.batches import Batches, LocalBatches, batches_of
from evenhand.kernels.flow.ratios import MeanRatio, RateRatio, mean_of, rate_of
from evenhand.kernels.shared.seeds import seed_of
from evenhand.results import AuditResult
from evenhand.similarity.expert import as_similarity
from evenhand.similarity.metric import Resampled, Similarity, angles
from evenhand.similarity.prediction import Predicted
from evenhand.similarity.uncertainty import bootstrap_metric

# Share of people whose loss may fall by rounding and kinks before the flow is called wrong: a true flow never
# lowers it ([maity2021] eq. 3.1), and a map that does would make any model look harmless.
LOWERED = 0.05
# People moved again to measure errors of the flow and of the metric.
PROBED = 96


@with_options(IndividualOptions)
def audit_individual(data: AuditData, asked: IndividualOptions) -> AuditResult:
    """Test whether people who count as similar are treated similarly.

    Parameters
    ----------
    data : AuditData
        Rows with outcome and features; groups where the fair metric is learned from them. The rows must not have been
        used to train the model.

    Returns
    -------
    AuditResult
        A finding ``loss_ratio`` and, for classifiers, ``error_ratio``.

    Examples
    --------
    >>> import numpy as np
    >>> import evenhand as eh
    >>> from evenhand.models.gradient import CallableGradient
    >>> x = np.linspace(-2, 2, 400)[:, None] * [1.0, 0.5]
    >>> y, g = np.arange(400) % 3 == 0, np.arange(400) % 2
    >>> data = eh.AuditData.from_arrays(outcome=y, groups={"g": g}, features=x)
    >>> slope = lambda X: np.tile([2.0, 0.0], (len(X), 1))
    >>> model = CallableGradient(lambda X: 2 * X[:, 0], slope, link="logit")
    >>> result = audit_individual(data, model=model, similarity=["x0"], steps=100, rng=0)
    >>> [(f.measure, str(f.verdict)) for f in result]
    [('loss_ratio', 'disparity'), ('error_ratio', 'disparity')]
    """
    check_independent(data, "The individual audit")
    every = batches_of(data)
    people, recipe, setting = _prepare(_sample(data, every, asked.sample_rows), asked)
    source, attacked = every, setting.attacked(every.rows)
    if attacked < every.rows:
        data = cast(AuditData, every.sample(attacked, seed=0))
        source = batches_of(data)
        people, recipe, setting = _prepare(_sample(data, source, asked.sample_rows), asked)
    share = float(people.count.sum()) / source.rows
    notes = (*data.notes, *people.notes, *_drawn(attacked, every.rows), *_sampled(people, source.rows))
    try:
        plan = make_plan(people, recipe, setting.metric_rows, setting, setting.alpha if setting.refits else None)
    except DataError as error:
        tested = _predicted(error.predicted) if isinstance(error, NotPredictedError) else None
        behind = IndividualEvidence(predicted=tested)
        raw = [refused(m, str(error), float(source.rows), None, behind) for m in _measures(people)]
        return _result(raw, setting, notes)
    notes += _left_out(plan, setting.alpha)
    moved, totals = _move_all(people, plan, data, setting)
    lowered = totals.lowered / totals.rows
    if lowered > LOWERED:
        reason = (
            f"The flow lowered the loss of {100 * lowered:.0f} % of the people, where a flow along the gradient can "
            "only raise it: its steps are too long. Use a shorter `step`, or `method='adaptive'`."
        )
        return _result([refused(m, reason, totals.rows) for m in _measures(people)], setting, notes)
    refit = refit_errors(people, plan, moved, setting, setting.refits, share)
    means, rates = _statistic(totals, refit)
    behind = _reference(people, plan, moved, totals, refit, setting, every.rows)
    raw = [loss_finding(totals, means, behind, setting)]
    if people.view.task != "regression":
        raw.append(error_finding(totals, rates, behind, setting))
    return _result(raw, setting, notes)


def _sample(data: AuditData, source: Batches, rows: int) -> AuditData:
    """Return the rows from which a map is learned: all, or some that no division or order of the rows can change."""
    if data.batches is None and source.rows <= rows:
        return data
    return cast(AuditData, source.sample(rows, seed=0))


def _drawn(attacked: int, rows: int) -> tuple[str, ...]:
    """Say how many rows are moved, where it is not all of them."""
    if attacked == rows:
        return ()
    return (
        f"{attacked:,} of {rows:,} rows are moved, drawn by a hash of their content: ratios, error rates and all that "
        "is learned are those of these rows, and intervals and tests count no others (`attack_rows` sets how many).",
    )


def _sampled(people: People, rows: int) -> tuple[str, ...]:
    """Say what comes from a sample of the rows, where not everybody is in it."""
    if people.count.sum() == rows:
        return ()
    return (
        f"The fair metric, where people may go and which columns moved come from {people.count.sum():,.0f} rows, "
        f"drawn by a hash of their content; ratios and error rates are those of all {rows:,} rows that are moved.",
    )


def _prepare(data: AuditData, asked: IndividualOptions) -> tuple[People, Similarity, IndividualSetting]:
    """Check the request against the data; the only place that raises errors about them."""
    people = gather(data, asked.model, scale=asked.scale, loss=asked.loss, clip=asked.clip)
    network = people.view.network
    method = ("search" if network is None else "euler") if asked.method == "auto" else asked.method
    if method != "search" and network is None:
        raise UsageError(
            f"{people.view.name}: no gradient is known, so `method='{method}'` cannot be used; use `search`."
        )
    setting = complete(
        IndividualSetting,
        asked,
        method=method,
        freeze=(asked.freeze,) if isinstance(asked.freeze, str) else tuple(asked.freeze),
        level=asked.coverage,
    )
    if setting.freeze and people.view.space.columns_of(setting.freeze).all():
        raise UsageError("`freeze` names every input of the model: nobody could be moved. Leave one free.")
    recipe = as_similarity(asked.similarity)
    people.view.space.columns_of(getattr(recipe, "columns", ()))
    known = [g.name for g in people.rows.groups] + list(people.rows.continuous)
    for name in getattr(recipe, "attributes", None) or ():
        if name not in known:
            raise DataError(f"The fair metric asks for the attribute `{name}`.{near_matches(name, known)}")
    return people, recipe, setting


def _move_all(people: People, plan: Plan, data: AuditData, setting: IndividualSetting) -> tuple[Moved, Totals]:
    """Apply the map to everyone, each under the metric of the other half: where the people learned from went, and sums.

    Everyone else is moved where the rows are.
    """
    unfair, source = UnfairMap.of(people, plan, setting), batches_of(data)
    whole, some = float(people.count.sum()) == source.rows, people.count.size
    of = "people" if whole else "people of the sample"
    moved, totals = unfair.apply(people, lambda k: setting.say(f"individual: {k} of {some} {of}"))
    if whole:
        return moved, totals
    # Elsewhere nobody hears, and whoever listens here could not be sent there.
    here = data.batches is None or isinstance(data.batches, LocalBatches)
    say = (lambda k: setting.say(f"individual: {k} of {source.rows} rows")) if here else None
    everyone = source.fold(partial(Attack, unfair, say)).totals
    assert everyone is not None
    return moved, everyone


def _statistic(totals: Totals, refit: Refits) -> tuple[MeanRatio | None, RateRatio]:
    """Return the mean ratio (None when some ratio is not a number) and the ratio of error rates."""
    ratios = totals.ratios[-1]
    return (
        None if ratios.undefined else replace(mean_of(ratios), map=refit.loss[-1]),
        replace(rate_of(totals.rates[-1]), map=refit.wrong[-1]),
    )


def _left_out(plan: Plan, alpha: float) -> tuple[str, ...]:
    """Say which attributes the inputs do not predict, where others are."""
    kept = {(p.attribute, p.group) for p in plan.folds[0].metric.parts if not p.column}
    gone = [p for p in plan.predicted if (p.attribute, p.group) not in kept and (p.attribute, None) not in kept]
    gone = [p for p in gone if not any(a == p.attribute for a, _ in kept) or p.group is not None]
    if not gone:
        return ()
    names = ", ".join(f"{p.label} (p {p.pvalue:.2g})" for p in gone)
    return (
        f"The model's other inputs are not shown to predict {names} better than chance on rows apart (p at most "
        f"{alpha / len(plan.predicted):.3g} is needed), so nobody is moved in a direction learned from it.",
    )


def _reference(
    people: People, plan: Plan, moved: Moved, totals: Totals, refit: Refits, setting: IndividualSetting, rows: int
) -> IndividualEvidence:
    """Gather the evidence shared by all findings; the only user of the random generator."""
    first, recipe = plan.folds[0], plan.recipe
    probe = first.index[np.unique(np.linspace(0, first.index.size - 1, min(PROBED, first.index.size)).astype(int))]
    errors: dict[str, Any] = {}
    if setting.method != "search":
        errors = euler_errors(people, probe, first.metric, first.box, setting, moved)
    sensitivity: Mapping[str, Any] | None = refit.shown or None
    if not sensitivity and setting.refits and isinstance(recipe, Resampled):
        spread = bootstrap_metric(
            recipe, first.rows, first.metric, refits=min(setting.refits, 10), seed=seed_of(setting.rng)
        )
        sensitivity = metric_sensitivity(people, probe, moved, first, spread, setting)
    angle = None
    if len(plan.folds) > 1 and recipe.learned:
        bases = [f.metric.form.free_directions() for f in plan.folds]
        if all(b.size for b in bases):
            angle = float(angles(*bases).max())
    return IndividualEvidence(
        map=MapUsed(
            kind="search along the sensitive directions"
            if setting.method == "search"
            else f"gradient flow, {setting.method}",
            model=people.view.name,
            loss=people.view.loss.name,
            time=float(moved.clock[-1]),
            stability_limit=math.nan
            if setting.method == "search"
            else check_step(first.metric.form, replace(setting, allow_unstable=True)),
            flow_error=errors,
            rows_moved=totals.rows,
            rows_in_all=float(rows),
        ),
        metric=MetricUsed(
            kind=first.metric.kind,
            learned_on=_learned_on(recipe, setting, people, totals),
            predicted=_predicted(plan.predicted),
            reach=tuple(first.box.reach.tolist()),
            sensitivity=sensitivity,
            angle_between_halves_degrees=angle,
            details=first.metric.details,
        ),
        curve=curve(totals, moved.clock, refit, setting),
        by_part=by_part(totals, refit, setting),
        off_range=totals.off_range,
        movement=movement_summary(people, moved),
        pairs=tuple(p.pair for p in totals.pairs),
    )


def _predicted(tested: Sequence[Predicted]) -> tuple[GroupPredicted, ...]:
    return tuple(GroupPredicted(**asdict(p)) for p in tested)


def _result(raw: list[Raw], setting: IndividualSetting, notes: tuple[str, ...]) -> AuditResult:
    return AuditResult(
        audit="individual",
        **columns_of(raw),
        options=record(setting, metric_rows=setting.learned_on),
        notes=notes,
    )


def _measures(people: People) -> tuple[str, ...]:
    return ("loss_ratio",) if people.view.task == "regression" else ("loss_ratio", "error_ratio")


def _learned_on(recipe: Similarity, setting: IndividualSetting, people: People, totals: Totals) -> str:
    if not recipe.learned:
        return "stated, not learned"
    some = people.count.sum() < totals.rows
    rows = f"a sample of {people.count.sum():,.0f} rows" if some else "the rows"
    shared = f"{rows}, which are audited too" if some else "the audited rows themselves"
    return {"crossfit": f"the other half of {rows}", "shared": shared}.get(setting.learned_on, setting.learned_on)
