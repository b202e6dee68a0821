"""Comparison of two groups that are guessed: each person has a probability of every group, and nobody's is known.

Two findings, each with its assumption in the evidence. Both take the probabilities for right: among people with
probability .3 of a group, 30 % are in it.

``_bounds``
    What the probabilities allow without further assumptions, by bounds in cells of people with alike probabilities
    (`inference.unknown.proxy_bounds`). Estimate, interval and p-value are those of a comparison with people of unknown
    group: the possible value nearest to no disparity, Imbens and Manski's interval of the true value, and the p-value
    against "some possible value is no disparity".
``_em``
    The estimate when decisions and outcomes depend on the proxy through the group alone, by expectation maximisation
    (`inference.unknown.mixture`), with the likelihood's interval and test. Where the data contradict the assumption
    there is no test and no verdict, and a warning says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from evenhand.audits.detectable import least_by_normal
from evenhand.audits.finding import Raw, not_computable
from evenhand.audits.group.evidence import GroupEvidence
from evenhand.audits.group.options import GUESSED, GroupSetting
from evenhand.errors import UsageError, near_matches
from evenhand.inference.unknown.mixture import Mixture
from evenhand.inference.unknown.proxy_bounds import DENOMINATOR, NUMERATOR, OUTSIDE, ProxyBounds, ProxyRows
from evenhand.intake import AuditData
from evenhand.intake.parts import Probabilities
from evenhand.metrics import Metric
from evenhand.results import Finding, Interval, shown_p
from evenhand.summaries import cells_of, weight_sums

_BOUNDS = "the probabilities of the groups are right; nothing else"
_EM = (
    "the probabilities of the groups are right, and given the group neither decision nor outcome depends on the proxy "
    "that they were made from"
)
_FEWEST = 10  # people of each kind that the normal limits of the bounds need
_DOUBT = 0.01  # a p-value of the model's fit below which there is no verdict


def guessed_references(data: AuditData, wanted: Mapping[str, str] | str | None) -> dict[str, str]:
    """Name the reference of each guessed attribute: the user's choice, or the group that is most probable on average.

    Parameters
    ----------
    data : AuditData
        Records with probabilities.
    wanted : mapping of str to str, str or None
        Attribute to label; a single label where one attribute is audited.

    Returns
    -------
    dict of str to str
    """
    only = len(data.probabilities) == 1 and not data.attributes
    chosen = {}
    for name, guess in data.probabilities.items():
        label = wanted if isinstance(wanted, str) and only else None
        if isinstance(wanted, Mapping) and name in wanted:
            label = str(wanted[name])
        if label is not None and label not in guess.labels:
            raise UsageError(f"Reference `{name}={label}` has no probability.{near_matches(label, guess.labels)}")
        largest = int((weight_sums(data)[0] @ guess.values).argmax())
        chosen[name] = guess.labels[largest] if label is None else label
    return chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """One metric and one pair of guessed groups."""

    metric: Metric
    guess: Probabilities
    pair: tuple[int, int]
    options: GroupSetting
    counts: Mapping[str, Mapping[str, float]]

    @property
    def names(self) -> tuple[str, str]:
        return self.guess.group_name(self.pair[0]), self.guess.group_name(self.pair[1])

    @property
    def rate(self) -> str:
        return self.metric.per_group or self.metric.name

    def measure(self, kind: str) -> str:
        return f"{self.metric.name}_ratio_{kind}" if self.options.ratio else f"{self.metric.name}_{kind}"

    def finding(self, kind: str, estimate: float, interval: Interval, pvalue: float) -> Finding:
        return Finding(
            audit="group",
            measure=self.measure(kind),
            groups=self.names,
            estimate=estimate,
            interval=interval,
            pvalue=pvalue,
            counts=self.counts,
        )

    def nothing(self, kind: str, reason: str) -> Raw:
        evidence = GroupEvidence(assumption=_BOUNDS if kind == "bounds" else _EM)
        return not_computable("group", self.measure(kind), self.names, reason, counts=self.counts, evidence=evidence)


def compare_guessed(metric: Metric, data: AuditData, name: str, options: GroupSetting) -> Iterator[Raw]:
    """Compare each guessed group of an attribute with its reference, or all pairs.

    Parameters
    ----------
    metric : Metric
        What is compared: a rate; other metrics have no answer.
    data : AuditData
        Records with probabilities.
    name : str
        The guessed attribute.
    options : GroupSetting
        Ratio or difference, margin, alternative, alpha, level, method.

    Yields
    ------
    Raw
    """
    guess = data.probabilities[name]
    pairs = guessed_pairs(guess, options)
    kinds = GUESSED[options.group_probability_method]
    people = _people(metric, data, guess)
    counts = _counts(data, guess, people)
    model = Mixture(people, f1=metric.transform == "f1") if people is not None and "em" in kinds else None
    for a, b in pairs:
        both = {guess.group_name(k): counts[k] for k in (a, b)}
        asked = _Question(metric=metric, guess=guess, pair=(a, b), options=options, counts=both)
        reason = _refusal(asked, data, people)
        for kind in kinds:
            if reason or people is None:
                yield asked.nothing(kind, reason)
            elif kind == "bounds":
                yield _bounded(asked, people)
            elif model is not None:
                yield _estimated(asked, model)


def guessed_pairs(guess: Probabilities, options: GroupSetting) -> list[tuple[int, int]]:
    """Return the pairs of guessed groups that are compared: with the reference, or all."""
    n = len(guess.labels)
    if options.compare == "pairs":
        return [(a, b) for a in range(n) for b in range(a + 1, n)]
    b = guess.labels.index(options.reference[guess.name])
    return [(a, b) for a in range(n) if a != b]


def _people(metric: Metric, data: AuditData, guess: Probabilities) -> ProxyRows | None:
    if metric.kind != "rate":
        return None
    cells = cells_of(data)
    inside = np.where(np.isin(cells, metric.numerator), NUMERATOR, DENOMINATOR)
    place = np.where(np.isin(cells, metric.denominator), inside, OUTSIDE)
    weight, square = weight_sums(data)
    return ProxyRows(
        probability=guess.values, place=place, rows=data.count, weight=weight, square=square, cluster=data.cluster
    )


def _counts(data: AuditData, guess: Probabilities, people: ProxyRows | None) -> list[dict[str, float]]:
    """Return how many people of each group are expected, in all and in the metric's denominator."""
    rows = {"expected_rows": data.count @ guess.values}
    if people is not None:
        rows["expected_denominator"] = (data.count * (people.place != OUTSIDE)) @ guess.values
    return [{key: round(float(v[k]), 1) for key, v in rows.items()} for k in range(len(guess.labels))]


