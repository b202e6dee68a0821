"""Any function of rows in K samples, by permutation with a bootstrap variance.

Hypothesis: two (or all) samples have one value of the function.
Statistic: difference of the values over its standard error; the variance of each value is bootstrapped
inside its own sample, [diciccio2020] eq. (1), and made anew for every permutation (Algorithm 1). The two
samples' variances are added, which has the expectation of eq. (1) and less noise.
Reference: permutations of all rows, or within an outcome column.

The function is called about ``2 * n_resamples * (n_bootstrap + 1)`` times, so the number of permutations
is limited to `max_resamples`. A metric that is a function of counts or a mean has a faster class.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from evenhand.arrays import AnyArray, FloatArray, IntArray
from evenhand.errors import UsageError
from evenhand.inference.limits import fieller
from evenhand.inference.pvalues import TestResult, undefined
from evenhand.inference.reference import Drawn, Reference
from evenhand.inference.resampling import refuse_exact
from evenhand.inference.samples import Draws, MarginSamples, coded_rows
from evenhand.inference.skewed_student import Lean
from evenhand.kernels.counts.deals import in_blocks, random_labels
from evenhand.kernels.counts.row_sums import weighted_spread
from evenhand.kernels.shared.seeds import stream

NO_EXACT = "a general function of rows has no exact test"
NO_VARIANCE = "The function has no value, or no bootstrap variance, in one of the groups."
Columns = Mapping[str, AnyArray]
_Study = tuple[FloatArray, FloatArray, FloatArray]  # values, their variances and the statistic on permuted rows

# Rows of bootstrap samples held at once.
_TOGETHER = 2**21
# Permutations per block; a block takes a noticeable time whatever the function.
BLOCK = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Resampling:
    """How rows are drawn again."""

    n_bootstrap: int = 100  # samples behind each variance
    max_resamples: int = 999  # permutations at most, whatever `Draws.n_resamples` says
    outcome: str | None = None  # column within whose values rows are permuted under ``permute="outcome"``


class RowSamples(MarginSamples):
    """K samples of rows, compared by the user's own function.

    Parameters
    ----------
    columns : mapping of str to array_like, each of shape (R,)
        What the function reads.
    codes, n_groups
        As in `MeanSamples`.
    value : callable
        Takes a mapping of column name to array, returns one number.
    batch : bool
        The function also takes columns of shape (samples, rows) and then returns a value for each sample.
    count : array_like of int, shape (R,), optional
        Rows each record stands for; 1 by default.
    resampling : Resampling
        How the variance and the permutations are made.
    empty_reason : str
        Why a sample without rows has no value.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> samples = RowSamples(columns={"v": rng.normal(size=60)}, codes=np.repeat([0, 1], 30), n_groups=2,
    ...                      value=lambda rows: float(np.median(rows["v"])),
    ...                      resampling=Resampling(n_bootstrap=20, max_resamples=39))
    >>> 0 < samples.test(0, 1, Draws()).pvalue <= 1
    True
    """

    def __init__(
        self,
        *,
        columns: Mapping[str, ArrayLike],
        codes: ArrayLike,
        n_groups: int,
        value: Callable[[Columns], Any],
        batch: bool = False,
        count: ArrayLike | None = None,
        resampling: Resampling = Resampling(),
        empty_reason: str = "has no rows",
    ) -> None:
        n_bootstrap, outcome = resampling.n_bootstrap, resampling.outcome
        if n_bootstrap < 10:
            raise UsageError(f"`n_bootstrap` must be at least 10 to give a variance; got {n_bootstrap}.")
        if outcome is not None and outcome not in columns:
            raise UsageError(f"Column `{outcome}` to permute within is not among the columns {sorted(columns)}.")
        g, c, _, keep = coded_rows(codes, n_groups, count)
        arrays = {name: np.asarray(column) for name, column in columns.items()}
        # Rows in a fixed order, repeated as often as they count: neither their order nor the way repeated
        # rows are written down can change a result.
        ranks = [np.unique(arrays[name][keep], return_inverse=True)[1] for name in sorted(arrays, reverse=True)]
        order = np.lexsort(ranks) if ranks else np.arange(int(keep.sum()))
        index = np.repeat(np.flatnonzero(keep)[order], c[keep][order])
        self._columns = {name: column[index] for name, column in arrays.items()}
        self._value, self._batch, self._resampling = value, batch, resampling
        self._rows = [np.flatnonzero(g[index] == k) for k in range(n_groups)]
        self._studies: dict[tuple[tuple[int, ...], Draws], _Study] = {}
        self.estimate, self.reason = self._observe(empty_reason)
        self.counts = tuple({"rows": int(rows.size)} for rows in self._rows)

    def _test(self, a: int, b: int, draws: Draws) -> TestResult:
        refuse_exact(draws, NO_EXACT)
        values, variances, null = self._studied((a, b), draws)
        observed = float(_studentised(values, variances))
        if math.isnan(observed):
            return undefined(NO_VARIANCE)
        words = "normal limit, bootstrap variance" if draws.method == "limit" else self._words(draws)
        return _reference(null).result(observed, draws.alternative, method=words)

    def _test_global(self, members: list[int], draws: Draws) -> TestResult:
        refuse_exact(draws, NO_EXACT)
        values, variances, null = self._studied(tuple(members), draws, together=True)
        observed = float(_together(values, variances))
        if math.isnan(observed):
            return undefined(NO_VARIANCE)
        if draws.method == "limit":
            p = float(special.chdtrc(len(members) - 1, observed))
            return TestResult(statistic=observed, pvalue=p, method="chi-square limit", exact=False)
        return _reference(null).result(observed, "greater", method=self._words(draws))

    def _interval(self, a: int, b: int, level: float, ratio: bool, draws: Draws) -> tuple[float, float, str]:
        """Bootstrap standard error, permutation quantiles."""
        kind = ("fieller-" if ratio else "") + ("bootstrap-normal" if draws.method == "limit" else "permutation-t")
        values, (va, vb), null = self._studied((a, b), draws)
        if math.isnan(va + vb):
            return math.nan, math.nan, kind
        ends = _reference(null).critical(level)
        if ratio:
            return *fieller(float(values[0]), float(values[1]), float(va), float(vb), *ends), kind
        gap, error = float(values[0] - values[1]), math.sqrt(va + vb)
        return gap - ends[1] * error, gap - ends[0] * error, kind

    def _at(self, a: int, b: int, margin: float, ratio: bool, draws: Draws) -> float:
        """By the law of no difference."""
        values, (va, vb), null = self._studied((a, b), draws)
        gap = values[0] - margin * values[1] if ratio else values[0] - values[1] - margin
        var = va + (margin**2 if ratio else 1.0) * vb
        return _reference(null).pvalue(float(gap / math.sqrt(var)), draws.alternative) if var > 0 else math.nan

    def _standard_error(self, a: int, b: int) -> float:
        _, variances, _ = self._studied((a, b), Draws(method="limit"))
        return math.sqrt(float(variances.sum()))

    def _observe(self, empty_reason: str) -> tuple[FloatArray, tuple[str, ...]]:
        estimate, reason, raised = np.full(len(self._rows), np.nan), [], 0
        error: Exception | None = None
        for k, rows in enumerate(self._rows):
            if rows.size == 0:
                reason.append(empty_reason)
                continue
            try:
                value = float(self._value(self._take(rows)))
                estimate[k] = value if math.isfinite(value) else np.nan
                reason.append("" if math.isfinite(value) else "gave the metric's function no finite value")
            except Exception as caught:  # the function is the user's: any failure becomes a reason
                error, raised = caught, raised + 1
                reason.append(f"made the metric's function fail with {type(caught).__name__}: {caught}")
        if error is not None and raised == sum(rows.size > 0 for rows in self._rows):
            raise UsageError(
                f"The metric's function failed in every group; last with {type(error).__name__}: {error}. "
                "It gets a mapping of column name to array and must return one number."
            ) from error
        return estimate, tuple(reason)

    def _take(self, rows: IntArray) -> Columns:
        return {name: column[rows] for name, column in self._columns.items()}

    def _call(self, rows: IntArray) -> float:
        """Value on resampled rows, NaN where the function fails."""
        try:
            value = float(self._value(self._take(rows)))
        except Exception:  # resampled rows may lack an outcome; the statistic is then undefined
            return math.nan
        return value if math.isfinite(value) else math.nan

    def _call_all(self, rows: IntArray) -> FloatArray:
        """Value on each of many resampled samples; shape (samples, rows) -> (samples,)."""
        if not self._batch:
            return np.array([self._call(one) for one in rows])
        values = np.asarray(self._value(self._take(rows)), dtype=float)
        return np.where(np.isfinite(values), values, math.nan)

    def _variance(self, rng: np.random.Generator, rows: IntArray, centre: float, n: int) -> float:
        """[diciccio2020] eq. (1) inside one sample; NaN when fewer than half of the samples have a value."""
        drawn = np.concatenate(
            [
                self._call_all(rows[rng.integers(0, rows.size, size=(some, rows.size))])
                for some in _shares(n, max(_TOGETHER // rows.size, 1))
            ]
        )
        defined = ~np.isnan(drawn)
        if defined.sum() * 2 < n:
            return math.nan
        return float(np.mean((drawn[defined] - centre) ** 2))

    def _studied(self, members: tuple[int, ...], draws: Draws, *, together: bool = False) -> _Study:
        """Values, bootstrap variances and the permuted statistic, kept for the next question."""
        key = ((*members, int(together)), replace(draws, alternative="two-sided"))
        if key not in self._studies:
            self._studies[key] = self._study(members, draws, together)
        return self._studies[key]

    def _study(self, members: tuple[int, ...], draws: Draws, together: bool) -> _Study:
        values = self.estimate[list(members)]
        # Samples are bootstrapped and dealt in an order that their labels cannot change.
        order = sorted(range(len(members)), key=lambda i: (self._rows[members[i]].size, values[i]))
        place = np.argsort(order)
        variances = np.empty(len(members))
        for i in order:
            rng = stream(draws.seed, f"{draws.name}/observed", int(place[i]))
            # The data's own variance is made with more samples: it is made once.
            variances[i] = self._variance(rng, self._rows[members[i]], values[i], 5 * self._resampling.n_bootstrap)
        if draws.method == "limit":
            return values, variances, np.empty(0)
        pool = np.sort(np.concatenate([self._rows[k] for k in members]))
        strata = self._strata(pool, draws)
        sizes = [[int(np.isin(part, self._rows[members[i]]).sum()) for i in order] for part in strata]
        statistic = _together if together else _studentised

        def work(rng: np.random.Generator, b: int) -> FloatArray:
            dealt = [random_labels(rng, n, b) for n in sizes]
            out = np.empty(b)
            for r in range(b):
                own, spread = np.empty(len(members)), np.full(len(members), math.nan)
                for i in order:
                    label = place[i]
                    rows = np.concatenate([part[d[r] == label] for part, d in zip(strata, dealt, strict=True)])
                    own[i] = self._call(rows)
                    if rows.size:
                        spread[i] = self._variance(rng, rows, own[i], self._resampling.n_bootstrap)
                out[r] = statistic(own, spread)
            return out

        n = min(draws.n_resamples, self._resampling.max_resamples)
        null = in_blocks(work, n, BLOCK, seed=draws.seed, name=f"{draws.name}/rows/{int(together)}")
        return values, variances, null

    def _strata(self, pool: IntArray, draws: Draws) -> list[IntArray]:
        if draws.permute != "outcome":
            return [pool]
        outcome = self._resampling.outcome
        if outcome is None:
            raise UsageError("Permuting within outcome needs an outcome column; pass `outcome=`, or permute all rows.")
        column = self._columns[outcome][pool]
        return [pool[column == level] for level in np.unique(column)]

    def _words(self, draws: Draws) -> str:
        within = " within outcome" if draws.permute == "outcome" else ""
        return f"studentised permutation test{within}, bootstrap variance"


def _shares(n: int, most: int) -> list[int]:
    """Return how many of n are made at a time."""
    return [min(most, n - begun) for begun in range(0, n, most)]


def _reference(null: FloatArray) -> Reference:
    """Return the law known by these draws, or the normal law without any."""
    if null.size == 0:
        return Reference(Lean(), None)
    return Reference(None, Drawn(lambda rng, b: null, cap=null.size, block=null.size, seed=0, name=""))


def _studentised(values: FloatArray, variances: FloatArray) -> float:
    gap, var = float(values[0] - values[1]), float(variances.sum())
    if gap == 0 and not math.isnan(var):
        return 0.0
    return gap / math.sqrt(var) if var > 0 else math.nan


def _together(values: FloatArray, variances: FloatArray) -> float:
    if not (variances > 0).all():
        return math.nan
    return float(weighted_spread(values, variances))
