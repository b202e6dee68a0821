"""A finding's estimate and interval as a small picture for one line of a table: SVG without scripts or names."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from evenhand.audits.margin import is_ratio, margin_ends
from evenhand.report.document import shown
from evenhand.results import Finding, Verdict

_WIDTH, _HEIGHT, _EDGE = 220, 18, 6
_LARGEST = {False: 1.0, True: 4.0}  # a difference, or a ratio, beyond it has a scale of its own
_MARKS = {
    Verdict.DISPARITY: '<circle cx="{x}" cy="9" r="4.5"/>',
    Verdict.EQUIVALENT: '<rect x="{left}" y="5" width="8" height="8"/>',
    Verdict.INCONCLUSIVE: '<path d="M{x} 3.5l5.5 5.5l-5.5 5.5l-5.5-5.5z"/>',
    Verdict.NOT_COMPUTABLE: "",
}


@dataclass(frozen=True, slots=True)
class Scale:
    """Which values lie where; the findings of one scale can be compared by eye."""

    low: float
    high: float
    none: float  # where there is no difference

    def at(self, value: float) -> float:
        """Return the place of a value; one beyond the scale stands at its edge."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(_EDGE + share * (_WIDTH - 2 * _EDGE), 1)


def family(finding: Finding) -> tuple[str, str]:
    """Name the findings that share a scale: an audit's differences, its ratios, or a measure with large values."""
    ratio = is_ratio(finding.measure)
    if any(abs(value) > _LARGEST[ratio] for value in _values(finding)):
        return finding.audit, finding.measure
    return finding.audit, "ratio" if ratio else "difference"


def scales(findings: Sequence[Finding]) -> Mapping[tuple[str, str], Scale]:
    """Return the scale of each family.

    Examples
    --------
    >>> row = Finding(audit="group", measure="fnr", groups=("a", "b"), estimate=0.2)
    >>> scale = scales([row])[family(row)]
    >>> scale.low < 0.0 < 0.2 < scale.high, scale.none
    (True, 0.0)
    """
    made = {}
    for name in dict.fromkeys(map(family, findings)):
        own = [f for f in findings if family(f) == name]
        none = 1.0 if is_ratio(own[0].measure) else 0.0
        values = [none, *(v for f in own for v in _values(f))]
        low, high = min(values), max(values)
        room = 0.05 * (high - low) or 1.0
        made[name] = Scale(low - room, high + room, none)
    return made


def _values(finding: Finding) -> list[float]:
    ends = [] if finding.interval is None else [finding.interval.low, finding.interval.high]
    margin = [] if finding.margin is None else [*margin_ends(finding.measure, finding.margin)]
    return [value for value in (finding.estimate, *ends, *margin) if math.isfinite(value)]


def dot(finding: Finding, scale: Scale) -> Markup:
    """Draw one finding: a line where there is no difference, dashes at the margin, the interval, the estimate."""
    if not math.isfinite(finding.estimate):
        return Markup("")
    parts = [_upright(scale.at(scale.none), "none")]
    if finding.margin is not None:
        parts += [_upright(scale.at(end), "margin") for end in margin_ends(finding.measure, finding.margin)]
    said = shown(float(finding.estimate))
    if finding.interval is not None:
        low, high = finding.interval.low, finding.interval.high
        said += f", between {shown(float(low))} and {shown(float(high))}"
        parts.append(f'<line x1="{scale.at(low)}" x2="{scale.at(high)}" y1="9" y2="9" class="between"/>')
    x = scale.at(finding.estimate)
    parts.append(_MARKS[finding.verdict].format(x=x, left=round(x - 4, 1)))
    head = f'<svg class="dot {finding.verdict}" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}"'
    return Markup(f'{head} role="img" aria-label="{said}">{"".join(parts)}</svg>')


def axis_of(scale: Scale) -> Markup:
    """Draw the values at the ends of a scale and where there is no difference."""
    texts = []
    for value, anchor in ((scale.low, "start"), (scale.none, "middle"), (scale.high, "end")):
        near = value != scale.none and abs(scale.at(value) - scale.at(scale.none)) < 50
        if not near:
            side = "start" if scale.at(value) < 30 else "end" if scale.at(value) > _WIDTH - 30 else anchor
            texts.append(f'<text x="{scale.at(value)}" y="10" text-anchor="{side}">{float(f"{value:.2g}"):g}</text>')
    return Markup(
        f'<svg class="dot" viewBox="0 0 {_WIDTH} 12" width="{_WIDTH}" height="12" aria-hidden="true">'
        f"{''.join(texts)}</svg>"
    )


def _upright(x: float, kind: str) -> str:
    return f'<line x1="{x}" x2="{x}" y1="0" y2="{_HEIGHT}" class="{kind}"/>'
