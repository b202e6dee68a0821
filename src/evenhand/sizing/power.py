"""Power and sample size of the group audit: what can so many rows show, and how many rows are needed?

Two ways in: numbers assumed before there are data, or a pilot whose variances are taken. Both end in a design
(`evenhand.inference.power`), which is asked the same questions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from evenhand.audits.detectable import Rows, rows_to_show
from evenhand.audits.group import comparisons
from evenhand.audits.group.samples import row_values, samples_of
from evenhand.audits.margin import parse_margin
from evenhand.errors import UsageError
from evenhand.inference.correlation import correlation_test
from evenhand.inference.limits import Margin
from evenhand.inference.power.assumed import assumed_design
from evenhand.inference.power.designs import Correlation, Design, Means, Pair
from evenhand.inference.power.detectable import detectable
from evenhand.inference.power.pilot import design_of
from evenhand.inference.samples import Draws
from evenhand.intake import Attribute, AuditData
from evenhand.metrics import METRICS, Metric, resolve
from evenhand.sizing.result import Goal, PowerResult, PowerRow
from evenhand.summaries import Sums

Metrics = Sequence[str | Metric] | str | Metric
Sizes = Mapping[str, int] | Sequence[int] | int | None
Assumed = float | Sequence[float] | None
_NAMES = ("group", "reference")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """The questions put to every design."""

    difference: float | None
    ratio: float | None
    margin: Margin | None
    alpha: float
    power: float
    curve: str | None
    strict: bool  # whether an impossible difference is an error and not a reason


def power(
    metrics: Metrics,
    data: AuditData | None = None,
    *,
    rows: Sizes = None,
    value: float | None = None,
    base_rate: Assumed = None,
    selection_rate: Assumed = None,
    spread: Assumed = None,
    difference: float | None = None,
    ratio: float | None = None,
    margin: float | str | None = None,
    alpha: float = 0.05,
    findings: int | None = None,
    power: float = 0.8,
    curve: str | None = None,
    reference: Mapping[str, str] | str | None = None,
    compare: str = "reference",
) -> PowerResult:
    """Say what a group audit can show, and how many rows it needs.

    Parameters
    ----------
    metrics : sequence of str or Metric, or one of them
        Names of the catalogue, ``"correlation"``, or metrics of one's own.
    data : AuditData, optional
        A pilot: values, variances and, unless `rows` is given, group sizes come from it. Without it, they are
        assumed with the next five.
    rows : mapping of str to int, pair of int, or int, optional
        Rows of the group and of its reference, such as ``{"F": 200, "M": 800}``; one number for a correlation.
    value : float, optional
        The metric's value in the reference.
    base_rate, selection_rate : float or pair, optional
        Share of rows with outcome 1, and with decision 1; one number, or one for each group. A metric needs the one
        that says how many rows its denominator has.
    spread : float or pair, optional
        Standard deviation of a mean's values per row. For the calibration error, that of outcome minus score; from
        `base_rate` by default. For a metric of one's own, the standard error of its value times the root of the rows.
    difference : float, optional
        What is to be shown: the group's value minus the reference's.
    ratio : float, optional
        The same as a ratio.
    margin : float or str, optional
        As in `audit_group`: also say how equivalence can be shown when the truth is no difference.
    alpha : float
        Error rate over all findings.
    findings : int, optional
        How many findings share it: alpha is divided by this number, as in Holm's first step. By default the number
        of comparisons asked for here.
    power : float
        How often what is there is to be shown.
    curve : {"rows", "difference"}, optional
        Also return the power over multiples of the rows (for `difference`), or over differences.
    reference, compare
        As in `audit_group`, for a pilot.

    Returns
    -------
    PowerResult
        One row per metric and comparison.

    Examples
    --------
    >>> import evenhand as eh
    >>> plan = eh.power("fnr", rows={"F": 300, "M": 900}, value=0.2, base_rate=0.4, difference=0.1)
    >>> plan[0].to_show_difference.rows
    (474.0, 1422.0)
    >>> pilot = eh.datasets.planted(rows=400, rng=0)
    >>> len(eh.power(["fnr", "auc"], pilot))
    2
    """
    margin_ = parse_margin(margin)
    _check(alpha, power, findings, difference, ratio, curve)
    if data is None:
        parts = list(_assumed(metrics, rows, value, base_rate, selection_rate, spread))
    else:
        if any(v is not None for v in (value, base_rate, selection_rate, spread)):
            raise UsageError("A pilot was given, so `value`, rates and `spread` come from it. Leave them out.")
        pairs = comparisons(data, metrics, reference=reference, compare=compare, alpha=alpha)
        parts = list(_pilot(metrics, data, rows, pairs))
    count = len(parts) if findings is None else findings
    asked = _Asked(
        difference=difference,
        ratio=ratio,
        margin=margin_,
        alpha=alpha / count,
        power=power,
        curve=curve,
        strict=data is None,
    )
    rows_ = tuple(
        PowerRow(measure=m, groups=g, rows=n, value=v, reason=design)
        if isinstance(design, str)
        else _answer(m, g, n, v, design, asked)
        for m, g, n, v, design in parts
    )
    options = {"alpha": alpha, "findings": count, "power": power, "difference": difference, "ratio": ratio}
    return PowerResult(rows=rows_, options={**options, "margin": None if margin_ is None else asdict(margin_)})


_Part = tuple[str, tuple[str, ...], tuple[float, ...], float, Design | str]


def _assumed(
    metrics: Metrics, rows: Sizes, value: float | None, base_rate: Assumed, selection_rate: Assumed, spread: Assumed
) -> Iterator[_Part]:
    """Yield the design of each metric from assumed numbers."""
    if metrics == "correlation" or (isinstance(metrics, Sequence) and list(metrics) == ["correlation"]):
        if not isinstance(rows, int) or rows < 4:
            raise UsageError(f"A correlation needs `rows`, one whole number of at least 4; got {rows}.")
        yield "correlation", ("attribute",), (float(rows),), 0.0, Correlation()
        return
    names, sizes = _sizes(rows)
    numbers = {"base_rate": base_rate, "selection_rate": selection_rate, "spread": spread}
    given = {name: _two(name, number) for name, number in numbers.items()}
    for metric in _sizable(metrics):
        assumed = 0.0 if value is None and metric.kind == "mean" else value
        if assumed is None or not metric.low <= assumed <= metric.high:
            raise UsageError(
                f"Metric `{metric.name}` needs `value`, the value assumed for the reference, between {metric.low:g} "
                f"and {metric.high:g}; got {value}."
            )
        shape = "balanced" if metric in (METRICS["balanced_accuracy"], METRICS["aod"]) else metric.kind
        cells = () if metric.kind != "rate" else metric.denominator
        if metric.kind == "scoring":  # a share of everybody, as the selection rate is
            shape, cells = "rate", METRICS["selection_rate"].denominator
        limits = (metric.low, metric.high)
        design = assumed_design(metric.name, shape, cells, given, f1=metric.transform == "f1", limits=limits)
        yield metric.name, names, sizes, assumed, design


def _pilot(
    metrics: Metrics, data: AuditData, rows: Sizes, pairs: Iterator[tuple[Metric, Attribute, int, int]]
) -> Iterator[_Part]:
    """Yield the design of each comparison that an audit of the pilot would make."""
    sums = Sums(data)
    _sizable(metrics)
    for metric, attribute, a, b in pairs:
        samples = samples_of(metric, sums, attribute)
        names = (attribute.group_name(a), attribute.group_name(b))
        sizes = tuple(float(samples.counts[k]["rows"]) for k in (a, b)) if rows is None else _sizes(rows)[1]
        why = [f"Group `{n}` {samples.reason[k]}." for n, k in zip(names, (a, b), strict=True) if samples.reason[k]]
        design = design_of(samples, a, b) or " ".join(why) or "The pilot gives no variance: its values do not vary."
        if isinstance(design, Means):
            design = replace(design, low=metric.low, high=metric.high)
        yield metric.name, names, sizes, float(samples.estimate[b]), design
    for metric in resolve(metrics):
        for name in data.continuous:
            per_row = row_values(metric, data)
            if per_row is None or metric.compare or data.weight is not None:
                continue  # the audit has no such correlation
            values, inside = per_row
            count = data.count[inside]
            r, test = correlation_test(data.continuous[name][inside], values[inside], count, Draws(method="limit"))
            n = float(count.sum()) if rows is None else float(rows if isinstance(rows, int) else sum(_sizes(rows)[1]))
            tau = math.sqrt(float(count.sum())) * r / test.statistic if test.statistic else None
            design = "The pilot's values do not vary." if math.isnan(r) else Correlation(tau)
            yield f"{metric.name}_correlation", (name,), (n,), 0.0, design


def _sizable(metrics: Sequence[str | Metric] | str | Metric) -> tuple[Metric, ...]:
    """Resolve metrics, and refuse those that no one difference of values describes."""
    chosen = resolve(metrics)
    for metric in chosen:
        if metric.kind == "gaps":
            parts = " and ".join(f"`{name}`" for name in metric.parts)
            raise UsageError(
                f"Metric `{metric.name}` cannot be sized: what is shown depends on which of {parts} differs. Size "
                f"{parts} in its place; the smaller p-value of the two decides, as with two findings."
            )
    return chosen


def _answer(
    measure: str, groups: tuple[str, ...], rows: tuple[float, ...], value: float, design: Design, asked: _Asked
) -> PowerRow:
    """Ask a design everything."""
    pair = (rows[0], rows[-1])
    below, above = detectable(design, pair, value, asked.alpha, asked.power)
    low, high = design.range
    gap, impossible = _gap(measure, value, design.range, asked)
    if impossible and asked.strict:
        raise UsageError(f"{impossible} Ask for a smaller difference, or one in the other direction.")
    goals: list[Goal | None] = [None, None]
    reasons = [impossible] if impossible else []
    if math.isnan(below + above):
        reasons.append(_undetectable(below, above, low, high))
    if gap:
        chance = design.power(pair, (value + gap, value), asked.alpha)
        needed = rows_to_show(design, pair, (value + gap, value), asked.alpha, asked.power, None)
        goals[0] = _goal(chance, needed, groups)
    if asked.margin is not None and len(groups) == 2:
        chance = design.equivalence(pair, (value, value), asked.margin, asked.alpha)
        needed = rows_to_show(design, pair, (value, value), asked.alpha, asked.power, asked.margin)
        goals[1] = _goal(chance, needed, groups)
        if math.isnan(needed.both[0]):
            reasons.append("No number of rows shows equivalence.")
    elif asked.margin is not None:
        reasons.append("A correlation has no equivalence test.")
    return PowerRow(
        measure=measure,
        groups=groups,
        rows=rows,
        value=value,
        below=below,
        above=above,
        difference=math.nan if gap is None else gap,
        to_show_difference=goals[0],
        to_show_equivalence=goals[1],
        curve=tuple(_curve(design, pair, value, gap, (below, above), asked)),
        reason=" ".join(reasons),
    )


def _gap(measure: str, value: float, limits: Pair, asked: _Asked) -> tuple[float | None, str]:
    """Return the difference that is to be shown, or None and why there is none."""
    gap = asked.difference if asked.ratio is None else value * (asked.ratio - 1)
    if asked.ratio is not None and value == 0:
        return None, f"{measure} is 0 in the reference, so no ratio is a difference."
    if gap is not None and not limits[0] <= value + gap <= limits[1]:
        return None, (
            f"{measure} is {value:.3g} in the reference, so a difference of {gap:.3g} leads to {value + gap:.3g}, "
            f"outside {limits[0]:g} to {limits[1]:g}."
        )
    return gap, ""


def _undetectable(below: float, above: float, low: float, high: float) -> str:
    where = [f"{side} the reference's value" for d, side in ((below, "below"), (above, "above")) if math.isnan(d)]
    return f"No value {' or '.join(where)} (the range is {low:g} to {high:g}) is shown so often with these rows."


def _goal(chance: float, needed: Rows, groups: tuple[str, ...]) -> Goal:
    return Goal(
        power=chance,
        rows=needed.both[: len(groups)],
        one_group="" if needed.limiting is None else groups[needed.limiting],
        one_group_rows=needed.alone,
    )


def _curve(
    design: Design, rows: Pair, value: float, gap: float | None, least: Pair, asked: _Asked
) -> Iterator[dict[str, float]]:
    if asked.curve == "rows" and gap:
        for factor in (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0):
            n = (math.ceil(factor * rows[0]), math.ceil(factor * rows[1]))
            chance = design.power(n, (value + gap, value), asked.alpha)
            yield {"group_rows": n[0], "reference_rows": n[1], "power": chance}
    elif asked.curve == "difference":
        low, high = design.range
        far = 2 * (least[1] if not math.isnan(least[1]) else abs(least[0]) if not math.isnan(least[0]) else high - low)
        for step in range(-10, 11):
            d = far * step / 10
            if low <= value + d <= high:
                yield {"difference": d, "power": design.power(rows, (value + d, value), asked.alpha)}


def _sizes(rows: Sizes) -> tuple[tuple[str, str], tuple[float, float]]:
    values = list(rows.values()) if isinstance(rows, Mapping) else list(rows) if isinstance(rows, Sequence) else []
    if len(values) != 2 or any(isinstance(n, bool) or int(n) != n or n < 2 for n in values):
        raise UsageError(
            f"`rows` must hold the rows of a group and of its reference, whole numbers of at least 2; got {rows}."
        )
    names = tuple(str(n) for n in rows) if isinstance(rows, Mapping) else _NAMES
    return (names[0], names[1]), (float(values[0]), float(values[1]))


def _two(name: str, value: Assumed) -> Pair | None:
    """Read one number for both groups, or one for each."""
    if value is None:
        return None
    both = [float(value)] * 2 if isinstance(value, int | float) else [float(v) for v in value]
    top = math.inf if name == "spread" else 1.0
    if len(both) != 2 or not all(0 < v < top for v in both):
        raise UsageError(f"`{name}` must be one number, or one for each group, above 0 and below {top:g}; got {value}.")
    return both[0], both[1]


def _check(
    alpha: float, power: float, findings: int | None, difference: float | None, ratio: float | None, curve: str | None
) -> None:
    for name, number in (("alpha", alpha), ("power", power)):
        if not 0 < number < 1:
            raise UsageError(f"`{name}` must lie between 0 and 1; got {number}.")
    if power <= alpha:
        raise UsageError(f"`power` must be above `alpha`; got {power} and {alpha}.")
    if findings is not None and (isinstance(findings, bool) or int(findings) != findings or findings < 1):
        raise UsageError(f"`findings` must be a whole number of at least 1; got {findings}.")
    if difference is not None and ratio is not None:
        raise UsageError("Both `difference` and `ratio` were given. Give one.")
    if difference is not None and (difference == 0 or not math.isfinite(difference)):
        raise UsageError(f"`difference` must be a number other than 0; got {difference}.")
    if ratio is not None and not (0 <= ratio < math.inf and ratio != 1):
        raise UsageError(f"`ratio` must be a number of at least 0 other than 1; got {ratio}.")
    if curve not in (None, "rows", "difference"):
        raise UsageError(f"`curve` is `{curve}`; allowed: `rows`, `difference`.")
    if curve == "rows" and difference is None and ratio is None:
        raise UsageError("A curve over rows needs `difference` or `ratio`: what is to be shown.")
