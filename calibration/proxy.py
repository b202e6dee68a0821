"""Coverage and false discovery of the proxy audit on designs where the truth is known.

    python calibration/proxy.py                            # all designs, 300 samples each: writes proxy.json
    python calibration/proxy.py --part 1/4 --out a.json    # the first, fifth, ... design
    python calibration/proxy.py --merge a.json b.json ...  # join the parts of one run: writes proxy.json
    python calibration/proxy.py --samples 40 --only curve --out x.json   # quicker; designs whose name contains a word

The audit runs with its defaults, but without the descent, which nothing here looks at. One group (40 %) against a
reference. Features: a carrier (used by the model, differs between the groups), a bystander (goes with the group and
with the carrier, used by nothing), a used number (same law in both groups), two noise features and a noise category.
Only the carrier carries anything, and it carries the whole gap. Truth by quadrature over the used number. The model is
known here; `proxy_trained.py` has models that were trained.
"""

from __future__ import annotations

import argparse
import json
import math
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
SEED = 20262
CATEGORIES = np.array(["p", "q", "r", "s"], dtype=object)


MEASURES: dict[str, dict[str, float]] = {
    name: {name: 1.0} for name in ("fpr", "fnr", "fdr", "sp", "accuracy", "cal", "da")
}
MEASURES["fpr/2 + fnr/2"] = {"fpr": 0.5, "fnr": 0.5}


@dataclass(frozen=True)
class Design:
    """How predictions reach the audit, what is measured, and on how many rows."""

    measure: str
    rows: int
    source: str  # "model", "scores" (blurred, no model), "decisions" (of a model), "decisions alone"
    curve: float = 0.0  # an outcome that bends in the used number
    twist: float = 0.0  # an outcome in which carrier and used number interact: no additive model is right
    interactions: bool = True
    weights: bool = False  # rows drawn with unequal probability
    penalty: float = 0.0  # lambda of `da`: then whatever differs between the groups counts, the bystander too
    samples: float = 1.0  # share of the usual number

    @property
    def name(self) -> str:
        """Return one line that names the design."""
        said = [self.measure, f"{self.rows} rows", self.source]
        said += [f"curve {self.curve:g}"] * bool(self.curve) + [f"twist {self.twist:g}"] * bool(self.twist)
        said += [f"lambda {self.penalty:g}"] * bool(self.penalty) + ["sampling weights"] * self.weights
        return ", ".join(said + ["additive"] * (not self.interactions))


DESIGNS = (
    *(Design(m, 2000, "model") for m in MEASURES),
    Design("fpr", 500, "model"),
    Design("fnr", 500, "model"),
    Design("fpr", 2000, "scores"),
    Design("sp", 2000, "scores"),
    Design("fpr", 2000, "decisions"),
    Design("fpr", 2000, "decisions alone"),
    Design("fpr", 2000, "model", weights=True),
    Design("fpr", 2000, "model", curve=0.5),
    Design("fpr", 2000, "model", twist=1.0),
    Design("fpr", 2000, "model", twist=1.0, interactions=False, samples=0.2),
    Design("da", 2000, "model", penalty=0.1),
)


def predicted(carrier: Any, used: Any, design: Design) -> Any:
    """Return the model's prediction."""
    score = expit(-1.2 + 1.2 * carrier + 0.8 * used)
    return (score >= 0.5).astype(float) if design.source.startswith("decisions") else score


def outcome_probability(carrier: Any, used: Any, design: Design) -> Any:
    """Return P(Y=1 | x), the same in both groups."""
    return expit(-1 + carrier + 0.7 * used + design.curve * (used**2 - 1) - 2 * design.twist * used * carrier)


def bystander_rate(goes_with: Any, member: Any) -> Any:
    """Return P(bystander = 1)."""
    return 0.1 + 0.5 * goes_with + 0.2 * member


def draw(design: Design, rng: np.random.Generator) -> dict[str, Any]:
    """Draw one data set."""
    n = int(design.rows / 0.7) if design.weights else design.rows
    member = rng.random(n) < GROUP
    carrier = (rng.random(n) < np.where(member, *CARRIER)).astype(float)
    used = rng.normal(size=n)
    goes_with = carrier
    if design.curve:
        goes_with = np.abs(used) > 1
    if design.twist:
        goes_with = (used > 0) == (carrier == 1)
    bystander = (rng.random(n) < bystander_rate(goes_with, member)).astype(float)
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
    role = "decision" if design.source == "decisions alone" else "score"
    out = {
        "outcome": y,
        role: h.astype(int) if role == "decision" else h,
        "groups": np.where(member, "group", "reference"),
    }
    kept = np.ones(n, dtype=bool)
    if design.weights:
        chance = np.where(used > 0, 1.0, 0.4)
        kept = rng.random(n) < chance
        out["weight"] = 1 / chance
    out = {k: v[kept] for k, v in out.items()}
    return {**out, "groups": {"g": out["groups"]}, "features": {k: v[kept] for k, v in features.items()}}


