"""Which combinations of attributes are treated differently from everybody else?

Hypotheses
    For every subgroup that up to `depth` conditions describe: its value of the metric is that of everybody else.
Statistic
    The evidence of a subgroup is minus the logarithm of its own p-value, which makes small and large subgroups
    comparable. For a rate it is the exact chance of a count of successes at least as far from its mean when successes
    are dealt out at random among the people of the rate's denominator; for a mean, an AUC, a calibration curve and a
    mean of rates it is that of a studentised difference, made anew in every permutation (`evenhand.inference.scan`).
Reference distribution
    Random permutations inside the denominator, shared by all subgroups: a draw of the cells' counts gives the counts of
    all subgroups. The adjusted p-value is the chance that the largest evidence reaches the one seen, step-down
    [westfall1993]. Subgroups that could never be shown are left out first [tarone1990]. Several metrics share the error
    rate evenly, and a metric that is wholly shown hands its part on.
When it fails
    Rows must be independent people. The error rate is exact when no subgroup differs; where some differ, that of the
    others is measured, not proved. Who was not asked about cannot be found: the search sees the named attributes only.

Symbols
    ===========  ==================================================  ==========
    code name    meaning                                             shape
    ===========  ==================================================  ==========
    cell         people who agree in all attributes                  (records,)
    lattice      which cells make which subgroup                     (S, C)
    evidence     minus log of a subgroup's own p-value               (S,)
    critical     the evidence that a single subgroup must reach      number
    ===========  ==================================================  ==========
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from evenhand.audits.finding import Raw, columns_of, not_computable
from evenhand.audits.group.samples import metrics_for
from evenhand.audits.needs import check_independent
from evenhand.audits.options import complete, record, with_options
from evenhand.audits.scan.defaults import searched_by_default
from evenhand.audits.scan.description import Described, describe
from evenhand.audits.scan.discoveries import reported_rate
from evenhand.audits.scan.families import check_searchable
from evenhand.audits.scan.findings import context_of, finding_of
from evenhand.audits.scan.options import ScanOptions, ScanSetting
from evenhand.audits.scan.parts import find_and_confirm
from evenhand.audits.scan.search import Search, search
from evenhand.audits.scan.subgroups import Subgroups, asked_attributes, check_hierarchy, subgroups_of
from evenhand.errors import DataError
from evenhand.intake import AuditData
from evenhand.kernels.shared.seeds import seed_of
from evenhand.metrics import Metric
from evenhand.results import AuditResult


@with_options(ScanOptions)
def audit_scan(data: AuditData, asked: ScanOptions) -> AuditResult:
    """Search all combinations of attributes for subgroups that are treated differently.

    Parameters
    ----------
    data : AuditData
        From `evenhand.read` or `AuditData.from_arrays`.

    Returns
    -------
    AuditResult
        One finding for each subgroup that is shown to differ and says something of its own, most evidence first, and
        a few more that have the most evidence of the others.

    Examples
    --------
    >>> import numpy as np
    >>> import evenhand as eh
    >>> rng = np.random.default_rng(1)
    >>> sex, race, job = (rng.choice(list(values), 4000) for values in ("FM", "ABC", "xyz"))
    >>> decision = rng.random(4000) < np.where((sex == "F") & (race == "C"), 0.25, 0.4)
    >>> groups = {"sex": sex, "race": race, "job": job}
    >>> data = eh.AuditData.from_arrays(decision=decision, groups=groups)
    >>> [f.groups[0] for f in eh.audit_scan(data, rng=0) if str(f.verdict) == "disparity"]
    ['sex=F & race=C']
    """
    setting = _prepare(data, asked)
    subgroups = subgroups_of(data, setting.attributes, setting)
    searched = (search if setting.split is None else find_and_confirm)(data, subgroups, setting)
    if setting.control == "fdr":
        searched = reported_rate(searched, setting.alpha)
    raw = [found for one in searched for found in _told(one, subgroups, setting)]
    return AuditResult(
        audit="scan",
        **columns_of(raw),
        options=record(setting, metrics=tuple(m.name for m in setting.metrics)),
        notes=data.notes,
    )


def _told(searched: Search, subgroups: Subgroups, setting: ScanSetting) -> Iterator[Raw]:
    """Yield the findings of one metric: what is shown, in its shortest words, then what comes next."""
    family = searched.family
    if not family.size.size:
        reason = (
            f"No subgroup of at least {setting.smallest} people could be shown to differ, whatever its "
            f"{searched.metric.name}: too few people, or everybody is counted alike."
        )
        yield not_computable("scan", searched.metric.name, ("every subgroup", setting.reference), reason)
        return
    context = context_of(searched, subgroups, setting)
    shown = np.flatnonzero(searched.pvalue <= setting.alpha).tolist()
    own = describe(searched, shown, setting.alpha)
    places = [one.index for one in own]
    for one in own:
        yield finding_of(context, one, places)
    order = np.argsort(-family.evidence, kind="stable")
    for i in _next(order.tolist(), shown, setting.show):
        yield finding_of(context, Described(index=i, own=False), places)


def _next(order: Sequence[int], shown: Sequence[int], number: int) -> list[int]:
    """Return the subgroups with the most evidence of those that are not shown."""
    gone = set(shown)
    return [i for i in order if i not in gone][:number]


def _prepare(data: AuditData, asked: ScanOptions) -> ScanSetting:
    """Check the request against the data; the only place that raises errors about them."""
    check_independent(data, "The scan")
    if data.weight is not None:
        raise DataError("The scan does not take sampling weights. Read the data without `weight=`.")
    metrics = _metrics(data, asked)
    names = asked_attributes(data, asked.attributes)
    if not names:
        raise DataError("No group column was given. Name at least one in `groups=`, or features in `attributes`.")
    check_hierarchy(asked.hierarchy, names)
    return complete(
        ScanSetting,
        asked,
        metrics=metrics,
        attributes=names,
        level=asked.coverage,
        seed=seed_of(asked.rng),
    )


def _metrics(data: AuditData, asked: ScanOptions) -> tuple[Metric, ...]:
    """Return the metrics that are searched, or say why one cannot be."""
    chosen = metrics_for(data, asked.metrics)
    if asked.metrics is None:
        chosen = searched_by_default(chosen)
    for metric in chosen:
        check_searchable(metric, data, asked.reference)
    if not chosen:
        raise DataError("The scan needs a decision or a score column. Name one with `decision=` or `score=`.")
    return chosen
