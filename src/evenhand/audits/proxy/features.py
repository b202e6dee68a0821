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
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from evenhand.arrays import FloatArray
from evenhand.audits.proxy.fits import Fits, population
from evenhand.audits.proxy.gap import Gap
from evenhand.audits.proxy.sample import Pair
from evenhand.audits.proxy.scores import Scores, interval_of
from evenhand.kernels.influence.design import Block
from evenhand.kernels.influence.functionals import Centre, Functional
from evenhand.kernels.influence.shifted_features import Shift, level_means, shift, shift_variances

# A normal tail beyond this is not 0 but underflows.
_LEAST = 1e-300
# A part of a gap below this is rounding: the model does not use the feature at all.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FeaturePart:
    """What one feature carries, and its proxy score."""

    block: Block  # the feature
    carried: float  # the part of the gap that goes through it; NaN where it cannot be known
    error: float  # its standard error; NaN where there is none
    gate: float  # p-value of the gap: without a gap there is nothing to carry
    score: float  # proxy score, definition 5 with max minus min
    # Definition 5 with psi(second) - psi(first), times the sign of the gap: above 0 the second value widens the gap.
    # NaN for more than two levels.
    signed: float
    # score_low, score_high: interval of the score; NaN where there is none.
    score_low: float
    score_high: float
    association: float  # plain association with the group: Cramer's V, or the correlation of a number
    association_pvalue: float  # of that association
    profile: tuple[Mapping[str, Any], ...]  # per level: label, mean influence, share in the group and in the reference

    def pvalue(self, margin: float) -> float:
        """For "there is no gap, or the feature carries at most the margin of it": the larger of the two."""
        return max(self.gate, self._two_sided(margin), _LEAST)

    def difference(self) -> float:
        """For "there is no gap, or the feature carries nothing of it"."""
        return max(self.gate, self._two_sided(0.0), _LEAST)

    def equivalence(self, margin: float) -> float:
        """For "the feature carries at least the margin": two one-sided tests."""
        if self.error == 0:
            return _LEAST if abs(self.carried) < margin else 1.0
        return max(float(special.ndtr((abs(self.carried) - margin) / self.error)), _LEAST)

    def interval(self, level: float) -> tuple[float, float]:
        """Return the interval; where no gap is shown at this level, 0 belongs to it."""
        reach = float(special.ndtri(0.5 + level / 2)) * self.error
        low, high = self.carried - reach, self.carried + reach
        return (min(low, 0.0), max(high, 0.0)) if self.gate > 1 - level else (low, high)

    def _two_sided(self, margin: float) -> float:
        beyond = abs(self.carried) - margin
        if beyond <= 0:
            return 1.0
        return 0.0 if self.error == 0 else float(2 * special.ndtr(-beyond / self.error))


def measure_features(pair: Pair, fits: Fits, at: Centre, scores: Scores, gap: Gap, level: float) -> list[FeaturePart]:
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
    level : float
        Coverage of the scores' intervals.

    Returns
    -------
    list of FeaturePart
    """
    shifts, variances = _shifts(pair, fits, at, scores)
    toggles, sign = scores.toggles, -1.0 if gap.estimate < 0 else 1.0
    out = []
    for b, block in enumerate(pair.candidates):
        association, p_association = _association(block, pair)
        low, high = math.nan, math.nan
        if not fits.no_interval:
            se = math.sqrt(max(float(scores.covariance[b, b]), 0.0))
            contrasts = min(len(block.levels) - 1, len(block.where)) * max(len(fits.equations), 1)
            low, high = interval_of(float(toggles.score[b]), se, contrasts, level, at.form)
        out.append(
            FeaturePart(
                block=block,
                carried=_above_rounding(-shifts[b].change),
                error=_above_rounding(math.sqrt(float(variances[b]))),
                gate=gap.pvalue,
                score=float(toggles.score[b]),
                signed=float(toggles.signed[b]) * sign,
                score_low=low,
                score_high=high,
                association=association,
                association_pvalue=p_association,
                profile=_profile(block, pair, toggles.profile[b]),
            )
        )
    return out


def _above_rounding(value: float) -> float:
    return 0.0 if abs(value) < _ROUNDING else value


def no_test(form: Functional, fits: Fits) -> str:
    """Say why what a feature carries has neither interval nor test; empty where it has both."""
    if fits.no_interval:
        return fits.no_interval
    if form.uses_log_ratio:
        return "with an alignment penalty it is known to first order only"
    return "calibration error has a kink, at which noise counts as change" if form.kinked else ""


def _shifts(pair: Pair, fits: Fits, at: Centre, scores: Scores) -> tuple[list[Shift], FloatArray]:
    """Move each feature's distribution to the reference's; variances where they can be had."""
    people, first_order = population(pair, fits.eta), at.form.uses_log_ratio
    # The divergence of the inputs is no function of such means: to first order only, by the influence at each level.
    blocks = pair.candidates if first_order else pair.fine_candidates
    shifts = shift(blocks, level_means(blocks, scores.rows, at.form, fits.sources), people, at)
    if first_order:
        profiles = scores.toggles.profile
        shifts = [replace(s, change=float(s.delta @ p), at=None) for s, p in zip(shifts, profiles, strict=True)]
    if no_test(at.form, fits):
        return shifts, np.full(len(blocks), math.nan)
    return shifts, shift_variances(shifts, scores.rows, people, at, fits.sources, fits.equations)


def _same_mean(value: FloatArray, g: NDArray[np.bool_], other: NDArray[np.bool_], pair: Pair) -> float:
    """Test equal means by the normal law, with the variance that exchangeable labels have."""
    w, both = pair.weight, g | other
    middle = float(w[both] @ value[both] / w[both].sum())
    n = float(pair.count[both].sum())
    spread = float(w[both] @ (value[both] - middle) ** 2 / w[both].sum()) * n / max(n - 1, 1.0)
    scale = sum(float((w * pair.unit)[s].sum()) / float(w[s].sum()) ** 2 for s in (g, other))
    gap = abs(float(w[g] @ value[g] / w[g].sum()) - float(w[other] @ value[other] / w[other].sum()))
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
    _, code = np.unique(part, axis=0, return_inverse=True)
    code = code.ravel()
    k = int(code.max()) + 1
    table = np.stack([np.bincount(code[s], weights=w[s], minlength=k) for s in (g, ~g)])
    expected = np.outer(table.sum(1), table.sum(0)) / table.sum()
    chi = float(np.sum((table - expected) ** 2 / expected))
    # Rao-Scott in its simplest form: weights cost the design effect of the counts.
    scale = float(pair.count.sum()) / float(w.sum())
    effect = float((w * pair.unit).sum()) / float(w.sum()) * scale
    return math.sqrt(chi / float(w.sum())), float(special.chdtrc(max(k - 1, 1), chi * scale / effect))


def _profile(block: Block, pair: Pair, of_level: FloatArray) -> tuple[Mapping[str, Any], ...]:
    w, g = pair.weight, pair.inside
    part = pair.X[:, list(block.where)]
    rows = []
    for level, label, influence in zip(block.levels, block.labels, of_level, strict=True):
        row: dict[str, Any] = {"level": label, "influence": float(influence)}
        if not block.graded:
            here = (part == level).all(axis=1)
            row["share_group"] = float(w[g & here].sum() / w[g].sum())
            row["share_reference"] = float(w[~g & here].sum() / w[~g].sum())
        rows.append(row)
    return tuple(rows)
