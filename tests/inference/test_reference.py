from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from evenhand.inference.limits import crossing
from evenhand.inference.reference import HITS, Drawn, Listed, Reference
from evenhand.inference.skewed_student import Lean, Shape, lean_of
from evenhand.kernels.counts.sparse_draws import random_picks
from evenhand.kernels.shared.seeds import stream


def normal(cap: int = 99_999, seed: int = 1) -> Drawn:
    return Drawn(lambda rng, b: rng.normal(size=b), cap=cap, block=700, seed=seed, name="x")


def test_draws_grow_with_the_question_and_not_with_what_was_asked_before() -> None:
    asked, fresh = normal(), normal()
    for value in (3.5, 0.1, 1.7):
        asked.tail(value, "greater")
    assert asked.used == asked.cap
    assert asked.tail(1.7, "less") == fresh.tail(1.7, "less")
    assert asked.tail(1.7, "greater") == fresh.tail(1.7, "greater")
    assert fresh.used < 20_000
    assert asked.tail(9.0, "greater") == asked.floor == 1 / 100_000
    for value in (0.5, 1.7, 2.5, 3.2):
        assert asked.tail(value, "greater") == pytest.approx(stats.norm.sf(value), rel=0.35)


def test_sequential_pvalue_is_valid() -> None:
    # Under the null the observed value is one more draw: P(p <= a) must not exceed a, at every level at once.
    rng = stream(2, "valid")
    found = np.array([normal(cap=1999, seed=i).tail(rng.normal(), "greater") for i in range(3000)])
    for level in (0.001, 0.01, 0.05, 0.1, 0.2):
        assert (found <= level).sum() <= stats.binom.isf(1e-4, found.size, level)
        assert (found <= level).sum() >= stats.binom.ppf(1e-4, found.size, level * 0.9)


def test_pvalue_falls_as_the_value_grows() -> None:
    law = normal(cap=4999)
    found = [law.tail(v, "greater") for v in np.linspace(0, 5, 120)]
    assert all(b <= a for a, b in itertools.pairwise(found))


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99, 0.999])
@pytest.mark.parametrize("kind", ["drawn", "listed", "lean", "both"])
def test_critical_values_are_where_the_test_turns(kind: str, level: float) -> None:
    drawn, listed = normal(cap=9999), Listed(stream(3, "l").normal(size=5000))
    law = Lean(-0.05, 0.3, 12.0)
    reference = {
        "drawn": Reference(None, drawn),
        "listed": Reference(None, listed),
        "lean": Reference(law, None),
        "both": Reference(law, drawn),
    }[kind]
    low, high = reference.critical(level)
    assert low < 0 < high
    for end, out in ((low, -1e-6), (high, 1e-6)):
        assert reference.pvalue(end + out, "two-sided") <= 1 - level + 1e-12
        assert reference.pvalue(end - out, "two-sided") >= 1 - level - 1e-5


def test_no_value_reaches_a_level_below_the_floor() -> None:
    assert normal(cap=99).critical(0.001) == (-math.inf, math.inf)
    law = normal(cap=HITS * 10)
    assert math.isfinite(law.critical(0.05)[0])


def test_lean_is_hall_of_a_sample() -> None:
    x = stream(4, "hall").exponential(size=40)
    r, n = x - x.mean(), 40
    shape = Shape.of(r, np.ones(n, dtype=np.int64), n, x.var(ddof=1) / n)
    law = lean_of([(shape, 1.0)], 39.0)
    lean = stats.skew(x) / math.sqrt(n)
    assert law.low <= 0 <= lean <= law.high
    # By resampling: the spread of the estimated lean.
    rng = stream(5, "boot")
    again = stats.skew(x[rng.integers(0, n, (4000, n))], axis=1) / math.sqrt(n)
    assert (law.high - lean) / 1.5 == pytest.approx(again.std(), rel=0.35)
    plain, t = Lean(lean, lean, 39.0), -2.2
    bent = t + lean * t**2 / 3 + lean**2 * t**3 / 27 + lean / 6
    assert plain.tail(t, "less") == pytest.approx(stats.t.cdf(bent, 39))
    grid = [Lean(a, a, 39.0) for a in np.linspace(law.low, law.high, 400)]
    for value in (-4.0, -1.0, 0.0, 2.0, 5.0):
        for side in ("greater", "less"):
            assert law.tail(value, side) == pytest.approx(max(g.tail(value, side) for g in grid), rel=1e-3)


def test_every_choice_of_rows_is_equally_likely() -> None:
    picks = random_picks(stream(6, "picks"), 30, 3, 60_000)
    seen = np.bincount(np.sort(picks, axis=1) @ np.array([900, 30, 1]), minlength=27_000)
    counts = seen[seen > 0]
    assert counts.size == math.comb(30, 3)
    assert stats.chisquare(counts).pvalue > 1e-4
    many = random_picks(stream(7, "picks"), 10, 8, 50)
    assert all(len(set(line)) == 8 for line in many.tolist())


def test_crossing_agrees_with_the_test_at_the_probe() -> None:
    for turn in (0.999999, 1.000001):
        end = crossing(lambda v, turn=turn: v >= turn, 2.0, 0.0, probe=1.0)
        assert (end > 1) == (turn > 1)
    assert crossing(lambda v: True, 0.0, 5.0) == 5.0
