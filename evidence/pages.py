"""Write the evidence pages of the docs from stored results.

    python evidence/pages.py

Reads ``calibration/*.json``, ``benchmarks/*.json`` and the results that travel with the package; writes
``evidence/*.md``. A test checks that the pages are up to date.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from evenhand import METRICS, mitigation
from evenhand.audits.registry import AUDITS
from evenhand.audits.scan.evidence import ScanEvidence
from evenhand.reproductions import KEYS, load_paper, stored_results
from evenhand.reproductions.page import claims_table
from evenhand.reproductions.paper import REACHED
from evenhand.results import AuditResult, shown_p

ROOT = Path(__file__).resolve().parent.parent
LEVELS = {"rejected": 0.05, "rejected_01": 0.01, "rejected_001": 0.001}  # counts in group.json and their levels
ALPHAS = (0.05, 0.01, 0.001)
STAR = "A star marks a coverage below, or a size above, what a right procedure shows in 99 % of runs."


def table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Lay rows out as a Markdown table."""
    head = list(head)
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    lines += ["| " + " | ".join(str(c) for c in row) + " |" for row in rows]
    return "\n".join(lines)


def most(tested: int, alpha: float = 0.05) -> float:
    """Return the number of errors that a right procedure exceeds in 1 % of runs."""
    return float(stats.binom.isf(0.01, tested, alpha))


def successes(design: dict[str, Any]) -> float:
    """Return the successes expected in the second group of a design for a rate; all rows for other metrics."""
    kind = METRICS[design["metric"]]
    rows = design["sizes"][1]
    if kind.kind != "rate":
        return float(rows)
    inside = rows if len(kind.denominator) == 4 else rows * design["base"][1]
    level = design["level"] / (2 - design["level"]) if kind.transform == "f1" else design["level"]
    return float(inside * level)


def calibration() -> str:
    """Summarise the group audit's calibration: one row per metric, then each design above nominal."""
    path = ROOT / "calibration" / "group.json"
    if not path.exists():
        return "No stored results yet.\n"
    stored = json.loads(path.read_text())
    designs = [d for d in stored["size"] if d["tested"] >= 100]
    by_metric: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for d in designs:
        by_metric[d["metric"] + (" (weights)" if d["kind"] == "weights" else "")].append(d)
    rows = []
    for metric, group in by_metric.items():
        at = [[d[key] / d["tested"] for d in group] for key in LEVELS]
        covers = [d["covered"] / d["intervals"] for d in group if d["intervals"] >= 20]
        ratios = [d["ratio_covered"] / d["ratios"] for d in group if d["ratios"] >= 20 and successes(d) >= 5]
        rows.append(
            (f"`{metric}`" if " " not in metric else metric, len(group),
             *(f"{_mean(sizes):.{n}f}, {max(sizes):.{n}f}" for sizes, n in zip(at, (3, 4, 4), strict=True)),
             f"{_mean(covers):.3f}" if covers else "–", f"{_mean(ratios):.3f}" if ratios else "–")
        )  # fmt: skip
    second = {d["design"]: d for d in stored.get("again", [])}
    listed = [
        (d["design"], *_rates(d), *(_rates(second[d["design"]]) if d["design"] in second else "–" * 5))
        for d in designs
        if _wrong(d)
    ]
    text = [
        f"{len(designs)} designs; {stored['replications']:,} simulated data sets for each, of which "
        f"{stored['intervals']:,} get intervals (of `aod` 200 data sets, all with intervals, and of `aod_abs` 20 "
        "intervals a design). Size: how often a true null is rejected at 5 %, 1 % and 0.1 %, as "
        "mean over the designs and in the worst of them. Coverage: how often the 95 % interval holds the truth, on "
        "average. A ratio's coverage is taken over designs with at least five expected successes in the second group: "
        "with fewer it is often undefined. `tpr`, `tnr`, `fdr`, `npv`, `accuracy` and `error_rate` are the complements "
        "of rates in the table, or rates of all rows like `selection_rate`, and have the same tests.\n",
        table(
            ("metric", "designs", "size at .05", "size at .01", "size at .001", "coverage", "ratio's coverage"), rows
        ),
        "\n### Designs that look wrong\n",
        "Designs with more rejections at one of the three levels, or less coverage, than a right procedure shows in "
        "99 % of runs. A few designs in a hundred are listed by chance. "
        + (
            f"Each was run again on {max(d['tested'] for d in second.values()):,} fresh data sets: the second columns "
            "are free of that selection. "
            if second
            else "They were not run again, so the columns for fresh data sets are empty. "
        )
        + "Warned: how often the finding carried a warning.\n",
        table(
            ("design", "size", ".01", ".001", "coverage", "warned", "size again", ".01", ".001", "coverage", "warned"),
            listed,
        ),
        "\n### Equivalence on the margin\n",
        "The true difference equals the margin of 0.1, so that a claim of equivalence is wrong.\n",
        table(
            ("design", "claimed", "coverage"),
            [
                (r["design"], f"{r['claimed'] / r['tested']:.3f}", f"{r['covered'] / r['tested']:.3f}")
                for r in stored["margin"]
            ],
        ),
        "\n### Family-wise error\n",
        table(
            ("design", "any false disparity"),
            [(r["design"], f"{r['wrong'] / r['families']:.3f}") for r in stored["family"]],
        ),
    ]
    return "\n".join(text) + "\n"


def projection() -> str:
    """List size and power of the projection audit."""
    stored = json.loads((ROOT / "calibration" / "projection.json").read_text())
    rows = [(r["design"], r["samples"], r["n"], f"{r['projection']:.3f}", f"{r['wald']:.3f}") for r in stored["lines"]]
    return table(("design", "samples", "N", "projection", "Wald"), rows) + "\n"


def projection_speed() -> str:
    """List the seconds of the projection beside a sort and beside a linear-programming solver."""
    stored = json.loads((ROOT / "benchmarks" / "projection.json").read_text())
    groups = [
        (r["groups"], f"{r['ours']:.3f} s", f"{r['argsort']:.3f} s", f"{r['ratio']:.2f}") for r in stored["groups"]
    ]
    solvers = list(stored["overlap"][0]["highs"])
    overlap = []
    for r in stored["overlap"]:
        peers = (r["highs"][name]["seconds"] for name in solvers)
        shown = (f"{seconds:.2f} s, {seconds / r['ours']:.0f} times as long" for seconds in peers)
        overlap.append((r["m"], f"{r['ours']:.3f} s", *shown, f"{r['ours_large']:.3f} s"))
    rows = stored["rows"]  # HiGHS is given a tenth of them
    head = ("attributes", f"{rows // 10:,} rows", *(f"HiGHS, {name}" for name in solvers), f"{rows:,} rows")
    return (
        table((f"groups, {rows:,} rows", "ours", "`numpy.argsort`", "ratio"), groups)
        + "\n\nOverlapping attributes; HiGHS on the smaller number of rows:\n\n"
        + table(head, overlap)
        + "\n\n"
        + _tree_distances(stored["trees"])
        + _adult_distances(stored["adult_trees"])
    )


def _tree_distances(lines: list[dict[str, Any]]) -> str:
    """List the distances of boosted trees, from inside the model and by asking it."""
    rows = [
        (
            r["model"], f"{r['rows_per_second']:,.0f}", f"{r['rows_per_second_asked']:,.0f}", f"{r['mean']:.3f}",
            f"{r['mean_asked']:.3f}", f"{r['longer']:.1%}",
        )
        for r in lines
    ]  # fmt: skip
    head = ("trees", "rows per second, from inside", "by asking", "mean distance, from inside", "by asking", "longer")
    return (
        "Distances to the boundary of boosted trees with 12 columns, per second of processor time, beside a search "
        f"that only asks the model; distances are those of the same {lines[0]['rows_asked']:,} rows. Both are upper "
        "bounds, so the shorter is the better; the last column is the share of rows for which the search from inside "
        "was longer.\n\n" + table(head, rows) + "\n"
    )


def _adult_distances(lines: list[dict[str, Any]]) -> str:
    """List how many distances a second there are on the Adult data, by model, trees and columns."""
    rows = [(r["model"], r["trees"], r["columns"], f"{r['distinct']:,}", f"{r['rows_per_second']:,.0f}") for r in lines]
    head = ("model", "trees", "columns", "different rows", "rows per second, from inside")
    return (
        f"\nThe same on {lines[0]['rows']:,} people of the Adult data, of whose columns {lines[0]['moving']} numbers "
        "move; equal rows are searched once. Forests have at least ten people in each leaf.\n\n"
        + table(head, rows)
        + "\n"
    )


def budget() -> str:
    """List the family-wise error of all five audits together, by correction."""
    path = ROOT / "calibration" / "budget.json"
    if not path.exists():
        return "No stored results yet.\n"
    stored = json.loads(path.read_text())
    rows = [
        (r["world"], f"`{r['correction']}`", f"{r['families']:,}", r["tests"], f"{r['wrong'] / r['families']:.3f}",
         f"{r['low']:.3f} to {r['high']:.3f}")
        for r in stored["rows"]
    ]  # fmt: skip
    head = ("data", "correction", "families", "tests in each", "any false disparity", "99 % limits")
    return table(head, rows) + "\n"


def defaults() -> str:
    """Set what is promised by default beside what was measured, before and after the defaults were mended."""
    path = ROOT / "calibration" / "defaults.json"
    if not path.exists():
        return "No stored results yet.\n"
    stored = json.loads(path.read_text())
    rows = []
    for key, row in stored["rows"].items():
        world = row["words"]
        for question, promise in row["promised"].items():
            cells = [_answered(stored.get(label, {}).get(key, {}).get(question)) for label in ("before", "after")]
            rows.append((world, question, "" if promise is None else f"{promise:g}", *cells))
            world = ""
    return table(("world", "question", "promised", "before", "after"), rows) + "\n"


