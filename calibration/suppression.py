"""An attack on suppression: what can be worked out of the groups that a shared audit holds back?

Random tables of people are audited with `suppress`, and the text of ``findings.json`` is all that the attacker reads,
beside the number of people by outcome and decision over all groups. She knows how the groups add up, that counts are
whole and not negative, and that a group that is held back is not empty. Integer programmes give the least and the
largest value of each count that agree with it. Beside them stand the same attacks on a report that only leaves out the
small groups and protects nothing.

python calibration/suppression.py [--tables 200] [--start 0]
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

import evenhand as eh

HERE = Path(__file__).parent
SHAPES = ((6,), (12,), (2, 4), (2, 7), (3, 5), (2, 2, 3))  # groups of each attribute
THRESHOLDS = (5, 10, 20)
KINDS = (2, 4)  # decisions alone, or outcomes and decisions


def random_people(seed: int) -> tuple[eh.AuditData, int, int]:
    """Draw people in groups of very unequal size; return them, the threshold and the number of counts per group."""
    rng = np.random.default_rng(seed)
    shape = SHAPES[seed % len(SHAPES)]
    threshold, kinds = THRESHOLDS[seed % len(THRESHOLDS)], KINDS[(seed // 2) % len(KINDS)]
    names = ["a", "b", "c"][: len(shape)]
    shares = [rng.dirichlet(np.full(k, 0.7)) for k in shape]
    rows = int(rng.integers(60, 400)) * threshold
    groups = {
        name: np.array([f"{name}{j}" for j in [*range(k), *rng.choice(k, rows - k, p=share)]])
        for name, k, share in zip(names, shape, shares, strict=True)
    }
    rate = rng.uniform(0.05, 0.6)
    columns: dict[str, Any] = {"decision": rng.random(rows) < rate}
    if kinds == 4:
        columns["outcome"] = rng.random(rows) < rng.uniform(0.2, 0.8)
    columns = {role: values.astype(int) for role, values in columns.items()}
    return eh.AuditData.from_arrays(**columns, groups=groups, intersections=len(shape) > 1), threshold, kinds


def published(text: str, kinds: int) -> tuple[dict[str, dict[str, list[int]]], dict[str, list[str]], dict[str, Any]]:
    """Read the counts of each published group, the names of the others, and all sizes, out of ``findings.json``."""
    run = json.loads(text)
    known: dict[str, dict[str, dict[str, float]]] = {}
    for finding in run["findings"]:
        measure = finding["measure"].removesuffix("_global")
        for name, counts in finding["counts"].items():
            attribute, _, label = name.partition("=")
            known.setdefault(attribute, {}).setdefault(label, {})[measure] = counts
    tables: dict[str, dict[str, list[int]]] = {}
    for attribute, groups in known.items():
        tables[attribute] = {}
        for label, by in groups.items():
            chosen = by["selection_rate"]
            cells = [chosen["denominator"] - chosen["numerator"], chosen["numerator"]]
            if kinds == 4:
                fn, fp = by["fnr"], by["fpr"]
                cells = [fp["denominator"] - fp["numerator"], fp["numerator"]]
                cells += [fn["numerator"], fn["denominator"] - fn["numerator"]]
            tables[attribute][label] = [int(n) for n in cells]
    return tables, run["data"]["suppression"]["groups"], run["data"]["groups"]


def truth(data: eh.AuditData, kinds: int) -> dict[str, dict[str, list[int]]]:
    """Count the cells of every group, by a plain loop over records."""
    tables: dict[str, dict[str, list[int]]] = {}
    for attribute in data.attributes:
        table = {label: [0] * kinds for label in attribute.labels}
        for j, code in enumerate(attribute.codes):
            cell = int(data.decision[j]) + (2 * int(data.outcome[j]) if kinds == 4 else 0)
            table[attribute.labels[code]][cell] += int(data.count[j])
        tables[attribute.name] = table
    return tables


def attack(
    tables: dict[str, dict[str, list[int]]], held: dict[str, list[str]], everybody: list[int]
) -> dict[tuple[str, str, int], tuple[int, int]]:
    """Find the least and the largest value of each count held back, and, as the last count, of their sum."""
    finest = max({*tables, *held}, key=lambda name: name.count(" × "))
    names = finest.split(" × ")
    labels = [*tables.get(finest, {}), *held.get(finest, [])]
    kinds = len(everybody)
    inside = {
        (name, group): np.array([group == label or group in _parts(label, names, name) for label in labels])
        for name in {*tables, *held}
        for group in [*tables.get(name, {}), *held.get(name, [])]
    }
    rows, low, high = [], [], []
    for k in range(kinds):
        sums = [(np.ones(len(labels)), everybody[k])]
        sums += [(inside[name, g], counts[k]) for name, table in tables.items() for g, counts in table.items()]
        for members, value in sums:
            rows.append(np.kron(members, np.eye(kinds)[k]))
            low.append(value)
            high.append(value)
    for name, groups in held.items():
        for group in groups:
            rows.append(np.kron(inside[name, group], np.ones(kinds)))
            low.append(1)
            high.append(np.inf)
    rules = LinearConstraint(np.array(rows, dtype=float), low, high)
    whole, bounds = np.ones(len(labels) * kinds), Bounds(0, np.inf)
    ranges = {}
    for name, groups in held.items():
        for group in groups:
            for k in range(kinds + 1):
                aim = np.kron(inside[name, group], np.ones(kinds) if k == kinds else np.eye(kinds)[k]).astype(float)
                ends = [milp(s * aim, constraints=rules, integrality=whole, bounds=bounds).fun for s in (1, -1)]
                ranges[name, group, k] = (round(ends[0]), round(-ends[1]))
    return ranges


def _parts(label: str, names: list[str], name: str) -> list[str]:
    """Return the group of an attribute in which a combination of groups lies."""
    return [label.split(" & ")[names.index(name)]] if name in names and len(names) > 1 else []


def one_table(seed: int) -> dict[str, Any]:
    """Audit one random table for sharing and attack what it published."""
    data, threshold, kinds = random_people(seed)
    true = truth(data, kinds)
    metrics = ["selection_rate"] + (["fnr", "fpr"] if kinds == 4 else [])
    everybody = np.sum(list(true[data.attributes[0].name].values()), axis=0).tolist()
    found: dict[str, Any] = {
        "seed": seed,
        "threshold": threshold,
        "kinds": kinds,
        "groups": sum(map(len, true.values())),
    }
    small = {name: [g for g, cells in table.items() if min(cells) < threshold] for name, table in true.items()}
    small = {name: groups for name, groups in small.items() if groups}
    plain = {name: {g: c for g, c in t.items() if g not in small.get(name, ())} for name, t in true.items()}
    found["small"] = sum(map(len, small.values()))
    if small:
        found["unprotected"] = _summary(attack(plain, small, everybody), true, threshold)
    try:
        plan = eh.Plan(group={"metrics": metrics}, n_resamples=99)
        text = eh.audit(data, plan=plan, rng=0, suppress=threshold).to_json()
    except eh.DataError:
        return {**found, "refused": True}
    tables, held, sizes = published(text, kinds)
    for name, groups in sizes.items():  # a group left alone is not compared: the attacker is given its counts
        tables.setdefault(name, {}).update({g: true[name][g] for g in groups if g not in tables.get(name, {})})
    wrong = [
        g for name, t in tables.items() for g, cells in t.items() if true[name][g] != cells or min(cells) < threshold
    ]
    found |= {"refused": False, "held": sum(map(len, held.values())), "small_or_wrong_published": len(wrong)}
    if held:
        found["protected"] = _summary(attack(tables, held, everybody), true, threshold)
    return found


def _summary(
    ranges: dict[tuple[str, str, int], tuple[int, int]], true: dict[str, dict[str, list[int]]], threshold: int
) -> dict[str, Any]:
    values = {(n, g, k): [*true[n][g], sum(true[n][g])][k] for n, g, k in ranges}
    assert all(low <= values[key] <= high for key, (low, high) in ranges.items()), "the attacker knows something false"
    widths = [high - low for low, high in ranges.values()]
    return {
        "counts": len(ranges),
        "recovered": sum(width == 0 for width in widths),
        "too_narrow": sum(width < threshold for width in widths),
        "known_small": sum(high < threshold for _, high in ranges.values()),
        "narrowest": min(widths),
        "narrowest_in_thresholds": round(min(widths) / threshold, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--start", type=int, default=0)
    asked = parser.parse_args()
    tables = []
    for seed in range(asked.start, asked.start + asked.tables):
        tables.append(one_table(seed))
        if (seed + 1) % 20 == 0:
            print(f"{seed + 1} tables", flush=True)
    totals: dict[str, Any] = {
        "tables": len(tables),
        "refused": sum(t["refused"] for t in tables),
        "small_or_wrong_published": sum(t.get("small_or_wrong_published", 0) for t in tables),
    }
    for which in ("unprotected", "protected"):
        parts = [t[which] for t in tables if which in t]
        totals[which] = {
            key: sum(p[key] for p in parts) for key in ("counts", "recovered", "too_narrow", "known_small")
        } | {"tables": len(parts), "narrowest_in_thresholds": min(p["narrowest_in_thresholds"] for p in parts)}
    print(json.dumps(totals, indent=2))
    (HERE / "suppression.json").write_text(json.dumps({"totals": totals, "tables": tables}, indent=1) + "\n")


if __name__ == "__main__":
    main()
