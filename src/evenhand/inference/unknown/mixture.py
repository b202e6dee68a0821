"""Rates of groups that are only known with a probability, where decisions depend on the proxy through the group alone.

Each person i is in group k with a known probability p_ik. When, given the group, a person's place in a rate
(numerator, rest of the denominator, outside) does not depend on the proxy that the probabilities were made from, the
place has probability sum_k p_ik theta_k,place. The log-likelihood is the logarithm of a linear function and so concave
in theta: expectation maximisation climbs to its top, the same from every start, in closed form. Held at a difference
or ratio of two groups' rates, its step needs the most likely pair of rates on a line, which is known too
(`counts.rate_lines`).

Twice the loss of log-likelihood, as a signed root, is standard normal. Its inversion is the interval: with a proxy that
says little the likelihood is flat, and the interval grows to the whole range instead of pretending. Sampling weights
and clusters make the likelihood a pseudo-likelihood; the root is scaled by the ratio of its standard errors, the
model's and the sandwich's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

from evenhand.arrays import FloatArray
from evenhand.inference.unknown.identified import critical_value
from evenhand.inference.unknown.proxy_bounds import DENOMINATOR, NUMERATOR, OUTSIDE, ProxyRows, quantile_bins
from evenhand.kernels.counts.rate_lines import Edge

_MOST_STEPS = 3000
_CLOSE = 1e-8  # of log-likelihood, per round of three steps
_OFF = 1e-9  # an extrapolated rate keeps this far from 0 and 1, where a step could not leave it again
_WORST_CONDITION = 1e9
_MOST_BINS, _BIN_ROWS = 8, 100  # of a proxy, to see whether the model fits
_FARTHEST = math.log(1e6)  # of a ratio


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """The most likely rates, and how likely they make the data."""

    share: FloatArray  # (K,): of the group in the denominator
    rate: FloatArray  # (K,): of those in the numerator
    log_likelihood: float


@dataclass(frozen=True, slots=True, eq=False)
class _Line:
    """The restriction of two groups' rates to a difference or ratio."""

    a: int
    b: int
    edge: Edge