def _answered(counted: list[int] | None) -> str:
    """Write a share with its Monte-Carlo standard error and the number of runs."""
    if counted is None:
        return "not measured"
    if not counted[1]:
        return "does not arise"
    share = counted[0] / counted[1]
    return f"{share:.3f} ± {(share * (1 - share) / counted[1]) ** 0.5:.3f} ({counted[1]})"


def rates() -> str:
    """Lay out size and power of the tests of two equal rates, added up over all tables."""
    stored = json.loads((ROOT / "calibration" / "rates.json").read_text())
    rows = stored["rows"]
    names = list(rows[0]["largest"])
    lines, apart = [], []
    for alpha in dict.fromkeys(row["alpha"] for row in rows):
        these = [row for row in rows if row["alpha"] == alpha]
        for name in names:
            largest = max(row["largest"][name] for row in these)
            mean, shown = (np.mean([row[key][name] for row in these]) for key in ("mean", "power"))
            least = "" if name == names[0] else f"{min(row['least_gain'][name] for row in these):+.3f}"
            lines.append((f"{alpha:g}", name, f"{largest:.5f}", f"{mean:.5f}", f"{shown:.4f}", least))
    for row in rows:
        if row["alpha"] == rows[0]["alpha"]:
            cells = [f"{row['largest'][n]:.4f} / {row['mean'][n]:.4f} / {row['power'][n]:.3f}" for n in names]
            apart.append(("/".join(str(n) for n in row["sizes"]), *cells))
    covered = [
        ("/".join(map(str, row["sizes"])), "ratio" if row["ratio"] else "difference",
         *(f"{row[k][0]:.4f}, {row[k][1]:.4f}, {row[k][2]:.3f}" for k in ("0.95", "0.99")))
        for row in stored["coverage"]
    ]  # fmt: skip
    levels = [key for key in stored["large"][0] if key != "sizes"]
    large = [
        ("/".join(map(str, row["sizes"])), *(f"{row[k][0]:.5f}, {row[k][1]:.5f}" for k in levels))
        for row in stored["large"]
    ]
    head = ("level", "test", "largest size", "mean size", "mean power", "least gain of ours")
    each = table(("rows", *names), apart)
    return (
        table(head, lines)
        + f"\n\nAt level {rows[0]['alpha']:g}, each pair of sizes: largest size / mean size / mean power.\n\n{each}\n"
        + "\nCoverage of the intervals over pairs of rates from .025 to .975: least, mean, and the share of pairs "
        "with at least the level.\n\n"
        + table(("rows", "of", "95 %", "99 %"), covered)
        + "\n\nBeyond the exact test the mid-p value is the p-value. Its largest and mean size:\n\n"
        + table(("rows", *levels), large)
        + "\n"
    )


def power() -> str:
    """Lay out promised and simulated power, and the size of equivalence tests on the margin."""
    stored = json.loads((ROOT / "calibration" / "power.json").read_text())["rows"]
    margins = json.loads((ROOT / "calibration" / "margin.json").read_text())
    shown = [
        (r["design"], f"{r['promised']:.3f}", f"{r['shown'] / r['audits']:.3f}",
         f"{r['low']:.3f} to {r['high']:.3f}", r["audits"])
        for r in stored
    ]  # fmt: skip
    off = [r["shown"] / r["audits"] - r["promised"] for r in stored]
    outside = sum(not r["low"] <= r["promised"] <= r["high"] for r in stored)
    rates = [
        (f"{r['sizes'][0]} and {r['sizes'][1]}", r["margin"], f"{r['exact']:.3f}", f"{r['score']:.3f}")
        for r in margins["worst"]
    ]
    by_size: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for r in margins["rows"]:
        by_size[r["metric"], " and ".join(map(str, r["sizes"]))].append(r)
    simulated = [
        (f"`{metric}`", sizes, len(group), sum(r["tested"] for r in group), f"{_claimed(group):.3f}",
         f"{max(_claimed([r]) for r in group):.3f}", sum(r["claimed"] > most(r["tested"]) for r in group))
        for (metric, sizes), group in by_size.items()
    ]  # fmt: skip
    text = [
        f"{len(stored)} designs. Shown: the share of simulated audits with the verdict that the power speaks of, with "
        f"its exact 99 % interval. Shown minus promised: {_mean(off):+.3f} on average, {min(off):+.3f} to "
        f"{max(off):+.3f}; in {outside} of them the promise lies outside the interval.\n",
        table(("design", "promised", "shown", "99 % interval", "audits"), shown),
        "\n### Equivalence on the margin: rates\n",
        "The chance of a false `equivalent` at 5 %, added up over all tables, at the worst of all rates on the margin. "
        "Evenhand uses the exact test; the score test is shown for comparison.\n",
        table(("rows", "margin", "exact test", "score test"), rates),
        "\n### Equivalence on the margin: simulated\n",
        "The true difference or ratio equals an end of the margin. Above nominal: designs with more claims than a "
        "right test shows in 99 % of runs.\n",
        table(("metric", "rows", "designs", "data sets", "claimed", "largest", "above nominal"), simulated),
    ]
    return "\n".join(text) + "\n"


def _claimed(group: list[dict[str, Any]]) -> float:
    return sum(r["claimed"] for r in group) / max(sum(r["tested"] for r in group), 1)


def individual() -> str:
    """List coverage and size of the individual audit: its statistics on every design, the whole audit on some."""
    stored = json.loads((ROOT / "calibration" / "individual.json").read_text())
    if "audit" not in stored:
        return "No stored results yet.\n"
    kinds = (
        "skewness: coverage", "normal: coverage", "skewness: rejects truth", "skewness: accepts truth",
        "normal: accepts truth", "error ratio, binomial: coverage", "error ratio, fieller: coverage",
        "error ratio, delta: coverage",
    )  # fmt: skip
    head = (
        "design", "rows", "mean ratio: skewness", "normal", "false `disparity` (skewness)",
        "false `equivalent`: skewness", "normal", "error ratio: exact", "Fieller", "delta",
    )  # fmt: skip
    rows = [
        (f"{r['design']} ({r['true_loss_ratio']:.2f})", f"{r['n']:,}", *(f"{r[k]:.3f}" for k in kinds))
        for r in stored["rows"]
    ]
    whole = [
        (r["design"], f"{r['n']:,}", r["replications"], f"{r['loss_ratio covered']:.3f}",
         f"{r['loss_ratio rejects truth']:.3f}", f"{r['error_ratio covered']:.3f}")
        for r in stored["audit"]
    ]  # fmt: skip
    return (
        f'{stored["replications"]:,} samples each, nominal .95; in the columns "false" .05: how often a true ratio '
        "exactly at the tolerance would be called more, or less.\n\n"
        + table(head, rows)
        + "\n\nThe whole audit, from data to finding, by its own interval and p-value:\n\n"
        + table(("design", "rows", "samples", "mean ratio covered", "false `disparity`", "error ratio covered"), whole)
        + "\n\n"
        + _individual_learned(stored)
    )


def _individual_learned(stored: dict[str, Any]) -> str:
    """List verdicts and misses of the audit whose metric is learned from the groups: of all rows, and of samples."""

    def share(row: dict[str, Any], key: str, of: str = "replications") -> str:
        return f"{row[key] / row[of]:.3f}" if row[of] else "-"

    rows = [
        (
            r["design"] + "".join(f", `{k}={r[k]:,}`" for k in ("sample_rows", "attack_rows") if k in r),
            f"{r['n']:,}", r["replications"], share(r, "computed"),
            "-" if not r["true"] else f"{r['true'][0]:.2f}",
            "-" if r["mean_ratio"] is None else f"{r['mean_ratio']:.2f}",
            share(r, "disparity"),
            *((share(r, "too high", "computed"), share(r, "too low", "computed"), share(r, "errors too high"),
               share(r, "errors too low")) if r["true"] else ("-",) * 4),
            *((share(r, "p .05"), share(r, "p .01")) if r["true"] or r in stored.get("sampled", ()) else ("-",) * 2),
            share(r, "equivalence .05") if r["true"] else "-",
        )
        for r in (*stored.get("learned", ()), *stored.get("sampled", ()))
    ]  # fmt: skip
    if not rows:
        return ""
    head = (
        "design", "rows", "samples", "inputs predict the groups", "true mean ratio", "mean estimate", "any `disparity`",
        "lower limit too high, where computed", "upper limit too low", "error ratio: lower too high", "upper too low",
        "mean ratio, p at most .05", "p at most .01", "equivalence, p at most .05",
    )  # fmt: skip
    return (
        "The default audit, whose metric is learned from the groups. Limits are one-sided at 95 %, so .05 may miss; "
        "where the ratio is at the tolerance, p-values may be at most .05 (.01) that often. Shares are of all samples "
        "unless the head says otherwise. With `sample_rows` so many rows teach the metric and all are moved; with "
        "`attack_rows` so many are moved and no others are looked at.\n\n"
        + table(head, rows)
        + f"\n\nSeed {stored['learned_seed']}; of samples {stored.get('sampled_seed', '-')}.\n"
    )


def individual_speed() -> str:
    """List the seconds of the individual audit and of its peers."""
    stored = json.loads((ROOT / "benchmarks" / "individual.json").read_text())
    rows = [
        (r["case"], f"{r['seconds']:.2f} s", r["peer"], f"{r['peer_seconds']:.2f} s", f"{r['ratio']:.1f}")
        for r in stored["rows"]
    ]
    head = ("case", "ours, the whole audit", "peer", "peer's", "times as fast")
    return table(head, rows) + "\n\nProcessor seconds on one thread each; the same number of steps per person.\n"


