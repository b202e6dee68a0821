"""How much of the gap goes through each feature.

A feature carries part of a gap when the groups differ in it and it matters for the measure. What it carries is the
gap less the gap that would be left if the feature alone were distributed as in the reference,

    carried = M(x_j ~ group) - M(x_j ~ reference),      the other features as in the group, x_j drawn apart from them,

where M is the group's value of the measure, with the model and the group's P(Y|X) as they are. It is 0 when the model
and the outcome do not depend on the feature, and when both groups have the same distribution of it: a bystander that
only goes along with the group carries nothing. It has the sign and the units of the gap. No order of features enters.

The estimate is smooth in the rows, so its variance is the sum of one contribution per row
(`kernels.influence.shifted_features`); interval and test are both of the normal law with that variance, and agree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from evenhand.arrays import FloatArray, IntArray
from evenhand.audits.proxy.evidence import LevelInfluence, Rank
from evenhand.audits.proxy.fits import Fits
from evenhand.audits.proxy.gap import LEAST, Gap
from evenhand.audits.proxy.options import ProxySetting
from evenhand.audits.proxy.sample import Pair
from evenhand.kernels.influence.design import Block
from evenhand.kernels.influence.functionals import Centre, Functional
from evenhand.kernels.influence.linearised import score_covariance
from evenhand.kernels.influence.row_moments import RowMoments
from evenhand.kernels.influence.set_features import Toggles, toggle
from evenhand.kernels.influence.shifted_features import Shift, level_means, shift, shift_variances
from evenhand.kernels.influence.shifted_predictions import Rows
from evenhand.kernels.shared.seeds import stream
from evenhand.results import Interval
from evenhand.results.evidence import Ends

_RANK_DRAWS = 2000
# Records looked at in detail, for slopes and means by level.
_DETAILED = 50_000
# A part of a gap below this is rounding: the model does not use the feature at all.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scores:
    """Proxy scores with what their uncertainty needs."""

    toggles: Toggles  # the scores
    covariance: FloatArray  # (blocks, blocks): of the scores
    rows: Rows  # records behind the slopes, and behind the means by level


def score_blocks(
    blocks: Sequence[Block], pair: Pair, fits: Fits, at: Centre, averaged: IntArray, sums: RowMoments
) -> Scores:
    """Score features, and find the covariance of the scores.

    Parameters
    ----------
    blocks : sequence of Block
        Features, or pairs of features.
    pair, fits, at
        The sample, what was learned on it, and the centre of psi.
    averaged : ndarray of int
        Records the scores average over.
    sums : RowMoments
        Over all rows.

    Returns
    -------
    Scores
    """
    # Slopes are means that a part of the records gives well enough; the score itself averages over all.
    many = len(averaged) > _DETAILED
    detailed = averaged[:: -(-len(averaged) // _DETAILED)] if many else averaged
    rows = Rows(pair.X, pair.weight, pair.fold, detailed)
    toggles = toggle(blocks, rows, at, fits.sources, linear=True)
    if many:
        fast = toggle(blocks, replace(rows, number=averaged), at, fits.sources)
        toggles = replace(toggles, score=fast.score, signed=fast.signed, profile=fast.profile)
    people = replace(pair, eta=fits.eta)
    stand_for = averaged if many else None
    covariance = score_covariance(toggles, rows, people, at, fits.equations, sums, stand_for=stand_for)
    return Scores(toggles=toggles, covariance=covariance, rows=rows)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FeaturePart:
    """What one feature carries, and its proxy score."""

    block: Block  # the feature
    carried: float  # the part of the gap that goes through it; NaN where it cannot be known
    error: float  # its standard error; NaN where there is none
    kind: str  # of its interval
    gate: float  # p-value of the gap: without a gap there is nothing to carry
    score: float  # proxy score, definition 5 with max minus min
    # Definition 5 with psi(second) - psi(first), times the sign of the gap: above 0 the second value widens the gap.
    # NaN for more than two levels.
    signed: float
    score_interval: Ends | None  # of the score, where there is one
    ranking: Rank  # by the score
    association: float  # plain association with the group: Cramer's V, or the correlation of a number
    association_pvalue: float  # of that association
    levels: tuple[LevelInfluence, ...]  # mean influence at each level, and its share in the group and in the reference

    def pvalue(self, margin: float) -> float:
        """For "there is no gap, or the feature carries at most the margin of it": the larger of the two."""
        beyond = abs(self.carried) - margin
        tail = 1.0 if beyond <= 0 else 0.0 if self.error == 0 else float(2 * special.ndtr(-beyond / self.error))
        return max(self.gate, tail, LEAST)

    def equivalence(self, margin: float) -> float:
        """For "the feature carries at least the margin": two one-sided tests."""
        if self.error == 0:
            return LEAST if abs(self.carried) < margin else 1.0
        return max(float(special.ndtr((abs(self.carried) - margin) / self.error)), LEAST)

    def interval(self, level: float) -> Interval:
        """Return the interval; where no gap is shown at this level, 0 belongs to it."""
        reach = float(special.ndtri(0.5 + level / 2)) * self.error
        low, high = self.carried - reach, self.carried + reach
        if self.gate > 1 - level:
            low, high = min(low, 0.0), max(high, 0.0)
        return Interval(low=low, high=high, level=level, kind=self.kind)


def measure_features(
    pair: Pair, fits: Fits, at: Centre, scores: Scores, gap: Gap, setting: ProxySetting, sums: RowMoments
) -> list[FeaturePart]:
    """Measure what every feature carries.

    Parameters
    ----------
    pair, fits
        The sample, and what was learned on it.
    at : Centre
        The centre of psi.
    scores : Scores
        From `score_blocks`, of the features that are not the group itself.
    gap : Gap
        What is carried.
    setting : ProxySetting
        Coverage of the scores' intervals, and the seed of their ranking.
    sums : RowMoments
        Over all rows, with the blocks of `shift_blocks`.

    Returns
    -------
    list of FeaturePart
    """
    shifts, variances = _shifts(pair, fits, at, scores, sums)
    ranks = _ranking(scores, setting, firm=not fits.no_interval)
    toggles, sign = scores.toggles, -1.0 if gap.estimate < 0 else 1.0
    out = []
    for b, block in enumerate(pair.candidates):
        association, p_association = _association(block, pair)
        ends = None
        if not fits.no_interval:
            se = math.sqrt(max(float(scores.covariance[b, b]), 0.0))
            contrasts = min(len(block.levels) - 1, len(block.where)) * max(len(fits.equations), 1)
            ends = _interval_of(float(toggles.score[b]), se, contrasts, setting.level, at.form)
        out.append(
            FeaturePart(
                block=block,
                carried=_above_rounding(-shifts[b].change),
                error=_above_rounding(math.sqrt(float(variances[b]))),
                kind="linearised" if fits.known else "linearised, of the surrogate",
                gate=gap.pvalue,
                score=float(toggles.score[b]),
                signed=float(toggles.signed[b]) * sign,
                score_interval=ends,
                ranking=ranks[b],
                association=association,
                association_pvalue=p_association,
                levels=_levels(block, sums.level[b] / sums.weight[:, None], toggles.profile[b]),
            )
        )
    return out


def _interval_of(score: float, se: float, df: int, level: float, form: Functional) -> Ends:
    """Return an interval for a score that cannot be negative.

    A score is a maximum over contrasts, so it errs upwards when all are near 0: the lower end allows for
    the choice among `df` contrasts (Scheffe), the upper end needs no such allowance because the score is
    convex in them. Calibration error has a kink of its own, at which noise counts as change: its score is
    bounded from above only.
    """
    z = float(special.ndtri(0.5 + level / 2))
    wide = math.sqrt(float(special.chdtri(max(df, 1), 1 - level)))
    return Ends(low=0.0 if form.kinked else max(0.0, score - wide * se), high=score + z * se, level=level)


def _ranking(scores: Scores, setting: ProxySetting, *, firm: bool) -> list[Rank]:
    """Say how firm each feature's rank is, by draws from the scores' joint normal law.

    Parameters
    ----------
    scores : Scores
        From `score_blocks`.
    setting : ProxySetting
        Seed of the draws, and level of the rank interval.
    firm : bool
        Whether the covariance is to be trusted; without it only the rank is known.

    Returns
    -------
    list of Rank
        With the share of draws in which each leads; None or NaN where unknown.
    """
    score, covariance, level = scores.toggles.score, scores.covariance, setting.level
    rank = 1 + np.argsort(np.argsort(-score, kind="stable"), kind="stable")
    if not firm:
        return [Rank(rank=int(r), rank_low=None, rank_high=None, first=math.nan) for r in rank]
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    noise = stream(setting.seed, "proxy/ranking").standard_normal((_RANK_DRAWS, len(score)))
    drawn = np.maximum(score + noise @ root.T, 0.0)  # (draws, blocks)
    ranks = 1 + np.argsort(np.argsort(-drawn, axis=1, kind="stable"), axis=1, kind="stable")
    low, high = np.quantile(ranks, [(1 - level) / 2, (1 + level) / 2], axis=0, method="inverted_cdf")
    first = (ranks == 1).mean(axis=0)
    return [
        Rank(rank=int(rank[b]), rank_low=int(low[b]), rank_high=int(high[b]), first=float(first[b]))
        for b in range(len(score))
    ]


def _above_rounding(value: float) -> float:
    return 0.0 if abs(value) < _ROUNDING else value


def no_test(form: Functional, fits: Fits) -> str:
    """Say why what a feature carries has neither interval nor test; empty where it has both."""
    if fits.no_interval:
        return fits.no_interval
    if form.uses_log_ratio:
        return "with an alignment penalty it is known to first order only"
    return "calibration error has a kink, at which noise counts as change" if form.kinked else ""


def shift_blocks(pair: Pair, form: Functional) -> tuple[Block, ...]:
    """Return the features with the levels at which their distributions are compared."""
    # The divergence of the inputs is no function of such means: to first order only, by the influence at each level.
    return pair.candidates if form.uses_log_ratio else pair.fine_candidates


def _shifts(pair: Pair, fits: Fits, at: Centre, scores: Scores, sums: RowMoments) -> tuple[list[Shift], FloatArray]:
    """Move each feature's distribution to the reference's; variances where they can be had."""
    blocks = shift_blocks(pair, at.form)
    shifts = shift(blocks, level_means(blocks, scores.rows, at.form, fits.sources), sums, at)
    if at.form.uses_log_ratio:
        profiles = scores.toggles.profile
        shifts = [replace(s, change=float(s.delta @ p), at=None) for s, p in zip(shifts, profiles, strict=True)]
    if no_test(at.form, fits):
        return shifts, np.full(len(blocks), math.nan)
    people = replace(pair, eta=fits.eta)
    return shifts, shift_variances(shifts, scores.rows, people, at, fits.sources, fits.equations, sums)


def _same_mean(value: FloatArray, g: NDArray[np.bool_], other: NDArray[np.bool_], pair: Pair) -> float:
    """Test equal means by the normal law, with the variance that exchangeable labels have."""
    w, both = pair.weight, g | other
    near, mass = value[both], w[both]
    middle = float(mass @ near / mass.sum())
    n = float(pair.count[both].sum())
    spread = float(mass @ (near - middle) ** 2 / mass.sum()) * n / max(n - 1, 1.0)
    sides = [(value[s], w[s], pair.unit[s]) for s in (g, other)]
    scale = sum(float((m * unit).sum()) / float(m.sum()) ** 2 for _, m, unit in sides)
    here, there = (float(m @ v / m.sum()) for v, m, _ in sides)
    gap = abs(here - there)
    if spread * scale <= (1e-12 * max(abs(middle), 1e-300)) ** 2:
        return 1.0
    return float(2 * special.ndtr(-gap / math.sqrt(spread * scale)))


def _association(block: Block, pair: Pair) -> tuple[float, float]:
    """Cramer's V of levels, or the correlation of a graded number, with the group; and its p-value."""
    part = pair.X[:, list(block.where)]
    w, g = pair.weight, pair.inside
    if block.graded and not block.gaps:
        value = part[:, 0]
        middle = float(w @ value / w.sum())
        spread = math.sqrt(float(w @ (value - middle) ** 2 / w.sum()))
        share = float(w[g].sum() / w.sum())
        gap = float(w[g] @ value[g] / w[g].sum() - w[~g] @ value[~g] / w[~g].sum())
        r = gap * math.sqrt(share * (1 - share)) / spread if spread > 0 else 0.0
        return abs(r), _same_mean(value, g, ~g, pair)
    # Numbers are sorted much faster than rows of them.
    code = np.unique(part[:, 0] if part.shape[1] == 1 else part, axis=0, return_inverse=True)[1].ravel()
    k = int(code.max()) + 1
    table = np.stack([np.bincount(code[s], weights=w[s], minlength=k) for s in (g, ~g)])
    expected = np.outer(table.sum(1), table.sum(0)) / table.sum()
    chi = float(np.sum((table - expected) ** 2 / expected))
    # Rao-Scott in its simplest form: weights cost the design effect of the counts.
    scale = float(pair.count.sum()) / float(w.sum())
    effect = float((w * pair.unit).sum()) / float(w.sum()) * scale
    return math.sqrt(chi / float(w.sum())), float(special.chdtrc(max(k - 1, 1), chi * scale / effect))


def _levels(block: Block, shares: FloatArray, of_level: FloatArray) -> tuple[LevelInfluence, ...]:
    rows = []
    for v, (label, influence) in enumerate(zip(block.labels, of_level, strict=True)):
        row = LevelInfluence(level=label, influence=float(influence))
        if not block.graded:
            row = replace(row, share_group=float(shares[0, v]), share_reference=float(shares[1, v]))
        rows.append(row)
    return tuple(rows)
