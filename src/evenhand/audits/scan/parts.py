"""Find on one part of the people, confirm on the other: what was chosen on one is tested once on the other."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from evenhand.arrays import read_only
from evenhand.audits.scan.description import describe
from evenhand.audits.scan.families import family_of
from evenhand.audits.scan.options import ScanSetting
from evenhand.audits.scan.search import Search, search
from evenhand.audits.scan.subgroups import Subgroups
from evenhand.errors import DataError
from evenhand.inference.multiplicity import adjust
from evenhand.intake import AuditData
from evenhand.kernels.shared.seeds import stream

# Subgroups of each metric that are confirmed, at most: each costs the others some of the error rate.
_CANDIDATES = 10
# A subgroup whose own p-value on the first part is above this is not worth a question.
_PROMISING = 0.05


def divided(data: AuditData, subgroups: Subgroups, share: float, seed: int) -> list[tuple[AuditData, Subgroups]]:
    """Divide people at random into a part with about this share of them, and the others.

    Parameters
    ----------
    data : AuditData
        Everybody. The order of the rows does not matter.
    subgroups : Subgroups
        Of everybody.
    share : float
        Of the first part.
    seed : int
        Of the division.

    Returns
    -------
    list of tuple
        Both parts, with the same subgroups.
    """
    columns = [part for part in (data.score, data.decision, data.outcome) if part is not None]
    order = np.lexsort((*columns, subgroups.cell))
    rng, total = stream(seed, "scan/parts"), int(data.count.sum())
    first = np.zeros_like(data.count)
    first[order] = rng.multivariate_hypergeometric(data.count[order], round(share * total), method="marginals")
    parts = []
    for count in (first, data.count - first):
        by_cell = np.bincount(subgroups.cell, weights=count, minlength=subgroups.count.size).astype(np.int64)
        parts.append((replace(data, count=read_only(count)), replace(subgroups, count=by_cell)))
    return parts


def find_and_confirm(data: AuditData, subgroups: Subgroups, setting: ScanSetting) -> list[Search]:
    """Choose subgroups on one part of the people and test those, and no others, on the other part."""
    assert setting.split is not None
    for metric in setting.metrics:
        if data.moments is not None and metric.kind != "rate":
            raise DataError(
                f"`split` with metric `{metric.name}` needs rows, and these stayed on their engine. Read the data with "
                "`rows='keep'`."
            )
    (here, inside), (there, outside) = divided(data, subgroups, setting.split, setting.seed)
    chosen = [_candidates(one, setting) for one in search(here, inside, setting)]
    found = []
    for one in chosen:
        family, between = family_of(one.metric, there, replace(outside, lattice=one.family.lattice), 1)
        found.append(replace(one, family=family, between=between, people=outside.count))
    raw = np.concatenate([np.exp(-one.family.evidence) for one in found])
    adjusted = np.split(adjust(raw, "holm"), np.cumsum([one.family.size.size for one in found])[:-1])
    bar = -math.log(setting.alpha / raw.size) if raw.size else math.inf
    return [replace(one, pvalue=p, critical=bar) for one, p in zip(found, adjusted, strict=True)]


def _candidates(searched: Search, setting: ScanSetting) -> Search:
    """Return the search with those subgroups only that are to be confirmed."""
    own = np.exp(-searched.family.evidence)
    promising = np.flatnonzero(own <= _PROMISING).tolist()
    kept = [one.index for one in describe(searched, promising, 1.0)[:_CANDIDATES]]
    return replace(searched, family=searched.family.take(np.array(sorted(kept), dtype=np.int64)))
