"""What a comparison of two models costs, as a multiple of one group audit of the same rows.

    python benchmarks/compare.py [--rows 1000000]

Both get arrays in memory: a million people in two groups, two columns of decisions, default metrics. The fastest of
five calls counts. "From arrays" includes checking and coding the arrays, which a comparison does for one column more.
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

import numpy as np

import evenhand as eh


def seconds(work: Callable[[], Any]) -> float:
    """Return the seconds of the fastest of five calls."""
    best = np.inf
    for _ in range(5):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return float(best)


def main() -> None:
    """Measure and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    n = parser.parse_args().rows
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 2, n)
    y = rng.integers(0, 2, n)
    old = (rng.random(n) < 0.4 + 0.1 * groups).astype(float)
    new = np.where(rng.random(n) < 0.05, 1 - old, old)
    data = eh.AuditData.from_arrays(outcome=y, decision=old, groups={"g": groups})
    audit = seconds(lambda: eh.audit_group(data, rng=0))
    compare = seconds(lambda: eh.compare(data, old, new))
    columns = {"outcome": y, "groups": {"g": groups}}
    whole_audit = seconds(lambda: eh.audit_group(eh.AuditData.from_arrays(decision=old, **columns), rng=0))
    whole = seconds(lambda: eh.compare(eh.AuditData.from_arrays(decision=old, **columns), old, new))
    rows = [
        {"what": "data that are read", "ours": compare, "theirs": audit, "ratio": compare / audit},
        {"what": "from arrays", "ours": whole, "theirs": whole_audit, "ratio": whole / whole_audit},
    ]
    result = {"rows": n, "lines": rows, "python": platform.python_version()}
    print(result)
    if n == 1_000_000:
        Path(__file__).with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
