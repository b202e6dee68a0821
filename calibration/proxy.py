"""Coverage and false discovery of the proxy audit on designs where the truth is known.

    python calibration/proxy.py                # all designs, 300 samples each, half an hour: writes proxy.json
    python calibration/proxy.py --samples 40   # quicker
    python calibration/proxy.py --only curve   # designs whose name contains a word

One group (40 %) against a reference. Features: a carrier (used by the model, differs between the groups), a bystander
(goes with the group and with the carrier, used by nothing), a used number (same law in both groups), two noise features
and a noise category. Only the carrier carries anything. Truth by quadrature over the used number.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, logit

import evenhand.audits.proxy as proxy
from evenhand.intake.data import AuditData

CARRIER = (0.6, 0.3)  # its share in group and reference
GROUP = 0.4
NODES, MASSES = np.polynomial.hermite_e.hermegauss(60)
MASSES = MASSES / MASSES.sum()
CATEGORIES = np.array(["p", "q", "r", "s"], dtype=object)


@dataclass(frozen=True)
class Design:
    """How predictions reach the audit, what is measured, and on how many rows."""

    measure: str
    rows: int
    source: str  # "model", "scores" (blurred, no model), "decisions" (of a model that can be called)
    curve: float = 0.0  # an outcome that bends in the used number
    twist: float = 0.0  # an outcome in which carrier and used number interact: no additive model is right
    nuisance: str = "logistic"
    interactions: bool = False  # the audit's default is True: products that the outcome model misses are added
    samples: float = 1.0  # share of the usual number

    @property
    def name(self) -> str:
        """Return one line that names the design."""
        bent = f", curve {self.curve:g}" if self.curve else ""
        bent += f", twist {self.twist:g}" if self.twist else ""
        learner = f", {self.nuisance}" if self.nuisance != "logistic" else ""
        added = ", interactions" if self.interactions else ""
        return f"{self.measure}, {self.rows} rows, {self.source}{bent}{learner}{added}"


DESIGNS = (
    *(Design(m, 2000, "model") for m in ("fpr", "fnr", "fdr", "sp", "accuracy", "cal", "da")),
    Design("fpr", 500, "model"),
    Design("fnr", 500, "model"),
    Design("fpr", 2000, "scores"),
    Design("sp", 2000, "scores"),
    Design("fpr", 2000, "decisions"),
    Design("fpr", 2000, "model", curve=0.5),
    Design("fpr", 2000, "model", twist=1.0),
    Design("fpr", 2000, "model", interactions=True, samples=0.5),
    Design("fpr", 500, "model", interactions=True, samples=0.5),
    Design("fpr", 2000, "model", twist=1.0, interactions=True, samples=0.5),
    Design("fpr", 2000, "model", twist=1.0, nuisance="boosting", samples=0.02),
)


def predicted(carrier: Any, used: Any, design: Design) -> Any:
    """Return the model's prediction."""
    score = expit(-1.2 + 1.2 * carrier + 0.8 * used)
    return (score >= 0.5).astype(float) if design.source == "decisions" else score


def outcome_probability(carrier: Any, used: Any, design: Design) -> Any:
    """Return P(Y=1 | x), the same in both groups."""
    return expit(-1 + carrier + 0.7 * used + design.curve * (used**2 - 1) - 2 * design.twist * used * carrier)


def draw(design: Design, rng: np.random.Generator) -> dict[str, Any]:
    """Draw one data set."""
    n = design.rows
    inside = rng.random(n) < GROUP
    carrier = (rng.random(n) < np.where(inside, *CARRIER)).astype(float)
    used = rng.normal(size=n)
    goes_with = carrier
    if design.curve:
        goes_with = np.abs(used) > 1
    if design.twist:
        goes_with = (used > 0) == (carrier == 1)
    bystander = (rng.random(n) < 0.1 + 0.5 * goes_with + 0.2 * inside).astype(float)
    features = {
        "carrier": carrier,
        "bystander": bystander,
        "used": used,
        "noise": (rng.random(n) < 0.5).astype(float),
        "noise_number": rng.normal(size=n),
        "noise_category": rng.choice(CATEGORIES, n),
    }
    h = predicted(carrier, used, design)
    if design.source == "scores":
        h = expit(logit(h) + rng.normal(0, 0.15, n))
    y = (rng.random(n) < outcome_probability(carrier, used, design)).astype(int)
    group = np.where(inside, "group", "reference")
    return {"outcome": y, "score": h, "groups": {"g": group}, "features": features}


