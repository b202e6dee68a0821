"""Group audit: do error and selection rates, or any other metric, differ between groups?

Hypotheses
    For a metric theta and groups a and b, H0: theta_a = theta_b, whatever else differs between the groups
    (the weak null of the paper). Several groups are compared with a reference or in all pairs, and one global
    test per metric asks whether all groups agree. With a margin, H0 is that the difference (or ratio) lies inside it;
    of the global finding, that no two groups are farther apart.
Statistic
    The difference of the groups' values divided by its standard error, recomputed on every permutation.
Reference distribution
    Group labels permuted among the rows that the null makes exchangeable, or nearly so:

    ==================  ====================================  ==========================================
    metrics             rows that swap groups                 how
    ==================  ====================================  ==========================================
    rates, F1           rows in the metric's denominator      exact: hypergeometric, summed
    balanced accuracy   rows of one outcome                   restricted score statistic, drawn
    AUC                 rows of one outcome                   DeLong variance, drawn or normal limit
    means of scores     all rows                              Welch statistic, drawn or t limit
    ==================  ====================================  ==========================================

    Rates are exact because, given who is in the denominator, equal rates make its rows exchangeable, whatever
    the base rates are. All other metrics need studentising, and hold their level in the limit only.
When it fails
    Few rows in the smaller group with a skewed value or an AUC near 1: the finding carries a warning. Rows that
    depend on each other (the same person twice) break every test here.

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

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from evenhand.audits.finding import Raw, columns_of
from evenhand.audits.group.comparison import compare_all, compare_pair, correlate
from evenhand.audits.group.max_t import joint_adjustment
from evenhand.audits.group.samples import check_needs, largest_difference, samples_of
from evenhand.audits.group.thresholds import with_curves
from evenhand.audits.margin import Margin, check_reach, parse_margin
from evenhand.audits.verdict import settle
from evenhand.errors import DataError, UsageError, near_matches
from evenhand.inference.multiplicity import CORRECTIONS
from evenhand.inference.pvalues import ALTERNATIVES
from evenhand.inference.samples import Draws
from evenhand.intake import Attribute, AuditData
from evenhand.kernels.shared.seeds import RngLike, seed_of
from evenhand.metrics import Metric, default_metrics, resolve
from evenhand.results import AuditResult
from evenhand.summaries import group_sizes

# With more comparisons than this none could be shown, and none of them would be read.
_MOST_COMPARISONS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOptions:
    """What a group audit was asked; see `audit_group`."""

    metrics: tuple[str, ...]
    reference: Mapping[str, str]
    compare: str
    ratio: bool
    margin: Margin | None
    alpha: float
    level: float
    correction: str


def audit_group(
    data: AuditData,
    metrics: Sequence[str | Metric] | str | Metric | None = None,
    *,
    reference: Mapping[str, str] | str | None = None,
    compare: str = "reference",
    ratio: bool = False,
    margin: float | str | None = None,
    alpha: float = 0.05,
    level: float | None = None,
    alternative: str = "two-sided",
    correction: str = "holm",
    n_resamples: int = 9999,
    method: str = "auto",
    permute: str = "auto",
    variance: str = "auto",
    midp: bool = False,
    workers: int = 1,
    progress: Callable[[str], None] | None = None,
    rng: RngLike = None,
) -> AuditResult:
    """Test whether metrics differ between groups.

    Parameters
    ----------
    data : AuditData
        From `evenhand.read` or `AuditData.from_arrays`.
    metrics : sequence of str or Metric, optional
        Names of the catalogue (`evenhand.METRICS`) or metrics of one's own. By default a few that the columns allow.
    reference : mapping of str to str, or str, optional
        The group each attribute's other groups are compared with, such as ``{"sex": "Male"}``; by default the
        largest group.
    compare : {"reference", "pairs"}
        Against the reference, or all pairs.
    ratio : bool
        Report ratios instead of differences. The p-value is the same: equal values have difference 0 and ratio 1.
    margin : float or str, optional
        What counts as negligible: ``0.05``, ``"ratio:0.9"``, ``"four-fifths"``. A ratio margin implies `ratio`. With
        one, `disparity` means shown beyond it and `equivalent` shown inside it; a margin that no value can exceed is
        refused.
    alpha : float
        Error rate over all findings.
    level : float, optional
        Coverage of each interval, ``1 - alpha`` by default; intervals are not adjusted for their number.
    alternative : {"two-sided", "greater", "less"}
        Of the group's value compared with the reference's.
    correction : {"holm", "bonferroni", "bh", "gatekeeping", "max-t", "none"}
        How p-values are adjusted over the findings. "max-t" uses the dependence between comparisons and is never
        stricter than Holm among them; it holds in large samples. "gatekeeping" is for the several audits of a
        plan; alone it is Holm.
    n_resamples : int
        Random permutations, where the distribution is not exact.
    method : {"auto", "exact", "permutation", "limit"}
        Reference distribution; "auto" takes the best that holds its level.
    permute : {"auto", "denominator", "outcome", "all"}
        Which rows swap groups. "all" and "outcome" are the paper's two schemes.
    variance : {"auto", "null", "unpooled", "none"}
        The studentising variance of rates under "all" and "outcome": "unpooled" is the form the paper prints, "none"
        does not studentise. Both are there for comparison and do not hold their level.
    midp : bool
        Mid-p for exact tests: more power, level not guaranteed.
    workers : int
        Threads for long draws; the answer does not depend on it.
    progress : callable, optional
        Called with a short text before each comparison.
    rng : int, Generator or None
        Seed.

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
    chosen, options = _prepare(data, metrics, reference, compare, ratio, margin, alpha, level, correction)
    draws = Draws(
        n_resamples=_whole("n_resamples", n_resamples, 99),
        seed=seed_of(rng),
        alternative=_one_of("alternative", alternative, ALTERNATIVES),
        method=_one_of("method", method, ("auto", "exact", "permutation", "limit")),
        permute=_one_of("permute", permute, ("auto", "denominator", "outcome", "all")),
        variance=_one_of("variance", variance, ("auto", "null", "unpooled", "none")),
        midp=midp,
        workers=_whole("workers", workers, 1),
    )
    raw = list(_questions(data, chosen, options, draws, progress or _silent))
    if correction == "max-t":
        raw = joint_adjustment(raw, data, chosen, draws)
    raw = with_curves(raw, data, chosen)
    result = AuditResult(
        audit="group",
        **columns_of(raw),
        options={
            **asdict(options),
            **{k: v for k, v in asdict(draws).items() if k not in ("name", "workers")},
        },
        notes=data.notes,
    )
    return settle([result], alpha=alpha, correction=correction)[0]


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
    chosen, options = _prepare(data, metrics, reference, compare, False, None, alpha, None, "none")
    for metric in chosen:
        for attribute in data.attributes:
            for a, b in _pairs(attribute, options):
                yield metric, attribute, a, b


