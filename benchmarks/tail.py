"""Tail audit against pyextremes: fit, profile intervals and 200 bootstraps at n = 20,000; and what flipping costs.

    pip install pyextremes      (it pulls emcee and matplotlib; an environment of its own is best)
    python benchmarks/tail.py   (without pyextremes only our times are printed)

Both sides get the same sample and threshold, one process, one thread. pyextremes has no profile intervals: its
bootstrap gives both. Ours makes the fit, the profile intervals of the shape and of six return levels, and then the same
number of bootstrap refits.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

N, K, DRAWS = 20_000, 200, 200
HORIZONS = np.array([10.0, 1e2, 1e3, 1e4, 1e5, 1e6])


def best(call: Callable[[], Any], times: int = 5) -> float:
    """Return the shortest of several processor times, in seconds."""
    found = []
    for _ in range(times):
        # Processor time, that of child processes included (pyextremes starts some): honest on a busy machine.
        began = sum(os.times()[:4])
        call()
        found.append(sum(os.times()[:4]) - began)
    return min(found)


def ours(values: np.ndarray) -> Callable[[], Any]:
    from evenhand.inference.tails import levels_of
    from evenhand.kernels.pareto_tail import fit_tail, tail_intervals

    def call() -> Any:
        rng = np.random.default_rng(0)
        tail = fit_tail(values, K)
        found = tail_intervals(tail, HORIZONS, level=0.95, rng=rng)
        tops = np.sort(tail.values[: 3 * K][rng.integers(3 * K, size=(DRAWS, 3 * K))], axis=1)[:, ::-1][:, : K + 1]
        return tail, found, levels_of(np.ascontiguousarray(tops), N, 1e4, math.inf)

    return call


def theirs(values: np.ndarray) -> Callable[[], Any]:
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


def flipping(rows: int = 100_000) -> dict[str, dict[str, float]]:
    """Compare counterfactual discrimination, and the whole audit, with two bare prediction passes."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    import evenhand as eh
    from evenhand.audits.tail import _prepare, _statistic, audit_tail
    from evenhand.models.counterfactual import flip_values

    rng = np.random.default_rng(1)
    columns = {f"x{j}": rng.normal(size=rows) for j in range(20)} | {"sex": rng.integers(2, size=rows)}
    X = np.column_stack(list(columns.values()))
    y = rng.random(5000) < 1 / (1 + np.exp(-X[:5000, 0] - X[:5000, -1]))
    data = eh.AuditData.from_arrays(score=np.full(rows, 0.5), groups={"sex": columns["sex"]}, features=columns)
    out = {}
    for name, model in (
        ("logistic", LogisticRegression()),
        ("forest of 30", RandomForestClassifier(30, random_state=0)),
    ):
        model.fit(X[:5000], y)
        scorer, options, (sex,) = _prepare(
            data,
            model,
            "sex",
            None,
            1000,
            None,
            "high",
            None,
            None,
            None,
            0.05,
            None,
            "holm",
            False,
            "none",
            60.0,
            99,
            0,
        )
        change = _statistic(scorer, sex, flip_values(data.features, "sex", sex.labels, sex.codes, None), options)
        parts = [{n: c[sex.codes == g] for n, c in data.features.items()} for g in (0, 1)]
        out[name] = {
            "two bare passes": best(lambda m=model: [m.predict_proba(X), m.predict_proba(X)], 3),
            "counterfactual discrimination": best(lambda c=change, p=parts: [c(p[g], g, 1 - g) for g in (0, 1)], 3),
            "whole audit, 999 permutations": best(lambda m=model: audit_tail(data, model=m, n_resamples=999), 2),
        }
    return out


def main() -> None:
    """Print the times and their ratio."""
    values = np.random.default_rng(0).exponential(size=N)
    call = ours(values)
    many = best(lambda: [call() for _ in range(30)], 3) / 30  # the clock ticks in hundredths
    result: dict[str, Any] = {"n": N, "excesses": K, "bootstraps": DRAWS, "ours": many}
    try:
        result["pyextremes"] = best(theirs(values), 2)
        result["ratio"] = result["pyextremes"] / result["ours"]
    except ImportError:
        print("pyextremes is not installed: only our times follow")
    try:
        result["flipping 100,000 rows"] = flipping()
    except ImportError:
        print("scikit-learn is not installed: flipping is left out")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
