"""Max-T in the group audit: comparisons adjusted together by the dependence of their influence functions.

Every row pulls each metric of its group up or down by a known amount, its influence. The same row does so for all
metrics and all attributes, which is why their comparisons depend on each other. Metrics that are a function of the
confusion table, means over rows and the AUC have closed influence functions; what has none keeps Holm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from evenhand.arrays import FloatArray
from evenhand.audits.finding import Raw
from evenhand.audits.group.design import cluster_covariance, has_design
from evenhand.audits.group.evidence import GroupEvidence
from evenhand.audits.group.influence import influence
from evenhand.inference.joint_maximum import max_t
from evenhand.inference.samples import Draws
from evenhand.intake import AuditData
from evenhand.metrics import Metric

_CHUNK = 1 << 16  # records whose influence on all comparisons is held at once

NOTE = (
    "Adjusted by the largest of the family's statistics, whose dependence is that of the rows' influence on each "
    "(holds in large samples); findings outside this family share the error rate in proportion to their number."
)


def joint_adjustment(raw: Sequence[Raw], data: AuditData, metrics: Sequence[Metric], draws: Draws) -> list[Raw]:
    """Add to each comparison of two groups its p-value adjusted jointly with the others.

    Parameters
    ----------
    raw : sequence of Raw
        The audit's findings before they are judged.
    data : AuditData
        What they were made from.
    metrics : sequence of Metric
        Those compared.
    draws : Draws
        How many normal draws.

    Returns
    -------
    list of Raw
        With ``adjusted_pvalue`` in the evidence where there is an influence function: rates, functions of the
        confusion table, means and the AUC. Global tests, correlations and the rest are left as they are.
    """
    pull = {
        (m.name, a.name): pulls
        for m in metrics
        for a in data.attributes
        if (pulls := influence(m, data, a)) is not None
    }
    places = [i for i, r in enumerate(raw) if r.pair is not None and r.pair[:2] in pull]
    codes = {a.name: a.codes for a in data.attributes}
    keys = [key for i in places if (key := raw[i].pair) is not None]
    if has_design(data):
        signs = [np.equal(codes[name], a).astype(float) - np.equal(codes[name], b) for _, name, a, b in keys]
        influences = [pull[m, name] * sign for (m, name, *_), sign in zip(keys, signs, strict=True)]
        return _adjusted(raw, places, cluster_covariance(data, influences), draws)
    covariance = np.zeros((len(keys), len(keys)))
    for start in range(0, len(data.count), _CHUNK):
        part = slice(start, start + _CHUNK)
        columns = [
            pull[m, name][part] * (np.equal(codes[name][part], a).astype(float) - np.equal(codes[name][part], b))
            for m, name, a, b in keys
        ]
        psi = np.stack(columns) if columns else np.empty((0, 0))  # (comparisons, records)
        covariance += (psi * data.count[part]) @ psi.T if columns else 0.0
    return _adjusted(raw, places, covariance, draws)


def _adjusted(raw: Sequence[Raw], places: Sequence[int], covariance: FloatArray, draws: Draws) -> list[Raw]:
    """Give the findings at these places the p-values adjusted by the covariance of their comparisons."""
    pvalues = np.array([raw[i].finding.pvalue for i in places], dtype=float)
    adjusted = max_t(pvalues, covariance, replace(draws, name="group/max-t"))
    out = list(raw)
    for i, p in zip(places, adjusted, strict=True):
        evidence = raw[i].evidence
        assert isinstance(evidence, GroupEvidence)
        out[i] = replace(raw[i], evidence=replace(evidence, adjusted_pvalue=float(p), correction_note=NOTE))
    return out
