"""Run a plan: each audit once, then one correction over all findings."""

from __future__ import annotations

import inspect
import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from evenhand.audits.finding import Raw, columns_of, not_computable
from evenhand.audits.group.samples import check_needs
from evenhand.audits.options import options_of
from evenhand.audits.reference import groups_among, references
from evenhand.audits.registry import AUDITS
from evenhand.audits.suppression import Shareable, known_groups, shareable
from evenhand.audits.verdict import hierarchy, settle
from evenhand.errors import DataError, UsageError
from evenhand.intake import AuditData
from evenhand.intake.batches import ChangedBatches
from evenhand.intake.fingerprint import Fingerprint
from evenhand.intake.records import ScoreBins
from evenhand.kernels.shared.seeds import RngLike, seed_of
from evenhand.metrics import resolve
from evenhand.models import AuditedModel, audited_model, load_model
from evenhand.models.adapter import ASKED_ROWS
from evenhand.models.files import model_mark
from evenhand.models.training_rows import training_rows
from evenhand.plan import Plan, check_fits
from evenhand.progress import Progress, shown_progress, step_text
from evenhand.results import AuditResult, AuditRun, Evidence, Finding
from evenhand.summaries import group_sizes
from evenhand.summaries.scored_cells import ScoredCells, ScoreRange

_MANY_GROUPS = 50
BINS = 4096  # of a model's scores where rows stay where they are


