"""Reproduce tables V to VII of [monjezi2025]: six mitigators against the plain model, on average and in the tail.

    python reproductions/monjezi2025/comparison.py [--cases census-race,...] [--models lr,...] [--methods minimax,...]
    python reproductions/monjezi2025/comparison.py --summarise      # tables, answers and README from the stored parts

Each data set and model is one file in ``comparison/``, written after each repetition of a method: a stopped run goes
on where it stopped, and methods can be added later. ``comparison.json`` holds what follows from the parts.
"""

from __future__ import annotations

import argparse
import json
import time
import tomllib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import run
from cases import CASES, Case
from classifiers import NAMES, learner
from scipy.stats import loguniform
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from evenhand import mitigation
from evenhand.audits.tail.findings import chosen_horizon
from evenhand.errors import EvenhandError
from evenhand.files import write_atomic
from evenhand.mitigation.counterfactual_rows import CounterfactualRows
from evenhand.mitigation.estimator import check_training, fit_learner, take_rows

HERE = Path(__file__).parent
PLAIN = "plain"
#: Methods by table, with the models that the paper has for them.
TABLES = {
    "V": {"exponentiated_gradient": NAMES, "fair_smote": NAMES},
    "VI": {"stealth": NAMES, "maat": NAMES},
    "VII": {"minimax": ("dnn", "lr"), "ecd_fair": ("dnn", "lr")},
}
METHODS = {method: models for table in TABLES.values() for method, models in table.items()}
#: What is searched for the network; the other models have spaces of their own.
NETWORK_SPACE = {
    "layers": [[64, 32, 16, 8, 4, 2], [32, 16, 8, 4, 2], [64, 16, 2], [16, 8, 2]],
    "rate": loguniform(3e-4, 1e-2),
    "batch": [32, 64, 128, 256],
    "decay": loguniform(1e-5, 1e-1),
}


