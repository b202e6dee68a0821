"""Reproduce [maity2021]: figure 1 (appendix E), figure 2, tables 1 and 3 (Adult), table 4 (COMPAS).

    python reproductions/maity2021/run.py [--short] [--only figure_1,adult,compas] [--splits 10]
        [--models Baseline,Project,Reduction,SenSR] [--cache DIR]

Writes ``result.json`` beside this file (``--short`` prints only); parts that were not run keep their stored
values.
Reductions needs fairlearn, COMPAS needs its file (see ``evenhand datasets``). ``--cache`` keeps trained
models between
runs, as JSON: training SenSR on ten splits of Adult takes about a quarter of an hour of processor time.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tomllib
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import cases  # noqa: E402
import classifiers  # noqa: E402
from figure1 import figure_1  # noqa: E402

import evenhand as eh  # noqa: E402
from evenhand.audits.individual import audit_individual  # noqa: E402
from evenhand.kernels.perceptron import Perceptron  # noqa: E402
from evenhand.similarity import SensitiveSubspace  # noqa: E402

ALPHA, TOLERANCE = 0.05, 1.25


def group_metrics(case: cases.Case, decision: np.ndarray) -> dict[str, float]:
    """Return balanced accuracy, and average odds differences with G = 1 the unprivileged group."""
    y = case.y_test
    rate = {k: decision[y == k].mean() for k in (0, 1)}
    out = {"balanced accuracy": (rate[1] + 1 - rate[0]) / 2}
    for name, privileged in (("sex", case.sex_test), ("race", case.race_test)):
        gaps = [
            decision[(y == k) & (privileged == 0)].mean() - decision[(y == k) & (privileged == 1)].mean()
            for k in (1, 0)
        ]
        out[f"AOD {name}"] = float(np.mean(gaps))
    return {k: float(v) for k, v in out.items()}


def audited(case: cases.Case, fitted: Any, settings: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Audit one classifier on the test rows as the paper does: metric from the same rows, normal limits."""
    model = classifiers.view(fitted)
    most = settings["most_rows"] or len(case.y_test)
    everyone = data_of(case, slice(None))
    result = audit_individual(
        data_of(case, slice(0, most)), model=model, similarity=SensitiveSubspace(["sex", "race"]),
        tolerance=TOLERANCE, alpha=ALPHA, limits="normal", metric_rows=everyone, scale="none",
        **{k: settings[k] for k in ("penalty", "step", "steps")}, refits=0, correction="none", rng=0, **options,
    )  # fmt: skip
    loss, error = result.evidence
    network = getattr(model, "network", model)
    out = network.outputs(case.X_test)
    decision = out.argmax(axis=1) if out.shape[1] == 2 else (out[:, 0] > 0.5).astype(float)
    return {
        **group_metrics(case, decision),
        "T_n": loss.get("T_n", np.nan),
        "S_n": result[0].estimate,
        "T_n error rate": error.get("T_n", np.nan),
        "rejects": float(loss.get("T_n", np.nan) > TOLERANCE),
        "rejects error rate": float(error.get("T_n", np.nan) > TOLERANCE),
        "off range": loss["off_range"]["directions"],
        "off range columns": loss["off_range"]["columns"],
        "largest share": loss.get("largest_share", np.nan),
        "curve": [[round(p["time"] / settings["step"]), p.get("T_n")] for p in loss["curve"]],
    }


def data_of(case: cases.Case, rows: slice) -> eh.AuditData:
    features = {n: case.X_test[rows, j] for j, n in enumerate(case.names)}
    groups = {"sex": case.sex_test[rows].astype(int), "race": case.race_test[rows].astype(int)}
    return eh.AuditData.from_arrays(outcome=case.y_test[rows], groups=groups, features=features)


