"""Coverage of the intervals and size of the tests of the individual audit, where the truth is known.

    python calibration/individual.py [--short] [--replications 2000] [--seed 4] [--part 1/2] [--out FILE]
    python calibration/individual.py --merge FILE FILE ...

Two parts. A metric that is stated: a logistic model is audited along a free axis, where the flow has a closed form, so
that the true mean ratio and the true ratio of error rates are found by integration. The statistics are simulated
without discretisation error on all designs, and the whole audit, from `AuditData` to finding, where no rare group
carries the tail. A metric that is learned (the default): groups of known distance, or drawn at random, and logistic
models; the true ratio, under the directions and distances that the audit tends to, is that of a sample so large that
they are known. ``--learned SAMPLES`` runs this part only and keeps the stored rows of the others. ``--sampled SAMPLES``
does the same for audits in which the metric is learned from some of the rows only (`sample_rows`), or only some of the
rows are moved (`attack_rows`). Writes
``individual.json`` beside this file, or the file named by ``--out`` (``--short`` prints only). ``--part`` runs some of
the rows; ``--merge`` joins the files of all parts.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy import integrate, special, stats

from evenhand.audits.individual import audit_individual
from evenhand.intake import AuditData
from evenhand.kernels.flow.losses import log_softplus
from evenhand.kernels.flow.perceptron import Perceptron
from evenhand.kernels.flow.ratios import mean_ratio, rate_ratio
from evenhand.kernels.shared.logistic import fit_logistic
from evenhand.models.gradient import GradientModel

HERE = Path(__file__).parent
ALPHA = 0.05
STEPS = 400  # Euler steps of the whole audit: its error is then far below the standard error


@dataclass(frozen=True)
class Design:
    """A population x ~ N(0, spread²) with P(y = 1 | x) = expit(truth x), audited with the score slope * x.

    For a share `rare` of the people the slope along the free axis is `rare_slope`: they carry a long right
    tail.
    """

    name: str
    slope: float
    truth: float
    spread: float
    time: float
    rare: float = 0.0
    rare_slope: float = 0.0

    def parts(self) -> list[tuple[float, float]]:
        """Return share and slope of each kind of people."""
        return [(1 - self.rare, self.slope)] + ([(self.rare, self.rare_slope)] if self.rare else [])

    def moved(self, margin: np.ndarray, slope: np.ndarray | float) -> np.ndarray:
        """Return the margin after the flow: the inverse of m + exp(m), by Wright's omega."""
        c = margin + np.exp(margin) - np.square(slope) * self.time
        return np.asarray(c - special.wrightomega(c).real)

    def log_ratio(self, margin: np.ndarray, slope: np.ndarray | float) -> np.ndarray:
        """Return the log ratio of the loss after the flow to that before."""
        return log_softplus(-self.moved(margin, slope)) - log_softplus(-margin)

    def truths(self) -> tuple[float, float]:
        """Return the true mean ratio and the true ratio of error rates, by quadrature."""
        ratio = before = after = 0.0
        for share, slope in self.parts():
            c = 1.0 + slope**2 * self.time  # moved(m) < 0 exactly where m + exp(m) < c
            edge = float(c - special.wrightomega(c).real) / slope
            ratio += share * self._mean(lambda m, w=slope: np.exp(self.log_ratio(m, w)), slope, edge)
            before += share * self._mean(lambda m: (m < 0).astype(float), slope, edge)
            after += share * self._mean(lambda m, w=slope: (self.moved(m, w) < 0).astype(float), slope, edge)
        return ratio, after / before

    def _mean(self, value: Callable[[np.ndarray], np.ndarray], slope: float, edge: float) -> float:
        def part(x: float) -> float:
            p = special.expit(self.truth * x)
            v = value(np.array([slope * x, -slope * x]))
            return float(stats.norm.pdf(x, scale=self.spread) * (p * v[0] + (1 - p) * v[1]))

        reach = 9 * self.spread
        return float(integrate.quad(part, -reach, reach, limit=600, points=[-edge, 0.0, edge])[0])


DESIGNS = (
    Design("mild", slope=1.0, truth=1.0, spread=1.0, time=1.0),
    Design("at the tolerance", slope=1.0, truth=1.0, spread=1.0, time=0.7234),
    Design("strong", slope=2.0, truth=2.0, spread=1.0, time=1.0),
    Design(
        "one person in twenty carries the tail", slope=0.3, truth=1.0, spread=1.0, time=1.0, rare=0.05, rare_slope=3.0
    ),
    Design("few errors", slope=3.0, truth=6.0, spread=1.5, time=0.3),
)
SIZES = (30, 100, 400, 2000)


