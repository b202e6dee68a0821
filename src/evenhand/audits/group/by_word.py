"""Groups compared with no single one of them: with the highest, with all others together, or with everybody."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from evenhand.audits.detectable import plan_pair
from evenhand.audits.finding import Raw
from evenhand.audits.group.comparison import compare_pair
from evenhand.audits.group.evidence import GroupEvidence
from evenhand.audits.group.highest import compare_highest
from evenhand.audits.group.options import GroupOptions, GroupSetting
from evenhand.audits.group.samples import samples_of
from evenhand.errors import UsageError
from evenhand.inference.overall import OverallSamples
from evenhand.inference.rates.samples import RateSamples
from evenhand.inference.rates.weighted import WeightedRateSamples
from evenhand.inference.samples import Draws, Samples
from evenhand.intake import Attribute, AuditData
from evenhand.metrics import Metric
from evenhand.results import Verdict
from evenhand.summaries import Sums, cells_of, weight_sums


def compare_by_word(
    metric: Metric, attribute: Attribute, samples: Samples, data: AuditData, options: GroupSetting, draws: Draws
) -> Iterator[Raw]:
    """Compare each group as the word says that stands in place of a reference.

    Parameters
    ----------
    metric, attribute, samples, options, draws
        As for `compare_pair`.
    data : AuditData
        Where the samples are from.

    Yields
    ------
    Raw
        With a warning where people of unknown group are left out.
    """
    left_out = int(data.count[attribute.codes == attribute.unknown].sum()) if attribute.unknown is not None else 0
    for raw in _compared(metric, attribute, samples, data, options, draws):
        if left_out:
            people = "1 person of unknown group is" if left_out == 1 else f"{left_out:,} people of unknown group are"
            said = f"{people} left out: this holds for people whose group is known."
            raw = replace(raw, evidence=replace(raw.evidence, warnings=(*(raw.evidence.warnings or ()), said)))
        yield raw


def _compared(
    metric: Metric, attribute: Attribute, samples: Samples, data: AuditData, options: GroupSetting, draws: Draws
) -> Iterator[Raw]:
    word = options.reference[attribute.name]
    if word == "highest":
        assert isinstance(samples, RateSamples | WeightedRateSamples)
        yield from compare_highest(metric, attribute, samples, options)
        return
    groups = [k for k in range(len(attribute.labels)) if k != attribute.unknown]
    if len(groups) == 2 and word == "rest":  # each is the other's rest: one question
        groups = [k for k in groups if attribute.labels[k] != _larger(attribute, data, groups)]
    for a in groups:
        alone = with_rest(attribute, a, word)
        pair = samples_of(metric, Sums(data), alone)
        everybody = word == "overall" and not any(pair.reason[:2])
        compared = OverallSamples(pair, share=_share(metric, data, alone)) if everybody else pair
        raw = compare_pair(metric, alone, compared, 0, 1, options, draws)
        evidence = raw.evidence
        assert isinstance(evidence, GroupEvidence)
        if everybody and raw.finding.verdict is not Verdict.NOT_COMPUTABLE:
            names = (alone.group_name(0), f"{attribute.name}=rest")
            said, size = plan_pair(pair, (0, 1), names, options.alpha, None, ratio=False)
            evidence = replace(evidence, planning=f"Against the rest: {said}", sample_size=size)
        yield replace(raw, pair=None, evidence=replace(evidence, reference=word))


def with_rest(attribute: Attribute, a: int, word: str) -> Attribute:
    """Return an attribute of one group and all others together; people of unknown group stay apart.

    Examples
    --------
    >>> attribute = Attribute(name="g", labels=("a", "b", "c"), codes=np.array([0, 1, 2, 1]))
    >>> joined = with_rest(attribute, 1, "rest")
    >>> joined.labels, joined.codes.tolist()
    (('b', 'rest'), [1, 0, 1, 0])
    """
    unknown, labels = attribute.unknown, (attribute.labels[a], word)
    codes = np.where(attribute.codes == a, 0, 1)
    if unknown is None:
        return Attribute(name=attribute.name, labels=labels, codes=codes)
    codes = np.where(attribute.codes == unknown, 2, codes)
    return Attribute(name=attribute.name, labels=(*labels, attribute.labels[unknown]), codes=codes, unknown=2)


def why_not(word: str, metric: Metric, data: AuditData) -> str:
    """Say why a metric cannot be compared so: the end of a sentence, or empty."""
    if word == "rest":
        return ""
    if data.strata is not None or data.cluster is not None or data.survey_strata is not None:
        return "is not compared so within strata, clusters or survey designs"
    if word == "highest" and metric.kind not in ("rate", "scoring"):
        return "is no rate"
    if word == "overall" and (metric.kind not in ("rate", "scoring", "mean") or metric.transform != "identity"):
        return "of everybody is no average of the groups' values"
    return ""


def check_words(words: Mapping[str, str], metrics: Sequence[Metric], asked: GroupOptions, data: AuditData) -> None:
    """Refuse what cannot be compared with the highest group, the rest or everybody."""
    for name, word in words.items():
        if asked.compare == "pairs":
            raise UsageError(
                f"`compare=` is `pairs` and the reference of `{name}` is `{word}`. Leave one of them out: pairs have "
                "no reference."
            )
        if word == "highest" and asked.alternative != "two-sided":
            raise UsageError(
                "With the reference `highest` the direction is given, so `alternative` cannot be "
                f"`{asked.alternative}`. Leave it at `two-sided`."
            )
        for metric in metrics:
            why = why_not(word, metric, data)
            if why:
                raise UsageError(
                    f"Metric `{metric.name}` {why}, so it has no comparison with `{word}`. Name a group of `{name}` as "
                    f"reference, or `rest`, or leave `{metric.name}` out of `metrics=`."
                )


def _larger(attribute: Attribute, data: AuditData, groups: Sequence[int]) -> str:
    rows = np.bincount(attribute.codes, weights=data.count, minlength=len(attribute.labels))
    return attribute.labels[max(groups, key=lambda k: (float(rows[k]), -k))]


def _share(metric: Metric, data: AuditData, alone: Attribute) -> float:
    """Return the share of the first group in the weight that the metric averages over."""
    weight = weight_sums(data)[0]
    if metric.kind == "rate":
        weight = weight * np.isin(cells_of(data), metric.denominator)
    own, rest = np.bincount(alone.codes, weights=weight, minlength=2)[:2]
    return float(own / (own + rest))
