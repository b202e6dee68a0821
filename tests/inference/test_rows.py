from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from evenhand.errors import UsageError
from evenhand.inference.rows import Columns, Resampling, RowSamples
from evenhand.inference.samples import Draws
from evenhand.kernels.shared.seeds import stream

QUICK = Draws(n_resamples=39)


def mean(rows: Columns) -> float:
    return float(rows["v"].mean())


def make(v: np.ndarray, g: np.ndarray, **more: object) -> RowSamples:
    own = {k: more.pop(k) for k in ("n_bootstrap", "max_resamples", "outcome") if k in more}
    resampling = Resampling(**{"n_bootstrap": 20, **own})
    options = {"value": mean, "resampling": resampling, **more}
    return RowSamples(columns={"v": v}, codes=g, n_groups=int(g.max()) + 1, **options)  # type: ignore[arg-type]


def test_variance_and_statistic_are_those_of_a_mean() -> None:
    rng = stream(1, "rows")
    v, g = rng.normal(size=120), np.repeat([0, 1], [40, 80])
    samples = make(v, g, n_bootstrap=400)
    assert samples.estimate == pytest.approx([v[:40].mean(), v[40:].mean()])
    error = math.sqrt(v[:40].var() / 40 + v[40:].var() / 80)
    assert samples.standard_error(0, 1) == pytest.approx(error, rel=0.1)
    result = samples.test(0, 1, Draws(method="limit"))
    assert result.statistic == pytest.approx((v[:40].mean() - v[40:].mean()) / error, rel=0.1)


def test_row_order_labels_and_counts_do_not_matter() -> None:
    rng = stream(2, "rows")
    v, g, c = rng.integers(0, 9, 50) / 4, rng.integers(0, 3, 50), rng.integers(0, 3, 50)
    base = make(v, g, count=c)
    order = rng.permutation(50)
    moved, turned = make(v[order], g[order], count=c[order]), make(v, 2 - g, count=c)
    written = make(np.repeat(v, c), np.repeat(g, c))
    wanted, together = base.test(0, 1, QUICK), base.test_global([0, 1, 2], QUICK)
    for other in (moved.test(0, 1, QUICK), turned.test(2, 1, QUICK), written.test(0, 1, QUICK)):
        assert other.null.tobytes() == wanted.null.tobytes()
        assert other.pvalue == wanted.pvalue
    assert turned.test_global([0, 1, 2], QUICK).pvalue == together.pvalue
    assert base.test(1, 0, QUICK).pvalue == wanted.pvalue


def test_within_outcome_keeps_the_outcomes_of_each_group() -> None:
    rng = stream(3, "rows")
    y, g = rng.integers(0, 2, 40), np.repeat([0, 1], 20)
    seen: list[float] = []

    def share(rows: Columns) -> float:
        seen.append(float(rows["y"].sum()))
        return float(rows["s"].mean())

    samples = RowSamples(
        columns={"y": y, "s": rng.normal(size=40)},
        codes=g,
        n_groups=2,
        value=share,
        resampling=Resampling(n_bootstrap=10, outcome="y"),
    )
    samples.test(0, 1, Draws(n_resamples=9, permute="outcome"))
    # Of each permuted group's eleven calls the first is on the rows as dealt.
    dealt = seen[2 + 100 :][::11]
    assert len(dealt) == 18
    assert set(dealt) == {float(y[:20].sum()), float(y[20:].sum())}
    with pytest.raises(UsageError, match="needs an outcome column"):
        make(rng.normal(size=40), g).test(0, 1, Draws(permute="outcome"))


def test_failures_of_the_function_are_explained() -> None:
    g = np.repeat([0, 1, 2], 10)
    v = np.where(g == 1, -1.0, np.arange(30.0) + 1)

    def picky(rows: Columns) -> float:
        if (rows["v"] < 0).all():
            raise ValueError("only negative rows")
        return float(np.log(rows["v"]).mean()) if (rows["v"] < 25).all() else math.nan

    samples = make(v, g, value=picky)
    assert samples.reason[0] == ""
    assert "ValueError: only negative rows" in samples.reason[1]
    assert "no finite value" in samples.reason[2]
    assert math.isnan(samples.test(0, 1, QUICK).pvalue)
    assert math.isnan(samples.interval(0, 1, level=0.9, ratio=False, draws=QUICK)[0])
    assert math.isnan(samples.equivalence(0, 1, low=-1, high=1, ratio=False, draws=QUICK))
    with pytest.raises(UsageError, match="failed in every group; last with KeyError"):
        make(v, g, value=lambda rows: rows["nothing"].mean())
    with pytest.raises(UsageError, match="at least 10"):
        make(v, g, n_bootstrap=2)
    with pytest.raises(UsageError, match="not among the columns"):
        make(v, g, outcome="y")
    assert make(v, np.repeat([0, 2, 2], 10), empty_reason="is empty").reason[1] == "is empty"


