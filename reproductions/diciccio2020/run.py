"""Reproduce [diciccio2020]: table 1, section 4.2, figures 2 and 3.

    python reproductions/diciccio2020/run.py [--short]

Writes ``result.json`` beside this file (``--short`` prints only). Figures 2 and 3 need the COMPAS file; see
``evenhand datasets``.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import evenhand as eh
from evenhand.inference.auc import AucSamples
from evenhand.inference.correlation import correlation_test
from evenhand.inference.rates.samples import RateSamples
from evenhand.inference.samples import Draws
from evenhand.kernels.counts.permuted_tables import draw_tables
from evenhand.kernels.shared.logistic import fit_logistic
from evenhand.metrics import METRICS

HERE = Path(__file__).parent
ALPHA = 0.05


def table_1(rows: int, simulations: int, n_resamples: int) -> dict[str, float]:
    """Correlation of an attribute with the error: studentised, and as FairTest does it."""

    def uncorrelated(rng: np.random.Generator, power: int) -> tuple[np.ndarray, np.ndarray]:
        x = rng.uniform(1e-5, 1, rows)
        return x, rng.normal(size=rows) / x**power

    def dependent(rng: np.random.Generator, power: int) -> tuple[np.ndarray, np.ndarray]:
        x = rng.exponential(size=rows) + 1
        return x, rng.normal(size=rows) / x**power

    out: dict[str, float] = {}
    designs: dict[str, tuple[Callable[..., Any], int]] = {
        "uncorrelated, errors over x squared": (uncorrelated, 2),
        "uncorrelated, errors over x": (uncorrelated, 1),
        "dependent, errors over x squared": (dependent, 2),
    }
    for name, (make, power) in designs.items():
        studentised = fairtest = 0
        for seed in range(simulations):
            rng = np.random.default_rng([seed, power])
            x, error = make(rng, power)
            draws = Draws(n_resamples=n_resamples, seed=seed, name="table 1", method="permutation")
            studentised += correlation_test(x, error, np.ones(rows, dtype=np.int64), draws)[1].pvalue <= ALPHA
            fairtest += _fairtest(x, error, n_resamples, rng) <= ALPHA
        out[f"{name}: studentised"] = studentised / simulations
        out[f"{name}: FairTest"] = fairtest / simulations
    return out


def _fairtest(x: np.ndarray, error: np.ndarray, n_resamples: int, rng: np.random.Generator) -> float:
    """Permute as FairTest does: both columns are joined, shuffled and cut in two, and r is not studentised."""
    joined = np.concatenate([x, error])
    shuffled = rng.permuted(np.broadcast_to(joined, (n_resamples, joined.size)), axis=1)
    a, b = shuffled[:, : x.size], shuffled[:, x.size :]
    a = a - a.mean(axis=1, keepdims=True)
    b = b - b.mean(axis=1, keepdims=True)
    r = (a * b).sum(axis=1) / np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))
    observed = abs(np.corrcoef(x, error)[0, 1])
    return float((1 + np.sum(np.abs(r) >= observed)) / (n_resamples + 1))


def section_4_2(simulations: int, n_resamples: int) -> dict[str, float]:
    """Count rejections of a true null: false negative rates of two groups of 200 with base rates .8 and .2."""
    hits = dict.fromkeys(
        ("not studentised", "unpooled variance, as printed", "null variance", "exact in the denominator", "mid-p",
         "bootstrap, two-sided", "bootstrap, one-sided"), 0
    )  # fmt: skip
    used = 0
    for seed in range(simulations):
        rng = np.random.default_rng(seed)
        table = np.array(
            [rng.multinomial(200, cells) for cells in ([0.18, 0.02, 0.08, 0.72], [0.72, 0.08, 0.02, 0.18])]
        )
        if (table[:, 2:].sum(axis=1) == 0).any():
            continue
        used += 1
        null = draw_tables(table, np.zeros(4, dtype=np.int64), n_resamples, rng)  # all rows swap groups
        for name, statistic in (("not studentised", _difference), ("unpooled variance, as printed", _unpooled),
                                ("null variance", _pooled)):  # fmt: skip
            hits[name] += _pvalue(statistic(null), float(statistic(table[None])[0])) <= ALPHA
        observed = float(_difference(table[None])[0])
        boot = np.stack([rng.multinomial(200, row / 200, size=n_resamples) for row in table], axis=1)
        spread = _difference(boot) - observed
        hits["bootstrap, two-sided"] += _pvalue(spread, observed) <= ALPHA
        one_sided = (1 + np.sum(spread >= observed - 1e-12)) / (n_resamples + 1)
        hits["bootstrap, one-sided"] += min(one_sided, 1) <= ALPHA
        samples = RateSamples(table, numerator=[2], denominator=[2, 3])
        hits["exact in the denominator"] += samples.test(0, 1, Draws()).pvalue <= ALPHA
        hits["mid-p"] += samples.test(0, 1, Draws(midp=True)).pvalue <= ALPHA
    return {name: count / used for name, count in hits.items()}


def _parts(tables: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    fn, positives = tables[..., 2].astype(float), tables[..., 2:].sum(axis=-1).astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        return fn / positives, positives


def _difference(tables: np.ndarray) -> np.ndarray:
    rate, _ = _parts(tables)
    return rate[:, 0] - rate[:, 1]


def _unpooled(tables: np.ndarray) -> np.ndarray:
    rate, n = _parts(tables)
    return _studentised(tables, (rate * (1 - rate) / n).sum(axis=1))


def _pooled(tables: np.ndarray) -> np.ndarray:
    _, n = _parts(tables)
    p = tables[..., 2].sum(axis=1) / n.sum(axis=1)
    return _studentised(tables, p * (1 - p) * (1 / n).sum(axis=1))


def _studentised(tables: np.ndarray, variance: np.ndarray) -> np.ndarray:
    difference = _difference(tables)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(difference == 0, 0.0, difference / np.sqrt(variance))


def _pvalue(null: np.ndarray, observed: float) -> float:
    extreme = (np.abs(null) >= abs(observed) * (1 - 1e-9)) | np.isnan(null)
    return float((1 + extreme.sum()) / (null.size + 1))


def scored(name: str, seed: int) -> dict[str, Any]:
    """Train the paper's model: logistic regression with an L2 penalty on all features but sex and race."""
    if name == "adult":
        columns = eh.datasets.table("adult")
        outcome = columns["income"] == ">50K"
        numeric = ["age", "education_num", "capital_gain", "capital_loss", "hours_per_week"]
        texts = ["workclass", "education", "marital_status", "occupation", "relationship", "native_country"]
        keep = np.ones(outcome.size, dtype=bool)
    else:
        columns = eh.datasets.table("compas")
        keep = (np.abs(columns["days_b_screening_arrest"].astype(float)) <= 30) & (columns["is_recid"] != -1)
        keep &= (columns["c_charge_degree"] != "O") & (columns["score_text"] != "N/A")
        outcome = columns["two_year_recid"] == 1
        numeric = ["age", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count"]
        texts = ["c_charge_degree", "age_cat"]
    blocks = [np.asarray(columns[c], dtype=float)[keep, None] for c in numeric]
    for c in texts:
        values = np.array([str(v) for v in columns[c][keep]])
        blocks.append((values[:, None] == np.unique(values)).astype(float))
    X, y, sex = np.hstack(blocks), outcome[keep].astype(float), columns["sex"][keep].astype(str)
    order = np.random.default_rng(seed).permutation(y.size)
    train, test = order[: int(0.7 * y.size)], order[int(0.85 * y.size) :]
    centre, scale = X[train].mean(axis=0), X[train].std(axis=0)
    X = (X - centre) / np.where(scale > 0, scale, 1)
    p = fit_logistic(X[train], y[train], l2=1.0).probability(X)
    return {"y": y, "p": p, "sex": sex, "train": train, "test": test}


def thresholds(d: dict[str, Any], rows: np.ndarray, grid: np.ndarray) -> list[dict[str, Any]]:
    """Compare recall and FPR of men and women at each threshold."""
    male = d["sex"][rows] == "Male"
    outcome = d["y"][rows].astype(np.int64)
    out = []
    for tau in grid:
        cell = 2 * outcome + (d["p"][rows] >= tau)
        table = np.stack([np.bincount(cell[m], minlength=4) for m in (male, ~male)])
        point: dict[str, Any] = {"threshold": round(float(tau), 3)}
        for name in ("tpr", "fpr"):
            metric = METRICS[name]
            samples = RateSamples(table, numerator=metric.numerator, denominator=metric.denominator)
            low, high, _ = samples.interval(0, 1, level=0.95, ratio=False, draws=Draws())
            point[name] = {
                "difference": float(samples.estimate[0] - samples.estimate[1]),
                "low": low,
                "high": high,
                "bound": bound(table, metric.denominator, metric),
                "pvalue": samples.test(0, 1, Draws()).pvalue,
            }
        out.append(point)
    return out


def bound(table: np.ndarray, denominator: tuple[int, ...], metric: eh.Metric) -> float:
    """Return the largest difference that 95 % of permutations inside the denominator stay below."""
    strata = np.where(np.isin(np.arange(4), denominator), 0, -1)
    null = draw_tables(table, strata, 999, np.random.default_rng(0))
    return float(np.quantile(np.abs(np.diff(metric(null), axis=1)[:, 0]), 0.95))


def figure_2(name: str, grid: np.ndarray) -> dict[str, Any]:
    """Return the curve over thresholds on the test rows, and the model's AUC there."""
    d = scored(name, seed=0)
    test = d["test"]
    auc = AucSamples(score=d["p"][test], outcome=d["y"][test], codes=np.zeros(test.size, dtype=np.int64), n_groups=1)
    curve = thresholds(d, test, grid)
    return {
        "test_rows": int(test.size),
        "test_auc": float(auc.estimate[0]),
        "rejected": {m: [p["threshold"] for p in curve if p[m]["pvalue"] <= ALPHA] for m in ("tpr", "fpr")},
        "curve": curve,
    }


def figure_3(name: str, sizes: list[int], grid: np.ndarray, repeats: int) -> list[dict[str, Any]]:
    """Return the smallest difference that is shown, by sample size, averaged over samples."""
    d = scored(name, seed=0)
    pool = d["train"] if name == "compas" else d["test"]
    rows = []
    for size in sizes:
        smallest: dict[str, list[float]] = {"tpr": [], "fpr": []}
        for repeat in range(repeats):
            sample = np.random.default_rng([repeat, size]).choice(pool, min(size, pool.size), replace=False)
            curve = thresholds(d, sample, grid)
            for measure, found in smallest.items():
                shown = [abs(p[measure]["difference"]) for p in curve if p[measure]["pvalue"] <= ALPHA]
                found += [min(shown)] if shown else []
        rows.append({"rows": size} | {m: float(np.mean(v)) if v else None for m, v in smallest.items()})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="fewer simulations, nothing written")
    short = parser.parse_args().short
    config = tomllib.loads((HERE / "config.toml").read_text())["short" if short else "full"]
    grid = np.linspace(0, 1, config["thresholds"])
    result: dict[str, Any] = {"config": config}
    result["table_1"] = table_1(2000, config["table_1_simulations"], config["table_1_resamples"])
    result["section_4_2"] = section_4_2(config["section_4_2_simulations"], 1000)
    for name in ("adult", "compas"):
        try:
            result[f"figure_2_{name}"] = figure_2(name, grid)
            result[f"figure_3_{name}"] = figure_3(name, config["sizes"], grid[1:-1], config["repeats"])
        except eh.DataError as error:
            print(f"{name}: {error}")
    text = json.dumps(result, indent=1)
    print(text)
    if not short:
        (HERE / "result.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
