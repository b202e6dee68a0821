"""What each mitigator costs: the seconds of its fit, as a multiple of the plain learner's on the same rows.

    pip install -e ".[mitigation]" && python benchmarks/mitigation.py [--methods reweighing maat ...] [--rows 10000]

Every method is fitted with its default settings to Adult: 48,842 rows, nine features, sex as the attribute, not among
the features. The peer is the plain learner, the logistic regression that the methods take by default, fitted before
and after each method; the fastest of these fits counts. A ratio of 10 means that the method takes ten times as long.
``--rows`` takes that many random rows and stores nothing; neither does ``--methods``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import sklearn

import evenhand as eh
from evenhand import mitigation
from evenhand.mitigation.estimator import default_learner

HERE = Path(__file__).parent
LABEL, GROUP = "income", "sex"
# A fit that takes longer than this is not repeated.
LONG = 20.0


def adult(rows: int | None) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Return the features of the audited model, whether a person earns more than 50,000, and the sex."""
    table = pd.DataFrame(dict(eh.datasets.adult_table()))
    if rows is not None:
        table = table.sample(rows, random_state=0)
    features = list(eh.datasets.load("adult").features)
    return table[features], table[LABEL].to_numpy(), table[GROUP].to_numpy()


def seconds(work: Callable[[], Any], repeat: int = 3) -> float:
    """Return the seconds of the fastest call; a long one is made once."""
    best = np.inf
    for _ in range(repeat):
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
        if best > LONG:
            break
    return float(best)


def measure(words: list[str], rows: int | None) -> list[dict[str, Any]]:
    """Fit each method, with the plain learner around it."""
    X, y, group = adult(rows)
    plain = default_learner(X)
    out = []
    for word in words:
        method = getattr(mitigation, mitigation.METHODS[word])()
        before = seconds(lambda: plain.fit(X, y))
        ours = seconds(lambda method=method: method.fit(X, y, sensitive_features=group))
        theirs = min(before, seconds(lambda: plain.fit(X, y)))
        out.append(
            {
                "what": f"fit of {word}, {len(X):,} rows",
                "peer": "plain logistic regression",
                "ours": ours,
                "theirs": theirs,
                "ratio": ours / theirs,
                "stated": method.about.cost,
                "settings_in_grid": len(method.about.grid),
            }
        )
        print(json.dumps(out[-1]), flush=True)
    return out


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", choices=tuple(mitigation.METHODS))
    parser.add_argument("--rows", type=int)
    parser.add_argument("--out", type=Path, default=HERE / "mitigation.json")
    asked = parser.parse_args()
    rows = measure(asked.methods or list(mitigation.METHODS), asked.rows)
    versions = {"python": platform.python_version(), "numpy": np.__version__, "sklearn": sklearn.__version__}
    result = {"machine": {"cores": os.cpu_count(), **versions}, "rows": rows}
    if asked.methods is None and asked.rows is None:
        asked.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
