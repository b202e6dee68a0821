"""The search: every metric in every subgroup, with one error rate over all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenhand.arrays import FloatArray, IntArray
from evenhand.audits.scan.families import Between, family_of
from evenhand.audits.scan.options import ScanSetting
from evenhand.audits.scan.subgroups import Subgroups
from evenhand.inference.multiplicity import share_out
from evenhand.inference.scan.family import Family
from evenhand.inference.scan.step_down import could_be_shown, step_down
from evenhand.intake import AuditData
from evenhand.metrics import Metric


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Search:
    """What the search of one metric gave.

    Parameters
    ----------
    metric : Metric
        What was compared.
    family : Family
        The subgroups that were tested.
    between : callable
        Compares two sets of cells.
    pvalue : ndarray, shape (S,)
        Adjusted over everything that was searched, all metrics together.
    considered : int
        Subgroups of enough people, each question once; those that could never be shown are not tested.
    critical : float
        The evidence that a single subgroup must reach.
    people : ndarray of int, shape (C,)
        All people of each cell.
    """

    metric: Metric
    family: Family
    between: Between
    pvalue: FloatArray
    considered: int
    critical: float
    people: IntArray


def search(data: AuditData, subgroups: Subgroups, setting: ScanSetting) -> list[Search]:
    """Search all metrics; p-values are adjusted over all of them."""
    found = [_one(metric, data, subgroups, setting) for metric in setting.metrics]
    if setting.control == "fdr":
        return found  # adjusted by what is reported in the end
    block = np.repeat(np.arange(len(found)), [one.pvalue.size for one in found])
    joint = share_out(np.concatenate([one.pvalue for one in found]), block)
    parts = zip(found, _parted(joint, found), strict=True)
    return [replace(one, pvalue=pvalue) for one, pvalue in parts]


def _parted(joint: FloatArray, found: Sequence[Search]) -> list[FloatArray]:
    return np.split(joint, np.cumsum([one.pvalue.size for one in found])[:-1])


def _one(metric: Metric, data: AuditData, subgroups: Subgroups, setting: ScanSetting) -> Search:
    setting.say(f"scan: {metric.name} in {subgroups.lattice.conditions.shape[0]:,} subgroups")
    family, between = family_of(metric, data, subgroups, setting.smallest)
    considered = family.size.size
    alpha = setting.alpha / len(setting.metrics)
    tested = family.take(np.flatnonzero(could_be_shown(family.most, alpha)))
    unknown = Search(
        metric=metric,
        family=tested,
        between=between,
        pvalue=np.ones(tested.size.size),
        considered=considered,
        critical=math.inf,
        people=subgroups.count,
    )
    if setting.control == "fdr" or not tested.size.size:
        return unknown
    adjusted = [
        step_down(
            tested.evidence,
            drawn,
            n_resamples=setting.n_resamples,
            seed=setting.seed,
            name=f"scan/{metric.name}" + (f"/{place}" if place else ""),
            numbers=tested.numbers,
        )
        for place, drawn in enumerate(tested.references)
    ]
    pvalue = np.max([one.pvalue for one in adjusted], axis=0)
    return replace(unknown, pvalue=pvalue, critical=max(one.critical(alpha) for one in adjusted))