def split(case: Case, config: dict[str, Any], repetition: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to train on and to test with in one repetition."""
    asked = config["comparison"]
    order = np.random.default_rng([config["seed"], repetition]).permutation(len(case.outcome))
    cut = min(asked["train_rows"], int(config["train_share"] * len(order)))
    return order[:cut], order[cut : cut + asked["test_rows"]]


def mitigator(method: str, model: Any, kind: str, case: Case, config: dict[str, Any], seed: int) -> Any:
    """Return a method around a model that is not fitted."""
    asked = config["comparison"]
    settings: dict[str, dict[str, Any]] = {
        "exponentiated_gradient": {
            "constraint": asked["gradient_constraint"],
            "eps": asked["gradient_slack"],
            "max_iter": asked["gradient_rounds"],
        },
        "minimax": {"rounds": asked["minimax_rounds"].get(kind)},
        "ecd_fair": {
            "trials": asked["ecd_fair_trials"].get(kind),
            "attribute": case.attribute,
            "space": NETWORK_SPACE if kind == "dnn" else None,
        },
    }
    made = getattr(mitigation, mitigation.METHODS[method])
    return made(model, random_state=seed, **settings.get(method, {}))


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
    return levels[u, p] - levels[p, u]


def once(name: str, case: Case, kind: str, method: str, config: dict[str, Any], repetition: int) -> dict[str, Any]:
    """Fit one method, or the plain model, in one repetition and measure it."""
    train, test = split(case, config, repetition)
    y, group = case.outcome.astype(np.int64), case.columns[case.attribute]
    share = min(float((group == g).mean()) for g in (case.unprivileged, case.privileged))
    asked = config["comparison"]
    network = config["network"] | {"least_steps": asked["network_steps"], "rate": asked["network_rate"]}
    seed = config["seed"] + repetition
    model = learner(kind, case.columns, config | {"network": network}, seed)
    X, X_test = (pd.DataFrame({n: c[rows] for n, c in case.columns.items()}) for rows in (train, test))
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if method == PLAIN:
            fitted = fit_learner(model, check_training(X, y[train], group[train], None))
        else:
            fitted = mitigator(method, model, kind, case, config, seed)
            fitted.fit(X, y[train], sensitive_features=group[train])
    seconds = time.process_time() - began
    rows = check_training(X_test, y[test], group[test], None)
    tail = CounterfactualRows(rows, [case.attribute], horizon=chosen_horizon(int(share * len(test))))
    return measured(fitted, case, tail) | {"horizon": tail.horizon, "seconds": round(seconds, 2)}


def run_part(
    name: str, kind: str, config: dict[str, Any], folder: Path, methods: list[str], repetitions: int
) -> dict[str, Any]:
    """Run what is missing of one data set and model, and store each repetition."""
    place = folder / f"{kind}-{name}.json"
    case = CASES[name]()
    settings = {k: v for k, v in config["comparison"].items() if k not in ("repetitions", "table_i_rounds")}
    train, test = split(case, config, 0)
    part: dict[str, Any] = {"settings": settings, "train": len(train), "test": len(test), "rows": len(case.outcome)}
    part["methods"] = {}
    if place.exists():
        stored = json.loads(place.read_text(encoding="utf-8"))
        if stored["settings"] != settings:
            raise SystemExit(f"{place} was made with other settings. Remove it to run it again.")
        part = stored
    for method in [PLAIN, *(m for m in methods if kind in METHODS[m])]:
        done = part["methods"].setdefault(method, [])
        for repetition in range(len(done), repetitions):
            try:
                done.append(once(name, case, kind, method, config, repetition))
            except (EvenhandError, ValueError) as error:  # a method may not be able to do with these rows: that is said
                done.append({"problem": str(error), "seconds": 0.0})
            write_atomic(place, json.dumps(part, indent=1) + "\n")
        used = sum(d["seconds"] for d in done)
        print(f"{kind} {name} {method}: {len(done)} repetitions, {used:.0f} s of fitting", flush=True)
    return part


def table_i(config: dict[str, Any], folder: Path) -> None:
    """Audit the network on Adult by race as trained and after exponentiated gradient, in both readings; store it."""
    case = CASES["census-race"]()
    rounds = config["comparison"]["table_i_rounds"]
    train, test = run.split(case, config)
    frame, y, group = pd.DataFrame(case.columns), case.outcome.astype(np.int64), case.columns[case.attribute]
    X, rest = (take_rows(frame, rows).reset_index(drop=True) for rows in (train, test))
    network = learner("dnn", case.columns, config, config["seed"])
    plain = fit_learner(network, check_training(X, y[train], group[train], None))
    fitted = mitigation.ExponentiatedGradient(
        network,
        constraint=config["comparison"]["gradient_constraint"],
        eps=config["comparison"]["gradient_slack"],
        max_iter=rounds,
        random_state=config["seed"],
    ).fit(X, y[train], sensitive_features=group[train])
    mixture = mixture_of(fitted)
    out: dict[str, Any] = {"rounds": rounds, "members": len(mixture.members)}
    for label, model, form in (
        ("as trained", plain, None),
        ("expected decision", fitted, "decision"),
        ("mean probability", fitted, "probability"),
    ):
        mixture.form = form or mixture.form
        one = model.predict_proba(rest)[:, 1]
        right = np.where(y[test] == 1, one, 1 - one) if form == "decision" else (one >= 0.5) == y[test]
        shown = run.audited(case, model, config).to_dict()["evidence"][0]["groups"]
        out[label] = {"accuracy": round(float(right.mean()), 4)} | {
            g["group"]: {
                f"{r['interactions']:.0f}": [r["level"], r["low"], r["high"]] for r in g.get("return_levels", [])
            }
            for g in shown.values()
        }
        print(label, out[label], flush=True)
    write_atomic(folder / "table-i.json", json.dumps(out, indent=1) + "\n")


def main() -> None:
    """Run what was asked, or put the parts together."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--models", default="lr,svm,dnn,rf")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--repetitions", type=int, help="instead of those of config.toml")
    parser.add_argument("--summarise", action="store_true")
    parser.add_argument("--table-i", action="store_true", help="only table I with exponentiated gradient")
    parser.add_argument("--folder", type=Path, default=HERE / "comparison")
    arguments = parser.parse_args()
    config = tomllib.loads((HERE / "config.toml").read_text(encoding="utf-8"))
    if arguments.table_i:
        table_i(config, arguments.folder)
        return
    if arguments.summarise:
        from comparison_tables import store

        store(arguments.folder, config)
        return
    for kind in arguments.models.split(","):
        for name in arguments.cases.split(","):
            most = arguments.repetitions or config["comparison"]["repetitions"][kind]
            run_part(name, kind, config, arguments.folder, arguments.methods.split(","), most)


if __name__ == "__main__":
    main()
