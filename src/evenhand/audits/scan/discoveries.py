"""The false discovery rate of what is reported, not of everything that is shown.

Benjamini and Hochberg's procedure limits the share of false ones among all subgroups that pass. Shortest descriptions
then stand for many true ones, while a false one mostly stands for itself: among those that are reported the share would
be larger. So the bar is lowered until it fits what is reported: with R subgroups reported out of m tested, each has a
p-value of at most alpha R / m. A set with this property keeps the rate under positive dependence [blanchard2008].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from evenhand.audits.scan.description import describe
from evenhand.audits.scan.search import Search
from evenhand.inference.multiplicity import adjust


def reported_rate(searched: Sequence[Search], alpha: float) -> list[Search]:
    """Adjust p-values so that those at most alpha are a set with this false discovery rate when it is described.

    Parameters
    ----------
    searched : sequence of Search
        All metrics.
    alpha : float
        The rate.

    Returns
    -------
    list of Search
        With p-values ``p m / R``, and the evidence that a single subgroup had to reach.
    """
    raw = [np.exp(-one.family.evidence) for one in searched]
    tested = sum(p.size for p in raw)
    if not tested:
        return list(searched)
    reported = int((adjust(np.concatenate(raw), "bh") <= alpha).sum())
    while reported:
        bar = alpha * reported / tested
        own = [describe(one, np.flatnonzero(p <= bar).tolist(), alpha) for one, p in zip(searched, raw, strict=True)]
        left = sum(len(part) for part in own)
        if left >= reported:
            break
        reported = left
    number = max(reported, 1)
    critical = -math.log(alpha * number / tested)
    return [
        replace(one, pvalue=np.minimum(p * tested / number, 1.0), critical=critical)
        for one, p in zip(searched, raw, strict=True)
    ]
