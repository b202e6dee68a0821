"""One mitigator on one data set and model: fitted in several repetitions and measured on other rows."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import loguniform
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from evenhand import mitigation
from evenhand.audits.tail.findings import chosen_horizon
from evenhand.errors import EvenhandError
from evenhand.kernels.shared.seeds import published_stream
from evenhand.mitigation.counterfactual_rows import CounterfactualRows
from evenhand.mitigation.estimator import check_training, fit_learner
from evenhand.reproductions.monjezi2025.cases import CASES, Case
from evenhand.reproductions.monjezi2025.classifiers import learner
from evenhand.reproductions.paper import Settings

PLAIN = "plain"
#: What is searched for the network; the other models have spaces of their own.
NETWORK_SPACE = {
    "layers": [[64, 32, 16, 8, 4, 2], [32, 16, 8, 4, 2], [64, 16, 2], [16, 8, 2]],
    "rate": loguniform(3e-4, 1e-2),
    "batch": [32, 64, 128, 256],
    "decay": loguniform(1e-5, 1e-1),
}


def split(case: Case, settings: Settings, repetition: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows to train on and to test with in one repetition."""
    order = published_stream(settings["seed"], repetition).permutation(len(case.outcome))
    cut = min(settings["train_rows"], int(settings["train_share"] * len(order)))
    return order[:cut], order[cut : cut + settings["test_rows"]]


def mitigator(method: str, model: Any, kind: str, case: Case, settings: Settings, seed: int) -> Any:
    """Return a method around a model that is not fitted."""
    asked: dict[str, dict[str, Any]] = {
        "exponentiated_gradient": {
            "constraint": settings["gradient_constraint"],
            "eps": settings["gradient_slack"],
            "max_iter": settings["gradient_rounds"],
        },
        "minimax": {"rounds": settings["minimax_rounds"].get(kind)},
        "ecd_fair": {
            "trials": settings["ecd_fair_trials"].get(kind),
            "attribute": case.attribute,
            "space": NETWORK_SPACE if kind == "dnn" else None,
        },
    }
    made = getattr(mitigation, mitigation.METHODS[method])
    return made(model, random_state=seed, **asked.get(method, {}))


def mixture_of(fitted: Any) -> Any:
    """Return the mixture that a fitted method decides by; None where it is no mixture."""
    inner = getattr(fitted, "decides_as_", None)
    last = inner.steps[-1][1] if isinstance(inner, Pipeline) else inner
    return last if isinstance(last, mitigation.Mixture) else None


def measured(fitted: Any, case: Case, test: CounterfactualRows) -> dict[str, Any]:
    """Return accuracy, the mean differences and ECD on the test rows; decisions that are drawn count as chances."""
    rows = test.rows
    mixture = mixture_of(fitted)
    one = fitted.predict_proba(rows.X)[:, 1] if mixture is not None else (fitted.predict(rows.X) == 1).astype(float)
    unprivileged, privileged = (rows.group == rows.groups.index(g) for g in (case.unprivileged, case.privileged))
    rate = {
        (who, label): float(one[group & (rows.y == label)].mean())
        for who, group in (("u", unprivileged), ("p", privileged))
        for label in (0, 1)
    }
    selected = [float(one[group].mean()) for group in (unprivileged, privileged)]
    tpr, fpr = (rate["u", label] - rate["p", label] for label in (1, 0))
    out = {
        "accuracy": float(np.where(rows.y == 1, one, 1 - one).mean()),
        "aod": abs(tpr + fpr) / 2,
        "eod": abs(tpr),
        "spd": abs(selected[0] - selected[1]),
        "di": 1 - min(selected) / max(selected) if max(selected) > 0 else 0.0,  # how far the ratio lies below one
        "signed_ecd": _signed_ecd(fitted, case, test),
    }
    if mixture is not None:
        form = mixture.form
        mixture.form = "probability"
        out["signed_ecd_of_probabilities"] = _signed_ecd(fitted, case, test)
        mixture.form = form
    return out


def _signed_ecd(fitted: Any, case: Case, test: CounterfactualRows) -> float:
    """Return the level of the unprivileged less that of the privileged."""
    u, p = (test.rows.groups.index(g) for g in (case.unprivileged, case.privileged))
    levels = test.levels(fitted)
    return float(levels[u, p] - levels[p, u])


def once(case: Case, kind: str, method: str, settings: Settings, repetition: int) -> dict[str, Any]:
    """Fit one method, or the plain model, in one repetition and measure it."""
    train, test = split(case, settings, repetition)
    y, group = case.outcome.astype(np.int64), case.columns[case.attribute]
    share = min(float((group == g).mean()) for g in (case.unprivileged, case.privileged))
    seed = settings["seed"] + repetition
    model = learner(kind, case.columns, settings, seed)
    X, X_test = (pd.DataFrame({n: c[rows] for n, c in case.columns.items()}) for rows in (train, test))
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if method == PLAIN:
            fitted = fit_learner(model, check_training(X, y[train], group[train], None))
        else:
            fitted = mitigator(method, model, kind, case, settings, seed)
            fitted.fit(X, y[train], sensitive_features=group[train])
    seconds = time.process_time() - began
    rows = check_training(X_test, y[test], group[test], None)
    tail = CounterfactualRows(rows, [case.attribute], horizon=chosen_horizon(int(share * len(test))))
    return measured(fitted, case, tail) | {"horizon": tail.horizon, "seconds": seconds}


def compared(name: str, kind: str, methods: tuple[str, ...], settings: Settings) -> dict[str, Any]:
    """Run all repetitions of the plain model and of some methods on one data set and model."""
    case = CASES[name]()
    train, test = split(case, settings, 0)
    runs: dict[str, list[dict[str, Any]]] = {}
    unable: dict[str, str] = {}
    for method in (PLAIN, *methods):
        for repetition in range(settings["repetitions"]):
            try:
                runs.setdefault(method, []).append(once(case, kind, method, settings, repetition))
            except (EvenhandError, ValueError) as error:  # a method may not be able to do with these rows: that is said
                unable[method] = str(error)
                runs.pop(method, None)
                break
    return {"train": len(train), "test": len(test), "rows": len(case.outcome), "unable": unable} | tidied(runs)


def tidied(runs: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Return each measure of each method over the repetitions, with six digits."""
    horizon = runs[PLAIN][0]["horizon"]
    methods = {}
    for method, done in runs.items():
        names = [n for n in done[0] if n not in ("horizon", "seconds")]
        methods[method] = {n: [float(f"{one[n]:.6g}") for one in done] for n in names}
    return {
        "horizon": horizon,
        "methods": methods,
        "seconds": {method: round(sum(one["seconds"] for one in done), 1) for method, done in runs.items()},
    }
