"""Tables V to VII: six mitigators against the plain model, on average and in the tail."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from scipy import stats

from evenhand.arrays import FloatArray
from evenhand.inference.multiplicity import adjust
from evenhand.inference.scott_knott import scott_knott
from evenhand.kernels.shared.seeds import stream
from evenhand.reproductions.monjezi2025.settings import CASE_NAMES, KINDS, MODELS
from evenhand.reproductions.paper import Parts, Settings

PLAIN = "plain"
#: Methods by table, with the models that the paper has for them.
TABLES: dict[str, dict[str, tuple[str, ...]]] = {
    "V": {"exponentiated_gradient": KINDS, "fair_smote": KINDS},
    "VI": {"stealth": KINDS, "maat": KINDS},
    "VII": {"minimax": ("dnn", "lr"), "ecd_fair": ("dnn", "lr")},
}
METHODS = {method: models for table in TABLES.values() for method, models in table.items()}
#: Methods ranked together, as the two research questions do.
RQ3 = (*TABLES["V"], *TABLES["VI"])
RQ4 = tuple(TABLES["VII"])
MEASURES = ("accuracy", "aod", "eod", "spd", "di", "ecd", "ecd_other")

SETTINGS: dict[str, Any] = {
    "seed": MODELS["seed"],
    "train_share": MODELS["train_share"],
    "train_rows": 700,  # at most; 70 % of the rows of a small data set
    "test_rows": 2000,  # at most, of the rest: accuracy, mean differences and tails are measured on these
    "network": {**MODELS["network"], "least_steps": 150, "rate": 0.003},
    "repetitions": 5,
    "minimax_rounds": {"lr": 20, "dnn": 6},
    "ecd_fair_trials": {"lr": 16, "dnn": 7},  # print: an hour for each
    "gradient_rounds": 5,
    "gradient_constraint": "equalized_odds",
    "gradient_slack": 0.01,
    "alpha": 0.05,
    "cases": list(CASE_NAMES),
    "kinds": list(KINDS),
}
SHORT: dict[str, Any] = {
    **SETTINGS,
    "train_rows": 400,
    "test_rows": 600,
    "repetitions": 2,
    "minimax_rounds": {"lr": 3},
    "ecd_fair_trials": {"lr": 3},
    "gradient_rounds": 3,
    "cases": ["census-sex"],
    "kinds": ["lr"],
}


def run_tables(settings: Settings, parts: Parts) -> dict[str, Any]:
    """Fit every method on every data set and model, and count what it improves."""
    shared = {name: value for name, value in settings.items() if name not in ("cases", "kinds", "alpha")}
    cells = {}
    for kind in settings["kinds"]:
        for name in settings["cases"]:
            methods = tuple(m for m, kinds in METHODS.items() if kind in kinds)
            cells[f"{kind} {name}"] = parts.keep(
                f"{kind}-{name}",
                {**shared, "case": name, "kind": kind},
                partial(_compared, name, kind, methods, shared),
            )
    return summarised(cells, settings["seed"], settings["alpha"])


def _compared(name: str, kind: str, methods: tuple[str, ...], settings: Settings) -> dict[str, Any]:
    from evenhand.reproductions.monjezi2025.comparison import compared

    return compared(name, kind, methods, settings)


def values(method: str, done: Mapping[str, list[float]]) -> dict[str, FloatArray]:
    """Return each measure of a method over the repetitions; all but accuracy are better when smaller.

    A mixture's score is read in two ways. `ecd` takes the expected decision of exponentiated gradient, whose queries
    the paper repeats and averages, and the mean probability of MiniMax-Fairness; `ecd_other` the other way round.
    """
    out = {m: np.array(done[m]) for m in MEASURES[:5]}
    decision = np.abs(done["signed_ecd"])
    chance = np.abs(done.get("signed_ecd_of_probabilities", done["signed_ecd"]))
    out["ecd"], out["ecd_other"] = (chance, decision) if method == "minimax" else (decision, chance)
    return out


def resampled_pvalue(differences: FloatArray, overlap: float) -> float:
    """Test a mean of zero over repetitions that share rows: Nadeau and Bengio's correction of the paired t-test.

    Two repetitions share rows, so their results are correlated; `overlap` is the test rows' share of all rows, which
    takes the place of the correlation.
    """
    size = differences.size
    variance = float(differences.var(ddof=1)) * (1 / size + overlap / (1 - overlap))
    mean = float(differences.mean())
    if variance <= 1e-24:
        return 1.0 if abs(mean) <= 1e-12 else 0.0
    return float(2 * stats.t.sf(abs(mean) / math.sqrt(variance), size - 1))


def ranked(cell: Mapping[str, Any], seed: int, alpha: float) -> dict[str, Any]:
    """Return means and outcomes against the plain model, by Scott-Knott rank, for one data set and model."""
    measured = {m: values(m, done) for m, done in cell["methods"].items()}
    out: dict[str, Any] = {m: {"mean": {k: float(a.mean()) for k, a in v.items()}} for m, v in measured.items()}
    for k in MEASURES:
        worse = -1.0 if k == "accuracy" else 1.0
        for label, family in (("outcome", RQ3), ("outcome", RQ4), ("outcome among all", (*RQ3, *RQ4))):
            there = [m for m in (PLAIN, *family) if m in measured]
            samples = [worse * measured[m][k] for m in there]
            ranks = scott_knott(samples, stream(seed, f"monjezi2025/{k}"), alpha=alpha).tolist()
            for m, rank in zip(there[1:], ranks[1:], strict=True):
                step = rank - ranks[0]
                out[m].setdefault(label, {})[k] = "win" if step < 0 else "loss" if step > 0 else "tie"
        for m in measured:
            if m != PLAIN:
                gaps = worse * (measured[m][k] - measured[PLAIN][k])
                out[m].setdefault("change", {})[k] = float(gaps.mean())  # positive: worse
                out[m].setdefault("pvalue", {})[k] = resampled_pvalue(gaps, cell["test"] / cell["rows"])
    return out


def summarised(cells: Mapping[str, Any], seed: int, alpha: float) -> dict[str, Any]:
    """Return the cells and what is counted over them."""
    by_cell = {name: ranked(cell, seed, alpha) for name, cell in cells.items()}
    counts: dict[str, Any] = {}
    for method in METHODS:
        has = {c: v[method] for c, v in by_cell.items() if method in v}
        if not has:
            continue
        counts[method] = {"cells": len(has)}
        for k in MEASURES:
            adjusted = adjust([m["pvalue"][k] for m in has.values()], "holm").tolist()
            shown = [
                ("worse" if m["change"][k] > 0 else "better") if p <= alpha else "open"
                for m, p in zip(has.values(), adjusted, strict=True)
            ]
            changes = [m["change"][k] for m in has.values()]
            counts[method][k] = {
                **{o: sum(m["outcome"][k] == o for m in has.values()) for o in ("win", "tie", "loss")},
                **{
                    f"{o} among all": sum(m["outcome among all"][k] == o for m in has.values()) for o in ("win", "loss")
                },
                **{word: shown.count(word) for word in ("better", "open", "worse")},
                "mean lower": sum(change < -1e-12 for change in changes),
                "mean higher": sum(change > 1e-12 for change in changes),
                "mean": round(float(np.mean([m["mean"][k] for m in has.values()])), 5),
                "mean of the plain model": round(float(np.mean([by_cell[c][PLAIN]["mean"][k] for c in has])), 5),
            }
    return {"cells": dict(cells), "counts": counts}
