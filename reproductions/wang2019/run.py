"""Reproduce [wang2019]: the toy of section 4.1, figures 2 and 3, the values of section 5 and table 2.

    python reproductions/wang2019/run.py [--short]

Writes ``result.json`` beside this file (``--short`` prints only). Needs the two processed data sets of the authors
(`adult-proxy` and `compas-proxy`); ``evenhand datasets`` says where they are looked for.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from evenhand import datasets
from evenhand.audits.proxy import audit_proxy
from evenhand.intake.data import AuditData
from evenhand.kernels.influence.descent import Pace, descend
from evenhand.kernels.influence.functionals import Sample, functional, means
from evenhand.kernels.influence.nuisance import calibration_of, cross_fit, predict_folds
from evenhand.kernels.shared.logistic import fit_logistic
from evenhand.results import plain

HERE = Path(__file__).parent
SPACE = np.array(list(product([0.0, 1.0], repeat=3)))


def toy(iterations: int) -> dict[str, Any]:
    """Section 4.1: exact on the eight points, then on samples of the stated sizes (figure 2)."""
    p, q = (np.prod(np.where(SPACE == 1, s, 1 - np.array(s)), axis=1) for s in ([0.9, 0.2, 0.2], [0.1, 0.5, 0.5]))
    truth = expit(SPACE @ [5.0, -2.0, -2.0])  # "logit" in print
    form = functional("fpr")
    sample = Sample(h=truth, eta=truth, weight=p, reference=means(form, truth, truth, q))
    out: dict[str, Any] = {"exact": {}}
    for step in (0.05, 0.1, 0.2):
        path = descend(form, sample, sample, Pace(step=step))
        out["exact"][str(step)] = {"gap": path.values[0], "iterations": len(path.steps), "end": path.values[-1]}
    rng = np.random.default_rng(0)
    model = _logistic_of_sample(rng, p, q, truth, 50_000)
    h = model.probability(SPACE)
    parts = []
    for _ in range(2):  # auditing and holdout set
        cells = [rng.multinomial(6250, w).astype(float) for w in (p, q)]
        parts.append(Sample(h=h, eta=truth, weight=cells[0], reference=means(form, h, truth, cells[1])))
    path = descend(form, *parts, Pace(step=0.1, tolerance=0.0, max_steps=iterations))
    out["figure_2"] = {"audit": list(path.values), "holdout": list(path.held_out)}
    out["coefficients"] = [round(float(c), 3) for c in model.coef]
    return out


def _logistic_of_sample(rng: np.random.Generator, p: Any, q: Any, truth: Any, rows: int) -> Any:
    x = SPACE[rng.choice(8, rows, p=(p + q) / 2)]
    y = rng.random(rows) < expit(x @ [5.0, -2.0, -2.0])
    return fit_logistic(x, y.astype(float), l2=1e-6)


def columns_of(config: dict[str, Any]) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Read features as 0/1 numbers, the outcome and the group."""
    raw = datasets.table(config["table"])
    y = np.array([str(v).removesuffix(".0") == config["positive"] for v in raw[config["outcome"]]], dtype=float)
    group = np.array([str(v) for v in raw[config["group"]]])
    features = {
        name: np.array([str(v).lower().removesuffix(".0") in ("1", "true") for v in values], dtype=float)
        for name, values in raw.items()
        if name not in (config["outcome"], config["group"])
    }
    return features, y, group