def table(
    name: str, splits: int, settings: dict[str, Any], cache: Path | None, models: list[str], stored: dict[str, Any]
) -> dict[str, Any]:
    """Audit the classifiers on each split, and average; classifiers left out keep their stored rows."""
    rows: dict[str, list[dict[str, Any]]] = {k: v for k, v in stored.get("splits", {}).items() if k not in models}
    for split in range(splits):
        case = getattr(cases, name)(split)
        for kind in models:
            fitted = _trained(case, kind, split, settings, cache)
            if fitted is None:
                continue
            row = audited(case, fitted, settings)
            rows.setdefault(kind, []).append(row)
            print(
                f"{name} {split} {kind:10} " + " ".join(f"{k} {v:.3f}" for k, v in row.items() if k != "curve"),
                flush=True,
            )
    summary = {}
    for kind, found in rows.items():
        keys = [k for k in found[0] if k != "curve"]
        summary[kind] = {
            k: {"mean": float(np.mean([r[k] for r in found])), "deviation": float(np.std([r[k] for r in found], ddof=1))
                if len(found) > 1 else None}
            for k in keys
        }  # fmt: skip
        summary[kind]["splits"] = len(found)
    return {"settings": settings, "summary": summary, "splits": rows}


def figure_2(settings: dict[str, Any], steps: int, cache: Path | None, models: list[str]) -> dict[str, Any]:
    """T_n against the number of steps on the first split of Adult, further than the table goes."""
    case = cases.adult(0)
    out = {}
    for kind in models:
        fitted = _trained(case, kind, 0, settings, cache)
        if fitted is not None:
            out[kind] = audited(case, fitted, {**settings, "steps": steps})["curve"]
    return out


def _trained(case: cases.Case, kind: str, split: int, settings: dict[str, Any], cache: Path | None) -> Any:
    """Train a classifier, or take it from the cache; None when its library is not installed."""
    if kind == "Reduction":
        try:
            import fairlearn  # noqa: F401
        except ImportError:
            print("fairlearn is not installed: no Reduction row")
            return None
    path = None if cache is None else cache / f"{case.name}-{kind}-{split}.json"
    if path is not None and path.exists():
        stored = json.loads(path.read_text(encoding="utf-8"))
        if "weights" in stored:
            return Perceptron(
                weights=tuple(np.array(w) for w in stored["weights"]),
                biases=tuple(np.array(b) for b in stored["biases"]),
            )
        return {k: np.array(v) for k, v in stored.items()}
    fitted = classifiers.train(case, kind, split, settings)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        plain = (
            {"weights": [w.tolist() for w in fitted.weights], "biases": [b.tolist() for b in fitted.biases]}
            if isinstance(fitted, Perceptron)
            else {k: v.tolist() for k, v in fitted.items()}
        )
        path.write_text(json.dumps(plain), encoding="utf-8")
    return fitted


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--only", default="figure_1,adult,figure_2,compas")
    parser.add_argument("--splits", type=int)
    parser.add_argument("--models", default=",".join(classifiers.NAMES))
    parser.add_argument("--cache", type=Path)
    options = parser.parse_args()
    config = tomllib.loads((HERE / "config.toml").read_text(encoding="utf-8"))["short" if options.short else "full"]
    splits = options.splits or config["splits"]
    target = HERE / "result.json"
    result = json.loads(target.read_text(encoding="utf-8")) if target.exists() and not options.short else {}
    for part in options.only.split(","):
        if part == "figure_1":
            result[part] = figure_1(config["figure_1_samples"], config["figure_1_cells"])
        elif part == "figure_2":
            found = figure_2(config["adult"], config["figure_2_steps"], options.cache, options.models.split(","))
            result[part] = {**result.get(part, {}), **found}
        elif part in ("adult", "compas"):
            try:
                models = options.models.split(",")
                result[part] = table(part, splits, config[part], options.cache, models, result.get(part, {}))
            except eh.DataError as error:
                print(f"{part} was not run: {error}")
                continue
        else:
            parser.error(f"unknown part {part}")
        if not options.short:
            target.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if options.short:
        print(json.dumps({k: v.get("summary", v) for k, v in result.items()}, indent=1)[:3000])


if __name__ == "__main__":
    main()
