"""Run a plan: each audit once, then one correction over all findings."""

from __future__ import annotations

import inspect
import platform
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from evenhand.audits.finding import columns_of, not_computable
from evenhand.audits.group.samples import check_needs
from evenhand.audits.options import options_of
from evenhand.audits.reference import references
from evenhand.audits.registry import AUDITS
from evenhand.audits.verdict import settle
from evenhand.errors import DataError, UsageError
from evenhand.intake import AuditData
from evenhand.intake.fingerprint import Fingerprint
from evenhand.kernels.shared.seeds import RngLike, seed_of
from evenhand.metrics import resolve
from evenhand.models import AuditedModel, audited_model, load_model
from evenhand.models.training_rows import training_rows
from evenhand.plan import Plan, check_fits
from evenhand.results import AuditResult, AuditRun
from evenhand.summaries import group_sizes

Progress = Callable[[str], None]

_MANY_GROUPS = 50


def audit(
    data: AuditData,
    *,
    model: Any = None,
    plan: Plan | str | Path | None = None,
    rng: RngLike = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> AuditRun:
    """Run all audits of a plan on one error budget.

    A request that cannot be met (an unknown column, no model for an audit that needs one) is an error before any
    work is done. What shows only in the data while an audit works costs that audit: it gives one finding
    ``not_computable`` with the reason, and the others keep theirs. When no audit is left, it is an error.

    Parameters
    ----------
    data : AuditData
        From `evenhand.read` or `AuditData.from_arrays`.
    model : object, optional
        The model that decided, or the name of its file: the individual and the tail audit need it, projection and
        proxy can use it. It also makes the decisions when the data have neither decisions nor scores.
    plan : Plan, path or None
        What to do; by default `Plan.default`: every audit that the columns and the model allow.
    rng : int, Generator or None
        Seed; by default the plan's, else a fresh one. Written into the run.
    workers : int
        Threads for long draws; the answer does not depend on it.
    progress : callable, optional
        Called with a short text before each piece of work.

    Returns
    -------
    AuditRun
        Its `plan` carries the seed used and, under ``"hash"``, the plan's fingerprint.

    Examples
    --------
    >>> import evenhand as eh
    >>> run = eh.audit(eh.datasets.planted(rows=500, rng=0), plan=eh.Plan(group={"metrics": ["fnr"]}), rng=0)
    >>> [f.measure for f in run.findings]
    ['fnr']
    """
    if not isinstance(data, AuditData):
        raise UsageError(
            f"`audit` needs data that were read: got {type(data).__name__}. Read it first and say what its columns "
            f"mean: `eh.audit(eh.read(source, outcome=..., decision=..., groups=...))`."
        )
    if isinstance(model, str | Path):
        model = load_model(model)
    if plan is None:
        plan = Plan.default(data, model)
    else:
        plan = plan if isinstance(plan, Plan) else Plan.from_toml(plan)
        check_fits(plan, data, model)
    plan = plan.changed(seed=seed_of(plan.seed if rng is None else rng))
    return perform(plan, data, model, workers=workers, progress=progress)


def perform(plan: Plan, data: AuditData, model: Any, *, workers: int = 1, progress: Progress | None = None) -> AuditRun:
    """Run a plan with a seed whose audits lack nothing: `Plan.default` has chosen them, or `check_fits` has asked.

    Parameters
    ----------
    plan, data, model
        As chosen or checked.
    workers, progress
        As for `audit`.

    Returns
    -------
    AuditRun
    """
    notes = [*plan.notes]
    if model is not None and data.features:
        model = audited_model(model, data)
        data, scored = decided(data, model)
        notes += [*model.notes, *scored, training_rows(model, data)]
    _check_request(plan, data)
    # One thread of linear algebra per worker: more fight for the same cores, and the sums would depend on their number.
    with threadpool_limits(limits=1, user_api="blas"):
        shared = {"model": model, "workers": workers, "progress": progress}
        results = [_run_one(name, plan, data, shared) for name in plan.audits]
    failed = [r for r in results if isinstance(r, DataError)]
    if len(failed) == len(results):
        raise failed[0]
    told = [r if isinstance(r, AuditResult) else _failed(name, r) for name, r in zip(plan.audits, results, strict=True)]
    settled = settle(told, alpha=plan.alpha, correction=plan.correction)
    return AuditRun(
        results=tuple(replace(r, interval_at=()) for r in settled),  # what is done with holds on to the data
        plan={**plan.to_dict(), "hash": plan.hash},
        seed=seed_of(plan.seed),
        data=_describe(data, notes),
        versions={
            "evenhand": version("evenhand"),
            "numpy": version("numpy"),
            "scipy": version("scipy"),
            "python": platform.python_version(),
        },
    )


def _run_one(name: str, plan: Plan, data: AuditData, shared: Mapping[str, Any]) -> AuditResult | DataError:
    """Ask one audit for findings that are not judged yet."""
    kind = AUDITS[name].options
    given = {**shared, "alpha": plan.alpha, "correction": plan.correction, "rng": plan.seed}
    given = {k: v for k, v in given.items() if k in options_of(kind)} | _options(plan, name)
    if "distance" in given:
        given["model"] = None
    try:
        result: AuditResult = inspect.unwrap(AUDITS[name].function)(data, kind(**given))
    except DataError as error:
        return error
    return result


def _options(plan: Plan, name: str) -> dict[str, Any]:
    """Return an audit's options, with those of the whole plan where it has none of its own."""
    options = dict(plan.sections[name])
    for key in ("n_resamples", "reference"):
        value = getattr(plan, key)
        if value not in (None, {}) and key not in options and key in options_of(AUDITS[name].options):
            options[key] = value
    return options


def _failed(name: str, error: DataError) -> AuditResult:
    raw = not_computable(name, name, (), f"The {name} audit could not run. {error}")
    return AuditResult(audit=name, **columns_of([raw]))


def _check_request(plan: Plan, data: AuditData) -> None:
    """Refuse what can be seen to be impossible before any audit has begun."""
    for attribute in data.attributes:
        sizes = group_sizes(data, attribute)
        if len(sizes) > _MANY_GROUPS and np.median(sizes) < 2 and " × " not in attribute.name:
            raise DataError(
                f"Column `{attribute.name}` has {len(sizes):,} groups for {data.rows.rows_used:,} rows, most of one "
                "row: it looks like an identifier. Leave it out of `groups`, or cut a numeric column with `cuts`."
            )
    for name in plan.audits:
        options = _options(plan, name)
        if name == "group" and options.get("metrics") is not None:
            for metric in resolve(options["metrics"]):
                check_needs(metric, data)
        asked = options.get("attribute")
        for one in [asked] if isinstance(asked, str) else asked or ():
            data.attribute(one)
        if isinstance(options.get("reference"), Mapping):
            references(data, options["reference"])


def decided(data: AuditData, model: AuditedModel) -> tuple[AuditData, list[str]]:
    """Let the model score and decide where the data have neither scores nor decisions.

    Parameters
    ----------
    data : AuditData
        With features.
    model : AuditedModel
        The model.

    Returns
    -------
    data : AuditData
        With scores and, where it is known from which score on the decision is 1, decisions.
    notes : list of str
        That they are the model's, if they are.

    Examples
    --------
    >>> data = AuditData.from_arrays(outcome=[0, 1], groups={"g": ["a", "b"]}, features={"x": [0.2, 0.7]})
    >>> decided(data, audited_model(lambda X: X[:, 0], data))[0].decision.tolist()
    [0.0, 1.0]
    """
    if data.decision is not None or data.score is not None or model.problem:
        return data, [model.problem] if model.problem else []
    made = replace(data, score=model.score(data.features), score_kind="probability" if model.probability else "real")
    if model.threshold is None:
        return made, [
            f"Scores are those of the model `{model.name}`. They are no probabilities, and from which on the decision "
            "is 1 is not known, so nothing is said about decisions. Say it with `threshold`, or name a column of them."
        ]
    made = replace(made, decision=model.decide(data.features))
    return made, [
        f"Scores and decisions are those of the model `{model.name}`, which decides 1 from {model.threshold:g} on."
    ]


def people_mark(data: AuditData) -> str:
    """Return a hash of who the people are, by their groups and outcomes, whatever was decided about them.

    Examples
    --------
    >>> old, new = (AuditData.from_arrays(decision=d, groups={"g": ["a", "b"]}) for d in ([0, 1], [1, 1]))
    >>> old.fingerprint == new.fingerprint, people_mark(old) == people_mark(new)
    (False, True)
    """
    mark = Fingerprint(data.count)
    if data.outcome is not None and data.outcome_kind == "binary":
        mark.numbers("outcome", data.outcome)
    for attribute in data.attributes:
        mark.labels(attribute.name, attribute.codes, attribute.labels)
    return mark.hex()


def _describe(data: AuditData, notes: list[str]) -> dict[str, Any]:
    return {
        "rows_in": data.rows.rows_in,
        "rows_used": data.rows.rows_used,
        "rows_dropped": dict(data.rows.dropped),
        "columns": dict(data.columns),
        "groups": {a.name: dict(zip(a.labels, group_sizes(data, a), strict=True)) for a in data.attributes},
        "fingerprint": data.fingerprint,
        "people": people_mark(data),
        "notes": [*data.notes, *notes],
    }