def proxy() -> str:
    """List coverage, false naming and power of the proxy audit."""
    stored = json.loads((ROOT / "calibration" / "proxy.json").read_text())
    worlds = json.loads((ROOT / "calibration" / "proxy_trained.json").read_text())
    noise = ("noise", "noise_number", "noise_category")
    covered, named = [], []
    for line in stored["lines"]:
        rows, n = line["rows"], line["samples"]
        shown = [_share(rows[k], "covered", "intervals") for k in ("gap", "carrier", "bystander", "used")]
        least = min((_share(rows[k], "covered", "intervals") for k in noise), key=str)
        scores = [_share(rows[k], "score_covered", "score_intervals") for k in ("carrier", "bystander", "used")]
        covered.append((line["design"], n, *shown, least, *scores))
        found = [f"{rows[k]['disparity'] / n:.3f}" for k in ("carrier", "bystander", "used")]
        most = max(rows[k]["disparity"] / n for k in noise)
        wrong = [f"{line[k] / n:.3f}" for k in ("false_discovery", "false_discovery_01")]
        named.append((line["design"], n, *found, f"{most:.3f}", *wrong))
    trained = []
    for line in worlds["lines"]:
        n, rows = line["samples"], [r for r in line["rows"].values() if r["tested"]]
        shares = [f"{line[k] / n:.3f}" for k in ("gap", "named", "named_01")]
        shares.append(f"{line['idle_named'] / n:.3f}" if line["world"].startswith("synthetic") else "–")
        every = f"{sum(r['covered'] for r in rows) / sum(r['tested'] for r in rows):.3f}"
        least = f"{min(r['covered'] / r['tested'] for r in rows):.3f}"
        wrong = f"{max(r['false_equivalent'] / n for r in rows):.3f}"
        trained.append((line["world"], line["models"], n, *shares, every, least, wrong))
    return (
        "Trained models. False: named although at most the margin of one point goes "
        "through the feature in truth. Unrelated: features that have nothing to do with the outcome; the model uses "
        "them a little, so that what they carry is not exactly 0 and may exceed the margin. Coverage of the 95 % "
        "intervals: of all features together, and of the feature with the least.\n\n"
        + table(
            (
                "world",
                "models",
                "audits",
                "gap shown",
                "any false, 5 %",
                "any false, 1 %",
                "any unrelated, 5 %",
                "coverage, all",
                "coverage, least",
                "falsely equivalent, most",
            ),
            trained,
        )
        + "\n\nA known model: coverage of the 95 % intervals of the gap, of what a feature carries, and of proxy "
        "scores. A dash: the audit gives no interval there, because it would not hold.\n\n"
        + table(
            (
                "design",
                "samples",
                "gap",
                "carrier",
                "bystander",
                "used number",
                "noise, least",
                "score: carrier",
                "score: bystander",
                "score: used number",
            ),
            covered,
        )
        + "\n\nHow often a feature is a `disparity`, and how often any is that carries nothing, at an error rate of "
        "5 % and of 1 % over all findings.\n\n"
        + table(
            (
                "design",
                "samples",
                "carrier",
                "bystander",
                "used number",
                "noise, most",
                "any idle one, 5 %",
                "any idle one, 1 %",
            ),
            named,
        )
        + f"\n\nOne run each of `calibration/proxy_trained.py` (seed {worlds['seed']}) and `calibration/proxy.py` "
        f"(seed {stored['seed']}) with the audit's defaults."
        + (f" Designs not run: {'; '.join(stored['not_run'])}.\n" if stored.get("not_run") else "\n")
    )


def _share(row: dict[str, Any], hits: str, of: str) -> str:
    return f"{row[hits] / row[of]:.3f}" if row[of] else "–"


def proxy_speed() -> str:
    """List the seconds of influence and proxy scores against a prediction pass."""
    stored = json.loads((ROOT / "benchmarks" / "proxy.json").read_text())
    if "slopes_for_intervals" not in stored["rows"][0]:
        return "No stored results yet.\n"
    rows = [
        (r["what"], f"{r['ours']:.3f} s", f"{r['theirs']:.3f} s", f"{r['ratio']:.2f}",
         f"{r['memory_megabytes']:.0f} MB", f"{r['slopes_for_intervals']:.2f} s", f"{r['plain_version']:.1f} s")
        for r in stored["rows"]
    ]  # fmt: skip
    head = ("what", "ours", "one prediction pass", "ratio", "memory", "slopes for intervals", "plain version")
    machine = ", ".join(f"{k} {v}" for k, v in stored["machine"].items())
    return table(head, rows) + f"\n\nMachine: {machine}.\n"


def benchmarks() -> str:
    """List every stored benchmark with its ratio, and what a whole audit costs."""
    stored = json.loads((ROOT / "benchmarks" / "group.json").read_text())
    rows = [
        (r["what"], r["peer"], f"{r['ours']:.4f} s", f"{r['theirs']:.4f} s",
         f"{r['ratio']:.2f} (ours over theirs)" if "at_most" in r else f"{r['ratio']:,.1f}")
        for r in stored["rows"]
    ]  # fmt: skip
    whole = json.loads((ROOT / "benchmarks" / "audit.json").read_text())
    costs = [
        (f"{r['rows']:,}",
         *(f"{r[key]['seconds']:.1f} s, {r[key]['processor']:.1f} s, {r[key]['megabytes']:.0f} MB"
           for key in ("numbers", "report", "bare_read")),
         f"{r['report']['processor'] - r['numbers']['processor']:.2f} s",
         f"{r['numbers']['processor'] / r['bare_read']['processor']:.1f}")
        for r in whole["rows"]
    ]  # fmt: skip
    trained = [
        (r["model"], f"{r['rows']:,}", f"{r['seconds']:.1f} s", f"{r['processor']:.1f} s", r["findings"],
         f"{r['rows'] / r['processor']:,.0f}", f"{r['processor'] / r['one_prediction']:,.0f}")
        for r in whole["models"]
    ]  # fmt: skip
    home = json.loads((ROOT / "benchmarks" / "home.json").read_text())
    fixed = [
        (r["what"], f"{r['ours']:.3f} s", r["baseline"], f"{r['theirs']:.3f} s", f"{r['ours'] / r['theirs']:.1f}")
        for r in home["rows"]
    ]
    return (
        table(("what", "peer", "ours", "peer's", "ratio"), rows)
        + f"\n\n{_machine(stored)}\n\n## What does not depend on the question\n\n"
        + "Seconds of processor time for starting, for text labels and for a small group among large ones, each beside "
        "a plain baseline measured in the same run; the ratio is ours over the baseline.\n\n"
        + table(("what", "ours", "baseline", "baseline's", "ratio"), fixed)
        + f"\n\n`python benchmarks/home.py`. {_machine(home)}\n\n## A whole audit\n\n"
        + "The default audit of a CSV file of predictions with scores and two attributes, each in a fresh process with "
        "Python's start: seconds by the clock, processor seconds, and memory. The report's own cost is the difference "
        "in processor seconds and does not depend on the rows; the library that draws charts in the browser was built "
        "before, which takes some seconds once and is kept. The ratio is that of processor seconds to findings.json "
        "and to reading alone.\n\n"
        + table(("rows", "to findings.json", "with the report", "bare pandas.read_csv", "the report", "ratio"), costs)
        + "\n\nAll six audits by default of trained models: pipelines that scale numbers and encode categories, before "
        "a logistic regression, a forest of 100 trees, and histogram boosting of 100 trees. They were fitted on 16,000 "
        "people of the Adult data and audited on others, with eleven columns.\n\n"
        + table(
            (
                "model",
                "people",
                "wall",
                "processor",
                "findings",
                "people per processor second",
                "in predictions of all",
            ),
            trained,
        )
        + f"\n\n{_machine(whole)}\n"
    )


def peers() -> str:
    """List every peer measured in one run beside the operation of ours that answers its question."""
    stored = json.loads((ROOT / "benchmarks" / "peers.json").read_text())
    rows = [
        (r["what"], r["peer"], r["package"], f"{r['ours']:.4f} s", f"{r['theirs']:.4f} s", f"{r['ratio']:,.1f}",
         f"{r['asked']:,.0f}", "yes" if r["reached"] else "no")
        for r in stored["rows"] if "ratio" in r
    ]  # fmt: skip
    failed = [f"{r['package']} ({r['failed']})" for r in stored["rows"] if "failed" in r]
    absent = [*failed, *(f"{name} ({why})" for name, why in stored["left_out"].items())]
    head = ("what", "peer", "package", "ours", "peer's", "ratio", "asked", "reached")
    return (
        table(head, rows)
        + f"\n\nNot measured: {'; '.join(absent)}.\n\n`python benchmarks/peers.py`. {_machine(stored)}\n"
    )


COST_AUDITS = ("group", "projection", "individual", "proxy", "tail")
COST_ROWS = 1e9  # where costs are extrapolated to
CORE_HOUR = 0.05  # dollars: about what a core of an ordinary rented machine costs for an hour


