"""Max-T: adjusted p-values from permutations that all metrics of an attribute share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from evenhand.audits.comparison import Raw
from evenhand.errors import UsageError
from evenhand.inference.families import max_t
from evenhand.inference.samples import Draws
from evenhand.intake import AuditData
from evenhand.metrics import Metric
from evenhand.summaries import confusion


def joint_adjustment(raw: Sequence[Raw], data: AuditData, metrics: Sequence[Metric], draws: Draws) -> list[Raw]:
    """Add to each comparison of rates its p-value adjusted by the largest statistic of the family.

    Parameters
    ----------
    raw : sequence of Raw
        The audit's findings before they are judged.
    data : AuditData
        Without sampling weights.
    metrics : sequence of Metric
        Rates only: their permutations can be shared.
    draws : Draws
        How many permutations.

    Returns
    -------
    list of Raw
        With ``adjusted_pvalue`` and the method's caveat in the evidence. The families of several attributes are
        joined by Bonferroni.
    """
    other = [m.name for m in metrics if m.kind != "rate"]
    if other or data.weight is not None or data.continuous:
        what = f"`{other[0]}` is no rate" if other else "there are sampling weights or continuous attributes"
        raise UsageError(f"Max-T shares permutations between rates of counted rows, but {what}. Use `holm`.")
    found: dict[tuple[str, str, int, int], float] = {}
    rates = [(list(m.numerator), list(m.denominator)) for m in metrics]
    for attribute in data.attributes:
        pairs = sorted({r.pair[2:] for r in raw if r.pair is not None and r.pair[1] == attribute.name})
        table = confusion(data, attribute.codes, len(attribute.labels))
        _, adjusted = max_t(table, rates, pairs, replace(draws, name=f"group/max-t/{attribute.name}"))
        for i, metric in enumerate(metrics):
            for j, (a, b) in enumerate(pairs):
                joint = float(adjusted[i, j]) * len(data.attributes)
                found[metric.name, attribute.name, a, b] = min(joint, 1.0)
    caveat = (
        "Max-T is not guaranteed to hold its error rate when groups differ in more than the metric, such as in "
        "their base rates; Holm is."
    )
    out = []
    for row in raw:
        if row.pair is not None:
            evidence = {**row.evidence, "adjusted_pvalue": found[row.pair], "correction_caveat": caveat}
            row = replace(row, evidence=evidence)
        out.append(row)
    return out
