"""The scan beside tools that look for subgroups: false finds, what is found at equal false alarms, and speed.

    pip install divexplorer==0.2.6 mcgrad==0.1.5 sliceline==0.3.0 pysubgroup==0.9.0
    python benchmarks/scan.py [--part false|found|speed|growth|engine]     # twenty minutes; writes benchmarks/scan.json

All tools get the same people in the same run: a decision that is wrong or not, and attributes. "False" counts what each
reports on people whose errors were shuffled. For "found" a tool's best score on shuffled people, 40 times, gives the
bar that it passes in 5 of 100 cases; a planted subgroup is found when the best score passes the bar and the reported
subgroup and the planted one have more than half of their people in common. The scan needs no such bar: it has its own.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd

import evenhand as eh

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "calibration"))

SUPPORT = 0.004  # of all people, the smallest subgroup for tools that ask for one
NULLS, PLANTED = 40, 10
LEVELS = (2, 3, 4, 2, 3, 5)
ROWS = 12_000


class Best(NamedTuple):
    """What a tool says: how many subgroups it reports, its best score, and who belongs to its best subgroup."""

    reported: int
    score: float
    people: np.ndarray


def ours(frame: pd.DataFrame, wrong: np.ndarray, seed: int) -> Best:
    """Search with the scan, as it is by default."""
    groups = {name: frame[name].to_numpy() for name in frame}
    result = eh.audit_scan(eh.AuditData.from_arrays(decision=wrong, groups=groups), rng=seed, n_resamples=999)
    shown = [f for f in result if f.verdict == "disparity"]
    best = min(result, key=lambda f: (f.pvalue_adjusted, f.pvalue))
    return Best(len(shown), -best.pvalue_adjusted, members(frame, best.groups[0].split(" & ")))


def members(frame: pd.DataFrame, conditions: list[str]) -> np.ndarray:
    """Return who meets all conditions of the form name=value."""
    inside = np.ones(len(frame), dtype=bool)
    for condition in conditions:
        name, _, value = condition.partition("=")
        inside &= frame[name].to_numpy().astype(str) == value
    return inside


def divexplorer(frame: pd.DataFrame, wrong: np.ndarray, _: int) -> Best:
    """Search with DivExplorer; what it marks with |t| above 1.96 counts as reported."""
    from divexplorer import DivergenceExplorer

    table = frame.assign(wrong=wrong)
    found = DivergenceExplorer(table).get_pattern_divergence(
        min_support=SUPPORT, boolean_outcomes=["wrong"], attributes=list(frame)
    )
    found = found[found["length"].between(1, 3)]
    t = found["wrong_t"].abs().to_numpy()
    place = int(np.nanargmax(t))
    return Best(int((t > 1.96).sum()), float(t[place]), members(frame, [str(i) for i in found["itemset"].iloc[place]]))


def mcgrad(frame: pd.DataFrame, wrong: np.ndarray, _: int) -> Best:
    """Search with mcgrad: errors against their overall rate, its p-value of the worst segment at .05."""
    from mcgrad.metrics import MulticalibrationError

    table = frame.assign(wrong=wrong, rate=float(wrong.mean()))
    found = MulticalibrationError(
        table, "wrong", "rate", categorical_segment_columns=list(frame), max_depth=3, max_values_per_segment_feature=5
    )
    p = float(found.mce_pvalue)
    return Best(int(p <= 0.05), float(found.mce_sigma), np.zeros(len(frame), dtype=bool))


def sliceline(frame: pd.DataFrame, wrong: np.ndarray, _: int) -> Best:
    """Search with sliceline: the ten slices it ranks highest."""
    from sliceline.slicefinder import Slicefinder

    finder = Slicefinder(alpha=0.99, k=10, max_l=3, min_sup=int(SUPPORT * len(frame)), verbose=False)
    finder.fit(frame.astype(str), wrong.astype(float))
    if not len(finder.top_slices_):
        return Best(0, 0.0, np.zeros(len(frame), dtype=bool))
    scores = [one["slice_score"] for one in finder.top_slices_statistics_]
    first = [f"{n}={v}" for n, v in zip(frame, finder.top_slices_[0], strict=True) if v is not None]
    return Best(int(np.sum(np.array(scores) > 0)), float(scores[0]), members(frame, first))


def pysubgroup(frame: pd.DataFrame, wrong: np.ndarray, _: int) -> Best:
    """Search with pysubgroup: the ten subgroups of the highest weighted relative accuracy, in either direction."""
    import pysubgroup as ps

    table = frame.astype(str).assign(wrong=wrong.astype(bool))
    both = []
    for value in (True, False):
        target = ps.BinaryTarget("wrong", value)
        space = ps.create_selectors(table, ignore=["wrong"])
        task = ps.SubgroupDiscoveryTask(
            table,
            target,
            space,
            result_set_size=10,
            depth=3,
            qf=ps.StandardQF(0.5),  # like a t-value
        )
        found = ps.SimpleDFS().execute(task).to_dataframe()
        both.append(found[found["quality"] > 0])
    joined = pd.concat(both).sort_values("quality", ascending=False)
    rule = joined["subgroup"].iloc[0]
    names = [str(part).replace("'", "").replace("==", "=") for part in rule.selectors]
    return Best(len(joined), float(joined["quality"].iloc[0]), members(frame, names))


TOOLS: dict[str, Callable[[pd.DataFrame, np.ndarray, int], Best]] = {
    "evenhand": ours,
    "DivExplorer": divexplorer,
    "mcgrad": mcgrad,
    "sliceline": sliceline,
    "pysubgroup": pysubgroup,
}


def compas_errors() -> tuple[pd.DataFrame, np.ndarray]:
    """Return COMPAS: people who did not offend again, and whether they were called high risk."""
    import scan

    sample = scan.compas()
    about = sample.outcome == 0
    frame = pd.DataFrame({name: values[about] for name, values in sample.attributes.items()})
    return frame, sample.decision[about]


def random_people(rng: np.random.Generator, rows: int = ROWS) -> pd.DataFrame:
    """Draw people with six attributes of unequal shares."""
    columns = {}
    for j, k in enumerate(LEVELS):
        columns[f"a{j}"] = np.char.add("v", rng.choice(k, rows, p=np.arange(k, 0, -1) / (k * (k + 1) / 2)).astype(str))
    return pd.DataFrame(columns)


def false_finds(runs: int = 20) -> dict[str, Any]:
    """Count what each tool reports on COMPAS with shuffled errors."""
    frame, wrong = compas_errors()
    rows: dict[str, Any] = {}
    for name, tool in TOOLS.items():
        start = time.process_time()
        reported = [tool(frame, np.random.default_rng(i).permutation(wrong), i).reported for i in range(runs)]
        rows[name] = {
            "runs": runs,
            "reported": float(np.mean(reported)),
            "runs_with_any": int(np.sum(np.array(reported) > 0)),
            "seconds": (time.process_time() - start) / runs,
        }
    return rows


def planted(rng: np.random.Generator, depth: int, size: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Draw people of whom one subgroup of about this size has a higher error rate."""
    frame = random_people(rng)
    chosen = rng.choice(6, depth, replace=False)
    values = [f"v{rng.integers(LEVELS[j])}" for j in chosen]
    inside = members(frame, [f"a{j}={v}" for j, v in zip(chosen, values, strict=True)])
    # People outside are dropped or drawn again until the subgroup has its size among the same number of rows.
    own, others = np.flatnonzero(inside), np.flatnonzero(~inside)
    own = rng.choice(own, size, replace=size > own.size)
    rows = np.concatenate([own, rng.choice(others, ROWS - size, replace=True)])
    people = np.arange(ROWS) < size
    # An effect of five standard errors: most tools see it sometimes.
    gap = 5.0 * np.sqrt(0.3 * 0.7 * (1 / size + 1 / (ROWS - size)))
    wrong = rng.random(ROWS) < np.where(people, min(0.3 + gap, 0.98), 0.3)
    return frame.iloc[rows].reset_index(drop=True), wrong.astype(int), people


