"""Figure 1: statistic, threshold and accuracy against the penalty of a classifier."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from evenhand.arrays import FloatArray, IntArray
from evenhand.report.document import Block
from evenhand.report.figures import Frame, lines, number
from evenhand.reproductions.paper import Claim, Parts, Result, Settings
from evenhand.reproductions.si2021.authors import CURVES
from evenhand.reproductions.si2021.people import People, authors_splits, project, read_people
from evenhand.reproductions.si2021.tables import linear_svm

SETTINGS = {"splits": 20, "penalties": 40, "alpha": 0.05}
SHORT = {"splits": 1, "penalties": 4, "alpha": 0.05}

Measured = dict[str, float] | None  # None where everybody gets one decision: there is no boundary

_PANELS = {"compas": ("logistic regression on COMPAS", 0.0, 100.0), "drug": ("SVM on Drug", 1.0, 15.0)}
_DIGITS = {"statistic": 2, "threshold": 2, "accuracy": 3}
_FIRST = 2  # how many values a claim shows before the last one


def run_figure(settings: Settings, parts: Parts) -> Result:
    """Audit a classifier at each penalty on each split; the first split is the authors' own."""
    return {name: parts.keep(name, {**settings, "set": name}, partial(_panel, name, settings)) for name in _PANELS}


def _panel(name: str, settings: Settings) -> list[dict[str, Any]]:
    people = read_people(name)
    _, low, high = _PANELS[name]
    penalties = np.linspace(low, high, 40)[: settings["penalties"]]
    fit = _logistic if name == "compas" else _machine
    made: list[list[Measured]] = [[] for _ in penalties]
    for train, test in authors_splits(people, settings["splits"]):
        for at, (coefficients, intercept) in zip(made, fit(people, train, penalties), strict=True):
            at.append(_measured(people, test, coefficients, intercept, settings["alpha"]))
    return [_line(float(penalty), at) for penalty, at in zip(penalties, made, strict=True)]


def _line(penalty: float, at: Sequence[Measured]) -> dict[str, Any]:
    """Sum up the splits of one penalty; means are over those that have a boundary."""
    proper = [each for each in at if each is not None]
    values = {q: np.array([each[q] for each in proper]) for q in _DIGITS}
    return {
        "penalty": penalty,
        "first": at[0],
        "splits": len(at),
        "degenerate": len(at) - len(proper),
        "rejected": sum(each["statistic"] > each["threshold"] for each in proper),
        "mean": {q: float(v.mean()) if v.size else None for q, v in values.items()},
        "deviation": {q: float(v.std(ddof=1)) if v.size > 1 else 0.0 for q, v in values.items()},
    }


def _measured(people: People, rows: IntArray, coefficients: FloatArray, intercept: float, alpha: float) -> Measured:
    _, evidence = project(
        people,
        rows,
        (coefficients, intercept),
        criterion="equal_opportunity",
        bandwidth=rows.size**-0.2,
        alpha=alpha,
    )
    if evidence.statistic is None or evidence.threshold is None:
        return None
    accuracy = float(np.mean((people.X[rows] @ coefficients + intercept >= 0) == people.y[rows]))
    return {"statistic": evidence.statistic, "threshold": evidence.threshold, "accuracy": accuracy}


def _machine(people: People, train: IntArray, penalties: FloatArray) -> list[tuple[FloatArray, float]]:
    return [linear_svm(people.X, people.y, train, 1 / penalty) for penalty in penalties]


def _logistic(people: People, train: IntArray, penalties: FloatArray) -> list[tuple[FloatArray, float]]:
    """Fit logistic regressions without intercept, penalised by the norm of the coefficients.

    So did the authors, with the sum of losses divided by the number of features. The norm itself, not its square as
    in Tikhonov's penalty, makes all coefficients 0 from some penalty on.
    """
    from scipy.optimize import minimize
    from scipy.special import expit

    rows, weight = np.unique(np.column_stack([people.X[train], people.y[train]]), axis=0, return_counts=True)
    X, y = rows[:, :-1], rows[:, -1]
    n_features = X.shape[1]

    def value(b: FloatArray, price: float) -> float:
        z = X @ b
        return float(weight @ (np.logaddexp(0.0, z) - y * z) + price * np.linalg.norm(b))

    def slope(b: FloatArray, price: float) -> FloatArray:
        pull = X.T @ (weight * (expit(X @ b) - y))
        return np.asarray(pull + price * b / max(float(np.linalg.norm(b)), 1e-300))

    def bend(b: FloatArray, price: float) -> FloatArray:
        p, size = expit(X @ b), max(float(np.linalg.norm(b)), 1e-300)
        return np.asarray(
            (X * (weight * p * (1 - p))[:, None]).T @ X + price / size * (np.eye(b.size) - np.outer(b, b) / size**2)
        )

    found, b = [], np.full(n_features, 0.1)
    start = X.T @ (weight * (0.5 - y))
    for penalty in penalties:
        price = float(n_features * penalty)
        if float(np.linalg.norm(start)) <= price:
            found.append((np.zeros(n_features), 0.0))
            continue
        b = minimize(value, b, (price,), "trust-exact", slope, bend, options={"gtol": 1e-8, "maxiter": 500}).x
        found.append((b, 0.0))
    return found