class Truth:
    """The gap and the proxy scores, by quadrature."""

    def __init__(self, design: Design):
        self.design = design
        self.carrier, self.used = np.array([0.0, 1.0])[:, None], NODES[None, :]
        self.group, self.reference = (np.array([1 - s, s])[:, None] * MASSES[None, :] for s in CARRIER)
        self.terms = MEASURES[design.measure]
        self.centre, self.gap = {}, 0.0
        for name, coefficient in self.terms.items():
            n, d = self._parts(name, self.carrier, self.used)
            scale = float((self.group * d).sum())
            ratio, other = (
                float((self.group * n).sum()) / scale,
                float((self.reference * n).sum() / (self.reference * d).sum()),
            )
            slope, gap = 1.0, ratio - other
            if name == "da":
                gap = ratio * math.log(ratio / other) + (1 - ratio) * math.log((1 - ratio) / (1 - other))
                slope = float(logit(ratio) - logit(other))
            self.centre[name] = ratio, scale, slope
            self.gap += coefficient * gap
        # Carrier and bystander jointly, in both groups, and the log ratio of the two laws.
        rate = [bystander_rate(self.carrier, member) for member in (1, 0)]
        joint = [np.array([1 - s, s])[:, None] * np.hstack([1 - b, b]) for s, b in zip(CARRIER, rate, strict=True)]
        self.joint, self.log_ratio = joint[0], np.log(joint[0] / joint[1])
        self.gap += design.penalty * float((joint[0] * self.log_ratio).sum())
        self.carriers = ("carrier", "bystander") if design.penalty else ("carrier",)

    def _parts(self, name: str, carrier: Any, used: Any) -> tuple[Any, Any]:
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
        }[name]

    def _psi(self, carrier: Any, used: Any) -> Any:
        total = 0.0
        for name, coefficient in self.terms.items():
            n, d = self._parts(name, carrier, used)
            ratio, scale, slope = self.centre[name]
            total = total + coefficient * slope * (n - ratio * d) / scale
        return total

    def score(self, feature: str, grid: np.ndarray | None) -> float:
        """Return definition 5; a number is toggled over the grid the audit used."""
        if feature == "carrier":
            on, off = (self._psi(np.full_like(self.group, v), self.used) for v in (1.0, 0.0))
            step = self.design.penalty * (self.log_ratio[1] - self.log_ratio[0])  # for bystander 0 and 1
            rate = self.joint.sum(axis=0)
            return sum(float(rate[b] * (self.group * np.abs(on - off + step[b])).sum()) for b in (0, 1))
        if feature == "bystander":
            step = self.design.penalty * np.abs(self.log_ratio[:, 1] - self.log_ratio[:, 0])
            return float(self.joint.sum(axis=1) @ step)
        if feature == "used" and grid is not None:
            values = np.stack([self._psi(self.carrier, np.full_like(self.group, v)) for v in grid])
            return float((self.group * (values.max(0) - values.min(0))).sum())
        return 0.0