def found() -> dict[str, Any]:
    """Plant subgroups of several depths and sizes, and count how often each tool finds them at equal false alarms."""
    bars: dict[str, float] = {}
    rows: dict[str, Any] = {}
    for name, tool in TOOLS.items():
        if name == "evenhand":
            bars[name] = -0.05
            continue
        scores = []
        for i in range(NULLS):
            rng = np.random.default_rng([1, i])
            scores.append(tool(random_people(rng), (rng.random(ROWS) < 0.3).astype(int), i).score)
        bars[name] = float(np.quantile(scores, 0.95))
    for depth, size in itertools.product((1, 2, 3), (50, 500, 5000)):
        counts = dict.fromkeys(TOOLS, 0)
        for i in range(PLANTED):
            frame, wrong, people = planted(np.random.default_rng([2, depth, size, i]), depth, size)
            for name, tool in TOOLS.items():
                best = tool(frame, wrong, i)
                common = (best.people & people).sum() / max((best.people | people).sum(), 1)
                # mcgrad does not say which segment it means: passing the bar is enough.
                counts[name] += int(best.score >= bars[name] and (common > 0.5 or name == "mcgrad"))
        rows[f"{depth} conditions, {size} people"] = {"runs": PLANTED, "found": counts}
        print(depth, size, counts, flush=True)
    return {"rows": rows}


