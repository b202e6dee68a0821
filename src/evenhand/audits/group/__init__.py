"""Group audit: do error and selection rates, or any other metric, differ between groups?

Hypotheses
    For a metric theta and groups a and b, H0: theta_a = theta_b, whatever else differs between the groups
    (the weak null of the paper); of the mean absolute odds difference, H0: tpr is equal and so is fpr. Several groups
    are compared with a reference or in all pairs, and one global test per metric asks whether all groups agree. With a
    margin, H0 is that the difference (or ratio) lies inside it; of the global finding, that no two groups are farther
    apart. A group may also be compared with the highest value, whichever group has it (H0: no group's is higher), with
    all other groups together, or with everybody.
    With strata the value compared is the conditional one: groups are held against each other within strata.
Statistic
    The difference of the groups' values divided by its standard error, recomputed on every permutation.
Reference distribution
    Group labels permuted among the rows that the null makes exchangeable, or nearly so:

    ==================  ====================================  ==========================================
    metrics             rows that swap groups                 how
    ==================  ====================================  ==========================================
    rates, F1           rows in the metric's denominator      exact: hypergeometric, summed
    balanced accuracy   rows of one outcome                   restricted score statistic, drawn
    aod                 none: the laws of both rates          exact deviates of tpr and fpr, profiled
    aod_abs             none: the laws of both rates          exact: smaller of two independent p-values
    AUC                 rows of one outcome                   DeLong variance, drawn or normal limit
    means of scores     all rows                              Welch statistic, drawn or t limit
    ==================  ====================================  ==========================================

    Rates are exact because, given who is in the denominator, equal rates make its rows exchangeable, whatever
    the base rates are. All other metrics need studentising, and hold their level in the limit only.
    People of unknown group (`group.unknown`) and guessed groups (`group.guessed`) have questions of their own: what
    every assignment of people to groups has in common, and an estimate under an assumption that the finding names.
When it fails
    Few rows in the smaller group with a skewed value or an AUC near 1: the finding carries a warning. Rows that
    depend on each other (the same person twice) break every test here unless `cluster` says which belong together:
    whole clusters then swap groups, or a score test takes the clusters' variance (`evenhand.inference.design`).

Symbols
    =============  =====================  =========================
    code           [diciccio2020]         shape
    =============  =====================  =========================
    estimate       T(D_A, D_B)            one per pair of groups
    statistic      S(X, Y), sec. 3.3      one per pair of groups
    n_resamples    n_p                    number of permutations
    n_bootstrap    n_b, eq. (1)           bootstrap trials
    =============  =====================  =========================
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import combinations

from evenhand.audits.finding import Raw, columns_of
from evenhand.audits.group.by_word import check_words, compare_by_word, why_not
from evenhand.audits.group.comparison import compare_all, compare_pair, correlate
from evenhand.audits.group.completed import known_groups
from evenhand.audits.group.design import has_design
from evenhand.audits.group.guessed import compare_guessed, guessed_references
from evenhand.audits.group.max_t import joint_adjustment
from evenhand.audits.group.options import GroupOptions, GroupSetting
from evenhand.audits.group.samples import check_needs, crude_samples, largest_difference, metrics_for, samples_of
from evenhand.audits.group.strata import check_strata, with_strata
from evenhand.audits.group.thresholds import with_curves
from evenhand.audits.group.unknown import compare_unknown
from evenhand.audits.margin import check_reach, parse_margin
from evenhand.audits.options import ask, complete, record, with_options
from evenhand.audits.reference import groups_among, references, words_among
from evenhand.errors import DataError, UsageError
from evenhand.inference.samples import Draws
from evenhand.intake import Attribute, AuditData
from evenhand.kernels.shared.seeds import seed_of
from evenhand.metrics import Metric
from evenhand.results import AuditResult
from evenhand.summaries import Sums

# With more comparisons than this none could be shown, and none of them would be read.
_MOST_COMPARISONS = 2000


@with_options(GroupOptions)
def audit_group(data: AuditData, asked: GroupOptions) -> AuditResult:
    """Test whether metrics differ between groups.

    Parameters
    ----------
    data : AuditData
        From `evenhand.read` or `AuditData.from_arrays`.

    Returns
    -------
    AuditResult
        One finding per attribute, metric and comparison, and a global one where there are more than two groups.

    Examples
    --------
    >>> import evenhand as eh
    >>> data = eh.datasets.planted(rows=4000, fnr=(0.1, 0.4), rng=0)
    >>> [(f.measure, str(f.verdict)) for f in eh.audit_group(data, metrics=["fnr", "fpr"], rng=0)]
    [('fnr', 'disparity'), ('fpr', 'inconclusive')]
    """
    setting = _prepare(data, asked)
    asked_too = [f.name for f in fields(Draws) if f.name not in ("seed", "name")]  # options of the same names
    draws = Draws(seed=seed_of(setting.rng), **{name: getattr(setting, name) for name in asked_too})
    raw = list(_questions(data, setting, draws))
    if setting.correction == "max-t":
        raw = joint_adjustment(raw, data, setting.metrics, draws)
    raw = with_curves(raw, data, setting.metrics)
    return AuditResult(
        audit="group",
        **columns_of(raw),
        options=record(setting, metrics=tuple(m.name for m in setting.metrics), seed=draws.seed),
        notes=data.notes,
    )


def comparisons(
    data: AuditData,
    metrics: Sequence[str | Metric] | str | Metric | None = None,
    *,
    reference: Mapping[str, str] | str | None = None,
    compare: str = "reference",
    alpha: float = 0.05,
) -> Iterator[tuple[Metric, Attribute, int, int]]:
    """Yield each pair of groups that an audit of these data would compare; errors are the audit's.

    Parameters
    ----------
    data, metrics, reference, compare, alpha
        As for `audit_group`.

    Yields
    ------
    tuple
        Metric, attribute, and the codes of the group and of its reference.
    """
    wanted = {"metrics": metrics, "reference": reference, "compare": compare, "alpha": alpha}
    setting = _prepare(data, ask(GroupOptions, wanted))
    for name, word in words_among(data, reference).items():
        raise UsageError(f"Reference `{name}={word}` is no group, and two groups are needed here. Name one.")
    for metric in setting.metrics:
        for attribute in data.attributes:
            for a, b in _pairs(attribute, setting):
                yield metric, attribute, a, b


def _questions(data: AuditData, setting: GroupSetting, draws: Draws) -> Iterator[Raw]:
    """Ask each metric of each attribute: every pair, and all groups at once where there are more than two."""
    say, sums, words = setting.say, Sums(data), words_among(data, setting.reference)
    for metric in setting.metrics:
        asked = replace(setting, ratio=metric.compare == "ratio" if metric.compare else setting.ratio)
        named = replace(draws, name=f"group/{metric.name}")
        for attribute in data.attributes:
            say(f"group: {metric.name} by {attribute.name}")
            if attribute.unknown is not None and attribute.name not in words:
                for pair in _pairs(attribute, setting):
                    yield compare_unknown(metric, sums, attribute, pair, asked, named)
                continue
            samples = samples_of(metric, sums, attribute)
            if attribute.name in words:  # among people whose group is known
                yield from compare_by_word(metric, attribute, samples, data, asked, named)
                if attribute.unknown is not None:
                    continue
            crude = samples if data.strata is None else crude_samples(metric, sums, attribute)
            for a, b in _pairs(attribute, setting):
                raw = compare_pair(metric, attribute, samples, a, b, asked, named)
                yield with_strata(raw, samples, crude, data.strata, (a, b), asked.level, named)
            # With the highest group every other one is compared, so the largest gap is among these findings already.
            if len(attribute.labels) > 2 and (attribute.name, "highest") not in words.items():
                yield compare_all(metric, attribute, samples, asked, named)
        for name in data.probabilities:
            say(f"group: {metric.name} by {name}")
            yield from compare_guessed(metric, data, name, asked)
        for name in data.continuous:
            say(f"group: {metric.name} by {name}")
            yield correlate(metric, data, name, asked, named)


def _pairs(attribute: Attribute, setting: GroupSetting) -> list[tuple[int, int]]:
    groups = known_groups(attribute)
    if setting.compare == "pairs":
        return list(combinations(groups, 2))
    if setting.reference[attribute.name] not in attribute.labels:
        return []  # compared with no single group
    b = attribute.labels.index(setting.reference[attribute.name])
    return [(a, b) for a in groups if a != b]


def _references(data: AuditData, wanted: Mapping[str, str] | str | None) -> dict[str, str]:
    """Name the reference of each attribute, known or guessed."""
    guessed = guessed_references(data, wanted)
    if isinstance(wanted, Mapping):
        wanted = {name: label for name, label in wanted.items() if name not in guessed}
    elif not data.attributes and guessed:
        wanted = None
    return {**references(data, wanted), **guessed}


def _prepare(data: AuditData, asked: GroupOptions) -> GroupSetting:
    """Check the request against the data; the only place that raises errors about them."""
    words = words_among(data, asked.reference)
    chosen = metrics_for(data, asked.metrics)
    if asked.metrics is None:  # of those that nobody named, the ones that can be compared so
        chosen = tuple(m for m in chosen if not any(why_not(word, m, data) for word in words.values())) or chosen
    for metric in chosen:
        check_needs(metric, data)
        if data.strata is not None and not has_design(data):
            check_strata(metric, data, asked.permute, asked.variance)
    check_words(words, chosen, asked, data)
    if not data.attributes and not data.continuous and not data.probabilities:
        raise DataError("No group column was given. Name at least one in `groups=`.")
    margin = parse_margin(asked.margin)
    for metric in chosen:
        check_reach(margin, metric.name, largest_difference(metric, data))
    if margin is not None and asked.ratio and not margin.ratio:
        raise UsageError(
            f"`ratio=` was asked with the difference margin {asked.margin}. Give a ratio margin such as `ratio:0.9`."
        )
    setting = complete(
        GroupSetting,
        asked,
        metrics=chosen,
        reference=_references(data, groups_among(data, asked.reference)) | words,
        ratio=asked.ratio if margin is None else margin.ratio,
        margin=margin,
        level=asked.coverage,
    )
    comparisons = len(chosen) * sum(len(_pairs(a, setting)) or len(a.labels) for a in data.attributes)
    if comparisons > _MOST_COMPARISONS:
        widest = max(data.attributes, key=lambda a: len(a.labels))
        raise DataError(
            f"{len(chosen)} metrics and the {len(widest.labels):,} groups of `{widest.name}` make {comparisons:,} "
            f"comparisons; at most {_MOST_COMPARISONS:,} are allowed. Compare with a reference in place of all pairs, "
            f"join groups, or name fewer metrics."
        )
    return setting
