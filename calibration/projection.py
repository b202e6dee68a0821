"""Size and power of the projection audit on designs where the truth is known.

    python calibration/projection.py                 # the full grid, 2000 samples each: writes projection.json
    python calibration/projection.py --samples 200   # quicker

Features do not depend on the group given the outcome, so every classifier satisfies equal opportunity, predictive
equality and equalized odds exactly; for statistical parity the outcome does not depend on the group either. Groups
are unequal. Distances of fitted models are measured once on a large population, from which samples are drawn.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.audits.projection import audit_projection
from evenhand.intake.data import AuditData
from evenhand.models import adapt
from evenhand.models.distances import boundary_distance
from evenhand.models.moves import Moves
from evenhand.models.surface import matrix_surface

SIZES = (500, 2000)
POPULATION = 20_000


@dataclass(frozen=True)
class Design:
    """One way to draw a sample and to audit it."""

    name: str
    draw: Callable[[np.random.Generator, int], dict[str, Any]]
    options: dict[str, Any] = field(default_factory=dict)
    sizes: tuple[int, ...] = SIZES
    truth: str = "fair"


def groups_of(rng: np.random.Generator, n: int, shares: tuple[float, ...]) -> np.ndarray:
    """Draw group codes with the given shares."""
    return rng.choice(len(shares), size=n, p=shares)


def appendix_b1(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """[si2021] appendix B.1: C = 1{x2 >= 0}, x2 ~ N(0, 5); the limit is 0.7006 chi-square."""
    cell = rng.choice(4, size=n, p=[0.4, 0.1, 0.4, 0.1])
    x = rng.normal(0, math.sqrt(5), n)
    return {
        "group": {"a": 1 - cell % 2},
        "outcome": (cell < 2).astype(int),
        "decision": (x >= 0).astype(int),
        "distance": np.abs(x),
    }


def rates(
    shares: tuple[float, ...], *, shift: float = 0.0, spread: float = 1.0, attributes: int = 1
) -> Callable[..., dict[str, Any]]:
    """Make a score with the same rates in all groups; group 1's may be spread out, or shifted (then not fair)."""

    def draw(rng: np.random.Generator, n: int) -> dict[str, Any]:
        group = {f"a{k}": groups_of(rng, n, shares) for k in range(attributes)}
        first = group["a0"]
        outcome = (rng.random(n) < 0.4 + 0.25 * (first == 1)).astype(int)
        wide = np.where(first == 1, spread, 1.0)
        signed = wide * (rng.normal(size=n) + np.where(outcome == 1, 0.4, -0.5)) + shift * (first == 1)
        return {"group": group, "outcome": outcome, "decision": (signed >= 0).astype(int), "distance": np.abs(signed)}

    return draw


