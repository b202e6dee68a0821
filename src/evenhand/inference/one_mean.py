"""The mean of one sample, and the mean of its largest values (CVaR): tests of any value and the interval they leave.

Hypothesis: the mean of the population is a given value.
Test: two laws, of which the larger p-value counts. Student's t corrected for skewness and for not knowing it well
(`evenhand.inference.skewed_student`) holds for any law in large samples. Random sign flips of the rows around the value
are exact, in any sample, when the rows lie symmetrically around it. Flips turn into means of random halves: the sum of
flipped rows is at least the sum seen exactly when the mean of the flipped ones is at most the value (Hartigan 1969). So
one set of draws answers for every value, and its quantiles are the interval. Flips are left out when the moments
say that the first law is enough.

The mean of the largest share q is the smallest ``t + mean of max(x - t, 0) / q`` over all t, found where a share q lies
above t (Rockafellar and Uryasev 2000). To first order t costs nothing, so it is the mean of the rows ``t + max(x - t,
0) / q``, each row's influence; they are far from symmetric, so only the first law is asked. That the mean lies above
a value says that ``t + E max(x - t, 0) / q`` does for every t, so it is shown only if it is shown at all t that may be
the right one; without that, too much is shown where ten rows make the share.

Rows that all are alike have no spread, and what was not seen decides: a share of others that the binomial law leaves
possible could have any value that is possible.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from evenhand.arrays import FloatArray
from evenhand.inference.means import CALM_KURTOSIS, CALM_SKEWNESS, SKEWED, VERY_SKEWED
from evenhand.inference.quantiles import level_interval, level_pvalues
from evenhand.inference.reference import Drawn, Listed
from evenhand.inference.samples import Draws
from evenhand.inference.skewed_student import Lean, Shape, lean_of
from evenhand.kernels.counts.deals import block_size
from evenhand.kernels.shared.descending import Descending

_LISTED = 13  # rows up to which all flips are listed
_TRIED = 9  # values tried as the one above which the share lies
_OTHER = {"greater": "less", "less": "greater"}


def tail_rows(descending: FloatArray | Descending, share: float, moved: int = 0) -> tuple[Descending, float]:
    """Return rows whose mean is the mean of the largest share of a sample, and the value above which the share lies.

    Parameters
    ----------
    descending : ndarray, shape (n,), or Descending
        The sample, sorted downwards; at least one row.
    share : float
        Above 0 and at most 1; 1 gives the sample itself.
    moved : int
        By how many places down the sample another value is taken in place of the one above which the share lies.

    Examples
    --------
    >>> rows, above = tail_rows(np.arange(10.0)[::-1], 0.2)
    >>> rows.mean(), above
    (8.5, 8.0)
    """
    sample = Descending.of(descending)
    if share >= 1:
        return sample, float(sample.values[-1])
    place = min(max(math.ceil(share * sample.size - 1e-9) - 1 + moved, 0), sample.size - 1)
    above = float(sample.at(place))
    return sample.changed(lambda values: above + np.maximum(values - above, 0.0) / share), above


@dataclass(frozen=True, eq=False)
class OneMean:
    """The mean of the largest share of one sample; of the whole sample with a share of 1.

    Examples
    --------
    >>> sample = OneMean(np.array([3.0, 2.0, 1.0]), 1.0, -9.0, 9.0, Draws())
    >>> sample.estimate, sample.flips.tail(0.0, "less")  # all three above 0: one flip of eight
    (2.0, 0.125)
    """

    descending: FloatArray | Descending  # (n,): the sample, sorted downwards
    share: float
    # lowest, highest: the values that are possible.
    lowest: float
    highest: float
    draws: Draws

    @cached_property
    def rows(self) -> Descending:
        """The rows whose mean it is."""
        return tail_rows(self.descending, self.share)[0]

    @property
    def estimate(self) -> float:
        """The mean."""
        return self.rows.mean()

    @property
    def standard_error(self) -> float:
        """The standard error of the mean; 0 where all rows are alike."""
        n, spread = self.rows.size, float(self.rows.values[0] - self.rows.values[-1])
        alike = spread <= 1e-12 * max(1.0, abs(self.estimate))
        return 0.0 if alike else self.rows.deviation() / math.sqrt(n)

    def tail(self, value: float, side: str) -> float:
        """Return the one-sided p-value: "greater" speaks against a mean of at most `value`."""
        if self.standard_error == 0:
            return self._alike_tail(value, side)
        asked = self._laws if side == "greater" else self._laws[:1]
        known = max(law.tail((mean - value) / error, side) for mean, error, law in asked)
        flips = 0.0 if self.flips is None else self.flips.tail(value, _OTHER[side])
        return max(known, flips)

    def two_sided(self, value: float) -> float:
        """Return the two-sided p-value, twice the smaller of both sides."""
        return min(1.0, 2 * min(self.tail(value, "greater"), self.tail(value, "less")))

    def interval(self, level: float) -> tuple[float, float]:
        """Return the values that the two-sided test at ``1 - level`` keeps, among those that are possible."""
        if self.standard_error == 0:
            low, high = self._alike_interval((1 - level) / 2)
        else:
            ends = [(mean, error, law.critical((1 - level) / 2)) for mean, error, law in self._laws]
            low = min(mean - over * error for mean, error, (_, over) in ends)
            high = ends[0][0] - ends[0][2][0] * ends[0][1]
            if self.flips is not None:
                first, last = self.flips.critical((1 - level) / 2)
                low, high = min(low, first), max(high, last)
        return max(low, self.lowest), min(high, self.highest)

    @property
    def words(self) -> str:
        """How the p-value was made."""
        if self.standard_error == 0:
            return "binomial: how many people can be unlike those seen, who are all alike"
        return "skewness-corrected t test" + (
            "" if self.flips is None else " and random sign flips, the larger p-value"
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """Where the rows are too skewed for their number."""
        lean = 0.0 if self.standard_error == 0 else self._laws[0][2].most
        if lean <= SKEWED:
            return ()
        times = "twice" if lean <= VERY_SKEWED else "four times"
        return (
            "The changes are so skewed, for so few rows, that a long tail may have been missed: out at .001 such a "
            f"test may reject a true null up to {times} as often as stated.",
        )

    @cached_property
    def _laws(self) -> list[tuple[float, float, Lean]]:
        """Mean, standard error and law at the value above which the share lies, and at those that may be it."""
        n = self.rows.size
        reach = 3 * math.sqrt(n * self.share * (1 - self.share))
        found = []
        for moved in dict.fromkeys([0, *np.linspace(-reach, reach, _TRIED).round().astype(int).tolist()]):
            rows = tail_rows(self.descending, self.share, moved)[0]
            mean, error = rows.mean(), rows.deviation() / math.sqrt(n)
            if error > 0:
                shape = Shape.of(rows.values - mean, np.diff(rows.ends), n, error**2)
                found.append((mean, error, lean_of([(shape, 1.0)], n - 1.0)))
        return found

    @cached_property
    def flips(self) -> Drawn | Listed | None:
        """Means of random halves, or None where the first law is enough or the only one."""
        n = self.rows.size
        if self.share < 1 or self.standard_error == 0 or (n > _LISTED and self._is_calm):
            return None
        rows = self.rows.head(n)
        if n <= _LISTED:
            return Listed(_half_means(np.array(list(product((0.0, 1.0), repeat=n))), rows))
        return Drawn(
            lambda rng, b: _half_means(rng.integers(0, 2, size=(b, n)).astype(np.float64), rows),
            cap=self.draws.most(n),
            block=block_size(n),
            seed=self.draws.seed,
            name=f"{self.draws.name}/flips",
        )

    @property
    def _is_calm(self) -> bool:
        m2, m3, m4 = (self.rows.mean(k, self.estimate) for k in (2, 3, 4))
        n = self.rows.size
        return abs(m3) / m2**1.5 / math.sqrt(n) <= CALM_SKEWNESS and m4 / m2**2 / n <= CALM_KURTOSIS

    def _alike_tail(self, value: float, side: str) -> float:
        """Return the one-sided p-value where all rows are alike."""
        seen, n = self.estimate, self.descending.size
        if side == "greater" and self.share < 1:
            return level_pvalues(self.descending, self.share, value)[0]
        gap, room = (seen - value, seen - self.lowest) if side == "greater" else (value - seen, self.highest - seen)
        if gap <= 0:
            return 1.0
        # So large a share of others, each as far away as possible, would move the mean to the value.
        others = self.share * gap / room if room > 0 else 1.0
        return max(1 - others, 0.0) ** n

    def _alike_interval(self, tail: float) -> tuple[float, float]:
        seen, n = self.estimate, self.descending.size
        others = min(1.0, -math.expm1(math.log(tail) / n) / self.share)
        high = seen + others * (self.highest - seen) if self.highest > seen else seen
        if self.share < 1:
            return level_interval(self.descending, self.share, 1 - 2 * tail, lowest=self.lowest)[0], high
        return seen - others * (seen - self.lowest), high


def _half_means(chosen: FloatArray, rows: FloatArray) -> FloatArray:
    """Return the mean of the rows chosen; NaN, which counts as extreme, where none are."""
    with np.errstate(invalid="ignore"):
        return np.asarray(chosen @ rows / chosen.sum(axis=1))