def cost() -> str:
    """Tables of what each audit costs, how that grows, and what a billion rows would cost."""
    path = ROOT / "benchmarks" / "scale.json"
    if not path.exists():
        return "No stored results yet.\n"
    stored = json.loads(path.read_text())
    usual = {"features": 40, "groups": 2, "model": "logistic"}
    plain = [r for r in stored["rows"] if all(r[k] == v for k, v in usual.items())]
    local = {a: sorted((r for r in plain if r["audit"] == a and r["engine"] == "local"), key=lambda r: r["rows"])
             for a in (*COST_AUDITS, "bare")}  # fmt: skip
    spark = {a: sorted((r for r in plain if r["audit"] == a and r["engine"] == "spark"), key=lambda r: r["rows"])
             for a in COST_AUDITS}  # fmt: skip
    names = {"bare": "scoring alone"}
    measured = [
        (names.get(a, a), f"{r['rows']:,}", f"{r['seconds']:.1f} s", f"{r['processor']:.1f} s",
         f"{r['megabytes']:.0f} MB", r["findings"] or "–", r.get("load", "–"))
        for a, rows in local.items() for r in rows
    ]  # fmt: skip
    on_spark = [
        (a, f"{r['rows']:,}", f"{r['seconds']:.1f} s", f"{r['processor']:.1f} s",
         *(_times(r, f"{bare}_{what}") for bare in ("bare", "same") for what in ("seconds", "processor")),
         f"{r['megabytes']:.0f} MB", r.get("load", "–"))
        for a, rows in spark.items() for r in rows
    ]  # fmt: skip
    absent = [
        f"{names.get(a, a)} with {', '.join(f'{n:,}' for n in missing)} rows"
        for a, rows in local.items()
        if (missing := [n for n in (100_000, 1_000_000, 10_000_000) if n not in {r["rows"] for r in rows}])
    ]
    absent += [f"{a} on Spark" for a, rows in spark.items() if not rows]
    out = [
        "## Measured\n\nOn one machine, rows in a Parquet file, read in batches:",
        table(("audit", "rows", "wall", "processor", "memory", "findings", "load"), measured),
    ]
    if on_spark:
        head = ("audit", "rows", "wall", "processor", "wall, times scoring alone", "processor, times scoring alone",
                "wall, times the same questions", "processor, times the same questions", "memory of the driver",
                "load")  # fmt: skip
        out += ["On Spark with two local workers, beside the bare cost of scoring the same rows there:",
                table(head, on_spark)]  # fmt: skip
    whole = sorted((r for r in stored["rows"] if r["audit"] == "whole"), key=lambda r: (r["rows"], r["model"]))
    if whole:
        cells = [(r["model"], "in memory" if r["engine"] == "memory" else "in batches", f"{r['rows']:,}",
                  f"{r['seconds']:.1f} s", f"{r['processor']:.1f} s", f"{r['megabytes']:.0f} MB", r["findings"],
                  r["load"]) for r in whole]  # fmt: skip
        head = ("model", "rows are", "rows", "wall", "processor", "memory", "findings", "load")
        out += ["All audits together, as they run by default:", table(head, cells)]
    if absent:
        out.append(f"Not measured yet: {'; '.join(absent)}.")
    out += ["## How it grows", _growth(stored["rows"], local), "## A billion rows",
            _billion({"one machine": local, "Spark": spark}, stored["machine"])]  # fmt: skip
    return "\n\n".join([*out, _machine(stored)]) + "\n"


def _times(measured: dict[str, Any], bare: str) -> str:
    """Return how many times as long as a bare job the audit took, where both were measured."""
    seconds = measured.get(bare)
    return "–" if seconds is None else f"{measured[bare.split('_')[1]] / seconds:.2f}"


def _growth(stored: list[dict[str, Any]], local: dict[str, list[dict[str, Any]]]) -> str:
    """Slopes of the logarithm of processor seconds in the logarithm of what grows."""
    base = {"rows": 100_000, "features": 40, "groups": 2}

    def grown(audit: str, what: str) -> list[dict[str, Any]]:
        still = {k: v for k, v in base.items() if k != what}
        mine = [r for r in stored if (r["audit"], r["engine"], r["model"]) == (audit, "local", "logistic")]
        return sorted((r for r in mine if all(r[k] == v for k, v in still.items())), key=lambda r: r[what])

    def slope(rows: list[dict[str, Any]], what: str) -> str:
        if len({r[what] for r in rows}) < 2:
            return "–"
        x, y = (np.log([r[k] for r in rows]) for k in (what, "processor"))
        return f"{np.polyfit(x, y, 1)[0]:.2f}"

    rows = []
    for audit in COST_AUDITS:
        varied = [*grown(audit, "features"), *grown(audit, "groups")]
        rows.append((audit, slope(local[audit], "rows"), slope(local[audit][-2:], "rows"),
                     slope(grown(audit, "features"), "features"), slope(grown(audit, "groups"), "groups"),
                     slope(varied, "findings")))  # fmt: skip
    return table(("audit", "rows", "rows, last step", "features", "groups", "findings"), rows)


def _billion(engines: dict[str, dict[str, list[dict[str, Any]]]], machine: dict[str, Any]) -> str:
    """Extrapolate by the rows per second between the two largest sizes of each audit on each engine."""
    rows = []
    for engine, audits in engines.items():
        for audit, measured in audits.items():
            if len(measured) < 2:
                continue
            small, large = measured[-2:]
            what = ("scoring alone" if audit == "bare" else audit, engine, f"{small['rows']:,} to {large['rows']:,}")
            more = large["processor"] - small["processor"]
            if more <= 0:
                rows.append((*what, "does not grow", "–", "–", "–"))
                continue
            speed = (large["rows"] - small["rows"]) / more
            hours = (large["processor"] + (COST_ROWS - large["rows"]) / speed) / 3600
            cells = (f"{speed:,.0f}", f"{hours:.1f}", f"{hours / machine['cores']:.1f}", f"{hours * CORE_HOUR:.2f}")
            rows.append((*what, *cells))
    head = ("audit", "engine", "measured from", "rows per processor second", "processor hours",
            f"hours of a machine with {machine['cores']} cores", f"dollars at {CORE_HOUR:g} a core hour")  # fmt: skip
    return table(head, rows)


def _machine(stored: dict[str, Any]) -> str:
    return "Machine: " + ", ".join(f"{k} {v}" for k, v in stored["machine"].items()) + "."


def tail() -> str:
    """Tables of the tail audit: recovery, coverage, size, power and speed."""
    stored = json.loads((ROOT / "calibration" / "tail.json").read_text())
    fits = ("exponentiality", "intervals", "bounded", "chosen")
    cells = {part: {n.rsplit(", ", 1)[0]: {} for n in stored[part]} for part in fits}
    for part in fits:
        for name, cell in stored[part].items():
            law, at = name.rsplit(", ", 1)
            cells[part][law][at.split("=")[1]] = cell
    levels = ("level n/5", "level n", "level 10n", "level 100n")
    sizes = ("50", "100", "200")

    def covered(part: str) -> str:
        return table(
            ("tail", *(f"k = {k}" for k in sizes)),
            [
                (law, *(f"{_cover(row[k], 'shape')} / {' '.join(_cover(row[k], n) for n in levels)}" for k in sizes))
                for law, row in cells[part].items()
            ],
        )

    samples = {part: _range(c["samples"] for c in found.values()) for part, found in stored.items()}
    seeds = sorted({c["seed"] for found in stored.values() for c in found.values()})
    recovered = [
        (law, *(f"{row[k]['shape, mean error']:+.3f} ± {row[k]['shape, standard deviation']:.3f}" for k in sizes))
        for law, row in cells["intervals"].items()
    ]
    rejected = [f"rejected at {a:g}" for a in ALPHAS]

    def tested(part: str) -> list[tuple[Any, ...]]:
        return [
            (name, c["samples"], *(_size(c, key, float(key.split()[-1])) for key in rejected), _cover(c, "coverage"))
            for name, c in stored[part].items()
        ]

    tested_head = ("samples", "at .05", "at .01", "at .001", "coverage")
    speed = json.loads((ROOT / "benchmarks" / "tail.json").read_text())
    text = [
        f"Seeds {', '.join(map(str, seeds))}; nothing was chosen on them. {STAR}\n",
        "### Exponentiality test\n",
        f"Share of samples that fail, as printed / calibrated to 5 %; {samples['exponentiality']} samples each. A true "
        "exponential should fail in 5 %, lighter tails less often, heavy ones more.\n",
        table(
            ("tail", *(f"kmax = {k}" for k in sizes)),
            [
                (law, *(f"{row[k]['printed']:.3f} / {row[k]['calibrated']:.3f}" for k in sizes))
                for law, row in cells["exponentiality"].items()
            ],
        ),
        "\n### Recovery of the shape\n",
        f"Mean error ± standard deviation of the fitted shape, n = 20 k rows; {samples['intervals']} samples each.\n",
        table(("tail", *(f"k = {k}" for k in sizes)), recovered),
        "\n### Coverage of 95 % intervals\n",
        f"Shape / return level at n/5, n, 10 n and 100 n decisions, n = 20 k rows; {samples['intervals']} samples, "
        "end point not known. beta(2,5) is not exactly generalised Pareto: its shape at a finite threshold is not yet "
        "the limit's -0.2.\n",
        covered("intervals"),
        "\nThe same with the end point known to lie at most where it truly is, the hardest case of a limit:\n",
        covered("bounded"),
        f"\nWith k chosen by the test and the end point known; {samples['chosen']} samples each:\n",
        table(
            ("tail", "rows", "enough tail", "mean k", "level n", "level 10n"),
            [
                (law, n, f"{c['enough tail']:.3f}", f"{c['mean k']:.0f}", _cover(c, "level n", c["enough tail"]),
                 _cover(c, "level 10n", c["enough tail"]))
                for law, row in cells["chosen"].items()
                for n, c in row.items()
            ],
        ),
        "\n### One level, counted\n",
        "How often the test of the true level rejects, and how often the 95 % interval covers it. Exact tests of "
        "counts stay below their level.\n",
        table(("tail", *tested_head), tested("level")),
        "\n### Two groups with equal levels\n",
        "How often the test of equal levels rejects, and how often the 95 % interval of the difference covers 0. Laws "
        "that differ are moved so that only their levels agree.\n",
        table(("groups", *tested_head), tested("difference")),
        "\nThe same with the first group moved by 1.43 lengths of the half interval: the size becomes the power.\n",
        table(
            ("groups", "samples", "at .05", "at .01"),
            [(n, c["samples"], f"{c[rejected[0]]:.2f}", f"{c[rejected[1]]:.2f}") for n, c in stored["power"].items()],
        ),
        "\n### Beyond the rows\n",
        "How often a level is given (counted, or from a fit that is believed), and how often its interval covers.\n",
        table(
            ("tail", "samples", "level given", "coverage", "wholly above the largest value"),
            [
                (n, c["samples"], f"{c['given']:.2f}", _cover(c, "coverage", c["given"]), f"{c['wholly above']:.3f}")
                for n, c in stored["beyond"].items()
            ],
        ),
        "\n### Trained models\n",
        "Levels of models that were trained on 2,000 rows: logistic regression where 11 % say yes, and a network. True "
        "levels are those of 400,000 people.\n",
        table(
            ("model", "levels", "given", "coverage", "wholly above the sample", "above what is possible"),
            [
                (n, c["samples"], f"{c['given']:.2f}", _cover(c, "coverage", c["given"]),
                 f"{c['wholly above the sample']:.3f}", f"{c['above what is possible']:.3f}")
                for n, c in stored["models"].items()
            ],
        ),
        "\n### The mean change and the mean of the worst share\n",
        "How often the test of the true mean rejects, and how often the 95 % interval covers it: of everybody (acd) on "
        "both sides, of the worst 5 % (cvar) above only. Laws of changes: two smooth ones, a tree's steps with no "
        "change for nine people in ten, and a logistic model's.\n",
        table(("mean", *tested_head), tested("means")),
        "\nThe difference of two groups, moved so that only the means agree:\n",
        table(("groups", *tested_head), tested("mean differences")),
        "\nModels trained on 4,000 rows, the truth being that of 40,000 other people:\n",
        table(
            ("model", "audits", "acd", "cvar", "acd_difference", "cvar_difference"),
            [
                (n, c["samples"], *(f"{c[f'coverage of {m}']:.3f}" for m in ("acd", "cvar", "acd_difference",
                                                                            "cvar_difference")))
                for n, c in stored["trained means"].items()
            ],
        ),
        "\n### Groups drawn at random\n",
        "How often the default audit finds any disparity. A model that was given the random column has a coefficient "
        "for it, and the change that makes is real: false is a disparity whose true value, among 40,000 other people, "
        "lies inside the margin of 0.01.\n",
        table(
            ("model", "audits", "any disparity", "false disparity", "median true difference"),
            [
                (n, c["samples"], f"{c['any disparity']:.3f}", _size(c, "false disparity"),
                 f"{c['median true |ecd|']:.4f}")
                for n, c in stored["random"].items()
            ],
        ),
        "\n### Speed\n",
        _speed(speed),
    ]  # fmt: skip
    return "\n".join(text)


