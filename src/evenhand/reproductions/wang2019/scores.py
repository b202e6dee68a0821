"""Figure 3: proxy scores of all features on Adult, and what the features carry there and on COMPAS."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from evenhand.report.document import Block, Table
from evenhand.report.figures import forest
from evenhand.reproductions.paper import Claim, Parts, Result, Settings
from evenhand.reproductions.wang2019.studies import STUDIES, make_split

PRINTED = ("da", "cal", "fpr")
_GROUPS = {"adult": "women on Adult", "compas": "non-white people on COMPAS"}


def run_figure_3(settings: Settings, parts: Parts) -> Result:
    """Return score, interval and rank of each of the 16 columns, and of 8 features with dummies as blocks."""
    return {measure: parts.keep(measure, settings, partial(_scored, measure, settings["split"])) for measure in PRINTED}


def _scored(measure: str, number: int) -> dict[str, list[dict[str, Any]]]:
    split = make_split("adult", number)
    data = split.data(split.audited)
    return {
        "columns": _features(split.audit(measure, data).evidence),
        "blocks": _features(split.audit(measure, data, blocks=split.study.blocks).evidence),
    }


def _features(evidence: Sequence[Any]) -> list[dict[str, Any]]:
    """Return what a proxy audit found of each feature, the largest score first."""
    rows = [e.to_dict() for e in evidence if getattr(e, "ranking", None) is not None]
    kept = ("feature", "score", "score_interval", "carried", "carried_share", "interval", "association", "ranking")
    return sorted(({k: row.get(k) for k in kept} for row in rows), key=lambda row: -row["score"])


def claims_of_figure_3(result: Result, settings: Settings) -> Sequence[Claim]:
    """Judge which features lead."""
    claims = []
    for measure, words in (("da", "DA"), ("fpr", "FPR")):
        first = result[measure]["columns"][0]
        claims.append(
            Claim(
                claim=f"Married has the highest score for {words}",
                printed="picture",
                ours=f"{first['feature']} {_score(first)}, first in {first['ranking']['first']:.0%} of draws",
                reached="yes" if first["feature"] == "Married" and first["ranking"]["first"] > 0.95 else "no",
                rule="it leads in more than 95 % of draws of the scores' joint law",
            )
        )
    leaders = result["cal"]["columns"][:3]
    block = result["cal"]["blocks"][0]
    other, firm = leaders[0]["feature"] != "Married", block["ranking"]["first"] > 0.95
    claims += [
        Claim(
            claim="CAL ranks other features first",
            printed="picture",
            ours="; ".join(f"{row['feature']} {_score(row)}" for row in leaders),
            reached="yes" if other and firm else "in part" if other else "no",
            rule="another feature leads, and with dummies as blocks the leader comes first in 95 % of draws",
            remark=(
                f"The order is noise and changes with the split: {block['feature']} comes first in "
                f"{block['ranking']['first']:.0%} of draws."
            ),
        ),
        Claim(
            claim="All variables have a score",
            printed="16 bars",
            ours=f"{len(result['fpr']['columns'])} columns, {len(result['fpr']['blocks'])} features with blocks",
            reached="yes" if len(result["fpr"]["columns"]) == 16 else "no",
            rule="16 columns have a score",
            remark="A single dummy set to 1 beside another makes people who cannot exist: blocks are the better unit.",
        ),
    ]
    return claims


def _score(row: Any) -> str:
    ends = row["score_interval"]
    return f"{row['score']:.3f}" + (f" [{ends['low']:.3f}, {ends['high']:.3f}]" if ends else "")


def figures_of_figure_3(result: Result) -> Sequence[Block]:
    """Draw the scores with their intervals, one figure for each measure."""
    drawn: list[Block] = []
    for measure, made in result.items():
        for kind, words in (("columns", "single columns"), ("blocks", "one-hot dummies as blocks")):
            caption = "Mean size of the change in influence when the feature alone is changed, with 95 % intervals."
            title = f"Figure 3: proxy scores for {measure.upper()}, {words}"
            drawn.append(_forest(title, caption, made[kind], "score", "score_interval"))
    return drawn


def _forest(title: str, caption: str, rows: Sequence[Any], value: str, ends: str) -> Block:
    shown = [
        {
            "label": row["feature"],
            "estimate": row[value],
            "low": row[ends]["low"] if row[ends] else row[value],
            "high": row[ends]["high"] if row[ends] else row[value],
        }
        for row in rows
    ]
    return forest(title, caption, shown, value=value.replace("_", " "), none=0.0, label="Feature")


def run_carried(settings: Settings, parts: Parts) -> Result:
    """Return what each feature carries of the false positive gap, with dummies as blocks, on both data sets."""
    return {name: parts.keep(name, settings, partial(_carried, name, settings["split"])) for name in STUDIES}


def _carried(name: str, number: int) -> dict[str, Any]:
    split = make_split(name, number)
    result = split.audit("fpr", split.data(split.audited), blocks=split.study.blocks)
    gap = result[0]
    counterfactual = result.evidence[0].to_dict()["counterfactual"]
    return {
        "gap": {"estimate": gap.estimate, "low": gap.interval.low, "high": gap.interval.high} if gap.interval else None,
        "features": _features(result.evidence),
        "verdicts": {f.measure.removeprefix("fpr:"): str(f.verdict) for f in result.findings[1:]},
        "rows": counterfactual["rows"],
        "effective_rows": counterfactual["effective_rows"],
    }


def claims_of_carried(result: Result, settings: Settings) -> Sequence[Claim]:
    """State what the paper has no counterpart for."""
    claims = []
    for name, made in result.items():
        leader = max(made["features"], key=lambda row: abs(row["carried"]))
        claims.append(
            Claim(
                claim=f"The feature that carries most of the FPR gap of {_GROUPS[name]}",
                printed="–",
                ours=f"{leader['feature']}, {leader['carried_share']:.0%}; score {_score(leader)}",
                reached="not claimed",
                rule="nothing is printed",
                remark=f"Effective rows of the counterfactual: {made['effective_rows']:,.0f} of {made['rows']:,}.",
            )
        )
    return claims


def figures_of_carried(result: Result) -> Sequence[Block]:
    """Draw what features carry, and set it beside their scores."""
    drawn: list[Block] = []
    for name, made in result.items():
        caption = "By how much the gap would be smaller if this feature alone were distributed as in the reference."
        rows = sorted(made["features"], key=lambda row: -abs(row["carried"]))
        drawn.append(_forest(f"Carried parts of the FPR gap of {_GROUPS[name]}", caption, rows, "carried", "interval"))
        cells = tuple(
            (row["feature"], row["carried_share"], row["score"], row["association"], made["verdicts"][row["feature"]])
            for row in rows
        )
        head = ("Feature", "Share of the gap", "Proxy score", "Association with the group", "Verdict")
        drawn.append(Table(title=f"Score and part, {_GROUPS[name]}", head=head, rows=cells, folded=True))
    return drawn
