"""Comparison within strata: samples of a metric by group and stratum, and what is shown beside the conditional answer.

Group `a` is compared with group `b` only with people of the same stratum, such as the same job. The crude comparison
answers another question; it is shown beside, with a warning where it points the other way (Simpson's paradox).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from evenhand.arrays import AnyArray, FloatArray, IntArray
from evenhand.audits.finding import Raw
from evenhand.audits.group.evidence import GroupEvidence, HomogeneityEvidence, StrataEvidence, StratumEvidence
from evenhand.errors import DataError, UsageError
from evenhand.inference.design.conditional import ConditionalClusters
from evenhand.inference.samples import Draws, Samples
from evenhand.inference.strata.aucs import StratifiedAucs
from evenhand.inference.strata.averages import StratifiedAverage
from evenhand.inference.strata.means import StratifiedMeans
from evenhand.inference.strata.rates import StratifiedRates
from evenhand.inference.strata.samples import StratifiedSamples
from evenhand.intake import Attribute, AuditData
from evenhand.metrics import METRICS, Metric
from evenhand.results.evidence import Ends
from evenhand.summaries import Sums, weight_sums

_MOST_STRATA = 20  # shown of one finding
# Kinds of metric that are not compared within strata, with those that are and say something alike.
_INSTEAD = {"calibration": "mean_residual", "gaps": "aod", "rows": "selection_rate", "table": "tpr` or `tnr"}
_AVERAGES = {"balanced_accuracy": ("tpr", "tnr"), "aod": ("tpr", "fpr")}
_AGREEMENT = (
    "The two-sided interval leaves out no difference just when the p-value is at most one minus its level. "
    "One-sided p-values come from the exact law and one-sided intervals from the score, so they can differ a little."
)

Values = Callable[[Metric, AuditData], FloatArray]


def check_strata(metric: Metric, data: AuditData, permute: str, variance: str) -> None:
    """Refuse a metric that is not compared within strata, and ways to permute that would leave the strata."""
    averaged = metric.kind == "table" and metric.name in _AVERAGES
    weighted = data.weight is not None and (averaged or metric.transform != "identity")
    if (metric.kind in _INSTEAD and not averaged) or weighted:
        how = " with sampling weights" if weighted else ""
        raise DataError(
            f"Metric `{metric.name}`{how} is not compared within strata. Ask for `{_INSTEAD.get(metric.kind, 'tpr')}`, "
            "or leave `strata=` out."
        )
    if permute in ("all", "outcome") or variance != "auto":
        raise UsageError(
            "With `strata=` labels are permuted within strata and the denominator, so `permute` and `variance` must be "
            f"left at `auto`; got `{permute}` and `{variance}`."
        )


def stratified_samples(metric: Metric, sums: Sums, attribute: Attribute, values: Values) -> StratifiedSamples:
    """Make the samples that a metric compares between the groups of an attribute within the strata of the data.

    Parameters
    ----------
    metric : Metric
        Checked with `check_strata`.
    sums : Sums
        Of data with strata.
    attribute : Attribute
        Whose groups.
    values : callable
        Returns each record's value of a metric that is a mean.
    """
    data = sums.data
    assert data.strata is not None
    where: dict[str, Any] = {
        "codes": attribute.codes,
        "strata": data.strata.codes,
        "shape": (len(attribute.labels), len(data.strata.labels)),
    }
    if metric.kind == "auc":
        known: dict[str, Any] = {
            "score": data.score,
            "outcome": data.outcome,
            "count": data.count,
            "weight": data.weight,
        }
        return StratifiedAucs(**known, **where, empty_reason=metric.empty)
    if metric.kind == "mean" and data.moments is None:
        record: dict[str, Any] = {"value": values(metric, data), "count": data.count, "weight": data.weight}
        return StratifiedMeans(**record, **where, empty_reason=metric.empty)
    if metric.kind == "mean" and data.moments is not None:
        moments = data.moments[metric.value]
        w, ww = weight_sums(data)
        parts = {"n": data.count, "w": w, "ww": ww, "wv": moments.wv, "wwv": moments.wwv, "wwvv": moments.wwvv}
        summed = {name: sums.in_strata(attribute, part) for name, part in parts.items()}
        return StratifiedMeans.from_moments(summed, empty_reason=metric.empty)
    if metric.name in _AVERAGES:
        rates = [_rates(METRICS[name], sums, attribute, metric.empty) for name in _AVERAGES[metric.name]]
        return StratifiedAverage(rates, (0.5, 0.5))
    if data.weight is not None:
        return _weighted_rates(metric, sums, attribute)
    return _rates(metric, sums, attribute, metric.empty)


def _rates(metric: Metric, sums: Sums, attribute: Attribute, empty_reason: str) -> StratifiedRates:
    table = sums.confusion_in_strata(attribute)
    return StratifiedRates(
        table[..., list(metric.numerator)].sum(-1),
        table[..., list(metric.denominator)].sum(-1),
        rows=table.sum((1, 2)),
        f1=metric.transform == "f1",
        empty_reason=empty_reason,
    )


def _weighted_rates(metric: Metric, sums: Sums, attribute: Attribute) -> StratifiedMeans:
    """With sampling weights a rate is a weighted mean of 0 and 1 over the rows of its denominator."""
    data = sums.data
    assert data.strata is not None
    inside, yes = np.isin(sums.cells, metric.denominator), np.isin(sums.cells, metric.numerator)
    if data.moments is None:
        return StratifiedMeans(
            value=yes[inside].astype(np.float64),
            codes=attribute.codes[inside],
            strata=data.strata.codes[inside],
            shape=(len(attribute.labels), len(data.strata.labels)),
            count=data.count[inside],
            weight=np.asarray(data.weight)[inside],
            empty_reason=metric.empty,
        )
    w, ww = weight_sums(data)
    parts: dict[str, AnyArray] = {"n": data.count * inside, "w": w * inside, "ww": ww * inside, "wv": w * yes}
    parts |= {"wwv": ww * yes, "wwvv": ww * yes}
    summed = {name: sums.in_strata(attribute, part) for name, part in parts.items()}
    return StratifiedMeans.from_moments(summed, empty_reason=metric.empty)


def with_strata(
    raw: Raw,
    samples: Samples,
    crude: Samples,
    strata: Attribute | None,
    pair: tuple[int, int],
    level: float,
    draws: Draws,
) -> Raw:
    """Add to a comparison within strata what stands beside it: the strata, and the crude comparison.

    Parameters
    ----------
    raw : Raw
        From `compare_pair` on stratified samples.
    samples, crude : Samples
        Compared within strata and without.
    strata : Attribute or None
        Whose labels are the strata.
    pair : tuple of int
        Codes of the group and its reference.
    level : float
        Of the intervals.
    draws : Draws
        How the crude interval is made.

    Returns
    -------
    Raw
        Without a key for joint adjustment or thresholds, which know the crude question only. A comparison that is not
        within strata is returned as it is.
    """
    evidence, finding = raw.evidence, raw.finding
    if strata is None or not isinstance(samples, StratifiedSamples | ConditionalClusters):
        return raw
    if math.isnan(finding.pvalue):
        return replace(raw, pair=None)
    assert isinstance(evidence, GroupEvidence)
    ratio = finding.measure.endswith("_ratio_conditional")
    both = replace(draws, alternative="two-sided", method="limit" if crude_is_drawn(crude) else "auto")
    low, high, _ = crude.interval(*pair, level=level, ratio=ratio, draws=both)
    one, two = (float(v) for v in crude.estimate[list(pair)])
    plain = crude.difference(*pair) if not ratio else one / two if two else math.nan
    none = 1.0 if ratio else 0.0
    turned = (plain - none) * (finding.estimate - none) < 0
    known = samples.coverage(*pair)
    # Strata of clustered rows depend on each other: they are not compared among themselves.
    same = samples.homogeneity(*pair, ratio=ratio) if isinstance(samples, StratifiedSamples) else None
    shown = StrataEvidence(
        name=strata.name,
        strata=known.strata,
        compared=known.compared,
        rows=known.rows,
        rows_compared=known.rows_compared,
        crude=plain,
        crude_interval=Ends(low=low, high=high, level=level),
        homogeneity=None
        if same is None
        else HomogeneityEvidence(statistic=same.statistic, df=same.df, pvalue=same.pvalue),
        reversed=bool(turned),
        agreement=_AGREEMENT if isinstance(samples, StratifiedRates) else "",
        largest=_largest(samples, strata, pair, level, ratio) if isinstance(samples, StratifiedSamples) else (),
    )
    said = f"{evidence.fact} {_words(shown, ratio)}" if evidence.fact else _words(shown, ratio)
    warnings = (*(evidence.warnings or ()), *(_warnings(shown, finding.estimate, raw, ratio)))
    return replace(raw, pair=None, evidence=replace(evidence, strata=shown, fact=said, warnings=warnings))


def crude_is_drawn(crude: Samples) -> bool:
    """Whether a crude interval would be drawn at random: it stands beside and is made by the limit law then."""
    return hasattr(crude, "_law_once")


def _words(shown: StrataEvidence, ratio: bool) -> str:
    kind = "ratio" if ratio else "difference"
    sign = "" if ratio else "+"
    left = shown.rows - shown.rows_compared
    text = (
        f"Compared within {shown.compared:,} of {shown.strata:,} strata of {shown.name}; without strata the {kind} is "
        f"{shown.crude:{sign}.3f}."
    )
    if left:
        text += (
            f" {left:,} of {shown.rows:,} rows are in strata with one of the two groups only and carry no information."
        )
    return text


def _warnings(shown: StrataEvidence, estimate: float, raw: Raw, ratio: bool) -> tuple[str, ...]:
    said = []
    sign, interval = "" if ratio else "+", raw.finding.interval
    if shown.reversed and interval is not None:
        kind = "ratio" if ratio else "difference"
        said.append(
            f"The {kind} points the other way without strata (Simpson's paradox): {shown.crude:{sign}.3f} "
            f"({shown.crude_interval.low:{sign}.3f} to {shown.crude_interval.high:{sign}.3f}) for everybody, "
            f"{estimate:{sign}.3f} ({interval.low:{sign}.3f} to {interval.high:{sign}.3f}) within strata of "
            f"{shown.name}."
        )
    same = shown.homogeneity
    if same is not None and same.pvalue <= 0.01:
        said.append(
            f"The strata differ among themselves (homogeneity {same.statistic:.1f} on {same.df} degrees of freedom, "
            f"p = {same.pvalue:.2g}): one number over all of them says less than the table of strata."
        )
    return tuple(said)


def _largest(
    samples: StratifiedSamples, strata: Attribute, pair: tuple[int, int], level: float, ratio: bool
) -> tuple[StratumEvidence, ...]:
    """Return the strata that count most, with their own differences."""
    if isinstance(samples, StratifiedAverage):
        return ()
    whole = samples.pair(*pair)
    top = whole.largest(_MOST_STRATA)
    places: IntArray = top.strata
    low, high = samples.stratum_limits(*pair, places, level, ratio=ratio)
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = top.first / top.second if ratio else top.first - top.second
    return tuple(
        StratumEvidence(
            label=strata.labels[int(places[k])],
            first=float(top.first[k]),
            second=float(top.second[k]),
            first_rows=float(top.first_rows[k]),
            second_rows=float(top.second_rows[k]),
            estimate=float(gap[k]),
            low=float(low[k]),
            high=float(high[k]),
            share=float(top.weight[k]) / whole.total,
        )
        for k in range(places.size)
    )
