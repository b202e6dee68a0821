"""Table 2: the counterfactual population of women for three measures, on rows held out from the audit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from evenhand.arrays import FloatArray
from evenhand.kernels.shared.seeds import stream
from evenhand.report.document import Block, Table
from evenhand.reproductions.paper import Claim, Parts, Result, Settings, near
from evenhand.reproductions.wang2019.studies import Split, make_split

MEASURES = ("da", "cal", "fpr")
#: Per cent of men and of women, then of women in the counterfactual populations for DA, CAL and FPR, as printed.
PRINTED: dict[str, tuple[float, float, float, float, float]] = {
    "Married": (56.4, 16.7, 29.0, 21.9, 46.3),
    "Immigrant": (8.3, 8.3, 10.1, 8.8, 12.3),
    "HighestDegree_is_HS": (29.4, 35.2, 30.2, 34.2, 24.6),
    "HighestDegree_is_AS": (9.2, 8.3, 7.9, 8.4, 8.5),
    "HighestDegree_is_BS": (14.2, 16.7, 23.4, 17.5, 26.5),
    "HighestDegree_is_MSorPhD": (6.0, 5.6, 8.0, 5.3, 10.1),
    "AnyCapitalLoss": (4.1, 2.8, 3.3, 2.7, 3.0),
    "Age_leq_30": (29.8, 36.1, 29.8, 33.4, 20.9),
    "WorkHrsPerWeek_lt_40": (19.7, 40.7, 34.4, 37.5, 24.7),
    "JobType_is_WhiteCollar": (21.6, 35.2, 41.2, 35.6, 45.2),
    "JobType_is_BlueCollar": (28.0, 4.6, 4.0, 4.7, 2.9),
    "JobType_is_Specialized": (21.6, 19.4, 20.4, 20.0, 23.5),
    "JobType_is_ArmedOrProtective": (1.4, 0.9, 0.8, 1.0, 0.7),
    "Industry_is_Private": (68.8, 67.6, 63.5, 64.7, 56.5),
    "Industry_is_Government": (11.9, 13.0, 14.3, 12.4, 13.0),
    "Industry_is_SelfEmployed": (13.8, 10.2, 15.0, 14.0, 26.3),
}
#: The whole numbers of people that the two printed group columns fit.
PRINTED_MEN, PRINTED_WOMEN = 218, 108


#: Why a cell may miss.
_REMARKS = {
    "da": "Ours goes on until no gap is left; where the printed one stopped is not said.",
    "cal": "There is next to no calibration gap to remove, so that the direction is noise.",
    "fpr": "The counterfactual depends on where the descent stops, and the printed one starts from 108 women.",
}


def run_table_2(settings: Settings, parts: Parts) -> Result:
    """Return the group columns on the held-out fifth, and the counterfactual columns with their errors."""
    split = make_split("adult", settings["split"])
    audited = np.flatnonzero(split.audited)
    order = stream(settings["split"], "wang2019/holdout").permutation(audited.size)
    held = np.zeros(split.train.size, dtype=bool)
    held[audited[order < settings["holdout"] * audited.size]] = True
    women, men = held & split.inside, held & ~split.inside
    groups = {
        name: {"men": float(values[men].mean()), "women": float(values[women].mean())}
        for name, values in split.features.items()
    }
    moved = {m: parts.keep(m, settings, partial(_moved, split, m, held, women)) for m in MEASURES}
    return {"rows": {"men": int(men.sum()), "women": int(women.sum())}, "groups": groups, "counterfactual": moved}


def _moved(split: Split, measure: str, held: np.ndarray, women: np.ndarray) -> dict[str, Any]:
    """Audit the rows that are not held out, and weight the held-out women."""
    result = split.audit(measure, split.data(split.audited & ~held))
    weights = result.weights[f"{split.study.group}={split.group[women][0]}"]
    c = weights({name: values[women] for name, values in split.features.items()})
    cells = {name: _cell(values[women], c) for name, values in split.features.items()}
    effective = float(c.sum() ** 2 / (c**2).sum())
    return {"cells": cells, "effective_rows": effective, "stopped": weights.path.stopped}


def _cell(x: FloatArray, c: FloatArray) -> dict[str, float]:
    """Return the weighted mean, its change from the plain mean, and the change's standard error."""
    mean, moved = float(x.mean()), float(c @ x / c.sum())
    part = c / c.mean() * (x - moved) - (x - mean)  # each woman's part in the change
    return {"mean": moved, "change": moved - mean, "error": float(part.std(ddof=1)) / float(np.sqrt(x.size))}