def _refusal(asked: _Question, data: AuditData, people: ProxyRows | None) -> str:
    name = asked.metric.name
    if people is None:
        return (
            f"{name} cannot be compared: with group probabilities only rates can, and it is none. Ask for a rate such "
            "as `selection_rate` or `fnr`."
        )
    if data.strata is not None or data.survey_strata is not None:
        what = "strata" if data.strata is not None else "survey_strata"
        return f"{name} cannot be compared: `{what}` together with group probabilities is not offered. Leave one out."
    for group, k in zip(asked.names, asked.pair, strict=True):
        if not people.probability[people.place != OUTSIDE][:, k].any():
            return f"{name} cannot be compared. Group `{group}` {asked.metric.empty}: nobody there may be in it."
    return ""


def _bounded(asked: _Question, people: ProxyRows) -> Raw:
    options, margin, sides = asked.options, asked.options.margin, asked.options.alternative
    fewest = min(int(people.rows[people.place == place].sum()) for place in (NUMERATOR, DENOMINATOR))
    if fewest < _FEWEST:
        reason = (
            f"{asked.metric.name} cannot be bounded: limits need at least {_FEWEST} people in its numerator and as many"
            f" in the rest of its denominator, and there are {fewest}."
        )
        return asked.nothing("bounds", reason)
    bounds = ProxyBounds(people, *asked.pair, f1=asked.metric.transform == "f1")
    values = bounds.ratio() if options.ratio else bounds.difference()
    none = 1.0 if options.ratio else 0.0

    def interval_at(level: float) -> Interval:
        low, high = values.interval(level, sides)
        return Interval(low=low, high=high, level=level, kind="Imbens-Manski, normal limits")

    pvalue = values.beyond(none, none, sides)
    evidence = GroupEvidence(
        fact=_range(asked, bounds.rates(), (values.low.estimate, values.high.estimate)),
        planning="More people hardly narrow these limits; a proxy that tells the groups apart better does.",
        test="the end of the possible values nearest to no disparity against its standard error, normal limit",
        assumption=_BOUNDS,
        lowest_possible=values.low.estimate,
        highest_possible=values.high.estimate,
    )
    finding = asked.finding("bounds", values.nearest(none), interval_at(options.level), pvalue)
    raw = Raw(finding=finding, evidence=evidence, interval_at=interval_at)
    if margin is None:
        return raw
    inside = 1.0
    if margin.low < values.low.estimate and values.high.estimate < margin.high:
        inside = max(values.low.pvalue(margin.low), values.high.pvalue(margin.high)) / 2
    return _at_margin(raw, margin.value, values.beyond(margin.low, margin.high, sides), inside)


