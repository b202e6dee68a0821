"""Error rate and power of the search for means, AUC, calibration and means of rates, simulated.

    python calibration/scan_metrics.py --runs 1000  # goes on from what is stored in scan_metrics.json; half an hour
    python calibration/scan_metrics.py --short      # one design of each kind; prints only

People have four attributes; subgroups of up to three conditions with at least 20 people are searched, about a hundred.
"exchangeable": the value does not depend on who belongs where. "spread": one race's values are four times as wide, or
its scores of another distribution, and all subgroups have one value of the metric. Counted is how often any subgroup is
shown at three levels. "planted": one subgroup differs; beside how often the search shows it stands how often the group
audit's test of that subgroup alone rejects, at the level and at the level over the number of subgroups.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evenhand import METRICS, AuditData
from evenhand.audits.scan.families import family_of
from evenhand.audits.scan.options import ScanOptions
from evenhand.audits.scan.subgroups import Subgroups, subgroups_of
from evenhand.inference.samples import Draws
from evenhand.inference.scan.step_down import step_down

HERE = Path(__file__).parent
ALPHAS = (0.05, 0.01, 0.001)
VALUES = {"sex": 2, "race": 3, "job": 4, "age": 3}
PLANTED = {"sex": 1, "race": 0}  # the subgroup that differs
SMALLEST = 20
SHORT_RUNS, PIECE = 60, 20  # data sets of a design in the short form, and between two writes of the file
ALONE = 20  # data sets on which the group audit's test of the planted subgroup is made too


@dataclass(frozen=True)
class Design:
    """A world to draw from."""

    metric: str
    rows: int
    world: str  # "exchangeable", "spread", "planted"
    base: float = 0.3  # about the share of people with outcome 1
    effect: float = 0.0  # how much the planted subgroup differs
    resamples: int = 999

    @property
    def name(self) -> str:
        """A name for tables."""
        return f"{self.metric}, {self.world}, {self.rows:,} rows, outcome 1 in {self.base:.0%}"


def draw(design: Design, rng: np.random.Generator) -> AuditData:
    """Draw one set of people."""
    n = design.rows
    share = {name: np.arange(k, 0, -1) / (k * (k + 1) / 2) for name, k in VALUES.items()}
    groups = {name: rng.choice(VALUES[name], n, p=p) for name, p in share.items()}
    apart = groups["race"] == 2
    planted = (groups["sex"] == PLANTED["sex"]) & (groups["race"] == PLANTED["race"])
    labels = {name: np.char.add("v", codes.astype(str)) for name, codes in groups.items()}
    kind = METRICS[design.metric].kind
    where = math.log(design.base / (1 - design.base))
    wide = design.world == "spread"
    if design.metric in ("mae", "mean_residual"):
        # A numeric outcome: skewed errors for `mae`, symmetric ones for the mean residual.
        noise = rng.exponential(size=n) - 1 if design.metric == "mae" else rng.normal(size=n)
        noise = noise * np.where(apart & wide, 4.0, 1.0)
        score = rng.normal(size=n)
        return AuditData.from_arrays(outcome=score + noise + design.effect * planted, score=score, groups=labels)
    spread = np.where(apart & wide, 2.0, 1.0)
    latent = rng.normal(size=n)
    if kind == "auc":
        outcome = rng.random(n) < design.base
        # Scores of twice the scale with the same AUC; where both are mixed it is lower by less than .01.
        score = spread * (latent + (1.0 - design.effect * planted) * (outcome - 0.5))
        return AuditData.from_arrays(outcome=outcome.astype(int), score=score, groups=labels)
    logit = where + spread * latent if kind == "calibration" else where + latent
    score = 1 / (1 + np.exp(-logit))
    outcome = (rng.random(n) < 1 / (1 + np.exp(-(logit + design.effect * planted)))).astype(int)
    if kind == "table":
        # One race is decided 1 more often whatever the outcome: tpr up, tnr down, their mean the same.
        chance = np.where(outcome == 1, 0.7, 0.3) + np.where(apart & wide, 0.2, 0.0)
        chance = np.where(planted, chance - design.effect * (2 * outcome - 1), chance)
        return AuditData.from_arrays(
            outcome=outcome, decision=(rng.random(n) < chance).astype(int), score=score, groups=labels
        )
    return AuditData.from_arrays(outcome=outcome, score=score, groups=labels)


def searched(design: Design, data: AuditData, seed: int) -> tuple[np.ndarray, Any, Subgroups, Any]:
    """Return adjusted p-values, the family, the subgroups, and what compares two of them."""
    subgroups = subgroups_of(data, list(VALUES), ScanOptions())
    family, between = family_of(METRICS[design.metric], data, subgroups, SMALLEST)
    parts = [
        step_down(family.evidence, drawn, n_resamples=design.resamples, seed=seed, name=f"scan/{place}").pvalue
        for place, drawn in enumerate(family.references)
    ]
    return np.max(parts, axis=0), family, subgroups, between


def simulate(design: Design, runs: int, first: int = 0) -> dict[str, Any]:
    """Count data sets, from number `first` on, in which something is shown, or the planted subgroup is."""
    out: dict[str, Any] = {"tested": 0, "subgroups": 0, "alone_tested": 0, "alone": 0, "alone_bonferroni": 0}
    out |= {f"shown_{a}": 0 for a in ALPHAS} | {f"planted_{a}": 0 for a in ALPHAS}
    for i in range(first, first + runs):
        data = draw(design, np.random.default_rng([0, i, design.rows]))
        pvalue, family, subgroups, between = searched(design, data, i)
        out["tested"] += 1
        out["subgroups"] += pvalue.size
        for a in ALPHAS:
            out[f"shown_{a}"] += int(pvalue.min() <= a)
        if design.world != "planted":
            continue
        place = _place(family, subgroups)
        if place is None:
            continue
        for a in ALPHAS:
            out[f"planted_{a}"] += int(pvalue[place] <= a)
        if i < ALONE:
            people = family.lattice.members[place].toarray()[0] > 0
            alone = between(people, ~people).test(0, 1, Draws(n_resamples=9999, seed=i)).pvalue
            out["alone_tested"] += 1
            out["alone"] += int(alone <= 0.05)
            out["alone_bonferroni"] += int(alone <= 0.05 / pvalue.size)
    return out


def _place(family: Any, subgroups: Subgroups) -> int | None:
    """Return where the planted subgroup is in the family; None when it has too few people."""
    names = [f"{name}=v{code}" for name, code in PLANTED.items()]
    wanted = sorted(subgroups.labels.index(name) for name in names)
    own = np.sort(family.lattice.conditions, axis=1)
    hit = np.flatnonzero((own == [-1, *wanted]).all(axis=1))
    return int(hit[0]) if hit.size else None


def grid() -> Iterator[Design]:
    """Yield the designs of the full run."""
    yield Design("brier", 600, "exchangeable", 0.05)
    yield Design("log_loss", 600, "exchangeable", 0.05)
    yield Design("mae", 600, "exchangeable")
    yield Design("mean_residual", 600, "exchangeable")
    yield Design("mean_residual", 600, "spread")
    yield Design("auc", 800, "exchangeable")
    yield Design("auc", 800, "spread")
    yield Design("auc", 1500, "exchangeable", 0.1)
    yield Design("calibration_error", 800, "exchangeable")
    yield Design("calibration_error", 800, "spread", 0.1)
    yield Design("balanced_accuracy", 800, "exchangeable")
    yield Design("balanced_accuracy", 800, "spread")
    yield Design("mean_residual", 800, "planted", effect=0.4)
    yield Design("auc", 1500, "planted", effect=1.0)
    yield Design("calibration_error", 1500, "planted", effect=1.0)
    yield Design("balanced_accuracy", 1500, "planted", effect=0.15)


def short() -> Iterator[Design]:
    """Yield one design of each kind, for the tests."""
    yield Design("log_loss", 300, "exchangeable", 0.1, resamples=199)
    yield Design("mean_residual", 300, "spread", resamples=199)
    yield Design("auc", 400, "exchangeable", resamples=199)
    yield Design("calibration_error", 400, "exchangeable", resamples=199)
    yield Design("balanced_accuracy", 400, "spread", resamples=199)


def main() -> None:
    """Simulate the designs and store what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--runs", type=int, default=1000, help="data sets of each design, with those that are stored")
    parser.add_argument("--only", type=int, nargs="*", help="numbers of designs in the grid")
    parser.add_argument("--out", type=Path, default=HERE / "scan_metrics.json")
    words = parser.parse_args()
    if words.short:
        for design in short():
            _say(design, simulate(design, SHORT_RUNS))
        return
    designs = list(grid())
    kept = json.loads(words.out.read_text())["designs"] if words.out.exists() else []
    stored = {Design(**one.pop("design")): Counter(one) for one in kept}
    for at in range(len(designs)) if words.only is None else words.only:
        counts = stored.setdefault(designs[at], Counter())
        while counts["tested"] < words.runs:
            counts.update(simulate(designs[at], min(PIECE, words.runs - counts["tested"]), first=counts["tested"]))
            listed = [{"design": asdict(d), **stored[d]} for d in designs if d in stored]
            words.out.write_text(json.dumps({"designs": listed}, indent=1) + "\n")
        _say(designs[at], counts)


def _say(design: Design, counts: Mapping[str, int]) -> None:
    """Print what one design gave."""
    n = counts["tested"]
    levels = " ".join(f"{counts[f'shown_{a}'] / n:.4f}" for a in ALPHAS)
    own = " ".join(f"{counts[f'planted_{a}'] / n:.3f}" for a in ALPHAS)
    print(f"{design.name}: n {n}, {counts['subgroups'] / n:.0f} subgroups: shown {levels}, planted {own}", flush=True)


if __name__ == "__main__":
    main()