def audit(
    data: AuditData,
    *,
    model: Any = None,
    plan: Plan | str | Path | None = None,
    rng: RngLike = None,
    progress: Progress | bool | None = None,
    suppress: int | None = None,
    label: str | None = None,
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
    progress : bool or callable, optional
        Whether to show what is being worked on; by default in a notebook and at an interactive prompt, and not in a
        script. A function is called with a short text before each piece of work.
    suppress : int, optional
        Make a run that may be shared: groups with a count below this number are held back, and further ones so that
        these cannot be worked out. Only the group audit runs, on the counts that are left.
    label : str, optional
        What you call this run, such as the model's version: in ``findings.json`` and in the report's title.

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
    mark = model_mark(model)
    if isinstance(model, str | Path):
        model = load_model(model)
    if plan is None:
        plan = Plan.default(data, model)
    else:
        plan = plan if isinstance(plan, Plan) else Plan.from_toml(plan)
        check_fits(plan, data, model)
    plan = plan.changed(seed=seed_of(plan.seed if rng is None else rng))
    with shown_progress(progress) as tell:
        run = perform(plan, data, model, progress=tell, suppress=suppress)
    return replace(run, label=label, model=mark)


def perform(
    plan: Plan,
    data: AuditData,
    model: Any,
    *,
    progress: Progress | None = None,
    suppress: int | None = None,
    simultaneous: bool = False,
) -> AuditRun:
    """Run a plan with a seed whose audits lack nothing: `Plan.default` has chosen them, or `check_fits` has asked.

    Parameters
    ----------
    plan, data, model
        As chosen or checked.
    progress, suppress
        As for `audit`.
    simultaneous : bool
        Whether the intervals of the group audit hold all together with the confidence that one has otherwise.

    Returns
    -------
    AuditRun
    """
    notes = [*plan.notes]
    if data.batches is not None:
        data.batches.progress = progress
        asked = {name: AUDITS[name].options(**_options(plan, name, data)) for name in plan.audits}
        learning = any(hasattr(asked[name], "sample_rows") and not AUDITS[name].draws_ahead for name in plan.audits)
        data.batches.plain.drawn_rows = None if learning else ASKED_ROWS  # drawn rows have to travel
        for name, options in asked.items():
            AUDITS[name].draw_ahead(data, options)
    if model is not None and (data.features or data.batches is not None):
        model = audited_model(model, data)
        notes += model.notes
        if model.problem and "group" in plan.audits and data.decision is None and data.score is None:
            raise DataError(model.problem)  # there is nothing that groups could differ in
        if any(AUDITS[name].of_decisions for name in plan.audits):
            data, scored = decided(data, model)
            notes += scored
    _check_request(plan, data)
    # One thread of linear algebra: sums would depend on the number of threads.
    with threadpool_limits(limits=1, user_api="blas"):
        working = {"progress": progress}
        if suppress is not None:
            wanted = _options(plan, "group", data).get("metrics")
            return _shared_run(plan, shareable(data, wanted, suppress), working, simultaneous)
        shared = {"model": model, **working, **(_joint_level(plan, known_groups(data)) if simultaneous else {})}
        results = []
        for done, name in enumerate(plan.audits):
            if progress is not None:
                progress(step_text(done, len(plan.audits), name))
            results.append(_run_one(name, plan, data, shared))
    failed = [r for r in results if isinstance(r, DataError)]
    if len(failed) == len(results):
        raise failed[0]
    told = [r if isinstance(r, AuditResult) else _failed(name, r) for name, r in zip(plan.audits, results, strict=True)]
    if isinstance(model, AuditedModel):
        # Asked last, because the audits draw rows on their first walk over those that stay where they are.
        rows = data if data.batches is None else data.batches.sample(ASKED_ROWS, seed=0)
        notes.append(training_rows(model, rows))
    return _settled(plan, told, _describe(data, notes))


def _settled(plan: Plan, results: Sequence[AuditResult], described: Mapping[str, Any], *, silent: int = 0) -> AuditRun:
    """Spend the error budget, also on questions without an answer, and gather what is needed to repeat the run."""
    asked = [*results, _unanswered(results[0], silent)] if silent else results
    settled = settle(asked, alpha=plan.alpha, correction=plan.correction)[: len(results)]
    return AuditRun(
        results=tuple(replace(r, interval_at=()) for r in settled),  # what is done with holds on to the data
        plan={**plan.to_dict(), "hash": plan.hash},
        seed=seed_of(plan.seed),
        data=described,
        versions={
            "evenhand": version("evenhand"),
            "numpy": version("numpy"),
            "scipy": version("scipy"),
            "python": platform.python_version(),
        },
    )


def _unanswered(result: AuditResult, number: int) -> AuditResult:
    """Make findings that show nothing, as many as there were questions whose answer is not looked at."""
    nothing = 1.0 if any(evidence.equivalence_pvalue is not None for evidence in result.evidence) else None
    raw = Raw(
        finding=Finding(audit=result.audit, measure="held back", groups=(), estimate=math.nan, pvalue=1.0),
        evidence=Evidence(fact="", planning="", equivalence_pvalue=nothing, difference_pvalue=nothing),
    )
    return AuditResult(audit=result.audit, **columns_of([raw] * number))


def _joint_level(plan: Plan, groups: Mapping[str, int]) -> dict[str, float]:
    """Return the level at which the intervals of one rate against the highest hold together, by Bonferroni."""
    return {"level": 1 - plan.alpha / max(sum(n - 1 for n in groups.values()), 1)}


def _shared_run(plan: Plan, shared: Shareable, working: Mapping[str, Any], simultaneous: bool) -> AuditRun:
    """Ask the group audit of published counts, attribute by attribute; other audits rest on single people."""
    if plan.correction == "max-t":
        raise UsageError(
            "`suppress=` holds some groups back, and the correction `max-t` needs all of them. Choose `holm`."
        )
    left_out = [name for name in plan.audits if name != "group"]
    notes = [f"Not shared, because it rests on {_rests_on(name)}: the {name} audit." for name in left_out]
    plan = plan.changed(audits=("group",), notes=())
    asked = {**plan.group, "metrics": shared.metrics}
    if simultaneous:
        working = {**working, **_joint_level(plan, shared.known)}
    chosen = _options(plan, "group", shared.parts[0]).get("reference")
    results = []
    for name, label in chosen.items() if isinstance(chosen, Mapping) else ():
        if label in shared.suppressed.get(name, ()):
            raise UsageError(f"Reference `{name}={label}` is held back by `suppress=`. Choose a larger group.")
    for part in shared.parts:
        one = {**asked, "reference": chosen}
        if isinstance(chosen, Mapping):
            one["reference"] = {a.name: chosen[a.name] for a in part.attributes if a.name in chosen}
        result = _run_one("group", plan.changed(group=one, reference={}), part, working)
        if isinstance(result, DataError):
            raise result
        results.append(result)
    described = {
        "rows_in": shared.rows.rows_in,
        "rows_used": shared.rows.rows_used,
        "rows_dropped": dict(shared.rows.dropped),
        "columns": dict(shared.parts[0].columns),
        "labels": {role: labels.to_dict() for role, labels in shared.parts[0].labels.items()},
        "groups": shared.groups,
        **dict.fromkeys(("fingerprint", "people"), "not published"),  # a reader could test guesses with a hash
        "notes": [*shared.notes, *notes],
        "suppression": shared.to_dict(),
    }
    # Questions about groups held back count as asked and not shown: which they are was seen in the data.
    silent = shared.questions_held_back(pairs=asked.get("compare") == "pairs", together=chosen != "highest")
    return _settled(plan, [_joined(results)], described, silent=silent)


def _rests_on(name: str) -> str:
    return "counts of many small subgroups" if AUDITS[name].joint else "single people"


def _joined(results: Sequence[AuditResult]) -> AuditResult:
    """Make one result of those of several attributes."""
    first = results[0]
    return replace(
        first,
        findings=tuple(finding for result in results for finding in result.findings),
        evidence=tuple(evidence for result in results for evidence in result.evidence),
        interval_at=tuple(maker for result in results for maker in result.interval_at),
        options={**first.options, "reference": {k: v for r in results for k, v in r.options["reference"].items()}},
    )


def _run_one(name: str, plan: Plan, data: AuditData, shared: Mapping[str, Any]) -> AuditResult | DataError:
    """Ask one audit for findings that are not judged yet."""
    kind = AUDITS[name].options
    alpha = plan.alpha * (hierarchy(plan.audits)[0][name] if AUDITS[name].joint else 1.0)
    given = {**shared, "alpha": alpha, "correction": plan.correction, "rng": plan.seed}
    given = {k: v for k, v in given.items() if k in options_of(kind)} | _options(plan, name, data)
    if "distance" in given:
        given["model"] = None
    try:
        result: AuditResult = inspect.unwrap(AUDITS[name].function)(data, kind(**given))
    except DataError as error:
        return error
    return result


def _options(plan: Plan, name: str, data: AuditData) -> dict[str, Any]:
    """Return an audit's options, with those of the whole plan where it has none of its own.

    The plan's reference is a group; an audit that searches subgroups compares each with everybody else.
    """
    options = dict(plan.sections[name])
    for key in ("n_resamples",) if AUDITS[name].joint else ("n_resamples", "reference"):
        value = getattr(plan, key)
        if key == "reference" and name != "group":
            value = groups_among(data, value)  # the others compare with one group
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
                "row: it looks like an identifier. Leave it out of `groups=`, or cut a numeric column with `cuts=`."
            )
    for name in plan.audits:
        options = _options(plan, name, data)
        if options.get("metrics") is not None:
            for metric in resolve(options["metrics"]):
                check_needs(metric, data)
        asked = options.get("attribute")
        for one in [asked] if isinstance(asked, str) else asked or ():
            data.attribute(one)
        if isinstance(options.get("reference"), Mapping):
            references(data, groups_among(data, options["reference"]) if name == "group" else options["reference"])


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
    made = _with_answers(model, data) if data.batches is None else _scored_cells(model, data)
    if model.threshold is None:
        return made, [
            f"Scores are those of the model `{model.name}`. They are no probabilities, and from which on the decision "
            "is 1 is not known, so nothing is said about decisions. Say it with `threshold=`, or name a column of them."
        ]
    return made, [
        f"Scores and decisions are those of the model `{model.name}`, which decides 1 from {model.threshold:g} on."
    ]


