"""From the sums of the batches to an answer for each question: evidence over time, alarm, verdict.

A question compares one metric of a group with that of the reference. Its evidence is an e-process: capital that a
sceptic makes by betting against "no difference" (or "no difference beyond the margin"), which never grows by more than
chance while that is true. The chance that it ever reaches 1 / alpha is at most alpha, however often one looks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenhand.arrays import BoolArray, FloatArray
from evenhand.errors import UsageError
from evenhand.inference.anytime.betting import Stream
from evenhand.inference.anytime.family import Dispersion, adjust_evidence, dispersion
from evenhand.inference.anytime.sequence import Scale, estimates, log_change, log_evidence, sequence
from evenhand.metrics import Metric, resolve
from evenhand.results import Finding, Interval, Verdict
from evenhand.watch.batches import Batch, range_of
from evenhand.watch.plan import WatchPlan
from evenhand.watch.state import State

_DISPERSED = 0.001  # a smaller p-value is worth a warning


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One metric, one group and its reference; about the difference itself or its change since the baseline."""

    metric: Metric
    attribute: str
    label: str
    reference: str
    scale: Scale
    change: bool = False

    @property
    def measure(self) -> str:
        """What findings call it."""
        ratio = "_ratio" if self.scale.ratio and self.metric.compare != "ratio" else ""
        return f"{self.metric.name}{ratio}{'_change' if self.change else ''}"

    @property
    def groups(self) -> tuple[str, str]:
        """The groups as findings name them."""
        return f"{self.attribute}={self.label}", f"{self.attribute}={self.reference}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answer:
    """What is known about one question after each batch; arrays have one number per batch."""

    question: Question
    stream: Stream
    log_e: FloatArray  # logarithm of the evidence for a disparity
    log_adjusted: FloatArray  # the same, adjusted for the number of questions
    log_inside: FloatArray | None  # evidence for lying inside the margin, adjusted; None without a margin
    estimate: FloatArray
    ends: FloatArray  # confidence sequence, (batches, 2)
    spread: Dispersion
    torn: int | None  # the place of the batch from which on no single value fits all batches
    alarm: int | None  # the place of the batch at which a disparity was shown
    settled: int | None  # the place of the batch at which equivalence was shown
    finding: Finding

    @property
    def values(self) -> FloatArray:
        """The metric in each batch and group, NaN without rows; shape (batches, 2)."""
        low, high = range_of(self.question.metric) if self.question.metric.kind == "mean" else (0.0, 1.0)
        size, total = self.stream.size, self.stream.total
        mean = np.divide(total, size, out=np.full_like(total, math.nan), where=size > 0)
        return np.asarray(low + (high - low) * mean)

    @property
    def dispersed(self) -> bool:
        """Whether the batches differ more than independent rows let them."""
        return self.spread.pvalue < _DISPERSED


def questions_of(state: State) -> tuple[Question, ...]:
    """List what is asked: each metric, each group against its reference; with a baseline also the change since."""
    margin = state.plan.tolerated
    asked = []
    for metric in resolve(state.metrics) if state.metrics else ():
        low, high = range_of(metric) if metric.kind == "mean" else (0.0, 1.0)
        ratio = metric.compare == "ratio" or (margin is not None and margin.ratio and metric.compare != "difference")
        if ratio and low < 0:
            raise UsageError(
                f"Metric `{metric.name}` can be below 0, so a ratio margin makes no sense for it. Give a difference, "
                "such as 0.05."
            )
        for attribute, labels in (state.groups or {}).items():
            for label in labels[:-1]:
                question = Question(
                    metric=metric, attribute=attribute, label=label, reference=labels[-1],
                    scale=Scale(ratio=ratio, span=high - low),
                )  # fmt: skip
                asked += [question, replace(question, change=True)] if state.plan.baseline else [question]
    return tuple(asked)


