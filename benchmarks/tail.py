"""Tail audit against pyextremes, and what counterfactual discrimination costs beside two prediction passes.

    python -m venv V && V/bin/pip install -e . pyextremes scikit-learn      (pyextremes wants an older pandas)
    V/bin/python benchmarks/tail.py

Both sides get the same 20,000 values and threshold, and are timed by the processor time of the process and those that
it starts. pyextremes fits, then bootstraps the return values of three horizons 200 times, in processes of its own; it
has no profile intervals. Ours fits, makes profile intervals of the shape, the end point and six return levels, and then
refits 200 bootstrap samples of all 20,000 values, on one core.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import evenhand as eh
from evenhand.kernels.extremes.pareto import fit, quantile
from evenhand.kernels.extremes.pareto_tail import fit_tail, tail_intervals
from evenhand.models import adapt
from evenhand.models.counterfactual import flip_values, recorded_as

HERE = Path(__file__).parent
N, K, DRAWS = 20_000, 200, 200
HORIZONS = np.array([10.0, 1e2, 1e3, 1e4, 1e5, 1e6])


def spent() -> float:
    """Return the processor time of this process and of those that it started and that have ended."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def seconds(work: Callable[[], Any], *, repeat: int, least: float = 0.5) -> float:
    """Return the processor time of one call: the cheapest of several batches, each at least `least` long."""
    began = spent()
    work()
    calls = max(1, math.ceil(least / (spent() - began)))
    best = math.inf
    for _ in range(repeat):
        began = spent()
        for _ in range(calls):
            work()
        best = min(best, (spent() - began) / calls)
    return best


def ours(values: np.ndarray) -> Any:
    """Fit, profile intervals, and refits of bootstrap samples."""
    rng = np.random.default_rng(0)
    tail = fit_tail(values, K)
    found = tail_intervals(tail, HORIZONS, level=0.95, rng=rng)
    # Of a bootstrap sample only the K + 1 largest matter. They come from the 2 K largest values, of which a sample of N
    # draws about 2 K; fewer than K + 1 come less than once in 1e20.
    drawn = rng.binomial(N, 2 * K / N, size=DRAWS)
    at = rng.integers(2 * K, size=(DRAWS, int(drawn.max())))
    at = np.where(np.arange(at.shape[1]) < drawn[:, None], at, 2 * K)
    tops = tail.values.at(np.sort(at, axis=1)[:, : K + 1])
    scale, shape, _ = fit((tops[:, :-1] - tops[:, -1:])[:, ::-1])
    return tail, found, tops[:, -1] + quantile(N / (1e4 * K), scale, shape)


def theirs(values: np.ndarray) -> Callable[[], Any]:
    """Return the same task for pyextremes: its extremes, its fit, its bootstrap."""
    import pandas as pd
    from pyextremes import EVA

    series = pd.Series(values, index=pd.date_range("2000-01-01", periods=N, freq="h"))
    threshold = float(np.sort(values)[-K - 1])

    def call() -> Any:
        eva = EVA(series)
        eva.get_extremes("POT", threshold=threshold, r="0h")
        eva.fit_model("MLE", distribution="genpareto")
        return eva.get_return_value([0.1, 1.0, 10.0], alpha=0.95, n_samples=DRAWS)

    return call


def against_pyextremes() -> dict[str, Any]:
    values = np.random.default_rng(0).exponential(size=N)
    mine, other = seconds(lambda: ours(values), repeat=9), seconds(theirs(values), repeat=3)
    tail = fit_tail(values, K)
    from pyextremes import __version__

    return {
        "what": f"fit, intervals and {DRAWS} bootstraps of {K} excesses among {N:,} values",
        "peer": f"pyextremes {__version__}",
        "ours": mine,
        "theirs": other,
        "asked": 10,
        "ratio": other / mine,
        "reached": other / mine >= 10,
        "our_shape": tail.shape,
    }


def flipping(rows: int = 100_000) -> list[dict[str, Any]]:
    """Compare counterfactual discrimination, and the whole audit, with two bare prediction passes."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(1)
    columns = {f"x{j}": rng.normal(size=rows) for j in range(20)} | {"sex": rng.integers(2, size=rows)}
    X = np.column_stack(list(columns.values()))
    y = rng.random(5000) < 1 / (1 + np.exp(-X[:5000, 0] - X[:5000, -1]))
    data = eh.AuditData.from_arrays(score=np.full(rows, 0.5), groups={"sex": columns["sex"]}, features=columns)
    (sex,) = data.attributes
    values = flip_values(data.features, "sex", sex.labels, sex.codes, None)
    parts = [{n: c[sex.codes == g] for n, c in data.features.items()} for g in (0, 1)]
    out = []
    for name, model in (
        ("logistic regression", LogisticRegression()),
        ("forest of 30 trees", RandomForestClassifier(30, random_state=0)),
    ):
        model.fit(X[:5000], y)
        scorer = adapt(model, data.features)

        def discrimination(scorer: Any = scorer) -> Any:
            return [scorer.change(p, recorded_as(p, sex.labels[1 - g], 1 - g, values)) for g, p in enumerate(parts)]

        passes = seconds(lambda m=model: [m.predict_proba(X), m.predict_proba(X)], repeat=5)
        for what, work, limit in (
            ("counterfactual discrimination", discrimination, 1.25),
            ("whole audit",
             lambda m=model: eh.audit_tail(data, model=m, generator="none", rng=0), None),
        ):  # fmt: skip
            spent = seconds(work, repeat=5)
            row = {
                "what": f"{what}, {name}, {rows:,} rows of 21 columns", "peer": "two bare prediction passes",
                "ours": spent, "theirs": passes, "ratio": spent / passes,
            }  # fmt: skip
            out.append(row | ({} if limit is None else {"at_most": limit, "reached": spent / passes <= limit}))
    return out


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=HERE / "tail.json")
    arguments = parser.parse_args()
    result = {
        "machine": {"cores": os.cpu_count(), "python": platform.python_version(), "numpy": np.__version__},
        "rows": [against_pyextremes(), *flipping()],
    }
    text = json.dumps(result, indent=1)
    print(text)
    arguments.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