def study(config: dict[str, Any], splits: int) -> dict[str, Any]:
    """Train on 30 %, audit on 70 %: gaps and scores over splits, everything else on the first."""
    features, y, group = columns_of(config)
    X = np.column_stack(list(features.values()))
    out: dict[str, Any] = {"rows": len(y), "base_rate": float(y.mean()), "splits": splits, "measures": {}}
    found: dict[str, list[float]] = {}
    for split in range(splits):
        rng = np.random.default_rng(split)
        train = rng.permutation(len(y)) < config["train"] * len(y)
        model = fit_logistic(X[train], y[train], l2=1.0)
        rest = ~train
        inside = rest & (group != config["reference"])
        h = model.probability(X)
        data = AuditData.from_arrays(
            outcome=y[rest],
            score=h[rest],
            groups={config["group"]: group[rest]},
            features={k: v[rest] for k, v in features.items()},
        )
        note(found, "mean prediction, group", h[inside].mean())
        note(found, "mean prediction, reference", h[rest & ~inside].mean())
        for measure in ("da", "cal", "fpr", "fnr", "sp"):
            options: dict[str, Any] = {
                "measure": measure,
                "reference": config["reference"],
                "model": model.probability,
                "interactions": False,  # "vanilla" logistic regression, as in the paper
            }
            single = audit_proxy(data, **options)
            note(found, measure, single[0].estimate)
            note(found, f"{measure}, plug-in", single.evidence[0].counterfactual.path.gap[0])
            if split == 0:
                joined = audit_proxy(data, blocks=config["blocks"], pairs=measure == "fpr", **options)
                out["measures"][measure] = {"single": rows_of(single), "blocks": rows_of(joined), **table_2(single)}
        if split == 0:
            out["auc"] = areas(X, y, group == config["reference"], train, rest)
    out["values"] = {
        k: {"mean": float(np.mean(v)), "sd": float(np.std(v, ddof=min(1, len(v) - 1)))} for k, v in found.items()
    }
    return out


def note(found: dict[str, list[float]], key: str, value: float) -> None:
    found.setdefault(key, []).append(float(value))


def rows_of(result: Any) -> list[dict[str, Any]]:
    """Return the findings with what figure 3 draws."""
    kept = ("score", "score_interval", "signed_score", "carried_share", "association", "ranking", "pairs")
    return [
        {
            "measure": f.measure,
            "estimate": f.estimate,
            "low": None if f.interval is None else f.interval.low,
            "high": None if f.interval is None else f.interval.high,
            "pvalue_adjusted": f.pvalue_adjusted,
            "verdict": str(f.verdict),
            **{k: e[k] for k in kept if k in e},
        }
        for f, e in zip(result.findings, (e.to_dict() for e in result.evidence), strict=True)
    ]


def table_2(result: Any) -> dict[str, Any]:
    """Return group, counterfactual and reference means in per cent, and the descent."""
    found = result.evidence[0].counterfactual.to_dict()
    return {
        "means": {
            row["feature"]: [round(100 * row[k], 1) for k in ("reference", "group", "counterfactual")]
            for row in found["means"]
        },
        "effective_rows": found["effective_rows"],
        "rows": found["rows"],
        "steps": len(found["path"]["steps"]),
        "held_out": [found["path"]["held_out"][0], found["path"]["held_out"][-1]],
        "stopped": found["stopped"],
    }


def areas(X: Any, y: Any, reference: Any, train: Any, rest: Any) -> dict[str, float]:
    """Ten-fold test AUC of the audited model and the two nuisance models."""
    out = {}
    for name, rows, target in (
        ("P(Yhat|X)", train, y),
        ("P(Y|X,S=0)", rest & ~reference, y),
        ("P(S|X)", rest, reference.astype(float)),
    ):
        fold = np.random.default_rng(0).permutation(int(rows.sum())) % 10
        one = np.ones(int(rows.sum()))
        p = predict_folds(cross_fit("logistic", X[rows], target[rows], one, fold), X[rows], fold)
        out[name] = calibration_of(p, target[rows], one)["auc"]
    return out


def main() -> None:
    """Run everything and write it down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true")
    asked = parser.parse_args()
    config = tomllib.loads((HERE / "config.toml").read_text(encoding="utf-8"))
    size = config["short" if asked.short else "full"]
    result = {"toy": toy(size["toy_iterations"])}
    print(json.dumps(result["toy"]["exact"]))
    for name in ("adult", "compas"):
        result[name] = study(config[name], size["splits"])
        print(name, json.dumps(result[name]["values"], indent=1), json.dumps(result[name]["auc"]))
    if not asked.short:
        (HERE / "result.json").write_text(json.dumps(plain(result), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
