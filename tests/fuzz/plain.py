"""Point estimates once more, in plain numpy, from what the generator knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:  # the runner imports this file as a plain script's neighbour, pytest as a module of its own
    from inputs import Case, Truth


def compare(case: Case, findings: list[dict[str, Any]]) -> tuple[int, list[str]]:
    """Return how many estimates were compared, and what differs.

    Parameters
    ----------
    case : Case
        With the truth, or nothing is compared.
    findings : list of dict
        As in ``findings.json``.

    Returns
    -------
    int
        Estimates compared.
    list of str
        A line for each that differs.
    """
    truth, wrong, compared = case.truth, [], 0
    if truth is None:
        return 0, []
    used = _used(truth, case)
    binned = case.options.get("rows") == "cells" or case.form == "duckdb"
    for finding in findings:
        if finding["audit"] != "group" or finding["estimate"] is None or len(finding["groups"]) != 2:
            continue
        measure = finding["measure"].removesuffix("_ratio")
        if measure.endswith("_global") or measure == "calibration_error" or (binned and measure == "auc"):
            continue
        sides = [_members(truth, label, case) for label in finding["groups"]]
        if any(s is None for s in sides):
            wrong.append(f"{finding['groups']} are not groups of the input")
            continue
        with np.errstate(all="ignore"):
            a, b = (_value(measure, truth, used & side, case) for side in sides)
            expected = a / b if finding["measure"].endswith("_ratio") or case.options.get("ratio") else a - b
            scale = max(abs(a), abs(b), 1e-300)
            if finding["measure"].endswith("_ratio") or _ratio(case):
                expected, scale = a / b, abs(a / b)
        compared += 1
        if not abs(finding["estimate"] - expected) <= 1e-9 * scale + 1e-12:
            wrong.append(f"{measure} {finding['groups']}: {finding['estimate']!r}, plain numpy {expected!r}")
    return compared, wrong


def _ratio(case: Case) -> bool:
    margin = str(case.options.get("margin", ""))
    return bool(case.options.get("ratio")) or margin.startswith("ratio") or margin == "four-fifths"


def _used(truth: Truth, case: Case) -> np.ndarray:
    size = len(next(iter(truth.groups.values())))
    keep = np.ones(size, dtype=bool)
    for values in (truth.outcome, truth.decision):
        if values is not None:
            keep &= ~np.isnan(values)
    if case.options.get("missing") != "group":
        for labels in truth.groups.values():
            keep &= np.array([v is not None for v in labels])
    if truth.weight is not None:
        keep &= truth.weight > 0
    return keep


def _members(truth: Truth, label: str, case: Case) -> np.ndarray | None:
    for name, labels in truth.groups.items():
        named = np.array(["(missing)" if v is None else v for v in labels], dtype=object)
        if label.startswith(f"{name}=") and (named == label[len(name) + 1 :]).any():
            return np.array(named == label[len(name) + 1 :])
    joint = " × ".join(truth.groups)
    columns = [["(missing)" if v is None else v for v in labels] for labels in truth.groups.values()]
    texts = np.array([f"{joint}={' & '.join(row)}" for row in zip(*columns, strict=True)], dtype=object)
    return np.array(texts == label) if (texts == label).any() else None


def _value(measure: str, truth: Truth, inside: np.ndarray, case: Case) -> float:
    weight = np.ones(len(inside)) if truth.weight is None else truth.weight
    w = weight[inside]
    y = None if truth.outcome is None else truth.outcome[inside]
    s = None if truth.score is None else truth.score[inside]
    d = None if truth.decision is None else truth.decision[inside]
    if d is None and "threshold" in case.options and s is not None:
        d = (s >= case.options["threshold"]) * 1.0

    def share(top: np.ndarray, bottom: np.ndarray) -> float:
        total = w[bottom].sum()
        return float(w[top & bottom].sum() / total) if total else float("nan")

    def mean(values: np.ndarray) -> float:
        return float((w * values).sum() / w.sum())

    everyone = np.ones(len(w), dtype=bool)
    if measure == "selection_rate":
        return share(d == 1, everyone)
    if measure == "mean_score":
        return mean(s)
    if measure in ("mae", "mse", "brier", "mean_residual", "log_loss"):
        clipped = np.clip(s, 1e-15, 1 - 1e-15)
        return mean(
            {
                "mae": np.abs(y - s),
                "mse": (y - s) ** 2,
                "brier": (y - s) ** 2,
                "mean_residual": y - s,
                "log_loss": -(y * np.log(clipped) + (1 - y) * np.log(1 - clipped)),
            }[measure]
        )
    if measure == "auc":
        up, down = y == 1, y == 0
        order = (s[up][:, None] > s[down][None, :]) + 0.5 * (s[up][:, None] == s[down][None, :])
        return float(w[up] @ order @ w[down] / (w[up].sum() * w[down].sum()))
    rates = {
        "tpr": share(d == 1, y == 1),
        "fnr": share(d == 0, y == 1),
        "fpr": share(d == 1, y == 0),
        "tnr": share(d == 0, y == 0),
        "precision": share(y == 1, d == 1),
        "fdr": share(y == 0, d == 1),
        "npv": share(y == 0, d == 0),
        "for": share(y == 1, d == 0),
        "accuracy": share(d == y, everyone),
        "error_rate": share(d != y, everyone),
    }
    if measure == "balanced_accuracy":
        return (rates["tpr"] + rates["tnr"]) / 2
    if measure == "f1":
        tp = w[(d == 1) & (y == 1)].sum()
        return float(2 * tp / (2 * tp + w[d != y].sum()))
    return rates[measure]
