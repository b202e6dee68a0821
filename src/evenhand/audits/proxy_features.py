"""Which features carry the gap: scores with intervals, two tests per feature, and how firm the ranking is.

A feature carries part of a gap when two things hold: setting it to another value changes the influence
function (its proxy score is not 0), and its distribution differs between the groups. "Carries none of it"
is the union of the two opposites, so its p-value is the larger of the two tests' (intersection-union): no
correction is needed, and a bystander that only correlates with the group is not named.

* influence: a Wald test that neither the outcome model nor the surrogate of the scores depends on the
  feature, all its levels at once, with a sandwich variance. A model that can be called is asked directly.
  For nuisance models without coefficients, and for decisions learned without a score: the covariance of
  residuals of outcome and feature given the others (generalised covariance measure), which holds when either
  regression is right.
* difference: the feature's levels are scored by its profile, the mean influence at that level, and the two
  groups' mean scores are compared; exact for a feature of two values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from evenhand.audits.proxy_sample import Fits, Pair, population
from evenhand.inference.rates import RateSamples
from evenhand.inference.samples import Draws
from evenhand.kernels.design import Block
from evenhand.kernels.influence import Centre, Functional, means
from evenhand.kernels.linearised import Equation, coefficient_covariance, quadratic, score_covariance, wald
from evenhand.kernels.nuisance import out_of_sample, with_products
from evenhand.kernels.seeds import stream
from evenhand.kernels.toggles import Toggles, toggle

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# A change of the model's own prediction below this is rounding.
_STILL = 1e-9
_RANK_DRAWS = 2000
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
        Interval of the score.
    influence_pvalue, difference_pvalue : float
        The two tests.
    carried : float
        Change of the gap if the feature alone were distributed as in the reference.
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


def score_blocks(
    blocks: Sequence[Block],
    pair: Pair,
    fits: Fits,
    form: Functional,
    at: Centre,
    reference: FloatArray,
    averaged: IntArray,
) -> tuple[Toggles, FloatArray]:
    """Return proxy scores and their covariance.

    Parameters
    ----------
    blocks : sequence of Block
        Features, or pairs of features.
    pair, fits, form, at, reference
        The sample, what was learned on it, and the centre of psi.
    averaged : ndarray of int
        Records the scores average over.

    Returns
    -------
    Toggles
    ndarray, shape (blocks, blocks)
    """
    found = toggle(
        blocks,
        pair.X[averaged],
        pair.weight[averaged],
        pair.fold[averaged],
        form,
        at,
        fits.sources,
        linear=True,
    )
    kept = {name: fits.equations[name] for name in found.slopes}
    return found, score_covariance(found, averaged, population(pair, fits), form, at, reference, kept)


def interval_of(score: float, se: float, df: int, level: float) -> tuple[float, float]:
    """Return an interval for a score that cannot be negative.

    A score is a maximum over contrasts, so it errs upwards when all are near 0: the lower end allows for
    the choice among `df` contrasts (Scheffe), the upper end needs no such allowance because the score is
    convex in them.
    """
    z = float(special.ndtri(0.5 + level / 2))
    wide = math.sqrt(float(special.chdtri(max(df, 1), 1 - level)))
    return max(0.0, score - wide * se), score + z * se


def judge_features(
    pair: Pair,
    fits: Fits,
    form: Functional,
    found: Toggles,
    covariance: FloatArray,
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
    found : Toggles
        Scores.
    covariance : ndarray, shape (blocks, blocks)
        Of the scores.
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
    tested = _tested(fits)
    g = pair.inside
    plug_in = means(form, pair.h[g], fits.eta[g], pair.weight[g])
    joint = None
    if tested:
        joint = coefficient_covariance(pair.X, tested, pair.count.astype(np.float64), pair.unit)
    out = []
    for b, block in enumerate(pair.design.blocks):
        p_influence, df = _influence_test(b, block, pair, fits, form, found, tested, joint, learner)
        scores = block.scores(pair.X[:, list(block.where)], found.profile[b])
        p_difference = _difference_test(block, pair, scores)
        association, p_association = _association(block, pair)
        se = math.sqrt(max(float(covariance[b, b]), 0.0))
        if len(block.levels) > 2 and joint is not None and fits.linear:
            df = wald(block, tested, joint)[1]  # contrasts among which the largest was taken
        low, high = interval_of(float(found.score[b]), se, df, level)
        if not p_influence <= 1 - level:
            low = 0.0  # where 0 is not rejected it belongs to the interval
        out.append(
            Carrier(
                block=block,
                score=float(found.score[b]),
                signed=float(found.signed[b]) * sign,
                low=low,
                high=high,
                influence_pvalue=p_influence,
                difference_pvalue=p_difference,
                carried=_carried(block, pair, form, found.parts[b], found.profile[b], reference, plug_in),
                association=association,
                association_pvalue=p_association,
                profile=_profile(block, pair, found.profile[b]),
                df=df,
            )
        )
    return out


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
    # A penalised fit of separable decisions is biased: its coefficients are no evidence.
    mixed = "eta" in fits.equations and bool(fits.equations["eta"].products)
    if mixed or not fits.linear or (not fits.known and bool(np.all((pair.h == 0) | (pair.h == 1)))):
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
    if not targets or not rest:
        return (1.0, 1) if not targets else (math.nan, 1)
    weight = pair.weight
    for target, rows in targets:
        X, w, fold = with_products(pair.X[rows][:, rest], products), weight[rows], pair.fold[rows]
        residual = target[rows] - out_of_sample(learner, X, target[rows], w, fold)
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


def _carried(
    block: Block,
    pair: Pair,
    form: Functional,
    parts: FloatArray,
    profile: FloatArray,
    reference: FloatArray,
    plug_in: FloatArray,
) -> float:
    """Move the feature's distribution to the reference's and recompute the value from the moved means."""

    def shift(of_level: FloatArray) -> float:
        scores = block.scores(pair.X[:, list(block.where)], of_level)
        known = ~np.isnan(scores)
        sides = (pair.inside & known, ~pair.inside & known)
        if not all(pair.weight[s].sum() > 0 for s in sides):
            return math.nan
        here, there = (float(pair.weight[s] @ scores[s] / pair.weight[s].sum()) for s in sides)
        return there - here

    if form.uses_log_ratio:
        return shift(profile)  # to first order
    total = 0.0
    for t, (name, coefficient) in enumerate(form.terms):
        n, d = (float(plug_in[t, k]) + shift(parts[:, t, k]) for k in (0, 1))
        before = float(plug_in[t, 0] / plug_in[t, 1])
        if name == "da":
            q = float(reference[t, 0])
            p = min(max(n, 0.0), 1.0)
            kl = [float(special.rel_entr(v, q) + special.rel_entr(1 - v, 1 - q)) for v in (p, before)]
            total += coefficient * (kl[0] - kl[1])
        else:
            total += coefficient * (n / d - before) if d > 0 else math.nan
    return total


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


def ranking(score: FloatArray, covariance: FloatArray, seed: int, level: float) -> list[dict[str, float]]:
    """Say how firm each feature's rank is, by draws from the scores' joint normal law.

    Parameters
    ----------
    score : ndarray, shape (blocks,)
        Scores.
    covariance : ndarray, shape (blocks, blocks)
        Their covariance.
    seed : int
        For the draws.
    level : float
        Of the rank interval.

    Returns
    -------
    list of dict
        ``rank``, ``rank_low``, ``rank_high``, ``first`` (share of draws in which it leads).
    """
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    noise = stream(seed, "proxy/ranking").standard_normal((_RANK_DRAWS, len(score)))
    drawn = np.maximum(score + noise @ root.T, 0.0)  # (draws, blocks)
    ranks = 1 + np.argsort(np.argsort(-drawn, axis=1, kind="stable"), axis=1, kind="stable")
    rank = 1 + np.argsort(np.argsort(-score, kind="stable"), kind="stable")
    low, high = np.quantile(ranks, [(1 - level) / 2, (1 + level) / 2], axis=0, method="inverted_cdf")
    first = (ranks == 1).mean(axis=0)
    return [
        {"rank": int(rank[b]), "rank_low": int(low[b]), "rank_high": int(high[b]), "first": float(first[b])}
        for b in range(len(score))
    ]