def _with_answers(model: AuditedModel, rows: AuditData) -> AuditData:
    """Give rows in memory, or those of a batch, the model's scores and decisions."""
    answers = model.remember(rows.features)
    kind = "probability" if model.probability else "real"
    return replace(rows, score=answers.score, score_kind=kind, decision=answers.decision)


def _scored_cells(model: AuditedModel, data: AuditData) -> AuditData:
    """Let the model score each row where it is, and add up cells of what it says."""
    assert data.batches is not None
    batches = ChangedBatches(data.batches, partial(_with_answers, model))
    seen = ScoreRange()
    if not model.probability:  # the bins of other scores need their range
        seen = batches.fold(ScoreRange)
    bins = ScoreBins.over(0.0, 1.0, BINS) if model.probability else ScoreBins.over(seen.low, seen.high, BINS)
    made = batches.fold(partial(ScoredCells, bins)).data(data)
    note = (
        f"The model's scores were added up in {BINS:,} bins, each row in its own. Means, errors and rates are those of "
        "the rows; the AUC, and rates at other thresholds than the model's, take scores of one bin as equal."
    )
    return replace(made, batches=batches, notes=(*made.notes, note))


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
        "labels": {role: labels.to_dict() for role, labels in data.labels.items()},
        "groups": {a.name: dict(zip(a.labels, group_sizes(data, a), strict=True)) for a in data.attributes},
        "fingerprint": data.fingerprint,
        "people": people_mark(data),
        "notes": [*data.notes, *notes],
    }