class Truth:
    """The gap and the proxy scores, by quadrature."""

    def __init__(self, design: Design):
        self.design = design
        self.carrier, self.used = np.array([0.0, 1.0])[:, None], NODES[None, :]
        self.group, self.reference = (np.array([1 - s, s])[:, None] * MASSES[None, :] for s in CARRIER)
        n, d = self._parts(self.carrier, self.used)
        self.scale = float((self.group * d).sum())
        self.ratio = float((self.group * n).sum()) / self.scale
        other = float((self.reference * n).sum() / (self.reference * d).sum())
        self.gap = self.ratio - other
        if design.measure == "da":
            p, q = self.ratio, other
            self.gap = p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
            self.slope = float(logit(p) - logit(q))

    def _parts(self, carrier: Any, used: Any) -> tuple[Any, Any]:
        h, e = predicted(carrier, used, self.design), outcome_probability(carrier, used, self.design)
        if self.design.source == "scores":  # the blur is independent noise on the logit: average it out
            t = logit(h)
            h = sum(m * expit(t + 0.15 * z) for z, m in zip(NODES, MASSES, strict=True))
        one = np.ones_like(h)
        return {
            "sp": (h, one),
            "da": (h, one),
            "fpr": (h * (1 - e), 1 - e),
            "fnr": ((1 - h) * e, e),
            "fdr": (h * (1 - e), h),
            "accuracy": (h * e + (1 - h) * (1 - e), one),
            "cal": (np.abs(e - h), one),
        }[self.design.measure]

    def _psi(self, carrier: Any, used: Any) -> Any:
        n, d = self._parts(carrier, used)
        if self.design.measure == "da":
            return self.slope * (n - self.ratio)
        return (n - self.ratio * d) / self.scale

    def score(self, feature: str, grid: np.ndarray | None) -> float:
        """Return definition 5; a number is toggled over the grid the audit used."""
        if feature == "carrier":
            on, off = (self._psi(np.full_like(self.group, v), self.used) for v in (1.0, 0.0))
            return float((self.group * np.abs(on - off)).sum())
        if feature == "used" and grid is not None:
            values = np.stack([self._psi(self.carrier, np.full_like(self.group, v)) for v in grid])
            return float((self.group * (values.max(0) - values.min(0))).sum())
        return 0.0


def run(design: Design, samples: int, seed: int) -> dict[str, Any]:
    """Audit many data sets of one design."""
    truth = Truth(design)
    tally: dict[str, dict[str, float]] = {}
    wrong = first = 0
    for k in range(samples):
        arrays = draw(design, np.random.default_rng([seed, k]))
        model = None
        if design.source != "scores":
            model = lambda X: predicted(X[:, 0].astype(float), X[:, 2].astype(float), design)  # noqa: E731
        result = proxy.audit_proxy(
            AuditData.from_arrays(**arrays),
            measure=design.measure,
            reference="reference",
            model=model,
            nuisance=design.nuisance,
            interactions=design.interactions,
            max_steps=0,
            folds=2 if design.nuisance != "logistic" else 5,
            max_rows=50_000 if design.nuisance == "logistic" else 300,
        )
        named = False
        for f, e in zip(result.findings, result.evidence, strict=True):
            feature = f.measure.partition(":")[2]
            grid = None
            if feature == "used":
                grid = np.array([float(row["level"]) for row in e["levels"]])
            exact = truth.score(feature, grid) if feature else truth.gap
            row = tally.setdefault(
                feature or "gap", {"covered": 0, "rejected": 0, "influence": 0, "score": 0.0, "truth": 0.0}
            )
            slack = 1e-9  # a score that is exactly 0 has an interval of no width
            row["covered"] += f.interval is not None and f.interval.low - slack <= exact <= f.interval.high + slack
            row["rejected"] += f.pvalue <= 0.05
            row["influence"] += e.get("influence_pvalue", math.nan) <= 0.05
            row["score"] += f.estimate / samples
            row["truth"] += exact / samples
            named |= feature not in ("", "carrier") and f.verdict == "disparity"
            first += feature == "carrier" and e["ranking"]["rank"] <= 2
        wrong += named
    return {
        "design": design.name,
        "samples": samples,
        "false_discovery": wrong,
        "carrier_in_first_two": first,
        "rows": tally,
    }


def main() -> None:
    """Run the designs and write them down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--only", default="", help="run designs whose name contains this")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    asked = parser.parse_args()
    proxy._RESAMPLES = 199  # the gap's own test is calibrated with the group audit
    lines = []
    for design in DESIGNS:
        if asked.only not in design.name:
            continue
        start = time.perf_counter()
        line = run(design, max(int(asked.samples * design.samples), 1), asked.seed)
        lines.append(line)
        n = line["samples"]
        false, took = line["false_discovery"] / n, time.perf_counter() - start
        print(f"{line['design']}: any false discovery {false:.3f} ({took:.0f} s)")
        for name, row in line["rows"].items():
            print(
                f"    {name:15s} true {row['truth']:.4f} mean {row['score']:.4f} coverage {row['covered'] / n:.3f} "
                f"p <= .05 {row['rejected'] / n:.3f} (influence alone {row['influence'] / n:.3f})",
                flush=True,
            )
        asked.out.write_text(json.dumps({"alpha": 0.05, "seed": asked.seed, "lines": lines}, indent=1) + "\n")


if __name__ == "__main__":
    main()
