"""Tail audit: how badly is the worst-treated person disadvantaged for group membership alone?

Hypotheses
    The level of a group at a horizon of m decisions is the change of score that one decision in m exceeds when a person
    is recorded as the other group. For one group, H0: the level is at most the margin (by default one point of score,
    0.01). For groups a and b, H0: their levels at one common horizon differ by at most the margin (ECD).
Statistic
    One group: how many rows lie above the margin. Two groups: the counts above the two levels, as normal deviates,
    added in squares, at the value of the reference's level that suits the hypothesis best.
Reference distribution
    The binomial law of a count, exact whatever the form of the tail, with steps and ties; for two groups chi-square of
    one degree for the smallest sum. The fit never decides. Beyond the rows it gives the level and its upper limit:
    generalised Pareto excesses over a threshold that the exponentiality test chooses, if goodness of fit and
    stability of the threshold do not speak against it; for logistic models the closed form.
When it fails
    Models that do not see the attribute. Horizons beyond the rows where the fit is not believed: refused, and generated
    rows say what a longer look might show, without a test. The flip changes the named columns only: what else would
    differ had the person been another is not asked.

Symbols
    ==========  =====================  ==============  =================================
    code        [monjezi2025]          shape           where
    ==========  =====================  ==============  =================================
    cd          CD(x, z)               (rows,)         Definition III.1
    acd         ACD                    one per group   sec. III
    threshold   u                      one per group   sec. II, the k-th largest value
    location    mu at horizon m        one per group   sec. IV: location
    scale_at    sigma at horizon m     one per group   sec. IV
    shape       xi                     one per group   sec. IV: types I, II, III
    estimate    ECD = mu_u - mu_p      one per pair    Definition III.2
    ==========  =====================  ==============  =================================

Where print is not followed: the location depends on the size of the sample, so groups are compared at one horizon;
the limits of the exponentiality test are calibrated over all k; the end point cannot exceed what is possible; verdicts
are counted and have a margin; levels at horizons inside the sample are counted too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.audits.finding import Raw, columns_of
from evenhand.audits.margin import parse_margin
from evenhand.audits.tail.findings import (
    TailOptions,
    chosen_horizon,
    difference_finding,
    level_finding,
    refused,
)
from evenhand.audits.tail.group_tail import GroupTail, group_tail
from evenhand.audits.verdict import settle
from evenhand.errors import DataError, UsageError, near_matches
from evenhand.generators import extend_tail
from evenhand.inference.multiplicity import METHODS as CORRECTIONS
from evenhand.intake.data import Attribute, AuditData
from evenhand.kernels.shared.seeds import RngLike, seed_of
from evenhand.models import AuditedModel, audited_model
from evenhand.models.counterfactual import Columns, Flip, flip_values, recorded_as
from evenhand.results import AuditResult

FloatArray = NDArray[np.float64]
# A group's rows as they are and as members of another: (rows' columns, other code) -> two scores, higher is better.
Scores = Callable[[Columns, int], tuple[FloatArray, FloatArray]]

MARGIN = 0.01  # one point of a score from 0 to 1; one hundredth of another score's range


def audit_tail(
    data: AuditData,
    *,
    model: Any,
    attribute: str | None = None,
    flip: Flip | None = None,
    reference: Mapping[str, str] | str | None = None,
    horizon: float | None = None,
    k: int | None = None,
    favourable: str = "high",
    positive: Any = None,
    score_range: tuple[float, float] | None = None,
    margin: float | str | None = "default",
    alpha: float = 0.05,
    level: float | None = None,
    correction: str = "holm",
    printed: bool = False,
    generator: Any = "light",
    time_limit: float = 60.0,
    n_resamples: int = 999,
    workers: int = 1,
    progress: Callable[[str], None] | None = None,
    rng: RngLike = 0,
) -> AuditResult:
    """Estimate how badly the worst-treated members of each group are treated for their membership alone.

    Parameters
    ----------
    data : AuditData
        With features, among them the columns that record the attribute.
    model : object
        A fitted estimator or pipeline, an ONNX file, a torch module, or a callable from columns to scores.
    attribute : str, optional
        The protected attribute; by default each one.
    flip : str, sequence of str, mapping or callable, optional
        Columns that change together when the attribute does; by default the column of the attribute's name. A
        mapping gives each label's values; a function takes columns and a label.
    reference : mapping of str to str, or str, optional
        The group others are compared with; the largest by default.
    horizon : float, optional
        Decisions over which worst cases are compared, at least 10. By default the longest of 10, 20, 50, 100, 200, 500
        and 1000 for which the smaller group of a pair has ten times as many rows, so that counting decides.
    k : int, optional
        How many of the largest values make the tail; by default the exponentiality test chooses.
    favourable : {"high", "low"}
        Which scores people would rather have.
    positive : object, optional
        The class whose probability is the score; by default the one that counts as 1 in the data.
    score_range : tuple of float, optional
        Smallest and largest possible score; (0, 1) for probabilities, else no limit.
    margin : float, "default" or None
        A change (and a difference of changes) that counts as negligible: a verdict needs more. By default one point,
        0.01, of a score from 0 to 1, and of another score one hundredth of the range that its middle nine tenths cover;
        None or 0 asks for any change at all.
    alpha : float
        Error rate over all findings.
    level : float, optional
        Coverage of each interval, ``1 - alpha`` by default.
    correction : {"holm", "bonferroni", "bh", "none"}
        How p-values are adjusted over the findings.
    printed : bool
        Judge exponentiality by the limits as printed instead of the calibrated ones.
    generator : {"light", "ctgan", "tvae", "none"} or object
        What makes more rows of a group whose own do not suffice; an object has `fit` and `sample`. Generated rows
        never enter an estimate or a test, they are reported apart.
    time_limit : float
        Seconds that generating may take per group.
    n_resamples : int
        Samples of the fitted law that check it, at most 199 of them. Verdicts use no random draws.
    workers : int
        Accepted for all audits; this one uses one thread.
    progress : callable, optional
        Called with a short text before each piece of work.
    rng : int, Generator or None
        Seed.

    Returns
    -------
    AuditResult
        Per pair of groups a finding ``"ecd"`` and, for each of the two, a finding ``"return_level"``.

    Examples
    --------
    >>> import evenhand as eh
    >>> draw = np.random.default_rng(0)
    >>> x, sex = draw.normal(size=4000), draw.integers(2, size=4000)
    >>> model = lambda X: 1 / (1 + np.exp(-X[:, 0] - 0.8 * X[:, 1]))
    >>> score = model(np.column_stack([x, sex]))
    >>> data = eh.AuditData.from_arrays(score=score, groups={"sex": sex}, features={"x": x, "sex": sex})
    >>> result = audit_tail(data, model=model, rng=0)
    >>> women = next(f for f in result if f.measure == "return_level" and f.groups[0] == "sex=0")
    >>> round(women.estimate, 3), round(float(np.tanh(0.8 / 4)), 3)  # the exact worst case of this model
    (0.197, 0.197)
    """
    scorer, options, asked = _prepare(
        data, model, attribute, reference, horizon, k, favourable, positive, score_range, margin, alpha, level,
        correction, printed, generator, time_limit, n_resamples, rng,
    )  # fmt: skip
    raw: list[Raw] = []
    for one in asked:
        values = flip_values(data.features, one.name, one.labels, one.codes, flip)
        if isinstance(values, str):
            raw.extend(refused(one, options, values))
            continue
        raw.extend(_questions(data, one, _scores(scorer, one, values, options), options, generator, progress))
    result = AuditResult(
        audit="tail",
        **columns_of(raw),
        options=asdict(options) | {"model": scorer.name},
        notes=data.notes,
    )
    return settle([result], alpha=alpha, correction=correction)[0]


def _questions(
    data: AuditData,
    attribute: Attribute,
    scores: Scores,
    options: TailOptions,
    generator: Any,
    progress: Callable[[str], None] | None,
) -> Iterator[Raw]:
    """Ask each pair of groups: who is treated worse at worst, and how badly each."""
    b = attribute.labels.index(options.reference[attribute.name])
    pairs = [(a, b) for a in range(len(attribute.labels)) if a != b]
    asked = {
        (own, other): _group_scores(data, attribute, scores, own, other)
        for pair in pairs
        for own, other in (pair, pair[::-1])
    }
    # The last bits of a prediction may depend on the rows beside it.
    if all(np.abs(after - before).max(initial=0.0) <= 1e-12 for before, after in asked.values()):
        rows = sum(before.size for before, _ in asked.values())
        why = (
            f"The model cannot see `{attribute.name}`: flipping it changes none of {rows:,} scores. A model that does "
            "not use the attribute, or gives everybody one score, treats nobody by membership alone; audit its "
            "proxies instead"
        )
        yield from refused(attribute, options, why)
        return
    for a, _ in pairs:
        smaller = min(asked[a, b][0].size, asked[b, a][0].size)
        horizon = chosen_horizon(smaller) if options.horizon is None else options.horizon
        found = []
        for own, other in ((a, b), (b, a)):
            if progress is not None:
                progress(f"tail: {attribute.group_name(own)}")
            group = group_tail(
                attribute.group_name(own),
                attribute.group_name(other),
                *asked[own, other],
                horizon=horizon,
                k=options.k,
                upper=options.span,
                level=options.level,
                printed=options.printed,
                draws=options.n_resamples,
                seed=options.seed,
            )
            found.append(_extended(group, data, attribute, own, other, scores, horizon, options, generator, progress))
        yield difference_finding(found[0], found[1], horizon, options)
        yield from (level_finding(group, horizon, options) for group in found)


def _group_scores(
    data: AuditData, attribute: Attribute, scores: Scores, own: int, other: int
) -> tuple[FloatArray, FloatArray]:
    mine = attribute.codes == own
    before, after = scores({n: c[mine] for n, c in data.features.items()}, other)
    times = data.count[mine]
    return np.repeat(before, times), np.repeat(after, times)


def _extended(
    group: GroupTail,
    data: AuditData,
    attribute: Attribute,
    own: int,
    other: int,
    scores: Scores,
    horizon: float,
    options: TailOptions,
    generator: Any,
    progress: Callable[[str], None] | None,
) -> GroupTail:
    """Ask a generator where a group's own rows give no level and are not in steps."""
    atoms = group.ties is not None and group.ties.atoms
    known = not math.isnan(group.level_at(horizon, options.level).value)
    if known or atoms or options.generator == "none" or group.cd.size < 20:
        return group
    mine = attribute.codes == own
    rows = {n: np.repeat(c[mine], data.count[mine]) for n, c in data.features.items()}

    def change(made: Columns) -> FloatArray:
        before, after = scores(made, other)
        return after - before

    suggestion = extend_tail(
        rows,
        change,
        generator,
        horizon=horizon,
        upper=options.span,
        seed=options.seed,
        time_limit=options.time_limit,
        progress=progress,
    )
    return replace(group, synthetic=suggestion)


