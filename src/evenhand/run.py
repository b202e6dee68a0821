"""Run a plan: each audit once, then one correction over all findings."""

from __future__ import annotations

import inspect
import platform
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from evenhand.audits.verdict import settle
from evenhand.errors import UsageError, near_matches
from evenhand.intake import AuditData
from evenhand.kernels.seeds import RngLike, seed_of
from evenhand.plan import Plan
from evenhand.results import AuditResult, AuditRun
from evenhand.summaries import group_sizes

Progress = Callable[[str], None]

_NEED_MODEL = ("individual", "tail")


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

    Parameters
    ----------
    data : AuditData
        From `evenhand.read` or `AuditData.from_arrays`.
    model : object, optional
        The model that decided: the individual and the tail audit need it, projection and proxy can use it.
    plan : Plan, path or None
        What to do; by default the group audit with the metrics that the columns allow.
    rng : int, Generator or None
        Seed; written into the run.
    workers : int
        Threads for long draws; the answer does not depend on it.
    progress : callable, optional
        Called with a short text before each piece of work.

    Returns
    -------
    AuditRun

    Examples
    --------
    >>> import evenhand as eh
    >>> run = eh.audit(eh.datasets.planted(rows=500, rng=0), plan=eh.Plan(group={"metrics": ["fnr"]}), rng=0)
    >>> [f.measure for f in run.findings]
    ['fnr']
    """
    plan = plan if isinstance(plan, Plan) else Plan() if plan is None else Plan.from_toml(plan)
    seed = seed_of(rng)
    results = []
    for name in plan.audits:
        options = dict(getattr(plan, name))
        shared = {
            "model": model,
            "alpha": plan.alpha,
            "correction": plan.correction,
            "rng": seed,
            "workers": workers,
            "progress": progress,
        }
        run_audit = _runner(name)
        known = inspect.signature(run_audit).parameters
        _check_options(name, options, [p for p in known if p not in ("data", *shared)], shared)
        if name in _NEED_MODEL and model is None:
            raise UsageError(f"The audit `{name}` needs a model and none was given. Pass `model=`, or leave it out.")
        results.append(run_audit(data, **options, **{k: v for k, v in shared.items() if k in known}))
    return AuditRun(
        results=settle(results, alpha=plan.alpha, correction=plan.correction),
        plan=plan.to_dict(),
        seed=seed,
        data=_describe(data),
        versions={
            "evenhand": version("evenhand"),
            "numpy": version("numpy"),
            "scipy": version("scipy"),
            "python": platform.python_version(),
        },
    )


def _runner(name: str) -> Callable[..., AuditResult]:
    """Return an audit's function; its module is loaded only when the plan names it."""
    function: Callable[..., AuditResult] = getattr(import_module(f"evenhand.audits.{name}"), f"audit_{name}")
    return function


def _check_options(name: str, options: Mapping[str, Any], known: Sequence[str], shared: Mapping[str, Any]) -> None:
    for key in options:
        if key in shared:
            raise UsageError(f"`{key}` belongs to the whole plan, not to the audit `{name}`.")
        if key not in known:
            raise UsageError(f"The audit `{name}` has no option `{key}`.{near_matches(key, known)}")


def _describe(data: AuditData) -> dict[str, Any]:
    return {
        "rows_in": data.rows.rows_in,
        "rows_used": data.rows.rows_used,
        "rows_dropped": dict(data.rows.dropped),
        "columns": dict(data.columns),
        "groups": {a.name: dict(zip(a.labels, group_sizes(data, a), strict=True)) for a in data.attributes},
        "fingerprint": data.fingerprint,
        "notes": list(data.notes),
    }