def simulate(design: Design, n: int, replications: int, seed: int = 0) -> dict[str, Any]:
    """Count misses of the two-sided 95 % intervals below and above, and of the one-sided limits."""
    ratio, errors = design.truths()
    rng = np.random.default_rng([seed, n, round(1e4 * design.time), round(100 * design.slope)])
    kinds = ("normal", "skewness")
    seen = {f"{k} {side}": 0 for k in kinds for side in ("too high", "too low", "rejects truth", "accepts truth")}
    rates = dict.fromkeys(("binomial", "fieller", "delta"), 0)
    rejects = dict.fromkeys(("binomial", "fieller"), 0)
    used = 0
    ones = np.ones(n)
    for _ in range(replications):
        x = design.spread * rng.normal(size=n)
        s = np.where(rng.random(n) < special.expit(design.truth * x), 1.0, -1.0)
        slope = np.where(rng.random(n) < design.rare, design.rare_slope, design.slope)
        margin = s * slope * x
        found = mean_ratio(design.log_ratio(margin, slope), ones)
        for k in kinds:
            low, high = found.interval(0.95, k)
            seen[f"{k} too high"] += ratio < low
            seen[f"{k} too low"] += ratio > high
            seen[f"{k} rejects truth"] += found.above(ratio, k) <= ALPHA
            seen[f"{k} accepts truth"] += found.below(ratio, k) <= ALPHA
        pair = rate_ratio((design.moved(margin, slope) < 0).astype(float), (margin < 0).astype(float), ones)
        if pair.before > 0:
            used += 1
            for k in rates:
                low, high = pair.interval(0.95, k)
                rates[k] += low <= errors <= high
            for k in rejects:
                rejects[k] += pair.above(errors, k) <= ALPHA
    out: dict[str, Any] = {"design": design.name, "n": n, "replications": replications, "true_loss_ratio": ratio,
                           "true_error_ratio": errors, "skewness": found.skewness}  # fmt: skip
    for k in kinds:
        out[f"{k}: coverage"] = 1 - (seen[f"{k} too high"] + seen[f"{k} too low"]) / replications
        for side in ("too high", "too low", "rejects truth", "accepts truth"):
            out[f"{k}: {side}"] = seen[f"{k} {side}"] / replications
    out |= {f"error ratio, {k}: coverage": v / max(used, 1) for k, v in rates.items()}
    out |= {f"error ratio, {k}: rejects truth": v / max(used, 1) for k, v in rejects.items()}
    out["error ratio undefined"] = 1 - used / replications
    return out


def through_audit(design: Design, n: int, replications: int, seed: int) -> dict[str, Any]:
    """Count the same for `audit_individual` itself, by the interval and the test it reports."""
    ratio, errors = design.truths()
    rng = np.random.default_rng([seed, n, round(1e4 * design.time), round(100 * design.slope), 1])
    net = Perceptron(weights=(np.array([[design.slope], [0.0]]),), biases=(np.zeros(1),))
    model = GradientModel(network=net, link="logit", classes=(0, 1))
    seen = dict.fromkeys(("loss_ratio covered", "loss_ratio rejects truth", "error_ratio covered"), 0)
    computed = dict.fromkeys(("loss_ratio", "error_ratio"), 0)
    for _ in range(replications):
        x = design.spread * rng.normal(size=n)
        y = (rng.random(n) < special.expit(design.truth * x)).astype(int)
        data = AuditData.from_arrays(
            outcome=y, features={"x": x, "z": rng.normal(size=n)}, groups={"g": np.arange(n) % 2}
        )
        result = audit_individual(
            data, model=model, similarity=["x"], steps=STEPS, step=design.time / STEPS, scale="none", tolerance=ratio,
            limit="none", refits=0, correction="none", rng=0,
        )  # fmt: skip
        for finding, truth in zip(result, (ratio, errors), strict=True):
            if finding.interval is None:
                continue
            computed[finding.measure] += 1
            seen[f"{finding.measure} covered"] += finding.interval.low <= truth <= finding.interval.high
        pvalue = result[0].pvalue
        seen["loss_ratio rejects truth"] += pvalue is not None and pvalue <= ALPHA
    out: dict[str, Any] = {"design": design.name, "n": n, "replications": replications, **computed}
    for key, value in seen.items():
        out[key] = value / max(computed[key.split()[0]], 1)
    return out