def run(design: Design, samples: int, seed: int) -> dict[str, Any]:
    """Audit many data sets of one design."""
    truth = Truth(design)
    tally: dict[str, dict[str, float]] = {}
    wrong: dict[float, set[int]] = {0.05: set(), 0.01: set()}
    first = 0
    for k in range(samples):
        arrays = draw(design, np.random.default_rng([seed, k]))
        weight = {"weight_kind": "sampling"} if design.weights else {}
        model = None
        if design.source in ("model", "decisions"):
            model = lambda rows: predicted(  # noqa: E731
                *(np.asarray(rows[name], dtype=float) for name in ("carrier", "used")), design
            )
        result = proxy.audit_proxy(
            AuditData.from_arrays(**arrays, **weight),
            measure=MEASURES[design.measure],
            alignment_penalty=design.penalty,
            reference="reference",
            model=model,
            interactions=design.interactions,
            max_steps=0,
        )
        levels = next(e.levels for e in result.evidence if getattr(e, "feature", "") == "used")
        grid = np.array([float(row.level) for row in levels])
        for f, e in zip(result.findings, result.evidence, strict=True):
            feature = f.measure.partition(":")[2]
            row = tally.setdefault(feature or "gap", dict.fromkeys(COLUMNS, 0))
            # The carrier is all that differs: the whole gap goes through it and nothing through the others.
            exact = truth.gap * (feature in ("", "carrier"))
            row["tested"] += 1
            row["estimate"] += f.estimate
            row["truth"] += exact
            row["intervals"] += f.interval is not None
            row["covered"] += f.interval is not None and inside(f.interval.low, exact, f.interval.high)
            row["disparity"] += f.verdict == "disparity"
            row["equivalent"] += f.verdict == "equivalent"
            for level, key in ((0.05, "rejected"), (0.01, "rejected_01")):
                row[key] += f.pvalue <= level
            if feature:
                score, band = truth.score(feature, grid), e.score_interval
                row["score"] += e.score
                row["true_score"] += score
                row["score_intervals"] += band is not None
                row["score_covered"] += band is not None and inside(band.low, score, band.high)
            for level, count in wrong.items():
                if feature not in ("", *truth.carriers) and f.pvalue_adjusted <= level:
                    count.add(k)
            first += getattr(e, "feature", "") == "carrier" and e.ranking.rank <= 2
    return {
        "design": design.name,
        "samples": samples,
        "false_discovery": len(wrong[0.05]),
        "false_discovery_01": len(wrong[0.01]),
        "carrier_in_first_two": first,
        "rows": tally,
    }


COLUMNS = (
    "tested",
    "estimate",
    "truth",
    "intervals",
    "covered",
    "disparity",
    "equivalent",
    "rejected",
    "rejected_01",
    "score",
    "true_score",
    "score_intervals",
    "score_covered",
)


def inside(low: float, value: float, high: float) -> bool:
    """Whether an interval holds a value; a score that is exactly 0 has an interval of no width."""
    return low - 1e-9 <= value <= high + 1e-9


def merge(parts: list[Path]) -> dict[str, Any]:
    """Join the parts of one run, in the order of the designs."""
    found = [json.loads(p.read_text()) for p in parts]
    if len({(f["seed"], f["samples"]) for f in found}) != 1:
        raise SystemExit("Parts of one run have one seed and one number of samples.")
    lines = {line["design"]: line for f in found for line in f["lines"]}
    if len(lines) != sum(len(f["lines"]) for f in found):
        raise SystemExit("A design is there twice.")
    missing = [d.name for d in DESIGNS if d.name not in lines]
    print(f"Not run: {missing or 'none'}.")
    return {**found[0], "not_run": missing, "lines": [lines[d.name] for d in DESIGNS if d.name in lines]}


def report(line: dict[str, Any]) -> None:
    """Print one design."""
    print(f"{line['design']}: any false discovery {line['false_discovery'] / line['samples']:.3f}")
    for name, row in line["rows"].items():
        n = row["tested"]
        shares = [
            f"{row[k] / row[of]:.3f}" if row[of] else "none"
            for k, of in (("covered", "intervals"), ("score_covered", "score_intervals"))
        ]
        print(
            f"    {name:15s} true {row['truth'] / n:+.4f} mean {row['estimate'] / n:+.4f} coverage {shares[0]} "
            f"disparity {row['disparity'] / n:.3f} equivalent {row['equivalent'] / n:.3f}; score {shares[1]}",
            flush=True,
        )


def main() -> None:
    """Run the designs and write them down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--only", default="", help="run designs whose name contains this")
    parser.add_argument("--part", default="1/1", help="run one part of the designs, such as 2/4")
    parser.add_argument("--merge", type=Path, nargs="+", help="join the parts of one run")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    asked = parser.parse_args()
    stored: dict[str, Any] = {"alpha": 0.05, "seed": asked.seed, "samples": asked.samples, "lines": []}
    if asked.merge:
        asked.out.write_text(json.dumps(merge(asked.merge), indent=1) + "\n")
        return
    part, parts = (int(v) for v in asked.part.split("/"))
    proxy._RESAMPLES = 199  # the gap's own test is calibrated with the group audit
    for design in DESIGNS[part - 1 :: parts]:
        if asked.only in design.name:
            stored["lines"].append(run(design, max(int(asked.samples * design.samples), 1), asked.seed))
            report(stored["lines"][-1])
            asked.out.write_text(json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    main()