def _scores(scorer: AuditedModel, attribute: Attribute, values: Any, options: TailOptions) -> Scores:
    """Return scores of rows in both records, higher is better. [monjezi2025] Definition III.1."""

    def scores(columns: Columns, other: int) -> tuple[FloatArray, FloatArray]:
        if not len(next(iter(columns.values()))):
            return np.empty(0), np.empty(0)
        before = scorer.score(columns)
        after = scorer.score(recorded_as(columns, attribute.labels[other], other, values))
        return (before, after) if options.favourable == "high" else (1 - before, 1 - after)

    return scores


def _prepare(
    data: AuditData, model: Any, attribute: str | None, reference: Mapping[str, str] | str | None,
    horizon: float | None, k: int | None, favourable: str, positive: Any, score_range: tuple[float, float] | None,
    margin: float | str | None, alpha: float, level: float | None, correction: str, printed: bool, generator: Any,
    time_limit: float, n_resamples: int, rng: RngLike,
) -> tuple[AuditedModel, TailOptions, tuple[Attribute, ...]]:  # fmt: skip
    """Check the request against the data; the only place that raises errors about them."""
    if not data.features:
        raise DataError("The tail audit asks the model about changed records and needs `features`. None were given.")
    if data.weight is not None:
        raise DataError(
            "Sampling weights were given and the tail audit does not take them: the largest changes are counted, not "
            "averaged. Leave `weight` out, draw rows in proportion to it first, or pass whole-number counts as "
            "`weight_kind='frequency'`."
        )
    asked = data.attributes if attribute is None else (data.attribute(attribute),)
    if not asked:
        raise DataError("No group column was given. Name at least one in `groups`.")
    for name, value, allowed in (
        ("favourable", favourable, ("high", "low")),
        ("correction", correction, (*CORRECTIONS, "max-t")),
        ("generator", generator if isinstance(generator, str) else "light", ("light", "ctgan", "tvae", "none")),
    ):
        if value not in allowed:
            raise UsageError(f"`{name}` is `{value}`.{near_matches(value, allowed)}")
    for name, number, low, high in (
        ("alpha", alpha, 0, 1),
        ("level", 0.5 if level is None else level, 0, 1),
        ("horizon", 10 if horizon is None else horizon, 9.999, 1e12),
        ("k", 50 if k is None else k, 19, 501),
        ("n_resamples", n_resamples, 98, 1e7),
        ("time_limit", time_limit, 0, 1e7),
    ):
        if not low < number < high:
            raise UsageError(f"`{name}` must lie between {math.ceil(low)} and {high:g}; got {number}.")
    bounds = None if margin in ("default", None, 0) else parse_margin(margin)
    if bounds is not None and bounds.ratio:
        raise UsageError(f"The tail audit takes a difference as margin, such as 0.05; got `{margin}`.")
    scorer = audited_model(model, data, positive=positive)
    if score_range is None:
        known = scorer.probability or data.score_kind == "probability"
        score_range = (0.0, 1.0) if known else (-math.inf, math.inf)
    span = float(score_range[1] - score_range[0])
    if bounds is not None and bounds.value >= span:
        raise UsageError(f"A margin of {margin} is as large as the score's range of {span:g}, which no change exceeds.")
    options = TailOptions(
        reference=_references(asked, reference, data.count),
        horizon=None if horizon is None else float(horizon),
        k=k,
        favourable=favourable,
        score_range=(float(score_range[0]), float(score_range[1])),
        margin=_default_margin(scorer, data, span) if margin == "default" else None if bounds is None else bounds.value,
        alpha=alpha,
        level=1 - alpha if level is None else level,
        printed=printed,
        generator=generator if isinstance(generator, str) else type(generator).__name__,
        time_limit=time_limit,
        n_resamples=int(n_resamples),
        seed=seed_of(rng),
    )
    return scorer, options, asked


def _default_margin(scorer: AuditedModel, data: AuditData, span: float) -> float:
    """Return one hundredth of the score's range as it is known, or of the range of the middle nine tenths seen."""
    if math.isinf(span):
        seen = scorer.score(data.features)
        low, high = np.quantile(seen, [0.05, 0.95])
        span = 1.0 if seen.min() >= 0 and seen.max() <= 1 else float(high - low)
    return float(f"{MARGIN * span:.2g}") or MARGIN


def _references(
    asked: tuple[Attribute, ...], wanted: Mapping[str, str] | str | None, count: NDArray[np.int64]
) -> dict[str, str]:
    if isinstance(wanted, str):
        wanted = {one.name: wanted for one in asked}
    found = {}
    for one in asked:
        label = str((wanted or {}).get(one.name, _largest(one, count)))
        if label not in one.labels:
            raise UsageError(
                f"Reference `{one.name}={label}` is not a group in the data.{near_matches(label, one.labels)}"
            )
        found[one.name] = label
    return found


def _largest(attribute: Attribute, count: NDArray[np.int64]) -> str:
    sizes = np.bincount(attribute.codes, weights=count, minlength=len(attribute.labels))
    return attribute.labels[int(np.argmax(sizes))]