class Mixture:
    """Rates of K groups from group probabilities, by maximum likelihood.

    Parameters
    ----------
    people : ProxyRows
        Records; sampling weights are scaled to add up to the number of rows.
    f1 : bool
        Whether the values compared are 2 r / (1 + r) of the rates r.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(0.5, 0.5, 20_000)
    >>> group = rng.random(p.size) < p
    >>> place = np.where(rng.random(p.size) < np.where(group, 0.5, 0.3), NUMERATOR, DENOMINATOR)
    >>> model = Mixture(ProxyRows.of(np.stack([p, 1 - p], 1), place))
    >>> model.values.round(2).tolist()
    [0.51, 0.3]
    >>> model.root(0, 1, 0.0) > 10
    True
    """

    def __init__(self, people: ProxyRows, *, f1: bool = False) -> None:
        self.people, self.f1 = people, f1
        self._variances: dict[tuple[int, int], tuple[float, float]] = {}
        scale = self.people.rows.sum() / self.people.weight.sum()
        self._scale = float(scale)
        self._parts = []
        for place in (NUMERATOR, DENOMINATOR, OUTSIDE):
            here = self.people.place == place
            probability = np.ascontiguousarray(self.people.probability[here])
            self._parts.append((probability, scale * self.people.weight[here]))
        groups = self.people.probability.shape[1]
        totals = np.array([w.sum() for _, w in self._parts])
        inside = totals[NUMERATOR] + totals[DENOMINATOR]
        rate = totals[NUMERATOR] / inside if inside > 0 else 0.5
        start = (np.full(groups, inside / totals.sum()), np.full(groups, rate))
        self.fit = self._climb(start, None)

    @property
    def values(self) -> FloatArray:
        """The most likely value of each group."""
        return 2 * self.fit.rate / (1 + self.fit.rate) if self.f1 else self.fit.rate

    @property
    def identified(self) -> bool:
        """Whether the probabilities vary enough to tell the groups' rates apart."""
        p, w = self.people.probability, self.people.weight
        gram = p.T @ (p * w[:, None]) / w.sum()
        scale = np.sqrt(np.maximum(np.diag(gram), 1e-300))
        return bool(np.linalg.cond(gram / np.outer(scale, scale)) < _WORST_CONDITION)

    def _step(self, share: FloatArray, rate: FloatArray, line: _Line | None) -> tuple[FloatArray, FloatArray, float]:
        """Make one step of expectation maximisation; also return the log-likelihood before it."""
        theta = (share * rate, share * (1 - rate), 1 - share)
        expected, total = [], 0.0
        for (p, w), t in zip(self._parts, theta, strict=True):
            mixed = np.maximum(p @ t, 1e-300)
            expected.append(t * (p.T @ (w / mixed)))
            total += float(w @ np.log(mixed))
        top, rest, outside = expected
        inside = top + rest
        share = inside / np.maximum(inside + outside, 1e-300)
        rate = np.where(inside > 0, top / np.maximum(inside, 1e-300), rate)
        if line is not None:
            a, b = line.a, line.b
            first, second = line.edge.restricted(top[a], top[b], float(inside[a]), float(inside[b]))
            rate[a], rate[b] = float(first), float(second)
        return share, rate, total

    def _climb(self, start: tuple[FloatArray, FloatArray], line: _Line | None) -> Fit:
        """Climb by steps and by extrapolating two of them, which is kept only where it does not go down."""
        now = self._step(*start, line)[:2]
        safe, reached = now, -math.inf
        for _ in range(_MOST_STEPS // 3):
            one = self._step(*now, line)
            if one[2] < reached - _CLOSE:  # the extrapolation went down
                now = safe
                one = self._step(*now, line)
            elif one[2] - reached < _CLOSE:
                break
            reached = one[2]
            two = self._step(*one[:2], line)
            safe = two[:2]
            now = self._step(*_extrapolated(now, one[:2], safe), line)[:2]
        return Fit(*now, self._step(*now, line)[2])

    def root(self, a: int, b: int, at: float, *, ratio: bool = False) -> float:
        """Return the signed likelihood root of a difference (or ratio) of exactly `at`: positive when it is larger."""
        return self._root(a, b, at, ratio, self.fit)[0]

    def _root(self, a: int, b: int, at: float, ratio: bool, start: Fit) -> tuple[float, Fit]:
        line = _Line(a, b, Edge(at, ratio=ratio, f1=self.f1))
        held = self._climb((start.share, start.rate), line)
        loss = max(self.fit.log_likelihood - held.log_likelihood, 0.0)
        sign = 1.0 if self.value(a, b, ratio=ratio) >= at else -1.0
        return sign * math.sqrt(2 * loss) * self._robust(a, b), held

    def value(self, a: int, b: int, *, ratio: bool) -> float:
        """Return the most likely difference (or ratio)."""
        first, second = float(self.values[a]), float(self.values[b])
        if not ratio:
            return first - second
        return first / second if second > 0 else math.nan

    def pvalue(self, a: int, b: int, at: float, *, ratio: bool = False) -> float:
        """Return the two-sided p-value of a difference (or ratio) of exactly `at`."""
        return float(2 * special.ndtr(-abs(self.root(a, b, at, ratio=ratio))))

    def interval(self, a: int, b: int, level: float, *, ratio: bool = False) -> tuple[float, float]:
        """Return the differences (or ratios) that the likelihood root does not reject."""
        z, best = critical_value(0.0, level), self.value(a, b, ratio=ratio)
        if ratio:
            ends = [self._limit(a, b, sign * z, math.log(best) if best > 0 else -_FARTHEST, ratio) for sign in (1, -1)]
            low, high = (math.exp(end) for end in ends)
            return 0.0 if ends[0] <= -_FARTHEST else low, math.inf if ends[1] >= _FARTHEST else high
        return self._limit(a, b, z, best, ratio), self._limit(a, b, -z, best, ratio)

    def _limit(self, a: int, b: int, goal: float, best: float, ratio: bool) -> float:
        """Return where the root reaches a goal, below the estimate when it is positive; of a ratio the logarithm."""
        end = math.copysign(_FARTHEST if ratio else 1 - 1e-6, -goal)
        held = self.fit

        def excess(at: float) -> float:
            nonlocal held
            root, held = self._root(a, b, math.exp(at) if ratio else at, ratio, held)
            return root - goal

        step = max(2 * abs(goal) * self._spread(a, b, ratio), 1e-4)
        near, far = best, best
        while True:  # the root is nearly a straight line: the limit is soon passed
            far = min(max(far - math.copysign(step, goal), -abs(end)), abs(end))
            if excess(far) * goal >= 0:
                return float(optimize.brentq(excess, near, far, xtol=1e-7, rtol=1e-7))
            if far == end:
                return math.copysign(math.inf if ratio else 1.0, end)
            near, step = far, 2 * step

    def _spread(self, a: int, b: int, ratio: bool) -> float:
        error = self.standard_error(a, b)
        if not ratio:
            return error if math.isfinite(error) else 0.25
        second = max(float(self.values[b]), 1e-6)
        return error / second / max(self.value(a, b, ratio=True), 0.1) if math.isfinite(error) else 0.25

    def standard_error(self, a: int, b: int) -> float:
        """Return the standard error of the difference, from the likelihood's curvature or, with weights, a sandwich."""
        bread, meat = self._covariances(a, b)
        return math.sqrt(meat) if math.isfinite(bread) else math.nan

    def _robust(self, a: int, b: int) -> float:
        bread, meat = self._covariances(a, b)
        return math.sqrt(bread / meat) if meat > 0 and math.isfinite(bread) else 1.0

    def _covariances(self, a: int, b: int) -> tuple[float, float]:
        """Return the variance of the difference by the model, and by the sandwich."""
        if (a, b) not in self._variances:
            self._variances[a, b] = self._variance(a, b)
        return self._variances[a, b]

    def _variance(self, a: int, b: int) -> tuple[float, float]:
        g = self._scores()
        w = self._scale * self.people.weight
        slope = np.zeros(g.shape[1])
        steep = 2 / (1 + self.fit.rate) ** 2 if self.f1 else np.ones(self.fit.rate.shape)
        slope[a], slope[b] = steep[a], -steep[b]
        pull = np.linalg.pinv(g.T @ (g * w[:, None]), hermitian=True) @ slope
        model, sandwich = float(slope @ pull), self._scale**2 * self.people.spread(g @ pull)
        return (model, sandwich) if model > 0 else (math.nan, math.nan)

    def _scores(self) -> FloatArray:
        """Return each record's derivatives in the groups' rates and, where somebody is outside, in their shares."""
        share, rate = self.fit.share, np.clip(self.fit.rate, _OFF, 1 - _OFF)
        p, place = self.people.probability, self.people.place
        theta = np.stack([share * rate, share * (1 - rate), 1 - share])  # (3, K)
        own = p / np.maximum((p * theta[place]).sum(1), 1e-300)[:, None]
        top, rest, out = (own * (place == k)[:, None] for k in (NUMERATOR, DENOMINATOR, OUTSIDE))
        columns = [share * (top - rest)]
        if bool((place == OUTSIDE).any()):
            columns.append(rate * top + (1 - rate) * rest - out)
        return np.concatenate(columns, axis=1)

    def misfit(self, a: int, b: int) -> float:
        """Return the p-value of a test that the model fits: the numerator's share along the proxy is as it says.

        Counts in bins of the two groups' probabilities are compared with what the model expects there, by a
        chi-square test that allows for the fitted rates. It is NaN where there are too few bins.
        """
        people, share, rate = self.people, self.fit.share, self.fit.rate
        bins = min(_MOST_BINS, int(people.rows.sum()) // _BIN_ROWS)
        marks = [quantile_bins(people.probability[:, k], people.rows, bins) for k in (a, b)] if bins > 1 else []
        if not marks:
            return math.nan
        z = np.concatenate([np.eye(int(mark.max()) + 1)[mark] for mark in marks], axis=1)
        w, g = self._scale * people.weight, self._scores()
        excess = (people.place == NUMERATOR) - people.probability @ (share * rate)
        slopes = [share] if g.shape[1] == share.size else [share, rate]
        moved = (z * w[:, None]).T @ np.concatenate([people.probability * slope for slope in slopes], axis=1)
        bread = np.linalg.pinv(g.T @ (g * w[:, None]), hermitian=True)
        terms = z * excess[:, None] - g @ (moved @ bread).T
        gap = (w @ (z * excess[:, None])).ravel()
        law = terms.T @ (terms * (self._scale**2 * people.square)[:, None])
        values, vectors = np.linalg.eigh(law)
        kept = values > 1e-6 * values.max()
        free = int(kept.sum())
        return float(special.chdtrc(free, ((vectors.T @ gap)[kept] ** 2 / values[kept]).sum())) if free else math.nan


def _extrapolated(
    zero: tuple[FloatArray, FloatArray], one: tuple[FloatArray, FloatArray], two: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Extrapolate two steps along their change, by the scheme of Varadhan and Roland (2008)."""
    x0, x1, x2 = (np.concatenate(x) for x in (zero, one, two))
    first, change = x1 - x0, (x2 - x1) - (x1 - x0)
    size = float(np.sqrt(change @ change))
    if size == 0:
        return two
    length = max(float(np.sqrt(first @ first)) / size, 1.0)
    moved = x0 + 2 * length * first + length**2 * change
    inside = (x2 > 0) & (x2 < 1)
    moved = np.where(inside, np.clip(moved, _OFF, 1 - _OFF), x2)
    half = len(moved) // 2
    return moved[:half], moved[half:]
