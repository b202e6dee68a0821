"""Write the evidence pages of the docs from stored results.

    python evidence/pages.py

Reads ``calibration/*.json``, ``benchmarks/*.json`` and the claim tables in ``reproductions/*/README.md``; writes
``evidence/*.md``. A test checks that the pages are up to date.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from scipy import stats

from evenhand import METRICS

ROOT = Path(__file__).resolve().parent.parent


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
        sizes = [d["rejected"] / d["tested"] for d in group]
        covers = [d["covered"] / d["tested"] for d in group]
        ratios = [d["ratio_covered"] / d["ratios"] for d in group if d["ratios"] >= 100 and successes(d) >= 5]
        rows.append(
            (f"`{metric}`" if " " not in metric else metric, len(group), f"{_mean(sizes):.3f}", f"{max(sizes):.3f}",
             f"{min(covers):.3f}", f"{_mean(covers):.3f}", f"{min(ratios):.3f}" if ratios else "–")
        )  # fmt: skip
    second = {d["design"]: d for d in stored.get("again", [])}
    listed = [
        (d["design"], *_rates(d), *(_rates(second[d["design"]]) if d["design"] in second else "–––"))
        for d in designs
        if max(d["rejected"], d["tested"] - d["covered"]) > most(d["tested"])
    ]
    text = [
        f"{len(designs)} designs; simulated data sets per design: {stored['replications']}. Size: how often a true "
        "null is rejected at 5 %. Coverage: how often the 95 % interval holds the truth. A ratio's coverage is shown "
        "for designs with at least five expected successes in the second group: with fewer it is often undefined.\n",
        table(
            (
                "metric",
                "designs",
                "mean size",
                "largest size",
                "smallest coverage",
                "mean coverage",
                "smallest ratio coverage",
            ),
            rows,
        ),
        "\n### Designs that look wrong\n",
        "Designs with more rejections, or less coverage, than a right procedure shows in 99 % of runs. About one "
        "design in a hundred is listed by chance, so each was run again on fresh data sets, more of them "
        f"({max((d['tested'] for d in second.values()), default=0):,}): the second three columns are free of that "
        "selection. Warned: how often the finding carried a warning.\n",
        table(("design", "size", "coverage", "warned", "size again", "coverage again", "warned again"), listed),
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
        + "\n"
    )


def individual_speed() -> str:
    """List the seconds of the individual audit and of its peers."""
    stored = json.loads((ROOT / "benchmarks" / "individual.json").read_text())
    rows = [
        (r["case"], f"{r['seconds']:.2f} s", r["peer"], f"{r['peer_seconds']:.2f} s", f"{r['ratio']:.1f}")
        for r in stored["rows"]
    ]
    head = ("case", "ours, the whole audit", "peer", "peer's", "times as fast")
    return table(head, rows) + "\n\nProcessor seconds on one thread each; the same number of gradients per person.\n"


def proxy() -> str:
    """List coverage, false naming and power of the proxy audit."""
    stored = json.loads((ROOT / "calibration" / "proxy.json").read_text())
    if "samples" not in stored:
        return "No stored results yet.\n"
    noise = ("noise", "noise_number", "noise_category")
    scores, named, pairs = [], [], []
    for line in stored["lines"]:
        rows, n = line["rows"], line["samples"]
        pairs += [
            (name, row["tested"], _share(row, "covered", "intervals"), _share(row, "rejected", "tested"))
            for name, row in rows.items()
            if name.startswith("pairs")
        ]
        shown = [_share(rows[k], "covered", "intervals") for k in ("gap", "carrier", "bystander", "used")]
        least = min((_share(rows[k], "covered", "intervals") for k in noise), key=str)
        moved = [_share(rows[k], "carried_covered", "carried_intervals") for k in ("carrier", "bystander", "used")]
        scores.append((line["design"], n, *shown, least, *moved))
        raw = [f"{rows[k]['rejected'] / n:.3f}" for k in ("carrier", "bystander", "used")]
        most_noise = max(rows[k]["rejected"] / n for k in noise)
        named.append((line["design"], n, *raw, f"{most_noise:.3f}", f"{line['false_discovery'] / n:.3f}"))
    return (
        "Coverage of the 95 % intervals of the gap, of proxy scores and of what a feature carries. A dash: the audit "
        "gives no interval there, because it would not hold.\n\n"
        + table(
            (
                "design",
                "samples",
                "gap",
                "carrier",
                "bystander",
                "used number",
                "noise, least",
                "carried: carrier",
                "carried: bystander",
                "carried: used number",
            ),
            scores,
        )
        + "\n\nHow often a feature is named at 5 %, before adjustment, and how often any idle one is named after it. "
        "Only the carrier should be; with a lambda every difference counts, and the bystander too.\n\n"
        + table(
            ("design", "samples", "carrier", "bystander", "used number", "noise, most", "any idle one, adjusted"), named
        )
        + ("\n\nPairs of features, `fpr` on 2,000 rows.\n\n" if pairs else "")
        + (table(("pairs", "tested", "coverage", "named at 5 %, before adjustment"), pairs) if pairs else "")
        + f"\n\nOne run of `calibration/proxy.py` with seed {stored['seed']} and the audit's defaults."
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
        (f"{r['rows']:,}", *(f"{r[key]['seconds']:.1f} s, {r[key]['megabytes']:.0f} MB"
         for key in ("numbers", "report", "bare_read")),
         f"{r['numbers']['seconds'] / r['bare_read']['seconds']:.1f}")
        for r in whole["rows"]
    ]  # fmt: skip
    return (
        table(("what", "peer", "ours", "peer's", "ratio"), rows)
        + f"\n\n{_machine(stored)}\n\n## A whole audit\n\n"
        + "The default audit of a CSV file of predictions with scores and two attributes, each in a fresh process with "
        "Python's start. Drawing the report costs seconds that do not depend on the rows; `evenhand audit` begins them "
        "on a second core while it reads.\n\n"
        + table(("rows", "to findings.json", "with the report", "bare pandas.read_csv", "ratio"), costs)
        + f"\n\n{_machine(whole)}\n"
    )


def _machine(stored: dict[str, Any]) -> str:
    return "Machine: " + ", ".join(f"{k} {v}" for k, v in stored["machine"].items()) + "."


def tail() -> str:
    """Tables of the tail audit: recovery, coverage, size, power and speed."""
    stored = json.loads((ROOT / "calibration" / "tail.json").read_text())
    cells = {part: {n.rsplit(", ", 1)[0]: {} for n in found} for part, found in stored.items()}
    for part, found in stored.items():
        for name, cell in found.items():
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
    error = "A star marks a coverage below, or a size above, what a right procedure shows in 99 % of runs."
    recovered = [
        (law, *(f"{row[k]['shape, mean error']:+.3f} ± {row[k]['shape, standard deviation']:.3f}" for k in sizes))
        for law, row in cells["intervals"].items()
    ]
    different = [
        (name, c["samples"], c.get("permutations", 249), _size(c, "rejected"), _size(c, "by permutation alone"),
         _size(c, "by interval alone"), _cover(c, "coverage"))
        for name, c in stored["difference"].items()
    ]  # fmt: skip
    speed = json.loads((ROOT / "benchmarks" / "tail.json").read_text())
    text = [
        f"Seeds {', '.join(map(str, seeds))}; nothing was chosen on them. {error}\n",
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
        "\n### Two groups with equal return levels\n",
        "How often the test at 5 % rejects, and how often the 95 % interval of the difference covers 0; "
        "samples and permutations are listed. The audit takes the larger p-value of the two. Laws that differ are "
        "moved so that their return levels agree.\n",
        table(
            ("groups", "samples", "permutations", "size", "permutation alone", "interval alone", "coverage"), different
        ),
        "\n### Power at the smallest detectable difference\n",
        "The first group is moved by the difference that the audit says would be shown 4 times in 5; "
        f"{samples['power']} samples each.\n",
        table(
            ("groups", "shown", "permutation alone", "interval alone"),
            [
                (n, *(f"{c[k]:.2f}" for k in ("rejected", "by permutation alone", "by interval alone")))
                for n, c in stored["power"].items()
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
    return f"{cell[key]:.3f}" + ("*" if round(cell[key] * n) < stats.binom.ppf(0.01, n, 0.95) else "")


def _size(cell: dict[str, Any], key: str) -> str:
    n = cell["samples"]
    return f"{cell[key]:.3f}" + ("*" if round(cell[key] * n) > most(n) else "")


def _range(values: Iterable[int]) -> str:
    found = sorted(set(values))
    return f"{found[0]:,}" if len(found) == 1 else f"{found[0]:,} to {found[-1]:,}"


def reproductions() -> str:
    """Join the claim tables."""
    pages = []
    for readme in sorted((ROOT / "reproductions").glob("*/README.md")):
        text = readme.read_text()
        text = re.sub(r"^(#+) ", r"#\1 ", text, flags=re.MULTILINE)
        pages.append(text.replace("](../../docs/", "]("))
    return "\n".join(pages) or "No stored results yet.\n"


def _rates(design: dict[str, Any]) -> tuple[str, str, str]:
    n = design["tested"]
    return f"{design['rejected'] / n:.3f}", f"{design['covered'] / n:.3f}", f"{design['warned'] / n:.2f}"


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


PAGES = {
    "calibration": calibration,
    "projection": projection,
    "tail": tail,
    "power": power,
    "budget": budget,
    "benchmarks": benchmarks,
    "reproductions": reproductions,
    "proxy": proxy,
    "proxy-speed": proxy_speed,
    "individual": individual,
    "individual-speed": individual_speed,
}


def main() -> None:
    """Write all pages."""
    for name, make in PAGES.items():
        (ROOT / "evidence" / f"{name}.md").write_text(make())


if __name__ == "__main__":
    main()
