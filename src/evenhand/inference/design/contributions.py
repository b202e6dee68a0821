"""What each cluster of rows adds to the values of K groups, and the variance that follows.

A value that is a smooth function of sums moves, to first order, by the sum of what its rows pull it up or down. Rows of
one cluster depend on each other in any way, so their pulls are added up, and the clusters' sums are what varies. A
cluster may have rows in several groups: the covariance of the groups' values then follows from the same sums.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evenhand.arrays import BoolArray, FloatArray, IntArray


def rounded(values: FloatArray) -> FloatArray:
    """Round to twelve digits of the largest value: sums then do not depend on the order of adding.

    Examples
    --------
    >>> float(rounded(np.array([0.1 + 0.2]))[0])
    0.3
    """
    most = float(np.abs(values[np.isfinite(values)]).max(initial=0.0))
    return np.round(values, 12 - math.ceil(math.log10(most))) if most > 0 else values


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contributions:
    """What L kinds of clusters add to the values of K groups.

    Parameters
    ----------
    estimate : ndarray, shape (K,)
        The groups' values.
    mass : ndarray, shape (L, K)
        Weight (rows, or their summed sampling weights) that stands behind the value, by cluster and group.
    pull : ndarray, shape (L, K)
        How much a cluster's rows pull each group's value up or down; they add up to 0 in each group.
    copies : ndarray of int, shape (L,)
        Clusters that have exactly these contributions.
    stratum : ndarray of int, shape (L,) or None
        Sampling stratum of each cluster, where a survey was stratified.

    Examples
    --------
    >>> two = Contributions.of_ratio([[1.0], [3.0]], [[2.0], [4.0]])
    >>> two.estimate.round(4).tolist(), two.share.round(4).tolist(), two.pull.round(4).tolist()
    ([0.6667], [[0.3333], [0.6667]], [[-0.0556], [0.0556]])
    """

    estimate: FloatArray
    mass: FloatArray
    pull: FloatArray
    copies: IntArray
    stratum: IntArray | None = None

    @classmethod
    def of_ratio(
        cls,
        top: FloatArray | list[list[float]],
        bottom: FloatArray | list[list[float]],
        copies: IntArray | None = None,
        stratum: IntArray | None = None,
    ) -> Contributions:
        """Take each group's value to be one sum over another: a rate or a mean, weighted or not.

        Parameters
        ----------
        top, bottom : ndarray, shape (L, K)
            Sums of each cluster in each group.
        copies, stratum
            As in the class; by default one cluster each, and no strata.
        """
        x, n = np.asarray(top, dtype=np.float64), np.asarray(bottom, dtype=np.float64)
        c = np.ones(len(n), dtype=np.int64) if copies is None else copies
        whole = c @ n  # (K,)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.where(whole > 0, c @ x / whole, np.nan)
            pull = np.where(whole > 0, (x - value * n) / whole, 0.0)
        return cls(estimate=value, mass=n, pull=pull, copies=c, stratum=stratum)

    @property
    def share(self) -> FloatArray:
        """Each cluster's part of each group's mass, (L, K)."""
        whole = self.copies @ self.mass
        return np.asarray(self.mass / np.where(whole > 0, whole, 1.0))

    @property
    def present(self) -> BoolArray:
        """Which clusters have rows behind the value of which group, (L, K)."""
        return np.asarray(self.mass > 0)

    @property
    def clusters(self) -> IntArray:
        """How many clusters stand behind each group's value, (K,)."""
        return np.asarray(self.copies @ self.present, dtype=np.int64)

    def crossing(self, members: list[int]) -> int:
        """Return how many clusters have rows of more than one of these groups."""
        return int(self.copies @ (self.present[:, members].sum(axis=1) > 1))

    def deviations(self) -> FloatArray:
        """Return pulls whose plain sums of squares and products are the variances of the values, (L, K).

        Without sampling strata each is divided by the root of 1 minus its share of the group, which makes the variance
        unbiased where rows are independent (Bell and McCaffrey 2002). With them it is centred within its stratum and
        the n / (n - 1) of the stratum enters; a stratum with a single cluster is centred at the mean of all.
        """
        if self.stratum is None:
            return np.asarray(self.pull / np.sqrt(np.maximum(1 - self.share, 1e-12)))
        strata = int(self.stratum.max()) + 1
        size = np.bincount(self.stratum, weights=self.copies, minlength=strata)
        whole = self.copies @ self.pull / self.copies.sum()
        out = np.empty_like(self.pull)
        for k in range(self.pull.shape[1]):
            total = np.bincount(self.stratum, weights=self.copies * self.pull[:, k], minlength=strata)
            centre = np.where(size > 1, total / np.maximum(size, 1), whole[k])
            factor = np.where(size > 1, size / np.maximum(size - 1, 1), 1.0)
            out[:, k] = np.sqrt(factor)[self.stratum] * (self.pull[:, k] - centre[self.stratum])
        return out

    def covariance(self) -> FloatArray:
        """Return the covariance of the groups' values, (K, K)."""
        deviations = self.deviations()
        return np.asarray((deviations * self.copies[:, None]).T @ deviations)

    def freedom(self, a: int, b: int, factor: float = 1.0) -> float:
        """Return the degrees of freedom of the variance of value a minus factor times value b.

        As many as independent clusters of equal size would leave (Satterthwaite): large clusters count for more, and a
        group whose value is known worse. With sampling strata at most the clusters less the strata.
        """
        share, own = self.share, np.diag(self.covariance())
        part = share[:, a] * own[a] + factor**2 * share[:, b] * own[b]  # what each cluster should add to the variance
        square = float(self.copies @ part**2)
        df = float(self.copies @ part) ** 2 / square - 1 if square > 0 else float(self.copies.sum()) - 1
        if self.stratum is not None:
            df = min(df, float(self.copies.sum()) - np.unique(self.stratum).size)
        return max(df, 1.0)