@dataclass(frozen=True)
class Learned:
    """Five standard normal inputs, two groups whose means differ by `gap` in the first, and a logistic model.

    Without `weights` the model is trained on as many other rows; with `given` it also has the group as a sixth input,
    whose coefficient is set to `coefficient` where that is not None.
    """

    name: str
    gap: float
    weights: tuple[float, ...] | None = None
    given: bool = False
    coefficient: float | None = None


TRUE_WEIGHTS = (1.0, 1.0, -0.5, 0.5, 0.0)
LEARNED = (
    Learned("random groups, trained model", 0.0),
    Learned("random groups, trained model given the group", 0.0, given=True),
    Learned("groups 0.3 apart, trained model given the group, coefficient 0", 0.3, given=True, coefficient=0.0),
    Learned("groups 0.3 apart, small ratio", 0.3, weights=(0.1, 1.0, -0.5, 0.5, 0.0)),
    Learned("groups 0.3 apart, ratio at the tolerance", 0.3, weights=(0.9, 1.0, -0.5, 0.5, 0.0)),
    Learned("groups 1 apart, ratio at the tolerance", 1.0, weights=(0.5, 0.8, -0.5, 0.5, 0.0)),
)
LEARNED_SIZES = (400, 2000)
# Rows of which so many teach the metric or are moved: designs by their place above.
SAMPLED_ROWS = 3000
SAMPLED = ({"sample_rows": 1000}, {"attack_rows": 1000})
SAMPLED_DESIGNS = (2, 4)
LARGE = 60_000


def drawn(design: Learned, n: int, rng: np.random.Generator) -> tuple[AuditData, GradientModel]:
    """Return rows to audit and the model, trained on other rows unless its weights are fixed."""
    group = rng.integers(0, 2, 2 * n)
    X = rng.normal(size=(2 * n, 5))
    X[:, 0] += design.gap * (group - 0.5)
    y = (rng.random(2 * n) < special.expit(X @ np.array(design.weights or TRUE_WEIGHTS))).astype(float)
    inputs = {f"x{j}": X[:, j] for j in range(5)} | ({"group": group.astype(float)} if design.given else {})
    weights, bias = np.array(design.weights or ()), 0.0
    if design.weights is None:
        fit = fit_logistic(np.column_stack(list(inputs.values()))[:n], y[:n])
        weights, bias = fit.coef.copy(), fit.intercept
        if design.coefficient is not None:
            weights[-1] = design.coefficient
    net = Perceptron(weights=(weights[:, None],), biases=(np.array([bias]),))
    names = np.where(group == 1, "a", "b")
    data = AuditData.from_arrays(
        outcome=y[n:].astype(int), features={k: v[n:] for k, v in inputs.items()}, groups={"group": names[n:]}
    )
    return data, GradientModel(network=net, link="logit", classes=(0, 1))


def with_learned_metric(design: Learned, n: int, replications: int, seed: int, **options: Any) -> dict[str, Any]:
    """Audit by defaults and options; count verdicts and, where the model is fixed, misses of the true ratios."""
    rng = np.random.default_rng([seed, n, LEARNED.index(design)])
    truth: tuple[float, ...] = ()
    if design.weights is not None:
        large, model = drawn(design, LARGE, rng)
        truth = tuple(f.estimate for f in audit_individual(large, model=model, refits=0, sample_rows=LARGE, rng=0))
    allowed = options | ({"tolerance": truth[0]} if "tolerance" in design.name else {})
    keys = ("computed", "disparity", "equivalent", "p .05", "p .01", "equivalence .05", "too high", "too low",
            "errors computed", "errors too high", "errors too low")  # fmt: skip
    seen = dict.fromkeys(keys, 0)
    ratios = []
    for _ in range(replications):
        data, model = drawn(design, n, rng)
        result = audit_individual(data, model=model, rng=0, **allowed)
        loss = result[0]
        seen["disparity"] += any(f.verdict == "disparity" for f in result)
        seen["equivalent"] += loss.verdict == "equivalent"
        for finding, evidence, true, word in zip(
            result, result.evidence, truth or (1.0, 1.0), ("", "errors "), strict=True
        ):
            if finding.interval is None:
                continue
            seen[f"{word}computed"] += 1
            seen[f"{word}too high"] += finding.interval.low > true
            seen[f"{word}too low"] += evidence.one_sided_high < true
        if loss.interval is not None:
            ratios.append(loss.estimate)
            seen["p .05"] += loss.pvalue <= 0.05
            seen["p .01"] += loss.pvalue <= 0.01
            seen["equivalence .05"] += result.evidence[0].equivalence_pvalue <= 0.05
    return {
        "design": design.name, "n": n, **options, "replications": replications, "true": list(truth), **seen,
        "mean_ratio": float(np.mean(ratios)) if ratios else None,
    }  # fmt: skip