def claim_figure(result: Result, settings: Settings) -> list[Claim]:
    """Compare each panel with the authors' stored values, and its statements with ours."""
    claims = []
    for name, (words, _, _) in _PANELS.items():
        made, printed = result[name], CURVES[name]
        for quantity, digits in _DIGITS.items():
            claims.append(_same(f"{words}: {quantity}", made, printed[quantity], quantity, digits))
        claims += _statements(words, made, printed)
    return claims


def _same(claim: str, made: Sequence[dict[str, Any]], printed: Sequence[float], quantity: str, digits: int) -> Claim:
    pairs = [
        (p, None if line["first"] is None else line["first"][quantity]) for p, line in zip(printed, made, strict=False)
    ]
    equal = [o is not None and abs(p - o) <= 0.5001 * 10**-digits for p, o in pairs]
    miss = [
        f"{o:.{digits}f} in place of {p:.{digits}f} at {line['penalty']:.4g}"
        for (p, o), line, same in zip(pairs, made, equal, strict=True)
        if o is not None and not same
    ]
    none = [line["penalty"] for line in made if line["first"] is None]
    told = [f"{sum(equal)} of {len(pairs)} are equal", *miss]
    if none:
        told.append(f"from penalty {none[0]:.4g} on the best coefficients are 0, so there is no classifier to measure")
    return Claim(
        claim=f"{claim}, the authors' split, at {len(pairs)} penalties",
        printed=_ends([p for p, _ in pairs], digits),
        ours=_ends([o for _, o in pairs], digits),
        reached="yes" if all(equal) else "in part" if sum(equal) >= 0.75 * len(pairs) else "no",
        rule="equal after rounding at every penalty; in part: at three quarters of them",
        remark="; ".join(told) + ".",
    )


def _ends(values: Sequence[float | None], digits: int) -> str:
    shown = ["none" if v is None else f"{v:.{digits}f}" for v in values]
    return ", ".join(shown if len(shown) <= _FIRST else [*shown[:_FIRST], "…", shown[-1]])


def _statements(words: str, made: Sequence[dict[str, Any]], printed: dict[str, tuple[float, ...]]) -> list[Claim]:
    whole = [line for line in made if not line["degenerate"]]
    first, last = whole[0], whole[-1]
    error = float(np.hypot(first["deviation"]["statistic"], last["deviation"]["statistic"])) / first["splits"] ** 0.5
    falls = first["mean"]["statistic"] - last["mean"]["statistic"]
    theirs = [s > t for s, t in zip(printed["statistic"], printed["threshold"], strict=True)]
    own = [line["first"]["statistic"] > line["first"]["threshold"] for line in made if line["first"] is not None]
    return [
        Claim(
            claim=f"{words}: a strong penalty reduces the statistic, mildly",
            printed=f"{printed['statistic'][0]:.2f} to {printed['statistic'][-1]:.2f}",
            ours=f"{first['mean']['statistic']:.2f} to {last['mean']['statistic']:.2f} ± {error:.2f}",
            reached="yes" if 3 * error < falls < 0.75 * first["mean"]["statistic"] else "no",
            rule="the mean over splits falls by more than three standard errors, and by less than three quarters",
            remark=f"Means of {first['splits']} splits, up to penalty {last['penalty']:.4g}, the largest at which each "
            "has a boundary.",
        ),
        Claim(
            claim=f"{words}: the test rejects even when the penalty is large",
            printed=f"{sum(theirs)} of {len(theirs)} penalties in the authors' stored values",
            ours=f"{sum(own)} of {len(own)} penalties on their split; {last['rejected']} of {last['splits']} splits at "
            f"penalty {last['penalty']:.4g}",
            reached="yes" if all(own) else "no",
            rule="the statistic exceeds its threshold at every penalty that leaves a classifier, on the authors' split",
            remark="" if all(theirs) else "The printed curve itself lies below its threshold at most penalties.",
        ),
    ]


def draw_figure(result: Result) -> list[Block]:
    """Draw each panel: ours on the authors' split and its mean over splits, and theirs."""
    blocks: list[Block] = []
    for name, (words, _, _) in _PANELS.items():
        for quantities, y in ((("statistic", "threshold"), "value"), (("accuracy",), "accuracy")):
            rows = [row for q in quantities for row in _rows(result[name], CURVES[name][q], q)]
            blocks.append(
                lines(
                    f"{words[0].upper()}{words[1:]}: {' and '.join(quantities)}",
                    "Theirs and ours on the same split, and the mean of ours over all splits with a band of one "
                    "standard deviation between splits.",
                    rows,
                    Frame(x="penalty", y=y),
                )
            )
    return blocks


def _rows(made: Sequence[dict[str, Any]], printed: Sequence[float], quantity: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for line, theirs in zip(made, printed, strict=False):
        at = number(line["penalty"])
        rows.append({"x": at, "y": number(theirs), "series": f"{quantity}, printed"})
        if line["first"] is not None:
            rows.append({"x": at, "y": number(line["first"][quantity]), "series": f"{quantity}, ours"})
        mean, wide = line["mean"][quantity], line["deviation"][quantity]
        if mean is not None:
            band = {"low": number(mean - wide), "high": number(mean + wide)}
            rows.append({"x": at, "y": number(mean), "series": f"{quantity}, ours, mean", **band})
    return rows