def _speed(stored: dict[str, Any]) -> str:
    rows = [
        (r["what"], r["peer"], f"{r['ours']:.4f} s", f"{r['theirs']:.4f} s",
         f"{r['ratio']:.2f} (ours over theirs)" if "asked" not in r else f"{r['ratio']:,.1f}")
        for r in stored["rows"]
    ]  # fmt: skip
    machine = ", ".join(f"{k} {v}" for k, v in stored["machine"].items())
    return table(("what", "peer", "ours", "peer's", "ratio"), rows) + f"\n\nMachine: {machine}.\n"


def _cover(cell: dict[str, Any], key: str, share: float = 1.0) -> str:
    n = round(cell["samples"] * share)
    return covers(cell[key] * n, n)


def covers(covered: float, n: int) -> str:
    """Write the coverage of 95 % intervals, with a star if it is too low; a dash if there are none."""
    if not n:
        return "–"
    return f"{covered / n:.3f}" + ("*" if round(covered) < stats.binom.ppf(0.01, n, 0.95) else "")


def _size(cell: dict[str, Any], key: str, level: float = 0.05) -> str:
    return rejects(cell[key] * cell["samples"], cell["samples"], level)


def rejects(rejected: float, n: int, level: float = 0.05) -> str:
    """Write how often a true null hypothesis is rejected, with a star if that is too often; a dash without tests."""
    if not n:
        return "–"
    return f"{rejected / n:.3f}" + ("*" if round(rejected) > most(n, level) else "")


def _range(values: Iterable[int]) -> str:
    found = sorted(set(values))
    return f"{found[0]:,}" if len(found) == 1 else f"{found[0]:,} to {found[-1]:,}"


def reproductions() -> str:
    """Join the claim tables, computed from the results that travel with the package, behind their totals."""
    papers = {key: (load_paper(key), stored_results(key)) for key in KEYS}
    totals = [
        (
            key,
            *(sum(claim.reached == word for _, claim in paper.claims(results)) for word in REACHED),
            f"{sum(one.seconds for one in results.values()) / 60:.0f}",
        )
        for key, (paper, results) in papers.items()
    ]
    head = ("paper", "reached", "not reached", "in part", "no printed value", "minutes of one processor")
    pages = [table(head, totals) + "\n"]
    for key, (paper, results) in papers.items():
        made = [
            f"### {key}",
            paper.title,
            f"`evenhand reproduce {key}`",
            claims_table(paper, results).strip(),
            *paper.notes,
        ]
        pages.append("\n\n".join(made) + "\n")
    return "\n".join(pages)


def _wrong(design: dict[str, Any]) -> bool:
    missed, intervals = design["intervals"] - design["covered"], design["intervals"]
    return any(design[key] > most(design["tested"], alpha) for key, alpha in LEVELS.items()) or (
        intervals >= 20 and missed > most(intervals)
    )


def _rates(design: dict[str, Any]) -> tuple[str, ...]:
    n = design["tested"]
    covered = f"{design['covered'] / design['intervals']:.3f}" if design["intervals"] >= 20 else "–"
    return *(f"{design[key] / n:.3f}" for key in LEVELS), covered, f"{design['warned'] / n:.2f}"


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def hypotheses() -> str:
    """Say what each audit assumes until the data speak against it, as the code has it."""
    rows = [
        (name, h.measure, h.null, h.margin or "no margin", h.default, "waits" if audit.explains else "begins")
        for name, audit in AUDITS.items()
        for h in audit.hypotheses
    ]
    head = ("audit", "finding", "without a margin", "with a margin", "margin by default", "its error")
    return table(head, rows) + "\n"


def methods() -> str:
    """List the mitigators with what each needs, changes and costs."""
    stages = {"before": "before training", "in": "in training", "after": "after training"}
    rows = []
    for word, name in mitigation.METHODS.items():
        about = getattr(mitigation, name).about
        group = "yes" if about.decides_with_group else "no"
        rows.append((f"`{word}`", f"`{name}`", stages[about.stage], about.needs, about.changes, about.cost, group))
    head = ("word", "class", "when", "needs", "changes", "costs", "decides with the group")
    return table(head, rows) + "\n"


def mitigation_speed() -> str:
    """List what the fit of each mitigator costs."""
    path = ROOT / "benchmarks" / "mitigation.json"
    if not path.exists():
        return "No stored results yet.\n"
    stored = json.loads(path.read_text())
    rows = [
        (r["what"], f"{r['ours']:.2f} s", f"{r['theirs']:.2f} s", f"{r['ratio']:.1f}", r["settings_in_grid"])
        for r in stored["rows"]
    ]
    head = (
        "fit at default settings",
        "seconds",
        "plain logistic regression",
        "times as long",
        "settings tried by default",
    )
    return table(head, rows) + "\n\n`python benchmarks/mitigation.py`, one thread.\n"


def mitigation_certificate() -> str:
    """Say how often the certificate was wrong, beside two simpler ways of choosing."""
    path = ROOT / "calibration" / "mitigation.json"
    if not path.exists():
        return "No stored results yet.\n"
    stored = json.loads(path.read_text())
    rows = []
    for design, made in stored["designs"].items():
        ways = [made[way] for way in ("certified", "holdout", "training")]
        shares = [f"{way['wrong']:.3f} of {way['returned']:.3f}" for way in ways]
        low, high = ways[0]["wrong_low"], ways[0]["wrong_high"]
        rows.append((design, f"{made['runs']:,}", shares[0], f"{low:.3f} to {high:.3f}", *shares[1:]))
    head = (
        "population, metric and margin, rows",
        "runs",
        "certified",
        "95 % interval",
        "one holdout",
        "training people",
    )
    return (
        "Each cell: in which share of the runs a model was returned whose true difference exceeds the margin, of the "
        f"share in which any model was returned. The certificate promises at most {stored['alpha']:g} for the first "
        "number; the second is its power.\n\n" + table(head, rows) + "\n"
    )


def compared() -> str:
    """Say how often the comparison of two models is wrong, and what pairing gains."""
    stored = json.loads((ROOT / "calibration" / "compare.json").read_text())
    rows = []
    for line in stored["lines"]:
        n = max(line["computable"], 1)
        shares = [" / ".join(f"{x / n:.3f}" for x in line[key]) for key in ("change", "size")]
        rates = line["metric"] == "selection_rate"
        apart = " / ".join(f"{x / n:.3f}" for x in line["unpaired"]) if rates else "–"
        truth = "as large as before" if line["same"] else "changed"
        covered = f"{line['covered'] / n:.3f}"
        rows.append((line["design"], line["metric"], truth, f"{line['computable']:,}", *shares, covered, apart))
    head = (
        "design",
        "metric",
        "truth",
        "samples",
        "a change is shown",
        "worse or better is said",
        "interval covers",
        "a change is shown, not paired",
    )
    text = "Shares of samples at levels .05 / .01 / .001.\n\n" + table(head, rows) + "\n\n"
    lines = [
        (
            c["metric"],
            f"{c['before']:+.4f}",
            f"{c['after']:+.4f}",
            f"{c['estimate']:+.4f}",
            f"{c['interval']['low']:+.4f} to {c['interval']['high']:+.4f}",
            c["verdict"],
            f"{c['error']:.4f}",
            f"{c['error_apart']:.4f}",
            f"{(c['error_apart'] / c['error']) ** 2:.1f}",
        )
        for c in stored["census"]
    ]
    head = (
        "metric",
        "before",
        "after",
        "change",
        "interval",
        "verdict",
        "error",
        "error, not paired",
        "times the rows",
    )
    text += (
        f"Two logistic models of income on {stored['census'][0]['rows']:,} people of Adult whom neither has seen, "
        "women against men: the new one does without marital status. The last column says how many times as many "
        "people a comparison of two separate samples would need.\n\n"
    )
    speed = json.loads((ROOT / "benchmarks" / "compare.json").read_text())
    costs = [(c["what"], f"{c['ours']:.3f} s", f"{c['theirs']:.3f} s", f"{c['ratio']:.1f}") for c in speed["lines"]]
    cost_head = (f"{speed['rows']:,} rows", "comparison", "one group audit", "times as long")
    return text + table(head, lines) + "\n\n" + table(cost_head, costs) + "\n"


