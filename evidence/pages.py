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


def benchmarks() -> str:
    """List every stored benchmark with its ratio."""
    path = ROOT / "benchmarks" / "group.json"
    if not path.exists():
        return "No stored results yet.\n"
    stored = json.loads(path.read_text())
    rows = [
        (r["what"], r["peer"], f"{r['ours']:.4f} s", f"{r['theirs']:.4f} s",
         f"{r['ratio']:.2f} (ours over theirs)" if "at_most" in r else f"{r['ratio']:,.1f}")
        for r in stored["rows"]
    ]  # fmt: skip
    machine = ", ".join(f"{k} {v}" for k, v in stored["machine"].items())
    return table(("what", "peer", "ours", "peer's", "ratio"), rows) + f"\n\nMachine: {machine}.\n"


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


PAGES = {"calibration": calibration, "projection": projection, "benchmarks": benchmarks, "reproductions": reproductions}


def main() -> None:
    """Write all pages."""
    for name, make in PAGES.items():
        (ROOT / "evidence" / f"{name}.md").write_text(make())


if __name__ == "__main__":
    main()
