"""Tables II and IV: ACD beside CVaR beside ECD, and the type of 80 tails, by our audit and by the printed algorithm."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from evenhand.audits.tail import audit_tail
from evenhand.intake import AuditData
from evenhand.reproductions.monjezi2025.cases import CASES, Case
from evenhand.reproductions.monjezi2025.generated import Learned
from evenhand.reproductions.monjezi2025.settings import CASE_NAMES, GENERATORS, KINDS, MODELS, at_seed
from evenhand.reproductions.paper import Parts, Settings
from evenhand.results import AuditResult

MEASURES = ("ecd", "acd_difference", "cvar_difference")
# Of a group, by the counts over seeds.
_COUNTED = ("group", "type", "nobody_better_off", "steps", "generated_level", "level", "passed_printed", "printed")
_TIME = 600.0  # seconds for generating; never reached: training has a fixed length

SETTINGS: dict[str, Any] = {
    **{name: value for name, value in MODELS.items() if name != "seed"},
    "generator": "tvae",
    "generators": GENERATORS,
    "cases": list(CASE_NAMES),
    "seeds": {kind: [2025, 2026, 2027] for kind in KINDS},
}
SHORT: dict[str, Any] = {
    **SETTINGS,
    "n_resamples": 99,
    "cases": ["credit-sex", "compas-race", "students-sex"],
    "seeds": {"lr": [2025]},
}


def run_table_iv(settings: Settings, parts: Parts) -> dict[str, Any]:
    """Train every model on every data set, from every seed, and audit both groups' tails."""
    seeds = settings["seeds"]
    shared = {name: value for name, value in settings.items() if name not in ("seeds", "cases")}
    cells: dict[str, dict[str, Any]] = {}
    for turn in range(max(len(list_) for list_ in seeds.values())):
        for kind, list_ in seeds.items():
            for name in settings["cases"] if turn < len(list_) else ():
                seed = list_[turn]
                made = parts.keep(
                    f"{kind}-{name}-{seed}",
                    {**shared, "case": name, "kind": kind, "seed": seed},
                    partial(audited_cell, kind, name, at_seed(shared, seed)),
                )
                cells.setdefault(str(turn), {})[f"{kind} {name}"] = made if turn == 0 else counted_part(made)
    return {"cells": cells}


def counted_part(cell: dict[str, Any]) -> dict[str, Any]:
    """Return what is counted in a cell: all that is kept of other seeds."""
    return {**cell, "groups": [{name: group[name] for name in _COUNTED} for group in cell["groups"]]}


def audited(case: Case, model: Any, settings: Settings, **options: Any) -> AuditResult:
    """Run the tail audit on all rows of a case."""
    data = AuditData.from_arrays(
        outcome=case.outcome, groups={case.attribute: case.columns[case.attribute]}, features=case.columns
    )
    return audit_tail(
        data,
        model=model,
        attribute=case.attribute,
        reference=case.privileged,
        horizon=settings["horizon"],
        n_resamples=settings["n_resamples"],
        rng=settings["seed"],
        **options,
    )


def audited_cell(kind: str, name: str, settings: Settings) -> dict[str, Any]:
    """Train one model and audit it: unprivileged group first."""
    from evenhand.reproductions.monjezi2025.classifiers import fitted

    case = CASES[name]()
    model, accuracy = fitted(case, kind, settings)
    ours = audited(case, model, settings, measures=("ecd", "acd", "cvar"))
    maker = Learned(settings["generator"], settings["generators"], settings["seed"])
    printed = audited(case, model, settings, generator=maker, generate="printed", time_limit=_TIME)
    shown, beside = ours.evidence[0].groups, printed.evidence[0].groups  # type: ignore[attr-defined]
    cell: dict[str, Any] = {"accuracy": short(accuracy)}
    for finding in ours:
        if finding.measure in MEASURES:
            interval = finding.interval
            known = interval is not None and not math.isnan(finding.estimate)
            ends = [] if interval is None else [short(interval.low), short(interval.high)]
            cell[finding.measure] = {
                "estimate": [short(finding.estimate), *ends] if known else None,
                "pvalue": short(finding.pvalue, 2),
                "verdict": str(finding.verdict),
            }
    cell["groups"] = [] if shown is None else [_group(shown[g], beside[g]) for g in shown]
    return cell


def _group(shown: Any, beside: Any) -> dict[str, Any]:
    """Return one line of table IV."""
    fit, made = shown.fit, shown.synthetic
    level = next((r for r in shown.return_levels if r.interactions == shown.horizon), None)
    row: dict[str, Any] = {
        "group": shown.group,
        "rows": shown.rows,
        "acd": short(shown.acd),
        "cvar": short(shown.cvar.value),
        "maximum": short(shown.observed_maximum.value),
        "level": None if level is None else [short(level.level), short(level.low), short(level.high)],
        "nobody_better_off": shown.nobody_better_off,
        "steps": "distinct values" in shown.doubt,
        "passed_printed": None if shown.exponentiality is None else shown.exponentiality.passed_printed,
        "generated": made.get("rows", 0),
        "generated_level": None if made.get("level") is None else short(made["level"]),
        "unlimited": shown.feasible_horizon.unlimited,
        "type": None if fit is None else fit.type,
        "printed": [
            {
                "reading": p.reading,
                "generated": p.generated,
                "type": p.type,
                "shape": short(p.shape),
                "location": short(p.location),
            }
            for p in beside.printed_algorithm
        ],
    }
    if fit is not None:
        row |= {
            "k": fit.k,
            "threshold": short(fit.threshold),
            "location": short(fit.location),
            "scale": short(fit.location_scale),
            "shape": [short(fit.free_shape), short(fit.free_shape_interval.low), short(fit.free_shape_interval.high)],
            "fits": short(fit.goodness_of_fit.pvalue, 2),
            "believed": fit.believed,
            "correlation": shown.quantile_plot.correlation,
        }
    return row


def short(value: float, digits: int = 4) -> float | None:
    """Return a number with so many digits, None when it is not finite; a rounding error is 0.

    Examples
    --------
    >>> short(0.123456), short(float("nan")), short(-3e-16)
    (0.1235, None, 0.0)
    """
    if not np.isfinite(value):
        return None
    return 0.0 if abs(value) < 1e-12 else float(f"{value:.{digits}g}")
