"""What a report opens with: the disparities that are shown, or what is ruled out, in the words of a person."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evenhand.audits.group.evidence import GroupEvidence
from evenhand.audits.margin import is_ratio, metric_of
from evenhand.metrics import METRICS
from evenhand.report.claims import Claim, comparison_of, group_claim, quantity, rate_words, reference_words
from evenhand.report.document import Cell, Chapter, Table, Text, shown
from evenhand.report.other_claims import individual_claim, projection_claim, proxy_claim, tail_claim
from evenhand.report.people import People, Population
from evenhand.results import AuditRun, Evidence, Finding, Verdict, shown_margin
from evenhand.results.finding import without_form

Pair = tuple[Finding, Evidence]

_MOST = 5  # sentences
_MOST_OF_GROUPS = 3  # of them about groups and subgroups, where other audits have something to say too
_MOST_COLUMNS = 6  # metrics in the table of a group; the others are with the findings
# One rate and its mirror image say the same.
_MIRRORS = {"tnr": "fpr", "tpr": "fnr", "fdr": "precision", "for": "npv", "error_rate": "accuracy"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """The first words of a report."""

    headline: str  # the main thing that is shown, or that nothing is
    texts: tuple[Text, ...]  # its numbers, what else is shown, how sure, what to do next


def opening(run: AuditRun) -> Opening:
    """Say what a run shows, the largest differences first; if nothing, what it rules out.

    Parameters
    ----------
    run : AuditRun
        What was found.

    Returns
    -------
    Opening

    Examples
    --------
    >>> import evenhand as eh
    >>> data = eh.datasets.planted(rows=4000, fnr=(0.1, 0.4), rng=0)
    >>> opening(eh.audit(data, plan=eh.Plan(group={"metrics": ["fnr"]}), rng=0)).headline[67:]
    'more often than such people with `group=A`, by 28 points.'
    """
    people = People.of_data(run.data)
    pairs = [pair for result in run.results for pair in zip(result.findings, result.evidence, strict=True)]
    disparities = [pair for pair in pairs if pair[0].verdict is Verdict.DISPARITY]
    if disparities:
        return _shown(run, disparities, people)
    return _not_shown(run, pairs, people)


def claim_of(finding: Finding, evidence: Evidence, people: People, rows: int) -> Claim:
    """Return the sentence of one disparity."""
    if finding.audit == "projection":
        return projection_claim(finding, evidence, people, rows)
    if finding.audit == "individual":
        return individual_claim(finding, evidence)
    if finding.audit == "proxy":
        return proxy_claim(finding, evidence)
    return tail_claim(finding, evidence) if finding.audit == "tail" else group_claim(finding, evidence, people)


def _shown(run: AuditRun, disparities: Sequence[Pair], people: People) -> Opening:
    rows = int(run.data["rows_used"])
    claims = [(pair[0], claim_of(*pair, people, rows)) for pair in disparities]
    chosen = [claim for _, claim in _chosen(claims)]
    first, *others = chosen
    texts = [Text(text=_sentence(first.numbers))] if first.numbers else []
    if others:
        texts += [Text(text="Also shown:"), *(Text(text=str(claim), kind="item") for claim in others)]
    left = len(disparities) - len(chosen)
    if left:
        said = f"{left:,} more findings show a disparity" if left > 1 else "1 more finding shows a disparity"
        texts.append(Text(text=f"{said}; the tables below list all."))
    texts += [Text(text=_how_sure(run)), Text(text=_next(run))]
    return Opening(headline=f"{first.shown}.", texts=tuple(texts))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _chosen(claims: Sequence[tuple[Finding, Claim]]) -> list[tuple[Finding, Claim]]:
    """Choose the sentences: differences of groups first, the largest first, then one of each other audit."""
    of_groups = [pair for pair in claims if pair[0].audit in ("group", "scan")]
    single = [pair for pair in of_groups if not pair[0].measure.endswith("_global")]
    known = {_about(finding) for finding, _ in single}
    of_groups = single + [pair for pair in of_groups if pair not in single and _about(pair[0]) not in known]
    of_groups.sort(key=lambda pair: -pair[1].least)
    different: dict[tuple[str, ...], tuple[Finding, Claim]] = {}
    for finding, claim in of_groups:
        different.setdefault((*_about(finding), *finding.groups), (finding, claim))
    others: dict[str, tuple[Finding, Claim]] = {}
    for finding, claim in claims:
        if finding.audit not in ("group", "scan"):
            before = others.get(finding.audit)
            # The gap that the proxy audit explains is the group audit's: what carries it says more.
            if before is None or (":" in finding.measure and ":" not in before[0].measure):
                others[finding.audit] = (finding, claim)
    room = max(_MOST - len(others), _MOST_OF_GROUPS)
    return [*list(different.values())[:room], *others.values()][:_MOST]


def _about(finding: Finding) -> tuple[str, ...]:
    """Return which question a finding answers, the same for a rate and its mirror image, with the attributes."""
    metric = metric_of(finding.measure)
    known = METRICS.get(metric)
    base = known.per_group if known is not None and known.per_group in METRICS else metric
    attributes = sorted({name.partition("=")[0] for name in finding.groups if "=" in name})
    return (_MIRRORS.get(base, base), *attributes)


def _how_sure(run: AuditRun) -> str:
    alpha = 100 * float(run.plan.get("alpha", 0.05))
    correction = run.plan.get("correction")
    if correction == "none":
        return f"Each of these statements alone is a false alarm with a probability of at most {alpha:g} %."
    if correction == "bh":
        return f"Of all that is reported as shown, at most {alpha:g} % are expected to be false alarms."
    return (
        f"The probability that anything reported as shown is a false alarm is at most {alpha:g} % over the whole "
        "report; the ranges above are wide enough for the number of questions asked."
    )


def _next(run: AuditRun) -> str:
    ran = {result.audit for result in run.results}
    steps = ["check that the groups, outcomes and decisions above mean what this report takes them for"]
    if "proxy" in ran:
        steps.append("read in the proxy section which features carry the difference")
    else:
        steps.append("ask with the proxy audit which features carry the difference")
    steps.append("decide with those responsible whether there is a reason that justifies it")
    return f"What to do next: {', '.join(steps[:-1])}, and {steps[-1]}. This report does not say why it is so."


def _not_shown(run: AuditRun, pairs: Sequence[Pair], people: People) -> Opening:
    tally = Counter(finding.verdict for finding, _ in pairs)
    inside, total = tally[Verdict.EQUIVALENT], len(pairs)
    if not total or tally[Verdict.NOT_COMPUTABLE] == total:
        reasons = list(dict.fromkeys(finding.reason for finding, _ in pairs))[:_MOST]
        return Opening(
            headline="Nothing could be computed from these data. That does not mean there is no disparity.",
            texts=tuple(Text(text=reason, kind="item") for reason in reasons),
        )
    headline = "No disparity is shown. That does not mean there is no disparity."
    if inside == total:
        headline = "All differences that were asked about are shown to lie inside their margin."
    elif inside:
        headline = f"No disparity is shown, and {inside} of {total} findings are shown to lie inside their margin."
    asked = [pair for pair in pairs if not pair[0].measure.endswith("_global")] or list(pairs)
    known = [sentence for pair in _by_doubt(asked) if (sentence := not_shown_sentence(*pair, people))]
    texts = [Text(text=sentence, kind="item") for sentence in known[:_MOST]]
    if len(known) > _MOST:
        texts.append(Text(text=f"{len(known) - _MOST:,} more questions are answered below."))
    if inside < total:
        texts.append(
            Text(
                text="What to do next: see below how many rows would decide, and gather more of the groups with few "
                "people before you rely on this result."
            )
        )
    return Opening(headline=headline, texts=tuple(texts))


def _by_doubt(pairs: Sequence[Pair]) -> list[Pair]:
    """Order questions by what they leave possible: rates with the widest range first, then the others."""

    def left_open(pair: Pair) -> float:
        interval = pair[1].verdict_interval or pair[0].interval
        if interval is None or pair[0].audit not in ("group", "scan") or is_ratio(pair[0].measure):
            return 0.0
        return max(abs(interval.low), abs(interval.high)) if rate_words(metric_of(pair[0].measure), People()) else 0.0

    return sorted(pairs, key=lambda pair: -left_open(pair))


def not_shown_sentence(finding: Finding, evidence: Evidence, people: People) -> str:
    """Say what is shown or ruled out by a finding that is no disparity; empty where nothing is.

    Parameters
    ----------
    finding : Finding
        With the verdict `equivalent` or `inconclusive`.
    evidence : Evidence
        What stands behind it.
    people : People
        How labels are said.

    Returns
    -------
    str
    """
    if finding.audit not in ("group", "scan") or finding.measure.endswith(("_global", "_correlation")):
        return finding.reason if finding.verdict is not Verdict.NOT_COMPUTABLE else ""
    if finding.verdict is Verdict.NOT_COMPUTABLE:
        return ""
    metric = metric_of(finding.measure)
    rate = rate_words(metric, people)
    among = rate.among if rate is not None else Population()
    whom = reference_words(finding, evidence, among)
    subject = among.of(finding.groups[0])
    if rate is not None:
        asked = f"How often {subject} {rate.event}, against {whom}"
    else:
        what = quantity(metric)
        asked = f"{what[:1].upper()}{what[1:]} of {subject}, against that of {whom}"
    if finding.verdict is Verdict.EQUIVALENT:
        return f"{asked}: shown to lie inside the margin of {shown_margin(finding)}{_range(finding, evidence)}."
    return f"{asked}: {_ruled_out(finding, evidence)}{_detectable(evidence, rate is not None)}."


def _range(finding: Finding, evidence: Evidence) -> str:
    seen = comparison_of(finding, evidence)
    unit = " points" if seen.scale == 100 and not seen.ratio else ""
    kind = "ratio" if seen.ratio else "difference"
    return f", with a {kind} {seen.between}{unit}" if seen.between else ""


def _ruled_out(finding: Finding, evidence: Evidence) -> str:
    """Say which differences or ratios the interval excludes, at its level."""
    interval = evidence.verdict_interval or finding.interval
    if interval is None or (math.isinf(interval.low) and math.isinf(interval.high)):
        return "no difference is shown and none is ruled out"
    at = f" (with {100 * interval.level:.4g} % confidence)"
    lead = "no ratio other than 1 is shown" if is_ratio(finding.measure) else "no difference is shown"
    if finding.margin:
        lead = f"not shown on which side of the margin of {shown_margin(finding)} it lies"
    if is_ratio(finding.measure):
        ends = [f"below {interval.low:.2f}"] if interval.low > 0 else []
        ends += [f"above {interval.high:.2f}"] if math.isfinite(interval.high) else []
        return f"{lead}; ratios {' or '.join(ends)} are ruled out{at}"
    rate = rate_words(metric_of(finding.measure), People()) is not None
    more, less = (" points more often", " points less often") if rate else (" higher", " lower")
    low, high = interval.low, interval.high
    if low > 0 or high < 0:  # both ends on one side
        side, near, far = (more, low, high) if low > 0 else (less, -high, -low)
        ends = [f"less than {_outward(near, rate, down=True)}{side}"]
        ends += [f"more than {_outward(far, rate)}{side}"] if math.isfinite(far) else []
    else:
        ends = [f"more than {_outward(high, rate)}{more}"] if math.isfinite(high) else []
        ends += [f"more than {_outward(-low, rate)}{less}"] if math.isfinite(low) else []
    return f"{lead}; {' and '.join(ends)} {'are' if len(ends) > 1 else 'is'} ruled out{at}"


def _outward(end: float, rate: bool, *, down: bool = False) -> str:
    """Round an end of an interval away from what it leaves possible, so that no more is ruled out than was shown."""
    scale, digits = (100, 1) if rate else (1, 3 if abs(end) < 10 else 1)
    step = 10**digits
    rounded = math.floor(end * scale * step + 1e-9) if down else math.ceil(end * scale * step - 1e-9)
    return f"{rounded / step:g}"


def _detectable(evidence: Evidence, rate: bool) -> str:
    """Say which difference the rows would probably have shown."""
    size = evidence.sample_size if isinstance(evidence, GroupEvidence) else None
    if size is None or size.detectable is None or math.isnan(size.detectable):
        return ""
    least = f"{100 * abs(size.detectable):.2g} points" if rate else f"{abs(size.detectable):.2g}"
    return f"; a difference of {least} would have been shown 4 times in 5, asked alone"


def rates_chapter(run: AuditRun) -> Chapter | None:
    """Return the table of rates and counts of each attribute's groups; None where the group audit did not run."""
    people = People.of_data(run.data)
    tables = []
    for name, sizes in run.data["groups"].items():
        values, counts = _values_of(run, name)
        metrics = list(dict.fromkeys(metric for metric, _ in values))[:_MOST_COLUMNS]
        if not metrics:
            continue
        groups = [f"{name}={label}" for label in sizes]
        rows: list[tuple[Cell, ...]] = [
            (group, sizes[label], *(_cell(metric, values.get((metric, group)), counts.get((metric, group), {}), people)
                                    for metric in metrics))
            for group, label in zip(groups, sizes, strict=True)
        ]  # fmt: skip
        heads = [_head(metric, people) for metric in metrics]
        tables.append(
            Table(
                title=f"Groups of {name}",
                head=("Group", "People", *heads),
                rows=tuple(rows),
                folded=len(rows) > 25,
            )
        )
    if not tables:
        return None
    return Chapter(
        key="rates",
        title="Rates and counts per group",
        question="What was counted in each group? In brackets: people counted, of people whom the rate is about.",
        blocks=tuple(tables),
    )


