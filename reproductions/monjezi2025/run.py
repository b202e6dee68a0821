"""Reproduce [monjezi2025]: tables I to IV in structure; the printed digits are lost.

    python reproductions/monjezi2025/run.py [--short] [--only table_iv,table_iii,table_i] [--cases census-race,...]

Writes ``result.json`` beside this file (``--short`` prints only); parts that were not run keep their stored values.
Needs scikit-learn and pandas, torch for the network and two generators, and the data files (``evenhand datasets``).
"""

from __future__ import annotations

import argparse
import json
import math
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from cases import CASES, Case
from classifiers import NAMES, train
from printed import TYPES, algorithm_1

import evenhand as eh
from evenhand.audits.tail import audit_tail
from evenhand.generators import downstream_f1, make_generator, realism
from evenhand.models import adapt
from evenhand.models.counterfactual import recorded_as

HERE = Path(__file__).parent


def split(case: Case, config: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to train on and the others."""
    order = np.random.default_rng(config["seed"]).permutation(len(case.outcome))
    cut = int(config["train_share"] * len(order))
    return order[:cut], order[cut:]


def fitted(case: Case, name: str, config: dict[str, Any], weight: np.ndarray | None = None) -> tuple[Any, float]:
    """Train a model; return it and its accuracy on the other rows."""
    rows, rest = split(case, config)
    frame = pd.DataFrame(case.columns)
    weight = None if weight is None else weight[rows]
    model = train(name, frame.iloc[rows].reset_index(drop=True), case.outcome[rows], config, weight)
    return model, float((model.predict(frame.iloc[rest].reset_index(drop=True)) == case.outcome[rest]).mean())


def audited(case: Case, model: Any, config: dict[str, Any], **options: Any) -> eh.AuditResult:
    """Run the tail audit on all rows of a case."""
    data = eh.AuditData.from_arrays(
        outcome=case.outcome, groups={case.attribute: case.columns[case.attribute]}, features=case.columns
    )
    return audit_tail(
        data, model=model, attribute=case.attribute, reference=case.privileged, horizon=config["horizon"],
        n_resamples=config["n_resamples"], rng=config["seed"], **options,
    )  # fmt: skip


def as_printed(case: Case, model: Any, kind: str, name: str, config: dict[str, Any]) -> list[dict[str, Any]]:
    """Run the printed algorithm, in both readings, on the two groups (unprivileged first) of a case."""
    labels = [case.unprivileged, case.privileged]
    of = case.columns[case.attribute]
    scorer = adapt(model, case.columns)
    values = [{case.attribute: label} for label in labels]
    rows = []
    for own, label in enumerate(labels):

        def change(columns: dict[str, np.ndarray], other: int = 1 - own) -> np.ndarray:
            return scorer.change(columns, recorded_as(columns, labels[other], other, values))

        mine = {n: c[of == label] for n, c in case.columns.items()}
        rows.append(
            {"group": label, "printed_type": TYPES[kind, name, label]}
            | {r: algorithm_1(mine, change, config, r, 1.0) for r in ("values", "excesses")}
        )
    return rows


def group_row(shown: dict[str, Any]) -> dict[str, Any]:
    """One line of table IV."""
    fit, made = shown.get("fit"), shown.get("synthetic") or {}
    row: dict[str, Any] = {
        "group": shown["group"], "rows": shown["rows"], "generated": made.get("rows", 0), "acd": shown["acd"],
        "cvar": shown["cvar"]["value"], "maximum": shown["observed_maximum"]["value"],
        "passed_printed": shown.get("exponentiality", {}).get("passed_printed"), "reason": shown["doubt"],
        "nobody_better_off": shown["nobody_better_off"],
        "generated_level": made.get("level"), "generated_shape": made.get("shape"),
    }  # fmt: skip
    if fit is not None:
        row |= {
            "k": fit["k"], "threshold": fit["threshold"], "location": fit["location"], "scale": fit["location_scale"],
            "shape": fit["free_shape"], "shape_interval": [fit["free_shape_interval"][e] for e in ("low", "high")],
            "type": fit["type"], "end_point": fit["end_point"], "qq_correlation": shown["quantile_plot"]["correlation"],
            "horizon": shown["feasible_horizon"]["interactions"], "unlimited": shown["feasible_horizon"]["unlimited"],
        }  # fmt: skip
    return row


def table_iv(
    names: list[str], models: tuple[str, ...], config: dict[str, Any], stored: dict[str, Any]
) -> dict[str, Any]:
    """ACD beside CVaR beside ECD, and the fitted tails, for every data set and model."""
    out = dict(stored)
    for name in names:
        case = CASES[name]()
        for kind in models:
            began = time.monotonic()
            model, accuracy = fitted(case, kind, config)
            result = audited(case, model, config)
            finding, evidence = result[0], eh.AuditResult.to_dict(result)["evidence"][0]
            groups = [group_row(g) for g in evidence.get("groups", {}).values()]
            out[f"{kind} {name}"] = {
                "accuracy": round(accuracy, 4),
                "acd": groups[0]["acd"] - groups[1]["acd"] if groups else None,
                "cvar": groups[0]["cvar"] - groups[1]["cvar"] if groups else None,
                "ecd": None if math.isnan(finding.estimate) else finding.estimate,
                "interval": None if finding.interval is None else [finding.interval.low, finding.interval.high],
                "pvalue": None if math.isnan(finding.pvalue) else finding.pvalue,
                "verdict": str(finding.verdict),
                "groups": groups,
                "as_printed": as_printed(case, model, kind, name, config),
            }
            types = [g.get("type", g["reason"][:50]) for g in groups]
            types += [[g[r]["type"] for r in ("values", "excesses")] for g in out[f"{kind} {name}"]["as_printed"]]
            seconds = time.monotonic() - began
            print(
                f"{kind} {name}: {accuracy:.3f} {finding.estimate:.4f} {finding.verdict} {types} {seconds:.0f} s",
                flush=True,
            )
    return out


def feasibility(cells: dict[str, Any]) -> dict[str, Any]:
    """Count the tails from which a worst case can be extrapolated (types I and III), as the abstract does (95 %)."""
    rows = [g for c in cells.values() for g in c["groups"]]
    blind = sum(not c["groups"] for c in cells.values())  # the model gives everybody one score, or ignores the flip
    kinds = [g.get("type", "" if g.get("nobody_better_off", not g["reason"]) else None) for g in rows]  # "": level 0
    own = sum(t in ("I", "III") for t in kinds)
    extended = sum(t is None and g["generated_level"] is not None for t, g in zip(kinds, rows, strict=True))
    atoms = sum("distinct values" in g["reason"] for g in rows)
    printed = [g for c in cells.values() for g in c["as_printed"]]
    return {
        "tails": len(rows) + 2 * blind,
        **{
            f"printed algorithm, CV of {reading}: valid": sum(g[reading]["type"] in ("I", "III") for g in printed)
            for reading in ("values", "excesses")
        },
        **{
            f"printed algorithm, CV of {reading}: tails with generated rows": sum(
                g[reading]["generated"] > 0 for g in printed
            )
            for reading in ("values", "excesses")
        },
        **{
            f"printed algorithm, CV of {reading}: type as in print": sum(
                g[reading]["type"] == g["printed_type"] for g in printed
            )
            for reading in ("values", "excesses")
        },
        "models that do not react to the flip": blind,
        "valid on own rows": own,
        "nobody better off (level 0 by counting)": kinds.count(""),
        "valid only with generated rows": extended,
        "refused: scores in steps": atoms,
        "type I": kinds.count("I"),
        "type II": kinds.count("II"),
        "type III": kinds.count("III"),
        "valid as the paper counts": own + extended + kinds.count(""),
        "printed limits passed": sum(g["passed_printed"] is True for g in rows),
        "printed limits asked": sum(g["passed_printed"] is not None for g in rows),
        "pairs with a finding": sum(c["ecd"] is not None for c in cells.values()),
        "pairs where |ECD| > |ACD|": sum(
            c["ecd"] is not None and abs(c["ecd"]) > abs(c["acd"]) for c in cells.values()
        ),
        "pairs with verdict disparity": sum(c["verdict"] == "disparity" for c in cells.values()),
    }


def table_iii(
    names: list[str], config: dict[str, Any], kinds: tuple[str, ...], stored: dict[str, Any]
) -> dict[str, Any]:
    """How real generated rows look: Fréchet distance, margins, detection, F1 lost downstream."""
    out = dict(stored)
    for name in names:
        case = CASES[name]()
        rows, rest = split(case, config)
        rows = rows[: config["generators"]["rows"]]
        real = {n: c[rows] for n, c in case.columns.items()} | {"outcome": case.outcome[rows].astype(np.int64)}
        test = ({n: c[rest] for n, c in case.columns.items()}, case.outcome[rest])
        for kind in kinds:
            maker: Any = make_generator(kind, seed=config["seed"])
            if kind in ("ctgan", "tvae"):
                maker.batch, maker.epochs = config["generators"]["batch"], config["generators"]["epochs"]
            made = maker.fit(real).sample(len(rows))
            label = made.pop("outcome").astype(float)
            train_ = ({n: real[n] for n in made}, real["outcome"].astype(float))
            score = realism(train_[0], made, seed=config["seed"])
            out[f"{kind} {name}"] = score | {"f1_loss": round(downstream_f1(train_, (made, label), test), 4)}
            print(f"table III {kind} {name}: {out[f'{kind} {name}']}", flush=True)
    return out


def table_i(config: dict[str, Any]) -> dict[str, Any]:
    """Return levels of the network on Adult by race, as trained and after reweighing."""
    case = CASES["census-race"]()
    group, y = case.columns[case.attribute] == case.privileged, case.outcome == 1
    weight = np.empty(len(y))
    for g in (True, False):
        for v in (True, False):  # reweighing: expected over observed share of each cell
            cell = (group == g) & (y == v)
            weight[cell] = (group == g).mean() * (y == v).mean() / cell.mean()
    out = {}
    for label, w in (("original", None), ("reweighed", weight)):
        model, accuracy = fitted(case, "dnn", config, w)
        shown = audited(case, model, config).to_dict()["evidence"][0]["groups"]
        out[label] = {"accuracy": round(accuracy, 4)} | {
            g["group"]: {
                f"{r['interactions']:.0f}": [r["level"], r["low"], r["high"]] for r in g.get("return_levels", [])
            }
            for g in shown.values()
        }
    return out


def main() -> None:
    """Run what was asked and store it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--only", default="table_iv,table_iii,table_i")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--models", default=",".join(NAMES))
    parser.add_argument("--out", type=Path, default=HERE / "result.json")
    arguments = parser.parse_args()
    config = tomllib.loads((HERE / "config.toml").read_text(encoding="utf-8"))
    if arguments.short:  # for every run of the tests: no network, three small data sets
        cells = table_iv(["credit-sex", "compas-race", "students-sex"], ("lr",), config | {"n_resamples": 99}, {})
        print(json.dumps(feasibility(cells), indent=1))
        print(json.dumps(table_iii(["credit-sex"], config, ("light", "independent"), {}), indent=1))
        return
    place = arguments.out
    stored: dict[str, Any] = json.loads(place.read_text(encoding="utf-8")) if place.exists() else {}
    names, models = arguments.cases.split(","), tuple(arguments.models.split(","))

    def store(key: str, value: Any) -> None:
        stored[key] = value
        place.write_text(json.dumps(stored, indent=1, default=float) + "\n", encoding="utf-8")

    if "table_iv" in arguments.only.split(","):
        for name in names:
            store("table_iv", table_iv([name], models, config, stored.get("table_iv", {})))
        store("feasibility", feasibility(stored["table_iv"]))
    if "table_iii" in arguments.only.split(","):
        sets = [n for n in names if n != "census-sex"]  # the same rows as census-race
        for name in sets:
            store(
                "table_iii",
                table_iii([name], config, ("ctgan", "tvae", "light", "independent"), stored.get("table_iii", {})),
            )
    if "table_i" in arguments.only.split(","):
        store("table_i", table_i(config))
    print(json.dumps(stored.get("feasibility"), indent=1))


if __name__ == "__main__":
    main()
