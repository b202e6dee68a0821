"""Tail audit: how badly is the worst-treated person disadvantaged for group membership alone?

Hypotheses
    For groups a and b and a common horizon of m decisions, H0: the change of score that one decision in m exceeds
    when a person is recorded as the other group (the return level) is the same in both. For one group, H0: at most
    one in m would be better off at all.
Statistic
    ECD: the difference of the two return levels over its standard error. For one group: how many would be better off.
Reference distribution
    Group labels permuted, both tails refitted and studentised on every permutation, and the interval of the difference:
    the larger p-value counts. For one group the binomial law.
    Return levels: generalised Pareto excesses over a threshold that the exponentiality test chooses, profile
    likelihood or pivotal draws for the intervals, the end point at most what the score's range allows.
When it fails
    Models that do not see the attribute; scores in steps (trees): refused. Few rows or a tail heavier than
    exponential: refused, and generated rows say what a longer look might show, without a test. The flip changes the
    named columns only: what else would differ had the person been another is not asked. Permuting labels
    alone rejects too often when the groups' tails have different forms (.34 at 5 % in the worst cell measured).

Symbols
    ==========  =====================  ==============  =================================
    code        [monjezi2025]          shape           where
    ==========  =====================  ==============  =================================
    cd          CD(x, z)               (rows,)         Definition III.1
    acd         ACD                    one per group   sec. III
    threshold   u                      one per group   sec. II, the k-th largest value
    level       mu at horizon m        one per group   sec. IV: location
    scale_at    sigma at horizon m     one per group   sec. IV
    shape       xi                     one per group   sec. IV: types I, II, III
    estimate    ECD = mu_u - mu_p      one per pair    Definition III.2
    ==========  =====================  ==============  =================================

Where print is not followed: the location depends on the size of the sample, so groups are compared at one horizon;
the limits of the exponentiality test are calibrated over all k; the end point cannot exceed the score's range.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.audits.margin import parse_margin
from evenhand.audits.tail_findings import Raw, TailOptions, difference_finding, level_finding, refused
from evenhand.audits.tail_group import GroupTail, group_tail
from evenhand.audits.verdict import settle
from evenhand.errors import DataError, UsageError, near_matches
from evenhand.generators import extend_tail
from evenhand.inference.multiplicity import METHODS as CORRECTIONS
from evenhand.intake.data import Attribute, AuditData
from evenhand.kernels.seeds import RngLike, seed_of, stream
from evenhand.models.counterfactual import Columns, Flip, Scorer, as_scorer, flip_values, recorded_as
from evenhand.results import AuditResult

FloatArray = NDArray[np.float64]
# Cost of a group's rows as members of another: (rows' columns, own code, other code) -> change of score.
Change = Callable[[Columns, int, int], FloatArray]


def audit_tail(
    data: AuditData,
    *,
    model: Any,
    attribute: str | None = None,
    flip: Flip | None = None,
    reference: Mapping[str, str] | str | None = None,
    horizon: float = 1000,
    k: int | None = None,
    favourable: str = "high",
    positive: Any = None,
    score_range: tuple[float, float] | None = None,
    margin: float | None = None,
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
    horizon : float
        Decisions over which worst cases are compared, the same for all groups; at least 10.
    k : int, optional
        How many of the largest values make the tail; by default the exponentiality test chooses.
    favourable : {"high", "low"}
        Which scores people would rather have.
    positive : object, optional
        The class whose probability is the score; by default the model's last.
    score_range : tuple of float, optional
        Smallest and largest possible score; (0, 1) for probabilities, else no limit.
    margin : float, optional
        A change (and a difference of changes) that counts as negligible.
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
        Permutations.
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
    >>> result = audit_tail(data, model=model, horizon=10_000, rng=0)
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
        change = _statistic(scorer, one, values, options)
        raw.extend(_questions(data, one, change, options, generator, progress))
    result = AuditResult(
        audit="tail",
        findings=tuple(finding for finding, _ in raw),
        evidence=tuple(evidence for _, evidence in raw),
        options=asdict(options) | {"model": scorer.name},
        notes=data.notes,
    )
    return settle([result], alpha=alpha, correction=correction)[0]


def _questions(
    data: AuditData,
    attribute: Attribute,
    change: Change,
    options: TailOptions,
    generator: Any,
    progress: Callable[[str], None] | None,
) -> Iterator[Raw]:
    """Ask each pair of groups: who is treated worse at worst, and how badly each."""
    b = attribute.labels.index(options.reference[attribute.name])
    pairs = [(a, b) for a in range(len(attribute.labels)) if a != b]
    changes = {
        (own, other): np.repeat(*_group_changes(data, attribute, change, own, other))
        for pair in pairs
        for own, other in (pair, pair[::-1])
    }
    # The last bits of a prediction may depend on the rows beside it.
    if all(np.abs(v).max(initial=0.0) <= 1e-12 for v in changes.values()):
        rows = sum(v.size for v in changes.values())
        why = (
            f"The model cannot see `{attribute.name}`: flipping it changes none of {rows:,} scores. A model that does "
            "not use the attribute, or gives everybody one score, treats nobody by membership alone; audit its "
            "proxies instead"
        )
        yield from refused(attribute, options, why)
        return
    for a, _ in pairs:
        found = []
        for own, other in ((a, b), (b, a)):
            if progress is not None:
                progress(f"tail: {attribute.group_name(own)}")
            found.append(
                _one_group(data, attribute, changes[own, other], own, other, change, options, generator, progress)
            )
        yield difference_finding(found[0], found[1], options)
        yield from (level_finding(group, options) for group in found)


def _group_changes(
    data: AuditData, attribute: Attribute, change: Change, own: int, other: int
) -> tuple[FloatArray, NDArray[np.int64]]:
    mine = attribute.codes == own
    return change({n: c[mine] for n, c in data.features.items()}, own, other), data.count[mine]


def _one_group(
    data: AuditData,
    attribute: Attribute,
    cd: FloatArray,
    own: int,
    other: int,
    change: Change,
    options: TailOptions,
    generator: Any,
    progress: Callable[[str], None] | None,
) -> GroupTail:
    group = group_tail(
        attribute.group_name(own),
        attribute.group_name(other),
        cd,
        horizon=options.horizon,
        k=options.k,
        upper=options.span,
        level=options.level,
        printed=options.printed,
        rng=stream(options.seed, "tail/interval"),
    )
    atoms = group.ties is not None and group.ties.atoms
    if group.tail is not None or atoms or options.generator == "none" or cd.size < 20:
        return group
    mine = attribute.codes == own
    rows = {n: np.repeat(c[mine], data.count[mine]) for n, c in data.features.items()}
    suggestion = extend_tail(
        rows,
        lambda made: change(made, own, other),
        generator,
        horizon=options.horizon,
        upper=options.span,
        seed=options.seed,
        time_limit=options.time_limit,
        progress=progress,
    )
    return replace(group, synthetic=suggestion)


def _statistic(scorer: Scorer, attribute: Attribute, values: Any, options: TailOptions) -> Change:
    """Return the change of score when rows of one group are recorded as another. [monjezi2025] Definition III.1."""
    sign = 1.0 if options.favourable == "high" else -1.0

    def change(columns: Columns, own: int, other: int) -> FloatArray:
        if not len(next(iter(columns.values()))):
            return np.empty(0)
        return sign * scorer.change(columns, recorded_as(columns, attribute.labels[other], other, values))

    return change


def _prepare(
    data: AuditData, model: Any, attribute: str | None, reference: Mapping[str, str] | str | None, horizon: float,
    k: int | None, favourable: str, positive: Any, score_range: tuple[float, float] | None, margin: float | None,
    alpha: float, level: float | None, correction: str, printed: bool, generator: Any, time_limit: float,
    n_resamples: int, rng: RngLike,
) -> tuple[Scorer, TailOptions, tuple[Attribute, ...]]:  # fmt: skip
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
        ("horizon", horizon, 9.999, 1e12),
        ("k", 50 if k is None else k, 19, 501),
        ("n_resamples", n_resamples, 98, 1e7),
        ("time_limit", time_limit, 0, 1e7),
    ):
        if not low < number < high:
            raise UsageError(f"`{name}` must lie between {math.ceil(low)} and {high:g}; got {number}.")
    bounds = parse_margin(margin)
    if bounds is not None and bounds.ratio:
        raise UsageError(f"The tail audit takes a difference as margin, such as 0.05; got `{margin}`.")
    scorer = as_scorer(model, data.features, positive=positive)
    if score_range is None:
        known = scorer.probability or data.score_kind == "probability"
        score_range = (0.0, 1.0) if known else (-math.inf, math.inf)
    options = TailOptions(
        reference=_references(asked, reference, data.count),
        horizon=float(horizon),
        k=k,
        favourable=favourable,
        score_range=(float(score_range[0]), float(score_range[1])),
        margin=None if bounds is None else bounds.value,
        alpha=alpha,
        level=1 - alpha if level is None else level,
        printed=printed,
        generator=generator if isinstance(generator, str) else type(generator).__name__,
        time_limit=time_limit,
        n_resamples=int(n_resamples),
        seed=seed_of(rng),
    )
    return scorer, options, asked


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
