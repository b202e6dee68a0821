"""Size and coverage of the tail audit's parts, and of the whole audit on trained models.

    python calibration/tail.py [--only level,difference] [--samples 1000] [--seed 9]

Writes ``tail.json`` beside itself, cell by cell; parts that were not run keep their stored values. The whole grid takes
about an hour on one core. ``tests/calibration/test_tail.py`` runs a few cells of the same functions.

Every cell has its own stream of random numbers, named after it. The stretch of the profile intervals (1 + 10 / k) and
the change from likelihood to moments at a shape of -3/4 were chosen on seed 6; seeds 7 and 96 to 99 showed that a
limited end point needs a wider cutoff and shapes below -1/2 another interval. What is stored was measured after that,
on seed 9 and later ones (the exponentiality test, which none of this touches, on seed 7).
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

import evenhand as eh
from evenhand.audits.tail import audit_tail
from evenhand.audits.tail.findings import chosen_horizon
from evenhand.audits.tail.group_tail import Request, group_tail
from evenhand.inference.means import MeanSamples
from evenhand.inference.one_mean import OneMean, tail_rows
from evenhand.inference.quantiles import difference_interval, difference_pvalue, level_interval, level_pvalues
from evenhand.inference.samples import Draws
from evenhand.kernels.extremes.exponentiality import PRINTED, limit_constant, residual_variation
from evenhand.kernels.extremes.pareto_tail import choose_k, fit_tail, tail_intervals
from evenhand.kernels.shared.seeds import stream

FloatArray = NDArray[np.float64]
Law = Callable[[FloatArray], FloatArray]  # survival probability to value
Cell = dict[str, Any]

# Name: quantile function of the survival probability, shape of its tail, largest value. All but beta(2,5) are exactly
# generalised Pareto above any threshold.
LAWS: dict[str, tuple[Law, float, float]] = {
    "exponential": (lambda p: -np.log(p), 0.0, math.inf),
    "uniform": (lambda p: 1 - p, -1.0, 1.0),
    "beta(1,2)": (lambda p: 1 - np.sqrt(p), -0.5, 1.0),
    "beta(1,5)": (lambda p: 1 - p**0.2, -0.2, 1.0),
    "beta(2,5)": (lambda p: 1 - special.betaincinv(5, 2, p), -0.2, 1.0),
    "interior maximum": (lambda p: 1 - p**2, -2.0, 1.0),
    "pareto(4)": (lambda p: p**-0.25, 0.25, math.inf),
}
LEVELS = (0.05, 0.01, 0.001)  # of the tests: a correction works in the smaller ones
# Two laws, moved so that their return levels agree: only the forms differ.
UNLIKE = (
    ("exponential", "uniform"),
    ("uniform", "exponential"),
    ("beta(1,5)", "beta(1,2)"),
    ("exponential", "interior maximum"),
    ("pareto(4)", "exponential"),
)


def exponentiality_cell(law: str, kmax: int, samples: int, seed: int) -> Cell:
    """How often the exponentiality test fails, as printed and calibrated."""
    make, _, _ = LAWS[law]
    rng = stream(seed, f"tail/exponentiality/{law}/{kmax}")
    failed = np.zeros(2)
    for _ in range(samples // 1000):
        # The largest kmax of 20 kmax values, made from the first arrivals of a Poisson process.
        arrivals = np.cumsum(rng.standard_exponential((1000, kmax)), axis=1)
        total = arrivals[:, -1:] + rng.gamma(19 * kmax + 1, size=(1000, 1))
        scores = np.sqrt(np.arange(10, kmax + 1)) * (residual_variation(make(arrivals / total)) - 1)
        failed += [(scores.max(axis=1) > c).sum() for c in (PRINTED, limit_constant(kmax))]
    return {"samples": samples, "printed": failed[0] / samples, "calibrated": failed[1] / samples}


def intervals_cell(law: str, k: int, samples: int, seed: int, *, bound: bool = False) -> Cell:
    """Recovery of shape and return levels and coverage of their 95 % intervals, n = 20 k rows.

    With `bound` the fit knows the law's end point.
    """
    make, shape, end = LAWS[law]
    n = 20 * k
    horizons = np.array([n / 5, n, 10 * n, 100 * n])
    truth = make(1 / horizons)
    rng = stream(seed, f"tail/intervals/{law}/{k}/{bound}")
    hits, levels, shapes = np.zeros(1 + horizons.size), [], []
    for _ in range(samples):
        tail = fit_tail(make(rng.random(n)), k, upper=end if bound else math.inf)
        found = tail_intervals(tail, horizons, level=0.95, rng=rng, draws=200)
        hits[0] += found.shape[0] <= shape <= found.shape[1]
        hits[1:] += (found.low <= truth) & (truth <= found.high)
        levels.append([tail.level(m) for m in horizons])
        shapes.append(tail.free_shape)
    names = ["shape", "level n/5", "level n", "level 10n", "level 100n"]
    spread = np.std(levels, axis=0)
    return {
        "samples": samples,
        **dict(zip(names, (hits / samples).tolist(), strict=True)),
        "shape, mean error": float(np.mean(shapes) - shape),
        "shape, standard deviation": float(np.std(shapes)),
        "level n, mean error in standard deviations": float((np.mean(levels, axis=0)[1] - truth[1]) / spread[1]),
    }


def chosen_cell(law: str, n: int, samples: int, seed: int) -> Cell:
    """Coverage of the return level at horizons n and 10 n when the test itself chooses k, end point known."""
    make, _, end = LAWS[law]
    horizons = np.array([n, 10.0 * n])
    truth = make(1 / horizons)
    rng = stream(seed, f"tail/chosen/{law}/{n}")
    hits, used, mean_k = np.zeros(2), 0, 0
    for _ in range(samples):
        values = make(rng.random(n))
        k, _ = choose_k(values)
        if k:
            tail = fit_tail(values, k, upper=end)
            found = tail_intervals(tail, horizons, level=0.95, rng=rng, draws=200)
            used, mean_k = used + 1, mean_k + k
            hits += (found.low <= truth) & (truth <= found.high)
    covered = (hits / max(used, 1)).tolist()
    return {
        "samples": samples, "enough tail": used / samples, "mean k": mean_k / max(used, 1), "level n": covered[0],
        "level 10n": covered[1],
    }  # fmt: skip


def _ordered(make: Law, n: int, rng: np.random.Generator) -> FloatArray:
    return np.asarray(-np.sort(-make(rng.random(n))))


def _rates(pvalues: list[float]) -> Cell:
    return {f"rejected at {a:g}": float(np.mean(np.array(pvalues) <= a)) for a in LEVELS}


def level_cell(law: str, n: int, horizon: float, samples: int, seed: int) -> Cell:
    """Size of the test of one level where the margin is the true level, and coverage of its 95 % interval."""
    make = LAWS[law][0]
    truth = float(make(np.array(1 / horizon)))
    rng = stream(seed, f"tail/level/{law}/{n}/{horizon}")
    above, below, covered = [], [], 0
    for _ in range(samples):
        x = _ordered(make, n, rng)
        larger, smaller = level_pvalues(x, 1 / horizon, truth)
        low, high = level_interval(x, 1 / horizon, 0.95)
        above.append(2 * larger)
        below.append(smaller)
        covered += low <= truth <= high
    return {
        "samples": samples, **_rates(above), "false equivalent at 0.05": float(np.mean(np.array(below) <= 0.05)),
        "coverage": covered / samples,
    }  # fmt: skip


def difference_cell(
    law: str, other: str, sizes: tuple[int, int], horizon: float, samples: int, seed: int, *, gap: float = 0.0
) -> Cell:
    """Size of the test of equal levels, and coverage of the difference's interval, at one horizon.

    Two different laws are moved so that their true levels agree: only the forms differ. With `gap` the first is moved
    away by that many lengths of the half interval (median over samples), so that the size becomes the power.
    """
    make_a, make_b = LAWS[law][0], LAWS[other][0]
    p = 1 / horizon
    moved = float(make_a(np.array(p)) - make_b(np.array(p)))
    rng = stream(seed, f"tail/difference/{law}/{other}/{sizes}/{horizon}/{gap}")

    def pair() -> tuple[FloatArray, FloatArray]:
        return _ordered(make_a, sizes[0], rng), _ordered(make_b, sizes[1], rng) + moved

    away = 0.0
    if gap:
        found = [difference_interval(*pair(), p, 0.95) for _ in range(100)]
        away = gap * float(np.median([(high - low) / 2 for low, high in found]))
    covered, pvalues = 0, []
    for _ in range(samples):
        a, b = pair()
        a = a + away
        pvalues.append(2 * min(difference_pvalue(a, b, p), difference_pvalue(b, a, p)))
        low, high = difference_interval(a, b, p, 0.95)
        covered += low <= away <= high
    return {"samples": samples, **_rates(pvalues), "coverage": covered / samples}


def beyond_cell(law: str, n: int, horizon: float, samples: int, seed: int) -> Cell:
    """How often the audit believes its fit beyond the rows, and how often the interval then covers the level."""
    make, _, end = LAWS[law]
    truth = float(make(np.array(1 / horizon)))
    rng = stream(seed, f"tail/beyond/{law}/{n}/{horizon}")
    given, hits, above = 0, 0, 0
    for r in range(samples):
        values = make(rng.random(n))
        group = group_tail("a", "b", np.zeros(n), values, horizon, Request(upper=end, level=0.95, draws=99, seed=r))
        found = group.level_at(horizon, 0.95)
        given += not math.isnan(found.value)
        hits += not math.isnan(found.value) and found.low <= truth <= found.high
        above += found.low > values.max()
    return {
        "samples": samples, "given": given / samples, "coverage": hits / max(given, 1), "wholly above": above / samples,
    }  # fmt: skip


def population(kind: str, n: int, rng: np.random.Generator, effect: float) -> tuple[dict[str, Any], Any]:
    """Draw people with five features and a group that is independent of them; return columns and outcomes."""
    columns: dict[str, Any] = {f"x{j}": rng.normal(size=n) for j in range(5)}
    columns["sex"] = rng.integers(2, size=n)
    eta = 0.9 * columns["x0"] + 0.6 * columns["x1"] - 0.4 * columns["x2"] + effect * columns["sex"]
    if kind == "mlp":
        eta = eta + 0.8 * columns["x0"] * columns["x3"]
    base = -2.7 if kind == "logistic" else -0.5  # 11 % or about two in five say yes
    return columns, (rng.random(n) < special.expit(base + eta)).astype(int)


def trained(kind: str, n: int, rng: np.random.Generator, effect: float, *, blind: bool = False) -> Any:
    """Fit a model on rows of its own."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier

    columns, y = population(kind, n, rng, effect)
    X = np.column_stack([columns[c] for c in columns if not (blind and c == "sex")])
    seed = int(rng.integers(2**31))
    if kind == "logistic":
        return LogisticRegression().fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it need not converge
        return MLPClassifier((16,), learning_rate_init=0.01, max_iter=25, tol=0.0, random_state=seed).fit(X, y)


