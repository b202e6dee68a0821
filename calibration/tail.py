"""Size and coverage of the tail audit's parts on exponential, uniform, Beta and Pareto tails.

Run ``python calibration/tail.py`` for the full grid (about half an hour on one core); it writes ``tail.json`` beside
itself. ``--replications`` makes it shorter. ``tests/calibration/test_tail.py`` runs a few cells of the same functions.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evenhand.inference.mover import mover_interval
from evenhand.inference.tails import interval_pvalues, tail_difference_test
from evenhand.kernels.exponentiality import exponentiality
from evenhand.kernels.pareto_tail import choose_k, fit_tail, tail_intervals

FloatArray = NDArray[np.float64]
Law = Callable[[FloatArray], FloatArray]  # survival probability to value

# Name: quantile function of the survival probability, shape of its tail, largest value.
LAWS: dict[str, tuple[Law, float, float]] = {
    "exponential": (lambda p: -np.log(p), 0.0, math.inf),
    "uniform": (lambda p: 1 - p, -1.0, 1.0),
    "beta(1,2)": (lambda p: 1 - np.sqrt(p), -0.5, 1.0),
    "beta(1,5)": (lambda p: 1 - p**0.2, -0.2, 1.0),
    "interior maximum": (lambda p: 1 - p**2, -2.0, 1.0),
    "pareto(4)": (lambda p: p**-0.25, 0.25, math.inf),
}


def intervals_cell(law: str, k: int, replications: int, seed: int, *, bound: bool = False) -> dict[str, float]:
    """Coverage of the 95 % intervals of the shape and of return levels at one, ten and a hundred sample sizes."""
    make, shape, end = LAWS[law]
    n = 20 * k
    horizons = np.array([n / 5, n, 10 * n, 100 * n])
    truth = make(1 / horizons)
    rng = np.random.default_rng([seed, k])
    hits = np.zeros(1 + horizons.size)
    ratio = np.zeros(horizons.size)
    for _ in range(replications):
        tail = fit_tail(make(rng.random(n)), k, upper=end if bound else math.inf)
        found = tail_intervals(tail, horizons, level=0.95, rng=rng, draws=200)
        hits[0] += found.shape[0] <= shape <= found.shape[1]
        hits[1:] += (found.low <= truth) & (truth <= found.high)
        ratio += [tail.level(m) for m in horizons]
    names = ["shape", "level n/5", "level n", "level 10n", "level 100n"]
    out = dict(zip(names, (hits / replications).round(4).tolist(), strict=True))
    return out | {"mean level n over truth": round(float(ratio[1] / replications / truth[1]), 4)}


def exponentiality_cell(law: str, kmax: int, replications: int, seed: int) -> dict[str, float]:
    """How often the exponentiality test fails, as printed and calibrated."""
    make, _, _ = LAWS[law]
    rng = np.random.default_rng([seed, kmax])
    failed = np.zeros(2)
    for _ in range(replications):
        # The largest kmax of 20 kmax values, made from the first arrivals of a Poisson process.
        arrivals = np.cumsum(rng.standard_exponential(20 * kmax + 1))
        values = make(arrivals[:kmax] / arrivals[-1])
        failed += [not exponentiality(values, kmax=kmax, printed=p).passed for p in (True, False)]
    return {"printed": round(failed[0] / replications, 4), "calibrated": round(failed[1] / replications, 4)}


def difference_cell(
    law: str, other: str, sizes: tuple[int, int], k: int, replications: int, seed: int, *, draws: int = 99
) -> dict[str, float]:
    """Size of the test of equal return levels, and coverage of the difference's interval, at horizon n.

    With two different laws the second is shifted so that its true return level equals the first's: the weak null.
    """
    make_a, make_b = LAWS[law][0], LAWS[other][0]
    horizon = float(max(sizes))
    one = np.array(1 / horizon)
    shift = float(make_a(one) - make_b(one))
    rng = np.random.default_rng([seed, k, sizes[0], sizes[1]])
    rejected = alone = covered = 0
    for r in range(replications):
        a = fit_tail(make_a(rng.random(sizes[0])), k)
        b = fit_tail(make_b(rng.random(sizes[1])) + shift, k)
        permuted = tail_difference_test(a, b, horizon, n_resamples=draws, seed=r).pvalue
        ends = []
        for tail in (a, b):
            found = tail_intervals(tail, np.array([horizon]), level=0.95, rng=rng, draws=200)
            ends.append((tail.level(horizon), float(found.low[0]), float(found.high[0])))
        (one, low_a, high_a), (two, low_b, high_b) = ends
        limits = (low_a, high_a, low_b, high_b)
        low, high = mover_interval(one, two, lambda _, limits=limits: limits, 1.96, ratio=False)
        covered += low <= 0 <= high
        alone += permuted <= 0.05
        rejected += max(permuted, interval_pvalues(one - two, low, high, 0.95)[0]) <= 0.05
    return {
        "size": round(rejected / replications, 4),
        "size of permutation alone": round(alone / replications, 4),
        "coverage": round(covered / replications, 4),
    }


def chosen_cell(law: str, n: int, replications: int, seed: int) -> dict[str, float]:
    """Coverage of the return level at horizon n when the test itself chooses k, end point limited if there is one."""
    make, _, end = LAWS[law]
    truth = float(make(np.array(1 / n)))
    rng = np.random.default_rng([seed, n])
    hits = used = 0
    for _ in range(replications):
        values = make(rng.random(n))
        k, _ = choose_k(values)
        if k:
            tail = fit_tail(values, k, upper=end)
            found = tail_intervals(tail, np.array([float(n)]), level=0.95, rng=rng, draws=200)
            used += 1
            hits += found.low[0] <= truth <= found.high[0]
    return {"enough tail": round(used / replications, 4), "level n": round(hits / max(used, 1), 4)}


PARTS = ("exponentiality", "intervals", "chosen", "difference")


def main() -> None:
    """Run the parts asked for and store them; parts that were not run keep their stored values."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=600)
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("tail.json"))
    arguments = parser.parse_args()
    r, asked = arguments.replications, arguments.only.split(",")
    seed = 6
    stored: dict[str, dict[str, object]] = {}
    if arguments.out.exists():
        stored = json.loads(arguments.out.read_text(encoding="utf-8"))

    def note(part: str, cell: str, replications: int, found: dict[str, float]) -> None:
        stored.setdefault(part, {})[cell] = {k: float(v) for k, v in found.items()} | {"replications": replications}
        print(part, cell, stored[part][cell], flush=True)
        arguments.out.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")

    if "exponentiality" in asked:
        for k in (50, 100, 200):
            for law in LAWS:
                note("exponentiality", f"{law}, kmax={k}", 5 * r, exponentiality_cell(law, k, 5 * r, seed))
    if "intervals" in asked:
        for k in (50, 100, 200):
            for law in LAWS:
                note("intervals", f"{law}, k={k}", r, intervals_cell(law, k, r, seed))
    if "chosen" in asked:
        for n in (500, 5000):
            for law in LAWS:
                note("chosen", f"{law}, n={n}", r // 2, chosen_cell(law, n, r // 2, seed))
    if "difference" in asked:
        for sizes, k in (((1000, 1000), 50), ((3000, 800), 50), ((4000, 4000), 200)):
            for law in LAWS:
                cell = f"{law}, n={sizes}, k={k}"
                note("difference", cell, r // 2, difference_cell(law, law, sizes, k, r // 2, seed))
        for law, other in (("exponential", "uniform"), ("beta(1,5)", "beta(1,2)")):
            cell = f"{law} against {other}, n=(3000, 1000), k=100"
            note("difference", cell, r // 2, difference_cell(law, other, (3000, 1000), 100, r // 2, seed))


if __name__ == "__main__":
    main()