def unknown() -> str:
    """Say how often answers about unknown and guessed groups were right, beside the shortcuts."""
    path = ROOT / "calibration" / "unknown.json"
    if not path.exists():
        return "No stored results yet.\n"
    by_kind: dict[str, dict[tuple[Any, ...], list[Any]]] = defaultdict(lambda: defaultdict(list))
    for made in json.loads(path.read_text()):
        d = made["design"]
        if d["kind"] == "missing":
            key = (f"{d['rows']:,}", f"{d['unknown']:.0%}", {"random": "at random", "hiding": "worst case"}[d["how"]])
        else:
            key = (f"{d['rows']:,}", d["proxy"], *((d["leak"],) if d["kind"] == "contradicted" else ()))
        by_kind[d["kind"]][key].append(made)
    missing = [
        (
            *key,
            _runs(rows),
            _pooled(rows, "coverage"),
            *_sizes(rows, "rejected"),
            _sizes(rows, "known_only_rejected")[0],
        )
        for key, rows in by_kind["missing"].items()
    ]
    guessed = [
        (
            *key,
            _runs(rows),
            *(_pooled(rows, "coverage", way) for way in ("em", "bounds")),
            *_sizes(rows, "rejected", "em"),
            *(_pooled([m for m in rows if m["true_difference"]], "coverage", w) for w in ("weighting", "threshold")),
        )
        for key, rows in by_kind["proxy"].items()
    ]
    wrong = [
        (
            *key,
            _runs(rows),
            f"{rows[0]['true_difference']:+.3f}",
            *(f"{rows[0]['mean_estimate'][way]:+.3f}" for way in ("em", "weighting", "threshold")),
            *(_pooled(rows, "coverage", way) for way in ("em", "bounds")),
        )
        for key, rows in by_kind["contradicted"].items()
    ]
    share = [f"called a disparity at {level}" for level in ("0.05", "0.01", "0.001")]
    return "\n".join(
        [
            "Missing labels. Coverage of the 95 % interval, with and without a true difference; then, without one, how "
            "often it is called a disparity, and how often by the people whose group is known:\n",
            table(
                ("people", "unknown", "missing", "runs", "coverage", *share, "known people at 0.05"),
                missing,
            ),
            "\nGuessed groups, 2 to 5 of them, with the assumption of the estimate true. A weak proxy seldom gives a "
            "probability near 0 or 1. Bounds were made in every fifth run. The last two columns: how often the "
            "shortcuts' intervals cover a difference of 0.1:\n",
            table(
                ("people", "proxy", "runs", "estimate covers", "bounds cover", *share, "weighting", "threshold"),
                guessed,
            ),
            "\nThe assumption false: decisions also rise (or fall) with the probability of the first of three groups, "
            "which no data can tell from a difference between groups:\n",
            table(
                (
                    "people", "proxy", "effect of the probability", "runs", "true difference", "estimate", "weighting",
                    "threshold", "estimate covers", "bounds cover",
                ),
                wrong,
            ),
            "",
        ]
    )  # fmt: skip


def _runs(rows: list[Any]) -> str:
    return f"{sum(m['replications'] for m in rows):,}"


def _pooled(rows: list[Any], *keys: str) -> str:
    """Average a share over the runs of several designs."""
    if not rows:
        return "–"
    shares = []
    for made in rows:
        value: Any = made
        for key in keys:
            value = value[key]
        shares.append(value * made["replications"])
    return f"{sum(shares) / sum(m['replications'] for m in rows):.3f}"


def _sizes(rows: list[Any], *keys: str) -> list[str]:
    """Return how often no difference is called one, at three levels."""
    none = [m for m in rows if m.get("true_difference", m["design"].get("rates") != [0.3, 0.3]) in (0, False)]
    return [_pooled(none, *keys, level) for level in ("0.05", "0.01", "0.001")]


def watched() -> str:
    """Say how often a watch gives a false alarm, how soon it gives a right one, and what a batch costs."""
    stored = json.loads((ROOT / "calibration" / "watch.json").read_text())
    levels = ("0.05", "0.01", "0.001")
    nulls = [
        (
            line["design"],
            *(f"{100 * line['alarms'][level] / line['streams']:.2f} %" for level in levels),
            f"{100 * line['peeked_z_05'] / line['streams']:.0f} %",
        )
        for line in stored["null"]
    ]
    first = stored["null"][0]
    head = (
        f"{first['streams']:,} streams of {first['looks']:,} looks, groups alike",
        "alarms at 5 %",
        "at 1 %",
        "at 0.1 %",
        "z-test at 5 % at each look",
    )
    families = "; ".join(
        f"{line['any_false_alarm']} of {line['streams']} with {line['with_difference']} true differences among "
        f"{line['questions']} questions"
        for line in stored["family"]
    )
    ends = stored["intervals"]
    missed = ", ".join(f"{n} for a {kind}" for kind, n in ends["missed"].items())
    delay = stored["delay"]
    rows = [
        (f"pairs, rates {c['rate']:g} and {c['rate'] + c['gap']:g}", c["ours_median_pairs"], c["chugg_median_pairs"],
         c["z_test_once_pairs_for_half_power"])
        for c in delay["pairs"]
    ]  # fmt: skip
    rows += [
        (f"census, {' and '.join(c['groups'])}, pairs", c["ours_median_pairs"], c["chugg_median_pairs"], None)
        for c in delay["census"]
    ]
    rows += [
        (f"batches of {c['sizes'][0]} and {c['sizes'][1]}, gap {c['gap']:g}", c["ours_median_batches"],
         c["chugg_median_batches"], None)
        for c in delay["unequal"]
    ]  # fmt: skip
    rows += [
        (f"a gap of {c['gap']:g} after {c['calm_batches']} calm batches", c["ours_median_batches"],
         c["chugg_median_batches"], None)
        for c in stored["drift"]
    ]  # fmt: skip
    shown = [(what, *("–" if v is None else f"{v:,.0f}" for v in values)) for what, *values in rows]
    delay_head = ("median delay until the alarm at 5 %", "Evenhand", "betting on pairs", "z-test looked at once")
    speed = json.loads((ROOT / "benchmarks" / "watch.json").read_text())["rows"]
    costs = [
        (r["what"], f"{1000 * r['ours']:.0f} ms", f"{1000 * r['group_by']:.0f} ms", f"{r['ratio']:.2f}")
        for r in speed
        if "ratio" in r
    ]
    return (
        table(head, nulls)
        + f"\n\nStreams with a false alarm where several questions share the error rate: {families}. Of "
        f"{ends['streams']} confidence sequences of {ends['looks']} looks those that ever miss the truth: {missed}. "
        f"Equivalence claimed on the margin itself: {ends['equivalence_on_the_margin']}. A change claimed where there "
        f"is none: {ends['change_where_none']}.\n\n"
        + table(delay_head, shown)
        + "\n\n"
        + table(("one batch", "counted in", "its group-by alone", "ratio"), costs)
        + "\n"
    )


def best() -> str:
    """Say how often ratios to the best group are wrong, beside the bare rule of four fifths."""
    stored = json.loads((ROOT / "calibration" / "best.json").read_text())
    equal = [r for r in stored["rows"] if r["kind"] == "equal"]
    bare = []
    for name, sizes in stored["tables"].items():
        rows = [r for r in equal if r["table"] == name]
        flagged = ", ".join(f"{r['flagged'] / r['used']:.2f}" for r in rows)
        people = f"{min(sizes):,} to {max(sizes):,}"
        bare.append((len(sizes), people, flagged, _used(rows), *_wrong_at(rows, "wrong")))
    words = {
        "equal": "all equal",
        "tied": "every second one the highest, the others nine tenths of it",
        "edge": "every second one the highest, the others four fifths of it",
        "small high": "the smallest group's the highest, all others four fifths of it",
        "large high": "the largest group's the highest, all others four fifths of it",
    }
    truths = []
    for kind, truth in words.items():
        rows = [r for r in stored["rows"] if r["kind"] == kind]
        cells = []
        for key in ("wrong", "claimed", "missed"):
            if key not in rows[0]:
                cells += ["–", "–"]
                continue
            worst = max(r[key][0] / r["used"] for r in rows)
            cells += [" / ".join(_wrong_at(rows, key)), f"{worst:.3f}"]
        truths.append((truth, len(rows), _used(rows), *cells))
    many = [(r["design"], f"{r['tables']:,}", *(f"{n / r['tables']:.4f}" for n in r["wrong"])) for r in stored["many"]]
    exact = [
        (", ".join(map(str, r["sizes"])), *(f"{share:.4f}" for share in r["largest"].values())) for r in stored["exact"]
    ]
    rates = ", ".join(f"{rate:g}" for rate in dict.fromkeys(r["rate"] for r in equal))
    at = [f"false finding at {alpha:g}" for alpha in stored["alphas"]]
    worst = "worst design at 0.05"
    return (
        "Tables of the sizes of published audits, with all rates equal. Flagged: how often the bare rule finds some "
        f"group below four fifths, at common rates of {rates}. False finding: how often an audit has any finding at "
        f"all that should not be there, over these rates together. {STAR}\n\n"
        + table(("groups", "people in a group", "flagged by the bare rule", "audits", *at), bare)
        + "\n\nThe same tables by their true rates; shares of audits at 0.05 / 0.01 / 0.001. Missed: some interval "
        "misses its true ratio.\n\n"
        + table(
            ("true rates", "designs", "audits", "false disparity", worst, "false equivalence", worst, "missed", worst),
            truths,
        )
        + "\n\nFar out: many more tables of the large groups. Edge: every second rate is the highest, and the others "
        "lie on four fifths of it.\n\n"
        + table(("groups, highest rate, true rates, margin", "tables", *at), many)
        + "\n\nTiny groups, the chance of a false finding added up over all tables, at the worst common rate:\n\n"
        + table(("people in the groups", *at), exact)
        + "\n"
    )


