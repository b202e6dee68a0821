"""What is counted in table IV's cells: valid tails, their types, and whether ECD says more than ACD."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from evenhand.reproductions.monjezi2025.printed import TYPES
from evenhand.reproductions.paper import Result

Cell = Mapping[str, Any]
Count = Callable[[str, Cell], int]

LIMIT = 0.05  # of a difference that counts as discrimination; print's is lost
READINGS = ("values", "excesses")


def type_by_audit(group: Mapping[str, Any]) -> str:
    """Say what our audit makes of a tail: its type, or why it has none."""
    if group["type"] is not None:
        return str(group["type"])
    if group["nobody_better_off"]:
        return "nobody better off"
    if group["steps"]:
        return "steps"
    return "only with generated rows" if group["generated_level"] is not None else "no tail"


def _audited(*kinds: str) -> Count:
    return lambda name, cell: sum(type_by_audit(g) in kinds for g in cell["groups"])


def _printed(reading: str, *types: str) -> Count:
    def count(name: str, cell: Cell) -> int:
        return sum(p["type"] in types for g in cell["groups"] for p in g["printed"] if p["reading"] == reading)

    return count


def _same_type(reading: str) -> Count:
    def count(name: str, cell: Cell) -> int:
        kind, case = name.split()
        return sum(
            p["type"] == TYPES[kind, case, g["group"].split("=")[1]]
            for g in cell["groups"]
            for p in g["printed"]
            if p["reading"] == reading
        )

    return count


def _generated(reading: str) -> Count:
    def count(name: str, cell: Cell) -> int:
        return sum(p["generated"] > 0 for g in cell["groups"] for p in g["printed"] if p["reading"] == reading)

    return count


def _passed_printed(answer: bool) -> Count:
    return lambda name, cell: sum(g["passed_printed"] is answer for g in cell["groups"])


def ends(cell: Cell, measure: str) -> list[float] | None:
    """Return estimate and interval of a difference between the groups; None where it is not computable."""
    known: list[float] | None = cell.get(measure, {}).get("estimate")
    return known


def _found(name: str, cell: Cell) -> int:
    return ends(cell, "ecd") is not None


def _verdict(word_: str) -> Count:
    return lambda name, cell: cell["ecd"]["verdict"] == word_


def larger(cell: Cell) -> str:
    """Say whether ECD is larger in size than ACD: "shown", "in the estimate" or "no"."""
    ecd, acd = ends(cell, "ecd"), ends(cell, "acd_difference")
    if ecd is None or acd is None:
        return "no"
    least = max(ecd[1], -ecd[2], 0.0)  # the smallest size in its interval
    if least > max(abs(acd[1]), abs(acd[2])):
        return "shown"
    return "in the estimate" if abs(ecd[0]) > abs(acd[0]) else "no"


def missed_by_cvar(limit: float) -> Count:
    """Count pairs whose ECD is shown to exceed a limit against the unprivileged group, and whose CVaR is not."""

    def count(name: str, cell: Cell) -> int:
        ecd, cvar = ends(cell, "ecd"), ends(cell, "cvar_difference")
        return ecd is not None and ecd[1] > limit and cvar is not None and cvar[1] <= limit

    return count


COUNTS: dict[str, Count] = {
    "tails": lambda name, cell: len(cell["groups"]),
    **{f"printed algorithm, {r}: valid": _printed(r, "I", "III") for r in READINGS},
    **{f"printed algorithm, {r}: heavy": _printed(r, "II") for r in READINGS},
    **{f"printed algorithm, {r}: never passes": _printed(r, "") for r in READINGS},
    **{f"printed algorithm, {r}: type I": _printed(r, "I") for r in READINGS},
    **{f"printed algorithm, {r}: type III": _printed(r, "III") for r in READINGS},
    **{f"printed algorithm, {r}: with made-up rows": _generated(r) for r in READINGS},
    **{f"printed algorithm, {r}: type as in print": _same_type(r) for r in READINGS},
    "audit: valid on own rows": _audited("I", "III"),
    "audit: nobody better off": _audited("nobody better off"),
    "audit: only with generated rows": _audited("only with generated rows"),
    "audit: steps": _audited("steps"),
    "audit: no tail": _audited("no tail"),
    "audit: type I": _audited("I"),
    "audit: type II": _audited("II"),
    "audit: type III": _audited("III"),
    "audit: level known": lambda name, cell: sum(g["level"] is not None for g in cell["groups"]),
    "printed limits passed": _passed_printed(True),
    "printed limits failed": _passed_printed(False),
    "pairs with an ECD": _found,
    "disparity": _verdict("disparity"),
    "equivalent": _verdict("equivalent"),
    "inconclusive": _verdict("inconclusive"),
    "not computable": _verdict("not_computable"),
    "ECD larger than ACD": lambda name, cell: larger(cell) != "no",
    "ECD shown larger than ACD": lambda name, cell: larger(cell) == "shown",
    "missed by CVaR, margin": missed_by_cvar(0.01),
    "missed by CVaR, limit": missed_by_cvar(LIMIT),
    "ECD shown against the unprivileged": lambda name, cell: (ends(cell, "ecd") or [0, 0, 0])[1] > 0.01,
    "ECD shown against the privileged": lambda name, cell: (ends(cell, "ecd") or [0, 0, 0])[2] < -0.01,
}


def counted(cells: Mapping[str, Cell], name: str) -> int:
    """Return one of `COUNTS` over cells."""
    return sum(int(COUNTS[name](key, cell)) for key, cell in cells.items())


def totals(result: Result, *names: str) -> list[int]:
    """Return a count, or the sum of several, in each complete run; the first run is the first."""
    runs = result["cells"].values()
    return [sum(counted(cells, name) for name in names) for cells in runs if len(cells) == len(result["cells"]["0"])]


def totals_by_model(result: Result, *names: str) -> dict[str, list[int]]:
    """Return the same for each model alone, in each run that has it."""
    by_model: dict[str, list[int]] = {}
    for cells in result["cells"].values():
        for kind in dict.fromkeys(key.split()[0] for key in cells):
            own = {key: cell for key, cell in cells.items() if key.startswith(f"{kind} ")}
            by_model.setdefault(kind, []).append(sum(counted(own, name) for name in names))
    return by_model


def spread(result: Result, *names: str) -> tuple[float, float]:
    """Return the mean of a count of tails over seeds, and the error of one run beside it.

    Both are added up over the models, each with as many runs as there are of it. For a model with one run the binomial
    error takes the place of the spread.
    """
    mean = variance = 0.0
    tails = totals_by_model(result, "tails")
    for kind, values in totals_by_model(result, *names).items():
        share = values[0] / max(tails[kind][0], 1)
        one = float(np.var(values, ddof=1)) if len(values) > 1 else values[0] * max(1 - share, 0.0)
        mean += float(np.mean(values))
        variance += one * (1 + 1 / len(values))
    return mean, math.sqrt(variance)