def audited(model: Any, columns: dict[str, Any], y: Any, **options: Any) -> eh.AuditResult:
    data = eh.AuditData.from_arrays(outcome=y, groups={"sex": columns["sex"]}, features=columns)
    return audit_tail(data, model=model, **{"generator": "none", "rng": 0, **options})


def model_cell(kind: str, n: int, horizon: float | None, samples: int, seed: int) -> Cell:
    """Coverage of the return level of a trained model, its true level taken from 400,000 other people."""
    rng = stream(seed, f"tail/model/{kind}/{n}/{horizon}")
    found = np.zeros(4)
    many, outcome = population(kind, 400_000, rng, 0.6)
    X = np.column_stack(list(many.values()))
    models = max(samples // 20, 1)
    asked = 0
    for _ in range(models):
        model = trained(kind, 2000, rng, 0.6)
        score = model.predict_proba(X)[:, 1]
        flipped = X.copy()
        flipped[:, -1] = 1 - flipped[:, -1]
        change = model.predict_proba(flipped)[:, 1] - score
        true = [-np.sort(-change[X[:, -1] == g]) for g in (0, 1)]
        for _ in range(samples // models):
            rows = rng.choice(len(X), size=2 * n, replace=False)
            columns = {name: c[rows] for name, c in many.items()}
            result = audited(model, columns, outcome[rows], horizon=horizon)
            for f, e in zip(result.findings[1:], result.evidence[1:], strict=True):
                asked += 1
                if f.interval is None:
                    continue
                group = int(f.groups[0][-1])
                at = true[group].size / e.horizon
                truth = true[group][int(at)]
                found += [
                    1, f.interval.low - 1e-9 <= truth <= f.interval.high + 1e-9,
                    f.interval.low > e.observed_maximum.value + 1e-12,
                    f.interval.high > e.largest_possible.value + 1e-12,
                ]  # fmt: skip
    return {
        "samples": asked, "given": found[0] / asked, "coverage": found[1] / max(found[0], 1),
        "wholly above the sample": found[2] / asked, "above what is possible": found[3] / asked,
    }  # fmt: skip


def random_cell(kind: str, n: int, train: int, samples: int, seed: int, *, blind: bool = False) -> Cell:
    """How often the default audit finds a disparity where the groups were drawn at random, and how often wrongly.

    A model that was given the random column has some coefficient for it, and the change it makes is real: a
    `disparity` is false when the true quantity, taken from 40,000 other people, lies inside the margin.
    """
    rng = stream(seed, f"tail/random/{kind}/{n}/{train}/{blind}")
    shown, false, sizes, model, levels = 0, 0, [], None, [0.0, 0.0]
    others, outcome = population(kind, 40_000, rng, 0.0)
    horizon = chosen_horizon(int(0.45 * n))
    for r in range(samples):
        if train <= 2000 or r % 5 == 0:  # five audits of each model that takes long to train
            model = trained(kind, train, rng, 0.0, blind=blind)
            if not blind:
                found = audited(model, others, outcome, horizon=horizon)
                levels = [next(f.estimate for f in found.findings[1:] if f.groups[0] == f"sex={g}") for g in (0, 1)]
        columns, y = population(kind, n, rng, 0.0)
        seen = {c: v for c, v in columns.items() if not (blind and c == "sex")}
        data = eh.AuditData.from_arrays(outcome=y, groups={"sex": columns["sex"]}, features=seen)
        result = audit_tail(data, model=model, horizon=horizon, generator="none", rng=0)
        called = [f for f in result if f.verdict is eh.Verdict.DISPARITY]
        shown += bool(called)
        truth = {f"sex={g}": v for g, v in enumerate(levels)}
        false += any(
            abs(truth[f.groups[0]] - (truth[f.groups[1]] if f.measure == "ecd" else 0.0)) <= 0.01 for f in called
        )
        sizes.append(abs(levels[0] - levels[1]))
    return {
        "samples": samples, "any disparity": shown / samples, "false disparity": false / samples,
        "median true |ecd|": float(np.median(sizes)),
    }  # fmt: skip


def steps(p: FloatArray) -> FloatArray:
    """Return changes as a tree's: nine people in ten have none, the others one of three."""
    return np.select([p < 0.02, p < 0.06, p < 0.1], [0.3, 0.2, 0.1], 0.0)


# Laws of changes for means: those above, one in steps, and that of a logistic model's flip.
CHANGES: dict[str, Law] = {
    "exponential": LAWS["exponential"][0],
    "uniform": LAWS["uniform"][0],
    "steps": steps,
    "logistic": lambda p: special.expit(special.ndtri(p) + 0.5) - special.expit(special.ndtri(p)),
}


def true_mean(law: str, share: float) -> float:
    """Return the mean of the largest share of a law of changes, from many of its quantiles."""
    p = (np.arange(2_000_000) + 0.5) / 2_000_000
    values = CHANGES[law](p)
    return float(np.mean(values if share == 1 else np.sort(values)[::-1][: round(share * p.size)]))


def drawn_changes(law: str, n: int, rng: np.random.Generator) -> FloatArray:
    """Draw the changes of n people, sorted downwards."""
    return np.asarray(np.sort(CHANGES[law](1 - rng.random(n)))[::-1])


def mean_cell(law: str, n: int, share: float, samples: int, seed: int) -> Cell:
    """Size and coverage of one group's mean change, or of that of the worst share.

    The mean is tested on both sides, that of the worst share above the true value only, at half of the level.
    """
    truth = true_mean(law, share)
    rng = stream(seed, f"tail/mean/{law}/{n}/{share}")
    rejected, equivalent, covered, above, below = np.zeros(len(LEVELS)), 0, 0, 0, 0
    for i in range(samples):
        mean = OneMean(drawn_changes(law, n, rng), share, -math.inf, math.inf, Draws(n_resamples=999, seed=i))
        greater, less = mean.tail(truth, "greater"), mean.tail(truth, "less")
        p = min(1.0, 2 * (min(greater, less) if share == 1 else greater))
        rejected += p <= np.array(LEVELS)
        equivalent += less <= 0.05
        low, high = mean.interval(0.95)
        covered, above, below = covered + (low <= truth <= high), above + (low > truth), below + (high < truth)
    return {
        "samples": samples, **{f"rejected at {a:g}": r / samples for a, r in zip(LEVELS, rejected, strict=True)},
        "false equivalent at 0.05": equivalent / samples, "coverage": covered / samples,
        "interval above": above / samples, "interval below": below / samples,
    }  # fmt: skip


def means_cell(a: str, b: str, sizes: tuple[int, int], share: float, samples: int, seed: int) -> Cell:
    """Size and coverage of the difference of two groups' means, moved so that only the means agree."""
    truth = true_mean(a, share) - true_mean(b, share)
    rng = stream(seed, f"tail/means/{a}/{b}/{sizes}/{share}")
    rejected, covered = np.zeros(len(LEVELS)), 0
    for i in range(samples):
        one, two = (
            tail_rows(drawn_changes(law, n, rng), share)[0].values for law, n in zip((a, b), sizes, strict=True)
        )
        groups = MeanSamples(value=np.concatenate([one - truth, two]), codes=np.repeat([0, 1], sizes), n_groups=2)
        draws = Draws(n_resamples=999, seed=i)
        rejected += groups.test(0, 1, draws).pvalue <= np.array(LEVELS)
        low, high, _ = groups.interval(0, 1, level=0.95, ratio=False, draws=draws)
        covered += low <= 0 <= high
    return {
        "samples": samples, **{f"rejected at {a:g}": r / samples for a, r in zip(LEVELS, rejected, strict=True)},
        "coverage": covered / samples,
    }  # fmt: skip


def trained_means_cell(kind: str, n: int, samples: int, seed: int) -> Cell:
    """Coverage of ACD, CVaR and their differences on a trained model; the truth is that of 40,000 other people."""
    rng = stream(seed, f"tail/trained means/{kind}/{n}")
    covered: dict[str, list[bool]] = {}
    truth: dict[tuple[str, tuple[str, ...]], float] = {}
    asked = {"measures": ("acd", "cvar"), "reference": {"sex": "1"}}
    for r in range(samples):
        if r % 10 == 0:  # ten audits of each model
            model = trained(kind, 4000, rng, 0.5)
            others = audited(model, *population(kind, 40_000, rng, 0.5), **asked)
            truth = {(f.measure, f.groups): f.estimate for f in others}
        for f in audited(model, *population(kind, n, rng, 0.5), **asked):
            if f.interval is not None:
                inside = f.interval.low <= truth[f.measure, f.groups] <= f.interval.high
                covered.setdefault(f.measure, []).append(bool(inside))
    return {"samples": samples} | {f"coverage of {name}": float(np.mean(v)) for name, v in covered.items()}


Run = tuple[str, Callable[[], Cell]]


def grid(samples: int, seed: int) -> dict[str, list[Run]]:
    """List all cells: part, then name and call."""
    half = samples // 2
    parts: dict[str, list[Run]] = {"exponentiality": [], "intervals": [], "bounded": [], "chosen": []}
    for k in (50, 100, 200):
        for law, (_, _, end) in LAWS.items():
            parts["exponentiality"].append(
                (f"{law}, k={k}", lambda law=law, k=k: exponentiality_cell(law, k, 20 * samples, seed))
            )
            parts["intervals"].append((f"{law}, k={k}", lambda law=law, k=k: intervals_cell(law, k, samples, seed)))
            if math.isfinite(end):
                parts["bounded"].append(
                    (f"{law}, k={k}", lambda law=law, k=k: intervals_cell(law, k, samples, seed, bound=True))
                )
    for n in (500, 5000):
        for law in LAWS:
            parts["chosen"].append((f"{law}, n={n}", lambda law=law, n=n: chosen_cell(law, n, samples, seed)))
    many = 4 * samples
    parts["level"] = [
        (f"{law}, n={n}, horizon {m:g}", lambda law=law, n=n, m=m: level_cell(law, n, m, many, seed))
        for n, m in ((500, 50.0), (1000, 100.0), (10_000, 1000.0))
        for law in ("exponential", "interior maximum", "pareto(4)")
    ]
    designs = (((500, 500), 50.0), ((1000, 1000), 100.0), ((1000, 10_000), 100.0), ((10_000, 1000), 100.0))
    parts["difference"] = [
        (f"{a} and {b}, n={sizes[0]} and {sizes[1]}, horizon {m:g}",
         lambda a=a, b=b, sizes=sizes, m=m: difference_cell(a, b, sizes, m, many, seed))
        for sizes, m in designs
        for a, b in (("exponential", "exponential"), *UNLIKE)
    ]  # fmt: skip
    parts["power"] = [
        (f"{law}, n=2000 and 2000, horizon 100",
         lambda law=law: difference_cell(law, law, (2000, 2000), 100.0, samples, seed, gap=(1.96 + 0.84) / 1.96))
        for law in LAWS
    ]  # fmt: skip
    parts["beyond"] = [
        (f"{law}, n={n}, horizon {m:g}", lambda law=law, n=n, m=m: beyond_cell(law, n, m, half, seed))
        for n, m in ((1000, 1000.0), (1000, 10_000.0))
        for law in LAWS
    ]
    parts["models"] = [
        (f"{kind}, n={n} a group, horizon {'default' if m is None else f'{m:g}'}",
         lambda kind=kind, n=n, m=m: model_cell(kind, n, m, half, seed))
        for kind in ("logistic", "mlp")
        for n, m in ((1000, None), (1000, 1000.0), (4000, 1000.0), (1000, 10_000.0))
    ]  # fmt: skip
    parts["means"] = [
        (f"{'acd' if share == 1 else f'cvar {share:g}'}, {law}, n={n}",
         lambda law=law, n=n, share=share: mean_cell(law, n, share, samples, seed))
        for share, rows in ((1.0, (10, 50, 500)), (0.05, (200, 1000)))
        for law in CHANGES
        for n in rows
    ]  # fmt: skip
    parts["mean differences"] = [
        (f"{'acd' if share == 1 else f'cvar {share:g}'}, {a} and {b}, n={sizes[0]} and {sizes[1]}",
         lambda a=a, b=b, sizes=sizes, share=share: means_cell(a, b, sizes, share, half, seed))
        for share, sizes in ((1.0, (50, 500)), (0.05, (200, 1000)))
        for a, b in (("logistic", "logistic"), ("exponential", "uniform"), ("steps", "logistic"))
    ]  # fmt: skip
    parts["trained means"] = [
        (f"{kind}, n={n}", lambda kind=kind, n=n: trained_means_cell(kind, n, half, seed))
        for kind in ("logistic", "mlp")
        for n in (1000,)
    ]
    parts["random"] = [
        (f"{kind}, {'blind' if blind else 'given'}, {n} rows, trained on {train}",
         lambda kind=kind, n=n, train=train, blind=blind: random_cell(kind, n, train, half, seed, blind=blind))
        for kind, blind, n, train in (
            ("logistic", True, 2000, 2000), ("logistic", False, 2000, 2000), ("logistic", False, 2000, 20_000),
            ("logistic", False, 2000, 200_000), ("mlp", True, 2000, 2000), ("mlp", False, 2000, 20_000),
        )
    ]  # fmt: skip
    return parts


def main() -> None:
    """Run the parts asked for and store them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=9)
    parser.add_argument("--only", default="")
    parser.add_argument("--cells", default="", help="only cells whose name contains this")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("tail.json"))
    arguments = parser.parse_args()
    parts = grid(arguments.samples, arguments.seed)
    stored: dict[str, Any] = json.loads(arguments.out.read_text(encoding="utf-8")) if arguments.out.exists() else {}
    for part in arguments.only.split(",") if arguments.only else parts:
        for cell, call in parts[part]:
            if arguments.cells not in cell:
                continue
            found = {n: v if isinstance(v, int) else round(float(v), 4) for n, v in call().items()}
            stored.setdefault(part, {})[cell] = found | {"seed": arguments.seed}
            print(part, cell, found, flush=True)
            arguments.out.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
