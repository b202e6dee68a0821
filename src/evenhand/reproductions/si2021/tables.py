"""Tables 1 to 3: how often the tests reject a plain support vector machine and a constrained one."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from evenhand.arrays import FloatArray, IntArray
from evenhand.report.document import Block
from evenhand.report.figures import forest
from evenhand.reproductions.paper import Claim, Parts, Result, Settings, near
from evenhand.reproductions.si2021.people import SETS, People, authors_splits, project, read_people

METHODS = ("naive", "donini")

#: Rejections in percent, as printed: by table and method, in the order of `SETS`.
PRINTED = {
    "table-1": {"naive": (68.4, 100.0, 30.1), "donini": (11.6, 16.6, 21.6)},
    "table-2": {"naive": (75.1, 100.0, 30.5), "donini": (13.7, 21.7, 17.2)},
    "table-3": {"naive": (76.1, 100.0, 35.5), "donini": (14.0, 16.1, 23.0)},
}
PRINTED_REPLICATIONS = 1000

#: Constrained classifiers of the authors' 1,000 runs that decide alike for everybody, found in their stored results.
DEGENERATE = {"compas": 564, "drug": 295}

SETTINGS = {"replications": 1000, "alpha": 0.05, "penalties": [0.01, 0.1, 1.0], "folds": 3}
SHORT = {**SETTINGS, "replications": 20}

_BLOCK = 100  # replications in a part
_TESTS = ("table-1", "table-2", "table-3", "table-1 own bandwidth", "table-2 own bandwidth")
_NAMES = {"arrhythmia": "Arrhythmia", "compas": "COMPAS", "drug": "Drug", "naive": "naive SVM", "donini": "Donini"}

# The three tables are about the same classifiers, so one of them fits these for all.
_KEPT: dict[str, Any] = {}


def run_table(table: str) -> Callable[[Settings, Parts], Result]:
    """Return what makes a table."""

    def run(settings: Settings, parts: Parts) -> Result:
        return {
            f"{name}/{method}": _counts(replications(name, method, settings, parts), table, settings["alpha"])
            for name in SETS
            for method in METHODS
        }

    return run


def replications(name: str, method: str, settings: Settings, parts: Parts) -> list[dict[str, Any]]:
    """Return the p-values of each replication; a classifier that decides alike for everybody has none."""
    key = json.dumps([name, method, dict(settings)])
    if key not in _KEPT:
        many, how = settings["replications"], {k: v for k, v in settings.items() if k != "replications"}
        runs: list[dict[str, Any]] = []
        for start in range(0, many, _BLOCK):
            asked = {**how, "set": name, "method": method, "start": start, "many": min(_BLOCK, many - start)}
            runs += parts.keep(f"{name}-{method}-{start}", asked, partial(_block, asked))
        _KEPT[key] = runs
    return list(_KEPT[key])


def _block(asked: Settings) -> list[dict[str, Any]]:
    people = read_people(asked["set"])
    # Equal rows are merged into weights, which changes nothing and takes a fraction of the time.
    _, first, code = np.unique(np.column_stack([people.X, people.y]), axis=0, return_index=True, return_inverse=True)
    splits = authors_splits(people, asked["start"] + asked["many"])
    runs = []
    for train, test in islice(splits, asked["start"], None):
        seen = people
        if asked["method"] == "donini":
            mean0, mean1 = (
                people.X[train[(people.y[train] == 1) & (people.a[train] == a)]].mean(axis=0) for a in (0, 1)
            )
            seen = replace(people, X=_constrained(people.X, mean0, mean1))
        machine = _machine(seen.X[first], people.y[first], code.reshape(-1)[train], asked)
        runs.append(_audited(seen, test, machine, asked["alpha"]))
    return runs


def _constrained(X: FloatArray, mean0: FloatArray, mean1: FloatArray) -> FloatArray:
    """Remove the difference of two means from the features by giving up one of them.

    As with the authors, that is the feature whose mean in group 0 exceeds that of group 1 most; `LinearConstraint`
    takes the largest difference of either sign.
    """
    u = mean0 - mean1
    i = int(np.argmax(u))
    return np.delete(X - np.outer(X[:, i] / u[i], u), i, axis=1)


def _machine(X: FloatArray, y: IntArray, drawn: IntArray, asked: Settings) -> tuple[FloatArray, float]:
    """Fit a linear support vector machine to drawn rows; its penalty is chosen by cross-validated accuracy."""
    from sklearn.model_selection import StratifiedKFold

    hits = np.zeros(len(asked["penalties"]))
    for rest, held in StratifiedKFold(asked["folds"]).split(drawn, y[drawn]):
        for k, penalty in enumerate(asked["penalties"]):
            coefficients, intercept = linear_svm(X, y, drawn[rest], penalty)
            hits[k] += np.sum((X[drawn[held]] @ coefficients + intercept > 0) == y[drawn[held]])
    return linear_svm(X, y, drawn, asked["penalties"][int(np.argmax(hits))])


def linear_svm(X: FloatArray, y: IntArray, drawn: IntArray, penalty: float) -> tuple[FloatArray, float]:
    """Fit a linear support vector machine to drawn rows; return its coefficients and intercept."""
    from sklearn.svm import SVC

    rows, weight = np.unique(drawn, return_counts=True)
    machine = SVC(kernel="linear", C=penalty, cache_size=50).fit(X[rows], y[rows], sample_weight=weight)
    return machine.coef_[0], float(machine.intercept_[0])


def _audited(people: People, rows: IntArray, machine: tuple[FloatArray, float], alpha: float) -> dict[str, Any]:
    decision = people.X[rows] @ machine[0] + machine[1] >= 0
    if np.linalg.norm(machine[0]) <= 1e-9 or decision.all() or not decision.any():
        return {"degenerate": True}
    told: dict[str, Any] = {"degenerate": False}
    for table, criterion in (("table-1", "equal_opportunity"), ("table-2", "equalized_odds")):
        for name, bandwidth in ((table, rows.size**-0.2), (f"{table} own bandwidth", None)):
            pvalue, evidence = project(people, rows, machine, criterion=criterion, bandwidth=bandwidth, alpha=alpha)
            told[name] = _number(pvalue)
            if table == "table-1":
                told["table-3"] = _number(math.nan if evidence.welch is None else evidence.welch.pvalue)
    return told


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def _counts(runs: Sequence[dict[str, Any]], table: str, alpha: float) -> dict[str, int]:
    proper = [r for r in runs if not r["degenerate"]]
    told = {"replications": len(runs), "degenerate": len(runs) - len(proper)}
    for test in _TESTS:
        if test.startswith(table):
            told[test.replace(table, "").strip() or "rejected"] = sum(
                r[test] is not None and r[test] <= alpha for r in proper
            )
    told["not computable"] = sum(r[table] is None for r in proper)
    return told


def claim_table(table: str) -> Callable[[Result, Settings], list[Claim]]:
    """Return what judges a table."""

    def claims(result: Result, settings: Settings) -> list[Claim]:
        made = [_cell_claim(table, name, method, result[f"{name}/{method}"]) for method in METHODS for name in SETS]
        if table == "table-1":
            made += [_degenerate_claim(name, many, result[f"{name}/donini"]) for name, many in DEGENERATE.items()]
            made += [_fairer_claim(name, result[f"{name}/naive"], result[f"{name}/donini"]) for name in SETS]
        return made

    return claims


def _cell_claim(table: str, name: str, method: str, cell: dict[str, int]) -> Claim:
    printed = PRINTED[table][method][SETS.index(name)]
    ours, error = _percent(cell["rejected"], cell["replications"])
    theirs = _percent(round(printed / 100 * PRINTED_REPLICATIONS), PRINTED_REPLICATIONS)[1]
    remarks = []
    if "own bandwidth" in cell:
        own = _percent(cell["own bandwidth"], cell["replications"])[0]
        remarks.append(f"With Silverman's bandwidth {own:.1f}.")
    if cell["degenerate"]:
        proper = _percent(cell["rejected"], cell["replications"] - cell["degenerate"])[0]
        remarks.append(
            f"{cell['degenerate']} of {cell['replications']} classifiers decide alike for everybody and count as not "
            f"rejected; of the others {proper:.1f} are rejected."
        )
    if cell["not computable"]:
        remarks.append(f"{cell['not computable']} could not be tested.")
    return Claim(
        claim=f"{_NAMES[method]}, {_NAMES[name]}: rejected, percent",
        printed=f"{printed:g}",
        ours=f"{ours:.1f} ± {error:.1f}",
        reached=near(printed, ours, math.hypot(error, theirs)),
        rule="within three standard errors of both shares",
        remark=" ".join(remarks),
    )


def _degenerate_claim(name: str, many: int, cell: dict[str, int]) -> Claim:
    printed, theirs = _percent(many, PRINTED_REPLICATIONS)
    ours, error = _percent(cell["degenerate"], cell["replications"])
    return Claim(
        claim=f"Donini, {_NAMES[name]}: classifiers that decide alike for everybody, percent (authors' files)",
        printed=f"{printed:.1f}",
        ours=f"{ours:.1f} ± {error:.1f}",
        reached=near(printed, ours, math.hypot(error, theirs)),
        rule="within three standard errors of both shares",
    )


def _fairer_claim(name: str, naive: dict[str, int], donini: dict[str, int]) -> Claim:
    before, after = PRINTED["table-1"]["naive"][SETS.index(name)], PRINTED["table-1"]["donini"][SETS.index(name)]
    shares = [_percent(c["rejected"], max(1, c["replications"] - c["degenerate"])) for c in (naive, donini)]
    error = math.hypot(shares[0][1], shares[1][1])
    fall = shares[0][0] - shares[1][0]
    whole = [_percent(c["rejected"], c["replications"])[0] for c in (naive, donini)]
    return Claim(
        claim=f"Donini is substantially more fair than the naive SVM on {_NAMES[name]}",
        printed=f"{before:g} to {after:g}",
        ours=f"{shares[0][0]:.1f} to {shares[1][0]:.1f} among proper classifiers",
        reached="yes"
        if fall > 3 * error and shares[1][0] < 0.5 * shares[0][0]
        else "in part"
        if fall > 3 * error
        else "no",
        rule="rejections among classifiers that do not decide alike for everybody fall by half and by more than three "
        "standard errors; in part: by more than three standard errors",
        remark=f"Fall {fall:.1f} ± {error:.1f} points; {whole[0] - whole[1]:.1f} if the others count as fair.",
    )


def _percent(hits: int, of: int) -> tuple[float, float]:
    """Return a share and its standard error in percent."""
    share = hits / max(of, 1)
    return 100 * share, 100 * math.sqrt(share * (1 - share) / max(of, 1))


def draw_table(table: str) -> Callable[[Result], list[Block]]:
    """Return what draws a table."""

    def draw(result: Result) -> list[Block]:
        rows = []
        for method in METHODS:
            for k, name in enumerate(SETS):
                cell, printed = result[f"{name}/{method}"], PRINTED[table][method][k]
                where = f"{_NAMES[name]}, {_NAMES[method]}"
                rows.append(
                    _row(f"{where}: printed", round(printed / 100 * PRINTED_REPLICATIONS), PRINTED_REPLICATIONS)
                )
                rows.append(_row(f"{where}: ours", cell["rejected"], cell["replications"]))
                if cell["degenerate"]:
                    proper = cell["replications"] - cell["degenerate"]
                    rows.append(_row(f"{where}: ours, proper", cell["rejected"], proper))
        caption = (
            "Share of replications in which equal treatment is rejected, with 95 % intervals of chance. Proper "
            "classifiers are those that do not decide alike for everybody. The line marks the nominal level."
        )
        return [forest("Rejections, percent", caption, rows, value="percent", none=5.0, label="Classifier")]

    return draw


def _row(label: str, hits: int, of: int) -> dict[str, Any]:
    share, error = _percent(hits, of)
    return {"label": label, "estimate": share, "low": share - 1.96 * error, "high": share + 1.96 * error}