def test_interval_equivalence_and_warnings() -> None:
    rng = stream(4, "rows")
    v, g = np.concatenate([rng.normal(3, 1, 150), rng.normal(3.1, 1, 150)]), np.repeat([0, 1], 150)
    samples = make(v, g, n_bootstrap=50)
    draws = Draws(n_resamples=199)
    low, high, kind = samples.interval(0, 1, level=0.95, ratio=False, draws=draws)
    other = stats.ttest_ind(v[:150], v[150:], equal_var=False).confidence_interval(0.95)
    assert (low, high) == pytest.approx((other.low, other.high), abs=0.1)
    assert kind == "permutation-t"
    rlow, rhigh, _ = samples.interval(0, 1, level=0.95, ratio=True, draws=draws)
    assert rlow < samples.estimate[0] / samples.estimate[1] < rhigh
    assert samples.equivalence(0, 1, low=-1, high=1, ratio=False, draws=draws) == pytest.approx(0.005)
    assert samples.equivalence(0, 1, low=0.5, high=2, ratio=True, draws=draws) == pytest.approx(0.005)
    assert samples.equivalence(0, 1, low=-0.01, high=0.01, ratio=False, draws=draws) > 0.5
    with pytest.raises(UsageError, match="has no exact test"):
        samples.test(0, 1, Draws(n_resamples=9, method="exact"))
    assert make(v, g, max_resamples=7).test(0, 1, draws).n_resamples == 7


def test_interval_test_and_margin_agree() -> None:
    rng = stream(6, "rows")
    g = np.repeat([0, 1], 40)
    for shift in (0.0, 0.4, 0.6):
        samples = make(rng.normal(size=80) + 3 + shift * g, g)
        draws = Draws(n_resamples=399)
        p = samples.test(0, 1, draws).pvalue
        for level in (0.9, 0.95, 1 - p - 1e-6, 1 - p + 1e-6):
            if not 0.8 <= level < 0.99:
                continue
            for ratio, none in ((False, 0.0), (True, 1.0)):
                low, high, _ = samples.interval(0, 1, level=level, ratio=ratio, draws=draws)
                assert (low > none or high < none) == (p <= 1 - level)
                assert samples.beyond(0, 1, low=high + 1e-6, high=9, ratio=ratio, draws=draws) <= 1 - level + 1e-6
                assert samples.beyond(0, 1, low=high - 1e-6, high=9, ratio=ratio, draws=draws) >= 1 - level - 1e-6


def test_size() -> None:
    rng = stream(5, "size")
    runs, hits, g = 40, 0, np.repeat([0, 1], [15, 45])
    for r in range(runs):
        v = rng.normal(size=60) * np.where(g == 0, 3, 1)
        hits += make(v, g).test(0, 1, Draws(n_resamples=19, seed=r)).pvalue <= 0.05
    assert hits <= stats.binom.ppf(0.9999, runs, 0.05)


def test_many_samples_at_once_give_the_numbers_of_one_after_the_other() -> None:
    rng = np.random.default_rng(3)
    v, g = rng.normal(size=60), rng.integers(0, 3, 60)

    def middle(rows: Columns) -> np.ndarray:
        return np.median(rows["v"], axis=-1)

    single, many = (make(v, g, value=middle, batch=batch, max_resamples=39) for batch in (False, True))
    draws = Draws(seed=1)
    for one, other in (
        (many.test(0, 1, draws), single.test(0, 1, draws)),
        (many.test_global(range(3), draws), single.test_global(range(3), draws)),
    ):
        assert (one.statistic, one.pvalue) == (other.statistic, other.pvalue)