def _used(rows: list[dict[str, Any]]) -> str:
    return f"{sum(r['used'] for r in rows):,}"


def _wrong_at(rows: list[dict[str, Any]], key: str) -> list[str]:
    """Pool counts of wrong audits over designs, at the three levels."""
    n = sum(r["used"] for r in rows)
    return [rejects(sum(r[key][k] for r in rows), n, alpha) for k, alpha in enumerate(ALPHAS)]


def suppression() -> str:
    """Say what an attacker works out of tables from which groups are held back."""
    stored = json.loads((ROOT / "calibration" / "suppression.json").read_text())
    totals, held = stored["totals"], [t for t in stored["tables"] if t.get("held")]
    keys = ("counts", "recovered", "known_small", "too_narrow")
    rows = [
        (what, *(f"{totals[key][k]:,}" for k in keys), f"{totals[key]['narrowest_in_thresholds']:g}")
        for what, key in (("only small groups left out", "unprotected"), ("`suppress`", "protected"))
    ]
    head = ("", "counts held back", "worked out exactly", "found to be small", "range below the threshold",
            "narrowest range, in thresholds")  # fmt: skip
    groups = {key: f"{sum(t[key] for t in held):,}" for key in ("held", "groups", "small")}
    none = sum(t["small"] == 0 for t in stored["tables"])
    return (
        table(head, rows)
        + f"\n\nOf {totals['tables']} tables {none} had no small count, {totals['refused']} were refused because too "
        f"little was left, and in {len(held)} groups were held back: {groups['held']} of their {groups['groups']} "
        f"groups, for the sake of {groups['small']} with a small count. Counts published that were small or wrong: "
        f"{totals['small_or_wrong_published']}.\n"
    )


def clusters() -> str:
    """Say how often tests of clustered rows reject a true null, and how often their intervals cover."""
    stored = json.loads((ROOT / "calibration" / "clusters.json").read_text())
    sizes = [
        (*_clustered(d), *(rejects(d["rejected"][f"{a:g}"][0] * d["runs"], d["runs"], a) for a in ALPHAS),
         f"{d['rejected']['0.05'][1]:.3f}")
        for d in stored["size"]
    ]  # fmt: skip
    covered = [
        (*_clustered(d), covers(d["covered"][0] * d["runs"], d["runs"]), f"{d['covered'][1]:.3f}")
        for d in stored["coverage"]
    ]
    head = ("clusters", "metric", "rows in each", "correlation", "runs")
    return (
        f"{STAR}\n\n"
        + table((*head, "at .05", "at .01", "at .001", "rows for people, at .05"), sizes)
        + f"\n\nHow often 95 % intervals of a difference of {stored['gap']:g} cover it:\n\n"
        + table((*head, "covers", "rows for people"), covered)
        + "\n"
    )


def _clustered(design: dict[str, Any]) -> tuple[Any, ...]:
    """Describe a design of `clusters`: which clusters, metric, rows in each, correlation and runs."""
    metric = f"rate of {design['rate']:g}" if design["metric"] == "selection_rate" else f"`{design['metric']}`"
    rows = 2 if design["kind"] == "pairs" else design["size"]
    each = f"{rows}" if design["equal"] else f"{rows}, unequal"
    return f"{design['clusters']} {design['kind']}", metric, each, f"{design['correlation']:g}", f"{design['runs']:,}"


def small_groups() -> str:
    """Say how often tests reject a true null, and AUC intervals miss, with a small group beside large ones."""
    stored = json.loads((ROOT / "calibration" / "small_groups.json").read_text())["designs"]
    questions = {
        "pair": "first beside last",
        "global": "all at once",
        "difference": "interval of a difference",
        "ratio": "interval of a ratio",
    }
    each, pooled = [], defaultdict(list)
    for row in stored:
        sizes = f"{row['sizes'][0]:,} and {len(row['sizes']) - 1} of {row['sizes'][-1]:,}"
        for name, words in questions.items():
            counts = {key.removeprefix(f"{name}_"): n for key, n in row.items() if key.startswith(f"{name}_")}
            if counts.get("tested"):
                what = (f"`{row['metric']}`", sizes, words)
                pooled[what].append(counts)
                warned = f"{counts['warned'] / counts['tested']:.2f}"
                each.append((what[0], row["world"], *what[1:], f"{counts['tested']:,}", *_sizes_of(counts), warned))
    sums = [(*what, len(rows), f"{(n := _added(rows))['tested']:,}", *_sizes_of(n)) for what, rows in pooled.items()]
    levels = ("at .05", "at .01", "at .001")
    return (
        f"How often a test rejects a true null, or an interval misses the truth, over all designs together. {STAR}\n\n"
        + table(("metric", "rows", "question", "designs", "data sets", *levels), sums)
        + "\n\nEach design. Warned: how often the result carried a warning.\n\n"
        + table(("metric", "design", "rows", "question", "data sets", *levels, "warned"), each)
        + "\n"
    )


def _sizes_of(counts: Mapping[str, int]) -> list[str]:
    """Write the rates of `small_groups` at the three levels."""
    return [rejects(counts[f"rejected_{a:g}"], counts["tested"], a) for a in ALPHAS]


def strata() -> str:
    """Say how often comparisons within strata are wrong, beside the crude test, and what they cost."""
    stored = json.loads((ROOT / "calibration" / "strata.json").read_text())["designs"]
    kinds = {"rate": "rate", "mean": "mean", "auc": "AUC", "global": "rates of three groups"}
    truths = {
        "null": "",
        "difference": ", +0.1 apart",
        "ratio": ", ratio 1.6",
        "opposite": ", opposite directions",
        "skewed": ", skewed",
        "unequal": ", unequal spread",
    }
    pooled, each = [], []
    for kind, word in kinds.items():
        rows = [r for r in stored if r["design"]["kind"] == kind]
        pooled.append((word, len(rows), f"{sum(r['tested'] for r in rows):,}", *_within(rows)))
    for r in stored:
        d = r["design"]
        rates = ", rates {:g} to {:g}".format(*d["rates"]) if d["kind"] in ("rate", "global") else ""
        what = kinds[d["kind"]] + truths[d["truth"]] + rates
        each.append((what, f"{d['strata']:,}", "{} to {}".format(*d["rows"]), f"{r['tested']:,}", *_within([r])))
    shares = ("at .05", "at .01", "at .001", "mid-p at .05", "crude at .05", "covers difference", "covers ratio")
    speed = json.loads((ROOT / "benchmarks" / "strata.json").read_text())
    costs = [
        (
            ", ".join(f"`{m}`" for m in r["metrics"]),
            f"{r['without']:.2f} s",
            f"{r['within']:.2f} s",
            f"{r['ratio']:.1f}",
        )
        for r in speed["measured"]
    ]
    cost_head = (f"{speed['rows']:,} rows, {speed['strata']:,} strata", "without strata", "within", "times as long")
    return (
        "How often a test rejects where nothing differs within strata, and how often 95 % intervals cover the "
        f"conditional value; in brackets of how many tests or intervals. {STAR}\n\n"
        + table(("value", "designs", "runs", *shares), pooled)
        + "\n\nEach design:\n\n"
        + table(("value", "strata", "rows each", "runs", *shares), each)
        + f"\n\nTwo-sided intervals that contradict their p-value: {sum(r['contradictions'] for r in stored)}.\n\n"
        + table(cost_head, costs)
        + "\n"
    )


def _within(rows: list[dict[str, Any]]) -> list[str]:
    """Pool designs of `strata`: sizes where nothing differs, those of mid-p and crude tests, and coverage."""
    null = _added(r for r in rows if r["design"]["truth"] in ("null", "skewed", "unequal"))
    rates = _added(r for r in rows if r["design"]["kind"] == "rate" and r["design"]["truth"] == "null")
    made = _added(rows)
    first, *others = (rejects(null[f"rejected_{a}"], null["tested"], a) for a in ALPHAS)
    more = (
        (rejects(rates["midp_0.05"], rates["tested"]), rates["tested"]),
        (_share(rates, "crude", "crude_tested"), rates["crude_tested"]),
        (covers(made["covered_difference"], made["intervals"]), made["intervals"]),
        (covers(made["covered_ratio"], made["intervals_ratio"]), made["intervals_ratio"]),
    )
    counted = [f"{share} ({n:,})" if n else "–" for share, n in ((first, null["tested"]), *more)]
    return [counted[0], *others, *counted[1:]]


def _added(rows: Iterable[dict[str, Any]]) -> Counter[str]:
    """Add up the counts of several designs."""
    total: Counter[str] = Counter()
    for row in rows:
        total.update({key: value for key, value in row.items() if key != "design"})
    return total


