"""One error rate over everything that is searched: step-down over the largest evidence of shared permutations.

[westfall1993] Permutations give the joint law of the evidence of all subgroups when no subgroup differs. A subgroup's
adjusted p-value is the chance that the largest evidence among itself and all subgroups with less evidence reaches its
own. Under the hypothesis that nobody's group matters the error rate is exact, for any number of subgroups and however
they overlap. Where some subgroups differ, the others' evidence has nearly the law that permutations give it; how nearly
is measured in ``calibration/scan.py``.

[tarone1990] What a subgroup could show at most depends on its size alone. Subgroups that could not be shown at the
level that is left for each of the others are not tested and take nothing from them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evenhand.arrays import BoolArray, FloatArray, IntArray
from evenhand.inference.pvalues import TIE
from evenhand.inference.scan.family import Drawn
from evenhand.kernels.counts.deals import in_blocks

# Numbers held at once while evidence is drawn; part of the definition of a result.
BLOCK_NUMBERS = 4_000_000
_BLOCK_DRAWS = 500


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Adjusted:
    """Adjusted p-values, and the law of the largest evidence."""

    pvalue: FloatArray  # (S,)
    largest: FloatArray  # the largest evidence of each permutation, rising

    def critical(self, alpha: float) -> float:
        """Return the evidence that a single subgroup must reach to be shown at an error rate over all of them.

        Examples
        --------
        >>> round(Adjusted(pvalue=np.array([1.0]), largest=np.arange(1.0, 100.0)).critical(0.05), 6)
        95.0
        """
        # So many permutations may reach it that they and the data are at most a share alpha of all.
        allowed = math.floor(alpha * (self.largest.size + 1) + 1e-9) - 1
        if allowed < 0:
            return math.inf
        # One more permutation than allowed reaches this one, so it must be exceeded.
        return float(self.largest[self.largest.size - 1 - allowed]) + 2 * TIE if allowed < self.largest.size else 0.0


def could_be_shown(most: FloatArray, alpha: float) -> BoolArray:
    """Say which subgroups could be shown, from the largest evidence that each could give.

    Parameters
    ----------
    most : ndarray, shape (S,)
        Minus the logarithm of the smallest p-value each could have.
    alpha : float
        The error rate over all.

    Returns
    -------
    ndarray of bool, shape (S,)
        With k of them true, each of these could have a p-value of at most ``alpha / k``.

    Examples
    --------
    >>> could_be_shown(-np.log([0.001, 0.02, 0.2, 0.9]), 0.05).tolist()
    [True, True, False, False]
    """
    floors = np.sort(np.exp(-np.asarray(most, dtype=np.float64)))
    k = np.arange(1, floors.size + 1)
    # The smallest k such that at most k subgroups could reach alpha / k.
    number = np.searchsorted(floors, alpha / k * (1 + 1e-12), side="right")
    fits = np.flatnonzero(number <= k)
    if not fits.size:
        return np.zeros(floors.size, dtype=bool)
    return np.asarray(np.exp(-np.asarray(most)) <= alpha / (fits[0] + 1) * (1 + 1e-12))


def step_down(
    evidence: FloatArray,
    drawn: Drawn,
    *,
    n_resamples: int,
    seed: int,
    name: str,
    numbers: int | None = None,
) -> Adjusted:
    """Adjust the evidence of all subgroups by shared permutations.

    Parameters
    ----------
    evidence : ndarray, shape (S,)
        Of the data; larger speaks more against no difference.
    drawn : callable
        The same of permuted data.
    n_resamples, seed, name
        How many permutations, and their random stream.
    numbers : int, optional
        How many numbers one permutation holds at once; by default as many as there are subgroups.

    Returns
    -------
    Adjusted

    Examples
    --------
    >>> drawn = lambda rng, b: rng.exponential(size=(b, 50))
    >>> seen = np.r_[12.0, np.full(49, 0.5)]
    >>> adjusted = step_down(seen, drawn, n_resamples=999, seed=0, name="demo").pvalue
    >>> float(adjusted[0]), float(adjusted[1])
    (0.001, 1.0)
    """
    order = np.argsort(-evidence, kind="stable")
    seen = evidence[order]
    hits: list[IntArray] = []

    def largest(rng: np.random.Generator, b: int) -> FloatArray:
        worst = drawn(rng, b)[:, order]
        np.maximum.accumulate(worst[:, ::-1], axis=1, out=worst[:, ::-1])
        hits.append((worst >= seen - TIE).sum(axis=0))
        return worst[:, 0]

    block = max(1, min(_BLOCK_DRAWS, BLOCK_NUMBERS // max(numbers or evidence.size, 1)))
    highest = in_blocks(largest, n_resamples, block, seed=seed, name=name)
    stepped = np.maximum.accumulate((1 + np.sum(hits, axis=0)) / (n_resamples + 1))
    adjusted = np.empty(evidence.size)
    adjusted[order] = stepped
    return Adjusted(pvalue=adjusted, largest=np.sort(highest))