def parity(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Decisions that depend on the group in no way."""
    signed = rng.standard_t(4, size=n) - 0.3
    return {
        "group": {"a0": groups_of(rng, n, (0.75, 0.25))},
        "outcome": rng.integers(0, 2, n),
        "decision": (signed >= 0).astype(int),
        "distance": np.abs(signed),
    }


def fitted(kind: str) -> Callable[..., dict[str, Any]]:
    """Fit a model whose distances are measured once on a population."""
    cache: dict[str, Any] = {}

    def population() -> dict[str, Any]:
        rng = np.random.default_rng(7)
        outcome = rng.integers(0, 2, POPULATION)
        X = rng.normal(size=(POPULATION, 4)) + 0.5 * outcome[:, None] * np.array([1.0, -1.0, 0.5, 0.0])
        X[:, 2] = np.exp(0.5 * X[:, 2])
        if kind == "mixed":
            X[:, 3] = rng.integers(0, 3, POPULATION)
        model, options = _model(kind, X[:2000], outcome[:2000])
        columns = {f"x{j}": column for j, column in enumerate(X.T)}
        asked = adapt(model, columns)
        if options.pop("margin", False):
            surface = matrix_surface(asked, list(columns))
            margin = surface.score(X) - surface.threshold
            return {"outcome": outcome, "decision": (margin >= 0).astype(int), "distance": np.abs(margin)}
        found = boundary_distance(asked, columns, Moves(**options))
        distance = found.distance**2 if kind == "kernel squared" else found.distance
        return {
            "outcome": outcome,
            "decision": found.decision.astype(int),
            "distance": distance,
            "said": found.described,
        }

    def draw(rng: np.random.Generator, n: int) -> dict[str, Any]:
        if not cache:
            cache.update(population())
        rows = rng.integers(POPULATION, size=n)
        outcome = cache["outcome"][rows]
        group = (rng.random(n) < np.where(outcome == 1, 0.35, 0.2)).astype(int)
        return {
            "group": {"a0": group},
            "outcome": outcome,
            "decision": cache["decision"][rows],
            "distance": cache["distance"][rows],
        }

    return draw


def _model(kind: str, X: np.ndarray, y: np.ndarray) -> tuple[Any, dict[str, Any]]:
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import SVC
    from sklearn.tree import DecisionTreeClassifier

    if kind in ("linear l2", "linear l1", "linear linf"):
        return LogisticRegression().fit(X, y), {"norm": kind.split()[1]}
    if kind == "mixed":
        return LogisticRegression().fit(X, y), {"categorical": ["x3"], "delta": 0.5}
    if kind.startswith("kernel"):
        return SVC(gamma=0.3).fit(X[:600], y[:600]), {"method": "kernel"}
    if kind == "tree":
        return DecisionTreeClassifier(max_leaf_nodes=20, random_state=0).fit(X, y), {}
    if kind == "forest":
        return RandomForestClassifier(20, min_samples_leaf=10, random_state=0).fit(X, y), {
            "starts": 2,
            "rounds": 1,
        }
    boosted = GradientBoostingClassifier(n_estimators=30, random_state=0).fit(X, y)
    if kind == "boosting margin":
        return boosted, {"margin": True}
    return boosted, {"starts": 2, "rounds": 1}


def designs() -> list[Design]:
    """List the grid."""
    two, seven = (0.8, 0.2), (0.4, 0.2, 0.1, 0.1, 0.1, 0.05, 0.05)
    listed = [
        Design("B.1 equal opportunity", appendix_b1, {"criterion": "equal_opportunity"}, (100, 500, 1000, 2000)),
        Design("statistical parity", parity, {"criterion": "statistical_parity"}),
        Design("predictive equality", rates(two, spread=3), {"criterion": "predictive_equality"}),
        Design("equalized odds m=2", rates(two, spread=3), {"criterion": "equalized_odds"}),
        Design("equal opportunity m=3", rates((0.5, 0.2, 0.2, 0.1), spread=3), {"criterion": "equal_opportunity"}),
        Design("equal opportunity m=6", rates(seven, spread=3), {"criterion": "equal_opportunity"}),
        Design("equalized odds m=6", rates((0.5, 0.2, 0.2, 0.1), spread=3), {"criterion": "equalized_odds"}),
        Design(
            "three attributes m=6",
            rates(two, attributes=3),
            {"criterion": "equalized_odds", "attribute": ["a0", "a1", "a2"]},
        ),
        Design("one-sided m=1", rates(two, spread=3), {"alternative": "greater"}),
        Design("one-sided m=3", rates((0.5, 0.2, 0.2, 0.1)), {"alternative": "greater", "reference": "0"}),
    ]
    # group 1 with outcome 1 gets decision 1 with probability Phi(0.6), the others with Phi(0.4): the edge of the null;
    # with outcome 0 Phi(-0.3) and Phi(-0.5)
    edge, other = (
        0.5 * (math.erf(a / math.sqrt(2)) - math.erf(b / math.sqrt(2))) for a, b in ((0.6, 0.4), (-0.3, -0.5))
    )
    both = {"criterion": "equalized_odds", "epsilon": [edge, other]}
    listed += [
        Design("edge of epsilon, one side", rates(two, shift=0.2), {"alternative": "greater", "epsilon": edge}),
        Design("edge of epsilon, two sides", rates(two, shift=0.2), {"epsilon": edge}),
        Design("edge of two epsilons, one side", rates(two, shift=0.2), {**both, "alternative": "greater"}),
        Design("edge of two epsilons, two sides", rates(two, shift=0.2), both),
    ]
    kinds = (
        "linear l2",
        "linear l1",
        "linear linf",
        "mixed",
        "kernel",
        "tree",
        "forest",
        "boosting",
        "boosting margin",
        "kernel squared",
    )
    listed += [Design(f"distance: {kind}", fitted(kind), {"criterion": "equalized_odds"}) for kind in kinds]
    listed += [
        Design(f"power: shift {shift}", rates(two, shift=shift), {"criterion": "equal_opportunity"}, truth="not fair")
        for shift in (0.2, 0.4)
    ]
    return listed


def rejections(design: Design, n: int, samples: int, seed: int, alpha: float = 0.05) -> dict[str, Any]:
    """Draw samples, audit them and count rejections, beside Wald's test."""
    rng = np.random.default_rng([seed, n])
    rejected, wald, undefined = 0, 0, 0
    total, square = 0.0, 0.0
    for _ in range(samples):
        drawn = design.draw(rng, n)
        data = AuditData.from_arrays(
            outcome=drawn["outcome"],
            decision=drawn["decision"],
            groups={k: [str(v) for v in codes] for k, codes in drawn["group"].items()},
        )
        result = audit_projection(data, distance=drawn["distance"], beside=False, **design.options)
        finding, evidence = result[0], result.evidence[0]
        if math.isnan(finding.pvalue):
            undefined += 1
            continue
        rejected += finding.pvalue <= alpha
        wald += evidence.wald.pvalue <= alpha
        total += evidence.statistic
        square += evidence.statistic**2
    used = samples - undefined
    return {
        "design": design.name,
        "truth": design.truth,
        "n": n,
        "samples": samples,
        "not_computable": undefined,
        "projection": rejected / used,
        "wald": wald / used,
        "standard_error": math.sqrt(max(rejected / used * (1 - rejected / used), 1e-9) / used),
        "mean_statistic": total / used,
    }


def main() -> None:
    """Run the grid and write it down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument(
        "--only", default="", help="run designs whose name contains this; other lines of the file are kept"
    )
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    asked = parser.parse_args()
    lines = json.loads(asked.out.read_text())["lines"] if asked.out.exists() and asked.only else []
    for design in designs():
        if asked.only not in design.name:
            continue
        for n in design.sizes:
            start = time.perf_counter()
            line = rejections(design, n, asked.samples, asked.seed)
            took = time.perf_counter() - start
            lines = [old for old in lines if (old["design"], old["n"]) != (design.name, n)] + [line]
            print(
                f"{line['design']:28s} N={n:5d}  projection {line['projection']:.3f}  Wald {line['wald']:.3f}  "
                f"(+- {line['standard_error']:.3f}; {line['not_computable']} not computable; {took:.0f} s)",
                flush=True,
            )
            asked.out.write_text(json.dumps({"alpha": 0.05, "seed": asked.seed, "lines": lines}, indent=1) + "\n")


if __name__ == "__main__":
    main()