def _questions(
    data: AuditData,
    chosen: Sequence[Metric],
    options: GroupOptions,
    draws: Draws,
    progress: Callable[[str], None],
) -> Iterator[Raw]:
    """Ask each metric of each attribute: every pair, and all groups at once where there are more than two."""
    for metric in chosen:
        named = replace(draws, name=f"group/{metric.name}")
        for attribute in data.attributes:
            progress(f"group: {metric.name} by {attribute.name}")
            samples = samples_of(metric, data, attribute)
            for a, b in _pairs(attribute, options):
                yield compare_pair(metric, attribute, samples, a, b, options, named)
            if len(attribute.labels) > 2:
                yield compare_all(metric, attribute, samples, options, named)
        for name in data.continuous:
            progress(f"group: {metric.name} by {name}")
            yield correlate(metric, data, name, options, named)


def _silent(text: str) -> None:
    pass


def _pairs(attribute: Attribute, options: GroupOptions) -> list[tuple[int, int]]:
    n = len(attribute.labels)
    if options.compare == "pairs":
        return [(a, b) for a in range(n) for b in range(a + 1, n)]
    b = attribute.labels.index(options.reference[attribute.name])
    return [(a, b) for a in range(n) if a != b]


def _prepare(
    data: AuditData,
    metrics: Sequence[str | Metric] | str | Metric | None,
    reference: Mapping[str, str] | str | None,
    compare: str,
    ratio: bool,
    margin: float | str | None,
    alpha: float,
    level: float | None,
    correction: str,
) -> tuple[tuple[Metric, ...], GroupOptions]:
    """Check the request against the data; the only place that raises errors about them."""
    if metrics is None:
        chosen = default_metrics(
            outcome_kind=data.outcome_kind,
            has_decision=data.decision is not None,
            has_score=data.score is not None,
        )
    else:
        chosen = resolve(metrics)
    for metric in chosen:
        check_needs(metric, data)
    if not data.attributes and not data.continuous:
        raise DataError("No group column was given. Name at least one in `groups`.")
    if not 0 < alpha < 1:
        raise UsageError(f"`alpha` must lie between 0 and 1; got {alpha}.")
    if level is not None and not 0 < level < 1:
        raise UsageError(f"`level` must lie between 0 and 1; got {level}.")
    bounds = parse_margin(margin)
    for metric in chosen:
        check_reach(bounds, metric.name, largest_difference(metric, data))
    options = GroupOptions(
        metrics=tuple(m.name for m in chosen),
        reference=_references(data, reference),
        compare=_one_of("compare", compare, ("reference", "pairs")),
        ratio=ratio if bounds is None else bounds.ratio,
        margin=bounds,
        alpha=alpha,
        level=1 - alpha if level is None else level,
        correction=_one_of("correction", correction, CORRECTIONS),
    )
    asked = len(chosen) * sum(len(_pairs(attribute, options)) for attribute in data.attributes)
    if asked > _MOST_COMPARISONS:
        widest = max(data.attributes, key=lambda a: len(a.labels))
        raise DataError(
            f"{len(chosen)} metrics and the {len(widest.labels):,} groups of `{widest.name}` make {asked:,} "
            f"comparisons; at most {_MOST_COMPARISONS:,} are allowed. Compare with a reference in place of all pairs, "
            f"join groups, or name fewer metrics."
        )
    if bounds is not None and ratio and not bounds.ratio:
        raise UsageError(
            f"`ratio` was asked with the difference margin {margin}. Give a ratio margin such as `ratio:0.9`."
        )
    return chosen, options


