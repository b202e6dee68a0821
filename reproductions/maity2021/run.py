"""Reproduce [maity2021]: figure 1 (appendix E), figure 2, tables 1 and 3 (Adult), table 4 (COMPAS).

    python reproductions/maity2021/run.py [--short] [--only figure_1,adult,compas] [--splits 0-9]
        [--models Baseline,Project,Reduction,SenSR] [--out FILE]
    python reproductions/maity2021/run.py --merge FILE FILE ...

Writes ``result.json`` beside this file, or the file named by ``--out`` (``--short`` prints only). Ten splits take about
a quarter of an hour of processor time; to run them in parts, give each part some of the splits and a file of its own,
then join them with ``--merge``, which checks that all were made with the same settings and writes ``result.json``.
Reductions needs fairlearn, COMPAS needs its file (see ``evenhand datasets``).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import tomllib
from importlib import metadata, util
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
    most = settings["most_rows"] or len(case.y_test)
    everyone = data_of(case, slice(None))
    result = audit_individual(
        data_of(case, slice(0, most)), model=fitted, similarity=SensitiveSubspace(["sex", "race"]),
        tolerance=TOLERANCE, alpha=ALPHA, limits="normal", metric_rows=everyone, scale="none", limit="none",
        **{k: settings[k] for k in ("penalty", "step", "steps")}, refits=0, correction="none", rng=0, **options,
    )  # fmt: skip
    loss, error = (e.to_dict() for e in result.evidence)
    return {
        **group_metrics(case, fitted.predict(case.X_test)),
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


def table(name: str, splits: range, settings: dict[str, Any], models: list[str], far: int) -> dict[str, Any]:
    """Train and audit the classifiers on each split; on the first also to `far` steps, for figure 2."""
    rows: dict[str, dict[str, Any]] = {kind: {} for kind in models}
    curves: dict[str, Any] = {}
    for split in splits:
        case = getattr(cases, name)(split)
        for kind in models:
            began = time.process_time()
            fitted = classifiers.train(case, kind, split, settings)
            row = {**audited(case, fitted, settings), "seconds": round(time.process_time() - began, 1)}
            rows[kind][str(split)] = row
            if split == 0 and far:
                curves[kind] = audited(case, fitted, {**settings, "steps": far})["curve"]
            told = " ".join(f"{k} {v:.3f}" for k, v in row.items() if k != "curve")
            print(f"{name} {split} {kind:10} {told}", flush=True)
    return {"settings": settings, "splits": rows, "figure_2": curves}


def summary(rows: dict[str, Any]) -> dict[str, Any]:
    """Return mean and standard deviation over the splits of one classifier."""
    keys = [k for k in next(iter(rows.values())) if k not in ("curve", "seconds")]
    values = {k: np.array([r[k] for r in rows.values()]) for k in keys}
    out: dict[str, Any] = {
        k: {"mean": float(v.mean()), "deviation": float(v.std(ddof=1)) if v.size > 1 else None}
        for k, v in values.items()
    }
    return {**out, "splits": len(rows)}


def merge(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Join the results of parts; the same classifier and split must not occur twice, nor other settings."""
    out: dict[str, Any] = {"versions": parts[0]["versions"]}
    for part in parts:
        if part["versions"] != out["versions"]:
            raise SystemExit("The parts were made with different versions of the libraries; run them again.")
        if "figure_1" in part:
            out["figure_1"] = part["figure_1"]
        for name in ("adult", "compas"):
            if name not in part:
                continue
            found = out.setdefault(name, {"settings": part[name]["settings"], "splits": {}, "figure_2": {}})
            if found["settings"] != part[name]["settings"]:
                raise SystemExit(f"The parts of {name} were made with different settings; run them again.")
            found["figure_2"] |= part[name]["figure_2"]
            for kind, rows in part[name]["splits"].items():
                kept = found["splits"].setdefault(kind, {})
                if twice := sorted(kept.keys() & rows.keys()):
                    raise SystemExit(f"{name}, {kind}: split {', '.join(twice)} is in two parts.")
                found["splits"][kind] = dict(sorted((kept | rows).items(), key=lambda row: int(row[0])))
    for name in ("adult", "compas"):
        if name in out:
            out[name]["summary"] = {kind: summary(rows) for kind, rows in out[name]["splits"].items() if rows}
    return out


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--only", default="figure_1,adult,compas")
    parser.add_argument("--splits", help="a range, such as 0-4; all by default")
    parser.add_argument("--models", default=",".join(classifiers.NAMES))
    parser.add_argument("--out", type=Path, default=HERE / "result.json")
    parser.add_argument("--merge", type=Path, nargs="+", metavar="FILE")
    options = parser.parse_args()
    if options.merge:
        parts = [json.loads(path.read_text(encoding="utf-8")) for path in options.merge]
        options.out.write_text(json.dumps(merge(parts), indent=1) + "\n", encoding="utf-8")
        return
    config = tomllib.loads((HERE / "config.toml").read_text(encoding="utf-8"))["short" if options.short else "full"]
    first, _, last = (options.splits or f"0-{config['splits'] - 1}").partition("-")
    splits = range(int(first), int(last or first) + 1)
    models = options.models.split(",")
    libraries = ["numpy", "scikit-learn", "fairlearn"]
    if util.find_spec("fairlearn") is None:
        print("fairlearn is not installed: no Reduction row")
        models, libraries = [m for m in models if m != "Reduction"], libraries[:2]
    result: dict[str, Any] = {"versions": {k: metadata.version(k) for k in libraries}}
    for part in options.only.split(","):
        if part == "figure_1":
            result[part] = figure_1(config["figure_1_samples"], config["figure_1_cells"])
        elif part in ("adult", "compas"):
            far = config["figure_2_steps"] if part == "adult" else 0
            result[part] = table(part, splits, config[part], models, far)
        else:
            parser.error(f"unknown part {part}")
    result = merge([result])
    if options.short:
        print(json.dumps({k: v.get("summary", v) for k, v in result.items()}, indent=1)[:3000])
    else:
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