def speed() -> dict[str, Any]:
    """Time all subgroups of COMPAS with 2,000 permutations, and DivExplorer's enumeration of the same."""
    from divexplorer import DivergenceExplorer

    frame, wrong = compas_errors()
    groups = {name: frame[name].to_numpy() for name in frame}
    data = eh.AuditData.from_arrays(decision=wrong, groups=groups)
    least = int(0.005 * len(frame))
    asked = {"depth": 6, "smallest": least, "n_resamples": 2000, "rng": 0, "show": 1}
    own = seconds(lambda: eh.audit_scan(data, **asked))
    evidence = eh.audit_scan(data, **asked).evidence[0]
    table = frame.assign(wrong=wrong)
    other = seconds(
        lambda: DivergenceExplorer(table).get_pattern_divergence(
            min_support=least / len(frame), boolean_outcomes=["wrong"], attributes=list(frame)
        )
    )
    patterns = DivergenceExplorer(table).get_pattern_divergence(
        min_support=least / len(frame), boolean_outcomes=["wrong"], attributes=list(frame)
    )
    return {
        "rows": len(frame),
        "subgroups": evidence.considered,
        "permutations": 2000,
        "seconds": own,
        "divexplorer_patterns": len(patterns) - 1,
        "divexplorer_seconds": other,
    }


def seconds(work: Callable[[], object], repeat: int = 5) -> float:
    """Return the fastest of a few runs in seconds of the processor, after one that warms caches."""
    work()
    best = float("inf")
    for _ in range(repeat):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def growth() -> list[dict[str, Any]]:
    """Time searches of 20,000 people with more attributes and more conditions."""
    rows = []
    for attributes, depth in [
        (4, 2),
        (6, 2),
        (6, 3),
        (8, 2),
        (8, 3),
        (8, 4),
        (12, 2),
        (12, 3),
        (16, 2),
        (16, 3),
        (20, 3),
    ]:
        rng = np.random.default_rng(0)
        groups = {f"a{j}": rng.integers(0, 2 + j % 4, 20_000).astype(str) for j in range(attributes)}
        data = eh.AuditData.from_arrays(decision=rng.random(20_000) < 0.3, groups=groups)
        start = time.process_time()
        evidence = eh.audit_scan(data, depth=depth, rng=0, show=1).evidence[0]
        rows.append(
            {
                "attributes": attributes,
                "depth": depth,
                "described": evidence.described,
                "tested": evidence.tested,
                "seconds": time.process_time() - start,
            }
        )
        print(rows[-1], flush=True)
    return rows


def engine(rows: int = 10_000_000) -> dict[str, Any]:
    """Read and search many rows of DuckDB, and time the engine's own query of all these subgroups."""
    import duckdb

    levels = (2, 4, 3, 5, 2, 3, 4, 3)
    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    connection.execute("SELECT setseed(0.5)")
    drawn = ", ".join(f"CAST(floor(random() * {k}) AS INT) AS a{j}" for j, k in enumerate(levels))
    connection.execute(f"CREATE TABLE people AS SELECT {drawn}, CAST(random() < 0.3 AS INT) AS d FROM range({rows})")
    names = [f"a{j}" for j in range(len(levels))]
    sets = [c for k in (1, 2, 3) for c in itertools.combinations(names, k)]
    listed = ", ".join("(" + ", ".join(c) + ")" for c in sets)
    query = f"SELECT {', '.join(names)}, count(*), sum(d) FROM people GROUP BY GROUPING SETS ({listed})"

    def wall(work: Callable[[], object]) -> float:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    own_query = min(wall(lambda: connection.execute(query).fetchnumpy()) for _ in range(3))
    asked = {"decision": "d", "groups": names}
    reading = min(wall(lambda: eh.read(connection.table("people"), **asked)) for _ in range(3))
    data = eh.read(connection.table("people"), **asked)
    searching = min(wall(lambda: eh.audit_scan(data, rng=0, show=1)) for _ in range(3))
    evidence = eh.audit_scan(data, rng=0, show=1).evidence[0]
    return {
        "rows": rows,
        "attributes": len(levels),
        "subgroups": evidence.considered,
        "grouping_sets_seconds": own_query,
        "read_seconds": reading,
        "search_seconds": searching,
        "ratio": (reading + searching) / own_query,
    }


PARTS = {"false": false_finds, "found": found, "speed": speed, "growth": growth, "engine": engine}


def main() -> None:
    """Run the parts that are asked for and store them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", action="append", choices=list(PARTS))
    parser.add_argument("--out", type=Path, default=HERE / "scan.json")
    words = parser.parse_args()
    for part in words.part or PARTS:
        result = PARTS[part]()
        kept = json.loads(words.out.read_text()) if words.out.exists() else {}
        words.out.write_text(json.dumps({**kept, part: result}, indent=1) + "\n")
        print(part, json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