def _estimated(asked: _Question, model: Mixture) -> Raw:
    options, margin, (a, b) = asked.options, asked.options.margin, asked.pair
    ratio, sides = options.ratio, options.alternative
    if not model.identified:
        return asked.nothing(
            "em",
            f"{asked.metric.name} cannot be estimated: the probabilities of `{asked.guess.name}` are the same for "
            "everybody, or those of one group follow from the others', so they do not tell the groups apart.",
        )
    estimate = model.value(a, b, ratio=ratio)
    if math.isnan(estimate):
        return asked.nothing("em", f"The ratio is undefined: {asked.rate} of `{asked.names[1]}` is estimated 0.")

    def pvalue(low: float, high: float) -> float:
        if low <= estimate <= high and low < high:
            return 1.0
        root = model.root(a, b, high if estimate > high else low, ratio=ratio)
        side = {"greater": root, "less": -root}.get(sides)
        return float(2 * special.ndtr(-abs(root)) if side is None else special.ndtr(-side))

    def interval_at(level: float) -> Interval:
        wide = level if sides == "two-sided" else max(2 * level - 1, 1e-9)
        low, high = model.interval(a, b, wide, ratio=ratio)
        low = (0.0 if ratio else -math.inf) if sides == "less" else low
        high = math.inf if sides == "greater" else high
        return Interval(low=low, high=high, level=level, kind="likelihood root")

    none, doubt = 1.0 if ratio else 0.0, model.misfit(a, b)
    contradicted = doubt < _DOUBT
    evidence = _model_evidence(asked, model, doubt)
    tested = math.nan if contradicted else pvalue(none, none)
    finding = asked.finding("em", estimate, interval_at(options.level), tested)
    raw = Raw(finding=finding, evidence=evidence, interval_at=interval_at)
    if margin is None or contradicted:
        return raw
    inside = 1.0
    if margin.low < estimate < margin.high:
        roots = model.root(a, b, margin.low, ratio=ratio), -model.root(a, b, margin.high, ratio=ratio)
        inside = float(special.ndtr(-min(roots)))
    return _at_margin(raw, margin.value, pvalue(margin.low, margin.high), inside)


def _model_evidence(asked: _Question, model: Mixture, doubt: float) -> GroupEvidence:
    """Say what the model estimates and could have shown or, where the data contradict it, that they do."""
    options, (a, b), name = asked.options, asked.pair, asked.rate
    estimate = model.value(a, b, ratio=options.ratio)
    word = f"a ratio of {estimate:.3f}" if options.ratio else f"a difference of {estimate:+.3f}"
    first, second = (float(model.values[k]) for k in asked.pair)
    least = least_by_normal(model.standard_error(a, b), options.alpha, two_sided=options.alternative == "two-sided")
    planning = ""
    if math.isfinite(least):
        planning = f"A difference of about {least:.2g} would have been shown 4 times in 5 (before correction for "
        planning += "multiplicity)."
    warnings: tuple[str, ...] = ()
    if doubt < _DOUBT:
        planning = (
            f"The data contradict the assumption that {name} depends on the proxy through the group alone (p "
            f"{shown_p(doubt)}), so this estimate is no ground for a verdict. The bounds do not need the assumption."
        )
        warnings = (planning,)
    return GroupEvidence(
        fact=f"If given the group neither decision nor outcome depends on the proxy, {name} is {first:.3f} for "
        f"{asked.names[0]} and {second:.3f} for {asked.names[1]}: {word}.",
        planning=planning,
        values=dict(zip(asked.names, (first, second), strict=True)),
        test="signed root of twice the loss of log-likelihood, normal limit",
        statistic=model.root(a, b, 1.0 if options.ratio else 0.0, ratio=options.ratio),
        warnings=warnings,
        assumption=_EM,
    )


def _at_margin(raw: Raw, margin: float, beyond: float, inside: float) -> Raw:
    evidence = replace(raw.evidence, difference_pvalue=raw.finding.pvalue, equivalence_pvalue=inside)
    return replace(raw, finding=replace(raw.finding, pvalue=beyond, margin=margin), evidence=evidence)


def _range(asked: _Question, rates: tuple[tuple[float, float], tuple[float, float]], ends: tuple[float, float]) -> str:
    word, sign = ("ratio", "") if asked.options.ratio else ("difference", "+")
    low, high = (f"{end:{sign}.3f}" for end in ends)
    said = " and ".join(
        f"between {least:.3f} and {most:.3f} for {name}" for name, (least, most) in zip(asked.names, rates, strict=True)
    )
    return f"The probabilities allow {asked.rate} {said}: a {word} anywhere between {low} and {high}."
