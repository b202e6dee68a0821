"""Run a plan: each audit once, then one correction over all findings."""

from __future__ import annotations

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
from evenhand.audits.options import audit_function, takes
from evenhand.audits.verdict import settle
from evenhand.errors import DataError, UsageError, near_matches
from evenhand.intake import AuditData
from evenhand.kernels.shared.seeds import RngLike, seed_of
from evenhand.metrics import resolve
from evenhand.models import AuditedModel, audited_model, load_model
from evenhand.models.training_rows import training_rows
from evenhand.plan import Plan, lacks
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
    elif not isinstance(plan, Plan):
        plan = Plan.from_toml(plan)
    seed = seed_of(plan.seed if rng is None else rng)
    plan = replace(plan, seed=seed)
    notes = [*plan.notes]
    if model is not None and data.features:
        model = audited_model(model, data)
        data, scored = decided(data, model)
        notes += [*model.notes, *scored, training_rows(model, data)]
    _check_request(plan, data, model)
    # One thread of linear algebra per worker: more fight for the same cores, and the sums would depend on their number.
    with threadpool_limits(limits=1, user_api="blas"):
        results = [_run_one(name, plan, data, model, seed, workers, progress) for name in plan.audits]
    failed = [r for r in results if isinstance(r, DataError)]
    if len(failed) == len(results):
        raise failed[0]
    told = [r if isinstance(r, AuditResult) else _failed(name, r) for name, r in zip(plan.audits, results, strict=True)]
    settled = settle(told, alpha=plan.alpha, correction=plan.correction)
    return AuditRun(
        results=tuple(replace(r, interval_at=()) for r in settled),  # what is done with holds on to the data
        plan={**plan.to_dict(), "hash": plan.hash},
        seed=seed,
        data=_describe(data, notes),
        versions={
            "evenhand": version("evenhand"),
            "numpy": version("numpy"),
            "scipy": version("scipy"),
            "python": platform.python_version(),
        },
    )


def _run_one(
    name: str, plan: Plan, data: AuditData, model: Any, seed: int, workers: int, progress: Progress | None
) -> AuditResult | DataError:
    options = _options(plan, name)
    shared = {
        "model": None if "distance" in options else model,
        "alpha": plan.alpha,
        # The verdicts of one audit alone are replaced by those of the whole run; only "max-t" asks for its own work.
        "correction": "max-t" if name == "group" and plan.correction == "max-t" else "none",
        "rng": seed,
        "workers": workers,
        "progress": progress,
    }
    try:
        result = audit_function(name)(data, **options, **{k: v for k, v in shared.items() if takes(name, k)})
    except DataError as error:
        return error
    return replace(result, options={**result.options, "correction": plan.correction})


def _options(plan: Plan, name: str) -> dict[str, Any]:
    """Return an audit's options, with those of the whole plan where it has none of its own."""
    options = dict(getattr(plan, name))
    for key in ("n_resamples", "reference"):
        value = getattr(plan, key)
        if value not in (None, {}) and key not in options and takes(name, key):
            options[key] = value
    return options


def _failed(name: str, error: DataError) -> AuditResult:
    raw = not_computable(name, name, (), f"The {name} audit could not run. {error}")
    return AuditResult(audit=name, **columns_of([raw]))


def _check_request(plan: Plan, data: AuditData, model: Any) -> None:
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
        why = lacks(name, options, data, model)
        if why:
            raise UsageError(f"The audit `{name}` {why}. Give it, or leave the audit out of `audits`.")
        if name == "group" and options.get("metrics") is not None:
            for metric in resolve(options["metrics"]):
                check_needs(metric, data)
        asked = options.get("attribute")
        for one in [asked] if isinstance(asked, str) else asked or ():
            data.attribute(one)
        if isinstance(options.get("reference"), Mapping):
            _check_reference(options["reference"], data)


def _check_reference(reference: Mapping[str, str], data: AuditData) -> None:
    labels = {a.name: a.labels for a in data.attributes}
    for name, label in reference.items():
        if name not in labels:
            raise UsageError(
                f"`reference` names the attribute `{name}`, which is not audited.{near_matches(name, labels)}"
            )
        if str(label) not in labels[name]:
            raise UsageError(
                f"Reference `{name}={label}` is not a group in the data.{near_matches(label, labels[name])}"
            )


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


def _describe(data: AuditData, notes: list[str]) -> dict[str, Any]:
    return {
        "rows_in": data.rows.rows_in,
        "rows_used": data.rows.rows_used,
        "rows_dropped": dict(data.rows.dropped),
        "columns": dict(data.columns),
        "groups": {a.name: dict(zip(a.labels, group_sizes(data, a), strict=True)) for a in data.attributes},
        "fingerprint": data.fingerprint,
        "notes": [*data.notes, *notes],
    }
