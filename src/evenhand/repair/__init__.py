"""Repair: fit mitigators, choose among them on other people, certify the choice on people nobody has seen.

See `evenhand.repair.certificate` for what is tested and what is promised.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from evenhand.arrays import FloatArray
from evenhand.audits.group.samples import check_needs
from evenhand.audits.margin import check_reach, parse_margin
from evenhand.audits.needs import check_independent
from evenhand.errors import DataError, UsageError
from evenhand.inference.limits import Margin
from evenhand.inference.paired import Values, paired_change
from evenhand.intake import Attribute, AuditData
from evenhand.kernels.shared.seeds import RngLike, seed_of
from evenhand.metrics import METRICS, resolve
from evenhand.plan import Plan
from evenhand.repair.candidates import (
    Candidate,
    Training,
    decide,
    decides_with_group,
    fit,
    requests_of,
    score,
    training_of,
)
from evenhand.repair.certificate import (
    Certificate,
    Comparison,
    Step,
    Target,
    certificate_of,
    compare_groups,
    pvalue_of,
    said,
)
from evenhand.repair.changes import disparity_changes, performance_changes, side_by_side
from evenhand.repair.parts import NAMES, check_shares, three_parts
from evenhand.repair.result import MitigationResult
from evenhand.results import AuditRun
from evenhand.run import audit

__all__ = ["Candidate", "Certificate", "MitigationResult", "mitigate"]

_PERFORMANCE = ("accuracy", "balanced_accuracy")


def mitigate(
    data: AuditData,
    learner: Any = None,
    *,
    methods: Sequence[Any] | str | None = None,
    metric: Sequence[str] | str = "fnr",
    margin: float | str | Mapping[str, float | str] = 0.05,
    attribute: Sequence[str] | str | None = None,
    performance: str = "accuracy",
    most_loss: float = 0.05,
    alpha: float = 0.05,
    parts: Sequence[float] = (0.5, 0.25, 0.25),
    audits: Plan | bool = True,
    rng: RngLike = None,
    progress: Callable[[str], None] | None = None,
) -> MitigationResult:
    """Repair a model, and certify the repair on people that neither training nor choosing has seen.

    The rows are divided in three. Every method is fitted with each of its settings on the first part. The second part
    shows what each reaches, and orders those worth testing. On the third part they are tested in that order until one
    is not shown to be inside the margin; the best of those shown is returned. The probability that the returned model's
    true disparity exceeds the margin is at most `alpha`. When nothing can be shown, no model is returned.

    Parameters
    ----------
    data : AuditData
        With a binary outcome, groups and features.
    learner : estimator, optional
        A scikit-learn classifier or pipeline, fitted or not; copies of it are fitted. By default a logistic
        regression on the features as numbers.
    methods : sequence of str or estimator, optional
        Words of `evenhand.mitigation.METHODS`, or estimators of that shape with settings of one's own; by default all
        methods.
    metric : str or sequence of str
        What must be alike between all pairs of groups.
    margin : float, str or mapping
        How alike: ``0.05``, ``"ratio:0.9"``, ``"four-fifths"``; a mapping gives each metric its own.
    attribute : str or sequence of str, optional
        Attributes whose groups must be alike; by default all that are not intersections of others.
    performance : {"accuracy", "balanced_accuracy"}
        What the best model has most of.
    most_loss : float
        How much less of it than the plain learner a candidate may have on the part to choose on.
    alpha : float
        Probability, at most, of returning a model whose disparity exceeds the margin.
    parts : sequence of float
        Shares of the rows to train, to choose and to certify on.
    audits : Plan or bool
        Which audits compare the plain learner with the returned model; True runs all that the data allow.
    rng : int, Generator or None
        Seed.
    progress : callable, optional
        Called with a short text before each piece of work.

    Returns
    -------
    MitigationResult

    Examples
    --------
    >>> import evenhand as eh
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 6000)
    >>> skill = rng.normal(size=6000) + 0.5 * (sex == "m")
    >>> y = (skill + rng.normal(size=6000) > 0).astype(int)
    >>> data = eh.AuditData.from_arrays(outcome=y, groups={"sex": sex}, features={"skill": skill})
    >>> result = eh.mitigate(data, methods=["threshold_optimizer"], margin=0.2, audits=False, rng=0)
    >>> str(result.verdict)
    'equivalent'
    """
    seed = seed_of(rng)
    say = progress or (lambda text: None)
    _check(data, learner, performance, alpha, most_loss)
    target = Target(margins=_margins(data, metric, margin), attributes=_attributes(data, attribute), alpha=alpha)
    train, choose, certify = three_parts(data, target.attributes, check_shares(parts), seed)
    tables = [training_of(part, target.attributes) for part in (train, choose, certify)]
    requests = requests_of(methods, learner, tables[0], list(target.margins), seed)
    candidates = []
    for j, request in enumerate(requests):
        say(f"fitting {j + 1} of {len(requests)}: {request.label}")
        candidate = fit(request, learner, tables[0])
        candidates.append(candidate if candidate.reason else _seen(candidate, choose, tables[1], target, performance))
    if candidates[0].reason:
        raise DataError(f"The plain learner, to which every repair is compared, cannot be used. {candidates[0].reason}")
    if all(c.reason for c in candidates[1:]):
        raise DataError(f"No method could be fitted. {candidates[1].reason}")
    candidates = _ordered(candidates, most_loss, performance)
    say("certifying")
    steps = _tested(candidates, certify, tables[2], target)
    last = sum(s.certified for s in steps) - 1  # the tests follow the places, and stop at the first failure
    chosen = next((c for c in candidates if c.place is not None and c.place == last), None)
    plain = candidates[0]
    notes = _notes(chosen, learner)
    made: dict[str, Any] = {"disparities": (), "performance": (), "before": None, "after": None, "compared": ()}
    if chosen is not None:
        made |= _compared(plain, chosen, certify, tables[2], target)
        if audits is not False and chosen is not plain:
            before, after = [_audited(c, certify, tables[2], audits, seed, say) for c in (plain, chosen)]
            made |= {"before": before, "after": after, "compared": side_by_side(before, after)}
    return MitigationResult(
        model=None if chosen is None else chosen.model,
        certificate=certificate_of(steps, target, certify.rows.rows_used),
        candidates=tuple(candidates),
        chosen="" if chosen is None else chosen.label,
        original=plain.model,
        settings={
            "methods": list(dict.fromkeys(r.method for r in requests[1:])),
            "learner": "logistic regression on the features as numbers" if learner is None else repr(learner),
            "outcome": data.columns.get("outcome", "outcome"),
            "features": list(data.features),
            "metric": list(target.margins),
            "margin": {name: said(m) for name, m in target.margins.items()},
            "attribute": list(target.names),
            "performance": performance,
            "most_loss": most_loss,
            "alpha": alpha,
            "parts": list(check_shares(parts)),
            "seed": seed,
            "fingerprint": data.fingerprint,
        },
        rows=dict(zip(NAMES, (p.rows.rows_used for p in (train, choose, certify)), strict=True)),
        versions={
            **{name: version(name) for name in ("evenhand", "numpy", "scipy", "scikit-learn")},
            "python": platform.python_version(),
        },
        notes=tuple(notes),
        **made,
    )


def _attributes(data: AuditData, names: Sequence[str] | str | None) -> tuple[Attribute, ...]:
    if names is None:
        chosen = tuple(a for a in data.attributes if " × " not in a.name)
    else:
        chosen = tuple(data.attribute(n) for n in ([names] if isinstance(names, str) else names))
    if not chosen:
        raise DataError("No group column was given. Name at least one in `groups=`.")
    return chosen


def _margins(
    data: AuditData, metric: Sequence[str] | str, margin: float | str | Mapping[str, float | str]
) -> dict[str, Margin]:
    names = [m.name for m in resolve(metric)]
    made = {}
    for name in names:
        if isinstance(margin, Mapping) and name not in margin:
            raise UsageError(f"`margin=` gives no margin for `{name}`. It has: {', '.join(margin) or 'none'}.")
        parsed = parse_margin(margin[name] if isinstance(margin, Mapping) else margin)
        if parsed is None:
            raise UsageError("A certificate needs a margin, such as 0.05: how large a difference counts as negligible?")
        check_reach(parsed, name, METRICS[name].high - METRICS[name].low)
        check_needs(METRICS[name], replace(data, decision=data.outcome, score=data.outcome, score_kind="probability"))
        made[name] = parsed
    return made


def _check(data: AuditData, learner: Any, performance: str, alpha: float, most_loss: float) -> None:
    check_independent(data, "Mitigation")
    if data.outcome is None or data.outcome_kind != "binary":
        raise DataError("Mitigation needs an outcome with two values: name it with `outcome=`.")
    if not data.features:
        raise DataError("Mitigation needs the features a model learns from: name them with `features=`.")
    if learner is not None and not (isinstance(learner, BaseEstimator) or hasattr(learner, "get_params")):
        raise UsageError(
            f"`learner` must be a scikit-learn classifier or pipeline, which can be fitted again; got "
            f"{type(learner).__name__}. A model that only decides cannot be repaired by training."
        )
    if performance not in _PERFORMANCE:
        raise UsageError(f"`performance` must be one of {', '.join(_PERFORMANCE)}; got {performance!r}.")
    if not 0 < alpha < 1:
        raise UsageError(f"`alpha=` must lie between 0 and 1; got {alpha}.")
    if not 0 <= most_loss <= 1:
        raise UsageError(f"`most_loss` must lie between 0 and 1; got {most_loss}.")


def _seen(candidate: Candidate, part: AuditData, table: Training, target: Target, performance: str) -> Candidate:
    """Look at a candidate on the part to choose on; one that cannot decide about these people is left out."""
    try:
        decision = decide(candidate.model, table)
    except DataError as problem:
        return replace(candidate, reason=str(problem))
    if np.unique(decision).size < 2:
        return replace(candidate, reason="It decides the same about everybody.")
    value, error = _performance(part, decision, performance)
    return replace(
        candidate,
        comparisons=_judged(candidate.model, part, table, decision, target),
        performance=value,
        performance_low=value - 1.96 * error,
        performance_high=value + 1.96 * error,
    )


def _judged(
    model: Any, part: AuditData, table: Training, decision: FloatArray, target: Target
) -> tuple[Comparison, ...]:
    """Compare groups as a model decides about them, with its scores where a metric reads them."""
    return compare_groups(part, decision, score(model, table) if target.needs_score else None, target)


def _performance(part: AuditData, decision: FloatArray, performance: str) -> tuple[float, float]:
    """Return the value over everybody, and its standard error."""
    assert part.outcome is not None
    right = (decision == part.outcome).astype(np.float64)
    everyone = np.ones(right.size, dtype=bool)
    sides = [everyone] if performance == "accuracy" else [part.outcome == 1, part.outcome == 0]
    zero = np.zeros(right.size)
    found = [paired_change(Values(zero, everyone), Values(right, everyone), side, None, part.weight) for side in sides]
    error = float(np.sqrt(np.sum([f.error**2 for f in found]))) / len(found)
    return float(np.mean([f.after for f in found])), error


def _ordered(candidates: Sequence[Candidate], most_loss: float, performance: str) -> list[Candidate]:
    """Give places to those worth testing: from the safest on, each with a better performance than all before it."""
    floor = candidates[0].performance - most_loss
    order = sorted(range(len(candidates)), key=lambda j: (candidates[j].pvalue, -candidates[j].performance, j))
    made, best, place = list(candidates), -np.inf, 0
    for j in order:
        c = made[j]
        if c.reason:
            continue
        if c.performance < floor:
            made[j] = replace(
                c, reason=f"Its {performance} is more than {most_loss:g} below that of the plain learner."
            )
        elif c.performance > best:
            made[j], best, place = replace(c, place=place), c.performance, place + 1
    return made


def _tested(candidates: Sequence[Candidate], part: AuditData, table: Training, target: Target) -> tuple[Step, ...]:
    """Test in order until one is not shown to be inside the margin."""
    steps: list[Step] = []
    for c in sorted((c for c in candidates if c.place is not None), key=lambda c: c.place or 0):
        comparisons = _judged(c.model, part, table, decide(c.model, table), target)
        p = pvalue_of(comparisons)
        steps.append(Step(candidate=c.label, pvalue=p, certified=p <= target.alpha, comparisons=comparisons))
        if p > target.alpha:
            break
    return tuple(steps)


def _compared(plain: Candidate, chosen: Candidate, part: AuditData, table: Training, target: Target) -> dict[str, Any]:
    """Compare both models on the same people: in all groups, also those that were not to be repaired."""
    before, after = (decide(c.model, table) for c in (plain, chosen))
    return {
        "disparities": disparity_changes(part, before, after, part.attributes, list(target.margins)),
        "performance": performance_changes(part, before, after, part.attributes),
    }


def _audited(
    candidate: Candidate, part: AuditData, table: Training, plan: Plan | bool, seed: int, say: Callable[[str], None]
) -> AuditRun:
    """Run the audits of one model on the people to certify on."""
    people = replace(part, decision=None, score=None)
    if decides_with_group(candidate.model):
        extra = {name: np.asarray(v) for name, v in table.groups.items() if name not in part.features}
        people = replace(people, features={**people.features, **extra})
    say(f"auditing {candidate.label}")
    return audit(people, model=candidate.model, plan=plan if isinstance(plan, Plan) else None, rng=seed, progress=say)


def _notes(chosen: Candidate | None, learner: Any) -> list[str]:
    notes = [
        "The plain learner was fitted on the people to train on, as every candidate was, so that both models are "
        "compared on people whom neither has seen.",
        "The order of tests was decided on the people to choose on; the certificate and all comparisons come from the "
        "people to certify on.",
    ]
    if learner is not None and hasattr(learner, "classes_"):
        notes.append("The model that was given had been fitted before; a copy of it was fitted again.")
    if chosen is not None and chosen.place == 0 and chosen.model is not None and chosen.method == "plain learner":
        notes.append("The plain learner itself is certified: no repair was needed.")
    if chosen is not None and decides_with_group(chosen.model):
        notes.append(
            "The certified model uses a person's group to decide. In some places, such as credit and employment in the "
            "United States, that is unlawful."
        )
    return notes