def _references(data: AuditData, wanted: Mapping[str, str] | str | None) -> dict[str, str]:
    """Name each attribute's reference group: the user's choice, or the group with the most rows."""
    names = [a.name for a in data.attributes]
    if isinstance(wanted, str):
        if len(names) != 1:
            raise UsageError(
                f"`reference` is the single label `{wanted}` but there are {len(names)} attributes. "
                f"Give a mapping such as {{{(names or ['sex'])[0]!r}: {wanted!r}}}."
            )
        wanted = {names[0]: wanted}
    wanted = dict(wanted or {})
    for name in wanted:
        if name not in names:
            raise UsageError(
                f"`reference` names the attribute `{name}`, which is not audited.{near_matches(name, names)}"
            )
    found: dict[str, str] = {}
    for attribute in data.attributes:
        label = str(wanted.get(attribute.name, attribute.labels[int(group_sizes(data, attribute).argmax())]))
        if label not in attribute.labels:
            raise UsageError(
                f"Reference `{attribute.name}={label}` is not a group in the data."
                f"{near_matches(label, attribute.labels)}"
            )
        found[attribute.name] = label
    return found


def _one_of(name: str, value: str, allowed: Sequence[str]) -> str:
    if value not in allowed:
        raise UsageError(f"`{name}` is `{value}`; allowed: {', '.join(f'`{a}`' for a in allowed)}.")
    return value


def _whole(name: str, value: int, least: int) -> int:
    if isinstance(value, bool) or int(value) != value or value < least:
        raise UsageError(f"`{name}` must be a whole number of at least {least}; got {value}.")
    return int(value)