def learned_rows(replications: int, seed: int) -> Iterator[dict[str, Any]]:
    """Run the designs with a learned metric, the larger size with a third of the samples."""
    for n in LEARNED_SIZES:
        for design in LEARNED:
            row = with_learned_metric(design, n, replications if n < 1000 else max(replications // 3, 1), seed)
            print(", ".join(f"{k} {v}" for k, v in row.items()), flush=True)
            yield row


def sampled_rows(replications: int, seed: int) -> Iterator[dict[str, Any]]:
    """Run some of these designs where a part of the rows teaches the metric, or is moved."""
    for place in SAMPLED_DESIGNS:
        for options in SAMPLED:
            row = with_learned_metric(LEARNED[place], SAMPLED_ROWS, replications, seed, **options)
            print(", ".join(f"{k} {v}" for k, v in row.items()), flush=True)
            yield row


def rows_of(part: str, replications: int, seed: int, short: bool) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Run the rows of one part: `simulate` for every design and size, `through_audit` for some."""
    which, _, parts = part.partition("/")
    cells = [(d, n) for d in (DESIGNS[:1] if short else DESIGNS) for n in ((100,) if short else SIZES)]
    mine = cells[int(which) - 1 :: int(parts)]
    rows, whole = [], []
    for design, n in mine:
        row = simulate(design, n, replications, seed)
        rows.append(row)
        print(
            f"{design.name:36} n {n:5} ratio {row['true_loss_ratio']:.3f} coverage normal "
            f"{row['normal: coverage']:.3f} skewness {row['skewness: coverage']:.3f} | size "
            f"{row['skewness: rejects truth']:.3f} equivalence {row['skewness: accepts truth']:.3f} "
            f"(normal {row['normal: accepts truth']:.3f}) | errors {row['true_error_ratio']:.2f}: exact "
            f"{row['error ratio, binomial: coverage']:.3f} Fieller {row['error ratio, fieller: coverage']:.3f} "
            f"delta {row['error ratio, delta: coverage']:.3f}",
            flush=True,
        )
        if not design.rare and n in (100, 400):
            whole.append(through_audit(design, n, replications // 4, seed))
            print("    " + ", ".join(f"{k} {v}" for k, v in whole[-1].items()), flush=True)
    return rows, whole


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--replications", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--out", type=Path, default=HERE / "individual.json")
    parser.add_argument("--learned", type=int, metavar="SAMPLES", help="only the learned metric, so many samples each")
    parser.add_argument("--sampled", type=int, metavar="SAMPLES", help="only audits on samples, so many samples each")
    parser.add_argument("--merge", type=Path, nargs="+", metavar="FILE")
    options = parser.parse_args()
    stored: dict[str, Any]
    alone = {"learned": (options.learned, learned_rows), "sampled": (options.sampled, sampled_rows)}
    for key, (replications, rows_with) in alone.items():
        if replications:
            stored = json.loads(options.out.read_text(encoding="utf-8")) if options.out.exists() else {}
            stored |= {f"{key}_seed": options.seed, key: []}
            for row in rows_with(replications, options.seed):
                stored[key].append(row)
                options.out.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
            return
    if options.merge:
        parts = [json.loads(path.read_text(encoding="utf-8")) for path in options.merge]
        if len({(p["seed"], p["replications"]) for p in parts}) > 1:
            raise SystemExit("The parts differ in seed or replications; run them again.")
        stored = {
            **parts[0],
            "rows": [r for p in parts for r in p["rows"]],
            "audit": [r for p in parts for r in p["audit"]],
        }
    else:
        replications = 400 if options.short else options.replications
        rows, whole = rows_of(options.part, replications, options.seed, options.short)
        stored = {
            "seed": options.seed,
            "replications": replications,
            "designs": [asdict(d) for d in DESIGNS],
            "rows": rows,
            "audit": whole,
        }
    order = {d.name: k for k, d in enumerate(DESIGNS)}
    for key in ("rows", "audit"):
        stored[key].sort(key=lambda row: (order[row["design"]], row["n"]))
        if len({(r["design"], r["n"]) for r in stored[key]}) < len(stored[key]):
            raise SystemExit("A row is in two parts.")
    if not options.short and options.out.exists():
        before = json.loads(options.out.read_text(encoding="utf-8"))
        stored |= {k: before[k] for k in before if k.startswith(("learned", "sampled"))}
    if not options.short:
        options.out.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
