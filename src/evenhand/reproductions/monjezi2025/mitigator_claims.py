"""What RQ3 and RQ4 say of mitigators, judged; and tables V to VII as counts and means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenhand.report.document import Block, Table, Text
from evenhand.report.figures import bars
from evenhand.reproductions.monjezi2025.mitigators import METHODS, RQ3
from evenhand.reproductions.monjezi2025.printed import ECD_FAIR_BETTER, MINIMAX_WORSE
from evenhand.reproductions.paper import Claim, Result, Settings

WORDS = {
    "exponentiated_gradient": "exponentiated gradient",
    "fair_smote": "Fair-SMOTE",
    "stealth": "STEALTH",
    "maat": "MAAT",
    "minimax": "MiniMax-Fairness",
    "ecd_fair": "ECD-Fair",
}
_SHOWN = {"accuracy": "Accuracy", "aod": "AOD", "eod": "EOD", "spd": "SPD", "di": "1 - DI", "ecd": "ECD"}
_CLOSE = 0.1  # of two shares of the same cells
_FEW = "With five repetitions few differences can be told: a tie does not show that two methods are alike."


def claims_of_tables(result: Result, settings: Settings) -> list[Claim]:
    """Judge RQ3 and RQ4."""
    counts = result["counts"]
    made = _average_claims(counts)
    if "ecd_fair" in counts:
        made.append(_tail_claim(counts, "ecd_fair", "win", ECD_FAIR_BETTER, "improves the tail"))
        made.append(_no_harm_claim(counts))
    if "minimax" in counts:
        made.append(_tail_claim(counts, "minimax", "loss", MINIMAX_WORSE, "worsens the tail"))
    if {"ecd_fair", "minimax"} <= set(counts):
        one, two = (counts[m]["ecd"]["win"] for m in ("ecd_fair", "minimax"))
        made.append(
            Claim(
                claim="RQ4: ECD-Fair wins in the tail oftener than MiniMax-Fairness",
                printed="counts lost",
                ours=f"{one} and {two} of {counts['ecd_fair']['cells']}",
                reached="yes" if one > two else "no",
                rule="more wins by Scott-Knott",
            )
        )
    return made


def _of(count: int, total: int) -> str:
    return f"{count} of {total} ({100 * count / total:.0f} %)"


def _tail_claim(counts: Mapping[str, Any], method: str, outcome: str, share: float, does: str) -> Claim:
    n, ecd = counts[method]["cells"], counts[method]["ecd"]
    remarks = [
        f"Mean ECD lower in {ecd['mean lower']}, higher in {ecd['mean higher']}: {ecd['mean']:.3f} against "
        f"{ecd['mean of the plain model']:.3f}; by our paired tests shown better in {ecd['better']} and worse in "
        f"{ecd['worse']}; ranked together with RQ3's methods better in {ecd['win among all']} and worse in "
        f"{ecd['loss among all']}."
    ]
    if method == "minimax":
        other = counts[method]["ecd_other"]
        remarks.append(
            f"With the expected decision as score: better in {other['win']}, worse in {other['loss']}, mean "
            f"{other['mean']:.3f}."
        )
    return Claim(
        claim=f"RQ4: {WORDS[method]} {does}",
        printed=f"{share:.0%}",
        ours=f"better in {_of(ecd['win'], n)}, the same in {ecd['tie']}, worse in {_of(ecd['loss'], n)}",
        reached="yes" if abs(ecd[outcome] / n - share) <= _CLOSE else "no",
        rule=f"share by Scott-Knott within {100 * _CLOSE:g} points of print's; the cells are the same and not a sample",
        remark=" ".join([*remarks, _FEW]),
    )


def _no_harm_claim(counts: Mapping[str, Any]) -> Claim:
    aod, n = counts["ecd_fair"]["aod"], counts["ecd_fair"]["cells"]
    accuracy = counts["ecd_fair"]["accuracy"]
    return Claim(
        claim="RQ4: ECD-Fair does not degrade the average",
        printed="no degradation",
        ours=f"AOD better in {aod['win']}, worse in {aod['loss']} of {n}; mean accuracy lost "
        f"{accuracy['mean of the plain model'] - accuracy['mean']:.3f}",
        reached="yes" if aod["loss"] == 0 else "no",
        rule="no loss in AOD by Scott-Knott",
        remark=_FEW,
    )


def _average_claims(counts: Mapping[str, Any]) -> list[Claim]:
    average = [m for m in RQ3 if m in counts]
    total = sum(counts[m]["cells"] for m in average)
    if not total:
        return []
    kept = sum(counts[m]["aod"]["win"] + counts[m]["aod"]["tie"] for m in average)
    raised = sum(counts[m]["ecd"]["loss"] for m in average)
    shown = {k: sum(counts[m]["ecd"][k] for m in average) for k in ("better", "worse")}
    made = [
        Claim(
            claim="RQ3: mitigators of averages keep or improve AOD",
            printed="share lost",
            ours=_of(kept, total),
            reached="yes" if kept > 0.5 * total else "no",
            rule="no loss by Scott-Knott in more than half of the cells",
        ),
        Claim(
            claim="RQ3: mitigators of averages raise the tail in many cases",
            printed="share lost",
            ours=f"ECD raised in {_of(raised, total)}; shown worse in {shown['worse']} and better in {shown['better']}",
            reached="yes" if shown["worse"] else "in part" if raised else "no",
            rule="worse by our paired tests (corrected resampled t, Holm over the cells of a method) in one cell at "
            "least; in "
            "part: by Scott-Knott only",
            remark=_FEW,
        ),
    ]
    for measure, named, claim in (
        ("aod", "exponentiated_gradient", "exponentiated gradient wins oftenest in AOD"),
        ("ecd", "stealth", "STEALTH wins oftenest in the tail"),
    ):
        wins = {m: counts[m][measure]["win"] / counts[m]["cells"] for m in average}
        rivals = max((share for m, share in wins.items() if m != named), default=0.0)
        made.append(
            Claim(
                claim=f"RQ3: {claim}",
                printed="counts lost",
                ours="; ".join(f"{WORDS[m]} {_of(counts[m][measure]['win'], counts[m]['cells'])}" for m in average),
                reached="yes" if wins.get(named, -1.0) > rivals else "no",
                rule="the largest share of wins by Scott-Knott",
            )
        )
    return made


def figures_of_tables(result: Result) -> list[Block]:
    """Draw the mean ECD of each method beside the plain model's, and list counts and means."""
    counts = result["counts"]
    pairs = [
        {"label": f"{WORDS[m]}{words}", "value": counts[m]["ecd"][key], "series": series}
        for m in METHODS
        if m in counts
        for words, key, series in (
            ("", "mean", "method"),
            (": plain", "mean of the plain model", "plain model, same cells"),
        )
    ]
    chart = bars(
        "Tables V to VII: mean ECD of each method and of the plain model",
        "Means over all data sets and models of a method, of the absolute difference between the groups' levels on "
        "test rows.",
        pairs,
        value="mean ECD",
        label="Method",
    )
    names = tuple(_SHOWN.values())
    outcomes = tuple(
        (WORDS[m], counts[m]["cells"], *(_outcome(counts[m][k]) for k in _SHOWN)) for m in METHODS if m in counts
    )
    means = tuple(
        (
            WORDS[m],
            *(f"{counts[m][k]['mean']:.3f} [{counts[m][k]['mean of the plain model']:.3f}]" for k in _SHOWN),
        )
        for m in METHODS
        if m in counts
    )
    return [
        chart,
        Table(
            title="Win / tie / loss against the plain model by Scott-Knott, RQ3's and RQ4's methods ranked apart; in "
            "brackets "
            "shown better / worse by our paired tests",
            head=("Method", "Cells", *names),
            rows=outcomes,
        ),
        Table(title="Means, the plain model's on the same cells in brackets", head=("Method", *names), rows=means),
        *_unable(result["cells"]),
    ]


def _outcome(count: Mapping[str, int]) -> str:
    return f"{count['win']} / {count['tie']} / {count['loss']} [{count['better']} / {count['worse']}]"


def _unable(cells: Mapping[str, Any]) -> list[Block]:
    """Say which methods could not be fitted where."""
    where: dict[str, list[str]] = {}
    for name, cell in cells.items():
        for method in cell["unable"]:
            where.setdefault(method, []).append(name)
    if not where:
        return []
    texts = "; ".join(f"{WORDS[m]} on {', '.join(names)}" for m, names in where.items())
    return [Text(text=f"Not counted, because at least one repetition could not be fitted: {texts}.", kind="note")]