def claims_of_table_2(result: Result, settings: Settings) -> Sequence[Claim]:
    """Judge both group columns, then the change in each of the 48 cells."""
    rows, groups = result["rows"], result["groups"]
    claims = [
        _column("men", 0, rows["men"], PRINTED_MEN, {k: v["men"] for k, v in groups.items()}),
        _column("women", 1, rows["women"], PRINTED_WOMEN, {k: v["women"] for k, v in groups.items()}),
    ]
    for j, measure in enumerate(MEASURES):
        cells = result["counterfactual"][measure]["cells"]
        claims += [_cell_claim(name, measure, j, cells[name], rows["women"]) for name in PRINTED]
    return claims


def _column(who: str, at: int, rows: int, printed_rows: int, shares: dict[str, float]) -> Claim:
    near_by = [
        name
        for name, share in shares.items()
        if near(PRINTED[name][at] / 100, share, float(np.sqrt(share * (1 - share) * (1 / rows + 1 / printed_rows))))
        == "yes"
    ]
    return Claim(
        claim=f"Column of {who}",
        printed=f"16 shares of {printed_rows} {who}",
        ours=f"{len(near_by)} of 16 agree, {rows:,} {who}",
        reached="yes" if len(near_by) == 16 else "in part",
        rule="each within three standard errors of a difference of two samples of these sizes",
        remark=f"The text says 4,558 rows; the printed column fits {printed_rows} {who}.",
    )


def _cell_claim(name: str, measure: str, at: int, cell: Any, women: int) -> Claim:
    before, after = PRINTED[name][1], PRINTED[name][2 + at]
    change, error, rounding = 100 * cell["change"], 100 * cell["error"], 0.1
    wide = error * float(np.sqrt(1 + women / PRINTED_WOMEN))
    close, loose = (near(after - before, change, e + rounding / 3) == "yes" for e in (error * np.sqrt(2), wide))
    return Claim(
        claim=f"{measure.upper()}, {name}: change",
        printed=f"{after - before:+.1f} ({before} to {after})",
        ours=f"{change:+.1f} ({100 * cell['mean'] - change:.1f} to {100 * cell['mean']:.1f})",
        reached="yes" if close else "in part" if loose else "no",
        rule=f"within three standard errors of {error * np.sqrt(2):.1f} points and rounding; in part: of {wide:.1f}",
        remark="" if close else _REMARKS[measure],
    )


def figures_of_table_2(result: Result) -> Sequence[Block]:
    """Lay the 48 cells out as in print, ours beside them."""
    head = ["Feature", "Men", "Women"]
    for measure in MEASURES:
        head += [f"{measure.upper()}, printed", f"{measure.upper()}, ours"]
    rows = []
    for name, printed in PRINTED.items():
        group = result["groups"][name]
        row: list[str] = [
            name,
            *(f"{p} / {100 * group[who]:.1f}" for p, who in zip(printed[:2], ("men", "women"), strict=True)),
        ]
        for j, measure in enumerate(MEASURES):
            row += [f"{printed[2 + j]:.1f}", f"{100 * result['counterfactual'][measure]['cells'][name]['mean']:.1f}"]
        rows.append(tuple(row))
    title = "Table 2 in per cent: group columns as printed / ours, then the counterfactual populations"
    return [Table(title=title, head=tuple(head), rows=tuple(rows))]
