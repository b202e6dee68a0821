"""Table 1: an attribute and an error that are uncorrelated but dependent, tested as Algorithm 1 and FairTest do."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from evenhand.arrays import FloatArray
from evenhand.inference.correlation import studentised_mean
from evenhand.kernels.shared.seeds import stream
from evenhand.report.document import Block
from evenhand.report.figures import bars
from evenhand.reproductions.diciccio2020.rejections import ALPHA, rate_claim
from evenhand.reproductions.paper import Claim, Parts, Result, Settings

#: Law of the attribute, and the power of it that divides the errors.
DESIGNS = {
    "uncorrelated, errors over x squared": ("uniform", 2),
    "uncorrelated, errors over x": ("uniform", 1),
    "dependent, errors over x squared": ("exponential", 2),
}
TESTS = ("Algorithm 1", "FairTest")
_BATCH = 50  # data sets that are shuffled alike, so that they fit into the processor's cache
_PART = 1000  # simulations of one stored part
_PRINTED_SHUFFLES = 1000


def run_table_1(settings: Settings, parts: Parts) -> Result:
    """Return each design's share of rejections by each test."""
    runs = settings["simulations"]
    rates: dict[str, dict[str, float]] = {}
    for design in DESIGNS:
        rejected = np.zeros(len(TESTS))
        for start in range(0, runs, _PART):
            told = {**settings, "design": design, "start": start, "simulations": min(_PART, runs - start)}
            rejected += parts.keep(f"{design}, {start}", told, partial(_part, told))
        rates[design] = dict(zip(TESTS, (rejected / runs).tolist(), strict=True))
    return {"rates": rates}


def _part(told: Settings) -> list[int]:
    """Count the rejections of both tests over one part's simulations."""
    rejected = np.zeros(len(TESTS), dtype=np.int64)
    stop = told["start"] + told["simulations"]
    for start in range(told["start"], stop, _BATCH):
        size = min(_BATCH, stop - start)
        rng = stream(0, f"table 1, {told['design']}", start)
        x, error = simulated(told["design"], told["rows"], size, rng)
        shuffles = told["n_resamples"]
        pvalues = (studentised_pvalues(x, error, shuffles, rng), fairtest_pvalues(x, error, shuffles, rng))
        rejected += [int((p <= ALPHA).sum()) for p in pvalues]
    return [int(count) for count in rejected]


def simulated(design: str, rows: int, size: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Draw data sets as columns: attributes and errors, each of shape (rows, size)."""
    law, power = DESIGNS[design]
    x = rng.uniform(1e-5, 1, (rows, size)) if law == "uniform" else rng.exponential(size=(rows, size)) + 1
    return x, rng.normal(size=(rows, size)) / x**power


def studentised_pvalues(x: FloatArray, error: FloatArray, n_resamples: int, rng: np.random.Generator) -> FloatArray:
    """Test each column pair by the studentised correlation; all data sets of a batch meet the same shuffles."""
    rows = len(x)
    u, v = (_standardised(z) for z in (x, error))
    u_square, v_square = u**2, v**2

    def statistic(order: np.ndarray) -> FloatArray:
        return studentised_mean(_dot(u, v[order]) / rows, _dot(u_square, v_square[order]) / rows, rows)

    observed = np.abs(statistic(np.arange(rows))) * (1 - 1e-12)
    extreme = sum((np.abs(statistic(rng.permutation(rows))) >= observed).astype(int) for _ in range(n_resamples))
    return np.asarray((1 + extreme) / (n_resamples + 1))


def fairtest_pvalues(x: FloatArray, error: FloatArray, n_resamples: int, rng: np.random.Generator) -> FloatArray:
    """Test as FairTest does: both columns are joined, shuffled and cut in two, and r is not studentised."""
    rows = len(x)
    joined = np.concatenate([x, error])
    joined /= joined.std(axis=0)
    total, square = joined.sum(axis=0), _dot(joined, joined)

    def correlation(order: np.ndarray) -> FloatArray:
        a, b = joined[order[:rows]], joined[order[rows:]]
        first, first_square = a.sum(axis=0), _dot(a, a)
        second, second_square = total - first, square - first_square
        spread = (first_square - first**2 / rows) * (second_square - second**2 / rows)
        return np.asarray((_dot(a, b) - first * second / rows) / np.sqrt(spread))

    observed = np.abs(correlation(np.arange(2 * rows))) * (1 - 1e-12)
    extreme = sum((np.abs(correlation(rng.permutation(2 * rows))) >= observed).astype(int) for _ in range(n_resamples))
    return np.asarray((1 + extreme) / (n_resamples + 1))


def _dot(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("is,is->s", a, b))


def _standardised(z: FloatArray) -> FloatArray:
    return np.asarray((z - z.mean(axis=0)) / z.std(axis=0))


def claims_of_table_1(result: Result, settings: Settings) -> Sequence[Claim]:
    """Set each cell beside the printed one."""
    rates, runs = result["rates"], settings["simulations"]
    few = settings["n_resamples"] < _PRINTED_SHUFFLES - 1
    fewer = f" Ours has {settings['n_resamples']} permutations, which reject less often than 1,000." if few else ""
    square, plain, dependent = (rates[design] for design in DESIGNS)
    slip = "The printed row is nearer to errors divided by x than to errors divided by x squared, as the text says."
    return [
        rate_claim("Uncorrelated, Algorithm 1, errors over x squared", 0.0428, square["Algorithm 1"], runs, slip),
        rate_claim("Uncorrelated, FairTest, errors over x squared", 0.7508, square["FairTest"], runs, slip),
        rate_claim("Uncorrelated, FairTest, errors over x", 0.7508, plain["FairTest"], runs, slip + fewer),
        rate_claim("Uncorrelated, Algorithm 1, errors over x", 0.0428, plain["Algorithm 1"], runs, slip),
        rate_claim("Dependent, Algorithm 1", 0.0501, dependent["Algorithm 1"], runs),
        rate_claim(
            "Dependent, FairTest",
            0.0099,
            dependent["FairTest"],
            runs,
            "FairTest shuffles both columns joined together; its column is computed the same way.",
        ),
    ]


def figures_of_table_1(result: Result) -> Sequence[Block]:
    """Draw the rejection rates."""
    rows = [
        {"label": f"{design}: {test}", "value": rate, "series": test}
        for design, rates in result["rates"].items()
        for test, rate in rates.items()
    ]
    caption = (
        "Share of simulated data sets in which the test rejects at .05. In the uncorrelated designs no test should."
    )
    return [bars("Table 1 as bars", caption, rows, value="rejection probability", label="Design and test")]
