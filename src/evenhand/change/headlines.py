"""The main numbers of the other audits under both models, side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evenhand.audits.registry import AUDITS
from evenhand.errors import DataError, UsageError, near_matches
from evenhand.intake import AuditData
from evenhand.plan import Plan
from evenhand.results import Finding
from evenhand.run import audit

_WHY = {
    "projection": "The distance is the value of a programme that each model solves anew, so the change has no paired "
    "interval.",
    "individual": "The worst changes of each person are searched for under each model apart, so the change has no "
    "paired interval.",
    "proxy": "What a feature carries rests on fits made for each model apart, so the change has no paired interval.",
    "scan": "Subgroups are searched for under each model apart and picked out for their size, so the change has no "
    "paired interval.",
    "tail": "The tail of each model is fitted apart, so the change has no paired interval.",
}


def headlines_of(
    data: AuditData, a: Any, b: Any, audits: Sequence[str], seed: int, progress: Callable[[str], None] | None
) -> tuple[Mapping[str, Any], ...]:
    """Run other audits on both models and put their numbers side by side.

    Parameters
    ----------
    data : AuditData
        With features.
    a, b : object
        Models; anything else is refused when an audit is asked for.
    audits : sequence of str
        Their names.
    seed : int
        For both.
    progress : callable or None
        Called with a short text.

    Returns
    -------
    tuple of mapping
        Audit, measure, groups, before, after, change, both verdicts, and what can be said of the change.
    """
    if not audits:
        return ()
    for name in audits:
        if name not in _WHY:
            raise UsageError(f"`audits=` names `{name}`.{near_matches(name, _WHY)}")
    lines: list[Mapping[str, Any]] = []
    for name in audits:
        sides: list[dict[tuple[str, tuple[str, ...]], Finding]] = []
        for model in (a, b):
            why = AUDITS[name].lacks(data, model if hasattr(model, "predict") or callable(model) else None, {})
            if why:
                raise UsageError(f"`audits=` asks for `{name}` on both sides, and the {name} audit {why}.")
            try:
                run = audit(data, model=model, plan=Plan(audits=(name,)), rng=seed, progress=progress)
            except DataError as error:
                raise DataError(f"The {name} audit could not run on one of the sides. {error}") from error
            sides.append({(f.measure, f.groups): f for f in run.findings})
        for key in sides[0].keys() & sides[1].keys():
            one, two = sides[0][key], sides[1][key]
            change = two.estimate - one.estimate
            lines.append(
                {
                    "audit": name,
                    "measure": key[0],
                    "groups": list(key[1]),
                    "before": one.estimate,
                    "after": two.estimate,
                    "change": change if math.isfinite(change) else math.nan,
                    "verdict_before": str(one.verdict),
                    "verdict_after": str(two.verdict),
                    "note": _WHY[name],
                }
            )
    return tuple(sorted(lines, key=lambda line: (line["audit"], line["measure"], line["groups"])))