def stream_of(question: Question, batches: Sequence[Batch]) -> Stream:
    """Collect the sums of both groups of a question, batch by batch."""
    labels = (question.label, question.reference)
    rows = [[b.sums(question.metric, question.attribute, label) for label in labels] for b in batches]
    sums = np.array(rows, dtype=float).reshape(len(batches), 2, 3)
    return Stream(size=sums[..., 0], total=sums[..., 1], square=sums[..., 2], binary=question.metric.kind == "rate")


def answers_of(state: State) -> tuple[Answer, ...]:
    """Answer all questions on one error budget.

    Parameters
    ----------
    state : State
        With at least one batch.

    Returns
    -------
    tuple of Answer
    """
    plan, questions = state.plan, questions_of(state)
    streams = [stream_of(q, state.batches) for q in questions]
    pairs = [_evidence(q, s, plan) for q, s in zip(questions, streams, strict=True)]
    beyond = np.stack([pair[0] for pair in pairs], axis=-1)  # (batches, questions)
    # Without a margin nothing can be claimed but a difference.
    inside = np.stack([pair[0] if pair[1] is None else pair[1] for pair in pairs], axis=-1)
    rival = np.minimum(beyond, inside)
    adjusted, adjusted_inside = adjust_evidence(beyond, rival), adjust_evidence(inside, rival)
    return tuple(
        _answer(state, q, s, beyond[:, j], adjusted[:, j], None if pairs[j][1] is None else adjusted_inside[:, j])
        for j, (q, s) in enumerate(zip(questions, streams, strict=True))
    )


def _evidence(question: Question, stream: Stream, plan: WatchPlan) -> tuple[FloatArray, FloatArray | None]:
    """Return the log e-processes for a disparity and, with a margin, for lying inside it."""
    scale, margin = question.scale, plan.tolerated
    low, high = (scale.none, scale.none) if margin is None else (margin.low, margin.high)
    if question.change:
        first = min(plan.baseline, len(stream.size))
        later = log_change(stream, scale, first, (low, high)) if first < len(stream.size) else np.zeros(0)
        return np.concatenate([np.zeros(first), later]), None
    ends = np.array([low, high])
    above, below = (log_evidence(stream, scale, ends, side) for side in ("greater", "less"))
    beyond = {
        "greater": above[:, 1],
        "less": below[:, 0],
        "two-sided": np.maximum(above[:, 1], below[:, 0]) - math.log(2),
    }[plan.alternative]
    inside = {"greater": below[:, 1], "less": above[:, 0], "two-sided": np.minimum(below[:, 1], above[:, 0])}
    return beyond, None if margin is None else inside[plan.alternative]


def _answer(
    state: State,
    question: Question,
    stream: Stream,
    log_e: FloatArray,
    adjusted: FloatArray,
    inside: FloatArray | None,
) -> Answer:
    plan, scale, margin = state.plan, question.scale, state.plan.tolerated
    bar = -math.log(plan.alpha)
    estimate, ends = estimates(stream, scale), np.full((len(log_e), 2), math.nan)
    if question.change:
        estimate = _changes(stream, scale, plan.baseline)
    else:
        among = (scale.none,) if margin is None else (scale.none, margin.low, margin.high)
        ends = sequence(stream, scale, plan.alpha, plan.alternative, among)
    # From the batch on at which no single value fits all batches there is no interval: it is empty, or has left the
    # estimate behind.
    with np.errstate(invalid="ignore"):
        torn = _first((ends[:, 0] > ends[:, 1]) | (estimate < ends[:, 0]) | (estimate > ends[:, 1]))
    if torn is not None:
        ends[torn:] = math.nan
    alarm, settled = _first(adjusted >= bar), None if inside is None else _first(inside >= bar)
    unseen = not (stream.size > 0).all(axis=-1).any()
    verdict = Verdict.INCONCLUSIVE
    if unseen:
        verdict = Verdict.NOT_COMPUTABLE
    elif alarm is not None:
        verdict = Verdict.DISPARITY
    elif settled is not None and torn is None:
        verdict = Verdict.EQUIVALENT
    kind = "confidence sequence"
    finding = Finding(
        audit="watch",
        measure=question.measure,
        groups=question.groups,
        estimate=math.nan if unseen else float(estimate[-1]),
        interval=None
        if question.change or unseen or torn is not None
        else Interval(low=float(ends[-1, 0]), high=float(ends[-1, 1]), level=1 - plan.alpha, kind=kind),
        pvalue=math.nan if unseen else _pvalue(log_e),
        pvalue_adjusted=math.nan if unseen else _pvalue(adjusted),
        margin=None if margin is None else margin.value,
        counts={
            group: {"rows": float(stream.size[:, j].sum()), "sum": float(stream.total[:, j].sum())}
            for j, group in enumerate(question.groups)
        },
        verdict=verdict,
        reason=_reason(
            state, question, verdict, (adjusted, estimate), alarm if verdict is Verdict.DISPARITY else settled
        ),
    )
    return Answer(
        question=question, stream=stream, log_e=log_e, log_adjusted=adjusted, log_inside=inside, estimate=estimate,
        ends=ends, spread=dispersion(stream), torn=torn, alarm=alarm, settled=settled, finding=finding,
    )  # fmt: skip