def scanned() -> str:
    """Say how often the scan reports a subgroup where none differs, beside other tools, what it finds and its cost."""
    stored = json.loads((ROOT / "calibration" / "scan.json").read_text())
    words = {
        "compas": "COMPAS, decisions shuffled within outcome, 6 attributes",
        "census": "Adult, a trained model's decisions shuffled within outcome, 8 attributes",
        "random attributes": "Adult, the model's own decisions, 6 attributes of pure noise",
        "whole audit": "the same with 3 of the attributes, by `evenhand.audit` as it is: group audit and scan together",
        "designs": "500 designs, 5 to 20 attributes, base rates that differ",
        "designs, split": "200 of them; found on one half, confirmed on the other",
        "planted": "500 designs in which one attribute matters: false subgroups without it",
    }
    rows = [
        (
            what,
            f"{one['samples']:,}",
            f"{one['described'][0]:,} to {one['described'][2]:,}",
            f"{one['tested'][0]:,} to {one['tested'][2]:,}",
            *(
                rejects(wrong, one["samples"], alpha)
                for wrong, alpha in zip(one["wrong"], (0.05, 0.01, 0.001), strict=True)
            ),
        )
        for what, one in ((words[key], stored[key]) for key in words)
    ]
    told, fdr = stored["planted"], stored["planted, false discovery rate"]
    measured = json.loads((ROOT / "benchmarks" / "scan.json").read_text())
    tools = list(measured["false"])
    false = [
        (name, f"{one['reported']:.1f}", f"{one['runs_with_any']} of {one['runs']}", f"{one['seconds']:.2f}")
        for name, one in measured["false"].items()
    ]
    found = [(what, *(one["found"][name] for name in tools)) for what, one in measured["found"]["rows"].items()]
    totals = [sum(one["found"][name] for one in measured["found"]["rows"].values()) for name in tools]
    planted = sum(one["runs"] for one in measured["found"]["rows"].values())
    speed, engine = measured["speed"], measured["engine"]
    grown = [
        (one["attributes"], one["depth"], f"{one['described']:,}", f"{one['tested']:,}", f"{one['seconds']:.1f}")
        for one in measured["growth"]
    ]
    return (
        "Share of audits that report any false subgroup, with the number of subgroups described and, over both error "
        f"rates, tested. {STAR}\n\n"
        + table(("people", "audits", "described", "tested", "at 0.05", "at 0.01", "at 0.001"), rows)
        + f"\n\nWhere one attribute matters, {told['shown']:,} subgroups were reported with {told['intervals']:,} "
        f"intervals; in {told['samples_missed']} of {told['samples']} audits some interval missed its true difference. "
        f"With the false discovery rate, in {fdr['samples']} of these designs, {fdr['shown']:,} were "
        "reported; the mean share of false ones was "
        f"{fdr['false_share']:.3f}, and {fdr['false']} of them did not name the attribute that matters.\n\n"
        "### Beside other tools\n\n"
        "COMPAS, people who did not offend again, with shuffled errors: subgroups that each tool reports, all of them "
        "false. DivExplorer: |t| above 1.96. mcgrad: its p-value of the worst segment at most 0.05. sliceline and "
        "pysubgroup have no test: what stands in their list of ten (pysubgroup: ten for more and ten for fewer "
        "errors).\n\n"
        + table(("tool", "reported on average", "runs with any", "processor seconds"), false)
        + "\n\nPlanted subgroups found, by the number of conditions and people, among 12,000 people. The other tools "
        "get the bar that they pass in 5 of 100 searches of people without a planted subgroup; the scan has its own. "
        f"mcgrad does not name a subgroup: passing the bar is enough for it. Of {planted}, in all: "
        + ", ".join(f"{name} {total}" for name, total in zip(tools, totals, strict=True))
        + ".\n\n"
        + table(("planted", *(f"{name}, of {measured['found']['rows'][found[0][0]]['runs']}" for name in tools)), found)
        + "\n\n### Cost\n\n"
        f"{speed['subgroups']:,} subgroups of {speed['rows']:,} people with {speed['permutations']:,} permutations "
        f"take {speed['seconds']:.2f} processor seconds; DivExplorer lists {speed['divexplorer_patterns']:,} patterns "
        f"of the same people, without permutations, in {speed['divexplorer_seconds']:.2f}. {engine['rows']:,} rows "
        f"with {engine['attributes']} attributes in DuckDB are read in {engine['read_seconds']:.1f} s and searched in "
        f"{engine['search_seconds']:.1f} s; the engine's own query of all these subgroups (grouping sets) takes "
        f"{engine['grouping_sets_seconds']:.1f} s: {engine['ratio']:.1f} times as long in all.\n\n"
        "20,000 people, 1,999 permutations, one rate:\n\n"
        + table(("attributes", "conditions", "described", "tested", "processor seconds"), grown)
        + "\n"
    )


def scan_metrics() -> str:
    """Say how often a search of metrics beyond rates shows what is not there, and what it finds."""
    stored = json.loads((ROOT / "calibration" / "scan_metrics.json").read_text())["designs"]
    worlds = {"exchangeable": "nothing differs", "spread": "one group's spread or scores differ, no value does"}
    false, planted = [], []
    for r in stored:
        d, n = r["design"], r["tested"]
        about = f"{r['subgroups'] / n:.0f}"
        if d["world"] == "planted":
            found = (f"{r[f'planted_{a}'] / n:.2f}" for a in ALPHAS[:2])
            alone = (f"{r[key] / r['alone_tested']:.2f}" for key in ("alone_bonferroni", "alone"))
            planted.append((f"`{d['metric']}`", f"{d['rows']:,}", about, n, *found, *alone))
        else:
            shown = (rejects(r[f"shown_{a}"], n, a) for a in ALPHAS)
            false.append((f"`{d['metric']}`", worlds[d["world"]], f"{d['rows']:,}", about, f"{n:,}", *shown))
    tests = max(r["alone_tested"] for r in stored)
    return (
        "How often a search shows any subgroup where no value differs, at three error rates, on simulated data. "
        f"{STAR}\n\n"
        + table(("metric", "world", "people", "subgroups", "data sets", "at .05", "at .01", "at .001"), false)
        + "\n\nHow often a subgroup of two conditions that does differ is shown by the search, beside the group "
        f"audit's test of that one subgroup on the first {tests} data sets: at .05 divided by the number of subgroups, "
        "which is what somebody who tests them one by one must use, and at .05, which only somebody may use who named "
        "this subgroup beforehand.\n\n"
        + table(
            (
                "metric",
                "people",
                "subgroups",
                "data sets",
                "search, .05",
                "search, .01",
                "alone, divided",
                "alone, .05",
            ),
            planted,
        )
        + "\n"
    )


def scan_example() -> str:
    """Show what a scan of the built-in census data gave; ``evidence/scan_example.py`` makes it."""
    result = AuditResult.from_dict(json.loads((ROOT / "evidence" / "scan_example.json").read_text()))
    pairs = [(f, e) for f, e in zip(result.findings, result.evidence, strict=True) if isinstance(e, ScanEvidence)]
    first, of_first = pairs[0]
    rows = [
        (
            f"`{f.groups[0]}`",
            f"{e.people:,}",
            f"{e.values[f.groups[0]]:.3f}",
            f"{e.values['rest']:.3f}",
            f"{f.estimate:+.3f} [{f.interval.low:+.3f}, {f.interval.high:+.3f}]",
            f"{e.more_people:+,.0f}",
            shown_p(f.pvalue_adjusted),
            f.verdict,
        )
        for f, e in pairs
    ]
    beyond = [
        f"against the other people of `{part.parent}` by {part.difference:+.3f} [{part.low:+.3f}, {part.high:+.3f}]"
        for part in of_first.beyond_parents
    ]
    head = (
        "subgroup",
        "people",
        "its fnr",
        "the rest's",
        "difference",
        "people more or fewer",
        "p adjusted",
        "verdict",
    )
    detectable = table(
        ("people in the subgroup", "difference found in 8 of 10 cases"),
        [(f"{d.size:,}", f"{d.difference:.3f}") for d in of_first.detectable],
    )
    said = (
        f"With the four attributes, {of_first.described:,} subgroups can be described; {of_first.considered:,} have "
        f"enough people, and {of_first.tested:,} were tested. A single one had to reach a p-value of "
        f"{shown_p(of_first.critical_pvalue)}. `{first.groups[0]}` stands for {of_first.stands_for_number:,} others "
        f"that were shown too. What it adds to shorter descriptions: it differs {', and '.join(beyond)}."
    )
    return "\n\n".join([f"> {first.reason}", table(head, rows), said, detectable]) + "\n"


PAGES = {
    "scan-example": scan_example,
    "scan": scanned,
    "best": best,
    "suppression": suppression,
    "clusters": clusters,
    "strata": strata,
    "scan-metrics": scan_metrics,
    "watch": watched,
    "compare": compared,
    "methods": methods,
    "mitigation": mitigation_certificate,
    "mitigation-speed": mitigation_speed,
    "hypotheses": hypotheses,
    "calibration": calibration,
    "small-groups": small_groups,
    "rates": rates,
    "projection": projection,
    "projection-speed": projection_speed,
    "tail": tail,
    "power": power,
    "budget": budget,
    "unknown": unknown,
    "defaults": defaults,
    "benchmarks": benchmarks,
    "cost": cost,
    "reproductions": reproductions,
    "proxy": proxy,
    "proxy-speed": proxy_speed,
    "individual": individual,
    "individual-speed": individual_speed,
    "peers": peers,
}


def main() -> None:
    """Write all pages."""
    for name, make in PAGES.items():
        (ROOT / "evidence" / f"{name}.md").write_text(make())


if __name__ == "__main__":
    main()