def _values_of(
    run: AuditRun, attribute: str
) -> tuple[dict[tuple[str, str], float], dict[tuple[str, str], Mapping[str, float]]]:
    """Return the value and the counts of each metric and group that the group audit compared without conditions."""
    values: dict[tuple[str, str], float] = {}
    counts: dict[tuple[str, str], Mapping[str, float]] = {}
    for result in run.results:
        for finding, evidence in zip(result.findings, result.evidence, strict=True):
            measure = finding.measure.removesuffix("_global")
            metric = metric_of(measure)
            plain = result.audit == "group" and without_form(measure) == measure
            if not plain or not isinstance(evidence.values, Mapping) or metric == "aod_abs":
                continue
            known = METRICS.get(metric)
            base = known.per_group if known is not None and known.per_group in METRICS else metric
            for group, value in evidence.values.items():
                if group.partition("=")[0] == attribute:
                    values.setdefault((base, group), value)
                    counts.setdefault((base, group), finding.counts.get(group, {}))
    return values, counts


def _head(metric: str, people: People) -> str:
    rate = rate_words(metric, people)
    if rate is None:
        return metric
    return f"{rate.event[:1].upper()}{rate.event[1:]}, of 100 people {rate.among.clause} ({metric})".replace("  ", " ")


def _cell(metric: str, value: float | None, counts: Mapping[str, float], people: People) -> Cell:
    rate = rate_words(metric, people)
    if value is None or rate is None:
        return value
    of = ""
    if "numerator" in counts and "denominator" in counts:
        of = f" ({shown(int(counts['numerator']))} of {shown(int(counts['denominator']))})"
    return f"{100 * value:.1f}{of}"
