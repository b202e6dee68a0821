"""What changed: from one model to another on the same people, from one run to the next, over a folder of runs.

Hypotheses
    For a metric and two groups, H0: the difference between the groups is as large under model b as under model a;
    with a margin, larger or smaller by at most the margin.
Statistic and reference
    See `evenhand.change.questions` and `evenhand.inference.paired_samples`: both models judge the same people, so only
    those whom they treat differently count.
Error
    p-values of all changes are adjusted together (Holm): a false `worse` or `better` has probability at most alpha over
    the whole comparison, a false `alike` likewise, and a false `not_worse` likewise.
When it fails
    Rows that depend on each other. Few people decided otherwise, for metrics without score limits (the finding warns).
    A model trained on these people: both sides must judge people they have not seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import numpy as np

from evenhand.audits.group import comparisons
from evenhand.audits.group.samples import check_needs, metrics_for
from evenhand.audits.margin import parse_margin
from evenhand.audits.needs import check_independent
from evenhand.change.headlines import headlines_of
from evenhand.change.questions import FEWEST, Paired, ask, pair
from evenhand.change.result import Change, ChangeVerdict, Comparison
from evenhand.change.sides import Sides, make_sides
from evenhand.errors import DataError, UsageError
from evenhand.inference.multiplicity import adjust
from evenhand.inference.paired_samples import InfluenceSamples
from evenhand.inference.samples import Draws
from evenhand.intake import AuditData
from evenhand.kernels.shared.seeds import seed_of
from evenhand.metrics import Metric
from evenhand.results import Interval

__all__ = ["Change", "ChangeVerdict", "Comparison", "compare"]


def compare(
    data: AuditData,
    a: Any,
    b: Any,
    *,
    metrics: Sequence[str | Metric] | str | Metric | None = None,
    reference: Mapping[str, str] | str | None = None,
    pairs: bool = False,
    margin: float | None = None,
    alpha: float = 0.05,
    names: tuple[str, str] = ("a", "b"),
    audits: Sequence[str] = (),
    n_resamples: int = 9999,
    rng: Any = 0,
    progress: Callable[[str], None] | None = None,
) -> Comparison:
    """Compare two models on the same people: did the differences between groups grow or shrink?

    Parameters
    ----------
    data : AuditData
        People with groups, outcomes and, where a side is a model, its features.
    a, b : array-like, str, mapping or model
        The old and the new side: decisions (0 and 1) or scores as one value per row, the name of a column among the
        data's features, ``{"decision": ..., "score": ...}``, or a fitted model.
    metrics : sequence of str or Metric, optional
        By default a few that both sides allow.
    reference : mapping of str to str, or str, optional
        The group others are compared with; by default the largest.
    pairs : bool
        All pairs of groups instead.
    margin : float, optional
        Change of a difference's size that counts as negligible. With one, `worse` and `better` mean shown beyond it,
        `alike` shown inside it, `not_worse` shown not larger by more than it.
    alpha : float
        Error rate over all changes.
    names : tuple of str
        What the two sides are called.
    audits : sequence of str
        Other audits to run on both sides, where both are models: ``"projection"``, ``"individual"``, ``"proxy"``,
        ``"tail"``, ``"scan"``. Their main numbers are shown side by side.
    n_resamples : int
        Random permutations, where a law is drawn.
    rng : int, Generator or None
        Seed.
    progress : callable, optional
        Called with a short text before each piece of work.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import evenhand as eh
    >>> data = eh.datasets.planted(rows=2000, fnr=(0.1, 0.4), rng=0)
    >>> found = compare(data, data.decision, data.decision, metrics=["fnr"], margin=0.05)
    >>> found[0].estimate, str(found[0].verdict)
    (0.0, 'alike')
    """
    if not 0 < alpha < 1:
        raise UsageError(f"`alpha=` must lie between 0 and 1; got {alpha!r}.")
    parsed = parse_margin(margin)
    if parsed is not None and parsed.ratio:
        raise UsageError(f"`margin=` is {margin!r}; a comparison takes a difference such as 0.02.")
    check_independent(data, "A comparison")
    if not data.attributes:
        raise DataError("A comparison needs a group column and none was given. Name at least one in `groups=`.")
    sides = make_sides(data, a, b)
    chosen = metrics_for(sides.a, metrics)
    for metric in chosen:
        for side in (sides.a, sides.b):
            check_needs(metric, side)
    draws = Draws(n_resamples=n_resamples, seed=seed_of(rng))
    compared = "pairs" if pairs else "reference"
    asked = list(comparisons(sides.a, chosen, reference=reference, compare=compared))
    made: dict[tuple[str, str], Paired | str] = {}
    changes = []
    for metric, attribute, one, other in asked:
        key = (metric.name, attribute.name)
        if key not in made:
            if progress is not None:
                progress(f"compare: {metric.name} by {attribute.name}")
            made[key] = pair(metric, sides, attribute)
        groups = (attribute.group_name(one), attribute.group_name(other))
        named = replace(draws, name=f"compare/{metric.name}")
        bound = None if parsed is None else parsed.value
        changes.append(_change(metric, groups, made[key], (one, other), bound, alpha, named))
    settings = {
        "metrics": [m.name for m in chosen],
        "reference": reference,
        "pairs": pairs,
        "margin": None if parsed is None else parsed.value,
        "n_resamples": n_resamples,
        "seed": draws.seed,
    }
    return Comparison(
        changes=_judged(changes, alpha),
        names=names,
        alpha=alpha,
        settings=settings,
        data=_describe(sides),
        headlines=headlines_of(data, a, b, audits, draws.seed, progress),
        notes=(*data.notes, *sides.notes),
        versions={"evenhand": version("evenhand")},
    )


def _describe(sides: Sides) -> dict[str, Any]:
    sizes = {a.name: (a.labels, sides.joint(a).sum(axis=(1, 2)).astype(int).tolist()) for a in sides.a.attributes}
    return {
        "rows": int(sides.a.count.sum()),
        "groups": {name: dict(zip(labels, rows, strict=True)) for name, (labels, rows) in sizes.items()},
        "fingerprint": sides.a.fingerprint,
    }


def _change(
    metric: Metric,
    groups: tuple[str, str],
    paired: Paired | str,
    codes: tuple[int, int],
    margin: float | None,
    alpha: float,
    draws: Draws,
) -> Change:
    """Answer one question; the verdict comes when all are answered."""
    if isinstance(paired, str):
        return Change(metric=metric.name, groups=groups, margin=margin, values={}, reason=paired)
    level = 1 - alpha
    own = {g: paired.own(k, level) for g, k in zip(groups, codes, strict=True)}
    rows = {g: float(paired.change.counts[k]["rows"]) for g, k in zip(groups, codes, strict=True)}
    values = {g: {**o._asdict(), "rows": rows[g]} for g, o in own.items()}
    why = " ".join(f"Group `{g}` {paired.reason[k]}." for g, k in zip(groups, codes, strict=True) if paired.reason[k])
    a, b = codes
    before, after = (float(v[a] - v[b]) for v in (paired.before, paired.after))
    few = isinstance(paired.change, InfluenceSamples) and 0 < min(o.differ for o in own.values()) < FEWEST
    if few:
        why = (
            f"Fewer than {FEWEST} people of a group are treated differently, which is too few for the paired law of "
            f"`{metric.name}`."
        )
    base = Change(metric=metric.name, groups=groups, margin=margin, values=values, before=before, after=after)
    if why:
        return replace(base, before=math.nan if not few else before, after=math.nan if not few else after, reason=why)
    answer = ask(paired, a, b, margin, draws)
    low, high, kind = paired.change.interval(a, b, level=level, ratio=False, draws=draws)
    return replace(
        base,
        estimate=after - before,
        interval=Interval(low=low, high=high, level=level, kind=kind),
        pvalue=answer.size,
        change_pvalue=answer.change,
        alike_pvalue=answer.alike,
        not_worse_pvalue=answer.not_worse,
        test=answer.test,
        verdict=ChangeVerdict.WORSE if answer.larger else ChangeVerdict.BETTER,  # of what is seen, until judged
    )


def _judged(changes: Sequence[Change], alpha: float) -> tuple[Change, ...]:
    """Adjust the p-values of each question over all changes, and say what is shown."""
    columns = {
        name: adjust(np.array([getattr(c, name) for c in changes], dtype=float))
        for name in ("pvalue", "alike_pvalue", "not_worse_pvalue")
    }
    judged = []
    for i, change in enumerate(changes):
        size, alike, not_worse = (float(column[i]) for column in columns.values())
        if change.reason:
            judged.append(change)
            continue
        verdict = (
            change.verdict
            if size <= alpha
            else ChangeVerdict.ALIKE
            if alike <= alpha
            else ChangeVerdict.NOT_WORSE
            if not_worse <= alpha
            else ChangeVerdict.INCONCLUSIVE
        )
        told = replace(change, pvalue_adjusted=size, alike_pvalue=alike, not_worse_pvalue=not_worse, verdict=verdict)
        judged.append(replace(told, reason=_sentence(told)))
    return tuple(judged)


def _sentence(c: Change) -> str:
    """Say what is seen and what is shown."""
    between = f"{c.groups[0]} and {c.groups[1]}"
    seen = f"The difference in {c.metric} between {between} goes from {c.before:+.3f} to {c.after:+.3f}"
    limit = "" if c.margin is None else f" by more than {c.margin:g}"
    said = {
        ChangeVerdict.WORSE: f"it is shown to be larger than before{limit}",
        ChangeVerdict.BETTER: f"it is shown to be smaller than before{limit}",
        ChangeVerdict.ALIKE: f"it is shown to have changed by less than {c.margin:g}" if c.margin else "",
        ChangeVerdict.NOT_WORSE: f"it is shown not to be larger by more than {c.margin:g}" if c.margin else "",
        ChangeVerdict.INCONCLUSIVE: "these people show neither a larger nor a smaller one",
    }[c.verdict]
    return f"{seen}; {said}."
