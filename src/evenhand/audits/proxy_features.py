"""Which features carry the gap: two tests per feature, and how much of the gap goes with each.

A feature carries part of a gap when two things hold: setting it to another value changes the influence
function (its proxy score is not 0), and its distribution differs between the groups. "Carries none of it"
is the union of the two opposites, so its p-value is the larger of the two tests' (intersection-union): no
correction is needed, and a bystander that only correlates with the group is not named.

* influence: a Wald test that neither the outcome model nor the surrogate of the scores depends on the
  feature, all its levels at once, with a sandwich variance. A model that can be called is asked directly.
  For an outcome model with products, and for decisions learned without a score: the covariance of residuals of
  outcome and feature given the others (generalised covariance measure), which holds when either regression is
  right. For nuisance models without coefficients there is no test: none was shown to hold its level.
* difference: the feature's levels are scored by its profile, the mean influence at that level, and the two
  groups' mean scores are compared; exact for a feature of two values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from evenhand.audits.proxy_fits import Fits, population
from evenhand.audits.proxy_sample import Pair
from evenhand.audits.proxy_scores import Scores, interval_of, kinked
from evenhand.inference.rates import RateSamples
from evenhand.inference.samples import Draws
from evenhand.kernels.design import Block
from evenhand.kernels.influence import Centre, Functional, means
from evenhand.kernels.linearised import Equation, coefficient_covariance, quadratic, wald
from evenhand.kernels.nuisance import out_of_sample, with_products
from evenhand.kernels.shifts import Shift, shift, shift_variances
from evenhand.kernels.toggles import Toggles

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# A change of the model's own prediction below this is rounding.
_STILL = 1e-9
# A normal tail beyond this is not 0 but underflows.
_LEAST = 1e-300


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Carrier:
    """One feature's answer.

    Parameters
    ----------
    block : Block
        The feature.
    score : float
        Proxy score, definition 5 with max minus min.
    signed : float
        Definition 5 with psi(second) - psi(first), times the sign of the gap: above 0 the second value
        widens the gap. NaN for more than two levels.
    low, high : float
        Interval of the score; NaN where there is none.
    influence_pvalue, difference_pvalue : float
        The two tests.
    carried : float
        Change of the gap if the feature alone were distributed as in the reference.
    carried_low, carried_high : float
        Its interval; NaN where there is none.
    association : float
        Plain association with the group: Cramer's V, or the correlation of a number.
    association_pvalue : float
        Of that association.
    profile : tuple of mapping
        Per level: label, mean influence, share in the group and in the reference.
    df : int
        Contrasts tested.
    """

    block: Block
    score: float
    signed: float
    low: float
    high: float
    influence_pvalue: float
    difference_pvalue: float
    carried: float
    carried_low: float
    carried_high: float
    association: float
    association_pvalue: float
    profile: tuple[Mapping[str, Any], ...]
    df: int

    @property
    def pvalue(self) -> float:
        """For "this feature carries none of the gap"."""
        if math.isnan(self.influence_pvalue + self.difference_pvalue):
            return math.nan
        return max(self.influence_pvalue, self.difference_pvalue, _LEAST)


def judge_features(
    pair: Pair,
    fits: Fits,
    form: Functional,
    scores: Scores,
    at: Centre,
    reference: FloatArray,
    *,
    sign: float,
    level: float,
    learner: Any,
) -> list[Carrier]:
    """Test every feature.

    Parameters
    ----------
    pair, fits, form
        The sample, what was learned on it, what is measured.
    scores : Scores
        From `score_blocks`.
    at : Centre
        The centre of psi.
    reference : ndarray, shape (terms, 2)
        Means of the reference.
    sign : float
        Sign of the gap.
    level : float
        Coverage of intervals.
    learner : str or estimator
        For tests that refit without a feature.

    Returns
    -------
    list of Carrier
    """
    tested, found, covariance = _tested(fits), scores.found, scores.covariance
    shifts, variances = _shifts(pair, fits, form, scores, at, reference)
    z = float(special.ndtri(0.5 + level / 2))
    joint = None
    if tested:
        joint = coefficient_covariance(pair.X, tested, pair.count.astype(np.float64), pair.unit)
    out = []
    for b, block in enumerate(pair.design.blocks):
        p_influence, df = _influence_test(b, block, pair, fits, form, found, tested, joint, learner)
        of_row = block.scores(pair.X[:, list(block.where)], found.profile[b])
        p_difference = _difference_test(block, pair, of_row)
        association, p_association = _association(block, pair)
        se = math.sqrt(max(float(covariance[b, b]), 0.0))
        if len(block.levels) > 2 and joint is not None and fits.linear:
            df = wald(block, tested, joint)[1]  # contrasts among which the largest was taken
        low, high = interval_of(float(found.score[b]), se, df, level, form)
        if not p_influence <= 1 - level:
            low = 0.0  # where 0 is not rejected it belongs to the interval
        if fits.no_interval:
            low = high = math.nan
        change, reach = shifts[b].change, z * math.sqrt(float(variances[b]))
        out.append(
            Carrier(
                block=block,
                score=float(found.score[b]),
                signed=float(found.signed[b]) * sign,
                low=low,
                high=high,
                influence_pvalue=p_influence,
                difference_pvalue=p_difference,
                carried=change,
                carried_low=change - reach,
                carried_high=change + reach,
                association=association,
                association_pvalue=p_association,
                profile=_profile(block, pair, found.profile[b]),
                df=df,
            )
        )
    return out


def _shifts(
    pair: Pair, fits: Fits, form: Functional, scores: Scores, at: Centre, reference: FloatArray
) -> tuple[list[Shift], FloatArray]:
    """Move each feature's distribution to the reference's; variances where they can be had."""
    g, people, blocks = pair.inside, population(pair, fits), pair.design.blocks
    here, q = means(form, pair.h[g], fits.eta[g], pair.weight[g]), reference[:, 0]
    shifts = []
    for b, block in enumerate(blocks):
        found = shift(block, pair.X[:, list(block.where)], people, form, scores.found.parts[b], here, q)
        if form.uses_log_ratio:  # to first order only: the divergence of the inputs is no function of such means
            found = Shift(change=float(found.delta @ scores.found.profile[b]), delta=found.delta, at=None)
        shifts.append(found)
    if fits.no_interval or form.uses_log_ratio or kinked(form):
        return shifts, np.full(len(blocks), math.nan)
    rows = scores.detailed
    return shifts, shift_variances(
        blocks, shifts, scores.found, rows, pair.fold[rows], people, form, at, q, fits.sources, fits.equations
    )


def _tested(fits: Fits) -> list[Equation]:
    """Fits whose coefficients tell whether a feature matters; the surrogate is left out when it is exact."""
    names = ["eta", "member"] if fits.known else ["h", "eta", "member"]
    if "eta" in fits.equations and fits.equations["eta"].products:
        return []  # coefficients of products have no Wald test of their own here
    return [fits.equations[n] for n in names if n in fits.equations]


def _influence_test(
    b: int,
    block: Block,
    pair: Pair,
    fits: Fits,
    form: Functional,
    found: Toggles,
    tested: list[Equation],
    joint: FloatArray | None,
    learner: Any,
) -> tuple[float, int]:
    if len(block.levels) < 2 or found.score[b] <= _STILL:
        return 1.0, 0
    if fits.known and found.moved[b] > (_STILL if callable(fits.sources.h) else 1e-5):
        return 0.0, 1  # seen on the model itself
    if not fits.linear:
        return math.nan, 1  # no test of such a fit was shown to hold its level
    # A penalised fit of separable decisions is biased: its coefficients are no evidence.
    mixed = "eta" in fits.equations and bool(fits.equations["eta"].products)
    if mixed or (not fits.known and bool(np.all((pair.h == 0) | (pair.h == 1)))):
        return _residual_test(block, pair, fits, form, learner)
    if joint is None:
        return 1.0, 1  # the model ignores the feature and nothing else enters psi
    return wald(block, tested, joint)


def _residual_test(block: Block, pair: Pair, fits: Fits, form: Functional, learner: Any) -> tuple[float, int]:
    """Test that outcome (and score) do not depend on a block given the others, with refits without it."""
    rest = [j for j in range(pair.X.shape[1]) if j not in block.where]
    products: tuple[tuple[int, int], ...] = ()
    if "eta" in fits.equations:
        place = {j: k for k, j in enumerate(rest)}
        known = fits.equations["eta"].products
        products = tuple((place[a], place[b]) for a, b in known if a in place and b in place)
    effects, shares = [], []
    targets = []
    if form.uses_eta:
        targets.append((pair.y, pair.inside))
    if not fits.known:
        targets.append((pair.h, np.ones(len(pair.h), dtype=bool)))
    if form.uses_log_ratio:
        targets.append(((~pair.inside).astype(np.float64), np.ones(len(pair.h), dtype=bool)))
    if not targets:
        return 1.0, 1
    weight = pair.weight
    for target, rows in targets:
        X, w, fold = with_products(pair.X[rows][:, rest], products), weight[rows], pair.fold[rows]
        alone = not rest  # then there is nothing to regress on but a constant
        fitted = w @ target[rows] / w.sum() if alone else out_of_sample(learner, X, target[rows], w, fold)
        residual = target[rows] - fitted
        part = pair.X[rows][:, list(block.where)]
        design = np.concatenate([np.ones((len(X), 1)), X], axis=1)
        root = np.sqrt(w)[:, None]
        beta = np.linalg.lstsq(design * root, part * root, rcond=None)[0]
        product = np.zeros((len(pair.h), part.shape[1]))
        product[rows] = (part - design @ beta) * residual[:, None]
        effects.append(weight @ product)
        shares.append(product)
    effect = np.concatenate(effects)
    stacked = np.concatenate(shares, axis=1)
    return quadratic(effect, stacked.T @ (stacked * (pair.count * pair.unit**2)[:, None]))


def _difference_test(block: Block, pair: Pair, scores: FloatArray) -> float:
    """Compare the groups' means of the profile scores; records of a level the group lacks are left out."""
    known = ~np.isnan(scores)
    g = pair.inside & known
    other = ~pair.inside & known
    w = pair.weight
    if not (w[g].sum() > 0 and w[other].sum() > 0):
        return math.nan
    two = np.unique(scores[known])
    if len(block.levels) == 2 and two.size == 2 and bool(np.all(pair.unit == 1)):
        high = scores == two[1]
        trials = [int(pair.count[s].sum()) for s in (g, other)]
        hits = [int(pair.count[s & high].sum()) for s in (g, other)]
        return RateSamples.from_counts(hits, trials).test(0, 1, Draws()).pvalue
    return _same_mean(scores, g, other, pair)


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
    for level, label, found in zip(block.levels, block.labels, of_level, strict=True):
        row: dict[str, Any] = {"level": label, "influence": float(found)}
        if not block.graded:
            here = (part == level).all(axis=1)
            row["share_group"] = float(w[g & here].sum() / w[g].sum())
            row["share_reference"] = float(w[~g & here].sum() / w[~g].sum())
        rows.append(row)
    return tuple(rows)
