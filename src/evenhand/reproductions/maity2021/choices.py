"""Beyond the tables: what the choices that were made for Reduction and SenSR change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from evenhand.report.document import Block, Table
from evenhand.reproductions.maity2021.kinds import BY_WEIGHT
from evenhand.reproductions.maity2021.tables import ADULT, COMPAS, TOLERANCE, row_of
from evenhand.reproductions.paper import Claim, Parts, Result, Settings

#: Data set, classifier, and what differs from the settings of the table.
_VARIANTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "Reduction on Adult, class weights as scikit-learn makes them now": ("adult", BY_WEIGHT, {}),
    "the same, eps .01": ("adult", BY_WEIGHT, {"reduction_eps": 0.01}),
    "Reduction on COMPAS, eps .16 as in the text": ("compas", "Reduction", {"reduction_eps": 0.16}),
    "SenSR on Adult, 2,000 steps of 1e-5 as in the text": ("adult", "SenSR", {"sensr_steps": 2000, "sensr_rate": 1e-5}),
}
_SHOWN = ("balanced accuracy", "AOD sex", "T_n", "T~_n")
_TABLES: dict[str, Mapping[str, Any]] = {"adult": ADULT, "compas": COMPAS}


def run_choices(settings: Settings, parts: Parts) -> Result:
    """Return the rows of each variant; SenSR, which is slow to train, on the first split only."""
    rows: dict[str, list[Any]] = {}
    for variant, (name, kind, other) in _VARIANTS.items():
        asked = {k: v for k, v in _TABLES[name].items() if k != "splits"} | other
        if settings["most_rows"]:
            asked |= {"most_rows": settings["most_rows"]}
        rows[variant] = []
        for number in range(1 if kind == "SenSR" else settings["splits"]):
            told = {"data": name, "classifier": kind, "split": number, **asked}
            rows[variant].append(parts.keep(f"{name} {number} {variant}", told, partial(row_of, told)))
    return {"rows": rows}


def claims_of_choices(result: Result, settings: Settings) -> Sequence[Claim]:
    """Set each variant beside nothing: the paper prints none of them."""
    claims = []
    for variant, rows in result["rows"].items():
        rejected = sum(row["T_n"] > TOLERANCE for row in rows)
        values = ", ".join(f"{m} {_shown([row[m] for row in rows])}" for m in _SHOWN)
        claims.append(
            Claim(
                claim=variant[0].upper() + variant[1:],
                printed="–",
                ours=f"{values}; T_n rejects on {rejected} of {len(rows)} splits",
                reached="not claimed",
                rule="none printed",
            )
        )
    return claims


def _shown(values: Sequence[float]) -> str:
    spread = f" ± {np.std(values, ddof=1):.3f}" if len(values) > 1 else ""
    return f"{np.mean(values):.3f}{spread}"


def figures_of_choices(result: Result) -> Sequence[Block]:
    """List the variants split by split."""
    rows = tuple(
        (variant, number, *(row[m] for m in _SHOWN))
        for variant, made in result["rows"].items()
        for number, row in enumerate(made)
    )
    return [Table(title="Split by split", head=("Variant", "Split", *_SHOWN), rows=rows, folded=True)]