def _changes(stream: Stream, scale: Scale, baseline: int) -> FloatArray:
    """Return how far the comparison since the baseline is from that in it; NaN while there is nothing since."""
    change = np.full(len(stream.size), math.nan)
    if len(stream.size) > baseline:
        before = estimates(stream.part(slice(0, baseline)), scale)[-1]
        later = estimates(stream.part(slice(baseline, None)), scale)
        with np.errstate(invalid="ignore", divide="ignore"):
            change[baseline:] = later / before if scale.ratio else later - before
    return change


def _first(reached: BoolArray) -> int | None:
    return int(np.argmax(reached)) if reached.any() else None


def _pvalue(log_e: FloatArray) -> float:
    return math.exp(-max(float(log_e.max()), 0.0))


def _reason(
    state: State, question: Question, verdict: Verdict, paths: tuple[FloatArray, FloatArray], place: int | None
) -> str:
    """Say why this verdict, from the adjusted evidence and the estimates after each batch."""
    group, reference = question.groups
    adjusted, estimate = paths
    direction = "higher" if place is not None and estimate[place] > question.scale.none else "lower"
    bar = f"{1 / state.plan.alpha:g}"
    margin = "" if state.plan.tolerated is None else f" by more than the margin `{state.plan.margin}`"
    if verdict is Verdict.NOT_COMPUTABLE:
        return f"In every batch `{group}` or `{reference}` {question.metric.empty}, so they cannot be compared."
    at = "" if place is None else f"`{state.batches[place].name}`"
    if verdict is Verdict.DISPARITY and question.change:
        return f"With batch {at} it was shown that the difference has changed since the baseline{margin}."
    if verdict is Verdict.DISPARITY:
        return (
            f"With batch {at} it was shown that `{question.metric.name}` of `{group}` is {direction} than that of "
            f"`{reference}`{margin}."
        )
    if verdict is Verdict.EQUIVALENT:
        return f"With batch {at} it was shown that `{group}` and `{reference}` differ by less than the margin."
    if place is not None:
        return (
            f"With batch {at} `{group}` and `{reference}` were shown to differ by less than the margin, but no single "
            "difference fits all batches: what was shown holds no longer."
        )
    if question.change and len(state.batches) <= state.plan.baseline:
        return f"There is no batch after the {state.plan.baseline} of the baseline."
    what = "change" if question.change else "difference"
    return (
        f"The evidence for a {what}{margin}, adjusted for the number of questions, is "
        f"{math.exp(min(float(adjusted[-1]), 700.0)):.3g} after {len(state.batches)} batches; an alarm needs {bar}."
    )
