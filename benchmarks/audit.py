"""The whole default audit of a file of predictions: seconds and memory from 1e4 to 1e7 rows.

    python benchmarks/audit.py [--quick]

Each size is one fresh process from the file to the last file written, with Python's start, with and without the
report. The peer is a bare ``pandas.read_csv`` of the same file in a fresh process: what merely looking at the rows
costs. ``--quick`` stops at 1e5 rows and stores nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
ROLES = "outcome='y', decision='d', score='p', groups=['sex', 'race']"
BARE = "import sys, pandas; pandas.read_csv(sys.argv[1])"
NUMBERS = f"import sys, evenhand as eh; eh.audit(eh.read(sys.argv[1], {ROLES}), rng=0).to_json(sys.argv[2])"


def write_file(path: Path, rows: int) -> None:
    """Write decisions with scores and two attributes, one of two and one of five groups."""
    rng = np.random.default_rng(0)
    sex, race = rng.integers(2, size=rows), rng.integers(5, size=rows)
    score = np.clip(rng.beta(2, 3, rows) + 0.03 * sex, 0, 1).round(4)
    outcome = (rng.random(rows) < score).astype(int)
    with path.open("w") as file:
        file.write("sex,race,p,y,d\n")
        for start in range(0, rows, 100_000):
            part = slice(start, start + 100_000)
            file.writelines(
                f"{'FM'[s]},{'abcde'[r]},{p:.4f},{y},{int(p >= 0.5)}\n"
                for s, r, p, y in zip(sex[part], race[part], score[part], outcome[part], strict=True)
            )


def cost(command: list[str]) -> dict[str, float]:
    """Run a command and return its wall and processor seconds and its largest memory in MB."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{command[:4]} left with {process.returncode}")
    return {
        "seconds": round(time.perf_counter() - start, 3),
        "processor": round(usage.ru_utime + usage.ru_stime, 3),
        "megabytes": round(usage.ru_maxrss / 1024, 1),
    }


def measure(rows: int, folder: Path) -> dict[str, object]:
    file, out = folder / "decisions.csv", folder / "out"
    write_file(file, rows)
    words = ["--outcome", "y", "--decision", "d", "--score", "p", "--group", "sex", "--group", "race", "--quiet"]
    python = sys.executable
    row: dict[str, object] = {
        "rows": rows,
        "report": cost([python, "-m", "evenhand", "audit", str(file), *words, "--out", str(out)]),
        "numbers": cost([python, "-c", NUMBERS, str(file), str(folder / "findings.json")]),
        "bare_read": cost([python, "-c", BARE, str(file)]),
    }
    print(row, flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    with tempfile.TemporaryDirectory() as folder:
        measure(SIZES[0], Path(folder))  # warms the disk cache
        rows = [measure(n, Path(folder)) for n in (SIZES[:2] if quick else SIZES)]
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "numpy": np.__version__}
    if not quick:
        (HERE / "audit.json").write_text(json.dumps({"machine": machine, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
