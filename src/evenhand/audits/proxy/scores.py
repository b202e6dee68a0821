"""Proxy scores, their joint uncertainty, and how firm their ranking is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from evenhand.arrays import FloatArray, IntArray
from evenhand.audits.proxy.fits import Fits, population
from evenhand.audits.proxy.sample import Pair
from evenhand.kernels.influence.design import Block
from evenhand.kernels.influence.functionals import Centre, Functional
from evenhand.kernels.influence.linearised import score_covariance
from evenhand.kernels.influence.set_features import Toggles, toggle
from evenhand.kernels.influence.shifted_predictions import Rows
from evenhand.kernels.shared.seeds import stream

_RANK_DRAWS = 2000
# Records looked at in detail, for slopes and means by level.
_DETAILED = 50_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scores:
    """Proxy scores with what their uncertainty needs."""

    toggles: Toggles  # the scores
    covariance: FloatArray  # (blocks, blocks): of the scores
    rows: Rows  # records behind the slopes, and behind the means by level


def score_blocks(blocks: Sequence[Block], pair: Pair, fits: Fits, at: Centre, averaged: IntArray) -> Scores:
    """Score features, and find the covariance of the scores.

    Parameters
    ----------
    blocks : sequence of Block
        Features, or pairs of features.
    pair, fits, at
        The sample, what was learned on it, and the centre of psi.
    averaged : ndarray of int
        Records the scores average over.

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
    people = population(pair, fits.eta)
    covariance = score_covariance(toggles, rows, people, at, fits.equations, stand_for=averaged if many else None)
    return Scores(toggles=toggles, covariance=covariance, rows=rows)


def interval_of(score: float, se: float, df: int, level: float, form: Functional) -> tuple[float, float]:
    """Return an interval for a score that cannot be negative.

    A score is a maximum over contrasts, so it errs upwards when all are near 0: the lower end allows for
    the choice among `df` contrasts (Scheffe), the upper end needs no such allowance because the score is
    convex in them. Calibration error has a kink of its own, at which noise counts as change: its score is
    bounded from above only.
    """
    z = float(special.ndtri(0.5 + level / 2))
    wide = math.sqrt(float(special.chdtri(max(df, 1), 1 - level)))
    return 0.0 if form.kinked else max(0.0, score - wide * se), score + z * se


def ranking(scores: Scores, seed: int, level: float, *, firm: bool) -> list[dict[str, float | None]]:
    """Say how firm each feature's rank is, by draws from the scores' joint normal law.

    Parameters
    ----------
    scores : Scores
        From `score_blocks`.
    seed : int
        For the draws.
    level : float
        Of the rank interval.
    firm : bool
        Whether the covariance is to be trusted; without it only the rank is known.

    Returns
    -------
    list of dict
        ``rank``, ``rank_low``, ``rank_high``, ``first`` (share of draws in which it leads); None where unknown.
    """
    score, covariance = scores.toggles.score, scores.covariance
    rank = 1 + np.argsort(np.argsort(-score, kind="stable"), kind="stable")
    if not firm:
        return [{"rank": int(r), "rank_low": None, "rank_high": None, "first": None} for r in rank]
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    noise = stream(seed, "proxy/ranking").standard_normal((_RANK_DRAWS, len(score)))
    drawn = np.maximum(score + noise @ root.T, 0.0)  # (draws, blocks)
    ranks = 1 + np.argsort(np.argsort(-drawn, axis=1, kind="stable"), axis=1, kind="stable")
    low, high = np.quantile(ranks, [(1 - level) / 2, (1 + level) / 2], axis=0, method="inverted_cdf")
    first = (ranks == 1).mean(axis=0)
    return [
        {"rank": int(rank[b]), "rank_low": int(low[b]), "rank_high": int(high[b]), "first": float(first[b])}
        for b in range(len(score))
    ]
